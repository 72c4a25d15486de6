/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions that meet a missing page and are started again when it is there: at the fault all
 * registers, RSP too, are as before (of repeated ones: as far as it came), nothing was stored across the
 * page's end, and the result is that of a run without a fault.
 */
#include "faults.h"

static u64 *pte, present;
static u64 want_arena[sizeof(arena) / 8];

/* ---- Single instructions ---- */

SNIPPET(pop_rsp16, "popq 16(%rsp)");
SNIPPET(pop_rsp_index, "popq 8(%rsp, %rcx, 8)");
SNIPPET(pop_mem, "popq (%rsi)");
SNIPPET(pop_mem16, "popw (%rsi)");
SNIPPET(pop_rax, "pop %rax");
SNIPPET(pop_rsp, "pop %rsp");
SNIPPET(push_mem, "pushq (%rsi)");
SNIPPET(push_rax, "push %rax");
SNIPPET(push_rsp, "push %rsp");
SNIPPET(push_imm, "pushq $5");
SNIPPET(push_ax, "push %ax");
SNIPPET(push_flags, "pushfq");
SNIPPET(pop_flags, "popfq");
SNIPPET(call_near, "call 1f; 1:");
SNIPPET(call_mem, "call *(%rsi); 1: .globl call_mem_to\ncall_mem_to:");
SNIPPET(jmp_mem, "jmp *(%rsi); ud2; .globl jmp_mem_to\njmp_mem_to:");
SNIPPET(ret_near, "ret; ud2; .globl ret_near_to\nret_near_to:");
SNIPPET(ret_imm, "ret $24; ud2; .globl ret_imm_to\nret_imm_to:");
SNIPPET(leave_frame, "leave");
SNIPPET(enter_0, "enter $32, $0");
SNIPPET(enter_3, "enter $32, $3");
SNIPPET(load, "mov (%rsi), %rax");
SNIPPET(load_sign, "movslq (%rsi), %rax");
SNIPPET(store, "mov %rax, (%rsi)");
SNIPPET(store_imm, "movq $-2, (%rsi)");
SNIPPET(add_to, "add %rax, (%rsi)");
SNIPPET(adc_to, "adc %rax, (%rsi)");
SNIPPET(add_from, "add (%rsi), %rax");
SNIPPET(sbb_from, "sbb (%rsi), %eax");
SNIPPET(cmp_mem, "cmp %rax, (%rsi)");
SNIPPET(inc_mem, "incq (%rsi)");
SNIPPET(neg_mem, "negl (%rsi)");
SNIPPET(not_mem, "notl (%rsi)");
SNIPPET(lock_add, "lock add %rax, (%rsi)");
SNIPPET(xadd_mem, "xadd %rax, (%rsi)");
SNIPPET(xchg_mem, "xchg %rax, (%rsi)");
SNIPPET(cmpxchg_mem, "cmpxchg %rcx, (%rsi)");
SNIPPET(cmpxchg8b_mem, "cmpxchg8b (%rsi)");
SNIPPET(shl_mem, "shlq %cl, (%rsi)");
SNIPPET(rcr_mem, "rcrl $3, (%rsi)");
SNIPPET(shld_mem, "shld $5, %rax, (%rsi)");
SNIPPET(bts_mem, "bts %rcx, (%rsi)");
SNIPPET(mul_mem, "mulq (%rsi)");
SNIPPET(imul_mem, "imul $7, (%rsi), %rax");
SNIPPET(div_mem, "divq (%rsi)");
SNIPPET(setc_mem, "setc (%rsi)");
SNIPPET(cmov_mem, "cmovc (%rsi), %eax");
SNIPPET(bsf_mem, "bsf (%rsi), %rax");
SNIPPET(xlat_mem, "mov %rsi, %rbx; mov $0, %al; xlat");
SNIPPET(movups_store, "movq %rax, %xmm1; movups %xmm1, (%rsi)");
SNIPPET(movups_load, "movups (%rsi), %xmm1; movq %xmm1, %rax");
SNIPPET(fild_fistp, "fninit; fildll (%rsi); fnstsw %ax; fistpll (%rdi)");
SNIPPET(fistp_mem, "fninit; fld1; fld1; fistpll (%rsi); fnstsw %ax");
SNIPPET(fstpt_mem, "fninit; fldpi; fstpt (%rsi); fnstsw %ax");
SNIPPET(fnstcw_mem, "fninit; fnstcw (%rsi)");
SNIPPET(cdq_movs, "movsq");
SNIPPET(lods_mem, "lodsl");
SNIPPET(iret_frame, "iretq; ud2; .globl iret_frame_to\niret_frame_to:");
SNIPPET(lret_frame, "lretq; ud2; .globl lret_frame_to\nlret_frame_to:");
extern u8 call_mem_to[], jmp_mem_to[], ret_near_to[], ret_imm_to[], iret_frame_to[], lret_frame_to[];

typedef struct One {
    const char *name;
    const u8 *code;
    u8 write;       /* 2: the fault is a write */
    u8 size;        /* of the access that faults, at RSI; 0: by RSP or RBP, at from */
    int rsp, rbp;   /* from MIDDLE; 0: elsewhere */
    u64 fault;      /* from MIDDLE */
    const u8 *to;   /* an address that lies at MIDDLE */
    bool changed;   /* instructions before the one that faults change registers */
} One;

#define AT_RSI(n, w, sz, to, changed) { #n, n##_code, w, sz, 0, 0, 0, to, changed }
#define AT_SP(n, w, rsp, rbp, fault, to) { #n, n##_code, w, 0, rsp, rbp, fault, to, false }
static const One ones[] = {
    AT_SP(pop_rsp16, 2, -24, 0, 0, NULL), AT_SP(pop_rsp_index, 2, -40, 0, 0, NULL),
    AT_RSI(pop_mem, 2, 8, NULL, false), AT_RSI(pop_mem16, 2, 2, NULL, false), AT_RSI(push_mem, 0, 8, NULL, false),
    { "pop_rax", pop_rax_code, 0, 0, 64, 0, 64, NULL, false }, { "pop_rsp", pop_rsp_code, 0, 0, 64, 0, 64, NULL, false },
    AT_SP(push_rax, 2, 4096, 0, 4088, NULL), AT_SP(push_rsp, 2, 4096, 0, 4088, NULL),
    AT_SP(push_imm, 2, 4096, 0, 4088, NULL), AT_SP(push_ax, 2, 4096, 0, 4094, NULL),
    AT_SP(push_flags, 2, 4096, 0, 4088, NULL), AT_SP(call_near, 2, 4096, 0, 4088, NULL),
    AT_SP(pop_flags, 0, 64, 0, 64, NULL), AT_SP(ret_near, 0, 0x1000 - 16, 0, 0xff0, ret_near_to),
    AT_SP(ret_imm, 0, 128, 0, 128, ret_imm_to), AT_SP(leave_frame, 0, -64, 32, 32, NULL),
    AT_SP(enter_0, 2, 4096, 0, 4088, NULL), AT_SP(enter_3, 0, 4096 + 128, 64, 56, NULL),
    AT_SP(iret_frame, 0, 64, 0, 64, iret_frame_to), AT_SP(lret_frame, 0, 64, 0, 64, lret_frame_to),
    AT_RSI(call_mem, 0, 8, call_mem_to, false), AT_RSI(jmp_mem, 0, 8, jmp_mem_to, false),
    AT_RSI(load, 0, 8, NULL, false), AT_RSI(load_sign, 0, 4, NULL, false), AT_RSI(store, 2, 8, NULL, false),
    AT_RSI(store_imm, 2, 8, NULL, false), AT_RSI(add_to, 2, 8, NULL, false), AT_RSI(adc_to, 2, 8, NULL, false),
    AT_RSI(add_from, 0, 8, NULL, false), AT_RSI(sbb_from, 0, 4, NULL, false), AT_RSI(cmp_mem, 0, 8, NULL, false),
    AT_RSI(inc_mem, 2, 8, NULL, false), AT_RSI(neg_mem, 2, 4, NULL, false), AT_RSI(not_mem, 2, 4, NULL, false),
    AT_RSI(lock_add, 2, 8, NULL, false), AT_RSI(xadd_mem, 2, 8, NULL, false), AT_RSI(xchg_mem, 2, 8, NULL, false),
    AT_RSI(cmpxchg_mem, 2, 8, NULL, false), AT_RSI(cmpxchg8b_mem, 2, 8, NULL, false), AT_RSI(shl_mem, 2, 8, NULL, false),
    AT_RSI(rcr_mem, 2, 4, NULL, false), AT_RSI(shld_mem, 2, 8, NULL, false), AT_RSI(bts_mem, 2, 8, NULL, false),
    AT_RSI(mul_mem, 0, 8, NULL, false), AT_RSI(imul_mem, 0, 8, NULL, false), AT_RSI(div_mem, 0, 8, NULL, false),
    AT_RSI(setc_mem, 2, 1, NULL, false), AT_RSI(cmov_mem, 0, 4, NULL, false), AT_RSI(bsf_mem, 0, 8, NULL, false),
    AT_RSI(xlat_mem, 0, 1, NULL, true), AT_RSI(movups_store, 2, 16, NULL, false), AT_RSI(movups_load, 0, 16, NULL, false),
    AT_RSI(fild_fistp, 0, 8, NULL, false), AT_RSI(fistp_mem, 2, 8, NULL, false), AT_RSI(fstpt_mem, 2, 10, NULL, false),
    AT_RSI(fnstcw_mem, 2, 2, NULL, false), AT_RSI(cdq_movs, 0, 8, NULL, false), AT_RSI(lods_mem, 0, 4, NULL, false),
};

static void put64(u8 *at, u64 v)
{
    *(volatile u64 *)at = v;
}

/* Registers and memory of a case; below: bytes of the access that lie before the missing page. */
static Regs one_begin(const One *o, unsigned below)
{
    static u8 elsewhere[4096] __attribute__((aligned(16)));
    u64 middle = (u64)MIDDLE, sp = (u64)elsewhere + 2048;
    u64 at = o->size ? middle - below : middle + o->fault;
    Regs r = { .rax = 0x1234567890abcdef, .rcx = 3, .rdx = 1, .rbx = 0x77, .rsi = at, .rdi = (u64)UPPER + 64,
               .r8 = 8, .r15 = 15, .rflags = 2 | (ARITH & ~0x800ull) };

    arena_fill(false);
    r.rsp = o->rsp ? middle + (u64)(long)o->rsp : sp;
    r.rbp = o->rbp ? middle + (u64)(long)o->rbp : sp + 64;
    if (o->to) {
        put64((u8 *)at, (u64)o->to);
        put64((u8 *)at + 8, 8); /* CS, for far returns */
        put64((u8 *)at + 16, 2);
        put64((u8 *)at + 24, r.rsp);
        put64((u8 *)at + 32, 0x10);
    } else if (o->code == pop_flags_code) {
        put64((u8 *)at, 0x47);
    }
    return r;
}

/* Nothing was stored by half, before the missing page. */
static void check_untouched(const One *o)
{
    static u8 now[64];

    for (unsigned i = 0; i < 64; i++) {
        now[i] = arena[4096 - 64 + i];
    }
    arena_fill(false);
    for (unsigned i = 0; i < 64; i++) {
        if (now[i] != arena[4096 - 64 + i]) {
            check_of("stored by half", o->name, now[i], arena[4096 - 64 + i]);
            return;
        }
    }
}

static void check_same(const char *name, const Regs *got, const Regs *want)
{
    const char *diff = regs_differ(want, got);

    if (diff) {
        check_of(diff, name, 1, 0);
    }
    for (unsigned i = 0; i < sizeof(arena) / 8; i++) {
        if (((u64 *)arena)[i] != want_arena[i]) {
            check_of("memory after the restart", name, ((u64 *)arena)[i], want_arena[i]);
            return;
        }
    }
}

static void arena_remember(void)
{
    for (unsigned i = 0; i < sizeof(arena) / 8; i++) {
        want_arena[i] = ((u64 *)arena)[i];
    }
}

static void take_away(void)
{
    *pte = 0;
    tlb_flush();
}

static void one_case(const One *o, unsigned below)
{
    Regs begin = one_begin(o, below), want = begin, got = begin;
    const char *diff;

    run_at(o->code, &want);
    check_of("fault with the page there", o->name, (u64)seen.vector, ~0ull);
    arena_remember();
    one_begin(o, below);
    take_away();
    repair_with(pte, present);
    run_at(o->code, &got);
    check_of("page faults", o->name, seen.count, 1);
    check_of("error code", o->name, seen.regs.error, o->write);
    check_of("CR2", o->name, seen.cr2, (u64)MIDDLE + o->fault);
    diff = o->changed ? NULL : regs_differ(&begin, &seen.regs);
    if (diff) {
        check_of(diff, o->name, 0, 1);
    }
    check_same(o->name, &got, &want);
    if (o->size && o->write && !o->to) {
        got = one_begin(o, below);
        take_away();
        run_at(o->code, &got);
        *pte = present;
        tlb_flush();
        check_untouched(o);
    }
}

static void single(void)
{
    for (unsigned k = 0; k < sizeof(ones) / sizeof(ones[0]); k++) {
        for (unsigned n = 0; n < ROUNDS; n++) {
            one_case(&ones[k], ones[k].size ? n % ones[k].size : 0);
        }
    }
}

/* ---- String instructions ---- */

#define STRINGS(op) \
    SNIPPET(op##1, "rep " #op "b"); SNIPPET(op##2, "rep " #op "w"); SNIPPET(op##4, "rep " #op "l"); \
    SNIPPET(op##8, "rep " #op "q"); SNIPPET(single_##op##1, #op "b"); SNIPPET(single_##op##2, #op "w"); \
    SNIPPET(single_##op##4, #op "l"); SNIPPET(single_##op##8, #op "q")
STRINGS(movs);
STRINGS(stos);
STRINGS(lods);
STRINGS(scas);
STRINGS(cmps);
SNIPPET(ins1, "rep insb");
SNIPPET(ins2, "rep insw");
SNIPPET(ins4, "rep insl");
SNIPPET(outs1, "rep outsb");
SNIPPET(outs2, "rep outsw");
SNIPPET(outs4, "rep outsl");

enum { USES_RSI = 1, USES_RDI = 2, EQUAL = 4 };
typedef struct String {
    const char *name;
    const u8 *code[4], *single[4];
    u8 uses, write;
} String;
#define FOUR(op) { op##1_code, op##2_code, op##4_code, op##8_code }
static const String strings[] = {
    { "MOVS", FOUR(movs), FOUR(single_movs), USES_RSI | USES_RDI, 2 },
    { "STOS", FOUR(stos), FOUR(single_stos), USES_RDI, 2 },
    { "LODS", FOUR(lods), FOUR(single_lods), USES_RSI, 0 },
    { "SCAS", FOUR(scas), FOUR(single_scas), USES_RDI | EQUAL, 0 },
    { "CMPS", FOUR(cmps), FOUR(single_cmps), USES_RSI | USES_RDI | EQUAL, 0 },
    { "INS", { ins1_code, ins2_code, ins4_code, NULL }, { NULL }, USES_RDI, 2 },
    { "OUTS", { outs1_code, outs2_code, outs4_code, NULL }, { NULL }, USES_RSI, 0 },
};

typedef struct How {
    unsigned size, done; /* of an element; those before the fault */
    bool down, in_source, single, crosses;
} How;

static Regs string_begin(const String *s, const How *h)
{
    static u8 other[4096];
    u64 step = h->down ? -(u64)h->size : h->size;
    u64 next = h->down ? (u64)UPPER - (h->crosses ? 1 : h->size) : (u64)MIDDLE - (h->crosses ? 1 : 0);
    u64 at = next - h->done * step, away = (u64)other + 2048;
    Regs r = { .rax = 0, .rdx = 0x80, .rcx = h->done + 5, .rsp = (u64)other + 1024, .rbx = 0x5a,
               .rflags = 2 | (h->down ? DF : 0) };

    arena_fill((s->uses & EQUAL) != 0);
    for (unsigned i = 0; i < sizeof(other); i++) {
        other[i] = 0;
    }
    r.rsi = h->in_source ? at : away;
    r.rdi = h->in_source ? away : at;
    return r;
}

static void string_case(const String *s, const How *h)
{
    unsigned index = h->size == 8 ? 3 : h->size / 2;
    const u8 *code = h->single ? s->single[index] : s->code[index];
    Regs begin = string_begin(s, h), want = begin, got, half = begin;
    u64 step = (h->down ? -(u64)h->size : h->size) * h->done;
    u64 how = h->size | h->done << 8 | (u64)h->down << 16 | (u64)h->crosses << 20;
    const char *diff;

    if (!code) {
        return;
    }
    run_at(code, &want);
    arena_remember();
    got = string_begin(s, h);
    take_away();
    repair_with(pte, present);
    run_at(code, &got);
    half.rsi += s->uses & USES_RSI ? step : 0;
    half.rdi += s->uses & USES_RDI ? step : 0;
    half.rcx -= h->done;
    half.rax = seen.regs.rax; /* LODS has loaded it */
    if (h->done && (s->uses & EQUAL)) {
        half.rflags = (half.rflags & DF) | 0x46;
    }
    check_of("page faults", s->name, seen.count, 1);
    check_of("error code", s->name, seen.regs.error, h->in_source ? 0 : s->write);
    check_of("CR2", s->name, seen.cr2,
             h->down ? (u64)UPPER - (h->crosses ? 1 : h->size) : (u64)MIDDLE);
    diff = regs_differ(&half, &seen.regs);
    if (diff) {
        check_of(diff, s->name, how, 0);
    }
    check_same(s->name, &got, &want);
}

static void strings_all(void)
{
    static const u8 dones[] = { 0, 1, 3, 40 };

    for (unsigned k = 0; k < sizeof(strings) / sizeof(strings[0]); k++) {
        for (unsigned n = 0; n < 4 * 2 * 2 * 2 * 2 * sizeof(dones); n++) {
            How h = { .size = 1u << (n & 3), .down = n >> 2 & 1, .in_source = n >> 3 & 1, .crosses = n >> 4 & 1,
                      .single = n >> 5 & 1, .done = dones[n >> 6] };
            u8 uses = strings[k].uses;

            if ((h.crosses && h.size == 1) || (h.single && h.done) || !(uses & (h.in_source ? USES_RSI : USES_RDI))) {
                continue;
            }
            for (unsigned round = 0; round < (h.done > 3 ? 3 : ROUNDS); round++) {
                string_case(&strings[k], &h);
            }
        }
    }
}

void test_main(void)
{
    faults_init();
    pte = pte_of((u64)MIDDLE);
    present = *pte;
    pte_of((u64)arena);
    pte_of((u64)UPPER);
    single();
    strings_all();
}
