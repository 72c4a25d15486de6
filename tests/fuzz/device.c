/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices: the input is what a guest does to one of them, or to all. An operation is a byte that
 * says what, one that chooses a range, and what the operation needs (little endian).
 *
 *   0..5  write: RANGE, OFFSET (2), VALUE (1, 2, 4 or 8; size from bits 4, 5 of the operation)
 *   6, 7  read: RANGE, OFFSET (2)
 *   8     virtual time goes on: MANTISSA, EXPONENT
 *   9     guest RAM: OFFSET in the window, LENGTH, BYTES
 *   10    something happens outside: WHAT, VALUE
 *   11    the loops run
 *   12    accesses come from vCPU VALUE (0: from nobody)
 *   13    fw_cfg: a DMA operation in the window, CONTROL (4), LENGTH (4), ADDRESS (8), and its start
 *   14    reset if VALUE is 5Ah
 *   15    bit-mask write of all ones, then zeros, to a range
 */
#include "accel/cpu.h"
#include "accel/irqchip.h"
#include "chardev/char.h"
#include "fuzz.h"
#include "hw/device.h"
#include "hw/intc.h"
#include "hw/ps2.h"
#include "hw/vmstate.h"
#include "memory/memory.h"
#include "qemu/runstate.h"
#include "target/i386/cpu.h"

#define WINDOW      0x10000u /* guest RAM the input can fill */
#define WINDOW_SIZE 0x1000u
/* Of one input. Without a bound a fast periodic timer makes any input slow. */
#define TIME_MAX (4 * NANOSECONDS_PER_SECOND)
#define OPS_MAX  4096

typedef enum Space { IO, MEM, PCI, MSR } Space;

typedef struct Range {
    Space space;
    uint32_t base; /* PCI: devfn */
    uint32_t len;
    bool end; /* one past the last */
} Range;

#define END { .end = true }

static const Range pic[] = { { IO, 0x20, 2 }, { IO, 0xa0, 2 }, { IO, 0x4d0, 2 }, END };
static const Range pit[] = { { IO, 0x40, 4 }, { IO, 0x61, 1 }, END };
static const Range rtc[] = { { IO, 0x70, 2 }, { IO, 0x70, 4 }, END };
static const Range ioapic[] = { { MEM, 0xfec00000, 0x20 }, { MEM, 0xfec00000, 0x1000 }, END };
static const Range apic[] = {
    { MEM, 0xfee00000, 0x400 }, { MSR, 0x800, 0x40 }, { MSR, 0x1b, 1 }, { MSR, 0x6e0, 1 },
    { MEM, 0xfee00000, 0x100000 }, END,
};
static const Range hpet[] = { { MEM, 0xfed00000, 0x200 }, { MEM, 0xfed00000, 0x400 }, END };
static const Range uart[] = { { IO, 0x3f8, 8 }, END };
static const Range i8042[] = { { IO, 0x60, 1 }, { IO, 0x64, 1 }, { IO, 0x92, 1 }, END };
static const Range chipset[] = {
    { PCI, 0, 0x100 }, { PCI, 8, 0x100 }, { PCI, 11, 0x100 }, { PCI, 0, 0x10000 },
    { IO, 0xcf8, 8 }, { IO, 0xcf9, 1 }, { IO, 0xb2, 2 }, { IO, 0x600, 0x40 }, { IO, 0xf0, 2 },
    { IO, 0xaf00, 12 },
    { IO, 0x80, 1 }, { MEM, 0xa0000, 0x60000 }, END,
};
static const Range fwcfg[] = { { IO, 0x510, 2 }, { IO, 0x514, 8 }, { IO, 0x510, 12 }, END };
static const Range debug[] = { { IO, 0xe9, 1 }, { IO, 0x501, 2 }, END };
static const Range testdev[] = {
    { IO, 0xe0, 8 }, { IO, 0x2000, 24 }, { MEM, 0xff000000, 0x10000 }, END,
};
static const Range rtswitch[] = { { IO, 0x5f0, 1 }, END };

static const Range *const each[] = {
    pic, pit, rtc, ioapic, apic, hpet, uart, i8042, chipset, fwcfg, debug, testdev, rtswitch,
};

static const Range *ranges;
static unsigned n_ranges;
static bool lines_pulled; /* behind the backs of the devices that drive them */

/* ---- Accesses ---- */

static void pci_address(const Range *r, uint32_t off)
{
    uint32_t devfn = r->base + (off >> 8);

    address_space_store(&address_space_io, 0xcf8, 0x80000000u | devfn << 8 | (off & 0xfc), 4);
}

static void range_write(const Range *r, uint32_t off, uint64_t v, unsigned size)
{
    switch (r->space) {
    case IO:
        lines_pulled = lines_pulled || (r->base >= 0x2000 && r->base < 0x2018);
        address_space_store(&address_space_io, r->base + off, v, MIN(size, 4));
        break;
    case MEM:
        address_space_store(&address_space_memory, r->base + off, v, size);
        break;
    case PCI:
        pci_address(r, off);
        address_space_store(&address_space_io, 0xcfc + (off & 3), v, MIN(size, 4));
        break;
    case MSR:
        x86_wrmsr(x86_cpu(cpu_get(0)), r->base + off, v);
        break;
    }
}

static void range_read(const Range *r, uint32_t off, unsigned size)
{
    uint64_t v;

    switch (r->space) {
    case IO:
        address_space_load(&address_space_io, r->base + off, MIN(size, 4));
        break;
    case MEM:
        address_space_load(&address_space_memory, r->base + off, size);
        break;
    case PCI:
        pci_address(r, off);
        address_space_load(&address_space_io, 0xcfc + (off & 3), MIN(size, 4));
        break;
    case MSR:
        x86_rdmsr(x86_cpu(cpu_get(0)), r->base + off, &v);
        break;
    }
}

static void op_access(FuzzIn *in, unsigned op)
{
    const Range *r = &ranges[fuzz_take(in, 1) % n_ranges];
    uint32_t off = (uint32_t)fuzz_take(in, 2) % r->len;
    unsigned size = 1u << (op >> 4 & 3);

    if ((op & 15) == 15) {
        range_write(r, off, UINT64_MAX, size);
        range_read(r, off, size);
        range_write(r, off, 0, size);
    } else if ((op & 15) < 6) {
        range_write(r, off, fuzz_take(in, size), size);
    } else {
        range_read(r, off, size);
    }
}

/* ---- What else happens ---- */

static void op_time(FuzzIn *in, int64_t *left)
{
    uint64_t mantissa = fuzz_take(in, 1) + 1, exponent = fuzz_take(in, 1) % 24;
    int64_t ns = MIN((int64_t)(mantissa << exponent), *left);

    *left -= ns;
    fuzz_machine_step(ns);
}

static void op_ram(FuzzIn *in)
{
    uint32_t off = (uint32_t)fuzz_take(in, 2) % WINDOW_SIZE;
    size_t len = fuzz_take(in, 1);

    len = MIN(MIN(len, in->left), WINDOW_SIZE - off);
    address_space_write(&address_space_memory, WINDOW + off, in->p, len);
    in->p += len;
    in->left -= len;
}

static void op_outside(FuzzIn *in)
{
    unsigned what = (unsigned)fuzz_take(in, 1), v = (unsigned)fuzz_take(in, 1);
    uint8_t bytes[32];

    memset(bytes, (int)v, sizeof(bytes));
    switch (what % 8) {
    case 0:
        fuzz_chr_in(chardev_find("serial0"), bytes, (what >> 3) + 1);
        break;
    case 1:
        ps2_keyboard_event(v & 0x7f, what & 8);
        break;
    case 2:
        ps2_keyboard_event(0xe000 | v, what & 8);
        break;
    case 3:
        ps2_mouse_event((int8_t)v * 4, -(int8_t)v, (int8_t)(what >> 3) - 16, v & 7);
        break;
    case 4:
        qemu_system_powerdown_request();
        break;
    case 5:
        qemu_system_wakeup_request();
        break;
    default:
        lines_pulled = true;
        irqchip->set_gsi(v % 24, what >> 3 & 1);
        break;
    }
}

static void op_fw_cfg_dma(FuzzIn *in)
{
    uint32_t d[4];

    d[0] = GUINT32_TO_BE((uint32_t)fuzz_take(in, 4));
    d[1] = GUINT32_TO_BE((uint32_t)fuzz_take(in, 4));
    d[2] = GUINT32_TO_BE((uint32_t)fuzz_take(in, 4));
    d[3] = GUINT32_TO_BE((uint32_t)fuzz_take(in, 4));
    address_space_write(&address_space_memory, WINDOW, d, sizeof(d));
    address_space_store(&address_space_io, 0x514, GUINT64_TO_BE((uint64_t)WINDOW), 8);
    address_space_store(&address_space_io, 0x518, GUINT32_TO_BE(WINDOW), 4);
}

static void op_other(FuzzIn *in, unsigned op, int64_t *left)
{
    switch (op & 15) {
    case 8:
        op_time(in, left);
        break;
    case 9:
        op_ram(in);
        break;
    case 10:
        op_outside(in);
        break;
    case 11:
        fuzz_machine_settle();
        break;
    case 12:
        op = (unsigned)fuzz_take(in, 1) % 3;
        current_cpu = op ? cpu_get(op - 1) : NULL;
        break;
    case 13:
        op_fw_cfg_dma(in);
        break;
    case 14:
        if (fuzz_take(in, 1) == 0x5a) {
            qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
            fuzz_machine_settle();
        }
        break;
    }
}

/* ---- State: what is saved can be loaded, and is the same then ---- */

static bool is_name(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!g_ascii_isalnum(p[i]) && !strchr("_-.", p[i] ? p[i] : ' ')) {
            return false;
        }
    }
    return len > 0;
}

/* The name that stands before a value: 16 bits of length, then that many bytes. */
static char *name_before(const GByteArray *state, guint at)
{
    for (guint p = at; p-- > 0;) {
        guint len = state->data[p] | (guint)state->data[p + 1] << 8;

        if (len < 40 && p + 2 + len <= at && is_name(state->data + p + 2, len)) {
            return g_strndup((const char *)state->data + p + 2, len);
        }
    }
    return g_strdup("");
}

static GByteArray *machine_save(void)
{
    uint8_t *buf = NULL;
    size_t len = 0;

    device_save_all(&buf, &len);
    for (unsigned i = 0; i < cpu_count(); i++) {
        vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu_get(i)), &buf, &len);
    }
    return g_byte_array_new_take(buf, len);
}

static void machine_load(const GByteArray *state)
{
    size_t at, used, devices;
    uint8_t *buf = NULL;
    Error *err = NULL;
    bool ok;

    device_save_all(&buf, &devices);
    g_free(buf);
    ok = device_load_all(state->data, devices, &err);
    at = devices;
    for (unsigned i = 0; ok && i < cpu_count(); i++, at += used) {
        ok = vmstate_load(&apic_vmstate, apic_vmstate_opaque(cpu_get(i)), state->data + at,
                          state->len - at, &used, &err);
    }
    if (!ok) {
        fuzz_fail("the state cannot be loaded: %s", error_get_pretty(err));
    }
}

static void check_state(void)
{
    g_autoptr(GByteArray) before = machine_save(), after = NULL;

    machine_load(before);
    if (lines_pulled) { /* a load makes each line what its device says */
        g_byte_array_unref(before);
        before = machine_save();
        machine_load(before);
    }
    after = machine_save();
    fuzz_check(before->len == after->len, "the state has another length after a load");
    for (guint i = 0; i < before->len; i++) {
        if (before->data[i] != after->data[i]) {
            fuzz_fail("byte %u of the state, %s, is %02x, after a load %02x", i,
                      name_before(before, i), before->data[i], after->data[i]);
        }
    }
}

static void run(const uint8_t *data, size_t size)
{
    static const uint8_t zeros[WINDOW_SIZE];
    FuzzIn in = { data, size };
    int64_t left = TIME_MAX;

    lines_pulled = false;
    fuzz_machine_reset();
    address_space_write(&address_space_memory, WINDOW, zeros, sizeof(zeros));
    /* As firmware does: the power-management block appears at its usual ports. */
    range_write(&(Range){ PCI, 11, 0x100 }, 0x40, 0x601, 4);
    range_write(&(Range){ PCI, 11, 0x100 }, 0x80, 1, 1);
    current_cpu = cpu_get(0);
    for (unsigned n = 0; in.left && n < OPS_MAX; n++) {
        unsigned op = (unsigned)fuzz_take(&in, 1);

        if ((op & 15) < 8 || (op & 15) == 15) {
            op_access(&in, op);
        } else {
            op_other(&in, op, &left);
        }
    }
    current_cpu = NULL;
    fuzz_machine_settle();
    check_state();
}

static void init(const FuzzTarget *t)
{
    static GArray *all;

    all = g_array_new(FALSE, FALSE, sizeof(Range));
    for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
        if (t->opaque && t->opaque != each[i]) {
            continue;
        }
        for (const Range *r = each[i]; !r->end; r++) {
            g_array_append_vals(all, r, 1);
        }
    }
    ranges = (const Range *)(void *)all->data;
    n_ranges = all->len;
    fuzz_machine_init(true);
}

#define DEVICE(_name, _ranges) { .name = _name, .init = init, .run = run, .opaque = _ranges }
const FuzzTarget fuzz_devices[] = {
    DEVICE("pic", pic),         DEVICE("pit", pit),         DEVICE("rtc", rtc),
    DEVICE("ioapic", ioapic),   DEVICE("apic", apic),       DEVICE("hpet", hpet),
    DEVICE("uart", uart),       DEVICE("i8042", i8042),     DEVICE("chipset", chipset),
    DEVICE("fw_cfg", fwcfg),    DEVICE("debug", debug),     DEVICE("testdev", testdev),
    DEVICE("realtime-switch", rtswitch), DEVICE("devices", NULL), {},
};
