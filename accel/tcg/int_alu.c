/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ADD OR ADC SBB AND SUB XOR CMP TEST, INC DEC NEG NOT: all sizes, register, memory, immediate and
 * locked forms.
 */
#include "accel/tcg/int.h"

/* Two operands; the result replaces a. */
#define DEFINE_OP2(name, insn, bits, mod)                                                          \
    static inline uint64_t name##bits(X86CPU *c, uint64_t a, uint64_t b)                           \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__(insn " %" mod "2, %" mod "0" FLAGS_OUT : "+r"(a), "=&a"(f) : "r"(b));              \
        c->cc = f;                                                                                 \
        return a;                                                                                  \
    }
/* With carry in. */
#define DEFINE_OP2C(name, insn, bits, mod)                                                         \
    static inline uint64_t name##bits(X86CPU *c, uint64_t a, uint64_t b)                           \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__("btl $8, %3\n\t" insn " %" mod "2, %" mod "0" FLAGS_OUT                            \
                : "+r"(a), "=&a"(f)                                                                \
                : "r"(b), "r"(c->cc));                                                             \
        c->cc = f;                                                                                 \
        return a;                                                                                  \
    }
/* Flags only. */
#define DEFINE_OP2F(name, insn, bits, mod)                                                         \
    static inline void name##bits(X86CPU *c, uint64_t a, uint64_t b)                               \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__(insn " %" mod "2, %" mod "1" FLAGS_OUT : "=&a"(f) : "r"(a), "r"(b));               \
        c->cc = f;                                                                                 \
    }
/* One operand; CF is kept (INC, DEC) or made (NEG). */
#define DEFINE_OP1C(name, insn, bits, mod)                                                         \
    static inline uint64_t name##bits(X86CPU *c, uint64_t a)                                       \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__("btl $8, %2\n\t" insn " %" mod "0" FLAGS_OUT                                       \
                : "+r"(a), "=&a"(f)                                                                \
                : "r"(c->cc));                                                                     \
        c->cc = f;                                                                                 \
        return a;                                                                                  \
    }
#define DEFINE_NOT(bits, mod)                                                                      \
    static inline uint64_t not##bits(X86CPU *c, uint64_t a)                                        \
    {                                                                                              \
        __asm__("not %" mod "0" : "+r"(a));                                                        \
        return a;                                                                                  \
    }

#define DEFINE_ALL(bits, type, mod, sfx)                                                           \
    DEFINE_OP2(add, "add", bits, mod)                                                              \
    DEFINE_OP2(or, "or", bits, mod)                                                                \
    DEFINE_OP2C(adc, "adc", bits, mod)                                                             \
    DEFINE_OP2C(sbb, "sbb", bits, mod)                                                             \
    DEFINE_OP2(and, "and", bits, mod)                                                              \
    DEFINE_OP2(sub, "sub", bits, mod)                                                              \
    DEFINE_OP2(xor, "xor", bits, mod)                                                              \
    DEFINE_OP2F(cmp, "cmp", bits, mod)                                                             \
    DEFINE_OP2F(test, "test", bits, mod)                                                           \
    DEFINE_OP1C(inc, "inc", bits, mod)                                                             \
    DEFINE_OP1C(dec, "dec", bits, mod)                                                             \
    DEFINE_OP1C(neg, "neg", bits, mod)                                                             \
    DEFINE_NOT(bits, mod)
SIZES_8_64(DEFINE_ALL)

/* Locked on host memory. */
#define DEFINE_LOCK2(name, insn, bits, type, mod)                                                  \
    static inline void lock_##name##bits(X86CPU *c, type *p, type b)                               \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__ volatile("btl $8, %3\n\tlock " insn " %" mod "2, %0" FLAGS_OUT                     \
                         : "+m"(*p), "=&a"(f)                                                      \
                         : "r"(b), "r"(c->cc)                                                      \
                         : "memory");                                                              \
        c->cc = f;                                                                                 \
    }
#define DEFINE_LOCK1(name, insn, bits, type, sfx)                                                  \
    static inline void lock_##name##bits(X86CPU *c, type *p)                                       \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__ volatile("btl $8, %2\n\tlock " insn sfx " %0" FLAGS_OUT                            \
                         : "+m"(*p), "=&a"(f)                                                      \
                         : "r"(c->cc)                                                              \
                         : "memory");                                                              \
        c->cc = f;                                                                                 \
    }
#define DEFINE_LOCKS(bits, type, mod, sfx)                                                         \
    DEFINE_LOCK2(add, "add", bits, type, mod)                                                      \
    DEFINE_LOCK2(or, "or", bits, type, mod)                                                        \
    DEFINE_LOCK2(adc, "adc", bits, type, mod)                                                      \
    DEFINE_LOCK2(sbb, "sbb", bits, type, mod)                                                      \
    DEFINE_LOCK2(and, "and", bits, type, mod)                                                      \
    DEFINE_LOCK2(sub, "sub", bits, type, mod)                                                      \
    DEFINE_LOCK2(xor, "xor", bits, type, mod)                                                      \
    DEFINE_LOCK1(inc, "inc", bits, type, sfx)                                                      \
    DEFINE_LOCK1(dec, "dec", bits, type, sfx)                                                      \
    DEFINE_LOCK1(neg, "neg", bits, type, sfx)                                                      \
    static inline void lock_not##bits(X86CPU *c, type *p)                                          \
    {                                                                                              \
        __asm__ volatile("lock not" sfx " %0" : "+m"(*p) : : "memory");                            \
    }
SIZES_8_64(DEFINE_LOCKS)

/* ---- Handlers ---- */

/* 16 bits and more work on whole registers; bytes go through rd8/wr8 for AH and its like. */
#define GET_WIDE(bits, r) c->regs[r]
#define PUT_WIDE(bits, r, v) (c->regs[r] = (v))
#define GET_BYTE(bits, r) rd8(c, r)
#define PUT_BYTE(bits, r, v) wr8(c, r, v)

/* The common addresses; a miss begins again as name_rm. */
#define HANDLER_RM(name, bits, form, EA, action)                                                   \
    static void name##_##form##bits(X86CPU *c, const Insn *i)                                      \
    {                                                                                              \
        const volatile guest##bits *p = LD_FAST(bits, c, EA(c, i));                             \
        if (unlikely(!p)) {                                                                        \
            return name##_rm##bits(c, i);                                                          \
        }                                                                                          \
        action;                                                                                    \
        NEXT(c, i);                                                                                \
    }
/* Memory is the destination; a miss begins again as `slow`. */
#define HANDLER_M(name, bits, type, form, EA, slow, result)                                        \
    static void name##_##form##bits(X86CPU *c, const Insn *i)                                      \
    {                                                                                              \
        uint64_t lin = EA(c, i);                                                                   \
        const TlbEntry *e = tlb_slot(c, lin);                                                      \
        volatile type *p = rmw_fast(e, lin, sizeof(type));                                         \
        if (unlikely(!p)) {                                                                        \
            return name##_##slow##bits(c, i);                                                      \
        }                                                                                          \
        type v = *p;                                                                               \
        *p = (type)(result);                                                                       \
        ST_FAST_NEXT(c, i, e, lin, sizeof(type));                                                  \
    }

#define HANDLERS2_REG(name, bits, GET, PUT)                                                        \
    static void name##_rr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        PUT(bits, i->rm, name##bits(c, GET(bits, i->rm), GET(bits, i->reg)));                      \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_ri##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        PUT(bits, i->rm, name##bits(c, GET(bits, i->rm), i->imm));                                 \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_rm##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t b = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        PUT(bits, i->reg, name##bits(c, GET(bits, i->reg), b));                                    \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    HANDLER_RM(name, bits, rmf, ea_flat, PUT(bits, i->reg, name##bits(c, GET(bits, i->reg), *p)))  \
    HANDLER_RM(name, bits, rmb, ea_base, PUT(bits, i->reg, name##bits(c, GET(bits, i->reg), *p)))

#define HANDLERS2_MEM(name, bits, type, GET)                                                       \
    static void name##_mr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, GET(bits, i->reg)));                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mi##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, i->imm));                                   \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    HANDLER_M(name, bits, type, mrf, ea_flat, mr, name##bits(c, v, GET(bits, i->reg)))             \
    HANDLER_M(name, bits, type, mif, ea_flat, mi, name##bits(c, v, i->imm))                        \
    static void name##_lmr##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        type b = (type)GET(bits, i->reg);                                                          \
        RMW_LOCKED(type, c, i, lin, p, v, lock_##name##bits(c, p, b),                              \
                   v = (type)name##bits(c, v, b));                                                 \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_lmi##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        type b = (type)i->imm;                                                                     \
        RMW_LOCKED(type, c, i, lin, p, v, lock_##name##bits(c, p, b),                              \
                   v = (type)name##bits(c, v, b));                                                 \
        NEXT(c, i);                                                                                \
    }

#define HANDLERS2F(name, bits, GET)                                                                \
    static void name##_rr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        name##bits(c, GET(bits, i->rm), GET(bits, i->reg));                                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_ri##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        name##bits(c, GET(bits, i->rm), i->imm);                                                   \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_rm##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t b = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        name##bits(c, GET(bits, i->reg), b);                                                       \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    HANDLER_RM(name, bits, rmf, ea_flat, name##bits(c, GET(bits, i->reg), *p))                     \
    HANDLER_RM(name, bits, rmb, ea_base, name##bits(c, GET(bits, i->reg), *p))                     \
    static void name##_mr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t a = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        name##bits(c, a, GET(bits, i->reg));                                                       \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mi##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t a = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        name##bits(c, a, i->imm);                                                                  \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mrf##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        const volatile guest##bits *p = LD_FAST(bits, c, ea_flat(c, i));                        \
        if (unlikely(!p)) {                                                                        \
            return name##_mr##bits(c, i);                                                          \
        }                                                                                          \
        name##bits(c, *p, GET(bits, i->reg));                                                      \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mif##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        const volatile guest##bits *p = LD_FAST(bits, c, ea_flat(c, i));                        \
        if (unlikely(!p)) {                                                                        \
            return name##_mi##bits(c, i);                                                          \
        }                                                                                          \
        name##bits(c, *p, i->imm);                                                                 \
        NEXT(c, i);                                                                                \
    }

#define HANDLERS1(name, bits, type, GET, PUT)                                                      \
    static void name##_r##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        PUT(bits, i->rm, name##bits(c, GET(bits, i->rm)));                                         \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_m##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v));                                           \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    HANDLER_M(name, bits, type, mf, ea_flat, m, name##bits(c, v))                                  \
    static void name##_lm##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_LOCKED(type, c, i, lin, p, v, lock_##name##bits(c, p), v = (type)name##bits(c, v));    \
        NEXT(c, i);                                                                                \
    }

#define HANDLERS(bits, type, GET, PUT)                                                             \
    HANDLERS2_REG(add, bits, GET, PUT)                                                             \
    HANDLERS2_REG(or, bits, GET, PUT)                                                              \
    HANDLERS2_REG(adc, bits, GET, PUT)                                                             \
    HANDLERS2_REG(sbb, bits, GET, PUT)                                                             \
    HANDLERS2_REG(and, bits, GET, PUT)                                                             \
    HANDLERS2_REG(sub, bits, GET, PUT)                                                             \
    HANDLERS2_REG(xor, bits, GET, PUT)                                                             \
    HANDLERS2_MEM(add, bits, type, GET)                                                            \
    HANDLERS2_MEM(or, bits, type, GET)                                                             \
    HANDLERS2_MEM(adc, bits, type, GET)                                                            \
    HANDLERS2_MEM(sbb, bits, type, GET)                                                            \
    HANDLERS2_MEM(and, bits, type, GET)                                                            \
    HANDLERS2_MEM(sub, bits, type, GET)                                                            \
    HANDLERS2_MEM(xor, bits, type, GET)                                                            \
    HANDLERS2F(cmp, bits, GET)                                                                     \
    HANDLERS2F(test, bits, GET)                                                                    \
    HANDLERS1(inc, bits, type, GET, PUT)                                                           \
    HANDLERS1(dec, bits, type, GET, PUT)                                                           \
    HANDLERS1(neg, bits, type, GET, PUT)                                                           \
    HANDLERS1(not, bits, type, GET, PUT)
HANDLERS(8, guest8, GET_BYTE, PUT_BYTE)
HANDLERS(16, guest16, GET_WIDE, PUT_WIDE)
HANDLERS(32, guest32, GET_WIDE, PUT_WIDE)
HANDLERS(64, guest64, GET_WIDE, PUT_WIDE)

/* XOR r, r and SUB r, r as compilers write zero: the flags are constants, AF included. */
static void zero_r(X86CPU *c, const Insn *i)
{
    c->regs[i->rm] = 0;
    c->cc = CC_ZF | CC_PF | 0x200;
    NEXT(c, i);
}

/* ---- Decoding ---- */

enum { F_RR, F_RI, F_RM, F_RMF, F_RMB, F_MR, F_MI, F_MRF, F_MIF, F_LMR, F_LMI, F_COUNT };
enum { F1_R, F1_M, F1_MF, F1_LM, F1_COUNT };

#define ROW(name, form)                                                                            \
    {                                                                                              \
        name##_##form##8, name##_##form##16, name##_##form##32, name##_##form##64                  \
    }
#define OP2(name)                                                                                  \
    {                                                                                              \
        [F_RR] = ROW(name, rr), [F_RI] = ROW(name, ri), [F_RM] = ROW(name, rm),                    \
        [F_RMF] = ROW(name, rmf), [F_RMB] = ROW(name, rmb), [F_MRF] = ROW(name, mrf),              \
        [F_MIF] = ROW(name, mif), [F_MR] = ROW(name, mr), [F_MI] = ROW(name, mi),                  \
        [F_LMR] = ROW(name, lmr), [F_LMI] = ROW(name, lmi)                                         \
    }
#define OP2F(name)                                                                                 \
    {                                                                                              \
        [F_RR] = ROW(name, rr), [F_RI] = ROW(name, ri), [F_RM] = ROW(name, rm),                    \
        [F_RMF] = ROW(name, rmf), [F_RMB] = ROW(name, rmb), [F_MRF] = ROW(name, mrf),              \
        [F_MIF] = ROW(name, mif), [F_MR] = ROW(name, mr), [F_MI] = ROW(name, mi)                   \
    }
#define OP1(name)                                                                                  \
    {                                                                                              \
        [F1_R] = ROW(name, r), [F1_M] = ROW(name, m), [F1_MF] = ROW(name, mf),                     \
        [F1_LM] = ROW(name, lm)                                                                    \
    }

static InsnFn *const table2[][F_COUNT][SZ_COUNT] = {
    OP2(add), OP2(or), OP2(adc), OP2(sbb), OP2(and), OP2(sub), OP2(xor), OP2F(cmp), OP2F(test),
};
static InsnFn *const table1[][F1_COUNT][SZ_COUNT] = { OP1(inc), OP1(dec), OP1(neg), OP1(not) };

static bool alu2(Decode *d, Insn *out, unsigned op)
{
    unsigned size = op_size(d, 0), form;

    if (op_mem(d, 0)) {
        form = op_imm(d, 1) ? F_MI : F_MR;
        if (out->flags & INSN_LOCK) {
            form += F_LMR - F_MR;
        } else if (ea_is_flat(out)) {
            form += F_MRF - F_MR;
        }
        out->reg = op_imm(d, 1) ? 0 : op_reg_no(d, 1);
    } else if (op_mem(d, 1)) {
        form = ea_is_base(out) ? F_RMB : ea_is_flat(out) ? F_RMF : F_RM;
        out->reg = op_reg_no(d, 0);
    } else {
        form = op_imm(d, 1) ? F_RI : F_RR;
        out->rm = op_reg_no(d, 0);
        out->reg = op_imm(d, 1) ? 0 : op_reg_no(d, 1);
    }
    if (op_imm(d, 1)) {
        out->imm = d->op[1].imm.value.u;
    }
    out->opsize = (uint8_t)(1u << size);
    out->fn = table2[op][form][size];
    if (form == F_RR && size >= SZ_32 && out->rm == out->reg && (op == 5 || op == 6)) {
        out->fn = zero_r;
    }
    return true;
}

static bool alu1(Decode *d, Insn *out, unsigned op)
{
    unsigned size = op_size(d, 0);
    unsigned form = op_reg(d, 0)              ? F1_R
                    : out->flags & INSN_LOCK ? F1_LM
                    : ea_is_flat(out)        ? F1_MF
                                             : F1_M;

    if (form == F1_R) {
        out->rm = op_reg_no(d, 0);
    }
    out->opsize = (uint8_t)(1u << size);
    out->fn = table1[op][form][size];
    return true;
}

bool decode_alu(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
        return alu2(d, out, 0);
    case ZYDIS_MNEMONIC_OR:
        return alu2(d, out, 1);
    case ZYDIS_MNEMONIC_ADC:
        return alu2(d, out, 2);
    case ZYDIS_MNEMONIC_SBB:
        return alu2(d, out, 3);
    case ZYDIS_MNEMONIC_AND:
        return alu2(d, out, 4);
    case ZYDIS_MNEMONIC_SUB:
        return alu2(d, out, 5);
    case ZYDIS_MNEMONIC_XOR:
        return alu2(d, out, 6);
    case ZYDIS_MNEMONIC_CMP:
        return alu2(d, out, 7);
    case ZYDIS_MNEMONIC_TEST:
        return alu2(d, out, 8);
    case ZYDIS_MNEMONIC_INC:
        return alu1(d, out, 0);
    case ZYDIS_MNEMONIC_DEC:
        return alu1(d, out, 1);
    case ZYDIS_MNEMONIC_NEG:
        return alu1(d, out, 2);
    case ZYDIS_MNEMONIC_NOT:
        return alu1(d, out, 3);
    default:
        return false;
    }
}
