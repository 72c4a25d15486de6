/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tests of devices share: a machine that is nothing but an ISA bus, recorded interrupt lines,
 * virtual time set by hand, and a character back end that is two buffers.
 */
#ifndef TESTS_DEVICE_TEST_H
#define TESTS_DEVICE_TEST_H

#include <glib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "chardev/char.h"
#include "event/event.h"
#include "hw/isa.h"
#include "hw/vmstate.h"
#include "memory/memory.h"
#include "qemu/runstate.h"

/* Once, first: g_test_init, main loop, memory map, ISA bus, time 0. */
void device_test_init(int *argc, char ***argv);
DeviceState *device_test_new(const char *type);

static inline void outb(uint16_t port, uint8_t v)
{
    address_space_store(&address_space_io, port, v, 1);
}
static inline uint8_t inb(uint16_t port)
{
    return (uint8_t)address_space_load(&address_space_io, port, 1);
}

/* Recorded lines: an ISA line, or test_line(n). */
typedef struct LineRecord {
    int level;
    unsigned rises, falls;
} LineRecord;
extern LineRecord isa_lines[16], test_lines[64];
IrqLine test_line(unsigned n);
void lines_clear(void);

/* Virtual time. */
void step_ns(int64_t ns);
int64_t now_ns(void);

/* Back end. */
extern Chardev *const test_chardev;
extern GString *chr_out;
extern size_t chr_room; /* of the output ring; SIZE_MAX at first */
void chr_writable(void);
/* Offers input as the loop does; returns what was taken. */
size_t chr_input(const char *text);
void chr_break(void);
extern unsigned chr_accepts;
extern ChrLine chr_line; /* what the UART asked for last */

/* What was asked of the machine. */
extern unsigned resets_requested;
extern int exit_status_requested; /* -1: none */
void runstate_notify(RunState s);

/* vCPUs without threads: what was requested, and when their timers are due. */
extern _Atomic uint32_t cpu_requests[MAX_CPUS];
extern int64_t cpu_timers[MAX_CPUS];
void test_cpu_add(CPUState *cpu);

/* Saved, reset, loaded, saved again: the same, and not what reset gives. */
void check_state(DeviceState *dev);

#endif
