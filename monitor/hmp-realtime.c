/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP: what is realtime, and switching profiles. */
#include <inttypes.h>

#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

static void print_profile(Monitor *mon, const QapiRealtimeProfileInfo *p)
{
    monitor_printf(mon, "%c %s: policy=%s", p->active ? '*' : ' ', p->name,
                   qapi_realtime_policy_names[p->policy]);
    if (p->max_priority) {
        monitor_printf(mon, ", maxprio=%" PRId64, p->max_priority);
    }
    monitor_printf(mon, ", vcpus=%s", p->vcpus);
    if (p->has_vcpu_affinity) {
        monitor_printf(mon, ", vcpu-affinity=%s", p->vcpu_affinity);
    }
    if (p->has_event_affinity) {
        monitor_printf(mon, ", event-affinity=%s", p->event_affinity);
    }
    if (p->has_latency_warn_us) {
        monitor_printf(mon, ", latency-warn=%" PRId64, p->latency_warn_us);
    }
    monitor_puts(mon, "\n");
}

static void print_thread(Monitor *mon, const QapiRealtimeThreadInfo *t)
{
    monitor_printf(mon,
                   "%7" PRId64 " %-15s %-7s %-8s %3" PRId64 " %-9s %11.3f %10" PRId64 " %10" PRId64
                   " %8" PRId64 " %7" PRId64 "%s\n",
                   t->thread_id, t->name, qapi_realtime_thread_class_names[t->class],
                   qapi_realtime_policy_names[t->policy], t->priority, t->affinity,
                   (double)t->run_delay_ns / 1e6, t->voluntary_switches, t->involuntary_switches,
                   t->minor_faults, t->major_faults, t->changed ? "  changed from outside" : "");
}

static void print_throttling(Monitor *mon, const QapiRealtimeThrottling *t)
{
    if (t->runtime_us < 0) {
        monitor_puts(mon, "throttling by the host: off\n");
        return;
    }
    monitor_printf(mon,
                   "throttling by the host: %" PRId64 " of each %" PRId64 " us, seen %" PRId64
                   " times\n",
                   t->runtime_us, t->period_us, t->seen);
}

void hmp_info_realtime(Monitor *mon, const char *args)
{
    QapiRealtimeInfo *r = qmp_query_realtime(NULL);

    monitor_printf(mon, "realtime: %s", r->enabled ? "on" : "off");
    if (r->has_profile) {
        monitor_printf(mon, ", profile '%s'", r->profile);
    }
    monitor_printf(mon, "\nmemory: %" PRIu64 " bytes locked (mlock=%s)\n", r->locked_bytes,
                   qapi_realtime_mem_lock_names[r->memory_lock]);
    monitor_printf(mon, "/dev/cpu_dma_latency: %s\n", r->cpu_dma_latency ? "held at 0" : "not held");
    print_throttling(mon, r->throttling);
    if (r->profiles->len) {
        monitor_puts(mon, "profiles:\n");
    }
    for (size_t i = 0; i < r->profiles->len; i++) {
        print_profile(mon, r->profiles->items[i]);
    }
    monitor_printf(mon, "%7s %-15s %-7s %-8s %3s %-9s %11s %10s %10s %8s %7s\n", "thread", "name",
                   "class", "policy", "pri", "cpus", "delay ms", "voluntary", "involunt.", "minflt",
                   "majflt");
    for (size_t i = 0; i < r->threads->len; i++) {
        print_thread(mon, r->threads->items[i]);
    }
    qapi_free_realtime_info(r);
}

void hmp_realtime_profile(Monitor *mon, const char *args)
{
    Error *err = NULL;

    qmp_realtime_set_profile(args, &err);
    if (err) {
        monitor_printf(mon, "Error: %s\n", error_get_pretty(err));
        error_free(err);
    }
}
