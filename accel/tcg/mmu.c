/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TLB. There is one context for each PCID in use (a single one while CR4.PCIDE is off), each
 * with one direct-mapped table a privilege; a switch of address space with CR3 bit 63 set is the
 * change of one pointer. A context lists which of its entries are in use, so that a flush costs
 * what was filled. Global entries are found in every context and survive flushes of one.
 */
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/mmu.h"
#include <glib.h>
#include <string.h>

#define MMU_CONTEXTS 8
#define NO_PCID      UINT32_MAX
#define LARGE_FILTER 4096 /* bits */

struct MmuContext {
    struct TcgMmu *m;
    uint32_t version;      /* of user code mappings */
    uint32_t pcid;
    uint32_t age;          /* of the last switch to it */
    uint32_t nfill;
    bool large_filtered;   /* the filter is not empty */
    uint8_t ready;         /* BIT(mode): its table says that it is empty */
    uint64_t large_filter[LARGE_FILTER / 64]; /* hashes of the large pages that have entries */
    uint16_t fill[TLB_MODES * TLB_ENTRIES];
    TlbTable table[TLB_MODES];
};

/* ---- Entries ---- */

static void entry_clear(TlbEntry *e)
{
    e->rtag = e->wtag = tlb_more(e)->xtag = TLB_INVALID;
}

static uint64_t entry_page(const TlbEntry *e)
{
    uint64_t xtag = tlb_more(e)->xtag;
    uint64_t tag = e->rtag != TLB_INVALID ? e->rtag : xtag != TLB_INVALID ? xtag : e->wtag;

    return tag == TLB_INVALID ? TLB_INVALID : tag & TARGET_PAGE_MASK;
}

static TlbEntry *context_entry(MmuContext *x, unsigned n)
{
    return &x->table[n / TLB_ENTRIES].e[n % TLB_ENTRIES];
}

/*
 * A write tag of a block whose writers are tracked goes: what was written through it since the
 * tracker last cleared the page's bit is reported now (ram_dirty_set_flush_hook()).
 */
static void entry_report_dirty(const TlbEntry *e)
{
    if (e->wtag != TLB_INVALID && (tlb_more(e)->flags & TLBF_RAM_W)) {
        RAMBlock *rb = tlb_more(e)->rb;
        uint8_t clients = atomic_load_explicit(&rb->dirty_clients, memory_order_relaxed);

        if (unlikely(clients)) {
            atomic_fetch_or(&rb->dirty[e->code_map - rb->code_map], clients);
        }
    }
}

/* ---- Versions of code mappings ---- */

static uint32_t version_new(struct TcgMmu *m)
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

static void version_kernel_new(struct TcgMmu *m)
{
    m->kernel_local = false;
    m->version_kernel = version_new(m);
}

static unsigned code_page_bit(uint64_t lin)
{
    return (unsigned)((lin >> TARGET_PAGE_BITS) * 0x9e3779b97f4a7c15ull >> 54);
}

static bool code_page_seen(const struct TcgMmu *m, uint64_t lin)
{
    unsigned b = code_page_bit(lin);

    if ((m->code_pages[b / 64] & BIT64(b % 64)) || m->code_larges > ARRAY_SIZE(m->code_large)) {
        return true;
    }
    for (unsigned n = 0; n < m->code_larges; n++) {
        if ((m->code_large[n].lin ^ lin) >> m->code_large[n].bits == 0) {
            return true;
        }
    }
    return false;
}

/* A page is flushed in every context that has it. */
static void version_page_flushed(struct TcgMmu *m, uint64_t lin)
{
    if (code_page_seen(m, lin)) {
        for (unsigned n = 0; n < m->nctx; n++) {
            m->ctx[n].version = version_new(m);
        }
        version_kernel_new(m);
        memset(m->code_pages, 0, sizeof(m->code_pages));
        m->code_larges = 0;
    }
}

static void code_page_note(struct TcgMmu *m, uint64_t lin, unsigned bits)
{
    unsigned b = code_page_bit(lin);

    if (bits == TARGET_PAGE_BITS) {
        m->code_pages[b / 64] |= BIT64(b % 64);
        return;
    }
    for (unsigned n = 0; n < MIN(m->code_larges, ARRAY_SIZE(m->code_large)); n++) {
        if ((m->code_large[n].lin ^ lin) >> m->code_large[n].bits == 0) {
            return;
        }
    }
    if (m->code_larges < ARRAY_SIZE(m->code_large)) {
        m->code_large[m->code_larges].lin = lin;
        m->code_large[m->code_larges].bits = (uint8_t)bits;
    }
    if (m->code_larges <= ARRAY_SIZE(m->code_large)) {
        m->code_larges++;
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
    const TlbEntry *e = &m->table[m->mode][(lin >> TARGET_PAGE_BITS) & (TLB_ENTRIES - 1)];

    if (tlb_more(e)->xtag != (lin & TARGET_PAGE_MASK)) {
        return false;
    }
    code_page_note(m, lin, tlb_more(e)->flags & TLBF_BITS);
    if (c->cpl != 3 && !(tlb_more(e)->flags & TLBF_GLOBAL)) {
        m->kernel_local = true;
    }
    return true;
}

/* The bit of the filter for lin as part of a page of 2^bits bytes. */
static unsigned large_bit(uint64_t lin, unsigned bits)
{
    return (unsigned)(((lin >> bits) * 0x9e3779b97f4a7c15ull + bits * 0x51ed270b0a1full) >> 52);
}

static void large_note(MmuContext *x, uint64_t lin, unsigned bits)
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

static void context_flush(MmuContext *x, bool global)
{
    unsigned kept = 0;

    x->version = version_new(x->m);
    if (global || x->m->kernel_local) {
        version_kernel_new(x->m);
    }
    if (x->large_filtered) {
        memset(x->large_filter, 0, sizeof(x->large_filter));
        x->large_filtered = false;
    }
    for (unsigned n = 0; n < x->nfill; n++) {
        TlbEntry *e = context_entry(x, x->fill[n]);

        if (!global && (tlb_more(e)->flags & TLBF_GLOBAL)) {
            x->fill[kept++] = x->fill[n];
            large_note(x, entry_page(e), tlb_more(e)->flags & TLBF_BITS);
            continue;
        }
        entry_report_dirty(e);
        entry_clear(e);
        tlb_more(e)->flags = 0;
    }
    x->nfill = kept;
}

/* e goes if it is a part of the large page of 2^bits bytes that lin is in. */
static void entry_flush_large(TlbEntry *e, uint64_t lin, unsigned bits, bool global_only)
{
    uint32_t flags = tlb_more(e)->flags;

    if ((flags & TLBF_BITS) == bits && (!global_only || (flags & TLBF_GLOBAL)) &&
        (entry_page(e) ^ lin) >> bits == 0) {
        entry_clear(e);
    }
}

/* The entries that a large page can have lie side by side, or are all there are. */
static void context_flush_large(MmuContext *x, uint64_t lin, unsigned bits, bool global_only)
{
    unsigned count = MIN(1u << (bits - TARGET_PAGE_BITS), TLB_ENTRIES);
    unsigned first = (lin >> TARGET_PAGE_BITS) & (TLB_ENTRIES - 1) & ~(count - 1);

    for (unsigned mode = 0; mode < TLB_MODES; mode++) {
        for (unsigned n = 0; (x->ready & BIT(mode)) && n < count; n++) {
            entry_flush_large(&x->table[mode].e[first + n], lin, bits, global_only);
        }
    }
}

static void context_flush_page(MmuContext *x, uint64_t lin, bool global_only)
{
    static const uint8_t large[] = { 21, 22, 30 };
    unsigned index = (lin >> TARGET_PAGE_BITS) & (TLB_ENTRIES - 1);

    if (!x->nfill) {
        return;
    }
    for (unsigned mode = 0; mode < TLB_MODES; mode++) {
        TlbEntry *e = &x->table[mode].e[index];

        if ((x->ready & BIT(mode)) && entry_page(e) == (lin & TARGET_PAGE_MASK) &&
            (!global_only || (tlb_more(e)->flags & TLBF_GLOBAL))) {
            entry_clear(e);
        }
    }
    for (unsigned n = 0; x->large_filtered && n < ARRAY_SIZE(large); n++) {
        if (large_noted(x, lin, large[n])) {
            context_flush_large(x, lin, large[n], global_only);
        }
    }
}

/* ---- Contexts ---- */

static MmuContext *context_find(struct TcgMmu *m, uint32_t pcid)
{
    MmuContext *oldest = &m->ctx[0];

    for (unsigned n = 0; n < m->nctx; n++) {
        if (m->ctx[n].pcid == pcid) {
            return &m->ctx[n];
        }
        if (m->ctx[n].age < oldest->age) {
            oldest = &m->ctx[n];
        }
    }
    context_flush(oldest, true);
    oldest->pcid = pcid;
    return oldest;
}

/*
 * Empty entries are not zeros, and the tables of a vCPU that has every PCID are 12 MiB: each becomes
 * one when it gets its first entry, and the one table of nothing stands for it until then.
 */
static void table_prepare(MmuContext *x, unsigned mode)
{
    for (unsigned n = 0; n < TLB_ENTRIES; n++) {
        entry_clear(&x->table[mode].e[n]);
    }
    x->ready |= BIT(mode);
}

static void context_set(struct TcgMmu *m, MmuContext *x)
{
    m->cur = x;
    for (unsigned mode = 0; mode < TLB_MODES; mode++) {
        m->table[mode] = x->ready & BIT(mode) ? x->table[mode].e : m->none;
    }
}

static void context_apply(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;

    c->tcg->tlb = m->align_check ? m->none : m->table[m->mode];
}

void mmu_select_context(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;
    uint32_t pcid = (c->cr4 & CR4_PCIDE) ? c->cr3 & 0xfff : 0;

    if (m->cur->pcid != pcid) {
        context_set(m, context_find(m, pcid));
    }
    m->cur->age = ++m->age;
    context_apply(c);
}

void mmu_select_mode(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;
    bool ac = (c->rflags & FL_AC) != 0;

    if (c->cpl == 3) {
        m->mode = TLB_USER;
        m->align_check = ac && (c->cr0 & CR0_AM);
    } else {
        m->mode = (c->cr4 & CR4_SMAP) && !ac ? TLB_KERNEL : TLB_KERNEL_AC;
        m->align_check = false;
    }
    context_apply(c);
}

/* ---- Flushes ---- */

void mmu_flush_everything(struct TcgMmu *m)
{
    for (unsigned n = 0; n < m->nctx; n++) {
        context_flush(&m->ctx[n], true);
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
        context_flush(c->tcg->mmu->cur, false);
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
    version_page_flushed(m, lin);
}

void tcg_tlb_flush_pcid(X86CPU *c, uint16_t pcid)
{
    struct TcgMmu *m = c->tcg->mmu;

    for (unsigned n = 0; n < m->nctx; n++) {
        if (m->ctx[n].pcid == pcid) {
            context_flush(&m->ctx[n], false);
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
                version_page_flushed(m, lin);
            }
        } else {
            context_flush(&m->ctx[n], type == 2);
        }
    }
}

void tcg_pkru_set(X86CPU *c, uint32_t pkru)
{
    if (c->pkru != pkru) {
        c->pkru = pkru;
        if (c->tcg->mmu->pkey_pages) {
            mmu_flush_everything(c->tcg->mmu);
        }
    }
}

/*
 * At its default place the local APIC is in the map of memory, for devices too. Moved, it is seen by
 * its own vCPU alone, over whatever else is there (SDM 3A 11.4.5). 0: not moved, or not in use.
 */
static hwaddr moved_apic_page(X86CPU *c)
{
    const uint64_t enabled = BIT64(11), x2apic = BIT64(10), dflt = 0xfee00000;
    uint64_t base = dflt;

    if (irqchip && irqchip->base_get && irqchip->mmio_read) {
        base = irqchip->base_get(&c->base);
    }
    if ((base & (enabled | x2apic)) != enabled || (base & TARGET_PAGE_MASK) == dflt) {
        return 0;
    }
    return base & TARGET_PAGE_MASK;
}

void tcg_mmu_resync(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;

    mmu_flush_everything(m);
    m->apic_page = moved_apic_page(c);
    m->reserved = PTE_ADDR & ~((1ull << c->phys_bits) - 1);
    /* The PDPTEs are registers: a flush does not read them again, a new state does. */
    if (!(c->cr0 & CR0_PG) || !(c->cr4 & CR4_PAE) || (c->efer & EFER_LMA)) {
        m->pdpte_cr3 = NO_PDPTES;
    } else if (m->pdpte_cr3 != c->cr3) {
        mmu_load_pdptes(c, c->cr3);
    }
    mmu_breakpoints_changed(c);
    mmu_select_context(c);
    tcg_mode_changed(c);
}

/* ---- Filling ---- */

static unsigned entry_fill_ram(TlbEntry *e, uint64_t page, const MmuRange *r, hwaddr phys,
                               unsigned rights, int access)
{
    uint64_t off = r->rb_off + (phys - r->addr);
    uint64_t n = off >> TARGET_PAGE_BITS;

    tlb_more(e)->rb = r->rb;
    e->addend = (uintptr_t)(r->host + (phys - r->addr)) - page;
    e->code_map = &r->rb->code_map[n];
    if (rights & RIGHT(ACC_READ)) {
        e->rtag = page;
    }
    if (r->writable && (rights & RIGHT(ACC_WRITE))) {
        uint8_t clients = atomic_load(&r->rb->dirty_clients);

        if (clients && access != ACC_WRITE) {
            return rights & ~RIGHT(ACC_WRITE); /* nothing is written yet: come again */
        }
        if (clients) {
            atomic_fetch_or(&r->rb->dirty[n], clients);
        }
        e->wtag = page;
        tlb_more(e)->flags |= TLBF_RAM_W;
    }
    return rights;
}

/* rights: of the access's mode, with write only if D is set. */
static void entry_fill(X86CPU *c, TlbEntry *e, const MmuWalk *w, unsigned rights, int access)
{
    uint64_t page = w->lin & TARGET_PAGE_MASK;
    hwaddr phys = mmu_a20(w->phys);
    const MmuRange *r = mmu_range(c, phys);
    TlbMore *more = tlb_more(e);

    entry_clear(e);
    more->phys = phys;
    more->rb = NULL;
    e->addend = 0;
    e->code_map = NULL;
    more->flags = (more->flags & TLBF_LISTED) | w->page_bits;
    if (w->global && (c->cr4 & CR4_PGE)) {
        more->flags |= TLBF_GLOBAL;
        c->tcg->mmu->global_low |= !(page >> 63);
    }
    if (unlikely(c->tcg->mmu->apic_page) && phys == c->tcg->mmu->apic_page) {
        more->flags |= TLBF_APIC;
    } else if (r && r->host && r->size - (phys - r->addr) >= TARGET_PAGE_SIZE &&
        !((r->rb_off + (phys - r->addr)) & ~TARGET_PAGE_MASK)) {
        rights = entry_fill_ram(e, page, r, phys, rights, access);
    }
    if ((rights & RIGHT(ACC_READ)) && e->rtag == TLB_INVALID) {
        e->rtag = page | TLB_SLOW;
    }
    if ((rights & RIGHT(ACC_WRITE)) && e->wtag == TLB_INVALID) {
        e->wtag = page | TLB_SLOW;
    }
    if (rights & RIGHT(ACC_EXEC)) {
        more->xtag = page;
    }
    if (c->tcg->mmu->watch) {
        if (e->rtag != TLB_INVALID && mmu_watch_hits(c, page, TARGET_PAGE_SIZE, false)) {
            e->rtag |= TLB_SLOW;
        }
        if (e->wtag != TLB_INVALID && mmu_watch_hits(c, page, TARGET_PAGE_SIZE, true)) {
            e->wtag |= TLB_SLOW;
        }
    }
}

static QEMU_NORETURN void raise_fault(X86CPU *c, const Insn *i, uint64_t lin, WalkResult res,
                                      int access, bool user, bool pk)
{
    uint32_t err = user ? PF_U : 0;

    if (res == WALK_RESERVED) {
        err |= PF_P | PF_RSVD;
    } else if (res == WALK_OK) {
        err |= PF_P | (pk ? PF_PK : 0);
    }
    if (access == ACC_WRITE) {
        err |= PF_W;
    }
    if (access == ACC_EXEC &&
        ((c->cr4 & CR4_SMEP) || ((c->cr4 & CR4_PAE) && (c->efer & EFER_NXE)))) {
        err |= PF_I;
    }
    tcg_raise_pf(c, i, lin, err);
}

/* Walks, checks and sets A and D; returns the rights that may be kept. */
static unsigned walk_checked(X86CPU *c, const Insn *i, uint64_t lin, int access, unsigned mode,
                             MmuWalk *w)
{
    unsigned rights;
    bool pk;

    do {
        WalkResult res = mmu_walk(c, lin, w);

        if (res != WALK_OK) {
            raise_fault(c, i, lin, res, access, mode == TLB_USER, false);
        }
        rights = mmu_walk_rights(c, w, mode, access, &pk);
        if (!(rights & RIGHT(access))) {
            raise_fault(c, i, lin, res, access, mode == TLB_USER, pk);
        }
    } while (!mmu_walk_commit(c, w, access == ACC_WRITE));
    return w->dirty ? rights : rights & ~RIGHT(ACC_WRITE);
}

static const TlbEntry *translate_walk(X86CPU *c, const Insn *i, uint64_t lin, int access,
                                      unsigned mode)
{
    struct TcgMmu *m = c->tcg->mmu;
    unsigned index = (lin >> TARGET_PAGE_BITS) & (TLB_ENTRIES - 1);
    MmuContext *x = m->cur;
    TlbEntry *e = &x->table[mode].e[index];
    MmuWalk w;
    unsigned rights = walk_checked(c, i, lin, access, mode, &w);

    if (unlikely(!(x->ready & BIT(mode)))) {
        table_prepare(x, mode);
        context_set(m, x);
        context_apply(c);
    }
    c->tcg->tlb_fills++;
    if (!(tlb_more(e)->flags & TLBF_LISTED)) {
        tlb_more(e)->flags |= TLBF_LISTED;
        x->fill[x->nfill++] = (uint16_t)(mode * TLB_ENTRIES + index);
    }
    large_note(x, lin, w.page_bits);
    m->pkey_pages |= w.u && (c->cr4 & CR4_PKE);
    entry_fill(c, e, &w, rights, access);
    return e;
}

const TlbEntry *mmu_translate(X86CPU *c, const Insn *i, uint64_t lin, int access, unsigned mode)
{
    unsigned index = (lin >> TARGET_PAGE_BITS) & (TLB_ENTRIES - 1);
    const TlbEntry *e = &c->tcg->mmu->table[mode][index];
    uint64_t tag = access == ACC_READ ? e->rtag : access == ACC_WRITE ? e->wtag : tlb_more(e)->xtag;

    if ((tag & ~TLB_SLOW) == (lin & TARGET_PAGE_MASK)) {
        return e;
    }
    return translate_walk(c, i, lin, access, mode);
}

const TlbEntry *tcg_fetch_entry(X86CPU *c, uint64_t lin)
{
    if (unlikely(!mmu_canonical(lin))) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    return mmu_translate(c, NULL, lin, ACC_EXEC, c->tcg->mmu->mode);
}

hwaddr tcg_translate_fetch(X86CPU *c, uint64_t lin)
{
    return tlb_more(tcg_fetch_entry(c, lin))->phys | (lin & ~TARGET_PAGE_MASK);
}

bool tcg_translate_debug(X86CPU *c, uint64_t lin, hwaddr *phys)
{
    MmuWalk w;
    bool ok;

    if (!mmu_canonical(lin)) {
        return false;
    }
    memory_read_lock();
    ok = mmu_walk(c, lin, &w) == WALK_OK;
    memory_read_unlock();
    if (ok) {
        *phys = mmu_a20(w.phys) | (lin & ~TARGET_PAGE_MASK);
    }
    return ok;
}

/* ---- Life ---- */

static void context_init(MmuContext *x, struct TcgMmu *m)
{
    x->m = m;
    x->version = version_new(m);
    x->pcid = NO_PCID;
    for (unsigned mode = 0; tcg_touch_early() && mode < TLB_MODES; mode++) {
        table_prepare(x, mode);
    }
}

/* A table with nothing in it. It is never written, so all vCPUs share one. NULL: no memory. */
static TlbTable *table_of_nothing(void)
{
    static _Atomic(TlbTable *) nothing;
    TlbTable *other = NULL, *t = atomic_load(&nothing);

    if (!t && (t = tcg_map(sizeof(TlbTable)))) {
        for (unsigned n = 0; n < TLB_ENTRIES; n++) {
            entry_clear(&t->e[n]);
        }
        if (!atomic_compare_exchange_strong(&nothing, &other, t)) {
            tcg_unmap(t, sizeof(TlbTable));
            t = other;
        }
    }
    return t;
}

bool tcg_mmu_init(X86CPU *c, Error **errp)
{
    struct TcgMmu *m = g_new0(struct TcgMmu, 1);
    TlbTable *none;

    m->nctx = x86_has(c, X86F_PCID) ? MMU_CONTEXTS : 1;
    m->ctx = tcg_map(sizeof(MmuContext) * m->nctx);
    none = table_of_nothing();
    if (!m->ctx || !none) {
        error_setg_errno(errp, errno, "cannot allocate the TLB of CPU %u", c->base.index);
        tcg_unmap(m->ctx, sizeof(MmuContext) * m->nctx);
        g_free(m);
        return false;
    }
    m->none = none->e;
    for (unsigned n = 0; n < m->nctx; n++) {
        context_init(&m->ctx[n], m);
    }
    context_set(m, &m->ctx[0]);
    m->cur->pcid = 0;
    m->reserved = PTE_ADDR & ~((1ull << c->phys_bits) - 1);
    m->pdpte_cr3 = NO_PDPTES;
    version_kernel_new(m);
    c->tcg->mmu = m;
    context_apply(c);
    mmu_map_listen();
    return true;
}

void tcg_mmu_fini(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;

    c->tcg->mmu = NULL;
    tcg_unmap(m->ctx, sizeof(MmuContext) * m->nctx);
    g_free(m);
}
