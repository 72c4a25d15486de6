/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TLB. There is one context for each PCID in use (a single one while CR4.PCIDE is off), each
 * with one table a privilege, of sets of two entries; a switch of address space with CR3 bit 63 set is the
 * change of one pointer. A context lists which of its entries are in use, so that a flush costs
 * what was filled. Global entries are found in every context and survive flushes of one.
 */
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include <glib.h>
#include <string.h>
#include "accel/tcg/mmu-context.h"

static unsigned entry_number(const MmuContext *x, const TlbEntry *e)
{
    uintptr_t off = (uintptr_t)e - (uintptr_t)x->table;

    return (unsigned)(off / sizeof(TlbTable) * TLB_ENTRIES + off % sizeof(TlbTable) / sizeof(*e));
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
    mmu_context_flush(oldest, true);
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
        tlb_entry_clear(&x->table[mode].e[n]);
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
    e->host = (uintptr_t)(r->host + (phys - r->addr));
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

    tlb_entry_clear(e);
    more->phys = phys;
    more->rb = NULL;
    e->host = 0;
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
    if ((rights & RIGHT(ACC_READ)) && tlb_tag_is_none(e->rtag)) {
        e->rtag = tlb_tag_slow(page);
    }
    if ((rights & RIGHT(ACC_WRITE)) && tlb_tag_is_none(e->wtag)) {
        e->wtag = tlb_tag_slow(page);
    }
    if (rights & RIGHT(ACC_EXEC)) {
        more->xtag = page;
    }
    if (c->tcg->mmu->watch) {
        if (!tlb_tag_is_none(e->rtag) && mmu_watch_hits(c, page, TARGET_PAGE_SIZE, false)) {
            e->rtag = tlb_tag_slow(page);
        }
        if (!tlb_tag_is_none(e->wtag) && mmu_watch_hits(c, page, TARGET_PAGE_SIZE, true)) {
            e->wtag = tlb_tag_slow(page);
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

/* e, number n of the context, will be in use. */
static void entry_list(MmuContext *x, TlbEntry *e, unsigned n)
{
    if (!(tlb_more(e)->flags & TLBF_LISTED)) {
        tlb_more(e)->flags |= TLBF_LISTED;
        x->fill[x->nfill++] = (uint16_t)n;
    }
}

/* e is to be filled for page: what it holds of another goes to the entry beside it. */
static void set_make_room(MmuContext *x, TlbEntry *e, uint64_t page)
{
    uint32_t listed = tlb_more(e + 1)->flags & TLBF_LISTED;
    uint64_t old = tlb_entry_page(e);

    if (old == TLB_INVALID || old == page) {
        /* A page is in one place only. */
        if (tlb_entry_page(e + 1) == page) {
            tlb_entry_report_dirty(e + 1);
            tlb_entry_clear(e + 1);
        }
        tlb_entry_report_dirty(e);
        return;
    }
    tlb_entry_report_dirty(e + 1);
    e[1] = e[0];
    *tlb_more(e + 1) = *tlb_more(e);
    tlb_more(e + 1)->flags = (tlb_more(e)->flags & ~TLBF_LISTED) | listed;
    entry_list(x, e + 1, entry_number(x, e + 1));
}

static const TlbEntry *translate_walk(X86CPU *c, const Insn *i, uint64_t lin, int access,
                                      unsigned mode)
{
    struct TcgMmu *m = c->tcg->mmu;
    unsigned index = TLB_INDEX(lin);
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
    set_make_room(x, e, lin & TARGET_PAGE_MASK);
    entry_list(x, e, mode * TLB_ENTRIES + index);
    mmu_large_note(x, lin, w.page_bits);
    m->pkey_pages |= w.u && (c->cr4 & CR4_PKE);
    entry_fill(c, e, &w, rights, access);
    return e;
}

/* The second entry of the set was wanted: from now on fast paths find it. */
static const TlbEntry *set_swap(MmuContext *x, TlbEntry *e)
{
    TlbEntry first = e[0];
    TlbMore more = *tlb_more(e), *more2 = tlb_more(e + 1);
    uint32_t listed2 = more2->flags & TLBF_LISTED;

    entry_list(x, e, entry_number(x, e));
    e[0] = e[1];
    e[1] = first;
    *tlb_more(e) = *more2;
    *more2 = more;
    tlb_more(e)->flags |= TLBF_LISTED;
    more2->flags = (more2->flags & ~TLBF_LISTED) | listed2;
    return e;
}

const TlbEntry *mmu_translate(X86CPU *c, const Insn *i, uint64_t lin, int access, unsigned mode)
{
    unsigned index = TLB_INDEX(lin);
    const TlbEntry *e = &c->tcg->mmu->table[mode][index];

    for (unsigned way = 0; way < 2; way++, e++) {
        uint64_t tag = access == ACC_READ    ? e->rtag
                       : access == ACC_WRITE ? e->wtag
                                             : tlb_more(e)->xtag;

        if (tlb_tag_page(tag) == (lin & TARGET_PAGE_MASK)) {
            return way ? set_swap(c->tcg->mmu->cur, &c->tcg->mmu->cur->table[mode].e[index]) : e;
        }
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
    x->version = mmu_version_new(m);
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
            tlb_entry_clear(&t->e[n]);
        }
        if (!atomic_compare_exchange_strong(&nothing, &other, t)) {
            tcg_unmap(t, sizeof(TlbTable));
            t = other;
        }
    }
    return t;
}

static unsigned context_count(bool pcid)
{
    return pcid ? MMU_CONTEXTS : 1;
}

static size_t tables_size(unsigned contexts)
{
    return sizeof(TlbTable) * TLB_MODES * contexts;
}

static size_t contexts_size(unsigned contexts)
{
    return sizeof(MmuContext) * contexts;
}

uint64_t tcg_mmu_bytes(bool pcid)
{
    unsigned n = context_count(pcid);

    return tables_size(n) + contexts_size(n) + sizeof(struct TcgMmu) + sizeof(CodeSeen);
}

static void mmu_free(struct TcgMmu *m)
{
    tcg_unmap(m->ctx, contexts_size(m->nctx));
    tcg_unmap(m->tables, tables_size(m->nctx));
    g_free(m->code);
    g_free(m);
}

bool tcg_mmu_init(X86CPU *c, Error **errp)
{
    struct TcgMmu *m = g_new0(struct TcgMmu, 1);
    TlbTable *none;

    m->nctx = context_count(x86_has(c, X86F_PCID));
    m->code = g_new0(CodeSeen, 1);
    m->ctx = tcg_map(contexts_size(m->nctx));
    m->tables = tcg_map(tables_size(m->nctx));
    none = table_of_nothing();
    if (!m->ctx || !m->tables || !none) {
        tcg_no_memory(c, "TLB", tables_size(m->nctx) + contexts_size(m->nctx), errp);
        mmu_free(m);
        return false;
    }
    m->none = none->e;
    for (unsigned n = 0; n < m->nctx; n++) {
        m->ctx[n].table = &m->tables[n * TLB_MODES];
        context_init(&m->ctx[n], m);
    }
    context_set(m, &m->ctx[0]);
    m->cur->pcid = 0;
    m->reserved = PTE_ADDR & ~((1ull << c->phys_bits) - 1);
    m->pdpte_cr3 = NO_PDPTES;
    mmu_version_kernel_new(m);
    c->tcg->mmu = m;
    context_apply(c);
    mmu_map_listen();
    return true;
}

void tcg_mmu_fini(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;

    c->tcg->mmu = NULL;
    mmu_free(m);
}
