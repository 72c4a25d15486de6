/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between cpus.c and cpus-timer.c. */
#ifndef CPUS_INTERNAL_H
#define CPUS_INTERNAL_H

#include "accel/cpu.h"
#include "qemu/error.h"

/* VCPU thread, before and after it runs. cpu_local_timer_arm() is for the interrupt chip. */
bool cpu_local_timer_create(CPUState *cpu, Error **errp);
void cpu_local_timer_delete(CPUState *cpu);
/* RT_SAFE, also in the signal's handler: it was noticed; how late it is goes into the histogram. */
void cpu_local_timer_note(const CPUState *cpu);

#endif
