/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slow half of guest memory access: TLB misses, MMIO and ROM, accesses over a page end, stores
 * into code, alignment and data breakpoints. Every page an access touches is translated, with all
 * its checks, before a byte of it is written.
 */
#include <string.h>
#include "accel/irqchip.h"
#include "accel/tcg/mmu.h"
#include "realtime/latency.h"

/* Serialises locked accesses that cannot be one host instruction: pages that lie apart. */
static QemuMutex split_lock;

void mem_init(void)
{
    qemu_mutex_init(&split_lock, LOCK_RANK_LEAF, "tcg-split-lock");
}

/* ---- Checks ---- */

/*
 * SDM 1 3.3.7.1: #SS when the address is formed through the stack, #GP otherwise. The memory
 * operand has its segment; the stack's implicit accesses are told by lying at the stack pointer.
 */
static QEMU_NORETURN void raise_non_canonical(X86CPU *c, const Insn *i, uint64_t lin)
{
    bool stack = false;

    if (i) {
        stack = i->seg == R_SS || lin - c->regs[R_RSP] + 64 <= 128;
    }
    tcg_raise_err(c, i, stack ? EXCP_SS : EXCP_GP, 0);
}

static inline void check_address(X86CPU *c, const Insn *i, uint64_t lin, unsigned len)
{
    if (unlikely(!mmu_canonical(lin) || !mmu_canonical(lin + len - 1))) {
        if (c->efer & EFER_LMA) {
            raise_non_canonical(c, i, lin);
        }
    }
}

static inline void check_alignment(X86CPU *c, const Insn *i, uint64_t lin, unsigned size)
{
    if (unlikely(c->tcg->mmu->align_check) && (lin & (size - 1))) {
        tcg_raise_err(c, i, EXCP_AC, 0);
    }
}

static inline void check_watch(X86CPU *c, uint64_t lin, unsigned len, bool write)
{
    if (unlikely(c->tcg->mmu->watch)) {
        c->tcg->db_pending |= mmu_watch_hits(c, lin, len, write);
    }
}

/* A store into code of the block under execution: that instruction again, in a block of its own,
 * so that what follows is decoded after the store. */
static void check_own_code(X86CPU *c, const Insn *i, const TlbEntry *e, RAMBlock *rb, uint64_t lin,
                           unsigned len)
{
    uint64_t map = atomic_load_explicit(e->code_map, memory_order_relaxed);
    uint64_t off = (uint64_t)(tlb_host(e, lin) - rb->host);
    unsigned first = (off & ~TARGET_PAGE_MASK) >> 6;
    unsigned last = ((off & ~TARGET_PAGE_MASK) + len - 1) >> 6;

    if (!i || !(map & (UINT64_MAX << first) & (UINT64_MAX >> (63 - last)))) {
        return;
    }
    if (!tcg_block_is_single(c) && tcg_block_uses_page(c, rb, off & TARGET_PAGE_MASK)) {
        tcg_leave_before(c, i, true);
    }
}

/* ---- One page ---- */

/* A part of an access: all of it in one page, translated. */
typedef struct Part {
    TlbEntry e;
    TlbMore m;
    uint64_t lin;
    unsigned len;
} Part;

static inline void part_take(Part *p, const TlbEntry *e)
{
    p->e = *e;
    p->m = *tlb_more(e);
}

static inline uint8_t *part_host(const Part *p)
{
    return tlb_host(&p->e, p->lin);
}

static inline hwaddr part_phys(const Part *p)
{
    return p->m.phys | (p->lin & ~TARGET_PAGE_MASK);
}

static inline bool part_is_ram_w(const Part *p)
{
    return p->m.rb && (p->m.flags & TLBF_RAM_W);
}

/* Only aligned 32-bit accesses to the local APIC are defined (SDM 3A 11.4.1). */
static uint32_t apic_load(const Part *p)
{
    return p->len == 4 && !(p->lin & 3)
               ? irqchip->mmio_read(current_cpu, (uint32_t)(p->lin & ~TARGET_PAGE_MASK))
               : UINT32_MAX;
}

static void apic_store(const Part *p, uint32_t v)
{
    if (p->len == 4 && !(p->lin & 3)) {
        irqchip->mmio_write(current_cpu, (uint32_t)(p->lin & ~TARGET_PAGE_MASK), v);
    }
}

static void part_load(const Part *p, void *buf)
{
    if (p->m.rb) {
        memcpy(buf, part_host(p), p->len);
    } else if (p->m.flags & TLBF_APIC) {
        uint32_t v = apic_load(p);

        memset(buf, 0xff, p->len);
        memcpy(buf, &v, MIN(p->len, 4u));
    } else {
        address_space_read(&address_space_memory, part_phys(p), buf, p->len);
    }
}

static void part_stored(const Part *p)
{
    atomic_signal_fence(memory_order_seq_cst); /* the store comes first; see tlb.h */
    if (unlikely(atomic_load_explicit(p->e.code_map, memory_order_relaxed))) {
        ram_block_code_hit(p->m.rb, (uint64_t)(part_host(p) - p->m.rb->host), p->len);
    }
}

static void part_store(const Part *p, const void *buf)
{
    if (part_is_ram_w(p)) {
        memcpy(part_host(p), buf, p->len);
        part_stored(p);
    } else if (p->m.flags & TLBF_APIC) {
        uint32_t v = 0;

        memcpy(&v, buf, MIN(p->len, 4u));
        apic_store(p, v);
    } else {
        address_space_write(&address_space_memory, part_phys(p), buf, p->len);
    }
}

static inline uint64_t host_load(const void *h, unsigned size)
{
    switch (size) {
    case 1:
        return *(const volatile guest8 *)h;
    case 2:
        return *(const volatile guest16 *)h;
    case 4:
        return *(const volatile guest32 *)h;
    default:
        return *(const volatile guest64 *)h;
    }
}

static inline void host_store(void *h, uint64_t v, unsigned size)
{
    switch (size) {
    case 1:
        *(volatile guest8 *)h = (uint8_t)v;
        break;
    case 2:
        *(volatile guest16 *)h = (uint16_t)v;
        break;
    case 4:
        *(volatile guest32 *)h = (uint32_t)v;
        break;
    default:
        *(volatile guest64 *)h = v;
    }
}

static uint64_t part_load_int(const Part *p)
{
    if (!p->m.rb) {
        if (unlikely(p->m.flags & TLBF_APIC)) {
            return apic_load(p);
        }
        uint64_t sample = latency_sample_begin();
        uint64_t v = address_space_load(&address_space_memory, part_phys(p), p->len);

        latency_sample_end(LATENCY_EXIT_MMIO, sample);
        return v;
    }
    return host_load(part_host(p), p->len);
}

static void part_store_int(const Part *p, uint64_t v)
{
    if (!part_is_ram_w(p)) {
        if (unlikely(p->m.flags & TLBF_APIC)) {
            apic_store(p, (uint32_t)v);
            return;
        }
        uint64_t sample = latency_sample_begin();

        address_space_store(&address_space_memory, part_phys(p), v, p->len);
        latency_sample_end(LATENCY_EXIT_MMIO, sample);
        return;
    }
    host_store(part_host(p), v, p->len);
    part_stored(p);
}

/* ---- Splitting at page ends ---- */

/* Translates an access of at most one page's length; returns the number of parts, 1 or 2. */
static unsigned parts_make(X86CPU *c, const Insn *i, uint64_t lin, unsigned len, int access,
                           unsigned mode, Part p[2])
{
    unsigned left = (unsigned)(TARGET_PAGE_SIZE - (lin & ~TARGET_PAGE_MASK));
    unsigned n = len <= left ? 1 : 2;

    check_address(c, i, lin, len);
    p[0].lin = lin;
    p[0].len = MIN(len, left);
    part_take(&p[0], mmu_translate(c, i, lin, access, mode));
    if (n == 2) {
        p[1].lin = mem_add(c, lin, left);
        p[1].len = len - left;
        part_take(&p[1], mmu_translate(c, i, p[1].lin, access, mode));
    }
    if (access == ACC_WRITE) {
        for (unsigned k = 0; k < n; k++) {
            if (part_is_ram_w(&p[k])) {
                check_own_code(c, i, &p[k].e, p[k].m.rb, p[k].lin, p[k].len);
            }
        }
    }
    if (unlikely(!p[0].m.rb || (n == 2 && !p[1].m.rb))) {
        tcg_fp_sync(c); /* a device will run */
        tcg_count_exact(c, i);
    }
    check_watch(c, lin, len, access == ACC_WRITE);
    return n;
}

/* The entry for [lin, lin+size) of a mode other than the current one's, as tlb.h does. */
static inline const TlbEntry *mode_entry(const X86CPU *c, uint64_t lin, unsigned mode)
{
    return &c->tcg->mmu->table[mode][TLB_INDEX(lin)];
}

uint64_t mem_load(X86CPU *c, const Insn *i, uint64_t lin, unsigned size, unsigned mode)
{
    const TlbEntry *e = mode_entry(c, lin, mode);
    uint64_t v = 0;
    Part p[2];

    if (likely(((lin + size - 1) & TARGET_PAGE_MASK) == e->rtag)) {
        return host_load(tlb_host(e, lin), size);
    }
    if (likely(parts_make(c, i, lin, size, ACC_READ, mode, p) == 1)) {
        return part_load_int(&p[0]);
    }
    part_load(&p[0], &v);
    part_load(&p[1], (uint8_t *)&v + p[0].len);
    return v;
}

void mem_store(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size, unsigned mode)
{
    const TlbEntry *e = mode_entry(c, lin, mode);
    Part p[2];

    if (likely(((lin + size - 1) & TARGET_PAGE_MASK) == e->wtag &&
               atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {
        uint8_t *h = tlb_host(e, lin);

        host_store(h, v, size);
        if (unlikely(atomic_load_explicit(e->code_map, memory_order_relaxed))) {
            tlb_code_hit(e, lin, size);
        }
        return;
    }

    if (likely(parts_make(c, i, lin, size, ACC_WRITE, mode, p) == 1)) {
        part_store_int(&p[0], v);
        return;
    }
    part_store(&p[0], &v);
    part_store(&p[1], (uint8_t *)&v + p[0].len);
}

/* Leaves also for a store into the block's own code: what follows commits before it stores. */
static void probe_page(X86CPU *c, const Insn *i, uint64_t lin, unsigned len, int access,
                       unsigned mode)
{
    const TlbEntry *e = mmu_translate(c, i, lin, access, mode);

    if (access == ACC_WRITE && tlb_more(e)->rb && (tlb_more(e)->flags & TLBF_RAM_W)) {
        check_own_code(c, i, e, tlb_more(e)->rb, lin, len);
    }
}

void mem_probe(X86CPU *c, const Insn *i, uint64_t lin, unsigned len, int access, unsigned mode)
{
    unsigned left = (unsigned)(TARGET_PAGE_SIZE - (lin & ~TARGET_PAGE_MASK));

    check_address(c, i, lin, len);
    probe_page(c, i, lin, MIN(len, left), access, mode);
    if (len > left) {
        probe_page(c, i, mem_add(c, lin, left), len - left, access, mode);
    }
}

/* ---- The contract of interp.h ---- */

uint64_t tcg_ld_slow(X86CPU *c, const Insn *i, uint64_t lin, unsigned size)
{
    check_alignment(c, i, lin, size);
    return mem_load(c, i, lin, size, c->tcg->mmu->mode);
}

void tcg_st_slow(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size)
{
    check_alignment(c, i, lin, size);
    mem_store(c, i, lin, v, size, c->tcg->mmu->mode);
}

uint64_t tcg_ld_sys(X86CPU *c, const Insn *i, uint64_t lin, unsigned size)
{
    return mem_load(c, i, lin, size, mmu_mode_implicit(c));
}

void tcg_st_sys(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size)
{
    mem_store(c, i, lin, v, size, mmu_mode_implicit(c));
}

void tcg_ld_buf(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];
    Part p[2];

    if (likely(((lin + len - 1) & TARGET_PAGE_MASK) == e->rtag)) {
        memcpy(buf, tlb_host(e, lin), len);
        return;
    }
    if (parts_make(c, i, lin, len, ACC_READ, c->tcg->mmu->mode, p) == 2) {
        part_load(&p[1], (uint8_t *)buf + p[0].len);
    }
    part_load(&p[0], buf);
}

void tcg_st_buf(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned len)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];
    Part p[2];

    if (likely(((lin + len - 1) & TARGET_PAGE_MASK) == e->wtag &&
               atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {
        uint8_t *host = tlb_host(e, lin);

        memcpy(host, buf, len);
        atomic_signal_fence(memory_order_seq_cst);
        if (unlikely(atomic_load_explicit(e->code_map, memory_order_relaxed))) {
            ram_block_code_hit(tlb_more(e)->rb, (uint64_t)(host - tlb_more(e)->rb->host), len);
        }
        return;
    }
    if (parts_make(c, i, lin, len, ACC_WRITE, c->tcg->mmu->mode, p) == 2) {
        part_store(&p[1], (const uint8_t *)buf + p[0].len);
    }
    part_store(&p[0], buf);
}

void tcg_probe_write(X86CPU *c, const Insn *i, uint64_t lin, unsigned len)
{
    if (len <= 8 && !(len & (len - 1))) {
        check_alignment(c, i, lin, len);
    }
    mem_probe(c, i, lin, len, ACC_WRITE, c->tcg->mmu->mode);
}

void tcg_probe_read(X86CPU *c, const Insn *i, uint64_t lin, unsigned len)
{
    mem_probe(c, i, lin, len, ACC_READ, c->tcg->mmu->mode);
}

/* ---- Read-modify-write ---- */

static void *rmw_ready(X86CPU *c, uint8_t *host, RAMBlock *rb, _Atomic uint64_t *first,
                       _Atomic uint64_t *second, unsigned len)
{
    struct TcgCpu *t = c->tcg;

    t->rmw_map[0] = first;
    t->rmw_map[1] = second;
    t->rmw_rb = rb;
    t->rmw_off = (uint64_t)(host - rb->host);
    t->rmw_len = len;
    return host;
}

void *tcg_rmw_host(X86CPU *c, const Insn *i, uint64_t lin, unsigned len)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];
    Part p[2];
    unsigned n;

    if (likely(((lin + len - 1) & TARGET_PAGE_MASK) == e->wtag &&
               atomic_load_explicit(e->code_map, memory_order_relaxed) == 0)) {
        return rmw_ready(c, tlb_host(e, lin), tlb_more(e)->rb, e->code_map,
                         e->code_map, len);
    }
    check_alignment(c, i, lin, len);
    n = parts_make(c, i, lin, len, ACC_WRITE, c->tcg->mmu->mode, p);
    if (!part_is_ram_w(&p[0])) {
        return NULL;
    }
    if (n == 1) {
        return rmw_ready(c, part_host(&p[0]), p[0].m.rb, p[0].e.code_map, p[0].e.code_map, len);
    }
    if (!part_is_ram_w(&p[1]) || p[1].m.rb != p[0].m.rb ||
        part_host(&p[1]) != part_host(&p[0]) + p[0].len) {
        return NULL;
    }
    return rmw_ready(c, part_host(&p[0]), p[0].m.rb, p[0].e.code_map, p[1].e.code_map, len);
}

void tcg_rmw_code_hit(X86CPU *c)
{
    struct TcgCpu *t = c->tcg;
    unsigned left = (unsigned)(TARGET_PAGE_SIZE - (t->rmw_off & ~TARGET_PAGE_MASK));

    ram_block_code_hit(t->rmw_rb, t->rmw_off, MIN(left, t->rmw_len));
    if (left < t->rmw_len) {
        ram_block_code_hit(t->rmw_rb, t->rmw_off + left, t->rmw_len - left);
    }
}

/*
 * split_lock is held from begin to end, and only if an access lies in two pages: a condition in
 * data, which Clang's analysis cannot follow.
 */
NO_TSA void tcg_rmw_begin(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len)
{
    struct TcgMmu *m = c->tcg->mmu;
    unsigned n;
    Part p[2];

    check_alignment(c, i, lin, len);
    n = parts_make(c, i, lin, len, ACC_WRITE, m->mode, p);
    /* A device has its own lock and may not be called under this one; it is not shared memory. */
    m->rmw_locked = n == 2 && p[0].m.rb && p[1].m.rb;
    if (m->rmw_locked) {
        qemu_mutex_lock(&split_lock);
    }
    if (n == 1 && len <= 8) {
        uint64_t v = part_load_int(&p[0]);
        memcpy(buf, &v, len);
        return;
    }
    part_load(&p[0], buf);
    if (n == 2) {
        part_load(&p[1], (uint8_t *)buf + p[0].len);
    }
}

NO_TSA void tcg_rmw_end(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned len)
{
    struct TcgMmu *m = c->tcg->mmu;
    Part p[2];
    unsigned n = parts_make(c, i, lin, len, ACC_WRITE, m->mode, p);

    if (n == 1 && len <= 8) {
        uint64_t v = 0;
        memcpy(&v, buf, len);
        part_store_int(&p[0], v);
    } else {
        part_store(&p[0], buf);
        if (n == 2) {
            part_store(&p[1], (const uint8_t *)buf + p[0].len);
        }
    }
    if (m->rmw_locked) {
        m->rmw_locked = false;
        qemu_mutex_unlock(&split_lock);
    }
}
