/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of start-up share. First thread, start-up. */
#ifndef VL_H
#define VL_H

#include "qemu/cmdline.h"

/*
 * "help" as a value: prints what can be said and ends the process. Returns if the option's group
 * is to print its keys, or if this is no call for help.
 */
void help_for_option(const CmdlineUse *use);

#endif
