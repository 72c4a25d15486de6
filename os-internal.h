/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What os-posix.c (background, pid file, signals) and os-startup.c share. */
#ifndef OS_INTERNAL_H
#define OS_INTERNAL_H

/* os-posix.c: the pipe on whose other end the command of -daemonize waits; -1: nobody waits. */
int os_command_fd(void);
/* The first of the termination signals that came; 0: none. Async-signal-safe. */
int os_termination_signal(void);

/* os-startup.c, async-signal-safe: such a signal came. */
void os_startup_signalled(void);

#endif
