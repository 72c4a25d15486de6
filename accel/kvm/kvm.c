/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM: opening it, what it must be able to do, the virtual machine, and the table of hooks. */
#include "accel/kvm/kvm-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "qemu/host-limits.h"
#include "qemu/option.h"

KvmVm kvm = { .fd = -1, .vm_fd = -1 };

int kvm_ioctl(int fd, unsigned long request, void *arg)
{
    int r;

    do {
        r = ioctl(fd, request, arg);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

int kvm_check_cap(unsigned cap)
{
    int r = kvm_ioctl(kvm.vm_fd >= 0 ? kvm.vm_fd : kvm.fd, KVM_CHECK_EXTENSION,
                      (void *)(uintptr_t)cap);

    return r < 0 ? 0 : r;
}

int kvm_enable_cap(unsigned cap, uint64_t arg0, uint64_t arg1)
{
    struct kvm_enable_cap c = { .cap = cap, .args = { arg0, arg1 } };

    return kvm_ioctl(kvm.vm_fd, KVM_ENABLE_CAP, &c);
}

/* ---- Opening ---- */

static bool open_device(Error **errp)
{
    const char *cure = "";

    kvm.fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (kvm.fd >= 0) {
        return true;
    }
    if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
        cure = "; load the module kvm_intel or kvm_amd (the firmware must have virtualisation "
               "enabled), or use -accel tcg";
    } else if (errno == EACCES || errno == EPERM) {
        cure = "; join the group that owns it (usually kvm), or use -accel tcg";
    }
    error_setg(errp, "cannot use KVM: /dev/kvm: %s%s", g_strerror(errno), cure);
    return false;
}

static bool check_version(Error **errp)
{
    int version = kvm_ioctl(kvm.fd, KVM_GET_API_VERSION, NULL);

    if (version != KVM_API_VERSION) {
        error_setg(errp, "cannot use KVM: the kernel's interface is version %d, %d is needed",
                   version, KVM_API_VERSION);
        return false;
    }
    return true;
}

/* Everything Linux 4.11 and later has; older kernels are not worth special cases. */
static bool check_caps(Error **errp)
{
    static const struct {
        unsigned cap;
        const char *name;
    } needed[] = {
        { KVM_CAP_USER_MEMORY, "USER_MEMORY" },
        { KVM_CAP_SET_TSS_ADDR, "SET_TSS_ADDR" },
        { KVM_CAP_SET_IDENTITY_MAP_ADDR, "SET_IDENTITY_MAP_ADDR" },
        { KVM_CAP_EXT_CPUID, "EXT_CPUID" },
        { KVM_CAP_MP_STATE, "MP_STATE" },
        { KVM_CAP_DESTROY_MEMORY_REGION_WORKS, "DESTROY_MEMORY_REGION_WORKS" },
        { KVM_CAP_JOIN_MEMORY_REGIONS_WORKS, "JOIN_MEMORY_REGIONS_WORKS" },
        { KVM_CAP_NR_MEMSLOTS, "NR_MEMSLOTS" },
        { KVM_CAP_READONLY_MEM, "READONLY_MEM" },
        { KVM_CAP_VCPU_EVENTS, "VCPU_EVENTS" },
        { KVM_CAP_XSAVE, "XSAVE" },
        { KVM_CAP_IMMEDIATE_EXIT, "IMMEDIATE_EXIT" },
    };
    GString *missing = g_string_new(NULL);
    bool ok;

    for (unsigned i = 0; i < ARRAY_SIZE(needed); i++) {
        if (!kvm_check_cap(needed[i].cap)) {
            g_string_append_printf(missing, "%s%s", missing->len ? ", " : "", needed[i].name);
        }
    }
    ok = missing->len == 0;
    if (!ok) {
        error_setg(errp, "cannot use KVM: this kernel lacks %s (Linux 4.11 or later has all)",
                   missing->str);
    }
    g_string_free(missing, TRUE);
    return ok;
}

static bool create_vm(Error **errp)
{
    uint64_t identity_map = 0xfeffc000; /* one page, then three of a TSS; below the firmware */
    int r = kvm_ioctl(kvm.fd, KVM_CREATE_VM, NULL);

    if (r < 0) {
        error_setg_errno(errp, -r, "cannot use KVM: creating a virtual machine%s",
                         r == -EBUSY ? " (another hypervisor holds the processor's extensions)" : "");
        return false;
    }
    kvm.vm_fd = r;
    /* What VMX needs for real mode without unrestricted guest (api.rst, 4.36 and 4.41). */
    r = kvm_ioctl(kvm.vm_fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map);
    if (r == 0) {
        r = kvm_ioctl(kvm.vm_fd, KVM_SET_TSS_ADDR, (void *)(uintptr_t)(identity_map + 0x1000));
    }
    if (r < 0) {
        error_setg_errno(errp, -r, "cannot use KVM: placing its real-mode pages");
        return false;
    }
    return true;
}

static void read_caps(void)
{
    int size = kvm_ioctl(kvm.fd, KVM_GET_VCPU_MMAP_SIZE, NULL);
    int xsave2 = kvm_check_cap(KVM_CAP_XSAVE2);

    kvm.run_size = size > 0 ? (size_t)size : 0;
    kvm.xsave_size = MAX((size_t)MAX(xsave2, 0), sizeof(struct kvm_xsave));
    kvm.max_slots = (unsigned)kvm_check_cap(KVM_CAP_NR_MEMSLOTS);
    kvm.coalesced_page = (unsigned)kvm_check_cap(KVM_CAP_COALESCED_MMIO);
    kvm.has_debugregs = kvm_check_cap(KVM_CAP_DEBUGREGS);
    kvm.has_xcrs = kvm_check_cap(KVM_CAP_XCRS);
    kvm.has_kvmclock_ctrl = kvm_check_cap(KVM_CAP_KVMCLOCK_CTRL);
    kvm.has_user_nmi = kvm_check_cap(KVM_CAP_USER_NMI);
    kvm.has_smi = kvm_check_cap(KVM_CAP_X86_SMM);
    kvm.has_adjust_clock = kvm_check_cap(KVM_CAP_ADJUST_CLOCK);
}

/* -overcommit cpu-pm=on: HLT, MWAIT and PAUSE stay in the guest. A guest that was offered MWAIT on
 * a host where it exits would die of it, so what cannot be had is refused here. */
static bool apply_cpu_pm(Error **errp)
{
    uint64_t wanted = KVM_X86_DISABLE_EXITS_MWAIT | KVM_X86_DISABLE_EXITS_HLT |
                      KVM_X86_DISABLE_EXITS_PAUSE | KVM_X86_DISABLE_EXITS_CSTATE;
    uint64_t can = (uint64_t)kvm_check_cap(KVM_CAP_X86_DISABLE_EXITS);
    int r;

    if (!accel_cpu_pm) {
        return true;
    }
    if (!(can & KVM_X86_DISABLE_EXITS_HLT)) {
        error_setg(errp, "-overcommit cpu-pm=on: this kernel's KVM cannot leave HLT to the guest");
        return false;
    }
    r = kvm_enable_cap(KVM_CAP_X86_DISABLE_EXITS, can & wanted, 0);
    if (r < 0) {
        error_setg_errno(errp, -r, "-overcommit cpu-pm=on: KVM refuses to disable exits");
        return false;
    }
    return true;
}

/* ---- -accel kvm's properties ---- */

static bool parse_irqchip(const char *value, Error **errp)
{
    static const char *const names[] = {
        [KERNEL_IRQCHIP_OFF] = "off", [KERNEL_IRQCHIP_SPLIT] = "split", [KERNEL_IRQCHIP_ON] = "on"
    };

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(value, names[i])) {
            kernel_irqchip = (KernelIrqchip)i;
            return true;
        }
    }
    error_setg(errp, "-accel kvm: kernel-irqchip=%s: expected 'on', 'off' or 'split'", value);
    return false;
}

static bool parse_opts(struct QemuOpts *opts, uint64_t *shadow_mem, Error **errp)
{
    static const char *const valid[] = { "kernel-irqchip", "kvm-shadow-mem", "dirty-ring-size", NULL };
    const char *chip = qemu_opt_get(opts, "kernel-irqchip");
    uint64_t ring = 0;

    *shadow_mem = 0;
    qemu_opt_get(opts, "accel");
    if (chip && !parse_irqchip(chip, errp)) {
        return false;
    }
    if (!qemu_opt_read_size(opts, "kvm-shadow-mem", shadow_mem, errp) ||
        !qemu_opt_read_number(opts, "dirty-ring-size", &ring, errp)) {
        return false;
    }
    if (ring) {
        error_setg(errp, "-accel kvm: dirty-ring-size=%llu: only 0 (the dirty bitmap) is implemented",
                   (unsigned long long)ring);
        return false;
    }
    if (opts && !qemu_opts_check_used(opts, valid, errp)) {
        error_prepend(errp, "-accel kvm: ");
        return false;
    }
    return true;
}

static bool set_shadow_mem(uint64_t bytes, Error **errp)
{
    int r;

    if (!bytes) {
        return true;
    }
    r = kvm_ioctl(kvm.vm_fd, KVM_SET_NR_MMU_PAGES, (void *)(uintptr_t)(bytes >> TARGET_PAGE_BITS));
    if (r < 0) {
        error_setg_errno(errp, -r, "-accel kvm: kvm-shadow-mem=%llu", (unsigned long long)bytes);
        return false;
    }
    return true;
}

/* There are kernels that offer /dev/kvm all the same; flat guests of few instructions run on them. */
static void warn_interpreted(void)
{
    char *cpuinfo = NULL;

    g_file_get_contents("/proc/cpuinfo", &cpuinfo, NULL, NULL);
    if (!host_has_virtualisation(cpuinfo)) {
        warn_report("this host's /dev/kvm has no hardware virtualisation (no vmx or svm in /proc/cpuinfo): the "
                    "kernel interprets guest code, Linux guests do not boot; use -accel tcg");
    }
    g_free(cpuinfo);
}

static void close_all(void)
{
    if (kvm.vm_fd >= 0) {
        close(kvm.vm_fd);
    }
    if (kvm.fd >= 0) {
        close(kvm.fd);
    }
    g_free(kvm.cpuid);
    g_free(kvm.msrs);
    kvm = (KvmVm){ .fd = -1, .vm_fd = -1 };
}

static bool kvm_init(struct QemuOpts *opts, Error **errp)
{
    uint64_t shadow_mem;

    if (!parse_opts(opts, &shadow_mem, errp) || !open_device(errp)) {
        return false;
    }
    if (!check_version(errp) || !check_caps(errp) || !create_vm(errp)) {
        close_all();
        return false;
    }
    read_caps();
    /* The memory listener comes last: it cannot be taken back. */
    if (!set_shadow_mem(shadow_mem, errp) || !apply_cpu_pm(errp) || !kvm_irqchip_create(errp) ||
        !kvm_msrs_init(errp) || !kvm_cpuid_init(errp) || !kvm_slots_init(errp)) {
        close_all();
        return false;
    }
    kvm.ready = true;
    warn_interpreted();
    return true;
}

static bool kvm_available(void)
{
    return access("/dev/kvm", R_OK | W_OK) == 0;
}

/* ---- KVM clock ---- */

/* Tells the guest it was stopped, so that its watchdogs do not bark; fails without kvmclock. */
static void clock_ctrl_all(void)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);

        if (cpu && kvm_vcpu(cpu)) {
            kvm_ioctl(kvm_vcpu(cpu)->fd, KVM_KVMCLOCK_CTRL, NULL);
        }
    }
}

/* Main loop, vCPUs parked. The guest's kvmclock stands while the machine is stopped. */
static void kvm_run_state_change(bool running)
{
    if (!kvm.has_adjust_clock) {
        return;
    }
    if (!running) {
        kvm.clock_stopped = kvm_ioctl(kvm.vm_fd, KVM_GET_CLOCK, &kvm.clock) == 0;
        return;
    }
    if (!kvm.clock_stopped) {
        return;
    }
    kvm.clock = (struct kvm_clock_data){ .clock = kvm.clock.clock };
    kvm_ioctl(kvm.vm_fd, KVM_SET_CLOCK, &kvm.clock);
    kvm.clock_stopped = false;
    if (kvm.has_kvmclock_ctrl) {
        clock_ctrl_all();
    }
}

const AccelOps kvm_accel_ops = {
    .name = "kvm",
    .thread_name = "KVM",
    .init = kvm_init,
    .available = kvm_available,
    .vcpu_init = kvm_vcpu_init,
    .vcpu_fini = kvm_vcpu_fini,
    .vcpu_run = kvm_vcpu_run,
    .vcpu_kick = kvm_vcpu_kick,
    .vcpu_reset = kvm_vcpu_reset,
    .regs_get = kvm_regs_get,
    .regs_put = kvm_regs_put,
    .vcpu_deadline = kvm_vcpu_deadline,
    .run_state_change = kvm_run_state_change,
};
