/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host is no x86-64: it has none of the features, and no TSC. */
#include <string.h>
#include "target/i386/cpu.h"
#include "target/i386/cpuid.h"

void x86_host_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    memset(r, 0, 4 * sizeof(r[0]));
}

bool x86_host_saves_ymm(void)
{
    return false;
}

uint32_t x86_host_tsc_khz(void)
{
    return 0;
}
