/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vector instructions: vector registers have the same numbers in guest and host, so only
 * general-purpose and memory operands are renamed. Where they are between blocks: X86CPU.accel_vectors.
 */
#include "accel/tcg/jit.h"
#include "accel/tcg/simd.h"
#include "target/i386/cpuid.h"

/* ---- To the host's registers and back ---- */

/* VMOVUPS or MOVUPS, host register n: X86CPU.ymm[n], or bytes in it from by. */
static void vector_move(Emit *e, bool store, bool vex, bool whole, unsigned n, int32_t by)
{
    emit_rm(e, &(Op){ .map = 1, .opcode = store ? 0x11 : 0x10, .vex = vex, .vl = whole }, n, JIT_CPU,
            JIT_OFF(ymm) + 32 * (int32_t)n + by);
}

/* ZF: all upper halves are zero. */
static void uppers_test(Emit *e)
{
    Op vpor = { .map = 1, .opcode = 0xeb, .vex = true, .pp = 1 };

    for (unsigned n = 0; n < 16; n++) {
        if (n < 4) {
            vector_move(e, false, true, false, n, 16);
        } else {
            vpor.vvvv = n & 3;
            emit_rm(e, &vpor, n & 3, JIT_CPU, JIT_OFF(ymm) + 32 * (int32_t)n + 16);
        }
    }
    vpor.vvvv = 0;
    for (unsigned n = 1; n < 4; n++) {
        emit_rr(e, &vpor, 0, n);
    }
    emit_rr(e, &(Op){ .map = 2, .opcode = 0x17, .vex = true, .pp = 1 }, 0, 0); /* VPTEST */
}

static void vectors_move(Emit *e, bool store, bool vex, bool whole)
{
    for (unsigned n = 0; n < 16; n++) {
        vector_move(e, store, vex, whole, n, 0);
    }
}

static void emit_vzeroupper(Emit *e)
{
    e8(e, 0xc5);
    e8(e, 0xf8);
    e8(e, 0x77);
}

/*
 * Upper halves that are all zero are not loaded: with a host that takes them for zero, SSE instructions
 * run at full speed (elsewhere each of them waits for what its destination held before).
 */
static void vectors_load_emit(Jit *j, Emit *e, const X86CPU *c, bool avx)
{
    uint8_t *whole = NULL, *done;

    j->vectors_load = emit_here(e);
    if (avx) {
        uppers_test(e);
        whole = emit_jcc(e, CC_NZ, NULL);
    }
    vectors_move(e, false, avx, false);
    if (avx) {
        done = emit_jmp(e, NULL);
        emit_patch(e, whole, emit_here(e));
        vectors_move(e, false, true, true);
        emit_patch(e, done, emit_here(e));
    }
    emit_mov_imm(e, H_AX, (uintptr_t)&c->tcg->csr_live);
    emit_rm(e, &(Op){ .map = 1, .opcode = 0xb6 }, H_AX, H_AX, 0); /* MOVZX */
    emit_alu_imm(e, false, 0, H_AX, VECTORS_LIVE);
    emit_op_rm(e, false, 0x88, H_AX, JIT_CPU, JIT_OFF(accel_vectors));
    e8(e, 0xc3);
}

_Static_assert(VECTORS_LIVE_CSR == VECTORS_LIVE + true, "computed from csr_live");

void jit_vectors_common_emit(Jit *j, Emit *e, const X86CPU *c)
{
    /* What the guest has not got the host may lack, and upper halves are zero. */
    bool avx = x86_has(c, FEAT_1_ECX, CPUID_1_ECX_AVX);

    vectors_load_emit(j, e, c, avx);
    j->vectors_home = emit_here(e);
    vectors_move(e, true, avx, true);
    if (avx) {
        emit_vzeroupper(e); /* our C code uses SSE */
    }
    emit_rm(e, &(Op){ .opcode = 0xc6, .imm = VECTORS_HOME, .imm_len = 1 }, 0, JIT_CPU,
            JIT_OFF(accel_vectors));
    e8(e, 0xc3);
}

void jit_vectors_leave(const Jit *j, Emit *e)
{
    uint8_t *home;

    emit_rm(e, &(Op){ .opcode = 0x80, .imm = VECTORS_HOME, .imm_len = 1 }, 7, JIT_CPU,
            JIT_OFF(accel_vectors));
    home = emit_jcc(e, CC_Z, NULL);
    emit_call(e, j->vectors_home);
    emit_patch(e, home, emit_here(e));
}

void jit_vectors_again(JitCtx *x, unsigned n)
{
    if (n < x->vectors) {
        emit_call(&x->e, x->j->vectors_load);
    }
}

/* ---- What is taken ---- */

/* Instruction sets whose instructions compute with their explicit operands only. */
static bool set_is_simple(const ZydisDecodedInstruction *zi)
{
    switch (zi->meta.isa_ext) {
    case ZYDIS_ISA_EXT_SSE: case ZYDIS_ISA_EXT_SSE2: case ZYDIS_ISA_EXT_SSE3:
    case ZYDIS_ISA_EXT_SSSE3: case ZYDIS_ISA_EXT_SSE4: case ZYDIS_ISA_EXT_AES:
    case ZYDIS_ISA_EXT_PCLMULQDQ: case ZYDIS_ISA_EXT_SHA: case ZYDIS_ISA_EXT_AVX:
    case ZYDIS_ISA_EXT_AVX2: case ZYDIS_ISA_EXT_FMA: case ZYDIS_ISA_EXT_F16C:
    case ZYDIS_ISA_EXT_AVXAES: case ZYDIS_ISA_EXT_MMX:
        return true;
    default:
        return false;
    }
}

static bool mnemonic_is_special(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_CVTPI2PS: case ZYDIS_MNEMONIC_CVTPI2PD: /* may touch the x87 tags */
    case ZYDIS_MNEMONIC_MASKMOVQ: case ZYDIS_MNEMONIC_MASKMOVDQU: case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVPS: case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD: case ZYDIS_MNEMONIC_VPMASKMOVQ:
    case ZYDIS_MNEMONIC_VZEROALL: case ZYDIS_MNEMONIC_VZEROUPPER:
    case ZYDIS_MNEMONIC_PCMPESTRI: case ZYDIS_MNEMONIC_PCMPESTRM:
    case ZYDIS_MNEMONIC_PCMPISTRI: case ZYDIS_MNEMONIC_PCMPISTRM:
    case ZYDIS_MNEMONIC_VPCMPESTRI: case ZYDIS_MNEMONIC_VPCMPESTRM:
    case ZYDIS_MNEMONIC_VPCMPISTRI: case ZYDIS_MNEMONIC_VPCMPISTRM:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_VGATHERDPS: case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERQPS: case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERDD: case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VPGATHERQD: case ZYDIS_MNEMONIC_VPGATHERQQ:
        return true;
    default:
        return false;
    }
}

/* LDMXCSR, STMXCSR and their VEX forms: with the guest's MXCSR in the host's register they are what they are. */
static bool is_ldmxcsr(const ZydisDecodedInstruction *zi)
{
    return zi->mnemonic == ZYDIS_MNEMONIC_LDMXCSR || zi->mnemonic == ZYDIS_MNEMONIC_VLDMXCSR;
}

static bool is_stmxcsr(const ZydisDecodedInstruction *zi)
{
    return zi->mnemonic == ZYDIS_MNEMONIC_STMXCSR || zi->mnemonic == ZYDIS_MNEMONIC_VSTMXCSR;
}

/* Does jit_simd() look at it? */
static bool is_taken(const JitCtx *x, unsigned k)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];

    return !(x->tb->mode & (MODE_SSE_UD | MODE_SSE_NM)) && set_is_simple(zi) &&
           (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_VEX || (x->tb->mode & MODE_AVX)) &&
           (!mnemonic_is_special(zi->mnemonic) || zi->mnemonic == ZYDIS_MNEMONIC_VZEROUPPER) &&
           !tcg_insn_raises(&x->tb->insn[k]);
}

bool jit_simd_wants_csr(const JitCtx *x, unsigned k)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];

    return is_taken(x, k) && (is_ldmxcsr(zi) || is_stmxcsr(zi) || simd_uses_mxcsr(zi, x->op[k]));
}

bool jit_simd_wants_vectors(const JitCtx *x, unsigned k)
{
    if (!is_taken(x, k)) {
        return false;
    }
    if (jit_simd_wants_csr(x, k)) {
        return true;
    }
    for (unsigned n = 0; n < x->zi[k].operand_count; n++) {
        ZydisRegisterClass cls = x->op[k][n].type == ZYDIS_OPERAND_TYPE_REGISTER
                                     ? ZydisRegisterGetClass(x->op[k][n].reg.value)
                                     : ZYDIS_REGCLASS_INVALID;

        if (cls == ZYDIS_REGCLASS_XMM || cls == ZYDIS_REGCLASS_YMM) {
            return true;
        }
    }
    return x->zi[k].mnemonic == ZYDIS_MNEMONIC_VZEROUPPER;
}

static bool names_mmx(const JitCtx *x, unsigned k)
{
    for (unsigned n = 0; n < x->zi[k].operand_count; n++) {
        if (x->op[k][n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            ZydisRegisterGetClass(x->op[k][n].reg.value) == ZYDIS_REGCLASS_MMX) {
            return true;
        }
    }
    return false;
}

/* MMX registers are x87 registers and live in the host together with them (jit-x87.c). */
bool jit_mmx_wants(const JitCtx *x, unsigned k)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];

    return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && !(x->tb->mode & MODE_FPU_NM) &&
           set_is_simple(zi) && !mnemonic_is_special(zi->mnemonic) &&
           !tcg_insn_raises(&x->tb->insn[k]) &&
           (zi->mnemonic == ZYDIS_MNEMONIC_EMMS || names_mmx(x, k));
}

/* Bytes the memory operand must be aligned to; 1: none. */
static unsigned alignment(const ZydisDecodedInstruction *zi, unsigned size)
{
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_MOVUPS: case ZYDIS_MNEMONIC_MOVUPD: case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU:
        return 1;
    case ZYDIS_MNEMONIC_VMOVAPS: case ZYDIS_MNEMONIC_VMOVAPD: case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVNTDQ: case ZYDIS_MNEMONIC_VMOVNTPS: case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_VMOVNTDQA:
        return size;
    default:
        return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && size == 16 ? 16 : 1;
    }
}

typedef struct Vec {
    Op op;
    unsigned reg, rm;   /* host numbers */
    unsigned put;       /* guest register to store, or H_NONE */
    unsigned put_from;
    bool mem, mem_write;
    unsigned size;      /* of the memory operand */
    bool gpr_reg, gpr_rm;
    uint8_t greg, grm;
    bool reg_written, rm_written;
} Vec;

/* Moves to and from general registers have no 64-bit form outside 64-bit code. */
static bool w_is_ignored(const ZydisDecodedInstruction *zi)
{
    switch (zi->raw.vex.m_mmmm << 8 | zi->opcode) {
    case 0x16e: case 0x17e: case 0x12a: case 0x12c: case 0x12d: case 0x316: case 0x322:
        return true;
    default:
        return false;
    }
}

static void vec_op(const ZydisDecodedInstruction *zi, Op *op)
{
    *op = (Op){ .opcode = zi->opcode };
    if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
        op->vex = true;
        op->map = zi->raw.vex.m_mmmm;
        op->w = zi->raw.vex.W && !(zi->machine_mode != ZYDIS_MACHINE_MODE_LONG_64 && w_is_ignored(zi));
        op->vl = zi->raw.vex.L;
        op->pp = zi->raw.vex.pp;
    } else {
        for (unsigned i = 0; i < zi->raw.prefix_count && op->nprefix < 3; i++) {
            if (zi->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_MANDATORY ||
                (zi->raw.prefixes[i].value == 0x66 &&
                 zi->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_EFFECTIVE)) {
                op->prefix[op->nprefix++] = zi->raw.prefixes[i].value;
            }
        }
        op->map = zi->opcode_map == ZYDIS_OPCODE_MAP_0F     ? 1
                  : zi->opcode_map == ZYDIS_OPCODE_MAP_0F38 ? 2
                                                            : 3;
        op->w = zi->raw.rex.W;
    }
    if (zi->raw.imm[0].size) {
        op->imm_len = zi->raw.imm[0].size / 8;
        op->imm = (int64_t)zi->raw.imm[0].value.u;
    }
}

static bool vec_register(Vec *v, const ZydisDecodedOperand *o)
{
    ZydisRegisterClass cls = ZydisRegisterGetClass(o->reg.value);
    unsigned id = (unsigned)ZydisRegisterGetId(o->reg.value);
    bool write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    bool gpr = cls == ZYDIS_REGCLASS_GPR32 || cls == ZYDIS_REGCLASS_GPR64;

    if (!gpr && cls != ZYDIS_REGCLASS_XMM && cls != ZYDIS_REGCLASS_YMM &&
        cls != ZYDIS_REGCLASS_MMX) {
        return false;
    }
    switch (o->encoding) {
    case ZYDIS_OPERAND_ENCODING_MODRM_REG:
        v->reg = id;
        v->gpr_reg = gpr;
        v->greg = (uint8_t)id;
        v->reg_written = write;
        return true;
    case ZYDIS_OPERAND_ENCODING_MODRM_RM:
        v->rm = id;
        v->gpr_rm = gpr;
        v->grm = (uint8_t)id;
        v->rm_written = write;
        return true;
    case ZYDIS_OPERAND_ENCODING_NDSNDD:
        v->op.vvvv = (uint8_t)id;
        return !gpr;
    case ZYDIS_OPERAND_ENCODING_IS4: /* VBLENDV's mask; outside 64-bit code bit 7 is ignored */
        v->op.imm = (v->op.imm & 15) | (int64_t)id << 4;
        return !gpr;
    default:
        /* BLENDV's XMM0, SHA256RNDS2's XMM0 */
        return !gpr && o->encoding == ZYDIS_OPERAND_ENCODING_NONE;
    }
}

static bool vec_parse(const JitCtx *x, Vec *v)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];

    *v = (Vec){ .reg = zi->raw.modrm.reg };
    vec_op(zi, &v->op);
    for (unsigned k = 0; k < zi->operand_count; k++) {
        const ZydisDecodedOperand *o = &x->op[x->index][k];

        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            v->mem = true;
            v->size = o->size / 8;
            v->mem_write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
            if (o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM) {
                return false;
            }
        } else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
                (o->reg.value == ZYDIS_REGISTER_MXCSR || o->reg.value == ZYDIS_REGISTER_RFLAGS ||
                 o->reg.value == ZYDIS_REGISTER_EFLAGS)) {
                continue;
            }
            if (!vec_register(v, o)) {
                return false;
            }
        }
    }
    return !v->mem || (v->size && v->size <= 32);
}

static void vec_flags(JitCtx *x)
{
    if (x->zi[x->index].cpu_flags && x->zi[x->index].cpu_flags->modified & FL_ARITH) {
        jit_flags_set(x); /* COMISx, PTEST, VTESTPx set or clear all six */
    }
}

/* A value at [RCX + disp] with other control bits than the host's register has here is the interpreter's. */
static void csr_check(JitCtx *x, JitStub *s, int32_t disp)
{
    Emit *e = &x->e;

    emit_op_rm(e, false, 0x8b, H_DX, H_CX, disp);
    emit_alu_imm(e, false, 4, H_DX, ~0x3f);
    emit_alu_imm(e, false, 7, H_DX, MXCSR_DEFAULT);
    jit_stub_jcc(x, s, CC_NZ);
}

static void vec_memory(JitCtx *x, Vec *v)
{
    Emit *e = &x->e;
    unsigned align = alignment(&x->zi[x->index], v->size);
    int32_t disp;
    JitStub *s;

    if (is_ldmxcsr(&x->zi[x->index])) {
        jit_flags_clobber(x, x->live[x->index]); /* the interpreter may be asked after the probe too */
    }
    s = jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = v->size, .align = align,
                           .access = v->mem_write ? MEM_WRITE : MEM_READ }, &disp);
    if (is_ldmxcsr(&x->zi[x->index])) {
        csr_check(x, s, disp);
    }
    if (v->gpr_reg) {
        v->reg = v->reg_written ? jit_dst(v->greg, H_DX) : jit_get(x, v->greg, H_DX);
    }
    emit_rm(e, &v->op, v->reg, H_CX, disp);
    vec_flags(x);
    if (v->gpr_reg && v->reg_written) {
        jit_put(x, v->greg, v->reg);
    }
    if (v->mem_write) {
        jit_store_check(x, v->size, disp);
    }
}

static void vec_plain(JitCtx *x, Vec *v)
{
    if (v->gpr_reg) {
        v->reg = v->reg_written ? jit_dst(v->greg, H_DX) : jit_get(x, v->greg, H_DX);
    }
    if (v->gpr_rm) {
        v->rm = v->rm_written ? jit_dst(v->grm, H_AX) : jit_get(x, v->grm, H_AX);
    }
    emit_rr(&x->e, &v->op, v->reg, v->rm);
    vec_flags(x);
    if (v->gpr_reg && v->reg_written) {
        jit_put(x, v->greg, v->reg);
    }
    if (v->gpr_rm && v->rm_written) {
        jit_put(x, v->grm, v->rm);
    }
}

/* Outside 64-bit code registers 8 to 15 stay as they are; VMOVAPS XMMn, XMMn does the others one by one. */
static bool vzeroupper(JitCtx *x)
{
    if (jit_is64(x)) {
        emit_vzeroupper(&x->e);
        return true;
    }
    for (unsigned n = 0; n < 8; n++) {
        emit_rr(&x->e, &(Op){ .map = 1, .opcode = 0x28, .vex = true }, n, n);
    }
    return true;
}

static bool emms(JitCtx *x)
{
    e8(&x->e, 0x0f);
    e8(&x->e, 0x77);
    return true;
}

bool jit_simd(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    Vec v;

    if (!is_taken(x, x->index)) {
        return false;
    }
    if (zi->mnemonic == ZYDIS_MNEMONIC_VZEROUPPER) {
        return vzeroupper(x);
    }
    if (zi->mnemonic == ZYDIS_MNEMONIC_EMMS) {
        return jit_mmx_wants(x, x->index) && emms(x);
    }
    if (names_mmx(x, x->index) && !jit_mmx_wants(x, x->index)) {
        return false;
    }
    if (!vec_parse(x, &v)) {
        return false;
    }
    if (v.mem) {
        vec_memory(x, &v);
    } else {
        vec_plain(x, &v);
    }
    return true;
}
