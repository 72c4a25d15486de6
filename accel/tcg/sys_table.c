/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptor tables, LDTR and TR, selectors as operands (LAR, LSL, VERR, VERW, ARPL), and moves to
 * and from segment registers (SDM 2).
 */
#include "accel/tcg/sys.h"

static void need_protected(X86CPU *c, const Insn *i)
{
    if (!sys_protected(c)) {
        tcg_raise(c, i, EXCP_UD);
    }
}

/* ---- GDTR and IDTR ---- */

static TableReg table_load(X86CPU *c, const Insn *i)
{
    bool wide = x86_in_64bit(c);
    uint64_t lin;
    TableReg t;

    sys_need_cpl0(c, i);
    lin = tcg_ea(c, i, wide ? 10 : 6, false);
    t.limit = tcg_ld16(c, i, lin);
    if (wide) {
        t.base = tcg_ld64(c, i, lin + 2);
        if (!mmu_canonical(t.base)) {
            sys_gp0(c, i);
        }
    } else {
        t.base = tcg_ld32(c, i, mem_add(c, lin, 2));
        if (i->opsize == 2) {
            t.base &= 0xffffff; /* the 80286's 24 bits */
        }
    }
    return t;
}

void sys_lgdt(X86CPU *c, const Insn *i)
{
    c->gdt = table_load(c, i);
    NEXT(c, i);
}

void sys_lidt(X86CPU *c, const Insn *i)
{
    c->idt = table_load(c, i);
    NEXT(c, i);
}

/* All 32 bits of the base whatever the operand size, as every processor since the 80386 does. */
static void table_store(X86CPU *c, const Insn *i, const TableReg *t)
{
    unsigned len = x86_in_64bit(c) ? 10 : 6;
    uint8_t buf[10];
    uint64_t lin;

    sys_check_umip(c, i);
    for (unsigned n = 0; n < len; n++) {
        buf[n] = n < 2 ? (uint8_t)(t->limit >> (8 * n)) : (uint8_t)(t->base >> (8 * (n - 2)));
    }
    lin = tcg_ea(c, i, len, true);
    tcg_st_buf(c, i, lin, buf, len);
}

void sys_sgdt(X86CPU *c, const Insn *i)
{
    table_store(c, i, &c->gdt);
    NEXT(c, i);
}

void sys_sidt(X86CPU *c, const Insn *i)
{
    table_store(c, i, &c->idt);
    NEXT(c, i);
}

/* ---- LDTR and TR ---- */

void sys_lldt(X86CPU *c, const Insn *i)
{
    uint16_t sel;
    Desc d;

    need_protected(c, i);
    sys_need_cpl0(c, i);
    sel = (uint16_t)sys_rm_load(c, i, 2);
    if (sys_null(sel)) {
        c->ldt = seg_null(sel);
        NEXT(c, i);
    }
    if ((sel & 4) || !desc_read(c, i, sel, &d) || desc_is_segment(&d) ||
        desc_type(&d) != SYS_LDT) {
        tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_NP, sel & ~3u);
    }
    if (!mmu_canonical(desc_base(&d))) {
        tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
    }
    c->ldt = desc_cache(&d, sel);
    NEXT(c, i);
}

void sys_ltr(X86CPU *c, const Insn *i)
{
    uint16_t sel;
    Desc d;

    need_protected(c, i);
    sys_need_cpl0(c, i);
    sel = (uint16_t)sys_rm_load(c, i, 2);
    if (sys_null(sel)) {
        sys_gp0(c, i);
    }
    if ((sel & 4) || !desc_read(c, i, sel, &d) || desc_is_segment(&d) ||
        (desc_type(&d) != SYS_TSS && (sys_long(c) || desc_type(&d) != SYS_TSS16))) {
        tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_NP, sel & ~3u);
    }
    if (!mmu_canonical(desc_base(&d))) {
        tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
    }
    desc_set_busy(c, i, sel, true);
    c->tr = desc_cache(&d, sel);
    c->tr.attr |= TSS_BUSY;
    NEXT(c, i);
}

static void store_selector(X86CPU *c, const Insn *i, uint16_t sel)
{
    if (i->aux8 & SYS_MEM) {
        sys_rm_store(c, i, sel, 2);
    } else {
        sys_reg_set(c, i->rm, sel, i->opsize);
    }
}

void sys_sldt(X86CPU *c, const Insn *i)
{
    need_protected(c, i);
    sys_check_umip(c, i);
    store_selector(c, i, c->ldt.selector);
    NEXT(c, i);
}

void sys_str(X86CPU *c, const Insn *i)
{
    need_protected(c, i);
    sys_check_umip(c, i);
    store_selector(c, i, c->tr.selector);
    NEXT(c, i);
}

/* ---- LAR, LSL, VERR, VERW ---- */

static void set_zf(X86CPU *c, bool on)
{
    uint32_t zf = (uint32_t)FL_ZF << 8;

    c->cc = on ? c->cc | zf : c->cc & ~zf;
}

/* DPL rules of the four; conforming code is open to all. */
static bool reachable(const X86CPU *c, const Desc *d, uint16_t sel)
{
    return desc_is_conforming(d) || (desc_dpl(d) >= c->cpl && desc_dpl(d) >= (sel & 3u));
}

static bool lar_type_ok(const X86CPU *c, const Desc *d, bool lsl)
{
    unsigned type = desc_type(d);

    if (desc_is_segment(d)) {
        return true;
    }
    switch (type) {
    case SYS_LDT:
    case SYS_TSS:
    case SYS_TSS_BUSY:
        return true;
    case SYS_CALL:
        return !lsl;
    case SYS_TSS16:
    case SYS_TSS16_BUSY:
        return !sys_long(c);
    case SYS_CALL16:
    case SYS_TASK_GATE:
        return !lsl && !sys_long(c);
    default:
        return false;
    }
}

static bool lar_lookup(X86CPU *c, const Insn *i, bool lsl, Desc *d)
{
    uint16_t sel;

    need_protected(c, i);
    sel = (uint16_t)sys_rm_load(c, i, 2);
    return !sys_null(sel) && desc_read(c, i, sel, d) && lar_type_ok(c, d, lsl) &&
           reachable(c, d, sel);
}

void sys_lar(X86CPU *c, const Insn *i)
{
    Desc d;
    bool ok = lar_lookup(c, i, false, &d);

    set_zf(c, ok);
    if (ok) {
        sys_reg_set(c, i->reg, d.hi & 0x00ffff00, i->opsize);
    }
    NEXT(c, i);
}

void sys_lsl(X86CPU *c, const Insn *i)
{
    Desc d;
    bool ok = lar_lookup(c, i, true, &d);

    set_zf(c, ok);
    if (ok) {
        sys_reg_set(c, i->reg, desc_limit(&d), i->opsize);
    }
    NEXT(c, i);
}

static bool verify(X86CPU *c, const Insn *i, bool write)
{
    uint16_t sel;
    Desc d;

    need_protected(c, i);
    sel = (uint16_t)sys_rm_load(c, i, 2);
    if (sys_null(sel) || !desc_read(c, i, sel, &d) || !desc_is_segment(&d) ||
        !reachable(c, &d, sel)) {
        return false;
    }
    return write ? desc_is_writable_data(&d) : !desc_is_code(&d) || (d.hi & BIT(9));
}

void sys_verr(X86CPU *c, const Insn *i)
{
    set_zf(c, verify(c, i, false));
    NEXT(c, i);
}

void sys_verw(X86CPU *c, const Insn *i)
{
    set_zf(c, verify(c, i, true));
    NEXT(c, i);
}

void sys_arpl(X86CPU *c, const Insn *i)
{
    unsigned want = c->regs[i->reg] & 3;
    uint16_t v;

    need_protected(c, i);
    v = (uint16_t)sys_rm_load(c, i, 2);
    if (i->aux8 & SYS_MEM) {
        tcg_probe_write(c, i, tcg_ea(c, i, 2, true), 2);
    }
    if ((v & 3u) < want) {
        sys_rm_store(c, i, (v & ~3u) | want, 2);
        set_zf(c, true);
    } else {
        set_zf(c, false);
    }
    NEXT(c, i);
}

/* ---- Segment registers ---- */

/* Loading SS holds interrupts and debug traps back until the next instruction has ended, unless
 * this one already ran under such a shadow (SDM 3A 6.8.3). */
static void ss_shadow(X86CPU *c)
{
    if (!c->tcg->shadow_now) {
        c->int_shadow = c->movss_shadow = true;
    }
}

/* seg has been loaded: what else was decoded into the block holds unless the mode key changed. */
static inline bool seg_loaded(X86CPU *c, const Insn *i, unsigned seg, bool shadow)
{
    uint32_t key = c->tcg->mode_key;

    if (seg != R_SS) {
        tcg_mode_changed(c);
        return c->tcg->mode_key == key;
    }
    if (shadow) {
        ss_shadow(c);
    }
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
    return false;
}
#define SEG_NEXT(c, i, seg, shadow)                                                                \
    do {                                                                                           \
        if (seg_loaded(c, i, seg, shadow)) {                                                       \
            NEXT(c, i);                                                                            \
        }                                                                                          \
        if ((seg) != R_SS) {                                                                       \
            tcg_leave_after(c, i);                                                                 \
        }                                                                                          \
    } while (0)

void sys_mov_to_seg(X86CPU *c, const Insn *i)
{
    if (i->reg == R_CS || i->reg >= R_SEG_COUNT) {
        tcg_raise(c, i, EXCP_UD);
    }
    seg_load(c, i, i->reg, (uint16_t)sys_rm_load(c, i, 2));
    SEG_NEXT(c, i, i->reg, true);
}

void sys_mov_from_seg(X86CPU *c, const Insn *i)
{
    if (i->reg >= R_SEG_COUNT) {
        tcg_raise(c, i, EXCP_UD);
    }
    store_selector(c, i, c->seg[i->reg].selector);
    NEXT(c, i);
}

void sys_push_seg(X86CPU *c, const Insn *i)
{
    SysStack s = sys_stack_current(c, i);

    /* The stack moves by the operand size, but only two bytes are written (SDM 2B PUSH). */
    if (i->opsize == 4) {
        s.sp = (s.sp - 2) & s.mask;
        sys_push(&s, c->seg[i->reg].selector, 2);
    } else {
        sys_push(&s, c->seg[i->reg].selector, i->opsize);
    }
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    NEXT(c, i);
}

void sys_pop_seg(X86CPU *c, const Insn *i)
{
    SysStack s = sys_stack_current(c, i);
    uint64_t rsp;

    uint16_t sel = (uint16_t)sys_pop(&s, i->opsize == 4 ? 2 : i->opsize);
    if (i->opsize == 4) {
        s.sp = (s.sp + 2) & s.mask;
    }
    rsp = sys_stack_rsp(&s, c->regs[R_RSP]);
    seg_load(c, i, i->reg, sel);
    c->regs[R_RSP] = rsp;
    SEG_NEXT(c, i, i->reg, true);
}

/* LDS, LES, LFS, LGS, LSS: aux16 is the segment register. */
void sys_load_far(X86CPU *c, const Insn *i)
{
    uint64_t lin = tcg_ea(c, i, i->opsize + 2u, false);
    uint64_t off = i->opsize == 2   ? tcg_ld16(c, i, lin)
                   : i->opsize == 4 ? tcg_ld32(c, i, lin)
                                    : tcg_ld64(c, i, lin);
    uint16_t sel = tcg_ld16(c, i, mem_add(c, lin, i->opsize));

    seg_load(c, i, i->aux16, sel); /* LSS makes no shadow: it loads the pointer as well */
    sys_reg_set(c, i->reg, off, i->opsize);
    SEG_NEXT(c, i, i->aux16, false);
}
