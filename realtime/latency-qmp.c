/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP query-realtime-latency and realtime-latency-reset. Control thread. */
#include <glib.h>
#include <string.h>
#include "qapi/qapi.h"
#include "realtime/latency.h"

typedef struct Query {
    const char *thread; /* NULL: all */
    bool buckets;
    QapiRealtimeLatencyThreadArray *out;
    HistogramView view;
} Query;

static void add_buckets(QapiRealtimeLatencyHistogram *h, const HistogramView *v)
{
    h->has_buckets = true;
    h->buckets = g_new0(QapiRealtimeLatencyBucketArray, 1);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (v->bucket[i]) {
            QapiRealtimeLatencyBucket *b = g_new0(QapiRealtimeLatencyBucket, 1);

            b->low = (int64_t)histogram_low(i);
            b->high = (int64_t)MIN(histogram_high(i), (uint64_t)INT64_MAX);
            b->count = (int64_t)v->bucket[i];
            qapi_realtime_latency_bucket_array_add(h->buckets, b);
        }
    }
}

static QapiRealtimeLatencyHistogram *histogram_of(const ThreadLatency *l, unsigned kind,
                                                  const HistogramView *v)
{
    QapiRealtimeLatencyHistogram *h = g_new0(QapiRealtimeLatencyHistogram, 1);
    bool sampled = (kind == LATENCY_EXIT_IO || kind == LATENCY_EXIT_MMIO) && atomic_load(&l->sampled);

    h->group = g_strdup(latency_kind_group(kind));
    h->name = g_strdup(latency_kind_name(kind));
    h->count = (int64_t)v->count;
    h->weight = sampled ? atomic_load(&latency_sample_interval) : 1;
    h->mean = (int64_t)(v->sum / v->count);
    h->p50 = (int64_t)histogram_percentile(v, 50000);
    h->p90 = (int64_t)histogram_percentile(v, 90000);
    h->p99 = (int64_t)histogram_percentile(v, 99000);
    h->p99_9 = (int64_t)histogram_percentile(v, 99900);
    h->p99_99 = (int64_t)histogram_percentile(v, 99990);
    h->max = (int64_t)v->max;
    return h;
}

static void add_thread(ThreadLatency *l, void *opaque)
{
    Query *q = opaque;
    QapiRealtimeLatencyThread *t;

    if (q->thread && strcmp(q->thread, l->name) != 0) {
        return;
    }
    t = g_new0(QapiRealtimeLatencyThread, 1);
    t->name = g_strdup(l->name);
    t->thread_id = atomic_load(&l->tid);
    t->has_cpu_index = l->cpu_index >= 0;
    t->cpu_index = l->cpu_index;
    t->histograms = g_new0(QapiRealtimeLatencyHistogramArray, 1);
    for (unsigned k = 0; k < LATENCY_KINDS; k++) {
        latency_view(l, k, &q->view);
        if (q->view.count) {
            QapiRealtimeLatencyHistogram *h = histogram_of(l, k, &q->view);

            if (q->buckets) {
                add_buckets(h, &q->view);
            }
            qapi_realtime_latency_histogram_array_add(t->histograms, h);
        }
    }
    qapi_realtime_latency_thread_array_add(q->out, t);
}

QapiRealtimeLatencyInfo *qmp_query_realtime_latency(bool has_thread, const char *thread,
                                                    bool has_buckets, bool buckets, Error **errp)
{
    QapiRealtimeLatencyInfo *info = g_new0(QapiRealtimeLatencyInfo, 1);
    Query q = { .thread = has_thread ? thread : NULL, .buckets = has_buckets && buckets };

    info->clock = g_strdup(latency_uses_tsc ? "tsc" : "monotonic");
    info->has_warn_us = latency_bound_us() != 0;
    info->warn_us = latency_bound_us();
    info->threads = q.out = g_new0(QapiRealtimeLatencyThreadArray, 1);
    latency_foreach(add_thread, &q);
    if (q.thread && !q.out->len) {
        error_setg(errp, "no measured thread is called '%s'", q.thread);
    }
    return info;
}

void qmp_realtime_latency_reset(Error **errp)
{
    latency_reset();
}

/* RT_SAFE. */
static void send_event(const LatencyReport *r)
{
    qapi_event_send_realtime_latency(
        r->thread->name, atomic_load(&r->thread->tid), latency_kind_group(r->kind),
        latency_kind_name(r->kind), (int64_t)r->ns, latency_bound_us(), r->holder != 0,
        r->holder_name, r->holder != 0, r->holder, r->missed);
}

void latency_report_by_event(void)
{
    latency_set_reporter(send_event);
}
