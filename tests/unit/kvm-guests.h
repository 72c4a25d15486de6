/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guests of test-kvm.c: assembled with it, copied to 0x1000 and entered in real mode. */
#ifndef TESTS_UNIT_KVM_GUESTS_H
#define TESTS_UNIT_KVM_GUESTS_H

#include <stdint.h>

#define GUEST(name, text)                                                                          \
    __asm__(".pushsection .rodata\n.code16\n.globl guest_" #name "\n.globl guest_" #name "_end\n"  \
            "guest_" #name ":\n" text "\nguest_" #name "_end:\n.code64\n.popsection\n");           \
    extern const uint8_t guest_##name[], guest_##name##_end[]

#define DONE      "mov $0x508, %dx\n out %al, %dx\n"
#define OUT_AL    "mov $0x500, %dx\n out %al, %dx\n"
#define STOP_HERE "9: cli\n hlt\n jmp 9b\n"

GUEST(io, "mov $0x41, %al\n" OUT_AL
          "in %dx, %al\n out %al, %dx\n"
          "mov $0x504, %dx\n in %dx, %eax\n out %eax, %dx\n"
          "mov $0x1234, %ax\n out %ax, %dx\n"
          /* string output, forward */
          "xor %ax, %ax\n mov %ax, %ds\n mov %ax, %es\n cld\n"
          "movl $0x64636261, 0x8000\n mov $0x8000, %si\n mov $4, %cx\n mov $0x500, %dx\n rep outsb\n"
          /* string input */
          "mov $0x8010, %di\n mov $3, %cx\n rep insb\n"
          "mov 0x8012, %al\n" OUT_AL
          /* MMIO */
          "mov $0xd000, %ax\n mov %ax, %ds\n"
          "movl $0x12345678, 0x10\n"
          "mov 0x20, %eax\n mov $0x504, %dx\n out %eax, %dx\n"
          "mov 0x22, %ax\n out %ax, %dx\n"
          "movb $0x99, 0x33\n"
          /* ROM: reads come, writes go nowhere */
          "mov $0xe000, %ax\n mov %ax, %ds\n"
          "movb $0x77, 0\n mov 0, %al\n" OUT_AL DONE STOP_HERE);

/* Vector 0x44 (GSI 4): the master PIC is set to base 0x40 when it is in the kernel. */
GUEST(irq, "xor %ax, %ax\n mov %ax, %ds\n mov %ax, %ss\n mov $0x7000, %sp\n"
           "movw $(1f - guest_irq + 0x1000), 0x110\n movw $0, 0x112\n"
           "mov $0x11, %al\n out %al, $0x20\n mov $0x40, %al\n out %al, $0x21\n"
           "mov $4, %al\n out %al, $0x21\n mov $1, %al\n out %al, $0x21\n"
           "mov $0xef, %al\n out %al, $0x21\n"
           DONE /* ready */
           "2: sti\n hlt\n cli\n jmp 2b\n"
           "1: mov $0x49, %al\n" OUT_AL "mov $0x20, %al\n out %al, $0x20\n iret\n");

/* Interrupts while the guest computes and interrupts are off most of the time. */
GUEST(window, "xor %ax, %ax\n mov %ax, %ds\n mov %ax, %ss\n mov $0x7000, %sp\n"
              "movw $(1f - guest_window + 0x1000), 0x110\n movw $0, 0x112\n"
              "mov $0x11, %al\n out %al, $0x20\n mov $0x40, %al\n out %al, $0x21\n"
              "mov $4, %al\n out %al, $0x21\n mov $1, %al\n out %al, $0x21\n"
              "mov $0xef, %al\n out %al, $0x21\n" DONE
              "2: cli\n mov $50, %cx\n 3: dec %cx\n jnz 3b\n sti\n nop\n nop\n jmp 2b\n"
              "1: mov $0x57, %al\n" OUT_AL "mov $0x20, %al\n out %al, $0x20\n iret\n");

/* Into protected mode; the local APIC is enabled, MSIs to vector 0x60 are logged. Level-triggered
 * 0x61 too. */
GUEST(msi, "cli\n xor %ax, %ax\n mov %ax, %ds\n"
           "lgdtl (7f - guest_msi + 0x1000)\n"
           "mov %cr0, %eax\n or $1, %al\n mov %eax, %cr0\n"
           "ljmpl $8, $(1f - guest_msi + 0x1000)\n"
           ".code32\n"
           "1: mov $0x10, %ax\n mov %ax, %ds\n mov %ax, %es\n mov %ax, %ss\n mov $0x7000, %esp\n"
           "movl $(0x80000 + 4f - guest_msi + 0x1000), 0x9300\n movl $0x8e00, 0x9304\n"
           "movl $(0x80000 + 5f - guest_msi + 0x1000), 0x9308\n movl $0x8e00, 0x930c\n"
           "lidtl (8f - guest_msi + 0x1000)\n"
           "mov $0xfee000f0, %ebx\n movl $0x1ff, (%ebx)\n"
           "mov $0x508, %dx\n out %al, %dx\n"
           "2: sti\n hlt\n cli\n jmp 2b\n"
           "4: mov $0x4d, %al\n mov $0x500, %dx\n out %al, %dx\n movl $0, 0xfee000b0\n"
           "add $12, %esp\n jmp 2b\n" /* IRET in protected mode is beyond some hosts */
           "5: mov $0x4c, %al\n mov $0x500, %dx\n out %al, %dx\n movl $0, 0xfee000b0\n"
           "add $12, %esp\n jmp 2b\n"
           ".balign 8\n"
           "6: .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff\n"
           "7: .word 23\n .long 6b - guest_msi + 0x1000\n"
           "8: .word 0x7ff\n .long 0x9000\n"
           ".code16\n");

/* The boot CPU sends INIT and SIPI (vector 0x02) to the other, which logs and stops. */
GUEST(smp, "cli\n xor %ax, %ax\n mov %ax, %ds\n mov %ax, %es\n cld\n"
           "mov $(3f - guest_smp + 0x1000), %si\n mov $0x2000, %di\n mov $64, %cx\n rep movsb\n"
           "lgdtl (7f - guest_smp + 0x1000)\n"
           "mov %cr0, %eax\n or $1, %al\n mov %eax, %cr0\n"
           "ljmpl $8, $(1f - guest_smp + 0x1000)\n"
           ".code32\n"
           "1: mov $0x10, %ax\n mov %ax, %ds\n"
           "movl $0x1ff, 0xfee000f0\n"
           "movl $0x01000000, 0xfee00310\n movl $0x00004500, 0xfee00300\n"
           "mov $2000, %ecx\n 2: dec %ecx\n jnz 2b\n"
           "movl $0x01000000, 0xfee00310\n movl $0x00004602, 0xfee00300\n"
           "4: mov 0x8000, %eax\n cmp $0x5a5a, %eax\n jne 4b\n"
           "mov $0x42, %al\n mov $0x500, %dx\n out %al, %dx\n mov $0x508, %dx\n out %al, %dx\n"
           "9: cli\n hlt\n jmp 9b\n"
           ".code16\n"
           "3: xor %ax, %ax\n mov %ax, %ds\n mov $0x41, %al\n" OUT_AL
           "movl $0x5a5a, 0x8000\n 5: cli\n hlt\n jmp 5b\n"
           ".balign 8\n"
           "6: .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff\n"
           "7: .word 23\n .long 6b - guest_smp + 0x1000\n");

/* Counts in ECX and in memory for ever; logs BX when it changes. */
GUEST(count, "xor %ax, %ax\n mov %ax, %ds\n xor %bx, %bx\n xor %ecx, %ecx\n"
             "mov $0x50, %al\n" OUT_AL
             "1: inc %ecx\n mov %ecx, 0x8000\n cmp $0, %bx\n je 1b\n"
             "mov %bx, %ax\n mov $0x504, %dx\n out %ax, %dx\n xor %bx, %bx\n jmp 1b\n");

/* Writes and checks a page of RAM for ever; DONE if it ever reads something else. */
GUEST(ram, "mov $0x2000, %ax\n mov %ax, %ds\n xor %cx, %cx\n" "mov $0x52, %al\n" OUT_AL
           "1: inc %cx\n mov %cx, 0x10\n mov %cx, 0x1010\n cmp %cx, 0x10\n jne 2f\n"
           "cmp %cx, 0x1010\n jne 2f\n jmp 1b\n"
           "2:" DONE STOP_HERE);

GUEST(dirty, "1: mov $0x2000, %ax\n mov %ax, %ds\n movb $1, 0x0\n movb $1, 0x3000\n movb $1, 0x7fff\n"
             DONE STOP_HERE);

GUEST(triple, "mov $0x54, %al\n" OUT_AL "xor %ax, %ax\n mov %ax, %ds\n"
              "lidtl (1f - guest_triple + 0x1000)\n ud2\n 1: .word 0\n .long 0\n");

#endif
