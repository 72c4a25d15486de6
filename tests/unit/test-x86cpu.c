/* SPDX-License-Identifier: GPL-2.0-or-later */
/* target/i386: -cpu's argument, CPUID leaves, MSR rules, reset state, the TSC. */
#include <glib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "event/event.h"
#include "target/i386/cpuid.h"

/* A backend that can give everything, so that results do not depend on the host. */
static uint32_t all_supported(FeatureWord w)
{
    return w == FEAT_1_ECX ? ~(uint32_t)CPUID_1_ECX_VMX : ~0u;
}
static uint32_t no_defaults(FeatureWord w)
{
    return w == FEAT_1_ECX ? CPUID_1_ECX_HYPERVISOR : 0;
}
static void no_host(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    memset(r, 0, 16);
}
static uint32_t khz_2g(void)
{
    return 2000000;
}
static const X86CpuBackend full_backend = {
    .name = "test", .supported = all_supported, .defaults = no_defaults, .host_cpuid = no_host,
    .default_tsc_khz = khz_2g, .tsc_constant = true,
};

static X86CPU *new_cpu(const char *model)
{
    Error *err = NULL;
    X86CPU *c;

    g_assert_true(x86_cpu_set_model(model, &err));
    g_assert_null(err);
    c = x86_cpu_new(0, &err);
    g_assert_nonnull(c);
    return c;
}

static void refused(const char *arg, const char *message)
{
    Error *err = NULL;

    g_assert_false(x86_cpu_set_model(arg, &err));
    g_assert_nonnull(err);
    if (!strstr(error_get_pretty(err), message)) {
        g_error("%s: unexpected message: %s", arg, error_get_pretty(err));
    }
    g_assert_null(strchr(error_get_pretty(err), '\n'));
    error_free(err);
}

static void test_arguments(void)
{
    X86CPU *c;

    x86_cpu_set_backend(&full_backend);
    refused("nonsense", "nonsense");
    refused("", "unknown CPU model");
    refused("qemu64,+nonsense", "nonsense");
    refused("qemu64,nonsense=on", "nonsense");
    refused("qemu64,avx=maybe", "avx=maybe");
    refused("qemu64,vendor=short", "12 characters");
    refused("qemu64,level=zz", "level=zz");
    refused("qemu64,stepping=16", "from 0 to 15");
    refused("qemu64,tsc-frequency=12", "tsc-frequency=12");
    refused("qemu64,phys-bits=60", "phys-bits=60");
    refused("qemu64,hv-time", "Hyper-V");
    refused("qemu64,hv_spinlocks=0x1fff", "Hyper-V");
    refused("qemu64,+vmx,enforce", "vmx");
    refused("host", "KVM");
    c = new_cpu("qemu64,family=6,model=0x1a,stepping=3,model-id=a,,b,vendor=GenuineIntel,hv-time=off,"
                "+sse4_1,sse4.2=on,ssse3,-cx16,aes=on,aes=off,check=off");
    g_assert_cmpstr(c->model->model_id, ==, "a,b");
    g_assert_cmpstr(c->model->vendor, ==, "GenuineIntel");
    g_assert_cmpuint(c->regs[R_RDX], ==, 0x106a3);
    g_assert_true(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_SSE41));
    g_assert_true(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_SSE42));
    g_assert_false(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_CX16));
    g_assert_false(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_AES));
    free(c);
}

static void test_dependencies(void)
{
    X86CPU *c = new_cpu("Haswell,-xsave,check=off");

    g_assert_false(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_AVX | CPUID_1_ECX_FMA));
    g_assert_false(x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX2));
    g_assert_cmpuint(c->feat[FEAT_XSAVE], ==, 0);
    g_assert_cmpuint(x86_xcr0_mask(c), ==, 0);
    g_assert_true(x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_BMI2));
    free(c);
}

/* Every model parses, and each name in the table of features finds its own bit. */
static void one_model(const X86CPUModel *m, void *opaque)
{
    if (!m->host_identity && !m->no_defaults) { /* "base" has nothing but what is added */
        char *arg = g_strdup_printf("%s,check=off", m->name);
        X86CPU *c = new_cpu(arg);
        uint32_t a, b, cx, d;

        x86_cpuid(c, 0x80000001, 0, &a, &b, &cx, &d);
        bool lm = m->all_features || (m->feat[FEAT_8000_0001_EDX] & CPUID_8000_0001_EDX_LM);
        g_assert_true(!(d & CPUID_8000_0001_EDX_LM) == !lm);
        free(c);
        g_free(arg);
    }
}
static void test_tables(void)
{
    uint32_t mask[FEAT_WORDS];

    x86_cpu_model_foreach(one_model, NULL);
    for (unsigned i = 0; i < x86_feature_count; i++) {
        const X86Feature *f = &x86_features[i];

        g_assert_true(x86_feature_lookup(f->name, mask));
        g_assert_true(mask[f->word] & BIT(f->bit));
        for (unsigned j = 0; j < i; j++) { /* no bit has two names */
            g_assert_false(x86_features[j].word == f->word && x86_features[j].bit == f->bit);
        }
    }
    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        g_assert_nonnull(x86_feature_word_name(w));
    }
}

/* What TCG gives a guest must be a subset of the host where host instructions do the work. */
static void test_tcg(void)
{
    X86CPU *c;
    uint32_t r[4], a, b, cx, d;

    x86_cpu_set_backend(&x86_tcg_backend);
    refused("max,+monitor,enforce=on", "monitor");
    refused("qemu64,+avx512f,enforce=on", "avx512f");
    c = new_cpu("max");
    x86_tcg_backend.host_cpuid(1, 0, r);
    g_assert_cmpuint(c->feat[FEAT_1_ECX] & (CPUID_1_ECX_AVX | CPUID_1_ECX_AES) & ~r[2], ==, 0);
    g_assert_false(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_VMX | CPUID_1_ECX_MONITOR));
    g_assert_false(x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F));
    g_assert_true(x86_has(c, FEAT_8000_0007_EDX, CPUID_8000_0007_EDX_INVTSC));
    x86_cpuid(c, 0x40000000, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 0x40000010);
    g_assert_cmpmem(&b, 4, "TCGT", 4);
    x86_cpuid(c, 0x40000010, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, c->tsc_khz);
    g_assert_cmpuint(b, ==, X86_APIC_BUS_HZ / 1000);
    free(c);
    c = new_cpu("kvm64,check=off"); /* Intel: crystal and ratio */
    x86_cpuid(c, 0, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 0x16);
    x86_cpuid(c, 0x15, 0, &a, &b, &cx, &d);
    g_assert_cmpuint((uint64_t)cx * b / a / 1000, ==, c->tsc_khz);
    g_assert_true(x86_has(c, FEAT_1_ECX, CPUID_1_ECX_TSC_DEADLINE));
    g_assert_true(x86_has(c, FEAT_6_EAX, CPUID_6_EAX_ARAT));
    free(c);
    c = new_cpu("qemu64,kvm=off,-hypervisor,tcg-cpuid=off");
    x86_cpuid(c, 0x40000000, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a | b | cx | d, ==, 0);
    x86_cpuid(c, 1, 0, &a, &b, &cx, &d);
    g_assert_false(cx & CPUID_1_ECX_HYPERVISOR);
    free(c);
}

static void test_topology(void)
{
    X86CPU *c;
    Error *err = NULL;
    uint32_t a, b, cx, d;

    x86_cpu_set_backend(&full_backend);
    g_assert_true(x86_cpu_set_model("EPYC,check=off", &err));
    x86_cpu_set_topology(2, 2, 3, 2);
    /* thread 1 bit, core 2 bits, die 1 bit */
    g_assert_cmpuint(x86_apic_id(0), ==, 0);
    g_assert_cmpuint(x86_apic_id(1), ==, 1);
    g_assert_cmpuint(x86_apic_id(5), ==, 5);
    g_assert_cmpuint(x86_apic_id(6), ==, 8);
    g_assert_cmpuint(x86_apic_id(23), ==, 16 + 8 + 4 + 1);
    c = x86_cpu_new(23, &err);
    x86_cpuid(c, 1, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(b >> 24, ==, 29);
    g_assert_cmpuint((b >> 16) & 0xff, ==, 12);
    g_assert_true(d & CPUID_1_EDX_HT);
    x86_cpuid(c, 0xb, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 1);
    g_assert_cmpuint(b, ==, 2);
    g_assert_cmpuint(cx, ==, 0x100);
    g_assert_cmpuint(d, ==, 29);
    x86_cpuid(c, 0xb, 1, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 4);
    g_assert_cmpuint(b, ==, 12);
    g_assert_cmpuint(cx, ==, 0x201);
    x86_cpuid(c, 0xb, 2, &a, &b, &cx, &d);
    g_assert_cmpuint(a | b, ==, 0);
    g_assert_cmpuint(cx, ==, 2);
    x86_cpuid(c, 0x8000001e, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 29);
    g_assert_cmpuint(b & 0xff, ==, 6);
    free(c);
    g_assert_true(x86_cpu_set_model("Icelake-Server,check=off,level=0x1f", &err));
    c = x86_cpu_new(23, &err);
    x86_cpuid(c, 0x1f, 1, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 3);
    g_assert_cmpuint(b, ==, 6);
    x86_cpuid(c, 0x1f, 2, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 4);
    g_assert_cmpuint(b, ==, 12);
    g_assert_cmpuint(cx, ==, 0x502);
    x86_cpuid(c, 4, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, (7u << 26 | 1u << 14 | 1u << 8 | 1u << 5 | 1));
    x86_cpuid(c, 4, 3, &a, &b, &cx, &d); /* one L3 a die */
    g_assert_cmpuint((a >> 14) & 0xfff, ==, 7);
    x86_cpuid(c, 4, 4, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 0);
    free(c);
    x86_cpu_set_topology(1, 1, 1, 1);
}

static void test_xsave_leaf(void)
{
    X86CPU *c = new_cpu("Skylake-Client,-avx512f,+pku,+xsaves,check=off");
    uint32_t a, b, cx, d;

    x86_cpuid(c, 0xd, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, XSTATE_X87 | XSTATE_SSE | XSTATE_AVX | XSTATE_PKRU);
    g_assert_cmpuint(b, ==, 576);
    g_assert_cmpuint(cx, ==, 2696);
    c->xcr0 = XSTATE_X87 | XSTATE_SSE | XSTATE_AVX;
    x86_cpuid(c, 0xd, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(b, ==, 832);
    c->xcr0 |= XSTATE_PKRU;
    x86_cpuid(c, 0xd, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(b, ==, 2696);
    x86_cpuid(c, 0xd, 1, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 15);
    g_assert_cmpuint(b, ==, 576 + 256 + 8);
    x86_cpuid(c, 0xd, 2, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, 256);
    g_assert_cmpuint(b, ==, 576);
    x86_cpuid(c, 0xd, 5, &a, &b, &cx, &d);
    g_assert_cmpuint(a | b | cx | d, ==, 0);
    /* dynamic bits */
    x86_cpuid(c, 1, 0, &a, &b, &cx, &d);
    g_assert_false(cx & CPUID_1_ECX_OSXSAVE);
    c->cr4 |= CR4_OSXSAVE | CR4_PKE;
    x86_cpuid(c, 1, 0, &a, &b, &cx, &d);
    g_assert_true(cx & CPUID_1_ECX_OSXSAVE);
    x86_cpuid(c, 7, 0, &a, &b, &cx, &d);
    g_assert_true(cx & CPUID_7_0_ECX_OSPKE);
    /* an Intel processor answers an absent leaf with the highest basic one */
    x86_cpuid(c, c->model->level, 0, &a, &b, &cx, &d);
    uint32_t want = a;
    x86_cpuid(c, 0x123, 0, &a, &b, &cx, &d);
    g_assert_cmpuint(a, ==, want);
    free(c);
}

static uint64_t rd(X86CPU *c, uint32_t msr)
{
    uint64_t v;

    g_assert_true(x86_rdmsr(c, msr, &v));
    return v;
}

static void wr(X86CPU *c, uint32_t msr, uint64_t v, bool ok)
{
    uint64_t back;

    if (x86_wrmsr(c, msr, v) != ok) {
        g_error("WRMSR %x <- %" G_GINT64_MODIFIER "x: %s", msr, v, ok ? "#GP" : "accepted");
    }
    if (ok) {
        g_assert_true(x86_rdmsr(c, msr, &back));
        g_assert_cmphex(back, ==, v);
    }
}

static void test_msrs(void)
{
    X86CPU *c = new_cpu("Skylake-Client,check=off,phys-bits=40");
    uint64_t v;

    g_assert_false(x86_rdmsr(c, 0x12345, &v));
    g_assert_false(x86_wrmsr(c, 0x12345, 0));
    /* EFER */
    wr(c, 0xc0000080, EFER_SCE | EFER_LME | EFER_NXE, true);
    wr(c, 0xc0000080, 1ull << 13, false);
    c->cr0 |= CR0_PG;
    c->efer |= EFER_LMA;
    wr(c, 0xc0000080, EFER_SCE, false);                                 /* LME under paging */
    g_assert_true(x86_wrmsr(c, 0xc0000080, EFER_LME));                  /* LMA is kept */
    g_assert_cmphex(c->efer, ==, EFER_LME | EFER_LMA);
    c->cr0 &= ~CR0_PG;
    /* canonical addresses */
    wr(c, 0xc0000082, 0xffffffff81000000ull, true);
    wr(c, 0xc0000082, 0x0000800000000000ull, false);
    wr(c, 0xc0000100, 0x8000000000000000ull, false);
    wr(c, 0xc0000101, 0x00007fffffffffffull, true);
    wr(c, 0xc0000102, 0xffff800000000000ull, true);
    wr(c, 0x175, 0x0100000000000000ull, false);
    g_assert_cmphex(c->seg[R_GS].base, ==, 0x00007fffffffffffull);
    /* PAT and MTRRs */
    wr(c, 0x277, 0x0007010600070106ull, true);
    wr(c, 0x277, 0x0007010600070206ull, false);
    wr(c, 0x277, 0x0007010600070806ull, false);
    wr(c, 0x2ff, 0xc06, true);
    wr(c, 0x2ff, 0xc02, false);
    wr(c, 0x2ff, 0x1c06, false);
    wr(c, 0x200, 0xc0000000ull | 6, true);
    wr(c, 0x200, 0xc0000000ull | 7, false);
    wr(c, 0x200, 0xc0000100ull, false);
    wr(c, 0x201, (1ull << 40) - 0x40000000ull + 0x800, true);
    wr(c, 0x201, 1ull << 40, false);
    wr(c, 0x250, 0x0606060606060606ull, true);
    wr(c, 0x268, 0x0606060206060606ull, false);
    wr(c, 0x210, 0, false);
    wr(c, 0xfe, 0, false);
    /* machine check: 10 banks */
    wr(c, 0x401, 0, true);
    wr(c, 0x401, 1, false);
    wr(c, 0x400, UINT64_MAX, true);
    wr(c, 0x400, 5, false);
    wr(c, 0x402, 0xaaaaaaaaaaaaaaaaull, true); /* address, miscellaneous: any value */
    g_assert_cmphex(rd(c, 0x402), ==, 0xaaaaaaaaaaaaaaaaull);
    wr(c, 0x403, UINT64_MAX, true);
    g_assert_cmphex(rd(c, 0x403), ==, UINT64_MAX);
    wr(c, 0x400 + 39, 0, true);
    wr(c, 0x400 + 40, 0, false);
    wr(c, 0x179, 0, false);
    g_assert_true(x86_wrmsr(c, 0x1a0, UINT64_MAX)); /* MISC_ENABLE: writable bits only */
    g_assert_cmphex(rd(c, 0x1a0), ==, 0x400c51809ull);
    g_assert_true(x86_wrmsr(c, 0x1a0, 1));
    g_assert_cmphex(rd(c, 0x1a0), ==, 0x1801);
    /* without the features there are no such registers */
    wr(c, 0xc0000103, 5, true);
    wr(c, 0xc0000103, 1ull << 32, false);
    wr(c, 0x3b, 0, false);
    wr(c, 0x48, 0, false);
    wr(c, 0xda0, 0, false);
    wr(c, 0xc0010015, 0, false); /* AMD's */
    wr(c, 0x1d9, 3, true);
    wr(c, 0x1d9, 4, false);
    wr(c, 0x9e, 0x30000, false); /* SMBASE outside SMM */
    wr(c, 0x6e0, 1, false);      /* no local APIC here */
    wr(c, 0x802, 1, false);
    free(c);
    c = new_cpu("EPYC,check=off");
    wr(c, 0xc0010015, 1 << 24 | 1 << 18, true);
    wr(c, 0x401, 5, true); /* McStatusWrEn */
    free(c);
}

static void test_reset(void)
{
    X86CPU *c = new_cpu("qemu64");

    g_assert_cmphex(c->rip, ==, 0xfff0);
    g_assert_cmphex(c->seg[R_CS].base, ==, 0xffff0000);
    g_assert_cmphex(c->seg[R_CS].selector, ==, 0xf000);
    g_assert_cmphex(c->cr0, ==, 0x60000010);
    g_assert_cmphex(c->regs[R_RDX], ==, 0x60fb1);
    g_assert_cmphex(x86_get_rflags(c), ==, 2);
    g_assert_cmphex(c->dr[6], ==, 0xffff0ff0);
    g_assert_cmphex(c->dr[7], ==, 0x400);
    g_assert_false(c->wait_for_sipi);
    /* INIT keeps caches' state, FPU, MTRRs and most MSRs */
    c->cr0 = CR0_PE | CR0_PG | CR0_NW | CR0_ET;
    c->efer = EFER_LME | EFER_LMA;
    c->star = 5;
    c->mtrr_deftype = 0xc06;
    c->x87.fcw = 0x27f;
    c->ymm[3][7] = 9;
    c->xcr0 = 7;
    c->smbase = 0xa0000;
    x86_cpu_reset(c, true);
    g_assert_cmphex(c->cr0, ==, CR0_NW | CR0_ET);
    g_assert_cmphex(c->efer, ==, 0);
    g_assert_cmphex(c->star, ==, 5);
    g_assert_cmphex(c->mtrr_deftype, ==, 0xc06);
    g_assert_cmphex(c->x87.fcw, ==, 0x27f);
    g_assert_cmphex(c->ymm[3][7], ==, 9);
    g_assert_cmphex(c->xcr0, ==, 7);
    g_assert_cmphex(c->smbase, ==, 0xa0000);
    x86_cpu_reset(c, false);
    g_assert_cmphex(c->star, ==, 0);
    g_assert_cmphex(c->x87.fcw, ==, 0x40);
    g_assert_cmphex(c->xcr0, ==, 1);
    c->base.index = 1;
    x86_cpu_reset(c, true);
    g_assert_true(c->wait_for_sipi);
    x86_cpu_sipi(c, 0x9a);
    g_assert_false(c->wait_for_sipi);
    g_assert_cmphex(c->rip, ==, 0);
    g_assert_cmphex(c->seg[R_CS].selector, ==, 0x9a00);
    g_assert_cmphex(c->seg[R_CS].base, ==, 0x9a000);
    free(c);
}

static void test_firmware_mtrrs(void)
{
    X86CPU *c = new_cpu("qemu64");

    x86_cpu_firmware_mtrrs(c, 0xc0000000);
    g_assert_cmphex(c->mtrr_deftype, ==, 0xc06);
    g_assert_cmphex(c->mtrr_var[0][0], ==, 0xc0000000);
    g_assert_cmphex(c->mtrr_var[0][1], ==, 0xffc0000800ull);
    g_assert_cmphex(c->mtrr_var[1][1], ==, 0);
    x86_cpu_firmware_mtrrs(c, 0xe0000000 - 0x10000000);
    g_assert_cmphex(c->mtrr_var[0][0], ==, 0xd0000000);
    g_assert_cmphex(c->mtrr_var[0][1], ==, 0xfff0000800ull);
    g_assert_cmphex(c->mtrr_var[1][0], ==, 0xe0000000);
    g_assert_cmphex(c->mtrr_var[1][1], ==, 0xffe0000800ull);
    free(c);
}

static void test_tsc(void)
{
    X86CPU *c = new_cpu("qemu64,+tsc-adjust,tsc-frequency=2500M");
    uint64_t v;

    clock_virtual_set_manual();
    x86_cpu_reset(c, false);
    g_assert_cmpuint(c->tsc_khz, ==, 2500000);
    g_assert_cmpuint(x86_tsc_read(c), ==, 0);
    clock_virtual_advance_to(clock_get_ns(CLOCK_TYPE_VIRTUAL) + 1000000);
    v = x86_tsc_read(c);
    g_assert_cmpuint(v, >=, 2499999);
    g_assert_cmpuint(v, <=, 2500001);
    /* a write moves TSC_ADJUST along, a write to TSC_ADJUST moves the TSC */
    g_assert_true(x86_wrmsr(c, 0x10, v + 1000));
    g_assert_cmpuint(x86_tsc_read(c), ==, v + 1000);
    g_assert_cmpuint(c->tsc_adjust, ==, 1000);
    g_assert_true(x86_wrmsr(c, 0x3b, 0));
    g_assert_cmpuint(x86_tsc_read(c), ==, v);
    g_assert_cmpint(x86_tsc_to_monotonic(c, UINT64_MAX), ==, INT64_MAX);
    free(c);
    g_assert_cmpuint(x86_host_tsc_khz(), >, 100000);
}

static void without_refused(const char *names, const char *part)
{
    Error *err = NULL;

    g_assert_false(x86_tcg_host_without(names, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), part));
    error_free(err);
}

/* What a host lacks, and what would depend on it, is offered to no guest. */
static void test_host_without(void)
{
    const X86CpuBackend *b = &x86_tcg_backend;
    uint32_t ecx = b->supported(FEAT_1_ECX), ebx = b->supported(FEAT_7_0_EBX);
    const uint32_t avx = CPUID_1_ECX_AVX | CPUID_1_ECX_FMA | CPUID_1_ECX_F16C;
    X86CPU *c;

    x86_cpu_set_backend(b);
    g_assert_true(x86_tcg_host_without("avx", &error_abort));
    g_assert_cmphex(b->supported(FEAT_1_ECX), ==, ecx & ~avx);
    g_assert_cmphex(b->supported(FEAT_7_0_EBX), ==, ebx & ~CPUID_7_0_EBX_AVX2);
    refused("max,+avx,enforce=on", "avx");
    c = new_cpu("max");
    g_assert_cmphex(c->feat[FEAT_1_ECX] & avx, ==, 0);
    g_assert_cmphex(c->feat[FEAT_7_0_EBX] & CPUID_7_0_EBX_AVX2, ==, 0);
    free(c);
    g_assert_true(x86_tcg_host_without("bmi2:popcnt:pni", &error_abort));
    g_assert_cmphex(b->supported(FEAT_1_ECX) & (CPUID_1_ECX_SSE3 | CPUID_1_ECX_POPCNT | avx), ==, 0);
    g_assert_cmphex(b->supported(FEAT_7_0_EBX) & CPUID_7_0_EBX_BMI2, ==, 0);
    g_assert_true(x86_tcg_host_without("all", &error_abort));
    g_assert_cmphex(b->supported(FEAT_1_ECX), ==,
                    CPUID_1_ECX_PCID | CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_XSAVE |
                        CPUID_1_ECX_HYPERVISOR);
    g_assert_cmphex(b->supported(FEAT_8000_0001_ECX) & CPUID_8000_0001_ECX_ABM, ==, 0);
    g_assert_null(x86_tcg_host_lacks());
    without_refused("", "'' is nothing");
    without_refused("avx:", "'' is nothing");
    without_refused("avx:sse2", "'sse2' is nothing");
    without_refused("fsgsbase", "avx2, bmi2");
    g_assert_cmphex(b->supported(FEAT_7_0_EBX) & CPUID_7_0_EBX_BMI1, ==, 0); /* as before */
    g_assert_true(x86_tcg_host_without("lahf_lm", &error_abort));
    g_assert_cmpstr(x86_tcg_host_lacks(), ==, "lahf_lm");
    g_assert_true(x86_tcg_host_without(NULL, &error_abort));
    g_assert_null(x86_tcg_host_lacks());
    g_assert_cmphex(b->supported(FEAT_1_ECX), ==, ecx);
    g_assert_cmphex(b->supported(FEAT_7_0_EBX), ==, ebx);
}

int main(int argc, char **argv)
{
    EventLoop *loop;

    g_test_init(&argc, &argv, NULL);
    loop = event_loop_new("main", &error_abort);
    event_loop_set_main(loop);
    g_test_add_func("/x86cpu/arguments", test_arguments);
    g_test_add_func("/x86cpu/dependencies", test_dependencies);
    g_test_add_func("/x86cpu/tables", test_tables);
    g_test_add_func("/x86cpu/tcg", test_tcg);
    g_test_add_func("/x86cpu/topology", test_topology);
    g_test_add_func("/x86cpu/xsave-leaf", test_xsave_leaf);
    g_test_add_func("/x86cpu/msrs", test_msrs);
    g_test_add_func("/x86cpu/reset", test_reset);
    g_test_add_func("/x86cpu/firmware-mtrrs", test_firmware_mtrrs);
    g_test_add_func("/x86cpu/tsc", test_tsc);
    g_test_add_func("/x86cpu/host-without", test_host_without);
    return g_test_run();
}
