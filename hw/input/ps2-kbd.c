/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A 102-key PS/2 keyboard, and the byte queue both PS/2 devices have.
 * Source: IBM PS/2 hardware interface technical reference, keyboard (1990): commands, scan sets.
 */
#include <string.h>
#include "hw/input/ps2-internal.h"

enum {
    ACK = 0xfa, RESEND = 0xfe, BAT_OK = 0xaa,
    CMD_LEDS = 0xed, CMD_ECHO = 0xee, CMD_SCAN_SET = 0xf0, CMD_ID = 0xf2, CMD_RATE = 0xf3,
    CMD_ENABLE = 0xf4, CMD_DISABLE = 0xf5, CMD_DEFAULTS = 0xf6, CMD_ALL_TYPEMATIC = 0xf7,
    CMD_ALL_MAKE_BREAK = 0xf8, CMD_ALL_MAKE = 0xf9, CMD_ALL_EVERYTHING = 0xfa,
    CMD_KEY_TYPEMATIC = 0xfb, CMD_KEY_MAKE_BREAK = 0xfc, CMD_KEY_MAKE = 0xfd, CMD_RESEND = 0xfe,
    CMD_RESET = 0xff,
};

#define KEY_PAUSE  0xe11d
#define KEY_PRINT  0xe037
#define KEY_ALT    0x38
#define KEY_ALT_GR 0xe038

/* ---- Queue ---- */

void ps2_queue_clear(Ps2Queue *q)
{
    q->head = q->count = 0;
}

void ps2_queue_reset(Ps2Queue *q)
{
    ps2_queue_clear(q);
    q->reply_head = q->reply_count = 0;
}

unsigned ps2_queue_room(const Ps2Queue *q)
{
    return PS2_QUEUE_SIZE - q->count;
}

void ps2_queue_put(Ps2Queue *q, uint8_t v)
{
    if (q->count < PS2_QUEUE_SIZE) {
        q->data[(q->head + q->count++) % PS2_QUEUE_SIZE] = v;
    }
}

void ps2_queue_reply(Ps2Queue *q, uint8_t v)
{
    if (q->reply_count < PS2_QUEUE_SIZE) {
        q->reply[(q->reply_head + q->reply_count++) % PS2_QUEUE_SIZE] = v;
    }
}

bool ps2_queue_get(Ps2Queue *q, uint8_t *v)
{
    if (q->reply_count) {
        *v = q->reply[q->reply_head];
        q->reply_head = (q->reply_head + 1) % PS2_QUEUE_SIZE;
        q->reply_count--;
    } else if (q->count) {
        *v = q->data[q->head];
        q->head = (q->head + 1) % PS2_QUEUE_SIZE;
        q->count--;
    } else {
        return false;
    }
    q->last_sent = *v;
    return true;
}

bool ps2_queue_valid(const Ps2Queue *q)
{
    return q->head < PS2_QUEUE_SIZE && q->count <= PS2_QUEUE_SIZE &&
           q->reply_head < PS2_QUEUE_SIZE && q->reply_count <= PS2_QUEUE_SIZE;
}

const VMState ps2_queue_vmstate = {
    .name = "ps2-queue",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_BUFFER, Ps2Queue, data, PS2_QUEUE_SIZE),
        VMS_FIELD(VMS_BUFFER, Ps2Queue, reply, PS2_QUEUE_SIZE),
        VMS_FIELD(VMS_U8, Ps2Queue, head, 1),
        VMS_FIELD(VMS_U8, Ps2Queue, count, 1),
        VMS_FIELD(VMS_U8, Ps2Queue, reply_head, 1),
        VMS_FIELD(VMS_U8, Ps2Queue, reply_count, 1),
        VMS_FIELD(VMS_U8, Ps2Queue, last_sent, 1),
        VMS_END,
    },
};

/* ---- Scan codes ---- */

/* The keyboard controller's translation of set 2 to set 1. */
static const uint8_t set2_to_set1[0x85] = {
    0xff, 0x43, 0x41, 0x3f, 0x3d, 0x3b, 0x3c, 0x58, 0x64, 0x44, 0x42, 0x40, 0x3e, 0x0f, 0x29, 0x59,
    0x65, 0x38, 0x2a, 0x70, 0x1d, 0x10, 0x02, 0x5a, 0x66, 0x71, 0x2c, 0x1f, 0x1e, 0x11, 0x03, 0x5b,
    0x67, 0x2e, 0x2d, 0x20, 0x12, 0x05, 0x04, 0x5c, 0x68, 0x39, 0x2f, 0x21, 0x14, 0x13, 0x06, 0x5d,
    0x69, 0x31, 0x30, 0x23, 0x22, 0x15, 0x07, 0x5e, 0x6a, 0x72, 0x32, 0x24, 0x16, 0x08, 0x09, 0x5f,
    0x6b, 0x33, 0x25, 0x17, 0x18, 0x0b, 0x0a, 0x60, 0x6c, 0x34, 0x35, 0x26, 0x27, 0x19, 0x0c, 0x61,
    0x6d, 0x73, 0x28, 0x74, 0x1a, 0x0d, 0x62, 0x6e, 0x3a, 0x36, 0x1c, 0x1b, 0x75, 0x2b, 0x63, 0x76,
    0x55, 0x56, 0x77, 0x78, 0x79, 0x7a, 0x0e, 0x7b, 0x7c, 0x4f, 0x7d, 0x4b, 0x47, 0x7e, 0x7f, 0x6f,
    0x52, 0x53, 0x50, 0x4c, 0x4d, 0x48, 0x01, 0x45, 0x57, 0x4e, 0x51, 0x4a, 0x37, 0x49, 0x46, 0x54,
    0x80, 0x81, 0x82, 0x41, 0x54,
};

/* Set 1 to set 3, plain keys; 0: no such key. */
static const uint8_t set1_to_set3[0x59] = {
    [0x01] = 0x08, 0x16, 0x1e, 0x26, 0x25, 0x2e, 0x36, 0x3d, 0x3e, 0x46, 0x45, 0x4e, 0x55, 0x66,
    0x0d, 0x15, 0x1d, 0x24, 0x2d, 0x2c, 0x35, 0x3c, 0x43, 0x44, 0x4d, 0x54, 0x5b, 0x5a, 0x11,
    0x1c, 0x1b, 0x23, 0x2b, 0x34, 0x33, 0x3b, 0x42, 0x4b, 0x4c, 0x52, 0x0e, 0x12, 0x5c,
    0x1a, 0x22, 0x21, 0x2a, 0x32, 0x31, 0x3a, 0x41, 0x49, 0x4a, 0x59, 0x7e, 0x19, 0x29, 0x14,
    0x07, 0x0f, 0x17, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x47, 0x4f, 0x76, 0x5f,
    0x6c, 0x75, 0x7d, 0x84, 0x6b, 0x73, 0x74, 0x7c, 0x69, 0x72, 0x7a, 0x70, 0x71,
    [0x54] = 0x57, [0x56] = 0x13, 0x56, 0x5e,
};

/* Grey keys: set 1 code after e0, set 3 code. */
static const uint8_t grey_to_set3[][2] = {
    { 0x1c, 0x79 }, { 0x1d, 0x58 }, { 0x35, 0x77 }, { 0x37, 0x57 }, { 0x38, 0x39 },
    { 0x47, 0x6e }, { 0x48, 0x63 }, { 0x49, 0x6f }, { 0x4b, 0x61 }, { 0x4d, 0x6a },
    { 0x4f, 0x65 }, { 0x50, 0x60 }, { 0x51, 0x6d }, { 0x52, 0x67 }, { 0x53, 0x64 },
    { 0x5b, 0x8b }, { 0x5c, 0x8c }, { 0x5d, 0x8d },
};

/* Keys that send break codes in set 3 by default: shifts, controls, alts, caps lock. */
static const uint8_t set3_default_breaks[] = { 0x11, 0x12, 0x14, 0x19, 0x39, 0x58, 0x59 };

uint8_t ps2_translate(uint8_t set2)
{
    return set2 < sizeof(set2_to_set1) ? set2_to_set1[set2] : set2;
}

static uint8_t set1_to_set2(uint8_t code)
{
    /* F7 and SysRq are the two whose translation is shared with an unused code. */
    if (code == 0x41) {
        return 0x83;
    }
    if (code == 0x54) {
        return 0x84;
    }
    for (unsigned i = 0; i < 0x80; i++) {
        if (set2_to_set1[i] == code) {
            return (uint8_t)i;
        }
    }
    return 0;
}

static uint8_t key_to_set3(unsigned key)
{
    if (key == KEY_PAUSE) {
        return 0x62;
    }
    if (key < ARRAY_SIZE(set1_to_set3)) {
        return set1_to_set3[key];
    }
    for (unsigned i = 0; i < ARRAY_SIZE(grey_to_set3); i++) {
        if (key == (0xe000u | grey_to_set3[i][0])) {
            return grey_to_set3[i][1];
        }
    }
    return 0;
}

typedef struct Codes {
    uint8_t b[8];
    unsigned n;
} Codes;

static void add(Codes *c, uint8_t v)
{
    c->b[c->n++] = v;
}

/* One code of set 1 or 2, after e0 if grey. */
static void add_code(Codes *c, unsigned set, bool grey, uint8_t code, bool down)
{
    if (grey) {
        add(c, 0xe0);
    }
    if (set == 1) {
        add(c, code | (down ? 0 : 0x80));
        return;
    }
    if (!down) {
        add(c, 0xf0);
    }
    add(c, set1_to_set2(code));
}

static void encode_pause(Codes *c, unsigned set)
{
    static const uint8_t set1[] = { 0xe1, 0x1d, 0x45, 0xe1, 0x9d, 0xc5 };
    static const uint8_t set2[] = { 0xe1, 0x14, 0x77, 0xe1, 0xf0, 0x14, 0xf0, 0x77 };

    c->n = set == 1 ? sizeof(set1) : sizeof(set2);
    memcpy(c->b, set == 1 ? set1 : set2, c->n);
}

static void encode_set3(Codes *c, const Ps2Keyboard *k, unsigned key, bool down)
{
    uint8_t code = key_to_set3(key);

    if (!code) {
        return;
    }
    if (!down) {
        if (!(k->set3_breaks[code / 8] & BIT(code % 8))) {
            return;
        }
        add(c, 0xf0);
    }
    add(c, code);
}

static void encode(Codes *c, const Ps2Keyboard *k, unsigned key, bool down)
{
    unsigned set = k->scan_set;
    bool grey = key >> 8;

    if (set == 3) {
        encode_set3(c, k, key, down);
    } else if (key == KEY_PAUSE) {
        if (down) { /* there is no break code */
            encode_pause(c, set);
        }
    } else if (key == KEY_PRINT && k->alt_down) {
        add_code(c, set, false, 0x54, down);
    } else if (key == KEY_PRINT) {
        /* Comes with a shift of its own. */
        add_code(c, set, true, down ? 0x2a : 0x37, down);
        add_code(c, set, true, down ? 0x37 : 0x2a, down);
    } else {
        add_code(c, set, grey, (uint8_t)key, down);
    }
}

static bool key_exists(unsigned key)
{
    if (key == KEY_PAUSE) {
        return true;
    }
    return (key >> 8 == 0 || key >> 8 == 0xe0) && (key & 0xff) && (key & 0xff) < 0x80 &&
           set1_to_set2(key & 0x7f);
}

bool ps2_kbd_key(Ps2Keyboard *k, unsigned key, bool down)
{
    Codes c = { .n = 0 };

    if (!key_exists(key)) {
        return false;
    }
    if (key == KEY_ALT || key == KEY_ALT_GR) {
        k->alt_down = down;
    }
    if (!k->enabled) {
        return false;
    }
    encode(&c, k, key, down);
    /* All of a key's bytes or none; what is lost is told when there is room. */
    if (k->overrun || c.n > ps2_queue_room(&k->queue)) {
        k->overrun = true;
        return false;
    }
    for (unsigned i = 0; i < c.n; i++) {
        ps2_queue_put(&k->queue, c.b[i]);
    }
    return true;
}

void ps2_kbd_drained(Ps2Keyboard *k)
{
    if (k->overrun && ps2_queue_room(&k->queue) >= PS2_QUEUE_SIZE / 2) {
        k->overrun = false;
        ps2_queue_put(&k->queue, k->scan_set == 1 ? 0xff : 0x00);
    }
}

/* ---- Commands ---- */

static void set3_set(Ps2Keyboard *k, uint8_t code, bool breaks)
{
    if (code >= PS2_SET3_KEYS) {
        return;
    }
    if (breaks) {
        k->set3_breaks[code / 8] |= (uint8_t)BIT(code % 8);
    } else {
        k->set3_breaks[code / 8] &= (uint8_t)~BIT(code % 8);
    }
}

static void kbd_defaults(Ps2Keyboard *k)
{
    ps2_queue_clear(&k->queue);
    k->overrun = false;
    k->rate = 0x2b; /* 10.9 characters a second after 500 ms */
    memset(k->set3_breaks, 0, sizeof(k->set3_breaks));
    for (unsigned i = 0; i < sizeof(set3_default_breaks); i++) {
        set3_set(k, set3_default_breaks[i], true);
    }
}

void ps2_kbd_reset(Ps2Keyboard *k)
{
    kbd_defaults(k);
    ps2_queue_reset(&k->queue);
    k->scan_set = 2;
    k->pending_cmd = 0;
    k->leds = 0;
    k->enabled = true;
    k->alt_down = false;
}

static void kbd_argument(Ps2Keyboard *k, uint8_t cmd, uint8_t v)
{
    k->pending_cmd = 0;
    switch (cmd) {
    case CMD_LEDS:
        k->leds = v & 7;
        break;
    case CMD_RATE:
        k->rate = v & 0x7f;
        break;
    case CMD_SCAN_SET:
        if (v > 3) {
            ps2_queue_reply(&k->queue, RESEND);
            k->pending_cmd = cmd;
            return;
        }
        ps2_queue_reply(&k->queue, ACK);
        if (v == 0) {
            ps2_queue_reply(&k->queue, k->scan_set);
        } else {
            k->scan_set = v;
        }
        return;
    default: /* one key's mode in set 3: stays in this state until a command comes */
        set3_set(k, v, cmd == CMD_KEY_MAKE_BREAK);
        k->pending_cmd = cmd;
        break;
    }
    ps2_queue_reply(&k->queue, ACK);
}

static void kbd_command(Ps2Keyboard *k, uint8_t v)
{
    switch (v) {
    case CMD_ECHO:
        ps2_queue_reply(&k->queue, CMD_ECHO);
        return;
    case CMD_RESEND:
        ps2_queue_reply(&k->queue, k->queue.last_sent);
        return;
    case CMD_LEDS:
    case CMD_SCAN_SET:
    case CMD_RATE:
    case CMD_KEY_TYPEMATIC:
    case CMD_KEY_MAKE_BREAK:
    case CMD_KEY_MAKE:
        k->pending_cmd = v;
        break;
    case CMD_ID:
        ps2_queue_reply(&k->queue, ACK);
        ps2_queue_reply(&k->queue, 0xab);
        ps2_queue_reply(&k->queue, 0x83);
        return;
    case CMD_ENABLE:
        ps2_queue_clear(&k->queue);
        k->enabled = true;
        break;
    case CMD_DISABLE:
        kbd_defaults(k);
        k->enabled = false;
        break;
    case CMD_DEFAULTS:
        kbd_defaults(k);
        break;
    case CMD_ALL_TYPEMATIC:
    case CMD_ALL_MAKE:
        memset(k->set3_breaks, 0, sizeof(k->set3_breaks));
        break;
    case CMD_ALL_MAKE_BREAK:
    case CMD_ALL_EVERYTHING:
        memset(k->set3_breaks, 0xff, sizeof(k->set3_breaks));
        break;
    case CMD_RESET:
        ps2_kbd_reset(k);
        ps2_queue_reply(&k->queue, ACK);
        ps2_queue_reply(&k->queue, BAT_OK);
        return;
    default:
        ps2_queue_reply(&k->queue, RESEND);
        return;
    }
    ps2_queue_reply(&k->queue, ACK);
}

void ps2_kbd_write(Ps2Keyboard *k, uint8_t v)
{
    /* Arguments are below 0x80 but for invalid ones; a command ends waiting for them. */
    if (k->pending_cmd && v < 0xed) {
        kbd_argument(k, k->pending_cmd, v);
    } else {
        k->pending_cmd = 0;
        kbd_command(k, v);
    }
}

const VMState ps2_kbd_vmstate = {
    .name = "ps2-keyboard",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_STRUCT_ARRAY(Ps2Keyboard, queue, 1, Ps2Queue, ps2_queue_vmstate),
        VMS_FIELD(VMS_U8, Ps2Keyboard, scan_set, 1),
        VMS_FIELD(VMS_U8, Ps2Keyboard, pending_cmd, 1),
        VMS_FIELD(VMS_U8, Ps2Keyboard, leds, 1),
        VMS_FIELD(VMS_U8, Ps2Keyboard, rate, 1),
        VMS_FIELD(VMS_BOOL, Ps2Keyboard, enabled, 1),
        VMS_FIELD(VMS_BOOL, Ps2Keyboard, alt_down, 1),
        VMS_FIELD(VMS_BOOL, Ps2Keyboard, overrun, 1),
        VMS_FIELD(VMS_BUFFER, Ps2Keyboard, set3_breaks, PS2_SET3_KEYS / 8),
        VMS_END,
    },
};
