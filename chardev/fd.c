/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What back ends over file descriptors share: flow control of input by the front end, draining of
 * the output ring, and descriptors that cannot be waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "char-internal.h"

static ssize_t plain_read(ChrFd *f, uint8_t *buf, size_t len)
{
    return read(f->in_fd, buf, len);
}

static ssize_t plain_write(ChrFd *f, const uint8_t *buf, size_t len)
{
    return write(f->out_fd, buf, len);
}

/* Two independent directions: the end of input does not end output. */
static void plain_lost(ChrFd *f, bool out)
{
    if (out) {
        event_source_remove(&f->out_src);
        atomic_store(&f->chr.connected, false);
        chr_discard(&f->chr);
    }
}

void chr_fd_init(ChrFd *f)
{
    f->in_fd = f->out_fd = -1;
    f->rd = plain_read;
    f->wr = plain_write;
    f->lost = plain_lost;
}

static bool one_fd(const ChrFd *f)
{
    return f->in_fd == f->out_fd;
}

static uint32_t in_mask(const ChrFd *f)
{
    return (f->want_in ? EPOLLIN : 0) | (one_fd(f) && f->want_out ? EPOLLOUT : 0);
}

/* ---- Input ---- */

/* Answers that the peer may still read. */
static bool owes(const ChrFd *f)
{
    const ChrFrontend *fe = f->chr.fe;

    return one_fd(f) && fe && fe->ops && fe->ops->owes &&
           (byte_ring_used(&f->chr.out) || fe->ops->owes(fe->opaque));
}

static void input_ended(ChrFd *f)
{
    f->in_eof = true;
    atomic_store(&f->in_ended, false);
    if (!one_fd(f)) {
        event_source_remove(&f->in_src);
    }
    f->lost(f, false);
}

static void read_some(ChrFd *f)
{
    uint8_t buf[CHR_READ_MAX];
    size_t room = chr_in_room(&f->chr);

    if (room) {
        ssize_t n = f->rd(f, buf, MIN(room, sizeof(buf)));
        if (n > 0) {
            chr_in(&f->chr, buf, (size_t)n);
        } else if (n == 0 && owes(f)) {
            atomic_store(&f->in_ended, true);
            f->want_in = false;
            event_source_modify(&f->in_src, in_mask(f));
            return;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            input_ended(f);
            return;
        }
    }
    f->want_in = chr_in_room(&f->chr) > 0;
    event_source_modify(&f->in_src, in_mask(f));
}

static void on_in(void *opaque, uint32_t events)
{
    ChrFd *f = opaque;
    int fd = f->in_fd;

    if ((events & (EPOLLHUP | EPOLLERR)) && atomic_load(&f->in_ended)) {
        input_ended(f);
        return;
    }
    if ((events & (EPOLLHUP | EPOLLERR)) && chr_in_room(&f->chr) == 0) {
        const ChrFrontend *fe = f->chr.fe;

        if (one_fd(f) && fe && fe->ops && fe->ops->drop_unread) {
            input_ended(f);
            return;
        }
        /* Epoll reports this whatever the mask. What the peer sent before it left stays in the
         * kernel until the front end wants it; nobody takes output any more. */
        event_source_remove(&f->in_src);
        f->in_parked = true;
        if (one_fd(f)) {
            atomic_store(&f->chr.connected, false);
            chr_discard(&f->chr);
        }
        return;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !atomic_load(&f->in_ended)) {
        read_some(f);
    }
    if ((events & EPOLLOUT) && f->in_fd == fd && f->in_src.loop) {
        chr_fd_drain(&f->chr);
    }
}

static void watch_input(ChrFd *f)
{
    Error *err = NULL;

    if (f->in_fd < 0 || f->in_eof || f->in_always || f->in_parked || f->in_src.loop) {
        return;
    }
    if (!event_source_add(&f->in_src, f->chr.loop, f->in_fd, in_mask(f), on_in, f, &err)) {
        f->in_always = true; /* a regular file or /dev/null */
        error_free(err);
    }
}

void chr_fd_pump(Chardev *chr)
{
    ChrFd *f = container_of(chr, ChrFd, chr);

    if (f->in_fd < 0 || f->in_eof) {
        return;
    }
    if (atomic_load(&f->in_ended)) {
        if (!owes(f)) {
            input_ended(f);
        }
        return;
    }
    f->want_in = chr_in_room(chr) > 0;
    if (f->in_always) {
        if (f->want_in) {
            read_some(f);
        }
        if (f->want_in && !f->in_eof) {
            event_post(chr->loop, &chr->pump_post); /* the next piece in the next iteration */
        }
        return;
    }
    if (f->want_in && f->in_parked) {
        f->in_parked = false;
        watch_input(f);
    }
    event_source_modify(&f->in_src, in_mask(f));
}

/* ---- Output ---- */

static void on_out(void *opaque, uint32_t events)
{
    ChrFd *f = opaque;
    chr_fd_drain(&f->chr);
}

/* The peer takes no more for now (blocked), or everything is out. */
static void watch_output(ChrFd *f, bool blocked)
{
    if (!f->chr.out_loop) {
        return;
    }
    if (one_fd(f)) {
        f->want_out = blocked;
        event_source_modify(&f->in_src, in_mask(f));
    } else if (!blocked) {
        event_source_remove(&f->out_src);
    } else if (!f->out_src.loop) {
        /* A descriptor that cannot be waited for never blocks either. */
        event_source_add(&f->out_src, f->chr.out_loop, f->out_fd, EPOLLOUT, on_out, f, NULL);
    }
}

void chr_fd_drain(Chardev *chr)
{
    ChrFd *f = container_of(chr, ChrFd, chr);
    size_t total = 0, len;
    bool blocked = false;

    if (!atomic_load(&chr->connected) || f->out_fd < 0) {
        chr_discard(chr);
        return;
    }
    while (total < CHR_OUT_SIZE) {
        const uint8_t *p = byte_ring_peek(&chr->out, &len);
        if (!len) {
            break;
        }
        ssize_t n = f->wr(f, p, len);
        if (n > 0) {
            byte_ring_consume(&chr->out, (size_t)n);
            total += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            blocked = true;
            break;
        } else if (n == 0 || errno != EINTR) {
            f->lost(f, true);
            return;
        }
    }
    watch_output(f, blocked);
    if (!blocked && total >= CHR_OUT_SIZE) {
        event_post(chr->out_loop, &chr->drain_post);
    }
    if (atomic_load(&f->in_ended) && !blocked) {
        event_post(chr->loop, &chr->pump_post); /* was it the last it waited for? */
    }
    chr_drained(chr);
}

/* ---- Watching ---- */

void chr_fd_watch(ChrFd *f)
{
    f->want_in = !atomic_load(&f->in_ended) && chr_in_room(&f->chr) > 0;
    f->want_out = false;
    watch_input(f);
}

void chr_fd_unwatch(ChrFd *f)
{
    event_source_remove(&f->in_src);
    event_source_remove(&f->out_src);
    f->want_out = false;
}

void chr_fd_attach(Chardev *chr)
{
    ChrFd *f = container_of(chr, ChrFd, chr);

    chr_fd_watch(f);
    if (chr->out_loop && byte_ring_used(&chr->out)) {
        event_post(chr->out_loop, &chr->drain_post);
    }
}

void chr_fd_detach(Chardev *chr)
{
    chr_fd_unwatch(container_of(chr, ChrFd, chr));
}

void chr_fd_close(Chardev *chr)
{
    ChrFd *f = container_of(chr, ChrFd, chr);

    if (f->in_fd >= 0) {
        close(f->in_fd);
    }
    if (f->out_fd >= 0 && f->out_fd != f->in_fd) {
        close(f->out_fd);
    }
    f->in_fd = f->out_fd = -1;
}

/* ---- Descriptors ---- */

int chr_nonblock(int fd, int accmode, bool *restore)
{
    struct stat st;
    char path[32];
    int own = -1;

    *restore = false;
    if (fstat(fd, &st) < 0) {
        return -1;
    }
    if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        own = open(path, accmode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (own < 0) {
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        int flags = fcntl(fd, F_GETFL);
        if (own >= 0 && !S_ISREG(st.st_mode) && !(flags & O_NONBLOCK)) {
            fcntl(fd, F_SETFL, flags | O_NONBLOCK);
            *restore = true;
        }
    }
    return own;
}

void chr_ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}
