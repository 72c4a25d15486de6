/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small change of the PC: POST code port, coprocessor error latch, A20 gate. */
#include "accel/accel.h"
#include "hw/i386/pc-internal.h"

/* ---- 80h: POST codes; written for their delay ---- */

static uint64_t port80_read(void *opaque, hwaddr off, unsigned size)
{
    return UINT64_MAX;
}

static void port80_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
}

static const MemoryRegionOps port80_ops = {
    .read = port80_read, .write = port80_write, .valid_max = 1, .impl_max = 1,
};

/* ---- F0h: clears the coprocessor's error latch, which FERR# sets and IRQ 13 shows ---- */

static IrqLine ferr_line;

static void ferr_set(struct X86CPU *cpu, bool level)
{
    /* The latch holds IRQ 13 until port F0h is written; FERR# going away does not clear it. */
    if (level) {
        irq_raise(&ferr_line);
    }
}

static void portf0_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    irq_lower(&ferr_line);
}

static const MemoryRegionOps portf0_ops = {
    .read = port80_read, .write = portf0_write, .valid_max = 1, .impl_max = 1,
};

static void ferr_reset(void *opaque)
{
    irq_lower(&ferr_line);
}

/* ---- A20: port 92h and the keyboard controller; the last one to change it wins ---- */

static void a20_set(void *opaque, int n, int level)
{
    if (accel_is(&tcg_accel_ops)) {
        tcg_set_a20(level != 0);
    }
}

IrqLine pc_a20_line(void)
{
    return (IrqLine){ .set = a20_set };
}

void pc_ports_init(PcState *pc)
{
    memory_region_init_io(&pc->port80_mr, &port80_ops, pc, "ioport80", 1);
    memory_region_add_subregion(io_root(), 0x80, &pc->port80_mr, 0);
    memory_region_init_io(&pc->portf0_mr, &portf0_ops, pc, "ioportF0", 2);
    memory_region_add_subregion(io_root(), 0xf0, &pc->portf0_mr, 0);
    ferr_line = pc_gsi_line(13, PC_SOURCE_FERR);
    tcg_ferr_hook = ferr_set;
    reset_register(ferr_reset, NULL);
}
