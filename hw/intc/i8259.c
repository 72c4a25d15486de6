/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two cascaded Intel 8259A interrupt controllers with the PIIX's edge/level control registers.
 * Data sheets: Intel 8259A (231468), 82371SB (PIIX3) 2.5.
 *
 * An edge-triggered request stays latched when its line falls before it is acknowledged, as in
 * the chip set's integrated pair; only a level-triggered one is withdrawn and may so become
 * spurious.
 */
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include "hw/intc.h"
#include "hw/isa.h"

#define CASCADE 2

enum InitState { INIT_NONE, INIT_ICW2, INIT_ICW3, INIT_ICW4 };

typedef struct PicChip {
    uint8_t irr, imr, isr;
    uint8_t lines;       /* level of each input */
    uint8_t elcr;        /* 1: level-triggered */
    uint8_t vector_base; /* ICW2 */
    uint8_t top;         /* input of highest priority (rotation) */
    uint8_t init_state;  /* which ICW port 1 takes next */
    bool read_isr;       /* OCW3 RIS */
    bool poll;
    bool special_mask;
    bool auto_eoi, rotate_on_aeoi;
    bool special_fully_nested;
    bool single, needs_icw4;
} PicChip;

typedef struct PicState {
    DeviceState dev;
    /* Guards chip[], raised[] and the order of calls of output. Rank above DEVICE: devices raise lines
     * under their own lock. */
    QemuMutex lock;
    PicChip chip[2]; /* master, slave */
    uint64_t raised[PIC_LINES]; /* for info irq; since the program began */
    atomic_bool output_level;
    IrqLine output;
    IrqLine in_tap;
    MemoryRegion io[2], elcr_io;
} PicState;

static PicState *the_pic;

/* ---- Priority resolver ---- */

/* Distance of the highest-priority set bit from chip->top; 8 if there is none. */
static unsigned highest(const PicChip *c, uint8_t bits)
{
    unsigned rotated = ((unsigned)bits | (unsigned)bits << 8) >> c->top & 0xff;

    return rotated ? (unsigned)__builtin_ctz(rotated) : 8;
}

/* The input that may interrupt now, -1 for none. */
static int pic_resolve(const PicChip *c, bool master)
{
    uint8_t blocking = c->isr;
    unsigned request = highest(c, c->irr & (uint8_t)~c->imr);

    if (request == 8) {
        return -1;
    }
    if (c->special_mask) {
        blocking &= (uint8_t)~c->imr;
    }
    /* The master lets the slave through again while a slave interrupt is in service. */
    if (master && c->special_fully_nested) {
        blocking &= (uint8_t)~BIT(CASCADE);
    }
    if (request >= highest(c, blocking)) {
        return -1;
    }
    return (int)((request + c->top) & 7);
}

/* Slave's INT is master's IR2, and master's is the CPU's. Lock held. */
static void pic_update(PicState *s)
{
    bool level;

    if (pic_resolve(&s->chip[1], false) >= 0) {
        s->chip[0].irr |= BIT(CASCADE);
    } else {
        s->chip[0].irr &= (uint8_t)~BIT(CASCADE);
    }
    level = pic_resolve(&s->chip[0], true) >= 0;
    if (level != atomic_load(&s->output_level)) {
        atomic_store(&s->output_level, level);
        irq_set(&s->output, level);
    }
}

static void chip_set_line(PicChip *c, unsigned n, bool level)
{
    uint8_t bit = (uint8_t)BIT(n);

    if (level) {
        if ((c->elcr & bit) || !(c->lines & bit)) {
            c->irr |= bit;
        }
        c->lines |= bit;
    } else {
        c->lines &= (uint8_t)~bit;
        if (c->elcr & bit) {
            c->irr &= (uint8_t)~bit;
        }
    }
}

void pic_set_irq(unsigned n, int level)
{
    PicState *s = the_pic;

    if (!s || n > 15 || n == CASCADE) {
        return;
    }
    QEMU_LOCK_GUARD(&s->lock);
    irq_tap(&s->in_tap, (int)n, level);
    s->raised[n] += level && !(s->chip[n >> 3].lines & BIT(n & 7));
    chip_set_line(&s->chip[n >> 3], n & 7, level);
    pic_update(s);
}

/* The request becomes an interrupt in service. */
static void chip_acknowledge(PicChip *c, unsigned n)
{
    uint8_t bit = (uint8_t)BIT(n);

    if (!c->auto_eoi) {
        c->isr |= bit;
    } else if (c->rotate_on_aeoi) {
        c->top = (n + 1) & 7;
    }
    if (!(c->elcr & bit)) {
        c->irr &= (uint8_t)~bit;
    }
}

int pic_ack(void)
{
    PicState *s = the_pic;
    PicChip *m, *sl;
    int n, vector;

    if (!s) {
        return -1;
    }
    QEMU_LOCK_GUARD(&s->lock);
    m = &s->chip[0];
    sl = &s->chip[1];
    n = pic_resolve(m, true);
    if (n < 0) {
        /* Data sheet, "Interrupt sequence": no request at INTA reads as IR7, without ISR bit. */
        return m->vector_base + 7;
    }
    vector = m->vector_base + n;
    chip_acknowledge(m, (unsigned)n);
    if (n == CASCADE) {
        n = pic_resolve(sl, false);
        vector = sl->vector_base + (n < 0 ? 7 : n);
        if (n >= 0) {
            chip_acknowledge(sl, (unsigned)n);
        }
    }
    pic_update(s);
    return vector;
}

bool pic_output_level(void)
{
    return the_pic && atomic_load(&the_pic->output_level);
}

void pic_set_output(IrqLine out)
{
    the_pic->output = out;
}

/* ---- Registers ---- */

static void write_icw1(PicChip *c, uint8_t v)
{
    /* Requests of level-triggered inputs are not latched and survive. */
    c->irr &= c->elcr & c->lines;
    c->imr = 0;
    c->isr = 0;
    c->top = 0;
    c->read_isr = false;
    c->poll = false;
    c->special_mask = false;
    c->auto_eoi = false;
    c->rotate_on_aeoi = false;
    c->special_fully_nested = false;
    c->single = v & 2;
    c->needs_icw4 = v & 1;
    c->init_state = INIT_ICW2;
}

static void eoi_level(PicChip *c, unsigned n, bool rotate)
{
    c->isr &= (uint8_t)~BIT(n);
    if (rotate) {
        c->top = (n + 1) & 7;
    }
}

/* Non-specific EOI: of the highest priority in service; masked ones are skipped in special mask
 * mode. */
static void eoi_highest(PicChip *c, bool rotate)
{
    unsigned d = highest(c, c->special_mask ? c->isr & (uint8_t)~c->imr : c->isr);

    if (d < 8) {
        eoi_level(c, (d + c->top) & 7, rotate);
    }
}

static void write_ocw2(PicChip *c, uint8_t v)
{
    unsigned n = v & 7;

    switch (v >> 5) { /* R, SL, EOI */
    case 0:
    case 4:
        c->rotate_on_aeoi = v >> 7;
        break;
    case 1:
    case 5:
        eoi_highest(c, v >> 7);
        break;
    case 3:
    case 7:
        eoi_level(c, n, v >> 7);
        break;
    case 6:
        c->top = (n + 1) & 7;
        break;
    }
}

static void write_ocw3(PicChip *c, uint8_t v)
{
    if (v & 4) {
        c->poll = true;
    }
    if (v & 2) {
        c->read_isr = v & 1;
    }
    if (v & 0x40) {
        c->special_mask = v & 0x20;
    }
}

static void write_port1(PicChip *c, uint8_t v)
{
    switch (c->init_state) {
    case INIT_NONE:
        c->imr = v; /* OCW1 */
        break;
    case INIT_ICW2:
        c->vector_base = v & 0xf8;
        c->init_state = c->single ? (c->needs_icw4 ? INIT_ICW4 : INIT_NONE) : INIT_ICW3;
        break;
    case INIT_ICW3: /* the cascade is wired, whatever the guest thinks */
        c->init_state = c->needs_icw4 ? INIT_ICW4 : INIT_NONE;
        break;
    case INIT_ICW4:
        c->special_fully_nested = v & 0x10;
        c->auto_eoi = v & 2;
        c->init_state = INIT_NONE;
        break;
    }
}

static void pic_write(PicState *s, unsigned which, hwaddr offset, uint64_t value)
{
    PicChip *c = &s->chip[which];
    uint8_t v = (uint8_t)value;

    QEMU_LOCK_GUARD(&s->lock);
    if (offset) {
        write_port1(c, v);
    } else if (v & 0x10) {
        write_icw1(c, v);
    } else if (v & 8) {
        write_ocw3(c, v);
    } else {
        write_ocw2(c, v);
    }
    pic_update(s);
}

/* Poll command: the next read is the acknowledge. */
static uint8_t poll_read(PicState *s, unsigned which)
{
    PicChip *c = &s->chip[which];
    int n = pic_resolve(c, which == 0);

    c->poll = false;
    if (n < 0) {
        return 0;
    }
    chip_acknowledge(c, (unsigned)n);
    pic_update(s);
    return (uint8_t)(0x80 | n);
}

static uint64_t pic_read(PicState *s, unsigned which, hwaddr offset)
{
    PicChip *c = &s->chip[which];

    QEMU_LOCK_GUARD(&s->lock);
    if (c->poll) {
        return poll_read(s, which);
    }
    if (offset) {
        return c->imr;
    }
    return c->read_isr ? c->isr : c->irr;
}

static uint64_t master_read(void *opaque, hwaddr offset, unsigned size)
{
    return pic_read(opaque, 0, offset);
}
static void master_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    pic_write(opaque, 0, offset, value);
}
static uint64_t slave_read(void *opaque, hwaddr offset, unsigned size)
{
    return pic_read(opaque, 1, offset);
}
static void slave_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    pic_write(opaque, 1, offset, value);
}

static uint64_t elcr_read(void *opaque, hwaddr offset, unsigned size)
{
    PicState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    return s->chip[offset].elcr;
}

static void elcr_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    /* IRQ 0, 1, 2, 8 and 13 are always edge-triggered (PIIX3 2.5.5). */
    static const uint8_t settable[2] = { 0xf8, 0xde };
    PicState *s = opaque;
    PicChip *c = &s->chip[offset];

    QEMU_LOCK_GUARD(&s->lock);
    c->elcr = (uint8_t)value & settable[offset];
    c->irr = (c->irr & (uint8_t)~c->elcr) | (c->lines & c->elcr);
    pic_update(s);
}

static const MemoryRegionOps master_ops = {
    .read = master_read, .write = master_write, .impl_max = 1,
};
static const MemoryRegionOps slave_ops = {
    .read = slave_read, .write = slave_write, .impl_max = 1,
};
static const MemoryRegionOps elcr_ops = {
    .read = elcr_read, .write = elcr_write, .impl_max = 1,
};

/* ---- Device ---- */

static void pic_reset(DeviceState *dev)
{
    PicState *s = (PicState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t lines = s->chip[i].lines;

        /* Inputs are driven by other devices, which reset themselves. */
        s->chip[i] = (PicChip){ .lines = lines };
    }
    pic_update(s);
}

static void pic_unrealize(DeviceState *dev)
{
    PicState *s = (PicState *)dev;

    qemu_mutex_destroy(&s->lock);
    the_pic = NULL;
}

static bool pic_realize(DeviceState *dev, Error **errp)
{
    PicState *s = (PicState *)dev;

    if (the_pic) {
        error_setg(errp, "this machine has an interrupt controller pair already");
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_IRQ_PIC, "i8259");
    the_pic = s;
    memory_region_init_io(&s->io[0], &master_ops, s, "pic", 2);
    memory_region_init_io(&s->io[1], &slave_ops, s, "pic", 2);
    memory_region_init_io(&s->elcr_io, &elcr_ops, s, "elcr", 2);
    if (!isa_map_ports(dev, &s->io[0], 0x20, errp) || !isa_map_ports(dev, &s->io[1], 0xa0, errp) ||
        !isa_map_ports(dev, &s->elcr_io, 0x4d0, errp)) {
        pic_unrealize(dev);
        return false;
    }
    return true;
}

static bool pic_post_load(void *opaque, int version, Error **errp)
{
    PicState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned i = 0; i < 2; i++) {
        if (s->chip[i].top > 7 || s->chip[i].init_state > INIT_ICW4) {
            error_setg(errp, "i8259: invalid state");
            return false;
        }
    }
    pic_update(s);
    return true;
}

static const VMState chip_vmstate = {
    .name = "i8259-chip",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U8, PicChip, irr, 1),
        VMS_FIELD(VMS_U8, PicChip, imr, 1),
        VMS_FIELD(VMS_U8, PicChip, isr, 1),
        VMS_FIELD(VMS_U8, PicChip, lines, 1),
        VMS_FIELD(VMS_U8, PicChip, elcr, 1),
        VMS_FIELD(VMS_U8, PicChip, vector_base, 1),
        VMS_FIELD(VMS_U8, PicChip, top, 1),
        VMS_FIELD(VMS_U8, PicChip, init_state, 1),
        VMS_FIELD(VMS_BOOL, PicChip, read_isr, 1),
        VMS_FIELD(VMS_BOOL, PicChip, poll, 1),
        VMS_FIELD(VMS_BOOL, PicChip, special_mask, 1),
        VMS_FIELD(VMS_BOOL, PicChip, auto_eoi, 1),
        VMS_FIELD(VMS_BOOL, PicChip, rotate_on_aeoi, 1),
        VMS_FIELD(VMS_BOOL, PicChip, special_fully_nested, 1),
        VMS_FIELD(VMS_BOOL, PicChip, single, 1),
        VMS_FIELD(VMS_BOOL, PicChip, needs_icw4, 1),
        VMS_END,
    },
};

static const VMState pic_vmstate = {
    .name = "i8259",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_STRUCT_ARRAY(PicState, chip, 2, PicChip, chip_vmstate),
        VMS_END,
    },
    .post_load = pic_post_load,
};

static const DeviceLines pic_lines[] = {
    { "in", offsetof(PicState, in_tap), 16, true },
    { "int", offsetof(PicState, output), 1, false },
    {},
};

static const DeviceType pic_type = {
    .name = "isa-i8259",
    .desc = "8259A interrupt controller pair",
    .bus = "isa",
    .instance_size = sizeof(PicState),
    .realize = pic_realize,
    .unrealize = pic_unrealize,
    .reset = pic_reset,
    .vmstate = &pic_vmstate,
    .lines = pic_lines,
};
DEVICE_TYPE(pic_type);

/* ---- For people ---- */

bool pic_counts(uint64_t *raised)
{
    if (!the_pic) {
        return false;
    }
    QEMU_LOCK_GUARD(&the_pic->lock);
    memcpy(raised, the_pic->raised, sizeof(the_pic->raised));
    return true;
}

bool pic_describe(char *buf, size_t len)
{
    PicChip chip[2];
    size_t used = 0;

    if (!the_pic) {
        return false;
    }
    qemu_mutex_lock(&the_pic->lock);
    memcpy(chip, the_pic->chip, sizeof(chip));
    qemu_mutex_unlock(&the_pic->lock);
    buf[0] = '\0';
    for (unsigned i = 0; i < ARRAY_SIZE(chip) && used < len; i++) {
        const PicChip *c = &chip[i];
        used += (size_t)snprintf(buf + used, len - used,
                                 "pic%u: irr=%02x imr=%02x isr=%02x hprio=%u irq_base=%02x rr_sel=%u "
                                 "elcr=%02x fnm=%u\n", i, c->irr, c->imr, c->isr, c->top,
                                 c->vector_base, c->read_isr, c->elcr, c->special_fully_nested);
    }
    return true;
}
