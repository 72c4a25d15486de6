/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two versions: our own (QEMU_VERSION, from meson.build), and that of the QEMU whose command line
 * and monitor protocol this program speaks, which clients compare with what they need.
 */
#ifndef QEMU_VERSION_H
#define QEMU_VERSION_H

#define QEMU_COMPAT_MAJOR 7
#define QEMU_COMPAT_MINOR 2
#define QEMU_COMPAT_MICRO 0

#endif
