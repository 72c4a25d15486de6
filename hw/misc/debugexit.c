/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port that ends the process: a write of V makes the exit status V << 1 | 1, so that a test
 * program in the guest can tell how it went. Status 0 stays the guest's own power-off.
 */
#include "accel/cpu.h"
#include "hw/isa.h"
#include "qemu/runstate.h"

typedef struct DebugExitState {
    DeviceState dev; /* the rest is constant after realize: no lock */
    MemoryRegion io;
    uint32_t iobase, iosize;
} DebugExitState;

static uint64_t debug_exit_read(void *opaque, hwaddr offset, unsigned size)
{
    return 0;
}

static void debug_exit_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    qemu_system_exit_request((int)((uint32_t)value << 1 | 1));
    cpu_hold_self();
}

static const MemoryRegionOps debug_exit_ops = {
    .read = debug_exit_read, .write = debug_exit_write, .valid_max = 4, .unaligned = true,
};

static bool debug_exit_realize(DeviceState *dev, Error **errp)
{
    DebugExitState *s = (DebugExitState *)dev;

    if (s->iobase > UINT16_MAX || !s->iosize || s->iosize > 0x10000 - s->iobase) {
        error_setg(errp, "isa-debug-exit: iobase=0x%x, iosize=%u: ports must lie in 0..0xffff",
                   s->iobase, s->iosize);
        return false;
    }
    memory_region_init_io(&s->io, &debug_exit_ops, s, "isa-debug-exit", s->iosize);
    return isa_map_ports(dev, &s->io, (uint16_t)s->iobase, errp);
}

static const Property debug_exit_props[] = {
    DEFINE_PROP("iobase", PROP_UINT32, DebugExitState, iobase, 0x501, "first port"),
    DEFINE_PROP("iosize", PROP_UINT32, DebugExitState, iosize, 2, "number of ports"),
    DEFINE_PROP_END,
};

static const DeviceType debug_exit_type = {
    .name = "isa-debug-exit",
    .desc = "end the process from the guest",
    .bus = "isa",
    .instance_size = sizeof(DebugExitState),
    .props = debug_exit_props,
    .user_creatable = true,
    .realize = debug_exit_realize,
};
DEVICE_TYPE(debug_exit_type);
