/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ISA bus: sixteen interrupt lines, and who owns which ports. */
#include <glib.h>
#include "hw/isa.h"

/* Ranges in use, so that two cards at one address are refused as on the command line, not later
 * by a guest that reads nonsense. Start-up and hot plug only, from one thread at a time. */
typedef struct IsaClaim {
    DeviceState *dev; /* NULL: reserved for owner */
    const char *owner;
    MemoryRegion *mr;
    uint32_t first, last;
} IsaClaim;

static IsaBus *the_bus;
static GArray *claims; /* of IsaClaim */

IsaBus *isa_bus(void)
{
    return the_bus;
}

static void isa_detach(Bus *bus, DeviceState *dev)
{
    for (guint i = claims->len; i-- > 0;) {
        IsaClaim *c = &g_array_index(claims, IsaClaim, i);

        if (c->dev == dev) {
            memory_region_del_subregion(io_root(), c->mr);
            g_array_remove_index(claims, i);
        }
    }
}

static void isa_describe(Bus *bus, DeviceState *dev, char *buf, size_t len)
{
    size_t used = 0;

    buf[0] = 0;
    for (guint i = 0; i < claims->len && used + 24 < len; i++) {
        IsaClaim *c = &g_array_index(claims, IsaClaim, i);

        if (c->dev == dev) {
            used += (size_t)g_snprintf(buf + used, len - used, "%sport 0x%x-0x%x",
                                       used ? ", " : "", c->first, c->last);
        }
    }
}

void isa_bus_init(IsaBus *bus, DeviceState *parent)
{
    bus_init(&bus->bus, "isa", "isa.0", parent);
    bus->bus.detach = isa_detach;
    bus->bus.describe = isa_describe;
    if (!claims) {
        claims = g_array_new(FALSE, TRUE, sizeof(IsaClaim));
    }
    the_bus = bus;
}

IrqLine isa_irq(DeviceState *dev, unsigned n)
{
    IsaBus *bus = dev && dev->bus ? container_of(dev->bus, IsaBus, bus) : the_bus;

    g_assert(n < ARRAY_SIZE(bus->irq));
    return bus->irq[n];
}

static void refuse_taken(DeviceState *dev, const IsaClaim *want, const char *owner, hwaddr first,
                         hwaddr last, Error **errp)
{
    error_setg(errp, "%s: ports 0x%x-0x%x are taken by %s (0x%x-0x%x); choose others", dev->type->name,
               want->first, want->last, owner, (unsigned)first, (unsigned)last);
}

/* By another card, by what the board maps itself, or by what firmware is about to map. */
static bool is_taken(DeviceState *dev, const IsaClaim *want, Error **errp)
{
    hwaddr first, last;
    const char *owner;

    for (guint i = 0; i < claims->len; i++) {
        IsaClaim *c = &g_array_index(claims, IsaClaim, i);

        if (c->first <= want->last && want->first <= c->last) {
            refuse_taken(dev, want, c->dev ? c->dev->type->name : c->owner, c->first, c->last, errp);
            return true;
        }
    }
    owner = memory_region_taken(io_root(), want->first, want->last, &first, &last);
    if (owner) {
        refuse_taken(dev, want, owner, first, last, errp);
    }
    return owner != NULL;
}

bool isa_map_ports(DeviceState *dev, MemoryRegion *mr, uint16_t port, Error **errp)
{
    IsaClaim claim = { .dev = dev, .mr = mr, .first = port, .last = port + (uint32_t)mr->size - 1 };

    if (claim.last > UINT16_MAX) {
        error_setg(errp, "%s: ports 0x%x-0x%x go beyond 0xffff", dev->type->name, claim.first,
                   claim.last);
        return false;
    }
    if (is_taken(dev, &claim, errp)) {
        return false;
    }
    g_array_append_val(claims, claim);
    memory_region_add_subregion(io_root(), port, mr, 0);
    return true;
}

void isa_reserve_ports(const char *owner, uint16_t first, uint16_t last)
{
    IsaClaim claim = { .owner = owner, .first = first, .last = last };

    g_array_append_val(claims, claim);
}
