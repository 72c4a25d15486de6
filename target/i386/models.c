/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of CPU models. Each row adds to the one it is based on, as processor generations did.
 * Names, families and models are those QEMU's users know; feature sets follow the vendors'
 * documentation of the processors named.
 */
#include <string.h>
#include "target/i386/cpuid.h"

/* What any x86-64 processor has. */
#define BASE_1_EDX                                                                                 \
    (CPUID_1_EDX_FPU | CPUID_1_EDX_DE | CPUID_1_EDX_PSE | CPUID_1_EDX_TSC | CPUID_1_EDX_MSR |      \
     CPUID_1_EDX_PAE | CPUID_1_EDX_MCE | CPUID_1_EDX_CX8 | CPUID_1_EDX_APIC | CPUID_1_EDX_SEP |    \
     CPUID_1_EDX_MTRR | CPUID_1_EDX_PGE | CPUID_1_EDX_MCA | CPUID_1_EDX_CMOV | CPUID_1_EDX_PAT |   \
     CPUID_1_EDX_PSE36 | CPUID_1_EDX_CLFLUSH | CPUID_1_EDX_MMX | CPUID_1_EDX_FXSR |                \
     CPUID_1_EDX_SSE | CPUID_1_EDX_SSE2)
#define BASE_X_EDX                                                                                 \
    (CPUID_8000_0001_EDX_SYSCALL | CPUID_8000_0001_EDX_NX | CPUID_8000_0001_EDX_LM)

/* Intel, each generation's additions. */
#define PENRYN_1_ECX                                                                               \
    (CPUID_1_ECX_SSE3 | CPUID_1_ECX_SSSE3 | CPUID_1_ECX_CX16 | CPUID_1_ECX_SSE41)
#define NEHALEM_1_ECX  (PENRYN_1_ECX | CPUID_1_ECX_SSE42 | CPUID_1_ECX_POPCNT)
#define WESTMERE_1_ECX (NEHALEM_1_ECX | CPUID_1_ECX_AES | CPUID_1_ECX_PCLMULQDQ)
#define SANDY_1_ECX                                                                                \
    (WESTMERE_1_ECX | CPUID_1_ECX_AVX | CPUID_1_ECX_XSAVE | CPUID_1_ECX_TSC_DEADLINE |             \
     CPUID_1_ECX_X2APIC)
#define IVY_1_ECX      (SANDY_1_ECX | CPUID_1_ECX_F16C | CPUID_1_ECX_RDRAND)
#define IVY_7_EBX      (CPUID_7_0_EBX_FSGSBASE | CPUID_7_0_EBX_SMEP | CPUID_7_0_EBX_ERMS)
#define HASWELL_1_ECX                                                                              \
    (IVY_1_ECX | CPUID_1_ECX_FMA | CPUID_1_ECX_MOVBE | CPUID_1_ECX_PCID)
#define HASWELL_7_EBX                                                                              \
    (IVY_7_EBX | CPUID_7_0_EBX_BMI1 | CPUID_7_0_EBX_AVX2 | CPUID_7_0_EBX_BMI2 |                    \
     CPUID_7_0_EBX_INVPCID)
#define BROADWELL_7_EBX                                                                            \
    (HASWELL_7_EBX | CPUID_7_0_EBX_RDSEED | CPUID_7_0_EBX_ADX | CPUID_7_0_EBX_SMAP)
#define TSX            (CPUID_7_0_EBX_HLE | CPUID_7_0_EBX_RTM)
#define BROADWELL_X_ECX                                                                            \
    (CPUID_8000_0001_ECX_LAHF_LM | CPUID_8000_0001_ECX_ABM | CPUID_8000_0001_ECX_3DNOWPREFETCH)
#define SKYLAKE_AVX512                                                                             \
    (CPUID_7_0_EBX_AVX512F | CPUID_7_0_EBX_AVX512DQ | CPUID_7_0_EBX_AVX512CD |                     \
     CPUID_7_0_EBX_AVX512BW | CPUID_7_0_EBX_AVX512VL)
#define SKX_7_EBX      (BROADWELL_7_EBX | SKYLAKE_AVX512 | CPUID_7_0_EBX_CLWB | CPUID_7_0_EBX_CLFLUSHOPT)
#define ICX_7_ECX                                                                                  \
    (CPUID_7_0_ECX_AVX512VBMI | CPUID_7_0_ECX_UMIP | CPUID_7_0_ECX_PKU |                           \
     CPUID_7_0_ECX_AVX512VBMI2 | CPUID_7_0_ECX_GFNI | CPUID_7_0_ECX_VAES |                         \
     CPUID_7_0_ECX_VPCLMULQDQ | CPUID_7_0_ECX_AVX512VNNI | CPUID_7_0_ECX_AVX512BITALG |            \
     CPUID_7_0_ECX_AVX512VPOPCNTDQ | CPUID_7_0_ECX_LA57)
#define XSAVE_CLIENT   (CPUID_XSAVE_XSAVEOPT | CPUID_XSAVE_XSAVEC | CPUID_XSAVE_XGETBV1)

/* AMD. */
#define ZEN_1_ECX                                                                                  \
    (CPUID_1_ECX_SSE3 | CPUID_1_ECX_PCLMULQDQ | CPUID_1_ECX_SSSE3 | CPUID_1_ECX_FMA |              \
     CPUID_1_ECX_CX16 | CPUID_1_ECX_SSE41 | CPUID_1_ECX_SSE42 | CPUID_1_ECX_MOVBE |                \
     CPUID_1_ECX_POPCNT | CPUID_1_ECX_AES | CPUID_1_ECX_XSAVE | CPUID_1_ECX_AVX |                  \
     CPUID_1_ECX_F16C | CPUID_1_ECX_RDRAND)
#define ZEN_7_EBX                                                                                  \
    (CPUID_7_0_EBX_FSGSBASE | CPUID_7_0_EBX_BMI1 | CPUID_7_0_EBX_AVX2 | CPUID_7_0_EBX_SMEP |       \
     CPUID_7_0_EBX_BMI2 | CPUID_7_0_EBX_RDSEED | CPUID_7_0_EBX_ADX | CPUID_7_0_EBX_SMAP |          \
     CPUID_7_0_EBX_CLFLUSHOPT | CPUID_7_0_EBX_SHA)
#define ZEN_X_EDX                                                                                  \
    (BASE_X_EDX | CPUID_8000_0001_EDX_MMXEXT | CPUID_8000_0001_EDX_FFXSR |                         \
     CPUID_8000_0001_EDX_PDPE1GB | CPUID_8000_0001_EDX_RDTSCP)
#define ZEN_X_ECX                                                                                  \
    (CPUID_8000_0001_ECX_LAHF_LM | CPUID_8000_0001_ECX_CR8LEGACY | CPUID_8000_0001_ECX_ABM |       \
     CPUID_8000_0001_ECX_SSE4A | CPUID_8000_0001_ECX_MISALIGNSSE |                                 \
     CPUID_8000_0001_ECX_3DNOWPREFETCH | CPUID_8000_0001_ECX_OSVW | CPUID_8000_0001_ECX_TOPOEXT)

#define INTEL(fam, mod, step, lvl)                                                                 \
    .vendor = "GenuineIntel", .family = (fam), .model = (mod), .stepping = (step), .level = (lvl), \
    .xlevel = 0x80000008
#define AMD(fam, mod, step, xlvl)                                                                  \
    .vendor = "AuthenticAMD", .family = (fam), .model = (mod), .stepping = (step), .level = 0xd,   \
    .xlevel = (xlvl)
#define FEATURES(edx, ecx, xedx, xecx)                                                             \
    [FEAT_1_EDX] = (edx), [FEAT_1_ECX] = (ecx), [FEAT_8000_0001_EDX] = (xedx),                     \
    [FEAT_8000_0001_ECX] = (xecx)

#define INTEL_1GB_X_EDX (BASE_X_EDX | CPUID_8000_0001_EDX_PDPE1GB | CPUID_8000_0001_EDX_RDTSCP)

static const X86CPUModel models[] = {
    {
        .name = "qemu64", .desc = "QEMU Virtual CPU version 2.5+",
        .model_id = "QEMU Virtual CPU version 2.5+",
        AMD(15, 107, 1, 0x8000000a),
        .feat = { FEATURES(BASE_1_EDX, CPUID_1_ECX_SSE3 | CPUID_1_ECX_CX16, BASE_X_EDX,
                           CPUID_8000_0001_ECX_LAHF_LM) },
    },
    {
        .name = "kvm64", .desc = "Common KVM processor", .model_id = "Common KVM processor",
        INTEL(15, 6, 1, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, CPUID_1_ECX_SSE3 | CPUID_1_ECX_CX16,
                           BASE_X_EDX, 0) },
    },
    {
        .name = "max", .desc = "Enables all features supported by the accelerator in the current host",
        .model_id = "QEMU Virtual CPU version 2.5+", AMD(6, 6, 3, 0x8000001f),
        .all_features = true,
    },
    {
        .name = "host", .desc = "processor with all supported host features (KVM only)",
        .model_id = "", .vendor = "AuthenticAMD", .all_features = true, .host_identity = true,
    },
    {
        /* What a model is expanded to: every property is then said. */
        .name = "base", .desc = "base CPU model type with no features enabled", .model_id = "",
        AMD(0, 0, 0, 0x80000008), .no_defaults = true,
    },
    {
        .name = "Conroe", .desc = "Intel Celeron_4x0 (Conroe/Merom Class Core 2)",
        INTEL(6, 15, 3, 10),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME,
                           CPUID_1_ECX_SSE3 | CPUID_1_ECX_SSSE3 | CPUID_1_ECX_CX16, BASE_X_EDX,
                           CPUID_8000_0001_ECX_LAHF_LM) },
    },
    {
        .name = "Penryn", .desc = "Intel Core 2 Duo P9xxx (Penryn Class Core 2)",
        INTEL(6, 23, 3, 10),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, PENRYN_1_ECX, BASE_X_EDX,
                           CPUID_8000_0001_ECX_LAHF_LM) },
    },
    {
        .name = "Nehalem", .desc = "Intel Core i7 9xx (Nehalem Class Core i7)",
        INTEL(6, 26, 3, 11),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, NEHALEM_1_ECX, BASE_X_EDX,
                           CPUID_8000_0001_ECX_LAHF_LM) },
    },
    {
        .name = "Westmere", .desc = "Westmere E56xx/L56xx/X56xx (Nehalem-C)",
        INTEL(6, 44, 1, 11),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, WESTMERE_1_ECX, BASE_X_EDX,
                           CPUID_8000_0001_ECX_LAHF_LM),
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "SandyBridge", .desc = "Intel Xeon E312xx (Sandy Bridge)",
        INTEL(6, 42, 1, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, SANDY_1_ECX,
                           BASE_X_EDX | CPUID_8000_0001_EDX_RDTSCP, CPUID_8000_0001_ECX_LAHF_LM),
                  [FEAT_XSAVE] = CPUID_XSAVE_XSAVEOPT, [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "IvyBridge", .desc = "Intel Xeon E3-12xx v2 (Ivy Bridge)",
        INTEL(6, 58, 9, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, IVY_1_ECX,
                           BASE_X_EDX | CPUID_8000_0001_EDX_RDTSCP, CPUID_8000_0001_ECX_LAHF_LM),
                  [FEAT_7_0_EBX] = IVY_7_EBX, [FEAT_XSAVE] = CPUID_XSAVE_XSAVEOPT,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Haswell", .desc = "Intel Core Processor (Haswell)",
        INTEL(6, 60, 4, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX,
                           BASE_X_EDX | CPUID_8000_0001_EDX_RDTSCP,
                           CPUID_8000_0001_ECX_LAHF_LM | CPUID_8000_0001_ECX_ABM),
                  [FEAT_7_0_EBX] = HASWELL_7_EBX | TSX, [FEAT_XSAVE] = CPUID_XSAVE_XSAVEOPT,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Broadwell", .desc = "Intel Core Processor (Broadwell)",
        INTEL(6, 61, 2, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX,
                           BASE_X_EDX | CPUID_8000_0001_EDX_RDTSCP, BROADWELL_X_ECX),
                  [FEAT_7_0_EBX] = BROADWELL_7_EBX | TSX, [FEAT_XSAVE] = CPUID_XSAVE_XSAVEOPT,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Skylake-Client", .desc = "Intel Core Processor (Skylake)",
        INTEL(6, 94, 3, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX,
                           BASE_X_EDX | CPUID_8000_0001_EDX_RDTSCP, BROADWELL_X_ECX),
                  [FEAT_7_0_EBX] = BROADWELL_7_EBX | TSX, [FEAT_XSAVE] = XSAVE_CLIENT,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Skylake-Server", .desc = "Intel Xeon Processor (Skylake)",
        INTEL(6, 85, 4, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX, INTEL_1GB_X_EDX,
                           BROADWELL_X_ECX),
                  [FEAT_7_0_EBX] = SKX_7_EBX | TSX, [FEAT_7_0_ECX] = CPUID_7_0_ECX_PKU,
                  [FEAT_XSAVE] = XSAVE_CLIENT, [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Cascadelake-Server", .desc = "Intel Xeon Processor (Cascadelake)",
        INTEL(6, 85, 6, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX, INTEL_1GB_X_EDX,
                           BROADWELL_X_ECX),
                  [FEAT_7_0_EBX] = SKX_7_EBX | TSX,
                  [FEAT_7_0_ECX] = CPUID_7_0_ECX_PKU | CPUID_7_0_ECX_AVX512VNNI,
                  [FEAT_7_0_EDX] = CPUID_7_0_EDX_SPEC_CTRL | CPUID_7_0_EDX_SSBD,
                  [FEAT_XSAVE] = XSAVE_CLIENT, [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "Icelake-Server", .desc = "Intel Xeon Processor (Icelake)",
        INTEL(6, 106, 0, 0xd),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, HASWELL_1_ECX, INTEL_1GB_X_EDX,
                           BROADWELL_X_ECX),
                  [FEAT_7_0_EBX] = SKX_7_EBX | TSX, [FEAT_7_0_ECX] = ICX_7_ECX,
                  [FEAT_7_0_EDX] = CPUID_7_0_EDX_SPEC_CTRL | CPUID_7_0_EDX_SSBD,
                  [FEAT_8000_0008_EBX] = CPUID_8000_0008_EBX_WBNOINVD,
                  [FEAT_XSAVE] = XSAVE_CLIENT, [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "EPYC", .desc = "AMD EPYC Processor",
        AMD(23, 1, 2, 0x8000001e),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, ZEN_1_ECX, ZEN_X_EDX, ZEN_X_ECX),
                  [FEAT_7_0_EBX] = ZEN_7_EBX, [FEAT_XSAVE] = XSAVE_CLIENT,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "EPYC-Rome", .desc = "AMD EPYC-Rome Processor",
        AMD(23, 49, 0, 0x8000001e),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, ZEN_1_ECX, ZEN_X_EDX, ZEN_X_ECX),
                  [FEAT_7_0_EBX] = ZEN_7_EBX | CPUID_7_0_EBX_CLWB,
                  [FEAT_7_0_ECX] = CPUID_7_0_ECX_UMIP | CPUID_7_0_ECX_RDPID,
                  [FEAT_8000_0008_EBX] = CPUID_8000_0008_EBX_CLZERO |
                                         CPUID_8000_0008_EBX_XSAVEERPTR |
                                         CPUID_8000_0008_EBX_WBNOINVD | CPUID_8000_0008_EBX_IBPB |
                                         CPUID_8000_0008_EBX_AMD_STIBP,
                  [FEAT_XSAVE] = XSAVE_CLIENT | CPUID_XSAVE_XSAVES,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
    {
        .name = "EPYC-Milan", .desc = "AMD EPYC-Milan Processor",
        AMD(25, 1, 1, 0x8000001e),
        .feat = { FEATURES(BASE_1_EDX | CPUID_1_EDX_VME, ZEN_1_ECX | CPUID_1_ECX_PCID, ZEN_X_EDX,
                           ZEN_X_ECX),
                  [FEAT_7_0_EBX] = ZEN_7_EBX | CPUID_7_0_EBX_CLWB | CPUID_7_0_EBX_ERMS |
                                   CPUID_7_0_EBX_INVPCID,
                  [FEAT_7_0_ECX] = CPUID_7_0_ECX_UMIP | CPUID_7_0_ECX_RDPID | CPUID_7_0_ECX_PKU,
                  [FEAT_7_0_EDX] = CPUID_7_0_EDX_FSRM,
                  [FEAT_8000_0008_EBX] = CPUID_8000_0008_EBX_CLZERO |
                                         CPUID_8000_0008_EBX_XSAVEERPTR |
                                         CPUID_8000_0008_EBX_WBNOINVD | CPUID_8000_0008_EBX_IBPB |
                                         CPUID_8000_0008_EBX_IBRS |
                                         CPUID_8000_0008_EBX_AMD_STIBP |
                                         CPUID_8000_0008_EBX_AMD_SSBD,
                  [FEAT_XSAVE] = XSAVE_CLIENT | CPUID_XSAVE_XSAVES,
                  [FEAT_6_EAX] = CPUID_6_EAX_ARAT },
    },
};

void x86_cpu_model_foreach(void (*fn)(const X86CPUModel *m, void *opaque), void *opaque)
{
    for (unsigned i = 0; i < ARRAY_SIZE(models); i++) {
        fn(&models[i], opaque);
    }
}

const X86CPUModel *x86_cpu_model_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(models); i++) {
        if (!strcmp(models[i].name, name)) {
            return &models[i];
        }
    }
    return NULL;
}
