/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RAM blocks: host memory, dirty tracking, and the protocol between stores and decoded code. The
 * ordering argument is in docs/devel/memory.md, "Code and stores"; read it before you change a
 * line of ram_block_code_*().
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "memory-internal.h"
#include "qemu/host-memory.h"
#include "qemu/os.h"

#define BUSY_HIT   1u
#define BUSY_HITS  0xffffu
#define BUSY_MARK  0x10000u

static _Atomic(RAMBlock *) ram_blocks;
static int membarrier_cmd;
static void (*_Atomic flush_hook)(void);
static void (*_Atomic pull_hook)(RAMBlock *rb);

/* ---- Making blocks ---- */

static void *map_array(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool alloc_arrays(RAMBlock *rb)
{
    uint64_t pages = rb->size >> TARGET_PAGE_BITS;
    rb->code_map = map_array(pages * sizeof(*rb->code_map));
    rb->code_gen = map_array(pages * sizeof(*rb->code_gen));
    rb->code_busy = map_array(pages * sizeof(*rb->code_busy));
    rb->dirty = map_array(pages * sizeof(*rb->dirty));
    return rb->code_map && rb->code_gen && rb->code_busy && rb->dirty;
}

static void unmap_all(RAMBlock *rb)
{
    uint64_t pages = rb->size >> TARGET_PAGE_BITS;
    const struct {
        void *p;
        uint64_t size;
    } maps[] = {
        { rb->host, rb->size },
        { (void *)rb->code_map, pages * sizeof(*rb->code_map) },
        { (void *)rb->code_gen, pages * sizeof(*rb->code_gen) },
        { (void *)rb->code_busy, pages * sizeof(*rb->code_busy) },
        { (void *)rb->dirty, pages * sizeof(*rb->dirty) },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(maps); i++) {
        if (maps[i].p) {
            munmap(maps[i].p, maps[i].size);
        }
    }
}

RAMBlock *ram_block_new(const char *idstr, uint64_t size, uint32_t flags, int fd, Error **errp)
{
    for (RAMBlock *b = atomic_load(&ram_blocks); b; b = b->next) {
        if (strcmp(b->idstr, idstr) == 0) {
            error_setg(errp, "Memory block '%s' exists already", idstr);
            return NULL;
        }
    }
    if (size == 0 || size > INT64_MAX - HOST_HUGE_PAGE) {
        error_setg(errp, "Memory block '%s': size %llu is not possible", idstr,
                   (unsigned long long)size);
        return NULL;
    }
    RAMBlock *rb = calloc(1, sizeof(*rb));
    if (!rb) {
        error_setg(errp, "Memory block '%s': out of memory", idstr);
        return NULL;
    }
    snprintf(rb->idstr, sizeof(rb->idstr), "%s", idstr);
    rb->size = ROUND_UP(size, TARGET_PAGE_SIZE);
    rb->flags = flags;
    rb->fd = fd;
    rb->host = host_memory_map(rb->size, flags & RAM_SHARED, fd);
    if (!rb->host || !alloc_arrays(rb) || ((flags & RAM_PREALLOC) && !host_memory_touch(rb->host, rb->size))) {
        error_setg_errno(errp, errno, "Cannot get %llu MiB of host memory for '%s' (make -m "
                         "smaller, free memory on the host, or raise its limit, 'ulimit -v')",
                         (unsigned long long)DIV_ROUND_UP(size, MiB), idstr);
        unmap_all(rb);
        free(rb);
        return NULL;
    }
    madvise(rb->host, rb->size, MADV_DONTFORK);
    if ((flags & RAM_MERGEABLE) && os_memory_locked() == MEM_LOCK_OFF) {
        madvise(rb->host, rb->size, MADV_MERGEABLE);
    }
    if (os_memory_locked() == MEM_LOCK_ON) {
        host_memory_settle(rb->host, rb->size);
    }
    rb->next = atomic_load(&ram_blocks);
    atomic_store(&ram_blocks, rb);
    return rb;
}

void ram_block_free(RAMBlock *rb)
{
    if (!rb) {
        return;
    }
    if (atomic_load(&ram_blocks) == rb) {
        atomic_store(&ram_blocks, rb->next);
    } else {
        for (RAMBlock *b = atomic_load(&ram_blocks); b; b = b->next) {
            if (b->next == rb) {
                b->next = rb->next;
            }
        }
    }
    unmap_all(rb);
    free(rb);
}

void ram_block_foreach(void (*fn)(RAMBlock *rb, void *opaque), void *opaque)
{
    for (RAMBlock *b = atomic_load(&ram_blocks); b; b = b->next) {
        fn(b, opaque);
    }
}

const RAMBlock *ram_block_of_host(const void *host)
{
    const uint8_t *p = host;

    for (const RAMBlock *b = atomic_load(&ram_blocks); b; b = b->next) {
        if (p >= b->host && p < b->host + b->size) {
            return b;
        }
    }
    return NULL;
}

/* ---- Code ---- */

void ram_init(void)
{
    ram_fault_init();
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) {
        membarrier_cmd = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    } else if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) {
        membarrier_cmd = MEMBARRIER_CMD_GLOBAL; /* right, but milliseconds a call */
    } else {
        error_report("The host kernel does not provide membarrier(2) (%s); Linux 4.14 or later "
                     "and a seccomp filter that allows it are needed", strerror(errno));
        exit(1);
    }
}

static void barrier_on_all_threads(void)
{
    syscall(SYS_membarrier, membarrier_cmd, 0, 0);
}

/* The granules of [offset, offset+len), which is in one page. */
static uint64_t granules(uint64_t offset, uint64_t len)
{
    unsigned first = (offset & (TARGET_PAGE_SIZE - 1)) >> 6;
    unsigned last = ((offset + len - 1) & (TARGET_PAGE_SIZE - 1)) >> 6;
    return (UINT64_MAX << first) & (UINT64_MAX >> (63 - last));
}

/* The stored bytes are visible to all (a full fence was made) before the map is read here. */
static bool hit_page(RAMBlock *rb, uint64_t page, uint64_t mask)
{
    if (!(atomic_load(&rb->code_map[page]) & mask)) {
        return false;
    }
    atomic_fetch_add(&rb->code_busy[page], BUSY_HIT);
    atomic_fetch_add(&rb->code_gen[page], 1);
    atomic_fetch_and(&rb->code_map[page], ~mask);
    atomic_fetch_sub(&rb->code_busy[page], BUSY_HIT);
    return true;
}

bool ram_block_code_hit(RAMBlock *rb, uint64_t offset, unsigned len)
{
    uint64_t left = len;
    bool hit = false;

    atomic_thread_fence(memory_order_seq_cst);
    while (left) {
        uint64_t n = MIN(left, TARGET_PAGE_SIZE - (offset & (TARGET_PAGE_SIZE - 1)));
        hit |= hit_page(rb, offset >> TARGET_PAGE_BITS, granules(offset, n));
        offset += n;
        left -= n;
    }
    return hit;
}

bool ram_block_code_mark(RAMBlock *rb, uint64_t offset, unsigned len, uint32_t *gen)
{
    uint64_t page = offset >> TARGET_PAGE_BITS;
    uint64_t mask = granules(offset, len);

    for (unsigned tries = 0; tries < 4; tries++) {
        if ((atomic_load(&rb->code_map[page]) & mask) != mask) {
            atomic_fetch_add(&rb->code_busy[page], BUSY_MARK);
            if (atomic_fetch_or(&rb->code_map[page], mask) == 0) {
                barrier_on_all_threads();
            }
            atomic_fetch_sub(&rb->code_busy[page], BUSY_MARK);
        }
        uint32_t g = atomic_load(&rb->code_gen[page]);
        uint32_t before = atomic_load(&rb->code_busy[page]);
        bool marked = (atomic_load(&rb->code_map[page]) & mask) == mask;
        uint32_t after = atomic_load(&rb->code_busy[page]);
        if (marked && !((before | after) & BUSY_HITS)) {
            if (after >= BUSY_MARK) {
                barrier_on_all_threads(); /* another thread's may not be over yet */
            }
            *gen = g;
            return true;
        }
    }
    *gen = atomic_load(&rb->code_gen[page]) - 1;
    return false;
}

/* ---- Dirty tracking ---- */

void ram_block_set_dirty(RAMBlock *rb, uint64_t offset, uint64_t len)
{
    uint8_t clients = atomic_load_explicit(&rb->dirty_clients, memory_order_relaxed);

    if (likely(!clients) || !len) {
        return;
    }
    uint64_t last = (offset + len - 1) >> TARGET_PAGE_BITS;
    for (uint64_t p = offset >> TARGET_PAGE_BITS; p <= last; p++) {
        /* Always a locked operation: a fence between the store and ram_dirty_sync()'s look. */
        atomic_fetch_or(&rb->dirty[p], clients);
    }
}

void ram_block_written(RAMBlock *rb, uint64_t offset, uint64_t len)
{
    ram_block_set_dirty(rb, offset, len);
    atomic_thread_fence(memory_order_seq_cst);
    while (len) {
        uint64_t n = MIN(len, TARGET_PAGE_SIZE - (offset & (TARGET_PAGE_SIZE - 1)));
        hit_page(rb, offset >> TARGET_PAGE_BITS, granules(offset, n));
        offset += n;
        len -= n;
    }
}

void ram_dirty_set_flush_hook(void (*flush)(void))
{
    atomic_store(&flush_hook, flush);
}

void ram_dirty_set_pull_hook(void (*pull)(RAMBlock *rb))
{
    atomic_store(&pull_hook, pull);
}

static void flush_write_permissions(void)
{
    void (*flush)(void) = atomic_load(&flush_hook);
    if (flush) {
        flush();
    }
}

void ram_dirty_track(DirtyClient client, bool on)
{
    for (RAMBlock *b = atomic_load(&ram_blocks); b; b = b->next) {
        if (on) {
            for (uint64_t p = 0; p < b->size >> TARGET_PAGE_BITS; p++) {
                if (atomic_load_explicit(&b->dirty[p], memory_order_relaxed) & BIT(client)) {
                    atomic_fetch_and(&b->dirty[p], (uint8_t)~BIT(client));
                }
            }
            atomic_fetch_or(&b->dirty_clients, (uint8_t)BIT(client));
        } else {
            atomic_fetch_and(&b->dirty_clients, (uint8_t)~BIT(client));
        }
    }
    flush_write_permissions(); /* and when off: who logs may stop */
}

uint64_t ram_dirty_sync(RAMBlock *rb, DirtyClient client, uint64_t first_page, uint64_t npages,
                        uint64_t *bitmap)
{
    void (*pull)(RAMBlock *b) = atomic_load(&pull_hook);
    uint64_t n = 0;

    if (pull) {
        pull(rb);
    }
    for (uint64_t i = 0; i < npages && first_page + i < rb->size >> TARGET_PAGE_BITS; i++) {
        _Atomic uint8_t *d = &rb->dirty[first_page + i];
        if (!(atomic_load_explicit(d, memory_order_relaxed) & BIT(client))) {
            continue;
        }
        atomic_fetch_and(d, (uint8_t)~BIT(client));
        if (bitmap) {
            bitmap[i / 64] |= BIT64(i % 64);
        }
        n++;
    }
    if (n) {
        flush_write_permissions();
    }
    return n;
}
