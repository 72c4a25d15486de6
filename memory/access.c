/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Look-up in the published map, and accesses through it. Guest memory is little endian and so is
 * the host. Everything here is RT_SAFE: bounded by the length asked for.
 */
#include <string.h>
#include "memory-internal.h"

/* ---- Look-up ---- */

/* The ranges a thread hit last, by page or group of ports. Entries of an old map do not match. */
#define CACHE_SIZE 16
typedef struct LookupCache {
    uint64_t gen;
    uint32_t index;
} LookupCache;

static __thread LookupCache lookup_cache[2][CACHE_SIZE];

static bool range_holds(const FlatRange *r, hwaddr addr)
{
    return addr >= r->addr && addr <= flat_range_last(r);
}

/* Index of the first range that ends at or after addr; v->n if there is none. */
static uint32_t view_search(const FlatView *v, hwaddr addr)
{
    uint32_t lo = 0, hi = v->n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (flat_range_last(&v->r[mid]) < addr) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Inside the read lock. NULL if nothing is there. */
static const FlatRange *view_find(const AddressSpace *as, const FlatView *v, hwaddr addr)
{
    LookupCache *c =
        &lookup_cache[as->is_io][(as->is_io ? addr >> 2 : addr >> TARGET_PAGE_BITS) % CACHE_SIZE];

    if (likely(c->gen == v->gen && range_holds(&v->r[c->index], addr))) {
        return &v->r[c->index];
    }
    uint32_t i = view_search(v, addr);
    if (i == v->n || v->r[i].addr > addr) {
        return NULL;
    }
    c->gen = v->gen;
    c->index = i;
    return &v->r[i];
}

static const FlatView *view_get(AddressSpace *as)
{
    return atomic_load_explicit(&as->view, memory_order_acquire);
}

bool address_space_lookup(AddressSpace *as, hwaddr addr, FlatRange *out)
{
    const FlatRange *r = view_find(as, view_get(as), addr);
    if (r) {
        *out = *r;
    }
    return r != NULL;
}

void *address_space_map_ram(AddressSpace *as, hwaddr addr, uint64_t *len, bool write,
                            RAMBlock **rb, uint64_t *rb_offset)
{
    const FlatRange *r = view_find(as, view_get(as), addr);

    if (!r || !(r->mr->kind == REGION_RAM || (r->mr->kind == REGION_ROMD && !write)) ||
        (write && r->readonly)) {
        return NULL;
    }
    uint64_t offset = r->offset + (addr - r->addr);
    uint64_t left = flat_range_last(r) - addr; /* bytes after this one */
    if (*len && *len - 1 > left) {
        *len = left + 1;
    }
    if (rb) {
        *rb = r->mr->ram;
    }
    if (rb_offset) {
        *rb_offset = offset;
    }
    return r->mr->ram->host + offset;
}

/* ---- Device handlers: the size rules of MemoryRegionOps ---- */

static uint64_t ones(unsigned size)
{
    return size >= 8 ? UINT64_MAX : (1ull << (8 * size)) - 1;
}

typedef struct Limits {
    unsigned valid_min, valid_max, impl_min, impl_max;
} Limits;

static Limits ops_limits(const MemoryRegionOps *ops, bool is_io)
{
    unsigned max = is_io ? 4 : 8;
    return (Limits){
        .valid_min = ops->valid_min ? ops->valid_min : 1,
        .valid_max = ops->valid_max ? ops->valid_max : max,
        .impl_min = ops->impl_min ? ops->impl_min : 1,
        .impl_max = ops->impl_max ? ops->impl_max : max,
    };
}

/* The size of the next piece of an access of len bytes at offset: aligned, unless ops take all. */
static unsigned piece_size(const MemoryRegionOps *ops, hwaddr offset, uint64_t len, unsigned max)
{
    unsigned size = len >= max ? max : 1u << (31 - __builtin_clz((unsigned)len));
    while (!ops->unaligned && (offset & (size - 1))) {
        size /= 2;
    }
    return size;
}

/* One piece that piece_size() allowed. False: the device does not take this size. */
static bool piece_read(const MemoryRegion *mr, hwaddr offset, unsigned size, bool is_io,
                       uint64_t *value)
{
    const MemoryRegionOps *ops = mr->ops;
    Limits lim = ops_limits(ops, is_io);

    *value = ones(size);
    if (size < lim.valid_min || size > lim.valid_max || !ops->read) {
        return false;
    }
    if (size < lim.impl_min && (offset & (lim.impl_min - 1)) + size <= lim.impl_min) {
        hwaddr unit = offset & ~(hwaddr)(lim.impl_min - 1);
        uint64_t v = ops->read(mr->opaque, unit, lim.impl_min);
        *value = (v >> (8 * (offset - unit))) & ones(size);
        return true;
    }
    uint64_t v = 0;
    unsigned step = MIN(size, lim.impl_max);
    for (unsigned i = 0; i < size; i += step) {
        v |= (ops->read(mr->opaque, offset + i, step) & ones(step)) << (8 * i);
    }
    *value = v;
    return true;
}

static bool piece_write(const MemoryRegion *mr, hwaddr offset, unsigned size, bool is_io,
                        uint64_t value)
{
    const MemoryRegionOps *ops = mr->ops;
    Limits lim = ops_limits(ops, is_io);

    if (size < lim.valid_min || size > lim.valid_max || !ops->write) {
        return false;
    }
    value &= ones(size);
    if (size < lim.impl_min && (offset & (lim.impl_min - 1)) + size <= lim.impl_min) {
        hwaddr unit = offset & ~(hwaddr)(lim.impl_min - 1);
        ops->write(mr->opaque, unit, value << (8 * (offset - unit)), lim.impl_min);
        return true;
    }
    unsigned step = MIN(size, lim.impl_max);
    for (unsigned i = 0; i < size; i += step) {
        ops->write(mr->opaque, offset + i, (value >> (8 * i)) & ones(step), step);
    }
    return true;
}

static bool mmio_read(const MemoryRegion *mr, hwaddr offset, uint8_t *buf, uint64_t len, bool is_io)
{
    bool ok = true;

    while (len) {
        unsigned size = piece_size(mr->ops, offset, len, is_io ? 4 : 8);
        uint64_t v;
        ok &= piece_read(mr, offset, size, is_io, &v);
        memcpy(buf, &v, size);
        buf += size;
        offset += size;
        len -= size;
    }
    return ok;
}

static bool mmio_write(const MemoryRegion *mr, hwaddr offset, const uint8_t *buf, uint64_t len,
                       bool is_io)
{
    bool ok = true;

    while (len) {
        unsigned size = piece_size(mr->ops, offset, len, is_io ? 4 : 8);
        uint64_t v = 0;
        memcpy(&v, buf, size);
        ok &= piece_write(mr, offset, size, is_io, v);
        buf += size;
        offset += size;
        len -= size;
    }
    return ok;
}

/* ---- RAM: aligned accesses of a machine word's size are single-copy atomic ---- */

static bool is_atomic(const void *host, uint64_t len)
{
    return len <= 8 && (len & (len - 1)) == 0 && ((uintptr_t)host & (len - 1)) == 0;
}

static uint64_t ram_load(const void *host, unsigned size)
{
    switch (size) {
    case 1:
        return __atomic_load_n((const uint8_t *)host, __ATOMIC_RELAXED);
    case 2:
        return __atomic_load_n((const uint16_t *)host, __ATOMIC_RELAXED);
    case 4:
        return __atomic_load_n((const uint32_t *)host, __ATOMIC_RELAXED);
    default:
        return __atomic_load_n((const uint64_t *)host, __ATOMIC_RELAXED);
    }
}

static void ram_store(void *host, uint64_t v, unsigned size)
{
    switch (size) {
    case 1:
        __atomic_store_n((uint8_t *)host, (uint8_t)v, __ATOMIC_RELAXED);
        break;
    case 2:
        __atomic_store_n((uint16_t *)host, (uint16_t)v, __ATOMIC_RELAXED);
        break;
    case 4:
        __atomic_store_n((uint32_t *)host, (uint32_t)v, __ATOMIC_RELAXED);
        break;
    default:
        __atomic_store_n((uint64_t *)host, v, __ATOMIC_RELAXED);
        break;
    }
}

static void ram_copy_out(void *buf, const void *host, uint64_t len)
{
    if (len && is_atomic(host, len)) {
        uint64_t v = ram_load(host, (unsigned)len);
        memcpy(buf, &v, len);
    } else {
        memcpy(buf, host, len);
    }
}

static void ram_copy_in(void *host, const void *buf, uint64_t len)
{
    if (len && is_atomic(host, len)) {
        uint64_t v = 0;
        memcpy(&v, buf, len);
        ram_store(host, v, (unsigned)len);
    } else {
        memcpy(host, buf, len);
    }
}

/* ---- Accesses of any length ---- */

/* How much of [addr, addr+len) is in one range, or in one gap between ranges. */
static uint64_t span(const FlatView *v, const FlatRange *r, hwaddr addr, uint64_t len)
{
    hwaddr last = UINT64_MAX;

    if (r) {
        last = flat_range_last(r);
    } else {
        uint32_t i = view_search(v, addr);
        if (i < v->n) {
            last = v->r[i].addr - 1;
        }
    }
    return len - 1 > last - addr ? last - addr + 1 : len;
}

static bool range_read(const AddressSpace *as, const FlatRange *r, hwaddr addr, uint8_t *buf,
                       uint64_t len)
{
    uint64_t offset = r->offset + (addr - r->addr);

    if (r->mr->kind == REGION_IO) {
        return mmio_read(r->mr, offset, buf, len, as->is_io);
    }
    ram_copy_out(buf, r->mr->ram->host + offset, len);
    return true;
}

static bool range_write(const AddressSpace *as, const FlatRange *r, hwaddr addr,
                        const uint8_t *buf, uint64_t len, bool rom_too)
{
    uint64_t offset = r->offset + (addr - r->addr);
    RAMBlock *rb = r->mr->ram;

    if (r->mr->kind == REGION_IO || (r->mr->kind == REGION_ROMD && !rom_too)) {
        return mmio_write(r->mr, offset, buf, len, as->is_io);
    }
    if (!r->readonly || rom_too) {
        ram_copy_in(rb->host + offset, buf, len);
        ram_block_written(rb, offset, len);
    }
    return true;
}

MemTxResult address_space_read(AddressSpace *as, hwaddr addr, void *buf, uint64_t len)
{
    MemTxResult res = MEMTX_OK;
    uint8_t *p = buf;

    memory_read_lock();
    const FlatView *v = view_get(as);
    while (len) {
        const FlatRange *r = view_find(as, v, addr);
        uint64_t n = span(v, r, addr, len);
        if (!r) {
            memset(p, 0xff, n);
        }
        if (!r || !range_read(as, r, addr, p, n)) {
            res = MEMTX_DECODE_ERROR;
        }
        p += n;
        addr += n;
        len -= n;
    }
    memory_read_unlock();
    return res;
}

static MemTxResult write_common(AddressSpace *as, hwaddr addr, const void *buf, uint64_t len,
                                bool rom_too)
{
    MemTxResult res = MEMTX_OK;
    const uint8_t *p = buf;

    memory_read_lock();
    const FlatView *v = view_get(as);
    while (len) {
        const FlatRange *r = view_find(as, v, addr);
        uint64_t n = span(v, r, addr, len);
        if (!r || !range_write(as, r, addr, p, n, rom_too)) {
            res = MEMTX_DECODE_ERROR;
        }
        p += n;
        addr += n;
        len -= n;
    }
    memory_read_unlock();
    return res;
}

MemTxResult address_space_write(AddressSpace *as, hwaddr addr, const void *buf, uint64_t len)
{
    return write_common(as, addr, buf, len, false);
}

MemTxResult address_space_write_rom(AddressSpace *as, hwaddr addr, const void *buf, uint64_t len)
{
    return write_common(as, addr, buf, len, true);
}

/* ---- One access: the path of IN, OUT and MMIO ---- */

uint64_t address_space_load(AddressSpace *as, hwaddr addr, unsigned size)
{
    uint64_t v = 0;

    memory_read_lock();
    const FlatRange *r = view_find(as, view_get(as), addr);
    if (likely(r && flat_range_last(r) - addr >= size - 1)) {
        range_read(as, r, addr, (uint8_t *)&v, size);
    } else {
        address_space_read(as, addr, &v, size);
    }
    memory_read_unlock();
    return v;
}

void address_space_store(AddressSpace *as, hwaddr addr, uint64_t value, unsigned size)
{
    memory_read_lock();
    const FlatRange *r = view_find(as, view_get(as), addr);
    if (likely(r && flat_range_last(r) - addr >= size - 1)) {
        range_write(as, r, addr, (const uint8_t *)&value, size, false);
    } else {
        address_space_write(as, addr, &value, size);
    }
    memory_read_unlock();
}
