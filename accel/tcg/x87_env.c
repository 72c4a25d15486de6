/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x87 control instructions: control and status word, FNINIT, FNCLEX, and environment and state in
 * their 14/28 and 94/108 byte layouts (SDM 1, figures 8-9 to 8-12).
 */
#include "accel/tcg/x87.h"

static void check_nm(X86CPU *c, const Insn *i)
{
    tcg_x87_home(c);
    if (unlikely(c->cr0 & (CR0_EM | CR0_TS))) {
        tcg_raise(c, i, EXCP_NM);
    }
}

static void fninit_state(X86CPU *c)
{
    X87State *x = &c->x87;
    x87_set_top(c, 0);
    x->fcw = 0x37f;
    x->fsw = 0;
    x->ftw = 0;
    x->fop = 0;
    x->fip = x->fdp = 0;
    c->x87_fcs = c->x87_fds = 0;
    x87_update_es(c);
}

static void load_fcw(X86CPU *c, uint16_t v)
{
    c->x87.fcw = (uint16_t)((v & FCW_WRITABLE) | FCW_FIXED);
}

/* ---- Tag word ---- */

static unsigned full_tag(const uint8_t *st)
{
    uint64_t mant;
    uint16_t exp;
    memcpy(&mant, st, 8);
    memcpy(&exp, st + 8, 2);
    exp &= 0x7fff;
    if (exp == 0 && mant == 0) {
        return 1;
    }
    return exp == 0 || exp == 0x7fff || !(mant >> 63) ? 2 : 0;
}

static uint16_t get_tag_word(const X86CPU *c)
{
    unsigned top = (c->x87.fsw >> FSW_TOP_SHIFT) & 7, tags = 0;
    for (unsigned r = 0; r < 8; r++) {
        bool valid = c->x87.ftw & BIT(r);
        tags |= (valid ? full_tag(c->x87.st[(r - top) & 7].b) : 3) << (2 * r);
    }
    return (uint16_t)tags;
}

static void set_tag_word(X86CPU *c, uint16_t tags)
{
    unsigned ftw = 0;
    for (unsigned r = 0; r < 8; r++) {
        ftw |= ((tags >> (2 * r)) & 3) != 3 ? BIT(r) : 0;
    }
    c->x87.ftw = (uint8_t)ftw;
}

/* ---- Environment ---- */

static bool real_layout(const X86CPU *c)
{
    return !(c->cr0 & CR0_PE) || (c->rflags & FL_VM);
}

/* The seven fields in order; a 16-bit layout takes the low half of each. */
static void env_fields(const X86CPU *c, uint32_t f[7])
{
    const X87State *x = &c->x87;
    uint32_t fip = (uint32_t)x->fip, fdp = (uint32_t)x->fdp;
    f[0] = x->fcw;
    f[1] = x->fsw;
    f[2] = get_tag_word(c);
    if (real_layout(c)) {
        fip += (uint32_t)c->x87_fcs << 4;
        fdp += (uint32_t)c->x87_fds << 4;
        f[3] = fip & 0xffff;
        f[4] = (fip >> 16) << 12 | x->fop;
        f[5] = fdp & 0xffff;
        f[6] = (fdp >> 16) << 12;
    } else {
        f[3] = fip;
        f[4] = c->x87_fcs | (uint32_t)x->fop << 16;
        f[5] = fdp;
        f[6] = c->x87_fds;
    }
}

static unsigned put_env(const X86CPU *c, uint8_t *buf, bool wide)
{
    uint32_t f[7];
    env_fields(c, f);
    if (wide) {
        f[0] |= 0xffff0000;
        f[1] |= 0xffff0000;
        f[2] |= 0xffff0000;
        if (!real_layout(c)) {
            f[6] |= 0xffff0000;
        } else {
            f[3] |= 0xffff0000;
            f[5] |= 0xffff0000;
        }
        memcpy(buf, f, 28);
        return 28;
    }
    for (unsigned n = 0; n < 7; n++) {
        uint16_t v = (uint16_t)f[n];
        memcpy(buf + 2 * n, &v, 2);
    }
    return 14;
}

static void get_env(X86CPU *c, const uint8_t *buf, bool wide)
{
    uint32_t f[7];
    for (unsigned n = 0; n < 7; n++) {
        f[n] = 0;
        memcpy(&f[n], buf + (wide ? 4 : 2) * n, wide ? 4 : 2);
    }
    load_fcw(c, (uint16_t)f[0]);
    x87_set_top(c, (f[1] >> FSW_TOP_SHIFT) & 7);
    c->x87.fsw = (uint16_t)f[1];
    set_tag_word(c, (uint16_t)f[2]);
    if (real_layout(c)) {
        c->x87.fip = (f[3] & 0xffff) | (f[4] >> 12) << 16;
        c->x87.fop = f[4] & 0x7ff;
        c->x87.fdp = (f[5] & 0xffff) | (f[6] >> 12) << 16;
        c->x87_fcs = c->x87_fds = 0;
    } else {
        c->x87.fip = f[3];
        c->x87_fcs = (uint16_t)f[4];
        c->x87.fop = wide ? (f[4] >> 16) & 0x7ff : 0;
        c->x87.fdp = f[5];
        c->x87_fds = (uint16_t)f[6];
    }
    x87_update_es(c);
}

/* ---- Handlers. aux8: 32-bit layout ---- */

static void fnstenv(X86CPU *c, const Insn *i)
{
    uint8_t buf[28];
    check_nm(c, i);
    unsigned len = put_env(c, buf, i->aux8);
    tcg_st_buf(c, i, tcg_ea(c, i, len, true), buf, len);
    c->x87.fcw |= FSW_EXCEPTIONS;
    x87_update_es(c);
    NEXT(c, i);
}

static void fldenv(X86CPU *c, const Insn *i)
{
    uint8_t buf[28];
    unsigned len = i->aux8 ? 28 : 14;
    x87_check(c, i);
    tcg_ld_buf(c, i, tcg_ea(c, i, len, false), buf, len);
    get_env(c, buf, i->aux8);
    NEXT(c, i);
}

static void fnsave(X86CPU *c, const Insn *i)
{
    uint8_t buf[108];
    check_nm(c, i);
    unsigned len = put_env(c, buf, i->aux8);
    for (unsigned n = 0; n < 8; n++, len += 10) {
        memcpy(buf + len, c->x87.st[n].b, 10);
    }
    tcg_st_buf(c, i, tcg_ea(c, i, len, true), buf, len);
    fninit_state(c);
    NEXT(c, i);
}

static void frstor(X86CPU *c, const Insn *i)
{
    uint8_t buf[108];
    unsigned env = i->aux8 ? 28 : 14;
    x87_check(c, i);
    tcg_ld_buf(c, i, tcg_ea(c, i, env + 80, false), buf, env + 80);
    get_env(c, buf, i->aux8);
    for (unsigned n = 0; n < 8; n++) {
        memcpy(c->x87.st[n].b, buf + env + 10 * n, 10);
    }
    NEXT(c, i);
}

static void fldcw(X86CPU *c, const Insn *i)
{
    x87_check(c, i);
    load_fcw(c, tcg_ld16(c, i, tcg_ea(c, i, 2, false)));
    x87_update_es(c);
    NEXT(c, i);
}

static void fnstcw(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    tcg_st16(c, i, tcg_ea(c, i, 2, true), c->x87.fcw);
    NEXT(c, i);
}

static void fnstsw(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    tcg_st16(c, i, tcg_ea(c, i, 2, true), c->x87.fsw);
    NEXT(c, i);
}

static void fnstsw_ax(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    c->regs[R_RAX] = (c->regs[R_RAX] & ~0xffffull) | c->x87.fsw;
    NEXT(c, i);
}

static void fninit(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    fninit_state(c);
    NEXT(c, i);
}

static void fnclex(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    c->x87.fsw &= 0x7f00;
    x87_update_es(c);
    NEXT(c, i);
}

/* CR0.EM does not matter to FWAIT, CR0.TS only together with CR0.MP (SDM 3A, table 2-2). */
static void fwait(X86CPU *c, const Insn *i)
{
    tcg_x87_home(c);
    if ((c->cr0 & (CR0_MP | CR0_TS)) == (CR0_MP | CR0_TS)) {
        tcg_raise(c, i, EXCP_NM);
    }
    if (unlikely(c->x87.fsw & FSW_ES)) {
        x87_pending(c, i);
    }
    NEXT(c, i);
}

/* FNENI, FNDISI, FNSETPM: no operation since the 80387. */
static void fnop_control(X86CPU *c, const Insn *i)
{
    check_nm(c, i);
    NEXT(c, i);
}

bool x87_decode_control(Decode *d, Insn *out)
{
    static const struct {
        ZydisMnemonic mn;
        InsnFn *fn;
    } rows[] = {
        { ZYDIS_MNEMONIC_FNSTENV, fnstenv }, { ZYDIS_MNEMONIC_FLDENV, fldenv },
        { ZYDIS_MNEMONIC_FNSAVE, fnsave },   { ZYDIS_MNEMONIC_FRSTOR, frstor },
        { ZYDIS_MNEMONIC_FLDCW, fldcw },     { ZYDIS_MNEMONIC_FNSTCW, fnstcw },
        { ZYDIS_MNEMONIC_FNSTSW, fnstsw },   { ZYDIS_MNEMONIC_FNINIT, fninit },
        { ZYDIS_MNEMONIC_FNCLEX, fnclex },   { ZYDIS_MNEMONIC_FWAIT, fwait },
        { ZYDIS_MNEMONIC_FENI8087_NOP, fnop_control },
        { ZYDIS_MNEMONIC_FDISI8087_NOP, fnop_control },
        { ZYDIS_MNEMONIC_FSETPM287_NOP, fnop_control },
    };
    for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
        if (rows[n].mn == d->zi.mnemonic) {
            bool ax = rows[n].fn == fnstsw && d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
            out->fn = ax ? fnstsw_ax : rows[n].fn;
            out->aux8 = d->zi.operand_width != 16;
            return true;
        }
    }
    return false;
}
