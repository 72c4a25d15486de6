/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An interrupt line: the receiving end gives a function; the raising end holds an IrqLine by value
 * and never learns who listens. RT_SAFE throughout: set functions take at most a lock of a higher
 * rank than DEVICE.
 */
#ifndef HW_IRQ_H
#define HW_IRQ_H

typedef struct IrqLine {
    void (*set)(void *opaque, int n, int level);
    void *opaque;
    int n;
} IrqLine;

static inline void irq_set(const IrqLine *irq, int level)
{
    if (irq->set) {
        irq->set(irq->opaque, irq->n, level);
    }
}
/* Tells a tap (a line that usually has no listener) that input n has this level now. */
static inline void irq_tap(const IrqLine *tap, int n, int level)
{
    if (__builtin_expect(tap->set != 0, 0)) {
        tap->set(tap->opaque, n, level);
    }
}
static inline void irq_raise(const IrqLine *irq)
{
    irq_set(irq, 1);
}
static inline void irq_lower(const IrqLine *irq)
{
    irq_set(irq, 0);
}

#endif
