/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -realtime from the options to the process: what it is judged for at the start, and when vCPUs come and go. */
#ifndef REALTIME_SETUP_H
#define REALTIME_SETUP_H

#include <stdbool.h>

/* Start-up, all, in this order. They end the process with status 1 and a message if something is wrong. */

/* Parses the options. enable_kvm: the option of that name. model: -cpu's argument, borrowed; NULL: no CPUs. */
void realtime_setup_parse(bool enable_kvm, const char *model);
/* -realtime check was asked for: prints what of this host is in the way; true: nothing. */
bool realtime_setup_wants_check(void);
bool realtime_setup_check(void);
/* Locks memory and takes the first profile; mem_merge: -machine mem-merge=on was said. */
void realtime_setup_process(bool mem_merge);
/*
 * The guest is about to run: histograms begin with it. What the main loop found late in its first turn, since
 * nobody served it during the start, does not count.
 */
void realtime_setup_done(void);

#endif
