/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers armed at random, on several vCPUs that halt, compute, and send each other IPIs: none may be
 * lost, however a wake-up, a kick and an expiry fall together. How late they came is printed; that
 * depends on the host, so only what can be no host's doing fails.
 */
#include "guest.h"

#define CPUS    4
#define MS      8000       /* how long */
#define LOST_NS 5000000000 /* nobody is held off for so long */

enum { VECTOR_TIMER = 0x51, VECTOR_IPI = 0x52, VECTOR_PIT = 0x53 };
enum { ONE_SHOT, PERIODIC, DEADLINE, PIT, KINDS };
/* Of a round's random number. */
#define BIT_IPI  (1ull << 50)
#define BIT_HALT (1ull << 51)
static const char *const kind_names[KINDS] = { "one-shot", "periodic", "TSC deadline", "PIT" };

typedef struct Cpu {
    volatile u32 fired;      /* timer interrupts taken */
    volatile u64 fired_tsc;  /* when the last one was */
    volatile u32 ipis;
    u64 worst[KINDS];
    u32 count[KINDS], early, lost;
    u64 random;
    u8 pad[64];
} Cpu;

static Cpu cpus[CPUS];
static u64 end;
static bool has_deadline;

static u64 draw(Cpu *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random;
}

static void on_timer(Regs *r)
{
    Cpu *c = &cpus[apic_id()];

    c->fired_tsc = rdtsc();
    c->fired++;
    apic_eoi();
}

static void on_ipi(Regs *r)
{
    cpus[apic_id()].ipis++;
    apic_eoi();
}

/* Arms; returns the earliest TSC at which the interrupt may come. Interrupts are off. */
static u64 arm(Cpu *c, unsigned kind, u32 ns)
{
    u64 due = rdtsc() + ns;
    u32 ticks = (u32)((u64)ns * 1193182 / 1000000000) + 2;

    switch (kind) {
    case ONE_SHOT:
        apic_write(0x320, VECTOR_TIMER);
        apic_write(0x380, ns);
        break;
    case PERIODIC:
        apic_write(0x320, 0x20000 | VECTOR_TIMER);
        apic_write(0x380, ns);
        break;
    case DEADLINE:
        apic_write(0x320, 0x40000 | VECTOR_TIMER);
        __asm__ volatile("mfence");
        wrmsr(0x6e0, due);
        break;
    case PIT: /* CPU 0 only: channel 0, mode 0, through the I/O APIC */
        outb(0x43, 0x30);
        outb(0x40, (u8)ticks);
        outb(0x40, (u8)(ticks >> 8));
        break;
    }
    return due;
}

static void disarm(unsigned kind)
{
    if (kind == PERIODIC || kind == ONE_SHOT) {
        apic_write(0x380, 0);
    }
    apic_write(0x320, 0x10000 | VECTOR_TIMER);
}

/* Until the timer fired: halted, or computing with interrupts on. False: it was lost. */
static bool wait_fired(Cpu *c, u32 before, u64 due, bool halts)
{
    while (c->fired == before) {
        if (halts) {
            sti_hlt();
        } else {
            sti();
            for (unsigned i = 0; i < 50 && c->fired == before; i++) {
                cpu_pause();
            }
        }
        cli();
        if (c->fired == before && rdtsc() > due + LOST_NS) {
            return false;
        }
    }
    return true;
}

static void run(void *arg)
{
    unsigned id = apic_id();
    Cpu *c = &cpus[id];

    c->random = 0x9e3779b97f4a7c15ull * (id + 1);
    apic_write(0x3e0, 0xb); /* divide by 1: 1 GHz, as the TSC */
    while (rdtsc() < end) {
        u64 r = draw(c), due;
        unsigned kind = (unsigned)(r % KINDS);
        u32 before, ns = 1000 + (u32)(draw(c) % (1u << (11 + r / KINDS % 11)));

        if ((kind == PIT && id) || (kind == DEADLINE && !has_deadline)) {
            kind = ONE_SHOT;
        }
        cli();
        before = c->fired;
        due = arm(c, kind, ns);
        if (r & BIT_IPI) {
            apic_ipi((id + 1 + (unsigned)(r >> 40) % (CPUS - 1)) % CPUS, 0x4000 | VECTOR_IPI);
        }
        if (!wait_fired(c, before, due, r & BIT_HALT)) {
            c->lost++;
            break;
        }
        disarm(kind);
        if (kind != PIT && c->fired_tsc < due) {
            c->early++;
        } else if (c->fired_tsc > due && c->fired_tsc - due > c->worst[kind]) {
            c->worst[kind] = c->fired_tsc - due;
        }
        c->count[kind]++;
        sti(); /* what came late of a periodic one, and IPIs */
        cli();
    }
}

void test_main(void)
{
    u32 r[4];

    cpuid(1, 0, r);
    has_deadline = r[2] & (1u << 24);
    apic_enable();
    set_handler(VECTOR_TIMER, on_timer);
    set_handler(VECTOR_PIT, on_timer);
    set_handler(VECTOR_IPI, on_ipi);
    outb(0x43, 0x30); /* stops it: the board leaves it at 18.2 Hz, as firmware does */
    ioapic_write(0x10 + 2 * 2 + 1, 0);
    ioapic_write(0x10 + 2 * 2, VECTOR_PIT);
    check_eq("CPUs", smp_start(CPUS), CPUS);
    end = rdtsc() + MS * 1000000ull;
    for (unsigned i = 1; i < CPUS; i++) {
        on_cpu(i, run, NULL);
    }
    run(NULL);
    for (unsigned i = 1; i < CPUS; i++) {
        wait_cpu(i);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        u64 worst = 0, count = 0;

        for (unsigned i = 0; i < CPUS; i++) {
            count += cpus[i].count[k];
            worst = cpus[i].worst[k] > worst ? cpus[i].worst[k] : worst;
        }
        print(kind_names[k]);
        print(": ");
        print_hex(count);
        print(" fired, the latest by (ns) ");
        print_hex(worst);
        print("\n");
        check("timers of each kind", count > 20 || (k == DEADLINE && !has_deadline));
    }
    for (unsigned i = 0; i < CPUS; i++) {
        check_eq("lost timers", cpus[i].lost, 0);
        check_eq("early timers", cpus[i].early, 0);
        check("IPIs arrived", cpus[i].ipis > 10);
    }
}
