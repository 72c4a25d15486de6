/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -realtime and -overcommit: what they say, before anything is asked of the host. */
#include "realtime/options.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "qemu/config.h"
#include "qemu/cutils.h"
#include "realtime/cpulist.h"

/* 2, as CPUs get one less and 1 is the lowest realtime priority; 99 is Linux's highest. */
#define MAXPRIO_MIN 2
#define MAXPRIO_MAX 99
/* Ten seconds: longer is no bound. */
#define LATENCY_WARN_MAX_US 10000000

void realtime_cpus_read(RealtimeCpus *cpus, unsigned vcpus, unsigned present)
{
    QemuSched s;

    memset(cpus, 0, sizeof(*cpus));
    cpus->vcpus = vcpus;
    cpu_set_first(&cpus->present, present);
    if (qemu_thread_get_sched(0, &s) == 0) {
        cpus->allowed = s.affinity;
    }
    if (!cpu_set_read("/sys/devices/system/cpu/online", &cpus->online)) {
        cpus->online = cpus->allowed; /* a host without /sys */
    }
    cpu_set_read("/sys/devices/system/cpu/isolated", &cpus->isolated);
}

/* ---- Values ---- */

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

static bool parse_policy(const char *text, bool named, QemuRealtimeProfile *p, Error **errp)
{
    p->realtime = true;
    p->policy = SCHED_RR;
    if (!text || !strcmp(text, "rr")) {
        return true;
    }
    if (!strcmp(text, "fifo")) {
        p->policy = SCHED_FIFO;
        return true;
    }
    if (strcmp(text, "other") != 0) {
        error_setg(errp, "-realtime policy=%s: must be 'rr' or 'fifo', or 'other' in a named "
                         "profile", text);
        return false;
    }
    if (!named) {
        error_setg(errp, "-realtime policy=other: means no realtime policy at all, which makes "
                         "sense only in a named profile that waits for a switch; add id=NAME, or "
                         "leave maxprio and policy out");
        return false;
    }
    p->realtime = false;
    p->policy = SCHED_OTHER;
    return true;
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

static bool parse_latency_warn(const char *text, uint32_t *us, Error **errp)
{
    uint64_t n = 0;

    if (!text) {
        return true;
    }
    if (qemu_parse_u64(text, 10, &n) || n < 1 || n > LATENCY_WARN_MAX_US) {
        error_setg(errp, "-realtime latency-warn=%s: must be a number of microseconds from 1 to %d",
                   text, LATENCY_WARN_MAX_US);
        return false;
    }
    *us = (uint32_t)n;
    return true;
}

/* ---- One profile ---- */

static bool parse_vcpus(const RealtimeCpus *cpus, const char *text, QemuRealtimeProfile *p,
                        Error **errp)
{
    QemuCpuSet valid;
    CpuList *list;
    bool ok;

    cpu_set_first(&valid, MIN(cpus->vcpus, QEMU_VCPUS_MAX));
    if (!text) {
        p->vcpus = valid;
        return true;
    }
    list = g_new(CpuList, 1);
    ok = cpu_list_parse("-realtime vcpus", "vCPU", text, &valid, list, errp);
    p->vcpus = list->set;
    g_free(list);
    return ok;
}

/* The n-th of the chosen vCPUs runs on the n-th host CPU of the list. */
static bool pin_vcpus(const CpuList *list, const char *text, QemuRealtimeProfile *p, Error **errp)
{
    unsigned n = 0, count = qemu_cpu_set_count(&p->vcpus);

    if (list->count < count) {
        error_setg(errp,
                   "-realtime vcpu-affinity=%s: too short, %u vCPUs are realtime and the list has "
                   "%u host CPUs; name one for each (those plugged in later too), or choose fewer "
                   "with vcpus=",
                   text, count, list->count);
        return false;
    }
    for (unsigned i = 0; i < QEMU_VCPUS_MAX; i++) {
        if (qemu_cpu_set_has(&p->vcpus, i)) {
            p->vcpu_cpu[i] = (int16_t)list->cpu[n++];
        }
    }
    return true;
}

static bool parse_affinity(const RealtimeCpus *cpus, QemuOpts *opts, QemuRealtimeProfile *p,
                           Error **errp)
{
    const char *vcpu = qemu_opt_get(opts, "vcpu-affinity");
    const char *event = qemu_opt_get(opts, "event-affinity");
    CpuList *list = g_new(CpuList, 1);
    bool ok = true;

    memset(p->vcpu_cpu, 0xff, sizeof(p->vcpu_cpu));
    if (vcpu) {
        ok = cpu_list_parse("-realtime vcpu-affinity", "host CPU", vcpu, &cpus->online, list,
                            errp) &&
             pin_vcpus(list, vcpu, p, errp);
    }
    if (ok && event) {
        ok = cpu_list_parse("-realtime event-affinity", "host CPU", event, &cpus->online, list,
                            errp);
        p->event_pinned = true;
        p->event_affinity = list->set;
    }
    g_free(list);
    return ok;
}

/* What only a profile can have, of a set that is none. */
static bool refuse_without_maxprio(QemuOpts *opts, Error **errp)
{
    static const char *const keys[] = { "policy", "vcpus", "vcpu-affinity", "event-affinity",
                                        "latency-warn", "cpu-dma-latency" };

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *value = qemu_opt_get(opts, keys[i]);
        if (value) {
            error_setg(errp, "-realtime %s=%s: needs a priority too; add maxprio=N", keys[i],
                       value);
            return false;
        }
    }
    return true;
}

static bool parse_priority(QemuOpts *opts, QemuRealtimeProfile *p, Error **errp)
{
    const char *maxprio = qemu_opt_get(opts, "maxprio");

    if (p->realtime) {
        if (!maxprio) {
            error_setg(errp,
                       "-realtime id=%s: the profile has no priority; add maxprio=N, or "
                       "policy=other for one without realtime",
                       p->name);
            return false;
        }
        return parse_maxprio(maxprio, &p->max_priority, errp);
    }
    if (maxprio) {
        error_setg(errp, "-realtime id=%s: policy=other has no priorities; leave maxprio=%s out",
                   p->name, maxprio);
        return false;
    }
    if (qemu_opt_get(opts, "vcpus") && !qemu_opt_get(opts, "vcpu-affinity")) {
        error_setg(errp,
                   "-realtime id=%s: with policy=other no vCPU is realtime; leave vcpus=%s out, "
                   "or add vcpu-affinity",
                   p->name, qemu_opt_get(opts, "vcpus"));
        return false;
    }
    return true;
}

/* ---- All of them ---- */

typedef struct Parse {
    const RealtimeCpus *cpus;
    RealtimeOptions *o;
    bool any;     /* -realtime was given, and not to check alone */
    bool said;    /* mlock= was */
    MemLock lock; /* the strongest that was said */
} Parse;

static bool add_profile(Parse *parse, QemuOpts *opts, const char *id, Error **errp)
{
    RealtimeConfig *cfg = &parse->o->config;
    const char *name = id ? id : "default";

    for (unsigned i = 0; i < cfg->profile_count; i++) {
        if (!strcmp(parse->o->profiles[i].name, name)) {
            error_setg(errp, "-realtime id=default: is the profile of a -realtime without id, and "
                             "that is given too; choose another name");
            return false;
        }
    }
    if (cfg->profile_count == REALTIME_PROFILES_MAX) {
        error_setg(errp, "-realtime id=%s: there can be at most %d profiles", name,
                   REALTIME_PROFILES_MAX);
        return false;
    }
    QemuRealtimeProfile *p = &parse->o->profiles[cfg->profile_count++];
    p->name = name;
    if (!parse_policy(qemu_opt_get(opts, "policy"), id != NULL, p, errp) ||
        !parse_priority(opts, p, errp) ||
        !parse_latency_warn(qemu_opt_get(opts, "latency-warn"), &p->latency_warn_us, errp) ||
        !parse_vcpus(parse->cpus, qemu_opt_get(opts, "vcpus"), p, errp) ||
        !parse_affinity(parse->cpus, opts, p, errp)) {
        return false;
    }
    p->cpu_dma_latency = p->realtime && qemu_opt_get_bool(opts, "cpu-dma-latency", true);
    return true;
}

static bool parse_set(QemuOpts *opts, void *opaque, Error **errp)
{
    Parse *parse = opaque;
    const char *id = qemu_opts_id(opts), *mlock = qemu_opt_get(opts, "mlock");
    bool is_profile = id || qemu_opt_get(opts, "maxprio");
    MemLock lock = MEM_LOCK_OFF;

    parse->o->check |= qemu_opt_get_bool(opts, "check", false);
    parse->any |= is_profile || mlock || !parse->o->check;
    if (!parse_mem_lock("-realtime mlock", mlock, &lock, errp)) {
        return false;
    }
    parse->said |= mlock != NULL;
    parse->lock = MAX(parse->lock, lock);
    if (is_profile) {
        return add_profile(parse, opts, id, errp);
    }
    /* policy=other and a misspelt one have their own words. */
    QemuRealtimeProfile unused = { 0 };
    return parse_policy(qemu_opt_get(opts, "policy"), false, &unused, errp) &&
           refuse_without_maxprio(opts, errp);
}

static bool is_there(const RealtimeCpus *cpus, const QemuRealtimeProfile *p, unsigned vcpu)
{
    return qemu_cpu_set_has(&p->vcpus, vcpu) && qemu_cpu_set_has(&cpus->present, vcpu);
}

unsigned realtime_profile_places(const RealtimeCpus *cpus, const QemuRealtimeProfile *p, unsigned *vcpus)
{
    QemuCpuSet places = { 0 };

    *vcpus = 0;
    for (unsigned i = 0; i < QEMU_VCPUS_MAX; i++) {
        if (!is_there(cpus, p, i)) {
            continue;
        }
        ++*vcpus;
        if (p->vcpu_cpu[i] >= 0) {
            qemu_cpu_set_add(&places, (unsigned)p->vcpu_cpu[i]);
            continue;
        }
        for (size_t w = 0; w < ARRAY_SIZE(places.bits); w++) {
            places.bits[w] |= cpus->allowed.bits[w];
        }
    }
    return qemu_cpu_set_count(&places);
}

static bool has_unpinned_vcpu(const QemuRealtimeProfile *p)
{
    for (unsigned i = 0; i < QEMU_VCPUS_MAX; i++) {
        if (qemu_cpu_set_has(&p->vcpus, i) && p->vcpu_cpu[i] < 0) {
            return true;
        }
    }
    return false;
}

/* How many host CPUs the realtime vCPUs of p can fill. */
static unsigned host_cpus_filled(const RealtimeCpus *cpus, const QemuRealtimeProfile *p)
{
    unsigned vcpus, places = realtime_profile_places(cpus, p, &vcpus);

    return has_unpinned_vcpu(p) ? vcpus : places;
}

/* What the host must permit is decided by the highest priority of all profiles. */
void realtime_options_count(const RealtimeCpus *cpus, RealtimeOptions *o)
{
    RealtimeConfig *cfg = &o->config;
    int highest = 0;

    for (unsigned i = 0; i < cfg->profile_count; i++) {
        const QemuRealtimeProfile *p = &o->profiles[i];

        if (p->realtime && p->max_priority > highest) {
            cfg->enabled = true;
            cfg->policy = p->policy;
            cfg->max_priority = highest = p->max_priority;
            cfg->vcpus = host_cpus_filled(cpus, p);
        }
    }
}

static void sum_up(const RealtimeCpus *cpus, RealtimeOptions *o)
{
    RealtimeConfig *cfg = &o->config;
    bool affinity = false;

    cfg->profiles = o->profiles;
    for (unsigned i = 0; i < cfg->profile_count; i++) {
        const QemuRealtimeProfile *p = &o->profiles[i];

        affinity |= p->event_pinned;
        for (unsigned v = 0; v < QEMU_VCPUS_MAX; v++) {
            affinity |= p->vcpu_cpu[v] >= 0;
        }
    }
    for (unsigned i = 0; i < cfg->profile_count; i++) {
        o->profiles[i].affinity = affinity;
    }
    realtime_options_count(cpus, o);
}

bool realtime_options_parse(const RealtimeCpus *cpus, RealtimeOptions *o, Error **errp)
{
    QemuOpts *overcommit = qemu_find_opts_singleton("overcommit");
    Parse parse = { .cpus = cpus, .o = o };
    MemLock lock = MEM_LOCK_OFF;

    memset(o, 0, sizeof(*o));
    o->config.policy = SCHED_RR;
    if (!qemu_opts_foreach(qemu_find_opts("realtime", &error_abort), parse_set, &parse, errp)) {
        return false;
    }
    if (parse.any) {
        o->config.mem_lock = parse.said ? parse.lock : MEM_LOCK_ON;
    }
    if (!parse_mem_lock("-overcommit mem-lock", qemu_opt_get(overcommit, "mem-lock"), &lock,
                        errp)) {
        return false;
    }
    o->config.mem_lock = MAX(o->config.mem_lock, lock); /* if either asks, it is done */
    o->cpu_pm = qemu_opt_get_bool(overcommit, "cpu-pm", false);
    sum_up(cpus, o);
    return true;
}

/* ---- Warnings ---- */

typedef struct Warner {
    const QemuRealtimeProfile *p;
    void (*warn)(void *opaque, const char *text);
    void *opaque;
} Warner;

static void warn(const Warner *w, const char *fmt, ...) QEMU_PRINTF(2, 3);
static void warn(const Warner *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    char *text = g_strdup_printf("-realtime profile '%s': %s", w->p->name, what);
    w->warn(w->opaque, text);
    g_free(text);
    g_free(what);
}

#define WILL_HANG                                                                                  \
    ": a guest whose CPUs wait for one another, as those of Linux do at boot, will hang, as the "  \
    "one that spins never gives way to the other; use policy=rr, a host CPU for each "             \
    "(vcpu-affinity=), or fewer CPUs (-smp)"

#define GET_LITTLE                                                                                 \
    ": they take turns, and while they are busy the host and all that is not realtime, monitors "  \
    "too, get only what the host's limit on realtime threads leaves; use fewer CPUs (-smp), or "   \
    "leave the host a CPU (vcpu-affinity=)"

/* The first vCPU that vCPU i is to share its host CPU with; -1: none. */
static int shares_with(const RealtimeCpus *cpus, const QemuRealtimeProfile *p, unsigned i)
{
    for (unsigned n = 0; p->vcpu_cpu[i] >= 0 && n < QEMU_VCPUS_MAX; n++) {
        if (n != i && is_there(cpus, p, n) && p->vcpu_cpu[n] == p->vcpu_cpu[i]) {
            return (int)n;
        }
    }
    return -1;
}

/* Warns of vCPU i, if it shares the host CPU that it is pinned to. */
static bool warn_shared_place(const Warner *w, const RealtimeCpus *cpus, unsigned i)
{
    int other = is_there(cpus, w->p, i) ? shares_with(cpus, w->p, i) : -1;

    if (other >= 0) {
        warn(w,
             "vCPUs %d and %d share host CPU %d under policy=fifo" WILL_HANG,
             MIN(other, (int)i), MAX(other, (int)i), w->p->vcpu_cpu[i]);
    }
    return other >= 0;
}

/*
 * Under SCHED_FIFO the one that spins keeps the other from running for good; with SCHED_RR it is the rest
 * of the host that does not run. added: the vCPU it is about; -1: all.
 */
static void warn_shared(const Warner *w, const RealtimeCpus *cpus, int added)
{
    unsigned vcpus, places = realtime_profile_places(cpus, w->p, &vcpus);
    bool fifo = w->p->policy == SCHED_FIFO;

    if (!w->p->realtime || vcpus <= places || (added >= 0 && !is_there(cpus, w->p, (unsigned)added))) {
        return;
    }
    if (!has_unpinned_vcpu(w->p)) {
        bool told = !fifo; /* they were told to share, and leave the host its other CPUs */

        for (unsigned i = 0; !told && i < QEMU_VCPUS_MAX; i++) {
            told = (added < 0 || (unsigned)added == i) && warn_shared_place(w, cpus, i);
        }
    } else if (fifo) {
        warn(w, "%u vCPUs share %u host CPUs under policy=fifo" WILL_HANG, vcpus, places);
    } else {
        warn(w, "%u vCPUs share %u host CPUs under policy=rr" GET_LITTLE, vcpus, places);
    }
}


/* The host does not balance load among isolated CPUs: a thread stays on the first it ran on. */
static void warn_isolated_set(const Warner *w, const RealtimeCpus *cpus, const QemuCpuSet *set,
                              const char *what)
{
    QemuCpuSet inside = *set;
    char text[CPU_SET_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(inside.bits); i++) {
        inside.bits[i] &= cpus->isolated.bits[i];
    }
    if (qemu_cpu_set_count(&inside) > 1) {
        warn(w,
             "%s host CPUs %s, which are isolated (isolcpus): threads are not spread over them, "
             "all would run on one; name one, or CPUs that are not isolated",
             what, cpu_set_format(&inside, text, sizeof(text)));
    }
}

static void warn_isolated(const Warner *w, const RealtimeCpus *cpus)
{
    if (w->p->event_pinned) {
        warn_isolated_set(w, cpus, &w->p->event_affinity, "event-affinity holds");
    }
    if (w->p->realtime && (has_unpinned_vcpu(w->p) || !w->p->event_pinned) &&
        qemu_cpu_set_within(&cpus->allowed, &cpus->isolated)) {
        warn_isolated_set(w, cpus, &cpus->allowed, "its threads without affinity may use");
    }
}

/* What is certain to happen comes last, where it is read. */
void realtime_options_warnings(const RealtimeCpus *cpus, const RealtimeOptions *o,
                               void (*fn)(void *opaque, const char *text), void *opaque)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < o->config.profile_count; i++) {
            Warner w = { &o->profiles[i], fn, opaque };

            if (pass == 0) {
                warn_isolated(&w, cpus);
            } else {
                warn_shared(&w, cpus, -1);
            }
        }
    }
}

void realtime_options_warn_added(const RealtimeCpus *cpus, const RealtimeOptions *o, unsigned added,
                                 void (*fn)(void *opaque, const char *text), void *opaque)
{
    for (unsigned i = 0; i < o->config.profile_count; i++) {
        Warner w = { &o->profiles[i], fn, opaque };

        warn_shared(&w, cpus, (int)added);
    }
}
