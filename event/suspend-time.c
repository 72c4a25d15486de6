/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual time that a vCPU counts (-icount), while the machine is suspended to RAM: nobody executes
 * instructions, so the main loop moves the clock from timer to timer, as a halted vCPU does.
 */
#include "event/event-internal.h"

static EventTimer pace;     /* when the next virtual timer is due, if time sleeps */
static EventPost look_post;
static _Atomic bool driving;
/* The two clocks when the suspend began; main loop. */
static int64_t begin_host, begin_virtual;

static void look(void *opaque)
{
    int64_t next = clock_virtual_next_deadline(), due;

    if (!atomic_load(&driving) || next == INT64_MAX) {
        return; /* suspend_time_earlier() says when there is one */
    }
    due = begin_host + (next - begin_virtual);
    if (clock_virtual_counted_sleeps() && clock_get_ns(CLOCK_TYPE_REALTIME) < due) {
        timer_mod(&pace, due);
        return;
    }
    clock_virtual_advance_to(next);
    /* Behind a wake-up that this timer asked for, which ends it. */
    event_post(event_loop_main(), &look_post);
}

void suspend_time_init(void)
{
    timer_init(&pace, event_loop_main(), CLOCK_TYPE_REALTIME, look, NULL);
    event_post_init(&look_post, look, NULL);
}

void suspend_time_begin(void)
{
    if (!clock_virtual_is_counted()) {
        return;
    }
    begin_host = clock_get_ns(CLOCK_TYPE_REALTIME);
    begin_virtual = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    atomic_store(&driving, true);
    event_post(event_loop_main(), &look_post);
}

void suspend_time_end(void)
{
    if (atomic_exchange(&driving, false)) {
        timer_del(&pace);
    }
}

void suspend_time_earlier(void)
{
    if (atomic_load(&driving)) {
        event_post(event_loop_main(), &look_post);
    }
}
