/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -realtime from the options to the process, and what is told when vCPUs are added and removed. */
#include "realtime-setup.h"

#include <stdio.h>
#include <string.h>
#include "accel-choose.h"
#include "accel/accel.h"
#include "cpus-plug.h"
#include "event/event.h"
#include "hw/machine.h"
#include "qemu/config.h"
#include "qemu/host-limits.h"
#include "qemu/option.h"
#include "qemu/os.h"
#include "realtime/host-check.h"
#include "realtime/latency.h"
#include "realtime/options.h"
#include "realtime/profile.h"

/* What the process maps besides guest RAM and vCPUs: ROM, stacks, libraries. */
#define HEADROOM (64 * MiB)

static RealtimeOptions options;
static RealtimeCpus cpus;
static bool enable_kvm;

static void warn_line(void *opaque, const char *text)
{
    warn_report("%s", text);
}

/* ---- Memory ---- */

static const char *cpu_model;
static uint64_t vcpu_bytes[MAX_CPUS]; /* each takes what it was made with, however many come later */
static uint64_t mapped_bytes;         /* when the options were parsed */

static uint64_t bytes_of_one(unsigned count)
{
    return accel_vcpu_bytes(enable_kvm, count, cpu_model);
}

/* What the process maps for those that are there, and besides. */
static uint64_t memory_needed(void)
{
    uint64_t sum = machine_config.ram_size + HEADROOM;

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        sum += vcpu_bytes[i];
    }
    return sum;
}

typedef struct Planned {
    unsigned count;
    uint64_t bytes;
} Planned;

static bool plan_device(QemuOpts *opts, void *opaque, Error **errp)
{
    Planned *p = opaque;

    if (cpu_device_type_known(qemu_opt_get(opts, "driver"))) {
        p->bytes += cpu_model ? bytes_of_one(++p->count) : 0;
    }
    return true;
}

/* The same at the start, with those that -device will add. */
static uint64_t memory_to_come(void)
{
    Planned p = { .count = machine_config.smp.cpus };

    qemu_opts_foreach(qemu_find_opts("device", &error_abort), plan_device, &p, &error_abort);
    return memory_needed() + p.bytes;
}

/* ---- vCPUs come and go ---- */

static void vcpu_changed(unsigned index, bool there)
{
    unsigned before = options.config.vcpus;

    if (there) {
        qemu_cpu_set_add(&cpus.present, index);
        vcpu_bytes[index] = bytes_of_one(qemu_cpu_set_count(&cpus.present));
    } else {
        qemu_cpu_set_remove(&cpus.present, index);
        vcpu_bytes[index] = 0;
    }
    realtime_options_count(&cpus, &options);
    realtime_host_check_configure_for(&options, &cpus, mapped_bytes + memory_needed());
    if (there) {
        if (options.config.vcpus > before) {
            host_limits_warn_covered(qemu_cpu_set_count(&cpus.online), &options.config, warn_line, NULL);
        }
        realtime_options_warn_added(&cpus, &options, index, warn_line, NULL);
    }
}

/* ---- Start-up ---- */

void realtime_setup_parse(bool kvm, const char *model)
{
    enable_kvm = kvm;
    cpu_model = model;
    mapped_bytes = os_mapped_bytes();
    for (unsigned i = 0; model && i < machine_config.smp.cpus; i++) {
        vcpu_bytes[i] = i ? vcpu_bytes[0] : bytes_of_one(machine_config.smp.cpus);
    }
    realtime_cpus_read(&cpus, machine_config.smp.maxcpus, machine_config.smp.cpus);
    realtime_options_parse(&cpus, &options, &error_fatal);
    realtime_host_check_configure_for(&options, &cpus, mapped_bytes + memory_to_come());
    accel_cpu_pm = options.cpu_pm;
    cpu_device_on_change(vcpu_changed);
}

bool realtime_setup_wants_check(void)
{
    return options.check;
}

bool realtime_setup_check(void)
{
    return realtime_host_check_print(stdout);
}

/* What will hang comes last. */
static void warnings(void)
{
    if (options.config.enabled) {
        realtime_host_check_warnings(warn_line, NULL);
    }
    realtime_options_warnings(&cpus, &options, warn_line, NULL);
}

void realtime_setup_process(bool mem_merge)
{
    options.config.mem_merge_wanted = mem_merge;
    if (!os_check_address_space(memory_to_come(), &error_fatal)) {
        return;
    }
    os_prioritize(&options.config, memory_to_come(), &error_fatal);
    warnings();
    latency_init();
    latency_report_by_event();
    realtime_profiles_init(options.profiles, options.config.profile_count);
    latency_set_bound(realtime_latency_warn_us());
}

static void first_turn_ended(void *opaque)
{
    latency_reset();
}

static EventPost first_turn_end;

static void first_turn(void *opaque)
{
    event_post(event_loop_main(), &first_turn_end);
}

static EventPost first_turn_begin;

void realtime_setup_done(void)
{
    latency_reset(); /* allocates what the next one needs */
    event_post_init(&first_turn_end, first_turn_ended, NULL);
    event_post_init(&first_turn_begin, first_turn, NULL);
    event_post(event_loop_main(), &first_turn_begin);
}
