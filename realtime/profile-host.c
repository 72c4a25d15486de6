/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of the host goes with a profile: the bound on idle states that /dev/cpu_dma_latency holds
 * while it is open (Documentation/power/pm_qos_interface), and the kernel thread that delivers the
 * in-kernel PIT's interrupts, "kvm-pit/<pid>".
 */
#include "realtime/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu/error.h"

#define DMA_LATENCY "/dev/cpu_dma_latency"

static atomic_int dma_latency_fd = -1;
static bool dma_latency_warned;
static bool pit_in_kernel, pit_warned;
static atomic_int pit_tid;
static int pit_policy, pit_priority;

bool realtime_dma_latency_held(void)
{
    return atomic_load(&dma_latency_fd) >= 0;
}

int realtime_pit_thread(void)
{
    return atomic_load(&pit_tid);
}

/* ---- Idle states ---- */

static void dma_latency_release(void)
{
    int fd = atomic_exchange(&dma_latency_fd, -1);

    if (fd >= 0) {
        close(fd);
    }
}

static void dma_latency_hold(void)
{
    int32_t us = 0;
    int fd;

    if (realtime_dma_latency_held()) {
        return;
    }
    fd = open(DMA_LATENCY, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, &us, sizeof(us)) == sizeof(us)) {
        atomic_store(&dma_latency_fd, fd);
        return;
    }
    if (!dma_latency_warned) {
        warn_report("-realtime: cannot hold " DMA_LATENCY " at 0 (%s): deep idle states of the "
                    "host may delay the guest; permit access to the file, start the host with "
                    "idle=poll or cpuidle.off=1, or say cpu-dma-latency=off",
                    g_strerror(errno));
        dma_latency_warned = true;
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* ---- The kernel's PIT ---- */

/* The id of the kernel thread called name; 0: not there, or not visible in our pid namespace. */
static int find_kernel_thread(const char *name)
{
    DIR *d = opendir("/proc");
    int tid = 0;

    for (struct dirent *e; !tid && d && (e = readdir(d));) {
        char path[300], *comm = NULL;

        if (!g_ascii_isdigit(e->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
        if (g_file_get_contents(path, &comm, NULL, NULL) && !strcmp(g_strstrip(comm), name)) {
            tid = atoi(e->d_name);
        }
        g_free(comm);
    }
    if (d) {
        closedir(d);
    }
    return tid;
}

static void pit_set(int policy, int priority)
{
    QemuSched now;
    int tid = atomic_load(&pit_tid), err;

    if (!tid || (policy == pit_policy && priority == pit_priority)) {
        return;
    }
    err = qemu_thread_set_policy(tid, policy, priority);
    if (!err) {
        err = qemu_thread_get_sched(tid, &now);
    }
    if (err || now.policy != policy || now.priority != priority) {
        if (!pit_warned) {
            warn_report("-realtime: cannot give the kernel's thread kvm-pit/%d priority %d (%s): "
                        "the guest's timer interrupts may come late; use kernel-irqchip=split, or "
                        "run with CAP_SYS_NICE",
                        (int)getpid(), priority, g_strerror(err ? err : EPERM));
            pit_warned = true;
        }
        return;
    }
    pit_policy = policy;
    pit_priority = priority;
}

void realtime_host_init(bool kernel_pit)
{
    pit_in_kernel = kernel_pit;
}

static void pit_follow(const QemuRealtimeProfile *p)
{
    char name[16]; /* what the kernel keeps of it */

    if (!pit_in_kernel) {
        return;
    }
    if (!atomic_load(&pit_tid)) {
        snprintf(name, sizeof(name), "kvm-pit/%d", (int)getpid());
        atomic_store(&pit_tid, find_kernel_thread(name));
    }
    if (!atomic_load(&pit_tid) && p->realtime && !pit_warned) {
        warn_report("-realtime: the kernel's thread %s is not visible here (another pid "
                    "namespace?): raise it to priority %d from the host, or use "
                    "kernel-irqchip=split",
                    name, p->max_priority);
        pit_warned = true;
    }
    pit_set(p->realtime ? p->policy : SCHED_OTHER, p->realtime ? p->max_priority : 0);
}

void realtime_host_follow(const QemuRealtimeProfile *p)
{
    if (p->cpu_dma_latency) {
        dma_latency_hold();
    } else {
        dma_latency_release();
    }
    pit_follow(p);
}
