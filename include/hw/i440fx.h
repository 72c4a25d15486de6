/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chip set of the "pc" board: 82441FX-like host bridge (Intel 290549), 82371SB-like ISA bridge
 * (PIIX3, Intel 290550) and 82371AB-like power management function (PIIX4, Intel 290562).
 */
#ifndef HW_I440FX_H
#define HW_I440FX_H

#include "hw/pci.h"

/* ---- Host bridge: "i440FX-pcihost" (system bus, owns pci.0) and "i440FX" (function 00.0) ---- */

typedef struct I440fxSetup {
    MemoryRegion *ram;      /* region with RAM at offset = guest-physical address, below 4 GiB */
    RAMBlock *ram_block;    /* its memory at offset 0 */
    RAMBlock *bios;         /* ROM whose last byte is at 0xfffff; NULL: none */
} I440fxSetup;

/* Start-up, before device_realize of "i440FX-pcihost". setup is copied. */
void i440fx_pcihost_setup(DeviceState *pcihost, const I440fxSetup *setup);
/* After it: the bus, and the mechanism-#1 ports. */
PCIBus *i440fx_pcihost_bus(DeviceState *pcihost);
PCIHost *i440fx_pcihost_host(DeviceState *pcihost);

/* Registers that boards without firmware program themselves. */
#define I440FX_PAM0  0x59 /* ..5f: two bits (read, write from RAM) a segment, one nibble each */
#define I440FX_PAM_E0000 (I440FX_PAM0 + 5) /* E0000h-E7FFFh; E8000h-EFFFFh is the next */
#define I440FX_SMRAM 0x72

/* ---- ISA bridge "PIIX3" ---- */

#define PIIX_PIRQRCA   0x60 /* ..63: routing of PIRQA-D */
#define PIIX_PIRQ_OFF  0x80
#define PIIX_NUM_PIRQS 4

/* PIRQ 0..3 that INTA-D (pin 0..3) of a slot is wired to on this board. */
static inline unsigned piix_slot_pirq(uint8_t devfn, unsigned pin)
{
    return (PCI_SLOT(devfn) - 1u + pin) & 3;
}
/* Start-up, before realize: ISA interrupt lines that PIRQs are routed to. */
void piix3_set_outputs(DeviceState *piix3, const IrqLine isa[16]);
/* Start-up, after realize: takes over a bus's INTx routing and port 0cf9h. */
void piix3_connect(DeviceState *piix3, PCIBus *bus, PCIHost *host);

/* ---- Power management "PIIX4_PM" ---- */

#define PIIX4_PMBASE    0x40
#define PIIX4_PMREGMISC 0x80
#define PIIX4_PM_IO     0x600 /* where firmware and ACPI tables expect the block */
#define ACPI_SCI_IRQ    9
#define ACPI_SMI_CMD    0xb2
#define ACPI_ENABLE     0xf1
#define ACPI_DISABLE    0xf0

/* Start-up. */
void piix4_pm_set_sci(DeviceState *pm, IrqLine sci);
/* SLP_TYP of S4; 0xff if S4 is disabled. */
uint8_t piix4_pm_s4_val(DeviceState *pm);
bool piix4_pm_s4_enabled(DeviceState *pm);
bool piix4_pm_s3_enabled(DeviceState *pm);
/* The level of the RTC's interrupt output: its alarm can wake the machine. RT_SAFE. */
void piix4_pm_rtc(DeviceState *pm, int level);
/* A general purpose event (0..15) of a device on the board. RT_SAFE. */
void piix4_pm_set_gpe(DeviceState *pm, unsigned gpe);

#endif
