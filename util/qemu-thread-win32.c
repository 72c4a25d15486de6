/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads, mutexes and event words on Windows. There is no realtime class here that keeps what
 * -realtime promises, so os-win32.c refuses the option and these functions are never asked for one.
 */
#include "qemu/thread.h"

#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread QemuThread *self_thread;
static __thread ThreadClass self_class = THREAD_HELPER;

static SRWLOCK registry_lock = SRWLOCK_INIT;
static QemuThread *registry;

/* ---- Mutexes ---- */

_Static_assert(sizeof(SRWLOCK) == sizeof(void *), "QemuMutex.m holds the lock itself");

static PSRWLOCK srw(QemuMutex *m)
{
    return (PSRWLOCK)&m->m;
}

void qemu_mutex_init(QemuMutex *m, LockRank rank, const char *name)
{
    InitializeSRWLock(srw(m));
    m->name = name;
    m->rank = rank;
}

void qemu_mutex_destroy(QemuMutex *m)
{
    m->name = NULL;
}

/* Not told of here. */
void (*qemu_mutex_contended)(const QemuMutex *m, int holder, int64_t waited_ns);

NO_TSA void qemu_mutex_lock(QemuMutex *m)
{
    AcquireSRWLockExclusive(srw(m));
}

NO_TSA bool qemu_mutex_trylock(QemuMutex *m)
{
    return TryAcquireSRWLockExclusive(srw(m));
}

NO_TSA void qemu_mutex_unlock(QemuMutex *m)
{
    ReleaseSRWLockExclusive(srw(m));
}

/* ---- Event words ---- */

void event_word_set(EventWord *w, uint32_t bits)
{
    uint32_t old = atomic_fetch_or(&w->value, bits);
    if (old & EVENT_WORD_WAITING) {
        atomic_fetch_and(&w->value, ~EVENT_WORD_WAITING);
        WakeByAddressSingle((void *)&w->value);
    }
}

uint32_t event_word_take(EventWord *w)
{
    return atomic_fetch_and(&w->value, EVENT_WORD_WAITING) & ~EVENT_WORD_WAITING;
}

static int64_t monotonic_ns(void)
{
    LARGE_INTEGER now, freq;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&freq);
    return (int64_t)((double)now.QuadPart * NANOSECONDS_PER_SECOND / (double)freq.QuadPart);
}

bool event_word_wait(EventWord *w, int64_t deadline_ns)
{
    for (;;) {
        uint32_t v = atomic_fetch_or(&w->value, EVENT_WORD_WAITING) & ~EVENT_WORD_WAITING;
        DWORD ms = INFINITE;
        if (v) {
            atomic_fetch_and(&w->value, ~EVENT_WORD_WAITING);
            return true;
        }
        if (deadline_ns != INT64_MAX) {
            int64_t left = deadline_ns - monotonic_ns();
            if (left <= 0) {
                v = atomic_fetch_and(&w->value, ~EVENT_WORD_WAITING);
                return (v & ~EVENT_WORD_WAITING) != 0;
            }
            ms = (DWORD)MIN(left / 1000000 + 1, 60000);
        }
        uint32_t waiting = EVENT_WORD_WAITING;
        WaitOnAddress((void *)&w->value, &waiting, sizeof(waiting), ms);
    }
}

/* ---- Realtime parameters: never set ---- */

void qemu_init_realtime(int policy, int max_priority)
{
    /* os_prioritize() of this host never gets here. */
    fprintf(stderr, "-realtime is not supported on Windows\n");
    abort();
}

void qemu_init_realtime_profile(const QemuRealtimeProfile *p)
{
    qemu_init_realtime(p->policy, p->max_priority);
}

const QemuRealtimeProfile *qemu_realtime_profile(void)
{
    return NULL;
}

bool qemu_realtime_is_enabled(void)
{
    return false;
}

void qemu_realtime_get_parameters(int *policy, int *max_priority)
{
    *policy = 0;
    *max_priority = 0;
}

/* ---- Threads ---- */

typedef struct ThreadStart {
    QemuThread *t;
    void *(*fn)(void *);
    void *arg;
} ThreadStart;

static void bind_self(QemuThread *t)
{
    self_thread = t;
    self_class = t->cls;
    atomic_store(&t->tid, GetCurrentThreadId());
    AcquireSRWLockExclusive(&registry_lock);
    t->next = registry;
    registry = t;
    ReleaseSRWLockExclusive(&registry_lock);
}

static void unbind(QemuThread *t)
{
    AcquireSRWLockExclusive(&registry_lock);
    for (QemuThread **p = &registry; *p; p = &(*p)->next) {
        if (*p == t) {
            *p = t->next;
            break;
        }
    }
    atomic_store(&t->tid, 0);
    ReleaseSRWLockExclusive(&registry_lock);
}

static DWORD WINAPI trampoline(void *opaque)
{
    ThreadStart start = *(ThreadStart *)opaque;

    free(opaque);
    bind_self(start.t);
    void *ret = start.fn(start.arg);
    unbind(start.t);
    return (DWORD)(uintptr_t)ret;
}

static void fill(QemuThread *t, const char *name, ThreadClass cls)
{
    memset(t, 0, sizeof(*t));
    t->cls = cls;
    t->vcpu = -1;
    snprintf(t->name, sizeof(t->name), "%s", name);
}

bool qemu_thread_create(QemuThread *t, const char *name, ThreadClass cls, void *(*fn)(void *),
                        void *arg, Error **errp)
{
    ThreadStart *start = malloc(sizeof(*start));

    fill(t, name, cls);
    if (start) {
        *start = (ThreadStart){ .t = t, .fn = fn, .arg = arg };
        t->handle = CreateThread(NULL, QEMU_THREAD_STACK_SIZE, trampoline, start, 0, NULL);
    }
    if (!t->handle) {
        error_setg(errp, "cannot make thread '%s': error %lu", name, GetLastError());
        free(start);
        return false;
    }
    return true;
}

bool qemu_thread_create_vcpu(QemuThread *t, const char *name, unsigned vcpu, void *(*fn)(void *),
                             void *arg, Error **errp)
{
    if (!qemu_thread_create(t, name, THREAD_VCPU, fn, arg, errp)) {
        return false;
    }
    t->vcpu = (int)vcpu;
    return true;
}

/* What the thread returned, as far as an exit code of this host can carry it. */
void *qemu_thread_join(QemuThread *t)
{
    DWORD code = 0;

    WaitForSingleObject(t->handle, INFINITE);
    GetExitCodeThread(t->handle, &code);
    CloseHandle(t->handle);
    return (void *)(uintptr_t)code;
}

bool qemu_thread_adopt_self(QemuThread *t, const char *name, ThreadClass cls, Error **errp)
{
    fill(t, name, cls);
    bind_self(t);
    return true;
}

ThreadClass qemu_thread_self_class(void)
{
    return self_class;
}

const char *qemu_thread_self_name(void)
{
    return self_thread ? self_thread->name : "?";
}

bool qemu_thread_is_self(const QemuThread *t)
{
    return self_thread == t;
}

void qemu_thread_kick(QemuThread *t, int sig)
{
    /* There are no signals; what waits here waits on an event word. */
}

void qemu_thread_foreach(void (*fn)(const QemuThread *t, void *opaque), void *opaque)
{
    AcquireSRWLockExclusive(&registry_lock);
    for (QemuThread *t = registry; t; t = t->next) {
        fn(t, opaque);
    }
    ReleaseSRWLockExclusive(&registry_lock);
}
