/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ISA bus: sixteen interrupt lines, and who owns which ports. */
#include <glib.h>
#include "hw/isa.h"

/* Ranges in use, so that two cards at one address are refused as on the command line, not later
 * by a guest that reads nonsense. Start-up and hot plug only, from one thread at a time. */
typedef struct IsaClaim {
    DeviceState *dev;
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

bool isa_map_ports(DeviceState *dev, MemoryRegion *mr, uint16_t port, Error **errp)
{
    IsaClaim claim = { dev, mr, port, port + (uint32_t)mr->size - 1 };

    if (claim.last > UINT16_MAX) {
        error_setg(errp, "%s: ports 0x%x-0x%x go beyond 0xffff", dev->type->name, claim.first,
                   claim.last);
        return false;
    }
    for (guint i = 0; i < claims->len; i++) {
        IsaClaim *c = &g_array_index(claims, IsaClaim, i);

        if (c->first <= claim.last && claim.first <= c->last) {
            error_setg(errp, "%s: ports 0x%x-0x%x are taken by %s (0x%x-0x%x)", dev->type->name,
                       claim.first, claim.last, c->dev->type->name, c->first, c->last);
            return false;
        }
    }
    g_array_append_val(claims, claim);
    memory_region_add_subregion(io_root(), port, mr, 0);
    return true;
}
