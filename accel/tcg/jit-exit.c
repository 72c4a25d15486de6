/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a block is left: direct exits, linked to their targets later, and jumps through the cache.
 *
 * What is behind a direct exit in the same page is often known already, and then which flags it
 * wants: most compare and test before they branch, so that nothing has to be saved. Such knowledge is
 * good while the bytes looked at stay, which jit_restamp() sees to.
 */
#include "accel/tcg/jit.h"

#define PEEK_INSNS 8

void jit_settle(JitCtx *x)
{
    jit_flags_save(x);
    jit_x87_note(x, &x->s);
}

static bool same_page(const JitCtx *x, uint64_t rip)
{
    return ((rip ^ x->tb->rip) & TARGET_PAGE_MASK) == 0;
}

/* ---- What follows wants which flags? ---- */

uint32_t jit_peek_sum(const uint8_t *p, uint32_t len)
{
    uint32_t h = 2166136261u;

    while (len--) {
        h = (h ^ *p++) * 16777619u;
    }
    return h;
}

/* Control goes elsewhere, or what is read is not written in the instruction. */
static bool is_opaque(const ZydisDecodedInstruction *zi)
{
    switch (zi->meta.category) {
    case ZYDIS_CATEGORY_CALL: case ZYDIS_CATEGORY_RET: case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_SYSRET: case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_IO: case ZYDIS_CATEGORY_IOSTRINGOP: case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_COND_BR: case ZYDIS_CATEGORY_STRINGOP:
        return true;
    default:
        return zi->mnemonic == ZYDIS_MNEMONIC_PUSHF || zi->mnemonic == ZYDIS_MNEMONIC_PUSHFD ||
               zi->mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
    }
}

/*
 * Takes one instruction into account: *open: flags that nobody has replaced yet, *wanted: those that are read. False: what
 * follows is not known.
 */
static bool insn_wants(const ZydisDecodedInstruction *zi, unsigned *open, unsigned *wanted)
{
    unsigned use, def;

    jit_flags_of(zi, &use, &def);
    *wanted |= use & *open;
    if (is_opaque(zi)) {
        return false;
    }
    *open &= ~def;
    return *open != 0;
}

/* The flags wanted by the first instructions of block to. *len, *sum: of the bytes looked at. */
static unsigned block_wants(const JitCtx *x, const TcgBlock *to, uint32_t *len, uint32_t *sum)
{
    const ZydisDecoder *d = &x->c->tcg->engine->decoder[to->mode & MODE_CS64 ? 2 : 1];
    unsigned wanted = 0, open = FL_ARITH;

    *len = 0;
    for (unsigned k = 0; k < MIN(to->n, PEEK_INSNS); k++) {
        const Insn *i = &to->insn[k];
        ZydisDecodedInstruction zi;

        if (tcg_insn_raises(i) ||
            !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, NULL, to->code + i->off, i->len, &zi))) {
            break;
        }
        *len = i->off + i->len;
        if (!insn_wants(&zi, &open, &wanted)) {
            break;
        }
    }
    *sum = jit_peek_sum(to->code, *len);
    return wanted | open;
}

/*
 * The same for bytes that are no block yet, as far as they are instructions that every processor has. They are marked as
 * code, and looked at again then: nothing may be known of bytes that change unseen.
 */
static unsigned bytes_want(const JitCtx *x, const uint8_t *host, uint32_t *len, uint32_t *sum)
{
    const ZydisDecoder *d = &x->c->tcg->engine->decoder[x->tb->mode & MODE_CS64 ? 2 : 1];
    uint64_t off = x->tb->off + (uint64_t)(host - x->tb->host);
    uint32_t gen, room = (uint32_t)(TARGET_PAGE_SIZE - (off & ~TARGET_PAGE_MASK));
    unsigned wanted = 0, open = FL_ARITH;
    uint8_t copy[PEEK_INSNS * INSN_MAX_LEN];

    room = MIN(room, sizeof(copy));
    memcpy(copy, host, room);
    *len = 0;
    for (unsigned k = 0; k < PEEK_INSNS; k++) {
        ZydisDecodedInstruction zi;

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, NULL, copy + *len, room - *len, &zi)) ||
            (zi.meta.isa_ext != ZYDIS_ISA_EXT_BASE && zi.meta.isa_ext != ZYDIS_ISA_EXT_LONGMODE)) {
            break;
        }
        *len += zi.length;
        if (!insn_wants(&zi, &open, &wanted)) {
            break;
        }
    }
    if (!*len || !ram_block_code_mark(x->tb->rb, off, *len, &gen) || gen != x->tb->gen ||
        memcmp(copy, host, *len) != 0) {
        return FL_ARITH;
    }
    *sum = jit_peek_sum(copy, *len);
    return wanted | open;
}

/* The flags wanted at rip, where exit n leads. */
static unsigned exit_wants(JitCtx *x, unsigned n, uint64_t rip)
{
    const uint8_t *host = x->tb->host + (int64_t)(rip - x->tb->rip);
    const TcgBlock *to;
    uint32_t len, sum;
    unsigned wanted;

    if (tcg_jit_exact_flags || x->tb->cross || !same_page(x, rip)) {
        return FL_ARITH;
    }
    if (rip == x->tb->rip) {
        return x->live[0];
    }
    to = tcg_block_beside(x->c->tcg->engine, x->tb, rip);
    wanted = to ? block_wants(x, to, &len, &sum) : bytes_want(x, host, &len, &sum);
    if (wanted != FL_ARITH) {
        x->jb->peek[n].host = host;
        x->jb->peek[n].len = len;
        x->jb->peek[n].sum = sum;
    }
    return wanted;
}

unsigned jit_exit_live(JitCtx *x)
{
    const ZydisDecodedInstruction *zi = &x->zi[x->n - 1];
    uint64_t next = jit_rip(x, x->tb->rip + x->tb->len);
    uint64_t target = jit_rip(x, next + (uint64_t)zi->raw.imm[0].value.s);

    x->exit_live[0] = x->exit_live[1] = FL_ARITH;
    if (tcg_insn_raises(&x->tb->insn[x->n - 1])) {
        return FL_ARITH;
    }
    if (zi->meta.category == ZYDIS_CATEGORY_COND_BR && zi->raw.imm[0].is_relative) {
        x->exit_live[0] = exit_wants(x, 0, next);
        x->exit_live[1] = exit_wants(x, 1, target);
        return x->exit_live[0] | x->exit_live[1];
    }
    if ((zi->meta.category == ZYDIS_CATEGORY_UNCOND_BR || zi->meta.category == ZYDIS_CATEGORY_CALL) &&
        zi->raw.imm[0].is_relative) {
        return x->exit_live[0] = exit_wants(x, 0, target);
    }
    return is_opaque(zi) ? FL_ARITH : (x->exit_live[0] = exit_wants(x, 0, next));
}

/* ---- Exits ---- */

/* RDX = where in the jump cache RCX may be, RAX = the epoch. Returns the stub that looks at the second entry. */
static JitStub *jump_begin(JitCtx *x, JitStub *stub)
{
    JitStub *second = NULL;
    Emit *e = &x->e;

    /* jit_jump_at() */
    emit_rr(e, &(Op){ .opcode = 0x69, .imm = JIT_JUMP_FACTOR, .imm_len = 4 }, H_DX, H_CX);
    emit_shift_imm(e, false, 5, H_DX, JIT_JUMP_SHIFT);
    emit_alu_imm(e, false, 4, H_DX, -JIT_JUMP_SET);
    emit_op_rm(e, true, 0x03, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_JUMP));
    emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_EPOCH));
    if (stub) {
        second = jit_stub(x, STUB_JUMP);
        second->miss = stub;
        stub->optional = false;
    }
    return second;
}

/*
 * Goes on if the jump cache's entry at RDX + at is for RCX and epoch RAX; else to the stub, or to common code. The
 * whole of RIP is compared, so what is not canonical never matches.
 */
static void jump_compare(JitCtx *x, JitStub *s, int32_t at)
{
    static const int32_t offset[] = { offsetof(JitJump, rip), offsetof(JitJump, epoch) };
    static const uint8_t reg[] = { H_CX, H_AX };
    Emit *e = &x->e;

    for (unsigned n = 0; n < 2; n++) {
        emit_op_rm(e, true, 0x39, reg[n], H_DX, at + offset[n]);
        if (s) {
            jit_stub_jcc(x, s, CC_NZ);
        } else {
            emit_jcc(e, CC_NZ, x->j->jump_second);
        }
    }
}

static void jump_go(JitCtx *x, int32_t at, int32_t pop)
{
    if (pop) {
        emit_lea(&x->e, jit_is64(x), jit_reg[R_RSP], jit_reg[R_RSP], H_NONE, 0, pop);
    }
    emit_jmp_mem(&x->e, H_DX, at + (int32_t)offsetof(JitJump, code));
}

static void jump_note(JitCtx *x, int32_t at)
{
    emit_ld(&x->e, H_AX, H_DX, at + (int32_t)offsetof(JitJump, code));
    emit_st(&x->e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TEMP));
}

void jit_exit_rcx(JitCtx *x, JitStub *stub, int32_t pop)
{
    JitStub *second = jump_begin(x, stub);

    if (second) {
        second->disp = pop;
    }
    jump_compare(x, second, 0);
    jump_go(x, 0, pop);
    x->ended = true;
}

void jit_find_rcx(JitCtx *x, JitStub *stub)
{
    JitStub *second = jump_begin(x, stub);

    second->call = true;
    jump_compare(x, second, 0);
    jump_note(x, 0);
    second->resume = emit_here(&x->e);
}

void jit_stub_jump_emit(JitCtx *x, JitStub *s)
{
    jit_stub_begin(x, s);
    jump_compare(x, s->miss, sizeof(JitJump));
    if (s->call) {
        jump_note(x, sizeof(JitJump));
        emit_jmp(&x->e, s->resume);
    } else {
        jump_go(x, sizeof(JitJump), s->disp);
    }
}

/* Prepares exit n: what its jump, whose displacement is at rel, leads to. */
static void exit_link(JitCtx *x, unsigned n, uint64_t rip, uint8_t *rel)
{
    JitLink *l = &x->jb->exit[n];

    x->exit_rip[n] = rip;
    l->owner = x->jb;
    l->rel = rel;
}

/*
 * To another page: linked, it goes there as long as the epoch is the one in which the target was
 * found; in another it asks the cache, and after some time to be linked anew.
 */
static void exit_guarded(JitCtx *x, unsigned n, uint64_t rip)
{
    JitLink *l = &x->jb->exit[n];
    Emit *e = &x->e;

    emit_rm(e, &(Op){ .opcode = 0x81, .imm_len = 4 }, 7, JIT_CPU, JIT_OFF_AREA(AREA_EPOCH));
    l->guard_imm = e->p - 4;
    l->guard_rel = emit_jcc(e, CC_NZ, NULL);
    exit_link(x, n, rip, emit_jmp(e, NULL));
}

/* Where a guarded exit leads in another epoch. */
static void guard_else_emit(JitCtx *x, unsigned n)
{
    JitLink *l = &x->jb->exit[n];
    Emit *e = &x->e;

    l->guard_else = emit_here(e);
    emit_mov_imm(e, H_AX, (uintptr_t)&l->budget);
    emit_rm(e, &(Op){ .opcode = 0x80, .imm = 1, .imm_len = 1 }, 5, H_AX, 0);
    emit_jcc(e, CC_Z, l->stub);
    emit_mov_imm(e, H_CX, x->exit_rip[n]);
    jit_exit_rcx(x, NULL, 0);
}

void jit_exit_direct(JitCtx *x, unsigned n, uint64_t rip)
{
    if (x->exit_live[n]) {
        jit_flags_save(x);
    }
    x->ended = true;
    if (rip == x->tb->rip) {
        emit_jmp(&x->e, x->jb->code);
    } else if (same_page(x, rip)) {
        exit_link(x, n, rip, emit_jmp(&x->e, NULL));
    } else {
        exit_guarded(x, n, rip);
    }
}

void jit_exit_jcc(JitCtx *x, unsigned cc, uint64_t taken, uint64_t otherwise)
{
    bool save = x->exit_live[1] && x->s.flags == FLAGS_HOST;
    JitState before = x->s;
    Emit *e = &x->e;

    if (save || !same_page(x, taken)) {
        uint8_t *skip = emit_jcc(e, cc ^ 1, NULL);

        jit_exit_direct(x, 1, taken);
        emit_patch(e, skip, emit_here(e));
        x->s = before;
    } else if (taken == x->tb->rip) {
        emit_jcc(e, cc, x->jb->code);
    } else {
        exit_link(x, 1, taken, emit_jcc(e, cc, NULL));
    }
    jit_exit_direct(x, 0, otherwise);
}

static void exit_stub_emit(JitCtx *x, unsigned n)
{
    JitLink *l = &x->jb->exit[n];
    Emit *e = &x->e;

    if (!l->rel) {
        return;
    }
    l->stub = emit_here(e);
    emit_patch(e, l->rel, l->stub);
    if (l->guard_rel) {
        emit_patch(e, l->guard_rel, l->stub);
    }
    if (x->jb->shadow) {
        emit_rm(e, &(Op){ .opcode = 0xc6, .imm = 1, .imm_len = 1 }, 0, JIT_CPU, JIT_OFF(int_shadow));
    }
    emit_mov_imm(e, H_AX, x->exit_rip[n]);
    emit_st(e, H_AX, JIT_CPU, JIT_OFF(rip));
    emit_mov_imm(e, H_AX, (uintptr_t)l);
    emit_jmp(e, x->j->leave);
    if (l->guard_rel) {
        guard_else_emit(x, n);
    }
}

void jit_exit_stubs_emit(JitCtx *x)
{
    exit_stub_emit(x, 0);
    exit_stub_emit(x, 1);
}
