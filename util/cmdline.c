/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk over the command line. */
#include "qemu/cmdline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu/config.h"
#include "qemu/opts.h"

static const CmdlineOption cmdline_options[] = {
#include "util/qemu-options-table.h"
};

static const char cmdline_help[] =
#include "util/qemu-options-help.h"
    ;

const CmdlineOption *cmdline_option(unsigned i)
{
    return i < ARRAY_SIZE(cmdline_options) ? &cmdline_options[i] : NULL;
}

static const CmdlineOption *find_option(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(cmdline_options); i++) {
        if (!strcmp(cmdline_options[i].name, name)) {
            return &cmdline_options[i];
        }
    }
    return NULL;
}

void cmdline_init(Cmdline *c, int argc, char **argv)
{
    *c = (Cmdline){ .argc = argc, .argv = argv, .next = 1 };
}

int cmdline_next(Cmdline *c, CmdlineUse *use, Error **errp)
{
    if (c->next >= c->argc) {
        return 0;
    }
    const char *word = c->argv[c->next++];
    if (word[0] != '-' || !word[1]) {
        error_setg(errp, "'%s' is no option; disk images on the command line are not supported yet",
                   word);
        return -1;
    }
    *use = (CmdlineUse){ .given = word };
    use->option = find_option(word + (word[1] == '-' ? 2 : 1));
    if (!use->option) {
        const char *why = opts_why_absent(word + (word[1] == '-' ? 2 : 1));

        error_setg(errp, "%s: %s", word, why ? why : "invalid option; -help lists the valid ones");
        return -1;
    }
    const char *following = c->next < c->argc ? c->argv[c->next] : NULL;
    switch (use->option->arg) {
    case CMDLINE_ARG_NONE:
        break;
    case CMDLINE_ARG_REQUIRED:
        if (!following) {
            error_setg(errp, "%s: requires an argument", word);
            return -1;
        }
        use->arg = following;
        c->next++;
        break;
    case CMDLINE_ARG_OPTIONAL:
        if (following && following[0] != '-') {
            use->arg = following;
            c->next++;
        }
        break;
    }
    return 1;
}

/* -global has a notation of its own besides driver=D,property=P,value=V: D.P=V. */
static QemuOpts *parse_global(QemuOptsList *list, const char *text, Error **errp)
{
    const char *dot = strchr(text, '.');
    const char *equal = strchr(text, '=');

    if (!dot || !equal || dot > equal || dot == text || equal == dot + 1) {
        return qemu_opts_parse(list, text, errp);
    }
    char driver[64], property[64];
    snprintf(driver, sizeof(driver), "%.*s", (int)(dot - text), text);
    snprintf(property, sizeof(property), "%.*s", (int)(equal - dot - 1), dot + 1);
    QemuOpts *opts = qemu_opts_create(list, NULL, errp);
    if (opts) {
        qemu_opt_set(opts, "driver", driver, &error_abort);
        qemu_opt_set(opts, "property", property, &error_abort);
        qemu_opt_set(opts, "value", equal + 1, &error_abort);
        qemu_opts_set_text(opts, text);
    }
    return opts;
}

static bool parse_group(CmdlineUse *use, Error **errp)
{
    const char *group = use->option->group;
    QemuOptsList *list = qemu_find_opts(group, errp);

    if (!list) {
        return false;
    }
    const char *text = use->arg ? use->arg : "";
    use->opts = !strcmp(group, "global") ? parse_global(list, text, errp)
                                         : qemu_opts_parse(list, text, errp);
    return use->opts != NULL;
}

bool cmdline_parse(int argc, char **argv,
                   bool (*fn)(const CmdlineUse *use, void *opaque, Error **errp), void *opaque,
                   void (*own_help)(const CmdlineUse *use))
{
    Cmdline c;
    CmdlineUse use;
    Error *err = NULL;
    int r;

    cmdline_init(&c, argc, argv);
    while ((r = cmdline_next(&c, &use, &err)) > 0) {
        error_loc_push(use.given, use.arg);
        bool ok = !use.option->group || parse_group(&use, &err);
        if (ok && own_help) {
            own_help(&use);
        }
        if (ok && use.opts && qemu_opts_has_help(use.opts)) {
            qemu_opts_print_help(qemu_opts_list(use.opts));
            cmdline_exit_printed(0);
        }
        ok = ok && (!fn || fn(&use, opaque, &err));
        if (!ok) {
            error_report_err(err);
        }
        error_loc_pop();
        if (!ok) {
            return false;
        }
    }
    if (r < 0) {
        error_report_err(err);
        return false;
    }
    return true;
}

void cmdline_exit_printed(int status)
{
    bool failed = ferror(stdout);

    errno = 0;
    failed = fclose(stdout) != 0 || failed;
    if (failed) {
        error_report("cannot write to standard output%s%s", errno ? ": " : "",
                     errno ? strerror(errno) : "");
        status = 1;
    }
    exit(status);
}

void cmdline_print_version(void)
{
    printf("QEMU emulator version 7.2.0 (qemu-rt %s)\n", QEMU_VERSION);
}

void cmdline_print_help(void)
{
    cmdline_print_version();
    printf(
        "usage: %s [options]\n%s\n"
        "A comma within a value is written twice. Values may be JSON objects: '{\"key\": ...}'.\n"
        "The manual page qemu-system-x86_64(1) has more about each option.\n",
        error_get_progname(), cmdline_help);
}
