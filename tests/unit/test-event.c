/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event loops, timers and clocks: order, bounds, removal, threads. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "event/event.h"
#include "qemu/thread.h"

#define MS 1000000ll

static EventLoop *loop_new(void)
{
    EventLoop *l = event_loop_new("test", &error_abort);
    g_assert_nonnull(l);
    return l;
}

static void *run_loop(void *opaque)
{
    event_loop_run(opaque);
    return NULL;
}

static void start_loop(QemuThread *t, EventLoop *l)
{
    g_assert_true(qemu_thread_create(t, "loop", THREAD_EVENT, run_loop, l, &error_abort));
}

static void stop_loop(QemuThread *t, EventLoop *l)
{
    event_loop_stop(l);
    qemu_thread_join(t);
}

/* ---- Timers ---- */

typedef struct Shot {
    EventTimer t;
    unsigned runs;
    int64_t when;     /* of its clock, when it ran */
    int64_t rearm_by; /* not 0: arms itself this much after now */
    unsigned order;
} Shot;

static unsigned shot_order;

static void shot_fn(void *opaque)
{
    Shot *s = opaque;
    s->runs++;
    s->when = clock_get_ns(s->t.clock);
    s->order = ++shot_order;
    if (s->rearm_by) {
        timer_mod(&s->t, s->when + s->rearm_by);
    }
}

static void shot_init(Shot *s, EventLoop *l, ClockType clock)
{
    *s = (Shot){ .runs = 0 };
    timer_init(&s->t, l, clock, shot_fn, s);
}

static void test_timer_order(void)
{
    EventLoop *l = loop_new();
    Shot s[40];
    int64_t base = clock_get_ns(CLOCK_TYPE_REALTIME) - 1000;

    shot_order = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        shot_init(&s[i], l, CLOCK_TYPE_REALTIME);
    }
    /* Twenty times, two timers each: equal ones keep the order of arming. */
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        timer_mod(&s[i].t, base + (i * 7) % 20);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(s); i += 5) {
        timer_mod(&s[i].t, base + (i * 7) % 20); /* moves behind its equal */
        g_assert_cmpint(timer_expire_ns(&s[i].t), ==, base + (i * 7) % 20);
    }
    timer_del(&s[3].t);
    g_assert_false(timer_pending(&s[3].t));
    g_assert_true(event_loop_iterate(l, 0));
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        g_assert_cmpuint(s[i].runs, ==, i != 3);
        g_assert_false(timer_pending(&s[i].t));
        for (unsigned j = 0; j < i; j++) {
            unsigned ki = (i * 7) % 20, kj = (j * 7) % 20;
            if (i == 3 || j == 3) {
                continue;
            }
            if (ki != kj) {
                g_assert_true((ki < kj) == (s[i].order < s[j].order));
            } else {
                /* i = j + 20: both or none is a multiple of five. */
                g_assert_cmpuint(s[j].order, <, s[i].order);
            }
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        timer_fini(&s[i].t);
    }
    event_loop_free(l);
}

static void test_timer_wait(void)
{
    EventLoop *l = loop_new();
    const ClockType clocks[] = { CLOCK_TYPE_REALTIME, CLOCK_TYPE_HOST };

    for (unsigned i = 0; i < ARRAY_SIZE(clocks); i++) {
        Shot s;
        shot_init(&s, l, clocks[i]);
        int64_t due = clock_get_ns(clocks[i]) + 15 * MS;
        timer_mod(&s.t, due);
        while (!s.runs) {
            event_loop_iterate(l, -1);
        }
        g_assert_cmpint(s.when, >=, due);
        g_assert_cmpint(s.when, <, due + 2000 * MS);
        timer_fini(&s.t);
    }
    /* The time-out of an iteration itself. */
    int64_t t0 = clock_get_ns(CLOCK_TYPE_REALTIME);
    g_assert_false(event_loop_iterate(l, 5 * MS));
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME) - t0, >=, 5 * MS);
    event_loop_free(l);
}

/* A timer that always arms itself for a past time runs once an iteration and starves nobody. */
static void test_timer_bounded(void)
{
    EventLoop *l = loop_new();
    Shot greedy, other;

    shot_init(&greedy, l, CLOCK_TYPE_REALTIME);
    shot_init(&other, l, CLOCK_TYPE_REALTIME);
    greedy.rearm_by = -1000 * MS;
    timer_mod(&greedy.t, 0);
    for (unsigned n = 1; n < 50; n++) {
        timer_mod(&other.t, clock_get_ns(CLOCK_TYPE_REALTIME));
        g_assert_true(event_loop_iterate(l, 0));
        g_assert_cmpuint(greedy.runs, ==, n);
        g_assert_cmpuint(other.runs, ==, n);
    }
    timer_fini(&greedy.t);
    timer_fini(&other.t);
    g_assert_false(event_loop_iterate(l, 0));
    event_loop_free(l);
}

static void test_virtual_pause(void)
{
    EventLoop *l = loop_new();
    QemuThread th;
    Shot s;

    g_assert_false(clock_virtual_is_running());
    shot_init(&s, l, CLOCK_TYPE_VIRTUAL);
    int64_t v0 = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    timer_mod(&s.t, v0); /* due, but time stands */
    g_assert_cmpint(clock_virtual_to_monotonic(v0), ==, INT64_MAX);
    g_assert_false(event_loop_iterate(l, 2 * MS));
    g_assert_cmpuint(s.runs, ==, 0);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v0);
    clock_virtual_set(v0 + 1000);
    v0 += 1000;

    start_loop(&th, l);
    g_usleep(2000);
    timer_mod(&s.t, v0 + 10 * MS);
    clock_virtual_start(); /* must wake the loop that sleeps without a deadline */
    clock_virtual_start();
    while (timer_pending(&s.t)) {
        g_usleep(500);
    }
    clock_virtual_stop();
    clock_virtual_stop();
    stop_loop(&th, l);
    g_assert_cmpuint(s.runs, ==, 1);
    g_assert_cmpint(s.when, >=, v0 + 10 * MS);

    int64_t v1 = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    g_usleep(3000);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v1);
    clock_virtual_start();
    int64_t v2 = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    g_assert_cmpint(v2, >=, v1);
    g_assert_cmpint(v2, <, v1 + 3 * MS + 1000 * MS);
    int64_t m = clock_virtual_to_monotonic(v2);
    g_assert_cmpint(m, <=, clock_get_ns(CLOCK_TYPE_REALTIME));
    clock_virtual_stop();
    timer_fini(&s.t);
    event_loop_free(l);
}

/* Last of the virtual-clock tests, as manual is for good. */
static void test_virtual_manual(void)
{
    EventLoop *a = loop_new(), *b = loop_new();
    Shot s[4];

    clock_virtual_set_manual();
    clock_virtual_start();
    g_assert_false(clock_virtual_is_running());
    int64_t v = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    for (unsigned i = 0; i < 4; i++) {
        shot_init(&s[i], i & 1 ? b : a, CLOCK_TYPE_VIRTUAL);
    }
    shot_order = 0;
    timer_mod(&s[0].t, v + 300);
    timer_mod(&s[1].t, v + 100);
    s[1].rearm_by = 150; /* 100, 250, 400 */
    timer_mod(&s[2].t, v + 250);
    timer_mod(&s[3].t, v + 1000);
    g_assert_cmpint(clock_virtual_next_deadline(), ==, v + 100);
    clock_virtual_advance_to(v + 99);
    g_assert_cmpuint(shot_order, ==, 0);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v + 99);
    clock_virtual_advance_to(v + 500);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v + 500);
    g_assert_cmpuint(s[1].runs, ==, 3);
    g_assert_cmpint(s[1].when, ==, v + 400);
    g_assert_cmpint(s[2].when, ==, v + 250);
    g_assert_cmpint(s[0].when, ==, v + 300);
    g_assert_cmpuint(s[2].order, ==, 2); /* armed before s[1] was armed again for 250 */
    g_assert_cmpuint(s[0].order, ==, 4);
    g_assert_cmpuint(s[3].runs, ==, 0);
    g_assert_cmpint(clock_virtual_next_deadline(), ==, v + 550);
    timer_del(&s[1].t);
    /* Due now: the loop runs it by itself, or an advance to now does. */
    timer_mod(&s[0].t, v);
    g_assert_true(event_loop_iterate(a, 0));
    g_assert_cmpuint(s[0].runs, ==, 2);
    timer_mod(&s[0].t, v + 500);
    clock_virtual_advance_to(0);
    g_assert_cmpuint(s[0].runs, ==, 3);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v + 500);
    /* A timer that never lets time pass ends the advance, not the process. */
    s[0].rearm_by = -1;
    timer_mod(&s[0].t, v);
    clock_virtual_advance_to(v + 600);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, v + 600);
    for (unsigned i = 0; i < 4; i++) {
        timer_fini(&s[i].t);
    }
    g_assert_cmpint(clock_virtual_next_deadline(), ==, INT64_MAX);
    event_loop_free(a);
    event_loop_free(b);
}

static unsigned earlier_calls;

static void count_earlier(void)
{
    earlier_calls++;
}

/* A clock that a vCPU drives: a loop runs none of its timers, due or not; the driver is told of a
 * timer that moved to the front. */
static void test_virtual_counted(void)
{
    EventLoop *l = loop_new();
    Shot s[2];
    int64_t v;

    clock_virtual_set_counted(false, count_earlier);
    g_assert_true(clock_virtual_is_counted() && clock_virtual_is_manual());
    v = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    for (unsigned i = 0; i < 2; i++) {
        shot_init(&s[i], l, CLOCK_TYPE_VIRTUAL);
    }
    earlier_calls = 0;
    timer_mod(&s[0].t, v);
    g_assert_cmpuint(earlier_calls, ==, 1);
    timer_mod(&s[1].t, v + 10);
    g_assert_cmpuint(earlier_calls, ==, 1);
    g_assert_cmpint(clock_virtual_to_monotonic(v), ==, INT64_MAX);
    for (unsigned i = 0; i < 3; i++) {
        event_loop_iterate(l, 1000000);
    }
    g_assert_cmpuint(s[0].runs, ==, 0);
    clock_virtual_advance_to(v + 9);
    g_assert_cmpuint(s[0].runs, ==, 1);
    g_assert_cmpuint(s[1].runs, ==, 0);
    clock_virtual_advance_to(v + 10);
    g_assert_cmpuint(s[1].runs, ==, 1);
    for (unsigned i = 0; i < 2; i++) {
        timer_fini(&s[i].t);
    }
    event_loop_free(l);
}

/* ---- Several threads arm and disarm the timers of one loop ---- */

#define STRESS_TIMERS  64
#define STRESS_THREADS 4
#define STRESS_ROUNDS  20000

typedef struct Stress {
    EventLoop *loop;
    struct StressTimer {
        EventTimer t;
        atomic_uint runs;
        atomic_uint early;
        _Atomic int64_t want;
    } timers[STRESS_TIMERS];
    atomic_uint next;
} Stress;

static void stress_timer_fn(void *opaque)
{
    struct StressTimer *s = opaque;
    atomic_fetch_add(&s->runs, 1);
}

static void *stress_thread(void *opaque)
{
    Stress *st = opaque;
    unsigned id = atomic_fetch_add(&st->next, 1);
    GRand *r = g_rand_new_with_seed(id);

    for (unsigned i = 0; i < STRESS_ROUNDS; i++) {
        struct StressTimer *s = &st->timers[g_rand_int_range(r, 0, STRESS_TIMERS)];
        if (g_rand_int_range(r, 0, 4) == 0) {
            timer_del(&s->t);
        } else {
            int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME);
            timer_mod(&s->t, now + g_rand_int_range(r, -1000, 200000));
        }
    }
    g_rand_free(r);
    return NULL;
}

static void test_timer_stress(void)
{
    static Stress st;
    QemuThread th, w[STRESS_THREADS];

    st.loop = loop_new();
    for (unsigned i = 0; i < STRESS_TIMERS; i++) {
        timer_init(&st.timers[i].t, st.loop, CLOCK_TYPE_REALTIME, stress_timer_fn, &st.timers[i]);
    }
    start_loop(&th, st.loop);
    for (unsigned i = 0; i < STRESS_THREADS; i++) {
        g_assert_true(qemu_thread_create(&w[i], "stress", THREAD_VCPU, stress_thread, &st,
                                         &error_abort));
    }
    for (unsigned i = 0; i < STRESS_THREADS; i++) {
        qemu_thread_join(&w[i]);
    }
    /* Nothing is lost: whatever is armed now runs, and runs once. */
    int64_t limit = clock_get_ns(CLOCK_TYPE_REALTIME) + 5000 * MS;
    for (unsigned i = 0; i < STRESS_TIMERS; i++) {
        while (timer_pending(&st.timers[i].t)) {
            g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), <, limit);
            g_usleep(200);
        }
    }
    unsigned before[STRESS_TIMERS];
    for (unsigned i = 0; i < STRESS_TIMERS; i++) {
        timer_mod(&st.timers[i].t, clock_get_ns(CLOCK_TYPE_REALTIME) + 20 * MS);
        before[i] = atomic_load(&st.timers[i].runs);
    }
    g_usleep(5000);
    for (unsigned i = 0; i < STRESS_TIMERS; i++) {
        timer_mod(&st.timers[i].t, 0); /* earlier: the loop must be woken anew */
    }
    for (unsigned i = 0; i < STRESS_TIMERS; i++) {
        while (atomic_load(&st.timers[i].runs) == before[i]) {
            g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), <, limit);
            g_usleep(200);
        }
        timer_fini(&st.timers[i].t);
        g_assert_cmpuint(atomic_load(&st.timers[i].runs), ==, before[i] + 1);
    }
    stop_loop(&th, st.loop);
    event_loop_free(st.loop);
}

typedef struct Slow {
    EventTimer t;
    atomic_bool started, done;
} Slow;

static void slow_fn(void *opaque)
{
    Slow *s = opaque;
    atomic_store(&s->started, true);
    g_usleep(20000);
    timer_mod(&s->t, clock_get_ns(CLOCK_TYPE_REALTIME)); /* must not survive timer_fini() */
    atomic_store(&s->done, true);
}

static void fini_self_fn(void *opaque)
{
    Slow *s = opaque;
    timer_fini(&s->t);
    atomic_store(&s->done, true);
}

static void test_timer_fini_waits(void)
{
    EventLoop *l = loop_new();
    QemuThread th;
    Slow s = { .started = false };

    start_loop(&th, l);
    timer_init(&s.t, l, CLOCK_TYPE_REALTIME, slow_fn, &s);
    timer_mod(&s.t, 0);
    while (!atomic_load(&s.started)) {
        g_usleep(100);
    }
    timer_fini(&s.t);
    g_assert_true(atomic_load(&s.done));
    g_assert_false(timer_pending(&s.t));

    atomic_store(&s.done, false);
    timer_init(&s.t, l, CLOCK_TYPE_REALTIME, fini_self_fn, &s);
    timer_mod(&s.t, 0);
    while (!atomic_load(&s.done)) {
        g_usleep(100);
    }
    stop_loop(&th, l);
    event_loop_free(l);
}

/* ---- Posts ---- */

typedef struct Poster {
    EventLoop *loop;
    EventPost post;
    atomic_uint asked, seen; /* seen: what the loop's thread found asked to be */
    unsigned runs;
} Poster;

static void post_fn(void *opaque)
{
    Poster *p = opaque;
    p->runs++;
    atomic_store(&p->seen, atomic_load(&p->asked));
}

static void *post_thread(void *opaque)
{
    Poster *p = opaque;
    for (unsigned i = 0; i < 50000; i++) {
        atomic_fetch_add(&p->asked, 1);
        event_post(p->loop, &p->post);
    }
    return NULL;
}

static void test_post_stress(void)
{
    EventLoop *l = loop_new();
    QemuThread th, w[4];
    static Poster p[4];

    start_loop(&th, l);
    for (unsigned i = 0; i < 4; i++) {
        p[i].loop = l;
        event_post_init(&p[i].post, post_fn, &p[i]);
        g_assert_true(qemu_thread_create(&w[i], "post", THREAD_VCPU, post_thread, &p[i],
                                         &error_abort));
    }
    int64_t limit = clock_get_ns(CLOCK_TYPE_REALTIME) + 10000 * MS;
    for (unsigned i = 0; i < 4; i++) {
        qemu_thread_join(&w[i]);
        /* The last post is seen although posts may coalesce. */
        while (atomic_load(&p[i].seen) != 50000) {
            g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), <, limit);
            g_usleep(100);
        }
    }
    stop_loop(&th, l);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_cmpuint(p[i].runs, >=, 1);
        g_assert_cmpuint(p[i].runs, <=, 50000);
    }
    event_loop_free(l);
}

static EventLoop *signal_loop;
static EventPost signal_post;
static unsigned signal_runs;

static void signal_post_fn(void *opaque)
{
    signal_runs++;
}

static void on_signal(int sig)
{
    event_post(signal_loop, &signal_post);
}

static unsigned order_seen[3], order_n;

static void order_fn(void *opaque)
{
    order_seen[order_n++] = GPOINTER_TO_UINT(opaque);
}

static void test_post_order_and_signal(void)
{
    EventLoop *l = signal_loop = loop_new();
    EventPost p[3];

    for (unsigned i = 0; i < 3; i++) {
        event_post_init(&p[i], order_fn, GUINT_TO_POINTER(i));
    }
    for (unsigned i = 0; i < 3; i++) {
        event_post(l, &p[i]);
        event_post(l, &p[0]); /* pending already */
    }
    g_assert_true(event_loop_iterate(l, -1));
    g_assert_cmpuint(order_n, ==, 3);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpuint(order_seen[i], ==, i);
    }
    event_post_init(&signal_post, signal_post_fn, NULL);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    g_assert_true(event_loop_iterate(l, -1));
    g_assert_cmpuint(signal_runs, ==, 1);
    event_loop_free(l);
}

/* ---- Descriptors ---- */

typedef struct Fds {
    EventSource src[2];
    int p[2][2];
    unsigned calls;
    bool remove_other;
} Fds;

static void fd_fn(void *opaque, uint32_t events)
{
    Fds *f = opaque;
    g_assert_true(events & EPOLLIN);
    f->calls++;
    if (f->remove_other) {
        event_source_remove(&f->src[0]);
        event_source_remove(&f->src[1]);
    }
}

static void test_source(void)
{
    EventLoop *l = loop_new();
    Fds f = { .calls = 0 };
    Error *err = NULL;

    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(pipe(f.p[i]), ==, 0);
        g_assert_true(event_source_add(&f.src[i], l, f.p[i][0], EPOLLIN, fd_fn, &f, &error_abort));
        g_assert_cmpint(write(f.p[i][1], "x", 1), ==, 1);
    }
    EventSource twice;
    g_assert_false(event_source_add(&twice, l, f.p[0][0], EPOLLIN, fd_fn, &f, &err));
    g_assert_nonnull(err);
    error_free(err);
    err = NULL;

    g_assert_true(event_loop_iterate(l, -1));
    g_assert_cmpuint(f.calls, ==, 2);
    event_source_modify(&f.src[0], 0);
    event_loop_iterate(l, 0);
    g_assert_cmpuint(f.calls, ==, 3);
    event_source_modify(&f.src[0], EPOLLIN);
    /* Both are ready in one batch; the first handler removes both, so the second never runs. */
    f.calls = 0;
    f.remove_other = true;
    event_loop_iterate(l, -1);
    g_assert_cmpuint(f.calls, ==, 1);
    g_assert_false(event_loop_iterate(l, 0));
    event_source_remove(&f.src[0]);

    int fd = open("/proc/self/exe", O_RDONLY);
    g_assert_false(event_source_add(&twice, l, fd, EPOLLIN, fd_fn, &f, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "regular file"));
    error_free(err);
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(f.p[i][0]);
        close(f.p[i][1]);
    }
    event_loop_free(l);
}

typedef struct Remote {
    EventSource src;
    atomic_bool started, done, removed;
    atomic_uint late;
} Remote;

static void remote_fn(void *opaque, uint32_t events)
{
    Remote *r = opaque;
    if (atomic_load(&r->removed)) {
        atomic_fetch_add(&r->late, 1);
    }
    atomic_store(&r->started, true);
    g_usleep(1000);
    atomic_store(&r->done, true);
}

static void test_source_remove_remote(void)
{
    EventLoop *l = loop_new();
    QemuThread th;
    int p[2];

    g_assert_cmpint(pipe(p), ==, 0);
    g_assert_cmpint(write(p[1], "x", 1), ==, 1);
    start_loop(&th, l);
    for (unsigned i = 0; i < 100; i++) {
        Remote r = { .started = false };
        g_assert_true(event_source_add(&r.src, l, p[0], EPOLLIN, remote_fn, &r, &error_abort));
        while (!atomic_load(&r.started)) {
            g_usleep(50);
        }
        event_source_remove(&r.src);
        atomic_store(&r.removed, true);
        g_assert_true(atomic_load(&r.done));
        g_usleep(100);
        g_assert_cmpuint(atomic_load(&r.late), ==, 0);
    }
    stop_loop(&th, l);
    close(p[0]);
    close(p[1]);
    event_loop_free(l);
}

static void test_stop_and_self(void)
{
    EventLoop *l = loop_new();
    event_loop_set_main(l);
    g_assert_true(event_loop_main() == l);
    event_loop_stop(l); /* before the run: it returns at once */
    event_loop_run(l);
    g_assert_false(event_loop_is_self(l));
    event_loop_free(l);
    g_assert_null(event_loop_main());
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/event/timer/order", test_timer_order);
    g_test_add_func("/event/timer/wait", test_timer_wait);
    g_test_add_func("/event/timer/bounded", test_timer_bounded);
    g_test_add_func("/event/timer/stress", test_timer_stress);
    g_test_add_func("/event/timer/fini-waits", test_timer_fini_waits);
    g_test_add_func("/event/post/stress", test_post_stress);
    g_test_add_func("/event/post/order-and-signal", test_post_order_and_signal);
    g_test_add_func("/event/source/basic", test_source);
    g_test_add_func("/event/source/remove-remote", test_source_remove_remote);
    g_test_add_func("/event/loop/stop", test_stop_and_self);
    g_test_add_func("/event/clock/pause", test_virtual_pause);
    g_test_add_func("/event/clock/manual", test_virtual_manual);
    g_test_add_func("/event/clock/counted", test_virtual_counted);
    return g_test_run();
}
