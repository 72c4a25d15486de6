/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands: address, TLB probe, and the look after a store whether it hit code.
 *
 * The probe chooses the entry by the first byte's page, subtracts the tag, and wants an offset at which the access
 * fits into a page: so an access into the next page never matches, and tags of entries that must not
 * be used are such that no address of their set does (tlb.h).
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

/* opcode reg, [field of an entry]: of the set at disp, and of the one whose number times 8 is in RAX if not fixed. */
static void op_entry(Emit *e, uint8_t opcode, unsigned reg, bool fixed, int32_t disp, size_t field)
{
    const Op op = { .w = true, .opcode = opcode };

    if (fixed) {
        emit_rm(e, &op, reg, JIT_TLB, disp + (int32_t)field);
    } else {
        emit_rmx(e, &op, reg, JIT_TLB, H_AX, 3, disp + (int32_t)field);
    }
}

/* RAX = number of RCX's set times 8. */
static void probe_index(JitCtx *x)
{
    const unsigned count = TARGET_PAGE_BITS - 3;
    Emit *e = &x->e;

    if (x->j->rorx) {
        emit_rr(e, &(Op){ .vex = true, .map = 3, .pp = 3, .opcode = 0xf0, .imm = count, .imm_len = 1 }, H_AX, H_CX);
    } else {
        emit_mov32_rr(e, H_AX, H_CX);
        emit_shift_imm(e, false, 5, H_AX, count);
    }
    emit_alu_imm(e, false, 4, H_AX, (TLB_SETS - 1) << 3);
}

/* RCX = offset in the page; goes on if it is that of the entry at disp, and the access fits. */
static void entry_try(JitCtx *x, const JitStub *way, JitStub *miss, int32_t disp)
{
    Emit *e = &x->e;

    op_entry(e, 0x2b, H_CX, way->fixed, disp, way->write ? offsetof(TlbEntry, wtag) : offsetof(TlbEntry, rtag));
    emit_alu_imm(e, true, 7, H_CX, (int32_t)TARGET_PAGE_SIZE - way->range + 1);
    jit_stub_jcc(x, miss, CC_NC);
    op_entry(e, 0x03, H_CX, way->fixed, disp, offsetof(TlbEntry, host));
}

/*
 * For size bytes at RCX, which becomes the host's address; the page must be the one ea is in if it is fixed.
 * RAX: number of the set, times 8.
 */
static JitStub *probe_entry(JitCtx *x, JitStub *miss, const Insn *ea, uint32_t size, bool write)
{
    JitStub *way = jit_stub(x, STUB_WAY);

    way->miss = miss;
    way->fixed = jit_is_fixed(ea);
    way->write = write;
    way->range = (uint16_t)size;
    if (way->fixed) {
        way->disp = (int32_t)(TLB_INDEX(ea->disp) * sizeof(TlbEntry));
    } else {
        probe_index(x);
    }
    entry_try(x, way, way, way->disp);
    return way;
}

/* The second entry of the set. */
void jit_stub_way_emit(JitCtx *x, JitStub *s)
{
    const int32_t second = s->disp + (int32_t)sizeof(TlbEntry);
    Emit *e = &x->e;

    jit_stub_begin(x, s);
    op_entry(e, 0x03, H_CX, s->fixed, s->disp, s->write ? offsetof(TlbEntry, wtag) : offsetof(TlbEntry, rtag));
    entry_try(x, s, s->miss, second);
    if (s->entry) {
        emit_alu_imm(e, false, 0, H_AX, sizeof(TlbEntry) / 8);
    } else if (s->write) {
        op_entry(e, 0x8b, H_AX, s->fixed, second, offsetof(TlbEntry, code_map));
    }
    emit_jmp(e, s->resume);
}

void jit_probe(JitCtx *x, JitStub *s, const Insn *ea, unsigned size, unsigned access)
{
    bool write = access & MEM_WRITE;
    JitStub *way = probe_entry(x, s, ea, size, write);

    if (write) {
        op_entry(&x->e, 0x8b, H_AX, way->fixed, way->disp, offsetof(TlbEntry, code_map));
    }
    way->resume = emit_here(&x->e);
}

/* RCX = host address of ea + lo, for the bytes from there to ea + hi - 1; to write, RAX = the code map. */
static void address_probe(JitCtx *x, JitStub *s, const Insn *ea, int32_t lo, int32_t hi, bool write)
{
    Insn low = *ea;

    low.disp += lo;
    jit_ea(x, &low);
    jit_probe(x, s, &low, (unsigned)(hi - lo), write ? MEM_WRITE : MEM_READ);
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
    JitStub *way;

    jit_stub_begin(x, s);
    jit_ea(x, &ea);
    way = probe_entry(x, s->miss, &ea, s->range, s->write);
    way->entry = true;
    way->resume = emit_here(e);
    emit_lea(e, true, H_AX, JIT_TLB, H_AX, 3, 0);
    emit_lea(e, true, H_DX, jit_reg[R_RSP], H_NONE, 0, s->disp);
    emit_alu_imm(e, true, 4, H_DX, (int32_t)TARGET_PAGE_MASK);
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

/* Of a block that tests: the out-of-line probe of an access of a group; it comes back here. */
static JitStub *stub_probe(JitCtx *x, JitStub **miss, StubKind kind)
{
    JitStub *s = jit_stub(x, STUB_PROBE);

    *miss = s->miss = jit_stub(x, kind);
    return s;
}

/* Of a block that tests: MOV RCX, [slot], and out of line if it is empty. EFLAGS that are wanted stay. */
static JitStub *probe_follow_tested(JitCtx *x, const JitWant *w, const JitAccess *m, int32_t disp)
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
    jit_probe(x, s->miss, &m->ea, m->size, m->write ? MEM_WRITE : MEM_READ);
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

/* MOV RCX, [slot]. Touches no flag. */
static JitStub *probe_follow(JitCtx *x, const JitWant *w, JitAccess *m)
{
    bool kept = x->kept_at == x->e.p && x->kept_slot == m->slot;
    Emit *e = &x->e;
    JitStub *s = jit_stub(x, w->kind);

    s->optional = m->used = true;
    if (!kept) {
        emit_ld(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + m->slot));
    }
    if ((w->access & MEM_WRITE) && !(kept && x->kept_map)) {
        emit_ld(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP_MAP + m->slot));
    }
    return s;
}

void jit_mem_keep(JitCtx *x, bool map)
{
    const JitAccess *m = &x->mem[x->index];

    x->kept_at = m->used && !x->tb->tested ? x->e.p : NULL;
    x->kept_slot = m->slot;
    x->kept_map = map;
}

/* From what the slot holds to the leader's address. */
static int32_t lead_disp(const JitAccess *lead)
{
    return -lead->lo;
}

/* The leader's probe; what its followers want goes to their slots. */
static JitStub *probe_lead(JitCtx *x, const JitWant *w, JitAccess *m)
{
    JitStub *miss, *s;
    Emit *e = &x->e;

    s = x->tb->tested ? stub_probe(x, &miss, w->kind) : (miss = jit_stub(x, w->kind));
    if (is_stack(x, &m->ea, m->lo)) {
        probe_stack(x, s, &m->ea, m->lo, m->hi, m->probe_write);
    } else {
        address_probe(x, s, w->ea, m->lo, m->hi, m->probe_write);
    }
    emit_st(e, H_CX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP + m->slot));
    if (m->leads_writes) {
        emit_st(e, H_AX, JIT_CPU, JIT_OFF_AREA(AREA_GROUP_MAP + m->slot));
    }
    if (x->tb->tested) {
        s->disp = lead_disp(m);
        s->resume = emit_here(e);
    }
    m->done = m->used = true;
    return miss;
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
        *disp = m->off + lead_disp(&x->mem[m->leader]);
        return x->tb->tested ? probe_follow_tested(x, w, m, *disp) : probe_follow(x, w, m);
    }
    jit_flags_clobber(x, x->live[x->index]);
    if (m->leads && access_fits(m, w)) {
        s = probe_lead(x, w, m);
        *disp = lead_disp(m);
    } else if (is_stack(x, w->ea, 0)) {
        s = jit_stub(x, w->kind);
        probe_stack(x, s, w->ea, 0, (int32_t)w->size, w->access & MEM_WRITE);
    } else {
        s = jit_stub(x, w->kind);
        address_probe(x, s, w->ea, 0, (int32_t)w->size, w->access & MEM_WRITE);
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

bool jit_store_check(JitCtx *x, unsigned size, int32_t disp)
{
    bool neutral = jit_live_after(x) && x->s.flags == FLAGS_HOST;
    Emit *e = &x->e;
    JitStub *s;

    if (neutral) {
        s = store_check_neutral(x);
    } else {
        jit_flags_clobber(x, jit_live_after(x));
        emit_alu_mem_imm8(e, true, 7, H_AX, 0, 0);
        s = jit_stub(x, STUB_CODE_HIT);
        jit_stub_jcc(x, s, CC_NZ);
    }
    s->size = (uint8_t)size;
    s->disp = disp;
    return !neutral;
}

_Static_assert(sizeof(TlbEntry) == 32, "the index is scaled by the size of two entries, 8 times 8");
