/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that make threads on POSIX hosts. */
#ifndef UTIL_QEMU_THREAD_INTERNAL_H
#define UTIL_QEMU_THREAD_INTERNAL_H

#include "qemu/error.h"
#include "qemu/thread.h"

/*
 * The registry is held. Gives thread tid (0: the calling one), which is or becomes t, what the
 * profile in force says, and reads it back. Returns an errno.
 */
int qemu_thread_sched_apply(const QemuThread *t, pid_t tid);
/* The message for that errno. */
void qemu_thread_sched_refused(Error **errp, const QemuThread *t, int err);

#endif
