/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM: making a vCPU, and one step of it: what goes in before KVM_RUN and what came out of it. */
#include "accel/kvm/kvm-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "qemu/runstate.h"
#include "realtime/latency.h"

/* ---- Making and ending ---- */

/*
 * The kernel cannot remove a vCPU, and others may be about to kick one that ends. So what belongs
 * to it is kept for the next vCPU with its APIC id.
 */
static _Atomic(KvmVcpu *) retired;

static void retire(KvmVcpu *v)
{
    v->next = atomic_load(&retired);
    while (!atomic_compare_exchange_weak(&retired, &v->next, v)) {
    }
}

static KvmVcpu *take_retired(uint32_t apic_id)
{
    KvmVcpu *all = atomic_exchange(&retired, NULL), *found = NULL;

    while (all) {
        KvmVcpu *v = all;

        all = v->next;
        if (!found && v->apic_id == apic_id) {
            found = v;
        } else {
            retire(v);
        }
    }
    return found;
}

static bool create_fd(CPUState *cpu, KvmVcpu *v, Error **errp)
{
    kvm_decide_pmu(x86_cpu(cpu));
    /* The kernel's local APIC takes the vCPU's number for its id. */
    v->fd = kvm_ioctl(kvm.vm_fd, KVM_CREATE_VCPU, (void *)(uintptr_t)v->apic_id);
    if (v->fd < 0) {
        error_setg_errno(errp, -v->fd, "KVM: creating vCPU %u (APIC id %u)", cpu->index, v->apic_id);
        return false;
    }
    v->run = mmap(NULL, kvm.run_size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
    if (v->run == MAP_FAILED) {
        error_setg_errno(errp, errno, "KVM: mapping the run page of vCPU %u", cpu->index);
        close(v->fd);
        return false;
    }
    if (kvm_lapic_in_kernel()) {
        kvm_ioctl(v->fd, KVM_GET_LAPIC, &v->lapic_reset);
    }
    return true;
}

/* A new vCPU with its kernel side, or one that was retired. */
static KvmVcpu *make_vcpu(CPUState *cpu, Error **errp)
{
    uint32_t apic_id = x86_cpu(cpu)->apic_id;
    KvmVcpu *v = take_retired(apic_id);

    if (v) {
        return v;
    }
    v = aligned_alloc(64, ROUND_UP(sizeof(*v), 64));
    if (v) {
        memset(v, 0, sizeof(*v));
        v->apic_id = apic_id;
        v->xsave = aligned_alloc(64, ROUND_UP(kvm.xsave_size, 64));
        if (v->xsave) {
            memset(v->xsave, 0, kvm.xsave_size);
            if (create_fd(cpu, v, errp)) {
                return v;
            }
            free(v->xsave);
            free(v);
            return NULL;
        }
    }
    free(v);
    error_setg(errp, "KVM: vCPU %u: out of memory", cpu->index);
    return NULL;
}

/* tsc-frequency=: with TSC scaling anything, without it the host's own rate within 250 ppm. */
static bool set_tsc_khz(X86CPU *c, KvmVcpu *v, Error **errp)
{
    uint32_t want = c->model->tsc_khz;
    int now, r;

    if (want) {
        r = kvm_ioctl(v->fd, KVM_SET_TSC_KHZ, (void *)(uintptr_t)want);
        now = kvm_ioctl(v->fd, KVM_GET_TSC_KHZ, NULL);
        if (r < 0 && (now <= 0 || llabs((long long)now - want) * 4000 > want)) {
            error_setg(errp, "-cpu: tsc-frequency=%llu: this host cannot scale the TSC, whose "
                       "frequency is %lld Hz", want * 1000ull, now * 1000ll);
            return false;
        }
    }
    now = kvm_ioctl(v->fd, KVM_GET_TSC_KHZ, NULL);
    if (now > 0) {
        c->tsc_khz = (uint32_t)now;
    }
    return true;
}

/* Machine check banks, as many as both sides have. */
static void setup_mce(X86CPU *c, KvmVcpu *v)
{
    int banks = kvm_check_cap(KVM_CAP_MCE);
    uint64_t supported = 0, cap;

    if (banks <= 0 || kvm_ioctl(kvm.fd, KVM_X86_GET_MCE_CAP_SUPPORTED, &supported) < 0) {
        c->mcg_cap = 0;
        return;
    }
    cap = (c->mcg_cap & supported & ~0xffull) | MIN(c->mcg_cap & 0xff, (uint64_t)banks);
    c->mcg_cap = kvm_ioctl(v->fd, KVM_X86_SETUP_MCE, &cap) == 0 ? cap : 0;
}

bool kvm_vcpu_init(CPUState *cpu, Error **errp)
{
    KvmVcpu *v = make_vcpu(cpu, errp);
    X86CPU *c = x86_cpu(cpu);

    if (!v) {
        return false;
    }
    __atomic_store_n(&cpu->accel_data, v, __ATOMIC_RELEASE);
    if (!set_tsc_khz(c, v, errp) || !kvm_cpuid_set(cpu, errp)) {
        kvm_vcpu_fini(cpu);
        return false;
    }
    setup_mce(c, v);
    if (!kvm_put_state(cpu, KVM_PUT_RESET, errp)) {
        kvm_vcpu_fini(cpu);
        return false;
    }
    return true;
}

void kvm_vcpu_fini(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);

    __atomic_store_n(&cpu->accel_data, NULL, __ATOMIC_RELEASE);
    retire(v);
}

void kvm_vcpu_reset(CPUState *cpu)
{
    Error *err = NULL;

    if (cpu->index == 0) {
        kvm_irqchip_reset(); /* once a machine reset: every vCPU is parked */
    }
    if (!kvm_put_state(cpu, KVM_PUT_RESET, &err)) {
        rtcheck_allow_begin();
        error_report_err(err);
        rtcheck_allow_end();
    }
}

void kvm_vcpu_kick(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);

    if (!v) {
        return; /* not yet started, or ended */
    }
    /* The kernel looks at immediate_exit when KVM_RUN begins; in_run was set before (both are
     * sequentially consistent), so either it sees the flag or we see in_run and interrupt it. */
    __atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    if (current_cpu != cpu && atomic_load(&v->in_run)) {
        qemu_thread_kick(&cpu->thread, SIG_IPI);
    }
}

int64_t kvm_vcpu_deadline(CPUState *cpu)
{
    return kvm_lapic_in_kernel() || !irqchip->timer_deadline ? INT64_MAX
                                                             : irqchip->timer_deadline(cpu);
}

/* ---- Requests ---- */

static void take_init(CPUState *cpu)
{
    kvm_regs_get(cpu);
    x86_cpu_reset(x86_cpu(cpu), true);
    if (irqchip->cpu_reset) {
        irqchip->cpu_reset(cpu, true);
    }
    kvm_put_state(cpu, KVM_PUT_INIT, NULL);
}

static void take_sipi(CPUState *cpu)
{
    X86CPU *c = x86_cpu(cpu);

    if (!c->wait_for_sipi) {
        return; /* SDM 3A 9.4.4.1: only a CPU that waits for it takes it */
    }
    x86_cpu_sipi(c, atomic_load(&cpu->sipi_vector));
    kvm_put_state(cpu, KVM_PUT_INIT, NULL);
}

/* Bits of the event word that must reach the kernel. A kernel local APIC makes INIT, SIPI and
 * timer interrupts by itself. */
static void take_requests(CPUState *cpu, uint32_t bits)
{
    KvmVcpu *v = kvm_vcpu(cpu);

    if (bits & CPU_REQ_NMI && kvm.has_user_nmi) {
        kvm_ioctl(v->fd, KVM_NMI, NULL);
        if (!x86_cpu(cpu)->wait_for_sipi) {
            atomic_store(&cpu->halted, false);
        }
    }
    if (bits & CPU_REQ_SMI && kvm.has_smi) {
        kvm_ioctl(v->fd, KVM_SMI, NULL);
    }
    if (kvm_lapic_in_kernel()) {
        return;
    }
    if (bits & CPU_REQ_INIT) {
        take_init(cpu);
    }
    if (bits & CPU_REQ_SIPI) {
        take_sipi(cpu);
    }
    if (bits & CPU_REQ_TIMER && irqchip->timer_check) {
        irqchip->timer_check(cpu);
    }
}

/* ---- Before KVM_RUN ---- */

/* Gives the kernel a vector from user space, or asks for an exit when one could be taken. */
static void inject_vector(CPUState *cpu, bool (*pending)(CPUState *cpu), int (*ack)(CPUState *cpu))
{
    KvmVcpu *v = kvm_vcpu(cpu);
    struct kvm_interrupt irq;
    int vector;

    if (v->run->ready_for_interrupt_injection && pending(cpu)) {
        vector = ack(cpu);
        if (vector >= 0) {
            irq.irq = (uint32_t)vector;
            kvm_ioctl(v->fd, KVM_INTERRUPT, &irq);
            /* Known again after the next exit; until then one vector is all the kernel takes. */
            v->run->ready_for_interrupt_injection = 0;
        }
    }
    v->run->request_interrupt_window = pending(cpu);
}

static bool split_pending(CPUState *cpu)
{
    return kvm_split_pic_level();
}

static int split_ack(CPUState *cpu)
{
    return kvm_split_pic_ack();
}

static void before_run(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);

    if (kvm.irqchip == KERNEL_IRQCHIP_OFF) {
        v->run->cr8 = irqchip->tpr_get(cpu);
        inject_vector(cpu, irqchip->cpu_pending, irqchip->cpu_ack);
    } else if (kvm.irqchip == KERNEL_IRQCHIP_SPLIT && cpu->index == 0) {
        inject_vector(cpu, split_pending, split_ack);
    }
}

/* With the local APIC in user space: may a halted vCPU go on? */
static bool can_leave_halt(CPUState *cpu)
{
    return !x86_cpu(cpu)->wait_for_sipi && kvm_vcpu(cpu)->run->if_flag && irqchip->cpu_pending(cpu);
}

/* ---- After KVM_RUN ---- */

static void after_run(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);

    if (kvm.irqchip == KERNEL_IRQCHIP_OFF) {
        irqchip->tpr_set(cpu, (uint8_t)v->run->cr8);
        if (v->run->apic_base != irqchip->base_get(cpu)) {
            irqchip->base_set(cpu, v->run->apic_base);
        }
    }
    if (kvm.coalesced_page) {
        kvm_flush_coalesced();
    }
}

static void exit_io(struct kvm_run *run)
{
    uint8_t *data = (uint8_t *)run + run->io.data_offset;
    unsigned size = run->io.size;

    for (uint32_t i = 0; i < run->io.count; i++, data += size) {
        uint32_t v = 0;

        if (run->io.direction == KVM_EXIT_IO_OUT) {
            memcpy(&v, data, size);
            address_space_store(&address_space_io, run->io.port, v, size);
        } else {
            v = (uint32_t)address_space_load(&address_space_io, run->io.port, size);
            memcpy(data, &v, size);
        }
    }
}

static void exit_mmio(CPUState *cpu, struct kvm_run *run)
{
    hwaddr addr = run->mmio.phys_addr;
    unsigned len = run->mmio.len;
    uint64_t v = 0;

    if (!kvm_lapic_in_kernel() && irqchip->mmio_read && len == 4 &&
        ((addr ^ irqchip->base_get(cpu)) & x86_phys_mask(x86_cpu(cpu)) & TARGET_PAGE_MASK) == 0) {
        uint32_t off = (uint32_t)(addr & ~TARGET_PAGE_MASK), w;

        if (run->mmio.is_write) {
            memcpy(&w, run->mmio.data, 4);
            irqchip->mmio_write(cpu, off, w);
        } else {
            w = irqchip->mmio_read(cpu, off);
            memcpy(run->mmio.data, &w, 4);
        }
    } else if (len & (len - 1)) { /* a piece of an access that crossed a page */
        if (run->mmio.is_write) {
            address_space_write(&address_space_memory, addr, run->mmio.data, len);
        } else {
            address_space_read(&address_space_memory, addr, run->mmio.data, len);
        }
    } else if (run->mmio.is_write) {
        memcpy(&v, run->mmio.data, len);
        address_space_store(&address_space_memory, addr, v, len);
    } else {
        v = address_space_load(&address_space_memory, addr, len);
        memcpy(run->mmio.data, &v, len);
    }
}

/* The kernel gave up on this vCPU. The machine pauses, so this prints once until it is resumed. */
static ExitReason exit_internal(CPUState *cpu, const char *what, uint64_t detail)
{
    X86CPU *c = x86_cpu(cpu);
    const struct kvm_run *run = kvm_vcpu(cpu)->run;
    char insn[3 * 15 + 1] = "";

    rtcheck_allow_begin();
    kvm_regs_get(cpu);
    if (run->exit_reason == KVM_EXIT_INTERNAL_ERROR &&
        run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION && run->internal.ndata >= 4 &&
        (run->emulation_failure.flags & KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES)) {
        unsigned n = MIN(run->emulation_failure.insn_size, 15u);

        for (unsigned i = 0; i < n; i++) {
            snprintf(insn + 3 * i, 4, " %02x", run->emulation_failure.insn_bytes[i]);
        }
    }
    error_report("KVM: vCPU %u: %s %#llx at CS:RIP %#x:%#llx%s%s; the machine is paused", cpu->index,
                 what, (unsigned long long)detail, c->seg[R_CS].selector,
                 (unsigned long long)c->rip, *insn ? ", instruction" : "", insn);
    rtcheck_allow_end();
    return EXIT_INTERNAL;
}

static ExitReason exit_system_event(CPUState *cpu, const struct kvm_run *run)
{
    switch (run->system_event.type) {
    case KVM_SYSTEM_EVENT_SHUTDOWN:
        qemu_system_shutdown_request(SHUTDOWN_CAUSE_GUEST_SHUTDOWN);
        return EXIT_REQUEST;
    case KVM_SYSTEM_EVENT_RESET:
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        return EXIT_REQUEST;
    case KVM_SYSTEM_EVENT_CRASH:
        qemu_system_shutdown_request(SHUTDOWN_CAUSE_GUEST_PANIC);
        return EXIT_REQUEST;
    default:
        return exit_internal(cpu, "unknown system event", run->system_event.type);
    }
}

/* EXIT_REASON_COUNT: nothing that cpus.c must see, run on. */
static ExitReason handle_exit(CPUState *cpu)
{
    struct kvm_run *run = kvm_vcpu(cpu)->run;

    switch (run->exit_reason) {
    case KVM_EXIT_IO:
        exit_io(run);
        return EXIT_REASON_COUNT;
    case KVM_EXIT_MMIO:
        exit_mmio(cpu, run);
        return EXIT_REASON_COUNT;
    case KVM_EXIT_IRQ_WINDOW_OPEN:
    case KVM_EXIT_SET_TPR:
    case KVM_EXIT_X86_BUS_LOCK:
        return EXIT_REASON_COUNT;
    case KVM_EXIT_IOAPIC_EOI:
        kvm_split_eoi(run->eoi.vector);
        return EXIT_REASON_COUNT;
    case KVM_EXIT_INTR:
        return EXIT_REQUEST;
    case KVM_EXIT_HLT:
        atomic_store(&cpu->halted, true);
        return can_leave_halt(cpu) ? EXIT_REQUEST : EXIT_HALT;
    case KVM_EXIT_SHUTDOWN:
        return EXIT_SHUTDOWN;
    case KVM_EXIT_DEBUG:
        return EXIT_DEBUG;
    case KVM_EXIT_SYSTEM_EVENT:
        return exit_system_event(cpu, run);
    case KVM_EXIT_FAIL_ENTRY:
        return exit_internal(cpu, "entry failed, hardware reason",
                             run->fail_entry.hardware_entry_failure_reason);
    case KVM_EXIT_INTERNAL_ERROR:
        return exit_internal(cpu,
                             run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION
                                 ? "cannot emulate an instruction, internal error"
                                 : "internal error",
                             run->internal.suberror);
    default:
        return exit_internal(cpu, "unknown exit reason", run->exit_reason);
    }
}

/* ---- One step ---- */

static LatencyKind exit_kind(uint32_t reason)
{
    switch (reason) {
    case KVM_EXIT_IO:
        return LATENCY_EXIT_IO;
    case KVM_EXIT_MMIO:
        return LATENCY_EXIT_MMIO;
    case KVM_EXIT_HLT:
        return LATENCY_EXIT_HALT;
    case KVM_EXIT_INTR:
        return LATENCY_EXIT_REQUEST;
    case KVM_EXIT_IRQ_WINDOW_OPEN:
    case KVM_EXIT_IOAPIC_EOI:
    case KVM_EXIT_SET_TPR:
        return LATENCY_EXIT_IRQ_WINDOW;
    default:
        return LATENCY_EXIT_OTHER;
    }
}

ExitReason kvm_vcpu_run(CPUState *cpu)
{
    KvmVcpu *v = kvm_vcpu(cpu);
    ExitReason reason;
    uint32_t bits;
    int r;

    /* First the flags, then the bits: a producer sets them in the other order. */
    __atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
    atomic_store(&cpu->exit_request, 0);
    bits = event_word_take(&cpu->event);
    if (bits) {
        take_requests(cpu, bits);
        if (bits & CPU_REQ_EXIT) {
            return EXIT_REQUEST;
        }
    }
    if (!kvm_lapic_in_kernel() && atomic_load(&cpu->halted)) {
        if (!can_leave_halt(cpu)) {
            return EXIT_HALT;
        }
        atomic_store(&cpu->halted, false);
    }
    for (;;) {
        if (atomic_load(&cpu->exit_request)) {
            /* Lets the kernel finish an instruction that came out for I/O: its result must not be
             * lost when the state is read (api.rst, KVM_RUN). */
            __atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
        } else {
            before_run(cpu);
        }
        if (!kvm_run_enter(v)) {
            continue;
        }
        latency_entry();
        r = ioctl(v->fd, KVM_RUN, NULL);
        r = r < 0 ? -errno : 0;
        latency_exit(r < 0 ? LATENCY_EXIT_REQUEST : exit_kind(v->run->exit_reason));
        kvm_run_leave(v);
        after_run(cpu);
        if (r == -EINTR || r == -EAGAIN) {
            return EXIT_REQUEST;
        }
        if (r < 0) {
            return exit_internal(cpu, "KVM_RUN failed, error", (uint64_t)-r);
        }
        reason = handle_exit(cpu);
        if (reason != EXIT_REASON_COUNT) {
            return reason;
        }
    }
}
