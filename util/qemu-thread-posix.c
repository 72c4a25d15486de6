/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of three classes, priority-inheriting mutexes and event words. The only file that calls
 * pthread_mutex_*.
 */
#include "qemu/thread.h"

#include "qemu-thread-internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread QemuThread *self_thread;

/* Threads that live; the list is linked through QemuThread.next. */
static pthread_mutex_t registry_lock;
static QemuThread *registry;

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

void (*qemu_mutex_contended)(const QemuMutex *m, int holder, int64_t waited_ns);

static int64_t mutex_clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/* Another thread has it. An errno. */
static QEMU_NOINLINE int mutex_lock_contended(QemuMutex *m)
{
    int holder = 0;
#ifdef __GLIBC__
    holder = __atomic_load_n(&m->m.__data.__owner, __ATOMIC_RELAXED); /* may be out of date */
#endif
    int64_t start = mutex_clock_ns();
    int err = pthread_mutex_lock(&m->m);

    if (!err && qemu_mutex_contended) {
        qemu_mutex_contended(m, holder, mutex_clock_ns() - start);
    }
    return err;
}

NO_TSA void qemu_mutex_lock(QemuMutex *m)
{
    held_check_rank(m);
    int err = pthread_mutex_trylock(&m->m);
    if (unlikely(err == EBUSY)) {
        err = mutex_lock_contended(m);
    }
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
    /*
     * The waiter alone clears its mark. Had the first setter cleared it, those after it would rely
     * on its system call, and it may be of low priority and held off before it gets there.
     */
    if (atomic_fetch_or(&w->value, bits) & EVENT_WORD_WAITING) {
        futex(&w->value, FUTEX_WAKE, 1, NULL, 0);
    }
}

uint32_t event_word_take(EventWord *w)
{
    /* The mark belongs to the waiter, which may be another thread. */
    return atomic_fetch_and(&w->value, EVENT_WORD_WAITING) & ~EVENT_WORD_WAITING;
}

/* The wait is over: no system call for a setter any more. True if a bit is set. */
static bool event_word_unmark(EventWord *w)
{
    return (atomic_fetch_and(&w->value, ~EVENT_WORD_WAITING) & ~EVENT_WORD_WAITING) != 0;
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
            return v & EVENT_WORD_WAITING ? event_word_unmark(w) : true;
        }
        if (v == 0 && !atomic_compare_exchange_strong(&w->value, &v, EVENT_WORD_WAITING)) {
            continue;
        }
        /* FUTEX_WAIT_BITSET, as its time is absolute and of CLOCK_MONOTONIC. */
        long r = futex(&w->value, FUTEX_WAIT_BITSET, EVENT_WORD_WAITING,
                       deadline_ns == INT64_MAX ? NULL : &ts, FUTEX_BITSET_MATCH_ANY);
        if (r < 0 && errno == ETIMEDOUT) {
            return event_word_unmark(w);
        }
    }
}

/* ---- Stacks ---- */

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

/* The list is held. */
static void registry_add(QemuThread *t)
{
    t->next = registry;
    registry = t;
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

void qemu_threads_hold(void)
{
    registry_take();
}

void qemu_threads_release(void)
{
    pthread_mutex_unlock(&registry_lock);
}

QemuThread *qemu_threads_next(const QemuThread *t)
{
    return t ? t->next : registry;
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
    bool touch; /* the stack, though the class would not ask for it */
    int err;
    EventWord done;
} ThreadStart;

/* The list is held. */
static void thread_bind_self(QemuThread *t)
{
    self_thread = t;
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
    if ((t->cls != THREAD_HELPER || start->touch) && qemu_realtime_profile()) {
        stack_touch_self(QEMU_THREAD_STACK_SIZE); /* the C library allocates for it: still of no class */
    }
    /* In one go: whoever switches profiles finds it in the list, or has switched before. */
    registry_take();
    int err = qemu_thread_sched_apply(t, 0);
    if (!err) {
        thread_bind_self(t);
    }
    pthread_mutex_unlock(&registry_lock);
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

static void thread_fill(QemuThread *t, const char *name, ThreadClass cls, int vcpu)
{
    memset(t, 0, sizeof(*t));
    t->cls = cls;
    t->vcpu = vcpu;
    snprintf(t->name, sizeof(t->name), "%s", name);
}

static bool thread_create(QemuThread *t, void *(*fn)(void *), void *arg, bool touch, Error **errp)
{
    ThreadStart start = { .t = t, .fn = fn, .arg = arg, .touch = touch };
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t blocked, old;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, QEMU_THREAD_STACK_SIZE);
    signals_for_children(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &old);
    int err = pthread_create(&thread, &attr, thread_trampoline, &start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (err) {
        error_setg_errno(errp, err, "cannot make thread '%s' (limits: 'ulimit -u', 'ulimit -v', "
                                    "pids.max of the cgroup%s)", t->name,
                         touch || t->cls == THREAD_VCPU ? "; or give fewer CPUs, -smp" : "");
        return false;
    }
    event_word_wait(&start.done, INT64_MAX);
    if (start.err) {
        pthread_join(thread, NULL);
        qemu_thread_sched_refused(errp, t, start.err);
        return false;
    }
    return true;
}

bool qemu_thread_create(QemuThread *t, const char *name, ThreadClass cls, void *(*fn)(void *),
                        void *arg, Error **errp)
{
    rtcheck_helper_only(__func__);
    thread_fill(t, name, cls, -1);
    return thread_create(t, fn, arg, false, errp);
}

bool qemu_thread_create_vcpu(QemuThread *t, const char *name, unsigned vcpu, void *(*fn)(void *),
                             void *arg, Error **errp)
{
    rtcheck_helper_only(__func__);
    thread_fill(t, name, THREAD_VCPU, (int)vcpu);
    return thread_create(t, fn, arg, false, errp);
}

bool qemu_thread_create_vcpu_later(QemuThread *t, const char *name, void *(*fn)(void *), void *arg,
                                   Error **errp)
{
    rtcheck_helper_only(__func__);
    thread_fill(t, name, THREAD_HELPER, -1);
    return thread_create(t, fn, arg, true, errp);
}

/* The list is held. */
static int change_class(QemuThread *t, ThreadClass cls, int vcpu)
{
    t->cls = cls;
    t->vcpu = vcpu;
    return qemu_thread_sched_apply(t, atomic_load(&t->tid));
}

bool qemu_thread_become_vcpu(QemuThread *t, unsigned vcpu, Error **errp)
{
    rtcheck_helper_only(__func__);
    registry_take();
    int err = change_class(t, THREAD_VCPU, (int)vcpu);
    if (err) {
        qemu_thread_sched_refused(errp, t, err);
        change_class(t, THREAD_HELPER, -1);
    }
    pthread_mutex_unlock(&registry_lock);
    return !err;
}

void qemu_thread_become_helper(QemuThread *t)
{
    rtcheck_helper_only(__func__);
    registry_take();
    change_class(t, THREAD_HELPER, -1); /* nobody refuses that */
    pthread_mutex_unlock(&registry_lock);
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
    thread_fill(t, name, cls, -1);
    registry_take();
    int err = qemu_thread_sched_apply(t, 0);
    pthread_mutex_unlock(&registry_lock);
    if (err) {
        qemu_thread_sched_refused(errp, t, err);
        return false;
    }
    /* The first thread's name is the process's name, which tools look for: it stays. */
    if (syscall(SYS_gettid) != getpid()) {
        pthread_setname_np(pthread_self(), t->name);
    }
    if (cls != THREAD_HELPER && qemu_realtime_profile()) {
        stack_touch_self(QEMU_THREAD_STACK_SIZE);
    }
    if (self_thread) {
        registry_remove(self_thread);
    }
    registry_take();
    thread_bind_self(t);
    pthread_mutex_unlock(&registry_lock);
    return true;
}

ThreadClass qemu_thread_self_class(void)
{
    return self_thread ? self_thread->cls : THREAD_HELPER;
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
