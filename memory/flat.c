/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flattening the tree into a table, and telling listeners what changed. Positions are 128-bit
 * while flattening, as an alias may put the start of its target below zero and 2^64 is an end.
 */
#include <stdlib.h>
#include <string.h>
#include "memory-internal.h"

typedef __int128 pos_t;

#define MAX_DEPTH 64 /* of containers and aliases; more is a loop in the tree */

typedef struct Render {
    FlatRange *r;
    uint32_t n, capacity;
} Render;

static pos_t region_length(const MemoryRegion *mr)
{
    return mr->size == UINT64_MAX ? (pos_t)1 << 64 : (pos_t)mr->size;
}

static pos_t range_end(const FlatRange *r)
{
    return (pos_t)flat_range_last(r) + 1;
}

static void render_insert(Render *out, uint32_t at, const FlatRange *r)
{
    if (out->n == out->capacity) {
        out->capacity = out->capacity ? out->capacity * 2 : 64;
        out->r = realloc(out->r, out->capacity * sizeof(*out->r));
        if (!out->r) {
            abort();
        }
    }
    memmove(out->r + at + 1, out->r + at, (out->n - at) * sizeof(*out->r));
    out->r[at] = *r;
    out->n++;
}

/* Puts mr, whose offset 0 is at base, where nothing of higher priority is in [lo, hi). */
static void render_leaf(Render *out, MemoryRegion *mr, pos_t base, pos_t lo, pos_t hi,
                        bool readonly)
{
    uint32_t i = 0;

    while (i < out->n && range_end(&out->r[i]) <= lo) {
        i++;
    }
    while (lo < hi) {
        if (i < out->n && (pos_t)out->r[i].addr <= lo) {
            lo = range_end(&out->r[i++]);
            continue;
        }
        pos_t end = i < out->n && (pos_t)out->r[i].addr < hi ? (pos_t)out->r[i].addr : hi;
        pos_t size = end - lo;
        FlatRange r = {
            .addr = (hwaddr)lo,
            .size = size > UINT64_MAX ? UINT64_MAX : (uint64_t)size,
            .mr = mr,
            .offset = (uint64_t)(lo - base) + mr->ram_offset,
            .readonly = readonly,
        };
        render_insert(out, i++, &r);
        lo = end;
    }
}

static void render(Render *out, MemoryRegion *mr, pos_t base, pos_t lo, pos_t hi, bool readonly,
                   unsigned depth)
{
    if (!mr->enabled || depth > MAX_DEPTH) {
        return;
    }
    lo = MAX(lo, base);
    hi = MIN(hi, base + region_length(mr));
    if (lo >= hi) {
        return;
    }
    readonly |= mr->readonly;
    if (mr->kind == REGION_ALIAS) {
        render(out, mr->alias, base - (pos_t)mr->alias_offset, lo, hi, readonly, depth + 1);
        return;
    }
    for (MemoryRegion *c = mr->first_child; c; c = c->next_sibling) {
        render(out, c, base + (pos_t)c->addr, lo, hi, readonly, depth + 1);
    }
    if (mr->kind != REGION_CONTAINER) {
        bool rom = mr->kind == REGION_RAM && (mr->ram->flags & RAM_ROM);
        render_leaf(out, mr, base, lo, hi, readonly || rom);
    }
}

static bool is_ram(const FlatRange *r)
{
    return r->mr->kind == REGION_RAM;
}

/* The same thing behind both, so that they differ in place only. */
static bool same_target(const FlatRange *a, const FlatRange *b)
{
    return a->readonly == b->readonly &&
           (is_ram(a) && is_ram(b) ? a->mr->ram == b->mr->ram : a->mr == b->mr);
}

bool flat_range_equal(const FlatRange *a, const FlatRange *b)
{
    return a->addr == b->addr && a->size == b->size && a->offset == b->offset &&
           same_target(a, b);
}

static void merge_adjacent(Render *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < out->n; i++) {
        FlatRange *last = n ? &out->r[n - 1] : NULL;
        const FlatRange *r = &out->r[i];
        if (last && range_end(last) == (pos_t)r->addr && same_target(last, r) &&
            last->offset + last->size == r->offset) {
            last->size += r->size;
        } else {
            out->r[n++] = *r;
        }
    }
    out->n = n;
}

FlatView *flatview_build(AddressSpace *as)
{
    static uint64_t gen; /* guarded by the MEMMAP lock */
    Render out = { 0 };

    render(&out, &as->root, 0, 0, (pos_t)1 << 64, false, 0);
    merge_adjacent(&out);
    FlatView *v = malloc(sizeof(*v) + out.n * sizeof(FlatRange));
    if (!v) {
        abort();
    }
    v->gen = ++gen;
    v->n = out.n;
    if (out.n) {
        memcpy(v->r, out.r, out.n * sizeof(FlatRange));
    }
    free(out.r);
    return v;
}

/* ---- Publication ---- */

/* Calls fn for each range of a that is not in b; both are sorted. */
static void for_difference(MemoryListener *l, const FlatView *a, const FlatView *b,
                           void (*fn)(MemoryListener *l, const FlatRange *r))
{
    uint32_t j = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        while (j < b->n && b->r[j].addr < a->r[i].addr) {
            j++;
        }
        if (j == b->n || !flat_range_equal(&a->r[i], &b->r[j])) {
            fn(l, &a->r[i]);
        }
    }
}

static bool views_equal(const FlatView *a, const FlatView *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        /* The region itself too: readers go through it. */
        if (a->r[i].mr != b->r[i].mr || !flat_range_equal(&a->r[i], &b->r[i])) {
            return false;
        }
    }
    return true;
}

void flatview_publish(AddressSpace *as, FlatView *now)
{
    FlatView *old = atomic_load(&as->view);

    if (views_equal(old, now)) {
        free(now);
        return;
    }
    for (MemoryListener *l = as->listeners; l; l = l->next) {
        if (l->begin) {
            l->begin(l);
        }
        if (l->range_del) {
            for_difference(l, old, now, l->range_del);
        }
        if (l->range_add) {
            for_difference(l, now, old, l->range_add);
        }
    }
    atomic_store_explicit(&as->view, now, memory_order_release);
    for (MemoryListener *l = as->listeners; l; l = l->next) {
        if (l->commit) {
            l->commit(l);
        }
    }
    memory_defer_free(&old->retired);
}
