/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about the host for host-limits.c: /proc, cgroups, limits, and system calls tried out. */
#include "qemu/host-limits.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qemu/thread.h"

/* Of linux/capability.h. */
#define CAP_BIT_IPC_LOCK 14
#define CAP_BIT_SYS_NICE 23

/* ---- Small files ---- */

/* The value of a "Key:   value" line; NULL if there is none. */
static char *field_of(const char *path, const char *key)
{
    char *text = NULL, *value = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return NULL;
    }
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t n = strlen(key);
        if (!strncmp(line, key, n) && line[n] == ':') {
            char *start = line + n + 1;
            value = g_strstrip(g_strndup(start, strcspn(start, "\n")));
            break;
        }
    }
    g_free(text);
    return value;
}

static uint64_t number_field(const char *path, const char *key, int base)
{
    char *text = field_of(path, key);
    uint64_t v = text ? g_ascii_strtoull(text, NULL, base) : 0;
    g_free(text);
    return v;
}

static bool read_i64(const char *path, int64_t *value)
{
    char *text;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return false;
    }
    *value = g_ascii_strtoll(text, NULL, 10);
    g_free(text);
    return true;
}

/* ---- Permission ---- */

/* Capabilities of another user namespace do not count for scheduling and locking. */
static bool in_initial_user_namespace(void)
{
    char *text;
    unsigned long inside = 1, outside = 1, count = 0;

    if (!g_file_get_contents("/proc/self/uid_map", &text, NULL, NULL)) {
        return true; /* a kernel without user namespaces */
    }
    int n = sscanf(text, "%lu %lu %lu", &inside, &outside, &count);
    g_free(text);
    return n == 3 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

static void read_limit(int resource, uint64_t *soft, uint64_t *hard)
{
    struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

    getrlimit(resource, &r);
    *soft = r.rlim_cur == RLIM_INFINITY ? HOST_UNLIMITED : r.rlim_cur;
    *hard = r.rlim_max == RLIM_INFINITY ? HOST_UNLIMITED : r.rlim_max;
}

static void read_permission(HostLimits *h)
{
    uint64_t unused;
    uint64_t caps = number_field("/proc/self/status", "CapEff", 16);

    if (!in_initial_user_namespace()) {
        caps = 0;
    }
    h->cap_sys_nice = caps >> CAP_BIT_SYS_NICE & 1;
    h->cap_ipc_lock = caps >> CAP_BIT_IPC_LOCK & 1;
    h->seccomp_mode = (int)number_field("/proc/self/status", "Seccomp", 10);
    read_limit(RLIMIT_RTPRIO, &h->rtprio_soft, &h->rtprio_hard);
    read_limit(RLIMIT_MEMLOCK, &h->memlock_soft, &h->memlock_hard);
    read_limit(RLIMIT_RTTIME, &h->rttime_soft, &unused);
}

/* ---- Cgroups ---- */

/* Is word one of the comma separated words of list? */
static bool has_word(const char *list, const char *word)
{
    char **words = g_strsplit(list, ",", -1);
    bool found = g_strv_contains((const char *const *)words, word);
    g_strfreev(words);
    return found;
}

/* This process's path in the hierarchy of a controller (NULL: version 2's). */
static char *cgroup_path(const char *controller)
{
    char *text, *path = NULL;

    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL)) {
        return NULL;
    }
    char **lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l && !path; l++) {
        char **part = g_strsplit(*l, ":", 3); /* number:controllers:path */
        if (g_strv_length(part) == 3 &&
            (controller ? has_word(part[1], controller) : !strcmp(part[0], "0"))) {
            path = g_strdup(part[2]);
        }
        g_strfreev(part);
    }
    g_strfreev(lines);
    g_free(text);
    return path;
}

/* Where that hierarchy is mounted, and which of its directories is the root of the mount. */
static bool cgroup_mount(const char *controller, char **mount, char **root)
{
    char *text;
    bool found = false;

    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL)) {
        return false;
    }
    char **lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l && !found; l++) {
        char *rest = strstr(*l, " - "); /* fields after it: type, source, super options */
        if (!rest) {
            continue;
        }
        char **head = g_strsplit(*l, " ", 6), **tail = g_strsplit(rest + 3, " ", 3);
        if (g_strv_length(head) == 6 && g_strv_length(tail) == 3 &&
            !strcmp(tail[0], controller ? "cgroup" : "cgroup2") &&
            (!controller || has_word(tail[2], controller))) {
            *root = g_strdup(head[3]);
            *mount = g_strdup(head[4]);
            found = true;
        }
        g_strfreev(head);
        g_strfreev(tail);
    }
    g_strfreev(lines);
    g_free(text);
    return found;
}

/* The directory of this process's cgroup, or NULL. *mount_len: length of the mount point in it. */
static char *cgroup_dir(const char *controller, size_t *mount_len)
{
    char *mount, *root, *dir = NULL;
    char *path = cgroup_path(controller);

    if (path && cgroup_mount(controller, &mount, &root)) {
        const char *below = path;
        if (strcmp(root, "/") != 0 && g_str_has_prefix(path, root)) {
            below = path + strlen(root);
        }
        dir = g_strconcat(mount, strcmp(below, "/") ? below : "", NULL);
        if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) { /* a path outside of our cgroup namespace */
            g_free(dir);
            dir = g_strdup(mount);
        }
        *mount_len = strlen(mount);
        g_free(mount);
        g_free(root);
    }
    g_free(path);
    return dir;
}

static void read_rt_cgroup(HostLimits *h)
{
    size_t mount_len;
    char *dir = cgroup_dir("cpu", &mount_len);

    if (!dir) {
        return;
    }
    char *file = g_strconcat(dir, "/cpu.rt_runtime_us", NULL);
    if (read_i64(file, &h->rt_runtime_us)) {
        h->rt_cgroup_file = file;
    } else {
        g_free(file); /* a kernel without CONFIG_RT_GROUP_SCHED */
    }
    g_free(dir);
}

/* The tightest limit from this process's cgroup up to the root. */
static void read_mem_cgroup(HostLimits *h, const char *controller, const char *name)
{
    size_t mount_len = 0;
    char *dir = cgroup_dir(controller, &mount_len);

    while (dir && strlen(dir) >= mount_len) {
        char *file = g_strconcat(dir, name, NULL);
        int64_t limit = 0; /* "max" reads as 0 */
        /* Version 1 writes "no limit" as the largest number of whole pages. */
        if (read_i64(file, &limit) && limit > 0 && limit < INT64_MAX - 65536 &&
            (!h->mem_cgroup_file || (uint64_t)limit < h->mem_cgroup_limit)) {
            g_free(h->mem_cgroup_file);
            h->mem_cgroup_file = g_steal_pointer(&file);
            h->mem_cgroup_limit = limit;
        }
        g_free(file);
        char *slash = strrchr(dir, '/');
        if (!slash) {
            break;
        }
        *slash = '\0';
    }
    g_free(dir);
}

/* ---- The kernel's own threads ---- */

static int kthread_kind(const char *comm)
{
    static const char *const prefixes[KTHREAD_KINDS] = { "ksoftirqd/", "rcuc/", "ktimers/",
                                                         "migration/" };
    for (int i = 0; i < KTHREAD_KINDS; i++) {
        if (g_str_has_prefix(comm, prefixes[i])) {
            return i;
        }
    }
    return -1;
}

static void read_one_thread(HostLimits *h, const char *pid)
{
    char path[64], text[1024];
    /* Fields of /proc/PID/stat by number, from 3 (the state) on: 9 flags, 40 priority. */
    const unsigned long pf_kthread = 0x00200000;
    unsigned long flags = 0;
    int prio = 0;

    g_snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f) {
        return; /* it ended meanwhile */
    }
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close) {
        return;
    }
    *close = '\0';
    int kind = kthread_kind(open + 1);
    if (kind < 0) {
        return;
    }
    char *save = NULL, *word = strtok_r(close + 1, " ", &save);
    for (int field = 3; word; field++, word = strtok_r(NULL, " ", &save)) {
        if (field == 9) {
            flags = strtoul(word, NULL, 10);
        } else if (field == 40) {
            prio = atoi(word);
        }
    }
    if (flags & pf_kthread) {
        h->kthread_prio[kind] = MAX(h->kthread_prio[kind], prio);
    }
}

static void read_kthreads(HostLimits *h)
{
    struct utsname u;
    DIR *d = opendir("/proc");

    for (int i = 0; i < KTHREAD_KINDS; i++) {
        h->kthread_prio[i] = -1;
    }
    h->preempt_rt = uname(&u) == 0 && strstr(u.version, "PREEMPT_RT");
    if (!d) {
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (g_ascii_isdigit(e->d_name[0])) {
            read_one_thread(h, e->d_name);
        }
    }
    closedir(d);
}

/* ---- Probes ---- */

typedef struct ProbeResult {
    int same_policy, policy, mlock;
} ProbeResult;

/* In the child: system calls only. What kills it is the step whose result is missing. */
static QEMU_NORETURN void probe_child(int fd, const RealtimeConfig *cfg)
{
    ProbeResult r = { PROBE_KILLED, PROBE_NOT_DONE, PROBE_NOT_DONE };
    bool ok;

    prctl(PR_SET_DUMPABLE, 0);
    ok = write(fd, &r, sizeof(r)) == sizeof(r);
    r.same_policy = qemu_thread_try_policy(-1, 0);
    if (cfg->enabled) {
        r.policy = PROBE_KILLED;
        ok = ok && write(fd, &r, sizeof(r)) == sizeof(r);
        r.policy = qemu_thread_try_policy(cfg->policy, cfg->max_priority);
    }
    if (cfg->mem_lock != MEM_LOCK_OFF) {
        r.mlock = PROBE_KILLED;
        ok = ok && write(fd, &r, sizeof(r)) == sizeof(r);
        r.mlock = mlockall(MCL_FUTURE | MCL_ONFAULT) < 0 ? errno : 0;
    }
    ok = ok && write(fd, &r, sizeof(r)) == sizeof(r);
    _exit(!ok);
}

/* The kernel's own answer, without changing this process. */
static void read_probes(HostLimits *h, const RealtimeConfig *cfg)
{
    ProbeResult r = { PROBE_NOT_DONE, PROBE_NOT_DONE, PROBE_NOT_DONE }, got;
    int fds[2];

    h->probe_same_policy = h->probe_policy = h->probe_mlock = PROBE_NOT_DONE;
    if (pipe(fds) < 0) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        probe_child(fds[1], cfg);
    }
    close(fds[1]);
    while (pid > 0 && read(fds[0], &got, sizeof(got)) == sizeof(got)) {
        r = got; /* the last one counts */
    }
    close(fds[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    h->probe_same_policy = r.same_policy;
    h->probe_policy = r.policy;
    h->probe_mlock = r.mlock;
}

void host_limits_read(HostLimits *h, const RealtimeConfig *cfg)
{
    memset(h, 0, sizeof(*h));
    h->global_rt_runtime_us = -1;
    read_permission(h);
    read_rt_cgroup(h);
    read_mem_cgroup(h, "memory", "/memory.limit_in_bytes");
    read_mem_cgroup(h, NULL, "/memory.max");
    read_i64("/proc/sys/kernel/sched_rt_runtime_us", &h->global_rt_runtime_us);
    read_i64("/proc/sys/kernel/sched_rt_period_us", &h->global_rt_period_us);
    h->mem_available = number_field("/proc/meminfo", "MemAvailable", 10) * 1024;
    h->vm_size = number_field("/proc/self/status", "VmSize", 10) * 1024;
    h->cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 0);
    read_kthreads(h);
    read_probes(h, cfg);
}

bool host_has_virtualisation(const char *cpuinfo)
{
    const char *line = cpuinfo ? strstr(cpuinfo, "\nflags") : NULL;

    if (!line) {
        return true;
    }
    g_autofree char *flags = g_strndup(line + 1, strcspn(line + 1, "\n"));
    g_auto(GStrv) words = g_strsplit_set(flags, " \t", -1);
    return g_strv_contains((const char *const *)words, "vmx") ||
           g_strv_contains((const char *const *)words, "svm");
}

void host_limits_free(HostLimits *h)
{
    g_free(h->rt_cgroup_file);
    g_free(h->mem_cgroup_file);
    memset(h, 0, sizeof(*h));
}
