/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tcg-accel.c and the unit tests see of the engine. VCPU thread. */
#ifndef ACCEL_TCG_ENGINE_RUN_H
#define ACCEL_TCG_ENGINE_RUN_H

#include "accel/accel.h"
#include "accel/tcg/engine.h"

/* Bytes of block cache a vCPU gets; set before the first one is made. */
extern uint64_t tcg_block_cache_size;
/* Makes c->tcg with its block cache, MMU, system and SIMD parts; allocates. */
bool tcg_engine_init(X86CPU *c, Error **errp);
void tcg_engine_fini(X86CPU *c);
/* The registers were set from outside (reset, INIT, debugger, loader): derive everything anew. */
void tcg_engine_reset(X86CPU *c);
/* Runs guest code until an exit. Takes and drops the memory read lock. */
ExitReason tcg_engine_run(X86CPU *c);
/* Is there a reason to leave HLT? */
bool tcg_has_work(X86CPU *c);

#endif
