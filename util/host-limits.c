/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on -realtime from the facts about the host (docs/realtime.md, "Refusals"). */
#include "qemu/host-limits.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>

static char *limit_text(uint64_t v)
{
    return v == HOST_UNLIMITED ? g_strdup("unlimited") : g_strdup_printf("%" PRIu64, v);
}

static const char *policy_word(int policy)
{
    return policy == SCHED_FIFO ? "fifo" : "rr";
}

/* ---- Policy ---- */

static void refuse_permission(const HostLimits *h, const RealtimeConfig *cfg, Error **errp)
{
    int n = cfg->max_priority;
    char *soft = limit_text(h->rtprio_soft), *hard = limit_text(h->rtprio_hard);
    char *but =
        h->rtprio_soft == (uint64_t)n - 1
            ? g_strdup_printf(" (enough for the CPUs' %d, not for the event threads' %d)", n - 1, n)
            : g_strdup("");

    error_setg(errp,
               "-realtime maxprio=%d: not permitted: the process lacks CAP_SYS_NICE and "
               "RLIMIT_RTPRIO is %s%s, hard limit %s; raise it to %d ('ulimit -r %d', "
               "LimitRTPRIO=%d in a systemd unit, 'rtprio' in /etc/security/limits.conf) or grant "
               "CAP_SYS_NICE",
               n, soft, but, hard, n, n, n);
    g_free(but);
    g_free(soft);
    g_free(hard);
}

static void refuse_seccomp(const char *option, const char *call, int probe, Error **errp)
{
    error_setg(errp,
               "%s: a seccomp filter forbids %s (%s; 'Seccomp: 2' in /proc/self/status); start "
               "without the filter or let it allow the call (containers: in the seccomp profile)",
               option, call,
               probe == PROBE_KILLED ? "it killed a test process" : g_strerror(probe));
}

static bool is_forbidden(int probe)
{
    return probe > 0 || probe == PROBE_KILLED;
}

bool host_limits_check_policy(const HostLimits *h, const RealtimeConfig *cfg, Error **errp)
{
    int n = cfg->max_priority;
    int max = sched_get_priority_max(cfg->policy);
    char option[32];

    g_snprintf(option, sizeof(option), "-realtime maxprio=%d", n);
    if (n - 1 < sched_get_priority_min(cfg->policy) || n > max) {
        error_setg(errp, "%s: out of range, policy %s has priorities up to %d here", option,
                   policy_word(cfg->policy), max);
        return false;
    }
    if (h->seccomp_mode == 2 && is_forbidden(h->probe_same_policy)) {
        refuse_seccomp(option, "sched_setscheduler", h->probe_same_policy, errp);
        return false;
    }
    if (!h->cap_sys_nice && h->rtprio_soft < (uint64_t)n) {
        refuse_permission(h, cfg, errp);
        return false;
    }
    /* Even root is refused then, with the same EPERM. */
    if (h->rt_cgroup_file && h->rt_runtime_us == 0 && h->probe_policy != 0) {
        error_setg(errp,
                   "%s: the process's cpu cgroup allows no realtime threads: %s is 0; write the "
                   "microseconds of each period they may run to it (such as 'echo 950000 > %s'; "
                   "its parents need at least as much), or start in another cgroup",
                   option, h->rt_cgroup_file, h->rt_cgroup_file);
        return false;
    }
    if (is_forbidden(h->probe_policy)) {
        if (h->seccomp_mode == 2) {
            refuse_seccomp(option, "sched_setscheduler", h->probe_policy, errp);
        } else {
            error_setg_errno(errp, h->probe_policy == PROBE_KILLED ? EPERM : h->probe_policy,
                             "%s: the host refused policy %s with priority %d, for a reason that "
                             "is none of: CAP_SYS_NICE, RLIMIT_RTPRIO, cpu.rt_runtime_us, seccomp",
                             option, policy_word(cfg->policy), n);
        }
        return false;
    }
    return true;
}

/* ---- Memory ---- */

#define LOCKING "locking memory (-realtime, -overcommit mem-lock)"

static bool check_memlock_limit(const HostLimits *h, uint64_t needed, Error **errp)
{
    if (h->cap_ipc_lock || h->memlock_soft >= needed) {
        return true;
    }
    char *hard = limit_text(h->memlock_hard);
    uint64_t kib = DIV_ROUND_UP(needed, 1024);
    if (h->memlock_soft == 0) {
        error_setg(errp,
                   LOCKING ": no permission to lock any: RLIMIT_MEMLOCK is 0 (hard limit %s bytes) "
                           "and the process lacks CAP_IPC_LOCK; allow %" PRIu64
                           " bytes ('ulimit -l %" PRIu64
                           "', LimitMEMLOCK= in a systemd unit) or grant CAP_IPC_LOCK",
                   hard, needed, kib);
    } else {
        error_setg(errp,
                   LOCKING ": RLIMIT_MEMLOCK is too small: %" PRIu64 " bytes are needed, %" PRIu64
                           " bytes are allowed (hard limit %s bytes); raise it with 'ulimit -l "
                           "%" PRIu64 "' or LimitMEMLOCK= in a systemd unit, or grant CAP_IPC_LOCK",
                   needed, h->memlock_soft, hard, kib);
    }
    g_free(hard);
    return false;
}

static bool check_free_memory(const HostLimits *h, uint64_t bytes_needed, Error **errp)
{
    if (h->mem_available && h->mem_available < bytes_needed) {
        error_setg(errp,
                   LOCKING ": not enough free memory: %" PRIu64 " bytes are needed, %" PRIu64
                           " bytes are available (MemAvailable); make -m smaller, free memory on "
                           "the host, or use mlock=on-fault",
                   bytes_needed, h->mem_available);
        return false;
    }
    if (h->mem_cgroup_file && h->mem_cgroup_limit < bytes_needed) {
        error_setg(errp,
                   LOCKING ": %" PRIu64 " bytes are needed, but %s allows %" PRIu64
                           " bytes; raise it, make -m smaller, or start in another cgroup",
                   bytes_needed, h->mem_cgroup_file, h->mem_cgroup_limit);
        return false;
    }
    return true;
}

bool host_limits_check_memory(const HostLimits *h, const RealtimeConfig *cfg, uint64_t bytes_needed,
                              Error **errp)
{
    uint64_t needed = bytes_needed + h->vm_size; /* mlockall() counts what is mapped already */

    if (needed < bytes_needed) {
        needed = UINT64_MAX;
    }
    /* What a page is used for does not matter to the limit: on-fault counts all of it too. */
    if (!check_memlock_limit(h, needed, errp)) {
        return false;
    }
    if (is_forbidden(h->probe_mlock)) {
        if (h->seccomp_mode == 2) {
            refuse_seccomp(LOCKING, "mlockall", h->probe_mlock, errp);
        } else {
            error_setg_errno(errp, h->probe_mlock == PROBE_KILLED ? EPERM : h->probe_mlock,
                             LOCKING ": the host refused mlockall, for a reason that is none of: "
                                     "CAP_IPC_LOCK, RLIMIT_MEMLOCK, seccomp");
        }
        return false;
    }
    return cfg->mem_lock != MEM_LOCK_ON || check_free_memory(h, bytes_needed, errp);
}

/* ---- Warnings ---- */

typedef struct Warner {
    void (*warn)(void *opaque, const char *text);
    void *opaque;
} Warner;

static void warn(const Warner *w, const char *fmt, ...) QEMU_PRINTF(2, 3);
static void warn(const Warner *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    w->warn(w->opaque, text);
    g_free(text);
}

static void warn_kthreads(const HostLimits *h, int n, const Warner *w)
{
    static const char *const names[KTHREAD_KINDS] = { "ksoftirqd", "rcuc", "ktimers", "migration" };
    GString *list = g_string_new(NULL);

    for (int i = 0; i < KTHREAD_KINDS; i++) {
        int prio = h->kthread_prio[i];
        /* Outside PREEMPT_RT ksoftirqd is never realtime, and interrupts do its work. */
        bool matters = prio > 0 || (prio == 0 && i == KTHREAD_KSOFTIRQD && h->preempt_rt);
        if (matters && n >= prio) {
            g_string_append_printf(list, "%s%s (%d)", list->len ? ", " : "", names[i], prio);
        }
    }
    if (list->len) {
        warn(w,
             "-realtime maxprio=%d is at or above threads of the host's kernel: %s; a busy guest "
             "can hold them up",
             n, list->str);
    }
    g_string_free(list, TRUE);
}

static void warn_covered(unsigned host_cpus, const RealtimeConfig *cfg, const Warner *w)
{
    if (cfg->policy == SCHED_FIFO && host_cpus && cfg->vcpus >= host_cpus) {
        warn(w,
             "%u realtime CPUs with policy=fifo cover all %u host CPUs: a busy guest can make the "
             "host UNREACHABLE; use fewer CPUs, or keep a way in with a higher priority",
             cfg->vcpus, host_cpus);
    }
}

void host_limits_warn_covered(unsigned host_cpus, const RealtimeConfig *cfg,
                              void (*fn)(void *opaque, const char *text), void *opaque)
{
    Warner w = { fn, opaque };

    warn_covered(host_cpus, cfg, &w);
}

static void warn_policy(const HostLimits *h, const RealtimeConfig *cfg, const Warner *w)
{
    if (h->global_rt_runtime_us >= 0) {
        warn(w,
             "the host throttles realtime threads: they run at most %" PRId64 " of each %" PRId64
             " us; write -1 to /proc/sys/kernel/sched_rt_runtime_us to end that",
             h->global_rt_runtime_us, h->global_rt_period_us);
    }
    if (h->rttime_soft != HOST_UNLIMITED) {
        warn(w,
             "RLIMIT_RTTIME is %" PRIu64 " us: the host ends a realtime thread that runs so long "
             "without sleeping; lift it with 'ulimit -R unlimited'",
             h->rttime_soft);
    }
    warn_kthreads(h, cfg->max_priority, w);
    warn_covered(h->cpus, cfg, w);
}

void host_limits_warnings(const HostLimits *h, const RealtimeConfig *cfg, uint64_t bytes_needed,
                          void (*fn)(void *opaque, const char *text), void *opaque)
{
    Warner w = { fn, opaque };

    if (cfg->enabled) {
        warn_policy(h, cfg, &w);
    }
    if (cfg->mem_lock != MEM_LOCK_OFF && cfg->mem_merge_wanted) {
        warn(&w, "-machine mem-merge=on has no effect: locked memory is not merged");
    }
    if (cfg->mem_lock == MEM_LOCK_ON_FAULT && h->mem_available && h->mem_available < bytes_needed) {
        warn(&w,
             "the guest can use %" PRIu64 " bytes, but only %" PRIu64 " bytes are available on the "
             "host: it may run out of memory later",
             bytes_needed, h->mem_available);
    }
}
