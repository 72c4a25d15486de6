/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Global system interrupts of the PC: what ISA lines, PIRQ links, SCI and HPET share is ORed here
 * and handed to the interrupt chip in force, whichever that is.
 */
#include "accel/irqchip.h"
#include "hw/i386/pc-internal.h"

typedef struct Gsi {
    /* Guards sources, and orders changes of the level on their way to the chip. */
    QemuMutex lock;
    uint32_t sources; /* bit = source that pulls */
} Gsi;

static Gsi gsis[IRQCHIP_GSIS];

#define LINE_SOURCE_SHIFT 8

static void gsi_set(void *opaque, int n, int level)
{
    unsigned gsi = (unsigned)n & 0xff, source = (unsigned)n >> LINE_SOURCE_SHIFT;
    Gsi *g = &gsis[gsi];
    QEMU_LOCK_GUARD(&g->lock);
    g->sources = level ? g->sources | BIT(source) : g->sources & ~BIT(source);
    irqchip->set_gsi(gsi, g->sources != 0);
}

void pc_irq_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(gsis); i++) {
        qemu_mutex_init(&gsis[i].lock, LOCK_RANK_IRQ_LINE, "gsi");
    }
}

IrqLine pc_gsi_line(unsigned gsi, unsigned source)
{
    return (IrqLine){ .set = gsi_set, .n = (int)(gsi | source << LINE_SOURCE_SHIFT) };
}
