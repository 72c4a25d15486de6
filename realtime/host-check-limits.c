/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Self-check, second part: what the host permits this process (throttling, limits, capabilities,
 * cgroups, seccomp: sched(7), capabilities(7), Documentation/scheduler/sched-rt-group.rst), and
 * the priorities of the kernel's own threads.
 */
#include "host-check-internal.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* ---- Throttling ---- */

#define PROC_KERNEL "/proc/sys/kernel"

static void check_throttling(HostCheckRun *r)
{
    static const char want[] = "-1";
    static const char fix[] = "sysctl kernel.sched_rt_runtime_us=-1";
    int64_t run, period = 1000000;

    if (!hc_read_i64(r, &run, PROC_KERNEL "/sched_rt_runtime_us")) {
        hc_none(r, want, PROC_KERNEL, PROC_KERNEL "/sched_rt_runtime_us", "no such limit in this kernel");
        return;
    }
    hc_read_i64(r, &period, "/proc/sys/kernel/sched_rt_period_us");
    if (run < 0) {
        hc_ok(r, want, "-1");
    } else if (run == 0) {
        hc_bad(r, HOST_CHECK_FAIL, want, fix, "0: no realtime thread runs at all");
    } else {
        hc_bad(r, HOST_CHECK_WARN, want, fix,
               "realtime threads run at most %" PRId64 " of each %" PRId64 " us", run, period);
    }
}

/* Is the kernel known to be older? g_free(): its release; NULL: unknown. */
static bool kernel_before(HostCheckRun *r, unsigned major, unsigned minor, char **release)
{
    unsigned a, b;

    *release = hc_read(r, PROC_KERNEL "/osrelease");
    return *release && sscanf(*release, "%u.%u", &a, &b) == 2 && (a < major || (a == major && b < minor));
}

#define DEBUGFS     "/sys/kernel/debug"
#define FAIR_SERVER DEBUGFS "/sched/fair_server"

/* Why its files cannot be read, and what helps (kernel/sched/debug.c: CONFIG_SCHED_DEBUG up to 6.14). */
static void fair_server_unknown(HostCheckRun *r, const char *want, unsigned cpu)
{
    char *release;

    if (kernel_before(r, 6, 12, &release)) {
        hc_ok(r, want, "none in this kernel: %s is older than Linux 6.12", release);
    } else if (hc_absent(r, DEBUGFS "/sched", FAIR_SERVER)) {
        hc_bad(r, HOST_CHECK_WARN, want, "use a kernel that has the file (Linux 6.12 and later), or one without "
               "the server (older than 6.12)", "unknown: " DEBUGFS "/sched is there, but no fair_server in it");
    } else {
        hc_bad(r, HOST_CHECK_WARN, want,
               "mount -t debugfs none " DEBUGFS ", and let this process read it (as root); a kernel of Linux 6.12 "
               "to 6.14 needs CONFIG_SCHED_DEBUG", "unknown: " FAIR_SERVER "/cpu%u/runtime cannot be read", cpu);
    }
    g_free(release);
}

/* Since Linux 6.12 a deadline server gives SCHED_OTHER its share in place of throttling. */
static void check_fair_server(HostCheckRun *r)
{
    static const char want[] = "0 on " "the CPUs of the realtime threads";
    int64_t v, worst = -1;
    unsigned worst_cpu = 0;
    int unread = -1;

    for (unsigned cpu = 0; cpu < QEMU_CPU_SET_MAX; cpu++) {
        if (!qemu_cpu_set_has(&r->rt, cpu)) {
            continue;
        }
        if (!hc_read_i64(r, &v, FAIR_SERVER "/cpu%u/runtime", cpu)) {
            unread = unread < 0 ? (int)cpu : unread;
        } else if (v > worst) {
            worst = v;
            worst_cpu = cpu;
        }
    }
    if (worst > 0) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "for c in " FAIR_SERVER "/cpu*; do echo 0 > $c/runtime; done",
               "%" PRId64 " ns of each second on CPU %u go to others when realtime threads want it "
               "all", worst, worst_cpu);
    } else if (unread >= 0) {
        fair_server_unknown(r, want, (unsigned)unread);
    } else {
        hc_ok(r, want, "0");
    }
}

/* ---- Limits ---- */

/* The soft and the hard limit of a line of /proc/self/limits; "unlimited" is UINT64_MAX. */
static bool read_limit(HostCheckRun *r, const char *name, uint64_t *soft, uint64_t *hard)
{
    char *text = hc_read(r, "/proc/self/limits"), a[32], b[32];
    char *line = text ? strstr(text, name) : NULL;
    bool ok = line && sscanf(line + strlen(name), "%31s %31s", a, b) == 2;

    if (ok) {
        *soft = strcmp(a, "unlimited") == 0 ? UINT64_MAX : g_ascii_strtoull(a, NULL, 10);
        *hard = strcmp(b, "unlimited") == 0 ? UINT64_MAX : g_ascii_strtoull(b, NULL, 10);
    }
    g_free(text);
    return ok;
}

/* linux/capability.h. */
#define CAP_BIT_IPC_LOCK 14
#define CAP_BIT_SYS_NICE 23

/* Effective capabilities that count: those of another user namespace do not for these calls. */
static uint64_t read_caps(HostCheckRun *r, bool *foreign)
{
    char *caps = hc_field(r, "/proc/self/status", "CapEff");
    char *map = hc_read(r, "/proc/self/uid_map");
    uint64_t v = caps ? g_ascii_strtoull(caps, NULL, 16) : 0;
    unsigned long inside = 0, outside = 0, count = UINT32_MAX;

    *foreign = map ? sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
                         (inside || outside || count != UINT32_MAX)
                   : !hc_absent(r, "/proc/self", "/proc/self/uid_map");
    g_free(caps);
    g_free(map);
    return *foreign ? 0 : v;
}

static bool has_cap(HostCheckRun *r, unsigned bit)
{
    bool foreign;
    return read_caps(r, &foreign) >> bit & 1;
}

static void check_rtprio(HostCheckRun *r)
{
    uint64_t soft = 0, hard = 0;
    bool known = read_limit(r, "Max realtime priority", &soft, &hard);
    char *want = g_strdup_printf("at least %d, or CAP_SYS_NICE", r->prio);
    char *fix = g_strdup_printf("ulimit -r %d; LimitRTPRIO=%d in a systemd unit; or 'USER - rtprio "
                                "%d' in /etc/security/limits.conf", r->prio, r->prio, r->prio);

    if (has_cap(r, CAP_BIT_SYS_NICE)) {
        hc_ok(r, want, "CAP_SYS_NICE: any priority");
    } else if (!known) {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "unknown: no /proc/self/limits");
    } else if (soft >= (uint64_t)r->prio) {
        hc_ok(r, want, "%" PRIu64, MIN(soft, 99));
    } else {
        hc_bad(r, HOST_CHECK_FAIL, want, fix, "%" PRIu64 " (hard limit %" PRIu64 ")", soft,
               MIN(hard, 99));
    }
    g_free(fix);
    g_free(want);
}

static void check_memlock(HostCheckRun *r)
{
    uint64_t soft = 0, hard = 0, need = r->p->bytes_needed;
    bool known = read_limit(r, "Max locked memory", &soft, &hard);
    char *want = need ? g_strdup_printf("at least %" PRIu64 " bytes, or CAP_IPC_LOCK", need)
                      : g_strdup("unlimited, or CAP_IPC_LOCK");
    static const char fix[] = "ulimit -l unlimited; or LimitMEMLOCK=infinity in a systemd unit";

    if (has_cap(r, CAP_BIT_IPC_LOCK)) {
        hc_ok(r, want, "CAP_IPC_LOCK: any amount");
    } else if (!known) {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "unknown: no /proc/self/limits");
    } else if (soft == UINT64_MAX) {
        hc_ok(r, want, "unlimited");
    } else if (need && soft >= need) {
        hc_ok(r, want, "%" PRIu64 " bytes", soft);
    } else {
        /* Without a size it may do for a small guest; with memory not locked it does not matter. */
        bool fails = (need || soft == 0) && r->p->mem_lock != MEM_LOCK_OFF;
        hc_bad(r, fails ? HOST_CHECK_FAIL : HOST_CHECK_WARN, want, fix, "%" PRIu64 " bytes", soft);
    }
    g_free(want);
}

static void check_rttime(HostCheckRun *r)
{
    static const char want[] = "unlimited";
    static const char fix[] = "ulimit -R unlimited; or LimitRTTIME=infinity in a systemd unit";
    uint64_t soft = 0, hard = 0;

    if (!read_limit(r, "Max realtime timeout", &soft, &hard)) {
        hc_bad(r, HOST_CHECK_WARN, want, fix, "unknown: no /proc/self/limits");
    } else if (soft == UINT64_MAX) {
        hc_ok(r, want, "unlimited");
    } else {
        hc_bad(r, soft == 0 ? HOST_CHECK_FAIL : HOST_CHECK_WARN, want, fix,
               "%" PRIu64 " us: the host ends a realtime thread that runs so long", soft);
    }
}

static bool limits_suffice(HostCheckRun *r)
{
    uint64_t rtprio, memlock, hard;

    return read_limit(r, "Max realtime priority", &rtprio, &hard) &&
           rtprio >= (uint64_t)r->prio && read_limit(r, "Max locked memory", &memlock, &hard) &&
           (memlock == UINT64_MAX || r->p->mem_lock == MEM_LOCK_OFF ||
            (r->p->bytes_needed && memlock >= r->p->bytes_needed));
}

static void check_capabilities(HostCheckRun *r)
{
    static const char want[] = "CAP_SYS_NICE and CAP_IPC_LOCK, or limits that suffice";
    static const char fix[] = "setcap cap_sys_nice,cap_ipc_lock+ep on the program; "
                              "AmbientCapabilities=CAP_SYS_NICE CAP_IPC_LOCK in a systemd unit; or "
                              "raise the limits";
    bool foreign;
    uint64_t caps = read_caps(r, &foreign);
    bool nice = caps >> CAP_BIT_SYS_NICE & 1, lock = caps >> CAP_BIT_IPC_LOCK & 1;

    if (nice && lock) {
        hc_ok(r, want, "both");
        return;
    }
    const char *have = foreign ? "none that count in this user namespace"
                       : nice  ? "no CAP_IPC_LOCK"
                       : lock  ? "no CAP_SYS_NICE"
                               : "neither";
    if (limits_suffice(r)) {
        hc_ok(r, want, "%s, but the limits suffice", have);
    } else {
        hc_bad(r, nice || lock ? HOST_CHECK_WARN : HOST_CHECK_FAIL, want, fix, "%s", have);
    }
}

/* ---- Cgroups ---- */

static char *cgroup_path(HostCheckRun *r, const char *controller);

static bool has_word(const char *list, const char *word)
{
    char **words = g_strsplit(list, ",", -1);
    bool found = g_strv_contains((const char *const *)words, word);

    g_strfreev(words);
    return found;
}

/*
 * The verdict where a file of this process's cgroup was not read. OK: the process is in no group of that
 * kind, or its group has no such file. where: the file, NULL if it is not known where it would be.
 */
static void cgroup_none(HostCheckRun *r, const char *want, const char *controller, const char *where,
                        const char *none)
{
    char *groups = hc_read(r, "/proc/self/cgroup"), *path = cgroup_path(r, controller);
    char *dir = where ? g_path_get_dirname(where) : NULL;

    if (where) {
        hc_none(r, want, dir, where, none);
    } else if (!groups) {
        hc_none(r, want, "/proc/self", "/proc/self/cgroup", "no cgroups in this kernel");
    } else if (path && controller) {
        char *fix = g_strdup_printf("mount -t cgroup -o %s none /sys/fs/cgroup/%s", controller, controller);

        hc_bad(r, HOST_CHECK_WARN, want, fix, "unknown: the hierarchy of %s (cgroup v1) is not mounted here",
               controller);
        g_free(fix);
    } else if (path && *path) { /* the root group has no limits */
        hc_bad(r, HOST_CHECK_WARN, want, "mount -t cgroup2 none /sys/fs/cgroup",
               "unknown: cgroup v2 is not mounted here");
    } else {
        hc_ok(r, want, "%s", none);
    }
    g_free(dir);
    g_free(path);
    g_free(groups);
}

/* This process's path in the hierarchy of a controller (NULL: version 2's). g_free(). */
static char *cgroup_path(HostCheckRun *r, const char *controller)
{
    char *text = hc_read(r, "/proc/self/cgroup"), *path = NULL;
    char **lines = g_strsplit(text ? text : "", "\n", -1);

    for (char **l = lines; *l && !path; l++) {
        char **part = g_strsplit(*l, ":", 3); /* number:controllers:path */
        if (g_strv_length(part) == 3 &&
            (controller ? has_word(part[1], controller) : strcmp(part[0], "0") == 0)) {
            path = g_strdup(strcmp(part[2], "/") == 0 ? "" : part[2]);
        }
        g_strfreev(part);
    }
    g_strfreev(lines);
    g_free(text);
    return path;
}

/* Where that hierarchy is mounted. g_free(). */
static char *cgroup_mount(HostCheckRun *r, const char *controller)
{
    char *text = hc_read(r, "/proc/self/mountinfo"), *mount = NULL;
    char **lines = g_strsplit(text ? text : "", "\n", -1);

    for (char **l = lines; *l && !mount; l++) {
        char *rest = strstr(*l, " - "); /* fields after it: type, source, super options */
        char **head = g_strsplit(*l, " ", 6), **tail = g_strsplit(rest ? rest + 3 : "", " ", 3);
        if (g_strv_length(head) == 6 && g_strv_length(tail) == 3 &&
            strcmp(tail[0], controller ? "cgroup" : "cgroup2") == 0 &&
            (!controller || has_word(tail[2], controller))) {
            mount = g_strdup(head[4]);
        }
        g_strfreev(head);
        g_strfreev(tail);
    }
    g_strfreev(lines);
    g_free(text);
    return mount;
}

/* A file of this process's cgroup; in a cgroup namespace its path may not exist: then the root. */
static char *cgroup_read(HostCheckRun *r, const char *controller, const char *name, char **where)
{
    char *path = cgroup_path(r, controller), *mount = cgroup_mount(r, controller), *text = NULL;

    *where = NULL;
    if (path && mount) {
        *where = g_strdup_printf("%s%s/%s", mount, path, name);
        text = hc_read(r, "%s", *where);
        if (!text && *path) {
            g_free(*where);
            *where = g_strdup_printf("%s/%s", mount, name);
            text = hc_read(r, "%s", *where);
        }
    }
    g_free(path);
    g_free(mount);
    return text;
}

static void check_cgroup_v1(HostCheckRun *r)
{
    static const char want[] = "a budget for realtime threads in this process's cpu cgroup";
    char *where, *text = cgroup_read(r, "cpu", "cpu.rt_runtime_us", &where);

    if (!text) {
        cgroup_none(r, want, "cpu", where, "no realtime budgets here (cgroup v1 cpu.rt_runtime_us)");
    } else if (g_ascii_strtoll(text, NULL, 10) == 0) {
        char *fix = g_strdup_printf("echo 950000 > %s (and in each group above it)", where);
        hc_bad(r, HOST_CHECK_FAIL, want, fix, "%s is 0: EPERM even for root", where);
        g_free(fix);
    } else if (*text != '-') {
        char *fix = g_strdup_printf("echo -1 > %s, or start in a group without a budget", where);
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%s is %s", where, text);
        g_free(fix);
    } else {
        hc_ok(r, want, "%s is %s", where, text);
    }
    g_free(text);
    g_free(where);
}

/* Was the kernel built with this option? 1, 0; -1: its configuration cannot be read. */
static int kernel_has(HostCheckRun *r, const char *option)
{
    char *release = hc_read(r, "/proc/sys/kernel/osrelease");
    char *config = release ? hc_read(r, "/boot/config-%s", release) : NULL;
    char *line = g_strdup_printf("%s=y", option);
    int found = config ? strstr(config, line) != NULL : -1;

    g_free(line);
    g_free(config);
    g_free(release);
    return found;
}

static void check_cgroup_v2(HostCheckRun *r)
{
    static const char want[] = "realtime permitted in this process's cgroup, no quota of CPU time";
    char *where, *text = cgroup_read(r, NULL, "cpu.max", &where);
    int group_sched = text ? kernel_has(r, "CONFIG_RT_GROUP_SCHED") : 0;

    /* Documentation/admin-guide/cgroup-v2.rst, "CPU": with group scheduling of realtime threads
     * compiled in, a group with the cpu controller has no budget, and no file to give it one. */
    if (text && group_sched > 0) {
        hc_bad(r, HOST_CHECK_FAIL, want,
               "boot with rt_group_sched=0 (Linux 6.16 and later); or move the process to a group "
               "without the cpu controller",
               "the kernel has RT_GROUP_SCHED, and %s exists: EPERM even for root", where);
    } else if (text && strncmp(text, "max", 3) != 0) {
        char *fix = g_strdup_printf("echo max > %s (CPUQuota= in a systemd unit)", where);
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%s is %s: helper threads are throttled", where,
               text);
        g_free(fix);
    } else if (text && group_sched < 0) {
        hc_bad(r, HOST_CHECK_WARN, want, "see that CONFIG_RT_GROUP_SCHED is not set (zgrep RT_GROUP_SCHED "
               "/proc/config.gz), and put the configuration at /boot/config-RELEASE",
               "%s is %s; unknown: whether the kernel has RT_GROUP_SCHED", where, text);
    } else if (text) {
        hc_ok(r, want, "%s is %s", where, text);
    } else {
        cgroup_none(r, want, NULL, where, "no cpu controller here (cgroup v2)");
    }
    g_free(text);
    g_free(where);
}

static void check_cpuset(HostCheckRun *r)
{
    HostCpus have, missing;
    char *want = g_strdup_printf("CPUs %s", r->rt_text);
    char *text = hc_field(r, "/proc/self/status", "Cpus_allowed_list");

    hc_cpus_parse(&have, text ? text : "");
    missing = hc_cpus_minus(&r->rt, &have);
    if (!text) {
        hc_bad(r, HOST_CHECK_WARN, want, "mount /proc", "unknown: no Cpus_allowed_list");
    } else if (!qemu_cpu_set_count(&missing)) {
        hc_ok(r, want, "%s", text);
    } else {
        char *m = hc_cpus_text(&missing);
        hc_bad(r, r->pinned && !hc_cpus_meet(&have, &r->rt) ? HOST_CHECK_FAIL : HOST_CHECK_WARN,
               want, "AllowedCPUs= in a systemd unit, cpuset.cpus of the cgroup, or taskset",
               "%s, without %s", text, m);
        g_free(m);
    }
    g_free(text);
    g_free(want);
}

static void check_seccomp(HostCheckRun *r)
{
    static const char want[] = "0, or a filter that permits sched_setscheduler, "
                               "sched_setaffinity and mlockall";
    char *text = hc_field(r, "/proc/self/status", "Seccomp"), *status = hc_read(r, "/proc/self/status");

    if (!text && !status) {
        hc_unknown(r, want, "/proc/self/status");
    } else if (!text || strcmp(text, "0") == 0) {
        hc_ok(r, want, "%s", text ? "0" : "none in this kernel");
    } else if (strcmp(text, "2") == 0) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "permit the calls in the container's profile (start-up tries them)",
               "2: a filter is in force and may refuse");
    } else {
        hc_bad(r, HOST_CHECK_FAIL, want, "start without strict seccomp", "%s", text);
    }
    g_free(status);
    g_free(text);
}

/* ---- The kernel's own threads ---- */

/* If pid is one of the kernel's threads, its name (g_free()) and realtime priority; else NULL. */
static char *kthread_read(HostCheckRun *r, const char *pid, int *prio)
{
    char *text = g_ascii_isdigit(*pid) ? hc_read(r, "/proc/%s/stat", pid) : NULL, *name = NULL;
    char *open = text ? strchr(text, '(') : NULL, *close = text ? strrchr(text, ')') : NULL;

    if (open && close) {
        /* Fields from 3 (the state) on: 9 flags (PF_KTHREAD), 40 priority. proc(5). */
        char **f = g_strsplit(g_strchug(close + 1), " ", -1);
        if (g_strv_length(f) > 37 && (strtoul(f[6], NULL, 10) & 0x00200000)) {
            name = g_strndup(open + 1, (gsize)(close - open - 1));
            *prio = atoi(f[37]);
        }
        g_strfreev(f);
    }
    g_free(text);
    return name;
}

#define KTHREAD_NONE   (-1) /* kernel threads are shown, and none is called that */
#define KTHREAD_HIDDEN (-2) /* not all are shown, or none at all: another pid namespace, hidepid= */

/* Is it a process that nothing can be said about? */
static bool is_hidden(HostCheckRun *r, const char *pid)
{
    char *path = g_strdup_printf("/proc/%s/stat", pid), *text = hc_read(r, "%s", path);
    bool hidden = g_ascii_isdigit(*pid) && !text && !hc_absent(r, "/proc", path);

    g_free(text);
    g_free(path);
    return hidden;
}

/* Highest realtime priority among the kernel's threads with this prefix. */
static int kthread_priority(HostCheckRun *r, const char *prefix)
{
    char *path = g_strconcat(r->root, "/proc", NULL);
    GDir *dir = g_dir_open(path, 0, NULL);
    int best = KTHREAD_HIDDEN, prio;
    bool hidden = false;

    g_free(path);
    for (const char *pid; dir && (pid = g_dir_read_name(dir));) {
        char *name = kthread_read(r, pid, &prio);

        if (name) {
            best = MAX(best, g_str_has_prefix(name, prefix) ? prio : KTHREAD_NONE);
        }
        hidden |= !name && is_hidden(r, pid);
        g_free(name);
    }
    if (dir) {
        g_dir_close(dir);
    }
    return hidden && best < 0 ? KTHREAD_HIDDEN : best;
}

static void check_kthread(HostCheckRun *r, const char *name, bool timeshared_hurts)
{
    char *prefix = g_strconcat(name, "/", NULL);
    int prio = kthread_priority(r, prefix);
    char *want = g_strdup_printf("above maxprio (%d), or none", r->prio);

    if (prio == KTHREAD_HIDDEN) {
        hc_bad(r, HOST_CHECK_WARN, want, "run the check on the host, outside the container, where /proc shows "
               "the kernel's threads (no hidepid=)", "unknown: threads of the kernel are not shown here");
    } else if (prio == KTHREAD_NONE) {
        hc_ok(r, want, "none runs");
    } else if (prio > r->prio) {
        hc_ok(r, want, "%d", prio);
    } else if (prio == 0 && !timeshared_hurts) {
        hc_ok(r, want, "SCHED_OTHER: interrupts do its work in this kernel");
    } else if (prio >= 99) {
        hc_bad(r, HOST_CHECK_WARN, want, "use maxprio of 98 or less", "%d", prio);
    } else {
        char *fix = g_strdup_printf("for p in $(pgrep '^%s'); do chrt -f -p %d $p; done; or a "
                                    "maxprio below %d", prefix, MIN(r->prio + 1, 99),
                                    MAX(prio, 1));
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%d: a busy guest holds it up", prio);
        g_free(fix);
    }
    g_free(want);
    g_free(prefix);
}

/* Also if it is not known whether it is. */
static bool may_be_preempt_rt(HostCheckRun *r)
{
    char *version = hc_read(r, "/proc/version");
    bool rt = !version || strstr(version, "PREEMPT_RT");

    g_free(version);
    return rt;
}

static void check_ksoftirqd(HostCheckRun *r)
{
    check_kthread(r, "ksoftirqd", may_be_preempt_rt(r));
}

static void check_rcuc(HostCheckRun *r)
{
    check_kthread(r, "rcuc", may_be_preempt_rt(r));
}

static void check_ktimers(HostCheckRun *r)
{
    check_kthread(r, "ktimers", true);
}

static void check_migration(HostCheckRun *r)
{
    check_kthread(r, "migration", true);
}

const HostCheckDef hc_limit_checks[] = {
    { "rt-throttling", check_throttling },
    { "fair-server", check_fair_server },
    { "rlimit-rtprio", check_rtprio },
    { "rlimit-memlock", check_memlock },
    { "rlimit-rttime", check_rttime },
    { "capabilities", check_capabilities },
    { "cgroup-v1-rt", check_cgroup_v1 },
    { "cgroup-v2-cpu", check_cgroup_v2 },
    { "cpuset", check_cpuset },
    { "seccomp", check_seccomp },
    { "ksoftirqd", check_ksoftirqd },
    { "rcuc", check_rcuc },
    { "ktimers", check_ktimers },
    { "migration", check_migration },
    { NULL, NULL },
};
