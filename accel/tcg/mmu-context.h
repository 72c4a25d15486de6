/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A TLB context and its entries, shared by mmu.c (look-up, filling) and mmu-flush.c. */
#ifndef ACCEL_TCG_MMU_CONTEXT_H
#define ACCEL_TCG_MMU_CONTEXT_H

#include "accel/tcg/mmu.h"

#define MMU_CONTEXTS 8
#define NO_PCID      UINT32_MAX
#define LARGE_FILTER 4096 /* bits */

/*
 * The pages whose code is remembered by address (mmu_code_seen()) under a version: a filter with two
 * bits for each 4 KiB page, which says yes to few others, and the larger ones.
 */
#define CODE_FILTER 16384 /* bits */
typedef struct CodeSeen {
    bool any;
    uint64_t filter[CODE_FILTER / 64];
    struct {
        uint64_t lin;
        uint8_t bits;
    } large[32];
    uint32_t larges; /* more than there is room for: any page may be one */
} CodeSeen;

struct MmuContext {
    struct TcgMmu *m;
    uint32_t version;      /* of user code mappings */
    CodeSeen code;         /* under that version */
    uint32_t pcid;
    uint32_t age;          /* of the last switch to it */
    uint32_t nfill;
    bool large_filtered;   /* the filter is not empty */
    uint8_t ready;         /* BIT(mode): its table says that it is empty */
    uint64_t large_filter[LARGE_FILTER / 64]; /* hashes of the large pages that have entries */
    uint16_t fill[TLB_MODES * TLB_ENTRIES];
    TlbTable *table; /* TLB_MODES of them */
};

static inline void tlb_entry_clear(TlbEntry *e)
{
    e->rtag = e->wtag = tlb_more(e)->xtag = tlb_tag_none(e);
}

/* The page an entry is for; TLB_INVALID: none. */
static inline uint64_t tlb_entry_page(const TlbEntry *e)
{
    uint64_t xtag = tlb_more(e)->xtag;
    uint64_t tag = !tlb_tag_is_none(e->rtag) ? e->rtag : !tlb_tag_is_none(xtag) ? xtag : e->wtag;

    return tlb_tag_page(tag);
}

/* mmu-flush.c, all on the vCPU's own thread */
/*
 * A write tag of a block whose writers are tracked goes: what was written through it since the
 * tracker last cleared the page's bit is reported now (ram_dirty_set_flush_hook()).
 */
void tlb_entry_report_dirty(const TlbEntry *e);
/* Another version of code mappings: of a context, and of supervisor mode (mmu_code_version()). */
uint32_t mmu_version_new(struct TcgMmu *m);
void mmu_version_kernel_new(struct TcgMmu *m);
/* lin has an entry that is part of a page of 2^bits bytes. */
void mmu_large_note(MmuContext *x, uint64_t lin, unsigned bits);
/* Every entry but the global ones, or those too. */
void mmu_context_flush(MmuContext *x, bool global);

#endif
