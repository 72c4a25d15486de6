/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the translators of integer instructions share. */
#ifndef ACCEL_TCG_JIT_INSN_H
#define ACCEL_TCG_JIT_INSN_H

#include "accel/tcg/jit.h"

typedef enum Where { W_NONE, W_GPR, W_MEM, W_OTHER } Where;

typedef struct Operand {
    Where where;
    uint8_t reg;  /* guest number */
    bool high;    /* AH, CH, DH, BH */
    uint8_t size; /* bytes */
    bool read, write, cond;
} Operand;

typedef struct Plain {
    Op op;
    Operand reg, rm, vvvv; /* by their place in the encoding */
    unsigned ext;          /* ModRM.reg where it extends the opcode */
} Plain;

/* jit-insn.c */
Operand jit_operand_of(const ZydisDecodedOperand *o);
void jit_flags_before(JitCtx *x, bool keep_ax);
bool jit_plain_parse_mulx(JitCtx *x, Plain *p);

/* jit-bit.c; false: the interpreter does it */
bool jit_bit_string(JitCtx *x, Plain *p);

/* jit-muldiv.c; false: the interpreter does it */
bool jit_mul_div(JitCtx *x);
bool jit_mulx(JitCtx *x);
bool jit_widen(JitCtx *x);

#endif
