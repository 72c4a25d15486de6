/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an x86-64 CPU is: its architectural state, whichever accelerator runs it.
 * Sources: Intel SDM volumes 1-4, AMD APM volumes 1-5.
 */
#ifndef TARGET_I386_CPU_H
#define TARGET_I386_CPU_H

#include "accel/cpu.h"
#include "qemu/compiler.h"

enum { R_RAX, R_RCX, R_RDX, R_RBX, R_RSP, R_RBP, R_RSI, R_RDI, R_R8, R_R15 = 15, R_ZERO = 16 };
enum { R_ES, R_CS, R_SS, R_DS, R_FS, R_GS, R_SEG_COUNT };

/* Exception vectors (SDM 3A, 6.3). */
enum {
    EXCP_DE = 0, EXCP_DB = 1, EXCP_NMI = 2, EXCP_BP = 3, EXCP_OF = 4, EXCP_BR = 5, EXCP_UD = 6,
    EXCP_NM = 7, EXCP_DF = 8, EXCP_TS = 10, EXCP_NP = 11, EXCP_SS = 12, EXCP_GP = 13, EXCP_PF = 14,
    EXCP_MF = 16, EXCP_AC = 17, EXCP_MC = 18, EXCP_XM = 19,
};

/* RFLAGS */
#define FL_CF   0x1ull
#define FL_1    0x2ull
#define FL_PF   0x4ull
#define FL_AF   0x10ull
#define FL_ZF   0x40ull
#define FL_SF   0x80ull
#define FL_TF   0x100ull
#define FL_IF   0x200ull
#define FL_DF   0x400ull
#define FL_OF   0x800ull
#define FL_IOPL 0x3000ull
#define FL_NT   0x4000ull
#define FL_RF   0x10000ull
#define FL_VM   0x20000ull
#define FL_AC   0x40000ull
#define FL_VIF  0x80000ull
#define FL_VIP  0x100000ull
#define FL_ID   0x200000ull
#define FL_ARITH (FL_CF | FL_PF | FL_AF | FL_ZF | FL_SF | FL_OF)

#define CR0_PE 0x1ull
#define CR0_MP 0x2ull
#define CR0_EM 0x4ull
#define CR0_TS 0x8ull
#define CR0_ET 0x10ull
#define CR0_NE 0x20ull
#define CR0_WP 0x10000ull
#define CR0_AM 0x40000ull
#define CR0_NW 0x20000000ull
#define CR0_CD 0x40000000ull
#define CR0_PG 0x80000000ull

#define CR4_VME        0x1ull
#define CR4_PVI        0x2ull
#define CR4_TSD        0x4ull
#define CR4_DE         0x8ull
#define CR4_PSE        0x10ull
#define CR4_PAE        0x20ull
#define CR4_MCE        0x40ull
#define CR4_PGE        0x80ull
#define CR4_PCE        0x100ull
#define CR4_OSFXSR     0x200ull
#define CR4_OSXMMEXCPT 0x400ull
#define CR4_UMIP       0x800ull
#define CR4_LA57       0x1000ull
#define CR4_VMXE       0x2000ull
#define CR4_FSGSBASE   0x10000ull
#define CR4_PCIDE      0x20000ull
#define CR4_OSXSAVE    0x40000ull
#define CR4_SMEP       0x100000ull
#define CR4_SMAP       0x200000ull
#define CR4_PKE        0x400000ull

#define EFER_SCE   0x1ull
#define EFER_LME   0x100ull
#define EFER_LMA   0x400ull
#define EFER_NXE   0x800ull
#define EFER_FFXSR 0x4000ull

/* Segment attributes: bits 8..15 and 20..23 of a descriptor's high dword, shifted right by 8
 * (the layout of VMX access rights). */
#define SEG_TYPE(a)     ((a)&0xf)
#define SEG_A           0x1u  /* accessed */
#define SEG_W           0x2u  /* data: writable; code: readable */
#define SEG_C           0x4u  /* code: conforming; data: expand down */
#define SEG_CODE        0x8u
#define SEG_S           0x10u /* code or data, not system */
#define SEG_DPL(a)      (((a) >> 5) & 3)
#define SEG_DPL_SHIFT   5
#define SEG_P           0x80u
#define SEG_AVL         0x1000u
#define SEG_L           0x2000u
#define SEG_DB          0x4000u
#define SEG_G           0x8000u
#define SEG_UNUSABLE    0x10000u

typedef struct SegmentCache {
    uint16_t selector;
    uint32_t attr;  /* SEG_* */
    uint32_t limit; /* in bytes, inclusive, granularity applied */
    uint64_t base;
} SegmentCache;

typedef struct TableReg {
    uint64_t base;
    uint16_t limit;
} TableReg;

/* FXSAVE64's layout of the first 160 bytes; st[i] are stack-relative (ST(i)). */
typedef struct QEMU_PACKED QEMU_ALIGNED(16) X87State {
    uint16_t fcw, fsw;
    uint8_t ftw, rsvd; /* abridged tag word: bit = 1: physical register not empty */
    uint16_t fop;
    uint64_t fip, fdp;
    uint32_t mxcsr, mxcsr_mask;
    struct QEMU_PACKED {
        uint8_t b[10];
        uint8_t rsvd[6];
    } st[8];
    uint8_t unused[512 - 160]; /* so that FXSAVE64/FXRSTOR64 can work on it */
} X87State;

#define X86_MTRR_VAR 8

/* Index of CPUID feature words (target/i386/cpuid.h names the bits). */
typedef enum FeatureWord {
    FEAT_1_EDX, FEAT_1_ECX, FEAT_7_0_EBX, FEAT_7_0_ECX, FEAT_7_0_EDX, FEAT_7_1_EAX,
    FEAT_8000_0001_EDX, FEAT_8000_0001_ECX, FEAT_8000_0007_EDX, FEAT_8000_0008_EBX,
    FEAT_KVM, FEAT_KVM_HINTS, FEAT_6_EAX, FEAT_XSAVE, FEAT_8000_000A_EDX,
    FEAT_ARCH_CAP, /* MSR 10AH, low half */
    FEAT_WORDS
} FeatureWord;

struct X86CPUModel;
struct TcgCpu; /* accel/tcg: TLB, decoded blocks */

#define X86_ACCEL_NEAR 14

typedef struct X86CPU {
    CPUState base; /* first */

    /* ---- architectural state ---- */
    /*
     * The arithmetic flags as LAHF and SETO leave them in AX: bits 15..8 = SF ZF 0 AF 0 PF 1 CF,
     * bits 7..0 = OF (0 or 1).
     */
    uint32_t cc;
    uint8_t cpl;
    /* Private to the accelerator: what translated code wants most; the rest is in accel_area. */
    uint8_t accel_vectors;
    uint64_t accel_near[X86_ACCEL_NEAR];
    uint64_t regs[17]; /* regs[16] is always 0: "no register" in an address */
    uint64_t rip;
    /*
     * All of RFLAGS but the six arithmetic flags, which live in cc (see below). Use
     * x86_get_rflags()/x86_set_rflags() for the whole.
     */
    uint64_t rflags;
    SegmentCache seg[R_SEG_COUNT], ldt, tr;
    TableReg gdt, idt;
    uint64_t cr0, cr2, cr3, cr4;
    uint64_t dr[8];
    uint64_t xcr0, xss, efer;
    uint64_t star, lstar, cstar, fmask, kernel_gs_base;
    uint64_t sysenter_cs, sysenter_esp, sysenter_eip;
    uint64_t pat, tsc_aux, misc_enable, mtrr_deftype, mtrr_fixed[11];
    uint64_t mtrr_var[X86_MTRR_VAR][2]; /* base, mask */
    uint64_t mcg_cap, mcg_status, mcg_ctl, mce_banks[10][4];
    uint64_t smbase, tsc_adjust, spec_ctrl, feature_control;
    uint64_t debugctl, hwcr;
    /* Guest TSC = virtual time in periods of tsc_khz + tsc_offset; see tsc.c for why. */
    int64_t tsc_offset;
    uint32_t pkru;
    uint32_t mxcsr;
    uint8_t ymm[16][32] QEMU_ALIGNED(32);
    X87State x87; /* mxcsr and the XMM area in it are scratch: mxcsr and ymm above count */
    uint16_t x87_fcs, x87_fds; /* selectors of the last x87 instruction and operand */

    /* Interruptibility and what waits for delivery. */
    bool nmi_blocked;      /* until IRET */
    bool nmi_pending;
    bool int_shadow;       /* STI or MOV SS: no interrupt before the next instruction ends */
    bool movss_shadow;     /* ... and no debug trap either */
    bool wait_for_sipi;
    bool smm, smi_pending;
    int32_t pending_vector; /* event whose delivery was cut short (KVM), -1: none */
    uint32_t pending_error;
    uint8_t pending_kind;

    /* KVM paravirtual MSRs */
    uint64_t kvm_system_time, kvm_wall_clock, kvm_async_pf, kvm_pv_eoi, kvm_steal, kvm_poll_control;

    /* ---- identity, fixed at creation ---- */
    const struct X86CPUModel *model;
    uint32_t feat[FEAT_WORDS]; /* what this guest sees */
    uint32_t apic_id;
    uint8_t phys_bits;
    uint32_t tsc_khz;
    uint64_t tsc_mult; /* guest TSC ticks a nanosecond, 20.44 fixed point; tsc.c */
    uint32_t nr_sockets, nr_dies, nr_cores, nr_threads;

    struct TcgCpu *tcg;
    uint64_t accel_area[16];
} X86CPU;

static inline X86CPU *x86_cpu(CPUState *cpu)
{
    return (X86CPU *)cpu;
}

static inline uint64_t x86_get_rflags(const X86CPU *c)
{
    return (c->rflags & ~FL_ARITH) | ((c->cc >> 8) & 0xd5) | ((c->cc & 1) << 11) | FL_1;
}
static inline void x86_set_rflags(X86CPU *c, uint64_t v)
{
    c->rflags = v & ~FL_ARITH;
    c->cc = (uint32_t)(((v & 0xd5) | 2) << 8 | ((v >> 11) & 1));
}

static inline bool x86_has(const X86CPU *c, FeatureWord w, uint32_t bit)
{
    return (c->feat[w] & bit) != 0;
}
/* 64-bit code is running (long mode and CS.L). */
static inline bool x86_in_64bit(const X86CPU *c)
{
    return (c->efer & EFER_LMA) && (c->seg[R_CS].attr & SEG_L);
}

/*
 * What firmware would have left, for loaders that enter a kernel without running firmware: MTRRs
 * enabled, write-back by default, uncached from uncached_start to 4 GiB and in the VGA window
 * (Linux turns PAT off if MTRRs are). VCPU thread or vCPU parked, after reset.
 */
void x86_cpu_firmware_mtrrs(X86CPU *cpu, uint64_t uncached_start);

/* Power-on or INIT state (SDM 3A table 9-1); the accelerator's vcpu_reset follows. VCPU thread. */
void x86_cpu_reset(X86CPU *cpu, bool init);
/*
 * A board that boots a kernel without firmware registers fn at start-up. fn changes the power-on
 * state of a CPU (every CPU is shown; index 0 is the one that runs the kernel's entry). NULL: CPUs
 * start at the reset vector. The last step of x86_cpu_reset(cpu, false) is
 * x86_cpu_apply_boot_state(cpu); an INIT does not call it. RT_SAFE: fn neither allocates nor locks.
 */
typedef void X86BootStateFn(X86CPU *cpu);
void x86_cpu_set_boot_state(X86BootStateFn *fn);
void x86_cpu_apply_boot_state(X86CPU *cpu);
/* VCPU thread: start-up IPI: real mode at vector << 12. */
void x86_cpu_sipi(X86CPU *cpu, uint8_t vector);

/* ---- CPUID and models: target/i386/cpuid.c ---- */

/*
 * Parses -cpu's argument ("max,+avx2,-x2apic,pcid=on") into the configuration x86_cpu_new() uses.
 * Start-up, after the accelerator's init hook (it decides what can be offered). False + errp for an
 * unknown model or feature, or one the accelerator or host cannot give with enforce=on; without it
 * what is missing is left out with one warning (check=off: silently). NULL: the default, qemu64.
 */
bool x86_cpu_set_model(const char *arg, Error **errp);
/* Start-up, before the first x86_cpu_new(): what -smp said; goes into CPUID and APIC ids. */
void x86_cpu_set_topology(unsigned sockets, unsigned dies, unsigned cores, unsigned threads);
/* APIC id of vCPU index: thread, core, die and socket in bit fields just wide enough. For MADT. */
uint32_t x86_apic_id(unsigned index);
/* `-cpu help`: prints models and features on standard output. */
void x86_cpu_list(void);
/* HELPER_ONLY, start-up or hot plug. In power-on state. */
X86CPU *x86_cpu_new(unsigned index, Error **errp);
/* RT_SAFE. */
void x86_cpuid(const X86CPU *cpu, uint32_t leaf, uint32_t subleaf, uint32_t *eax, uint32_t *ebx,
               uint32_t *ecx, uint32_t *edx);

/* ---- MSRs common to accelerators: target/i386/msr.c. False: #GP(0). ---- */
bool x86_rdmsr(X86CPU *cpu, uint32_t index, uint64_t *value);
bool x86_wrmsr(X86CPU *cpu, uint32_t index, uint64_t value);

/*
 * RT_SAFE. The guest's time-stamp counter now (TCG; under KVM the counter is the kernel's). It
 * stands while the machine is stopped, and needs the clocks of event/ to be running.
 */
uint64_t x86_tsc_read(const X86CPU *cpu);
/* The same at a virtual time. */
uint64_t x86_tsc_at(const X86CPU *cpu, int64_t virtual_ns);
/* The TSC was 0 at that time. */
void x86_tsc_zero_at(X86CPU *cpu, int64_t virtual_ns);
/* RT_SAFE. WRMSR to IA32_TIME_STAMP_COUNTER: moves IA32_TSC_ADJUST along (SDM 3B 17.17.3). */
void x86_tsc_write(X86CPU *cpu, uint64_t value);
/* RT_SAFE. CLOCK_MONOTONIC at which the guest's TSC reaches tsc: now or earlier if it has,
 * INT64_MAX if that is centuries away or the machine is stopped. */
int64_t x86_tsc_to_monotonic(const X86CPU *cpu, uint64_t tsc);
/* Input clock of the local APIC's timer before its divider, in every accelerator (KVM's figure). */
#define X86_APIC_BUS_HZ 1000000000u
/* kHz -> X86CPU.tsc_mult. */
uint64_t x86_tsc_mult(uint32_t khz);
/* The host's TSC frequency in kHz; measures for a few ms at the first call (HELPER_ONLY). 0: it has none. */
uint32_t x86_host_tsc_khz(void);

#endif
