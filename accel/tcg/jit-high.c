/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Byte instructions that name AH, CH, DH or BH. Such a half can only be encoded for RAX, RCX, RDX
 * and RBX and without a REX prefix, so both operands go through scratch registers.
 */
#include "accel/tcg/jit.h"

typedef struct Half {
    bool used, mem, high, write;
    uint8_t reg; /* guest */
} Half;

static bool half_of(const ZydisDecodedOperand *o, Half *h)
{
    ZydisRegister r = o->reg.value;

    *h = (Half){ .used = true, .write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 };
    if (o->size != 8) {
        return false;
    }
    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        h->mem = true;
        return true;
    }
    if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH) {
        h->high = true;
        h->reg = (uint8_t)(r - ZYDIS_REGISTER_AH);
    } else if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL) {
        h->reg = (uint8_t)(r - ZYDIS_REGISTER_AL);
    } else {
        return false; /* needs REX, so it is never beside a high half */
    }
    return true;
}

/* Loads the guest register into scratch and returns the number of its low or high half. */
static unsigned half_in(JitCtx *x, const Half *h, unsigned scratch)
{
    unsigned from = jit_get(x, h->reg, scratch);

    if (from != scratch) {
        emit_mov_rr(&x->e, scratch, from);
    }
    return h->high ? scratch + 4 : scratch;
}

static void half_out(JitCtx *x, const Half *h, unsigned scratch)
{
    if (h->used && !h->mem && h->write) {
        jit_put(x, h->reg, scratch);
    }
}

static bool halves_parse(const JitCtx *x, Half *reg, Half *rm)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool high = false;

    *reg = *rm = (Half){ 0 };
    for (unsigned k = 0; k < zi->operand_count_visible; k++) {
        const ZydisDecodedOperand *o = &x->op[x->index][k];
        Half h;

        if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            continue;
        }
        if (!half_of(o, &h)) {
            return false;
        }
        if (o->encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG) {
            *reg = h;
        } else if (o->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
            *rm = h;
        } else {
            return false;
        }
        high |= h.high;
    }
    return high && rm->used;
}

/* The flags it keeps (INC, DEC) must be there. */
static void half_flags(JitCtx *x)
{
    unsigned use, def;

    jit_flags_of(&x->zi[x->index], &use, &def);
    if (use || (def && (jit_live_after(x) & ~def))) {
        jit_flags_need(x);
    }
}

static void halves_memory(JitCtx *x, const Op *op, const Half *reg, bool write)
{
    int32_t disp;
    unsigned r;

    jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = 1, .access = write ? MEM_WRITE : MEM_READ },
            &disp);
    r = half_in(x, reg, H_DX);
    emit_rm(&x->e, op, r, H_CX, disp);
    if (x->zi[x->index].cpu_flags && x->zi[x->index].cpu_flags->modified & FL_ARITH) {
        jit_flags_set(x);
    }
    half_out(x, reg, H_DX);
    if (write) {
        jit_store_check(x, 1, disp);
    }
}

static bool halves(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    Op op = { .opcode = zi->opcode == 0x82 ? 0x80 : zi->opcode }; /* 82: 32-bit code's alias */
    Half reg, rm;
    unsigned r, m;

    if (!halves_parse(x, &reg, &rm) || zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT ||
        (zi->attributes & ZYDIS_ATTRIB_HAS_LOCK)) {
        return false;
    }
    if (zi->raw.imm[0].size) {
        op.imm_len = 1;
        op.imm = (int64_t)zi->raw.imm[0].value.u;
    }
    if (rm.mem) {
        halves_memory(x, &op, &reg, rm.write);
        return true;
    }
    half_flags(x);
    m = half_in(x, &rm, H_AX);
    if (reg.used && reg.reg == rm.reg) {
        r = reg.high ? H_AX + 4 : H_AX;
        reg.used = false; /* one scratch register for both: stored below */
        rm.write |= reg.write;
    } else {
        r = reg.used ? half_in(x, &reg, H_DX) : zi->raw.modrm.reg;
    }
    emit_rr(&x->e, &op, r, m);
    if (zi->cpu_flags && zi->cpu_flags->modified & FL_ARITH) {
        jit_flags_set(x);
    }
    half_out(x, &rm, H_AX);
    half_out(x, &reg, H_DX);
    return true;
}

bool jit_high(JitCtx *x)
{
    switch (x->zi[x->index].mnemonic) {
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_OR: case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_SUB: case ZYDIS_MNEMONIC_XOR: case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST: case ZYDIS_MNEMONIC_MOV: case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC: case ZYDIS_MNEMONIC_NEG: case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_XCHG:
        return halves(x);
    default:
        return false;
    }
}
