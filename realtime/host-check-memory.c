/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Self-check, third part: the host's memory management, and the parameters of the kvm modules
 * (Documentation/admin-guide/mm/, virt/kvm/ of the kernel).
 */
#include "host-check-internal.h"

#include <glib.h>
#include <string.h>

/* ---- Memory ---- */

#define MM  "/sys/kernel/mm"
#define THP MM "/transparent_hugepage/enabled"

static void check_thp(HostCheckRun *r)
{
    static const char want[] = "madvise or never: khugepaged stops a guest while it moves pages";
    char *text = hc_read(r, THP);
    char *mode = text ? hc_choice(text) : NULL;

    if (!mode) {
        hc_none(r, want, MM, THP, "none in this kernel");
    } else if (strcmp(mode, "always") == 0) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "always");
    } else {
        hc_ok(r, want, "%s", mode);
    }
    g_free(mode);
    g_free(text);
}

static void check_ksm(HostCheckRun *r)
{
    static const char want[] = "off (0 or 2)";
    int64_t run;

    if (!hc_read_i64(r, &run, MM "/ksm/run")) {
        hc_none(r, want, MM, MM "/ksm/run", "none in this kernel");
    } else if (run == 1) {
        hc_bad(r, HOST_CHECK_WARN, want, "echo 2 > /sys/kernel/mm/ksm/run", "on");
    } else {
        hc_ok(r, want, "off");
    }
}

/* Guest RAM asks for transparent huge pages (memory/ram.c); pages reserved for hugetlbfs lie idle. */
static void check_hugepages(HostCheckRun *r)
{
    static const char want[] = "transparent huge pages for guest RAM: fewer TLB misses and faults";
    char *text = hc_read(r, THP);
    char *mode = text ? hc_choice(text) : NULL;
    char *reserved = hc_field(r, "/proc/meminfo", "HugePages_Free"), *meminfo = NULL;
    uint64_t idle = reserved ? g_ascii_strtoull(reserved, NULL, 10) : 0;

    if (!mode && !hc_absent(r, MM, THP)) {
        hc_unknown(r, want, THP);
    } else if (!mode) {
        hc_bad(r, HOST_CHECK_WARN, want, "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
               "none in this kernel");
    } else if (strcmp(mode, "never") == 0) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "never");
    } else if (idle) {
        hc_bad(r, HOST_CHECK_WARN, want, "sysctl vm.nr_hugepages=0, unless others use them",
               "%s; %" PRIu64 " reserved huge pages lie idle, guest RAM does not use them", mode,
               idle);
    } else if (!reserved && !(meminfo = hc_read(r, "/proc/meminfo"))) {
        hc_unknown(r, want, "/proc/meminfo");
    } else {
        hc_ok(r, want, "%s", mode);
    }
    g_free(meminfo);
    g_free(reserved);
    g_free(mode);
    g_free(text);
}

static void check_numa_balancing(HostCheckRun *r)
{
    static const char want[] = "0";
    int64_t v;

    if (!hc_read_i64(r, &v, "/proc/sys/kernel/numa_balancing")) {
        hc_none(r, want, "/proc/sys/kernel", "/proc/sys/kernel/numa_balancing", "none in this kernel");
    } else if (v) {
        hc_bad(r, HOST_CHECK_WARN, want, "sysctl kernel.numa_balancing=0",
               "%" PRId64 ": pages are unmapped to see who uses them", v);
    } else {
        hc_ok(r, want, "0");
    }
}

static void check_swap(HostCheckRun *r)
{
    static const char want[] = "none, or guest memory locked";
    char *text = hc_read(r, "/proc/swaps");
    char *line = text ? strchr(text, '\n') : NULL; /* after the heading */

    if (!text) {
        hc_none(r, want, "/proc/self", "/proc/swaps", "none in this kernel");
    } else if (!line) {
        hc_ok(r, want, "none");
    } else {
        char *dev = g_strndup(line + 1, strcspn(line + 1, " \t\n"));
        if (r->p->mem_lock != MEM_LOCK_OFF) {
            hc_ok(r, want, "%s, and guest memory is locked", dev);
        } else {
            hc_bad(r, HOST_CHECK_WARN, want, "swapoff -a, or -realtime mlock=on",
                   "%s, and guest memory is not locked", dev);
        }
        g_free(dev);
    }
    g_free(text);
}

static void check_free_memory(HostCheckRun *r)
{
    char *text = hc_field(r, "/proc/meminfo", "MemAvailable");
    char *own = hc_field(r, "/proc/self/status", "VmRSS");
    uint64_t have = text ? g_ascii_strtoull(text, NULL, 10) * KiB : 0;
    uint64_t used = own ? g_ascii_strtoull(own, NULL, 10) * KiB : 0; /* of what is needed, by this process */
    char *want = r->p->bytes_needed ? g_strdup_printf("%" PRIu64 " bytes", r->p->bytes_needed)
                                    : g_strdup("more than the guest needs");

    if (!text) {
        hc_bad(r, HOST_CHECK_WARN, want, "mount /proc", "unknown: no MemAvailable");
    } else if (have + used >= r->p->bytes_needed) {
        hc_ok(r, want, "%" PRIu64 " bytes available, %" PRIu64 " used by this process", have, used);
    } else {
        hc_bad(r, r->p->mem_lock == MEM_LOCK_ON ? HOST_CHECK_FAIL : HOST_CHECK_WARN, want,
               "make -m smaller, or free memory on the host", "%" PRIu64 " bytes available", have);
    }
    g_free(want);
    g_free(own);
    g_free(text);
}

/* ---- Parameters of the kvm modules ---- */

static void kvm_absent(HostCheckRun *r, const char *want, const char *module, const char *name)
{
    char *path = g_strdup_printf("/sys/module/%s/parameters/%s", module, name);

    hc_none(r, want, "/sys/module", path, "this kernel's kvm has no such parameter, or is not loaded");
    g_free(path);
}

static bool is_off(const char *v)
{
    return strcmp(v, "0") == 0 || strcmp(v, "N") == 0 || strcmp(v, "off") == 0 ||
           strcmp(v, "never") == 0;
}

/* A parameter of kvm that is to be off. */
static void kvm_wants_off(HostCheckRun *r, const char *name, const char *why)
{
    char *v = hc_read(r, "/sys/module/kvm/parameters/%s", name);
    char *want = g_strdup_printf("off: %s", why);

    if (!v) {
        kvm_absent(r, want, "kvm", name);
    } else if (is_off(v)) {
        hc_ok(r, want, "%s", v);
    } else {
        char *fix = g_strdup_printf("echo 'options kvm %s=0' > /etc/modprobe.d/kvm-realtime.conf, "
                                    "and load kvm anew", name);
        hc_bad(r, HOST_CHECK_WARN, want, fix, "%s", v);
        g_free(fix);
    }
    g_free(want);
    g_free(v);
}

static void check_nx_huge_pages(HostCheckRun *r)
{
    kvm_wants_off(r, "nx_huge_pages",
                  "huge pages are split and a thread puts them together again (affected CPUs "
                  "trade safety from untrusted guests, iTLB multihit)");
}

static void check_periodic_sync(HostCheckRun *r)
{
    kvm_wants_off(r, "kvmclock_periodic_sync", "every five minutes all vCPUs are kicked");
}

static void check_timer_advance(HostCheckRun *r)
{
    static const char want[] = "-1 (tuned by the kernel), Y, or a measured number of ns";
    const char *name = "lapic_timer_advance_ns";
    char *v = hc_read(r, "/sys/module/kvm/parameters/%s", name);

    if (!v && hc_absent(r, "/sys/module", "/sys/module/kvm/parameters/lapic_timer_advance_ns")) {
        name = "lapic_timer_advance";
        v = hc_read(r, "/sys/module/kvm/parameters/%s", name);
    }
    if (!v) {
        kvm_absent(r, want, "kvm", name);
    } else if (is_off(v)) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "echo 'options kvm lapic_timer_advance_ns=-1' > /etc/modprobe.d/kvm-realtime.conf, "
               "and load kvm anew (a bool on newer kernels: lapic_timer_advance=Y)",
               "%s: the way into the guest makes each deadline of its timer late", v);
    } else {
        hc_ok(r, want, "%s", v);
    }
    g_free(v);
}

static void check_halt_poll(HostCheckRun *r)
{
    static const char want[] = "not 0: a halted vCPU with a CPU of its own wakes without a switch";
    int64_t v;

    if (!hc_read_i64(r, &v, "/sys/module/kvm/parameters/halt_poll_ns")) {
        kvm_absent(r, want, "kvm", "halt_poll_ns");
    } else if (v == 0) {
        hc_bad(r, HOST_CHECK_WARN, want,
               "echo 200000 > /sys/module/kvm/parameters/halt_poll_ns", "0");
    } else {
        hc_ok(r, want, "%" PRId64 " ns", v);
    }
}

static void check_ple_gap(HostCheckRun *r)
{
    static const char want[] = "0: no exits for spinning in a guest that has its CPUs to itself";
    int64_t v;

    if (hc_read_i64(r, &v, "/sys/module/kvm_intel/parameters/ple_gap")) {
        if (v) {
            hc_bad(r, HOST_CHECK_WARN, want,
                   "echo 'options kvm_intel ple_gap=0' > /etc/modprobe.d/kvm-realtime.conf, and "
                   "load kvm_intel anew", "ple_gap %" PRId64, v);
        } else {
            hc_ok(r, want, "ple_gap 0");
        }
    } else if (hc_read_i64(r, &v, "/sys/module/kvm_amd/parameters/pause_filter_count")) {
        if (v) {
            hc_bad(r, HOST_CHECK_WARN, want,
                   "echo 'options kvm_amd pause_filter_count=0' > "
                   "/etc/modprobe.d/kvm-realtime.conf, and load kvm_amd anew",
                   "pause_filter_count %" PRId64, v);
        } else {
            hc_ok(r, want, "pause_filter_count 0");
        }
    } else if (hc_absent(r, "/sys/module", "/sys/module/kvm_intel/parameters/ple_gap")) {
        kvm_absent(r, want, "kvm_amd", "pause_filter_count");
    } else {
        kvm_absent(r, want, "kvm_intel", "ple_gap");
    }
}

const HostCheckDef hc_memory_checks[] = {
    { "free-memory", check_free_memory },
    { "hugepages", check_hugepages },
    { "thp", check_thp },
    { "ksm", check_ksm },
    { "numa-balancing", check_numa_balancing },
    { "swap", check_swap },
    { "kvm-lapic-timer-advance", check_timer_advance },
    { "kvm-halt-poll", check_halt_poll },
    { "kvm-nx-huge-pages", check_nx_huge_pages },
    { "kvm-periodic-sync", check_periodic_sync },
    { "kvm-ple-gap", check_ple_gap },
    { NULL, NULL },
};
