/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accelerators there are, and which of them runs the machine. */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accel-choose.h"
#include "accel/accel.h"
#include "hw/machine.h"
#include "qemu/config.h"
#include "qemu/guest-random.h"
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
    error_report("there is no accelerator '%s'; '-accel help' lists them", name);
    exit(1);
}

void accel_check_name(const char *name)
{
    accel_find(name);
}

/* Messages about a choice begin with the option that made it. g_free() takes the value. */
static char *choice_loc_push(const AccelChoice *a, bool given)
{
    bool machine = qemu_opt_get(qemu_find_opts_singleton("machine"), "accel");
    char *text = a->opts    ? qemu_opts_text(a->opts)
                 : !given   ? g_strdup(a->name) /* as if it had been said */
                 : machine  ? g_strconcat("accel=", a->name, NULL)
                            : NULL;

    error_loc_push(a->opts || !given ? "-accel" : machine ? "-machine" : "-enable-kvm", text);
    return text;
}

/*
 * Nothing was asked for. The first that there is; a machine without a CPU needs none. tcg if there is
 * none, as it says why.
 */
static const AccelChoice *accel_default(void)
{
    static const AccelChoice tcg[] = { { .name = (char *)"tcg" }, {} };
    static const AccelChoice kvm[] = { { .name = (char *)"kvm" }, {} };
    static const AccelChoice qtest[] = { { .name = (char *)"qtest" }, {} };

    if (tcg_accel_ops.available()) {
        return tcg;
    }
    if (kvm_accel_ops.available()) {
        return kvm;
    }
    return current_machine->default_cpu ? tcg : qtest;
}

/* What was asked for, or the default; the names are known. *given: for opts_free_accels(). */
static const AccelChoice *accel_list(bool enable_kvm, AccelChoice **given)
{
    const AccelChoice *list;

    opts_parse_accels(enable_kvm, given, &error_fatal);
    list = (*given)[0].name ? *given : accel_default();
    for (const AccelChoice *a = list; a->name; a++) {
        char *text = choice_loc_push(a, list == *given);

        accel_find(a->name);
        error_loc_pop();
        g_free(text);
    }
    return list;
}

uint64_t accel_vcpu_bytes(bool enable_kvm, unsigned vcpus, const char *model)
{
    AccelChoice *given = NULL;
    uint64_t bytes = VCPU_BYTES;

    for (const AccelChoice *a = accel_list(enable_kvm, &given); a->name; a++) {
        const AccelOps *ops = accel_find(a->name);

        if (current_accel ? ops == current_accel : ops->available()) {
            bytes = ops->vcpu_bytes ? ops->vcpu_bytes(a->opts, vcpus, model) : VCPU_BYTES;
            break;
        }
    }
    opts_free_accels(given);
    return bytes;
}

/* False: it cannot be had, which was reported; the next is to be tried. */
static bool try_choice(const AccelChoice *a, bool first)
{
    Error *err = NULL;

    current_accel = accel_find(a->name);
    if (current_accel->init(a->opts, &err)) {
        if (!first) {
            warn_report("falling back to %s", a->name);
        }
        return true;
    }
    if (!a[1].name) {
        error_report_err(err);
        exit(1);
    }
    warn_report_err(err);
    return false;
}

void accel_configure_determinism(const char *seed)
{
    IcountOpts icount;
    uint64_t value = 0;

    opts_parse_icount(qemu_find_opts_singleton("icount"), &icount, &error_fatal);
    if (seed) {
        opts_parse_seed(seed, &value, &error_fatal);
    }
    if (seed || icount.enabled) {
        guest_random_fix(value);
    }
    if (icount.enabled && machine_config.smp.maxcpus > 1) {
        error_report("-icount: only one CPU can be counted, not %u; leave -smp out",
                     machine_config.smp.maxcpus);
        exit(1);
    }
    accel_icount = (AccelIcount){ .enabled = icount.enabled, .sleep = icount.sleep,
                                  .shift = icount.shift };
}

/* What other options ask of the accelerator that was chosen. */
static void check_choice(void)
{
    if (accel_cpu_pm && !accel_is(&kvm_accel_ops)) {
        error_report("-overcommit cpu-pm=on: idle instructions can be left to the guest only with "
                     "-accel kvm, not %s", current_accel->name);
        exit(1);
    }
    if (accel_icount.enabled && !accel_is(&tcg_accel_ops)) {
        error_report("-icount: instructions are counted only with -accel tcg, not %s",
                     current_accel->name);
        exit(1);
    }
}

void accel_choose(bool enable_kvm)
{
    AccelChoice *given = NULL;
    const AccelChoice *list = accel_list(enable_kvm, &given);
    bool done = false;

    for (const AccelChoice *a = list; a->name && !done; a++) {
        char *text = choice_loc_push(a, list == given);

        done = try_choice(a, a == list);
        error_loc_pop();
        g_free(text);
    }
    opts_free_accels(given);
    check_choice();
}
