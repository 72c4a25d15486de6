/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel 8254 programmable interval timer and the PC's port 61h (counter 2's gate, speaker, refresh
 * toggle). Data sheets: Intel 8254 (231164), PIIX3 2.5.6 (port 61h).
 *
 * The counters' clock of 1.193182 MHz is derived from virtual time by one multiplication, so ticks
 * have absolute numbers and no rounding adds up. A counter is described by the tick at which it
 * was loaded; what it holds and its OUT follow from the tick of now. Only counter 0 needs events.
 */
#include <string.h>
#include "accel/cpu.h"
#include "hw/isa.h"
#include "hw/timer.h"

#define PIT_HZ 1193182

/* Events of counter 0 come no closer than this (20 us): guests may program more, hosts can't. */
#define MIN_EVENT_TICKS 24
/* Below this period late ticks are merged, above they are made up for. */
#define REPLAY_TICKS (PIT_HZ / 2000)

enum { RW_LSB = 1, RW_MSB, RW_BOTH };

typedef struct PitChannel {
    uint64_t start_tick;  /* the count was loaded */
    uint64_t switch_tick; /* next_reload takes over (modes 2 and 3) */
    uint32_t reload;      /* 1..65536 */
    uint32_t next_reload; /* written while counting; 0: none */
    uint32_t paused;      /* ticks counted before the gate closed */
    uint8_t mode, rw;
    uint8_t write_lsb;
    bool bcd, gate;
    bool loaded;          /* a count was written since the control word */
    bool running;
    bool null_count;      /* the count written is not in the counter yet */
    bool write_msb_next, read_msb_next;
    bool status_latched;
    uint8_t status;
    uint8_t latched_bytes; /* of latched_count still to be read */
    uint16_t latched_count;
} PitChannel;

typedef struct PitState {
    DeviceState dev;
    /* Guards all below but the lines and properties. */
    QemuMutex lock;
    PitChannel ch[3];
    EventTimer timer;        /* next event of counter 0 */
    uint64_t periods_seen;   /* periods of counter 0 since start_tick already delivered */
    uint32_t backlog;        /* ticks due and not yet delivered */
    uint64_t next_pulse;     /* no tick is delivered before this one */
    bool irq_level;
    uint8_t port61;          /* bits 0..3 */
    IrqLine irq;
    MemoryRegion io, io61;
    uint32_t iobase;
    bool has_port61;
} PitState;

/* ---- Time ---- */

static uint64_t ns_to_ticks(int64_t ns)
{
    return (uint64_t)((__uint128_t)ns * PIT_HZ / NANOSECONDS_PER_SECOND);
}

static uint64_t pit_tick_now(void)
{
    return ns_to_ticks(clock_get_ns(CLOCK_TYPE_VIRTUAL));
}

/* First nanosecond at which the tick has come. */
static int64_t pit_tick_ns(uint64_t tick)
{
    return (int64_t)(((__uint128_t)tick * NANOSECONDS_PER_SECOND + PIT_HZ - 1) / PIT_HZ);
}

/* ---- A counter ---- */

static bool periodic(const PitChannel *c)
{
    return c->mode == 2 || c->mode == 3;
}

static uint64_t elapsed(const PitChannel *c, uint64_t now)
{
    if (!c->running) {
        return c->paused;
    }
    return now > c->start_tick ? now - c->start_tick : 0;
}

static void channel_start(PitChannel *c, uint64_t now)
{
    c->start_tick = now + 1; /* loaded by the next clock pulse */
    c->running = true;
    c->paused = 0;
    c->null_count = false;
}

/* A count written in mode 2 or 3 takes over at the end of a period. True if it just has. */
static bool channel_sync(PitChannel *c, uint64_t now)
{
    if (!c->next_reload || !periodic(c) || !c->running || now < c->switch_tick) {
        return false;
    }
    c->start_tick = c->switch_tick;
    c->reload = c->next_reload;
    c->next_reload = 0;
    c->null_count = false;
    return true;
}

static bool channel_out(const PitChannel *c, uint64_t now)
{
    uint64_t d = elapsed(c, now);

    if (!c->loaded || (c->mode != 0 && c->mode != 4 && !c->running)) {
        return c->mode != 0;
    }
    switch (c->mode) {
    case 0:
        return d >= c->reload;
    case 1:
        return d >= c->reload;
    case 2:
        return d % c->reload != c->reload - 1;
    case 3:
        return d % c->reload < (c->reload + 1) / 2;
    default: /* 4, 5: low for one clock at the end */
        return d != c->reload;
    }
}

static uint32_t channel_count(const PitChannel *c, uint64_t now)
{
    uint64_t d = elapsed(c, now);
    uint32_t n = c->reload, wrap = c->bcd ? 10000 : 65536;
    uint32_t phase, half = (n + 1) / 2;

    switch (c->mode) {
    case 2:
        return n - (uint32_t)(d % n);
    case 3:
        phase = (uint32_t)(d % n);
        return (n & ~1u) - 2 * (phase < half ? phase : phase - half);
    default:
        if (c->mode != 0 && c->mode != 4 && !c->running) {
            return n % wrap;
        }
        return (uint32_t)((n + wrap - d % wrap) % wrap);
    }
}

static uint16_t to_bcd(uint32_t v)
{
    return (uint16_t)(v % 10 | v / 10 % 10 << 4 | v / 100 % 10 << 8 | v / 1000 % 10 << 12);
}

static uint32_t from_bcd(uint16_t v)
{
    return (v & 0xf) + (v >> 4 & 0xf) * 10u + (v >> 8 & 0xf) * 100u + (v >> 12) * 1000u;
}

static uint16_t channel_read_count(const PitChannel *c, uint64_t now)
{
    uint32_t n = channel_count(c, now);

    return c->bcd ? to_bcd(n) : (uint16_t)n;
}

static void channel_load(PitChannel *c, uint16_t value, uint64_t now)
{
    uint32_t n = c->bcd ? from_bcd(value) : value;

    if (n == 0) {
        n = c->bcd ? 10000 : 65536;
    }
    if ((c->mode == 1 || c->mode == 5) && c->running) {
        c->next_reload = n; /* until the next trigger */
        c->null_count = true;
        return;
    }
    if (periodic(c) && c->loaded && c->running) {
        uint64_t d = elapsed(c, now);

        c->next_reload = n;
        c->switch_tick = c->start_tick + (d / c->reload + 1) * c->reload;
        c->null_count = true;
        return;
    }
    c->reload = n;
    c->next_reload = 0;
    c->loaded = true;
    c->paused = 0;
    c->null_count = true;
    if (c->mode != 1 && c->mode != 5 && c->gate) {
        channel_start(c, now);
    }
}

static void channel_trigger(PitChannel *c, uint64_t now)
{
    if (!c->loaded) {
        return;
    }
    if (c->next_reload) {
        c->reload = c->next_reload;
        c->next_reload = 0;
    }
    channel_start(c, now);
}

static void channel_set_gate(PitChannel *c, bool gate, uint64_t now)
{
    bool was = c->gate;

    channel_sync(c, now);
    c->gate = gate;
    if (gate == was) {
        return;
    }
    if (c->mode == 0 || c->mode == 4) {
        if (!gate) {
            c->paused = (uint32_t)elapsed(c, now);
            c->running = false;
        } else if (c->loaded) {
            c->running = true;
            c->start_tick = now - c->paused;
            c->null_count = false;
        }
    } else if (gate) {
        channel_trigger(c, now);
    } else if (periodic(c)) {
        c->running = false;
        c->paused = 0;
    }
}

static void channel_control(PitChannel *c, uint8_t v)
{
    c->rw = v >> 4 & 3;
    c->mode = v >> 1 & 7;
    if (c->mode > 5) {
        c->mode &= 3; /* bit 2 does not matter for modes 2 and 3 */
    }
    c->bcd = v & 1;
    c->loaded = false;
    c->running = false;
    c->paused = 0;
    c->next_reload = 0;
    c->null_count = true;
    c->write_msb_next = false;
    c->read_msb_next = false;
    c->latched_bytes = 0;
    c->status_latched = false;
}

static void channel_latch_count(PitChannel *c, uint64_t now)
{
    if (!c->latched_bytes) {
        c->latched_count = channel_read_count(c, now);
        c->latched_bytes = c->rw == RW_BOTH ? 2 : 1;
    }
}

static void channel_latch_status(PitChannel *c, uint64_t now)
{
    if (!c->status_latched) {
        c->status_latched = true;
        c->status = (uint8_t)(channel_out(c, now) << 7 | c->null_count << 6 | c->rw << 4 |
                              c->mode << 1 | c->bcd);
    }
}

static uint8_t channel_read(PitChannel *c, uint64_t now)
{
    uint16_t n;
    bool msb;

    if (c->status_latched) {
        c->status_latched = false;
        return c->status;
    }
    n = c->latched_bytes ? c->latched_count : channel_read_count(c, now);
    msb = c->rw == RW_MSB || (c->rw == RW_BOTH && c->read_msb_next);
    if (c->rw == RW_BOTH) {
        c->read_msb_next = !c->read_msb_next;
    }
    if (c->latched_bytes) {
        c->latched_bytes--;
    }
    return (uint8_t)(msb ? n >> 8 : n);
}

static void channel_write(PitChannel *c, uint8_t v, uint64_t now)
{
    switch (c->rw) {
    case RW_LSB:
        channel_load(c, v, now);
        break;
    case RW_MSB:
        channel_load(c, (uint16_t)(v << 8), now);
        break;
    case RW_BOTH:
        if (!c->write_msb_next) {
            c->write_lsb = v;
            c->write_msb_next = true;
            if (c->mode == 0) { /* the first byte stops the count and OUT goes low */
                c->running = false;
                c->loaded = false;
                c->paused = 0;
            }
        } else {
            c->write_msb_next = false;
            channel_load(c, (uint16_t)(v << 8 | c->write_lsb), now);
        }
        break;
    }
}

/* ---- Counter 0's events ---- */

static void pit_set_level(PitState *s, bool level)
{
    if (level != s->irq_level) {
        s->irq_level = level;
        irq_set(&s->irq, level);
    }
}

/* Tick of the next change of OUT that somebody could notice; UINT64_MAX for none. */
static uint64_t pit_next_event(const PitState *s, uint64_t now)
{
    const PitChannel *c = &s->ch[0];
    uint64_t d = elapsed(c, now), next, n = c->reload;

    if (!c->loaded || !c->running) {
        return UINT64_MAX;
    }
    switch (c->mode) {
    case 0:
    case 1:
        return d < n ? c->start_tick + n : UINT64_MAX;
    case 2:
        next = c->start_tick + (d / n + 1) * n;
        break;
    case 3:
        next = c->start_tick + d / n * n + (d % n < (n + 1) / 2 ? (n + 1) / 2 : n);
        break;
    default:
        return s->periods_seen ? UINT64_MAX : c->start_tick + n + 1;
    }
    if (s->backlog) {
        next = MIN(next, s->next_pulse);
    }
    return MAX(next, now + (n < MIN_EVENT_TICKS ? MIN_EVENT_TICKS : 1));
}

static void pit_arm(PitState *s, uint64_t now)
{
    uint64_t next = pit_next_event(s, now);

    if (next == UINT64_MAX) {
        timer_del(&s->timer);
    } else {
        timer_mod(&s->timer, pit_tick_ns(next));
    }
    cpu_look_tick_due(next == UINT64_MAX ? INT64_MAX : pit_tick_ns(next));
}

/*
 * Counts the ticks that became due. A tick that comes late, because the host was busy, is not
 * dropped: guests count ticks against other clocks when they calibrate. So it is delivered after
 * the one before it has had an eighth of a period to be handled.
 */
static void pit_collect(PitState *s, uint64_t now)
{
    PitChannel *c = &s->ch[0];
    uint64_t d, k, due = 0;

    if (channel_sync(c, now)) {
        s->periods_seen = 0;
        due++;
    }
    if (!c->loaded || !c->running) {
        return;
    }
    d = elapsed(c, now);
    if (periodic(c)) {
        k = d / c->reload;
    } else {
        k = c->mode >= 4 && d > c->reload;
    }
    if (k > s->periods_seen) {
        due += k - s->periods_seen;
        s->periods_seen = k;
    }
    due += s->backlog;
    if (c->reload < REPLAY_TICKS) {
        due = MIN(due, 1);
    }
    s->backlog = (uint32_t)MIN(due, PIT_HZ / REPLAY_TICKS);
}

/* Lock held; after any change. */
static void pit_update(PitState *s, uint64_t now)
{
    pit_collect(s, now);
    if (s->backlog && now >= s->next_pulse) {
        s->backlog--;
        s->next_pulse = now + MAX(s->ch[0].reload / 8, MIN_EVENT_TICKS);
        pit_set_level(s, false);
        pit_set_level(s, true);
    }
    pit_set_level(s, channel_out(&s->ch[0], now));
    pit_arm(s, now);
}

static void pit_timer_fn(void *opaque)
{
    PitState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    pit_update(s, pit_tick_now());
}

void pit_set_irq_out(DeviceState *pit, IrqLine out)
{
    PitState *s = (PitState *)pit;

    QEMU_LOCK_GUARD(&s->lock);
    s->irq = out;
}

/* ---- Ports ---- */

static void pit_read_back(PitState *s, uint8_t v, uint64_t now)
{
    for (unsigned i = 0; i < 3; i++) {
        if (v & (2u << i)) {
            if (!(v & 0x20)) {
                channel_latch_count(&s->ch[i], now);
            }
            if (!(v & 0x10)) {
                channel_latch_status(&s->ch[i], now);
            }
        }
    }
}

static void pit_control_write(PitState *s, uint8_t v, uint64_t now)
{
    unsigned i = v >> 6;

    if (i == 3) {
        pit_read_back(s, v, now);
    } else if ((v & 0x30) == 0) {
        channel_latch_count(&s->ch[i], now);
    } else {
        channel_control(&s->ch[i], v);
        if (i == 0) {
            s->periods_seen = 0;
            s->backlog = 0;
        }
    }
}

/* Counter 2 in mode 0 is what guests calibrate by, polling its OUT at port 61h: the time at which
 * the vCPU would have asked had the host not held it off (accel/cpu.h). */
static uint64_t counter2_now(PitState *s)
{
    PitChannel *c = &s->ch[2];
    int64_t begin_lost, now = cpu_look(current_cpu);

    now -= cpu_look_lost(current_cpu, &begin_lost);
    if (begin_lost && c->running && c->mode == 0) {
        c->start_tick += ns_to_ticks(begin_lost);
    }
    return ns_to_ticks(now);
}

static void counter2_write(PitState *s, uint8_t v)
{
    PitChannel *c = &s->ch[2];
    bool was_running = c->running;
    uint64_t now = ns_to_ticks(cpu_look_begin(current_cpu));

    channel_sync(c, now);
    channel_write(c, v, now);
    if (current_cpu && !(c->mode == 0 && c->running && !was_running)) {
        cpu_look_end(current_cpu);
    }
}

static void pit_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    PitState *s = opaque;
    uint64_t now, start;

    QEMU_LOCK_GUARD(&s->lock);
    if (offset == 2) {
        counter2_write(s, (uint8_t)value);
        return;
    }
    now = pit_tick_now();
    pit_update(s, now);
    channel_sync(&s->ch[1], now);
    channel_sync(&s->ch[2], now);
    start = s->ch[0].start_tick;
    if (offset == 3) {
        pit_control_write(s, (uint8_t)value, now);
    } else {
        channel_write(&s->ch[offset], (uint8_t)value, now);
    }
    if (s->ch[0].start_tick != start) {
        s->periods_seen = 0;
        s->backlog = 0;
    }
    pit_update(s, now);
}

static uint64_t pit_read(void *opaque, hwaddr offset, unsigned size)
{
    PitState *s = opaque;
    uint64_t now;

    if (offset == 3) {
        return 0xff; /* the control word can not be read */
    }
    QEMU_LOCK_GUARD(&s->lock);
    now = offset == 2 ? counter2_now(s) : pit_tick_now();
    if (offset == 0) {
        pit_update(s, now);
    } else {
        channel_sync(&s->ch[offset], now);
    }
    return channel_read(&s->ch[offset], now);
}

static uint64_t port61_read(void *opaque, hwaddr offset, unsigned size)
{
    PitState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    uint64_t now = counter2_now(s);
    bool refresh = now / 18 & 1; /* refresh requests every 15 us toggle bit 4 */
    channel_sync(&s->ch[2], now);
    return s->port61 | (uint64_t)refresh << 4 | (uint64_t)channel_out(&s->ch[2], now) << 5;
}

static void port61_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    PitState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    s->port61 = value & 0xf;
    channel_set_gate(&s->ch[2], value & 1, pit_tick_now());
}

static const MemoryRegionOps pit_ops = { .read = pit_read, .write = pit_write, .impl_max = 1 };
static const MemoryRegionOps port61_ops = {
    .read = port61_read, .write = port61_write, .impl_max = 1,
};

/* ---- Device ---- */

/* Counters are idle until programmed; the data sheet leaves their state undefined. */
static void pit_reset(DeviceState *dev)
{
    PitState *s = (PitState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    memset(s->ch, 0, sizeof(s->ch));
    for (unsigned i = 0; i < 3; i++) {
        s->ch[i].reload = 65536;
        s->ch[i].rw = RW_BOTH;
        s->ch[i].gate = i != 2;
    }
    s->port61 = 0;
    s->backlog = 0;
    s->next_pulse = 0;
    s->periods_seen = 0;
    pit_set_level(s, false);
    pit_arm(s, 0);
}

static void pit_unrealize(DeviceState *dev)
{
    PitState *s = (PitState *)dev;

    cpu_look_set_tick(NULL, NULL);
    timer_fini(&s->timer);
    qemu_mutex_destroy(&s->lock);
}

static bool pit_realize(DeviceState *dev, Error **errp)
{
    PitState *s = (PitState *)dev;

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "i8254");
    timer_init(&s->timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, pit_timer_fn, s);
    cpu_look_set_tick(pit_timer_fn, s);
    s->irq = isa_irq(dev, 0);
    memory_region_init_io(&s->io, &pit_ops, s, "pit", 4);
    memory_region_init_io(&s->io61, &port61_ops, s, "port61", 1);
    if (!isa_map_ports(dev, &s->io, (uint16_t)s->iobase, errp) ||
        (s->has_port61 && !isa_map_ports(dev, &s->io61, 0x61, errp))) {
        pit_unrealize(dev);
        return false;
    }
    return true;
}

static bool pit_post_load(void *opaque, int version, Error **errp)
{
    PitState *s = opaque;

    for (unsigned i = 0; i < 3; i++) {
        PitChannel *c = &s->ch[i];

        if (!c->reload || c->reload > 65536 || c->next_reload > 65536 || c->mode > 5 ||
            c->rw > RW_BOTH) {
            error_setg(errp, "i8254: invalid state of counter %u", i);
            return false;
        }
    }
    return true;
}

static const VMState channel_vmstate = {
    .name = "i8254-channel",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U64, PitChannel, start_tick, 1),
        VMS_FIELD(VMS_U64, PitChannel, switch_tick, 1),
        VMS_FIELD(VMS_U32, PitChannel, reload, 1),
        VMS_FIELD(VMS_U32, PitChannel, next_reload, 1),
        VMS_FIELD(VMS_U32, PitChannel, paused, 1),
        VMS_FIELD(VMS_U8, PitChannel, mode, 1),
        VMS_FIELD(VMS_U8, PitChannel, rw, 1),
        VMS_FIELD(VMS_U8, PitChannel, write_lsb, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, bcd, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, gate, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, loaded, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, running, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, null_count, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, write_msb_next, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, read_msb_next, 1),
        VMS_FIELD(VMS_BOOL, PitChannel, status_latched, 1),
        VMS_FIELD(VMS_U8, PitChannel, status, 1),
        VMS_FIELD(VMS_U8, PitChannel, latched_bytes, 1),
        VMS_FIELD(VMS_U16, PitChannel, latched_count, 1),
        VMS_END,
    },
};

static const VMState pit_vmstate = {
    .name = "i8254",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_STRUCT_ARRAY(PitState, ch, 3, PitChannel, channel_vmstate),
        VMS_FIELD(VMS_U64, PitState, periods_seen, 1),
        VMS_FIELD(VMS_U32, PitState, backlog, 1),
        VMS_FIELD(VMS_U64, PitState, next_pulse, 1),
        VMS_FIELD(VMS_BOOL, PitState, irq_level, 1),
        VMS_FIELD(VMS_U8, PitState, port61, 1),
        VMS_FIELD(VMS_TIMER, PitState, timer, 1),
        VMS_END,
    },
    .post_load = pit_post_load,
};

static const Property pit_props[] = {
    DEFINE_PROP("iobase", PROP_UINT32, PitState, iobase, 0x40, "first of four ports"),
    DEFINE_PROP("port61", PROP_BOOL, PitState, has_port61, true, "also port 61h"),
    DEFINE_PROP_END,
};

static const DeviceLines pit_lines[] = {
    { "irq", offsetof(PitState, irq), 1, false },
    {},
};

static const DeviceType pit_type = {
    .name = "isa-pit",
    .desc = "8254 interval timer",
    .bus = "isa",
    .instance_size = sizeof(PitState),
    .props = pit_props,
    .realize = pit_realize,
    .unrealize = pit_unrealize,
    .reset = pit_reset,
    .vmstate = &pit_vmstate,
    .lines = pit_lines,
};
DEVICE_TYPE(pit_type);
