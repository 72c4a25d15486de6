/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The vCPU's own host timer: signalled to its thread, with no hop through the main loop. */
#include "cpus-internal.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <time.h>
#include "accel/irqchip.h"
#include "realtime/latency.h"

typedef struct LocalTimer {
    timer_t id;
    int64_t deadline;
} LocalTimer;

void cpu_local_timer_note(const CPUState *cpu)
{
    const LocalTimer *t = cpu->local_timer;
    int64_t late = t && t->deadline != INT64_MAX
                       ? clock_get_ns(CLOCK_TYPE_REALTIME) - t->deadline : -1;

    if (late >= 0) { /* else it was armed anew meanwhile */
        latency_timer_local(late);
    }
}

bool cpu_local_timer_create(CPUState *cpu, Error **errp)
{
    LocalTimer *t = g_new0(LocalTimer, 1);
    struct sigevent sev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIG_IPI };

    sev._sigev_un._tid = atomic_load(&cpu->thread.tid);
    if (timer_create(CLOCK_MONOTONIC, &sev, &t->id) < 0) {
        error_setg_errno(errp, errno, "cannot create the local timer of CPU %u", cpu->index);
        g_free(t);
        return false;
    }
    t->deadline = INT64_MAX;
    cpu->local_timer = t;
    return true;
}

void cpu_local_timer_delete(CPUState *cpu)
{
    LocalTimer *t = cpu->local_timer;

    if (t) {
        timer_delete(t->id);
        g_free(t);
        cpu->local_timer = NULL;
    }
}

void cpu_local_timer_arm(CPUState *cpu, int64_t deadline_ns)
{
    LocalTimer *t = cpu->local_timer;
    struct itimerspec its = { 0 };

    if (!t || t->deadline == deadline_ns) {
        return;
    }
    t->deadline = deadline_ns;
    if (deadline_ns != INT64_MAX) {
        /* An all-zero it_value would disarm; a time long past fires at once. */
        int64_t ns = MAX(deadline_ns, 1);

        its.it_value.tv_sec = ns / NANOSECONDS_PER_SECOND;
        its.it_value.tv_nsec = ns % NANOSECONDS_PER_SECOND;
    }
    timer_settime(t->id, TIMER_ABSTIME, &its, NULL);
}
