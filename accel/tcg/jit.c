/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The translator's code cache of one vCPU, the way into and out of translated code, and chains.
 *
 * The cache is one mapping, seen twice (writable, executable); where memory is locked, or threads are
 * realtime, it is touched when it is made. Blocks are put into it in turn and the oldest make room, a
 * bounded number at a time. Only the vCPU's own thread writes it, and never while it runs in it.
 */
#include <errno.h>
#include <glib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/jit.h"
#include "accel/tcg/mmu.h"
#include "accel/tcg/simd.h"

#define HEAD_ROOM 4096 /* common code */

_Atomic uint64_t tcg_jit_cache_size = 32 * MiB;
bool tcg_jit_enabled = true;
bool tcg_jit_exact_flags;
unsigned tcg_jit_heat = 10;

/* For the signal handler. */
static __thread Jit *thread_jit;

/* ---- The jump cache ---- */

static uint32_t jump_slot(uint64_t rip)
{
    return ((uint32_t)rip ^ (uint32_t)rip >> 12) & ((1u << JIT_JUMP_BITS) - 1);
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

/*
 * What an entry of the jump cache depends on besides RIP: the mode, and the version of the address
 * space, which grows with each flush that may concern code (mmu.c).
 */
static uint64_t jump_epoch(X86CPU *c)
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

/* ---- What translated code calls ---- */

/* -icount: an instruction in the interpreter begins; the whole block was counted at its entry. */
static void counted_begin(X86CPU *c)
{
    c->tcg->icount = c->tcg->count_limit - c->accel_area[AREA_BUDGET];
}

/* It ended. Those behind it in the block are not counted if they will not be executed; if it made
 * way for an interrupt that was corrected already. */
static bool counted_end(X86CPU *c, const TcgBlock *tb, unsigned index, bool goes_on, bool restarts)
{
    TcgCpu *t = c->tcg;

    if (!goes_on && !restarts) {
        t->icount -= tb->n - 1 - index;
    }
    c->accel_area[AREA_BUDGET] = t->count_limit - t->icount;
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
    /* STAC, CLAC and POPF choose another table. */
    c->accel_area[AREA_TLB] = (uintptr_t)t->tlb;
    goes_on = !((what & JIT_CALL_X87) && !t->x87_live && !jit_x87_load(c)) &&
              c->rip == tcg_insn_rip(c, &one[1]);
    return unlikely(t->counting) ? counted_end(c, tb, index, goes_on, t->icount != before) : goes_on;
}

/*
 * The last instruction of a block. Returns the translated code RIP now leads to, NULL for the
 * engine to find it.
 */
static const uint8_t *jit_interp_last(X86CPU *c, TcgBlock *tb, unsigned index)
{
    const JitJump *e;

    jit_interp(c, tb, index);
    if (atomic_load_explicit(&c->base.exit_request, memory_order_relaxed)) {
        return NULL;
    }
    c->accel_area[AREA_EPOCH] = jump_epoch(c);
    e = &c->tcg->jit->jump[jump_slot(c->rip)];
    return e->rip == c->rip && e->epoch == c->accel_area[AREA_EPOCH] ? e->code : NULL;
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
    emit_mov_rr(e, H_DI, JIT_CPU);
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
    emit_mov_rr(e, JIT_CPU, H_DI);
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
static const uint8_t *common_call(Emit *e, void *fn, const uint8_t *tail)
{
    const uint8_t *entry = emit_here(e);
    uint8_t *out;

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

/* Jumped to, like the code of an exit: RDX: TcgBlock, EAX: index. */
static void common_interp_last(Jit *j, Emit *e, const uint8_t *tail)
{
    uint8_t *out;

    j->interp_last = emit_here(e);
    registers_move(e, true);
    emit_mov_rr(e, H_SI, H_DX);
    emit_mov32_rr(e, H_DX, H_AX);
    emit_call_c(e, (void *)jit_interp_last);
    emit_op_rr(e, true, 0x85, H_AX, H_AX);
    out = emit_jcc(e, CC_Z, NULL);
    registers_move(e, false);
    emit_rr(e, &(Op){ .opcode = 0xff }, 4, H_AX);
    emit_patch(e, out, emit_here(e));
    emit_jmp(e, tail);
}

static void common_emit(Jit *j)
{
    Emit e = { .p = j->rw, .end = j->rw + HEAD_ROOM, .rx = j->rx - j->rw };
    const uint8_t *tail;

    common_enter(j, &e);
    tail = common_leave(j, &e);
    j->interp_one = common_call(&e, (void *)jit_interp, tail);
    j->csr_enter = common_call(&e, (void *)jit_csr_enter, tail);
    j->x87_enter = common_call(&e, (void *)jit_x87_enter, tail);
    common_interp_last(j, &e, tail);
    j->code_hit = emit_here(&e);
    registers_move(&e, true);
    emit_mov_rr(&e, H_SI, H_CX);
    emit_call_c(&e, (void *)jit_code_hit);
    emit_op_rr(&e, false, 0x31, H_AX, H_AX);
    emit_jmp(&e, tail);
    j->fill = HEAD_ROOM;
}

/* ---- Links ---- */

static Emit patcher(const Jit *j)
{
    return (Emit){ .rx = j->rx - j->rw };
}

/* The exit leads to the engine again. */
static void exit_reset(const Jit *j, JitLink *l)
{
    Emit e = patcher(j);

    l->to = NULL;
    emit_patch(&e, l->rel, l->stub);
    if (l->guard_rel) {
        emit_patch(&e, l->guard_rel, l->stub);
    }
}

static void unlink_exit(const Jit *j, JitLink *l)
{
    JitLink **p;

    if (!l->to) {
        return;
    }
    for (p = &l->to->incoming; *p != l; p = &(*p)->next) {
    }
    *p = l->next;
    exit_reset(j, l);
}

void jit_kill(JitBlock *jb)
{
    Jit *j = jb->j;
    JitJump *jump = &j->jump[jump_slot(jb->tb->rip)];

    while (jb->incoming) {
        JitLink *l = jb->incoming;

        jb->incoming = l->next;
        exit_reset(j, l);
    }
    unlink_exit(j, &jb->exit[0]);
    unlink_exit(j, &jb->exit[1]);
    if (jump->code == jb->code) {
        jump->epoch = 0;
    }
    j->stat.invalidated++;
    j->stat.blocks--;
    j->stat.bytes -= jb->size;
    jb->tb->jit = NULL;
    jb->tb = NULL;
}

#define GUARD_BUDGET 64

static void guard_set(X86CPU *c, JitLink *l)
{
    uint32_t epoch = (uint32_t)jump_epoch(c);

    memcpy(l->guard_imm, &epoch, 4);
    l->budget = GUARD_BUDGET;
}

/*
 * A jump forward in a page needs no look at exit requests, as no loop lies that way, nor at the
 * page's generation: it was that of from's entry a moment ago, and both were stamped with it.
 * jit_restamp() cuts such links.
 */
static bool may_enter_inner(const TcgBlock *from, const TcgBlock *to)
{
    return !from->cross && !to->cross && to->rip > from->rip && to->gen == from->gen &&
           ((from->rip ^ to->rip) & TARGET_PAGE_MASK) == 0;
}

void jit_link(X86CPU *c, JitLink *l, TcgBlock *tb)
{
    Jit *j = c->tcg->jit;
    const JitBlock *from = l->owner;
    Emit e = patcher(j);

    if (!from->tb || from->tb->mode != tb->mode) {
        return;
    }
    if (l->guard_imm) {
        if (!mmu_code_seen(c, tcg_code_linear(c->tcg, tb->rip))) {
            return;
        }
        guard_set(c, l);
    } else if (l->to || ((from->tb->rip ^ tb->rip) & TARGET_PAGE_MASK)) {
        return;
    }
    if (from->shadow && !(may_enter_inner(from->tb, tb) && tb->jit->bare)) {
        return;
    }
    unlink_exit(j, l);
    l->to = tb->jit;
    l->next = tb->jit->incoming;
    tb->jit->incoming = l;
    if (l->guard_rel) {
        emit_patch(&e, l->guard_rel, l->guard_else);
    }
    emit_patch(&e, l->rel, may_enter_inner(from->tb, tb) ? tb->jit->inner : tb->jit->code);
    j->stat.links++;
}

/* Are the bytes it looked at beyond its own end as they were? Marks them as code again. */
static bool peeks_hold(const TcgBlock *tb)
{
    const JitBlock *jb = tb->jit;

    for (unsigned n = 0; n < ARRAY_SIZE(jb->peek); n++) {
        const uint8_t *host = jb->peek[n].host;
        uint32_t gen;

        if (host && (!ram_block_code_mark(tb->rb, tb->off + (uint64_t)(host - tb->host),
                                          jb->peek[n].len, &gen) ||
                     gen != tb->gen || jit_peek_sum(host, jb->peek[n].len) != jb->peek[n].sum)) {
            return false;
        }
    }
    return true;
}

void jit_restamp(TcgBlock *tb)
{
    JitBlock *jb = tb->jit;

    if (!peeks_hold(tb)) {
        tb->heat = tcg_jit_heat; /* translated anew the next time */
        jit_kill(jb);
        return;
    }
    unlink_exit(jb->j, &jb->exit[0]);
    unlink_exit(jb->j, &jb->exit[1]);
    memcpy(jb->gen_imm, &tb->gen, 4);
    if (tb->cross) {
        memcpy(jb->gen2_imm, &tb->gen2, 4);
    }
}

/* ---- Room ---- */

static void evict_oldest(Jit *j)
{
    JitBlock *jb = &j->block[j->tail];

    if (jb->tb) {
        jit_kill(jb);
        j->stat.invalidated--;
        j->stat.evicted++;
    }
    j->tail = (j->tail + 1) % j->blocks;
    j->used--;
}

static void evict_range(Jit *j, uint32_t from, uint32_t size)
{
    while (j->used) {
        const JitBlock *jb = &j->block[j->tail];

        if (jb->at + jb->size <= from || jb->at >= from + size) {
            break;
        }
        evict_oldest(j);
    }
}

static void make_room(Jit *j, uint32_t size)
{
    if (j->used == j->blocks) {
        evict_oldest(j);
    }
    if (j->fill + size > j->size) {
        evict_range(j, j->fill, (uint32_t)j->size - j->fill);
        j->fill = HEAD_ROOM;
    }
    evict_range(j, j->fill, size);
}

JitBlock *jit_alloc(Jit *j, uint32_t size)
{
    uint64_t evicted = j->stat.evicted;
    uint64_t begin = jit_clock_ns();
    JitBlock *jb;

    make_room(j, size);
    if (j->stat.evicted != evicted) {
        uint64_t ns = jit_clock_ns() - begin;

        j->stat.longest_eviction_ns = MAX(j->stat.longest_eviction_ns, ns);
    }
    jb = &j->block[j->head];
    memset(jb, 0, sizeof(*jb));
    jb->j = j;
    jb->at = j->fill;
    return jb;
}

void jit_commit(Jit *j, JitBlock *jb, uint32_t size)
{
    jb->size = size;
    j->fill = ROUND_UP(j->fill + size, 16);
    j->head = (j->head + 1) % j->blocks;
    j->used++;
    j->stat.translated++;
    j->stat.blocks++;
    j->stat.bytes += size;
}

/* ---- Running ---- */

JitLink *jit_run(X86CPU *c, TcgBlock *tb, const uint8_t *entry)
{
    TcgCpu *t = c->tcg;

    c->accel_area[AREA_TLB] = (uintptr_t)t->tlb;
    c->accel_area[AREA_EPOCH] = jump_epoch(c);
    t->jit->stat.entries++;
    return t->jit->enter(c, entry);
}

bool jit_stamp_cross(X86CPU *c, TcgBlock *tb)
{
    uint64_t lin = tcg_code_linear(c->tcg, tb->rip), epoch;

    if (!mmu_code_seen(c, lin) || !mmu_code_seen(c, lin + TARGET_PAGE_SIZE)) {
        return false;
    }
    epoch = jump_epoch(c);
    memcpy(tb->jit->epoch_imm, &epoch, 8);
    return true;
}

void jit_remember(X86CPU *c, TcgBlock *tb)
{
    JitJump *e = &c->tcg->jit->jump[jump_slot(tb->rip)];

    if (mmu_code_seen(c, tcg_code_linear(c->tcg, tb->rip))) {
        e->rip = tb->rip;
        e->epoch = jump_epoch(c);
        e->code = tb->jit->code;
    }
}

/*
 * A division that faults on the host has the way to its stub behind it, as the displacement of a
 * NOP. Called in the handler of SIGFPE; true if it was ours.
 */
bool jit_sigfpe(void *ucontext)
{
    ucontext_t *uc = ucontext;
    greg_t *rip = &uc->uc_mcontext.gregs[REG_RIP];
    const Jit *j = thread_jit;
    const uint8_t *p = (const uint8_t *)*rip;
    int32_t disp;

    if (!j || p < j->rx || p >= j->rx + j->size) {
        return false;
    }
    p += *p == 0x48 ? 3 : 2;
    if (p[0] != 0x0f || p[1] != 0x1f || p[2] != 0x80) {
        return false;
    }
    memcpy(&disp, p + 3, 4);
    *rip = (greg_t)(p + 7 + disp);
    return true;
}

/* ---- Life ---- */

static bool cache_map(Jit *j, Error **errp)
{
    int fd = memfd_create("translated-code", MFD_CLOEXEC);
    bool ok = false;

    if (fd >= 0 && ftruncate(fd, (off_t)j->size) == 0) {
        int flags = MAP_SHARED | (tcg_touch_early() ? MAP_POPULATE : 0);
        j->rw = mmap(NULL, j->size, PROT_READ | PROT_WRITE, flags, fd, 0);
        j->rx = mmap(NULL, j->size, PROT_READ | PROT_EXEC, flags, fd, 0);
        ok = j->rw != MAP_FAILED && j->rx != MAP_FAILED;
    }
    if (!ok) {
        error_setg_errno(errp, errno, "cannot map %zu MiB for the translated code of a CPU (make it "
                         "smaller, -accel tcg,tb-size=, give fewer CPUs, -smp, or raise the host's "
                         "limits, 'ulimit -v' and 'ulimit -f')", j->size / (size_t)MiB);
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static uint32_t block_count(uint64_t cache_size)
{
    return (uint32_t)MIN(JIT_BLOCKS_MAX, cache_size / JIT_BLOCK_MEAN);
}

uint64_t jit_bytes(uint64_t cache_size)
{
    return 2 * cache_size + sizeof(JitBlock) * block_count(cache_size) +
           (sizeof(JitJump) << JIT_JUMP_BITS) + sizeof(Jit);
}

bool jit_init(X86CPU *c, Error **errp)
{
    Jit *j;

    if (!tcg_jit_enabled) {
        return true;
    }
    j = tcg_map(sizeof(*j));
    if (!j) {
        error_setg_errno(errp, errno, "cannot allocate the translator of CPU %u", c->base.index);
        return false;
    }
    j->size = tcg_jit_cache_size;
    j->blocks = block_count(j->size);
    j->rw = j->rx = MAP_FAILED;
    c->tcg->jit = j;
    j->block = tcg_map(sizeof(JitBlock) * j->blocks);
    j->jump = tcg_map(sizeof(JitJump) << JIT_JUMP_BITS);
    if (!j->block || !j->jump || !cache_map(j, errp)) {
        if (!j->block || !j->jump) {
            error_setg_errno(errp, errno, "cannot allocate the translator of CPU %u", c->base.index);
        }
        jit_fini(c);
        return false;
    }
    j->one[1].fn = tcg_insn_end;
    c->accel_area[AREA_JUMP] = (uintptr_t)j->jump;
    common_emit(j);
    thread_jit = j;
    return true;
}

void jit_fini(X86CPU *c)
{
    Jit *j = c->tcg->jit;

    if (!j) {
        return;
    }
    if (j->rw != MAP_FAILED) {
        munmap(j->rw, j->size);
    }
    if (j->rx != MAP_FAILED) {
        munmap(j->rx, j->size);
    }
    tcg_unmap(j->block, sizeof(JitBlock) * j->blocks);
    tcg_unmap(j->jump, sizeof(JitJump) << JIT_JUMP_BITS);
    tcg_unmap(j, sizeof(*j));
    c->tcg->jit = NULL;
    thread_jit = NULL;
}
