/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUID instruction: one function a leaf or group of leaves. */
#include <string.h>
#include "accel/irqchip.h"
#include "target/i386/cpuid.h"

#define MISC_ENABLE_LIMIT_CPUID BIT64(22)
#define MISC_ENABLE_XD_DISABLE  BIT64(34)

typedef struct Regs {
    uint32_t a, b, c, d;
} Regs;

static unsigned bits_for(unsigned n)
{
    return n > 1 ? 32u - (unsigned)__builtin_clz(n - 1) : 0;
}

/* APIC id bits below the core, the die, the package. */
static unsigned core_shift(const X86CPU *c)
{
    return bits_for(c->nr_threads);
}
static unsigned die_shift(const X86CPU *c)
{
    return core_shift(c) + bits_for(c->nr_cores);
}
static unsigned package_shift(const X86CPU *c)
{
    return die_shift(c) + bits_for(c->nr_dies);
}
static unsigned per_package(const X86CPU *c)
{
    return c->nr_threads * c->nr_cores * c->nr_dies;
}

/* ---- State components ---- */

uint64_t x86_xcr0_mask(const X86CPU *c)
{
    uint64_t m;

    if (!x86_has(c, FEAT_1_ECX, CPUID_1_ECX_XSAVE)) {
        return 0;
    }
    m = XSTATE_X87 | XSTATE_SSE;
    if (x86_has(c, FEAT_1_ECX, CPUID_1_ECX_AVX)) {
        m |= XSTATE_AVX;
    }
    if (x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_MPX)) {
        m |= XSTATE_BNDREGS | XSTATE_BNDCSR;
    }
    if (x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX512F)) {
        m |= XSTATE_OPMASK | XSTATE_ZMM_HI256 | XSTATE_HI16_ZMM;
    }
    if (x86_has(c, FEAT_7_0_ECX, CPUID_7_0_ECX_PKU)) {
        m |= XSTATE_PKRU;
    }
    return m;
}

uint64_t x86_xss_mask(const X86CPU *c)
{
    return 0; /* no supervisor state component is offered */
}

bool x86_xsave_component(const X86CPU *c, unsigned n, uint32_t *offset, uint32_t *size)
{
    uint32_t r[4];

    if (n < 2 || n > 62 || !(x86_xcr0_mask(c) & BIT64(n))) {
        return false;
    }
    if (x86_cpu_backend()->kvm) { /* the guest's XSAVE is the host's own instruction */
        x86_cpu_backend()->host_cpuid(0xd, n, r);
        *size = r[0];
        *offset = r[1];
        return true;
    }
    *offset = n == 2 ? XSAVE_AVX_OFFSET : XSAVE_PKRU_OFFSET;
    *size = n == 2 ? XSAVE_AVX_SIZE : XSAVE_PKRU_SIZE;
    return true;
}

uint32_t x86_xsave_size(const X86CPU *c, uint64_t mask, bool compacted)
{
    uint32_t end = XSAVE_LEGACY_SIZE, offset, size;

    for (unsigned n = 2; n < 63; n++) {
        if (!(mask & BIT64(n)) || !x86_xsave_component(c, n, &offset, &size)) {
            continue;
        }
        end = compacted ? end + size : MAX(end, offset + size);
    }
    return end;
}

static void leaf_xsave(const X86CPU *c, uint32_t sub, Regs *r)
{
    uint64_t mask = x86_xcr0_mask(c);
    uint32_t offset, size;

    if (!mask) {
        return;
    }
    if (sub == 0) {
        r->a = (uint32_t)mask;
        r->b = x86_xsave_size(c, c->xcr0, false);
        r->c = x86_xsave_size(c, mask, false);
        r->d = (uint32_t)(mask >> 32);
    } else if (sub == 1) {
        r->a = c->feat[FEAT_XSAVE];
        if (r->a & (CPUID_XSAVE_XSAVEC | CPUID_XSAVE_XSAVES)) {
            r->b = x86_xsave_size(c, c->xcr0 | c->xss, true);
        }
        r->c = (uint32_t)x86_xss_mask(c);
        r->d = (uint32_t)(x86_xss_mask(c) >> 32);
    } else if (x86_xsave_component(c, sub, &offset, &size)) {
        r->a = size;
        r->b = offset;
    }
}

/* ---- Caches ---- */

typedef struct Cache {
    uint8_t type; /* 1 data, 2 code, 3 unified */
    uint8_t level;
    uint16_t ways;
    uint32_t sets;
} Cache;

static const Cache caches[] = {
    { 1, 1, 8, 64 },      /* 32 KiB */
    { 2, 1, 8, 64 },      /* 32 KiB */
    { 3, 2, 16, 1024 },   /* 1 MiB */
    { 3, 3, 16, 16384 },  /* 16 MiB, one a die */
};
#define CACHE_LINE 64u

/* Leaves 4 and 8000_001DH have one layout; the package field is Intel's only. */
static void leaf_cache(const X86CPU *c, uint32_t leaf, uint32_t sub, Regs *r)
{
    unsigned sharing, level;
    uint32_t host[4];

    if (c->model->host_cache_info) {
        x86_cpu_backend()->host_cpuid(leaf, sub, host);
        *r = (Regs){ host[0] & 0x3fff, host[1], host[2], host[3] };
        level = (r->a >> 5) & 7;
    } else {
        const Cache *k = &caches[sub];

        if (sub >= ARRAY_SIZE(caches) || (k->level == 3 && !c->model->l3_cache)) {
            return;
        }
        level = k->level;
        r->a = k->type | (uint32_t)level << 5 | BIT(8) /* self-initialising */;
        r->b = (CACHE_LINE - 1) | (uint32_t)(k->ways - 1) << 22;
        r->c = k->sets - 1;
        r->d = level == 3 ? BIT(1) /* inclusive */ : 0;
    }
    if (!(r->a & 31)) {
        return;
    }
    sharing = level >= 3 ? BIT(die_shift(c)) : BIT(core_shift(c));
    r->a |= (sharing - 1) << 14;
    if (leaf == 4) {
        unsigned cores = BIT(package_shift(c) - core_shift(c));

        r->a |= (MIN(cores, 64u) - 1) << 26;
    }
}

/* APM 3 E.4.5, E.4.6: legacy descriptions of L1, L2 and L3 with their TLBs. */
static void leaf_amd_caches(const X86CPU *c, uint32_t leaf, Regs *r)
{
    uint32_t host[4];

    if (c->model->host_cache_info) {
        x86_cpu_backend()->host_cpuid(leaf, 0, host);
        *r = (Regs){ host[0], host[1], host[2], host[3] };
    } else if (leaf == 0x80000005) {
        r->a = 0x01ff01ff;
        r->b = 0x01ff01ff;
        r->c = r->d = 32u << 24 | 8u << 16 | 1u << 8 | CACHE_LINE;
    } else {
        r->b = 0x42004200;
        r->c = 1024u << 16 | 8u << 12 /* 16 ways */ | 1u << 8 | CACHE_LINE;
        r->d = c->model->l3_cache ? 32u << 18 /* x 512 KiB */ | 8u << 12 | 1u << 8 | CACHE_LINE : 0;
    }
}

/* ---- Topology ---- */

/* Leaves BH (threads, cores) and 1FH (threads, cores, dies): SDM 2A table 3-8. */
static void leaf_topology(const X86CPU *c, uint32_t leaf, uint32_t sub, Regs *r)
{
    enum { SMT = 1, CORE = 2, DIE = 5 };

    r->c = sub & 0xff;
    r->d = c->apic_id;
    if (sub == 0) {
        r->a = core_shift(c);
        r->b = c->nr_threads;
        r->c |= SMT << 8;
    } else if (sub == 1) {
        r->a = leaf == 0x1f ? die_shift(c) : package_shift(c);
        r->b = leaf == 0x1f ? c->nr_threads * c->nr_cores : per_package(c);
        r->c |= CORE << 8;
    } else if (sub == 2 && leaf == 0x1f) {
        r->a = package_shift(c);
        r->b = per_package(c);
        r->c |= DIE << 8;
    }
}

/* 8000_001EH: extended APIC id, core and node of this thread. */
static void leaf_amd_topology(const X86CPU *c, Regs *r)
{
    r->a = c->apic_id;
    r->b = ((c->apic_id >> core_shift(c)) & (BIT(package_shift(c) - core_shift(c)) - 1)) |
           (c->nr_threads - 1) << 8;
    r->c = c->apic_id >> die_shift(c) | (MIN(c->nr_dies, 8u) - 1) << 8;
}

/* ---- Basic leaves ---- */

static void leaf_vendor(const X86CPU *c, Regs *r)
{
    memcpy(&r->b, c->model->vendor, 4);
    memcpy(&r->d, c->model->vendor + 4, 4);
    memcpy(&r->c, c->model->vendor + 8, 4);
}

static uint32_t signature(const X86CPUModel *m)
{
    uint32_t ext = m->family > 15 ? m->family - 15u : 0;

    return ext << 20 | (uint32_t)(m->model >> 4) << 16 | MIN(m->family, 15u) << 8 |
           (uint32_t)(m->model & 15) << 4 | (m->stepping & 15);
}

static void leaf_1(const X86CPU *c, Regs *r)
{
    r->a = signature(c->model);
    r->b = (c->apic_id & 0xff) << 24 | CACHE_LINE / 8 << 8;
    r->c = c->feat[FEAT_1_ECX];
    r->d = c->feat[FEAT_1_EDX];
    if (per_package(c) > 1) {
        r->b |= MIN(per_package(c), 255u) << 16;
        r->d |= CPUID_1_EDX_HT;
    }
    if (c->cr4 & CR4_OSXSAVE) {
        r->c |= CPUID_1_ECX_OSXSAVE;
    }
    if (irqchip && irqchip->base_get && !(irqchip->base_get((CPUState *)&c->base) & BIT(11))) {
        r->d &= ~CPUID_1_EDX_APIC; /* globally disabled by IA32_APIC_BASE */
    }
}

static void leaf_7(const X86CPU *c, uint32_t sub, Regs *r)
{
    if (sub == 0) {
        r->a = c->feat[FEAT_7_1_EAX] ? 1 : 0;
        r->b = c->feat[FEAT_7_0_EBX];
        r->c = c->feat[FEAT_7_0_ECX];
        r->d = c->feat[FEAT_7_0_EDX];
        if (c->cr4 & CR4_PKE) {
            r->c |= CPUID_7_0_ECX_OSPKE;
        }
    } else if (sub == 1) {
        r->a = c->feat[FEAT_7_1_EAX];
    }
}

/* The TSC's rate may be told: it stays what it is. */
static bool tsc_rate_known(const X86CPU *c)
{
    return x86_cpu_backend()->tsc_constant || c->model->tsc_khz ||
           x86_has(c, FEAT_8000_0007_EDX, CPUID_8000_0007_EDX_INVTSC);
}

/* TSC = crystal * EBX / EAX. The crystal is the local APIC timer's clock (SDM 3A 11.5.4). */
static void leaf_15(const X86CPU *c, Regs *r)
{
    uint32_t a = X86_APIC_BUS_HZ / 1000, b = c->tsc_khz;

    while (b) { /* greatest common divisor */
        uint32_t t = a % b;

        a = b;
        b = t;
    }
    r->a = X86_APIC_BUS_HZ / 1000 / a;
    r->b = c->tsc_khz / a;
    r->c = X86_APIC_BUS_HZ;
}

static void leaf_basic(const X86CPU *c, uint32_t leaf, uint32_t sub, Regs *r)
{
    bool intel = x86_is_intel(c);

    switch (leaf) {
    case 0:
        r->a = c->misc_enable & MISC_ENABLE_LIMIT_CPUID ? MIN(c->model->level, 3u) : c->model->level;
        leaf_vendor(c, r);
        break;
    case 1:
        leaf_1(c, r);
        break;
    case 2:
        r->a = intel ? 0x00feff01 : 0; /* caches: see leaf 4; TLBs: see leaf 18H */
        break;
    case 4:
        if (intel) {
            leaf_cache(c, leaf, sub, r);
        }
        break;
    case 6:
        r->a = c->feat[FEAT_6_EAX];
        break;
    case 7:
        leaf_7(c, sub, r);
        break;
    case 0xa:
        if (c->model->pmu && x86_cpu_backend()->kvm) {
            uint32_t host[4];

            x86_cpu_backend()->host_cpuid(leaf, 0, host);
            *r = (Regs){ host[0], host[1], host[2], host[3] };
        }
        break;
    case 0xb:
        leaf_topology(c, leaf, sub, r);
        break;
    case 0xd:
        leaf_xsave(c, sub, r);
        break;
    case 0x15:
        if (tsc_rate_known(c)) {
            leaf_15(c, r);
        }
        break;
    case 0x16:
        if (tsc_rate_known(c)) {
            r->a = r->b = c->tsc_khz / 1000;
            r->c = 100;
        }
        break;
    case 0x1f:
        if (c->nr_dies > 1) {
            leaf_topology(c, leaf, sub, r);
        }
        break;
    default:
        break;
    }
}

/* ---- Hypervisor leaves ---- */

static void leaf_hypervisor(const X86CPU *c, uint32_t leaf, Regs *r)
{
    bool kvm = x86_cpu_backend()->kvm;
    bool timing = c->model->hv_timing && tsc_rate_known(c);

    if (!c->model->hv_leaves) {
        return;
    }
    switch (leaf - CPUID_LEAF_HYPERVISOR) {
    case 0:
        r->a = CPUID_LEAF_HYPERVISOR + (timing ? 0x10 : 1);
        memcpy(&r->b, kvm ? "KVMKVMKVM\0\0\0" : "TCGTCGTCGTCG", 4);
        memcpy(&r->c, (kvm ? "KVMKVMKVM\0\0\0" : "TCGTCGTCGTCG") + 4, 4);
        memcpy(&r->d, (kvm ? "KVMKVMKVM\0\0\0" : "TCGTCGTCGTCG") + 8, 4);
        break;
    case 1:
        r->a = c->feat[FEAT_KVM];
        r->d = c->feat[FEAT_KVM_HINTS];
        break;
    case 0x10: /* TSC and local APIC clocks in kHz, as VMware defined the leaf */
        if (timing) {
            r->a = c->tsc_khz;
            r->b = X86_APIC_BUS_HZ / 1000;
        }
        break;
    default:
        break;
    }
}

/* ---- Extended leaves ---- */

static void leaf_extended(const X86CPU *c, uint32_t leaf, uint32_t sub, Regs *r)
{
    bool amd = !x86_is_intel(c);

    switch (leaf) {
    case 0x80000000:
        r->a = c->model->xlevel;
        if (amd) {
            leaf_vendor(c, r);
        }
        break;
    case 0x80000001:
        r->a = amd ? signature(c->model) : 0;
        r->c = c->feat[FEAT_8000_0001_ECX];
        r->d = c->feat[FEAT_8000_0001_EDX];
        if (amd && per_package(c) > 1) {
            r->c |= CPUID_8000_0001_ECX_CMP_LEGACY;
        }
        if (c->misc_enable & MISC_ENABLE_XD_DISABLE) {
            r->d &= ~CPUID_8000_0001_EDX_NX;
        }
        break;
    case 0x80000002 ... 0x80000004:
        memcpy(r, c->model->model_id + (leaf - 0x80000002) * 16, 16);
        break;
    case 0x80000005:
    case 0x80000006:
        if (amd) {
            leaf_amd_caches(c, leaf, r);
        } else if (leaf == 0x80000006) {
            r->c = 1024u << 16 | 8u << 12 | CACHE_LINE;
        }
        break;
    case 0x80000007:
        r->d = c->feat[FEAT_8000_0007_EDX];
        break;
    case 0x80000008:
        r->a = c->phys_bits | (x86_has(c, FEAT_7_0_ECX, CPUID_7_0_ECX_LA57) ? 57 : 48) << 8;
        r->b = c->feat[FEAT_8000_0008_EBX];
        if (amd && per_package(c) > 1) {
            r->c = package_shift(c) << 12 | (MIN(per_package(c), 256u) - 1);
        }
        break;
    case 0x8000000a:
        if (x86_has(c, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_SVM)) {
            r->a = 1;
            r->b = 16; /* ASIDs */
            r->d = c->feat[FEAT_8000_000A_EDX];
        }
        break;
    case 0x8000001d:
        if (x86_has(c, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_TOPOEXT)) {
            leaf_cache(c, leaf, sub, r);
        }
        break;
    case 0x8000001e:
        if (x86_has(c, FEAT_8000_0001_ECX, CPUID_8000_0001_ECX_TOPOEXT)) {
            leaf_amd_topology(c, r);
        }
        break;
    default:
        break;
    }
}

void x86_cpuid(const X86CPU *c, uint32_t leaf, uint32_t sub, uint32_t *eax, uint32_t *ebx,
               uint32_t *ecx, uint32_t *edx)
{
    Regs r = { 0 };

    if ((leaf & 0xf0000000u) == CPUID_LEAF_HYPERVISOR) {
        leaf_hypervisor(c, leaf, &r);
    } else if (leaf <= c->model->level) {
        leaf_basic(c, leaf, sub, &r);
    } else if (leaf >= 0x80000000u && leaf <= c->model->xlevel) {
        leaf_extended(c, leaf, sub, &r);
    } else if (x86_is_intel(c)) {
        /* Out of range: the highest basic leaf answers (SDM 2A, CPUID). AMD's give zeros. */
        leaf_basic(c, c->model->level, sub, &r);
    }
    *eax = r.a;
    *ebx = r.b;
    *ecx = r.c;
    *edx = r.d;
}
