/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vector moves and the integer operations that C string functions and memory copies are made of,
 * in plain C: they need neither a stub nor a buffer. What a function here does must equal what the
 * stub of the same instruction would do; the differential test compares both with the hardware.
 */
#include "accel/tcg/simd.h"

typedef uint64_t V2 __attribute__((vector_size(16)));
typedef uint32_t V4 __attribute__((vector_size(16)));
typedef uint16_t V8 __attribute__((vector_size(16)));
typedef uint8_t V16 __attribute__((vector_size(16)));
typedef int32_t S4 __attribute__((vector_size(16)));
typedef int16_t S8 __attribute__((vector_size(16)));
typedef int8_t S16 __attribute__((vector_size(16)));

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS V2 ld16(const void *p)
{
    V2 v;
    memcpy(&v, p, 16);
    return v;
}
ALWAYS void st16(void *p, V2 v)
{
    memcpy(p, &v, 16);
}
ALWAYS void zero_upper(X86CPU *c, unsigned n)
{
    st16(c->ymm[n] + 16, (V2){ 0, 0 });
}
ALWAYS void check(X86CPU *c, const Insn *i, bool vex)
{
    if (vex) {
        avx_check(c, i);
    } else {
        sse_check(c, i);
    }
}

/* ---- Binary operations ---- */

enum { B_XOR, B_OR, B_AND, B_ANDN, B_ADD8, B_ADD16, B_ADD32, B_ADD64, B_SUB8, B_SUB16, B_SUB32,
       B_SUB64, B_EQ8, B_EQ16, B_EQ32, B_GT8, B_GT16, B_GT32, B_MINU8, B_MAXU8, B_LQDQ, B_COUNT };

ALWAYS V2 binary(int op, V2 a, V2 b)
{
    switch (op) {
    case B_XOR:
        return a ^ b;
    case B_OR:
        return a | b;
    case B_AND:
        return a & b;
    case B_ANDN:
        return ~a & b;
    case B_ADD8:
        return (V2)((V16)a + (V16)b);
    case B_ADD16:
        return (V2)((V8)a + (V8)b);
    case B_ADD32:
        return (V2)((V4)a + (V4)b);
    case B_ADD64:
        return a + b;
    case B_SUB8:
        return (V2)((V16)a - (V16)b);
    case B_SUB16:
        return (V2)((V8)a - (V8)b);
    case B_SUB32:
        return (V2)((V4)a - (V4)b);
    case B_SUB64:
        return a - b;
    case B_EQ8:
        return (V2)((V16)a == (V16)b);
    case B_EQ16:
        return (V2)((V8)a == (V8)b);
    case B_EQ32:
        return (V2)((V4)a == (V4)b);
    case B_GT8:
        return (V2)((S16)a > (S16)b);
    case B_GT16:
        return (V2)((S8)a > (S8)b);
    case B_GT32:
        return (V2)((S4)a > (S4)b);
    case B_MINU8: {
        V16 lt = (V16)((V16)a < (V16)b);
        return (a & (V2)lt) | (b & ~(V2)lt);
    }
    case B_MAXU8: {
        V16 gt = (V16)((V16)a > (V16)b);
        return (a & (V2)gt) | (b & ~(V2)gt);
    }
    default: /* B_LQDQ */
        return (V2){ a[0], b[0] };
    }
}

/* form: 0 SSE, 1 VEX.128, 2 VEX.256 */
ALWAYS void run_binary(X86CPU *c, const Insn *i, int op, int form, bool load)
{
    const uint8_t *b = c->ymm[i->rm];
    const uint8_t *a = c->ymm[form ? i->vvvv : i->reg];
    check(c, i, form);
    if (load) {
        unsigned size = form == 2 ? 32 : 16;
        uint64_t lin = tcg_ea(c, i, size, false);
        if (form == 0) {
            simd_align(c, i, lin, 16);
        }
        b = simd_load(c, i, lin, size, c->tcg->simd->buf);
    }
    V2 lo = binary(op, ld16(a), ld16(b));
    if (form == 2) {
        V2 hi = binary(op, ld16(a + 16), ld16(b + 16));
        st16(c->ymm[i->reg] + 16, hi);
    } else if (form == 1) {
        zero_upper(c, i->reg);
    }
    st16(c->ymm[i->reg], lo);
}

#define BINARY_FORM(op, form)                                                                      \
    static void op##_##form##_r(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        run_binary(c, i, op, form, false);                                                         \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void op##_##form##_m(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        run_binary(c, i, op, form, true);                                                          \
        NEXT(c, i);                                                                                \
    }
#define BINARY(op) BINARY_FORM(op, 0) BINARY_FORM(op, 1) BINARY_FORM(op, 2)
#define ALL_BINARY(X)                                                                              \
    X(B_XOR) X(B_OR) X(B_AND) X(B_ANDN) X(B_ADD8) X(B_ADD16) X(B_ADD32) X(B_ADD64) X(B_SUB8)       \
    X(B_SUB16) X(B_SUB32) X(B_SUB64) X(B_EQ8) X(B_EQ16) X(B_EQ32) X(B_GT8) X(B_GT16) X(B_GT32)     \
    X(B_MINU8) X(B_MAXU8) X(B_LQDQ)
ALL_BINARY(BINARY)
#define BINARY_ROW(op)                                                                             \
    [op] = { { op##_0_r, op##_0_m }, { op##_1_r, op##_1_m }, { op##_2_r, op##_2_m } },
static InsnFn *const binary_fns[B_COUNT][3][2] = { ALL_BINARY(BINARY_ROW) };

static const struct {
    ZydisMnemonic sse, avx;
    uint8_t op;
} binary_rows[] = {
#define R(mn, op) { ZYDIS_MNEMONIC_##mn, ZYDIS_MNEMONIC_V##mn, op }
    R(PXOR, B_XOR),      R(XORPS, B_XOR),     R(XORPD, B_XOR),     R(POR, B_OR),
    R(ORPS, B_OR),       R(ORPD, B_OR),       R(PAND, B_AND),      R(ANDPS, B_AND),
    R(ANDPD, B_AND),     R(PANDN, B_ANDN),    R(ANDNPS, B_ANDN),   R(ANDNPD, B_ANDN),
    R(PADDB, B_ADD8),    R(PADDW, B_ADD16),   R(PADDD, B_ADD32),   R(PADDQ, B_ADD64),
    R(PSUBB, B_SUB8),    R(PSUBW, B_SUB16),   R(PSUBD, B_SUB32),   R(PSUBQ, B_SUB64),
    R(PCMPEQB, B_EQ8),   R(PCMPEQW, B_EQ16),  R(PCMPEQD, B_EQ32),  R(PCMPGTB, B_GT8),
    R(PCMPGTW, B_GT16),  R(PCMPGTD, B_GT32),  R(PMINUB, B_MINU8),  R(PMAXUB, B_MAXU8),
    R(PUNPCKLQDQ, B_LQDQ),
#undef R
};

static bool decode_binary(const Decode *d, Insn *out)
{
    bool vex = out->imm & KEY_VEX;
    for (size_t n = 0; n < ARRAY_SIZE(binary_rows); n++) {
        if ((vex ? binary_rows[n].avx : binary_rows[n].sse) == d->zi.mnemonic) {
            unsigned form = !vex ? 0 : out->imm & KEY_L ? 2 : 1;
            out->fn = binary_fns[binary_rows[n].op][form][out->imm & KEY_MEM ? 1 : 0];
            return true;
        }
    }
    return false;
}

/* ---- Whole-register moves: opsize 16 or 32, SI_ALIGN if the operand must be aligned ---- */

ALWAYS void run_move_load(X86CPU *c, const Insn *i, int form)
{
    unsigned size = form == 2 ? 32 : 16;
    check(c, i, form);
    uint64_t lin = tcg_ea(c, i, size, false);
    if (i->aux16 & SI_ALIGN) {
        simd_align(c, i, lin, size);
    }
    const uint8_t *p = simd_load(c, i, lin, size, c->tcg->simd->buf);
    V2 lo = ld16(p);
    if (form == 2) {
        V2 hi = ld16(p + 16);
        st16(c->ymm[i->reg] + 16, hi);
    } else if (form == 1) {
        zero_upper(c, i->reg);
    }
    st16(c->ymm[i->reg], lo);
}

ALWAYS void run_move_store(X86CPU *c, const Insn *i, int form)
{
    unsigned size = form == 2 ? 32 : 16;
    check(c, i, form);
    uint64_t lin = tcg_ea(c, i, size, true);
    if (i->aux16 & SI_ALIGN) {
        simd_align(c, i, lin, size);
    }
    if (unlikely(!simd_store_direct(c, lin, c->ymm[i->reg], size))) {
        simd_store(c, i, lin, c->ymm[i->reg], size);
    }
}

/* The register form of a store has its destination in rm. */
ALWAYS void run_move_reg(X86CPU *c, const Insn *i, int form)
{
    check(c, i, form);
    unsigned dst = i->imm & KEY_RM_WR ? i->rm : i->reg;
    unsigned src = i->imm & KEY_RM_WR ? i->reg : i->rm;
    if (form == 2) {
        st16(c->ymm[dst] + 16, ld16(c->ymm[src] + 16));
    } else if (form == 1) {
        zero_upper(c, dst);
    }
    st16(c->ymm[dst], ld16(c->ymm[src]));
}

#define MOVE_FORM(form)                                                                            \
    static void move_reg_##form(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        run_move_reg(c, i, form);                                                                  \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void move_load_##form(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        run_move_load(c, i, form);                                                                 \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void move_store_##form(X86CPU *c, const Insn *i)                                        \
    {                                                                                              \
        run_move_store(c, i, form);                                                                \
        NEXT(c, i);                                                                                \
    }
MOVE_FORM(0)
MOVE_FORM(1)
MOVE_FORM(2)

static bool is_whole_move(ZydisMnemonic mn)
{
    switch (mn) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTDQA:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VLDDQU:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTDQA:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
        return true;
    default:
        return false;
    }
}

static bool decode_move(const Decode *d, Insn *out)
{
    static InsnFn *const fns[3][3] = { { move_reg_0, move_load_0, move_store_0 },
                                       { move_reg_1, move_load_1, move_store_1 },
                                       { move_reg_2, move_load_2, move_store_2 } };
    if (!is_whole_move(d->zi.mnemonic)) {
        return false;
    }
    unsigned form = !(out->imm & KEY_VEX) ? 0 : out->imm & KEY_L ? 2 : 1;
    unsigned kind = !(out->imm & KEY_MEM) ? 0 : out->aux16 & SI_STORE ? 2 : 1;
    out->fn = fns[form][kind];
    return true;
}

/* ---- MOVQ, MOVD, MOVSD, MOVSS between an XMM register and memory or a general register ---- */

ALWAYS void set_low(X86CPU *c, const Insn *i, uint64_t v, bool vex)
{
    st16(c->ymm[i->reg], (V2){ v, 0 });
    if (vex) {
        zero_upper(c, i->reg);
    }
}
ALWAYS uint64_t get_low(X86CPU *c, const Insn *i)
{
    uint64_t v;
    memcpy(&v, c->ymm[i->reg], 8);
    return v;
}

#define SCALAR_FORM(sfx, vex)                                                                      \
    static void low_load64##sfx(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        set_low(c, i, tcg_ld64(c, i, tcg_ea(c, i, 8, false)), vex);                                \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void low_load32##sfx(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        set_low(c, i, tcg_ld32(c, i, tcg_ea(c, i, 4, false)), vex);                                \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void low_store64##sfx(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        tcg_st64(c, i, tcg_ea(c, i, 8, true), get_low(c, i));                                      \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void low_store32##sfx(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        tcg_st32(c, i, tcg_ea(c, i, 4, true), (uint32_t)get_low(c, i));                            \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void low_to_gpr64##sfx(X86CPU *c, const Insn *i)                                        \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        c->regs[i->rm] = get_low(c, i);                                                            \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void low_to_gpr32##sfx(X86CPU *c, const Insn *i)                                        \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        c->regs[i->rm] = (uint32_t)get_low(c, i);                                                  \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void gpr64_to_low##sfx(X86CPU *c, const Insn *i)                                        \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        set_low(c, i, c->regs[i->rm], vex);                                                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void gpr32_to_low##sfx(X86CPU *c, const Insn *i)                                        \
    {                                                                                              \
        check(c, i, vex);                                                                          \
        set_low(c, i, (uint32_t)c->regs[i->rm], vex);                                              \
        NEXT(c, i);                                                                                \
    }
SCALAR_FORM(_sse, false)
SCALAR_FORM(_avx, true)

static bool is_scalar_move(ZydisMnemonic mn)
{
    switch (mn) {
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_VMOVQ:
    case ZYDIS_MNEMONIC_VMOVD:
    case ZYDIS_MNEMONIC_VMOVSD:
    case ZYDIS_MNEMONIC_VMOVSS:
        return true;
    default:
        return false;
    }
}

static bool decode_scalar(const Decode *d, Insn *out)
{
    static InsnFn *const fns[2][8] = {
        { low_load32_sse, low_load64_sse, low_store32_sse, low_store64_sse, gpr32_to_low_sse,
          gpr64_to_low_sse, low_to_gpr32_sse, low_to_gpr64_sse },
        { low_load32_avx, low_load64_avx, low_store32_avx, low_store64_avx, gpr32_to_low_avx,
          gpr64_to_low_avx, low_to_gpr32_avx, low_to_gpr64_avx },
    };
    uint64_t key = out->imm;
    unsigned n;
    if (!is_scalar_move(d->zi.mnemonic)) {
        return false;
    }
    if (key & KEY_MEM) {
        n = (out->aux16 & SI_STORE ? 2 : 0) + (out->aux8 == 8);
    } else if (KEY_RM(key) == KC_GPR) {
        n = (key & KEY_RM_WR ? 6 : 4) + ((key & KEY_W) != 0);
    } else {
        return false;
    }
    out->fn = fns[key & KEY_VEX ? 1 : 0][n];
    return true;
}

bool simd_decode_fast(Decode *d, Insn *out)
{
    if (out->aux16 & (SI_MMX | SI_NOSSE)) {
        return false;
    }
    return decode_move(d, out) || decode_scalar(d, out) || decode_binary(d, out);
}
