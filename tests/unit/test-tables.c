/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI and SMBIOS tables: check sums, pointers, structure; iasl reads what was written. */
#include <glib/gstdio.h>
#include <string.h>
#include "hw/i386/acpi-build.h"
#include "hw/i386/boot.h"
#include "hw/i386/smbios.h"

#define TABLES 0xe0040u
#define RSDP   0xe0000u

static uint32_t id_plain(unsigned cpu)
{
    return cpu;
}

/* Three threads of a core leave a hole in each group of four. */
static uint32_t id_holes(unsigned cpu)
{
    return cpu / 3 * 4 + cpu % 3;
}

static uint8_t sum(const uint8_t *p, size_t len)
{
    uint8_t v = 0;
    while (len--) {
        v = (uint8_t)(v + *p++);
    }
    return v;
}

static void make(AcpiTables *t, unsigned cpus, unsigned maxcpus, uint32_t (*id)(unsigned))
{
    AcpiConfig cfg = { .cpus = cpus, .maxcpus = maxcpus, .apic_id = id, .hpet = true, .pit = true,
                       .serial_mask = 0xf, .s3 = true, .s4 = true, .s4_val = 2 };
    acpi_build(t, &cfg);
    acpi_link(t, TABLES, RSDP);
}

static const uint8_t *table_at(const AcpiTables *t, uint64_t addr)
{
    g_assert_cmphex(addr, >=, TABLES);
    g_assert_cmphex(addr - TABLES + 36, <=, t->tables->len);
    return t->tables->data + (addr - TABLES);
}

/* By the XSDT, as a guest does; checks each table on the way. The first of that name but nth. */
static const uint8_t *find_nth(const AcpiTables *t, const char *sig, unsigned nth)
{
    const uint8_t *rsdp = t->rsdp->data, *found = NULL;
    g_assert_cmpmem(rsdp, 8, "RSD PTR ", 8);
    g_assert_cmpuint(sum(rsdp, 20), ==, 0);
    g_assert_cmpuint(sum(rsdp, 36), ==, 0);
    const uint8_t *xsdt = table_at(t, boot_ld64(rsdp + 24));
    const uint8_t *rsdt = table_at(t, boot_ld32(rsdp + 16));
    g_assert_cmpmem(xsdt, 4, "XSDT", 4);
    g_assert_cmpmem(rsdt, 4, "RSDT", 4);
    unsigned n = (boot_ld32(xsdt + 4) - 36) / 8;
    g_assert_cmpuint((boot_ld32(rsdt + 4) - 36) / 4, ==, n);
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *p = table_at(t, boot_ld64(xsdt + 36 + 8 * i));
        g_assert_cmphex(boot_ld32(rsdt + 36 + 4 * i), ==, boot_ld64(xsdt + 36 + 8 * i));
        g_assert_cmpuint(sum(p, boot_ld32(p + 4)), ==, 0);
        if (memcmp(p, sig, 4) == 0 && nth-- == 0) {
            found = p;
        }
    }
    g_assert_cmpuint(sum(xsdt, boot_ld32(xsdt + 4)), ==, 0);
    g_assert_cmpuint(sum(rsdt, boot_ld32(rsdt + 4)), ==, 0);
    return found;
}

static const uint8_t *find(const AcpiTables *t, const char *sig)
{
    return find_nth(t, sig, 0);
}

static void test_links(void)
{
    AcpiTables t;
    make(&t, 2, 4, id_plain);
    const uint8_t *fadt = find(&t, "FACP");
    g_assert_nonnull(fadt);
    g_assert_cmpuint(boot_ld32(fadt + 4), ==, 268);
    const uint8_t *dsdt = table_at(&t, boot_ld32(fadt + 40));
    g_assert_cmpmem(dsdt, 4, "DSDT", 4);
    g_assert_cmphex(boot_ld64(fadt + 140), ==, boot_ld32(fadt + 40));
    g_assert_cmpuint(sum(dsdt, boot_ld32(dsdt + 4)), ==, 0);
    uint32_t facs = boot_ld32(fadt + 36);
    g_assert_cmpuint(facs % 64, ==, 0);
    g_assert_cmpmem(table_at(&t, facs), 4, "FACS", 4);
    g_assert_cmphex(boot_ld32(fadt + 48), ==, 0xb2);
    g_assert_cmphex(boot_ld32(fadt + 76), ==, 0x608);
    g_assert_cmphex(boot_ld64(fadt + 120), ==, 0xcf9);
    g_assert_nonnull(find(&t, "SSDT"));
    g_assert_nonnull(find(&t, "HPET"));
    acpi_free(&t);
}

static void count_madt(const uint8_t *madt, unsigned *lapic, unsigned *x2apic, unsigned *enabled,
                       unsigned *overrides)
{
    *lapic = *x2apic = *enabled = *overrides = 0;
    for (uint32_t o = 44; o < boot_ld32(madt + 4); o += madt[o + 1]) {
        g_assert_cmpuint(madt[o + 1], >=, 2);
        if (madt[o] == 0) {
            (*lapic)++;
            *enabled += boot_ld32(madt + o + 4) & 1;
        } else if (madt[o] == 9) {
            (*x2apic)++;
            *enabled += boot_ld32(madt + o + 8) & 1;
        } else if (madt[o] == 2) {
            (*overrides)++;
            if (madt[o + 3] == 0) {
                g_assert_cmpuint(boot_ld32(madt + o + 4), ==, 2);
            }
        }
    }
}

/* A CPU that comes is enabled in the tables as they are, and their check sums hold. */
static void test_madt_enable(void)
{
    AcpiTables t;
    unsigned lapic, x2apic, enabled, overrides;
    make(&t, 3, 8, id_plain);
    acpi_madt_enable(&t, 5, true);
    acpi_madt_enable(&t, 5, true);
    acpi_madt_enable(&t, 0, true);
    acpi_madt_enable(&t, 8, true);
    const uint8_t *madt = find(&t, "APIC");
    count_madt(madt, &lapic, &x2apic, &enabled, &overrides);
    g_assert_cmpuint(enabled, ==, 4);
    acpi_madt_enable(&t, 6, true);
    acpi_madt_enable(&t, 5, false);
    acpi_madt_enable(&t, 7, false);
    count_madt(find(&t, "APIC"), &lapic, &x2apic, &enabled, &overrides);
    g_assert_cmpuint(enabled, ==, 4);
    acpi_madt_enable(&t, 6, false);
    acpi_madt_enable(&t, 5, true);
    g_assert_cmpuint(madt[44 + 8 * 5 + 4], ==, 1);
    g_assert_cmpuint(acpi_madt_enabled(&t, 5), ==, (size_t)(madt + 44 + 8 * 5 + 4 - t.tables->data));
    g_assert_cmpuint(acpi_madt_enabled(&t, 8), ==, SIZE_MAX);
    acpi_free(&t);
}

static void test_madt(void)
{
    AcpiTables t;
    unsigned lapic, x2apic, enabled, overrides;
    make(&t, 3, 8, id_plain);
    count_madt(find(&t, "APIC"), &lapic, &x2apic, &enabled, &overrides);
    g_assert_cmpuint(lapic, ==, 8);
    g_assert_cmpuint(x2apic, ==, 0);
    g_assert_cmpuint(enabled, ==, 3);
    g_assert_cmpuint(overrides, ==, 5);
    acpi_free(&t);
    /* Identifiers from 255 up need the x2APIC form. */
    make(&t, 255, 255, id_holes);
    count_madt(find(&t, "APIC"), &lapic, &x2apic, &enabled, &overrides);
    g_assert_cmpuint(lapic + x2apic, ==, 255);
    g_assert_cmpuint(x2apic, ==, 255 - 192);
    g_assert_cmpuint(enabled, ==, 255);
    g_assert_cmpuint(t.tables->len, <, 0xf0000 - TABLES);
    acpi_free(&t);
}

/* ---- What the disassembler reads ---- */

static void check_ssdt(const char *text, unsigned maxcpus)
{
    g_autofree char *last = g_strdup_printf("Device (C%03X)", maxcpus - 1);
    g_assert_nonnull(strstr(text, last));
    g_assert_nonnull(strstr(text, "Scope (\\_SB.PCI0.ISA)"));
    g_assert_nonnull(strstr(text, "Device (COM4)"));
    g_assert_nonnull(strstr(text, "0x02F8,             // Range Minimum"));
    g_assert_nonnull(strstr(text, "0xFED00000,         // Address Base"));
    g_assert_nonnull(strstr(text, "Name (_S3"));
    g_assert_nonnull(strstr(text, "Name (_S4"));
    g_assert_null(strstr(text, "Unknown"));
    if (maxcpus == 1) {
        g_assert_nonnull(strstr(text, "Name (_STA, 0x0F)"));
        g_assert_null(strstr(text, "CSTA"));
        return;
    }
    g_autofree char *sta = g_strdup_printf("Return (CSTA (0x%02X))", maxcpus - 1);
    g_autofree char *notify = g_strdup_printf("Notify (C%03X, Arg1)", maxcpus - 1);
    g_assert_nonnull(strstr(text, sta));
    g_assert_nonnull(strstr(text, notify));
    g_autofree char *eject = g_strdup_printf("CEJT (0x%02X)", maxcpus - 1);
    g_assert_nonnull(strstr(text, eject));
    g_autofree char *ost = g_strdup_printf("COST (0x%02X, Arg0, Arg1)", maxcpus - 1);
    g_assert_nonnull(strstr(text, ost));
    g_assert_null(strstr(text, "CEJT (Zero)")); /* not the first one */
    g_assert_nonnull(strstr(text, "Method (CTFY, 2, NotSerialized)"));
    g_assert_nonnull(strstr(text, "Name (_MAT, Buffer (0x08)"));
}

static void check_dsdt(const char *text, unsigned maxcpus)
{
    g_assert_nonnull(strstr(text, "Name (_S5"));
    g_assert_nonnull(strstr(text, "Device (LNKD)"));
}

static void check_plug(const char *text, unsigned maxcpus)
{
    g_assert_nonnull(strstr(text, "OperationRegion (CREG, SystemIO, 0xAF00, 0x0C)"));
    g_assert_nonnull(strstr(text, "Method (\\_GPE._E02, 0, NotSerialized)"));
}

static bool run_iasl(char **argv)
{
    g_autofree char *out = NULL;
    int status = -1;
    return g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL, &status, NULL) &&
           status == 0;
}

/* Taken apart, looked at, and compiled again. */
static void iasl_table(char *iasl, const uint8_t *table, void (*check)(const char *text, unsigned maxcpus),
                       unsigned maxcpus)
{
    g_autofree char *dir = g_dir_make_tmp("test-tables-XXXXXX", NULL), *text = NULL;
    g_autofree char *aml = g_build_filename(dir, "t.aml", NULL), *dsl = g_build_filename(dir, "t.dsl", NULL);
    g_assert_true(g_file_set_contents(aml, (const char *)table, boot_ld32(table + 4), NULL));
    g_assert_true(run_iasl((char *[]){ iasl, "-d", aml, NULL }));
    g_assert_true(g_file_get_contents(dsl, &text, NULL, NULL));
    check(text, maxcpus);
    g_assert_true(run_iasl((char *[]){ iasl, "-vs", dsl, NULL }));
    g_unlink(dsl);
    g_unlink(aml);
    g_rmdir(dir);
}

/* The disassembler takes SSDTs and DSDT, and sees what was meant. */
static void test_iasl(void)
{
    g_autofree char *iasl = g_find_program_in_path("iasl");
    static const unsigned counts[] = { 1, 40, 255 };
    if (!iasl) {
        g_test_skip("iasl is not installed");
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(counts); i++) {
        AcpiTables t;
        make(&t, 1, counts[i], id_plain);
        const uint8_t *plug = find_nth(&t, "SSDT", 1);
        g_assert_cmpint(plug != NULL, ==, counts[i] > 1);
        g_assert_cmpuint(t.tables->len, <, 0xf0000 - TABLES);
        iasl_table(iasl, find(&t, "SSDT"), check_ssdt, counts[i]);
        iasl_table(iasl, table_at(&t, boot_ld32(find(&t, "FACP") + 40)), check_dsdt, counts[i]);
        if (plug) {
            iasl_table(iasl, plug, check_plug, counts[i]);
        }
        acpi_free(&t);
    }
}

static void test_smbios(void)
{
    static const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    SmbiosConfig cfg = { .ram_size = 20 * GiB, .sockets = 3, .cores = 2, .threads = 1,
                         .uuid = uuid, .product = "board", .version = "1", .type0 = true };
    unsigned count, largest, seen = 0, types[128] = { 0 };
    g_autoptr(GByteArray) tab = smbios_build(&cfg, &count, &largest);
    const uint8_t *p = tab->data, *end = tab->data + tab->len;
    while (p < end) {
        const uint8_t *s = p + p[1];
        types[p[0]]++;
        seen++;
        if (p[0] == 1) { /* 7.2.1: the first fields are swapped */
            g_assert_cmphex(boot_ld32(p + 8), ==, 0x00010203);
            g_assert_cmphex(p[16], ==, 8);
        }
        while (s[0] || s[1]) {
            s++;
            g_assert_true(s + 1 < end);
        }
        g_assert_cmpuint(s + 2 - p, <=, largest);
        p = s + 2;
    }
    g_assert_cmpuint(seen, ==, count);
    g_assert_cmpuint(types[0], ==, 1);
    g_assert_cmpuint(types[4], ==, 3);
    g_assert_cmpuint(types[17], ==, 2);
    g_assert_cmpuint(types[19], ==, 2);
    g_assert_cmpuint(types[127], ==, 1);
    uint8_t anchor[SMBIOS_ANCHOR_SIZE];
    smbios_anchor(anchor, tab, count, largest, 0xf0020);
    g_assert_cmpuint(sum(anchor, SMBIOS_ANCHOR_SIZE), ==, 0);
    g_assert_cmpuint(sum(anchor + 16, 15), ==, 0);
    g_assert_cmphex(boot_ld32(anchor + 24), ==, 0xf0020);
    g_assert_cmpuint(boot_ld16(anchor + 22), ==, tab->len);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tables/links", test_links);
    g_test_add_func("/tables/madt", test_madt);
    g_test_add_func("/tables/madt-enable", test_madt_enable);
    g_test_add_func("/tables/iasl", test_iasl);
    g_test_add_func("/tables/smbios", test_smbios);
    return g_test_run();
}
