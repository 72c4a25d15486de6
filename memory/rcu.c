/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read side and reclaim of the published maps: liburcu's membarrier flavour. A read lock there is
 * a store to a thread-local counter and no fence, so it is wait-free and free of charge for vCPUs;
 * the writer's side pays with membarrier(2). Old maps are freed by a HELPER thread of ours, so
 * that no thread of liburcu's with an inherited policy exists.
 */
#ifdef __SANITIZE_THREAD__
/* liburcu is not instrumented: tell the sanitizer what a grace period orders. */
#include <sanitizer/tsan_interface.h>
static char tsan_order;
#define READER_LEAVES() __tsan_release(&tsan_order)
#define GRACE_PERIOD_OVER() __tsan_acquire(&tsan_order)
#else
#define _LGPL_SOURCE /* the inline read side */
#define READER_LEAVES() ((void)0)
#define GRACE_PERIOD_OVER() ((void)0)
#endif
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <urcu.h>
#include "memory-internal.h"

/* Old maps that wait for their grace period before an editor is slowed down. */
#define BACKLOG_MAX 1024
#define BACKLOG_NAP_NS 200000

static _Atomic(Retired *) retired;
static _Atomic uint32_t backlog;
static EventWord reclaim_event;
static QemuThread reclaim_thread;
static pthread_key_t reader_key;

static __thread bool registered;

/* ---- Readers ---- */

static void reader_exit(void *unused)
{
    memory_thread_unregister();
}

void memory_thread_register(void)
{
    if (!registered) {
        registered = true;
        rcu_register_thread();
        pthread_setspecific(reader_key, &registered); /* runs reader_exit() when the thread ends */
    }
}

void memory_thread_unregister(void)
{
    if (registered) {
        rcu_unregister_thread();
        registered = false;
    }
}

void memory_read_lock(void)
{
    if (unlikely(!registered)) {
        memory_thread_register();
    }
    rcu_read_lock();
}

void memory_read_unlock(void)
{
    READER_LEAVES();
    rcu_read_unlock();
}

void memory_synchronize(void)
{
    synchronize_rcu();
    GRACE_PERIOD_OVER();
}

/* ---- Reclaim ---- */

static void *reclaim_main(void *unused)
{
    for (;;) {
        event_word_wait(&reclaim_event, INT64_MAX);
        event_word_take(&reclaim_event);
        Retired *p = atomic_exchange(&retired, NULL);
        if (!p) {
            continue;
        }
        memory_synchronize();
        uint32_t n = 0;
        while (p) {
            Retired *next = p->next;
            free(p);
            p = next;
            n++;
        }
        atomic_fetch_sub(&backlog, n);
    }
    return NULL;
}

void memory_defer_free(Retired *p)
{
    Retired *head = atomic_load_explicit(&retired, memory_order_relaxed);

    do {
        p->next = head;
    } while (!atomic_compare_exchange_weak(&retired, &head, p));
    atomic_fetch_add(&backlog, 1);
    event_word_set(&reclaim_event, 1);
}

void memory_throttle(void)
{
    if (unlikely(atomic_load(&backlog) > BACKLOG_MAX)) {
        const struct timespec nap = { .tv_nsec = BACKLOG_NAP_NS };
        nanosleep(&nap, NULL);
    }
}

void memory_rcu_init(void)
{
    pthread_key_create(&reader_key, reader_exit);
    memory_thread_register();
    if (!qemu_thread_create(&reclaim_thread, "rcu", THREAD_HELPER, reclaim_main, NULL,
                            &error_fatal)) {
        abort();
    }
}
