/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verdicts on -realtime for hosts of every kind, given as facts; tests/realtime provokes on the
 * real host what that host allows to be provoked.
 */
#include "qemu/host-limits.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* A host that permits everything. */
static HostLimits good_host(void)
{
    return (HostLimits){
        .cap_sys_nice = true,
        .cap_ipc_lock = true,
        .memlock_soft = 65536,
        .memlock_hard = 65536,
        .rttime_soft = HOST_UNLIMITED,
        .global_rt_runtime_us = -1,
        .global_rt_period_us = 1000000,
        .mem_available = 8 * GiB,
        .vm_size = 100 * MiB,
        .cpus = 4,
        .kthread_prio = { -1, -1, -1, -1 },
    };
}

static const RealtimeConfig fifo50 = { true, SCHED_FIFO, 50, MEM_LOCK_ON, 1, false };

typedef bool Verdict(const HostLimits *h, Error **errp);

static bool policy50(const HostLimits *h, Error **errp)
{
    return host_limits_check_policy(h, &fifo50, errp);
}

static bool memory1g(const HostLimits *h, Error **errp)
{
    return host_limits_check_memory(h, &fifo50, GiB, errp);
}

/* Refused, with every one of the words (separated by '|') in one line. */
static void refused(Verdict *verdict, const HostLimits *h, const char *words)
{
    Error *err = NULL;
    g_assert_false(verdict(h, &err));
    const char *msg = error_get_pretty(err);
    char **w = g_strsplit(words, "|", -1);
    for (char **p = w; *p; p++) {
        if (!strstr(msg, *p) || strchr(msg, '\n')) {
            g_error("'%s' is not in: %s", *p, msg);
        }
    }
    g_strfreev(w);
    error_free(err);
}

static void test_policy_permitted(void)
{
    HostLimits h = good_host();
    g_assert_true(policy50(&h, &error_abort));
    h.cap_sys_nice = false;
    h.rtprio_soft = h.rtprio_hard = 50;
    g_assert_true(policy50(&h, &error_abort));
    h.rtprio_soft = h.rtprio_hard = HOST_UNLIMITED;
    g_assert_true(policy50(&h, &error_abort));
    h.rt_cgroup_file = (char *)"/cg/cpu.rt_runtime_us";
    h.rt_runtime_us = 950000;
    g_assert_true(policy50(&h, &error_abort));
    h.seccomp_mode = 2; /* a filter that allows the calls */
    g_assert_true(policy50(&h, &error_abort));
}

static void test_policy_permission(void)
{
    HostLimits h = good_host();
    h.cap_sys_nice = false;
    h.probe_policy = EPERM;
    refused(policy50, &h,
            "maxprio=50|CAP_SYS_NICE|RLIMIT_RTPRIO is 0, hard limit 0|ulimit -r 50|"
            "LimitRTPRIO=50");
    h.rtprio_soft = 49;
    h.rtprio_hard = HOST_UNLIMITED;
    refused(policy50, &h,
            "RLIMIT_RTPRIO is 49 (enough for the CPUs' 49, not for the event "
            "threads' 50), hard limit unlimited");
    h.probe_policy = PROBE_NOT_DONE; /* the limit alone is enough to know */
    refused(policy50, &h, "RLIMIT_RTPRIO is 49");
}

static void test_policy_cgroup(void)
{
    HostLimits h = good_host();
    h.rt_cgroup_file = (char *)"/cg/me/cpu.rt_runtime_us";
    h.rt_runtime_us = 0;
    h.probe_policy = EPERM;
    refused(policy50, &h, "maxprio=50|/cg/me/cpu.rt_runtime_us is 0|echo 950000 > /cg/me/cpu.rt");
    h.probe_policy = 0; /* an autogroup: the kernel takes it */
    g_assert_true(policy50(&h, &error_abort));
}

static void test_policy_seccomp(void)
{
    HostLimits h = good_host();
    h.seccomp_mode = 2;
    h.probe_policy = EPERM; /* a filter on the policy argument */
    refused(policy50, &h, "seccomp|sched_setscheduler|Operation not permitted|Seccomp: 2");
    h.probe_policy = PROBE_NOT_DONE;
    h.probe_same_policy = PROBE_KILLED;
    refused(policy50, &h, "seccomp|sched_setscheduler|killed a test process");
    h.probe_same_policy = ENOSYS;
    h.cap_sys_nice = false; /* the filter is named first: no limit would help */
    refused(policy50, &h, "seccomp|Function not implemented");
}

static void test_policy_unknown_reason(void)
{
    HostLimits h = good_host();
    h.probe_policy = EPERM;
    refused(policy50, &h, "fifo|priority 50|Operation not permitted|none of");
    RealtimeConfig cfg = { true, SCHED_RR, 100, MEM_LOCK_OFF, 1, false };
    Error *err = NULL;
    h.probe_policy = EINVAL;
    g_assert_false(host_limits_check_policy(&h, &cfg, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "priorities up to 99"));
    error_free(err);
}

static void test_memory(void)
{
    HostLimits h = good_host();
    g_assert_true(memory1g(&h, &error_abort));
    h.cap_ipc_lock = false;
    refused(memory1g, &h,
            "too small|1178599424 bytes are needed|65536 bytes are allowed|"
            "hard limit 65536|ulimit -l 1150976|LimitMEMLOCK=|CAP_IPC_LOCK");
    h.memlock_soft = 0;
    h.memlock_hard = HOST_UNLIMITED;
    refused(memory1g, &h, "no permission to lock any|RLIMIT_MEMLOCK is 0|hard limit unlimited");
    h.memlock_soft = GiB + 100 * MiB;
    g_assert_true(memory1g(&h, &error_abort));
    h.memlock_soft--;
    refused(memory1g, &h, "too small");
    h.memlock_soft = HOST_UNLIMITED;
    h.mem_available = GiB - 1;
    refused(memory1g, &h,
            "not enough free memory|1073741824 bytes are needed|1073741823 bytes are "
            "available|MemAvailable");
    RealtimeConfig on_fault = fifo50;
    on_fault.mem_lock = MEM_LOCK_ON_FAULT;
    g_assert_true(host_limits_check_memory(&h, &on_fault, GiB, &error_abort));
    h.mem_available = 8 * GiB;
    h.mem_cgroup_file = (char *)"/cg/memory.max";
    h.mem_cgroup_limit = 500 * MiB;
    refused(memory1g, &h, "/cg/memory.max allows 524288000 bytes");
    h.mem_cgroup_limit = 2 * GiB;
    g_assert_true(memory1g(&h, &error_abort));
    h.probe_mlock = EPERM;
    h.seccomp_mode = 2;
    refused(memory1g, &h, "seccomp|mlockall");
    h.seccomp_mode = 0;
    refused(memory1g, &h, "refused mlockall");
    Error *err = NULL;
    h.cap_ipc_lock = false;
    h.memlock_soft = 4 * GiB;
    g_assert_false(host_limits_check_memory(&h, &fifo50, UINT64_MAX - 5, &err)); /* no wrap */
    error_free(err);
}

static void collect(void *opaque, const char *text)
{
    g_string_append_printf(opaque, "%s\n", text);
}

static void warned(const HostLimits *h, const RealtimeConfig *cfg, const char *part)
{
    GString *all = g_string_new(NULL);
    host_limits_warnings(h, cfg, GiB, collect, all);
    if (part ? !strstr(all->str, part) : all->len != 0) {
        g_error("wanted '%s', got: %s", part ? part : "nothing", all->str);
    }
    g_string_free(all, TRUE);
}

static void test_warnings(void)
{
    HostLimits h = good_host();
    RealtimeConfig cfg = fifo50;
    warned(&h, &cfg, NULL);
    h.global_rt_runtime_us = 950000;
    warned(&h, &cfg, "at most 950000 of each 1000000 us");
    cfg.enabled = false; /* memory only: no word of threads */
    warned(&h, &cfg, NULL);
    h = good_host();
    cfg = fifo50;
    h.rttime_soft = 200000;
    warned(&h, &cfg, "RLIMIT_RTTIME is 200000 us");
    h = good_host();
    h.kthread_prio[KTHREAD_MIGRATION] = 99;
    h.kthread_prio[KTHREAD_KSOFTIRQD] = 0;
    warned(&h, &cfg, NULL);
    h.kthread_prio[KTHREAD_RCUC] = 50;
    warned(&h, &cfg, "kernel: rcuc (50);");
    h.preempt_rt = true;
    h.kthread_prio[KTHREAD_KTIMERS] = 1;
    warned(&h, &cfg, "kernel: ksoftirqd (0), rcuc (50), ktimers (1);");
    cfg.max_priority = 99;
    warned(&h, &cfg, "migration (99)");
    h = good_host();
    cfg = fifo50;
    cfg.vcpus = 4;
    warned(&h, &cfg, "cover all 4 host CPUs");
    cfg.policy = SCHED_RR;
    warned(&h, &cfg, NULL);
    cfg.mem_merge_wanted = true;
    warned(&h, &cfg, "mem-merge=on has no effect");
    cfg = fifo50;
    cfg.mem_lock = MEM_LOCK_ON_FAULT;
    h.mem_available = 100;
    warned(&h, &cfg, "only 100 bytes are available");
}

/* Reading the real host: plausible, and nothing of this process changes. */
static void test_read(void)
{
    HostLimits h;
    int policy = sched_getscheduler(0);
    host_limits_read(&h, &fifo50);
    g_assert_cmpint(sched_getscheduler(0), ==, policy);
    g_assert_cmpuint(h.mem_available, >, MiB);
    g_assert_cmpuint(h.vm_size, >, MiB);
    g_assert_cmpuint(h.cpus, >=, 1);
    g_assert_cmpint(h.probe_same_policy, ==, 0);
    if (geteuid() == 0 && h.cap_sys_nice && (!h.rt_cgroup_file || h.rt_runtime_us)) {
        g_assert_cmpint(h.probe_policy, ==, 0);
    }
    g_assert_cmpint(h.kthread_prio[KTHREAD_MIGRATION], <=, 99);
    host_limits_free(&h);
}

static void test_virtualisation(void)
{
    static const char head[] = "processor\t: 0\nmodel name\t: vmx svm\n";
    const struct {
        const char *flags;
        bool has;
    } cases[] = {
        { "flags\t\t: fpu vmx sse\n", true },       { "flags\t\t: fpu sse svm\nbugs\t: x\n", true },
        { "flags\t\t: fpu sse\nbugs\t: vmx\n", false }, { "flags\t\t: fpu vmx_x svm_lock\n", false },
        { "", true },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *text = g_strconcat(head, cases[i].flags, NULL);
        g_assert_cmpint(host_has_virtualisation(text), ==, cases[i].has);
    }
    g_assert_true(host_has_virtualisation(NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-limits/policy/permitted", test_policy_permitted);
    g_test_add_func("/host-limits/policy/permission", test_policy_permission);
    g_test_add_func("/host-limits/policy/cgroup", test_policy_cgroup);
    g_test_add_func("/host-limits/policy/seccomp", test_policy_seccomp);
    g_test_add_func("/host-limits/policy/unknown", test_policy_unknown_reason);
    g_test_add_func("/host-limits/memory", test_memory);
    g_test_add_func("/host-limits/warnings", test_warnings);
    g_test_add_func("/host-limits/read", test_read);
    g_test_add_func("/host-limits/virtualisation", test_virtualisation);
    return g_test_run();
}
