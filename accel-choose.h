/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ACCEL_CHOOSE_H
#define ACCEL_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/* HELPER_ONLY, start-up, both. For -accel help. */
void accels_print_help(void);
/*
 * How many bytes a vCPU takes, with its thread, when there are so many: with the accelerator that
 * accel_choose() came to or, before that, will come to; os_prioritize() wants to know. model: -cpu's
 * argument, not NULL.
 */
uint64_t accel_vcpu_bytes(bool enable_kvm, unsigned vcpus, const char *model);
/* -icount and -seed (NULL: not given), after -smp and before accel_choose(): ends the process with
 * status 1 and the reason if they cannot be had. */
void accel_configure_determinism(const char *seed);
/*
 * Sets current_accel to the first of -accel, -machine accel= or -enable-kvm (enable_kvm) that can
 * be had, with a warning for each before it. None: says why and ends the process with status 1.
 */
void accel_choose(bool enable_kvm);

/* Ends the program with a message if there is no such accelerator. */
void accel_check_name(const char *name);

#endif
