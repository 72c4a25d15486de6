/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x87 in translated code. While TcgCpu.x87_live is set the guest's x87 state is in the host's
 * registers: the first block that wants it there loads it, tcg_x87_home() takes it to X86CPU before
 * the interpreter, a state image or anybody else looks at it. Host code in between uses no x87 and
 * no MMX instruction, and the C library's first one would come after tcg_fp_sync().
 *
 * Only while all exceptions are masked: then none is ever pending, nothing is raised on the host, and
 * stack faults are but bits of FSW. Instruction and data pointers are the guest's: translated code
 * notes them itself (the host's would be those of its own code), the data pointer at each memory
 * operand, the rest where the block is left.
 */
#include "accel/tcg/jit.h"
#include "accel/tcg/simd.h"
#include "accel/tcg/x87.h"

#define FCW_MASKS 0x003fu

/* ---- Into the host's registers and back ---- */

void tcg_x87_home_slow(X86CPU *c)
{
    X87State *x = &c->x87;

    __asm__ volatile("fxsave64 %0; fninit" : "+m"(*x));
    x->rsvd = 0;
    x->fop = (uint16_t)*jit_area(c, AREA_FOP);
    x->fip = *jit_area(c, AREA_FIP);
    x->fdp = *jit_area(c, AREA_FDP);
    c->tcg->x87_live = false;
}

void tcg_x87_drop(X86CPU *c)
{
    if (c->tcg->x87_live) {
        __asm__ volatile("fninit");
        c->tcg->x87_live = false;
    }
}

bool jit_x87_load(X86CPU *c)
{
    X87State *x = &c->x87;

    if ((x->fcw & FCW_MASKS) != FCW_MASKS || (x->fsw & FSW_ES)) {
        return false;
    }
    x->mxcsr = host_getcsr(); /* FXRSTOR loads it, and XMM registers that nobody needs */
    __asm__ volatile("fxrstor64 %0"
                     :
                     : "m"(*x)
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    *jit_area(c, AREA_FOP) = x->fop;
    *jit_area(c, AREA_FIP) = x->fip;
    *jit_area(c, AREA_FDP) = x->fdp;
    c->tcg->x87_live = true;
    return true;
}

/* ---- What is taken ---- */

static bool is_control(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_FLDCW: case ZYDIS_MNEMONIC_FNSTCW: case ZYDIS_MNEMONIC_FNSTSW:
    case ZYDIS_MNEMONIC_FNCLEX: case ZYDIS_MNEMONIC_FWAIT:
        return true;
    default:
        return false;
    }
}

/* State images, FNINIT and the 80287's instructions are the interpreter's. */
static bool is_taken(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_FNSTENV: case ZYDIS_MNEMONIC_FLDENV: case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FRSTOR: case ZYDIS_MNEMONIC_FNINIT:
    case ZYDIS_MNEMONIC_FENI8087_NOP: case ZYDIS_MNEMONIC_FDISI8087_NOP:
    case ZYDIS_MNEMONIC_FSETPM287_NOP:
        return false;
    default:
        return true;
    }
}

static const ZydisDecodedOperand *memory_operand(const JitCtx *x, unsigned k)
{
    for (unsigned n = 0; n < x->zi[k].operand_count; n++) {
        if (x->op[k][n].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            return &x->op[k][n];
        }
    }
    return NULL;
}

static bool is_x87(const ZydisDecodedInstruction *zi)
{
    return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           ((zi->opcode & 0xf8) == 0xd8 || zi->mnemonic == ZYDIS_MNEMONIC_FWAIT);
}

bool jit_x87_wants(const JitCtx *x, unsigned k)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];
    const ZydisDecodedOperand *m = memory_operand(x, k);

    return is_x87(zi) && !(x->tb->mode & MODE_FPU_NM) &&
           !tcg_insn_raises(&x->tb->insn[k]) && is_taken(zi->mnemonic) &&
           (!m || (m->size && m->size <= 80 &&
                   !(x->tb->insn[k].flags & (INSN_SEGBASE | INSN_SEGCHECK))));
}

/* ---- Pointers ---- */

/* CPUID.7.EBX[13]: FCS and FDS are deprecated and read as 0. */
static bool no_selectors(const JitCtx *x)
{
    return x86_has(x->c, FEAT_7_0_EBX, BIT(13));
}

static void selector_note(JitCtx *x, unsigned seg, int32_t to)
{
    emit_rm(&x->e, &(Op){ .map = 1, .opcode = 0xb7 }, H_DX, JIT_CPU,
            JIT_OFF(seg) + (int32_t)(seg * sizeof(SegmentCache) + offsetof(SegmentCache, selector)));
    emit_rm(&x->e, &(Op){ .prefix = { 0x66 }, .nprefix = 1, .opcode = 0x89 }, H_DX, JIT_CPU, to);
}

/* s->x87 is the last instruction whose place is to be noted, plus 1. Clobbers RDX only. */
void jit_x87_note(JitCtx *x, JitState *s)
{
    Emit *e = &x->e;
    const Insn *i;

    if (!s->x87) {
        return;
    }
    i = &x->tb->insn[s->x87 - 1];
    emit_mov_imm(e, H_DX, (x->tb->rip + i->off) & x->c->tcg->rip_mask);
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_FIP));
    emit_st_imm32(e, JIT_CPU, JIT_OFF_AREA(AREA_FOP), i->aux16);
    if (no_selectors(x)) {
        emit_rm(e, &(Op){ .opcode = 0xc7, .imm_len = 4 }, 0, JIT_CPU, JIT_OFF(x87_fcs));
    } else {
        selector_note(x, R_CS, JIT_OFF(x87_fcs));
    }
    s->x87 = 0;
}

_Static_assert(offsetof(X86CPU, x87_fds) == offsetof(X86CPU, x87_fcs) + 2, "cleared together");

/* ---- Instructions ---- */

/* The offset in RCX is that of the operand; it counts once the instruction is sure to run. */
static void data_pointer_before(JitCtx *x)
{
    emit_st(&x->e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
}

static void data_pointer_after(JitCtx *x)
{
    emit_ld(&x->e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_st(&x->e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_FDP));
    if (!no_selectors(x)) {
        selector_note(x, jit_insn(x)->seg, JIT_OFF(x87_fds));
    }
}

/* A control word that unmasks something is for the interpreter. */
static void fldcw(JitCtx *x, JitStub *s, int32_t disp)
{
    Emit *e = &x->e;

    emit_rm(e, &(Op){ .map = 1, .opcode = 0xb7 }, H_DX, H_CX, disp);
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
    emit_rr(e, &(Op){ .opcode = 0xf7 }, 2, H_DX); /* NOT EDX */
    emit_rr(e, &(Op){ .opcode = 0xf6, .imm = FCW_MASKS, .imm_len = 1 }, 0, H_DX);
    jit_stub_jcc(x, s, CC_NZ);
    emit_rm(e, &(Op){ .opcode = 0xd9 }, 5, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
}

static void with_memory(JitCtx *x, const ZydisDecodedOperand *m)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    bool store = m->actions & (ZYDIS_OPERAND_ACTION_WRITE | ZYDIS_OPERAND_ACTION_CONDWRITE);
    bool control = is_control(zi->mnemonic);
    int32_t disp;
    JitStub *s;

    if (!control) {
        jit_ea(x, jit_insn(x));
        data_pointer_before(x);
    }
    if (zi->mnemonic == ZYDIS_MNEMONIC_FLDCW) {
        jit_flags_clobber(x, x->live[x->index]); /* the interpreter may be asked after the probe too */
    }
    s = jit_mem(x, &(JitWant){ .ea = jit_insn(x), .size = m->size / 8,
                               .access = store ? MEM_WRITE : MEM_READ }, &disp);
    if (zi->mnemonic == ZYDIS_MNEMONIC_FLDCW) {
        fldcw(x, s, disp);
        return;
    }
    if (!control) {
        data_pointer_after(x);
        x->s.x87 = (uint8_t)(x->index + 1);
    }
    emit_rm(&x->e, &(Op){ .opcode = zi->opcode }, zi->raw.modrm.reg, H_CX, disp);
    if (store) {
        jit_store_check(x, m->size / 8, disp);
    }
}

/* FCMOVcc reads flags, FCOMI and its like set them. */
static void with_registers(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    unsigned use, def;

    jit_flags_of(zi, &use, &def);
    if (use || (def && (jit_live_after(x) & ~def))) {
        jit_flags_need(x);
    }
    e8(&x->e, zi->opcode);
    e8(&x->e, (uint8_t)(zi->raw.modrm.mod << 6 | zi->raw.modrm.reg << 3 | zi->raw.modrm.rm));
    if (def) {
        jit_flags_set(x);
    }
    if (!is_control(zi->mnemonic)) {
        x->s.x87 = (uint8_t)(x->index + 1);
    }
}

static void fnstsw_ax(JitCtx *x)
{
    e8(&x->e, 0xdf);
    e8(&x->e, 0xe0);
    emit_rr(&x->e, &(Op){ .prefix = { 0x66 }, .nprefix = 1, .opcode = 0x8b }, jit_reg[R_RAX], H_AX);
}

bool jit_x87(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->index];
    const ZydisDecodedOperand *m = memory_operand(x, x->index);

    if (!jit_x87_wants(x, x->index)) {
        return false;
    }
    if (zi->mnemonic == ZYDIS_MNEMONIC_FWAIT) {
        return true; /* nothing is pending */
    }
    if (m) {
        with_memory(x, m);
    } else if (zi->mnemonic == ZYDIS_MNEMONIC_FNSTSW) {
        fnstsw_ax(x);
    } else {
        with_registers(x);
    }
    return true;
}
