/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The block cache of a vCPU: look-up by physical place, staleness, decoding of a run of
 * instructions, eviction. See engine.h for the layout.
 */
#include <errno.h>
#include <string.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/jit.h"
#include "qemu/log.h"

static size_t align_up(size_t n)
{
    return ROUND_UP(n, 64);
}

/*
 * One mapping. A third of it is headers: then they and the records of blocks of usual length run out
 * together.
 */
bool tcg_blocks_init(X86CPU *c, TcgEngine *g, uint64_t cache_size, Error **errp)
{
    size_t headers = align_up(cache_size / 3);
    size_t hash = sizeof(TcgBlock *) << HASH_BITS;
    size_t jump = sizeof(TcgBlock *) << JUMP_CACHE_BITS;
    uint8_t *p;

    g->header_count = (uint32_t)(headers / sizeof(TcgBlock));
    g->arena_size = (uint32_t)align_up(cache_size - headers);
    g->map_size = headers + hash + jump + g->arena_size;
    g->map = tcg_map(g->map_size);
    if (!g->map) {
        tcg_no_memory(c, "decoded code", g->map_size, errp);
        return false;
    }
    p = g->map;
    g->headers = (TcgBlock *)p;
    g->hash = (TcgBlock **)(p + headers);
    g->jump = (TcgBlock **)(p + headers + hash);
    g->arena = p + headers + hash + jump;
    g->none.rip = UINT64_MAX;
    g->none.next[0] = g->none.next[1] = &g->none;
    g->prev = &g->none;
    return true;
}

uint64_t tcg_blocks_bytes(uint64_t cache_size)
{
    return cache_size + (sizeof(TcgBlock *) << HASH_BITS) + (sizeof(TcgBlock *) << JUMP_CACHE_BITS);
}

void tcg_blocks_fini(TcgEngine *g)
{
    tcg_unmap(g->map, g->map_size);
}

/* ---- Hash by place ---- */

static TcgBlock **hash_slot(TcgEngine *g, const uint8_t *host, uint64_t rip, uint32_t mode)
{
    uint64_t h = ((uintptr_t)host + (rip << 20) + mode) * 0x9e3779b97f4a7c15ull;

    return &g->hash[h >> (64 - HASH_BITS)];
}

static void hash_remove(TcgBlock *b)
{
    if (b->hash_prev) {
        *b->hash_prev = b->hash_next;
        if (b->hash_next) {
            b->hash_next->hash_prev = b->hash_prev;
        }
        b->hash_prev = NULL;
    }
    if (b->jit) {
        jit_kill(b->jit);
    }
    b->host = NULL;
}

static void hash_add(TcgEngine *g, TcgBlock *b)
{
    TcgBlock **slot = hash_slot(g, b->host, b->rip, b->mode);

    b->hash_next = *slot;
    b->hash_prev = slot;
    if (*slot) {
        (*slot)->hash_prev = &b->hash_next;
    }
    *slot = b;
}

/* ---- Room for a new block ---- */

static void evict_oldest(TcgEngine *g)
{
    hash_remove(&g->headers[g->tail]);
    g->tail = (g->tail + 1) % g->header_count;
    g->used--;
    g->evicted++;
}

/* Evicts, oldest first, what has data in [from, from + size); they are the oldest by design. */
static void evict_range(TcgEngine *g, uint32_t from, uint32_t size)
{
    while (g->used) {
        const TcgBlock *b = &g->headers[g->tail];

        if (b->data + b->data_size <= from || b->data >= from + size) {
            break;
        }
        evict_oldest(g);
    }
}

static TcgBlock *block_alloc(TcgEngine *g, uint32_t size)
{
    TcgBlock *b;

    if (g->used == g->header_count) {
        evict_oldest(g);
    }
    if (g->fill + size > g->arena_size) {
        evict_range(g, g->fill, g->arena_size - g->fill);
        g->fill = 0;
    }
    evict_range(g, g->fill, size);
    b = &g->headers[g->head];
    g->head = (g->head + 1) % g->header_count;
    g->used++;
    memset(b, 0, sizeof(*b));
    b->data = g->fill;
    b->data_size = size;
    b->next[0] = b->next[1] = &g->none;
    g->fill += size;
    return b;
}

/* ---- Where code is ---- */

static CodePlace code_place(X86CPU *c, uint64_t lin)
{
    const TlbEntry *e = tcg_fetch_entry(c, lin);
    CodePlace p = { .phys = tlb_more(e)->phys + (lin & ~TARGET_PAGE_MASK) };

    if (likely(tlb_more(e)->rb)) {
        p.rb = tlb_more(e)->rb;
        p.host = tlb_host(e, lin);
        p.off = (uint64_t)(p.host - tlb_more(e)->rb->host);
    }
    return p;
}

static _Atomic uint32_t *code_gen_of(const RAMBlock *rb, uint64_t off)
{
    return &rb->code_gen[off >> TARGET_PAGE_BITS];
}

/* ---- Staleness ---- */

static bool code_equal(const TcgBlock *b)
{
    return memcmp(b->code, b->host, b->len1) == 0 &&
           (!b->cross || memcmp(b->code + b->len1, b->host2, b->len - b->len1) == 0);
}

static bool block_fresh(const TcgBlock *b)
{
    return b->gen == atomic_load(b->gen_ptr) &&
           (!b->cross || b->gen2 == atomic_load(b->gen2_ptr));
}

static bool code_mark(TcgBlock *b)
{
    return ram_block_code_mark(b->rb, b->off, b->len1, &b->gen) &&
           (!b->cross || ram_block_code_mark(b->rb2, b->off2, b->len - b->len1, &b->gen2));
}

/*
 * A new block, or somebody wrote code in its page: perhaps not this block's. The mark first, then
 * the bytes: a store after the mark moves the generation on. False: to be decoded (again). *once:
 * a store is hitting the page now, so the block is good for one execution.
 */
static bool block_stamp(TcgEngine *g, TcgBlock *b, bool *once)
{
    *once = !code_mark(b);
    if (!code_equal(b)) {
        g->stale++;
        hash_remove(b);
        return false;
    }
    if (*once) {
        b->gen = atomic_load(b->gen_ptr) - 1;
    }
    if (b->jit) {
        jit_restamp(b);
    }
    return true;
}

TcgBlock *tcg_block_beside(TcgEngine *g, const TcgBlock *b, uint64_t rip)
{
    const uint8_t *host = b->host + (int64_t)(rip - b->rip);
    TcgBlock *to = *hash_slot(g, host, rip, b->mode);

    while (to && !(to->host == host && to->rip == rip && to->mode == b->mode)) {
        to = to->hash_next;
    }
    return to && !to->cross && to->gen == b->gen ? to : NULL;
}

/* ---- Decoding a block ---- */

/* The bytes of one instruction whose first avail bytes in this page are not enough. */
static unsigned fetch_across(X86CPU *c, TcgEngine *g, const CodePlace *p, uint64_t lin,
                             unsigned avail, CodePlace *second)
{
    uint64_t lin2 = (lin & TARGET_PAGE_MASK) + TARGET_PAGE_SIZE;
    unsigned want = INSN_MAX_LEN - avail;

    memcpy(g->bytes, p->host, avail);
    *second = code_place(c, likely(c->tcg->mode_key & MODE_CS64) ? lin2 : (uint32_t)lin2);
    if (second->host) {
        memcpy(g->bytes + avail, second->host, want);
    } else {
        address_space_read(&address_space_memory, second->phys, g->bytes + avail, want);
    }
    return avail + want;
}

/* Decodes into g->scratch; returns the number of instructions, *len their bytes. */
static unsigned decode_run(X86CPU *c, TcgEngine *g, uint32_t mode, const CodePlace *p,
                           unsigned room, unsigned *len)
{
    unsigned max = mode & MODE_STEP ? 1 : BLOCK_MAX_INSNS;
    unsigned n = 0, pos = 0;

    while (n < max && pos < room) {
        unsigned avail = MIN(room - pos, INSN_MAX_LEN);
        Insn *out = &g->scratch[n];

        memcpy(g->bytes + pos, p->host + pos, avail);
        if (tcg_decode_one(c, g, mode, g->bytes + pos, avail, c->rip + pos, pos, out) !=
            DECODE_OK) {
            break;
        }
        pos += out->len;
        n++;
        if (g->decode.ends_block || pos + INSN_MAX_LEN > sizeof(g->bytes)) {
            break;
        }
    }
    *len = pos;
    return n;
}

static void insn_end_record(Insn *out, unsigned off)
{
    memset(out, 0, sizeof(*out));
    out->fn = tcg_insn_end;
    out->off = (uint16_t)off;
}

/* Takes over g->scratch[0..n) and g->bytes[0..len). */
static TcgBlock *block_make(X86CPU *c, TcgEngine *g, uint32_t mode, const CodePlace *p, unsigned n,
                            unsigned len)
{
    size_t insns = (n + 1) * sizeof(Insn);
    TcgBlock *b = block_alloc(g, (uint32_t)align_up(insns + len));

    insn_end_record(&g->scratch[n], len);
    b->insn = (Insn *)(g->arena + b->data);
    b->code = g->arena + b->data + insns;
    memcpy(b->insn, g->scratch, insns);
    memcpy(b->code, g->bytes, len);
    b->rip = c->rip;
    b->mode = mode;
    b->last = c->rip + len - 1;
    b->n = (uint16_t)n;
    b->len = b->len1 = (uint16_t)len;
    b->host = p->host;
    b->rb = p->rb;
    b->off = p->off;
    b->gen_ptr = code_gen_of(p->rb, p->off);
    g->decoded += n;
    if (qemu_loglevel_mask(LOG_IN_ASM)) {
        tcg_log_block(c, g, mode, b->insn, n, b->code);
    }
    return b;
}

/* Not RAM behind it (or behind its second half): decoded at each execution. */
static TcgBlock *block_uncached(X86CPU *c, TcgEngine *g, uint32_t mode, unsigned avail)
{
    TcgBlock *b = &g->uncached;
    unsigned n = tcg_decode_one(c, g, mode, g->bytes, avail, c->rip, 0, &g->uncached_insn[0]) ==
                 DECODE_OK;

    /* 15 bytes always decide. */
    if (!n) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    insn_end_record(&g->uncached_insn[1], g->uncached_insn[0].len);
    b->rip = c->rip;
    b->mode = mode;
    b->insn = g->uncached_insn;
    b->n = 1;
    b->len = g->uncached_insn[0].len;
    b->last = c->rip + b->len - 1;
    b->host = NULL;
    b->next[0] = b->next[1] = &g->none;
    return b;
}

static TcgBlock *decode_uncached(X86CPU *c, TcgEngine *g, uint32_t mode, const CodePlace *p,
                                 uint64_t lin)
{
    unsigned room = (unsigned)(TARGET_PAGE_SIZE - (lin & ~TARGET_PAGE_MASK));
    unsigned avail = MIN(room, INSN_MAX_LEN);
    CodePlace second;

    address_space_read(&address_space_memory, p->phys, g->bytes, avail);
    if (avail < INSN_MAX_LEN &&
        tcg_decode_one(c, g, mode, g->bytes, avail, c->rip, 0, &g->scratch[0]) != DECODE_OK) {
        CodePlace first = { .host = g->bytes };

        avail = fetch_across(c, g, &first, lin, avail, &second);
    }
    return block_uncached(c, g, mode, avail);
}

/* A single instruction over the page's end. */
static TcgBlock *decode_across(X86CPU *c, TcgEngine *g, uint32_t mode, const CodePlace *p,
                               uint64_t lin, unsigned room)
{
    CodePlace second;
    unsigned avail = fetch_across(c, g, p, lin, room, &second);
    unsigned len;
    TcgBlock *b;

    if (!second.host) {
        return block_uncached(c, g, mode, avail);
    }
    if (tcg_decode_one(c, g, mode, g->bytes, avail, c->rip, 0, &g->scratch[0]) != DECODE_OK) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    len = g->scratch[0].len;
    b = block_make(c, g, mode, p, 1, len);
    if (len > room) {
        b->cross = true;
        b->len1 = (uint16_t)room;
        b->host2 = second.host;
        b->rb2 = second.rb;
        b->off2 = second.off;
        b->gen2_ptr = code_gen_of(second.rb, second.off);
    }
    return b;
}

static TcgBlock *block_decode(X86CPU *c, TcgEngine *g, uint32_t mode, const CodePlace *p,
                              uint64_t lin)
{
    unsigned room = (unsigned)(TARGET_PAGE_SIZE - (lin & ~TARGET_PAGE_MASK));

    for (;;) {
        bool once;
        unsigned len, n = decode_run(c, g, mode, p, room, &len);
        TcgBlock *b = n ? block_make(c, g, mode, p, n, len)
                        : decode_across(c, g, mode, p, lin, room);

        if (b == &g->uncached) {
            return b;
        }
        if (block_stamp(g, b, &once)) {
            if (!once) {
                hash_add(g, b);
            }
            return b;
        }
        /* Written while it was decoded: the header stays unused until its turn comes. */
    }
}

/* ---- Look-up ---- */

/*
 * The second page of an instruction may have been unmapped or mapped elsewhere meanwhile. It is looked at, which
 * may fault, only if the first still holds the beginning of an instruction that runs into it.
 */
static bool cross_in_place(X86CPU *c, const TcgBlock *b, uint64_t lin)
{
    uint64_t lin2 = (lin & TARGET_PAGE_MASK) + TARGET_PAGE_SIZE;

    if (b->gen != atomic_load(b->gen_ptr) && memcmp(b->code, b->host, b->len1) != 0) {
        return false;
    }
    return code_place(c, c->tcg->mode_key & MODE_CS64 ? lin2 : (uint32_t)lin2).host == b->host2;
}

static TcgBlock *block_find(X86CPU *c, uint32_t mode)
{
    TcgCpu *t = c->tcg;
    TcgEngine *g = t->engine;
    uint64_t lin = tcg_code_linear(t, c->rip);
    CodePlace p;
    TcgBlock *b, *next;
    bool once;

    if (unlikely(c->rip > t->cs_limit)) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    p = code_place(c, lin);
    if (unlikely(!p.host)) {
        return decode_uncached(c, g, mode, &p, lin);
    }
    for (b = *hash_slot(g, p.host, c->rip, mode); b; b = next) {
        next = b->hash_next;
        if (b->host == p.host && b->rip == c->rip && b->mode == mode) {
            if (unlikely(b->cross) && !cross_in_place(c, b, lin)) {
                hash_remove(b);
                break;
            }
            if (block_fresh(b) || block_stamp(g, b, &once)) {
                return b;
            }
            break;
        }
    }
    return block_decode(c, g, mode, &p, lin);
}

TcgBlock *tcg_block_get(X86CPU *c, uint32_t mode)
{
    TcgBlock *b = block_find(c, mode);

    /* The limit of CS is no part of the key. Near it, instructions go one by one. */
    if (unlikely(b->last > c->tcg->cs_limit) && !(mode & MODE_STEP)) {
        b = block_find(c, mode | MODE_STEP);
    }
    if (unlikely(b->last > c->tcg->cs_limit)) {
        tcg_raise_err(c, NULL, EXCP_GP, 0);
    }
    return b;
}
