/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between local APICs, from I/O APICs and MSIs, and the pins LINT0 and LINT1. */
#include "hw/intc/apic-internal.h"

/* Level of the 8259 pair's INT, wired to every LINT0. */
static atomic_bool lint0_level;

void apic_set_irr(LocalApic *a, uint8_t vector, bool level)
{
    uint32_t bit = BIT(vector & 31);

    if (vector < 16) {
        apic_error(a, ESR_RECEIVE_ILLEGAL);
        return;
    }
    /* TMR first: an EOI that sees the request must know its trigger mode. */
    if (level) {
        atomic_fetch_or(&a->tmr[vector >> 5], bit);
    } else {
        atomic_fetch_and(&a->tmr[vector >> 5], ~bit);
    }
    atomic_fetch_or(&a->irr[vector >> 5], bit);
    cpu_request(a->cpu, CPU_REQ_INTERRUPT);
}

static void deliver_one(LocalApic *a, unsigned mode, uint8_t vector, bool level)
{
    switch (mode) {
    case DM_FIXED:
    case DM_LOWEST:
        /* A software-disabled APIC takes no new fixed interrupts (SDM 3A 11.4.7.2). */
        if (apic_sw_enabled(a)) {
            apic_set_irr(a, vector, level);
        }
        break;
    case DM_SMI:
        cpu_request(a->cpu, CPU_REQ_SMI);
        break;
    case DM_NMI:
        cpu_request(a->cpu, CPU_REQ_NMI);
        break;
    case DM_INIT:
        cpu_request(a->cpu, CPU_REQ_INIT);
        break;
    case DM_SIPI:
        atomic_store(&a->cpu->sipi_vector, vector);
        cpu_request(a->cpu, CPU_REQ_SIPI);
        break;
    case DM_EXTINT:
        atomic_store(&a->extint, true);
        cpu_request(a->cpu, CPU_REQ_INTERRUPT);
        break;
    default: /* remote read and reserved modes do nothing */
        break;
    }
}

/*
 * Lowest-priority delivery: of those addressed, one whose processor priority class is lowest takes
 * it; among equals they take turns (SDM 3A 11.6.2.4 leaves that to the chip set).
 */
static LocalApic *arbitrate(ApicSet *set)
{
    static _Atomic unsigned last;
    unsigned from = atomic_load_explicit(&last, memory_order_relaxed);
    unsigned best_key = UINT32_MAX;
    LocalApic *best = NULL;
    int i;

    while ((i = apic_set_pop(set)) >= 0) {
        LocalApic *a = apic_by_index((unsigned)i);
        unsigned distance = ((unsigned)i - from - 1) & 0xff;
        unsigned key;

        if (!a || !apic_sw_enabled(a)) {
            continue;
        }
        key = (unsigned)(atomic_load_explicit(&a->arb_prio, memory_order_relaxed) >> 4) << 8 |
              distance;
        if (key < best_key) {
            best_key = key;
            best = a;
        }
    }
    if (best) {
        atomic_store_explicit(&last, best->cpu->index, memory_order_relaxed);
    }
    return best;
}

void apic_deliver(ApicSet *set, unsigned mode, uint8_t vector, bool level)
{
    int i;

    if (mode == DM_LOWEST) {
        LocalApic *a = arbitrate(set);

        if (a) {
            deliver_one(a, mode, vector, level);
        }
        return;
    }
    while ((i = apic_set_pop(set)) >= 0) {
        LocalApic *a = apic_by_index((unsigned)i);

        if (a) {
            deliver_one(a, mode, vector, level);
        }
    }
}

/* SDM 3A 11.11; bits 11:5 of the address are bits 14:8 of the destination. */
void apic_send_msi(uint64_t addr, uint32_t data)
{
    uint32_t dest = (uint32_t)(addr >> 12 & 0xff) | (uint32_t)(addr >> 5 & 0x7f) << 8;
    ApicSet set;

    apic_dest_lookup(&set, dest, addr & 4, false);
    apic_deliver(&set, data >> 8 & 7, (uint8_t)data, data & BIT(15));
}

/* ---- IPIs ---- */

void apic_send_self(LocalApic *a, uint8_t vector)
{
    if (vector < 16) {
        apic_error(a, ESR_SEND_ILLEGAL);
    } else if (apic_sw_enabled(a)) {
        apic_set_irr(a, vector, false);
    }
}

static void icr_targets(LocalApic *a, ApicSet *set)
{
    bool x2 = apic_is_x2(a);

    switch (a->icr >> 18 & 3) { /* destination shorthand */
    case 0:
        apic_dest_lookup(set, (uint32_t)(a->icr >> (x2 ? 32 : 56)), a->icr & BIT(11), x2);
        break;
    case 1:
        *set = (ApicSet){ 0 };
        set->w[a->cpu->index / 64] |= BIT64(a->cpu->index % 64);
        break;
    case 2:
        apic_dest_all(set);
        break;
    case 3:
        apic_dest_all(set);
        apic_set_remove(set, a->cpu->index);
        break;
    }
}

void apic_send_icr(LocalApic *a)
{
    unsigned mode = a->icr >> 8 & 7;
    uint8_t vector = (uint8_t)a->icr;
    ApicSet set;

    if (mode <= DM_LOWEST && vector < 16) {
        apic_error(a, ESR_SEND_ILLEGAL);
        return;
    }
    /* INIT level de-assert: processors since the Pentium 4 ignore it (SDM 3A 11.6.1). */
    if (mode == DM_INIT && (a->icr & BIT(15)) && !(a->icr & BIT(14))) {
        return;
    }
    /* An ICR can not send ExtINT or a remote read. */
    if (mode == DM_EXTINT || mode == DM_REMOTE_READ) {
        return;
    }
    icr_targets(a, &set);
    apic_deliver(&set, mode, vector, false);
}

/* ---- Local sources and pins ---- */

void apic_lvt_fire(LocalApic *a, unsigned lvt)
{
    uint32_t v = atomic_load(&a->lvt[lvt]);
    bool level = (v & LVT_LEVEL) && (lvt == APIC_LVT_LINT0 || lvt == APIC_LVT_LINT1) &&
                 LVT_MODE(v) == DM_FIXED;

    if (v & LVT_MASKED) {
        return;
    }
    /* The timer and the error entry have no delivery mode: bits 10:8 are 0. */
    if (level) {
        if (atomic_fetch_or(&a->lvt[lvt], LVT_REMOTE_IRR) & LVT_REMOTE_IRR) {
            return;
        }
    }
    if (LVT_MODE(v) == DM_EXTINT) {
        cpu_request(a->cpu, CPU_REQ_INTERRUPT);
        return;
    }
    deliver_one(a, LVT_MODE(v), (uint8_t)v, level);
}

void apic_local_deliver(CPUState *cpu, unsigned lvt)
{
    LocalApic *a = cpu_apic(cpu);

    apic_lvt_fire(a, lvt);
    if (lvt == APIC_LVT_PERF) {
        /* A counter's overflow masks its entry (SDM 3A 11.5.1). */
        atomic_fetch_or(&a->lvt[lvt], LVT_MASKED);
    }
}

bool apic_pic_pending(LocalApic *a)
{
    uint32_t lvt = atomic_load(&a->lvt[APIC_LVT_LINT0]);

    if (!atomic_load(&lint0_level)) {
        return false;
    }
    if (!apic_enabled(a)) {
        return atomic_load(&a->base) & APIC_BASE_BSP;
    }
    return atomic_load(&a->extint) || (!(lvt & LVT_MASKED) && LVT_MODE(lvt) == DM_EXTINT);
}

/* Own thread, after LINT0's entry changed or a level-triggered one was acknowledged by EOI. */
void apic_lint0_recheck(LocalApic *a)
{
    uint32_t lvt = atomic_load(&a->lvt[APIC_LVT_LINT0]);

    if (!atomic_load(&lint0_level) || (lvt & LVT_MASKED)) {
        return;
    }
    if (LVT_MODE(lvt) == DM_EXTINT || (LVT_MODE(lvt) == DM_FIXED && (lvt & LVT_LEVEL))) {
        apic_lvt_fire(a, APIC_LVT_LINT0);
    }
}

void apic_set_lint0(void *opaque, int n, int level)
{
    ApicSet set;
    int i;

    if (atomic_exchange(&lint0_level, level != 0) == (level != 0) || !level) {
        return;
    }
    apic_lint0_users(&set);
    while ((i = apic_set_pop(&set)) >= 0) {
        LocalApic *a = apic_by_index((unsigned)i);

        if (!a) {
            continue;
        }
        if (apic_enabled(a)) {
            apic_lvt_fire(a, APIC_LVT_LINT0);
        } else {
            cpu_request(a->cpu, CPU_REQ_INTERRUPT);
        }
    }
}

void apic_pulse_lint1(void)
{
    ApicSet set;
    int i;

    apic_dest_all(&set);
    while ((i = apic_set_pop(&set)) >= 0) {
        LocalApic *a = apic_by_index((unsigned)i);

        if (a) {
            apic_lvt_fire(a, APIC_LVT_LINT1);
        }
    }
}
