/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * socket: unix and TCP, server and client, one peer at a time. A server stops accepting while it
 * has a peer; the next client waits in the backlog. Addresses are in socket-addr.c.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "qemu/os.h"
#include "socket-internal.h"

/* ---- Telnet (RFC 854, 855, 857, 858, 856) ---- */

enum { IAC = 255, DONT = 254, DO = 253, WONT = 252, WILL = 251, SB = 250, BRK = 243, SE = 240 };
enum { OPT_BINARY = 0, OPT_ECHO = 1, OPT_SGA = 3 };

static void telnet_start(ChrSocket *s)
{
    static const uint8_t hello[] = {
        IAC, WILL, OPT_ECHO, IAC, WILL, OPT_SGA, IAC, WILL, OPT_BINARY, IAC, DO, OPT_BINARY,
    };
    s->telnet_state = 0;
    s->telnet_owed = 0;
    /* The socket is new and its buffer empty: this fits, or the peer is gone already. */
    ssize_t n QEMU_UNUSED = send(s->f.in_fd, hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Takes commands out of buf; returns the length of what is data. */
static size_t telnet_input(ChrSocket *s, uint8_t *buf, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        uint8_t b = buf[i];
        switch (s->telnet_state) {
        case 0:
            if (b == IAC) {
                s->telnet_state = IAC;
            } else if (!(b == 0 && s->telnet_cr)) { /* CR NUL is a bare CR */
                buf[out++] = b;
            }
            s->telnet_cr = b == '\r';
            break;
        case IAC:
            s->telnet_state = b >= WILL && b != IAC ? b : b == SB ? SB : 0;
            if (b == IAC) {
                buf[out++] = b;
            } else if (b == BRK) {
                chr_event(&s->f.chr, CHR_EVENT_BREAK);
            }
            break;
        case SB: /* skip a subnegotiation up to IAC SE */
            s->telnet_state = b == IAC ? SE : SB;
            break;
        case SE:
            s->telnet_state = b == SE ? 0 : SB;
            break;
        default: /* the option of WILL, WONT, DO, DONT */
            s->telnet_state = 0;
            break;
        }
    }
    return out;
}

/* A data byte 255 is sent twice. */
static ssize_t telnet_send(ChrSocket *s, const uint8_t *buf, size_t len)
{
    static const uint8_t iac[2] = { IAC, IAC };
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;

    if (s->telnet_owed) {
        if (send(s->f.out_fd, iac, 1, flags) != 1) {
            return -1;
        }
        s->telnet_owed = 0;
        return 1; /* the ring's 255 is complete now */
    }
    const uint8_t *p = memchr(buf, IAC, len);
    if (p != buf) {
        return send(s->f.out_fd, buf, p ? (size_t)(p - buf) : len, flags);
    }
    ssize_t n = send(s->f.out_fd, iac, 2, flags);
    if (n == 1) {
        s->telnet_owed = 1;
        errno = EAGAIN;
        return -1;
    }
    return n < 0 ? n : 1;
}

/* ---- Bytes ---- */

static void drop_fds(ChrSocket *s)
{
    while (s->nfds) {
        close(s->fds[--s->nfds]);
    }
}

static void keep_fds(ChrSocket *s, struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        drop_fds(s); /* nobody asked for those that came before */
        unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(s->fds, CMSG_DATA(c), n * sizeof(int));
        s->nfds = n;
    }
}

static ssize_t socket_read(ChrFd *f, uint8_t *buf, size_t len)
{
    ChrSocket *s = container_of(f, ChrSocket, f);
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int) * SOCKET_MAX_FDS)];
    } control;
    struct iovec iov = { .iov_base = buf, .iov_len = len };
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    ssize_t n = recvmsg(f->in_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (n > 0) {
        keep_fds(s, &msg);
        if (s->telnet && (n = (ssize_t)telnet_input(s, buf, (size_t)n)) == 0) {
            errno = EAGAIN; /* commands only, not the end */
            return -1;
        }
    }
    return n;
}

static ssize_t socket_write(ChrFd *f, const uint8_t *buf, size_t len)
{
    ChrSocket *s = container_of(f, ChrSocket, f);

    if (s->telnet) {
        return telnet_send(s, buf, len);
    }
    return send(f->out_fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int socket_take_fds(Chardev *chr, int *fds, int max)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);
    int n = MIN(max, (int)s->nfds);

    memcpy(fds, s->fds, (size_t)n * sizeof(int));
    memmove(s->fds, s->fds + n, (s->nfds - (unsigned)n) * sizeof(int));
    s->nfds -= (unsigned)n;
    return n;
}

/* ---- Connections, on the loop's thread ---- */

static void listen_more(ChrSocket *s);
static void connect_start(ChrSocket *s);

/* fd is the peer; not yet watched. */
static void socket_adopt(ChrSocket *s, int fd)
{
    s->f.in_fd = s->f.out_fd = fd;
    s->f.in_eof = s->f.in_parked = false;
    atomic_store(&s->f.in_ended, false);
    socket_tune(s, fd);
    socket_name(s);
    if (s->telnet) {
        telnet_start(s);
    }
}

static void socket_got_peer(ChrSocket *s, int fd)
{
    event_source_remove(&s->aux_src);
    socket_adopt(s, fd);
    chr_fd_watch(&s->f);
    chr_set_connected(&s->f.chr, true);
    chr_fd_pump(&s->f.chr);
}

static void retry_later(ChrSocket *s)
{
    if (s->reconnect_ns) {
        timer_mod(&s->retry, clock_get_ns(CLOCK_TYPE_REALTIME) + s->reconnect_ns);
    }
}

static void socket_lost(ChrFd *f, bool out)
{
    ChrSocket *s = container_of(f, ChrSocket, f);

    chr_fd_unwatch(f);
    chr_fd_close(&f->chr);
    drop_fds(s);
    socket_name(s);
    chr_set_connected(&f->chr, false);
    /* The front end's handler may have done anything, but not made a new peer. */
    if (s->server) {
        listen_more(s);
    } else {
        retry_later(s);
    }
}

static void on_listener(void *opaque, uint32_t events)
{
    ChrSocket *s = opaque;
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        socket_got_peer(s, fd);
    }
}

static void listen_more(ChrSocket *s)
{
    if (!s->aux_src.loop) {
        event_source_add(&s->aux_src, s->f.chr.loop, s->listen_fd, EPOLLIN, on_listener, s, NULL);
    }
}

static void on_connected(void *opaque, uint32_t events)
{
    ChrSocket *s = opaque;
    int fd = s->aux_src.fd, e = 0;
    socklen_t len = sizeof(e);

    event_source_remove(&s->aux_src);
    s->connecting_fd = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 || e) {
        close(fd);
        retry_later(s);
    } else {
        socket_got_peer(s, fd);
    }
}

static void connect_start(ChrSocket *s)
{
    bool pending;
    int fd = socket_connect_nonblock(s, &pending);

    if (fd < 0) {
        retry_later(s);
    } else if (!pending) {
        socket_got_peer(s, fd);
    } else if (event_source_add(&s->aux_src, s->f.chr.loop, fd, EPOLLOUT, on_connected, s, NULL)) {
        s->connecting_fd = fd;
    } else {
        close(fd);
        retry_later(s);
    }
}

static void on_retry(void *opaque)
{
    ChrSocket *s = opaque;
    if (s->f.in_fd < 0 && s->connecting_fd < 0) {
        connect_start(s);
    }
}

static void socket_attach(Chardev *chr)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);

    timer_init(&s->retry, chr->loop, CLOCK_TYPE_REALTIME, on_retry, s);
    if (s->f.in_fd >= 0) {
        chr_fd_attach(chr);
    } else if (s->server) {
        listen_more(s);
    } else if (s->reconnect_ns) {
        connect_start(s);
    }
}

static void socket_detach(Chardev *chr)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);

    event_source_remove(&s->aux_src);
    timer_fini(&s->retry);
    if (s->connecting_fd >= 0) {
        close(s->connecting_fd);
        s->connecting_fd = -1;
    }
    chr_fd_detach(chr);
}

static void socket_disconnect(Chardev *chr)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);
    if (s->f.in_fd >= 0) {
        socket_lost(&s->f, false);
    }
}

/* ---- Start-up ---- */

static bool open_server(ChrSocket *s, bool wait, Error **errp)
{
    if (!socket_listen(s, errp)) {
        return false;
    }
    socket_name(s);
    if (wait) {
        info_report("QEMU waiting for connection on: %s", chardev_filename(&s->f.chr));
        os_startup_step("waiting for a connection on %s", chardev_filename(&s->f.chr));
        struct pollfd pfd = { .fd = s->listen_fd, .events = POLLIN };
        int fd;
        do { /* an inherited listener may be non-blocking */
            poll(&pfd, 1, -1);
            fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
        if (fd < 0) {
            error_setg_errno(errp, errno, "Failed to accept a connection on %s",
                             chardev_filename(&s->f.chr));
            return false;
        }
        socket_adopt(s, fd);
        atomic_store(&s->f.chr.connected, true);
    }
    return socket_set_nonblock(s->listen_fd, errp);
}

static bool open_client(ChrSocket *s, Error **errp)
{
    if (s->reconnect_ns) {
        socket_name(s);
        return true; /* the first try is made as soon as there is a loop */
    }
    socket_name(s);
    os_startup_step("connecting to %s", chardev_filename(&s->f.chr));
    int fd = socket_connect(s, errp);
    if (fd < 0) {
        return false;
    }
    socket_adopt(s, fd);
    atomic_store(&s->f.chr.connected, true);
    return socket_set_nonblock(fd, errp);
}

static bool socket_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);
    uint64_t reconnect;
    bool wait;

    chr_fd_init(&s->f);
    s->f.rd = socket_read;
    s->f.wr = socket_write;
    s->f.lost = socket_lost;
    s->listen_fd = s->connecting_fd = -1;
    chr_ignore_sigpipe();
    if (!chr_opt_bool(o, "server", false, &s->server, errp) ||
        !chr_opt_bool(o, "wait", s->server, &wait, errp) ||
        !chr_opt_bool(o, "telnet", false, &s->telnet, errp) ||
        !chr_opt_u64(o, "reconnect", 0, 86400, &reconnect, errp)) {
        return false;
    }
    if (!s->server && chr_opt(o, "wait")) {
        error_setg(errp, "'wait' option is incompatible with socket in client connect mode");
        return false;
    }
    if (s->server && reconnect) {
        error_setg(errp, "'reconnect' option is incompatible with socket in server listen mode");
        return false;
    }
    s->reconnect_ns = (int64_t)reconnect * NANOSECONDS_PER_SECOND;
    if (!socket_parse(s, o, errp)) {
        return false;
    }
    return s->server ? open_server(s, wait, errp) : open_client(s, errp);
}

static void socket_close(Chardev *chr)
{
    ChrSocket *s = container_of(chr, ChrSocket, f.chr);

    drop_fds(s);
    chr_fd_close(chr);
    socket_fini(s);
}

const ChardevDriver chr_driver_socket = {
    .name = "socket",
    .keys = (const char *const[]){ "path", "abstract", "tight", "host", "port", "to", "ipv4",
                                   "ipv6", "fd", "server", "wait", "telnet", "reconnect",
                                   "delay", "nodelay", NULL },
    .size = sizeof(ChrSocket),
    .open = socket_open,
    .close = socket_close,
    .attach = socket_attach,
    .detach = socket_detach,
    .drain = chr_fd_drain,
    .pump = chr_fd_pump,
    .disconnect = socket_disconnect,
    .take_fds = socket_take_fds,
};
