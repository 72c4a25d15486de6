/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bits: BT BTS BTR BTC, BSF BSR TZCNT LZCNT POPCNT, BMI1, BZHI PDEP PEXT, ADCX ADOX, CRC32.
 */
#include "accel/tcg/int.h"

/* ---- BT and its kin ---- */

#define DEFINE_BT(name, bits, mod)                                                                 \
    static inline uint64_t name##bits(X86CPU *c, uint64_t v, uint64_t n)                           \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__(FLAGS_IN #name " %" mod "2, %" mod "0" FLAGS_OUT                                   \
                : "+r"(v), "+a"(f)                                                                 \
                : "r"(n & (bits - 1)));                                                            \
        c->cc = f;                                                                                 \
        return v;                                                                                  \
    }
#define DEFINE_LOCK_BT(name, bits, type, mod)                                                      \
    static inline void lock_##name##bits(X86CPU *c, type *p, uint64_t n)                           \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__ volatile(FLAGS_IN "lock " #name " %" mod "2, %0" FLAGS_OUT                         \
                         : "+m"(*p), "+a"(f)                                                       \
                         : "r"(n & (bits - 1))                                                     \
                         : "memory");                                                              \
        c->cc = f;                                                                                 \
    }

/* A register offset reaches beyond the operand: whole units of the operand size away. */
#define BT_DELTA(bits, n)                                                                          \
    ((uint64_t)((int##bits##_t)(n) >> (bits == 16 ? 4 : bits == 32 ? 5 : 6)) * (bits / 8))

#define BT_REG_FORMS(name, bits)                                                                   \
    static void name##_rr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        wr##bits(c, i->rm, name##bits(c, c->regs[i->rm], c->regs[i->reg]));                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_ri##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        wr##bits(c, i->rm, name##bits(c, c->regs[i->rm], i->imm));                                 \
        NEXT(c, i);                                                                                \
    }
#define BT_MEM_FORMS(name, bits, type)                                                             \
    static void name##_mr##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t n = c->regs[i->reg];                                                              \
        uint64_t lin = ea_moved(c, i, BT_DELTA(bits, n), bits / 8, true);                          \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, n));                                        \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_mi##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_PLAIN(type, c, i, lin, v, name##bits(c, v, i->imm));                                   \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_lmr##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        uint64_t n = c->regs[i->reg];                                                              \
        uint64_t lin = ea_moved(c, i, BT_DELTA(bits, n), bits / 8, true);                          \
        RMW_LOCKED(type, c, i, lin, p, v, lock_##name##bits(c, p, n),                              \
                   v = (type)name##bits(c, v, n));                                                 \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_lmi##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        RMW_LOCKED(type, c, i, lin, p, v, lock_##name##bits(c, p, i->imm),                         \
                   v = (type)name##bits(c, v, i->imm));                                            \
        NEXT(c, i);                                                                                \
    }
#define BT_SIZE(bits, type, mod, sfx)                                                              \
    DEFINE_BT(bt, bits, mod)                                                                       \
    DEFINE_BT(bts, bits, mod)                                                                      \
    DEFINE_BT(btr, bits, mod)                                                                      \
    DEFINE_BT(btc, bits, mod)                                                                      \
    DEFINE_LOCK_BT(bts, bits, type, mod)                                                           \
    DEFINE_LOCK_BT(btr, bits, type, mod)                                                           \
    DEFINE_LOCK_BT(btc, bits, type, mod)                                                           \
    BT_REG_FORMS(bts, bits)                                                                        \
    BT_REG_FORMS(btr, bits)                                                                        \
    BT_REG_FORMS(btc, bits)                                                                        \
    BT_MEM_FORMS(bts, bits, type)                                                                  \
    BT_MEM_FORMS(btr, bits, type)                                                                  \
    BT_MEM_FORMS(btc, bits, type)                                                                  \
    static void bt_rr##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        bt##bits(c, c->regs[i->rm], c->regs[i->reg]);                                              \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void bt_ri##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        bt##bits(c, c->regs[i->rm], i->imm);                                                       \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void bt_mr##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        uint64_t n = c->regs[i->reg];                                                              \
        uint64_t lin = ea_moved(c, i, BT_DELTA(bits, n), bits / 8, false);                         \
        bt##bits(c, tcg_ld##bits(c, i, lin), n);                                                   \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void bt_mi##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        bt##bits(c, tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false)), i->imm);                    \
        NEXT(c, i);                                                                                \
    }
SIZES_16_64(BT_SIZE)

enum { B_RR, B_RI, B_MR, B_MI, B_LMR, B_LMI, B_COUNT };
#define ROW(name, form)                                                                            \
    {                                                                                              \
        NULL, name##_##form##16, name##_##form##32, name##_##form##64                              \
    }
#define BT_ROWS(name)                                                                              \
    {                                                                                              \
        ROW(name, rr), ROW(name, ri), ROW(name, mr), ROW(name, mi), ROW(name, lmr), ROW(name, lmi) \
    }
static InsnFn *const bt_table[4][B_COUNT][SZ_COUNT] = {
    { ROW(bt, rr), ROW(bt, ri), ROW(bt, mr), ROW(bt, mi) },
    BT_ROWS(bts),
    BT_ROWS(btr),
    BT_ROWS(btc),
};

static bool decode_bt(Decode *d, Insn *out, unsigned op)
{
    unsigned form = op_mem(d, 0) ? B_MR : B_RR;

    if (op_mem(d, 0) && (out->flags & INSN_LOCK)) {
        form = B_LMR;
    }
    if (op_imm(d, 1)) {
        form++;
        out->imm = d->op[1].imm.value.u;
    } else {
        out->reg = op_reg_no(d, 1);
    }
    out->rm = op_mem(d, 0) ? 0 : op_reg_no(d, 0);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = bt_table[op][form][op_size(d, 0)];
    return true;
}

/* ---- One source, one destination, flags ---- */

/* dst goes in too: BSF and BSR of 0 leave it. */
#define DEFINE_SCAN(name, bits, type, mod)                                                         \
    static inline uint64_t name##bits(X86CPU *c, uint64_t dst, uint64_t src)                       \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        __asm__(FLAGS_IN #name " %" mod "2, %" mod "0" FLAGS_OUT                                   \
                : "+r"(dst), "+a"(f)                                                               \
                : "r"(src));                                                                       \
        c->cc = f;                                                                                 \
        return dst;                                                                                \
    }                                                                                              \
    static void name##_r##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        c->regs[i->reg] = name##bits(c, c->regs[i->reg], c->regs[i->rm]);                          \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_m##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        uint64_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        c->regs[i->reg] = name##bits(c, c->regs[i->reg], v);                                       \
        NEXT(c, i);                                                                                \
    }
#define SCAN_SIZE(bits, type, mod, sfx)                                                            \
    DEFINE_SCAN(bsf, bits, type, mod)                                                              \
    DEFINE_SCAN(bsr, bits, type, mod)                                                              \
    DEFINE_SCAN(tzcnt, bits, type, mod)                                                            \
    DEFINE_SCAN(lzcnt, bits, type, mod)                                                            \
    DEFINE_SCAN(popcnt, bits, type, mod)
SIZES_16_64(SCAN_SIZE)
#define SCAN_WIDE(bits, type, mod)                                                                 \
    DEFINE_SCAN(blsi, bits, type, mod)                                                             \
    DEFINE_SCAN(blsmsk, bits, type, mod)                                                           \
    DEFINE_SCAN(blsr, bits, type, mod)                                                             \
    DEFINE_SCAN(adcx, bits, type, mod)                                                             \
    DEFINE_SCAN(adox, bits, type, mod)
SCAN_WIDE(32, uint32_t, "k")
SCAN_WIDE(64, uint64_t, "q")

#define SCAN_ROWS(name)                                                                            \
    {                                                                                              \
        { NULL, name##_r16, name##_r32, name##_r64 },                                              \
        {                                                                                          \
            NULL, name##_m16, name##_m32, name##_m64                                               \
        }                                                                                          \
    }
#define WIDE_ROWS(name)                                                                            \
    {                                                                                              \
        { NULL, NULL, name##_r32, name##_r64 },                                                    \
        {                                                                                          \
            NULL, NULL, name##_m32, name##_m64                                                     \
        }                                                                                          \
    }
enum {
    SC_BSF, SC_BSR, SC_TZCNT, SC_LZCNT, SC_POPCNT, SC_BLSI, SC_BLSMSK, SC_BLSR, SC_ADCX, SC_ADOX,
};
static InsnFn *const scan_table[][2][SZ_COUNT] = {
    SCAN_ROWS(bsf),    SCAN_ROWS(bsr),    SCAN_ROWS(tzcnt), SCAN_ROWS(lzcnt), SCAN_ROWS(popcnt),
    WIDE_ROWS(blsi),   WIDE_ROWS(blsmsk), WIDE_ROWS(blsr),  WIDE_ROWS(adcx),  WIDE_ROWS(adox),
};

static bool decode_scan(Decode *d, Insn *out, unsigned op)
{
    out->reg = op_reg_no(d, 0);
    out->rm = op_mem(d, 1) ? 0 : op_reg_no(d, 1);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = scan_table[op][op_mem(d, 1)][op_size(d, 0)];
    return true;
}

/* ---- Three operands: dst, src1 (register or memory), src2; in Insn: reg, rm, vvvv ---- */

/* Order of the assembler's operands: swapped puts src1 (may be memory) first in AT&T syntax. */
#define DEFINE_OP3(name, bits, mod, a, b)                                                          \
    static inline uint64_t name##bits(X86CPU *c, uint64_t rm, uint64_t vvvv)                       \
    {                                                                                              \
        uint32_t f = c->cc;                                                                        \
        uint64_t dst;                                                                              \
        __asm__(FLAGS_IN #name " %" mod "3, %" mod "2, %" mod "1" FLAGS_OUT                        \
                : "+a"(f), "=r"(dst)                                                               \
                : "r"(b), "r"(a));                                                                 \
        c->cc = f;                                                                                 \
        return dst;                                                                                \
    }                                                                                              \
    static void name##_r##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        c->regs[i->reg] = name##bits(c, c->regs[i->rm], c->regs[i->vvvv]);                         \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void name##_m##bits(X86CPU *c, const Insn *i)                                           \
    {                                                                                              \
        uint64_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        c->regs[i->reg] = name##bits(c, v, c->regs[i->vvvv]);                                      \
        NEXT(c, i);                                                                                \
    }
#define OP3_SIZE(bits, mod)                                                                        \
    DEFINE_OP3(andn, bits, mod, rm, vvvv)                                                          \
    DEFINE_OP3(pdep, bits, mod, rm, vvvv)                                                          \
    DEFINE_OP3(pext, bits, mod, rm, vvvv)                                                          \
    DEFINE_OP3(bextr, bits, mod, vvvv, rm)                                                         \
    DEFINE_OP3(bzhi, bits, mod, vvvv, rm)
OP3_SIZE(32, "k")
OP3_SIZE(64, "q")

enum { O3_ANDN, O3_PDEP, O3_PEXT, O3_BEXTR, O3_BZHI };
static InsnFn *const op3_table[][2][SZ_COUNT] = {
    WIDE_ROWS(andn), WIDE_ROWS(pdep), WIDE_ROWS(pext), WIDE_ROWS(bextr), WIDE_ROWS(bzhi),
};

static bool decode_op3(Decode *d, Insn *out, unsigned op, bool rm_last)
{
    unsigned rm = rm_last ? 2 : 1, vvvv = rm_last ? 1 : 2;

    out->reg = op_reg_no(d, 0);
    out->rm = op_mem(d, rm) ? 0 : op_reg_no(d, rm);
    out->vvvv = op_reg_no(d, vvvv);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = op3_table[op][op_mem(d, rm)][op_size(d, 0)];
    return true;
}

/* ---- CRC32 ---- */

#define DEFINE_CRC(bits, insn, mod)                                                                \
    static inline uint64_t crc##bits(uint64_t crc, uint64_t v)                                     \
    {                                                                                              \
        __asm__(insn : "+r"(crc) : "r"(v));                                                        \
        return (uint32_t)crc;                                                                      \
    }
DEFINE_CRC(8, "crc32b %b1, %k0", "b")
DEFINE_CRC(16, "crc32w %w1, %k0", "w")
DEFINE_CRC(32, "crc32l %k1, %k0", "k")
DEFINE_CRC(64, "crc32q %q1, %q0", "q")
#define CRC_FORMS(bits, type, mod, sfx)                                                            \
    static void crc_r##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        c->regs[i->reg] = crc##bits((uint32_t)c->regs[i->reg], rd##bits(c, i->rm));                \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void crc_m##bits(X86CPU *c, const Insn *i)                                              \
    {                                                                                              \
        uint64_t v = tcg_ld##bits(c, i, tcg_ea(c, i, bits / 8, false));                            \
        c->regs[i->reg] = crc##bits((uint32_t)c->regs[i->reg], v);                                 \
        NEXT(c, i);                                                                                \
    }
SIZES_8_64(CRC_FORMS)

static bool decode_crc(Decode *d, Insn *out)
{
    static InsnFn *const table[2][SZ_COUNT] = {
        { crc_r8, crc_r16, crc_r32, crc_r64 },
        { crc_m8, crc_m16, crc_m32, crc_m64 },
    };

    out->reg = op_reg_no(d, 0);
    out->rm = op_mem(d, 1) ? 0 : op_reg_no(d, 1);
    out->opsize = (uint8_t)(1u << op_size(d, 1));
    out->fn = table[op_mem(d, 1)][op_size(d, 1)];
    return true;
}

/* ---- Decoding ---- */

static bool decode_bmi(Decode *d, Insn *out)
{
    bool bmi1 = x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI1);
    bool bmi2 = x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI2);
    bool adx = x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_ADX);

    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_ANDN:
        return bmi1 && decode_op3(d, out, O3_ANDN, true);
    case ZYDIS_MNEMONIC_BEXTR:
        /* TBM's form has an immediate. */
        return bmi1 && !op_imm(d, 2) && decode_op3(d, out, O3_BEXTR, false);
    case ZYDIS_MNEMONIC_BLSI:
        return bmi1 && decode_scan(d, out, SC_BLSI);
    case ZYDIS_MNEMONIC_BLSMSK:
        return bmi1 && decode_scan(d, out, SC_BLSMSK);
    case ZYDIS_MNEMONIC_BLSR:
        return bmi1 && decode_scan(d, out, SC_BLSR);
    case ZYDIS_MNEMONIC_BZHI:
        return bmi2 && decode_op3(d, out, O3_BZHI, false);
    case ZYDIS_MNEMONIC_PDEP:
        return bmi2 && decode_op3(d, out, O3_PDEP, true);
    case ZYDIS_MNEMONIC_PEXT:
        return bmi2 && decode_op3(d, out, O3_PEXT, true);
    case ZYDIS_MNEMONIC_ADCX:
        return adx && decode_scan(d, out, SC_ADCX);
    case ZYDIS_MNEMONIC_ADOX:
        return adx && decode_scan(d, out, SC_ADOX);
    default:
        return false;
    }
}

bool decode_bit(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_BT:
        return decode_bt(d, out, 0);
    case ZYDIS_MNEMONIC_BTS:
        return decode_bt(d, out, 1);
    case ZYDIS_MNEMONIC_BTR:
        return decode_bt(d, out, 2);
    case ZYDIS_MNEMONIC_BTC:
        return decode_bt(d, out, 3);
    case ZYDIS_MNEMONIC_BSF:
        return decode_scan(d, out, SC_BSF);
    case ZYDIS_MNEMONIC_BSR:
        return decode_scan(d, out, SC_BSR);
    case ZYDIS_MNEMONIC_TZCNT: /* decoded as BSF and BSR without the feature */
        return decode_scan(d, out, SC_TZCNT);
    case ZYDIS_MNEMONIC_LZCNT:
        return decode_scan(d, out, SC_LZCNT);
    case ZYDIS_MNEMONIC_POPCNT:
        return x86_has(d->c, FEAT_1_ECX, CPUID_1_ECX_POPCNT) && decode_scan(d, out, SC_POPCNT);
    case ZYDIS_MNEMONIC_CRC32:
        return x86_has(d->c, FEAT_1_ECX, CPUID_1_ECX_SSE42) && decode_crc(d, out);
    default:
        return decode_bmi(d, out);
    }
}
