/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads, priority-inheriting mutexes and event words. Implemented in util/qemu-thread-posix.c,
 * the only file that calls pthread_mutex_* or sets a scheduling policy. The specification is
 * docs/devel/threads.md and, for -realtime, docs/realtime.md.
 */
#ifndef QEMU_THREAD_H
#define QEMU_THREAD_H

#include <stdatomic.h>
#ifndef _WIN32
#include <pthread.h>
#include <sys/types.h>
#endif
#include "qemu/compiler.h"
#include "qemu/error.h"
#include "qemu/lockrank.h"

/* What a thread is for; decides its scheduling policy under -realtime. */
typedef enum ThreadClass {
    THREAD_EVENT,  /* the main loop, iothreads: policy at maxprio */
    THREAD_VCPU,   /* policy at maxprio - 1 */
    THREAD_HELPER, /* everything else: SCHED_OTHER, always, set explicitly */
} ThreadClass;

/* ---- Sets of CPUs, and what the kernel's scheduler is told of a thread ---- */

/* Host CPUs and vCPUs have numbers 0..QEMU_CPU_SET_MAX-1. */
#define QEMU_CPU_SET_MAX 1024
typedef struct QemuCpuSet {
    uint64_t bits[QEMU_CPU_SET_MAX / 64];
} QemuCpuSet;

/* RT_SAFE, all of them. Numbers out of range are in no set. */
static inline bool qemu_cpu_set_has(const QemuCpuSet *s, unsigned cpu)
{
    return cpu < QEMU_CPU_SET_MAX && (s->bits[cpu / 64] >> (cpu % 64) & 1);
}
static inline void qemu_cpu_set_add(QemuCpuSet *s, unsigned cpu)
{
    if (cpu < QEMU_CPU_SET_MAX) {
        s->bits[cpu / 64] |= BIT64(cpu % 64);
    }
}
static inline void qemu_cpu_set_remove(QemuCpuSet *s, unsigned cpu)
{
    if (cpu < QEMU_CPU_SET_MAX) {
        s->bits[cpu / 64] &= ~BIT64(cpu % 64);
    }
}
static inline unsigned qemu_cpu_set_count(const QemuCpuSet *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(s->bits); i++) {
        n += (unsigned)__builtin_popcountll(s->bits[i]);
    }
    return n;
}
/* Is every member of a in b? */
static inline bool qemu_cpu_set_within(const QemuCpuSet *a, const QemuCpuSet *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(a->bits); i++) {
        if (a->bits[i] & ~b->bits[i]) {
            return false;
        }
    }
    return true;
}
static inline bool qemu_cpu_set_equal(const QemuCpuSet *a, const QemuCpuSet *b)
{
    return qemu_cpu_set_within(a, b) && qemu_cpu_set_within(b, a);
}

typedef struct QemuSched {
    int policy;          /* SCHED_OTHER, SCHED_RR, SCHED_FIFO; read back: any of the kernel's */
    int priority;        /* 0 unless realtime */
    bool reset_on_fork;  /* read back; what is set always has it */
    bool affinity_known; /* wanted: set it; read back: always true */
    QemuCpuSet affinity;
} QemuSched;

#ifndef _WIN32
typedef struct TSA_CAPABILITY("mutex") QemuMutex {
    pthread_mutex_t m;
    const char *name; /* borrowed; for rank violations and latency reports */
    uint8_t rank;     /* LockRank */
} QemuMutex;

typedef struct QemuThread {
    pthread_t thread;
    _Atomic pid_t tid; /* kernel thread id; 0 until the thread runs */
    _Atomic ThreadClass cls;
    _Atomic int vcpu; /* number of the vCPU it runs; -1: none */
    char name[16];
    struct QemuThread *next;      /* private: registry */
    QemuSched former, now, want; /* private to a switch of profiles (realtime/) */
} QemuThread;
#else
typedef struct TSA_CAPABILITY("mutex") QemuMutex {
    void *m; /* SRWLOCK, which is one pointer */
    const char *name;
    uint8_t rank;
} QemuMutex;

typedef struct QemuThread {
    void *handle;
    _Atomic uint32_t tid;
    ThreadClass cls;
    int vcpu;
    char name[16];
    struct QemuThread *next; /* private: registry */
} QemuThread;
#endif

/* ---- Mutexes (PTHREAD_PRIO_INHERIT, error-checking in the rtcheck build) ---- */

/* HELPER_ONLY or start-up. name is borrowed and must outlive the mutex. */
void qemu_mutex_init(QemuMutex *m, LockRank rank, const char *name);
void qemu_mutex_destroy(QemuMutex *m);
/* RT_SAFE. Asserts the rank order in the rtcheck build. */
void qemu_mutex_lock(QemuMutex *m) ACQUIRE(*m);
bool qemu_mutex_trylock(QemuMutex *m) TRY_ACQUIRE(true, *m);
void qemu_mutex_unlock(QemuMutex *m) RELEASE(*m);
/*
 * Called after qemu_mutex_lock() had to wait: holder is the thread that had m when the wait began
 * (0: not known). RT_SAFE, holds m. Set at start-up (realtime/latency.c); NULL: nobody listens.
 */
extern void (*qemu_mutex_contended)(const QemuMutex *m, int holder, int64_t waited_ns);

static inline void qemu_mutex_guard_release(QemuMutex **m) NO_TSA;
static inline void qemu_mutex_guard_release(QemuMutex **m)
{
    qemu_mutex_unlock(*m);
}
static inline QemuMutex *qemu_mutex_guard_take(QemuMutex *m) NO_TSA;
static inline QemuMutex *qemu_mutex_guard_take(QemuMutex *m)
{
    qemu_mutex_lock(m);
    return m;
}
/* Holds m until the enclosing block ends. */
#define QEMU_LOCK_GUARD(mutex)                                                                     \
    __attribute__((cleanup(qemu_mutex_guard_release))) QEMU_UNUSED QemuMutex                       \
        *QEMU_GLUE(lock_guard_, __LINE__) = qemu_mutex_guard_take(mutex)
#define QEMU_GLUE_(a, b) a##b
#define QEMU_GLUE(a, b)  QEMU_GLUE_(a, b)

/* ---- Event words: what a halted vCPU, or any thread that waits for flags, sleeps on ---- */

/* Bit 31 is reserved for "a thread waits". */
typedef struct EventWord {
    _Atomic uint32_t value;
} EventWord;

#define EVENT_WORD_WAITING (1u << 31)

/* RT_SAFE. Sets bits (never bit 31) and wakes the waiter if there is one: at most one syscall. */
void event_word_set(EventWord *w, uint32_t bits);
/* RT_SAFE. Reads and clears all bits. */
uint32_t event_word_take(EventWord *w);
/*
 * RT_SAFE, one waiter only. Sleeps until a bit is set or CLOCK_MONOTONIC reaches deadline_ns
 * (INT64_MAX: none). Clears nothing. Returns true if a bit is set.
 */
bool event_word_wait(EventWord *w, int64_t deadline_ns);

/* ---- Threads ---- */

/*
 * Every thread's stack: bounded, as under -realtime all of it is locked and, on EVENT and VCPU
 * threads, touched but for the reserve.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QEMU_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef QEMU_SANITIZED
#define QEMU_SANITIZED 1
#endif
#ifdef QEMU_SANITIZED
#define QEMU_THREAD_STACK_SIZE (4 * 1024 * 1024)
#else
#define QEMU_THREAD_STACK_SIZE (1024 * 1024)
#endif
#define QEMU_THREAD_STACK_RESERVE (64 * 1024)

/*
 * Creates a thread of class cls. EVENT and VCPU threads have policy and priority of the profile in
 * force, and their stack touched, before fn's first line; HELPER threads are SCHED_OTHER with
 * SCHED_RESET_ON_FORK, whatever the creator has. name (at most 15 bytes are shown by the kernel)
 * is always set, as tools look for "CPU 0/KVM". HELPER_ONLY. Returns false and sets errp if the
 * thread or its policy was refused; then no thread is left behind.
 */
bool qemu_thread_create(QemuThread *t, const char *name, ThreadClass cls, void *(*fn)(void *),
                        void *arg, Error **errp) QEMU_MUST_CHECK;
/* The same for the thread of vCPU number vcpu, class THREAD_VCPU: profiles choose by number. */
bool qemu_thread_create_vcpu(QemuThread *t, const char *name, unsigned vcpu, void *(*fn)(void *),
                             void *arg, Error **errp) QEMU_MUST_CHECK;
#ifndef _WIN32
/*
 * For a vCPU that is made while others run guest code: what its thread does first must take nothing
 * from them. It is a HELPER whose stack is touched, and may allocate and take its time, until its
 * creator has it become the thread of vCPU number vcpu, with policy, priority and affinity of the
 * profile in force. The creator sets them, so it never waits for a thread that others of its priority
 * keep from running. HELPER_ONLY. False: refused, errp is set and t is a HELPER still.
 */
bool qemu_thread_create_vcpu_later(QemuThread *t, const char *name, void *(*fn)(void *), void *arg,
                                   Error **errp) QEMU_MUST_CHECK;
bool qemu_thread_become_vcpu(QemuThread *t, unsigned vcpu, Error **errp) QEMU_MUST_CHECK;
/* HELPER_ONLY. The way back, for a vCPU that goes: its thread may free now. */
void qemu_thread_become_helper(QemuThread *t);
#endif
void *qemu_thread_join(QemuThread *t);
/*
 * The calling thread (the process's first) becomes a thread of class cls, policy included. The
 * first thread's name as the kernel shows it is the process's, and stays.
 */
bool qemu_thread_adopt_self(QemuThread *t, const char *name, ThreadClass cls, Error **errp);
/* RT_SAFE. Class of the calling thread; threads a library made are THREAD_HELPER. */
ThreadClass qemu_thread_self_class(void);
/* RT_SAFE. Borrowed; "?" on threads a library made. */
const char *qemu_thread_self_name(void);
bool qemu_thread_is_self(const QemuThread *t);
/* RT_SAFE. Sends sig to the thread (tgkill). */
void qemu_thread_kick(QemuThread *t, int sig);
/*
 * Calls fn for every live thread made by or adopted through this interface. HELPER_ONLY. fn runs
 * under the registry's lock: it makes and ends no thread.
 */
void qemu_thread_foreach(void (*fn)(const QemuThread *t, void *opaque), void *opaque);

/* ---- Realtime parameters (realtime.md, "The shape that is fixed") ---- */

#define QEMU_VCPUS_MAX 256

/* A profile of -realtime: what each thread is to have while the profile is in force. */
typedef struct QemuRealtimeProfile {
    const char *name;  /* "default" for -realtime without id */
    bool realtime;     /* false: policy=other, every thread is SCHED_OTHER */
    int policy;        /* SCHED_RR or SCHED_FIFO */
    int max_priority;  /* EVENT threads; VCPU threads get one less */
    QemuCpuSet vcpus;  /* those that are realtime (policy=other: that are pinned) */
    bool affinity;     /* some profile of the command line pins: each sets affinity */
    bool event_pinned; /* EVENT threads run on event_affinity */
    QemuCpuSet event_affinity;
    int16_t vcpu_cpu[QEMU_VCPUS_MAX]; /* host CPU of each vCPU; -1: not pinned */
    uint32_t latency_warn_us;         /* 0: none */
    bool cpu_dma_latency;             /* hold /dev/cpu_dma_latency at 0 */
} QemuRealtimeProfile;

/*
 * Start-up, before the first thread: called by os_prioritize() once, by one of the two. policy is
 * SCHED_RR or SCHED_FIFO; max_priority 2..max. p is borrowed for good.
 */
void qemu_init_realtime(int policy, int max_priority);
void qemu_init_realtime_profile(const QemuRealtimeProfile *p);
/* RT_SAFE; asked by threaded subsystems when they make a thread. */
bool qemu_realtime_is_enabled(void);
void qemu_realtime_get_parameters(int *policy, int *max_priority);
/* RT_SAFE. The profile in force; NULL without one. */
const QemuRealtimeProfile *qemu_realtime_profile(void);

#ifndef _WIN32
/*
 * RT_SAFE. Holds back creation, end and switching of threads, by a priority-inheriting lock, so
 * that a switch of profiles sees every thread and a new thread sees all of a profile.
 */
void qemu_threads_hold(void);
void qemu_threads_release(void);
/* RT_SAFE, between the two above. NULL: the first, or none more. */
QemuThread *qemu_threads_next(const QemuThread *t);
/* RT_SAFE, threads held. Puts p in force for threads yet to be made; changes none that lives. */
void qemu_realtime_set_profile(const QemuRealtimeProfile *p);
/* RT_SAFE. What t is to have under p; false: nothing is asked, what it has stays. */
bool qemu_thread_wanted(const QemuThread *t, const QemuRealtimeProfile *p, QemuSched *s);
/* RT_SAFE. What the kernel says now of a thread of this process. Returns 0 or an errno. */
int qemu_thread_get_sched(pid_t tid, QemuSched *s);
/* RT_SAFE. Policy and priority, always with SCHED_RESET_ON_FORK; affinity. 0 or an errno. */
int qemu_thread_set_policy(pid_t tid, int policy, int priority);
int qemu_thread_set_affinity(pid_t tid, const QemuCpuSet *cpus);
/*
 * For a child process made to find out what the host permits (util/host-facts.c): sets the calling
 * process's policy, or with policy -1 the one it has already. Returns 0 or an errno.
 */
int qemu_thread_try_policy(int policy, int priority);
#endif

/* ---- rtcheck build ---- */
#ifdef CONFIG_RTCHECK
/* From now on an allocation on an EVENT or VCPU thread is counted, and aborts if trap is true. */
void rtcheck_arm(bool trap);
/* Allocations since then that were wrong, and those inside rtcheck_allow_begin/end. Any thread. */
uint64_t rtcheck_alloc_count(void);
uint64_t rtcheck_allowed_count(void);
/*
 * Start-up, when the guest may run next: arms as QEMU_RTCHECK of the environment says ("trap", which
 * is the default, "count" or "off"); any other value ends the program. And its end, before things
 * are freed.
 */
void rtcheck_start(void);
void rtcheck_stop(void);
/* "trap", "count" or "off", as it is now. Any thread. */
const char *rtcheck_mode(void);
/* Marks a bounded section of an EVENT/VCPU thread where allocation is meant (map edits, reset). */
void rtcheck_allow_begin(void);
void rtcheck_allow_end(void);
/* Put first into a HELPER_ONLY function: once armed, a call on the wrong thread counts and traps. */
void rtcheck_helper_only(const char *function);
#else
static inline void rtcheck_start(void) {}
static inline void rtcheck_stop(void) {}
static inline void rtcheck_allow_begin(void) {}
static inline void rtcheck_allow_end(void) {}
static inline void rtcheck_helper_only(const char *function) {}
#endif

#endif
