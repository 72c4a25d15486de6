/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every line of the host's self-check, on made-up /proc, /sys and /dev. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include "realtime/host-check.h"

/* ---- A made-up host ---- */

static char *root;

static void put(const char *path, const char *text)
{
    char *full = g_strconcat(root, path, NULL), *dir = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(full, text, -1, NULL));
    g_free(dir);
    g_free(full);
}

static void remove_tree(const char *path)
{
    GDir *d = g_dir_open(path, 0, NULL);

    for (const char *name; d && (name = g_dir_read_name(d));) {
        char *full = g_build_filename(path, name, NULL);
        remove_tree(full);
        g_free(full);
    }
    if (d) {
        g_dir_close(d);
    }
    g_remove(path);
}

static void host_begin(void)
{
    root = g_dir_make_tmp("host-check-XXXXXX", NULL);
    g_assert_nonnull(root);
}

static void host_end(void)
{
    remove_tree(root);
    g_free(root);
    root = NULL;
}

#define CPU "/sys/devices/system/cpu/"

/* Four CPUs, on 2 and 3 of which the realtime threads run. */
static const HostCheckParams pinned = { .max_priority = 50, .mem_lock = MEM_LOCK_ON,
                                        .bytes_needed = 1 << 30, .cpus = "2-3", .vcpus = 1, .places = 1,
                                        .holds_dma_latency = true };
static const HostCheckParams loose = { .max_priority = 50, .mem_lock = MEM_LOCK_OFF };

/* Runs the check; the verdict on one line. text (may be NULL): a word of what was found. */
static void expect(const HostCheckParams *p, const char *name, HostCheckStatus status,
                   const char *word)
{
    HostCheckParams with_root = *p;
    HostCheckLine *line = NULL;

    with_root.root = root;
    HostCheck *c = host_check_run(&with_root);
    for (unsigned i = 0; i < c->count; i++) {
        if (strcmp(c->lines[i].name, name) == 0) {
            g_assert_null(line); /* names are unique */
            line = &c->lines[i];
        }
    }
    g_assert_nonnull(line);
    if (line->status != status || (word && !strstr(line->found, word))) {
        g_error("%s: %s '%s', not %s '%s'", name, host_check_status_name(line->status),
                line->found, host_check_status_name(status), word ? word : "");
    }
    g_assert_true(line->wanted && *line->wanted);
    g_assert_cmpint(line->remedy != NULL, ==, status != HOST_CHECK_OK);
    host_check_free(c);
}

/* ---- One file decides ---- */

#define OK   HOST_CHECK_OK
#define WARN HOST_CHECK_WARN
#define FAIL HOST_CHECK_FAIL

typedef struct Case {
    const char *name, *path;
    const char *text; /* NULL: the file is missing */
    HostCheckStatus status;
    const char *word;
} Case;

#define LIMITS(prio, lock, time)                                                                   \
    "Limit                     Soft Limit           Hard Limit           Units\n"                  \
    "Max locked memory         " lock "              " lock "              bytes\n"                \
    "Max realtime priority     " prio "                    " prio "                    \n"         \
    "Max realtime timeout      " time "            " time "            us\n"
#define KTHREAD(comm, prio)                                                                        \
    "12 (" comm ") S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 18446744073709551615 0 0 " \
    "0 0 0 0 0 2147483647 0 1 0 0 17 0 " prio " 1 0 0 0 0 0 0 0 0 0 0 0"

static const Case single_cases[] = {
    { "kernel-preemption", "/proc/version", "Linux 6.1-rt #1 SMP PREEMPT_RT x", OK, "PREEMPT_RT" },
    { "kernel-preemption", "/proc/version", "Linux 6.1 #1 SMP PREEMPT x", WARN, "PREEMPT" },
    { "kernel-preemption", "/proc/version", "Linux 6.1 #1 SMP PREEMPT_DYNAMIC", WARN, "DYNAMIC" },
    { "kernel-preemption", "/proc/version", "Linux 6.1 #1 SMP x", FAIL, "no preemption" },
    { "kernel-preemption", "/proc/version", NULL, WARN, "unknown" },
    { "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n",
      OK, "tsc" },
    { "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
      "kvm-clock\n", WARN, "kvm-clock" },
    { "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n",
      FAIL, "hpet" },
    { "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL, WARN,
      "unknown" },
    { "isolcpus", CPU "isolated", "1-3\n", OK, "1-3" },
    { "isolcpus", CPU "isolated", "2\n", WARN, "2, without 3" },
    { "isolcpus", CPU "isolated", "\n", WARN, "none" },
    { "isolcpus", CPU "isolated", NULL, WARN, "none" },
    { "isolcpus", "/proc/cmdline", "quiet isolcpus=managed_irq,domain,2-3", OK, "2-3" },
    { "nohz-full", CPU "nohz_full", "2,3\n", OK, "2-3" },
    { "nohz-full", CPU "nohz_full", "(null)\n", WARN, "none" },
    { "nohz-full", CPU "nohz_full", NULL, WARN, "none" },
    { "nohz-full", "/proc/cmdline", "nohz_full=2-3 x", OK, "2-3" },
    { "rcu-nocbs", "/proc/cmdline", "rcu_nocbs=2-3", OK, "2-3" },
    { "rcu-nocbs", "/proc/cmdline", "rcu_nocbs=all", OK, "0-3" },
    { "rcu-nocbs", "/proc/cmdline", "rcu_nocbs=1-2", WARN, "1-2, without 3" },
    { "rcu-nocbs", "/proc/cmdline", NULL, WARN, "none" },
    { "rcu-nocbs", CPU "nohz_full", "2-3\n", OK, "2-3" },
    { "irq-affinity", "/proc/irq/24/effective_affinity_list", "0-1\n", OK, "none of 1" },
    { "irq-affinity", "/proc/irq/24/effective_affinity_list", "3\n", WARN, "1 of 1" },
    { "irq-affinity", "/proc/irq/24/smp_affinity_list", "0-3\n", WARN, "24" },
    { "irq-affinity", "/proc/irq", NULL, WARN, "unknown" },
    { "governor", CPU "cpu2/cpufreq/scaling_governor", "performance\n", OK, "performance" },
    { "governor", CPU "cpu3/cpufreq/scaling_governor", "powersave\n", WARN, "powersave on CPU 3" },
    { "governor", CPU "cpu0/cpufreq/scaling_governor", "powersave\n", OK, "no frequency" },
    { "governor", CPU "cpu2/cpufreq/scaling_governor", NULL, OK, "no frequency" },
    { "idle-states", CPU "cpu2/cpuidle/state0/latency", "2\n", OK, "at most 2 us" },
    { "idle-states", CPU "cpu2/cpuidle/state0/latency", "133\n", WARN, "133 us" },
    { "idle-states", CPU "cpu2/cpuidle/state0/latency", NULL, OK, "no idle states" },
    { "smt", CPU "smt/active", "0\n", OK, "off" },
    { "smt", CPU "smt/active", "1\n", WARN, "on" },
    { "smt", CPU "smt/active", NULL, WARN, "unknown" },
    { "affinity", CPU "online", "0-3\n", OK, "2-3" },
    { "affinity", CPU "online", "2-3\n", WARN, "every CPU" },
    { "affinity", CPU "online", "0-2\n", FAIL, "CPUs 3" },
    { "affinity", CPU "online", NULL, FAIL, "2-3" },

    { "rt-throttling", "/proc/sys/kernel/sched_rt_runtime_us", "-1\n", OK, "-1" },
    { "rt-throttling", "/proc/sys/kernel/sched_rt_runtime_us", "950000\n", WARN, "950000" },
    { "rt-throttling", "/proc/sys/kernel/sched_rt_runtime_us", "0\n", FAIL, "0" },
    { "rt-throttling", "/proc/sys/kernel/sched_rt_runtime_us", NULL, OK, "no such limit" },
    { "fair-server", "/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0\n", WARN,
      "unknown: /sys/kernel/debug/sched/fair_server/cpu3/runtime" },
    { "fair-server", "/sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000\n", WARN,
      "50000000" },
    { "fair-server", "/sys/kernel/debug/sched/fair_server/cpu2/runtime", NULL, WARN, "unknown" },
    { "rlimit-rtprio", "/proc/self/limits", LIMITS("50", "0", "unlimited"), OK, "50" },
    { "rlimit-rtprio", "/proc/self/limits", LIMITS("49", "0", "unlimited"), FAIL, "49" },
    { "rlimit-rtprio", "/proc/self/limits", NULL, WARN, "unknown" },
    { "rlimit-rtprio", "/proc/self/status", "CapEff:\t0000000000800000\n", OK, "CAP_SYS_NICE" },
    { "rlimit-memlock", "/proc/self/limits", LIMITS("0", "unlimited", "unlimited"), OK,
      "unlimited" },
    { "rlimit-memlock", "/proc/self/limits", LIMITS("0", "1073741824", "unlimited"), OK, "bytes" },
    { "rlimit-memlock", "/proc/self/limits", LIMITS("0", "1073741823", "unlimited"), FAIL,
      "1073741823" },
    { "rlimit-memlock", "/proc/self/limits", NULL, WARN, "unknown" },
    { "rlimit-memlock", "/proc/self/status", "CapEff:\t0000000000004000\n", OK, "CAP_IPC_LOCK" },
    { "rlimit-rttime", "/proc/self/limits", LIMITS("0", "0", "unlimited"), OK, "unlimited" },
    { "rlimit-rttime", "/proc/self/limits", LIMITS("0", "0", "200000"), WARN, "200000" },
    { "rlimit-rttime", "/proc/self/limits", LIMITS("0", "0", "0"), FAIL, "0" },
    { "rlimit-rttime", "/proc/self/limits", NULL, WARN, "unknown" },
    { "capabilities", "/proc/self/status", "CapEff:\t0000000000804000\n", OK, "both" },
    { "capabilities", "/proc/self/status", "CapEff:\t0000000000800000\n", WARN, "CAP_IPC_LOCK" },
    { "capabilities", "/proc/self/status", "CapEff:\t0000000000000000\n", FAIL, "neither" },
    { "capabilities", "/proc/self/status", NULL, FAIL, "neither" },
    { "capabilities", "/proc/self/limits", LIMITS("50", "unlimited", "unlimited"), OK, "suffice" },
    { "cpuset", "/proc/self/status", "Cpus_allowed_list:\t0-3\n", OK, "0-3" },
    { "cpuset", "/proc/self/status", "Cpus_allowed_list:\t0-2\n", WARN, "without 3" },
    { "cpuset", "/proc/self/status", "Cpus_allowed_list:\t0-1\n", FAIL, "without 2-3" },
    { "cpuset", "/proc/self/status", NULL, WARN, "unknown" },
    { "seccomp", "/proc/self/status", "Seccomp:\t0\n", OK, "0" },
    { "seccomp", "/proc/self/status", "Seccomp:\t2\n", WARN, "filter" },
    { "seccomp", "/proc/self/status", "Seccomp:\t1\n", FAIL, "1" },
    { "seccomp", "/proc/self/status", NULL, WARN, "unknown" },
    { "seccomp", "/proc/self/status", "Threads:\t1\n", OK, "none in this kernel" },
    { "ksoftirqd", "/proc/12/stat", KTHREAD("ksoftirqd/0", "51"), OK, "51" },
    { "ksoftirqd", "/proc/12/stat", KTHREAD("ksoftirqd/0", "50"), WARN, "50" },
    { "ksoftirqd", "/proc/12/stat", KTHREAD("ksoftirqd/0", "0"), OK, "SCHED_OTHER" },
    { "ksoftirqd", "/proc/12/stat", NULL, OK, "none" },
    { "rcuc", "/proc/12/stat", KTHREAD("rcuc/1", "99"), OK, "99" },
    { "rcuc", "/proc/12/stat", KTHREAD("rcuc/1", "1"), WARN, "1" },
    { "rcuc", "/proc/12/stat", NULL, OK, "none" },
    { "ktimers", "/proc/12/stat", KTHREAD("ktimers/1", "60"), OK, "60" },
    { "ktimers", "/proc/12/stat", KTHREAD("ktimers/1", "1"), WARN, "1" },
    { "ktimers", "/proc/12/stat", NULL, OK, "none" },
    { "migration", "/proc/12/stat", KTHREAD("migration/1", "99"), OK, "99" },
    { "migration", "/proc/12/stat", KTHREAD("migration/1", "20"), WARN, "20" },
    { "migration", "/proc/12/stat", NULL, OK, "none" },

    { "free-memory", "/proc/meminfo", "MemAvailable: 1048576 kB\n", OK, "1073741824" },
    { "free-memory", "/proc/meminfo", "MemAvailable: 1048575 kB\n", FAIL, "available" },
    { "free-memory", "/proc/meminfo", NULL, WARN, "unknown" },
    { "hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", OK,
      "madvise" },
    { "hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", WARN,
      "never" },
    { "hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", NULL, WARN, "none" },
    { "thp", "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", OK,
      "madvise" },
    { "thp", "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", WARN,
      "always" },
    { "thp", "/sys/kernel/mm/transparent_hugepage/enabled", NULL, OK, "none" },
    { "ksm", "/sys/kernel/mm/ksm/run", "0\n", OK, "off" },
    { "ksm", "/sys/kernel/mm/ksm/run", "2\n", OK, "off" },
    { "ksm", "/sys/kernel/mm/ksm/run", "1\n", WARN, "on" },
    { "ksm", "/sys/kernel/mm/ksm/run", NULL, OK, "none" },
    { "numa-balancing", "/proc/sys/kernel/numa_balancing", "0\n", OK, "0" },
    { "numa-balancing", "/proc/sys/kernel/numa_balancing", "1\n", WARN, "1" },
    { "numa-balancing", "/proc/sys/kernel/numa_balancing", NULL, OK, "none" },
    { "swap", "/proc/swaps", "Filename Type Size Used Priority\n", OK, "none" },
    { "swap", "/proc/swaps", "Filename Type Size\n/dev/sda2 partition 9 0 -2\n", OK, "locked" },
    { "swap", "/proc/swaps", NULL, OK, "none" },
    { "kvm-lapic-timer-advance", "/sys/module/kvm/parameters/lapic_timer_advance_ns", "-1\n", OK,
      "-1" },
    { "kvm-lapic-timer-advance", "/sys/module/kvm/parameters/lapic_timer_advance", "N\n", WARN,
      "N" },
    { "kvm-lapic-timer-advance", "/sys/module/kvm/parameters/lapic_timer_advance_ns", "0\n", WARN,
      "0" },
    { "kvm-lapic-timer-advance", "/sys/module/kvm/parameters/lapic_timer_advance_ns", NULL, OK,
      "no such" },
    { "kvm-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns", "200000\n", OK, "200000" },
    { "kvm-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns", "0\n", WARN, "0" },
    { "kvm-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns", NULL, OK, "no such" },
    { "kvm-nx-huge-pages", "/sys/module/kvm/parameters/nx_huge_pages", "N\n", OK, "N" },
    { "kvm-nx-huge-pages", "/sys/module/kvm/parameters/nx_huge_pages", "Y\n", WARN, "Y" },
    { "kvm-nx-huge-pages", "/sys/module/kvm/parameters/nx_huge_pages", NULL, OK, "no such" },
    { "kvm-periodic-sync", "/sys/module/kvm/parameters/kvmclock_periodic_sync", "N\n", OK, "N" },
    { "kvm-periodic-sync", "/sys/module/kvm/parameters/kvmclock_periodic_sync", "Y\n", WARN, "Y" },
    { "kvm-periodic-sync", "/sys/module/kvm/parameters/kvmclock_periodic_sync", NULL, OK,
      "no such" },
    { "kvm-ple-gap", "/sys/module/kvm_intel/parameters/ple_gap", "0\n", OK, "ple_gap 0" },
    { "kvm-ple-gap", "/sys/module/kvm_intel/parameters/ple_gap", "128\n", WARN, "128" },
    { "kvm-ple-gap", "/sys/module/kvm_amd/parameters/pause_filter_count", "3000\n", WARN, "3000" },
    { "kvm-ple-gap", "/sys/module/kvm_amd/parameters/pause_filter_count", "0\n", OK, "count 0" },
    { "kvm-ple-gap", "/sys/module/kvm_intel/parameters/ple_gap", NULL, OK, "no such" },
};

static void put_dir(const char *path)
{
    char *full = g_strconcat(root, path, NULL);

    g_assert_cmpint(g_mkdir_with_parents(full, 0755), ==, 0);
    g_free(full);
}

/* /proc and /sys are mounted, and show four CPUs and a kernel thread; all else is not there. but: what is left out. */
static void put_base(const char *but)
{
    static const char *const dirs[] = { "/proc/self", "/proc/sys/kernel", "/sys/module", "/sys/kernel/mm" };
    static const struct {
        const char *path, *text;
    } files[] = {
        { CPU "online", "0-3\n" },
        { "/proc/2/stat", KTHREAD("kthreadd", "0") },
        { "/proc/version", "Linux 6.1 #1 SMP PREEMPT x" },
        { "/proc/meminfo", "HugePages_Free: 0\n" },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(dirs); i++) {
        put_dir(dirs[i]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        if (strcmp(files[i].path, but)) {
            put(files[i].path, files[i].text);
        }
    }
}

static void test_single(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(single_cases); i++) {
        const Case *c = &single_cases[i];

        host_begin();
        put_base(c->path);
        if (c->text) {
            put(c->path, c->text);
        }
        expect(&pinned, c->name, c->status, c->word);
        host_end();
    }
}

static void expect_not_ok(const HostCheckParams *p, const char *name)
{
    HostCheckParams with_root = *p;

    with_root.root = root;
    HostCheck *c = host_check_run(&with_root);
    for (unsigned i = 0; i < c->count; i++) {
        if ((!name || !strcmp(c->lines[i].name, name)) && c->lines[i].status == OK) {
            g_error("%s is ok: '%s'", c->lines[i].name, c->lines[i].found);
        }
    }
    host_check_free(c);
}

/* A value that cannot be read is never OK: here each file is there, and reading it fails. */
static void test_unreadable(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(single_cases); i++) {
        const Case *c = &single_cases[i];

        if (strstr(c->path, "/cpu0/") || !strcmp(c->path, "/proc/irq")) {
            continue; /* no CPU of ours; a directory as it is */
        }
        host_begin();
        put_base(c->path);
        put_dir(c->path); /* a directory: root too cannot read it as a file */
        expect_not_ok(&pinned, c->name);
        host_end();
    }
}

/* Neither /proc nor /sys is mounted. */
static void test_nothing_mounted(void)
{
    host_begin();
    put_dir("/proc");
    put_dir("/sys");
    expect_not_ok(&pinned, NULL);
    expect_not_ok(&loose, NULL);
    host_end();
}

static void test_fair_server(void)
{
    host_begin();
    put_base("");
    put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
    expect(&pinned, "fair-server", OK, "6.1.0-13-amd64 is older than Linux 6.12");
    put("/proc/sys/kernel/osrelease", "6.11.9\n");
    expect(&pinned, "fair-server", OK, "older");
    put("/proc/sys/kernel/osrelease", "6.12.0\n");
    expect(&pinned, "fair-server", WARN, "unknown: /sys/kernel/debug/sched/fair_server/cpu2/runtime cannot");
    put("/proc/sys/kernel/osrelease", "7.0.1\n");
    expect(&pinned, "fair-server", WARN, "unknown");
    put("/proc/sys/kernel/osrelease", "strange\n");
    expect(&pinned, "fair-server", WARN, "unknown");
    put_dir("/sys/kernel/debug/sched");
    expect(&pinned, "fair-server", WARN, "no fair_server in it");
    put("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0\n");
    put("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "0\n");
    expect(&pinned, "fair-server", OK, "0");
    put("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "7\n");
    expect(&pinned, "fair-server", WARN, "7 ns of each second on CPU 3");
    host_end();
}

/* Before Linux 4.19. */
static void test_siblings(void)
{
    host_begin();
    put_base("");
    put(CPU "cpu2/topology/thread_siblings_list", "2\n");
    expect(&pinned, "smt", WARN, "unknown");
    put(CPU "cpu3/topology/thread_siblings_list", "3\n");
    expect(&pinned, "smt", OK, "off");
    put(CPU "cpu3/topology/thread_siblings_list", "1,3\n");
    expect(&pinned, "smt", WARN, "more than one CPU");
    put(CPU "smt/active", "0\n");
    expect(&pinned, "smt", OK, "off");
    host_end();
}

/* Each line of the check is in the table above, or has a test of its own below. */
static void test_complete(void)
{
    host_begin();
    HostCheckParams p = { .root = root };
    HostCheck *c = host_check_run(&p);

    for (unsigned i = 0; i < c->count; i++) {
        bool found = g_str_has_prefix(c->lines[i].name, "cgroup-");
        for (unsigned k = 0; k < ARRAY_SIZE(single_cases); k++) {
            found |= strcmp(single_cases[k].name, c->lines[i].name) == 0;
        }
        if (!found) {
            g_error("no test for '%s'", c->lines[i].name);
        }
    }
    host_check_free(c);
    host_end();
}

/* ---- Several files decide ---- */

static void test_preempt_mode(void)
{
    host_begin();
    put("/proc/version", "Linux 6.1 #1 SMP PREEMPT_DYNAMIC Debian");
    put("/proc/cmdline", "quiet preempt=voluntary");
    expect(&pinned, "kernel-preemption", FAIL, "voluntary");
    put("/proc/cmdline", "quiet preempt=full");
    expect(&pinned, "kernel-preemption", WARN, "preempt=full");
    put("/sys/kernel/debug/sched/preempt", "(none) voluntary full\n"); /* in force */
    expect(&pinned, "kernel-preemption", FAIL, "none");
    host_end();
}

static void test_idle_held(void)
{
    host_begin();
    put(CPU "online", "0-3\n");
    put(CPU "cpu2/cpuidle/state0/latency", "1\n");
    put(CPU "cpu2/cpuidle/state1/latency", "85\n");
    put(CPU "cpu2/cpuidle/state1/name", "C6\n");
    expect(&pinned, "idle-states", WARN, "C6 on CPU 2");
    put(CPU "cpu2/cpuidle/state1/disable", "1\n");
    expect(&pinned, "idle-states", OK, "at most 1 us");
    put(CPU "cpu2/cpuidle/state1/disable", "0\n");
    put(CPU "cpu3/cpuidle/state0/latency", "1\n");
    put("/dev/cpu_dma_latency", "");
    expect(&pinned, "idle-states", OK, "held at 0");
    HostCheckParams p = pinned;
    p.holds_dma_latency = false;
    expect(&p, "idle-states", WARN, "85 us");
    host_end();
}

static void test_idle_hugepages(void)
{
    host_begin();
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    put("/proc/meminfo", "HugePages_Free: 0\nHugepagesize: 2048 kB\n");
    expect(&pinned, "hugepages", OK, "always");
    put("/proc/meminfo", "HugePages_Free: 512\nHugepagesize: 2048 kB\n");
    expect(&pinned, "hugepages", WARN, "512 reserved");
    host_end();
}

/* Once it runs, most of what is needed is taken already. */
static void test_memory_in_use(void)
{
    host_begin();
    put_base("");
    put("/proc/meminfo", "MemAvailable: 24 kB\n");
    put("/proc/self/status", "VmRSS:\t 1048552 kB\n");
    expect(&pinned, "free-memory", OK, "24576 bytes available, 1073717248 used");
    put("/proc/self/status", "VmRSS:\t 1048551 kB\n");
    expect(&pinned, "free-memory", FAIL, "24576 bytes available");
    host_end();
}

static void test_not_pinned(void)
{
    host_begin();
    put(CPU "online", "0-1\n");
    put(CPU "isolated", "\n");
    expect(&loose, "affinity", WARN, "not given");
    expect(&loose, "isolcpus", WARN, "none");
    put("/proc/swaps", "Filename Type Size\n/dev/sda2 partition 9 0 -2\n");
    expect(&loose, "swap", WARN, "not locked");
    put("/proc/self/limits", LIMITS("0", "65536", "unlimited"));
    expect(&loose, "rlimit-memlock", WARN, "65536");
    put("/proc/meminfo", "MemAvailable: 1 kB\n");
    HostCheckParams p = loose;
    p.bytes_needed = 1 << 20;
    expect(&p, "free-memory", WARN, "1024");
    host_end();
}

static void test_rt_kernel_threads(void)
{
    host_begin();
    put("/proc/version", "Linux 6.1-rt #1 SMP PREEMPT_RT Debian");
    put("/proc/12/stat", KTHREAD("ksoftirqd/0", "0"));
    expect(&pinned, "ksoftirqd", WARN, "0:");
    put("/proc/12/stat", KTHREAD("rcuc/0", "0"));
    expect(&pinned, "rcuc", WARN, "0:");
    HostCheckParams p = pinned;
    p.max_priority = 99;
    put("/proc/12/stat", KTHREAD("migration/0", "99"));
    expect(&p, "migration", WARN, "99");
    host_end();
}

/* Those that are there, on the CPUs that they may run on. */
static void test_more_vcpus_than_places(void)
{
    HostCheckParams p = pinned;

    host_begin();
    put(CPU "online", "0-3\n");
    p.vcpus = p.places = 2;
    p.fifo = true;
    expect(&p, "affinity", OK, "2-3");
    p.vcpus = 3;
    expect(&p, "affinity", FAIL, "3 realtime vCPUs share 2 host CPUs under policy=fifo");
    p.fifo = false;
    expect(&p, "affinity", WARN, "under policy=rr");
    put(CPU "online", "0-2\n");
    expect(&p, "affinity", FAIL, "CPUs 3 of 2-3 are not online");
    host_end();
}

/* A user's program that took the name of a kernel thread is none. */
static void test_fake_kernel_thread(void)
{
    host_begin();
    put("/proc/12/stat", "12 (ktimers/0) S 2 0 0 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 1 0 0 "
                         "0 0 0 0 0 2147483647 0 1 0 0 17 0 1 1 0 0 0 0 0 0 0 0 0 0 0");
    expect(&pinned, "ktimers", WARN, "unknown"); /* and no other is shown */
    put("/proc/2/stat", KTHREAD("kthreadd", "0"));
    expect(&pinned, "ktimers", OK, "none");
    host_end();
}

static void test_user_namespace(void)
{
    host_begin();
    put("/proc/self/status", "CapEff:\t000001ffffffffff\n");
    put("/proc/self/uid_map", "         0       1000          1\n");
    expect(&pinned, "capabilities", FAIL, "user namespace");
    put("/proc/self/limits", LIMITS("0", "0", "unlimited"));
    expect(&pinned, "rlimit-rtprio", FAIL, "0");
    put("/proc/self/uid_map", "         0          0 4294967295\n");
    expect(&pinned, "capabilities", OK, "both");
    expect(&pinned, "rlimit-rtprio", OK, "CAP_SYS_NICE");
    host_end();
}

static void test_cgroup_v1(void)
{
    host_begin();
    expect(&pinned, "cgroup-v1-rt", WARN, "unknown: /proc/self/cgroup");
    put("/proc/self/limits", "");
    expect(&pinned, "cgroup-v1-rt", OK, "no cgroups in this kernel");
    put("/proc/self/cgroup", "5:memory:/vm\n0::/\n");
    expect(&pinned, "cgroup-v1-rt", OK, "no realtime budgets");
    put("/proc/self/cgroup", "5:memory:/vm\n4:cpu,cpuacct:/vm\n0::/\n");
    expect(&pinned, "cgroup-v1-rt", WARN, "unknown: the hierarchy of cpu");
    put_dir("/sys/fs/cgroup/cpu,cpuacct/vm");
    put("/proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
    expect(&pinned, "cgroup-v1-rt", OK, "no realtime budgets");
    put("/sys/fs/cgroup/cpu,cpuacct/vm/cpu.rt_runtime_us", "0\n");
    expect(&pinned, "cgroup-v1-rt", FAIL, "/sys/fs/cgroup/cpu,cpuacct/vm/cpu.rt_runtime_us");
    put("/sys/fs/cgroup/cpu,cpuacct/vm/cpu.rt_runtime_us", "500000\n");
    expect(&pinned, "cgroup-v1-rt", WARN, "500000");
    put("/sys/fs/cgroup/cpu,cpuacct/vm/cpu.rt_runtime_us", "-1\n");
    expect(&pinned, "cgroup-v1-rt", OK, "-1");
    /* In a cgroup namespace the path does not exist: the root of the mount counts. */
    put("/proc/self/cgroup", "4:cpu,cpuacct:/elsewhere\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "0\n");
    expect(&pinned, "cgroup-v1-rt", FAIL, "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us");
    host_end();
}

static void test_cgroup_v2(void)
{
    host_begin();
    expect(&pinned, "cgroup-v2-cpu", WARN, "unknown: /proc/self/cgroup");
    put("/proc/self/cgroup", "0::/\n");
    expect(&pinned, "cgroup-v2-cpu", OK, "no cpu controller");
    put("/proc/self/cgroup", "0::/machine.slice/vm\n");
    expect(&pinned, "cgroup-v2-cpu", WARN, "unknown: cgroup v2 is not mounted");
    put("/proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    expect(&pinned, "cgroup-v2-cpu", WARN, "unknown");
    put_dir("/sys/fs/cgroup/machine.slice/vm");
    expect(&pinned, "cgroup-v2-cpu", OK, "no cpu controller");
    put("/sys/fs/cgroup/machine.slice/vm/cpu.max", "max 100000\n");
    expect(&pinned, "cgroup-v2-cpu", WARN, "unknown: whether the kernel has RT_GROUP_SCHED");
    put("/proc/sys/kernel/osrelease", "6.1.0-x\n");
    put("/boot/config-6.1.0-x", "CONFIG_FOO=y\n");
    expect(&pinned, "cgroup-v2-cpu", OK, "max");
    put("/sys/fs/cgroup/machine.slice/vm/cpu.max", "50000 100000\n");
    expect(&pinned, "cgroup-v2-cpu", WARN, "50000");
    put("/proc/sys/kernel/osrelease", "6.1.0-x\n");
    put("/boot/config-6.1.0-x", "CONFIG_FOO=y\nCONFIG_RT_GROUP_SCHED=y\n");
    expect(&pinned, "cgroup-v2-cpu", FAIL, "RT_GROUP_SCHED");
    host_end();
}

/* ---- The whole ---- */

static void count_warning(void *opaque, const char *text)
{
    unsigned *n = opaque;

    if (strstr(text, "rt-throttling: 0")) {
        n[0]++;
    }
    if (strstr(text, "isolcpus") && strstr(text, "could be better")) {
        n[1]++;
    }
    n[2]++;
}

static char *printed(bool (*print)(FILE *f), bool expected)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    g_assert_cmpint(print(f), ==, expected);
    fclose(f);
    return text;
}

static void test_whole(void)
{
    unsigned n[3] = { 0 };

    host_begin();
    HostCheckParams p = pinned;
    p.root = root;
    put(CPU "online", "0-3\n");
    put("/proc/self/status", "CapEff:\t000001ffffffffff\nCpus_allowed_list: 0-3\nSeccomp:\t0\n");
    put("/proc/version", "Linux #1 SMP PREEMPT_RT");
    realtime_host_check_configure(&p);
    char *text = printed(realtime_host_check_print, true);
    g_assert_nonnull(strstr(text, "OK    kernel-preemption      PREEMPT_RT\n"));
    g_assert_nonnull(strstr(text, "WARN  isolcpus"));
    g_assert_nonnull(strstr(text, "remedy: boot with isolcpus=2-3\n"));
    g_assert_nonnull(strstr(text, " 0 fail\n"));
    free(text);
    put("/proc/sys/kernel/sched_rt_runtime_us", "0\n");
    text = printed(realtime_host_check_print_json, false);
    g_assert_nonnull(strstr(text, "\"passed\":false"));
    g_assert_nonnull(strstr(text, "\"name\":\"rt-throttling\""));
    free(text);
    realtime_host_check_warnings(count_warning, n);
    g_assert_cmpuint(n[0], ==, 1);
    g_assert_cmpuint(n[1], ==, 1);
    g_assert_cmpuint(n[2], ==, 2);
    realtime_host_check_configure(NULL);
    host_end();
}

/* The host itself: whatever it says, each line has a verdict. */
static void test_this_host(void)
{
    HostCheckParams p = { .max_priority = 2 };
    HostCheck *c = host_check_run(&p);

    g_assert_cmpuint(c->count, >, 30);
    g_assert_cmpuint(c->statuses[OK] + c->statuses[WARN] + c->statuses[FAIL], ==, c->count);
    for (unsigned i = 0; i < c->count; i++) {
        g_assert_true(c->lines[i].found && *c->lines[i].found);
    }
    host_check_free(c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-check/single", test_single);
    g_test_add_func("/host-check/unreadable", test_unreadable);
    g_test_add_func("/host-check/nothing-mounted", test_nothing_mounted);
    g_test_add_func("/host-check/fair-server", test_fair_server);
    g_test_add_func("/host-check/siblings", test_siblings);
    g_test_add_func("/host-check/memory-in-use", test_memory_in_use);
    g_test_add_func("/host-check/complete", test_complete);
    g_test_add_func("/host-check/preempt-mode", test_preempt_mode);
    g_test_add_func("/host-check/idle-held", test_idle_held);
    g_test_add_func("/host-check/idle-hugepages", test_idle_hugepages);
    g_test_add_func("/host-check/not-pinned", test_not_pinned);
    g_test_add_func("/host-check/rt-kernel-threads", test_rt_kernel_threads);
    g_test_add_func("/host-check/fake-kernel-thread", test_fake_kernel_thread);
    g_test_add_func("/host-check/more-vcpus-than-places", test_more_vcpus_than_places);
    g_test_add_func("/host-check/user-namespace", test_user_namespace);
    g_test_add_func("/host-check/cgroup-v1", test_cgroup_v1);
    g_test_add_func("/host-check/cgroup-v2", test_cgroup_v2);
    g_test_add_func("/host-check/whole", test_whole);
    g_test_add_func("/host-check/this-host", test_this_host);
    return g_test_run();
}
