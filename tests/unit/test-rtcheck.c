/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocation trap of the rtcheck build. */
#include "qemu/thread.h"

#include <glib.h>
#include <stdlib.h>

#ifdef CONFIG_RTCHECK
static void use(void *p)
{
    volatile char *c = p;
    *c = 1;
}

static void *allocate(void *arg)
{
    void *p = malloc(100);
    use(p);
    p = realloc(p, 10000);
    use(p);
    free(p);
    free(NULL);
    g_free(g_new(int, 4));
    rtcheck_allow_begin();
    free(malloc(5));
    rtcheck_allow_end();
    return NULL;
}

static uint64_t count_on(ThreadClass cls)
{
    QemuThread t;
    uint64_t before = rtcheck_alloc_count();
    g_assert_true(qemu_thread_create(&t, "allocator", cls, allocate, NULL, &error_abort));
    qemu_thread_join(&t);
    return rtcheck_alloc_count() - before;
}

static void test_count(void)
{
    g_assert_cmpuint(count_on(THREAD_VCPU), ==, 0); /* not armed yet */
    rtcheck_arm(false);
    g_assert_cmpuint(count_on(THREAD_VCPU), ==, 5);
    g_assert_cmpuint(count_on(THREAD_EVENT), ==, 5);
    g_assert_cmpuint(count_on(THREAD_HELPER), ==, 0);
}

static void test_trap(void)
{
    if (g_test_subprocess()) {
        rtcheck_arm(true);
        count_on(THREAD_HELPER);
        count_on(THREAD_VCPU);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*rtcheck: malloc on VCPU thread 'allocator'*");
}

static void *report(void *arg)
{
    error_report("from the wrong thread");
    return NULL;
}

static void test_context(void)
{
    if (g_test_subprocess()) {
        QemuThread t;
        rtcheck_arm(true);
        g_assert_true(
            qemu_thread_create(&t, "main loop", THREAD_EVENT, report, NULL, &error_abort));
        qemu_thread_join(&t);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*rtcheck: error_report on EVENT thread 'main loop'*");
}
#endif

static void test_allow_exists(void)
{
    rtcheck_allow_begin();
    rtcheck_allow_end();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rtcheck/allow", test_allow_exists);
#ifdef CONFIG_RTCHECK
    g_test_add_func("/rtcheck/count", test_count);
    g_test_add_func("/rtcheck/trap", test_trap);
    g_test_add_func("/rtcheck/context", test_context);
#endif
    return g_test_run();
}
