/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keyboard and mouse behind the i8042, and how a user interface or monitor injects input. Inject
 * functions are RT_SAFE and drop what does not fit the device's 16-byte queue, as the hardware
 * does (a keyboard then stores the overrun code 00h/FFh).
 */
#ifndef HW_PS2_H
#define HW_PS2_H

#include "hw/device.h"
#include "hw/irq.h"

enum { PS2_BUTTON_LEFT = BIT(0), PS2_BUTTON_RIGHT = BIT(1), PS2_BUTTON_MIDDLE = BIT(2),
       PS2_BUTTON_SIDE = BIT(3), PS2_BUTTON_EXTRA = BIT(4) };

/*
 * A key goes down or up. key is its scan code of set 1: 0x01..0x7f, or 0xe000 | code for the grey
 * keys; 0xe11d is Pause. False if there is no such key, no keyboard, or no room.
 */
bool ps2_keyboard_event(unsigned key, bool down);
/* Movement since the last call (positive: right, down; wheel towards the user), buttons now. */
bool ps2_mouse_event(int dx, int dy, int dz, unsigned buttons);
/* Caps/Num/Scroll lamps (bits 2, 1, 0) as the guest last set them. */
unsigned ps2_keyboard_leds(void);

/*
 * "i8042" (ports 0x60, 0x64; ISA lines 1 and 12), "port92". Start-up: where the A20 gate goes;
 * the line is high when A20 is enabled, and both may drive the same one.
 */
void i8042_set_a20_out(DeviceState *i8042, IrqLine a20);
void port92_set_a20_out(DeviceState *port92, IrqLine a20);

#endif
