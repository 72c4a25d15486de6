/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct kernel boot on the "pc" board. At each reset, after the devices', memory gets the kernel
 * and the tables a firmware would have left, the chip set is programmed as SeaBIOS does it, and
 * CPU 0 is put at the kernel's entry.
 */
#include <string.h>
#include "accel/irqchip.h"
#include "hw/i386/acpi-build.h"
#include "hw/i386/pc-internal.h"
#include "hw/i386/smbios.h"
#include "qemu/runstate.h"
#include "target/i386/cpu.h"

/* Firmware tables: ACPI from E0000h, where a scan for the RSDP starts; SMBIOS in the F segment. */
#define RSDP_ADDR    0xe0000u
#define TABLES_ADDR  0xe0040u /* the FACS is the first of them */
#define TABLES_END   0xf0000u
#define SMBIOS_ADDR  0xf0000u
#define SMBIOS_TABLE (SMBIOS_ADDR + 32)
#define SMBIOS_END   0xfff00u
/* Handlers for real mode, at the end of the F segment. */
#define STUB_ADDR    0xfff00u
#define EBDA_ADDR    0x9fc00u

static BootRegs boot_regs; /* of the one machine; fixed once it runs */
static AcpiTables boot_acpi;
static GByteArray *boot_smbios;
static uint8_t boot_anchor[SMBIOS_ANCHOR_SIZE];

/* ---- CPU state ---- */

#define MTRR_UC 0x00ull
#define MTRR_WP 0x0505050505050505ull
#define MTRR_WB 0x0606060606060606ull

/* As firmware leaves it: RAM write-back, video memory and the PCI hole uncached. */
static void set_mtrrs(X86CPU *cpu)
{
    uint64_t phys_mask = (1ull << cpu->phys_bits) - 1;
    cpu->mtrr_fixed[0] = MTRR_WB;
    cpu->mtrr_fixed[1] = MTRR_WB;
    cpu->mtrr_fixed[2] = MTRR_UC;
    for (unsigned i = 3; i < ARRAY_SIZE(cpu->mtrr_fixed); i++) {
        cpu->mtrr_fixed[i] = MTRR_WP;
    }
    cpu->mtrr_var[0][0] = PC_MAX_BELOW_4G | MTRR_UC;
    cpu->mtrr_var[0][1] = (phys_mask & ~(GiB - 1)) | BIT(11);
    cpu->mtrr_deftype = BIT(11) | BIT(10) | 6;
}

static void set_flat_segments(X86CPU *cpu, bool long_mode)
{
    const SegmentCache data = { .selector = 0x18, .limit = 0xffffffff,
                                .attr = SEG_P | SEG_S | SEG_W | SEG_A | SEG_DB | SEG_G };
    for (unsigned i = 0; i < R_SEG_COUNT; i++) {
        cpu->seg[i] = data;
    }
    cpu->seg[R_CS].selector = 0x10;
    cpu->seg[R_CS].attr = SEG_P | SEG_S | SEG_CODE | SEG_W | SEG_A | SEG_G |
                          (long_mode ? SEG_L : SEG_DB);
}

/*
 * After suspend to RAM, to where the FACS says (ACPI 6.4, 5.2.10): the 64-bit vector, if there is
 * one, in 32-bit protected mode, else the other in real mode. Without either nobody could go on;
 * a reset starts the kernel anew.
 */
static void wake_state(X86CPU *cpu)
{
    uint8_t facs[64];
    uint32_t vector;
    uint64_t x_vector;
    address_space_read(&address_space_memory, TABLES_ADDR, facs, sizeof(facs));
    vector = boot_ld32(facs + 12);
    x_vector = boot_ld32(facs + 24) | (uint64_t)boot_ld32(facs + 28) << 32;
    if (x_vector && x_vector <= UINT32_MAX) {
        set_flat_segments(cpu, false);
        cpu->cr0 |= CR0_PE;
        cpu->rip = x_vector;
        return;
    }
    if (!vector || vector >= MiB) {
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        return;
    }
    cpu->seg[R_CS].selector = (uint16_t)(vector >> 4);
    cpu->seg[R_CS].base = vector & ~0xfu;
    cpu->rip = vector & 0xf;
}

static void boot_state(X86CPU *cpu)
{
    const BootRegs *r = &boot_regs;
    set_mtrrs(cpu);
    cpu->cr0 &= ~(CR0_CD | CR0_NW);
    if (cpu->base.index != 0) {
        return;
    }
    if (runstate_is_wakeup()) {
        wake_state(cpu);
        return;
    }
    memset(cpu->regs, 0, sizeof(cpu->regs));
    cpu->regs[R_RAX] = r->rax;
    cpu->regs[R_RBX] = r->rbx;
    cpu->regs[R_RSI] = r->rsi;
    cpu->regs[R_RSP] = r->rsp;
    cpu->rip = r->rip;
    set_flat_segments(cpu, r->mode == BOOT_MODE_LONG64);
    cpu->gdt.base = r->gdt_base;
    cpu->gdt.limit = 31;
    cpu->cr0 |= CR0_PE;
    if (r->tss) {
        cpu->tr = (SegmentCache){ .limit = 0x67, .attr = SEG_P | 0xb };
    }
    if (r->mode == BOOT_MODE_LONG64) {
        cpu->cr3 = r->cr3;
        cpu->cr4 = CR4_PAE;
        cpu->efer = EFER_LME | EFER_LMA;
        cpu->cr0 |= CR0_PG;
    }
}

/* ---- Chip set, as firmware leaves it ---- */

static uint8_t pirq_isa_irq(unsigned pirq)
{
    static const uint8_t irq[PIIX_NUM_PIRQS] = { 10, 10, 11, 11 };
    return irq[pirq];
}

static uint8_t irq_of(uint8_t devfn, unsigned pin)
{
    return devfn == PCI_DEVFN(1, 3) ? ACPI_SCI_IRQ : pirq_isa_irq(piix_slot_pirq(devfn, pin));
}

static void set_pam(PcState *pc, unsigned first, uint8_t value)
{
    for (unsigned reg = first; reg < I440FX_PAM0 + 7; reg++) {
        pci_config_write(pc->pci, PCI_DEVFN(0, 0), reg, value, 1);
    }
}

/* Vectors of the PC's BIOS: IRQ 0-7 from 8, IRQ 8-15 from 70h. */
#define PIC_BASE       0x08u
#define PIC_SLAVE_BASE 0x70u

static void io8(uint16_t port, uint8_t v)
{
    address_space_store(&address_space_io, port, v, 1);
}

/* The pair initialised, timer and cascade open, and counter 0 at 18.2 Hz. */
static void program_pic_pit(void)
{
    io8(0x20, 0x11);
    io8(0xa0, 0x11);
    io8(0x21, PIC_BASE);
    io8(0xa1, PIC_SLAVE_BASE);
    io8(0x21, 0x04);
    io8(0xa1, 0x02);
    io8(0x21, 0x01);
    io8(0xa1, 0x01);
    io8(0x21, 0xfa);
    io8(0xa1, 0xff);
    /* ELCR: lines 9, 10, 11 are level-triggered. */
    io8(0x4d0, 0x00);
    io8(0x4d1, 0x0e);
    io8(0x43, 0x34);
    io8(0x40, 0x00);
    io8(0x40, 0x00);
}

/* CPU 0's thread. Virtual wire mode (MP Specification 1.4, 3.6.2.2). */
static void program_lapic(CPUState *cpu, void *opaque)
{
    irqchip->mmio_write(cpu, 0xf0, 0x1ff);
    irqchip->mmio_write(cpu, 0x350, 0x700);
    irqchip->mmio_write(cpu, 0x360, 0x400);
}

static void program_chipset(PcState *pc)
{
    for (unsigned i = 0; i < PIIX_NUM_PIRQS; i++) {
        pci_config_write(pc->pci, PCI_DEVFN(1, 0), PIIX_PIRQRCA + i, pirq_isa_irq(i), 1);
    }
    program_pic_pit();
    if (irqchip->mmio_write && cpu_get(0)) {
        run_on_cpu(cpu_get(0), program_lapic, NULL);
    }
    pci_assign_resources(pc->pci, PC_PCI_MEM_BASE, PC_PCI_MEM_LIMIT, PC_PCI_IO_BASE,
                         PC_PCI_IO_LIMIT, irq_of);
    if (pc->pm) {
        pci_config_write(pc->pci, PCI_DEVFN(1, 3), PIIX4_PMBASE, PIIX4_PM_IO | 1, 4);
        pci_config_write(pc->pci, PCI_DEVFN(1, 3), PIIX4_PMREGMISC, 1, 1);
    }
}

static void write_ram(uint64_t addr, const void *data, uint64_t len)
{
    address_space_write(&address_space_memory, addr, data, len);
}

static void write_bios_data(void)
{
    uint8_t ebda[1024] = { 1 }; /* its size in KiB */
    uint8_t bda[0x100] = { 0 };
    boot_st16(bda + 0x0e, EBDA_ADDR >> 4);
    boot_st16(bda + 0x13, EBDA_ADDR / 1024);
    write_ram(0x400, bda, sizeof(bda));
    write_ram(EBDA_ADDR, ebda, sizeof(ebda));
}

/*
 * For kernels that go to real mode: interrupt vectors that return, acknowledging the interrupt
 * controllers where it is one of theirs, and a reset vector that resets.
 */
enum { STUB_IRET = 0x00, STUB_MASTER = 0x10, STUB_SLAVE = 0x20, STUB_RESET = 0xf0 };

static const uint8_t stubs[0x100] = {
    [STUB_IRET] = 0xcf,
    /* push ax; mov al,20h; out 20h,al; pop ax; iret */
    [STUB_MASTER] = 0x50, 0xb0, 0x20, 0xe6, 0x20, 0x58, 0xcf,
    /* push ax; mov al,20h; out a0h,al; out 20h,al; pop ax; iret */
    [STUB_SLAVE] = 0x50, 0xb0, 0x20, 0xe6, 0xa0, 0xe6, 0x20, 0x58, 0xcf,
    /* mov al,6; mov dx,0cf9h; out dx,al; hlt */
    [STUB_RESET] = 0xb0, 0x06, 0xba, 0xf9, 0x0c, 0xee, 0xf4,
};

static void write_vectors(void)
{
    uint8_t ivt[1024];
    for (unsigned i = 0; i < 256; i++) {
        unsigned stub = i - PIC_BASE < 8         ? STUB_MASTER
                        : i - PIC_SLAVE_BASE < 8 ? STUB_SLAVE
                                                 : STUB_IRET;
        boot_st16(ivt + 4 * i, (uint16_t)((STUB_ADDR & 0xffff) + stub));
        boot_st16(ivt + 4 * i + 2, 0xf000);
    }
    write_ram(0, ivt, sizeof(ivt));
    write_ram(STUB_ADDR, stubs, sizeof(stubs));
}

static void write_tables(PcState *pc)
{
    write_vectors();
    write_bios_data();
    if (pc->pm) {
        write_ram(RSDP_ADDR, boot_acpi.rsdp->data, boot_acpi.rsdp->len);
        write_ram(TABLES_ADDR, boot_acpi.tables->data, boot_acpi.tables->len);
    }
    write_ram(SMBIOS_ADDR, boot_anchor, sizeof(boot_anchor));
    write_ram(SMBIOS_TABLE, boot_smbios->data, boot_smbios->len);
}

static void write_zeros(uint64_t addr, uint64_t len)
{
    static const uint8_t zeros[4096];
    for (uint64_t n; len; addr += n, len -= n) {
        n = MIN(len, (uint64_t)sizeof(zeros));
        write_ram(addr, zeros, n);
    }
}

static void write_image(const BootImage *img)
{
    for (guint i = 0; i < img->blobs->len; i++) {
        const BootBlob *b = &g_array_index(img->blobs, BootBlob, i);
        if (b->data) {
            write_ram(b->addr, b->data, b->len);
        } else {
            write_zeros(b->addr, b->len);
        }
    }
}

void pc_boot_blobs(const PcState *pc, MachineBlobFn *fn, void *opaque)
{
    if (!pc->boot.format) {
        return;
    }
    for (guint i = 0; i < pc->boot.blobs->len; i++) {
        const BootBlob *b = &g_array_index(pc->boot.blobs, BootBlob, i);

        fn(opaque, b->addr, b->len, false, b->what);
    }
    if (pc->pm) {
        fn(opaque, RSDP_ADDR, boot_acpi.rsdp->len, false, "ACPI RSDP");
        fn(opaque, TABLES_ADDR, boot_acpi.tables->len, false, "ACPI tables");
    }
    fn(opaque, SMBIOS_ADDR, sizeof(boot_anchor), false, "SMBIOS anchor");
    fn(opaque, SMBIOS_TABLE, boot_smbios->len, false, "SMBIOS tables");
    fn(opaque, STUB_ADDR, sizeof(stubs), false, "real-mode vectors");
}

static void boot_reset(void *opaque)
{
    PcState *pc = opaque;
    set_pam(pc, I440FX_PAM0, 0x33);
    if (!runstate_is_wakeup()) {
        write_tables(pc);
        write_image(&pc->boot);
    }
    set_pam(pc, I440FX_PAM0, 0x11); /* F segment, and below all of C0000h-EFFFFh */
    set_pam(pc, I440FX_PAM_E0000, 0x33); /* the FACS is written by the guest */
    program_chipset(pc);
}

/* ---- Tables ---- */

void pc_acpi_build(PcState *pc, AcpiTables *t)
{
    AcpiConfig cfg = { .cpus = pc->cfg->smp.cpus, .maxcpus = pc->cfg->smp.maxcpus,
                       .apic_id = x86_apic_id, .hpet = pc->hpet != NULL, .pit = pc->cfg->pit,
                       /* Our firmware's way to resume is not provided for. */
                       .s3 = pc->cfg->kernel && piix4_pm_s3_enabled(pc->pm),
                       .s4 = piix4_pm_s4_enabled(pc->pm), .s4_val = piix4_pm_s4_val(pc->pm) };
    for (unsigned i = 0; i < ARRAY_SIZE(pc->cfg->serial); i++) {
        cfg.serial_mask |= pc->cfg->serial[i] ? BIT(i) : 0;
    }
    acpi_build(t, &cfg);
}

GByteArray *pc_smbios_build(PcState *pc, bool bios_info, unsigned *count, unsigned *largest)
{
    const SmpTopology *smp = &pc->cfg->smp;
    unsigned per_socket = MAX(smp->dies * smp->cores * smp->threads, 1u);
    SmbiosConfig cfg = { .ram_size = pc->cfg->ram_size,
                         .sockets = DIV_ROUND_UP(smp->cpus, per_socket),
                         .cores = smp->dies * smp->cores, .threads = smp->threads,
                         .uuid = pc->cfg->uuid_set ? pc->cfg->uuid : NULL,
                         .product = machine_pc.desc, .version = machine_pc.name,
                         .type0 = bios_info };
    return smbios_build(&cfg, count, largest);
}

void pc_boot_cpu_changed(PcState *pc, unsigned cpu, bool there)
{
    if (!pc->boot.format || !pc->pm) {
        return;
    }
    acpi_madt_enable(&boot_acpi, cpu, there);
    if (runstate_get() == RUN_STATE_PRELAUNCH) { /* the reset was before, and nothing has run since */
        write_ram(TABLES_ADDR, boot_acpi.tables->data, boot_acpi.tables->len);
    }
}

static bool prepare_tables(PcState *pc, Error **errp)
{
    unsigned count, largest;
    if (pc->pm) {
        pc_acpi_build(pc, &boot_acpi);
        acpi_link(&boot_acpi, TABLES_ADDR, RSDP_ADDR);
        if (boot_acpi.tables->len > TABLES_END - TABLES_ADDR) {
            error_setg(errp, "-smp maxcpus=%u: ACPI tables of %u bytes do not fit into 64 KiB",
                       pc->cfg->smp.maxcpus, boot_acpi.tables->len);
            return false;
        }
    }
    boot_smbios = pc_smbios_build(pc, true, &count, &largest);
    if (boot_smbios->len > SMBIOS_END - SMBIOS_TABLE) {
        error_setg(errp, "SMBIOS tables of %u bytes do not fit into 64 KiB", boot_smbios->len);
        return false;
    }
    smbios_anchor(boot_anchor, boot_smbios, count, largest, SMBIOS_TABLE);
    return true;
}

bool pc_boot_init(PcState *pc, Error **errp)
{
    const MachineConfig *cfg = pc->cfg;
    E820Table e820;
    if (!cfg->kernel) {
        if (cfg->initrd || (cfg->append && *cfg->append)) {
            error_setg(errp, "%s: only allowed with -kernel", cfg->initrd ? "-initrd" : "-append");
            return false;
        }
        return true;
    }
    e820_build_boot(&e820, cfg->ram_size);
    BootRequest req = { .kernel = cfg->kernel, .initrd = cfg->initrd, .append = cfg->append,
                        .ram_below_4g = pc->below_4g, .rsdp_addr = pc->pm ? RSDP_ADDR : 0,
                        .e820 = &e820 };
    if (!boot_load_kernel(&pc->boot, &req, errp) || !prepare_tables(pc, errp)) {
        return false;
    }
    boot_regs = pc->boot.regs;
    x86_cpu_set_boot_state(boot_state);
    reset_register(boot_reset, pc);
    return true;
}
