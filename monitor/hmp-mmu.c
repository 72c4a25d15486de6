/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP: info mem, info tlb: what the guest's page tables map. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "accel/accel.h"
#include "monitor/internal.h"
#include "target/i386/dump.h"

/* Tables that a guest made to be endless end here; a few hundred milliseconds. */
#define MAX_ENTRIES (1u << 20)
#define MAX_LINES   65536

typedef struct Show {
    Monitor *mon;
    unsigned lines;
    int digits;
    X86Mapping range; /* info mem: what was not shown yet; size 0: nothing */
} Show;

static bool show_page(void *opaque, const X86Mapping *m)
{
    Show *s = opaque;

    monitor_printf(s->mon, "%0*" PRIx64 ": %0*" PRIx64 " %c%c%c%c%c%c%c%c%c\n", s->digits, m->lin, s->digits,
                   (uint64_t)m->phys, m->pte >> 63 ? 'X' : '-', m->pte & 0x100 ? 'G' : '-',
                   m->size > 4096 ? 'P' : '-', m->pte & 0x40 ? 'D' : '-', m->pte & 0x20 ? 'A' : '-',
                   m->pte & 0x10 ? 'C' : '-', m->pte & 0x08 ? 'T' : '-', m->pte & 0x04 ? 'U' : '-',
                   m->pte & 0x02 ? 'W' : '-');
    return ++s->lines < MAX_LINES;
}

static void show_range(Show *s)
{
    const X86Mapping *r = &s->range;

    if (r->size) {
        monitor_printf(s->mon, "%0*" PRIx64 "-%0*" PRIx64 " %0*" PRIx64 " %cr%c\n", s->digits, r->lin, s->digits,
                       r->lin + r->size, s->digits, r->size, r->user ? 'u' : '-', r->writable ? 'w' : '-');
        s->lines++;
    }
}

/* Neighbours with the same rights are one range. */
static bool add_to_range(void *opaque, const X86Mapping *m)
{
    Show *s = opaque;
    X86Mapping *r = &s->range;

    if (r->size && r->lin + r->size == m->lin && r->user == m->user && r->writable == m->writable) {
        r->size += m->size;
        return true;
    }
    show_range(s);
    *r = *m;
    return s->lines < MAX_LINES;
}

static void copy_cpu(CPUState *cpu, void *opaque)
{
    cpu->accel->regs_get(cpu);
    memcpy(opaque, x86_cpu(cpu), sizeof(X86CPU));
}

static void show_tables(Monitor *mon, bool (*fn)(void *opaque, const X86Mapping *m), bool ranges)
{
    CPUState *cpu = mon->cpu_index >= 0 ? cpu_get((unsigned)mon->cpu_index) : NULL;
    Show s = { .mon = mon };

    if (!cpu) {
        monitor_puts(mon, "Error: this machine has no CPU\n");
        return;
    }
    /* Copied on the vCPU's thread; the tables are read here, while it goes on. */
    X86CPU *copy = aligned_alloc(__alignof__(X86CPU), sizeof(X86CPU));

    run_on_cpu(cpu, copy_cpu, copy);
    s.digits = copy->efer & EFER_LMA ? 16 : 8;
    if (!(copy->cr0 & CR0_PG)) {
        monitor_puts(mon, "PG disabled\n");
    } else if (!x86_mappings(copy, MAX_ENTRIES, fn, &s)) {
        monitor_printf(mon, "(more than %u entries or %u lines: not all is shown)\n", MAX_ENTRIES, MAX_LINES);
    } else if (ranges) {
        show_range(&s);
    }
    free(copy);
}

void hmp_info_tlb(Monitor *mon, const char *args)
{
    show_tables(mon, show_page, false);
}

void hmp_info_mem(Monitor *mon, const char *args)
{
    show_tables(mon, add_to_range, true);
}
