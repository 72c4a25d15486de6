/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common x87 instructions without the cost of FXRSTOR and FXSAVE: a stub loads the one or two
 * registers involved with FLD m80, runs the very instruction, and stores what it changed with
 * FSTP m80, both of which move 80 bits untouched. Only while all exceptions are masked and the
 * registers involved are as the instruction wants them (no stack fault); everything else takes the
 * way of x87.c.
 */
#include "accel/tcg/x87.h"

/* Where operands and results are. */
enum {
    L_PUSH,    /* none -> new ST(0) */
    L_ST0,     /* ST(0) -> ST(0) */
    L_ST0_STI, /* ST(0), ST(i) -> ST(0) */
    L_STI_ST0, /* ST(i), ST(0) -> ST(i) */
    L_CMP,     /* ST(0), ST(i) -> condition codes */
    L_CMP0,    /* ST(0) -> condition codes */
    L_STORE,   /* ST(0) -> memory */
};

#define FSW_C1   0x0200u
#define FSW_CC   0x4700u
#define FCW_MASKS 0x003fu

static inline unsigned top_of(const X86CPU *c)
{
    return (c->x87.fsw >> FSW_TOP_SHIFT) & 7;
}
static inline bool valid(const X86CPU *c, unsigned i)
{
    return c->x87.ftw & BIT((top_of(c) + i) & 7);
}

/* A new ST(0), which was empty. */
static inline void push(X86CPU *c, const void *v)
{
    X87State *x = &c->x87;
    unsigned top = (top_of(c) - 1) & 7;
    memmove(&x->st[1], &x->st[0], 7 * sizeof(x->st[0]));
    memcpy(x->st[0].b, v, 10);
    x->ftw |= (uint8_t)BIT(top);
    x->fsw = (uint16_t)((x->fsw & ~FSW_TOP) | top << FSW_TOP_SHIFT);
}

static inline void pop(X86CPU *c)
{
    X87State *x = &c->x87;
    unsigned top = top_of(c);
    uint8_t old[sizeof(x->st[0])];
    memcpy(old, &x->st[0], sizeof(old));
    memmove(&x->st[0], &x->st[1], 7 * sizeof(x->st[0]));
    memcpy(&x->st[7], old, sizeof(old));
    x->ftw &= (uint8_t)~BIT(top);
    x->fsw = (uint16_t)((x->fsw & ~FSW_TOP) | ((top + 1) & 7) << FSW_TOP_SHIFT);
}

/* Insn: imm key, reg class, vvvv number of pops, opsize i of ST(i), aux8 size of memory operand. */
static inline bool can_run(const X86CPU *c, const Insn *i, unsigned form)
{
    if ((c->x87.fcw & FCW_MASKS) != FCW_MASKS) {
        return false;
    }
    switch (form) {
    case L_PUSH:
        return !valid(c, 7);
    case L_ST0_STI:
    case L_STI_ST0:
    case L_CMP:
        return valid(c, 0) && valid(c, i->opsize);
    default:
        return valid(c, 0);
    }
}

static inline void run(X86CPU *c, const Insn *i, unsigned form, void *mem)
{
    X87State *x = &c->x87;
    uint16_t words[2] = { 0, 0x37f }; /* FSW out; the host's FCW */
    uint8_t fresh[16];
    SimdStubFn *fn = simd_stub(c, i);
    unsigned cc = form == L_CMP || form == L_CMP0 ? FSW_CC : FSW_C1;
    fn(form == L_PUSH ? fresh : x->st[0].b, mem, x->st[i->opsize & 7].b, c, words);
    x->fsw = (uint16_t)((x->fsw & ~cc) | (words[0] & (cc | FSW_EXCEPTIONS)));
    if (form == L_PUSH) {
        push(c, fresh);
    }
    for (unsigned n = i->vvvv; n; n--) {
        pop(c);
    }
}

static inline void light(X86CPU *c, const Insn *i, unsigned form, bool mem)
{
    x87_check(c, i);
    if (unlikely(!can_run(c, i, form) || (c->x87.fsw & FSW_ES))) {
        x87_full(c, i);
        return;
    }
    uint64_t off = c->x87.fdp, lin = 0;
    uint16_t fds = c->x87_fds;
    void *p = c->tcg->simd->buf;
    if (mem) {
        off = tcg_ea_offset(c, i);
        fds = c->seg[i->seg].selector;
        lin = tcg_ea(c, i, i->aux8, form == L_STORE);
        if (form == L_STORE) {
            tcg_probe_write(c, i, lin, i->aux8);
        } else {
            p = (void *)(uintptr_t)simd_load(c, i, lin, i->aux8, p);
        }
    }
    run(c, i, form, p);
    x87_note_pointers(c, i, off, fds);
    if (form == L_STORE) {
        simd_store(c, i, lin, p, i->aux8);
    }
}

#define HANDLER(name, form, mem)                                                                   \
    static void name(X86CPU *c, const Insn *i)                                                     \
    {                                                                                              \
        light(c, i, form, mem);                                                                    \
        NEXT(c, i);                                                                                \
    }
HANDLER(push_const, L_PUSH, false)
HANDLER(push_mem, L_PUSH, true)
HANDLER(st0, L_ST0, false)
HANDLER(st0_mem, L_ST0, true)
HANDLER(st0_sti, L_ST0_STI, false)
HANDLER(sti_st0, L_STI_ST0, false)
HANDLER(cmp_sti, L_CMP, false)
HANDLER(cmp_zero, L_CMP0, false)
HANDLER(cmp_mem, L_CMP0, true)
HANDLER(store, L_STORE, true)

/* ---- Moves between registers: no stub ---- */

static void note_move(X86CPU *c, const Insn *i)
{
    c->x87.fsw &= (uint16_t)~FSW_C1;
    x87_note_pointers(c, i, c->x87.fdp, c->x87_fds);
}

static void fxch(X86CPU *c, const Insn *i)
{
    uint8_t t[10];
    x87_check(c, i);
    if (unlikely(!can_run(c, i, L_CMP))) {
        x87_full(c, i);
        NEXT(c, i);
    }
    memcpy(t, c->x87.st[0].b, 10);
    memcpy(c->x87.st[0].b, c->x87.st[i->opsize].b, 10);
    memcpy(c->x87.st[i->opsize].b, t, 10);
    note_move(c, i);
    NEXT(c, i);
}

static void fld_sti(X86CPU *c, const Insn *i)
{
    uint8_t t[10];
    x87_check(c, i);
    if (unlikely(!can_run(c, i, L_PUSH) || !valid(c, i->opsize))) {
        x87_full(c, i);
        NEXT(c, i);
    }
    memcpy(t, c->x87.st[i->opsize].b, 10);
    push(c, t);
    note_move(c, i);
    NEXT(c, i);
}

static void fst_sti(X86CPU *c, const Insn *i)
{
    x87_check(c, i);
    if (unlikely(!can_run(c, i, L_ST0))) {
        x87_full(c, i);
        NEXT(c, i);
    }
    memmove(c->x87.st[i->opsize].b, c->x87.st[0].b, 10);
    c->x87.ftw |= (uint8_t)BIT((top_of(c) + i->opsize) & 7);
    if (i->vvvv) {
        pop(c);
    }
    note_move(c, i);
    NEXT(c, i);
}

/* ---- Decoding ---- */

static bool take(Insn *out, InsnFn *fn, unsigned form, unsigned pops)
{
    out->fn = fn;
    out->reg = (uint8_t)form;
    out->vvvv = (uint8_t)pops;
    return true;
}

/* Register forms, by opcode and ModRM. */
static bool decode_reg(unsigned opcode, unsigned modrm, Insn *out)
{
    unsigned reg = (modrm >> 3) & 7;
    out->opsize = modrm & 7;
    switch (opcode) {
    case 0xd8:
        if (reg == 2 || reg == 3) {
            return take(out, cmp_sti, L_CMP, reg - 2);
        }
        return take(out, st0_sti, L_ST0_STI, 0);
    case 0xdc:
    case 0xde:
        if (opcode == 0xde && modrm == 0xd9) {
            return take(out, cmp_sti, L_CMP, 2);
        }
        return reg != 2 && reg != 3 && take(out, sti_st0, L_STI_ST0, opcode == 0xde);
    case 0xd9:
        if (reg == 0) {
            return take(out, fld_sti, L_PUSH, 0);
        }
        if (reg == 1) {
            return take(out, fxch, L_CMP, 0);
        }
        if (modrm == 0xe0 || modrm == 0xe1 || modrm == 0xfa || modrm == 0xfc) {
            return take(out, st0, L_ST0, 0); /* FCHS FABS FSQRT FRNDINT */
        }
        if (modrm == 0xe4) {
            return take(out, cmp_zero, L_CMP0, 0); /* FTST */
        }
        return modrm >= 0xe8 && modrm <= 0xee && take(out, push_const, L_PUSH, 0);
    case 0xda:
        return modrm == 0xe9 && take(out, cmp_sti, L_CMP, 2);
    case 0xdd:
        if (reg == 2 || reg == 3) {
            return take(out, fst_sti, L_ST0, reg - 2);
        }
        return (reg == 4 || reg == 5) && take(out, cmp_sti, L_CMP, reg - 4);
    default: /* FCOMI too: what it does to C1 differs between processors */
        return false;
    }
}

static bool decode_mem(unsigned opcode, unsigned reg, Insn *out)
{
    if (!(opcode & 1)) { /* arithmetic: D8 m32, DA m32int, DC m64, DE m16int */
        bool cmp = reg == 2 || reg == 3;
        return cmp ? take(out, cmp_mem, L_CMP0, reg - 2) : take(out, st0_mem, L_ST0, 0);
    }
    switch (reg) {
    case 0:
        return take(out, push_mem, L_PUSH, 0);
    case 1: /* FISTTP; D9 /1 is none */
        return opcode != 0xd9 && take(out, store, L_STORE, 1);
    case 2:
    case 3:
        return take(out, store, L_STORE, reg - 2);
    case 5: /* DB: FLD m80, DF: FILD m64 */
        return (opcode == 0xdb || opcode == 0xdf) && take(out, push_mem, L_PUSH, 0);
    case 7: /* FSTP m80, FISTP m64 */
        return (opcode == 0xdb || opcode == 0xdf) && take(out, store, L_STORE, 1);
    default:
        return false;
    }
}

/* out->imm: key of the full stub. It stays reachable through out->rm. */
bool x87_decode_light(Decode *d, Insn *out)
{
    unsigned opcode = d->zi.opcode, modrm = d->bytes[d->zi.raw.modrm.offset];
    bool mem = modrm < 0xc0;
    out->rm = (uint8_t)KEY_MODRM(out->imm);
    out->opsize = 0;
    if (!(mem ? decode_mem(opcode, (modrm >> 3) & 7, out) : decode_reg(opcode, modrm, out))) {
        return false;
    }
    if (out->fn == fxch || out->fn == fld_sti || out->fn == fst_sti) {
        return true; /* no stub but the full one */
    }
    uint64_t key = (out->imm & ~(KEY_X87 | 0xff0000ull)) | KEY_X87_LIGHT;
    unsigned light_modrm = modrm;
    if (mem) {
        light_modrm = (modrm & 0x38) | 6;
    } else if (out->reg == L_ST0_STI || out->reg == L_STI_ST0 || out->reg == L_CMP) {
        light_modrm = (modrm & 0xf8) | 1;
    }
    out->imm = key | (uint64_t)light_modrm << 16 | (uint64_t)out->reg << KEY_REG_SHIFT |
               (uint64_t)out->vvvv << KEY_VVVV_SHIFT;
    return true;
}

/* ---- The stub ---- */

/* rdi ST(0), rsi memory, rdx ST(i), r8 words: FSW out, FCW of the host. */
size_t x87_emit_light(uint8_t *p, uint64_t key)
{
    unsigned form = KEY_REG(key), pops = KEY_VVVV(key), left;
    bool two = form == L_ST0_STI || form == L_STI_ST0 || form == L_CMP;
    uint32_t fcw = offsetof(X86CPU, x87) + offsetof(X87State, fcw);
    uint8_t *q = p;
#define PUT(...)                                                                                   \
    do {                                                                                           \
        const uint8_t b_[] = { __VA_ARGS__ };                                                      \
        memcpy(q, b_, sizeof(b_));                                                                 \
        q += sizeof(b_);                                                                           \
    } while (0)
    PUT(0xd9, 0xa9, (uint8_t)fcw, (uint8_t)(fcw >> 8), (uint8_t)(fcw >> 16), 0); /* fldcw [rcx+] */
    if (two) {
        PUT(0xdb, 0x2a); /* fld tbyte [rdx] */
    }
    if (form != L_PUSH) {
        PUT(0xdb, 0x2f); /* fld tbyte [rdi] */
    }
    left = form == L_PUSH ? 1 : two ? 2 : 1;
    PUT(KEY_OPCODE(key), KEY_MODRM(key));
    PUT(0x41, 0xdd, 0x38); /* fnstsw [r8] */
    left -= MIN(pops, left);
    if (form == L_PUSH || form == L_ST0 || form == L_ST0_STI) {
        PUT(0xdb, 0x3f); /* fstp tbyte [rdi] */
        left--;
    } else if (form == L_STI_ST0) {
        if (!pops) {
            PUT(0xdd, 0xd8); /* fstp st */
            left--;
        }
        PUT(0xdb, 0x3a); /* fstp tbyte [rdx] */
        left--;
    }
    while (left--) {
        PUT(0xdd, 0xd8);
    }
    PUT(0xdb, 0xe2, 0x41, 0xd9, 0x68, 0x02, 0x31, 0xc0, 0xc3); /* fnclex; fldcw [r8+2]; return 0 */
#undef PUT
    return (size_t)(q - p);
}
