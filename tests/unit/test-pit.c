/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 8254: all six modes, latches, BCD, gate 2, port 61h, no drift, late ticks. */
#include "device-test.h"
#include "hw/timer.h"

#define HZ 1193182ll
#define MS 1000000ll

static DeviceState *pit;

/* Time of n counter ticks, rounded up. */
static int64_t ticks(int64_t n)
{
    return (n * NANOSECONDS_PER_SECOND + HZ - 1) / HZ;
}

static void program(unsigned ch, unsigned mode, unsigned count)
{
    outb(0x43, (uint8_t)(ch << 6 | 0x30 | mode << 1));
    outb((uint16_t)(0x40 + ch), (uint8_t)count);
    outb((uint16_t)(0x40 + ch), (uint8_t)(count >> 8));
}

static unsigned latch(unsigned ch)
{
    unsigned lo;

    outb(0x43, (uint8_t)(ch << 6));
    lo = inb((uint16_t)(0x40 + ch));
    return lo | (unsigned)inb((uint16_t)(0x40 + ch)) << 8;
}

static uint8_t status(unsigned ch)
{
    outb(0x43, (uint8_t)(0xe0 | 2u << ch));
    return inb((uint16_t)(0x40 + ch));
}

static bool out2(void)
{
    return inb(0x61) & 0x20;
}

static void restart(void)
{
    pit->type->reset(pit);
    step_ns(5 * MS);
    lines_clear();
}

static void test_mode0(void)
{
    restart();
    program(0, 0, 1000);
    g_assert_cmpint(isa_lines[0].level, ==, 0);
    step_ns(ticks(990));
    g_assert_cmpint(isa_lines[0].level, ==, 0);
    g_assert_cmpuint(latch(0), <=, 11);
    g_assert_cmpuint(latch(0), >=, 9);
    step_ns(ticks(12));
    g_assert_cmpint(isa_lines[0].level, ==, 1);
    /* It stays high, the counter goes on through 0. */
    step_ns(ticks(100));
    g_assert_cmpuint(latch(0), >, 65000);
    step_ns(ticks(70000));
    g_assert_cmpuint(isa_lines[0].rises, ==, 1);
    /* The first byte of a new count makes OUT low and stops. */
    outb(0x40, 0x10);
    step_ns(ticks(100));
    g_assert_cmpint(isa_lines[0].level, ==, 0);
    outb(0x40, 0x00);
    step_ns(ticks(20));
    g_assert_cmpint(isa_lines[0].level, ==, 1);
}

/* Many periods: as many ticks as time has room for, none lost to rounding. */
static void test_rate_without_drift(void)
{
    static const unsigned counts[] = { 2, 100, 1193, 4773, 65535, 0 };

    for (unsigned i = 0; i < ARRAY_SIZE(counts); i++) {
        uint64_t n = counts[i] ? counts[i] : 65536;
        uint64_t periods = n < 24 ? 0 : n < 1000 ? 20000 : 1000;

        restart();
        program(0, 2, counts[i]);
        step_ns(ticks((int64_t)(n * periods + 1)));
        if (periods) {
            g_assert_cmpuint(isa_lines[0].rises, >=, periods);
            g_assert_cmpuint(isa_lines[0].rises, <=, periods + 1);
        } else {
            /* Programmed faster than hosts can serve: bounded, but not silent. */
            step_ns(10 * MS);
            g_assert_cmpuint(isa_lines[0].rises, >, 100);
            g_assert_cmpuint(isa_lines[0].rises, <, 600);
        }
    }
}

static void test_mode3(void)
{
    restart();
    program(0, 3, 1000);
    step_ns(ticks(1));
    g_assert_cmpint(isa_lines[0].level, ==, 1);
    step_ns(ticks(505));
    g_assert_cmpint(isa_lines[0].level, ==, 0);
    step_ns(ticks(500));
    g_assert_cmpint(isa_lines[0].level, ==, 1);
    step_ns(ticks(1000 * 98));
    g_assert_cmpuint(isa_lines[0].rises, >=, 99);
    g_assert_cmpuint(isa_lines[0].rises, <=, 101);
    /* It counts down by two, twice a period. */
    program(0, 3, 10000);
    step_ns(ticks(101));
    g_assert_cmpuint(latch(0), <=, 10000 - 2 * 99);
    g_assert_cmpuint(latch(0), >=, 10000 - 2 * 102);
    g_assert_cmpuint(latch(0) & 1, ==, 0);
    step_ns(ticks(5000));
    g_assert_cmpuint(latch(0), <=, 10000 - 2 * 99);
    g_assert_cmpuint(latch(0), >=, 10000 - 2 * 103);
}

/* A new count in mode 2 starts with the next period. */
static void test_reload(void)
{
    restart();
    program(0, 2, 10000);
    step_ns(ticks(5000));
    outb(0x40, 0xe8);
    outb(0x40, 0x03); /* 1000 */
    g_assert_cmphex(status(0) & 0x40, ==, 0x40);
    step_ns(ticks(4000));
    g_assert_cmpuint(isa_lines[0].rises, ==, 1); /* OUT went high with the control word */
    g_assert_cmpuint(latch(0), <=, 1002); /* still of the old count */
    g_assert_cmpuint(latch(0), >=, 997);
    step_ns(ticks(1005));
    g_assert_cmphex(status(0) & 0x40, ==, 0);
    g_assert_cmpuint(isa_lines[0].rises, ==, 2);
    step_ns(ticks(10000));
    g_assert_cmpuint(isa_lines[0].rises, ==, 12);
}

static void test_modes45(void)
{
    restart();
    program(0, 4, 500);
    g_assert_cmpint(isa_lines[0].level, ==, 1);
    step_ns(ticks(520));
    g_assert_cmpuint(isa_lines[0].falls, ==, 1);
    g_assert_cmpint(isa_lines[0].level, ==, 1);
    step_ns(ticks(200000));
    g_assert_cmpuint(isa_lines[0].falls, ==, 1);

    /* Mode 5 on counter 2: nothing before the gate rises, then one clock of low. */
    outb(0x61, 0);
    program(2, 5, 1000);
    step_ns(ticks(3000));
    g_assert_true(out2());
    outb(0x61, 1);
    step_ns(ticks(900));
    g_assert_true(out2());
    g_assert_cmpuint(latch(2), <=, 101);
    step_ns(ticks(200));
    g_assert_true(out2());
}

/* Mode 1: a trigger makes OUT low for the count, and may be repeated. */
static void test_mode1(void)
{
    restart();
    outb(0x61, 0);
    program(2, 1, 1000);
    g_assert_true(out2());
    step_ns(ticks(2000));
    g_assert_true(out2());
    outb(0x61, 1);
    step_ns(ticks(900));
    g_assert_false(out2());
    outb(0x61, 0);
    outb(0x61, 1); /* retrigger */
    step_ns(ticks(900));
    g_assert_false(out2());
    step_ns(ticks(200));
    g_assert_true(out2());
}

/* Gate 2 stops the count in mode 0, as kernels use it to calibrate the TSC. */
static void test_gate(void)
{
    unsigned held;

    restart();
    outb(0x61, 1);
    program(2, 0, 50000);
    step_ns(ticks(10000));
    outb(0x61, 0);
    held = latch(2);
    g_assert_cmpuint(held, <=, 40001);
    g_assert_cmpuint(held, >=, 39998);
    step_ns(ticks(100000));
    g_assert_cmpuint(latch(2), ==, held);
    g_assert_false(out2());
    outb(0x61, 1);
    step_ns(ticks(39990));
    g_assert_false(out2());
    step_ns(ticks(20));
    g_assert_true(out2());
}

static void test_latches(void)
{
    unsigned a, b, lo;

    restart();
    program(0, 2, 0xff00);
    step_ns(ticks(100));
    /* A latched count stands still, a second latch command is ignored. */
    outb(0x43, 0x00);
    step_ns(ticks(1000));
    outb(0x43, 0x00);
    lo = inb(0x40);
    a = lo | (unsigned)inb(0x40) << 8;
    g_assert_cmpuint(a, >=, 0xff00 - 102);
    lo = inb(0x40);
    b = lo | (unsigned)inb(0x40) << 8;
    g_assert_cmpuint(b, <, a - 900);
    /* Read-back of status and count: status comes first. */
    outb(0x43, 0xc2);
    g_assert_cmphex(inb(0x40) & 0x3f, ==, 0x34);
    lo = inb(0x40);
    a = lo | (unsigned)inb(0x40) << 8;
    g_assert_cmpuint(a, <=, b);
    g_assert_cmpuint(a, >=, b - 5);
    /* Least significant byte only. */
    outb(0x43, 0x14);
    outb(0x40, 200);
    step_ns(ticks(51));
    outb(0x43, 0x00);
    a = inb(0x40);
    g_assert_cmpuint(a, <=, 151);
    g_assert_cmpuint(a, >=, 148);
    /* Most significant byte only. */
    outb(0x43, 0x24);
    outb(0x40, 0x80);
    step_ns(ticks(300));
    g_assert_cmphex(inb(0x40), ==, 0x7e);
}

static void test_bcd(void)
{
    restart();
    outb(0x43, 0x35);
    outb(0x40, 0x00);
    outb(0x40, 0x10); /* 1000 */
    step_ns(ticks(251));
    g_assert_cmphex(latch(0), >=, 0x0748);
    g_assert_cmphex(latch(0), <=, 0x0751);
    lines_clear();
    step_ns(ticks(100000));
    g_assert_cmpuint(isa_lines[0].rises, ==, 100);
    outb(0x43, 0x35);
    outb(0x40, 0);
    outb(0x40, 0); /* 10000 */
    step_ns(ticks(1));
    lines_clear();
    step_ns(ticks(100000));
    g_assert_cmpuint(isa_lines[0].rises, ==, 10);
}

static void test_port61(void)
{
    bool seen[2] = { false, false };

    restart();
    outb(0x61, 0xff);
    g_assert_cmphex(inb(0x61) & 0x0f, ==, 0x0f);
    for (unsigned i = 0; i < 40; i++) {
        seen[(inb(0x61) & 0x10) != 0] = true;
        step_ns(2000);
    }
    g_assert_true(seen[0] && seen[1]);
}

/* A tick that the host delivers late is made up for, after the one before it had time. */
static void test_late_ticks(void)
{
    unsigned before;

    restart();
    program(0, 2, 11932); /* 100 Hz */
    step_ns(1 * MS);
    before = isa_lines[0].rises;
    clock_virtual_set(now_ns() + 45 * MS); /* as if the loop had been away */
    step_ns(0);
    g_assert_cmpuint(isa_lines[0].rises, ==, before + 1);
    step_ns(3 * MS);
    g_assert_cmpuint(isa_lines[0].rises, >=, before + 3);
    step_ns(54 * MS); /* 103 ms in all */
    g_assert_cmpuint(isa_lines[0].rises, ==, before + 10);
}

static void test_state(void)
{
    restart();
    program(0, 2, 5000);
    program(2, 3, 777);
    outb(0x61, 3);
    outb(0x43, 0x00);
    inb(0x40);
    check_state(pit);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    pit = device_test_new("isa-pit");
    pit_set_irq_out(pit, isa_irq(pit, 0));
    g_test_add_func("/pit/mode0", test_mode0);
    g_test_add_func("/pit/mode1", test_mode1);
    g_test_add_func("/pit/mode2", test_rate_without_drift);
    g_test_add_func("/pit/mode3", test_mode3);
    g_test_add_func("/pit/modes45", test_modes45);
    g_test_add_func("/pit/reload", test_reload);
    g_test_add_func("/pit/gate", test_gate);
    g_test_add_func("/pit/latches", test_latches);
    g_test_add_func("/pit/bcd", test_bcd);
    g_test_add_func("/pit/port61", test_port61);
    g_test_add_func("/pit/late-ticks", test_late_ticks);
    g_test_add_func("/pit/state", test_state);
    return g_test_run();
}
