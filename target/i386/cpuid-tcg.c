/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the interpreter can give a guest. Two lists: features it implements by itself, and features
 * whose instructions it runs on the host's own units, which are offered only if the host has them.
 *
 * Besides, the features every model gets, because they let a guest keep time on a busy host
 * (docs/devel/cpu-models.md tells what Linux does with each): a deadline timer that needs no
 * calibration and always runs (tsc-deadline, arat), a TSC known to be constant and synchronised
 * (invtsc, tsc-adjust), string moves that are one instruction to interpret (erms, fsrm).
 */
#include <glib.h>
#include <string.h>
#include "target/i386/cpuid.h"

#define TCG_TSC_KHZ 1000000u

static const uint32_t by_itself[FEAT_WORDS] = {
    [FEAT_1_EDX] = CPUID_1_EDX_FPU | CPUID_1_EDX_DE | CPUID_1_EDX_PSE | CPUID_1_EDX_TSC |
                   CPUID_1_EDX_MSR | CPUID_1_EDX_PAE | CPUID_1_EDX_MCE | CPUID_1_EDX_CX8 |
                   CPUID_1_EDX_APIC | CPUID_1_EDX_SEP | CPUID_1_EDX_MTRR | CPUID_1_EDX_PGE |
                   CPUID_1_EDX_MCA | CPUID_1_EDX_CMOV | CPUID_1_EDX_PAT | CPUID_1_EDX_PSE36 |
                   CPUID_1_EDX_CLFLUSH | CPUID_1_EDX_MMX | CPUID_1_EDX_FXSR | CPUID_1_EDX_SSE |
                   CPUID_1_EDX_SSE2 | CPUID_1_EDX_SS | CPUID_1_EDX_HT,
    [FEAT_1_ECX] = CPUID_1_ECX_PCID | CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE |
                   CPUID_1_ECX_XSAVE | CPUID_1_ECX_HYPERVISOR,
    [FEAT_7_0_EBX] = CPUID_7_0_EBX_FSGSBASE | CPUID_7_0_EBX_TSC_ADJUST | CPUID_7_0_EBX_SMEP |
                     CPUID_7_0_EBX_ERMS | CPUID_7_0_EBX_INVPCID | CPUID_7_0_EBX_SMAP |
                     CPUID_7_0_EBX_CLFLUSHOPT | CPUID_7_0_EBX_CLWB,
    [FEAT_7_0_ECX] = CPUID_7_0_ECX_UMIP | CPUID_7_0_ECX_PKU | CPUID_7_0_ECX_RDPID,
    [FEAT_7_0_EDX] = CPUID_7_0_EDX_FSRM | CPUID_7_0_EDX_ARCH_CAPABILITIES,
    [FEAT_8000_0001_EDX] = CPUID_8000_0001_EDX_SYSCALL | CPUID_8000_0001_EDX_NX |
                           CPUID_8000_0001_EDX_MMXEXT | CPUID_8000_0001_EDX_PDPE1GB |
                           CPUID_8000_0001_EDX_RDTSCP | CPUID_8000_0001_EDX_LM |
                           CPUID_8000_0001_EDX_AMD_ALIASES,
    [FEAT_8000_0001_ECX] = CPUID_8000_0001_ECX_LAHF_LM | CPUID_8000_0001_ECX_CMP_LEGACY |
                           CPUID_8000_0001_ECX_3DNOWPREFETCH | CPUID_8000_0001_ECX_TOPOEXT,
    [FEAT_8000_0007_EDX] = CPUID_8000_0007_EDX_INVTSC,
    [FEAT_6_EAX] = CPUID_6_EAX_ARAT,
    [FEAT_XSAVE] = CPUID_XSAVE_XSAVEOPT | CPUID_XSAVE_XSAVEC | CPUID_XSAVE_XGETBV1 |
                   CPUID_XSAVE_XSAVES,
    /* Nothing of the guest is speculated: the interpreter checks before it reads. */
    [FEAT_ARCH_CAP] = CPUID_ARCH_CAP_RDCL_NO | CPUID_ARCH_CAP_SKIP_L1DFL | CPUID_ARCH_CAP_SSB_NO |
                      CPUID_ARCH_CAP_MDS_NO | CPUID_ARCH_CAP_PSCHANGE_MC_NO |
                      CPUID_ARCH_CAP_TAA_NO | CPUID_ARCH_CAP_SBDR_SSDP_NO |
                      CPUID_ARCH_CAP_FBSDP_NO | CPUID_ARCH_CAP_PSDP_NO | CPUID_ARCH_CAP_PBRSB_NO |
                      CPUID_ARCH_CAP_GDS_NO | CPUID_ARCH_CAP_RFDS_NO,
};

static const uint32_t by_host[FEAT_WORDS] = {
    [FEAT_1_ECX] = CPUID_1_ECX_SSE3 | CPUID_1_ECX_PCLMULQDQ | CPUID_1_ECX_SSSE3 | CPUID_1_ECX_FMA |
                   CPUID_1_ECX_CX16 | CPUID_1_ECX_SSE41 | CPUID_1_ECX_SSE42 | CPUID_1_ECX_MOVBE |
                   CPUID_1_ECX_POPCNT | CPUID_1_ECX_AES | CPUID_1_ECX_AVX | CPUID_1_ECX_F16C |
                   CPUID_1_ECX_RDRAND,
    [FEAT_7_0_EBX] = CPUID_7_0_EBX_BMI1 | CPUID_7_0_EBX_AVX2 | CPUID_7_0_EBX_BMI2 |
                     CPUID_7_0_EBX_RDSEED | CPUID_7_0_EBX_ADX | CPUID_7_0_EBX_SHA,
    [FEAT_8000_0001_ECX] = CPUID_8000_0001_ECX_ABM,
};

static const uint32_t always[FEAT_WORDS] = {
    [FEAT_1_ECX] = CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_HYPERVISOR,
    [FEAT_7_0_EBX] = CPUID_7_0_EBX_TSC_ADJUST | CPUID_7_0_EBX_ERMS,
    [FEAT_7_0_EDX] = CPUID_7_0_EDX_FSRM | CPUID_7_0_EDX_ARCH_CAPABILITIES,
    [FEAT_8000_0007_EDX] = CPUID_8000_0007_EDX_INVTSC,
    [FEAT_6_EAX] = CPUID_6_EAX_ARAT,
    [FEAT_ARCH_CAP] = ~0u,
};

/* As QEMU: virtual-8086 extensions are KVM's alone; a model's name alone is no reason to give the rest. */
static const uint32_t unless_asked[FEAT_WORDS] = {
    [FEAT_1_EDX] = CPUID_1_EDX_VME | CPUID_1_EDX_ACPI,
    [FEAT_1_ECX] = CPUID_1_ECX_MONITOR,
    [FEAT_8000_0001_ECX] = CPUID_8000_0001_ECX_SVM,
};

static uint32_t host_word(FeatureWord w)
{
    const uint32_t needs_ymm = CPUID_1_ECX_AVX | CPUID_1_ECX_FMA | CPUID_1_ECX_F16C;
    uint32_t r[4];

    switch (w) {
    case FEAT_1_ECX:
        x86_host_cpuid(1, 0, r);
        return x86_host_saves_ymm() ? r[2] : r[2] & ~needs_ymm;
    case FEAT_7_0_EBX:
        x86_host_cpuid(7, 0, r);
        return x86_host_saves_ymm() ? r[1] : r[1] & ~CPUID_7_0_EBX_AVX2;
    case FEAT_8000_0001_ECX:
        x86_host_cpuid(0x80000001, 0, r);
        return r[2];
    default:
        return 0;
    }
}

/*
 * The software CPU's own need: it keeps the guest's arithmetic flags in the form of LAHF and SAHF, which
 * the first x86-64 processors did not have in 64-bit mode.
 */
#define OWN_WORD FEAT_8000_0001_ECX
#define OWN_BITS CPUID_8000_0001_ECX_LAHF_LM

/* Start-up, then read only. */
static struct {
    bool known;                     /* supported is computed */
    uint32_t without[FEAT_WORDS];   /* taken as absent from the host: x86_tcg_host_without() */
    uint32_t supported[FEAT_WORDS];
} host;

/* Nothing without its prerequisites: a host without AVX has no AVX2, whatever it says. */
static uint32_t tcg_supported(FeatureWord w)
{
    if (!host.known) {
        for (FeatureWord n = 0; n < FEAT_WORDS; n++) {
            host.supported[n] = by_itself[n] | (by_host[n] & host_word(n) & ~host.without[n]);
        }
        x86_features_drop_orphans(host.supported);
        host.known = true;
    }
    return host.supported[w];
}

static uint32_t taken_from_host(FeatureWord w)
{
    return by_host[w] | (w == OWN_WORD ? OWN_BITS : 0);
}

static void refuse_name(const char *names, const char *name, Error **errp)
{
    GString *list = g_string_new(NULL);

    for (unsigned i = 0; i < x86_feature_count; i++) {
        if (taken_from_host(x86_features[i].word) & BIT(x86_features[i].bit)) {
            g_string_append_printf(list, "%s%s", list->len ? ", " : "", x86_features[i].name);
        }
    }
    error_setg(errp, "host-without=%s: '%s' is nothing that the software CPU takes from its host; use all, or "
                     "of these, separated by ':': %s", names, name, list->str);
    g_string_free(list, TRUE);
}

bool x86_tcg_host_without(const char *names, Error **errp)
{
    uint32_t without[FEAT_WORDS] = { 0 }, mask[FEAT_WORDS];
    char **words = g_strsplit(names ? names : "", ":", -1);
    bool ok = *words || !names;

    for (char **w = words; *w && ok; w++) {
        bool all = !strcmp(*w, "all");

        ok = all || x86_feature_lookup(*w, mask);
        for (FeatureWord n = 0; n < FEAT_WORDS && ok; n++) {
            mask[n] = all ? by_host[n] : mask[n];
            ok = !(mask[n] & ~taken_from_host(n));
            without[n] |= mask[n];
        }
        if (!ok) {
            refuse_name(names, *w, errp);
        }
    }
    if (names && !*words) {
        refuse_name(names, "", errp);
    }
    g_strfreev(words);
    if (ok) {
        memcpy(host.without, without, sizeof(without));
        host.known = false;
    }
    return ok;
}

const char *x86_tcg_host_lacks(void)
{
    return host_word(OWN_WORD) & ~host.without[OWN_WORD] & OWN_BITS ? NULL : "lahf_lm";
}

static uint32_t tcg_defaults(FeatureWord w)
{
    return always[w];
}

static uint32_t tcg_tsc_khz(void)
{
    return TCG_TSC_KHZ;
}

const X86CpuBackend x86_tcg_backend = {
    .name = "TCG",
    .supported = tcg_supported,
    .defaults = tcg_defaults,
    .unless_asked = unless_asked,
    .host_cpuid = x86_host_cpuid,
    .default_tsc_khz = tcg_tsc_khz,
    .tsc_constant = true,
};
