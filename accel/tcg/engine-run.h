/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tcg-accel.c and the unit tests see of the engine. VCPU thread. */
#ifndef ACCEL_TCG_ENGINE_RUN_H
#define ACCEL_TCG_ENGINE_RUN_H

#include "accel/accel.h"
#include "accel/tcg/engine.h"

/* Bytes of block cache a vCPU gets; set before the first one is made. */
extern _Atomic uint64_t tcg_block_cache_size;
/*
 * Zeroed memory of a vCPU, in whole pages. It is touched at once where memory is locked or threads
 * are realtime, so that the guest's run meets no page fault of the host; else page by page when it
 * is first used, so that a vCPU that does little costs little. NULL: errno.
 */
void *tcg_map(size_t size);
void tcg_unmap(void *p, size_t size); /* p may be NULL */
/* "cannot allocate <size> KiB for the <what> of CPU N", with errno and the remedies. */
void tcg_no_memory(X86CPU *c, const char *what, size_t size, Error **errp);
/* Is memory touched at once? */
bool tcg_touch_early(void);
/* Makes c->tcg with its block cache, MMU, system and SIMD parts; allocates. */
bool tcg_engine_init(X86CPU *c, Error **errp);
void tcg_engine_fini(X86CPU *c);
/* What that maps for a vCPU with so large a cache, with or without the translator, of a model with or without PCID. */
uint64_t tcg_engine_bytes(uint64_t cache_size, bool translator, bool pcid);
/* The registers were set from outside (reset, INIT, debugger, loader): derive everything anew. */
void tcg_engine_reset(X86CPU *c);
/* Runs guest code until an exit. Takes and drops the memory read lock. */
ExitReason tcg_engine_run(X86CPU *c);
/* Is there a reason to leave HLT? */
bool tcg_has_work(X86CPU *c);

#endif
