/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Twenty vCPUs with local APICs and the words to drive them. */
#include "apic-test.h"

X86CPU cpus[N];
const IrqChipOps *const ops = &irqchip_user;

CPUState *cpu(unsigned i)
{
    return &cpus[i].base;
}
uint32_t rd(unsigned i, uint32_t reg)
{
    return ops->mmio_read(cpu(i), reg);
}
void wr(unsigned i, uint32_t reg, uint32_t v)
{
    ops->mmio_write(cpu(i), reg, v);
}

uint32_t take_requests(unsigned i)
{
    return atomic_exchange(&cpu_requests[i], 0);
}

/* Power-on state, software-enabled. */
void restart(void)
{
    apic_set_lint0(NULL, 0, 0);
    for (unsigned i = 0; i < N; i++) {
        ops->cpu_reset(cpu(i), false);
        wr(i, SVR, 0x1ff);
        take_requests(i);
    }
    step_ns(1000);
}

void ipi(unsigned from, uint8_t dest, uint32_t low)
{
    wr(from, ICR2, (uint32_t)dest << 24);
    wr(from, ICR, low);
}

/* The set of vCPUs with the vector in IRR, as a bit mask; clears it. */
uint32_t who_got(uint8_t vector)
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

uint32_t who(uint32_t req)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < N; i++) {
        if (take_requests(i) & req) {
            mask |= BIT(i);
        }
    }
    return mask;
}

static void pic_out(void *opaque, int n, int level)
{
    apic_set_lint0(opaque, n, level);
}

void apic_test_init(void)
{
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
        ops->cpu_reachable(cpu(i), true);
    }
}
