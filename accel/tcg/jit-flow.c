/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control flow and the stack: jumps, calls, returns, PUSH, POP, LEAVE, in 64-bit and in flat
 * 32-bit code, where addresses, RIP and the stack's slots have 32 bits. */
#include "accel/tcg/jit.h"

static uint64_t next_rip(const JitCtx *x)
{
    return jit_rip(x, x->tb->rip + jit_insn(x)->off + jit_insn(x)->len);
}

static uint64_t branch_target(const JitCtx *x)
{
    return jit_rip(x, next_rip(x) + (uint64_t)x->zi[x->index].raw.imm[0].value.s);
}

/* Condition of Jcc from its opcode. */
static unsigned condition(const JitCtx *x)
{
    return x->zi[x->index].opcode & 15;
}

/* With an operand size of 16 bits RIP would be cut. */
static bool rip_is_cut(const JitCtx *x)
{
    return !jit_is64(x) && x->zi[x->index].operand_width == 16;
}

static bool jcc(JitCtx *x)
{
    if (rip_is_cut(x)) {
        return false;
    }
    jit_flags_need(x);
    jit_x87_note(x, &x->s);
    jit_exit_jcc(x, condition(x), branch_target(x), next_rip(x));
    return true;
}

static bool jmp_direct(JitCtx *x)
{
    if (rip_is_cut(x)) {
        return false;
    }
    jit_x87_note(x, &x->s);
    jit_exit_direct(x, 0, branch_target(x));
    return true;
}

/* JECXZ, JRCXZ and LOOP: RCX or ECX by the address size. No flag changes. */
static bool count_jump(JitCtx *x)
{
    bool w = jit_insn(x)->asz == ASZ_64, loop = x->zi[x->index].mnemonic == ZYDIS_MNEMONIC_LOOP;
    unsigned cx = jit_reg[R_RCX];

    if (rip_is_cut(x) || jit_insn(x)->asz == ASZ_16) {
        return false;
    }
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

/* Bytes of a slot of the stack. */
static int32_t slot(const JitCtx *x)
{
    return jit_is64(x) ? 8 : 4;
}

static bool is_full_width(const JitCtx *x)
{
    return x->zi[x->index].operand_width == 8 * slot(x);
}

/* Makes the slot at RSP + by addressable: jit_mem(). */
static JitStub *stack_mem(JitCtx *x, StubKind kind, int32_t by, unsigned access, int32_t *disp)
{
    const Insn ea = jit_stack_address(x, by);

    return jit_mem(x, &(JitWant){ .ea = &ea, .size = (unsigned)slot(x), .access = access, .kind = kind },
                   disp);
}

static void stack_move(JitCtx *x, int32_t by)
{
    emit_lea(&x->e, jit_is64(x), jit_reg[R_RSP], jit_reg[R_RSP], H_NONE, 0, by);
}

/* [RCX + disp] = r, r = [RCX + disp]: a slot. */
static void slot_store(JitCtx *x, unsigned r, int32_t disp)
{
    emit_op_rm(&x->e, jit_is64(x), 0x89, r, H_CX, disp);
}

static void slot_load(JitCtx *x, unsigned r, int32_t disp)
{
    emit_op_rm(&x->e, jit_is64(x), 0x8b, r, H_CX, disp);
}

static void slot_store_imm(JitCtx *x, int32_t v, int32_t disp)
{
    emit_rm(&x->e, &(Op){ .w = jit_is64(x), .opcode = 0xc7, .imm = v, .imm_len = 4 }, 0, H_CX, disp);
}

/* The register of full width that o is, or H_NONE. */
static unsigned gpr_full(const JitCtx *x, const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                   ZydisRegisterGetClass(o->reg.value) ==
                       (jit_is64(x) ? ZYDIS_REGCLASS_GPR64 : ZYDIS_REGCLASS_GPR32)
               ? (unsigned)ZydisRegisterGetId(o->reg.value)
               : H_NONE;
}

static bool push(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    const ZydisDecodedOperand *o = &x->op[x->index][0];
    unsigned g = gpr_full(x, o);
    int32_t disp;

    if (!is_full_width(x) || (g == H_NONE && o->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)) {
        return false;
    }
    stack_mem(x, STUB_INTERP, -slot(x), MEM_WRITE, &disp);
    if (g == H_NONE) {
        slot_store_imm(x, (int32_t)zi->raw.imm[0].value.s, disp);
    } else {
        slot_store(x, jit_get(x, g, H_DX), disp);
    }
    stack_move(x, -slot(x));
    if (jit_store_check(x, (unsigned)slot(x), disp)) {
        jit_mem_keep(x, true);
    }
    return true;
}

static bool pop(JitCtx *x)
{
    unsigned g = gpr_full(x, &x->op[x->index][0]), h;
    int32_t disp;

    if (g == H_NONE) {
        return false;
    }
    stack_mem(x, STUB_INTERP, 0, MEM_READ, &disp);
    h = jit_dst(g, H_DX);
    slot_load(x, h, disp);
    if (g != R_RSP) {
        stack_move(x, slot(x));
    }
    jit_put(x, g, h);
    jit_mem_keep(x, false);
    return true;
}

/* RSP = RBP; POP RBP. */
static bool leave(JitCtx *x)
{
    Insn ea = jit_stack_address(x, 0);
    int32_t disp;

    if (!is_full_width(x)) {
        return false;
    }
    ea.base = R_RBP;
    jit_mem(x, &(JitWant){ .ea = &ea, .size = (unsigned)slot(x), .access = MEM_READ }, &disp);
    emit_lea(&x->e, jit_is64(x), jit_reg[R_RSP], jit_reg[R_RBP], H_NONE, 0, slot(x));
    slot_load(x, jit_reg[R_RBP], disp);
    return true;
}

/* ---- Calls and returns ---- */

/* Pushes the return address, to [RCX + what is returned]. */
static int32_t push_return(JitCtx *x)
{
    uint64_t ret = next_rip(x);
    int32_t disp;

    stack_mem(x, STUB_INTERP_END, -slot(x), MEM_WRITE, &disp);
    if (!jit_is64(x) || (int64_t)ret == (int32_t)ret) {
        slot_store_imm(x, (int32_t)ret, disp);
    } else {
        emit_mov_imm(&x->e, H_DX, ret);
        slot_store(x, H_DX, disp);
    }
    stack_move(x, -slot(x));
    return disp;
}

/*
 * The store of a call: if it hit code, this instruction is done all the same, so it leaves with RIP
 * at the target: 0 stands for the one in the AREA_TARGET slot.
 */
static void call_store_check(JitCtx *x, int32_t disp, uint64_t target)
{
    JitStub *s = jit_stub(x, STUB_CALL_HIT);

    s->disp = disp;
    s->target = target;
    emit_alu_mem_imm8(&x->e, true, 7, H_AX, 0, 0);
    jit_stub_jcc(x, s, CC_NZ);
}

void jit_stub_call_hit_emit(JitCtx *x, JitStub *s)
{
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    if (s->target) {
        emit_mov_imm(e, H_AX, s->target);
    } else {
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    }
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    if (s->disp) {
        emit_lea(e, true, H_CX, H_CX, H_NONE, 0, s->disp);
    }
    emit_mov_imm(e, H_DX, (uint64_t)slot(x));
    emit_jmp(e, x->j->code_hit);
}

/* RCX must be canonical, or the interpreter raises what is due. 32 bits always are within CS. */
static void check_canonical(JitCtx *x, JitStub *s)
{
    if (!jit_is64(x)) {
        return;
    }
    emit_mov_rr(&x->e, H_AX, H_CX);
    emit_shift_imm(&x->e, true, 4, H_AX, 16);
    emit_shift_imm(&x->e, true, 7, H_AX, 16);
    emit_op_rr(&x->e, true, 0x3b, H_AX, H_CX);
    jit_stub_jcc(x, s, CC_NZ);
}

/*
 * A retpoline is CALL to MOV [RSP], reg; RET: a jump to reg that no processor predicts. Which register, or
 * H_NONE. The bytes looked at are in the same page; jit_restamp() watches them.
 */
static unsigned retpoline_register(JitCtx *x)
{
    const TcgBlock *to;
    const uint8_t *p;

    if (!jit_is64(x) || x->tb->cross || x->c->tcg->counting ||
        ((branch_target(x) ^ x->tb->rip) & TARGET_PAGE_MASK)) {
        return H_NONE;
    }
    to = tcg_block_beside(x->c->tcg->engine, x->tb, branch_target(x));
    p = to ? to->code : NULL;
    /* REX.W 89 /r with [RSP], and C3. */
    if (!p || to->n != 2 || to->len != 5 || (p[0] & 0xfb) != 0x48 || p[1] != 0x89 ||
        (p[2] & 0xc7) != 0x04 || p[3] != 0x24 || p[4] != 0xc3) {
        return H_NONE;
    }
    x->jb->peek[1].host = to->host;
    x->jb->peek[1].len = to->len;
    x->jb->peek[1].sum = jit_peek_sum(p, to->len);
    return (unsigned)(p[2] >> 3 & 7) | (p[0] & 4 ? 8 : 0);
}

/* As one jump. What it leaves below the stack is the guest's to see. */
static void retpoline(JitCtx *x, unsigned g)
{
    JitStub *s;
    int32_t disp;

    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    emit_mov_rr(&x->e, H_CX, jit_get(x, g, H_CX));
    check_canonical(x, s);
    emit_st(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    stack_mem(x, STUB_INTERP_END, -slot(x), MEM_WRITE, &disp);
    slot_store(x, jit_get(x, g, H_DX), disp);
    call_store_check(x, disp, 0);
    emit_ld(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    jit_exit_rcx(x, NULL, 0);
}

static bool call_direct(JitCtx *x)
{
    unsigned g = retpoline_register(x);
    int32_t disp;

    if (rip_is_cut(x)) {
        return false;
    }
    if (g != H_NONE && g != R_RSP) {
        retpoline(x, g);
        return true;
    }
    if (x->exit_live[0]) {
        jit_flags_save(x);
    }
    jit_x87_note(x, &x->s);
    x->s.flags = FLAGS_MEM;
    disp = push_return(x);
    call_store_check(x, disp, branch_target(x));
    jit_exit_direct(x, 0, branch_target(x));
    return true;
}

/* RCX = where JMP or CALL r/m64 leads. CALL's group, if any, is that of its push. */
static bool indirect_target(JitCtx *x, JitStub *s)
{
    const ZydisDecodedOperand *o = &x->op[x->index][0];

    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        jit_ea(x, jit_insn(x));
        jit_probe(x, s, jit_insn(x), (unsigned)slot(x), MEM_READ);
        slot_load(x, H_CX, 0);
    } else {
        emit_op_rr(&x->e, jit_is64(x), 0x8b, H_CX, jit_get(x, gpr_full(x, o), H_CX));
    }
    return true;
}

static bool is_near_indirect(const JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    return zi->opcode == 0xff && (zi->raw.modrm.reg == 2 || zi->raw.modrm.reg == 4) &&
           is_full_width(x);
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
    int32_t disp;

    if (!is_near_indirect(x)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    indirect_target(x, s);
    emit_st(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    jit_find_rcx(x, s); /* before anything is pushed: what is not canonical faults, and is never found */
    disp = push_return(x);
    call_store_check(x, disp, 0);
    emit_jmp_mem(&x->e, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    x->ended = true;
    return true;
}

static bool ret(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    JitStub *s;
    int32_t disp;

    if (!is_full_width(x) || (zi->opcode != 0xc3 && zi->opcode != 0xc2)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = stack_mem(x, STUB_INTERP_END, 0, MEM_READ, &disp);
    slot_load(x, H_CX, disp);
    jit_exit_rcx(x, s, slot(x) + (int32_t)(zi->opcode == 0xc2 ? zi->raw.imm[0].value.u : 0));
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
