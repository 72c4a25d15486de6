/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RAM blocks: dirty tracking, decoded code against stores, atomicity. */
#include <glib.h>
#include <string.h>
#include "memory/memory.h"
#include "qemu/thread.h"

#define AS (&address_space_memory)

typedef struct Flip {
    atomic_bool stop;
    atomic_uint wrong;
    _Atomic uint64_t reads;
} Flip;

static RAMBlock *block(const char *name, uint64_t size, uint32_t flags)
{
    RAMBlock *rb = ram_block_new(name, size, flags, -1, &error_abort);
    g_assert_nonnull(rb);
    return rb;
}

static void count_block(RAMBlock *rb, void *opaque)
{
    ++*(unsigned *)opaque;
}

static void test_block(void)
{
    Error *err = NULL;
    RAMBlock *rb = block("blk", 5000, RAM_PREALLOC);
    unsigned before = 0, after = 0;

    g_assert_cmpuint(rb->size, ==, 8192);
    g_assert_cmphex((uintptr_t)rb->host & (2 * MiB - 1), ==, 0);
    g_assert_null(ram_block_new("blk", 4096, 0, -1, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "blk"));
    error_free(err);
    err = NULL;
    g_assert_null(ram_block_new("huge", 1ull << 60, 0, -1, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "huge"));
    error_free(err);
    ram_block_foreach(count_block, &before);
    ram_block_free(rb);
    ram_block_foreach(count_block, &after);
    g_assert_cmpuint(after, ==, before - 1);
}

static unsigned flushes;

static void count_flush(void)
{
    flushes++;
}

static void test_dirty(void)
{
    RAMBlock *rb = block("dirty", 256 * KiB, 0);
    MemoryRegion ram;
    uint64_t bm[1] = { 0 };

    memory_region_init_ram(&ram, rb, "ram");
    memory_region_add_subregion(memory_root(), 0x900000, &ram, 0);
    stl_phys(0x900000, 1); /* nobody tracks */
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_DISPLAY, 0, 64, bm), ==, 0);
    g_assert_true(ram_page_write_untracked(rb, 0));
    ram_dirty_set_flush_hook(count_flush);
    ram_dirty_track(DIRTY_CLIENT_DISPLAY, true);
    g_assert_cmpuint(flushes, ==, 1);
    g_assert_false(ram_page_write_untracked(rb, 0));
    stl_phys(0x900ffe, 1); /* two pages */
    uint8_t buf[0x2000] = { 0 };
    address_space_write(AS, 0x905800, buf, sizeof(buf));
    g_assert_true(ram_page_write_untracked(rb, 1));
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, true);
    g_assert_false(ram_page_write_untracked(rb, 1));
    stl_phys(0x90a000, 1);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_DISPLAY, 0, 64, bm), ==, 6);
    g_assert_cmphex(bm[0], ==, 0x4e3);
    g_assert_cmpuint(flushes, ==, 3);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_DISPLAY, 0, 64, NULL), ==, 0);
    bm[0] = 0;
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 8, 100, bm), ==, 1);
    g_assert_cmphex(bm[0], ==, 4);
    ram_dirty_track(DIRTY_CLIENT_DISPLAY, false);
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, false);
    ram_dirty_set_flush_hook(NULL);
    memory_region_del_subregion(memory_root(), &ram);
    memory_synchronize();
    ram_block_free(rb);
}

/* ---- Code and stores ---- */

static void test_code(void)
{
    RAMBlock *rb = block("code", 64 * KiB, 0);
    MemoryRegion ram;
    uint32_t gen, gen2;

    memory_region_init_ram(&ram, rb, "ram");
    memory_region_add_subregion(memory_root(), 0xa00000, &ram, 0);
    g_assert_true(ram_block_code_mark(rb, 0x1000 + 62, 4, &gen)); /* granules 0 and 1 */
    g_assert_cmphex(atomic_load(&rb->code_map[1]), ==, 3);
    g_assert_true(ram_block_code_mark(rb, 0x1fff, 1, &gen2));
    g_assert_cmphex(atomic_load(&rb->code_map[1]), ==, 3 | BIT64(63));
    g_assert_cmpuint(gen, ==, gen2);
    /* Data beside code. */
    g_assert_false(ram_block_code_hit(rb, 0x1080, 0xf40));
    g_assert_cmpuint(atomic_load(&rb->code_gen[1]), ==, gen);
    /* A store over the page's end hits its last granule. */
    g_assert_true(ram_block_code_hit(rb, 0x1ffe, 4));
    g_assert_cmpuint(atomic_load(&rb->code_gen[1]), !=, gen);
    g_assert_cmphex(atomic_load(&rb->code_map[1]), ==, 3);
    g_assert_cmpuint(atomic_load(&rb->code_busy[1]), ==, 0);
    /* DMA and stores through the map do both halves. */
    uint8_t buf[0x3000] = { 0 };
    gen = atomic_load(&rb->code_gen[1]);
    address_space_write(AS, 0xa01040, buf, 1);
    g_assert_cmpuint(atomic_load(&rb->code_gen[1]), !=, gen);
    g_assert_cmphex(atomic_load(&rb->code_map[1]), ==, 1);
    g_assert_true(ram_block_code_mark(rb, 0x2000, 0x1000, &gen));
    address_space_write(AS, 0xa00800, buf, sizeof(buf));
    g_assert_cmphex(atomic_load(&rb->code_map[1]), ==, 0);
    g_assert_cmphex(atomic_load(&rb->code_map[2]), ==, 0);
    g_assert_cmpuint(atomic_load(&rb->code_gen[2]), !=, gen);
    memory_region_del_subregion(memory_root(), &ram);
    memory_synchronize();
    ram_block_free(rb);
}

/*
 * One thread stores numbers as a vCPU's inline path does; others decode (read) and keep what they
 * decoded until it is stale. After the store of n is over nobody may still believe in less than n.
 */
#define RACE_US 1000000

typedef struct Race {
    RAMBlock *rb;
    _Atomic uint32_t stored; /* the last number whose store is complete, code half included */
    atomic_uint wrong, decodes, hits;
    atomic_uint next;
    atomic_bool stop;
} Race;

static void race_store(Race *r, uint64_t off, uint32_t v)
{
    _Atomic uint32_t *p = (_Atomic uint32_t *)(r->rb->host + off); /* relaxed: a plain MOV */
    _Atomic uint64_t *map = &r->rb->code_map[off >> TARGET_PAGE_BITS];
    if (atomic_load_explicit(map, memory_order_relaxed) == 0) {
        atomic_store_explicit(p, v, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (atomic_load_explicit(map, memory_order_relaxed) == 0) {
            return;
        }
    } else {
        atomic_store_explicit(p, v, memory_order_relaxed);
    }
    if (ram_block_code_hit(r->rb, off, 4)) {
        atomic_fetch_add_explicit(&r->hits, 1, memory_order_relaxed);
    }
}

static void *race_decoder(void *opaque)
{
    Race *r = opaque;
    /* The second decoder marks another granule of the page as well: data beside code. */
    bool second = atomic_fetch_add(&r->next, 1);
    _Atomic uint32_t *p = (_Atomic uint32_t *)r->rb->host;
    uint32_t gen = 0, value = 0, last = 0;
    bool have = false;

    while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
        last = atomic_load(&r->stored);
        if (have && atomic_load(&r->rb->code_gen[0]) != gen) {
            have = false;
        }
        if (have && value < last) {
            atomic_fetch_add(&r->wrong, 1);
            have = false;
        }
        if (!have) {
            uint32_t unused;
            if (second && ram_block_code_mark(r->rb, 2048, 64, &unused)) {
                atomic_fetch_add_explicit(&r->decodes, 1, memory_order_relaxed);
            }
            have = ram_block_code_mark(r->rb, 0, 4, &gen);
            value = atomic_load_explicit(p, memory_order_relaxed);
            if (value < last) {
                atomic_fetch_add(&r->wrong, 1);
            }
            atomic_fetch_add_explicit(&r->decodes, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

static void test_code_race(void)
{
    static Race r;
    QemuThread th[2];

    r.rb = block("race", 4096, 0);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(qemu_thread_create(&th[i], "decoder", THREAD_VCPU, race_decoder, &r,
                                         &error_abort));
    }
    gint64 end = g_get_monotonic_time() + RACE_US;
    for (uint32_t i = 1; i % 64 || g_get_monotonic_time() < end; i++) {
        race_store(&r, 0, i);
        /* No fence here: a locked store would hide what the protocol must guarantee. */
        atomic_store_explicit(&r.stored, i, memory_order_release);
        if (i % 3 == 0) {
            race_store(&r, 2048, i);
        }
        for (unsigned k = 0; k < i % 32; k++) {
            __asm__ volatile("pause");
        }
    }
    atomic_store(&r.stop, true);
    for (unsigned i = 0; i < 2; i++) {
        qemu_thread_join(&th[i]);
    }
    g_test_message("%u decodes, %u hits", atomic_load(&r.decodes), atomic_load(&r.hits));
    g_assert_cmpuint(atomic_load(&r.wrong), ==, 0);
    g_assert_cmpuint(atomic_load(&r.hits), >, 0);
    g_assert_cmpuint(atomic_load(&r.rb->code_busy[0]), ==, 0);
    ram_block_free(r.rb);
}

/* ---- Atomicity ---- */

static void *torn_writer(void *opaque)
{
    Flip *f = opaque;
    uint64_t v = 0;
    while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
        v = ~v;
        address_space_write(AS, 0xb00008, &v, 8);
    }
    return NULL;
}

static void test_atomic(void)
{
    RAMBlock *rb = block("atomic", 4096, 0);
    MemoryRegion ram;
    QemuThread th;
    static Flip f;

    memory_region_init_ram(&ram, rb, "ram");
    memory_region_add_subregion(memory_root(), 0xb00000, &ram, 0);
    g_assert_true(qemu_thread_create(&th, "writer", THREAD_VCPU, torn_writer, &f, &error_abort));
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t v;
        address_space_read(AS, 0xb00008, &v, 8);
        g_assert_true(v == 0 || v == UINT64_MAX);
    }
    atomic_store(&f.stop, true);
    qemu_thread_join(&th);
    memory_region_del_subregion(memory_root(), &ram);
    memory_synchronize();
    ram_block_free(rb);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    memory_init();
    g_test_add_func("/memory/access/atomic", test_atomic);
    g_test_add_func("/memory/ram/block", test_block);
    g_test_add_func("/memory/ram/dirty", test_dirty);
    g_test_add_func("/memory/ram/code", test_code);
    g_test_add_func("/memory/ram/code-race", test_code_race);
    return g_test_run();
}
