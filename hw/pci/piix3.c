/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 82371SB-like ISA bridge (Intel 290550): routing of PIRQA-D to ISA lines (2.2.6 PIRQRC), and the
 * reset control register at 0cf9h. The interrupt, DMA and timer parts are devices of
 * their own.
 */
#include <string.h>
#include "accel/cpu.h"
#include "hw/i440fx.h"
#include "qemu/runstate.h"

#define PIIX3_DLC 0x82 /* deterministic latency control */

#define RC_RCPU 0x04u /* reset CPU: the 0 to 1 step does it */
#define RC_SRST 0x02u /* hard instead of soft */

typedef struct Piix3 {
    PCIDevice pd;
    IrqLine isa[16];
    /* lock guards what follows; ISA lines are set under it (rank IRQ_ROUTE). */
    QemuMutex lock;
    uint16_t pirq_users[PIIX_NUM_PIRQS]; /* functions that pull the line */
    uint8_t route[PIIX_NUM_PIRQS];
    uint16_t driven;                     /* ISA lines this bridge holds up */
    uint8_t rc;
} Piix3;

static Piix3 *piix3(DeviceState *dev)
{
    return container_of(pci_device(dev), Piix3, pd);
}

/* lock held. IRQ0, 1, 2, 8 and 13 can not be routed to (reserved values of PIRQRC). */
static void update_lines(Piix3 *s)
{
    uint16_t want = 0;
    for (unsigned n = 0; n < PIIX_NUM_PIRQS; n++) {
        if (s->pirq_users[n] && !(s->route[n] & PIIX_PIRQ_OFF)) {
            want |= (uint16_t)BIT(s->route[n] & 15);
        }
    }
    want &= 0xdef8;
    for (uint16_t diff = want ^ s->driven; diff; diff &= (uint16_t)(diff - 1)) {
        unsigned n = (unsigned)__builtin_ctz(diff);
        irq_set(&s->isa[n], (want >> n) & 1);
    }
    s->driven = want;
}

static void piix3_set_intx(void *opaque, uint8_t devfn, unsigned pin, int level)
{
    Piix3 *s = opaque;
    unsigned n = piix_slot_pirq(devfn, pin);
    QEMU_LOCK_GUARD(&s->lock);
    s->pirq_users[n] = (uint16_t)(s->pirq_users[n] + (level ? 1 : -1));
    update_lines(s);
}

static void piix3_config_write(PCIDevice *pd, unsigned addr, uint32_t value, unsigned len)
{
    Piix3 *s = container_of(pd, Piix3, pd);
    if (addr < PIIX_PIRQRCA + PIIX_NUM_PIRQS && addr + len > PIIX_PIRQRCA) {
        uint32_t v = pci_config_read(pci_device_bus(pd), pd->devfn, PIIX_PIRQRCA, 4);
        QEMU_LOCK_GUARD(&s->lock);
        for (unsigned n = 0; n < PIIX_NUM_PIRQS; n++) {
            s->route[n] = (uint8_t)(v >> (8 * n));
        }
        update_lines(s);
    }
}

static uint8_t rc_read(void *opaque)
{
    Piix3 *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    return s->rc;
}

static void rc_write(void *opaque, uint8_t v)
{
    Piix3 *s = opaque;
    qemu_mutex_lock(&s->lock);
    s->rc = v & RC_SRST; /* RCPU reads as 0: the reset clears it */
    qemu_mutex_unlock(&s->lock);
    if (v & RC_RCPU) {
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        cpu_hold_self();
    }
}

void piix3_set_outputs(DeviceState *dev, const IrqLine isa[16])
{
    memcpy(piix3(dev)->isa, isa, sizeof(piix3(dev)->isa));
}

void piix3_connect(DeviceState *dev, PCIBus *bus, PCIHost *host)
{
    Piix3 *s = piix3(dev);
    bus->set_intx = piix3_set_intx;
    bus->intx_opaque = s;
    host->cf9_read = rc_read;
    host->cf9_write = rc_write;
    host->cf9_opaque = s;
}

static const PCIDeviceOps piix3_pci_ops = { .config_write = piix3_config_write };

static void piix3_reset(DeviceState *dev)
{
    Piix3 *s = piix3(dev);
    pci_device_reset(&s->pd);
    pci_set_word(s->pd.config + PCI_COMMAND,
                 PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    memset(s->pd.config + PIIX_PIRQRCA, PIIX_PIRQ_OFF, PIIX_NUM_PIRQS);
    s->pd.config[0x4c] = 0x4d; /* IORT */
    s->pd.config[0x4e] = 0x03; /* XBCS */
    s->pd.config[0x69] = 0x02; /* TOM */
    QEMU_LOCK_GUARD(&s->lock);
    memset(s->route, PIIX_PIRQ_OFF, sizeof(s->route));
    s->rc = 0;
    update_lines(s);
}

static bool piix3_realize(DeviceState *dev, Error **errp)
{
    Piix3 *s = piix3(dev);
    PCIDevice *pd = &s->pd;
    qemu_mutex_init(&s->lock, LOCK_RANK_IRQ_ROUTE, "PIIX3");
    pd->ops = &piix3_pci_ops;
    pci_set_ids(pd, 0x8086, 0x7000, 0, PCI_CLASS_BRIDGE_ISA, 0);
    pci_set_word(pd->config + PCI_STATUS, PCI_STATUS_DEVSEL_MEDIUM);
    /* The bridge always decodes: its command bits are fixed (2.2.3 PCICMD). */
    pci_set_word(pd->wmask + PCI_COMMAND, 0);
    pci_set_word(pd->config + PCI_COMMAND,
                 PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    memset(pd->wmask + PIIX_PIRQRCA, 0x8f, PIIX_NUM_PIRQS);
    pd->wmask[0x4c] = 0xff;
    pci_set_word(pd->wmask + 0x4e, 0x01ff);
    pd->wmask[0x69] = 0xfe;
    pd->wmask[PIIX3_DLC] = 0x0f;
    return true;
}

static bool piix3_post_load(void *opaque, int version, Error **errp)
{
    Piix3 *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    update_lines(s);
    return true;
}

static const Property piix3_props[] = { PCI_PROPS(Piix3, pd), DEFINE_PROP_END };
/* pirq_users comes back as each function's post_load tells its level again. */
static const VMStateField piix3_fields[] = {
    VMS_PCI_DEVICE(Piix3, pd),
    VMS_FIELD(VMS_U8, Piix3, route, PIIX_NUM_PIRQS),
    VMS_FIELD(VMS_U8, Piix3, rc, 1),
    VMS_END,
};
static const VMState piix3_vmstate = {
    .name = "PIIX3", .version = 1, .minimum_version = 1, .fields = piix3_fields,
    .post_load = piix3_post_load,
};
static const DeviceType piix3_type = {
    .name = "PIIX3",
    .desc = "ISA bridge",
    .bus = "pci",
    .instance_size = sizeof(Piix3),
    .props = piix3_props,
    .realize = piix3_realize,
    .reset = piix3_reset,
    .vmstate = &piix3_vmstate,
};
DEVICE_TYPE(piix3_type);
