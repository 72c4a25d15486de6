/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What test programs measure accesses to a PCI device with. BAR 0 (memory, 4 KiB) and BAR 1 (256 ports)
 * begin with a header: a test number, which the guest writes, then what to write where for this test, how
 * many such writes came, and the test's name (QEMU's documentation, "pci-testdev"). A number without a
 * test shows a header of zeros. Where a test's name says eventfd, a matching write goes to one on which
 * nobody waits, and is not counted. BAR 2 is address space with nothing in it, if `membar` says how much.
 */
#include <stdio.h>
#include <string.h>
#include "hw/pci.h"

#define MEM_SIZE  4096
#define IO_SIZE   256
#define NAME_SIZE 32
#define TESTS     3 /* of each BAR */
#define NO_TEST   (2 * TESTS)

static const struct {
    const char *name;
    uint8_t data;
    bool eventfd;
} tests[TESTS] = {
    { "no-eventfd", 0xfa, false },
    { "wildcard-eventfd", 0xce, true },
    { "datamatch-eventfd", 0xfa, true },
};

typedef struct QEMU_PACKED Header {
    uint8_t test, width;
    uint16_t pad;
    uint32_t offset, data, count;
    char name[NAME_SIZE];
} Header;

typedef struct PciTestdev {
    PCIDevice pd;
    uint64_t membar;
    QemuMutex lock;   /* guards test and count */
    uint8_t test;     /* 0..2 of BAR 0, 3..5 of BAR 1, NO_TEST */
    uint32_t count;
    MemoryRegion mem, io, empty;
} PciTestdev;

static uint32_t test_offset(unsigned test)
{
    return test < TESTS ? MEM_SIZE / 2 + test : IO_SIZE / 2 + test;
}

static uint64_t header_read(PciTestdev *s, bool io, hwaddr offset, unsigned size)
{
    Header h = { 0 };
    uint64_t v = 0;

    QEMU_LOCK_GUARD(&s->lock);
    if (s->test != NO_TEST && (s->test >= TESTS) == io) {
        h = (Header){ .test = s->test, .width = 1, .offset = test_offset(s->test),
                      .data = tests[s->test % TESTS].data, .count = s->count };
        snprintf(h.name, sizeof(h.name), "%s-%s", io ? "portio" : "mmio", tests[s->test % TESTS].name);
    }
    if (offset < sizeof(h)) {
        memcpy(&v, (uint8_t *)&h + offset, MIN(size, sizeof(h) - offset));
    }
    return v;
}

static void header_write(PciTestdev *s, bool io, hwaddr offset, uint64_t value, unsigned size)
{
    QEMU_LOCK_GUARD(&s->lock);
    if (offset == 0) {
        s->test = value < TESTS ? (uint8_t)(value + (io ? TESTS : 0)) : NO_TEST;
        s->count = 0;
    } else if (s->test != NO_TEST && (s->test >= TESTS) == io && offset == test_offset(s->test) &&
               value == tests[s->test % TESTS].data && !tests[s->test % TESTS].eventfd) {
        s->count++;
    }
}

static uint64_t mem_read(void *opaque, hwaddr offset, unsigned size)
{
    return header_read(opaque, false, offset, size);
}

static void mem_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    header_write(opaque, false, offset, value, size);
}

static uint64_t io_read(void *opaque, hwaddr offset, unsigned size)
{
    return header_read(opaque, true, offset, size);
}

static void io_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    header_write(opaque, true, offset, value, size);
}

static const MemoryRegionOps mem_ops = {
    .read = mem_read, .write = mem_write, .valid_max = 4, .unaligned = true,
};
static const MemoryRegionOps io_ops = {
    .read = io_read, .write = io_write, .valid_max = 4, .unaligned = true,
};

static void testdev_reset(DeviceState *dev)
{
    PciTestdev *s = (PciTestdev *)dev;

    pci_device_reset(&s->pd);
    QEMU_LOCK_GUARD(&s->lock);
    s->test = NO_TEST;
    s->count = 0;
}

static void testdev_unrealize(DeviceState *dev)
{
    PciTestdev *s = (PciTestdev *)dev;

    pci_device_cleanup(&s->pd);
    qemu_mutex_destroy(&s->lock);
}

static bool testdev_realize(DeviceState *dev, Error **errp)
{
    PciTestdev *s = (PciTestdev *)dev;

    if (s->membar && (s->membar < 4096 || (s->membar & (s->membar - 1)))) {
        error_setg(errp, "pci-testdev: membar=%llu must be a power of two of at least 4096, or 0",
                   (unsigned long long)s->membar);
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "pci-testdev");
    pci_set_ids(&s->pd, 0x1b36, 0x0005, 0, 0x00ff, 0);
    memory_region_init_io(&s->mem, &mem_ops, s, "pci-testdev-mmio", MEM_SIZE);
    memory_region_init_io(&s->io, &io_ops, s, "pci-testdev-portio", IO_SIZE);
    pci_register_bar(&s->pd, 0, PCI_BAR_MEM, &s->mem);
    pci_register_bar(&s->pd, 1, PCI_BAR_IO, &s->io);
    if (s->membar) {
        memory_region_init_container(&s->empty, "pci-testdev-membar", s->membar);
        pci_register_bar(&s->pd, 2, PCI_BAR_MEM64 | PCI_BAR_PREFETCH, &s->empty);
    }
    return true;
}

static bool testdev_post_load(void *opaque, int version, Error **errp)
{
    PciTestdev *s = opaque;

    if (s->test > NO_TEST) {
        error_setg(errp, "pci-testdev: there is no test %u", s->test);
        return false;
    }
    return true;
}

static const Property testdev_props[] = {
    PCI_PROPS(PciTestdev, pd),
    DEFINE_PROP("membar", PROP_SIZE, PciTestdev, membar, 0, "size of BAR 2, 0: none"),
    DEFINE_PROP_END,
};

static const VMState testdev_vmstate = {
    .name = "pci-testdev",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_PCI_DEVICE(PciTestdev, pd),
        VMS_FIELD(VMS_U8, PciTestdev, test, 1),
        VMS_FIELD(VMS_U32, PciTestdev, count, 1),
        VMS_END,
    },
    .post_load = testdev_post_load,
};

static const DeviceType testdev_type = {
    .name = "pci-testdev",
    .desc = "counts a test program's accesses",
    .bus = "pci",
    .instance_size = sizeof(PciTestdev),
    .props = testdev_props,
    .user_creatable = true,
    .realize = testdev_realize,
    .unrealize = testdev_unrealize,
    .reset = testdev_reset,
    .vmstate = &testdev_vmstate,
};
DEVICE_TYPE(testdev_type);
