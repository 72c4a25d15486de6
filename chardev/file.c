/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The back ends file, pipe and null. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "char-internal.h"

/* ---- null: takes everything and keeps nothing (but a log) ---- */

static bool null_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    return true;
}

static size_t null_write(Chardev *chr, ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    return chr_submit(chr, buf, len); /* never connected: there is no ring to fill */
}

const ChardevDriver chr_driver_null = {
    .name = "null",
    .size = sizeof(Chardev),
    .open = null_open,
    .write = null_write,
};

/* ---- file ---- */

typedef struct ChrFile {
    ChrFd f;
    bool failed;
} ChrFile;

/* Runs on the I/O helper. The disk may have room again later: what failed is lost, the rest not. */
static void file_lost(ChrFd *f, bool out)
{
    ChrFile *file = container_of(f, ChrFile, f);

    if (!out) {
        return;
    }
    if (!file->failed) {
        warn_report("chardev '%s': cannot write: %s", f->chr.id, strerror(errno));
    }
    file->failed = true;
    chr_discard(&f->chr);
}

static mode_t fd_mode(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_mode : 0;
}

static bool file_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrFd *f = container_of(chr, ChrFd, chr);
    const char *path = chr_opt(o, "path"), *in = chr_opt(o, "input-path");
    bool append;

    chr_fd_init(f);
    f->lost = file_lost;
    if (!path || !*path) {
        error_setg(errp, "no filename given; add path=FILE");
        return false;
    }
    if (!chr_opt_bool(o, "append", false, &append, errp) || !chr_use_io_loop(chr, errp)) {
        return false;
    }
    f->out_fd = chr_open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), errp);
    if (f->out_fd < 0) {
        return false;
    }
    if (!S_ISREG(fd_mode(f->out_fd))) {
        /* A pipe whose reader sleeps must not hold up other files; one of an fdset may block. */
        fcntl(f->out_fd, F_SETFL, fcntl(f->out_fd, F_GETFL) | O_NONBLOCK);
        chr_ignore_sigpipe();
    }
    if (in && (f->in_fd = chr_open(in, O_RDONLY, errp)) < 0) {
        return false;
    }
    atomic_store(&chr->connected, true);
    return true;
}

const ChardevDriver chr_driver_file = {
    .name = "file",
    .keys = (const char *const[]){ "path", "append", "input-path", NULL },
    .size = sizeof(ChrFile),
    .open = file_open,
    .close = chr_fd_close,
    .attach = chr_fd_attach,
    .detach = chr_fd_detach,
    .drain = chr_fd_drain,
    .pump = chr_fd_pump,
};

/* ---- pipe: PATH.in and PATH.out, or PATH for both ---- */

static bool pipe_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrFd *f = container_of(chr, ChrFd, chr);
    const char *path = chr_opt(o, "path");

    chr_fd_init(f);
    chr_ignore_sigpipe();
    if (!path || !*path) {
        error_setg(errp, "no device path given; add path=PIPE");
        return false;
    }
    g_autofree char *in = g_strdup_printf("%s.in", path);
    g_autofree char *out = g_strdup_printf("%s.out", path);
    /* Read-write: opening waits for nobody, and there is no end of file between two writers. */
    f->in_fd = open(in, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    f->out_fd = open(out, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (f->in_fd < 0 || f->out_fd < 0) {
        chr_fd_close(chr);
        f->in_fd = chr_open(path, O_RDWR, errp);
        f->out_fd = f->in_fd;
        if (f->in_fd < 0) {
            return false;
        }
    }
    atomic_store(&chr->connected, true);
    return true;
}

const ChardevDriver chr_driver_pipe = {
    .name = "pipe",
    .keys = (const char *const[]){ "path", NULL },
    .size = sizeof(ChrFd),
    .open = pipe_open,
    .close = chr_fd_close,
    .attach = chr_fd_attach,
    .detach = chr_fd_detach,
    .drain = chr_fd_drain,
    .pump = chr_fd_pump,
};
