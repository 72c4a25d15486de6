/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * National PC16550D UART on the ISA bus (COM1..COM4).
 * Data sheet: National Semiconductor PC16550D.
 *
 * Output goes to the back end's ring at once, so the transmitter is empty again when the store
 * completes; only when the ring is full do bytes wait here, THRE stays low, and the guest waits
 * as it would for a slow line. Input is taken when there is room, so none is lost. The only thing
 * timed by the baud rate is the receive time-out of four characters.
 */
#include <string.h>
#include "chardev/char.h"
#include "hw/isa.h"

#define FIFO_SIZE 16

enum { IER_RDI = BIT(0), IER_THRI = BIT(1), IER_RLSI = BIT(2), IER_MSI = BIT(3) };
enum { IIR_MSI = 0x00, IIR_NONE = 0x01, IIR_THRI = 0x02, IIR_RDI = 0x04, IIR_RLSI = 0x06,
       IIR_TIMEOUT = 0x0c, IIR_FIFO = 0xc0 };
enum { FCR_ENABLE = BIT(0), FCR_CLEAR_RX = BIT(1), FCR_CLEAR_TX = BIT(2) };
enum { LCR_BREAK = BIT(6), LCR_DLAB = BIT(7) };
enum { MCR_DTR = BIT(0), MCR_RTS = BIT(1), MCR_OUT1 = BIT(2), MCR_OUT2 = BIT(3),
       MCR_LOOP = BIT(4) };
enum { LSR_DR = BIT(0), LSR_OE = BIT(1), LSR_BI = BIT(4), LSR_THRE = BIT(5), LSR_TEMT = BIT(6),
       LSR_FIFO_ERROR = BIT(7) };
enum { MSR_DCTS = BIT(0), MSR_TERI = BIT(2), MSR_CTS = BIT(4), MSR_DSR = BIT(5), MSR_RI = BIT(6),
       MSR_DCD = BIT(7) };
#define LSR_ERRORS (LSR_OE | BIT(2) | BIT(3) | LSR_BI)

/* What a cable with the peer ready gives. */
#define MSR_CABLE (MSR_DCD | MSR_DSR | MSR_CTS)

typedef struct Fifo {
    uint8_t data[FIFO_SIZE];
    uint8_t head, count;
} Fifo;

typedef struct SerialState {
    DeviceState dev;
    /* Guards all below but the front end, the line and the properties. */
    QemuMutex lock;
    uint16_t divisor;
    uint8_t ier, fcr, lcr, mcr, lsr, msr, scr;
    Fifo rx, tx;
    uint16_t rx_break;      /* which entries of rx.data came with a break */
    bool thri_pending;      /* THR became empty and the guest has not seen it */
    bool timeout_pending;   /* characters wait below the trigger level */
    bool irq_level;
    EventTimer timeout;
    ChrFrontend chr;
    IrqLine irq;
    MemoryRegion io;
    uint32_t index, iobase, irq_number, baudbase;
    Chardev *chardev;
} SerialState;

/* ---- FIFOs ---- */

static void fifo_clear(Fifo *f)
{
    f->head = f->count = 0;
}

static void fifo_push(Fifo *f, uint8_t v)
{
    f->data[(f->head + f->count++) % FIFO_SIZE] = v;
}

static uint8_t fifo_pop(Fifo *f)
{
    uint8_t v = f->data[f->head];

    f->head = (f->head + 1) % FIFO_SIZE;
    f->count--;
    return v;
}

static bool fifo_mode(const SerialState *s)
{
    return s->fcr & FCR_ENABLE;
}

static unsigned fifo_room(const SerialState *s, const Fifo *f)
{
    return (fifo_mode(s) ? FIFO_SIZE : 1u) - f->count;
}

static unsigned rx_trigger(const SerialState *s)
{
    static const uint8_t levels[] = { 1, 4, 8, 14 };

    return fifo_mode(s) ? levels[s->fcr >> 6] : 1;
}

/* ---- Interrupts ---- */

/* Interrupt identification by priority (table 4 of the data sheet). */
static uint8_t serial_iir(const SerialState *s)
{
    if ((s->ier & IER_RLSI) && (s->lsr & LSR_ERRORS)) {
        return IIR_RLSI;
    }
    if ((s->ier & IER_RDI) && s->rx.count >= rx_trigger(s)) {
        return IIR_RDI;
    }
    if ((s->ier & IER_RDI) && s->timeout_pending) {
        return IIR_TIMEOUT;
    }
    if ((s->ier & IER_THRI) && s->thri_pending) {
        return IIR_THRI;
    }
    if ((s->ier & IER_MSI) && (s->msr & 0x0f)) {
        return IIR_MSI;
    }
    return IIR_NONE;
}

/* On a PC the interrupt reaches the bus through a buffer that OUT2 opens. */
static void serial_update_irq(SerialState *s)
{
    bool level = serial_iir(s) != IIR_NONE && (s->mcr & MCR_OUT2);

    if (level != s->irq_level) {
        s->irq_level = level;
        irq_set(&s->irq, level);
    }
}

static int64_t char_time_ns(const SerialState *s)
{
    unsigned bits = 1 + 5 + (s->lcr & 3) + (s->lcr & 4 ? 2 : 1) + (s->lcr & 8 ? 1 : 0);

    return (int64_t)bits * MAX(s->divisor, 1) * NANOSECONDS_PER_SECOND / s->baudbase;
}

/* No character came or was read for four character times (8.3 FIFO interrupt mode). */
static void serial_timeout_fn(void *opaque)
{
    SerialState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (timer_pending(&s->timeout) || !s->rx.count || !fifo_mode(s)) {
        return;
    }
    s->timeout_pending = true;
    serial_update_irq(s);
}

static void serial_restart_timeout(SerialState *s)
{
    s->timeout_pending = false;
    if (fifo_mode(s) && s->rx.count) {
        timer_mod(&s->timeout, clock_get_ns(CLOCK_TYPE_VIRTUAL) + 4 * char_time_ns(s));
    } else {
        timer_del(&s->timeout);
    }
}

/* ---- Receiver ---- */

/* LSR speaks of the character on top. */
static void serial_rx_top(SerialState *s)
{
    s->lsr &= (uint8_t)~(LSR_DR | LSR_FIFO_ERROR);
    if (s->rx.count) {
        s->lsr |= LSR_DR;
        if (s->rx_break & BIT(s->rx.head)) {
            s->lsr |= LSR_BI;
            s->rx_break &= (uint16_t)~BIT(s->rx.head);
        }
    }
    if (fifo_mode(s) && s->rx_break) {
        s->lsr |= LSR_FIFO_ERROR;
    }
}

static void serial_rx_put(SerialState *s, uint8_t v, bool brk)
{
    unsigned slot = (s->rx.head + s->rx.count) % FIFO_SIZE;

    if (!fifo_room(s, &s->rx)) {
        s->lsr |= LSR_OE;
        return;
    }
    fifo_push(&s->rx, v);
    if (brk) {
        s->rx_break |= (uint16_t)BIT(slot);
    } else {
        s->rx_break &= (uint16_t)~BIT(slot);
    }
    serial_rx_top(s);
    serial_restart_timeout(s);
}

static void serial_rx_clear(SerialState *s)
{
    fifo_clear(&s->rx);
    s->rx_break = 0;
    s->lsr &= (uint8_t)~(LSR_DR | LSR_BI | LSR_FIFO_ERROR);
    serial_restart_timeout(s);
}

static uint8_t serial_rx_get(SerialState *s)
{
    uint8_t v = s->rx.data[s->rx.head];

    if (s->rx.count) {
        v = fifo_pop(&s->rx);
        serial_rx_top(s);
        serial_restart_timeout(s);
        chr_fe_accept_input(&s->chr);
    }
    return v;
}

static size_t serial_can_read(void *opaque)
{
    SerialState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    return s->mcr & MCR_LOOP ? 0 : fifo_room(s, &s->rx);
}

static void serial_read_chars(void *opaque, const uint8_t *buf, size_t len)
{
    SerialState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    for (size_t i = 0; i < len; i++) {
        serial_rx_put(s, buf[i], false);
    }
    serial_update_irq(s);
}

static void serial_event(void *opaque, ChrEvent event)
{
    SerialState *s = opaque;

    if (event == CHR_EVENT_BREAK) {
        QEMU_LOCK_GUARD(&s->lock);
        serial_rx_put(s, 0, true);
        serial_update_irq(s);
    }
}

/* ---- Transmitter ---- */

static void serial_tx_flush(SerialState *s)
{
    while (s->tx.count) {
        unsigned run = MIN(s->tx.count, FIFO_SIZE - s->tx.head);
        size_t n = chr_fe_write(&s->chr, s->tx.data + s->tx.head, run);

        s->tx.head = (uint8_t)((s->tx.head + n) % FIFO_SIZE);
        s->tx.count -= (uint8_t)n;
        if (n < run) {
            break; /* serial_writable() goes on */
        }
    }
    if (!s->tx.count && !(s->lsr & LSR_THRE)) {
        s->lsr |= LSR_THRE | LSR_TEMT;
        s->thri_pending = true;
    }
}

static void serial_writable(void *opaque)
{
    SerialState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    serial_tx_flush(s);
    serial_update_irq(s);
}

static void serial_tx_put(SerialState *s, uint8_t v)
{
    s->thri_pending = false;
    s->lsr &= (uint8_t)~(LSR_THRE | LSR_TEMT);
    if (s->mcr & MCR_LOOP) {
        serial_rx_put(s, v, false);
        s->lsr |= LSR_THRE | LSR_TEMT;
        s->thri_pending = true;
        return;
    }
    /* A guest that does not wait for THRE overruns its own transmitter, as on the chip. */
    if (fifo_room(s, &s->tx)) {
        fifo_push(&s->tx, v);
    }
    serial_tx_flush(s);
}

/* ---- The line ---- */

/* Tells a back end that is a serial port what the guest wants of it. */
static void serial_tell_line(SerialState *s)
{
    static const ChrParity parities[] = { CHR_PARITY_ODD, CHR_PARITY_EVEN, CHR_PARITY_MARK, CHR_PARITY_SPACE };
    bool loop = s->mcr & MCR_LOOP; /* the outputs are idle */
    ChrLine line = {
        .baud = s->baudbase / MAX(s->divisor, 1),
        .data_bits = (uint8_t)(5 + (s->lcr & 3)),
        .stop_bits = s->lcr & 4 ? 2 : 1,
        .parity = s->lcr & 8 ? parities[s->lcr >> 4 & 3] : CHR_PARITY_NONE,
        .brk = (s->lcr & LCR_BREAK) && !loop,
        .dtr = (s->mcr & MCR_DTR) && !loop,
        .rts = (s->mcr & MCR_RTS) && !loop,
    };

    chr_fe_set_line(&s->chr, &line);
}

/* ---- Modem lines ---- */

static void serial_update_msr(SerialState *s)
{
    uint8_t inputs = MSR_CABLE, changed, old = s->msr;

    if (s->mcr & MCR_LOOP) {
        inputs = (s->mcr & MCR_RTS ? MSR_CTS : 0) | (s->mcr & MCR_DTR ? MSR_DSR : 0) |
                 (s->mcr & MCR_OUT1 ? MSR_RI : 0) | (s->mcr & MCR_OUT2 ? MSR_DCD : 0);
    }
    changed = (old ^ inputs) & 0xf0;
    s->msr = inputs | (old & 0x0f) | ((changed & (MSR_CTS | MSR_DSR | MSR_DCD)) >> 4);
    if ((changed & MSR_RI) && !(inputs & MSR_RI)) {
        s->msr |= MSR_TERI; /* trailing edge only */
    }
}

/* ---- Registers ---- */

static void write_fcr(SerialState *s, uint8_t v)
{
    bool toggles = (v ^ s->fcr) & FCR_ENABLE;

    s->fcr = v & FCR_ENABLE ? v & 0xc9 : 0;
    if (toggles || (v & FCR_CLEAR_RX)) {
        serial_rx_clear(s);
        chr_fe_accept_input(&s->chr);
    }
    if (toggles || (v & FCR_CLEAR_TX)) {
        fifo_clear(&s->tx);
        serial_tx_flush(s);
    }
}

static void write_ier(SerialState *s, uint8_t v)
{
    /* Enabling THRE while the register is empty interrupts at once. */
    if ((v & ~s->ier & IER_THRI) && (s->lsr & LSR_THRE)) {
        s->thri_pending = true;
    }
    s->ier = v & 0x0f;
}

static void write_mcr(SerialState *s, uint8_t v)
{
    bool loop_ended = s->mcr & ~v & MCR_LOOP;

    s->mcr = v & 0x1f;
    serial_update_msr(s);
    serial_tell_line(s);
    if (loop_ended) {
        chr_fe_accept_input(&s->chr);
    }
}

static void serial_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    SerialState *s = opaque;
    uint8_t v = (uint8_t)value;

    QEMU_LOCK_GUARD(&s->lock);
    switch (offset) {
    case 0:
        if (s->lcr & LCR_DLAB) {
            s->divisor = (s->divisor & 0xff00) | v;
        } else {
            serial_tx_put(s, v);
        }
        break;
    case 1:
        if (s->lcr & LCR_DLAB) {
            s->divisor = (uint16_t)((s->divisor & 0x00ff) | v << 8);
        } else {
            write_ier(s, v);
        }
        break;
    case 2:
        write_fcr(s, v);
        break;
    case 3:
        s->lcr = v;
        if (!(v & LCR_DLAB)) { /* with it, the divisor is about to change */
            serial_tell_line(s);
        }
        break;
    case 4:
        write_mcr(s, v);
        break;
    case 7:
        s->scr = v;
        break;
    default: /* LSR is for factory tests, MSR read-only */
        break;
    }
    serial_update_irq(s);
}

static uint8_t read_iir(SerialState *s)
{
    uint8_t iir = serial_iir(s);

    if (iir == IIR_THRI) {
        s->thri_pending = false;
    }
    return iir | (fifo_mode(s) ? IIR_FIFO : 0);
}

static uint8_t serial_read_locked(SerialState *s, hwaddr offset)
{
    uint8_t v;

    switch (offset) {
    case 0:
        return s->lcr & LCR_DLAB ? (uint8_t)s->divisor : serial_rx_get(s);
    case 1:
        return s->lcr & LCR_DLAB ? (uint8_t)(s->divisor >> 8) : s->ier;
    case 2:
        return read_iir(s);
    case 3:
        return s->lcr;
    case 4:
        return s->mcr;
    case 5:
        v = s->lsr;
        s->lsr &= (uint8_t)~LSR_ERRORS;
        return v;
    case 6:
        v = s->msr;
        s->msr &= 0xf0;
        return v;
    default:
        return s->scr;
    }
}

static uint64_t serial_read(void *opaque, hwaddr offset, unsigned size)
{
    SerialState *s = opaque;
    uint8_t v;

    QEMU_LOCK_GUARD(&s->lock);
    v = serial_read_locked(s, offset);
    serial_update_irq(s);
    return v;
}

static const MemoryRegionOps serial_ops = {
    .read = serial_read, .write = serial_write, .impl_max = 1,
};

static const ChrFrontendOps serial_chr_ops = {
    .can_read = serial_can_read,
    .read = serial_read_chars,
    .event = serial_event,
    .writable = serial_writable,
};

/* ---- Device ---- */

static void serial_reset(DeviceState *dev)
{
    SerialState *s = (SerialState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    s->divisor = 12; /* 9600 baud */
    s->ier = s->fcr = s->lcr = s->mcr = s->scr = 0;
    s->msr = MSR_CABLE;
    /* Bytes the ring has no room for yet were written by the guest and still go out. */
    s->lsr = s->tx.count ? 0 : LSR_THRE | LSR_TEMT;
    s->thri_pending = false;
    serial_rx_clear(s);
    serial_update_irq(s);
    chr_fe_accept_input(&s->chr);
}

static bool serial_defaults(SerialState *s, Error **errp)
{
    static const uint16_t bases[4] = { 0x3f8, 0x2f8, 0x3e8, 0x2e8 };
    static const uint8_t irqs[4] = { 4, 3, 4, 3 };
    static unsigned next_index;

    if (s->index == UINT32_MAX) {
        s->index = next_index;
    }
    if (s->index >= ARRAY_SIZE(bases)) {
        error_setg(errp, "Max. supported number of ISA serial ports is %zu: index=%u",
                   ARRAY_SIZE(bases), s->index);
        return false;
    }
    if (s->iobase == UINT32_MAX) {
        s->iobase = bases[s->index];
    }
    if (s->irq_number == UINT32_MAX) {
        s->irq_number = irqs[s->index];
    }
    if (s->irq_number > 15 || s->iobase > 0xfff8 || !s->baudbase) {
        error_setg(errp, "isa-serial: irq=%u (0..15), iobase=0x%x (0..0xfff8) or baudbase=%u (at "
                         "least 1) is out of range", s->irq_number, s->iobase, s->baudbase);
        return false;
    }
    next_index = s->index + 1;
    return true;
}

static void serial_unrealize(DeviceState *dev)
{
    SerialState *s = (SerialState *)dev;

    chr_fe_fini(&s->chr);
    timer_fini(&s->timeout);
    qemu_mutex_destroy(&s->lock);
}

static bool serial_realize(DeviceState *dev, Error **errp)
{
    SerialState *s = (SerialState *)dev;

    if (!serial_defaults(s, errp) || !chr_fe_init(&s->chr, s->chardev, errp)) {
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "serial");
    timer_init(&s->timeout, event_loop_main(), CLOCK_TYPE_VIRTUAL, serial_timeout_fn, s);
    s->irq = isa_irq(dev, s->irq_number);
    s->lsr = LSR_THRE | LSR_TEMT;
    memory_region_init_io(&s->io, &serial_ops, s, "serial", 8);
    if (!isa_map_ports(dev, &s->io, (uint16_t)s->iobase, errp)) {
        serial_unrealize(dev);
        return false;
    }
    chr_fe_set_handlers(&s->chr, event_loop_main(), &serial_chr_ops, s);
    return true;
}

static bool serial_post_load(void *opaque, int version, Error **errp)
{
    SerialState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (s->rx.count > FIFO_SIZE || s->tx.count > FIFO_SIZE || s->rx.head >= FIFO_SIZE ||
        s->tx.head >= FIFO_SIZE) {
        error_setg(errp, "serial: invalid FIFO state");
        return false;
    }
    serial_tx_flush(s);
    serial_update_irq(s);
    serial_tell_line(s);
    chr_fe_accept_input(&s->chr);
    return true;
}

static const VMState fifo_vmstate = {
    .name = "serial-fifo",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_BUFFER, Fifo, data, FIFO_SIZE),
        VMS_FIELD(VMS_U8, Fifo, head, 1),
        VMS_FIELD(VMS_U8, Fifo, count, 1),
        VMS_END,
    },
};

static const VMState serial_vmstate = {
    .name = "serial",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U16, SerialState, divisor, 1),
        VMS_FIELD(VMS_U8, SerialState, ier, 1),
        VMS_FIELD(VMS_U8, SerialState, fcr, 1),
        VMS_FIELD(VMS_U8, SerialState, lcr, 1),
        VMS_FIELD(VMS_U8, SerialState, mcr, 1),
        VMS_FIELD(VMS_U8, SerialState, lsr, 1),
        VMS_FIELD(VMS_U8, SerialState, msr, 1),
        VMS_FIELD(VMS_U8, SerialState, scr, 1),
        VMS_STRUCT_ARRAY(SerialState, rx, 1, Fifo, fifo_vmstate),
        VMS_STRUCT_ARRAY(SerialState, tx, 1, Fifo, fifo_vmstate),
        VMS_FIELD(VMS_U16, SerialState, rx_break, 1),
        VMS_FIELD(VMS_BOOL, SerialState, thri_pending, 1),
        VMS_FIELD(VMS_BOOL, SerialState, timeout_pending, 1),
        VMS_FIELD(VMS_BOOL, SerialState, irq_level, 1),
        VMS_FIELD(VMS_TIMER, SerialState, timeout, 1),
        VMS_END,
    },
    .post_load = serial_post_load,
};

static const Property serial_props[] = {
    DEFINE_PROP("index", PROP_UINT32, SerialState, index, UINT32_MAX, "0..3: COM1..COM4"),
    DEFINE_PROP("iobase", PROP_UINT32, SerialState, iobase, UINT32_MAX, "first of eight ports"),
    DEFINE_PROP("irq", PROP_UINT32, SerialState, irq_number, UINT32_MAX, "ISA line"),
    DEFINE_PROP("baudbase", PROP_UINT32, SerialState, baudbase, 115200, "rate at divisor 1"),
    DEFINE_PROP("chardev", PROP_CHARDEV, SerialState, chardev, 0,
                "ID of a chardev to use as a backend"),
    DEFINE_PROP_END,
};

static const DeviceLines serial_lines[] = {
    { "irq", offsetof(SerialState, irq), 1, false },
    {},
};

static const DeviceType serial_type = {
    .name = "isa-serial",
    .desc = "16550A UART",
    .bus = "isa",
    .instance_size = sizeof(SerialState),
    .props = serial_props,
    .user_creatable = true,
    .realize = serial_realize,
    .unrealize = serial_unrealize,
    .reset = serial_reset,
    .vmstate = &serial_vmstate,
    .lines = serial_lines,
    .category = "Input",
};
DEVICE_TYPE(serial_type);
