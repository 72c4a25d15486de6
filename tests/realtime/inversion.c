/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No inversions: with everything on one host CPU, a SCHED_OTHER thread holds a lock, a SCHED_FIFO
 * thread that wants nothing but the CPU spins, and a thread of class VCPU above both waits for the
 * lock. With priority inheritance the holder runs at the waiter's priority and lets go; without, it
 * does not run before the spinner ends. Tried with a lock of each rank and with the thread registry.
 *
 *     inversion [--expect-inversion]
 *
 * The spinner ends by itself after SPIN_MS. That, and a pause between two locks, keep the realtime
 * threads below the host's limit on them (950 ms of each second by default; on Linux 6.12 and later
 * the deadline server, 50 ms of each second, comes in after about as long), so that neither can help
 * a holder that inheritance does not. --expect-inversion is for the build whose mutexes do not
 * inherit (meson -Dpi=false, or the object inversion-no-pi is linked with): there each lock must show
 * the inversion. Output: TAP.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "qemu/thread.h"

#define EVENT_PRIORITY   50 /* vCPUs: 49 */
#define SPINNER_PRIORITY 30
#define SPIN_MS          350
#define HOLD_US          2000 /* CPU time the holder needs before it lets go */
#define BOUND_MS         120  /* a shared machine may keep the CPU itself away for a while */
#define PAUSE_MS         500

static bool expect_inversion;

static int64_t now_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

static void sleep_ms(int64_t ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&ts, &ts) < 0 && errno == EINTR) {
    }
}

/* What is held: one of the two. */
typedef struct Subject {
    const char *name;
    QemuMutex *mutex; /* NULL: the thread registry */
} Subject;

static const Subject *subject;
static EventWord held, spinning;
static atomic_bool got_it, spin_ended;
static int64_t waited_ns;

/* Computes for HOLD_US of its own CPU time: less than the spinner is there for. */
static void compute(void)
{
    int64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + HOLD_US * 1000;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

static void hold(void)
{
    event_word_set(&held, 1);
    event_word_wait(&spinning, INT64_MAX);
    compute();
}

static void registry_visit(const QemuThread *t, void *opaque)
{
    void (**fn)(void) = opaque;

    if (*fn) {
        (*fn)();
        *fn = NULL;
    }
}

/* Takes the lock, calls fn under it (NULL: nothing), and lets go. */
static void under_lock(void (*fn)(void))
{
    if (subject->mutex) {
        QEMU_LOCK_GUARD(subject->mutex);
        if (fn) {
            fn();
        }
    } else {
        qemu_thread_foreach(registry_visit, &fn);
    }
}

static void *holder_fn(void *arg)
{
    under_lock(hold);
    return NULL;
}

/* Not a thread of ours: nothing in this program knows of it. */
static void *spinner_fn(void *arg)
{
    int64_t end = now_ns(CLOCK_MONOTONIC) + SPIN_MS * INT64_C(1000000);

    while (!atomic_load(&got_it) && now_ns(CLOCK_MONOTONIC) < end) {
    }
    atomic_store(&spin_ended, true);
    return NULL;
}

static bool start_spinner(pthread_t *t)
{
    struct sched_param sp = { .sched_priority = SPINNER_PRIORITY };
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &sp);
    int err = pthread_create(t, &attr, spinner_fn, NULL);
    pthread_attr_destroy(&attr);
    return err == 0;
}

static void *vcpu_fn(void *arg)
{
    int64_t start = now_ns(CLOCK_MONOTONIC);
    pthread_t spinner;

    /* It preempts nobody: this thread is above it, and it runs when this one waits below. */
    if (!start_spinner(&spinner)) {
        waited_ns = -1;
        event_word_set(&spinning, 1);
        return NULL;
    }
    event_word_set(&spinning, 1);
    under_lock(NULL);
    waited_ns = now_ns(CLOCK_MONOTONIC) - start;
    atomic_store(&got_it, true);
    pthread_join(spinner, NULL);
    return NULL;
}

/* True: as it is expected. */
static bool try_subject(const Subject *s, unsigned n)
{
    QemuThread holder, vcpu;

    subject = s;
    atomic_store(&held.value, 0);
    atomic_store(&spinning.value, 0);
    atomic_store(&got_it, false);
    atomic_store(&spin_ended, false);
    sleep_ms(PAUSE_MS);
    if (!qemu_thread_create(&holder, "holder", THREAD_HELPER, holder_fn, NULL, &error_abort)) {
        return false;
    }
    event_word_wait(&held, INT64_MAX);
    if (!s->mutex) {
        /* Making a thread takes the registry's lock; so this one becomes the vCPU itself. */
        vcpu_fn(NULL);
    } else if (qemu_thread_create(&vcpu, "CPU 0/test", THREAD_VCPU, vcpu_fn, NULL, &error_abort)) {
        qemu_thread_join(&vcpu);
    }
    qemu_thread_join(&holder);

    int64_t ms = waited_ns / 1000000;
    bool ok = expect_inversion ? ms >= SPIN_MS * 9 / 10 : waited_ns >= 0 && ms < BOUND_MS;
    printf("%sok %u %s # waited %.3f ms, %s\n", ok ? "" : "not ", n, s->name,
           (double)waited_ns / 1e6,
           expect_inversion ? "the spinner takes 350 ms" : "bound 120 ms");
    fflush(stdout);
    return ok;
}

#define R(name, num, what) { #name, NULL },
static Subject subjects[] = { LOCK_RANK_TABLE(R) { "thread registry", NULL } };
#undef R
#define R(name, num, what) LOCK_RANK_##name,
static const LockRank ranks[] = { LOCK_RANK_TABLE(R) };
#undef R
static QemuMutex mutexes[ARRAY_SIZE(ranks)];

static bool stay_on_one_cpu(void)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all) < 0) {
        return false;
    }
    for (int i = CPU_SETSIZE - 1; i >= 0; i--) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    }
    return sched_setaffinity(0, sizeof(one), &one) == 0;
}

int main(int argc, char **argv)
{
    QemuThread self;
    bool ok = true;

    expect_inversion = argc > 1 && strcmp(argv[1], "--expect-inversion") == 0;
    if (qemu_thread_try_policy(SCHED_FIFO, EVENT_PRIORITY) != 0) {
        printf("1..0 # SKIP no SCHED_FIFO on this host\n");
        return 0;
    }
    if (!stay_on_one_cpu()) {
        printf("Bail out! cannot stay on one CPU\n");
        return 1;
    }
    qemu_init_realtime(SCHED_FIFO, EVENT_PRIORITY);
    printf("1..%zu\n", ARRAY_SIZE(subjects));
    for (unsigned i = 0; i < ARRAY_SIZE(ranks); i++) {
        qemu_mutex_init(&mutexes[i], ranks[i], subjects[i].name);
        subjects[i].mutex = &mutexes[i];
    }
    /* An EVENT thread, as the one that makes vCPUs is; the last case makes it wait itself. */
    if (!qemu_thread_adopt_self(&self, "main", THREAD_EVENT, &error_fatal)) {
        return 1;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(subjects); i++) {
        ok &= try_subject(&subjects[i], i + 1);
    }
    return !ok;
}
