/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calibrates the TSC by counter 2 of the PIT, as Linux does, over and over, while calibrate.py keeps
 * taking the processor away. A result that the guest would take for good has to be one.
 */
#include "guest.h"

#define MS 10
#define LEAST_LOOPS 500
#define SECONDS 12

static u64 tsc_per_ms;

/* TSC counts of a millisecond; 0: disturbed, and the guest sees that. */
static u64 calibrate(void)
{
    u32 latch = 1193182 / (1000 / MS), loops = 0;
    u64 start, last, now, least = ~0ull, most = 0;

    outb(0x61, (inb(0x61) & ~2) | 1);
    outb(0x43, 0xb0); /* counter 2, both bytes, mode 0 */
    outb(0x42, (u8)latch);
    outb(0x42, (u8)(latch >> 8));
    start = last = now = rdtsc();
    while (!(inb(0x61) & 0x20)) {
        now = rdtsc();
        least = now - last < least ? now - last : least;
        most = now - last > most ? now - last : most;
        last = now;
        loops++;
    }
    return loops < LEAST_LOOPS || most > 10 * least ? 0 : (now - start) / MS;
}

void test_main(void)
{
    u32 good = 0, seen = 0, wrong = 0;
    u64 end, r;

    tsc_per_ms = 1000000; /* of -accel tcg */
    print("calibrating\n");
    end = rdtsc() + SECONDS * 1000 * tsc_per_ms;
    while (rdtsc() < end) {
        r = calibrate();
        if (!r) {
            seen++;
        } else if (r < tsc_per_ms * 9 / 10 || r > tsc_per_ms * 11 / 10) {
            wrong++;
        } else {
            good++;
        }
    }
    print("disturbed ");
    print_hex(seen);
    print(" good ");
    print_hex(good);
    print("\n");
    check("disturbances were there", seen > 20);
    check_eq("wrong results", wrong, 0);
}
