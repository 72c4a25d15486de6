/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interpreter's loop: from block to block, and at every block's entry a look at what others
 * want of this vCPU. Faults and early exits come back here by siglongjmp.
 */
#include <string.h>
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "qemu/log.h"
#include "realtime/latency.h"

/* ---- Leaving a block: see interp.h ---- */

bool tcg_block_is_single(const X86CPU *c)
{
    return !c->tcg->block || c->tcg->block->n == 1;
}

bool tcg_block_uses_page(const X86CPU *c, const RAMBlock *rb, uint64_t page_offset)
{
    const TcgBlock *b = c->tcg->block;

    return b && b->host &&
           ((b->rb == rb && (b->off & TARGET_PAGE_MASK) == page_offset) ||
            (b->cross && b->rb2 == rb && b->off2 == page_offset));
}

/* How many of the block's instructions, which were counted when it began, i and those behind it are. */
static uint64_t icount_left(const TcgCpu *t, const Insn *i)
{
    uint64_t done = (uint64_t)(i - t->block->insn);

    if (t->jit && i == t->jit->one) {
        /* Given to the interpreter by translated code, which counts under -icount only. */
        return t->counting ? t->block->n - t->jit->one_index : 0;
    }
    return done < t->block->n ? t->block->n - done : 0;
}

/* Those before i (and i, if more is 1) were executed. */
static void icount_correct(TcgCpu *t, const Insn *i, unsigned more)
{
    uint64_t left = icount_left(t, i);

    if (left) {
        t->icount -= left - more;
    }
}

uint64_t tcg_count_before(const X86CPU *c, const Insn *i)
{
    return c->tcg->icount - (c->tcg->block ? icount_left(c->tcg, i) : 0);
}

static void leave_insn(X86CPU *c, const Insn *i)
{
    if (i) {
        c->rip = tcg_insn_rip(c, i);
        icount_correct(c->tcg, i, 0);
    }
}

static QEMU_NORETURN void raise_exception(X86CPU *c, const Insn *i, TcgException exc)
{
    leave_insn(c, i);
    c->tcg->exc = exc;
    siglongjmp(c->tcg->jmp, TCG_JMP_RAISE);
}

void tcg_raise(X86CPU *c, const Insn *i, int vector)
{
    raise_exception(c, i, (TcgException){ .vector = vector });
}

void tcg_raise_err(X86CPU *c, const Insn *i, int vector, uint32_t error)
{
    raise_exception(c, i,
                    (TcgException){ .vector = vector, .has_error = true, .error = error });
}

void tcg_raise_pf(X86CPU *c, const Insn *i, uint64_t addr, uint32_t error)
{
    c->cr2 = addr;
    tcg_raise_err(c, i, EXCP_PF, error);
}

void tcg_leave_after(X86CPU *c, const Insn *i)
{
    c->rip = tcg_next_rip(c, i);
    icount_correct(c->tcg, i, 1);
    siglongjmp(c->tcg->jmp, TCG_JMP_LEAVE);
}

void tcg_leave_before(X86CPU *c, const Insn *i, bool single)
{
    TcgEngine *g = c->tcg->engine;

    leave_insn(c, i);
    if (g->step.active) {
        /* It did not execute: its shadow is still to come. */
        g->step.active = false;
        c->int_shadow = g->step.shadow;
        c->movss_shadow = g->step.movss;
        c->tcg->shadow_now = false;
    }
    g->step_once |= single;
    atomic_store_explicit(&c->base.exit_request, 1, memory_order_relaxed);
    siglongjmp(c->tcg->jmp, TCG_JMP_LEAVE);
}

void tcg_return_restart(X86CPU *c, const Insn *i)
{
    leave_insn(c, i);
}

void tcg_leave_shutdown(X86CPU *c)
{
    c->tcg->shutdown = true;
    siglongjmp(c->tcg->jmp, TCG_JMP_LEAVE);
}

void tcg_irq_recheck(X86CPU *c)
{
    if (c->tcg->irq_waiting || c->nmi_pending || c->int_shadow || c->movss_shadow ||
        atomic_load_explicit(&c->base.halted, memory_order_relaxed) ||
        tcg_single_step_wanted(c)) {
        atomic_store_explicit(&c->base.exit_request, 1, memory_order_relaxed);
    }
}

/* ---- Events ---- */

static bool deliver(X86CPU *c, int kind, int vector, bool has_error, uint32_t error)
{
    c->tcg->block = NULL;
    if (!tcg_deliver_event(c, kind, vector, has_error, error, c->rip)) {
        c->tcg->shutdown = true;
        return false;
    }
    tcg_irq_recheck(c);
    return true;
}

static bool irq_pending(X86CPU *c)
{
    if (!irqchip || !irqchip->cpu_pending) {
        return false;
    }
    return irqchip->cpu_pending(&c->base);
}

bool tcg_has_work(X86CPU *c)
{
    if (c->wait_for_sipi) {
        return false;
    }
    return (c->nmi_pending && !c->nmi_blocked) ||
           (c->tcg->irq_waiting && (c->rflags & FL_IF) && irq_pending(c));
}

static void handle_init(X86CPU *c)
{
    qemu_log_mask(LOG_CPU_RESET, "CPU %u: INIT at rip %llx\n", c->base.index,
                  (unsigned long long)c->rip);
    x86_cpu_reset(c, true);
    if (irqchip && irqchip->cpu_reset) {
        irqchip->cpu_reset(&c->base, true);
    }
    tcg_engine_reset(c);
    atomic_store(&c->base.halted, c->wait_for_sipi);
}

static void handle_sipi(X86CPU *c)
{
    if (c->wait_for_sipi) {
        x86_cpu_sipi(c, atomic_load(&c->base.sipi_vector));
        tcg_engine_reset(c);
        atomic_store(&c->base.halted, false);
    }
}

/*
 * Two NMIs that came close together are two for a processor that takes the first at once; while
 * one is in service only one more is kept.
 */
static void take_nmi_requests(X86CPU *c)
{
    uint32_t n = atomic_exchange(&c->base.nmi_count, 0) + c->nmi_pending + c->tcg->nmi_second;

    /* 0: this bit's request was counted with an earlier one. */
    c->nmi_pending = n > 0;
    c->tcg->nmi_second = n > 1 && !c->nmi_blocked;
}

/* Requests in the order of SDM 3A table 6-2. */
static void handle_requests(X86CPU *c, uint32_t bits)
{
    if (bits & CPU_REQ_INIT) {
        handle_init(c);
    }
    if (bits & CPU_REQ_SIPI) {
        handle_sipi(c);
    }
    if (bits & CPU_REQ_TLB_FLUSH) {
        /* A quiescent moment too: the map's old tables can be freed. */
        memory_read_unlock();
        memory_read_lock();
        tcg_mmu_resync(c);
    }
    if (bits & CPU_REQ_SMI) {
        qemu_log_mask(LOG_GUEST_ERROR, "CPU %u: SMI dropped, there is no SMM here\n",
                      c->base.index);
    }
    if (bits & CPU_REQ_NMI) {
        take_nmi_requests(c);
    }
    if ((bits & CPU_REQ_TIMER) && irqchip && irqchip->timer_check && !c->tcg->counting) {
        irqchip->timer_check(&c->base);
    }
    if (bits & (CPU_REQ_TIMER | CPU_REQ_INTERRUPT)) {
        c->tcg->irq_waiting = true;
    }
}

/* An NMI or interrupt that can be taken now is. True: one was, or the CPU shut down trying. */
static bool take_interrupt(X86CPU *c)
{
    TcgCpu *t = c->tcg;
    int vector;

    if (c->nmi_pending && !c->nmi_blocked) {
        c->nmi_pending = c->tcg->nmi_second;
        c->tcg->nmi_second = false;
        deliver(c, EVENT_NMI, EXCP_NMI, false, 0);
        return true;
    }
    if (!t->irq_waiting) {
        return false;
    }
    if (!irq_pending(c)) {
        t->irq_waiting = false;
        return false;
    }
    if (!(c->rflags & FL_IF)) {
        return false;
    }
    vector = irqchip->cpu_ack(&c->base);
    if (vector >= 0) {
        deliver(c, EVENT_EXT_INT, vector, false, 0);
    }
    return true;
}

/* ---- Running ---- */

static inline void run_block(X86CPU *c, TcgBlock *b)
{
    TcgCpu *t = c->tcg;

    t->block = b;
    t->block_rip = b->rip;
    t->icount += b->n;
    b->insn->fn(c, b->insn);
}

/* The instruction of run_single() ended, by return or by tcg_leave_after(). */
static void step_finish(X86CPU *c)
{
    TcgEngine *g = c->tcg->engine;
    bool dead = false;

    g->step.active = false;
    c->tcg->shadow_now = false;
    c->tcg->block = NULL;
    if (g->step.debug || c->tcg->db_pending) {
        tcg_debug_after(c, g->step.tf, &dead);
    }
    c->tcg->shutdown |= dead;
    atomic_store_explicit(&c->base.exit_request, 1, memory_order_relaxed);
}

/* One instruction: under a shadow, TF or breakpoints, or because it writes its own block. */
static void run_single(X86CPU *c)
{
    TcgCpu *t = c->tcg;
    TcgEngine *g = t->engine;
    bool dead = false;

    g->step = (EngineStep){ .debug = tcg_single_step_wanted(c),
                            .tf = (c->rflags & FL_TF) != 0,
                            .shadow = c->int_shadow,
                            .movss = c->movss_shadow };
    g->step_once = false;
    atomic_store_explicit(&c->base.exit_request, 1, memory_order_relaxed);
    t->block = NULL;
    if (g->step.debug && tcg_debug_before(c, &dead)) {
        t->shutdown |= dead;
        return;
    }
    TcgBlock *b = tcg_block_get(c, t->mode_key | MODE_STEP);
    g->step.active = true;
    t->shadow_now = c->int_shadow;
    c->int_shadow = c->movss_shadow = false;
    run_block(c, b);
    step_finish(c);
}

/* Under -icount: no block that would run past where the engine must stop. */
static uint32_t step_bit(const TcgCpu *t)
{
    return t->counting && t->count_limit - t->icount < BLOCK_MAX_INSNS ? MODE_STEP : 0;
}

/* -d exec, cpu: block by block through here. */
static void run_logged(X86CPU *c)
{
    TcgBlock *b;

    atomic_store_explicit(&c->base.exit_request, 1, memory_order_relaxed);
    c->tcg->block = NULL;
    b = tcg_block_get(c, c->tcg->mode_key | step_bit(c->tcg));
    c->tcg->clock_exact = false;
    tcg_log_exec(c, b);
    run_block(c, b);
}

/* exit_request was set. True: leave vcpu_run for *reason. */
static bool engine_attend(X86CPU *c, ExitReason *reason)
{
    CPUState *cpu = &c->base;
    TcgCpu *t = c->tcg;
    uint32_t bits;

    tcg_fp_sync(c);
    atomic_store(&cpu->exit_request, 0);
    if (unlikely(t->counting)) {
        tcg_count_attend(c);
    }
    bits = event_word_take(&cpu->event);
    if (bits) {
        /* Looks without a request are the guest's own doing: STI, and leaving a block early. */
        latency_exit_first(LATENCY_EXIT_REQUEST);
        handle_requests(c, bits);
        if (bits & CPU_REQ_EXIT) {
            *reason = EXIT_REQUEST;
            return true;
        }
    }
    if (unlikely(t->shutdown)) {
        *reason = EXIT_SHUTDOWN;
        return true;
    }
    if (atomic_load_explicit(&cpu->halted, memory_order_relaxed)) {
        if (!tcg_has_work(c)) {
            /* HLT under STI's shadow: the shadow ends with it. */
            c->int_shadow = c->movss_shadow = false;
            if (t->counting && tcg_count_halted(c)) {
                atomic_store_explicit(&cpu->exit_request, 1, memory_order_relaxed);
                return false;
            }
            latency_exit(LATENCY_EXIT_HALT);
            *reason = EXIT_HALT;
            return true;
        }
        atomic_store(&cpu->halted, false);
    }
    if (c->int_shadow || c->movss_shadow || t->engine->step_once) {
        latency_entry();
        run_single(c);
        return false;
    }
    if (take_interrupt(c)) {
        atomic_store_explicit(&cpu->exit_request, 1, memory_order_relaxed);
        return false; /* it looks once more before it enters the guest */
    }
    latency_entry();
    if (tcg_single_step_wanted(c)) {
        run_single(c);
    } else if (qemu_loglevel_mask(LOG_EXEC | LOG_CPU)) {
        run_logged(c);
    }
    return false;
}

/*
 * Is b what the CPU is to execute next? Everything it depends on is compared, so b may be any
 * header, of any age.
 */
static inline bool block_valid(const TcgCpu *t, const TcgBlock *b, uint64_t rip, uint32_t mode)
{
    uint64_t lin = tcg_code_linear(t, rip);
    const TlbEntry *e = tlb_exec_slot(&t->tlb[TLB_INDEX(lin)], lin);

    return b->rip == rip && b->mode == mode && tlb_more(e)->xtag == (lin & TARGET_PAGE_MASK) &&
           tlb_host(e, lin) == b->host && !b->cross &&
           b->gen == atomic_load_explicit(b->gen_ptr, memory_order_acquire) &&
           b->last <= t->cs_limit;
}

static QEMU_NOINLINE TcgBlock *next_slow(X86CPU *c, TcgBlock *prev)
{
    TcgCpu *t = c->tcg;
    TcgEngine *g = t->engine;
    uint64_t rip = c->rip;
    TcgBlock **slot = &g->jump[(rip ^ (rip >> JUMP_CACHE_BITS)) & ((1u << JUMP_CACHE_BITS) - 1)];
    TcgBlock *b = *slot ? *slot : &g->none;

    if (!block_valid(t, b, rip, t->mode_key)) {
        t->block = NULL;
        b = tcg_block_get(c, t->mode_key);
        if (b == &g->uncached) {
            return b;
        }
        *slot = b;
    }
    /* prev's header may have been given to another block meanwhile: then this is a wrong hint. */
    if (prev->next[0] != b) {
        prev->next[1] = prev->next[0];
        prev->next[0] = b;
    }
    return b;
}

static inline TcgBlock *next_block(X86CPU *c, TcgBlock *prev)
{
    TcgCpu *t = c->tcg;
    uint64_t rip = c->rip;
    TcgBlock *b = prev->next[0];

    if (b->rip != rip) {
        b = prev->next[1];
    }
    if (likely(block_valid(t, b, rip, t->mode_key))) {
        return b;
    }
    return next_slow(c, prev);
}

/* b is about to run: is it hot enough to be translated? */
static inline void block_heat(X86CPU *c, TcgBlock *b)
{
    if (unlikely(b->heat++ == tcg_jit_heat)) {
        jit_translate(c, b);
    }
}

/* Into translated code; what it left open comes back in *link. */
static void run_translated(X86CPU *c, TcgBlock *b, JitLink **link)
{
    if (*link) {
        jit_link(c, *link, b);
    }
    if (!*link || (*link)->guard_imm) {
        jit_remember(c, b);
    }
    *link = jit_run(c, b, b->jit->code);
    c->tcg->jit->stat.exits_link += *link != NULL;
}

/*
 * What follows a translated STI that nothing waited for: it is entered without a look at requests,
 * and then the shadow is over.
 */
static void run_shadowed(X86CPU *c, TcgBlock *b, JitLink **link)
{
    JitLink *from = *link;

    c->int_shadow = false;
    *link = NULL;
    if (!b->jit) {
        block_heat(c, b);
    }
    if (!b->jit || !b->jit->bare) {
        run_block(c, b);
        return;
    }
    if (from) {
        jit_link(c, from, b);
    }
    *link = jit_run(c, b, b->jit->inner);
}

static QEMU_NOINLINE ExitReason engine_loop(X86CPU *c)
{
    TcgEngine *g = c->tcg->engine;
    TcgBlock *b = &g->none;
    JitLink *link = NULL;
    ExitReason reason;

    for (;;) {
        if (unlikely(atomic_load_explicit(&c->base.exit_request, memory_order_relaxed))) {
            if (engine_attend(c, &reason)) {
                return reason;
            }
            b = &g->none;
            link = NULL;
            continue;
        }
        b = next_block(c, b);
        if (unlikely(c->int_shadow)) {
            run_shadowed(c, b, &link);
            b = &g->none;
            continue;
        }
        if (c->tcg->jit && !c->tcg->jit->interp_next) {
            if (!b->jit) {
                block_heat(c, b);
            }
            if (b->jit && (likely(!b->cross) || jit_stamp_cross(c, b))) {
                run_translated(c, b, &link);
                b = &g->none;
                continue;
            }
        }
        link = NULL;
        run_block(c, b);
        if (c->tcg->jit) {
            c->tcg->jit->interp_next = false;
            c->tcg->jit->stat.interp_blocks++;
        }
    }
}

/* The same under -icount, where every stop is at an exact count: the last instructions before it
 * run one by one. */
static void counted_block(X86CPU *c, TcgBlock *b, JitLink **link)
{
    TcgCpu *t = c->tcg;

    t->clock_exact = false;
    if (t->icount + b->n > t->count_limit) {
        t->block = NULL;
        b = tcg_block_get(c, t->mode_key | MODE_STEP);
    } else if (t->jit && !t->jit->interp_next) {
        if (!b->jit) {
            block_heat(c, b);
        }
        if (b->jit && (likely(!b->cross) || jit_stamp_cross(c, b))) {
            *jit_area(c, AREA_BUDGET) = t->count_limit - t->icount;
            run_translated(c, b, link);
            t->icount = t->count_limit - *jit_area(c, AREA_BUDGET);
            return;
        }
    }
    *link = NULL;
    run_block(c, b);
    if (t->jit) {
        t->jit->interp_next = false;
        t->jit->stat.interp_blocks++;
    }
}

static QEMU_NOINLINE ExitReason counted_loop(X86CPU *c)
{
    TcgCpu *t = c->tcg;
    JitLink *link = NULL;
    ExitReason reason;
    TcgBlock *b;

    for (;;) {
        if (unlikely(atomic_load_explicit(&c->base.exit_request, memory_order_relaxed)) ||
            t->icount >= t->count_limit) {
            if (engine_attend(c, &reason)) {
                return reason;
            }
            link = NULL;
            continue;
        }
        b = next_block(c, &t->engine->none);
        if (unlikely(state_log_blocks(t->icount))) {
            state_log_block(c, b);
            t->count_limit = MIN(t->count_limit, t->icount + b->n);
        }
        counted_block(c, b, &link);
    }
}

/*
 * Every siglongjmp arrives at the sigsetjmp, whose frame lives as long as engine_loop() runs; no
 * local variable is carried across.
 */
ExitReason tcg_engine_run(X86CPU *c)
{
    ExitReason reason;

    memory_read_lock();
    switch (sigsetjmp(c->tcg->jmp, 0)) {
    case TCG_JMP_RAISE:
        c->tcg->engine->step.active = false;
        c->tcg->shadow_now = false;
        latency_entry(); /* a fault while an interrupt was delivered: what follows is the guest's */
        deliver(c, EVENT_EXCEPTION, c->tcg->exc.vector, c->tcg->exc.has_error,
                c->tcg->exc.error);
        break;
    case TCG_JMP_LEAVE:
        if (c->tcg->engine->step.active) {
            step_finish(c);
        }
        break;
    default:
        atomic_store(&c->base.exit_request, 1);
        break;
    }
    if (unlikely(c->tcg->shutdown)) {
        atomic_store(&c->base.exit_request, 1);
    }
    reason = c->tcg->counting ? counted_loop(c) : engine_loop(c);
    tcg_fp_sync(c);
    memory_read_unlock();
    return reason;
}
