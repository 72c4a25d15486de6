/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of vCPU threads: one loop for every accelerator. */
#ifndef CPUS_H
#define CPUS_H

#include "accel/accel.h"
#include "accel/cpu.h"

/* Start-up. Starts cpu's thread, which initialises itself and parks. Waits until it has. */
bool cpu_thread_start(CPUState *cpu, Error **errp);
/* HELPER_ONLY or main loop. Parks/unparks all vCPUs; pausing returns when all are parked. */
void cpus_pause_all(void);
void cpus_resume_all(void);
/* All vCPUs parked: power-on state for each, through target/ and the accelerator. */
void cpus_reset_all(void);
/* Ends all vCPU threads and joins them. */
void cpus_quit(void);
void cpu_foreach(void (*fn)(CPUState *cpu, void *opaque), void *opaque);

#endif
