/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FXSAVE, FXRSTOR and the XSAVE family (SDM 1, 10.5 and chapter 13). State components offered: x87,
 * SSE, AVX and PKRU, as far as XCR0 enables them. The init optimisation is used; the modified
 * optimisation, which software can not see, is not.
 */
#include "accel/tcg/simd.h"

#define XC_X87  BIT64(0)
#define XC_SSE  BIT64(1)
#define XC_AVX  BIT64(2)
#define XC_PKRU BIT64(9)
#define XC_ALL  (XC_X87 | XC_SSE | XC_AVX | XC_PKRU)

#define FX_MXCSR    24
#define FX_ST       32
#define FX_XMM      160
#define XS_HEADER   512
#define XS_EXTENDED 576
#define XCOMP_COMPACT BIT64(63)

enum { OP_XSAVE, OP_XSAVEOPT, OP_XSAVEC, OP_XSAVES };

/* ---- The legacy region ---- */

static unsigned nr_xmm(const X86CPU *c)
{
    return x86_in_64bit(c) ? 16 : 8;
}

/* Bytes 0..23 and the registers at 32..159. rex: the form with 64-bit pointers. */
static void put_x87(const X86CPU *c, uint8_t *area, bool rex)
{
    const X87State *x = &c->x87;
    uint64_t fip = x->fip, fdp = x->fdp;
    if (!rex) {
        fip = (uint32_t)fip | (uint64_t)c->x87_fcs << 32;
        fdp = (uint32_t)fdp | (uint64_t)c->x87_fds << 32;
    }
    memcpy(area, x, 8);
    area[5] = 0;
    memcpy(area + 8, &fip, 8);
    memcpy(area + 16, &fdp, 8);
    for (unsigned n = 0; n < 8; n++) {
        memcpy(area + FX_ST + 16 * n, x->st[n].b, 10);
        memset(area + FX_ST + 16 * n + 10, 0, 6);
    }
}

static void get_x87(X86CPU *c, const uint8_t *area, bool rex)
{
    X87State *x = &c->x87;
    memcpy(x, area, 8);
    x->rsvd = 0;
    x->fcw = (x->fcw & 0x1f3f) | 0x40;
    x->fop &= 0x7ff;
    memcpy(&x->fip, area + 8, 8);
    memcpy(&x->fdp, area + 16, 8);
    if (!rex) {
        c->x87_fcs = (uint16_t)(x->fip >> 32);
        c->x87_fds = (uint16_t)(x->fdp >> 32);
        x->fip = (uint32_t)x->fip;
        x->fdp = (uint32_t)x->fdp;
    } else {
        c->x87_fcs = c->x87_fds = 0;
    }
    for (unsigned n = 0; n < 8; n++) {
        memcpy(x->st[n].b, area + FX_ST + 16 * n, 10);
    }
    x87_update_es(c);
}

static void init_x87(X86CPU *c)
{
    memset(&c->x87, 0, sizeof(c->x87));
    c->x87.fcw = 0x37f;
    c->x87_fcs = c->x87_fds = 0;
    x87_update_es(c);
}

static void put_mxcsr(const X86CPU *c, uint8_t *area)
{
    uint32_t v[2] = { c->mxcsr, MXCSR_VALID };
    memcpy(area + FX_MXCSR, v, 8);
}

static void put_xmm(const X86CPU *c, uint8_t *area)
{
    for (unsigned n = 0; n < nr_xmm(c); n++) {
        memcpy(area + FX_XMM + 16 * n, c->ymm[n], 16);
    }
}

static void get_xmm(X86CPU *c, const uint8_t *area)
{
    for (unsigned n = 0; n < nr_xmm(c); n++) {
        memcpy(c->ymm[n], area + FX_XMM + 16 * n, 16);
    }
}

static uint32_t area_mxcsr(const uint8_t *area)
{
    uint32_t v;
    memcpy(&v, area + FX_MXCSR, 4);
    return v;
}

/* ---- FXSAVE, FXRSTOR ---- */

static uint64_t fx_prepare(X86CPU *c, const Insn *i, bool write)
{
    tcg_fp_sync(c);
    if (c->cr0 & (CR0_EM | CR0_TS)) {
        tcg_raise(c, i, EXCP_NM);
    }
    uint64_t lin = tcg_ea(c, i, 512, write);
    simd_align(c, i, lin, 16);
    return lin;
}

/* AMD's fast variant leaves the XMM registers out at CPL 0 in 64-bit mode. */
static bool fx_with_xmm(const X86CPU *c)
{
    return (c->cr4 & CR4_OSFXSR) &&
           !((c->efer & EFER_FFXSR) && c->cpl == 0 && x86_in_64bit(c));
}

static void fxsave(X86CPU *c, const Insn *i)
{
    uint8_t area[512] QEMU_ALIGNED(16);
    uint64_t lin = fx_prepare(c, i, true);
    unsigned len = FX_XMM;
    put_x87(c, area, i->aux8);
    put_mxcsr(c, area);
    if (fx_with_xmm(c)) {
        put_xmm(c, area);
        len += nr_xmm(c) * 16;
    }
    tcg_st_buf(c, i, lin, area, len);
    NEXT(c, i);
}

static void fxrstor(X86CPU *c, const Insn *i)
{
    uint8_t area[512] QEMU_ALIGNED(16);
    uint64_t lin = fx_prepare(c, i, false);
    tcg_ld_buf(c, i, lin, area, sizeof(area));
    if (area_mxcsr(area) & ~MXCSR_VALID) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    get_x87(c, area, i->aux8);
    c->mxcsr = area_mxcsr(area);
    if (fx_with_xmm(c)) {
        get_xmm(c, area);
    }
    NEXT(c, i);
}

/* ---- XSAVE family ---- */

static bool all_zero(const void *p, size_t len)
{
    const uint8_t *b = p;
    for (size_t n = 0; n < len; n++) {
        if (b[n]) {
            return false;
        }
    }
    return true;
}

/* XINUSE: components that are not in their initial configuration (SDM 1, 13.6). */
static uint64_t xinuse(const X86CPU *c)
{
    const X87State *x = &c->x87;
    uint64_t r = 0;
    bool init = x->fcw == 0x37f && x->fsw == 0 && x->ftw == 0 && x->fop == 0 && x->fip == 0 &&
                x->fdp == 0 && c->x87_fcs == 0 && c->x87_fds == 0;
    for (unsigned n = 0; n < 8 && init; n++) {
        init = all_zero(x->st[n].b, 10);
    }
    r |= init ? 0 : XC_X87;
    for (unsigned n = 0; n < nr_xmm(c); n++) {
        r |= all_zero(c->ymm[n], 16) ? 0 : XC_SSE;
        r |= all_zero(c->ymm[n] + 16, 16) ? 0 : XC_AVX;
    }
    return r | (c->pkru ? XC_PKRU : 0);
}

static void xs_check(X86CPU *c, const Insn *i, bool privileged)
{
    tcg_fp_sync(c);
    if (!(c->cr4 & CR4_OSXSAVE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    if (privileged && c->cpl) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    if (c->cr0 & CR0_TS) {
        tcg_raise(c, i, EXCP_NM);
    }
}

static uint64_t requested(const X86CPU *c)
{
    uint64_t mask = (uint32_t)c->regs[R_RAX] | c->regs[R_RDX] << 32;
    return mask & c->xcr0 & XC_ALL;
}

static unsigned pkru_standard_offset(X86CPU *c)
{
    struct TcgSimd *s = c->tcg->simd;
    if (!s->pkru_offset) {
        uint32_t a, b, cx, d;
        x86_cpuid(c, 0xd, 9, &a, &b, &cx, &d);
        s->pkru_offset = (uint16_t)(b ? b : 2688);
    }
    return s->pkru_offset;
}

static unsigned pkru_offset(X86CPU *c, uint64_t xcomp)
{
    if (!(xcomp & XCOMP_COMPACT)) {
        return pkru_standard_offset(c);
    }
    return XS_EXTENDED + (xcomp & XC_AVX ? 256 : 0);
}

static void put_avx(const X86CPU *c, uint8_t *buf)
{
    for (unsigned n = 0; n < nr_xmm(c); n++) {
        memcpy(buf + 16 * n, c->ymm[n] + 16, 16);
    }
}

static void xs_probe(X86CPU *c, const Insn *i, uint64_t lin, uint64_t write, uint64_t xcomp)
{
    tcg_probe_write(c, i, lin, XS_EXTENDED);
    if (write & XC_AVX) {
        tcg_probe_write(c, i, lin + XS_EXTENDED, 256);
    }
    if (write & XC_PKRU) {
        tcg_probe_write(c, i, lin + pkru_offset(c, xcomp), 4);
    }
}

/* Stores the components in write; everything was probed. */
static void xs_put(X86CPU *c, const Insn *i, uint64_t lin, uint64_t write, uint64_t xcomp,
                   bool mxcsr, bool rex)
{
    uint8_t buf[512] QEMU_ALIGNED(16);
    if (write & XC_X87) {
        put_x87(c, buf, rex);
        tcg_st_buf(c, i, lin, buf, FX_MXCSR);
        tcg_st_buf(c, i, lin + FX_ST, buf + FX_ST, 128);
    }
    if (mxcsr) {
        put_mxcsr(c, buf);
        tcg_st_buf(c, i, lin + FX_MXCSR, buf + FX_MXCSR, 8);
    }
    if (write & XC_SSE) {
        put_xmm(c, buf);
        tcg_st_buf(c, i, lin + FX_XMM, buf + FX_XMM, nr_xmm(c) * 16);
    }
    if (write & XC_AVX) {
        put_avx(c, buf);
        tcg_st_buf(c, i, lin + XS_EXTENDED, buf, nr_xmm(c) * 16);
    }
    if (write & XC_PKRU) {
        uint64_t v = c->pkru;
        tcg_st_buf(c, i, lin + pkru_offset(c, xcomp), &v, 8);
    }
}

static void xsave_common(X86CPU *c, const Insn *i, int op)
{
    bool compact = op == OP_XSAVEC || op == OP_XSAVES;
    xs_check(c, i, op == OP_XSAVES);
    uint64_t rfbm = requested(c), used = xinuse(c), header[2];
    uint64_t lin = tcg_ea(c, i, XS_EXTENDED, true);
    simd_align(c, i, lin, 64);

    if (compact && c->mxcsr != MXCSR_DEFAULT) {
        used |= XC_SSE;
    }
    uint64_t write = op == OP_XSAVE ? rfbm : rfbm & used;
    uint64_t xcomp = compact ? XCOMP_COMPACT | rfbm : 0;
    bool mxcsr = compact ? write & XC_SSE : rfbm & (XC_SSE | XC_AVX);
    xs_probe(c, i, lin, write, xcomp);
    if (compact) {
        header[0] = rfbm & used;
        header[1] = xcomp;
    } else {
        header[0] = (tcg_ld64(c, i, lin + XS_HEADER) & ~rfbm) | (rfbm & used);
    }
    xs_put(c, i, lin, write, xcomp, mxcsr, i->aux8);
    tcg_st_buf(c, i, lin + XS_HEADER, header, compact ? 16 : 8);
}

static void xsave(X86CPU *c, const Insn *i)
{
    xsave_common(c, i, i->aux16);
    NEXT(c, i);
}

/* #GP(0) for a header that does not fit (SDM 1, 13.8.2 and 13.12). */
static void check_header(X86CPU *c, const Insn *i, const uint64_t *h, bool supervisor)
{
    bool bad;
    if (h[1] & XCOMP_COMPACT) {
        uint64_t comp = h[1] & ~XCOMP_COMPACT;
        bad = !x86_has(c, FEAT_XSAVE, BIT(1)) || (comp & ~(c->xcr0 | (supervisor ? c->xss : 0))) ||
              (h[0] & ~comp) || !all_zero(h + 2, 48);
    } else {
        bad = supervisor || (h[0] & ~c->xcr0) || h[1] || h[2];
    }
    if (bad) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}

typedef struct XState {
    uint8_t fx[512] QEMU_ALIGNED(16);
    uint8_t avx[256];
    uint32_t pkru;
} XState;

static void commit_state(X86CPU *c, const XState *s, uint64_t rfbm, uint64_t bv, bool rex)
{
    if (rfbm & bv & XC_X87) {
        get_x87(c, s->fx, rex);
    } else if (rfbm & XC_X87) {
        init_x87(c);
    }
    for (unsigned n = 0; n < nr_xmm(c); n++) {
        if (rfbm & bv & XC_SSE) {
            memcpy(c->ymm[n], s->fx + FX_XMM + 16 * n, 16);
        } else if (rfbm & XC_SSE) {
            memset(c->ymm[n], 0, 16);
        }
        if (rfbm & bv & XC_AVX) {
            memcpy(c->ymm[n] + 16, s->avx + 16 * n, 16);
        } else if (rfbm & XC_AVX) {
            memset(c->ymm[n] + 16, 0, 16);
        }
    }
    if (rfbm & XC_PKRU) {
        tcg_pkru_set(c, bv & XC_PKRU ? s->pkru : 0);
    }
}

/* Everything is loaded and checked before anything changes. aux16: XRSTORS. */
static void xrstor(X86CPU *c, const Insn *i)
{
    XState s;
    uint64_t h[8];
    bool supervisor = i->aux16;
    xs_check(c, i, supervisor);
    uint64_t rfbm = requested(c), lin = tcg_ea(c, i, XS_EXTENDED, false);
    simd_align(c, i, lin, 64);
    tcg_ld_buf(c, i, lin + XS_HEADER, h, sizeof(h));
    check_header(c, i, h, supervisor);

    bool compact = h[1] & XCOMP_COMPACT;
    uint64_t load = rfbm & h[0];
    bool mxcsr = compact ? load & XC_SSE : rfbm & (XC_SSE | XC_AVX);
    tcg_ld_buf(c, i, lin, s.fx, sizeof(s.fx));
    if (mxcsr && (area_mxcsr(s.fx) & ~MXCSR_VALID)) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    if (load & XC_AVX) {
        tcg_ld_buf(c, i, lin + XS_EXTENDED, s.avx, nr_xmm(c) * 16);
    }
    if (load & XC_PKRU) {
        s.pkru = tcg_ld32(c, i, lin + pkru_offset(c, h[1]));
    }
    commit_state(c, &s, rfbm, h[0], i->aux8);
    if (mxcsr) {
        c->mxcsr = area_mxcsr(s.fx);
    } else if (compact && (rfbm & XC_SSE)) {
        c->mxcsr = MXCSR_DEFAULT;
    }
    NEXT(c, i);
}

/* ECX = 1: XCR0 & XINUSE, where CPUID offers it. */
static void xgetbv(X86CPU *c, const Insn *i)
{
    uint32_t n = (uint32_t)c->regs[R_RCX];
    uint64_t v = c->xcr0;
    tcg_fp_sync(c);
    if (!(c->cr4 & CR4_OSXSAVE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    if (n > 1 || (n == 1 && !x86_has(c, FEAT_XSAVE, BIT(2)))) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    if (n == 1) {
        v &= xinuse(c) | (c->mxcsr != MXCSR_DEFAULT ? XC_SSE : 0);
    }
    c->regs[R_RAX] = (uint32_t)v;
    c->regs[R_RDX] = v >> 32;
    NEXT(c, i);
}

bool simd_decode_state(Decode *d, Insn *out)
{
    static const struct {
        ZydisMnemonic mn;
        InsnFn *fn;
        uint8_t rex;
        uint16_t op;
    } rows[] = {
        { ZYDIS_MNEMONIC_FXSAVE, fxsave, 0, 0 },
        { ZYDIS_MNEMONIC_FXSAVE64, fxsave, 1, 0 },
        { ZYDIS_MNEMONIC_FXRSTOR, fxrstor, 0, 0 },
        { ZYDIS_MNEMONIC_FXRSTOR64, fxrstor, 1, 0 },
        { ZYDIS_MNEMONIC_XSAVE, xsave, 0, OP_XSAVE },
        { ZYDIS_MNEMONIC_XSAVE64, xsave, 1, OP_XSAVE },
        { ZYDIS_MNEMONIC_XSAVEOPT, xsave, 0, OP_XSAVEOPT },
        { ZYDIS_MNEMONIC_XSAVEOPT64, xsave, 1, OP_XSAVEOPT },
        { ZYDIS_MNEMONIC_XSAVEC, xsave, 0, OP_XSAVEC },
        { ZYDIS_MNEMONIC_XSAVEC64, xsave, 1, OP_XSAVEC },
        { ZYDIS_MNEMONIC_XSAVES, xsave, 0, OP_XSAVES },
        { ZYDIS_MNEMONIC_XSAVES64, xsave, 1, OP_XSAVES },
        { ZYDIS_MNEMONIC_XRSTOR, xrstor, 0, 0 },
        { ZYDIS_MNEMONIC_XRSTOR64, xrstor, 1, 0 },
        { ZYDIS_MNEMONIC_XRSTORS, xrstor, 0, 1 },
        { ZYDIS_MNEMONIC_XRSTORS64, xrstor, 1, 1 },
        { ZYDIS_MNEMONIC_XGETBV, xgetbv, 0, 0 },
    };
    for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
        if (rows[n].mn == d->zi.mnemonic) {
            out->fn = rows[n].fn;
            out->aux8 = rows[n].rex;
            out->aux16 = rows[n].op;
            /* A block is translated for the MXCSR of its beginning. */
            d->ends_block = rows[n].fn == fxrstor || rows[n].fn == xrstor;
            return true;
        }
    }
    return false;
}
