/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integer instructions that work on RAX and RDX: multiplication, division, widening. */
#include "accel/tcg/jit-insn.h"

/* The one-operand forms: RAX and RDX by their own names, the operand in RCX. */
bool jit_mul_div(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool div = zi->mnemonic == ZYDIS_MNEMONIC_DIV || zi->mnemonic == ZYDIS_MNEMONIC_IDIV;
    unsigned size = zi->operand_width / 8;
    Operand r = jit_operand_of(&x->op[x->index][0]);
    JitStub *s = NULL;
    int32_t disp = 0;
    Op op = { .opcode = zi->opcode, .w = size == 8 };

    if (r.high || size < 4) {
        return false;
    }
    if (div) {
        jit_flags_clobber(x, x->live[x->index]); /* the interpreter may be asked after the probe too */
    }
    if (r.where == W_MEM) {
        s = jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = size, .access = MEM_READ }, &disp);
    } else if (div) {
        s = jit_stub_interp(x);
    }
    if (r.where == W_MEM) {
        emit_op_rm(&x->e, size == 8, 0x8b, H_CX, H_CX, disp);
    } else {
        emit_mov_rr(&x->e, H_CX, jit_get(x, r.reg, H_CX));
    }
    jit_flags_before(x, false);
    if (div && jit_live_after(x)) {
        jit_flags_need(x); /* all undefined: left as they were */
    }
    emit_mov_rr(&x->e, H_AX, jit_reg[R_RAX]);
    emit_mov_rr(&x->e, H_DX, jit_reg[R_RDX]);
    emit_rr(&x->e, &op, zi->raw.modrm.reg, H_CX);
    if (div) {
        /* Where jit_sigfpe() finds the way to the interpreter: NOP dword [RAX + disp32]. */
        e8(&x->e, 0x0f);
        e8(&x->e, 0x1f);
        e8(&x->e, 0x80);
        s->rel[s->nrel++] = x->e.p;
        x->e.p += 4;
    }
    jit_flags_set(x);
    emit_mov_rr(&x->e, jit_reg[R_RAX], H_AX);
    emit_mov_rr(&x->e, jit_reg[R_RDX], H_DX);
    return true;
}

/* MULX high, low, r/m: multiplies by RDX and sets no flag. */
bool jit_mulx(JitCtx *x)
{
    Plain p;
    int32_t disp;
    unsigned high, low;

    if (!jit_plain_parse_mulx(x, &p)) {
        return false;
    }
    high = jit_dst(p.reg.reg, H_AX);
    low = jit_dst(p.vvvv.reg, H_DX);
    p.op.vvvv = (uint8_t)low;
    if (p.rm.where == W_MEM) {
        jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = p.rm.size, .access = MEM_READ }, &disp);
        emit_mov_rr(&x->e, H_DX, jit_reg[R_RDX]);
        emit_rm(&x->e, &p.op, high, H_CX, disp);
    } else {
        unsigned src = jit_get(x, p.rm.reg, H_CX);

        emit_mov_rr(&x->e, H_DX, jit_reg[R_RDX]);
        emit_rr(&x->e, &p.op, high, src);
    }
    /* Low first: if both are one register, the high half stays. */
    jit_put(x, p.vvvv.reg, low);
    jit_put(x, p.reg.reg, high);
    return true;
}

/* CBW CWDE CDQE (98), CWD CDQ CQO (99). */
bool jit_widen(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    unsigned size = zi->operand_width / 8;

    emit_mov_rr(&x->e, H_AX, jit_reg[R_RAX]);
    if (zi->opcode == 0x99) {
        emit_mov_rr(&x->e, H_DX, jit_reg[R_RDX]);
    }
    if (size == 2) {
        e8(&x->e, 0x66);
    } else if (size == 8) {
        e8(&x->e, 0x48);
    }
    e8(&x->e, zi->opcode);
    if (zi->opcode == 0x98) {
        emit_mov_rr(&x->e, jit_reg[R_RAX], H_AX);
    } else {
        emit_mov_rr(&x->e, jit_reg[R_RDX], H_DX);
    }
    return true;
}
