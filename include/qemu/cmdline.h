/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line, walked with the table made of qemu-options.hx. Start-up only.
 */
#ifndef QEMU_CMDLINE_H
#define QEMU_CMDLINE_H

#include "qemu/error.h"
#include "qemu/option.h"
#include "util/qemu-options-index.h" /* generated: QEMU_OPTION_... */

typedef enum CmdlineArg {
    CMDLINE_ARG_NONE,
    CMDLINE_ARG_REQUIRED,
    CMDLINE_ARG_OPTIONAL, /* there unless the next word begins with '-' or is missing */
} CmdlineArg;

typedef struct CmdlineOption {
    const char *name; /* without the dash */
    QemuOptionIndex index;
    CmdlineArg arg;
    const char *group; /* its option group in qemu/config.h; NULL: none */
} CmdlineOption;

/* One use of an option. */
typedef struct CmdlineUse {
    const CmdlineOption *option;
    const char *given; /* as written, for messages: "--smp" */
    const char *arg;   /* NULL: none */
    QemuOpts *opts;    /* what arg became, for options with a group; otherwise NULL */
} CmdlineUse;

typedef struct Cmdline {
    int argc;
    char **argv;
    int next;
} Cmdline;

void cmdline_init(Cmdline *c, int argc, char **argv);
/*
 * The next option: 1, and use is filled (opts is NULL); 0 at the end; -1 with errp set for an
 * unknown option, a missing argument or a word that is no option.
 */
int cmdline_next(Cmdline *c, CmdlineUse *use, Error **errp);

/*
 * Walks all of it. An option with a group is parsed into it. Then fn is called for every option,
 * inside error_loc_push() for it; fn returns false and sets errp to stop. "help" as a value of a
 * group that knows its keys prints them and exits with status 0; own_help (NULL: none) is called
 * before and prints itself what it knows better. Returns false after it has reported the error: the caller exits with status 1.
 */
bool cmdline_parse(int argc, char **argv,
                   bool (*fn)(const CmdlineUse *use, void *opaque, Error **errp), void *opaque,
                   void (*own_help)(const CmdlineUse *use));

/* Ends the process after its output was all that was asked for: with status 1 if it got lost. */
QEMU_NORETURN void cmdline_exit_printed(int status);
/* To stdout. */
void cmdline_print_help(void);
void cmdline_print_version(void);
/* For query-command-line-options and tests: the i-th row, NULL behind the last. */
const CmdlineOption *cmdline_option(unsigned i);

#endif
