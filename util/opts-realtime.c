/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -realtime and -overcommit: what they say, before anything is asked of the host. */
#include "qemu/opts.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "qemu/config.h"
#include "qemu/cutils.h"

/* 2, as CPUs get one less and 1 is the lowest realtime priority; 99 is Linux's highest. */
#define MAXPRIO_MIN 2
#define MAXPRIO_MAX 99

static bool parse_mem_lock(const char *option, const char *text, MemLock *lock, Error **errp)
{
    bool on;

    if (!text) {
        return true;
    }
    if (!strcmp(text, "on-fault")) {
        *lock = MEM_LOCK_ON_FAULT;
        return true;
    }
    if (qemu_parse_bool(text, &on)) {
        *lock = on ? MEM_LOCK_ON : MEM_LOCK_OFF;
        return true;
    }
    error_setg(errp, "%s=%s: must be 'on', 'off' or 'on-fault'", option, text);
    return false;
}

static bool parse_policy(const char *text, int *policy, Error **errp)
{
    if (!text || !strcmp(text, "rr")) {
        *policy = SCHED_RR;
        return true;
    }
    if (!strcmp(text, "fifo")) {
        *policy = SCHED_FIFO;
        return true;
    }
    if (!strcmp(text, "other")) {
        error_setg(errp, "-realtime policy=other: means no realtime policy at all, which makes "
                         "sense only in a named profile, and those are not supported yet; "
                         "leave maxprio and policy out");
        return false;
    }
    error_setg(errp, "-realtime policy=%s: must be 'rr' or 'fifo'", text);
    return false;
}

static bool parse_maxprio(const char *text, int *max_priority, Error **errp)
{
    uint64_t n = 0;
    int r = qemu_parse_u64(text, 10, &n);

    if (r == -EINVAL) {
        error_setg(errp, "-realtime maxprio=%s: must be a decimal number from %d to %d", text,
                   MAXPRIO_MIN, MAXPRIO_MAX);
        return false;
    }
    if (r == 0 && n == 1) {
        error_setg(errp,
                   "-realtime maxprio=1: CPUs get maxprio - 1, and 0 is no realtime priority; it "
                   "must be from %d to %d",
                   MAXPRIO_MIN, MAXPRIO_MAX);
        return false;
    }
    if (r || n < MAXPRIO_MIN || n > MAXPRIO_MAX) {
        error_setg(errp, "-realtime maxprio=%s: out of range, it must be from %d to %d", text,
                   MAXPRIO_MIN, MAXPRIO_MAX);
        return false;
    }
    *max_priority = (int)n;
    return true;
}

static bool refuse_later_keys(QemuOpts *opts, Error **errp)
{
    static const char *const later[] = { "vcpus", "vcpu-affinity", "event-affinity", "latency-warn",
                                         "check" };

    for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
        const char *value = qemu_opt_get(opts, later[i]);
        if (value) {
            error_setg(errp, "-realtime %s=%s: '%s' is not supported yet; leave it out", later[i],
                       value, later[i]);
            return false;
        }
    }
    return true;
}

static bool refuse_profile(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *id = qemu_opts_id(opts);

    if (id) {
        error_setg(errp, "-realtime id=%s: named profiles are not supported yet; leave 'id' out",
                   id);
        return false;
    }
    return true;
}

static bool parse_realtime_set(QemuOpts *opts, RealtimeConfig *cfg, Error **errp)
{
    const char *maxprio = qemu_opt_get(opts, "maxprio");
    const char *policy = qemu_opt_get(opts, "policy");

    cfg->mem_lock = MEM_LOCK_ON; /* unless mlock= says otherwise */
    if (!refuse_later_keys(opts, errp) || !parse_policy(policy, &cfg->policy, errp) ||
        !parse_mem_lock("-realtime mlock", qemu_opt_get(opts, "mlock"), &cfg->mem_lock, errp)) {
        return false;
    }
    if (!maxprio) {
        if (policy) {
            error_setg(errp, "-realtime policy=%s: needs a priority too; add maxprio=N", policy);
            return false;
        }
        return true;
    }
    cfg->enabled = true;
    return parse_maxprio(maxprio, &cfg->max_priority, errp);
}

bool opts_parse_realtime(RealtimeConfig *cfg, bool *cpu_pm, Error **errp)
{
    QemuOptsList *list = qemu_find_opts("realtime", &error_abort);
    QemuOpts *realtime = qemu_opts_find(list, NULL);
    QemuOpts *overcommit = qemu_find_opts_singleton("overcommit");
    MemLock lock = MEM_LOCK_OFF;

    memset(cfg, 0, sizeof(*cfg));
    cfg->policy = SCHED_RR;
    if (!qemu_opts_foreach(list, refuse_profile, NULL, errp)) {
        return false;
    }
    if (realtime && !parse_realtime_set(realtime, cfg, errp)) {
        return false;
    }
    if (!parse_mem_lock("-overcommit mem-lock", qemu_opt_get(overcommit, "mem-lock"), &lock,
                        errp)) {
        return false;
    }
    cfg->mem_lock = MAX(cfg->mem_lock, lock); /* if either asks, it is done */
    *cpu_pm = qemu_opt_get_bool(overcommit, "cpu-pm", false);
    return true;
}
