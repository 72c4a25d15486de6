/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accel/tcg: engine and integer instructions on a bare CPU. The cases are those other emulators
 * got wrong; the random comparison with the host is tests/diff.
 */
#include <glib.h>
#include <string.h>
#include "interp-vm.h"

#define PG_P 1u
#define PG_W 2u
#define PG_U 4u

static Vm *vm;
static X86CPU *c;

#define R(r) (c->regs[R_##r])

static void setup(void)
{
    vm = vm_get();
    c = vm->c;
    vm_reset_long(vm);
}

static uint64_t mem64(uint64_t at)
{
    uint64_t v;

    memcpy(&v, vm->ram + at, 8);
    return v;
}
static void mem64_set(uint64_t at, uint64_t v)
{
    memcpy(vm->ram + at, &v, 8);
}

static void assert_ok(VmFault f)
{
    g_assert_cmpint(f.vector, ==, -1);
}
static void assert_fault(VmFault f, int vector, uint64_t error, uint64_t rip)
{
    g_assert_cmpint(f.vector, ==, vector);
    g_assert_cmphex(f.error, ==, error);
    g_assert_cmphex(f.rip, ==, rip);
}

/* ---- Flags ---- */

CODE(blsi, "stc; mov $1, %eax; blsi %eax, %ebx; pushf; pop %rsi\n"
           "clc; xor %eax, %eax; stc; blsi %rax, %rbx; pushf; pop %rdi");

/* Case 1: CF of BLSI is "source not zero". */
static void test_blsi(void)
{
    setup();
    assert_ok(RUN(blsi));
    g_assert_cmphex(R(RSI) & (FL_CF | FL_ZF), ==, FL_CF);
    g_assert_cmphex(R(RDI) & (FL_CF | FL_ZF), ==, FL_ZF);
}

CODE(bextr, "mov $-1, %rax; mov $0x4040, %ecx; bextr %rcx, %rax, %rbx; pushf; pop %rsi\n"
            "mov $64, %ecx; bzhi %rcx, %rax, %rdx; pushf; pop %rdi");
CODE(adx, "mov $-1, %rax; mov $1, %ebx; xor %ecx, %ecx; stc; adox %rbx, %rax; pushf; pop %rsi\n"
          "mov $-1, %rax; clc; adcx %rbx, %rax; pushf; pop %rdi");

/* Case 2. */
static void test_bextr_bzhi_adx(void)
{
    setup();
    assert_ok(RUN(bextr));
    g_assert_cmphex(R(RBX), ==, 0);
    g_assert_cmphex(R(RSI) & (FL_ZF | FL_CF | FL_OF), ==, FL_ZF);
    g_assert_cmphex(R(RDX), ==, UINT64_MAX);
    g_assert_cmphex(R(RDI) & (FL_CF | FL_SF), ==, FL_CF | FL_SF);
    setup();
    assert_ok(RUN(adx));
    /* XOR left ZF, PF set; ADOX makes OF only, ADCX CF only. */
    g_assert_cmphex(R(RSI) & (FL_OF | FL_CF | FL_ZF), ==, FL_OF | FL_CF | FL_ZF);
    g_assert_cmphex(R(RDI) & FL_CF, ==, FL_CF);
    g_assert_cmphex(R(RDI) & FL_OF, ==, FL_OF);
}

CODE(shift0, "xor %eax, %eax; mov $0, %cl; shl %cl, %ebx; pushf; pop %rsi\n"
             "mov $32, %cl; shr %cl, %ebx; pushf; pop %rdi\n"
             "mov $-1, %edx; mov $2, %cl; shl %cl, %edx; pushf; pop %r8\n"
             "mov $9, %cl; stc; mov $0x5a, %bh; rcr %cl, %bh; pushf; pop %r9");

/* Case 3: a count of 0 keeps the flags; RCR of 9 bits by 9 changes nothing. */
static void test_shift_count(void)
{
    setup();
    R(RBX) = 0xdeadbeefcafebabe;
    assert_ok(RUN(shift0));
    g_assert_cmphex(R(RSI) & FL_ARITH, ==, FL_ZF | FL_PF);
    g_assert_cmphex(R(RDI) & FL_ARITH, ==, FL_ZF | FL_PF);
    g_assert_cmphex(R(RBX), ==, 0xcafe5abe);
    g_assert_cmphex(R(RDX), ==, 0xfffffffc);
    g_assert_cmphex(c->regs[8] & (FL_CF | FL_SF | FL_PF), ==, FL_CF | FL_SF | FL_PF);
    g_assert_cmphex(c->regs[9] & FL_CF, ==, FL_CF);
}

CODE(callflags, "mov $5, %eax; cmp $3, %eax; call 1f; ja 2f; hlt\n"
                "1: ret\n2: mov $1, %ebx");

/* Case 25. */
static void test_call_keeps_flags(void)
{
    setup();
    assert_ok(RUN(callflags));
    g_assert_cmphex(R(RBX), ==, 1);
}

/* ---- CMPXCHG ---- */

CODE(cmpxchg, "cmpxchg %ecx, (%rsi)");
CODE(cmpxchg8b, "lock cmpxchg8b (%rsi)");
CODE(cmpxchg16b, "lock cmpxchg16b (%rsi)");

/* Case 4: a failing CMPXCHG writes; success leaves the upper half of RAX. */
static void test_cmpxchg(void)
{
    setup();
    vm_map(vm, VM_DATA, VM_DATA | PG_P | PG_U);
    R(RSI) = VM_DATA;
    R(RAX) = 5;
    assert_fault(RUN(cmpxchg), EXCP_PF, 3, VM_CODE);
    g_assert_cmphex(c->cr2, ==, VM_DATA);
    setup();
    mem64_set(VM_DATA, 0x1122334455667788);
    R(RSI) = VM_DATA;
    R(RAX) = 0xaaaaaaaa55667788;
    R(RCX) = 7;
    assert_ok(RUN(cmpxchg));
    g_assert_cmphex(mem64(VM_DATA), ==, 0x1122334400000007);
    g_assert_cmphex(R(RAX), ==, 0xaaaaaaaa55667788);
    g_assert_cmphex(x86_get_rflags(c) & FL_ZF, ==, FL_ZF);
}

/* Case 5 and the pair forms; the locked one over a page's end works piecewise. */
static void test_cmpxchg_pair(void)
{
    setup();
    R(RSI) = VM_DATA + 8;
    assert_fault(RUN(cmpxchg16b), EXCP_GP, 0, VM_CODE);
    setup();
    mem64_set(VM_DATA, 1);
    mem64_set(VM_DATA + 8, 2);
    R(RSI) = VM_DATA;
    R(RAX) = 1;
    R(RDX) = 2;
    R(RBX) = 3;
    R(RCX) = 4;
    assert_ok(RUN(cmpxchg16b));
    g_assert_cmphex(mem64(VM_DATA), ==, 3);
    g_assert_cmphex(mem64(VM_DATA + 8), ==, 4);
    setup();
    mem64_set(VM_DATA + 0xffc, 0x0000000200000001);
    R(RSI) = VM_DATA + 0xffc;
    R(RAX) = 1;
    R(RDX) = 2;
    R(RBX) = 0x33;
    R(RCX) = 0x44;
    assert_ok(RUN(cmpxchg8b));
    g_assert_cmphex(mem64(VM_DATA + 0xffc), ==, 0x0000004400000033);
}

/* ---- Addresses ---- */

CODE(noncanon, "mov (%rax), %rbx");
CODE(noncanon_sp, "push %rax");
CODE(noncanon_bp, "mov (%rbp), %rbx");
CODE(jmp_noncanon, "jmp *%rax");

/* Case 6. */
static void test_noncanonical(void)
{
    setup();
    R(RAX) = 0x8000000000000000;
    assert_fault(RUN(noncanon), EXCP_GP, 0, VM_CODE);
    setup();
    R(RSP) = 0x0000800000000008;
    assert_fault(RUN(noncanon_sp), EXCP_SS, 0, VM_CODE);
    setup();
    R(RBP) = 0x0000800000000000;
    assert_fault(RUN(noncanon_bp), EXCP_SS, 0, VM_CODE);
    setup();
    R(RAX) = 0x0000800000000000;
    assert_fault(RUN(jmp_noncanon), EXCP_GP, 0, VM_CODE);
}

CODE(pop_sp, "popq 0x40(%rsp)");

/* Case 23: the address is made with the new RSP, and a fault gives the old one back. */
static void test_pop_rsp_relative(void)
{
    setup();
    R(RSP) = VM_DATA;
    mem64_set(VM_DATA, 0x77);
    assert_ok(RUN(pop_sp));
    g_assert_cmphex(mem64(VM_DATA + 0x48), ==, 0x77);
    g_assert_cmphex(R(RSP), ==, VM_DATA + 8);
    setup();
    R(RSP) = VM_DATA + 0xfc0;
    vm_map(vm, VM_DATA + 0x1000, 0);
    VmFault f = RUN(pop_sp);
    assert_fault(f, EXCP_PF, 2, VM_CODE);
    g_assert_cmphex(f.rsp, ==, VM_DATA + 0xfc0);
}

CODE(split, "movabs $0x1122334455667788, %rax");

/* Case 26: the second half of an instruction is on a page that is not there. */
static void test_split_instruction(void)
{
    uint64_t at = VM_CODE + 0x1000 - 4;

    setup();
    assert_ok(RUN_AT(at, split));
    g_assert_cmphex(R(RAX), ==, 0x1122334455667788);
    setup();
    vm_map(vm, VM_CODE + 0x1000, 0);
    assert_fault(RUN_AT(at, split), EXCP_PF, 0x10, at);
    g_assert_cmphex(c->cr2, ==, VM_CODE + 0x1000);
    /* Decoded before, unmapped after. */
    vm_reset_long(vm);
    assert_ok(RUN_AT(at, split));
    vm_map(vm, VM_CODE + 0x1000, 0);
    c->rip = at;
    R(RSP) = VM_STACK;
    assert_fault(vm_go(vm), EXCP_PF, 0x10, at);
}

CODE(toolong, ".fill 15, 1, 0x66; nop");
CODE(maxlong, ".fill 14, 1, 0x66; nop");
CODE(badlock, "lock; add %eax, %ebx");

static void test_length_and_lock(void)
{
    setup();
    assert_ok(RUN(maxlong));
    setup();
    assert_fault(RUN(toolong), EXCP_GP, 0, VM_CODE);
    setup();
    assert_fault(RUN(badlock), EXCP_UD, 0, VM_CODE);
}

/* ---- Division ---- */

CODE(div0, "xor %ecx, %ecx; div %ecx");
CODE(idiv_over, "mov $0x8000000000000000, %rax; cqo; mov $-1, %rcx; idiv %rcx");
CODE(idiv8_min, "mov $-128, %ax; mov $1, %cl; idiv %cl");
CODE(idiv8_over, "mov $128, %ax; mov $1, %cl; idiv %cl");
CODE(idiv_mix, "mov $-7, %rax; cqo; mov $2, %ecx; idiv %rcx");

static void test_division(void)
{
    setup();
    assert_fault(RUN(div0), EXCP_DE, 0, VM_CODE + 2);
    setup();
    assert_fault(RUN(idiv_over), EXCP_DE, 0, VM_CODE + LEN(idiv_over) - 3);
    setup();
    assert_ok(RUN(idiv8_min));
    g_assert_cmphex(R(RAX) & 0xffff, ==, 0x0080);
    setup();
    assert_fault(RUN(idiv8_over), EXCP_DE, 0, VM_CODE + LEN(idiv8_over) - 2);
    setup();
    assert_ok(RUN(idiv_mix));
    g_assert_cmpint((int64_t)R(RAX), ==, -3);
    g_assert_cmpint((int64_t)R(RDX), ==, -1);
}

/* ---- Strings ---- */

CODE(movs, "cld; rep movsb");
CODE(movsq_back, "std; rep movsq; cld");
CODE(stos, "rep stosl");
CODE(scas, "repne scasb");
CODE(cmps, "repe cmpsb");
CODE(movs_a32, "addr32 rep movsb");

/* Case 22: a fault in the middle leaves the registers at the element that faulted. */
static void test_rep_restart(void)
{
    VmFault f;

    setup();
    for (unsigned n = 0; n < 0x3000; n++) {
        vm->ram[VM_DATA + n] = (uint8_t)(n * 7);
    }
    vm_map(vm, VM_DATA + 0x11000, 0);
    R(RSI) = VM_DATA + 5;
    R(RDI) = VM_DATA + 0x10000;
    R(RCX) = 0x1800;
    f = RUN(movs);
    assert_fault(f, EXCP_PF, 2, VM_CODE + 1);
    g_assert_cmphex(c->cr2, ==, VM_DATA + 0x11000);
    g_assert_cmphex(R(RCX), ==, 0x800);
    g_assert_cmphex(R(RSI), ==, VM_DATA + 0x1005);
    g_assert_cmphex(R(RDI), ==, VM_DATA + 0x11000);
    vm_map(vm, VM_DATA + 0x11000, (VM_DATA + 0x11000) | 7);
    c->rip = f.rip;
    R(RSP) = f.rsp;
    assert_ok(vm_go(vm));
    g_assert_cmphex(R(RCX), ==, 0);
    g_assert_cmpint(memcmp(vm->ram + VM_DATA + 5, vm->ram + VM_DATA + 0x10000, 0x1800), ==, 0);
}

static void test_rep_forms(void)
{
    setup();
    memcpy(vm->ram + VM_DATA, "abc", 3);
    R(RSI) = VM_DATA;
    R(RDI) = VM_DATA + 3;
    R(RCX) = 30;
    assert_ok(RUN(movs));
    g_assert_cmpint(memcmp(vm->ram + VM_DATA + 27, "abcabc", 6), ==, 0);
    setup();
    for (unsigned n = 0; n < 1024; n++) {
        mem64_set(VM_DATA + n * 8, n);
    }
    R(RSI) = VM_DATA + 1023 * 8;
    R(RDI) = VM_DATA + 1025 * 8;
    R(RCX) = 1024;
    assert_ok(RUN(movsq_back));
    g_assert_cmphex(mem64(VM_DATA + 2 * 8), ==, 0);
    g_assert_cmphex(mem64(VM_DATA + 1025 * 8), ==, 1023);
    g_assert_cmphex(R(RDI), ==, VM_DATA + 8);
    setup();
    R(RAX) = 0xffffffff01020304;
    R(RDI) = VM_DATA + 1;
    R(RCX) = 3000;
    assert_ok(RUN(stos));
    g_assert_cmphex(mem64(VM_DATA + 1 + 2998 * 4), ==, 0x0102030401020304);
    g_assert_cmphex(R(RDI), ==, VM_DATA + 1 + 12000);
    setup();
    memset(vm->ram + VM_DATA, 0, 64);
    vm->ram[VM_DATA + 20] = 9;
    R(RAX) = 9;
    R(RDI) = VM_DATA;
    R(RCX) = UINT64_MAX;
    assert_ok(RUN(scas));
    g_assert_cmphex(R(RDI), ==, VM_DATA + 21);
    g_assert_cmphex(R(RCX), ==, UINT64_MAX - 21);
    setup();
    memset(vm->ram + VM_DATA, 0, 0x2000);
    vm->ram[VM_DATA + 0x1010] = 1;
    R(RSI) = VM_DATA;
    R(RDI) = VM_DATA + 0x1000;
    R(RCX) = 0x100;
    assert_ok(RUN(cmps));
    g_assert_cmphex(R(RCX), ==, 0x100 - 0x11);
    g_assert_cmphex(x86_get_rflags(c) & (FL_ZF | FL_CF), ==, FL_CF);
}

/* A count of 0 touches nothing; otherwise 32-bit addresses clear the upper halves. */
static void test_rep_address_size(void)
{
    setup();
    R(RSI) = 0xdead000000000000 | VM_DATA;
    R(RDI) = 0xbeef000000000000 | (VM_DATA + 64);
    R(RCX) = 0xabcd000000000000;
    assert_ok(RUN(movs_a32));
    g_assert_cmphex(R(RSI), ==, 0xdead000000000000 | VM_DATA);
    g_assert_cmphex(R(RCX), ==, 0xabcd000000000000);
    R(RCX) |= 2;
    assert_ok(RUN(movs_a32));
    g_assert_cmphex(R(RSI), ==, VM_DATA + 2);
    g_assert_cmphex(R(RDI), ==, VM_DATA + 66);
    g_assert_cmphex(R(RCX), ==, 0);
}

/* ---- Code that changes ---- */

CODE(smc_next, "movb $0xc3, 1f+1(%rip); 1: inc %eax; inc %ecx");
CODE(smc_alias, "movb $0x05, (%rdi); mov $1, %eax; mov $2, %ecx");
CODE(smc_fpu, "movsd %xmm0, 1f(%rip); 1: mov $0, %eax; mov $1, %ebx");

/* Case 24: the very next instruction, by integer and SSE stores, and through an alias. */
static void test_self_modifying(void)
{
    setup();
    assert_ok(RUN(smc_next)); /* INC EAX becomes INC EBX */
    g_assert_cmphex(R(RAX), ==, 0);
    g_assert_cmphex(R(RBX), ==, 1);
    g_assert_cmphex(R(RCX), ==, 1);
    setup();
    vm_map(vm, VM_DATA, VM_CODE | 7);
    R(RDI) = VM_DATA + 4; /* the immediate of MOV, in the page's other name */
    assert_ok(RUN(smc_alias));
    g_assert_cmphex(R(RAX), ==, 5);
    g_assert_cmphex(R(RCX), ==, 2);
    setup();
    /* mov $0x55, %eax; mov $?, ... */
    memcpy(c->ymm[0], "\xb8\x55\x00\x00\x00\xbb\x66\x00", 8);
    assert_ok(RUN(smc_fpu));
    g_assert_cmphex(R(RAX), ==, 0x55);
    g_assert_cmphex(R(RBX), ==, 0x66);
}

CODE(smc_loop, "mov $1000, %ecx; 1: incl 2f(%rip); .byte 0xb8; 2: .long 0; dec %ecx; jnz 1b");

/* A loop that rewrites an immediate of its own, a thousand times. */
static void test_self_modifying_loop(void)
{
    setup();
    assert_ok(RUN(smc_loop));
    g_assert_cmphex(R(RAX), ==, 1000);
}

CODE(value1, "mov $1, %eax");
CODE(value2, "mov $2, %eax");

/* Written from outside between runs, as DMA and loaders do. */
static void test_code_replaced(void)
{
    setup();
    assert_ok(RUN(value1));
    g_assert_cmphex(R(RAX), ==, 1);
    assert_ok(RUN(value2));
    g_assert_cmphex(R(RAX), ==, 2);
}

/* ---- Partial registers, extension ---- */

CODE(partial, "mov $0x1122334455667788, %rax; mov $0xaa, %ah; mov $0xbb, %al; mov %rax, %rbx\n"
              "mov $0xcccc, %ax; mov %rax, %rcx; mov $1, %eax; clc; mov $-1, %rdx; cmovc %eax, %edx");
CODE(bt_far, "mov $-3, %rax; bts %rax, (%rsi); setc %bl; mov $1000, %ecx; btc %ecx, (%rsi)");

static void test_partial_registers(void)
{
    setup();
    assert_ok(RUN(partial));
    g_assert_cmphex(R(RBX), ==, 0x112233445566aabb);
    g_assert_cmphex(R(RCX), ==, 0x112233445566cccc);
    g_assert_cmphex(R(RDX), ==, 0xffffffff);
    setup();
    memset(vm->ram + VM_DATA, 0, 0x200);
    R(RSI) = VM_DATA + 64;
    assert_ok(RUN(bt_far));
    g_assert_cmphex(mem64(VM_DATA + 56), ==, 1ull << 61);
    g_assert_cmphex(vm->ram[VM_DATA + 64 + 125], ==, 1);
}

/* ---- Legacy modes ---- */

CODE32(pm, "mov $0x12345678, %eax; push %eax; pushw $0x55; pop %bx; pop %ecx; pusha; popa\n"
           "mov $0x15, %al; daa; enter $16, $1; leave; bound %eax, (%esi); aam");
CODE32(pm_wrap, "mov $0x1000, %ax; movw $5, %bx; lea 0x10(%bx,%si), %dx");

static void test_protected_mode(void)
{
    vm = vm_get();
    c = vm->c;
    vm_reset_protected(vm);
    mem64_set(VM_DATA, 0x7fffffff00000000);
    R(RSI) = VM_DATA;
    assert_ok(RUN(pm));
    g_assert_cmphex(R(RCX), ==, 0x12345678);
    g_assert_cmphex(R(RBX) & 0xffff, ==, 0x55);
    g_assert_cmphex(R(RSP), ==, VM_STACK);
    g_assert_cmphex(R(RAX), ==, 0x12340201);
    vm_reset_protected(vm);
    R(RSI) = 0xffff;
    assert_ok(RUN(pm_wrap));
    g_assert_cmphex(R(RDX) & 0xffff, ==, 0x14);
}

CODE16(rm_call, "mov $0x1234, %ax; call 1f; mov $7, %bx; jmp 2f; 1: inc %ax; ret; 2: pushf; pop %cx");

static void test_real_mode(void)
{
    vm = vm_get();
    c = vm->c;
    vm_reset_real(vm);
    assert_ok(RUN_AT(0xa000, rm_call));
    g_assert_cmphex(R(RAX) & 0xffff, ==, 0x1235);
    g_assert_cmphex(R(RBX) & 0xffff, ==, 7);
    g_assert_cmphex(R(RSP), ==, 0xf000);
}

/* ---- Blocks ---- */

/* More code than the cache holds: evicted, decoded anew, still right. */
static void test_eviction(void)
{
    const unsigned pages = 1500;
    uint64_t before;

    setup();
    before = c->tcg->engine->evicted;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned p = 0; p < pages; p++) {
            uint8_t *code = vm->ram + 0x200000 + p * 0x1000;
            /* 63 times inc %eax and a jump, 24 times a page */
            for (unsigned n = 0; n < 24; n++) {
                memset(code + n * 128, 0x90, 128);
                code[n * 128] = 0xff;
                code[n * 128 + 1] = 0xc0;
                code[n * 128 + 60] = 0xeb;
                code[n * 128 + 61] = 66;
            }
            code[24 * 128] = 0xf4;
            ram_block_written(vm->rb, 0x200000 + p * 0x1000, 0x1000);
            c->rip = 0x200000 + p * 0x1000;
            assert_ok(vm_go(vm));
        }
    }
    g_assert_cmphex(R(RAX), ==, 2 * 24 * pages);
    g_assert_cmpuint(c->tcg->engine->evicted, >, before);
}

/* Instructions are counted exactly, also when a fault cuts a block short. */
CODE(counted, "nop; nop; mov (%rax), %rbx; nop; nop");
static void test_icount(void)
{
    uint64_t n;

    setup();
    R(RAX) = 0x8000000000000000;
    n = c->tcg->icount;
    assert_fault(RUN(counted), EXCP_GP, 0, VM_CODE + 2);
    /* Two NOPs, then the handler's two. */
    g_assert_cmpuint(c->tcg->icount - n, ==, 4);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/interp/blsi", test_blsi);
    g_test_add_func("/interp/bextr-bzhi-adx", test_bextr_bzhi_adx);
    g_test_add_func("/interp/shift-count", test_shift_count);
    g_test_add_func("/interp/call-keeps-flags", test_call_keeps_flags);
    g_test_add_func("/interp/cmpxchg", test_cmpxchg);
    g_test_add_func("/interp/cmpxchg-pair", test_cmpxchg_pair);
    g_test_add_func("/interp/noncanonical", test_noncanonical);
    g_test_add_func("/interp/pop-rsp-relative", test_pop_rsp_relative);
    g_test_add_func("/interp/split-instruction", test_split_instruction);
    g_test_add_func("/interp/length-and-lock", test_length_and_lock);
    g_test_add_func("/interp/division", test_division);
    g_test_add_func("/interp/rep-restart", test_rep_restart);
    g_test_add_func("/interp/rep-forms", test_rep_forms);
    g_test_add_func("/interp/rep-address-size", test_rep_address_size);
    g_test_add_func("/interp/self-modifying", test_self_modifying);
    g_test_add_func("/interp/self-modifying-loop", test_self_modifying_loop);
    g_test_add_func("/interp/code-replaced", test_code_replaced);
    g_test_add_func("/interp/partial-registers", test_partial_registers);
    g_test_add_func("/interp/protected-mode", test_protected_mode);
    g_test_add_func("/interp/real-mode", test_real_mode);
    g_test_add_func("/interp/eviction", test_eviction);
    g_test_add_func("/interp/icount", test_icount);
    return g_test_run();
}
