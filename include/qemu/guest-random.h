/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers for the guest: the host's, unless -seed or -icount asked for repeatable ones. */
#ifndef QEMU_GUEST_RANDOM_H
#define QEMU_GUEST_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Start-up, before vCPUs are made. */
void guest_random_fix(uint64_t seed);
/* RT_SAFE. True: the generator of vCPU number cpu starts at *state; else it is the host's. */
bool guest_random_seed(unsigned cpu, uint64_t *state);

#endif
