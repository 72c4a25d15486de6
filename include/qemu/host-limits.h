/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the host permits this process: facts read from the kernel, and the verdicts on -realtime
 * drawn from them. The verdicts are functions of the facts alone, so that tests can give any
 * host. HELPER_ONLY, start-up.
 */
#ifndef QEMU_HOST_LIMITS_H
#define QEMU_HOST_LIMITS_H

#include "qemu/error.h"
#include "qemu/os.h"

#define HOST_UNLIMITED UINT64_MAX

/* Outcome of a system call tried in a child process: 0, an errno, or one of these. */
#define PROBE_NOT_DONE (-1)
#define PROBE_KILLED   (-2) /* a filter ended the child for it */

/* The kernel's own threads that a realtime thread can hold up. */
enum { KTHREAD_KSOFTIRQD, KTHREAD_RCUC, KTHREAD_KTIMERS, KTHREAD_MIGRATION, KTHREAD_KINDS };

typedef struct HostLimits {
    /* Effective, and of the initial user namespace: others do not count for these calls. */
    bool cap_sys_nice, cap_ipc_lock;
    uint64_t rtprio_soft, rtprio_hard;
    uint64_t memlock_soft, memlock_hard; /* bytes */
    uint64_t rttime_soft;                /* microseconds */
    int seccomp_mode;                    /* `Seccomp:` of /proc/self/status: 2 is a filter */

    char *rt_cgroup_file; /* cpu.rt_runtime_us of this process's cgroup; NULL: there is none */
    int64_t rt_runtime_us;
    int64_t global_rt_runtime_us, global_rt_period_us; /* -1: no throttling */

    uint64_t mem_available, vm_size; /* bytes; 0: unknown */
    char *mem_cgroup_file;           /* the tightest limit of memory; NULL: none */
    uint64_t mem_cgroup_limit;

    unsigned cpus;                   /* host CPUs online */
    bool preempt_rt;                 /* the host's kernel is PREEMPT_RT */
    int kthread_prio[KTHREAD_KINDS]; /* highest realtime priority of the kind; -1: none runs */

    /* What the kernel itself said. */
    int probe_same_policy; /* setting the policy the process has already: only a filter refuses */
    int probe_policy;      /* setting policy and priority that are asked for */
    int probe_mlock;       /* mlockall(MCL_FUTURE | MCL_ONFAULT) */
} HostLimits;

/* Reads everything; the probes are for cfg. */
void host_limits_read(HostLimits *h, const RealtimeConfig *cfg);
void host_limits_free(HostLimits *h);

/* Is the policy permitted? cfg->enabled is true. */
bool host_limits_check_policy(const HostLimits *h, const RealtimeConfig *cfg, Error **errp);
/* Can bytes_needed more be locked? cfg->mem_lock is not MEM_LOCK_OFF. */
bool host_limits_check_memory(const HostLimits *h, const RealtimeConfig *cfg, uint64_t bytes_needed,
                              Error **errp);
/* Calls warn for each thing that is permitted but will hurt. */
void host_limits_warnings(const HostLimits *h, const RealtimeConfig *cfg, uint64_t bytes_needed,
                          void (*warn)(void *opaque, const char *text), void *opaque);

/* Of these the one about the number of realtime vCPUs, cfg->vcpus, on so many host CPUs. HELPER_ONLY. */
void host_limits_warn_covered(unsigned host_cpus, const RealtimeConfig *cfg,
                              void (*warn)(void *opaque, const char *text), void *opaque);

/*
 * Has the processor that the text of /proc/cpuinfo describes extensions for virtual machines (vmx,
 * svm)? NULL, or a text without flags: unknown, true. HELPER_ONLY.
 */
bool host_has_virtualisation(const char *cpuinfo);

#endif
