/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP: info latency. */
#include <inttypes.h>
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

static void print_histogram(Monitor *mon, const QapiRealtimeLatencyHistogram *h)
{
    const int64_t v[] = { h->mean, h->p50, h->p90, h->p99, h->p99_9, h->p99_99, h->max };

    monitor_printf(mon, "  %-5s %-10s %12" PRId64, h->group, h->name, h->count * h->weight);
    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        monitor_printf(mon, " %10.3f", (double)v[i] / 1000);
    }
    monitor_printf(mon, "%s\n", h->weight > 1 ? "  (sampled)" : "");
}

void hmp_info_latency(Monitor *mon, const char *args)
{
    Error *err = NULL;
    QapiRealtimeLatencyInfo *info = qmp_query_realtime_latency(*args, args, false, false, &err);

    if (err) {
        monitor_printf(mon, "Error: %s\n", error_get_pretty(err));
        error_free(err);
    } else {
        monitor_printf(mon, "microseconds, clock: %s\n  %-16s %12s %10s %10s %10s %10s %10s %10s "
                       "%10s\n", info->clock, "", "count", "mean", "p50", "p90", "p99", "p99.9",
                       "p99.99", "max");
    }
    for (size_t i = 0; i < info->threads->len; i++) {
        const QapiRealtimeLatencyThread *t = info->threads->items[i];

        monitor_printf(mon, "%s (thread %" PRId64 ")\n", t->name, t->thread_id);
        for (size_t k = 0; k < t->histograms->len; k++) {
            print_histogram(mon, t->histograms->items[k]);
        }
    }
    qapi_free_realtime_latency_info(info);
}

void hmp_latency_reset(Monitor *mon, const char *args)
{
    qmp_realtime_latency_reset(NULL);
}
