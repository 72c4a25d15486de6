/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flushes of the TLB, and the versions of code mappings that they change. */
#include <string.h>
#include "accel/tcg/mmu-context.h"

static TlbEntry *context_entry(MmuContext *x, unsigned n)
{
    return &x->table[n / TLB_ENTRIES].e[n % TLB_ENTRIES];
}

void tlb_entry_report_dirty(const TlbEntry *e)
{
    if (!tlb_tag_is_none(e->wtag) && (tlb_more(e)->flags & TLBF_RAM_W)) {
        RAMBlock *rb = tlb_more(e)->rb;
        uint8_t clients = atomic_load_explicit(&rb->dirty_clients, memory_order_relaxed);

        if (unlikely(clients)) {
            atomic_fetch_or(&rb->dirty[e->code_map - rb->code_map], clients);
        }
    }
}

/* ---- Versions of code mappings ---- */

static void code_forget(CodeSeen *s)
{
    if (s->any) {
        memset(s, 0, sizeof(*s));
    }
}

uint32_t mmu_version_new(struct TcgMmu *m)
{
    if (++m->version_next > MMU_VERSION_MAX) {
        m->version_wrapped = true;
        for (unsigned n = 0; n < m->nctx; n++) {
            m->ctx[n].version = n + 1;
        }
        m->version_kernel = m->nctx + 1;
        m->version_next = m->nctx + 2;
    }
    return m->version_next;
}

void mmu_version_kernel_new(struct TcgMmu *m)
{
    m->kernel_local = false;
    m->version_kernel = mmu_version_new(m);
    code_forget(m->code);
}

static void version_context_new(MmuContext *x)
{
    x->version = mmu_version_new(x->m);
    code_forget(&x->code);
}

/* The two bits of lin's page. */
static void code_bits(uint64_t lin, unsigned bit[2])
{
    uint64_t h = (lin >> TARGET_PAGE_BITS) * 0x9e3779b97f4a7c15ull;

    bit[0] = (unsigned)(h >> 50);
    bit[1] = (unsigned)(h >> 36) % CODE_FILTER;
}

static bool code_seen(const CodeSeen *s, uint64_t lin)
{
    unsigned b[2];

    if (!s->any) {
        return false;
    }
    code_bits(lin, b);
    if (((s->filter[b[0] / 64] & BIT64(b[0] % 64)) && (s->filter[b[1] / 64] & BIT64(b[1] % 64))) ||
        s->larges > ARRAY_SIZE(s->large)) {
        return true;
    }
    for (unsigned n = 0; n < s->larges; n++) {
        if ((s->large[n].lin ^ lin) >> s->large[n].bits == 0) {
            return true;
        }
    }
    return false;
}

static void code_note(CodeSeen *s, uint64_t lin, unsigned bits)
{
    unsigned b[2];

    s->any = true;
    if (bits == TARGET_PAGE_BITS) {
        code_bits(lin, b);
        s->filter[b[0] / 64] |= BIT64(b[0] % 64);
        s->filter[b[1] / 64] |= BIT64(b[1] % 64);
        return;
    }
    for (unsigned n = 0; n < MIN(s->larges, ARRAY_SIZE(s->large)); n++) {
        if ((s->large[n].lin ^ lin) >> s->large[n].bits == 0) {
            return;
        }
    }
    if (s->larges < ARRAY_SIZE(s->large)) {
        s->large[s->larges].lin = lin;
        s->large[s->larges].bits = (uint8_t)bits;
    }
    if (s->larges <= ARRAY_SIZE(s->large)) {
        s->larges++;
    }
}

unsigned mmu_code_version(X86CPU *c, bool *wrapped)
{
    struct TcgMmu *m = c->tcg->mmu;

    *wrapped = m->version_wrapped;
    m->version_wrapped = false;
    return c->cpl == 3 ? m->cur->version : m->version_kernel;
}

bool mmu_code_seen(X86CPU *c, uint64_t lin)
{
    struct TcgMmu *m = c->tcg->mmu;
    const TlbEntry *e = tlb_exec_slot(&m->table[m->mode][TLB_INDEX(lin)], lin);

    if (tlb_more(e)->xtag != (lin & TARGET_PAGE_MASK)) {
        return false;
    }
    code_note(c->cpl == 3 ? &m->cur->code : m->code, lin, tlb_more(e)->flags & TLBF_BITS);
    if (c->cpl != 3 && !(tlb_more(e)->flags & TLBF_GLOBAL)) {
        m->kernel_local = true;
    }
    return true;
}

/* lin was flushed in x. */
static void version_page_flushed(MmuContext *x, uint64_t lin)
{
    if (code_seen(&x->code, lin)) {
        version_context_new(x);
    }
    if (code_seen(x->m->code, lin)) {
        mmu_version_kernel_new(x->m);
    }
}

/* ---- Contexts ---- */

/* The bit of the filter for lin as part of a page of 2^bits bytes. */
static unsigned large_bit(uint64_t lin, unsigned bits)
{
    return (unsigned)(((lin >> bits) * 0x9e3779b97f4a7c15ull + bits * 0x51ed270b0a1full) >> 52);
}

void mmu_large_note(MmuContext *x, uint64_t lin, unsigned bits)
{
    if (bits > TARGET_PAGE_BITS) {
        unsigned b = large_bit(lin, bits);

        x->large_filter[b / 64] |= BIT64(b % 64);
        x->large_filtered = true;
    }
}

static bool large_noted(const MmuContext *x, uint64_t lin, unsigned bits)
{
    unsigned b = large_bit(lin, bits);

    return x->large_filter[b / 64] & BIT64(b % 64);
}

void mmu_context_flush(MmuContext *x, bool global)
{
    unsigned kept = 0;

    version_context_new(x);
    if (global || x->m->kernel_local) {
        mmu_version_kernel_new(x->m);
    }
    if (x->large_filtered) {
        memset(x->large_filter, 0, sizeof(x->large_filter));
        x->large_filtered = false;
    }
    for (unsigned n = 0; n < x->nfill; n++) {
        TlbEntry *e = context_entry(x, x->fill[n]);

        if (!global && (tlb_more(e)->flags & TLBF_GLOBAL)) {
            x->fill[kept++] = x->fill[n];
            mmu_large_note(x, tlb_entry_page(e), tlb_more(e)->flags & TLBF_BITS);
            continue;
        }
        tlb_entry_report_dirty(e);
        tlb_entry_clear(e);
        tlb_more(e)->flags = 0;
    }
    x->nfill = kept;
}

/* e goes if it is a part of the large page of 2^bits bytes that lin is in. */
static void entry_flush_large(TlbEntry *e, uint64_t lin, unsigned bits, bool global_only)
{
    uint32_t flags = tlb_more(e)->flags;

    if ((flags & TLBF_BITS) == bits && (!global_only || (flags & TLBF_GLOBAL)) &&
        (tlb_entry_page(e) ^ lin) >> bits == 0) {
        tlb_entry_report_dirty(e);
        tlb_entry_clear(e);
    }
}

/* The entries that a large page can have lie side by side, or are all there are. */
static void context_flush_large(MmuContext *x, uint64_t lin, unsigned bits, bool global_only)
{
    unsigned count = 2 * MIN(1u << (bits - TARGET_PAGE_BITS), TLB_SETS);
    unsigned first = TLB_INDEX(lin) & ~(count - 1);

    for (unsigned mode = 0; mode < TLB_MODES; mode++) {
        for (unsigned n = 0; (x->ready & BIT(mode)) && n < count; n++) {
            entry_flush_large(&x->table[mode].e[first + n], lin, bits, global_only);
        }
    }
}

static void context_flush_page(MmuContext *x, uint64_t lin, bool global_only)
{
    static const uint8_t large[] = { 21, 22, 30 };
    unsigned index = TLB_INDEX(lin);

    version_page_flushed(x, lin);
    if (!x->nfill) {
        return;
    }
    for (unsigned n = 0; n < 2 * TLB_MODES; n++) {
        TlbEntry *e = &x->table[n / 2].e[index + n % 2];

        if ((x->ready & BIT(n / 2)) && tlb_entry_page(e) == (lin & TARGET_PAGE_MASK) &&
            (!global_only || (tlb_more(e)->flags & TLBF_GLOBAL))) {
            tlb_entry_report_dirty(e);
            tlb_entry_clear(e);
        }
    }
    for (unsigned n = 0; x->large_filtered && n < ARRAY_SIZE(large); n++) {
        if (large_noted(x, lin, large[n])) {
            context_flush_large(x, lin, large[n], global_only);
        }
    }
}

/* ---- Flushes ---- */

void mmu_flush_everything(struct TcgMmu *m)
{
    for (unsigned n = 0; n < m->nctx; n++) {
        mmu_context_flush(&m->ctx[n], true);
    }
    m->pkey_pages = false;
    for (unsigned n = 0; n < MMU_RANGES; n++) {
        m->range[n] = (MmuRange){ 0 };
    }
}

void tcg_tlb_flush(X86CPU *c, bool global)
{
    if (global) {
        mmu_flush_everything(c->tcg->mmu);
    } else {
        mmu_context_flush(c->tcg->mmu->cur, false);
    }
}

void tcg_tlb_flush_page(X86CPU *c, uint64_t lin)
{
    struct TcgMmu *m = c->tcg->mmu;

    for (unsigned n = 0; n < m->nctx; n++) {
        if (&m->ctx[n] == m->cur || m->global_low || lin >> 63) {
            context_flush_page(&m->ctx[n], lin, &m->ctx[n] != m->cur);
        }
    }
}

void tcg_tlb_flush_pcid(X86CPU *c, uint16_t pcid)
{
    struct TcgMmu *m = c->tcg->mmu;

    for (unsigned n = 0; n < m->nctx; n++) {
        if (m->ctx[n].pcid == pcid) {
            mmu_context_flush(&m->ctx[n], false);
        }
    }
}

/* SDM 2A INVPCID: 0 address in a PCID, 1 a PCID, 2 all, 3 all but global. */
void mmu_invpcid(X86CPU *c, unsigned type, uint16_t pcid, uint64_t lin)
{
    struct TcgMmu *m = c->tcg->mmu;

    if (type == 1) {
        tcg_tlb_flush_pcid(c, pcid);
        return;
    }
    for (unsigned n = 0; n < m->nctx; n++) {
        if (type == 0) {
            if (m->ctx[n].pcid == pcid) {
                context_flush_page(&m->ctx[n], lin, false);
            }
        } else {
            mmu_context_flush(&m->ctx[n], type == 2);
        }
    }
}
