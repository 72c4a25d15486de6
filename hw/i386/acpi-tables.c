/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI tables: headers, FADT, MADT, HPET, RSDT, XSDT, RSDP, and the linker commands. */
#include <string.h>
#include "hw/i386/acpi-build.h"
#include "hw/i386/boot.h"
#include "hw/i386/dsdt.h"
#include "hw/i386/ssdt-cpus.h"
#include "hw/i440fx.h"

#define OEM_ID       "QEMURT"
#define OEM_TABLE_ID "QEMURTPC"
#define CREATOR_ID   "QRT "
#define HEADER_SIZE  36

enum { MADT_CPU_SIZE = 8 };
enum { LOADER_ALLOCATE = 1, LOADER_ADD_POINTER = 2, LOADER_ADD_CHECKSUM = 3 };
enum { LOADER_ZONE_HIGH = 1, LOADER_ZONE_FSEG = 2 };
#define LOADER_ENTRY 128
#define LOADER_NAME  56

void acpi_put(GByteArray *a, uint64_t v, unsigned size)
{
    uint8_t b[8];
    boot_st64(b, v);
    g_byte_array_append(a, b, size);
}

static void put_zeros(GByteArray *a, size_t n)
{
    guint at = a->len;
    g_byte_array_set_size(a, (guint)(at + n));
    memset(a->data + at, 0, n);
}

/* ---- Linker commands ---- */

static void loader_allocate(AcpiTables *t, const char *file, uint32_t align, uint8_t zone)
{
    uint8_t e[LOADER_ENTRY] = { 0 };
    boot_st32(e, LOADER_ALLOCATE);
    g_strlcpy((char *)e + 4, file, LOADER_NAME);
    boot_st32(e + 60, align);
    e[64] = zone;
    g_byte_array_append(t->linker, e, sizeof(e));
}

void acpi_add_pointer(AcpiTables *t, const char *file, size_t offset, unsigned size)
{
    uint8_t e[LOADER_ENTRY] = { 0 };
    boot_st32(e, LOADER_ADD_POINTER);
    g_strlcpy((char *)e + 4, file, LOADER_NAME);
    g_strlcpy((char *)e + 60, ACPI_FILE_TABLES, LOADER_NAME);
    boot_st32(e + 116, (uint32_t)offset);
    e[120] = (uint8_t)size;
    g_byte_array_append(t->linker, e, sizeof(e));
}

static void loader_checksum(AcpiTables *t, const char *file, size_t offset, size_t start,
                            size_t len)
{
    uint8_t e[LOADER_ENTRY] = { 0 };
    boot_st32(e, LOADER_ADD_CHECKSUM);
    g_strlcpy((char *)e + 4, file, LOADER_NAME);
    boot_st32(e + 60, (uint32_t)offset);
    boot_st32(e + 64, (uint32_t)start);
    boot_st32(e + 68, (uint32_t)len);
    g_byte_array_append(t->linker, e, sizeof(e));
}

static GByteArray *loader_file(AcpiTables *t, const uint8_t *name)
{
    return strcmp((const char *)name, ACPI_FILE_RSDP) == 0 ? t->rsdp : t->tables;
}

void acpi_link(AcpiTables *t, uint64_t tables_addr, uint64_t rsdp_addr)
{
    for (guint o = 0; o + LOADER_ENTRY <= t->linker->len; o += LOADER_ENTRY) {
        const uint8_t *e = t->linker->data + o;
        GByteArray *f = loader_file(t, e + 4);
        uint32_t cmd = boot_ld32(e);
        if (cmd == LOADER_ADD_POINTER) {
            uint8_t *p = f->data + boot_ld32(e + 116);
            if (e[120] == 8) {
                boot_st64(p, boot_ld64(p) + tables_addr);
            } else {
                boot_st32(p, (uint32_t)(boot_ld32(p) + tables_addr));
            }
        } else if (cmd == LOADER_ADD_CHECKSUM) {
            uint8_t *sum = f->data + boot_ld32(e + 60), v = 0;
            uint32_t start = boot_ld32(e + 64), len = boot_ld32(e + 68);
            for (uint32_t i = 0; i < len; i++) {
                v = (uint8_t)(v + f->data[start + i]);
            }
            *sum = (uint8_t)(*sum - v);
        }
    }
}

/* ---- Tables ---- */

size_t acpi_table_begin(AcpiTables *t, const char sig[4], uint8_t revision)
{
    GByteArray *a = t->tables;
    put_zeros(a, ROUND_UP((size_t)a->len, (size_t)8) - a->len);
    size_t start = a->len;
    g_byte_array_append(a, (const guint8 *)sig, 4);
    acpi_put(a, 0, 4); /* length: acpi_table_end() */
    acpi_put(a, revision, 1);
    acpi_put(a, 0, 1); /* check sum */
    g_byte_array_append(a, (const guint8 *)OEM_ID, 6);
    g_byte_array_append(a, (const guint8 *)OEM_TABLE_ID, 8);
    acpi_put(a, 1, 4);
    g_byte_array_append(a, (const guint8 *)CREATOR_ID, 4);
    acpi_put(a, 1, 4);
    return start;
}

void acpi_table_end(AcpiTables *t, size_t start)
{
    size_t len = t->tables->len - start;
    boot_st32(t->tables->data + start + 4, (uint32_t)len);
    loader_checksum(t, ACPI_FILE_TABLES, start + 9, start, len);
}

static void put_gas(GByteArray *a, uint8_t bits, uint8_t access, uint64_t port)
{
    acpi_put(a, 1, 1); /* system I/O */
    acpi_put(a, bits, 1);
    acpi_put(a, 0, 1);
    acpi_put(a, access, 1);
    acpi_put(a, port, 8);
}

/* FACS (5.2.10): 64-byte aligned, no check sum. */
static size_t build_facs(AcpiTables *t)
{
    size_t start = t->tables->len;
    g_byte_array_append(t->tables, (const guint8 *)"FACS", 4);
    acpi_put(t->tables, 64, 4);
    put_zeros(t->tables, 56);
    t->tables->data[start + 32] = 2; /* version */
    return start;
}

/* One that iasl compiled. */
static size_t add_compiled(AcpiTables *t, const uint8_t *aml, size_t len)
{
    GByteArray *a = t->tables;
    put_zeros(a, ROUND_UP((size_t)a->len, (size_t)8) - a->len);
    size_t start = a->len;
    g_byte_array_append(a, aml, (guint)len);
    a->data[start + 9] = 0; /* the linker command writes it anew */
    loader_checksum(t, ACPI_FILE_TABLES, start + 9, start, len);
    return start;
}

/* Fixed feature flags (table 5.10). */
#define FADT_WBINVD       BIT(0)
#define FADT_PROC_C1      BIT(2)
#define FADT_SLP_BUTTON   BIT(5) /* no fixed sleep button */
#define FADT_RESET_REG    BIT(10)
/* IA-PC boot architecture flags (table 5.11). */
#define FADT_LEGACY_DEVICES BIT(0)
#define FADT_8042           BIT(1)
#define FADT_NO_VGA         BIT(2)

static void fadt_legacy_part(AcpiTables *t, GByteArray *a, size_t facs, size_t dsdt)
{
    size_t ptr = a->len;
    acpi_put(a, facs, 4);
    acpi_add_pointer(t, ACPI_FILE_TABLES, ptr, 4);
    acpi_put(a, dsdt, 4);
    acpi_add_pointer(t, ACPI_FILE_TABLES, ptr + 4, 4);
    acpi_put(a, 1, 1); /* INT_MODEL: as in ACPI 1.0, reserved since */
    acpi_put(a, 0, 1); /* preferred profile: unspecified */
    acpi_put(a, ACPI_SCI_IRQ, 2);
    acpi_put(a, ACPI_SMI_CMD, 4);
    acpi_put(a, ACPI_ENABLE, 1);
    acpi_put(a, ACPI_DISABLE, 1);
    acpi_put(a, 0, 1); /* S4BIOS_REQ */
    acpi_put(a, 0, 1); /* PSTATE_CNT */
    acpi_put(a, PIIX4_PM_IO, 4);       /* PM1a event */
    acpi_put(a, 0, 4);
    acpi_put(a, PIIX4_PM_IO + 4, 4);   /* PM1a control */
    acpi_put(a, 0, 4);
    acpi_put(a, 0, 4);                 /* PM2 control */
    acpi_put(a, PIIX4_PM_IO + 8, 4);   /* PM timer */
    acpi_put(a, PIIX4_PM_IO + 0xc, 4); /* GPE0 */
    acpi_put(a, 0, 4);
    acpi_put(a, 4, 1); /* lengths: PM1 event, PM1 control, PM2 control, timer, GPE0, GPE1 */
    acpi_put(a, 2, 1);
    acpi_put(a, 0, 1);
    acpi_put(a, 4, 1);
    acpi_put(a, 4, 1);
    acpi_put(a, 0, 1);
    acpi_put(a, 0, 1);      /* GPE1 base */
    acpi_put(a, 0, 1);      /* CST_CNT */
    acpi_put(a, 0xfff, 2);  /* C2 and C3 latency: above 100 and 1000: not supported */
    acpi_put(a, 0xfff, 2);
    acpi_put(a, 0, 2);      /* flush size and stride: WBINVD works */
    acpi_put(a, 0, 2);
    acpi_put(a, 0, 1);      /* duty cycle */
    acpi_put(a, 0, 1);
    acpi_put(a, 0, 1);      /* day and month alarm: none */
    acpi_put(a, 0, 1);
    acpi_put(a, 0x32, 1);   /* CMOS index of the century */
}

static size_t build_fadt(AcpiTables *t, size_t facs, size_t dsdt)
{
    GByteArray *a = t->tables;
    size_t start = acpi_table_begin(t, "FACP", 5);
    fadt_legacy_part(t, a, facs, dsdt);
    acpi_put(a, FADT_LEGACY_DEVICES | FADT_8042 | FADT_NO_VGA, 2);
    acpi_put(a, 0, 1);
    acpi_put(a, FADT_WBINVD | FADT_PROC_C1 | FADT_SLP_BUTTON | FADT_RESET_REG, 4);
    put_gas(a, 8, 1, 0xcf9);
    acpi_put(a, 0x06, 1); /* hard reset of the CPU */
    acpi_put(a, 0, 2);    /* ARM boot flags */
    acpi_put(a, 1, 1);    /* minor version */
    size_t x = a->len;
    acpi_put(a, 0, 8); /* X_FIRMWARE_CTRL: the 32-bit one is used */
    acpi_put(a, dsdt, 8);
    acpi_add_pointer(t, ACPI_FILE_TABLES, x + 8, 8);
    put_gas(a, 32, 2, PIIX4_PM_IO);
    put_zeros(a, 12);
    put_gas(a, 16, 2, PIIX4_PM_IO + 4);
    put_zeros(a, 12);
    put_zeros(a, 12);
    put_gas(a, 32, 3, PIIX4_PM_IO + 8);
    put_gas(a, 32, 1, PIIX4_PM_IO + 0xc);
    put_zeros(a, 12);
    put_zeros(a, 24); /* sleep control and status: for hardware-reduced machines */
    acpi_table_end(t, start);
    return start;
}

/* Interrupt source override (5.2.12.5); polarity and trigger in MPS INTI flags. */
static void madt_override(GByteArray *a, uint8_t irq, uint32_t gsi, uint16_t flags)
{
    acpi_put(a, 2, 1);
    acpi_put(a, 10, 1);
    acpi_put(a, 0, 1); /* ISA */
    acpi_put(a, irq, 1);
    acpi_put(a, gsi, 4);
    acpi_put(a, flags, 2);
}

void acpi_madt_cpu(GByteArray *a, unsigned cpu, uint32_t apic_id, bool enabled)
{
    if (apic_id < 255 && cpu < 255) {
        acpi_put(a, 0, 1); /* processor local APIC */
        acpi_put(a, MADT_CPU_SIZE, 1);
        acpi_put(a, cpu, 1);
        acpi_put(a, apic_id, 1);
        acpi_put(a, enabled, 4);
    } else {
        acpi_put(a, 9, 1); /* processor local x2APIC */
        acpi_put(a, 16, 1);
        acpi_put(a, 0, 2);
        acpi_put(a, apic_id, 4);
        acpi_put(a, enabled, 4);
        acpi_put(a, cpu, 4);
    }
}

/* Those with larger ids cannot be plugged in: the board has no more than 255 CPUs. */
size_t acpi_madt_enabled(const AcpiTables *t, unsigned cpu)
{
    size_t at = t->madt_cpus + (size_t)cpu * MADT_CPU_SIZE;
    bool plain = at + MADT_CPU_SIZE <= t->tables->len && t->tables->data[at] == 0 &&
                 t->tables->data[at + 2] == cpu;
    return plain ? at + 4 : SIZE_MAX;
}

void acpi_madt_enable(AcpiTables *t, unsigned cpu, bool yes)
{
    size_t at = acpi_madt_enabled(t, cpu);
    if (at != SIZE_MAX) {
        uint8_t *data = t->tables->data;
        data[t->madt + 9] = (uint8_t)(data[t->madt + 9] + data[at] - yes);
        data[at] = yes;
    }
}

static size_t build_madt(AcpiTables *t, const AcpiConfig *cfg)
{
    static const uint8_t level_irqs[] = { 5, 9, 10, 11 };
    GByteArray *a = t->tables;
    size_t start = acpi_table_begin(t, "APIC", 4);
    acpi_put(a, 0xfee00000, 4);
    acpi_put(a, 1, 4); /* PCAT_COMPAT: there is an 8259 pair */
    t->madt = start;
    t->madt_cpus = a->len;
    for (unsigned i = 0; i < cfg->maxcpus; i++) {
        acpi_madt_cpu(a, i, cfg->apic_id(i), i < cfg->cpus);
    }
    acpi_put(a, 1, 1); /* I/O APIC */
    acpi_put(a, 12, 1);
    acpi_put(a, 0, 2);
    acpi_put(a, 0xfec00000, 4);
    acpi_put(a, 0, 4);
    madt_override(a, 0, 2, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(level_irqs); i++) {
        madt_override(a, level_irqs[i], level_irqs[i], 0xd); /* active high, level */
    }
    acpi_put(a, 4, 1); /* local APIC NMI: LINT1 of all CPUs */
    acpi_put(a, 6, 1);
    acpi_put(a, 0xff, 1);
    acpi_put(a, 0, 2);
    acpi_put(a, 1, 1);
    acpi_table_end(t, start);
    return start;
}

/* IA-PC HPET 1.0a, section 3.2.4. */
static size_t build_hpet(AcpiTables *t)
{
    GByteArray *a = t->tables;
    size_t start = acpi_table_begin(t, "HPET", 1);
    acpi_put(a, 0x8086a201, 4); /* low half of the capabilities register */
    acpi_put(a, 0, 1);          /* address: memory */
    acpi_put(a, 0, 1);
    acpi_put(a, 0, 1);
    acpi_put(a, 0, 1);
    acpi_put(a, 0xfed00000, 8);
    acpi_put(a, 0, 1);   /* number */
    acpi_put(a, 0, 2);   /* minimum tick in periodic mode */
    acpi_put(a, 0, 1);   /* page protection */
    acpi_table_end(t, start);
    return start;
}

static size_t build_root(AcpiTables *t, const char *sig, unsigned ptr_size, const size_t *tables,
                         unsigned n)
{
    size_t start = acpi_table_begin(t, sig, 1);
    for (unsigned i = 0; i < n; i++) {
        size_t at = t->tables->len;
        acpi_put(t->tables, tables[i], ptr_size);
        acpi_add_pointer(t, ACPI_FILE_TABLES, at, ptr_size);
    }
    acpi_table_end(t, start);
    return start;
}

/* 5.2.5.3 */
static void build_rsdp(AcpiTables *t, size_t rsdt, size_t xsdt)
{
    GByteArray *a = t->rsdp;
    g_byte_array_append(a, (const guint8 *)"RSD PTR ", 8);
    acpi_put(a, 0, 1);
    g_byte_array_append(a, (const guint8 *)OEM_ID, 6);
    acpi_put(a, 2, 1);
    acpi_put(a, rsdt, 4);
    acpi_put(a, 36, 4);
    acpi_put(a, xsdt, 8);
    acpi_put(a, 0, 4); /* extended check sum, reserved */
    acpi_add_pointer(t, ACPI_FILE_RSDP, 16, 4);
    acpi_add_pointer(t, ACPI_FILE_RSDP, 24, 8);
    loader_checksum(t, ACPI_FILE_RSDP, 8, 0, 20);
    loader_checksum(t, ACPI_FILE_RSDP, 32, 0, 36);
}

void acpi_build(AcpiTables *t, const AcpiConfig *cfg)
{
    size_t list[8];
    unsigned n = 0;
    t->tables = g_byte_array_new();
    t->rsdp = g_byte_array_new();
    t->linker = g_byte_array_new();
    loader_allocate(t, ACPI_FILE_TABLES, 64, LOADER_ZONE_HIGH);
    loader_allocate(t, ACPI_FILE_RSDP, 16, LOADER_ZONE_FSEG);
    size_t facs = build_facs(t);
    size_t dsdt = add_compiled(t, dsdt_aml_code, sizeof(dsdt_aml_code));
    list[n++] = build_fadt(t, facs, dsdt);
    list[n++] = acpi_build_ssdt(t, cfg);
    if (acpi_can_plug_cpus(cfg)) {
        list[n++] = add_compiled(t, ssdt_cpus_aml_code, sizeof(ssdt_cpus_aml_code));
    }
    list[n++] = build_madt(t, cfg);
    if (cfg->hpet) {
        list[n++] = build_hpet(t);
    }
    size_t rsdt = build_root(t, "RSDT", 4, list, n);
    size_t xsdt = build_root(t, "XSDT", 8, list, n);
    build_rsdp(t, rsdt, xsdt);
}

void acpi_free(AcpiTables *t)
{
    g_byte_array_free(t->tables, TRUE);
    g_byte_array_free(t->rsdp, TRUE);
    g_byte_array_free(t->linker, TRUE);
}
