/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bare interpreter for tests and benchmarks: one CPU, 16 MiB of RAM at 0 mapped one to one, and
 * machine code at VM_CODE. No board: HLT ends a run; an exception ends it too, through a handler
 * that notes vector, error code and frame.
 */
#ifndef TESTS_UNIT_INTERP_VM_H
#define TESTS_UNIT_INTERP_VM_H

#include "accel/tcg/engine-run.h"

#ifndef VM_RAM
#define VM_RAM    (16 * MiB)
#endif
#define VM_GDT    0x1000u
#define VM_IDT    0x2000u
#define VM_STUBS  0x3000u  /* VM_VECTORS handlers of 16 bytes */
#define VM_TSS    0x4000u
#define VM_TABLES 0x10000u /* PML4, PDPT, PD, and a PT for the first 2 MiB */
#define VM_PT     (VM_TABLES + 0x3000u)
#define VM_CODE   0x100000u
#define VM_DATA   0x140000u
#define VM_STACK  0x180000u /* top */

#define VM_VECTORS 64

/* What the handler found. */
typedef struct VmFault {
    int vector; /* -1: none, the code ran to HLT */
    uint64_t error, rip, rsp, rflags;
} VmFault;

typedef struct Vm {
    X86CPU *c;
    uint8_t *ram;
    RAMBlock *rb;
} Vm;

/* Made at the first call. CPU n (0..3) of the machine; all share the RAM. */
Vm *vm_cpu(unsigned n);
static inline Vm *vm_get(void)
{
    return vm_cpu(0);
}
/* Long mode, CPL 0, interrupts off, registers zero, RSP at VM_STACK. */
void vm_reset_long(Vm *vm);
/* Flat 32-bit protected mode, no paging; 16-bit real mode with zero segments. */
void vm_reset_protected(Vm *vm);
void vm_reset_real(Vm *vm);
/* Flags of the page's entry in VM_PT; address below 2 MiB. */
void vm_map(Vm *vm, uint64_t lin, uint64_t phys_and_flags);
/* Writes code (and a final HLT) at addr, sets RIP and runs to HLT. */
VmFault vm_run_at(Vm *vm, uint64_t addr, const void *code, size_t len);
VmFault vm_run(Vm *vm, const void *code, size_t len);
/* Runs from where RIP is. */
VmFault vm_go(Vm *vm);

/* Guest code, assembled here: CODE(name, "instructions") is run by RUN(name). */
#define CODE_MODE(mode, name, text)                                                                \
    extern const uint8_t code_##name[], code_##name##_end[];                                       \
    __asm__(".pushsection .rodata\n\t.globl code_" #name ", code_" #name "_end\n\t" mode           \
            "\ncode_" #name ":\n\t" text "\ncode_" #name "_end:\n\t.code64\n\t.popsection")
#define CODE(name, text)   CODE_MODE(".code64", name, text)
#define CODE32(name, text) CODE_MODE(".code32", name, text)
#define CODE16(name, text) CODE_MODE(".code16", name, text)
#define LEN(name)          ((size_t)(code_##name##_end - code_##name))
#define RUN(name)          vm_run(vm, code_##name, LEN(name))
#define RUN_AT(addr, name) vm_run_at(vm, addr, code_##name, LEN(name))

#endif
