/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The local APIC's inner contract. Sources: SDM 3A chapter 11, x2APIC in 11.12.
 *
 * Files: apic.c (life, xAPIC registers, priority), apic-x2.c (APIC base, MSRs), apic-dest.c (who is
 * addressed), apic-send.c (messages, IPIs, pins), apic-timer.c.
 *
 * Threads: a register is written by its vCPU's own thread only, or by anybody while that vCPU is
 * parked. What other threads set or read is atomic: irr, tmr, the LVT, SVR, the base, arb_prio, the
 * ESR's accumulator. There is no lock: an IRR bit is set with one atomic or, then the vCPU is asked
 * to look (cpu_request), which it does after it cleared its request flags; so no bit is missed.
 */
#ifndef HW_INTC_APIC_INTERNAL_H
#define HW_INTC_APIC_INTERNAL_H

#include <stdatomic.h>
#include "event/event.h"
#include "hw/intc.h"

/* Register offsets in the page, and MSR 0x800 + (offset >> 4). */
enum {
    APIC_ID = 0x020, APIC_VERSION = 0x030, APIC_TPR = 0x080, APIC_APR = 0x090, APIC_PPR = 0x0a0,
    APIC_EOI = 0x0b0, APIC_RRD = 0x0c0, APIC_LDR = 0x0d0, APIC_DFR = 0x0e0, APIC_SVR = 0x0f0,
    APIC_ISR = 0x100, APIC_TMR = 0x180, APIC_IRR = 0x200, APIC_ESR = 0x280,
    APIC_LVT_CMCI_REG = 0x2f0, APIC_ICR = 0x300, APIC_ICR2 = 0x310, APIC_LVT_FIRST = 0x320,
    APIC_LVT_LAST = 0x370, APIC_TIMER_INITIAL = 0x380, APIC_TIMER_CURRENT = 0x390,
    APIC_TIMER_DIVIDE = 0x3e0, APIC_SELF_IPI = 0x3f0,
};

#define APIC_BASE_BSP    BIT64(8)
#define APIC_BASE_EXTD   BIT64(10)
#define APIC_BASE_EN     BIT64(11)
#define APIC_DEFAULT_BASE 0xfee00000ull

#define SVR_ENABLED      BIT(8)
#define SVR_EOI_SUPPRESS BIT(12)

#define LVT_VECTOR       0xffu
#define LVT_MODE(v)      ((v) >> 8 & 7)
#define LVT_REMOTE_IRR   BIT(14)
#define LVT_LEVEL        BIT(15)
#define LVT_MASKED       BIT(16)
#define LVT_TIMER_MODE(v) ((v) >> 17 & 3)
enum { TIMER_ONE_SHOT, TIMER_PERIODIC, TIMER_TSC_DEADLINE };

enum { ESR_SEND_ILLEGAL = BIT(5), ESR_RECEIVE_ILLEGAL = BIT(6), ESR_ILLEGAL_REGISTER = BIT(7) };

enum { DM_FIXED, DM_LOWEST, DM_SMI, DM_REMOTE_READ, DM_NMI, DM_INIT, DM_SIPI, DM_EXTINT };

/* A set of local APICs by vCPU index. */
#define APIC_SET_WORDS DIV_ROUND_UP(MAX_CPUS, 64)
typedef struct ApicSet {
    uint64_t w[APIC_SET_WORDS];
} ApicSet;

typedef struct LocalApic {
    CPUState *cpu;
    uint32_t x2id;           /* the initial id; xAPIC ID register at reset */
    _Atomic uint64_t base;   /* IA32_APIC_BASE */
    _Atomic uint32_t svr;
    _Atomic uint32_t lvt[APIC_LVT_COUNT];
    _Atomic uint32_t irr[8], tmr[8];
    _Atomic uint32_t esr_pending;
    _Atomic uint8_t arb_prio; /* for lowest-priority delivery: the processor priority */
    atomic_bool extint;       /* an ExtINT message awaits its acknowledge */
    uint32_t isr[8];
    uint32_t xid;             /* xAPIC ID register, bits 31:24 */
    uint32_t ldr, dfr;
    uint32_t esr;
    uint64_t icr;             /* x2APIC layout: destination in the upper half */
    uint8_t tpr;
    bool has_cmci, has_x2apic;

    /* Timer; ns of the virtual clock. */
    uint32_t initial_count, divide_conf;
    int64_t next_ns;          /* expiry; -1: does not count */
    uint64_t tsc_deadline;    /* 0: not armed */
    EventTimer manual_timer;  /* in place of the host timer when virtual time is set by hand */

    /* Rows of the destination tables this APIC is in; -1: none. Private to apic-dest.c. */
    int32_t row_phys, row_cluster;
    uint8_t row_flat_bits, row_cluster_bits;
} LocalApic;

static inline LocalApic *cpu_apic(CPUState *cpu)
{
    return cpu->irqchip;
}
static inline bool apic_enabled(const LocalApic *a)
{
    return atomic_load_explicit(&a->base, memory_order_relaxed) & APIC_BASE_EN;
}
static inline bool apic_is_x2(const LocalApic *a)
{
    return atomic_load_explicit(&a->base, memory_order_relaxed) & APIC_BASE_EXTD;
}
static inline bool apic_sw_enabled(const LocalApic *a)
{
    return atomic_load_explicit(&a->svr, memory_order_relaxed) & SVR_ENABLED;
}

/* apic.c */
int apic_highest(const _Atomic uint32_t *reg);
uint8_t apic_ppr(const LocalApic *a);
/* Own thread: ISR or TPR changed; looks whether something became deliverable. */
void apic_priority_changed(LocalApic *a);
/* RT_SAFE. Accumulates an error and raises the error LVT. */
void apic_error(LocalApic *a, uint32_t bit);
/* Own thread. Register access shared by both modes; false: no such register (or not writable). */
bool apic_reg_read(LocalApic *a, uint32_t offset, uint32_t *value);
bool apic_reg_write(LocalApic *a, uint32_t offset, uint32_t value);
void apic_eoi(LocalApic *a);
void apic_reset_registers(LocalApic *a);
uint32_t apic_version(const LocalApic *a);

/* apic-dest.c: RT_SAFE, lock-free. */
LocalApic *apic_by_index(unsigned index);
void apic_set_by_index(unsigned index, LocalApic *a);
/* Own thread: ID, LDR, DFR or base changed. */
void apic_dest_update(LocalApic *a);
/* Whom a message addresses. wide: 32-bit destination of an x2APIC's ICR. */
void apic_dest_lookup(ApicSet *out, uint32_t dest, bool logical, bool wide);
void apic_dest_all(ApicSet *out);
static inline void apic_set_remove(ApicSet *s, unsigned index)
{
    s->w[index / 64] &= ~BIT64(index % 64);
}
/* Takes the lowest index out of s; -1 if it is empty. */
int apic_set_pop(ApicSet *s);
void apic_lint0_users_update(LocalApic *a);
void apic_lint0_users(ApicSet *out);

/* apic-send.c: RT_SAFE. */
void apic_set_irr(LocalApic *a, uint8_t vector, bool level);
void apic_deliver(ApicSet *set, unsigned mode, uint8_t vector, bool level);
void apic_send_msi(uint64_t addr, uint32_t data);
/* Own thread: sends what the ICR says. */
void apic_send_icr(LocalApic *a);
void apic_send_self(LocalApic *a, uint8_t vector);
bool apic_pic_pending(LocalApic *a);
void apic_lint0_recheck(LocalApic *a);
void apic_lvt_fire(LocalApic *a, unsigned lvt);

/* apic-timer.c: own thread. */
void apic_timer_init(LocalApic *a);
void apic_timer_reset(LocalApic *a);
void apic_timer_write_initial(LocalApic *a, uint32_t value);
void apic_timer_write_divide(LocalApic *a, uint32_t value);
void apic_timer_write_lvt(LocalApic *a, uint32_t value);
uint32_t apic_timer_current(LocalApic *a);
void apic_timer_check(LocalApic *a);
int64_t apic_timer_deadline(LocalApic *a);
uint64_t apic_timer_tsc_deadline_get(LocalApic *a);
void apic_timer_tsc_deadline_set(LocalApic *a, uint64_t tsc);

/* apic-x2.c: own thread. */
bool apic_base_set(LocalApic *a, uint64_t value);
bool apic_msr_read(LocalApic *a, uint32_t msr, uint64_t *value);
bool apic_msr_write(LocalApic *a, uint32_t msr, uint64_t value);

#endif
