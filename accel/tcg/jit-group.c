/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accesses of a block that need no probe of their own.
 *
 * Accesses whose addresses differ by a constant (the same registers, unchanged but for known steps
 * like those of PUSH) form a group. Its first one, the leader, probes for the whole range and
 * leaves the host address in a slot; the others, its followers, are that address plus a constant.
 * They look at nothing: if the range crosses a page, or the interpreter is called anywhere between the first and the last, which
 * may change the TLB, it goes on to the block's end (jit_interp_rest()).
 *
 * A block to which that happens often is translated again so that they test (TcgBlock.tested): then the slot is empty (0) if the
 * range crosses a page, and after each call of the interpreter, and a follower that finds it so probes for itself, out of line.
 *
 * Only 64-bit code: elsewhere addresses wrap.
 */
#include "accel/tcg/jit.h"

#define GROUP_RANGE JIT_STACK_LONG /* bytes; the more, the likelier the range crosses a page */

typedef struct Group {
    bool used;
    uint8_t base, index, scale, seg; /* seg: 0xff without a base to be added */
    uint32_t base_version, index_version;
    int64_t index_step;
    int64_t off;         /* the leader's: step of the base + displacement */
    unsigned leader, last; /* instructions */
} Group;

typedef struct Scan {
    JitCtx *x;
    uint32_t version[R_ZERO + 1]; /* of each register: changes with its value, but for known steps */
    int64_t step[R_ZERO + 1];
    uint32_t versions;
    Group g[JIT_GROUPS];
} Scan;

/* ---- What an instruction accesses ---- */

static bool is_bit_string(const ZydisDecodedInstruction *zi)
{
    return (zi->mnemonic == ZYDIS_MNEMONIC_BT || zi->mnemonic == ZYDIS_MNEMONIC_BTS ||
            zi->mnemonic == ZYDIS_MNEMONIC_BTR || zi->mnemonic == ZYDIS_MNEMONIC_BTC) &&
           !zi->raw.imm[0].size;
}

Insn jit_stack_address(const JitCtx *x, int32_t by)
{
    return (Insn){ .base = R_RSP, .index = R_ZERO, .disp = by, .asz = jit_is64(x) ? ASZ_64 : ASZ_32 };
}

/* The stack's slot that instruction k uses. */
static bool stack_access(const JitCtx *x, unsigned k, Insn *ea, bool *write)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];

    if (zi->operand_width != 64) {
        return false;
    }
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: case ZYDIS_MNEMONIC_CALL:
        *ea = jit_stack_address(x, -8);
        *write = true;
        return true;
    case ZYDIS_MNEMONIC_POP: case ZYDIS_MNEMONIC_RET:
        *ea = jit_stack_address(x, 0);
        return true;
    case ZYDIS_MNEMONIC_LEAVE:
        *ea = jit_stack_address(x, 0);
        ea->base = R_RBP;
        return true;
    default:
        return false;
    }
}

bool jit_is_fixed(const Insn *ea)
{
    return ea->asz == ASZ_64 && ea->base == R_ZERO && ea->index == R_ZERO && !(ea->flags & INSN_SEGBASE);
}

static bool operand_access(const JitCtx *x, unsigned k, Insn *ea, bool *write, unsigned *size)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];

    if (is_bit_string(zi)) {
        return false; /* the bit may be far from the address */
    }
    for (unsigned n = 0; n < zi->operand_count; n++) {
        const ZydisDecodedOperand *o = &x->op[k][n];

        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
            o->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM && o->size >= 8) {
            *ea = x->tb->insn[k];
            *size = o->size / 8;
            *write = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
            return ea->asz == ASZ_64 && !(ea->flags & INSN_SEGCHECK) &&
                   (ea->disp == (int32_t)ea->disp || jit_is_fixed(ea));
        }
    }
    return false;
}

/* ---- Registers ---- */

static void register_changed(Scan *s, unsigned g)
{
    s->version[g] = ++s->versions;
    s->step[g] = 0;
}

/* Is the register's new value the old one plus *by? */
static bool is_step(const JitCtx *x, unsigned k, unsigned g, int64_t *by)
{
    const ZydisDecodedInstruction *zi = &x->zi[k];
    const ZydisDecodedOperand *o = x->op[k];
    const Insn *i = &x->tb->insn[k];

    if (zi->operand_width != 64) {
        return false;
    }
    switch (zi->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        *by = -8;
        return true;
    case ZYDIS_MNEMONIC_POP:
        *by = 8;
        return g == R_RSP && !(o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                               o[0].reg.value == ZYDIS_REGISTER_RSP);
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB:
        *by = zi->mnemonic == ZYDIS_MNEMONIC_ADD ? o[1].imm.value.s : -o[1].imm.value.s;
        return o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    case ZYDIS_MNEMONIC_INC: case ZYDIS_MNEMONIC_DEC:
        *by = zi->mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
        return true;
    case ZYDIS_MNEMONIC_LEA:
        *by = i->disp;
        return i->base == g && i->index == R_ZERO && i->asz == ASZ_64;
    default:
        return false;
    }
}

static void registers_follow(Scan *s, unsigned k)
{
    const JitCtx *x = s->x;

    for (unsigned n = 0; n < x->zi[k].operand_count; n++) {
        const ZydisDecodedOperand *o = &x->op[k][n];
        ZydisRegister full;
        unsigned g;
        int64_t by;

        if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
            continue;
        }
        full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value);
        if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64) {
            continue;
        }
        g = (unsigned)ZydisRegisterGetId(full);
        if (is_step(x, k, g, &by)) {
            s->step[g] += by;
        } else {
            register_changed(s, g);
        }
    }
}

/* ---- Groups ---- */

static uint8_t segment_of(const Insn *ea)
{
    return ea->flags & INSN_SEGBASE ? ea->seg : 0xff;
}

static bool group_matches(const Scan *s, const Group *g, const Insn *ea)
{
    if (g->used && jit_is_fixed(ea) && ((g->off ^ ea->disp) & TARGET_PAGE_MASK)) {
        return false; /* a group for each page */
    }
    return g->used && g->base == ea->base && g->index == ea->index && g->scale == ea->scale &&
           g->seg == segment_of(ea) && g->base_version == s->version[ea->base] &&
           g->index_version == s->version[ea->index] && g->index_step == s->step[ea->index];
}

/* Without registers the address is known: a page's end needs no guess. */
static bool range_is_good(const Group *g, int64_t lo, int64_t hi)
{
    if (g->base == R_ZERO && g->index == R_ZERO && g->seg == 0xff) {
        return ((uint64_t)(g->off + lo) ^ (uint64_t)(g->off + hi - 1)) < TARGET_PAGE_SIZE;
    }
    return hi - lo <= GROUP_RANGE;
}

/* The leader's address is made of its registers and the displacement to where the range begins. */
static bool low_fits(const Insn *ea, int64_t lo)
{
    return jit_is_fixed(ea) || ea->disp + lo == (int32_t)(ea->disp + lo);
}

/* One that is not used, or else was used longest ago. */
static unsigned group_to_reuse(const Scan *s)
{
    unsigned slot = 0;

    for (unsigned n = 0; n < JIT_GROUPS; n++) {
        if (!s->g[n].used) {
            return n;
        }
        if (s->g[n].last < s->g[slot].last) {
            slot = n;
        }
    }
    return slot;
}

static void group_new(Scan *s, unsigned k, const Insn *ea)
{
    unsigned slot = group_to_reuse(s);
    Group *g = &s->g[slot];

    *g = (Group){ .used = true, .base = ea->base, .index = ea->index, .scale = ea->scale,
                  .seg = segment_of(ea), .base_version = s->version[ea->base],
                  .index_version = s->version[ea->index], .index_step = s->step[ea->index],
                  .off = s->step[ea->base] + ea->disp, .leader = k,
                  .last = k };
    s->x->mem[k].slot = (uint8_t)slot;
}

static bool group_join(Scan *s, Group *g, unsigned k, const Insn *ea)
{
    JitAccess *m = &s->x->mem[k], *lead = &s->x->mem[g->leader];
    int64_t off = s->step[ea->base] + ea->disp - g->off;
    int64_t lo = MIN(lead->lo, off), hi = MAX(lead->hi, off + m->size);

    if (!range_is_good(g, lo, hi) || !low_fits(&lead->ea, lo)) {
        return false;
    }
    lead->lo = (int32_t)lo;
    lead->hi = (int32_t)hi;
    lead->leads = true;
    lead->probe_write |= m->write;
    lead->leads_writes |= m->write;
    m->follows = true;
    m->leader = (uint8_t)g->leader;
    m->slot = lead->slot;
    m->off = (int32_t)off;
    g->last = k;
    for (unsigned n = g->leader; n < k; n++) {
        s->x->mem[n].span |= (uint8_t)(1u << lead->slot);
    }
    return true;
}

static void access_scan(Scan *s, unsigned k)
{
    JitCtx *x = s->x;
    JitAccess *m = &x->mem[k];
    bool write = false;
    unsigned size = 8;
    Insn ea;

    if (!stack_access(x, k, &ea, &write) && !operand_access(x, k, &ea, &write, &size)) {
        return;
    }
    m->ea = ea;
    m->size = (uint8_t)size;
    m->write = m->probe_write = write;
    m->hi = (int32_t)size;
    for (unsigned n = 0; n < JIT_GROUPS; n++) {
        if (group_matches(s, &s->g[n], &ea)) {
            if (group_join(s, &s->g[n], k, &ea)) {
                return;
            }
            s->g[n].used = false;
        }
    }
    group_new(s, k, &ea);
}

void jit_groups_find(JitCtx *x)
{
    Scan s = { .x = x };

    memset(x->mem, 0, sizeof(x->mem[0]) * x->n);
    if (!jit_is64(x)) {
        return;
    }
    for (unsigned k = 0; k < x->n; k++) {
        if (x->tb->barriers & BIT64(k)) {
            memset(s.g, 0, sizeof(s.g));
        } else if (!tcg_insn_raises(&x->tb->insn[k])) {
            access_scan(&s, k);
        }
        registers_follow(&s, k);
    }
}

void jit_groups_forget(JitCtx *x, uint8_t span)
{
    for (unsigned n = 0; x->tb->tested && n < JIT_GROUPS; n++) {
        if (span & (1u << n)) {
            emit_st_imm32(&x->e, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + n), 0);
        }
    }
}
