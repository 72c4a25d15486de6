/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The three clocks. The state of virtual time is one word, so that reading it is wait-free: bit 0
 * says whether it runs; the rest is then the offset to CLOCK_MONOTONIC, else the time itself.
 */
#include <time.h>
#include "event-internal.h"

_Atomic uint64_t timer_seq;

static _Atomic int64_t virtual_state;
static atomic_bool virtual_manual, virtual_counted;
static void (*virtual_earlier)(void);
static bool counted_sleeps;

/* Timers that a manual advance runs at one and the same time before it gives up: a fn that always
 * arms itself for now would otherwise hang a test for ever. */
#define ADVANCE_MAX_AT_ONCE 100000

static int64_t host_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

static int64_t pack(int64_t value, bool running)
{
    return (int64_t)((uint64_t)value << 1) | running;
}

int64_t clock_get_ns(ClockType type)
{
    if (type == CLOCK_TYPE_HOST) {
        return host_ns(CLOCK_REALTIME);
    }
    if (type == CLOCK_TYPE_REALTIME) {
        return host_ns(CLOCK_MONOTONIC);
    }
    int64_t s = atomic_load(&virtual_state);
    return (s & 1) ? host_ns(CLOCK_MONOTONIC) + (s >> 1) : s >> 1;
}

bool clock_virtual_is_running(void)
{
    return atomic_load(&virtual_state) & 1;
}

bool clock_virtual_is_manual(void)
{
    return atomic_load_explicit(&virtual_manual, memory_order_relaxed);
}

bool clock_virtual_is_counted(void)
{
    return atomic_load_explicit(&virtual_counted, memory_order_relaxed);
}

int64_t clock_virtual_to_monotonic(int64_t virtual_ns)
{
    int64_t s = atomic_load(&virtual_state), r;

    if (!(s & 1)) {
        bool due = clock_virtual_is_manual() && !clock_virtual_is_counted() && virtual_ns <= s >> 1;

        return due ? 0 : INT64_MAX;
    }
    return __builtin_sub_overflow(virtual_ns, s >> 1, &r) ? INT64_MAX : r;
}

int64_t clock_due_limit(ClockType type)
{
    if (type == CLOCK_TYPE_VIRTUAL && !clock_virtual_is_running() &&
        (!clock_virtual_is_manual() || clock_virtual_is_counted())) {
        return INT64_MIN;
    }
    return clock_get_ns(type);
}

static void rearm_all_locked(void)
{
    for (EventLoop *l = loop_list; l; l = l->next) {
        QEMU_LOCK_GUARD(&l->lock);
        timers_arm_locked(l, false);
    }
}

void clock_virtual_stop(void)
{
    QEMU_LOCK_GUARD(loop_list_lock());
    if (clock_virtual_is_running()) {
        atomic_store(&virtual_state, pack(clock_get_ns(CLOCK_TYPE_VIRTUAL), false));
    }
}

void clock_virtual_start(void)
{
    QEMU_LOCK_GUARD(loop_list_lock());
    if (!clock_virtual_is_running() && !clock_virtual_is_manual()) {
        int64_t value = atomic_load(&virtual_state) >> 1;
        atomic_store(&virtual_state, pack(value - host_ns(CLOCK_MONOTONIC), true));
        rearm_all_locked();
    }
}

void clock_virtual_set(int64_t virtual_ns)
{
    if (clock_virtual_is_counted()) {
        atomic_store(&virtual_state, pack(virtual_ns, false)); /* no loop waits for it */
        return;
    }
    QEMU_LOCK_GUARD(loop_list_lock());
    if (!clock_virtual_is_running()) {
        atomic_store(&virtual_state, pack(virtual_ns, false));
        rearm_all_locked();
    }
}

void clock_virtual_set_manual(void)
{
    QEMU_LOCK_GUARD(loop_list_lock());
    atomic_store(&virtual_state, pack(clock_get_ns(CLOCK_TYPE_VIRTUAL), false));
    atomic_store(&virtual_manual, true);
    rearm_all_locked();
}

void clock_virtual_set_counted(bool sleeps, void (*earlier)(void))
{
    virtual_earlier = earlier;
    counted_sleeps = sleeps;
    atomic_store(&virtual_counted, true);
    clock_virtual_set_manual();
}

bool clock_virtual_counted_sleeps(void)
{
    return counted_sleeps;
}

void clock_virtual_earlier(void)
{
    if (clock_virtual_is_counted()) {
        virtual_earlier();
        suspend_time_earlier();
    }
}

/* The loop with the earliest virtual timer; *t and *key are that timer's. */
static EventLoop *earliest_locked(EventTimer **t, int64_t *key)
{
    EventLoop *best = NULL;
    uint64_t seq = 0;

    for (EventLoop *l = loop_list; l; l = l->next) {
        QEMU_LOCK_GUARD(&l->lock);
        TimerHeap *h = &l->heap[CLOCK_TYPE_VIRTUAL];
        if (h->len && (!best || h->t[0]->key < *key ||
                       (h->t[0]->key == *key && h->t[0]->seq < seq))) {
            best = l;
            *t = h->t[0];
            *key = h->t[0]->key;
            seq = h->t[0]->seq;
        }
    }
    return best;
}

int64_t clock_virtual_next_deadline(void)
{
    EventTimer *t;
    int64_t key;

    QEMU_LOCK_GUARD(loop_list_lock());
    return earliest_locked(&t, &key) ? key : INT64_MAX;
}

/* Runs the earliest timer if it is due by target_ns; moves the clock to its time. */
static bool advance_one(int64_t target_ns, unsigned *at_once)
{
    EventTimer *t = NULL;
    int64_t key = 0;

    qemu_mutex_lock(loop_list_lock());
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    EventLoop *l = earliest_locked(&t, &key);
    bool due = l && key <= MAX(target_ns, now);
    if (due && key > now) {
        atomic_store(&virtual_state, pack(key, false));
        *at_once = 0;
    }
    qemu_mutex_unlock(loop_list_lock());
    if (!due || ++*at_once > ADVANCE_MAX_AT_ONCE) {
        return false;
    }
    qemu_mutex_lock(&l->lock);
    /* The loop's own thread may have been faster. */
    if (l->heap[CLOCK_TYPE_VIRTUAL].len && l->heap[CLOCK_TYPE_VIRTUAL].t[0] == t && t->key <= key) {
        timers_run_one_locked(l, t);
    }
    qemu_mutex_unlock(&l->lock);
    return true;
}

void clock_virtual_advance_to(int64_t target_ns)
{
    unsigned at_once = 0;

    if (!clock_virtual_is_manual()) {
        return;
    }
    while (advance_one(target_ns, &at_once)) {
    }
    QEMU_LOCK_GUARD(loop_list_lock());
    if (target_ns > clock_get_ns(CLOCK_TYPE_VIRTUAL)) {
        atomic_store(&virtual_state, pack(target_ns, false));
    }
}
