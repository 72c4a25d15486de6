/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU hot plug's register block, as QEMU's document "QEMU<->ACPI BIOS CPU hotplug interface" has it
 * (the modern interface): a selector, flags of the selected place, a command, and its data. The
 * guest's side is ssdt-cpus.asl.
 */
#include <string.h>
#include "accel/cpu.h"
#include "hw/acpi-cpus.h"
#include "hw/i440fx.h"
#include "hw/isa.h"
#include "qemu/runstate.h"

enum { REG_SELECTOR = 0, REG_DATA2 = 0, REG_FLAGS = 4, REG_COMMAND = 5, REG_DATA = 8 };
enum { FLAG_ENABLED = BIT(0), FLAG_INSERT = BIT(1), FLAG_REMOVE = BIT(2), FLAG_EJECT = BIT(3) };
#define FLAG_EVENTS (FLAG_INSERT | FLAG_REMOVE)
enum { CMD_NEXT_EVENT = 0, CMD_OST_EVENT = 1, CMD_OST_STATUS = 2, CMD_APIC_ID = 3 };

typedef struct AcpiCpus {
    DeviceState dev;
    AcpiCpusSetup setup; /* constant after realize */
    MemoryRegion io;

    QemuMutex lock; /* guards what follows */
    uint32_t selector;
    uint8_t command;
    uint8_t flags[MAX_CPUS];
    uint32_t ost_event; /* of the report under way */
} AcpiCpus;

static AcpiCpus *acpi_cpus(DeviceState *dev)
{
    return container_of(dev, AcpiCpus, dev);
}

/* ---- Registers (lock held) ---- */

static uint32_t read_data(const AcpiCpus *s)
{
    switch (s->command) {
    case CMD_NEXT_EVENT:
        return s->selector;
    case CMD_APIC_ID:
        return s->setup.apic_id(s->selector);
    default:
        return 0;
    }
}

/* The next place with an event, from the selected one on; if there is none the selection stays. */
static void select_event(AcpiCpus *s)
{
    for (unsigned i = 0; i < s->setup.count; i++) {
        unsigned cpu = (s->selector + i) % s->setup.count;

        if (s->flags[cpu] & FLAG_EVENTS) {
            s->selector = cpu;
            return;
        }
    }
}

static void write_flags(AcpiCpus *s, uint8_t v)
{
    uint8_t *flags = &s->flags[s->selector];

    *flags &= (uint8_t)~(v & FLAG_EVENTS);
    if (v & FLAG_EJECT && *flags & FLAG_ENABLED && s->selector >= s->setup.fixed) {
        *flags = 0;
        s->setup.eject(s->selector);
    }
}

static void write_data(AcpiCpus *s, uint32_t v)
{
    if (s->command == CMD_OST_EVENT) {
        s->ost_event = v;
    } else if (s->command == CMD_OST_STATUS) {
        s->setup.ost(s->selector, s->ost_event, v);
    }
}

static uint64_t cpus_read(void *opaque, hwaddr off, unsigned size)
{
    AcpiCpus *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (s->selector >= s->setup.count) {
        return 0;
    }
    if (off == REG_FLAGS) {
        return s->flags[s->selector];
    }
    return off == REG_DATA ? read_data(s) : 0; /* REG_DATA2: the upper half of an APIC id */
}

static void cpus_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    AcpiCpus *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (off == REG_SELECTOR && size == 4) {
        s->selector = (uint32_t)v;
    } else if (s->selector >= s->setup.count) {
        return;
    } else if (off == REG_FLAGS) {
        write_flags(s, (uint8_t)v);
    } else if (off == REG_COMMAND) {
        s->command = (uint8_t)v;
        if (s->command == CMD_NEXT_EVENT) {
            select_event(s);
        }
    } else if (off == REG_DATA && size == 4) {
        write_data(s, (uint32_t)v);
    }
}

static const MemoryRegionOps cpus_ops = {
    .read = cpus_read, .write = cpus_write, .valid_max = 4, .impl_max = 4,
};

/* ---- Life ---- */

void acpi_cpus_setup(DeviceState *dev, const AcpiCpusSetup *setup)
{
    acpi_cpus(dev)->setup = *setup;
}

void acpi_cpus_plug(DeviceState *dev, unsigned cpu, bool hot)
{
    AcpiCpus *s = acpi_cpus(dev);

    QEMU_LOCK_GUARD(&s->lock);
    s->flags[cpu] |= FLAG_ENABLED | (hot ? FLAG_INSERT : 0);
    if (hot) {
        piix4_pm_set_gpe(s->setup.pm, ACPI_CPUS_GPE);
    }
}

void acpi_cpus_unplug_request(DeviceState *dev, unsigned cpu)
{
    AcpiCpus *s = acpi_cpus(dev);

    QEMU_LOCK_GUARD(&s->lock);
    if (s->flags[cpu] & FLAG_ENABLED) {
        s->flags[cpu] |= FLAG_REMOVE;
        piix4_pm_set_gpe(s->setup.pm, ACPI_CPUS_GPE);
    }
}

/*
 * A kernel that boots finds every vCPU in the MADT. One that wakes up does not look: what it was told
 * of while it slept it is told of again, as its GPE was reset.
 */
static void cpus_reset(DeviceState *dev)
{
    AcpiCpus *s = acpi_cpus(dev);
    bool told = false;

    QEMU_LOCK_GUARD(&s->lock);
    s->selector = s->ost_event = 0;
    s->command = CMD_NEXT_EVENT;
    for (unsigned i = 0; i < s->setup.count; i++) {
        if (!runstate_is_wakeup()) {
            s->flags[i] &= (uint8_t)~FLAG_EVENTS;
        }
        told |= s->flags[i] & FLAG_EVENTS;
    }
    if (told) {
        piix4_pm_set_gpe(s->setup.pm, ACPI_CPUS_GPE);
    }
}

static bool cpus_realize(DeviceState *dev, Error **errp)
{
    AcpiCpus *s = acpi_cpus(dev);

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "acpi-cpus");
    memory_region_init_io(&s->io, &cpus_ops, s, "acpi-cpus", ACPI_CPUS_IO_LEN);
    return isa_map_ports(dev, &s->io, ACPI_CPUS_IO, errp);
}

static const VMStateField cpus_fields[] = {
    VMS_FIELD(VMS_U32, AcpiCpus, selector, 1),
    VMS_FIELD(VMS_U8, AcpiCpus, command, 1),
    VMS_FIELD(VMS_U8, AcpiCpus, flags, MAX_CPUS),
    VMS_FIELD(VMS_U32, AcpiCpus, ost_event, 1),
    VMS_END,
};
static const VMState cpus_vmstate = {
    .name = "acpi-cpus", .version = 1, .minimum_version = 1, .fields = cpus_fields,
};
static const DeviceType cpus_type = {
    .name = "acpi-cpus",
    .desc = "CPU hot plug",
    .bus = "isa",
    .instance_size = sizeof(AcpiCpus),
    .realize = cpus_realize,
    .reset = cpus_reset,
    .vmstate = &cpus_vmstate,
};
DEVICE_TYPE(cpus_type);
