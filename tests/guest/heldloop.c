/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts ticks of the PIT while the emulator's main loop is held off (heldloop.py), as Linux does
 * when it looks whether its timer is connected: by the TSC it waits, and polls for nothing else.
 */
#include "guest.h"

#define TSC_PER_MS 1000000ull
#define PERIOD     11932 /* 10 ms */

static volatile u32 ticks;

static void on_tick(Regs *r)
{
    ticks++;
    apic_eoi();
}

static void wait_ms(unsigned ms)
{
    u64 end = rdtsc() + ms * TSC_PER_MS;

    while (rdtsc() < end) {
        cpu_pause();
    }
}

void test_main(void)
{
    u32 n;

    apic_enable();
    set_handler(0x50, on_tick);
    ioapic_write(0x10 + 2 * 2 + 1, 0);
    ioapic_write(0x10 + 2 * 2, 0x50);
    outb(0x43, 0x34); /* counter 0, mode 2 */
    outb(0x40, (u8)PERIOD);
    outb(0x40, PERIOD >> 8);
    sti();
    print("hold the loop\n");
    wait_ms(1000);
    ticks = 0;
    wait_ms(1000);
    n = ticks;
    cli();
    wait_ms(1500);
    print("ticks ");
    print_hex(n);
    print("\n");
    check("ticks come", n >= 50 && n <= 102);
}
