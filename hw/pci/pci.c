/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI buses and functions: addresses on the bus, configuration space with its write masks, BARs
 * that move memory regions, interrupt pins. PCI Local Bus Specification 3.0, chapter 6.
 */
#include <glib.h>
#include <string.h>
#include "hw/pci.h"

/* ---- Addresses on a bus ---- */

static bool parse_hex_field(const char **p, unsigned max, unsigned *out)
{
    gchar *end;
    if (!g_ascii_isxdigit(**p)) {
        return false;
    }
    guint64 v = g_ascii_strtoull(*p, &end, 16);
    *p = end;
    *out = (unsigned)v;
    return v <= max;
}

/* "slot" or "slot.fn", hexadecimal, as everybody writes PCI addresses. */
static bool parse_addr(const char *s, unsigned *devfn)
{
    unsigned slot, fn = 0;
    if (g_str_has_prefix(s, "0x") || g_str_has_prefix(s, "0X")) {
        s += 2;
    }
    if (!parse_hex_field(&s, PCI_SLOTS - 1, &slot)) {
        return false;
    }
    if (*s == '.') {
        s++;
        if (g_str_has_prefix(s, "0x") || g_str_has_prefix(s, "0X")) {
            s += 2;
        }
        if (!parse_hex_field(&s, PCI_FUNCS - 1, &fn)) {
            return false;
        }
    }
    *devfn = PCI_DEVFN(slot, fn);
    return *s == '\0';
}

PCIDevice *pci_find_device(PCIBus *bus, uint8_t devfn)
{
    return atomic_load_explicit(&bus->devices[devfn], memory_order_acquire);
}

static bool choose_devfn(PCIBus *bus, PCIDevice *pd, unsigned *devfn, Error **errp)
{
    if (pd->addr) {
        if (!parse_addr(pd->addr, devfn)) {
            error_setg(errp, "addr=%s: not a PCI address: slot 0-1f, or slot.function 0-7, in "
                       "hexadecimal", pd->addr);
            return false;
        }
        return true;
    }
    for (unsigned slot = 0; slot < PCI_SLOTS; slot++) {
        bool free = true;
        for (unsigned fn = 0; fn < PCI_FUNCS; fn++) {
            free = free && !pci_find_device(bus, PCI_DEVFN(slot, fn));
        }
        if (free) {
            *devfn = PCI_DEVFN(slot, 0);
            return true;
        }
    }
    error_setg(errp, "no free slot on bus %s for %s", bus->bus.name, pd->dev.type->name);
    return false;
}

/* Section 6.2.1, Header Type: software looks at functions 1..7 only if function 0 has bit 7. */
static bool check_functions(PCIBus *bus, PCIDevice *pd, unsigned devfn, Error **errp)
{
    unsigned slot = PCI_SLOT(devfn), fn = PCI_FUNC(devfn);
    PCIDevice *other = pci_find_device(bus, (uint8_t)devfn);
    if (other) {
        error_setg(errp, "PCI address %02x.%x on bus %s, wanted by %s, is in use by %s", slot, fn,
                   bus->bus.name, pd->dev.type->name, other->dev.type->name);
        return false;
    }
    if (fn != 0) {
        PCIDevice *f0 = pci_find_device(bus, (uint8_t)PCI_DEVFN(slot, 0));
        if (f0 && !f0->multifunction) {
            error_setg(errp, "PCI address %02x.%x: %s in function 0 is a single-function device; "
                       "give it multifunction=on", slot, fn, f0->dev.type->name);
            return false;
        }
        return true;
    }
    for (unsigned i = 1; i < PCI_FUNCS && !pd->multifunction; i++) {
        if (pci_find_device(bus, (uint8_t)PCI_DEVFN(slot, i))) {
            error_setg(errp, "PCI address %02x.0 needs multifunction=on, as function %u of the "
                       "slot is in use", slot, i);
            return false;
        }
    }
    return true;
}

static void init_config(PCIDevice *pd)
{
    pci_set_word(pd->wmask + PCI_COMMAND,
                 PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
                     PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
    pci_set_word(pd->w1cmask + PCI_STATUS, PCI_STATUS_W1C);
    pd->wmask[PCI_CACHE_LINE_SIZE] = 0xff;
    pd->wmask[PCI_LATENCY_TIMER] = 0xff;
    pd->wmask[PCI_INTERRUPT_LINE] = 0xff;
    pci_set_word(pd->config + PCI_SUBSYSTEM_VENDOR_ID, PCI_SUBVENDOR_DEFAULT);
    pci_set_word(pd->config + PCI_SUBSYSTEM_ID, PCI_SUBDEVICE_DEFAULT);
    pd->config[PCI_HEADER_TYPE] = pd->multifunction ? PCI_HEADER_TYPE_MULTIFUNCTION : 0;
    memset(pd->used, 1, PCI_HEADER_END);
}

static bool pci_bus_attach(Bus *b, DeviceState *dev, Error **errp)
{
    PCIBus *bus = container_of(b, PCIBus, bus);
    PCIDevice *pd = pci_device(dev);
    unsigned devfn;
    if (!choose_devfn(bus, pd, &devfn, errp) || !check_functions(bus, pd, devfn, errp)) {
        return false;
    }
    pd->devfn = (uint8_t)devfn;
    qemu_mutex_init(&pd->config_lock, LOCK_RANK_DEVICE_LO, "pci-config");
    for (unsigned i = 0; i < ARRAY_SIZE(pd->bar); i++) {
        pd->bar[i].addr = PCI_BAR_UNMAPPED;
    }
    init_config(pd);
    atomic_store_explicit(&bus->devices[devfn], pd, memory_order_release);
    return true;
}

static void pci_bus_detach(Bus *b, DeviceState *dev)
{
    PCIBus *bus = container_of(b, PCIBus, bus);
    PCIDevice *pd = pci_device(dev);
    PCIDevice *expected = pd;
    if (atomic_compare_exchange_strong(&bus->devices[pd->devfn], &expected, NULL)) {
        qemu_mutex_destroy(&pd->config_lock);
    }
}

static void pci_bus_describe(Bus *b, DeviceState *dev, char *buf, size_t len)
{
    PCIDevice *pd = pci_device(dev);
    g_snprintf(buf, len, "class %04x, addr %02x:%02x.%x, pci id %04x:%04x",
               pci_get_word(pd->config + PCI_CLASS_DEVICE),
               container_of(b, PCIBus, bus)->number, PCI_SLOT(pd->devfn), PCI_FUNC(pd->devfn),
               pci_get_word(pd->config + PCI_VENDOR_ID), pci_get_word(pd->config + PCI_DEVICE_ID));
}

void pci_bus_init(PCIBus *bus, const char *name, DeviceState *parent)
{
    memset(bus, 0, sizeof(*bus));
    bus_init(&bus->bus, "pci", name, parent);
    bus->bus.attach = pci_bus_attach;
    bus->bus.detach = pci_bus_detach;
    bus->bus.describe = pci_bus_describe;
}

/* ---- Identity and BARs ---- */

void pci_set_ids(PCIDevice *pd, uint16_t vendor, uint16_t device, uint8_t revision,
                 uint16_t class_code, uint8_t prog_if)
{
    pci_set_word(pd->config + PCI_VENDOR_ID, vendor);
    pci_set_word(pd->config + PCI_DEVICE_ID, device);
    pd->config[PCI_REVISION_ID] = revision;
    pd->config[PCI_CLASS_PROG] = prog_if;
    pci_set_word(pd->config + PCI_CLASS_DEVICE, class_code);
}

void pci_set_interrupt_pin(PCIDevice *pd, uint8_t pin)
{
    pd->config[PCI_INTERRUPT_PIN] = pin;
}

void pci_register_bar(PCIDevice *pd, unsigned n, uint8_t type, MemoryRegion *mr)
{
    PCIBar *bar = &pd->bar[n];
    uint8_t *mask = pd->wmask + PCI_BASE_ADDRESS_0 + 4 * n;
    uint64_t m = ~(mr->size - 1);
    bar->mr = mr;
    bar->size = mr->size;
    bar->type = type;
    pci_set_long(pd->config + PCI_BASE_ADDRESS_0 + 4 * n, type);
    pci_set_long(mask, (uint32_t)m & ~(type & PCI_BAR_IO ? 3u : 15u));
    if (type & PCI_BAR_MEM64 && !(type & PCI_BAR_IO)) {
        pci_set_long(mask + 4, (uint32_t)(m >> 32));
    }
}

/* Where BAR n is to be, from config space; config_lock held. */
static uint64_t bar_address(const PCIDevice *pd, unsigned n)
{
    const PCIBar *bar = &pd->bar[n];
    uint16_t cmd = pci_get_word(pd->config + PCI_COMMAND);
    uint64_t v = pci_get_long(pd->config + PCI_BASE_ADDRESS_0 + 4 * n);
    uint64_t addr, last, limit;
    if (bar->type & PCI_BAR_IO) {
        addr = v & ~3ull;
        limit = 0xffff;
        if (!(cmd & PCI_COMMAND_IO)) {
            return PCI_BAR_UNMAPPED;
        }
    } else {
        addr = v & ~15ull;
        limit = UINT32_MAX - 1; /* all ones is a size probe */
        if (bar->type & PCI_BAR_MEM64) {
            addr |= (uint64_t)pci_get_long(pd->config + PCI_BASE_ADDRESS_0 + 4 * n + 4) << 32;
            limit = UINT64_MAX - 1;
        }
        if (!(cmd & PCI_COMMAND_MEMORY)) {
            return PCI_BAR_UNMAPPED;
        }
    }
    last = addr + bar->size - 1;
    /* Address 0 means "not assigned" to all software that looks. */
    return addr == 0 || last < addr || last > limit ? PCI_BAR_UNMAPPED : addr;
}

/* config_lock held. */
static void update_mappings(PCIDevice *pd)
{
    PCIBus *bus = pci_device_bus(pd);
    bool begun = false;
    for (unsigned n = 0; n < PCI_BARS; n++) {
        PCIBar *bar = &pd->bar[n];
        uint64_t addr = bar->mr ? bar_address(pd, n) : PCI_BAR_UNMAPPED;
        if (addr == bar->addr) {
            continue;
        }
        if (!begun) {
            memory_transaction_begin();
            begun = true;
        }
        MemoryRegion *space = bar->type & PCI_BAR_IO ? bus->io : bus->mem;
        if (bar->addr != PCI_BAR_UNMAPPED) {
            memory_region_del_subregion(space, bar->mr);
        }
        if (addr != PCI_BAR_UNMAPPED) {
            memory_region_add_subregion(space, addr, bar->mr, 1);
        }
        bar->addr = addr;
    }
    if (begun) {
        memory_transaction_commit();
    }
}

/* ---- Interrupt pin ---- */

bool pci_intx_replaced(const PCIDevice *pd)
{
    return (pd->msi_cap && pd->config[pd->msi_cap + 2] & 1) ||
           (pd->msix_cap && pd->config[pd->msix_cap + 3] & 0x80);
}

/* config_lock held. */
static void update_intx(PCIDevice *pd)
{
    PCIBus *bus = pci_device_bus(pd);
    uint8_t pin = pd->config[PCI_INTERRUPT_PIN];
    bool level = pd->intx_state && pin != 0 && !pci_intx_replaced(pd) &&
                 !(pci_get_word(pd->config + PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE);
    /* Section 6.2.3: Interrupt Status shows the device's wish, whatever Interrupt Disable says. */
    if (pd->intx_state) {
        pd->config[PCI_STATUS] |= PCI_STATUS_INTERRUPT;
    } else {
        pd->config[PCI_STATUS] &= (uint8_t)~PCI_STATUS_INTERRUPT;
    }
    if (level != pd->intx_sent) {
        pd->intx_sent = level;
        if (bus && bus->set_intx) {
            bus->set_intx(bus->intx_opaque, pd->devfn, pin - 1u, level);
        }
    }
}

void pci_set_irq(PCIDevice *pd, int level)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    pd->intx_state = level != 0;
    update_intx(pd);
}

/* ---- Configuration accesses ---- */

static bool overlaps(unsigned a, unsigned alen, unsigned b, unsigned blen)
{
    return a < b + blen && b < a + alen;
}

uint32_t pci_config_read(PCIBus *bus, uint8_t devfn, unsigned addr, unsigned len)
{
    PCIDevice *pd = pci_find_device(bus, devfn);
    uint32_t v = 0;
    if (!pd) {
        return UINT32_MAX >> (32 - 8 * len);
    }
    if (pd->ops && pd->ops->config_read) {
        return pd->ops->config_read(pd, addr, len);
    }
    QEMU_LOCK_GUARD(&pd->config_lock);
    for (unsigned i = 0; i < len; i++) {
        v |= (uint32_t)pd->config[addr + i] << (8 * i);
    }
    return v;
}

/* config_lock held. */
static void config_store(PCIDevice *pd, unsigned addr, uint32_t value, unsigned len)
{
    for (unsigned i = 0; i < len; i++, value >>= 8) {
        uint8_t *p = &pd->config[addr + i];
        uint8_t wm = pd->wmask[addr + i], b = (uint8_t)value;
        *p = (uint8_t)((*p & ~wm) | (b & wm));
        *p &= (uint8_t) ~(b & pd->w1cmask[addr + i]);
    }
}

/* config_lock held. */
static void config_effects(PCIDevice *pd, unsigned addr, unsigned len)
{
    if (overlaps(addr, len, PCI_COMMAND, 2) ||
        overlaps(addr, len, PCI_BASE_ADDRESS_0, 4 * PCI_BARS)) {
        update_mappings(pd);
    }
    if (pd->msi_cap && overlaps(addr, len, pd->msi_cap, 24)) {
        pci_msi_config_written(pd);
    }
    if (pd->msix_cap && overlaps(addr, len, pd->msix_cap, 4)) {
        pci_msix_config_written(pd);
    }
    update_intx(pd);
}

void pci_config_write(PCIBus *bus, uint8_t devfn, unsigned addr, uint32_t value, unsigned len)
{
    PCIDevice *pd = pci_find_device(bus, devfn);
    if (!pd) {
        return;
    }
    qemu_mutex_lock(&pd->config_lock);
    config_store(pd, addr, value, len);
    config_effects(pd, addr, len);
    qemu_mutex_unlock(&pd->config_lock);
    if (pd->ops && pd->ops->config_write) {
        pd->ops->config_write(pd, addr, value, len);
    }
}

/* ---- Capabilities ---- */

uint8_t pci_add_capability(PCIDevice *pd, uint8_t id, uint8_t size, Error **errp)
{
    unsigned room = ROUND_UP((unsigned)size, 4u);
    for (unsigned off = PCI_HEADER_END; off + room <= PCI_CONFIG_SIZE; off += 4) {
        unsigned i = 0;
        while (i < room && !pd->used[off + i]) {
            i++;
        }
        if (i < room) {
            continue;
        }
        memset(pd->used + off, 1, room);
        pd->config[off] = id;
        pd->config[off + 1] = pd->config[PCI_CAPABILITY_LIST];
        pd->config[PCI_CAPABILITY_LIST] = (uint8_t)off;
        pd->config[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
        return (uint8_t)off;
    }
    error_setg(errp, "%s: no room for PCI capability %02xh of %u bytes", pd->dev.type->name, id,
               size);
    return 0;
}

/* ---- Life of a device ---- */

void pci_device_reset(PCIDevice *pd)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++) {
        pd->config[i] &= (uint8_t) ~(pd->wmask[i] | pd->w1cmask[i]);
    }
    pci_msi_reset(pd);
    pd->intx_state = false;
    update_mappings(pd);
    update_intx(pd);
}

void pci_device_cleanup(PCIDevice *pd)
{
    qemu_mutex_lock(&pd->config_lock);
    pci_set_word(pd->config + PCI_COMMAND, 0);
    pd->intx_state = false;
    update_mappings(pd);
    update_intx(pd);
    qemu_mutex_unlock(&pd->config_lock);
    if (pd->msix_cap) {
        pci_msix_fini(pd);
    }
}

bool pci_is_bus_master(PCIDevice *pd)
{
    QEMU_LOCK_GUARD(&pd->config_lock);
    return pd->config[PCI_COMMAND] & PCI_COMMAND_MASTER;
}

MemTxResult pci_dma_read(PCIDevice *pd, hwaddr addr, void *buf, uint64_t len)
{
    if (!pci_is_bus_master(pd)) {
        memset(buf, 0xff, len);
        return MEMTX_DECODE_ERROR;
    }
    return address_space_read(&address_space_memory, addr, buf, len);
}

MemTxResult pci_dma_write(PCIDevice *pd, hwaddr addr, const void *buf, uint64_t len)
{
    if (!pci_is_bus_master(pd)) {
        return MEMTX_DECODE_ERROR;
    }
    return address_space_write(&address_space_memory, addr, buf, len);
}

static bool pci_post_load(void *opaque, int version, Error **errp)
{
    PCIDevice *pd = opaque;
    QEMU_LOCK_GUARD(&pd->config_lock);
    update_mappings(pd);
    update_intx(pd);
    return true;
}

static const VMStateField pci_fields[] = {
    VMS_FIELD(VMS_BUFFER, PCIDevice, config, PCI_CONFIG_SIZE),
    VMS_FIELD(VMS_BOOL, PCIDevice, intx_state, 1),
    VMS_END,
};

const VMState vmstate_pci_device = {
    .name = "pci-device",
    .version = 1,
    .minimum_version = 1,
    .fields = pci_fields,
    .post_load = pci_post_load,
};
