/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PUSH POP PUSHA POPA PUSHF POPF ENTER LEAVE. The stack's width is SS.B's (64 bits in 64-bit
 * mode), the operand's that of the instruction. RSP changes last.
 */
#include "accel/tcg/int.h"

/* ---- Access ---- */

uint64_t stack_linear(X86CPU *c, const Insn *i, uint64_t off, unsigned size, bool write)
{
    uint32_t key = c->tcg->mode_key;

    if (key & MODE_CS64) {
        if (unlikely((uint64_t)((int64_t)(off << 16) >> 16) != off)) {
            tcg_raise_err(c, i, EXCP_SS, 0);
        }
        return off;
    }
    return key & MODE_FLAT ? off : tcg_seg_check(c, i, R_SS, off, size, write);
}

uint64_t stack_load(X86CPU *c, const Insn *i, uint64_t off, unsigned size)
{
    uint64_t lin = stack_linear(c, i, off, size, false);

    return size == 8 ? tcg_ld64(c, i, lin) : size == 4 ? tcg_ld32(c, i, lin) : tcg_ld16(c, i, lin);
}

void stack_store(X86CPU *c, const Insn *i, uint64_t off, uint64_t v, unsigned size)
{
    uint64_t lin = stack_linear(c, i, off, size, true);

    if (size == 8) {
        tcg_st64(c, i, lin, v);
    } else if (size == 4) {
        tcg_st32(c, i, lin, (uint32_t)v);
    } else {
        tcg_st16(c, i, lin, (uint16_t)v);
    }
}

void int_push(X86CPU *c, const Insn *i, uint64_t v, unsigned size)
{
    uint64_t mask = sp_mask(c), off = (c->regs[R_RSP] - size) & mask;

    stack_store(c, i, off, v, size);
    sp_set(c, mask, off);
}

uint64_t stack_pop_peek(X86CPU *c, const Insn *i, unsigned size, uint64_t *next)
{
    uint64_t mask = sp_mask(c), off = c->regs[R_RSP] & mask;
    uint64_t v = stack_load(c, i, off, size);

    *next = (off + size) & mask;
    return v;
}

static void put_reg(X86CPU *c, unsigned r, uint64_t v, unsigned size)
{
    if (size == 8) {
        wr64(c, r, v);
    } else if (size == 4) {
        wr32(c, r, v);
    } else {
        wr16(c, r, v);
    }
}

/* ---- PUSH ---- */

static void push_r(X86CPU *c, const Insn *i)
{
    int_push(c, i, c->regs[i->reg], i->opsize);
    NEXT(c, i);
}
static void push_i(X86CPU *c, const Insn *i)
{
    int_push(c, i, i->imm, i->opsize);
    NEXT(c, i);
}
/* 64 bits on the flat stack; a miss begins again above. */
#define PUSH64(name, value, slow)                                                                  \
    static void name(X86CPU *c, const Insn *i)                                                     \
    {                                                                                              \
        uint64_t sp = c->regs[R_RSP] - 8;                                                          \
        const TlbEntry *e = tlb_slot(c, sp);                                                       \
        volatile guest64 *p = rmw_fast(e, sp, 8);                                                 \
        if (unlikely(!p)) {                                                                        \
            return slow(c, i);                                                                     \
        }                                                                                          \
        *p = (value);                                                                              \
        c->regs[R_RSP] = sp;                                                                       \
        ST_FAST_NEXT(c, i, e, sp, 8);                                                              \
    }
PUSH64(push_r64, c->regs[i->reg], push_r)
PUSH64(push_i64, i->imm, push_i)
static void push_m(X86CPU *c, const Insn *i)
{
    uint64_t lin = tcg_ea(c, i, i->opsize, false), v;

    v = i->opsize == 8   ? tcg_ld64(c, i, lin)
        : i->opsize == 4 ? tcg_ld32(c, i, lin)
                         : tcg_ld16(c, i, lin);
    int_push(c, i, v, i->opsize);
    NEXT(c, i);
}

/* ---- POP ---- */

static void pop_r(X86CPU *c, const Insn *i)
{
    uint64_t next, v = stack_pop_peek(c, i, i->opsize, &next);

    sp_set(c, sp_mask(c), next);
    put_reg(c, i->reg, v, i->opsize);
    NEXT(c, i);
}
static void pop_r64(X86CPU *c, const Insn *i)
{
    const volatile guest64 *p = LD_FAST(64, c, c->regs[R_RSP]);

    if (unlikely(!p)) {
        return pop_r(c, i);
    }
    c->regs[R_RSP] += 8;
    c->regs[i->reg] = *p;
    NEXT(c, i);
}
/* An address made with RSP sees it incremented (SDM 2B, POP); RSP changes after the store. */
static void pop_m(X86CPU *c, const Insn *i)
{
    unsigned size = i->opsize;
    uint64_t next, v = stack_pop_peek(c, i, size, &next);
    uint64_t delta = i->base == R_RSP ? next - (c->regs[R_RSP] & sp_mask(c)) : 0;
    uint64_t lin = ea_moved(c, i, delta, size, true);

    if (size == 8) {
        tcg_st64(c, i, lin, v);
    } else if (size == 4) {
        tcg_st32(c, i, lin, (uint32_t)v);
    } else {
        tcg_st16(c, i, lin, (uint16_t)v);
    }
    sp_set(c, sp_mask(c), next);
    NEXT(c, i);
}

/* ---- PUSHA, POPA ---- */

static void pusha(X86CPU *c, const Insn *i)
{
    uint64_t mask = sp_mask(c), off = c->regs[R_RSP];

    for (unsigned r = R_RAX; r <= R_RDI; r++) {
        off = (off - i->opsize) & mask;
        stack_store(c, i, off, c->regs[r], i->opsize);
    }
    sp_set(c, mask, off);
    NEXT(c, i);
}
static void popa(X86CPU *c, const Insn *i)
{
    uint64_t mask = sp_mask(c), off = c->regs[R_RSP] & mask, v[8];

    for (unsigned r = 0; r < 8; r++) {
        v[r] = stack_load(c, i, off, i->opsize);
        off = (off + i->opsize) & mask;
    }
    for (unsigned r = 0; r < 8; r++) {
        if (R_RDI - r != R_RSP) {
            put_reg(c, R_RDI - r, v[r], i->opsize);
        }
    }
    sp_set(c, mask, off);
    NEXT(c, i);
}

/* ---- PUSHF, POPF ---- */

static unsigned iopl(const X86CPU *c)
{
    return (unsigned)(c->rflags >> 12) & 3;
}

static void pushf(X86CPU *c, const Insn *i)
{
    uint64_t v = x86_get_rflags(c) & ~(FL_VM | FL_RF);

    if ((c->rflags & FL_VM) && iopl(c) < 3) {
        /* Virtual-8086 mode extensions: IF is VIF (SDM 3B 20.3.3). */
        if (!(c->cr4 & CR4_VME) || i->opsize != 2) {
            tcg_raise_err(c, i, EXCP_GP, 0);
        }
        v = (v & ~FL_IF) | FL_IOPL | (c->rflags & FL_VIF ? FL_IF : 0);
    }
    int_push(c, i, v, i->opsize);
    NEXT(c, i);
}

/* POPF of virtual-8086 mode with IOPL < 3. */
static void popf_vme(X86CPU *c, const Insn *i, uint64_t v, uint64_t next)
{
    const uint64_t mask = FL_ARITH | FL_TF | FL_DF | FL_NT;

    if (!(c->cr4 & CR4_VME) || i->opsize != 2 || (v & FL_TF) ||
        ((v & FL_IF) && (c->rflags & FL_VIP))) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    sp_set(c, sp_mask(c), next);
    tcg_write_flags(c, (v & mask) | (v & FL_IF ? FL_VIF : 0), mask | FL_VIF);
}

static void popf(X86CPU *c, const Insn *i)
{
    uint64_t next, v = stack_pop_peek(c, i, i->opsize, &next);
    uint64_t mask = FL_ARITH | FL_TF | FL_DF | FL_NT;

    if ((c->rflags & FL_VM) && iopl(c) < 3) {
        popf_vme(c, i, v, next);
        NEXT(c, i);
    }
    if (i->opsize > 2) {
        mask |= FL_AC | FL_ID | FL_RF;
        v &= ~FL_RF;
    }
    if (c->cpl == 0) {
        mask |= FL_IF | FL_IOPL;
    } else if (c->cpl <= iopl(c)) {
        mask |= FL_IF;
    }
    sp_set(c, sp_mask(c), next);
    tcg_write_flags(c, v, mask);
    NEXT(c, i);
}

/* ---- ENTER, LEAVE ---- */

/* imm: bytes of the frame; aux8: nesting level, 0..31 (SDM 2A, ENTER). */
static void enter(X86CPU *c, const Insn *i)
{
    uint64_t mask = sp_mask(c), bp = c->regs[R_RBP], sp = (c->regs[R_RSP] - i->opsize) & mask;
    uint64_t frame = sp;

    stack_store(c, i, sp, bp, i->opsize);
    for (unsigned n = 1; n < i->aux8; n++) {
        bp = bp - i->opsize;
        sp = (sp - i->opsize) & mask;
        stack_store(c, i, sp, stack_load(c, i, bp & mask, i->opsize), i->opsize);
    }
    if (i->aux8) {
        sp = (sp - i->opsize) & mask;
        stack_store(c, i, sp, frame, i->opsize);
    }
    sp = (sp - i->imm) & mask;
    /* The new top must be writable, though nothing is written there. */
    tcg_probe_write(c, i, stack_linear(c, i, sp, i->opsize, true), i->opsize);
    put_reg(c, R_RBP, frame, i->opsize);
    sp_set(c, mask, sp);
    NEXT(c, i);
}

static void leave64(X86CPU *c, const Insn *i)
{
    uint64_t bp = c->regs[R_RBP], v = tcg_ld64(c, i, bp);

    c->regs[R_RSP] = bp + 8;
    c->regs[R_RBP] = v;
    NEXT(c, i);
}
static void leave(X86CPU *c, const Insn *i)
{
    uint64_t mask = sp_mask(c), bp = c->regs[R_RBP] & mask;
    uint64_t v = stack_load(c, i, bp, i->opsize);

    sp_set(c, mask, (bp + i->opsize) & mask);
    put_reg(c, R_RBP, v, i->opsize);
    NEXT(c, i);
}

/* ---- Decoding ---- */

static bool decode_push(Decode *d, Insn *out)
{
    bool wide = out->opsize == 8;

    if (op_imm(d, 0)) {
        out->imm = d->op[0].imm.value.u;
        out->fn = wide ? push_i64 : push_i;
    } else if (op_mem(d, 0)) {
        out->fn = push_m;
    } else if (op_gpr(d, 0)) {
        out->reg = op_reg_no(d, 0);
        out->fn = wide ? push_r64 : push_r;
    } else {
        return false; /* segments: the system half */
    }
    return true;
}

static bool decode_pop(Decode *d, Insn *out)
{
    if (op_mem(d, 0)) {
        out->fn = pop_m;
    } else if (op_gpr(d, 0)) {
        out->reg = op_reg_no(d, 0);
        out->fn = out->opsize == 8 ? pop_r64 : pop_r;
    } else {
        return false;
    }
    return true;
}

bool decode_stack(Decode *d, Insn *out)
{
    out->opsize = (uint8_t)op_width(d);
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        return decode_push(d, out);
    case ZYDIS_MNEMONIC_POP:
        return decode_pop(d, out);
    case ZYDIS_MNEMONIC_PUSHA:
    case ZYDIS_MNEMONIC_PUSHAD:
        out->fn = pusha;
        return true;
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD:
        out->fn = popa;
        return true;
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ:
        out->fn = pushf;
        return true;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
        out->fn = popf;
        d->ends_block = true;
        return true;
    case ZYDIS_MNEMONIC_ENTER:
        out->imm = d->op[0].imm.value.u;
        out->aux8 = (uint8_t)(d->op[1].imm.value.u & 31);
        out->fn = enter;
        return true;
    case ZYDIS_MNEMONIC_LEAVE:
        out->fn = out->opsize == 8 ? leave64 : leave;
        return true;
    default:
        return false;
    }
}
