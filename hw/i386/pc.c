/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Board "pc": a PC with an i440FX-like chip set. The only place where addresses and interrupt
 * numbers meet.
 */
#include <string.h>
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "hw/acpi-cpus.h"
#include "hw/i386/pc-internal.h"
#include "hw/intc.h"
#include "hw/ps2.h"
#include "hw/timer.h"
#include "target/i386/cpu.h"

static PcState the_pc;

/* ---- Memory ---- */

static bool pc_memory_init(PcState *pc, Error **errp)
{
    uint64_t size = pc->cfg->ram_size;
    pc->below_4g = pc_ram_below_4g(size);
    pc->ram = pc->cfg->ram ? pc->cfg->ram
                           : ram_block_new("pc.ram", size, pc->cfg->ram_merge ? RAM_MERGEABLE : 0, -1, errp);
    if (!pc->ram) {
        return false;
    }
    memory_transaction_begin();
    memory_region_init_ram(&pc->ram_mr, pc->ram, "pc.ram");
    memory_region_init_alias(&pc->ram_below, "ram-below-4g", &pc->ram_mr, 0, pc->below_4g);
    memory_region_add_subregion(memory_root(), 0, &pc->ram_below, 0);
    if (size > pc->below_4g) {
        memory_region_init_alias(&pc->ram_above, "ram-above-4g", &pc->ram_mr, pc->below_4g,
                                 size - pc->below_4g);
        memory_region_add_subregion(memory_root(), 4 * GiB, &pc->ram_above, 0);
    }
    memory_transaction_commit();
    return true;
}

/* ---- Interrupt controllers ---- */

static bool chips_in_kernel(void)
{
    return accel_irqchip && accel_irqchip->kernel_pic_ioapic;
}

static void pic_out(void *opaque, int n, int level)
{
    apic_set_lint0(NULL, 0, level);
}

/* PIC pair and I/O APIC here, local APICs in the kernel. */
static void pc_split_init(void)
{
    static const IrqChipParts parts = {
        .set_gsi = irqchip_user_set_gsi,
        .ioapic_eoi = ioapic_eoi,
        .pic_output_level = pic_output_level,
        .pic_ack = pic_ack,
    };
    accel_irqchip->set_parts(&parts);
    pic_set_output((IrqLine){ .set = accel_irqchip->pic_int });
    ioapic_set_route_hook(accel_irqchip->ioapic_route);
}

/* PIC pair and I/O APIC, unless the kernel has them; and who delivers. */
static bool pc_intc_init(PcState *pc, Error **errp)
{
    if (accel_irqchip) {
        irqchip = accel_irqchip->ops;
    } else if (!irqchip) {
        irqchip = &irqchip_user; /* else the accelerator brought its own */
    }
    if (chips_in_kernel()) {
        return true;
    }
    if (!device_realize(device_new_named("isa-i8259"), &pc->isa.bus, errp) ||
        !device_realize(device_new_named("ioapic"), NULL, errp)) {
        return false;
    }
    if (accel_irqchip) {
        pc_split_init();
    } else if (irqchip == &irqchip_user) {
        pic_set_output((IrqLine){ .set = pic_out });
        apic_mmio_init(&pc->apic_mr);
        memory_region_add_subregion(memory_root(), 0xfee00000, &pc->apic_mr, 0);
    }
    return true;
}

/* ---- Chip set ---- */

static DeviceState *pci_function(PcState *pc, const char *type, const char *addr, bool multi)
{
    DeviceState *dev = device_new_named(type);
    device_set_prop(dev, "addr", addr, &error_abort);
    device_set_prop(dev, "multifunction", multi ? "on" : "off", &error_abort);
    return dev;
}

static bool pc_chipset_init(PcState *pc, Error **errp)
{
    IrqLine pirq[16];
    I440fxSetup setup = { .ram = &pc->ram_mr, .ram_block = pc->ram, .bios = pc->bios };
    pc->pcihost = device_new_named("i440FX-pcihost");
    i440fx_pcihost_setup(pc->pcihost, &setup);
    if (!device_realize(pc->pcihost, NULL, errp)) {
        return false;
    }
    pc->pci = i440fx_pcihost_bus(pc->pcihost);
    pc->i440fx = pci_function(pc, "i440FX", "00.0", false);
    if (!device_realize(pc->i440fx, &pc->pci->bus, errp)) {
        return false;
    }
    for (unsigned i = 0; i < 16; i++) {
        pirq[i] = pc_gsi_line(i, PC_SOURCE_PIRQ);
        pc->isa.irq[i] = pc_gsi_line(i, PC_SOURCE_ISA);
    }
    pc->piix3 = pci_function(pc, "PIIX3", "01.0", true);
    piix3_set_outputs(pc->piix3, pirq);
    if (!device_realize(pc->piix3, &pc->pci->bus, errp)) {
        return false;
    }
    piix3_connect(pc->piix3, pc->pci, i440fx_pcihost_host(pc->pcihost));
    isa_bus_init(&pc->isa, pc->piix3);
    return true;
}

/* A state that was loaded may speak of CPUs that never came. */
static void pc_cpu_eject(unsigned cpu)
{
    if (machine_cpu_ejected) {
        machine_cpu_ejected(cpu);
    }
}

static void pc_cpu_ost(unsigned cpu, uint32_t source, uint32_t status)
{
    if (machine_cpu_ost) {
        machine_cpu_ost(cpu, source, status);
    }
}

/* The part of ACPI that tells of vCPUs; after power management, which resets its event first. */
static bool pc_cpus_init(PcState *pc, Error **errp)
{
    const SmpTopology *smp = &pc->cfg->smp;
    AcpiCpusSetup setup = { .count = smp->maxcpus, .fixed = smp->cpus, .apic_id = x86_apic_id, .pm = pc->pm,
                            .eject = pc_cpu_eject, .ost = pc_cpu_ost };

    if (smp->maxcpus == smp->cpus) {
        return true;
    }
    pc->cpus = device_new_named("acpi-cpus");
    acpi_cpus_setup(pc->cpus, &setup);
    if (!device_realize(pc->cpus, &pc->isa.bus, errp)) {
        return false;
    }
    for (unsigned i = 0; i < smp->cpus; i++) {
        acpi_cpus_plug(pc->cpus, i, false);
    }
    return true;
}

static bool pc_pm_init(PcState *pc, Error **errp)
{
    if (!pc->cfg->acpi) {
        return true;
    }
    pc->pm = pci_function(pc, "PIIX4_PM", "01.3", false);
    piix4_pm_set_sci(pc->pm, pc_gsi_line(ACPI_SCI_IRQ, PC_SOURCE_SCI));
    isa_reserve_ports("PIIX4_PM", PIIX4_PM_IO, PIIX4_PM_IO + 0x3f); /* the guest maps it */
    return device_realize(pc->pm, &pc->pci->bus, errp) && pc_cpus_init(pc, errp);
}

/* ---- ISA devices ---- */

/* The RTC's output goes to its line, and to power management. */
static IrqLine rtc_line;

static void rtc_out(void *opaque, int n, int level)
{
    PcState *pc = opaque;
    irq_set(&rtc_line, level);
    if (pc->pm) {
        piix4_pm_rtc(pc->pm, level);
    }
}

static bool pc_timers_init(PcState *pc, Error **errp)
{
    const MachineConfig *cfg = pc->cfg;
    DeviceState *pit = NULL;
    RtcConfig rtc = { .localtime = cfg->rtc_local, .dated = cfg->rtc_dated,
                      .date_s = cfg->rtc_date_s,
                      .clock = (ClockType)cfg->rtc_clock,
                      .driftfix_slew = cfg->rtc_driftfix_slew };
    pc->rtc = device_new_named("mc146818rtc");
    rtc_configure(pc->rtc, &rtc);
    if (!device_realize(pc->rtc, &pc->isa.bus, errp)) {
        return false;
    }
    rtc_line = pc->isa.irq[8];
    rtc_set_irq_out(pc->rtc, (IrqLine){ .set = rtc_out, .opaque = pc });
    if (cfg->pit && (!accel_irqchip || !accel_irqchip->kernel_pit)) {
        pit = device_new_named("isa-pit");
        if (!device_realize(pit, &pc->isa.bus, errp)) {
            return false;
        }
    }
    if (!cfg->hpet) {
        return true;
    }
    IrqLine gsi[IRQCHIP_GSIS];
    for (unsigned i = 0; i < IRQCHIP_GSIS; i++) {
        gsi[i] = pc_gsi_line(i, PC_SOURCE_HPET);
    }
    pc->hpet = device_new_named("hpet");
    hpet_set_outputs(pc->hpet, gsi);
    if (!device_realize(pc->hpet, NULL, errp)) {
        return false;
    }
    if (pit) {
        pit_set_irq_out(pit, hpet_legacy_in(pc->hpet, 0));
    } else if (cfg->pit) {
        hpet_set_legacy_hook(pc->hpet, accel_irqchip->pit_hpet_legacy);
    }
    rtc_line = hpet_legacy_in(pc->hpet, 1);
    return true;
}

static bool pc_serial_init(PcState *pc, Error **errp)
{
    static const struct {
        uint16_t port;
        uint8_t irq;
    } com[4] = { { 0x3f8, 4 }, { 0x2f8, 3 }, { 0x3e8, 4 }, { 0x2e8, 3 } };
    for (unsigned i = 0; i < ARRAY_SIZE(com); i++) {
        if (!pc->cfg->serial[i]) {
            continue;
        }
        DeviceState *dev = device_new_named("isa-serial");
        device_set_prop_uint(dev, "iobase", com[i].port);
        device_set_prop_uint(dev, "irq", com[i].irq);
        device_set_prop_chardev(dev, "chardev", pc->cfg->serial[i]);
        if (!device_realize(dev, &pc->isa.bus, errp)) {
            return false;
        }
    }
    if (pc->cfg->debugcon) {
        DeviceState *dev = device_new_named("isa-debugcon");
        device_set_prop_chardev(dev, "chardev", pc->cfg->debugcon);
        return device_realize(dev, &pc->isa.bus, errp);
    }
    return true;
}

static bool pc_keyboard_init(PcState *pc, Error **errp)
{
    DeviceState *kbd = device_new_named("i8042"), *p92 = device_new_named("port92");
    i8042_set_a20_out(kbd, pc_a20_line());
    port92_set_a20_out(p92, pc_a20_line());
    if (!device_realize(kbd, &pc->isa.bus, errp)) {
        device_free(p92);
        return false;
    }
    return device_realize(p92, &pc->isa.bus, errp);
}

/* ---- The board ---- */

static bool pc_init(const MachineConfig *cfg, Error **errp)
{
    PcState *pc = &the_pc;
    pc->cfg = cfg;
    x86_cpu_set_topology(cfg->smp.sockets, cfg->smp.dies, cfg->smp.cores, cfg->smp.threads);
    boot_image_init(&pc->boot);
    pc_irq_init();
    if (!pc_memory_init(pc, errp) || !pc_bios_load(pc, errp) || !pc_chipset_init(pc, errp) ||
        !pc_intc_init(pc, errp) || !pc_timers_init(pc, errp) || !pc_serial_init(pc, errp) ||
        !pc_keyboard_init(pc, errp) || !pc_pm_init(pc, errp)) {
        return false;
    }
    pc_ports_init(pc);
    pc_cmos_init(pc);
    return pc_boot_init(pc, errp) && pc_fw_cfg_init(pc, errp);
}

static bool pc_cpu_plug_check(Error **errp)
{
    if (!the_pc.cfg->acpi) {
        error_setg(errp, "the machine has no ACPI, by which the guest would hear of a CPU that comes; start "
                         "it without acpi=off");
    }
    return the_pc.cfg->acpi;
}

static void cpu_changed(unsigned cpu, bool there)
{
    pc_firmware_cpu_changed(&the_pc, cpu, there);
    pc_boot_cpu_changed(&the_pc, cpu, there);
}

static void pc_cpu_unplugged(unsigned cpu)
{
    cpu_changed(cpu, false);
}

static void pc_cpu_unplug_request(unsigned cpu)
{
    acpi_cpus_unplug_request(the_pc.cpus, cpu);
}

static void pc_cpu_plugged(unsigned cpu, bool hot)
{
    cpu_changed(cpu, true);
    if (the_pc.cpus) {
        acpi_cpus_plug(the_pc.cpus, cpu, hot);
    }
}

static void pc_blobs(MachineBlobFn *fn, void *opaque)
{
    if (the_pc.bios) {
        fn(opaque, 4 * GiB - the_pc.bios->size, the_pc.bios->size, true, "firmware");
    }
    pc_boot_blobs(&the_pc, fn, opaque);
}

const MachineType machine_pc = {
    .name = "pc-i440fx-7.2",
    .alias = "pc",
    .desc = "Standard PC (i440FX + PIIX, 1996)",
    .is_default = true,
    .max_cpus = MAX_CPUS,
    .default_cpu = "qemu64",
    .default_ram_id = "pc.ram",
    .default_ram_size = 128 * MiB,
    .min_ram_size = MiB,
    .init = pc_init,
    .cpu_plug_check = pc_cpu_plug_check,
    .cpu_plugged = pc_cpu_plugged,
    .cpu_unplug_request = pc_cpu_unplug_request,
    .cpu_unplugged = pc_cpu_unplugged,
    .blobs = pc_blobs,
};
