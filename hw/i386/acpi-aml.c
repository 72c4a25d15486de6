/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SSDT: objects that depend on the command line, encoded straight to AML (ACPI 6.4, chapter
 * 20.2). What is the same on every machine is in dsdt.asl.
 */
#include <string.h>
#include "hw/i386/acpi-build.h"

enum { AML_NAME = 0x08, AML_BYTE = 0x0a, AML_WORD = 0x0b, AML_DWORD = 0x0c, AML_STRING = 0x0d,
       AML_SCOPE = 0x10, AML_BUFFER = 0x11, AML_PACKAGE = 0x12, AML_METHOD = 0x14, AML_EXTERNAL = 0x15,
       AML_EXT = 0x5b, AML_EXT_DEVICE = 0x82, AML_ARG0 = 0x68, AML_ARG1 = 0x69, AML_NOTIFY = 0x86,
       AML_EQUAL = 0x93, AML_IF = 0xa0, AML_RETURN = 0xa4 };
enum { TYPE_METHOD = 8 }; /* ObjectType of External() */

static void op(GByteArray *a, uint8_t v)
{
    g_byte_array_append(a, &v, 1);
}

static void name_seg(GByteArray *a, const char seg[4])
{
    g_byte_array_append(a, (const guint8 *)seg, 4);
}

static void integer(GByteArray *a, uint32_t v)
{
    if (v < 2) {
        op(a, (uint8_t)v); /* ZeroOp, OneOp */
    } else if (v < 0x100) {
        op(a, AML_BYTE);
        acpi_put(a, v, 1);
    } else if (v < 0x10000) {
        op(a, AML_WORD);
        acpi_put(a, v, 2);
    } else {
        op(a, AML_DWORD);
        acpi_put(a, v, 4);
    }
}

/*
 * A package's PkgLength counts itself, so its content is built first. Two or three bytes are used
 * for lengths from 64 and 4096 up (20.2.4).
 */
static void append_package(GByteArray *a, const GByteArray *body)
{
    guint len = body->len + 1;
    if (len < 0x40) {
        op(a, (uint8_t)len);
    } else if (++len < 0x1000) {
        op(a, (uint8_t)(0x40 | (len & 15)));
        op(a, (uint8_t)(len >> 4));
    } else {
        len++;
        op(a, (uint8_t)(0x80 | (len & 15)));
        op(a, (uint8_t)(len >> 4));
        op(a, (uint8_t)(len >> 12));
    }
    g_byte_array_append(a, body->data, body->len);
}

static void name_int(GByteArray *a, const char seg[4], uint32_t v)
{
    op(a, AML_NAME);
    name_seg(a, seg);
    integer(a, v);
}

static void name_string(GByteArray *a, const char seg[4], const char *s)
{
    op(a, AML_NAME);
    name_seg(a, seg);
    op(a, AML_STRING);
    g_byte_array_append(a, (const guint8 *)s, (guint)strlen(s) + 1);
}

/* "PNP0501": three letters in five bits each, four hexadecimal digits, big endian (19.3.4). */
static uint32_t eisa_id(const char *s)
{
    uint32_t v = (uint32_t)(s[0] & 0x1f) << 26 | (uint32_t)(s[1] & 0x1f) << 21 |
                 (uint32_t)(s[2] & 0x1f) << 16;
    for (unsigned i = 0; i < 4; i++) {
        v |= (uint32_t)g_ascii_xdigit_value(s[3 + i]) << (12 - 4 * i);
    }
    return GUINT32_SWAP_LE_BE(v);
}

static void name_buffer(GByteArray *a, const char seg[4], const uint8_t *data, guint len)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    integer(body, len);
    g_byte_array_append(body, data, len);
    op(a, AML_NAME);
    name_seg(a, seg);
    op(a, AML_BUFFER);
    append_package(a, body);
}

static void device(GByteArray *a, const char seg[4], const GByteArray *content)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    name_seg(body, seg);
    g_byte_array_append(body, content->data, content->len);
    op(a, AML_EXT);
    op(a, AML_EXT_DEVICE);
    append_package(a, body);
}

static void method(GByteArray *a, const char seg[4], uint8_t flags, const GByteArray *content)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    name_seg(body, seg);
    op(body, flags);
    g_byte_array_append(body, content->data, content->len);
    op(a, AML_METHOD);
    append_package(a, body);
}

/* A method \_SB.seg of another table, for who reads this one alone; the interpreter skips it. */
static void external_method(GByteArray *a, const char seg[4], uint8_t args)
{
    static const char scope_path[] = "\\\x2e_SB_"; /* RootChar DualNamePrefix */
    g_autoptr(GByteArray) body = g_byte_array_new();
    integer(body, 0);
    op(body, AML_EXTERNAL);
    g_byte_array_append(body, (const guint8 *)scope_path, sizeof(scope_path) - 1);
    name_seg(body, seg);
    op(body, TYPE_METHOD);
    op(body, args);
    op(a, AML_IF);
    append_package(a, body);
}

static void cpu_name(char seg[5], unsigned cpu)
{
    g_snprintf(seg, 5, "C%03X", cpu & 0xfff);
}

/*
 * Where CPUs may come later: _STA asks the register block, _MAT is for the MADT; and the guest may give
 * back by _EJ0 those that were not there at the start.
 */
static void add_plug_methods(GByteArray *c, const AcpiConfig *cfg, unsigned cpu)
{
    g_autoptr(GByteArray) sta = g_byte_array_new(), madt = g_byte_array_new();
    g_autoptr(GByteArray) eject = g_byte_array_new(), ost = g_byte_array_new();
    op(sta, AML_RETURN);
    name_seg(sta, "CSTA");
    integer(sta, cpu);
    method(c, "_STA", 0, sta);
    acpi_madt_cpu(madt, cpu, cfg->apic_id(cpu), true);
    name_buffer(c, "_MAT", madt->data, madt->len);
    name_seg(ost, "COST");
    integer(ost, cpu);
    op(ost, AML_ARG0);
    op(ost, AML_ARG1);
    method(c, "_OST", 3, ost);
    if (cpu >= cfg->cpus) {
        name_seg(eject, "CEJT");
        integer(eject, cpu);
        method(c, "_EJ0", 1, eject);
    }
}

static void add_cpus(GByteArray *a, const AcpiConfig *cfg)
{
    if (acpi_can_plug_cpus(cfg)) {
        external_method(a, "CSTA", 1);
        external_method(a, "CEJT", 1);
        external_method(a, "COST", 3);
    }
    for (unsigned i = 0; i < cfg->maxcpus; i++) {
        g_autoptr(GByteArray) c = g_byte_array_new();
        char seg[5];
        cpu_name(seg, i);
        name_string(c, "_HID", "ACPI0007");
        name_int(c, "_UID", i);
        if (acpi_can_plug_cpus(cfg)) {
            add_plug_methods(c, cfg, i);
        } else {
            name_int(c, "_STA", 0xf);
        }
        device(a, seg, c);
    }
}

/* CTFY (CPU, event), which ssdt-cpus.asl calls. */
static void add_cpu_notify(GByteArray *a, const AcpiConfig *cfg)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    for (unsigned i = 0; i < cfg->maxcpus; i++) {
        g_autoptr(GByteArray) one = g_byte_array_new();
        char seg[5];
        cpu_name(seg, i);
        op(one, AML_EQUAL);
        op(one, AML_ARG0);
        integer(one, i);
        op(one, AML_NOTIFY);
        name_seg(one, seg);
        op(one, AML_ARG1);
        op(all, AML_IF);
        append_package(all, one);
    }
    method(a, "CTFY", 2, all);
}

static void add_hpet(GByteArray *a)
{
    /* Memory32Fixed (6.4.3.4), read-only, 1 KiB; end tag. */
    static const uint8_t crs[] = { 0x86, 9, 0, 0, 0x00, 0x00, 0xd0, 0xfe, 0x00, 0x04, 0, 0,
                                   0x79, 0 };
    g_autoptr(GByteArray) c = g_byte_array_new();
    name_int(c, "_HID", eisa_id("PNP0103"));
    name_int(c, "_UID", 0);
    name_buffer(c, "_CRS", crs, sizeof(crs));
    device(a, "HPET", c);
}

static void add_resource_device(GByteArray *a, const char *seg, const char *id, const uint8_t *crs, guint len)
{
    g_autoptr(GByteArray) c = g_byte_array_new();
    name_int(c, "_HID", eisa_id(id));
    name_buffer(c, "_CRS", crs, len);
    device(a, seg, c);
}

/* The timer, and the port that its counter 2 sounds the speaker by. */
static void add_pit(GByteArray *a)
{
    /* I/O port descriptor (6.4.2.5) with 16-bit decode, IRQ descriptor without flags (6.4.2.1), end tag. */
    static const uint8_t timer[] = { 0x47, 1, 0x40, 0, 0x40, 0, 0, 4, 0x22, BIT(0), 0, 0x79, 0 };
    static const uint8_t speaker[] = { 0x47, 1, 0x61, 0, 0x61, 0, 0, 1, 0x79, 0 };

    add_resource_device(a, "TMR_", "PNP0100", timer, sizeof(timer));
    add_resource_device(a, "SPKR", "PNP0800", speaker, sizeof(speaker));
}

static void add_serial(GByteArray *a, unsigned mask)
{
    static const uint16_t port[4] = { 0x3f8, 0x2f8, 0x3e8, 0x2e8 };
    static const uint8_t irq[4] = { 4, 3, 4, 3 };
    for (unsigned i = 0; i < 4; i++) {
        g_autoptr(GByteArray) c = g_byte_array_new();
        /* I/O port descriptor (6.4.2.5) with 16-bit decode, IRQ descriptor (6.4.2.1), end tag. */
        uint8_t crs[] = { 0x47, 1, (uint8_t)port[i], (uint8_t)(port[i] >> 8), (uint8_t)port[i],
                          (uint8_t)(port[i] >> 8), 0, 8, 0x22, (uint8_t)(1u << irq[i]), 0,
                          0x79, 0 };
        char seg[5];
        if (!(mask & BIT(i))) {
            continue;
        }
        g_snprintf(seg, sizeof(seg), "COM%u", i + 1);
        name_int(c, "_HID", eisa_id("PNP0501"));
        name_int(c, "_UID", i + 1);
        name_int(c, "_STA", 0xf);
        name_buffer(c, "_CRS", crs, sizeof(crs));
        device(a, seg, c);
    }
}

static void scope(GByteArray *a, const char *path, guint path_len, const GByteArray *content)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    g_byte_array_append(body, (const guint8 *)path, path_len);
    g_byte_array_append(body, content->data, content->len);
    op(a, AML_SCOPE);
    append_package(a, body);
}

/* \_Sx: SLP_TYPa, SLP_TYPb, two reserved (7.4.2). */
static void add_sleep_state(GByteArray *a, const char *name, uint8_t val)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    op(body, 4);
    integer(body, val);
    integer(body, val);
    integer(body, 0);
    integer(body, 0);
    op(a, AML_NAME);
    name_seg(a, name);
    op(a, AML_PACKAGE);
    append_package(a, body);
}

size_t acpi_build_ssdt(AcpiTables *t, const AcpiConfig *cfg)
{
    g_autoptr(GByteArray) sb = g_byte_array_new();
    g_autoptr(GByteArray) isa = g_byte_array_new();
    size_t start = acpi_table_begin(t, "SSDT", 2);
    if (cfg->s3) {
        add_sleep_state(t->tables, "_S3_", 1);
    }
    if (cfg->s4) {
        add_sleep_state(t->tables, "_S4_", cfg->s4_val);
    }
    add_cpus(sb, cfg);
    if (acpi_can_plug_cpus(cfg)) {
        add_cpu_notify(sb, cfg);
    }
    if (cfg->hpet) {
        add_hpet(sb);
    }
    scope(t->tables, "\\_SB_", 5, sb);
    if (cfg->pit) {
        add_pit(isa);
    }
    add_serial(isa, cfg->serial_mask);
    /* RootChar MultiNamePrefix SegCount(3) */
    static const char isa_path[] = "\\\x2f\x03_SB_PCI0ISA_";
    scope(t->tables, isa_path, sizeof(isa_path) - 1, isa);
    acpi_table_end(t, start);
    return start;
}
