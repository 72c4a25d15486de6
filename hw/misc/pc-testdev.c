/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What test programs of processors and interrupt controllers want of a PC: ports 0xe0..0xe3 hold
 * what is written there; 0xe4 takes a page address (to be flushed by accelerators that cache one;
 * none of ours does); 0x2000 + N drives global interrupt line N; 64 KiB at 0xff000000 answer as
 * memory, but through a device's handlers.
 */
#include <glib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "hw/isa.h"

#define IOMEM_ADDR 0xff000000u
#define IOMEM_SIZE 0x10000

typedef struct TestdevState {
    DeviceState dev;
    QemuMutex lock; /* guards echo and iomem */
    uint32_t echo;
    uint8_t iomem[IOMEM_SIZE];
    MemoryRegion echo_mr, flush_mr, irq_mr, iomem_mr;
} TestdevState;

static uint64_t echo_read(void *opaque, hwaddr offset, unsigned size)
{
    TestdevState *s = opaque;
    uint64_t v = 0;

    QEMU_LOCK_GUARD(&s->lock);
    memcpy(&v, (uint8_t *)&s->echo + offset, MIN(size, 4 - offset));
    return v;
}

static void echo_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    TestdevState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    memcpy((uint8_t *)&s->echo + offset, &value, MIN(size, 4 - offset));
}

static uint64_t flush_read(void *opaque, hwaddr offset, unsigned size)
{
    return UINT32_MAX;
}

static void flush_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
}

static uint64_t irq_read(void *opaque, hwaddr offset, unsigned size)
{
    return UINT32_MAX;
}

static void irq_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    irqchip->set_gsi((unsigned)offset, value != 0);
}

static uint64_t iomem_read(void *opaque, hwaddr offset, unsigned size)
{
    TestdevState *s = opaque;
    uint64_t v = 0;

    QEMU_LOCK_GUARD(&s->lock);
    memcpy(&v, s->iomem + offset, MIN(size, IOMEM_SIZE - offset));
    return v;
}

static void iomem_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    TestdevState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    memcpy(s->iomem + offset, &value, MIN(size, IOMEM_SIZE - offset));
}

static const MemoryRegionOps echo_ops = {
    .read = echo_read, .write = echo_write, .unaligned = true,
};
static const MemoryRegionOps flush_ops = {
    .read = flush_read, .write = flush_write, .unaligned = true,
};
static const MemoryRegionOps irq_ops = {
    .read = irq_read, .write = irq_write, .unaligned = true,
};
static const MemoryRegionOps iomem_ops = {
    .read = iomem_read, .write = iomem_write, .unaligned = true,
};

static void testdev_reset(DeviceState *dev)
{
    TestdevState *s = (TestdevState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    s->echo = 0;
    memset(s->iomem, 0, sizeof(s->iomem));
}

static void testdev_unrealize(DeviceState *dev)
{
    TestdevState *s = (TestdevState *)dev;

    if (s->iomem_mr.container) {
        memory_region_del_subregion(memory_root(), &s->iomem_mr);
    }
    qemu_mutex_destroy(&s->lock);
}

static bool testdev_realize(DeviceState *dev, Error **errp)
{
    TestdevState *s = (TestdevState *)dev;

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "pc-testdev");
    memory_region_init_io(&s->echo_mr, &echo_ops, s, "pc-testdev-ioport", 4);
    memory_region_init_io(&s->flush_mr, &flush_ops, s, "pc-testdev-flush-page", 4);
    memory_region_init_io(&s->irq_mr, &irq_ops, s, "pc-testdev-irq-line", IRQCHIP_GSIS);
    memory_region_init_io(&s->iomem_mr, &iomem_ops, s, "pc-testdev-iomem", IOMEM_SIZE);
    if (!isa_map_ports(dev, &s->echo_mr, 0xe0, errp) ||
        !isa_map_ports(dev, &s->flush_mr, 0xe4, errp) ||
        !isa_map_ports(dev, &s->irq_mr, 0x2000, errp)) {
        testdev_unrealize(dev);
        return false;
    }
    memory_region_add_subregion(memory_root(), IOMEM_ADDR, &s->iomem_mr, 0);
    return true;
}

static const VMState testdev_vmstate = {
    .name = "pc-testdev",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U32, TestdevState, echo, 1),
        VMS_FIELD(VMS_BUFFER, TestdevState, iomem, IOMEM_SIZE),
        VMS_END,
    },
};

static const DeviceType testdev_type = {
    .name = "pc-testdev",
    .desc = "ports and memory for test programs",
    .bus = "isa",
    .instance_size = sizeof(TestdevState),
    .user_creatable = true,
    .realize = testdev_realize,
    .unrealize = testdev_unrealize,
    .reset = testdev_reset,
    .vmstate = &testdev_vmstate,
};
DEVICE_TYPE(testdev_type);
