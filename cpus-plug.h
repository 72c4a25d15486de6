/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vCPUs as devices: device_add, -device, and where clients find them. All: the control thread, or
 * start-up.
 */
#ifndef CPUS_PLUG_H
#define CPUS_PLUG_H

#include <stdbool.h>
#include <stdint.h>
#include "qemu/error.h"

struct QemuOpts;

/* The place of a vCPU; what -smp says has room for. */
typedef struct CpuPlace {
    unsigned socket, die, core, thread;
} CpuPlace;
CpuPlace cpu_place(unsigned index);

/* Is it the type of a vCPU, "MODEL-x86_64-cpu"? driver may be NULL. */
bool cpu_device_type_known(const char *driver);
/*
 * Makes the vCPU that driver=, socket-id= and so on ask for; id= is its name. Returns when it is there,
 * with its thread and memory; other vCPUs go on meanwhile. hot: a guest that
 * runs already is told. False: nothing was
 * changed.
 */
bool cpu_device_add(struct QemuOpts *opts, bool hot, Error **errp);
/*
 * Asks the guest to give an added vCPU back. When it does, which it may also unasked, the vCPU goes with its
 * thread and memory, and then the function of cpu_device_on_gone() is called, on the control thread, with
 * its id (or NULL) and QOM path. False: it cannot be asked.
 */
bool cpu_device_del(unsigned index, Error **errp);
void cpu_device_on_gone(void (*fn)(const char *id, const char *path));
/*
 * Start-up, before vCPUs are added. The function is called for each that was made and that the guest is about
 * to find (there), and for each that is gone; on the control thread, or at start-up.
 */
void cpu_device_on_change(void (*fn)(unsigned index, bool there));
/* The same way: what the guest reported of a place, and the id (or NULL) of the vCPU in it. */
void cpu_device_on_report(void (*fn)(unsigned index, const char *id, uint32_t source, uint32_t status));
/* What it reported last of a place; false: nothing yet. */
bool cpu_device_last_report(unsigned index, uint32_t *source, uint32_t *status);
/* -device TYPE,help; g_free(). */
char *cpu_device_help(const char *driver);

/* Where QOM has vCPU index, which exists; g_free(). */
char *cpu_qom_path(unsigned index);
/* Was it added, and is it not one of -smp's? */
bool cpu_is_plugged(unsigned index);
/* What id= said; NULL: nothing. Borrowed. */
const char *cpu_device_id(unsigned index);
/* Of an added vCPU without id: its number among those. */
unsigned cpu_anon_number(unsigned index);
/* The vCPU of that name; -1: none. */
int cpu_by_device_id(const char *id);

#endif
