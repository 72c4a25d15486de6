/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From bytes to records: Zydis decodes, this file fills what all families share (memory operand,
 * length, prefixes), then the families' decoders are asked in turn.
 */
#include <string.h>
#include "accel/tcg/engine.h"
#include "target/i386/cpuid.h"

static void insn_ud(X86CPU *c, const Insn *i)
{
    tcg_raise(c, i, EXCP_UD);
}

/* An instruction of more than 15 bytes (SDM 3A 6.15, #GP). */
static void insn_too_long(X86CPU *c, const Insn *i)
{
    tcg_raise_err(c, i, EXCP_GP, 0);
}

bool tcg_insn_raises(const Insn *i)
{
    return i->fn == insn_ud || i->fn == insn_too_long;
}

void tcg_insn_end(X86CPU *c, const Insn *i)
{
    c->rip = tcg_insn_rip(c, i);
}

void tcg_decode_init(X86CPU *c, TcgEngine *g)
{
    static const struct {
        ZydisMachineMode mode;
        ZydisStackWidth stack;
    } kind[3] = {
        { ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16 },
        { ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32 },
        { ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(kind); i++) {
        ZydisDecoder *d = &g->decoder[i];

        ZydisDecoderInit(d, kind[i].mode, kind[i].stack);
        /* What the guest's CPU lacks decodes as what it extends: NOP, BSF, BSR. */
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_CET, ZYAN_FALSE);
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_CLDEMOTE, ZYAN_FALSE);
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_WBNOINVD, ZYAN_FALSE);
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_TZCNT,
                               x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI1));
        ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_LZCNT,
                               x86_has(c, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_ABM));
    }
}

static uint8_t seg_of(ZydisRegister r)
{
    switch (r) {
    case ZYDIS_REGISTER_ES:
        return R_ES;
    case ZYDIS_REGISTER_CS:
        return R_CS;
    case ZYDIS_REGISTER_SS:
        return R_SS;
    case ZYDIS_REGISTER_FS:
        return R_FS;
    case ZYDIS_REGISTER_GS:
        return R_GS;
    default:
        return R_DS;
    }
}

static uint8_t address_reg(ZydisRegister r)
{
    switch (ZydisRegisterGetClass(r)) {
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        return (uint8_t)ZydisRegisterGetId(r);
    default:
        return R_ZERO;
    }
}

uint8_t tcg_seg_flags(uint32_t mode, unsigned seg)
{
    if (mode & MODE_CS64) {
        return seg == R_FS || seg == R_GS ? INSN_SEGBASE : 0;
    }
    if ((mode & MODE_FLAT) && (seg == R_DS || seg == R_SS || seg == R_ES)) {
        return 0;
    }
    return INSN_SEGCHECK;
}

/* The explicit memory operand, or else the first implicit one. */
static const ZydisDecodedOperand *memory_operand(const Decode *d)
{
    const ZydisDecodedOperand *hidden = NULL;

    for (unsigned i = 0; i < d->zi.operand_count; i++) {
        if (d->op[i].type != ZYDIS_OPERAND_TYPE_MEMORY) {
            continue;
        }
        if (d->op[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN) {
            return &d->op[i];
        }
        if (!hidden) {
            hidden = &d->op[i];
        }
    }
    return hidden;
}

static void fill_memory(const Decode *d, uint32_t mode, Insn *out)
{
    const ZydisDecodedOperand *m = memory_operand(d);
    unsigned scale;

    out->base = out->index = R_ZERO;
    out->asz = d->zi.address_width == 64 ? ASZ_64 : d->zi.address_width == 32 ? ASZ_32 : ASZ_16;
    out->seg = R_DS;
    if (!m) {
        return;
    }
    out->seg = seg_of(m->mem.segment);
    out->flags |= tcg_seg_flags(mode, out->seg);
    out->base = address_reg(m->mem.base);
    out->index = address_reg(m->mem.index);
    scale = m->mem.scale;
    out->scale = scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
    out->disp = m->mem.disp.has_displacement ? m->mem.disp.value : 0;
    if (m->mem.base == ZYDIS_REGISTER_RIP || m->mem.base == ZYDIS_REGISTER_EIP) {
        out->disp += (int64_t)(d->rip + d->zi.length);
    }
}

static void fill_prefixes(const Decode *d, Insn *out)
{
    if (d->zi.attributes & ZYDIS_ATTRIB_HAS_LOCK) {
        out->flags |= INSN_LOCK;
    }
    /* The last of F2 and F3 counts. */
    for (unsigned i = d->zi.raw.prefix_count; i-- > 0;) {
        uint8_t p = d->zi.raw.prefixes[i].value;

        if (p == 0xf3 || p == 0xf2) {
            out->flags |= p == 0xf3 ? INSN_REP : INSN_REPNE;
            break;
        }
    }
}

static int decode_failed(Decode *d, ZyanStatus status, unsigned avail, Insn *out)
{
    if (status == ZYDIS_STATUS_NO_MORE_DATA && avail < INSN_MAX_LEN) {
        return DECODE_NEED_MORE;
    }
    out->fn = status == ZYDIS_STATUS_NO_MORE_DATA || status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG
                  ? insn_too_long
                  : insn_ud;
    /* It depends on all the bytes there are, as none says where it ends. */
    out->len = (uint8_t)avail;
    d->ends_block = true;
    return DECODE_OK;
}

/* VEX forms of POPCNT, LZCNT, TZCNT, ... that only that coprocessor had. */
static bool is_knights_corner(const ZydisDecodedInstruction *zi)
{
    return zi->meta.isa_ext == ZYDIS_ISA_EXT_KNC || zi->meta.isa_ext == ZYDIS_ISA_EXT_KNCE ||
           zi->meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

int tcg_decode_one(X86CPU *c, TcgEngine *g, uint32_t mode, const uint8_t *bytes, unsigned avail,
                   uint64_t rip, unsigned off, Insn *out)
{
    static DecodeFn *const families[] = {
        decode_integer, decode_string, decode_simd, decode_x87, decode_system,
    };
    Decode *d = &g->decode;
    unsigned kind = mode & MODE_CS64 ? 2 : mode & MODE_CS32 ? 1 : 0;
    ZyanStatus status = ZydisDecoderDecodeFull(&g->decoder[kind], bytes, avail, &d->zi, d->op);

    memset(out, 0, sizeof(*out));
    out->off = (uint16_t)off;
    d->c = c;
    d->rip = rip;
    d->bits = (uint8_t)(16u << kind);
    d->ends_block = false;
    if (!ZYAN_SUCCESS(status)) {
        return decode_failed(d, status, avail, out);
    }
    memcpy(d->bytes, bytes, d->zi.length);
    if (d->zi.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
        ((mode & MODE_VM86) || !(mode & MODE_PE))) {
        /* No VEX in real and virtual-8086 mode (SDM 2A 2.3). */
        return decode_failed(d, ZYDIS_STATUS_DECODING_ERROR, d->zi.length, out);
    }
    out->len = d->zi.length;
    fill_memory(d, mode, out);
    fill_prefixes(d, out);
    for (unsigned i = 0; i < ARRAY_SIZE(families) && !is_knights_corner(&d->zi); i++) {
        if (families[i](d, out)) {
            return DECODE_OK;
        }
    }
    out->fn = insn_ud;
    d->ends_block = true;
    return DECODE_OK;
}
