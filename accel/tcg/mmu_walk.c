/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page walk: 32-bit, PAE and 4-level paging (SDM 3A 4.3 to 4.5). A walk only reads; when the
 * access is known to be allowed, accessed and dirty flags are set with compare-and-exchange on
 * guest memory, and the walk is made again if another CPU or device changed an entry meanwhile.
 * Tables in memory that does not exist read as all ones, as a bus with nobody on it does.
 */
#include "accel/tcg/mmu.h"

/* ---- Guest-physical memory ---- */

static bool range_load(hwaddr phys, MmuRange *out)
{
    FlatRange fr;
    RAMBlock *rb;

    if (!address_space_lookup(&address_space_memory, phys, &fr)) {
        return false;
    }
    *out = (MmuRange){ .addr = fr.addr, .size = fr.size };
    rb = fr.mr->ram;
    if (rb && (fr.mr->kind == REGION_RAM || fr.mr->kind == REGION_ROMD)) {
        out->host = rb->host + fr.offset;
        out->rb = rb;
        out->rb_off = fr.offset;
        out->writable =
            fr.mr->kind == REGION_RAM && !fr.readonly && !(rb->flags & RAM_ROM);
    }
    return true;
}

const MmuRange *mmu_range(X86CPU *c, hwaddr phys)
{
    struct TcgMmu *m = c->tcg->mmu;
    MmuRange r;

    for (unsigned n = 0; n < MMU_RANGES; n++) {
        if (phys - m->range[n].addr < m->range[n].size) {
            return &m->range[n];
        }
    }
    if (!range_load(phys, &r)) {
        return NULL;
    }
    m->range[m->range_next] = r;
    m->range_next = (m->range_next + 1) % MMU_RANGES;
    return &m->range[(m->range_next + MMU_RANGES - 1) % MMU_RANGES];
}

/* Host address of a table entry if it lies in RAM or ROM. */
static uint8_t *pte_host(X86CPU *c, hwaddr addr, unsigned size, const MmuRange **out)
{
    const MmuRange *r = mmu_range(c, addr);

    *out = r;
    if (!r || !r->host || r->size - (addr - r->addr) < size) {
        return NULL;
    }
    return r->host + (addr - r->addr);
}

static uint64_t pte_load(X86CPU *c, hwaddr addr, unsigned size)
{
    const MmuRange *r;
    uint8_t *host = pte_host(c, addr, size, &r);

    if (unlikely(!host)) {
        return address_space_load(&address_space_memory, addr, size);
    }
    return size == 8 ? __atomic_load_n((uint64_t *)host, __ATOMIC_ACQUIRE)
                     : __atomic_load_n((uint32_t *)host, __ATOMIC_ACQUIRE);
}

/* Tables hold neither code nor a picture as a rule: the common case is two loads. */
static void pte_written(const MmuRange *r, hwaddr addr, unsigned size)
{
    RAMBlock *rb = r->rb;
    uint64_t off = r->rb_off + (addr - r->addr);

    if (atomic_load_explicit(&rb->dirty_clients, memory_order_relaxed) ||
        atomic_load_explicit(&rb->code_map[off >> TARGET_PAGE_BITS], memory_order_relaxed)) {
        ram_block_written(rb, off, size);
    }
}

static bool pte_set_bits(X86CPU *c, MmuPte *p, unsigned size, uint64_t bits)
{
    const MmuRange *r;
    uint8_t *host;
    bool ok;

    if ((p->value & bits) == bits) {
        return true;
    }
    host = pte_host(c, p->addr, size, &r);
    if (!host || !r->writable) {
        /* ROM ignores the write; a table in a device's registers gets it. */
        address_space_store(&address_space_memory, p->addr, p->value | bits, size);
        return true;
    }
    if (size == 8) {
        uint64_t old = p->value;
        ok = __atomic_compare_exchange_n((uint64_t *)host, &old, old | bits, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    } else {
        uint32_t old = (uint32_t)p->value;
        ok = __atomic_compare_exchange_n((uint32_t *)host, &old, old | (uint32_t)bits, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (ok) {
        p->value |= bits;
        pte_written(r, p->addr, size);
    }
    return ok;
}

bool mmu_walk_commit(X86CPU *c, MmuWalk *w, bool write)
{
    for (unsigned n = 0; n < w->depth; n++) {
        uint64_t bits = PTE_A;

        if (n + 1 == w->depth && write) {
            bits |= PTE_D;
        }
        if (!pte_set_bits(c, &w->pte[n], w->pte_size, bits)) {
            return false;
        }
    }
    w->dirty |= write;
    return true;
}

/* ---- The tables ---- */

static uint64_t walk_read(X86CPU *c, MmuWalk *w, hwaddr table, unsigned index)
{
    hwaddr addr = mmu_a20(table + index * w->pte_size);
    uint64_t e = pte_load(c, addr, w->pte_size);

    w->pte[w->depth++] = (MmuPte){ .value = e, .addr = addr };
    return e;
}

static void walk_accumulate(MmuWalk *w, uint64_t e)
{
    w->w &= !!(e & PTE_W);
    w->u &= !!(e & PTE_U);
    w->nx |= !!(e & PTE_NX);
}

static WalkResult walk_leaf(MmuWalk *w, uint64_t e, unsigned bits, hwaddr base)
{
    w->page_bits = bits;
    w->phys = base + (w->lin & ((1ull << bits) - 1) & TARGET_PAGE_MASK);
    w->global = !!(e & PTE_G);
    w->dirty = !!(e & PTE_D);
    w->pkey = (e >> 59) & 15;
    return WALK_OK;
}

/* 32-bit paging (SDM 3A 4.3): two levels, 4 MiB pages with CR4.PSE, 40-bit ones with PSE-36. */
static WalkResult walk_32(X86CPU *c, MmuWalk *w)
{
    uint64_t e;

    w->pte_size = 4;
    e = walk_read(c, w, c->cr3 & 0xfffff000, (w->lin >> 22) & 1023);
    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    walk_accumulate(w, e);
    if ((e & PTE_PS) && (c->cr4 & CR4_PSE)) {
        /* Bits 20:13 are address bits 39:32 as far as there are any; the rest up to bit 21 is
         * reserved (SDM 3A table 4-4). */
        unsigned high = x86_has(c, X86F_PSE36) ? MIN(40u, MAX(c->phys_bits, 32)) - 32 : 0;

        if (e & (0x3fe000 & ~(((1ull << high) - 1) << 13))) {
            return WALK_RESERVED;
        }
        return walk_leaf(w, e, 22, (e & 0xffc00000) | ((e >> 13 & ((1ull << high) - 1)) << 32));
    }
    e = walk_read(c, w, e & 0xfffff000, (w->lin >> 12) & 1023);
    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    walk_accumulate(w, e);
    return walk_leaf(w, e, 12, e & 0xfffff000);
}

/* The two lowest levels of PAE and 4-level paging. */
static WalkResult walk_64_low(X86CPU *c, MmuWalk *w, hwaddr table, uint64_t reserved)
{
    uint64_t e = walk_read(c, w, table, (w->lin >> 21) & 511);

    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    if (unlikely(e & reserved)) {
        return WALK_RESERVED;
    }
    walk_accumulate(w, e);
    if (e & PTE_PS) {
        if (unlikely(e & 0x1fe000)) {
            return WALK_RESERVED;
        }
        return walk_leaf(w, e, 21, e & PTE_ADDR & ~0x1fffffull);
    }
    e = walk_read(c, w, e & PTE_ADDR, (w->lin >> 12) & 511);
    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    if (unlikely(e & reserved)) {
        return WALK_RESERVED;
    }
    walk_accumulate(w, e);
    return walk_leaf(w, e, 12, e & PTE_ADDR);
}

/* PAE paging (SDM 3A 4.4): the top level is four registers. */
static WalkResult walk_pae(X86CPU *c, MmuWalk *w, uint64_t reserved)
{
    uint64_t e = c->tcg->mmu->pdpte[(w->lin >> 30) & 3];

    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    /* Bits 62:52 are reserved here, where 4-level paging ignores them. */
    return walk_64_low(c, w, e & PTE_ADDR, reserved | 0x7ff0000000000000ull);
}

/* 4-level paging (SDM 3A 4.5). */
static WalkResult walk_4level(X86CPU *c, MmuWalk *w, uint64_t reserved)
{
    uint64_t e = walk_read(c, w, c->cr3 & PTE_ADDR, (w->lin >> 39) & 511);

    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    if (unlikely(e & (reserved | PTE_PS))) {
        return WALK_RESERVED;
    }
    walk_accumulate(w, e);
    e = walk_read(c, w, e & PTE_ADDR, (w->lin >> 30) & 511);
    if (!(e & PTE_P)) {
        return WALK_NOT_PRESENT;
    }
    if (unlikely(e & reserved)) {
        return WALK_RESERVED;
    }
    walk_accumulate(w, e);
    if (e & PTE_PS) {
        if (!x86_has(c, X86F_PDPE1GB) || (e & 0x3fffe000)) {
            return WALK_RESERVED;
        }
        return walk_leaf(w, e, 30, e & PTE_ADDR & ~0x3fffffffull);
    }
    return walk_64_low(c, w, e & PTE_ADDR, reserved);
}

WalkResult mmu_walk(X86CPU *c, uint64_t lin, MmuWalk *w)
{
    uint64_t reserved = c->tcg->mmu->reserved;

    *w = (MmuWalk){ .lin = lin, .w = true, .u = true, .pte_size = 8 };
    if (!(c->cr0 & CR0_PG)) {
        w->page_bits = 12;
        w->phys = lin & TARGET_PAGE_MASK;
        w->dirty = true;
        return WALK_OK;
    }
    if (!(c->cr4 & CR4_PAE)) {
        return walk_32(c, w);
    }
    if (!(c->efer & EFER_NXE)) {
        reserved |= PTE_NX;
    }
    return (c->efer & EFER_LMA) ? walk_4level(c, w, reserved) : walk_pae(c, w, reserved);
}

bool mmu_load_pdptes(X86CPU *c, uint64_t cr3)
{
    struct TcgMmu *m = c->tcg->mmu;
    uint64_t e[4];

    for (unsigned n = 0; n < 4; n++) {
        e[n] = pte_load(c, mmu_a20((cr3 & 0xffffffe0) + n * 8), 8);
        /* SDM 3A table 4-8: bits 2:1, 8:5 and everything above MAXPHYADDR. */
        if ((e[n] & PTE_P) && (e[n] & (m->reserved | 0xfff00000000001e6ull))) {
            return false;
        }
    }
    for (unsigned n = 0; n < 4; n++) {
        m->pdpte[n] = e[n];
    }
    m->pdpte_cr3 = cr3;
    return true;
}

/* ---- Rights (SDM 3A 4.6) ---- */

unsigned mmu_walk_rights(const X86CPU *c, const MmuWalk *w, unsigned mode, int access, bool *pk)
{
    bool user = mode == TLB_USER;
    bool wp = user || (c->cr0 & CR0_WP);
    unsigned rights = 0;

    *pk = false;
    if (!(c->cr0 & CR0_PG)) {
        return RIGHT(ACC_READ) | RIGHT(ACC_WRITE) | RIGHT(ACC_EXEC);
    }
    if (user ? w->u : !(w->u && mode == TLB_KERNEL)) {
        rights = RIGHT(ACC_READ) | (w->w || !wp ? RIGHT(ACC_WRITE) : 0);
    }
    if (!w->nx && (user ? w->u : !(w->u && (c->cr4 & CR4_SMEP)))) {
        rights |= RIGHT(ACC_EXEC);
    }
    if (w->u && (c->cr4 & CR4_PKE) && (c->efer & EFER_LMA)) {
        unsigned key = c->pkru >> (2 * w->pkey) & 3;

        if (key & 1) {
            rights &= RIGHT(ACC_EXEC);
            *pk = access != ACC_EXEC;
        } else if ((key & 2) && wp) {
            rights &= ~RIGHT(ACC_WRITE);
            *pk = access == ACC_WRITE;
        }
    }
    return rights;
}

/* ---- From host addresses ---- */

static void ram_of(RAMBlock *rb, void *opaque)
{
    struct {
        const uint8_t *host;
        RAMBlock *rb;
    } *q = opaque;

    if (q->host >= rb->host && q->host < rb->host + rb->size) {
        q->rb = rb;
    }
}

RAMBlock *mmu_ram_of(const void *host)
{
    struct {
        const uint8_t *host;
        RAMBlock *rb;
    } q = { host, NULL };

    ram_block_foreach(ram_of, &q);
    return q.rb;
}
