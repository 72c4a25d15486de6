/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private to the integer half of the interpreter (int_*.c, string.c): registers, flags, operand
 * access, the stack, and what their decoders share.
 *
 * Arithmetic runs the very host instruction on a host register that holds the whole guest
 * register, so merging (8 and 16 bits), zero extension (32) and undefined flags are the hardware's.
 */
#ifndef ACCEL_TCG_INT_H
#define ACCEL_TCG_INT_H

#include "accel/tcg/interp.h"
#include "accel/tcg/tlb.h"
#include "target/i386/cpuid.h"

/* ---- Flags ---- */

/* The flags in X86CPU.cc's layout are in EAX (early-clobbered output "=&a"). */
#define FLAGS_OUT "\n\tlahf\n\tseto %%al"
/* The other way round: EAX holds cc and is spoilt. OF comes from 1 + 127, the rest from SAHF. */
#define FLAGS_IN "addb $0x7f, %%al\n\tsahf\n\t"

#define CC_CF 0x100u
#define CC_PF 0x400u
#define CC_AF 0x1000u
#define CC_ZF 0x4000u
#define CC_SF 0x8000u
#define CC_OF 0x1u
#define CC_ONE 0x200u /* bit 1 of RFLAGS */

static inline void cc_set(X86CPU *c, uint32_t mask, uint32_t v)
{
    c->cc = (c->cc & ~mask) | (v & mask);
}

/* Conditions in the order of their encoding: c_o, c_no, ..., c_g. */
#define CONDITIONS(X)                                                                              \
    X(o, cc & CC_OF)                                                                               \
    X(no, !(cc & CC_OF))                                                                           \
    X(b, cc & CC_CF)                                                                               \
    X(ae, !(cc & CC_CF))                                                                           \
    X(z, cc & CC_ZF)                                                                               \
    X(nz, !(cc & CC_ZF))                                                                           \
    X(be, cc & (CC_CF | CC_ZF))                                                                    \
    X(a, !(cc & (CC_CF | CC_ZF)))                                                                  \
    X(s, cc & CC_SF)                                                                               \
    X(ns, !(cc & CC_SF))                                                                           \
    X(p, cc & CC_PF)                                                                               \
    X(np, !(cc & CC_PF))                                                                           \
    X(l, ((cc >> 15) ^ cc) & 1)                                                                    \
    X(ge, !(((cc >> 15) ^ cc) & 1))                                                                \
    X(le, (((cc >> 15) ^ cc) & 1) || (cc & CC_ZF))                                                 \
    X(g, !((((cc >> 15) ^ cc) & 1) || (cc & CC_ZF)))
#define DEFINE_CONDITION(name, expr)                                                               \
    static inline bool c_##name(uint32_t cc)                                                       \
    {                                                                                              \
        return (expr) != 0;                                                                        \
    }
CONDITIONS(DEFINE_CONDITION)
#undef DEFINE_CONDITION

/* ---- Registers. 8 bits: 16..19 are AH CH DH BH. ---- */

static inline uint8_t *reg8_ptr(X86CPU *c, unsigned r)
{
    return (uint8_t *)&c->regs[r & 15] + (r >> 4);
}
static inline uint8_t rd8(X86CPU *c, unsigned r)
{
    return *reg8_ptr(c, r);
}
/* Low bytes go in by a store of the whole register: a narrow store would stall a wide load. */
static inline void wr8(X86CPU *c, unsigned r, uint64_t v)
{
    if (likely(r < 16)) {
        c->regs[r] = (c->regs[r] & ~0xffull) | (uint8_t)v;
    } else {
        *reg8_ptr(c, r) = (uint8_t)v;
    }
}
static inline uint16_t rd16(X86CPU *c, unsigned r)
{
    return (uint16_t)c->regs[r];
}
static inline void wr16(X86CPU *c, unsigned r, uint64_t v)
{
    c->regs[r] = (c->regs[r] & ~0xffffull) | (uint16_t)v;
}
static inline uint32_t rd32(X86CPU *c, unsigned r)
{
    return (uint32_t)c->regs[r];
}
static inline void wr32(X86CPU *c, unsigned r, uint64_t v)
{
    c->regs[r] = (uint32_t)v;
}
static inline uint64_t rd64(X86CPU *c, unsigned r)
{
    return c->regs[r];
}
static inline void wr64(X86CPU *c, unsigned r, uint64_t v)
{
    c->regs[r] = v;
}

/* Sizes: X(bits, type, operand modifier, instruction suffix). */
#define SIZES_8_64(X) X(8, guest8, "b", "b") SIZES_16_64(X)
#define SIZES_16_64(X)                                                                             \
    X(16, guest16, "w", "w")                                                                      \
    X(32, guest32, "k", "l")                                                                      \
    X(64, guest64, "q", "q")

/* ---- Memory operands ---- */

/* Address in 64-bit mode without segment base and with 64-bit address size: the common case. */
static inline uint64_t ea_flat(const X86CPU *c, const Insn *i)
{
    return c->regs[i->base] + (c->regs[i->index] << i->scale) + (uint64_t)i->disp;
}
/* The same without an index. */
static inline uint64_t ea_base(const X86CPU *c, const Insn *i)
{
    return c->regs[i->base] + (uint64_t)i->disp;
}
/* The operand's address moved by delta bytes (BT with a register bit offset). */
static inline uint64_t ea_moved(X86CPU *c, const Insn *i, uint64_t delta, unsigned size, bool write)
{
    uint64_t off = tcg_ea_offset(c, i) + delta;

    off = i->asz == ASZ_64 ? off : i->asz == ASZ_32 ? (uint32_t)off : (uint16_t)off;
    if (likely(!(i->flags & (INSN_SEGCHECK | INSN_SEGBASE)))) {
        return off;
    }
    return i->flags & INSN_SEGBASE ? off + c->seg[i->seg].base
                                   : tcg_seg_check(c, i, i->seg, off, size, write);
}

static inline const TlbEntry *tlb_slot(const X86CPU *c, uint64_t lin)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];

    return likely((e[1].rtag ^ lin) & TARGET_PAGE_MASK) ? e : e + 1;
}
/*
 * Handlers of the common case look here for a host address and, finding none, begin again as the
 * general handler of the same instruction: so they call nothing and save no registers.
 */
static inline const void *ld_fast(const X86CPU *c, uint64_t lin, unsigned size)
{
    const TlbEntry *e = tlb_slot(c, lin);

    return likely(((lin + size - 1) & TARGET_PAGE_MASK) == e->rtag)
               ? tlb_host(e, lin)
               : NULL;
}
#define LD_FAST(bits, c, lin) ((const volatile guest##bits *)ld_fast(c, lin, bits / 8))

/* Host address of a read-modify-write in plain RAM without code; else NULL. */
static inline void *rmw_fast(const TlbEntry *e, uint64_t lin, unsigned size)
{
    if (likely(((lin + size - 1) & TARGET_PAGE_MASK) == e->wtag &&
               atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {
        return tlb_host(e, lin);
    }
    return NULL;
}
/* After it: the page may have got code meanwhile; see tcg_st8() and the like. */
static inline void rmw_fast_done(const TlbEntry *e, uint64_t lin, unsigned size)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(e->code_map, memory_order_relaxed) != 0)) {
        tlb_code_hit(e, lin, size);
    }
}

/* The same and NEXT, as the last thing a handler does. */
InsnFn rmw_hit_next;
#define ST_FAST_NEXT(c, i, e, lin, size)                                                           \
    do {                                                                                           \
        atomic_signal_fence(memory_order_seq_cst);                                                 \
        if (unlikely(atomic_load_explicit((e)->code_map, memory_order_relaxed) != 0)) {            \
            (c)->tcg->hit_entry = (e);                                                             \
            (c)->tcg->hit_lin = (lin);                                                             \
            (c)->tcg->hit_size = (size);                                                           \
            return rmw_hit_next(c, i);                                                             \
        }                                                                                          \
        NEXT(c, i);                                                                                \
    } while (0)

/* The slow half of a plain read-modify-write: host is NULL if it goes through begin/end. */
typedef struct RmwSlow {
    void *host;
    uint64_t lin;
} RmwSlow;
RmwSlow rmw_slow_begin(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len);
void rmw_slow_end(X86CPU *c, const Insn *i, RmwSlow s, const void *buf, unsigned len);

/* Plain read-modify-write of type at lin: v is the old value, new_value an expression of it. */
#define RMW_PLAIN(type, c, i, lin, v, new_value)                                                   \
    do {                                                                                           \
        const TlbEntry *e_ = tlb_slot(c, lin);                                                     \
        volatile type *p_ = rmw_fast(e_, lin, sizeof(type));                                       \
        if (likely(p_)) {                                                                          \
            type v = *p_;                                                                          \
            *p_ = (type)(new_value);                                                               \
            rmw_fast_done(e_, lin, sizeof(type));                                                  \
        } else {                                                                                   \
            type v;                                                                                \
            RmwSlow s_ = rmw_slow_begin(c, i, lin, &v, sizeof(type));                              \
            v = (type)(new_value);                                                                 \
            rmw_slow_end(c, i, s_, &v, sizeof(type));                                              \
        }                                                                                          \
    } while (0)
/* Locked: host_op does it with *p in place, slow_op with v. */
#define RMW_LOCKED(type, c, i, lin, p, v, host_op, slow_op)                                        \
    do {                                                                                           \
        const TlbEntry *e_ = tlb_slot(c, lin);                                                     \
        type *p = rmw_fast(e_, lin, sizeof(type));                                                 \
        if (likely(p)) {                                                                           \
            host_op;                                                                               \
            rmw_fast_done(e_, lin, sizeof(type));                                                  \
        } else if ((p = tcg_rmw_host(c, i, lin, sizeof(type)))) {                                  \
            host_op;                                                                               \
            tcg_rmw_done(c);                                                                       \
        } else {                                                                                   \
            type v;                                                                                \
            tcg_rmw_begin(c, i, lin, &v, sizeof(type));                                            \
            slow_op;                                                                               \
            tcg_rmw_end(c, i, lin, &v, sizeof(type));                                              \
        }                                                                                          \
    } while (0)

/* ---- The stack ---- */

static inline bool in_code64(const X86CPU *c)
{
    return (c->tcg->mode_key & MODE_CS64) != 0;
}
static inline uint64_t sp_mask(const X86CPU *c)
{
    uint32_t key = c->tcg->mode_key;

    return key & MODE_CS64 ? UINT64_MAX : key & MODE_SS32 ? UINT32_MAX : UINT16_MAX;
}
static inline void sp_set(X86CPU *c, uint64_t mask, uint64_t v)
{
    if (mask == UINT16_MAX) {
        wr16(c, R_RSP, v);
    } else {
        c->regs[R_RSP] = v & mask;
    }
}
/* Linear address of size bytes at offset off in SS; the stack's faults are #SS(0). */
uint64_t stack_linear(X86CPU *c, const Insn *i, uint64_t off, unsigned size, bool write);
/* Value at SS:off, 2, 4 or 8 bytes. */
uint64_t stack_load(X86CPU *c, const Insn *i, uint64_t off, unsigned size);
void stack_store(X86CPU *c, const Insn *i, uint64_t off, uint64_t v, unsigned size);
/* Whole pushes and pops for the rare forms. pop_peek leaves RSP; *next is RSP after it. */
void int_push(X86CPU *c, const Insn *i, uint64_t v, unsigned size);
uint64_t stack_pop_peek(X86CPU *c, const Insn *i, unsigned size, uint64_t *next);

/* ---- Decoding ---- */

enum { SZ_8, SZ_16, SZ_32, SZ_64, SZ_COUNT };

static inline bool op_reg(const Decode *d, unsigned n)
{
    return d->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER;
}
static inline bool op_mem(const Decode *d, unsigned n)
{
    return d->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY;
}
static inline bool op_imm(const Decode *d, unsigned n)
{
    return d->op[n].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}
/* Register number; the high bytes are 16..19. */
uint8_t op_reg_no(const Decode *d, unsigned n);
/* Is it a general register? (MOV also moves segments, control and debug registers.) */
bool op_gpr(const Decode *d, unsigned n);
static inline unsigned op_size(const Decode *d, unsigned n)
{
    unsigned bits = d->op[n].size;

    return bits == 8 ? SZ_8 : bits == 16 ? SZ_16 : bits == 32 ? SZ_32 : SZ_64;
}
static inline bool ea_is_flat(const Insn *out)
{
    return out->asz == ASZ_64 && !(out->flags & (INSN_SEGCHECK | INSN_SEGBASE));
}
static inline bool ea_is_base(const Insn *out)
{
    return ea_is_flat(out) && out->index == R_ZERO;
}
static inline uint32_t decode_mode(const Decode *d)
{
    return d->c->tcg->mode_key;
}
/* Operand size of the instruction in bytes as its prefixes say: 2, 4 or 8. */
static inline unsigned op_width(const Decode *d)
{
    return d->zi.operand_width / 8;
}

/* Shares of decode_integer(), each for its own file; the same contract. */
DecodeFn decode_alu, decode_mov, decode_shift, decode_bit, decode_mul, decode_flow, decode_stack,
    decode_misc;

#endif
