/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shifts and rotates: ROL ROR RCL RCR SHL SHR SAR SHLD SHRD, and those of BMI2 that touch no flags.
 * The guest's flags are loaded before the host instruction runs, so a count of 0 keeps them all
 * and undefined ones come out as the host's.
 */
#include "accel/tcg/int.h"

#define DEFINE_SHIFT(name, bits, mod)                                                              \
    static inline uint64_t name##bits(X86CPU *c, uint64_t v, uint8_t n)                            \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__(FLAGS_IN #name " %%cl, %" mod "0" FLAGS_OUT : "+r"(v), "+a"(f) : "c"(n));          \
        c->cc = f;                                                                                 \
        return v;                                                                                  \
    }

/* Forms: operand in register or memory, count immediate or in CL. */
#define SHIFT_FORMS(name, bits, type, GET, PUT)                                                    \
    static void name##_ri##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        PUT(bits, i->rm, name##bits(c, GET(bits, i->rm), (uint8_t)i->imm));                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_rc##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        PUT(bits, i->rm, name##bits(c, GET(bits, i->rm), (uint8_t)c->regs[R_RCX]));                \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mi##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, (uint8_t)i->imm));                          \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mc##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, (uint8_t)c->regs[R_RCX]));                  \
        NEXT(c, i);                                                                                \
    }

#define GET_WIDE(bits, r) c->regs[r]
/* 32 bits: the upper half is cleared even where a count of 0 leaves the host register alone. */
#define PUT_WIDE(bits, r, v) wr##bits(c, r, v)
#define GET_BYTE(bits, r) rd8(c, r)
#define PUT_BYTE(bits, r, v) wr8(c, r, v)

#define SHIFT_OP(name)                                                                             \
    DEFINE_SHIFT(name, 8, "b")                                                                     \
    DEFINE_SHIFT(name, 16, "w")                                                                    \
    DEFINE_SHIFT(name, 32, "k")                                                                    \
    DEFINE_SHIFT(name, 64, "q")                                                                    \
    SHIFT_FORMS(name, 8, guest8, GET_BYTE, PUT_BYTE)                                              \
    SHIFT_FORMS(name, 16, guest16, GET_WIDE, PUT_WIDE)                                            \
    SHIFT_FORMS(name, 32, guest32, GET_WIDE, PUT_WIDE)                                            \
    SHIFT_FORMS(name, 64, guest64, GET_WIDE, PUT_WIDE)
SHIFT_OP(rol)
SHIFT_OP(ror)
SHIFT_OP(rcl)
SHIFT_OP(rcr)
SHIFT_OP(shl)
SHIFT_OP(shr)
SHIFT_OP(sar)

enum { S_RI, S_RC, S_MI, S_MC, S_COUNT };
#define ROW(name, form)                                                                            \
    {                                                                                              \
        name##_##form##8, name##_##form##16, name##_##form##32, name##_##form##64                  \
    }
#define SHIFT_ROWS(name)                                                                           \
    {                                                                                              \
        ROW(name, ri), ROW(name, rc), ROW(name, mi), ROW(name, mc)                                 \
    }
static InsnFn *const shift_table[][S_COUNT][SZ_COUNT] = {
    SHIFT_ROWS(rol), SHIFT_ROWS(ror), SHIFT_ROWS(rcl), SHIFT_ROWS(rcr),
    SHIFT_ROWS(shl), SHIFT_ROWS(shr), SHIFT_ROWS(sar),
};

static bool decode_simple_shift(Decode *d, Insn *out, unsigned op)
{
    unsigned form = op_mem(d, 0) ? S_MI : S_RI;

    if (op_imm(d, 1)) {
        out->imm = d->op[1].imm.value.u;
    } else {
        form++;
    }
    out->rm = op_mem(d, 0) ? 0 : op_reg_no(d, 0);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = shift_table[op][form][op_size(d, 0)];
    return true;
}

/* ---- SHLD, SHRD ---- */

#define DEFINE_DOUBLE(name, bits, type, mod)                                                       \
    static inline uint64_t name##bits(X86CPU *c, uint64_t v, uint64_t fill, uint8_t n)             \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__(FLAGS_IN #name " %%cl, %" mod "2, %" mod "0" FLAGS_OUT                             \
                : "+r"(v), "+a"(f)                                                                 \
                : "r"(fill), "c"(n));                                                              \
        c->cc = f;                                                                                 \
        return v;                                                                                  \
    }                                                                                              \
    static void name##_ri##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        wr##bits(c, i->rm, name##bits(c, c->regs[i->rm], c->regs[i->reg], (uint8_t)i->imm));       \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_rc##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint8_t n = (uint8_t)c->regs[R_RCX];                                                       \
        wr##bits(c, i->rm, name##bits(c, c->regs[i->rm], c->regs[i->reg], n));                     \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mi##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, c->regs[i->reg], (uint8_t)i->imm));         \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mc##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        uint8_t n = (uint8_t)c->regs[R_RCX];                                                       \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, c->regs[i->reg], n));                       \
        NEXT(c, i);                                                                                \
    }
#define DOUBLE_SIZE(bits, type, mod, sfx)                                                          \
    DEFINE_DOUBLE(shld, bits, type, mod)                                                           \
    DEFINE_DOUBLE(shrd, bits, type, mod)
SIZES_16_64(DOUBLE_SIZE)

#define ROW2(name, form)                                                                           \
    {                                                                                              \
        NULL, name##_##form##16, name##_##form##32, name##_##form##64                              \
    }
static InsnFn *const double_table[2][S_COUNT][SZ_COUNT] = {
    { ROW2(shld, ri), ROW2(shld, rc), ROW2(shld, mi), ROW2(shld, mc) },
    { ROW2(shrd, ri), ROW2(shrd, rc), ROW2(shrd, mi), ROW2(shrd, mc) },
};

static bool decode_double_shift(Decode *d, Insn *out, unsigned op)
{
    unsigned form = op_mem(d, 0) ? S_MI : S_RI;

    if (op_imm(d, 2)) {
        out->imm = d->op[2].imm.value.u;
    } else {
        form++;
    }
    out->rm = op_mem(d, 0) ? 0 : op_reg_no(d, 0);
    out->reg = op_reg_no(d, 1);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = double_table[op][form][op_size(d, 0)];
    return true;
}

/* ---- SARX SHLX SHRX RORX ---- */

#define ROTATE_RIGHT(bits, v, n) ((v) >> ((n) & (bits - 1)) | (v) << (-(n) & (bits - 1)))
#define DEFINE_FLAGLESS(name, bits, expr)                                                          \
    static void name##_r##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        uint##bits##_t v = rd##bits(c, i->rm);                                                     \
        unsigned n = (unsigned)(i->aux8 ? i->imm : c->regs[i->vvvv]);                              \
        wr##bits(c, i->reg, (uint##bits##_t)(expr));                                               \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_m##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        uint##bits##_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                      \
        unsigned n = (unsigned)(i->aux8 ? i->imm : c->regs[i->vvvv]);                              \
        wr##bits(c, i->reg, (uint##bits##_t)(expr));                                               \
        NEXT(c, i);                                                                                \
    }
#define FLAGLESS_SIZE(bits)                                                                        \
    DEFINE_FLAGLESS(sarx, bits, (int##bits##_t)v >> (n & (bits - 1)))                              \
    DEFINE_FLAGLESS(shlx, bits, v << (n & (bits - 1)))                                             \
    DEFINE_FLAGLESS(shrx, bits, v >> (n & (bits - 1)))                                             \
    DEFINE_FLAGLESS(rorx, bits, ROTATE_RIGHT(bits, v, n))
FLAGLESS_SIZE(32)
FLAGLESS_SIZE(64)

#define ROW3(name)                                                                                 \
    {                                                                                              \
        { name##_r32, name##_r64 },                                                                \
        {                                                                                          \
            name##_m32, name##_m64                                                                 \
        }                                                                                          \
    }
static InsnFn *const flagless_table[4][2][2] = { ROW3(sarx), ROW3(shlx), ROW3(shrx), ROW3(rorx) };

static bool decode_flagless(Decode *d, Insn *out, unsigned op)
{
    if (!x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI2)) {
        return false;
    }
    out->reg = op_reg_no(d, 0);
    out->rm = op_mem(d, 1) ? 0 : op_reg_no(d, 1);
    if (op_imm(d, 2)) {
        out->imm = d->op[2].imm.value.u;
        out->aux8 = 1;
    } else {
        out->vvvv = op_reg_no(d, 2);
    }
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = flagless_table[op][op_mem(d, 1)][op_size(d, 0) == SZ_64];
    return true;
}

bool decode_shift(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_ROL:
        return decode_simple_shift(d, out, 0);
    case ZYDIS_MNEMONIC_ROR:
        return decode_simple_shift(d, out, 1);
    case ZYDIS_MNEMONIC_RCL:
        return decode_simple_shift(d, out, 2);
    case ZYDIS_MNEMONIC_RCR:
        return decode_simple_shift(d, out, 3);
    case ZYDIS_MNEMONIC_SHL:
        return decode_simple_shift(d, out, 4);
    case ZYDIS_MNEMONIC_SHR:
        return decode_simple_shift(d, out, 5);
    case ZYDIS_MNEMONIC_SAR:
        return decode_simple_shift(d, out, 6);
    case ZYDIS_MNEMONIC_SHLD:
        return decode_double_shift(d, out, 0);
    case ZYDIS_MNEMONIC_SHRD:
        return decode_double_shift(d, out, 1);
    case ZYDIS_MNEMONIC_SARX:
        return decode_flagless(d, out, 0);
    case ZYDIS_MNEMONIC_SHLX:
        return decode_flagless(d, out, 1);
    case ZYDIS_MNEMONIC_SHRX:
        return decode_flagless(d, out, 2);
    case ZYDIS_MNEMONIC_RORX:
        return decode_flagless(d, out, 3);
    default:
        return false;
    }
}
