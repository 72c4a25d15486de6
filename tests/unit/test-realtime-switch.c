/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A switch of profiles, thread by thread: done for all, or for none. */
#include "realtime/profile.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "realtime/cpulist.h"

#define VCPUS  4
#define EVENTS 2

static QemuThread self, vcpus[VCPUS], events[EVENTS], helper;
static EventWord quit[VCPUS + EVENTS + 1];

static void *wait_fn(void *opaque)
{
    event_word_wait(opaque, INT64_MAX);
    return NULL;
}

static QemuRealtimeProfile profile(int policy, int max_priority, unsigned count)
{
    QemuRealtimeProfile p = { .name = "test", .realtime = policy != SCHED_OTHER, .policy = policy,
                              .max_priority = max_priority };

    cpu_set_first(&p.vcpus, count);
    memset(p.vcpu_cpu, 0xff, sizeof(p.vcpu_cpu));
    return p;
}

static QemuSched sched_of(const QemuThread *t)
{
    QemuSched s;

    g_assert_cmpint(qemu_thread_get_sched(atomic_load(&t->tid), &s), ==, 0);
    return s;
}

static void expect(const QemuThread *t, int policy, int priority)
{
    QemuSched s = sched_of(t);

    g_assert_cmpint(s.policy, ==, policy);
    g_assert_cmpint(s.priority, ==, priority);
}

static void expect_affinity(const QemuThread *t, const QemuCpuSet *cpus)
{
    QemuSched s = sched_of(t);

    g_assert_true(qemu_cpu_set_equal(&s.affinity, cpus));
}

/* count: of vCPUs that are realtime. */
static void expect_all(int policy, int max_priority, int count)
{
    bool rt = policy != SCHED_OTHER;

    expect(&self, policy, max_priority);
    for (int i = 0; i < EVENTS; i++) {
        expect(&events[i], policy, max_priority);
    }
    for (int i = 0; i < VCPUS; i++) {
        bool chosen = rt && i < count;
        expect(&vcpus[i], chosen ? policy : SCHED_OTHER, chosen ? max_priority - 1 : 0);
    }
    expect(&helper, SCHED_OTHER, 0);
}

static void switch_ok(const QemuRealtimeProfile *p)
{
    RealtimeRefusal why;

    if (!realtime_switch_threads(p, &why)) {
        g_error("%s", realtime_refusal_text(&why));
    }
    g_assert_true(qemu_realtime_profile() == p);
}

static void test_steps(void)
{
    static const struct {
        int policy, max_priority, count;
    } steps[] = { { SCHED_FIFO, 50, 4 }, { SCHED_RR, 50, 4 },   { SCHED_RR, 3, 4 },
                  { SCHED_FIFO, 2, 2 },  { SCHED_OTHER, 0, 4 }, { SCHED_RR, 99, 1 },
                  { SCHED_RR, 99, 4 },   { SCHED_FIFO, 98, 3 }, { SCHED_OTHER, 0, 0 } };
    QemuRealtimeProfile p[ARRAY_SIZE(steps)];

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        p[i] = profile(steps[i].policy, steps[i].max_priority, (unsigned)steps[i].count);
    }
    /* From each to each. */
    for (size_t from = 0; from < ARRAY_SIZE(steps); from++) {
        for (size_t to = 0; to < ARRAY_SIZE(steps); to++) {
            switch_ok(&p[from]);
            switch_ok(&p[to]);
            expect_all(steps[to].policy, steps[to].max_priority, steps[to].count);
        }
    }
    QemuRealtimeProfile other = profile(SCHED_OTHER, 0, VCPUS);
    static QemuRealtimeProfile kept;
    kept = other;
    switch_ok(&kept);
}

/* A made-up profile whose vCPUs would have FIFO priority 0, which the kernel refuses. */
static void test_refused_half_way(void)
{
    static QemuRealtimeProfile from[3];
    QemuRealtimeProfile bad = profile(SCHED_FIFO, 1, 4);
    RealtimeRefusal why;

    from[0] = profile(SCHED_OTHER, 0, 4);
    from[1] = profile(SCHED_FIFO, 50, 4);
    from[2] = profile(SCHED_RR, 40, 2);
    for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
        switch_ok(&from[i]);
        /* Somebody outside has touched one: that comes back too. */
        qemu_thread_set_policy(atomic_load(&vcpus[3].tid), SCHED_RR, 7);
        g_assert_false(realtime_switch_threads(&bad, &why));
        g_assert_cmpint(why.err, ==, EINVAL);
        g_assert_cmpint(why.what, ==, REFUSED_POLICY);
        g_assert_true(g_str_has_prefix(why.thread, "CPU "));
        g_assert_true(why.restored);
        g_assert_true(qemu_realtime_profile() == &from[i]);
        expect(&vcpus[3], SCHED_RR, 7);
        qemu_thread_set_policy(atomic_load(&vcpus[3].tid), i == 1 ? SCHED_FIFO : SCHED_OTHER,
                               i == 1 ? 49 : 0);
        expect_all(from[i].realtime ? from[i].policy : SCHED_OTHER, from[i].max_priority,
                   i == 2 ? 2 : 4);
        char *text = realtime_refusal_text(&why);
        g_assert_nonnull(strstr(text, "every thread has what it had before"));
        g_free(text);
    }
    switch_ok(&from[0]);
}

static void test_affinity(void)
{
    static QemuRealtimeProfile plain, pinned;
    QemuRealtimeProfile bad;
    QemuCpuSet before = sched_of(&self).affinity;
    RealtimeRefusal why;
    unsigned cpu = 0;

    while (!qemu_cpu_set_has(&before, cpu)) {
        cpu++;
    }
    plain = profile(SCHED_OTHER, 0, VCPUS);
    pinned = profile(SCHED_RR, 5, VCPUS);
    plain.affinity = pinned.affinity = pinned.event_pinned = true;
    qemu_cpu_set_add(&pinned.event_affinity, cpu);
    pinned.vcpu_cpu[1] = (int16_t)cpu;
    switch_ok(&pinned);
    expect_affinity(&self, &pinned.event_affinity);
    expect_affinity(&events[0], &pinned.event_affinity);
    expect_affinity(&vcpus[1], &pinned.event_affinity);
    expect_affinity(&vcpus[0], &before);

    bad = pinned;
    bad.policy = SCHED_FIFO;
    bad.event_affinity = before;
    bad.vcpu_cpu[2] = 1023; /* no host has it */
    g_assert_false(realtime_switch_threads(&bad, &why));
    g_assert_cmpint(why.what, ==, REFUSED_AFFINITY);
    g_assert_cmpstr(why.thread, ==, "CPU 2");
    g_assert_true(why.restored && qemu_cpu_set_has(&why.affinity, 1023));
    expect_affinity(&self, &pinned.event_affinity);
    expect_all(SCHED_RR, 5, VCPUS);
    switch_ok(&plain);
    expect_affinity(&vcpus[1], &before);
    expect_affinity(&self, &before);
}

/* A thread made later has the profile in force, and is switched with the others. */
static void test_hot_added(void)
{
    static QemuRealtimeProfile run, off;
    static EventWord go;
    QemuThread late;

    run = profile(SCHED_FIFO, 30, VCPUS + 1);
    off = profile(SCHED_OTHER, 0, VCPUS);
    switch_ok(&run);
    g_assert_true(qemu_thread_create_vcpu(&late, "CPU late", VCPUS, wait_fn, &go, &error_abort));
    expect(&late, SCHED_FIFO, 29);
    switch_ok(&off);
    expect(&late, SCHED_OTHER, 0);
    event_word_set(&go, 1);
    qemu_thread_join(&late);
    switch_ok(&run); /* it is gone, and nobody minds */
    expect_all(SCHED_FIFO, 30, VCPUS);
    switch_ok(&off);
}

/* Threads come and go while profiles are switched: each has one of the two, never something else. */
static void *switch_fn(void *opaque)
{
    static QemuRealtimeProfile a, b;
    atomic_bool *stop = opaque;
    RealtimeRefusal why;

    a = profile(SCHED_RR, 10, QEMU_VCPUS_MAX);
    b = profile(SCHED_OTHER, 0, VCPUS);
    while (!atomic_load(stop)) {
        g_assert_true(realtime_switch_threads(&a, &why));
        g_assert_true(realtime_switch_threads(&b, &why));
        usleep(200);
    }
    return NULL;
}

static void test_threads_come_and_go(void)
{
    static atomic_bool stop;
    QemuThread switcher;

    g_assert_true(qemu_thread_create(&switcher, "switcher", THREAD_EVENT, switch_fn, &stop,
                                     &error_abort));
    for (int i = 0; i < 300; i++) {
        EventWord go = { 0 };
        QemuThread t;

        g_assert_true(qemu_thread_create_vcpu(&t, "CPU late", VCPUS, wait_fn, &go, &error_abort));
        qemu_threads_hold();
        const QemuRealtimeProfile *p = qemu_realtime_profile();
        QemuSched s = sched_of(&t);
        qemu_threads_release();
        g_assert_cmpint(s.policy, ==, p->realtime ? SCHED_RR : SCHED_OTHER);
        g_assert_cmpint(s.priority, ==, p->realtime ? 9 : 0);
        event_word_set(&go, 1);
        qemu_thread_join(&t);
    }
    atomic_store(&stop, true);
    qemu_thread_join(&switcher);
    expect_all(SCHED_OTHER, 0, 0);
}

static bool permitted(void)
{
    struct sched_param sp = { .sched_priority = 99 };
    bool ok = sched_setscheduler(0, SCHED_FIFO, &sp) == 0;

    sp.sched_priority = 0;
    sched_setscheduler(0, SCHED_OTHER, &sp);
    return ok;
}

int main(int argc, char **argv)
{
    static QemuRealtimeProfile first;
    static const char *const names[] = { "CPU 0", "CPU 1", "CPU 2", "CPU 3" };

    g_test_init(&argc, &argv, NULL);
    if (!permitted()) {
        g_print("1..0 # SKIP realtime priorities are not permitted here\n");
        return 0;
    }
    first = profile(SCHED_OTHER, 0, VCPUS);
    qemu_init_realtime_profile(&first);
    g_assert_true(qemu_thread_adopt_self(&self, "main", THREAD_EVENT, &error_abort));
    for (unsigned i = 0; i < VCPUS; i++) {
        g_assert_true(qemu_thread_create_vcpu(&vcpus[i], names[i], i, wait_fn, &quit[i],
                                              &error_abort));
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        g_assert_true(qemu_thread_create(&events[i], "iothread", THREAD_EVENT, wait_fn,
                                         &quit[VCPUS + i], &error_abort));
    }
    g_assert_true(qemu_thread_create(&helper, "helper", THREAD_HELPER, wait_fn,
                                     &quit[VCPUS + EVENTS], &error_abort));
    g_test_add_func("/switch/steps", test_steps);
    g_test_add_func("/switch/refused", test_refused_half_way);
    g_test_add_func("/switch/affinity", test_affinity);
    g_test_add_func("/switch/hot-added", test_hot_added);
    g_test_add_func("/switch/come-and-go", test_threads_come_and_go);
    return g_test_run();
}
