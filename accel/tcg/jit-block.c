/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation of one block: flags and where they are, stubs, entry.
 *
 * Between blocks the arithmetic flags are in X86CPU.cc; inside a block they move to the host's EFLAGS when an
 * instruction wants them there. A backward pass says which flags are still wanted at each place, so that most
 * of our own compares need save nothing.
 */
#include <glib.h>
#include "accel/tcg/jit.h"
#include "qemu/log.h"

#define ROOM 200 /* bytes an instruction or a stub may take */

/* RAX RCX RDX RBX RSP RBP RSI RDI R8 R9 R10 R11 R12 R13 R14 R15 */
const uint8_t jit_reg[16] = { H_9,  H_10,   H_11,   H_BX,   H_15, H_14, H_SI,   H_DI,
                              H_8,  H_NONE, H_NONE, H_NONE, H_12, H_NONE, H_NONE, H_NONE };

/* ---- Registers ---- */

unsigned jit_get(JitCtx *x, unsigned g, unsigned scratch)
{
    if (jit_reg[g] != H_NONE) {
        return jit_reg[g];
    }
    emit_ld(&x->e, scratch, JIT_CPU, JIT_OFF_REG(g));
    return scratch;
}

void jit_put(JitCtx *x, unsigned g, unsigned h)
{
    if (jit_reg[g] == H_NONE) {
        emit_st(&x->e, h, JIT_CPU, JIT_OFF_REG(g));
    } else if (jit_reg[g] != h) {
        emit_mov_rr(&x->e, jit_reg[g], h);
    }
}

/* ---- Flags ---- */

/* SETO AL; LAHF; MOV [cc], AX. No flag changes. */
void jit_flags_store(Emit *e)
{
    emit_rr(e, &(Op){ .map = 1, .opcode = 0x90 | CC_O }, 0, H_AX);
    e8(e, 0x9f);
    emit_rm(e, &(Op){ .prefix = { 0x66 }, .nprefix = 1, .opcode = 0x89 }, H_AX, JIT_CPU,
            JIT_OFF(cc));
}

void jit_flags_save(JitCtx *x)
{
    if (x->s.flags == FLAGS_HOST) {
        jit_flags_store(&x->e);
        x->s.flags |= FLAGS_MEM;
    }
}

/* MOVZX EAX, word [cc]; ADD AL, 0x7f (makes OF); SAHF. */
void jit_flags_load(Emit *e)
{
    emit_rm(e, &(Op){ .map = 1, .opcode = 0xb7 }, H_AX, JIT_CPU, JIT_OFF(cc));
    e8(e, 0x04);
    e8(e, 0x7f);
    e8(e, 0x9e);
}

void jit_flags_need(JitCtx *x)
{
    if (!(x->s.flags & FLAGS_HOST)) {
        jit_flags_load(&x->e);
        x->s.flags |= FLAGS_HOST;
    }
}

void jit_flags_clobber(JitCtx *x, unsigned live)
{
    if (live) {
        jit_flags_save(x);
    }
    x->s.flags &= ~FLAGS_HOST;
}

static bool is_shift(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_SHL: case ZYDIS_MNEMONIC_SHR: case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL: case ZYDIS_MNEMONIC_ROR: case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR: case ZYDIS_MNEMONIC_SHLD: case ZYDIS_MNEMONIC_SHRD:
        return true;
    default:
        return false;
    }
}

/* A count that may be 0 keeps the flags. D0 and D1 shift by one. */
static bool count_may_be_zero(const ZydisDecodedInstruction *zi)
{
    if (zi->raw.imm[0].size) {
        return (zi->raw.imm[0].value.u & (zi->operand_width == 64 ? 63 : 31)) == 0;
    }
    return zi->opcode != 0xd0 && zi->opcode != 0xd1;
}

/* Instructions whose "undefined" flags no processor takes from what was there before. */
static bool undefined_is_replaced(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_AND: case ZYDIS_MNEMONIC_OR: case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_TEST: case ZYDIS_MNEMONIC_SHL: case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR: case ZYDIS_MNEMONIC_SHLD: case ZYDIS_MNEMONIC_SHRD:
        return true;
    default:
        return false;
    }
}

void jit_flags_of(const ZydisDecodedInstruction *zi, unsigned *use, unsigned *def)
{
    const ZydisAccessedFlags *f = zi->cpu_flags;

    *use = *def = 0;
    switch (zi->meta.category) {
    case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_SYSRET: case ZYDIS_CATEGORY_INTERRUPT:
        *use = FL_ARITH; /* RFLAGS as a whole goes to R11 or the stack before it is changed */
        return;
    default:
        break;
    }
    if (!f) {
        return;
    }
    *use = f->tested & FL_ARITH;
    *def = (f->modified | f->set_0 | f->set_1) & FL_ARITH;
    if (undefined_is_replaced(zi->mnemonic)) {
        *def |= f->undefined & FL_ARITH;
    }
    if ((is_shift(zi->mnemonic) && count_may_be_zero(zi)) ||
        (zi->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))) {
        *use |= *def; /* kept in part: they must be there */
        *def = 0;
    }
}

static bool names_mmx(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    for (unsigned k = 0; k < zi->operand_count; k++) {
        if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_MMX) {
            return true;
        }
    }
    return false;
}

static bool may_fault(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    for (unsigned k = 0; k < zi->operand_count; k++) {
        if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            return true;
        }
    }
    return zi->mnemonic == ZYDIS_MNEMONIC_DIV || zi->mnemonic == ZYDIS_MNEMONIC_IDIV ||
           zi->meta.category == ZYDIS_CATEGORY_SYSTEM || zi->meta.isa_ext == ZYDIS_ISA_EXT_X87 ||
           zi->meta.isa_ext == ZYDIS_ISA_EXT_MMX || zi->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW ||
           names_mmx(zi, op);
}

static void flags_backward(JitCtx *x, unsigned at_end)
{
    x->live[x->n] = (uint16_t)at_end;
    for (unsigned i = x->n; i-- > 0;) {
        unsigned use, def;

        jit_flags_of(&x->zi[i], &use, &def);
        x->live[i] = (uint16_t)((x->live[i + 1] & ~def) | use);
        if (tcg_insn_raises(&x->tb->insn[i]) ||
            (tcg_jit_exact_flags && may_fault(&x->zi[i], x->op[i]))) {
            x->live[i] = FL_ARITH;
        }
    }
}

/* Twice: the block may lead to itself, and then its end wants what its beginning wants at most. */
static void flags_liveness(JitCtx *x)
{
    flags_backward(x, FL_ARITH);
    flags_backward(x, jit_exit_live(x));
}

/* ---- Stubs ---- */

JitStub *jit_stub(JitCtx *x, StubKind kind)
{
    JitStub *s = &x->stub[x->nstub++];

    if (kind == STUB_INTERP && x->mem[x->index].span && !x->tb->tested) {
        kind = STUB_REST;
    }
    *s = (JitStub){ .kind = kind, .index = (uint8_t)x->index, .before = x->s };
    return s;
}

JitStub *jit_stub_interp(JitCtx *x)
{
    return jit_stub(x, STUB_INTERP);
}

void jit_stub_jcc(JitCtx *x, JitStub *s, unsigned cc)
{
    uint8_t *rel = emit_jcc(&x->e, cc, s->at);

    if (!s->at) {
        g_assert(s->nrel < ARRAY_SIZE(s->rel));
        s->rel[s->nrel++] = rel;
    }
}

void jit_stub_begin(JitCtx *x, JitStub *s)
{
    s->at = emit_here(&x->e);
    for (unsigned i = 0; i < s->nrel; i++) {
        emit_patch(&x->e, s->rel[i], s->at);
    }
}

/* The interpreter does not need EFLAGS, only what is wanted in memory. */
static void interp_arguments(JitCtx *x, unsigned index, unsigned slow)
{
    emit_mov_imm(&x->e, H_DX, (uintptr_t)x->tb);
    emit_mov_imm(&x->e, H_AX,
                 index | slow | (x->x87 ? JIT_CALL_X87 : 0) |
                     (uint32_t)x->zi[index].mnemonic << JIT_CALL_MNEMONIC);
}

void jit_interp_inline(JitCtx *x)
{
    if (x->mem[x->index].span && !x->tb->tested) {
        x->tb->barriers |= BIT64(x->index);
        x->barrier = true;
    }
    jit_flags_save(x);
    jit_x87_note(x, &x->s);
    interp_arguments(x, x->index, 0);
    emit_call(&x->e, x->j->interp_one);
    jit_groups_forget(x, x->mem[x->index].span);
    x->s = (JitState){ .flags = FLAGS_MEM };
    jit_vectors_again(x, x->index + 1);
}

static void stub_emit(JitCtx *x, JitStub *s)
{
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    jit_x87_note(x, &s->before);
    interp_arguments(x, s->index, JIT_CALL_SLOW);
    if (s->kind != STUB_INTERP) {
        emit_jmp(e, s->kind == STUB_REST ? x->j->interp_rest : x->j->interp_last);
        return;
    }
    emit_call(e, x->j->interp_one);
    jit_groups_forget(x, x->mem[s->index].span);
    jit_vectors_again(x, s->index + 1u);
    if (s->after.flags & FLAGS_HOST) {
        jit_flags_load(e);
    }
    emit_jmp(e, s->resume);
}

/* BT RAX, RDX for the granule of byte n of what was stored. */
static void granule_test(Emit *e, int32_t n)
{
    emit_lea(e, true, H_DX, H_CX, H_NONE, 0, n);
    emit_shift_imm(e, false, 5, H_DX, 6);
    emit_rr(e, &(Op){ .w = true, .map = 1, .opcode = 0xa3 }, H_DX, H_AX);
}

/* RCX: host address, RAX: the page's bitmap of granules that hold code. */
static void stub_emit_code_hit(JitCtx *x, JitStub *s)
{
    const JitAccess *m = &x->mem[s->index];
    Emit *e = &x->e;
    uint8_t *hit, *hit2;

    emit_patch(e, s->rel[0], emit_here(e));
    if (s->neutral) {
        emit_mov_rr(e, H_CX, H_DX);
        emit_mov_rr(e, H_DX, H_AX);
        jit_flags_store(e);
    }
    if (s->disp) {
        emit_lea(e, true, H_CX, H_CX, H_NONE, 0, s->disp);
    }
    emit_ld(e, H_AX, s->neutral ? H_DX : H_AX, 0);
    granule_test(e, 0);
    hit = emit_jcc(e, CC_C, NULL);
    granule_test(e, s->size - 1);
    hit2 = emit_jcc(e, CC_C, NULL);
    if (s->neutral) {
        jit_flags_load(e);
    }
    if (m->used) { /* what follows may want them as they were: jit_mem_keep() */
        emit_ld(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + m->slot));
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP_MAP + m->slot));
    }
    emit_jmp(e, s->resume);
    emit_patch(e, hit, emit_here(e));
    emit_patch(e, hit2, emit_here(e));
    jit_x87_note(x, &s->before);
    emit_mov_imm(e, H_AX,
                 jit_rip(x, x->tb->rip + x->tb->insn[s->index].off + x->tb->insn[s->index].len));
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    if (x->c->tcg->counting) { /* those that will not be executed */
        emit_alu_mem_imm8(e, true, 0, JIT_CPU, JIT_OFF_AREA(AREA_BUDGET),
                          (int8_t)(x->n - 1 - s->index));
    }
    emit_mov_imm(e, H_DX, s->size);
    emit_jmp(e, x->j->code_hit);
}

/* ---- The block ---- */

/*
 * A block over a page's end: its second page may be written, or mapped elsewhere, without the first
 * one knowing. It is entered only under the epoch in which the engine has found it in place.
 */
static void entry_cross_emit(JitCtx *x)
{
    Emit *e = &x->e;

    emit_mov_imm(e, H_AX, (uintptr_t)x->tb->gen2_ptr);
    emit_rm(e, &(Op){ .opcode = 0x81, .imm = (int32_t)x->tb->gen2, .imm_len = 4 }, 7, H_AX, 0);
    x->jb->gen2_imm = e->p - 4;
    x->entry_rel[x->nentry++] = emit_jcc(e, CC_NZ, NULL);
    e8(e, 0x48);
    e8(e, 0xb8); /* MOV RAX, imm64 */
    x->jb->epoch_imm = e->p;
    e64(e, 0);
    emit_op_rm(e, true, 0x3b, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_EPOCH));
    x->entry_rel[x->nentry++] = emit_jcc(e, CC_NZ, NULL);
}

/* Under -icount: the whole block is counted here, or left to the engine if it is too long. */
static void entry_count_emit(JitCtx *x)
{
    Emit *e = &x->e;

    if (x->c->tcg->counting) {
        emit_alu_mem_imm8(e, true, 7, JIT_CPU, JIT_OFF_AREA(AREA_BUDGET), (int8_t)x->n);
        x->entry_rel[x->nentry++] = emit_jcc(e, CC_L, NULL);
        emit_alu_mem_imm8(e, true, 5, JIT_CPU, JIT_OFF_AREA(AREA_BUDGET), (int8_t)x->n);
    }
}

static void entry_emit(JitCtx *x)
{
    Emit *e = &x->e;

    x->jb->code = emit_here(e);
    /* MOV EAX, [moffs]; XOR EAX, imm: 0 if the page is as it was. */
    e8(e, 0xa1);
    e64(e, (uintptr_t)x->tb->gen_ptr);
    e8(e, 0x35);
    x->jb->gen_imm = e->p;
    e32(e, x->tb->gen);
    emit_op_rm(e, false, 0x0b, H_AX, JIT_CPU, JIT_OFF(base.exit_request));
    x->entry_rel[x->nentry++] = emit_jcc(e, CC_NZ, NULL);
    x->jb->inner = emit_here(e);
    x->jb->bare = !x->tb->cross && !x->vectors && !x->x87;
    if (x->tb->cross) {
        entry_cross_emit(x);
    }
    if (x->x87) {
        emit_mov_imm(e, H_AX, (uintptr_t)&x->c->tcg->x87_live);
        emit_rm(e, &(Op){ .opcode = 0x80, .imm = 0, .imm_len = 1 }, 7, H_AX, 0);
        x->x87_rel = emit_jcc(e, CC_Z, NULL);
        x->x87_resume = emit_here(e);
    }
    if (x->vectors) { /* last: the others call C */
        uint8_t want = x->csr ? VECTORS_LIVE_CSR : VECTORS_LIVE;

        emit_rm(e, &(Op){ .opcode = 0x80, .imm = want, .imm_len = 1 }, 7, JIT_CPU,
                JIT_OFF(accel_vectors));
        x->vectors_rel = emit_jcc(e, CC_C, NULL);
        x->vectors_resume = emit_here(e);
    }
    entry_count_emit(x);
}

/* routine does not come back if the interpreter must run this block. */
static void entry_call_emit(JitCtx *x, uint8_t *rel, const uint8_t *routine, const uint8_t *resume)
{
    Emit *e = &x->e;

    emit_patch(e, rel, emit_here(e));
    emit_mov_imm(e, H_AX, x->tb->rip);
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    emit_call(e, routine);
    emit_jmp(e, resume);
}

/* MXCSR is not live, or vectors are not: live vectors with a live MXCSR would have been noted. */
static void entry_vectors_emit(JitCtx *x)
{
    Emit *e = &x->e;
    uint8_t *live;

    emit_patch(e, x->vectors_rel, emit_here(e));
    if (x->csr) {
        emit_mov_imm(e, H_AX, (uintptr_t)&x->c->tcg->csr_live);
        emit_rm(e, &(Op){ .opcode = 0x80, .imm = 0, .imm_len = 1 }, 7, H_AX, 0);
        live = emit_jcc(e, CC_NZ, NULL);
        emit_mov_imm(e, H_AX, x->tb->rip);
        emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
        emit_call(e, x->j->csr_enter);
        emit_patch(e, live, emit_here(e));
    }
    emit_call(e, x->j->vectors_load);
    emit_jmp(e, x->vectors_resume);
}

static void entry_stubs_emit(JitCtx *x)
{
    Emit *e = &x->e;

    for (unsigned i = 0; i < x->nentry; i++) {
        emit_patch(e, x->entry_rel[i], emit_here(e));
    }
    emit_mov_imm(e, H_AX, x->tb->rip);
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    emit_op_rr(e, false, 0x31, H_AX, H_AX);
    emit_jmp(e, x->j->leave);
    if (x->vectors) {
        entry_vectors_emit(x);
    }
    if (x->x87) {
        entry_call_emit(x, x->x87_rel, x->j->x87_enter, x->x87_resume);
    }
}

/* The last instruction, in the interpreter; it says where to go on. */
static void interp_last(JitCtx *x)
{
    jit_settle(x);
    interp_arguments(x, x->index, 0);
    emit_jmp(&x->e, x->j->interp_last);
    x->ended = true;
}

/* A segment with a limit to check, 16-bit addresses. */
static bool address_is_odd(const JitCtx *x)
{
    return (jit_insn(x)->flags & INSN_SEGCHECK) || jit_insn(x)->asz == ASZ_16;
}

static void insn_emit(JitCtx *x)
{
    unsigned first = x->nstub;

    if (tcg_insn_raises(jit_insn(x)) || address_is_odd(x) ||
        !(jit_integer(x) || jit_high(x) || jit_flow(x) || jit_simd(x) || jit_x87(x) ||
          jit_string(x) || jit_system(x))) {
        if (x->index + 1 == x->n) {
            interp_last(x);
        } else {
            jit_interp_inline(x);
        }
        x->interpreted++;
    }
    for (unsigned i = first; i < x->nstub; i++) {
        x->stub[i].after = x->s;
        if (!x->stub[i].resume) {
            x->stub[i].resume = emit_here(&x->e);
        }
    }
}

static bool decode_again(JitCtx *x)
{
    const ZydisDecoder *d = &x->c->tcg->engine->decoder[x->tb->mode & MODE_CS64 ? 2 : 1];

    for (unsigned i = 0; i < x->n; i++) {
        const Insn *in = &x->tb->insn[i];

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, x->tb->code + in->off, in->len, &x->zi[i],
                                                 x->op[i]))) {
            memset(&x->zi[i], 0, sizeof(x->zi[i]));
        }
        x->csr |= jit_simd_wants_csr(x, i);
        x->vectors = jit_simd_wants_vectors(x, i) ? i + 1 : x->vectors;
        x->x87 |= jit_x87_wants(x, i) || jit_mmx_wants(x, i);
    }
    return true;
}

static void part_begin(JitCtx *x, unsigned n, uint32_t size)
{
    x->e.p = x->j->rw + x->jb->part[n].at;
    x->e.end = x->e.p + size;
}

static void part_end(JitCtx *x, unsigned n)
{
    x->jb->part[n].size = (uint32_t)(x->e.p - (x->j->rw + x->jb->part[n].at));
}

/* False: it does not fit. */
static bool block_emit(JitCtx *x)
{
    entry_emit(x);
    for (x->index = 0; x->index < x->n; x->index++) {
        if (x->e.end - x->e.p < ROOM || x->nstub + 8 > JIT_MAX_STUBS) {
            return false;
        }
        insn_emit(x);
        if (x->barrier) {
            return false;
        }
    }
    if (!x->ended) {
        x->index = x->n - 1;
        jit_x87_note(x, &x->s);
        jit_exit_direct(x, 0, jit_rip(x, x->tb->rip + x->tb->len));
    }
    part_end(x, 0);
    part_begin(x, 1, JIT_COLD_MAX);
    for (unsigned i = 0; i < x->nstub; i++) {
        if (x->e.end - x->e.p < 2 * ROOM + 400) {
            return false;
        }
        if (x->stub[i].optional && !x->stub[i].nrel) {
            continue;
        }
        if (x->stub[i].kind == STUB_CODE_HIT) {
            stub_emit_code_hit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_PROBE) {
            jit_stub_probe_emit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_WAY) {
            jit_stub_way_emit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_STACK) {
            jit_stub_stack_emit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_CALL_HIT) {
            jit_stub_call_hit_emit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_STRING_HIT) {
            jit_stub_string_hit_emit(x, &x->stub[i]);
        } else if (x->stub[i].kind == STUB_JUMP) {
            jit_stub_jump_emit(x, &x->stub[i]);
        } else {
            stub_emit(x, &x->stub[i]);
        }
    }
    jit_exit_stubs_emit(x);
    entry_stubs_emit(x);
    part_end(x, 1);
    return true;
}

/* 64-bit code, or 32-bit code with all segments flat but FS and GS. */
static bool mode_is_known(uint32_t mode)
{
    const uint32_t flat = MODE_CS32 | MODE_SS32 | MODE_FLAT | MODE_CSFLAT | MODE_PE;

    return !(mode & (MODE_STEP | MODE_VM86)) && ((mode & MODE_CS64) || (mode & flat) == flat);
}

static void translate_begin(JitCtx *x, X86CPU *c, TcgBlock *tb, JitBlock *jb)
{
    Jit *j = c->tcg->jit;

    memset(x, 0, offsetof(JitCtx, mem));
    x->c = c;
    x->j = j;
    x->tb = tb;
    x->jb = jb;
    x->n = tb->n;
    x->e.rx = j->rx - j->rw;
    part_begin(x, 0, JIT_HOT_MAX);
    x->s.flags = FLAGS_MEM;
    decode_again(x);
    flags_liveness(x);
    jit_groups_find(x);
}

static JitBlock *translate(X86CPU *c, TcgBlock *tb)
{
    Jit *j = c->tcg->jit;
    JitCtx *x = &j->ctx;
    JitBlock *jb;
    bool done;

    if (!mode_is_known(tb->mode) || !tb->host) {
        return NULL;
    }
    tb->tested |= tcg_jit_tested;
    jb = jit_alloc(j);
    do {
        translate_begin(x, c, tb, jb);
        done = block_emit(x);
    } while (!done && x->barrier);
    if (!done) {
        return NULL;
    }
    jb->tb = tb;
    tb->jit = jb;
    jit_commit(j, jb);
    return jb;
}

JitBlock *jit_translate(X86CPU *c, TcgBlock *tb)
{
    JitStats *stat = &c->tcg->jit->stat;
    uint64_t begin = jit_clock_ns(), ns;
    JitBlock *jb = translate(c, tb);

    ns = jit_clock_ns() - begin;
    stat->longest_translation_ns = MAX(stat->longest_translation_ns, ns);
    stat->refused += !jb;
    if (jb && qemu_loglevel_mask(LOG_OUT_ASM)) {
        const Jit *j = c->tcg->jit;

        tcg_log_translated(c, tb, j->rx + jb->part[0].at, jb->part[0].size);
        tcg_log_translated(c, tb, j->rx + jb->part[1].at, jb->part[1].size);
    }
    return jb;
}
