/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system half of the interpreter: fast system calls, far transfers, tasks, virtual-8086 mode. */
#include "sys-machine.h"

/* ---- Fast system calls ---- */

GUEST(sysenter, 64, "sysenter")
GUEST(sysexit, 64, ".byte 0x48, 0x0f, 0x35")

static void start_sysret(const char *vendor)
{
    start_long();
    set_vendor(vendor);
    PUT(CODE, sysret);
    PUT(UCODE, hlt);
    c->star = (uint64_t)(UCS32 & ~3u) << 48 | (uint64_t)CS64 << 32;
    c->regs[R_R8 + 3] = FL_IF | FL_CF | FL_RF | FL_VM | FL_1;
    c->regs[R_RCX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, STUBS + EXCP_GP, 0x8e, 1);
}

static void test_sysret(void)
{
    start_sysret("GenuineIntel");
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, CODE);
    g_assert_cmphex(frame64(2), ==, CS64); /* still at CPL 0 */

    start_sysret("AuthenticAMD");
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, 0x0000800000000000ull);
    g_assert_cmphex(frame64(2), ==, UCS64);

    start_sysret("GenuineIntel");
    c->regs[R_RCX] = UCODE;
    expect_vector(EXCP_GP); /* HLT at CPL 3 */
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(frame64(3) & ~FL_RF, ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(frame64(5), ==, UDS);

    start_long();
    PUT(UCODE, syscall);
    PUT(CODE, hlt);
    to_user64(UCODE);
    x86_set_rflags(c, FL_IF | FL_DF | FL_ZF | FL_1);
    c->star = (uint64_t)CS64 << 32;
    c->lstar = CODE;
    c->fmask = FL_IF | FL_DF;
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RCX], ==, UCODE + 2);
    g_assert_cmphex(c->regs[R_R8 + 3], ==, FL_IF | FL_DF | FL_ZF | FL_1);
    g_assert_cmphex(x86_get_rflags(c), ==, FL_ZF | FL_1);
    g_assert_cmphex(c->seg[R_SS].selector, ==, DS0);
    g_assert_cmphex(c->regs[R_RSP], ==, USTACK);
}

static void test_sysenter(void)
{
    start_long();
    set_vendor("GenuineIntel");
    PUT(CODE, sysexit);
    PUT(UCODE, sysenter);
    c->sysenter_cs = FREE;
    put_desc(FREE, 0, 0, 0); /* the table is not read: the segments are fixed */
    c->sysenter_esp = STACK;
    c->sysenter_eip = CODE;
    to_user64(UCODE);
    c->regs[R_RDX] = UCODE + 0x100;
    c->regs[R_RCX] = USTACK - 64;
    PUT(UCODE + 0x100, hlt);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, UCODE + 0x100);
    g_assert_cmphex(frame64(2), ==, FREE + 32 + 3);
    g_assert_cmphex(frame64(4), ==, USTACK - 64);
    g_assert_cmphex(frame64(5), ==, FREE + 40 + 3);

    start_long();
    set_vendor("AuthenticAMD");
    PUT(UCODE, sysenter);
    c->sysenter_cs = CS64;
    to_user64(UCODE);
    expect_vector(EXCP_UD);
    set_vendor("GenuineIntel");
}

/* ---- Far transfers ---- */

GUEST(call_gate64, 64, ".byte 0xff, 0x1c, 0x25; .long 0x150000; hlt") /* call far [0x150000] */
GUEST(retfq, 64, "mov ebx, 9; .byte 0x48, 0xcb")

static void test_call_gate64(void)
{
    start_long();
    put_gate(GDT + FREE, CS64, CODE, 0xec, 0);
    put64(GDT + FREE + 8, 0);
    put16(DATA + 4, FREE | 3);
    PUT(CODE, retfq);
    PUT(UCODE, call_gate64);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* the HLT after it, at CPL 3 again */
    g_assert_cmphex(frame64(1), ==, UCODE + 7);
    g_assert_cmphex(frame64(2), ==, UCS64);
    g_assert_cmphex(frame64(4), ==, USTACK);
    g_assert_cmpuint(c->regs[R_RBX], ==, 9);

    /* DPL of the gate below CPL. */
    start_long();
    put_gate(GDT + FREE, CS64, CODE, 0x8c, 0);
    put16(DATA + 4, FREE | 3);
    PUT(UCODE, call_gate64);
    to_user64(UCODE);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, FREE);
}

/* 32-bit gate with two parameters; RETF 8 releases them on both stacks. */
GUEST(call_gate32, 32, "push 0x1111; push 0x2222; .byte 0x9a; .long 0; .word 0x58; hlt")
GUEST(gate32_body, 32, "mov eax, [esp + 8]; mov ebx, [esp + 12]; retf 8")

static void test_call_gate32(void)
{
    start_32();
    put_gate(GDT + FREE, CS32, CODE, 0xec, 2);
    PUT(CODE, gate32_body);
    PUT(UCODE, call_gate32);
    load_seg(R_CS, UCS32);
    load_seg(R_SS, UDS);
    load_seg(R_DS, UDS);
    c->regs[R_RSP] = USTACK;
    c->rip = UCODE;
    begin();
    expect_vector(EXCP_GP);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x2222);
    g_assert_cmphex(c->regs[R_RBX], ==, 0x1111);
    g_assert_cmphex(frame32(1), ==, UCODE + 17);
    g_assert_cmphex(frame32(4), ==, USTACK); /* both parameters gone */
    g_assert_cmphex(frame32(5), ==, UDS);
}

/* The way up, from the state after a reset: real, protected, long mode. */
GUEST(bring_up16, 16,
      "lgdt [0x600]; mov eax, cr0; or eax, 1; mov cr0, eax; .byte 0x66, 0xea; .long 0x8000; "
      ".word 0x18")
GUEST(bring_up32, 32,
      "mov ax, 0x10; mov ds, ax; mov ss, ax; mov es, ax; mov esp, 0x180000;"
      "mov eax, cr4; or eax, 0x20; mov cr4, eax; mov eax, 0x10000; mov cr3, eax;"
      "mov ecx, 0xc0000080; rdmsr; or eax, 0x100; wrmsr; mov eax, cr0; or eax, 0x80000000;"
      "mov cr0, eax; .byte 0xea; .long 0x8100; .word 0x08")
GUEST(bring_up64, 64, "mov rax, 0x123456789abcdef0; mov rbx, rax; ror rbx, 32; hlt")

static void test_bring_up(void)
{
    start_common();
    PUT(0x7c00, bring_up16);
    PUT(0x8000, bring_up32);
    PUT(0x8100, bring_up64);
    put16(0x600, 0x1ff);
    put32(0x602, GDT);
    x86_cpu_reset(c, false);
    c->seg[R_CS].base = 0;
    c->seg[R_CS].selector = 0;
    c->rip = 0x7c00;
    begin();
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RBX], ==, 0x9abcdef012345678ull);
    g_assert_cmphex(c->efer, ==, EFER_LME | EFER_LMA);
    g_assert_true(x86_in_64bit(c));
}

/* ---- Task switches ---- */

GUEST(call_tss, 32, ".byte 0x9a; .long 0; .word 0x58; mov edx, 0x77; hlt")
GUEST(task_b, 32, "mov ebx, eax; inc dword ptr [0x150000]; iretd; inc dword ptr [0x150000]; hlt")

static void put_tss32(uint32_t at, uint32_t eip, uint16_t cs, uint16_t ldt)
{
    memset(ram + at, 0, 0x68);
    put32(at + 0x1c, PML4);
    put32(at + 0x20, eip);
    put32(at + 0x24, FL_1);
    put32(at + 0x28, 0xabcd1234); /* EAX */
    put32(at + 0x38, 0x1b0000);   /* ESP */
    put16(at + 0x48, DS0);
    put16(at + 0x4c, cs);
    put16(at + 0x50, DS0);
    put16(at + 0x54, DS0);
    put16(at + 0x60, ldt);
}

static void test_task32(void)
{
    start_32();
    PUT(CODE, call_tss);
    PUT(UCODE, task_b);
    /* CS lies in the LDT of the new task. */
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_desc(FREE + 8, LDT, 0xf, 0x0082);
    put64(LDT + 8, get64(GDT + CS32));
    put_tss32(TSS_B, UCODE, 0x0c, FREE + 8);
    expect_vector(-1);
    g_assert_cmphex(c->rip, ==, CODE + 13);
    g_assert_cmphex(c->regs[R_RDX], ==, 0x77);
    g_assert_cmpuint(get32(DATA), ==, 1);
    g_assert_cmphex(c->tr.selector, ==, TR);
    g_assert_cmphex(c->cr0 & CR0_TS, ==, CR0_TS);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x89);        /* not busy */
    g_assert_cmphex(ram[GDT + TR + 5], ==, 0x8b);          /* busy */
    g_assert_cmphex(get16(TSS_B), ==, TR);                 /* back link */
    g_assert_cmphex(get32(TSS_B + 0x34), ==, 0xabcd1234);  /* EBX of the task, saved */
    g_assert_cmphex(get32(TSS_B + 0x24) & FL_NT, ==, 0);
    g_assert_cmphex(c->rflags & FL_NT, ==, 0);

    /* CS is not a code segment: #TS in the new task, which only a task gate can serve. */
    start_32();
    PUT(CODE, call_tss);
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_tss32(TSS_B, UCODE, DS0, 0);
    put_desc(FREE + 8, TSS_B + 0x100, 0x67, 0x0089);
    put_tss32(TSS_B + 0x100, STUBS + EXCP_TS, CS32, 0);
    put_gate(IDT + EXCP_TS * 8, FREE + 8, 0, 0x85, 0);
    expect_vector(EXCP_TS);
    g_assert_cmphex(frame32(0), ==, DS0);
    g_assert_cmphex(c->tr.selector, ==, FREE + 8);
    g_assert_cmphex(get16(TSS_B + 0x100), ==, FREE);
    g_assert_cmphex(get32(TSS_B + 0x20), ==, UCODE);
    g_assert_cmphex(get32(TSS_B + 0x28), ==, 0xabcd1234);

    /* The TSS is too small: #TS in the old one. */
    start_32();
    PUT(CODE, call_tss);
    put_desc(FREE, TSS_B, 0x66, 0x0089);
    put_tss32(TSS_B, UCODE, CS32, 0);
    expect_vector(EXCP_TS);
    g_assert_cmphex(frame32(0), ==, FREE);
    g_assert_cmphex(frame32(1), ==, CODE);
    g_assert_cmphex(c->tr.selector, ==, TR);
}

GUEST(jmp_tss, 32, ".byte 0xea; .long 0; .word 0x58; hlt")
GUEST(task16, 16, "mov bx, ax; sgdt [0x9000]; hlt")

static void test_task16(void)
{
    start_32();
    PUT(CODE, jmp_tss);
    PUT(0x8000, task16);
    put_desc(FREE, TSS_B, 0x2b, 0x0081);
    put16(TSS_B + 0x0e, 0x8000);    /* IP */
    put16(TSS_B + 0x10, FL_1);      /* FLAGS */
    put16(TSS_B + 0x12, 0x1234);    /* AX */
    put16(TSS_B + 0x1a, 0xf000);    /* SP */
    put16(TSS_B + 0x20, 0x4321);    /* DI */
    put16(TSS_B + 0x22, DS16);      /* ES */
    put16(TSS_B + 0x24, CS16);
    put16(TSS_B + 0x26, DS16);
    put16(TSS_B + 0x28, DS16);
    put16(TSS_B + 0x2a, 0);         /* LDT */
    c->gdt.base |= 0; /* 32 bits are stored whatever the operand size */
    expect_vector(-1);
    g_assert_cmphex((uint16_t)c->regs[R_RBX], ==, 0x1234);
    g_assert_cmphex((uint16_t)c->regs[R_RDI], ==, 0x4321);
    g_assert_cmphex((uint16_t)c->regs[R_RSP], ==, 0xf000);
    g_assert_cmphex(c->tr.selector, ==, FREE);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x83);
    g_assert_cmphex(ram[GDT + TR + 5], ==, 0x89);
    g_assert_cmphex(get32(TSS + 0x20), ==, CODE + 7); /* EIP of the old task */
    g_assert_cmphex(get16(0x9000), ==, 0x1ff);
    g_assert_cmphex(get32(0x9002), ==, GDT);
    g_assert_cmphex(c->seg[R_FS].attr & SEG_UNUSABLE, ==, SEG_UNUSABLE);
}

static void test_sgdt16(void)
{
    start_32();
    load_seg(R_CS, CS16);
    PUT(0x8000, task16);
    c->rip = 0x8000;
    load_seg(R_DS, DS16);
    load_seg(R_SS, DS0);
    begin();
    c->gdt.base = 0x87654000;
    expect_vector(-1);
    g_assert_cmphex(get32(0x9002), ==, 0x87654000);
}

/* An exception through a task gate gets its error code on the new stack. */
static void test_task_gate_exception(void)
{
    start_32();
    PUT(CODE, int40);
    put_gate(IDT + 0x40 * 8, CS32, 0, 0x0e, 0); /* not present: #NP(0x202) */
    put_gate(IDT + EXCP_NP * 8, FREE, 0, 0x85, 0);
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_tss32(TSS_B, STUBS + EXCP_NP, CS32, 0);
    expect_vector(EXCP_NP);
    g_assert_cmphex(c->tr.selector, ==, FREE);
    g_assert_cmphex(frame32(0), ==, 0x40 * 8 + 2);
    g_assert_cmphex(c->regs[R_RSP], ==, 0x1b0000 - 4);
    g_assert_cmphex(c->rflags & FL_NT, ==, FL_NT);
    g_assert_cmphex(get32(TSS + 0x20), ==, CODE);
}

/* ---- Virtual-8086 mode ---- */

GUEST(iret_vm, 32, "iretd")
GUEST(vm_int, 16, "mov ax, 0x1234; int 0x21; mov bx, 0x55; hlt")
GUEST(vm_cli, 16, "cli; sti; pushf; pop cx; hlt")
GUEST(vm_iret, 16, "mov dx, 0x66; iret")

static void start_vm86(uint32_t flags)
{
    start_32();
    PUT(CODE, iret_vm);
    c->regs[R_RSP] = STACK - 36;
    put32(STACK - 36, 0x100);                   /* EIP */
    put32(STACK - 32, 0x900);                   /* CS */
    put32(STACK - 28, FL_VM | FL_1 | flags);    /* EFLAGS */
    put32(STACK - 24, 0xff00);                  /* ESP */
    put32(STACK - 20, 0xa00);                   /* SS */
    put32(STACK - 16, 0x111);                   /* ES DS FS GS */
    put32(STACK - 12, 0x222);
    put32(STACK - 8, 0x333);
    put32(STACK - 4, 0x444);
}

static void test_vm86(void)
{
    start_vm86(0);
    PUT(0x9100, vm_int);
    expect_vector(EXCP_GP); /* INT n with IOPL 0 */
    g_assert_cmphex(frame32(0), ==, 0);
    g_assert_cmphex(frame32(1), ==, 0x103);
    g_assert_cmphex(frame32(2), ==, 0x900);
    g_assert_cmphex(frame32(3) & FL_VM, ==, FL_VM);
    g_assert_cmphex(frame32(4), ==, 0xff00);
    g_assert_cmphex(frame32(5), ==, 0xa00);
    g_assert_cmphex(frame32(6), ==, 0x111);
    g_assert_cmphex(frame32(9), ==, 0x444);
    g_assert_cmphex(c->regs[R_RSP], ==, RSP0 - 40);
    g_assert_cmphex(c->seg[R_GS].attr & SEG_UNUSABLE, ==, SEG_UNUSABLE);
    g_assert_cmphex((uint16_t)c->regs[R_RAX], ==, 0x1234);

    /* IOPL 3: through the gate, whose DPL must allow it. */
    start_vm86(FL_IOPL);
    PUT(0x9100, vm_int);
    put_gate(IDT + 0x21 * 8, CS32, STUBS + 0x21, 0xee, 0);
    expect_vector(0x21);
    g_assert_cmphex(frame32(0), ==, 0x105);

    /* VME: redirected to the program's own handler, with virtual flags. */
    start_vm86(FL_VIF);
    c->cr4 = CR4_VME;
    begin();
    put16(TSS + 0x66, 0x88);
    memset(ram + TSS + 0x68, 0, 32);
    PUT(0x9100, vm_int);
    PUT(0x9200, vm_iret);
    put32(0x21 * 4, 0x09000200);
    expect_vector(EXCP_GP); /* HLT */
    g_assert_cmphex(frame32(1), ==, 0x108);
    g_assert_cmphex((uint16_t)c->regs[R_RDX], ==, 0x66);
    g_assert_cmphex((uint16_t)c->regs[R_RBX], ==, 0x55);
    g_assert_cmphex(frame32(3) & (FL_VIF | FL_IF), ==, FL_VIF);

    start_vm86(0);
    c->cr4 = CR4_VME;
    begin();
    PUT(0x9100, vm_cli);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame32(1), ==, 0x104);
    g_assert_cmphex(c->regs[R_RCX] & (FL_IF | FL_IOPL), ==, FL_IF | FL_IOPL);

    start_vm86(0);
    PUT(0x9100, vm_cli);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame32(1), ==, 0x100);
}

GUEST(iret_drop_gs, 64, "iretq")
GUEST(load_gs, 64, "mov rax, gs:[0x10]; ud2")

/* A data segment that the outer level may not use becomes null, but keeps its base. */
static void test_nullified_segment(void)
{
    start_long();
    PUT(CODE, iret_drop_gs);
    PUT(UCODE, load_gs);
    c->seg[R_GS].base = DATA;
    put64(DATA + 0x10, 0x1234);
    c->regs[R_RSP] = STACK - 40;
    put64(STACK - 40, UCODE);
    put64(STACK - 32, UCS64);
    put64(STACK - 24, FL_1);
    put64(STACK - 16, USTACK);
    put64(STACK - 8, UDS);
    expect_vector(EXCP_UD);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x1234);
    g_assert_cmphex(c->seg[R_GS].selector, ==, 0);
    g_assert_cmphex(c->seg[R_ES].selector, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sys_machine_make();
    g_test_add_func("/sys/sysret", test_sysret);
    g_test_add_func("/sys/sysenter", test_sysenter);
    g_test_add_func("/sys/call-gate-64", test_call_gate64);
    g_test_add_func("/sys/call-gate-32", test_call_gate32);
    g_test_add_func("/sys/bring-up", test_bring_up);
    g_test_add_func("/sys/task-32", test_task32);
    g_test_add_func("/sys/task-16", test_task16);
    g_test_add_func("/sys/sgdt-16", test_sgdt16);
    g_test_add_func("/sys/task-gate-exception", test_task_gate_exception);
    g_test_add_func("/sys/vm86", test_vm86);
    g_test_add_func("/sys/nullified-segment", test_nullified_segment);
    return g_test_run();
}
