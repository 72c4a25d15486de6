/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One switch of profiles. It goes in steps such that whatever the host may refuse comes first and
 * is undone by something it never refuses: affinity, then what raises a thread or changes its
 * realtime policy at the higher of both priorities, and only then what lowers one. The order of
 * threads keeps those that serve devices above the CPUs at every moment.
 */
#include "realtime/profile.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <string.h>

#include "realtime/cpulist.h"

typedef bool StepFn(QemuThread *t, RealtimeRefusal *why);

static bool is_realtime(int policy)
{
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool refused(const QemuThread *t, int err, int what, RealtimeRefusal *why)
{
    if (!why->err) { /* the first one counts */
        why->err = err;
        why->what = what;
        why->tid = atomic_load(&t->tid);
        g_strlcpy(why->thread, t->name, sizeof(why->thread));
        why->policy = t->want.policy;
        why->priority = t->want.priority;
        why->affinity = t->want.affinity;
    }
    return false;
}

static bool takes_part(const QemuThread *t)
{
    return t->cls != THREAD_HELPER;
}

/* ---- Steps, each for one thread ---- */

static bool step_begin(QemuThread *t, RealtimeRefusal *why)
{
    int err = qemu_thread_get_sched(atomic_load(&t->tid), &t->now);

    /* A deadline that somebody gave it could not be given back. */
    if (!err && t->now.policy > SCHED_IDLE) {
        err = EBUSY;
    }
    if (err) {
        return refused(t, err, REFUSED_POLICY, why);
    }
    t->former = t->now;
    return true;
}

static bool step_affinity(QemuThread *t, RealtimeRefusal *why)
{
    pid_t tid = atomic_load(&t->tid);
    QemuSched got;

    if (!t->want.affinity_known || qemu_cpu_set_equal(&t->want.affinity, &t->now.affinity)) {
        return true;
    }
    int err = qemu_thread_set_affinity(tid, &t->want.affinity);
    if (!err) {
        err = qemu_thread_get_sched(tid, &got);
    }
    if (err) {
        return refused(t, err, REFUSED_AFFINITY, why);
    }
    /* A cpuset takes away silently what it does not permit. */
    t->now.affinity = got.affinity;
    return true;
}

static bool set_policy(QemuThread *t, int policy, int priority, RealtimeRefusal *why)
{
    if (t->now.policy == policy && t->now.priority == priority) {
        return true;
    }
    int err = qemu_thread_set_policy(atomic_load(&t->tid), policy, priority);
    if (err) {
        return refused(t, err, REFUSED_POLICY, why);
    }
    t->now.policy = policy;
    t->now.priority = priority;
    return true;
}

/* To the wanted policy, but no lower than it is. */
static bool step_raise(QemuThread *t, RealtimeRefusal *why)
{
    if (!is_realtime(t->want.policy)) {
        return true;
    }
    int keep = is_realtime(t->now.policy) ? t->now.priority : 0;
    return set_policy(t, t->want.policy, MAX(keep, t->want.priority), why);
}

static bool step_lower(QemuThread *t, RealtimeRefusal *why)
{
    return set_policy(t, t->want.policy, t->want.priority, why);
}

/* What counts is what the kernel says at the end. */
static bool step_verify(QemuThread *t, RealtimeRefusal *why)
{
    QemuSched got;
    int err = qemu_thread_get_sched(atomic_load(&t->tid), &got);

    if (err || got.policy != t->want.policy || got.priority != t->want.priority) {
        return refused(t, err ? err : EPERM, REFUSED_POLICY, why);
    }
    if (t->want.affinity_known && !qemu_cpu_set_within(&got.affinity, &t->want.affinity)) {
        return refused(t, EINVAL, REFUSED_AFFINITY, why);
    }
    return true;
}

/* ---- All threads ---- */

/* stop: at the first refusal. */
static bool each(StepFn *fn, ThreadClass cls, bool self, bool stop, RealtimeRefusal *why)
{
    bool ok = true;

    for (QemuThread *t = qemu_threads_next(NULL); t && (ok || !stop); t = qemu_threads_next(t)) {
        if (t->cls == cls && qemu_thread_is_self(t) == self) {
            ok &= fn(t, why);
        }
    }
    return ok;
}

/* The thread that does it first, then those that serve devices, then CPUs. */
static bool from_above(StepFn *fn, bool stop, RealtimeRefusal *why)
{
    bool ok = each(fn, THREAD_EVENT, true, stop, why);

    ok = (ok || !stop) && each(fn, THREAD_EVENT, false, stop, why) && ok;
    return (ok || !stop) && each(fn, THREAD_VCPU, false, stop, why) && ok;
}

static bool from_below(StepFn *fn, bool stop, RealtimeRefusal *why)
{
    bool ok = each(fn, THREAD_VCPU, false, stop, why);

    ok = (ok || !stop) && each(fn, THREAD_EVENT, false, stop, why) && ok;
    return (ok || !stop) && each(fn, THREAD_EVENT, true, stop, why) && ok;
}

static bool apply(bool stop, RealtimeRefusal *why)
{
    bool ok = from_above(step_affinity, stop, why);

    ok = (ok || !stop) && from_above(step_raise, stop, why) && ok;
    ok = (ok || !stop) && from_below(step_lower, stop, why) && ok;
    return (ok || !stop) && from_above(step_verify, stop, why) && ok;
}

static void want_of(const QemuRealtimeProfile *to)
{
    for (QemuThread *t = qemu_threads_next(NULL); t; t = qemu_threads_next(t)) {
        if (takes_part(t)) {
            qemu_thread_wanted(t, to, &t->want);
        }
    }
}

static void want_former(void)
{
    for (QemuThread *t = qemu_threads_next(NULL); t; t = qemu_threads_next(t)) {
        if (takes_part(t)) {
            t->want = t->former;
        }
    }
}

bool realtime_switch_threads(const QemuRealtimeProfile *to, RealtimeRefusal *why)
{
    RealtimeRefusal ignored;
    bool ok;

    memset(why, 0, sizeof(*why));
    qemu_threads_hold();
    want_of(to);
    ok = from_above(step_begin, true, why);
    if (!ok) {
        why->restored = true; /* nothing was changed */
    } else {
        ok = apply(true, why);
        if (ok) {
            qemu_realtime_set_profile(to);
        } else {
            memset(&ignored, 0, sizeof(ignored));
            want_former();
            why->restored = apply(false, &ignored);
        }
    }
    qemu_threads_release();
    return ok;
}

/* ---- What to tell ---- */

char *realtime_refusal_text(const RealtimeRefusal *why)
{
    static const char *const names[] = { "SCHED_OTHER", "SCHED_FIFO", "SCHED_RR" };
    char cpus[CPU_SET_TEXT_MAX];
    const char *end = why->restored ? "every thread has what it had before"
                                    : "and NOT EVERY THREAD could be given back what it had";

    if (why->what == REFUSED_AFFINITY) {
        return g_strdup_printf("the host refused thread '%s' (%d) host CPUs %s: %s (a cpuset may "
                               "forbid them); %s",
                               why->thread, why->tid,
                               cpu_set_format(&why->affinity, cpus, sizeof(cpus)),
                               g_strerror(why->err), end);
    }
    return g_strdup_printf("the host refused thread '%s' (%d) policy %s with priority %d: %s "
                           "(RLIMIT_RTPRIO, CAP_SYS_NICE, the cpu cgroup or a seccomp filter may "
                           "have changed); %s",
                           why->thread, why->tid, names[CLAMP(why->policy, 0, 2)], why->priority,
                           g_strerror(why->err), end);
}
