/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bit strings: BT and its like with an offset that may lead far from the operand's address. */
#include "accel/tcg/jit-insn.h"

/* BT, BTS, BTR, BTC with a register as bit offset of a memory operand: the bit may be anywhere. */
bool jit_bit_string(JitCtx *x, Plain *p)
{
    static const Insn anywhere = { .base = R_RAX, .index = R_ZERO, .asz = ASZ_64 };
    Emit *e = &x->e;
    bool w = p->rm.size == 8, write = x->zi[x->index].mnemonic != ZYDIS_MNEMONIC_BT;
    JitStub *s;

    if (p->rm.size < 4 || ((jit_insn(x)->flags & INSN_SEGBASE) && jit_insn(x)->asz != ASZ_64)) {
        return false;
    }
    jit_flags_clobber(x, x->live[x->index]);
    s = jit_stub_interp(x);
    jit_ea(x, jit_insn(x));
    emit_op_rr(e, true, w ? 0x8b : 0x63, H_AX, jit_get(x, p->reg.reg, H_AX));
    emit_shift_imm(e, true, 7, H_AX, w ? 6 : 5);
    emit_lea(e, jit_insn(x)->asz == ASZ_64, H_CX, H_CX, H_AX, w ? 3 : 2, 0);
    jit_probe(x, s, &anywhere, p->rm.size, write ? MEM_WRITE : MEM_READ);
    emit_mov_rr(e, H_DX, jit_get(x, p->reg.reg, H_DX));
    emit_alu_imm(e, false, 4, H_DX, w ? 63 : 31);
    /* CF is set, the others stay. */
    if (jit_live_after(x) & ~FL_CF) {
        emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
        jit_flags_before(x, true);
        emit_ld(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    }
    emit_rm(e, &p->op, H_DX, H_CX, 0);
    jit_flags_set(x);
    if (write) {
        jit_store_check(x, p->rm.size, 0);
    }
    return true;
}
