/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PC's user-space interrupt controllers: 8259A pair, I/O APIC, local APICs. A machine has at
 * most one pair and one I/O APIC, so their functions name no instance. Boards create the devices
 * and set `irqchip`; devices raise lines and never see this header.
 */
#ifndef HW_INTC_H
#define HW_INTC_H

#include "accel/irqchip.h"
#include "hw/device.h"
#include "hw/irq.h"
#include "memory/memory.h"

/* ---- 8259A pair, type "isa-i8259": ports 0x20, 0xa0, ELCR 0x4d0 ---- */

/* RT_SAFE. Input 0..15 (2 is the cascade and ignored). */
void pic_set_irq(unsigned n, int level);
/* Start-up. Who listens to the master's INT output; by default nobody does. */
void pic_set_output(IrqLine out);
/* RT_SAFE. Level of INT. */
bool pic_output_level(void);
/* RT_SAFE. Interrupt acknowledge: the vector, spurious IR7 if the request went away. */
int pic_ack(void);

/* Text for `info pic`; HELPER_ONLY. False: there is none here. */
bool pic_describe(char *buf, size_t len);
/* How often each of the PIC_LINES inputs rose; HELPER_ONLY. False: there is none here. */
#define PIC_LINES 16
bool pic_counts(uint64_t *raised);

/* ---- I/O APIC 82093AA, version 0x20, type "ioapic" ---- */

#define IOAPIC_PINS 24
#define IOAPIC_ADDR 0xfec00000u

/* RT_SAFE. Input 0..23. Messages leave through irqchip->send_msi. */
void ioapic_set_irq(unsigned pin, int level);
/* The same by the PC's wiring: ISA line 0 is at pin 2. A tap sees the line's own number. */
void ioapic_set_gsi(unsigned gsi, int level);
/* RT_SAFE. A local APIC's EOI of a level-triggered vector. */
void ioapic_eoi(uint8_t vector);
/*
 * Start-up. Called, with the I/O APIC's lock held, when the entry of a pin changed: split chips
 * re-route in the kernel. addr and data are the message the pin sends; valid is false while it is
 * masked or there is no I/O APIC route.
 */
void ioapic_set_route_hook(void (*fn)(unsigned pin, bool valid, uint64_t addr, uint32_t data));
/* RT_SAFE. The message of a pin; false if masked. */
bool ioapic_route(unsigned pin, uint64_t *addr, uint32_t *data);

/* Text for `info pic`; HELPER_ONLY. False: there is none here. */
bool ioapic_describe(char *buf, size_t len);
/* The same of its IOAPIC_PINS. */
bool ioapic_counts(uint64_t *raised);

/* ---- Local APICs and the chip made of all three ---- */

/*
 * GSI 0..15 reach the pair's inputs and the I/O APIC, where ISA line 0 goes to pin 2 (ACPI: MADT
 * interrupt source override). Local APICs by irqchip_user.cpu_init.
 */
extern const IrqChipOps irqchip_user;
/* RT_SAFE. Raises what is wired like irqchip_user.set_gsi; for split chips too. */
void irqchip_user_set_gsi(unsigned gsi, int level);

/* RT_SAFE. LINT0 of all local APICs: the pair's INT. LINT1: the NMI of the chip set. */
void apic_set_lint0(void *opaque, int n, int level);
void apic_pulse_lint1(void);

/* Local vector table entries; order of the registers at 0x320..0x370, CMCI (0x2f0) last. */
enum {
    APIC_LVT_TIMER,
    APIC_LVT_THERMAL,
    APIC_LVT_PERF,
    APIC_LVT_LINT0,
    APIC_LVT_LINT1,
    APIC_LVT_ERROR,
    APIC_LVT_CMCI,
    APIC_LVT_COUNT
};
/* RT_SAFE. A local source of this vCPU fires (performance counter overflow, thermal, CMCI). */
void apic_local_deliver(CPUState *cpu, unsigned lvt);

/*
 * The page at 0xfee00000 (1 MiB): a vCPU's access in its own APIC's page reaches its registers,
 * anybody else's write is a message-signalled interrupt. Boards map it where no accelerator
 * intercepts it.
 */
void apic_mmio_init(MemoryRegion *mr);

/* Text of a local APIC's state for `info lapic`; vCPU parked. Returns the bytes written. */
int apic_describe(CPUState *cpu, char *buf, size_t len);

/* Save and load of cpu's local APIC (hw/vmstate.h); vCPU parked. */
extern const struct VMState apic_vmstate;
void *apic_vmstate_opaque(CPUState *cpu);

#endif
