/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See interp-vm.h. */
#include <glib.h>
#include <string.h>
#include "interp-vm.h"
#include "target/i386/cpuid.h"

/* Where the stubs leave the vector; the frame is found through RSP. */
#define VM_VECTOR 0x5000u

static void put64(Vm *vm, uint64_t at, uint64_t v)
{
    memcpy(vm->ram + at, &v, 8);
}
static uint64_t get64(const Vm *vm, uint64_t at)
{
    uint64_t v;

    memcpy(&v, vm->ram + at, 8);
    return v;
}

/* Handler n: movb $n, VM_VECTOR; hlt. As a 64-bit interrupt gate on IST 1. */
static void make_handlers(Vm *vm)
{
    for (unsigned n = 0; n < VM_VECTORS; n++) {
        uint8_t *p = vm->ram + VM_STUBS + n * 16;
        uint64_t at = VM_STUBS + n * 16;
        const uint8_t stub[] = { 0xc6, 0x04, 0x25, 0x00, 0x50, 0x00, 0x00, (uint8_t)n, 0xf4 };

        memcpy(p, stub, sizeof(stub));
        put64(vm, VM_IDT + n * 16, (at & 0xffff) | 8ull << 16 | 1ull << 32 | 0x8eull << 40);
        put64(vm, VM_IDT + n * 16 + 8, 0);
    }
    put64(vm, VM_TSS + 36, 0x9000); /* IST 1 */
}

static void make_tables(Vm *vm)
{
    const uint64_t rwu = 7;

    put64(vm, VM_TABLES, (VM_TABLES + 0x1000) | rwu);
    put64(vm, VM_TABLES + 0x1000, (VM_TABLES + 0x2000) | rwu);
    put64(vm, VM_TABLES + 0x2000, VM_PT | rwu);
    for (uint64_t n = 1; n < 8; n++) {
        put64(vm, VM_TABLES + 0x2000 + n * 8, n << 21 | 0x80 | rwu);
    }
    for (uint64_t n = 0; n < 512; n++) {
        put64(vm, VM_PT + n * 8, n << 12 | rwu);
    }
    /* null, code 64, data, code 32 */
    put64(vm, VM_GDT, 0);
    put64(vm, VM_GDT + 8, 0x00af9b000000ffffull);
    put64(vm, VM_GDT + 16, 0x00cf93000000ffffull);
    put64(vm, VM_GDT + 24, 0x00cf9b000000ffffull);
}

static RAMBlock *vm_ram(void)
{
    static RAMBlock *rb;
    static MemoryRegion mr;
    Error *err = NULL;

    if (!rb) {
        memory_init();
        memory_thread_register();
        rb = ram_block_new("ram", VM_RAM, 0, -1, &err);
        g_assert_nonnull(rb);
        memory_region_init_ram(&mr, rb, "ram");
        memory_region_add_subregion(memory_root(), 0, &mr, 0);
    }
    return rb;
}

Vm *vm_cpu(unsigned n)
{
    static Vm vms[4];
    Vm *vm = &vms[n];
    Error *err = NULL;

    if (vm->c) {
        return vm;
    }
    vm->rb = vm_ram();
    vm->ram = vm->rb->host;
    x86_cpu_set_backend(&x86_tcg_backend);
    g_assert_true(x86_cpu_set_model("max", &err));
    vm->c = x86_cpu_new(n, &err);
    g_assert_nonnull(vm->c);
    x86_cpu_reset(vm->c, false);
    vm->c->wait_for_sipi = false;
    g_assert_true(tcg_engine_init(vm->c, &err));
    return vm;
}

static void reset_common(Vm *vm)
{
    X86CPU *c = vm->c;

    x86_cpu_reset(c, false);
    c->wait_for_sipi = false;
    memset(vm->ram + 0x1000, 0, 0x8000);
    make_handlers(vm);
    make_tables(vm);
    memset(c->regs, 0, sizeof(c->regs));
    c->regs[R_RSP] = VM_STACK;
    x86_set_rflags(c, FL_1);
    c->gdt = (TableReg){ VM_GDT, 0x1f };
    c->idt = (TableReg){ VM_IDT, VM_VECTORS * 16 - 1 };
    c->tr = (SegmentCache){ .selector = 0x20, .attr = SEG_P | 0xb, .limit = 0x67, .base = VM_TSS };
    c->cpl = 0;
    atomic_store(&c->base.halted, false);
    ram_block_written(vm->rb, 0, VM_RAM);
}

static void flat_segments(X86CPU *c)
{
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        c->seg[n] = (SegmentCache){ .selector = 0x10,
                                    .attr = SEG_P | SEG_S | SEG_W | SEG_A | SEG_DB | SEG_G,
                                    .limit = 0xffffffff };
    }
}

void vm_reset_long(Vm *vm)
{
    X86CPU *c = vm->c;

    reset_common(vm);
    flat_segments(c);
    c->seg[R_CS].selector = 8;
    c->seg[R_CS].attr = SEG_P | SEG_S | SEG_CODE | SEG_W | SEG_A | SEG_L | SEG_G;
    c->cr0 = CR0_PE | CR0_PG | CR0_WP | CR0_ET | CR0_NE | CR0_MP;
    c->cr3 = VM_TABLES;
    c->cr4 = CR4_PAE | CR4_PGE | CR4_OSFXSR | CR4_OSXMMEXCPT;
    c->efer = EFER_LME | EFER_LMA | EFER_NXE;
    c->xcr0 = 7;
    tcg_engine_reset(c);
}

void vm_reset_protected(Vm *vm)
{
    X86CPU *c = vm->c;

    reset_common(vm);
    flat_segments(c);
    c->seg[R_CS].selector = 24;
    c->seg[R_CS].attr |= SEG_CODE;
    c->cr0 = CR0_PE | CR0_ET | CR0_NE;
    tcg_engine_reset(c);
}

void vm_reset_real(Vm *vm)
{
    X86CPU *c = vm->c;

    reset_common(vm);
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        c->seg[n] = (SegmentCache){ .attr = SEG_P | SEG_S | SEG_W | SEG_A, .limit = 0xffff };
    }
    c->seg[R_CS].attr |= SEG_CODE;
    c->idt = (TableReg){ 0, 0x3ff };
    c->regs[R_RSP] = 0xf000;
    tcg_engine_reset(c);
}

void vm_map(Vm *vm, uint64_t lin, uint64_t phys_and_flags)
{
    put64(vm, VM_PT + (lin >> 12) * 8, phys_and_flags);
    tcg_tlb_flush(vm->c, true);
}

VmFault vm_go(Vm *vm)
{
    VmFault f = { .vector = -1 };
    X86CPU *c = vm->c;
    ExitReason r;
    uint64_t sp;
    uint8_t vector;

    __atomic_store_n(&vm->ram[VM_VECTOR], 0xff, __ATOMIC_RELAXED); /* one for all CPUs */
    atomic_store(&c->base.halted, false);
    r = tcg_engine_run(c);
    if (r == EXIT_SHUTDOWN) {
        f.vector = 256;
        return f;
    }
    g_assert_cmpint(r, ==, EXIT_HALT);
    vector = __atomic_load_n(&vm->ram[VM_VECTOR], __ATOMIC_RELAXED);
    if (vector == 0xff) {
        return f;
    }
    f.vector = vector;
    sp = c->regs[R_RSP];
    /* On its IST stack the frame ends at a known place: 5 or 6 words. */
    if (0x9000 - sp == 48) {
        f.error = get64(vm, sp);
        sp += 8;
    }
    f.rip = get64(vm, sp);
    f.rflags = get64(vm, sp + 16);
    f.rsp = get64(vm, sp + 24);
    return f;
}

VmFault vm_run_at(Vm *vm, uint64_t addr, const void *code, size_t len)
{
    memcpy(vm->ram + addr, code, len);
    vm->ram[addr + len] = 0xf4;
    ram_block_written(vm->rb, addr, len + 1);
    vm->c->rip = addr;
    return vm_go(vm);
}

VmFault vm_run(Vm *vm, const void *code, size_t len)
{
    return vm_run_at(vm, VM_CODE, code, len);
}
