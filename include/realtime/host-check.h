/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's self-check: what of the host's set-up helps or hurts a realtime guest, one line a
 * subject, with the value found, the value wanted, and the command that mends it. One routine serves
 * `-realtime check`, the summary at start-up and QMP query-realtime-host. The lines are explained in
 * docs/realtime.md. HELPER_ONLY or start-up; reads files only, changes nothing.
 */
#ifndef REALTIME_HOST_CHECK_H
#define REALTIME_HOST_CHECK_H

#include <stdio.h>
#include "qemu/os.h"

typedef enum HostCheckStatus {
    HOST_CHECK_OK,
    HOST_CHECK_WARN, /* works, with latency that need not be */
    HOST_CHECK_FAIL, /* -realtime cannot work, or no bound can be kept */
    HOST_CHECK_STATUS_COUNT
} HostCheckStatus;

typedef struct HostCheckLine {
    const char *name; /* stable, for programs: "rt-throttling" */
    HostCheckStatus status;
    char *found, *wanted;
    char *remedy; /* a command, or what to change; NULL when OK */
} HostCheckLine;

/* What the host is judged for. */
typedef struct HostCheckParams {
    const char *root;      /* stands before /proc, /sys, /dev; NULL: the host itself */
    int max_priority;      /* 0: none was given, judged as the lowest, 2 */
    MemLock mem_lock;
    uint64_t bytes_needed; /* memory to be locked or used by the guest; 0: unknown */
    const char *cpus;      /* host CPUs of the realtime threads: "2-3,5"; NULL: not pinned */
    unsigned vcpus;        /* realtime vCPUs that are there; 0: unknown */
    unsigned places;       /* host CPUs that they may run on */
    bool fifo;             /* and their policy is SCHED_FIFO */
    bool holds_dma_latency; /* /dev/cpu_dma_latency is held at 0 while realtime, if permitted */
} HostCheckParams;

typedef struct HostCheck {
    unsigned count;
    HostCheckLine *lines;
    unsigned statuses[HOST_CHECK_STATUS_COUNT]; /* number of lines with each status */
} HostCheck;

/* Runs all checks; host_check_free() frees the result. */
HostCheck *host_check_run(const HostCheckParams *p);
void host_check_free(HostCheck *c);
/* "ok", "warn", "fail". */
const char *host_check_status_name(HostCheckStatus s);
/* As a table for people; as one JSON object, the same that query-realtime-host returns. */
void host_check_print(const HostCheck *c, FILE *f);
void host_check_print_json(const HostCheck *c, FILE *f);

/*
 * What this process is started with: the three below judge the host for it. Strings are borrowed.
 * Without a call, or with NULL, the defaults of a zero HostCheckParams hold.
 */
void realtime_host_check_configure(const HostCheckParams *p);
/*
 * The same from the options: the most demanding profile, all host CPUs that any of them pins to, the
 * vCPUs that are there, and bytes of memory in the end. What o says must outlive it. Again whenever
 * vCPUs have come or gone.
 */
struct RealtimeOptions;
struct RealtimeCpus;
void realtime_host_check_configure_for(const struct RealtimeOptions *o, const struct RealtimeCpus *cpus,
                                       uint64_t bytes_needed);
/* `-realtime check`: prints the table. Returns false if any line fails (exit status 1). */
bool realtime_host_check_print(FILE *f);
bool realtime_host_check_print_json(FILE *f);
/*
 * The summary at start-up: calls warn once for each line that fails, and once for all lines that
 * warn, by name; not at all if everything is well.
 */
void realtime_host_check_warnings(void (*warn)(void *opaque, const char *text), void *opaque);

#endif
