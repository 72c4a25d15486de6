/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's qtest text protocol, one command a line: docs/devel/qtest.md.
 *
 * Everything runs on the main loop, which is the thread that devices' timers run on. This is a tool
 * for tests: it allocates, inside rtcheck_allow_begin/end.
 */
#include "monitor/qtest.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "accel/cpu.h"
#include "chardev/char.h"
#include "event/event.h"
#include "hw/device.h"
#include "memory/memory.h"
#include "qemu/file.h"

#define MAX_LINE  (64 * MiB)
#define MAX_WORDS 6
#define MAX_TAPS  128

typedef struct Tap {
    IrqLine *where;    /* the line that was replaced */
    IrqLine original;
    int first;         /* number of the line's first pin in reports */
    uint64_t levels;   /* as reported */
    bool active;
} Tap;

typedef struct QtestServer {
    ChrFrontend chr;
    GString *in;       /* an unfinished line */
    GString *out;      /* what the back end has no room for yet */
    FILE *log;
    Tap taps[MAX_TAPS];
    unsigned n_taps;
} QtestServer;

static QtestServer server;

/* ---- Output ---- */

static void flush_out(QtestServer *s)
{
    size_t n = chr_fe_write(&s->chr, (const uint8_t *)s->out->str, s->out->len);

    g_string_erase(s->out, 0, (gssize)n);
}

static void send_line(QtestServer *s, const char *fmt, ...) QEMU_PRINTF(2, 3);
static void send_line(QtestServer *s, const char *fmt, ...)
{
    gsize before = s->out->len;
    va_list ap;

    va_start(ap, fmt);
    g_string_append_vprintf(s->out, fmt, ap);
    va_end(ap);
    if (s->log) {
        fprintf(s->log, "[S] %s\n", s->out->str + before);
    }
    g_string_append_c(s->out, '\n');
    flush_out(s);
}

/* ---- Interrupt taps ---- */

static void tap_set(void *opaque, int n, int level)
{
    Tap *t = opaque;
    uint64_t bit = BIT64(n & 63);

    if (t->original.set) {
        t->original.set(t->original.opaque, t->original.n, level);
    }
    if (!t->active || !!(t->levels & bit) == !!level) {
        return;
    }
    t->levels ^= bit;
    rtcheck_allow_begin();
    send_line(&server, "IRQ %s %d", level ? "raise" : "lower", t->first + n);
    rtcheck_allow_end();
}

static bool tap_add(QtestServer *s, IrqLine *where, int first, bool input)
{
    Tap *t = &s->taps[s->n_taps];

    if (s->n_taps == MAX_TAPS) {
        return false;
    }
    s->n_taps++;
    *t = (Tap){ .where = where, .original = *where, .first = input ? 0 : first, .active = true };
    *where = (IrqLine){ tap_set, t, 0 };
    return true;
}

static bool tapped(const QtestServer *s, const IrqLine *where)
{
    for (unsigned i = 0; i < s->n_taps; i++) {
        if (s->taps[i].where == where) {
            return true;
        }
    }
    return false;
}

static void taps_remove(QtestServer *s)
{
    while (s->n_taps) {
        Tap *t = &s->taps[--s->n_taps];

        t->active = false;
        *t->where = t->original;
    }
}

static void cmd_intercept(QtestServer *s, char **w, bool input)
{
    DeviceState *dev = device_find_path(w[1]);
    int number = 0;
    bool any = false;

    if (!dev) {
        send_line(s, "FAIL Unknown device");
        return;
    }
    for (const DeviceLines *l = dev->type->lines; l && l->name; l++) {
        IrqLine *lines = (IrqLine *)((char *)dev + l->offset);

        if (l->input != input) {
            continue;
        }
        any = true;
        for (unsigned i = 0; i < (input ? 1u : l->count); i++) {
            if (!tapped(s, &lines[i]) && !tap_add(s, &lines[i], number + (int)i, input)) {
                send_line(s, "FAIL Too many intercepted lines");
                return;
            }
        }
        number += l->count;
    }
    send_line(s, any ? "OK" : "FAIL Device has no such lines");
}

static void cmd_intercept_in(QtestServer *s, char **w)
{
    cmd_intercept(s, w, true);
}

static void cmd_intercept_out(QtestServer *s, char **w)
{
    cmd_intercept(s, w, false);
}

/* ---- Values ---- */

static bool parse_u64(const char *word, uint64_t *v)
{
    char *end;

    errno = 0;
    *v = g_ascii_strtoull(word, &end, 0);
    return errno == 0 && end != word && !*end;
}

/* Memory seen by the first vCPU, its local APIC's page included. */
static void as_cpu(bool on)
{
    current_cpu = on ? cpu_get(0) : NULL;
}

/* Size in bytes from the last letter of inb, writeq, ... */
static unsigned access_size(const char *cmd)
{
    switch (cmd[strlen(cmd) - 1]) {
    case 'b':
        return 1;
    case 'w':
        return 2;
    case 'l':
        return 4;
    default:
        return 8;
    }
}

static void bad_number(QtestServer *s)
{
    send_line(s, "FAIL Invalid number");
}

static void cmd_out(QtestServer *s, char **w)
{
    uint64_t addr, value;

    if (!parse_u64(w[1], &addr) || !parse_u64(w[2], &value) || addr > UINT16_MAX) {
        bad_number(s);
        return;
    }
    address_space_store(&address_space_io, addr, value, access_size(w[0]));
    send_line(s, "OK");
}

static void cmd_in(QtestServer *s, char **w)
{
    uint64_t addr;

    if (!parse_u64(w[1], &addr) || addr > UINT16_MAX) {
        bad_number(s);
        return;
    }
    send_line(s, "OK 0x%04x",
              (unsigned)address_space_load(&address_space_io, addr, access_size(w[0])));
}

static void cmd_store(QtestServer *s, char **w)
{
    uint64_t addr, value;

    if (!parse_u64(w[1], &addr) || !parse_u64(w[2], &value)) {
        bad_number(s);
        return;
    }
    as_cpu(true);
    address_space_store(&address_space_memory, addr, value, access_size(w[0]));
    as_cpu(false);
    send_line(s, "OK");
}

static void cmd_load(QtestServer *s, char **w)
{
    uint64_t addr, value;

    if (!parse_u64(w[1], &addr)) {
        bad_number(s);
        return;
    }
    as_cpu(true);
    value = address_space_load(&address_space_memory, addr, access_size(w[0]));
    as_cpu(false);
    send_line(s, "OK 0x%016" PRIx64, value);
}

/* ---- Buffers ---- */

static bool parse_range(QtestServer *s, char **w, uint64_t *addr, uint64_t *size)
{
    if (!parse_u64(w[1], addr) || !parse_u64(w[2], size) || *size > MAX_LINE / 2) {
        bad_number(s);
        return false;
    }
    return true;
}

static uint8_t *read_guest(uint64_t addr, uint64_t size)
{
    uint8_t *buf = g_malloc(size + 1);

    as_cpu(true);
    address_space_read(&address_space_memory, addr, buf, size);
    as_cpu(false);
    return buf;
}

static void write_guest(uint64_t addr, const uint8_t *buf, uint64_t size)
{
    as_cpu(true);
    address_space_write(&address_space_memory, addr, buf, size);
    as_cpu(false);
}

static void cmd_read(QtestServer *s, char **w)
{
    g_autoptr(GString) hex = g_string_new("0x");
    g_autofree uint8_t *buf = NULL;
    uint64_t addr, size;

    if (!parse_range(s, w, &addr, &size)) {
        return;
    }
    buf = read_guest(addr, size);
    for (uint64_t i = 0; i < size; i++) {
        g_string_append_printf(hex, "%02x", buf[i]);
    }
    send_line(s, "OK %s", hex->str);
}

/* Short data is padded with zeros. */
static void cmd_write(QtestServer *s, char **w)
{
    g_autofree uint8_t *buf = NULL;
    uint64_t addr, size;
    const char *hex = w[3];

    if (!parse_range(s, w, &addr, &size)) {
        return;
    }
    if (strncmp(hex, "0x", 2) || strspn(hex + 2, "0123456789abcdefABCDEF") != strlen(hex + 2)) {
        send_line(s, "FAIL Invalid data");
        return;
    }
    buf = g_malloc0(size + 1);
    hex += 2;
    for (uint64_t i = 0; i < size && hex[0] && hex[1]; i++, hex += 2) {
        buf[i] = (uint8_t)(g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1]));
    }
    write_guest(addr, buf, size);
    send_line(s, "OK");
}

static void cmd_b64read(QtestServer *s, char **w)
{
    g_autofree uint8_t *buf = NULL;
    g_autofree char *text = NULL;
    uint64_t addr, size;

    if (!parse_range(s, w, &addr, &size)) {
        return;
    }
    buf = read_guest(addr, size);
    text = g_base64_encode(buf, size);
    send_line(s, "OK %s", text);
}

static void cmd_b64write(QtestServer *s, char **w)
{
    g_autofree uint8_t *data = NULL;
    uint64_t addr, size;
    gsize len;

    if (!parse_range(s, w, &addr, &size)) {
        return;
    }
    data = g_base64_decode(w[3], &len);
    write_guest(addr, data, MIN(size, len));
    send_line(s, "OK");
}

static void cmd_memset(QtestServer *s, char **w)
{
    g_autofree uint8_t *buf = NULL;
    uint64_t addr, size, value;

    if (!parse_range(s, w, &addr, &size)) {
        return;
    }
    if (!parse_u64(w[3], &value)) {
        bad_number(s);
        return;
    }
    buf = g_malloc(size + 1);
    memset(buf, (int)(value & 0xff), size);
    write_guest(addr, buf, size);
    send_line(s, "OK");
}

/* ---- Time ---- */

static void advance_to(QtestServer *s, int64_t target)
{
    if (!clock_virtual_is_manual() || clock_virtual_is_counted()) {
        send_line(s, "FAIL Virtual time runs by itself, use -accel qtest");
        return;
    }
    clock_virtual_advance_to(target);
    send_line(s, "OK %" PRIi64, clock_get_ns(CLOCK_TYPE_VIRTUAL));
}

static void cmd_clock_step(QtestServer *s, char **w)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL), target;
    uint64_t ns;

    if (w[1]) {
        if (!parse_u64(w[1], &ns) || ns > INT64_MAX / 2) {
            bad_number(s);
            return;
        }
        target = now + (int64_t)ns;
    } else {
        target = clock_virtual_next_deadline();
        target = target == INT64_MAX ? now : MAX(target, now);
    }
    advance_to(s, target);
}

static void cmd_clock_set(QtestServer *s, char **w)
{
    uint64_t ns;

    if (!parse_u64(w[1], &ns) || ns > INT64_MAX) {
        bad_number(s);
        return;
    }
    advance_to(s, (int64_t)ns);
}

static void cmd_endianness(QtestServer *s, char **w)
{
    send_line(s, "OK little");
}

/* ---- Dispatch ---- */

typedef struct Command {
    const char *name;
    unsigned min_args, max_args;
    void (*fn)(QtestServer *s, char **w);
} Command;

static const Command commands[] = {
    { "outb", 2, 2, cmd_out },       { "outw", 2, 2, cmd_out },
    { "outl", 2, 2, cmd_out },       { "inb", 1, 1, cmd_in },
    { "inw", 1, 1, cmd_in },         { "inl", 1, 1, cmd_in },
    { "writeb", 2, 2, cmd_store },   { "writew", 2, 2, cmd_store },
    { "writel", 2, 2, cmd_store },   { "writeq", 2, 2, cmd_store },
    { "readb", 1, 1, cmd_load },     { "readw", 1, 1, cmd_load },
    { "readl", 1, 1, cmd_load },     { "readq", 1, 1, cmd_load },
    { "read", 2, 2, cmd_read },      { "write", 3, 3, cmd_write },
    { "b64read", 2, 2, cmd_b64read },
    { "b64write", 3, 3, cmd_b64write },
    { "memset", 3, 3, cmd_memset },  { "endianness", 0, 0, cmd_endianness },
    { "clock_step", 0, 1, cmd_clock_step },
    { "clock_set", 1, 1, cmd_clock_set },
    { "irq_intercept_in", 1, 1, cmd_intercept_in },
    { "irq_intercept_out", 1, 1, cmd_intercept_out },
};

static void run_line(QtestServer *s, char *line)
{
    char *w[MAX_WORDS + 1] = { NULL };
    unsigned n = 0;

    if (s->log) {
        fprintf(s->log, "[R] %s\n", line);
    }
    for (char *p = strtok(line, " \t\r"); p && n < MAX_WORDS; p = strtok(NULL, " \t\r")) {
        w[n++] = p;
    }
    if (!n) {
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i].name, w[0])) {
            continue;
        }
        if (n - 1 < commands[i].min_args || n - 1 > commands[i].max_args) {
            send_line(s, "FAIL Command '%s' has %u arguments", w[0], n - 1);
        } else {
            commands[i].fn(s, w);
        }
        return;
    }
    send_line(s, "FAIL Unknown command '%s'", w[0]);
}

static void run_lines(QtestServer *s)
{
    char *newline;

    while ((newline = memchr(s->in->str, '\n', s->in->len))) {
        gssize len = newline - s->in->str;
        g_autofree char *line = g_strndup(s->in->str, (gsize)len);

        g_string_erase(s->in, 0, len + 1);
        run_line(s, line);
    }
}

/* ---- Front end ---- */

/* Commands wait while replies do: a client that does not read can not fill our memory. */
static size_t qtest_can_read(void *opaque)
{
    QtestServer *s = opaque;

    return s->out->len ? 0 : 4096;
}

static void qtest_read(void *opaque, const uint8_t *buf, size_t len)
{
    QtestServer *s = opaque;

    rtcheck_allow_begin();
    if (s->in->len + len > MAX_LINE) {
        g_string_truncate(s->in, 0);
        send_line(s, "FAIL Line too long");
    } else {
        g_string_append_len(s->in, (const char *)buf, (gssize)len);
        run_lines(s);
    }
    rtcheck_allow_end();
}

static void qtest_writable(void *opaque)
{
    QtestServer *s = opaque;

    rtcheck_allow_begin();
    flush_out(s);
    rtcheck_allow_end();
    if (!s->out->len) {
        chr_fe_accept_input(&s->chr);
    }
}

static void qtest_event(void *opaque, ChrEvent event)
{
    QtestServer *s = opaque;

    rtcheck_allow_begin();
    if (event == CHR_EVENT_CLOSED || event == CHR_EVENT_OPENED) {
        g_string_truncate(s->in, 0);
        g_string_truncate(s->out, 0);
        taps_remove(s);
    }
    if (s->log) {
        fprintf(s->log, "[I] %s\n", event == CHR_EVENT_OPENED ? "OPENED" :
                                    event == CHR_EVENT_CLOSED ? "CLOSED" : "EVENT");
    }
    rtcheck_allow_end();
}

static const ChrFrontendOps qtest_chr_ops = {
    .can_read = qtest_can_read,
    .read = qtest_read,
    .event = qtest_event,
    .writable = qtest_writable,
};

bool qtest_server_start(Chardev *chr, const char *log, Error **errp)
{
    QtestServer *s = &server;

    if (!log) {
        s->log = stderr;
    } else if (strcmp(log, "none")) {
        int fd = startup_file_open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        s->log = fd < 0 ? NULL : fdopen(fd, "w");
        if (!s->log) {
            error_setg_errno(errp, errno, "-qtest-log %s: cannot write", log);
            return false;
        }
        setvbuf(s->log, NULL, _IOLBF, 0);
    }
    if (!chr_fe_init(&s->chr, chr, errp)) {
        return false;
    }
    s->in = g_string_new(NULL);
    s->out = g_string_new(NULL);
    chr_fe_set_handlers(&s->chr, event_loop_main(), &qtest_chr_ops, s);
    return true;
}
