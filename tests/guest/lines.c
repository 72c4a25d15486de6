/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt lines of the I/O APIC, driven by pc-testdev's ports 0x2000 + GSI. */
#include "guest.h"

#define LINE 10
#define RED  (0x10 + 2 * LINE)

static volatile u32 seen;
static volatile bool lower;

static void on_line(Regs *r)
{
    seen++;
    if (lower || seen >= 10) {
        outb(0x2000 + LINE, 0);
    }
    apic_eoi();
}

static void breathe(void)
{
    sti();
    delay_ms(2);
    cli();
}

static void edge(void)
{
    ioapic_write(RED + 1, 0);
    ioapic_write(RED, 0x60);
    seen = 0;
    lower = false;
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("an edge gives one interrupt", seen, 1);
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("no edge, no interrupt", seen, 1);
    outb(0x2000 + LINE, 0);
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("second edge", seen, 2);
    outb(0x2000 + LINE, 0);
}

static void level(void)
{
    ioapic_write(RED, 0x8060);
    seen = 0;
    lower = true;
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("level, lowered by the handler", seen, 1);
    seen = 0;
    lower = false;
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("still high at EOI: fires again until lowered", seen, 10);
    check_eq("remote IRR clear", ioapic_read(RED) & 0x4000, 0);
}

static void masked(void)
{
    ioapic_write(RED, 0x18060);
    seen = 0;
    lower = true;
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("masked", seen, 0);
    ioapic_write(RED, 0x8060);
    breathe();
    check_eq("unmasked while high", seen, 1);
}

/* Taken but not yet acknowledged: masking and unmasking must not lose remote IRR. */
static void on_slow(Regs *r)
{
    seen++;
    check("remote IRR set while in service", (ioapic_read(RED) & 0x4000) != 0);
    ioapic_write(RED, 0x18060);
    check("masking keeps remote IRR", (ioapic_read(RED) & 0x4000) != 0);
    ioapic_write(RED, 0x8060);
    outb(0x2000 + LINE, 0);
    apic_eoi();
}

static void mask_in_service(void)
{
    set_handler(0x60, on_slow);
    seen = 0;
    outb(0x2000 + LINE, 1);
    breathe();
    check_eq("in-service masking gives one interrupt", seen, 1);
    check_eq("remote IRR clear after EOI", ioapic_read(RED) & 0x4000, 0);
}

/* A line raised while the CPU computes is taken soon, not at some later exit. */
static void latency(void)
{
    u64 n = 0;

    set_handler(0x60, on_line);
    ioapic_write(RED, 0x60);
    seen = 0;
    lower = true;
    sti();
    outb(0x2000 + LINE, 1);
    while (!seen && n < 100000) {
        n++;
    }
    cli();
    check("taken at once", n < 1000);
}

void test_main(void)
{
    apic_enable();
    set_handler(0x60, on_line);
    edge();
    level();
    masked();
    mask_in_service();
    latency();
}
