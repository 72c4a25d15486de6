/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Self-check, first part: the host's kernel and its CPUs. Where the names come from:
 * Documentation/admin-guide/kernel-parameters.txt, admin-guide/pm/{cpufreq,cpuidle}.rst,
 * core-api/irq/irq-affinity.rst of the kernel.
 */
#include "host-check-internal.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define OUTSIDE_OF "the CPUs of the realtime threads"

/* ---- Kernel ---- */

static const char want_preempt[] = "PREEMPT_RT";
static const char get_preempt[] = "install a PREEMPT_RT kernel (apt install linux-image-rt-amd64)";

/* A kernel with PREEMPT_DYNAMIC: what was chosen at boot or since. */
static void preempt_dynamic(HostCheckRun *r)
{
    char *text = hc_read(r, "/sys/kernel/debug/sched/preempt");
    char *mode = text ? hc_choice(text) : hc_cmdline(r, "preempt");

    if (!mode) {
        hc_bad(r, HOST_CHECK_WARN, want_preempt, get_preempt,
               "PREEMPT_DYNAMIC, mode not readable");
    } else if (strcmp(mode, "none") == 0 || strcmp(mode, "voluntary") == 0) {
        hc_bad(r, HOST_CHECK_FAIL, want_preempt,
               "install a PREEMPT_RT kernel, or boot with preempt=full",
               "preempt=%s: system calls of others are not preempted", mode);
    } else {
        hc_bad(r, HOST_CHECK_WARN, want_preempt, get_preempt, "preempt=%s", mode);
    }
    g_free(mode);
    g_free(text);
}

static void check_preemption(HostCheckRun *r)
{
    char *version = hc_read(r, "/proc/version");

    if (!version) {
        hc_bad(r, HOST_CHECK_WARN, want_preempt, get_preempt, "unknown: no /proc/version");
    } else if (strstr(version, "PREEMPT_RT") || strstr(version, "PREEMPT RT")) {
        hc_ok(r, want_preempt, "PREEMPT_RT");
    } else if (strstr(version, "PREEMPT_DYNAMIC")) {
        preempt_dynamic(r);
    } else if (strstr(version, "PREEMPT")) {
        hc_bad(r, HOST_CHECK_WARN, want_preempt, get_preempt, "PREEMPT");
    } else {
        hc_bad(r, HOST_CHECK_FAIL, want_preempt, get_preempt,
               "no preemption: system calls of others are not preempted");
    }
    g_free(version);
}

static void check_clocksource(HostCheckRun *r)
{
    static const char want[] = "tsc";
    static const char fix[] = "boot with clocksource=tsc tsc=reliable, and see why the kernel "
                              "distrusts the TSC (dmesg | grep -i tsc)";
    static const char *const slow[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit" };
    char *s = hc_read(r, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    bool is_slow = false;

    for (unsigned i = 0; s && i < ARRAY_SIZE(slow); i++) {
        is_slow |= strcmp(s, slow[i]) == 0;
    }
    if (!s) {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "unknown: no clocksource0 in /sys");
    } else if (strcmp(s, "tsc") == 0) {
        hc_ok(r, want, "%s", s);
    } else if (is_slow) {
        hc_bad(r, HOST_CHECK_FAIL, want, fix,
               "%s: each look at the time takes a microsecond or more, one CPU at a time", s);
    } else {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%s", s);
    }
    g_free(s);
}

/* ---- Placement ---- */

/* See the warning of the same, realtime/profile-opts.c. */
static void too_many_vcpus(HostCheckRun *r, const char *want)
{
    hc_bad(r, r->p->fifo ? HOST_CHECK_FAIL : HOST_CHECK_WARN, want,
           r->p->fifo ? "policy=rr, a host CPU for each (vcpu-affinity=), or fewer CPUs (-smp, device_del)"
                      : "fewer CPUs (-smp, device_del), or a host CPU for each (vcpu-affinity=)",
           "%u realtime vCPUs share %u host CPUs under policy=%s", r->p->vcpus, r->p->places,
           r->p->fifo ? "fifo" : "rr");
}

static void check_affinity(HostCheckRun *r)
{
    static const char want[] = "vCPUs and event threads on host CPUs of their own";
    HostCpus offline = hc_cpus_minus(&r->rt, &r->online);
    unsigned online = qemu_cpu_set_count(&r->online);

    if (r->p->vcpus > r->p->places && (!r->pinned || !qemu_cpu_set_count(&offline))) {
        too_many_vcpus(r, want);
    } else if (!r->pinned) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "-realtime ...,vcpu-affinity=CPUS,event-affinity=CPUS (CPUs that isolcpus= names)",
               "not given: the kernel may move threads between all %u CPUs", online);
    } else if (qemu_cpu_set_count(&offline)) {
        char *text = hc_cpus_text(&offline), *on = hc_cpus_text(&r->online);
        char *fix = g_strdup_printf("choose among the CPUs that are online, %s", on);
        hc_bad(r, HOST_CHECK_FAIL, want, fix, "CPUs %s of %s are not online", text, r->rt_text);
        g_free(fix);
        g_free(on);
        g_free(text);
    } else if (qemu_cpu_set_count(&r->rt) >= online) {
        hc_bad(r, HOST_CHECK_WARN, want, "leave at least CPU 0 to the host",
               "%s: every CPU of the host", r->rt_text);
    } else {
        hc_ok(r, want, "%s of %u CPUs", r->rt_text, online);
    }
}

/* One of the sets that keep the host away from CPUs. have: NULL if the kernel names none. */
static void judge_kept_free(HostCheckRun *r, const char *key, const char *have)
{
    HostCpus set, missing;
    char *want = g_strdup_printf("%s contains " OUTSIDE_OF " (%s)", key,
                                 r->pinned ? r->rt_text : "none were given");
    char *fix = r->pinned
                    ? g_strdup_printf("boot with %s=%s", key, r->rt_text)
                    : g_strdup_printf("boot with %s=CPUS and give those CPUs by vcpu-affinity=",
                                      key);

    hc_cpus_parse(&set, have ? have : "");
    missing = hc_cpus_minus(&r->rt, &set);
    if (!qemu_cpu_set_count(&set)) {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "none");
    } else if (qemu_cpu_set_count(&missing)) {
        char *text = hc_cpus_text(&missing), *got = hc_cpus_text(&set);
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%s, without %s", got, text);
        g_free(got);
        g_free(text);
    } else {
        char *got = hc_cpus_text(&set);
        hc_ok(r, want, "%s", got);
        g_free(got);
    }
    g_free(fix);
    g_free(want);
}

/* /sys says what is in force, also when a cpuset partition did it; older kernels only say what
 * was asked for at boot. */
static void check_kept_free(HostCheckRun *r, const char *key, const char *file)
{
    char *have = hc_read(r, "/sys/devices/system/cpu/%s", file);

    if (!have) {
        have = hc_cmdline(r, key);
    }
    judge_kept_free(r, key, have);
    g_free(have);
}

static void check_isolcpus(HostCheckRun *r)
{
    check_kept_free(r, "isolcpus", "isolated");
}

static void check_nohz_full(HostCheckRun *r)
{
    check_kept_free(r, "nohz_full", "nohz_full");
}

static void check_rcu_nocbs(HostCheckRun *r)
{
    char *have = hc_cmdline(r, "rcu_nocbs");

    /* nohz_full= takes callbacks away too; a bare rcu_nocbs, and rcu_nocbs=all, from every CPU. */
    if (have && (!*have || strcmp(have, "all") == 0)) {
        g_free(have);
        have = hc_cpus_text(&r->online);
    } else if (!have) {
        have = hc_read(r, "/sys/devices/system/cpu/nohz_full");
    }
    judge_kept_free(r, "rcu_nocbs", have);
    g_free(have);
}

/* Does interrupt irq arrive on a CPU of ours? False and *known false: cannot be read. */
static bool irq_is_ours(HostCheckRun *r, const char *irq, bool *known)
{
    HostCpus set;
    char *list = hc_read(r, "/proc/irq/%s/effective_affinity_list", irq);

    if (!list) {
        list = hc_read(r, "/proc/irq/%s/smp_affinity_list", irq);
    }
    *known = list != NULL;
    hc_cpus_parse(&set, list ? list : "");
    g_free(list);
    return hc_cpus_meet(&set, &r->rt);
}

#define IRQS_SHOWN 8

typedef struct Irqs {
    unsigned ours, total;
    GString *names, *unknown;
} Irqs;

static void irq_note(GString *names, unsigned n, const char *irq)
{
    if (n <= IRQS_SHOWN) {
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", irq);
    } else if (n == IRQS_SHOWN + 1) {
        g_string_append(names, ", ...");
    }
}

static void irqs_gather(HostCheckRun *r, GDir *dir, Irqs *irqs)
{
    unsigned unknown = 0;

    for (const char *irq; dir && (irq = g_dir_read_name(dir));) {
        bool known;

        if (!g_ascii_isdigit(*irq)) {
            continue;
        }
        irqs->total++;
        if (irq_is_ours(r, irq, &known)) {
            irq_note(irqs->names, ++irqs->ours, irq);
        } else if (!known) {
            irq_note(irqs->unknown, ++unknown, irq);
        }
    }
}

static void check_irqs(HostCheckRun *r)
{
    static const char want[] = "no device interrupt arrives on " OUTSIDE_OF;
    char *path = g_strconcat(r->root, "/proc/irq", NULL);
    GDir *dir = g_dir_open(path, 0, NULL);
    Irqs irqs = { .names = g_string_new(NULL), .unknown = g_string_new(NULL) };

    g_free(path);
    irqs_gather(r, dir, &irqs);
    if (!dir) {
        hc_bad(r, HOST_CHECK_WARN, want, "mount /proc", "unknown: no /proc/irq");
    } else if (irqs.ours) {
        hc_bad(r, HOST_CHECK_WARN, want,
               r->pinned ? "for i in /proc/irq/[0-9]*; do echo CPUS-OF-THE-HOST > "
                           "$i/smp_affinity_list; done (and stop irqbalance, or set its "
                           "IRQBALANCE_BANNED_CPULIST)"
                         : "pin the realtime threads, then move interrupts away from their CPUs",
               "%u of %u arrive on CPUs %s: %s", irqs.ours, irqs.total, r->rt_text, irqs.names->str);
    } else if (irqs.unknown->len) {
        hc_bad(r, HOST_CHECK_WARN, want, "let this process read /proc/irq/*/smp_affinity_list",
               "unknown: where interrupts %s arrive cannot be read", irqs.unknown->str);
    } else {
        hc_ok(r, want, "none of %u on CPUs %s", irqs.total, r->rt_text);
    }
    g_string_free(irqs.names, TRUE);
    g_string_free(irqs.unknown, TRUE);
    if (dir) {
        g_dir_close(dir);
    }
}

/* ---- Power ---- */

#define CPU_DIR "/sys/devices/system/cpu"

/* A file of the first realtime CPU for which it is neither read nor known to be absent; NULL: none. g_free(). */
static char *unreadable(HostCheckRun *r, const char *file)
{
    for (unsigned cpu = 0; cpu < QEMU_CPU_SET_MAX; cpu++) {
        char *path = g_strdup_printf(CPU_DIR "/cpu%u/%s", cpu, file);
        char *text = qemu_cpu_set_has(&r->rt, cpu) ? hc_read(r, "%s", path) : g_strdup("");
        bool unknown = !text && !hc_absent(r, CPU_DIR, path);

        g_free(text);
        if (unknown) {
            return path;
        }
        g_free(path);
    }
    return NULL;
}

static void check_governor(HostCheckRun *r)
{
    static const char want[] = "performance";
    char *bad = NULL, *unknown = unreadable(r, "cpufreq/scaling_governor");
    unsigned first = 0, n = 0, seen = 0;

    for (unsigned cpu = 0; cpu < QEMU_CPU_SET_MAX; cpu++) {
        char *g = qemu_cpu_set_has(&r->rt, cpu)
                      ? hc_read(r, CPU_DIR "/cpu%u/cpufreq/scaling_governor", cpu)
                      : NULL;
        seen += g != NULL;
        if (g && strcmp(g, want) != 0 && !n++) {
            bad = g_steal_pointer(&g);
            first = cpu;
        }
        g_free(g);
    }
    if (n) {
        hc_bad(r, HOST_CHECK_WARN, want, "cpupower frequency-set -g performance",
               "%s on CPU %u, %u of %u CPUs not performance", bad, first, n, seen);
    } else if (unknown) {
        hc_unknown(r, want, unknown);
    } else {
        hc_ok(r, want, "%s", seen ? "performance" : "no frequency scaling in this kernel");
    }
    g_free(unknown);
    g_free(bad);
}

/* A deeper state than this costs more to leave than a guest's interrupt. */
#define IDLE_LATENCY_MAX_US 10

/* The largest latency of an idle state that may be entered on cpu; -1: no states. */
static int64_t deepest_idle(HostCheckRun *r, unsigned cpu, char **name)
{
    int64_t worst = -1, latency, disabled;

    for (unsigned s = 0; hc_read_i64(r, &latency,
                                     "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/latency", cpu,
                                     s); s++) {
        if (hc_read_i64(r, &disabled, "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/disable", cpu,
                        s) && disabled) {
            latency = 0;
        }
        if (latency > worst) {
            worst = latency;
            g_free(*name);
            *name = hc_read(r, "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/name", cpu, s);
        }
    }
    return worst;
}

static void check_idle(HostCheckRun *r)
{
    static const char want[] = "no idle state of more than 10 us latency";
    int64_t worst = -1;
    unsigned worst_cpu = 0;
    char *name = NULL;

    for (unsigned cpu = 0; cpu < QEMU_CPU_SET_MAX; cpu++) {
        char *n = NULL;
        int64_t l = qemu_cpu_set_has(&r->rt, cpu) ? deepest_idle(r, cpu, &n) : -1;
        if (l > worst) {
            worst = l;
            worst_cpu = cpu;
            g_free(name);
            name = g_steal_pointer(&n);
        }
        g_free(n);
    }
    char *dev = g_strconcat(r->root, "/dev/cpu_dma_latency", NULL);
    char *unknown = unreadable(r, "cpuidle/state0/latency");
    if (unknown && worst <= IDLE_LATENCY_MAX_US) {
        hc_unknown(r, want, unknown);
    } else if (worst < 0) {
        hc_ok(r, want, "no idle states in this kernel");
    } else if (worst <= IDLE_LATENCY_MAX_US) {
        hc_ok(r, want, "at most %" PRId64 " us", worst);
    } else if (r->p->holds_dma_latency && access(dev, W_OK) == 0) {
        hc_ok(r, want, "%s, %" PRId64 " us, but /dev/cpu_dma_latency is held at 0 while realtime",
              name ? name : "?", worst);
    } else {
        hc_bad(r, HOST_CHECK_WARN, want,
               "cpupower idle-set -D 10, or let the process write /dev/cpu_dma_latency, or boot "
               "with processor.max_cstate=1 intel_idle.max_cstate=0",
               "%s on CPU %u takes %" PRId64 " us to leave", name ? name : "?", worst_cpu, worst);
    }
    g_free(unknown);
    g_free(dev);
    g_free(name);
}

#define SIBLINGS "topology/thread_siblings_list"

/* Of the realtime CPUs one has a sibling: 1; none: 0; nothing says so: -1. */
static int has_sibling(HostCheckRun *r)
{
    bool unknown = false;
    int found = -1;

    for (unsigned cpu = 0; cpu < QEMU_CPU_SET_MAX; cpu++) {
        HostCpus set;
        char *text = qemu_cpu_set_has(&r->rt, cpu) ? hc_read(r, CPU_DIR "/cpu%u/" SIBLINGS, cpu) : NULL;

        hc_cpus_parse(&set, text ? text : "");
        if (text) {
            found = MAX(found, qemu_cpu_set_count(&set) > 1);
        }
        unknown |= !text && qemu_cpu_set_has(&r->rt, cpu);
        g_free(text);
    }
    return unknown && found != 1 ? -1 : found;
}

static void check_smt(HostCheckRun *r)
{
    static const char want[] = "off: the sibling's load is the guest's jitter";
    char *text = hc_read(r, CPU_DIR "/smt/active");
    int sibling = text ? 0 : has_sibling(r); /* before Linux 4.19 there is no such file */

    if (!text && sibling < 0) {
        hc_unknown(r, want, CPU_DIR "/smt/active");
    } else if (sibling > 0) {
        hc_bad(r, HOST_CHECK_WARN, want, "switch SMT off in the firmware", "on: " SIBLINGS " names more than one CPU");
    } else if (!text || strcmp(text, "0") == 0) {
        hc_ok(r, want, "off");
    } else {
        hc_bad(r, HOST_CHECK_WARN, want, "echo off > /sys/devices/system/cpu/smt/control", "on");
    }
    g_free(text);
}

const HostCheckDef hc_cpu_checks[] = {
    { "kernel-preemption", check_preemption },
    { "clocksource", check_clocksource },
    { "affinity", check_affinity },
    { "isolcpus", check_isolcpus },
    { "nohz-full", check_nohz_full },
    { "rcu-nocbs", check_rcu_nocbs },
    { "irq-affinity", check_irqs },
    { "governor", check_governor },
    { "idle-states", check_idle },
    { "smt", check_smt },
    { NULL, NULL },
};
