/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of far transfers and event delivery. The stack pointer lives in a local structure until
 * everything has been checked, so that a fault leaves RSP as it was.
 */
#include "accel/tcg/sys.h"

SysStack sys_stack_new(X86CPU *c, const Insn *i, SegmentCache ss, uint64_t sp, unsigned cpl,
                   bool code64, uint32_t error)
{
    return (SysStack){
        .c = c,
        .i = i,
        .ss = ss,
        .sp = sp,
        .flat64 = code64,
        .mask = code64 ? UINT64_MAX : (ss.attr & SEG_DB) ? 0xffffffff : 0xffff,
        .mode = (uint8_t)sys_mem_mode(c, cpl),
        .error = error,
    };
}

SysStack sys_stack_current(X86CPU *c, const Insn *i)
{
    return sys_stack_new(c, i, c->seg[R_SS], c->regs[R_RSP], c->cpl, x86_in_64bit(c), 0);
}

static uint64_t stack_linear(const SysStack *s, uint64_t off, unsigned size)
{
    const SegmentCache *ss = &s->ss;
    uint64_t last = off + size - 1;
    bool ok;

    if (s->flat64) {
        if (!mmu_canonical(off) || !mmu_canonical(last)) {
            tcg_raise_err(s->c, s->i, EXCP_SS, s->error);
        }
        return off;
    }
    if ((ss->attr & (SEG_S | SEG_CODE | SEG_C)) == (SEG_S | SEG_C)) {
        ok = off > ss->limit && last <= ((ss->attr & SEG_DB) ? 0xffffffffull : 0xffffull);
    } else {
        ok = last <= ss->limit;
    }
    if (!ok) {
        tcg_raise_err(s->c, s->i, EXCP_SS, s->error);
    }
    return (uint32_t)(ss->base + off);
}

void sys_push(SysStack *s, uint64_t v, unsigned size)
{
    uint64_t off = (s->sp - size) & s->mask;
    uint64_t lin = stack_linear(s, off, size);

    mem_store(s->c, s->i, lin, v, size, s->mode);
    s->sp = off;
}

uint64_t sys_pop(SysStack *s, unsigned size)
{
    uint64_t off = s->sp & s->mask;
    uint64_t v = mem_load(s->c, s->i, stack_linear(s, off, size), size, s->mode);

    s->sp = (off + size) & s->mask;
    return v;
}

void sys_reserve(SysStack *s, unsigned n)
{
    uint64_t off = (s->sp - n) & s->mask;

    mem_probe(s->c, s->i, stack_linear(s, off, n), n, ACC_WRITE, s->mode);
}

uint64_t sys_stack_rsp(const SysStack *s, uint64_t old_rsp)
{
    if (s->mask == 0xffff) {
        return (old_rsp & ~0xffffull) | (s->sp & 0xffff);
    }
    return s->sp & s->mask;
}

uint64_t tss_stack(X86CPU *c, const Insn *i, unsigned dpl, uint16_t *ss, uint32_t ext)
{
    bool big = SEG_TYPE(c->tr.attr) & 8;
    uint32_t off = sys_long(c) ? 4 + 8 * dpl : big ? 4 + 8 * dpl : 2 + 4 * dpl;
    uint32_t last = off + (sys_long(c) ? 7 : big ? 5 : 3);
    uint64_t lin = mem_add(c, c->tr.base, off);

    if (last > c->tr.limit) {
        tcg_raise_err(c, i, EXCP_TS, (c->tr.selector & ~3u) | ext);
    }
    *ss = 0;
    if (sys_long(c)) {
        return tcg_ld_sys(c, i, lin, 8);
    }
    *ss = (uint16_t)tcg_ld_sys(c, i, mem_add(c, lin, big ? 4 : 2), 2);
    return tcg_ld_sys(c, i, lin, big ? 4 : 2);
}

uint64_t tss_ist(X86CPU *c, const Insn *i, unsigned ist, uint32_t ext)
{
    uint32_t off = 0x1c + 8 * ist;

    if (off + 7 > c->tr.limit) {
        tcg_raise_err(c, i, EXCP_TS, (c->tr.selector & ~3u) | ext);
    }
    return tcg_ld_sys(c, i, c->tr.base + off, 8);
}
