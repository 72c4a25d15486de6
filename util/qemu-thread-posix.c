/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of three classes, priority-inheriting mutexes, event words, and the recorded -realtime
 * parameters. The only file that calls pthread_mutex_* or sets a scheduling policy.
 */
#include "qemu/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

static __thread QemuThread *self_thread;
static __thread ThreadClass self_class = THREAD_HELPER;

/* Threads that live; the list is linked through QemuThread.next. */
static pthread_mutex_t registry_lock;
static QemuThread *registry;

static int realtime_policy;
static int realtime_max_priority;
static atomic_bool realtime_enabled;

/* ---- Mutexes ---- */

/* A bug in the program, met on any thread: no allocation, no stdio. */
static QEMU_NORETURN void thread_panic(const char *what, const char *name, int err)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "qemu-system-x86_64: %s '%s': %s\n", what,
                     name ? name : "?", err ? strerror(err) : "program error");
    if (write(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1)) < 0) {
        /* the abort below says enough */
    }
    abort();
}

static void mutex_init_raw(pthread_mutex_t *m, const char *name)
{
    pthread_mutexattr_t attr;
    int err = pthread_mutexattr_init(&attr);
#ifdef CONFIG_PI
    if (!err) {
        err = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    }
#endif
#ifdef CONFIG_RTCHECK
    if (!err) {
        err = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    }
#endif
    if (!err) {
        err = pthread_mutex_init(m, &attr);
    }
    if (err) {
        thread_panic("cannot make mutex", name, err);
    }
    pthread_mutexattr_destroy(&attr);
}

#ifdef CONFIG_RTCHECK
/* Locks the thread holds. Deeper nesting than this would itself be a bug. */
#define HELD_MAX 16
static __thread const QemuMutex *held[HELD_MAX];
static __thread unsigned held_count;

static void held_check_rank(const QemuMutex *m)
{
    for (unsigned i = 0; i < held_count; i++) {
        if (held[i]->rank >= m->rank) {
            char what[128];
            snprintf(what, sizeof(what),
                     "lock order: rank %u taken while holding '%s' (rank %u):", m->rank,
                     held[i]->name, held[i]->rank);
            thread_panic(what, m->name, 0);
        }
    }
}

static void held_push(const QemuMutex *m)
{
    if (held_count == HELD_MAX) {
        thread_panic("too many locks held at", m->name, 0);
    }
    held[held_count++] = m;
}

static void held_remove(const QemuMutex *m)
{
    for (unsigned i = held_count; i-- > 0;) {
        if (held[i] == m) {
            memmove(&held[i], &held[i + 1], (held_count - i - 1) * sizeof(held[0]));
            held_count--;
            return;
        }
    }
    thread_panic("unlock of a mutex this thread does not hold:", m->name, 0);
}
#else
static inline void held_check_rank(const QemuMutex *m)
{
}
static inline void held_push(const QemuMutex *m)
{
}
static inline void held_remove(const QemuMutex *m)
{
}
#endif

void qemu_mutex_init(QemuMutex *m, LockRank rank, const char *name)
{
    mutex_init_raw(&m->m, name);
    m->name = name;
    m->rank = rank;
}

void qemu_mutex_destroy(QemuMutex *m)
{
    int err = pthread_mutex_destroy(&m->m);
    if (err) {
        thread_panic("cannot destroy mutex", m->name, err);
    }
}

NO_TSA void qemu_mutex_lock(QemuMutex *m)
{
    held_check_rank(m);
    int err = pthread_mutex_lock(&m->m);
    if (unlikely(err)) {
        thread_panic("cannot lock mutex", m->name, err);
    }
    held_push(m);
}

NO_TSA bool qemu_mutex_trylock(QemuMutex *m)
{
    int err = pthread_mutex_trylock(&m->m);
    if (err == EBUSY) {
        return false;
    }
    if (unlikely(err)) {
        thread_panic("cannot lock mutex", m->name, err);
    }
    held_push(m);
    return true;
}

NO_TSA void qemu_mutex_unlock(QemuMutex *m)
{
    held_remove(m);
    int err = pthread_mutex_unlock(&m->m);
    if (unlikely(err)) {
        thread_panic("cannot unlock mutex", m->name, err);
    }
}

/* ---- Event words ---- */

static long futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *timeout,
                  uint32_t bitset)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, timeout, NULL, bitset);
}

void event_word_set(EventWord *w, uint32_t bits)
{
    uint32_t old = atomic_load_explicit(&w->value, memory_order_relaxed);
    uint32_t wanted;

    /* The setter that clears the mark is the one that makes the system call. */
    do {
        wanted = (old | bits) & ~EVENT_WORD_WAITING;
    } while (!atomic_compare_exchange_weak(&w->value, &old, wanted));
    if (old & EVENT_WORD_WAITING) {
        futex(&w->value, FUTEX_WAKE, 1, NULL, 0);
    }
}

uint32_t event_word_take(EventWord *w)
{
    /* The mark belongs to the waiter, which may be another thread. */
    return atomic_fetch_and(&w->value, EVENT_WORD_WAITING) & ~EVENT_WORD_WAITING;
}

bool event_word_wait(EventWord *w, int64_t deadline_ns)
{
    struct timespec ts = { 0, 0 };
    if (deadline_ns > 0) {
        ts.tv_sec = deadline_ns / NANOSECONDS_PER_SECOND;
        ts.tv_nsec = deadline_ns % NANOSECONDS_PER_SECOND;
    }

    for (;;) {
        uint32_t v = atomic_load(&w->value);
        if (v & ~EVENT_WORD_WAITING) {
            return true;
        }
        if (v == 0 && !atomic_compare_exchange_strong(&w->value, &v, EVENT_WORD_WAITING)) {
            continue;
        }
        /* FUTEX_WAIT_BITSET, as its time is absolute and of CLOCK_MONOTONIC. */
        long r = futex(&w->value, FUTEX_WAIT_BITSET, EVENT_WORD_WAITING,
                       deadline_ns == INT64_MAX ? NULL : &ts, FUTEX_BITSET_MATCH_ANY);
        if (r < 0 && errno == ETIMEDOUT) {
            v = atomic_fetch_and(&w->value, ~EVENT_WORD_WAITING);
            return (v & ~EVENT_WORD_WAITING) != 0;
        }
    }
}

/* ---- Realtime parameters ---- */

void qemu_init_realtime(int policy, int max_priority)
{
    realtime_policy = policy;
    realtime_max_priority = max_priority;
    atomic_store(&realtime_enabled, true);
}

bool qemu_realtime_is_enabled(void)
{
    return atomic_load_explicit(&realtime_enabled, memory_order_acquire);
}

void qemu_realtime_get_parameters(int *policy, int *max_priority)
{
    *policy = realtime_policy;
    *max_priority = realtime_max_priority;
}

/* ---- Policy of a thread ---- */

static const char *policy_name(int policy)
{
    switch (policy) {
    case SCHED_FIFO:
        return "SCHED_FIFO";
    case SCHED_RR:
        return "SCHED_RR";
    default:
        return "SCHED_OTHER";
    }
}

/* What class cls gets; false: whatever the process was started with stays. */
static bool class_policy(ThreadClass cls, int *policy, int *priority)
{
    if (cls == THREAD_HELPER) {
        *policy = SCHED_OTHER;
        *priority = 0;
        return true;
    }
    if (!qemu_realtime_is_enabled()) {
        return false;
    }
    qemu_realtime_get_parameters(policy, priority);
    if (cls == THREAD_VCPU) {
        *priority -= 1;
    }
    return true;
}

/*
 * Gives the calling thread its class's policy and reads it back. SCHED_RESET_ON_FORK, so that
 * neither child processes nor threads that a library makes inherit it. Returns an errno.
 */
static int policy_apply_self(ThreadClass cls)
{
    int policy, priority, err = 0;

    if (!class_policy(cls, &policy, &priority)) {
        return 0;
    }
    struct sched_param sp = { .sched_priority = priority };
    if (sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &sp) < 0) {
        err = errno;
    }
    int now = sched_getscheduler(0);
    struct sched_param got = { 0 };
    if (now < 0 || sched_getparam(0, &got) < 0) {
        return errno;
    }
    now &= ~SCHED_RESET_ON_FORK;
    if (cls == THREAD_HELPER) {
        /* A filter may forbid the call; a thread that is not realtime anyway needs no help. */
        bool is_realtime = got.sched_priority > 0 || now == SCHED_FIFO || now == SCHED_RR;
        return is_realtime ? (err ? err : EPERM) : 0;
    }
    if (err) {
        return err;
    }
    return now == policy && got.sched_priority == priority ? 0 : EPERM;
}

int qemu_thread_try_policy(int policy, int priority)
{
    struct sched_param sp = { .sched_priority = priority };

    if (policy < 0) {
        policy = sched_getscheduler(0);
        sched_getparam(0, &sp);
    } else {
        policy |= SCHED_RESET_ON_FORK;
    }
    return sched_setscheduler(0, policy, &sp) < 0 ? errno : 0;
}

/* Page size of all hosts this runs on, or a divisor of it. */
#define TOUCH_STEP 4096

/* Writes to the stack from here down to `bottom`, so that it is there (and locked, if so asked). */
static QEMU_NOINLINE void stack_touch(uintptr_t bottom)
{
    volatile char frame[TOUCH_STEP];

    frame[0] = 0;
    if ((uintptr_t)frame > bottom) {
        stack_touch(bottom);
    }
    (void)frame[0]; /* after the call, so that it does not become a jump */
}

/* Touches all of the calling thread's stack but a reserve at its end, at most `most` bytes. */
static void stack_touch_self(size_t most)
{
    pthread_attr_t attr;
    char here;
    void *lowest = NULL;
    size_t size;

    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        return;
    }
    pthread_attr_getstack(&attr, &lowest, &size);
    pthread_attr_destroy(&attr);
    uintptr_t bottom = (uintptr_t)lowest + QEMU_THREAD_STACK_RESERVE;
    stack_touch(MAX(bottom, (uintptr_t)&here - most));
}

/* ---- Registry ---- */

static pthread_once_t registry_once = PTHREAD_ONCE_INIT;

static void registry_setup(void)
{
    mutex_init_raw(&registry_lock, "thread registry");
}

static void registry_take(void)
{
    pthread_once(&registry_once, registry_setup);
    pthread_mutex_lock(&registry_lock);
}

static void registry_add(QemuThread *t)
{
    registry_take();
    t->next = registry;
    registry = t;
    pthread_mutex_unlock(&registry_lock);
}

static void registry_remove(QemuThread *t)
{
    registry_take();
    for (QemuThread **p = &registry; *p; p = &(*p)->next) {
        if (*p == t) {
            *p = t->next;
            break;
        }
    }
    atomic_store(&t->tid, 0);
    pthread_mutex_unlock(&registry_lock);
}

void qemu_thread_foreach(void (*fn)(const QemuThread *t, void *opaque), void *opaque)
{
    registry_take();
    for (QemuThread *t = registry; t; t = t->next) {
        fn(t, opaque);
    }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- Creation ---- */

/* Lives on the creator's stack until the new thread has said how it went. */
typedef struct ThreadStart {
    QemuThread *t;
    void *(*fn)(void *);
    void *arg;
    int err;
    EventWord done;
} ThreadStart;

static void thread_bind_self(QemuThread *t)
{
    self_thread = t;
    self_class = t->cls;
    t->thread = pthread_self();
    atomic_store(&t->tid, (pid_t)syscall(SYS_gettid));
    registry_add(t);
}

static void *thread_trampoline(void *opaque)
{
    ThreadStart *start = opaque;
    QemuThread *t = start->t;
    void *(*fn)(void *) = start->fn;
    void *arg = start->arg;

    pthread_setname_np(pthread_self(), t->name);
    int err = policy_apply_self(t->cls);
    if (!err) {
        if (t->cls != THREAD_HELPER && qemu_realtime_is_enabled()) {
            stack_touch_self(QEMU_THREAD_STACK_SIZE);
        }
        thread_bind_self(t);
    }
    start->err = err;
    event_word_set(&start->done, 1); /* start is gone from here on */
    if (err) {
        return NULL;
    }
    void *ret = fn(arg);
    registry_remove(t);
    return ret;
}

/*
 * Signals for the process go to its first thread. SIGUSR1, which kicks a vCPU, and those a thread
 * causes itself stay open.
 */
static void signals_for_children(sigset_t *set)
{
    sigfillset(set);
    static const int open_signals[] = { SIGUSR1, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                        SIGTRAP, SIGABRT, SIGPROF, SIGSYS, SIGXCPU };
    for (size_t i = 0; i < ARRAY_SIZE(open_signals); i++) {
        sigdelset(set, open_signals[i]);
    }
}

static void thread_fill(QemuThread *t, const char *name, ThreadClass cls)
{
    memset(t, 0, sizeof(*t));
    t->cls = cls;
    snprintf(t->name, sizeof(t->name), "%s", name);
}

static void policy_refused(Error **errp, const char *name, ThreadClass cls, int err)
{
    int policy = SCHED_OTHER, priority = 0;

    class_policy(cls, &policy, &priority);
    error_setg_errno(errp, err, "thread '%s': the host refused policy %s, priority %d", name,
                     policy_name(policy), priority);
}

bool qemu_thread_create(QemuThread *t, const char *name, ThreadClass cls, void *(*fn)(void *),
                        void *arg, Error **errp)
{
    ThreadStart start = { .t = t, .fn = fn, .arg = arg };
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t blocked, old;

    rtcheck_helper_only(__func__);
    thread_fill(t, name, cls);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, QEMU_THREAD_STACK_SIZE);
    signals_for_children(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &old);
    int err = pthread_create(&thread, &attr, thread_trampoline, &start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (err) {
        error_setg_errno(errp, err, "cannot make thread '%s'", name);
        return false;
    }
    event_word_wait(&start.done, INT64_MAX);
    if (start.err) {
        pthread_join(thread, NULL);
        policy_refused(errp, name, cls, start.err);
        return false;
    }
    return true;
}

void *qemu_thread_join(QemuThread *t)
{
    void *ret = NULL;
    rtcheck_helper_only(__func__);
    int err = pthread_join(t->thread, &ret);
    if (err) {
        thread_panic("cannot join thread", t->name, err);
    }
    return ret;
}

bool qemu_thread_adopt_self(QemuThread *t, const char *name, ThreadClass cls, Error **errp)
{
    thread_fill(t, name, cls);
    int err = policy_apply_self(cls);
    if (err) {
        policy_refused(errp, name, cls, err);
        return false;
    }
    /* The first thread's name is the process's name, which tools look for: it stays. */
    if (syscall(SYS_gettid) != getpid()) {
        pthread_setname_np(pthread_self(), t->name);
    }
    if (cls != THREAD_HELPER && qemu_realtime_is_enabled()) {
        stack_touch_self(QEMU_THREAD_STACK_SIZE);
    }
    if (self_thread) {
        registry_remove(self_thread);
    }
    thread_bind_self(t);
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
    pid_t tid = atomic_load(&t->tid);
    if (tid) {
        syscall(SYS_tgkill, getpid(), tid, sig);
    }
}
