/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading histograms of durations; writing is inline (realtime/histogram.h). */
#include "realtime/histogram.h"

uint64_t histogram_low(unsigned i)
{
    if (i < HISTOGRAM_SUB) {
        return i;
    }
    return (uint64_t)(HISTOGRAM_SUB + i % HISTOGRAM_SUB) << (i / HISTOGRAM_SUB - 1);
}

uint64_t histogram_high(unsigned i)
{
    return i + 1 < HISTOGRAM_BUCKETS ? histogram_low(i + 1) - 1 : UINT64_MAX;
}

void histogram_read(const Histogram *h, HistogramView *v)
{
    v->count = 0;
    v->sum = atomic_load_explicit(&h->sum, memory_order_relaxed);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        v->bucket[i] = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
        v->count += v->bucket[i];
    }
    v->max = atomic_load_explicit(&h->max, memory_order_relaxed);
}

void histogram_reset(Histogram *h, HistogramView *base)
{
    /* The writer only ever stores what it has just seen to be larger: a value of about now. */
    atomic_store_explicit(&h->max, 0, memory_order_relaxed);
    histogram_read(h, base);
}

void histogram_subtract(HistogramView *v, const HistogramView *base)
{
    v->count = 0;
    v->sum -= base->sum;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        v->bucket[i] -= base->bucket[i];
        v->count += v->bucket[i];
    }
    if (!v->count) {
        v->sum = v->max = 0;
    }
}

uint64_t histogram_percentile(const HistogramView *v, unsigned per_100000)
{
    /* The rank of that value, from 1 on, rounded up; no overflow below 1.8e14 values. */
    uint64_t rank = (v->count * per_100000 + 99999) / 100000, seen = 0;

    if (!v->count) {
        return 0;
    }
    rank = MAX(rank, 1);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += v->bucket[i];
        if (seen >= rank) {
            uint64_t low = histogram_low(i);
            uint64_t middle = i + 1 < HISTOGRAM_BUCKETS ? low + (histogram_high(i) - low) / 2 : low;
            return v->max ? MIN(middle, v->max) : middle;
        }
    }
    return v->max;
}
