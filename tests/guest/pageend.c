/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An instruction that runs over a page's end is replaced by one that ends there, and the next page goes: nothing
 * may be fetched from it any more. And the other way round.
 */
#include "guest.h"

#define CODE 0x3a00000ull
#define NEXT (CODE + 4096)

static volatile u64 faults, fault_rip, fault_cr2;

static void on_fault(Regs *r)
{
    faults++;
    fault_rip = r->rip;
    fault_cr2 = read_cr2();
    r->rip = r->r8;
}

u64 run_at(u64 rip);
__asm__(".globl run_at\nrun_at: mov $0, %ecx\n lea 1f(%rip), %r8\n jmp *%rdi\n1: mov %rcx, %rax\n ret\n");

static const u8 over[] = { 0x48, 0x83, 0xc1, 0x2d, 0x41, 0xff, 0xe0 }; /* add $45, %rcx; jmp *%r8 */
static const u8 last[] = { 0x41, 0xff, 0xe0 };                         /* jmp *%r8 */

static void put(u64 at, const u8 *code, unsigned n)
{
    while (n--) {
        ((volatile u8 *)at)[n] = code[n];
    }
}

static void map_next(u64 pte)
{
    *pte_of(NEXT) = pte;
    tlb_flush();
}

void test_main(void)
{
    u64 there = *pte_of(NEXT), at = NEXT - sizeof(last);

    set_handler(14, on_fault);
    for (unsigned round = 0; round < 40; round++) {
        put(at, over, sizeof(over));
        for (unsigned n = 0; n <= round; n++) { /* interpreted first, translated later */
            check_eq("over the end", run_at(at), 45);
        }
        put(at, last, sizeof(last));
        map_next(0);
        faults = 0;
        check_eq("last of the page", run_at(at), 0);
        check_eq("faults", faults, 0);
        put(at, over, sizeof(last));
        check_eq("cut off", run_at(at), 0);
        check_eq("its fault", faults, 1);
        check_eq("RIP", fault_rip, at);
        check_eq("CR2", fault_cr2, NEXT);
        map_next(there);
    }
}
