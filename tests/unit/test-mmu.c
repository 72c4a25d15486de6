/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page walks, rights, TLB and slow accesses of the interpreter, called directly: tables are built
 * in guest RAM and accesses made through the contract of interp.h.
 */
#include <glib.h>
#include <pthread.h>
#include <string.h>
#include "accel/accel.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/sys.h"
#include "target/i386/cpuid.h"

#define RAM_SIZE (16 * MiB)
#define ROM_AT   (32 * MiB)
#define IO_AT    (48 * MiB)
#define NOWHERE  (1ull * GiB)

/* Tables. */
#define PML4 0x10000u
#define PDPT 0x11000u
#define PD   0x12000u
#define PT   0x13000u
#define PT2  0x14000u

#define RWU (PTE_P | PTE_W | PTE_U)

static X86CPU *c;
static RAMBlock *rb;
static uint8_t *ram;

/* ---- Machine ---- */

static uint32_t all_supported(FeatureWord w)
{
    return ~0u;
}
static uint32_t no_defaults(FeatureWord w)
{
    return 0;
}
static void no_host(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    memset(r, 0, 16);
}
static uint32_t khz(void)
{
    return 1000000;
}
static const X86CpuBackend backend = {
    .name = "test", .supported = all_supported, .defaults = no_defaults, .host_cpuid = no_host,
    .default_tsc_khz = khz,
};

static uint64_t io_value;
static unsigned io_reads, io_writes;

static uint64_t io_read(void *opaque, hwaddr off, unsigned size)
{
    io_reads++;
    return 0x1122334455667788ull >> (8 * (off & 7));
}
static void io_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    io_writes++;
    io_value = v;
}
static const MemoryRegionOps io_ops = { .read = io_read, .write = io_write };

static void machine_make(void)
{
    static MemoryRegion mr_ram, mr_rom, mr_io;
    RAMBlock *rom;

    memory_init();
    memory_thread_register();
    rb = ram_block_new("ram", RAM_SIZE, 0, -1, &error_abort);
    rom = ram_block_new("rom", 64 * KiB, RAM_ROM, -1, &error_abort);
    memory_region_init_ram(&mr_ram, rb, "ram");
    memory_region_init_rom(&mr_rom, rom, "rom");
    memory_region_init_io(&mr_io, &io_ops, NULL, "io", 64 * KiB);
    memory_region_add_subregion(memory_root(), 0, &mr_ram, 0);
    memory_region_add_subregion(memory_root(), ROM_AT, &mr_rom, 0);
    memory_region_add_subregion(memory_root(), IO_AT, &mr_io, 0);
    memset(rom->host, 0xab, 64 * KiB);
    ram = rb->host;
    x86_cpu_set_backend(&backend);
    g_assert_true(x86_cpu_set_model("max", &error_abort));
    c = x86_cpu_new(0, &error_abort);
    g_assert_true(tcg_engine_init(c, &error_abort));
    memory_read_lock();
}

static void put64(uint64_t at, uint64_t v)
{
    memcpy(ram + at, &v, 8);
}
static void put32(uint64_t at, uint32_t v)
{
    memcpy(ram + at, &v, 4);
}
static uint64_t get64(uint64_t at)
{
    uint64_t v;
    memcpy(&v, ram + at, 8);
    return v;
}
static uint32_t get32(uint64_t at)
{
    return (uint32_t)get64(at);
}

static void flush(void)
{
    tcg_tlb_flush(c, true);
}

/* Flat segments, paging of a kind, CPL 0; tables empty. */
static void start(uint64_t cr0, uint64_t cr4, uint64_t efer, uint64_t cr3)
{
    x86_cpu_reset(c, false);
    memset(ram, 0, 0x200000);
    ram_block_written(rb, 0, RAM_SIZE);
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        c->seg[n] = (SegmentCache){ .attr = SEG_P | SEG_S | SEG_W | SEG_A | SEG_DB | SEG_G,
                                    .limit = 0xffffffff };
    }
    c->seg[R_CS].attr |= SEG_CODE;
    if (efer & EFER_LMA) {
        c->seg[R_CS].attr = (c->seg[R_CS].attr & ~SEG_DB) | SEG_L;
    }
    c->cr0 = CR0_PE | CR0_ET | cr0;
    c->cr4 = cr4;
    c->efer = efer;
    c->cr3 = cr3;
    c->pkru = 0;
    tcg_engine_reset(c);
    c->tcg->db_pending = 0;
}

static void start_long(uint64_t cr4)
{
    start(CR0_PG | CR0_WP, CR4_PAE | CR4_PGE | cr4, EFER_LME | EFER_LMA | EFER_NXE, PML4);
    put64(PML4, PDPT | RWU);
    put64(PDPT, PD | RWU);
    put64(PD, PT | RWU);
}

static void set_cpl(unsigned cpl)
{
    c->cpl = (uint8_t)cpl;
    tcg_mode_changed(c);
}

/* ---- Accesses that may fault ---- */

typedef struct Result {
    bool fault;
    int vector;
    uint32_t error;
    uint64_t value;
} Result;

enum { LD, ST, FETCH };

static QEMU_NOINLINE Result access_mem(int kind, uint64_t lin, unsigned size, uint64_t v)
{
    static volatile Result r;

    r.fault = false;
    if (sigsetjmp(c->tcg->jmp, 0)) {
        r.fault = true;
        r.vector = c->tcg->exc.vector;
        r.error = c->tcg->exc.error;
        return r;
    }
    if (kind == FETCH) {
        r.value = tcg_translate_fetch(c, lin);
    } else if (kind == LD) {
        r.value = size == 1   ? tcg_ld8(c, NULL, lin)
                  : size == 2 ? tcg_ld16(c, NULL, lin)
                  : size == 4 ? tcg_ld32(c, NULL, lin)
                              : tcg_ld64(c, NULL, lin);
    } else if (size == 1) {
        tcg_st8(c, NULL, lin, (uint8_t)v);
    } else if (size == 2) {
        tcg_st16(c, NULL, lin, (uint16_t)v);
    } else if (size == 4) {
        tcg_st32(c, NULL, lin, (uint32_t)v);
    } else {
        tcg_st64(c, NULL, lin, v);
    }
    return r;
}

#define expect_ok(kind, lin) g_assert_false(access_mem(kind, lin, 4, 0).fault)
#define expect_value(lin, size, v)                                                                 \
    do {                                                                                           \
        Result r_ = access_mem(LD, lin, size, 0);                                                  \
        g_assert_false(r_.fault);                                                                  \
        g_assert_cmphex(r_.value, ==, v);                                                          \
    } while (0)
#define expect_pf(kind, lin, code)                                                                 \
    do {                                                                                           \
        Result r_ = access_mem(kind, lin, 4, 0);                                                   \
        g_assert_true(r_.fault);                                                                   \
        g_assert_cmpint(r_.vector, ==, EXCP_PF);                                                   \
        g_assert_cmphex(r_.error, ==, (uint32_t)(code));                                           \
        g_assert_cmphex(c->cr2, ==, (uint64_t)(lin));                                              \
    } while (0)

/* ---- 32-bit paging ---- */

static void test_32bit(void)
{
    start(CR0_PG, CR4_PSE, 0, PD);
    put32(PD, PT | RWU);
    put32(PT + 4 * 5, 0x20000 | RWU);
    put32(PT + 4 * 6, 0x21000 | PTE_P | PTE_U);
    put32(PT + 4 * 7, 0x22000 | PTE_P | PTE_W);
    put64(0x20010, 0x0123456789abcdefull);

    expect_value(0x5010, 8, 0x0123456789abcdefull);
    g_assert_cmphex(get32(PT + 20), ==, 0x20000 | RWU | PTE_A);
    g_assert_cmphex(get32(PD), ==, PT | RWU | PTE_A);
    expect_ok(ST, 0x5020);
    g_assert_cmphex(get32(PT + 20), ==, 0x20000 | RWU | PTE_A | PTE_D);
    expect_ok(ST, 0x6000); /* supervisor, WP clear */
    flush();
    c->cr0 |= CR0_WP;
    expect_pf(ST, 0x6004, PF_P | PF_W);
    expect_pf(LD, 0x8000, 0);
    set_cpl(3);
    expect_ok(LD, 0x6000);
    expect_pf(ST, 0x6000, PF_P | PF_W | PF_U);
    expect_pf(LD, 0x7000, PF_P | PF_U);
    expect_pf(ST, 0x800000, PF_W | PF_U);
    expect_pf(FETCH, 0x800000, PF_U); /* no NX, no SMEP: the I bit stays 0 */
}

static void test_pse(void)
{
    start(CR0_PG, CR4_PSE, 0, PD);
    put32(PD + 4, 0x400000 | PTE_PS | RWU);
    put64(0x400000 + 0x12345 * 8, 42);
    expect_value(0x400000 + 0x12345 * 8, 8, 42);
    /* PSE-36: bits 20:13 are address bits 39:32, of which phys_bits - 32 exist. */
    put32(PD + 8, BIT(13) | PTE_PS | RWU);
    g_assert_cmphex(access_mem(FETCH, 0x812345, 4, 0).value, ==, 0x100012345ull);
    put32(PD + 12, BIT(21) | PTE_PS | RWU);
    expect_pf(LD, 0xc00000, PF_P | PF_RSVD);
    /* Without CR4.PSE the bit means nothing: a table at 4 MiB. */
    c->cr4 = 0;
    flush();
    put32(0x400000, 0x30000 | RWU);
    put64(0x30008, 77);
    expect_value(0x400008, 8, 77);
}

/* ---- PAE ---- */

static void test_pae(void)
{
    start(CR0_PG, CR4_PAE, EFER_NXE, 0x10020);
    put64(0x10020 + 8, PD | PTE_P);
    put64(PD, PT | RWU);
    put64(PT, 0x20000 | RWU | PTE_NX);
    put64(PT + 8, BIT64(52) | 0x20000 | RWU);
    put64(0x20000, 99);
    g_assert_true(cr3_load(c, 0x10020));
    expect_value(0x40000000, 8, 99);
    expect_pf(FETCH, 0x40000000, PF_P | PF_I);
    expect_pf(LD, 0x40001000, PF_P | PF_RSVD);
    expect_pf(LD, 0x80000000, 0);
    /* Reserved bits of a PDPTE: CR3 is refused and nothing changes. */
    put64(0x10040, PTE_P | BIT64(1));
    g_assert_false(cr3_load(c, 0x10040));
    g_assert_cmphex(c->cr3, ==, 0x10020);
    /* The PDPTEs are registers: memory is not looked at again. */
    put64(0x10028, 0);
    flush();
    expect_value(0x40000000, 8, 99);
    c->efer = 0;
    flush();
    expect_pf(LD, 0x40000000, PF_P | PF_RSVD); /* NX is reserved without EFER.NXE */
}

/* ---- 4-level ---- */

static void test_4level(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    put64(PT + 16, 0x21000 | RWU | BIT64(c->phys_bits));
    put64(PT + 24, 0x22000 | RWU | 0x7ff0000000000000ull); /* ignored bits */
    put64(PD + 8, 0x400000 | PTE_PS | RWU);
    put64(PD + 16, 0x402000 | PTE_PS | RWU);
    put64(PDPT + 8, PTE_PS | RWU);
    put64(PDPT + 16, PTE_PS | RWU | BIT(13));
    put64(0x20008, 5);
    put64(0x400100, 6);

    expect_value(0x1008, 8, 5);
    expect_pf(LD, 0x2000, PF_P | PF_RSVD);
    expect_ok(LD, 0x3000);
    expect_value(0x200100, 8, 6);
    expect_pf(LD, 0x400000, PF_P | PF_RSVD);
    expect_value(0x40020008, 8, 5); /* 1 GiB page */
    expect_pf(LD, 0x80000000, PF_P | PF_RSVD);
    put64(PML4 + 8, PDPT | RWU | PTE_PS);
    expect_pf(LD, 0x8000000000, PF_P | PF_RSVD);
    /* Not canonical: #GP, and no walk. */
    Result r = access_mem(LD, 0x0000800000000000ull, 4, 0);
    g_assert_true(r.fault);
    g_assert_cmpint(r.vector, ==, EXCP_GP);
    r = access_mem(LD, 0x00007ffffffffffeull, 4, 0);
    g_assert_cmpint(r.vector, ==, EXCP_GP);
}

static void test_missing_tables(void)
{
    /* All ones: reserved bits set, whatever level it is. */
    start_long(0);
    c->cr3 = NOWHERE;
    flush();
    expect_pf(LD, 0x1000, PF_P | PF_RSVD);
    c->cr3 = PML4;
    put64(PD, NOWHERE | RWU);
    flush();
    expect_pf(ST, 0x1000, PF_P | PF_RSVD | PF_W);
    /* A page that is not there reads as ones and swallows writes. */
    put64(PD, PT | RWU);
    put64(PT + 8, NOWHERE | RWU);
    flush();
    expect_value(0x1000, 8, UINT64_MAX);
    expect_ok(ST, 0x1000);
    expect_value(0x1000, 4, 0xffffffff);
}

/* ---- Rights ---- */

static void test_smep_smap(void)
{
    start_long(CR4_SMEP | CR4_SMAP);
    put64(PT + 8, 0x20000 | RWU);
    put64(PT + 16, 0x21000 | PTE_P | PTE_W);
    expect_pf(FETCH, 0x1000, PF_P | PF_I);
    expect_ok(FETCH, 0x2000);
    expect_pf(LD, 0x1000, PF_P);
    expect_pf(ST, 0x1000, PF_P | PF_W);
    tcg_write_flags(c, FL_AC, FL_AC);
    expect_ok(LD, 0x1000);
    expect_ok(ST, 0x1000);
    tcg_write_flags(c, 0, FL_AC);
    expect_pf(LD, 0x1000, PF_P);
    /* AC does not help implicit accesses, and CPL 3 does not hinder them. */
    tcg_write_flags(c, FL_AC, FL_AC);
    set_cpl(3);
    expect_ok(LD, 0x1000);
    if (!sigsetjmp(c->tcg->jmp, 0)) {
        tcg_ld_sys(c, NULL, 0x1000, 4);
        g_assert_not_reached();
    }
    g_assert_cmphex(c->tcg->exc.error, ==, PF_P);
    if (!sigsetjmp(c->tcg->jmp, 0)) {
        tcg_ld_sys(c, NULL, 0x2000, 4);
    } else {
        g_assert_not_reached();
    }
}

static void test_pku(void)
{
    start_long(CR4_PKE);
    put64(PT + 8, 0x20000 | RWU | 5ull << 59);
    put64(PT + 16, 0x21000 | PTE_P | PTE_W | 5ull << 59); /* supervisor page: no key */
    set_cpl(3);
    expect_ok(ST, 0x1000);
    tcg_pkru_set(c, 1u << 10); /* access disable */
    expect_pf(LD, 0x1000, PF_P | PF_U | PF_PK);
    expect_ok(FETCH, 0x1000);
    tcg_pkru_set(c, 2u << 10); /* write disable */
    expect_ok(LD, 0x1000);
    expect_pf(ST, 0x1000, PF_P | PF_U | PF_W | PF_PK);
    set_cpl(0);
    expect_pf(ST, 0x1000, PF_P | PF_W | PF_PK);
    expect_ok(ST, 0x2000);
    c->cr0 &= ~CR0_WP;
    flush();
    expect_ok(ST, 0x1000);
}

static void test_alignment(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    c->cr0 |= CR0_AM;
    set_cpl(3);
    expect_ok(LD, 0x1001);
    tcg_write_flags(c, FL_AC, FL_AC);
    Result r = access_mem(LD, 0x1001, 4, 0);
    g_assert_true(r.fault);
    g_assert_cmpint(r.vector, ==, EXCP_AC);
    g_assert_cmphex(r.error, ==, 0);
    expect_ok(LD, 0x1004);
    set_cpl(0);
    expect_ok(LD, 0x1001);
}

/* ---- Accessed and dirty ---- */

static void test_dirty_after_read(void)
{
    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    expect_ok(LD, 0x1000);
    g_assert_cmphex(get64(PT + 8) & (PTE_A | PTE_D), ==, PTE_A);
    expect_ok(ST, 0x1000);
    g_assert_cmphex(get64(PT + 8) & (PTE_A | PTE_D), ==, PTE_A | PTE_D);
    /* A fault changes nothing. */
    put64(PT + 16, 0x20000 | PTE_P);
    expect_pf(ST, 0x2000, PF_P | PF_W);
    g_assert_cmphex(get64(PT + 16), ==, 0x20000 | PTE_P);
}

static atomic_bool racing;

/* Sets and clears software bits of the PTE atomically, as another CPU's kernel does. */
static void *race_thread(void *opaque)
{
    _Atomic uint64_t *pte = (_Atomic uint64_t *)(void *)(ram + PT + 8);
    uint64_t lost = 0;

    for (uint64_t n = 0; atomic_load(&racing); n++) {
        uint64_t bit = BIT64(52 + n % 4);

        atomic_fetch_or(pte, bit);
        lost += !(atomic_load(pte) & bit);
        atomic_fetch_and(pte, ~(bit | PTE_A | PTE_D));
    }
    return (void *)(uintptr_t)lost;
}

static void test_ad_atomic(void)
{
    pthread_t t;
    void *lost;

    start_long(0);
    put64(PT + 8, 0x20000 | RWU);
    atomic_store(&racing, true);
    g_assert_cmpint(pthread_create(&t, NULL, race_thread, NULL), ==, 0);
    for (unsigned n = 0; n < 300000; n++) {
        tcg_tlb_flush_page(c, 0x1000);
        expect_ok(ST, 0x1000);
    }
    atomic_store(&racing, false);
    pthread_join(t, &lost);
    g_assert_cmpuint((uintptr_t)lost, ==, 0);
    g_assert_cmphex(get64(PT + 8) & PTE_ADDR, ==, 0x20000);
}

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
    machine_make();
    g_test_add_func("/mmu/32bit", test_32bit);
    g_test_add_func("/mmu/pse", test_pse);
    g_test_add_func("/mmu/pae", test_pae);
    g_test_add_func("/mmu/4level", test_4level);
    g_test_add_func("/mmu/missing-tables", test_missing_tables);
    g_test_add_func("/mmu/smep-smap", test_smep_smap);
    g_test_add_func("/mmu/pku", test_pku);
    g_test_add_func("/mmu/alignment", test_alignment);
    g_test_add_func("/mmu/dirty-after-read", test_dirty_after_read);
    g_test_add_func("/mmu/accessed-dirty-atomic", test_ad_atomic);
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
