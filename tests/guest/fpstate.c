/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What x87 loads and stores must not change, whatever precision and rounding are set, and XSAVE, XSAVEC,
 * XSAVEOPT and XSAVES with every mask of components, restored with every other.
 */
#include "guest.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- Values through the x87 stack ---- */

typedef struct __attribute__((packed)) Ext {
    u64 mantissa;
    u16 exponent;
} Ext;

static void set_control(unsigned precision, unsigned rounding)
{
    u16 cw = (u16)(0x3f | precision << 8 | rounding << 10);

    __asm__ volatile("fninit; fldcw %0" : : "m"(cw));
}

static void check_ext(const char *what, Ext got, Ext want)
{
    check_eq(what, got.mantissa, want.mantissa);
    check_eq(what, got.exponent, want.exponent);
}

static Ext from_integer(u64 v)
{
    u16 sign = v >> 63 ? 0x8000 : 0;
    unsigned exponent = 63;

    if (!v) {
        return (Ext){ 0, 0 };
    }
    v = sign ? -v : v;
    while (!(v >> 63)) {
        v <<= 1;
        exponent--;
    }
    return (Ext){ v, (u16)(sign | (16383 + exponent)) };
}

/* Normal numbers only. */
static Ext from_double(u64 v)
{
    return (Ext){ 1ull << 63 | (v << 12) >> 1, (u16)((v >> 48 & 0x8000) | ((v >> 52 & 0x7ff) + 16383 - 1023)) };
}

static Ext from_float(u32 v)
{
    return (Ext){ 1ull << 63 | (u64)(v & 0x7fffff) << 40, (u16)((v >> 16 & 0x8000) | ((v >> 23 & 0xff) + 16383 - 127)) };
}

static void integers(void)
{
    static const u64 all[] = { 0, 1, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0x123456789abcdef1,
                               0xfedcba9876543211, 0xffffffffffffffff, 0x0020000000000001, 0x5555555555555555 };

    for (unsigned i = 0; i < LEN(all); i++) {
        u64 out = 0;
        u32 out32 = 0;
        u16 out16 = 0;
        Ext e;

        __asm__ volatile("fildll %1; fistpll %0" : "=m"(out) : "m"(all[i]));
        check_eq("64-bit integer through the x87", out, all[i]);
        __asm__ volatile("fildl %1; fistpl %0" : "=m"(out32) : "m"(all[i]));
        check_eq("32-bit integer", out32, (u32)all[i]);
        __asm__ volatile("filds %1; fistps %0" : "=m"(out16) : "m"(all[i]));
        check_eq("16-bit integer", out16, (u16)all[i]);
        __asm__ volatile("fildll %1; fstpt %0" : "=m"(e) : "m"(all[i]));
        check_ext("FILD is exact", e, from_integer(all[i]));
    }
}

/* As they were, through registers and exchanges; also NaNs, which only arithmetic makes quiet. */
static void extended(void)
{
    static const Ext all[] = { { 0x8000000000000001, 0x3fff }, { 0xffffffffffffffff, 0xbffe }, { 1, 0 },
                               { 0x7fffffffffffffff, 0x8000 }, { 0xc000000000000123, 0x7fff },
                               { 0x8000000000000123, 0x7fff }, { 0x8000000000000000, 0xffff },
                               { 0xfffffffffffffffe, 0x7ffe } };

    for (unsigned i = 0; i < LEN(all); i++) {
        Ext e = all[i];

        __asm__ volatile("fldt %1; fstpt %0" : "=m"(e) : "m"(all[i]));
        check_ext("80-bit value copied", e, all[i]);
        __asm__ volatile("fldz; fldt %1; fxch; fst %%st(3); fxch; fld %%st; fstp %%st(1); fchs; fabs; fstpt %0; fstp %%st"
                         : "=m"(e) : "m"(all[i]));
        check_ext("80-bit value moved", e, (Ext){ all[i].mantissa, all[i].exponent & 0x7fff });
    }
}

static void loads(void)
{
    static const u64 doubles[] = { 0x3ff0000000000001, 0x3fefffffffffffff, 0xc00921fb54442d18, 0x7fefffffffffffff };
    static const u32 floats[] = { 0x3f800001, 0xbf7fffff, 0x7f7fffff, 0x00800000 };

    for (unsigned i = 0; i < LEN(doubles); i++) {
        u64 back;
        Ext e;

        __asm__ volatile("fldl %1; fstpt %0" : "=m"(e) : "m"(doubles[i]));
        check_ext("64-bit load", e, from_double(doubles[i]));
        __asm__ volatile("fldl %1; fstpl %0" : "=m"(back) : "m"(doubles[i]));
        check_eq("64-bit value copied", back, doubles[i]);
        __asm__ volatile("flds %1; fstpt %0" : "=m"(e) : "m"(floats[i]));
        check_ext("32-bit load", e, from_float(floats[i]));
    }
}

/* Precision rounds what is computed: 1 + 2^-n for n beyond it is 1. */
static void arithmetic(unsigned precision)
{
    static const u8 digits[] = { 24, 0, 53, 64 };

    for (unsigned n = 1; n < 64; n++) {
        Ext one = { 1ull << 63, 0x3fff }, small = { 1ull << 63, (u16)(0x3fff - n) }, sum, product;
        u64 want = n < digits[precision] ? 1ull << 63 | 1ull << (63 - n) : 1ull << 63;

        __asm__ volatile("fldt %1; fldt %2; faddp; fstpt %0" : "=m"(sum) : "m"(one), "m"(small));
        check_eq("sum, rounded to the precision", sum.mantissa, want);
        small = (Ext){ 1ull << 63 | 1ull << (63 - n), 0x3fff };
        __asm__ volatile("fldt %1; fldt %2; fmulp; fstpt %0" : "=m"(product) : "m"(one), "m"(small));
        check_eq("product, rounded to the precision", product.mantissa, want);
    }
}

static void x87(void)
{
    for (unsigned n = 0; n < 16 * 8; n++) {
        unsigned precision = n & 3, rounding = n >> 2 & 3;

        if (precision == 1) {
            continue; /* reserved */
        }
        set_control(precision, rounding);
        integers();
        set_control(precision, rounding);
        extended();
        set_control(precision, rounding);
        loads();
        if (!rounding) {
            set_control(precision, rounding);
            arithmetic(precision);
        }
    }
}

/* ---- XSAVE and its like ---- */

enum { X87 = 1, SSE = 2, AVX = 4, PKRU = 0x200 };
static const u16 components[] = { X87, SSE, AVX, PKRU };

typedef struct State {
    u64 st, xmm, high;
    u32 mxcsr, pkru;
    u16 cw;
} State;

static const State initial = { .mxcsr = 0x1f80, .cw = 0x37f };
static const State one = { 0x1111, 0xaaaa1111, 0xbbbb1111, 0x3f80, 0x5550, 0x27f };
static const State two = { 0x2222, 0xaaaa2222, 0xbbbb2222, 0x5f80, 0xaaa0, 0xb7f };
static u64 have; /* of components */

static void state_set(const State *s)
{
    /* FNINIT, then a value in ST(0); none for 0, as the initial state has. */
    __asm__ volatile("fninit; fldcw %0" : : "m"(s->cw));
    if (s->st) {
        __asm__ volatile("fildll %0" : : "m"(s->st));
    }
    if (have & AVX) {
        u64 high[2] = { s->high, 0 };

        __asm__ volatile("vzeroall; vmovq %0, %%xmm3; vmovaps %%xmm3, %%xmm15;"
                         "vinsertf128 $1, %1, %%ymm3, %%ymm3; vinsertf128 $1, %1, %%ymm15, %%ymm15"
                         : : "m"(s->xmm), "m"(high));
    } else {
        __asm__ volatile("movq %0, %%xmm3; movaps %%xmm3, %%xmm15" : : "m"(s->xmm));
    }
    __asm__ volatile("ldmxcsr %0" : : "m"(s->mxcsr));
    if (have & PKRU) {
        __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(s->pkru), "c"(0), "d"(0)); /* WRPKRU */
    }
}

static State state_get(void)
{
    static u8 image[512] __attribute__((aligned(16)));
    State s = { 0 };

    __asm__ volatile("fxsave %0" : "=m"(image));
    s.cw = *(u16 *)image;
    s.mxcsr = *(u32 *)(image + 24);
    if (image[4]) { /* a register is not empty: an integer in it */
        Ext *e = (Ext *)(image + 32);

        s.st = e->mantissa >> (63 - (e->exponent - 16383));
    }
    s.xmm = *(u64 *)(image + 160 + 3 * 16);
    if (have & AVX) {
        __asm__ volatile("vextractf128 $1, %%ymm3, %%xmm0; vmovq %%xmm0, %0" : "=m"(s.high));
    }
    if (have & PKRU) {
        __asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(s.pkru) : "c"(0) : "rdx"); /* RDPKRU */
    }
    return s;
}

static u8 area[2048] __attribute__((aligned(64)));

enum { XSAVE, XSAVEOPT, XSAVEC, XSAVES, KINDS };
static const char *const kinds[] = { "XSAVE", "XSAVEOPT", "XSAVEC", "XSAVES" };

static void save(unsigned kind, u32 mask)
{
    switch (kind) {
    case XSAVE:
        __asm__ volatile("xsave64 %0" : "+m"(area) : "a"(mask), "d"(0));
        break;
    case XSAVEOPT:
        __asm__ volatile("xsaveopt64 %0" : "+m"(area) : "a"(mask), "d"(0));
        break;
    case XSAVEC:
        __asm__ volatile("xsavec64 %0" : "+m"(area) : "a"(mask), "d"(0));
        break;
    default:
        __asm__ volatile("xsaves64 %0" : "+m"(area) : "a"(mask), "d"(0));
        break;
    }
}

static void restore(unsigned kind, u32 mask)
{
    if (kind == XSAVES) {
        __asm__ volatile("xrstors64 %0" : : "m"(area), "a"(mask), "d"(0) : "memory");
    } else {
        __asm__ volatile("xrstor64 %0" : : "m"(area), "a"(mask), "d"(0) : "memory");
    }
}

static bool offered(unsigned kind)
{
    u32 r[4];

    cpuid(0xd, 1, r);
    return kind == XSAVE || (r[0] >> (kind == XSAVEOPT ? 0 : kind == XSAVEC ? 1 : 3) & 1);
}

/* What component c, or MXCSR (0), is after a restore (SDM 1, 13.8). */
static const State *source(unsigned kind, u32 saved, u32 restored, u32 c, const State *was)
{
    bool compact = kind >= XSAVEC;

    if (c) {
        return restored & c ? (saved & c ? was : &initial) : &two;
    }
    /* In the standard form MXCSR goes with SSE or AVX, and from memory in any case. */
    if (compact) {
        return restored & SSE ? (saved & SSE ? was : &initial) : &two;
    }
    return restored & (SSE | AVX) ? (saved & (SSE | AVX) ? was : &initial) : &two;
}

static void untouched(const char *what, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        if (area[i] != 0xcc) {
            check_eq(what, area[i], 0xcc);
            return;
        }
    }
}

static void area_check(unsigned kind, u32 saved, bool in_use)
{
    u64 bv = *(u64 *)(area + 512), compact = *(u64 *)(area + 520);
    unsigned end = 576 + (saved & AVX ? 256 : 0);

    check_eq("XSTATE_BV", in_use ? bv : bv & ~(u64)saved, in_use ? saved : 0);
    check_eq("XCOMP_BV", compact, kind >= XSAVEC ? 1ull << 63 | saved : 0);
    if (!(saved & X87)) {
        untouched("x87 not asked for", 0, 24);
        untouched("x87 not asked for", 32, 160);
    }
    if (!(saved & SSE)) {
        untouched("SSE not asked for", 160, 416);
    }
    if (kind >= XSAVEC) {
        if (in_use && (saved & PKRU)) {
            check_eq("PKRU right behind what was asked for", *(u32 *)(area + end), one.pkru);
            end += 8;
        }
        untouched("behind the compacted components", end, sizeof(area));
    }
}

static void xsave_one(unsigned kind, u32 saved, u32 restored, bool in_use)
{
    const State *was = in_use ? &one : &initial;
    State got;

    for (unsigned i = 0; i < sizeof(area); i++) {
        area[i] = i >= 512 && i < 576 ? 0 : 0xcc;
    }
    *(u32 *)(area + 24) = initial.mxcsr;
    state_set(was);
    save(kind, saved);
    state_set(&two);
    restore(kind, restored);
    got = state_get();
    state_set(&initial);
    area_check(kind, saved, in_use);
    check_eq(kinds[kind], got.st, source(kind, saved, restored, X87, was)->st);
    check_eq(kinds[kind], got.cw, source(kind, saved, restored, X87, was)->cw);
    check_eq(kinds[kind], got.xmm, source(kind, saved, restored, SSE, was)->xmm);
    check_eq("MXCSR", got.mxcsr, source(kind, saved, restored, 0, was)->mxcsr);
    if (have & AVX) {
        check_eq("high halves", got.high, source(kind, saved, restored, AVX, was)->high);
    }
    if (have & PKRU) {
        check_eq("PKRU", got.pkru, source(kind, saved, restored, PKRU, was)->pkru);
    }
}

static u32 mask_of(unsigned n)
{
    u32 mask = 0;

    for (unsigned i = 0; i < LEN(components); i++) {
        mask |= n >> i & 1 ? components[i] : 0;
    }
    return mask;
}

static void xsave(void)
{
    u32 r[4];
    u64 cr4;

    enable_avx();
    if (!cpu_offers(1, 2, 26)) {
        print("no XSAVE\n");
        return;
    }
    cpuid(0xd, 0, r);
    have = r[0] & (X87 | SSE | AVX | (cpu_offers(7, 2, 3) ? PKRU : 0));
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" : : "r"(cr4 | 1 << 18 | (have & PKRU ? 1 << 22 : 0)));
    __asm__ volatile("xsetbv" : : "a"((u32)have), "d"(0), "c"(0));
    for (unsigned n = 0; n < KINDS * 16 * 16 * 2; n++) {
        unsigned kind = n & 3;
        u32 saved = mask_of(n >> 2 & 15), restored = mask_of(n >> 6 & 15);

        if (offered(kind) && !(saved & ~have) && !(restored & ~have)) {
            xsave_one(kind, saved, restored, n >> 10);
        }
    }
    for (unsigned kind = XSAVE; kind < KINDS; kind++) {
        print(offered(kind) ? "tested " : "no ");
        print(kinds[kind]);
        print("\n");
    }
}

void test_main(void)
{
    x87();
    xsave();
}
