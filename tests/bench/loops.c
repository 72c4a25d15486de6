/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flat guest of tests/bench/run: loops of a known number of instructions. Each prints
 * "bench: start NAME", runs for about half a second, and prints
 * "bench: end NAME INSTRUCTIONS (in hexadecimal)"; the host takes the time between the two lines.
 */
#include "../guest/guest.h"

#define PASS 100000u            /* iterations between two looks at the clock */
#define CYCLES 1200000000ull    /* of the time stamp counter */

static u64 data[512] __attribute__((aligned(64)));
static u64 more[512] __attribute__((aligned(64)));

/* Each runs a loop PASS times and returns how many instructions one iteration has. */
static unsigned loop_integer(void)
{
    u64 n = PASS, a = 1, b, d = 3;

    __asm__ volatile("1: add %0, %1\n xor %2, %1\n lea 3(%1,%0,4), %3\n shl $3, %2\n"
                     "imul %3, %1\n ror $7, %3\n add %3, %2\n sub $1, %0\n jnz 1b"
                     : "+r"(n), "+r"(a), "+r"(d), "=&r"(b));
    return 9;
}

static unsigned loop_copy(void)
{
    u64 n = PASS, i = 0, t;

    __asm__ volatile("1: mov (%3,%1), %2\n mov %2, (%4,%1)\n mov 8(%3,%1), %2\n mov %2, 8(%4,%1)\n"
                     "add $16, %1\n and $0xfff, %1\n sub $1, %0\n jnz 1b"
                     : "+r"(n), "+r"(i), "=&r"(t) : "r"(data), "r"(more) : "memory");
    return 8;
}

static unsigned loop_branchy(void)
{
    u64 n = PASS, a = 0, d = 0;

    /* Of 12 instructions two are skipped every second time: 11 on average. */
    __asm__ volatile("1: test $1, %b0\n jz 2f\n inc %1\n"
                     "2: test $2, %b0\n jz 3f\n inc %2\n"
                     "3: cmp %1, %2\n ja 4f\n nop\n 4: lea 1(%1), %1\n"
                     "dec %0\n jnz 1b"
                     : "+q"(n), "+r"(a), "+r"(d));
    return 11;
}

static unsigned loop_call(void)
{
    u64 n = PASS;

    __asm__ volatile("1: call 2f\n dec %0\n jnz 1b\n jmp 3f\n"
                     "2: push %%rbx\n pop %%rbx\n ret\n 3:"
                     : "+r"(n) : : "memory");
    return 6;
}

static unsigned loop_indirect(void)
{
    u64 n = PASS, t, table;

    /* Four targets in turn, as an interpreter of byte code has them. */
    __asm__ volatile("lea 10f(%%rip), %2\n"
                     "1: mov %0, %1\n and $3, %1\n mov (%2,%1,8), %1\n jmp *%1\n"
                     ".balign 8\n 10: .quad 11f, 12f, 13f, 14f\n"
                     "11: add $1, %1\n jmp 5f\n 12: sub $1, %1\n jmp 5f\n"
                     "13: xor $1, %1\n jmp 5f\n 14: or $1, %1\n jmp 5f\n"
                     "5: dec %0\n jnz 1b"
                     : "+r"(n), "=&r"(t), "=&r"(table));
    return 8;
}

static unsigned loop_sse(void)
{
    u64 n = PASS;

    __asm__ volatile("1: paddd %%xmm1, %%xmm0\n pxor %%xmm0, %%xmm2\n movdqa (%1), %%xmm3\n"
                     "pshufd $27, %%xmm3, %%xmm4\n paddq %%xmm4, %%xmm5\n movdqa %%xmm5, (%2)\n"
                     "dec %0\n jnz 1b"
                     : "+r"(n) : "r"(data), "r"(more) : "memory");
    return 8;
}

static unsigned loop_double(void)
{
    u64 n = PASS;

    __asm__ volatile("1: movsd (%1), %%xmm0\n mulsd 8(%1), %%xmm0\n addsd %%xmm0, %%xmm1\n"
                     "divsd 16(%1), %%xmm1\n cvtsi2sd %0, %%xmm2\n subsd %%xmm2, %%xmm1\n"
                     "dec %0\n jnz 1b"
                     : "+r"(n) : "r"(data) : "memory");
    return 8;
}

static unsigned loop_x87(void)
{
    u64 n = PASS;

    __asm__ volatile("fninit\n 1: fld1\n fldl (%1)\n faddp\n fstpl (%2)\n dec %0\n jnz 1b"
                     : "+r"(n) : "r"(data), "r"(more) : "memory");
    return 6;
}

static void measure(const char *name, unsigned (*loop)(void))
{
    u64 insns = 0, end;

    loop();
    print("bench: start ");
    print(name);
    print("\n");
    end = rdtsc() + CYCLES;
    do {
        insns += (u64)loop() * PASS;
    } while (rdtsc() < end);
    print("bench: end ");
    print(name);
    print(" ");
    print_hex(insns);
    print("\n");
}

void test_main(void)
{
    static const u64 doubles[3] = { 0x3ff8000000000000, 0x3ff4000000000000, 0x4000000000000000 };

    for (unsigned i = 0; i < 3; i++) {
        data[i] = doubles[i];
    }
    measure("integer", loop_integer);
    measure("copy", loop_copy);
    measure("branchy", loop_branchy);
    measure("call", loop_call);
    measure("indirect", loop_indirect);
    measure("sse", loop_sse);
    measure("double", loop_double);
    measure("x87", loop_x87);
}
