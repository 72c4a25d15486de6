/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM: what the kernel can offer in CPUID becomes -cpu's limits; the chosen model goes back. */
#include "accel/kvm/kvm-internal.h"

#include <cpuid.h>
#include <glib.h>
#include <string.h>

#define MAX_ENTRIES 256

static const struct kvm_cpuid_entry2 *find_entry(uint32_t leaf, uint32_t sub)
{
    for (unsigned i = 0; i < kvm.cpuid->nent; i++) {
        const struct kvm_cpuid_entry2 *e = &kvm.cpuid->entries[i];

        if (e->function == leaf &&
            (!(e->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX) || e->index == sub)) {
            return e;
        }
    }
    return NULL;
}

static void offered(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    const struct kvm_cpuid_entry2 *e = find_entry(leaf, sub);

    memset(r, 0, 4 * sizeof(r[0]));
    if (e) {
        r[0] = e->eax;
        r[1] = e->ebx;
        r[2] = e->ecx;
        r[3] = e->edx;
    }
}

/* IA32_ARCH_CAPABILITIES as the kernel emulates it. */
static uint32_t arch_capabilities(void)
{
    uint64_t room[(sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)) / 8] = { 0 };
    struct kvm_msrs *m = (void *)room;

    m->nmsrs = 1;
    m->entries[0].index = 0x10a;
    if (!kvm_check_cap(KVM_CAP_GET_MSR_FEATURES) || kvm_ioctl(kvm.fd, KVM_GET_MSRS, m) != 1) {
        return 0;
    }
    return (uint32_t)m->entries[0].data;
}

static bool host_has_monitor(void)
{
    uint32_t a, b, c, d;

    __cpuid(1, a, b, c, d);
    return (c & CPUID_1_ECX_MONITOR) && (kvm_check_cap(KVM_CAP_X86_DISABLE_EXITS) &
                                         KVM_X86_DISABLE_EXITS_MWAIT);
}

static uint32_t word_1_ecx(uint32_t v)
{
    v |= CPUID_1_ECX_HYPERVISOR;
    v &= ~CPUID_1_ECX_TSC_DEADLINE;
    if (kvm_check_cap(KVM_CAP_TSC_DEADLINE_TIMER)) {
        v |= CPUID_1_ECX_TSC_DEADLINE;
    }
    if (!kvm_lapic_in_kernel()) { /* both live in the kernel's local APIC */
        v &= ~(CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_X2APIC);
    }
    if (accel_cpu_pm && host_has_monitor()) { /* MWAIT does not exit then */
        v |= CPUID_1_ECX_MONITOR;
    }
    return v;
}

static uint32_t word_kvm(uint32_t v)
{
    v &= ~CPUID_KVM_MSI_EXT_DEST_ID; /* the I/O APIC has 8-bit destinations */
    if (!kvm_lapic_in_kernel()) {
        v &= ~(CPUID_KVM_PV_EOI | CPUID_KVM_PV_UNHALT | CPUID_KVM_PV_SEND_IPI |
               CPUID_KVM_ASYNC_PF | CPUID_KVM_ASYNC_PF_INT | CPUID_KVM_ASYNC_PF_VMEXIT);
    }
    return v;
}

static uint32_t kvm_supported(FeatureWord w)
{
    static const uint32_t amx = CPUID_7_0_EDX_AMX_BF16 | CPUID_7_0_EDX_AMX_TILE |
                                CPUID_7_0_EDX_AMX_INT8;
    uint32_t r[4];

    switch (w) {
    case FEAT_1_EDX:
        offered(1, 0, r);
        return r[3] | CPUID_1_EDX_HT;
    case FEAT_1_ECX:
        offered(1, 0, r);
        return word_1_ecx(r[2]);
    case FEAT_7_0_EBX:
        offered(7, 0, r);
        return r[1];
    case FEAT_7_0_ECX:
        offered(7, 0, r);
        return r[2];
    case FEAT_7_0_EDX: /* AMX state needs permission the process does not ask for */
        offered(7, 0, r);
        return r[3] & ~amx;
    case FEAT_7_1_EAX:
        offered(7, 1, r);
        return r[0] & ~CPUID_7_1_EAX_AMX_FP16;
    case FEAT_8000_0001_EDX:
        offered(0x80000001, 0, r);
        return r[3];
    case FEAT_8000_0001_ECX: /* topology is ours to tell */
        offered(0x80000001, 0, r);
        return r[2] | CPUID_8000_0001_ECX_TOPOEXT | CPUID_8000_0001_ECX_CMP_LEGACY;
    case FEAT_8000_0007_EDX:
        offered(0x80000007, 0, r);
        return r[3];
    case FEAT_8000_0008_EBX:
        offered(0x80000008, 0, r);
        return r[1];
    case FEAT_KVM:
        offered(0x40000001, 0, r);
        return word_kvm(r[0]);
    case FEAT_KVM_HINTS:
        return CPUID_KVM_HINTS_REALTIME;
    case FEAT_6_EAX:
        offered(6, 0, r);
        return r[0] | CPUID_6_EAX_ARAT;
    case FEAT_XSAVE:
        offered(0xd, 1, r);
        return r[0] & ~CPUID_XSAVE_XFD;
    case FEAT_8000_000A_EDX:
        offered(0x8000000a, 0, r);
        return r[3];
    case FEAT_ARCH_CAP:
        return arch_capabilities();
    default:
        return 0;
    }
}

/* Paravirtual help and timers that need no calibration, for every named model. */
static uint32_t kvm_defaults(FeatureWord w)
{
    switch (w) {
    case FEAT_1_ECX:
        return CPUID_1_ECX_X2APIC | CPUID_1_ECX_TSC_DEADLINE | CPUID_1_ECX_HYPERVISOR;
    case FEAT_7_0_EBX:
        return CPUID_7_0_EBX_TSC_ADJUST;
    case FEAT_6_EAX:
        return CPUID_6_EAX_ARAT;
    case FEAT_KVM:
        return CPUID_KVM_CLOCKSOURCE | CPUID_KVM_CLOCKSOURCE2 | CPUID_KVM_CLOCKSOURCE_STABLE |
               CPUID_KVM_NOP_IO_DELAY | CPUID_KVM_ASYNC_PF | CPUID_KVM_STEAL_TIME |
               CPUID_KVM_PV_EOI;
    default:
        return 0;
    }
}

/* Identity and caches are the processor's; state sizes, address width and PMU what KVM makes of it. */
static void kvm_host_cpuid(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    if (leaf == 0xd || leaf == 0xa || leaf == 0x80000008) {
        offered(leaf, sub, r);
        return;
    }
    memset(r, 0, 4 * sizeof(r[0]));
    if (leaf <= (uint32_t)__get_cpuid_max(leaf & 0x80000000u, NULL)) {
        __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
    }
}

static uint32_t kvm_tsc_khz(void)
{
    return x86_host_tsc_khz(); /* corrected by KVM_GET_TSC_KHZ when there is a vCPU */
}

/* As QEMU: what a model's name alone is no reason to give. */
static const uint32_t unless_asked[FEAT_WORDS] = {
    [FEAT_1_EDX] = CPUID_1_EDX_ACPI,
    [FEAT_1_ECX] = CPUID_1_ECX_MONITOR,
    [FEAT_8000_0001_ECX] = CPUID_8000_0001_ECX_SVM,
};

static const X86CpuBackend kvm_backend = {
    .name = "KVM",
    .kvm = true,
    .supported = kvm_supported,
    .defaults = kvm_defaults,
    .unless_asked = unless_asked,
    .host_cpuid = kvm_host_cpuid,
    .default_tsc_khz = kvm_tsc_khz,
};

bool kvm_cpuid_init(Error **errp)
{
    int r;

    kvm.cpuid = g_malloc0(sizeof(*kvm.cpuid) + MAX_ENTRIES * sizeof(kvm.cpuid->entries[0]));
    kvm.cpuid->nent = MAX_ENTRIES;
    r = kvm_ioctl(kvm.fd, KVM_GET_SUPPORTED_CPUID, kvm.cpuid);
    if (r < 0) {
        error_setg_errno(errp, -r, "cannot use KVM: reading the CPUID it supports");
        return false;
    }
    x86_cpu_set_backend(&kvm_backend);
    return true;
}

/* ---- KVM_SET_CPUID2 ---- */

typedef struct Table {
    struct kvm_cpuid2 *t;
    const X86CPU *c;
} Table;

static struct kvm_cpuid_entry2 *add(Table *b, uint32_t leaf, uint32_t sub, bool indexed)
{
    struct kvm_cpuid_entry2 *e;

    if (b->t->nent == MAX_ENTRIES) {
        return NULL;
    }
    e = &b->t->entries[b->t->nent++];
    e->function = leaf;
    e->index = sub;
    e->flags = indexed ? KVM_CPUID_FLAG_SIGNIFCANT_INDEX : 0;
    x86_cpuid(b->c, leaf, sub, &e->eax, &e->ebx, &e->ecx, &e->edx);
    return e;
}

/* Leaves with subleaves, until one says there are no more. */
static void add_leaf(Table *b, uint32_t leaf)
{
    struct kvm_cpuid_entry2 *e;

    switch (leaf) {
    case 4:
    case 0x8000001d: /* cache type 0 ends */
        for (uint32_t i = 0; (e = add(b, leaf, i, true)) && (e->eax & 31); i++) {
        }
        break;
    case 7:
        e = add(b, leaf, 0, true);
        for (uint32_t i = 1, n = e ? e->eax : 0; i <= n; i++) {
            add(b, leaf, i, true);
        }
        break;
    case 0xb:
    case 0x1f: /* level type 0 ends */
        for (uint32_t i = 0; (e = add(b, leaf, i, true)) && (e->ecx & 0xff00); i++) {
        }
        break;
    case 0xd:
        add(b, leaf, 0, true);
        add(b, leaf, 1, true);
        for (uint32_t i = 2; i < 63; i++) {
            if (x86_xcr0_mask(b->c) & BIT64(i)) {
                add(b, leaf, i, true);
            }
        }
        break;
    default:
        add(b, leaf, 0, false);
        break;
    }
}

/* KVM's performance counters follow pmu=. The kernel takes this only before the first vCPU. */
void kvm_decide_pmu(const X86CPU *c)
{
    if (!kvm.pmu_decided && !c->model->pmu &&
        (kvm_check_cap(KVM_CAP_PMU_CAPABILITY) & KVM_PMU_CAP_DISABLE)) {
        kvm_enable_cap(KVM_CAP_PMU_CAPABILITY, KVM_PMU_CAP_DISABLE, 0);
    }
    kvm.pmu_decided = true;
}

bool kvm_cpuid_set(CPUState *cpu, Error **errp)
{
    const X86CPU *c = x86_cpu(cpu);
    Table b = { .c = c };
    int r;

    b.t = g_malloc0(sizeof(*b.t) + MAX_ENTRIES * sizeof(b.t->entries[0]));
    for (uint32_t leaf = 0; leaf <= c->model->level; leaf++) {
        add_leaf(&b, leaf);
    }
    if (c->model->hv_leaves) {
        struct kvm_cpuid_entry2 *e = add(&b, CPUID_LEAF_HYPERVISOR, 0, false);

        for (uint32_t leaf = CPUID_LEAF_HYPERVISOR + 1, last = e->eax; leaf <= last; leaf++) {
            add_leaf(&b, leaf);
        }
    }
    for (uint32_t leaf = 0x80000000u; leaf <= c->model->xlevel; leaf++) {
        add_leaf(&b, leaf);
    }
    r = kvm_ioctl(kvm_vcpu(cpu)->fd, KVM_SET_CPUID2, b.t);
    g_free(b.t);
    if (r < 0) {
        error_setg_errno(errp, -r, "KVM: vCPU %u: the kernel refuses the CPUID of model %s",
                         cpu->index, c->model->name);
    }
    return r >= 0;
}
