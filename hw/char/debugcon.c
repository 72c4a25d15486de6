/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The debug console of Bochs and SeaBIOS: a byte written to the port comes out of the back end; a
 * read returns a constant, by which guests detect the port.
 */
#include "chardev/char.h"
#include "hw/isa.h"

typedef struct DebugconState {
    DeviceState dev;
    QemuMutex lock; /* one writer at a time for chr */
    ChrFrontend chr;
    MemoryRegion io;
    uint32_t iobase, readback;
    Chardev *chardev;
} DebugconState;

static uint64_t debugcon_read(void *opaque, hwaddr offset, unsigned size)
{
    return ((DebugconState *)opaque)->readback;
}

/* There is no register to wait on: what the ring has no room for is dropped. */
static void debugcon_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    DebugconState *s = opaque;
    uint8_t v = (uint8_t)value;

    QEMU_LOCK_GUARD(&s->lock);
    chr_fe_write(&s->chr, &v, 1);
}

static const MemoryRegionOps debugcon_ops = {
    .read = debugcon_read, .write = debugcon_write, .valid_min = 1, .valid_max = 1,
};

static void debugcon_unrealize(DeviceState *dev)
{
    DebugconState *s = (DebugconState *)dev;

    chr_fe_fini(&s->chr);
    qemu_mutex_destroy(&s->lock);
}

static bool debugcon_realize(DeviceState *dev, Error **errp)
{
    DebugconState *s = (DebugconState *)dev;

    if (!s->chardev) {
        error_setg(errp, "Can't create debugcon device, empty char device");
        return false;
    }
    if (s->iobase > UINT16_MAX) {
        error_setg(errp, "isa-debugcon: iobase=0x%x is out of range (0..0xffff)", s->iobase);
        return false;
    }
    if (!chr_fe_init(&s->chr, s->chardev, errp)) {
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "debugcon");
    memory_region_init_io(&s->io, &debugcon_ops, s, "isa-debugcon", 1);
    if (!isa_map_ports(dev, &s->io, (uint16_t)s->iobase, errp)) {
        debugcon_unrealize(dev);
        return false;
    }
    chr_fe_set_handlers(&s->chr, event_loop_main(), NULL, NULL); /* output only */
    return true;
}

static const Property debugcon_props[] = {
    DEFINE_PROP("iobase", PROP_UINT32, DebugconState, iobase, 0xe9, "port"),
    DEFINE_PROP("readback", PROP_UINT32, DebugconState, readback, 0xe9, "value a read returns"),
    DEFINE_PROP("chardev", PROP_CHARDEV, DebugconState, chardev, 0,
                "ID of a chardev to use as a backend"),
    DEFINE_PROP_END,
};

static const DeviceType debugcon_type = {
    .name = "isa-debugcon",
    .desc = "debug console port",
    .bus = "isa",
    .instance_size = sizeof(DebugconState),
    .props = debugcon_props,
    .user_creatable = true,
    .realize = debugcon_realize,
    .unrealize = debugcon_unrealize,
};
DEVICE_TYPE(debugcon_type);
