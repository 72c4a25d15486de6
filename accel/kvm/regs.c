/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM: architectural state between X86CPU and the kernel. */
#include "accel/kvm/kvm-internal.h"

#include <string.h>

#define XSAVE_HEADER_OFFSET 512
#define APIC_BASE_DEFAULT   0xfee00000ull
#define APIC_BASE_BSP       BIT64(8)
#define APIC_BASE_ENABLE    BIT64(11)

/* ---- Segments ---- */

static void seg_from_kvm(SegmentCache *s, const struct kvm_segment *k)
{
    s->selector = k->selector;
    s->base = k->base;
    s->limit = k->limit;
    s->attr = (uint32_t)(k->type & 15) | (k->s ? SEG_S : 0) | (uint32_t)(k->dpl & 3) << SEG_DPL_SHIFT |
              (k->present ? SEG_P : 0) | (k->avl ? SEG_AVL : 0) | (k->l ? SEG_L : 0) |
              (k->db ? SEG_DB : 0) | (k->g ? SEG_G : 0) | (k->unusable ? SEG_UNUSABLE : 0);
}

static void seg_to_kvm(struct kvm_segment *k, const SegmentCache *s)
{
    *k = (struct kvm_segment){
        .base = s->base,
        .limit = s->limit,
        .selector = s->selector,
        .type = SEG_TYPE(s->attr),
        .present = (s->attr & SEG_P) != 0,
        .dpl = (uint8_t)SEG_DPL(s->attr),
        .db = (s->attr & SEG_DB) != 0,
        .s = (s->attr & SEG_S) != 0,
        .l = (s->attr & SEG_L) != 0,
        .g = (s->attr & SEG_G) != 0,
        .avl = (s->attr & SEG_AVL) != 0,
        .unusable = (s->attr & SEG_UNUSABLE) || !(s->attr & SEG_P),
    };
}

/* ---- General registers ---- */

static void get_regs(X86CPU *c, KvmVcpu *v)
{
    struct kvm_regs r;

    if (kvm_ioctl(v->fd, KVM_GET_REGS, &r) < 0) {
        return;
    }
    c->regs[R_RAX] = r.rax;
    c->regs[R_RCX] = r.rcx;
    c->regs[R_RDX] = r.rdx;
    c->regs[R_RBX] = r.rbx;
    c->regs[R_RSP] = r.rsp;
    c->regs[R_RBP] = r.rbp;
    c->regs[R_RSI] = r.rsi;
    c->regs[R_RDI] = r.rdi;
    memcpy(&c->regs[R_R8], &r.r8, 8 * sizeof(uint64_t));
    c->rip = r.rip;
    x86_set_rflags(c, r.rflags);
}

static int put_regs(const X86CPU *c, KvmVcpu *v)
{
    struct kvm_regs r = {
        .rax = c->regs[R_RAX],
        .rcx = c->regs[R_RCX],
        .rdx = c->regs[R_RDX],
        .rbx = c->regs[R_RBX],
        .rsp = c->regs[R_RSP],
        .rbp = c->regs[R_RBP],
        .rsi = c->regs[R_RSI],
        .rdi = c->regs[R_RDI],
        .rip = c->rip,
        .rflags = x86_get_rflags(c),
    };

    memcpy(&r.r8, &c->regs[R_R8], 8 * sizeof(uint64_t));
    return kvm_ioctl(v->fd, KVM_SET_REGS, &r);
}

/* ---- System registers ---- */

static void get_sregs(X86CPU *c, KvmVcpu *v)
{
    struct kvm_sregs s;

    if (kvm_ioctl(v->fd, KVM_GET_SREGS, &s) < 0) {
        return;
    }
    seg_from_kvm(&c->seg[R_CS], &s.cs);
    seg_from_kvm(&c->seg[R_DS], &s.ds);
    seg_from_kvm(&c->seg[R_ES], &s.es);
    seg_from_kvm(&c->seg[R_FS], &s.fs);
    seg_from_kvm(&c->seg[R_GS], &s.gs);
    seg_from_kvm(&c->seg[R_SS], &s.ss);
    seg_from_kvm(&c->tr, &s.tr);
    seg_from_kvm(&c->ldt, &s.ldt);
    c->gdt = (TableReg){ s.gdt.base, s.gdt.limit };
    c->idt = (TableReg){ s.idt.base, s.idt.limit };
    c->cr0 = s.cr0;
    c->cr2 = s.cr2;
    c->cr3 = s.cr3;
    c->cr4 = s.cr4;
    c->efer = s.efer;
    if (!(c->cr0 & CR0_PE)) {
        c->cpl = 0;
    } else {
        c->cpl = c->rflags & FL_VM ? 3 : (uint8_t)SEG_DPL(c->seg[R_SS].attr);
    }
}

static int put_sregs(CPUState *cpu, KvmPutLevel level)
{
    X86CPU *c = x86_cpu(cpu);
    KvmVcpu *v = kvm_vcpu(cpu);
    struct kvm_sregs s;
    int r = kvm_ioctl(v->fd, KVM_GET_SREGS, &s);

    if (r < 0) {
        return r;
    }
    seg_to_kvm(&s.cs, &c->seg[R_CS]);
    seg_to_kvm(&s.ds, &c->seg[R_DS]);
    seg_to_kvm(&s.es, &c->seg[R_ES]);
    seg_to_kvm(&s.fs, &c->seg[R_FS]);
    seg_to_kvm(&s.gs, &c->seg[R_GS]);
    seg_to_kvm(&s.ss, &c->seg[R_SS]);
    seg_to_kvm(&s.tr, &c->tr);
    seg_to_kvm(&s.ldt, &c->ldt);
    s.gdt.base = c->gdt.base;
    s.gdt.limit = c->gdt.limit;
    s.idt.base = c->idt.base;
    s.idt.limit = c->idt.limit;
    s.cr0 = c->cr0;
    s.cr2 = c->cr2;
    s.cr3 = c->cr3;
    s.cr4 = c->cr4;
    s.efer = c->efer;
    if (level != KVM_PUT_RUNTIME) { /* otherwise as the kernel has them */
        memset(s.interrupt_bitmap, 0, sizeof(s.interrupt_bitmap));
        s.cr8 = 0;
    }
    if (level == KVM_PUT_RESET || !kvm_lapic_in_kernel()) {
        s.apic_base = kvm_lapic_in_kernel() || !irqchip || !irqchip->base_get || !cpu->irqchip
                          ? APIC_BASE_DEFAULT | APIC_BASE_ENABLE | (cpu->index ? 0 : APIC_BASE_BSP)
                          : irqchip->base_get(cpu);
    }
    return kvm_ioctl(v->fd, KVM_SET_SREGS, &s);
}

/* ---- x87, SSE, AVX, PKRU ---- */

static void get_xsave(X86CPU *c, KvmVcpu *v)
{
    const uint8_t *area = v->xsave;
    uint32_t offset, size;

    if (kvm_ioctl(v->fd, kvm.xsave_size > sizeof(struct kvm_xsave) ? KVM_GET_XSAVE2 : KVM_GET_XSAVE,
                  v->xsave) < 0) {
        return;
    }
    memcpy(&c->x87, area, offsetof(X87State, unused));
    c->mxcsr = c->x87.mxcsr;
    for (unsigned i = 0; i < 16; i++) {
        memcpy(c->ymm[i], area + offsetof(X87State, unused) + 16 * i, 16);
        memset(c->ymm[i] + 16, 0, 16);
    }
    if (x86_xsave_component(c, 2, &offset, &size)) {
        for (unsigned i = 0; i < 16; i++) {
            memcpy(c->ymm[i] + 16, area + offset + 16 * i, 16);
        }
    }
    if (x86_xsave_component(c, 9, &offset, &size)) {
        memcpy(&c->pkru, area + offset, sizeof(c->pkru));
    }
}

static int put_xsave(X86CPU *c, KvmVcpu *v, KvmPutLevel level)
{
    uint8_t *area = v->xsave;
    uint64_t in_use = XSTATE_X87 | XSTATE_SSE, header;
    uint32_t offset, size;

    if (level == KVM_PUT_RESET) {
        memset(area, 0, kvm.xsave_size);
    }
    c->x87.mxcsr = c->mxcsr;
    memcpy(area, &c->x87, offsetof(X87State, unused));
    for (unsigned i = 0; i < 16; i++) {
        memcpy(area + offsetof(X87State, unused) + 16 * i, c->ymm[i], 16);
    }
    if (x86_xsave_component(c, 2, &offset, &size)) {
        in_use |= XSTATE_AVX;
        for (unsigned i = 0; i < 16; i++) {
            memcpy(area + offset + 16 * i, c->ymm[i] + 16, 16);
        }
    }
    if (x86_xsave_component(c, 9, &offset, &size)) {
        in_use |= XSTATE_PKRU;
        memcpy(area + offset, &c->pkru, sizeof(c->pkru));
    }
    memcpy(&header, area + XSAVE_HEADER_OFFSET, sizeof(header));
    header |= in_use;
    memcpy(area + XSAVE_HEADER_OFFSET, &header, sizeof(header));
    return kvm_ioctl(v->fd, KVM_SET_XSAVE, area);
}

static void get_xcrs(X86CPU *c, KvmVcpu *v)
{
    struct kvm_xcrs x = { 0 };

    if (kvm.has_xcrs && kvm_ioctl(v->fd, KVM_GET_XCRS, &x) == 0) {
        for (unsigned i = 0; i < MIN(x.nr_xcrs, KVM_MAX_XCRS); i++) {
            if (x.xcrs[i].xcr == 0) {
                c->xcr0 = x.xcrs[i].value;
            }
        }
    }
}

static int put_xcrs(const X86CPU *c, KvmVcpu *v)
{
    struct kvm_xcrs x = { .nr_xcrs = 1, .xcrs = { { .xcr = 0, .value = c->xcr0 } } };

    if (!kvm.has_xcrs || !x86_has(c, FEAT_1_ECX, CPUID_1_ECX_XSAVE)) {
        return 0;
    }
    return kvm_ioctl(v->fd, KVM_SET_XCRS, &x);
}

/* ---- Debug registers ---- */

static void get_debugregs(X86CPU *c, KvmVcpu *v)
{
    struct kvm_debugregs d;

    if (kvm.has_debugregs && kvm_ioctl(v->fd, KVM_GET_DEBUGREGS, &d) == 0) {
        memcpy(c->dr, d.db, sizeof(d.db));
        c->dr[6] = d.dr6;
        c->dr[7] = d.dr7;
    }
}

static int put_debugregs(const X86CPU *c, KvmVcpu *v)
{
    struct kvm_debugregs d = { .dr6 = c->dr[6], .dr7 = c->dr[7] };

    memcpy(d.db, c->dr, sizeof(d.db));
    return kvm.has_debugregs ? kvm_ioctl(v->fd, KVM_SET_DEBUGREGS, &d) : 0;
}

/* ---- Events under way, MP state ---- */

static void get_events(X86CPU *c, KvmVcpu *v)
{
    if (kvm_ioctl(v->fd, KVM_GET_VCPU_EVENTS, &v->events) < 0) {
        return;
    }
    c->nmi_blocked = v->events.nmi.masked;
    c->nmi_pending = v->events.nmi.pending;
    c->int_shadow = v->events.interrupt.shadow != 0;
    c->movss_shadow = v->events.interrupt.shadow & KVM_X86_SHADOW_INT_MOV_SS;
    if (v->events.flags & KVM_VCPUEVENT_VALID_SMM) {
        c->smm = v->events.smi.smm;
    }
}

static int put_events(const X86CPU *c, KvmVcpu *v, KvmPutLevel level)
{
    struct kvm_vcpu_events *e = &v->events;

    if (level != KVM_PUT_RUNTIME) {
        memset(e, 0, sizeof(*e));
        e->flags = KVM_VCPUEVENT_VALID_NMI_PENDING | KVM_VCPUEVENT_VALID_SIPI_VECTOR;
        if (kvm.has_smi && level == KVM_PUT_RESET) {
            e->flags |= KVM_VCPUEVENT_VALID_SMM;
        }
    } else {
        e->flags = 0; /* an NMI that came meanwhile stays */
    }
    e->flags |= KVM_VCPUEVENT_VALID_SHADOW;
    e->nmi.masked = c->nmi_blocked;
    e->interrupt.shadow = c->movss_shadow ? KVM_X86_SHADOW_INT_MOV_SS
                          : c->int_shadow ? KVM_X86_SHADOW_INT_STI
                                          : 0;
    return kvm_ioctl(v->fd, KVM_SET_VCPU_EVENTS, e);
}

static void get_mp_state(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);
    struct kvm_mp_state mp;

    if (!kvm_lapic_in_kernel() || kvm_ioctl(v->fd, KVM_GET_MP_STATE, &mp) < 0) {
        return;
    }
    v->mp_state = mp.mp_state;
    x86_cpu(cpu)->wait_for_sipi = mp.mp_state == KVM_MP_STATE_UNINITIALIZED ||
                                  mp.mp_state == KVM_MP_STATE_INIT_RECEIVED;
    atomic_store(&cpu->halted,
                 mp.mp_state == KVM_MP_STATE_HALTED || x86_cpu(cpu)->wait_for_sipi);
}

static int put_mp_state(CPUState *cpu)
{
    struct kvm_mp_state mp = { .mp_state = KVM_MP_STATE_RUNNABLE };

    if (kvm_lapic_in_kernel() && x86_cpu(cpu)->wait_for_sipi) {
        mp.mp_state = KVM_MP_STATE_UNINITIALIZED;
    }
    kvm_vcpu(cpu)->mp_state = mp.mp_state;
    return kvm_ioctl(kvm_vcpu(cpu)->fd, KVM_SET_MP_STATE, &mp);
}

/* ---- All of it ---- */

void kvm_regs_get(CPUState *cpu)
{
    X86CPU *c = x86_cpu(cpu);
    KvmVcpu *v = kvm_vcpu(cpu);

    get_regs(c, v);
    get_sregs(c, v);
    get_xsave(c, v);
    get_xcrs(c, v);
    get_debugregs(c, v);
    get_events(c, v);
    get_mp_state(cpu);
    kvm_get_msrs(cpu);
}

static bool failed(CPUState *cpu, const char *what, int r, Error **errp)
{
    if (r < 0) {
        error_setg_errno(errp, -r, "KVM: vCPU %u: the kernel refuses its %s", cpu->index, what);
        return true;
    }
    return false;
}

/* System registers come first: the rest is judged by them (EFER, the APIC's mode). */
bool kvm_put_state(CPUState *cpu, KvmPutLevel level, Error **errp)
{
    X86CPU *c = x86_cpu(cpu);
    KvmVcpu *v = kvm_vcpu(cpu);

    if (failed(cpu, "system registers", put_sregs(cpu, level), errp) ||
        failed(cpu, "general registers", put_regs(c, v), errp) ||
        failed(cpu, "FPU state", put_xsave(c, v, level), errp) ||
        failed(cpu, "XCR0", put_xcrs(c, v), errp)) {
        return false;
    }
    if (level == KVM_PUT_RESET && kvm_lapic_in_kernel() &&
        failed(cpu, "local APIC", kvm_ioctl(v->fd, KVM_SET_LAPIC, &v->lapic_reset), errp)) {
        return false;
    }
    if (failed(cpu, "MSRs", kvm_put_msrs(cpu, level), errp) ||
        failed(cpu, "events", put_events(c, v, level), errp) ||
        failed(cpu, "debug registers", put_debugregs(c, v), errp)) {
        return false;
    }
    /* While running the kernel decides; a reset or INIT puts the vCPU to its start. */
    return level == KVM_PUT_RUNTIME || !failed(cpu, "MP state", put_mp_state(cpu), errp);
}

void kvm_regs_put(CPUState *cpu)
{
    kvm_put_state(cpu, KVM_PUT_RUNTIME, NULL);
}
