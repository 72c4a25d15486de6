/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operator's doors: QMP and HMP sessions over character devices, served by the control thread
 * (HELPER), so that no client can delay a guest. docs/devel/monitor.md.
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include "chardev/char.h"
#include "qemu/error.h"
#include "qemu/option.h"

typedef struct Monitor Monitor;

/* Start-up: makes the control loop and connects the events of the run state. */
bool monitor_init_globals(Error **errp);
/* Start-up, after the first monitors were made: starts the thread that serves them. */
bool monitor_start(Error **errp);
/* Before monitor_start(), or on the control thread. pretty: QMP output over several lines. */
bool monitor_new_qmp(Chardev *chr, bool pretty, Error **errp);
bool monitor_new_hmp(Chardev *chr, Error **errp);
/* Start-up, before character devices are made: -add-fd, and how /dev/fdset/N is opened. list: the
 * group "add-fd". */
bool monitor_add_fds(QemuOptsList *list, Error **errp);
/* Delivers what is queued, then ends sessions and the control thread. */
void monitor_cleanup(void);

/* ---- For HMP commands; control thread ---- */

void monitor_printf(Monitor *mon, const char *fmt, ...) QEMU_PRINTF(2, 3);
void monitor_puts(Monitor *mon, const char *str);
/* The vCPU that x and `info registers` look at (-1: none). */
int monitor_cpu_index(const Monitor *mon);
void monitor_set_cpu_index(Monitor *mon, int index);

/* -name and -uuid for query-name, query-uuid and the events. Borrowed. */
extern const char *monitor_guest_name;
extern uint8_t monitor_guest_uuid[16];

#endif
