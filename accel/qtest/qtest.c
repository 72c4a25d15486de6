/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The accelerator that runs no guest code: devices are driven from outside (monitor/qtest-server.c)
 * and virtual time is what that says. vCPU threads sleep on their event words.
 */
#include "accel/accel.h"
#include "event/event.h"

static bool qtest_available(void)
{
    return true;
}

static bool qtest_init(struct QemuOpts *opts, Error **errp)
{
    clock_virtual_set_manual();
    return true;
}

static bool qtest_vcpu_init(CPUState *cpu, Error **errp)
{
    return true;
}

static void qtest_vcpu_nothing(CPUState *cpu)
{
}

/* Interrupts stay pending in the interrupt chip; nobody takes them. After any request the loop has
 * to look at the control bits before it sleeps. */
static ExitReason qtest_vcpu_run(CPUState *cpu)
{
    atomic_store(&cpu->exit_request, 0);
    return event_word_take(&cpu->event) ? EXIT_REQUEST : EXIT_HALT;
}

static int64_t qtest_vcpu_deadline(CPUState *cpu)
{
    return INT64_MAX;
}

const AccelOps qtest_accel_ops = {
    .name = "qtest",
    .thread_name = "QTEST",
    .init = qtest_init,
    .available = qtest_available,
    .vcpu_init = qtest_vcpu_init,
    .vcpu_fini = qtest_vcpu_nothing,
    .vcpu_run = qtest_vcpu_run,
    .vcpu_kick = qtest_vcpu_nothing,
    .vcpu_reset = qtest_vcpu_nothing,
    .regs_get = qtest_vcpu_nothing,
    .regs_put = qtest_vcpu_nothing,
    .vcpu_deadline = qtest_vcpu_deadline,
};
