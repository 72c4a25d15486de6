/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TLB: flushes and tags, slow accesses, watch points, dirty tracking. */
#include "mmu-machine.h"

/* ---- TLB ---- */

/* Maps page 1 to `phys` behind the TLB's back. */
static void remap(uint64_t phys, uint64_t flags)
{
    put64(PT + 8, phys | RWU | flags);
}

static void test_flush(void)
{
    start_long(0);
    put64(0x20000, 1);
    put64(0x21000, 2);
    remap(0x20000, 0);
    expect_value(0x1000, 8, 1);
    remap(0x21000, 0);
    expect_value(0x1000, 8, 1); /* stale, as it must be until a flush */
    tcg_tlb_flush_page(c, 0x1fff);
    expect_value(0x1000, 8, 2);
    remap(0x20000, 0);
    g_assert_true(cr3_load(c, PML4));
    expect_value(0x1000, 8, 1);
    /* Global: survives CR3, not CR4.PGE. */
    tcg_tlb_flush_page(c, 0x1000);
    remap(0x20000, PTE_G);
    expect_value(0x1000, 8, 1);
    remap(0x21000, PTE_G);
    g_assert_true(cr3_load(c, PML4));
    expect_value(0x1000, 8, 1);
    flush();
    expect_value(0x1000, 8, 2);
    remap(0x20000, PTE_G);
    tcg_tlb_flush_page(c, 0x1000);
    expect_value(0x1000, 8, 1);
}

static void test_invlpg_large(void)
{
    start_long(0);
    put64(PD + 8, 0x400000 | PTE_PS | RWU);
    put64(0x401000, 1);
    put64(0x5ff000, 2);
    put64(0x601000, 3);
    expect_value(0x201000, 8, 1);
    expect_value(0x3ff000, 8, 2);
    put64(PD + 8, 0x600000 | PTE_PS | RWU);
    tcg_tlb_flush_page(c, 0x3ff000); /* any address of the page drops all of it */
    expect_value(0x201000, 8, 3);
}

static void test_pcid(void)
{
    start_long(0);
    c->cr4 |= CR4_PCIDE;
    tcg_mmu_resync(c);
    put64(0x20000, 1);
    put64(0x21000, 2);
    /* Two address spaces in the same tables: PCIDs 1 and 2. */
    g_assert_true(cr3_load(c, PML4 | 1));
    remap(0x20000, 0);
    expect_value(0x1000, 8, 1);
    g_assert_true(cr3_load(c, PML4 | 2 | BIT64(63)));
    remap(0x21000, 0);
    expect_value(0x1000, 8, 2);
    g_assert_true(cr3_load(c, PML4 | 1 | BIT64(63)));
    g_assert_cmphex(c->cr3, ==, PML4 | 1);
    expect_value(0x1000, 8, 1); /* kept */
    g_assert_true(cr3_load(c, PML4 | 1));
    expect_value(0x1000, 8, 2); /* flushed: bit 63 clear */
    /* INVPCID type 1 on another PCID. */
    remap(0x20000, 0);
    mmu_invpcid(c, 1, 2, 0);
    expect_value(0x1000, 8, 2);
    g_assert_true(cr3_load(c, PML4 | 2 | BIT64(63)));
    expect_value(0x1000, 8, 1);
    /* Type 0: one address of one PCID. */
    remap(0x21000, 0);
    mmu_invpcid(c, 0, 1, 0x1000);
    expect_value(0x1000, 8, 1);
    mmu_invpcid(c, 0, 2, 0x1000);
    expect_value(0x1000, 8, 2);
    /* Types 3 and 2: all but global, all. */
    tcg_tlb_flush_page(c, 0x1000);
    remap(0x21000, PTE_G);
    expect_value(0x1000, 8, 2);
    remap(0x20000, PTE_G);
    mmu_invpcid(c, 3, 0, 0);
    expect_value(0x1000, 8, 2);
    mmu_invpcid(c, 2, 0, 0);
    expect_value(0x1000, 8, 1);
    /* More PCIDs than contexts. */
    for (unsigned n = 3; n < 40; n++) {
        g_assert_true(cr3_load(c, PML4 | n));
        remap(n & 1 ? 0x20000 : 0x21000, 0);
        tcg_tlb_flush_page(c, 0x1000);
        expect_value(0x1000, 8, n & 1 ? 1 : 2);
    }
}

/* ---- Slow accesses ---- */

static void test_crossing(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    put64(PT + 16, 0x30000 | PTE_P | PTE_U);
    put64(0x20ff8, 0x1111111111111111ull);
    put64(0x30000, 0x2222222222222222ull);
    expect_value(0x1ffc, 8, 0x2222222211111111ull);
    /* The second page is read-only: nothing is written to the first. */
    Result r = access_mem(ST, 0x1ffc, 8, 0);
    g_assert_true(r.fault);
    g_assert_cmphex(r.error, ==, PF_P | PF_W);
    g_assert_cmphex(c->cr2, ==, 0x2000);
    g_assert_cmphex(get64(0x20ff8), ==, 0x1111111111111111ull);
    put64(PT + 16, 0x30000 | RWU);
    flush();
    g_assert_false(access_mem(ST, 0x1ffc, 8, 0xaaaaaaaabbbbbbbbull).fault);
    g_assert_cmphex(get64(0x20ff8), ==, 0xbbbbbbbb11111111ull);
    g_assert_cmphex(get64(0x30000), ==, 0x22222222aaaaaaaaull);
}

static void test_rom_and_io(void)
{
    start_long(0);
    put64(PT + 8, ROM_AT | RWU);
    put64(PT + 16, IO_AT | RWU);
    expect_value(0x1000, 4, 0xabababab);
    expect_ok(ST, 0x1000);
    expect_value(0x1000, 4, 0xabababab);
    io_reads = io_writes = 0;
    expect_value(0x2000, 8, 0x1122334455667788ull);
    g_assert_cmpuint(io_reads, ==, 1);
    access_mem(ST, 0x2004, 2, 0xbeef);
    g_assert_cmpuint(io_writes, ==, 1);
    g_assert_cmphex(io_value, ==, 0xbeef);
    g_assert_null(tcg_rmw_host(c, NULL, 0x2000, 4));
    uint32_t v;
    tcg_rmw_begin(c, NULL, 0x2000, &v, 4);
    g_assert_cmphex(v, ==, 0x55667788);
    v++;
    tcg_rmw_end(c, NULL, 0x2000, &v, 4);
    g_assert_cmphex(io_value, ==, 0x55667789);
}

static void test_rmw(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    put64(PT + 16, 0x21000 | RWU); /* next to it in host memory: a split lock stays one */
    put64(PT + 24, 0x30000 | RWU);
    uint64_t *p = tcg_rmw_host(c, NULL, 0x1ffc, 8);
    g_assert_true((uint8_t *)p == ram + 0x20ffc);
    tcg_rmw_done(c);
    g_assert_null(tcg_rmw_host(c, NULL, 0x2ffc, 8));
    put64(0x21ff8, 0x0102030405060708ull);
    uint64_t v;
    tcg_rmw_begin(c, NULL, 0x2ffc, &v, 8);
    g_assert_cmphex(v, ==, 0x01020304);
    v = UINT64_MAX;
    tcg_rmw_end(c, NULL, 0x2ffc, &v, 8);
    g_assert_cmphex(get64(0x21ff8), ==, 0xffffffff05060708ull);
    g_assert_cmphex(get64(0x30000), ==, 0xffffffff);
    /* Only a write makes the page dirty: so does a read-modify-write. */
    g_assert_cmphex(get64(PT + 8) & PTE_D, ==, PTE_D);
}

static void test_code_granule(void)
{
    uint32_t gen, before;

    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    g_assert_true(ram_block_code_mark(rb, 0x20040, 16, &gen));
    before = atomic_load(&rb->code_gen[0x20]);
    expect_ok(ST, 0x1000); /* beside the code */
    g_assert_cmpuint(atomic_load(&rb->code_gen[0x20]), ==, before);
    access_mem(ST, 0x103e, 4, 0); /* reaches into it */
    g_assert_cmpuint(atomic_load(&rb->code_gen[0x20]), ==, before + 1);
    g_assert_true(ram_block_code_mark(rb, 0x20040, 16, &gen));
    uint32_t *p = tcg_rmw_host(c, NULL, 0x1040, 4);
    g_assert_nonnull(p);
    *p = 1;
    tcg_rmw_done(c);
    g_assert_cmpuint(atomic_load(&rb->code_gen[0x20]), ==, before + 2);
}

static void test_a20(void)
{
    start(0, 0, 0, 0);
    put64(0x1000, 1);
    put64(0x101000, 2);
    expect_value(0x101000, 8, 2);
    tcg_set_a20(false);
    tcg_mmu_resync(c); /* the test's CPU is in no table: what the request would do */
    expect_value(0x101000, 8, 1);
    g_assert_false(tcg_get_a20());
    tcg_set_a20(true);
    tcg_mmu_resync(c);
    expect_value(0x101000, 8, 2);
}

static void test_dirty_tracking(void)
{
    uint64_t bitmap[RAM_SIZE / TARGET_PAGE_SIZE / 64] = { 0 };

    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    expect_ok(ST, 0x1000);
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, true);
    tcg_mmu_resync(c);
    ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 0, RAM_SIZE / TARGET_PAGE_SIZE, bitmap);
    memset(bitmap, 0, sizeof(bitmap));
    tcg_mmu_resync(c);
    expect_ok(LD, 0x1000);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 0x20, 1, bitmap), ==, 0);
    expect_ok(ST, 0x1000);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 0x20, 1, bitmap), ==, 1);
    /* Written between the look and the flush that follows it: reported at the flush. */
    expect_ok(ST, 0x1004);
    tcg_mmu_resync(c);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 0x20, 1, bitmap), ==, 1);
    tcg_mmu_resync(c);
    g_assert_cmpuint(ram_dirty_sync(rb, DIRTY_CLIENT_MIGRATION, 0x20, 1, bitmap), ==, 0);
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, false);
}

static void test_watch(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    expect_ok(ST, 0x1000);
    c->dr[0] = 0x1008;
    c->dr[1] = 0x1010;
    /* 0: write, 8 bytes; 1: read or write, 4 bytes. */
    c->dr[7] = 0x400 | 2 | 8 | 0x9u << 16 | 0xfu << 20;
    mmu_breakpoints_changed(c);
    expect_ok(LD, 0x1008);
    g_assert_cmphex(c->tcg->db_pending, ==, 0);
    expect_ok(ST, 0x100c);
    g_assert_cmphex(c->tcg->db_pending, ==, 1);
    expect_ok(LD, 0x1013);
    g_assert_cmphex(c->tcg->db_pending, ==, 3);
    c->tcg->db_pending = 0;
    expect_ok(ST, 0x1014);
    expect_ok(ST, 0x1004);
    g_assert_cmphex(c->tcg->db_pending, ==, 0);
}

static void test_debug_translate(void)
{
    hwaddr phys;

    start_long(0);
    put64(PT + 8, 0x20000 | PTE_P);
    g_assert_true(tcg_translate_debug(c, 0x1234, &phys));
    g_assert_cmphex(phys, ==, 0x20234);
    g_assert_false(tcg_translate_debug(c, 0x2000, &phys));
    g_assert_cmphex(get64(PT + 8), ==, 0x20000 | PTE_P);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    mmu_machine_make();
    g_test_add_func("/mmu/flush", test_flush);
    g_test_add_func("/mmu/invlpg-large", test_invlpg_large);
    g_test_add_func("/mmu/pcid", test_pcid);
    g_test_add_func("/mmu/crossing", test_crossing);
    g_test_add_func("/mmu/rom-io", test_rom_and_io);
    g_test_add_func("/mmu/rmw", test_rmw);
    g_test_add_func("/mmu/code-granule", test_code_granule);
    g_test_add_func("/mmu/a20", test_a20);
    g_test_add_func("/mmu/dirty-tracking", test_dirty_tracking);
    g_test_add_func("/mmu/watch", test_watch);
    g_test_add_func("/mmu/debug-translate", test_debug_translate);
    return g_test_run();
}
