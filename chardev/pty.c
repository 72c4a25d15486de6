/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pty: a pseudo terminal. The kernel says when the last opener of the slave side left (EPOLLHUP),
 * but not when one comes: inotify does, and where there is none a timer looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <termios.h>
#include <unistd.h>
#include "char-internal.h"

#define LOOK_NS (500 * 1000000ll)

typedef struct ChrPty {
    ChrFd f;
    char path[64];
    int inotify_fd; /* -1: look by timer */
    EventSource inotify_src;
    EventTimer timer;
} ChrPty;

static void pty_look(ChrPty *p)
{
    struct pollfd pfd = { .fd = p->f.in_fd };

    if (atomic_load(&p->f.chr.connected)) {
        return;
    }
    if (poll(&pfd, 1, 0) == 0 || !(pfd.revents & POLLHUP)) {
        p->f.in_eof = p->f.in_parked = false;
        chr_fd_watch(&p->f);
        chr_set_connected(&p->f.chr, true);
        chr_fd_pump(&p->f.chr);
    } else if (p->inotify_fd < 0) {
        timer_mod(&p->timer, clock_get_ns(CLOCK_TYPE_REALTIME) + LOOK_NS);
    }
}

static void pty_timer(void *opaque)
{
    pty_look(opaque);
}

static void pty_inotify(void *opaque, uint32_t events)
{
    ChrPty *p = opaque;
    char buf[1024];
    ssize_t n QEMU_UNUSED = read(p->inotify_fd, buf, sizeof(buf));
    pty_look(p);
}

static void pty_lost(ChrFd *f, bool out)
{
    chr_fd_unwatch(f);
    chr_set_connected(&f->chr, false);
    pty_look(container_of(f, ChrPty, f)); /* somebody may have come already */
}

static void pty_attach(Chardev *chr)
{
    ChrPty *p = container_of(chr, ChrPty, f.chr);

    timer_init(&p->timer, chr->loop, CLOCK_TYPE_REALTIME, pty_timer, p);
    if (p->inotify_fd >= 0) {
        event_source_add(&p->inotify_src, chr->loop, p->inotify_fd, EPOLLIN, pty_inotify, p, NULL);
    }
    if (atomic_load(&chr->connected)) {
        chr_fd_attach(chr);
    } else {
        pty_look(p);
    }
}

static void pty_detach(Chardev *chr)
{
    ChrPty *p = container_of(chr, ChrPty, f.chr);

    event_source_remove(&p->inotify_src);
    timer_fini(&p->timer);
    chr_fd_detach(chr);
}

/* Raw, so that bytes pass as they are until the user's program sets what it likes. */
static bool pty_make(ChrPty *p)
{
    struct termios t;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    p->f.in_fd = p->f.out_fd = master;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, p->path, sizeof(p->path)) != 0) {
        return false;
    }
    int slave = open(p->path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        return false;
    }
    tcgetattr(slave, &t);
    cfmakeraw(&t);
    tcsetattr(slave, TCSAFLUSH, &t);
    close(slave); /* from now on HUP tells that nobody has it open */
    return true;
}

static bool pty_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrPty *p = container_of(chr, ChrPty, f.chr);

    chr_fd_init(&p->f);
    p->f.lost = pty_lost;
    p->inotify_fd = -1;
    if (!pty_make(p)) {
        error_setg_errno(errp, errno, "chardev '%s': cannot make a pseudo terminal", chr->id);
        return false;
    }
    p->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (p->inotify_fd >= 0 && inotify_add_watch(p->inotify_fd, p->path, IN_OPEN) < 0) {
        close(p->inotify_fd);
        p->inotify_fd = -1;
    }
    chr_set_filename(chr, "pty:%s", p->path);
    printf("char device redirected to %s (label %s)\n", p->path, chr->id);
    fflush(stdout);
    return true;
}

static void pty_close(Chardev *chr)
{
    ChrPty *p = container_of(chr, ChrPty, f.chr);

    chr_fd_close(chr);
    if (p->inotify_fd >= 0) {
        close(p->inotify_fd);
    }
}

const ChardevDriver chr_driver_pty = {
    .name = "pty",
    .size = sizeof(ChrPty),
    .open = pty_open,
    .close = pty_close,
    .attach = pty_attach,
    .detach = pty_detach,
    .drain = chr_fd_drain,
    .pump = chr_fd_pump,
};
