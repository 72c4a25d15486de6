/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands: address, TLB probe, and the look after a store whether it hit code.
 *
 * The probe is the interpreter's (tlb.h): the entry is chosen by the first byte, the tag compared
 * with the page of the last, so that an access into the next page never matches.
 */
#include "accel/tcg/jit.h"

void jit_ea(JitCtx *x, const Insn *i)
{
    jit_ea_to(x, i, H_CX);
}

void jit_ea_to(JitCtx *x, const Insn *i, unsigned to)
{
    Emit *e = &x->e;
    bool w = i->asz == ASZ_64;
    unsigned base = H_NONE, index = H_NONE;

    if (i->base != R_ZERO) {
        base = jit_get(x, i->base, H_CX);
    }
    if (i->index != R_ZERO) {
        index = jit_get(x, i->index, H_AX);
    }
    if (base == H_NONE && index == H_NONE) {
        emit_mov_imm(e, to, w ? (uint64_t)i->disp : (uint32_t)i->disp);
    } else if (i->disp != (int32_t)i->disp) {
        /* Only the offset forms of MOV have such a displacement, and they are not translated. */
        emit_mov_imm(e, H_DX, (uint64_t)i->disp);
        emit_lea(e, w, to, base == H_NONE ? H_DX : base, index, i->scale, 0);
    } else {
        emit_lea(e, w, to, base, index, i->scale, (int32_t)i->disp);
    }
    if (i->flags & INSN_SEGBASE) {
        emit_op_rm(e, true, 0x03, to, JIT_CPU,
                   JIT_OFF(seg) + (int32_t)(i->seg * sizeof(SegmentCache) +
                                            offsetof(SegmentCache, base)));
    }
}

static uint64_t page_of(const Insn *ea, int32_t off)
{
    return ((uint64_t)ea->disp + (uint64_t)(int64_t)off) & TARGET_PAGE_MASK;
}

/* RAX = the first entry of the set, RDX = the page, for the bytes from RCX + lo to RCX + hi - 1. */
static void probe_where(JitCtx *x, int32_t lo, int32_t hi)
{
    Emit *e = &x->e;

    if (lo) {
        emit_lea(e, false, H_AX, H_CX, H_NONE, 0, lo);
    } else {
        emit_mov32_rr(e, H_AX, H_CX);
    }
    /* Number of the set times its size, 64 bytes. */
    emit_shift_imm(e, false, 5, H_AX, TARGET_PAGE_BITS - 6);
    emit_alu_imm(e, false, 4, H_AX, (int32_t)((TLB_SETS - 1) << 6));
    emit_op_rm(e, true, 0x03, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TLB));
    if (hi > 1) {
        emit_lea(e, true, H_DX, H_CX, H_NONE, 0, hi - 1);
    } else {
        emit_mov_rr(e, H_DX, H_CX);
    }
    emit_alu_imm(e, true, 4, H_DX, (int32_t)TARGET_PAGE_MASK);
}

/*
 * For the bytes from RCX + lo to RCX + hi - 1, all in one page; RCX is the address ea and becomes the host's.
 * RAX: TLB entry, RDX: page of ea + lo.
 */
static void probe_entry(JitCtx *x, JitStub *s, const Insn *ea, int32_t lo, int32_t hi, bool write)
{
    int32_t tag = write ? offsetof(TlbEntry, wtag) : offsetof(TlbEntry, rtag);
    Emit *e = &x->e;
    JitStub *way;

    if (jit_is_fixed(ea) && page_of(ea, lo) == page_of(ea, hi - 1)) {
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_TLB));
        emit_lea(e, true, H_AX, H_AX, H_NONE, 0, (int32_t)(TLB_INDEX(page_of(ea, lo)) * sizeof(TlbEntry)));
        emit_mov_imm(e, H_DX, page_of(ea, lo));
    } else {
        probe_where(x, lo, hi);
    }
    emit_op_rm(e, true, 0x3b, H_DX, H_AX, tag);
    way = jit_stub(x, STUB_WAY);
    jit_stub_jcc(x, way, CC_NZ);
    way->miss = s;
    way->disp = tag;
    emit_op_rm(e, true, 0x03, H_CX, H_AX, offsetof(TlbEntry, addend));
    way->resume = emit_here(e);
}

static void probe_range(JitCtx *x, JitStub *s, const Insn *ea, int32_t lo, int32_t hi, bool write)
{
    probe_entry(x, s, ea, lo, hi, write);
    if (write) {
        emit_ld(&x->e, H_AX, H_AX, offsetof(TlbEntry, code_map));
    }
}

/* The second entry of the set: RAX is the first, RCX the address, RDX its page. */
void jit_stub_way_emit(JitCtx *x, JitStub *s)
{
    Emit *e = &x->e;

    emit_patch(e, s->rel[0], emit_here(e));
    emit_alu_imm(e, true, 0, H_AX, sizeof(TlbEntry));
    emit_op_rm(e, true, 0x3b, H_DX, H_AX, s->disp);
    jit_stub_jcc(x, s->miss, CC_NZ);
    emit_op_rm(e, true, 0x03, H_CX, H_AX, offsetof(TlbEntry, addend));
    emit_jmp(e, s->resume);
}

void jit_probe(JitCtx *x, JitStub *s, const Insn *ea, unsigned size, unsigned access)
{
    probe_range(x, s, ea, 0, (int32_t)size, access & MEM_WRITE);
}

/* ---- The stack ---- */

/* Nearly all of these are in the page of the one before. */
static bool is_stack(const JitCtx *x, const Insn *ea, int32_t lo)
{
    return jit_is64(x) && ea->asz == ASZ_64 && ea->base == R_RSP && ea->index == R_ZERO &&
           !(ea->flags & (INSN_SEGBASE | INSN_SEGCHECK)) && ea->disp + lo == (int32_t)(ea->disp + lo);
}

/* RCX = host address of ea + lo, RAX = code map if write. */
static void probe_stack(JitCtx *x, JitStub *miss, const Insn *ea, int32_t lo, int32_t hi, bool write)
{
    unsigned limit = hi - lo <= JIT_STACK_SHORT ? AREA_STACK_SHORT : AREA_STACK_LONG;
    JitStub *s = jit_stub(x, STUB_STACK);
    Emit *e = &x->e;

    s->miss = miss;
    s->disp = (int32_t)ea->disp + lo;
    s->range = (uint16_t)(hi - lo);
    s->write = write;
    emit_lea(e, true, H_CX, jit_reg[R_RSP], H_NONE, 0, s->disp);
    emit_op_rm(e, true, 0x2b, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_PAGE));
    emit_op_rm(e, true, 0x3b, H_CX, JIT_CPU, JIT_OFF_AREA(limit));
    jit_stub_jcc(x, s, CC_NC);
    emit_op_rm(e, true, 0x03, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_HOST));
    s->resume = emit_here(e);
    if (write) {
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_STACK_MAP));
    }
}

void jit_stub_stack_emit(JitCtx *x, JitStub *s)
{
    const Insn ea = jit_stack_address(x, s->disp);
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    jit_ea(x, &ea);
    probe_entry(x, s->miss, &ea, 0, s->range, s->write);
    emit_call(e, x->j->stack_fill);
    emit_jmp(e, s->resume);
}

/* ---- What an instruction wants ---- */

static bool access_fits(const JitAccess *m, const JitWant *w)
{
    return w->size <= m->size && (m->write || !(w->access & MEM_WRITE));
}

/* Is the access covered by a probe before it? */
static bool mem_follows(const JitCtx *x, const JitWant *w)
{
    const JitAccess *m = &x->mem[x->index], *lead = &x->mem[m->leader];

    return m->follows && lead->done && access_fits(m, w) &&
           (w->align <= 1 || (lead->aligned >= w->align && (m->off & (int32_t)(w->align - 1)) == 0));
}

/* The out-of-line probe of an access of a group; it comes back here. */
static JitStub *stub_probe(JitCtx *x, JitStub **miss, StubKind kind)
{
    JitStub *s = jit_stub(x, STUB_PROBE);

    *miss = s->miss = jit_stub(x, kind);
    return s;
}

/* MOV RCX, [slot], and out of line if it is empty. EFLAGS that are wanted stay. */
static JitStub *probe_follow(JitCtx *x, const JitWant *w, const JitAccess *m, int32_t disp)
{
    Emit *e = &x->e;
    bool keep = x->live[x->index] && x->s.flags == FLAGS_HOST;
    JitStub *miss, *s;

    emit_ld(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + m->slot));
    if (w->access & MEM_WRITE) {
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP_MAP + m->slot));
    }
    s = stub_probe(x, &miss, w->kind);
    if (keep) {
        /* JRCXZ to the JMP to the stub, which is jumped over. */
        e8(e, 0xe3);
        e8(e, 2);
        e8(e, 0xeb);
        e8(e, 5);
        s->rel[s->nrel++] = emit_jmp(e, NULL);
        s->neutral = true;
    } else {
        x->s.flags &= (uint8_t)~FLAGS_HOST;
        emit_op_rr(e, true, 0x85, H_CX, H_CX);
        jit_stub_jcc(x, s, CC_Z);
    }
    s->disp = disp;
    s->resume = emit_here(e);
    return miss;
}

/* From what the slot holds to the leader's address. */
static int32_t lead_disp(const JitCtx *x, const JitAccess *lead)
{
    return is_stack(x, &lead->ea, lead->lo) ? -lead->lo : 0;
}

/* The leader's probe; what its followers want goes to their slots. */
static JitStub *probe_lead(JitCtx *x, const JitWant *w, JitAccess *m)
{
    Emit *e = &x->e;
    JitStub *miss, *s = stub_probe(x, &miss, w->kind);

    if (is_stack(x, &m->ea, m->lo)) {
        probe_stack(x, s, &m->ea, m->lo, m->hi, m->probe_write);
    } else {
        jit_ea(x, w->ea);
        probe_range(x, s, w->ea, m->lo, m->hi, m->probe_write);
    }
    emit_st(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + m->slot));
    if (m->leads_writes) {
        emit_st(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP_MAP + m->slot));
    }
    s->disp = lead_disp(x, m);
    s->resume = emit_here(e);
    m->done = true;
    return miss;
}

void jit_stub_probe_emit(JitCtx *x, JitStub *s)
{
    const JitAccess *m = &x->mem[s->index];
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    if (m->leads) {
        jit_groups_forget(x, (uint8_t)(1u << m->slot));
    }
    if (s->neutral) {
        jit_flags_store(e);
    }
    jit_ea(x, &m->ea);
    probe_range(x, s->miss, &m->ea, 0, m->size, m->write);
    if (s->neutral) {
        emit_mov_rr(e, H_DX, H_AX);
        jit_flags_load(e);
        emit_mov_rr(e, H_AX, H_DX);
    }
    if (s->disp) {
        emit_lea(e, true, H_CX, H_CX, H_NONE, 0, -s->disp);
    }
    emit_jmp(e, s->resume);
}

/* TEST CL, align - 1, or the same of RCX + disp. */
static void align_check(JitCtx *x, JitStub *s, unsigned align, int32_t disp)
{
    unsigned r = H_CX;

    if (disp & (int32_t)(align - 1)) {
        r = H_DX;
        emit_lea(&x->e, false, r, H_CX, H_NONE, 0, disp);
    }
    emit_rr(&x->e, &(Op){ .opcode = 0xf6, .imm = align - 1, .imm_len = 1 }, 0, r);
    jit_stub_jcc(x, s, CC_NZ);
    x->mem[x->index].aligned = (uint8_t)align;
}

JitStub *jit_mem(JitCtx *x, const JitWant *w, int32_t *disp)
{
    JitAccess *m = &x->mem[x->index];
    JitStub *s;

    *disp = 0;
    if (mem_follows(x, w)) {
        *disp = m->off + lead_disp(x, &x->mem[m->leader]);
        return probe_follow(x, w, m, *disp);
    }
    jit_flags_clobber(x, x->live[x->index]);
    if (m->leads && access_fits(m, w)) {
        s = probe_lead(x, w, m);
        *disp = lead_disp(x, m);
    } else if (is_stack(x, w->ea, 0)) {
        s = jit_stub(x, w->kind);
        probe_stack(x, s, w->ea, 0, (int32_t)w->size, w->access & MEM_WRITE);
    } else {
        s = jit_stub(x, w->kind);
        jit_ea(x, w->ea);
        jit_probe(x, s, w->ea, w->size, w->access);
    }
    if (w->align > 1) {
        /* In a page the host's address is aligned as the guest's is. */
        align_check(x, s, w->align, *disp);
    }
    return s;
}

/* RDX = RCX; MOV RCX, [code map]; JRCXZ over; JMP stub: EFLAGS stay as they are. */
static JitStub *store_check_neutral(JitCtx *x)
{
    Emit *e = &x->e;
    JitStub *s;

    emit_mov_rr(e, H_DX, H_CX);
    emit_ld(e, H_CX, H_AX, 0);
    e8(e, 0xe3);
    e8(e, 5);
    s = jit_stub(x, STUB_CODE_HIT);
    s->rel[s->nrel++] = emit_jmp(e, NULL);
    s->neutral = true;
    return s;
}

void jit_store_check(JitCtx *x, unsigned size, int32_t disp)
{
    Emit *e = &x->e;
    JitStub *s;

    if (jit_live_after(x) && x->s.flags == FLAGS_HOST) {
        s = store_check_neutral(x);
    } else {
        jit_flags_clobber(x, jit_live_after(x));
        emit_alu_mem_imm8(e, true, 7, H_AX, 0, 0);
        s = jit_stub(x, STUB_CODE_HIT);
        jit_stub_jcc(x, s, CC_NZ);
    }
    s->size = (uint8_t)size;
    s->disp = disp;
}

_Static_assert(sizeof(TlbEntry) == 32, "the probe shifts by the size of two entries");
