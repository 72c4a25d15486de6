/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors and segment registers (SDM 3A chapters 3 and 5). Checks come in the order of the
 * instruction references in SDM 2.
 */
#include "accel/tcg/sys.h"

/* ---- Reading and marking ---- */

bool desc_read(X86CPU *c, const Insn *i, uint16_t sel, Desc *d)
{
    uint64_t base = c->gdt.base, q;
    uint32_t limit = c->gdt.limit;
    uint32_t off = sel & ~7u;

    if (sel & 4) {
        if (c->ldt.attr & SEG_UNUSABLE) {
            return false;
        }
        base = c->ldt.base;
        limit = c->ldt.limit;
    }
    if (off + 7 > limit) {
        return false;
    }
    d->addr = mem_add(c, base, off);
    q = tcg_ld_sys(c, i, d->addr, 8);
    d->lo = (uint32_t)q;
    d->hi = (uint32_t)(q >> 32);
    d->base_hi = 0;
    if (sys_long(c) && !desc_is_segment(d)) {
        unsigned type = desc_type(d);

        /* LDT, TSS and call gates have 16 bytes; other types are refused by who asked. */
        if (type == SYS_LDT || type == SYS_TSS || type == SYS_TSS_BUSY || type == SYS_CALL) {
            if (off + 15 > limit) {
                return false;
            }
            d->base_hi = (uint32_t)tcg_ld_sys(c, i, d->addr + 8, 4);
        }
    }
    return true;
}

void desc_read_or(X86CPU *c, const Insn *i, uint16_t sel, Desc *d, int vector, uint32_t ext)
{
    if (!desc_read(c, i, sel, d)) {
        tcg_raise_err(c, i, vector, (sel & ~3u) | ext);
    }
}

void desc_set_accessed(X86CPU *c, const Insn *i, Desc *d)
{
    if (!(d->hi & BIT(8))) {
        d->hi |= BIT(8);
        tcg_st_sys(c, i, d->addr + 5, (d->hi >> 8) & 0xff, 1);
    }
}

void desc_set_busy(X86CPU *c, const Insn *i, uint16_t sel, bool busy)
{
    uint64_t addr = mem_add(c, c->gdt.base, (sel & ~7u) + 5);
    uint8_t type = (uint8_t)tcg_ld_sys(c, i, addr, 1);

    tcg_st_sys(c, i, addr, busy ? type | TSS_BUSY : type & ~TSS_BUSY, 1);
}

SegmentCache desc_cache(const Desc *d, uint16_t sel)
{
    return (SegmentCache){
        .selector = sel,
        .attr = desc_attr(d),
        .limit = desc_limit(d),
        .base = desc_base(d),
    };
}

SegmentCache seg_null(uint16_t sel)
{
    return (SegmentCache){ .selector = sel, .attr = SEG_UNUSABLE };
}

/* ---- Loading ---- */

void seg_load_real(X86CPU *c, unsigned seg, uint16_t sel)
{
    SegmentCache *s = &c->seg[seg];

    s->selector = sel;
    s->base = (uint64_t)sel << 4;
    if (c->rflags & FL_VM) {
        s->limit = 0xffff;
        s->attr = SEG_P | SEG_S | SEG_W | SEG_A | 3 << SEG_DPL_SHIFT;
    } else {
        /* The limit stays ("big real mode"), but for a segment that held a null selector. Only the
         * type is that of a data segment. */
        if (s->attr & SEG_UNUSABLE) {
            s->limit = 0xffff;
        }
        s->attr = (s->attr & (SEG_G | SEG_DB)) | SEG_P | SEG_S | SEG_W | SEG_A;
        if (seg == R_CS) {
            s->attr |= SEG_CODE;
        }
    }
}

SegmentCache seg_check_stack(X86CPU *c, const Insn *i, uint16_t sel, unsigned dpl, int vector,
                             uint32_t ext)
{
    uint32_t error = (sel & ~3u) | ext;
    Desc d;

    desc_read_or(c, i, sel, &d, vector, ext);
    if ((sel & 3) != dpl || !desc_is_writable_data(&d) || desc_dpl(&d) != dpl) {
        tcg_raise_err(c, i, vector, error);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_SS, error);
    }
    desc_set_accessed(c, i, &d);
    return desc_cache(&d, sel);
}

static SegmentCache load_ss(X86CPU *c, const Insn *i, uint16_t sel)
{
    if (sys_null(sel)) {
        /* SDM 2B MOV: 64-bit mode, not CPL 3, RPL = CPL. */
        if (!x86_in_64bit(c) || c->cpl == 3 || (sel & 3) != c->cpl) {
            sys_gp0(c, i);
        }
        SegmentCache s = seg_null(sel);
        s.attr |= (uint32_t)c->cpl << SEG_DPL_SHIFT;
        return s;
    }
    return seg_check_stack(c, i, sel, c->cpl, EXCP_GP, 0);
}

static SegmentCache load_data(X86CPU *c, const Insn *i, uint16_t sel)
{
    Desc d;

    if (sys_null(sel)) {
        return seg_null(sel);
    }
    desc_read_or(c, i, sel, &d, EXCP_GP, 0);
    /* Data or readable code; DPL counts unless it is conforming code. */
    if (!desc_is_segment(&d) || (desc_is_code(&d) && !(d.hi & BIT(9))) ||
        (!desc_is_conforming(&d) &&
         (desc_dpl(&d) < (sel & 3u) || desc_dpl(&d) < c->cpl))) {
        tcg_raise_err(c, i, EXCP_GP, sel & ~3u);
    }
    if (!desc_present(&d)) {
        tcg_raise_err(c, i, EXCP_NP, sel & ~3u);
    }
    desc_set_accessed(c, i, &d);
    return desc_cache(&d, sel);
}

void seg_load(X86CPU *c, const Insn *i, unsigned seg, uint16_t sel)
{
    if (!sys_protected(c)) {
        seg_load_real(c, seg, sel);
        return;
    }
    c->seg[seg] = seg == R_SS ? load_ss(c, i, sel) : load_data(c, i, sel);
}

void seg_drop_privileged(X86CPU *c)
{
    static const uint8_t data[] = { R_ES, R_DS, R_FS, R_GS };

    for (unsigned n = 0; n < ARRAY_SIZE(data); n++) {
        SegmentCache *s = &c->seg[data[n]];
        bool conforming = (s->attr & (SEG_CODE | SEG_C)) == (SEG_CODE | SEG_C);

        if (!(s->attr & SEG_UNUSABLE) && SEG_DPL(s->attr) < c->cpl && !conforming) {
            /* The hidden part stays: 64-bit mode goes on using the base of FS and GS. */
            s->selector = 0;
            s->attr |= SEG_UNUSABLE;
        }
    }
}

/* ---- Limit and type checks of memory operands (SDM 3A 5.3 to 5.5) ---- */

static bool in_limit(const SegmentCache *s, uint64_t off, unsigned size)
{
    uint64_t last = off + (size ? size - 1 : 0);

    if ((s->attr & (SEG_S | SEG_CODE | SEG_C)) == (SEG_S | SEG_C)) {
        return off > s->limit && last <= ((s->attr & SEG_DB) ? 0xffffffffull : 0xffffull);
    }
    return last <= s->limit;
}

uint64_t tcg_seg_check(X86CPU *c, const Insn *i, unsigned seg, uint64_t offset, unsigned size,
                       bool write)
{
    const SegmentCache *s = &c->seg[seg];
    int vector = seg == R_SS ? EXCP_SS : EXCP_GP;

    if (x86_in_64bit(c)) {
        return seg == R_FS || seg == R_GS ? s->base + offset : offset;
    }
    if (sys_protected(c)) {
        bool code = s->attr & SEG_CODE;

        if ((s->attr & SEG_UNUSABLE) || (write && (code || !(s->attr & SEG_W))) ||
            (!write && code && !(s->attr & SEG_W))) {
            tcg_raise_err(c, i, vector, 0);
        }
    }
    if (unlikely(!in_limit(s, offset, size))) {
        tcg_raise_err(c, i, vector, 0);
    }
    return (uint32_t)(s->base + offset);
}
