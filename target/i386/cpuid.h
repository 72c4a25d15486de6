/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUID: feature bits and their names, CPU models, and what an accelerator can give.
 * Sources: Intel SDM 2A "CPUID", AMD APM 3 appendix E, Linux Documentation/virt/kvm/x86/cpuid.rst.
 */
#ifndef TARGET_I386_CPUID_H
#define TARGET_I386_CPUID_H

#include "target/i386/cpu.h"

/*
 * One table for everything that has a name: F(word, bit, constant, name as in -cpu). The constant
 * becomes CPUID_<word>_<constant>, e.g. CPUID_7_0_EBX_SMAP. '-' in names also matches '_'.
 */
/* clang-format off */
#define X86_FEATURE_TABLE(F) \
    F(1_EDX, 0, FPU, "fpu") F(1_EDX, 1, VME, "vme") F(1_EDX, 2, DE, "de") F(1_EDX, 3, PSE, "pse") \
    F(1_EDX, 4, TSC, "tsc") F(1_EDX, 5, MSR, "msr") F(1_EDX, 6, PAE, "pae") F(1_EDX, 7, MCE, "mce") \
    F(1_EDX, 8, CX8, "cx8") F(1_EDX, 9, APIC, "apic") F(1_EDX, 11, SEP, "sep") \
    F(1_EDX, 12, MTRR, "mtrr") F(1_EDX, 13, PGE, "pge") F(1_EDX, 14, MCA, "mca") \
    F(1_EDX, 15, CMOV, "cmov") F(1_EDX, 16, PAT, "pat") F(1_EDX, 17, PSE36, "pse36") \
    F(1_EDX, 18, PN, "pn") F(1_EDX, 19, CLFLUSH, "clflush") F(1_EDX, 21, DS, "ds") \
    F(1_EDX, 22, ACPI, "acpi") F(1_EDX, 23, MMX, "mmx") F(1_EDX, 24, FXSR, "fxsr") \
    F(1_EDX, 25, SSE, "sse") F(1_EDX, 26, SSE2, "sse2") F(1_EDX, 27, SS, "ss") \
    F(1_EDX, 28, HT, "ht") F(1_EDX, 29, TM, "tm") F(1_EDX, 30, IA64, "ia64") \
    F(1_EDX, 31, PBE, "pbe") \
    F(1_ECX, 0, SSE3, "pni") F(1_ECX, 1, PCLMULQDQ, "pclmulqdq") F(1_ECX, 2, DTES64, "dtes64") \
    F(1_ECX, 3, MONITOR, "monitor") F(1_ECX, 4, DS_CPL, "ds-cpl") F(1_ECX, 5, VMX, "vmx") \
    F(1_ECX, 6, SMX, "smx") F(1_ECX, 7, EST, "est") F(1_ECX, 8, TM2, "tm2") \
    F(1_ECX, 9, SSSE3, "ssse3") F(1_ECX, 10, CID, "cid") F(1_ECX, 12, FMA, "fma") \
    F(1_ECX, 13, CX16, "cx16") F(1_ECX, 14, XTPR, "xtpr") F(1_ECX, 15, PDCM, "pdcm") \
    F(1_ECX, 17, PCID, "pcid") F(1_ECX, 18, DCA, "dca") F(1_ECX, 19, SSE41, "sse4.1") \
    F(1_ECX, 20, SSE42, "sse4.2") F(1_ECX, 21, X2APIC, "x2apic") F(1_ECX, 22, MOVBE, "movbe") \
    F(1_ECX, 23, POPCNT, "popcnt") F(1_ECX, 24, TSC_DEADLINE, "tsc-deadline") \
    F(1_ECX, 25, AES, "aes") F(1_ECX, 26, XSAVE, "xsave") F(1_ECX, 27, OSXSAVE, "osxsave") \
    F(1_ECX, 28, AVX, "avx") F(1_ECX, 29, F16C, "f16c") F(1_ECX, 30, RDRAND, "rdrand") \
    F(1_ECX, 31, HYPERVISOR, "hypervisor") \
    F(7_0_EBX, 0, FSGSBASE, "fsgsbase") F(7_0_EBX, 1, TSC_ADJUST, "tsc-adjust") \
    F(7_0_EBX, 2, SGX, "sgx") F(7_0_EBX, 3, BMI1, "bmi1") F(7_0_EBX, 4, HLE, "hle") \
    F(7_0_EBX, 5, AVX2, "avx2") F(7_0_EBX, 6, FDP_EXCPTN_ONLY, "fdp-excptn-only") \
    F(7_0_EBX, 7, SMEP, "smep") F(7_0_EBX, 8, BMI2, "bmi2") F(7_0_EBX, 9, ERMS, "erms") \
    F(7_0_EBX, 10, INVPCID, "invpcid") F(7_0_EBX, 11, RTM, "rtm") \
    F(7_0_EBX, 13, ZERO_FCS_FDS, "zero-fcs-fds") F(7_0_EBX, 14, MPX, "mpx") \
    F(7_0_EBX, 16, AVX512F, "avx512f") F(7_0_EBX, 17, AVX512DQ, "avx512dq") \
    F(7_0_EBX, 18, RDSEED, "rdseed") F(7_0_EBX, 19, ADX, "adx") F(7_0_EBX, 20, SMAP, "smap") \
    F(7_0_EBX, 21, AVX512IFMA, "avx512ifma") F(7_0_EBX, 22, PCOMMIT, "pcommit") \
    F(7_0_EBX, 23, CLFLUSHOPT, "clflushopt") F(7_0_EBX, 24, CLWB, "clwb") \
    F(7_0_EBX, 25, INTEL_PT, "intel-pt") F(7_0_EBX, 26, AVX512PF, "avx512pf") \
    F(7_0_EBX, 27, AVX512ER, "avx512er") F(7_0_EBX, 28, AVX512CD, "avx512cd") \
    F(7_0_EBX, 29, SHA, "sha-ni") F(7_0_EBX, 30, AVX512BW, "avx512bw") \
    F(7_0_EBX, 31, AVX512VL, "avx512vl") \
    F(7_0_ECX, 0, PREFETCHWT1, "prefetchwt1") F(7_0_ECX, 1, AVX512VBMI, "avx512vbmi") \
    F(7_0_ECX, 2, UMIP, "umip") F(7_0_ECX, 3, PKU, "pku") F(7_0_ECX, 4, OSPKE, "ospke") \
    F(7_0_ECX, 5, WAITPKG, "waitpkg") F(7_0_ECX, 6, AVX512VBMI2, "avx512vbmi2") \
    F(7_0_ECX, 8, GFNI, "gfni") F(7_0_ECX, 9, VAES, "vaes") \
    F(7_0_ECX, 10, VPCLMULQDQ, "vpclmulqdq") F(7_0_ECX, 11, AVX512VNNI, "avx512vnni") \
    F(7_0_ECX, 12, AVX512BITALG, "avx512bitalg") \
    F(7_0_ECX, 14, AVX512VPOPCNTDQ, "avx512-vpopcntdq") F(7_0_ECX, 16, LA57, "la57") \
    F(7_0_ECX, 22, RDPID, "rdpid") F(7_0_ECX, 24, BUS_LOCK_DETECT, "bus-lock-detect") \
    F(7_0_ECX, 25, CLDEMOTE, "cldemote") F(7_0_ECX, 27, MOVDIRI, "movdiri") \
    F(7_0_ECX, 28, MOVDIR64B, "movdir64b") F(7_0_ECX, 30, SGXLC, "sgxlc") \
    F(7_0_ECX, 31, PKS, "pks") \
    F(7_0_EDX, 2, AVX512_4VNNIW, "avx512-4vnniw") F(7_0_EDX, 3, AVX512_4FMAPS, "avx512-4fmaps") \
    F(7_0_EDX, 4, FSRM, "fsrm") F(7_0_EDX, 8, AVX512_VP2INTERSECT, "avx512-vp2intersect") \
    F(7_0_EDX, 10, MD_CLEAR, "md-clear") F(7_0_EDX, 14, SERIALIZE, "serialize") \
    F(7_0_EDX, 16, TSX_LDTRK, "tsx-ldtrk") F(7_0_EDX, 19, ARCH_LBR, "arch-lbr") \
    F(7_0_EDX, 22, AMX_BF16, "amx-bf16") F(7_0_EDX, 23, AVX512_FP16, "avx512-fp16") \
    F(7_0_EDX, 24, AMX_TILE, "amx-tile") F(7_0_EDX, 25, AMX_INT8, "amx-int8") \
    F(7_0_EDX, 26, SPEC_CTRL, "spec-ctrl") F(7_0_EDX, 27, STIBP, "stibp") \
    F(7_0_EDX, 28, FLUSH_L1D, "flush-l1d") F(7_0_EDX, 29, ARCH_CAPABILITIES, "arch-capabilities") \
    F(7_0_EDX, 30, CORE_CAPABILITY, "core-capability") F(7_0_EDX, 31, SSBD, "ssbd") \
    F(7_1_EAX, 4, AVX_VNNI, "avx-vnni") F(7_1_EAX, 5, AVX512_BF16, "avx512-bf16") \
    F(7_1_EAX, 7, CMPCCXADD, "cmpccxadd") F(7_1_EAX, 10, FZRM, "fzrm") F(7_1_EAX, 11, FSRS, "fsrs") \
    F(7_1_EAX, 12, FSRC, "fsrc") F(7_1_EAX, 21, AMX_FP16, "amx-fp16") \
    F(7_1_EAX, 23, AVX_IFMA, "avx-ifma") F(7_1_EAX, 26, LAM, "lam") \
    F(8000_0001_EDX, 11, SYSCALL, "syscall") F(8000_0001_EDX, 19, MP, "mp") \
    F(8000_0001_EDX, 20, NX, "nx") F(8000_0001_EDX, 22, MMXEXT, "mmxext") \
    F(8000_0001_EDX, 25, FFXSR, "fxsr-opt") F(8000_0001_EDX, 26, PDPE1GB, "pdpe1gb") \
    F(8000_0001_EDX, 27, RDTSCP, "rdtscp") F(8000_0001_EDX, 29, LM, "lm") \
    F(8000_0001_EDX, 30, 3DNOWEXT, "3dnowext") F(8000_0001_EDX, 31, 3DNOW, "3dnow") \
    F(8000_0001_ECX, 0, LAHF_LM, "lahf-lm") F(8000_0001_ECX, 1, CMP_LEGACY, "cmp-legacy") \
    F(8000_0001_ECX, 2, SVM, "svm") F(8000_0001_ECX, 3, EXTAPIC, "extapic") \
    F(8000_0001_ECX, 4, CR8LEGACY, "cr8legacy") F(8000_0001_ECX, 5, ABM, "abm") \
    F(8000_0001_ECX, 6, SSE4A, "sse4a") F(8000_0001_ECX, 7, MISALIGNSSE, "misalignsse") \
    F(8000_0001_ECX, 8, 3DNOWPREFETCH, "3dnowprefetch") F(8000_0001_ECX, 9, OSVW, "osvw") \
    F(8000_0001_ECX, 10, IBS, "ibs") F(8000_0001_ECX, 11, XOP, "xop") \
    F(8000_0001_ECX, 12, SKINIT, "skinit") F(8000_0001_ECX, 13, WDT, "wdt") \
    F(8000_0001_ECX, 15, LWP, "lwp") F(8000_0001_ECX, 16, FMA4, "fma4") \
    F(8000_0001_ECX, 17, TCE, "tce") F(8000_0001_ECX, 19, NODEID_MSR, "nodeid-msr") \
    F(8000_0001_ECX, 21, TBM, "tbm") F(8000_0001_ECX, 22, TOPOEXT, "topoext") \
    F(8000_0001_ECX, 23, PERFCTR_CORE, "perfctr-core") F(8000_0001_ECX, 24, PERFCTR_NB, "perfctr-nb") \
    F(8000_0007_EDX, 8, INVTSC, "invtsc") \
    F(8000_0008_EBX, 0, CLZERO, "clzero") F(8000_0008_EBX, 2, XSAVEERPTR, "xsaveerptr") \
    F(8000_0008_EBX, 9, WBNOINVD, "wbnoinvd") F(8000_0008_EBX, 12, IBPB, "ibpb") \
    F(8000_0008_EBX, 14, IBRS, "ibrs") F(8000_0008_EBX, 15, AMD_STIBP, "amd-stibp") \
    F(8000_0008_EBX, 24, AMD_SSBD, "amd-ssbd") F(8000_0008_EBX, 25, VIRT_SSBD, "virt-ssbd") \
    F(8000_0008_EBX, 26, AMD_NO_SSB, "amd-no-ssb") F(8000_0008_EBX, 28, AMD_PSFD, "amd-psfd") \
    F(KVM, 0, CLOCKSOURCE, "kvmclock") F(KVM, 1, NOP_IO_DELAY, "kvm-nopiodelay") \
    F(KVM, 2, MMU_OP, "kvm-mmu") F(KVM, 3, CLOCKSOURCE2, "kvmclock") \
    F(KVM, 4, ASYNC_PF, "kvm-asyncpf") F(KVM, 5, STEAL_TIME, "kvm-steal-time") \
    F(KVM, 6, PV_EOI, "kvm-pv-eoi") F(KVM, 7, PV_UNHALT, "kvm-pv-unhalt") \
    F(KVM, 9, PV_TLB_FLUSH, "kvm-pv-tlb-flush") F(KVM, 10, ASYNC_PF_VMEXIT, "kvm-asyncpf-vmexit") \
    F(KVM, 11, PV_SEND_IPI, "kvm-pv-ipi") F(KVM, 12, POLL_CONTROL, "kvm-poll-control") \
    F(KVM, 13, PV_SCHED_YIELD, "kvm-pv-sched-yield") F(KVM, 14, ASYNC_PF_INT, "kvm-asyncpf-int") \
    F(KVM, 15, MSI_EXT_DEST_ID, "kvm-msi-ext-dest-id") \
    F(KVM, 24, CLOCKSOURCE_STABLE, "kvmclock-stable-bit") \
    F(KVM_HINTS, 0, REALTIME, "kvm-hint-dedicated") \
    F(6_EAX, 2, ARAT, "arat") \
    F(XSAVE, 0, XSAVEOPT, "xsaveopt") F(XSAVE, 1, XSAVEC, "xsavec") \
    F(XSAVE, 2, XGETBV1, "xgetbv1") F(XSAVE, 3, XSAVES, "xsaves") F(XSAVE, 4, XFD, "xfd") \
    F(8000_000A_EDX, 0, NPT, "npt") F(8000_000A_EDX, 1, LBRV, "lbrv") \
    F(8000_000A_EDX, 2, SVM_LOCK, "svm-lock") F(8000_000A_EDX, 3, NRIP_SAVE, "nrip-save") \
    F(8000_000A_EDX, 4, TSC_SCALE, "tsc-scale") F(8000_000A_EDX, 5, VMCB_CLEAN, "vmcb-clean") \
    F(8000_000A_EDX, 6, FLUSHBYASID, "flushbyasid") \
    F(8000_000A_EDX, 7, DECODEASSISTS, "decodeassists") \
    F(8000_000A_EDX, 10, PAUSE_FILTER, "pause-filter") \
    F(8000_000A_EDX, 12, PFTHRESHOLD, "pfthreshold") F(8000_000A_EDX, 13, AVIC, "avic") \
    F(8000_000A_EDX, 15, V_VMSAVE_VMLOAD, "v-vmsave-vmload") F(8000_000A_EDX, 16, VGIF, "vgif") \
    F(8000_000A_EDX, 28, SVME_ADDR_CHK, "svme-addr-chk") \
    F(ARCH_CAP, 0, RDCL_NO, "rdctl-no") F(ARCH_CAP, 1, IBRS_ALL, "ibrs-all") \
    F(ARCH_CAP, 2, RSBA, "rsba") F(ARCH_CAP, 3, SKIP_L1DFL, "skip-l1dfl-vmentry") \
    F(ARCH_CAP, 4, SSB_NO, "ssb-no") F(ARCH_CAP, 5, MDS_NO, "mds-no") \
    F(ARCH_CAP, 6, PSCHANGE_MC_NO, "pschange-mc-no") F(ARCH_CAP, 7, TSX_CTRL, "tsx-ctrl") \
    F(ARCH_CAP, 8, TAA_NO, "taa-no") F(ARCH_CAP, 13, SBDR_SSDP_NO, "sbdr-ssdp-no") \
    F(ARCH_CAP, 14, FBSDP_NO, "fbsdp-no") F(ARCH_CAP, 15, PSDP_NO, "psdp-no") \
    F(ARCH_CAP, 17, FB_CLEAR, "fb-clear") F(ARCH_CAP, 24, PBRSB_NO, "pbrsb-no") \
    F(ARCH_CAP, 26, GDS_NO, "gds-no") F(ARCH_CAP, 27, RFDS_NO, "rfds-no")
/* clang-format on */

enum {
#define F(word, bit, name, text) CPUID_##word##_##name = 1u << (bit),
    X86_FEATURE_TABLE(F)
#undef F
};

/* Bits of CPUID.1:EDX that AMD repeats in 8000_0001:EDX (APM 3, E.4.2). */
#define CPUID_8000_0001_EDX_AMD_ALIASES 0x0183f3ffu

#define CPUID_LEAF_HYPERVISOR 0x40000000u
/* AMD's HWCR: the TSC counts at the P0 frequency, read-only. */
#define HWCR_TSC_FREQ_SEL BIT64(24)

typedef struct X86Feature {
    uint8_t word; /* FeatureWord */
    uint8_t bit;
    const char *name;
} X86Feature;

/* All names, table order; a name may stand for several bits (kvmclock). */
extern const X86Feature x86_features[];
extern const unsigned x86_feature_count;
/* Bits called name ("_" and aliases allowed) into mask[]; false if there is no such feature. */
bool x86_feature_lookup(const char *name, uint32_t mask[FEAT_WORDS]);
/* "CPUID.7.0:EBX" and the like, for messages. */
const char *x86_feature_word_name(FeatureWord w);
/* Removes features whose prerequisite is absent (AVX without XSAVE, ...). */
void x86_features_drop_orphans(uint32_t feat[FEAT_WORDS]);

typedef struct X86CPUModel {
    const char *name;
    const char *alias_of; /* the version this is another name of; NULL: none */
    const char *desc;
    char vendor[13];
    char model_id[49];
    uint16_t family, model, stepping;
    uint32_t level, xlevel;
    uint32_t feat[FEAT_WORDS];
    bool all_features; /* max, host: whatever the accelerator gives */
    bool no_defaults;   /* base: not even what every model gets */
    bool host_identity; /* host: vendor, family, brand and caches are the host's */
    bool pmu;             /* leaf 0AH, KVM only */
    bool hv_leaves;       /* leaves 4000_0000H and up: kvm=, tcg-cpuid= */
    bool hv_timing;       /* leaf 4000_0010H: vmware-cpuid-freq= */
    bool host_cache_info; /* cache leaves are the host's */
    bool l3_cache;
    uint32_t phys_bits; /* in a resolved model never 0 */
    uint32_t tsc_khz;   /* 0: default */
    bool level_fixed, xlevel_fixed;
} X86CPUModel;

/* The table of models; calls fn for each name, aliases too. HELPER_ONLY, as is finding one. */
void x86_cpu_model_foreach(void (*fn)(const X86CPUModel *m, void *opaque), void *opaque);
const X86CPUModel *x86_cpu_model_find(const char *name);
/* The configured model, made by x86_cpu_set_model() or from the default on first use. */
const X86CPUModel *x86_cpu_model_current(void);
/*
 * What -cpu arg would come to, without a message or any effect: the model, and in missing what it
 * asks for and this accelerator and host cannot give. HELPER_ONLY, after the accelerator's init.
 */
bool x86_cpu_model_resolve(const char *arg, X86CPUModel *m, uint32_t missing[FEAT_WORDS],
                           Error **errp);
/* The same of the configured model. */
const uint32_t *x86_cpu_model_current_missing(void);
/* The names of the bits in mask, separated by spaces; g_free(). */
char *x86_feature_names(const uint32_t mask[FEAT_WORDS]);
/* Features of model that this accelerator and host cannot give, one bit set each. */
void x86_cpu_model_missing(const X86CPUModel *m, uint32_t missing[FEAT_WORDS]);

/*
 * What the accelerator in force can do. TCG's is built in and the default; KVM registers its own
 * from its init hook, before x86_cpu_set_model().
 */
typedef struct X86CpuBackend {
    const char *name; /* in messages: "TCG", "KVM" */
    bool kvm;         /* KVM's paravirtual leaves; `host` may be used */
    /* Bits that may be offered. */
    uint32_t (*supported)(FeatureWord w);
    /* Bits every named model gets besides its own where they are supported. */
    uint32_t (*defaults)(FeatureWord w);
    /* Bits of models that are left out without a word unless they are asked for; NULL: none. */
    const uint32_t *unless_asked;
    /* A leaf as this host has it and the accelerator passes it on: identity, caches, PMU. */
    void (*host_cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
    /* Frequency of the guest's TSC in kHz unless tsc-frequency= is given. */
    uint32_t (*default_tsc_khz)(void);
    /* The rate does not change with the host: leaves 15h and 4000_0010h may be given. */
    bool tsc_constant;
} X86CpuBackend;

/* A leaf of the host's own CPUID; all 0 beyond its last leaf, and on hosts that are not x86-64. RT_SAFE. */
void x86_host_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
/* RT_SAFE. Does the host's kernel save YMM registers, so that AVX can be used? */
bool x86_host_saves_ymm(void);

void x86_cpu_set_backend(const X86CpuBackend *b);
const X86CpuBackend *x86_cpu_backend(void);
extern const X86CpuBackend x86_tcg_backend;
/*
 * For tests: the software CPU takes its host to lack these features, and what depends on them. names: as
 * -cpu's, separated by ':', or "all"; NULL: lacks none. Replaces an earlier list. Start-up, before a model is chosen.
 */
bool x86_tcg_host_without(const char *names, Error **errp);
/* RT_SAFE. A feature without which the software CPU cannot run on this host, by name; NULL: none. */
const char *x86_tcg_host_lacks(void);

/* ---- State components (SDM 1, chapter 13) ---- */

enum {
    XSTATE_X87 = 1u << 0, XSTATE_SSE = 1u << 1, XSTATE_AVX = 1u << 2, XSTATE_BNDREGS = 1u << 3,
    XSTATE_BNDCSR = 1u << 4, XSTATE_OPMASK = 1u << 5, XSTATE_ZMM_HI256 = 1u << 6,
    XSTATE_HI16_ZMM = 1u << 7, XSTATE_PKRU = 1u << 9,
};
/* Place of AVX and PKRU in the standard XSAVE format under TCG (where Intel's processors have it). */
#define XSAVE_LEGACY_SIZE 576u
#define XSAVE_AVX_OFFSET  576u
#define XSAVE_AVX_SIZE    256u
#define XSAVE_PKRU_OFFSET 2688u
#define XSAVE_PKRU_SIZE   8u

/* RT_SAFE. XCR0 bits and XSS bits this guest may set. */
uint64_t x86_xcr0_mask(const X86CPU *c);
uint64_t x86_xss_mask(const X86CPU *c);
/* RT_SAFE. Component n's standard-format offset and its size; false if the guest lacks it. */
bool x86_xsave_component(const X86CPU *c, unsigned n, uint32_t *offset, uint32_t *size);
/* RT_SAFE. Bytes of an XSAVE area for mask, standard or compacted format. */
uint32_t x86_xsave_size(const X86CPU *c, uint64_t mask, bool compacted);

static inline bool x86_is_intel(const X86CPU *c)
{
    return c->model->vendor[0] == 'G';
}
/* 48 or, with CR4.LA57, 57 bits. */
static inline bool x86_is_canonical(const X86CPU *c, uint64_t addr)
{
    unsigned shift = (c->cr4 & CR4_LA57) ? 7 : 16;

    return (uint64_t)((int64_t)(addr << shift) >> shift) == addr;
}
/* Bits of a physical address the guest may use: CPUID.8000_0008:EAX[7:0]. */
static inline uint64_t x86_phys_mask(const X86CPU *c)
{
    return BIT64(c->phys_bits) - 1;
}

#endif
