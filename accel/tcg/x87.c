/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x87: arithmetic runs natively. A stub loads the guest's whole state (FXRSTOR64), runs the very
 * instruction with its memory operand in a buffer, and saves the state (FXSAVE64, FNINIT): exact to
 * the last bit, exceptions and undefined condition codes included. Neither FXSAVE64 nor FNINIT
 * waits, so an unmasked exception becomes part of the saved state and is not raised on the host.
 * Instruction and data pointers are kept here. Control instructions are in x87_env.c.
 *
 * X87State.st is relative to the top of the stack: physical register r is st[(r - TOP) & 7].
 */
#include "accel/tcg/x87.h"

void (*tcg_ferr_hook)(X86CPU *c, bool level);

/* ---- Exceptions ---- */

static void ferr(X86CPU *c, bool pending)
{
    struct TcgSimd *s = c->tcg->simd;
    bool level = pending && !(c->cr0 & CR0_NE);
    if (level != s->ferr) {
        s->ferr = level;
        if (tcg_ferr_hook) {
            tcg_ferr_hook(c, level);
        }
    }
}

void x87_update_es(X86CPU *c)
{
    bool pending = c->x87.fsw & ~c->x87.fcw & FSW_EXCEPTIONS;
    if (pending) {
        c->x87.fsw |= FSW_ES | FSW_B;
    } else {
        c->x87.fsw &= (uint16_t) ~(FSW_ES | FSW_B);
    }
    ferr(c, pending);
}

/*
 * A waiting instruction meets a pending exception (SDM 1, 8.7). With CR0.NE = 0 the CPU stops here
 * until the interrupt that FERR# causes has come; without a board that listens, IGNNE# is asserted.
 */
void x87_pending(X86CPU *c, const Insn *i)
{
    if (c->cr0 & CR0_NE) {
        tcg_raise(c, i, EXCP_MF);
    }
    ferr(c, true);
    if (tcg_ferr_hook) {
        tcg_leave_before(c, i, true);
    }
}

void x87_check(X86CPU *c, const Insn *i)
{
    tcg_x87_home(c);
    if (unlikely(c->cr0 & (CR0_EM | CR0_TS))) {
        tcg_raise(c, i, EXCP_NM);
    }
    if (unlikely(c->x87.fsw & FSW_ES)) {
        x87_pending(c, i);
    }
}

/* ---- The top of the stack, MMX ---- */

void x87_set_top(X86CPU *c, unsigned top)
{
    X87State *x = &c->x87;
    unsigned delta = (top - (x->fsw >> FSW_TOP_SHIFT)) & 7;
    if (delta) {
        uint8_t old[8][10];
        for (unsigned n = 0; n < 8; n++) {
            memcpy(old[n], x->st[n].b, 10);
        }
        for (unsigned n = 0; n < 8; n++) {
            memcpy(x->st[n].b, old[(n + delta) & 7], 10);
        }
    }
    x->fsw = (uint16_t)((x->fsw & ~FSW_TOP) | top << FSW_TOP_SHIFT);
}

void mmx_check(X86CPU *c, const Insn *i)
{
    tcg_x87_home(c);
    if (unlikely(c->cr0 & (CR0_EM | CR0_TS))) {
        tcg_raise(c, i, c->cr0 & CR0_EM ? EXCP_UD : EXCP_NM);
    }
    if (unlikely(c->x87.fsw & FSW_ES)) {
        x87_pending(c, i);
    }
}

void mmx_enter(X86CPU *c)
{
    if (c->x87.fsw & FSW_TOP) {
        x87_set_top(c, 0);
    }
    c->x87.ftw = 0xff;
}

/* ---- Native execution ---- */

/* Insn.aux16 is FOP. */

void x87_note_pointers(X86CPU *c, const Insn *i, uint64_t fdp, uint16_t fds)
{
    /* CPUID.7.EBX[13]: FCS and FDS are deprecated and read as 0. */
    bool no_selectors = x86_has(c, FEAT_7_0_EBX, BIT(13));
    c->x87.fip = tcg_insn_rip(c, i);
    c->x87.fop = i->aux16;
    c->x87_fcs = no_selectors ? 0 : c->seg[R_CS].selector;
    c->x87.fdp = fdp;
    c->x87_fds = no_selectors ? 0 : fds;
}

static inline void run_stub(X86CPU *c, SimdStubFn *fn, void *mem)
{
    tcg_fp_sync(c);
    c->x87.mxcsr = MXCSR_DEFAULT;
    if (unlikely(c->x87.fsw & FSW_ES)) {
        /* IGNNE#: the pending exception must not be raised on the host. */
        uint16_t fcw = c->x87.fcw;
        c->x87.fcw |= FSW_EXCEPTIONS;
        x87_update_es(c);
        fn(&c->x87, mem, NULL, c, NULL);
        c->x87.fcw = fcw;
        x87_update_es(c);
        return;
    }
    fn(&c->x87, mem, NULL, c, NULL);
    if (unlikely((c->x87.fsw & FSW_ES) && !(c->cr0 & CR0_NE))) {
        ferr(c, true);
    }
}

static void do_reg(X86CPU *c, const Insn *i, SimdStubFn *fn)
{
    uint64_t fdp = c->x87.fdp;
    run_stub(c, fn, c->tcg->simd->buf);
    x87_note_pointers(c, i, fdp, c->x87_fds);
}

static void do_load(X86CPU *c, const Insn *i, SimdStubFn *fn)
{
    uint64_t off = tcg_ea_offset(c, i);
    const void *mem = simd_load(c, i, tcg_ea(c, i, i->aux8, false), i->aux8, c->tcg->simd->buf);
    run_stub(c, fn, (void *)(uintptr_t)mem);
    x87_note_pointers(c, i, off, c->seg[i->seg].selector);
}

static void do_store(X86CPU *c, const Insn *i, SimdStubFn *fn)
{
    uint8_t *buf = c->tcg->simd->buf;
    uint64_t off = tcg_ea_offset(c, i), lin = tcg_ea(c, i, i->aux8, true);
    tcg_probe_write(c, i, lin, i->aux8);
    run_stub(c, fn, buf);
    x87_note_pointers(c, i, off, c->seg[i->seg].selector);
    /* Unmasked exceptions other than precision leave the destination alone (SDM 1, 8.5). */
    if (likely(!(c->x87.fsw & ~c->x87.fcw & (FSW_EXCEPTIONS & ~FSW_PE)))) {
        simd_store(c, i, lin, buf, i->aux8);
    }
}

static void x87_reg(X86CPU *c, const Insn *i)
{
    x87_check(c, i);
    do_reg(c, i, simd_stub(c, i));
    NEXT(c, i);
}
static void x87_load(X86CPU *c, const Insn *i)
{
    x87_check(c, i);
    do_load(c, i, simd_stub(c, i));
    NEXT(c, i);
}
static void x87_store(X86CPU *c, const Insn *i)
{
    x87_check(c, i);
    do_store(c, i, simd_stub(c, i));
    NEXT(c, i);
}

void x87_full(X86CPU *c, const Insn *i)
{
    uint64_t key = KEY_VALID | KEY_X87 | KEY_OPCODE(i->imm) | (uint64_t)i->rm << 16 |
                   (i->imm & (KEY_FLAGS_RD | KEY_FLAGS_WR));
    SimdStubFn *fn = simd_stub_get(c, key)->fn;
    if (!i->aux8) {
        do_reg(c, i, fn);
    } else if (i->flags & INSN_X87_STORE) {
        do_store(c, i, fn);
    } else {
        do_load(c, i, fn);
    }
}

static bool uses_flags(ZydisMnemonic mn, uint64_t *key)
{
    switch (mn) {
    case ZYDIS_MNEMONIC_FCMOVB:
    case ZYDIS_MNEMONIC_FCMOVBE:
    case ZYDIS_MNEMONIC_FCMOVE:
    case ZYDIS_MNEMONIC_FCMOVNB:
    case ZYDIS_MNEMONIC_FCMOVNBE:
    case ZYDIS_MNEMONIC_FCMOVNE:
    case ZYDIS_MNEMONIC_FCMOVNU:
    case ZYDIS_MNEMONIC_FCMOVU:
        *key |= KEY_FLAGS_RD;
        return true;
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP:
        *key |= KEY_FLAGS_RD | KEY_FLAGS_WR;
        return true;
    default:
        return false;
    }
}

static bool decode_native(Decode *d, Insn *out)
{
    const ZydisDecodedInstruction *zi = &d->zi;
    unsigned modrm = d->bytes[zi->raw.modrm.offset];
    uint64_t key = KEY_VALID | KEY_X87 | zi->opcode;
    out->aux8 = 0;
    out->aux16 = (uint16_t)((zi->opcode & 7) << 8 | modrm);
    out->fn = x87_reg;
    for (unsigned n = 0; n < zi->operand_count; n++) {
        const ZydisDecodedOperand *o = &d->op[n];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY) {
            continue;
        }
        bool store = o->actions & (ZYDIS_OPERAND_ACTION_WRITE | ZYDIS_OPERAND_ACTION_CONDWRITE);
        out->aux8 = (uint8_t)(o->size / 8);
        out->fn = store ? x87_store : x87_load;
        out->flags |= store ? INSN_X87_STORE : 0;
        modrm = (modrm & 0x38) | 6;
        if (o->size / 8 == 0 || o->size / 8 > 10) {
            return false;
        }
    }
    if (uses_flags(zi->mnemonic, &key) && !x86_has(d->c, FEAT_1_EDX, BIT(15))) {
        return false; /* CPUID.1.EDX[15] with [0]: FCMOVcc and FCOMI */
    }
    out->imm = key | (uint64_t)modrm << 16;
    x87_decode_light(d, out);
    out->aux = simd_stub_get(d->c, out->imm);
    return true;
}

bool decode_x87(Decode *d, Insn *out)
{
    const ZydisDecodedInstruction *zi = &d->zi;
    if (!x86_has(d->c, FEAT_1_EDX, BIT(0))) {
        return false;
    }
    if (x87_decode_control(d, out)) {
        return true;
    }
    if (zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || (zi->opcode & 0xf8) != 0xd8 ||
        zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        return false;
    }
    if (zi->mnemonic == ZYDIS_MNEMONIC_FISTTP && !x86_has(d->c, FEAT_1_ECX, BIT(0))) {
        return false; /* Zydis counts it among the x87 set */
    }
    return decode_native(d, out);
}
