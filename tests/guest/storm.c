/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Things that guests do often must not cost the emulator what it keeps: invalidations of single
 * pages, loads of CR3, stores beside code. Each is measured against the same work without it; the
 * bounds are far above what is usual and far below what it costs to forget everything.
 */
#include "guest.h"

#define ROUNDS 5
#define LOOPS  10000

static u8 pages[256 * 4096] __attribute__((aligned(4096)));
static u8 code[4096] __attribute__((aligned(4096)));

static void touch(void)
{
    for (unsigned i = 0; i < 64; i++) {
        ((volatile u8 *)pages)[i * 4096]++;
    }
}

static void plain(void)
{
    touch();
}

static void invlpg_other(void)
{
    __asm__ volatile("invlpg (%0)" : : "r"(pages + 200 * 4096) : "memory");
    touch();
}

static void load_cr3(void)
{
    tlb_flush();
    touch();
}

static void call_code(void)
{
    for (unsigned i = 0; i < 64; i++) {
        __asm__ volatile("call *%0" : : "r"(code) : "memory");
    }
}

static void store_beside_code(void)
{
    for (unsigned i = 0; i < 64; i++) {
        ((volatile u32 *)code)[512]++;
        __asm__ volatile("call *%0" : : "r"(code) : "memory");
    }
}

/* Time of the quickest of several rounds: what the host was busy with then drops out. */
static u64 cost(void (*fn)(void))
{
    u64 best = ~0ull;

    for (unsigned r = 0; r < ROUNDS; r++) {
        u64 t = rdtsc();

        for (unsigned i = 0; i < LOOPS; i++) {
            fn();
        }
        t = rdtsc() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void ratio(const char *what, void (*fn)(void), u64 base, u64 limit)
{
    u64 percent = cost(fn) * 100 / (base ? base : 1);

    print(what);
    print(": percent ");
    print_hex(percent);
    print("\n");
    check(what, percent < limit);
}

void test_main(void)
{
    u64 base;

    pte_of((u64)pages);
    pte_of((u64)pages + sizeof(pages) - 1);
    touch();
    base = cost(plain);
    ratio("INVLPG of a page nobody uses", invlpg_other, base, 300);
    ratio("load of CR3", load_cr3, base, 4000);
    code[0] = 0x90;
    code[1] = 0xc3;
    base = cost(call_code);
    ratio("store beside code", store_beside_code, base, 5000);
}
