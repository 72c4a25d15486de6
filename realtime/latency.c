/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of each thread: the clock, registration, the bound and its event. */
#include "realtime/latency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All vCPUs there can be, and as many EVENT threads again. */
#define THREADS_MAX 512
/* At most one event in this time; the others are counted. */
#define WARN_INTERVAL_NS (100 * INT64_C(1000000))

__thread ThreadLatency *latency_self;
bool latency_uses_tsc;
uint64_t latency_tick_mult = UINT64_C(1) << 32;
_Atomic uint64_t latency_warn_ticks = UINT64_MAX;
_Atomic uint32_t latency_sample_interval = LATENCY_SAMPLE;

/* Guards who has which entry, and the entries' base; RT threads read names without it. */
static QemuMutex threads_lock;
/* Filled in order, never emptied: the entry of a thread that ended serves the next. */
static _Atomic(ThreadLatency *) threads[THREADS_MAX];
static _Atomic uint32_t bound_us;
static _Atomic int64_t warn_last_ns;
static _Atomic uint32_t warn_missed;
static void (*_Atomic reporter)(const LatencyReport *r);

/* ---- Names ---- */

static const char *const kind_names[LATENCY_LOCK] = {
    [LATENCY_EXIT_IO] = "io",
    [LATENCY_EXIT_MMIO] = "mmio",
    [LATENCY_EXIT_HALT] = "halt",
    [LATENCY_EXIT_REQUEST] = "request",
    [LATENCY_EXIT_IRQ_WINDOW] = "irq-window",
    [LATENCY_EXIT_OTHER] = "other",
    [LATENCY_TIMER] = "loop",
    [LATENCY_TIMER_LOCAL] = "local",
    [LATENCY_LOOP] = "iteration",
};

#define R(name, num, what) #name,
static const char *const rank_names[LATENCY_RANKS] = { LOCK_RANK_TABLE(R) };
#undef R
#define R(name, num, what) [num] = LATENCY_RANK_##name,
static const uint8_t rank_index[256] = { LOCK_RANK_TABLE(R) };
#undef R

const char *latency_kind_group(unsigned kind)
{
    return kind < LATENCY_EXIT_COUNT     ? "exit"
           : kind <= LATENCY_TIMER_LOCAL ? "timer"
           : kind == LATENCY_LOOP        ? "loop"
                                         : "lock";
}

const char *latency_kind_name(unsigned kind)
{
    return kind < LATENCY_LOCK ? kind_names[kind] : rank_names[kind - LATENCY_LOCK];
}

/* ---- Clock ---- */

static uint64_t monotonic_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

#ifdef __x86_64__
static bool file_has(const char *path, const char *word)
{
    char buf[4096];
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

    if (f) {
        fclose(f);
    }
    buf[n] = '\0';
    return strstr(buf, word) != NULL;
}

/*
 * The kernel uses the TSC as its own clock source only where it ticks at one rate in every state and
 * is the same on all CPUs; the flags say so of CPUs (the first is in the first 4 KiB).
 */
static bool tsc_is_trusted(void)
{
    return file_has("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc") &&
           file_has("/proc/cpuinfo", "constant_tsc") && file_has("/proc/cpuinfo", "nonstop_tsc");
}
#else
static bool tsc_is_trusted(void)
{
    return false;
}
#endif

void latency_init(void)
{
    static bool done;
    const struct timespec pause = { 0, 3000000 };

    if (done) {
        return;
    }
    done = true;
    if (!tsc_is_trusted()) {
        return;
    }
    latency_uses_tsc = true;
    uint64_t tsc0 = latency_ticks(), ns0 = monotonic_ns();
    nanosleep(&pause, NULL);
    uint64_t ticks = latency_ticks() - tsc0, ns = monotonic_ns() - ns0;
    if (!ticks || !ns || ticks / ns > 100 || ns / ticks > 100) {
        latency_uses_tsc = false; /* it is nothing one can measure with */
        return;
    }
    latency_tick_mult = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}

/* ---- Threads ---- */

/* An entry nobody uses: one whose thread ended, or a new one. */
static ThreadLatency *claim_locked(void)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        ThreadLatency *l = atomic_load(&threads[i]);
        if (!l) {
            l = calloc(1, sizeof(*l));
            atomic_store(&threads[i], l);
            return l;
        }
        if (!atomic_load(&l->tid)) {
            return l;
        }
    }
    return NULL;
}

/* What the entry's former thread left behind. */
static void clear(ThreadLatency *l)
{
    HistogramView unused;

    for (unsigned k = 0; k < LATENCY_KINDS; k++) {
        histogram_reset(&l->hist[k], l->base ? &l->base[k] : &unused);
    }
    if (!l->base) {
        memset(l->hist, 0, sizeof(l->hist));
    }
    l->exit_start = l->lock_wait_ns = 0;
    l->sample_left = atomic_load(&latency_sample_interval);
    atomic_store(&l->sampled, false);
    atomic_store(&l->late_ns, 0);
}

void latency_thread_register(int cpu_index)
{
    if (latency_self) {
        return;
    }
    rtcheck_allow_begin();
    qemu_mutex_lock(&threads_lock);
    ThreadLatency *l = claim_locked();
    if (l) { /* else it runs as well without */
        clear(l);
        snprintf(l->name, sizeof(l->name), "%s", qemu_thread_self_name());
        l->cls = cpu_index >= 0 ? THREAD_VCPU : qemu_thread_self_class(); /* it is about to become one */
        l->cpu_index = cpu_index;
        atomic_store(&l->tid, (int)syscall(SYS_gettid));
        latency_self = l;
    }
    qemu_mutex_unlock(&threads_lock);
    rtcheck_allow_end();
}

void latency_thread_unregister(void)
{
    ThreadLatency *l = latency_self;

    if (l) {
        latency_self = NULL;
        QEMU_LOCK_GUARD(&threads_lock);
        atomic_store(&l->tid, 0);
    }
}

void latency_foreach(void (*fn)(ThreadLatency *l, void *opaque), void *opaque)
{
    QEMU_LOCK_GUARD(&threads_lock);
    for (unsigned i = 0; i < THREADS_MAX && atomic_load(&threads[i]); i++) {
        if (atomic_load(&threads[i]->tid)) {
            fn(threads[i], opaque);
        }
    }
}

/* RT_SAFE. */
static const char *thread_name(int tid)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        const ThreadLatency *l = atomic_load(&threads[i]);
        if (!l) {
            break;
        }
        if (atomic_load(&l->tid) == tid) {
            return l->name;
        }
    }
    return "helper"; /* helper threads are not measured */
}

/* ---- Recording ---- */

static bool beyond_bound(uint64_t ns)
{
    uint32_t us = atomic_load_explicit(&bound_us, memory_order_relaxed);
    return us && ns >= (uint64_t)us * 1000;
}

void latency_timer(int64_t late_ns)
{
    ThreadLatency *l = latency_self;
    uint64_t ns = (uint64_t)MAX(late_ns, 0);

    if (!l) {
        return;
    }
    histogram_record(&l->hist[LATENCY_TIMER], ns);
    if (unlikely(beyond_bound(ns))) {
        latency_warn(l, LATENCY_TIMER, ns);
    }
}

void latency_timer_local(int64_t late_ns)
{
    ThreadLatency *l = latency_self;
    uint64_t ns = (uint64_t)MAX(late_ns, 0);

    if (!l) {
        return;
    }
    histogram_record(&l->hist[LATENCY_TIMER_LOCAL], ns);
    if (unlikely(beyond_bound(ns))) {
        atomic_store_explicit(&l->late_ns, ns, memory_order_relaxed);
    }
}

void latency_tell_late(ThreadLatency *l)
{
    uint64_t ns = atomic_exchange_explicit(&l->late_ns, 0, memory_order_relaxed);

    if (ns) {
        latency_warn(l, LATENCY_TIMER_LOCAL, ns);
    }
}

static void warn(const ThreadLatency *l, unsigned kind, uint64_t ns, int holder);

/* The thread got m, after others held it. */
static void lock_contended(const QemuMutex *m, int holder, int64_t waited_ns)
{
    ThreadLatency *l = latency_self;
    uint64_t ns = (uint64_t)MAX(waited_ns, 0);

    if (!l) {
        return;
    }
    unsigned kind = LATENCY_LOCK + rank_index[m->rank];
    histogram_record(&l->hist[kind], ns);
    if (ns >= l->lock_wait_ns) {
        l->lock_wait_ns = ns;
        l->lock_holder = holder;
    }
    /* Sending an event takes a lock of the last rank. */
    if (unlikely(beyond_bound(ns)) && m->rank < LOCK_RANK_LEAF) {
        warn(l, kind, ns, holder);
    }
}

static void __attribute__((constructor)) latency_connect(void)
{
    qemu_mutex_init(&threads_lock, LOCK_RANK_LEAF, "latency threads");
    qemu_mutex_contended = lock_contended;
}

/* ---- The bound ---- */

void latency_set_bound(uint32_t us)
{
    uint64_t ns = (uint64_t)us * 1000;

    atomic_store(&latency_warn_ticks,
                 us ? (uint64_t)(((unsigned __int128)ns << 32) / latency_tick_mult) : UINT64_MAX);
    atomic_store(&latency_sample_interval, us ? 1 : LATENCY_SAMPLE);
    atomic_store(&bound_us, us);
}

uint32_t latency_bound_us(void)
{
    return atomic_load(&bound_us);
}

/* True once in an interval. */
static bool warn_permitted(void)
{
    int64_t now = (int64_t)monotonic_ns(), last = atomic_load(&warn_last_ns);

    if ((last && now - last < WARN_INTERVAL_NS) ||
        !atomic_compare_exchange_strong(&warn_last_ns, &last, now)) {
        atomic_fetch_add(&warn_missed, 1);
        return false;
    }
    return true;
}

static void warn(const ThreadLatency *l, unsigned kind, uint64_t ns, int holder)
{
    void (*fn)(const LatencyReport *r) = atomic_load(&reporter);

    if (fn && warn_permitted()) {
        const LatencyReport r = { .thread = l,
                                  .kind = kind,
                                  .ns = ns,
                                  .holder = holder,
                                  .holder_name = holder ? thread_name(holder) : "",
                                  .missed = atomic_exchange(&warn_missed, 0) };
        fn(&r);
    }
}

void latency_warn(ThreadLatency *l, unsigned kind, uint64_t ns)
{
    /* Half of it or more was one wait for a lock: its holder is whom to ask. */
    bool timer = kind == LATENCY_TIMER || kind == LATENCY_TIMER_LOCAL;

    warn(l, kind, ns, !timer && l->lock_wait_ns >= ns / 2 ? l->lock_holder : 0);
}

void latency_set_reporter(void (*fn)(const LatencyReport *r))
{
    atomic_store(&reporter, fn);
}

/* ---- Reading ---- */

void latency_view(const ThreadLatency *l, unsigned kind, HistogramView *v)
{
    histogram_read(&l->hist[kind], v);
    if (l->base) {
        histogram_subtract(v, &l->base[kind]);
    }
}

static void reset_one(ThreadLatency *l, void *opaque)
{
    if (!l->base) {
        l->base = calloc(LATENCY_KINDS, sizeof(*l->base));
        if (!l->base) {
            return;
        }
    }
    for (unsigned k = 0; k < LATENCY_KINDS; k++) {
        histogram_reset(&l->hist[k], &l->base[k]);
    }
}

void latency_reset(void)
{
    latency_foreach(reset_one, NULL);
}
