/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by realtime/host-check*.c: files under the root, sets of CPUs, and how a line is given. */
#ifndef REALTIME_HOST_CHECK_INTERNAL_H
#define REALTIME_HOST_CHECK_INTERNAL_H

#include <inttypes.h>
#include "qemu/thread.h"
#include "realtime/host-check.h"

typedef QemuCpuSet HostCpus;

typedef struct HostCheckRun {
    const HostCheckParams *p;
    const char *root;      /* "" for the host */
    int prio;              /* maxprio that is judged for */
    HostCpus online;
    HostCpus rt;           /* CPUs the realtime threads may run on: those given, else all online */
    bool pinned;           /* they were given */
    char *rt_text;         /* as text */
    HostCheckLine *line;   /* the one being filled */
} HostCheckRun;

/* Each gives the verdict of the line that is being checked. remedy is NULL when OK. */
void hc_ok(HostCheckRun *r, const char *wanted, const char *found, ...) QEMU_PRINTF(3, 4);
void hc_bad(HostCheckRun *r, HostCheckStatus s, const char *wanted, const char *remedy,
            const char *found, ...) QEMU_PRINTF(5, 6);

/* Content of a file under the root, white space stripped; NULL: there is none. g_free(). */
char *hc_read(const HostCheckRun *r, const char *fmt, ...) QEMU_PRINTF(2, 3);
bool hc_read_i64(const HostCheckRun *r, int64_t *v, const char *fmt, ...) QEMU_PRINTF(3, 4);
/* Value of a "Key:  value" line of a file; NULL: none. g_free(). */
char *hc_field(const HostCheckRun *r, const char *path, const char *key);
/* Word of the kernel's command line: value of "key=", "" for a bare "key", NULL: none. g_free(). */
char *hc_cmdline(const HostCheckRun *r, const char *key);
/* The word in square brackets, as files of choices have it; else the text. g_free(). */
char *hc_choice(const char *text);

/*
 * Is it known that there is no such file? So where base, a directory that is there whenever the file can
 * be (and not if /proc or /sys is not mounted), can be searched, and the file is not found.
 */
bool hc_absent(const HostCheckRun *r, const char *base, const char *path);
/* The verdict on a value that could not be read: OK, in the words of none, if path is absent; else unknown. */
void hc_none(HostCheckRun *r, const char *wanted, const char *base, const char *path, const char *none);
void hc_unknown(HostCheckRun *r, const char *wanted, const char *path);

/* Parses a list as the kernel writes it ("0,2-5"); words that are no numbers are skipped. */
void hc_cpus_parse(HostCpus *s, const char *text);
bool hc_cpus_meet(const HostCpus *a, const HostCpus *b);
/* Those of a that are not in b. */
HostCpus hc_cpus_minus(const HostCpus *a, const HostCpus *b);
/* "0-3,7", "none". g_free(). */
char *hc_cpus_text(const HostCpus *s);

typedef struct HostCheckDef {
    const char *name;
    void (*check)(HostCheckRun *r);
} HostCheckDef;
/* Ended by a NULL name. */
extern const HostCheckDef hc_limit_checks[], hc_cpu_checks[], hc_memory_checks[];

/* Judges the host as configured. */
HostCheck *realtime_host_check(void);

#endif
