/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP: sendkey. Keys go down in the order given, and up again in the opposite one a while later. */
#include <stdlib.h>
#include <string.h>
#include "event/event.h"
#include "hw/ps2.h"
#include "monitor/internal.h"

#define MAX_KEYS        16
#define DEFAULT_HOLD_MS 100
#define MAX_HOLD_MS     60000

/* QEMU's names; scan codes of set 1 as ps2_keyboard_event() has them. */
static const struct {
    const char *name;
    uint16_t code;
} keys[] = {
    { "esc", 0x01 }, { "1", 0x02 }, { "2", 0x03 }, { "3", 0x04 }, { "4", 0x05 }, { "5", 0x06 }, { "6", 0x07 },
    { "7", 0x08 }, { "8", 0x09 }, { "9", 0x0a }, { "0", 0x0b }, { "minus", 0x0c }, { "equal", 0x0d },
    { "backspace", 0x0e }, { "tab", 0x0f }, { "q", 0x10 }, { "w", 0x11 }, { "e", 0x12 }, { "r", 0x13 },
    { "t", 0x14 }, { "y", 0x15 }, { "u", 0x16 }, { "i", 0x17 }, { "o", 0x18 }, { "p", 0x19 },
    { "bracket_left", 0x1a }, { "bracket_right", 0x1b }, { "ret", 0x1c }, { "ctrl", 0x1d }, { "a", 0x1e },
    { "s", 0x1f }, { "d", 0x20 }, { "f", 0x21 }, { "g", 0x22 }, { "h", 0x23 }, { "j", 0x24 }, { "k", 0x25 },
    { "l", 0x26 }, { "semicolon", 0x27 }, { "apostrophe", 0x28 }, { "grave_accent", 0x29 }, { "shift", 0x2a },
    { "backslash", 0x2b }, { "z", 0x2c }, { "x", 0x2d }, { "c", 0x2e }, { "v", 0x2f }, { "b", 0x30 },
    { "n", 0x31 }, { "m", 0x32 }, { "comma", 0x33 }, { "dot", 0x34 }, { "slash", 0x35 }, { "shift_r", 0x36 },
    { "kp_multiply", 0x37 }, { "alt", 0x38 }, { "spc", 0x39 }, { "caps_lock", 0x3a }, { "f1", 0x3b },
    { "f2", 0x3c }, { "f3", 0x3d }, { "f4", 0x3e }, { "f5", 0x3f }, { "f6", 0x40 }, { "f7", 0x41 }, { "f8", 0x42 },
    { "f9", 0x43 }, { "f10", 0x44 }, { "num_lock", 0x45 }, { "scroll_lock", 0x46 }, { "kp_7", 0x47 },
    { "kp_8", 0x48 }, { "kp_9", 0x49 }, { "kp_subtract", 0x4a }, { "kp_4", 0x4b }, { "kp_5", 0x4c },
    { "kp_6", 0x4d }, { "kp_add", 0x4e }, { "kp_1", 0x4f }, { "kp_2", 0x50 }, { "kp_3", 0x51 }, { "kp_0", 0x52 },
    { "kp_decimal", 0x53 }, { "less", 0x56 }, { "f11", 0x57 }, { "f12", 0x58 }, { "kp_enter", 0xe01c },
    { "ctrl_r", 0xe01d }, { "kp_divide", 0xe035 }, { "sysrq", 0xe037 }, { "print", 0xe037 }, { "alt_r", 0xe038 },
    { "home", 0xe047 }, { "up", 0xe048 }, { "pgup", 0xe049 }, { "left", 0xe04b }, { "right", 0xe04d },
    { "end", 0xe04f }, { "down", 0xe050 }, { "pgdn", 0xe051 }, { "insert", 0xe052 }, { "delete", 0xe053 },
    { "meta_l", 0xe05b }, { "meta_r", 0xe05c }, { "menu", 0xe05d }, { "pause", 0xe11d },
};

/* Keys that are down; the control thread's. */
static struct {
    EventTimer timer;
    bool timer_made;
    unsigned n;
    uint16_t code[MAX_KEYS];
} held;

static void release_all(void *opaque)
{
    while (held.n) {
        ps2_keyboard_event(held.code[--held.n], false);
    }
}

static bool find_key(const char *name, size_t len, uint16_t *code)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strlen(keys[i].name) == len && !strncmp(keys[i].name, name, len)) {
            *code = keys[i].code;
            return true;
        }
    }
    return false;
}

/* "ctrl-alt-f1"; a word that begins with 0x is a scan code of set 1. How many; 0: told what is wrong. */
static unsigned parse_keys(Monitor *mon, const char *text, size_t len, uint16_t *code)
{
    const char *end = text + len;
    unsigned n = 0;

    while (text <= end) {
        size_t word = MIN(strcspn(text, "-"), (size_t)(end - text));
        char *stop;
        bool number = word > 2 && !strncmp(text, "0x", 2);
        unsigned long v = number ? strtoul(text, &stop, 16) : 0;

        if (n == MAX_KEYS) {
            monitor_printf(mon, "Error: more than %u keys\n", MAX_KEYS);
            return 0;
        }
        if (number && stop == text + word && v >= 1 && v <= 0x7f) {
            code[n++] = (uint16_t)v;
        } else if (!number && find_key(text, word, &code[n])) {
            n++;
        } else {
            monitor_printf(mon, "Error: there is no key '%.*s'; names are like ctrl-alt-f1, ret, spc, a\n",
                           (int)MIN(word, 64), text);
            return 0;
        }
        text += word + 1;
    }
    return n;
}

static bool parse_hold(Monitor *mon, const char *text, int64_t *ms)
{
    char *end;

    while (*text == ' ') {
        text++;
    }
    *ms = *text ? g_ascii_strtoll(text, &end, 10) : DEFAULT_HOLD_MS;
    if (*text && (*end || *ms < 1 || *ms > MAX_HOLD_MS)) {
        monitor_printf(mon, "Error: '%s' is no time to hold keys: 1 to %u ms\n", text, MAX_HOLD_MS);
        return false;
    }
    return true;
}

void hmp_sendkey(Monitor *mon, const char *args)
{
    size_t len = strcspn(args, " ");
    uint16_t code[MAX_KEYS];
    unsigned n = parse_keys(mon, args, len, code);
    int64_t ms;

    if (!n || !parse_hold(mon, args + len, &ms)) {
        return;
    }
    if (!held.timer_made) {
        timer_init(&held.timer, event_loop_control(), CLOCK_TYPE_REALTIME, release_all, NULL);
        held.timer_made = true;
    }
    release_all(NULL); /* of the last command */
    for (unsigned i = 0; i < n; i++) {
        if (!ps2_keyboard_event(code[i], true)) {
            monitor_puts(mon, "Error: this machine has no keyboard, or its queue is full\n");
            break;
        }
        held.code[held.n++] = code[i];
    }
    timer_mod(&held.timer, clock_get_ns(CLOCK_TYPE_REALTIME) + ms * 1000000);
}
