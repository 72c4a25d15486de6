/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accelerators there are, and which of them runs the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accel-choose.h"
#include "accel/accel.h"
#include "qemu/opts.h"

static const AccelOps *const accels[] = { &kvm_accel_ops, &tcg_accel_ops, &qtest_accel_ops };

void accels_print_help(void)
{
    printf("Accelerators supported in QEMU binary:\n");
    for (size_t i = 0; i < ARRAY_SIZE(accels); i++) {
        printf("%s%s\n", accels[i]->name, accels[i]->available() ? "" : " (not available here)");
    }
}

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

void accel_choose(bool enable_kvm)
{
    static const AccelChoice otherwise[] = { { .name = (char *)"tcg" }, {} };
    AccelChoice *given = NULL;
    const AccelChoice *list;

    opts_parse_accels(enable_kvm, &given, &error_fatal);
    list = given[0].name ? given : otherwise;
    for (const AccelChoice *a = list; a->name; a++) {
        accel_find(a->name);
    }
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
