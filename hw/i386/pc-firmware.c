/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the "pc" board gives firmware to work with: the ROM, CMOS memory, fw_cfg items. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hw/fw_cfg.h"
#include "hw/i386/acpi-build.h"
#include "hw/i386/pc-internal.h"
#include "hw/i386/smbios.h"
#include "hw/timer.h"
#include "target/i386/cpu.h"

/* ---- The ROM below 4 GiB ---- */

#define BIOS_UNIT     (64 * KiB)
#define BIOS_MAX_SIZE (8 * MiB)
#define BIOS_DEFAULT  "bios-256k.bin"

static const char *const bios_dirs[] = { CONFIG_DATADIR, "/usr/share/seabios", "/usr/share/qemu" };

static char *bios_in(const char *dir, const char *name)
{
    char *path = g_build_filename(dir, name, NULL);

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        return path;
    }
    g_free(path);
    return NULL;
}

/*
 * A name without '/' is also looked for in the directories of -L, then where firmware is installed.
 * NULL: not found.
 */
static char *bios_find(const char *name, const char *const *dirs)
{
    char *path = NULL;

    if (g_file_test(name, G_FILE_TEST_EXISTS)) {
        return g_strdup(name);
    }
    if (strchr(name, '/')) {
        return NULL;
    }
    for (; dirs && *dirs && !path; dirs++) {
        path = bios_in(*dirs, name);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bios_dirs) && !path; i++) {
        path = bios_in(bios_dirs[i], name);
    }
    return path;
}

static bool bios_map(PcState *pc, const uint8_t *data, size_t size, Error **errp)
{
    pc->bios = ram_block_new("pc.bios", size, RAM_ROM, -1, errp);
    if (!pc->bios) {
        return false;
    }
    memcpy(pc->bios->host, data, size);
    memory_region_init_rom(&pc->bios_mr, pc->bios, "pc.bios");
    memory_region_add_subregion(memory_root(), 4 * GiB - size, &pc->bios_mr, 0);
    return true;
}

static bool bios_size_ok(uint64_t size)
{
    return size && size % BIOS_UNIT == 0 && size <= BIOS_MAX_SIZE;
}

bool pc_bios_load(PcState *pc, Error **errp)
{
    const char *name = pc->cfg->bios;
    if (!name && pc->cfg->kernel) {
        return true; /* no firmware runs */
    }
    g_autofree char *path = bios_find(name ? name : BIOS_DEFAULT, pc->cfg->firmware_dirs);
    if (!path && !name) {
        error_setg(errp, "no firmware: %s is in none of %s, %s, %s; install the package seabios, "
                   "or give -bios FILE or -kernel FILE", BIOS_DEFAULT, bios_dirs[0], bios_dirs[1],
                   bios_dirs[2]);
        return false;
    }
    struct stat st;
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && !bios_size_ok((uint64_t)st.st_size)) {
        error_setg(errp, "-bios '%s': its size of %lld bytes is not a multiple of 64 KiB up to 8 MiB; "
                   "is it a firmware image?", path, (long long)st.st_size);
        return false; /* without reading it */
    }
    BootImage file;
    size_t size;
    boot_image_init(&file);
    const uint8_t *d = boot_read_file(&file, "-bios", path ? path : name, BIOS_MAX_SIZE, &size, errp);
    bool ok = d && bios_size_ok(size);
    if (d && !ok) {
        error_setg(errp, "-bios '%s': it changed while it was read; try again", path);
    }
    ok = ok && bios_map(pc, d, size, errp);
    boot_image_free(&file);
    return ok;
}

/* ---- CMOS memory, in the layout SeaBIOS reads ---- */

static void cmos16(PcState *pc, uint8_t index, uint64_t v)
{
    v = MIN(v, (uint64_t)0xffff);
    rtc_set_memory(pc->rtc, index, (uint8_t)v);
    rtc_set_memory(pc->rtc, (uint8_t)(index + 1), (uint8_t)(v >> 8));
}

/* Three nibbles: the floppy is 1, the disk 2, the CD-ROM 3, the network 4; 0: nothing. */
static void cmos_boot_order(PcState *pc, const char *order)
{
    static const char devices[] = " acdn";
    uint8_t nibble[3] = { 0 };

    for (unsigned i = 0, n = 0; order[i] && n < 3; i++) {
        const char *p = strchr(devices, order[i] == 'b' ? 'a' : order[i]);
        if (p) {
            nibble[n++] = (uint8_t)(p - devices);
        }
    }
    rtc_set_memory(pc->rtc, 0x3d, (uint8_t)(nibble[1] << 4 | nibble[0]));
    rtc_set_memory(pc->rtc, 0x38, (uint8_t)(nibble[2] << 4 | 1)); /* 1: no check of floppies */
}

/* once= is over at the second reset: the first is before the first instruction. */
static void boot_order_reset(void *opaque)
{
    PcState *pc = opaque;
    const BootOpts *boot = &pc->cfg->boot;

    if (boot->once && pc->resets < 2 && ++pc->resets == 2) {
        cmos_boot_order(pc, boot->order ? boot->order : "cad");
    }
}

void pc_cmos_init(PcState *pc)
{
    const BootOpts *boot = &pc->cfg->boot;
    uint64_t above = pc->cfg->ram_size - pc->below_4g;
    cmos16(pc, 0x15, MIN(pc->below_4g / KiB, (uint64_t)640)); /* base memory, KiB */
    uint64_t ext = pc->below_4g > MiB ? (pc->below_4g - MiB) / KiB : 0;
    cmos16(pc, 0x17, ext); /* extended memory, KiB */
    cmos16(pc, 0x30, ext);
    cmos16(pc, 0x34, pc->below_4g > 16 * MiB ? (pc->below_4g - 16 * MiB) / (64 * KiB) : 0);
    for (unsigned i = 0; i < 3; i++) { /* above 4 GiB, in 64 KiB */
        rtc_set_memory(pc->rtc, (uint8_t)(0x5b + i), (uint8_t)(above >> (16 + 8 * i)));
    }
    rtc_set_memory(pc->rtc, 0x5f, (uint8_t)(pc->cfg->smp.cpus - 1));
    rtc_set_memory(pc->rtc, 0x0f, 0);
    rtc_set_memory(pc->rtc, 0x14, 0x06); /* equipment: FPU, PS/2 mouse; no floppy, no display */
    cmos_boot_order(pc, boot->once ? boot->once : boot->order ? boot->order : "cad");
    reset_register(boot_order_reset, pc);
}

/* ---- fw_cfg ---- */

static void add_basics(PcState *pc)
{
    DeviceState *fw = pc->fw_cfg;
    const MachineConfig *cfg = pc->cfg;
    uint8_t no_uuid[16] = { 0 };
    fw_cfg_add_bytes(fw, FW_CFG_UUID, cfg->uuid_set ? cfg->uuid : no_uuid, 16);
    fw_cfg_add_i64(fw, FW_CFG_RAM_SIZE, cfg->ram_size);
    fw_cfg_add_i16(fw, FW_CFG_NOGRAPHIC, 1);
    fw_cfg_add_i16(fw, FW_CFG_NB_CPUS, (uint16_t)cfg->smp.cpus);
    /* SeaBIOS takes it as the limit of APIC identifiers, which may have holes. */
    unsigned limit = 0;
    for (unsigned i = 0; i < cfg->smp.maxcpus; i++) {
        limit = MAX(limit, x86_apic_id(i) + 1);
    }
    fw_cfg_add_i16(fw, FW_CFG_MAX_CPUS, (uint16_t)limit);
    fw_cfg_add_i16(fw, FW_CFG_BOOT_MENU, cfg->boot.menu);
    fw_cfg_add_i32(fw, FW_CFG_IRQ0_OVERRIDE, 1);
}

static bool add_e820(PcState *pc, Error **errp)
{
    E820Table t;
    uint8_t buf[E820_MAX * 20];
    e820_build_ram(&t, pc->cfg->ram_size);
    e820_encode(&t, buf);
    return fw_cfg_add_file(pc->fw_cfg, "etc/e820", buf, 20 * (size_t)t.n, errp);
}

static bool add_system_states(PcState *pc, Error **errp)
{
    /* Byte n: state Sn; bit 7: supported, low bits: SLP_TYP. */
    uint8_t states[6] = { 0x80, 0, 0, 1, 0, 0x80 };
    if (pc->pm) {
        states[4] = (uint8_t)(piix4_pm_s4_val(pc->pm) | (piix4_pm_s4_enabled(pc->pm) ? 0x80 : 0));
    }
    return fw_cfg_add_file(pc->fw_cfg, "etc/system-states", states, sizeof(states), errp);
}

static bool add_acpi(PcState *pc, Error **errp)
{
    AcpiTables t;
    if (!pc->pm) {
        return true;
    }
    pc_acpi_build(pc, &t);
    for (unsigned i = 0; i < pc->cfg->smp.maxcpus; i++) {
        pc->madt_enabled[i] = acpi_madt_enabled(&t, i);
    }
    bool ok = fw_cfg_add_file(pc->fw_cfg, ACPI_FILE_TABLES, t.tables->data, t.tables->len, errp) &&
              fw_cfg_add_file(pc->fw_cfg, ACPI_FILE_RSDP, t.rsdp->data, t.rsdp->len, errp) &&
              fw_cfg_add_file(pc->fw_cfg, ACPI_FILE_LOADER, t.linker->data, t.linker->len, errp);
    acpi_free(&t);
    return ok;
}

void pc_firmware_cpu_changed(PcState *pc, unsigned cpu, bool there)
{
    const uint8_t enabled = there;
    unsigned cpus = cpu_count();
    uint8_t le[2] = { (uint8_t)cpus, (uint8_t)(cpus >> 8) };

    /* SeaBIOS waits for so many to report. */
    rtc_set_memory(pc->rtc, 0x5f, (uint8_t)(cpus - 1));
    fw_cfg_patch(pc->fw_cfg, FW_CFG_NB_CPUS, 0, le, sizeof(le));
    if (pc->pm && pc->madt_enabled[cpu] != SIZE_MAX) { /* firmware makes the check sum */
        fw_cfg_patch_file(pc->fw_cfg, ACPI_FILE_TABLES, pc->madt_enabled[cpu], &enabled, 1);
    }
}

static bool add_smbios(PcState *pc, Error **errp)
{
    unsigned count, largest;
    uint8_t anchor[SMBIOS_ANCHOR_SIZE];
    g_autoptr(GByteArray) tables = pc_smbios_build(pc, false, &count, &largest);
    smbios_anchor(anchor, tables, count, largest, 0);
    return fw_cfg_add_file(pc->fw_cfg, SMBIOS_FILE_TABLES, tables->data, tables->len, errp) &&
           fw_cfg_add_file(pc->fw_cfg, SMBIOS_FILE_ANCHOR, anchor, sizeof(anchor), errp);
}

/* For firmware that boots kernels itself; here the board has done it. */
static void add_kernel(PcState *pc)
{
    DeviceState *fw = pc->fw_cfg;
    const BootImage *b = &pc->boot;
    const char *cmdline = pc->cfg->append ? pc->cfg->append : "";
    size_t setup = 0;
    if (!b->format) {
        return;
    }
    if (boot_is_linux(b->kernel, b->kernel_size)) {
        setup = ((b->kernel[0x1f1] ? b->kernel[0x1f1] : 4) + 1u) * 512u;
        fw_cfg_add_i32(fw, FW_CFG_SETUP_SIZE, (uint32_t)setup);
        fw_cfg_add_borrowed(fw, FW_CFG_SETUP_DATA, b->kernel, setup);
    }
    fw_cfg_add_i32(fw, FW_CFG_KERNEL_SIZE, (uint32_t)(b->kernel_size - setup));
    fw_cfg_add_borrowed(fw, FW_CFG_KERNEL_DATA, b->kernel + setup, b->kernel_size - setup);
    fw_cfg_add_i32(fw, FW_CFG_INITRD_SIZE, (uint32_t)b->initrd_size);
    if (b->initrd) {
        fw_cfg_add_borrowed(fw, FW_CFG_INITRD_DATA, b->initrd, b->initrd_size);
    }
    fw_cfg_add_i32(fw, FW_CFG_CMDLINE_SIZE, (uint32_t)strlen(cmdline) + 1);
    fw_cfg_add_string(fw, FW_CFG_CMDLINE_DATA, cmdline);
}

/*
 * There is no display adapter: SeaBIOS is told to use COM1 as its console, so that what it says
 * and asks is seen.
 */
static bool add_console(PcState *pc, Error **errp)
{
    static const uint8_t com1[2] = { 0xf8, 0x03 };
    return !pc->cfg->serial[0] ||
           fw_cfg_add_file(pc->fw_cfg, "etc/sercon-port", com1, sizeof(com1), errp);
}

static bool add_menu_wait(PcState *pc, Error **errp)
{
    unsigned ms = pc->cfg->boot.splash_time_ms;
    uint8_t le[2] = { (uint8_t)ms, (uint8_t)(ms >> 8) };

    return !ms || fw_cfg_add_file(pc->fw_cfg, "etc/boot-menu-wait", le, sizeof(le), errp);
}

bool pc_fw_cfg_init(PcState *pc, Error **errp)
{
    static const uint8_t no_wait[4] = { 0xff, 0xff, 0xff, 0xff };
    pc->fw_cfg = device_new_named("fw_cfg");
    if (!device_realize(pc->fw_cfg, NULL, errp)) {
        return false;
    }
    add_basics(pc);
    add_kernel(pc);
    return add_e820(pc, errp) && add_system_states(pc, errp) && add_acpi(pc, errp) &&
           add_smbios(pc, errp) && add_console(pc, errp) &&
           /* Reboot after a failed boot: never. */
           fw_cfg_add_file(pc->fw_cfg, "etc/boot-fail-wait", no_wait, sizeof(no_wait), errp) &&
           fw_cfg_add_file(pc->fw_cfg, "bootorder", "HALT", pc->cfg->boot.strict ? 5 : 0, errp) &&
           add_menu_wait(pc, errp) && fw_cfg_add_options(pc->fw_cfg, errp);
}
