/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ACPI tables of the "pc" board (ACPI Specification 6.4, chapter 5.2). Built once, position
 * independent: tables hold offsets, and a list of linker commands (the firmware's "table loader"
 * interface) says which fields become addresses and where check sums go. Firmware executes the
 * list; for direct kernel boot acpi_link() does. All HELPER_ONLY, start-up.
 */
#ifndef HW_I386_ACPI_BUILD_H
#define HW_I386_ACPI_BUILD_H

#include <glib.h>
#include "qemu/compiler.h"

#define ACPI_FILE_TABLES "etc/acpi/tables"
#define ACPI_FILE_RSDP   "etc/acpi/rsdp"
#define ACPI_FILE_LOADER "etc/table-loader"

typedef struct AcpiConfig {
    unsigned cpus, maxcpus;
    uint32_t (*apic_id)(unsigned cpu);
    bool hpet, pit;
    unsigned serial_mask; /* bit n: COMn+1 exists */
    bool s3, s4;
    uint8_t s4_val;
} AcpiConfig;

typedef struct AcpiTables {
    GByteArray *tables, *rsdp, *linker;
    size_t madt, madt_cpus; /* offsets of the table and of its first CPU in tables */
} AcpiTables;

/* Are there places for CPUs that come later? */
static inline bool acpi_can_plug_cpus(const AcpiConfig *cfg)
{
    return cfg->maxcpus > cfg->cpus;
}

void acpi_build(AcpiTables *t, const AcpiConfig *cfg);
void acpi_free(AcpiTables *t);
/* Executes the linker commands in place, for tables at these guest addresses. */
void acpi_link(AcpiTables *t, uint64_t tables_addr, uint64_t rsdp_addr);

/*
 * The offset of the byte in tables by which the MADT says whether a CPU is there (1 or 0; the table's
 * check sum changes by as much the other way). SIZE_MAX: none, a table cannot say so.
 */
size_t acpi_madt_enabled(const AcpiTables *t, unsigned cpu);
/* The same, done in tables that acpi_link() went over. RT_SAFE. */
void acpi_madt_enable(AcpiTables *t, unsigned cpu, bool yes);

/* ---- Pieces (acpi-tables.c, acpi-aml.c) ---- */

/* Starts a table with its header (5.2.6) at the end of t->tables; returns its offset. */
size_t acpi_table_begin(AcpiTables *t, const char sig[4], uint8_t revision);
/* Sets the length and orders the check sum. */
void acpi_table_end(AcpiTables *t, size_t start);
/* The field of size bytes at offset in file holds an offset in the tables: make it an address. */
void acpi_add_pointer(AcpiTables *t, const char *file, size_t offset, unsigned size);
void acpi_put(GByteArray *a, uint64_t v, unsigned size);
/* A CPU's entry in the MADT. */
void acpi_madt_cpu(GByteArray *a, unsigned cpu, uint32_t apic_id, bool enabled);
/* SSDT: what depends on the command line (CPUs, HPET, serial ports, S3, S4). */
size_t acpi_build_ssdt(AcpiTables *t, const AcpiConfig *cfg);

#endif
