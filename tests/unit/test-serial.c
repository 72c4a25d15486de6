/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 16550A and the debug console. */
#include "device-test.h"

#define BASE 0x3f8
enum { RBR = BASE, THR = BASE, IER, IIR, LCR, MCR, LSR, MSR, SCR, FCR = IIR };
#define IRQ isa_lines[4]

static DeviceState *uart;

static void restart(uint8_t fcr)
{
    chr_room = SIZE_MAX;
    chr_writable();
    uart->type->reset(uart);
    g_string_truncate(chr_out, 0);
    outb(FCR, fcr);
    outb(LCR, 0x80);
    outb(RBR, 12); /* 9600 baud: 10 bits are 1.04 ms */
    outb(IER, 0);
    outb(LCR, 0x03);
    outb(MCR, 0x0b);
    inb(MSR);
    lines_clear();
}

static void test_registers(void)
{
    restart(0);
    g_assert_cmphex(inb(LSR), ==, 0x60);
    g_assert_cmphex(inb(IIR), ==, 0x01);
    g_assert_cmphex(inb(MSR), ==, 0xb0);
    outb(SCR, 0x5a);
    g_assert_cmphex(inb(SCR), ==, 0x5a);
    outb(IER, 0xff);
    g_assert_cmphex(inb(IER), ==, 0x0f);
    outb(MCR, 0xff);
    g_assert_cmphex(inb(MCR), ==, 0x1f);
    outb(MCR, 0x0b);
    outb(IER, 0);
    outb(LCR, 0x83);
    outb(RBR, 0x34);
    outb(IER, 0x12);
    g_assert_cmphex(inb(RBR), ==, 0x34);
    g_assert_cmphex(inb(IER), ==, 0x12);
    outb(LCR, 0x03);
    g_assert_cmphex(inb(IER), ==, 0x00);
    outb(FCR, 0x01);
    g_assert_cmphex(inb(IIR), ==, 0xc1);
    outb(FCR, 0x00);
    g_assert_cmphex(inb(IIR), ==, 0x01);
}

static void line_is(uint32_t baud, unsigned data, unsigned stop, ChrParity parity)
{
    g_assert_cmpuint(chr_line.baud, ==, baud);
    g_assert_cmpuint(chr_line.data_bits, ==, data);
    g_assert_cmpuint(chr_line.stop_bits, ==, stop);
    g_assert_cmpint(chr_line.parity, ==, parity);
}

static void test_settings(void)
{
    restart(0);
    line_is(9600, 8, 1, CHR_PARITY_NONE);
    g_assert_true(chr_line.dtr && chr_line.rts && !chr_line.brk);
    outb(LCR, 0x80);
    outb(RBR, 1);
    line_is(9600, 8, 1, CHR_PARITY_NONE); /* not before the divisor is whole */
    outb(IER, 0);
    outb(LCR, 0x1e);
    line_is(115200, 7, 2, CHR_PARITY_EVEN);
    outb(LCR, 0x08);
    line_is(115200, 5, 1, CHR_PARITY_ODD);
    outb(LCR, 0x2b);
    line_is(115200, 8, 1, CHR_PARITY_MARK);
    outb(LCR, 0x7b);
    line_is(115200, 8, 1, CHR_PARITY_SPACE);
    g_assert_true(chr_line.brk);
    outb(MCR, 0x01);
    g_assert_true(chr_line.dtr && !chr_line.rts);
    outb(MCR, 0x13);
    g_assert_true(!chr_line.dtr && !chr_line.rts && !chr_line.brk);
    outb(LCR, 0x80);
    outb(RBR, 0);
    outb(IER, 0);
    outb(LCR, 0x03);
    line_is(115200, 8, 1, CHR_PARITY_NONE); /* a divisor of 0 divides nothing */
}

static void test_transmit(void)
{
    restart(0);
    outb(THR, 'a');
    outb(THR, 'b');
    g_assert_cmpstr(chr_out->str, ==, "ab");
    g_assert_cmphex(inb(LSR), ==, 0x60);
    g_assert_cmpint(IRQ.level, ==, 0);
    /* Enabling the interrupt while THR is empty gives one; reading IIR ends it. */
    outb(IER, 0x02);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(inb(IIR), ==, 0x02);
    g_assert_cmpint(IRQ.level, ==, 0);
    g_assert_cmphex(inb(IIR), ==, 0x01);
    outb(THR, 'c');
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmpuint(IRQ.rises, ==, 2);
    /* Enabled already: no new one from writing IER again. */
    inb(IIR);
    outb(IER, 0x02);
    g_assert_cmpint(IRQ.level, ==, 0);
    outb(IER, 0x00);
    outb(IER, 0x02);
    g_assert_cmpint(IRQ.level, ==, 1);
}

/* The back end is full: THRE stays low, nothing is lost, the guest goes on when there is room. */
static void test_back_pressure(void)
{
    restart(0x01);
    outb(IER, 0x02);
    inb(IIR);
    chr_room = 3;
    for (char c = 'A'; c < 'A' + 3; c++) {
        outb(THR, (uint8_t)c);
        inb(IIR);
    }
    for (char c = 'D'; c < 'D' + 16; c++) {
        outb(THR, (uint8_t)c);
    }
    g_assert_cmphex(inb(LSR) & 0x60, ==, 0);
    g_assert_cmpint(IRQ.level, ==, 0);
    g_assert_cmpstr(chr_out->str, ==, "ABC");
    chr_room = 5;
    chr_writable();
    g_assert_cmphex(inb(LSR) & 0x60, ==, 0);
    chr_room = SIZE_MAX;
    chr_writable();
    g_assert_cmpstr(chr_out->str, ==, "ABCDEFGHIJKLMNOPQRS");
    g_assert_cmphex(inb(LSR) & 0x60, ==, 0x60);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(inb(IIR), ==, 0xc2);
    /* A reset in between loses nothing that was written. */
    chr_room = 0;
    outb(THR, 'x');
    uart->type->reset(uart);
    chr_room = SIZE_MAX;
    chr_writable();
    g_assert_cmpint(chr_out->str[chr_out->len - 1], ==, 'x');
}

static void test_receive_one(void)
{
    restart(0);
    outb(IER, 0x01);
    g_assert_cmpuint(chr_input("xyz"), ==, 1);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(inb(IIR), ==, 0x04);
    g_assert_cmphex(inb(LSR), ==, 0x61);
    g_assert_cmpuint(chr_input("yz"), ==, 0); /* back pressure, no overrun */
    chr_accepts = 0;
    g_assert_cmphex(inb(RBR), ==, 'x');
    g_assert_cmpuint(chr_accepts, ==, 1);
    g_assert_cmpint(IRQ.level, ==, 0);
    g_assert_cmphex(inb(LSR), ==, 0x60);
    g_assert_cmpuint(chr_input("yz"), ==, 1);
    g_assert_cmphex(inb(RBR), ==, 'y');
}

static void test_triggers(void)
{
    static const struct {
        uint8_t fcr;
        unsigned level;
    } t[] = { { 0x01, 1 }, { 0x41, 4 }, { 0x81, 8 }, { 0xc1, 14 } };

    for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
        restart(t[i].fcr);
        outb(IER, 0x01);
        for (unsigned n = 1; n <= 16; n++) {
            g_assert_cmpuint(chr_input("q"), ==, 1);
            g_assert_cmpint(IRQ.level, ==, n >= t[i].level);
        }
        g_assert_cmpuint(chr_input("q"), ==, 0);
        g_assert_cmphex(inb(IIR), ==, 0xc4);
        for (unsigned n = 16; n >= t[i].level; n--) {
            g_assert_cmpint(IRQ.level, ==, 1);
            g_assert_cmphex(inb(RBR), ==, 'q');
        }
        g_assert_cmpint(IRQ.level, ==, 0);
    }
}

/* Four character times without a character or a read. */
static void test_timeout(void)
{
    restart(0x81);
    outb(IER, 0x01);
    g_assert_cmpuint(chr_input("abc"), ==, 3);
    step_ns(4000000);
    g_assert_cmpint(IRQ.level, ==, 0);
    chr_input("d"); /* starts the time anew */
    step_ns(4000000);
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(200000);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(inb(IIR), ==, 0xcc);
    g_assert_cmphex(inb(RBR), ==, 'a'); /* a read ends it, and starts the time */
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(4200000);
    g_assert_cmphex(inb(IIR), ==, 0xcc);
    for (const char *p = "bcd"; *p; p++) {
        g_assert_cmphex(inb(RBR), ==, *p);
    }
    step_ns(10000000);
    g_assert_cmpint(IRQ.level, ==, 0);
    /* At 115200 baud twelve times sooner. */
    outb(LCR, 0x83);
    outb(RBR, 1);
    outb(LCR, 0x03);
    chr_input("e");
    step_ns(300000);
    g_assert_cmpint(IRQ.level, ==, 0);
    step_ns(60000);
    g_assert_cmpint(IRQ.level, ==, 1);
}

static void test_loopback(void)
{
    restart(0x01);
    outb(MCR, 0x1b);
    outb(THR, 'L');
    g_assert_cmpuint(chr_out->len, ==, 0);
    g_assert_cmphex(inb(LSR), ==, 0x61);
    g_assert_cmphex(inb(RBR), ==, 'L');
    g_assert_cmpuint(chr_input("z"), ==, 0);
    /* Modem outputs come back: RTS-CTS, DTR-DSR, OUT1-RI, OUT2-DCD. */
    inb(MSR);
    outb(MCR, 0x10);
    g_assert_cmphex(inb(MSR), ==, 0x0b);
    outb(MCR, 0x12);
    g_assert_cmphex(inb(MSR), ==, 0x11);
    outb(MCR, 0x11);
    g_assert_cmphex(inb(MSR), ==, 0x23);
    outb(MCR, 0x14);
    g_assert_cmphex(inb(MSR) & 0xf4, ==, 0x40);
    outb(MCR, 0x18);
    g_assert_cmphex(inb(MSR), ==, 0x8c); /* trailing edge of RI */
    chr_accepts = 0;
    outb(MCR, 0x0b);
    g_assert_cmpuint(chr_accepts, >=, 1);
    g_assert_cmpuint(chr_input("z"), ==, 1);
}

static void test_break_and_status(void)
{
    restart(0x01);
    outb(IER, 0x05);
    chr_input("a");
    chr_break();
    g_assert_cmphex(inb(LSR), ==, 0xe1); /* an error further down the FIFO */
    g_assert_cmphex(inb(RBR), ==, 'a');
    g_assert_cmphex(inb(IIR), ==, 0xc6);
    g_assert_cmphex(inb(LSR), ==, 0x71);
    g_assert_cmphex(inb(LSR), ==, 0x61);
    g_assert_cmphex(inb(IIR), ==, 0xc4);
    g_assert_cmphex(inb(RBR), ==, 0);
    g_assert_cmpint(IRQ.level, ==, 0);
    /* Clearing the FIFO. */
    chr_input("abc");
    outb(FCR, 0x03);
    g_assert_cmphex(inb(LSR), ==, 0x60);
    g_assert_cmpint(IRQ.level, ==, 0);
}

static void test_out2(void)
{
    restart(0);
    outb(MCR, 0x03);
    outb(IER, 0x02);
    g_assert_cmpint(IRQ.level, ==, 0);
    outb(MCR, 0x0b);
    g_assert_cmpint(IRQ.level, ==, 1);
}

static void test_modem_interrupt(void)
{
    restart(0);
    outb(IER, 0x08);
    outb(MCR, 0x1b);
    g_assert_cmpint(IRQ.level, ==, 0); /* the cable has the same levels */
    outb(MCR, 0x19);
    g_assert_cmpint(IRQ.level, ==, 1);
    g_assert_cmphex(inb(IIR), ==, 0x00);
    inb(MSR);
    g_assert_cmpint(IRQ.level, ==, 0);
}

static void test_state(void)
{
    restart(0xc1);
    outb(IER, 0x07);
    chr_input("hello");
    chr_room = 0;
    outb(THR, 'q');
    outb(SCR, 0x77);
    check_state(uart);
}

static void test_properties(void)
{
    static const struct {
        const char *name, *value, *message;
    } bad[] = {
        { "index", "4", "ISA serial ports is 4" },
        { "irq", "16", "irq=16" },
        { "iobase", "0x10000", "iobase=0x10000" },
        { "baudbase", "0", "baudbase=0" },
        { "iobase", "0x3f9", "are taken by isa-serial" },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        DeviceState *dev = device_new_named("isa-serial");
        Error *err = NULL;

        device_set_prop(dev, "index", "1", &error_abort);
        device_set_prop(dev, bad[i].name, bad[i].value, &error_abort);
        g_assert_false(device_realize(dev, NULL, &err));
        g_assert_nonnull(strstr(error_get_pretty(err), bad[i].message));
        error_free(err);
    }
}

/* COM2 without index: the next one; and the debug console. */
static void test_others(void)
{
    DeviceState *com2 = device_new_named("isa-serial"), *con;

    device_set_prop(com2, "index", "1", &error_abort);
    g_assert_true(device_realize(com2, NULL, &error_abort));
    outb(0x2f8 + 4, 0x08);
    outb(0x2f8 + 1, 0x02);
    g_assert_cmpint(isa_lines[3].level, ==, 1);
    outb(0x2f8, 'n'); /* no back end: dropped, and never waits */
    g_assert_cmphex(inb(0x2f8 + 5), ==, 0x60);
    device_unrealize(com2);

    con = device_new_named("isa-debugcon");
    device_set_prop_chardev(con, "chardev", test_chardev);
    g_assert_true(device_realize(con, NULL, &error_abort));
    g_string_truncate(chr_out, 0);
    chr_room = SIZE_MAX;
    g_assert_cmphex(inb(0xe9), ==, 0xe9);
    outb(0xe9, 'D');
    g_assert_cmpstr(chr_out->str, ==, "D");
    device_unrealize(con);
    g_assert_cmphex(inb(0xe9), ==, 0xff);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    uart = device_new_named("isa-serial");
    device_set_prop(uart, "chardev", "chr0", &error_abort);
    g_assert_true(device_realize(uart, NULL, &error_abort));
    g_test_add_func("/serial/registers", test_registers);
    g_test_add_func("/serial/settings", test_settings);
    g_test_add_func("/serial/transmit", test_transmit);
    g_test_add_func("/serial/back-pressure", test_back_pressure);
    g_test_add_func("/serial/receive", test_receive_one);
    g_test_add_func("/serial/triggers", test_triggers);
    g_test_add_func("/serial/timeout", test_timeout);
    g_test_add_func("/serial/loopback", test_loopback);
    g_test_add_func("/serial/break", test_break_and_status);
    g_test_add_func("/serial/out2", test_out2);
    g_test_add_func("/serial/modem-interrupt", test_modem_interrupt);
    g_test_add_func("/serial/state", test_state);
    g_test_add_func("/serial/properties", test_properties);
    g_test_add_func("/serial/others", test_others);
    return g_test_run();
}
