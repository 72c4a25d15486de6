/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers across a pause of the machine: each is armed for 300 ms, the console says so, and pause.py
 * stops the machine and lets it go on. A deadline that is lost hangs the guest. Then vector registers, which
 * pause.py reads as they change.
 */
#include "guest.h"

#define HPET 0xfed00000ull

static volatile bool fired;
static u64 tsc_per_ms;

static void on_timer(Regs *r)
{
    fired = true;
    apic_eoi();
}

static void wait_for(const char *name, u64 start)
{
    print("armed ");
    print(name);
    print("\n");
    while (!fired) {
        cli();
        if (!fired) {
            sti_hlt();
        }
    }
    cli();
    print("fired ");
    print(name);
    print(" after ms ");
    print_hex((rdtsc() - start) / tsc_per_ms);
    print("\n");
    fired = false;
}

static void tsc_deadline(void)
{
    u32 r[4];
    u64 start;

    cpuid(1, 0, r);
    if (!(r[2] & 1u << 24)) {
        print("none deadline\n");
        return;
    }
    apic_write(0x320, 0x40060);
    start = rdtsc();
    wrmsr(0x6e0, start + 300 * tsc_per_ms);
    wait_for("deadline", start);
    apic_write(0x320, 0x10000);
}

/* Counts per millisecond of the timer divided by 16, measured. */
static u32 apic_rate(void)
{
    u64 t0, t1;
    u32 left;

    apic_write(0x3e0, 3);
    apic_write(0x320, 0x10060);
    t0 = rdtsc();
    apic_write(0x380, ~0u);
    delay_ms(50);
    left = apic_read(0x390);
    t1 = rdtsc();
    apic_write(0x380, 0);
    return (u32)((~0u - left) * tsc_per_ms / (t1 - t0));
}

static void one_shot(void)
{
    u32 rate = apic_rate();
    u64 start;

    apic_write(0x320, 0x60);
    start = rdtsc();
    apic_write(0x380, rate * 300);
    wait_for("oneshot", start);
    apic_write(0x320, 0x10000);
}

static void hpet(void)
{
    volatile u64 *h = (volatile u64 *)HPET;
    u64 start;

    if ((u32)h[0] == ~0u) {
        print("none hpet\n");
        return;
    }
    ioapic_write(0x10 + 2 * 20 + 1, 0);
    ioapic_write(0x10 + 2 * 20, 0x60);
    h[0x10 / 8] = 1;
    start = rdtsc();
    h[0x108 / 8] = h[0xf0 / 8] + 300 * (1000000000000ull / (h[0] >> 32));
    h[0x100 / 8] = 20 << 9 | 4;
    wait_for("hpet", start);
    h[0x10 / 8] = 0;
    ioapic_write(0x10 + 2 * 20, 0x10000);
}

/*
 * Clocks are compared with each other and not with the length of a loop: a busy host stretches the
 * loop. The HPET's period is known; without one the loop has to do.
 */
static u64 tsc_rate(void)
{
    volatile u64 *h = (volatile u64 *)HPET;
    u64 t0, t1, h0, h1;

    if ((u32)h[0] == ~0u) {
        t0 = rdtsc();
        delay_ms(20);
        return (rdtsc() - t0) / 20;
    }
    h[0x10 / 8] = 1;
    h0 = h[0xf0 / 8];
    t0 = rdtsc();
    delay_ms(50);
    h1 = h[0xf0 / 8];
    t1 = rdtsc();
    h[0x10 / 8] = 0;
    return (t1 - t0) * (1000000000000ull / (h[0] >> 32)) / (h1 - h0);
}

/*
 * For ms: XMM0 to 7 have XMM8 to 15 added at each turn, and RBX counts the turns. In RAX to RDX is what is looked
 * at only every 65536 turns.
 */
static void vectors(unsigned ms)
{
    u64 k[8][2], sum[8][2], turns;

    for (unsigned n = 0; n < 16; n++) {
        k[n >> 1][n & 1] = (n + 1) * 0x9e3779b97f4a7c15;
    }
    print("armed vectors\n");
    __asm__ volatile("movups (%1), %%xmm8; movups 16(%1), %%xmm9; movups 32(%1), %%xmm10; movups 48(%1), %%xmm11\n"
                     "movups 64(%1), %%xmm12; movups 80(%1), %%xmm13; movups 96(%1), %%xmm14; movups 112(%1), %%xmm15\n"
                     "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3\n"
                     "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7\n"
                     "xor %%ebx, %%ebx\n"
                     "1: paddq %%xmm8, %%xmm0; paddq %%xmm9, %%xmm1; paddq %%xmm10, %%xmm2; paddq %%xmm11, %%xmm3\n"
                     "paddq %%xmm12, %%xmm4; paddq %%xmm13, %%xmm5; paddq %%xmm14, %%xmm6; paddq %%xmm15, %%xmm7\n"
                     "inc %%rbx; test %%bx, %%bx; jnz 1b\n"
                     "rdtsc; shl $32, %%rdx; or %%rdx, %%rax; cmp %3, %%rax; jb 1b\n"
                     "movups %%xmm0, (%2); movups %%xmm1, 16(%2); movups %%xmm2, 32(%2); movups %%xmm3, 48(%2)\n"
                     "movups %%xmm4, 64(%2); movups %%xmm5, 80(%2); movups %%xmm6, 96(%2); movups %%xmm7, 112(%2)\n"
                     : "=&b"(turns) : "r"(k), "r"(sum), "r"(rdtsc() + ms * tsc_per_ms)
                     : "rax", "rdx", "memory", "cc");
    for (unsigned n = 0; n < 16; n++) {
        check_eq("sum in a vector register", sum[n >> 1][n & 1], turns * k[n >> 1][n & 1]);
    }
    print("fired vectors\n");
}

void test_main(void)
{
    pic_mask();
    apic_enable();
    set_handler(0x60, on_timer);
    tsc_per_ms = tsc_rate();
    tsc_deadline();
    one_shot();
    hpet();
    if (!host_interprets()) {
        vectors(2000);
    }
}
