/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accelerators there are, and which of them runs the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accel-choose.h"
#include "accel/accel.h"
#include "qemu/opts.h"
#include "qemu/thread.h"

static const AccelOps *const accels[] = { &kvm_accel_ops, &tcg_accel_ops, &qtest_accel_ops };

void accels_print_help(void)
{
    printf("Accelerators supported in QEMU binary:\n");
    for (size_t i = 0; i < ARRAY_SIZE(accels); i++) {
        printf("%s%s\n", accels[i]->name, accels[i]->available() ? "" : " (not available here)");
    }
}

/* A thread's stack, and what there is besides. */
#define VCPU_BYTES (QEMU_THREAD_STACK_SIZE + 2 * MiB)

static const AccelOps *accel_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(accels); i++) {
        if (strcmp(accels[i]->name, name) == 0) {
            return accels[i];
        }
    }
    error_report("-accel %s: no such accelerator ('-accel help' lists them)", name);
    exit(1);
}

/* What was asked for, or tcg; the names are known. *given: for opts_free_accels(). */
static const AccelChoice *accel_list(bool enable_kvm, AccelChoice **given)
{
    static const AccelChoice otherwise[] = { { .name = (char *)"tcg" }, {} };
    const AccelChoice *list;

    opts_parse_accels(enable_kvm, given, &error_fatal);
    list = (*given)[0].name ? *given : otherwise;
    for (const AccelChoice *a = list; a->name; a++) {
        accel_find(a->name);
    }
    return list;
}

uint64_t accel_vcpu_bytes(bool enable_kvm, unsigned vcpus)
{
    AccelChoice *given = NULL;
    uint64_t bytes = VCPU_BYTES;

    for (const AccelChoice *a = accel_list(enable_kvm, &given); a->name; a++) {
        const AccelOps *ops = accel_find(a->name);

        if (ops->available()) {
            bytes = ops->vcpu_bytes ? ops->vcpu_bytes(a->opts, vcpus) : VCPU_BYTES;
            break;
        }
    }
    opts_free_accels(given);
    return bytes;
}

void accel_choose(bool enable_kvm)
{
    AccelChoice *given = NULL;
    const AccelChoice *list = accel_list(enable_kvm, &given);

    for (const AccelChoice *a = list; a->name; a++) {
        const AccelOps *ops = accel_find(a->name);
        Error *err = NULL;

        current_accel = ops;
        if (ops->init(a->opts, &err)) {
            if (a != list) {
                warn_report("falling back to %s", ops->name);
            }
            opts_free_accels(given);
            if (accel_cpu_pm && !accel_is(&kvm_accel_ops)) {
                error_report("-overcommit cpu-pm=on: idle instructions can be left to the guest "
                             "only with -accel kvm, not %s", ops->name);
                exit(1);
            }
            return;
        }
        if (!a[1].name) {
            error_report_err(err);
            exit(1);
        }
        warn_report_err(err);
    }
}
