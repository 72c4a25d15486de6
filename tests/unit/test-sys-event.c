/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system half of the interpreter: event delivery, interrupt windows, restart of instructions. */
#include "sys-machine.h"

/* ---- Event delivery ---- */

GUEST(sti_wait, 64, "sti; nop; nop; 1: jmp 1b")
static void test_ext_bit(void)
{
    start_long();
    PUT(CODE, sti_wait);
    c->idt.limit = 64 * 16 - 1;
    pending_vector = 100;
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, 0x323);
}

GUEST(load_rbx, 64, "mov rax, [rbx]; hlt")
GUEST(load_rbp, 64, "mov rax, [rbp]; hlt")
GUEST(load_rsp, 64, "mov rax, [rsp + 8]; hlt")
GUEST(push_rax, 64, "push rax; hlt")
static void test_non_canonical(void)
{
    const uint64_t bad = 0x0000800000000000ull;

    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = bad;
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);

    start_long();
    PUT(CODE, load_rbp);
    c->regs[R_RBP] = bad;
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(0), ==, 0);

    start_long();
    put_gate64(EXCP_SS, CS64, STUBS + EXCP_SS, 0x8e, 1);
    PUT(CODE, load_rsp);
    c->regs[R_RSP] = bad;
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(4), ==, bad);

    start_long();
    put_gate64(EXCP_SS, CS64, STUBS + EXCP_SS, 0x8e, 1);
    PUT(CODE, push_rax);
    c->regs[R_RSP] = bad + 8;
    expect_vector(EXCP_SS);

    /* An IST entry that is not canonical. */
    start_long();
    put64(TSS + 0x2c, bad + 0x1000);
    put_gate64(0x40, CS64, STUBS + 0x40, 0x8e, 2);
    PUT(CODE, int40);
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);
}

static void test_double_fault(void)
{
    /* #GP whose gate is not present: #NP during #GP is #DF with error code 0. */
    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, 0, 0x0e, 0);
    expect_vector(EXCP_DF);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);

    /* #PF on the stack of #PF. */
    start_long();
    PUT(CODE, push_rax);
    put64(PT + (STACK - 8) / 0x1000 * 8, 0);
    put_gate64(EXCP_DF, CS64, STUBS + EXCP_DF, 0x8e, 1);
    expect_vector(EXCP_DF);
    g_assert_cmphex(c->regs[R_RSP], ==, IST1 - 48);
    g_assert_cmphex(frame64(4), ==, STACK);

    /* A benign event and a fault are two faults: INT n through a bad gate. */
    start_long();
    PUT(CODE, int40);
    put_gate64(0x40, CS64, 0, 0x0e, 0);
    expect_vector(EXCP_NP);
    g_assert_cmphex(frame64(0), ==, 0x40 * 8 + 2);

    /* And the third: shutdown. */
    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, 0, 0x0e, 0);
    put_gate64(EXCP_DF, CS64, 0, 0x0e, 0);
    expect_vector(256);
}

GUEST(reload_ds, 64, "mov ds, ax; hlt")
GUEST(user_int, 64, "int 0x40; hlt")
GUEST(set_cr3, 64, "mov cr3, rax; nop; hlt")

static void test_nowhere(void)
{
    start_long();
    PUT(CODE, int40);
    c->idt.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(CODE, int40);
    c->gdt.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(UCODE, user_int);
    put_gate64(0x40, CS64, STUBS + 0x40, 0xee, 0);
    to_user64(UCODE);
    c->tr.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(CODE, set_cr3);
    c->regs[R_RAX] = NOWHERE;
    expect_vector(256);

    /* Paged in, but with no memory behind it. */
    start_long();
    PUT(CODE, int40);
    put64(PT + IDT / 0x1000 * 8, NOWHERE | RWU);
    expect_vector(256);

    start_32();
    PUT(CODE, int40);
    c->idt.base = NOWHERE;
    expect_vector(256);
}

GUEST(int_then_mark, 64, "int 0x40; mov ebx, 1234; hlt")
GUEST(iretq, 64, "mov ecx, 77; iretq")

static void test_user_int(void)
{
    start_long();
    PUT(UCODE, int_then_mark);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* gate's DPL is 0 */
    g_assert_cmphex(frame64(0), ==, 0x40 * 8 + 2);
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(frame64(2), ==, UCS64);
    g_assert_cmphex(frame64(4), ==, USTACK);
    g_assert_cmphex(frame64(5), ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, RSP0 - 48);
    g_assert_cmphex(c->seg[R_SS].selector, ==, 0);

    start_long();
    PUT(UCODE, int_then_mark);
    PUT(CODE, iretq);
    put_gate64(0x40, CS64, CODE, 0xee, 1);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* back at CPL 3, HLT faults */
    g_assert_cmphex(frame64(1), ==, UCODE + 7);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1234);
    g_assert_cmpuint(c->regs[R_RCX], ==, 77);
}

/* ---- Interrupt windows ---- */

GUEST(cli_sti_loop, 64, "mov ecx, 1000; 1: cli; call 2f; dec ecx; jnz 1b; hlt; 2: sti; ret")
GUEST(sti_hlt, 64, "sti; hlt; mov ebx, 5; hlt")
#define MOV_SS_CX ".byte 0x8e, 0xd1;" /* assemblers do not agree on a prefix */
GUEST(mov_ss_twice, 64, "sti; nop; mov edx, 0x500; in ax, dx;"
                        MOV_SS_CX MOV_SS_CX "nop; nop; hlt")
GUEST(mov_ss_once, 64, "sti; nop; mov edx, 0x500; in ax, dx;"
                       MOV_SS_CX "nop; nop; hlt")

static void test_windows(void)
{
    start_long();
    PUT(CODE, cli_sti_loop);
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 11); /* after the first CALL: STI, RET, then it came */
    g_assert_cmpuint(c->regs[R_RCX], ==, 1000);

    /* STI as the last byte of a page. */
    start_long();
    put_code(CODE + 0xfff, (const uint8_t[]){ 0xfb, 0x90, 0x90, 0xf4 }, 4);
    c->rip = CODE + 0xfff;
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 0x1001);

    start_long();
    PUT(CODE, sti_hlt);
    PUT(CODE + 0x100, iretq);
    put_gate64(0x40, CS64, CODE + 0x100, 0x8e, 0);
    pending_vector = 0x40;
    expect_vector(-1); /* wakes, returns behind the HLT and goes on to the next one */
    g_assert_cmpuint(c->regs[R_RBX], ==, 5);
    g_assert_cmphex(c->rip, ==, CODE + 8);

    start_long();
    PUT(CODE, mov_ss_once);
    c->regs[R_RCX] = DS0;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 12); /* the NOP after it ran */
    start_long();
    PUT(CODE, mov_ss_twice);
    c->regs[R_RCX] = DS0;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 13); /* after the second, not one later */
}

GUEST(cr8_window, 64, "mov eax, 15; mov cr8, rax; sti; nop; nop; mov eax, 2;"
                      "mov cr8, rax; nop; hlt")

static void test_cr8(void)
{
    start_long();
    PUT(CODE, cr8_window);
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(c->regs[R_RAX], ==, 2);
    g_assert_cmphex(frame64(0), ==, CODE + 21);
}

/* The handler raises two more NMIs while it runs: one of them stays, until IRET. */
GUEST(nmi_main, 64, "mov edx, 0x500; mov al, 0xff; out dx, al; jmp 1f; 1: nop; hlt")
GUEST(nmi_handler, 64, "inc ebx; cmp ebx, 1; jne 1f; out dx, al; jmp 2f; 2: out dx, al; jmp 3f;"
                       "3: inc r8d; 1: mov r9d, r8d; iretq")

static void test_nmi(void)
{
    start_long();
    PUT(CODE, nmi_main);
    PUT(CODE + 0x100, nmi_handler);
    put_gate64(EXCP_NMI, CS64, CODE + 0x100, 0x8e, 0);
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RBX], ==, 2);
    g_assert_cmpuint(c->regs[R_R8 + 1], ==, 1); /* the second came when the first was over */
    g_assert_false(c->nmi_blocked);
    g_assert_false(c->nmi_pending);
}

/* ---- Restart and precision ---- */

GUEST(rep_movsb, 64, "rep movsb; hlt")
GUEST(fix_page, 64, "push rax; mov qword ptr [0x13000 + 0x151 * 8], 0x151007; invlpg [0x151000];"
                    "pop rax; add rsp, 8; iretq")
GUEST(pop_mem, 64, "pop qword ptr [rsp + rbx]; hlt")

static void test_restart(void)
{
    start_long();
    PUT(CODE, rep_movsb);
    put64(PT + 0x151 * 8, 0);
    for (unsigned n = 0; n < 256; n++) {
        ram[DATA + n] = (uint8_t)n;
    }
    c->regs[R_RSI] = DATA;
    c->regs[R_RDI] = DATA + 0x1000 - 100;
    c->regs[R_RCX] = 256;
    expect_vector(EXCP_PF);
    g_assert_cmphex(frame64(0), ==, PF_W);
    g_assert_cmphex(c->cr2, ==, DATA + 0x1000);
    g_assert_cmpuint(c->regs[R_RCX], ==, 156);
    g_assert_cmphex(c->regs[R_RSI], ==, DATA + 100);
    g_assert_cmphex(c->regs[R_RDI], ==, DATA + 0x1000);
    g_assert_cmphex(frame64(1), ==, CODE);
    /* A handler that repairs it. */
    PUT(CODE + 0x100, fix_page);
    put_gate64(EXCP_PF, CS64, CODE + 0x100, 0x8e, 0);
    c->rip = CODE;
    c->regs[R_RSP] = STACK;
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RCX], ==, 0);
    g_assert_cmpint(memcmp(ram + DATA, ram + DATA + 0x1000 - 100, 100), ==, 0);
    g_assert_cmpint(memcmp(ram + DATA + 100, ram + DATA + 0x1000, 156), ==, 0);

    start_long();
    PUT(CODE, pop_mem);
    put64(PT + 0x151 * 8, 0);
    c->regs[R_RBX] = 0x151000 - STACK;
    put_gate64(EXCP_PF, CS64, STUBS + EXCP_PF, 0x8e, 1);
    expect_vector(EXCP_PF);
    g_assert_cmphex(frame64(4), ==, STACK);
}

static void test_split_instruction(void)
{
    /* mov eax, imm32 with its last two bytes in a page that is not there. */
    start_long();
    put_code(CODE + 0xffd, (const uint8_t[]){ 0xb8, 1, 2, 3, 4, 0xf4 }, 6);
    put64(PT + (CODE + 0x1000) / 0x1000 * 8, 0);
    c->rip = CODE + 0xffd;
    expect_vector(EXCP_PF);
    g_assert_cmphex(c->cr2, ==, CODE + 0x1000);
    g_assert_cmphex(frame64(1), ==, CODE + 0xffd);
    g_assert_cmphex(c->regs[R_RAX], ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sys_machine_make();
    g_test_add_func("/sys/ext-bit", test_ext_bit);
    g_test_add_func("/sys/non-canonical", test_non_canonical);
    g_test_add_func("/sys/double-fault", test_double_fault);
    g_test_add_func("/sys/nowhere", test_nowhere);
    g_test_add_func("/sys/user-int", test_user_int);
    g_test_add_func("/sys/interrupt-windows", test_windows);
    g_test_add_func("/sys/cr8", test_cr8);
    g_test_add_func("/sys/nmi", test_nmi);
    g_test_add_func("/sys/restart", test_restart);
    g_test_add_func("/sys/split-instruction", test_split_instruction);
    return g_test_run();
}
