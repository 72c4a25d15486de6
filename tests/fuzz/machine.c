/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine of the device and monitor targets: what vl.c makes for -accel qtest, with both loops
 * run by this thread. The machine counts as running, but nobody lets the vCPUs go.
 */
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "chardev/char-internal.h"
#include "cpus.h"
#include "event/event.h"
#include "fuzz.h"
#include "hw/device.h"
#include "hw/intc.h"
#include "hw/machine.h"
#include "hw/vmstate.h"
#include "memory/memory.h"
#include "monitor/monitor.h"
#include "qemu/config.h"
#include "qemu/os.h"
#include "qemu/runstate.h"
#include "realtime/latency.h"
#include "realtime/profile.h"
#include "target/i386/cpu.h"

#define VCPUS 2

static uint8_t *first; /* state of the devices after the first reset */
static size_t first_len;
static struct {
    uint8_t *state;
    size_t len;
} first_apic[VCPUS];

static void nothing(void)
{
}

static void reset_machine(void)
{
    cpus_reset_all(device_reset_all);
}

struct Chardev *fuzz_chr_new(const char *id)
{
    return chardev_new_from_legacy(id, "null", false, &error_abort);
}

void fuzz_chr_in(Chardev *chr, const uint8_t *buf, size_t len)
{
    size_t n;

    for (; len && (n = MIN(chr_in_room(chr), len)); buf += n, len -= n) {
        chr_in(chr, buf, n);
    }
}

static void make_profiles(void)
{
    static const QemuRealtimeProfile list[2] = { { .name = "first" }, { .name = "second" } };

    realtime_profiles_init(list, ARRAY_SIZE(list));
}

static void make_config(MachineConfig *cfg)
{
    *cfg = (MachineConfig){
        .ram_size = FUZZ_RAM,
        /* One place more than CPUs, so that there are the registers of hot plug. */
        .smp = { .sockets = VCPUS + 1, .dies = 1, .cores = 1, .threads = 1, .cpus = VCPUS,
                 .maxcpus = VCPUS + 1 },
        .hpet = true,
        .pit = true,
        .acpi = true,
        .rtc_dated = true,
        .rtc_date_s = 1600000000,
        .rtc_clock = CLOCK_TYPE_VIRTUAL,
    };
    cfg->serial[0] = fuzz_chr_new("serial0");
    cfg->debugcon = fuzz_chr_new("debugcon");
}

static void add(const char *type)
{
    device_realize(device_new_named(type), NULL, &error_abort);
}

static void make_loops(void)
{
    static const RunStateHooks hooks = {
        .pause_all = cpus_pause_all, .resume_all = nothing, .reset = reset_machine,
    };
    static QemuThread self;

    qemu_thread_adopt_self(&self, "main", THREAD_EVENT, &error_abort);
    memory_init();
    memory_thread_register();
    latency_init();
    current_accel = &qtest_accel_ops;
    current_accel->init(NULL, &error_abort);
    event_loop_set_main(event_loop_new("main", &error_abort));
    runstate_init(&hooks);
    monitor_init_globals(&error_abort);
}

/* ---- Its state ---- */

static void save(uint8_t **buf, size_t *len)
{
    g_free(*buf);
    *buf = NULL;
    *len = 0;
    device_save_all(buf, len);
}

static void save_apic(unsigned n, uint8_t **buf, size_t *len)
{
    g_free(*buf);
    *buf = NULL;
    *len = 0;
    vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu_get(n)), buf, len);
}

static void load_first(void)
{
    device_load_all(first, first_len, &error_abort);
    for (unsigned i = 0; i < VCPUS; i++) {
        vmstate_load(&apic_vmstate, apic_vmstate_opaque(cpu_get(i)), first_apic[i].state,
                     first_apic[i].len, NULL, &error_abort);
    }
}

void fuzz_machine_init(bool profiles)
{
    MachineConfig *cfg = &machine_config;

    make_loops();
    if (profiles) {
        make_profiles();
    }
    current_machine = &machine_pc;
    make_config(cfg);
    x86_cpu_set_model("max", &error_fatal);
    current_machine->init(cfg, &error_fatal);
    add("isa-debug-exit");
    add("pc-testdev");
    add("pci-testdev");
    if (profiles) {
        add("realtime-switch");
    }
    cpus_create(cfg->smp.cpus, &error_fatal);
    cpus_start_threads(&error_fatal);
    cpus_pause_all();
    reset_machine();
    vm_start(&error_abort);
    realtime_start(false);
    fuzz_machine_settle();
    save(&first, &first_len);
    for (unsigned i = 0; i < VCPUS; i++) {
        save_apic(i, &first_apic[i].state, &first_apic[i].len);
    }
}

void fuzz_machine_settle(void)
{
    for (unsigned i = 0; i < 64; i++) {
        bool any = event_loop_iterate(event_loop_main(), 0);

        any = event_loop_iterate(event_loop_control(), 0) || any;
        if (!any) {
            return;
        }
    }
}

void fuzz_machine_step(int64_t ns)
{
    clock_virtual_advance_to(clock_get_ns(CLOCK_TYPE_VIRTUAL) + ns);
}

void fuzz_machine_reset(void)
{
    current_cpu = NULL;
    fuzz_machine_settle();
    qemu_system_reset_request(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
    fuzz_machine_settle();
    vm_start(NULL);
    /* Timers that are armed would run at once, or never, if only the time changed. */
    clock_virtual_set(0);
    load_first();
    fuzz_machine_settle();
}
