/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 8259A pair and I/O APIC. */
#include "device-test.h"
#include "hw/intc.h"

/* ---- Messages of the I/O APIC ---- */

typedef struct Msg {
    uint64_t addr;
    uint32_t data;
} Msg;
static Msg msgs[64];
static unsigned n_msgs;

static void record_msi(uint64_t addr, uint32_t data)
{
    g_assert_cmpuint(n_msgs, <, ARRAY_SIZE(msgs));
    msgs[n_msgs++] = (Msg){ addr, data };
}

static const IrqChipOps recorder = { .name = "recorder", .send_msi = record_msi };

/* ---- 8259 ---- */

static DeviceState *pic;
#define INT test_lines[0]

static void pic_init_both(uint8_t icw4)
{
    pic->type->reset(pic);
    for (unsigned n = 0; n < 16; n++) {
        pic_set_irq(n, 0);
    }
    outb(0x20, 0x11);
    outb(0x21, 0x20);
    outb(0x21, 0x04);
    outb(0x21, icw4);
    outb(0xa0, 0x11);
    outb(0xa1, 0x28);
    outb(0xa1, 0x02);
    outb(0xa1, 0x01);
    outb(0x21, 0);
    outb(0xa1, 0);
    lines_clear();
}

static void pulse(unsigned n)
{
    pic_set_irq(n, 1);
    pic_set_irq(n, 0);
}

static uint8_t read_isr(uint16_t port)
{
    outb(port, 0x0b);
    return inb(port);
}

static uint8_t read_irr(uint16_t port)
{
    outb(port, 0x0a);
    return inb(port);
}

static void test_priority(void)
{
    pic_init_both(1);
    pulse(5);
    pulse(3);
    g_assert_true(pic_output_level());
    g_assert_cmphex(read_irr(0x20), ==, 0x28);
    g_assert_cmphex(pic_ack(), ==, 0x23);
    g_assert_false(pic_output_level()); /* 5 is below 3 */
    pulse(1);
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x21);
    g_assert_cmphex(read_isr(0x20), ==, 0x0a);
    outb(0x20, 0x20); /* ends 1 */
    g_assert_cmphex(read_isr(0x20), ==, 0x08);
    g_assert_false(pic_output_level());
    outb(0x20, 0x63); /* specific: ends 3 */
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x25);
    outb(0x20, 0x20);
    g_assert_cmphex(read_isr(0x20), ==, 0);
}

static void test_mask(void)
{
    pic_init_both(1);
    outb(0x21, 0x10);
    pulse(4);
    g_assert_false(pic_output_level());
    g_assert_cmphex(inb(0x21), ==, 0x10);
    outb(0x21, 0x00); /* the latched edge is there still */
    g_assert_true(pic_output_level());
    outb(0x21, 0x10);
    g_assert_false(pic_output_level());
    /* Masked between INT and INTA: spurious. */
    g_assert_cmphex(pic_ack(), ==, 0x27);
    g_assert_cmphex(read_isr(0x20), ==, 0);
}

static void test_cascade(void)
{
    pic_init_both(1);
    pulse(12);
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x2c);
    g_assert_cmphex(read_isr(0x20), ==, 0x04);
    g_assert_cmphex(read_isr(0xa0), ==, 0x10);
    pulse(9); /* higher on the slave, but the master is busy with the slave */
    g_assert_false(pic_output_level());
    outb(0xa0, 0x20);
    outb(0x20, 0x20);
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x29);
    outb(0xa0, 0x20);
    outb(0x20, 0x20);

    /* Special fully nested mode lets it through. */
    pic_init_both(0x11);
    pulse(12);
    g_assert_cmphex(pic_ack(), ==, 0x2c);
    pulse(9);
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x29);

    /* A level request withdrawn at the slave is spurious there, but in service at the master. */
    pic_init_both(1);
    outb(0x4d1, 0x08); /* line 11 */
    pic_set_irq(11, 1);
    g_assert_true(pic_output_level());
    pulse(10);
    pic_set_irq(11, 0);
    g_assert_cmphex(pic_ack(), ==, 0x2a);
    outb(0x4d1, 0);
}

static void test_level(void)
{
    pic_init_both(1);
    outb(0x4d0, 0xff);
    g_assert_cmphex(inb(0x4d0), ==, 0xf8); /* 0, 1 and 2 stay edge-triggered */
    outb(0x4d1, 0xff);
    g_assert_cmphex(inb(0x4d1), ==, 0xde);
    pic_set_irq(10, 1);
    g_assert_cmphex(pic_ack(), ==, 0x2a);
    outb(0xa0, 0x20);
    outb(0x20, 0x20);
    g_assert_true(pic_output_level()); /* still high: again */
    pic_set_irq(10, 0);
    g_assert_false(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x27); /* withdrawn: spurious */
    outb(0x4d0, 0);
    outb(0x4d1, 0);
    /* An edge does not come again. */
    pic_set_irq(10, 1);
    g_assert_cmphex(pic_ack(), ==, 0x2a);
    outb(0xa0, 0x20);
    outb(0x20, 0x20);
    g_assert_false(pic_output_level());
}

static void test_rotation(void)
{
    pic_init_both(1);
    pulse(0);
    g_assert_cmphex(pic_ack(), ==, 0x20);
    outb(0x20, 0xa0); /* rotate on non-specific EOI: 0 is lowest now */
    pulse(0);
    pulse(7);
    g_assert_cmphex(pic_ack(), ==, 0x27);
    outb(0x20, 0xe7); /* rotate on specific EOI: 7 is lowest */
    g_assert_cmphex(pic_ack(), ==, 0x20);
    outb(0x20, 0x20);
    outb(0x20, 0xc4); /* set priority: 4 is lowest, 5 highest */
    pulse(4);
    pulse(3);
    pulse(5);
    g_assert_cmphex(pic_ack(), ==, 0x25);
    outb(0x20, 0x20);
    g_assert_cmphex(pic_ack(), ==, 0x23);
    outb(0x20, 0x20);
    g_assert_cmphex(pic_ack(), ==, 0x24);
}

static void test_auto_eoi(void)
{
    pic_init_both(3);
    pulse(6);
    pulse(7);
    g_assert_cmphex(pic_ack(), ==, 0x26);
    g_assert_cmphex(read_isr(0x20), ==, 0);
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x27);
    outb(0x20, 0x80); /* rotate in AEOI mode */
    pulse(3);
    g_assert_cmphex(pic_ack(), ==, 0x23);
    pulse(3);
    pulse(4);
    g_assert_cmphex(pic_ack(), ==, 0x24); /* 3 is lowest now */
    outb(0x20, 0x00);
}

static void test_special_mask(void)
{
    pic_init_both(1);
    pulse(3);
    g_assert_cmphex(pic_ack(), ==, 0x23);
    pulse(5);
    g_assert_false(pic_output_level());
    outb(0x21, 0x08);
    g_assert_false(pic_output_level());
    outb(0x20, 0x68); /* special mask mode: masked levels do not block */
    g_assert_true(pic_output_level());
    g_assert_cmphex(pic_ack(), ==, 0x25);
    outb(0x20, 0x20); /* the non-specific EOI passes over the masked 3 */
    g_assert_cmphex(read_isr(0x20), ==, 0x08);
    outb(0x20, 0x48);
    outb(0x20, 0x20);
    g_assert_cmphex(read_isr(0x20), ==, 0);
}

static void test_poll(void)
{
    pic_init_both(1);
    outb(0x20, 0x0c);
    g_assert_cmphex(inb(0x20), ==, 0);
    pulse(6);
    outb(0x20, 0x0c);
    g_assert_cmphex(inb(0x20), ==, 0x86);
    g_assert_cmphex(read_isr(0x20), ==, 0x40);
    g_assert_false(pic_output_level());
    outb(0x20, 0x20);
}

static void test_output_edges(void)
{
    pic_init_both(1);
    pulse(5);
    pulse(6);
    g_assert_cmpuint(INT.rises, ==, 1);
    pic_ack();
    g_assert_cmpuint(INT.falls, ==, 1);
    outb(0x20, 0x20);
    g_assert_cmpuint(INT.rises, ==, 2);
    pic_ack();
    outb(0x20, 0x20);
    g_assert_cmpint(INT.level, ==, 0);
}

static void test_pic_state(void)
{
    pic_init_both(0x11);
    outb(0x4d1, 0x0c);
    pulse(5);
    pic_set_irq(10, 1);
    pic_ack();
    outb(0x21, 0x12);
    outb(0x20, 0xc3);
    check_state(pic);
    pic_init_both(1);
    outb(0x4d1, 0);
}

/* ---- I/O APIC ---- */

static DeviceState *ioapic;

static void ioapic_write(uint8_t reg, uint32_t v)
{
    address_space_store(&address_space_memory, IOAPIC_ADDR, reg, 1);
    address_space_store(&address_space_memory, IOAPIC_ADDR + 0x10, v, 4);
}

static uint32_t ioapic_read(uint8_t reg)
{
    address_space_store(&address_space_memory, IOAPIC_ADDR, reg, 4);
    return (uint32_t)address_space_load(&address_space_memory, IOAPIC_ADDR + 0x10, 4);
}

static void set_rte(unsigned pin, uint64_t rte)
{
    ioapic_write((uint8_t)(0x11 + 2 * pin), (uint32_t)(rte >> 32));
    ioapic_write((uint8_t)(0x10 + 2 * pin), (uint32_t)rte);
}

static void ioapic_restart(void)
{
    ioapic->type->reset(ioapic);
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        ioapic_set_irq(pin, 0);
    }
    n_msgs = 0;
}

#define LEVEL  0x8000u
#define MASKED 0x10000u
#define RIRR   0x4000u

static void test_ioapic_registers(void)
{
    ioapic_restart();
    g_assert_cmphex(ioapic_read(1), ==, 0x00170020);
    ioapic_write(0, 0x5f000000);
    g_assert_cmphex(ioapic_read(0), ==, 0x0f000000);
    g_assert_cmphex(ioapic_read(2), ==, 0x0f000000);
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        g_assert_cmphex(ioapic_read((uint8_t)(0x10 + 2 * pin)), ==, MASKED);
    }
    set_rte(3, ~0ull);
    g_assert_cmphex(ioapic_read(0x16), ==, 0x1afff); /* status and remote IRR are read-only */
    g_assert_cmphex(ioapic_read(0x17), ==, 0xfffe0000);
    g_assert_cmphex(ioapic_read(0x40), ==, 0);
    ioapic_write(0x40, 1);
}

static void test_ioapic_edge(void)
{
    ioapic_restart();
    set_rte(4, 0x05ull << 56 | 0x31);
    ioapic_set_irq(4, 1);
    g_assert_cmpuint(n_msgs, ==, 1);
    g_assert_cmphex(msgs[0].addr, ==, 0xfee05000);
    g_assert_cmphex(msgs[0].data, ==, 0x4031);
    ioapic_set_irq(4, 1); /* no edge */
    g_assert_cmpuint(n_msgs, ==, 1);
    ioapic_set_irq(4, 0);
    ioapic_set_irq(4, 1);
    g_assert_cmpuint(n_msgs, ==, 2);
    /* An edge at a masked pin is lost. */
    set_rte(4, MASKED | 0x31);
    ioapic_set_irq(4, 0);
    ioapic_set_irq(4, 1);
    set_rte(4, 0x31);
    g_assert_cmpuint(n_msgs, ==, 2);
    /* Logical destination, lowest priority. */
    set_rte(5, 0xffull << 56 | 0x0932);
    ioapic_set_irq(5, 1);
    g_assert_cmphex(msgs[2].addr, ==, 0xfeeff004);
    g_assert_cmphex(msgs[2].data, ==, 0x4132);
}

/* A line still high at EOI fires again; masking keeps remote IRR. */
static void test_ioapic_level(void)
{
    ioapic_restart();
    set_rte(10, LEVEL | 0x41);
    ioapic_set_irq(10, 1);
    g_assert_cmpuint(n_msgs, ==, 1);
    g_assert_cmphex(msgs[0].data, ==, 0xc041);
    g_assert_cmphex(ioapic_read(0x24), ==, LEVEL | RIRR | 0x41);
    ioapic_set_irq(10, 0);
    ioapic_set_irq(10, 1); /* waits for the EOI */
    g_assert_cmpuint(n_msgs, ==, 1);
    ioapic_eoi(0x40); /* somebody else's */
    g_assert_cmpuint(n_msgs, ==, 1);
    ioapic_eoi(0x41);
    g_assert_cmpuint(n_msgs, ==, 2);
    ioapic_set_irq(10, 0);
    ioapic_eoi(0x41);
    g_assert_cmpuint(n_msgs, ==, 2);
    g_assert_cmphex(ioapic_read(0x24), ==, LEVEL | 0x41);

    ioapic_set_irq(10, 1);
    g_assert_cmpuint(n_msgs, ==, 3);
    set_rte(10, MASKED | LEVEL | 0x41);
    g_assert_cmphex(ioapic_read(0x24), ==, MASKED | LEVEL | RIRR | 0x41);
    set_rte(10, LEVEL | 0x41);
    g_assert_cmpuint(n_msgs, ==, 3); /* remote IRR still waits */
    set_rte(10, MASKED | LEVEL | 0x41);
    ioapic_eoi(0x41);
    g_assert_cmpuint(n_msgs, ==, 3); /* masked */
    g_assert_cmphex(ioapic_read(0x24), ==, MASKED | LEVEL | 0x41);
    set_rte(10, LEVEL | 0x41); /* unmasked while high */
    g_assert_cmpuint(n_msgs, ==, 4);

    /* Directed EOI through the register. */
    address_space_store(&address_space_memory, IOAPIC_ADDR + 0x40, 0x41, 4);
    g_assert_cmpuint(n_msgs, ==, 5);
    /* To edge and back clears a stuck remote IRR, and the line asks again. */
    set_rte(10, MASKED | 0x41);
    g_assert_cmphex(ioapic_read(0x24), ==, MASKED | 0x41);
    set_rte(10, LEVEL | 0x41);
    g_assert_cmpuint(n_msgs, ==, 6);
}

/* Two pins with one vector: an EOI ends both. */
static void test_ioapic_shared(void)
{
    ioapic_restart();
    set_rte(16, LEVEL | 0x51);
    set_rte(17, LEVEL | 0x51);
    ioapic_set_irq(16, 1);
    ioapic_set_irq(17, 1);
    g_assert_cmpuint(n_msgs, ==, 2);
    ioapic_set_irq(16, 0);
    ioapic_eoi(0x51);
    g_assert_cmpuint(n_msgs, ==, 3);
    g_assert_cmphex(ioapic_read(0x30), ==, LEVEL | 0x51);
    g_assert_cmphex(ioapic_read(0x32), ==, LEVEL | RIRR | 0x51);
}

static unsigned hook_calls;
static bool hook_valid[IOAPIC_PINS];

static void route_hook(unsigned pin, bool valid, uint64_t addr, uint32_t data)
{
    hook_calls++;
    hook_valid[pin] = valid;
}

static void test_ioapic_routes(void)
{
    uint64_t addr;
    uint32_t data;

    ioapic_restart();
    ioapic_set_route_hook(route_hook);
    g_assert_cmpuint(hook_calls, ==, IOAPIC_PINS);
    set_rte(7, 3ull << 56 | LEVEL | 0x61);
    g_assert_true(hook_valid[7]);
    g_assert_true(ioapic_route(7, &addr, &data));
    g_assert_cmphex(addr, ==, 0xfee03000);
    g_assert_cmphex(data, ==, 0xc061);
    g_assert_false(ioapic_route(8, &addr, &data));
    ioapic->type->reset(ioapic);
    g_assert_false(hook_valid[7]);
    ioapic_set_route_hook(NULL);
}

static void test_ioapic_state(void)
{
    ioapic_restart();
    ioapic_write(0, 0x03000000);
    set_rte(9, LEVEL | 0x71);
    set_rte(2, 0x20);
    ioapic_set_irq(9, 1);
    check_state(ioapic);
    g_assert_cmphex(ioapic_read(0x22), ==, LEVEL | RIRR | 0x71);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    irqchip = &recorder;
    pic = device_test_new("isa-i8259");
    ioapic = device_test_new("ioapic");
    pic_set_output(test_line(0));
    g_test_add_func("/pic/priority", test_priority);
    g_test_add_func("/pic/mask", test_mask);
    g_test_add_func("/pic/cascade", test_cascade);
    g_test_add_func("/pic/level", test_level);
    g_test_add_func("/pic/rotation", test_rotation);
    g_test_add_func("/pic/auto-eoi", test_auto_eoi);
    g_test_add_func("/pic/special-mask", test_special_mask);
    g_test_add_func("/pic/poll", test_poll);
    g_test_add_func("/pic/output", test_output_edges);
    g_test_add_func("/pic/state", test_pic_state);
    g_test_add_func("/ioapic/registers", test_ioapic_registers);
    g_test_add_func("/ioapic/edge", test_ioapic_edge);
    g_test_add_func("/ioapic/level", test_ioapic_level);
    g_test_add_func("/ioapic/shared-vector", test_ioapic_shared);
    g_test_add_func("/ioapic/routes", test_ioapic_routes);
    g_test_add_func("/ioapic/state", test_ioapic_state);
    return g_test_run();
}
