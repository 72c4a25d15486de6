/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel 82093AA I/O APIC with 24 inputs and the EOI register of version 0x20.
 * Data sheets: 82093AA (290566), ICH9 13.5 (EOI register).
 */
#include <stdio.h>
#include <string.h>
#include <glib.h>
#include "hw/intc.h"

#define IOREGSEL 0x00
#define IOWIN    0x10
#define IOEOI    0x40

#define VERSION_VALUE (0x20u | (IOAPIC_PINS - 1) << 16)

#define RTE_VECTOR     0xffull
#define RTE_MODE(e)    ((unsigned)((e) >> 8) & 7)
#define RTE_LOGICAL    BIT64(11)
#define RTE_STATUS     BIT64(12) /* read-only: a message always leaves at once */
#define RTE_REMOTE_IRR BIT64(14) /* read-only */
#define RTE_LEVEL      BIT64(15)
#define RTE_MASKED     BIT64(16)
#define RTE_WRITABLE   (0xfffe0000000000ull << 8 | 0x1afffull)

enum { MODE_FIXED, MODE_LOWEST };

typedef struct IoapicState {
    DeviceState dev;
    /* Guards rte, lines, select, id and raised. */
    QemuMutex lock;
    uint64_t rte[IOAPIC_PINS];
    uint32_t lines; /* level of each input */
    uint64_t raised[IOAPIC_PINS]; /* for info irq; since the program began */
    uint8_t select;
    uint8_t id;
    void (*route_hook)(unsigned pin, bool valid, uint64_t addr, uint32_t data);
    IrqLine in_tap;
    MemoryRegion mmio;
} IoapicState;

static IoapicState *the_ioapic;

/* SDM 3A 11.11: message address and data. RTE bits 55:49 are bits 14:8 of the destination. */
static void rte_message(uint64_t e, uint64_t *addr, uint32_t *data)
{
    *addr = 0xfee00000u | (e >> 56) << 12 | (e >> 49 & 0x7f) << 5 | (e & RTE_LOGICAL ? 4 : 0);
    *data = (uint32_t)(e & RTE_VECTOR) | RTE_MODE(e) << 8 | 1u << 14 |
            (e & RTE_LEVEL ? 1u << 15 : 0);
}

/* Level-triggered mode means something for fixed and lowest-priority delivery only. */
static bool rte_is_level(uint64_t e)
{
    return (e & RTE_LEVEL) && RTE_MODE(e) <= MODE_LOWEST;
}

static void ioapic_send(uint64_t e)
{
    uint64_t addr;
    uint32_t data;

    rte_message(e, &addr, &data);
    irqchip->send_msi(addr, data);
}

/* A level-triggered pin asks again whenever it is high, unmasked and not waiting for an EOI. */
static void ioapic_service_level(IoapicState *s, unsigned pin)
{
    uint64_t *e = &s->rte[pin];

    if (rte_is_level(*e) && (s->lines & BIT(pin)) && !(*e & (RTE_MASKED | RTE_REMOTE_IRR))) {
        *e |= RTE_REMOTE_IRR;
        ioapic_send(*e);
    }
}

/* Lock held. */
static void set_pin(IoapicState *s, unsigned pin, int level)
{
    bool rises = level && !(s->lines & BIT(pin));

    if (!level) {
        s->lines &= ~BIT(pin);
        return;
    }
    s->lines |= BIT(pin);
    s->raised[pin] += rises;
    if (rte_is_level(s->rte[pin])) {
        ioapic_service_level(s, pin);
    } else if (rises && !(s->rte[pin] & RTE_MASKED)) {
        /* An edge at a masked pin is lost (82093AA 3.2.4, bit 16). */
        ioapic_send(s->rte[pin]);
    }
}

void ioapic_set_irq(unsigned pin, int level)
{
    IoapicState *s = the_ioapic;

    if (s && pin < IOAPIC_PINS) {
        QEMU_LOCK_GUARD(&s->lock);
        irq_tap(&s->in_tap, (int)pin, level);
        set_pin(s, pin, level);
    }
}

void ioapic_set_gsi(unsigned gsi, int level)
{
    IoapicState *s = the_ioapic;

    if (s && gsi < IOAPIC_PINS) {
        QEMU_LOCK_GUARD(&s->lock);
        irq_tap(&s->in_tap, (int)gsi, level);
        set_pin(s, gsi == 0 ? 2 : gsi, level);
    }
}

void ioapic_eoi(uint8_t vector)
{
    IoapicState *s = the_ioapic;

    if (!s) {
        return;
    }
    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        uint64_t *e = &s->rte[pin];

        if ((*e & RTE_REMOTE_IRR) && (*e & RTE_VECTOR) == vector) {
            *e &= ~RTE_REMOTE_IRR;
            ioapic_service_level(s, pin);
        }
    }
}

bool ioapic_route(unsigned pin, uint64_t *addr, uint32_t *data)
{
    IoapicState *s = the_ioapic;

    if (!s || pin >= IOAPIC_PINS) {
        return false;
    }
    QEMU_LOCK_GUARD(&s->lock);
    rte_message(s->rte[pin], addr, data);
    return !(s->rte[pin] & RTE_MASKED);
}

static void call_route_hook(IoapicState *s, unsigned pin)
{
    uint64_t addr;
    uint32_t data;

    if (s->route_hook) {
        rte_message(s->rte[pin], &addr, &data);
        s->route_hook(pin, !(s->rte[pin] & RTE_MASKED), addr, data);
    }
}

void ioapic_set_route_hook(void (*fn)(unsigned pin, bool valid, uint64_t addr, uint32_t data))
{
    QEMU_LOCK_GUARD(&the_ioapic->lock);
    the_ioapic->route_hook = fn;
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        call_route_hook(the_ioapic, pin);
    }
}

/* ---- Registers ---- */

static uint32_t window_read(IoapicState *s)
{
    unsigned pin = (s->select - 0x10u) >> 1;

    switch (s->select) {
    case 0: /* ID */
    case 2: /* arbitration ID */
        return (uint32_t)s->id << 24;
    case 1:
        return VERSION_VALUE;
    }
    if (s->select < 0x10 || pin >= IOAPIC_PINS) {
        return 0;
    }
    return (uint32_t)(s->rte[pin] >> (s->select & 1 ? 32 : 0));
}

static void rte_write(IoapicState *s, unsigned pin, bool high, uint32_t value)
{
    uint64_t *e = &s->rte[pin];
    uint64_t v = high ? (*e & UINT32_MAX) | (uint64_t)value << 32
                      : (*e & ~(uint64_t)UINT32_MAX) | value;

    *e = (*e & ~RTE_WRITABLE) | (v & RTE_WRITABLE);
    /* An edge-triggered entry has no remote IRR; software clears a stuck one by this detour. */
    if (!(*e & RTE_LEVEL)) {
        *e &= ~RTE_REMOTE_IRR;
    }
    call_route_hook(s, pin);
    ioapic_service_level(s, pin);
}

static void window_write(IoapicState *s, uint32_t value)
{
    unsigned pin = (s->select - 0x10u) >> 1;

    if (s->select == 0) {
        s->id = value >> 24 & 0xf;
    } else if (s->select >= 0x10 && pin < IOAPIC_PINS) {
        rte_write(s, pin, s->select & 1, value);
    }
}

static uint64_t ioapic_read(void *opaque, hwaddr offset, unsigned size)
{
    IoapicState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    switch (offset) {
    case IOREGSEL:
        return s->select;
    case IOWIN:
        return window_read(s);
    default:
        return 0;
    }
}

static void ioapic_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    IoapicState *s = opaque;

    if (offset == IOEOI) {
        ioapic_eoi((uint8_t)value);
        return;
    }
    QEMU_LOCK_GUARD(&s->lock);
    if (offset == IOREGSEL) {
        s->select = (uint8_t)value;
    } else if (offset == IOWIN) {
        window_write(s, (uint32_t)value);
    }
}

static const MemoryRegionOps ioapic_ops = {
    .read = ioapic_read, .write = ioapic_write, .impl_min = 4, .impl_max = 4,
};

/* ---- Device ---- */

static void ioapic_reset(DeviceState *dev)
{
    IoapicState *s = (IoapicState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    s->select = 0;
    s->id = 0;
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        s->rte[pin] = RTE_MASKED;
        call_route_hook(s, pin);
    }
}

static bool ioapic_realize(DeviceState *dev, Error **errp)
{
    IoapicState *s = (IoapicState *)dev;

    if (the_ioapic) {
        error_setg(errp, "this machine has an I/O APIC already");
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_IRQ_IOAPIC, "ioapic");
    memory_region_init_io(&s->mmio, &ioapic_ops, s, "ioapic", 0x1000);
    memory_region_add_subregion(memory_root(), IOAPIC_ADDR, &s->mmio, 1);
    the_ioapic = s;
    return true;
}

static void ioapic_unrealize(DeviceState *dev)
{
    IoapicState *s = (IoapicState *)dev;

    memory_region_del_subregion(memory_root(), &s->mmio);
    the_ioapic = NULL;
    qemu_mutex_destroy(&s->lock);
}

static bool ioapic_post_load(void *opaque, int version, Error **errp)
{
    IoapicState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
        s->rte[pin] &= RTE_WRITABLE | RTE_REMOTE_IRR;
        call_route_hook(s, pin);
    }
    return true;
}

static const VMState ioapic_vmstate = {
    .name = "ioapic",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U64, IoapicState, rte, IOAPIC_PINS),
        VMS_FIELD(VMS_U32, IoapicState, lines, 1),
        VMS_FIELD(VMS_U8, IoapicState, select, 1),
        VMS_FIELD(VMS_U8, IoapicState, id, 1),
        VMS_END,
    },
    .post_load = ioapic_post_load,
};

static const DeviceLines ioapic_lines[] = {
    { "in", offsetof(IoapicState, in_tap), IOAPIC_PINS, true },
    {},
};

static const DeviceType ioapic_type = {
    .name = "ioapic",
    .desc = "82093AA I/O APIC",
    .bus = "system",
    .instance_size = sizeof(IoapicState),
    .realize = ioapic_realize,
    .unrealize = ioapic_unrealize,
    .reset = ioapic_reset,
    .vmstate = &ioapic_vmstate,
    .lines = ioapic_lines,
};
DEVICE_TYPE(ioapic_type);

/* ---- For people ---- */

bool ioapic_counts(uint64_t *raised)
{
    if (!the_ioapic) {
        return false;
    }
    QEMU_LOCK_GUARD(&the_ioapic->lock);
    memcpy(raised, the_ioapic->raised, sizeof(the_ioapic->raised));
    return true;
}

bool ioapic_describe(char *buf, size_t len)
{
    static const char *const modes[8] = { "fixed", "lowest", "SMI", "?", "NMI", "INIT", "?", "ExtINT" };
    uint64_t rte[IOAPIC_PINS];
    uint32_t lines;
    size_t used;

    if (!the_ioapic) {
        return false;
    }
    qemu_mutex_lock(&the_ioapic->lock);
    memcpy(rte, the_ioapic->rte, sizeof(rte));
    lines = the_ioapic->lines;
    used = (size_t)snprintf(buf, len, "ioapic: id=0x%02x sel=0x%02x\n", the_ioapic->id,
                            the_ioapic->select);
    qemu_mutex_unlock(&the_ioapic->lock);
    for (unsigned i = 0; i < IOAPIC_PINS && used < len; i++) {
        uint64_t e = rte[i]; /* bits by the 82093AA's datasheet, 3.2.4 */
        used += (size_t)snprintf(buf + used, len - used,
                                 "  pin %-2u 0x%016llx dest=%u vec=%u %s %s %s%s%s%s\n", i,
                                 (unsigned long long)e, (unsigned)(e >> 56), (unsigned)(e & 0xff),
                                 e & BIT(13) ? "active-lo" : "active-hi",
                                 e & BIT(15) ? "level" : "edge", modes[e >> 8 & 7],
                                 e & BIT(11) ? " logical" : " physical", e & BIT(16) ? " masked" : "",
                                 lines & BIT(i) ? " (raised)" : "");
    }
    return true;
}
