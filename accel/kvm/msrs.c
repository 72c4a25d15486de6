/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM: model-specific registers. A table says where in X86CPU each lives and when it is written
 * back; what the kernel does not know is left out.
 */
#include "accel/kvm/kvm-internal.h"

#include <glib.h>
#include <string.h>

/* When a register is written to the kernel. */
enum {
    PUT_ALWAYS,
    PUT_AT_RESET, /* it runs on by itself (clocks), or its write has an effect */
};
/* Which guests have it. */
enum { FOR_ALL, FOR_FEATURE };

typedef struct MsrMap {
    uint32_t index;
    uint32_t offset; /* of a uint64_t in X86CPU, or in KvmVcpu */
    uint8_t put;
    uint8_t in_vcpu;
    uint8_t need; /* FOR_FEATURE: word and bits */
    uint8_t word;
    uint32_t bits;
} MsrMap;

#define CPU(msr, field, when) { .index = (msr), .offset = offsetof(X86CPU, field), .put = (when) }
#define CPU_IF(msr, field, when, w, b)                                                             \
    {                                                                                              \
        .index = (msr), .offset = offsetof(X86CPU, field), .put = (when), .need = FOR_FEATURE,     \
        .word = (w), .bits = (b)                                                                   \
    }
#define VCPU_IF(msr, field, when, w, b)                                                            \
    {                                                                                              \
        .index = (msr), .offset = offsetof(KvmVcpu, field), .put = (when), .in_vcpu = 1,           \
        .need = FOR_FEATURE, .word = (w), .bits = (b)                                              \
    }

#define KVM_CLOCK_BITS (CPUID_KVM_CLOCKSOURCE | CPUID_KVM_CLOCKSOURCE2)

static const MsrMap msr_map[] = {
    CPU(0x174, sysenter_cs, PUT_ALWAYS),
    CPU(0x175, sysenter_esp, PUT_ALWAYS),
    CPU(0x176, sysenter_eip, PUT_ALWAYS),
    CPU(0xc0000081, star, PUT_ALWAYS),
    CPU(0xc0000082, lstar, PUT_ALWAYS),
    CPU(0xc0000083, cstar, PUT_ALWAYS),
    CPU(0xc0000084, fmask, PUT_ALWAYS),
    CPU(0xc0000102, kernel_gs_base, PUT_ALWAYS),
    CPU(0x277, pat, PUT_ALWAYS),
    CPU(0x1d9, debugctl, PUT_ALWAYS),
    CPU(0x1a0, misc_enable, PUT_AT_RESET),
    CPU(0x17a, mcg_status, PUT_AT_RESET),
    CPU(0x17b, mcg_ctl, PUT_AT_RESET),
    CPU_IF(0xc0000103, tsc_aux, PUT_ALWAYS, FEAT_8000_0001_EDX, CPUID_8000_0001_EDX_RDTSCP),
    CPU_IF(0xda0, xss, PUT_ALWAYS, FEAT_XSAVE, CPUID_XSAVE_XSAVES),
    CPU_IF(0x48, spec_ctrl, PUT_ALWAYS, FEAT_7_0_EDX, CPUID_7_0_EDX_SPEC_CTRL),
    CPU_IF(0x3a, feature_control, PUT_AT_RESET, FEAT_1_ECX, CPUID_1_ECX_VMX),
    /* Writing the TSC moves TSC_ADJUST, so it comes before it. */
    VCPU_IF(0x10, tsc, PUT_AT_RESET, FEAT_1_EDX, CPUID_1_EDX_TSC),
    CPU_IF(0x3b, tsc_adjust, PUT_AT_RESET, FEAT_7_0_EBX, CPUID_7_0_EBX_TSC_ADJUST),
    VCPU_IF(0x6e0, tsc_deadline, PUT_AT_RESET, FEAT_1_ECX, CPUID_1_ECX_TSC_DEADLINE),
    CPU_IF(0x4b564d00, kvm_wall_clock, PUT_AT_RESET, FEAT_KVM, KVM_CLOCK_BITS),
    CPU_IF(0x4b564d01, kvm_system_time, PUT_AT_RESET, FEAT_KVM, KVM_CLOCK_BITS),
    CPU_IF(0x4b564d02, kvm_async_pf, PUT_AT_RESET, FEAT_KVM, CPUID_KVM_ASYNC_PF),
    CPU_IF(0x4b564d03, kvm_steal, PUT_AT_RESET, FEAT_KVM, CPUID_KVM_STEAL_TIME),
    CPU_IF(0x4b564d04, kvm_pv_eoi, PUT_AT_RESET, FEAT_KVM, CPUID_KVM_PV_EOI),
    CPU_IF(0x4b564d05, kvm_poll_control, PUT_AT_RESET, FEAT_KVM, CPUID_KVM_POLL_CONTROL),
};

/* Which of the table this kernel has. */
static bool known[ARRAY_SIZE(msr_map)];

/* Registers that KVM_GET_MSR_INDEX_LIST leaves out although the ioctls take them. */
static bool always_known(uint32_t index)
{
    return index == 0x10 || index == 0x277 || index == 0x1d9;
}

bool kvm_msrs_init(Error **errp)
{
    struct kvm_msr_list probe = { .nmsrs = 0 };

    kvm_ioctl(kvm.fd, KVM_GET_MSR_INDEX_LIST, &probe); /* E2BIG tells the number */
    kvm.msrs = g_malloc0(sizeof(*kvm.msrs) + probe.nmsrs * sizeof(uint32_t));
    kvm.msrs->nmsrs = probe.nmsrs;
    int r = kvm_ioctl(kvm.fd, KVM_GET_MSR_INDEX_LIST, kvm.msrs);
    if (r < 0) {
        error_setg_errno(errp, -r, "cannot use KVM: reading its list of MSRs");
        return false;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(msr_map); i++) {
        known[i] = always_known(msr_map[i].index);
        for (unsigned j = 0; j < kvm.msrs->nmsrs; j++) {
            known[i] |= kvm.msrs->indices[j] == msr_map[i].index;
        }
    }
    return true;
}

/* The table plus MTRRs, bank registers and SMBASE. */
#define MAX_MSRS (ARRAY_SIZE(msr_map) + 1 + 11 + 2 * X86_MTRR_VAR + 10 * 4 + 1)

typedef struct MsrBatch {
    unsigned n;
    struct kvm_msr_entry e[MAX_MSRS];
    uint64_t *where[MAX_MSRS];
} MsrBatch;

/* The ioctls' argument. */
typedef union MsrRoom {
    struct kvm_msrs h;
    uint8_t room[sizeof(struct kvm_msrs) + MAX_MSRS * sizeof(struct kvm_msr_entry)];
} MsrRoom;

static void batch_add(MsrBatch *b, uint32_t index, uint64_t *where)
{
    b->e[b->n] = (struct kvm_msr_entry){ .index = index, .data = *where };
    b->where[b->n] = where;
    b->n++;
}

static void add_mtrrs(MsrBatch *b, X86CPU *c)
{
    static const uint32_t fixed[11] = { 0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
                                        0x26b, 0x26c, 0x26d, 0x26e, 0x26f };

    if (!x86_has(c, FEAT_1_EDX, CPUID_1_EDX_MTRR)) {
        return;
    }
    batch_add(b, 0x2ff, &c->mtrr_deftype);
    for (unsigned i = 0; i < ARRAY_SIZE(fixed); i++) {
        batch_add(b, fixed[i], &c->mtrr_fixed[i]);
    }
    for (unsigned i = 0; i < X86_MTRR_VAR; i++) {
        batch_add(b, 0x200 + 2 * i, &c->mtrr_var[i][0]);
        batch_add(b, 0x201 + 2 * i, &c->mtrr_var[i][1]);
    }
}

static void fill(MsrBatch *b, CPUState *cpu, bool put, KvmPutLevel level)
{
    X86CPU *c = x86_cpu(cpu);

    b->n = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(msr_map); i++) {
        const MsrMap *m = &msr_map[i];
        uint8_t *base = m->in_vcpu ? (uint8_t *)kvm_vcpu(cpu) : (uint8_t *)c;

        if (!known[i] || (put && m->put == PUT_AT_RESET && level != KVM_PUT_RESET) ||
            (m->need == FOR_FEATURE && !x86_has(c, m->word, m->bits)) ||
            (m->index == 0x6e0 && !kvm_lapic_in_kernel()) ||
            ((m->index == 0x17a || m->index == 0x17b) && !c->mcg_cap)) {
            continue;
        }
        batch_add(b, m->index, (uint64_t *)(void *)(base + m->offset));
    }
    if (!put || level == KVM_PUT_RESET) {
        add_mtrrs(b, c);
        for (unsigned i = 0; i < MIN(c->mcg_cap & 0xff, 10u) * 4; i++) {
            batch_add(b, 0x400 + i, &c->mce_banks[i / 4][i % 4]);
        }
        if (kvm.has_smi) {
            batch_add(b, 0x9e, &c->smbase);
        }
    }
}

/* The ioctls stop at the first register they refuse; then it is skipped and the rest tried. */
static void transfer(KvmVcpu *v, MsrBatch *b, unsigned long request)
{
    unsigned first = 0;
    MsrRoom part;

    while (first < b->n) {
        unsigned n = b->n - first;
        int r;

        part.h = (struct kvm_msrs){ .nmsrs = n };
        memcpy(part.h.entries, &b->e[first], n * sizeof(b->e[0]));
        r = kvm_ioctl(v->fd, request, &part);
        r = MAX(r, 0);
        memcpy(&b->e[first], part.h.entries, (size_t)r * sizeof(b->e[0]));
        first += (unsigned)r;
        if (first < b->n) {
            b->where[first++] = NULL;
        }
    }
}

void kvm_get_msrs(CPUState *cpu)
{
    MsrBatch b;

    fill(&b, cpu, false, KVM_PUT_RUNTIME);
    transfer(kvm_vcpu(cpu), &b, KVM_GET_MSRS);
    for (unsigned i = 0; i < b.n; i++) {
        if (b.where[i]) {
            *b.where[i] = b.e[i].data;
        }
    }
}

int kvm_put_msrs(CPUState *cpu, KvmPutLevel level)
{
    MsrBatch b;

    if (level == KVM_PUT_RESET) {
        kvm_vcpu(cpu)->tsc = 0;
        kvm_vcpu(cpu)->tsc_deadline = 0;
    }
    fill(&b, cpu, true, level);
    /* A register this kernel does not let us write keeps its value; that is no reason to stop. */
    transfer(kvm_vcpu(cpu), &b, KVM_SET_MSRS);
    return 0;
}
