/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The profiles of -realtime id=NAME, and switching from one to another while the guest runs.
 * docs/realtime.md, "Profiles". A switch is carried out by the main loop, which outranks every
 * vCPU in every profile, so that it cannot be starved half-way by a thread it has raised.
 */
#ifndef REALTIME_PROFILE_H
#define REALTIME_PROFILE_H

#include "qemu/error.h"
#include "qemu/thread.h"

/* Why a switch was refused: the first thread that was. Fixed size, as the main loop fills it. */
typedef struct RealtimeRefusal {
    int err;                                  /* errno of the call */
    enum { REFUSED_POLICY, REFUSED_AFFINITY } what;
    int tid;
    char thread[16];
    int policy, priority; /* REFUSED_POLICY */
    QemuCpuSet affinity;  /* REFUSED_AFFINITY */
    bool restored;        /* every thread has again what it had before */
} RealtimeRefusal;

/* ---- realtime/profile-switch.c ---- */

/*
 * RT_SAFE, on the thread of highest priority. Gives every EVENT and VCPU thread what `to` says and
 * puts it in force for those made later; or changes nothing, fills why and returns false.
 */
bool realtime_switch_threads(const QemuRealtimeProfile *to, RealtimeRefusal *why);
/* HELPER_ONLY. As a sentence; g_free(). */
char *realtime_refusal_text(const RealtimeRefusal *why);

/* ---- realtime/profile.c ---- */

/* Start-up, after os_prioritize(); profiles[0] is in force. profiles is borrowed for good. */
void realtime_profiles_init(const QemuRealtimeProfile *profiles, unsigned count);
/*
 * Start-up, when main loop and control loop have been made: begins what goes with being realtime
 * (/dev/cpu_dma_latency, the kernel's PIT thread, the check once a second). kernel_pit: the
 * accelerator has the PIT in the kernel.
 */
void realtime_start(bool kernel_pit);
/* At the end, main loop: from now on switches are refused, and nobody waits for one. */
void realtime_stop(void);

/* RT_SAFE, all four. By number, in the order of the command line. */
unsigned realtime_profile_count(void);
unsigned realtime_profile_current(void);
const QemuRealtimeProfile *realtime_profile(unsigned n);
/* -1: there is none of that name. */
int realtime_profile_find(const char *name);

/* Control thread. By name; waits until every thread is in the profile, or none. */
bool realtime_profile_set(const char *name, Error **errp);
/*
 * Main loop, RT_SAFE: the guest, or a reset of the machine, asks for profile n. False: there is no such profile, or the host
 * refused; the control thread then tells the operator.
 */
bool realtime_profile_set_by_guest(unsigned n, bool reset);

/* RT_SAFE. The bound of -realtime latency-warn of the profile in force; 0: none. */
uint32_t realtime_latency_warn_us(void);

#endif
