/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ISA bus of a board: sixteen lines and the port space. */
#ifndef HW_ISA_H
#define HW_ISA_H

#include "hw/device.h"
#include "memory/memory.h"

typedef struct IsaBus {
    Bus bus;
    IrqLine irq[16];
} IsaBus;

/* The board's ISA bus; NULL on machines without one. */
IsaBus *isa_bus(void);
void isa_bus_init(IsaBus *bus, DeviceState *parent);
/* Line n (0..15) of dev's bus. */
IrqLine isa_irq(DeviceState *dev, unsigned n);
/*
 * Maps mr at port. Fails (errp) if one of the ports is taken: by another device, by anything else
 * that the board has mapped, or reserved. HELPER_ONLY.
 */
bool isa_map_ports(DeviceState *dev, MemoryRegion *mr, uint16_t port, Error **errp);
/* No device may have first..last: owner, whose name is borrowed, will be mapped there. Start-up. */
void isa_reserve_ports(const char *owner, uint16_t first, uint16_t last);

#endif
