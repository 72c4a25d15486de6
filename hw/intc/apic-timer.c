/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The local APIC's timer (SDM 3A 11.5.4): one-shot, periodic and TSC-deadline. It counts at 1 GHz
 * through the divider, on the virtual clock, so that it stands while the machine is stopped.
 *
 * Expiry is looked for on the vCPU's own thread, asked for by the vCPU's own host timer
 * (cpu_local_timer_arm); under a clock set by hand (qtest) an event timer of the main loop takes
 * its place. next_ns moves on by whole periods, so no lateness adds up.
 */
#include "hw/intc/apic-internal.h"
#include "qemu/runstate.h"
#include "target/i386/cpu.h"

/* The host timer may be due a little before the TSC says so (rounding): look again after this. */
#define TSC_RETRY_NS 1000

/* A periodic timer does not interrupt more often than this, whatever it is set to: a guest could
 * else keep its vCPU, and the host's timer, busy with nothing. The count it reads is exact. */
#define MIN_PERIOD_NS 10000

static unsigned timer_mode(const LocalApic *a)
{
    return LVT_TIMER_MODE(atomic_load_explicit(&a->lvt[APIC_LVT_TIMER], memory_order_relaxed));
}

static bool timer_masked(const LocalApic *a)
{
    return atomic_load_explicit(&a->lvt[APIC_LVT_TIMER], memory_order_relaxed) & LVT_MASKED;
}

/* Divide configuration bits 3, 1, 0: 000 divides by 2, 110 by 128, 111 by 1. */
static int64_t divisor(const LocalApic *a)
{
    unsigned code = (a->divide_conf & 3) | (a->divide_conf >> 1 & 4);

    return 1ll << ((code + 1) & 7);
}

static int64_t period_ns(const LocalApic *a)
{
    return (int64_t)a->initial_count * divisor(a);
}

/* Brings next_ns up to now. True if it expired. */
static bool timer_settle(LocalApic *a, int64_t now)
{
    int64_t period = period_ns(a);

    if (a->next_ns < 0 || a->next_ns > now) {
        return false;
    }
    if (timer_mode(a) == TIMER_PERIODIC && period > 0) {
        a->next_ns += ((now - a->next_ns) / period + 1) * period;
    } else {
        a->next_ns = -1;
    }
    return true;
}

static bool tsc_settle(LocalApic *a)
{
    if (!a->tsc_deadline || x86_tsc_read(x86_cpu(a->cpu)) < a->tsc_deadline) {
        return false;
    }
    a->tsc_deadline = 0;
    return true;
}

/* Virtual time at which an expiry is to be looked for, INT64_MAX for none. */
static int64_t count_deadline(const LocalApic *a)
{
    if (a->next_ns < 0 || timer_masked(a)) {
        return INT64_MAX;
    }
    if (timer_mode(a) == TIMER_PERIODIC && period_ns(a) < MIN_PERIOD_NS) {
        return MAX(a->next_ns, clock_get_ns(CLOCK_TYPE_VIRTUAL) + MIN_PERIOD_NS);
    }
    return a->next_ns;
}

int64_t apic_timer_deadline(LocalApic *a)
{
    int64_t soon, when;

    if (timer_mode(a) == TIMER_TSC_DEADLINE) {
        if (!a->tsc_deadline) {
            return INT64_MAX;
        }
        when = x86_tsc_to_monotonic(x86_cpu(a->cpu), a->tsc_deadline);
        soon = clock_get_ns(CLOCK_TYPE_REALTIME) + TSC_RETRY_NS;
        return MAX(when, soon);
    }
    when = count_deadline(a);
    return when == INT64_MAX ? when : clock_virtual_to_monotonic(when);
}

/* Virtual time of the TSC deadline, for a clock set by hand. */
static int64_t tsc_deadline_virtual(LocalApic *a)
{
    X86CPU *x86 = x86_cpu(a->cpu);
    uint64_t tsc = x86_tsc_read(x86);
    __uint128_t ns;

    if (a->tsc_deadline <= tsc) {
        return clock_get_ns(CLOCK_TYPE_VIRTUAL);
    }
    ns = (__uint128_t)(a->tsc_deadline - tsc) * 1000000u / MAX(x86->tsc_khz, 1u);
    return ns > INT64_MAX / 2 ? INT64_MAX : clock_get_ns(CLOCK_TYPE_VIRTUAL) + (int64_t)ns + 1;
}

static void timer_arm(LocalApic *a)
{
    int64_t when;

    if (likely(!clock_virtual_is_manual())) {
        cpu_local_timer_arm(a->cpu, apic_timer_deadline(a));
        return;
    }
    if (timer_mode(a) == TIMER_TSC_DEADLINE) {
        when = a->tsc_deadline ? tsc_deadline_virtual(a) : INT64_MAX;
    } else {
        when = count_deadline(a);
    }
    if (when == INT64_MAX) {
        timer_del(&a->manual_timer);
    } else {
        timer_mod(&a->manual_timer, when);
    }
}

/*
 * The host timer is armed for expiries that will be seen only. A masked TSC deadline is kept armed:
 * software may read the MSR to see that it passed.
 */
void apic_timer_check(LocalApic *a)
{
    bool expired = timer_mode(a) == TIMER_TSC_DEADLINE
                       ? tsc_settle(a)
                       : timer_settle(a, clock_get_ns(CLOCK_TYPE_VIRTUAL));

    if (expired) {
        apic_lvt_fire(a, APIC_LVT_TIMER);
    }
    timer_arm(a);
}

static void manual_timer_fn(void *opaque)
{
    apic_timer_check(opaque);
}

void apic_timer_write_initial(LocalApic *a, uint32_t value)
{
    if (timer_mode(a) == TIMER_TSC_DEADLINE) {
        return; /* ignored (11.5.4.1) */
    }
    a->initial_count = value;
    a->next_ns = value ? clock_get_ns(CLOCK_TYPE_VIRTUAL) + period_ns(a) : -1;
    timer_arm(a);
}

uint32_t apic_timer_current(LocalApic *a)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL), div = divisor(a);

    if (timer_mode(a) == TIMER_TSC_DEADLINE) {
        return 0;
    }
    /* An expiry found here still raises its interrupt. */
    if (timer_settle(a, now)) {
        apic_lvt_fire(a, APIC_LVT_TIMER);
        timer_arm(a);
    }
    return a->next_ns < 0 ? 0 : (uint32_t)((a->next_ns - now + div - 1) / div);
}

/* The count goes on from where it is, at the new rate. */
void apic_timer_write_divide(LocalApic *a, uint32_t value)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    uint32_t current = apic_timer_current(a);

    a->divide_conf = value;
    if (a->next_ns >= 0) {
        a->next_ns = now + (int64_t)current * divisor(a);
    }
    timer_arm(a);
}

void apic_timer_write_lvt(LocalApic *a, uint32_t value)
{
    unsigned old_mode = timer_mode(a), new_mode = LVT_TIMER_MODE(value);

    if (new_mode == 3) {
        /* Reserved; no timer this way. */
        new_mode = old_mode;
        value = (value & ~(3u << 17)) | old_mode << 17;
    }
    if (old_mode != TIMER_TSC_DEADLINE && timer_settle(a, clock_get_ns(CLOCK_TYPE_VIRTUAL))) {
        apic_lvt_fire(a, APIC_LVT_TIMER);
    }
    /* To and from TSC-deadline mode disarms the timer (11.5.4.1). */
    if ((old_mode == TIMER_TSC_DEADLINE) != (new_mode == TIMER_TSC_DEADLINE)) {
        a->next_ns = -1;
        a->initial_count = 0;
        a->tsc_deadline = 0;
    }
    atomic_store(&a->lvt[APIC_LVT_TIMER], value);
    timer_arm(a);
}

uint64_t apic_timer_tsc_deadline_get(LocalApic *a)
{
    if (timer_mode(a) != TIMER_TSC_DEADLINE) {
        return 0;
    }
    if (tsc_settle(a)) {
        apic_lvt_fire(a, APIC_LVT_TIMER);
        timer_arm(a);
    }
    return a->tsc_deadline;
}

void apic_timer_tsc_deadline_set(LocalApic *a, uint64_t tsc)
{
    if (timer_mode(a) == TIMER_TSC_DEADLINE) {
        a->tsc_deadline = tsc;
        apic_timer_check(a);
    }
}

void apic_timer_reset(LocalApic *a)
{
    a->initial_count = 0;
    a->divide_conf = 0;
    a->next_ns = -1;
    a->tsc_deadline = 0;
    timer_arm(a);
}

/* Virtual time went on: host deadlines moved, so each vCPU arms anew on its own thread. */
static void timer_run_state(void *opaque, RunState old, RunState now)
{
    LocalApic *a;

    if (now != RUN_STATE_RUNNING) {
        return;
    }
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        a = apic_by_index(i);
        if (a) {
            cpu_request(a->cpu, CPU_REQ_TIMER);
        }
    }
}

void apic_timer_init(LocalApic *a)
{
    static bool listening;

    if (!listening) {
        listening = true;
        runstate_add_listener(timer_run_state, NULL);
    }
    timer_init(&a->manual_timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, manual_timer_fn, a);
}
