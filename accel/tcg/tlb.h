/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The per-vCPU TLB and the inline halves of guest memory access. Only the vCPU's own thread reads
 * or writes its TLB. Tags are page addresses, tlb_tag_slow() or tlb_tag_none(). A write tag is valid only if the PTE
 * is dirty and the page is writable RAM; whether the page holds code is asked at each store
 * (code_map), see docs/devel/memory.md for why that needs no fence here.
 */
#ifndef ACCEL_TCG_TLB_H
#define ACCEL_TCG_TLB_H

#include "accel/tcg/interp.h"

#define TLB_BITS    13
#define TLB_ENTRIES (1u << TLB_BITS)
/*
 * Two entries a page may be in, side by side in one cache line. Fast paths look into the first; what is
 * filled goes there, and what was there becomes the second.
 */
#define TLB_SETS (TLB_ENTRIES / 2)
/* Number of the first entry for a page. */
#define TLB_INDEX(lin) ((unsigned)((lin) >> TARGET_PAGE_BITS) % TLB_SETS * 2)
/*
 * Bits of a tag that is not a page's address. Translated code looks whether an access is less than a page behind a
 * tag, so such a tag also names a page that, like the one behind it, belongs in another set.
 */
#define TLB_INVALID 1ull
/* The access is allowed, but only the slow half may make it (MMIO, ROM, data breakpoint). */
#define TLB_SLOW    2ull

/* Supervisor accesses with SMAP in force, supervisor with EFLAGS.AC (or SMAP off), user. */
enum { TLB_KERNEL, TLB_KERNEL_AC, TLB_USER, TLB_MODES };

/* What fast paths read: 32 bytes, as every access of the guest touches one of these. */
typedef struct TlbEntry {
    uint64_t rtag, wtag;
    uintptr_t host;             /* address of the page on the host */
    _Atomic uint64_t *code_map; /* of this page; RAM only */
} TlbEntry;

/* The rest of an entry. */
typedef struct TlbMore {
    uint64_t xtag;
    hwaddr phys;                /* page address */
    RAMBlock *rb;
    uint32_t flags;             /* private to mmu.c: global, PCID, page size */
    uint32_t pad;
} TlbMore;

typedef struct TlbTable {
    TlbEntry e[TLB_ENTRIES];
    TlbMore more[TLB_ENTRIES];
} TlbTable;

/* e is an entry of a TlbTable. */
static inline TlbMore *tlb_more(const TlbEntry *e)
{
    return (TlbMore *)((uintptr_t)e + offsetof(TlbTable, more));
}
_Static_assert(sizeof(TlbEntry) == sizeof(TlbMore), "tlb_more() adds a constant");

static inline uint8_t *tlb_host(const TlbEntry *e, uint64_t lin)
{
    return (uint8_t *)(e->host + (lin & ~TARGET_PAGE_MASK));
}

static inline uint64_t tlb_tag_slow(uint64_t page)
{
    return (page ^ 2 * TARGET_PAGE_SIZE) | TLB_SLOW;
}
/* What is in e, of a TlbTable, if nothing is. */
static inline uint64_t tlb_tag_none(const TlbEntry *e)
{
    bool second = (uintptr_t)e / (2 * sizeof(TlbEntry)) & 2;

    return (second ? 0 : 2 * TARGET_PAGE_SIZE) | TLB_INVALID;
}
static inline bool tlb_tag_is_none(uint64_t tag)
{
    return (tag & TLB_INVALID) != 0;
}
/* The page of a tag; TLB_INVALID: none. */
static inline uint64_t tlb_tag_page(uint64_t tag)
{
    return tag & TLB_INVALID ? TLB_INVALID : tag & TLB_SLOW ? (tag ^ 2 * TARGET_PAGE_SIZE) & TARGET_PAGE_MASK : tag;
}

/* Of the two entries at e, the one to fetch from. */
static inline const TlbEntry *tlb_exec_slot(const TlbEntry *e, uint64_t lin)
{
    return likely(tlb_more(e)->xtag == (lin & TARGET_PAGE_MASK)) ? e : e + 1;
}

/* size bytes at lin, in e's page, were stored, and there is code in the page. */
static inline void tlb_code_hit(const TlbEntry *e, uint64_t lin, unsigned size)
{
    RAMBlock *rb = tlb_more(e)->rb;

    ram_block_code_hit(rb, (uint64_t)(tlb_host(e, lin) - rb->host), size);
}

/* Why the interpreter was left by siglongjmp(tcg->jmp, ...). */
enum { TCG_JMP_RAISE = 1, TCG_JMP_LEAVE };

/* The exception tcg_raise*() left with: TCG_JMP_RAISE. */
typedef struct TcgException {
    int vector;
    bool has_error;
    uint32_t error;
} TcgException;

/*
 * Made by the engine's vcpu_init, zeroed; tlb, block_rip, rip_mask, mode_key, cs_base and cs_limit
 * are tcg_mode_changed()'s to fill. Delivery of an event catches its own faults by saving jmp,
 * doing its own sigsetjmp(jmp, 0), and restoring it.
 */
typedef struct TcgCpu {
    TlbEntry *tlb;        /* TLB_ENTRIES of them, for the privilege and PCID of now */
    uint64_t cs_base;     /* 0 in 64-bit mode */
    uint64_t cs_limit;    /* last valid offset; all ones in 64-bit mode */
    uint64_t block_rip;   /* offset in CS of the current block's first byte */
    uint64_t rip_mask;    /* 0xffff, 0xffffffff or all ones */
    TcgBlock *block;      /* under execution; NULL while an event is delivered */
    const Insn *fault_insn;
    uint32_t mode_key;    /* what decoding depends on: code size, flat, CPL class, ... */
    bool irq_waiting;     /* the interrupt chip had something that could not be delivered yet */
    bool nmi_second;      /* one more NMI behind X86CPU.nmi_pending */
    /* Shadow in force for the instruction under way: a MOV SS under it makes no new one. */
    bool shadow_now;
    uint64_t icount;      /* instructions retired; of translated code only while counting */
    uint64_t tlb_fills;   /* statistics */
    bool csr_live;        /* the guest's MXCSR is in the host's register: tcg_fp_sync() */
    bool x87_live;        /* the guest's x87 state is in the host's registers: tcg_x87_home() */
    TcgException exc;
    sigjmp_buf jmp;
    bool shutdown;        /* a handler met a triple fault */
    uint32_t db_pending;  /* DR6 bits of debug traps due after this instruction */
    /* Of the last tcg_rmw_host(), for tcg_rmw_done(). */
    _Atomic uint64_t *rmw_map[2];
    RAMBlock *rmw_rb;
    uint64_t rmw_off;
    uint32_t rmw_len;
    /* Of the store that rmw_hit_next() (int.h) sees to. */
    const TlbEntry *hit_entry;
    uint64_t hit_lin;
    uint32_t hit_size;
    struct TcgEngine *engine; /* block cache and the rest, private to engine.c */
    struct TcgMmu *mmu;       /* private to mmu.c */
    struct TcgSys *sys;       /* private to sys_*.c */
    struct TcgSimd *simd;     /* private to simd*.c */
    struct Jit *jit;          /* private to jit*.c; NULL: interpreter only */
    uint64_t count_limit; /* counting: the engine stops at exactly this icount */
    bool counting;        /* -icount: icount.c */
    bool clock_exact;     /* counting: virtual time is that of the instruction under way */
    bool random_fixed;    /* RDRAND and RDSEED draw from random */
    uint64_t random;
    struct TcgCount *count; /* private to icount.c; NULL: not counting */
} TcgCpu;

/* vCPU's own thread, from vcpu_init (may allocate) and vcpu_fini. */
bool tcg_mmu_init(X86CPU *c, Error **errp);
uint64_t tcg_mmu_bytes(bool pcid); /* what it maps for a model that has PCID, or has not */
void tcg_mmu_fini(X86CPU *c);
bool tcg_sys_init(X86CPU *c, Error **errp);
void tcg_sys_fini(X86CPU *c);
bool tcg_simd_init(X86CPU *c, Error **errp);
uint64_t tcg_simd_bytes(void); /* what it maps; the arena is seen twice */
void tcg_simd_fini(X86CPU *c);
/* Registers were written by others (reset, debugger, loader): drop what is derived from them. */
void tcg_simd_reset(X86CPU *c);

/* jit.c. In the handler of SIGFPE: true if a division of translated code faulted; it goes on in the
 * interpreter. */
bool jit_sigfpe(void *ucontext);

/* Slow halves (mem.c): TLB miss, page crossing, MMIO, code, canonical and alignment checks. */
uint64_t tcg_ld_slow(X86CPU *c, const Insn *i, uint64_t lin, unsigned size);
void tcg_st_slow(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size);

/*
 * The entry is chosen by the first byte and the tag compared with the page of the last one: an
 * access that crosses into the next page can not match, as that page lives in another entry.
 */
/* Values in guest memory, wherever they lie: the host allows any alignment as the guest does. */
typedef uint8_t guest8 __attribute__((may_alias));
typedef uint16_t guest16 __attribute__((aligned(1), may_alias));
typedef uint32_t guest32 __attribute__((aligned(1), may_alias));
typedef uint64_t guest64 __attribute__((aligned(1), may_alias));

#define TCG_DEFINE_ACCESS(bits, type)                                                              \
    static inline type tcg_ld##bits(X86CPU *c, const Insn *i, uint64_t lin)                        \
    {                                                                                              \
        const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];                                           \
        if (likely(((lin + sizeof(type) - 1) & TARGET_PAGE_MASK) == e->rtag)) {                    \
            return *(volatile guest##bits *)tlb_host(e, lin);                                      \
        }                                                                                          \
        return (type)tcg_ld_slow(c, i, lin, sizeof(type));                                         \
    }                                                                                              \
    static inline void tcg_st##bits(X86CPU *c, const Insn *i, uint64_t lin, type v)                \
    {                                                                                              \
        const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];                                           \
        if (likely(((lin + sizeof(type) - 1) & TARGET_PAGE_MASK) == e->wtag &&                     \
                   atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {                \
            *(volatile guest##bits *)tlb_host(e, lin) = v;                                         \
            /* Store, then look again: pairs with ram_block_code_mark()'s membarrier(2). The       \
             * compiler must not swap the two; the processor may. */                               \
            atomic_signal_fence(memory_order_seq_cst);                                             \
            if (likely(atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {            \
                return;                                                                            \
            }                                                                                      \
            tlb_code_hit(e, lin, sizeof(type));                                                     \
            return;                                                                                \
        }                                                                                          \
        tcg_st_slow(c, i, lin, v, sizeof(type));                                                   \
    }
TCG_DEFINE_ACCESS(8, uint8_t)
TCG_DEFINE_ACCESS(16, uint16_t)
TCG_DEFINE_ACCESS(32, uint32_t)
TCG_DEFINE_ACCESS(64, uint64_t)

void tcg_rmw_code_hit(X86CPU *c);
static inline void tcg_rmw_done(X86CPU *c)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(c->tcg->rmw_map[0], memory_order_relaxed) |
                 atomic_load_explicit(c->tcg->rmw_map[1], memory_order_relaxed))) {
        tcg_rmw_code_hit(c);
    }
}

static inline uint64_t tcg_insn_rip(const X86CPU *c, const Insn *i)
{
    return (c->tcg->block_rip + i->off) & c->tcg->rip_mask;
}
static inline uint64_t tcg_next_rip(const X86CPU *c, const Insn *i)
{
    return (c->tcg->block_rip + i->off + i->len) & c->tcg->rip_mask;
}

/*
 * Before anything that reads virtual time or may raise an interrupt: under -icount the instruction
 * must be alone in its block, as only there the clock is exact. Does not return if it is not yet.
 * Nothing of i may be committed, or i must be restartable.
 */
void tcg_count_alone(X86CPU *c, const Insn *i);
/* Before what only reads virtual time: under -icount that becomes the time of i. */
void tcg_count_clock_set(X86CPU *c, const Insn *i);
static inline void tcg_count_clock(X86CPU *c, const Insn *i)
{
    if (unlikely(c->tcg->counting) && !c->tcg->clock_exact) {
        tcg_count_clock_set(c, i);
    }
}
static inline void tcg_count_exact(X86CPU *c, const Insn *i)
{
    if (unlikely(c->tcg->counting) && !c->tcg->clock_exact) {
        tcg_count_alone(c, i);
    }
}

/*
 * Floating-point flags gather in the host's MXCSR while guest code runs; control bits are the
 * default's then. This takes them home: before host code that might compute in floating point
 * (devices), before anybody looks at X86CPU.mxcsr or the x87 state, and when vcpu_run returns.
 */
void tcg_fp_sync_slow(X86CPU *c);
static inline void tcg_fp_sync(X86CPU *c)
{
    if (unlikely(c->tcg->csr_live | c->tcg->x87_live)) {
        tcg_fp_sync_slow(c);
    }
}
/* The x87 state alone (jit-x87.c): before the interpreter looks at X86CPU.x87 or runs x87 or MMX. */
void tcg_x87_home_slow(X86CPU *c);
static inline void tcg_x87_home(X86CPU *c)
{
    if (unlikely(c->tcg->x87_live)) {
        tcg_x87_home_slow(c);
    }
}
/* X86CPU.x87 was set from outside. */
void tcg_x87_drop(X86CPU *c);

static inline uint64_t tcg_ea_offset(const X86CPU *c, const Insn *i)
{
    uint64_t ea = c->regs[i->base] + (c->regs[i->index] << i->scale) + (uint64_t)i->disp;
    if (likely(i->asz == ASZ_64)) {
        return ea;
    }
    return i->asz == ASZ_32 ? (uint32_t)ea : (uint16_t)ea;
}

static inline uint64_t tcg_ea(X86CPU *c, const Insn *i, unsigned size, bool write)
{
    uint64_t off = tcg_ea_offset(c, i);
    if (likely(!(i->flags & (INSN_SEGCHECK | INSN_SEGBASE)))) {
        return off;
    }
    if (i->flags & INSN_SEGBASE) {
        return off + c->seg[i->seg].base;
    }
    return tcg_seg_check(c, i, i->seg, off, size, write);
}

#endif
