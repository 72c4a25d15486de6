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

/* ---- The next instruction ---- */

#define NOPS 0x9090909090909090ull

u64 next_cell[4];

/*
 * The store of v (EDX, RDX, XMM1, or what is at next_cell) changes the immediate of the instruction behind it,
 * at 1(RCX): its own address, or delta further on, where the same page is mapped too. Wide ones store NOPs
 * behind it.
 */
#define NEXT(name, store)                                                                          \
    static u32 name(u64 v, u64 delta)                                                              \
    {                                                                                              \
        u32 got;                                                                                   \
        __asm__ volatile(".p2align 7\n mov %%rsp, %%r8\n movq %[v], %%xmm1\n"                      \
                         "lea 1f(%%rip), %%rcx\n add %[delta], %%rcx\n lea 1(%%rcx), %%rdi\n"       \
                         "lea next_cell(%%rip), %%rsi\n" store "\n"                                     \
                         "1: mov $0, %%eax\n .fill 28, 1, 0x90\n mov %%r8, %%rsp\n"               \
                         : "=&a"(got), [v] "+d"(v) : [delta] "r"(delta)                            \
                         : "rcx", "rsi", "rdi", "r8", "memory", "cc");                             \
        return got;                                                                                \
    }

NEXT(by_mov, "movl %%edx, 1(%%rcx)")
NEXT(by_mov64, "mov %%rdx, 1(%%rcx)")
NEXT(by_byte, "movb %%dl, 1(%%rcx)")
NEXT(by_bytes, "movb $0, 4(%%rcx); movb %%dh, 2(%%rcx); movb %%dl, 1(%%rcx)")
NEXT(by_xchg, "xchg %%edx, 1(%%rcx)")
NEXT(by_add, "mov 1(%%rcx), %%eax; neg %%eax; add %%edx, %%eax; addl %%eax, 1(%%rcx)")
NEXT(by_cmpxchg, "mov 1(%%rcx), %%eax; lock cmpxchg %%edx, 1(%%rcx)")
NEXT(by_push, "lea 9(%%rcx), %%rsp; push %%rdx")
NEXT(by_pop, "mov %%rdx, next_cell(%%rip); mov %%rsi, %%rsp; popq 1(%%rcx)")
NEXT(by_movs, "movsl")
NEXT(by_rep_movs, "mov $4, %%ecx; rep movsb")
NEXT(by_rep_stos, "mov %%edx, %%eax; mov $1, %%ecx; rep stosl")
NEXT(by_ins, "mov %%edx, %%eax; mov $0xe0, %%edx; outl %%eax, %%dx; insl")
NEXT(by_movd, "movd %%xmm1, 1(%%rcx)")
NEXT(by_movnti, "movnti %%edx, 1(%%rcx)")
NEXT(by_movups, "movups (%%rsi), %%xmm2; movups %%xmm2, 1(%%rcx)")
NEXT(by_maskmov, "pcmpeqd %%xmm2, %%xmm2; psrldq $12, %%xmm2; maskmovdqu %%xmm2, %%xmm1")
NEXT(by_fistp, "fninit; fildl (%%rsi); fistpl 1(%%rcx)")
NEXT(by_fstp, "fninit; flds (%%rsi); fstps 1(%%rcx)")
NEXT(by_mmx, "movdq2q %%xmm1, %%mm1; movd %%mm1, 1(%%rcx); emms")
NEXT(by_vmovups, "vmovups (%%rsi), %%ymm2; vmovups %%ymm2, 1(%%rcx); vzeroupper")

static const struct {
    const char *name;
    u32 (*fn)(u64 v, u64 delta);
    bool integer, avx;
} nexts[] = {
    { "MOV", by_mov, true, false },          { "64-bit MOV", by_mov64, true, false },
    { "MOV of a byte", by_byte, true, false }, { "three bytes", by_bytes, true, false },
    { "XCHG", by_xchg, true, false },        { "ADD", by_add, true, false },
    { "CMPXCHG", by_cmpxchg, true, false },  { "PUSH", by_push, true, false },
    { "POP", by_pop, true, false },          { "MOVS", by_movs, true, false },
    { "REP MOVS", by_rep_movs, true, false }, { "REP STOS", by_rep_stos, true, false },
    { "INS", by_ins, true, false },          { "MOVD", by_movd, false, false },
    { "MOVNTI", by_movnti, false, false },   { "MOVUPS", by_movups, false, false },
    { "MASKMOVDQU", by_maskmov, false, false }, { "FISTP", by_fistp, false, false },
    { "FSTP", by_fstp, false, false },       { "MOVD of MMX", by_mmx, false, false },
    { "VMOVUPS", by_vmovups, false, true },
};

static void next_instruction(u64 delta, const char *where)
{
    bool avx = cpu_offers(1, 2, 26) && cpu_offers(1, 2, 28);

    for (unsigned k = 0; k < sizeof(nexts) / sizeof(nexts[0]); k++) {
        if ((host_interprets() && !nexts[k].integer) || (nexts[k].avx && !avx)) {
            continue;
        }
        for (u32 i = 1; i < 60; i++) {
            u64 v = i | NOPS << 32;
            u32 got;

            next_cell[0] = v;
            next_cell[1] = next_cell[2] = next_cell[3] = NOPS;
            got = nexts[k].fn(v, delta);
            if (got != i) {
                check_eq(nexts[k].name, got, i);
                print(where);
            }
        }
    }
}

/* The same through a second address of the pages that the code is in. */
static void alias_next(void)
{
    static u8 second[8 * 4096] __attribute__((aligned(4096)));
    u64 first = (u64)by_mov & ~0xfffull, good[8];

    for (unsigned i = 0; i < 8; i++) {
        u64 *pte = pte_of((u64)second + i * 4096);

        good[i] = *pte;
        *pte = (*pte_of(first + i * 4096) & ~0xfffull) | (good[i] & 0xfff);
    }
    tlb_flush();
    check("the tested code is in these pages", (u64)next_instruction < first + sizeof(second));
    next_instruction((u64)second - first, " through another address\n");
    for (unsigned i = 0; i < 8; i++) {
        *pte_of((u64)second + i * 4096) = good[i];
    }
    tlb_flush();
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
    enable_avx();
    next_instruction(0, " at its address\n");
    alias_next();
    alias();
    data_beside_code();
    cross_modifying();
}
