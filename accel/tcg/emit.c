/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encoding of x86-64 instructions: SDM 2A, chapter 2. */
#include "accel/tcg/emit.h"

/* Prefixes, opcode map and opcode, for register fields reg, index (x) and rm/base (b). */
static void emit_head(Emit *e, const Op *op, unsigned reg, unsigned x, unsigned b)
{
    if (op->vex) {
        e8(e, 0xc4);
        e8(e, (uint8_t)((reg & 8 ? 0 : 0x80) | (x & 8 ? 0 : 0x40) | (b & 8 ? 0 : 0x20) | op->map));
        e8(e, (uint8_t)((op->w ? 0x80 : 0) | ((~op->vvvv & 15) << 3) | (op->vl << 2) | op->pp));
        e8(e, op->opcode);
        return;
    }
    for (unsigned i = 0; i < op->nprefix; i++) {
        e8(e, op->prefix[i]);
    }
    if (op->w || op->rex || ((reg | x | b) & 8)) {
        e8(e, (uint8_t)(0x40 | (op->w ? 8 : 0) | (reg & 8 ? 4 : 0) | (x & 8 ? 2 : 0) |
                        (b & 8 ? 1 : 0)));
    }
    if (op->map) {
        e8(e, 0x0f);
        if (op->map == 2) {
            e8(e, 0x38);
        } else if (op->map == 3) {
            e8(e, 0x3a);
        }
    }
    e8(e, op->opcode);
}

static void emit_tail(Emit *e, const Op *op)
{
    memcpy(e->p, &op->imm, op->imm_len);
    e->p += op->imm_len;
}

void emit_rr(Emit *e, const Op *op, unsigned reg, unsigned rm)
{
    emit_head(e, op, reg, 0, rm);
    e8(e, (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7)));
    emit_tail(e, op);
}

static void emit_disp(Emit *e, unsigned reg, unsigned base, int32_t disp)
{
    if (disp == 0 && (base & 7) != H_BP) {
        e8(e, (uint8_t)((reg & 7) << 3 | (base & 7)));
    } else if (disp == (int8_t)disp) {
        e8(e, (uint8_t)(0x40 | (reg & 7) << 3 | (base & 7)));
        e8(e, (uint8_t)disp);
    } else {
        e8(e, (uint8_t)(0x80 | (reg & 7) << 3 | (base & 7)));
        e32(e, (uint32_t)disp);
    }
}

void emit_rm(Emit *e, const Op *op, unsigned reg, unsigned base, int32_t disp)
{
    emit_head(e, op, reg, 0, base);
    emit_disp(e, reg, base, disp);
    emit_tail(e, op);
}

/* index 4: none. */
static void emit_sib(Emit *e, unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t disp)
{
    bool small = disp == (int8_t)disp;

    e8(e, (uint8_t)((small ? 0x40 : 0x80) | (reg & 7) << 3 | 4));
    e8(e, (uint8_t)(scale << 6 | (index & 7) << 3 | (base & 7)));
    memcpy(e->p, &disp, small ? 1 : 4);
    e->p += small ? 1 : 4;
}

void emit_rmx(Emit *e, const Op *op, unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t disp)
{
    emit_head(e, op, reg, index, base);
    emit_sib(e, reg, base, index, scale, disp);
    emit_tail(e, op);
}

void emit_op_rr(Emit *e, bool w, uint8_t opcode, unsigned reg, unsigned rm)
{
    emit_rr(e, &(Op){ .w = w, .opcode = opcode }, reg, rm);
}

void emit_op_rm(Emit *e, bool w, uint8_t opcode, unsigned reg, unsigned base, int32_t disp)
{
    emit_rm(e, &(Op){ .w = w, .opcode = opcode }, reg, base, disp);
}

void emit_alu_imm(Emit *e, bool w, unsigned ext, unsigned rm, int32_t imm)
{
    bool small = imm == (int8_t)imm;

    if (!small && rm == H_AX) {
        if (w) {
            e8(e, 0x48);
        }
        e8(e, (uint8_t)(ext << 3 | 5));
        e32(e, (uint32_t)imm);
        return;
    }
    emit_rr(e, &(Op){ .w = w, .opcode = small ? 0x83 : 0x81, .imm = imm, .imm_len = small ? 1 : 4 },
            ext, rm);
}

void emit_alu_mem_imm8(Emit *e, bool w, unsigned ext, unsigned base, int32_t disp, int8_t imm)
{
    emit_rm(e, &(Op){ .w = w, .opcode = 0x83, .imm = imm, .imm_len = 1 }, ext, base, disp);
}

void emit_shift_imm(Emit *e, bool w, unsigned ext, unsigned rm, uint8_t count)
{
    emit_rr(e, &(Op){ .w = w, .opcode = 0xc1, .imm = count, .imm_len = 1 }, ext, rm);
}

void emit_lea(Emit *e, bool w, unsigned reg, unsigned base, unsigned index, unsigned scale,
              int32_t disp)
{
    const Op op = { .w = w, .opcode = 0x8d };
    unsigned x = index == H_NONE ? 4 : index;

    if (index == H_NONE && base != H_NONE && disp == 0) {
        if (!w || reg != base) {
            emit_op_rr(e, w, 0x8b, reg, base);
        }
        return;
    }
    if (index == H_NONE && base != H_NONE && (base & 7) != H_SP) {
        emit_rm(e, &op, reg, base, disp);
        return;
    }
    emit_head(e, &op, reg, index == H_NONE ? 0 : index, base == H_NONE ? 0 : base);
    if (base == H_NONE) {
        e8(e, (uint8_t)((reg & 7) << 3 | 4));
        e8(e, (uint8_t)(scale << 6 | (x & 7) << 3 | 5));
        e32(e, (uint32_t)disp);
    } else {
        emit_sib(e, reg, base, x, scale, disp);
    }
}

void emit_mov_imm(Emit *e, unsigned dst, uint64_t v)
{
    if (v <= UINT32_MAX) {
        if (dst & 8) {
            e8(e, 0x41);
        }
        e8(e, (uint8_t)(0xb8 | (dst & 7)));
        e32(e, (uint32_t)v);
    } else if ((int64_t)v == (int32_t)v) {
        emit_rr(e, &(Op){ .w = true, .opcode = 0xc7, .imm = (int64_t)v, .imm_len = 4 }, 0, dst);
    } else {
        e8(e, dst & 8 ? 0x49 : 0x48);
        e8(e, (uint8_t)(0xb8 | (dst & 7)));
        e64(e, v);
    }
}

void emit_st_imm32(Emit *e, unsigned base, int32_t disp, int32_t v)
{
    emit_rm(e, &(Op){ .w = true, .opcode = 0xc7, .imm = v, .imm_len = 4 }, 0, base, disp);
}

static uint8_t *emit_rel(Emit *e, const uint8_t *target)
{
    uint8_t *rel = e->p;

    e->p += 4;
    emit_patch(e, rel, target ? target : emit_here(e));
    return rel;
}

uint8_t *emit_jmp(Emit *e, const uint8_t *target)
{
    e8(e, 0xe9);
    return emit_rel(e, target);
}

uint8_t *emit_jcc(Emit *e, unsigned cc, const uint8_t *target)
{
    e8(e, 0x0f);
    e8(e, (uint8_t)(0x80 | cc));
    return emit_rel(e, target);
}

void emit_call(Emit *e, const uint8_t *target)
{
    e8(e, 0xe8);
    emit_rel(e, target);
}

void emit_jmp_mem(Emit *e, unsigned base, int32_t disp)
{
    emit_rm(e, &(Op){ .opcode = 0xff }, 4, base, disp);
}

void emit_patch(const Emit *e, uint8_t *rel, const uint8_t *target)
{
    int32_t d = (int32_t)(target - (rel + e->rx + 4));

    memcpy(rel, &d, 4);
}
