/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several vCPUs: start, atomics, IPIs that wake from HLT and none lost. */
#include "guest.h"

#define CPUS 4
#define IPIS 1000000 /* or as many as IPI_MS allow */
#define IPI_MS 10000

static volatile u64 counter;
static volatile u32 got[CPUS], goal;
static u64 tsc_per_ms;

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

    while (got[id] < goal) {
        cli();
        if (got[id] < goal) {
            sti_hlt();
        }
    }
    cli();
}

/* Each wakes a CPU that is about to halt, halts or has just woken: none may be lost. */
static void ipis(void)
{
    u64 start = rdtsc(), limit = IPI_MS * tsc_per_ms;

    set_handler(0x40, on_ipi);
    goal = IPIS;
    on_cpu(1, sleeper, NULL);
    for (u32 i = 0; i < goal; i++) {
        u32 before = got[1];

        if (rdtsc() - start > limit) {
            goal = i + 1;
        }
        apic_ipi(1, 0x4040);
        while (got[1] == before) {
            cpu_pause();
        }
    }
    wait_cpu(1);
    check_eq("IPIs taken", got[1], goal);
    check("IPIs within the time", goal >= 1000);
}

static void broadcast(void)
{
    for (unsigned c = 0; c < CPUS; c++) {
        got[c] = 0;
    }
    goal = 10;
    for (unsigned c = 1; c < CPUS; c++) {
        on_cpu(c, sleeper, NULL);
    }
    for (int i = 0; i < 10; i++) {
        u32 want = (u32)i + 1;

        apic_write(0x300, 0x000c4040); /* all but self */
        for (unsigned c = 1; c < CPUS; c++) {
            while (got[c] < want) {
                cpu_pause();
            }
        }
    }
    for (unsigned c = 1; c < CPUS; c++) {
        wait_cpu(c);
        check_eq("broadcasts taken", got[c], goal);
    }
    check_eq("none to self", got[0], 0);
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

/* ---- A and D of a page-table entry that another CPU changes meanwhile ---- */

#define PTE_SW 0x200ull

static u8 page[4096] __attribute__((aligned(4096)));
static u64 *page_pte;
static volatile bool dirty_stop;
static volatile u32 lost;

static void change_pte(void *arg)
{
    bool set = false;

    while (!dirty_stop) {
        __asm__ volatile("lock btcq $9, %0" : "+m"(*page_pte));
        set = !set;
        if (((*(volatile u64 *)page_pte & PTE_SW) != 0) != set) {
            lost++;
            set = !set;
        }
    }
}

static void accessed_dirty(void)
{
    u32 missed = 0, rounds = host_interprets() ? 1000 : 100000;

    page_pte = pte_of((u64)page);
    on_cpu(1, change_pte, NULL);
    for (u32 i = 0; i < rounds; i++) {
        __asm__ volatile("lock andq %1, %0" : "+m"(*page_pte) : "r"(~0x60ull));
        __asm__ volatile("invlpg (%0)" : : "r"(page) : "memory");
        if (i & 1) {
            (void)*(volatile u8 *)page;
        }
        *(volatile u8 *)page = 1;
        missed += (*(volatile u64 *)page_pte & 0x60) != 0x60;
    }
    dirty_stop = true;
    wait_cpu(1);
    check_eq("changes of a PTE lost to A and D", lost, 0);
    check_eq("A or D lost to changes of the PTE", missed, 0);
}

void test_main(void)
{
    tsc_per_ms = rdtsc();
    delay_ms(10);
    tsc_per_ms = (rdtsc() - tsc_per_ms) / 10;
    check_eq("CPUs", smp_start(CPUS), CPUS);
    accessed_dirty();
    atomics();
    ipis();
    broadcast();
    nmi();
}
