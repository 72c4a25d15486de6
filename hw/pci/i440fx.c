/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 82441FX-like host bridge: the root of pci.0, shadowing of C0000h-FFFFFh by the PAM registers, and
 * the SMRAM window at A0000h. (Intel 290549, sections 3.2.16 PAM and 3.2.22 SMRAM.)
 */
#include <string.h>
#include "hw/i440fx.h"

#define PAM_SEGMENTS 13
#define PAM_LOW      0xc0000u
#define PAM_ROM_LOW  0xe0000u /* segments from here on have the BIOS beneath */
#define PAM_END      0x100000u
#define PAM_RE       1u
#define PAM_WE       2u

#define SMRAM_LOW      0xa0000u
#define SMRAM_SIZE     0x20000u
#define SMRAM_D_OPEN   0x40u
#define SMRAM_D_CLS    0x20u
#define SMRAM_D_LCK    0x10u
#define SMRAM_G_SMRAME 0x08u
#define SMRAM_DEFAULT  0x02u /* C_BASE_SEG: A0000h, fixed */

typedef struct I440fxHost {
    DeviceState dev;
    I440fxSetup setup;
    PCIBus bus;
    PCIHost host;
    MemoryRegion pci_mem; /* all PCI memory space, beneath everything */
    MemoryRegion bios_rom, isa_bios;
    MemoryRegion nobody; /* A0000h-FFFFFh where no PCI or ISA device answers */
} I440fxHost;

typedef struct PamSegment {
    uint32_t start, size;
    MemoryRegion alias[4]; /* by RE | WE; one is enabled */
    unsigned mode;
} PamSegment;

typedef struct I440fx {
    PCIDevice pd;
    I440fxHost *hostdev;
    /* Guards the segments and the window; config registers have the PCI core's lock. */
    QemuMutex lock;
    PamSegment seg[PAM_SEGMENTS];
    MemoryRegion vga_window; /* PCI at A0000h; disabled: RAM */
    MemoryRegion wo_rom, wo_void; /* write RAM, read ROM or nothing */
} I440fx;

static I440fxHost *host_of(DeviceState *dev)
{
    return container_of(dev, I440fxHost, dev);
}

/* ---- i440FX-pcihost ---- */

void i440fx_pcihost_setup(DeviceState *pcihost, const I440fxSetup *setup)
{
    host_of(pcihost)->setup = *setup;
}

PCIBus *i440fx_pcihost_bus(DeviceState *pcihost)
{
    return &host_of(pcihost)->bus;
}

PCIHost *i440fx_pcihost_host(DeviceState *pcihost)
{
    return &host_of(pcihost)->host;
}

/*
 * A container lets what lies beneath shine through where it holds nothing; but a cycle that is
 * sent to PCI and not claimed ends in a master abort, and does not come back to RAM.
 */
static uint64_t nobody_read(void *opaque, hwaddr off, unsigned size)
{
    return UINT64_MAX;
}

static void nobody_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
}

static const MemoryRegionOps nobody_ops = {
    .read = nobody_read, .write = nobody_write, .unaligned = true,
};

static bool pcihost_realize(DeviceState *dev, Error **errp)
{
    I440fxHost *h = host_of(dev);
    pci_bus_init(&h->bus, "pci.0", dev);
    memory_region_init_container(&h->pci_mem, "pci", UINT64_MAX);
    memory_region_add_subregion(memory_root(), 0, &h->pci_mem, -1);
    memory_region_init_io(&h->nobody, &nobody_ops, h, "pci-unclaimed", PAM_END - SMRAM_LOW);
    memory_region_add_subregion(&h->pci_mem, SMRAM_LOW, &h->nobody, -1);
    h->bus.mem = &h->pci_mem;
    h->bus.io = io_root();
    if (h->setup.bios) {
        /* The ISA half of the BIOS, seen wherever PAM sends reads to PCI. */
        uint64_t size = MIN(h->setup.bios->size, PAM_END - PAM_ROM_LOW);
        memory_region_init_rom(&h->bios_rom, h->setup.bios, "pc.bios-isa");
        memory_region_init_alias(&h->isa_bios, "isa-bios", &h->bios_rom,
                                 h->setup.bios->size - size, size);
        memory_region_set_readonly(&h->isa_bios, true);
        memory_region_add_subregion(&h->pci_mem, PAM_END - size, &h->isa_bios, 1);
    }
    pci_host_init(&h->host, &h->bus);
    return true;
}

static void pcihost_reset(DeviceState *dev)
{
    pci_host_reset(&host_of(dev)->host);
}

static const VMStateField pcihost_fields[] = {
    { .name = "config_address", .kind = VMS_U32,
      .offset = offsetof(I440fxHost, host.config_address), .count = 1 },
    VMS_END,
};
static const VMState pcihost_vmstate = {
    .name = "i440FX-pcihost", .version = 1, .minimum_version = 1, .fields = pcihost_fields,
};
static const DeviceType pcihost_type = {
    .name = "i440FX-pcihost",
    .desc = "host bridge: PCI root bus",
    .bus = "system",
    .instance_size = sizeof(I440fxHost),
    .realize = pcihost_realize,
    .reset = pcihost_reset,
    .vmstate = &pcihost_vmstate,
};
DEVICE_TYPE(pcihost_type);

/* ---- Segments that read from PCI and write to RAM ---- */

static void write_shadow(I440fx *d, uint32_t gpa, uint64_t v, unsigned size)
{
    RAMBlock *rb = d->hostdev->setup.ram_block;
    if (gpa + size <= rb->size) {
        memcpy(rb->host + gpa, &v, size);
        ram_block_written(rb, gpa, size);
    }
}

static void wo_rom_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    I440fx *d = opaque;
    write_shadow(d, (uint32_t)(PAM_END - d->hostdev->setup.bios->size + off), v, size);
}

static void wo_void_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    write_shadow(opaque, (uint32_t)(PAM_LOW + off), v, size);
}

/* The ROM itself is read without coming here. */
static const MemoryRegionOps wo_rom_ops = { .read = nobody_read, .write = wo_rom_write };
static const MemoryRegionOps wo_void_ops = { .read = nobody_read, .write = wo_void_write };

/* ---- PAM and SMRAM ---- */

static void pam_init_segment(I440fx *d, PamSegment *s)
{
    I440fxHost *h = d->hostdev;
    static const char *const names[4] = { "pam-pci", "pam-rom", "pam-wo", "pam-ram" };
    RAMBlock *bios = h->setup.bios;
    bool over_rom = bios && s->start >= PAM_END - MIN(bios->size, PAM_END - PAM_ROM_LOW);
    memory_region_init_alias(&s->alias[0], names[0], &h->pci_mem, s->start, s->size);
    memory_region_init_alias(&s->alias[PAM_RE], names[1], h->setup.ram, s->start, s->size);
    memory_region_set_readonly(&s->alias[PAM_RE], true);
    if (over_rom) {
        memory_region_init_alias(&s->alias[PAM_WE], names[2], &d->wo_rom,
                                 s->start - (PAM_END - bios->size), s->size);
    } else {
        memory_region_init_alias(&s->alias[PAM_WE], names[2], &d->wo_void, s->start - PAM_LOW,
                                 s->size);
    }
    memory_region_init_alias(&s->alias[3], names[3], h->setup.ram, s->start, s->size);
    for (unsigned m = 0; m < 4; m++) {
        memory_region_set_enabled(&s->alias[m], m == 0);
        memory_region_add_subregion(memory_root(), s->start, &s->alias[m], 1);
    }
}

/* Nibble n counts from 59h's high half: F0000h (64 KiB), then C0000h upward in 16 KiB steps. */
static void pam_init(I440fx *d)
{
    for (unsigned n = 0; n < PAM_SEGMENTS; n++) {
        PamSegment *s = &d->seg[n];
        s->start = n == 0 ? 0xf0000 : PAM_LOW + (n - 1) * 0x4000;
        s->size = n == 0 ? 0x10000 : 0x4000;
        pam_init_segment(d, s);
    }
}

/* Brings the map in line with the registers, which are read first: their lock comes before the map's. */
static void i440fx_update(I440fx *d)
{
    QEMU_LOCK_GUARD(&d->lock);
    PCIBus *bus = pci_device_bus(&d->pd);
    uint32_t pam[PAM_SEGMENTS];
    for (unsigned n = 0; n < PAM_SEGMENTS; n++) {
        unsigned reg = I440FX_PAM0 + (n + 1) / 2, shift = n % 2 ? 0 : 4;
        pam[n] = pci_config_read(bus, d->pd.devfn, reg, 1) >> shift & (PAM_RE | PAM_WE);
    }
    uint32_t smram = pci_config_read(bus, d->pd.devfn, I440FX_SMRAM, 1);
    bool open = (smram & SMRAM_G_SMRAME) && (smram & SMRAM_D_OPEN);
    memory_transaction_begin();
    for (unsigned n = 0; n < PAM_SEGMENTS; n++) {
        PamSegment *s = &d->seg[n];
        if (pam[n] != s->mode) {
            memory_region_set_enabled(&s->alias[s->mode], false);
            memory_region_set_enabled(&s->alias[pam[n]], true);
            s->mode = pam[n];
        }
    }
    if (d->vga_window.enabled == open) {
        memory_region_set_enabled(&d->vga_window, !open);
    }
    memory_transaction_commit();
}

static void i440fx_config_write(PCIDevice *pd, unsigned addr, uint32_t value, unsigned len)
{
    I440fx *d = container_of(pd, I440fx, pd);
    bool smram = addr <= I440FX_SMRAM && I440FX_SMRAM < addr + len;
    if (smram) {
        /* D_LCK closes the window and makes the register read-only until reset. */
        QEMU_LOCK_GUARD(&pd->config_lock);
        if (pd->config[I440FX_SMRAM] & SMRAM_D_LCK) {
            pd->config[I440FX_SMRAM] &= (uint8_t)~SMRAM_D_OPEN;
            pd->wmask[I440FX_SMRAM] = 0;
        }
    }
    if (smram || (addr < I440FX_PAM0 + 7 && addr + len > I440FX_PAM0)) {
        i440fx_update(d);
    }
}

static const PCIDeviceOps i440fx_pci_ops = { .config_write = i440fx_config_write };

static void i440fx_reset(DeviceState *dev)
{
    I440fx *d = container_of(pci_device(dev), I440fx, pd);
    d->pd.wmask[I440FX_SMRAM] = SMRAM_D_OPEN | SMRAM_D_CLS | SMRAM_D_LCK | SMRAM_G_SMRAME;
    pci_device_reset(&d->pd);
    d->pd.config[I440FX_SMRAM] = SMRAM_DEFAULT;
    i440fx_update(d);
}

static bool i440fx_realize(DeviceState *dev, Error **errp)
{
    I440fx *d = container_of(pci_device(dev), I440fx, pd);
    PCIDevice *pd = &d->pd;
    d->hostdev = container_of(pci_device_bus(pd), I440fxHost, bus);
    qemu_mutex_init(&d->lock, LOCK_RANK_DEVICE, "i440FX");
    pd->ops = &i440fx_pci_ops;
    pci_set_ids(pd, 0x8086, 0x1237, 2, PCI_CLASS_BRIDGE_HOST, 0);
    pci_set_word(pd->config + PCI_STATUS, PCI_STATUS_DEVSEL_MEDIUM);
    pd->wmask[I440FX_PAM0] = 0x30;
    memset(pd->wmask + I440FX_PAM0 + 1, 0x33, 6);
    if (d->hostdev->setup.bios) {
        memory_region_init_romd(&d->wo_rom, d->hostdev->setup.bios, &wo_rom_ops, d, "pam-wo-rom");
    }
    memory_region_init_io(&d->wo_void, &wo_void_ops, d, "pam-wo-void", PAM_END - PAM_LOW);
    pam_init(d);
    memory_region_init_alias(&d->vga_window, "vga-window", &d->hostdev->pci_mem, SMRAM_LOW,
                             SMRAM_SIZE);
    memory_region_add_subregion(memory_root(), SMRAM_LOW, &d->vga_window, 1);
    return true;
}

static bool i440fx_post_load(void *opaque, int version, Error **errp)
{
    i440fx_update(opaque);
    return true;
}

static const Property i440fx_props[] = { PCI_PROPS(I440fx, pd), DEFINE_PROP_END };
static const VMStateField i440fx_fields[] = { VMS_PCI_DEVICE(I440fx, pd), VMS_END };
static const VMState i440fx_vmstate = {
    .name = "i440FX", .version = 1, .minimum_version = 1, .fields = i440fx_fields,
    .post_load = i440fx_post_load,
};
static const DeviceType i440fx_type = {
    .name = "i440FX",
    .desc = "host bridge",
    .bus = "pci",
    .instance_size = sizeof(I440fx),
    .props = i440fx_props,
    .realize = i440fx_realize,
    .reset = i440fx_reset,
    .vmstate = &i440fx_vmstate,
};
DEVICE_TYPE(i440fx_type);
