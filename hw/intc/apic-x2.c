/* SPDX-License-Identifier: GPL-2.0-or-later */
/* IA32_APIC_BASE and the x2APIC's registers as MSRs 0x800..0x8ff (SDM 3A 11.12). */
#include "hw/intc/apic-internal.h"
#include "target/i386/cpu.h"

static uint32_t x2apic_ldr(const LocalApic *a)
{
    return (a->x2id >> 4) << 16 | BIT(a->x2id & 0xf);
}

/* Figure 11-26: from x2APIC mode only "disabled" can be reached, and not from there into x2APIC. */
static bool transition_allowed(uint64_t from, uint64_t to)
{
    bool en = to & APIC_BASE_EN, extd = to & APIC_BASE_EXTD;

    if (extd && !en) {
        return false;
    }
    if ((from & APIC_BASE_EXTD) && en && !extd) {
        return false;
    }
    return !(extd && !(from & APIC_BASE_EN));
}

bool apic_base_set(LocalApic *a, uint64_t value)
{
    uint64_t old = atomic_load(&a->base);
    uint64_t phys_mask = BIT64(x86_cpu(a->cpu)->phys_bits) - 1;
    uint64_t valid = (phys_mask & ~0xfffull) | APIC_BASE_BSP | APIC_BASE_EN |
                     (a->has_x2apic ? APIC_BASE_EXTD : 0);

    if ((value & ~valid) || !transition_allowed(old, value)) {
        return false;
    }
    if ((old & APIC_BASE_EN) && !(value & APIC_BASE_EN)) {
        /* What a disabled APIC held is lost; it comes back as after reset (SDM 3A 11.4.3). */
        uint8_t tpr = a->tpr;

        apic_reset_registers(a);
        a->tpr = tpr; /* CR8 is the processor's */
        a->xid = a->x2id << 24;
    }
    if (!(old & APIC_BASE_EXTD) && (value & APIC_BASE_EXTD)) {
        a->icr &= UINT32_MAX;
    }
    atomic_store(&a->base, value);
    apic_dest_update(a);
    apic_lint0_users_update(a);
    cpu_request(a->cpu, CPU_REQ_INTERRUPT);
    return true;
}

bool apic_msr_read(LocalApic *a, uint32_t msr, uint64_t *value)
{
    uint32_t offset = (msr & 0xff) << 4, v = 0;

    if (!apic_is_x2(a)) {
        return false;
    }
    switch (offset) {
    case APIC_ID:
        *value = a->x2id;
        return true;
    case APIC_LDR:
        *value = x2apic_ldr(a);
        return true;
    case APIC_ICR:
        *value = a->icr;
        return true;
    }
    if (!apic_reg_read(a, offset, &v)) {
        return false;
    }
    *value = v;
    return true;
}

/* Bits that may be written as 1; a reserved one raises #GP. 0: zero only. */
static uint64_t x2_writable(const LocalApic *a, uint32_t offset)
{
    switch (offset) {
    case APIC_TPR:
        return 0xff;
    case APIC_SVR:
        return 0xff | SVR_ENABLED | SVR_EOI_SUPPRESS;
    case APIC_EOI:
    case APIC_ESR:
        return 0;
    case APIC_ICR:
        return 0xffffffff000ccfffull;
    case APIC_TIMER_INITIAL:
        return UINT32_MAX;
    case APIC_TIMER_DIVIDE:
        return 0xb;
    case APIC_SELF_IPI:
        return 0xff;
    case APIC_LVT_FIRST:
        return 0x710ff; /* delivery status is read-only and ignored */
    case APIC_LVT_FIRST + 0x30:
    case APIC_LVT_FIRST + 0x40:
        return 0x1f7ff;
    case APIC_LVT_LAST:
        return 0x110ff;
    default:
        return 0x117ff;
    }
}

bool apic_msr_write(LocalApic *a, uint32_t msr, uint64_t value)
{
    uint32_t offset = (msr & 0xff) << 4;

    if (!apic_is_x2(a) || (value & ~x2_writable(a, offset))) {
        return false;
    }
    switch (offset) {
    case APIC_ICR:
        a->icr = value & ~(uint64_t)BIT(12);
        apic_send_icr(a);
        return true;
    case APIC_SELF_IPI:
        apic_send_self(a, (uint8_t)value);
        return true;
    }
    return apic_reg_write(a, offset, (uint32_t)value);
}
