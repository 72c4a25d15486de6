/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small encoder of x86-64 instructions for the translator: one operand of an instruction is a
 * register, the other a register or [base + displacement].
 */
#ifndef ACCEL_TCG_EMIT_H
#define ACCEL_TCG_EMIT_H

#include <string.h>
#include "qemu/compiler.h"

/* Host registers by their numbers in encodings. */
enum {
    H_AX, H_CX, H_DX, H_BX, H_SP, H_BP, H_SI, H_DI, H_8, H_9, H_10, H_11, H_12, H_13, H_14, H_15,
    H_NONE = 0xff
};

/* Condition codes as in Jcc's opcode. */
enum { CC_O, CC_NO, CC_C, CC_NC, CC_Z, CC_NZ, CC_BE, CC_A, CC_S, CC_NS, CC_P, CC_NP, CC_L, CC_GE, CC_LE, CC_G };

typedef struct Emit {
    uint8_t *p;      /* next byte, in the writable view */
    uint8_t *end;    /* never reached: a block that gets near it is given up */
    int64_t rx;      /* executable view minus writable view */
} Emit;

/* What does not depend on where the operands are. */
typedef struct Op {
    uint8_t prefix[3]; /* legacy prefixes in order: 66, F2, F3, F0 */
    uint8_t nprefix;
    uint8_t map;     /* 0: one byte, 1: 0F, 2: 0F38, 3: 0F3A */
    uint8_t opcode;
    bool w;          /* REX.W or VEX.W */
    bool rex;        /* always with a REX prefix: SPL, BPL, SIL, DIL */
    bool vex;
    uint8_t vl, pp;  /* VEX.L, VEX.pp */
    uint8_t vvvv;    /* register, VEX only; 0 if none */
    uint8_t imm_len; /* bytes of immediate */
    int64_t imm;
} Op;

static inline void e8(Emit *e, uint8_t v)
{
    *e->p++ = v;
}
static inline void e32(Emit *e, uint32_t v)
{
    memcpy(e->p, &v, 4);
    e->p += 4;
}
static inline void e64(Emit *e, uint64_t v)
{
    memcpy(e->p, &v, 8);
    e->p += 8;
}
/* The address the next byte will have when it runs. */
static inline uint8_t *emit_here(const Emit *e)
{
    return e->p + e->rx;
}

/* op with ModRM: reg and register rm. */
void emit_rr(Emit *e, const Op *op, unsigned reg, unsigned rm);
/* op with ModRM: reg and [base + disp]; base must not be RSP or R12. */
void emit_rm(Emit *e, const Op *op, unsigned reg, unsigned base, int32_t disp);

/* op with ModRM: reg and [base + index << scale + disp]; index must not be RSP. */
void emit_rmx(Emit *e, const Op *op, unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t disp);

/* One-byte opcode forms used everywhere; 64-bit if w. */
void emit_op_rr(Emit *e, bool w, uint8_t opcode, unsigned reg, unsigned rm);
void emit_op_rm(Emit *e, bool w, uint8_t opcode, unsigned reg, unsigned base, int32_t disp);
/* 81 /ext with imm32 or imm8. */
void emit_alu_imm(Emit *e, bool w, unsigned ext, unsigned rm, int32_t imm);
void emit_alu_mem_imm8(Emit *e, bool w, unsigned ext, unsigned base, int32_t disp, int8_t imm);
void emit_shift_imm(Emit *e, bool w, unsigned ext, unsigned rm, uint8_t count);
/* LEA reg, [base + index << scale + disp], or MOV; base or index may be H_NONE. */
void emit_lea(Emit *e, bool w, unsigned reg, unsigned base, unsigned index, unsigned scale,
              int32_t disp);
static inline void emit_mov_rr(Emit *e, unsigned dst, unsigned src)
{
    emit_op_rr(e, true, 0x8b, dst, src);
}
static inline void emit_mov32_rr(Emit *e, unsigned dst, unsigned src)
{
    emit_op_rr(e, false, 0x8b, dst, src);
}
static inline void emit_ld(Emit *e, unsigned dst, unsigned base, int32_t disp)
{
    emit_op_rm(e, true, 0x8b, dst, base, disp);
}
static inline void emit_st(Emit *e, unsigned src, unsigned base, int32_t disp)
{
    emit_op_rm(e, true, 0x89, src, base, disp);
}
/* The shortest form. Touches no flag. */
void emit_mov_imm(Emit *e, unsigned dst, uint64_t v);
/* MOV qword [base + disp], imm32 sign-extended. */
void emit_st_imm32(Emit *e, unsigned base, int32_t disp, int32_t v);

/* JMP/Jcc/CALL rel32 to an executable address; returns where the displacement stands. */
uint8_t *emit_jmp(Emit *e, const uint8_t *target);
uint8_t *emit_jcc(Emit *e, unsigned cc, const uint8_t *target);
void emit_call(Emit *e, const uint8_t *target);
/* JMP [base + disp] */
void emit_jmp_mem(Emit *e, unsigned base, int32_t disp);
/* Makes the displacement at rel (writable view) lead to target. */
void emit_patch(const Emit *e, uint8_t *rel, const uint8_t *target);

#endif
