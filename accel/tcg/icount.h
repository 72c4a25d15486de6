/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deterministic runs (-icount), private to accel/tcg. Virtual time is `retired instructions << shift`
 * plus what was skipped while the CPU was halted; the vCPU's own thread moves the clock and runs its
 * timers, at instruction counts that depend on the guest alone. VCPU thread.
 */
#ifndef ACCEL_TCG_ICOUNT_H
#define ACCEL_TCG_ICOUNT_H

#include "accel/tcg/engine.h"
#include "qemu/option.h"

typedef struct TcgCount {
    int64_t bias;        /* virtual time = bias + (icount << shift) */
    int64_t halt_ns;     /* sleep=on: CLOCK_MONOTONIC at which the halt began; 0: not halted */
} TcgCount;

/* With accel_icount set, start-up: the clock is this CPU's. */
bool tcg_count_init(X86CPU *c, Error **errp);
void tcg_count_fini(X86CPU *c);
/*
 * Between instructions: writes what is due of the state log, sets the clock, runs due timers, and
 * says where the engine has to stop next (TcgCpu.count_limit). Memory read lock held.
 */
void tcg_count_attend(X86CPU *c);
/* The machine was paused, or suspended to RAM: time may have gone on. */
void tcg_count_resumed(X86CPU *c);
/* Instructions retired before i, which is under way. engine.c */
uint64_t tcg_count_before(const X86CPU *c, const Insn *i);
/* Halted, with nothing to do. True: time went to the next timer, look again; else wait. */
bool tcg_count_halted(X86CPU *c);
/* CLOCK_MONOTONIC at which a halt ends by itself. */
int64_t tcg_count_deadline(X86CPU *c);

/* ---- The state log (state-log.c): -accel tcg,state-log=FILE ---- */

typedef struct StateLogConfig {
    char *path;         /* NULL: none */
    uint64_t every;     /* instructions between lines */
    uint64_t from;      /* no line before this count */
    uint64_t ram_every; /* lines between hashes of RAM; 0: none */
    bool blocks;        /* a line, with registers and code, before each block from `from` on */
    bool flip_set;
    uint64_t flip;      /* a bit of R12 is flipped at this count: to see that it is found */
} StateLogConfig;

/* Start-up. From -accel's properties; False + errp: what is wrong with them. */
bool state_log_configure(QemuOpts *opts, Error **errp);
bool state_log_open(Error **errp);
/* Writes what is left. */
void state_log_close(X86CPU *c);
/* The next count, after icount, at which state_log_attend() has something to do. */
uint64_t state_log_next(uint64_t icount);
void state_log_attend(X86CPU *c);
/* state-blocks=on: a line before each block from here on; b is about to run. */
bool state_log_blocks(uint64_t icount);
void state_log_block(X86CPU *c, const TcgBlock *b);

#endif
