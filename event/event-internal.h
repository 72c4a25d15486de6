/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What loop.c, timer.c and clock.c share. */
#ifndef EVENT_EVENT_INTERNAL_H
#define EVENT_EVENT_INTERNAL_H

#include <sys/epoll.h>
#include "event/event.h"
#include "qemu/thread.h"

#define EVENT_BATCH 64 /* descriptors handled in one iteration */

/* Armed timers, the earliest at [0]. Capacity is the number of timers initialised on the loop. */
typedef struct TimerHeap {
    EventTimer **t;
    uint32_t len;
    uint32_t reserved;
    uint32_t capacity;
} TimerHeap;

/* A timer whose fn runs now; lives on the stack of the thread that runs it. */
typedef struct RunningTimer {
    EventTimer *timer;
    const void *thread;
    struct RunningTimer *next;
} RunningTimer;

/* The descriptors of an iteration; a chain, as a handler may iterate its own loop again. */
typedef struct EventBatch {
    struct epoll_event ev[EVENT_BATCH];
    int n;
    struct EventBatch *outer;
} EventBatch;

struct EventLoop {
    /* Guards heap, armed_*, entry, in_timers, running. */
    QemuMutex lock;
    TimerHeap heap[CLOCK_TYPE_COUNT];
    int64_t armed_mono; /* what tfd_mono is set to; INT64_MAX: nothing */
    int64_t armed_real; /* the same for tfd_real */
    int64_t entry[CLOCK_TYPE_COUNT]; /* the times an iteration's timer phase began at */
    uint64_t entry_seq;
    bool in_timers;
    RunningTimer *running;

    char name[16];
    int epfd;
    int wakefd;   /* eventfd, edge-triggered: never read */
    int tfd_mono; /* CLOCK_MONOTONIC, edge-triggered: CLOCK_TYPE_REALTIME and _VIRTUAL */
    int tfd_real; /* CLOCK_REALTIME with TFD_TIMER_CANCEL_ON_SET: CLOCK_TYPE_HOST */

    _Atomic(const void *) owner; /* loop_thread_id() of the thread that runs the loop */
    EventBatch *batch;           /* owner's thread only */
    unsigned depth;              /* owner's thread only */
    atomic_bool stop;
    _Atomic uint32_t wake_state; /* was wakefd written, see loop_wake() */
    _Atomic(EventPost *) posts; /* newest first */

    /* Futex: grows when a timer's fn, an iteration or a run ends. */
    _Atomic uint32_t progress;
    _Atomic uint32_t waiters;
    _Atomic uint32_t iterations; /* completed */

    EventLoop *next; /* list of all loops, guarded by the CLOCK lock */
};

/* loop.c */
const void *loop_thread_id(void);
void loop_wake(EventLoop *loop);
void loop_progress(EventLoop *loop);
void loop_wait_progress(EventLoop *loop, uint32_t seen);
/* The list of loops, under the CLOCK lock. */
extern EventLoop *loop_list;
QemuMutex *loop_list_lock(void);

/* timer.c; loop->lock is held. */
int64_t timers_deadline_mono_locked(EventLoop *loop);
/* Programs the timerfds; later_too: also when the deadline moved into the future. */
void timers_arm_locked(EventLoop *loop, bool later_too);
/* The loop woke: forget what has expired. */
void timers_woken(EventLoop *loop, bool real_fired);
bool timers_run(EventLoop *loop);
/* Takes the earliest virtual timer off the heap, unlocks, runs it, locks again. */
void timers_run_one_locked(EventLoop *loop, EventTimer *t) NO_TSA;

/* clock.c */
bool clock_virtual_is_manual(void);
/* A virtual timer became the earliest of its loop; the loop's lock is held. */
void clock_virtual_earlier(void);
/* The time up to which timers of a clock are due now; INT64_MIN: none are. */
int64_t clock_due_limit(ClockType type);
extern _Atomic uint64_t timer_seq;

/*
 * suspend-time.c; runstate.c calls the first three: init when there is a main loop, begin on it. Nothing
 * unless a vCPU counts time.
 */
void suspend_time_init(void);
void suspend_time_begin(void);
void suspend_time_end(void);
/* RT_SAFE, the lock of a loop is held: as the callback of clock_virtual_set_counted(). */
void suspend_time_earlier(void);

#endif
