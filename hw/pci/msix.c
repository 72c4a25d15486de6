/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MSI-X, PCI 3.0 section 6.8.2: a table of messages and an array of pending bits in a BAR. The
 * capability: +2 Message Control, +4 table offset and BAR, +8 pending bits' offset and BAR.
 */
#include <glib.h>
#include "accel/irqchip.h"
#include "hw/pci.h"

#define MSIX_CTRL_ENABLE 0x8000u
#define MSIX_CTRL_MASK   0x4000u
#define MSIX_MAX         2048

static uint16_t msix_ctrl(const PCIDevice *pd)
{
    return pci_get_word(pd->config + pd->msix_cap + 2);
}

static bool msix_masked(const PCIDevice *pd, unsigned n)
{
    return msix_ctrl(pd) & MSIX_CTRL_MASK || pd->msix_table[n].ctrl & 1;
}

/* Enabled and not masked: deliver; enabled and masked: pending. config_lock held. */
static void msix_fire(PCIDevice *pd, unsigned n)
{
    const MsixEntry *e = &pd->msix_table[n];
    if (msix_masked(pd, n)) {
        pd->msix_pba[n / 64] |= BIT64(n % 64);
        return;
    }
    pd->msix_pba[n / 64] &= ~BIT64(n % 64);
    if (irqchip && (pd->config[PCI_COMMAND] & PCI_COMMAND_MASTER)) {
        irqchip->send_msi(e->addr, e->data);
    }
}

/* config_lock held. */
static void msix_fire_pending(PCIDevice *pd, unsigned n)
{
    if (msix_ctrl(pd) & MSIX_CTRL_ENABLE && !msix_masked(pd, n) &&
        pd->msix_pba[n / 64] & BIT64(n % 64)) {
        msix_fire(pd, n);
    }
}

bool pci_msix_enabled(PCIDevice *pd)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    return pd->msix_cap && msix_ctrl(pd) & MSIX_CTRL_ENABLE;
}

void pci_msix_notify(PCIDevice *pd, unsigned n)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    if (n < pd->msix_vectors && msix_ctrl(pd) & MSIX_CTRL_ENABLE) {
        msix_fire(pd, n);
    }
}

void pci_msix_config_written(PCIDevice *pd)
{
    if (!(msix_ctrl(pd) & MSIX_CTRL_ENABLE) || msix_ctrl(pd) & MSIX_CTRL_MASK) {
        return;
    }
    for (unsigned w = 0; w < DIV_ROUND_UP(pd->msix_vectors, 64u); w++) {
        for (uint64_t bits = pd->msix_pba[w]; bits; bits &= bits - 1) {
            msix_fire_pending(pd, w * 64 + (unsigned)__builtin_ctzll(bits));
        }
    }
}

static uint64_t table_read(void *opaque, hwaddr off, unsigned size)
{
    PCIDevice *pd = opaque;
    const MsixEntry *e = &pd->msix_table[off / 16];
    QEMU_LOCK_GUARD(&pd->config_lock);
    switch (off % 16 / 4) {
    case 0:
        return (uint32_t)e->addr;
    case 1:
        return e->addr >> 32;
    case 2:
        return e->data;
    default:
        return e->ctrl;
    }
}

static void table_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    PCIDevice *pd = opaque;
    unsigned n = (unsigned)(off / 16);
    MsixEntry *e = &pd->msix_table[n];
    QEMU_LOCK_GUARD(&pd->config_lock);
    switch (off % 16 / 4) {
    case 0:
        e->addr = (e->addr & ~0xffffffffull) | (v & 0xfffffffc);
        break;
    case 1:
        e->addr = (uint32_t)e->addr | (v & 0xffffffff) << 32;
        break;
    case 2:
        e->data = (uint32_t)v;
        break;
    default:
        e->ctrl = (uint32_t)v & 1;
        msix_fire_pending(pd, n);
        break;
    }
}

static uint64_t pba_read(void *opaque, hwaddr off, unsigned size)
{
    PCIDevice *pd = opaque;
    QEMU_LOCK_GUARD(&pd->config_lock);
    return (uint32_t)(pd->msix_pba[off / 8] >> (off % 8 * 8));
}

static void pba_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    /* Read-only for software (6.8.2.10). */
}

static const MemoryRegionOps table_ops = {
    .read = table_read, .write = table_write, .valid_min = 4, .valid_max = 8, .impl_min = 4,
    .impl_max = 4,
};
static const MemoryRegionOps pba_ops = {
    .read = pba_read, .write = pba_write, .valid_min = 4, .valid_max = 8, .impl_min = 4,
    .impl_max = 4,
};

bool pci_msix_init(PCIDevice *pd, unsigned vectors, MemoryRegion *bar_region, unsigned bar,
                   uint32_t table_offset, uint32_t pba_offset, Error **errp)
{
    unsigned words = DIV_ROUND_UP(vectors, 64u);
    if (vectors < 1 || vectors > MSIX_MAX) {
        error_setg(errp, "%s: %u MSI-X vectors: must be 1-%u", pd->dev.type->name, vectors,
                   MSIX_MAX);
        return false;
    }
    uint8_t cap = pci_add_capability(pd, PCI_CAP_ID_MSIX, 12, errp);
    if (!cap) {
        return false;
    }
    pci_set_word(pd->config + cap + 2, (uint16_t)(vectors - 1));
    pci_set_long(pd->config + cap + 4, table_offset | bar);
    pci_set_long(pd->config + cap + 8, pba_offset | bar);
    pci_set_word(pd->wmask + cap + 2, MSIX_CTRL_ENABLE | MSIX_CTRL_MASK);
    pd->msix_cap = cap;
    pd->msix_vectors = (uint16_t)vectors;
    pd->msix_table = g_new0(MsixEntry, vectors);
    pd->msix_pba = g_new0(uint64_t, words);
    for (unsigned i = 0; i < vectors; i++) {
        pd->msix_table[i].ctrl = 1;
    }
    memory_region_init_io(&pd->msix_table_mr, &table_ops, pd, "msix-table", vectors * 16ull);
    memory_region_init_io(&pd->msix_pba_mr, &pba_ops, pd, "msix-pba", words * 8ull);
    memory_region_add_subregion(bar_region, table_offset, &pd->msix_table_mr, 1);
    memory_region_add_subregion(bar_region, pba_offset, &pd->msix_pba_mr, 1);
    return true;
}

void pci_msix_fini(PCIDevice *pd)
{
    memory_region_del_subregion(pd->msix_table_mr.container, &pd->msix_table_mr);
    memory_region_del_subregion(pd->msix_pba_mr.container, &pd->msix_pba_mr);
    g_free(pd->msix_table);
    g_free(pd->msix_pba);
    pd->msix_table = NULL;
    pd->msix_pba = NULL;
    pd->msix_vectors = 0;
    pd->msix_cap = 0;
}
