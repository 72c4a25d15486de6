/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry of our flat guests: multiboot, 32-bit, to long mode with 4 GiB mapped one to one by 2 MiB
 * pages; also the real-mode trampoline that brings other vCPUs to the same state, and the 256
 * interrupt stubs.
 */
    .section .multiboot, "a"
    .align 4
    .long 0x1badb002, 0x00000003, -(0x1badb002 + 0x00000003)

    .bss
    .align 4096
pml4: .skip 4096
pdpt: .skip 4096
pds:  .skip 4096 * 4
    .align 16
stacks: .skip 65536 * 8     /* 64 KiB for each of eight vCPUs */
stacks_end:

    .data
    .align 8
    .globl gdt
gdt:
    .quad 0
    .quad 0x00af9b000000ffff    /* 0x08: 64-bit code, DPL 0 */
    .quad 0x00cf93000000ffff    /* 0x10: data, DPL 0 */
    .quad 0x00cf9b000000ffff    /* 0x18: 32-bit code, DPL 0 */
    .quad 0x00affb000000ffff    /* 0x20: 64-bit code, DPL 3 */
    .quad 0x00cff3000000ffff    /* 0x28: data, DPL 3 */
    .globl gdt_tss
gdt_tss:
    .quad 0, 0                  /* 0x30: TSS */
gdt_end:
    .globl gdtr
gdtr: .word gdt_end - gdt - 1
    .quad gdt

    .text
    .code32
    .globl _start
_start:
    cli
    mov %ebx, %esi              /* multiboot information */
    /* pml4[0] -> pdpt, pdpt[0..3] -> pds, 2048 pages of 2 MiB, user-accessible */
    movl $pdpt + 7, pml4
    mov $pds + 7, %eax
    mov $pdpt, %edi
    mov $4, %ecx
1:  mov %eax, (%edi)
    add $4096, %eax
    add $8, %edi
    loop 1b
    mov $0x87, %eax
    mov $pds, %edi
    mov $2048, %ecx
2:  mov %eax, (%edi)
    add $0x200000, %eax
    add $8, %edi
    loop 2b
    xor %ebp, %ebp              /* index of this vCPU */
enter_long:
    lgdt gdtr
    mov %cr4, %eax
    or $0x6a0, %eax             /* PAE, PGE, OSFXSR, OSXMMEXCPT */
    mov %eax, %cr4
    mov $pml4, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx
    rdmsr
    or $0x901, %eax             /* SCE, LME, NXE */
    wrmsr
    mov %cr0, %eax
    and $~0xc, %eax             /* EM, TS off */
    or $0x80010023, %eax        /* PG, WP, NE, MP, PE */
    mov %eax, %cr0
    ljmp $0x08, $long_mode

    .code64
long_mode:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    xor %eax, %eax
    mov %eax, %fs
    mov %eax, %gs
    mov %ebp, %eax
    inc %eax
    shl $16, %eax
    lea stacks(%rax), %rsp
    mov %ebp, %edi
    xor %ebp, %ebp
    call guest_entry
3:  cli
    hlt
    jmp 3b

/* Copied to 0x8000 by smp_start(); vector 8. */
    .globl trampoline, trampoline_end
    .code16
trampoline:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl 0x8000 + (tramp_gdtr - trampoline)
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $0x18, $ap_32
    .align 4
tramp_gdtr:
    .word 0x3f
    .long gdt
trampoline_end:

    .code32
ap_32:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $1, %eax                /* a vCPU's index is its APIC id */
    cpuid
    shr $24, %ebx
    mov %ebx, %ebp
    jmp enter_long

/* One stub a vector: pushes a zero where the CPU pushes no error code, and the vector. */
    .text
    .code64
    .globl irq_stubs
    .align 16
irq_stubs:
    vec = 0
    .rept 256
    .align 16
    .if !((vec == 8) || (vec >= 10 && vec <= 14) || (vec == 17) || (vec == 21) || (vec == 29) || (vec == 30))
    push $0
    .endif
    push $vec
    jmp irq_common
    vec = vec + 1
    .endr

irq_common:
    push %rax; push %rcx; push %rdx; push %rbx; push %rbp; push %rsi; push %rdi
    push %r8; push %r9; push %r10; push %r11; push %r12; push %r13; push %r14; push %r15
    mov %rsp, %rdi
    cld
    mov %rsp, %rbp
    and $~15, %rsp
    call irq_dispatch
    mov %rbp, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %r11; pop %r10; pop %r9; pop %r8
    pop %rdi; pop %rsi; pop %rbp; pop %rbx; pop %rdx; pop %rcx; pop %rax
    add $16, %rsp
    iretq

    .section .note.GNU-stack, "", @progbits
