/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keyboard controller, keyboard, mouse, port 92h. */
#include "device-test.h"
#include "hw/ps2.h"

#define IRQ1  isa_lines[1]
#define IRQ12 isa_lines[12]
#define A20   test_lines[0]

static DeviceState *kbc, *port92;

static void restart(void)
{
    port92->type->reset(port92);
    kbc->type->reset(kbc);
    resets_requested = 0;
    lines_clear();
}

static bool obf(void)
{
    return inb(0x64) & 1;
}

static uint8_t read_byte(void)
{
    g_assert_true(obf());
    return inb(0x60);
}

static void expect(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        g_assert_cmphex(read_byte(), ==, (uint8_t)bytes[i]);
    }
    g_assert_false(obf());
}
#define EXPECT(s) expect(s, sizeof(s) - 1)

static void command_byte(uint8_t v)
{
    outb(0x64, 0x60);
    outb(0x60, v);
}

static void to_mouse(uint8_t v)
{
    outb(0x64, 0xd4);
    outb(0x60, v);
}

static void test_controller(void)
{
    restart();
    g_assert_cmphex(inb(0x64), ==, 0x10);
    outb(0x64, 0xaa);
    g_assert_cmphex(inb(0x64), ==, 0x1d);
    EXPECT("\x55");
    outb(0x64, 0xab);
    EXPECT("\0");
    outb(0x64, 0xa9);
    EXPECT("\0");
    outb(0x64, 0x20);
    EXPECT("\x47");
    command_byte(0xff);
    outb(0x64, 0x20);
    EXPECT("\x77");
    command_byte(0x40);
    outb(0x64, 0xad);
    outb(0x64, 0xa7);
    outb(0x64, 0x20);
    EXPECT("\x70");
    outb(0x64, 0xae);
    outb(0x64, 0xa8);
    outb(0x64, 0x20);
    EXPECT("\x40");
    outb(0x64, 0x65); /* other RAM */
    outb(0x60, 0x99);
    outb(0x64, 0x25);
    EXPECT("\x99");
    outb(0x64, 0xc0);
    EXPECT("\x80");
    outb(0x64, 0xa4);
    EXPECT("\xf1");
    outb(0x64, 0x12); /* no such command */
    g_assert_false(obf());
    outb(0x64, 0xd2); /* loop back as the keyboard */
    outb(0x60, 0x5a);
    g_assert_cmphex(inb(0x64) & 0x21, ==, 0x01);
    EXPECT("\x5a");
    outb(0x64, 0xd3); /* as the mouse */
    outb(0x60, 0xa5);
    g_assert_cmphex(inb(0x64) & 0x21, ==, 0x21);
    EXPECT("\xa5");
}

static void test_interrupts(void)
{
    restart();
    outb(0x60, 0xf2); /* identify: three bytes, an edge for each */
    g_assert_cmpint(IRQ1.level, ==, 1);
    EXPECT("\xfa\xab\x41"); /* translated */
    g_assert_cmpuint(IRQ1.rises, ==, 3);
    g_assert_cmpuint(IRQ1.falls, ==, 3);
    g_assert_cmpuint(IRQ12.rises, ==, 0);
    to_mouse(0xf2);
    g_assert_cmpint(IRQ12.level, ==, 1);
    EXPECT("\xfa\0");
    g_assert_cmpuint(IRQ12.rises, ==, 2);
    command_byte(0x00);
    outb(0x60, 0xee);
    g_assert_cmpint(IRQ1.level, ==, 0);
    command_byte(0x01); /* enabled while a byte waits */
    g_assert_cmpint(IRQ1.level, ==, 1);
    EXPECT("\xee");
}

static void test_reset_and_a20(void)
{
    restart();
    g_assert_cmpint(A20.level, ==, 1);
    outb(0x64, 0xdd);
    g_assert_cmpint(A20.level, ==, 0);
    outb(0x64, 0xd0);
    EXPECT("\x01");
    outb(0x64, 0xdf);
    g_assert_cmpint(A20.level, ==, 1);
    outb(0x64, 0xd1);
    outb(0x60, 0xdd);
    g_assert_cmpint(A20.level, ==, 0);
    outb(0x64, 0xd1);
    outb(0x60, 0xdf);
    g_assert_cmpint(A20.level, ==, 1);
    g_assert_cmpuint(resets_requested, ==, 0);
    outb(0x64, 0xff); /* pulses nothing */
    g_assert_cmpuint(resets_requested, ==, 0);
    outb(0x64, 0xfe);
    g_assert_cmpuint(resets_requested, ==, 1);
    outb(0x64, 0xd1);
    outb(0x60, 0x02);
    g_assert_cmpuint(resets_requested, ==, 2);

    restart();
    outb(0x92, 0x02);
    g_assert_cmphex(inb(0x92), ==, 0x02);
    outb(0x92, 0x00);
    g_assert_cmpint(A20.level, ==, 0);
    outb(0x92, 0x02);
    g_assert_cmpint(A20.level, ==, 1);
    outb(0x92, 0x03);
    g_assert_cmpuint(resets_requested, ==, 1);
    outb(0x92, 0x03); /* no edge */
    g_assert_cmpuint(resets_requested, ==, 1);
    g_assert_true(port92->type->vmstate != NULL);
    check_state(port92);
    kbc->type->reset(kbc);
    g_assert_cmpint(A20.level, ==, 1);
}

static void test_scan_set_1(void)
{
    restart();
    g_assert_true(ps2_keyboard_event(0x1e, true)); /* A */
    g_assert_true(ps2_keyboard_event(0x1e, false));
    EXPECT("\x1e\x9e");
    ps2_keyboard_event(0xe048, true); /* up */
    ps2_keyboard_event(0xe048, false);
    EXPECT("\xe0\x48\xe0\xc8");
    ps2_keyboard_event(0xe11d, true); /* pause */
    g_assert_true(ps2_keyboard_event(0xe11d, false));
    EXPECT("\xe1\x1d\x45\xe1\x9d\xc5");
    ps2_keyboard_event(0xe037, true); /* print screen */
    ps2_keyboard_event(0xe037, false);
    EXPECT("\xe0\x2a\xe0\x37\xe0\xb7\xe0\xaa");
    ps2_keyboard_event(0x38, true); /* alt: SysRq */
    ps2_keyboard_event(0xe037, true);
    ps2_keyboard_event(0xe037, false);
    ps2_keyboard_event(0x38, false);
    EXPECT("\x38\x54\xd4\xb8");
    g_assert_false(ps2_keyboard_event(0x7f00, true));
    g_assert_false(ps2_keyboard_event(0, true));
    g_assert_false(ps2_keyboard_event(0xe080, true));
    /* Every plain key through set 2 and the controller's table comes back as itself. */
    for (unsigned key = 1; key <= 0x58; key++) {
        if (key == 0x55) {
            continue;
        }
        g_assert_true(ps2_keyboard_event(key, true));
        g_assert_cmphex(read_byte(), ==, key);
        g_assert_true(ps2_keyboard_event(key, false));
        g_assert_cmphex(read_byte(), ==, key | 0x80);
    }
}

static void test_scan_set_2(void)
{
    restart();
    command_byte(0x03);
    ps2_keyboard_event(0x1e, true);
    ps2_keyboard_event(0x1e, false);
    EXPECT("\x1c\xf0\x1c");
    ps2_keyboard_event(0xe048, true);
    ps2_keyboard_event(0xe048, false);
    EXPECT("\xe0\x75\xe0\xf0\x75");
    ps2_keyboard_event(0x41, true); /* F7 */
    EXPECT("\x83");
    ps2_keyboard_event(0xe11d, true);
    EXPECT("\xe1\x14\x77\xe1\xf0\x14\xf0\x77");
    outb(0x60, 0xf0); /* which set? */
    outb(0x60, 0x00);
    EXPECT("\xfa\xfa\x02");
    outb(0x60, 0xf0);
    outb(0x60, 0x01);
    EXPECT("\xfa\xfa");
    ps2_keyboard_event(0x1e, false);
    EXPECT("\x9e");
    outb(0x60, 0xf0);
    outb(0x60, 0x04); /* there is no set 4 */
    EXPECT("\xfa\xfe");
}

static void test_scan_set_3(void)
{
    restart();
    command_byte(0x03);
    outb(0x60, 0xf0);
    outb(0x60, 0x03);
    EXPECT("\xfa\xfa");
    ps2_keyboard_event(0x1e, true);
    ps2_keyboard_event(0x1e, false); /* no break code by default */
    EXPECT("\x1c");
    ps2_keyboard_event(0x2a, true);
    ps2_keyboard_event(0x2a, false); /* shift has one */
    EXPECT("\x12\xf0\x12");
    outb(0x60, 0xf8); /* all make/break */
    EXPECT("\xfa");
    ps2_keyboard_event(0x1e, false);
    EXPECT("\xf0\x1c");
    outb(0x60, 0xfd); /* A: make only */
    outb(0x60, 0x1c);
    outb(0x60, 0xf4);
    EXPECT("\xfa\xfa\xfa");
    ps2_keyboard_event(0x1e, false);
    g_assert_false(obf());
    ps2_keyboard_event(0xe053, true);
    EXPECT("\x64");
}

static void test_keyboard_commands(void)
{
    restart();
    outb(0x60, 0xed);
    EXPECT("\xfa");
    outb(0x60, 0x05);
    EXPECT("\xfa");
    g_assert_cmphex(ps2_keyboard_leds(), ==, 5);
    outb(0x60, 0xf3);
    outb(0x60, 0x20);
    EXPECT("\xfa\xfa");
    outb(0x60, 0xee);
    EXPECT("\xee");
    outb(0x60, 0xfe); /* resend */
    EXPECT("\xee");
    outb(0x60, 0xef); /* no such command */
    EXPECT("\xfe");
    outb(0x60, 0xed); /* a command instead of the argument */
    outb(0x60, 0xf4);
    EXPECT("\xfa\xfa");
    g_assert_cmphex(ps2_keyboard_leds(), ==, 5);
    outb(0x60, 0xf5); /* stop scanning */
    EXPECT("\xfa");
    g_assert_false(ps2_keyboard_event(0x1e, true));
    g_assert_false(obf());
    outb(0x60, 0xff);
    EXPECT("\xfa\xaa");
    g_assert_cmphex(ps2_keyboard_leds(), ==, 0);
    g_assert_true(ps2_keyboard_event(0x1e, true));
    EXPECT("\x1e");
}

/* The queue has 16 bytes; what does not fit is lost, and said so. */
static void test_overrun(void)
{
    unsigned taken = 0;

    restart();
    command_byte(0x03);
    for (unsigned i = 0; i < 30; i++) {
        taken += ps2_keyboard_event(0x1e, true);
    }
    g_assert_cmpuint(taken, ==, 17); /* one of them in the controller */
    for (unsigned i = 0; i < 17; i++) {
        g_assert_cmphex(read_byte(), ==, 0x1c);
    }
    EXPECT("\0");
    ps2_keyboard_event(0x1e, true);
    EXPECT("\x1c");
    /* A command's answer does not wait for the keys. */
    outb(0x64, 0xad);
    for (unsigned i = 0; i < 5; i++) {
        ps2_keyboard_event(0x1e, true);
    }
    g_assert_false(obf());
    outb(0x60, 0xee);
    g_assert_cmphex(read_byte(), ==, 0xee);
    EXPECT("\x1c\x1c\x1c\x1c\x1c");
}

static void rate(uint8_t r)
{
    to_mouse(0xf3);
    EXPECT("\xfa");
    to_mouse(r);
    EXPECT("\xfa");
}

static void test_mouse(void)
{
    restart();
    to_mouse(0xff);
    EXPECT("\xfa\xaa\0");
    g_assert_false(ps2_mouse_event(1, 1, 0, 0)); /* not reporting */
    to_mouse(0xf4);
    EXPECT("\xfa");
    g_assert_true(ps2_mouse_event(5, 3, 1, PS2_BUTTON_LEFT));
    g_assert_cmphex(inb(0x64) & 0x21, ==, 0x21);
    EXPECT("\x29\x05\xfd");
    ps2_mouse_event(-1, -2, 0, 0);
    EXPECT("\x18\xff\x02");
    ps2_mouse_event(0, 0, 0, 0); /* nothing new */
    g_assert_false(obf());
    ps2_mouse_event(600, 0, 0, 0); /* more than one packet holds */
    EXPECT("\x08\xff\0\x08\xff\0\x08\x5a\0");
    rate(200);
    rate(100);
    rate(80);
    to_mouse(0xf2);
    EXPECT("\xfa\x03");
    ps2_mouse_event(0, 0, -1, PS2_BUTTON_MIDDLE);
    EXPECT("\x0c\0\0\xff");
    rate(200);
    rate(200);
    rate(80);
    to_mouse(0xf2);
    EXPECT("\xfa\x04");
    ps2_mouse_event(0, 0, 1, PS2_BUTTON_SIDE | PS2_BUTTON_EXTRA);
    EXPECT("\x08\0\0\x31");
    to_mouse(0xe8);
    to_mouse(3);
    EXPECT("\xfa\xfa");
    to_mouse(0xe7);
    EXPECT("\xfa");
    to_mouse(0xe9);
    EXPECT("\xfa\x30\x03\x50");
    ps2_mouse_event(4, 0, 0, 0);
    EXPECT("\x08\x06\0\0"); /* 2:1 scaling */
    to_mouse(0xf0); /* remote: on demand only */
    EXPECT("\xfa");
    ps2_mouse_event(7, 0, 0, 0);
    g_assert_false(obf());
    to_mouse(0xeb);
    EXPECT("\xfa\x08\x07\0\0");
    to_mouse(0xee); /* wrap */
    EXPECT("\xfa");
    to_mouse(0x55);
    EXPECT("\x55");
    to_mouse(0xec);
    EXPECT("\xfa");
    to_mouse(0xe8);
    to_mouse(9);
    EXPECT("\xfa\xfe");
    to_mouse(0x01);
    EXPECT("\xfe");
}

/* Movement that finds no room adds up. */
static void test_mouse_backlog(void)
{
    int x = 0;

    restart();
    to_mouse(0xf4);
    EXPECT("\xfa");
    for (unsigned i = 0; i < 100; i++) {
        ps2_mouse_event(2, 0, 0, 0);
    }
    while (obf()) {
        g_assert_cmphex(read_byte(), ==, 0x08);
        x += read_byte();
        read_byte();
    }
    g_assert_cmpint(x, ==, 200);
}

static void test_state(void)
{
    restart();
    command_byte(0x43);
    outb(0x60, 0xed);
    outb(0x60, 0x02);
    ps2_keyboard_event(0x1e, true);
    to_mouse(0xf4);
    ps2_mouse_event(3, 4, 5, PS2_BUTTON_RIGHT);
    outb(0x64, 0xd1);
    check_state(kbc);
    g_assert_cmphex(read_byte(), ==, 0xfa);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    kbc = device_test_new("i8042");
    port92 = device_test_new("port92");
    i8042_set_a20_out(kbc, test_line(0));
    port92_set_a20_out(port92, test_line(0));
    g_test_add_func("/ps2/controller", test_controller);
    g_test_add_func("/ps2/interrupts", test_interrupts);
    g_test_add_func("/ps2/reset-a20", test_reset_and_a20);
    g_test_add_func("/ps2/set1", test_scan_set_1);
    g_test_add_func("/ps2/set2", test_scan_set_2);
    g_test_add_func("/ps2/set3", test_scan_set_3);
    g_test_add_func("/ps2/keyboard-commands", test_keyboard_commands);
    g_test_add_func("/ps2/overrun", test_overrun);
    g_test_add_func("/ps2/mouse", test_mouse);
    g_test_add_func("/ps2/mouse-backlog", test_mouse_backlog);
    g_test_add_func("/ps2/state", test_state);
    return g_test_run();
}
