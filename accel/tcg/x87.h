/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to x87.c and x87_env.c. */
#ifndef ACCEL_TCG_X87_H
#define ACCEL_TCG_X87_H

#include "accel/tcg/simd.h"

/* Insn.flags of an x87 instruction: the memory operand is written. */
#define INSN_X87_STORE BIT(7)

#define FSW_EXCEPTIONS 0x003fu
#define FSW_PE         0x0020u
#define FSW_ES         0x0080u
#define FSW_TOP        0x3800u
#define FSW_TOP_SHIFT  11
#define FSW_B          0x8000u

/* What FLDCW stores of its operand; bit 6 reads as 1. */
#define FCW_WRITABLE 0x1f3fu
#define FCW_FIXED    0x0040u

/* #NM, and #MF (or FERR#) for a pending exception: what every waiting instruction does first. */
void x87_check(X86CPU *c, const Insn *i);
/* The second half of it. Returns only if the exception is to be ignored. */
void x87_pending(X86CPU *c, const Insn *i);
/* Moves TOP; physical registers keep their contents. */
void x87_set_top(X86CPU *c, unsigned top);
/* FIP, FOP, FCS of i; FDP and FDS as given. */
void x87_note_pointers(X86CPU *c, const Insn *i, uint64_t fdp, uint16_t fds);
/* The whole instruction by the full stub. i was decoded by x87_fast.c. */
void x87_full(X86CPU *c, const Insn *i);
/* x87_fast.c. out was decoded for the full stub and is changed only if this returns true. */
bool x87_decode_light(Decode *d, Insn *out);
/* x87_env.c: FWAIT and the instructions that move control state. */
bool x87_decode_control(Decode *d, Insn *out);

#endif
