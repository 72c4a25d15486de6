/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * decode_simd(): from Zydis' description of a vector instruction to the key of its stub. There is
 * no table of instructions: operand encodings, classes and actions say all that a stub needs.
 */
#include "accel/tcg/simd.h"

/* Where CPUID says that an instruction set exists (SDM 2A, CPUID). */
typedef struct IsaRow {
    ZydisISASet set;
    FeatureWord word;
    uint32_t bits;
} IsaRow;

static const IsaRow isa_rows[] = {
    { ZYDIS_ISA_SET_PENTIUMMMX, FEAT_1_EDX, BIT(23) },
    { ZYDIS_ISA_SET_SSE, FEAT_1_EDX, BIT(25) },
    { ZYDIS_ISA_SET_SSEMXCSR, FEAT_1_EDX, BIT(25) },
    { ZYDIS_ISA_SET_SSE2, FEAT_1_EDX, BIT(26) },
    { ZYDIS_ISA_SET_SSE2MMX, FEAT_1_EDX, BIT(26) },
    { ZYDIS_ISA_SET_SSE3, FEAT_1_ECX, BIT(0) },
    { ZYDIS_ISA_SET_SSE3X87, FEAT_1_ECX, BIT(0) },
    { ZYDIS_ISA_SET_SSSE3, FEAT_1_ECX, BIT(9) },
    { ZYDIS_ISA_SET_SSSE3MMX, FEAT_1_ECX, BIT(9) },
    { ZYDIS_ISA_SET_SSE4, FEAT_1_ECX, BIT(19) },
    { ZYDIS_ISA_SET_SSE42, FEAT_1_ECX, BIT(20) },
    { ZYDIS_ISA_SET_SSE4A, FEAT_8000_0001_ECX, BIT(6) },
    { ZYDIS_ISA_SET_AES, FEAT_1_ECX, BIT(25) },
    { ZYDIS_ISA_SET_PCLMULQDQ, FEAT_1_ECX, BIT(1) },
    { ZYDIS_ISA_SET_AVX, FEAT_1_ECX, BIT(28) },
    { ZYDIS_ISA_SET_AVXAES, FEAT_1_ECX, BIT(28) | BIT(25) },
    { ZYDIS_ISA_SET_F16C, FEAT_1_ECX, BIT(28) | BIT(29) },
    { ZYDIS_ISA_SET_FMA, FEAT_1_ECX, BIT(28) | BIT(12) },
    { ZYDIS_ISA_SET_AVX2, FEAT_7_0_EBX, BIT(5) },
    { ZYDIS_ISA_SET_AVX2GATHER, FEAT_7_0_EBX, BIT(5) },
    { ZYDIS_ISA_SET_SHA, FEAT_7_0_EBX, BIT(29) },
    { ZYDIS_ISA_SET_GFNI, FEAT_7_0_ECX, BIT(8) },
    { ZYDIS_ISA_SET_AVX_GFNI, FEAT_7_0_ECX, BIT(8) },
    { ZYDIS_ISA_SET_VAES, FEAT_7_0_ECX, BIT(9) },
    { ZYDIS_ISA_SET_VPCLMULQDQ, FEAT_7_0_ECX, BIT(10) },
    { ZYDIS_ISA_SET_AVX_VNNI, FEAT_7_1_EAX, BIT(4) },
    { ZYDIS_ISA_SET_FXSAVE, FEAT_1_EDX, BIT(24) },
    { ZYDIS_ISA_SET_FXSAVE64, FEAT_1_EDX, BIT(24) },
    { ZYDIS_ISA_SET_XSAVE, FEAT_1_ECX, BIT(26) },
    { ZYDIS_ISA_SET_XSAVEOPT, FEAT_XSAVE, BIT(0) },
    { ZYDIS_ISA_SET_XSAVEC, FEAT_XSAVE, BIT(1) },
    { ZYDIS_ISA_SET_XSAVES, FEAT_XSAVE, BIT(3) },
};

static bool has_all(const X86CPU *c, FeatureWord w, uint32_t bits)
{
    return (c->feat[w] & bits) == bits;
}

bool simd_has_isa(const X86CPU *c, ZydisISASet set, ZydisMnemonic mn)
{
    if (mn == ZYDIS_MNEMONIC_VPCLMULQDQ && !has_all(c, FEAT_1_ECX, BIT(28) | BIT(1))) {
        return false;
    }
    for (size_t n = 0; n < ARRAY_SIZE(isa_rows); n++) {
        if (isa_rows[n].set == set) {
            return has_all(c, isa_rows[n].word, isa_rows[n].bits);
        }
    }
    return false;
}

static unsigned reg_class(ZydisRegister r)
{
    switch (ZydisRegisterGetClass(r)) {
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        return KC_GPR;
    case ZYDIS_REGCLASS_MMX:
        return KC_MMX;
    case ZYDIS_REGCLASS_XMM:
        return KC_XMM;
    case ZYDIS_REGCLASS_YMM:
        return KC_YMM;
    default:
        return KC_NONE;
    }
}

#define ACT_READ  (ZYDIS_OPERAND_ACTION_READ | ZYDIS_OPERAND_ACTION_CONDREAD)
#define ACT_WRITE (ZYDIS_OPERAND_ACTION_WRITE | ZYDIS_OPERAND_ACTION_CONDWRITE)

/* An operand that the instruction implies. False: nothing a stub knows how to serve. */
static bool implied_operand(const ZydisDecodedOperand *o, uint64_t *key)
{
    bool rd = o->actions & ACT_READ, wr = o->actions & ACT_WRITE;
    switch (o->reg.value) {
    case ZYDIS_REGISTER_XMM0:
        *key |= (rd ? KEY_XMM0_RD : 0) | (wr ? KEY_XMM0_WR : 0);
        return true;
    case ZYDIS_REGISTER_EAX:
    case ZYDIS_REGISTER_EDX:
    case ZYDIS_REGISTER_RAX:
    case ZYDIS_REGISTER_RDX:
        *key |= KEY_LENGTHS;
        return rd && !wr;
    case ZYDIS_REGISTER_ECX:
    case ZYDIS_REGISTER_RCX:
        *key |= KEY_RCX_WR;
        return wr && !rd;
    case ZYDIS_REGISTER_FLAGS:
    case ZYDIS_REGISTER_EFLAGS:
    case ZYDIS_REGISTER_RFLAGS:
        *key |= KEY_FLAGS_WR;
        return !rd;
    default:
        return false;
    }
}

static bool reg_operand(const ZydisDecodedOperand *o, Insn *out, uint64_t *key)
{
    unsigned kc = reg_class(o->reg.value);
    uint8_t id = (uint8_t)ZydisRegisterGetId(o->reg.value);
    bool wr = o->actions & ACT_WRITE;
    if (kc == KC_MMX) {
        out->aux16 |= SI_MMX;
    }
    switch (o->encoding) {
    case ZYDIS_OPERAND_ENCODING_MODRM_REG:
        out->reg = id;
        *key |= (uint64_t)kc << KEY_REG_SHIFT | (wr ? KEY_REG_WR : 0);
        return kc != KC_NONE;
    case ZYDIS_OPERAND_ENCODING_MODRM_RM:
        out->rm = id;
        *key |= (uint64_t)kc << KEY_RM_SHIFT | (wr ? KEY_RM_WR : 0);
        return kc != KC_NONE;
    case ZYDIS_OPERAND_ENCODING_NDSNDD:
        out->vvvv = id;
        *key |= (uint64_t)kc << KEY_VVVV_SHIFT | (wr ? KEY_VVVV_WR : 0);
        return kc >= KC_XMM;
    case ZYDIS_OPERAND_ENCODING_IS4:
        out->opsize = id;
        *key |= (uint64_t)kc << KEY_IS4_SHIFT;
        return kc >= KC_XMM && !wr;
    case ZYDIS_OPERAND_ENCODING_NONE:
        return implied_operand(o, key);
    default:
        return false;
    }
}

static bool mem_operand(const ZydisDecodedOperand *o, Insn *out, uint64_t *key)
{
    unsigned size = o->size / 8;
    if (o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
        size == 0 || size > 32) {
        return false;
    }
    bool rd = o->actions & ACT_READ, wr = o->actions & ACT_WRITE;
    out->aux8 = (uint8_t)size;
    out->aux16 |= wr ? SI_STORE : 0;
    *key |= KEY_MEM;
    return rd != wr;
}

/* The 128-bit memory operands of SSE that need no alignment, and those of AVX that do. */
static bool wants_alignment(const ZydisDecodedInstruction *zi, unsigned size)
{
    if (size < 16) {
        return false;
    }
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTDQA:
        return true;
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU:
    case ZYDIS_MNEMONIC_PCMPESTRI:
    case ZYDIS_MNEMONIC_PCMPESTRM:
    case ZYDIS_MNEMONIC_PCMPISTRI:
    case ZYDIS_MNEMONIC_PCMPISTRM:
        return false;
    default:
        return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    }
}

static uint64_t mandatory_prefix(const ZydisDecodedInstruction *zi)
{
    for (unsigned n = 0; n < zi->raw.prefix_count; n++) {
        if (zi->raw.prefixes[n].type == ZYDIS_PREFIX_TYPE_MANDATORY) {
            switch (zi->raw.prefixes[n].value) {
            case 0x66:
                return 1;
            case 0xf3:
                return 2;
            case 0xf2:
                return 3;
            }
        }
    }
    return 0;
}

/* The encoding half of the key but for ModRM. */
static bool encoding_key(const Decode *d, uint64_t *key)
{
    const ZydisDecodedInstruction *zi = &d->zi;
    unsigned map;
    switch (zi->opcode_map) {
    case ZYDIS_OPCODE_MAP_0F:
        map = 1;
        break;
    case ZYDIS_OPCODE_MAP_0F38:
        map = 2;
        break;
    case ZYDIS_OPCODE_MAP_0F3A:
        map = 3;
        break;
    default:
        return false;
    }
    *key = KEY_VALID | zi->opcode | (uint64_t)map << 26;
    if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
        *key |= KEY_VEX | (uint64_t)zi->raw.vex.pp << 24 | (zi->raw.vex.L ? KEY_L : 0) |
                (zi->raw.vex.W ? KEY_W : 0);
    } else if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        *key |= mandatory_prefix(zi) << 24 | (zi->raw.rex.W ? KEY_W : 0);
    } else {
        return false;
    }
    if (zi->raw.imm[0].size) {
        *key |= KEY_HAS_IMM | (uint64_t)d->bytes[zi->raw.imm[0].offset] << 8;
    }
    return zi->raw.imm[0].size <= 8 && zi->raw.imm[1].size == 0;
}

/* ModRM with operands in the registers that a stub uses. */
static uint64_t modrm_key(const ZydisDecodedInstruction *zi, uint64_t key)
{
    static const uint8_t host_reg[] = { 0, 0, 1, 1, 1 }, host_rm[] = { 0, 0, 2, 2, 2 };
    unsigned kreg = KEY_REG(key), krm = KEY_RM(key);
    unsigned reg = kreg == KC_NONE ? zi->raw.modrm.reg : host_reg[kreg];
    unsigned rm = key & KEY_MEM ? 6 : krm == KC_NONE ? zi->raw.modrm.rm : host_rm[krm];
    return (uint64_t)((key & KEY_MEM ? 0 : 0xc0) | reg << 3 | rm) << 16;
}

/*
 * Does it depend on MXCSR? Zydis lists no MXCSR operand, but element types; by name are told apart
 * the instructions that only move floating-point data, and the approximations (SDM 1, 10.2.3).
 */
bool simd_uses_mxcsr(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    static const char *const movers[] = {
        "mov",   "blend", "shufp", "unpck", "extract", "insert", "broadcast",
        "perm",  "and",   "or",    "xor",   "rcp",     "rsqrt",  "testp",
        "lddqu", "maskmov",
    };
    const char *name = ZydisMnemonicGetString(zi->mnemonic);
    if (zi->mnemonic == ZYDIS_MNEMONIC_ROUNDSS || zi->mnemonic == ZYDIS_MNEMONIC_ROUNDSD) {
        return true; /* Zydis calls their elements integers */
    }
    name += zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX && name[0] == 'v';
    for (size_t n = 0; n < ARRAY_SIZE(movers); n++) {
        if (!strncmp(name, movers[n], strlen(movers[n]))) {
            return false;
        }
    }
    for (unsigned n = 0; n < zi->operand_count; n++) {
        if (op[n].element_type == ZYDIS_ELEMENT_TYPE_FLOAT16 ||
            op[n].element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
            op[n].element_type == ZYDIS_ELEMENT_TYPE_FLOAT64) {
            return true;
        }
    }
    return false;
}

/* VEX.W is the size of a general register or the memory in its place. */
static bool has_gpr_form(ZydisMnemonic mn)
{
    switch (mn) {
    case ZYDIS_MNEMONIC_VPCMPESTRI:
    case ZYDIS_MNEMONIC_VPCMPESTRM:
    case ZYDIS_MNEMONIC_VCVTSI2SS:
    case ZYDIS_MNEMONIC_VCVTSI2SD:
    case ZYDIS_MNEMONIC_VCVTSS2SI:
    case ZYDIS_MNEMONIC_VCVTSD2SI:
    case ZYDIS_MNEMONIC_VCVTTSS2SI:
    case ZYDIS_MNEMONIC_VCVTTSD2SI:
    case ZYDIS_MNEMONIC_VPEXTRB:
    case ZYDIS_MNEMONIC_VPEXTRW:
    case ZYDIS_MNEMONIC_VPEXTRD:
    case ZYDIS_MNEMONIC_VPINSRB:
    case ZYDIS_MNEMONIC_VPINSRW:
    case ZYDIS_MNEMONIC_VPINSRD:
    case ZYDIS_MNEMONIC_VEXTRACTPS:
    case ZYDIS_MNEMONIC_VMOVD:
    case ZYDIS_MNEMONIC_VMOVQ:
        return true;
    default:
        return false;
    }
}

/* Fills *out from the operands. False: an instruction that no stub can run. */
static bool generic_decode(const Decode *d, Insn *out)
{
    const ZydisDecodedInstruction *zi = &d->zi;
    uint64_t key;
    bool vec = false;
    if (!encoding_key(d, &key)) {
        return false;
    }
    for (unsigned n = 0; n < zi->operand_count; n++) {
        const ZydisDecodedOperand *o = &d->op[n];
        bool ok = true;
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            ok = reg_operand(o, out, &key);
            vec |= reg_class(o->reg.value) >= KC_XMM;
        } else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            ok = mem_operand(o, out, &key);
        }
        if (!ok) {
            return false;
        }
    }
    if (KEY_IS4(key)) {
        key = (key & ~0xf000ull) | 4 << 12; /* the register number is in the immediate */
    }
    if (simd_uses_mxcsr(zi, d->op)) {
        key |= KEY_FP;
        out->aux16 |= SI_FP;
    }
    if (KEY_REG(key) == KC_GPR && KEY_RM(key) == KC_GPR) {
        return false; /* both would live in RAX; such are integer instructions (CRC32) */
    }
    if (d->bits != 64 && has_gpr_form(zi->mnemonic)) {
        key &= ~KEY_W; /* ignored outside 64-bit mode (SDM 2A, 2.3.5.3 and the instructions' notes) */
    }
    out->imm = key | modrm_key(zi, key);
    out->aux16 |= key & KEY_VEX ? SI_VEX : vec ? 0 : SI_NOSSE;
    if ((key & KEY_MEM) && wants_alignment(zi, out->aux8)) {
        out->aux16 |= SI_ALIGN;
    }
    return true;
}

bool decode_simd(Decode *d, Insn *out)
{
    const ZydisDecodedInstruction *zi = &d->zi;
    if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX && d->bits != 64 &&
        (!(d->c->cr0 & CR0_PE) || (d->c->rflags & FL_VM))) {
        return false;
    }
    if (!simd_has_isa(d->c, zi->meta.isa_set, zi->mnemonic)) {
        return false;
    }
    if (simd_decode_state(d, out) || simd_decode_special(d, out)) {
        return true;
    }
    out->aux16 = 0;
    out->aux8 = out->opsize = out->reg = out->rm = out->vvvv = 0;
    if (!generic_decode(d, out)) {
        return false;
    }
    if (simd_decode_fast(d, out)) {
        return true;
    }
    simd_pick_handler(out);
    out->aux = simd_stub_get(d->c, out->imm);
    return true;
}
