/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accel/tcg: when interrupts, NMIs and debug traps are taken: shadows, HLT, repeated instructions,
 * code without a pause.
 */
#include <glib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "interp-vm.h"

static Vm *vm;
static X86CPU *c;

#define R(r) (c->regs[R_##r])

static void setup(void)
{
    vm = vm_get();
    c = vm->c;
    vm_reset_long(vm);
}

/* ---- Interrupts: a chip with one line and vector 40 ---- */

#define VECTOR 40

static bool line;
static unsigned acks;

static bool fake_pending(CPUState *cpu)
{
    return line;
}
static int fake_ack(CPUState *cpu)
{
    line = false;
    acks++;
    return VECTOR;
}
static const IrqChipOps fake_chip = {
    .name = "fake", .cpu_pending = fake_pending, .cpu_ack = fake_ack,
};

static void raise_line(void)
{
    line = true;
    event_word_set(&c->base.event, CPU_REQ_INTERRUPT);
    atomic_store(&c->base.exit_request, 1);
}

static void send_nmi(void)
{
    atomic_fetch_add(&c->base.nmi_count, 1);
    event_word_set(&c->base.event, CPU_REQ_NMI);
    atomic_store(&c->base.exit_request, 1);
}

static void setup_irq(void)
{
    setup();
    irqchip = &fake_chip;
    acks = 0;
    raise_line();
}

static void assert_interrupted(VmFault f, uint64_t rip)
{
    g_assert_cmpint(f.vector, ==, VECTOR);
    g_assert_cmphex(f.rip, ==, rip);
    g_assert_cmpuint(acks, ==, 1);
}

CODE(sti_nop, "nop; sti; inc %eax; inc %eax; inc %eax");
CODE(sti_twice, "sti; sti; inc %eax; inc %eax");
CODE(sti_ret, "mov $0x1000000, %ecx; 1: cli; call 2f; dec %ecx; jnz 1b; hlt; 2: sti; ret");
CODE(movss, "sti; mov %ax, %ss; inc %ebx; inc %ebx");
CODE(movss2, "cli; mov %ax, %ss; sti; inc %ebx; inc %ebx");
CODE(sti_hlt, "sti; hlt; inc %ebx");
CODE(popf_if, "pushq $0x202; popfq; inc %eax");

/* The instruction after STI runs, then the interrupt comes; so too if STI ends a page. */
static void test_sti_shadow(void)
{
    setup_irq();
    assert_interrupted(RUN(sti_nop), VM_CODE + 4);
    g_assert_cmphex(R(RAX), ==, 1);
    setup_irq();
    assert_interrupted(RUN_AT(VM_CODE + 0xffe, sti_nop), VM_CODE + 0x1002);
    setup_irq();
    assert_interrupted(RUN(sti_twice), VM_CODE + 2);
    setup_irq();
    assert_interrupted(RUN(popf_if), VM_CODE + LEN(popf_if) - 2);
}

/* Case 9: the window of one RET is enough. */
static void test_sti_ret_loop(void)
{
    setup_irq();
    assert_interrupted(RUN(sti_ret), VM_CODE + 5 + 1 + 5);
    g_assert_cmphex(R(RCX), ==, 0x1000000);
}

/* MOV SS under STI's shadow makes no second one; STI after MOV SS does. */
static void test_mov_ss_shadow(void)
{
    setup_irq();
    R(RAX) = 0x10;
    assert_interrupted(RUN(movss), VM_CODE + 3);
    setup_irq();
    R(RAX) = 0x10;
    assert_interrupted(RUN(movss2), VM_CODE + 1 + 2 + 1 + 2);
}

/* STI's shadow covers HLT: it halts, and the interrupt that waits wakes it. */
static void test_sti_hlt(void)
{
    setup_irq();
    assert_interrupted(RUN(sti_hlt), VM_CODE + 2);
}

/* Case 10, 14: an NMI wakes; another one inside its handler waits for IRET, one only. */
CODE(nmi_wait, "hlt; nop");
static void test_nmi(void)
{
    VmFault f;

    setup();
    vm_run(vm, code_nmi_wait, LEN(nmi_wait));
    send_nmi();
    f = vm_go(vm);
    g_assert_cmpint(f.vector, ==, EXCP_NMI);
    g_assert_true(c->nmi_blocked);
    send_nmi();
    atomic_store(&c->base.exit_request, 1);
    f = vm_go(vm);
    g_assert_cmpint(f.vector, ==, -1);
    g_assert_true(c->nmi_pending);
    /* Two at once: one is taken, one waits; a third is lost. */
    setup();
    vm_run(vm, code_nmi_wait, LEN(nmi_wait));
    send_nmi();
    send_nmi();
    send_nmi();
    g_assert_cmpint(vm_go(vm).vector, ==, EXCP_NMI);
    g_assert_true(c->nmi_pending);
    g_assert_false(c->tcg->nmi_second);
}

CODE(long_rep, "sti; nop; rep movsb");
CODE(handler_iret, "incl (%rdx); iretq");

/* An interrupt inside a long REP: the registers are mid-way, and IRET goes on with it. */
static void test_rep_interrupted(void)
{
    uint64_t count = 0;
    VmFault f;

    setup_irq();
    for (unsigned n = 0; n < 0x8000; n++) {
        vm->ram[VM_DATA + n] = (uint8_t)(n >> 4);
    }
    memset(vm->ram + VM_DATA + 0x10000, 0, 0x8000);
    memcpy(vm->ram + VM_STUBS + VECTOR * 16, code_handler_iret, LEN(handler_iret));
    ram_block_written(vm->rb, VM_STUBS + VECTOR * 16, 16);
    R(RDX) = VM_DATA + 0x20000;
    memcpy(vm->ram + VM_DATA + 0x20000, &count, 8);
    R(RSI) = VM_DATA;
    R(RDI) = VM_DATA + 0x10000;
    R(RCX) = 0x8000;
    f = RUN(long_rep);
    g_assert_cmpint(f.vector, ==, -1);
    memcpy(&count, vm->ram + VM_DATA + 0x20000, 8);
    g_assert_cmphex(count, ==, 1);
    g_assert_cmpint(memcmp(vm->ram + VM_DATA, vm->ram + VM_DATA + 0x10000, 0x8000), ==, 0);
}

CODE(step, "pushq $0x102; popfq; inc %eax; inc %eax");

/* TF set by POPF traps after the next instruction. */
static void test_single_step(void)
{
    VmFault f;

    setup();
    f = RUN(step);
    g_assert_cmpint(f.vector, ==, EXCP_DB);
    g_assert_cmphex(f.rip, ==, VM_CODE + LEN(step) - 2);
    g_assert_cmphex(R(RAX), ==, 1);
    g_assert_cmphex(c->dr[6] & 0x4000, ==, 0x4000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/interp-irq/sti-shadow", test_sti_shadow);
    g_test_add_func("/interp-irq/sti-ret-loop", test_sti_ret_loop);
    g_test_add_func("/interp-irq/mov-ss-shadow", test_mov_ss_shadow);
    g_test_add_func("/interp-irq/sti-hlt", test_sti_hlt);
    g_test_add_func("/interp-irq/nmi", test_nmi);
    g_test_add_func("/interp-irq/rep-interrupted", test_rep_interrupted);
    g_test_add_func("/interp-irq/single-step", test_single_step);
    return g_test_run();
}
