/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control flow and the stack: jumps, calls, returns, PUSH, POP, LEAVE (64-bit mode). */
#include "accel/tcg/jit.h"

static uint64_t next_rip(const JitCtx *x)
{
    return x->tb->rip + jit_insn(x)->off + jit_insn(x)->len;
}

static uint64_t branch_target(const JitCtx *x)
{
    return next_rip(x) + (uint64_t)x->zi[x->index].raw.imm[0].value.s;
}

/* Condition of Jcc from its opcode. */
static unsigned condition(const JitCtx *x)
{
    return x->zi[x->index].opcode & 15;
}

static bool jcc(JitCtx *x)
{
    jit_flags_need(x);
    jit_settle(x);
    jit_exit_jcc(x, condition(x), branch_target(x), next_rip(x));
    return true;
}

static bool jmp_direct(JitCtx *x)
{
    jit_settle(x);
    jit_exit_direct(x, 0, branch_target(x));
    return true;
}

/* JECXZ, JRCXZ and LOOP: RCX or ECX by the address size. No flag changes. */
static bool count_jump(JitCtx *x)
{
    bool w = jit_insn(x)->asz == ASZ_64, loop = x->zi[x->index].mnemonic == ZYDIS_MNEMONIC_LOOP;
    unsigned cx = jit_reg[R_RCX];

    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    if (loop) {
        emit_lea(&x->e, w, cx, cx, H_NONE, 0, -1);
    }
    emit_op_rr(&x->e, w, 0x85, cx, cx);
    jit_exit_jcc(x, loop ? CC_NZ : CC_Z, branch_target(x), next_rip(x));
    return true;
}

/* ---- Stack ---- */

/* RCX = RSP + by, probed for 8 bytes. */
static void stack_probe(JitCtx *x, JitStub *s, int32_t by, unsigned access)
{
    emit_lea(&x->e, true, H_CX, jit_reg[R_RSP], H_NONE, 0, by);
    jit_probe(x, s, 8, access);
}

static void stack_move(JitCtx *x, int32_t by)
{
    emit_lea(&x->e, true, jit_reg[R_RSP], jit_reg[R_RSP], H_NONE, 0, by);
}

static JitStub *stack_begin(JitCtx *x, StubKind kind)
{
    jit_flags_clobber(x, x->live[x->index]);
    return jit_stub(x, kind);
}

static unsigned gpr64(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                   ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_GPR64
               ? (unsigned)ZydisRegisterGetId(o->reg.value)
               : H_NONE;
}

static bool push(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    const ZydisDecodedOperand *o = &x->op[x->index][0];
    unsigned g = gpr64(o);

    if (zi->operand_width != 64 || (g == H_NONE && o->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)) {
        return false;
    }
    stack_probe(x, stack_begin(x, STUB_INTERP), -8, MEM_WRITE);
    if (g == H_NONE) {
        emit_st_imm32(&x->e, H_CX, 0, (int32_t)zi->raw.imm[0].value.s);
    } else {
        emit_st(&x->e, jit_get(x, g, H_DX), H_CX, 0);
    }
    stack_move(x, -8);
    jit_store_check(x, 8);
    return true;
}

static bool pop(JitCtx *x)
{
    unsigned g = gpr64(&x->op[x->index][0]), h;

    if (g == H_NONE) {
        return false;
    }
    stack_probe(x, stack_begin(x, STUB_INTERP), 0, MEM_READ);
    h = jit_dst(g, H_DX);
    emit_ld(&x->e, h, H_CX, 0);
    if (g != R_RSP) {
        stack_move(x, 8);
    }
    jit_put(x, g, h);
    return true;
}

/* RSP = RBP; POP RBP. */
static bool leave(JitCtx *x)
{
    JitStub *s;

    if (x->zi[x->index].operand_width != 64) {
        return false;
    }
    s = stack_begin(x, STUB_INTERP);
    emit_mov_rr(&x->e, H_CX, jit_reg[R_RBP]);
    jit_probe(x, s, 8, MEM_READ);
    emit_lea(&x->e, true, jit_reg[R_RSP], jit_reg[R_RBP], H_NONE, 0, 8);
    emit_ld(&x->e, jit_reg[R_RBP], H_CX, 0);
    return true;
}

/* ---- Calls and returns ---- */

/* Pushes the return address; the target, if indirect, is in the AREA_TARGET slot. */
static void push_return(JitCtx *x, JitStub *s)
{
    uint64_t ret = next_rip(x);

    stack_probe(x, s, -8, MEM_WRITE);
    if ((int64_t)ret == (int32_t)ret) {
        emit_st_imm32(&x->e, H_CX, 0, (int32_t)ret);
    } else {
        emit_mov_imm(&x->e, H_DX, ret);
        emit_st(&x->e, H_DX, H_CX, 0);
    }
    stack_move(x, -8);
}

/*
 * The store of a call: if it hit code, this instruction is done all the same, so it leaves with RIP
 * at the target, which goes to memory first.
 */
static void call_store_check(JitCtx *x)
{
    Emit *e = &x->e;
    uint8_t *clean;

    emit_ld(e, H_DX, H_AX, offsetof(TlbEntry, code_map));
    emit_alu_mem_imm8(e, true, 7, H_DX, 0, 0);
    clean = emit_jcc(e, CC_Z, NULL);
    emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    emit_mov_imm(e, H_DX, 8);
    emit_jmp(e, x->j->code_hit);
    emit_patch(e, clean, emit_here(e));
}

static bool call_direct(JitCtx *x)
{
    JitStub *s;

    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    emit_mov_imm(&x->e, H_AX, branch_target(x));
    emit_st(&x->e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    push_return(x, s);
    call_store_check(x);
    jit_exit_direct(x, 0, branch_target(x));
    return true;
}

/* RCX must be canonical, or the interpreter raises what is due. */
static void check_canonical(JitCtx *x, JitStub *s)
{
    emit_mov_rr(&x->e, H_AX, H_CX);
    emit_shift_imm(&x->e, true, 4, H_AX, 16);
    emit_shift_imm(&x->e, true, 7, H_AX, 16);
    emit_op_rr(&x->e, true, 0x3b, H_AX, H_CX);
    jit_stub_jcc(x, s, CC_NZ);
}

/* RCX = where JMP or CALL r/m64 leads. */
static bool indirect_target(JitCtx *x, JitStub *s)
{
    const ZydisDecodedOperand *o = &x->op[x->index][0];

    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        jit_ea(x, jit_insn(x));
        jit_probe(x, s, 8, MEM_READ);
        emit_ld(&x->e, H_CX, H_CX, 0);
    } else {
        emit_mov_rr(&x->e, H_CX, jit_get(x, gpr64(o), H_CX));
    }
    return true;
}

static bool is_near_indirect(const JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    return zi->opcode == 0xff && (zi->raw.modrm.reg == 2 || zi->raw.modrm.reg == 4) &&
           zi->operand_width == 64;
}

static bool jmp_indirect(JitCtx *x)
{
    JitStub *s;

    if (!is_near_indirect(x)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    indirect_target(x, s);
    jit_exit_rcx(x, s, 0);
    return true;
}

static bool call_indirect(JitCtx *x)
{
    JitStub *s;

    if (!is_near_indirect(x)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    indirect_target(x, s);
    check_canonical(x, s);
    emit_st(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    push_return(x, s);
    call_store_check(x);
    emit_ld(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    jit_exit_rcx(x, NULL, 0);
    return true;
}

static bool ret(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    JitStub *s;

    if (zi->operand_width != 64 || (zi->opcode != 0xc3 && zi->opcode != 0xc2)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    stack_probe(x, s, 0, MEM_READ);
    emit_ld(&x->e, H_CX, H_CX, 0);
    jit_exit_rcx(x, s, 8 + (int32_t)(zi->opcode == 0xc2 ? zi->raw.imm[0].value.u : 0));
    return true;
}

bool jit_flow(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_JB: case ZYDIS_MNEMONIC_JBE: case ZYDIS_MNEMONIC_JL:
    case ZYDIS_MNEMONIC_JLE: case ZYDIS_MNEMONIC_JNB: case ZYDIS_MNEMONIC_JNBE:
    case ZYDIS_MNEMONIC_JNL: case ZYDIS_MNEMONIC_JNLE: case ZYDIS_MNEMONIC_JNO:
    case ZYDIS_MNEMONIC_JNP: case ZYDIS_MNEMONIC_JNS: case ZYDIS_MNEMONIC_JNZ:
    case ZYDIS_MNEMONIC_JO: case ZYDIS_MNEMONIC_JP: case ZYDIS_MNEMONIC_JS:
    case ZYDIS_MNEMONIC_JZ:
        return jcc(x);
    case ZYDIS_MNEMONIC_JECXZ: case ZYDIS_MNEMONIC_JRCXZ: case ZYDIS_MNEMONIC_LOOP:
        return count_jump(x);
    case ZYDIS_MNEMONIC_JMP:
        return zi->opcode == 0xe9 || zi->opcode == 0xeb ? jmp_direct(x) : jmp_indirect(x);
    case ZYDIS_MNEMONIC_CALL:
        return zi->opcode == 0xe8 ? call_direct(x) : call_indirect(x);
    case ZYDIS_MNEMONIC_RET:
        return ret(x);
    case ZYDIS_MNEMONIC_PUSH:
        return push(x);
    case ZYDIS_MNEMONIC_POP:
        return pop(x);
    case ZYDIS_MNEMONIC_LEAVE:
        return leave(x);
    default:
        return false;
    }
}
