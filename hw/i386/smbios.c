/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SMBIOS structures: types 0, 1, 3, 4, 16, 17, 19, 32, 127. */
#include <string.h>
#include "hw/i386/boot.h"
#include "hw/i386/smbios.h"

#define MANUFACTURER "QEMU"
#define BIOS_VENDOR  "qemu-rt"
/* A memory device of type 17 holds at most this much in its 16-bit size field of MiB units. */
#define DIMM_MAX (16 * GiB)

enum { HANDLE_BIOS = 0x0000, HANDLE_SYSTEM = 0x0100, HANDLE_CHASSIS = 0x0300,
       HANDLE_CPU = 0x0400, HANDLE_ARRAY = 0x1000, HANDLE_DIMM = 0x1100, HANDLE_MAP = 0x1300,
       HANDLE_BOOT = 0x2000, HANDLE_END = 0x7f00 };

/* A structure under construction: the formatted part, then its strings, numbered from 1. */
typedef struct Structure {
    GByteArray *out;
    size_t start;
    GString *strings;
    unsigned nstrings, count, largest;
} Structure;

static void put8(Structure *s, unsigned v)
{
    uint8_t b = (uint8_t)v;
    g_byte_array_append(s->out, &b, 1);
}

static void put16(Structure *s, unsigned v)
{
    put8(s, v);
    put8(s, v >> 8);
}

static void put32(Structure *s, uint32_t v)
{
    put16(s, v & 0xffff);
    put16(s, v >> 16);
}

static void put64(Structure *s, uint64_t v)
{
    put32(s, (uint32_t)v);
    put32(s, (uint32_t)(v >> 32));
}

static void put_string(Structure *s, const char *text)
{
    if (!text || !*text) {
        put8(s, 0);
        return;
    }
    g_string_append_len(s->strings, text, (gssize)strlen(text) + 1);
    put8(s, ++s->nstrings);
}

static void begin(Structure *s, uint8_t type, uint16_t handle)
{
    s->start = s->out->len;
    s->nstrings = 0;
    g_string_truncate(s->strings, 0);
    put8(s, type);
    put8(s, 0);
    put16(s, handle);
}

static void end(Structure *s)
{
    s->out->data[s->start + 1] = (uint8_t)(s->out->len - s->start);
    g_byte_array_append(s->out, (const guint8 *)s->strings->str, (guint)s->strings->len);
    put8(s, 0);
    if (s->nstrings == 0) {
        put8(s, 0); /* an empty string set has two zeros */
    }
    s->count++;
    s->largest = MAX(s->largest, (unsigned)(s->out->len - s->start));
}

static void type0_bios(Structure *s)
{
    begin(s, 0, HANDLE_BIOS);
    put_string(s, BIOS_VENDOR);
    put_string(s, QEMU_VERSION);
    put16(s, 0xe800);
    put_string(s, "04/01/2014");
    put8(s, 0);
    put64(s, 0x08); /* characteristics are not supported */
    put8(s, 0);
    put8(s, 0x14); /* virtual machine, targeted content distribution */
    put8(s, 0);
    put8(s, 0);
    put8(s, 0xff);
    put8(s, 0xff);
    end(s);
}

static void type1_system(Structure *s, const SmbiosConfig *cfg)
{
    static const uint8_t none[16];
    begin(s, 1, HANDLE_SYSTEM);
    put_string(s, MANUFACTURER);
    put_string(s, cfg->product);
    put_string(s, cfg->version);
    put_string(s, NULL);
    /* 7.2.1: the first three fields of a UUID are little endian. */
    const uint8_t *u = cfg->uuid ? cfg->uuid : none;
    static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
    for (unsigned i = 0; i < 16; i++) {
        put8(s, u[order[i]]);
    }
    put8(s, 6); /* wake-up: power switch */
    put_string(s, NULL);
    put_string(s, NULL);
    end(s);
}

static void type3_chassis(Structure *s, const SmbiosConfig *cfg)
{
    begin(s, 3, HANDLE_CHASSIS);
    put_string(s, MANUFACTURER);
    put8(s, 1); /* other */
    put_string(s, cfg->version);
    put_string(s, NULL);
    put_string(s, NULL);
    put8(s, 3); /* safe: boot, power, thermal */
    put8(s, 3);
    put8(s, 3);
    put8(s, 2); /* security: unknown */
    put32(s, 0);
    put8(s, 0);
    put8(s, 0);
    put8(s, 0);
    put8(s, 0);
    put_string(s, NULL);
    end(s);
}

static void type4_processor(Structure *s, const SmbiosConfig *cfg, unsigned socket)
{
    g_autofree char *name = g_strdup_printf("CPU %u", socket);
    unsigned cores = MIN(cfg->cores, 255u), threads = MIN(cfg->cores * cfg->threads, 255u);
    begin(s, 4, (uint16_t)(HANDLE_CPU + socket));
    put_string(s, name);
    put8(s, 3); /* central processor */
    put8(s, 1); /* family: other */
    put_string(s, MANUFACTURER);
    put32(s, cfg->cpu_signature);
    put32(s, cfg->cpu_features);
    put_string(s, cfg->version);
    put8(s, 0);
    put16(s, 0);
    put16(s, 2000);
    put16(s, 2000);
    put8(s, 0x41); /* populated, enabled */
    put8(s, 1);
    put16(s, 0xffff); /* no cache structures */
    put16(s, 0xffff);
    put16(s, 0xffff);
    put_string(s, NULL);
    put_string(s, NULL);
    put_string(s, NULL);
    put8(s, cores);
    put8(s, cores);
    put8(s, threads);
    put16(s, 2);
    put16(s, 1);
    end(s);
}

static void type16_array(Structure *s, const SmbiosConfig *cfg, unsigned dimms)
{
    uint64_t kib = cfg->ram_size / KiB;
    begin(s, 16, HANDLE_ARRAY);
    put8(s, 1); /* location: other */
    put8(s, 3); /* system memory */
    put8(s, 6); /* multi-bit ECC */
    put32(s, kib < 0x80000000u ? (uint32_t)kib : 0x80000000u);
    put16(s, 0xfffe);
    put16(s, dimms);
    put64(s, kib < 0x80000000u ? 0 : cfg->ram_size);
    end(s);
}

static void type17_device(Structure *s, unsigned n, uint64_t size)
{
    g_autofree char *name = g_strdup_printf("DIMM %u", n);
    begin(s, 17, (uint16_t)(HANDLE_DIMM + n));
    put16(s, HANDLE_ARRAY);
    put16(s, 0xfffe);
    put16(s, 0xffff);
    put16(s, 0xffff);
    put16(s, (unsigned)(size / MiB));
    put8(s, 9); /* DIMM */
    put8(s, 0);
    put_string(s, name);
    put_string(s, NULL);
    put8(s, 7); /* RAM */
    put16(s, 2);
    put16(s, 0);
    put_string(s, MANUFACTURER);
    put_string(s, NULL);
    put_string(s, NULL);
    put_string(s, NULL);
    put8(s, 0);
    put32(s, 0);
    put16(s, 0);
    put16(s, 0);
    put16(s, 0);
    put16(s, 0);
    end(s);
}

static void type19_map(Structure *s, unsigned n, uint64_t addr, uint64_t size)
{
    bool fits = (addr + size - 1) / KiB < 0xffffffffu;
    begin(s, 19, (uint16_t)(HANDLE_MAP + n));
    put32(s, fits ? (uint32_t)(addr / KiB) : 0xffffffffu);
    put32(s, fits ? (uint32_t)((addr + size - 1) / KiB) : 0xffffffffu);
    put16(s, HANDLE_ARRAY);
    put8(s, 1);
    put64(s, fits ? 0 : addr);
    put64(s, fits ? 0 : addr + size - 1);
    end(s);
}

static void memory_structures(Structure *s, const SmbiosConfig *cfg)
{
    unsigned dimms = (unsigned)MIN(DIV_ROUND_UP(cfg->ram_size, DIMM_MAX), (uint64_t)256);
    type16_array(s, cfg, dimms);
    for (unsigned i = 0; i < dimms; i++) {
        type17_device(s, i, MIN(cfg->ram_size - i * DIMM_MAX, DIMM_MAX));
    }
    E820Table map;
    e820_build_ram(&map, cfg->ram_size);
    for (unsigned i = 0; i < map.n; i++) {
        type19_map(s, i, map.e[i].addr, map.e[i].len);
    }
}

GByteArray *smbios_build(const SmbiosConfig *cfg, unsigned *structures, unsigned *largest)
{
    Structure s = { .out = g_byte_array_new(), .strings = g_string_new(NULL) };
    if (cfg->type0) {
        type0_bios(&s);
    }
    type1_system(&s, cfg);
    type3_chassis(&s, cfg);
    for (unsigned i = 0; i < cfg->sockets; i++) {
        type4_processor(&s, cfg, i);
    }
    memory_structures(&s, cfg);
    begin(&s, 32, HANDLE_BOOT); /* no errors detected */
    put32(&s, 0);
    put16(&s, 0);
    put8(&s, 0);
    end(&s);
    begin(&s, 127, HANDLE_END);
    end(&s);
    g_string_free(s.strings, TRUE);
    *structures = s.count;
    *largest = s.largest;
    return s.out;
}

static uint8_t sum(const uint8_t *p, size_t len)
{
    uint8_t v = 0;
    for (size_t i = 0; i < len; i++) {
        v = (uint8_t)(v + p[i]);
    }
    return (uint8_t)-v;
}

void smbios_anchor(uint8_t out[SMBIOS_ANCHOR_SIZE], const GByteArray *tables, unsigned structures,
                   unsigned largest, uint32_t addr)
{
    memset(out, 0, SMBIOS_ANCHOR_SIZE);
    memcpy(out, "_SM_", 4);
    out[5] = SMBIOS_ANCHOR_SIZE;
    out[6] = 2; /* version 2.8 */
    out[7] = 8;
    boot_st16(out + 8, (uint16_t)largest);
    memcpy(out + 16, "_DMI_", 5);
    boot_st16(out + 22, (uint16_t)tables->len);
    boot_st32(out + 24, addr);
    boot_st16(out + 28, (uint16_t)structures);
    out[30] = 0x28;
    out[21] = sum(out + 16, 15);
    out[4] = sum(out, SMBIOS_ANCHOR_SIZE);
}
