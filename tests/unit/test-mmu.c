/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page walks of every paging mode, rights, accessed and dirty bits. */
#include "mmu-machine.h"
#include "target/i386/dump.h"

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

/* ---- All mappings ---- */

static bool add_mapping(void *opaque, const X86Mapping *m)
{
    g_string_append_printf(opaque, "%llx+%llx>%llx%s%s ", (unsigned long long)m->lin, (unsigned long long)m->size,
                           (unsigned long long)m->phys, m->user ? "u" : "", m->writable ? "w" : "");
    return ((GString *)opaque)->len < 4000;
}

static void expect_mappings(const char *text)
{
    g_autoptr(GString) s = g_string_new(NULL);

    g_assert_true(x86_mappings(c, 100000, add_mapping, s));
    g_assert_cmpstr(s->str, ==, text);
}

static void test_mappings(void)
{
    g_autoptr(GString) s = g_string_new(NULL);

    start(CR0_PG, CR4_PSE, 0, PD);
    put32(PD, PT | PTE_P | PTE_U);
    put32(PT + 4 * 5, 0x20000 | RWU);
    put32(PT + 4 * 6, 0x21000 | PTE_P);
    put32(PD + 4 * 1023, 0xc00000 | BIT(13) | PTE_PS | RWU);
    expect_mappings("5000+1000>20000u 6000+1000>21000 ffc00000+400000>100c00000uw ");

    start(CR0_PG, CR4_PAE, EFER_NXE, 0x10020);
    put64(0x10020 + 8, PD | PTE_P);
    put64(PD, PT | RWU);
    put64(PD + 8, 0x400000 | PTE_PS | PTE_P);
    put64(PT + 16, 0x20000 | RWU | PTE_NX);
    expect_mappings("40002000+1000>20000uw 40200000+200000>400000 ");

    start_long(0);
    memset(ram + PML4, 0, 0x5000);
    put64(PML4 + 8 * 511, PDPT | PTE_P | PTE_W);
    put64(PDPT + 8 * 511, 0x40000000 | PTE_PS | RWU);
    put64(PDPT, PD | RWU);
    put64(PD, PT | RWU);
    put64(PT, 0x20000 | RWU);
    expect_mappings("ffffff8000000000+1000>20000w ffffffffc0000000+40000000>40000000w ");

    /* Tables that are their own: an end comes. */
    for (unsigned i = 0; i < 512; i++) {
        put64(PML4 + 8 * i, PML4 | PTE_P | PTE_W);
    }
    g_assert_false(x86_mappings(c, 100000, add_mapping, s));
    g_string_truncate(s, 0);
    memset(ram + PML4, 0, 4096);
    put64(PML4, PML4 | RWU);
    g_assert_true(x86_mappings(c, 100000, add_mapping, s));
    g_assert_false(x86_mappings(c, 2047, add_mapping, s));
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    mmu_machine_make();
    g_test_add_func("/mmu/32bit", test_32bit);
    g_test_add_func("/mmu/pse", test_pse);
    g_test_add_func("/mmu/pae", test_pae);
    g_test_add_func("/mmu/4level", test_4level);
    g_test_add_func("/mmu/missing-tables", test_missing_tables);
    g_test_add_func("/mmu/smep-smap", test_smep_smap);
    g_test_add_func("/mmu/pku", test_pku);
    g_test_add_func("/mmu/alignment", test_alignment);
    g_test_add_func("/mmu/mappings", test_mappings);
    g_test_add_func("/mmu/dirty-after-read", test_dirty_after_read);
    g_test_add_func("/mmu/accessed-dirty-atomic", test_ad_atomic);
    return g_test_run();
}
