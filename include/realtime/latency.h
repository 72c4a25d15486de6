/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Latency seen from inside: each EVENT and VCPU thread has histograms (realtime/histogram.h), always
 * on, of how long it was away from its work and why. Recording is RT_SAFE: no lock, no allocation,
 * no system call but for the clock where the TSC cannot be used. docs/realtime.md, "Latency".
 */
#ifndef REALTIME_LATENCY_H
#define REALTIME_LATENCY_H

#include <time.h>
#include "qemu/thread.h"
#include "realtime/histogram.h"

/*
 * What is measured. EXIT_*: from leaving guest code until the vCPU enters it again, by what it left
 * for; sleep in HLT and pauses do not count: their clock begins at the wake-up.
 */
typedef enum LatencyKind {
    LATENCY_EXIT_IO,         /* a port */
    LATENCY_EXIT_MMIO,       /* memory of a device */
    LATENCY_EXIT_HALT,       /* HLT: from wake-up to entry */
    LATENCY_EXIT_REQUEST,    /* a kick, a signal, an interrupt to be taken */
    LATENCY_EXIT_IRQ_WINDOW, /* KVM: the guest can take an interrupt now; end of one */
    LATENCY_EXIT_OTHER,
    LATENCY_EXIT_COUNT,
    LATENCY_TIMER = LATENCY_EXIT_COUNT, /* lateness of timers of an event loop */
    LATENCY_TIMER_LOCAL, /* lateness of a vCPU's own host timer (local APIC) */
    LATENCY_LOOP,        /* an event loop's iteration, from wake-up until it sleeps again */
    LATENCY_LOCK,        /* first of the lock ranks: time waited for a mutex, if it was not free */
} LatencyKind;

#define R(name, num, what) LATENCY_RANK_##name,
enum { LOCK_RANK_TABLE(R) LATENCY_RANKS };
#undef R
#define LATENCY_KINDS (LATENCY_LOCK + LATENCY_RANKS)

typedef struct ThreadLatency {
    /* The owner's alone. Times are in ticks of latency_ticks(). */
    uint64_t exit_start;  /* 0: in guest code */
    uint32_t exit_kind;
    uint32_t sample_left; /* accesses until the next that is timed */
    atomic_bool sampled;  /* IO and MMIO are samples */
    uint64_t lock_wait_ns; /* longest wait for a lock since that began, and for whom */
    int lock_holder;
    /* Noticed in a signal handler, told by the next latency_entry(). */
    _Atomic uint64_t late_ns;

    Histogram hist[LATENCY_KINDS];

    /* Set at registration, tid last. */
    _Atomic int tid; /* 0: not in use */
    char name[16];
    ThreadClass cls;
    int cpu_index; /* -1: no vCPU */
    HistogramView *base; /* private to queries: what was before the last reset; NULL: none */
} ThreadLatency;

/* The calling thread's; NULL on threads that are not measured. */
extern __thread ThreadLatency *latency_self;

/* ---- Clock ---- */

extern bool latency_uses_tsc;
extern uint64_t latency_tick_mult; /* ns per tick, times 2^32 */
extern _Atomic uint64_t latency_warn_ticks; /* UINT64_MAX: no bound */

/* RT_SAFE. The TSC where the host itself trusts it, else CLOCK_MONOTONIC in ns. Never 0. */
static inline uint64_t latency_ticks(void)
{
#ifdef __x86_64__
    if (likely(latency_uses_tsc)) {
        return __builtin_ia32_rdtsc();
    }
#endif
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static inline uint64_t latency_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * latency_tick_mult >> 32);
}

/* ---- Recording; RT_SAFE, the calling thread's own histograms ---- */

/* A duration beyond the bound: an event, if none was sent a moment ago. */
void latency_warn(ThreadLatency *l, unsigned kind, uint64_t ns);

static inline void latency_record_ticks(ThreadLatency *l, unsigned kind, uint64_t start)
{
    uint64_t now = latency_ticks(), ticks = now > start ? now - start : 0;
    uint64_t ns = latency_ticks_to_ns(ticks);

    histogram_record(&l->hist[kind], ns);
    if (unlikely(ticks >= atomic_load_explicit(&latency_warn_ticks, memory_order_relaxed))) {
        latency_warn(l, kind, ns);
    }
}

/* The vCPU left guest code. Only the first of several calls before latency_entry() sets the time. */
static inline void latency_exit(LatencyKind kind)
{
    ThreadLatency *l = latency_self;

    if (likely(l)) {
        if (!l->exit_start) {
            l->exit_start = latency_ticks();
            l->lock_wait_ns = 0;
        }
        l->exit_kind = kind;
    }
}

/* The same, but a reason given before stays. */
static inline void latency_exit_first(LatencyKind kind)
{
    ThreadLatency *l = latency_self;

    if (l && !l->exit_start) {
        latency_exit(kind);
    }
}

/* It slept or was parked, and goes on now. */
static inline void latency_wake(void)
{
    ThreadLatency *l = latency_self;

    if (l && l->exit_start) {
        l->exit_start = latency_ticks();
        l->lock_wait_ns = 0;
    }
}

void latency_tell_late(ThreadLatency *l);

/* It is about to enter guest code. */
static inline void latency_entry(void)
{
    ThreadLatency *l = latency_self;

    if (l && l->exit_start) {
        latency_record_ticks(l, l->exit_kind, l->exit_start);
        l->exit_start = 0;
        if (unlikely(atomic_load_explicit(&l->late_ns, memory_order_relaxed))) {
            latency_tell_late(l);
        }
    }
}

/*
 * Accesses of translated code to devices, which are too quick to look at the clock twice for each:
 * one of LATENCY_SAMPLE is timed; all of them while there is a bound.
 */
#define LATENCY_SAMPLE 512
extern _Atomic uint32_t latency_sample_interval;

static inline uint64_t latency_sample_begin(void)
{
    ThreadLatency *l = latency_self;

    if (likely(!l || --l->sample_left)) {
        return 0;
    }
    l->sample_left = atomic_load_explicit(&latency_sample_interval, memory_order_relaxed);
    l->lock_wait_ns = 0;
    return latency_ticks();
}

static inline void latency_sample_end(LatencyKind kind, uint64_t start)
{
    if (unlikely(start)) {
        atomic_store_explicit(&latency_self->sampled, true, memory_order_relaxed);
        latency_record_ticks(latency_self, kind, start);
    }
}

/* A timer runs that was due late_ns ago; negative counts as 0. Holding no lock. */
void latency_timer(int64_t late_ns);
/* The vCPU's own timer; also in a signal handler. */
void latency_timer_local(int64_t late_ns);

/* An event loop woke up; 0 on threads that are not measured. */
static inline uint64_t latency_loop_begin(void)
{
    ThreadLatency *l = latency_self;

    if (!l) {
        return 0;
    }
    l->lock_wait_ns = 0;
    return latency_ticks();
}
static inline void latency_loop_end(uint64_t start)
{
    if (start && latency_self) {
        latency_record_ticks(latency_self, LATENCY_LOOP, start);
    }
}

/* ---- Set-up; HELPER_ONLY or start-up ---- */

/* Chooses and measures the clock (3 ms). Before threads are made; again does nothing. */
void latency_init(void);

/* A duration that reached the bound. */
typedef struct LatencyReport {
    const ThreadLatency *thread;
    unsigned kind;
    uint64_t ns;
    int holder; /* thread that held the lock it waited for most of the time; 0: none, or unknown */
    const char *holder_name;
    uint32_t missed; /* reports left out since the last */
} LatencyReport;
/*
 * fn, which is RT_SAFE and may take a lock of rank LEAF, is called at most ten times a second, on
 * the thread that met the bound. NULL: nobody is told.
 */
void latency_set_reporter(void (*fn)(const LatencyReport *r));
/* Has events sent: REALTIME_LATENCY. In latency-qmp.c. */
void latency_report_by_event(void);
/*
 * The calling thread is measured from now on, under its qemu_thread_self_name(). Allocates: before
 * the guest runs. cpu_index: -1 if it runs no vCPU. Again does nothing.
 */
void latency_thread_register(int cpu_index);
void latency_thread_unregister(void);
/* From now on a duration of us microseconds or more is told by event REALTIME_LATENCY; 0: none. */
void latency_set_bound(uint32_t us);
uint32_t latency_bound_us(void);

/* ---- Reading; HELPER_ONLY, one thread (the control thread) ---- */

/* "io", "lock", ...; and of a lock its rank's name. RT_SAFE. */
const char *latency_kind_group(unsigned kind);
const char *latency_kind_name(unsigned kind);
/* Calls fn for each measured thread, holding a lock of rank LEAF. */
void latency_foreach(void (*fn)(ThreadLatency *l, void *opaque), void *opaque);
/* Since the last reset. */
void latency_view(const ThreadLatency *l, unsigned kind, HistogramView *v);
void latency_reset(void);

#endif
