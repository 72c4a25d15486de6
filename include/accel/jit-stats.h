/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the translator of a vCPU has done since the vCPU was made: query-jit, info jit. */
#ifndef ACCEL_JIT_STATS_H
#define ACCEL_JIT_STATS_H

#include "accel/cpu.h"

#define JIT_STATS_TOP 10

typedef struct JitStats {
    uint64_t size;           /* bytes of code cache */
    uint64_t blocks, bytes;  /* in the cache now */
    uint64_t translated;     /* blocks, ever */
    uint64_t refused;        /* blocks that stay with the interpreter */
    uint64_t evicted;        /* blocks that made room for others */
    uint64_t invalidated;    /* blocks dropped because their code changed or was forgotten */
    uint64_t links;          /* direct exits linked to their target, ever */
    uint64_t entries;        /* from the engine: exits that no chain or jump cache served */
    uint64_t exits_link;     /* of them, those of direct exits not linked yet */
    uint64_t interp_blocks;  /* blocks run by the interpreter */
    uint64_t fallbacks;      /* instructions translated code leaves to the interpreter, runs of */
    uint64_t slow_paths;     /* slow cases of translated instructions: TLB miss, MMIO, fault, ... */
    uint64_t tlb_fills;
    uint64_t longest_translation_ns, longest_eviction_ns;
    struct {
        const char *mnemonic; /* static; NULL: no more */
        uint64_t count;
    } top[JIT_STATS_TOP];    /* of fallbacks, most frequent first */
} JitStats;

/* HELPER_ONLY. Waits for the vCPU to come out of guest code. False: it has no translator. */
bool tcg_jit_stats(CPUState *cpu, JitStats *s);

#endif
