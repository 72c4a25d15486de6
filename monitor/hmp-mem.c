/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x and xp: /COUNT FORMAT SIZE in any order, as gdb has them; formats d u x o c i, sizes b h w g. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>
#include "accel/accel.h"
#include "memory/memory.h"
#include "monitor/internal.h"
#include "target/i386/cpu.h"
#include "target/i386/dump.h"

#define MAX_COUNT 65536

typedef struct Dump {
    Monitor *mon;
    unsigned count, size;
    char format;
    uint64_t addr;
    bool virt;
    uint8_t bits; /* code size, for i */
} Dump;

static bool parse_format(Dump *d, const char **s)
{
    char *end;

    d->count = 1;
    d->format = 'x';
    d->size = 4;
    if (**s != '/') {
        return true;
    }
    (*s)++;
    if (g_ascii_isdigit(**s)) {
        unsigned long count = strtoul(*s, &end, 10);

        if (count > MAX_COUNT) {
            monitor_printf(d->mon, "Error: the count of %.*s is too large; at most %u\n",
                           (int)MIN(end - *s, 24), *s, MAX_COUNT);
            return false;
        }
        d->count = (unsigned)count;
        *s = end;
    }
    for (; **s && **s != ' '; (*s)++) {
        switch (**s) {
        case 'd': case 'u': case 'x': case 'o': case 'c': case 'i':
            d->format = **s;
            break;
        case 'b':
            d->size = 1;
            break;
        case 'h':
            d->size = 2;
            break;
        case 'w':
            d->size = 4;
            break;
        case 'g':
            d->size = 8;
            break;
        default:
            monitor_printf(d->mon, "Error: '%c' is neither a format (d u x o c i) nor a size "
                                   "(b h w g)\n", **s);
            return false;
        }
    }
    return true;
}

/* A number or $register, with + and - between. */
static bool parse_addr(Dump *d, const char *s, X86CPU *cpu)
{
    int sign = 1;

    d->addr = 0;
    while (*s == ' ') {
        s++;
    }
    if (!*s) {
        monitor_puts(d->mon, "Error: an address is missing\n");
        return false;
    }
    while (*s) {
        uint64_t v;
        char *end;

        if (*s == '$') {
            size_t n = strcspn(s + 1, " +-");

            if (!cpu || !x86_register_by_name(cpu, s + 1, n, &v)) {
                monitor_printf(d->mon, "Error: unknown register '%.*s'\n", (int)n + 1, s);
                return false;
            }
            s += n + 1;
        } else {
            errno = 0;
            v = strtoull(s, &end, 0);
            if (end == s || errno == ERANGE) {
                monitor_printf(d->mon, "Error: cannot read '%s' as an address\n", s);
                return false;
            }
            s = end;
        }
        d->addr += sign * v;
        while (*s == ' ') {
            s++;
        }
        if (*s == '+' || *s == '-') {
            sign = *s == '+' ? 1 : -1;
            s++;
        } else if (*s) {
            monitor_printf(d->mon, "Error: '%s' after the address\n", s);
            return false;
        }
    }
    return true;
}

/* Bytes that could be read at addr; fewer than len where a page is not there. */
static unsigned fetch(const Dump *d, X86CPU *cpu, uint64_t addr, uint8_t *buf, unsigned len)
{
    unsigned done = 0;

    while (done < len) {
        unsigned n = MIN(len - done, TARGET_PAGE_SIZE - (addr & ~TARGET_PAGE_MASK));
        hwaddr phys = addr;

        if ((d->virt && !x86_translate_debug(cpu, addr, &phys)) ||
            address_space_read(&address_space_memory, phys, buf + done, n) != MEMTX_OK) {
            break;
        }
        done += n;
        addr += n;
    }
    return done;
}

static void print_value(const Dump *d, const uint8_t *b)
{
    uint64_t v = 0;
    int shift = 64 - 8 * (int)d->size;

    memcpy(&v, b, d->size);
    switch (d->format) {
    case 'd':
        monitor_printf(d->mon, " %" PRId64, (int64_t)(v << shift) >> shift);
        break;
    case 'u':
        monitor_printf(d->mon, " %" PRIu64, v);
        break;
    case 'o':
        monitor_printf(d->mon, " 0%" PRIo64, v);
        break;
    case 'c':
        monitor_printf(d->mon, g_ascii_isprint((char)v) ? " '%c'" : " '\\x%02x'",
                       (unsigned)(v & 0xff));
        break;
    default:
        monitor_printf(d->mon, " 0x%0*" PRIx64, (int)d->size * 2, v);
    }
}

static void dump_values(const Dump *d, X86CPU *cpu)
{
    unsigned per_line = d->format == 'c' ? 8 : MAX(16 / d->size / (d->size == 1 ? 2 : 1), 2);
    uint64_t addr = d->addr;

    for (unsigned i = 0; i < d->count; i++, addr += d->size) {
        uint8_t b[8];

        if (i % per_line == 0) {
            monitor_printf(d->mon, "%s%016" PRIx64 ":", i ? "\n" : "", addr);
        }
        if (fetch(d, cpu, addr, b, d->size) < d->size) {
            monitor_puts(d->mon, "\nCannot access memory\n");
            return;
        }
        print_value(d, b);
    }
    monitor_puts(d->mon, "\n");
}

static void dump_code(const Dump *d, X86CPU *cpu)
{
    ZydisMachineMode mode = d->bits == 64   ? ZYDIS_MACHINE_MODE_LONG_64
                            : d->bits == 32 ? ZYDIS_MACHINE_MODE_LEGACY_32
                                            : ZYDIS_MACHINE_MODE_LEGACY_16;
    uint64_t addr = d->addr;

    for (unsigned i = 0; i < d->count; i++) {
        ZydisDisassembledInstruction insn;
        uint8_t b[15];
        unsigned n = fetch(d, cpu, addr, b, sizeof(b));

        if (!n) {
            monitor_puts(d->mon, "Cannot access memory\n");
            return;
        }
        if (ZYAN_SUCCESS(ZydisDisassembleATT(mode, addr, b, n, &insn))) {
            monitor_printf(d->mon, "0x%08" PRIx64 ":  %s\n", addr, insn.text);
            addr += insn.info.length;
        } else {
            monitor_printf(d->mon, "0x%08" PRIx64 ":  (bad) 0x%02x\n", addr, b[0]);
            addr++;
        }
    }
}

static void dump_on_cpu(CPUState *cpu, void *opaque)
{
    cpu->accel->regs_get(cpu);
}

static void dump_memory(Monitor *mon, const char *args, bool virt)
{
    CPUState *cpu = mon->cpu_index >= 0 ? cpu_get((unsigned)mon->cpu_index) : NULL;
    Dump d = { .mon = mon, .virt = virt, .bits = 64 };

    if (!parse_format(&d, &args)) {
        return;
    }
    if (!cpu && virt) {
        monitor_puts(mon, "Error: this machine has no CPU\n");
        return;
    }
    if (cpu) {
        run_on_cpu(cpu, dump_on_cpu, NULL);
        d.bits = x86_code_bits(x86_cpu(cpu));
    }
    if (parse_addr(&d, args, cpu ? x86_cpu(cpu) : NULL)) {
        (d.format == 'i' ? dump_code : dump_values)(&d, cpu ? x86_cpu(cpu) : NULL);
    }
}

void hmp_x(Monitor *mon, const char *args)
{
    dump_memory(mon, args, true);
}

void hmp_xp(Monitor *mon, const char *args)
{
    dump_memory(mon, args, false);
}

void hmp_print(Monitor *mon, const char *args)
{
    CPUState *cpu = mon->cpu_index >= 0 ? cpu_get((unsigned)mon->cpu_index) : NULL;
    Dump d = { .mon = mon };
    uint8_t bytes[8];

    if (!parse_format(&d, &args)) {
        return;
    }
    if (d.format == 'i' || d.count != 1) {
        monitor_puts(mon, "Error: print takes a format of d u x o c, and no count\n");
        return;
    }
    if (cpu) {
        run_on_cpu(cpu, dump_on_cpu, NULL);
    }
    if (!parse_addr(&d, args, cpu ? x86_cpu(cpu) : NULL)) {
        return;
    }
    if (d.format == 'x') {
        monitor_printf(mon, "0x%" PRIx64 "\n", d.addr);
        return;
    }
    d.size = 8;
    memcpy(bytes, &d.addr, sizeof(bytes));
    print_value(&d, bytes);
    monitor_puts(mon, "\n");
}
