/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands: address, TLB probe, and the look after a store whether it hit code.
 *
 * The probe is the interpreter's (tlb.h): the entry is chosen by the first byte, the tag compared
 * with the page of the last, so that an access into the next page never matches.
 */
#include "accel/tcg/jit.h"

void jit_ea(JitCtx *x, const Insn *i)
{
    Emit *e = &x->e;
    bool w = i->asz == ASZ_64;
    unsigned base = H_NONE, index = H_NONE;

    if (i->base != R_ZERO) {
        base = jit_get(x, i->base, H_CX);
    }
    if (i->index != R_ZERO) {
        index = jit_get(x, i->index, H_AX);
    }
    if (base == H_NONE && index == H_NONE) {
        emit_mov_imm(e, H_CX, w ? (uint64_t)i->disp : (uint32_t)i->disp);
    } else if (i->disp != (int32_t)i->disp) {
        /* Only the offset forms of MOV have such a displacement, and they are not translated. */
        emit_mov_imm(e, H_DX, (uint64_t)i->disp);
        emit_lea(e, w, H_CX, base == H_NONE ? H_DX : base, index, i->scale, 0);
    } else {
        emit_lea(e, w, H_CX, base, index, i->scale, (int32_t)i->disp);
    }
    if (i->flags & INSN_SEGBASE) {
        emit_op_rm(e, true, 0x03, H_CX, JIT_CPU,
                   JIT_OFF(seg) + (int32_t)(i->seg * sizeof(SegmentCache) +
                                            offsetof(SegmentCache, base)));
    }
}

void jit_probe(JitCtx *x, JitStub *s, unsigned size, unsigned access)
{
    Emit *e = &x->e;
    int32_t tag = access & MEM_WRITE ? offsetof(TlbEntry, wtag) : offsetof(TlbEntry, rtag);

    emit_mov32_rr(e, H_AX, H_CX);
    /* Index times the size of an entry, 64 bytes. */
    emit_shift_imm(e, false, 5, H_AX, TARGET_PAGE_BITS - 6);
    emit_alu_imm(e, false, 4, H_AX, (int32_t)((TLB_ENTRIES - 1) << 6));
    emit_op_rm(e, true, 0x03, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TLB));
    if (size > 1) {
        emit_lea(e, true, H_DX, H_CX, H_NONE, 0, (int32_t)size - 1);
    } else {
        emit_mov_rr(e, H_DX, H_CX);
    }
    emit_alu_imm(e, true, 4, H_DX, (int32_t)TARGET_PAGE_MASK);
    emit_op_rm(e, true, 0x3b, H_DX, H_AX, tag);
    jit_stub_jcc(x, s, CC_NZ);
    emit_op_rm(e, true, 0x03, H_CX, H_AX, offsetof(TlbEntry, addend));
}

void jit_store_check(JitCtx *x, unsigned size)
{
    Emit *e = &x->e;
    JitStub *s;

    emit_ld(e, H_DX, H_AX, offsetof(TlbEntry, code_map));
    jit_flags_clobber(x, jit_live_after(x));
    emit_alu_mem_imm8(e, true, 7, H_DX, 0, 0);
    s = jit_stub(x, STUB_CODE_HIT);
    s->size = (uint8_t)size;
    jit_stub_jcc(x, s, CC_NZ);
}

_Static_assert(sizeof(TlbEntry) == 64, "the probe shifts by the size of an entry");
