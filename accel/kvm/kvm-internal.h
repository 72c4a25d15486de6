/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM: what the files of this room share. The kernel's interface is documented in Linux'
 * Documentation/virt/kvm/api.rst; names in capitals are its own.
 *
 * kvm.c: start-up and the table of hooks. vcpu.c: one step of a vCPU. regs.c, msrs.c: state to and
 * from the kernel. cpuid.c: what the kernel offers. slots.c: guest memory. irqchip.c: interrupt
 * chips in the kernel.
 */
#ifndef ACCEL_KVM_INTERNAL_H
#define ACCEL_KVM_INTERNAL_H

#include <linux/kvm.h>
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "memory/memory.h"
#include "target/i386/cpuid.h"

typedef struct KvmVm {
    int fd, vm_fd;
    bool ready;
    KernelIrqchip irqchip; /* as created; decides who owns PIC, I/O APIC and local APICs */
    size_t run_size;       /* of the shared page block of a vCPU */
    size_t xsave_size;
    unsigned coalesced_page; /* offset of the ring in pages, 0: none */
    unsigned max_slots;
    bool has_debugregs, has_xcrs, has_kvmclock_ctrl, has_user_nmi, has_smi, has_adjust_clock;
    bool pmu_decided; /* with the first vCPU */
    bool clock_stopped;
    struct kvm_clock_data clock; /* while the machine is stopped */
    struct kvm_cpuid2 *cpuid;    /* KVM_GET_SUPPORTED_CPUID */
    struct kvm_msr_list *msrs;   /* KVM_GET_MSR_INDEX_LIST */
} KvmVm;

extern KvmVm kvm;

/* How much of the state goes to the kernel: what others may have changed while the vCPU was out of
 * guest code; or everything, after a reset. */
typedef enum KvmPutLevel { KVM_PUT_RUNTIME, KVM_PUT_INIT, KVM_PUT_RESET } KvmPutLevel;

typedef struct KvmVcpu {
    struct KvmVcpu *next; /* among the retired */
    uint32_t apic_id;
    int fd;
    struct kvm_run *run;
    /* The thread is in, or about to enter, KVM_RUN: a kick must be a signal. */
    atomic_bool in_run;
    uint64_t tsc, tsc_deadline;
    uint32_t mp_state;
    struct kvm_vcpu_events events;
    struct kvm_lapic_state lapic_reset; /* as the kernel made it */
    void *xsave;              /* kvm.xsave_size bytes, aligned: parts X86CPU does not know stay */
} KvmVcpu;

static inline KvmVcpu *kvm_vcpu(CPUState *cpu)
{
    /* Others may be about to kick a vCPU that ends. */
    return __atomic_load_n((KvmVcpu **)&cpu->accel_data, __ATOMIC_ACQUIRE);
}
static inline bool kvm_lapic_in_kernel(void)
{
    return kvm.irqchip != KERNEL_IRQCHIP_OFF;
}

/* ioctl(2), again after EINTR; -errno on failure. RT_SAFE (the kernel decides how long). */
int kvm_ioctl(int fd, unsigned long request, void *arg);
/* KVM_CHECK_EXTENSION on the VM or, before there is one, on /dev/kvm. 0: no. */
int kvm_check_cap(unsigned cap);
/* KVM_ENABLE_CAP with args[0] and args[1]. 0 or -errno. */
int kvm_enable_cap(unsigned cap, uint64_t arg0, uint64_t arg1);

/* ---- vcpu.c ---- */
bool kvm_vcpu_init(CPUState *cpu, Error **errp);
void kvm_vcpu_fini(CPUState *cpu);
ExitReason kvm_vcpu_run(CPUState *cpu);
void kvm_vcpu_kick(CPUState *cpu);
void kvm_vcpu_reset(CPUState *cpu);
int64_t kvm_vcpu_deadline(CPUState *cpu);

/* ---- regs.c, msrs.c: VCPU thread, or vCPU parked ---- */
void kvm_regs_get(CPUState *cpu);
void kvm_regs_put(CPUState *cpu);
/* False + errp if the kernel refuses something essential. */
bool kvm_put_state(CPUState *cpu, KvmPutLevel level, Error **errp);
void kvm_get_msrs(CPUState *cpu);
int kvm_put_msrs(CPUState *cpu, KvmPutLevel level);
bool kvm_msrs_init(Error **errp);

/* ---- cpuid.c ---- */
/* Start-up. Reads what the kernel offers and makes it -cpu's limits. */
bool kvm_cpuid_init(Error **errp);
/* Before the first vCPU is made. */
void kvm_decide_pmu(const X86CPU *c);
/* KVM_SET_CPUID2 for this vCPU. */
bool kvm_cpuid_set(CPUState *cpu, Error **errp);

/* ---- slots.c ---- */
bool kvm_slots_init(Error **errp);
/*
 * VCPU thread, around KVM_RUN. Enter returns false if slots are being changed: then the thread has
 * waited until they are done and asks again.
 */
bool kvm_run_enter(KvmVcpu *v);
void kvm_run_leave(KvmVcpu *v);
/* RT_SAFE. Performs writes the kernel collected in the ring of coalesced regions. */
void kvm_flush_coalesced(void);

/* ---- irqchip.c ---- */
bool kvm_irqchip_create(Error **errp);
/* Machine reset: PIC, I/O APIC and PIT of the kernel as they were made. vCPUs parked. */
void kvm_irqchip_reset(void);
/* Split chips: is the user-space PIC's INT asserted; acknowledge; the local APIC's EOI. */
bool kvm_split_pic_level(void);
int kvm_split_pic_ack(void);
void kvm_split_eoi(uint8_t vector);

#endif
