/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event threads of the user's: -object iothread. Each runs an event loop of its own, in class
 * THREAD_EVENT, so it is in the realtime profile in force from its first instruction.
 * HELPER_ONLY: start-up, and then the control thread alone.
 */
#ifndef EVENT_IOTHREAD_H
#define EVENT_IOTHREAD_H

#include <stdint.h>

typedef struct IOThreadInfo {
    const char *id; /* borrowed until the object goes */
    int thread_id;  /* the kernel's */
    int64_t poll_max_ns, poll_grow, poll_shrink, aio_max_batch;
} IOThreadInfo;

/* In order of creation. */
void iothread_foreach(void (*fn)(const IOThreadInfo *info, void *opaque), void *opaque);
/* At the end of the process: stops and joins all of them. */
void iothread_stop_all(void);

#endif
