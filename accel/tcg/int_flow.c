/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Near control transfers: Jcc JMP CALL RET LOOPcc JCXZ. A target is checked (limit of CS, canonical
 * form) before anything changes: #GP(0) is the branch's own.
 */
#include "accel/tcg/int.h"

static inline bool canonical(uint64_t a)
{
    return (uint64_t)((int64_t)(a << 16) >> 16) == a;
}

static inline void check_target(X86CPU *c, const Insn *i, uint64_t target)
{
    if (unlikely(target > c->tcg->cs_limit || (in_code64(c) && !canonical(target)))) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}
static inline void check_target64(X86CPU *c, const Insn *i, uint64_t target)
{
    if (unlikely(!canonical(target))) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}

/* ---- Jcc: imm is the target, disp what follows ---- */

#define DEFINE_JCC(name, expr)                                                                     \
    static void j##name(X86CPU *c, const Insn *i)                                                  \
    {                                                                                              \
        c->rip = c_##name(c->cc) ? i->imm : (uint64_t)i->disp;                                     \
    }                                                                                              \
    static void j##name##_check(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t target = (uint64_t)i->disp;                                                       \
        if (c_##name(c->cc)) {                                                                     \
            target = i->imm;                                                                       \
            check_target(c, i, target);                                                            \
        }                                                                                          \
        c->rip = target;                                                                           \
    }
CONDITIONS(DEFINE_JCC)
#define JCC_ROW(name, expr) { j##name, j##name##_check },
static InsnFn *const jcc_table[16][2] = { CONDITIONS(JCC_ROW) };

/* ---- LOOP, JCXZ: the counter is as wide as addresses ---- */

static inline uint64_t counter(const X86CPU *c, const Insn *i)
{
    uint64_t v = c->regs[R_RCX];

    return i->asz == ASZ_64 ? v : i->asz == ASZ_32 ? (uint32_t)v : (uint16_t)v;
}
static inline void counter_set(X86CPU *c, const Insn *i, uint64_t v)
{
    if (i->asz == ASZ_16) {
        wr16(c, R_RCX, v);
    } else {
        c->regs[R_RCX] = i->asz == ASZ_64 ? v : (uint32_t)v;
    }
}
static inline void branch_if(X86CPU *c, const Insn *i, bool taken)
{
    if (taken) {
        check_target(c, i, i->imm);
    }
    c->rip = taken ? i->imm : (uint64_t)i->disp;
}

static void jcxz(X86CPU *c, const Insn *i)
{
    branch_if(c, i, counter(c, i) == 0);
}
/* aux8: 0 LOOP, 1 LOOPNE, 2 LOOPE. */
static void loop(X86CPU *c, const Insn *i)
{
    uint64_t n = counter(c, i) - 1;
    bool zf = (c->cc & CC_ZF) != 0;
    uint64_t width = i->asz == ASZ_64 ? UINT64_MAX : i->asz == ASZ_32 ? UINT32_MAX : UINT16_MAX;

    branch_if(c, i, (n & width) != 0 && (i->aux8 == 0 || zf == (i->aux8 == 2)));
    counter_set(c, i, n);
}

/* ---- JMP ---- */

static void jmp(X86CPU *c, const Insn *i)
{
    c->rip = i->imm;
}
static void jmp_check(X86CPU *c, const Insn *i)
{
    check_target(c, i, i->imm);
    c->rip = i->imm;
}
static void jmp_r64(X86CPU *c, const Insn *i)
{
    uint64_t target = c->regs[i->rm];

    check_target64(c, i, target);
    c->rip = target;
}
static void jmp_m64(X86CPU *c, const Insn *i)
{
    uint64_t target = tcg_ld64(c, i, tcg_ea(c, i, 8, false));

    check_target64(c, i, target);
    c->rip = target;
}

/* The target of an indirect branch by operand size. */
static uint64_t indirect_target(X86CPU *c, const Insn *i)
{
    uint64_t v;

    if (i->aux8) {
        uint64_t lin = tcg_ea(c, i, i->opsize, false);

        v = i->opsize == 8   ? tcg_ld64(c, i, lin)
            : i->opsize == 4 ? tcg_ld32(c, i, lin)
                             : tcg_ld16(c, i, lin);
    } else {
        v = c->regs[i->rm];
    }
    return i->opsize == 8 ? v : i->opsize == 4 ? (uint32_t)v : (uint16_t)v;
}
static void jmp_indirect(X86CPU *c, const Insn *i)
{
    uint64_t target = indirect_target(c, i);

    check_target(c, i, target);
    c->rip = target;
}

/* ---- CALL ---- */

static void call_check(X86CPU *c, const Insn *i)
{
    check_target(c, i, i->imm);
    int_push(c, i, (uint64_t)i->disp, i->opsize);
    c->rip = i->imm;
}
/* The store may have hit code: the next block's check sees that. */
static void call64(X86CPU *c, const Insn *i)
{
    uint64_t sp = c->regs[R_RSP] - 8;
    const TlbEntry *e = tlb_slot(c, sp);
    volatile guest64 *p = rmw_fast(e, sp, 8);

    if (unlikely(!p)) {
        return call_check(c, i);
    }
    *p = (uint64_t)i->disp;
    c->regs[R_RSP] = sp;
    c->rip = i->imm;
    rmw_fast_done(e, sp, 8);
}
static void call_r64(X86CPU *c, const Insn *i)
{
    uint64_t target = c->regs[i->rm], sp = c->regs[R_RSP] - 8;

    check_target64(c, i, target);
    tcg_st64(c, i, sp, tcg_next_rip(c, i));
    c->regs[R_RSP] = sp;
    c->rip = target;
}
static void call_indirect(X86CPU *c, const Insn *i)
{
    uint64_t target = indirect_target(c, i);

    check_target(c, i, target);
    int_push(c, i, tcg_next_rip(c, i), i->opsize);
    c->rip = target;
}

/* ---- RET: imm is what to drop beside the address ---- */

static void ret(X86CPU *c, const Insn *i)
{
    uint64_t next, target = stack_pop_peek(c, i, i->opsize, &next);

    check_target(c, i, target);
    sp_set(c, sp_mask(c), next + i->imm);
    c->rip = target;
}

static void ret64(X86CPU *c, const Insn *i)
{
    const volatile guest64 *p = LD_FAST(64, c, c->regs[R_RSP]);
    uint64_t target;

    if (unlikely(!p) || unlikely(!canonical(target = *p))) {
        return ret(c, i);
    }
    c->regs[R_RSP] += 8 + i->imm;
    c->rip = target;
}

/* ---- Decoding ---- */

/* Fills target and fall-through of a relative branch. True: neither can fault. */
static bool relative(Decode *d, Insn *out)
{
    unsigned width = d->bits == 64 ? 8 : op_width(d);
    uint64_t next = d->rip + d->zi.length;
    uint64_t target = next + d->op[0].imm.value.u;

    if (d->bits != 64) {
        /* Sequential flow wraps with the code size only; branches with the operand size. */
        next = d->bits == 32 ? (uint32_t)next : (uint16_t)next;
        target = width == 4 ? (uint32_t)target : (uint16_t)target;
    }
    out->opsize = (uint8_t)width;
    out->imm = target;
    out->disp = (int64_t)next;
    return d->bits == 64 && canonical(target);
}

static bool decode_jcc(Decode *d, Insn *out)
{
    bool safe = relative(d, out);

    out->fn = jcc_table[d->zi.opcode & 15][!safe];
    return true;
}

static bool decode_count_branch(Decode *d, Insn *out)
{
    relative(d, out);
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_LOOP:
        out->fn = loop;
        break;
    case ZYDIS_MNEMONIC_LOOPNE:
        out->fn = loop;
        out->aux8 = 1;
        break;
    case ZYDIS_MNEMONIC_LOOPE:
        out->fn = loop;
        out->aux8 = 2;
        break;
    default:
        out->fn = jcxz;
        break;
    }
    return true;
}

static bool decode_jmp_call(Decode *d, Insn *out, bool call)
{
    bool wide;

    if (d->zi.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
        return false;
    }
    if (op_imm(d, 0)) {
        bool safe = relative(d, out);

        out->fn = call ? (safe ? call64 : call_check) : (safe ? jmp : jmp_check);
        return true;
    }
    out->opsize = (uint8_t)(d->bits == 64 ? 8 : op_width(d));
    wide = out->opsize == 8;
    if (op_mem(d, 0)) {
        out->aux8 = 1;
        out->fn = call ? call_indirect : wide ? jmp_m64 : jmp_indirect;
    } else {
        out->rm = op_reg_no(d, 0);
        if (call) {
            out->fn = wide ? call_r64 : call_indirect;
        } else {
            out->fn = wide ? jmp_r64 : jmp_indirect;
        }
    }
    return true;
}

static bool decode_ret(Decode *d, Insn *out)
{
    if (d->zi.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
        return false;
    }
    out->imm = op_imm(d, 0) ? d->op[0].imm.value.u & 0xffff : 0;
    out->opsize = (uint8_t)(d->bits == 64 ? 8 : op_width(d));
    out->fn = out->opsize == 8 ? ret64 : ret;
    return true;
}

static bool decode_branch(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
        return decode_jmp_call(d, out, false);
    case ZYDIS_MNEMONIC_CALL:
        return decode_jmp_call(d, out, true);
    case ZYDIS_MNEMONIC_RET:
        return decode_ret(d, out);
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
        return decode_count_branch(d, out);
    default:
        return d->zi.meta.category == ZYDIS_CATEGORY_COND_BR &&
               d->zi.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && decode_jcc(d, out);
    }
}

bool decode_flow(Decode *d, Insn *out)
{
    if (!decode_branch(d, out)) {
        return false;
    }
    d->ends_block = true;
    return true;
}
