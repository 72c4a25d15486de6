/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Local APICs: registers, priority, addressing, IPIs, pins. */
#include "apic-test.h"

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

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    apic_test_init();
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
    return g_test_run();
}
