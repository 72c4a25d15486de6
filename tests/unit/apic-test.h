/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Twenty vCPUs with local APICs and the words to drive them. */
#ifndef TESTS_APIC_TEST_H
#define TESTS_APIC_TEST_H

#include "device-test.h"
#include "hw/intc.h"
#include "target/i386/cpu.h"

#define N 20 /* vCPUs; more than a flat logical destination or a cluster holds */

extern X86CPU cpus[N];
extern const IrqChipOps *const ops;

enum { ID = 0x20, VERSION = 0x30, TPR = 0x80, PPR = 0xa0, EOI = 0xb0, LDR = 0xd0, DFR = 0xe0,
       SVR = 0xf0, ISR = 0x100, TMR = 0x180, IRR = 0x200, ESR = 0x280, ICR = 0x300, ICR2 = 0x310,
       LVTT = 0x320, LVT0 = 0x350, LVT1 = 0x360, LVTE = 0x370, TMICT = 0x380, TMCCT = 0x390,
       TDCR = 0x3e0 };

CPUState *cpu(unsigned i);
uint32_t rd(unsigned i, uint32_t reg);
void wr(unsigned i, uint32_t reg, uint32_t v);
uint32_t take_requests(unsigned i);
void restart(void);
void ipi(unsigned from, uint8_t dest, uint32_t low);
uint32_t who_got(uint8_t vector);
uint32_t who(uint32_t req);
/* Makes the interrupt controllers and the vCPUs, after device_test_init(). */
void apic_test_init(void);

#endif
