/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PC's keyboard controller (Intel 8042 with IBM PS/2 firmware), its keyboard and mouse.
 * Source: IBM PS/2 hardware interface technical reference, keyboard and auxiliary device
 * controller.
 */
#include <string.h>
#include "accel/cpu.h"
#include "hw/input/ps2-internal.h"
#include "hw/isa.h"
#include "qemu/runstate.h"

enum { STAT_OBF = BIT(0), STAT_SYS = BIT(2), STAT_CMD = BIT(3), STAT_UNLOCKED = BIT(4),
       STAT_AUX = BIT(5) };
/* Command byte, RAM[0]. */
enum { CB_KBD_INT = BIT(0), CB_AUX_INT = BIT(1), CB_SYS = BIT(2), CB_KBD_OFF = BIT(4),
       CB_AUX_OFF = BIT(5), CB_TRANSLATE = BIT(6) };
enum { OUT_NO_RESET = BIT(0), OUT_A20 = BIT(1), OUT_KBD_OBF = BIT(4), OUT_AUX_OBF = BIT(5) };

enum {
    CMD_READ_RAM = 0x20, CMD_WRITE_RAM = 0x60, CMD_PASSWORD_TEST = 0xa4, CMD_AUX_OFF = 0xa7,
    CMD_AUX_ON = 0xa8, CMD_AUX_TEST = 0xa9, CMD_SELF_TEST = 0xaa, CMD_KBD_TEST = 0xab,
    CMD_KBD_OFF = 0xad, CMD_KBD_ON = 0xae, CMD_READ_INPUT = 0xc0, CMD_READ_OUTPUT = 0xd0,
    CMD_WRITE_OUTPUT = 0xd1, CMD_WRITE_KBD_OBF = 0xd2, CMD_WRITE_AUX_OBF = 0xd3,
    CMD_WRITE_AUX = 0xd4, CMD_A20_OFF = 0xdd, CMD_A20_ON = 0xdf, CMD_PULSE = 0xf0,
};

/* Who put the byte into the output buffer. */
enum { FROM_NOBODY, FROM_CONTROLLER, FROM_KBD, FROM_AUX };

typedef struct I8042State {
    DeviceState dev;
    /* Guards all below, keyboard and mouse included, but lines and properties. */
    QemuMutex lock;
    uint8_t ram[32];
    uint8_t output_port; /* without the OBF bits */
    uint8_t pending_cmd; /* waits for a byte at port 60h; 0: none */
    uint8_t obf_data, obf_source;
    uint8_t reply[4], reply_count; /* of the controller itself */
    bool last_was_cmd;
    bool break_seen;     /* set 2's f0 under translation */
    bool irq1_level, irq12_level;
    Ps2Keyboard kbd;
    Ps2Mouse mouse;
    IrqLine irq1, irq12, a20;
    MemoryRegion data_io, cmd_io;
} I8042State;

static I8042State *the_i8042;

/* ---- Output buffer ---- */

static void set_line(IrqLine *line, bool *level, bool want)
{
    if (*level != want) {
        *level = want;
        irq_set(line, want);
    }
}

/* What the controller itself answers interrupts like the keyboard. */
static void update_irqs(I8042State *s)
{
    bool kbd = s->obf_source == FROM_KBD || s->obf_source == FROM_CONTROLLER;

    set_line(&s->irq1, &s->irq1_level, kbd && (s->ram[0] & CB_KBD_INT));
    set_line(&s->irq12, &s->irq12_level, s->obf_source == FROM_AUX && (s->ram[0] & CB_AUX_INT));
}

static void fill(I8042State *s, uint8_t v, uint8_t source)
{
    s->obf_data = v;
    s->obf_source = source;
}

/* A byte of the keyboard, translated if asked for. False: it gave no byte yet. */
static bool kbd_byte(I8042State *s, uint8_t *v)
{
    while (ps2_queue_get(&s->kbd.queue, v)) {
        ps2_kbd_drained(&s->kbd);
        if (!(s->ram[0] & CB_TRANSLATE)) {
            return true;
        }
        if (*v == 0xf0) {
            s->break_seen = true;
            continue;
        }
        *v = ps2_translate(*v) | (s->break_seen ? 0x80 : 0);
        s->break_seen = false;
        return true;
    }
    return false;
}

/* Fills the output buffer if it is empty. Lock held. */
static void i8042_update(I8042State *s)
{
    uint8_t v;

    if (s->obf_source == FROM_NOBODY) {
        if (s->reply_count) {
            fill(s, s->reply[0], FROM_CONTROLLER);
            memmove(s->reply, s->reply + 1, --s->reply_count);
        } else if (!(s->ram[0] & CB_KBD_OFF) && kbd_byte(s, &v)) {
            fill(s, v, FROM_KBD);
        } else if (!(s->ram[0] & CB_AUX_OFF) && ps2_queue_get(&s->mouse.queue, &v)) {
            ps2_mouse_drained(&s->mouse);
            fill(s, v, FROM_AUX);
        }
    }
    update_irqs(s);
}

static void controller_reply(I8042State *s, uint8_t v)
{
    if (s->reply_count < sizeof(s->reply)) {
        s->reply[s->reply_count++] = v;
    }
}

/* ---- Output port ---- */

static void write_output_port(I8042State *s, uint8_t v)
{
    s->output_port = v & (uint8_t)~(OUT_KBD_OBF | OUT_AUX_OBF);
    irq_set(&s->a20, (v & OUT_A20) != 0);
    if (!(v & OUT_NO_RESET)) {
        qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
        cpu_hold_self();
    }
}

static uint8_t read_output_port(const I8042State *s)
{
    return s->output_port |
           (s->obf_source == FROM_AUX ? OUT_AUX_OBF : s->obf_source ? OUT_KBD_OBF : 0);
}

/* ---- Commands at port 64h ---- */

static void write_command_byte(I8042State *s, uint8_t v)
{
    s->ram[0] = v & 0x77;
}

static void command_simple(I8042State *s, uint8_t cmd)
{
    switch (cmd) {
    case CMD_PASSWORD_TEST:
        controller_reply(s, 0xf1); /* none is loaded */
        break;
    case CMD_AUX_OFF:
        s->ram[0] |= CB_AUX_OFF;
        break;
    case CMD_AUX_ON:
        s->ram[0] &= (uint8_t)~CB_AUX_OFF;
        break;
    case CMD_AUX_TEST:
    case CMD_KBD_TEST:
        controller_reply(s, 0x00);
        break;
    case CMD_SELF_TEST:
        s->ram[0] |= CB_SYS;
        controller_reply(s, 0x55);
        break;
    case CMD_KBD_OFF:
        s->ram[0] |= CB_KBD_OFF;
        break;
    case CMD_KBD_ON:
        s->ram[0] &= (uint8_t)~CB_KBD_OFF;
        break;
    case CMD_READ_INPUT:
        controller_reply(s, 0x80); /* keyboard not locked */
        break;
    case CMD_READ_OUTPUT:
        controller_reply(s, read_output_port(s));
        break;
    case CMD_A20_OFF:
        write_output_port(s, s->output_port & (uint8_t)~OUT_A20);
        break;
    case CMD_A20_ON:
        write_output_port(s, s->output_port | OUT_A20);
        break;
    default: /* the firmware ignores what it does not know */
        break;
    }
}

static void i8042_command(I8042State *s, uint8_t cmd)
{
    s->last_was_cmd = true;
    s->pending_cmd = 0;
    if ((cmd & 0xe0) == CMD_READ_RAM) {
        controller_reply(s, s->ram[cmd & 0x1f]);
    } else if ((cmd & 0xe0) == CMD_WRITE_RAM ||
               (cmd >= CMD_WRITE_OUTPUT && cmd <= CMD_WRITE_AUX)) {
        s->pending_cmd = cmd;
    } else if (cmd >= CMD_PULSE) {
        /* Bits that are 0 pulse output lines 3..0 for 6 us; line 0 is the processor's reset. */
        if (!(cmd & BIT(0))) {
            qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
            cpu_hold_self();
        }
    } else {
        command_simple(s, cmd);
    }
}

/* ---- Data at port 60h ---- */

static void i8042_argument(I8042State *s, uint8_t cmd, uint8_t v)
{
    switch (cmd) {
    case CMD_WRITE_OUTPUT:
        write_output_port(s, v);
        break;
    case CMD_WRITE_KBD_OBF:
        fill(s, v, FROM_KBD);
        break;
    case CMD_WRITE_AUX_OBF:
        fill(s, v, FROM_AUX);
        break;
    case CMD_WRITE_AUX:
        ps2_mouse_write(&s->mouse, v);
        break;
    default:
        if ((cmd & 0x1f) == 0) {
            write_command_byte(s, v);
        } else {
            s->ram[cmd & 0x1f] = v;
        }
        break;
    }
}

static void data_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    I8042State *s = opaque;
    uint8_t cmd;

    QEMU_LOCK_GUARD(&s->lock);
    cmd = s->pending_cmd;
    s->pending_cmd = 0;
    s->last_was_cmd = false;
    if (cmd) {
        i8042_argument(s, cmd, (uint8_t)value);
    } else {
        /* Sending to the keyboard lifts its clock again. */
        s->ram[0] &= (uint8_t)~CB_KBD_OFF;
        ps2_kbd_write(&s->kbd, (uint8_t)value);
    }
    i8042_update(s);
}

static uint64_t data_read(void *opaque, hwaddr offset, unsigned size)
{
    I8042State *s = opaque;
    uint8_t v;

    QEMU_LOCK_GUARD(&s->lock);
    v = s->obf_data;
    if (s->obf_source != FROM_NOBODY) {
        s->obf_source = FROM_NOBODY;
        update_irqs(s); /* the line falls between two bytes */
        i8042_update(s);
    }
    return v;
}

static void cmd_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    I8042State *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    i8042_command(s, (uint8_t)value);
    i8042_update(s);
}

static uint64_t status_read(void *opaque, hwaddr offset, unsigned size)
{
    I8042State *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    return STAT_UNLOCKED | (s->ram[0] & CB_SYS ? STAT_SYS : 0) |
           (s->last_was_cmd ? STAT_CMD : 0) | (s->obf_source != FROM_NOBODY ? STAT_OBF : 0) |
           (s->obf_source == FROM_AUX ? STAT_AUX : 0);
}

static const MemoryRegionOps data_ops = { .read = data_read, .write = data_write, .impl_max = 1 };
static const MemoryRegionOps cmd_ops = { .read = status_read, .write = cmd_write, .impl_max = 1 };

/* ---- Input from outside ---- */

bool ps2_keyboard_event(unsigned key, bool down)
{
    I8042State *s = the_i8042;
    bool taken;

    if (!s) {
        return false;
    }
    QEMU_LOCK_GUARD(&s->lock);
    taken = ps2_kbd_key(&s->kbd, key, down);
    i8042_update(s);
    return taken;
}

bool ps2_mouse_event(int dx, int dy, int dz, unsigned buttons)
{
    I8042State *s = the_i8042;

    if (!s) {
        return false;
    }
    QEMU_LOCK_GUARD(&s->lock);
    ps2_mouse_move(&s->mouse, dx, dy, dz, buttons);
    i8042_update(s);
    return s->mouse.reporting || s->mouse.remote;
}

unsigned ps2_keyboard_leds(void)
{
    I8042State *s = the_i8042;

    if (!s) {
        return 0;
    }
    QEMU_LOCK_GUARD(&s->lock);
    return s->kbd.leds;
}

void i8042_set_a20_out(DeviceState *i8042, IrqLine a20)
{
    I8042State *s = (I8042State *)i8042;

    QEMU_LOCK_GUARD(&s->lock);
    s->a20 = a20;
    irq_set(&s->a20, (s->output_port & OUT_A20) != 0);
}

/* ---- Device ---- */

/* A20 is open, as firmware leaves it: guests that start without firmware expect that. */
static void i8042_reset(DeviceState *dev)
{
    I8042State *s = (I8042State *)dev;

    QEMU_LOCK_GUARD(&s->lock);
    memset(s->ram, 0, sizeof(s->ram));
    s->ram[0] = CB_KBD_INT | CB_AUX_INT | CB_TRANSLATE;
    s->pending_cmd = 0;
    s->obf_source = FROM_NOBODY;
    s->obf_data = 0;
    s->reply_count = 0;
    s->last_was_cmd = false;
    s->break_seen = false;
    ps2_kbd_reset(&s->kbd);
    ps2_mouse_reset(&s->mouse);
    write_output_port(s, OUT_NO_RESET | OUT_A20);
    update_irqs(s);
}

static void i8042_unrealize(DeviceState *dev)
{
    I8042State *s = (I8042State *)dev;

    the_i8042 = NULL;
    qemu_mutex_destroy(&s->lock);
}

static bool i8042_realize(DeviceState *dev, Error **errp)
{
    I8042State *s = (I8042State *)dev;

    if (the_i8042) {
        error_setg(errp, "this machine has a keyboard controller already");
        return false;
    }
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "i8042");
    the_i8042 = s;
    s->irq1 = isa_irq(dev, 1);
    s->irq12 = isa_irq(dev, 12);
    memory_region_init_io(&s->data_io, &data_ops, s, "i8042-data", 1);
    memory_region_init_io(&s->cmd_io, &cmd_ops, s, "i8042-cmd", 1);
    if (!isa_map_ports(dev, &s->data_io, 0x60, errp) ||
        !isa_map_ports(dev, &s->cmd_io, 0x64, errp)) {
        i8042_unrealize(dev);
        return false;
    }
    return true;
}

static bool i8042_post_load(void *opaque, int version, Error **errp)
{
    I8042State *s = opaque;

    QEMU_LOCK_GUARD(&s->lock);
    if (s->reply_count > sizeof(s->reply) || s->obf_source > FROM_AUX ||
        !ps2_queue_valid(&s->kbd.queue) || !ps2_queue_valid(&s->mouse.queue)) {
        error_setg(errp, "i8042: invalid state");
        return false;
    }
    irq_set(&s->a20, (s->output_port & OUT_A20) != 0);
    return true;
}

static const VMState i8042_vmstate = {
    .name = "i8042",
    .version = 1,
    .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_BUFFER, I8042State, ram, 32),
        VMS_FIELD(VMS_U8, I8042State, output_port, 1),
        VMS_FIELD(VMS_U8, I8042State, pending_cmd, 1),
        VMS_FIELD(VMS_U8, I8042State, obf_data, 1),
        VMS_FIELD(VMS_U8, I8042State, obf_source, 1),
        VMS_FIELD(VMS_BUFFER, I8042State, reply, 4),
        VMS_FIELD(VMS_U8, I8042State, reply_count, 1),
        VMS_FIELD(VMS_BOOL, I8042State, last_was_cmd, 1),
        VMS_FIELD(VMS_BOOL, I8042State, break_seen, 1),
        VMS_FIELD(VMS_BOOL, I8042State, irq1_level, 1),
        VMS_FIELD(VMS_BOOL, I8042State, irq12_level, 1),
        VMS_STRUCT_ARRAY(I8042State, kbd, 1, Ps2Keyboard, ps2_kbd_vmstate),
        VMS_STRUCT_ARRAY(I8042State, mouse, 1, Ps2Mouse, ps2_mouse_vmstate),
        VMS_END,
    },
    .post_load = i8042_post_load,
};

static const DeviceLines i8042_lines[] = {
    { "kbd", offsetof(I8042State, irq1), 1, false },
    { "aux", offsetof(I8042State, irq12), 1, false },
    { "a20", offsetof(I8042State, a20), 1, false },
    {},
};

static const DeviceType i8042_type = {
    .name = "i8042",
    .desc = "keyboard controller with keyboard and mouse",
    .bus = "isa",
    .instance_size = sizeof(I8042State),
    .realize = i8042_realize,
    .unrealize = i8042_unrealize,
    .reset = i8042_reset,
    .vmstate = &i8042_vmstate,
    .lines = i8042_lines,
    .category = "Input",
};
DEVICE_TYPE(i8042_type);
