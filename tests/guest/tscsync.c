/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TSCs of two vCPUs are one and the same, after the start and after each reset of the machine:
 * the other vCPU's, read between two reads of our own, lies between them. CMOS memory, which a reset
 * leaves, tells how far the guest got.
 */
#include "guest.h"

#define CMOS_STAGE 0x6e
#define CMOS_MAGIC 0x6f
#define RESETS     4
#define ROUNDS     20000
#define LEAST      20
#define MILLIONS   300 /* of TSC cycles: no round comes soon where both vCPUs share a host CPU */
#define NO_MORE    ~0u

static volatile u64 other_tsc;
static volatile u32 asked, answered;

static u8 cmos_read(u8 reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static void cmos_write(u8 reg, u8 v)
{
    outb(0x70, reg);
    outb(0x71, v);
}

static void answer(void *arg)
{
    for (u32 i = 1;; i++) {
        while (asked != i) {
            if (asked == NO_MORE) {
                return;
            }
            cpu_pause();
        }
        other_tsc = rdtsc();
        answered = i;
    }
}

void test_main(void)
{
    unsigned stage = cmos_read(CMOS_MAGIC) == 0x5a ? cmos_read(CMOS_STAGE) : 0;
    u64 early = 0, late = 0, start;

    check_eq("CPUs", smp_start(2), 2);
    asked = answered = 0;
    on_cpu(1, answer, NULL);
    start = rdtsc();
    for (u32 i = 1; i <= ROUNDS && (i <= LEAST || rdtsc() - start < MILLIONS * 1000000ull); i++) {
        u64 before = rdtsc(), after;

        asked = i;
        while (answered != i) {
            cpu_pause();
        }
        after = rdtsc();
        if (other_tsc < before && before - other_tsc > early) {
            early = before - other_tsc;
        }
        if (other_tsc > after && other_tsc - after > late) {
            late = other_tsc - after;
        }
    }
    asked = NO_MORE;
    wait_cpu(1);
    check_eq("the other TSC is behind by", early, 0);
    check_eq("the other TSC is ahead by", late, 0);
    if (stage < RESETS && !early && !late) {
        cmos_write(CMOS_STAGE, (u8)(stage + 1));
        cmos_write(CMOS_MAGIC, 0x5a);
        outb(0xcf9, 6);
        delay_ms(1000);
        check("a reset", false);
    }
    check_eq("resets", stage, RESETS);
}
