/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "faults.h"

u8 arena[3 * 4096] __attribute__((aligned(4096)));
Seen seen;
void *snippet_back;

static u64 *repair_pte, repair_value;

void run_snippet(Regs *r, const void *code);
extern u8 snippet_end[];

/* Offsets are those of Regs. */
__asm__(".pushsection .text\n"
        "run_snippet:\n"
        " push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        " mov %rsp, kept_rsp\n mov %rdi, kept_regs\n mov %rsi, kept_code\n"
        " push 152(%rdi); popfq\n"
        " mov 0(%rdi), %r15\n mov 8(%rdi), %r14\n mov 16(%rdi), %r13\n mov 24(%rdi), %r12\n"
        " mov 32(%rdi), %r11\n mov 40(%rdi), %r10\n mov 48(%rdi), %r9\n mov 56(%rdi), %r8\n"
        " mov 72(%rdi), %rsi\n mov 80(%rdi), %rbp\n mov 88(%rdi), %rbx\n mov 96(%rdi), %rdx\n"
        " mov 104(%rdi), %rcx\n mov 112(%rdi), %rax\n mov 160(%rdi), %rsp\n mov 64(%rdi), %rdi\n"
        " jmp *kept_code\n"
        "snippet_end:\n"
        " mov %rdi, kept_rdi\n mov kept_regs, %rdi\n"
        " mov %r15, 0(%rdi)\n mov %r14, 8(%rdi)\n mov %r13, 16(%rdi)\n mov %r12, 24(%rdi)\n"
        " mov %r11, 32(%rdi)\n mov %r10, 40(%rdi)\n mov %r9, 48(%rdi)\n mov %r8, 56(%rdi)\n"
        " mov %rsi, 72(%rdi)\n mov %rbp, 80(%rdi)\n mov %rbx, 88(%rdi)\n mov %rdx, 96(%rdi)\n"
        " mov %rcx, 104(%rdi)\n mov %rax, 112(%rdi)\n mov %rsp, 160(%rdi)\n"
        " mov kept_rdi, %rax\n mov %rax, 64(%rdi)\n"
        " mov kept_rsp, %rsp\n pushfq; pop 152(%rdi)\n cld\n"
        " pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n ret\n"
        ".popsection\n"
        ".pushsection .bss\n .align 8\n"
        "kept_rsp: .skip 8\nkept_regs: .skip 8\nkept_code: .skip 8\nkept_rdi: .skip 8\n"
        ".popsection\n");

void run_at(const void *code, Regs *r)
{
    seen = (Seen){ .vector = -1 };
    run_snippet(r, code);
    repair_pte = NULL;
}

void repair_with(u64 *pte, u64 value)
{
    repair_pte = pte;
    repair_value = value;
}

static void on_fault(Regs *r)
{
    if (!seen.count++) {
        seen.vector = (int)r->vector;
        seen.cr2 = read_cr2();
        seen.regs = *r;
    }
    if (r->vector == 14 && repair_pte) {
        *repair_pte = repair_value;
        tlb_flush();
        repair_pte = NULL;
        return;
    }
    r->rip = (u64)snippet_end;
}

void faults_init(void)
{
    static const u8 vectors[] = { 6, 12, 13, 14, 17 };

    tss_load();
    for (unsigned i = 0; i < sizeof(vectors); i++) {
        set_handler(vectors[i], on_fault);
        set_ist(vectors[i], 1);
    }
    snippet_back = snippet_end;
}

void arena_fill(bool zero)
{
    volatile u64 *words = (u64 *)arena;

    for (u64 i = 0; i < sizeof(arena) / 8; i++) {
        words[i] = zero ? 0 : (i + 1) * 0x9e3779b97f4a7c15;
    }
}

const char *regs_differ(const Regs *a, const Regs *b)
{
    static const char *const names[] = { "R15", "R14", "R13", "R12", "R11", "R10", "R9", "R8", "RDI", "RSI", "RBP",
                                         "RBX", "RDX", "RCX", "RAX" };
    const u64 *x = &a->r15, *y = &b->r15;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (x[i] != y[i]) {
            return names[i];
        }
    }
    if (a->rsp != b->rsp) {
        return "RSP";
    }
    return (a->rflags ^ b->rflags) & (ARITH | DF) ? "flags" : NULL;
}

void check_of(const char *what, const char *detail, u64 got, u64 want)
{
    if (got != want) {
        check_eq(what, got, want);
        print("  of ");
        print(detail);
        print("\n");
    }
}
