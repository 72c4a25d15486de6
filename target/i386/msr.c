/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model-specific registers that every accelerator running its own CPU loop needs (SDM 4, APM 2
 * appendix A). Unknown registers raise #GP, as on hardware. Reading or writing never has a side
 * effect outside X86CPU and the interrupt chip; the caller looks at what changed (EFER: TLB).
 */
#include "accel/irqchip.h"
#include "target/i386/cpuid.h"
#include "target/i386/mtrr.h"

enum {
    MSR_P5_MC_ADDR = 0x0, MSR_P5_MC_TYPE = 0x1, MSR_TSC = 0x10, MSR_PLATFORM_ID = 0x17,
    MSR_APIC_BASE = 0x1b, MSR_EBL_CR_POWERON = 0x2a, MSR_EBC_FREQUENCY_ID = 0x2c,
    MSR_FEATURE_CONTROL = 0x3a, MSR_TSC_ADJUST = 0x3b, MSR_SPEC_CTRL = 0x48, MSR_PRED_CMD = 0x49,
    MSR_BIOS_UPDT_TRIG = 0x79, MSR_BIOS_SIGN_ID = 0x8b, MSR_SMBASE = 0x9e, MSR_FSB_FREQ = 0xcd,
    MSR_PLATFORM_INFO = 0xce, MSR_MTRRCAP = 0xfe, MSR_ARCH_CAPABILITIES = 0x10a,
    MSR_FLUSH_CMD = 0x10b, MSR_BBL_CR_CTL = 0x119, MSR_BBL_CR_CTL3 = 0x11e,
    MSR_SYSENTER_CS = 0x174, MSR_SYSENTER_ESP = 0x175, MSR_SYSENTER_EIP = 0x176, MSR_MCG_CAP = 0x179,
    MSR_MCG_STATUS = 0x17a, MSR_MCG_CTL = 0x17b, MSR_PERF_STATUS = 0x198, MSR_PERF_CTL = 0x199,
    MSR_CLOCK_MODULATION = 0x19a, MSR_THERM_INTERRUPT = 0x19b, MSR_THERM_STATUS = 0x19c,
    MSR_MISC_ENABLE = 0x1a0, MSR_DEBUGCTL = 0x1d9, MSR_LASTBRANCHFROMIP = 0x1db,
    MSR_LASTINTTOIP = 0x1de, MSR_PAT = 0x277, MSR_MC0_CTL = 0x400, MSR_TSC_DEADLINE = 0x6e0,
    MSR_X2APIC_FIRST = 0x800, MSR_X2APIC_LAST = 0x8ff, MSR_XSS = 0xda0,
};
#define MSR_EFER           0xc0000080u
#define MSR_STAR           0xc0000081u
#define MSR_LSTAR          0xc0000082u
#define MSR_CSTAR          0xc0000083u
#define MSR_FMASK          0xc0000084u
#define MSR_FS_BASE        0xc0000100u
#define MSR_GS_BASE        0xc0000101u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define MSR_TSC_AUX        0xc0000103u
#define MSR_AMD_HWCR       0xc0010015u

#define HWCR_MC_STATUS_WR_EN     BIT64(18)
#define MISC_ENABLE_LIMIT_CPUID  BIT64(22)
#define MISC_ENABLE_XD_DISABLE   BIT64(34)
/*
 * Fast strings, TCC, EIST, MONITOR and xTPR, besides those with a meaning here: what they control
 * is not there, and they keep what was written.
 */
#define MISC_ENABLE_WRITABLE     (BIT64(0) | BIT64(3) | BIT64(16) | BIT64(18) | BIT64(23) | \
                                  MISC_ENABLE_LIMIT_CPUID | MISC_ENABLE_XD_DISABLE)
#define DEBUGCTL_LBR BIT64(0)
#define DEBUGCTL_BTF BIT64(1)
#define APIC_BASE_RESET_VALUE (0xfee00000ull | BIT(11))

/* Reads as 0 and ignores writes on AMD processors; kernels and firmware touch them unguarded. */
static const uint32_t amd_ignored[] = {
    /* PERF_LEGACY_CTL and CTR: on every one since the K7, no CPUID bit announces them. */
    0xc0010000, 0xc0010001, 0xc0010002, 0xc0010003,
    0xc0010004, 0xc0010005, 0xc0010006, 0xc0010007,
    0xc0010010, /* SYSCFG */
    0xc001001a, /* TOP_MEM */
    0xc001001d, /* TOP_MEM2 */
    0xc001001f, /* NB_CFG */
    0xc0010055, /* interrupt pending and CMP-halt: no C1E */
    0xc0010058, /* MMIO configuration base */
    0xc0010061, 0xc0010062, 0xc0010063, 0xc0010064, /* P-states */
    0xc0010112, 0xc0010113, /* SMM TSEG */
    0xc0010114, /* VM_CR */
    0xc0011020, 0xc0011021, 0xc0011022, 0xc0011023, 0xc0011029, 0xc001102a, /* LS/IC/DC/CU/DE/BU_CFG */
};

static bool amd_is_ignored(const X86CPU *c, uint32_t index)
{
    if (x86_is_intel(c)) {
        return false;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(amd_ignored); i++) {
        if (amd_ignored[i] == index) {
            return true;
        }
    }
    return false;
}

/* Registers that are there only to be read as 0, and written without effect. */
static bool is_zero_register(uint32_t index)
{
    switch (index) {
    case MSR_P5_MC_ADDR:
    case MSR_P5_MC_TYPE:
    case MSR_PLATFORM_ID:
    case MSR_EBL_CR_POWERON:
    case MSR_EBC_FREQUENCY_ID:
    case MSR_BIOS_UPDT_TRIG:
    case MSR_FSB_FREQ:
    case MSR_PLATFORM_INFO:
    case MSR_BBL_CR_CTL:
    case MSR_BBL_CR_CTL3:
    case MSR_PERF_CTL:
    case MSR_CLOCK_MODULATION:
    case MSR_THERM_INTERRUPT:
    case MSR_THERM_STATUS:
        return true;
    default:
        return index >= MSR_LASTBRANCHFROMIP && index <= MSR_LASTINTTOIP;
    }
}

static bool has_tsc_aux(const X86CPU *c)
{
    return x86_has(c, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_RDTSCP) ||
           x86_has(c, FEAT_7_0_ECX, CPUID_7_0_ECX_RDPID);
}

/* Bits of IA32_SPEC_CTRL this guest may set; 0: the register does not exist. */
static uint64_t spec_ctrl_mask(const X86CPU *c)
{
    uint64_t mask = 0;

    if (x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_SPEC_CTRL) ||
        x86_has(c, FEAT_8000_0008_EBX, CPUID_8000_0008_EBX_IBRS)) {
        mask |= 1;
    }
    if (x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_STIBP) ||
        x86_has(c, FEAT_8000_0008_EBX, CPUID_8000_0008_EBX_AMD_STIBP)) {
        mask |= 2;
    }
    if (x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_SSBD) ||
        x86_has(c, FEAT_8000_0008_EBX, CPUID_8000_0008_EBX_AMD_SSBD)) {
        mask |= 4;
    }
    return mask;
}

static bool is_mc_bank(const X86CPU *c, uint32_t index)
{
    return index - MSR_MC0_CTL < 4 * (c->mcg_cap & 0xff);
}

static bool read_apic(X86CPU *c, uint32_t index, uint64_t *v)
{
    if (index == MSR_APIC_BASE) {
        *v = irqchip && irqchip->base_get ? irqchip->base_get(&c->base)
                                          : APIC_BASE_RESET_VALUE | (c->base.index ? 0 : BIT(8));
        return x86_has(c, FEAT_1_EDX, CPUID_1_EDX_APIC);
    }
    if (index == MSR_TSC_DEADLINE) {
        if (!x86_has(c, FEAT_1_ECX, CPUID_1_ECX_TSC_DEADLINE) || !irqchip ||
            !irqchip->tsc_deadline_get) {
            return false;
        }
        *v = irqchip->tsc_deadline_get(&c->base);
        return true;
    }
    return x86_has(c, FEAT_1_ECX, CPUID_1_ECX_X2APIC) && irqchip && irqchip->msr_read &&
           irqchip->msr_read(&c->base, index, v);
}

/* The groups that share a condition; false if index is in none of them. */
static bool read_simple(X86CPU *c, uint32_t index, uint64_t *v)
{
    switch (index) {
    case MSR_TSC:
        *v = x86_tsc_read(c);
        return true;
    case MSR_MTRRCAP:
        *v = X86_MTRR_VAR | BIT(8) /* fixed ranges */ | BIT(10) /* write combining */;
        return true;
    case MSR_SYSENTER_CS:
        *v = c->sysenter_cs;
        return true;
    case MSR_SYSENTER_ESP:
        *v = c->sysenter_esp;
        return true;
    case MSR_SYSENTER_EIP:
        *v = c->sysenter_eip;
        return true;
    case MSR_MCG_CAP:
        *v = c->mcg_cap;
        return true;
    case MSR_MCG_STATUS:
        *v = c->mcg_status;
        return true;
    case MSR_MCG_CTL:
        *v = c->mcg_ctl;
        return true;
    case MSR_PERF_STATUS: /* current ratio, as 1000 MHz would give: read by old cpufreq code only */
        *v = 1000ull << 32 | 4 << 8;
        return true;
    case MSR_BIOS_SIGN_ID: /* microcode revision */
        *v = x86_is_intel(c) ? 1ull << 32 : 0x01000065;
        return true;
    case MSR_MISC_ENABLE:
        *v = c->misc_enable;
        return true;
    case MSR_DEBUGCTL:
        *v = c->debugctl;
        return true;
    case MSR_PAT:
        *v = c->pat;
        return true;
    case MSR_EFER:
        *v = c->efer;
        return true;
    case MSR_STAR:
        *v = c->star;
        return true;
    case MSR_LSTAR:
        *v = c->lstar;
        return true;
    case MSR_CSTAR:
        *v = c->cstar;
        return true;
    case MSR_FMASK:
        *v = c->fmask;
        return true;
    case MSR_FS_BASE:
        *v = c->seg[R_FS].base;
        return true;
    case MSR_GS_BASE:
        *v = c->seg[R_GS].base;
        return true;
    case MSR_KERNEL_GS_BASE:
        *v = c->kernel_gs_base;
        return true;
    default:
        return false;
    }
}

bool x86_rdmsr(X86CPU *c, uint32_t index, uint64_t *v)
{
    *v = 0;
    if (read_simple(c, index, v) || is_zero_register(index) || amd_is_ignored(c, index)) {
        return true;
    }
    if (x86_has(c, FEAT_1_EDX, CPUID_1_EDX_MTRR) && x86_mtrr_read(c, index, v)) {
        return true;
    }
    if (is_mc_bank(c, index)) {
        *v = c->mce_banks[(index - MSR_MC0_CTL) / 4][index & 3];
        return true;
    }
    switch (index) {
    case MSR_APIC_BASE:
    case MSR_TSC_DEADLINE:
    case MSR_X2APIC_FIRST ... MSR_X2APIC_LAST:
        return read_apic(c, index, v);
    case MSR_FEATURE_CONTROL:
        *v = c->feature_control;
        return x86_has(c, FEAT_1_ECX, CPUID_1_ECX_VMX | CPUID_1_ECX_SMX);
    case MSR_TSC_ADJUST:
        *v = c->tsc_adjust;
        return x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_TSC_ADJUST);
    case MSR_SPEC_CTRL:
        *v = c->spec_ctrl;
        return spec_ctrl_mask(c) != 0;
    case MSR_SMBASE:
        *v = c->smbase;
        return c->smm;
    case MSR_ARCH_CAPABILITIES:
        *v = c->feat[FEAT_ARCH_CAP];
        return x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_ARCH_CAPABILITIES);
    case MSR_XSS:
        *v = c->xss;
        return x86_has(c, FEAT_XSAVE, CPUID_XSAVE_XSAVES);
    case MSR_TSC_AUX:
        *v = c->tsc_aux;
        return has_tsc_aux(c);
    case MSR_AMD_HWCR:
        *v = c->hwcr;
        return !x86_is_intel(c);
    default:
        return false;
    }
}

static bool write_efer(X86CPU *c, uint64_t v)
{
    uint64_t allowed = EFER_LMA;

    if (x86_has(c, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_SYSCALL)) {
        allowed |= EFER_SCE;
    }
    if (x86_has(c, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_LM)) {
        allowed |= EFER_LME;
    }
    if (x86_has(c, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_NX) &&
        !(c->misc_enable & MISC_ENABLE_XD_DISABLE)) {
        allowed |= EFER_NXE;
    }
    if (x86_has(c, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_FFXSR)) {
        allowed |= EFER_FFXSR;
    }
    if ((v & ~allowed) || ((c->cr0 & CR0_PG) && ((v ^ c->efer) & EFER_LME))) {
        return false;
    }
    c->efer = (v & ~EFER_LMA) | (c->efer & EFER_LMA); /* LMA is the processor's own */
    return true;
}

static bool write_canonical(const X86CPU *c, uint64_t *reg, uint64_t v)
{
    if (!x86_is_canonical(c, v)) {
        return false;
    }
    *reg = v;
    return true;
}

/*
 * SDM 3B 17.3.2: control registers take all ones or zeros, status registers zero. On AMD processors
 * each bit of a control register enables one source of errors (APM 2 9.3.2.1), and Linux clears
 * single ones. Address and miscellaneous registers keep any value, as those of AMD do and KVM's,
 * whose guests inject errors by writing them.
 */
static bool write_mc_bank(X86CPU *c, uint32_t index, uint64_t v)
{
    unsigned reg = index & 3;

    if (reg == 0 && x86_is_intel(c) && v != 0 && v != UINT64_MAX) {
        return false;
    }
    if (reg == 1 && v != 0 && !(c->hwcr & HWCR_MC_STATUS_WR_EN)) {
        return false;
    }
    c->mce_banks[(index - MSR_MC0_CTL) / 4][reg] = v;
    return true;
}

static bool write_apic(X86CPU *c, uint32_t index, uint64_t v)
{
    if (index == MSR_APIC_BASE) {
        return x86_has(c, FEAT_1_EDX, CPUID_1_EDX_APIC) && irqchip && irqchip->base_set &&
               irqchip->base_set(&c->base, v);
    }
    if (index == MSR_TSC_DEADLINE) {
        if (!x86_has(c, FEAT_1_ECX, CPUID_1_ECX_TSC_DEADLINE) || !irqchip ||
            !irqchip->tsc_deadline_set) {
            return false;
        }
        irqchip->tsc_deadline_set(&c->base, v);
        return true;
    }
    return x86_has(c, FEAT_1_ECX, CPUID_1_ECX_X2APIC) && irqchip && irqchip->msr_write &&
           irqchip->msr_write(&c->base, index, v);
}

static bool write_tsc_aux(X86CPU *c, uint64_t v)
{
    if (!has_tsc_aux(c) || ((v >> 32) && x86_is_intel(c))) {
        return false;
    }
    c->tsc_aux = (uint32_t)v;
    return true;
}

static bool write_tsc_adjust(X86CPU *c, uint64_t v)
{
    if (!x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_TSC_ADJUST)) {
        return false;
    }
    c->tsc_offset = (int64_t)((uint64_t)c->tsc_offset + (v - c->tsc_adjust));
    c->tsc_adjust = v;
    return true;
}

/* Registers whose existence or values depend on a feature. */
static bool write_conditional(X86CPU *c, uint32_t index, uint64_t v)
{
    switch (index) {
    case MSR_APIC_BASE:
    case MSR_TSC_DEADLINE:
    case MSR_X2APIC_FIRST ... MSR_X2APIC_LAST:
        return write_apic(c, index, v);
    case MSR_FEATURE_CONTROL:
        if (!x86_has(c, FEAT_1_ECX, CPUID_1_ECX_VMX | CPUID_1_ECX_SMX) || (c->feature_control & 1)) {
            return false;
        }
        c->feature_control = v;
        return true;
    case MSR_TSC_ADJUST:
        return write_tsc_adjust(c, v);
    case MSR_SPEC_CTRL:
        if (!spec_ctrl_mask(c) || (v & ~spec_ctrl_mask(c))) {
            return false;
        }
        c->spec_ctrl = v;
        return true;
    case MSR_PRED_CMD: /* nothing is predicted across the barrier anyway */
        return !(v & ~1ull) && (x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_SPEC_CTRL) ||
                                x86_has(c, FEAT_8000_0008_EBX, CPUID_8000_0008_EBX_IBPB));
    case MSR_FLUSH_CMD:
        return !(v & ~1ull) && x86_has(c, FEAT_7_0_EDX, CPUID_7_0_EDX_FLUSH_L1D);
    case MSR_XSS:
        if (!x86_has(c, FEAT_XSAVE, CPUID_XSAVE_XSAVES) || (v & ~x86_xss_mask(c))) {
            return false;
        }
        c->xss = v;
        return true;
    case MSR_TSC_AUX:
        return write_tsc_aux(c, v);
    case MSR_AMD_HWCR:
        c->hwcr = (v & ~HWCR_TSC_FREQ_SEL) | (c->hwcr & HWCR_TSC_FREQ_SEL);
        return !x86_is_intel(c);
    default:
        return false;
    }
}

bool x86_wrmsr(X86CPU *c, uint32_t index, uint64_t v)
{
    bool ok;

    if (x86_has(c, FEAT_1_EDX, CPUID_1_EDX_MTRR) && x86_mtrr_write(c, index, v, &ok)) {
        return ok;
    }
    if (is_mc_bank(c, index)) {
        return write_mc_bank(c, index, v);
    }
    switch (index) {
    case MSR_TSC:
        x86_tsc_write(c, v);
        return true;
    case MSR_SYSENTER_CS:
        c->sysenter_cs = (uint32_t)v;
        return true;
    case MSR_SYSENTER_ESP:
        return write_canonical(c, &c->sysenter_esp, v);
    case MSR_SYSENTER_EIP:
        return write_canonical(c, &c->sysenter_eip, v);
    case MSR_MCG_STATUS:
        c->mcg_status = v & 7;
        return !(v & ~7ull);
    case MSR_MCG_CTL:
        if (v != 0 && v != UINT64_MAX) {
            return false;
        }
        c->mcg_ctl = v;
        return true;
    case MSR_BIOS_SIGN_ID: /* software writes 0 and then executes CPUID to read the revision */
        return true;
    case MSR_MISC_ENABLE:
        c->misc_enable = (c->misc_enable & ~MISC_ENABLE_WRITABLE) | (v & MISC_ENABLE_WRITABLE);
        return true;
    case MSR_DEBUGCTL: /* no branch records are kept; the bit is stored as some processors do */
        if (v & ~(DEBUGCTL_LBR | DEBUGCTL_BTF)) {
            return false;
        }
        c->debugctl = v;
        return true;
    case MSR_PAT:
        if (!x86_has(c, FEAT_1_EDX, CPUID_1_EDX_PAT) || !x86_pat_valid(v)) {
            return false;
        }
        c->pat = v;
        return true;
    case MSR_EFER:
        return write_efer(c, v);
    case MSR_STAR:
        c->star = v;
        return true;
    case MSR_LSTAR:
        return write_canonical(c, &c->lstar, v);
    case MSR_CSTAR:
        return write_canonical(c, &c->cstar, v);
    case MSR_FMASK:
        c->fmask = v;
        return true;
    case MSR_FS_BASE:
        return write_canonical(c, &c->seg[R_FS].base, v);
    case MSR_GS_BASE:
        return write_canonical(c, &c->seg[R_GS].base, v);
    case MSR_KERNEL_GS_BASE:
        return write_canonical(c, &c->kernel_gs_base, v);
    default:
        if (index == MSR_PLATFORM_INFO || index == MSR_PLATFORM_ID) {
            return false; /* read-only */
        }
        return is_zero_register(index) || amd_is_ignored(c, index) ||
               write_conditional(c, index, v);
    }
}
