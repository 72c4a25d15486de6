/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Local APICs: registers, priority, addressing, IPIs, pins, timer, x2APIC, many threads. */
#include "device-test.h"
#include "hw/intc.h"
#include "target/i386/cpu.h"

#define N 20 /* vCPUs; more than a flat logical destination or a cluster holds */

static X86CPU cpus[N];
static const IrqChipOps *ops = &irqchip_user;

enum { ID = 0x20, VERSION = 0x30, TPR = 0x80, PPR = 0xa0, EOI = 0xb0, LDR = 0xd0, DFR = 0xe0,
       SVR = 0xf0, ISR = 0x100, TMR = 0x180, IRR = 0x200, ESR = 0x280, ICR = 0x300, ICR2 = 0x310,
       LVTT = 0x320, LVT0 = 0x350, LVT1 = 0x360, LVTE = 0x370, TMICT = 0x380, TMCCT = 0x390,
       TDCR = 0x3e0 };

static CPUState *cpu(unsigned i)
{
    return &cpus[i].base;
}
static uint32_t rd(unsigned i, uint32_t reg)
{
    return ops->mmio_read(cpu(i), reg);
}
static void wr(unsigned i, uint32_t reg, uint32_t v)
{
    ops->mmio_write(cpu(i), reg, v);
}

static uint32_t take_requests(unsigned i)
{
    return atomic_exchange(&cpu_requests[i], 0);
}

/* Power-on state, software-enabled. */
static void restart(void)
{
    apic_set_lint0(NULL, 0, 0);
    for (unsigned i = 0; i < N; i++) {
        ops->cpu_reset(cpu(i), false);
        wr(i, SVR, 0x1ff);
        take_requests(i);
    }
    step_ns(1000);
}

static void ipi(unsigned from, uint8_t dest, uint32_t low)
{
    wr(from, ICR2, (uint32_t)dest << 24);
    wr(from, ICR, low);
}

/* The set of vCPUs with the vector in IRR, as a bit mask; clears it. */
static uint32_t who_got(uint8_t vector)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < N; i++) {
        if (rd(i, IRR + (vector >> 5 << 4)) & BIT(vector & 31)) {
            mask |= BIT(i);
            g_assert_true(take_requests(i) & CPU_REQ_INTERRUPT);
            g_assert_cmpint(ops->cpu_ack(cpu(i)), ==, vector);
            wr(i, EOI, 0);
        } else {
            g_assert_false(take_requests(i) & CPU_REQ_INTERRUPT);
        }
    }
    return mask;
}

static uint32_t who(uint32_t req)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < N; i++) {
        if (take_requests(i) & req) {
            mask |= BIT(i);
        }
    }
    return mask;
}

static void test_registers(void)
{
    restart();
    g_assert_cmphex(rd(3, ID), ==, 3u << 24);
    g_assert_cmphex(rd(0, VERSION) & 0xff, ==, 0x14);
    g_assert_cmphex(rd(0, LVT0), ==, 0x700);
    g_assert_cmphex(rd(1, LVT0), ==, 0x10000);
    g_assert_cmphex(rd(1, DFR), ==, UINT32_MAX);
    wr(1, DFR, 0);
    g_assert_cmphex(rd(1, DFR), ==, 0x0fffffff);
    wr(1, LVT1, ~0u);
    g_assert_cmphex(rd(1, LVT1), ==, 0x1a7ff);
    wr(1, LVTT, ~0u & ~(1u << 18));
    g_assert_cmphex(rd(1, LVTT), ==, 0x300ff);
    /* Software disable masks all and keeps them so. */
    wr(1, LVTE, 0x30);
    wr(1, SVR, 0xff);
    g_assert_cmphex(rd(1, LVTE), ==, 0x10030);
    wr(1, LVTE, 0x30);
    g_assert_cmphex(rd(1, LVTE), ==, 0x10030);
    g_assert_cmphex(rd(1, 0x34), ==, 0); /* between registers */
}

static void test_priority(void)
{
    restart();
    ipi(0, 1, 0x35);
    ipi(0, 1, 0x52);
    ipi(0, 1, 0x58);
    g_assert_true(ops->cpu_pending(cpu(1)));
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x58);
    g_assert_cmphex(rd(1, PPR), ==, 0x50);
    g_assert_false(ops->cpu_pending(cpu(1))); /* same class */
    g_assert_cmpint(ops->cpu_ack(cpu(1)), ==, -1);
    ipi(0, 1, 0x61);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x61);
    take_requests(1);
    wr(1, EOI, 0);
    g_assert_cmphex(rd(1, PPR), ==, 0x50);
    g_assert_cmphex(take_requests(1), ==, 0);
    wr(1, EOI, 0);
    g_assert_cmphex(take_requests(1), ==, CPU_REQ_INTERRUPT); /* 0x52 can come now */
    wr(1, TPR, 0x50);
    g_assert_false(ops->cpu_pending(cpu(1)));
    g_assert_cmphex(ops->tpr_get(cpu(1)), ==, 5);
    ops->tpr_set(cpu(1), 4);
    g_assert_cmphex(take_requests(1), ==, CPU_REQ_INTERRUPT);
    g_assert_cmphex(rd(1, TPR), ==, 0x40);
    g_assert_cmphex(rd(1, PPR), ==, 0x40);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x52);
    wr(1, EOI, 0);
    g_assert_false(ops->cpu_pending(cpu(1))); /* 0x35 is below the TPR */
    wr(1, TPR, 0);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x35);
    wr(1, EOI, 0);
    wr(1, EOI, 0); /* nothing in service */
    g_assert_cmphex(rd(1, PPR), ==, 0);
}

static void test_physical(void)
{
    restart();
    for (unsigned i = 0; i < N; i++) {
        ipi(0, (uint8_t)i, 0x40);
        g_assert_cmphex(who_got(0x40), ==, BIT(i));
    }
    ipi(0, 100, 0x40);
    g_assert_cmphex(who_got(0x40), ==, 0);
    ipi(0, 0xff, 0x40);
    g_assert_cmphex(who_got(0x40), ==, BIT(N) - 1);
    /* The xAPIC ID can be written. */
    wr(2, ID, 77u << 24);
    ipi(0, 77, 0x41);
    g_assert_cmphex(who_got(0x41), ==, BIT(2));
    ipi(0, 2, 0x41);
    g_assert_cmphex(who_got(0x41), ==, 0);
    wr(2, ID, 3u << 24); /* two of one name */
    ipi(0, 3, 0x41);
    g_assert_cmphex(who_got(0x41), ==, BIT(2) | BIT(3));
    /* INIT keeps the ID, a reset restores it. */
    ops->cpu_reset(cpu(2), true);
    g_assert_cmphex(rd(2, ID), ==, 3u << 24);
    restart();
    ipi(0, 2, 0x41);
    g_assert_cmphex(who_got(0x41), ==, BIT(2));
}

static void test_shorthands(void)
{
    restart();
    wr(4, ICR, 0x40042);
    g_assert_cmphex(who_got(0x42), ==, BIT(4));
    wr(4, ICR, 0x80043);
    g_assert_cmphex(who_got(0x43), ==, BIT(N) - 1);
    wr(4, ICR, 0xc0044);
    g_assert_cmphex(who_got(0x44), ==, (BIT(N) - 1) & ~BIT(4));
    wr(4, ICR, 0xc0400); /* NMI to all but self */
    g_assert_cmphex(who(CPU_REQ_NMI), ==, (BIT(N) - 1) & ~BIT(4));
    ipi(0, 5, 0x4200);
    g_assert_cmphex(who(CPU_REQ_SMI), ==, BIT(5));
    ipi(0, 5, 0x4500);
    g_assert_cmphex(who(CPU_REQ_INIT), ==, BIT(5));
    ipi(0, 5, 0x8500); /* level de-assert: nothing */
    g_assert_cmphex(who(~0u), ==, 0);
    ipi(0, 5, 0x4699);
    g_assert_cmphex(atomic_load(&cpu(5)->sipi_vector), ==, 0x99);
    g_assert_cmphex(who(CPU_REQ_SIPI), ==, BIT(5));
    /* Disabled by software: no fixed interrupts, but NMI and INIT. */
    wr(6, SVR, 0xff);
    ipi(0, 6, 0x40);
    g_assert_cmphex(who_got(0x40), ==, 0);
    ipi(0, 6, 0x4400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(6));
}

static void test_logical_flat(void)
{
    restart();
    for (unsigned i = 0; i < 8; i++) {
        wr(i, LDR, BIT(24 + i));
    }
    wr(9, LDR, 0x81000000);
    ipi(0, 0x01, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(0) | BIT(9));
    ipi(0, 0x26, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(1) | BIT(2) | BIT(5));
    ipi(0, 0x80, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(7) | BIT(9));
    wr(7, LDR, 0x02000000); /* moves */
    ipi(0, 0x80, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(9));
    ipi(0, 0x02, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(1) | BIT(7));
    wr(7, LDR, 0);
    ipi(0, 0x02, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(1));
    ipi(0, 0xff, 0x847);
    g_assert_cmphex(who_got(0x47), ==, BIT(N) - 1);
}

static void test_logical_cluster(void)
{
    restart();
    for (unsigned i = 0; i < N; i++) {
        wr(i, DFR, 0x0fffffff);
        wr(i, LDR, ((i / 4) << 4 | BIT(i % 4)) << 24);
    }
    ipi(0, 0x11, 0x848);
    g_assert_cmphex(who_got(0x48), ==, BIT(4));
    ipi(0, 0x2a, 0x848);
    g_assert_cmphex(who_got(0x48), ==, BIT(9) | BIT(11));
    ipi(0, 0xf1, 0x848); /* cluster 15: all clusters */
    g_assert_cmphex(who_got(0x48), ==, BIT(0) | BIT(4) | BIT(8) | BIT(12) | BIT(16));
    ipi(0, 0x70, 0x848);
    g_assert_cmphex(who_got(0x48), ==, 0);
    wr(4, LDR, 0x21000000); /* to another cluster, together with 8 */
    ipi(0, 0x11, 0x848);
    g_assert_cmphex(who_got(0x48), ==, 0);
    ipi(0, 0x21, 0x848);
    g_assert_cmphex(who_got(0x48), ==, BIT(4) | BIT(8));
    wr(4, DFR, UINT32_MAX); /* back to flat: 0x21 is bits 5 and 0 */
    ipi(0, 0x21, 0x848);
    g_assert_cmphex(who_got(0x48), ==, BIT(4) | BIT(8));
    ipi(0, 0x20, 0x848);
    g_assert_cmphex(who_got(0x48), ==, BIT(4));
}

static void test_lowest_priority(void)
{
    unsigned count[4] = { 0 };

    restart();
    for (unsigned i = 0; i < 4; i++) {
        wr(i, LDR, BIT(24 + i));
    }
    wr(0, TPR, 0x30);
    wr(1, TPR, 0x20);
    wr(2, TPR, 0x20);
    wr(3, TPR, 0x40);
    for (unsigned n = 0; n < 10; n++) {
        uint32_t got;

        ipi(0, 0x0f, 0x950);
        got = who_got(0x50);
        g_assert_cmpuint((unsigned)__builtin_popcount(got), ==, 1);
        count[__builtin_ctz(got)]++;
    }
    g_assert_cmpuint(count[1], ==, 5); /* the lowest take turns */
    g_assert_cmpuint(count[2], ==, 5);
    wr(1, SVR, 0xff);
    wr(2, SVR, 0xff);
    ipi(0, 0x0f, 0x950);
    g_assert_cmphex(who_got(0x50), ==, BIT(0));
}

static void test_errors(void)
{
    restart();
    wr(1, LVTE, 0x33);
    ipi(1, 2, 0x05); /* illegal vector sent */
    g_assert_cmphex(rd(1, ESR), ==, 0);
    g_assert_cmphex(who_got(0x33), ==, BIT(1));
    wr(1, ESR, 0);
    g_assert_cmphex(rd(1, ESR), ==, 0x20);
    wr(1, ESR, 0);
    g_assert_cmphex(rd(1, ESR), ==, 0);
    ops->send_msi(0xfee01000, 0x0f); /* received */
    who_got(0x33);
    wr(1, ESR, 0);
    g_assert_cmphex(rd(1, ESR), ==, 0x40);
    rd(1, 0x40); /* no register */
    who_got(0x33);
    wr(1, TMCCT, 5); /* read-only: no error */
    wr(1, ESR, 0);
    g_assert_cmphex(rd(1, ESR), ==, 0x80);
    wr(1, ESR, 0);
    g_assert_cmphex(rd(1, ESR), ==, 0);
    wr(1, LVTE, 0x05); /* an illegal vector of its own: must not loop */
    rd(1, 0x40);
    g_assert_cmphex(who_got(0x05), ==, 0);
}

/* ---- Level-triggered messages, EOI, the I/O APIC ---- */

static void ioapic_write(uint8_t reg, uint32_t v)
{
    address_space_store(&address_space_memory, IOAPIC_ADDR, reg, 4);
    address_space_store(&address_space_memory, IOAPIC_ADDR + 0x10, v, 4);
}

static void test_level_eoi(void)
{
    restart();
    ioapic_write(0x10 + 2 * 20, 0x8061);
    ioapic_write(0x11 + 2 * 20, 1u << 24);
    irqchip->set_gsi(20, 1);
    g_assert_cmphex(rd(1, TMR + 0x30), ==, BIT(1));
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x61);
    g_assert_false(ops->cpu_pending(cpu(1)));
    take_requests(1);
    wr(1, EOI, 0); /* still high: again */
    g_assert_true(take_requests(1) & CPU_REQ_INTERRUPT);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x61);
    /* With broadcasts suppressed only the I/O APIC's own EOI register helps. */
    wr(1, SVR, 0x11ff);
    wr(1, EOI, 0);
    g_assert_false(ops->cpu_pending(cpu(1)));
    address_space_store(&address_space_memory, IOAPIC_ADDR + 0x40, 0x61, 4);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x61);
    irqchip->set_gsi(20, 0);
    wr(1, SVR, 0x1ff);
    wr(1, EOI, 0);
    address_space_store(&address_space_memory, IOAPIC_ADDR + 0x40, 0x61, 4);
    g_assert_false(ops->cpu_pending(cpu(1)));
    /* An edge of the same vector clears the TMR bit. */
    ipi(0, 1, 0x61);
    g_assert_cmphex(rd(1, TMR + 0x30), ==, 0);
    g_assert_cmphex(who_got(0x61), ==, BIT(1));
    ioapic_write(0x10 + 2 * 20, 0x10000);
}

static void test_msi(void)
{
    restart();
    ops->send_msi(0xfee07000, 0x4070);
    g_assert_cmphex(who_got(0x70), ==, BIT(7));
    wr(3, LDR, 0x08000000);
    ops->send_msi(0xfee0800c, 0x0171);
    g_assert_cmphex(who_got(0x71), ==, BIT(3));
    ops->send_msi(0xfeeff000, 0x0400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(N) - 1);
    ops->send_msi(0xfee00020, 0x72); /* extended destination: 256 */
    g_assert_cmphex(who_got(0x72), ==, 0);
}

/* ---- Pins ---- */

static void pic_program(void)
{
    static const uint8_t seq[][2] = { { 0x20, 0x11 }, { 0x21, 0x08 }, { 0x21, 4 }, { 0x21, 1 },
                                      { 0xa0, 0x11 }, { 0xa1, 0x70 }, { 0xa1, 2 }, { 0xa1, 1 },
                                      { 0x21, 0 },    { 0xa1, 0 } };

    for (unsigned i = 0; i < ARRAY_SIZE(seq); i++) {
        outb(seq[i][0], seq[i][1]);
    }
}

static void test_extint(void)
{
    restart();
    pic_program();
    irqchip->set_gsi(1, 1);
    g_assert_cmphex(who(CPU_REQ_INTERRUPT), ==, BIT(0)); /* virtual wire: the first only */
    g_assert_true(ops->cpu_pending(cpu(0)));
    g_assert_false(ops->cpu_pending(cpu(1)));
    g_assert_cmphex(ops->cpu_ack(cpu(0)), ==, 9);
    g_assert_false(ops->cpu_pending(cpu(0)));
    irqchip->set_gsi(1, 0);
    outb(0x20, 0x20);
    /* Masked at LINT0: it waits, and comes when that opens. */
    wr(0, LVT0, 0x10700);
    irqchip->set_gsi(1, 1);
    g_assert_cmphex(who(CPU_REQ_INTERRUPT), ==, 0);
    g_assert_false(ops->cpu_pending(cpu(0)));
    wr(0, LVT0, 0x700);
    g_assert_cmphex(who(CPU_REQ_INTERRUPT), ==, BIT(0));
    /* Withdrawn by the mask before the acknowledge. */
    outb(0x21, 0x02);
    g_assert_false(ops->cpu_pending(cpu(0)));
    outb(0x21, 0);
    /* Another processor's LINT0. */
    wr(0, LVT0, 0x10700);
    wr(5, LVT0, 0x700);
    g_assert_true(ops->cpu_pending(cpu(5)));
    g_assert_cmphex(ops->cpu_ack(cpu(5)), ==, 9);
    outb(0x20, 0x20);
    irqchip->set_gsi(1, 0);
    /* APIC switched off: the pin is INTR. */
    restart();
    g_assert_true(ops->base_set(cpu(0), 0xfee00100));
    irqchip->set_gsi(1, 1);
    g_assert_true(ops->cpu_pending(cpu(0)));
    g_assert_cmphex(ops->cpu_ack(cpu(0)), ==, 9);
    irqchip->set_gsi(1, 0);
    outb(0x20, 0x20);
}

static void test_lint_modes(void)
{
    restart();
    pic_program();
    outb(0x20, 0x0b);
    wr(0, LVT0, 0x10700);
    wr(2, LVT0, 0x400); /* NMI watchdog by LINT0 */
    wr(3, LVT0, 0x055); /* fixed, edge */
    irqchip->set_gsi(3, 1);
    irqchip->set_gsi(3, 0);
    g_assert_cmphex(atomic_exchange(&cpu_requests[2], 0), ==, CPU_REQ_NMI);
    g_assert_cmphex(who_got(0x55), ==, BIT(3));
    pic_ack();
    outb(0x20, 0x20);
    wr(2, LVT0, 0x10000);
    wr(3, LVT0, 0x8056); /* fixed, level */
    irqchip->set_gsi(4, 1);
    g_assert_cmphex(rd(3, LVT0), ==, 0xc056);
    g_assert_cmphex(ops->cpu_ack(cpu(3)), ==, 0x56);
    wr(3, EOI, 0); /* INT is high still */
    g_assert_cmphex(ops->cpu_ack(cpu(3)), ==, 0x56);
    pic_ack();
    wr(3, EOI, 0);
    g_assert_cmphex(rd(3, LVT0), ==, 0x8056);
    g_assert_false(ops->cpu_pending(cpu(3)));
    irqchip->set_gsi(4, 0);
    outb(0x20, 0x20);
    who(~0u);
    wr(6, LVT1, 0x400);
    apic_pulse_lint1();
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(6));
    /* A performance counter's overflow masks its entry. */
    wr(6, 0x340, 0x400);
    apic_local_deliver(cpu(6), APIC_LVT_PERF);
    apic_local_deliver(cpu(6), APIC_LVT_PERF);
    g_assert_cmphex(rd(6, 0x340), ==, 0x10400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(6));
}

/* ---- Timer ---- */

static unsigned fired(unsigned i, uint8_t vector)
{
    if (!(rd(i, IRR + (vector >> 5 << 4)) & BIT(vector & 31))) {
        return 0;
    }
    g_assert_cmphex(ops->cpu_ack(cpu(i)), ==, vector);
    wr(i, EOI, 0);
    return 1;
}

static void test_timer(void)
{
    unsigned n = 0;

    restart();
    wr(1, TDCR, 0xb); /* by 1: nanoseconds */
    wr(1, LVTT, 0x90);
    wr(1, TMICT, 100000);
    step_ns(99000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 1000);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);
    step_ns(1000);
    g_assert_cmpuint(fired(1, 0x90), ==, 1);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    step_ns(1000000);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);

    wr(1, TDCR, 0x3); /* by 16 */
    wr(1, TMICT, 1000);
    step_ns(15999);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);
    g_assert_cmpuint(rd(1, TMCCT), ==, 1);
    step_ns(1);
    g_assert_cmpuint(fired(1, 0x90), ==, 1);

    wr(1, LVTT, 0x20091); /* periodic */
    wr(1, TDCR, 0xb);
    wr(1, TMICT, 50000);
    for (unsigned i = 0; i < 1000; i++) {
        step_ns(50000);
        n += fired(1, 0x91);
    }
    g_assert_cmpuint(n, ==, 1000);
    step_ns(20000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 30000);
    /* Periodic to one-shot: goes on from where it is, once. */
    wr(1, LVTT, 0x91);
    g_assert_cmpuint(rd(1, TMCCT), ==, 30000);
    step_ns(30000);
    g_assert_cmpuint(fired(1, 0x91), ==, 1);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    wr(1, LVTT, 0x20091); /* and stays at 0 */
    step_ns(200000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    /* Masked: it counts, without interrupt; 0 stops it. */
    wr(1, LVTT, 0x30091);
    wr(1, TMICT, 1000);
    step_ns(500);
    g_assert_cmpuint(rd(1, TMCCT), ==, 500);
    step_ns(5000);
    wr(1, LVTT, 0x20091);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    wr(1, TMICT, 0);
    step_ns(100000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    /* A change of the divider keeps the count. */
    wr(1, LVTT, 0x91);
    wr(1, TMICT, 1000);
    step_ns(400);
    wr(1, TDCR, 0x0);
    g_assert_cmpuint(rd(1, TMCCT), ==, 600);
    step_ns(1199);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    step_ns(1);
    g_assert_cmpuint(fired(1, 0x91), ==, 1);
}

/* A period no host can serve does not keep it busy. */
static void test_timer_storm(void)
{
    restart();
    wr(1, TDCR, 0xb);
    wr(1, LVTT, 0x20092);
    wr(1, TMICT, 1);
    step_ns(1000000);
    g_assert_cmpuint(fired(1, 0x92), ==, 1);
    wr(1, TMICT, 0);
}

static void test_tsc_deadline(void)
{
    restart();
    ops->tsc_deadline_set(cpu(1), 1); /* not in this mode: ignored */
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    wr(1, LVTT, 0x40093);
    wr(1, TMICT, 1000);
    g_assert_cmpuint(rd(1, TMICT), ==, 0);
    ops->tsc_deadline_set(cpu(1), x86_tsc_read(&cpus[1]) - 1); /* past: at once */
    g_assert_cmpuint(fired(1, 0x93), ==, 1);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    ops->tsc_deadline_set(cpu(1), UINT64_MAX);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, UINT64_MAX);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    wr(1, LVTT, 0x93); /* a change of mode disarms */
    wr(1, LVTT, 0x40093);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    ops->tsc_deadline_set(cpu(1), UINT64_MAX);
    ops->tsc_deadline_set(cpu(1), 0);
    ops->tsc_deadline_set(cpu(1), x86_tsc_read(&cpus[1]) + 20000);
    step_ns(9990);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    step_ns(20);
    g_assert_cmpuint(fired(1, 0x93), ==, 1);
    step_ns(100000);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    g_assert_cmpint(ops->timer_deadline(cpu(1)), ==, INT64_MAX);
}

/* An armed timer is looked at again when the machine goes on. */
static void test_resume(void)
{
    restart();
    runstate_notify(RUN_STATE_RUNNING);
    g_assert_cmphex(who(CPU_REQ_TIMER), ==, BIT(N) - 1);
}

/* ---- x2APIC ---- */

#define EN  0x800ull
#define EXT 0x400ull

static void test_base(void)
{
    static const struct {
        uint64_t from, to;
        bool ok;
    } t[] = {
        { EN, EN | EXT, true },       { EN, 0, true },   { EN, EXT, false },
        { EN | EXT, EN, false },      { EN | EXT, 0, true }, { EN | EXT, EXT, false },
        { 0, EN | EXT, false },       { 0, EN, true },   { 0, EXT, false },
        { EN | EXT, EN | EXT, true },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
        restart();
        if (t[i].from & EXT) {
            g_assert_true(ops->base_set(cpu(1), 0xfee00000 | EN | EXT));
        } else {
            g_assert_true(ops->base_set(cpu(1), 0xfee00000 | t[i].from));
        }
        g_assert_true(ops->base_set(cpu(1), 0xfee00000 | t[i].to) == t[i].ok);
        g_assert_cmphex(ops->base_get(cpu(1)), ==, 0xfee00000 | (t[i].ok ? t[i].to : t[i].from));
    }
    restart();
    g_assert_false(ops->base_set(cpu(1), 0xfee00000 | EN | 1)); /* reserved */
    g_assert_false(ops->base_set(cpu(1), 1ull << 40 | EN));     /* beyond MAXPHYADDR */
    g_assert_true(ops->base_set(cpu(1), 0xfec10000 | EN));
    g_assert_cmphex(ops->base_get(cpu(0)), ==, 0xfee00000 | EN | 0x100);
    /* A disabled one gets nothing, and comes back as after reset. */
    wr(2, TPR, 0x40);
    wr(2, ID, 9u << 24);
    g_assert_true(ops->base_set(cpu(2), 0xfee00000));
    ipi(0, 2, 0x66);
    ipi(0, 9, 0x4400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(9));
    g_assert_cmphex(ops->tpr_get(cpu(2)), ==, 4); /* CR8 works on */
    g_assert_true(ops->base_set(cpu(2), 0xfee00000 | EN));
    g_assert_cmphex(rd(2, SVR), ==, 0xff);
    g_assert_cmphex(rd(2, ID), ==, 2u << 24);
    /* No x2APIC in this processor. */
    cpus[3].feat[FEAT_1_ECX] = 0;
    restart();
    g_assert_false(ops->base_set(cpu(3), 0xfee00000 | EN | EXT));
    cpus[3].feat[FEAT_1_ECX] = BIT(21);
    restart();
}

static bool msr_ok(uint32_t msr)
{
    uint64_t v;

    return ops->msr_read(cpu(1), msr, &v);
}

static void test_x2apic(void)
{
    uint64_t v;
    unsigned readable = 0;

    restart();
    g_assert_false(msr_ok(0x802)); /* not in this mode */
    g_assert_false(ops->msr_write(cpu(1), 0x808, 0));
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(ops->base_set(cpu(i), ops->base_get(cpu(i)) | EXT));
    }
    g_assert_true(ops->msr_read(cpu(18), 0x802, &v));
    g_assert_cmphex(v, ==, 18);
    g_assert_true(ops->msr_read(cpu(18), 0x80d, &v));
    g_assert_cmphex(v, ==, 0x00010004);
    for (uint32_t msr = 0x800; msr < 0x900; msr++) {
        readable += msr_ok(msr);
    }
    /* ID, version, TPR, PPR, LDR, SVR, 24 of ISR TMR IRR, ESR, ICR, 6 LVT, 2 counts, divider. */
    g_assert_cmpuint(readable, ==, 6 + 24 + 2 + 6 + 3);
    g_assert_false(msr_ok(0x80b));
    g_assert_false(msr_ok(0x80e));
    g_assert_false(msr_ok(0x831));
    g_assert_false(msr_ok(0x83f));
    g_assert_false(ops->msr_write(cpu(1), 0x802, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x80d, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x839, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x820, 0));
    g_assert_false(ops->msr_write(cpu(1), 0x80b, 1)); /* EOI takes 0 only */
    g_assert_true(ops->msr_write(cpu(1), 0x80b, 0));
    g_assert_false(ops->msr_write(cpu(1), 0x828, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x808, 0x100));
    g_assert_false(ops->msr_write(cpu(1), 0x80f, 0x2ff));
    g_assert_false(ops->msr_write(cpu(1), 0x808, 1ull << 32));
    g_assert_false(ops->msr_write(cpu(1), 0x830, 0x2000));

    g_assert_true(ops->msr_write(cpu(1), 0x83f, 0x45)); /* self IPI */
    g_assert_true(ops->msr_read(cpu(1), 0x822, &v));
    g_assert_cmphex(v, ==, 0x20);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x45);
    g_assert_true(ops->msr_write(cpu(1), 0x80b, 0));

    g_assert_true(ops->msr_write(cpu(1), 0x830, 17ull << 32 | 0x4400));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(17));
    g_assert_true(ops->msr_read(cpu(1), 0x830, &v));
    g_assert_cmphex(v, ==, 17ull << 32 | 0x4400);
    /* Logical: cluster 1, members 0 and 3; cluster 0, member 15. */
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0x10009ull << 32 | 0xc00));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(16) | BIT(19));
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0x08000ull << 32 | 0xc00));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(15));
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0xffffffffull << 32 | 0x400));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(N) - 1);
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0xffull << 32 | 0x400)); /* no broadcast here */
    g_assert_cmphex(who(CPU_REQ_NMI), ==, 0);
    /* 8-bit messages reach the first cluster. */
    ops->send_msi(0xfee05000, 0x400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(5));
    ops->send_msi(0xfee84004, 0x400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(2) | BIT(7));
    /* INIT stays in this mode. */
    ops->cpu_reset(cpu(4), true);
    g_assert_cmphex(ops->base_get(cpu(4)) & (EN | EXT), ==, EN | EXT);
}

/* ---- The page ---- */

static void test_page(void)
{
    static MemoryRegion mr;

    restart();
    apic_mmio_init(&mr);
    memory_region_add_subregion(memory_root(), 0xfee00000, &mr, 0);
    current_cpu = cpu(2);
    g_assert_cmphex(address_space_load(&address_space_memory, 0xfee00020, 4), ==, 2u << 24);
    address_space_store(&address_space_memory, 0xfee00080, 0x70, 4);
    g_assert_cmphex(rd(2, TPR), ==, 0x70);
    address_space_store(&address_space_memory, 0xfee03000, 0x400, 4);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(3));
    g_assert_true(ops->base_set(cpu(2), 0xfee00000)); /* off: nobody answers */
    g_assert_cmphex(address_space_load(&address_space_memory, 0xfee00020, 4), ==, UINT32_MAX);
    address_space_store(&address_space_memory, 0xfee00080, 0x400, 4);
    current_cpu = NULL;
    address_space_store(&address_space_memory, 0xfee04000, 0x400, 4);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(4));
    memory_region_del_subregion(memory_root(), &mr);
}

static void test_state(void)
{
    uint8_t *a = NULL, *b = NULL;
    size_t alen = 0, blen = 0;

    restart();
    wr(1, LDR, 0x02000000);
    wr(1, TPR, 0x20);
    wr(1, LVTT, 0x20094);
    wr(1, TMICT, 123456);
    ipi(0, 1, 0x80);
    ops->cpu_ack(cpu(1));
    ipi(0, 1, 0x81);
    vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu(1)), &a, &alen);
    ops->cpu_reset(cpu(1), false);
    take_requests(1);
    ipi(0, 2, 0x844);
    g_assert_cmphex(who_got(0x44), ==, 0);
    g_assert_true(vmstate_load(&apic_vmstate, apic_vmstate_opaque(cpu(1)), a, alen, NULL,
                               &error_abort));
    vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu(1)), &b, &blen);
    g_assert_cmpmem(a, alen, b, blen);
    g_assert_true(take_requests(1) & CPU_REQ_INTERRUPT);
    wr(1, EOI, 0);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x81);
    wr(1, EOI, 0);
    wr(1, TPR, 0);
    take_requests(1);
    ipi(0, 2, 0x844); /* the destination tables are back, too */
    g_assert_cmphex(who_got(0x44), ==, BIT(1));
    g_free(a);
    g_free(b);
}

/* ---- Threads ---- */

#define SENDERS 3
#define IPIS    100000

static _Atomic unsigned received, sent;

static void *sender(void *opaque)
{
    unsigned me = GPOINTER_TO_UINT(opaque);

    for (unsigned i = 0; i < IPIS; i++) {
        ipi(me, 1, 0x40 + me); /* its own vector: each waits until the last was seen */
        atomic_fetch_add(&sent, 1);
        while (rd(1, IRR + 0x20) & BIT(me)) {
            g_thread_yield();
        }
    }
    return NULL;
}

/* The receiver looks only after a request: one that is lost hangs the test. */
static void *receiver(void *opaque)
{
    while (atomic_load(&received) < SENDERS * IPIS) {
        int vector;

        if (!(take_requests(1) & CPU_REQ_INTERRUPT)) {
            g_thread_yield();
            continue;
        }
        while ((vector = ops->cpu_ack(cpu(1))) >= 0) {
            wr(1, EOI, 0);
            atomic_fetch_add(&received, 1);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    GThread *t[SENDERS + 1];

    restart();
    t[SENDERS] = g_thread_new("receiver", receiver, NULL);
    for (unsigned i = 0; i < SENDERS; i++) {
        t[i] = g_thread_new("sender", sender, GUINT_TO_POINTER(i + 2));
    }
    for (unsigned i = 0; i <= SENDERS; i++) {
        g_thread_join(t[i]);
    }
    g_assert_cmpuint(received, ==, SENDERS * IPIS);
}

static void pic_out(void *opaque, int n, int level)
{
    apic_set_lint0(opaque, n, level);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    irqchip = &irqchip_user;
    device_test_new("isa-i8259");
    device_test_new("ioapic");
    pic_set_output((IrqLine){ .set = pic_out });
    for (unsigned i = 0; i < N; i++) {
        cpus[i].base.index = i;
        cpus[i].apic_id = i;
        cpus[i].phys_bits = 40;
        cpus[i].tsc_khz = 2000000;
        cpus[i].tsc_mult = x86_tsc_mult(2000000);
        cpus[i].feat[FEAT_1_ECX] = BIT(21);
        test_cpu_add(cpu(i));
        ops->cpu_init(cpu(i));
    }
    g_test_add_func("/apic/registers", test_registers);
    g_test_add_func("/apic/priority", test_priority);
    g_test_add_func("/apic/physical", test_physical);
    g_test_add_func("/apic/shorthands", test_shorthands);
    g_test_add_func("/apic/logical-flat", test_logical_flat);
    g_test_add_func("/apic/logical-cluster", test_logical_cluster);
    g_test_add_func("/apic/lowest-priority", test_lowest_priority);
    g_test_add_func("/apic/errors", test_errors);
    g_test_add_func("/apic/level-eoi", test_level_eoi);
    g_test_add_func("/apic/msi", test_msi);
    g_test_add_func("/apic/extint", test_extint);
    g_test_add_func("/apic/lint-modes", test_lint_modes);
    g_test_add_func("/apic/timer", test_timer);
    g_test_add_func("/apic/timer-storm", test_timer_storm);
    g_test_add_func("/apic/tsc-deadline", test_tsc_deadline);
    g_test_add_func("/apic/resume", test_resume);
    g_test_add_func("/apic/base", test_base);
    g_test_add_func("/apic/x2apic", test_x2apic);
    g_test_add_func("/apic/page", test_page);
    g_test_add_func("/apic/state", test_state);
    g_test_add_func("/apic/threads", test_threads);
    return g_test_run();
}
