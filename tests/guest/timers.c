/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PIT, local APIC timer in its three modes, HPET, against each other. */
#include "guest.h"

static volatile u32 ticks;

static void on_apic_timer(Regs *r)
{
    ticks++;
    apic_eoi();
}

static void on_pit(Regs *r)
{
    ticks++;
    outb(0x20, 0x20);
}

static bool wait_ticks(u32 n, unsigned ms)
{
    for (unsigned i = 0; i < ms && ticks < n; i++) {
        sti();
        delay_ms(1);
    }
    cli();
    return ticks >= n;
}

static void pit_through_pic(void)
{
    /* The PIC pair: vectors 0x20.., line 0 only; LINT0 as ExtINT. */
    outb(0x20, 0x11);
    outb(0x21, 0x20);
    outb(0x21, 4);
    outb(0x21, 1);
    outb(0xa0, 0x11);
    outb(0xa1, 0x28);
    outb(0xa1, 2);
    outb(0xa1, 1);
    outb(0xa1, 0xff);
    outb(0x21, 0xfe);
    apic_write(0x350, 0x700);
    set_handler(0x20, on_pit);
    ticks = 0;
    outb(0x43, 0x34); /* channel 0, mode 2 */
    outb(0x40, 11932 & 0xff);
    outb(0x40, 11932 >> 8);
    check("PIT ticks 100 times a second through the PIC", wait_ticks(10, 2000));
    pic_mask();
    apic_write(0x350, 0x10000);
    ticks = 0;
    sti();
    delay_ms(30);
    cli();
    check_eq("no tick when masked", ticks, 0);
}

static void pit_through_ioapic(void)
{
    set_handler(0x50, on_apic_timer);
    ticks = 0;
    ioapic_write(0x10 + 2 * 2 + 1, 0);
    ioapic_write(0x10 + 2 * 2, 0x50); /* pin 2, edge, to APIC 0 */
    check("PIT ticks through the I/O APIC", wait_ticks(10, 2000));
    ioapic_write(0x10 + 2 * 2, 0x10000);
}

static void apic_one_shot(void)
{
    u32 left;

    set_handler(0x51, on_apic_timer);
    apic_write(0x3e0, 0xb); /* divide by 1 */
    apic_write(0x320, 0x51);
    ticks = 0;
    apic_write(0x380, 0xffffffff);
    delay_ms(2);
    left = apic_read(0x390);
    check("count goes down", left && left < 0xffffffff);
    apic_write(0x380, (0xffffffffu - left) / 2);
    check("one shot fires", wait_ticks(1, 2000));
    delay_ms(5);
    check_eq("once", ticks, 1);
    check_eq("count stays 0", apic_read(0x390), 0);
}

static void apic_periodic(void)
{
    u32 left;

    apic_write(0x320, 0x10051);
    apic_write(0x380, 0xffffffff);
    delay_ms(10);
    left = 0xffffffffu - apic_read(0x390);
    ticks = 0;
    apic_write(0x320, 0x20051);
    apic_write(0x380, left);
    check("periodic fires", wait_ticks(5, 3000));
    apic_write(0x380, 0);
    ticks = 0;
    sti();
    delay_ms(30);
    cli();
    check_eq("0 stops it", ticks, 0);
}

static void tsc_deadline(void)
{
    u32 r[4];
    u64 start, ms;

    cpuid(1, 0, r);
    if (!(r[2] & (1u << 24))) {
        print("no TSC deadline\n");
        return;
    }
    start = rdtsc();
    delay_ms(10);
    ms = (rdtsc() - start) / 10;
    apic_write(0x320, 0x40051);
    __asm__ volatile("mfence");
    ticks = 0;
    start = rdtsc();
    wrmsr(0x6e0, start + 5 * ms);
    check_eq("deadline reads back", rdmsr(0x6e0), start + 5 * ms);
    while (!ticks) {
        sti_hlt();
        cli();
    }
    check("not before the deadline", rdtsc() >= start + 5 * ms);
    check_eq("disarmed", rdmsr(0x6e0), 0);
    wrmsr(0x6e0, 1);
    ticks = 0;
    check("one in the past fires at once", wait_ticks(1, 1000));
}

static void hpet(void)
{
    volatile u64 *h = (volatile u64 *)0xfed00000ull;
    u64 a, period_fs = h[0] >> 32;

    if ((h[0] & 0xffff0000) != 0x80860000) {
        print("no HPET\n");
        return;
    }
    check("HPET period", period_fs && period_fs <= 100000000);
    h[2] |= 1;
    a = h[0x1e];
    delay_ms(10);
    a = (h[0x1e] - a) * period_fs / 1000000000ull; /* microseconds */
    check("HPET runs as fast as the PIT", a >= 9000);
    h[2] &= ~1ull;
}

void test_main(void)
{
    apic_enable();
    pit_through_pic();
    pit_through_ioapic();
    apic_one_shot();
    apic_periodic();
    tsc_deadline();
    hpet();
}
