/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tcg-accel.c and the unit tests see of the engine. VCPU thread. */
#ifndef ACCEL_TCG_ENGINE_RUN_H
#define ACCEL_TCG_ENGINE_RUN_H

#include "accel/accel.h"
#include "accel/tcg/engine.h"

/* Makes c->tcg with its block cache of so many bytes, MMU, system and SIMD parts; allocates. */
bool tcg_engine_init(X86CPU *c, uint64_t cache_size, Error **errp);
void tcg_engine_fini(X86CPU *c);
/* The registers were set from outside (reset, INIT, debugger, loader): derive everything anew. */
void tcg_engine_reset(X86CPU *c);
/* Runs guest code until an exit. Takes and drops the memory read lock. */
ExitReason tcg_engine_run(X86CPU *c);
/* Is there a reason to leave HLT? */
bool tcg_has_work(X86CPU *c);

#endif
