/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What -realtime says, as what the host is judged for. */
#include <glib.h>
#include <sched.h>
#include <string.h>
#include "host-check-internal.h"
#include "realtime/options.h"

/* Adds the host CPUs that p pins threads to. */
static void add_cpus(const QemuRealtimeProfile *p, HostCpus *cpus)
{
    for (unsigned i = 0; i < ARRAY_SIZE(p->vcpu_cpu); i++) {
        if (p->vcpu_cpu[i] >= 0) {
            qemu_cpu_set_add(cpus, (unsigned)p->vcpu_cpu[i]);
        }
    }
    for (unsigned i = 0; p->event_pinned && i < QEMU_CPU_SET_MAX; i++) {
        if (qemu_cpu_set_has(&p->event_affinity, i)) {
            qemu_cpu_set_add(cpus, i);
        }
    }
}

/* The profile in which most vCPUs lack a host CPU counts; one in which they will hang before others. */
static void count_places(const RealtimeCpus *cpus, const QemuRealtimeProfile *p, HostCheckParams *params)
{
    unsigned vcpus, places = realtime_profile_places(cpus, p, &vcpus);
    bool fifo = p->policy == SCHED_FIFO, lacks = vcpus > places;
    bool had = params->vcpus > params->places;

    if (p->realtime && (!params->vcpus || lacks > had ||
                        (lacks && (fifo > params->fifo ||
                                   (fifo == params->fifo && vcpus - places > params->vcpus - params->places))))) {
        params->vcpus = vcpus;
        params->places = places;
        params->fifo = fifo;
    }
}

void realtime_host_check_configure_for(const RealtimeOptions *o, const RealtimeCpus *all, uint64_t bytes_needed)
{
    static char *cpus_text;
    const RealtimeConfig *cfg = &o->config;
    HostCheckParams p = { .max_priority = cfg->enabled ? cfg->max_priority : 0,
                          .mem_lock = cfg->mem_lock,
                          .bytes_needed = bytes_needed };
    HostCpus cpus = { { 0 } };

    for (unsigned i = 0; i < cfg->profile_count; i++) {
        add_cpus(&cfg->profiles[i], &cpus);
        count_places(all, &cfg->profiles[i], &p);
        p.holds_dma_latency |= cfg->profiles[i].cpu_dma_latency;
    }
    g_free(cpus_text);
    cpus_text = qemu_cpu_set_count(&cpus) ? hc_cpus_text(&cpus) : NULL;
    p.cpus = cpus_text;
    realtime_host_check_configure(&p);
}
