/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system half of the interpreter: control registers, debug facilities, I/O rights, segments, real mode. */
#include "sys-machine.h"

/* ---- Control registers ---- */

GUEST(mov_cr0, 64, "mov cr0, rax; hlt")
GUEST(mov_cr4, 64, "mov cr4, rax; hlt")
GUEST(mov_cr3, 64, "mov cr3, rax; hlt")
GUEST(mov_cr8, 64, "mov cr8, rax; hlt")

static void expect_cr(const char *what, bool ok)
{
    int v = go();

    if (v != (ok ? -1 : EXCP_GP)) {
        g_error("%s: vector %d", what, v);
    }
}

static void try_cr0(uint64_t v, bool ok)
{
    start_long();
    PUT(CODE, mov_cr0);
    c->regs[R_RAX] = v;
    expect_cr("cr0", ok);
}

static void try_cr4(uint64_t v, bool ok)
{
    start_long();
    PUT(CODE, mov_cr4);
    c->regs[R_RAX] = v;
    expect_cr("cr4", ok);
}

static void test_control_registers(void)
{
    const uint64_t cr0 = CR0_PE | CR0_PG | CR0_ET | CR0_NE;

    try_cr0(cr0, true);
    try_cr0(cr0 | CR0_NW, false);
    try_cr0(cr0 | CR0_NW | CR0_CD, true);
    try_cr0(cr0 & ~CR0_PE, false);
    try_cr0(cr0 & ~CR0_PG, false); /* from 64-bit code */
    try_cr0(cr0 | BIT64(32), false);
    try_cr4(CR4_PAE | CR4_UMIP | CR4_FSGSBASE | CR4_PCE, true);
    try_cr4(0, false); /* PAE may not go in long mode */
    try_cr4(CR4_PAE | CR4_LA57, false);
    try_cr4(CR4_PAE | BIT64(40), false);
    try_cr4(CR4_PAE | CR4_PCIDE, true);
    start_long();
    PUT(CODE, mov_cr4);
    c->cr3 = PML4 | 8;
    c->regs[R_RAX] = CR4_PAE | CR4_PCIDE;
    expect_cr("pcide", false);
    start_long();
    PUT(CODE, mov_cr3);
    c->regs[R_RAX] = PML4 | BIT64(63);
    expect_cr("cr3", false); /* bit 63 without PCIDE */
    start_long();
    PUT(CODE, mov_cr8);
    c->regs[R_RAX] = 16;
    expect_cr("cr8", false);
}

/* ---- Debug ---- */

GUEST(nops, 64, "nop; nop; nop; mov [0x150000], eax; nop; hlt")
GUEST(read_dr, 64, "mov rax, dr0; hlt")
GUEST(popf_tf, 64, "pushf; or qword ptr [rsp], 0x100; popf; nop; nop; hlt")
GUEST(set_rf_iret, 64, "or qword ptr [rsp + 16], 0x10000; inc ebx; iretq")

static void test_debug(void)
{
    /* TF by POPF: the trap comes after the instruction that follows it. */
    start_long();
    PUT(CODE, popf_tf);
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE + 11);
    g_assert_cmphex(c->dr[6] & DR6_BS, ==, DR6_BS);
    g_assert_cmphex(frame64(2) & FL_TF, ==, FL_TF);
    g_assert_cmphex(c->rflags & FL_TF, ==, 0);

    /* Instruction breakpoint: a fault before it; RF lets it pass. */
    start_long();
    PUT(CODE, nops);
    PUT(CODE + 0x100, set_rf_iret);
    put_gate64(EXCP_DB, CS64, CODE + 0x100, 0x8e, 0);
    c->dr[1] = CODE + 2;
    c->dr[7] = 0x400 | 8;
    begin();
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1);
    g_assert_cmphex(c->dr[6] & 15, ==, 2);

    /* Data breakpoint: a trap after the store. */
    start_long();
    PUT(CODE, nops);
    c->regs[R_RAX] = 0xfeed;
    c->dr[0] = DATA;
    c->dr[7] = 0x400 | 2 | 1u << 16 | 3u << 18;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE + 10);
    g_assert_cmphex(get32(DATA), ==, 0xfeed);
    g_assert_cmphex(c->dr[6] & (15 | DR6_BS), ==, 1);

    /* General detect. */
    start_long();
    PUT(CODE, read_dr);
    c->dr[7] = 0x400 | DR7_GD;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE);
    g_assert_cmphex(c->dr[6] & DR6_BD, ==, DR6_BD);
    g_assert_cmphex(c->dr[7] & DR7_GD, ==, 0);
}

GUEST(ss_watch_int3, 64, "mov ss, [0x150000]; int3; hlt")

/* A data breakpoint hit by MOV SS waits for the next instruction, INT3 included. */
static void test_debug_movss(void)
{
    start_long();
    PUT(CODE, ss_watch_int3);
    put16(DATA, DS0);
    c->dr[0] = DATA;
    c->dr[7] = 0x400 | 2 | 3u << 16 | 1u << 18;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, STUBS + EXCP_BP);
    g_assert_cmphex(frame64(6), ==, CODE + 8); /* INT3's frame, under the alignment */
    g_assert_cmphex(c->dr[6] & 15, ==, 1);
}

GUEST(nop_ud, 64, "nop; ud2")

static void test_debug_fast_calls(void)
{
    /* SYSRET that sets TF: the trap comes before the next instruction. */
    start_long();
    set_vendor("GenuineIntel");
    PUT(CODE, sysret);
    PUT(UCODE, nop_ud);
    c->star = (uint64_t)(UCS32 & ~3u) << 48 | (uint64_t)CS64 << 32;
    c->regs[R_R8 + 3] = FL_TF | FL_1;
    c->regs[R_RCX] = UCODE;
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, UCODE);
    g_assert_cmphex(frame64(1), ==, UCS64);
    g_assert_cmphex(c->dr[6] & DR6_BS, ==, DR6_BS);

    /* SYSCALL whose mask clears TF: none. */
    start_long();
    PUT(UCODE, syscall);
    PUT(CODE, hlt);
    to_user64(UCODE);
    x86_set_rflags(c, FL_TF | FL_1);
    c->star = (uint64_t)CS64 << 32;
    c->lstar = CODE;
    c->fmask = FL_TF;
    expect_vector(-1);
}

/* ---- I/O, UMIP, selectors ---- */

GUEST(user_in, 64, "mov edx, 0x500; in eax, dx; mov edx, 0x508; in al, dx; hlt")
GUEST(user_sgdt, 64, "sgdt [0x150000]; hlt")
GUEST(lar_lsl, 64, "mov ecx, 0x08; lar eax, ecx; setz bl; lsl edx, ecx; mov ecx, 0x1f0;"
                   "lar esi, ecx; setz bh; mov ecx, 0x10; verw cx; setz dil; hlt")

static void test_io_and_selectors(void)
{
    start_long();
    PUT(UCODE, user_in);
    to_user64(UCODE);
    memset(ram + TSS + 0x68, 0xff, 0x200);
    ram[TSS + 0x68 + 0x500 / 8] = 0xf0;
    expect_vector(EXCP_GP); /* the second IN */
    g_assert_cmphex(frame64(1), ==, UCODE + 11);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x5a5a5a5a);

    start_long();
    PUT(UCODE, user_sgdt);
    c->cr4 |= CR4_UMIP;
    to_user64(UCODE);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(get64(DATA), ==, 0);

    start_long();
    PUT(CODE, lar_lsl);
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x00af9b00);
    g_assert_cmphex(c->regs[R_RDX], ==, 0xffffffff);
    g_assert_cmphex(c->regs[R_RBX] & 0xffff, ==, 0x0001);
    g_assert_cmphex(c->regs[R_RDI] & 0xff, ==, 1);
}

/* ---- Segments ---- */

GUEST(load_es, 32, "mov es, ax; hlt")
GUEST(store_es, 32, "mov es:[ebx], al; hlt")

static void try_es(uint32_t attr, uint16_t sel, int vector, uint32_t error)
{
    start_32();
    put_desc(FREE, 0, 0xfff, attr);
    PUT(CODE, load_es);
    c->regs[R_RAX] = sel;
    expect_vector(vector);
    if (vector >= 0) {
        g_assert_cmphex(frame32(0), ==, error);
        g_assert_cmphex(c->seg[R_ES].selector, ==, DS0);
    }
}

static void try_store(uint32_t attr, uint32_t limit, uint32_t off, int vector)
{
    start_32();
    put_desc(FREE, DATA, limit, attr);
    load_seg(R_ES, FREE);
    begin();
    PUT(CODE, store_es);
    c->regs[R_RBX] = off;
    c->regs[R_RAX] = 0x99;
    expect_vector(vector);
    g_assert_cmphex(ram[DATA + off], ==, vector < 0 ? 0x99 : 0);
}

static void test_segments(void)
{
    try_es(0x4092, FREE, -1, 0);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x93); /* accessed */
    try_es(0x4012, FREE, EXCP_NP, FREE);
    try_es(0x4098, FREE, EXCP_GP, FREE); /* execute-only */
    try_es(0x4092, FREE | 3, EXCP_GP, FREE);
    try_es(0x4092, 0x200, EXCP_GP, 0x200); /* outside the table */
    try_es(0x4092, 0, -1, 0);              /* null */
    try_es(0x4092, FREE | 4, EXCP_GP, FREE | 4); /* no LDT */
    try_store(0x4093, 0xfff, 0xfff, -1);
    try_store(0x4093, 0xfff, 0x1000, EXCP_GP);
    try_store(0x4091, 0xfff, 0x10, EXCP_GP);  /* read-only */
    try_store(0x4097, 0xfff, 0xfff, EXCP_GP); /* expand down */
    try_store(0x4097, 0xfff, 0x1000, -1);
    try_store(0x0097, 0xfff, 0xffff, -1);
    try_store(0x0097, 0xfff, 0x10000, EXCP_GP); /* 16-bit: ends at 64 KiB */
}

GUEST(push_fs64, 64, "push fs; pop gs; hlt")
GUEST(push_fs32, 32, "push fs; pop gs; hlt")
GUEST(push_fs16, 32, "data16 push fs; data16 pop gs; hlt")

static void test_push_seg(void)
{
    start_long();
    load_seg(R_FS, UDS);
    begin();
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs64);
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, UDS);
    g_assert_cmphex(c->seg[R_GS].selector, ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);

    start_32();
    load_seg(R_FS, UDS);
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs32);
    begin();
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, (uint64_t)(0xffff0000u | UDS) << 32 | 0xffffffff);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);

    start_32();
    load_seg(R_FS, UDS);
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs16);
    begin();
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, (uint64_t)UDS << 48 | 0xffffffffffff);
    g_assert_cmphex(c->seg[R_GS].selector, ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);
}

/* ---- Real mode ---- */

GUEST(real_int, 16, "int 0x21; mov bx, 1; hlt")
GUEST(real_iret, 16, "mov cx, 2; iret")
GUEST(real_wrap, 16, "mov ax, [bx]; hlt")

static void start_real(void)
{
    start_common();
    x86_cpu_reset(c, false);
    c->seg[R_CS].base = 0;
    c->seg[R_CS].selector = 0;
    c->idt = (TableReg){ 0, 0x3ff };
    for (unsigned n = 0; n < 256; n++) {
        put32(n * 4, STUBS + n);
    }
    c->rip = 0x8000;
    c->regs[R_RSP] = 0xf000;
    begin();
}

static void test_real(void)
{
    start_real();
    PUT(0x8000, real_int);
    PUT(0x9000, real_iret);
    put32(0x21 * 4, 0x09000000);
    x86_set_rflags(c, FL_IF | FL_CF | FL_1);
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RCX], ==, 2);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1);
    g_assert_cmphex(x86_get_rflags(c), ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(get16(0xeffe), ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(get16(0xeffa), ==, 0x8002);

    start_real();
    PUT(0x8000, real_wrap);
    c->regs[R_RBX] = 0xffff;
    expect_vector(EXCP_GP);
    g_assert_cmphex(get16(0xeffa), ==, 0x8000); /* and no error code */

    start_real();
    PUT(0x8000, real_int);
    c->idt.limit = 0x21 * 4 + 2;
    expect_vector(EXCP_GP);
    c->idt.limit = 0;
    c->rip = 0x8000;
    expect_vector(256);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sys_machine_make();
    g_test_add_func("/sys/control-registers", test_control_registers);
    g_test_add_func("/sys/debug", test_debug);
    g_test_add_func("/sys/debug-movss", test_debug_movss);
    g_test_add_func("/sys/debug-fast-calls", test_debug_fast_calls);
    g_test_add_func("/sys/io-selectors", test_io_and_selectors);
    g_test_add_func("/sys/segments", test_segments);
    g_test_add_func("/sys/push-segment", test_push_seg);
    g_test_add_func("/sys/real", test_real);
    return g_test_run();
}
