/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vector registers that are in use while something comes in between: a fault, an interrupt, a store that is
 * not plain, an instruction of another kind, code that changes. All sixteen are looked at, there and afterwards.
 */
#include "guest.h"

#define ROUNDS 40 /* often enough to be translated, and to run so */
#define VECTOR 0x60
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

typedef struct Vectors {
    u64 q[16][4];
} Vectors;

static bool avx; /* AVX2, and whole registers are looked at */
static u8 pages[2 * 4096] __attribute__((aligned(4096)));
static u64 *pte, present;

#define ALL(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define SSE_LOAD(n)  "movups 32*" #n "(%0), %%xmm" #n "\n"
#define SSE_STORE(n) "movups %%xmm" #n ", 32*" #n "(%0)\n"
#define AVX_LOAD(n)  "vmovups 32*" #n "(%0), %%ymm" #n "\n"
#define AVX_STORE(n) "vmovups %%ymm" #n ", 32*" #n "(%0)\n"

static void vectors_set(const Vectors *v)
{
    if (avx) {
        __asm__ volatile(ALL(AVX_LOAD) : : "r"(v) : "memory");
    } else {
        __asm__ volatile(ALL(SSE_LOAD) : : "r"(v) : "memory");
    }
}

static void vectors_get(Vectors *v)
{
    if (avx) {
        __asm__ volatile(ALL(AVX_STORE) : : "r"(v) : "memory");
    } else {
        __asm__ volatile(ALL(SSE_STORE) : : "r"(v) : "memory");
    }
}

static void check_vectors(const char *what, const Vectors *got, const Vectors *want)
{
    for (unsigned n = 0; n < 16 * 4; n++) {
        if ((n & 2) && !avx) {
            continue;
        }
        if (got->q[n >> 2][n & 3] != want->q[n >> 2][n & 3]) {
            check_eq(what, got->q[n >> 2][n & 3], want->q[n >> 2][n & 3]);
            print("  quadword ");
            print_hex(n);
            print("\n");
            return;
        }
    }
}

static void vectors_fill(Vectors *v, u64 seed)
{
    for (unsigned n = 0; n < 16 * 4; n++) {
        v->q[n >> 2][n & 3] = (seed * 64 + n + 1) * 0x9e3779b97f4a7c15;
    }
}

/* ---- Something in the middle of a block ---- */

/* Each register has the next one added, which changes all of them. */
static void model_step(Vectors *v, bool wide)
{
    for (unsigned n = 0; n < 16; n++) {
        for (unsigned k = 0; k < 4; k++) {
            if (k < 2 || wide) {
                v->q[n][k] += v->q[(n + 1) & 15][k];
            }
        }
    }
}

#define SSE_ADD(to, from) "paddq %%xmm" #from ", %%xmm" #to "\n"
#define AVX_ADD(to, from) "vpaddq %%ymm" #from ", %%ymm" #to ", %%ymm" #to "\n"
#define STEP(m)                                                                                    \
    m(0, 1) m(1, 2) m(2, 3) m(3, 4) m(4, 5) m(5, 6) m(6, 7) m(7, 8) m(8, 9) m(9, 10) m(10, 11)     \
    m(11, 12) m(12, 13) m(13, 14) m(14, 15) m(15, 0)

typedef struct Places {
    void *device, *missing, *cross, *scratch;
} Places;

/* RBX: a device's register, RSI: a page that may be missing, RDI: bytes across its end, R8: scratch. */
#define ACTION(name, text)                                                                         \
    static void name##_sse(const Places *p)                                                        \
    {                                                                                              \
        register void *r8 __asm__("r8") = p->scratch;                                              \
        __asm__ volatile(STEP(SSE_ADD) text "\n" STEP(SSE_ADD)                                     \
                         : : "b"(p->device), "S"(p->missing), "D"(p->cross), "r"(r8)               \
                         : "rax", "rcx", "rdx", "r9", "memory", "cc");                                   \
    }                                                                                              \
    static void name##_avx(const Places *p)                                                        \
    {                                                                                              \
        register void *r8 __asm__("r8") = p->scratch;                                              \
        __asm__ volatile(STEP(AVX_ADD) text "\n" STEP(AVX_ADD)                                     \
                         : : "b"(p->device), "S"(p->missing), "D"(p->cross), "r"(r8)               \
                         : "rax", "rcx", "rdx", "r9", "memory", "cc");                                   \
    }

ACTION(nothing, "")
ACTION(load, "mov (%%rsi), %%rax")
ACTION(vector_load, "movups (%%rsi), %%xmm3")
ACTION(vector_store, "movups %%xmm3, 16(%%rsi)")
ACTION(cross_store, "mov %%rdi, (%%rdi)")
ACTION(cross_vector, "movups %%xmm9, -8(%%rdi)")
ACTION(device, "mov (%%rbx), %%eax; mov %%eax, (%%rbx)")
ACTION(port, "mov $0x80, %%edx; out %%al, %%dx")
ACTION(interpreted, "xor %%eax, %%eax; mov %%rbx, %%r9; cpuid; mov %%r9, %%rbx")
ACTION(masked, "mov %%rdi, %%r9; mov %%r8, %%rdi; maskmovdqu %%xmm2, %%xmm5; mov %%r9, %%rdi")
ACTION(division, "xor %%ecx, %%ecx; mov $7, %%eax; xor %%edx, %%edx; div %%ecx")
ACTION(trap, "int3")
ACTION(jump, "call 1f; jmp 2f; 1: ret; 2:")
ACTION(x87, "fninit; fldpi; fistpll (%%r8)")
ACTION(mmx, "movq (%%r8), %%mm1; paddb %%mm1, %%mm1; movq %%mm1, 8(%%r8); emms")
ACTION(rounding, "movl $0x5f80, (%%r8); ldmxcsr (%%r8); cvtsd2si %%xmm4, %%rax\n"
                 "movl $0x1f80, (%%r8); ldmxcsr (%%r8)")
ACTION(image, "fxsave (%%r8); pxor %%xmm0, %%xmm0; paddq %%xmm6, %%xmm15; fxrstor (%%r8)")
ACTION(own_code, "movb $0x90, 1f(%%rip); 1: nop")
ACTION(zero_upper, "vzeroupper")
ACTION(zero_all, "vzeroall")

enum { FAULTS = 1, ZERO_UPPER = 2, ZERO_ALL = 4, LOADS_3 = 8, AVX_ONLY = 16, STOPS = 32 };
static const struct {
    const char *name;
    void (*run[2])(const Places *p);
    unsigned flags;
} actions[] = {
#define ROW(name, flags) { #name, { name##_sse, name##_avx }, flags }
    ROW(nothing, 0), ROW(load, FAULTS), ROW(vector_load, FAULTS | LOADS_3), ROW(vector_store, FAULTS),
    ROW(cross_store, FAULTS), ROW(cross_vector, FAULTS), ROW(device, 0), ROW(port, 0), ROW(interpreted, 0), ROW(masked, 0), ROW(division, STOPS),
    ROW(trap, STOPS), ROW(jump, 0), ROW(x87, 0), ROW(mmx, 0), ROW(rounding, 0), ROW(image, 0), ROW(own_code, 0),
    ROW(zero_upper, ZERO_UPPER | AVX_ONLY), ROW(zero_all, ZERO_ALL | AVX_ONLY),
};

static Vectors found;
static unsigned stops;

/* Notes the registers, and leaves something else in them till the end. */
static void note(void)
{
    Vectors other;

    vectors_get(&found);
    vectors_fill(&other, stops + 1000);
    vectors_set(&other);
    stops++;
}

static void on_fault(Regs *r)
{
    note();
    if (r->vector == 14) {
        *pte = present;
        tlb_flush();
    } else if (r->vector == 0) {
        r->rip += 2; /* DIV ECX */
    }
    vectors_set(&found);
}

static void model_action(Vectors *v, unsigned flags)
{
    for (unsigned n = 0; n < 16; n++) {
        for (unsigned k = 0; k < 4; k++) {
            if ((flags & ZERO_ALL) || ((flags & ZERO_UPPER) && k >= 2)) {
                v->q[n][k] = 0;
            }
        }
    }
    if (flags & LOADS_3) {
        v->q[3][0] = *(u64 *)pages;
        v->q[3][1] = *(u64 *)(pages + 8);
    }
}

/* wide: the steps are AVX instructions; else upper halves stay, and every second time they are zero. */
static void in_between(unsigned i, bool wide, bool missing)
{
    static u8 scratch[512] __attribute__((aligned(16)));
    const Places p = { (void *)(APIC_BASE + 0x80), pages, pages + 4096 - 4, scratch };

    for (u64 round = 0; round < ROUNDS; round++) {
        Vectors v, got;

        vectors_fill(&v, round);
        for (unsigned n = 0; n < 16 && (round & 1); n++) {
            v.q[n][2] = v.q[n][3] = 0;
        }
        if (missing) {
            *pte = 0;
            tlb_flush();
        }
        stops = 0;
        vectors_set(&v);
        actions[i].run[wide](&p);
        vectors_get(&got);
        model_step(&v, wide);
        if (missing || (actions[i].flags & STOPS)) {
            check_eq(actions[i].name, stops, 1);
            check_vectors(actions[i].name, &found, &v);
        }
        model_action(&v, actions[i].flags);
        model_step(&v, wide);
        check_vectors(actions[i].name, &got, &v);
    }
}

static void all_actions(bool wide)
{
    for (unsigned i = 0; i < LEN(actions); i++) {
        if ((actions[i].flags & AVX_ONLY) && !avx) {
            continue;
        }
        in_between(i, wide, false);
        if (actions[i].flags & FAULTS) {
            in_between(i, wide, true);
        }
    }
}

/* ---- Interrupts ---- */

static Vectors start;
static u64 turns, taken;

/* At each turn 0 to 7 have had 8 to 15 added as often as R9 says, or the turn under way has begun. */
static void on_timer(Regs *r)
{
    Vectors want = start;

    note();
    for (unsigned n = 0; n < 8; n++) {
        for (unsigned k = 0; k < 4; k++) {
            u64 done = found.q[n][k] == r->r9 * start.q[n + 8][k] ? r->r9 : r->r9 + 1;

            want.q[n][k] = k < 2 || avx ? done * start.q[n + 8][k] : 0;
        }
    }
    if (r->r10 == turns) { /* else it came before the loop, or behind it */
        taken++;
        check_vectors("at an interrupt", &found, &want);
    }
    vectors_set(&found);
    apic_eoi();
    apic_write(0x380, 3000 + (u32)(taken * 977 % 9000));
}

#define TURN(m) m(0, 8) m(1, 9) m(2, 10) m(3, 11) m(4, 12) m(5, 13) m(6, 14) m(7, 15)
#define LOOP(m)                                                                                    \
    __asm__ volatile("xor %%r9d, %%r9d; mov %0, %%r10\n 1:" TURN(m)                                \
                     "inc %%r9; cmp %%r10, %%r9; jb 1b; xor %%r10d, %%r10d"                        \
                     : : "r"(turns) : "r9", "r10", "cc")

static void interrupts(void)
{
    Vectors got, want;

    taken = 0;
    for (unsigned round = 0; round < 200 && taken < 100; round++) {
        turns = 100000 + round;
        vectors_fill(&start, round);
        for (unsigned n = 0; n < 8 * 4; n++) {
            start.q[n >> 2][n & 3] = 0;
        }
        want = start;
        for (unsigned n = 0; n < 8 * 4; n++) {
            want.q[n >> 2][n & 3] = turns * start.q[(n >> 2) + 8][n & 3];
        }
        vectors_set(&start);
        apic_write(0x380, 1000);
        sti();
        if (avx) {
            LOOP(AVX_ADD);
        } else {
            LOOP(SSE_ADD);
        }
        cli();
        vectors_get(&got);
        check_vectors("after interrupts", &got, &want);
    }
    apic_write(0x380, 0);
    check("interrupts came", taken >= 100);
}

static void everything(void)
{
    print(avx ? "AVX\n" : "SSE\n");
    all_actions(false);
    if (avx) {
        all_actions(true);
    }
    interrupts();
}

void test_main(void)
{
    pte = pte_of((u64)pages);
    pte_of((u64)pages + 4096);
    present = *pte;
    tlb_flush();
    set_handler(0, on_fault);
    set_handler(3, on_fault);
    set_handler(14, on_fault);
    set_handler(VECTOR, on_timer);
    pic_mask();
    apic_enable();
    apic_write(0x3e0, 0xb);
    apic_write(0x320, VECTOR);
    everything();
    if (cpu_offers(1, 2, 26) && cpu_offers(1, 2, 28) && cpu_offers(7, 1, 5)) {
        enable_avx();
        avx = true;
        everything();
    }
    finish();
}
