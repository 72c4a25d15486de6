/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/guest-random.h"

static bool fixed;
static uint64_t fixed_seed;

void guest_random_fix(uint64_t seed)
{
    fixed = true;
    fixed_seed = seed;
}

bool guest_random_seed(unsigned cpu, uint64_t *state)
{
    /* Far apart, so that two vCPUs do not give the same numbers a few steps later. */
    *state = fixed_seed ^ (uint64_t)cpu << 56;
    return fixed;
}
