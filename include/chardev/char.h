/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Character devices. The back end (file, socket, pty, ...) does its host I/O on an event loop's
 * thread; the front end (a UART, a monitor) submits bytes into a ring and is called back on the
 * loop it named. This header is the RT-safe half and the front end's; creation is in
 * chardev/char-internal.h and through chardev_new_from_opts().
 */
#ifndef CHARDEV_CHAR_H
#define CHARDEV_CHAR_H

#include "event/event.h"
#include "qemu/compiler.h"
#include "qemu/error.h"

typedef struct Chardev Chardev;

typedef enum ChrEvent {
    CHR_EVENT_OPENED, /* a peer connected, or the file is open */
    CHR_EVENT_CLOSED,
    CHR_EVENT_BREAK,
    CHR_EVENT_MUX_IN,  /* this front end of a multiplexer got the keyboard */
    CHR_EVENT_MUX_OUT,
} ChrEvent;

/* What a front end gives. All run on the front end's loop, with no lock held. */
typedef struct ChrFrontendOps {
    /* Bytes the front end can take now; 0 stops reading until chr_fe_accept_input(). */
    size_t (*can_read)(void *opaque);
    void (*read)(void *opaque, const uint8_t *buf, size_t len);
    void (*event)(void *opaque, ChrEvent event);
    /* Room in the output ring again, after chr_fe_write() took less than offered. */
    void (*writable)(void *opaque);
    /* A peer that leaves takes with it what it sent and nobody has read; else that waits until the
     * front end has room for it. */
    bool drop_unread;
    /* Set by a front end that answers: bytes it will still write. A socket's peer that sends no more is
     * then kept until it has been given them, as long as it does not leave. */
    size_t (*owes)(void *opaque);
} ChrFrontendOps;

/* Embedded by the front end; zeroed or set by chr_fe_init(). */
typedef struct ChrFrontend {
    Chardev *chr; /* NULL: not connected, output is dropped */
    const ChrFrontendOps *ops;
    void *opaque;
    EventLoop *loop;
    unsigned tag; /* private: index in a multiplexer */
} ChrFrontend;

/* Finds a chardev by id; NULL if there is none. HELPER_ONLY. */
Chardev *chardev_find(const char *id);
const char *chardev_id(const Chardev *chr);
/* The `filename` of query-chardev: "pty:/dev/pts/3", "unix:/path,server=on", ... Borrowed; it is
 * overwritten after some more connections came and went. */
const char *chardev_filename(const Chardev *chr);
/* A front end has claimed it. */
bool chardev_frontend_open(const Chardev *chr);
/* Made by "mon:..." of -serial and the like: whoever starts the machine puts an HMP monitor on it
 * (chr_fe_init() of a multiplexer works several times). */
bool chardev_wants_monitor(const Chardev *chr);
void chardev_foreach(void (*fn)(Chardev *chr, void *opaque), void *opaque);

/* Claims chr (NULL allowed). Error if another front end has it and it is not a multiplexer. */
bool chr_fe_init(ChrFrontend *fe, Chardev *chr, Error **errp);
void chr_fe_fini(ChrFrontend *fe);
/*
 * Starts the flow of input and events on loop. CHR_EVENT_OPENED follows if a peer is there. Output
 * flows from here on; a front end without input passes ops NULL, and input is read and dropped.
 * Of the front ends of a multiplexer the first (with ops) has the keyboard at the start, so devices
 * come before monitors; the others get their CHR_EVENT_OPENED when they first get it. loop NULL
 * stops the flow. HELPER_ONLY.
 */
void chr_fe_set_handlers(ChrFrontend *fe, EventLoop *loop, const ChrFrontendOps *ops,
                         void *opaque);
/*
 * RT_SAFE; any thread, one writer at a time for a front end. Copies into the output ring (64 KiB)
 * and wakes the back end. Returns the bytes taken; fewer than len means the ring is full and
 * ops->writable will be called. A back end with no peer takes and drops everything.
 */
size_t chr_fe_write(ChrFrontend *fe, const uint8_t *buf, size_t len);
/* HELPER_ONLY. Waits for room; gives up when the peer is gone or takes nothing for 2 s. */
size_t chr_fe_write_all(ChrFrontend *fe, const uint8_t *buf, size_t len);
/* RT_SAFE. can_read() would give more now. */
void chr_fe_accept_input(ChrFrontend *fe);
/* On the front end's loop. Descriptors that came with the last bytes by SCM_RIGHTS; the caller owns
 * them. Returns how many were stored. */
int chr_fe_take_fds(ChrFrontend *fe, int *fds, int max);
/* RT_SAFE. Ends the connection (sockets) soon after; a server takes the next client. */
void chr_fe_disconnect(ChrFrontend *fe);
/* HELPER_ONLY. Terminals: whether what is typed is shown. Off at first. */
void chr_fe_set_echo(ChrFrontend *fe, bool echo);

typedef enum ChrParity { CHR_PARITY_NONE, CHR_PARITY_ODD, CHR_PARITY_EVEN, CHR_PARITY_MARK, CHR_PARITY_SPACE } ChrParity;
/* What a UART is set to. */
typedef struct ChrLine {
    uint32_t baud;                /* bits a second */
    uint8_t data_bits, stop_bits; /* 5 to 8; 1 or 2 */
    ChrParity parity;
    bool brk, dtr, rts;           /* a break is sent; modem lines that are asserted */
} ChrLine;
/* RT_SAFE. A back end that is a serial port takes it over soon, others do not mind. */
void chr_fe_set_line(ChrFrontend *fe, const ChrLine *line);

struct QemuOpts;
/* From -chardev options; HELPER_ONLY. The id must be new. */
Chardev *chardev_new_from_opts(struct QemuOpts *opts, Error **errp);
/* From the short form of -serial, -monitor, -qmp: "stdio", "mon:stdio", "unix:P,server", "pty",
 * "null", "file:P", "/dev/P", "tcp:H:P,server", "chardev:ID", "none" (returns NULL without error). */
Chardev *chardev_new_from_legacy(const char *id, const char *spec, bool is_monitor, Error **errp);
/* A multiplexer over base: Ctrl-A c switches front ends, Ctrl-A x quits, Ctrl-A b breaks. */
Chardev *chardev_new_mux(const char *id, Chardev *base, Error **errp);
/* `-chardev help`, on stdout. */
void chardev_print_help(void);
/* -echr: the escape character of multiplexers (default 1, Ctrl-A). Start-up. */
void chardev_mux_set_escape(uint8_t c);
/* -daemonize: from now on a stdio back end is an error that names this option. */
void chardev_forbid_stdio(const char *option);
/* -add-fd: how "/dev/fdset/N" is opened (a new descriptor or -1). Start-up. */
void chardev_set_fdset_opener(int (*open_fn)(unsigned set, int flags));
/* ringbuf: takes up to len of the oldest bytes out, resp. puts bytes in. HELPER_ONLY. False if chr
 * is no ringbuf. */
bool chardev_ringbuf_read(Chardev *chr, uint8_t *buf, size_t *len, Error **errp);
bool chardev_ringbuf_write(Chardev *chr, const uint8_t *buf, size_t len, Error **errp);
/* Flushes rings, removes unix socket paths, restores the terminal; at exit, after the machine and
 * the monitors are stopped and before their loops are freed. Front ends are not used again. */
void chardev_cleanup(void);

#endif
