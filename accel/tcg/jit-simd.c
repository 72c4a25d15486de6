/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vector instructions: vector registers have the same numbers in guest and host, so only
 * general-purpose and memory operands are renamed.
 */
#include "accel/tcg/jit.h"
#include "accel/tcg/simd.h"

static void xmm_move(JitCtx *x, unsigned n, bool store)
{
    /* VMOVUPS ymm or MOVUPS xmm, to or from X86CPU.ymm[n]. */
    Op op = { .map = 1, .opcode = store ? 0x11 : 0x10, .vex = x->wide, .vl = 1 };

    emit_rm(&x->e, &op, n, JIT_CPU, JIT_OFF(ymm) + 32 * (int32_t)n);
}

void jit_xmm_spill(JitCtx *x, uint16_t mask)
{
    for (unsigned n = 0; n < 16; n++) {
        if (mask & (1u << n)) {
            xmm_move(x, n, true);
        }
    }
    if (x->wide && x->s.xmm) {
        /* VZEROUPPER: host code uses SSE. */
        e8(&x->e, 0xc5);
        e8(&x->e, 0xf8);
        e8(&x->e, 0x77);
    }
}

void jit_xmm_load(JitCtx *x, uint16_t mask)
{
    for (unsigned n = 0; n < 16; n++) {
        if (mask & (1u << n)) {
            xmm_move(x, n, false);
        }
    }
}

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

bool jit_simd_wants_csr(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    return is_ldmxcsr(zi) || is_stmxcsr(zi) ||
           (set_is_simple(zi) && !mnemonic_is_special(zi->mnemonic) && simd_uses_mxcsr(zi, op));
}

/*
 * Only what AVX itself runs: BMI is encoded with VEX too, and so is what raises #UD as the guest, and
 * perhaps the host, has no AVX.
 */
bool jit_simd_is_wide(const JitCtx *x, unsigned k)
{
    return x->zi[k].encoding == ZYDIS_INSTRUCTION_ENCODING_VEX && (x->tb->mode & MODE_AVX) &&
           set_is_simple(&x->zi[k]) && !tcg_insn_raises(&x->tb->insn[k]);
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
    uint16_t reads, writes; /* vector registers */
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
    /* A VEX instruction that does not read its destination clears what it does not write. */
    bool replaced = v->op.vex && o->actions == ZYDIS_OPERAND_ACTION_WRITE;
    ZydisRegisterClass cls = ZydisRegisterGetClass(o->reg.value);
    unsigned id = (unsigned)ZydisRegisterGetId(o->reg.value);
    bool write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    bool gpr = cls == ZYDIS_REGCLASS_GPR32 || cls == ZYDIS_REGCLASS_GPR64;

    if (!gpr && cls != ZYDIS_REGCLASS_XMM && cls != ZYDIS_REGCLASS_YMM &&
        cls != ZYDIS_REGCLASS_MMX) {
        return false;
    }
    if (!gpr && cls != ZYDIS_REGCLASS_MMX) {
        v->reads |= replaced ? 0 : (uint16_t)(1u << id);
        v->writes |= write ? (uint16_t)(1u << id) : 0;
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

/* Loads what is not there yet, and notes what will change. */
static void vec_registers(JitCtx *x, const Vec *v)
{
    jit_xmm_load(x, v->reads & (uint16_t)~x->s.xmm);
    x->s.xmm |= v->reads | v->writes;
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

    vec_registers(x, v);
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
    x->s.dirty |= v->writes;
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
    vec_registers(x, v);
    if (v->gpr_reg) {
        v->reg = v->reg_written ? jit_dst(v->greg, H_DX) : jit_get(x, v->greg, H_DX);
    }
    if (v->gpr_rm) {
        v->rm = v->rm_written ? jit_dst(v->grm, H_AX) : jit_get(x, v->grm, H_AX);
    }
    emit_rr(&x->e, &v->op, v->reg, v->rm);
    x->s.dirty |= v->writes;
    vec_flags(x);
    if (v->gpr_reg && v->reg_written) {
        jit_put(x, v->greg, v->reg);
    }
    if (v->gpr_rm && v->rm_written) {
        jit_put(x, v->grm, v->rm);
    }
}

/* VZEROUPPER on what is in memory and in registers. */
static bool vzeroupper(JitCtx *x)
{
    jit_xmm_spill(x, x->s.dirty);
    x->s.dirty = x->s.xmm = 0;
    /* VPXOR XMM0, XMM0, XMM0, and stores of its upper half's zeros. */
    emit_rr(&x->e, &(Op){ .map = 1, .opcode = 0xef, .vex = true, .pp = 1, .vvvv = 0 }, 0, 0);
    for (int32_t n = 0; n < (jit_is64(x) ? 16 : 8); n++) {
        emit_rm(&x->e, &(Op){ .map = 1, .opcode = 0x11, .vex = true }, 0, JIT_CPU,
                JIT_OFF(ymm) + 32 * n + 16);
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
    bool vex = zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    Vec v;

    if ((x->tb->mode & (MODE_SSE_UD | MODE_SSE_NM)) || (vex && !(x->tb->mode & MODE_AVX)) ||
        !set_is_simple(zi)) {
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
    if (mnemonic_is_special(zi->mnemonic) || !vec_parse(x, &v)) {
        return false;
    }
    if (v.mem) {
        vec_memory(x, &v);
    } else {
        vec_plain(x, &v);
    }
    return true;
}
