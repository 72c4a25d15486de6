/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The help of an option's group. */
#include "qemu/option.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

void qemu_opts_print_help_about(const QemuOptsList *list, const char *prefix)
{
    static const char *const types[] = { "<str>", "<bool (on/off)>", "<num>", "<size>", "<list>" };

    if (!prefix) {
        printf("%s options:\n", list->name);
    }
    if (!prefix && list->id_help) {
        printf("  %-28s %s\n", "id=<str>", list->id_help);
    }
    for (const QemuOptDesc *d = list->desc; d && d->name; d++) {
        if (prefix && (!d->help || !g_str_has_prefix(d->help, prefix))) {
            continue;
        }
        char *lhs = g_strdup_printf("%s=%s", d->name, types[d->type]);
        if (d->help) {
            printf("  %-28s %s\n", lhs, d->help + (prefix ? strlen(prefix) : 0));
        } else {
            printf("  %s\n", lhs);
        }
        g_free(lhs);
    }
}

void qemu_opts_print_help(const QemuOptsList *list)
{
    qemu_opts_print_help_about(list, NULL);
}
