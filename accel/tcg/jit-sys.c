/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions of kernels that run too often to be left to the interpreter: CLI, STI, PUSHF, PUSH
 * of memory, CMPXCHG16B. 64-bit code only.
 */
#include "accel/tcg/jit.h"
#include "accel/tcg/mmu.h"

/* IOPL does not matter at CPL 0; elsewhere the interpreter judges. */
static void need_cpl0(JitCtx *x, JitStub *s)
{
    emit_rm(&x->e, &(Op){ .opcode = 0x80, .imm_len = 1 }, 7, JIT_CPU, JIT_OFF(cpl));
    jit_stub_jcc(x, s, CC_NZ);
}

static bool cli(JitCtx *x)
{
    JitStub *s;

    jit_flags_clobber(x, x->live[x->index]);
    s = jit_stub_interp(x);
    need_cpl0(x, s);
    emit_rm(&x->e, &(Op){ .w = true, .opcode = 0x81, .imm = ~(int64_t)FL_IF, .imm_len = 4 }, 4, JIT_CPU,
            JIT_OFF(rflags));
    return true;
}

/*
 * Nothing waits to be delivered: IF is set and the next instruction is entered without a look at
 * requests, which is what STI's shadow is for (JitBlock.shadow: the exit is linked so or not at all, and
 * the engine is told of the shadow). Else the interpreter does it.
 */
static bool sti(JitCtx *x)
{
    Emit *e = &x->e;
    uint64_t next = jit_rip(x, x->tb->rip + x->tb->len);
    JitStub *s;

    if (x->index + 1 != x->n || x->tb->cross || x->c->tcg->counting ||
        ((next ^ x->tb->rip) & TARGET_PAGE_MASK)) {
        return false;
    }
    jit_settle(x);
    x->s.flags = FLAGS_MEM;
    s = jit_stub(x, STUB_INTERP_END);
    need_cpl0(x, s);
    emit_alu_mem_imm8(e, false, 7, JIT_CPU, JIT_OFF(base.exit_request), 0);
    jit_stub_jcc(x, s, CC_NZ);
    emit_mov_imm(e, H_AX, (uintptr_t)&x->c->tcg->irq_waiting);
    emit_rm(e, &(Op){ .opcode = 0x80, .imm_len = 1 }, 7, H_AX, 0);
    jit_stub_jcc(x, s, CC_NZ);
    /* NMIs that wait wait for IRET, not for IF. */
    emit_rm(e, &(Op){ .opcode = 0x80, .imm_len = 1 }, 7, JIT_CPU, JIT_OFF(nmi_pending));
    jit_stub_jcc(x, s, CC_NZ);
    emit_rm(e, &(Op){ .w = true, .opcode = 0x81, .imm = FL_IF, .imm_len = 4 }, 1, JIT_CPU, JIT_OFF(rflags));
    x->jb->shadow = true;
    jit_exit_direct(x, 0, next);
    return true;
}

/* EDX = RFLAGS as pushed. The flags are in memory. */
static void rflags_image(JitCtx *x)
{
    Emit *e = &x->e;

    emit_rm(e, &(Op){ .map = 1, .opcode = 0xb7 }, H_AX, JIT_CPU, JIT_OFF(cc));
    emit_mov32_rr(e, H_DX, H_AX);
    emit_shift_imm(e, false, 5, H_DX, 8);
    emit_alu_imm(e, false, 4, H_DX, 0xd5);
    emit_alu_imm(e, false, 4, H_AX, 1);
    emit_shift_imm(e, false, 4, H_AX, 11);
    emit_op_rr(e, false, 0x0b, H_DX, H_AX);
    emit_op_rm(e, false, 0x8b, H_AX, JIT_CPU, JIT_OFF(rflags));
    emit_alu_imm(e, false, 4, H_AX, (int32_t)~(FL_VM | FL_RF | FL_ARITH));
    emit_alu_imm(e, false, 1, H_AX, FL_1);
    emit_op_rr(e, false, 0x0b, H_DX, H_AX);
}

/* Pushes what is in RDX. */
static void push_rdx(JitCtx *x)
{
    const Insn ea = jit_stack_address(x, -8);
    Emit *e = &x->e;
    int32_t disp;

    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    jit_mem(x, &(JitWant){ .ea = &ea, .size = 8, .access = MEM_WRITE }, &disp);
    emit_ld(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_op_rm(e, true, 0x89, H_DX, H_CX, disp);
    emit_lea(e, true, jit_reg[R_RSP], jit_reg[R_RSP], H_NONE, 0, -8);
    jit_store_check(x, 8, disp);
}

static bool pushf(JitCtx *x)
{
    if (x->zi[x->index].operand_width != 64) {
        return false;
    }
    jit_flags_save(x);
    rflags_image(x);
    x->s.flags = FLAGS_MEM;
    push_rdx(x);
    return true;
}

static bool push_memory(JitCtx *x)
{
    JitStub *s;

    if (x->zi[x->index].operand_width != 64 || x->op[x->index][0].type != ZYDIS_OPERAND_TYPE_MEMORY) {
        return false;
    }
    jit_flags_clobber(x, x->live[x->index]);
    s = jit_stub_interp(x);
    jit_ea(x, jit_insn(x));
    jit_probe(x, s, jit_insn(x), 8, MEM_READ);
    emit_ld(&x->e, H_DX, H_CX, 0);
    push_rdx(x);
    return true;
}

/*
 * All of RAX, RDX, RBX, RCX are operands, so the address goes to RSI meanwhile, and the TLB entry to a
 * slot.
 */
static bool cmpxchg16b(JitCtx *x)
{
    Emit *e = &x->e;
    Op op = { .w = true, .map = 1, .opcode = 0xc7 };
    JitStub *s;

    if (x->zi[x->index].attributes & ZYDIS_ATTRIB_HAS_LOCK) {
        op.prefix[op.nprefix++] = 0xf0;
    }
    jit_flags_clobber(x, x->live[x->index]);
    s = jit_stub_interp(x);
    jit_ea(x, jit_insn(x));
    emit_rr(e, &(Op){ .opcode = 0xf6, .imm = 15, .imm_len = 1 }, 0, H_CX); /* TEST CL, 15: #GP */
    jit_stub_jcc(x, s, CC_NZ);
    jit_probe(x, s, jit_insn(x), 16, MEM_WRITE);
    emit_st(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    if (jit_live_after(x) & ~FL_ZF) {
        jit_flags_need(x);
    }
    emit_st(e, jit_reg[R_RSI], JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_mov_rr(e, jit_reg[R_RSI], H_CX);
    emit_mov_rr(e, H_AX, jit_reg[R_RAX]);
    emit_mov_rr(e, H_DX, jit_reg[R_RDX]);
    emit_mov_rr(e, H_CX, jit_reg[R_RCX]);
    emit_rm(e, &op, 1, jit_reg[R_RSI], 0);
    jit_flags_set(x);
    emit_mov_rr(e, H_CX, jit_reg[R_RSI]);
    emit_ld(e, jit_reg[R_RSI], JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_mov_rr(e, jit_reg[R_RAX], H_AX);
    emit_mov_rr(e, jit_reg[R_RDX], H_DX);
    emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TARGET));
    jit_store_check(x, 16, 0);
    return true;
}

bool jit_system(JitCtx *x)
{
    if (!jit_is64(x)) {
        return false;
    }
    switch (x->zi[x->index].mnemonic) {
    case ZYDIS_MNEMONIC_CLI:
        return cli(x);
    case ZYDIS_MNEMONIC_STI:
        return sti(x);
    case ZYDIS_MNEMONIC_PUSHFQ:
        return pushf(x);
    case ZYDIS_MNEMONIC_PUSH:
        return push_memory(x);
    case ZYDIS_MNEMONIC_CMPXCHG16B:
        return cmpxchg16b(x);
    default:
        return false;
    }
}
