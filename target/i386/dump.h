/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking at a CPU from outside: monitors, logs, the debugger. All HELPER_ONLY. */
#ifndef TARGET_I386_DUMP_H
#define TARGET_I386_DUMP_H

#include <glib.h>
#include "memory/memory.h"
#include "target/i386/cpu.h"

/* Appends the registers as text. */
void x86_dump_state(const X86CPU *cpu, GString *out);
/* Value of the register called name[0..len) ("rax", "eip", "cs", "cr3", "eflags"); false: none. */
bool x86_register_by_name(const X86CPU *cpu, const char *name, size_t len, uint64_t *value);
/* 16, 32 or 64: how the bytes at CS:RIP decode. */
uint8_t x86_code_bits(const X86CPU *cpu);
/*
 * Physical address of a linear one through the guest's page tables, with no check of rights, no
 * fault and no accessed bit. False if it is not mapped.
 */
bool x86_translate_debug(const X86CPU *cpu, uint64_t lin, hwaddr *phys);

/* A page that the guest's tables map. */
typedef struct X86Mapping {
    uint64_t lin, size; /* bytes */
    hwaddr phys;
    uint64_t pte;
    bool writable, user; /* by the rights of all levels */
} X86Mapping;
/*
 * Calls fn for each page of the tables in force, paging being on, by ascending addresses of each
 * half. False if fn said false, or max entries had been read: a guest may make tables without end.
 */
bool x86_mappings(const X86CPU *cpu, unsigned max, bool (*fn)(void *opaque, const X86Mapping *m), void *opaque);

#endif
