/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the histograms cost: nanoseconds for each thing recorded, the best of several rounds (the
 * machine may be busy). One "name: ns" a line; latency.py sets them beside what an exit takes.
 */
#include <stdio.h>
#include "realtime/latency.h"

#define ROUNDS 60
#define CALLS  20000

static void exit_pair(void)
{
    latency_exit(LATENCY_EXIT_IO);
    latency_entry();
}

/*
 * Sampling takes about one cycle, so it is measured in what it is part of: work as long as an access
 * (some 25 ns that depend on each other), of which the processor does other things beside.
 */
static uint64_t chain = 1;

static void access_work(void)
{
    uint64_t v = chain;

    for (unsigned n = 0; n < 24; n++) {
        __asm__ volatile("imul $3, %0, %0" : "+r"(v) : : "cc");
    }
    chain = v;
}

static void sampled_access(void)
{
    uint64_t start = latency_sample_begin();

    access_work();
    latency_sample_end(LATENCY_EXIT_MMIO, start);
}

static QemuMutex mutex;

static void lock_by_api(void)
{
    qemu_mutex_lock(&mutex);
    qemu_mutex_unlock(&mutex);
}

static void lock_plain(void)
{
    pthread_mutex_lock(&mutex.m);
    pthread_mutex_unlock(&mutex.m);
}

static void nothing(void)
{
    __asm__ volatile("" ::: "memory");
}

static double best_ns(void (*fn)(void))
{
    double best = 1e9;

    for (unsigned r = 0; r < ROUNDS; r++) {
        uint64_t start = latency_ticks();
        for (unsigned i = 0; i < CALLS; i++) {
            fn();
            __asm__ volatile("" ::: "memory");
        }
        double ns = (double)latency_ticks_to_ns(latency_ticks() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    return best;
}

int main(void)
{
    latency_init();
    latency_thread_register(0);
    if (!latency_self) {
        return 1;
    }
    qemu_mutex_init(&mutex, LOCK_RANK_DEVICE, "cost");
    double call = best_ns(nothing);
    printf("exit: %.2f\n", best_ns(exit_pair) - call);
    printf("sampled: %.2f\n", best_ns(sampled_access) - best_ns(access_work));
    printf("lock: %.2f\n", best_ns(lock_by_api) - call);
    printf("lock-plain: %.2f\n", best_ns(lock_plain) - call);
    return 0;
}
