/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server of QEMU's qtest protocol: a test program drives devices, interrupts and time. */
#ifndef MONITOR_QTEST_H
#define MONITOR_QTEST_H

#include "qemu/error.h"

struct Chardev;

/*
 * Start-up (HELPER_ONLY), after the machine was made. Serves the protocol on chr, which it claims,
 * on the main loop. log: a file name, "none", or NULL for standard error. docs/devel/qtest.md lists
 * the commands.
 */
bool qtest_server_start(struct Chardev *chr, const char *log, Error **errp);

#endif
