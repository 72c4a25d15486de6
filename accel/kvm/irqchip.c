/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM: interrupt chips in the kernel. on: PIC pair, I/O APIC, local APICs and PIT; split: local
 * APICs only, the rest is the board's; off: nothing, and this file has little to do.
 */
#include "accel/kvm/kvm-internal.h"

#include <errno.h>
#include <string.h>

/* Enough for every GSI to reach PIC and I/O APIC. */
#define MAX_ROUTES (16 + 2 * IRQCHIP_GSIS)

typedef union RouteTable {
    struct kvm_irq_routing h;
    uint8_t room[sizeof(struct kvm_irq_routing) + MAX_ROUTES * sizeof(struct kvm_irq_routing_entry)];
} RouteTable;

/* The chips as the kernel made them: what a machine reset puts back. */
static struct {
    struct kvm_irqchip pic[2], ioapic;
    struct kvm_pit_state2 pit;
} pristine;

static const IrqChipParts *parts;
static atomic_bool pic_level;

/* Messages of the user-space I/O APIC's level-triggered pins as the kernel knows them. */
static struct {
    QemuMutex lock; /* guards all of this */
    bool valid[IRQCHIP_GSIS];
    uint64_t addr[IRQCHIP_GSIS];
    uint32_t data[IRQCHIP_GSIS];
} split;

/* ---- Raising ---- */

static void kernel_set_gsi(unsigned gsi, int level)
{
    struct kvm_irq_level l = { .irq = gsi, .level = level != 0 };

    kvm_ioctl(kvm.vm_fd, KVM_IRQ_LINE, &l);
}

static void kernel_send_msi(uint64_t addr, uint32_t data)
{
    struct kvm_msi m = {
        .address_lo = (uint32_t)addr,
        .address_hi = (uint32_t)(addr >> 32),
        .data = data,
    };

    kvm_ioctl(kvm.vm_fd, KVM_SIGNAL_MSI, &m);
}

static void split_set_gsi(unsigned gsi, int level)
{
    if (parts) {
        parts->set_gsi(gsi, level);
    }
}

static const IrqChipOps kernel_ops = {
    .name = "kvm",
    .set_gsi = kernel_set_gsi,
    .send_msi = kernel_send_msi,
};

static const IrqChipOps split_ops = {
    .name = "kvm-split",
    .set_gsi = split_set_gsi,
    .send_msi = kernel_send_msi,
};

/* ---- Routing ---- */

static void add_pin(RouteTable *t, unsigned gsi, unsigned chip, unsigned pin)
{
    t->h.entries[t->h.nr++] = (struct kvm_irq_routing_entry){
        .gsi = gsi,
        .type = KVM_IRQ_ROUTING_IRQCHIP,
        .u.irqchip = { .irqchip = chip, .pin = pin },
    };
}

/* GSI 0..15 reach the PICs; all reach the I/O APIC, where ISA line 0 is on pin 2 (as the MADT's
 * override says) and the cascade's GSI 2 has no pin. */
static int set_kernel_routes(void)
{
    RouteTable t;

    memset(&t, 0, sizeof(t));
    for (unsigned gsi = 0; gsi < IRQCHIP_GSIS; gsi++) {
        if (gsi < 16 && gsi != 2) {
            add_pin(&t, gsi, gsi < 8 ? KVM_IRQCHIP_PIC_MASTER : KVM_IRQCHIP_PIC_SLAVE, gsi & 7);
        }
        if (gsi != 2) {
            add_pin(&t, gsi, KVM_IRQCHIP_IOAPIC, gsi == 0 ? 2 : gsi);
        }
    }
    return kvm_ioctl(kvm.vm_fd, KVM_SET_GSI_ROUTING, &t);
}

static int set_split_routes_locked(void)
{
    RouteTable t;

    memset(&t, 0, sizeof(t));
    for (unsigned pin = 0; pin < IRQCHIP_GSIS; pin++) {
        if (split.valid[pin]) {
            t.h.entries[t.h.nr++] = (struct kvm_irq_routing_entry){
                .gsi = pin,
                .type = KVM_IRQ_ROUTING_MSI,
                .u.msi = { .address_lo = (uint32_t)split.addr[pin],
                           .address_hi = (uint32_t)(split.addr[pin] >> 32),
                           .data = split.data[pin] },
            };
        }
    }
    return kvm_ioctl(kvm.vm_fd, KVM_SET_GSI_ROUTING, &t);
}

/*
 * The kernel reports EOIs of vectors that a route below pin 24 names as level-triggered. A route
 * that is no longer true costs a needless exit at most, and changing routes is slow in the kernel:
 * so masked and edge-triggered pins leave the table as it is.
 */
static void split_ioapic_route(unsigned pin, bool valid, uint64_t addr, uint32_t data)
{
    const uint32_t level_triggered = BIT(15);

    if (pin >= IRQCHIP_GSIS || !valid || !(data & level_triggered)) {
        return;
    }
    QEMU_LOCK_GUARD(&split.lock);
    if (split.valid[pin] && split.addr[pin] == addr && split.data[pin] == data) {
        return;
    }
    split.valid[pin] = true;
    split.addr[pin] = addr;
    split.data[pin] = data;
    set_split_routes_locked();
}

/* ---- The PIC in user space beside the kernel's local APIC ---- */

static void split_set_parts(const IrqChipParts *p)
{
    parts = p;
}

static void split_pic_int(void *opaque, int n, int level)
{
    CPUState *bsp = cpu_get(0);

    atomic_store(&pic_level, level != 0);
    if (level && bsp) {
        cpu_request(bsp, CPU_REQ_INTERRUPT);
    }
}

bool kvm_split_pic_level(void)
{
    return atomic_load(&pic_level);
}

int kvm_split_pic_ack(void)
{
    return parts && parts->pic_output_level() ? parts->pic_ack() : -1;
}

void kvm_split_eoi(uint8_t vector)
{
    if (parts) {
        parts->ioapic_eoi(vector);
    }
}

/* ---- PIT ---- */

static void pit_hpet_legacy(bool on)
{
    struct kvm_pit_state2 s;

    if (kvm_ioctl(kvm.vm_fd, KVM_GET_PIT2, &s) < 0) {
        return;
    }
    s.flags = on ? s.flags | KVM_PIT_FLAGS_HPET_LEGACY
                 : s.flags & ~(uint32_t)KVM_PIT_FLAGS_HPET_LEGACY;
    kvm_ioctl(kvm.vm_fd, KVM_SET_PIT2, &s);
}

/* ---- Making and resetting ---- */

static const AccelIrqchip kernel_chip = {
    .ops = &kernel_ops,
    .kernel_pic_ioapic = true,
    .kernel_pit = true,
    .pit_hpet_legacy = pit_hpet_legacy,
};

/* -machine pit=off. */
static const AccelIrqchip kernel_chip_without_pit = {
    .ops = &kernel_ops,
    .kernel_pic_ioapic = true,
};

static const AccelIrqchip split_chip = {
    .ops = &split_ops,
    .set_parts = split_set_parts,
    .pic_int = split_pic_int,
    .ioapic_route = split_ioapic_route,
};

static void snapshot(struct kvm_irqchip *c, unsigned id)
{
    memset(c, 0, sizeof(*c));
    c->chip_id = id;
    kvm_ioctl(kvm.vm_fd, KVM_GET_IRQCHIP, c);
}

static int create_pit(void)
{
    struct kvm_pit_config pit = { .flags = KVM_PIT_SPEAKER_DUMMY }; /* port 61h too */
    int r = accel_pit ? kvm_ioctl(kvm.vm_fd, KVM_CREATE_PIT2, &pit) : 0;

    if (accel_pit && r >= 0) {
        kvm_ioctl(kvm.vm_fd, KVM_GET_PIT2, &pristine.pit);
    }
    return r;
}

static int create_in_kernel(const char **what)
{
    int r = kvm_ioctl(kvm.vm_fd, KVM_CREATE_IRQCHIP, NULL);

    *what = "creating the interrupt chips";
    if (r < 0) {
        return r;
    }
    *what = "creating the PIT";
    r = create_pit();
    if (r < 0) {
        return r;
    }
    *what = "routing interrupts";
    r = set_kernel_routes();
    snapshot(&pristine.pic[0], KVM_IRQCHIP_PIC_MASTER);
    snapshot(&pristine.pic[1], KVM_IRQCHIP_PIC_SLAVE);
    snapshot(&pristine.ioapic, KVM_IRQCHIP_IOAPIC);
    accel_irqchip = accel_pit ? &kernel_chip : &kernel_chip_without_pit;
    return r;
}

static int create_split(const char **what)
{
    *what = "creating the local APICs (kernel-irqchip=split)";
    qemu_mutex_init(&split.lock, LOCK_RANK_LEAF, "kvm split routes");
    accel_irqchip = &split_chip;
    return kvm_enable_cap(KVM_CAP_SPLIT_IRQCHIP, IRQCHIP_GSIS, 0);
}

bool kvm_irqchip_create(Error **errp)
{
    const char *what = "";
    int r = 0;

    kvm.irqchip = kernel_irqchip;
    accel_irqchip = NULL;
    if (kernel_irqchip != KERNEL_IRQCHIP_OFF &&
        (!kvm_check_cap(KVM_CAP_IRQCHIP) || !kvm_check_cap(KVM_CAP_IRQ_ROUTING) ||
         !kvm_check_cap(KVM_CAP_SIGNAL_MSI) || !kvm_check_cap(KVM_CAP_PIT2) ||
         (kernel_irqchip == KERNEL_IRQCHIP_SPLIT && !kvm_check_cap(KVM_CAP_SPLIT_IRQCHIP)))) {
        error_setg(errp, "KVM: this kernel cannot provide kernel-irqchip=%s; use kernel-irqchip=off",
                   kernel_irqchip == KERNEL_IRQCHIP_ON ? "on" : "split");
        return false;
    }
    if (kernel_irqchip == KERNEL_IRQCHIP_ON) {
        r = create_in_kernel(&what);
    } else if (kernel_irqchip == KERNEL_IRQCHIP_SPLIT) {
        r = create_split(&what);
    }
    if (r < 0) {
        accel_irqchip = NULL;
        error_setg_errno(errp, -r, "KVM: %s", what);
        return false;
    }
    return true;
}

void kvm_irqchip_reset(void)
{
    if (kvm.irqchip != KERNEL_IRQCHIP_ON) {
        return;
    }
    kvm_ioctl(kvm.vm_fd, KVM_SET_IRQCHIP, &pristine.pic[0]);
    kvm_ioctl(kvm.vm_fd, KVM_SET_IRQCHIP, &pristine.pic[1]);
    kvm_ioctl(kvm.vm_fd, KVM_SET_IRQCHIP, &pristine.ioapic);
    if (accel_irqchip->kernel_pit) {
        kvm_ioctl(kvm.vm_fd, KVM_SET_PIT2, &pristine.pit);
    }
}
