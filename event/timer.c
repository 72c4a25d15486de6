/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers: one binary heap for each loop and clock, and one timerfd for each host clock, programmed
 * with absolute times. Slots are reserved by timer_init(), so arming never allocates.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "event-internal.h"
#include "realtime/latency.h"

/* ---- Heap ---- */

static bool heap_less(const EventTimer *a, const EventTimer *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void heap_put(TimerHeap *h, uint32_t slot, EventTimer *t)
{
    h->t[slot] = t;
    t->slot = slot;
}

/* Moves t, whose place is slot, to where its key belongs. */
static void heap_settle(TimerHeap *h, uint32_t slot, EventTimer *t)
{
    while (slot && heap_less(t, h->t[(slot - 1) / 2])) {
        heap_put(h, slot, h->t[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * slot + 1;
        if (child + 1 < h->len && heap_less(h->t[child + 1], h->t[child])) {
            child++;
        }
        if (child >= h->len || !heap_less(h->t[child], t)) {
            break;
        }
        heap_put(h, slot, h->t[child]);
        slot = child;
    }
    heap_put(h, slot, t);
}

static void heap_remove(TimerHeap *h, EventTimer *t)
{
    EventTimer *last = h->t[--h->len];
    if (last != t) {
        heap_settle(h, t->slot, last);
    }
}

/* Takes t off its heap if it is armed. */
static void disarm_locked(EventTimer *t)
{
    if (atomic_load_explicit(&t->expire_ns, memory_order_relaxed) >= 0) {
        heap_remove(&t->loop->heap[t->clock], t);
        atomic_store_explicit(&t->expire_ns, -1, memory_order_relaxed);
    }
}

/* ---- Programming the host's timers ---- */

static int64_t heap_first(const TimerHeap *h)
{
    return h->len ? h->t[0]->key : INT64_MAX;
}

int64_t timers_deadline_mono_locked(EventLoop *loop)
{
    int64_t real = heap_first(&loop->heap[CLOCK_TYPE_REALTIME]);
    int64_t virt = heap_first(&loop->heap[CLOCK_TYPE_VIRTUAL]);
    if (virt != INT64_MAX) {
        virt = clock_virtual_to_monotonic(virt);
    }
    return MIN(real, virt);
}

static void timerfd_program(int fd, int flags, int64_t *armed, int64_t deadline, bool later_too)
{
    if (deadline == *armed || (deadline > *armed && !later_too)) {
        return;
    }
    struct itimerspec its = { 0 };
    if (deadline != INT64_MAX) {
        int64_t ns = MAX(deadline, 1); /* 0 would disarm */
        its.it_value.tv_sec = ns / NANOSECONDS_PER_SECOND;
        its.it_value.tv_nsec = ns % NANOSECONDS_PER_SECOND;
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME | flags, &its, NULL);
    *armed = deadline;
}

void timers_arm_locked(EventLoop *loop, bool later_too)
{
    timerfd_program(loop->tfd_mono, 0, &loop->armed_mono, timers_deadline_mono_locked(loop),
                    later_too);
    timerfd_program(loop->tfd_real, TFD_TIMER_CANCEL_ON_SET, &loop->armed_real,
                    heap_first(&loop->heap[CLOCK_TYPE_HOST]), later_too);
}

void timers_woken(EventLoop *loop, bool real_fired)
{
    QEMU_LOCK_GUARD(&loop->lock);
    if (loop->armed_mono <= clock_get_ns(CLOCK_TYPE_REALTIME)) {
        loop->armed_mono = INT64_MAX;
    }
    if (real_fired) {
        /* Expired, or ECANCELED as somebody set the clock: program it anew in both cases. */
        uint64_t count;
        ssize_t r QEMU_UNUSED = read(loop->tfd_real, &count, sizeof(count));
        loop->armed_real = INT64_MAX;
    }
}

/* ---- Running ---- */

/*
 * Not of CLOCK_TYPE_HOST, which jumps, of virtual time that is set by hand, nor of a timer that was
 * armed with 0 for "now".
 */
static void note_lateness(ClockType clock, int64_t due)
{
    if (clock != CLOCK_TYPE_HOST && due > 0 && latency_self &&
        !(clock == CLOCK_TYPE_VIRTUAL && clock_virtual_is_manual())) {
        latency_timer(clock_get_ns(clock) - due);
    }
}

void timers_run_one_locked(EventLoop *loop, EventTimer *t)
{
    RunningTimer self = { .timer = t, .thread = loop_thread_id(), .next = loop->running };
    void (*fn)(void *) = t->fn;
    void *opaque = t->opaque;

    int64_t due = atomic_load_explicit(&t->expire_ns, memory_order_relaxed);
    ClockType clock = t->clock;

    disarm_locked(t);
    loop->running = &self;
    qemu_mutex_unlock(&loop->lock);
    note_lateness(clock, due);
    fn(opaque); /* may free t */
    qemu_mutex_lock(&loop->lock);
    RunningTimer **p = &loop->running;
    while (*p != &self) {
        p = &(*p)->next;
    }
    *p = self.next;
    loop_progress(loop);
}

/*
 * The next timer of a clock that was due when the phase began. Timers armed since have a key after
 * entry[] (timer_mod), except on a manual clock, whose time stands: there the sequence tells.
 */
static EventTimer *next_due_locked(EventLoop *loop, unsigned c)
{
    TimerHeap *h = &loop->heap[c];
    if (!h->len || h->t[0]->key > loop->entry[c] || h->t[0]->seq > loop->entry_seq) {
        return NULL;
    }
    /* A handler may have stopped the machine. */
    return h->t[0]->key <= clock_due_limit(c) ? h->t[0] : NULL;
}

bool timers_run(EventLoop *loop) NO_TSA;
bool timers_run(EventLoop *loop)
{
    bool ran = false;
    EventTimer *t;

    qemu_mutex_lock(&loop->lock);
    bool outer = loop->in_timers;
    for (unsigned c = 0; c < CLOCK_TYPE_COUNT; c++) {
        loop->entry[c] = loop->heap[c].len ? clock_due_limit(c) : INT64_MIN;
    }
    loop->entry_seq = atomic_load(&timer_seq);
    loop->in_timers = true;
    for (unsigned c = 0; c < CLOCK_TYPE_COUNT; c++) {
        while ((t = next_due_locked(loop, c))) {
            timers_run_one_locked(loop, t);
            ran = true;
        }
    }
    loop->in_timers = outer;
    qemu_mutex_unlock(&loop->lock);
    return ran;
}

/* ---- Interface ---- */

void timer_init(EventTimer *t, EventLoop *loop, ClockType clock, void (*fn)(void *opaque),
                void *opaque)
{
    TimerHeap *h = &loop->heap[clock];

    t->loop = loop;
    t->clock = clock;
    t->fn = fn;
    t->opaque = opaque;
    t->key = 0;
    t->seq = 0;
    t->slot = 0;
    t->reserved = true;
    atomic_init(&t->expire_ns, -1);

    qemu_mutex_lock(&loop->lock);
    h->reserved++;
    while (h->reserved > h->capacity) {
        /* Grow without the lock: nobody who arms a timer waits for the allocator. */
        uint32_t capacity = MAX(16u, h->reserved * 2);
        qemu_mutex_unlock(&loop->lock);
        EventTimer **bigger = calloc(capacity, sizeof(*bigger));
        if (!bigger) {
            abort();
        }
        qemu_mutex_lock(&loop->lock);
        EventTimer **unused = bigger;
        if (capacity > h->capacity) {
            unused = h->t;
            if (h->len) {
                memcpy(bigger, h->t, h->len * sizeof(*bigger));
            }
            h->t = bigger;
            h->capacity = capacity;
        }
        qemu_mutex_unlock(&loop->lock);
        free(unused);
        qemu_mutex_lock(&loop->lock);
    }
    qemu_mutex_unlock(&loop->lock);
}

static bool runs_elsewhere_locked(const EventTimer *t)
{
    for (const RunningTimer *r = t->loop->running; r; r = r->next) {
        if (r->timer == t && r->thread != loop_thread_id()) {
            return true;
        }
    }
    return false;
}

void timer_fini(EventTimer *t)
{
    EventLoop *loop = t->loop;
    if (!t->reserved) {
        return;
    }
    qemu_mutex_lock(&loop->lock);
    disarm_locked(t);
    while (runs_elsewhere_locked(t)) {
        uint32_t seen = atomic_load(&loop->progress);
        qemu_mutex_unlock(&loop->lock);
        loop_wait_progress(loop, seen);
        qemu_mutex_lock(&loop->lock);
        disarm_locked(t); /* its fn may have armed it again */
    }
    loop->heap[t->clock].reserved--;
    t->reserved = false;
    qemu_mutex_unlock(&loop->lock);
}

void timer_mod(EventTimer *t, int64_t expire_ns)
{
    EventLoop *loop = t->loop;
    TimerHeap *h = &loop->heap[t->clock];
    int64_t expire = MAX(expire_ns, 0);
    bool manual = t->clock == CLOCK_TYPE_VIRTUAL && clock_virtual_is_manual();

    QEMU_LOCK_GUARD(&loop->lock);
    bool armed = atomic_load_explicit(&t->expire_ns, memory_order_relaxed) >= 0;
    atomic_store_explicit(&t->expire_ns, expire, memory_order_relaxed);
    t->seq = atomic_fetch_add_explicit(&timer_seq, 1, memory_order_relaxed) + 1;
    t->key = expire;
    if (loop->in_timers && !manual && expire <= loop->entry[t->clock]) {
        t->key = loop->entry[t->clock] + 1; /* not in this iteration any more */
    }
    heap_settle(h, armed ? t->slot : h->len++, t);
    if (h->t[0] == t && t->clock == CLOCK_TYPE_VIRTUAL) {
        clock_virtual_earlier();
    }
    /* The loop's own thread programs the timerfd before it sleeps. */
    if (h->t[0] == t && !event_loop_is_self(loop)) {
        timers_arm_locked(loop, false);
    }
}

void timer_del(EventTimer *t)
{
    if (!t->reserved) {
        return;
    }
    QEMU_LOCK_GUARD(&t->loop->lock);
    disarm_locked(t); /* the timerfd is left alone: at worst one wake-up for nothing */
}

bool timer_pending(const EventTimer *t)
{
    return timer_expire_ns(t) >= 0;
}

int64_t timer_expire_ns(const EventTimer *t)
{
    return atomic_load_explicit(&t->expire_ns, memory_order_relaxed);
}
