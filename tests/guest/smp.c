/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several vCPUs: start, atomics, IPIs that wake from HLT and none lost. */
#include "guest.h"

#define CPUS 4
#define IPIS 20000

static volatile u64 counter;
static volatile u32 got[CPUS];

static void count(void *arg)
{
    for (int i = 0; i < 50000; i++) {
        __asm__ volatile("lock incq %0" : "+m"(counter));
    }
}

static void atomics(void)
{
    counter = 0;
    for (unsigned c = 1; c < CPUS; c++) {
        on_cpu(c, count, NULL);
    }
    count(NULL);
    for (unsigned c = 1; c < CPUS; c++) {
        wait_cpu(c);
    }
    check_eq("LOCK INC by all", counter, 50000 * CPUS);
}

static void on_ipi(Regs *r)
{
    got[apic_id()]++;
    apic_eoi();
}

static void sleeper(void *arg)
{
    u32 id = apic_id();

    while (got[id] < IPIS) {
        cli();
        if (got[id] < IPIS) {
            sti_hlt();
        }
    }
    cli();
}

static void ipis(void)
{
    set_handler(0x40, on_ipi);
    on_cpu(1, sleeper, NULL);
    for (u32 i = 0; i < IPIS; i++) {
        u32 before = got[1];

        apic_ipi(1, 0x4040);
        while (got[1] == before) {
            cpu_pause();
        }
    }
    wait_cpu(1);
    check_eq("IPIs taken", got[1], IPIS);
}

static void broadcast(void)
{
    for (unsigned c = 0; c < CPUS; c++) {
        got[c] = IPIS - 10;
    }
    for (unsigned c = 1; c < CPUS; c++) {
        on_cpu(c, sleeper, NULL);
    }
    for (int i = 0; i < 10; i++) {
        u32 want = IPIS - 10 + (u32)i + 1;

        apic_write(0x300, 0x000c4040); /* all but self */
        for (unsigned c = 1; c < CPUS; c++) {
            while (got[c] < want) {
                cpu_pause();
            }
        }
    }
    for (unsigned c = 1; c < CPUS; c++) {
        wait_cpu(c);
        check_eq("broadcasts taken", got[c], IPIS);
    }
    check_eq("none to self", got[0], IPIS - 10);
}

static volatile u32 nmis;

static void on_nmi(Regs *r)
{
    nmis++;
}

static void wait_nmi(void *arg)
{
    while (!nmis) {
        __asm__ volatile("cli; hlt");
    }
}

static void nmi(void)
{
    set_handler(2, on_nmi);
    on_cpu(2, wait_nmi, NULL);
    delay_ms(5);
    apic_ipi(2, 0x4400);
    wait_cpu(2);
    check_eq("NMI wakes a halted CPU with IF clear", nmis, 1);
}

void test_main(void)
{
    check_eq("CPUs", smp_start(CPUS), CPUS);
    atomics();
    ipis();
    broadcast();
    nmi();
}
