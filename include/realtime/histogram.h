/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log-linear histograms of durations: 16 buckets an octave from 1 ns to 137 s, each so narrow that
 * its middle is within 3.2 % of every value in it. Of fixed size. One thread writes, without
 * atomic read-modify-write; any thread reads at any time.
 */
#ifndef REALTIME_HISTOGRAM_H
#define REALTIME_HISTOGRAM_H

#include <stdatomic.h>
#include "qemu/compiler.h"

#define HISTOGRAM_SUB_BITS 4
#define HISTOGRAM_SUB      (1u << HISTOGRAM_SUB_BITS)
/* All of octave 36, so that 100 s are in; values below 16 have buckets of their own. */
#define HISTOGRAM_OCTAVES  37
#define HISTOGRAM_MAX_NS   ((INT64_C(1) << HISTOGRAM_OCTAVES) - 1)
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_OCTAVES - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB)

typedef struct Histogram {
    _Atomic uint64_t sum; /* ns */
    _Atomic uint64_t max; /* ns, exact */
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
} Histogram;

static inline unsigned histogram_index(uint64_t ns)
{
    if (ns < HISTOGRAM_SUB) {
        return (unsigned)ns;
    }
    if (unlikely(ns >> HISTOGRAM_OCTAVES)) {
        return HISTOGRAM_BUCKETS - 1;
    }
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    unsigned shift = octave - HISTOGRAM_SUB_BITS;
    return (shift + 1) * HISTOGRAM_SUB + (unsigned)(ns >> shift & (HISTOGRAM_SUB - 1));
}

/* RT_SAFE, the one writer. Longer values than HISTOGRAM_MAX_NS count in the last bucket; max has them exactly. */
static inline void histogram_record(Histogram *h, uint64_t ns)
{
    _Atomic uint64_t *b = &h->bucket[histogram_index(ns)];

    atomic_store_explicit(b, atomic_load_explicit(b, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&h->sum, atomic_load_explicit(&h->sum, memory_order_relaxed) + ns,
                          memory_order_relaxed);
    if (unlikely(ns > atomic_load_explicit(&h->max, memory_order_relaxed))) {
        atomic_store_explicit(&h->max, ns, memory_order_relaxed);
    }
}

/* Smallest and largest value that bucket i counts, ns. i < HISTOGRAM_BUCKETS. */
uint64_t histogram_low(unsigned i);
uint64_t histogram_high(unsigned i);

/* What a histogram held at one moment. */
typedef struct HistogramView {
    uint64_t count, sum, max;
    uint64_t bucket[HISTOGRAM_BUCKETS];
} HistogramView;

/* RT_SAFE. Values recorded meanwhile are in it or not. */
void histogram_read(const Histogram *h, HistogramView *v);
/*
 * RT_SAFE, any thread: "from now on". base is filled, for histogram_subtract(); the maximum begins
 * anew. The writer is not stopped, and none of its values after this is lost.
 */
void histogram_reset(Histogram *h, HistogramView *base);
/* Takes what was before a reset away from v. */
void histogram_subtract(HistogramView *v, const HistogramView *base);
/* RT_SAFE. The value that per_100000 of 100 000 do not exceed (50000: the median, 99990: p99.99), to
 * the width of a bucket and never above max, ns; 0 if there are none. */
uint64_t histogram_percentile(const HistogramView *v, unsigned per_100000);

#endif
