/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI: buses, devices, configuration space. Sources: PCI Local Bus Specification 3.0 (chapter 6:
 * configuration space, 6.7: capabilities, 6.8: MSI and MSI-X; 3.2.2.3.2: mechanism #1).
 *
 * Locks: each function has a config_lock (rank DEVICE_LO), so a device may call anything here under
 * its own lock of rank DEVICE. Interrupt pins go to the bus's routing, which takes IRQ_ROUTE. Hooks
 * of a device (config_write) are called with no lock held.
 */
#ifndef HW_PCI_H
#define HW_PCI_H

#include "hw/device.h"
#include "memory/memory.h"

#define PCI_CONFIG_SIZE 256
#define PCI_SLOTS       32
#define PCI_FUNCS       8
#define PCI_DEVFN(s, f) ((((s)&0x1f) << 3) | ((f)&7))
#define PCI_SLOT(devfn) (((devfn) >> 3) & 0x1f)
#define PCI_FUNC(devfn) ((devfn)&7)

/* Registers of the type 0 header (section 6.1). */
enum {
    PCI_VENDOR_ID = 0x00, PCI_DEVICE_ID = 0x02, PCI_COMMAND = 0x04, PCI_STATUS = 0x06,
    PCI_REVISION_ID = 0x08, PCI_CLASS_PROG = 0x09, PCI_CLASS_DEVICE = 0x0a,
    PCI_CACHE_LINE_SIZE = 0x0c, PCI_LATENCY_TIMER = 0x0d, PCI_HEADER_TYPE = 0x0e,
    PCI_BASE_ADDRESS_0 = 0x10, PCI_SUBSYSTEM_VENDOR_ID = 0x2c, PCI_SUBSYSTEM_ID = 0x2e,
    PCI_ROM_ADDRESS = 0x30, PCI_CAPABILITY_LIST = 0x34, PCI_INTERRUPT_LINE = 0x3c,
    PCI_INTERRUPT_PIN = 0x3d, PCI_HEADER_END = 0x40,
};

#define PCI_COMMAND_IO           0x0001u
#define PCI_COMMAND_MEMORY       0x0002u
#define PCI_COMMAND_MASTER       0x0004u
#define PCI_COMMAND_PARITY       0x0040u
#define PCI_COMMAND_SERR         0x0100u
#define PCI_COMMAND_INTX_DISABLE 0x0400u

#define PCI_STATUS_INTERRUPT     0x0008u
#define PCI_STATUS_CAP_LIST      0x0010u
#define PCI_STATUS_DEVSEL_MEDIUM 0x0200u
/* Bits that are cleared by writing ones: master data parity error and 11..15. */
#define PCI_STATUS_W1C           0xf900u

#define PCI_HEADER_TYPE_MULTIFUNCTION 0x80u

#define PCI_BAR_IO       0x01u
#define PCI_BAR_MEM      0x00u
#define PCI_BAR_MEM64    0x04u
#define PCI_BAR_PREFETCH 0x08u

#define PCI_CAP_ID_PM     0x01
#define PCI_CAP_ID_MSI    0x05
#define PCI_CAP_ID_VENDOR 0x09
#define PCI_CAP_ID_MSIX   0x11

#define PCI_CLASS_BRIDGE_HOST  0x0600
#define PCI_CLASS_BRIDGE_ISA   0x0601
#define PCI_CLASS_BRIDGE_OTHER 0x0680

/* Subsystem IDs of devices that have none of their own. */
#define PCI_SUBVENDOR_DEFAULT 0x1af4
#define PCI_SUBDEVICE_DEFAULT 0x1100

#define PCI_BARS       6
#define PCI_ROM_SLOT   6 /* index of the option ROM in PCIDevice.bar */
#define PCI_BAR_UNMAPPED UINT64_MAX

typedef struct PCIDevice PCIDevice;

typedef struct PCIBar {
    MemoryRegion *mr; /* NULL: not implemented */
    uint64_t size;    /* power of two */
    uint8_t type;     /* PCI_BAR_* */
    uint64_t addr;    /* where it is mapped now; PCI_BAR_UNMAPPED: nowhere */
} PCIBar;

typedef struct PCIBus {
    Bus bus;
    uint8_t number;
    MemoryRegion *mem, *io; /* containers in which BARs appear, at BAR addresses */
    /*
     * Level of pin 0..3 (INTA..INTD) of devfn. Called once for each change, after the command
     * register's gate; the receiver ORs what shares a line. RT_SAFE, may take IRQ_ROUTE and above.
     */
    void (*set_intx)(void *opaque, uint8_t devfn, unsigned pin, int level);
    void *intx_opaque;
    _Atomic(PCIDevice *) devices[PCI_SLOTS * PCI_FUNCS];
} PCIBus;

/* What a device implements besides DeviceType; const, set in realize before BARs are registered. */
typedef struct PCIDeviceOps {
    /*
     * Optional. The guest wrote len (1, 2, 4) bytes at addr; config[] is up to date. VCPU thread,
     * no lock held.
     */
    void (*config_write)(PCIDevice *pd, unsigned addr, uint32_t value, unsigned len);
    /* Optional. Reads that are not just config[]. RT_SAFE, no lock held. */
    uint32_t (*config_read)(PCIDevice *pd, unsigned addr, unsigned len);
} PCIDeviceOps;

/* One entry of an MSI-X table, in the layout of section 6.8.2.6. */
typedef struct MsixEntry {
    uint64_t addr;
    uint32_t data;
    uint32_t ctrl; /* bit 0: masked */
} MsixEntry;

struct PCIDevice {
    DeviceState dev; /* first */

    /* Properties: PCI_PROPS */
    char *addr; /* "slot.fn" in hexadecimal; NULL: the first free slot */
    bool multifunction;

    uint8_t devfn;
    const PCIDeviceOps *ops;

    /*
     * config_lock guards config[], bar[].addr, intx_state, intx_sent, the MSI and MSI-X state.
     * wmask: bits the guest may write; w1cmask: bits that a written one clears. The rest is fixed
     * at realize.
     */
    QemuMutex config_lock;
    uint8_t config[PCI_CONFIG_SIZE] QEMU_ALIGNED(8);
    uint8_t wmask[PCI_CONFIG_SIZE], w1cmask[PCI_CONFIG_SIZE];
    uint8_t used[PCI_CONFIG_SIZE]; /* bytes taken by capabilities */
    PCIBar bar[PCI_BARS + 1];
    bool intx_state; /* what the device says */
    bool intx_sent;  /* what the bus was told */

    uint8_t msi_cap; /* offset of the capability, 0: none */
    uint8_t msi_vectors;
    uint8_t msix_cap;
    uint16_t msix_vectors;
    MsixEntry *msix_table;
    uint64_t *msix_pba;
    MemoryRegion msix_table_mr, msix_pba_mr;
};

static inline PCIDevice *pci_device(DeviceState *dev)
{
    return (PCIDevice *)dev;
}
static inline PCIBus *pci_device_bus(const PCIDevice *pd)
{
    return (PCIBus *)pd->dev.bus;
}

/* Properties each PCI device type lists; T embeds PCIDevice as member f. */
#define PCI_PROPS(T, f)                                                                            \
    DEFINE_PROP("addr", PROP_STRING, T, f.addr, 0, "slot and function, e.g. 04.0"),                \
        DEFINE_PROP("multifunction", PROP_BOOL, T, f.multifunction, 0,                             \
                    "other functions may share the slot")

/* State common to all PCI devices, for their VMState. */
extern const VMState vmstate_pci_device;
#define VMS_PCI_DEVICE(T, f)                                                                       \
    {                                                                                              \
        .name = #f, .kind = VMS_STRUCT, .offset = offsetof(T, f), .count = 1,                      \
        .sub = &vmstate_pci_device                                                                 \
    }

static inline uint16_t pci_get_word(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t pci_get_long(const uint8_t *p)
{
    return pci_get_word(p) | (uint32_t)pci_get_word(p + 2) << 16;
}
static inline void pci_set_word(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void pci_set_long(uint8_t *p, uint32_t v)
{
    pci_set_word(p, (uint16_t)v);
    pci_set_word(p + 2, (uint16_t)(v >> 16));
}

/* ---- Buses ---- */

/* HELPER_ONLY. The caller then sets mem, io and set_intx. name is copied ("pci.0"). */
void pci_bus_init(PCIBus *bus, const char *name, DeviceState *parent);
/* RT_SAFE. NULL: nobody answers. */
PCIDevice *pci_find_device(PCIBus *bus, uint8_t devfn);
/*
 * RT_SAFE; VCPU thread for writes, which may change the memory map. len 1, 2 or 4, addr + len <=
 * PCI_CONFIG_SIZE. Reads of absent functions give all ones.
 */
uint32_t pci_config_read(PCIBus *bus, uint8_t devfn, unsigned addr, unsigned len);
void pci_config_write(PCIBus *bus, uint8_t devfn, unsigned addr, uint32_t value, unsigned len);
/* Machine stopped. What firmware does: gives each BAR an address in [mem_base, mem_limit) or
 * [io_base, io_limit), writes interrupt lines (irq_of is told devfn and pin 0..3) and enables
 * decoding. Resources that do not fit stay disabled. Returns false if some did. */
bool pci_assign_resources(PCIBus *bus, uint64_t mem_base, uint64_t mem_limit, uint32_t io_base,
                          uint32_t io_limit, uint8_t (*irq_of)(uint8_t devfn, unsigned pin));

/* ---- Devices: all HELPER_ONLY, from realize, unless noted ---- */

void pci_set_ids(PCIDevice *pd, uint16_t vendor, uint16_t device, uint8_t revision,
                 uint16_t class_code, uint8_t prog_if);
/* pin 1..4 (INTA..INTD), 0: none. */
void pci_set_interrupt_pin(PCIDevice *pd, uint8_t pin);
/*
 * BAR n (0..5; a 64-bit one also takes n + 1) is mr, whose size must be a power of two, at least
 * 16 for memory and 4 for I/O. mr must not be in a container.
 */
void pci_register_bar(PCIDevice *pd, unsigned n, uint8_t type, MemoryRegion *mr);
/* Finds room for size bytes of capability id and links it; returns its offset, 0 + errp if full.
 * The capability's bytes are zero and read-only. */
uint8_t pci_add_capability(PCIDevice *pd, uint8_t id, uint8_t size, Error **errp);
/*
 * From the device type's reset, first thing: config registers that the guest may write go to zero
 * (power-on values: set again after this), BARs are unmapped, INTx low, MSI and MSI-X disabled.
 */
void pci_device_reset(PCIDevice *pd);
/* From unrealize or a failed realize. */
void pci_device_cleanup(PCIDevice *pd);

/* RT_SAFE. Level of the device's INTx pin. */
void pci_set_irq(PCIDevice *pd, int level);
/* RT_SAFE. May the device do DMA (bus master enable)? */
bool pci_is_bus_master(PCIDevice *pd);
/* DMA (RT_SAFE): nothing is done, and an error returned, unless the device is bus master. */
MemTxResult pci_dma_read(PCIDevice *pd, hwaddr addr, void *buf, uint64_t len);
MemTxResult pci_dma_write(PCIDevice *pd, hwaddr addr, const void *buf, uint64_t len);

/* ---- MSI (6.8.1) ---- */

/* vectors: 1, 2, 4, ..., 32. 64-bit address, per-vector masking if mask. */
bool pci_msi_init(PCIDevice *pd, unsigned vectors, bool mask, Error **errp);
/* RT_SAFE. */
bool pci_msi_enabled(PCIDevice *pd);
/* RT_SAFE. Sends vector n (modulo what the guest enabled), or marks it pending if it is masked. */
void pci_msi_notify(PCIDevice *pd, unsigned n);

/* ---- MSI-X (6.8.2) ---- */

/*
 * Makes a table of 1..2048 vectors and the pending bits; they are placed in the container
 * bar_region at the offsets given (8-aligned) and described as living in BAR bar.
 */
bool pci_msix_init(PCIDevice *pd, unsigned vectors, MemoryRegion *bar_region, unsigned bar,
                   uint32_t table_offset, uint32_t pba_offset, Error **errp);
void pci_msix_fini(PCIDevice *pd);
/* RT_SAFE. */
bool pci_msix_enabled(PCIDevice *pd);
void pci_msix_notify(PCIDevice *pd, unsigned n);

/* Private to hw/pci: a config write touched the capability; config_lock held. */
void pci_msi_config_written(PCIDevice *pd);
void pci_msix_config_written(PCIDevice *pd);
void pci_msi_reset(PCIDevice *pd);
/* MSI or MSI-X replaces INTx while enabled. */
bool pci_intx_replaced(const PCIDevice *pd);

/* ---- Host bridge: configuration mechanism #1 ---- */

typedef struct PCIHost {
    PCIBus *bus;
    _Atomic uint32_t config_address;
    MemoryRegion addr_mr, data_mr;
    /* Byte port 0cf9h, which lies inside the address port; set by the ISA bridge. May be NULL. */
    uint8_t (*cf9_read)(void *opaque);
    void (*cf9_write)(void *opaque, uint8_t value);
    void *cf9_opaque;
} PCIHost;

/* Puts 0cf8h..0cffh into the port space. */
void pci_host_init(PCIHost *h, PCIBus *bus);
void pci_host_reset(PCIHost *h);

#endif
