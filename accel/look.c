/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long the host kept a vCPU from running between two of its looks at a clock. */
#include <time.h>
#include "accel/accel.h"
#include "accel/cpu.h"
#include "event/event.h"

/* Less than this is the cost of the instructions themselves. */
#define LEAST_NS 10000
/* For so long looks are noted: each costs a system call. Longer than any count takes. */
#define WATCH_NS 100000000

static int64_t thread_cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/*
 * In this order: what the host takes after a look's time was read is lost to the next one, and the
 * guest is given that same time.
 */
static void look_now(CpuLook *l)
{
    l->virtual_ns = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    l->cpu_ns = thread_cpu_ns();
}

int64_t cpu_look_begin(CPUState *cpu)
{
    if (!cpu || !cpu->accel || !cpu->accel->sees_clock_reads || clock_virtual_is_manual()) {
        return clock_get_ns(CLOCK_TYPE_VIRTUAL);
    }
    look_now(&cpu->look);
    cpu->look.end_ns = cpu->look.virtual_ns + WATCH_NS;
    cpu->look.lost_ns = cpu->look.begin_lost = 0;
    cpu->look.first = true;
    cpu->look.on = true;
    return cpu->look.virtual_ns;
}

int64_t cpu_look_note(CPUState *cpu)
{
    CpuLook *l = &cpu->look, last = *l;
    int64_t lost;

    look_now(l);
    lost = l->virtual_ns - last.virtual_ns - (l->cpu_ns - last.cpu_ns);
    lost = lost >= LEAST_NS ? lost : 0;
    l->lost_ns = last.first ? 0 : lost;
    l->begin_lost = last.first ? lost : last.begin_lost;
    l->first = false;
    l->on = l->virtual_ns < l->end_ns;
    return l->virtual_ns;
}

int64_t cpu_look_lost(CPUState *cpu, int64_t *begin_lost)
{
    int64_t lost = 0;

    *begin_lost = 0;
    if (cpu) {
        lost = cpu->look.lost_ns;
        *begin_lost = cpu->look.begin_lost;
        cpu->look.lost_ns = cpu->look.begin_lost = 0;
    }
    return lost;
}

/* ---- The tick ---- */

_Atomic int64_t cpu_look_due_ns = INT64_MAX;
static void (*tick_fn)(void *opaque);
static void *tick_opaque;

void cpu_look_set_tick(void (*fn)(void *opaque), void *opaque)
{
    tick_fn = fn;
    tick_opaque = opaque;
    cpu_look_tick_due(INT64_MAX);
}

void cpu_look_tick_due(int64_t virtual_ns)
{
    /* Where time is not the host's nobody is late. */
    atomic_store(&cpu_look_due_ns, clock_virtual_is_manual() ? INT64_MAX : virtual_ns);
}

void cpu_look_run_tick(int64_t now_ns)
{
    int64_t due = atomic_load(&cpu_look_due_ns);

    /* One vCPU is enough; fn says when the next is due. */
    if (tick_fn && now_ns - CPU_LOOK_OVERDUE_NS > due &&
        atomic_compare_exchange_strong(&cpu_look_due_ns, &due, INT64_MAX) &&
        !clock_virtual_is_manual()) {
        tick_fn(tick_opaque);
    }
}
