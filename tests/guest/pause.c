/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers across a pause of the machine: each is armed for 300 ms, the console says so, and pause.py
 * stops the machine and lets it go on. A deadline that is lost hangs the guest.
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

void test_main(void)
{
    pic_mask();
    apic_enable();
    set_handler(0x60, on_timer);
    tsc_per_ms = tsc_rate();
    tsc_deadline();
    one_shot();
    hpet();
}
