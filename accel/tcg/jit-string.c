/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * REP MOVS and REP STOS forwards within a page, as the host's: compilers copy structures so, and kernels clear pages.
 * What is longer, or goes backwards, is the interpreter's.
 */
#include "accel/tcg/jit.h"

static bool is_ours(const JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool movs = (zi->opcode & 0xfe) == 0xa4, stos = (zi->opcode & 0xfe) == 0xaa;
    const Insn *i = jit_insn(x);

    return jit_is64(x) && i->asz == ASZ_64 && !(i->flags & (INSN_SEGBASE | INSN_SEGCHECK)) &&
           !x->c->tcg->counting && zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (movs || stos) &&
           (zi->attributes & ZYDIS_ATTRIB_HAS_REP);
}

/* log2 of the element's size. */
static unsigned element_shift(const ZydisDecodedInstruction *zi)
{
    return !(zi->opcode & 1) ? 0 : zi->operand_width == 16 ? 1 : zi->operand_width == 32 ? 2 : 3;
}

/* To the stub unless all elements from g on are in g's page. */
static void check_page(JitCtx *x, JitStub *s, unsigned g, unsigned shift)
{
    Emit *e = &x->e;

    emit_mov32_rr(e, H_AX, jit_reg[g]);
    emit_alu_imm(e, false, 4, H_AX, (int32_t)~TARGET_PAGE_MASK);
    emit_lea(e, true, H_AX, H_AX, jit_reg[R_RCX], shift, 0);
    emit_alu_imm(e, false, 7, H_AX, (int32_t)TARGET_PAGE_SIZE);
    jit_stub_jcc(x, s, CC_A);
}

/* To the stub unless 1 to as many elements as a page has go forwards. */
static void check_count(JitCtx *x, JitStub *s, unsigned shift)
{
    Emit *e = &x->e;

    emit_rm(e, &(Op){ .opcode = 0xf7, .imm = FL_DF, .imm_len = 4 }, 0, JIT_CPU, JIT_OFF(rflags));
    jit_stub_jcc(x, s, CC_NZ);
    emit_lea(e, true, H_AX, jit_reg[R_RCX], H_NONE, 0, -1);
    emit_alu_imm(e, true, 7, H_AX, (int32_t)(TARGET_PAGE_SIZE >> shift) - 1);
    jit_stub_jcc(x, s, CC_A);
}

/* RCX = host address of the element at g; to write, RAX = the code map, of a page without code. */
static void element_find(JitCtx *x, JitStub *s, unsigned g, bool write)
{
    const Insn ea = { .base = (uint8_t)g, .index = R_ZERO, .asz = ASZ_64 };

    emit_mov_rr(&x->e, H_CX, jit_reg[g]);
    jit_probe(x, s, &ea, 1, write ? MEM_WRITE : MEM_READ);
    if (write) {
        emit_alu_mem_imm8(&x->e, true, 7, H_AX, 0, 0);
        jit_stub_jcc(x, s, CC_NZ);
    }
}

/* The host's own: RCX: host address to store to, AREA_TEMP: to load from. */
static void run(JitCtx *x, bool load, unsigned shift)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    unsigned count = jit_reg[R_RCX], si = jit_reg[R_RSI], di = jit_reg[R_RDI];
    Emit *e = &x->e;

    /* RSI and RDI as they will be; RAX is what STOS stores. */
    emit_lea(e, true, H_DX, di, count, shift, 0);
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_REG(R_RDI));
    if (load) {
        emit_lea(e, true, H_DX, si, count, shift, 0);
        emit_ld(e, si, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    } else {
        emit_mov_rr(e, H_AX, jit_reg[R_RAX]);
    }
    emit_mov_rr(e, di, H_CX);
    emit_st(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_mov_rr(e, H_CX, count);
    if (shift == 1) {
        e8(e, 0x66);
    }
    e8(e, 0xf3);
    if (shift == 3) {
        e8(e, 0x48);
    }
    e8(e, zi->opcode);
    if (load) {
        emit_mov_rr(e, si, H_DX);
    }
    emit_ld(e, di, JIT_CPU, JIT_OFF_REG(R_RDI));
}

/* If the page holds code by now, leaves the block behind the instruction. */
static void check_code(JitCtx *x, unsigned shift)
{
    JitStub *hit = jit_stub(x, STUB_STRING_HIT);
    Emit *e = &x->e;

    emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    emit_lea(e, false, H_DX, H_NONE, jit_reg[R_RCX], shift, 0);
    emit_op_rr(e, false, 0x31, jit_reg[R_RCX], jit_reg[R_RCX]);
    emit_alu_mem_imm8(e, true, 7, H_AX, 0, 0);
    jit_stub_jcc(x, hit, CC_NZ);
}

/* EDX: bytes stored. */
void jit_stub_string_hit_emit(JitCtx *x, JitStub *s)
{
    const Insn *i = &x->tb->insn[s->index];
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    emit_mov_imm(e, H_AX, x->tb->rip + i->off + i->len);
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    emit_ld(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_jmp(e, x->j->code_hit);
}

bool jit_string(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    unsigned shift = element_shift(zi);
    bool load = (zi->opcode & 0xfe) == 0xa4;
    JitStub *s;

    if (!is_ours(x)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub_interp(x);
    check_count(x, s, shift);
    check_page(x, s, R_RDI, shift);
    if (load) {
        check_page(x, s, R_RSI, shift);
        element_find(x, s, R_RSI, false);
        emit_st(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    }
    element_find(x, s, R_RDI, true);
    emit_st(&x->e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    run(x, load, shift);
    check_code(x, shift);
    return true;
}
