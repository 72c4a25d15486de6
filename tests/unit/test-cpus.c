/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpus.c: when a vCPU's thread runs guest code and when not. An accelerator that only counts. */
#include <glib.h>
#include <sched.h>
#include <string.h>
#include "accel/accel.h"
#include "cpus.h"
#include "memory/memory.h"
#include "target/i386/cpu.h"
#include "target/i386/cpuid.h"

static _Atomic unsigned runs;
static atomic_bool hold_next;
static atomic_bool refuse_next;
static _Atomic unsigned runs_of[4];
static _Atomic ThreadClass init_class, run_class; /* of the thread of the last one made; that ran */

static bool fake_vcpu_init(CPUState *cpu, Error **errp)
{
    init_class = qemu_thread_self_class();
    if (atomic_exchange(&refuse_next, false)) {
        error_setg(errp, "no room for CPU %u", cpu->index);
        return false;
    }
    return true;
}

static void fake_hook(CPUState *cpu)
{
}

static ExitReason fake_run(CPUState *cpu)
{
    run_class = qemu_thread_self_class();
    atomic_fetch_add(&runs_of[cpu->index], 1);
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

static void count_thread(const QemuThread *t, void *opaque)
{
    *(unsigned *)opaque += t->cls != THREAD_EVENT;
}

static unsigned threads(void)
{
    unsigned n = 0;

    qemu_thread_foreach(count_thread, &n);
    return n;
}

/* It runs if the others do. What it needs is made by a thread that is no vCPU's yet. */
static void test_plug(void)
{
    CPUState *cpu;

    cpus_resume_all();
    cpu = cpu_plug_begin(1, &error_abort);
    g_assert_cmpint(init_class, ==, THREAD_HELPER);
    g_assert_true(atomic_load(&cpu->stopped));
    g_assert_null(cpu_get(1));
    g_assert_cmpuint(cpu_count(), ==, 1);
    g_usleep(20000);
    g_assert_cmpuint(atomic_load(&runs_of[1]), ==, 0);
    cpu_plug_end(cpu);
    g_assert_true(cpu_get(1) == cpu);
    g_assert_cmpuint(cpu_count(), ==, 2);
    for (unsigned k = 0; !atomic_load(&runs_of[1]); k++) {
        g_assert_cmpuint(k, <, 20000);
        g_usleep(1000);
    }
    g_assert_cmpint(run_class, ==, THREAD_VCPU);
    cpus_pause_all();
    g_assert_true(atomic_load(&cpu->stopped));
}

/* While the others are parked it is too. */
static void test_plug_paused(void)
{
    CPUState *cpu;

    cpus_pause_all();
    cpu = cpu_plug_begin(3, &error_abort);
    cpu_plug_end(cpu);
    g_usleep(20000);
    g_assert_cmpuint(atomic_load(&runs_of[3]), ==, 0);
    g_assert_null(cpu_get(2));
    cpus_resume_all();
    for (unsigned k = 0; !atomic_load(&runs_of[3]); k++) {
        g_assert_cmpuint(k, <, 20000);
        g_usleep(1000);
    }
    cpus_pause_all();
}

/* One that goes ends its thread, and its place takes another; whoever still knows it does no harm. */
static void test_unplug(void)
{
    unsigned before = threads(), count = cpu_count();

    for (unsigned i = 0; i < 3; i++) {
        CPUState *cpu = cpu_plug_begin(2, &error_abort);
        unsigned n = atomic_load(&runs_of[2]);

        cpu_plug_end(cpu);
        cpus_resume_all();
        for (unsigned k = 0; atomic_load(&runs_of[2]) == n; k++) {
            g_assert_cmpuint(k, <, 20000);
            g_usleep(1000);
        }
        g_assert_false(cpu_unplug_begin(cpu)); /* it runs */
        g_assert_true(cpu_get(2) == cpu);
        cpu_unplug_park(cpu);
        g_assert_true(cpu_unplug_begin(cpu));
        g_assert_null(cpu_get(2));
        cpus_pause_all();
        cpus_resume_all();
        cpu_unplug_end(cpu);
        g_assert_cmpuint(threads(), ==, before);
        g_assert_cmpuint(cpu_count(), ==, count);
        cpu_request(cpu, CPU_REQ_INTERRUPT | CPU_REQ_NMI);
        cpus_pause_all();
    }
}

static void refuse_plug(const char *words)
{
    unsigned count = cpu_count(), before = threads();
    Error *err = NULL;

    g_assert_null(cpu_plug_begin(2, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), words));
    error_free(err);
    g_assert_null(cpu_get(2));
    g_assert_cmpuint(cpu_count(), ==, count);
    g_assert_cmpuint(threads(), ==, before);
}

/* Nothing is left of one that cannot be made. */
static void test_plug_refused(void)
{
    for (unsigned i = 0; i < 3; i++) {
        atomic_store(&refuse_next, true);
        refuse_plug("no room for CPU 2");
    }
}

/* Nor of one that is made, and then refused its priority. Leaves a profile that no host permits. */
static void test_plug_without_priority(void)
{
    qemu_init_realtime(SCHED_FIFO, 1000);
    for (unsigned i = 0; i < 3; i++) {
        refuse_plug("'CPU 2/FAKE': the host refused policy SCHED_FIFO, priority 999");
    }
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
    g_test_add_func("/cpus/plug", test_plug);
    g_test_add_func("/cpus/plug-paused", test_plug_paused);
    g_test_add_func("/cpus/plug-refused", test_plug_refused);
    g_test_add_func("/cpus/unplug", test_unplug);
    g_test_add_func("/cpus/plug-without-priority", test_plug_without_priority);
    g_test_add_func("/cpus/quit", test_quit);
    return g_test_run();
}
