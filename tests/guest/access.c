/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses that an instruction may not have: not aligned, not canonical, and code over a page's end of
 * which the second page is missing, not executable, or another one. The stack over a page's end.
 */
#include "faults.h"

#define NON_CANONICAL 0x0000800000000000ull

static bool avx;

/* ---- Alignment (SDM 1, 4.1.1 and 2A, table 2-21) ---- */

SNIPPET(movaps_load, "movaps (%rsi), %xmm1");
SNIPPET(movaps_store, "movaps %xmm1, (%rsi)");
SNIPPET(movapd_load, "movapd (%rsi), %xmm1");
SNIPPET(movdqa_load, "movdqa (%rsi), %xmm1");
SNIPPET(movdqa_store, "movdqa %xmm1, (%rsi)");
SNIPPET(movntps, "movntps %xmm1, (%rsi)");
SNIPPET(movntdq, "movntdq %xmm1, (%rsi)");
SNIPPET(addps, "addps (%rsi), %xmm1");
SNIPPET(andpd, "andpd (%rsi), %xmm1");
SNIPPET(cmpps, "cmpps $1, (%rsi), %xmm1");
SNIPPET(shufps, "shufps $1, (%rsi), %xmm1");
SNIPPET(sqrtps, "sqrtps (%rsi), %xmm1");
SNIPPET(cvtdq2ps, "cvtdq2ps (%rsi), %xmm1");
SNIPPET(paddb, "paddb (%rsi), %xmm1");
SNIPPET(pshufd, "pshufd $1, (%rsi), %xmm1");
SNIPPET(pxor, "pxor (%rsi), %xmm1");
SNIPPET(cx16, "lock cmpxchg16b (%rsi)");
SNIPPET(fxsave, "fxsave (%rsi)");
SNIPPET(fxrstor, "fxrstor (%rsi); fninit; pushq $0x1f80; ldmxcsr (%rsp); pop %rax");
SNIPPET(ldmxcsr, "ldmxcsr (%rsi); pushq $0x1f80; ldmxcsr (%rsp); pop %rax");
SNIPPET(movups, "movups (%rsi), %xmm1; movups %xmm1, (%rsi)");
SNIPPET(movdqu, "movdqu (%rsi), %xmm1; movdqu %xmm1, (%rsi)");
SNIPPET(movsd, "movsd (%rsi), %xmm1; movss (%rsi), %xmm1; movq (%rsi), %xmm1; movlps (%rsi), %xmm1");
SNIPPET(addsd, "addsd (%rsi), %xmm1; cvtps2pd (%rsi), %xmm1; cvtdq2pd (%rsi), %xmm1");
SNIPPET(mmx, "movq (%rsi), %mm1; paddb (%rsi), %mm1; movq %mm1, (%rsi); emms");
SNIPPET(fld, "fninit; fldl (%rsi); fldt (%rsi); fstpt (%rsi); fninit");
SNIPPET(add64, "add %rax, (%rsi); lock add %rax, (%rsi); cmpxchg8b (%rsi)");
SNIPPET(xsave, "xsave (%rsi)");
SNIPPET(vmovaps, "vmovaps (%rsi), %xmm1");
SNIPPET(vmovaps_y, "vmovaps %ymm1, (%rsi)");
SNIPPET(vmovdqa_y, "vmovdqa (%rsi), %ymm1");
SNIPPET(vmovntps_y, "vmovntps %ymm1, (%rsi)");
SNIPPET(vaddps, "vaddps (%rsi), %xmm1, %xmm1; vaddps (%rsi), %ymm1, %ymm1; vpaddb (%rsi), %xmm1, %xmm1");
SNIPPET(vmovups, "vmovups (%rsi), %ymm1; vmovups %ymm1, (%rsi); vpshufd $1, (%rsi), %xmm1");

typedef struct Alignment {
    const char *name;
    const u8 *code;
    u8 size;
    bool avx;
} Alignment;
#define ALIGNED(n, size, ...) { #n, n##_code, size, __VA_ARGS__ }
static const Alignment alignments[] = {
    ALIGNED(movaps_load, 16, 0), ALIGNED(movaps_store, 16, 0), ALIGNED(movapd_load, 16, 0), ALIGNED(movdqa_load, 16, 0),
    ALIGNED(movdqa_store, 16, 0), ALIGNED(movntps, 16, 0), ALIGNED(movntdq, 16, 0), ALIGNED(addps, 16, 0),
    ALIGNED(andpd, 16, 0), ALIGNED(cmpps, 16, 0), ALIGNED(shufps, 16, 0), ALIGNED(sqrtps, 16, 0),
    ALIGNED(cvtdq2ps, 16, 0), ALIGNED(paddb, 16, 0), ALIGNED(pshufd, 16, 0), ALIGNED(pxor, 16, 0),
    ALIGNED(cx16, 16, 0), ALIGNED(fxsave, 16, 0), ALIGNED(fxrstor, 16, 0), ALIGNED(ldmxcsr, 1, 0), ALIGNED(movups, 1, 0),
    ALIGNED(movdqu, 1, 0), ALIGNED(movsd, 1, 0), ALIGNED(addsd, 1, 0), ALIGNED(mmx, 1, 0), ALIGNED(fld, 1, 0),
    ALIGNED(add64, 1, 0), ALIGNED(xsave, 64, 1), ALIGNED(vmovaps, 16, 1), ALIGNED(vmovaps_y, 32, 1),
    ALIGNED(vmovdqa_y, 32, 1), ALIGNED(vmovntps_y, 32, 1), ALIGNED(vaddps, 1, 1), ALIGNED(vmovups, 1, 1),
};

static Regs plain_regs(void)
{
    static u8 stack[4096] __attribute__((aligned(16)));

    return (Regs){ .rax = 7, .rcx = 3, .rdx = 0, .rbx = 0x55, .rsi = (u64)arena + 256, .rdi = (u64)arena + 1024,
                   .rbp = (u64)stack + 1024, .rsp = (u64)stack + 2048, .r15 = 15, .rflags = 2 | ARITH };
}

static void alignment(void)
{
    for (unsigned k = 0; k < sizeof(alignments) / sizeof(alignments[0]); k++) {
        const Alignment *a = &alignments[k];

        if (a->avx && !avx) {
            continue;
        }
        for (unsigned n = 0; n < 256; n++) {
            unsigned off = n & 63;
            Regs r = plain_regs(), begin;
            bool bad;

            arena_fill(true);
            r.rsi += off + (n & 64 ? 4096 - 256 - 32 : 0); /* some over a page's end */
            bad = r.rsi % a->size != 0;
            begin = r;
            run_at(a->code, &r);
            check_of("vector for this alignment", a->name, (u64)seen.vector, bad ? 13 : ~0ull);
            if (bad) {
                check_of("error code", a->name, seen.regs.error, 0);
                check_of("registers at #GP", a->name, regs_differ(&begin, &seen.regs) != NULL, 0);
            }
        }
    }
}

/* ---- Canonical addresses ---- */

SNIPPET(load, "mov (%rsi), %rax");
SNIPPET(load8, "movzbl (%rsi), %eax");
SNIPPET(store, "mov %rax, (%rsi)");
SNIPPET(store_imm, "movl $5, (%rsi)");
SNIPPET(rmw, "add %rax, (%rsi)");
SNIPPET(alu, "cmp (%rsi), %rax");
SNIPPET(lock_inc, "lock incl (%rsi)");
SNIPPET(xchg, "xchg %rax, (%rsi)");
SNIPPET(cmpxchg, "lock cmpxchg %rcx, (%rsi)");
SNIPPET(indexed, "mov (%rcx, %rsi), %rax");
SNIPPET(absolute, "movabs 0x8000000000000000, %al");
SNIPPET(push_mem, "pushq (%rsi)");
SNIPPET(pop_mem, "popq (%rsi)");
SNIPPET(call_mem, "call *(%rsi)");
SNIPPET(jmp_mem, "jmp *(%rsi)");
SNIPPET(jmp_to, "jmp *%rsi");
SNIPPET(call_to, "call *%rsi");
SNIPPET(bt, "bt %rax, (%rsi)");
SNIPPET(movs_from, "movsb");
SNIPPET(lods, "rep lodsq");
SNIPPET(stos, "mov %rsi, %rdi; rep stosq");
SNIPPET(scas, "mov %rsi, %rdi; scasb");
SNIPPET(sse, "movups (%rsi), %xmm1");
SNIPPET(sse_store, "movlps %xmm1, (%rsi)");
SNIPPET(x87, "fldl (%rsi)");
SNIPPET(x87_store, "fnstcw (%rsi)");
SNIPPET(save, "fxsave (%rsi)");
SNIPPET(clflush, "clflush (%rsi)");
SNIPPET(table, "sgdt (%rsi)");
/* Overrides by DS and SS mean nothing in 64-bit mode (SDM 1, 3.4.2.1). */
SNIPPET(by_ds, "mov %ds:(%rbp), %rax");
SNIPPET(by_ss, "mov %ss:(%rsi), %rax");
SNIPPET(by_rbp, "mov (%rbp), %rax");
SNIPPET(by_rbp_index, "addl $1, 8(%rbp, %rcx, 4)");
SNIPPET(by_rsp, "mov (%rsp), %rax");
SNIPPET(sse_rbp, "movups (%rbp), %xmm1");
SNIPPET(x87_rsp, "fldl (%rsp)");
SNIPPET(push, "push %rax");
SNIPPET(push_imm, "pushq $5");
SNIPPET(pop, "pop %rax");
SNIPPET(pushf, "pushfq");
SNIPPET(popf, "popfq");
SNIPPET(call, "call 1f; 1:");
SNIPPET(ret, "ret");
SNIPPET(leave, "leave");
SNIPPET(enter, "enter $16, $0");
SNIPPET(iret, "iretq");
SNIPPET(lret, "lretq");
SNIPPET(nothing, "lea (%rsi), %rax; invlpg (%rsi); prefetcht0 (%rsi); nopl (%rsi)");

typedef struct Canonical {
    const char *name;
    const u8 *code;
    u8 base;   /* the register that is not canonical: s RSI, b RBP, p RSP */
    int vector;
    bool moves; /* registers change before the fault */
} Canonical;
#define BY(n, base, vector) { #n, n##_code, base, vector, false }
#define MOVES(n, base, vector) { #n, n##_code, base, vector, true }
static const Canonical canonical[] = {
    BY(load, 's', 13), BY(load8, 's', 13), BY(store, 's', 13), BY(store_imm, 's', 13), BY(rmw, 's', 13),
    BY(alu, 's', 13), BY(lock_inc, 's', 13), BY(xchg, 's', 13), BY(cmpxchg, 's', 13),
    BY(indexed, 's', 13), BY(absolute, 's', 13), BY(push_mem, 's', 13), BY(pop_mem, 's', 13), BY(call_mem, 's', 13),
    BY(jmp_mem, 's', 13), BY(jmp_to, 's', 13), BY(call_to, 's', 13), BY(bt, 's', 13), BY(movs_from, 's', 13),
    BY(lods, 's', 13), MOVES(stos, 's', 13), MOVES(scas, 's', 13), BY(sse, 's', 13), BY(sse_store, 's', 13),
    BY(x87, 's', 13), BY(x87_store, 's', 13), BY(save, 's', 13), BY(clflush, 's', 13), BY(table, 's', 13),
    BY(by_ds, 'b', 12), BY(by_ss, 's', 13), BY(by_rbp, 'b', 12), BY(by_rbp_index, 'b', 12), BY(by_rsp, 'p', 12),
    BY(sse_rbp, 'b', 12), BY(x87_rsp, 'p', 12), BY(push, 'p', 12), BY(push_imm, 'p', 12), BY(pop, 'p', 12),
    BY(pushf, 'p', 12), BY(popf, 'p', 12), BY(call, 'p', 12), BY(ret, 'p', 12), BY(leave, 'b', 12),
    BY(enter, 'p', 12), BY(iret, 'p', 12), BY(lret, 'p', 12), MOVES(nothing, 's', -1),
};

static void canonical_one(const Canonical *c, u64 address)
{
    Regs r = plain_regs(), begin;

    arena_fill(true);
    *(c->base == 's' ? &r.rsi : c->base == 'b' ? &r.rbp : &r.rsp) = address;
    begin = r;
    run_at(c->code, &r);
    check_of("vector of an address that is not canonical", c->name, (u64)seen.vector, (u64)(long)c->vector);
    if (seen.vector == c->vector && c->vector >= 0) {
        const char *diff = c->moves ? NULL : regs_differ(&begin, &seen.regs);

        check_of("error code", c->name, seen.regs.error, 0);
        if (diff) {
            check_of(diff, c->name, 1, 0);
        }
    }
}

static void canonical_all(void)
{
    /* The lowest and highest, far from any page there is, and the middle. */
    static const u64 addresses[] = { NON_CANONICAL + 64, 0xffff7fffffffff80, 0x8000000000000000, 0x00f0000000001000 };

    for (unsigned k = 0; k < sizeof(canonical) / sizeof(canonical[0]); k++) {
        for (unsigned n = 0; n < ROUNDS * 4; n++) {
            canonical_one(&canonical[k], addresses[n & 3]);
        }
    }
}

/* The last page below the hole is there: an access that begins in it and ends in the hole is none. */
static void into_the_hole(void)
{
    static const struct { const char *name; const u8 *code; } over[] = {
        { "load", load_code }, { "store", store_code }, { "rmw", rmw_code }, { "sse", sse_code }, { "x87", x87_code },
    };
    u64 *pml4 = (u64 *)(read_cr3() & ~0xfffull), *pdpt = (u64 *)(pml4[0] & ~0xfffull);

    pml4[255] = pml4[0];
    pdpt[511] = pdpt[0];
    ((u64 *)(pdpt[0] & ~0xfffull))[511] = (u64)arena >> 21 << 21 | 0x87;
    tlb_flush();
    for (unsigned k = 0; k < sizeof(over) / sizeof(over[0]); k++) {
        for (unsigned n = 0; n < ROUNDS; n++) {
            Regs r = plain_regs();

            r.rsi = NON_CANONICAL - 4;
            run_at(over[k].code, &r);
            check_of("vector of an access into the hole", over[k].name, (u64)seen.vector, 13);
        }
    }
    pml4[255] = 0;
    pdpt[511] = 0;
    tlb_flush();
}

/* ---- Code over a page's end ---- */

typedef struct Split {
    const char *name;
    u8 len, bytes[15];
} Split;
static const Split splits[] = {
    { "MOV imm64", 10, { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "MOV imm32", 5, { 0xb8, 1, 2, 3, 4 } },
    { "PUSH, POP", 2, { 0x50, 0x58 } },
    { "ADD disp32, imm32", 10, { 0x81, 0x86, 0x00, 0x01, 0, 0, 9, 0, 0, 0 } },
    { "MOVUPS disp32", 7, { 0x0f, 0x10, 0x8e, 0, 1, 0, 0 } },
    { "LOCK XADD", 5, { 0xf0, 0x48, 0x0f, 0xc1, 0x06 } },
    { "JMP to what follows", 5, { 0xe9, 0, 0, 0, 0 } },
    { "JZ to what follows", 6, { 0x0f, 0x84, 0, 0, 0, 0 } },
    { "15 bytes", 15, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 } },
};

/* At from: its bytes, and a way back. */
static void put_split(const Split *s, u8 *from)
{
    static const u8 back[] = { 0xff, 0x24, 0x25 };
    extern void *snippet_back;
    u64 at = (u64)&snippet_back;

    for (unsigned i = 0; i < s->len; i++) {
        from[i] = s->bytes[i];
    }
    from += s->len;
    for (unsigned i = 0; i < 3; i++) {
        from[i] = back[i];
    }
    for (unsigned i = 0; i < 4; i++) {
        from[3 + i] = (u8)(at >> 8 * i);
    }
}

/* before: bytes in the first page, len of them: the fault is of the instruction that follows. */
static void split_one(const Split *s, unsigned before, u64 *pte, u64 taken, u64 error)
{
    u8 *from = MIDDLE - before;
    Regs r = plain_regs(), want;
    u64 good = *pte;
    u64 rip = before == s->len || (s->len == 2 && before == 1) ? (u64)MIDDLE : (u64)from;

    arena_fill(true);
    put_split(s, from);
    want = r;
    run_at(from, &want);
    check_of("vector of code over a page's end", s->name, (u64)seen.vector, ~0ull);
    arena_fill(true);
    put_split(s, from);
    *pte = taken;
    tlb_flush();
    repair_with(pte, good);
    run_at(from, &r);
    check_of("faults without the second page", s->name, seen.count, 1);
    check_of("vector", s->name, (u64)seen.vector, 14);
    check_of("error code", s->name, seen.regs.error, error);
    check_of("CR2", s->name, seen.cr2, (u64)MIDDLE);
    check_of("RIP", s->name, seen.regs.rip, rip);
    check_of("registers", s->name, regs_differ(&want, &r) != NULL, 0);
    *pte = good;
    tlb_flush();
}

static void split_code(void)
{
    u64 *pte = pte_of((u64)MIDDLE), good = *pte;

    pte_of((u64)arena);
    for (unsigned k = 0; k < sizeof(splits) / sizeof(splits[0]); k++) {
        for (unsigned before = 1; before <= splits[k].len; before++) {
            for (unsigned n = 0; n < ROUNDS; n++) {
                split_one(&splits[k], before, pte, 0, 0x10);
                split_one(&splits[k], before, pte, good | 1ull << 63, 0x11);
            }
        }
    }
}

/* Behind the same address there is another second page: what was kept of the instruction is stale. */
static void split_changes(void)
{
    u64 *pte = pte_of((u64)MIDDLE), good = *pte, other = *pte_of((u64)UPPER);

    arena_fill(true);
    put_split(&splits[0], UPPER - 5);
    put_split(&splits[0], MIDDLE - 5);
    for (unsigned i = 0; i < 5; i++) {
        UPPER[i] = 0x77; /* the upper half of the immediate */
    }
    for (unsigned n = 0; n < 4 * ROUNDS; n++) {
        Regs r = plain_regs();

        *pte = n / 20 & 1 ? other : good;
        tlb_flush();
        run_at(MIDDLE - 5, &r);
        check_eq("immediate in the other page", r.rax,
                 n / 20 & 1 ? 0x7777777777030201 : 0x0807060504030201);
    }
    *pte = good;
    tlb_flush();
}

/* ---- The stack over a page's end ---- */

SNIPPET(stack_use, "push %rax; push %rcx; mov 8(%rsp), %rdx; pop %rbx; pop %r8;"
                   "mov %rax, -300(%rsp); mov -300(%rsp), %r9; mov %rcx, 90(%rsp); mov 90(%rsp), %r10;"
                   "mov %rsp, %r11; sub $2000, %rsp; push %rax; pop %r12; mov %r11, %rsp; mov -8(%rsp), %r13");
SNIPPET(pop_then_push, "pop %rcx; mov %rsp, %rbx; mov %rbx, %rsp; push %rax");

/* What is behind the 8 bytes at lin, while MIDDLE leads to UPPER's page. */
static u64 behind(u64 lin)
{
    u64 v = 0;

    for (unsigned i = 8; i-- > 0;) {
        u64 at = lin + i;

        v = v << 8 | *(volatile u8 *)(at >= (u64)MIDDLE && at < (u64)UPPER ? at + 4096 : at);
    }
    return v;
}

/* Two pages whose neighbours in memory are others, any alignment, and each time another one of both. */
static void stack_pages(void)
{
    u64 *pte = pte_of((u64)MIDDLE), good = *pte, other = *pte_of((u64)UPPER);

    *pte = other;
    tlb_flush();
    for (unsigned n = 0; n < 1400; n++) {
        Regs r = plain_regs();
        u64 sp = (u64)MIDDLE - 350 + n * 373 % 701;

        arena_fill(n & 1);
        r.rax = 0x0102030405060708 + n;
        r.rcx = 0x1122334455667788 + n;
        r.rsp = sp;
        run_at(stack_use_code, &r);
        check_of("vector", "stack over a page's end", (u64)seen.vector, ~0ull);
        check_of("loads of RAX", "stack over a page's end",
                 (r.rdx ^ r.rax) | (r.r8 ^ r.rax) | (r.r9 ^ r.rax) | (r.r12 ^ r.rax) | (r.r13 ^ r.rax), 0);
        check_of("loads of RCX", "stack over a page's end", (r.rbx ^ r.rcx) | (r.r10 ^ r.rcx), 0);
        check_of("pushed first", "stack over a page's end", behind(sp - 8), r.rax);
        check_of("pushed second", "stack over a page's end", behind(sp - 16), r.rcx);
        check_of("stored below", "stack over a page's end", behind(sp - 300), r.rax);
        check_of("stored above", "stack over a page's end", behind(sp + 90), r.rcx);
    }
    *pte = good;
    tlb_flush();
}

/* A page of the stack that may be read only. */
static void stack_read_only(void)
{
    u64 *pte = pte_of((u64)MIDDLE), good = *pte, cr0;

    __asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
    __asm__ volatile("mov %0, %%cr0" : : "r"(cr0 | 0x10000) : "memory");
    for (unsigned n = 0; n < 4 * ROUNDS; n++) {
        bool allowed = n % 7 == 0;
        Regs r = plain_regs();

        *pte = allowed ? good : good & ~2ull;
        tlb_flush();
        r.rsp = (u64)MIDDLE + 64;
        run_at(pop_then_push_code, &r);
        check_of("vector", "push to a read-only page", (u64)seen.vector, allowed ? ~0ull : 14);
        if (!allowed) {
            check_of("error code", "push to a read-only page", seen.regs.error, 3);
            check_of("CR2", "push to a read-only page", seen.cr2, (u64)MIDDLE + 64);
            check_of("RSP", "push to a read-only page", seen.regs.rsp, (u64)MIDDLE + 72);
        }
    }
    *pte = good;
    tlb_flush();
    __asm__ volatile("mov %0, %%cr0" : : "r"(cr0) : "memory");
}

void test_main(void)
{
    faults_init();
    avx = cpu_offers(1, 2, 28) && cpu_offers(1, 2, 26);
    enable_avx();
    alignment();
    canonical_all();
    into_the_hole();
    split_code();
    split_changes();
    stack_pages();
    stack_read_only();
}
