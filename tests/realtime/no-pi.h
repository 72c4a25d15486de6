/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included after config-host.h: mutexes that do not inherit priority, to show what that prevents. */
#undef CONFIG_PI
