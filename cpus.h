/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of vCPU threads: one loop for every accelerator. */
#ifndef CPUS_H
#define CPUS_H

#include "accel/accel.h"
#include "accel/cpu.h"

/*
 * Start-up. Makes vCPUs 0..count-1 with their interrupt chip's part, without threads. The model
 * is what x86_cpu_set_model() recorded.
 */
bool cpus_create(unsigned count, Error **errp);
/* Start-up, after the board is complete. Starts the thread of each; they initialise and park. */
bool cpus_start_threads(Error **errp);

/*
 * A vCPU more. HELPER_ONLY, or start-up. Begin: makes it with its thread, which has touched all its
 * memory and is parked, in the realtime profile in force; nobody else knows it yet. No lock is held
 * and no other vCPU disturbed meanwhile. NULL: nothing is left behind. End, inside runstate_hold():
 * others find it from now on, and it waits for its start-up IPI if the machine runs. Cannot fail.
 */
CPUState *cpu_plug_begin(unsigned index, Error **errp);
void cpu_plug_end(CPUState *cpu);
/*
 * The way back, control thread. Park: waits, without a lock, until it runs nothing. Begin, inside
 * runstate_hold(): nobody finds it any more; false: it was let go on meanwhile, park it again. End: its
 * thread ends and what the accelerator made is freed.
 */
void cpu_unplug_park(CPUState *cpu);
bool cpu_unplug_begin(CPUState *cpu);
void cpu_unplug_end(CPUState *cpu);

/* HELPER_ONLY or main loop, not a vCPU. Parks/unparks all vCPUs; pausing returns when all are
 * parked. Takes the CPU_LIST lock. */
void cpus_pause_all(void);
void cpus_resume_all(void);
/*
 * All vCPUs parked: power-on state for each, then devices() (which may set registers of a direct
 * boot), then the accelerator takes the registers over.
 */
void cpus_reset_all(void (*devices)(void));
/* Ends all vCPU threads and joins them. */
void cpus_quit(void);
void cpu_foreach(void (*fn)(CPUState *cpu, void *opaque), void *opaque);

#endif
