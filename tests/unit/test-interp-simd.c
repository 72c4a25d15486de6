/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accel/tcg: vector unit and x87 where system state matters, which the comparison with the host
 * (tests/diff) can not reach: availability, exceptions, state images, restart, stub eviction.
 */
#include <glib.h>
#include <string.h>
#include "accel/tcg/simd.h"
#include "interp-vm.h"

static Vm *vm;
static X86CPU *c;

#define R(r) (c->regs[R_##r])

static void setup(void)
{
    vm = vm_get();
    c = vm->c;
    vm_reset_long(vm);
    c->cr4 |= CR4_OSXSAVE;
    c->x87.fcw = 0x37f; /* power-on leaves exceptions unmasked and all registers valid */
    c->x87.ftw = 0;
    memset(vm->ram + VM_DATA, 0, 0x4000);
    tcg_engine_reset(c);
    R(RSI) = VM_DATA;
    R(RDI) = VM_DATA + 0x1000;
}

static uint64_t mem64(uint64_t at)
{
    uint64_t v;
    memcpy(&v, vm->ram + at, 8);
    return v;
}
static uint16_t mem16(uint64_t at)
{
    uint16_t v;
    memcpy(&v, vm->ram + at, 2);
    return v;
}
static void mem64_set(uint64_t at, uint64_t v)
{
    memcpy(vm->ram + at, &v, 8);
}
static uint64_t ymm64(unsigned n, unsigned q)
{
    uint64_t v;
    memcpy(&v, c->ymm[n] + 8 * q, 8);
    return v;
}
static bool have_avx(void)
{
    vm = vm_get();
    if (!x86_has(vm->c, FEAT_1_ECX, BIT(28))) {
        g_test_skip("no AVX");
        return false;
    }
    return true;
}

/* ---- Availability (SDM 3A, table 13-1; SDM 2A, tables 2-17 ff.) ---- */

CODE(sse, "addps %xmm1, %xmm0");
CODE(ssemove, "movups %xmm1, %xmm0");
CODE(mmx, "paddb %mm1, %mm0");
CODE(x87, "fld1");
CODE(wait, "fwait");
CODE(fxsave, "fxsave (%rsi)");
CODE(stmxcsr, "stmxcsr (%rsi)");
CODE(avx, "vaddps %ymm1, %ymm0, %ymm2");
CODE(avxmove, "vmovups %ymm1, %ymm0");
CODE(xsave, "xsave (%rsi)");
CODE(emms, "emms");

typedef struct Avail {
    const uint8_t *code, *end;
    bool avx;
    int em, ts, mp_ts, no_osfxsr, no_osxsave, no_xcr0; /* vector, -1: runs */
} Avail;
#define A(n) code_##n, code_##n##_end

static void check_avail(const Avail *a, uint64_t cr0, uint64_t no_cr4, uint64_t xcr0, int vector)
{
    setup();
    c->cr0 = (c->cr0 & ~CR0_MP) | cr0;
    c->cr4 &= ~no_cr4;
    c->xcr0 = xcr0;
    tcg_engine_reset(c);
    VmFault f = vm_run(vm, a->code, (size_t)(a->end - a->code));
    g_assert_cmpint(f.vector, ==, vector);
}

static void test_availability(void)
{
    static const Avail rows[] = {
        { A(sse), false, 6, 7, 7, 6, -1, -1 },     { A(ssemove), false, 6, 7, 7, 6, -1, -1 },
        { A(mmx), false, 6, 7, 7, -1, -1, -1 },    { A(emms), false, 6, 7, 7, -1, -1, -1 },
        { A(x87), false, 7, 7, 7, -1, -1, -1 },    { A(wait), false, -1, -1, 7, -1, -1, -1 },
        { A(fxsave), false, 7, 7, 7, -1, -1, -1 }, { A(stmxcsr), false, 6, 7, 7, 6, -1, -1 },
        { A(avx), true, -1, 7, 7, -1, 6, 6 },      { A(avxmove), true, -1, 7, 7, -1, 6, 6 },
        { A(xsave), true, -1, 7, 7, -1, 6, -1 },
    };
    for (size_t n = 0; n < G_N_ELEMENTS(rows); n++) {
        const Avail *a = &rows[n];
        if (a->avx && !x86_has(vm_get()->c, FEAT_1_ECX, BIT(28))) {
            continue;
        }
        check_avail(a, 0, 0, 7, -1);
        check_avail(a, CR0_EM, 0, 7, a->em);
        check_avail(a, CR0_TS, 0, 7, a->ts);
        check_avail(a, CR0_TS | CR0_MP, 0, 7, a->mp_ts);
        check_avail(a, 0, CR4_OSFXSR, 7, a->no_osfxsr);
        check_avail(a, 0, CR4_OSXSAVE, 7, a->no_osxsave);
        check_avail(a, 0, 0, 3, a->no_xcr0);
    }
}

/* ---- SIMD exceptions ---- */

CODE(divzero, "movl $0x1d80, (%rsi); ldmxcsr (%rsi); xorps %xmm0, %xmm0\n"
              "mov $0x3f800000, %eax; movd %eax, %xmm1\n"
              "divtarget: divss %xmm0, %xmm1");

/* ZE unmasked: #XM with the destination as it was, or #UD without CR4.OSXMMEXCPT. */
static void test_simd_exception(void)
{
    for (int ud = 0; ud < 2; ud++) {
        setup();
        c->cr4 &= ~(ud ? CR4_OSXMMEXCPT : 0);
        tcg_engine_reset(c);
        VmFault f = RUN(divzero);
        g_assert_cmpint(f.vector, ==, ud ? EXCP_UD : EXCP_XM);
        g_assert_cmphex(ymm64(1, 0), ==, 0x3f800000);
        g_assert_cmphex(c->mxcsr, ==, 0x1d84);
    }
}

CODE(rounding, "movl $0x7f80, (%rsi); ldmxcsr (%rsi); mov $3, %eax; cvtsi2sd %eax, %xmm1\n"
               "mov $-1, %eax; cvtsi2sd %eax, %xmm0; divsd %xmm1, %xmm0\n"
               "movl $0x1f80, (%rsi); ldmxcsr (%rsi); mulsd %xmm1, %xmm1; stmxcsr 8(%rsi)");

/* Rounding control works, flags do not outlive LDMXCSR, and exact results set none. */
static void test_mxcsr(void)
{
    setup();
    g_assert_cmpint(RUN(rounding).vector, ==, -1);
    g_assert_cmphex(ymm64(0, 0), ==, 0xbfd5555555555555); /* towards 0 */
    g_assert_cmphex((uint32_t)mem64(VM_DATA + 8), ==, 0x1f80);
    g_assert_cmphex(c->mxcsr, ==, 0x1f80);
}

CODE(badmxcsr, "movl $0x1ff80, (%rsi); ldmxcsr (%rsi)");
CODE(movaps, "movaps 8(%rsi), %xmm0");
CODE(movups, "movups 8(%rsi), %xmm0");
CODE(vmovaps, "vmovaps 16(%rsi), %ymm0");
CODE(vaddps, "vaddps 4(%rsi), %ymm0, %ymm1");

/* Case 5. */
static void test_alignment(void)
{
    setup();
    g_assert_cmpint(RUN(badmxcsr).vector, ==, EXCP_GP);
    setup();
    g_assert_cmpint(RUN(movaps).vector, ==, EXCP_GP);
    g_assert_cmpint(RUN(movups).vector, ==, -1);
    if (have_avx()) {
        setup();
        g_assert_cmpint(RUN(vmovaps).vector, ==, EXCP_GP);
        g_assert_cmpint(RUN(vaddps).vector, ==, -1);
    }
}

CODE(halves, "vpcmpeqb %ymm0, %ymm0, %ymm0; vmovaps %ymm0, %ymm1; vmovaps %ymm0, %ymm2\n"
             "vmovaps %ymm0, %ymm3; pxor %xmm0, %xmm0; shufps $0, %xmm1, %xmm1\n"
             "vpxor %xmm2, %xmm2, %xmm2; vshufps $0, %xmm3, %xmm3, %xmm3");

static void test_upper_halves(void)
{
    if (!have_avx()) {
        return;
    }
    setup();
    g_assert_cmpint(RUN(halves).vector, ==, -1);
    g_assert_cmphex(ymm64(0, 0) | ymm64(0, 1), ==, 0);
    g_assert_cmphex(ymm64(0, 2) & ymm64(0, 3), ==, UINT64_MAX);
    g_assert_cmphex(ymm64(1, 2) & ymm64(1, 3), ==, UINT64_MAX);
    g_assert_cmphex(ymm64(2, 2) | ymm64(2, 3), ==, 0);
    g_assert_cmphex(ymm64(3, 2) | ymm64(3, 3), ==, 0);
}

/* ---- x87 ---- */

CODE(precision, "movw $0x07f, (%rsi); fldcw (%rsi); fldl 8(%rsi); fstpt 16(%rsi)");

/* Case 19: single precision in FCW.PC does not round a load. */
static void test_precision_control(void)
{
    setup();
    mem64_set(VM_DATA + 8, 0x3fefffffffffffff);
    g_assert_cmpint(RUN(precision).vector, ==, -1);
    g_assert_cmphex(mem64(VM_DATA + 16), ==, 0xfffffffffffff800);
    g_assert_cmphex(mem16(VM_DATA + 24), ==, 0x3ffe);
}

CODE(fild, "fildll 8(%rsi); fistpll 16(%rsi)");

/* Case 20. */
static void test_integer_copy(void)
{
    static const uint64_t v[] = { 0x7fffffffffffffff, 0x8000000000000001, 0x0123456789abcdef, 1 };
    for (size_t n = 0; n < G_N_ELEMENTS(v); n++) {
        setup();
        mem64_set(VM_DATA + 8, v[n]);
        g_assert_cmpint(RUN(fild).vector, ==, -1);
        g_assert_cmphex(mem64(VM_DATA + 16), ==, v[n]);
    }
}

CODE(alias, "fninit; fldpi; fld1; mov $0x1122334455667788, %rax; movq %rax, %mm3\n"
            "movq %mm3, %rbx; fnstsw %ax; fxsave (%rsi); emms; fnstenv 0x400(%rsi)");

/* MMX registers are the mantissas; TOP is 0 and all tags are valid until EMMS. */
static void test_mmx_alias(void)
{
    setup();
    g_assert_cmpint(RUN(alias).vector, ==, -1);
    g_assert_cmphex(R(RBX), ==, 0x1122334455667788);
    g_assert_cmphex(R(RAX) & 0x3800, ==, 0);
    g_assert_cmphex(vm->ram[VM_DATA + 4], ==, 0xff);
    g_assert_cmphex(mem64(VM_DATA + 32 + 16 * 3), ==, 0x1122334455667788);
    g_assert_cmphex(mem16(VM_DATA + 32 + 16 * 3 + 8), ==, 0xffff);
    g_assert_cmphex(mem64(VM_DATA + 32 + 16 * 7), ==, 0xc90fdaa22168c235); /* pi in R7 */
    g_assert_cmphex(mem16(VM_DATA + 0x400 + 8), ==, 0xffff); /* tag word: empty */
}

CODE(mf, "movw $0x37b, (%rsi); fldcw (%rsi); fld1; fldz; fdivrp %st, %st(1)\n"
         "fnstsw %ax; fnstcw 8(%rsi); mffault: fldz");
CODE(mfclear, "movw $0x37b, (%rsi); fldcw (%rsi); fld1; fldz; fdivrp %st, %st(1); fnclex; fldz");

static int ferr_calls[2];
static void count_ferr(X86CPU *cpu, bool level)
{
    ferr_calls[level]++;
}

/* The next waiting instruction faults, those without wait do not (SDM 1, 8.7). */
static void test_pending_exception(void)
{
    setup();
    VmFault f = RUN(mf);
    g_assert_cmpint(f.vector, ==, EXCP_MF);
    g_assert_cmphex(f.rip, ==, VM_CODE + LEN(mf) - 2);
    g_assert_cmphex(R(RAX) & 0x8084, ==, 0x8084);
    setup();
    g_assert_cmpint(RUN(mfclear).vector, ==, -1);
    /* CR0.NE = 0: FERR# instead. */
    setup();
    c->cr0 &= ~CR0_NE;
    tcg_engine_reset(c);
    memset(ferr_calls, 0, sizeof(ferr_calls));
    tcg_ferr_hook = count_ferr;
    g_assert_cmpint(RUN(mfclear).vector, ==, -1);
    tcg_ferr_hook = NULL;
    g_assert_cmpint(ferr_calls[1], ==, 1);
    g_assert_cmpint(ferr_calls[0], ==, 1);
}

CODE16(env16, "fninit; mov $0x600, %di; mov $0x700, %si; fld1; fstps (%si); .byte 0x66; fnstenv (%di)\n"
              "fnstenv 0x40(%di); fnsave 0x80(%di)");
CODE32(env32, "fninit; fld1; fstps 4(%esi); fnstenv 0x40(%esi); .byte 0x66; fnstenv 0x80(%esi)");

/* Layouts of SDM 1, figures 8-9 to 8-12. */
static void test_environment(void)
{
    setup();
    vm_reset_protected(vm);
    memset(vm->ram + VM_DATA, 0, 0x200);
    R(RSI) = VM_DATA;
    g_assert_cmpint(RUN(env32).vector, ==, -1);
    uint64_t fip = VM_CODE + 4;
    bool selectors = !x86_has(c, FEAT_7_0_EBX, BIT(13));
    g_assert_cmphex(mem64(VM_DATA + 0x40), ==, 0xffff0000ffff037f);
    g_assert_cmphex(mem64(VM_DATA + 0x48), ==, fip << 32 | 0xffffffff);
    g_assert_cmphex(mem64(VM_DATA + 0x50) >> 16 & 0x7ff, ==, 0x15e);
    g_assert_cmphex(mem64(VM_DATA + 0x50) >> 32, ==, VM_DATA + 4);
    g_assert_cmphex(mem16(VM_DATA + 0x50), ==, selectors ? 24 : 0);
    g_assert_cmphex(mem16(VM_DATA + 0x58), ==, selectors ? 16 : 0);
    g_assert_cmphex(mem16(VM_DATA + 0x80 + 4), ==, 0xffff);
    g_assert_cmphex(mem16(VM_DATA + 0x80 + 6), ==, fip & 0xffff);

    vm_reset_real(vm);
    memset(vm->ram + 0x600, 0, 0x200);
    g_assert_cmpint(vm_run_at(vm, 0xc000, code_env16, LEN(env16)).vector, ==, -1);
    fip = 0xc000 + 2 + 3 + 3 + 2;
    g_assert_cmphex(mem64(0x600), ==, 0xffff0000ffff037f);
    g_assert_cmphex(mem16(0x640 + 6), ==, fip);
    g_assert_cmphex(mem16(0x640 + 8), ==, 0x11c); /* FOP, FIP 19..16 = 0 */
    g_assert_cmphex(mem16(0x640 + 10), ==, 0x700);
    g_assert_cmphex(mem16(0x680 + 4), ==, 0xffff);
}

CODE(patch, "fildll (%rsi); fistpll target(%rip); jmp 1f; 1: target: mov $1, %eax; nop; nop; nop");

/* Case 24: an FPU store changes the next instruction. */
static void test_code_store(void)
{
    setup();
    mem64_set(VM_DATA, 0x90909000000002b8); /* mov $2, %eax; nop; nop; nop */
    g_assert_cmpint(RUN(patch).vector, ==, -1);
    g_assert_cmphex(R(RAX), ==, 2);
    R(RAX) = 0;
    mem64_set(VM_DATA, 0x90909000000003b8);
    g_assert_cmpint(RUN(patch).vector, ==, -1);
    g_assert_cmphex(R(RAX), ==, 3);
}

/* ---- State images ---- */

CODE(fx, "fninit; fldpi; fld1; movl $0x1fa5, (%rsi); ldmxcsr (%rsi); movq %rsi, %xmm7; fxsave (%rdi)\n"
         "fninit; xorps %xmm7, %xmm7; movl $0x1f80, (%rsi); ldmxcsr (%rsi); fxrstor (%rdi)\n"
         "fstpt 16(%rsi); stmxcsr (%rsi); movq %xmm7, %rax");
CODE(fxbad, "fxsave (%rdi); movl $0x80000000, 24(%rdi); fxrstor (%rdi)");
CODE(fxmis, "fxsave 8(%rdi)");

static void test_fxsave(void)
{
    setup();
    g_assert_cmpint(RUN(fx).vector, ==, -1);
    g_assert_cmphex(mem64(VM_DATA + 16), ==, 1ull << 63);
    g_assert_cmphex(mem16(VM_DATA + 24), ==, 0x3fff);
    g_assert_cmphex((uint32_t)mem64(VM_DATA), ==, 0x1fa5);
    g_assert_cmphex(R(RAX), ==, VM_DATA);
    g_assert_cmphex(mem64(VM_DATA + 0x1000 + 24) >> 32, ==, 0xffff); /* MXCSR_MASK */
    setup();
    g_assert_cmpint(RUN(fxbad).vector, ==, EXCP_GP);
    setup();
    g_assert_cmpint(RUN(fxmis).vector, ==, EXCP_GP);
}

CODE(xsavec, "xor %edx, %edx; mov $4, %eax; xsavec (%rdi)\n"      /* AVX alone */
             "mov $7, %eax; xsavec 0x800(%rdi)\n"
             "vzeroall; fninit; mov $7, %eax; xrstor (%rdi)");
CODE(xrstor, "xor %edx, %edx; mov $7, %eax; xrstor (%rdi)");
CODE(xsave7, "xor %edx, %edx; mov $7, %eax; xsave (%rdi)");
CODE(xsave2, "xor %edx, %edx; mov $2, %eax; xsave (%rdi)");

static bool have_xsavec(void)
{
    if (!have_avx()) {
        return false;
    }
    if (!x86_has(vm->c, FEAT_XSAVE, BIT(1))) {
        g_test_skip("no XSAVEC");
        return false;
    }
    return true;
}

/* Case 21: compaction with partial masks. */
static void test_xsavec(void)
{
    if (!have_xsavec()) {
        return;
    }
    setup();
    memset(c->ymm, 0x5a, sizeof(c->ymm));
    c->x87.ftw = 0x80;
    c->x87.fsw = 7 << 11;
    memset(vm->ram + VM_DATA + 0x1000, 0xcc, 0x1000);
    /* The header's reserved bytes are garbage, which XRSTOR refuses (SDM 1, 13.8.2). */
    g_assert_cmpint(RUN(xsavec).vector, ==, EXCP_GP);
    uint64_t a = VM_DATA + 0x1000;
    g_assert_cmphex(mem64(a + 512), ==, 4);
    g_assert_cmphex(mem64(a + 520), ==, 1ull << 63 | 4);
    g_assert_cmphex(mem64(a), ==, 0xcccccccccccccccc);       /* x87 not written */
    g_assert_cmphex(mem64(a + 160), ==, 0xcccccccccccccccc); /* nor SSE */
    g_assert_cmphex(mem64(a + 576), ==, 0x5a5a5a5a5a5a5a5a);
    g_assert_cmphex(mem64(a + 0x800 + 520), ==, 1ull << 63 | 7);
    g_assert_cmphex(mem64(a + 0x800 + 512), ==, 7);
    g_assert_cmphex(ymm64(3, 2), ==, 0);
}

static void xrstor_case(uint64_t bv, uint64_t comp, uint64_t reserved, int vector)
{
    setup();
    memset(c->ymm, 0x11, sizeof(c->ymm));
    c->mxcsr = 0x1fa0;
    uint64_t a = VM_DATA + 0x1000;
    memset(vm->ram + a, 0, 0x400);
    memset(vm->ram + a + 160, 0x22, 256);
    memset(vm->ram + a + 576, 0x33, 256);
    mem64_set(a, 0x37f);
    mem64_set(a + 24, 0x1f85);
    mem64_set(a + 512, bv);
    mem64_set(a + 520, comp);
    mem64_set(a + 528, reserved);
    g_assert_cmpint(RUN(xrstor).vector, ==, vector);
}

static void test_xrstor(void)
{
    if (!have_xsavec()) {
        return;
    }
    const uint64_t compact = 1ull << 63;
    xrstor_case(6, 0, 0, -1);
    g_assert_cmphex(ymm64(2, 0), ==, 0x2222222222222222);
    g_assert_cmphex(ymm64(2, 3), ==, 0x3333333333333333);
    g_assert_cmphex(c->mxcsr, ==, 0x1f85);
    xrstor_case(0, 0, 0, -1); /* all initial, but the standard form loads MXCSR */
    g_assert_cmphex(ymm64(2, 0) | ymm64(2, 3), ==, 0);
    g_assert_cmphex(c->mxcsr, ==, 0x1f85);
    xrstor_case(4, compact | 4, 0, -1);
    g_assert_cmphex(ymm64(2, 0), ==, 0);
    g_assert_cmphex(ymm64(2, 3), ==, 0x3333333333333333);
    g_assert_cmphex(c->mxcsr, ==, 0x1f80);
    xrstor_case(8, 0, 0, EXCP_GP);            /* not in XCR0 */
    xrstor_case(2, 1, 0, EXCP_GP);            /* XCOMP_BV without bit 63 */
    xrstor_case(2, 0, 1, EXCP_GP);            /* reserved bytes */
    xrstor_case(2, compact | 4, 0, EXCP_GP);  /* not in XCOMP_BV */
    xrstor_case(0, compact | 8, 0, EXCP_GP);  /* not in XCR0 */
    xrstor_case(2, compact | 2, 1, EXCP_GP);
    g_assert_cmphex(ymm64(2, 0), ==, 0x1111111111111111);
}

static void test_xsave(void)
{
    if (!have_avx()) {
        return;
    }
    uint64_t a = VM_DATA + 0x1000;
    setup();
    memset(c->ymm, 0x44, sizeof(c->ymm));
    memset(vm->ram + a, 0xcc, 0x400);
    mem64_set(a + 512, 5);
    g_assert_cmpint(RUN(xsave2).vector, ==, -1);
    g_assert_cmphex(mem64(a + 512), ==, 7); /* bits outside the request stay */
    g_assert_cmphex(mem64(a + 520), ==, 0xcccccccccccccccc);
    g_assert_cmphex(mem64(a), ==, 0xcccccccccccccccc);
    g_assert_cmphex(mem64(a + 160), ==, 0x4444444444444444);
    g_assert_cmphex(mem64(a + 576), ==, 0xcccccccccccccccc);
    g_assert_cmphex((uint32_t)mem64(a + 24), ==, 0x1f80);
    g_assert_cmpint(RUN(xsave7).vector, ==, -1);
    g_assert_cmphex(mem64(a + 576), ==, 0x4444444444444444);
    c->regs[R_RDI] += 16;
    g_assert_cmpint(RUN(xsave7).vector, ==, EXCP_GP);
}

/* ---- Restart ---- */

CODE(gather, "vpgatherdd %ymm2, (%rsi,%ymm1,4), %ymm0");

/* Elements done before a fault are done: their mask is clear, the rest is taken up after it. */
static void test_gather_restart(void)
{
    if (!have_avx() || !x86_has(vm->c, FEAT_7_0_EBX, BIT(5))) {
        return;
    }
    setup();
    memset(c->ymm[2], 0xff, 32);
    memset(c->ymm[0], 0, 32);
    for (uint32_t n = 0; n < 8; n++) {
        uint32_t idx = n < 5 ? n : 0x400 + n, v = 0x100 + n;
        memcpy(c->ymm[1] + 4 * n, &idx, 4);
        memcpy(vm->ram + VM_DATA + 4 * idx, &v, 4);
    }
    vm_map(vm, VM_DATA + 0x1000, 0);
    VmFault f = RUN(gather);
    g_assert_cmpint(f.vector, ==, EXCP_PF);
    g_assert_cmphex(c->cr2, ==, VM_DATA + 0x1014);
    for (unsigned n = 0; n < 8; n++) {
        uint32_t m;
        memcpy(&m, c->ymm[2] + 4 * n, 4);
        g_assert_cmphex(m, ==, n < 5 ? 0 : 0xffffffff);
    }
    vm_map(vm, VM_DATA + 0x1000, (VM_DATA + 0x1000) | 7);
    c->rip = f.rip;
    c->regs[R_RSP] = f.rsp;
    g_assert_cmpint(vm_go(vm).vector, ==, -1);
    for (uint32_t n = 0; n < 8; n++) {
        uint32_t v;
        memcpy(&v, c->ymm[0] + 4 * n, 4);
        g_assert_cmphex(v, ==, 0x100 + n);
    }
}

/* ---- Stubs ---- */

/* More encodings than there are slots: evicted stubs come back right. */
static void test_stub_eviction(void)
{
    static const uint8_t ops[][4] = {
        { 0xf2, 0x0f, 0x70, 0xc1 }, { 0xf3, 0x0f, 0x70, 0xc1 }, { 0x66, 0x0f, 0xc6, 0xc1 },
        { 0x66, 0x0f, 0x72, 0xd1 }, { 0x66, 0x0f, 0x72, 0xf1 }, { 0x66, 0x0f, 0x73, 0xd9 },
        { 0x66, 0x0f, 0x73, 0xf9 }, { 0x66, 0x0f, 0x71, 0xd1 }, { 0x66, 0x0f, 0x71, 0xe1 },
        { 0x66, 0x0f, 0x70, 0xc1 },
    };
    uint8_t code[256 * 5];
    setup();
    uint64_t before = c->tcg->simd->evictions;
    for (unsigned round = 0; round < 2; round++) {
        for (size_t op = 0; op < G_N_ELEMENTS(ops); op++) {
            for (unsigned imm = 0; imm < 256; imm++) {
                memcpy(code + imm * 5, ops[op], 4);
                code[imm * 5 + 4] = (uint8_t)imm;
            }
            g_assert_cmpint(vm_run(vm, code, sizeof(code)).vector, ==, -1);
        }
    }
    g_assert_cmpuint(c->tcg->simd->evictions, >, before);
    for (unsigned imm = 0; imm < 256; imm++) {
        const uint8_t insn[] = { 0x66, 0x0f, 0x70, 0xc1, (uint8_t)imm };
        uint32_t src[4] = { 10, 11, 12, 13 }, dst[4];
        memcpy(c->ymm[1], src, 16);
        g_assert_cmpint(vm_run(vm, insn, sizeof(insn)).vector, ==, -1);
        memcpy(dst, c->ymm[0], 16);
        for (unsigned n = 0; n < 4; n++) {
            g_assert_cmpuint(dst[n], ==, src[(imm >> (2 * n)) & 3]);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/simd/availability", test_availability);
    g_test_add_func("/simd/exception", test_simd_exception);
    g_test_add_func("/simd/mxcsr", test_mxcsr);
    g_test_add_func("/simd/alignment", test_alignment);
    g_test_add_func("/simd/upper-halves", test_upper_halves);
    g_test_add_func("/simd/gather-restart", test_gather_restart);
    g_test_add_func("/simd/stub-eviction", test_stub_eviction);
    g_test_add_func("/x87/precision-control", test_precision_control);
    g_test_add_func("/x87/integer-copy", test_integer_copy);
    g_test_add_func("/x87/mmx-alias", test_mmx_alias);
    g_test_add_func("/x87/pending-exception", test_pending_exception);
    g_test_add_func("/x87/environment", test_environment);
    g_test_add_func("/x87/code-store", test_code_store);
    g_test_add_func("/state/fxsave", test_fxsave);
    g_test_add_func("/state/xsave", test_xsave);
    g_test_add_func("/state/xsavec", test_xsavec);
    g_test_add_func("/state/xrstor", test_xrstor);
    return g_test_run();
}
