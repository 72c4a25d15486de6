/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hardware task switches (SDM 3A 7.3), 16- and 32-bit TSS. All memory that is touched is probed
 * first. Past the commit point the processor is the new task: faults of its selectors are reported
 * there (i is no longer given), as on hardware.
 */
#include "accel/tcg/sys.h"

/* Offsets in the TSS; register order is EAX ECX EDX EBX ESP EBP ESI EDI. */
typedef struct TssLayout {
    uint8_t size; /* of registers */
    uint8_t min_limit;
    uint8_t ip, flags, regs, segs, ldt;
    uint8_t nsegs, seg_step;
} TssLayout;

static const TssLayout tss32 = { .size = 4, .min_limit = 0x67, .ip = 0x20, .flags = 0x24,
                                 .regs = 0x28, .segs = 0x48, .ldt = 0x60, .nsegs = 6,
                                 .seg_step = 4 };
static const TssLayout tss16 = { .size = 2, .min_limit = 0x2b, .ip = 0x0e, .flags = 0x10,
                                 .regs = 0x12, .segs = 0x22, .ldt = 0x2a, .nsegs = 4,
                                 .seg_step = 2 };
#define TSS32_CR3 0x1c
#define TSS32_T   0x64

/* What a TSS holds; segments in the order of R_ES.. */
typedef struct TaskState {
    uint32_t ip, flags, regs[8], cr3;
    uint16_t seg[R_SEG_COUNT], ldt;
    bool t;
} TaskState;

static uint64_t tss_ld(X86CPU *c, const Insn *i, uint64_t base, unsigned off, unsigned size)
{
    return tcg_ld_sys(c, i, mem_add(c, base, off), size);
}

static void tss_st(X86CPU *c, const Insn *i, uint64_t base, unsigned off, uint64_t v, unsigned size)
{
    tcg_st_sys(c, i, mem_add(c, base, off), v, size);
}

static void task_load(X86CPU *c, const Insn *i, uint64_t base, const TssLayout *l, TaskState *t)
{
    *t = (TaskState){ 0 };
    t->ip = (uint32_t)tss_ld(c, i, base, l->ip, l->size);
    t->flags = (uint32_t)tss_ld(c, i, base, l->flags, l->size);
    for (unsigned n = 0; n < 8; n++) {
        t->regs[n] = (uint32_t)tss_ld(c, i, base, l->regs + n * l->size, l->size);
        if (l->size == 2) {
            t->regs[n] |= 0xffff0000; /* undefined by the manual; as processors leave it */
        }
    }
    for (unsigned n = 0; n < l->nsegs; n++) {
        t->seg[n] = (uint16_t)tss_ld(c, i, base, l->segs + n * l->seg_step, 2);
    }
    t->ldt = (uint16_t)tss_ld(c, i, base, l->ldt, 2);
    if (l->size == 4) {
        t->cr3 = (uint32_t)tss_ld(c, i, base, TSS32_CR3, 4);
        t->t = tss_ld(c, i, base, TSS32_T, 2) & 1;
    }
}

static void task_save(X86CPU *c, const Insn *i, uint64_t base, const TssLayout *l, uint64_t ip,
                      uint64_t flags)
{
    tss_st(c, i, base, l->ip, ip, l->size);
    tss_st(c, i, base, l->flags, flags, l->size);
    for (unsigned n = 0; n < 8; n++) {
        tss_st(c, i, base, l->regs + n * l->size, c->regs[n], l->size);
    }
    for (unsigned n = 0; n < l->nsegs; n++) {
        tss_st(c, i, base, l->segs + n * l->seg_step, c->seg[n].selector, 2);
    }
}

/* Every byte a switch may touch, so that the rest of it cannot fault. */
static void task_probe(X86CPU *c, const Insn *i, uint64_t base, const TssLayout *l)
{
    mem_probe(c, i, base, l->min_limit + 1u, ACC_WRITE, mmu_mode_implicit(c));
}

/* ---- The new task's segments ---- */

static void task_ldt(X86CPU *c, uint16_t sel)
{
    Desc d;

    c->ldt = seg_null(sel);
    if (sys_null(sel)) {
        return;
    }
    if ((sel & 4) || !desc_read(c, NULL, sel, &d) || desc_is_segment(&d) ||
        desc_type(&d) != SYS_LDT || !desc_present(&d)) {
        tcg_raise_err(c, NULL, EXCP_TS, sel & ~3u);
    }
    c->ldt = desc_cache(&d, sel);
}

static void task_cs(X86CPU *c, uint16_t sel)
{
    unsigned rpl = sel & 3;
    Desc d;

    if (sys_null(sel)) {
        tcg_raise_err(c, NULL, EXCP_TS, 0);
    }
    desc_read_or(c, NULL, sel, &d, EXCP_TS, 0);
    if (!desc_is_code(&d) ||
        (desc_is_conforming(&d) ? desc_dpl(&d) > rpl : desc_dpl(&d) != rpl)) {
        tcg_raise_err(c, NULL, EXCP_TS, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, NULL, EXCP_NP, sel & ~3u);
    }
    desc_set_accessed(c, NULL, &d);
    c->seg[R_CS] = desc_cache(&d, sel);
}

static void task_data(X86CPU *c, unsigned seg, uint16_t sel)
{
    Desc d;

    if (sys_null(sel)) {
        return;
    }
    desc_read_or(c, NULL, sel, &d, EXCP_TS, 0);
    if (!desc_is_segment(&d) || (desc_is_code(&d) && !(d.hi & BIT(9))) ||
        (!desc_is_conforming(&d) && (desc_dpl(&d) < (sel & 3u) || desc_dpl(&d) < c->cpl))) {
        tcg_raise_err(c, NULL, EXCP_TS, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, NULL, EXCP_NP, sel & ~3u);
    }
    desc_set_accessed(c, NULL, &d);
    c->seg[seg] = desc_cache(&d, sel);
}

/* The LDT comes first: CS and SS may lie in it. */
static void task_segments(X86CPU *c, const TaskState *t)
{
    task_ldt(c, t->ldt);
    if (c->rflags & FL_VM) {
        return;
    }
    task_cs(c, t->seg[R_CS]);
    if (sys_null(t->seg[R_SS])) {
        tcg_raise_err(c, NULL, EXCP_TS, 0);
    }
    c->seg[R_SS] = seg_check_stack(c, NULL, t->seg[R_SS], c->cpl, EXCP_TS, 0);
    task_data(c, R_ES, t->seg[R_ES]);
    task_data(c, R_DS, t->seg[R_DS]);
    task_data(c, R_FS, t->seg[R_FS]);
    task_data(c, R_GS, t->seg[R_GS]);
}

/* ---- The switch ---- */

static void task_registers(X86CPU *c, const TaskState *t, const TssLayout *l, uint64_t flags)
{
    if ((c->cr0 & CR0_PG) && l->size == 4 && !cr3_load(c, t->cr3)) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    for (unsigned n = 0; n < 8; n++) {
        c->regs[n] = t->regs[n];
    }
    x86_set_rflags(c, flags);
    c->rip = t->ip;
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        c->seg[n] = seg_null(t->seg[n]);
        if (flags & FL_VM) {
            seg_load_real(c, n, t->seg[n]);
        }
    }
    c->cpl = (flags & FL_VM) ? 3 : t->seg[R_CS] & 3;
}

static void task_commit(X86CPU *c, const Insn *i, uint16_t sel, const Desc *d,
                        const TaskState *t, const TssLayout *l, TaskSource source)
{
    uint64_t flags = (l->size == 4 ? t->flags : t->flags & 0xffff) | FL_1;
    uint16_t old = c->tr.selector;

    if (source == TASK_CALL || source == TASK_INT) {
        tss_st(c, i, desc_base(d), 0, old, 2);
        flags |= FL_NT;
    } else {
        desc_set_busy(c, i, old, false);
    }
    if (source != TASK_IRET) {
        desc_set_busy(c, i, sel, true);
    }
    c->tr = desc_cache(d, sel);
    c->tr.attr |= TSS_BUSY;
    c->cr0 |= CR0_TS;
    c->dr[7] &= ~0x155ull; /* the local enables, LE among them */
    c->int_shadow = c->movss_shadow = false;
    c->tcg->sys->no_step = true;
    task_registers(c, t, l, flags & ~FL_RF);
    if ((flags & FL_RF) && debug_code_breakpoints(c)) {
        c->rflags |= FL_RF;
        c->tcg->sys->rf_fresh = true;
    }
}

void task_switch(X86CPU *c, const Insn *i, uint16_t sel, Desc *d, TaskSource source,
                 uint64_t next_rip, bool has_error, uint32_t error, uint32_t ext)
{
    const TssLayout *l = desc_type(d) & 8 ? &tss32 : &tss16;
    const TssLayout *ol = SEG_TYPE(c->tr.attr) & 8 ? &tss32 : &tss16;
    uint64_t flags = x86_get_rflags(c);
    TaskState t;

    if (desc_limit(d) < l->min_limit) {
        tcg_raise_err(c, i, EXCP_TS, (sel & ~3u) | ext);
    }
    task_probe(c, i, c->tr.base, ol);
    task_probe(c, i, desc_base(d), l);
    mem_probe(c, i, mem_add(c, c->gdt.base, sel & ~7u), 8, ACC_WRITE, mmu_mode_implicit(c));
    mem_probe(c, i, mem_add(c, c->gdt.base, c->tr.selector & ~7u), 8, ACC_WRITE,
              mmu_mode_implicit(c));
    task_load(c, i, desc_base(d), l, &t);
    task_save(c, i, c->tr.base, ol, next_rip, source == TASK_IRET ? flags & ~FL_NT : flags);
    task_commit(c, i, sel, d, &t, l, source);
    tcg_mode_changed(c);
    task_segments(c, &t);
    tcg_mode_changed(c);
    mmu_breakpoints_changed(c);
    if (has_error) {
        SysStack s = sys_stack_current(c, NULL);

        sys_push(&s, error, l->size);
        c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    }
    far_check_rip(c, NULL, &c->seg[R_CS], c->rip, 0);
    if (t.t) {
        c->tcg->db_pending |= DR6_BT;
    }
}

void task_gate_enter(X86CPU *c, const Insn *i, uint16_t tss_sel, TaskSource source,
                     uint64_t next_rip, bool has_error, uint32_t error, uint32_t ext)
{
    uint32_t code = (tss_sel & ~3u) | ext;
    Desc d;

    if (sys_null(tss_sel)) {
        tcg_raise_err(c, i, EXCP_GP, ext);
    }
    if ((tss_sel & 4) || !desc_read(c, i, tss_sel, &d) || desc_is_segment(&d) ||
        (desc_type(&d) != SYS_TSS && desc_type(&d) != SYS_TSS16)) {
        tcg_raise_err(c, i, EXCP_GP, code);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_NP, code);
    }
    task_switch(c, i, tss_sel, &d, source, next_rip, has_error, error, ext);
}

void task_return(X86CPU *c, const Insn *i, uint64_t next_rip)
{
    uint16_t sel = (uint16_t)tss_ld(c, i, c->tr.base, 0, 2);
    Desc d;

    if (sys_null(sel)) {
        tcg_raise_err(c, i, EXCP_TS, 0);
    }
    if ((sel & 4) || !desc_read(c, i, sel, &d) || desc_is_segment(&d) ||
        (desc_type(&d) != SYS_TSS_BUSY && desc_type(&d) != SYS_TSS16_BUSY)) {
        tcg_raise_err(c, i, EXCP_TS, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_NP, sel & ~3u);
    }
    task_switch(c, i, sel, &d, TASK_IRET, next_rip, false, 0, 0);
}
