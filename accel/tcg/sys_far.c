/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Far JMP, CALL and RET (SDM 2A/2B, SDM 3A 5.8): code segments, call gates of all three kinds, task
 * gates and TSSs, with the changes of privilege they may bring.
 */
#include "accel/tcg/sys.h"

/* ---- CS ---- */

void far_set_cs(X86CPU *c, SegmentCache cs, unsigned cpl, uint64_t rip)
{
    c->seg[R_CS] = cs;
    c->cpl = (uint8_t)cpl;
    c->rip = rip;
}

void far_check_rip(X86CPU *c, const Insn *i, const SegmentCache *cs, uint64_t rip, uint32_t error)
{
    if (cs_is_64(c, cs) ? !mmu_canonical(rip) : rip > cs->limit) {
        tcg_raise_err(c, i, EXCP_GP, error);
    }
}

static uint64_t offset_mask(unsigned size)
{
    return size == 8 ? UINT64_MAX : size == 4 ? 0xffffffff : 0xffff;
}

/* L and D both set are reserved in long mode. */
static bool bad_long_bits(const X86CPU *c, const Desc *d)
{
    return sys_long(c) && (desc_attr(d) & (SEG_L | SEG_DB)) == (SEG_L | SEG_DB);
}

/* ---- Real and virtual-8086 mode ---- */

static void real_jmp(X86CPU *c, const Insn *i, uint16_t sel, uint64_t off)
{
    if (off > c->seg[R_CS].limit) {
        sys_gp0(c, i);
    }
    seg_load_real(c, R_CS, sel);
    c->rip = off;
}

static void real_call(X86CPU *c, const Insn *i, uint16_t sel, uint64_t off)
{
    SysStack s = sys_stack_current(c, i);

    if (off > c->seg[R_CS].limit) {
        sys_gp0(c, i);
    }
    sys_push(&s, c->seg[R_CS].selector, i->opsize);
    sys_push(&s, tcg_next_rip(c, i), i->opsize);
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    real_jmp(c, i, sel, off);
}

static void real_ret(X86CPU *c, const Insn *i)
{
    SysStack s = sys_stack_current(c, i);
    uint64_t off = sys_pop(&s, i->opsize);
    uint16_t sel = (uint16_t)sys_pop(&s, i->opsize);

    if (off > c->seg[R_CS].limit) {
        sys_gp0(c, i);
    }
    s.sp += i->imm;
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    real_jmp(c, i, sel, off);
}

/* ---- Direct transfer to a code segment, CPL unchanged ---- */

static SegmentCache direct_check(X86CPU *c, const Insn *i, uint16_t sel, Desc *d)
{
    uint32_t error = sel & ~3u;
    bool ok = desc_is_conforming(d) ? desc_dpl(d) <= c->cpl
                                    : (sel & 3u) <= c->cpl && desc_dpl(d) == c->cpl;

    if (!ok || bad_long_bits(c, d)) {
        tcg_raise_err(c, i, EXCP_GP, error);
    }
    if (!desc_present(d)) {
        tcg_raise_err(c, i, EXCP_NP, error);
    }
    return desc_cache(d, (uint16_t)(error | c->cpl));
}

static void direct_jmp(X86CPU *c, const Insn *i, uint16_t sel, uint64_t off, Desc *d)
{
    SegmentCache cs = direct_check(c, i, sel, d);

    far_check_rip(c, i, &cs, off, 0);
    desc_set_accessed(c, i, d);
    cs.attr |= SEG_A;
    far_set_cs(c, cs, c->cpl, off);
}

static void direct_call(X86CPU *c, const Insn *i, uint16_t sel, uint64_t off, Desc *d)
{
    SegmentCache cs = direct_check(c, i, sel, d);
    SysStack s = sys_stack_current(c, i);

    far_check_rip(c, i, &cs, off, 0);
    sys_push(&s, c->seg[R_CS].selector, i->opsize);
    sys_push(&s, tcg_next_rip(c, i), i->opsize);
    desc_set_accessed(c, i, d);
    cs.attr |= SEG_A;
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    far_set_cs(c, cs, c->cpl, off);
}

/* ---- Call gates ---- */

typedef struct CallGate {
    uint16_t sel;
    uint64_t off;
    unsigned size;   /* of pushed words */
    unsigned params; /* words to copy */
    Desc cs;
    SegmentCache ccs;
} CallGate;

static void gate_read(X86CPU *c, const Insn *i, const Desc *g, CallGate *out)
{
    unsigned type = desc_type(g);

    out->sel = gate_selector(g);
    out->off = g->lo & 0xffff;
    out->size = sys_long(c) ? 8 : type == SYS_CALL ? 4 : 2;
    out->params = sys_long(c) ? 0 : g->hi & 31;
    if (type == SYS_CALL) {
        out->off |= g->hi & 0xffff0000;
    }
    if (sys_long(c)) {
        out->off |= (uint64_t)g->base_hi << 32;
    }
    if (sys_null(out->sel)) {
        sys_gp0(c, i);
    }
    desc_read_or(c, i, out->sel, &out->cs, EXCP_GP, 0);
    if (!desc_is_code(&out->cs) || desc_dpl(&out->cs) > c->cpl ||
        (sys_long(c) && (desc_attr(&out->cs) & (SEG_L | SEG_DB)) != SEG_L)) {
        tcg_raise_err(c, i, EXCP_GP, out->sel & ~3u);
    }
}

static void gate_present(X86CPU *c, const Insn *i, CallGate *g, unsigned cpl)
{
    if (!desc_present(&g->cs)) {
        tcg_raise_err(c, i, EXCP_NP, g->sel & ~3u);
    }
    g->ccs = desc_cache(&g->cs, (uint16_t)((g->sel & ~3u) | cpl));
    g->ccs.attr |= SEG_A;
    far_check_rip(c, i, &g->ccs, g->off, 0);
}

static void gate_jmp(X86CPU *c, const Insn *i, const Desc *d)
{
    CallGate g;

    gate_read(c, i, d, &g);
    if (!desc_is_conforming(&g.cs) && desc_dpl(&g.cs) != c->cpl) {
        tcg_raise_err(c, i, EXCP_GP, g.sel & ~3u);
    }
    gate_present(c, i, &g, c->cpl);
    desc_set_accessed(c, i, &g.cs);
    far_set_cs(c, g.ccs, c->cpl, g.off);
}

static void copy_params(SysStack *to, SysStack from, unsigned n, unsigned size)
{
    uint64_t v[31];

    for (unsigned k = 0; k < n; k++) {
        v[k] = sys_pop(&from, size);
    }
    while (n--) {
        sys_push(to, v[n], size);
    }
}

/* More privilege: the new stack comes from the TSS. */
static void gate_call_inner(X86CPU *c, const Insn *i, CallGate *g, unsigned cpl)
{
    uint16_t sel;
    uint64_t sp = tss_stack(c, i, cpl, &sel, 0);
    SegmentCache ss;
    SysStack s;

    if (sys_long(c)) {
        ss = seg_null((uint16_t)cpl);
        ss.attr |= (uint32_t)cpl << SEG_DPL_SHIFT;
        s = sys_stack_new(c, i, ss, sp, cpl, true, 0);
    } else {
        if (sys_null(sel)) {
            tcg_raise_err(c, i, EXCP_TS, 0);
        }
        ss = seg_check_stack(c, i, sel, cpl, EXCP_TS, 0);
        s = sys_stack_new(c, i, ss, sp, cpl, false, sel & ~3u);
    }
    sys_push(&s, c->seg[R_SS].selector, g->size);
    sys_push(&s, c->regs[R_RSP], g->size);
    copy_params(&s, sys_stack_current(c, i), g->params, g->size);
    sys_push(&s, c->seg[R_CS].selector, g->size);
    sys_push(&s, tcg_next_rip(c, i), g->size);
    desc_set_accessed(c, i, &g->cs);

    c->seg[R_SS] = ss;
    c->regs[R_RSP] = sys_stack_rsp(&s, sys_long(c) ? 0 : c->regs[R_RSP]);
    far_set_cs(c, g->ccs, cpl, g->off);
}

static void gate_call(X86CPU *c, const Insn *i, const Desc *d)
{
    CallGate g;
    unsigned cpl;
    SysStack s;

    gate_read(c, i, d, &g);
    cpl = desc_is_conforming(&g.cs) ? c->cpl : desc_dpl(&g.cs);
    gate_present(c, i, &g, cpl);
    if (cpl < c->cpl) {
        gate_call_inner(c, i, &g, cpl);
        return;
    }
    s = sys_stack_current(c, i);
    if (sys_long(c)) {
        s.flat64 = true; /* the target is 64-bit code */
        s.mask = UINT64_MAX;
    }
    sys_push(&s, c->seg[R_CS].selector, g.size);
    sys_push(&s, tcg_next_rip(c, i), g.size);
    desc_set_accessed(c, i, &g.cs);
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    far_set_cs(c, g.ccs, cpl, g.off);
}

/* ---- JMP and CALL ---- */

/* System descriptor as a target: gates and tasks. */
static void system_target(X86CPU *c, const Insn *i, uint16_t sel, Desc *d, bool call)
{
    uint32_t error = sel & ~3u;
    unsigned type = desc_type(d);
    bool is_gate = type == SYS_CALL || (!sys_long(c) && type == SYS_CALL16);
    bool is_task = !sys_long(c) &&
                   (type == SYS_TASK_GATE || type == SYS_TSS || type == SYS_TSS16);

    if ((!is_gate && !is_task) || desc_dpl(d) < c->cpl || desc_dpl(d) < (sel & 3u)) {
        tcg_raise_err(c, i, EXCP_GP, error);
    }
    if (!desc_present(d)) {
        tcg_raise_err(c, i, EXCP_NP, error);
    }
    if (is_gate) {
        if (call) {
            gate_call(c, i, d);
        } else {
            gate_jmp(c, i, d);
        }
    } else {
        task_gate_enter(c, i, type == SYS_TASK_GATE ? gate_selector(d) : sel,
                        call ? TASK_CALL : TASK_JMP, tcg_next_rip(c, i), false, 0, 0);
    }
}

static void far_transfer(X86CPU *c, const Insn *i, uint16_t sel, uint64_t off, bool call)
{
    Desc d;

    if (!sys_protected(c)) {
        if (call) {
            real_call(c, i, sel, off);
        } else {
            real_jmp(c, i, sel, off);
        }
    } else {
        if (sys_null(sel)) {
            sys_gp0(c, i);
        }
        desc_read_or(c, i, sel, &d, EXCP_GP, 0);
        if (!desc_is_segment(&d)) {
            system_target(c, i, sel, &d, call);
        } else if (!desc_is_code(&d)) {
            tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
        } else if (call) {
            direct_call(c, i, sel, off, &d);
        } else {
            direct_jmp(c, i, sel, off, &d);
        }
    }
    sys_end(c);
}

/* The operand: an immediate ptr16:16/32 (aux16: selector), or m16:16/32/64 in memory. */
static uint16_t far_operand(X86CPU *c, const Insn *i, uint64_t *off)
{
    uint64_t lin;
    uint16_t sel;

    if (!(i->aux8 & SYS_MEM)) {
        *off = i->imm & offset_mask(i->opsize);
        return i->aux16;
    }
    lin = tcg_ea(c, i, i->opsize + 2, false);
    *off = i->opsize == 2   ? tcg_ld16(c, i, lin)
           : i->opsize == 4 ? tcg_ld32(c, i, lin)
                            : tcg_ld64(c, i, lin);
    sel = tcg_ld16(c, i, mem_add(c, lin, i->opsize));
    return sel;
}

void sys_far_jmp(X86CPU *c, const Insn *i)
{
    uint64_t off;
    uint16_t sel = far_operand(c, i, &off);

    far_transfer(c, i, sel, off, false);
}

void sys_far_call(X86CPU *c, const Insn *i)
{
    uint64_t off;
    uint16_t sel = far_operand(c, i, &off);

    far_transfer(c, i, sel, off, true);
}

/* ---- RET ---- */

/* CS of a return: rpl of the selector is the level to return to (SDM 2B RET). */
SegmentCache far_return_cs(X86CPU *c, const Insn *i, uint16_t sel, Desc *d)
{
    unsigned rpl = sel & 3;
    uint32_t error = sel & ~3u;

    if (sys_null(sel)) {
        sys_gp0(c, i);
    }
    desc_read_or(c, i, sel, d, EXCP_GP, 0);
    if (!desc_is_code(d) || rpl < c->cpl || bad_long_bits(c, d) ||
        (desc_is_conforming(d) ? desc_dpl(d) > rpl : desc_dpl(d) != rpl)) {
        tcg_raise_err(c, i, EXCP_GP, error);
    }
    if (!desc_present(d)) {
        tcg_raise_err(c, i, EXCP_NP, error);
    }
    return desc_cache(d, sel);
}

SegmentCache far_return_ss(X86CPU *c, const Insn *i, uint16_t sel, unsigned rpl,
                           const SegmentCache *cs)
{
    if (sys_null(sel)) {
        if (!cs_is_64(c, cs) || rpl == 3) {
            sys_gp0(c, i);
        }
        SegmentCache ss = seg_null(sel);
        ss.attr |= rpl << SEG_DPL_SHIFT;
        return ss;
    }
    return seg_check_stack(c, i, sel, rpl, EXCP_GP, 0);
}

void sys_far_ret(X86CPU *c, const Insn *i)
{
    SysStack s;
    SegmentCache cs, ss;
    uint64_t off, sp;
    unsigned rpl;
    uint16_t sel;
    Desc d;

    if (!sys_protected(c)) {
        real_ret(c, i);
        sys_end(c);
        return;
    }
    s = sys_stack_current(c, i);
    off = sys_pop(&s, i->opsize);
    sel = (uint16_t)sys_pop(&s, i->opsize);
    rpl = sel & 3;
    cs = far_return_cs(c, i, sel, &d);
    if (rpl == c->cpl) {
        far_check_rip(c, i, &cs, off, 0);
        desc_set_accessed(c, i, &d);
        cs.attr |= SEG_A;
        s.sp += i->imm;
        c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
        far_set_cs(c, cs, rpl, off);
        sys_end(c);
        return;
    }
    s.sp += i->imm;
    sp = sys_pop(&s, i->opsize);
    sel = (uint16_t)sys_pop(&s, i->opsize);
    ss = far_return_ss(c, i, sel, rpl, &cs);
    far_check_rip(c, i, &cs, off, 0);
    desc_set_accessed(c, i, &d);
    cs.attr |= SEG_A;

    c->seg[R_SS] = ss;
    s = sys_stack_new(c, i, ss, sp + i->imm, rpl, cs_is_64(c, &cs), 0);
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    far_set_cs(c, cs, rpl, off);
    seg_drop_privileged(c);
    sys_end(c);
}
