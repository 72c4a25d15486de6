/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Message signalled interrupts, PCI 3.0 section 6.8.1. Layout of the capability with a 64-bit
 * address: +2 Message Control, +4 address, +8 upper address, +12 data, and with per-vector masking
 * +16 mask bits, +20 pending bits.
 */
#include "accel/irqchip.h"
#include "hw/pci.h"

#define MSI_CTRL_ENABLE     0x0001u
#define MSI_CTRL_MMC_SHIFT  1 /* Multiple Message Capable: log2 of the vectors wanted */
#define MSI_CTRL_MME_SHIFT  4 /* Multiple Message Enable: log2 of those granted */
#define MSI_CTRL_MME        0x0070u
#define MSI_CTRL_64BIT      0x0080u
#define MSI_CTRL_MASKBIT    0x0100u
#define MSI_MASK            16
#define MSI_PENDING         20

bool pci_msi_init(PCIDevice *pd, unsigned vectors, bool mask, Error **errp)
{
    unsigned log2 = (unsigned)__builtin_ctz(vectors);
    uint8_t cap = pci_add_capability(pd, PCI_CAP_ID_MSI, mask ? 24 : 14, errp);
    if (!cap) {
        return false;
    }
    pd->msi_cap = cap;
    pd->msi_vectors = (uint8_t)vectors;
    pci_set_word(pd->config + cap + 2, (uint16_t)(log2 << MSI_CTRL_MMC_SHIFT | MSI_CTRL_64BIT |
                                                  (mask ? MSI_CTRL_MASKBIT : 0)));
    pci_set_word(pd->wmask + cap + 2, MSI_CTRL_ENABLE | MSI_CTRL_MME);
    pci_set_long(pd->wmask + cap + 4, 0xfffffffc);
    pci_set_long(pd->wmask + cap + 8, 0xffffffff);
    pci_set_word(pd->wmask + cap + 12, 0xffff);
    if (mask) {
        pci_set_long(pd->wmask + cap + MSI_MASK, (uint32_t)(BIT64(vectors) - 1));
    }
    return true;
}

static unsigned msi_granted(const PCIDevice *pd)
{
    uint16_t ctrl = pci_get_word(pd->config + pd->msi_cap + 2);
    unsigned n = 1u << ((ctrl & MSI_CTRL_MME) >> MSI_CTRL_MME_SHIFT);
    return MIN(n, pd->msi_vectors); /* a grant above what was asked for is reserved */
}

/* config_lock held. */
static void msi_send(PCIDevice *pd, unsigned n)
{
    const uint8_t *c = pd->config + pd->msi_cap;
    uint64_t addr = pci_get_long(c + 4) | (uint64_t)pci_get_long(c + 8) << 32;
    /* The function may change the low bits of the data to tell its vectors apart. */
    uint32_t data = (pci_get_word(c + 12) & ~(msi_granted(pd) - 1)) | n;
    if (irqchip && (pd->config[PCI_COMMAND] & PCI_COMMAND_MASTER)) {
        irqchip->send_msi(addr, data);
    }
}

static bool msi_has_mask(const PCIDevice *pd)
{
    return pci_get_word(pd->config + pd->msi_cap + 2) & MSI_CTRL_MASKBIT;
}

bool pci_msi_enabled(PCIDevice *pd)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    return pd->msi_cap && pd->config[pd->msi_cap + 2] & MSI_CTRL_ENABLE;
}

void pci_msi_notify(PCIDevice *pd, unsigned n)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    uint8_t *c = pd->config + pd->msi_cap;
    if (!pd->msi_cap || !(c[2] & MSI_CTRL_ENABLE)) {
        return;
    }
    n &= msi_granted(pd) - 1;
    if (msi_has_mask(pd) && pci_get_long(c + MSI_MASK) & BIT(n)) {
        pci_set_long(c + MSI_PENDING, pci_get_long(c + MSI_PENDING) | BIT(n));
        return;
    }
    msi_send(pd, n);
}

void pci_msi_config_written(PCIDevice *pd)
{
    uint8_t *c = pd->config + pd->msi_cap;
    if (!(c[2] & MSI_CTRL_ENABLE) || !msi_has_mask(pd)) {
        return;
    }
    uint32_t due = pci_get_long(c + MSI_PENDING) & ~pci_get_long(c + MSI_MASK);
    pci_set_long(c + MSI_PENDING, pci_get_long(c + MSI_PENDING) & ~due);
    for (; due; due &= due - 1) {
        msi_send(pd, (unsigned)__builtin_ctz(due));
    }
}

void pci_msi_reset(PCIDevice *pd)
{
    if (pd->msi_cap && msi_has_mask(pd)) {
        pci_set_long(pd->config + pd->msi_cap + MSI_PENDING, 0);
    }
    for (unsigned i = 0; i < pd->msix_vectors; i++) {
        pd->msix_table[i] = (MsixEntry){ .ctrl = 1 }; /* 6.8.2.9: masked after reset */
        pd->msix_pba[i / 64] = 0;
    }
}
