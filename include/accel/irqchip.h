/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupt chips as a table: devices raise a GSI or send an MSI without knowing who delivers it
 * (hw/intc/ in user space, or KVM in the kernel), and an accelerator asks for a vCPU's next vector
 * without knowing hw/.
 */
#ifndef ACCEL_IRQCHIP_H
#define ACCEL_IRQCHIP_H

#include "accel/cpu.h"

#define IRQCHIP_GSIS 24

typedef struct IrqChipOps {
    const char *name;
    /* RT_SAFE. Level of a global system interrupt, 0..23 (0..15 reach the PIC pair too). */
    void (*set_gsi)(unsigned gsi, int level);
    /* RT_SAFE. A message-signalled interrupt: address 0xfee..... and data. */
    void (*send_msi)(uint64_t addr, uint32_t data);

    /* ---- The rest is NULL when the local APIC is in the kernel ---- */

    /*
     * Makes the local APIC of a vCPU (cpu->irqchip), for good; messages reach it from true to false.
     * Start-up or hot plug.
     */
    void (*cpu_init)(CPUState *cpu);
    void (*cpu_reachable)(CPUState *cpu, bool yes);
    void (*cpu_reset)(CPUState *cpu, bool init_ipi);
    /* VCPU thread. Is a maskable interrupt deliverable (IRR above PPR, or the PIC through LINT0)? */
    bool (*cpu_pending)(CPUState *cpu);
    /* VCPU thread. Acknowledges the highest one and returns its vector; -1 if it went away. */
    int (*cpu_ack)(CPUState *cpu);
    /* VCPU thread. CR8 (task priority, 0..15). */
    uint8_t (*tpr_get)(CPUState *cpu);
    void (*tpr_set)(CPUState *cpu, uint8_t tpr);
    /* VCPU thread. IA32_APIC_BASE. Set returns false for a value that must raise #GP. */
    uint64_t (*base_get)(CPUState *cpu);
    bool (*base_set)(CPUState *cpu, uint64_t value);
    /* VCPU thread. x2APIC MSRs 0x800..0x8ff; false: #GP. */
    bool (*msr_read)(CPUState *cpu, uint32_t msr, uint64_t *value);
    bool (*msr_write)(CPUState *cpu, uint32_t msr, uint64_t value);
    /* VCPU thread. IA32_TSC_DEADLINE; the value is in guest TSC. */
    uint64_t (*tsc_deadline_get)(CPUState *cpu);
    void (*tsc_deadline_set)(CPUState *cpu, uint64_t tsc);
    /* VCPU thread, after CPU_REQ_TIMER or when a deadline passed in HLT: fire what is due. */
    void (*timer_check)(CPUState *cpu);
    /* CLOCK_MONOTONIC of the local timer's next expiry, INT64_MAX if not armed. */
    int64_t (*timer_deadline)(CPUState *cpu);
    /* VCPU thread: the registers at 0xfee00xxx of the calling vCPU (offset 0..0xfff). */
    uint32_t (*mmio_read)(CPUState *cpu, uint32_t offset);
    void (*mmio_write)(CPUState *cpu, uint32_t offset, uint32_t value);
} IrqChipOps;

/* The chip in force; set once by the board. */
extern const IrqChipOps *irqchip;

/* ---- An accelerator with interrupt chips of its own ---- */

/* The board's user-space chips beside a local APIC in the kernel (kernel-irqchip=split). All RT_SAFE. */
typedef struct IrqChipParts {
    /* Raises the input of PIC pair and I/O APIC. */
    void (*set_gsi)(unsigned gsi, int level);
    /* A local APIC's EOI of a level-triggered vector. */
    void (*ioapic_eoi)(uint8_t vector);
    /* The PIC pair's INT output, and its acknowledge: the vector. */
    bool (*pic_output_level)(void);
    int (*pic_ack)(void);
} IrqChipParts;

/*
 * Set by the accelerator's init hook if local APICs are in the kernel; NULL: the board uses its own
 * chip. The board then sets irqchip = accel_irqchip->ops and makes only those devices that are not
 * in the kernel. Where the local APIC is, its page at 0xfee00000 is intercepted too.
 */
typedef struct AccelIrqchip {
    const IrqChipOps *ops;
    bool kernel_pic_ioapic; /* PIC pair (with ELCR) and I/O APIC are in the kernel */
    bool kernel_pit;        /* PIT with port 61h is in the kernel, on GSI 0 */
    /* HPET legacy replacement: the kernel's PIT no longer reaches its line. RT_SAFE. NULL if !pit. */
    void (*pit_hpet_legacy)(bool on);
    /* For the split chip, else NULL. Start-up: who raises, acknowledges and hears EOIs. */
    void (*set_parts)(const IrqChipParts *parts);
    /* RT_SAFE. Listener of the PIC pair's INT (the function of an IrqLine). */
    void (*pic_int)(void *opaque, int n, int level);
    /* RT_SAFE. An I/O APIC pin's message changed; the kernel must know which vectors are level-
     * triggered, to report their EOI. */
    void (*ioapic_route)(unsigned pin, bool valid, uint64_t addr, uint32_t data);
} AccelIrqchip;

extern const AccelIrqchip *accel_irqchip;

/*
 * RT_SAFE, VCPU thread. Arms the vCPU's own host timer: at CLOCK_MONOTONIC deadline_ns (INT64_MAX
 * disarms) CPU_REQ_TIMER is requested on it, with no hop through another thread. In cpus.c.
 */
void cpu_local_timer_arm(CPUState *cpu, int64_t deadline_ns);

#endif
