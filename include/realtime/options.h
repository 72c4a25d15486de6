/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -realtime and -overcommit: what they say, before anything is asked of the host beyond which CPUs
 * it has. docs/realtime.md. Start-up.
 */
#ifndef REALTIME_OPTIONS_H
#define REALTIME_OPTIONS_H

#include "qemu/error.h"
#include "qemu/os.h"
#include "qemu/thread.h"

/* A guest chooses by number through a register with six bits for it. */
#define REALTIME_PROFILES_MAX 64

/* Which CPUs there are. */
typedef struct RealtimeCpus {
    unsigned vcpus;      /* that the machine can have, those plugged in later too */
    QemuCpuSet present;  /* vCPUs that are there now */
    QemuCpuSet online;   /* host CPUs */
    QemuCpuSet isolated; /* isolcpus=: the host does not spread threads over them */
    QemuCpuSet allowed;  /* where this process may run */
} RealtimeCpus;
/* present: so many at the start, the first ones. */
void realtime_cpus_read(RealtimeCpus *cpus, unsigned vcpus, unsigned present);

typedef struct RealtimeOptions {
    RealtimeConfig config; /* for os_prioritize(); its profiles are those below */
    QemuRealtimeProfile profiles[REALTIME_PROFILES_MAX];
    bool check;  /* -realtime check */
    bool cpu_pm; /* -overcommit cpu-pm=on */
} RealtimeOptions;

/* Groups "realtime" and "overcommit" together. Strings in o are borrowed from the groups. */
bool realtime_options_parse(const RealtimeCpus *cpus, RealtimeOptions *o, Error **errp);
/* Calls warn for each placement of vCPUs and event threads that is permitted but will hurt; what
 * will hang comes last. */
void realtime_options_warnings(const RealtimeCpus *cpus, const RealtimeOptions *o,
                               void (*warn)(void *opaque, const char *text), void *opaque);

/*
 * Later: vCPUs come and go, cpus->present says which are there. HELPER_ONLY.
 */

/* Counts config.vcpus anew. */
void realtime_options_count(const RealtimeCpus *cpus, RealtimeOptions *o);
/* The same warnings, in the same words, as far as vCPU added, which is present now, is what brings them. */
void realtime_options_warn_added(const RealtimeCpus *cpus, const RealtimeOptions *o, unsigned added,
                                 void (*warn)(void *opaque, const char *text), void *opaque);
/* How many vCPUs of p are there (*vcpus), and how many host CPUs they may run on. */
unsigned realtime_profile_places(const RealtimeCpus *cpus, const QemuRealtimeProfile *p, unsigned *vcpus);

#endif
