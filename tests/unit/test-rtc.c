/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MC146818A: time, formats, setting, alarm, update and periodic interrupts, CMOS memory. */
#include <time.h>
#include "device-test.h"
#include "hw/timer.h"
#include "hw/timer/rtc-date.h"

#define SEC NANOSECONDS_PER_SECOND
#define IRQ isa_lines[8]

static DeviceState *rtc;

static void put(uint8_t reg, uint8_t v)
{
    outb(0x70, reg);
    outb(0x71, v);
}

static uint8_t get(uint8_t reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

/* Stops the clock, sets it and lets it go, at the start of a second. */
static void set_time(uint8_t b, unsigned cent, unsigned y, unsigned mo, unsigned d, unsigned h,
                     unsigned mi, unsigned s)
{
    rtc->type->reset(rtc);
    put(0x0a, 0x66); /* a second begins half a second after the divider's reset ends */
    put(0x0a, 0x26);
    step_ns(SEC / 2);
    put(0x0b, 0x80 | b);
    put(0x32, (uint8_t)cent);
    put(9, (uint8_t)y);
    put(8, (uint8_t)mo);
    put(7, (uint8_t)d);
    put(4, (uint8_t)h);
    put(2, (uint8_t)mi);
    put(0, (uint8_t)s);
    put(0x0b, b);
    get(0x0c);
    lines_clear();
}

static void expect(unsigned cent, unsigned y, unsigned mo, unsigned d, unsigned h, unsigned mi,
                   unsigned s)
{
    g_assert_cmphex(get(0x32), ==, cent);
    g_assert_cmphex(get(9), ==, y);
    g_assert_cmphex(get(8), ==, mo);
    g_assert_cmphex(get(7), ==, d);
    g_assert_cmphex(get(4), ==, h);
    g_assert_cmphex(get(2), ==, mi);
    g_assert_cmphex(get(0), ==, s);
}

static void test_now(void)
{
    time_t t = time(NULL);
    struct tm tm;
    unsigned y;

    gmtime_r(&t, &tm);
    y = get(9);
    g_assert_cmphex(get(0x0a), ==, 0x26);
    g_assert_cmphex(get(0x0b), ==, 0x02);
    g_assert_cmphex(get(0x0d), ==, 0x80);
    g_assert_cmpuint((y >> 4) * 10 + (y & 15), ==, (unsigned)tm.tm_year % 100);
}

/* Against the C library, forwards and back; and months and days that do not exist. */
static void test_dates(void)
{
    for (int64_t t = -62135596800; t < 253402300800; t += 86400 * 11 + 12345) {
        time_t tt = (time_t)t;
        RtcDate d = rtc_date_from_seconds(t);
        struct tm tm;

        gmtime_r(&tt, &tm);
        g_assert_cmpint(d.year, ==, tm.tm_year + 1900);
        g_assert_cmpuint(d.month, ==, (unsigned)tm.tm_mon + 1);
        g_assert_cmpuint(d.day, ==, (unsigned)tm.tm_mday);
        g_assert_cmpuint(d.hour * 3600 + d.minute * 60 + d.second, ==,
                         (unsigned)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec));
        g_assert_cmpuint(d.weekday, ==, (unsigned)tm.tm_wday);
        g_assert_cmpint(rtc_date_to_seconds(&d), ==, t);
    }
    for (unsigned month = 0; month < 100; month++) {
        for (unsigned day = 0; day < 166; day += 5) {
            RtcDate d = { .year = 2023, .month = month, .day = day, .hour = 77, .minute = 99,
                          .second = 165 };
            struct tm tm = { .tm_year = 123, .tm_mon = (int)month - 1, .tm_mday = (int)day,
                             .tm_hour = 77, .tm_min = 99, .tm_sec = 165 };

            g_assert_cmpint(rtc_date_to_seconds(&d), ==, (int64_t)timegm(&tm));
        }
    }
}

static void test_formats(void)
{
    set_time(0x02, 0x20, 0x23, 0x12, 0x31, 0x23, 0x59, 0x58);
    step_ns(SEC);
    expect(0x20, 0x23, 0x12, 0x31, 0x23, 0x59, 0x59);
    step_ns(SEC);
    expect(0x20, 0x24, 0x01, 0x01, 0x00, 0x00, 0x00);
    /* Binary. */
    set_time(0x06, 19, 99, 12, 31, 23, 59, 59);
    step_ns(SEC);
    expect(20, 0, 1, 1, 0, 0, 0);
    /* 12 hours, BCD: 11 PM, midnight is 12 AM, noon 12 PM. */
    set_time(0x00, 0x20, 0x24, 0x02, 0x28, 0x91, 0x59, 0x59);
    g_assert_cmphex(get(4), ==, 0x91);
    step_ns(SEC);
    expect(0x20, 0x24, 0x02, 0x29, 0x12, 0, 0); /* a leap year */
    step_ns(12 * 3600 * SEC);
    g_assert_cmphex(get(4), ==, 0x92);
    step_ns(3600 * SEC);
    g_assert_cmphex(get(4), ==, 0x81);
    /* The format may change while it runs. */
    put(0x0b, 0x06);
    g_assert_cmphex(get(4), ==, 13);
    put(0x0b, 0x02);
    g_assert_cmphex(get(4), ==, 0x13);
}

static void test_set(void)
{
    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    /* SET holds the time. */
    put(0x0b, 0x82);
    step_ns(5 * SEC);
    g_assert_cmphex(get(0), ==, 0x30);
    put(0, 0x45);
    put(0x0b, 0x02);
    step_ns(SEC);
    g_assert_cmphex(get(0), ==, 0x46);
    /* One register at a time while it runs. */
    put(4, 0x22);
    put(7, 0x01);
    expect(0x20, 0x10, 0x06, 0x01, 0x22, 0x20, 0x46);
    /* The day of the week counts by itself. */
    put(6, 0x07);
    g_assert_cmphex(get(6), ==, 0x07);
    step_ns(2 * 3600 * SEC);
    g_assert_cmphex(get(6), ==, 0x01);
    g_assert_cmphex(get(7), ==, 0x02);
}

static void test_uip(void)
{
    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    g_assert_cmphex(get(0x0a), ==, 0x26);
    step_ns(SEC - 300000);
    g_assert_cmphex(get(0x0a), ==, 0x26);
    step_ns(100000);
    g_assert_cmphex(get(0x0a), ==, 0xa6);
    g_assert_cmphex(get(0), ==, 0x30);
    step_ns(200000);
    g_assert_cmphex(get(0x0a), ==, 0x26);
    g_assert_cmphex(get(0), ==, 0x31);
}

static void test_update_interrupt(void)
{
    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    put(0x0b, 0x12);
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(SEC - 1000);
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(2000);
    g_assert_cmpint(IRQ.level, ==, 1);
    step_ns(3 * SEC); /* not read: stays */
    g_assert_cmpuint(IRQ.rises, ==, 1);
    g_assert_cmphex(get(0x0c) & 0x90, ==, 0x90);
    g_assert_cmpint(IRQ.level, ==, 0);
    g_assert_cmphex(get(0x0c) & 0x90, ==, 0);
    for (unsigned i = 0; i < 10; i++) {
        step_ns(SEC);
        g_assert_cmpint(IRQ.level, ==, 1);
        get(0x0c);
    }
    /* The flag comes without the interrupt, too. */
    put(0x0b, 0x02);
    get(0x0c);
    step_ns(SEC);
    g_assert_cmpint(IRQ.level, ==, 0);
    g_assert_cmphex(get(0x0c) & 0x90, ==, 0x10);
    /* SET clears UIE. */
    put(0x0b, 0x92);
    g_assert_cmphex(get(0x0b), ==, 0x82);
    put(0x0b, 0x02);
}

static unsigned alarms_in(int64_t seconds)
{
    unsigned n = 0;

    for (int64_t i = 0; i < seconds; i++) {
        step_ns(SEC);
        if (IRQ.level) {
            n += (get(0x0c) & 0x20) != 0;
        }
    }
    return n;
}

static void test_alarm(void)
{
    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    put(1, 0x40);
    put(3, 0x20);
    put(5, 0x10);
    put(0x0b, 0x22);
    step_ns(9 * SEC + SEC / 2);
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(SEC);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(get(0x0c) & 0xa0, ==, 0xa0);
    g_assert_cmpuint(alarms_in(3600), ==, 0);
    step_ns(23 * 3600 * SEC); /* the next day, same time: once */
    g_assert_cmpint(IRQ.level, ==, 1);
    get(0x0c);
    put(5, 0xff); /* don't care: every hour */
    g_assert_cmpuint(alarms_in(2 * 3600), ==, 2);
    put(3, 0xc0); /* every minute */
    g_assert_cmpuint(alarms_in(600), ==, 10);
    put(1, 0xc5); /* every second */
    g_assert_cmpuint(alarms_in(20), ==, 20);
    put(1, 0x99); /* never */
    g_assert_cmpuint(alarms_in(200), ==, 0);
    /* 12-hour format: 1 PM is not 1 AM. */
    set_time(0x00, 0x20, 0x10, 0x06, 0x15, 0x12, 0x59, 0x58); /* 12:59:58 AM */
    put(1, 0x00);
    put(3, 0x00);
    put(5, 0x81);
    put(0x0b, 0x20);
    g_assert_cmpuint(alarms_in(5), ==, 0);
    put(5, 0x02);
    g_assert_cmpuint(alarms_in(3600), ==, 1);
}

static void test_periodic(void)
{
    unsigned n = 0;

    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    put(0x0b, 0x42);
    get(0x0c);
    lines_clear();
    /* 1024 Hz: exactly so many in a second, whatever the steps. */
    for (unsigned i = 0; i < 10000; i++) {
        step_ns(SEC / 10000);
        if (IRQ.level) {
            n++;
            g_assert_cmphex(get(0x0c) & 0xc0, ==, 0xc0);
        }
    }
    g_assert_cmpuint(n, >=, 1023);
    g_assert_cmpuint(n, <=, 1025);
    put(0x0a, 0x2f); /* 2 Hz */
    get(0x0c);
    lines_clear();
    step_ns(2 * SEC); /* not read: one */
    g_assert_cmpuint(IRQ.rises, ==, 1);
    get(0x0c);
    put(0x0a, 0x21); /* 256 Hz */
    get(0x0c);
    step_ns(SEC / 256);
    g_assert_cmpint(IRQ.level, ==, 1);
    put(0x0a, 0x20); /* none */
    get(0x0c);
    step_ns(SEC);
    g_assert_cmpint(IRQ.level, ==, 0);
}

static void test_memory(void)
{
    for (unsigned i = 0x0e; i < 0x80; i++) {
        if (i != 0x32) {
            put((uint8_t)i, (uint8_t)(i * 3));
        }
    }
    for (unsigned i = 0; i < 0x80; i++) {
        outb(0x72, (uint8_t)i);
        outb(0x73, (uint8_t)(i * 5));
    }
    rtc->type->reset(rtc);
    for (unsigned i = 0x0e; i < 0x80; i++) {
        if (i != 0x32) {
            g_assert_cmphex(get((uint8_t)(0x80 | i)), ==, (uint8_t)(i * 3)); /* NMI bit set */
        }
    }
    g_assert_cmphex(rtc_get_memory(rtc, 0x81), ==, 5);
    rtc_set_memory(rtc, 0x34, 0x77);
    g_assert_cmphex(get(0x34), ==, 0x77);
    rtc_set_memory(rtc, 0x0b, 0xff); /* not memory */
    g_assert_cmphex(get(0x0b), !=, 0xff);
    g_assert_cmphex(inb(0x70), ==, 0xff);
}

static void test_state(void)
{
    set_time(0x02, 0x20, 0x10, 0x06, 0x15, 0x10, 0x20, 0x30);
    put(0x0b, 0x72);
    step_ns(SEC);
    check_state(rtc);
    g_assert_cmphex(get(0), ==, 0x31);
}

/* A second one: ticks the guest was late for come later instead of never. */
static void test_slew(void)
{
    RtcConfig cfg = { .clock = CLOCK_TYPE_VIRTUAL, .driftfix_slew = true };
    unsigned n = 0;

    device_unrealize(rtc);
    rtc = device_new_named("mc146818rtc");
    rtc_configure(rtc, &cfg);
    rtc_set_irq_out(rtc, isa_irq(NULL, 8));
    g_assert_true(device_realize(rtc, NULL, &error_abort));
    put(0x0a, 0x2c); /* 16 Hz */
    put(0x0b, 0x42);
    get(0x0c);
    step_ns(SEC); /* busy for a second */
    for (unsigned i = 0; i < 1000; i++) {
        if (IRQ.level) {
            n++;
            get(0x0c);
        }
        step_ns(SEC / 1000);
    }
    g_assert_cmpuint(n, >=, 31);
    g_assert_cmpuint(n, <=, 33);
    check_state(rtc);
}

/* A date, on the virtual clock: exactly that date whatever the host's clock says. */
static void test_dated(void)
{
    RtcConfig cfg = { .clock = CLOCK_TYPE_VIRTUAL, .dated = true, .date_s = 1577836800 };

    device_unrealize(rtc);
    rtc = device_new_named("mc146818rtc");
    rtc_configure(rtc, &cfg);
    g_assert_true(device_realize(rtc, NULL, &error_abort));
    put(0x0b, 0x06); /* binary, 24 hours */
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(get(0), ==, i);
        g_assert_cmphex(get(2), ==, 0);
        g_assert_cmphex(get(4), ==, 0);
        g_assert_cmphex(get(7), ==, 1);
        g_assert_cmphex(get(8), ==, 1);
        g_assert_cmphex(get(9), ==, 20);
        step_ns(SEC);
    }
}

/* Further from the clock's time than 64 bits of nanoseconds: it goes on from there all the same. */
static void test_far(void)
{
    RtcConfig cfg = { .clock = CLOCK_TYPE_VIRTUAL, .dated = true, .date_s = 1577836800 };
    uint8_t second;

    device_unrealize(rtc);
    rtc = device_new_named("mc146818rtc");
    rtc_configure(rtc, &cfg);
    rtc_set_irq_out(rtc, isa_irq(NULL, 8));
    g_assert_true(device_realize(rtc, NULL, &error_abort));
    set_time(0x06, 16, 0, 1, 1, 0, 0, 0); /* binary; the furthest is in 1684 */
    g_assert_cmpuint(get(0x32), ==, 16);
    second = get(0);
    step_ns(SEC);
    g_assert_cmphex(get(0), ==, second + 1);
    put(0x0b, 0x16); /* update-ended interrupts */
    get(0x0c);
    g_assert_false(IRQ.level);
    step_ns(SEC);
    g_assert_true(IRQ.level);
    check_state(rtc);
}

int main(int argc, char **argv)
{
    RtcConfig cfg = { .clock = CLOCK_TYPE_VIRTUAL };

    device_test_init(&argc, &argv);
    rtc = device_new_named("mc146818rtc");
    rtc_configure(rtc, &cfg);
    g_assert_true(device_realize(rtc, NULL, &error_abort));
    g_test_add_func("/rtc/now", test_now);
    g_test_add_func("/rtc/dates", test_dates);
    g_test_add_func("/rtc/formats", test_formats);
    g_test_add_func("/rtc/set", test_set);
    g_test_add_func("/rtc/uip", test_uip);
    g_test_add_func("/rtc/update-interrupt", test_update_interrupt);
    g_test_add_func("/rtc/alarm", test_alarm);
    g_test_add_func("/rtc/periodic", test_periodic);
    g_test_add_func("/rtc/memory", test_memory);
    g_test_add_func("/rtc/state", test_state);
    g_test_add_func("/rtc/slew", test_slew);
    g_test_add_func("/rtc/dated", test_dated);
    g_test_add_func("/rtc/far", test_far);
    return g_test_run();
}
