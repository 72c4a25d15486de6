/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two PS/2 devices behind the i8042. They have no lock of their own: the controller's guards
 * them, and it holds it around every call here.
 */
#ifndef HW_INPUT_PS2_INTERNAL_H
#define HW_INPUT_PS2_INTERNAL_H

#include "hw/device.h"
#include "hw/ps2.h"

#define PS2_QUEUE_SIZE 16

/* Replies to commands go out before input events. */
typedef struct Ps2Queue {
    uint8_t data[PS2_QUEUE_SIZE], reply[PS2_QUEUE_SIZE];
    uint8_t head, count, reply_head, reply_count;
    uint8_t last_sent; /* for the resend command */
} Ps2Queue;

/* Forgets events; replies stay, each answers a byte that was sent. */
void ps2_queue_clear(Ps2Queue *q);
void ps2_queue_reset(Ps2Queue *q);
unsigned ps2_queue_room(const Ps2Queue *q);
void ps2_queue_put(Ps2Queue *q, uint8_t v);
void ps2_queue_reply(Ps2Queue *q, uint8_t v);
bool ps2_queue_get(Ps2Queue *q, uint8_t *v);
bool ps2_queue_valid(const Ps2Queue *q);
extern const VMState ps2_queue_vmstate;

#define PS2_SET3_KEYS 0x90

typedef struct Ps2Keyboard {
    Ps2Queue queue;
    uint8_t scan_set;    /* 1, 2, 3 */
    uint8_t pending_cmd; /* waits for its argument; 0: none */
    uint8_t leds, rate;
    bool enabled;
    bool alt_down;       /* makes Print Screen into SysRq */
    bool overrun;
    uint8_t set3_breaks[PS2_SET3_KEYS / 8]; /* keys that send break codes in set 3 */
} Ps2Keyboard;

void ps2_kbd_reset(Ps2Keyboard *k);
void ps2_kbd_write(Ps2Keyboard *k, uint8_t v);
/* A byte has left the queue: report an overrun if there was one. */
void ps2_kbd_drained(Ps2Keyboard *k);
bool ps2_kbd_key(Ps2Keyboard *k, unsigned key, bool down);
extern const VMState ps2_kbd_vmstate;
/* Scan code of set 2 to set 1, as the controller translates. */
uint8_t ps2_translate(uint8_t set2);

typedef struct Ps2Mouse {
    Ps2Queue queue;
    uint8_t id;          /* 0 standard, 3 with wheel, 4 with five buttons */
    uint8_t pending_cmd, rate, resolution;
    uint8_t rate_history[2];
    uint8_t buttons, sent_buttons;
    bool reporting, remote, wrap, scaling2;
    int32_t dx, dy, dz;  /* not reported yet */
} Ps2Mouse;

void ps2_mouse_reset(Ps2Mouse *m);
void ps2_mouse_write(Ps2Mouse *m, uint8_t v);
void ps2_mouse_drained(Ps2Mouse *m);
void ps2_mouse_move(Ps2Mouse *m, int dx, int dy, int dz, unsigned buttons);
extern const VMState ps2_mouse_vmstate;

#endif
