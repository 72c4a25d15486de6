/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two accesses side by side, of which the lower has a displacement that no instruction could hold. */
#include "guest.h"

#define DISTANCE 0x80000000ull
#define ROUNDS   100

u64 far_loads(u64 at, u64 *lower);
__asm__(".globl far_loads\nfar_loads: push %rbx\n mov %rdi, %rbx\n mov -0x80000000(%rbx), %rax\n sub $8, %rbx\n"
        " mov -0x80000000(%rbx), %rcx\n mov %rcx, (%rsi)\n pop %rbx\n ret\n");
u64 far_stores(u64 at, u64 value);
__asm__(".globl far_stores\nfar_stores: push %rbx\n mov %rdi, %rbx\n mov %rsi, -0x80000000(%rbx)\n sub $8, %rbx\n"
        " mov %rsi, -0x80000000(%rbx)\n mov %rsi, %rax\n pop %rbx\n ret\n");

static u8 here[8192] __attribute__((aligned(4096))), there[8192] __attribute__((aligned(4096)));

void test_main(void)
{
    volatile u64 *b = (u64 *)(here + 2048);
    u64 base = (u64)here + DISTANCE;

    /* What is accessed if the displacement is lost. */
    *pte_of(base) = (u64)there | 3;
    *pte_of(base + 4096) = ((u64)there + 4096) | 3;
    tlb_flush();
    for (unsigned n = 0; n < sizeof(there); n++) {
        ((volatile u8 *)base)[n] = 0x55;
    }
    for (u64 n = 0; n < ROUNDS; n++) {
        u64 lower = 0, upper;

        b[0] = n;
        b[-1] = ~n;
        upper = far_loads((u64)b + DISTANCE, &lower);
        check_eq("load", upper, n);
        check_eq("lower load", lower, ~n);
    }
    for (u64 n = 0; n < ROUNDS; n++) {
        far_stores((u64)b + DISTANCE, n);
        check_eq("store", b[0], n);
        check_eq("lower store", b[-1], n);
    }
}
