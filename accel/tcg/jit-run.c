/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way into and out of translated code: the jump cache, what translated code calls, and the common
 * code in between. The vCPU's own thread.
 */
#include <glib.h>
#include <string.h>
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "accel/tcg/mmu.h"
#include "accel/tcg/simd.h"

/* ---- The jump cache ---- */

JitJump *jit_jump_set(Jit *j, uint64_t rip)
{
    return (JitJump *)((uint8_t *)j->jump + jit_jump_at(rip));
}

/* Numbers of epochs will be used again. Rare: after millions of flushes, or many modes. */
static void epochs_forget(Jit *j)
{
    static const uint32_t none;

    memset(j->jump, 0, sizeof(JitJump) << JIT_JUMP_BITS);
    for (unsigned n = 0; n < j->blocks; n++) {
        for (unsigned k = 0; k < 2; k++) {
            if (j->block[n].tb && j->block[n].exit[k].guard_imm) {
                memcpy(j->block[n].exit[k].guard_imm, &none, 4);
            }
        }
    }
}

/* A small number for the mode key, the same each time until the table overflows. */
static unsigned mode_number(Jit *j, uint32_t mode)
{
    if (likely(j->modes && j->mode[j->mode_last] == mode)) {
        return j->mode_last;
    }
    for (unsigned n = 0; n < j->modes; n++) {
        if (j->mode[n] == mode) {
            return j->mode_last = n;
        }
    }
    if (j->modes == ARRAY_SIZE(j->mode)) {
        epochs_forget(j);
        j->modes = 0;
    }
    j->mode[j->modes] = mode;
    return j->mode_last = j->modes++;
}

uint64_t jit_epoch(X86CPU *c)
{
    Jit *j = c->tcg->jit;
    unsigned mode = mode_number(j, c->tcg->mode_key);
    bool wrapped;
    unsigned version = mmu_code_version(c, &wrapped);

    if (unlikely(wrapped)) {
        epochs_forget(j);
    }
    return version << 4 | mode;
}

/* ---- The stack's page ---- */

#define STACK_LIMIT(range) ((int32_t)TARGET_PAGE_SIZE - (range) + 1)

/*
 * Before translated code goes on after C, which may have changed the TLB: the table, and, as it is now, the
 * page RSP points into.
 */
static void tlb_to_area(X86CPU *c)
{
    uint64_t page = c->regs[R_RSP] & TARGET_PAGE_MASK;
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(page)];
    bool ok;

    e += e->wtag != page;
    ok = e->wtag == page && e->rtag == page;
    *jit_area(c, AREA_TLB) = (uintptr_t)c->tcg->tlb;
    *jit_area(c, AREA_STACK_PAGE) = page;
    *jit_area(c, AREA_STACK_HOST) = e->host;
    *jit_area(c, AREA_STACK_MAP) = (uintptr_t)e->code_map;
    *jit_area(c, AREA_STACK_SHORT) = ok ? STACK_LIMIT(JIT_STACK_SHORT) : 0;
    *jit_area(c, AREA_STACK_LONG) = ok ? STACK_LIMIT(JIT_STACK_LONG) : 0;
}

/* ---- What translated code calls ---- */

/* -icount: an instruction in the interpreter begins; the whole block was counted at its entry. */
static void counted_begin(X86CPU *c)
{
    c->tcg->icount = c->tcg->count_limit - *jit_area(c, AREA_BUDGET);
}

/* It ended. Those behind it in the block are not counted if they will not be executed; if it made
 * way for an interrupt that was corrected already. */
static bool counted_end(X86CPU *c, const TcgBlock *tb, unsigned index, bool goes_on, bool restarts)
{
    TcgCpu *t = c->tcg;

    if (!goes_on && !restarts) {
        t->icount -= tb->n - 1 - index;
    }
    *jit_area(c, AREA_BUDGET) = t->count_limit - t->icount;
    return goes_on;
}

/*
 * One instruction in the interpreter. False: it does not simply go on behind it (control was
 * transferred, or a repeated instruction made way for an interrupt); RIP is right either way.
 */
static bool jit_interp(X86CPU *c, TcgBlock *tb, unsigned what)
{
    TcgCpu *t = c->tcg;
    unsigned index = what & 0xff;
    Insn *one = t->jit->one;
    bool live = t->csr_live, goes_on;
    uint64_t before;

    if (what & JIT_CALL_SLOW) {
        t->jit->stat.slow_paths++;
    } else {
        t->jit->fallback[what >> JIT_CALL_MNEMONIC]++;
    }
    t->block = tb;
    t->block_rip = tb->rip;
    t->jit->one_index = index;
    if (unlikely(t->counting)) {
        counted_begin(c);
    }
    before = t->icount;
    one[0] = tb->insn[index];
    one[1].off = one[0].off + one[0].len;
    one[0].fn(c, one);
    /* Taken home meanwhile: what follows in the block expects it in the host's register. What
     * changes its control bits ends a block. */
    if (live && !t->csr_live && (c->mxcsr & (MXCSR_MASKS | MXCSR_CONTROL)) == MXCSR_DEFAULT) {
        host_setcsr(c->mxcsr);
        t->csr_live = true;
    }
    tlb_to_area(c); /* STAC, CLAC and POPF choose another table */
    goes_on = !((what & JIT_CALL_X87) && !t->x87_live && !jit_x87_load(c)) &&
              c->rip == tcg_insn_rip(c, &one[1]);
    return unlikely(t->counting) ? counted_end(c, tb, index, goes_on, t->icount != before) : goes_on;
}

/* The translated code RIP leads to, if it is known and nothing wants the engine. */
static const uint8_t *next_code(X86CPU *c)
{
    const JitJump *set;

    if (atomic_load_explicit(&c->base.exit_request, memory_order_relaxed)) {
        return NULL;
    }
    *jit_area(c, AREA_EPOCH) = jit_epoch(c);
    set = jit_jump_set(c->tcg->jit, c->rip);
    for (unsigned way = 0; way < 2; way++) {
        if (set[way].rip == c->rip && set[way].epoch == *jit_area(c, AREA_EPOCH)) {
            return set[way].code;
        }
    }
    return NULL;
}

/*
 * The last instruction of a block. Returns the translated code RIP now leads to, NULL for the
 * engine to find it.
 */
static const uint8_t *jit_interp_last(X86CPU *c, TcgBlock *tb, unsigned index)
{
    jit_interp(c, tb, index);
    return next_code(c);
}

/* How often a block may need the interpreter for its rest before it is translated again with tests. */
#define RESTS_MAX 64

/* Once for each page that is walked through is no reason, again and again for the same page is. */
static void rest_note(X86CPU *c, TcgBlock *tb, const Insn *i)
{
    uint64_t lin = i->base == R_ZERO ? c->regs[R_RSP]
                                     : c->regs[i->base] + (c->regs[i->index] << i->scale) + (uint64_t)i->disp;
    uint32_t page = (uint32_t)(lin >> TARGET_PAGE_BITS);

    tb->rests = page == tb->rest_page ? tb->rests + 1 : 0;
    tb->rest_page = page;
    if (tb->rests == RESTS_MAX && tb->jit) {
        tb->tested = true;
        tb->heat = tcg_jit_heat; /* translated anew the next time */
        jit_kill(tb->jit);
    }
}

/*
 * Instruction index of tb and all behind it: a group's range is in two pages, or a slow case came between its accesses.
 * Returns where to go on, as jit_interp_last() does.
 */
static const uint8_t *jit_interp_rest(X86CPU *c, TcgBlock *tb, unsigned what)
{
    TcgCpu *t = c->tcg;
    unsigned index = what & 0xff;

    t->jit->stat.slow_paths++;
    t->block = tb;
    t->block_rip = tb->rip;
    if (unlikely(t->counting)) {
        counted_begin(c);
    } else {
        t->icount += tb->n - index;
    }
    rest_note(c, tb, &tb->insn[index]);
    tb->insn[index].fn(c, &tb->insn[index]);
    if (unlikely(t->counting)) {
        *jit_area(c, AREA_BUDGET) = t->count_limit - t->icount;
    }
    tlb_to_area(c);
    return c->int_shadow ? NULL : next_code(c);
}

/* A store of size bytes to host hit code. */
static void jit_code_hit(X86CPU *c, const uint8_t *host, unsigned size)
{
    RAMBlock *rb = mmu_ram_of(host);

    if (rb) {
        ram_block_code_hit(rb, (uint64_t)(host - rb->host), size);
    }
}

/* Before the first instruction that depends on MXCSR. False: the interpreter must run this block. */
static bool jit_csr_enter(X86CPU *c)
{
    if ((c->mxcsr & (MXCSR_MASKS | MXCSR_CONTROL)) != MXCSR_DEFAULT) {
        c->tcg->jit->interp_next = true;
        return false;
    }
    host_setcsr(c->mxcsr);
    c->tcg->csr_live = true;
    return true;
}

/* Before the first x87 instruction. False: the same. */
static bool jit_x87_enter(X86CPU *c)
{
    if (!jit_x87_load(c)) {
        c->tcg->jit->interp_next = true;
        return false;
    }
    return true;
}

/* ---- Common code ---- */

static void registers_move(Emit *e, bool store)
{
    for (unsigned g = 0; g < 16; g++) {
        if (jit_reg[g] == H_NONE) {
            continue;
        }
        if (store) {
            emit_st(e, jit_reg[g], JIT_CPU, JIT_OFF_REG(g));
        } else {
            emit_ld(e, jit_reg[g], JIT_CPU, JIT_OFF_REG(g));
        }
    }
    if (!store) {
        emit_ld(e, JIT_TLB, JIT_CPU, JIT_OFF_AREA(AREA_TLB));
    }
}

static const uint8_t saved[] = { H_BX, H_BP, H_12, H_13, H_14, H_15 };

static void emit_push(Emit *e, unsigned r)
{
    if (r & 8) {
        e8(e, 0x41);
    }
    e8(e, (uint8_t)(0x50 | (r & 7)));
}

static void emit_pop(Emit *e, unsigned r)
{
    if (r & 8) {
        e8(e, 0x41);
    }
    e8(e, (uint8_t)(0x58 | (r & 7)));
}

static void emit_call_c(Emit *e, void *fn)
{
    emit_lea(e, true, H_DI, JIT_CPU, H_NONE, 0, -JIT_CPU_AT);
    emit_mov_imm(e, H_AX, (uintptr_t)fn);
    emit_rr(e, &(Op){ .opcode = 0xff }, 2, H_AX);
}

static void common_enter(Jit *j, Emit *e)
{
    j->enter = (JitLink * (*)(X86CPU *, const uint8_t *))(void *)emit_here(e);
    for (unsigned i = 0; i < ARRAY_SIZE(saved); i++) {
        emit_push(e, saved[i]);
    }
    emit_alu_imm(e, true, 5, H_SP, 8);
    emit_lea(e, true, JIT_CPU, H_DI, H_NONE, 0, JIT_CPU_AT);
    emit_mov_rr(e, H_AX, H_SI);
    registers_move(e, false);
    emit_rr(e, &(Op){ .opcode = 0xff }, 4, H_AX);
}

/* Returns the entry behind the stores. */
static const uint8_t *common_leave(Jit *j, Emit *e)
{
    const uint8_t *tail;

    j->jump_miss = emit_here(e);
    emit_st(e, H_CX, JIT_CPU, JIT_OFF(rip));
    emit_op_rr(e, false, 0x31, H_AX, H_AX);
    j->leave = emit_here(e);
    jit_vectors_leave(j, e);
    registers_move(e, true);
    tail = emit_here(e);
    emit_alu_imm(e, true, 0, H_SP, 8);
    for (unsigned i = ARRAY_SIZE(saved); i-- > 0;) {
        emit_pop(e, saved[i]);
    }
    e8(e, 0xc3);
    return tail;
}

/* Called by translated code; goes back to it if fn returns true, else leaves. */
static const uint8_t *common_call(const Jit *j, Emit *e, void *fn, const uint8_t *tail)
{
    const uint8_t *entry = emit_here(e);
    uint8_t *out;

    jit_vectors_leave(j, e);
    registers_move(e, true);
    emit_mov_rr(e, H_SI, H_DX);
    emit_mov32_rr(e, H_DX, H_AX);
    emit_alu_imm(e, true, 5, H_SP, 8);
    emit_call_c(e, fn);
    emit_alu_imm(e, true, 0, H_SP, 8);
    emit_rr(e, &(Op){ .opcode = 0x84 }, H_AX, H_AX);
    out = emit_jcc(e, CC_Z, NULL);
    registers_move(e, false);
    e8(e, 0xc3);
    emit_patch(e, out, emit_here(e));
    emit_alu_imm(e, true, 0, H_SP, 8);
    emit_op_rr(e, false, 0x31, H_AX, H_AX);
    emit_jmp(e, tail);
    return entry;
}

/* Jumped to, like the code of an exit: RDX: TcgBlock, EAX: index. fn says where to go on. */
static const uint8_t *common_interp_last(Jit *j, Emit *e, void *fn, const uint8_t *tail)
{
    const uint8_t *entry = emit_here(e);
    uint8_t *out;

    jit_vectors_leave(j, e);
    registers_move(e, true);
    emit_mov_rr(e, H_SI, H_DX);
    emit_mov32_rr(e, H_DX, H_AX);
    emit_call_c(e, fn);
    emit_op_rr(e, true, 0x85, H_AX, H_AX);
    out = emit_jcc(e, CC_Z, NULL);
    registers_move(e, false);
    emit_rr(e, &(Op){ .opcode = 0xff }, 4, H_AX);
    emit_patch(e, out, emit_here(e));
    emit_jmp(e, tail);
    return entry;
}

/*
 * The page's entry becomes the stack's if it may be read and written; the code map is set either way, for
 * the store under way.
 */
static void common_stack_fill(Jit *j, Emit *e)
{
    uint8_t *no[2];

    j->stack_fill = emit_here(e);
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_PAGE));
    emit_st_imm32(e, JIT_CPU, JIT_OFF_AREA(AREA_STACK_SHORT), 0);
    emit_st_imm32(e, JIT_CPU, JIT_OFF_AREA(AREA_STACK_LONG), 0);
    emit_op_rm(e, true, 0x3b, H_DX, H_AX, offsetof(TlbEntry, rtag));
    no[0] = emit_jcc(e, CC_NZ, NULL);
    emit_op_rm(e, true, 0x3b, H_DX, H_AX, offsetof(TlbEntry, wtag));
    no[1] = emit_jcc(e, CC_NZ, NULL);
    emit_ld(e, H_DX, H_AX, offsetof(TlbEntry, host));
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_HOST));
    emit_st_imm32(e, JIT_CPU, JIT_OFF_AREA(AREA_STACK_SHORT), STACK_LIMIT(JIT_STACK_SHORT));
    emit_st_imm32(e, JIT_CPU, JIT_OFF_AREA(AREA_STACK_LONG), STACK_LIMIT(JIT_STACK_LONG));
    emit_patch(e, no[0], emit_here(e));
    emit_patch(e, no[1], emit_here(e));
    emit_ld(e, H_DX, H_AX, offsetof(TlbEntry, code_map));
    emit_st(e, H_DX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_MAP));
    e8(e, 0xc3);
}

static void common_jump_second(Jit *j, Emit *e)
{
    const int32_t at = sizeof(JitJump);

    j->jump_second = emit_here(e);
    emit_op_rm(e, true, 0x39, H_CX, H_DX, at + (int32_t)offsetof(JitJump, rip));
    emit_jcc(e, CC_NZ, j->jump_miss);
    emit_op_rm(e, true, 0x39, H_AX, H_DX, at + (int32_t)offsetof(JitJump, epoch));
    emit_jcc(e, CC_NZ, j->jump_miss);
    emit_jmp_mem(e, H_DX, at + (int32_t)offsetof(JitJump, code));
}

size_t jit_common_emit(Jit *j, const X86CPU *c)
{
    Emit e = { .p = j->rw, .end = j->rw + JIT_HEAD_ROOM, .rx = j->rx - j->rw };
    const uint8_t *tail;

    jit_vectors_common_emit(j, &e, c);
    common_enter(j, &e);
    tail = common_leave(j, &e);
    j->interp_one = common_call(j, &e, (void *)jit_interp, tail);
    j->csr_enter = common_call(j, &e, (void *)jit_csr_enter, tail);
    j->x87_enter = common_call(j, &e, (void *)jit_x87_enter, tail);
    j->interp_last = common_interp_last(j, &e, (void *)jit_interp_last, tail);
    j->interp_rest = common_interp_last(j, &e, (void *)jit_interp_rest, tail);
    common_jump_second(j, &e);
    common_stack_fill(j, &e);
    j->code_hit = emit_here(&e);
    jit_vectors_leave(j, &e);
    registers_move(&e, true);
    emit_mov_rr(&e, H_SI, H_CX);
    emit_call_c(&e, (void *)jit_code_hit);
    emit_op_rr(&e, false, 0x31, H_AX, H_AX);
    emit_jmp(&e, tail);
    j->ring[0].begin = j->ring[0].fill = JIT_HEAD_ROOM;
    j->ring[0].end = j->ring[1].begin = j->ring[1].fill = ROUND_DOWN((uint32_t)(j->size / 5 * 2), 4096);
    j->ring[1].end = (uint32_t)j->size;
    g_assert(e.p <= e.end);
    return (size_t)(e.p - j->rw);
}

/* ---- Running ---- */

JitLink *jit_run(X86CPU *c, TcgBlock *tb, const uint8_t *entry)
{
    TcgCpu *t = c->tcg;

    tlb_to_area(c);
    *jit_area(c, AREA_EPOCH) = jit_epoch(c);
    t->jit->stat.entries++;
    return t->jit->enter(c, entry);
}

bool jit_stamp_cross(X86CPU *c, TcgBlock *tb)
{
    uint64_t lin = tcg_code_linear(c->tcg, tb->rip), epoch;

    if (!mmu_code_seen(c, lin) || !mmu_code_seen(c, lin + TARGET_PAGE_SIZE)) {
        return false;
    }
    epoch = jit_epoch(c);
    memcpy(tb->jit->epoch_imm, &epoch, 8);
    return true;
}

void jit_remember(X86CPU *c, TcgBlock *tb)
{
    JitJump *set = jit_jump_set(c->tcg->jit, tb->rip);

    if (mmu_code_seen(c, tcg_code_linear(c->tcg, tb->rip))) {
        if (set->rip != tb->rip || set->epoch != jit_epoch(c)) {
            set[1] = set[0];
        }
        *set = (JitJump){ .rip = tb->rip, .epoch = jit_epoch(c), .code = tb->jit->code };
    }
}
