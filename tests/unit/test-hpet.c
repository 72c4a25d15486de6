/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HPET: counter, one-shot and periodic comparators, level and edge, legacy replacement, FSB. */
#include "device-test.h"
#include "hw/timer.h"

#define MS 1000000

enum { CAP = 0, CONFIG = 0x10, STATUS = 0x20, COUNTER = 0xf0 };
#define TN_CONFIG(n) (0x100u + 0x20 * (n))
#define TN_CMP(n)    (0x108u + 0x20 * (n))
#define TN_FSB(n)    (0x110u + 0x20 * (n))
enum { LEVEL = 2, ENABLE = 4, PERIODIC = 8, VAL_SET = 0x40, MODE32 = 0x100, FSB = 0x4000 };
#define ROUTE(n) ((n) << 9)
#define GSI(n)   test_lines[n]

static DeviceState *hpet;

static uint64_t rd(uint32_t reg)
{
    return address_space_load(&address_space_memory, HPET_ADDR + reg, 8);
}
static uint32_t rd4(uint32_t reg)
{
    return (uint32_t)address_space_load(&address_space_memory, HPET_ADDR + reg, 4);
}
static void wr(uint32_t reg, uint64_t v)
{
    address_space_store(&address_space_memory, HPET_ADDR + reg, v, 8);
}
static void wr4(uint32_t reg, uint32_t v)
{
    address_space_store(&address_space_memory, HPET_ADDR + reg, v, 4);
}

static unsigned n_msgs;
static uint64_t msg_addr;
static uint32_t msg_data;

static void record_msi(uint64_t addr, uint32_t data)
{
    n_msgs++;
    msg_addr = addr;
    msg_data = data;
}
static const IrqChipOps recorder = { .name = "recorder", .send_msi = record_msi };

static void restart(void)
{
    hpet->type->reset(hpet);
    step_ns(MS);
    lines_clear();
    n_msgs = 0;
}

static void test_counter(void)
{
    restart();
    g_assert_cmphex(rd(CAP), ==, 0x009896808086a201ull);
    g_assert_cmphex(rd4(CAP + 4), ==, 10000000);
    wr(COUNTER, 500);
    step_ns(MS);
    g_assert_cmpuint(rd(COUNTER), ==, 500);
    wr(CONFIG, 1);
    step_ns(MS);
    g_assert_cmpuint(rd(COUNTER), ==, 500 + 100000);
    wr(CONFIG, 0);
    step_ns(MS);
    g_assert_cmpuint(rd(COUNTER), ==, 500 + 100000);
    wr4(COUNTER + 4, 2);
    g_assert_cmphex(rd(COUNTER), ==, 0x200000000ull + 100500);
    wr4(COUNTER, 0xfffffff0);
    wr(CONFIG, 1);
    step_ns(1000);
    g_assert_cmphex(rd4(COUNTER), ==, 84);
    g_assert_cmphex(rd4(COUNTER + 4), ==, 3);
    /* Registers that are not there. */
    g_assert_cmphex(rd(0x180), ==, 0);
    wr(0x3f8, ~0ull);
    g_assert_cmphex(rd(0x3f8), ==, 0);
}

static void test_one_shot(void)
{
    restart();
    wr(TN_CONFIG(2), ENABLE | ROUTE(20));
    g_assert_cmphex(rd(TN_CONFIG(2)), ==, 0x00ff010400000000ull | 0x30 | ENABLE | ROUTE(20));
    wr(TN_CMP(2), 100000);
    wr(CONFIG, 1);
    step_ns(MS - 10);
    g_assert_cmpuint(GSI(20).rises, ==, 0);
    step_ns(10);
    g_assert_cmpuint(GSI(20).rises, ==, 1);
    g_assert_cmpint(GSI(20).level, ==, 0);
    step_ns(1000ll * MS);
    g_assert_cmpuint(GSI(20).rises, ==, 1);
    wr(TN_CMP(2), rd(COUNTER) - 1); /* behind: not for a very long time */
    step_ns(1000ll * MS);
    g_assert_cmpuint(GSI(20).rises, ==, 1);
    /* 32 bits: comes round. */
    wr(TN_CONFIG(2), ENABLE | MODE32 | ROUTE(20));
    wr(TN_CMP(2), (uint32_t)rd(COUNTER) - 1000);
    step_ns(42949ll * MS);
    g_assert_cmpuint(GSI(20).rises, ==, 1);
    step_ns(MS);
    g_assert_cmpuint(GSI(20).rises, ==, 2);
    step_ns(42950ll * MS);
    g_assert_cmpuint(GSI(20).rises, ==, 3);
}

/* Set up as Linux does it: accumulator first, then the period. */
static void periodic(unsigned n, uint32_t config, uint32_t first, uint32_t period)
{
    wr4(TN_CONFIG(n), config | PERIODIC | VAL_SET | MODE32 | ENABLE);
    wr4(TN_CMP(n), first);
    wr4(TN_CMP(n), period);
}

static void test_periodic(void)
{
    restart();
    wr(CONFIG, 1);
    periodic(0, ROUTE(16), rd4(COUNTER) + 100000, 100000);
    step_ns(1000ll * MS);
    g_assert_cmpuint(GSI(16).rises, ==, 1000);
    g_assert_cmphex(rd(TN_CONFIG(0)) & VAL_SET, ==, 0);
    /* Across the counter's wrap at 32 bits. */
    step_ns(43000ll * MS);
    g_assert_cmpuint(GSI(16).rises, ==, 44000);
    wr4(TN_CMP(0), 200000); /* another period, from the next match on */
    lines_clear();
    step_ns(100ll * MS);
    g_assert_cmpuint(GSI(16).rises, >=, 50);
    g_assert_cmpuint(GSI(16).rises, <=, 51);
    /* A period too short for any host. */
    periodic(0, ROUTE(16), rd4(COUNTER) + 10, 10);
    lines_clear();
    step_ns(10ll * MS);
    g_assert_cmpuint(GSI(16).rises, >, 100);
    g_assert_cmpuint(GSI(16).rises, <, 600);
}

static void test_late_ticks(void)
{
    restart();
    wr(CONFIG, 1);
    periodic(0, ROUTE(16), rd4(COUNTER) + 1000000, 1000000); /* 100 Hz */
    clock_virtual_set(now_ns() + 45ll * MS);
    step_ns(0);
    g_assert_cmpuint(GSI(16).rises, ==, 1);
    step_ns(3ll * MS);
    g_assert_cmpuint(GSI(16).rises, >=, 3);
    step_ns(53ll * MS);
    g_assert_cmpuint(GSI(16).rises, ==, 10);
}

static void test_level(void)
{
    restart();
    wr(CONFIG, 1);
    wr(TN_CONFIG(1), LEVEL | ENABLE | ROUTE(18));
    wr(TN_CMP(1), rd(COUNTER) + 1000);
    step_ns(10000);
    g_assert_cmpint(GSI(18).level, ==, 1);
    g_assert_cmphex(rd(STATUS), ==, 2);
    wr(STATUS, 1); /* another timer's bit */
    g_assert_cmpint(GSI(18).level, ==, 1);
    wr4(STATUS, 2);
    g_assert_cmpint(GSI(18).level, ==, 0);
    g_assert_cmphex(rd(STATUS), ==, 0);
    /* Without the enable bit the status is still seen, and interrupts when enabled. */
    wr(TN_CONFIG(1), LEVEL | ROUTE(18));
    wr(TN_CMP(1), rd(COUNTER) + 1000);
    step_ns(20000);
    g_assert_cmphex(rd(STATUS), ==, 2);
    g_assert_cmpint(GSI(18).level, ==, 0);
    wr(TN_CONFIG(1), LEVEL | ENABLE | ROUTE(18));
    g_assert_cmpint(GSI(18).level, ==, 1);
    wr(TN_CONFIG(1), LEVEL | ENABLE | ROUTE(19)); /* moves with the route */
    g_assert_cmpint(GSI(18).level, ==, 0);
    g_assert_cmpint(GSI(19).level, ==, 1);
    hpet->type->reset(hpet);
    g_assert_cmpint(GSI(19).level, ==, 0);
}

static void test_legacy(void)
{
    IrqLine pit = hpet_legacy_in(hpet, 0), clock = hpet_legacy_in(hpet, 1);

    restart();
    irq_raise(&pit);
    g_assert_cmpint(GSI(0).level, ==, 1);
    irq_raise(&clock);
    g_assert_cmpint(GSI(8).level, ==, 1);
    wr(CONFIG, 3);
    g_assert_cmpint(GSI(0).level, ==, 0);
    g_assert_cmpint(GSI(8).level, ==, 0);
    irq_lower(&pit);
    irq_raise(&pit);
    g_assert_cmpint(GSI(0).level, ==, 0);
    lines_clear();
    periodic(0, ROUTE(16), rd4(COUNTER) + 100000, 100000);
    periodic(1, ROUTE(16), rd4(COUNTER) + 200000, 200000);
    periodic(2, ROUTE(16), rd4(COUNTER) + 400000, 400000);
    step_ns(20 * MS);
    g_assert_cmpuint(GSI(0).rises, ==, 20);
    g_assert_cmpuint(GSI(8).rises, ==, 10);
    g_assert_cmpuint(GSI(16).rises, ==, 5);
    wr(CONFIG, 0);
    g_assert_cmpint(GSI(0).level, ==, 1); /* the PIT's line is back, as it is */
    irq_lower(&pit);
    irq_lower(&clock);
    g_assert_cmpint(GSI(8).level, ==, 0);
}

static void test_state(void)
{
    restart();
    wr(CONFIG, 1);
    periodic(0, ROUTE(16), rd4(COUNTER) + 100000, 100000);
    wr(TN_CONFIG(1), LEVEL | ENABLE | ROUTE(18));
    wr(TN_CMP(1), rd(COUNTER) + 1000);
    step_ns(3 * MS + 333);
    check_state(hpet);
    lines_clear();
    step_ns(10 * MS);
    g_assert_cmpuint(GSI(16).rises, ==, 10);
}

static void test_fsb(void)
{
    IrqLine gsi[24];

    restart();
    wr(TN_CONFIG(0), FSB); /* not offered */
    g_assert_cmphex(rd(TN_CONFIG(0)) & (FSB | 0x8000), ==, 0);
    device_unrealize(hpet);
    hpet = device_new_named("hpet");
    device_set_prop(hpet, "msi", "on", &error_abort);
    g_assert_true(device_realize(hpet, NULL, &error_abort));
    for (unsigned i = 0; i < 24; i++) {
        gsi[i] = test_line(i);
    }
    hpet_set_outputs(hpet, gsi);
    g_assert_cmphex(rd(TN_CONFIG(0)) & 0x8000, ==, 0x8000);
    wr(TN_FSB(0), 0xfee01000ull << 32 | 0x55);
    wr(CONFIG, 1);
    wr(TN_CONFIG(0), FSB | ENABLE);
    wr(TN_CMP(0), rd(COUNTER) + 1000);
    step_ns(20000);
    g_assert_cmpuint(n_msgs, ==, 1);
    g_assert_cmphex(msg_addr, ==, 0xfee01000);
    g_assert_cmphex(msg_data, ==, 0x55);
}

int main(int argc, char **argv)
{
    IrqLine gsi[24];

    device_test_init(&argc, &argv);
    irqchip = &recorder;
    hpet = device_test_new("hpet");
    for (unsigned i = 0; i < 24; i++) {
        gsi[i] = test_line(i);
    }
    hpet_set_outputs(hpet, gsi);
    g_test_add_func("/hpet/counter", test_counter);
    g_test_add_func("/hpet/one-shot", test_one_shot);
    g_test_add_func("/hpet/periodic", test_periodic);
    g_test_add_func("/hpet/late-ticks", test_late_ticks);
    g_test_add_func("/hpet/level", test_level);
    g_test_add_func("/hpet/legacy", test_legacy);
    g_test_add_func("/hpet/state", test_state);
    g_test_add_func("/hpet/fsb", test_fsb);
    return g_test_run();
}
