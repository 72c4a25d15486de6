/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A board type, what the command line says about it, and requests that concern the whole machine. */
#ifndef HW_MACHINE_H
#define HW_MACHINE_H

#include "qemu/compiler.h"
#include "qemu/error.h"
#include "qemu/opts.h"
#include "qemu/topology.h"

struct Chardev;
struct RAMBlock;

/* Filled by vl.c from the command line before init. Strings are borrowed, NULL when not given. */
typedef struct MachineConfig {
    uint64_t ram_size;    /* bytes */
    bool ram_merge;       /* RAM that the board makes is RAM_MERGEABLE */
    struct RAMBlock *ram; /* that much, from -machine memory-backend=; NULL: the board makes it */
    SmpTopology smp;
    const char *kernel, *initrd, *append, *bios, *dtb;
    const char *const *firmware_dirs; /* -L, ends with NULL; NULL: none */
    struct Chardev *serial[4];
    struct Chardev *debugcon;
    bool defaults;   /* not -nodefaults */
    bool hpet, acpi, pit; /* -no-hpet, -no-acpi, machine properties */
    BootOpts boot;
    uint8_t uuid[16];
    bool uuid_set;
    const char *name;
    bool rtc_local;      /* -rtc base=localtime */
    bool rtc_dated;      /* base=DATE: */
    int64_t rtc_date_s;  /* seconds since 1970 */
    int rtc_clock;       /* ClockType: clock=host|rt|vm */
    bool rtc_driftfix_slew;
} MachineConfig;

typedef void MachineBlobFn(void *opaque, uint64_t addr, uint64_t size, bool rom, const char *name);

typedef struct MachineType {
    const char *name;  /* canonical, e.g. "pc-i440fx-7.2" */
    const char *alias; /* "pc" */
    const char *desc;
    bool is_default;
    unsigned max_cpus;
    const char *default_cpu;
    const char *default_ram_id;
    uint64_t default_ram_size, min_ram_size;
    /*
     * Start-up. Makes RAM, sets `irqchip`, makes devices, loads firmware and kernel. vCPUs are made
     * by vl.c right after (cfg->smp.cpus of them, irqchip->cpu_init for each), and the machine is
     * reset before its first instruction; so what concerns a vCPU's registers is done in a reset
     * handler.
     */
    bool (*init)(const MachineConfig *cfg, Error **errp);
    /*
     * Optional, all or none. HELPER_ONLY: may a vCPU come and go while the machine runs? Then, run state
     * held: this one has come; hot: so that the guest is told of it.
     */
    bool (*cpu_plug_check)(Error **errp);
    void (*cpu_plugged)(unsigned cpu, bool hot);
    /*
     * HELPER_ONLY, where cpu_plug_check said yes: asks the guest to give back a vCPU that came. When it does
     * the board calls machine_cpu_ejected; then, run state held: it has gone.
     */
    void (*cpu_unplug_request)(unsigned cpu);
    void (*cpu_unplugged)(unsigned cpu);
    /* Optional, HELPER_ONLY. Tells what the board puts into memory, or has there as ROM. */
    void (*blobs)(MachineBlobFn *fn, void *opaque);
} MachineType;

/* RT_SAFE: the guest is done with that vCPU, which may go soon. NULL before the first one came. */
extern void (*machine_cpu_ejected)(unsigned cpu);
/* RT_SAFE: what the guest reports of a place (ACPI's _OST). NULL: nobody listens. */
extern void (*machine_cpu_ost)(unsigned cpu, uint32_t source, uint32_t status);

extern const MachineType machine_pc, machine_none;
const MachineType *machine_find(const char *name);
void machine_foreach(void (*fn)(const MachineType *m, void *opaque), void *opaque);
extern MachineConfig machine_config;
extern const MachineType *current_machine;

#endif
