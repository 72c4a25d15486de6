/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PC's timers, as boards see them: PIT with port 61h, RTC with CMOS memory, HPET. */
#ifndef HW_TIMER_H
#define HW_TIMER_H

#include "event/event.h"
#include "hw/device.h"
#include "hw/irq.h"

/* ---- 8254, type "isa-pit": ports 0x40..0x43, and 0x61 unless port61=off ---- */

/* Start-up. OUT of counter 0 goes to ISA line 0 unless set. */
void pit_set_irq_out(DeviceState *pit, IrqLine out);

/* ---- MC146818A and 128 bytes of CMOS (256 with ports 0x72/0x73), type "mc146818rtc" ---- */

typedef struct RtcConfig {
    bool localtime;
    bool dated;          /* the time of day at start is date_s, in seconds since 1970 */
    int64_t date_s;
    ClockType clock;     /* HOST, REALTIME or VIRTUAL: what time of day follows */
    bool driftfix_slew;  /* lost periodic ticks are delivered late instead of dropped */
} RtcConfig;

/* Start-up, before realize; without it: UTC, the host's clock. */
void rtc_configure(DeviceState *rtc, const RtcConfig *cfg);
/* Start-up, after realize; default ISA line 8. */
void rtc_set_irq_out(DeviceState *rtc, IrqLine out);
/* RT_SAFE. CMOS memory 0x0e..0xff (0x00..0x0d are the clock's registers). */
void rtc_set_memory(DeviceState *rtc, uint8_t addr, uint8_t value);
uint8_t rtc_get_memory(DeviceState *rtc, uint8_t addr);

/* ---- HPET (IA-PC HPET 1.0a), type "hpet", at 0xfed00000 ---- */

#define HPET_ADDR 0xfed00000u

/*
 * Start-up. GSI outputs. In legacy replacement mode timer 0 replaces the PIT on ISA line 0 and
 * timer 1 the RTC on line 8; so the board connects both devices' outputs to hpet_legacy_in(0, 1)
 * and gives lines 0 and 8 here.
 */
void hpet_set_outputs(DeviceState *hpet, const IrqLine gsi[24]);
IrqLine hpet_legacy_in(DeviceState *hpet, unsigned which);
/* Start-up. fn is told when legacy replacement goes on and off, with the HPET's lock held: for a
 * PIT that an accelerator keeps. RT_SAFE. */
void hpet_set_legacy_hook(DeviceState *hpet, void (*fn)(bool on));

#endif
