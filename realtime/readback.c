/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * query-realtime: what the kernel says now of every thread, of locked memory and of the profile in
 * force; never what was asked for. Control thread.
 */
#include <dirent.h>
#include <glib.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qapi/qapi.h"
#include "qemu/os.h"
#include "realtime/cpulist.h"
#include "realtime/internal.h"
#include "realtime/profile.h"

/* ---- Threads of ours ---- */

GArray *realtime_threads(void)
{
    GArray *a = g_array_sized_new(FALSE, TRUE, sizeof(RealtimeThread), 64);

    qemu_threads_hold();
    const QemuRealtimeProfile *p = qemu_realtime_profile();
    for (QemuThread *t = qemu_threads_next(NULL); t; t = qemu_threads_next(t)) {
        RealtimeThread r = { .tid = atomic_load(&t->tid), .vcpu = t->vcpu, .cls = t->cls };

        g_strlcpy(r.name, t->name, sizeof(r.name));
        r.asked = qemu_thread_wanted(t, p, &r.want);
        if (qemu_thread_get_sched(r.tid, &r.now) == 0) {
            g_array_append_val(a, r);
        }
    }
    qemu_threads_release();
    return a;
}

/* ---- Files of /proc ---- */

static char *task_file(int tid, const char *name)
{
    char path[64];
    gchar *text = NULL;

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

bool realtime_schedstat(int tid, int64_t *run, int64_t *delay)
{
    char *text = task_file(tid, "schedstat");
    bool ok = text && sscanf(text, "%" SCNd64 " %" SCNd64, run, delay) == 2;

    g_free(text);
    return ok;
}

/* Fields 10 and 12 of /proc/PID/stat; those from 3 on stand behind the name in brackets. */
static void read_faults(int tid, QapiRealtimeThreadInfo *i)
{
    char *text = task_file(tid, "stat");
    const char *rest = text ? strrchr(text, ')') : NULL;

    if (rest) { /* state ppid pgrp session tty tpgid flags minflt cminflt majflt */
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %" SCNd64 " %*u %" SCNd64, &i->minor_faults,
               &i->major_faults);
    }
    g_free(text);
}

static bool status_number(const char *status, const char *key, int64_t *value)
{
    const char *line = status ? strstr(status, key) : NULL;

    if (line) {
        *value = g_ascii_strtoll(line + strlen(key), NULL, 10);
    }
    return line != NULL;
}

static void read_counters(int tid, QapiRealtimeThreadInfo *i)
{
    char *status = task_file(tid, "status");

    read_faults(tid, i);
    i->has_voluntary_switches =
        status_number(status, "\nvoluntary_ctxt_switches:", &i->voluntary_switches);
    i->has_involuntary_switches =
        status_number(status, "\nnonvoluntary_ctxt_switches:", &i->involuntary_switches);
    i->has_run_time_ns = i->has_run_delay_ns =
        realtime_schedstat(tid, &i->run_time_ns, &i->run_delay_ns);
    g_free(status);
}

/* ---- Answers ---- */

static QapiRealtimePolicy policy_of(int policy)
{
    switch (policy) {
    case SCHED_OTHER:
        return QAPI_REALTIME_POLICY_OTHER;
    case SCHED_FIFO:
        return QAPI_REALTIME_POLICY_FIFO;
    case SCHED_RR:
        return QAPI_REALTIME_POLICY_RR;
    case SCHED_BATCH:
        return QAPI_REALTIME_POLICY_BATCH;
    case SCHED_IDLE:
        return QAPI_REALTIME_POLICY_IDLE;
    case SCHED_DEADLINE:
        return QAPI_REALTIME_POLICY_DEADLINE;
    default:
        return QAPI_REALTIME_POLICY_UNKNOWN;
    }
}

void realtime_thread_report(const RealtimeThread *t)
{
    char cpus[CPU_SET_TEXT_MAX];

    qapi_event_send_realtime_thread_changed(
        t->tid, t->name, policy_of(t->now.policy), t->now.priority,
        cpu_set_format(&t->now.affinity, cpus, sizeof(cpus)));
}

static QapiRealtimeThreadInfo *thread_info(int tid, const char *name, QapiRealtimeThreadClass cls,
                                           const QemuSched *now)
{
    QapiRealtimeThreadInfo *i = g_new0(QapiRealtimeThreadInfo, 1);
    char cpus[1024];

    i->thread_id = tid;
    i->name = g_strdup(name);
    i->class = cls;
    i->policy = policy_of(now->policy);
    i->priority = now->priority;
    i->affinity = g_strdup(cpu_set_format(&now->affinity, cpus, sizeof(cpus)));
    return i;
}

static void add_ours(GArray *threads, QapiRealtimeThreadInfoArray *a)
{
    static const QapiRealtimeThreadClass classes[] = {
        [THREAD_EVENT] = QAPI_REALTIME_THREAD_CLASS_EVENT,
        [THREAD_VCPU] = QAPI_REALTIME_THREAD_CLASS_VCPU,
        [THREAD_HELPER] = QAPI_REALTIME_THREAD_CLASS_HELPER,
    };

    /* The list has the newest first. */
    for (guint n = threads->len; n-- > 0;) {
        const RealtimeThread *t = &g_array_index(threads, RealtimeThread, n);
        QapiRealtimeThreadInfo *i = thread_info(t->tid, t->name, classes[t->cls], &t->now);

        i->has_cpu_index = t->vcpu >= 0;
        i->cpu_index = t->vcpu;
        i->changed = realtime_thread_changed(t);
        read_counters(t->tid, i);
        qapi_realtime_thread_info_array_add(a, i);
    }
}

static bool is_ours(const GArray *threads, int tid)
{
    for (guint n = 0; n < threads->len; n++) {
        if (g_array_index(threads, RealtimeThread, n).tid == tid) {
            return true;
        }
    }
    return false;
}

static void add_other(int tid, const char *comm, QapiRealtimeThreadClass cls,
                      QapiRealtimeThreadInfoArray *a)
{
    QemuSched now;

    if (qemu_thread_get_sched(tid, &now) == 0) {
        QapiRealtimeThreadInfo *i = thread_info(tid, comm, cls, &now);

        read_counters(tid, i);
        qapi_realtime_thread_info_array_add(a, i);
    }
}

/* Threads that libraries made, and the kernel's for this machine. */
static void add_others(const GArray *threads, QapiRealtimeThreadInfoArray *a)
{
    DIR *d = opendir("/proc/self/task");

    for (struct dirent *e; d && (e = readdir(d));) {
        int tid = atoi(e->d_name);
        char *comm = tid && !is_ours(threads, tid) ? task_file(tid, "comm") : NULL;

        if (comm) {
            add_other(tid, g_strstrip(comm), QAPI_REALTIME_THREAD_CLASS_LIBRARY, a);
        }
        g_free(comm);
    }
    if (d) {
        closedir(d);
    }
    if (realtime_pit_thread()) {
        add_other(realtime_pit_thread(), "kvm-pit", QAPI_REALTIME_THREAD_CLASS_KERNEL, a);
    }
}

static char *vcpu_affinity_text(const QemuRealtimeProfile *p)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < QEMU_VCPUS_MAX; i++) {
        if (p->vcpu_cpu[i] >= 0) {
            g_string_append_printf(s, "%s%d", s->len ? "," : "", p->vcpu_cpu[i]);
        }
    }
    return g_string_free(s, FALSE);
}

static QapiRealtimeProfileInfo *profile_info(unsigned n)
{
    const QemuRealtimeProfile *p = realtime_profile(n);
    QapiRealtimeProfileInfo *i = g_new0(QapiRealtimeProfileInfo, 1);
    char text[1024];

    i->name = g_strdup(p->name);
    i->active = n == realtime_profile_current();
    i->policy = policy_of(p->realtime ? p->policy : SCHED_OTHER);
    i->max_priority = p->realtime ? p->max_priority : 0;
    i->vcpus = g_strdup(cpu_set_format(&p->vcpus, text, sizeof(text)));
    i->vcpu_affinity = vcpu_affinity_text(p);
    i->has_vcpu_affinity = *i->vcpu_affinity != '\0';
    i->has_event_affinity = p->event_pinned;
    i->event_affinity = g_strdup(cpu_set_format(&p->event_affinity, text, sizeof(text)));
    i->has_latency_warn_us = p->latency_warn_us != 0;
    i->latency_warn_us = p->latency_warn_us;
    i->cpu_dma_latency = p->cpu_dma_latency;
    return i;
}

static QapiRealtimeMemLock mem_lock(void)
{
    switch (os_memory_locked()) {
    case MEM_LOCK_ON:
        return QAPI_REALTIME_MEM_LOCK_ON;
    case MEM_LOCK_ON_FAULT:
        return QAPI_REALTIME_MEM_LOCK_ON_FAULT;
    default:
        return QAPI_REALTIME_MEM_LOCK_OFF;
    }
}

QapiRealtimeInfo *qmp_query_realtime(Error **errp)
{
    QapiRealtimeInfo *r = g_new0(QapiRealtimeInfo, 1);
    QapiRealtimeThrottling *t = g_new0(QapiRealtimeThrottling, 1);
    GArray *threads = realtime_threads();
    int tid;

    r->enabled = qemu_realtime_is_enabled();
    r->profiles = g_new0(QapiRealtimeProfileInfoArray, 1);
    for (unsigned i = 0; i < realtime_profile_count(); i++) {
        qapi_realtime_profile_info_array_add(r->profiles, profile_info(i));
    }
    r->has_profile = realtime_profile_count() > 0;
    if (r->has_profile) {
        r->profile = g_strdup(realtime_profile(realtime_profile_current())->name);
    }
    r->memory_lock = mem_lock();
    r->locked_bytes = os_locked_bytes();
    r->cpu_dma_latency = realtime_dma_latency_held();
    realtime_throttling_limit(&t->runtime_us, &t->period_us);
    realtime_throttling(&t->seen, &tid);
    t->has_last_thread_id = t->seen > 0;
    t->last_thread_id = tid;
    r->throttling = t;
    r->threads = g_new0(QapiRealtimeThreadInfoArray, 1);
    add_ours(threads, r->threads);
    add_others(threads, r->threads);
    g_array_unref(threads);
    return r;
}
