/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accel/tcg: two vCPUs on two threads and one RAM: locked instructions of every kind count exactly,
 * store buffers are the host's, code written by one is seen by the other.
 */
#include <glib.h>
#include <string.h>
#include "interp-vm.h"

#define ROUNDS 20000

typedef struct Runner {
    Vm *vm;
    uint64_t rip;
    VmFault fault;
} Runner;

static void *runner(void *opaque)
{
    Runner *r = opaque;

    memory_thread_register();
    r->vm->c->rip = r->rip;
    r->fault = vm_go(r->vm);
    memory_thread_unregister();
    return NULL;
}

static void load(Vm *vm, uint64_t at, const uint8_t *code, size_t len)
{
    memcpy(vm->ram + at, code, len);
    vm->ram[at + len] = 0xf4;
    ram_block_written(vm->rb, at, len + 1);
}

/* Both CPUs to HLT, from rip[n]; R8 is n. */
static void run_both(uint64_t rip0, uint64_t rip1)
{
    Runner r[2] = { { vm_cpu(0), rip0, { 0 } }, { vm_cpu(1), rip1, { 0 } } };
    GThread *t = g_thread_new("cpu1", runner, &r[1]);

    runner(&r[0]);
    g_thread_join(t);
    memory_thread_register();
    g_assert_cmpint(r[0].fault.vector, ==, -1);
    g_assert_cmpint(r[1].fault.vector, ==, -1);
}

static void setup(void)
{
    for (unsigned n = 0; n < 2; n++) {
        vm_reset_long(vm_cpu(n));
        vm_cpu(n)->c->regs[R_RSP] = VM_STACK - n * 0x1000;
        vm_cpu(n)->c->regs[R_RSI] = VM_DATA;
        vm_cpu(n)->c->regs[8] = n;
    }
    memset(vm_cpu(0)->ram + VM_DATA, 0, 0x2000);
}

static uint64_t word(unsigned n)
{
    uint64_t v;

    memcpy(&v, vm_cpu(0)->ram + VM_DATA + n * 8, 8);
    return v;
}

/* 2 x ROUNDS of each; word 15 lies over a cache line's end: a split lock. */
CODE(locked, "mov $20000, %ecx\n"
             "1: lock incl (%rsi)\n"
             "lock addq $3, 8(%rsi)\n"
             "mov $1, %eax; lock xaddl %eax, 16(%rsi)\n"
             "mov 24(%rsi), %rax; 2: lea 1(%rax), %rbx; lock cmpxchg %rbx, 24(%rsi); jnz 2b\n"
             "3: mov $1, %eax; xchg %eax, 32(%rsi); test %eax, %eax; jnz 3b\n"
             "incl 40(%rsi); movl $0, 32(%rsi)\n"
             "4: lock btsl $5, 48(%rsi); jc 4b; incl 56(%rsi); lock btrl $5, 48(%rsi)\n"
             "lock incq 0x7d(%rsi)\n"
             "dec %ecx; jnz 1b");

static void test_locked(void)
{
    uint64_t split;

    setup();
    load(vm_cpu(0), VM_CODE, code_locked, LEN(locked));
    run_both(VM_CODE, VM_CODE);
    g_assert_cmpuint(word(0), ==, 2 * ROUNDS);
    g_assert_cmpuint(word(1), ==, 6 * ROUNDS);
    g_assert_cmpuint(word(2), ==, 2 * ROUNDS);
    g_assert_cmpuint(word(3), ==, 2 * ROUNDS);
    g_assert_cmpuint(word(5), ==, 2 * ROUNDS);
    g_assert_cmpuint(word(7), ==, 2 * ROUNDS);
    memcpy(&split, vm_cpu(0)->ram + VM_DATA + 0x7d, 8);
    g_assert_cmpuint(split, ==, 2 * ROUNDS);
}

/* Over a page's end; and 16 bytes at once. */
CODE(locked_wide, "mov $20000, %edi\n"
                  "1: lock incl 0xffe(%rsi)\n"
                  "mov 0x20(%rsi), %rax; mov 0x28(%rsi), %rdx\n"
                  "2: lea 1(%rax), %rbx; lea -1(%rdx), %rcx; lock cmpxchg16b 0x20(%rsi); jnz 2b\n"
                  "dec %edi; jnz 1b");

static void test_locked_wide(void)
{
    uint32_t split;

    setup();
    load(vm_cpu(0), VM_CODE, code_locked_wide, LEN(locked_wide));
    run_both(VM_CODE, VM_CODE);
    memcpy(&split, vm_cpu(0)->ram + VM_DATA + 0xffe, 4);
    g_assert_cmpuint(split, ==, 2 * ROUNDS);
    g_assert_cmpuint(word(4), ==, 2 * ROUNDS);
    g_assert_cmpuint(word(5), ==, -(uint64_t)(2 * ROUNDS));
}

/* One rewrites the other's immediate, 1 to 2000; the other calls it until it sees the last. */
CODE(modify, "mov $2000, %ecx; xor %eax, %eax\n"
             "1: inc %eax; mov %eax, 0x100801(,%r8,1); dec %ecx; jnz 1b");
CODE(modified, "1: mov $0, %eax; ret");
CODE(watch, "mov $0x100800, %edx\n"
            "1: call *%rdx; cmp %ebx, %eax; jb 2f; mov %eax, %ebx; cmp $2000, %eax; jne 1b; hlt\n"
            "2: mov $1, %r9d");

static void test_cross_modifying(void)
{
    setup();
    load(vm_cpu(0), VM_CODE, code_modify, LEN(modify));
    load(vm_cpu(0), VM_CODE + 0x800, code_modified, LEN(modified));
    load(vm_cpu(0), VM_CODE + 0x1000, code_watch, LEN(watch));
    run_both(VM_CODE, VM_CODE + 0x1000);
    g_assert_cmpuint(vm_cpu(1)->c->regs[R_RBX], ==, 2000);
    g_assert_cmpuint(vm_cpu(1)->c->regs[9], ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/interp-smp/locked", test_locked);
    g_test_add_func("/interp-smp/locked-wide", test_locked_wide);
    g_test_add_func("/interp-smp/cross-modifying", test_cross_modifying);
    return g_test_run();
}
