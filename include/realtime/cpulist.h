/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of CPUs as people write them, and as the kernel does in /sys: "1-3", "0,2", "^0", "all".
 * One parser for vCPUs and host CPUs. HELPER_ONLY, implemented in realtime/cpulist.c.
 */
#ifndef REALTIME_CPULIST_H
#define REALTIME_CPULIST_H

#include "qemu/error.h"
#include "qemu/thread.h"

typedef struct CpuList {
    unsigned count;
    uint16_t cpu[QEMU_CPU_SET_MAX]; /* in the order of the text; a number may stand there twice */
    QemuCpuSet set;
} CpuList;

/*
 * Items are separated by commas: N, A-B (A <= B), "all", and ^N or ^A-B, which takes away what
 * stands before it; a list that begins with '^' begins as "all". valid: the numbers there are.
 * option ("-realtime vcpus") and kind ("vCPU", "host CPU") are for errors, which name the item and
 * the valid range. An empty text, and a list of which nothing is left, are errors.
 */
bool cpu_list_parse(const char *option, const char *kind, const char *text, const QemuCpuSet *valid,
                    CpuList *list, Error **errp);

/* Writes "0-3,7" ("none" for the empty set), cut to len bytes. Returns buf. RT_SAFE. */
#define CPU_SET_TEXT_MAX 64
char *cpu_set_format(const QemuCpuSet *set, char *buf, size_t len);

/* The set 0..count-1. */
void cpu_set_first(QemuCpuSet *set, unsigned count);

/* The kernel's file path holds such a list. False: no such file, or it is empty. */
bool cpu_set_read(const char *path, QemuCpuSet *set);

#endif
