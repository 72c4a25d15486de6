/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random instruction streams. A table of templates is made at start by decoding every prefix,
 * opcode map, opcode and ModRM digit there is; a stream takes templates at random and fills in
 * registers, addresses (most of them in the data area) and immediates. Some streams end in random
 * bytes that happen to decode.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "gen.h"

typedef struct Template {
    uint8_t vex, pp, w, map, opcode, l;
    int8_t digit;      /* ModRM.reg, or -1: a register */
    int8_t fixed;      /* x87 register form: all of ModRM in modrm */
    uint8_t modrm;
    uint8_t mem;       /* memory form */
    uint8_t has_modrm;
    uint8_t imm;       /* bytes of immediate */
    uint8_t cls;
    ZydisMnemonic mn;
    ZydisInstructionCategory cat;
} Template;

unsigned diff_bits = 64;
static Template *table;
static unsigned table_n, class_n[4], *class_list[4];
static unsigned wanted; /* CLASS_* */
static ZydisDecoder decoder;

bool gen_decode(const uint8_t *p, unsigned len, ZydisDecodedInstruction *zi,
                ZydisDecodedOperand *op)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, p, len, zi, op));
}

/* ---- What may be generated ---- */

/* Reads or writes state of the machine, needs privilege, transfers control, or is done apart. */
static bool excluded(const ZydisDecodedInstruction *zi)
{
    switch (zi->meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_RDRAND:
    case ZYDIS_CATEGORY_RDSEED:
    case ZYDIS_CATEGORY_RDWRFSGS:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_WIDENOP:
        return true;
    default:
        break;
    }
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_CLI:
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_XLAT:
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD:
        return true;
    default:
        return false;
    }
}

static unsigned class_of(const ZydisDecodedInstruction *zi)
{
    if (zi->mnemonic == ZYDIS_MNEMONIC_CRC32 || zi->mnemonic == ZYDIS_MNEMONIC_POPCNT) {
        return CLASS_INT;
    }
    if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
        return zi->meta.isa_ext == ZYDIS_ISA_EXT_BMI1 || zi->meta.isa_ext == ZYDIS_ISA_EXT_BMI2
                   ? CLASS_INT
                   : CLASS_AVX;
    }
    if (zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
        return (zi->opcode & 0xf8) == 0xd8 || zi->opcode == 0x9b ? CLASS_X87 : CLASS_INT;
    }
    switch (zi->meta.isa_ext) {
    case ZYDIS_ISA_EXT_MMX:
    case ZYDIS_ISA_EXT_SSE:
    case ZYDIS_ISA_EXT_SSE2:
    case ZYDIS_ISA_EXT_SSE3:
    case ZYDIS_ISA_EXT_SSSE3:
    case ZYDIS_ISA_EXT_SSE4:
    case ZYDIS_ISA_EXT_AES:
    case ZYDIS_ISA_EXT_PCLMULQDQ:
    case ZYDIS_ISA_EXT_SHA:
    case ZYDIS_ISA_EXT_GFNI:
        return CLASS_SSE;
    default:
        return CLASS_INT;
    }
}

static bool other_registers(const ZydisDecodedOperand *op, unsigned n)
{
    for (unsigned k = 0; k < n; k++) {
        if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (op[k].mem.segment == ZYDIS_REGISTER_FS || op[k].mem.segment == ZYDIS_REGISTER_GS)) {
            return true;
        }
        if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_SEGMENT ||
             ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_CONTROL ||
             ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_MASK ||
             ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_DEBUG)) {
            return true;
        }
    }
    return false;
}

/* VEX.W set outside 64-bit mode: ignored, or #UD. */
static bool vendors_differ(const ZydisDecodedInstruction *zi)
{
    return diff_32 && zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX && zi->raw.vex.W &&
           (zi->mnemonic == ZYDIS_MNEMONIC_VPINSRD || zi->mnemonic == ZYDIS_MNEMONIC_VPEXTRD);
}

static bool acceptable(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    return (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
            zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) &&
           !excluded(zi) && !other_registers(op, zi->operand_count) &&
           guest_has(zi->meta.isa_set) && !vendors_differ(zi) &&
           !(zi->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED);
}

/* ---- Building ---- */

/* Bytes up to and including the opcode. rexbits: R X B as in REX. */
static unsigned put_head(const Template *t, unsigned rexbits, unsigned vvvv, bool force_rex,
                         uint8_t *p)
{
    static const uint8_t pp[4] = { 0, 0x66, 0xf3, 0xf2 };
    unsigned n = 0;
    if (t->vex) {
        p[n++] = 0xc4;
        p[n++] = (uint8_t)((~rexbits & 7) << 5 | t->map);
        p[n++] = (uint8_t)(t->w << 7 | (~vvvv & 15) << 3 | t->l << 2 | t->pp);
    } else {
        if (t->pp) {
            p[n++] = pp[t->pp];
        }
        if (t->w || rexbits || force_rex) {
            p[n++] = (uint8_t)(0x40 | t->w << 3 | rexbits);
        }
        if (t->map) {
            p[n++] = 0x0f;
        }
        if (t->map >= 2) {
            p[n++] = t->map == 2 ? 0x38 : 0x3a;
        }
    }
    p[n++] = t->opcode;
    return n;
}

static void add_template(const Template *t)
{
    static unsigned cap;
    if (table_n == cap) {
        cap = cap ? cap * 2 : 4096;
        table = realloc(table, cap * sizeof(*table));
    }
    table[table_n++] = *t;
}

/* Decodes t with ModRM modrm; fills what the table wants to know. */
static bool probe(Template *t, unsigned modrm, bool vvvv)
{
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint8_t buf[32] = { 0 };
    bool vsib = t->vex && t->map == 2 && t->opcode >= 0x90 && t->opcode <= 0x93;
    unsigned n = put_head(t, 0, vvvv ? 5 : 0, false, buf);
    if (vsib) {
        modrm = (modrm & 0x38) | 4;
        buf[n + 1] = 0x33; /* index 6 */
    }
    buf[n] = (uint8_t)modrm;
    if (!gen_decode(buf, 15, &zi, op) || !acceptable(&zi, op)) {
        return false;
    }
    for (unsigned k = 0; k < zi.raw.prefix_count; k++) {
        if (zi.raw.prefixes[k].type == ZYDIS_PREFIX_TYPE_IGNORED) {
            return false;
        }
    }
    t->mn = zi.mnemonic;
    t->cat = zi.meta.category;
    t->cls = (uint8_t)class_of(&zi);
    t->has_modrm = (zi.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
    t->imm = (uint8_t)((zi.raw.imm[0].size + zi.raw.imm[1].size) / 8);
    /* MOV with a 64-bit absolute offset */
    if (!t->has_modrm && zi.raw.disp.size) {
        return false;
    }
    return true;
}

static void probe_opcode(Template base)
{
    Template t[8];
    bool ok[8], same = true, any = false;
    if (!base.vex && base.map == 0 && (base.opcode & 0xf8) == 0xd8 && !base.mem) {
        for (unsigned m = 0xc0; m < 0x100; m++) {
            Template x = base;
            x.fixed = 1;
            x.modrm = (uint8_t)m;
            if (probe(&x, m, false)) {
                add_template(&x);
            }
        }
        return;
    }
    for (unsigned r = 0; r < 8; r++) {
        unsigned modrm = (base.mem ? 0x03 : 0xc3) | r << 3;
        t[r] = base;
        t[r].digit = (int8_t)r;
        ok[r] = probe(&t[r], modrm, true) || probe(&t[r], modrm, false);
        any |= ok[r];
        same &= ok[r] && t[r].mn == t[0].mn;
    }
    if (!any || (base.mem && !t[0].has_modrm && ok[0])) {
        return;
    }
    if (same) {
        t[0].digit = -1;
        add_template(&t[0]);
        return;
    }
    for (unsigned r = 0; r < 8; r++) {
        if (ok[r]) {
            add_template(&t[r]);
        }
    }
}

unsigned gen_init(unsigned classes, const char *only)
{
    wanted = only ? 0 : classes;
    ZydisDecoderInit(&decoder,
                     diff_16   ? ZYDIS_MACHINE_MODE_LONG_COMPAT_16
                     : diff_32 ? ZYDIS_MACHINE_MODE_LONG_COMPAT_32
                               : ZYDIS_MACHINE_MODE_LONG_64,
                     diff_16   ? ZYDIS_STACK_WIDTH_16
                     : diff_32 ? ZYDIS_STACK_WIDTH_32
                               : ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_CET, ZYAN_FALSE);
    for (unsigned n = 0; n < 2u * 2 * 4 * 2 * 4 * 256 * 2; n++) {
        Template t = { .mem = n & 1, .opcode = (uint8_t)(n >> 1), .map = (n >> 9) & 3,
                       .w = (n >> 11) & 1, .pp = (n >> 12) & 3, .l = (n >> 14) & 1,
                       .vex = (n >> 15) & 1 };
        if ((t.vex && !t.map) || (!t.vex && (t.l || (diff_32 && t.w)))) {
            continue;
        }
        probe_opcode(t);
    }
    for (unsigned k = 0; k < 4; k++) {
        class_list[k] = calloc(table_n, sizeof(unsigned));
        for (unsigned n = 0; n < table_n; n++) {
            if (table[n].cls == 1u << k && (classes & (1u << k)) &&
                (!only || !strcasecmp(only, ZydisMnemonicGetString(table[n].mn)))) {
                class_list[k][class_n[k]++] = n;
            }
        }
    }
    return class_n[0] + class_n[1] + class_n[2] + class_n[3];
}

/* ---- Instances ---- */

void gen_emit(Out *o, const uint8_t *p, unsigned len)
{
    o->s->off[o->s->n++] = o->pos;
    memcpy(o->s->code + o->pos, p, len);
    o->pos += len;
}

static unsigned put_imm(Rng *r, uint8_t *p, unsigned len)
{
    uint64_t v = rng_next(r);
    if (rng_below(r, 3) == 0) {
        v = (uint64_t)(int64_t)(int8_t)v;
    }
    memcpy(p, &v, len);
    return len;
}

/* ModRM, SIB and displacement of a memory operand; *rex gets X and B. */
static unsigned put_mem(Rng *r, unsigned reg, bool vsib, unsigned *rex, uint8_t *p)
{
    const unsigned bases[] = { REG_PTR_A, REG_PTR_A, REG_PTR_B, REG_STACK };
    unsigned base = bases[rng_below(r, 4)], regs = diff_32 ? 8 : 16, index = 4, scale = 0, n = 0;
    int32_t disp = (int32_t)rng_below(r, 0xc00) - 0x600;
    bool wild = rng_below(r, 150) == 0;
    if (wild) {
        base = rng_below(r, regs);
    }
    if (rng_below(r, 12)) {
        disp &= ~31;
    }
    if (vsib) {
        index = rng_below(r, regs);
        scale = rng_below(r, 4);
    } else if (!diff_32 && rng_below(r, 8) == 0) {
        index = REG_INDEX;
        scale = rng_below(r, 4);
    }
    bool short_disp = rng_below(r, 4) == 0;
    if (short_disp) {
        disp = (int8_t)disp;
    }
    unsigned mod = short_disp ? 1 : 2;
    if (vsib || index != 4 || (base & 7) == 4) {
        p[n++] = (uint8_t)(mod << 6 | (reg & 7) << 3 | 4);
        p[n++] = (uint8_t)(scale << 6 | (index & 7) << 3 | (base & 7));
        *rex |= index & 8 ? 2 : 0;
    } else {
        p[n++] = (uint8_t)(mod << 6 | (reg & 7) << 3 | (base & 7));
    }
    *rex |= base & 8 ? 1 : 0;
    memcpy(p + n, &disp, short_disp ? 1 : 4);
    return n + (short_disp ? 1 : 4);
}

/* The same with the 16-bit forms: BX and BP point into the data, BX+SI and the like anywhere. */
static unsigned put_mem_16(Rng *r, unsigned reg, uint8_t *p)
{
    unsigned rm = rng_below(r, 100) == 0 ? rng_below(r, 6) : 6 + rng_below(r, 2);
    int16_t disp = (int16_t)(rng_below(r, 0xc00) - 0x600);
    bool short_disp = rng_below(r, 4) == 0;
    if (rng_below(r, 12)) {
        disp &= ~31;
    }
    p[0] = (uint8_t)((short_disp ? 0x40 : 0x80) | (reg & 7) << 3 | rm);
    memcpy(p + 1, &disp, 2);
    return short_disp ? 2 : 3;
}

static unsigned put_rip_relative(Rng *r, unsigned reg, uint64_t next, uint8_t *p)
{
    int32_t disp = (int32_t)(DATA_ADDR + 0x400 + (rng_below(r, 0x400) & ~15u) - next);
    if (diff_16) {
        uint16_t offset = (uint16_t)(0x400 + (rng_below(r, 0x400) & ~15u));
        p[0] = (uint8_t)((reg & 7) << 3 | 6);
        memcpy(p + 1, &offset, 2);
        return 3;
    }
    if (diff_32) { /* absolute */
        disp += (int32_t)next;
    }
    p[0] = (uint8_t)((reg & 7) << 3 | 5);
    memcpy(p + 1, &disp, 4);
    return 5;
}

/* Would it overwrite a register that addresses depend on? The stack pointer may move by a push. */
static bool clobbers(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    for (unsigned k = 0; k < zi->operand_count; k++) {
        if (op[k].type != ZYDIS_OPERAND_TYPE_REGISTER ||
            !(op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
            continue;
        }
        switch (ZydisRegisterGetClass(op[k].reg.value)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64:
            break;
        default:
            continue;
        }
        ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                              op[k].reg.value);
        unsigned id = (unsigned)ZydisRegisterGetId(full);
        if (id == REG_PTR_A || id == REG_PTR_B || id == REG_INDEX ||
            (id == REG_STACK && op[k].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)) {
            return true;
        }
    }
    return false;
}

static unsigned instance(Rng *r, const Template *t, uint64_t addr, uint8_t *p)
{
    unsigned regs = diff_32 ? 8 : 16;
    unsigned reg = t->digit >= 0 ? (unsigned)t->digit : rng_below(r, regs);
    unsigned vvvv = t->vex ? rng_below(r, regs) : 0, rex = reg & 8 ? 4 : 0, n, mlen = 0;
    uint8_t tail[24];
    bool vsib = t->vex && t->map == 2 && t->opcode >= 0x90 && t->opcode <= 0x93;
    bool rip = t->mem && !vsib && rng_below(r, 12) == 0 && t->mn != ZYDIS_MNEMONIC_FNSTENV &&
               t->mn != ZYDIS_MNEMONIC_FNSAVE;

    bool a32 = diff_16 && t->mem && !rip && (vsib || rng_below(r, 5) == 0);
    if (t->fixed) {
        tail[mlen++] = t->modrm;
    } else if (t->has_modrm && t->mem && !rip && diff_16 && !a32) {
        mlen = put_mem_16(r, reg, tail);
    } else if (t->has_modrm && t->mem && !rip) {
        mlen = put_mem(r, reg, vsib, &rex, tail);
    } else if (t->has_modrm && !rip) {
        unsigned rm = rng_below(r, regs);
        rex |= rm & 8 ? 1 : 0;
        tail[mlen++] = (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7));
    } else if (!t->has_modrm && !t->fixed) {
        rex = diff_32 ? 0 : rng_below(r, 2); /* a register in the opcode */
    }
    static const uint8_t segments[] = { 0x2e, 0x36, 0x3e, 0x26 };
    unsigned lock = t->mem && t->cls == CLASS_INT && rng_below(r, 6) == 0;
    n = 0;
    if (lock) {
        p[n++] = 0xf0;
    }
    if (t->mem && rng_below(r, 20) == 0) {
        p[n++] = segments[rng_below(r, 4)];
    }
    if (a32 || (t->mem && !diff_32 && rng_below(r, 20) == 0)) {
        p[n++] = 0x67;
    }
    bool vex_no_vvvv = t->vex && rng_below(r, 4) == 0;
    n += put_head(t, rex, vex_no_vvvv ? 0 : vvvv, !diff_32 && rng_below(r, 3) == 0, p + n);
    if (rip) {
        mlen = put_rip_relative(r, reg, addr + n + 5 + t->imm, tail);
    }
    memcpy(p + n, tail, mlen);
    n += mlen;
    n += put_imm(r, p + n, t->imm);
    return n;
}

/* Instructions whose addresses come from implied registers get them set first. */
static void prepare_special(Rng *r, Out *o, const Template *t, const uint8_t *p,
                            const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    uint8_t b[8];
    if (t->cat == ZYDIS_CATEGORY_STRINGOP || t->mn == ZYDIS_MNEMONIC_MASKMOVDQU ||
        t->mn == ZYDIS_MNEMONIC_VMASKMOVDQU || t->mn == ZYDIS_MNEMONIC_MASKMOVQ) {
        uint8_t lea_rdi[] = { 0x49, 0x8d, 0xbe, 0, 0, 0, 0 };
        uint8_t lea_rsi[] = { 0x49, 0x8d, 0xb7, 0, 0, 0, 0 };
        unsigned skip = diff_32 ? 1 : 0; /* no REX; [ebp], [ebx] */
        unsigned len = diff_16 ? 4 : 7 - skip;
        uint8_t ecx[] = { 0xb9, (uint8_t)rng_below(r, 40), 0, 0, 0 };
        int32_t d = (int32_t)rng_below(r, 0x400) - 0x200;
        memcpy(lea_rdi + 3, &d, 4);
        d = (int32_t)rng_below(r, 0x400) - 0x200;
        memcpy(lea_rsi + 3, &d, 4);
        lea_rdi[2] = diff_32 && !diff_16 ? 0xbd : 0xbe;
        lea_rsi[2] = diff_32 && !diff_16 ? 0xb3 : 0xb7;
        gen_emit(o, lea_rdi + skip, len);
        gen_emit(o, lea_rsi + skip, len);
        gen_emit(o, ecx, diff_16 ? 3 : 5);
    } else if (t->cat == ZYDIS_CATEGORY_AVX2GATHER && rng_below(r, 12)) {
        /* vpsrld/q index, index, 24/56: small offsets */
        unsigned x = (unsigned)ZydisRegisterGetId(op[1].mem.index);
        bool q = zi->opcode & 1;
        b[0] = 0xc4;
        b[1] = (uint8_t)(0xc1 | (x & 8 ? 0 : 0x20));
        b[2] = (uint8_t)((~x & 15) << 3 | 4 | 1);
        b[3] = q ? 0x73 : 0x72;
        b[4] = (uint8_t)(0xd0 | (x & 7));
        b[1] = (uint8_t)(x & 8 ? 0xc1 : 0xe1);
        b[5] = q ? 57 : 25;
        gen_emit(o, b, 6);
    } else if (t->mem && (t->cat == ZYDIS_CATEGORY_BITBYTE) && rng_below(r, 12) &&
               op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        /* and r64, 0x1f: a bit near the operand's address */
        unsigned x = (unsigned)ZydisRegisterGetId(op[1].reg.value);
        if (x != REG_PTR_A && x != REG_PTR_B && x != REG_STACK && x != REG_INDEX) {
            b[0] = (uint8_t)(0x48 | (x & 8 ? 1 : 0));
            b[1] = 0x83;
            b[2] = (uint8_t)(0xe0 | (x & 7));
            b[3] = 0x7f;
            gen_emit(o, b + diff_32, 4u - diff_32);
        }
    }
}

/*
 * FNSTENV and FNSAVE: which instructions update the pointers in the image differs between
 * implementations (SDM 1, 8.1.8), so they are overwritten: mov word [operand + 6 ...], 0.
 */
static void blank_pointers(Out *o, const ZydisDecodedInstruction *zi,
                           const ZydisDecodedOperand *op, const uint8_t *p)
{
    unsigned first = zi->operand_width == 16 ? 6 : 12, last = zi->operand_width == 16 ? 14 : 28;
    unsigned addr = zi->raw.disp.offset - zi->raw.modrm.offset; /* ModRM and SIB */
    if (op[0].type != ZYDIS_OPERAND_TYPE_MEMORY) {
        return;
    }
    for (unsigned n = first; n < last; n += 2) {
        uint8_t b[15] = { diff_16 ? 0x67 : 0x66 };
        unsigned len = diff_16 && zi->address_width == 16 ? 0 : 1;
        unsigned disp_len = zi->address_width == 16 ? 2 : 4;
        int32_t disp = (int32_t)(zi->raw.disp.value + n);
        if (zi->attributes & ZYDIS_ATTRIB_HAS_REX) {
            b[len++] = (uint8_t)(0x40 | (zi->raw.rex.X << 1) | zi->raw.rex.B);
        }
        b[len++] = 0xc7;
        memcpy(b + len, p + zi->raw.modrm.offset, addr);
        b[len] = (uint8_t)((b[len] & 7) | 0x80);
        len += addr;
        memcpy(b + len, &disp, disp_len);
        gen_emit(o, b, len + disp_len + 2);
    }
}

void gen_instance(Rng *r, Out *o)
{
    for (int tries = 0; tries < 100; tries++) {
        unsigned k = rng_below(r, 4);
        if (!class_n[k]) {
            continue;
        }
        const Template *t = &table[class_list[k][rng_below(r, class_n[k])]];
        if (t->mn == ZYDIS_MNEMONIC_DIV || t->mn == ZYDIS_MNEMONIC_IDIV) {
            if (rng_below(r, 4)) {
                continue;
            }
        }
        ZydisDecodedInstruction zi;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        uint8_t p[32];
        unsigned len = instance(r, t, CODE_ADDR + o->pos, p);
        if (len > 15 || !gen_decode(p, len, &zi, op) || zi.length != len || !acceptable(&zi, op) ||
            zi.mnemonic != t->mn || clobbers(&zi, op)) {
            continue;
        }
        prepare_special(r, o, t, p, &zi, op);
        if (t->mem && !diff_16 && zi.raw.modrm.mod == 0 && zi.raw.modrm.rm == 5) {
            /* RIP-relative: what was put in front moved it */
            int32_t disp;
            memcpy(&disp, p + zi.raw.disp.offset, 4);
            uint64_t want = diff_32 ? 0 : CODE_ADDR + o->pos + len;
            disp = (int32_t)(DATA_ADDR + 0x800 + (rng_below(r, 0x400) & ~15u) - want);
            memcpy(p + zi.raw.disp.offset, &disp, 4);
        }
        gen_emit(o, p, len);
        if (t->mn == ZYDIS_MNEMONIC_FNSTENV || t->mn == ZYDIS_MNEMONIC_FNSAVE) {
            blank_pointers(o, &zi, op, p);
        }
        return;
    }
}

static void random_bytes(Rng *r, Out *o)
{
    for (int tries = 0; tries < 200; tries++) {
        ZydisDecodedInstruction zi;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        uint64_t b[2] = { rng_next(r), rng_next(r) };
        if (gen_decode((uint8_t *)b, 15, &zi, op) && acceptable(&zi, op) && !clobbers(&zi, op) &&
            (class_of(&zi) & wanted) && zi.mnemonic != ZYDIS_MNEMONIC_FNSTENV &&
            zi.mnemonic != ZYDIS_MNEMONIC_FNSAVE && zi.meta.category != ZYDIS_CATEGORY_STRINGOP) {
            gen_emit(o, (uint8_t *)b, zi.length);
            return;
        }
    }
}

/* ---- Streams ---- */

void gen_stream(Rng *r, Stream *s)
{
    Out o = { .s = s, .pos = rng_below(r, 3) ? rng_below(r, 64) : 0x1000 - rng_below(r, 128) };
    unsigned count = 16 + rng_below(r, 33);
    memset(s->code, 0xcc, sizeof(s->code));
    s->n = 0;
    gen_state(r, &s->init);
    gen_data(r, s->data, DATA_SIZE);
    s->init.rip = CODE_ADDR + o.pos;
    while (s->n < count) {
        if (rng_below(r, 16) == 0) {
            gen_branch(r, &o);
        } else if (class_n[0] && rng_below(r, 24) == 0) {
            gen_flow(r, &o);
        } else if ((wanted & CLASS_AVX) && !diff_16 && rng_below(r, 48) == 0) {
            gen_save_restore(r, &o);
        } else {
            gen_instance(r, &o);
        }
    }
    if (rng_below(r, 4) == 0) {
        random_bytes(r, &o);
    }
    s->off[s->n] = o.pos;
}
