/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration mechanism #1 (PCI 3.0, 3.2.2.3.2): CONFIG_ADDRESS at 0cf8h takes double words only;
 * narrower accesses there pass the host bridge and reach what lies on the bus, of which the reset
 * control register at 0cf9h is the one in use. CONFIG_DATA at 0cfch takes any size.
 */
#include "hw/pci.h"

#define CONFIG_ENABLE  0x80000000u
#define CONFIG_ADDRESS 0x80fffffcu /* bits that exist */

static uint64_t addr_read(void *opaque, hwaddr off, unsigned size)
{
    PCIHost *h = opaque;
    if (size == 4) {
        return atomic_load_explicit(&h->config_address, memory_order_relaxed);
    }
    if (size == 1 && off == 1 && h->cf9_read) {
        return h->cf9_read(h->cf9_opaque);
    }
    return UINT64_MAX;
}

static void addr_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    PCIHost *h = opaque;
    if (size == 4) {
        atomic_store_explicit(&h->config_address, (uint32_t)v & CONFIG_ADDRESS,
                              memory_order_relaxed);
    } else if (size == 1 && off == 1 && h->cf9_write) {
        h->cf9_write(h->cf9_opaque, (uint8_t)v);
    }
}

/* A type 0 or 1 cycle: only bus 0 exists behind this bridge as long as there are no bridges. */
static bool data_target(PCIHost *h, hwaddr off, uint8_t *devfn, unsigned *reg)
{
    uint32_t a = atomic_load_explicit(&h->config_address, memory_order_relaxed);
    *devfn = (uint8_t)(a >> 8);
    *reg = (a & 0xfc) | ((unsigned)off & 3);
    return a & CONFIG_ENABLE && (uint8_t)(a >> 16) == h->bus->number;
}

static uint64_t data_read(void *opaque, hwaddr off, unsigned size)
{
    PCIHost *h = opaque;
    uint8_t devfn;
    unsigned reg;
    if (!data_target(h, off, &devfn, &reg)) {
        return UINT64_MAX;
    }
    return pci_config_read(h->bus, devfn, reg, size);
}

static void data_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    PCIHost *h = opaque;
    uint8_t devfn;
    unsigned reg;
    if (data_target(h, off, &devfn, &reg)) {
        pci_config_write(h->bus, devfn, reg, (uint32_t)v, size);
    }
}

static const MemoryRegionOps addr_ops = {
    .read = addr_read, .write = addr_write, .valid_max = 4, .impl_max = 4,
};
static const MemoryRegionOps data_ops = {
    .read = data_read, .write = data_write, .valid_max = 4, .impl_max = 4,
};

void pci_host_init(PCIHost *h, PCIBus *bus)
{
    h->bus = bus;
    memory_region_init_io(&h->addr_mr, &addr_ops, h, "pci-config-address", 4);
    memory_region_init_io(&h->data_mr, &data_ops, h, "pci-config-data", 4);
    memory_region_add_subregion(io_root(), 0xcf8, &h->addr_mr, 0);
    memory_region_add_subregion(io_root(), 0xcfc, &h->data_mr, 0);
}

void pci_host_reset(PCIHost *h)
{
    atomic_store_explicit(&h->config_address, 0, memory_order_relaxed);
}
