/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Motorola MC146818A real-time clock with the PC's CMOS memory (two banks of 128 bytes, PIIX3).
 * Data sheet: MC146818A (ADI1018); PIIX3 2.5.7 for ports 72h and 73h.
 *
 * The time is an offset to a clock of the host; registers 0..9 and the flags PF, AF and UF are
 * brought up to date when they are looked at, so timers run only for interrupts that are enabled.
 */
#include <string.h>
#include <time.h>
#include "hw/isa.h"
#include "hw/timer.h"
#include "hw/timer/rtc-date.h"
#include "qemu/runstate.h"

enum { REG_SECONDS, REG_SECONDS_ALARM, REG_MINUTES, REG_MINUTES_ALARM, REG_HOURS, REG_HOURS_ALARM,
       REG_DAY_OF_WEEK, REG_DAY, REG_MONTH, REG_YEAR, REG_A, REG_B, REG_C, REG_D,
       REG_CENTURY = 0x32 };

#define A_UIP      0x80
#define A_DV(a)    ((a) >> 4 & 7)
#define DV_RUN     2 /* 32.768 kHz crystal; 6 and 7 hold the divider in reset */
#define B_SET      0x80
#define B_PIE      0x40
#define B_AIE      0x20
#define B_UIE      0x10
#define B_SQWE     0x08
#define B_DM       0x04 /* binary */
#define B_24H      0x02
#define C_IRQF     0x80
#define C_PF       0x40
#define C_AF       0x20
#define C_UF       0x10
#define D_VRT      0x80

#define UIP_NS      244000 /* UIP rises this long before the update */
#define CRYSTAL_HZ  32768
#define DAY_S       86400
#define LAST_SECOND (9000000000ll) /* in 2255: room for the clock to go on */
#define MAX_LOST    (CRYSTAL_HZ / 4)

typedef struct RtcState {
    DeviceState dev;
    /* Guards all below but lines, configuration and properties. */
    QemuMutex lock;
    uint8_t cmos[256];
    uint8_t index, index2;   /* ports 70h, 72h */
    int64_t offset_ns;       /* time of day = clock + offset_ns */
    int64_t held_ns;         /* time of day while the clock is held (SET, divider reset) */
    bool held;
    uint8_t dow_shift;       /* the day of the week counts on its own */
    int64_t update_s;        /* last update whose UF and AF are in register C */
    uint64_t periodic_seen;  /* last periodic tick that is in register C */
    uint32_t lost_ticks;     /* slew: periodic ticks still to be delivered */
    EventTimer update_timer; /* on the clock of time of day: UF and AF */
    EventTimer periodic_timer;
    bool irq_level;
    IrqLine irq;
    RtcConfig cfg;
    bool configured;
    MemoryRegion io;
    uint16_t iobase;
    int lost_tick_policy;
} RtcState;

enum { LOST_TICK_DISCARD, LOST_TICK_SLEW };

/* ---- Time of day ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t rtc_now_ns(const RtcState *s)
{
    return s->held ? s->held_ns : wrap_add(clock_get_ns(s->cfg.clock), s->offset_ns);
}

static int64_t rtc_now_s(const RtcState *s)
{
    return floor_div(rtc_now_ns(s), NANOSECONDS_PER_SECOND);
}

static uint8_t rtc_encode(const RtcState *s, unsigned v)
{
    return (uint8_t)(s->cmos[REG_B] & B_DM ? v : (v / 10 % 10) << 4 | v % 10);
}

static unsigned rtc_decode(const RtcState *s, uint8_t v)
{
    return s->cmos[REG_B] & B_DM ? v : (v >> 4) * 10u + (v & 0xf);
}

static uint8_t encode_hour(const RtcState *s, unsigned h)
{
    if (s->cmos[REG_B] & B_24H) {
        return rtc_encode(s, h);
    }
    return rtc_encode(s, h % 12 ? h % 12 : 12) | (h >= 12 ? 0x80 : 0);
}

static unsigned decode_hour(const RtcState *s, uint8_t v)
{
    unsigned h;

    if (s->cmos[REG_B] & B_24H) {
        return rtc_decode(s, v);
    }
    h = rtc_decode(s, v & 0x7f);
    return (h == 12 ? 0 : h) + (v & 0x80 ? 12 : 0);
}

/* Brings the registers up to date. */
static void rtc_refresh(RtcState *s)
{
    RtcDate d;

    if (s->held) {
        return;
    }
    d = rtc_date_from_seconds(rtc_now_s(s));
    s->cmos[REG_SECONDS] = rtc_encode(s, d.second);
    s->cmos[REG_MINUTES] = rtc_encode(s, d.minute);
    s->cmos[REG_HOURS] = encode_hour(s, d.hour);
    s->cmos[REG_DAY_OF_WEEK] = rtc_encode(s, (d.weekday + s->dow_shift) % 7 + 1);
    s->cmos[REG_DAY] = rtc_encode(s, d.day);
    s->cmos[REG_MONTH] = rtc_encode(s, d.month);
    s->cmos[REG_YEAR] = rtc_encode(s, (unsigned)d.year % 100);
    s->cmos[REG_CENTURY] = rtc_encode(s, (unsigned)d.year / 100);
}

/* Seconds since the epoch that the registers say. */
static int64_t rtc_registers_s(const RtcState *s)
{
    RtcDate d = {
        .second = rtc_decode(s, s->cmos[REG_SECONDS]),
        .minute = rtc_decode(s, s->cmos[REG_MINUTES]),
        .hour = decode_hour(s, s->cmos[REG_HOURS]),
        .day = rtc_decode(s, s->cmos[REG_DAY]),
        .month = rtc_decode(s, s->cmos[REG_MONTH]),
        .year = (int)(rtc_decode(s, s->cmos[REG_CENTURY]) * 100 +
                      rtc_decode(s, s->cmos[REG_YEAR])),
    };

    return rtc_date_to_seconds(&d);
}

/* The registers were written: time goes on from them, the fraction of a second stays. */
static void rtc_set_from_registers(RtcState *s)
{
    int64_t now = rtc_now_ns(s);
    int64_t fraction = now - floor_div(now, NANOSECONDS_PER_SECOND) * NANOSECONDS_PER_SECOND;
    /* The registers reach from the year 0 to 9999, nanoseconds in 64 bits from 1677 to 2262. */
    int64_t seconds = MAX(MIN(rtc_registers_s(s), LAST_SECOND), -LAST_SECOND);
    int64_t t = seconds * NANOSECONDS_PER_SECOND + fraction;
    unsigned weekday = rtc_date_from_seconds(seconds).weekday;

    s->dow_shift = (uint8_t)((rtc_decode(s, s->cmos[REG_DAY_OF_WEEK]) + 13 - weekday) % 7);
    if (s->held) {
        s->held_ns = t;
    } else {
        s->offset_ns = wrap_add(s->offset_ns, wrap_sub(t, now));
    }
    s->update_s = floor_div(t, NANOSECONDS_PER_SECOND);
}

/* ---- Flags ---- */

static bool alarm_matches(const RtcState *s, uint8_t reg, unsigned have)
{
    uint8_t v = s->cmos[reg];

    if ((v & 0xc0) == 0xc0) {
        return true; /* don't care */
    }
    return (reg == REG_HOURS_ALARM ? decode_hour(s, v) : rtc_decode(s, v)) == have;
}

/* First second of a day, not before from, at which the alarm matches; -1 if none. */
static int alarm_in_day(const RtcState *s, unsigned from)
{
    for (unsigned h = from / 3600; h < 24; h++) {
        if (!alarm_matches(s, REG_HOURS_ALARM, h)) {
            continue;
        }
        for (unsigned m = h == from / 3600 ? from / 60 % 60 : 0; m < 60; m++) {
            if (!alarm_matches(s, REG_MINUTES_ALARM, m)) {
                continue;
            }
            for (unsigned sec = 0; sec < 60; sec++) {
                unsigned t = h * 3600 + m * 60 + sec;

                if (t >= from && alarm_matches(s, REG_SECONDS_ALARM, sec)) {
                    return (int)t;
                }
            }
        }
    }
    return -1;
}

/* The next second after t at which the alarm goes off; INT64_MAX for an impossible one. */
static int64_t next_alarm(const RtcState *s, int64_t t)
{
    int64_t day = floor_div(t + 1, DAY_S) * DAY_S;
    int at = alarm_in_day(s, (unsigned)(t + 1 - day));

    if (at < 0) {
        day += DAY_S;
        at = alarm_in_day(s, 0);
    }
    return at < 0 ? INT64_MAX : day + at;
}

static uint64_t periodic_shift(const RtcState *s)
{
    unsigned rs = s->cmos[REG_A] & 0xf;

    return rs <= 2 ? rs + 6 : rs - 1;
}

static bool periodic_runs(const RtcState *s)
{
    return (s->cmos[REG_A] & 0xf) && A_DV(s->cmos[REG_A]) == DV_RUN;
}

/* Number of the latest periodic tick. */
static uint64_t periodic_now(const RtcState *s)
{
    return (uint64_t)((__uint128_t)clock_get_ns(CLOCK_TYPE_VIRTUAL) * CRYSTAL_HZ /
                      NANOSECONDS_PER_SECOND) >> periodic_shift(s);
}

static int64_t periodic_tick_ns(const RtcState *s, uint64_t n)
{
    return (int64_t)(((__uint128_t)(n << periodic_shift(s)) * NANOSECONDS_PER_SECOND +
                      CRYSTAL_HZ - 1) / CRYSTAL_HZ);
}

static void collect_periodic(RtcState *s)
{
    uint64_t n, due;

    if (!periodic_runs(s)) {
        return;
    }
    n = periodic_now(s);
    if (n <= s->periodic_seen) {
        return;
    }
    due = n - s->periodic_seen;
    s->periodic_seen = n;
    if (s->lost_tick_policy == LOST_TICK_SLEW && (s->cmos[REG_B] & B_PIE)) {
        due = s->lost_ticks + due - !(s->cmos[REG_C] & C_PF);
        s->lost_ticks = (uint32_t)MIN(due, MAX_LOST);
    }
    s->cmos[REG_C] |= C_PF;
}

/* Finds what happened since the last look. */
static void rtc_collect(RtcState *s)
{
    int64_t now = rtc_now_s(s);

    collect_periodic(s);
    if (s->held) {
        return;
    }
    if (now > s->update_s) {
        s->cmos[REG_C] |= C_UF;
        if (next_alarm(s, s->update_s) <= now) {
            s->cmos[REG_C] |= C_AF;
        }
    }
    s->update_s = now; /* backwards, too, when the host's clock was set */
}

static void rtc_set_irq(RtcState *s)
{
    bool level = s->cmos[REG_B] & s->cmos[REG_C] & (C_PF | C_AF | C_UF);

    if (level) {
        s->cmos[REG_C] |= C_IRQF;
    } else {
        s->cmos[REG_C] &= (uint8_t)~C_IRQF;
    }
    if (level != s->irq_level) {
        s->irq_level = level;
        irq_set(&s->irq, level);
    }
}

static void rtc_arm(RtcState *s)
{
    int64_t when = INT64_MAX;
    uint8_t b = s->cmos[REG_B];

    if ((b & B_UIE) && !(s->cmos[REG_C] & C_UF)) {
        when = s->update_s + 1;
    }
    if ((b & B_AIE) && !(s->cmos[REG_C] & C_AF)) {
        when = MIN(when, next_alarm(s, s->update_s));
    }
    if (s->held || when == INT64_MAX) {
        timer_del(&s->update_timer);
    } else {
        timer_mod(&s->update_timer, wrap_sub(when * NANOSECONDS_PER_SECOND, s->offset_ns));
    }

    if (!(b & B_PIE) || !periodic_runs(s)) {
        timer_del(&s->periodic_timer);
    } else if (s->lost_ticks && !(s->cmos[REG_C] & C_PF)) {
        /* Make up for it soon, but let the guest leave its handler first. */
        timer_mod(&s->periodic_timer, clock_get_ns(CLOCK_TYPE_VIRTUAL) +
                                          (periodic_tick_ns(s, 1) >> 3));
    } else if (!(s->cmos[REG_C] & C_PF) || s->lost_tick_policy == LOST_TICK_SLEW) {
        timer_mod(&s->periodic_timer, periodic_tick_ns(s, s->periodic_seen + 1));
    } else {
        /* Nobody would notice another tick before register C is read. */
        timer_del(&s->periodic_timer);
    }
}

/* Lock held; after any change. */
static void rtc_update(RtcState *s)
{
    rtc_collect(s);
    rtc_set_irq(s);
    rtc_arm(s);
}

static void rtc_update_fn(void *opaque)
{
    RtcState *s = opaque;

    /* The host's clock runs while the machine is stopped; what happened is found at `cont`. */
    if (s->cfg.clock != CLOCK_TYPE_VIRTUAL && !runstate_devices_run()) {
        return;
    }
    QEMU_LOCK_GUARD(&s->lock);
    rtc_update(s);
}

static void rtc_periodic_fn(void *opaque)
{
    RtcState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    rtc_collect(s);
    if (s->lost_ticks && !(s->cmos[REG_C] & C_PF)) {
        s->lost_ticks--;
        s->cmos[REG_C] |= C_PF;
    }
    rtc_set_irq(s);
    rtc_arm(s);
}

static void rtc_run_state(void *opaque, RunState old, RunState now)
{
    RtcState *s = opaque;

    if (now == RUN_STATE_RUNNING) {
        QEMU_LOCK_GUARD(&s->lock);
        rtc_update(s);
    }
}

/* ---- Registers ---- */

static bool is_time_register(uint8_t reg)
{
    return reg == REG_SECONDS || reg == REG_MINUTES || reg == REG_HOURS ||
           (reg >= REG_DAY_OF_WEEK && reg <= REG_YEAR) || reg == REG_CENTURY;
}

/* SET, or a divider that does not run, holds the clock. */
static void rtc_hold(RtcState *s, uint8_t a, uint8_t b)
{
    bool hold = (b & B_SET) || A_DV(a) != DV_RUN;
    bool divider_starts = A_DV(s->cmos[REG_A]) != DV_RUN && A_DV(a) == DV_RUN;
    int64_t second;

    if (hold && !s->held) {
        rtc_refresh(s);
        s->held_ns = rtc_now_ns(s);
        s->held = true;
    }
    if (divider_starts) {
        /* The first update follows half a second after the divider's reset ends. */
        second = floor_div(s->held_ns, NANOSECONDS_PER_SECOND);
        s->held_ns = second * NANOSECONDS_PER_SECOND + NANOSECONDS_PER_SECOND / 2;
    }
    if (!hold && s->held) {
        s->offset_ns = wrap_sub(s->held_ns, clock_get_ns(s->cfg.clock));
        s->held = false;
        s->update_s = rtc_now_s(s);
    }
}

static void write_a(RtcState *s, uint8_t v)
{
    bool rate_changes = (v ^ s->cmos[REG_A]) & 0x7f;

    rtc_hold(s, v, s->cmos[REG_B]);
    s->cmos[REG_A] = v & 0x7f;
    if (rate_changes && periodic_runs(s)) {
        s->periodic_seen = periodic_now(s);
        s->lost_ticks = 0;
    }
}

static void write_b(RtcState *s, uint8_t v)
{
    rtc_refresh(s);
    if (v & B_SET) {
        v &= (uint8_t)~B_UIE; /* data sheet, register B, SET */
    }
    rtc_hold(s, s->cmos[REG_A], v);
    if (!(v & B_PIE)) {
        s->lost_ticks = 0;
    }
    s->cmos[REG_B] = v;
    /* Format bits do not convert what is held; a running clock shows the new format. */
    if (s->held) {
        rtc_set_from_registers(s);
    }
}

static void rtc_write_register(RtcState *s, uint8_t reg, uint8_t v)
{
    rtc_collect(s);
    switch (reg) {
    case REG_A:
        write_a(s, v);
        break;
    case REG_B:
        write_b(s, v);
        break;
    case REG_C:
    case REG_D:
        return;
    default:
        if (is_time_register(reg)) {
            rtc_refresh(s);
            s->cmos[reg] = v;
            rtc_set_from_registers(s);
        } else {
            s->cmos[reg] = v;
        }
    }
    rtc_update(s);
}

static uint8_t read_a(RtcState *s)
{
    int64_t now = rtc_now_ns(s);
    int64_t left = (floor_div(now, NANOSECONDS_PER_SECOND) + 1) * NANOSECONDS_PER_SECOND - now;

    return s->cmos[REG_A] | (!s->held && left <= UIP_NS ? A_UIP : 0);
}

static uint8_t rtc_read_register(RtcState *s, uint8_t reg)
{
    uint8_t v;

    switch (reg) {
    case REG_A:
        return read_a(s);
    case REG_C:
        rtc_collect(s);
        rtc_set_irq(s);
        v = s->cmos[REG_C];
        s->cmos[REG_C] = 0;
        rtc_set_irq(s);
        rtc_arm(s);
        return v;
    case REG_D:
        return D_VRT;
    }
    if (is_time_register(reg)) {
        rtc_refresh(s);
    }
    return s->cmos[reg];
}

static void rtc_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    RtcState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    switch (offset) {
    case 0: /* bit 7 masks NMI, of which this machine's chip set has none */
        s->index = value & 0x7f;
        break;
    case 1:
        rtc_write_register(s, s->index, (uint8_t)value);
        break;
    case 2:
        s->index2 = value & 0x7f;
        break;
    case 3:
        s->cmos[0x80 | s->index2] = (uint8_t)value;
        break;
    }
}

static uint64_t rtc_read(void *opaque, hwaddr offset, unsigned size)
{
    RtcState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    switch (offset) {
    case 1:
        return rtc_read_register(s, s->index);
    case 3:
        return s->cmos[0x80 | s->index2];
    }
    return 0xff; /* the index registers can not be read */
}

static const MemoryRegionOps rtc_ops = { .read = rtc_read, .write = rtc_write, .impl_max = 1 };

/* ---- For boards ---- */

void rtc_set_memory(DeviceState *rtc, uint8_t addr, uint8_t value)
{
    RtcState *s = (RtcState *)rtc;

    QEMU_LOCK_GUARD(&s->lock);
    if (addr > REG_D) {
        s->cmos[addr] = value;
    }
}

uint8_t rtc_get_memory(DeviceState *rtc, uint8_t addr)
{
    RtcState *s = (RtcState *)rtc;

    QEMU_LOCK_GUARD(&s->lock);
    rtc_refresh(s);
    return s->cmos[addr];
}

void rtc_configure(DeviceState *rtc, const RtcConfig *cfg)
{
    RtcState *s = (RtcState *)rtc;

    s->cfg = *cfg;
    s->configured = true;
    if (cfg->driftfix_slew) {
        s->lost_tick_policy = LOST_TICK_SLEW;
    }
}

void rtc_set_irq_out(DeviceState *rtc, IrqLine out)
{
    RtcState *s = (RtcState *)rtc;

    QEMU_LOCK_GUARD(&s->lock);
    s->irq = out;
}

/* ---- Device ---- */

/* RESET clears the interrupt enables and flags; time and memory are battery-backed. */
static void rtc_reset(DeviceState *dev)
{
    RtcState *s = (RtcState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    s->cmos[REG_B] &= (uint8_t)~(B_PIE | B_AIE | B_UIE | B_SQWE);
    s->lost_ticks = 0;
    rtc_collect(s);
    s->cmos[REG_C] = 0;
    rtc_set_irq(s);
    rtc_arm(s);
}

static void rtc_start_clock(RtcState *s)
{
    int64_t host = clock_get_ns(CLOCK_TYPE_HOST);
    time_t t = (time_t)(host / NANOSECONDS_PER_SECOND);
    struct tm tm;

    if (!s->configured) {
        s->cfg.clock = CLOCK_TYPE_HOST;
    }
    s->offset_ns = s->cfg.dated ? (s->cfg.date_s - t) * NANOSECONDS_PER_SECOND : 0;
    if (s->cfg.localtime) {
        localtime_r(&t, &tm);
        s->offset_ns += (int64_t)tm.tm_gmtoff * NANOSECONDS_PER_SECOND;
    }
    if (s->cfg.clock != CLOCK_TYPE_HOST) {
        /* A second begins now, so that runs in virtual time repeat. */
        s->offset_ns += (int64_t)t * NANOSECONDS_PER_SECOND - clock_get_ns(s->cfg.clock);
    }
    s->cmos[REG_A] = DV_RUN << 4 | 6; /* 1024 Hz */
    s->cmos[REG_B] = B_24H;
    rtc_refresh(s);
    s->update_s = rtc_now_s(s);
    s->periodic_seen = periodic_now(s);
}

static void rtc_unrealize(DeviceState *dev)
{
    RtcState *s = (RtcState *)dev;

    timer_fini(&s->update_timer);
    timer_fini(&s->periodic_timer);
    qemu_mutex_destroy(&s->lock);
}

static bool rtc_realize(DeviceState *dev, Error **errp)
{
    RtcState *s = (RtcState *)dev;

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "mc146818rtc");
    rtc_start_clock(s);
    timer_init(&s->update_timer, event_loop_main(), s->cfg.clock, rtc_update_fn, s);
    timer_init(&s->periodic_timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, rtc_periodic_fn, s);
    s->irq = isa_irq(dev, 8);
    memory_region_init_io(&s->io, &rtc_ops, s, "rtc", 4);
    if (!isa_map_ports(dev, &s->io, s->iobase, errp)) {
        rtc_unrealize(dev);
        return false;
    }
    runstate_add_listener(rtc_run_state, s);
    return true;
}

static void rtc_pre_save(void *opaque)
{
    RtcState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    rtc_update(s);
}

static bool rtc_post_load(void *opaque, int version, Error **errp)
{
    RtcState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    s->index &= 0x7f;
    s->index2 &= 0x7f;
    rtc_update(s);
    return true;
}

static const VMState rtc_vmstate = {
    .name = "mc146818rtc",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_BUFFER, RtcState, cmos, 256),
        VMS_FIELD(VMS_U8, RtcState, index, 1),
        VMS_FIELD(VMS_U8, RtcState, index2, 1),
        VMS_FIELD(VMS_U64, RtcState, offset_ns, 1),
        VMS_FIELD(VMS_U64, RtcState, held_ns, 1),
        VMS_FIELD(VMS_BOOL, RtcState, held, 1),
        VMS_FIELD(VMS_U8, RtcState, dow_shift, 1),
        VMS_FIELD(VMS_U64, RtcState, update_s, 1),
        VMS_FIELD(VMS_U64, RtcState, periodic_seen, 1),
        VMS_FIELD(VMS_U32, RtcState, lost_ticks, 1),
        VMS_FIELD(VMS_BOOL, RtcState, irq_level, 1),
        VMS_END,
    },
    .pre_save = rtc_pre_save,
    .post_load = rtc_post_load,
};

static const char *const lost_tick_words[] = { "discard", "slew", NULL };

static const Property rtc_props[] = {
    DEFINE_PROP("iobase", PROP_UINT16, RtcState, iobase, 0x70, "first of four ports"),
    { .name = "lost_tick_policy", .kind = PROP_ENUM, .offset = offsetof(RtcState, lost_tick_policy),
      .value_names = lost_tick_words, .help = "periodic ticks the guest was too late for" },
    DEFINE_PROP_END,
};

static const DeviceLines rtc_lines[] = {
    { "irq", offsetof(RtcState, irq), 1, false },
    {},
};

static const DeviceType rtc_type = {
    .name = "mc146818rtc",
    .desc = "real-time clock and CMOS memory",
    .bus = "isa",
    .instance_size = sizeof(RtcState),
    .props = rtc_props,
    .realize = rtc_realize,
    .unrealize = rtc_unrealize,
    .reset = rtc_reset,
    .vmstate = &rtc_vmstate,
    .lines = rtc_lines,
};
DEVICE_TYPE(rtc_type);
