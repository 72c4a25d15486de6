/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MUL IMUL MULX DIV IDIV and the decimal adjustments. A division is checked first, so the host
 * never raises SIGFPE; undefined flags are the host's.
 */
#include "accel/tcg/int.h"

/*
 * insn v with RAX and RDX as the guest's. The accumulator waits in *a while AL and AH load the
 * flags, and goes back there before they are read.
 */
#define WIDE_OP(insn, c, v)                                                                        \
    do {                                                                                           \
        uint64_t a_ = (c)->regs[R_RAX], d_ = (c)->regs[R_RDX];                                     \
        uint32_t f_ = (c)->cc;                                                                     \
        __asm__(FLAGS_IN "mov %0, %%rax\n\t" insn "\n\tmov %%rax, %0" FLAGS_OUT                    \
                : "+&r"(a_), "+&d"(d_), "+&a"(f_)                                                  \
                : "r"(v));                                                                         \
        (c)->regs[R_RAX] = a_;                                                                     \
        (c)->regs[R_RDX] = d_;                                                                     \
        (c)->cc = f_;                                                                              \
    } while (0)

/* ---- MUL, IMUL of one operand ---- */

#define MUL_FORMS(name, bits, mod)                                                                 \
    static inline void name##bits(X86CPU *c, uint64_t v)                                           \
    {                                                                                              \
        WIDE_OP(#name " %" mod "3", c, v);                                                         \
    }                                                                                              \
    static void name##_r##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        name##bits(c, rd##bits(c, i->rm));                                                         \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_m##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        name##bits(c, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)));                          \
        NEXT(c, i);                                                                                \
    }
#define MUL_SIZE(bits, type, mod, sfx)                                                             \
    MUL_FORMS(mul, bits, mod)                                                                      \
    MUL_FORMS(imul, bits, mod)
SIZES_8_64(MUL_SIZE)

/* ---- IMUL of two and three operands ---- */

#define DEFINE_IMUL2(bits, type, mod, sfx)                                                         \
    static inline uint64_t imul2_##bits(X86CPU *c, uint64_t a, uint64_t b)                         \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__(FLAGS_IN "imul %" mod "2, %" mod "0" FLAGS_OUT : "+r"(a), "+a"(f) : "r"(b));       \
        c->cc = f;                                                                                 \
        return a;                                                                                  \
    }                                                                                              \
    static void imul2_r##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        c->regs[i->reg] = imul2_##bits(c, c->regs[i->reg], c->regs[i->rm]);                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void imul2_m##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        uint64_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        c->regs[i->reg] = imul2_##bits(c, c->regs[i->reg], v);                                     \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void imul3_r##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        wr##bits(c, i->reg, imul2_##bits(c, c->regs[i->rm], i->imm));                              \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void imul3_m##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        uint64_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        wr##bits(c, i->reg, imul2_##bits(c, v, i->imm));                                           \
        NEXT(c, i);                                                                                \
    }
SIZES_16_64(DEFINE_IMUL2)

/* ---- MULX: no flags; the high half wins if both destinations are one ---- */

#define DEFINE_MULX(bits, wide)                                                                    \
    static inline void mulx##bits(X86CPU *c, const Insn *i, uint##bits##_t v)                      \
    {                                                                                              \
        wide p = (wide)rd##bits(c, R_RDX) * v;                                                     \
        wr##bits(c, i->vvvv, (uint##bits##_t)p);                                                   \
        wr##bits(c, i->reg, (uint##bits##_t)(p >> bits));                                          \
    }                                                                                              \
    static void mulx_r##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        mulx##bits(c, i, rd##bits(c, i->rm));                                                      \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mulx_m##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        mulx##bits(c, i, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)));                       \
        NEXT(c, i);                                                                                \
    }
DEFINE_MULX(32, uint64_t)
DEFINE_MULX(64, unsigned __int128)

/* ---- DIV, IDIV ---- */

/* Does the quotient of hi:lo by v fit? Unsigned: exactly if the high half is less than v. */
#define DIV_FITS(hi, v) ((hi) < (v))

/*
 * Signed, by magnitudes: |dividend| / |v| must be below 2^(bits-1), or equal if the quotient is
 * negative.
 */
static bool idiv_fits(unsigned __int128 dividend, uint64_t v, unsigned bits)
{
    bool neg_dividend = (dividend >> 127) != 0, neg_v = (v >> 63) != 0;
    unsigned __int128 limit = (unsigned __int128)1 << (bits - 1);
    unsigned __int128 magnitude = neg_dividend ? -dividend : dividend;
    uint64_t divisor = neg_v ? -v : v;

    /* magnitude / divisor < limit (+ 1 if negative), without dividing. */
    if (neg_dividend != neg_v) {
        limit++;
    }
    return divisor != 0 && magnitude < limit * divisor;
}

#define DIVIDEND(bits, c)                                                                          \
    (bits == 8 ? (unsigned __int128)rd16(c, R_RAX)                                                 \
               : (unsigned __int128)rd##bits(c, R_RDX) << (bits == 8 ? 0 : bits) |                 \
                     rd##bits(c, R_RAX))
#define SIGN_EXTEND(bits, v)                                                                       \
    ((unsigned __int128)((__int128)((v) << (128 - 2 * bits)) >> (128 - 2 * bits)))

#define DEFINE_DIV(bits, type, mod, sfx)                                                           \
    static inline void div##bits(X86CPU *c, const Insn *i, type v)                                 \
    {                                                                                              \
        if (!DIV_FITS((type)(DIVIDEND(bits, c) >> bits), v)) {                                     \
            tcg_raise(c, i, EXCP_DE);                                                              \
        }                                                                                          \
        WIDE_OP("div %" mod "3", c, (uint64_t)v);                                                  \
    }                                                                                              \
    static inline void idiv##bits(X86CPU *c, const Insn *i, type v)                                \
    {                                                                                              \
        unsigned __int128 dividend = DIVIDEND(bits, c);                                            \
        if (!idiv_fits(SIGN_EXTEND(bits, dividend), (uint64_t)(int##bits##_t)v, bits)) {           \
            tcg_raise(c, i, EXCP_DE);                                                              \
        }                                                                                          \
        WIDE_OP("idiv %" mod "3", c, (uint64_t)v);                                                 \
    }                                                                                              \
    static void div_r##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        div##bits(c, i, rd##bits(c, i->rm));                                                       \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void div_m##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        div##bits(c, i, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)));                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void idiv_r##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        idiv##bits(c, i, rd##bits(c, i->rm));                                                      \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void idiv_m##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        idiv##bits(c, i, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)));                       \
        NEXT(c, i);                                                                                \
    }
SIZES_8_64(DEFINE_DIV)

/* ---- Decimal adjustments (SDM 2A; flags the manual leaves undefined: OF 0) ---- */

static void cc_result8(X86CPU *c, uint8_t v, uint32_t cf_af)
{
    c->cc = 0x200 | cf_af | (v == 0 ? CC_ZF : 0) | (v & 0x80 ? CC_SF : 0) |
            (__builtin_parity(v) ? 0 : CC_PF);
}

static void decimal_adjust(X86CPU *c, bool subtract)
{
    uint8_t old = rd8(c, R_RAX), al = old;
    uint32_t cf = c->cc & CC_CF, flags = 0;

    if ((old & 15) > 9 || (c->cc & CC_AF)) {
        al = subtract ? al - 6 : al + 6;
        flags |= CC_AF | cf;
        if (subtract ? old < 6 : old > 0xf9) {
            flags |= CC_CF;
        }
    }
    if (old > 0x99 || cf) {
        al = subtract ? al - 0x60 : al + 0x60;
        flags |= CC_CF;
    } else if (!subtract) {
        flags &= ~CC_CF;
    }
    wr8(c, R_RAX, al);
    cc_result8(c, al, flags);
    /* Undefined, and so on processors: the overflow of the whole adjustment. */
    c->cc |= (subtract ? old & ~al : ~old & al) >> 7 & 1;
}
static void daa(X86CPU *c, const Insn *i)
{
    decimal_adjust(c, false);
    NEXT(c, i);
}
static void das(X86CPU *c, const Insn *i)
{
    decimal_adjust(c, true);
    NEXT(c, i);
}

static void ascii_adjust(X86CPU *c, bool subtract)
{
    uint16_t ax = rd16(c, R_RAX), old = ax;
    uint32_t flags = 0;

    if ((ax & 15) > 9 || (c->cc & CC_AF)) {
        ax = subtract ? (uint16_t)(ax - 0x106) : (uint16_t)(ax + 0x106);
        flags = CC_AF | CC_CF;
    }
    wr16(c, R_RAX, ax & 0xff0f);
    /* The others are undefined; they come out as those of AX before its middle is cleared. */
    cc_result8(c, (uint8_t)ax, flags);
    c->cc &= ~(CC_ZF | CC_SF);
    c->cc |= (ax == 0 ? CC_ZF : 0) | (ax & 0x8000 ? CC_SF : 0);
    c->cc |= (subtract ? old & ~ax : ~old & ax) >> 15 & CC_OF;
}
static void aaa(X86CPU *c, const Insn *i)
{
    ascii_adjust(c, false);
    NEXT(c, i);
}
static void aas(X86CPU *c, const Insn *i)
{
    ascii_adjust(c, true);
    NEXT(c, i);
}
static void aam(X86CPU *c, const Insn *i)
{
    uint8_t al = rd8(c, R_RAX), base = (uint8_t)i->imm;

    if (!base) {
        tcg_raise(c, i, EXCP_DE);
    }
    wr16(c, R_RAX, (uint64_t)(al / base) << 8 | (uint64_t)(al % base));
    cc_result8(c, al % base, 0);
    NEXT(c, i);
}
/* CF, AF and OF are undefined; they come out as those of the addition. */
static void aad(X86CPU *c, const Insn *i)
{
    uint8_t al = rd8(c, R_RAX), m = (uint8_t)(rd8(c, 16) * (uint8_t)i->imm);
    uint8_t sum = (uint8_t)(al + m);

    wr16(c, R_RAX, sum);
    cc_result8(c, sum, (sum < al ? CC_CF : 0) | ((al ^ m ^ sum) & 0x10 ? CC_AF : 0));
    c->cc |= (al ^ sum) & (m ^ sum) & 0x80 ? CC_OF : 0;
    NEXT(c, i);
}

/* ---- Decoding ---- */

#define ROW8(name, form)                                                                           \
    {                                                                                              \
        name##_##form##8, name##_##form##16, name##_##form##32, name##_##form##64                  \
    }
#define ROW16(name)                                                                                \
    {                                                                                              \
        NULL, name##16, name##32, name##64                                                         \
    }

enum { M_MUL, M_IMUL, M_DIV, M_IDIV };
static InsnFn *const one_table[4][2][SZ_COUNT] = {
    { ROW8(mul, r), ROW8(mul, m) },
    { ROW8(imul, r), ROW8(imul, m) },
    { ROW8(div, r), ROW8(div, m) },
    { ROW8(idiv, r), ROW8(idiv, m) },
};

/* n: which operand is the explicit one. */
static bool decode_one_operand(Decode *d, Insn *out, unsigned op, unsigned n)
{
    out->rm = op_mem(d, n) ? 0 : op_reg_no(d, n);
    out->opsize = (uint8_t)(1u << op_size(d, n));
    out->fn = one_table[op][op_mem(d, n)][op_size(d, n)];
    return true;
}

static bool decode_imul(Decode *d, Insn *out)
{
    static InsnFn *const two[2][SZ_COUNT] = { ROW16(imul2_r), ROW16(imul2_m) };
    static InsnFn *const three[2][SZ_COUNT] = { ROW16(imul3_r), ROW16(imul3_m) };
    bool mem = op_mem(d, 1);

    if (d->zi.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
        (d->zi.opcode == 0xf6 || d->zi.opcode == 0xf7)) {
        return decode_one_operand(d, out, M_IMUL, 0);
    }
    out->reg = op_reg_no(d, 0);
    out->rm = mem ? 0 : op_reg_no(d, 1);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    if (d->zi.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
        out->imm = d->op[2].imm.value.u;
        out->fn = three[mem][op_size(d, 0)];
    } else {
        out->fn = two[mem][op_size(d, 0)];
    }
    return true;
}

static bool decode_mulx(Decode *d, Insn *out)
{
    static InsnFn *const table[2][2] = { { mulx_r32, mulx_r64 }, { mulx_m32, mulx_m64 } };

    if (!x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI2)) {
        return false;
    }
    out->reg = op_reg_no(d, 0);
    out->vvvv = op_reg_no(d, 1);
    out->rm = op_mem(d, 2) ? 0 : op_reg_no(d, 2);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = table[op_mem(d, 2)][op_size(d, 0) == SZ_64];
    return true;
}

static bool fixed(Insn *out, InsnFn *fn)
{
    out->fn = fn;
    return true;
}

bool decode_mul(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_MUL:
        return decode_one_operand(d, out, M_MUL, 0);
    case ZYDIS_MNEMONIC_IMUL:
        return decode_imul(d, out);
    case ZYDIS_MNEMONIC_DIV:
        return decode_one_operand(d, out, M_DIV, 0);
    case ZYDIS_MNEMONIC_IDIV:
        return decode_one_operand(d, out, M_IDIV, 0);
    case ZYDIS_MNEMONIC_MULX:
        return decode_mulx(d, out);
    case ZYDIS_MNEMONIC_DAA:
        return fixed(out, daa);
    case ZYDIS_MNEMONIC_DAS:
        return fixed(out, das);
    case ZYDIS_MNEMONIC_AAA:
        return fixed(out, aaa);
    case ZYDIS_MNEMONIC_AAS:
        return fixed(out, aas);
    case ZYDIS_MNEMONIC_AAM:
        out->imm = d->op[0].imm.value.u;
        return fixed(out, aam);
    case ZYDIS_MNEMONIC_AAD:
        out->imm = d->op[0].imm.value.u;
        return fixed(out, aad);
    default:
        return false;
    }
}
