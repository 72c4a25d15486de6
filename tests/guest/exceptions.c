/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults: vector, error code, CR2, and that nothing of the faulting instruction was committed. */
#include "guest.h"

#define NON_CANONICAL 0x8000000000000000ull

static u8 page[3 * 4096] __attribute__((aligned(4096)));

static void divide(void *arg)
{
    __asm__ volatile("xor %%edx, %%edx; mov $1, %%eax; div %0" : : "r"((u32)(u64)arg)
                     : "eax", "edx");
}

static void ud2(void *arg)
{
    __asm__ volatile("ud2");
}

static void load(void *arg)
{
    __asm__ volatile("movq (%0), %%rax" : : "r"(arg) : "rax", "memory");
}

static void load_rbp(void *arg)
{
    __asm__ volatile("push %%rbp; mov %0, %%rbp; movq (%%rbp), %%rax; pop %%rbp" : : "r"(arg)
                     : "rax", "memory");
}

static void store(void *arg)
{
    __asm__ volatile("movb $1, (%0)" : : "r"(arg) : "memory");
}

static void execute(void *arg)
{
    __asm__ volatile("call *%0" : : "r"(arg) : "memory");
}

static void movaps(void *arg)
{
    __asm__ volatile("movaps (%0), %%xmm0" : : "r"(arg) : "memory");
}

/* Comparand differs, so it does not store; the page must be writable all the same. */
static void cmpxchg_fail(void *arg)
{
    __asm__ volatile("mov $5, %%eax; lock cmpxchg %%ecx, (%0)" : : "r"(arg)
                     : "rax", "rcx", "memory");
}

static void read_port_cr(void *arg)
{
    __asm__ volatile("mov %0, %%cr4" : : "r"(1ull << 40));
}

static void divide_overflow(void *arg)
{
    __asm__ volatile("mov $-1, %%eax; mov $0x7fffffff, %%edx; mov $2, %%ecx; idiv %%ecx" : : :
                     "rax", "rcx", "rdx");
}

static void simple(void)
{
    check_eq("DIV by 0", catch(divide, (void *)0), 0);
    check_eq("IDIV overflow", catch(divide_overflow, NULL), 0);
    check_eq("no fault", catch(divide, (void *)1), -1);
    check_eq("UD2", catch(ud2, NULL), 6);
    check_eq("load non-canonical", catch(load, (void *)NON_CANONICAL), 13);
    check_eq("its error code", last_error, 0);
    check_eq("load non-canonical by RBP", catch(load_rbp, (void *)NON_CANONICAL), 12);
    check_eq("MOVAPS misaligned", catch(movaps, page + 8), 13);
    check_eq("MOVAPS aligned", catch(movaps, page), -1);
    check_eq("CR4 reserved bit", catch(read_port_cr, NULL), 13);
}

static void page_faults(void)
{
    u64 *pte = pte_of((u64)page + 4096);
    u64 good = *pte;

    *pte = 0;
    tlb_flush();
    check_eq("load from a missing page", catch(load, page + 4096 + 16), 14);
    check_eq("its error code", last_error, 0);
    check_eq("its CR2", last_cr2, (u64)page + 4096 + 16);
    check_eq("load across into a missing page", catch(load, page + 4096 - 4), 14);
    check_eq("its CR2", last_cr2, (u64)page + 4096);
    check_eq("store to a missing page", catch(store, page + 4096), 14);
    check_eq("its error code", last_error, 2);
    check_eq("execution of a missing page", catch(execute, page + 4096), 14);
    check_eq("its error code", last_error, 0x10);

    *pte = good & ~2ull;
    tlb_flush();
    check_eq("store to a read-only page", catch(store, page + 4096), 14);
    check_eq("its error code", last_error, 3);
    check_eq("load from it", catch(load, page + 4096), -1);
    *(volatile u32 *)(page + 4096 - 4) = 0;
    check_eq("failing CMPXCHG on a read-only page", catch(cmpxchg_fail, page + 4096), 14);
    check_eq("its error code", last_error, 3);

    *pte = good | 1ull << 63;
    tlb_flush();
    check_eq("execution of an NX page", catch(execute, page + 4096), 14);
    check_eq("its error code", last_error, 0x11);

    *pte = good | 1ull << 51;
    tlb_flush();
    check_eq("reserved bit in the PTE", catch(load, page + 4096), 14);
    check_eq("its error code", last_error, 9);

    *pte = good;
    tlb_flush();
}

static void accessed_dirty(void)
{
    u64 *pte = pte_of((u64)page + 4096);

    *pte &= ~0x60ull;
    tlb_flush();
    load(page + 4096);
    check_eq("A after a load", *pte & 0x60, 0x20);
    store(page + 4096);
    check_eq("D after a store, though a load filled the TLB", *pte & 0x60, 0x60);
}

/* An instruction of two bytes, the second on a missing page. */
static void split_instruction(void)
{
    u64 *pte = pte_of((u64)page + 4096);
    u64 good = *pte;

    page[4095] = 0x0f;
    page[4096] = 0x0b;
    *pte = 0;
    tlb_flush();
    check_eq("instruction split over a missing page", catch(execute, page + 4095), 14);
    check_eq("its error code", last_error, 0x10);
    check_eq("its CR2", last_cr2, (u64)page + 4096);
    check_eq("its RIP", last_rip, (u64)page + 4095);
    *pte = good;
    tlb_flush();
    check_eq("the same when it is there: UD2", catch(execute, page + 4095), 6);
}

static volatile u64 rep_rcx, rep_rsi, rep_rdi;
static u64 *rep_pte;
static u64 rep_good;

static void rep_fault(Regs *r)
{
    rep_rcx = r->rcx;
    rep_rsi = r->rsi;
    rep_rdi = r->rdi;
    *rep_pte = rep_good;
    tlb_flush();
}

/* REP MOVSB into a missing page: registers as at the fault, and it goes on after IRET. */
static void rep_restart(void)
{
    static u8 src[8192];
    u8 *dst = page + 4096 - 100;
    u64 n = 200, s = (u64)src, d = (u64)dst;

    for (unsigned i = 0; i < 200; i++) {
        src[i] = (u8)i;
    }
    rep_pte = pte_of((u64)page + 4096);
    rep_good = *rep_pte;
    *rep_pte = 0;
    tlb_flush();
    set_handler(14, rep_fault);
    __asm__ volatile("rep movsb" : "+c"(n), "+S"(s), "+D"(d) : : "memory");
    set_handler(14, NULL);
    check_eq("RCX at the fault", rep_rcx, 100);
    check_eq("RSI at the fault", rep_rsi, (u64)src + 100);
    check_eq("RDI at the fault", rep_rdi, (u64)dst + 100);
    check_eq("RCX at the end", n, 0);
    for (unsigned i = 0; i < 200; i++) {
        check_eq("copied byte", dst[i], (u8)i);
    }
}

static volatile u64 pop_rsp;

static void pop_fault(Regs *r)
{
    pop_rsp = r->rsp;
    *rep_pte = rep_good;
    tlb_flush();
}

/* POP [mem] that faults leaves RSP. */
static void pop_memory(void)
{
    u64 before, after;

    *rep_pte = 0;
    tlb_flush();
    set_handler(14, pop_fault);
    __asm__ volatile("push $77; mov %%rsp, %0; popq (%2); mov %%rsp, %1"
                     : "=&r"(before), "=&r"(after) : "r"(page + 4096) : "memory");
    set_handler(14, NULL);
    check_eq("RSP at the fault of POP [mem]", pop_rsp, before);
    check_eq("RSP after it", after, before + 8);
    check_eq("value popped", *(volatile u64 *)(page + 4096), 77);
}

void test_main(void)
{
    simple();
    page_faults();
    accessed_dirty();
    split_instruction();
    rep_restart();
    pop_memory();
}
