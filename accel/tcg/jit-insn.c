/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integer instructions. Most are the guest's own encoding with other register numbers: operands are
 * described by Zydis, so one routine serves nearly all of them.
 */
#include "accel/tcg/jit-insn.h"

Operand jit_operand_of(const ZydisDecodedOperand *o)
{
    Operand r = { .size = (uint8_t)(o->size / 8),
                  .read = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
                  .write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0,
                  .cond = (o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0 };

    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        r.where = W_MEM;
        return r;
    }
    switch (ZydisRegisterGetClass(o->reg.value)) {
    case ZYDIS_REGCLASS_GPR8:
        r.where = W_GPR;
        r.high = o->reg.value >= ZYDIS_REGISTER_AH && o->reg.value <= ZYDIS_REGISTER_BH;
        /* Ids of the 8-bit class count AL CL DL BL AH CH DH BH SPL ... */
        r.reg = o->reg.value <= ZYDIS_REGISTER_BL ? (uint8_t)(o->reg.value - ZYDIS_REGISTER_AL)
                : r.high ? (uint8_t)(o->reg.value - ZYDIS_REGISTER_AH)
                         : (uint8_t)(o->reg.value - ZYDIS_REGISTER_SPL + 4);
        return r;
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        r.where = W_GPR;
        r.reg = (uint8_t)ZydisRegisterGetId(o->reg.value);
        return r;
    default:
        r.where = W_OTHER;
        return r;
    }
}

static void plain_prefixes(const ZydisDecodedInstruction *zi, Op *op)
{
    for (unsigned i = 0; i < zi->raw.prefix_count; i++) {
        uint8_t p = zi->raw.prefixes[i].value;

        if (p == 0xf0 || ((p == 0x66 || p == 0xf2 || p == 0xf3) &&
                          zi->raw.prefixes[i].type != ZYDIS_PREFIX_TYPE_IGNORED)) {
            if (op->nprefix < 3) {
                op->prefix[op->nprefix++] = p;
            }
        }
    }
}

/* The encoding without its operands. */
static void plain_op(const ZydisDecodedInstruction *zi, Op *op)
{
    *op = (Op){ .opcode = zi->opcode };
    if (zi->opcode == 0x82 && zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
        op->opcode = 0x80; /* 32-bit code's alias */
    }
    if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
        op->vex = true;
        op->map = zi->raw.vex.m_mmmm;
        op->w = zi->raw.vex.W && zi->machine_mode == ZYDIS_MACHINE_MODE_LONG_64;
        op->vl = zi->raw.vex.L;
        op->pp = zi->raw.vex.pp;
    } else {
        plain_prefixes(zi, op);
        op->map = zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? 0
                  : zi->opcode_map == ZYDIS_OPCODE_MAP_0F    ? 1
                  : zi->opcode_map == ZYDIS_OPCODE_MAP_0F38  ? 2
                                                             : 3;
        op->w = zi->raw.rex.W;
    }
    if (zi->raw.imm[0].size) {
        op->imm_len = zi->raw.imm[0].size / 8;
        op->imm = (int64_t)zi->raw.imm[0].value.u;
    }
}

/* Sorts the operands; false if there is one that is not general-purpose, memory or immediate. */
static bool plain_parse(const JitCtx *x, Plain *p)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    *p = (Plain){ .ext = zi->raw.modrm.reg };
    plain_op(zi, &p->op);
    for (unsigned k = 0; k < zi->operand_count_visible; k++) {
        const ZydisDecodedOperand *o = &x->op[x->index][k];
        Operand r;

        if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            continue;
        }
        r = jit_operand_of(o);
        if (r.where == W_OTHER || r.high) {
            return false;
        }
        p->op.rex |= r.where == W_GPR && r.size == 1;
        switch (o->encoding) {
        case ZYDIS_OPERAND_ENCODING_MODRM_REG:
            p->reg = r;
            break;
        case ZYDIS_OPERAND_ENCODING_MODRM_RM:
            p->rm = r;
            break;
        case ZYDIS_OPERAND_ENCODING_NDSNDD:
            p->vvvv = r;
            break;
        default:
            return false;
        }
    }
    return true;
}

/* MULX: RDX is an operand too, by name. */
bool jit_plain_parse_mulx(JitCtx *x, Plain *p)
{
    ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool ok;

    zi->operand_count_visible = 3;
    ok = plain_parse(x, p);
    return ok && p->reg.where == W_GPR && p->vvvv.where == W_GPR && p->reg.size >= 4;
}

/* Must the old value be there? */
static bool wants_old(const Operand *o)
{
    return o->read || o->cond || o->size < 4;
}

static unsigned operand_in(JitCtx *x, const Operand *o, unsigned scratch)
{
    return wants_old(o) ? jit_get(x, o->reg, scratch) : jit_dst(o->reg, scratch);
}

/* EFLAGS as the instruction needs them; keep_ax: RAX must survive (RDX does not). */
void jit_flags_before(JitCtx *x, bool keep_ax)
{
    unsigned use, def;

    jit_flags_of(&x->zi[x->index], &use, &def);
    if (!use && !(def && (jit_live_after(x) & ~def))) {
        return;
    }
    if (x->s.flags & FLAGS_HOST) {
        return;
    }
    if (keep_ax) {
        emit_mov_rr(&x->e, H_DX, H_AX);
        jit_flags_need(x);
        emit_mov_rr(&x->e, H_AX, H_DX);
    } else {
        jit_flags_need(x);
    }
}

static void flags_after(JitCtx *x)
{
    unsigned use, def;

    jit_flags_of(&x->zi[x->index], &use, &def);
    /* A shift by a count that may be 0 is all use and no def, and still sets them. */
    if (def || (x->zi[x->index].cpu_flags && x->zi[x->index].cpu_flags->modified & FL_ARITH)) {
        jit_flags_set(x);
    }
}

static void plain_memory(JitCtx *x, Plain *p)
{
    const Insn *i = jit_insn(x);
    unsigned reg = p->ext, vvvv = 0;
    int32_t disp;

    jit_mem(x, &(JitWant){ .ea = i, .size = p->rm.size,
                           .access = p->rm.write ? MEM_WRITE : MEM_READ }, &disp);
    jit_flags_before(x, p->rm.write);
    if (p->reg.where == W_GPR) {
        reg = operand_in(x, &p->reg, H_DX);
    }
    if (p->vvvv.where == W_GPR) {
        vvvv = p->vvvv.write ? jit_dst(p->vvvv.reg, H_AX) : jit_get(x, p->vvvv.reg, H_AX);
        p->op.vvvv = (uint8_t)vvvv;
    }
    emit_rm(&x->e, &p->op, reg, H_CX, disp);
    flags_after(x);
    if (p->reg.write) {
        jit_put(x, p->reg.reg, reg);
    }
    if (p->vvvv.write) {
        jit_put(x, p->vvvv.reg, vvvv);
    }
    if (!p->rm.write || jit_store_check(x, p->rm.size, disp)) {
        jit_mem_keep(x, p->rm.write);
    }
}

/*
 * Can the r/m operand, a guest register that lives in memory, be taken from there? Not where the form
 * with a memory operand means something else (bit strings, XCHG's lock), nor where a 32-bit result
 * has to clear the upper half.
 */
static bool rm_stays_in_memory(const JitCtx *x, const Plain *p)
{
    if (jit_reg[p->rm.reg] != H_NONE || (p->rm.write && p->rm.size == 4) ||
        (p->reg.where == W_GPR && p->reg.reg == p->rm.reg) || p->vvvv.where == W_GPR) {
        return false;
    }
    switch (x->zi[x->index].mnemonic) {
    case ZYDIS_MNEMONIC_BT: case ZYDIS_MNEMONIC_BTS: case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC: case ZYDIS_MNEMONIC_XCHG:
        return false;
    default:
        return true;
    }
}

static void plain_half_memory(JitCtx *x, Plain *p)
{
    unsigned reg = p->ext;

    jit_flags_before(x, false);
    if (p->reg.where == W_GPR) {
        reg = operand_in(x, &p->reg, H_DX);
    }
    emit_rm(&x->e, &p->op, reg, JIT_CPU, JIT_OFF_REG(p->rm.reg));
    flags_after(x);
    if (p->reg.write) {
        jit_put(x, p->reg.reg, reg);
    }
}

/*
 * OP r/m, reg, as assemblers write it between registers, where reg lives in memory: OP reg, r/m is the same with both
 * exchanged, and TEST is its own.
 */
static bool exchange(const JitCtx *x, Plain *p)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool alu = zi->opcode < 0x40 && (zi->opcode & 6) == 0, mov = (zi->opcode & 0xfe) == 0x88;
    Operand o = p->rm;

    if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT ||
        !(alu || mov || (zi->opcode & 0xfe) == 0x84) || p->reg.where != W_GPR ||
        jit_reg[p->reg.reg] != H_NONE || jit_reg[p->rm.reg] == H_NONE) {
        return false;
    }
    if (alu || mov) {
        p->op.opcode ^= 2;
    }
    p->rm = p->reg;
    p->reg = o;
    return true;
}

static void plain_registers(JitCtx *x, Plain *p)
{
    unsigned reg = p->ext, rm, vvvv = 0;

    jit_flags_before(x, false);
    if (p->reg.where == W_GPR && p->reg.reg == p->rm.reg) {
        reg = rm = jit_get(x, p->rm.reg, H_AX);
    } else {
        rm = operand_in(x, &p->rm, H_AX);
        if (p->reg.where == W_GPR) {
            reg = operand_in(x, &p->reg, H_DX);
        }
    }
    if (p->vvvv.where == W_GPR) {
        vvvv = p->vvvv.write ? jit_dst(p->vvvv.reg, H_CX) : jit_get(x, p->vvvv.reg, H_CX);
        p->op.vvvv = (uint8_t)vvvv;
    }
    emit_rr(&x->e, &p->op, reg, rm);
    flags_after(x);
    if (p->rm.write) {
        jit_put(x, p->rm.reg, rm);
    }
    if (p->reg.write) {
        jit_put(x, p->reg.reg, reg);
    }
    if (p->vvvv.write) {
        jit_put(x, p->vvvv.reg, vvvv);
    }
}

static bool plain(JitCtx *x)
{
    Plain p;

    if (!plain_parse(x, &p) || (p.rm.where != W_GPR && p.rm.where != W_MEM)) {
        return false;
    }
    if (x->zi[x->index].mnemonic == ZYDIS_MNEMONIC_BSF ||
        x->zi[x->index].mnemonic == ZYDIS_MNEMONIC_BSR) {
        p.reg.cond = true; /* a source of 0 leaves the destination */
    }
    if (p.rm.where == W_MEM) {
        plain_memory(x, &p);
    } else if (exchange(x, &p) || rm_stays_in_memory(x, &p)) {
        plain_half_memory(x, &p);
    } else {
        plain_registers(x, &p);
    }
    return true;
}

/* ---- Accumulator and opcode-register forms ---- */

/* ADD eAX, imm and its like: the same as 80/81 with ModRM. TEST eAX, imm: F6/F7. */
static bool alu_accumulator(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool byte = !(zi->opcode & 1), test = zi->opcode >= 0xa8;
    unsigned ext = test ? 0 : zi->opcode >> 3;
    Op op;

    plain_op(zi, &op);
    op.opcode = test ? (byte ? 0xf6 : 0xf7) : byte ? 0x80 : 0x81;
    op.rex |= byte;
    jit_flags_before(x, false);
    emit_rr(&x->e, &op, ext, jit_reg[R_RAX]);
    flags_after(x);
    return true;
}

static bool mov_reg_imm(JitCtx *x)
{
    const ZydisDecodedOperand *o = x->op[x->index];
    Operand r = jit_operand_of(&o[0]);
    uint64_t v = o[1].imm.value.u;
    unsigned h;

    if (r.where != W_GPR || r.high) {
        return false;
    }
    if (r.size >= 4) {
        h = jit_dst(r.reg, H_AX);
        emit_mov_imm(&x->e, h, r.size == 4 ? (uint32_t)v : v);
    } else {
        Op op = { .opcode = r.size == 1 ? 0xc6 : 0xc7, .rex = r.size == 1, .imm_len = r.size,
                  .imm = (int64_t)v };

        if (r.size == 2) {
            op.prefix[op.nprefix++] = 0x66;
        }
        h = jit_get(x, r.reg, H_AX);
        emit_rr(&x->e, &op, 0, h);
    }
    jit_put(x, r.reg, h);
    return true;
}

static bool bswap(JitCtx *x)
{
    Operand r = jit_operand_of(&x->op[x->index][0]);
    unsigned h;

    if (r.size < 4) {
        return false;
    }
    h = jit_get(x, r.reg, H_AX);
    e8(&x->e, (uint8_t)(0x40 | (r.size == 8 ? 8 : 0) | (h >> 3)));
    e8(&x->e, 0x0f);
    e8(&x->e, (uint8_t)(0xc8 | (h & 7)));
    jit_put(x, r.reg, h);
    return true;
}

/* MOVZX, MOVSX and MOV from AH, CH, DH, BH: through a scratch register that has such a half. */
static bool mov_from_high(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    Operand dst = jit_operand_of(&x->op[x->index][0]), src = jit_operand_of(&x->op[x->index][1]);
    unsigned h;

    if (src.where != W_GPR || !src.high || dst.where != W_GPR || dst.size < 4 || zi->raw.rex.W) {
        return false;
    }
    emit_mov_rr(&x->e, H_AX, jit_get(x, src.reg, H_AX));
    /* MOVZX/MOVSX ECX, AH */
    emit_rr(&x->e, &(Op){ .map = 1, .opcode = zi->opcode }, H_CX, 4);
    h = jit_dst(dst.reg, H_CX);
    if (h != H_CX) {
        emit_mov_rr(&x->e, h, H_CX);
    }
    jit_put(x, dst.reg, h);
    return true;
}

/* ---- LEA, XCHG, CMPXCHG ---- */

static bool lea(JitCtx *x)
{
    const Insn *i = jit_insn(x);
    Operand r = jit_operand_of(&x->op[x->index][0]);
    Insn flat = *i;
    unsigned h;

    if (r.size < 4) {
        return false;
    }
    flat.flags = 0;
    h = jit_dst(r.reg, H_CX);
    if (r.size == 8 || i->asz == ASZ_32) {
        jit_ea_to(x, &flat, h);
    } else {
        jit_ea(x, &flat);
        emit_mov32_rr(&x->e, h, H_CX);
    }
    jit_put(x, r.reg, h);
    return true;
}

static bool xchg_registers(JitCtx *x)
{
    Operand a = jit_operand_of(&x->op[x->index][0]), b = jit_operand_of(&x->op[x->index][1]);

    if (a.where != W_GPR || b.where != W_GPR || a.size < 4) {
        return false;
    }
    if (a.size == 8) {
        emit_mov_rr(&x->e, H_CX, jit_get(x, a.reg, H_CX));
        emit_mov_rr(&x->e, H_DX, jit_get(x, b.reg, H_DX));
    } else {
        emit_mov32_rr(&x->e, H_CX, jit_get(x, a.reg, H_CX));
        emit_mov32_rr(&x->e, H_DX, jit_get(x, b.reg, H_DX));
    }
    jit_put(x, a.reg, H_DX);
    jit_put(x, b.reg, H_CX);
    return true;
}

static bool xchg(JitCtx *x)
{
    if (x->zi[x->index].opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
        (x->zi[x->index].opcode & 0xf8) == 0x90) {
        return xchg_registers(x);
    }
    return xchg_registers(x) || plain(x);
}

/* RAX is the comparand, so the TLB entry waits in RDX. */
static bool cmpxchg(JitCtx *x)
{
    Plain p;
    int32_t disp;

    if (!plain_parse(x, &p) || jit_reg[p.reg.reg] == H_NONE) {
        return false;
    }
    if (p.rm.where != W_MEM) {
        if (p.rm.where != W_GPR || jit_reg[p.rm.reg] == H_NONE || p.rm.reg == R_RAX ||
            p.reg.reg == R_RAX) {
            return false;
        }
        emit_mov_rr(&x->e, H_AX, jit_reg[R_RAX]);
        emit_rr(&x->e, &p.op, jit_reg[p.reg.reg], jit_reg[p.rm.reg]);
        jit_flags_set(x);
        emit_mov_rr(&x->e, jit_reg[R_RAX], H_AX);
        return true;
    }
    jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = p.rm.size, .access = MEM_WRITE }, &disp);
    emit_mov_rr(&x->e, H_DX, H_AX);
    emit_mov_rr(&x->e, H_AX, jit_reg[R_RAX]);
    emit_rm(&x->e, &p.op, jit_reg[p.reg.reg], H_CX, disp);
    jit_flags_set(x);
    emit_mov_rr(&x->e, jit_reg[R_RAX], H_AX);
    emit_mov_rr(&x->e, H_AX, H_DX);
    jit_store_check(x, p.rm.size, disp);
    return true;
}

static bool bit_test(JitCtx *x)
{
    Plain p;

    if (!plain_parse(x, &p)) {
        return false;
    }
    if (p.rm.where == W_MEM && p.reg.where == W_GPR) {
        return jit_bit_string(x, &p);
    }
    return plain(x);
}

/* ---- Shifts by CL ---- */

static bool shift_cl(JitCtx *x)
{
    Plain p;
    unsigned reg, rm;
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    const ZydisDecodedOperand *last = &x->op[x->index][zi->operand_count_visible - 1];
    ZydisDecodedInstruction copy = *zi;

    if (last->type != ZYDIS_OPERAND_TYPE_REGISTER || last->reg.value != ZYDIS_REGISTER_CL) {
        /* By one or by an immediate; a shift by one has its count as an operand too. */
        if (last->encoding == ZYDIS_OPERAND_ENCODING_NONE) {
            x->zi[x->index].operand_count_visible--;
        }
        return plain(x);
    }
    x->zi[x->index].operand_count_visible--;
    if (!plain_parse(x, &p) || p.rm.where != W_GPR) {
        x->zi[x->index] = copy;
        return false;
    }
    jit_flags_before(x, false);
    emit_mov_rr(&x->e, H_CX, jit_reg[R_RCX]);
    rm = jit_get(x, p.rm.reg, H_AX);
    reg = p.reg.where == W_GPR ? jit_get(x, p.reg.reg, H_DX) : p.ext;
    emit_rr(&x->e, &p.op, reg, rm);
    jit_flags_set(x);
    jit_put(x, p.rm.reg, rm);
    return true;
}

/* ---- Which routine ---- */

/* MOVNTI stores like MOV; CLC, STC, CMC as they are. */
static bool flag_op(JitCtx *x)
{
    jit_flags_before(x, false);
    e8(&x->e, x->zi[x->index].opcode);
    jit_flags_set(x);
    return true;
}

/* MOV between the accumulator and an address in the instruction: A0 to A3. */
static bool mov_offset(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool store = zi->opcode & 2, byte = !(zi->opcode & 1);
    unsigned size = byte ? 1 : zi->operand_width / 8;
    Op op = { .w = size == 8, .rex = byte, .opcode = (uint8_t)((store ? 0x88 : 0x8a) | !byte) };
    int32_t disp;

    if (size == 2) {
        op.prefix[op.nprefix++] = 0x66;
    }
    jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = size, .access = store ? MEM_WRITE : MEM_READ },
            &disp);
    emit_rm(&x->e, &op, jit_reg[R_RAX], H_CX, disp);
    if (store) {
        jit_store_check(x, size, disp);
    }
    return true;
}

static bool mov(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    if (zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT) {
        return false; /* control and debug registers */
    }
    if ((zi->opcode & 0xf0) == 0xb0) {
        return mov_reg_imm(x);
    }
    if ((zi->opcode & 0xfc) == 0xa0) {
        return mov_offset(x);
    }
    return plain(x);
}

/* 40 to 4F in 32-bit code: FF /0 and /1. */
static bool inc_dec(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    unsigned g = zi->opcode & 7, h;
    Op op = { .opcode = 0xff };

    if ((zi->opcode & 0xf0) != 0x40 || zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT) {
        return plain(x);
    }
    if (zi->operand_width == 16) {
        op.prefix[op.nprefix++] = 0x66;
    }
    jit_flags_before(x, false);
    h = jit_get(x, g, H_AX);
    emit_rr(&x->e, &op, (zi->opcode >> 3) & 1, h);
    flags_after(x);
    jit_put(x, g, h);
    return true;
}

static bool is_accumulator_form(const ZydisDecodedInstruction *zi)
{
    return zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           ((zi->opcode < 0x40 && (zi->opcode & 7) >= 4 && (zi->opcode & 7) <= 5) ||
            zi->opcode == 0xa8 || zi->opcode == 0xa9);
}

bool jit_integer(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_OR: case ZYDIS_MNEMONIC_ADC:
    case ZYDIS_MNEMONIC_SBB: case ZYDIS_MNEMONIC_AND: case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XOR: case ZYDIS_MNEMONIC_CMP: case ZYDIS_MNEMONIC_TEST:
        return is_accumulator_form(zi) ? alu_accumulator(x) : plain(x);
    case ZYDIS_MNEMONIC_MOV:
        return mov(x);
    case ZYDIS_MNEMONIC_MOVZX: case ZYDIS_MNEMONIC_MOVSX:
        return mov_from_high(x) || plain(x);
    case ZYDIS_MNEMONIC_IMUL:
        return zi->operand_count_visible == 1 ? jit_mul_div(x) : plain(x);
    case ZYDIS_MNEMONIC_MUL: case ZYDIS_MNEMONIC_DIV: case ZYDIS_MNEMONIC_IDIV:
        return jit_mul_div(x);
    case ZYDIS_MNEMONIC_SHL: case ZYDIS_MNEMONIC_SHR: case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL: case ZYDIS_MNEMONIC_ROR: case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR: case ZYDIS_MNEMONIC_SHLD: case ZYDIS_MNEMONIC_SHRD:
        return shift_cl(x);
    case ZYDIS_MNEMONIC_BT: case ZYDIS_MNEMONIC_BTS: case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
        return bit_test(x);
    case ZYDIS_MNEMONIC_INC: case ZYDIS_MNEMONIC_DEC:
        return inc_dec(x);
    case ZYDIS_MNEMONIC_MOVSXD: case ZYDIS_MNEMONIC_NEG: case ZYDIS_MNEMONIC_NOT: case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: case ZYDIS_MNEMONIC_TZCNT: case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_POPCNT: case ZYDIS_MNEMONIC_XADD: case ZYDIS_MNEMONIC_MOVBE:
    case ZYDIS_MNEMONIC_CRC32: case ZYDIS_MNEMONIC_ANDN: case ZYDIS_MNEMONIC_BEXTR:
    case ZYDIS_MNEMONIC_BZHI: case ZYDIS_MNEMONIC_SHLX: case ZYDIS_MNEMONIC_SARX:
    case ZYDIS_MNEMONIC_SHRX: case ZYDIS_MNEMONIC_RORX: case ZYDIS_MNEMONIC_PDEP:
    case ZYDIS_MNEMONIC_PEXT: case ZYDIS_MNEMONIC_BLSI: case ZYDIS_MNEMONIC_BLSMSK:
    case ZYDIS_MNEMONIC_BLSR: case ZYDIS_MNEMONIC_ADCX: case ZYDIS_MNEMONIC_ADOX:
    case ZYDIS_MNEMONIC_MOVNTI: case ZYDIS_MNEMONIC_SETB: case ZYDIS_MNEMONIC_SETBE:
    case ZYDIS_MNEMONIC_SETL: case ZYDIS_MNEMONIC_SETLE: case ZYDIS_MNEMONIC_SETNB:
    case ZYDIS_MNEMONIC_SETNBE: case ZYDIS_MNEMONIC_SETNL: case ZYDIS_MNEMONIC_SETNLE:
    case ZYDIS_MNEMONIC_SETNO: case ZYDIS_MNEMONIC_SETNP: case ZYDIS_MNEMONIC_SETNS:
    case ZYDIS_MNEMONIC_SETNZ: case ZYDIS_MNEMONIC_SETO: case ZYDIS_MNEMONIC_SETP:
    case ZYDIS_MNEMONIC_SETS: case ZYDIS_MNEMONIC_SETZ: case ZYDIS_MNEMONIC_CMOVB:
    case ZYDIS_MNEMONIC_CMOVBE: case ZYDIS_MNEMONIC_CMOVL: case ZYDIS_MNEMONIC_CMOVLE:
    case ZYDIS_MNEMONIC_CMOVNB: case ZYDIS_MNEMONIC_CMOVNBE: case ZYDIS_MNEMONIC_CMOVNL:
    case ZYDIS_MNEMONIC_CMOVNLE: case ZYDIS_MNEMONIC_CMOVNO: case ZYDIS_MNEMONIC_CMOVNP:
    case ZYDIS_MNEMONIC_CMOVNS: case ZYDIS_MNEMONIC_CMOVNZ: case ZYDIS_MNEMONIC_CMOVO:
    case ZYDIS_MNEMONIC_CMOVP: case ZYDIS_MNEMONIC_CMOVS: case ZYDIS_MNEMONIC_CMOVZ:
        return plain(x);
    case ZYDIS_MNEMONIC_LEA:
        return lea(x);
    case ZYDIS_MNEMONIC_XCHG:
        return xchg(x);
    case ZYDIS_MNEMONIC_CMPXCHG:
        return cmpxchg(x);
    case ZYDIS_MNEMONIC_MULX:
        return jit_mulx(x);
    case ZYDIS_MNEMONIC_BSWAP:
        return bswap(x);
    case ZYDIS_MNEMONIC_CBW: case ZYDIS_MNEMONIC_CWDE: case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWD: case ZYDIS_MNEMONIC_CDQ: case ZYDIS_MNEMONIC_CQO:
        return jit_widen(x);
    case ZYDIS_MNEMONIC_CLC: case ZYDIS_MNEMONIC_STC: case ZYDIS_MNEMONIC_CMC:
        return flag_op(x);
    case ZYDIS_MNEMONIC_NOP: case ZYDIS_MNEMONIC_ENDBR32: case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PREFETCHNTA: case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1: case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW: case ZYDIS_MNEMONIC_PREFETCH:
        return true;
    case ZYDIS_MNEMONIC_PAUSE:
        e8(&x->e, 0xf3);
        e8(&x->e, 0x90);
        return true;
    case ZYDIS_MNEMONIC_LFENCE: case ZYDIS_MNEMONIC_MFENCE: case ZYDIS_MNEMONIC_SFENCE:
        e8(&x->e, 0x0f);
        e8(&x->e, 0xae);
        e8(&x->e, zi->raw.modrm.reg << 3 | 0xc0);
        return true;
    default:
        return false;
    }
}
