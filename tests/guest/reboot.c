/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System tables in memory that does not exist: each time the processor shuts down, which resets
 * the machine, and the guest starts over. CMOS memory, which a reset leaves, tells how far it got.
 */
#include "guest.h"

#define CMOS_STAGE 0x6e
#define CMOS_MAGIC 0x6f
#define HOLE       0xd0000000ull /* mapped by the page tables; the board has nothing there */
#define BEYOND     0x7000000000ull

typedef struct __attribute__((packed)) TableReg {
    u16 limit;
    u64 base;
} TableReg;

extern u64 gdt_tss[2];

static u8 cmos_read(u8 reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static void cmos_write(u8 reg, u8 v)
{
    outb(0x70, reg);
    outb(0x71, v);
}

static void lidt(u64 base)
{
    TableReg r = { 0xfff, base };

    __asm__ volatile("lidt %0" : : "m"(r));
}

static void idt_in_hole(void)
{
    lidt(HOLE);
    __asm__ volatile("int3");
}

static void idt_unmapped(void)
{
    lidt(BEYOND);
    __asm__ volatile("ud2");
}

static void gdt_in_hole(void)
{
    TableReg r = { 0xffff, HOLE };

    /* All ones is no 64-bit code segment. */
    __asm__ volatile("lgdt %0; int3" : : "m"(r));
}

/* The stack of an exception comes from a TSS that is not there. */
static void tss_in_hole(void)
{
    TableReg idtr;

    gdt_tss[0] = 0x67 | (HOLE & 0xffffff) << 16 | 0x89ull << 40 | (HOLE >> 24 & 0xff) << 56;
    gdt_tss[1] = 0;
    __asm__ volatile("ltr %w0" : : "r"(0x30));
    __asm__ volatile("sidt %0" : "=m"(idtr));
    for (unsigned v = 0; v < 32; v++) {
        ((u8 *)idtr.base)[v * 16 + 4] = 1; /* IST 1 */
    }
    __asm__ volatile("ud2");
}

static void cr3_in_hole(void)
{
    write_cr3(HOLE);
}

static void (*const stages[])(void) = { idt_in_hole, idt_unmapped, gdt_in_hole, tss_in_hole,
                                        cr3_in_hole };
#define STAGES (sizeof(stages) / sizeof(stages[0]))

void test_main(void)
{
    unsigned stage = cmos_read(CMOS_MAGIC) == 0xa5 ? cmos_read(CMOS_STAGE) : 0;

    if (stage < STAGES) {
        cmos_write(CMOS_STAGE, (u8)(stage + 1));
        cmos_write(CMOS_MAGIC, 0xa5);
        stages[stage]();
        delay_ms(100);
        check_eq("stage went on without a reset", stage, STAGES);
    }
}
