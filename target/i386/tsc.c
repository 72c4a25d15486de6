/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's time-stamp counter.
 *
 * Under TCG it is not the host's counter but the virtual clock, counted in periods of tsc_khz
 * (1 GHz unless tsc-frequency= says otherwise). So TSC, PIT, HPET, PM timer and the deadline timer
 * tick from one source and cannot disagree, whatever the host's load: a guest that calibrates one
 * against the other gets the right answer or notices that it was interrupted. It stands still while
 * the machine is stopped, is the same on every vCPU, needs no invariant TSC on the host, and has
 * the same rate on every host, which is why invtsc can be offered without tying the guest to one.
 */
#include "event/event.h"
#include "target/i386/cpu.h"

#define MULT_SHIFT 44

uint64_t x86_tsc_mult(uint32_t khz)
{
    return (uint64_t)(((unsigned __int128)khz << MULT_SHIFT) / 1000000);
}

static uint64_t ns_to_ticks(const X86CPU *cpu, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * cpu->tsc_mult >> MULT_SHIFT);
}

uint64_t x86_tsc_at(const X86CPU *cpu, int64_t virtual_ns)
{
    return ns_to_ticks(cpu, (uint64_t)virtual_ns) + (uint64_t)cpu->tsc_offset;
}

uint64_t x86_tsc_read(const X86CPU *cpu)
{
    return x86_tsc_at(cpu, clock_get_ns(CLOCK_TYPE_VIRTUAL));
}

void x86_tsc_zero_at(X86CPU *cpu, int64_t virtual_ns)
{
    cpu->tsc_offset = -(int64_t)ns_to_ticks(cpu, (uint64_t)virtual_ns);
}

void x86_tsc_write(X86CPU *cpu, uint64_t value)
{
    uint64_t delta = value - x86_tsc_read(cpu);

    cpu->tsc_offset = (int64_t)((uint64_t)cpu->tsc_offset + delta);
    cpu->tsc_adjust += delta;
}

int64_t x86_tsc_to_monotonic(const X86CPU *cpu, uint64_t tsc)
{
    int64_t now_ns = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    uint64_t now = ns_to_ticks(cpu, (uint64_t)now_ns) + (uint64_t)cpu->tsc_offset;
    unsigned __int128 ns;

    if (tsc <= now) { /* the comparison is unsigned: SDM 3A 11.5.4.1 */
        return clock_virtual_to_monotonic(now_ns);
    }
    ns = ((unsigned __int128)(tsc - now) << MULT_SHIFT) / cpu->tsc_mult + 1;
    if (ns > (uint64_t)(INT64_MAX - now_ns) / 2) {
        return INT64_MAX;
    }
    return clock_virtual_to_monotonic(now_ns + (int64_t)ns);
}
