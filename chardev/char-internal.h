/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of chardev/: back-end drivers and what they share. docs/devel/chardev.md tells which
 * thread does what.
 *
 * A chardev has at most one front end (a multiplexer is a chardev of its own that is the front end
 * of another). Its state belongs to the thread of `loop`, the loop the front end named, except for
 * the output ring, whose producer is the front end and whose consumer is the thread of `out_loop`.
 */
#ifndef CHARDEV_CHAR_INTERNAL_H
#define CHARDEV_CHAR_INTERNAL_H

#include "chardev/char.h"
#include "qemu/ring.h"
#include "qemu/thread.h"

#define CHR_OUT_SIZE (64 * 1024)
#define CHR_READ_MAX 4096 /* bytes read from a peer at a time */

/* ---- Options: what -chardev and the short forms come down to ---- */

typedef struct ChrOpts {
    const char *id;
    const char *backend;
    unsigned n;
    struct ChrOpt {
        char *key;
        char *value;
    } opt[32];
} ChrOpts;

bool chr_opts_add(ChrOpts *o, const char *key, const char *value, Error **errp);
void chr_opts_clear(ChrOpts *o);
/* NULL if not given. The last of several wins. */
const char *chr_opt(const ChrOpts *o, const char *key);
bool chr_opt_bool(const ChrOpts *o, const char *key, bool defval, bool *out, Error **errp);
bool chr_opt_u64(const ChrOpts *o, const char *key, uint64_t defval, uint64_t max, uint64_t *out,
                 Error **errp);
/* Makes the chardev (and its multiplexer, with mux=on) and registers it. */
Chardev *chr_create(const ChrOpts *o, Error **errp);

/* ---- Drivers ---- */

typedef struct ChrLog ChrLog;

typedef struct ChardevDriver {
    const char *name;
    const char *const *keys; /* options besides the common ones; NULL-terminated, may be NULL */
    size_t size;             /* of the instance, whose first member is a Chardev */
    /* Start-up. Sets the filename. On failure leaves nothing behind that close() does not undo. */
    bool (*open)(Chardev *chr, const ChrOpts *o, Error **errp);
    void (*close)(Chardev *chr); /* detached; also after a failed open() */
    /* On loop's thread: start and stop watching. May be NULL. */
    void (*attach)(Chardev *chr);
    void (*detach)(Chardev *chr);
    /* On out_loop's thread: chr->out has bytes. Call chr_drained() at the end. */
    void (*drain)(Chardev *chr);
    /* On loop's thread: the front end may take more. May be NULL. */
    void (*pump)(Chardev *chr);
    /* On loop's thread: end the connection. May be NULL. */
    void (*disconnect)(Chardev *chr);
    void (*set_echo)(Chardev *chr, bool echo); /* any thread; may be NULL */
    void (*set_line)(Chardev *chr, const ChrLine *line); /* RT_SAFE; may be NULL */
    /* Replaces the ring: takes the bytes at once. RT_SAFE. */
    size_t (*write)(Chardev *chr, ChrFrontend *fe, const uint8_t *buf, size_t len);
    /* Several front ends (mux). */
    bool (*claim)(Chardev *chr, ChrFrontend *fe, Error **errp);
    void (*release)(Chardev *chr, ChrFrontend *fe);
    void (*handlers)(Chardev *chr, ChrFrontend *fe);
    void (*accept)(Chardev *chr, ChrFrontend *fe);
    int (*take_fds)(Chardev *chr, int *fds, int max);
} ChardevDriver;

struct Chardev {
    const ChardevDriver *drv;
    char *id;
    Chardev *next;
    /* The current name and some before it, as chardev_filename() lends them. */
    char names[4][256];
    _Atomic uint32_t name_index;

    ChrFrontend *fe; /* loop's thread, once attached */
    EventLoop *loop;
    EventLoop *out_loop;
    bool out_fixed;           /* out_loop is the I/O helper's, whatever the front end names */
    bool attached;
    bool told_open;           /* the front end got OPENED */
    atomic_bool connected;    /* somebody takes output: write() fills the ring */
    atomic_bool claimed;
    bool keep;                /* close() found that a loop still refers to it: do not free */
    bool wants_monitor;       /* made by a mon: of something that is no monitor */
    ByteRing out;
    atomic_bool want_writable;
    EventPost drain_post, pump_post, writable_post, disconnect_post;
    ChrLog *log; /* logfile= */
};

extern const ChardevDriver chr_driver_null, chr_driver_file, chr_driver_stdio, chr_driver_pty,
    chr_driver_pipe, chr_driver_socket, chr_driver_ringbuf, chr_driver_mux,
    chr_driver_serial, chr_driver_tty, chr_driver_udp;

/* ---- char.c, for drivers; on loop's thread unless said otherwise ---- */

/* Any thread. */
void chr_set_filename(Chardev *chr, const char *fmt, ...) QEMU_PRINTF(2, 3);
/* Peer came or went; tells the front end. Going empties the output ring. */
void chr_set_connected(Chardev *chr, bool connected);
/* Bytes the front end takes now; 0 if there is none. */
size_t chr_in_room(Chardev *chr);
void chr_in(Chardev *chr, const uint8_t *buf, size_t len);
void chr_event(Chardev *chr, ChrEvent event);
/* out_loop's thread: the ring has room again. */
void chr_drained(Chardev *chr);
/* out_loop's thread: nobody takes the output. */
void chr_discard(Chardev *chr);
/* RT_SAFE: what chr_fe_write() does for a driver with a ring. */
size_t chr_submit(Chardev *chr, const uint8_t *buf, size_t len);
/* Runs fn on loop's thread and waits; directly if nobody runs the loop. HELPER_ONLY. */
void chr_call_sync(EventLoop *loop, void (*fn)(void *opaque), void *opaque);
/* The loop of the I/O helper thread, made at the first call. HELPER_ONLY. */
EventLoop *chr_io_loop(Error **errp);
void chr_io_stop(void);
/* In open(): output is drained by the I/O helper, as writing may block (regular files). */
bool chr_use_io_loop(Chardev *chr, Error **errp);
/* open(2) with O_CLOEXEC and O_NONBLOCK, so it never waits (fdsets: as they came); knows /dev/fdset/N. Error: "Could not open 'P': ...". */
int chr_open(const char *path, int flags, Error **errp);

/* ---- log.c ---- */
ChrLog *chr_log_new(const char *path, bool append, Chardev *chr, Error **errp);
void chr_log_free(ChrLog *log); /* flushes */
/* RT_SAFE, producer's side. */
size_t chr_log_room(ChrLog *log);
void chr_log_write(ChrLog *log, const uint8_t *buf, size_t len);

/* ---- fd.c: back ends over descriptors ---- */

typedef struct ChrFd ChrFd;
struct ChrFd {
    Chardev chr;
    int in_fd, out_fd;       /* -1: none. May be the same. */
    EventSource in_src, out_src;
    bool in_always;          /* input is a regular file: always ready */
    bool in_eof;
    bool in_parked;          /* hung up while the front end takes nothing */
    atomic_bool in_ended;    /* nothing more comes; the peer is kept until it has its due. Output's loop reads it */
    bool want_in, want_out;
    /* read(2)/write(2) and what happens when the peer is gone; set before attach. */
    ssize_t (*rd)(ChrFd *f, uint8_t *buf, size_t len);
    ssize_t (*wr)(ChrFd *f, const uint8_t *buf, size_t len);
    void (*lost)(ChrFd *f, bool out); /* end of file or error on input, or error on output */
};

void chr_fd_init(ChrFd *f);
void chr_fd_watch(ChrFd *f);
void chr_fd_unwatch(ChrFd *f);
void chr_fd_pump(Chardev *chr);
void chr_fd_drain(Chardev *chr);
void chr_fd_attach(Chardev *chr);
void chr_fd_detach(Chardev *chr);
void chr_fd_close(Chardev *chr);
/*
 * A descriptor for the same file as fd that does not block. A terminal or pipe is opened a second
 * time, so that other processes that share fd are not affected; where that is impossible fd's own
 * flags are changed, and *restore is set.
 */
int chr_nonblock(int fd, int accmode, bool *restore);
/* Before the first write to something whose reader may go. */
void chr_ignore_sigpipe(void);

/* ---- stdio.c: the terminal ---- */
void chr_tty_raw(bool signals);
void chr_tty_echo(bool echo);
void chr_tty_restore(void);

/* ---- mux.c ---- */
Chardev *chr_mux_base(Chardev *mux);

#endif
