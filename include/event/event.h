/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event loops: file descriptors, timers on three clocks, and work posted from other threads.
 * A loop is run by one thread; the main loop and iothreads are EVENT threads, the `control` thread
 * (monitors) runs one as a HELPER. Nothing here allocates once a source is added, except
 * event_loop_new().
 */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdatomic.h>
#include "qemu/compiler.h"
#include "qemu/error.h"

typedef struct EventLoop EventLoop;

/* name is copied. HELPER_ONLY. */
EventLoop *event_loop_new(const char *name, Error **errp);
/* Frees a loop that is not running; its sources must have been removed. */
void event_loop_free(EventLoop *loop);
/* Runs on the calling thread until event_loop_stop(). */
void event_loop_run(EventLoop *loop);
/* One iteration; waits at most timeout_ns (-1: until something happens). True if anything ran. */
bool event_loop_iterate(EventLoop *loop, int64_t timeout_ns);
/* RT_SAFE, also from a signal handler. */
void event_loop_stop(EventLoop *loop);
/* RT_SAFE. True on the thread that runs the loop now. */
bool event_loop_is_self(const EventLoop *loop);

/* RT_SAFE. True if some thread runs it now. */
bool event_loop_is_running(const EventLoop *loop);

/* The machine's main loop (devices) and the control loop (monitors); set once at start-up. */
EventLoop *event_loop_main(void);
EventLoop *event_loop_control(void);
void event_loop_set_main(EventLoop *loop);
void event_loop_set_control(EventLoop *loop);

/* ---- File descriptors ---- */

/* events is a mask of EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR. Runs on the loop's thread. */
typedef void EventFdFn(void *opaque, uint32_t events);

/* Owned and embedded by the caller; fields are private to event/. */
typedef struct EventSource {
    EventLoop *loop;
    int fd;
    uint32_t events;
    EventFdFn *fn;
    void *opaque;
    struct EventSource *next; /* private list of the loop */
} EventSource;

/*
 * Watches fd (not owned), level-triggered; an fd can be watched by one source of a loop. Any
 * thread; after event_source_remove() on the loop's own thread fn is not called again; removing
 * from another thread waits until the loop's iteration under way is over (HELPER_ONLY then, and
 * with no lock held that a handler of the loop takes). Remove before the fd is closed. Removing
 * twice, or a source of zeroes, does nothing. Fails with a clear error for a regular file.
 */
bool event_source_add(EventSource *src, EventLoop *loop, int fd, uint32_t events, EventFdFn *fn,
                      void *opaque, Error **errp);
/* RT_SAFE. Changes the mask; 0 watches nothing but errors. */
void event_source_modify(EventSource *src, uint32_t events);
void event_source_remove(EventSource *src);

/* ---- Posted work ---- */

/* Embedded by the caller. Posting an item that is already pending does nothing. */
typedef struct EventPost {
    _Atomic(struct EventPost *) next;
    atomic_bool pending;
    void (*fn)(void *opaque);
    void *opaque;
} EventPost;

void event_post_init(EventPost *p, void (*fn)(void *opaque), void *opaque);
/* RT_SAFE, lock-free, also from a signal handler. fn runs once on the loop's thread. */
void event_post(EventLoop *loop, EventPost *p);

/* ---- Clocks and timers ---- */

typedef enum ClockType {
    CLOCK_TYPE_REALTIME, /* CLOCK_MONOTONIC of the host: runs always (displays, pollers) */
    CLOCK_TYPE_VIRTUAL,  /* the guest's time: stands while the machine is stopped; set by qtest */
    CLOCK_TYPE_HOST,     /* CLOCK_REALTIME of the host: jumps when the host's clock is set */
    CLOCK_TYPE_COUNT
} ClockType;

/* RT_SAFE, wait-free. Nanoseconds. */
int64_t clock_get_ns(ClockType type);
/* RT_SAFE. CLOCK_MONOTONIC time at which a virtual time will be reached; INT64_MAX if stopped. */
int64_t clock_virtual_to_monotonic(int64_t virtual_ns);

/*
 * Stop and start of virtual time, which begins at 0 and stopped; called by cpus.c with the run
 * state. Idempotent; nothing under a manual clock. While it is stopped no virtual timer runs.
 */
void clock_virtual_stop(void);
void clock_virtual_start(void);
/* RT_SAFE. True if virtual time passes by itself. */
bool clock_virtual_is_running(void);
/* Stopped or manual only (incoming state, debugger): sets the time without running timers. */
void clock_virtual_set(int64_t virtual_ns);
/*
 * qtest and deterministic runs: virtual time is what clock_virtual_advance_to() says. A timer armed
 * at or before the time of now runs in its loop's next iteration or the next advance.
 */
void clock_virtual_set_manual(void);
/* RT_SAFE. */
bool clock_virtual_is_manual(void);
/*
 * Advances manual virtual time to target_ns, running due virtual timers of all loops in order of
 * their expiry (of equal ones: of arming), each at its own time, on the calling thread (which must
 * own the main loop). A target in the past runs what is due now and changes no time.
 */
void clock_virtual_advance_to(int64_t target_ns);
/*
 * Start-up, a manual clock that one vCPU drives (-icount): only it calls clock_virtual_advance_to(),
 * on its own thread; loops run no virtual timers. earlier is called, with the loop's lock held, by
 * whatever thread arms a virtual timer that is due before all others of its loop: RT_SAFE. While the
 * machine is suspended to RAM the main loop moves the clock; sleeps: it waits for each timer as long as
 * the host's clock says.
 */
void clock_virtual_set_counted(bool sleeps, void (*earlier)(void));
bool clock_virtual_counted_sleeps(void);
/* RT_SAFE. */
bool clock_virtual_is_counted(void);
/* Earliest armed virtual timer, INT64_MAX if none. */
int64_t clock_virtual_next_deadline(void);

/* Owned and embedded by the caller; fields are private to event/. */
typedef struct EventTimer {
    EventLoop *loop;
    ClockType clock;
    _Atomic int64_t expire_ns; /* -1: not armed */
    void (*fn)(void *opaque);
    void *opaque;
    int64_t key;   /* what the heap sorts by: expire_ns, or later for a timer armed in the past */
    uint64_t seq;  /* order of arming, decides among equal keys */
    uint32_t slot; /* index in the loop's heap */
    bool reserved;
} EventTimer;

/* HELPER_ONLY: reserves a heap slot in loop, so that arming never allocates. */
void timer_init(EventTimer *t, EventLoop *loop, ClockType clock, void (*fn)(void *opaque),
                void *opaque);
/* Disarms and gives the slot back; waits for a running fn unless called from it. HELPER_ONLY. */
void timer_fini(EventTimer *t);
/*
 * RT_SAFE, O(log n). Arms at absolute expire_ns of the timer's clock (a past time fires at once;
 * negative is 0). An iteration runs the timers that were due when it began and no others: one that
 * its own fn arms in the past runs in the next. fn runs on the loop's thread with no lock held, so
 * it takes its device's lock itself and checks again whether it is still meant (a concurrent
 * timer_mod may have won).
 */
void timer_mod(EventTimer *t, int64_t expire_ns);
/* RT_SAFE. fn may still be running, or be about to run, on the loop's thread. */
void timer_del(EventTimer *t);
/* RT_SAFE. */
bool timer_pending(const EventTimer *t);
int64_t timer_expire_ns(const EventTimer *t);

#endif
