/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What follows from the registers: the mode key, flags with side effects, and the debug registers'
 * work around each instruction (SDM 3B 17.2, 17.3).
 */
#include <stdlib.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/sys.h"
#include "target/i386/cpuid.h"

/* ---- Mode ---- */

static bool seg_is_flat(const SegmentCache *s)
{
    return s->base == 0 && s->limit == 0xffffffff &&
           (s->attr & (SEG_UNUSABLE | SEG_S | SEG_CODE | SEG_C | SEG_W)) == (SEG_S | SEG_W);
}

static uint32_t key_segments(const X86CPU *c)
{
    uint32_t k = 0;

    if (x86_in_64bit(c)) {
        return MODE_CS64;
    }
    if (c->seg[R_CS].attr & SEG_DB) {
        k |= MODE_CS32;
    }
    if (c->seg[R_SS].attr & SEG_DB) {
        k |= MODE_SS32;
    }
    if (seg_is_flat(&c->seg[R_ES]) && seg_is_flat(&c->seg[R_SS]) && seg_is_flat(&c->seg[R_DS])) {
        k |= MODE_FLAT;
    }
    if (c->seg[R_CS].base == 0 && c->seg[R_CS].limit == 0xffffffff) {
        k |= MODE_CSFLAT;
    }
    return k;
}

static uint32_t key_registers(const X86CPU *c)
{
    uint32_t k = 0;

    k |= (c->cr0 & CR0_PE) ? MODE_PE : 0;
    k |= (c->rflags & FL_VM) ? MODE_VM86 : 0;
    k |= c->cpl == 3 ? MODE_USER : 0;
    k |= (c->efer & EFER_LMA) ? MODE_LMA : 0;
    k |= (c->cr0 & (CR0_TS | CR0_EM)) ? MODE_FPU_NM : 0;
    k |= (c->cr0 & CR0_EM) || !(c->cr4 & CR4_OSFXSR) ? MODE_SSE_UD : 0;
    k |= (c->cr0 & CR0_TS) ? MODE_SSE_NM : 0;
    k |= (c->cr4 & CR4_OSXSAVE) && (c->xcr0 & 6) == 6 ? MODE_AVX : 0;
    return k;
}

void tcg_mode_changed(X86CPU *c)
{
    struct TcgCpu *t = c->tcg;
    const SegmentCache *cs = &c->seg[R_CS];

    t->mode_key = key_segments(c) | key_registers(c);
    if (t->mode_key & MODE_CS64) {
        t->cs_base = 0;
        t->cs_limit = UINT64_MAX;
        t->rip_mask = UINT64_MAX;
    } else {
        t->cs_base = cs->base;
        t->cs_limit = cs->limit;
        t->rip_mask = 0xffffffff;
    }
    mmu_select_mode(c);
}

void sys_end(X86CPU *c)
{
    tcg_mode_changed(c);
    tcg_irq_recheck(c);
}

void tcg_write_flags(X86CPU *c, uint64_t v, uint64_t mask)
{
    uint64_t old = x86_get_rflags(c);
    uint64_t now = (old & ~mask) | (v & mask) | FL_1;

    if (now & mask & FL_RF) {
        /* Without breakpoints nobody can tell RF's effect, and nothing would clear it. */
        if (debug_code_breakpoints(c)) {
            c->tcg->sys->rf_fresh = true;
        } else {
            now &= ~FL_RF;
        }
    }
    x86_set_rflags(c, now);
    if ((old ^ now) & FL_AC) {
        mmu_select_mode(c);
    }
    if ((old ^ now) & now & (FL_IF | FL_TF | FL_VIF)) {
        tcg_irq_recheck(c);
    }
}

/* ---- Debug registers ---- */

static bool breakpoint_on(const X86CPU *c, unsigned n)
{
    return (c->dr[7] >> (2 * n) & 3) != 0;
}

static unsigned breakpoint_kind(const X86CPU *c, unsigned n)
{
    return c->dr[7] >> (16 + 4 * n) & 3;
}

bool debug_code_breakpoints(const X86CPU *c)
{
    for (unsigned n = 0; n < 4; n++) {
        if (breakpoint_on(c, n) && breakpoint_kind(c, n) == 0) {
            return true;
        }
    }
    return false;
}

static void io_breakpoints(X86CPU *c, uint16_t port, unsigned size)
{
    static const uint8_t len[4] = { 1, 2, 8, 4 };

    if (!(c->cr4 & CR4_DE) || !(c->dr[7] & 0xff)) {
        return;
    }
    for (unsigned n = 0; n < 4; n++) {
        uint32_t l = len[c->dr[7] >> (18 + 4 * n) & 3];
        uint32_t start = (uint32_t)c->dr[n] & ~(l - 1);

        if (breakpoint_on(c, n) && breakpoint_kind(c, n) == 2 &&
            (port - start < l || start - port < size)) {
            c->tcg->db_pending |= BIT(n);
        }
    }
}

bool tcg_single_step_wanted(const X86CPU *c)
{
    return (c->rflags & FL_TF) || (c->dr[7] & 0xff) || c->tcg->db_pending;
}

static bool deliver_debug(X86CPU *c, uint32_t dr6)
{
    c->dr[6] = (c->dr[6] & ~0xfull) | dr6 | DR6_SET;
    atomic_store(&c->base.halted, false);
    return tcg_deliver_event(c, EVENT_EXCEPTION, EXCP_DB, false, 0, c->rip);
}

bool tcg_debug_before(X86CPU *c, bool *dead)
{
    uint64_t lin = mem_add(c, c->tcg->cs_base, c->rip);
    uint32_t hits = 0;

    c->tcg->sys->no_step = false;
    if (c->tcg->db_pending && !c->movss_shadow) {
        /* A trap of what came before: the T bit of the TSS a task switch loaded. */
        hits = c->tcg->db_pending;
        *dead = !deliver_debug(c, hits);
        return true;
    }
    if ((c->rflags & FL_RF) || !(c->dr[7] & 0xff) || (c->movss_shadow && x86_is_intel(c))) {
        return false; /* AMD does not hold instruction breakpoints back behind MOV SS */
    }
    for (unsigned n = 0; n < 4; n++) {
        if (breakpoint_on(c, n) && breakpoint_kind(c, n) == 0 && c->dr[n] == lin) {
            hits |= BIT(n);
        }
    }
    if (!hits) {
        return false;
    }
    *dead = !deliver_debug(c, hits);
    return true;
}

void tcg_debug_after(X86CPU *c, bool tf_before, bool *dead)
{
    struct TcgSys *s = c->tcg->sys;
    uint32_t pending = c->tcg->db_pending;

    if (s->rf_fresh) {
        s->rf_fresh = false;
    } else {
        c->rflags &= ~FL_RF;
    }
    if (tf_before && !s->no_step) {
        pending |= DR6_BS;
    }
    s->no_step = false;
    c->tcg->db_pending = 0;
    if (!pending) {
        return;
    }
    if (c->movss_shadow) {
        /* SDM 3A 6.8.3: data breakpoints wait for the next instruction, the single step is lost. */
        c->tcg->db_pending = pending & ~DR6_BS;
        return;
    }
    *dead = !deliver_debug(c, pending);
}

/* ---- I/O permission (SDM 1 19.5) ---- */

void tcg_check_io(X86CPU *c, const Insn *i, uint16_t port, unsigned size)
{
    tcg_fp_sync(c); /* a device will run */
    if ((c->cr0 & CR0_PE) && (c->cpl > sys_iopl(c) || (c->rflags & FL_VM))) {
        uint32_t map, off, bits;

        if (!(SEG_TYPE(c->tr.attr) & 8) || c->tr.limit < 0x67) {
            sys_gp0(c, i);
        }
        map = (uint32_t)tcg_ld_sys(c, i, mem_add(c, c->tr.base, 0x66), 2);
        off = map + port / 8;
        /* Two bytes are read always, so the one after must be inside the limit too. */
        if (off + 1 > c->tr.limit) {
            sys_gp0(c, i);
        }
        bits = (uint32_t)tcg_ld_sys(c, i, mem_add(c, c->tr.base, off), 2);
        if (bits >> (port & 7) & ((1u << size) - 1)) {
            sys_gp0(c, i);
        }
    }
    io_breakpoints(c, port, size);
}

/* ---- Life ---- */

bool tcg_sys_init(X86CPU *c, Error **errp)
{
    c->tcg->sys = calloc(1, sizeof(*c->tcg->sys));
    if (!c->tcg->sys) {
        tcg_no_memory(c, "system registers", sizeof(*c->tcg->sys), errp);
    }
    return c->tcg->sys != NULL;
}

void tcg_sys_fini(X86CPU *c)
{
    free(c->tcg->sys);
    c->tcg->sys = NULL;
}
