/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of CPUID features and which feature needs which other. */
#include <string.h>
#include "target/i386/cpuid.h"

const X86Feature x86_features[] = {
#define F(w, n, id, text) { .word = FEAT_##w, .bit = (n), .name = (text) },
    X86_FEATURE_TABLE(F)
#undef F
};
const unsigned x86_feature_count = ARRAY_SIZE(x86_features);

/* Other spellings that QEMU's users know. */
static const struct {
    const char *alias, *name;
} feature_aliases[] = {
    { "sse3", "pni" },        { "pclmuldq", "pclmulqdq" }, { "sse4-1", "sse4.1" },
    { "sse4-2", "sse4.2" },   { "xd", "nx" },              { "i64", "lm" },
    { "mmx-ext", "mmxext" },  { "ffxsr", "fxsr-opt" },     { "hypervisor-present", "hypervisor" },
    { "svm-npt", "npt" },     { "sha", "sha-ni" },         { "kvm-clock", "kvmclock" },
    { "lzcnt", "abm" },       { "tsc-deadline-timer", "tsc-deadline" },
    { "avx512vpopcntdq", "avx512-vpopcntdq" },             { "constant-tsc", "invtsc" },
};

/* Compares taking '_' for '-'. */
static bool name_equal(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char ca = *a == '_' ? '-' : *a;

        if (ca != *b) {
            return false;
        }
    }
    return *a == *b;
}

bool x86_feature_lookup(const char *name, uint32_t mask[FEAT_WORDS])
{
    bool found = false;

    for (unsigned i = 0; i < ARRAY_SIZE(feature_aliases); i++) {
        if (name_equal(name, feature_aliases[i].alias)) {
            name = feature_aliases[i].name;
            break;
        }
    }
    memset(mask, 0, FEAT_WORDS * sizeof(mask[0]));
    for (unsigned i = 0; i < x86_feature_count; i++) {
        if (name_equal(name, x86_features[i].name)) {
            mask[x86_features[i].word] |= 1u << x86_features[i].bit;
            found = true;
        }
    }
    return found;
}

const char *x86_feature_word_name(FeatureWord w)
{
    static const char *const names[FEAT_WORDS] = {
        [FEAT_1_EDX] = "CPUID.01H:EDX",
        [FEAT_1_ECX] = "CPUID.01H:ECX",
        [FEAT_7_0_EBX] = "CPUID.07H:EBX",
        [FEAT_7_0_ECX] = "CPUID.07H:ECX",
        [FEAT_7_0_EDX] = "CPUID.07H:EDX",
        [FEAT_7_1_EAX] = "CPUID.07H.01H:EAX",
        [FEAT_8000_0001_EDX] = "CPUID.80000001H:EDX",
        [FEAT_8000_0001_ECX] = "CPUID.80000001H:ECX",
        [FEAT_8000_0007_EDX] = "CPUID.80000007H:EDX",
        [FEAT_8000_0008_EBX] = "CPUID.80000008H:EBX",
        [FEAT_KVM] = "CPUID.40000001H:EAX",
        [FEAT_KVM_HINTS] = "CPUID.40000001H:EDX",
        [FEAT_6_EAX] = "CPUID.06H:EAX",
        [FEAT_XSAVE] = "CPUID.0DH.01H:EAX",
        [FEAT_8000_000A_EDX] = "CPUID.8000000AH:EDX",
        [FEAT_ARCH_CAP] = "MSR(10AH)",
    };

    return names[w];
}

typedef struct Dependency {
    FeatureWord word;
    uint32_t bits; /* these go ... */
    FeatureWord needs_word;
    uint32_t needs; /* ... unless all of these are there */
} Dependency;

#define AVX512_7_0_EBX                                                                             \
    (CPUID_7_0_EBX_AVX512DQ | CPUID_7_0_EBX_AVX512IFMA | CPUID_7_0_EBX_AVX512PF |                  \
     CPUID_7_0_EBX_AVX512ER | CPUID_7_0_EBX_AVX512CD | CPUID_7_0_EBX_AVX512BW |                    \
     CPUID_7_0_EBX_AVX512VL)
#define AVX512_7_0_ECX                                                                             \
    (CPUID_7_0_ECX_AVX512VBMI | CPUID_7_0_ECX_AVX512VBMI2 | CPUID_7_0_ECX_AVX512VNNI |             \
     CPUID_7_0_ECX_AVX512BITALG | CPUID_7_0_ECX_AVX512VPOPCNTDQ)
#define AVX512_7_0_EDX                                                                             \
    (CPUID_7_0_EDX_AVX512_4VNNIW | CPUID_7_0_EDX_AVX512_4FMAPS |                                   \
     CPUID_7_0_EDX_AVX512_VP2INTERSECT | CPUID_7_0_EDX_AVX512_FP16)

/* In an order that one pass suffices for. */
static const Dependency dependencies[] = {
    { FEAT_1_EDX, CPUID_1_EDX_SSE, FEAT_1_EDX, CPUID_1_EDX_FXSR },
    { FEAT_1_EDX, CPUID_1_EDX_SSE2, FEAT_1_EDX, CPUID_1_EDX_SSE },
    { FEAT_1_ECX, CPUID_1_ECX_SSE3 | CPUID_1_ECX_PCLMULQDQ | CPUID_1_ECX_AES, FEAT_1_EDX,
      CPUID_1_EDX_SSE2 },
    { FEAT_1_ECX, CPUID_1_ECX_SSSE3, FEAT_1_ECX, CPUID_1_ECX_SSE3 },
    { FEAT_1_ECX, CPUID_1_ECX_SSE41, FEAT_1_ECX, CPUID_1_ECX_SSSE3 },
    { FEAT_1_ECX, CPUID_1_ECX_SSE42, FEAT_1_ECX, CPUID_1_ECX_SSE41 },
    { FEAT_1_ECX, CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE, FEAT_1_EDX, CPUID_1_EDX_APIC },
    { FEAT_1_ECX, CPUID_1_ECX_TSC_DEADLINE, FEAT_1_EDX, CPUID_1_EDX_TSC },
    { FEAT_1_ECX, CPUID_1_ECX_XSAVE, FEAT_1_EDX, CPUID_1_EDX_FXSR },
    { FEAT_1_ECX, CPUID_1_ECX_AVX, FEAT_1_ECX, CPUID_1_ECX_XSAVE | CPUID_1_ECX_SSE42 },
    { FEAT_1_ECX, CPUID_1_ECX_FMA | CPUID_1_ECX_F16C, FEAT_1_ECX, CPUID_1_ECX_AVX },
    { FEAT_1_ECX, CPUID_1_ECX_PCID, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_LM },
    { FEAT_XSAVE, ~0u, FEAT_1_ECX, CPUID_1_ECX_XSAVE },
    { FEAT_XSAVE, CPUID_XSAVE_XSAVES, FEAT_XSAVE, CPUID_XSAVE_XSAVEC },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_AVX2 | CPUID_7_0_EBX_AVX512F | AVX512_7_0_EBX, FEAT_1_ECX,
      CPUID_1_ECX_AVX },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX2 },
    { FEAT_7_0_EBX, AVX512_7_0_EBX, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_MPX, FEAT_1_ECX, CPUID_1_ECX_XSAVE },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_SHA, FEAT_1_EDX, CPUID_1_EDX_SSE2 },
    { FEAT_7_0_EBX, CPUID_7_0_EBX_TSC_ADJUST, FEAT_1_EDX, CPUID_1_EDX_TSC },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_PKU, FEAT_1_ECX, CPUID_1_ECX_XSAVE },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_VAES | CPUID_7_0_ECX_VPCLMULQDQ, FEAT_1_ECX, CPUID_1_ECX_AVX },
    { FEAT_7_0_ECX, AVX512_7_0_ECX, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F },
    { FEAT_7_0_ECX, CPUID_7_0_ECX_LA57, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_LM },
    { FEAT_7_0_EDX, AVX512_7_0_EDX, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F },
    { FEAT_7_1_EAX, CPUID_7_1_EAX_AVX_VNNI | CPUID_7_1_EAX_AVX_IFMA, FEAT_7_0_EBX,
      CPUID_7_0_EBX_AVX2 },
    { FEAT_7_1_EAX, CPUID_7_1_EAX_AVX512_BF16, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F },
    { FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_XOP | CPUID_8000_0001_ECX_FMA4, FEAT_1_ECX,
      CPUID_1_ECX_AVX },
    { FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_RDTSCP, FEAT_1_EDX, CPUID_1_EDX_TSC },
    { FEAT_8000_0007_EDX, CPUID_8000_0007_EDX_INVTSC, FEAT_1_EDX, CPUID_1_EDX_TSC },
    { FEAT_8000_000A_EDX, ~0u, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_SVM },
    { FEAT_ARCH_CAP, ~0u, FEAT_7_0_EDX, CPUID_7_0_EDX_ARCH_CAPABILITIES },
    { FEAT_6_EAX, CPUID_6_EAX_ARAT, FEAT_1_EDX, CPUID_1_EDX_APIC },
};

void x86_features_drop_orphans(uint32_t feat[FEAT_WORDS])
{
    for (unsigned i = 0; i < ARRAY_SIZE(dependencies); i++) {
        const Dependency *d = &dependencies[i];

        if ((feat[d->needs_word] & d->needs) != d->needs) {
            feat[d->word] &= ~d->bits;
        }
    }
}
