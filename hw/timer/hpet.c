/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * High precision event timer: a 100 MHz, 64-bit counter and three comparators.
 * Specification: IA-PC HPET 1.0a.
 *
 * The counter is derived from virtual time. A comparator's next match is kept as an absolute value
 * of the 64-bit counter (target), so lateness of an event does not move the next one.
 */
#include <string.h>
#include "accel/irqchip.h"
#include "hw/timer.h"
#include "memory/memory.h"

#define TIMERS     3
#define TICK_NS    10
#define PERIOD_FS  (TICK_NS * 1000000ull)

/* 2.3.4: revision 1, 3 timers, 64-bit counter, legacy replacement, vendor 8086h. */
#define CAP_VALUE  (PERIOD_FS << 32 | 0x80860000u | BIT(15) | BIT(13) | (TIMERS - 1) << 8 | 1)

enum { REG_CAP = 0x000, REG_CONFIG = 0x010, REG_STATUS = 0x020, REG_COUNTER = 0x0f0,
       REG_TIMER = 0x100 };

#define CONFIG_ENABLE BIT64(0)
#define CONFIG_LEGACY BIT64(1)

#define TN_LEVEL     BIT64(1)
#define TN_ENABLE    BIT64(2)
#define TN_PERIODIC  BIT64(3)
#define TN_PER_CAP   BIT64(4)
#define TN_SIZE_CAP  BIT64(5)
#define TN_VAL_SET   BIT64(6)
#define TN_32BIT     BIT64(8)
#define TN_ROUTE(c)  ((unsigned)((c) >> 9) & 0x1f)
#define TN_FSB       BIT64(14)
#define TN_FSB_CAP   BIT64(15)
#define TN_WRITABLE  (TN_LEVEL | TN_ENABLE | TN_PERIODIC | TN_VAL_SET | TN_32BIT | 0x1full << 9)

#define NEVER UINT64_MAX

/* Events come no closer than this (20 us). Periods below REPLAY merge late ticks, longer ones make
 * up for them (see i8254.c). */
#define MIN_EVENT_TICKS 2000
#define REPLAY_TICKS    50000
#define MAX_BACKLOG     2000

typedef struct HpetTimer {
    struct HpetState *hpet;
    uint64_t config, comparator, fsb;
    uint64_t period;
    uint64_t target;     /* counter value of the next match; NEVER */
    uint64_t next_pulse; /* no tick is delivered before the counter is here */
    uint32_t backlog;    /* matches not yet delivered */
    bool level;          /* of our contribution to a line */
    uint8_t line;        /* which line that is */
    EventTimer timer;
} HpetTimer;

typedef struct HpetState {
    DeviceState dev;
    /* Guards all below but the lines and properties. Rank DEVICE_LO: the PIT and the RTC come
     * through here under their own locks. */
    QemuMutex lock;
    uint64_t config, status;
    uint64_t counter; /* value at start_ns, or while halted */
    int64_t start_ns;
    HpetTimer tn[TIMERS];
    bool legacy_in[2]; /* levels of the PIT's and the RTC's outputs */
    void (*legacy_hook)(bool on); /* a PIT that is not behind legacy_in[0] */
    IrqLine gsi[24];
    uint32_t intcap;
    bool msi;
    MemoryRegion mmio;
} HpetState;

/* ---- Counter ---- */

static bool hpet_runs(const HpetState *s)
{
    return s->config & CONFIG_ENABLE;
}

static uint64_t counter_now(const HpetState *s)
{
    if (!hpet_runs(s)) {
        return s->counter;
    }
    return s->counter + (uint64_t)(clock_get_ns(CLOCK_TYPE_VIRTUAL) - s->start_ns) / TICK_NS;
}

static uint64_t tn_mask(const HpetTimer *t)
{
    return t->config & TN_32BIT ? UINT32_MAX : UINT64_MAX;
}

/* Finds the next match from the counter's value of now. */
static void tn_program(HpetTimer *t, uint64_t now)
{
    uint64_t distance = (t->comparator - now) & tn_mask(t);

    /* Half the 64-bit range is 2900 years: behind us. */
    t->target = distance >> 63 ? NEVER : now + distance;
    t->backlog = 0;
    t->next_pulse = 0;
}

/* ---- Interrupts ---- */

static bool legacy(const HpetState *s)
{
    return s->config & CONFIG_LEGACY;
}

/* In legacy replacement mode timers 0 and 1 are wired to ISA lines 0 and 8 (2.3.5). */
static unsigned tn_line(const HpetTimer *t)
{
    unsigned n = (unsigned)(t - t->hpet->tn);

    if (legacy(t->hpet) && n < 2) {
        return n ? 8 : 0;
    }
    return TN_ROUTE(t->config);
}

static void tn_set_line(HpetTimer *t, bool level)
{
    if (t->level != level) {
        t->level = level;
        irq_set(&t->hpet->gsi[t->line], level);
    }
}

static bool tn_is_level(const HpetTimer *t)
{
    return (t->config & TN_LEVEL) && !(t->config & TN_FSB);
}

/* Level-triggered: the line follows the status bit. */
static void tn_update_level(HpetTimer *t)
{
    HpetState *s = t->hpet;
    unsigned line = tn_line(t);
    bool want = tn_is_level(t) && (t->config & TN_ENABLE) && (s->status & BIT(t - s->tn));

    if (line != t->line) {
        tn_set_line(t, false);
        t->line = (uint8_t)line;
    }
    if (line < ARRAY_SIZE(s->gsi)) {
        tn_set_line(t, want);
    }
}

static void tn_pulse(HpetTimer *t)
{
    HpetState *s = t->hpet;
    unsigned line = tn_line(t);

    if (!(t->config & TN_ENABLE)) {
        return;
    }
    if (t->config & TN_FSB) {
        irqchip->send_msi(t->fsb >> 32, (uint32_t)t->fsb);
    } else if (line < ARRAY_SIZE(s->gsi)) {
        irq_raise(&s->gsi[line]);
        irq_lower(&s->gsi[line]);
    }
}

/* ---- Matches ---- */

/* Accounts for the matches up to now. */
static void tn_collect(HpetTimer *t, uint64_t now)
{
    HpetState *s = t->hpet;
    uint64_t n = 1;

    if (!hpet_runs(s) || t->target == NEVER || now < t->target) {
        return;
    }
    if ((t->config & TN_PERIODIC) && t->period) {
        n = (now - t->target) / t->period + 1;
        t->target += n * t->period;
        t->comparator = (t->comparator + n * t->period) & tn_mask(t);
    } else if (t->config & TN_32BIT) {
        t->target += (((now - t->target) >> 32) + 1) << 32;
    } else {
        t->target = NEVER;
    }
    if (tn_is_level(t)) {
        s->status |= BIT(t - s->tn);
        return;
    }
    if (!(t->config & TN_PERIODIC) || t->period < REPLAY_TICKS) {
        t->backlog = 1;
    } else {
        t->backlog = (uint32_t)MIN(t->backlog + n, MAX_BACKLOG);
    }
}

static void tn_arm(HpetTimer *t, uint64_t now)
{
    HpetState *s = t->hpet;
    uint64_t next = t->target;

    if (t->backlog) {
        next = MIN(next, t->next_pulse);
    }
    if (!hpet_runs(s) || !(t->config & TN_ENABLE) || next == NEVER ||
        next - s->counter > (uint64_t)INT64_MAX / TICK_NS / 2) {
        timer_del(&t->timer);
        return;
    }
    if ((t->config & TN_PERIODIC) && t->period < MIN_EVENT_TICKS) {
        next = MAX(next, now + MIN_EVENT_TICKS);
    }
    timer_mod(&t->timer, s->start_ns + (int64_t)(next - s->counter) * TICK_NS);
}

/* Lock held; after any change and at events. */
static void tn_update(HpetTimer *t, uint64_t now)
{
    tn_collect(t, now);
    if (t->backlog && now >= t->next_pulse) {
        t->backlog--;
        t->next_pulse = now + MAX(t->period / 8, MIN_EVENT_TICKS);
        tn_pulse(t);
    }
    if (!(t->config & TN_PERIODIC)) {
        t->next_pulse = 0;
    }
    tn_update_level(t);
    tn_arm(t, now);
}

static void tn_fn(void *opaque)
{
    HpetTimer *t = opaque;

    QEMU_LOCK_GUARD(&t->hpet->lock);
    if (hpet_runs(t->hpet)) {
        tn_update(t, counter_now(t->hpet));
    }
}

/* ---- Legacy replacement ---- */

static void legacy_input(void *opaque, int which, int level)
{
    HpetState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (s->legacy_in[which] != (level != 0)) {
        s->legacy_in[which] = level;
        if (!legacy(s)) {
            irq_set(&s->gsi[which ? 8 : 0], level);
        }
    }
}

IrqLine hpet_legacy_in(DeviceState *hpet, unsigned which)
{
    return (IrqLine){ legacy_input, hpet, (int)which };
}

void hpet_set_outputs(DeviceState *hpet, const IrqLine gsi[24])
{
    HpetState *s = (HpetState *)hpet;

    memcpy(s->gsi, gsi, sizeof(s->gsi));
}

void hpet_set_legacy_hook(DeviceState *hpet, void (*fn)(bool on))
{
    ((HpetState *)hpet)->legacy_hook = fn;
}

/* The PIT and the RTC lose their lines, or get them back as they are. */
static void hpet_set_legacy(HpetState *s, bool on)
{
    for (unsigned i = 0; i < TIMERS; i++) {
        tn_set_line(&s->tn[i], false);
    }
    if (on) {
        s->config |= CONFIG_LEGACY;
    } else {
        s->config &= ~CONFIG_LEGACY;
    }
    if (s->legacy_hook) {
        s->legacy_hook(on);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (s->legacy_in[i]) {
            irq_set(&s->gsi[i ? 8 : 0], !on);
        }
    }
}

/* ---- Registers ---- */

static void config_write(HpetState *s, uint64_t v)
{
    uint64_t now = counter_now(s);
    bool ran = hpet_runs(s), run = v & CONFIG_ENABLE;

    if (((v ^ s->config) & CONFIG_LEGACY) != 0) {
        hpet_set_legacy(s, v & CONFIG_LEGACY);
    }
    if (run == ran) {
        return;
    }
    s->counter = now;
    s->start_ns = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    s->config = (s->config & CONFIG_LEGACY) | (run ? CONFIG_ENABLE : 0);
    if (run) {
        for (unsigned i = 0; i < TIMERS; i++) {
            tn_program(&s->tn[i], now);
        }
    }
}

static void counter_write(HpetState *s, uint64_t v)
{
    s->counter = v;
    s->start_ns = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    for (unsigned i = 0; i < TIMERS; i++) {
        tn_program(&s->tn[i], v);
    }
}

static void tn_config_write(HpetTimer *t, uint64_t v, uint64_t now)
{
    uint64_t writable = TN_WRITABLE | (t->hpet->msi ? TN_FSB : 0);
    uint64_t old = t->config;

    t->config = (t->config & ~writable) | (v & writable);
    if (t->config & TN_32BIT) {
        t->comparator &= UINT32_MAX;
        t->period &= UINT32_MAX;
    }
    if ((old ^ t->config) & (TN_32BIT | TN_PERIODIC | TN_ENABLE)) {
        tn_program(t, now);
    }
}

/* 2.3.9.2.3: in periodic mode a write sets the period, and the accumulator too if VAL_SET is. */
static void tn_comparator_write(HpetTimer *t, uint64_t v, uint64_t now)
{
    v &= tn_mask(t);
    if (t->config & TN_PERIODIC) {
        t->period = v;
    }
    if (!(t->config & TN_PERIODIC) || (t->config & TN_VAL_SET)) {
        t->comparator = v;
        tn_program(t, now);
    }
    t->config &= ~TN_VAL_SET;
}

static uint64_t reg_read(HpetState *s, hwaddr reg)
{
    HpetTimer *t;

    switch (reg) {
    case REG_CAP:
        return CAP_VALUE;
    case REG_CONFIG:
        return s->config;
    case REG_STATUS:
        return s->status;
    case REG_COUNTER:
        return counter_now(s);
    }
    if (reg < REG_TIMER || reg >= REG_TIMER + TIMERS * 0x20) {
        return 0;
    }
    t = &s->tn[(reg - REG_TIMER) >> 5];
    switch (reg & 0x18) {
    case 0x00:
        return t->config | TN_PER_CAP | TN_SIZE_CAP | (s->msi ? TN_FSB_CAP : 0) |
               (uint64_t)s->intcap << 32;
    case 0x08:
        return t->comparator;
    case 0x10:
        return t->fsb;
    }
    return 0;
}

static void reg_write(HpetState *s, hwaddr reg, uint64_t v, uint64_t now)
{
    HpetTimer *t;

    switch (reg) {
    case REG_CONFIG:
        config_write(s, v);
        return;
    case REG_STATUS: /* write 1 to clear */
        s->status &= ~v;
        return;
    case REG_COUNTER:
        counter_write(s, v);
        return;
    }
    if (reg < REG_TIMER || reg >= REG_TIMER + TIMERS * 0x20) {
        return;
    }
    t = &s->tn[(reg - REG_TIMER) >> 5];
    switch (reg & 0x18) {
    case 0x00:
        tn_config_write(t, v, now);
        break;
    case 0x08:
        tn_comparator_write(t, v, now);
        break;
    case 0x10:
        t->fsb = v;
        break;
    }
}

static void hpet_update_all(HpetState *s)
{
    uint64_t now = counter_now(s);

    for (unsigned i = 0; i < TIMERS; i++) {
        tn_update(&s->tn[i], now);
    }
}

static uint64_t hpet_read(void *opaque, hwaddr offset, unsigned size)
{
    HpetState *s = opaque;

    /* Clock sources read nothing but this. */
    QEMU_LOCK_GUARD(&s->lock);
    if ((offset & ~7ull) != REG_COUNTER) {
        hpet_update_all(s);
    }
    return reg_read(s, offset & ~7ull) >> (offset & 4 ? 32 : 0);
}

/* A half of a register written alone: which old value the other half keeps. */
static uint64_t merge_half(HpetState *s, hwaddr offset, uint64_t value)
{
    hwaddr reg = offset & ~7ull;
    uint64_t old = reg_read(s, reg);

    if (reg == REG_STATUS) {
        old = 0;
    }
    if (reg >= REG_TIMER && (reg & 0x18) == 0x08) {
        HpetTimer *t = &s->tn[MIN((reg - REG_TIMER) >> 5, TIMERS - 1)];

        if ((t->config & TN_PERIODIC) && !(t->config & TN_VAL_SET)) {
            old = t->period;
        }
    }
    return offset & 4 ? (old & UINT32_MAX) | value << 32
                      : (old & ~(uint64_t)UINT32_MAX) | (value & UINT32_MAX);
}

static void hpet_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    HpetState *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    hpet_update_all(s);
    if (size < 8) {
        value = merge_half(s, offset, value);
    }
    reg_write(s, offset & ~7ull, value, counter_now(s));
    hpet_update_all(s);
}

static const MemoryRegionOps hpet_ops = {
    .read = hpet_read, .write = hpet_write, .valid_min = 4, .valid_max = 8, .impl_min = 4,
};

/* ---- Device ---- */

static void hpet_reset(DeviceState *dev)
{
    HpetState *s = (HpetState *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    if (legacy(s)) {
        hpet_set_legacy(s, false);
    }
    s->config = 0;
    s->status = 0;
    s->counter = 0;
    for (unsigned i = 0; i < TIMERS; i++) {
        HpetTimer *t = &s->tn[i];

        tn_set_line(t, false);
        t->config = 0;
        t->comparator = UINT64_MAX;
        t->period = 0;
        t->fsb = 0;
        t->target = NEVER;
        t->backlog = 0;
        t->next_pulse = 0;
        timer_del(&t->timer);
    }
}

static bool hpet_realize(DeviceState *dev, Error **errp)
{
    HpetState *s = (HpetState *)dev;

    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE_LO, "hpet");
    for (unsigned i = 0; i < TIMERS; i++) {
        s->tn[i].hpet = s;
        timer_init(&s->tn[i].timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, tn_fn, &s->tn[i]);
    }
    memory_region_init_io(&s->mmio, &hpet_ops, s, "hpet", 0x400);
    memory_region_add_subregion(memory_root(), HPET_ADDR, &s->mmio, 1);
    return true;
}

static void hpet_unrealize(DeviceState *dev)
{
    HpetState *s = (HpetState *)dev;

    memory_region_del_subregion(memory_root(), &s->mmio);
    for (unsigned i = 0; i < TIMERS; i++) {
        timer_fini(&s->tn[i].timer);
    }
    qemu_mutex_destroy(&s->lock);
}

static const VMState tn_vmstate = {
    .name = "hpet-timer",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U64, HpetTimer, config, 1),
        VMS_FIELD(VMS_U64, HpetTimer, comparator, 1),
        VMS_FIELD(VMS_U64, HpetTimer, fsb, 1),
        VMS_FIELD(VMS_U64, HpetTimer, period, 1),
        VMS_FIELD(VMS_U64, HpetTimer, target, 1),
        VMS_FIELD(VMS_U64, HpetTimer, next_pulse, 1),
        VMS_FIELD(VMS_U32, HpetTimer, backlog, 1),
        VMS_FIELD(VMS_BOOL, HpetTimer, level, 1),
        VMS_FIELD(VMS_U8, HpetTimer, line, 1),
        VMS_FIELD(VMS_TIMER, HpetTimer, timer, 1),
        VMS_END,
    },
};

static bool hpet_post_load(void *opaque, int version, Error **errp)
{
    HpetState *s = opaque;

    for (unsigned i = 0; i < TIMERS; i++) {
        if (s->tn[i].level && s->tn[i].line >= ARRAY_SIZE(s->gsi)) {
            error_setg(errp, "hpet: invalid state");
            return false;
        }
    }
    return true;
}

static const VMState hpet_vmstate = {
    .name = "hpet",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U64, HpetState, config, 1),
        VMS_FIELD(VMS_U64, HpetState, status, 1),
        VMS_FIELD(VMS_U64, HpetState, counter, 1),
        VMS_FIELD(VMS_U64, HpetState, start_ns, 1),
        VMS_FIELD(VMS_BOOL, HpetState, legacy_in, 2),
        VMS_STRUCT_ARRAY(HpetState, tn, TIMERS, HpetTimer, tn_vmstate),
        VMS_END,
    },
    .post_load = hpet_post_load,
};

static const Property hpet_props[] = {
    DEFINE_PROP("hpet-intcap", PROP_UINT32, HpetState, intcap, 0xff0104,
                "lines a timer can be routed to"),
    DEFINE_PROP("msi", PROP_BOOL, HpetState, msi, false, "message-signalled interrupts"),
    DEFINE_PROP_END,
};

static const DeviceLines hpet_lines[] = {
    { "gsi", offsetof(HpetState, gsi), 24, false },
    {},
};

static const DeviceType hpet_type = {
    .name = "hpet",
    .desc = "high precision event timer",
    .bus = "system",
    .instance_size = sizeof(HpetState),
    .props = hpet_props,
    .realize = hpet_realize,
    .unrealize = hpet_unrealize,
    .reset = hpet_reset,
    .vmstate = &hpet_vmstate,
    .lines = hpet_lines,
};
DEVICE_TYPE(hpet_type);
