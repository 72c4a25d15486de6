/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes (priority inheritance seen in /proc), event words, classes of threads, the registry. */
#include "qemu/thread.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

static void sleep_ms(int ms)
{
    g_usleep(ms * 1000);
}

/* The kernel's priority of a thread (field 18 of its stat): negative is realtime, -1 - rt_priority.
 */
static int kernel_prio(pid_t tid)
{
    char path[64], text[1024] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    g_assert_nonnull(f);
    g_assert_nonnull(fgets(text, sizeof(text), f));
    fclose(f);
    char *p = strrchr(text, ')') + 2; /* field 3 */
    for (int field = 3; field < 18; field++) {
        p = strchr(p, ' ') + 1;
    }
    return (int)g_ascii_strtoll(p, NULL, 10);
}

static bool can_realtime(void)
{
    struct sched_param sp = { .sched_priority = 1 }, old = { 0 };
    if (sched_setscheduler(0, SCHED_FIFO, &sp) < 0) {
        return false;
    }
    sched_setscheduler(0, SCHED_OTHER, &old);
    return true;
}

/* ---- mutex ---- */

static QemuMutex pi_lock;
static EventWord holder_go;

static void *pi_holder(void *arg)
{
    qemu_mutex_lock(&pi_lock);
    event_word_set(arg, 1);
    event_word_wait(&holder_go, INT64_MAX);
    qemu_mutex_unlock(&pi_lock);
    event_word_take(&holder_go);
    event_word_set(arg, 2);
    event_word_wait(&holder_go, INT64_MAX);
    return NULL;
}

static void *pi_waiter(void *arg)
{
    struct sched_param sp = { .sched_priority = 7 };
    g_assert_cmpint(sched_setscheduler(0, SCHED_FIFO, &sp), ==, 0);
    qemu_mutex_lock(&pi_lock);
    qemu_mutex_unlock(&pi_lock);
    return NULL;
}

static void test_mutex_pi(void)
{
#ifndef CONFIG_PI
    g_test_skip("built without priority inheritance");
    return;
#endif
    if (!can_realtime()) {
        g_test_skip("no permission for SCHED_FIFO here");
        return;
    }
    QemuThread holder, waiter;
    EventWord ready = { 0 };
    qemu_mutex_init(&pi_lock, LOCK_RANK_LEAF, "pi test");
    g_assert_true(
        qemu_thread_create(&holder, "holder", THREAD_HELPER, pi_holder, &ready, &error_abort));
    event_word_wait(&ready, INT64_MAX);
    event_word_take(&ready);
    pid_t tid = atomic_load(&holder.tid);
    g_assert_cmpint(kernel_prio(tid), >=, 0);
    g_assert_true(
        qemu_thread_create(&waiter, "waiter", THREAD_HELPER, pi_waiter, NULL, &error_abort));
    int64_t limit = now_ns() + 3 * NANOSECONDS_PER_SECOND;
    while (kernel_prio(tid) >= 0 && now_ns() < limit) {
        sleep_ms(1);
    }
    g_assert_cmpint(kernel_prio(tid), ==, -1 - 7); /* lent by the waiter */
    event_word_set(&holder_go, 1);
    event_word_wait(&ready, INT64_MAX);
    qemu_thread_join(&waiter);
    g_assert_cmpint(kernel_prio(tid), >=, 0); /* and given back */
    event_word_set(&holder_go, 1);
    qemu_thread_join(&holder);
    event_word_take(&holder_go);
    qemu_mutex_destroy(&pi_lock);
}

static void *try_it(void *arg)
{
    bool got = qemu_mutex_trylock(arg);
    if (got) {
        qemu_mutex_unlock(arg);
    }
    return GINT_TO_POINTER(got);
}

static bool other_thread_gets(QemuMutex *m)
{
    QemuThread t;
    g_assert_true(qemu_thread_create(&t, "try", THREAD_HELPER, try_it, m, &error_abort));
    return GPOINTER_TO_INT(qemu_thread_join(&t));
}

static void test_mutex_guard(void)
{
    QemuMutex m;
    qemu_mutex_init(&m, LOCK_RANK_DEVICE, "guard test");
    {
        QEMU_LOCK_GUARD(&m);
        g_assert_false(other_thread_gets(&m));
    }
    g_assert_true(other_thread_gets(&m));
    qemu_mutex_destroy(&m);
}

/*
 * Each contended unlock hands the lock to a waiter: a change of context, and on a busy machine a
 * wait for a CPU. So the number is small.
 */
#define COUNT_LOOPS 1000
static QemuMutex count_lock;
static unsigned counter;

static void *count_up(void *arg)
{
    for (int i = 0; i < COUNT_LOOPS; i++) {
        QEMU_LOCK_GUARD(&count_lock);
        counter++;
    }
    return NULL;
}

static void test_mutex_exclusion(void)
{
    QemuThread t[4];
    qemu_mutex_init(&count_lock, LOCK_RANK_DEVICE, "count");
    for (int i = 0; i < 4; i++) {
        g_assert_true(
            qemu_thread_create(&t[i], "count", THREAD_HELPER, count_up, NULL, &error_abort));
    }
    for (int i = 0; i < 4; i++) {
        qemu_thread_join(&t[i]);
    }
    g_assert_cmpuint(counter, ==, 4 * COUNT_LOOPS);
    qemu_mutex_destroy(&count_lock);
}

#ifdef CONFIG_RTCHECK
static NO_TSA void test_rank_violation(void)
{
    if (g_test_subprocess()) {
        QemuMutex lo, hi;
        qemu_mutex_init(&lo, LOCK_RANK_DEVICE, "low");
        qemu_mutex_init(&hi, LOCK_RANK_LEAF, "high");
        qemu_mutex_lock(&hi);
        qemu_mutex_lock(&lo);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*lock order: rank 40 taken while holding 'high' (rank 99)*'low'*");
}

static NO_TSA void test_unlock_not_held(void)
{
    if (g_test_subprocess()) {
        QemuMutex m;
        qemu_mutex_init(&m, LOCK_RANK_DEVICE, "never taken");
        qemu_mutex_unlock(&m);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*does not hold*'never taken'*");
}
#endif

/* ---- event word ---- */

static void test_event_flags(void)
{
    EventWord w = { 0 };
    g_assert_cmpuint(event_word_take(&w), ==, 0);
    event_word_set(&w, 5);
    event_word_set(&w, 2);
    g_assert_true(event_word_wait(&w, 0)); /* clears nothing */
    g_assert_true(event_word_wait(&w, INT64_MAX));
    g_assert_cmpuint(event_word_take(&w), ==, 7);
    g_assert_cmpuint(atomic_load(&w.value), ==, 0);
}

static void test_event_timeout(void)
{
    EventWord w = { 0 };
    int64_t deadline = now_ns() + 20 * 1000 * 1000;
    g_assert_false(event_word_wait(&w, deadline));
    g_assert_cmpint(now_ns(), >=, deadline);
    g_assert_false(event_word_wait(&w, 0));
    g_assert_false(event_word_wait(&w, -5));
    g_assert_false(event_word_wait(&w, 1));
    g_assert_cmpuint(atomic_load(&w.value), ==, 0); /* no mark left behind */
}

static EventWord ping, pong;
#define PINGS 20000

static void *ponger(void *arg)
{
    for (int i = 0; i < PINGS; i++) {
        g_assert_true(event_word_wait(&ping, INT64_MAX));
        g_assert_cmpuint(event_word_take(&ping), ==, 1);
        event_word_set(&pong, 1);
    }
    return NULL;
}

static void test_event_pingpong(void)
{
    QemuThread t;
    g_assert_true(qemu_thread_create(&t, "pong", THREAD_HELPER, ponger, NULL, &error_abort));
    for (int i = 0; i < PINGS; i++) {
        event_word_set(&ping, 1);
        g_assert_true(event_word_wait(&pong, now_ns() + 10 * NANOSECONDS_PER_SECOND));
        g_assert_cmpuint(event_word_take(&pong), ==, 1);
    }
    qemu_thread_join(&t);
}

static EventWord many;

static void *many_setter(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        event_word_set(&many, GPOINTER_TO_UINT(arg));
    }
    event_word_set(&many, GPOINTER_TO_UINT(arg) << 8);
    return NULL;
}

static void test_event_many_setters(void)
{
    QemuThread t[4];
    uint32_t seen = 0;
    for (int i = 0; i < 4; i++) {
        g_assert_true(qemu_thread_create(&t[i], "set", THREAD_HELPER, many_setter,
                                         GUINT_TO_POINTER(1u << i), &error_abort));
    }
    while (seen != 0xf0f) {
        g_assert_true(event_word_wait(&many, now_ns() + 10 * NANOSECONDS_PER_SECOND));
        seen |= event_word_take(&many);
    }
    for (int i = 0; i < 4; i++) {
        qemu_thread_join(&t[i]);
    }
}

/* ---- classes ---- */

typedef struct Seen {
    int policy, priority, flags;
    ThreadClass cls;
    char comm[16];
    bool is_self;
    QemuThread *t;
    sigset_t blocked;
} Seen;

static void *look(void *arg)
{
    Seen *s = arg;
    struct sched_param sp;
    int p = sched_getscheduler(0);
    sched_getparam(0, &sp);
    s->policy = p & ~SCHED_RESET_ON_FORK;
    s->flags = p & SCHED_RESET_ON_FORK;
    s->priority = sp.sched_priority;
    s->cls = qemu_thread_self_class();
    s->is_self = qemu_thread_is_self(s->t);
    pthread_getname_np(pthread_self(), s->comm, sizeof(s->comm));
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    return s;
}

static Seen look_in(const char *name, ThreadClass cls)
{
    QemuThread t;
    Seen s = { .t = &t };
    g_assert_true(qemu_thread_create(&t, name, cls, look, &s, &error_abort));
    g_assert_true(qemu_thread_join(&t) == &s);
    g_assert_true(s.is_self);
    g_assert_cmpint(s.cls, ==, cls);
    return s;
}

static void test_class_normal(void)
{
    g_assert_false(qemu_realtime_is_enabled());
    Seen s = look_in("CPU 0/KVM", THREAD_VCPU);
    g_assert_cmpstr(s.comm, ==, "CPU 0/KVM");
    g_assert_cmpint(s.policy, ==, SCHED_OTHER);
    g_assert_true(sigismember(&s.blocked, SIGTERM));
    g_assert_false(sigismember(&s.blocked, SIGUSR1));
    g_assert_false(sigismember(&s.blocked, SIGSEGV));
    s = look_in("a name that is longer than 15 bytes", THREAD_EVENT);
    g_assert_cmpstr(s.comm, ==, "a name that is ");
    s = look_in("helper", THREAD_HELPER);
    g_assert_cmpint(s.policy, ==, SCHED_OTHER);
    g_assert_cmpint(s.flags, ==, SCHED_RESET_ON_FORK);
    g_assert_cmpint(qemu_thread_self_class(), ==, THREAD_HELPER);
}

/* A policy given from outside (chrt) stays on EVENT and VCPU threads, never on helpers. */
static void test_class_outside_policy(void)
{
    if (!can_realtime()) {
        g_test_skip("no permission for SCHED_FIFO here");
        return;
    }
    struct sched_param sp = { .sched_priority = 3 }, other = { 0 };
    g_assert_cmpint(sched_setscheduler(0, SCHED_FIFO, &sp), ==, 0);
    Seen vcpu = look_in("v", THREAD_VCPU), helper = look_in("h", THREAD_HELPER);
    g_assert_cmpint(sched_setscheduler(0, SCHED_OTHER, &other), ==, 0);
    g_assert_cmpint(vcpu.policy, ==, SCHED_FIFO);
    g_assert_cmpint(vcpu.priority, ==, 3);
    g_assert_cmpint(helper.policy, ==, SCHED_OTHER);
    g_assert_cmpint(helper.priority, ==, 0);
}

static void *make_others(void *arg)
{
    Seen s = look_in("helper", THREAD_HELPER);
    g_assert_cmpint(s.policy, ==, SCHED_OTHER);
    s = look_in("CPU 1/TCG", THREAD_VCPU);
    g_assert_cmpint(s.policy, ==, SCHED_FIFO);
    g_assert_cmpint(s.priority, ==, 19);
    /* Threads and children that nobody planned. */
    pthread_t raw;
    Seen lib = { 0 };
    g_assert_cmpint(pthread_create(&raw, NULL, look, &lib), ==, 0);
    pthread_join(raw, NULL);
    g_assert_cmpint(lib.policy, ==, SCHED_OTHER);
    g_assert_cmpint(lib.cls, ==, THREAD_HELPER);
    return NULL;
}

/* Looks twice: as soon as it runs, and when it is told that it has become a vCPU's thread. */
typedef struct Late {
    Seen before, after;
    EventWord looked, go;
} Late;

static void *look_twice(void *arg)
{
    Late *l = arg;

    look(&l->before);
    event_word_set(&l->looked, 1);
    event_word_wait(&l->go, INT64_MAX);
    look(&l->after);
    return NULL;
}

static void late_vcpu(int priority)
{
    QemuThread t;
    Late l = { .before.t = &t, .after.t = &t };

    g_assert_true(qemu_thread_create_vcpu_later(&t, "CPU 3/TCG", look_twice, &l, &error_abort));
    event_word_wait(&l.looked, INT64_MAX);
    g_assert_cmpint(l.before.cls, ==, THREAD_HELPER);
    g_assert_cmpint(l.before.policy, ==, SCHED_OTHER);
    g_assert_true(qemu_thread_become_vcpu(&t, 3, &error_abort));
    event_word_set(&l.go, 1);
    qemu_thread_join(&t);
    g_assert_cmpint(l.after.cls, ==, THREAD_VCPU);
    g_assert_cmpint(l.after.policy, ==, SCHED_FIFO);
    g_assert_cmpint(l.after.priority, ==, priority);
    g_assert_cmpint(l.after.flags, ==, SCHED_RESET_ON_FORK);
    g_assert_cmpstr(l.after.comm, ==, "CPU 3/TCG");
}

static void late_vcpu_refused(void)
{
    QemuThread t;
    Late l = { .before.t = &t, .after.t = &t };
    Error *err = NULL;

    g_assert_true(qemu_thread_create_vcpu_later(&t, "CPU 3/TCG", look_twice, &l, &error_abort));
    event_word_wait(&l.looked, INT64_MAX);
    g_assert_false(qemu_thread_become_vcpu(&t, 3, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "'CPU 3/TCG'"));
    g_assert_nonnull(strstr(error_get_pretty(err), "SCHED_FIFO, priority 999"));
    error_free(err);
    event_word_set(&l.go, 1);
    qemu_thread_join(&t);
    g_assert_cmpint(l.after.cls, ==, THREAD_HELPER);
    g_assert_cmpint(l.after.policy, ==, SCHED_OTHER);
}

static void run_realtime_checks(void)
{
    QemuThread t, self;
    Error *err = NULL;
    int policy, max;
    qemu_init_realtime(SCHED_FIFO, 20);
    g_assert_true(qemu_realtime_is_enabled());
    qemu_realtime_get_parameters(&policy, &max);
    g_assert_cmpint(policy, ==, SCHED_FIFO);
    g_assert_cmpint(max, ==, 20);
    Seen s = look_in("event", THREAD_EVENT);
    g_assert_cmpint(s.policy, ==, SCHED_FIFO);
    g_assert_cmpint(s.priority, ==, 20);
    s = look_in("CPU 0/TCG", THREAD_VCPU);
    g_assert_cmpint(s.priority, ==, 19);
    g_assert_true(qemu_thread_create(&t, "maker", THREAD_EVENT, make_others, NULL, &error_abort));
    qemu_thread_join(&t);
    g_assert_true(qemu_thread_adopt_self(&self, "main loop", THREAD_EVENT, &error_abort));
    look(&s);
    g_assert_cmpint(s.policy, ==, SCHED_FIFO);
    g_assert_cmpint(s.priority, ==, 20);
    g_assert_cmpint(s.cls, ==, THREAD_EVENT);
    g_assert_cmpstr(s.comm, ==, "test-thread");
    late_vcpu(19);
    /* What the host refuses is an error, and leaves no thread. */
    qemu_init_realtime(SCHED_FIFO, 1000);
    late_vcpu_refused();
    g_assert_false(qemu_thread_create(&t, "CPU 9/TCG", THREAD_VCPU, look, &s, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "CPU 9/TCG"));
    g_assert_nonnull(strstr(error_get_pretty(err), "SCHED_FIFO, priority 999"));
    error_free(err);
}

static void test_class_realtime(void)
{
    if (!can_realtime()) {
        g_test_skip("no permission for SCHED_FIFO here");
        return;
    }
    if (g_test_subprocess()) {
        run_realtime_checks();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
}

static void *faults_of_deep_call(void *arg)
{
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    volatile char frame[QEMU_THREAD_STACK_SIZE / 2];
    for (size_t i = 0; i < sizeof(frame); i += 4096) {
        frame[i] = 1;
    }
    getrusage(RUSAGE_THREAD, &after);
    return GINT_TO_POINTER(after.ru_minflt - before.ru_minflt + (frame[0] - 1));
}

static void test_stack_touched(void)
{
#ifdef QEMU_SANITIZED
    g_test_skip("a sanitizer's shadow memory faults by itself");
    return;
#endif
    if (!can_realtime()) {
        g_test_skip("no permission for SCHED_FIFO here");
        return;
    }
    if (g_test_subprocess()) {
        QemuThread t;
        qemu_init_realtime(SCHED_RR, 5);
        g_assert_true(
            qemu_thread_create(&t, "deep", THREAD_VCPU, faults_of_deep_call, NULL, &error_abort));
        g_assert_cmpint(GPOINTER_TO_INT(qemu_thread_join(&t)), <, 8);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
}

/* ---- registry and kicks ---- */

static void find_name(const QemuThread *t, void *opaque)
{
    unsigned *n = opaque;
    *n += !strcmp(t->name, "registered");
}

static unsigned count_registered(void)
{
    unsigned n = 0;
    qemu_thread_foreach(find_name, &n);
    return n;
}

static void *wait_for(void *arg)
{
    event_word_wait(arg, INT64_MAX);
    return NULL;
}

static void test_registry(void)
{
    QemuThread t[2];
    EventWord go[2] = { { 0 }, { 0 } };
    for (int i = 0; i < 2; i++) {
        g_assert_true(
            qemu_thread_create(&t[i], "registered", THREAD_HELPER, wait_for, &go[i], &error_abort));
    }
    g_assert_cmpuint(count_registered(), ==, 2);
    event_word_set(&go[0], 1);
    qemu_thread_join(&t[0]);
    g_assert_cmpuint(count_registered(), ==, 1);
    qemu_thread_kick(&t[0], SIGUSR1); /* gone: nothing happens */
    event_word_set(&go[1], 1);
    qemu_thread_join(&t[1]);
    g_assert_cmpuint(count_registered(), ==, 0);
}

static atomic_int kicked_tid;

static void on_kick(int sig)
{
    atomic_store(&kicked_tid, (int)syscall(SYS_gettid));
}

static void test_kick(void)
{
    struct sigaction sa = { .sa_handler = on_kick };
    QemuThread t;
    EventWord go = { 0 };
    sigaction(SIGUSR1, &sa, NULL);
    g_assert_true(qemu_thread_create(&t, "kicked", THREAD_VCPU, wait_for, &go, &error_abort));
    qemu_thread_kick(&t, SIGUSR1);
    int64_t limit = now_ns() + 3 * NANOSECONDS_PER_SECOND;
    while (!atomic_load(&kicked_tid) && now_ns() < limit) {
        sleep_ms(1);
    }
    g_assert_cmpint(atomic_load(&kicked_tid), ==, atomic_load(&t.tid));
    event_word_set(&go, 1); /* still waiting: a signal is no event */
    qemu_thread_join(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mutex/pi", test_mutex_pi);
    g_test_add_func("/mutex/guard", test_mutex_guard);
    g_test_add_func("/mutex/exclusion", test_mutex_exclusion);
#ifdef CONFIG_RTCHECK
    g_test_add_func("/mutex/rank-violation", test_rank_violation);
    g_test_add_func("/mutex/unlock-not-held", test_unlock_not_held);
#endif
    g_test_add_func("/event-word/flags", test_event_flags);
    g_test_add_func("/event-word/timeout", test_event_timeout);
    g_test_add_func("/event-word/pingpong", test_event_pingpong);
    g_test_add_func("/event-word/many-setters", test_event_many_setters);
    g_test_add_func("/thread/normal", test_class_normal);
    g_test_add_func("/thread/outside-policy", test_class_outside_policy);
    g_test_add_func("/thread/realtime", test_class_realtime);
    g_test_add_func("/thread/stack-touched", test_stack_touched);
    g_test_add_func("/thread/registry", test_registry);
    g_test_add_func("/thread/kick", test_kick);
    return g_test_run();
}
