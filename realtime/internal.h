/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of realtime/. */
#ifndef REALTIME_INTERNAL_H
#define REALTIME_INTERNAL_H

#include "qemu/thread.h"

/* ---- profile-host.c: what of the host goes with a profile. Control thread ---- */

/* Opens or closes /dev/cpu_dma_latency; gives the kernel's PIT thread (if any) its priority. */
void realtime_host_follow(const QemuRealtimeProfile *p);
void realtime_host_init(bool kernel_pit);
bool realtime_dma_latency_held(void);
/* 0: there is none, or it was not found. */
int realtime_pit_thread(void);

/* ---- readback.c, watch.c: control thread ---- */

/* Begins the check once a second of what something outside changes, and of throttling. */
void realtime_watch_start(void);
/* After a switch: what threads have now was asked for. */
void realtime_watch_reset(void);

/* A thread this program made, as it was at one moment. */
typedef struct RealtimeThread {
    int tid, vcpu;
    ThreadClass cls;
    char name[16];
    bool asked; /* a profile says what it is to have: want */
    QemuSched want, now;
} RealtimeThread;
/* An array of RealtimeThread, taken while no switch is under way; g_array_unref(). */
struct _GArray *realtime_threads(void);
/* Sends REALTIME_THREAD_CHANGED. */
void realtime_thread_report(const RealtimeThread *t);
/* Does t have something else than what was asked for, or than what it began with? */
bool realtime_thread_changed(const RealtimeThread *t);
/* /proc/self/task/TID/schedstat, nanoseconds. */
bool realtime_schedstat(int tid, int64_t *run, int64_t *delay);
/* What was seen of the host's limit so far. */
void realtime_throttling(int64_t *seen, int *last_tid);
void realtime_throttling_limit(int64_t *runtime_us, int64_t *period_us);

#endif
