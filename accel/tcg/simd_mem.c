/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vector instructions that a stub can not run: those that access memory element by element under
 * a mask (gathers, VMASKMOV, MASKMOVDQU), MXCSR's loads and stores, VZEROALL/UPPER and EMMS.
 */
#include "accel/tcg/simd.h"

/* Linear address of an access at offset off from the segment of i's memory operand. */
static uint64_t linear(X86CPU *c, const Insn *i, uint64_t off, unsigned size, bool write)
{
    if (i->asz == ASZ_32) {
        off = (uint32_t)off;
    } else if (i->asz == ASZ_16) {
        off = (uint16_t)off;
    }
    if (i->flags & INSN_SEGCHECK) {
        return tcg_seg_check(c, i, i->seg, off, size, write);
    }
    return i->flags & INSN_SEGBASE ? off + c->seg[i->seg].base : off;
}

static bool mask_bit(const uint8_t *mask, unsigned n, unsigned esize)
{
    return mask[n * esize + esize - 1] & 0x80;
}

/* ---- Gathers (SDM 2C, VGATHERDPS ff.): reg data, vvvv mask, rm index vector ---- */

#define G_QDATA BIT(0)
#define G_QIDX  BIT(1)
#define G_WIDE  BIT(2)

static void gather(X86CPU *c, const Insn *i)
{
    avx_check(c, i);
    unsigned dsize = i->aux16 & G_QDATA ? 8 : 4, isize = i->aux16 & G_QIDX ? 8 : 4;
    unsigned n = (i->aux16 & G_WIDE ? 32 : 16) / MAX(dsize, isize);
    uint8_t *data = c->ymm[i->reg], *mask = c->ymm[i->vvvv];
    const uint8_t *idx = c->ymm[i->rm];
    uint64_t base = c->regs[i->base] + (uint64_t)i->disp;

    for (unsigned e = 0; e < n; e++) {
        if (!mask_bit(mask, e, dsize)) {
            memset(mask + e * dsize, 0, dsize);
            continue;
        }
        int32_t i32;
        int64_t i64;
        memcpy(&i32, idx + e * isize, 4);
        if (isize == 8) {
            memcpy(&i64, idx + e * 8, 8);
        } else {
            i64 = i32;
        }
        uint64_t lin = linear(c, i, base + ((uint64_t)i64 << i->opsize), dsize, false);
        if (dsize == 8) {
            uint64_t v = tcg_ld64(c, i, lin);
            memcpy(data + e * 8, &v, 8);
        } else {
            uint32_t v = tcg_ld32(c, i, lin);
            memcpy(data + e * 4, &v, 4);
        }
        /* Done with this one: a fault in a later element resumes after it. */
        memset(mask + e * dsize, 0, dsize);
    }
    memset(data + n * dsize, 0, 32 - n * dsize);
    memset(mask, 0, 32);
    NEXT(c, i);
}

static bool decode_gather(Decode *d, Insn *out)
{
    const ZydisDecodedOperandMem *m = &d->op[1].mem;
    if (d->zi.meta.isa_set != ZYDIS_ISA_SET_AVX2GATHER ||
        d->zi.encoding != ZYDIS_INSTRUCTION_ENCODING_VEX) {
        return false;
    }
    out->fn = gather;
    out->reg = (uint8_t)ZydisRegisterGetId(d->op[0].reg.value);
    out->vvvv = (uint8_t)ZydisRegisterGetId(d->op[2].reg.value);
    out->rm = (uint8_t)ZydisRegisterGetId(m->index);
    out->index = R_ZERO;
    out->opsize = (uint8_t)(m->scale > 1 ? __builtin_ctz(m->scale) : 0);
    out->aux16 = (d->zi.raw.vex.W ? G_QDATA : 0) | (d->zi.opcode & 1 ? G_QIDX : 0) |
                 (d->zi.raw.vex.L ? G_WIDE : 0);
    return true;
}

/* ---- VMASKMOVPS/PD, VPMASKMOVD/Q: vvvv mask ---- */

static void maskmov_load(X86CPU *c, const Insn *i)
{
    avx_check(c, i);
    uint8_t tmp[32] QEMU_ALIGNED(32) = { 0 };
    unsigned esize = i->opsize, n = i->aux8 / esize;
    const uint8_t *mask = c->ymm[i->vvvv];
    uint64_t off = tcg_ea_offset(c, i);
    for (unsigned e = 0; e < n; e++) {
        if (!mask_bit(mask, e, esize)) {
            continue;
        }
        uint64_t lin = linear(c, i, off + e * esize, esize, false);
        if (esize == 8) {
            uint64_t v = tcg_ld64(c, i, lin);
            memcpy(tmp + e * 8, &v, 8);
        } else {
            uint32_t v = tcg_ld32(c, i, lin);
            memcpy(tmp + e * 4, &v, 4);
        }
    }
    memcpy(c->ymm[i->reg], tmp, 32);
    NEXT(c, i);
}

static void maskmov_store(X86CPU *c, const Insn *i)
{
    avx_check(c, i);
    unsigned esize = i->opsize, n = i->aux8 / esize;
    const uint8_t *mask = c->ymm[i->vvvv], *data = c->ymm[i->reg];
    uint64_t off = tcg_ea_offset(c, i);
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned e = 0; e < n; e++) {
            if (!mask_bit(mask, e, esize)) {
                continue;
            }
            uint64_t lin = linear(c, i, off + e * esize, esize, true);
            if (pass == 0) {
                tcg_probe_write(c, i, lin, esize);
            } else {
                simd_store(c, i, lin, data + e * esize, esize);
            }
        }
    }
    NEXT(c, i);
}

static bool decode_maskmov(Decode *d, Insn *out)
{
    bool store = false;
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
        out->opsize = 4;
        store = d->zi.opcode == 0x2e;
        break;
    case ZYDIS_MNEMONIC_VMASKMOVPD:
        out->opsize = 8;
        store = d->zi.opcode == 0x2f;
        break;
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
        out->opsize = d->zi.mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ ? 8 : 4;
        store = d->zi.opcode == 0x8e;
        break;
    default:
        return false;
    }
    out->fn = store ? maskmov_store : maskmov_load;
    out->reg = (uint8_t)ZydisRegisterGetId(d->op[store ? 2 : 0].reg.value);
    out->vvvv = (uint8_t)ZydisRegisterGetId(d->op[1].reg.value);
    out->aux8 = d->zi.raw.vex.L ? 32 : 16;
    return true;
}

/* ---- (V)MASKMOVDQU, MASKMOVQ: store bytes of reg where rm's sign bits are set, to [rDI] ---- */

static void store_bytes(X86CPU *c, const Insn *i, const uint8_t *data, const uint8_t *mask,
                        unsigned n)
{
    uint64_t off = tcg_ea_offset(c, i);
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned e = 0; e < n; e++) {
            if (!(mask[e] & 0x80)) {
                continue;
            }
            uint64_t lin = linear(c, i, off + e, 1, true);
            if (pass == 0) {
                tcg_probe_write(c, i, lin, 1);
            } else {
                tcg_st8(c, i, lin, data[e]);
            }
        }
    }
}

static void maskmovdqu(X86CPU *c, const Insn *i)
{
    if (i->aux8) {
        avx_check(c, i);
    } else {
        sse_check(c, i);
    }
    store_bytes(c, i, c->ymm[i->reg], c->ymm[i->rm], 16);
    NEXT(c, i);
}

static void maskmovq(X86CPU *c, const Insn *i)
{
    uint8_t data[8], mask[8];
    unsigned top;
    mmx_check(c, i);
    top = (c->x87.fsw >> 11) & 7;
    /* MMn is st[n - TOP]; the switch to MMX state is made only once the store can not fault. */
    memcpy(data, c->x87.st[(i->reg - top) & 7].b, 8);
    memcpy(mask, c->x87.st[(i->rm - top) & 7].b, 8);
    store_bytes(c, i, data, mask, 8);
    mmx_enter(c);
    NEXT(c, i);
}

static bool decode_maskmovdqu(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
        out->fn = maskmovdqu;
        break;
    case ZYDIS_MNEMONIC_MASKMOVQ:
        out->fn = maskmovq;
        break;
    default:
        return false;
    }
    out->aux8 = d->zi.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    out->reg = d->zi.raw.modrm.reg;
    out->rm = d->zi.raw.modrm.rm;
    for (unsigned n = 0; n < d->zi.operand_count; n++) {
        const ZydisDecodedOperand *o = &d->op[n];
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && n < 2) {
            *(n ? &out->rm : &out->reg) = (uint8_t)ZydisRegisterGetId(o->reg.value);
        } else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            out->seg = (uint8_t)ZydisRegisterGetId(o->mem.segment);
        }
    }
    out->base = R_RDI;
    out->index = R_ZERO;
    out->scale = 0;
    out->disp = 0;
    out->asz = d->zi.address_width == 64 ? ASZ_64 : d->zi.address_width == 32 ? ASZ_32 : ASZ_16;
    out->flags &= (uint8_t) ~(INSN_SEGBASE | INSN_SEGCHECK);
    if (d->bits != 64) {
        out->flags |= INSN_SEGCHECK;
    } else if (out->seg == R_FS || out->seg == R_GS) {
        out->flags |= INSN_SEGBASE;
    }
    return true;
}

/* ---- MXCSR, VZEROALL, VZEROUPPER, EMMS ---- */

static void check_either(X86CPU *c, const Insn *i)
{
    if (i->aux8) {
        avx_check(c, i);
    } else {
        sse_check(c, i);
    }
}

static void ldmxcsr(X86CPU *c, const Insn *i)
{
    check_either(c, i);
    uint32_t v = tcg_ld32(c, i, tcg_ea(c, i, 4, false));
    if (v & ~MXCSR_VALID) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
    c->tcg->csr_live = false;
    c->mxcsr = v;
    NEXT(c, i);
}

static void stmxcsr(X86CPU *c, const Insn *i)
{
    check_either(c, i);
    tcg_fp_sync(c);
    tcg_st32(c, i, tcg_ea(c, i, 4, true), c->mxcsr);
    NEXT(c, i);
}

static void vzero(X86CPU *c, const Insn *i)
{
    avx_check(c, i);
    for (unsigned n = 0; n < i->aux8; n++) {
        memset(c->ymm[n] + i->opsize, 0, 32 - i->opsize);
    }
    NEXT(c, i);
}

static void emms(X86CPU *c, const Insn *i)
{
    mmx_check(c, i);
    mmx_enter(c);
    c->x87.ftw = 0;
    NEXT(c, i);
}

bool simd_decode_special(Decode *d, Insn *out)
{
    out->aux8 = d->zi.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
        out->fn = ldmxcsr;
        d->ends_block = true; /* a block is translated for the MXCSR of its beginning */
        return true;
    case ZYDIS_MNEMONIC_STMXCSR:
    case ZYDIS_MNEMONIC_VSTMXCSR:
        out->fn = stmxcsr;
        return true;
    case ZYDIS_MNEMONIC_VZEROALL:
    case ZYDIS_MNEMONIC_VZEROUPPER:
        out->fn = vzero;
        out->opsize = d->zi.mnemonic == ZYDIS_MNEMONIC_VZEROALL ? 0 : 16;
        out->aux8 = d->bits == 64 ? 16 : 8;
        return true;
    case ZYDIS_MNEMONIC_EMMS:
        out->fn = emms;
        return true;
    default:
        return decode_gather(d, out) || decode_maskmov(d, out) || decode_maskmovdqu(d, out);
    }
}
