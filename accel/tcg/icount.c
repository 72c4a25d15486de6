/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -icount: virtual time by retired instructions. docs/devel/translator.md, "Deterministic runs". */
#include <errno.h>
#include <stdlib.h>
#include "accel/accel.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/icount.h"
#include "event/event.h"

AccelIcount accel_icount;

static int64_t count_to_ns(const TcgCpu *t, uint64_t icount)
{
    return t->count->bias + (int64_t)(icount << accel_icount.shift);
}

static int64_t count_now_ns(const TcgCpu *t)
{
    return count_to_ns(t, t->icount);
}

/* The first count at which virtual time is at least ns; UINT64_MAX if that is far away. */
static uint64_t count_at_ns(const TcgCpu *t, int64_t ns)
{
    uint64_t delta, step = 1ull << accel_icount.shift;

    if (ns <= t->count->bias) {
        return 0;
    }
    delta = (uint64_t)ns - (uint64_t)t->count->bias;
    return (delta + step - 1) >> accel_icount.shift;
}

/* Someone else's timer, a character that came in: the vCPU has to look when it is due. Its own
 * accesses to devices it looks after anyway. */
static void timer_is_earlier(void)
{
    CPUState *cpu = cpu_get(0);

    if (cpu && current_cpu != cpu && cpu->accel) {
        cpu_request(cpu, CPU_REQ_TIMER);
    }
}

bool tcg_count_init(X86CPU *c, Error **errp)
{
    TcgCpu *t = c->tcg;

    if (!accel_icount.enabled) {
        return true;
    }
    t->count = calloc(1, sizeof(*t->count));
    if (!t->count) {
        tcg_no_memory(c, "instruction counter", sizeof(*t->count), errp);
        return false;
    }
    t->counting = true;
    clock_virtual_set_counted(accel_icount.sleep, timer_is_earlier);
    t->count->bias = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    return state_log_open(errp);
}

void tcg_count_fini(X86CPU *c)
{
    if (c->tcg->counting) {
        state_log_close(c);
        free(c->tcg->count);
        c->tcg->count = NULL;
    }
}

/* At most INT64_MAX instructions, as translated code counts down a signed word. */
static uint64_t next_stop(const TcgCpu *t)
{
    uint64_t stop = MIN(state_log_next(t->icount), count_at_ns(t, clock_virtual_next_deadline()));

    stop = MAX(stop, t->icount + 1);
    return MIN(stop, t->icount + INT64_MAX / 2);
}

void tcg_count_attend(X86CPU *c)
{
    TcgCpu *t = c->tcg;

    state_log_attend(c);
    /* Timers may change the memory map. */
    memory_read_unlock();
    clock_virtual_advance_to(count_now_ns(t));
    t->count_limit = next_stop(t);
    memory_read_lock();
    t->clock_exact = true;
    if (!atomic_load_explicit(&c->base.halted, memory_order_relaxed)) {
        t->count->halt_ns = 0;
    }
}

void tcg_count_resumed(X86CPU *c)
{
    TcgCpu *t = c->tcg;

    if (t->counting) {
        int64_t passed = clock_get_ns(CLOCK_TYPE_VIRTUAL) - count_now_ns(t);

        /* Else the clock has not come to where this CPU is: it is set when the guest may look. */
        t->count->bias += MAX(passed, 0);
        t->count->halt_ns = 0;
    }
}

void tcg_count_alone(X86CPU *c, const Insn *i)
{
    TcgCpu *t = c->tcg;

    if (t->block && i) {
        tcg_leave_before(c, i, true);
    }
    /* An event is being delivered: between instructions, so icount is right, and no timer is due. */
    clock_virtual_set(count_now_ns(t));
    t->clock_exact = true;
}

void tcg_count_clock_set(X86CPU *c, const Insn *i)
{
    /* No timer is due before count_limit, and the block ends before that. */
    clock_virtual_set(count_to_ns(c->tcg, tcg_count_before(c, i)));
}

int64_t tcg_count_deadline(X86CPU *c)
{
    int64_t next = clock_virtual_next_deadline();

    if (next == INT64_MAX || !c->tcg->count->halt_ns) {
        return INT64_MAX;
    }
    return c->tcg->count->halt_ns + next - count_now_ns(c->tcg);
}

bool tcg_count_halted(X86CPU *c)
{
    TcgCpu *t = c->tcg;
    int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME), next = clock_virtual_next_deadline();

    if (next == INT64_MAX) {
        return false;
    }
    if (accel_icount.sleep) {
        if (!t->count->halt_ns) {
            t->count->halt_ns = now;
        }
        if (now < tcg_count_deadline(c)) {
            return false;
        }
        t->count->halt_ns = now;
    }
    t->count->bias += next - count_now_ns(t);
    return true;
}
