/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The local APIC: its life, its registers, the processor priority. SDM 3A chapter 11. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "hw/intc/apic-internal.h"
#include "hw/vmstate.h"
#include "target/i386/cpu.h"

#define MCG_CMCI_P          BIT64(10)
#define CPUID_1_ECX_X2APIC  BIT(21)

/* ---- Priority ---- */

/* Highest vector set in a 256-bit register, -1 if none. */
int apic_highest(const _Atomic uint32_t *reg)
{
    for (int i = 7; i >= 0; i--) {
        uint32_t w = atomic_load_explicit(&reg[i], memory_order_acquire);

        if (w) {
            return i * 32 + 31 - __builtin_clz(w);
        }
    }
    return -1;
}

static int isr_highest(const LocalApic *a)
{
    for (int i = 7; i >= 0; i--) {
        if (a->isr[i]) {
            return i * 32 + 31 - __builtin_clz(a->isr[i]);
        }
    }
    return -1;
}

uint8_t apic_ppr(const LocalApic *a)
{
    int isrv = isr_highest(a);

    if (isrv < 0 || (a->tpr >> 4) >= (isrv >> 4)) {
        return a->tpr;
    }
    return (uint8_t)(isrv & 0xf0);
}

/* The vector the processor would take now, -1 if none is above the processor priority. */
static int apic_deliverable(const LocalApic *a)
{
    int irrv = apic_highest(a->irr);

    return irrv >= 0 && (irrv >> 4) > (apic_ppr(a) >> 4) ? irrv : -1;
}

void apic_priority_changed(LocalApic *a)
{
    atomic_store_explicit(&a->arb_prio, apic_ppr(a), memory_order_relaxed);
    if (apic_deliverable(a) >= 0) {
        cpu_request(a->cpu, CPU_REQ_INTERRUPT);
    }
}

void apic_error(LocalApic *a, uint32_t bit)
{
    uint32_t lvt = atomic_load(&a->lvt[APIC_LVT_ERROR]);

    if (atomic_fetch_or(&a->esr_pending, bit) & bit) {
        return;
    }
    /* An error entry whose own vector is illegal must not raise errors for ever. */
    if (!(lvt & LVT_MASKED) && (lvt & LVT_VECTOR) >= 16) {
        apic_lvt_fire(a, APIC_LVT_ERROR);
    }
}

void apic_eoi(LocalApic *a)
{
    int vector = isr_highest(a);
    uint32_t lint0;

    if (vector < 0) {
        return;
    }
    a->isr[vector >> 5] &= ~BIT(vector & 31);
    if (atomic_load(&a->tmr[vector >> 5]) & BIT(vector & 31)) {
        lint0 = atomic_load(&a->lvt[APIC_LVT_LINT0]);
        if ((lint0 & LVT_REMOTE_IRR) && (lint0 & LVT_VECTOR) == (uint32_t)vector) {
            atomic_fetch_and(&a->lvt[APIC_LVT_LINT0], ~LVT_REMOTE_IRR);
            apic_lint0_recheck(a);
        }
        if (!(atomic_load(&a->svr) & SVR_EOI_SUPPRESS)) {
            ioapic_eoi((uint8_t)vector);
        }
    }
    apic_priority_changed(a);
}

/* ---- Local vector table ---- */

static int lvt_index(const LocalApic *a, uint32_t offset)
{
    if (offset == APIC_LVT_CMCI_REG) {
        return a->has_cmci ? APIC_LVT_CMCI : -1;
    }
    if (offset >= APIC_LVT_FIRST && offset <= APIC_LVT_LAST) {
        return (int)((offset - APIC_LVT_FIRST) >> 4);
    }
    return -1;
}

/* Writable bits of each entry; remote IRR and delivery status are read-only. */
static const uint32_t lvt_writable[APIC_LVT_COUNT] = {
    [APIC_LVT_TIMER] = 0x700ff, [APIC_LVT_THERMAL] = 0x107ff, [APIC_LVT_PERF] = 0x107ff,
    [APIC_LVT_LINT0] = 0x1a7ff, [APIC_LVT_LINT1] = 0x1a7ff,   [APIC_LVT_ERROR] = 0x100ff,
    [APIC_LVT_CMCI] = 0x107ff,
};

static void lvt_write(LocalApic *a, unsigned lvt, uint32_t value)
{
    value &= lvt_writable[lvt];
    if (!apic_sw_enabled(a)) {
        value |= LVT_MASKED;
    }
    if (lvt == APIC_LVT_TIMER) {
        apic_timer_write_lvt(a, value);
        return;
    }
    if (lvt == APIC_LVT_LINT0 && (value & LVT_LEVEL)) {
        value |= atomic_load(&a->lvt[lvt]) & LVT_REMOTE_IRR;
    }
    atomic_store(&a->lvt[lvt], value);
    if (lvt == APIC_LVT_LINT0) {
        apic_lint0_users_update(a);
        apic_lint0_recheck(a);
    }
}

static void svr_write(LocalApic *a, uint32_t value)
{
    atomic_store(&a->svr, value & (0xff | SVR_ENABLED | SVR_EOI_SUPPRESS));
    if (value & SVR_ENABLED) {
        return;
    }
    /* Software disable masks the whole table (SDM 3A 11.4.7.2). */
    for (unsigned i = 0; i < APIC_LVT_COUNT; i++) {
        lvt_write(a, i, atomic_load(&a->lvt[i]) | LVT_MASKED);
    }
}

/* ---- Registers ---- */

uint32_t apic_version(const LocalApic *a)
{
    /* Version 14h, highest LVT entry, directed EOI supported. */
    return 0x14u | (a->has_cmci ? 6u : 5u) << 16 | BIT(24);
}

static bool read_bitmap(LocalApic *a, uint32_t offset, uint32_t *value)
{
    unsigned i = offset >> 4 & 7;

    switch (offset & ~0x7fu) {
    case APIC_ISR:
        *value = a->isr[i];
        return true;
    case APIC_TMR:
        *value = atomic_load(&a->tmr[i]);
        return true;
    case APIC_IRR:
        *value = atomic_load(&a->irr[i]);
        return true;
    }
    return false;
}

/* The ones both modes have; IDs, LDR, DFR and ICR differ and are their callers'. */
bool apic_reg_read(LocalApic *a, uint32_t offset, uint32_t *value)
{
    int lvt = lvt_index(a, offset);

    if (lvt >= 0) {
        *value = atomic_load(&a->lvt[lvt]);
        return true;
    }
    switch (offset) {
    case APIC_VERSION:
        *value = apic_version(a);
        return true;
    case APIC_TPR:
        *value = a->tpr;
        return true;
    case APIC_PPR:
        *value = apic_ppr(a);
        return true;
    case APIC_SVR:
        *value = atomic_load(&a->svr);
        return true;
    case APIC_ESR:
        *value = a->esr;
        return true;
    case APIC_TIMER_INITIAL:
        *value = LVT_TIMER_MODE(atomic_load(&a->lvt[APIC_LVT_TIMER])) == TIMER_TSC_DEADLINE
                     ? 0 : a->initial_count;
        return true;
    case APIC_TIMER_CURRENT:
        *value = apic_timer_current(a);
        return true;
    case APIC_TIMER_DIVIDE:
        *value = a->divide_conf;
        return true;
    }
    return read_bitmap(a, offset, value);
}

bool apic_reg_write(LocalApic *a, uint32_t offset, uint32_t value)
{
    int lvt = lvt_index(a, offset);

    if (lvt >= 0) {
        lvt_write(a, (unsigned)lvt, value);
        return true;
    }
    switch (offset) {
    case APIC_TPR:
        a->tpr = (uint8_t)value;
        apic_priority_changed(a);
        return true;
    case APIC_EOI:
        apic_eoi(a);
        return true;
    case APIC_SVR:
        svr_write(a, value);
        return true;
    case APIC_ESR:
        a->esr = atomic_exchange(&a->esr_pending, 0);
        return true;
    case APIC_TIMER_INITIAL:
        apic_timer_write_initial(a, value);
        return true;
    case APIC_TIMER_DIVIDE:
        apic_timer_write_divide(a, value & 0xb);
        return true;
    }
    return false;
}

static uint32_t xapic_read(CPUState *cpu, uint32_t offset)
{
    LocalApic *a = cpu_apic(cpu);
    uint32_t value = 0;

    if (offset & 0xf) {
        return 0; /* only the first four of sixteen bytes are there */
    }
    switch (offset) {
    case APIC_ID:
        return a->xid;
    case APIC_APR:
        return apic_ppr(a);
    case APIC_RRD:
    case APIC_EOI:
        return 0;
    case APIC_LDR:
        return a->ldr;
    case APIC_DFR:
        return a->dfr;
    case APIC_ICR:
        return (uint32_t)a->icr;
    case APIC_ICR2:
        return (uint32_t)(a->icr >> 32);
    }
    if (!apic_reg_read(a, offset, &value)) {
        apic_error(a, ESR_ILLEGAL_REGISTER);
    }
    return value;
}

static void xapic_write(CPUState *cpu, uint32_t offset, uint32_t value)
{
    LocalApic *a = cpu_apic(cpu);

    if (offset & 0xf) {
        return;
    }
    switch (offset) {
    case APIC_ID:
        a->xid = value & 0xff000000u;
        apic_dest_update(a);
        return;
    case APIC_LDR:
        a->ldr = value & 0xff000000u;
        apic_dest_update(a);
        return;
    case APIC_DFR:
        a->dfr = value | 0x0fffffffu;
        apic_dest_update(a);
        return;
    case APIC_ICR:
        a->icr = (a->icr & ~(uint64_t)UINT32_MAX) | (value & 0xccfffu);
        apic_send_icr(a);
        return;
    case APIC_ICR2:
        a->icr = (a->icr & UINT32_MAX) | (uint64_t)(value & 0xff000000u) << 32;
        return;
    }
    /* Writes to read-only registers are ignored, to what is no register an error. */
    if (!apic_reg_write(a, offset, value) && !apic_reg_read(a, offset, &value)) {
        apic_error(a, ESR_ILLEGAL_REGISTER);
    }
}

/* ---- The table of the chip, and life ---- */

void apic_reset_registers(LocalApic *a)
{
    for (unsigned i = 0; i < 8; i++) {
        atomic_store(&a->irr[i], 0);
        atomic_store(&a->tmr[i], 0);
        a->isr[i] = 0;
    }
    for (unsigned i = 0; i < APIC_LVT_COUNT; i++) {
        atomic_store(&a->lvt[i], LVT_MASKED);
    }
    atomic_store(&a->svr, 0xff);
    atomic_store(&a->esr_pending, 0);
    atomic_store(&a->arb_prio, 0);
    atomic_store(&a->extint, false);
    a->ldr = 0;
    a->dfr = UINT32_MAX;
    a->esr = 0;
    a->icr = 0;
    a->tpr = 0;
    apic_timer_reset(a);
}

static void apic_cpu_reset(CPUState *cpu, bool init_ipi)
{
    LocalApic *a = cpu_apic(cpu);
    bool bsp = cpu->index == 0;

    apic_reset_registers(a);
    if (!init_ipi) {
        /* INIT keeps the base and the ID (SDM 3A 11.4.7.3). */
        atomic_store(&a->base, APIC_DEFAULT_BASE | APIC_BASE_EN | (bsp ? APIC_BASE_BSP : 0));
        a->xid = a->x2id << 24;
        a->has_cmci = x86_cpu(cpu)->mcg_cap & MCG_CMCI_P;
        a->has_x2apic = x86_has(x86_cpu(cpu), FEAT_1_ECX, CPUID_1_ECX_X2APIC);
        if (bsp) {
            /* Virtual wire mode (MP specification 3.6.2.2), which firmware would set up; guests
             * that start without firmware rely on it. */
            atomic_store(&a->lvt[APIC_LVT_LINT0], DM_EXTINT << 8);
        }
    }
    apic_dest_update(a);
    apic_lint0_users_update(a);
}

static void apic_cpu_init(CPUState *cpu)
{
    LocalApic *a = g_new0(LocalApic, 1);

    a->cpu = cpu;
    a->x2id = x86_cpu(cpu)->apic_id;
    a->row_phys = a->row_cluster = -1;
    cpu->irqchip = a;
    apic_timer_init(a);
    apic_cpu_reset(cpu, false);
}

/* Its bits in the tables of destinations may stay: who finds one looks for the APIC next. */
static void apic_cpu_reachable(CPUState *cpu, bool yes)
{
    apic_set_by_index(cpu->index, yes ? cpu_apic(cpu) : NULL);
}

static bool apic_cpu_pending(CPUState *cpu)
{
    LocalApic *a = cpu_apic(cpu);

    return apic_pic_pending(a) || (apic_enabled(a) && apic_deliverable(a) >= 0);
}

static int apic_cpu_ack(CPUState *cpu)
{
    LocalApic *a = cpu_apic(cpu);
    int vector;

    if (apic_pic_pending(a)) {
        atomic_store(&a->extint, false);
        return pic_ack();
    }
    vector = apic_enabled(a) ? apic_deliverable(a) : -1;
    if (vector < 0) {
        return -1;
    }
    atomic_fetch_and(&a->irr[vector >> 5], ~BIT(vector & 31));
    a->isr[vector >> 5] |= BIT(vector & 31);
    atomic_store_explicit(&a->arb_prio, apic_ppr(a), memory_order_relaxed);
    return vector;
}

static uint8_t apic_tpr_get(CPUState *cpu)
{
    return cpu_apic(cpu)->tpr >> 4;
}

static void apic_tpr_set(CPUState *cpu, uint8_t tpr)
{
    cpu_apic(cpu)->tpr = (uint8_t)(tpr << 4);
    apic_priority_changed(cpu_apic(cpu));
}

static uint64_t apic_base_get_op(CPUState *cpu)
{
    return atomic_load(&cpu_apic(cpu)->base);
}
static bool apic_base_set_op(CPUState *cpu, uint64_t value)
{
    return apic_base_set(cpu_apic(cpu), value);
}
static bool apic_msr_read_op(CPUState *cpu, uint32_t msr, uint64_t *value)
{
    return apic_msr_read(cpu_apic(cpu), msr, value);
}
static bool apic_msr_write_op(CPUState *cpu, uint32_t msr, uint64_t value)
{
    return apic_msr_write(cpu_apic(cpu), msr, value);
}
static uint64_t apic_tsc_deadline_get_op(CPUState *cpu)
{
    return apic_timer_tsc_deadline_get(cpu_apic(cpu));
}
static void apic_tsc_deadline_set_op(CPUState *cpu, uint64_t tsc)
{
    apic_timer_tsc_deadline_set(cpu_apic(cpu), tsc);
}
static void apic_timer_check_op(CPUState *cpu)
{
    apic_timer_check(cpu_apic(cpu));
}
static int64_t apic_timer_deadline_op(CPUState *cpu)
{
    return apic_timer_deadline(cpu_apic(cpu));
}

void irqchip_user_set_gsi(unsigned gsi, int level)
{
    if (gsi < 16) {
        pic_set_irq(gsi, level);
    }
    ioapic_set_gsi(gsi, level);
}

const IrqChipOps irqchip_user = {
    .name = "user",
    .set_gsi = irqchip_user_set_gsi,
    .send_msi = apic_send_msi,
    .cpu_init = apic_cpu_init,
    .cpu_reachable = apic_cpu_reachable,
    .cpu_reset = apic_cpu_reset,
    .cpu_pending = apic_cpu_pending,
    .cpu_ack = apic_cpu_ack,
    .tpr_get = apic_tpr_get,
    .tpr_set = apic_tpr_set,
    .base_get = apic_base_get_op,
    .base_set = apic_base_set_op,
    .msr_read = apic_msr_read_op,
    .msr_write = apic_msr_write_op,
    .tsc_deadline_get = apic_tsc_deadline_get_op,
    .tsc_deadline_set = apic_tsc_deadline_set_op,
    .timer_check = apic_timer_check_op,
    .timer_deadline = apic_timer_deadline_op,
    .mmio_read = xapic_read,
    .mmio_write = xapic_write,
};

/* ---- The page in the map of memory ---- */

/* Is this the calling vCPU's own page? Devices' writes on a vCPU's thread use send_msi. */
static LocalApic *own_page(hwaddr offset)
{
    LocalApic *a = current_cpu ? cpu_apic(current_cpu) : NULL;

    return a && (atomic_load(&a->base) & ~0xfffull) == (APIC_DEFAULT_BASE | (offset & ~0xfffull))
               ? a : NULL;
}

static uint64_t page_read(void *opaque, hwaddr offset, unsigned size)
{
    LocalApic *a = own_page(offset);

    return a && apic_enabled(a) && !apic_is_x2(a) ? xapic_read(a->cpu, offset & 0xfff)
                                                  : UINT32_MAX;
}

static void page_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    LocalApic *a = own_page(offset);

    if (!a) {
        if (irqchip) {
            irqchip->send_msi(APIC_DEFAULT_BASE | offset, (uint32_t)value);
        }
    } else if (apic_enabled(a) && !apic_is_x2(a)) {
        xapic_write(a->cpu, offset & 0xfff, (uint32_t)value);
    }
}

/* Only aligned 32-bit accesses are defined (SDM 3A 11.4.1). */
static const MemoryRegionOps page_ops = {
    .read = page_read, .write = page_write, .valid_min = 4, .valid_max = 4,
};

void apic_mmio_init(MemoryRegion *mr)
{
    memory_region_init_io(mr, &page_ops, NULL, "apic-msi", 0x100000);
}

/* ---- State ---- */

static bool apic_post_load(void *opaque, int version, Error **errp)
{
    LocalApic *a = opaque;

    apic_dest_update(a);
    apic_lint0_users_update(a);
    atomic_store(&a->arb_prio, apic_ppr(a));
    cpu_request(a->cpu, CPU_REQ_INTERRUPT | CPU_REQ_TIMER);
    return true;
}

const VMState apic_vmstate = {
    .name = "apic",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U64, LocalApic, base, 1),
        VMS_FIELD(VMS_U32, LocalApic, svr, 1),
        VMS_FIELD(VMS_U32, LocalApic, lvt, APIC_LVT_COUNT),
        VMS_FIELD(VMS_U32, LocalApic, irr, 8),
        VMS_FIELD(VMS_U32, LocalApic, tmr, 8),
        VMS_FIELD(VMS_U32, LocalApic, isr, 8),
        VMS_FIELD(VMS_U32, LocalApic, esr_pending, 1),
        VMS_FIELD(VMS_BOOL, LocalApic, extint, 1),
        VMS_FIELD(VMS_U32, LocalApic, xid, 1),
        VMS_FIELD(VMS_U32, LocalApic, ldr, 1),
        VMS_FIELD(VMS_U32, LocalApic, dfr, 1),
        VMS_FIELD(VMS_U32, LocalApic, esr, 1),
        VMS_FIELD(VMS_U64, LocalApic, icr, 1),
        VMS_FIELD(VMS_U8, LocalApic, tpr, 1),
        VMS_FIELD(VMS_U32, LocalApic, initial_count, 1),
        VMS_FIELD(VMS_U32, LocalApic, divide_conf, 1),
        VMS_FIELD(VMS_U64, LocalApic, next_ns, 1),
        VMS_FIELD(VMS_U64, LocalApic, tsc_deadline, 1),
        VMS_END,
    },
    .post_load = apic_post_load,
};

void *apic_vmstate_opaque(CPUState *cpu)
{
    return cpu->irqchip;
}

int apic_describe(CPUState *cpu, char *buf, size_t len)
{
    static const char *const names[APIC_LVT_COUNT] = {
        "TIMER", "THERM", "PERFM", "LINT0", "LINT1", "ERROR", "CMCI",
    };
    LocalApic *a = cpu_apic(cpu);
    int n = 0;

#define ADD(...)                                                                                   \
    do {                                                                                           \
        n += snprintf((size_t)n < len ? buf + n : NULL, (size_t)n < len ? len - (size_t)n : 0,     \
                      __VA_ARGS__);                                                                \
    } while (0)
    ADD("local APIC of CPU %u: base 0x%016llx%s\n", cpu->index,
        (unsigned long long)atomic_load(&a->base), apic_is_x2(a) ? " (x2APIC)" : "");
    for (unsigned i = 0; i < APIC_LVT_COUNT; i++) {
        ADD("LVT %s\t0x%08x\n", names[i], atomic_load(&a->lvt[i]));
    }
    ADD("SVR 0x%08x  TPR 0x%02x  PPR 0x%02x  LDR 0x%08x  DFR 0x%08x  ID 0x%08x\n",
        atomic_load(&a->svr), a->tpr, apic_ppr(a), a->ldr, a->dfr,
        apic_is_x2(a) ? a->x2id : a->xid >> 24);
    ADD("ICR 0x%016llx  ESR 0x%08x\n", (unsigned long long)a->icr, a->esr);
    ADD("TIMER divide 0x%x  initial 0x%08x  current 0x%08x  tsc-deadline 0x%llx\n",
        a->divide_conf, a->initial_count, apic_timer_current(a),
        (unsigned long long)a->tsc_deadline);
    ADD("ISR");
    for (int v = 255; v >= 0; v--) {
        if (a->isr[v >> 5] & BIT(v & 31)) {
            ADD(" %d", v);
        }
    }
    ADD("\nIRR");
    for (int v = 255; v >= 0; v--) {
        uint32_t bit = BIT(v & 31);

        if (atomic_load(&a->irr[v >> 5]) & bit) {
            ADD(" %d%s", v, atomic_load(&a->tmr[v >> 5]) & bit ? "(level)" : "");
        }
    }
    ADD("\n");
#undef ADD
    return MIN(n, (int)len);
}
