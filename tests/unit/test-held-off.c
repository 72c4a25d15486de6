/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that wakes another one is held off just before its system call, as a thread of low
 * priority may be for as long as others compute: whoever wakes the same thread next does not wait
 * for it. The system calls are held up by this program's own syscall() and write().
 */
#include <dlfcn.h>
#include <glib.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "event/event.h"
#include "qemu/thread.h"

#define MS 1000000ll

static __thread bool hold_me;
static atomic_bool held, go_on;

static void held_off(void)
{
    hold_me = false;
    atomic_store(&held, true);
    while (!atomic_load(&go_on)) {
        g_usleep(1000);
    }
}

long syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (unsigned i = 0; i < ARRAY_SIZE(a); i++) {
        a[i] = va_arg(ap, long);
    }
    va_end(ap);
    if (hold_me && number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE) {
        held_off();
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    if (hold_me) {
        held_off();
    }
    return real(fd, data, size);
}

static void release(QemuThread *t)
{
    atomic_store(&go_on, true);
    qemu_thread_join(t);
    atomic_store(&go_on, false);
    atomic_store(&held, false);
}

static void wait_true(atomic_bool *flag)
{
    int64_t limit = clock_get_ns(CLOCK_TYPE_REALTIME) + 10000 * MS;

    while (!atomic_load(flag)) {
        g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), <, limit);
        g_usleep(100);
    }
}

/* ---- Event words ---- */

static EventWord word;
static atomic_bool saw_second;

static void *word_waiter(void *arg)
{
    uint32_t seen = 0;

    while (!(seen & 4)) {
        event_word_wait(&word, INT64_MAX);
        seen |= event_word_take(&word);
        if (seen & 2) {
            atomic_store(&saw_second, true);
        }
    }
    return NULL;
}

static void *word_slow_setter(void *arg)
{
    hold_me = true;
    event_word_set(&word, 1);
    return NULL;
}

static void test_event_word(void)
{
    QemuThread waiter, slow;

    g_assert_true(qemu_thread_create(&waiter, "waiter", THREAD_VCPU, word_waiter, NULL, &error_abort));
    while (!(atomic_load(&word.value) & EVENT_WORD_WAITING)) {
        g_usleep(100);
    }
    g_usleep(100000); /* it sleeps */
    g_assert_true(qemu_thread_create(&slow, "slow", THREAD_HELPER, word_slow_setter, NULL, &error_abort));
    wait_true(&held);
    event_word_set(&word, 2);
    wait_true(&saw_second);
    release(&slow);
    event_word_set(&word, 4);
    qemu_thread_join(&waiter);
}

/* ---- Event loops ---- */

static EventLoop *loop;
static EventPost first, second;
static atomic_bool ran_second;

static void nothing(void *opaque)
{
}

static void note_second(void *opaque)
{
    atomic_store(&ran_second, true);
}

static void *run_loop(void *arg)
{
    event_loop_run(loop);
    return NULL;
}

static void *slow_poster(void *arg)
{
    hold_me = true;
    event_post(loop, &first);
    return NULL;
}

static void test_loop_wake(void)
{
    QemuThread runner, slow;

    loop = event_loop_new("held off", &error_abort);
    event_post_init(&first, nothing, NULL);
    event_post_init(&second, note_second, NULL);
    g_assert_true(qemu_thread_create(&runner, "loop", THREAD_EVENT, run_loop, NULL, &error_abort));
    while (!event_loop_is_running(loop)) {
        g_usleep(100);
    }
    g_usleep(100000); /* it sleeps */
    g_assert_true(qemu_thread_create(&slow, "slow", THREAD_HELPER, slow_poster, NULL, &error_abort));
    wait_true(&held);
    event_post(loop, &second);
    wait_true(&ran_second);
    release(&slow);
    event_loop_stop(loop);
    qemu_thread_join(&runner);
    event_loop_free(loop);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/held-off/event-word", test_event_word);
    g_test_add_func("/held-off/loop-wake", test_loop_wake);
    return g_test_run();
}
