/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to x87.c and x87_env.c. */
#ifndef ACCEL_TCG_X87_H
#define ACCEL_TCG_X87_H

#include "accel/tcg/simd.h"

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
/* x87_env.c: FWAIT and the instructions that move control state. */
bool x87_decode_control(Decode *d, Insn *out);

#endif
