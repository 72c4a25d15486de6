/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an x86-64 host's processor says of itself. */
#include <cpuid.h>
#include <string.h>
#include <time.h>
#include "target/i386/cpu.h"
#include "target/i386/cpuid.h"

void x86_host_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    memset(r, 0, 4 * sizeof(r[0]));
    if (leaf <= (uint32_t)__get_cpuid_max(leaf & 0x80000000u, NULL)) {
        __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
    }
}

/* XCR0's SSE and AVX bits. */
bool x86_host_saves_ymm(void)
{
    uint32_t r[4], lo, hi;

    x86_host_cpuid(1, 0, r);
    if (!(r[2] & CPUID_1_ECX_OSXSAVE)) {
        return false;
    }
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & (XSTATE_SSE | XSTATE_AVX)) == (XSTATE_SSE | XSTATE_AVX);
}

static int64_t monotonic_raw_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/* A pair (time, TSC) taken close together: the tightest of several tries. */
static void sample(int64_t *ns, uint64_t *tsc)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 16; i++) {
        int64_t t0 = monotonic_raw_ns();
        uint64_t c = __builtin_ia32_rdtsc();
        int64_t t1 = monotonic_raw_ns();

        if (t1 - t0 < best) {
            best = t1 - t0;
            *ns = t0 + (t1 - t0) / 2;
            *tsc = c;
        }
    }
}

static uint32_t khz_measured(void)
{
    struct timespec nap = { .tv_nsec = 5000000 };
    int64_t ns0 = 0, ns1 = 0;
    uint64_t c0 = 0, c1 = 0;

    sample(&ns0, &c0);
    nanosleep(&nap, NULL);
    sample(&ns1, &c1);
    return ns1 > ns0 ? (uint32_t)((c1 - c0) * 1000000 / (uint64_t)(ns1 - ns0)) : 0;
}

/* What the processor (leaf 15H) or the hypervisor we are a guest of (4000_0010H) says. */
static uint32_t khz_from_cpuid(void)
{
    unsigned a, b, c, d;

    if (__get_cpuid_max(0, NULL) >= 0x15) {
        __cpuid_count(0x15, 0, a, b, c, d);
        if (a && b && c) {
            return (uint32_t)((uint64_t)c * b / a / 1000);
        }
    }
    __cpuid(1, a, b, c, d);
    if (c & CPUID_1_ECX_HYPERVISOR) {
        __cpuid(0x40000000, a, b, c, d);
        if (a >= 0x40000010 && a < 0x40010000) {
            __cpuid(0x40000010, a, b, c, d);
            return a;
        }
    }
    return 0;
}

uint32_t x86_host_tsc_khz(void)
{
    static _Atomic uint32_t khz;

    if (!khz) {
        uint32_t v = khz_from_cpuid();

        khz = v ? v : khz_measured();
    }
    return khz;
}
