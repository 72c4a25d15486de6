/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorded -realtime parameters, and what they mean for a thread. The only file that sets a
 * scheduling policy.
 */
#include "qemu/thread.h"

#include "qemu-thread-internal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

static _Atomic(const QemuRealtimeProfile *) realtime_profile; /* in force; NULL: none */
static QemuCpuSet process_affinity; /* what the process was started with */

/* ---- Realtime parameters ---- */

void qemu_init_realtime_profile(const QemuRealtimeProfile *p)
{
    QemuSched s;

    if (qemu_thread_get_sched(0, &s) == 0) {
        process_affinity = s.affinity;
    }
    atomic_store(&realtime_profile, p);
}

void qemu_init_realtime(int policy, int max_priority)
{
    static QemuRealtimeProfile p = { .name = "default", .realtime = true };

    p.policy = policy;
    p.max_priority = max_priority;
    memset(&p.vcpus, 0xff, sizeof(p.vcpus));
    memset(p.vcpu_cpu, 0xff, sizeof(p.vcpu_cpu));
    qemu_init_realtime_profile(&p);
}

const QemuRealtimeProfile *qemu_realtime_profile(void)
{
    return atomic_load_explicit(&realtime_profile, memory_order_acquire);
}

void qemu_realtime_set_profile(const QemuRealtimeProfile *p)
{
    atomic_store(&realtime_profile, p);
}

bool qemu_realtime_is_enabled(void)
{
    const QemuRealtimeProfile *p = qemu_realtime_profile();
    return p && p->realtime;
}

void qemu_realtime_get_parameters(int *policy, int *max_priority)
{
    const QemuRealtimeProfile *p = qemu_realtime_profile();
    bool on = p && p->realtime;

    *policy = on ? p->policy : SCHED_OTHER;
    *max_priority = on ? p->max_priority : 0;
}

/* ---- Policy and affinity of a thread ---- */

static const char *policy_name(int policy)
{
    switch (policy) {
    case SCHED_FIFO:
        return "SCHED_FIFO";
    case SCHED_RR:
        return "SCHED_RR";
    default:
        return "SCHED_OTHER";
    }
}

_Static_assert(sizeof(cpu_set_t) == sizeof(QemuCpuSet), "both are 1024 bits");

int qemu_thread_set_policy(pid_t tid, int policy, int priority)
{
    struct sched_param sp = { .sched_priority = priority };
    /* So that neither child processes nor threads that a library makes inherit it. */
    return sched_setscheduler(tid, policy | SCHED_RESET_ON_FORK, &sp) < 0 ? errno : 0;
}

int qemu_thread_set_affinity(pid_t tid, const QemuCpuSet *cpus)
{
    cpu_set_t set;

    memcpy(&set, cpus, sizeof(set)); /* both are arrays of 64-bit words */
    return sched_setaffinity(tid, sizeof(set), &set) < 0 ? errno : 0;
}

int qemu_thread_get_sched(pid_t tid, QemuSched *s)
{
    struct sched_param sp = { 0 };
    cpu_set_t set;
    int policy = sched_getscheduler(tid);

    memset(s, 0, sizeof(*s));
    CPU_ZERO(&set);
    if (policy < 0 || sched_getparam(tid, &sp) < 0 ||
        sched_getaffinity(tid, sizeof(set), &set) < 0) {
        return errno;
    }
    s->policy = policy & ~SCHED_RESET_ON_FORK;
    s->reset_on_fork = policy & SCHED_RESET_ON_FORK;
    s->priority = sp.sched_priority;
    s->affinity_known = true;
    memcpy(&s->affinity, &set, sizeof(set));
    return 0;
}

bool qemu_thread_wanted(const QemuThread *t, const QemuRealtimeProfile *p, QemuSched *s)
{
    bool chosen = t->vcpu < 0 || (p && qemu_cpu_set_has(&p->vcpus, (unsigned)t->vcpu));

    memset(s, 0, sizeof(*s));
    s->policy = SCHED_OTHER;
    s->reset_on_fork = true;
    if (p && p->affinity) {
        s->affinity_known = true;
        s->affinity = process_affinity;
    }
    if (t->cls == THREAD_HELPER) {
        return true;
    }
    if (!p) {
        return false;
    }
    if (p->realtime && chosen) {
        s->policy = p->policy;
        s->priority = p->max_priority - (t->cls == THREAD_VCPU);
    }
    if (t->cls == THREAD_EVENT && p->event_pinned) {
        s->affinity = p->event_affinity;
    } else if (t->vcpu >= 0 && t->vcpu < QEMU_VCPUS_MAX && p->vcpu_cpu[t->vcpu] >= 0) {
        memset(&s->affinity, 0, sizeof(s->affinity));
        qemu_cpu_set_add(&s->affinity, (unsigned)p->vcpu_cpu[t->vcpu]);
    }
    return true;
}

int qemu_thread_sched_apply(const QemuThread *t, pid_t tid)
{
    QemuSched want, got;
    int err = 0, err_affinity = 0;

    if (!qemu_thread_wanted(t, qemu_realtime_profile(), &want)) {
        return 0;
    }
    if (want.affinity_known) {
        err_affinity = qemu_thread_set_affinity(tid, &want.affinity);
    }
    err = qemu_thread_set_policy(tid, want.policy, want.priority);
    int err_read = qemu_thread_get_sched(tid, &got);
    if (err_read) {
        return err_read;
    }
    if (t->cls == THREAD_HELPER) {
        /* A filter may forbid the call; a thread that is not realtime anyway needs no help. */
        bool is_realtime = got.priority > 0 || got.policy == SCHED_FIFO || got.policy == SCHED_RR;
        return is_realtime ? (err ? err : EPERM) : 0;
    }
    if (err || err_affinity) {
        return err ? err : err_affinity;
    }
    bool pinned = !want.affinity_known || qemu_cpu_set_within(&got.affinity, &want.affinity);
    return got.policy == want.policy && got.priority == want.priority && pinned ? 0 : EPERM;
}

int qemu_thread_try_policy(int policy, int priority)
{
    struct sched_param sp = { .sched_priority = priority };

    if (policy < 0) {
        policy = sched_getscheduler(0);
        sched_getparam(0, &sp);
    } else {
        policy |= SCHED_RESET_ON_FORK;
    }
    return sched_setscheduler(0, policy, &sp) < 0 ? errno : 0;
}

void qemu_thread_sched_refused(Error **errp, const QemuThread *t, int err)
{
    QemuSched want;

    qemu_thread_wanted(t, qemu_realtime_profile(), &want);
    error_setg_errno(errp, err, "thread '%s': the host refused policy %s, priority %d%s", t->name,
                     policy_name(want.policy), want.priority,
                     want.affinity_known ? ", or the affinity of the profile" : "");
}
