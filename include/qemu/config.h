/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registry of option groups, implemented in qemu-config.c, which also defines the groups every
 * machine has. HELPER_ONLY.
 */
#ifndef QEMU_CONFIG_H
#define QEMU_CONFIG_H

#include "qemu/option.h"

/* The group called name; NULL and an error that names it. */
QemuOptsList *qemu_find_opts(const char *name, Error **errp);
/* The set without id of a group, NULL if the group was not used. The group must exist. */
QemuOpts *qemu_find_opts_singleton(const char *group);
/* Registers a group that another room defines. Start-up. */
void qemu_add_opts(QemuOptsList *list);
/* For query-command-line-options. */
void qemu_opts_lists_foreach(void (*fn)(const QemuOptsList *list, void *opaque), void *opaque);

/*
 * -readconfig: sections [group] or [group "id"], lines key = "value", comments with '#'. An error
 * names file and line.
 */
bool qemu_read_config_file(const char *path, Error **errp);

#endif
