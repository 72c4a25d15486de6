/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From option sets (qemu/option.h) to plain structures: one function an option. Each message
 * names the option, the value, the reason and the remedy. opts may be NULL where the option was
 * not given: the defaults come out. Strings in results are borrowed from the sets. Start-up only.
 */
#ifndef QEMU_OPTS_H
#define QEMU_OPTS_H

#include "qemu/error.h"
#include "qemu/option.h"
#include "qemu/runstate.h"
#include "qemu/topology.h"

/* -m (group "memory"). otherwise: the machine's default. 0 and more than limit are refused. */
bool opts_parse_memory(QemuOpts *opts, uint64_t otherwise, uint64_t limit, uint64_t *ram_size,
                       Error **errp);

/* -smp (group "smp-opts"). max_cpus and machine: what the machine takes, and its name. */
bool opts_parse_smp(QemuOpts *opts, unsigned max_cpus, const char *machine, SmpTopology *topo,
                    Error **errp);

/* -uuid. */
bool opts_parse_uuid(const char *text, uint8_t uuid[16], Error **errp);

typedef enum RtcClockChoice { RTC_CLOCK_HOST, RTC_CLOCK_RT, RTC_CLOCK_VM } RtcClockChoice;
typedef struct RtcOpts {
    bool local;       /* base=localtime */
    bool dated;       /* base=DATE: */
    int64_t date_s;   /* seconds since 1970 */
    RtcClockChoice clock;
    bool driftfix_slew;
} RtcOpts;
bool opts_parse_rtc(QemuOpts *opts, RtcOpts *rtc, Error **errp);

typedef struct IcountOpts {
    bool enabled, sleep;
    unsigned shift;
} IcountOpts;
/* -icount. opts NULL: not enabled. */
bool opts_parse_icount(QemuOpts *opts, IcountOpts *icount, Error **errp);

/* -seed. */
bool opts_parse_seed(const char *text, uint64_t *seed, Error **errp);

/* -action (group "action"): changes what is named in it. */
bool opts_parse_action(QemuOpts *opts, VmActions *actions, Error **errp);

typedef struct NameOpts {
    const char *guest, *process; /* NULL: not given */
    bool debug_threads;
} NameOpts;
bool opts_parse_name(QemuOpts *opts, NameOpts *name, Error **errp);

/* -msg: puts it in force. guest is the name for guest-name=on, may be NULL. */
void opts_apply_msg(QemuOpts *opts, const char *guest);

typedef struct BootOpts {
    const char *order, *once; /* NULL: not given */
    bool menu, strict;
    uint32_t splash_time_ms;
} BootOpts;
bool opts_parse_boot(QemuOpts *opts, BootOpts *boot, Error **errp);

typedef enum IrqchipChoice { IRQCHIP_UNSET, IRQCHIP_OFF, IRQCHIP_SPLIT, IRQCHIP_ON } IrqchipChoice;
typedef struct MachineOpts {
    const char *type; /* NULL: the default machine */
    IrqchipChoice kernel_irqchip;
    bool hpet, acpi, pit, graphics, dump_guest_core, mem_merge;
    const char *memory_backend; /* NULL: the machine's default name */
    const char *kernel, *initrd, *append, *firmware;
} MachineOpts;
/* -machine (group "machine"). What there is no model for (usb=on, smm=on, vmport=on) is refused. */
bool opts_parse_machine(QemuOpts *opts, MachineOpts *machine, Error **errp);
bool opts_parse_irqchip(const char *text, IrqchipChoice *choice, Error **errp);

/* One accelerator to try; opts: its -accel properties, NULL for the other two notations. */
typedef struct AccelChoice {
    char *name;
    QemuOpts *opts;
} AccelChoice;
/*
 * -accel, -machine accel=a:b and -enable-kvm (pass it as enable_kvm), in the order to try. The
 * result is an array that ends with a NULL name; empty if none was given.
 */
bool opts_parse_accels(bool enable_kvm, AccelChoice **choices, Error **errp);
void opts_free_accels(AccelChoice *choices);

/* -display none; -audiodev, in either notation, with the driver none; -sandbox off. */
bool opts_check_display(const char *arg, Error **errp);
bool opts_check_audiodev(const char *arg, Error **errp);
/* -net, -nic, -vga, ...: only none, there is nothing to choose. option: without its dash. */
bool opts_check_none(const char *option, const char *arg, Error **errp);
/* -k: a layout that QEMU knows. */
bool opts_check_keyboard(const char *arg, Error **errp);
/* Why QEMU's option (without its dash) is not there, and what to do; NULL: QEMU has none such. */
const char *opts_why_absent(const char *option);
/*
 * The error that there is no machine or device of that name: QEMU has it and this program not yet,
 * or nobody has; and what to do.
 */
void opts_error_no_machine(const char *name, Error **errp);
void opts_error_no_device(const char *name, Error **errp);
bool opts_check_sandbox(const char *arg, Error **errp);

#endif
