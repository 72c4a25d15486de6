/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers that run a stub: availability and alignment checks, memory operand in, stub, memory
 * operand out. The two common shapes (all operands vectors in registers; the same with a load) have
 * handlers of their own.
 */
#include "accel/tcg/simd.h"

void simd_raise_sse(X86CPU *c, const Insn *i)
{
    bool ud = (c->cr0 & CR0_EM) || !(c->cr4 & CR4_OSFXSR);
    tcg_raise(c, i, ud ? EXCP_UD : EXCP_NM);
}

void simd_raise_avx(X86CPU *c, const Insn *i)
{
    bool ud = !(c->cr0 & CR0_PE) || (c->rflags & FL_VM) || !(c->cr4 & CR4_OSXSAVE) ||
              (c->xcr0 & 6) != 6;
    tcg_raise(c, i, ud ? EXCP_UD : EXCP_NM);
}

const void *simd_load_slow(X86CPU *c, const Insn *i, uint64_t lin, unsigned size, void *buf)
{
    switch (size) {
    case 1:
        *(uint8_t *)buf = tcg_ld8(c, i, lin);
        break;
    case 2:
        *(uint16_t *)buf = tcg_ld16(c, i, lin);
        break;
    case 4:
        *(uint32_t *)buf = tcg_ld32(c, i, lin);
        break;
    case 8:
        *(uint64_t *)buf = tcg_ld64(c, i, lin);
        break;
    default:
        if (unlikely(simd_ac_active(c) && (lin & (size < 16 ? 7 : 15)))) {
            tcg_raise_err(c, i, EXCP_AC, 0);
        }
        tcg_ld_buf(c, i, lin, buf, size);
    }
    return buf;
}

void simd_store(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned size)
{
    switch (size) {
    case 1:
        tcg_st8(c, i, lin, *(const uint8_t *)buf);
        return;
    case 2:
        tcg_st16(c, i, lin, *(const uint16_t *)buf);
        return;
    case 4:
        tcg_st32(c, i, lin, *(const uint32_t *)buf);
        return;
    case 8:
        tcg_st64(c, i, lin, *(const uint64_t *)buf);
        return;
    case 16:
        if (likely(simd_store_direct(c, lin, buf, 16))) {
            return;
        }
        break;
    case 32:
        if (likely(simd_store_direct(c, lin, buf, 32))) {
            return;
        }
        break;
    default:
        break;
    }
    if (unlikely(simd_ac_active(c) && (lin & (size < 16 ? 7 : 15)))) {
        tcg_raise_err(c, i, EXCP_AC, 0);
    }
    tcg_st_buf(c, i, lin, buf, size);
}

/* ---- The common shapes ---- */

static inline void run_vector(X86CPU *c, const Insn *i, bool vex, bool fp, bool load)
{
    if (vex) {
        avx_check(c, i);
    } else {
        sse_check(c, i);
    }
    SimdStubFn *fn = simd_stub(c, i);
    void *rm = c->ymm[i->rm];
    if (load) {
        uint64_t lin = tcg_ea(c, i, i->aux8, false);
        if (i->aux16 & SI_ALIGN) {
            simd_align(c, i, lin, i->aux8);
        }
        /* A stub only reads its memory operand. */
        rm = (void *)(uintptr_t)simd_load(c, i, lin, i->aux8, c->tcg->simd->buf);
    }
    if (fp) {
        simd_fp_run(c, i, fn, c->ymm[i->reg], rm, c->ymm[i->vvvv], c->ymm[i->opsize]);
    } else {
        fn(c->ymm[i->reg], rm, c->ymm[i->vvvv], c, c->ymm[i->opsize]);
    }
}

#define VECTOR_HANDLER(name, vex, fp, load)                                                        \
    static void name(X86CPU *c, const Insn *i)                                                     \
    {                                                                                              \
        run_vector(c, i, vex, fp, load);                                                           \
        NEXT(c, i);                                                                                \
    }
VECTOR_HANDLER(sse_reg, false, false, false)
VECTOR_HANDLER(sse_load, false, false, true)
VECTOR_HANDLER(sse_fp_reg, false, true, false)
VECTOR_HANDLER(sse_fp_load, false, true, true)
VECTOR_HANDLER(avx_reg, true, false, false)
VECTOR_HANDLER(avx_load, true, false, true)
VECTOR_HANDLER(avx_fp_reg, true, true, false)
VECTOR_HANDLER(avx_fp_load, true, true, true)

/* ---- All others ---- */

static void *operand_home(X86CPU *c, unsigned kc, unsigned n)
{
    switch (kc) {
    case KC_GPR:
        return &c->regs[n];
    case KC_MMX:
        return mmx_reg(c, n);
    default:
        return c->ymm[n];
    }
}

static void check_all(X86CPU *c, const Insn *i)
{
    if (i->aux16 & SI_VEX) {
        avx_check(c, i);
    } else if (!(i->aux16 & SI_NOSSE)) {
        sse_check(c, i);
    }
    if (i->aux16 & SI_MMX) {
        mmx_check(c, i);
    }
}

/* Address of the memory operand, checked; for a store, that it will not fault. */
static uint64_t prepare_memory(X86CPU *c, const Insn *i)
{
    bool store = i->aux16 & SI_STORE;
    uint64_t lin = tcg_ea(c, i, i->aux8, store);
    if (i->aux16 & SI_ALIGN) {
        simd_align(c, i, lin, i->aux8);
    }
    if (store && (i->aux16 & (SI_MMX | SI_FP))) {
        tcg_probe_write(c, i, lin, i->aux8);
    }
    return lin;
}

static void simd_any(X86CPU *c, const Insn *i)
{
    uint64_t key = i->imm, lin = 0;
    void *rm;
    check_all(c, i);
    if (key & KEY_MEM) {
        uint8_t *buf = c->tcg->simd->buf;
        lin = prepare_memory(c, i);
        rm = i->aux16 & SI_STORE
                 ? buf
                 : (void *)(uintptr_t)simd_load(c, i, lin, i->aux8, buf);
    } else {
        rm = operand_home(c, KEY_RM(key), i->rm);
    }
    if (i->aux16 & SI_MMX) {
        mmx_enter(c);
    }
    SimdStubFn *fn = simd_stub(c, i);
    void *reg = operand_home(c, KEY_REG(key), i->reg);
    if (i->aux16 & SI_FP) {
        simd_fp_run(c, i, fn, reg, rm, c->ymm[i->vvvv], c->ymm[i->opsize]);
    } else {
        fn(reg, rm, c->ymm[i->vvvv], c, c->ymm[i->opsize]);
    }
    if (i->aux16 & SI_MMX) {
        if (KEY_REG(key) == KC_MMX && (key & KEY_REG_WR)) {
            mmx_wrote(c, i->reg);
        } else if (KEY_RM(key) == KC_MMX && (key & KEY_RM_WR)) {
            mmx_wrote(c, i->rm);
        }
    }
    if (i->aux16 & SI_STORE) {
        simd_store(c, i, lin, rm, i->aux8);
    }
    NEXT(c, i);
}

void simd_pick_handler(Insn *out)
{
    static InsnFn *const fns[8] = { sse_reg, sse_load, sse_fp_reg, sse_fp_load,
                                    avx_reg, avx_load, avx_fp_reg, avx_fp_load };
    uint64_t key = out->imm;
    unsigned reg = KEY_REG(key), rm = KEY_RM(key);
    bool vectors = (reg == KC_NONE || reg >= KC_XMM) && (rm == KC_NONE || rm >= KC_XMM) &&
                   !(out->aux16 & (SI_STORE | SI_MMX | SI_NOSSE));
    if (!vectors) {
        out->fn = simd_any;
        return;
    }
    out->fn = fns[(key & KEY_VEX ? 4 : 0) | (out->aux16 & SI_FP ? 2 : 0) | (key & KEY_MEM ? 1 : 0)];
}
