/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A PS/2 mouse with the wheel (IntelliMouse) and five-button (Explorer) extensions.
 * Sources: IBM PS/2 hardware interface technical reference, mouse; Microsoft's IntelliMouse notes.
 */
#include <stdlib.h>
#include "hw/input/ps2-internal.h"

enum {
    ACK = 0xfa, NAK = 0xfe, BAT_OK = 0xaa,
    CMD_SCALE11 = 0xe6, CMD_SCALE21 = 0xe7, CMD_RESOLUTION = 0xe8, CMD_STATUS = 0xe9,
    CMD_STREAM = 0xea, CMD_READ_DATA = 0xeb, CMD_UNWRAP = 0xec, CMD_WRAP = 0xee,
    CMD_REMOTE = 0xf0, CMD_ID = 0xf2, CMD_RATE = 0xf3, CMD_ENABLE = 0xf4, CMD_DISABLE = 0xf5,
    CMD_DEFAULTS = 0xf6, CMD_RESEND = 0xfe, CMD_RESET = 0xff,
};

static unsigned packet_size(const Ps2Mouse *m)
{
    return m->id ? 4 : 3;
}

static int clip(int32_t *v, int limit)
{
    int32_t part = *v > limit ? limit : *v < -limit ? -limit : *v;

    *v -= part;
    return part;
}

/* Streaming with 2:1 scaling maps small movements by a table. */
static int scale21(int v)
{
    static const int small[] = { 0, 1, 1, 3, 6, 9 };
    int a = abs(v);
    int r = a <= 5 ? small[a] : 2 * a;

    r = MIN(r, 255);
    return v < 0 ? -r : r;
}

static void mouse_packet(Ps2Mouse *m, bool stream, void (*put)(Ps2Queue *q, uint8_t v))
{
    int dx = clip(&m->dx, 255), dy = clip(&m->dy, 255), dz = clip(&m->dz, m->id == 4 ? 7 : 127);

    if (m->scaling2 && stream) {
        dx = scale21(dx);
        dy = scale21(dy);
    }
    put(&m->queue, (uint8_t)(8 | (dx < 0) << 4 | (dy < 0) << 5 | (m->buttons & 7)));
    put(&m->queue, (uint8_t)dx);
    put(&m->queue, (uint8_t)dy);
    if (m->id == 3) {
        put(&m->queue, (uint8_t)dz);
    } else if (m->id == 4) {
        put(&m->queue, (uint8_t)((dz & 0xf) | (m->buttons & (PS2_BUTTON_SIDE | PS2_BUTTON_EXTRA))
                                                  << 1));
    }
    m->sent_buttons = m->buttons;
}

/* One packet if there is something to tell and room for it; movement adds up until then. */
void ps2_mouse_drained(Ps2Mouse *m)
{
    if (!m->reporting || m->remote || m->wrap ||
        !(m->dx || m->dy || (m->dz && m->id) || m->buttons != m->sent_buttons) ||
        ps2_queue_room(&m->queue) < packet_size(m)) {
        return;
    }
    mouse_packet(m, true, ps2_queue_put);
}

static int32_t saturate(int64_t v)
{
    return (int32_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}

void ps2_mouse_move(Ps2Mouse *m, int dx, int dy, int dz, unsigned buttons)
{
    if (!m->reporting && !m->remote) {
        return;
    }
    m->dx = saturate((int64_t)m->dx + dx);
    m->dy = saturate((int64_t)m->dy - dy); /* the device's y grows upwards */
    m->dz = saturate((int64_t)m->dz + dz);
    m->buttons = buttons & 0x1f;
    ps2_mouse_drained(m);
}

static void mouse_defaults(Ps2Mouse *m)
{
    ps2_queue_clear(&m->queue);
    m->rate = 100;
    m->resolution = 2;
    m->scaling2 = false;
    m->reporting = false;
    m->remote = false;
    m->wrap = false;
    m->dx = m->dy = m->dz = 0;
}

void ps2_mouse_reset(Ps2Mouse *m)
{
    mouse_defaults(m);
    ps2_queue_reset(&m->queue);
    m->id = 0;
    m->pending_cmd = 0;
    m->rate_history[0] = m->rate_history[1] = 0;
    m->buttons = m->sent_buttons = 0;
}

/* Sample rates 200, 100, 80 in a row unlock the wheel; 200, 200, 80 five buttons. */
static void mouse_set_rate(Ps2Mouse *m, uint8_t rate)
{
    if (rate == 80 && m->rate_history[0] == 200) {
        if (m->rate_history[1] == 100) {
            m->id = 3;
        } else if (m->rate_history[1] == 200) {
            m->id = 4;
        }
    }
    m->rate_history[0] = m->rate_history[1];
    m->rate_history[1] = rate;
    m->rate = rate;
}

static void mouse_status(Ps2Mouse *m)
{
    ps2_queue_reply(&m->queue, ACK);
    ps2_queue_reply(&m->queue,
                    (uint8_t)((m->buttons & 1) << 2 | (m->buttons & 4) >> 1 |
                              (m->buttons & 2) >> 1 | m->scaling2 << 4 | m->reporting << 5 |
                              m->remote << 6));
    ps2_queue_reply(&m->queue, m->resolution);
    ps2_queue_reply(&m->queue, m->rate);
}

static void mouse_argument(Ps2Mouse *m, uint8_t cmd, uint8_t v)
{
    m->pending_cmd = 0;
    if (cmd == CMD_RATE) {
        mouse_set_rate(m, v);
    } else if (v > 3) {
        ps2_queue_reply(&m->queue, NAK);
        return;
    } else {
        m->resolution = v;
    }
    ps2_queue_reply(&m->queue, ACK);
}

static void mouse_command(Ps2Mouse *m, uint8_t v)
{
    switch (v) {
    case CMD_SCALE11:
    case CMD_SCALE21:
        m->scaling2 = v == CMD_SCALE21;
        break;
    case CMD_RESOLUTION:
    case CMD_RATE:
        m->pending_cmd = v;
        break;
    case CMD_STATUS:
        mouse_status(m);
        return;
    case CMD_STREAM:
        m->remote = false;
        break;
    case CMD_REMOTE:
        m->remote = true;
        break;
    case CMD_READ_DATA:
        ps2_queue_reply(&m->queue, ACK);
        mouse_packet(m, false, ps2_queue_reply);
        return;
    case CMD_UNWRAP:
        break;
    case CMD_WRAP:
        m->wrap = true;
        break;
    case CMD_ID:
        ps2_queue_reply(&m->queue, ACK);
        ps2_queue_reply(&m->queue, m->id);
        return;
    case CMD_ENABLE:
    case CMD_DISABLE:
        m->reporting = v == CMD_ENABLE;
        break;
    case CMD_DEFAULTS:
        mouse_defaults(m);
        break;
    case CMD_RESEND:
        ps2_queue_reply(&m->queue, m->queue.last_sent);
        return;
    case CMD_RESET:
        ps2_mouse_reset(m);
        ps2_queue_reply(&m->queue, ACK);
        ps2_queue_reply(&m->queue, BAT_OK);
        ps2_queue_reply(&m->queue, m->id);
        return;
    default:
        ps2_queue_reply(&m->queue, NAK);
        return;
    }
    ps2_queue_reply(&m->queue, ACK);
}

void ps2_mouse_write(Ps2Mouse *m, uint8_t v)
{
    if (m->wrap && v != CMD_UNWRAP && v != CMD_RESET) {
        ps2_queue_reply(&m->queue, v); /* wrap mode: everything comes back */
        return;
    }
    m->wrap = false;
    if (m->pending_cmd) {
        mouse_argument(m, m->pending_cmd, v);
    } else {
        mouse_command(m, v);
    }
}

const VMState ps2_mouse_vmstate = {
    .name = "ps2-mouse",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_STRUCT_ARRAY(Ps2Mouse, queue, 1, Ps2Queue, ps2_queue_vmstate),
        VMS_FIELD(VMS_U8, Ps2Mouse, id, 1),
        VMS_FIELD(VMS_U8, Ps2Mouse, pending_cmd, 1),
        VMS_FIELD(VMS_U8, Ps2Mouse, rate, 1),
        VMS_FIELD(VMS_U8, Ps2Mouse, resolution, 1),
        VMS_FIELD(VMS_U8, Ps2Mouse, rate_history, 2),
        VMS_FIELD(VMS_U8, Ps2Mouse, buttons, 1),
        VMS_FIELD(VMS_U8, Ps2Mouse, sent_buttons, 1),
        VMS_FIELD(VMS_BOOL, Ps2Mouse, reporting, 1),
        VMS_FIELD(VMS_BOOL, Ps2Mouse, remote, 1),
        VMS_FIELD(VMS_BOOL, Ps2Mouse, wrap, 1),
        VMS_FIELD(VMS_BOOL, Ps2Mouse, scaling2, 1),
        VMS_FIELD(VMS_U32, Ps2Mouse, dx, 1),
        VMS_FIELD(VMS_U32, Ps2Mouse, dy, 1),
        VMS_FIELD(VMS_U32, Ps2Mouse, dz, 1),
        VMS_END,
    },
};
