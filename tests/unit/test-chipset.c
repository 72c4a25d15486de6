/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI core, host bridge, ISA bridge, power management and fw_cfg, driven through ports and memory
 * as a guest drives them, in virtual time.
 */
#include <glib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "event/event.h"
#include "hw/fw_cfg.h"
#include "hw/i440fx.h"
#include "qemu/runstate.h"

#define RAM_SIZE  (16 * MiB)
#define BIOS_SIZE (256 * KiB)

static RAMBlock *ram, *bios;
static MemoryRegion ram_mr;
static DeviceState *pcihost, *host_fn, *piix, *pm, *fw;
static PCIBus *bus;
static int isa_level[16];
static int sci_level;
static uint64_t msi_addr;
static uint32_t msi_data;
static unsigned msi_count;

/* ---- What the guest does ---- */

static uint32_t in(uint16_t port, unsigned size)
{
    return (uint32_t)address_space_load(&address_space_io, port, size);
}

static void out(uint16_t port, uint32_t v, unsigned size)
{
    address_space_store(&address_space_io, port, v, size);
}

static void cfg_select(unsigned slot, unsigned fn, unsigned reg)
{
    out(0xcf8, 0x80000000u | PCI_DEVFN(slot, fn) << 8 | (reg & ~3u), 4);
}

static uint32_t cfg_read(unsigned slot, unsigned fn, unsigned reg, unsigned size)
{
    cfg_select(slot, fn, reg);
    return in((uint16_t)(0xcfc + (reg & 3)), size);
}

static void cfg_write(unsigned slot, unsigned fn, unsigned reg, uint32_t v, unsigned size)
{
    cfg_select(slot, fn, reg);
    out((uint16_t)(0xcfc + (reg & 3)), v, size);
}

/* ---- A device to play with ---- */

typedef struct TestDev {
    PCIDevice pd;
    MemoryRegion mmio, mmio64, io;
    uint32_t reg;
} TestDev;

static uint64_t reg_read(void *opaque, hwaddr off, unsigned size)
{
    return ((TestDev *)opaque)->reg + off;
}

static void reg_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    ((TestDev *)opaque)->reg = (uint32_t)v;
}

static const MemoryRegionOps reg_ops = {
    .read = reg_read, .write = reg_write, .impl_min = 4, .impl_max = 4,
};

static bool testdev_realize(DeviceState *dev, Error **errp)
{
    TestDev *t = container_of(pci_device(dev), TestDev, pd);
    pci_set_ids(&t->pd, 0x1234, 0x5678, 1, 0xff00, 0);
    pci_set_interrupt_pin(&t->pd, 1);
    memory_region_init_io(&t->mmio, &reg_ops, t, "t.mmio", 0x1000);
    memory_region_init_container(&t->mmio64, "t.mmio64", 0x4000);
    memory_region_init_io(&t->io, &reg_ops, t, "t.io", 0x20);
    pci_register_bar(&t->pd, 0, PCI_BAR_MEM, &t->mmio);
    pci_register_bar(&t->pd, 1, PCI_BAR_IO, &t->io);
    pci_register_bar(&t->pd, 2, PCI_BAR_MEM64 | PCI_BAR_PREFETCH, &t->mmio64);
    return pci_msi_init(&t->pd, 4, true, errp) &&
           pci_msix_init(&t->pd, 66, &t->mmio64, 2, 0, 0x2000, errp);
}

static void testdev_reset(DeviceState *dev)
{
    pci_device_reset(pci_device(dev));
}

static const Property testdev_props[] = { PCI_PROPS(TestDev, pd), DEFINE_PROP_END };
static const DeviceType testdev_type = {
    .name = "test-pci", .bus = "pci", .instance_size = sizeof(TestDev), .props = testdev_props,
    .realize = testdev_realize, .reset = testdev_reset, .unrealize = NULL,
};

static TestDev *testdev;

static DeviceState *new_testdev(const char *addr, bool multi)
{
    DeviceState *dev = device_new(&testdev_type);
    if (addr) {
        device_set_prop(dev, "addr", addr, &error_abort);
    }
    device_set_prop(dev, "multifunction", multi ? "on" : "off", &error_abort);
    return dev;
}

/* ---- Tests: mechanism #1 ---- */

static void test_mechanism(void)
{
    out(0xcf8, 0x80000000, 4);
    g_assert_cmphex(in(0xcf8, 4), ==, 0x80000000);
    g_assert_cmphex(in(0xcfc, 4), ==, 0x12378086);
    g_assert_cmphex(in(0xcfe, 2), ==, 0x1237);
    g_assert_cmphex(in(0xcfd, 1), ==, 0x80);
    /* Narrow writes do not reach CONFIG_ADDRESS. */
    out(0xcf8, 0x11, 1);
    out(0xcf8, 0x2222, 2);
    g_assert_cmphex(in(0xcf8, 4), ==, 0x80000000);
    out(0xcf8, 0xffffffff, 4);
    g_assert_cmphex(in(0xcf8, 4), ==, 0x80fffffc);
    /* Absent function, other bus, mechanism disabled. */
    g_assert_cmphex(cfg_read(9, 0, 0, 4), ==, 0xffffffff);
    out(0xcf8, 0x80010000, 4);
    g_assert_cmphex(in(0xcfc, 4), ==, 0xffffffff);
    out(0xcf8, 0, 4);
    g_assert_cmphex(in(0xcfc, 4), ==, 0xffffffff);
    /* Identity is read-only. */
    cfg_write(0, 0, 0, 0, 4);
    g_assert_cmphex(cfg_read(0, 0, 0, 4), ==, 0x12378086);
    g_assert_cmphex(cfg_read(1, 0, 0, 4), ==, 0x70008086);
    g_assert_cmphex(cfg_read(1, 0, PCI_HEADER_TYPE, 1), ==, 0x80);
    g_assert_cmphex(cfg_read(1, 3, 0, 4), ==, 0x71138086);
}

static void expect_refused(const char *addr, bool multi, const char *part)
{
    Error *err = NULL;
    g_assert_false(device_realize(new_testdev(addr, multi), &bus->bus, &err));
    if (!strstr(error_get_pretty(err), part)) {
        g_error("\"%s\" lacks \"%s\"", error_get_pretty(err), part);
    }
    error_free(err);
}

static void test_addresses(void)
{
    expect_refused("20", false, "not a PCI address");
    expect_refused("4.8", false, "not a PCI address");
    expect_refused("4.", false, "not a PCI address");
    expect_refused("x", false, "not a PCI address");
    expect_refused("1.3", false, "in use by PIIX4_PM");
    expect_refused("0.1", false, "single-function");
    g_assert_true(device_realize(new_testdev("1e.2", false), &bus->bus, &error_abort));
    expect_refused("1e", false, "multifunction=on");
    g_assert_true(device_realize(new_testdev("1e.0", true), &bus->bus, &error_abort));
    g_assert_cmphex(cfg_read(0x1e, 0, PCI_HEADER_TYPE, 1), ==, 0x80);
    g_assert_cmphex(cfg_read(0x1e, 2, 0, 4), ==, 0x56781234);
}

/* ---- BARs ---- */

static void test_bars(void)
{
    /* Size probing. */
    cfg_write(2, 0, 0x10, 0xffffffff, 4);
    g_assert_cmphex(cfg_read(2, 0, 0x10, 4), ==, 0xfffff000);
    cfg_write(2, 0, 0x14, 0xffffffff, 4);
    g_assert_cmphex(cfg_read(2, 0, 0x14, 4), ==, 0xffffffe1);
    cfg_write(2, 0, 0x18, 0xffffffff, 4);
    cfg_write(2, 0, 0x1c, 0xffffffff, 4);
    g_assert_cmphex(cfg_read(2, 0, 0x18, 4), ==, 0xffffc00c);
    g_assert_cmphex(cfg_read(2, 0, 0x1c, 4), ==, 0xffffffff);
    /* Decoding follows the command register. */
    cfg_write(2, 0, 0x10, 0xe0000000, 4);
    cfg_write(2, 0, 0x14, 0xc000, 4);
    testdev->reg = 0x55;
    g_assert_cmphex(ldl_phys(0xe0000004), ==, 0xffffffff);
    cfg_write(2, 0, PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    g_assert_cmphex(ldl_phys(0xe0000004), ==, 0x59);
    g_assert_cmphex(in(0xc000, 4), ==, 0xffffffff);
    cfg_write(2, 0, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_IO, 2);
    out(0xc000, 0x77, 4);
    g_assert_cmphex(in(0xc008, 4), ==, 0x7f);
    /* Moved, and moved over RAM: RAM wins. */
    cfg_write(2, 0, 0x10, 0xe0100000, 4);
    g_assert_cmphex(ldl_phys(0xe0000004), ==, 0xffffffff);
    g_assert_cmphex(ldl_phys(0xe0100000), ==, 0x77);
    stl_phys(0x200000, 0x12345678);
    cfg_write(2, 0, 0x10, 0x200000, 4);
    g_assert_cmphex(ldl_phys(0x200000), ==, 0x12345678);
    cfg_write(2, 0, 0x10, 0xe0000000, 4);
    /* Above 4 GiB. */
    cfg_write(2, 0, 0x18, 0x40000000, 4);
    cfg_write(2, 0, 0x1c, 0x12, 4);
    stl_phys(0x1240000008, 0x4242);
    g_assert_cmphex(ldl_phys(0x1240000008), ==, 0x4242);
    /* Reset unmaps. */
    testdev_reset(&testdev->pd.dev);
    g_assert_cmphex(ldl_phys(0xe0000000), ==, 0xffffffff);
    g_assert_cmphex(cfg_read(2, 0, PCI_COMMAND, 2), ==, 0);
}

/* ---- Interrupts ---- */

static void test_intx(void)
{
    /* Slot 2, INTA: PIRQB. */
    cfg_write(1, 0, PIIX_PIRQRCA, 0x80808080, 4);
    pci_set_irq(&testdev->pd, 1);
    g_assert_cmphex(cfg_read(2, 0, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, !=, 0);
    for (unsigned i = 0; i < 16; i++) {
        g_assert_cmpint(isa_level[i], ==, 0);
    }
    cfg_write(1, 0, PIIX_PIRQRCA + 1, 11, 1);
    g_assert_cmpint(isa_level[11], ==, 1);
    cfg_write(1, 0, PIIX_PIRQRCA + 1, 10, 1);
    g_assert_cmpint(isa_level[11], ==, 0);
    g_assert_cmpint(isa_level[10], ==, 1);
    cfg_write(2, 0, PCI_COMMAND, PCI_COMMAND_INTX_DISABLE, 2);
    g_assert_cmpint(isa_level[10], ==, 0);
    g_assert_cmphex(cfg_read(2, 0, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, !=, 0);
    cfg_write(2, 0, PCI_COMMAND, 0, 2);
    g_assert_cmpint(isa_level[10], ==, 1);
    /* A second function on the same link: the line falls with the last one. */
    PCIDevice *other = pci_find_device(bus, PCI_DEVFN(0x1e, 0));
    g_assert_cmpuint(piix_slot_pirq(PCI_DEVFN(0x1e, 0), 0), ==, 1);
    pci_set_irq(other, 1);
    pci_set_irq(&testdev->pd, 0);
    g_assert_cmpint(isa_level[10], ==, 1);
    pci_set_irq(other, 0);
    g_assert_cmpint(isa_level[10], ==, 0);
    /* IRQ 0, 1, 2, 8, 13 can not be chosen. */
    pci_set_irq(&testdev->pd, 1);
    cfg_write(1, 0, PIIX_PIRQRCA + 1, 8, 1);
    g_assert_cmpint(isa_level[8], ==, 0);
    pci_set_irq(&testdev->pd, 0);
}

static void test_msi(void)
{
    PCIDevice *pd = &testdev->pd;
    unsigned cap = pd->msi_cap;
    msi_count = 0;
    cfg_write(2, 0, cap + 4, 0xfee01000, 4);
    cfg_write(2, 0, cap + 8, 0, 4);
    cfg_write(2, 0, cap + 12, 0x4041, 2);
    pci_msi_notify(pd, 0);
    g_assert_cmpuint(msi_count, ==, 0);
    cfg_write(2, 0, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
    cfg_write(2, 0, cap + 2, 0x21, 2); /* enabled, four vectors */
    pci_msi_notify(pd, 3);
    g_assert_cmpuint(msi_count, ==, 1);
    g_assert_cmphex(msi_addr, ==, 0xfee01000);
    g_assert_cmphex(msi_data, ==, 0x4043);
    cfg_write(2, 0, cap + 2, 0x11, 2); /* two vectors: 3 becomes 1 */
    pci_msi_notify(pd, 2);
    g_assert_cmphex(msi_data, ==, 0x4040);
    /* Masked: pending, sent when unmasked. */
    cfg_write(2, 0, cap + 16, 2, 4);
    pci_msi_notify(pd, 1);
    g_assert_cmpuint(msi_count, ==, 2);
    g_assert_cmphex(cfg_read(2, 0, cap + 20, 4), ==, 2);
    cfg_write(2, 0, cap + 16, 0, 4);
    g_assert_cmpuint(msi_count, ==, 3);
    g_assert_cmphex(msi_data, ==, 0x4041);
    g_assert_cmphex(cfg_read(2, 0, cap + 20, 4), ==, 0);
    /* MSI replaces the pin. */
    cfg_write(1, 0, PIIX_PIRQRCA + 1, 10, 1);
    pci_set_irq(pd, 1);
    g_assert_cmpint(isa_level[10], ==, 0);
    cfg_write(2, 0, cap + 2, 0, 2);
    g_assert_cmpint(isa_level[10], ==, 1);
    pci_set_irq(pd, 0);
    testdev_reset(&pd->dev);
}

static void test_msix(void)
{
    PCIDevice *pd = &testdev->pd;
    unsigned cap = pd->msix_cap;
    uint64_t table = 0xe0200000, pba = table + 0x2000;
    msi_count = 0;
    g_assert_cmphex(cfg_read(2, 0, cap + 2, 2), ==, 65);
    cfg_write(2, 0, 0x18, (uint32_t)table, 4);
    cfg_write(2, 0, 0x1c, 0, 4);
    cfg_write(2, 0, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    cfg_write(2, 0, cap + 2, 0x8000, 2);
    stl_phys(table + 65 * 16, 0xfee02003);
    stl_phys(table + 65 * 16 + 8, 0x77);
    g_assert_cmphex(ldl_phys(table + 65 * 16), ==, 0xfee02000);
    g_assert_cmphex(ldl_phys(table + 65 * 16 + 12), ==, 1);
    pci_msix_notify(pd, 65); /* masked */
    g_assert_cmpuint(msi_count, ==, 0);
    g_assert_cmphex(ldq_phys(pba + 8), ==, 2);
    stl_phys(table + 65 * 16 + 12, 0);
    g_assert_cmpuint(msi_count, ==, 1);
    g_assert_cmphex(msi_data, ==, 0x77);
    g_assert_cmphex(ldq_phys(pba + 8), ==, 0);
    cfg_write(2, 0, cap + 2, 0xc000, 2); /* function mask */
    pci_msix_notify(pd, 65);
    g_assert_cmpuint(msi_count, ==, 1);
    cfg_write(2, 0, cap + 2, 0x8000, 2);
    g_assert_cmpuint(msi_count, ==, 2);
    pci_msix_notify(pd, 66); /* no such vector */
    g_assert_cmpuint(msi_count, ==, 2);
    testdev_reset(&pd->dev);
    g_assert_cmphex(cfg_read(2, 0, cap + 2, 2), ==, 65);
}

static uint8_t fixed_irq(uint8_t devfn, unsigned pin)
{
    return (uint8_t)(pin + 10);
}

static void test_assign(void)
{
    g_assert_true(pci_assign_resources(bus, 0xc0000000, 0xc0100000, 0xc000, 0x10000, fixed_irq));
    uint32_t mem = cfg_read(2, 0, 0x10, 4), io = cfg_read(2, 0, 0x14, 4);
    g_assert_cmphex(mem & 0xfff00fff, ==, 0xc0000000);
    g_assert_cmphex(cfg_read(2, 0, PCI_INTERRUPT_LINE, 1), ==, 10);
    testdev->reg = 0x1000;
    g_assert_cmphex(ldl_phys(mem), ==, 0x1000);
    g_assert_cmphex(in((uint16_t)(io & ~3u), 4), ==, 0x1000);
    testdev_reset(&testdev->pd.dev);
    g_assert_false(pci_assign_resources(bus, 0xc0000000, 0xc0001000, 0xc000, 0xc010, fixed_irq));
    device_reset_all();
}

/* ---- Host bridge ---- */

static void pam(unsigned reg, uint8_t v)
{
    cfg_write(0, 0, reg, v, 1);
}

static void test_pam(void)
{
    /* Reset: the ROM is seen, writes are lost. */
    stl_phys(0xf0000, 0x11111111);
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0xb105b105);
    g_assert_cmphex(ldl_phys(0xc0000), ==, 0xffffffff);
    /* Write-only: RAM changes under the ROM. */
    pam(0x59, 0x20);
    stl_phys(0xf0000, 0x22222222);
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0xb105b105);
    pam(0x59, 0x10);
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0x22222222);
    stl_phys(0xf0000, 0x33333333);
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0x22222222);
    pam(0x59, 0x30);
    stl_phys(0xf0000, 0x33333333);
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0x33333333);
    /* Segments are apart: CC000h is the high nibble of 5Bh. */
    pam(0x5b, 0x30);
    stl_phys(0xcc000, 0x44444444);
    stl_phys(0xc8000, 0x44444444);
    g_assert_cmphex(ldl_phys(0xcc000), ==, 0x44444444);
    g_assert_cmphex(ldl_phys(0xc8000), ==, 0xffffffff);
    pam(0x5a, 0x02);
    stl_phys(0xc0000, 0x55555555); /* write-only with nothing beneath */
    g_assert_cmphex(ldl_phys(0xc0000), ==, 0xffffffff);
    pam(0x5a, 0x01);
    g_assert_cmphex(ldl_phys(0xc0000), ==, 0x55555555);
    g_assert_cmphex(cfg_read(0, 0, 0x59, 1), ==, 0x30);
    device_reset_all();
    g_assert_cmphex(ldl_phys(0xf0000), ==, 0xb105b105);
    /* Above it all the ROM does not appear by itself: the board maps it below 4 GiB. */
    g_assert_cmphex(ldl_phys(0x100000 - 4), ==, 0xfeedf00d);
}

static void test_smram(void)
{
    memset(ram->host + 0xa0000, 0xcc, 4);
    g_assert_cmphex(ldl_phys(0xa0000), ==, 0xffffffff);
    cfg_write(0, 0, I440FX_SMRAM, 0x4a, 1);
    g_assert_cmphex(ldl_phys(0xa0000), ==, 0xcccccccc);
    cfg_write(0, 0, I440FX_SMRAM, 0x5a, 1); /* lock: closes */
    g_assert_cmphex(cfg_read(0, 0, I440FX_SMRAM, 1), ==, 0x1a);
    g_assert_cmphex(ldl_phys(0xa0000), ==, 0xffffffff);
    cfg_write(0, 0, I440FX_SMRAM, 0x4a, 1);
    g_assert_cmphex(cfg_read(0, 0, I440FX_SMRAM, 1), ==, 0x1a);
    device_reset_all();
    g_assert_cmphex(cfg_read(0, 0, I440FX_SMRAM, 1), ==, 0x02);
    cfg_write(0, 0, I440FX_SMRAM, 0x4a, 1);
    g_assert_cmphex(ldl_phys(0xa0000), ==, 0xcccccccc);
    device_reset_all();
}

/* ---- Power management ---- */

static void pm_enable(void)
{
    cfg_write(1, 3, PIIX4_PMBASE, PIIX4_PM_IO, 4);
    cfg_write(1, 3, PIIX4_PMREGMISC, 1, 1);
    g_assert_cmphex(cfg_read(1, 3, PIIX4_PMBASE, 4), ==, PIIX4_PM_IO | 1);
}

static void test_pm_timer(void)
{
    g_assert_cmphex(in(0x608, 4), ==, 0xffffffff);
    pm_enable();
    clock_virtual_advance_to(NANOSECONDS_PER_SECOND);
    uint32_t t0 = in(0x608, 4);
    clock_virtual_advance_to(2 * NANOSECONDS_PER_SECOND);
    g_assert_cmpuint((in(0x608, 4) - t0) & 0xffffff, ==, 3579545);
    g_assert_cmphex(in(0x609, 1), ==, in(0x608, 4) >> 8 & 0xff);
    /* TMR_STS when bit 23 changes: at 2^23 ticks, 2.3435 s. */
    out(0x600, 1, 2);
    out(0x602, 1, 2);
    out(0xb2, ACPI_ENABLE, 1);
    g_assert_cmphex(in(0x604, 2) & 1, ==, 1);
    g_assert_cmpint(sci_level, ==, 0);
    clock_virtual_advance_to(2343484437);
    g_assert_cmpint(sci_level, ==, 0);
    clock_virtual_advance_to(2343490000);
    g_assert_cmpint(sci_level, ==, 1);
    g_assert_cmphex(in(0x600, 2) & 1, ==, 1);
    out(0x600, 1, 2);
    g_assert_cmpint(sci_level, ==, 0);
    clock_virtual_advance_to(4686990000);
    g_assert_cmpint(sci_level, ==, 1);
    /* SCI needs SCI_EN. */
    out(0xb2, ACPI_DISABLE, 1);
    g_assert_cmpint(sci_level, ==, 0);
    g_assert_cmphex(in(0xb2, 1), ==, ACPI_DISABLE);
    device_reset_all();
    g_assert_cmphex(in(0x608, 4), ==, 0xffffffff);
}

static void test_pm_registers(void)
{
    pm_enable();
    out(0x602, 0xffff, 2);
    g_assert_cmphex(in(0x602, 2), ==, 0x0721);
    out(0x602, 0, 1);
    g_assert_cmphex(in(0x602, 2), ==, 0x0700);
    out(0x604, 0x1c03, 2);
    g_assert_cmphex(in(0x604, 2), ==, 0x1c03);
    out(0x60e, 0x1234, 2);
    g_assert_cmphex(in(0x60c, 4), ==, 0x12340000);
    /* SLP_TYP 7 is no state of this machine: nothing happens. */
    out(0x604, 0x3c01, 2);
    g_assert_cmphex(in(0x604, 2), ==, 0x1c01);
    cfg_write(1, 3, PIIX4_PMBASE, 0x700, 4);
    g_assert_cmphex(in(0x602, 2), ==, 0xffff);
    g_assert_cmphex(in(0x702, 2), ==, 0x0700);
    device_reset_all();
}

static void test_reset_register(void)
{
    g_assert_cmphex(in(0xcf9, 1), ==, 0);
    out(0xcf9, 2, 1);
    g_assert_cmphex(in(0xcf9, 1), ==, 2);
    device_reset_all();
    g_assert_cmphex(in(0xcf9, 1), ==, 0);
}

/* ---- fw_cfg ---- */

static void fw_read(uint16_t key, void *buf, unsigned len)
{
    out(0x510, key, 2);
    for (unsigned i = 0; i < len; i++) {
        ((uint8_t *)buf)[i] = (uint8_t)in(0x511, 1);
    }
}

static void test_fw_cfg_ports(void)
{
    uint8_t b[80];
    fw_read(FW_CFG_SIGNATURE, b, 6);
    g_assert_cmpmem(b, 6, "QEMU\0\0", 6); /* zeros past the end */
    fw_read(FW_CFG_ID, b, 4);
    g_assert_cmpmem(b, 4, "\3\0\0\0", 4);
    fw_read(0x1234, b, 2);
    g_assert_cmpmem(b, 2, "\0\0", 2);
    fw_read(FW_CFG_FILE_DIR, b, 4 + 64);
    g_assert_cmpuint(b[3], ==, 2);
    g_assert_cmpstr((char *)b + 12, ==, "a/first"); /* sorted, whatever came first */
    g_assert_cmpuint(b[7], ==, 5);
    uint16_t key = (uint16_t)(b[8] << 8 | b[9]);
    fw_read(key, b, 5);
    g_assert_cmpmem(b, 5, "first", 5);
    fw_read(key | FW_CFG_WRITE_CHANNEL, b, 5);
    g_assert_cmpmem(b, 5, "first", 5);
    g_assert_cmphex(in(0x514, 4), ==, 0x554d4551); /* "QEMU" */
    g_assert_cmphex(in(0x518, 4), ==, 0x47464320); /* " CFG" */
    Error *err = NULL;
    g_assert_false(fw_cfg_add_file(fw, "a/first", "", 0, &err));
    error_free(err);
}

static uint32_t dma(uint32_t control, uint32_t len, uint64_t addr)
{
    const uint64_t desc = 0x3000;
    stl_phys(desc, GUINT32_SWAP_LE_BE(control));
    stl_phys(desc + 4, GUINT32_SWAP_LE_BE(len));
    stq_phys(desc + 8, GUINT64_SWAP_LE_BE(addr));
    out(0x514, 0, 4);
    out(0x518, GUINT32_SWAP_LE_BE((uint32_t)desc), 4);
    return GUINT32_SWAP_LE_BE(ldl_phys(desc));
}

static void test_fw_cfg_dma(void)
{
    char b[16];
    uint32_t sel = FW_CFG_DMA_SELECT | FW_CFG_SIGNATURE << 16;
    memset(ram->host + 0x4000, 0xee, 16);
    g_assert_cmphex(dma(sel | FW_CFG_DMA_READ, 8, 0x4000), ==, 0);
    address_space_read(&address_space_memory, 0x4000, b, 9);
    g_assert_cmpmem(b, 9, "QEMU\0\0\0\0\xee", 9);
    g_assert_cmphex(dma(sel | FW_CFG_DMA_SKIP, 2, 0), ==, 0);
    g_assert_cmphex(in(0x511, 1), ==, 'M');
    g_assert_cmphex(dma(FW_CFG_DMA_READ, 1, 0x4000), ==, 0);
    g_assert_cmphex(ram->host[0x4000], ==, 'U');
    /* Refused: writes, targets that are no RAM, wrap-around. */
    g_assert_cmphex(dma(sel | FW_CFG_DMA_WRITE, 4, 0x4000), ==, FW_CFG_DMA_ERROR);
    g_assert_cmphex(dma(sel | FW_CFG_DMA_READ, 4, RAM_SIZE - 2), ==, FW_CFG_DMA_ERROR);
    g_assert_cmphex(dma(sel | FW_CFG_DMA_READ, 4, 0xf0000), ==, FW_CFG_DMA_ERROR);
    g_assert_cmphex(dma(sel | FW_CFG_DMA_READ, 16, UINT64_MAX - 7), ==, FW_CFG_DMA_ERROR);
    g_assert_cmphex(dma(sel, 0, 0), ==, 0);
    /* A descriptor that is not there does nothing. */
    out(0x514, 0x000000ff, 4);
    out(0x518, 0, 4);
}

/* ---- Set-up ---- */

static void set_isa(void *opaque, int n, int level)
{
    isa_level[n] = level;
}

static void set_sci(void *opaque, int n, int level)
{
    sci_level = level;
}

static void record_msi(uint64_t addr, uint32_t data)
{
    msi_addr = addr;
    msi_data = data;
    msi_count++;
}

static const IrqChipOps test_chip = { .name = "test", .send_msi = record_msi };

static void make_chipset(void)
{
    I440fxSetup setup = { .ram = &ram_mr, .ram_block = ram, .bios = bios };
    IrqLine isa[16];
    pcihost = device_new_named("i440FX-pcihost");
    i440fx_pcihost_setup(pcihost, &setup);
    device_realize(pcihost, NULL, &error_abort);
    bus = i440fx_pcihost_bus(pcihost);
    host_fn = device_new_named("i440FX");
    device_set_prop(host_fn, "addr", "0", &error_abort);
    device_realize(host_fn, &bus->bus, &error_abort);
    piix = device_new_named("PIIX3");
    device_set_prop(piix, "addr", "1.0", &error_abort);
    device_set_prop(piix, "multifunction", "on", &error_abort);
    for (int i = 0; i < 16; i++) {
        isa[i] = (IrqLine){ .set = set_isa, .n = i };
    }
    piix3_set_outputs(piix, isa);
    device_realize(piix, &bus->bus, &error_abort);
    piix3_connect(piix, bus, i440fx_pcihost_host(pcihost));
    pm = device_new_named("PIIX4_PM");
    device_set_prop(pm, "addr", "1.3", &error_abort);
    piix4_pm_set_sci(pm, (IrqLine){ .set = set_sci });
    device_realize(pm, &bus->bus, &error_abort);
    DeviceState *dev = new_testdev(NULL, false);
    device_realize(dev, &bus->bus, &error_abort);
    testdev = container_of(pci_device(dev), TestDev, pd);
    g_assert_cmpuint(testdev->pd.devfn, ==, PCI_DEVFN(2, 0));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    memory_init();
    event_loop_set_main(event_loop_new("main", &error_abort));
    clock_virtual_set_manual();
    irqchip = &test_chip;
    ram = ram_block_new("ram", RAM_SIZE, 0, -1, &error_abort);
    bios = ram_block_new("bios", BIOS_SIZE, RAM_ROM, -1, &error_abort);
    static const uint8_t mark[] = { 0x05, 0xb1, 0x05, 0xb1 }, end[] = { 0x0d, 0xf0, 0xed, 0xfe };
    memcpy(bios->host + BIOS_SIZE - 0x10000, mark, 4);
    memcpy(bios->host + BIOS_SIZE - 4, end, 4);
    memory_region_init_ram(&ram_mr, ram, "ram");
    memory_region_add_subregion(memory_root(), 0, &ram_mr, 0);
    make_chipset();
    fw = device_new_named("fw_cfg");
    device_realize(fw, NULL, &error_abort);
    g_assert_true(fw_cfg_add_file(fw, "b/second", "2", 1, &error_abort));
    g_assert_true(fw_cfg_add_file(fw, "a/first", "first", 5, &error_abort));
    g_test_add_func("/pci/mechanism", test_mechanism);
    g_test_add_func("/pci/addresses", test_addresses);
    g_test_add_func("/pci/bars", test_bars);
    g_test_add_func("/pci/intx", test_intx);
    g_test_add_func("/pci/msi", test_msi);
    g_test_add_func("/pci/msix", test_msix);
    g_test_add_func("/pci/assign", test_assign);
    g_test_add_func("/i440fx/pam", test_pam);
    g_test_add_func("/i440fx/smram", test_smram);
    g_test_add_func("/piix/pm-timer", test_pm_timer);
    g_test_add_func("/piix/pm-registers", test_pm_registers);
    g_test_add_func("/piix/reset-register", test_reset_register);
    g_test_add_func("/fw_cfg/ports", test_fw_cfg_ports);
    g_test_add_func("/fw_cfg/dma", test_fw_cfg_dma);
    return g_test_run();
}
