/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address translation, private to accel/tcg: the page walk (mmu_walk.c), the TLB that caches it
 * (mmu.c) and those who ask for translations (mem.c, sys_*.c). Sources: SDM 3A chapter 4.
 */
#ifndef ACCEL_TCG_MMU_H
#define ACCEL_TCG_MMU_H

#include "accel/tcg/tlb.h"

/* CPUID bits this room asks for, as (word, bit) for x86_has(). */
#define X86F_VME      FEAT_1_EDX, BIT(1)
#define X86F_DE       FEAT_1_EDX, BIT(2)
#define X86F_PSE      FEAT_1_EDX, BIT(3)
#define X86F_TSC      FEAT_1_EDX, BIT(4)
#define X86F_PAE      FEAT_1_EDX, BIT(6)
#define X86F_MCE      FEAT_1_EDX, BIT(7)
#define X86F_SEP      FEAT_1_EDX, BIT(11)
#define X86F_PGE      FEAT_1_EDX, BIT(13)
#define X86F_PSE36    FEAT_1_EDX, BIT(17)
#define X86F_FXSR     FEAT_1_EDX, BIT(24)
#define X86F_SSE      FEAT_1_EDX, BIT(25)
#define X86F_MONITOR  FEAT_1_ECX, BIT(3)
#define X86F_PCID     FEAT_1_ECX, BIT(17)
#define X86F_XSAVE    FEAT_1_ECX, BIT(26)
#define X86F_HYPERVISOR FEAT_1_ECX, BIT(31)
#define X86F_FSGSBASE FEAT_7_0_EBX, BIT(0)
#define X86F_SMEP     FEAT_7_0_EBX, BIT(7)
#define X86F_INVPCID  FEAT_7_0_EBX, BIT(10)
#define X86F_SMAP     FEAT_7_0_EBX, BIT(20)
#define X86F_UMIP     FEAT_7_0_ECX, BIT(2)
#define X86F_PKU      FEAT_7_0_ECX, BIT(3)
#define X86F_RDPID    FEAT_7_0_ECX, BIT(22)
#define X86F_SYSCALL  FEAT_8000_0001_EDX, BIT(11)
#define X86F_NX       FEAT_8000_0001_EDX, BIT(20)
#define X86F_PDPE1GB  FEAT_8000_0001_EDX, BIT(26)
#define X86F_RDTSCP   FEAT_8000_0001_EDX, BIT(27)
#define X86F_LM       FEAT_8000_0001_EDX, BIT(29)
#define X86F_CR8LEG   FEAT_8000_0001_ECX, BIT(4)

/* Bits of a page-table entry (SDM 3A 4.3 to 4.5). */
#define PTE_P    BIT64(0)
#define PTE_W    BIT64(1)
#define PTE_U    BIT64(2)
#define PTE_A    BIT64(5)
#define PTE_D    BIT64(6)
#define PTE_PS   BIT64(7)
#define PTE_G    BIT64(8)
#define PTE_NX   BIT64(63)
#define PTE_ADDR 0x000ffffffffff000ull

/* Bits of #PF's error code (SDM 3A 4.7). */
#define PF_P    BIT(0)
#define PF_W    BIT(1)
#define PF_U    BIT(2)
#define PF_RSVD BIT(3)
#define PF_I    BIT(4)
#define PF_PK   BIT(5)

/* TlbEntry.flags */
#define TLBF_BITS   0xff    /* log2 of the size of the guest's page */
#define TLBF_LISTED BIT(8)
#define TLBF_GLOBAL BIT(9)
#define TLBF_RAM_W  BIT(10) /* if stores are allowed, they go to RAM */
#define TLBF_APIC   BIT(11) /* this vCPU's local APIC, moved from its default place */

enum { ACC_READ, ACC_WRITE, ACC_EXEC };
#define RIGHT(acc) BIT(acc)

/* A range of guest-physical memory as the MMU remembers it. */
typedef struct MmuRange {
    hwaddr addr;
    uint64_t size;   /* 0: empty */
    uint8_t *host;   /* of addr; NULL: no RAM behind it */
    RAMBlock *rb;
    uint64_t rb_off; /* of addr */
    bool writable;   /* stores go straight to RAM */
} MmuRange;

/* One entry as the walk met it. */
typedef struct MmuPte {
    uint64_t value;
    hwaddr addr;
} MmuPte;

typedef enum WalkResult { WALK_OK, WALK_NOT_PRESENT, WALK_RESERVED } WalkResult;

/* What a walk finds. */
typedef struct MmuWalk {
    uint64_t lin;
    MmuPte pte[4];      /* from the root down; the last is the leaf */
    unsigned depth;     /* entries read */
    unsigned pte_size;  /* 4 or 8 bytes */
    unsigned page_bits; /* 12, 21, 22, 30 */
    hwaddr phys;        /* of the 4 KiB page that holds lin */
    bool w, u, nx, global, dirty;
    uint8_t pkey;
} MmuWalk;

#define MMU_RANGES 4
#define NO_PDPTES  UINT64_MAX

typedef struct MmuContext MmuContext;

struct TcgMmu {
    MmuContext *ctx, *cur; /* one a PCID in use */
    unsigned nctx;
    TlbTable *tables; /* of all contexts; apart, so that one that has not run touches none */
    uint32_t age;
    TlbEntry *table[TLB_MODES]; /* of the context of now */
    TlbEntry *none;        /* all vCPUs': with nothing in it, every access goes to the slow half */
    uint8_t mode;          /* TLB_* of explicit accesses now */
    bool align_check;      /* CR0.AM, EFLAGS.AC and CPL 3 */
    bool pkey_pages;       /* user pages may be in the TLB with PKRU applied */
    bool watch;            /* DR7 has data breakpoints on */
    hwaddr apic_page;      /* IA32_APIC_BASE if not the default, else 0 */
    uint64_t reserved;     /* bits of PAE and 4-level entries above MAXPHYADDR */
    uint64_t pdpte[4];     /* PAE paging: loaded with CR3 */
    uint64_t pdpte_cr3;    /* they were loaded with; NO_PDPTES: they are not */
    MmuRange range[MMU_RANGES];
    unsigned range_next;
    bool global_low;       /* some global page was in the lower half: Linux has none there */
    bool rmw_locked;       /* between tcg_rmw_begin() and tcg_rmw_end() */
    /* Versions of code mappings, see mmu_code_version(). */
    uint32_t version_next;
    uint32_t version_kernel;   /* of supervisor mode: its code is in global pages */
    bool kernel_local;         /* some of it was not */
    bool version_wrapped;
    struct CodeSeen *code;     /* of supervisor mode */
};

/* ---- mmu_walk.c ---- */

/* Walks the tables of CR3 now; reads only. */
WalkResult mmu_walk(X86CPU *c, uint64_t lin, MmuWalk *w);
/* RIGHT() bits of a translation for accesses of a TLB_* mode; *pk says the access would offend
 * the protection key. */
unsigned mmu_walk_rights(const X86CPU *c, const MmuWalk *w, unsigned mode, int access, bool *pk);
/* Sets A in all entries of the walk, and D in the last for a write. False: one of them changed
 * meanwhile, walk again. */
bool mmu_walk_commit(X86CPU *c, MmuWalk *w, bool write);
/* Reads the PDPTEs CR3 points to. False: a reserved bit is set; nothing is changed. */
bool mmu_load_pdptes(X86CPU *c, uint64_t cr3);
/* The range that holds phys; NULL if nothing is there. Valid until the next call. */
const MmuRange *mmu_range(X86CPU *c, hwaddr phys);

/* The block of RAM at a host address; NULL: none. */
RAMBlock *mmu_ram_of(const void *host);

/* ---- mmu.c ---- */

/* The A20 gate's effect on a physical address. */
extern _Atomic uint64_t mmu_a20_mask;
static inline hwaddr mmu_a20(hwaddr a)
{
    return a & atomic_load_explicit(&mmu_a20_mask, memory_order_relaxed);
}

/* 48 bits of linear address, sign-extended. */
static inline bool mmu_canonical(uint64_t lin)
{
    return (uint64_t)((int64_t)(lin << 16) >> 16) == lin;
}

/* The TLB_* mode of implicit supervisor accesses (SDM 3A 4.6.1). */
static inline unsigned mmu_mode_implicit(const X86CPU *c)
{
    return (c->cr4 & CR4_SMAP) ? TLB_KERNEL : TLB_KERNEL_AC;
}

/*
 * Translates lin (canonical) for an access: from the TLB or by a walk. The entry is valid until
 * the next call. Raises #PF.
 */
const TlbEntry *mmu_translate(X86CPU *c, const Insn *i, uint64_t lin, int access, unsigned mode);

/* CR3, CR4.PCIDE, PCID: choose the context. No flush. */
void mmu_select_context(X86CPU *c);
/* CPL, EFLAGS.AC, CR0.AM, CR4.SMAP: choose the privilege's table. */
void mmu_select_mode(X86CPU *c);
/* INVPCID types 0 to 3. */
void mmu_invpcid(X86CPU *c, unsigned type, uint16_t pcid, uint64_t lin);
/* DR7 or a DRn changed. */
void mmu_breakpoints_changed(X86CPU *c);
/* Every entry of every context, for mmu-watch.c. */
void mmu_flush_everything(struct TcgMmu *m);
/* Data breakpoints that [lin, lin+len) touches, as DR6 bits; write breakpoints only for a write. */
uint32_t mmu_watch_hits(const X86CPU *c, uint64_t lin, uint64_t len, bool write);

/*
 * For caches of translated jumps. The version of the code mappings that are visible now, from 1:
 * it changes with each flush that may concern a page of which mmu_code_seen() was told. *wrapped:
 * numbers start again, forget all of before.
 */
#define MMU_VERSION_MAX ((1u << 28) - 1)
unsigned mmu_code_version(X86CPU *c, bool *wrapped);
/* Code at lin will be remembered under the version of now. False: it must not be. */
bool mmu_code_seen(X86CPU *c, uint64_t lin);

/* ---- mmu-map.c ---- */

/* Once is enough: TLBs are flushed when the guest-physical map changes. */
void mmu_map_listen(void);

/* ---- mem.c ---- */

/* Once, before the first vCPU runs. */
void mem_init(void);

/* Loads and stores with the privilege of a TLB_* mode; size 1, 2, 4, 8. */
uint64_t mem_load(X86CPU *c, const Insn *i, uint64_t lin, unsigned size, unsigned mode);
void mem_store(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size, unsigned mode);
/* Raises if an access of len bytes (at most a page) would fault. */
void mem_probe(X86CPU *c, const Insn *i, uint64_t lin, unsigned len, int access, unsigned mode);
/*
 * base + off as a linear address. It wraps at 4 GiB but in 64-bit mode, and but for system tables
 * above that in compatibility mode.
 */
static inline uint64_t mem_add(const X86CPU *c, uint64_t base, uint64_t off)
{
    uint64_t lin = base + off;

    return x86_in_64bit(c) || base >> 32 ? lin : (uint32_t)lin;
}

#endif
