/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One 8-bit register through which a guest chooses among the profiles that the command line names
 * (-realtime id=NAME): docs/realtime-switch.md. A vCPU only leaves its wish here; the main loop
 * switches, so that no vCPU ever waits for it.
 */
#include <string.h>
#include "event/event.h"
#include "hw/isa.h"
#include "realtime/profile.h"

/* Read: */
#define SWITCH_PROFILE 0x3f /* number of the profile in force */
#define SWITCH_REFUSED 0x40 /* the last choice was refused */
#define SWITCH_BUSY    0x80 /* a choice is not carried out yet */

#define NOTHING (-1)

typedef struct RealtimeSwitchState {
    DeviceState dev;
    /* No lock: the three below are atomic, the rest is constant after realize. */
    atomic_int wanted; /* by the guest; NOTHING when it is done */
    atomic_bool refused;
    atomic_bool by_reset; /* the wish is a reset's */
    MemoryRegion io;
    EventPost post; /* to the main loop */
    uint32_t iobase;
    bool reset_profile;
} RealtimeSwitchState;

/* Main loop. A choice made meanwhile has posted again, and stays busy. */
static void carry_out(void *opaque)
{
    RealtimeSwitchState *s = opaque;
    int n = atomic_load(&s->wanted);

    if (n == NOTHING) {
        return;
    }
    atomic_store(&s->refused, !realtime_profile_set_by_guest((unsigned)n, atomic_load(&s->by_reset)));
    atomic_compare_exchange_strong(&s->wanted, &n, NOTHING);
}

static void choose(RealtimeSwitchState *s, unsigned n, bool reset)
{
    if (n >= realtime_profile_count()) {
        atomic_store(&s->refused, true);
        return;
    }
    atomic_store(&s->refused, false);
    atomic_store(&s->by_reset, reset);
    atomic_store(&s->wanted, (int)n);
    event_post(event_loop_main(), &s->post);
}

static uint64_t switch_read(void *opaque, hwaddr offset, unsigned size)
{
    RealtimeSwitchState *s = opaque;
    bool busy = atomic_load(&s->wanted) != NOTHING;

    return (realtime_profile_current() & SWITCH_PROFILE) |
           (atomic_load(&s->refused) ? SWITCH_REFUSED : 0) | (busy ? SWITCH_BUSY : 0);
}

static void switch_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    choose(opaque, (unsigned)value, false);
}

static const MemoryRegionOps switch_ops = {
    .read = switch_read, .write = switch_write, .valid_max = 1,
};

/* A guest that boots again is not ready yet. */
static void switch_reset(DeviceState *dev)
{
    RealtimeSwitchState *s = (RealtimeSwitchState *)dev;

    if (s->reset_profile && realtime_profile_current() != 0) {
        choose(s, 0, true);
    }
    atomic_store(&s->refused, false);
}

static bool switch_realize(DeviceState *dev, Error **errp)
{
    RealtimeSwitchState *s = (RealtimeSwitchState *)dev;

    if (!realtime_profile_count()) {
        error_setg(errp, "realtime-switch: there is nothing to choose from; name profiles with "
                         "-realtime id=NAME,...");
        return false;
    }
    if (s->iobase > UINT16_MAX) {
        error_setg(errp, "realtime-switch: iobase=0x%x: must lie in 0..0xffff", s->iobase);
        return false;
    }
    atomic_store(&s->wanted, NOTHING);
    event_post_init(&s->post, carry_out, s);
    memory_region_init_io(&s->io, &switch_ops, s, "realtime-switch", 1);
    return isa_map_ports(dev, &s->io, (uint16_t)s->iobase, errp);
}

static const Property switch_props[] = {
    DEFINE_PROP("iobase", PROP_UINT32, RealtimeSwitchState, iobase, 0x5f0, "the port"),
    DEFINE_PROP("reset-profile", PROP_BOOL, RealtimeSwitchState, reset_profile, true,
                "a reset of the machine chooses the first profile"),
    DEFINE_PROP_END,
};

static const DeviceType switch_type = {
    .name = "realtime-switch",
    .desc = "the guest chooses among the profiles of -realtime",
    .bus = "isa",
    .instance_size = sizeof(RealtimeSwitchState),
    .props = switch_props,
    .user_creatable = true,
    .realize = switch_realize,
    .reset = switch_reset,
};
DEVICE_TYPE(switch_type);
