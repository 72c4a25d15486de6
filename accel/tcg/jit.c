/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The translator's code cache of one vCPU, and chains.
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
#include "target/i386/cpuid.h"
#include "qemu/log.h"


_Atomic uint64_t tcg_jit_cache_size = 32 * MiB;
bool tcg_jit_enabled = true;
bool tcg_jit_exact_flags;
unsigned tcg_jit_heat = 10;
bool tcg_jit_tested;

/* For the signal handler. */
static __thread Jit *thread_jit;

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
    JitJump *set = jit_jump_set(j, jb->tb->rip);

    while (jb->incoming) {
        JitLink *l = jb->incoming;

        jb->incoming = l->next;
        exit_reset(j, l);
    }
    unlink_exit(j, &jb->exit[0]);
    unlink_exit(j, &jb->exit[1]);
    for (unsigned way = 0; way < 2; way++) {
        if (set[way].code == jb->code) {
            set[way].epoch = 0;
        }
    }
    j->stat.invalidated++;
    j->stat.blocks--;
    j->stat.bytes -= jb->part[0].size + jb->part[1].size;
    jb->tb->jit = NULL;
    jb->tb = NULL;
}

#define GUARD_BUDGET 64

static void guard_set(X86CPU *c, JitLink *l)
{
    uint32_t epoch = (uint32_t)jit_epoch(c);

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

/* Blocks fill both rings in the same order, so what is in the way is the oldest. */
static void evict_range(Jit *j, unsigned part, uint32_t from, uint32_t size)
{
    while (j->used) {
        const JitPart *p = &j->block[j->tail].part[part];

        if (p->at + p->size <= from || p->at >= from + size) {
            break;
        }
        evict_oldest(j);
    }
}

static void make_room(Jit *j, unsigned part, uint32_t size)
{
    JitRing *r = &j->ring[part];

    if (r->fill + size > r->end) {
        evict_range(j, part, r->fill, r->end - r->fill);
        r->fill = r->begin;
    }
    evict_range(j, part, r->fill, size);
}

JitBlock *jit_alloc(Jit *j)
{
    uint64_t evicted = j->stat.evicted;
    uint64_t begin = jit_clock_ns();
    JitBlock *jb;

    if (j->used == j->blocks) {
        evict_oldest(j);
    }
    make_room(j, 0, JIT_HOT_MAX);
    make_room(j, 1, JIT_COLD_MAX);
    if (j->stat.evicted != evicted) {
        uint64_t ns = jit_clock_ns() - begin;

        j->stat.longest_eviction_ns = MAX(j->stat.longest_eviction_ns, ns);
    }
    jb = &j->block[j->head];
    memset(jb, 0, sizeof(*jb));
    jb->j = j;
    jb->part[0].at = j->ring[0].fill;
    jb->part[1].at = j->ring[1].fill;
    return jb;
}

void jit_commit(Jit *j, JitBlock *jb)
{
    for (unsigned n = 0; n < 2; n++) {
        j->ring[n].fill = ROUND_UP(jb->part[n].at + jb->part[n].size, 16);
        j->stat.bytes += jb->part[n].size;
    }
    j->head = (j->head + 1) % j->blocks;
    j->used++;
    j->stat.translated++;
    j->stat.blocks++;
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

static bool cache_map(X86CPU *c, Jit *j, Error **errp)
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
        tcg_no_memory(c, "translated code", j->size, errp);
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
    size_t size;
    Jit *j;

    if (!tcg_jit_enabled) {
        return true;
    }
    j = tcg_map(sizeof(*j));
    if (!j) {
        tcg_no_memory(c, "translator", sizeof(*j), errp);
        return false;
    }
    j->size = tcg_jit_cache_size;
    j->blocks = block_count(j->size);
    j->rw = j->rx = MAP_FAILED;
    c->tcg->jit = j;
    j->block = tcg_map(sizeof(JitBlock) * j->blocks);
    j->jump = tcg_map(sizeof(JitJump) << JIT_JUMP_BITS);
    if (!j->block || !j->jump || !cache_map(c, j, errp)) {
        if (!j->block || !j->jump) {
            tcg_no_memory(c, "translated blocks' records", sizeof(JitBlock) * j->blocks,
                          errp);
        }
        jit_fini(c);
        return false;
    }
    j->rorx = x86_tcg_backend.supported(FEAT_7_0_EBX) & CPUID_7_0_EBX_BMI2;
    j->one[1].fn = tcg_insn_end;
    *jit_area(c, AREA_JUMP) = (uintptr_t)j->jump;
    size = jit_common_emit(j, c);
    if (qemu_loglevel_mask(LOG_OUT_ASM)) {
        tcg_log_code(c, "common code", j->rx, size);
    }
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
