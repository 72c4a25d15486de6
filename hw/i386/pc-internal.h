/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the "pc" board, private to hw/i386. A machine is one; its parts never go away. */
#ifndef HW_I386_PC_INTERNAL_H
#define HW_I386_PC_INTERNAL_H

#include "accel/cpu.h"
#include "hw/i386/boot.h"
#include "hw/i440fx.h"
#include "hw/isa.h"
#include "hw/machine.h"
#include "memory/memory.h"

#define PC_PCI_MEM_BASE  0xc0000000ull
#define PC_PCI_MEM_LIMIT 0xfec00000ull
#define PC_PCI_IO_BASE   0xc000u
#define PC_PCI_IO_LIMIT  0x10000u

/* Who may pull a GSI; they are ORed. */
enum { PC_SOURCE_ISA, PC_SOURCE_PIRQ, PC_SOURCE_SCI, PC_SOURCE_HPET, PC_SOURCE_FERR };

typedef struct PcState {
    const MachineConfig *cfg;
    uint64_t below_4g;
    unsigned resets; /* counted up to 2 */

    RAMBlock *ram, *bios;
    MemoryRegion ram_mr, ram_below, ram_above, bios_mr, apic_mr;
    MemoryRegion port80_mr, portf0_mr;

    DeviceState *pcihost, *i440fx, *piix3, *pm, *cpus;
    DeviceState *rtc, *hpet, *fw_cfg;
    PCIBus *pci;
    IsaBus isa;

    size_t madt_enabled[MAX_CPUS]; /* acpi_madt_enabled() in fw_cfg's tables */
    BootImage boot; /* format NULL: firmware runs */
} PcState;

/* pc-irq.c. Line n of a source; GSI n. RT_SAFE to set. */
void pc_irq_init(void);
IrqLine pc_gsi_line(unsigned gsi, unsigned source);

/* pc-ports.c: port 80h, F0h/F1h with FERR#, the A20 gate. */
void pc_ports_init(PcState *pc);
IrqLine pc_a20_line(void);

/* pc-firmware.c: ROM, CMOS, fw_cfg. All start-up. */
bool pc_bios_load(PcState *pc, Error **errp);
void pc_cmos_init(PcState *pc);
bool pc_fw_cfg_init(PcState *pc, Error **errp);
/* Firmware that starts from now on finds this vCPU, or no longer. HELPER_ONLY, run state held. */
void pc_firmware_cpu_changed(PcState *pc, unsigned cpu, bool there);

/* pc-boot.c: direct kernel boot: what firmware would have set up, at each reset. */
bool pc_boot_init(PcState *pc, Error **errp);
/* The kernel that boots next does. HELPER_ONLY, run state held. */
void pc_boot_cpu_changed(PcState *pc, unsigned cpu, bool there);
/* MachineType.blobs, of a kernel that is booted directly. */
void pc_boot_blobs(const PcState *pc, MachineBlobFn *fn, void *opaque);
/* Tables of this machine, for firmware and for direct boot. The caller frees them. */
struct AcpiTables;
void pc_acpi_build(PcState *pc, struct AcpiTables *t);
GByteArray *pc_smbios_build(PcState *pc, bool bios_info, unsigned *count, unsigned *largest);

#endif
