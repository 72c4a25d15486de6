/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that changes: itself, the next instruction, through an alias, and by another vCPU. */
#include "guest.h"

/* mov $imm32, %eax; ret */
static u8 code[8192] __attribute__((aligned(4096)));

static void put_code(u8 *p, u32 value)
{
    p[0] = 0xb8;
    p[1] = (u8)value;
    p[2] = (u8)(value >> 8);
    p[3] = (u8)(value >> 16);
    p[4] = (u8)(value >> 24);
    p[5] = 0xc3;
}

static u32 run(u8 *p)
{
    u32 v;

    __asm__ volatile("call *%1" : "=a"(v) : "r"(p) : "memory");
    return v;
}

static void rewrite(void)
{
    for (u32 i = 0; i < 2000; i++) {
        put_code(code, i);
        check_eq("rewritten code", run(code), i);
    }
}

/* The store changes the immediate of the very next instruction. */
static void next_instruction(void)
{
    u32 v;

    for (u32 i = 1; i < 200; i++) {
        __asm__ volatile("lea 1f(%%rip), %%rcx\n"
                         "movl %1, 1(%%rcx)\n"
                         "1: mov $0, %%eax\n"
                         : "=a"(v) : "r"(i) : "rcx", "memory");
        check_eq("next instruction", v, i);
    }
    if (host_interprets()) {
        return;
    }
    __asm__ volatile("lea 1f(%%rip), %%rcx\n"
                     "movd %1, %%xmm0\n"
                     "movd %%xmm0, 1(%%rcx)\n"
                     "1: mov $0, %%eax\n"
                     : "=a"(v) : "r"(0x1234567) : "rcx", "memory");
    check_eq("next instruction, stored by SSE", v, 0x1234567);
}

/* The same physical page at a second address. */
static void alias(void)
{
    u8 *other = code + 4096;
    u64 *pte = pte_of((u64)other);
    u64 good = *pte;

    *pte = (*pte_of((u64)code) & ~0xfffull) | (good & 0xfff);
    tlb_flush();
    for (u32 i = 0; i < 500; i++) {
        put_code(other, i);
        check_eq("code changed through an alias", run(code), i);
    }
    *pte = good;
    tlb_flush();
}

/* Data beside code in the same 64 bytes and in the same page. */
static void data_beside_code(void)
{
    put_code(code, 1);
    for (u32 i = 0; i < 100000; i++) {
        *(volatile u32 *)(code + 2048) = i;
        if ((i & 1023) == 0) {
            *(volatile u32 *)(code + 32) = i;
        }
        if (run(code) != 1) {
            check("code beside data", false);
            return;
        }
    }
}

static volatile u32 round, answer;

static void other_cpu(void *arg)
{
    for (u32 i = 1; i <= 2000; i++) {
        u32 regs[4];

        while (round != i) {
            cpu_pause();
        }
        cpuid(0, 0, regs); /* serialises, as cross-modifying code demands */
        answer = run(code);
        round = 0;
    }
}

static void cross_modifying(void)
{
    on_cpu(1, other_cpu, NULL);
    for (u32 i = 1; i <= 2000; i++) {
        put_code(code, i * 3);
        round = i;
        while (round) {
            cpu_pause();
        }
        check_eq("code changed by another CPU", answer, i * 3);
    }
    wait_cpu(1);
}

void test_main(void)
{
    check_eq("CPUs", smp_start(2), 2);
    rewrite();
    next_instruction();
    alias();
    data_beside_code();
    cross_modifying();
}
