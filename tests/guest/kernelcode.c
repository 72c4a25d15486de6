/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions and patterns of kernels, each often enough to be translated: flags that are pushed, PUSH of
 * memory, CMPXCHG16B, retpolines, STI and its shadow, and groups of accesses at a page's end.
 */
#include "guest.h"

#define ROUNDS 300
#define VECTOR 0x51

static u64 pushed_flags(u64 set)
{
    u64 got;

    __asm__ volatile("push %1\n popfq\n pushfq\n pop %0\n" : "=r"(got) : "r"(set) : "cc", "memory");
    return got;
}

static void push_flags(void)
{
    static const u64 bits[] = { 0, 1, 4, 0x10, 0x40, 0x80, 0x800, 0x400, 0x40000, 0x8d5, 0x200000 };

    for (unsigned n = 0; n < ROUNDS; n++) {
        u64 want = bits[n % (sizeof(bits) / sizeof(bits[0]))] | 2, got;

        check_eq("pushed flags", pushed_flags(want), want);
        /* Flags of an instruction right before. */
        __asm__ volatile("cmp %2, %1\n pushfq\n pop %0\n"
                         : "=r"(got)
                         : "r"((u64)n), "r"((u64)150)
                         : "cc", "memory");
        check_eq("carry, zero", got & 0x41, (n < 150) | (n == 150 ? 0x40u : 0));
    }
    __asm__ volatile("cld" : : : "cc");
}

static void push_memory(void)
{
    static u64 words[3] = { 0x1111, 0x2222, 0x3333 };
    u64 a, b, c, sp;

    for (unsigned n = 0; n < ROUNDS; n++) {
        words[1] = n;
        __asm__ volatile("mov %%rsp, %3\n"
                         "pushq 8(%4)\n pushq (%%rsp)\n pushq 8(%%rsp)\n"
                         "pop %0\n pop %1\n pop %2\n"
                         "sub %%rsp, %3\n"
                         : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(sp)
                         : "r"(words)
                         : "cc", "memory");
        check("PUSH of memory", a == n && b == n && c == n && sp == 0);
    }
}

static void cmpxchg16b(void)
{
    static u64 cell[2] __attribute__((aligned(16)));

    for (unsigned n = 0; n < ROUNDS; n++) {
        u64 lo = n, hi = n + 1, flags, si = 0x5151;

        cell[0] = n;
        cell[1] = n & 1 ? n + 1 : n + 2; /* every other one fails */
        __asm__ volatile("stc\n lock cmpxchg16b (%5)\n pushfq\n pop %2\n"
                         : "+a"(lo), "+d"(hi), "=&r"(flags), "+S"(si)
                         : "b"(7ull), "r"(cell), "c"(9ull)
                         : "cc", "memory");
        check("CMPXCHG16B keeps RSI and carry", si == 0x5151 && (flags & 1));
        check_eq("CMPXCHG16B zero flag", flags & 0x40, n & 1 ? 0x40 : 0);
        check_eq("CMPXCHG16B low", cell[0], n & 1 ? 7 : n);
        check_eq("CMPXCHG16B high", cell[1], n & 1 ? 9 : n + 2);
        check_eq("CMPXCHG16B RDX", hi, n & 1 ? n + 1 : n + 2);
    }
}

/* call 1f; 2: pause; lfence; jmp 2b; 1: mov %reg, (%rsp); ret */
static u8 thunk[4096] __attribute__((aligned(4096)));

static void put_thunk(u8 rex, u8 modrm)
{
    static const u8 head[] = { 0xe8, 0x07, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9 };

    for (unsigned n = 0; n < sizeof(head); n++) {
        thunk[n] = head[n];
    }
    thunk[12] = rex;
    thunk[13] = 0x89;
    thunk[14] = modrm;
    thunk[15] = 0x24;
    thunk[16] = 0xc3;
}

/* To where RBX or R13 leads; *below: what is left under the stack. */
static u64 through_thunk(u64 *below)
{
    u64 got, left;

    __asm__ volatile("mov %%rsp, %%r12\n"
                     "lea 1f(%%rip), %%rbx\n"
                     "lea 2f(%%rip), %%r13\n"
                     "jmp *%2\n"
                     "1: mov $1, %0\n jmp 3f\n"
                     "2: mov $2, %0\n"
                     "3: mov -8(%%rsp), %1\n"
                     "cmp %%rsp, %%r12\n je 4f\n mov $99, %0\n"
                     "4:\n"
                     "cmp %1, %%rbx\n je 5f\n sub %%r13, %1\n jmp 6f\n5: xor %1, %1\n6:\n"
                     : "=&a"(got), "=&d"(left)
                     : "r"(thunk)
                     : "rbx", "r12", "r13", "cc", "memory");
    *below = left;
    return got;
}

static void retpolines(void)
{
    u64 below;

    for (unsigned round = 0; round < 4; round++) {
        put_thunk(round & 1 ? 0x4c : 0x48, round & 1 ? 0x2c : 0x1c); /* R13, RBX */
        for (unsigned n = 0; n < ROUNDS; n++) {
            check_eq("retpoline", through_thunk(&below), round & 1 ? 2 : 1);
            check_eq("below the stack", below, 0);
        }
    }
}

/* SYSCALL at CPL 0, to 1f, which returns: R11 are the flags of before, though nothing else reads them. */
static void syscalls(void)
{
    u64 cs, ss, flags, cell[2];

    __asm__ volatile("mov %%cs, %0\n mov %%ss, %1\n" : "=r"(cs), "=r"(ss));
    if (ss && ss != cs + 8) {
        return; /* SYSCALL loads that one */
    }
    wrmsr(0xc0000080, rdmsr(0xc0000080) | 1);
    wrmsr(0xc0000081, cs << 32);
    wrmsr(0xc0000084, 0);
    for (unsigned n = 0; n < ROUNDS; n++) {
        u64 target;

        __asm__ volatile("lea 1f(%%rip), %0" : "=r"(target));
        wrmsr(0xc0000082, target);
        __asm__ volatile("mov %2, (%3)\n"
                         "cmp %1, %2\n"
                         "mov %2, 8(%3)\n"
                         "mov %1, (%3)\n"
                         "mov $5, %%eax\n"
                         "syscall\n"
                         "jmp 2f\n"
                         "1: mov %%r11, %0\n jmp *%%rcx\n"
                         "2:\n"
                         : "=&r"(flags)
                         : "r"((u64)150), "r"((u64)n), "r"(cell)
                         : "rax", "rcx", "r11", "cc", "memory");
        check_eq("R11 of SYSCALL", flags & 0x41, (n < 150) | (n == 150 ? 0x40u : 0));
    }
}

/* ---- STI ---- */

static volatile u64 irq_rip, irq_count;

static void on_irq(Regs *r)
{
    irq_rip = r->rip;
    irq_count++;
    apic_eoi();
}

/* An interrupt that waits is taken behind the instruction after STI, neither before nor later. */
static void shadow(void)
{
    u64 want;

    for (unsigned n = 0; n < ROUNDS; n++) {
        cli();
        irq_rip = 0;
        apic_write(0x300, 0x40000 | VECTOR); /* to itself */
        __asm__ volatile("lea 1f(%%rip), %0\n sti\n nop\n 1: nop\n nop\n" : "=r"(want) : : "memory");
        check_eq("interrupt after STI's shadow", irq_rip, want);
        cli();
        apic_write(0x300, 0x40000 | VECTOR);
        __asm__ volatile("lea 1f(%%rip), %0\n sti\n hlt\n 1: nop\n" : "=r"(want) : : "memory");
        check_eq("interrupt wakes HLT", irq_rip, want);
    }
}

/* Nothing waits: thousands of CLI and STI, and a timer that comes at any time. Each wakes one HLT. */
static void timer_storm(void)
{
    u64 lost = 0, before;

    apic_write(0x3e0, 0xb);           /* divide by 1 */
    apic_write(0x320, VECTOR);        /* one-shot */
    for (unsigned n = 0; n < 2000; n++) {
        before = irq_count;
        cli();
        apic_write(0x380, 200 + n * 37 % 20000);
        for (unsigned k = 0; k < n % 97; k++) {
            __asm__ volatile("sti\n add $1, %0\n cli\n" : "+r"(lost) : : "cc", "memory");
        }
        while (irq_count == before) {
            sti_hlt();
            cli();
        }
    }
    __asm__ volatile("sti" : : : "memory");
    check("a timer for each wait", irq_count >= 2000);
}

/* ---- Accesses that share a probe ---- */

static u8 pages[3 * 4096] __attribute__((aligned(4096)));

static void page_end(void)
{
    for (unsigned at = 4096 - 40; at < 4096 + 8; at++) {
        for (unsigned n = 0; n < 20; n++) {
            u64 *p = (u64 *)(pages + at), a, b, c;

            __asm__ volatile("mov %4, (%3)\n mov %5, 8(%3)\n mov %6, 24(%3)\n"
                             "add $8, %3\n"
                             "addq $1, (%3)\n mov -8(%3), %0\n mov (%3), %1\n mov 16(%3), %2\n"
                             : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(p)
                             : "r"((u64)n), "r"((u64)n * 3), "r"(~(u64)n)
                             : "cc", "memory");
            check("accesses over a page's end", a == n && b == n * 3 + 1 && c == ~(u64)n);
        }
    }
}

struct far { u64 *p; u64 sum; };

static void touch(void *arg)
{
    struct far *f = arg;

    for (unsigned n = 0; n < 40; n++) {
        f->sum += f->p[0] + f->p[1];
        f->p[3] = n; /* in the page that is missing at last */
        f->sum += f->p[2];
    }
}

/* The first two are in one page, the store in the next: its fault comes at its place. */
static void page_missing(void)
{
    struct far f = { (u64 *)(pages + 8192 - 24), 0 };
    u64 *pte = pte_of((u64)pages + 8192);

    f.p[0] = 1;
    f.p[1] = 2;
    f.p[2] = 3;
    touch(&f);
    check_eq("sum", f.sum, 40 * 6);
    f.sum = 0;
    *pte &= ~1ull;
    tlb_flush();
    check_eq("missing page", (u64)catch(touch, &f), 14);
    check_eq("CR2", last_cr2, (u64)pages + 8192);
    check_eq("what was done before", f.sum, 3);
    *pte |= 1;
    tlb_flush();
    touch(&f);
    check_eq("sum when it is back", f.sum, 3 + 40 * 6);
}

void test_main(void)
{
    push_flags();
    push_memory();
    if (!host_interprets()) {
        cmpxchg16b();
    }
    retpolines();
    if (!host_interprets()) {
        syscalls();
    }
    page_end();
    page_missing();
    pic_mask();
    apic_enable();
    set_handler(VECTOR, on_irq);
    if (!host_interprets()) {
        shadow();
    }
    timer_storm();
    finish();
}
