/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start-up: help that is a list which another room knows. */
#include "vl.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include "accel-choose.h"
#include "chardev/char.h"
#include "cpus-plug.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "qemu/log.h"
#include "qemu/opts.h"
#include "qemu/user-object.h"
#include "target/i386/cpu.h"

static void print_machine(const MachineType *m, void *opaque)
{
    if (m->alias) {
        printf("%-20s %s (alias of %s)\n", m->alias, m->desc, m->name);
    }
    printf("%-20s %s%s\n", m->name, m->desc, m->is_default ? " (default)" : "");
}

static void print_and_free(char *text)
{
    fputs(text, stdout);
    g_free(text);
}

static void print_device(QemuOpts *opts)
{
    const char *driver = qemu_opt_get(opts, "driver");
    const DeviceType *type = driver ? device_type_find(driver) : NULL;

    if (type) {
        print_and_free(device_type_help(type));
    } else if (cpu_device_type_known(driver)) {
        print_and_free(cpu_device_help(driver));
    } else if (!driver) {
        device_print_help();
    } else {
        opts_error_no_device(driver, &error_fatal);
    }
}

static void print_machines(QemuOpts *opts)
{
    const char *type = qemu_opt_get(opts, "type");

    if (!type) {
        printf("Supported machines are:\n");
        machine_foreach(print_machine, NULL);
        return;
    }
    if (!machine_find(type)) {
        opts_error_no_machine(type, &error_fatal);
    }
    printf("Properties of every machine:\n");
    qemu_opts_print_help_about(qemu_opts_list(opts), "");
}

static void print_accel(QemuOpts *opts)
{
    const char *name = qemu_opt_get(opts, "accel");

    if (!name) {
        accels_print_help();
        return;
    }
    accel_check_name(name);
    g_autofree char *prefix = g_strconcat(name, ": ", NULL);
    printf("Properties of -accel %s:\n", name);
    qemu_opts_print_help_about(qemu_opts_list(opts), prefix);
}

/* False: the group prints its keys. */
static bool print_group(const CmdlineUse *use)
{
    switch (use->option->index) {
    case QEMU_OPTION_machine:
        print_machines(use->opts);
        return true;
    case QEMU_OPTION_accel:
        print_accel(use->opts);
        return true;
    case QEMU_OPTION_chardev:
        chardev_print_help();
        return true;
    case QEMU_OPTION_device:
        print_device(use->opts);
        return true;
    case QEMU_OPTION_object:
        user_object_print_help(qemu_opt_get(use->opts, "qom-type"));
        return true;
    default:
        return false;
    }
}

void help_for_option(const CmdlineUse *use)
{
    bool done = false;

    if (use->opts) {
        done = qemu_opts_has_help(use->opts) && print_group(use);
    } else if (use->option->index == QEMU_OPTION_cpu && is_help_option(use->arg)) {
        x86_cpu_list();
        done = true;
    } else if (use->option->index == QEMU_OPTION_d && is_help_option(use->arg)) {
        qemu_log_print_help();
        done = true;
    } else if (use->option->index == QEMU_OPTION_display && is_help_option(use->arg)) {
        printf("Available display backend types:\nnone\n");
        done = true;
    }
    if (done) {
        cmdline_exit_printed(0);
    }
}
