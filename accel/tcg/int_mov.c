/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data movement: MOV MOVZX MOVSX MOVSXD MOVBE MOVNTI MOVDIRI LEA XCHG CMOVcc SETcc BSWAP XLAT, the
 * sign extensions of the accumulator, LAHF SAHF and single flags.
 */
#include "accel/tcg/int.h"

/* ---- MOV ---- */

#define LOAD_FORM(bits, form, EA)                                                                  \
    static void mov_##form##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        const volatile guest##bits *p = LD_FAST(bits, c, EA(c, i));                             \
        if (unlikely(!p)) {                                                                        \
            return mov_ld##bits(c, i);                                                             \
        }                                                                                          \
        wr##bits(c, i->reg, *p);                                                                   \
        NEXT(c, i);                                                                                \
    }
#define STORE_FORM(bits, type, form, EA, slow, value)                                              \
    static void mov_##form##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        uint64_t lin = EA(c, i);                                                                   \
        const TlbEntry *e = tlb_slot(c, lin);                                                      \
        volatile type *p = rmw_fast(e, lin, sizeof(type));                                         \
        if (unlikely(!p)) {                                                                        \
            return mov_##slow##bits(c, i);                                                         \
        }                                                                                          \
        *p = (type)(value);                                                                        \
        ST_FAST_NEXT(c, i, e, lin, sizeof(type));                                                  \
    }
#define DEFINE_MOV(bits, type, mod, sfx)                                                           \
    static void mov_rr##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        wr##bits(c, i->rm, rd##bits(c, i->reg));                                                   \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mov_ri##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        wr##bits(c, i->rm, i->imm);                                                                \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mov_ld##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        wr##bits(c, i->reg, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)));                    \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    LOAD_FORM(bits, ldf, ea_flat)                                                                  \
    LOAD_FORM(bits, ldb, ea_base)                                                                  \
    static void mov_st##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        tcg_st##bits(c, i, tcg_ea(c, i, bits / 8, true), rd##bits(c, i->reg));                     \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mov_sti##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        tcg_st##bits(c, i, tcg_ea(c, i, bits / 8, true), (type)i->imm);                            \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    STORE_FORM(bits, type, stf, ea_flat, st, rd##bits(c, i->reg))                                  \
    STORE_FORM(bits, type, stb, ea_base, st, rd##bits(c, i->reg))                                  \
    STORE_FORM(bits, type, stif, ea_flat, sti, i->imm)
SIZES_8_64(DEFINE_MOV)

enum {
    MOV_RR, MOV_RI, MOV_LD, MOV_LDF, MOV_LDB, MOV_ST, MOV_STF, MOV_STB, MOV_STI, MOV_STIF, MOV_COUNT
};
#define ROW(form)                                                                                  \
    {                                                                                              \
        mov_##form##8, mov_##form##16, mov_##form##32, mov_##form##64                              \
    }
static InsnFn *const mov_table[MOV_COUNT][SZ_COUNT] = {
    ROW(rr), ROW(ri), ROW(ld), ROW(ldf), ROW(ldb), ROW(st), ROW(stf), ROW(stb), ROW(sti), ROW(stif),
};
#undef ROW

static bool decode_plain_mov(Decode *d, Insn *out)
{
    unsigned size = op_size(d, 0), form;
    bool flat = ea_is_flat(out), base = ea_is_base(out);

    /* Segment, control and debug registers belong to the system half. */
    if ((op_reg(d, 0) && !op_gpr(d, 0)) || (op_reg(d, 1) && !op_gpr(d, 1))) {
        return false;
    }
    if (op_mem(d, 0)) {
        form = op_imm(d, 1) ? (flat ? MOV_STIF : MOV_STI)
                            : (base ? MOV_STB : flat ? MOV_STF : MOV_ST);
        out->reg = op_imm(d, 1) ? 0 : op_reg_no(d, 1);
    } else if (op_mem(d, 1)) {
        form = base ? MOV_LDB : flat ? MOV_LDF : MOV_LD;
        out->reg = op_reg_no(d, 0);
    } else {
        form = op_imm(d, 1) ? MOV_RI : MOV_RR;
        out->rm = op_reg_no(d, 0);
        out->reg = op_imm(d, 1) ? 0 : op_reg_no(d, 1);
    }
    out->imm = op_imm(d, 1) ? d->op[1].imm.value.u : 0;
    out->opsize = (uint8_t)(1u << size);
    out->fn = mov_table[form][size];
    return true;
}

/* ---- Widening ---- */

/* x: zx or sx; conv: what makes the widened value of an expression of the source's type. */
#define DEFINE_WIDEN(x, from, to, conv)                                                            \
    static void mov##x##from##_r##to(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        wr##to(c, i->reg, (uint##to##_t)(conv)rd##from(c, i->rm));                                 \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mov##x##from##_m##to(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        wr##to(c, i->reg,                                                                          \
               (uint##to##_t)(conv)tcg_ld##from(c, i, tcg_ea(c, i, from / 8, false)));             \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void mov##x##from##_f##to(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        const volatile guest##from *p = LD_FAST(from, c, ea_flat(c, i));                        \
        if (unlikely(!p)) {                                                                        \
            return mov##x##from##_m##to(c, i);                                                     \
        }                                                                                          \
        wr##to(c, i->reg, (uint##to##_t)(conv)*p);                                                 \
        NEXT(c, i);                                                                                \
    }
#define DEFINE_WIDENINGS(from)                                                                     \
    DEFINE_WIDEN(zx, from, 16, uint##from##_t)                                                     \
    DEFINE_WIDEN(zx, from, 32, uint##from##_t)                                                     \
    DEFINE_WIDEN(zx, from, 64, uint##from##_t)                                                     \
    DEFINE_WIDEN(sx, from, 16, int##from##_t)                                                      \
    DEFINE_WIDEN(sx, from, 32, int##from##_t)                                                      \
    DEFINE_WIDEN(sx, from, 64, int##from##_t)
DEFINE_WIDENINGS(8)
DEFINE_WIDENINGS(16)
DEFINE_WIDEN(sx, 32, 16, int32_t)
DEFINE_WIDEN(sx, 32, 32, int32_t)
DEFINE_WIDEN(sx, 32, 64, int32_t)

#define ROW(x, from, form)                                                                         \
    {                                                                                              \
        NULL, mov##x##from##_##form##16, mov##x##from##_##form##32, mov##x##from##_##form##64      \
    }
/* [source 8, 16, 32][register, memory, flat memory][destination] */
static InsnFn *const movzx_table[2][3][SZ_COUNT] = {
    { ROW(zx, 8, r), ROW(zx, 8, m), ROW(zx, 8, f) },
    { ROW(zx, 16, r), ROW(zx, 16, m), ROW(zx, 16, f) },
};
static InsnFn *const movsx_table[3][3][SZ_COUNT] = {
    { ROW(sx, 8, r), ROW(sx, 8, m), ROW(sx, 8, f) },
    { ROW(sx, 16, r), ROW(sx, 16, m), ROW(sx, 16, f) },
    { ROW(sx, 32, r), ROW(sx, 32, m), ROW(sx, 32, f) },
};
#undef ROW

static bool decode_widen(Decode *d, Insn *out, bool sign)
{
    unsigned from = op_size(d, 1), to = op_size(d, 0), mem = op_mem(d, 1);

    out->reg = op_reg_no(d, 0);
    out->rm = mem ? 0 : op_reg_no(d, 1);
    out->opsize = (uint8_t)(1u << to);
    /* MOVSXD without REX.W moves; with 16 bits its source is 16 bits wide (SDM 2B, MOVSXD). */
    out->fn = (sign ? movsx_table : movzx_table)[from][mem + (mem && ea_is_flat(out))][to];
    return true;
}

/* ---- LEA ---- */

static void lea16(X86CPU *c, const Insn *i)
{
    wr16(c, i->reg, tcg_ea_offset(c, i));
    NEXT(c, i);
}
static void lea32(X86CPU *c, const Insn *i)
{
    wr32(c, i->reg, tcg_ea_offset(c, i));
    NEXT(c, i);
}
static void lea64(X86CPU *c, const Insn *i)
{
    wr64(c, i->reg, tcg_ea_offset(c, i));
    NEXT(c, i);
}
static void lea32f(X86CPU *c, const Insn *i)
{
    wr32(c, i->reg, ea_flat(c, i));
    NEXT(c, i);
}
static void lea64f(X86CPU *c, const Insn *i)
{
    wr64(c, i->reg, ea_flat(c, i));
    NEXT(c, i);
}

static bool decode_lea(Decode *d, Insn *out)
{
    unsigned size = op_size(d, 0);

    out->reg = op_reg_no(d, 0);
    out->opsize = (uint8_t)(1u << size);
    if (out->asz == ASZ_64 && size != SZ_16) {
        out->fn = size == SZ_64 ? lea64f : lea32f;
    } else {
        out->fn = size == SZ_64 ? lea64 : size == SZ_32 ? lea32 : lea16;
    }
    return true;
}

/* ---- XCHG: with memory it locks, prefix or not ---- */

#define DEFINE_XCHG(bits, type, mod, sfx)                                                          \
    static inline type xchg_host##bits(type *p, type v)                                            \
    {                                                                                              \
        __asm__ volatile("xchg %" mod "0, %1" : "+r"(v), "+m"(*p) : : "memory");                   \
        return v;                                                                                  \
    }                                                                                              \
    static void xchg_rr##bits(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        type a = rd##bits(c, i->rm), b = rd##bits(c, i->reg);                                      \
        wr##bits(c, i->rm, b);                                                                     \
        wr##bits(c, i->reg, a);                                                                    \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void xchg_m##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        type b = rd##bits(c, i->reg), old;                                                         \
        RMW_LOCKED(type, c, i, lin, p, v, old = xchg_host##bits(p, b), {                           \
            old = v;                                                                               \
            v = b;                                                                                 \
        });                                                                                        \
        wr##bits(c, i->reg, old);                                                                  \
        NEXT(c, i);                                                                                \
    }
SIZES_8_64(DEFINE_XCHG)

#define ROW(form)                                                                                  \
    {                                                                                              \
        xchg_##form##8, xchg_##form##16, xchg_##form##32, xchg_##form##64                          \
    }
static InsnFn *const xchg_table[2][SZ_COUNT] = { ROW(rr), ROW(m) };
#undef ROW

static bool decode_xchg(Decode *d, Insn *out)
{
    unsigned size = op_size(d, 0);

    if (op_mem(d, 0) || op_mem(d, 1)) {
        out->reg = op_reg_no(d, op_mem(d, 0) ? 1 : 0);
        out->fn = xchg_table[1][size];
    } else {
        out->rm = op_reg_no(d, 0);
        out->reg = op_reg_no(d, 1);
        out->fn = xchg_table[0][size];
    }
    out->opsize = (uint8_t)(1u << size);
    return true;
}

/* ---- BSWAP, MOVBE ---- */

/* The host's answer where 16 bits leave it undefined. */
static void bswap16(X86CPU *c, const Insn *i)
{
    uint64_t v = c->regs[i->rm];

    __asm__(".byte 0x66\n\tbswap %%eax" : "+a"(v));
    c->regs[i->rm] = v;
    NEXT(c, i);
}
static void bswap32(X86CPU *c, const Insn *i)
{
    wr32(c, i->rm, __builtin_bswap32(rd32(c, i->rm)));
    NEXT(c, i);
}
static void bswap64(X86CPU *c, const Insn *i)
{
    wr64(c, i->rm, __builtin_bswap64(rd64(c, i->rm)));
    NEXT(c, i);
}

#define DEFINE_MOVBE(bits, type, mod, sfx)                                                         \
    static void movbe_ld##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        type v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                                \
        wr##bits(c, i->reg, __builtin_bswap##bits(v));                                             \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void movbe_st##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        type v = __builtin_bswap##bits(rd##bits(c, i->reg));                                       \
        tcg_st##bits(c, i, tcg_ea(c, i, bits / 8, true), v);                                       \
        NEXT(c, i);                                                                                \
    }
SIZES_16_64(DEFINE_MOVBE)

static bool decode_swap(Decode *d, Insn *out)
{
    static InsnFn *const bswap_table[SZ_COUNT] = { NULL, bswap16, bswap32, bswap64 };
    static InsnFn *const movbe_table[2][SZ_COUNT] = {
        { NULL, movbe_ld16, movbe_ld32, movbe_ld64 },
        { NULL, movbe_st16, movbe_st32, movbe_st64 },
    };
    unsigned size = op_size(d, 0);

    if (d->zi.mnemonic == ZYDIS_MNEMONIC_BSWAP) {
        out->rm = op_reg_no(d, 0);
        out->fn = bswap_table[size];
        return true;
    }
    if (!x86_has(d->c, FEAT_1_ECX, CPUID_1_ECX_MOVBE)) {
        return false;
    }
    out->reg = op_reg_no(d, op_mem(d, 0) ? 1 : 0);
    out->fn = movbe_table[op_mem(d, 0)][size];
    return true;
}

/* ---- CMOVcc, SETcc ---- */

/* A 32-bit CMOV zero-extends whether it moves or not; the source is always read. */
#define DEFINE_CMOV(name, bits)                                                                    \
    static void cmov##name##_r##bits(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        uint##bits##_t a = rd##bits(c, i->reg), b = rd##bits(c, i->rm);                            \
        wr##bits(c, i->reg, c_##name(c->cc) ? b : a);                                              \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void cmov##name##_m##bits(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        uint##bits##_t b = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                      \
        uint##bits##_t a = rd##bits(c, i->reg);                                                    \
        wr##bits(c, i->reg, c_##name(c->cc) ? b : a);                                              \
        NEXT(c, i);                                                                                \
    }
#define DEFINE_COND_FORMS(name, expr)                                                              \
    DEFINE_CMOV(name, 16)                                                                          \
    DEFINE_CMOV(name, 32)                                                                          \
    DEFINE_CMOV(name, 64)                                                                          \
    static void set##name##_r(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        wr8(c, i->rm, c_##name(c->cc));                                                            \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void set##name##_m(X86CPU *c, const Insn *i)                                            \
    {                                                                                              \
        tcg_st8(c, i, tcg_ea(c, i, 1, true), c_##name(c->cc));                                     \
        NEXT(c, i);                                                                                \
    }
CONDITIONS(DEFINE_COND_FORMS)

#define CMOV_ROW(name, expr)                                                                       \
    { { NULL, cmov##name##_r16, cmov##name##_r32, cmov##name##_r64 },                              \
      { NULL, cmov##name##_m16, cmov##name##_m32, cmov##name##_m64 } },
static InsnFn *const cmov_table[16][2][SZ_COUNT] = { CONDITIONS(CMOV_ROW) };
#define SET_ROW(name, expr) { set##name##_r, set##name##_m },
static InsnFn *const set_table[16][2] = { CONDITIONS(SET_ROW) };

static bool decode_conditional(Decode *d, Insn *out)
{
    unsigned cond = d->zi.opcode & 15;

    if (d->zi.opcode_map != ZYDIS_OPCODE_MAP_0F) {
        return false;
    }
    if (d->zi.meta.category == ZYDIS_CATEGORY_CMOV) {
        out->reg = op_reg_no(d, 0);
        out->rm = op_mem(d, 1) ? 0 : op_reg_no(d, 1);
        out->opsize = (uint8_t)(1u << op_size(d, 0));
        out->fn = cmov_table[cond][op_mem(d, 1)][op_size(d, 0)];
    } else {
        out->rm = op_mem(d, 0) ? 0 : op_reg_no(d, 0);
        out->opsize = 1;
        out->fn = set_table[cond][op_mem(d, 0)];
    }
    return true;
}

/* ---- The accumulator ---- */

static void cbw(X86CPU *c, const Insn *i)
{
    wr16(c, R_RAX, (uint64_t)(int8_t)rd8(c, R_RAX));
    NEXT(c, i);
}
static void cwde(X86CPU *c, const Insn *i)
{
    wr32(c, R_RAX, (uint64_t)(int16_t)rd16(c, R_RAX));
    NEXT(c, i);
}
static void cdqe(X86CPU *c, const Insn *i)
{
    wr64(c, R_RAX, (uint64_t)(int32_t)rd32(c, R_RAX));
    NEXT(c, i);
}
static void cwd(X86CPU *c, const Insn *i)
{
    wr16(c, R_RDX, (uint64_t)((int16_t)rd16(c, R_RAX) >> 15));
    NEXT(c, i);
}
static void cdq(X86CPU *c, const Insn *i)
{
    wr32(c, R_RDX, (uint64_t)((int32_t)rd32(c, R_RAX) >> 31));
    NEXT(c, i);
}
static void cqo(X86CPU *c, const Insn *i)
{
    wr64(c, R_RDX, (uint64_t)((int64_t)rd64(c, R_RAX) >> 63));
    NEXT(c, i);
}
static void xlat(X86CPU *c, const Insn *i)
{
    wr8(c, R_RAX, tcg_ld8(c, i, ea_moved(c, i, rd8(c, R_RAX), 1, false)));
    NEXT(c, i);
}
static void lahf(X86CPU *c, const Insn *i)
{
    wr8(c, 16, (c->cc >> 8 & 0xd5) | 2);
    NEXT(c, i);
}
static void sahf(X86CPU *c, const Insn *i)
{
    cc_set(c, 0xff00, (uint32_t)(rd8(c, 16) & 0xd5) << 8 | 0x200);
    NEXT(c, i);
}
/* D6, not in any manual for long: AL = CF ? FF : 0. */
static void salc(X86CPU *c, const Insn *i)
{
    wr8(c, R_RAX, c->cc & CC_CF ? 0xff : 0);
    NEXT(c, i);
}

static void clc(X86CPU *c, const Insn *i)
{
    cc_set(c, CC_CF, 0);
    NEXT(c, i);
}
static void stc(X86CPU *c, const Insn *i)
{
    cc_set(c, CC_CF, CC_CF);
    NEXT(c, i);
}
static void cmc(X86CPU *c, const Insn *i)
{
    c->cc ^= CC_CF;
    NEXT(c, i);
}
static void cld(X86CPU *c, const Insn *i)
{
    c->rflags &= ~FL_DF;
    NEXT(c, i);
}
static void std(X86CPU *c, const Insn *i)
{
    c->rflags |= FL_DF;
    NEXT(c, i);
}

static InsnFn *fixed_handler(const Decode *d)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_CBW:
        return cbw;
    case ZYDIS_MNEMONIC_CWDE:
        return cwde;
    case ZYDIS_MNEMONIC_CDQE:
        return cdqe;
    case ZYDIS_MNEMONIC_CWD:
        return cwd;
    case ZYDIS_MNEMONIC_CDQ:
        return cdq;
    case ZYDIS_MNEMONIC_CQO:
        return cqo;
    case ZYDIS_MNEMONIC_XLAT:
        return xlat;
    case ZYDIS_MNEMONIC_LAHF:
    case ZYDIS_MNEMONIC_SAHF:
        if (d->bits == 64 && !x86_has(d->c, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_LAHF_LM)) {
            return NULL;
        }
        return d->zi.mnemonic == ZYDIS_MNEMONIC_LAHF ? lahf : sahf;
    case ZYDIS_MNEMONIC_SALC:
        return salc;
    case ZYDIS_MNEMONIC_CLC:
        return clc;
    case ZYDIS_MNEMONIC_STC:
        return stc;
    case ZYDIS_MNEMONIC_CMC:
        return cmc;
    case ZYDIS_MNEMONIC_CLD:
        return cld;
    case ZYDIS_MNEMONIC_STD:
        return std;
    default:
        return NULL;
    }
}

bool decode_mov(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        return decode_plain_mov(d, out);
    case ZYDIS_MNEMONIC_MOVNTI:
        return x86_has(d->c, FEAT_1_EDX, CPUID_1_EDX_SSE2) && decode_plain_mov(d, out);
    case ZYDIS_MNEMONIC_MOVDIRI:
        return x86_has(d->c, FEAT_7_0_ECX, CPUID_7_0_ECX_MOVDIRI) && decode_plain_mov(d, out);
    case ZYDIS_MNEMONIC_MOVZX:
        return decode_widen(d, out, false);
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        return decode_widen(d, out, true);
    case ZYDIS_MNEMONIC_LEA:
        return decode_lea(d, out);
    case ZYDIS_MNEMONIC_XCHG:
        return decode_xchg(d, out);
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_MOVBE:
        return decode_swap(d, out);
    default:
        break;
    }
    if (d->zi.meta.category == ZYDIS_CATEGORY_CMOV || d->zi.meta.category == ZYDIS_CATEGORY_SETCC) {
        return decode_conditional(d, out);
    }
    out->fn = fixed_handler(d);
    return out->fn != NULL;
}
