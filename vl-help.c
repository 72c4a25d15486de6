/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start-up: help that is a list which another room knows. */
#include "vl.h"

#include <stdio.h>
#include <stdlib.h>
#include "accel-choose.h"
#include "chardev/char.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "qemu/log.h"
#include "qemu/user-object.h"
#include "target/i386/cpu.h"

static void print_machine(const MachineType *m, void *opaque)
{
    if (m->alias) {
        printf("%-20s %s (alias of %s)\n", m->alias, m->desc, m->name);
    }
    printf("%-20s %s%s\n", m->name, m->desc, m->is_default ? " (default)" : "");
}

static void print_device(QemuOpts *opts)
{
    const char *driver = qemu_opt_get(opts, "driver");
    const DeviceType *type = driver ? device_type_find(driver) : NULL;

    if (type) {
        device_print_type_help(type);
    } else if (!driver) {
        device_print_help();
    } else {
        error_report("there is no device '%s'; '-device help' lists them", driver);
        exit(1);
    }
}

/* False: the group prints its keys. */
static bool print_group(const CmdlineUse *use)
{
    switch (use->option->index) {
    case QEMU_OPTION_machine:
        printf("Supported machines are:\n");
        machine_foreach(print_machine, NULL);
        return true;
    case QEMU_OPTION_accel:
        accels_print_help();
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
    }
    if (done) {
        cmdline_exit_printed(0);
    }
}
