/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpus.c: when a vCPU's thread runs guest code and when not. An accelerator that only counts. */
#include <glib.h>
#include "accel/accel.h"
#include "cpus.h"
#include "memory/memory.h"
#include "target/i386/cpu.h"
#include "target/i386/cpuid.h"

static _Atomic unsigned runs;
static atomic_bool hold_next;

static bool fake_vcpu_init(CPUState *cpu, Error **errp)
{
    return true;
}

static void fake_hook(CPUState *cpu)
{
}

static ExitReason fake_run(CPUState *cpu)
{
    atomic_fetch_add(&runs, 1);
    if (atomic_exchange(&hold_next, false)) {
        cpu_hold_self();
    }
    event_word_wait(&cpu->event, INT64_MAX);
    event_word_take(&cpu->event);
    return EXIT_REQUEST;
}

static const AccelOps fake_ops = {
    .name = "fake", .thread_name = "FAKE", .vcpu_init = fake_vcpu_init, .vcpu_fini = fake_hook,
    .vcpu_run = fake_run, .vcpu_kick = fake_hook, .vcpu_reset = fake_hook, .regs_get = fake_hook,
    .regs_put = fake_hook,
};

static void wait_for_runs(unsigned n)
{
    for (unsigned k = 0; atomic_load(&runs) < n; k++) {
        g_assert_cmpuint(k, <, 20000);
        g_usleep(1000);
    }
}

/* After a request to hold, nothing runs until somebody pauses and resumes. */
static void test_hold(void)
{
    unsigned n = atomic_load(&runs);

    atomic_store(&hold_next, true);
    cpus_resume_all();
    wait_for_runs(n + 1);
    g_usleep(20000);
    g_assert_cmpuint(atomic_load(&runs), ==, n + 1);
    cpus_pause_all();
    g_assert_cmpuint(atomic_load(&runs), ==, n + 1);
    cpus_resume_all();
    wait_for_runs(n + 2);
    cpus_pause_all();
}

/* A vCPU that is parked runs nothing more when its thread is ended. Last. */
static void test_quit(void)
{
    unsigned n;

    cpus_pause_all();
    n = atomic_load(&runs);
    cpus_quit();
    g_assert_cmpuint(atomic_load(&runs), ==, n);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    memory_init();
    current_accel = &fake_ops;
    x86_cpu_set_backend(&x86_tcg_backend);
    x86_cpu_set_model("max", &error_abort);
    cpus_create(1, &error_abort);
    cpus_start_threads(&error_abort);
    cpus_pause_all();
    g_test_add_func("/cpus/hold", test_hold);
    g_test_add_func("/cpus/quit", test_quit);
    return g_test_run();
}
