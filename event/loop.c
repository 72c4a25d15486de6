/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: epoll, a wake-up eventfd, a stack of posted work. docs/devel/events.md explains
 * the protocols; timers are in timer.c.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "event-internal.h"
#include "realtime/latency.h"

EventLoop *loop_list;

static QemuMutex list_lock;
static _Atomic(EventLoop *) main_loop, control_loop;

/* An address that is different in each thread, cheaper to get than a thread id. */
const void *loop_thread_id(void)
{
    static __thread char id;
    return &id;
}

static void list_lock_init(void)
{
    qemu_mutex_init(&list_lock, LOCK_RANK_CLOCK, "event-loops");
}

QemuMutex *loop_list_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_lock_init);
    return &list_lock;
}

/* ---- Waking and waiting ---- */

/*
 * wake_state: bit 0 says that wakefd was written since the loop last looked, the rest counts its
 * looks. So a producer relies on another one's write only after that was done: one that is held off
 * before its own holds up nobody else.
 */
void loop_wake(EventLoop *loop)
{
    uint32_t state = atomic_load(&loop->wake_state);

    if (!(state & 1)) {
        int saved = errno; /* may run in a signal handler */
        uint64_t one = 1;
        ssize_t r;
        do {
            r = write(loop->wakefd, &one, sizeof(one));
        } while (r < 0 && errno == EINTR);
        errno = saved;
        atomic_compare_exchange_strong(&loop->wake_state, &state, state | 1);
    }
}

/* The loop's thread, before it looks at what was posted. */
static void loop_wake_noticed(EventLoop *loop)
{
    atomic_store(&loop->wake_state, (atomic_load(&loop->wake_state) | 1) + 1);
}

void loop_progress(EventLoop *loop)
{
    atomic_fetch_add(&loop->progress, 1);
    if (unlikely(atomic_load(&loop->waiters))) {
        syscall(SYS_futex, &loop->progress, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    }
}

void loop_wait_progress(EventLoop *loop, uint32_t seen)
{
    atomic_fetch_add(&loop->waiters, 1);
    if (atomic_load(&loop->progress) == seen) {
        syscall(SYS_futex, &loop->progress, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    atomic_fetch_sub(&loop->waiters, 1);
}

bool event_loop_is_self(const EventLoop *loop)
{
    return atomic_load_explicit(&loop->owner, memory_order_relaxed) == loop_thread_id();
}

bool event_loop_is_running(const EventLoop *loop)
{
    return atomic_load(&loop->owner) != NULL;
}

/* ---- Life ---- */

static bool loop_watch(EventLoop *loop, int fd, void *tag, uint32_t events)
{
    struct epoll_event ev = { .events = events, .data.ptr = tag };
    return epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void loop_close(EventLoop *loop)
{
    const int fds[] = { loop->epfd, loop->wakefd, loop->tfd_mono, loop->tfd_real };
    for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

EventLoop *event_loop_new(const char *name, Error **errp)
{
    EventLoop *loop = calloc(1, sizeof(*loop));
    if (!loop) {
        error_setg(errp, "Event loop '%s': out of memory", name);
        return NULL;
    }
    strncpy(loop->name, name, sizeof(loop->name) - 1);
    loop->armed_mono = loop->armed_real = INT64_MAX;
    loop->epfd = epoll_create1(EPOLL_CLOEXEC);
    loop->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->tfd_mono = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->tfd_real = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->epfd < 0 || loop->wakefd < 0 || loop->tfd_mono < 0 || loop->tfd_real < 0 ||
        !loop_watch(loop, loop->wakefd, &loop->wakefd, EPOLLIN | EPOLLET) ||
        !loop_watch(loop, loop->tfd_mono, &loop->tfd_mono, EPOLLIN | EPOLLET) ||
        !loop_watch(loop, loop->tfd_real, &loop->tfd_real, EPOLLIN)) {
        error_setg_errno(errp, errno, "Event loop '%s': cannot create its file descriptors", name);
        loop_close(loop);
        free(loop);
        return NULL;
    }
    qemu_mutex_init(&loop->lock, LOCK_RANK_LOOP, "event-loop");
    QEMU_LOCK_GUARD(loop_list_lock());
    loop->next = loop_list;
    loop_list = loop;
    return loop;
}

void event_loop_free(EventLoop *loop)
{
    if (!loop) {
        return;
    }
    qemu_mutex_lock(loop_list_lock());
    for (EventLoop **p = &loop_list; *p; p = &(*p)->next) {
        if (*p == loop) {
            *p = loop->next;
            break;
        }
    }
    qemu_mutex_unlock(loop_list_lock());
    EventLoop *self = loop;
    atomic_compare_exchange_strong(&main_loop, &self, NULL);
    self = loop;
    atomic_compare_exchange_strong(&control_loop, &self, NULL);
    for (unsigned i = 0; i < CLOCK_TYPE_COUNT; i++) {
        free(loop->heap[i].t);
    }
    loop_close(loop);
    qemu_mutex_destroy(&loop->lock);
    free(loop);
}

EventLoop *event_loop_main(void)
{
    return atomic_load_explicit(&main_loop, memory_order_acquire);
}

EventLoop *event_loop_control(void)
{
    return atomic_load_explicit(&control_loop, memory_order_acquire);
}

void event_loop_set_main(EventLoop *loop)
{
    atomic_store_explicit(&main_loop, loop, memory_order_release);
}

void event_loop_set_control(EventLoop *loop)
{
    atomic_store_explicit(&control_loop, loop, memory_order_release);
}

/* ---- File descriptors ---- */

bool event_source_add(EventSource *src, EventLoop *loop, int fd, uint32_t events, EventFdFn *fn,
                      void *opaque, Error **errp)
{
    *src = (EventSource){ .loop = loop, .fd = fd, .events = events, .fn = fn, .opaque = opaque };
    if (!loop_watch(loop, fd, src, events)) {
        src->loop = NULL;
        if (errno == EPERM) {
            error_setg(errp, "File descriptor %d is a regular file or a directory and cannot be "
                       "waited for", fd);
        } else {
            error_setg_errno(errp, errno, "Cannot watch file descriptor %d", fd);
        }
        return false;
    }
    return true;
}

void event_source_modify(EventSource *src, uint32_t events)
{
    if (src->loop && src->events != events) {
        struct epoll_event ev = { .events = events, .data.ptr = src };
        src->events = events;
        epoll_ctl(src->loop->epfd, EPOLL_CTL_MOD, src->fd, &ev);
    }
}

/* Events of src that were fetched but not yet handled must not be. */
static void loop_forget(EventLoop *loop, const EventSource *src)
{
    for (EventBatch *b = loop->batch; b; b = b->outer) {
        for (int i = 0; i < b->n; i++) {
            if (b->ev[i].data.ptr == src) {
                b->ev[i].data.ptr = NULL;
            }
        }
    }
}

void event_source_remove(EventSource *src)
{
    EventLoop *loop = src->loop;
    if (!loop) {
        return;
    }
    epoll_ctl(loop->epfd, EPOLL_CTL_DEL, src->fd, NULL);
    src->loop = NULL;
    if (event_loop_is_self(loop)) {
        loop_forget(loop, src);
        return;
    }
    /* What the loop fetched before DEL is gone when its iteration of now is over. */
    uint32_t iterations = atomic_load(&loop->iterations);
    for (;;) {
        uint32_t seen = atomic_load(&loop->progress);
        if (!atomic_load(&loop->owner) || atomic_load(&loop->iterations) != iterations) {
            return;
        }
        loop_wake(loop);
        loop_wait_progress(loop, seen);
    }
}

/* ---- Posted work ---- */

void event_post_init(EventPost *p, void (*fn)(void *opaque), void *opaque)
{
    atomic_init(&p->next, NULL);
    atomic_init(&p->pending, false);
    p->fn = fn;
    p->opaque = opaque;
}

void event_post(EventLoop *loop, EventPost *p)
{
    if (atomic_exchange(&p->pending, true)) {
        return;
    }
    EventPost *head = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    do {
        atomic_store_explicit(&p->next, head, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak(&loop->posts, &head, p));
    loop_wake(loop);
}

static bool loop_run_posts(EventLoop *loop)
{
    EventPost *p = atomic_exchange(&loop->posts, NULL);
    EventPost *fifo = NULL;
    bool ran = p != NULL;

    while (p) {
        EventPost *next = atomic_load_explicit(&p->next, memory_order_relaxed);
        atomic_store_explicit(&p->next, fifo, memory_order_relaxed);
        fifo = p;
        p = next;
    }
    while (fifo) {
        p = fifo;
        fifo = atomic_load_explicit(&p->next, memory_order_relaxed);
        void (*fn)(void *) = p->fn;
        void *opaque = p->opaque;
        /* From here p may be posted again, or freed by fn. */
        atomic_store(&p->pending, false);
        fn(opaque);
    }
    return ran;
}

/* ---- Running ---- */

static int loop_wait(EventLoop *loop, struct epoll_event *ev, int64_t timeout_ns)
{
    static atomic_bool no_pwait2;

    if (timeout_ns <= 0) {
        return epoll_wait(loop->epfd, ev, EVENT_BATCH, timeout_ns < 0 ? -1 : 0);
    }
    if (!atomic_load_explicit(&no_pwait2, memory_order_relaxed)) {
        struct timespec ts = { .tv_sec = timeout_ns / NANOSECONDS_PER_SECOND,
                               .tv_nsec = timeout_ns % NANOSECONDS_PER_SECOND };
        int n = epoll_pwait2(loop->epfd, ev, EVENT_BATCH, &ts, NULL);
        if (n >= 0 || errno != ENOSYS) {
            return n;
        }
        atomic_store_explicit(&no_pwait2, true, memory_order_relaxed); /* Linux before 5.11 */
    }
    int64_t ms = DIV_ROUND_UP(timeout_ns, 1000000);
    return epoll_wait(loop->epfd, ev, EVENT_BATCH, ms > INT32_MAX ? INT32_MAX : (int)ms);
}

/* How long the iteration may sleep; programs the timerfds if it may. */
static int64_t loop_prepare(EventLoop *loop, int64_t timeout_ns)
{
    if (atomic_load(&loop->stop) || atomic_load(&loop->posts)) {
        return 0;
    }
    if (timeout_ns == 0) {
        return 0;
    }
    QEMU_LOCK_GUARD(&loop->lock);
    if (timers_deadline_mono_locked(loop) <= clock_get_ns(CLOCK_TYPE_REALTIME)) {
        return 0;
    }
    timers_arm_locked(loop, true);
    return timeout_ns;
}

static bool loop_run_sources(EventLoop *loop, EventBatch *b)
{
    bool ran = false;

    for (int i = 0; i < b->n; i++) {
        EventSource *src = b->ev[i].data.ptr;
        if (src && (void *)src != &loop->wakefd && (void *)src != &loop->tfd_mono &&
            (void *)src != &loop->tfd_real) {
            src->fn(src->opaque, b->ev[i].events);
            ran = true;
        }
    }
    return ran;
}

bool event_loop_iterate(EventLoop *loop, int64_t timeout_ns)
{
    const void *outer_owner = atomic_load_explicit(&loop->owner, memory_order_relaxed);
    EventBatch b = { .n = 0 };
    bool real_fired = false;

    atomic_store(&loop->owner, loop_thread_id());
    b.outer = loop->batch;
    loop->batch = &b;
    loop->depth++;

    int n = loop_wait(loop, b.ev, loop_prepare(loop, timeout_ns));
    uint64_t woken = loop->depth == 1 ? latency_loop_begin() : 0;
    b.n = n < 0 ? 0 : n; /* EINTR */
    loop_wake_noticed(loop);
    for (int i = 0; i < b.n; i++) {
        real_fired |= b.ev[i].data.ptr == &loop->tfd_real;
    }
    timers_woken(loop, real_fired);
    bool ran = timers_run(loop);
    ran |= loop_run_posts(loop);
    ran |= loop_run_sources(loop, &b);

    loop->batch = b.outer;
    bool outermost = --loop->depth == 0;
    if (outermost) {
        atomic_fetch_add(&loop->iterations, 1);
    }
    atomic_store(&loop->owner, outer_owner);
    if (outermost) {
        loop_progress(loop);
    }
    latency_loop_end(woken);
    return ran;
}

void event_loop_run(EventLoop *loop)
{
    const void *outer_owner = atomic_load_explicit(&loop->owner, memory_order_relaxed);

    atomic_store(&loop->owner, loop_thread_id());
    while (!atomic_exchange(&loop->stop, false)) {
        event_loop_iterate(loop, -1);
    }
    atomic_store(&loop->owner, outer_owner);
    loop_progress(loop);
}

void event_loop_stop(EventLoop *loop)
{
    atomic_store(&loop->stop, true);
    loop_wake(loop);
}
