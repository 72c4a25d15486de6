/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System control port A at 92h: fast A20 gate and reset (PS/2; PIIX3 2.5.9 "Fast Init").
 *
 * The A20 line is driven when the bit changes: the keyboard controller drives it too, and the last
 * one to speak counts. Reset leaves it to that one, which opens it.
 */
#include "accel/cpu.h"
#include "hw/isa.h"
#include "hw/ps2.h"
#include "qemu/runstate.h"

enum { PORT92_RESET = BIT(0), PORT92_A20 = BIT(1) };

typedef struct Port92State {
    DeviceState dev;
    QemuMutex lock; /* guards value */
    uint8_t value;
    IrqLine a20;
    MemoryRegion io;
} Port92State;

static uint64_t port92_read(void *opaque, hwaddr offset, unsigned size)
{
    Port92State *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    return s->value;
}

static void port92_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    Port92State *s = opaque;
    uint8_t v = (uint8_t)value;
    bool a20_changes;

    QEMU_LOCK_GUARD(&s->lock);
    a20_changes = (v ^ s->value) & PORT92_A20;
    if ((v & (uint8_t)~s->value & PORT92_RESET) != 0) {
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        cpu_hold_self();
    }
    s->value = v;
    if (a20_changes) {
        irq_set(&s->a20, (v & PORT92_A20) != 0);
    }
}

static const MemoryRegionOps port92_ops = {
    .read = port92_read, .write = port92_write, .impl_max = 1,
};

void port92_set_a20_out(DeviceState *port92, IrqLine a20)
{
    Port92State *s = (Port92State *)port92;

    QEMU_LOCK_GUARD(&s->lock);
    s->a20 = a20;
}

static void port92_reset(DeviceState *dev)
{
    Port92State *s = (Port92State *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    s->value = 0;
}

static void port92_unrealize(DeviceState *dev)
{
    qemu_mutex_destroy(&((Port92State *)dev)->lock);
}

static bool port92_realize(DeviceState *dev, Error **errp)
{
    Port92State *s = (Port92State *)dev;

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "port92");
    memory_region_init_io(&s->io, &port92_ops, s, "port92", 1);
    if (!isa_map_ports(dev, &s->io, 0x92, errp)) {
        port92_unrealize(dev);
        return false;
    }
    return true;
}

static const VMState port92_vmstate = {
    .name = "port92",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U8, Port92State, value, 1),
        VMS_END,
    },
};

static const DeviceLines port92_lines[] = {
    { "a20", offsetof(Port92State, a20), 1, false },
    {},
};

static const DeviceType port92_type = {
    .name = "port92",
    .desc = "system control port A",
    .bus = "isa",
    .instance_size = sizeof(Port92State),
    .realize = port92_realize,
    .unrealize = port92_unrealize,
    .reset = port92_reset,
    .vmstate = &port92_vmstate,
    .lines = port92_lines,
};
DEVICE_TYPE(port92_type);
