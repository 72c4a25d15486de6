/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands. Where QMP has the same, HMP calls it and prints. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "accel/accel.h"
#include "hw/device.h"
#include "memory/memory.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/log.h"
#include "qemu/runstate.h"
#include "target/i386/cpu.h"
#include "target/i386/dump.h"

void hmp_report(Monitor *mon, Error *err)
{
    if (err) {
        monitor_printf(mon, "Error: %s\n", error_get_pretty(err));
        error_free(err);
    }
}

static void print_line(void *opaque, const char *line)
{
    monitor_printf(opaque, "%s\n", line);
}

/* What is shown for "help WORDS": the command itself and what begins with it, at a word's end. */
static bool helps_with(const HmpCommand *c, const char *words)
{
    size_t n = strlen(words);

    return strncmp(c->name, words, n) == 0 && (!n || !c->name[n] || c->name[n] == ' ');
}

static void hmp_help(Monitor *mon, const char *args)
{
    bool any = false;

    for (const HmpCommand *c = hmp_commands; c->name; c++) {
        if (helps_with(c, args)) {
            monitor_printf(mon, "%s%s%s -- %s\n", c->name, *c->args ? " " : "", c->args, c->help);
            any = true;
        }
    }
    if (!any) {
        monitor_printf(mon, "unknown command: '%s' (help lists them)\n", args);
    }
}

static void hmp_quit(Monitor *mon, const char *args)
{
    qmp_quit(NULL);
}

static void hmp_stop(Monitor *mon, const char *args)
{
    qmp_stop(NULL);
}

static void hmp_cont(Monitor *mon, const char *args)
{
    Error *err = NULL;

    qmp_cont(&err);
    hmp_report(mon, err);
}

static void hmp_system_reset(Monitor *mon, const char *args)
{
    qmp_system_reset(NULL);
}

static void hmp_system_powerdown(Monitor *mon, const char *args)
{
    qmp_system_powerdown(NULL);
}

static void hmp_system_wakeup(Monitor *mon, const char *args)
{
    Error *err = NULL;

    qmp_system_wakeup(&err);
    hmp_report(mon, err);
}

static void hmp_nmi(Monitor *mon, const char *args)
{
    Error *err = NULL;

    qmp_inject_nmi(&err);
    hmp_report(mon, err);
}

static void hmp_log(Monitor *mon, const char *args)
{
    Error *err = NULL;
    uint32_t mask = 0;

    if (!*args) {
        monitor_puts(mon, "Error: which items? \"log none\" ends the log, -d help lists them\n");
    } else if (qemu_log_parse(args, &mask, &err)) {
        qemu_log_start(mask, &err);
    }
    hmp_report(mon, err);
}

static void hmp_info_status(Monitor *mon, const char *args)
{
    RunState s = runstate_get();

    monitor_printf(mon, "VM status: %s", runstate_is_running() ? "running" : "paused");
    if (s != RUN_STATE_RUNNING && s != RUN_STATE_PAUSED) {
        monitor_printf(mon, " (%s)", run_state_name(s));
    }
    monitor_puts(mon, "\n");
}

static void hmp_info_cpus(Monitor *mon, const char *args)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);

        if (cpu) {
            monitor_printf(mon, "%c CPU #%u: thread_id=%d%s\n",
                           (int)i == mon->cpu_index ? '*' : ' ', i, atomic_load(&cpu->thread.tid),
                           atomic_load(&cpu->halted) ? " (halted)" : "");
        }
    }
}

static void hmp_cpu(Monitor *mon, const char *args)
{
    char *end;
    long n = strtol(args, &end, 10);

    if (end == args || *end || n < 0 || !cpu_get((unsigned)n)) {
        monitor_printf(mon, "Error: '%s' is not the number of a CPU (info cpus lists them)\n", args);
        return;
    }
    mon->cpu_index = (int)n;
}

static void copy_one(CPUState *cpu, void *opaque)
{
    cpu->accel->regs_get(cpu);
    memcpy(opaque, x86_cpu(cpu), sizeof(X86CPU));
}

static void dump_registers(Monitor *mon, unsigned index)
{
    CPUState *cpu = cpu_get(index);
    GString *s = g_string_new(NULL);

    if (cpu) {
        /* Copied on the vCPU's thread, which is out of guest code then; formatted here. */
        X86CPU *copy = aligned_alloc(__alignof__(X86CPU), sizeof(X86CPU));

        run_on_cpu(cpu, copy_one, copy);
        x86_dump_state(copy, s);
        free(copy);
        monitor_printf(mon, "\nCPU#%u\n%s", index, s->str);
    }
    g_string_free(s, TRUE);
}

static void hmp_info_registers(Monitor *mon, const char *args)
{
    if (strcmp(args, "-a") == 0) {
        for (unsigned i = 0; i < MAX_CPUS; i++) {
            dump_registers(mon, i);
        }
    } else {
        dump_registers(mon, (unsigned)mon->cpu_index);
    }
}

static void hmp_info_mtree(Monitor *mon, const char *args)
{
    memory_print(print_line, mon, strcmp(args, "-f") == 0);
}

static void print_device(Monitor *mon, Bus *bus, DeviceState *dev)
{
    char where[128] = "";

    if (bus->describe) {
        bus->describe(bus, dev, where, sizeof(where));
    }
    monitor_printf(mon, "  dev: %s, id \"%s\"%s%s\n", dev->type->name, dev->id ? dev->id : "",
                   *where ? ", " : "", where);
    for (const Property *p = dev->type->props; p && p->name; p++) {
        char *v = device_prop_string(dev, p);

        monitor_printf(mon, "    %s = %s\n", p->name, v);
        g_free(v);
    }
}

static void print_bus(Bus *bus, void *opaque)
{
    Monitor *mon = opaque;

    monitor_printf(mon, "bus: %s\n  type %s\n", bus->name, bus->kind);
    for (DeviceState *dev = bus->children; dev; dev = dev->next_sibling) {
        print_device(mon, bus, dev);
    }
}

static void hmp_info_qtree(Monitor *mon, const char *args)
{
    bus_foreach(print_bus, mon);
}

/* QEMU prints nothing where there are no drives. */
static void hmp_info_block(Monitor *mon, const char *args)
{
}

static void hmp_info_chardev(Monitor *mon, const char *args)
{
    QapiChardevInfoArray *a = qmp_query_chardev(NULL);

    for (size_t i = 0; i < a->len; i++) {
        monitor_printf(mon, "%s: filename=%s\n", a->items[i]->label, a->items[i]->filename);
    }
    qapi_free_chardev_info_array(a);
}

static void hmp_info_iothreads(Monitor *mon, const char *args)
{
    QapiIOThreadInfoArray *a = qmp_query_iothreads(NULL);

    for (size_t i = 0; i < a->len; i++) {
        const QapiIOThreadInfo *t = a->items[i];

        monitor_printf(mon, "%s:\n  thread_id=%" PRId64 "\n  poll-max-ns=%" PRId64 "\n  poll-grow=%" PRId64
                       "\n  poll-shrink=%" PRId64 "\n  aio-max-batch=%" PRId64 "\n", t->id, t->thread_id,
                       t->poll_max_ns, t->poll_grow, t->poll_shrink, t->aio_max_batch);
    }
    qapi_free_io_thread_info_array(a);
}

static void hmp_info_version(Monitor *mon, const char *args)
{
    QapiVersionInfo *v = qmp_query_version(NULL);

    monitor_printf(mon, "%d.%d.%d (%s)\n", (int)v->qemu->major, (int)v->qemu->minor,
                   (int)v->qemu->micro, v->package);
    qapi_free_version_info(v);
}

static void hmp_info_kvm(Monitor *mon, const char *args)
{
    monitor_printf(mon, "kvm support: %s\n", accel_is(&kvm_accel_ops) ? "enabled" : "disabled");
}

static void hmp_info_name(Monitor *mon, const char *args)
{
    if (monitor_guest_name) {
        monitor_printf(mon, "%s\n", monitor_guest_name);
    }
}

static void hmp_info_uuid(Monitor *mon, const char *args)
{
    QapiUuidInfo *u = qmp_query_uuid(NULL);

    monitor_printf(mon, "%s\n", u->uuid);
    qapi_free_uuid_info(u);
}

#ifdef CONFIG_RTCHECK
static void hmp_info_rtcheck(Monitor *mon, const char *args)
{
    monitor_printf(mon, "mode: %s\nallocations on EVENT and VCPU threads: %" PRIu64
                   "\nof them where allowed: %" PRIu64 "\n", rtcheck_mode(),
                   rtcheck_alloc_count() + rtcheck_allowed_count(), rtcheck_allowed_count());
}
#endif

const HmpCommand hmp_commands[] = {
    { "c", "", "resume the machine", hmp_cont },
    { "cont", "", "resume the machine", hmp_cont },
    { "cpu", "index", "set the CPU that x and info registers look at", hmp_cpu },
    { "device_add", "driver[,prop=value]...", "add a CPU while the machine runs", hmp_device_add },
    { "device_del", "id", "ask the guest to give back a CPU that was added", hmp_device_del },
    { "help", "[cmd]", "show the commands", hmp_help },
    { "?", "[cmd]", "the same as help", hmp_help },
    { "info", "[subcommand]", "show what there is to show", hmp_info },
    { "info block", "", "show the drives; this machine has none, so nothing", hmp_info_block },
    { "info chardev", "", "show the character devices", hmp_info_chardev },
    { "info cpus", "", "show the CPUs and their threads", hmp_info_cpus },
    { "info hotpluggable-cpus", "", "show the places of CPUs, and which have one", hmp_info_hotpluggable_cpus },
    { "info iothreads", "", "show the event threads made by -object iothread", hmp_info_iothreads },
    { "info irq", "", "count how often interrupt lines rose", hmp_info_irq },
    { "info jit", "", "show the statistics of the translator", hmp_info_jit },
    { "info kvm", "", "show whether KVM is in use", hmp_info_kvm },
    { "info lapic", "[cpu]", "show the state of a CPU's local APIC", hmp_info_lapic },
    { "info latency", "[thread]", "show how long threads were away from their work, and why",
      hmp_info_latency },
    { "info mem", "", "show what linear addresses are mapped, and with which rights", hmp_info_mem },
    { "info mtree", "[-f]", "show the memory map (-f: as flat tables)", hmp_info_mtree },
    { "info name", "", "show the name of the guest", hmp_info_name },
    { "info pci", "", "show the PCI devices and where they are", hmp_info_pci },
    { "info pic", "", "show the state of the 8259A pair and the I/O APIC", hmp_info_pic },
    { "info qom-tree", "[path]", "show the tree of objects", hmp_info_qom_tree },
    { "info qtree", "", "show the devices", hmp_info_qtree },
    { "info realtime", "", "show what the kernel says of threads and locked memory",
      hmp_info_realtime },
    { "info realtime-latency", "[thread]", "the same as info latency", hmp_info_latency },
    { "info registers", "[-a]", "show the registers of a CPU (-a: of all)", hmp_info_registers },
    { "info roms", "", "show what is put into memory before the guest runs", hmp_info_roms },
#ifdef CONFIG_RTCHECK
    { "info rtcheck", "", "count the allocations on realtime threads", hmp_info_rtcheck },
#endif
    { "info status", "", "show the run state", hmp_info_status },
    { "info tlb", "", "show each page that the page tables map", hmp_info_tlb },
    { "info uuid", "", "show the UUID of the guest", hmp_info_uuid },
    { "info version", "", "show the version", hmp_info_version },
    { "log", "item[,...]", "log these items, as -d; none ends it", hmp_log },
    { "nmi", "", "inject an NMI into all CPUs", hmp_nmi },
    { "p", "/fmt expr", "the same as print", hmp_print },
    { "print", "/fmt expr", "show the value of an expression of numbers and $registers", hmp_print },
    { "q", "", "end the program", hmp_quit },
    { "quit", "", "end the program", hmp_quit },
    { "realtime_latency_reset", "", "begin the histograms of info latency anew", hmp_latency_reset },
    { "realtime_profile", "name", "give the threads a profile of -realtime id=",
      hmp_realtime_profile },
    { "s", "", "pause the machine", hmp_stop },
    { "sendkey", "keys [ms]", "press keys together (ctrl-alt-f1), and hold them so long (100)", hmp_sendkey },
    { "stop", "", "pause the machine", hmp_stop },
    { "system_powerdown", "", "press the power button", hmp_system_powerdown },
    { "system_reset", "", "reset the machine", hmp_system_reset },
    { "system_wakeup", "", "wake the machine that is suspended", hmp_system_wakeup },
    { "x", "/fmt addr", "dump memory at a linear address", hmp_x },
    { "xp", "/fmt addr", "dump memory at a physical address", hmp_xp },
    { NULL, NULL, NULL, NULL },
};
