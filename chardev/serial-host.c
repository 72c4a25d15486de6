/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serial (tty): a serial port of the host, or another device file. What the guest sets its UART to
 * the port is set to by the I/O helper, as a driver may take milliseconds for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include "char-internal.h"

typedef struct ChrSerial {
    ChrFd f;
    bool is_tty;
    struct termios before;   /* put back at the end */
    EventLoop *setter;       /* where line_post goes; NULL: no terminal */
    EventPost line_post;
    _Atomic uint64_t wanted; /* a ChrLine, packed */
} ChrSerial;

/* ---- The line ---- */

#define PACK(l)                                                                                    \
    ((uint64_t)(l)->baud << 32 | (uint64_t)(l)->data_bits << 8 | (uint64_t)(l)->stop_bits << 12 |  \
     (uint64_t)(l)->parity << 16 | (uint64_t)(l)->brk << 24 | (uint64_t)(l)->dtr << 25 |           \
     (uint64_t)(l)->rts << 26)

static ChrLine unpack(uint64_t v)
{
    return (ChrLine){ .baud = (uint32_t)(v >> 32), .data_bits = v >> 8 & 15, .stop_bits = v >> 12 & 15,
                      .parity = (ChrParity)(v >> 16 & 7), .brk = v >> 24 & 1, .dtr = v >> 25 & 1,
                      .rts = v >> 26 & 1 };
}

/* The next rate that a terminal knows. */
static speed_t speed_of(uint32_t baud)
{
    static const struct {
        uint32_t baud;
        speed_t speed;
    } speeds[] = { { 50, B50 }, { 75, B75 }, { 110, B110 }, { 134, B134 }, { 150, B150 }, { 200, B200 },
                   { 300, B300 }, { 600, B600 }, { 1200, B1200 }, { 1800, B1800 }, { 2400, B2400 },
                   { 4800, B4800 }, { 9600, B9600 }, { 19200, B19200 }, { 38400, B38400 },
                   { 57600, B57600 }, { 115200, B115200 }, { 230400, B230400 }, { 460800, B460800 },
                   { 921600, B921600 } };
    unsigned best = 0;

    for (unsigned i = 1; i < ARRAY_SIZE(speeds); i++) {
        if (llabs((int64_t)speeds[i].baud - baud) < llabs((int64_t)speeds[best].baud - baud)) {
            best = i;
        }
    }
    return speeds[best].speed;
}

static void set_modes(int fd, const ChrLine *l)
{
    static const tcflag_t sizes[] = { CS5, CS6, CS7, CS8 };
    static const tcflag_t parities[] = {
        [CHR_PARITY_NONE] = 0, [CHR_PARITY_ODD] = PARENB | PARODD, [CHR_PARITY_EVEN] = PARENB,
        [CHR_PARITY_MARK] = PARENB | PARODD | CMSPAR, [CHR_PARITY_SPACE] = PARENB | CMSPAR };
    struct termios t;

    if (tcgetattr(fd, &t) < 0) {
        return;
    }
    cfmakeraw(&t);
    t.c_cflag &= (tcflag_t)~(CSIZE | CSTOPB | PARENB | PARODD | CMSPAR | CRTSCTS | HUPCL);
    t.c_cflag |= CREAD | CLOCAL | sizes[(l->data_bits - 5) & 3] | parities[l->parity] |
                 (l->stop_bits > 1 ? CSTOPB : 0);
    cfsetispeed(&t, speed_of(l->baud));
    cfsetospeed(&t, speed_of(l->baud));
    tcsetattr(fd, TCSANOW, &t);
}

/* A pseudo terminal has no modem lines, and no break: what fails is no error. */
static void set_lines(int fd, const ChrLine *l)
{
    int on = (l->dtr ? TIOCM_DTR : 0) | (l->rts ? TIOCM_RTS : 0);
    int off = (TIOCM_DTR | TIOCM_RTS) & ~on;

    ioctl(fd, TIOCMBIS, &on);
    ioctl(fd, TIOCMBIC, &off);
    ioctl(fd, l->brk ? TIOCSBRK : TIOCCBRK);
}

/* I/O helper; the latest counts. */
static void line_fn(void *opaque)
{
    ChrSerial *s = opaque;
    ChrLine l = unpack(atomic_load(&s->wanted));

    set_modes(s->f.in_fd, &l);
    set_lines(s->f.in_fd, &l);
}

static void serial_set_line(Chardev *chr, const ChrLine *line)
{
    ChrSerial *s = container_of(chr, ChrSerial, f.chr);
    uint64_t v = PACK(line);

    if (s->setter && atomic_exchange(&s->wanted, v) != v) {
        event_post(s->setter, &s->line_post);
    }
}

/* ---- The back end ---- */

/* The device is gone: it stays so. A file's end is only the end of its input. */
static void serial_lost(ChrFd *f, bool out)
{
    if (f->in_always && !out) {
        return;
    }
    chr_fd_unwatch(f);
    chr_set_connected(&f->chr, false);
}

static bool serial_prepare(ChrSerial *s, Error **errp)
{
    static const ChrLine first = { .baud = 115200, .data_bits = 8, .stop_bits = 1, .dtr = true, .rts = true };

    s->is_tty = tcgetattr(s->f.in_fd, &s->before) == 0;
    if (!s->is_tty) {
        return true;
    }
    event_post_init(&s->line_post, line_fn, s);
    s->setter = chr_io_loop(errp);
    if (s->setter) {
        atomic_store(&s->wanted, PACK(&first));
        set_modes(s->f.in_fd, &first);
    }
    return s->setter != NULL;
}

static bool serial_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrSerial *s = container_of(chr, ChrSerial, f.chr);
    const char *path = chr_opt(o, "path");
    struct stat st;

    chr_fd_init(&s->f);
    s->f.lost = serial_lost;
    chr_ignore_sigpipe();
    if (!path || !*path) {
        error_setg(errp, "no device path given; add path=DEVICE");
        return false;
    }
    s->f.in_fd = s->f.out_fd = chr_open(path, O_RDWR, errp);
    if (s->f.in_fd < 0) {
        return false;
    }
    if (fstat(s->f.in_fd, &st) < 0 || !S_ISCHR(st.st_mode)) {
        error_setg(errp, "'%s' is no serial port or other character device; for a file say file:%s", path, path);
        return false;
    }
    fcntl(s->f.in_fd, F_SETFL, fcntl(s->f.in_fd, F_GETFL) | O_NONBLOCK); /* one of an fdset may block */
    if (!serial_prepare(s, errp)) {
        return false;
    }
    chr_set_filename(chr, "%s", path);
    atomic_store(&chr->connected, true);
    return true;
}

static void nothing(void *opaque)
{
}

static void serial_close(Chardev *chr)
{
    ChrSerial *s = container_of(chr, ChrSerial, f.chr);

    if (s->setter) { /* it runs until the end, and gets to what is on its way */
        while (atomic_load(&s->line_post.pending)) {
            g_usleep(100);
        }
        chr_call_sync(s->setter, nothing, NULL);
    }
    if (s->is_tty) {
        tcsetattr(s->f.in_fd, TCSANOW, &s->before);
    }
    chr_fd_close(chr);
}

#define SERIAL_DRIVER(var, word)                                                                   \
    const ChardevDriver var = {                                                                    \
        .name = word,                                                                              \
        .keys = (const char *const[]){ "path", NULL },                                             \
        .size = sizeof(ChrSerial),                                                                 \
        .open = serial_open,                                                                       \
        .close = serial_close,                                                                     \
        .attach = chr_fd_attach,                                                                   \
        .detach = chr_fd_detach,                                                                   \
        .drain = chr_fd_drain,                                                                     \
        .pump = chr_fd_pump,                                                                       \
        .set_line = serial_set_line,                                                               \
    }
SERIAL_DRIVER(chr_driver_serial, "serial");
SERIAL_DRIVER(chr_driver_tty, "tty");
