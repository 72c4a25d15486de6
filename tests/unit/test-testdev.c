/* SPDX-License-Identifier: GPL-2.0-or-later */
/* isa-debug-exit and pc-testdev. */
#include "device-test.h"

static void io_write(uint16_t port, uint32_t v, unsigned size)
{
    address_space_store(&address_space_io, port, v, size);
}
static uint32_t io_read(uint16_t port, unsigned size)
{
    return (uint32_t)address_space_load(&address_space_io, port, size);
}

static void test_debug_exit(void)
{
    static const struct {
        const char *base, *size;
    } bad[] = { { "0x10000", "2" }, { "0xffff", "2" }, { "0xf4", "0" }, { "0", "0x10001" } };
    DeviceState *dev = device_new_named("isa-debug-exit");

    device_set_prop(dev, "iobase", "0xf4", &error_abort);
    device_set_prop(dev, "iosize", "0x4", &error_abort);
    g_assert_true(device_realize(dev, NULL, &error_abort));
    exit_status_requested = -1;
    g_assert_cmphex(io_read(0xf4, 4), ==, 0);
    g_assert_cmpint(exit_status_requested, ==, -1);
    io_write(0xf4, 0, 1);
    g_assert_cmpint(exit_status_requested, ==, 1);
    io_write(0xf4, 0x31, 4);
    g_assert_cmpint(exit_status_requested, ==, 0x63);
    io_write(0xf6, 2, 2);
    g_assert_cmpint(exit_status_requested, ==, 5);
    device_unrealize(dev);

    dev = device_test_new("isa-debug-exit");
    io_write(0x501, 3, 1);
    g_assert_cmpint(exit_status_requested, ==, 7);
    device_unrealize(dev);

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        Error *err = NULL;

        dev = device_new_named("isa-debug-exit");
        device_set_prop(dev, "iobase", bad[i].base, &error_abort);
        device_set_prop(dev, "iosize", bad[i].size, &error_abort);
        g_assert_false(device_realize(dev, NULL, &err));
        g_assert_nonnull(strstr(error_get_pretty(err), "0..0xffff"));
        error_free(err);
    }
}

static unsigned gsi_calls, gsi_last;
static int gsi_level;

static void record_gsi(unsigned gsi, int level)
{
    gsi_calls++;
    gsi_last = gsi;
    gsi_level = level;
}
static const IrqChipOps recorder = { .name = "recorder", .set_gsi = record_gsi };

static void test_testdev(void)
{
    DeviceState *dev = device_test_new("pc-testdev");
    hwaddr mem = 0xff000000;

    io_write(0xe0, 0x11223344, 4);
    g_assert_cmphex(io_read(0xe0, 4), ==, 0x11223344);
    io_write(0xe1, 0xaa, 1);
    g_assert_cmphex(io_read(0xe0, 4), ==, 0x1122aa44);
    io_write(0xe2, 0xbbcc, 2);
    g_assert_cmphex(io_read(0xe0, 4), ==, 0xbbccaa44);
    g_assert_cmphex(io_read(0xe2, 1), ==, 0xcc);
    io_write(0xe4, 0x12345000, 4);
    g_assert_cmphex(io_read(0xe0, 4), ==, 0xbbccaa44);

    irqchip = &recorder;
    for (unsigned i = 0; i < IRQCHIP_GSIS; i++) {
        io_write((uint16_t)(0x2000 + i), 1, 1);
        g_assert_cmpuint(gsi_last, ==, i);
        g_assert_cmpint(gsi_level, ==, 1);
        io_write((uint16_t)(0x2000 + i), 0, 1);
        g_assert_cmpint(gsi_level, ==, 0);
    }
    io_write(0x2000 + IRQCHIP_GSIS, 1, 1);
    g_assert_cmpuint(gsi_calls, ==, 2 * IRQCHIP_GSIS);

    for (unsigned size = 1; size <= 8; size *= 2) {
        uint64_t v = 0x8877665544332211ull;

        address_space_store(&address_space_memory, mem + 0x101 * size, v, size);
        g_assert_cmphex(address_space_load(&address_space_memory, mem + 0x101 * size, size), ==,
                        size == 8 ? v : v & (BIT64(8 * size) - 1));
    }
    address_space_store(&address_space_memory, mem + 0xffff, 0x5a, 1);
    g_assert_cmphex(address_space_load(&address_space_memory, mem + 0xffff, 1), ==, 0x5a);
    check_state(dev);
    device_unrealize(dev);
    g_assert_cmphex(io_read(0xe0, 4), ==, UINT32_MAX);
    g_assert_cmphex(address_space_load(&address_space_memory, mem, 4), ==, UINT32_MAX);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    g_test_add_func("/testdev/debug-exit", test_debug_exit);
    g_test_add_func("/testdev/pc-testdev", test_testdev);
    return g_test_run();
}
