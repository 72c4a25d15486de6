/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CMPXCHG CMPXCHG8B CMPXCHG16B XADD, BOUND, RDRAND RDSEED, hints, fences, cache-line operations;
 * and what the integer files share.
 */
#include <string.h>
#include "accel/tcg/int.h"

/* ---- Shared by int_*.c ---- */

void rmw_hit_next(X86CPU *c, const Insn *i)
{
    const TlbEntry *e = c->tcg->hit_entry;

    tlb_code_hit(e, c->tcg->hit_lin, c->tcg->hit_size);
    NEXT(c, i);
}

RmwSlow rmw_slow_begin(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len)
{
    RmwSlow s = { .host = tcg_rmw_host(c, i, lin, len), .lin = lin };

    if (s.host) {
        memcpy(buf, s.host, len);
    } else {
        tcg_rmw_begin(c, i, lin, buf, len);
    }
    return s;
}

void rmw_slow_end(X86CPU *c, const Insn *i, RmwSlow s, const void *buf, unsigned len)
{
    if (s.host) {
        memcpy(s.host, buf, len);
        tcg_rmw_done(c);
    } else {
        tcg_rmw_end(c, i, s.lin, buf, len);
    }
}

bool op_gpr(const Decode *d, unsigned n)
{
    switch (ZydisRegisterGetClass(d->op[n].reg.value)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        return op_reg(d, n);
    default:
        return false;
    }
}

uint8_t op_reg_no(const Decode *d, unsigned n)
{
    ZydisRegister r = d->op[n].reg.value;

    if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL) {
        return (uint8_t)(r - ZYDIS_REGISTER_AL);
    }
    if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH) {
        return (uint8_t)(16 + r - ZYDIS_REGISTER_AH);
    }
    if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_R15B) {
        return (uint8_t)(4 + r - ZYDIS_REGISTER_SPL);
    }
    return (uint8_t)ZydisRegisterGetId(r);
}

/* ---- CMPXCHG ---- */

/* In place; RAX and flags as the host leaves them, so 32-bit success keeps RAX's upper half. */
#define DEFINE_CMPXCHG(bits, type, mod, sfx)                                                       \
    static inline void cmpxchg_host##bits(X86CPU *c, type *p, uint64_t v)                          \
    {                                                                                              \
        uint64_t a = c->regs[R_RAX];                                                               \
        uint32_t f;                                                                                \
        __asm__ volatile("mov %0, %%rax\n\tlock cmpxchg %" mod "3, %2\n\tmov %%rax, %0" FLAGS_OUT  \
                         : "+&r"(a), "=&a"(f), "+m"(*p)                                            \
                         : "r"(v)                                                                  \
                         : "memory");                                                              \
        c->regs[R_RAX] = a;                                                                        \
        c->cc = f;                                                                                 \
    }                                                                                              \
    static void cmpxchg_m##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        uint64_t b = rd##bits(c, i->reg);                                                          \
        RMW_LOCKED(type, c, i, lin, p, v, cmpxchg_host##bits(c, p, b),                             \
                   cmpxchg_host##bits(c, &v, b));                                                  \
        NEXT(c, i);                                                                                \
    }
SIZES_8_64(DEFINE_CMPXCHG)

/* Between registers, whole ones: what happens to the destination's upper half is the host's. */
#define DEFINE_CMPXCHG_R(bits, type, mod, sfx)                                                     \
    static void cmpxchg_r##bits(X86CPU *c, const Insn *i)                                          \
    {                                                                                              \
        uint64_t a = c->regs[R_RAX], v = c->regs[i->rm];                                           \
        uint32_t f;                                                                                \
        __asm__("mov %0, %%rax\n\tcmpxchg %" mod "3, %" mod "2\n\tmov %%rax, %0" FLAGS_OUT         \
                : "+&r"(a), "=&a"(f), "+&r"(v)                                                     \
                : "r"(c->regs[i->reg]));                                                           \
        c->regs[R_RAX] = a;                                                                        \
        c->regs[i->rm] = v;                                                                        \
        c->cc = f;                                                                                 \
        NEXT(c, i);                                                                                \
    }
DEFINE_CMPXCHG_R(16, uint16_t, "w", "w")
DEFINE_CMPXCHG_R(32, uint32_t, "k", "l")
DEFINE_CMPXCHG_R(64, uint64_t, "q", "q")
static void cmpxchg_r8(X86CPU *c, const Insn *i)
{
    uint8_t v = rd8(c, i->rm), b = rd8(c, i->reg);

    cmpxchg_host8(c, &v, b);
    wr8(c, i->rm, v);
    NEXT(c, i);
}

/* ---- XADD ---- */

#define DEFINE_XADD(bits, type, mod, sfx)                                                          \
    static inline type xadd_host##bits(X86CPU *c, type *p, type v)                                 \
    {                                                                                              \
        uint32_t f;                                                                                \
        __asm__ volatile("lock xadd %" mod "0, %2" FLAGS_OUT                                       \
                         : "+r"(v), "=&a"(f), "+m"(*p)                                             \
                         :                                                                         \
                         : "memory");                                                              \
        c->cc = f;                                                                                 \
        return v;                                                                                  \
    }                                                                                              \
    static void xadd_m##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        uint64_t lin = tcg_ea(c, i, bits / 8, true);                                               \
        type old, b = rd##bits(c, i->reg);                                                         \
        RMW_LOCKED(type, c, i, lin, p, v, old = xadd_host##bits(c, p, b),                          \
                   old = xadd_host##bits(c, &v, b));                                               \
        wr##bits(c, i->reg, old);                                                                  \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void xadd_r##bits(X86CPU *c, const Insn *i)                                             \
    {                                                                                              \
        type v = rd##bits(c, i->rm);                                                               \
        type old = xadd_host##bits(c, &v, rd##bits(c, i->reg));                                    \
        wr##bits(c, i->reg, old);                                                                  \
        wr##bits(c, i->rm, v);                                                                     \
        NEXT(c, i);                                                                                \
    }
SIZES_8_64(DEFINE_XADD)

#define ROW(name)                                                                                  \
    {                                                                                              \
        name##8, name##16, name##32, name##64                                                      \
    }

static bool decode_exchange(Decode *d, Insn *out, bool add)
{
    static InsnFn *const table[2][2][SZ_COUNT] = {
        { ROW(cmpxchg_r), ROW(cmpxchg_m) },
        { ROW(xadd_r), ROW(xadd_m) },
    };

    out->reg = op_reg_no(d, 1);
    out->rm = op_mem(d, 0) ? 0 : op_reg_no(d, 0);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = table[add][op_mem(d, 0)][op_size(d, 0)];
    return true;
}

/* ---- CMPXCHG8B, CMPXCHG16B: ZF is the only flag ---- */

#define DEFINE_CMPXCHG_PAIR(name, insn, type, wr)                                                  \
    static inline void name##_host(X86CPU *c, type *p)                                             \
    {                                                                                              \
        uint64_t lo = c->regs[R_RAX], hi = c->regs[R_RDX];                                         \
        bool equal;                                                                                \
        __asm__ volatile("lock " insn " %1\n\tsete %0"                                             \
                         : "=q"(equal), "+m"(*p), "+a"(lo), "+d"(hi)                               \
                         : "b"(c->regs[R_RBX]), "c"(c->regs[R_RCX])                                \
                         : "memory");                                                              \
        if (!equal) {                                                                              \
            wr(c, R_RAX, lo);                                                                      \
            wr(c, R_RDX, hi);                                                                      \
        }                                                                                          \
        cc_set(c, CC_ZF, equal ? CC_ZF : 0);                                                       \
    }
typedef unsigned __int128 Uint128 QEMU_ALIGNED(16);
DEFINE_CMPXCHG_PAIR(cmpxchg8b, "cmpxchg8b", guest64, wr32)
DEFINE_CMPXCHG_PAIR(cmpxchg16b, "cmpxchg16b", Uint128, wr64)

static void cmpxchg8b(X86CPU *c, const Insn *i)
{
    uint64_t lin = tcg_ea(c, i, 8, true);

    RMW_LOCKED(guest64, c, i, lin, p, v, cmpxchg8b_host(c, p), cmpxchg8b_host(c, &v));
    NEXT(c, i);
}
static void cmpxchg16b(X86CPU *c, const Insn *i)
{
    uint64_t lin = tcg_ea(c, i, 16, true);

    if (lin & 15) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    RMW_LOCKED(Uint128, c, i, lin, p, v, cmpxchg16b_host(c, p), cmpxchg16b_host(c, &v));
    NEXT(c, i);
}

/* ---- BOUND ---- */

static void bound(X86CPU *c, const Insn *i)
{
    unsigned n = i->opsize;
    uint64_t lin = tcg_ea(c, i, 2 * n, false);
    int32_t lo, hi, v;

    if (n == 2) {
        v = (int16_t)rd16(c, i->reg);
        lo = (int16_t)tcg_ld16(c, i, lin);
        hi = (int16_t)tcg_ld16(c, i, lin + 2);
    } else {
        v = (int32_t)rd32(c, i->reg);
        lo = (int32_t)tcg_ld32(c, i, lin);
        hi = (int32_t)tcg_ld32(c, i, lin + 4);
    }
    if (v < lo || v > hi) {
        tcg_raise(c, i, EXCP_BR);
    }
    NEXT(c, i);
}

/* ---- Random numbers: the host's, or -seed's; CF tells success, the other flags are 0 ---- */

/* SplitMix64. */
static uint64_t random_fixed(X86CPU *c)
{
    uint64_t v = c->tcg->random += 0x9e3779b97f4a7c15ull;

    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ v >> 27) * 0x94d049bb133111ebull;
    return v ^ v >> 31;
}

#define DEFINE_RANDOM(name, bits, mod)                                                             \
    static void name##bits(X86CPU *c, const Insn *i)                                               \
    {                                                                                              \
        uint64_t v = c->regs[i->rm];                                                               \
        uint32_t f;                                                                                \
        if (unlikely(c->tcg->random_fixed)) {                                                      \
            wr##bits(c, i->rm, random_fixed(c));                                                   \
            c->cc = CC_CF | CC_ONE;                                                                \
            NEXT(c, i);                                                                            \
        }                                                                                          \
        __asm__ volatile(#name " %" mod "0" FLAGS_OUT : "+r"(v), "=&a"(f));                        \
        c->regs[i->rm] = v;                                                                        \
        c->cc = f;                                                                                 \
        NEXT(c, i);                                                                                \
    }
DEFINE_RANDOM(rdrand, 16, "w")
DEFINE_RANDOM(rdrand, 32, "k")
DEFINE_RANDOM(rdrand, 64, "q")
DEFINE_RANDOM(rdseed, 16, "w")
DEFINE_RANDOM(rdseed, 32, "k")
DEFINE_RANDOM(rdseed, 64, "q")

static bool decode_random(Decode *d, Insn *out)
{
    static InsnFn *const rand[SZ_COUNT] = { NULL, rdrand16, rdrand32, rdrand64 };
    static InsnFn *const seed[SZ_COUNT] = { NULL, rdseed16, rdseed32, rdseed64 };
    bool is_rand = d->zi.mnemonic == ZYDIS_MNEMONIC_RDRAND;

    if (is_rand ? !x86_has(d->c, FEAT_1_ECX, CPUID_1_ECX_RDRAND)
                : !x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_RDSEED)) {
        return false;
    }
    out->rm = op_reg_no(d, 0);
    out->opsize = (uint8_t)(1u << op_size(d, 0));
    out->fn = (is_rand ? rand : seed)[op_size(d, 0)];
    return true;
}

/* ---- Hints and fences ---- */

static void nop(X86CPU *c, const Insn *i)
{
    NEXT(c, i);
}
/* The host keeps loads and stores in the same order as the guest's processor; only a store must
 * not pass behind a later load. */
static void mfence(X86CPU *c, const Insn *i)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    NEXT(c, i);
}
/* CLFLUSH and its kin have no effect but their faults, those of a load. */
static void clflush(X86CPU *c, const Insn *i)
{
    tcg_probe_read(c, i, tcg_ea(c, i, 1, false), 1);
    NEXT(c, i);
}

static InsnFn *hint_handler(const Decode *d)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_PREFETCHWT1:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
        return nop;
    case ZYDIS_MNEMONIC_MFENCE:
        return mfence;
    case ZYDIS_MNEMONIC_CLFLUSH:
        return x86_has(d->c, FEAT_1_EDX, CPUID_1_EDX_CLFLUSH) ? clflush : NULL;
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
        return x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_CLFLUSHOPT) ? clflush : NULL;
    case ZYDIS_MNEMONIC_CLWB:
        return x86_has(d->c, FEAT_7_0_EBX, CPUID_7_0_EBX_CLWB) ? clflush : NULL;
    default:
        return NULL;
    }
}

bool decode_misc(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_CMPXCHG:
        return decode_exchange(d, out, false);
    case ZYDIS_MNEMONIC_XADD:
        return decode_exchange(d, out, true);
    case ZYDIS_MNEMONIC_CMPXCHG8B:
        out->fn = x86_has(d->c, FEAT_1_EDX, CPUID_1_EDX_CX8) ? cmpxchg8b : NULL;
        return out->fn != NULL;
    case ZYDIS_MNEMONIC_CMPXCHG16B:
        out->fn = x86_has(d->c, FEAT_1_ECX, CPUID_1_ECX_CX16) ? cmpxchg16b : NULL;
        return out->fn != NULL;
    case ZYDIS_MNEMONIC_BOUND:
        out->reg = op_reg_no(d, 0);
        out->opsize = (uint8_t)op_width(d);
        out->fn = bound;
        return true;
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
        return decode_random(d, out);
    default:
        out->fn = hint_handler(d);
        return out->fn != NULL;
    }
}

bool decode_integer(Decode *d, Insn *out)
{
    return decode_alu(d, out) || decode_mov(d, out) || decode_flow(d, out) ||
           decode_stack(d, out) || decode_shift(d, out) || decode_bit(d, out) ||
           decode_mul(d, out) || decode_misc(d, out);
}
