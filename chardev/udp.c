/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * udp: datagrams to and from one peer. There is no connection: where nobody listens, output is lost,
 * and nothing ends. What a datagram holds beyond what the front end takes waits here.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "char-internal.h"

#define DATAGRAM_MAX 65536
#define SEND_MAX     1400 /* no fragments on common networks */

typedef struct ChrUdp {
    ChrFd f;
    size_t at, len; /* of buf: what was not taken yet */
    uint8_t buf[DATAGRAM_MAX];
} ChrUdp;

/* ---- Data ---- */

static ssize_t udp_read(ChrFd *f, uint8_t *out, size_t room)
{
    ChrUdp *u = container_of(f, ChrUdp, f);
    size_t n;

    if (u->at == u->len) {
        ssize_t got = recv(f->in_fd, u->buf, sizeof(u->buf), 0);
        if (got <= 0) { /* empty, or news that an earlier one did not arrive */
            errno = EAGAIN;
            return -1;
        }
        u->at = 0;
        u->len = (size_t)got;
    }
    n = MIN(room, u->len - u->at);
    memcpy(out, u->buf + u->at, n);
    u->at += n;
    if (u->at < u->len) {
        event_post(f->chr.loop, &f->chr.pump_post);
    }
    return (ssize_t)n;
}

static ssize_t udp_write(ChrFd *f, const uint8_t *buf, size_t len)
{
    ssize_t n = send(f->out_fd, buf, MIN(len, SEND_MAX), 0);

    return n < 0 && errno != EAGAIN && errno != EINTR ? (ssize_t)MIN(len, SEND_MAX) : n;
}

/* The rest of a datagram first: the descriptor does not tell of it. */
static void udp_pump(Chardev *chr)
{
    ChrUdp *u = container_of(chr, ChrUdp, f.chr);
    size_t room;

    while (u->at < u->len && (room = chr_in_room(chr))) {
        size_t n = MIN(room, u->len - u->at);
        u->at += n;
        chr_in(chr, u->buf + u->at - n, n);
    }
    if (u->at == u->len) {
        chr_fd_pump(chr);
    }
}

/* ---- Addresses ---- */

static struct addrinfo *resolve(const char *host, const char *port, int family, int flags, Error **errp)
{
    struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = flags }, *list = NULL;
    int r = getaddrinfo(host, port, &hints, &list);

    if (r) {
        error_setg(errp, "address resolution failed for %s:%s: %s", host ? host : "", port, gai_strerror(r));
    }
    return r ? NULL : list;
}

static bool udp_family(const ChrOpts *o, int *family, Error **errp)
{
    bool v4, v6;

    if (!chr_opt_bool(o, "ipv4", false, &v4, errp) || !chr_opt_bool(o, "ipv6", false, &v6, errp)) {
        return false;
    }
    *family = v4 == v6 ? AF_UNSPEC : v4 ? AF_INET : AF_INET6;
    return true;
}

/* A socket of the peer's family; -1: errno. */
static int udp_socket(const struct addrinfo *peer, const ChrOpts *o, Error **errp)
{
    const char *addr = chr_opt(o, "localaddr"), *port = chr_opt(o, "localport");
    struct addrinfo *local = resolve(addr && *addr ? addr : NULL, port && *port ? port : "0", peer->ai_family,
                                     AI_PASSIVE, errp);
    int fd = -1;

    if (local) {
        fd = socket(peer->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd >= 0 && (bind(fd, local->ai_addr, local->ai_addrlen) < 0 ||
                    connect(fd, peer->ai_addr, peer->ai_addrlen) < 0)) {
        int err = errno;
        close(fd);
        errno = err;
        fd = -1;
    }
    if (local && fd < 0) {
        error_setg_errno(errp, errno, "cannot exchange datagrams with '%s' port %s from '%s' port %s",
                         chr_opt(o, "host") ? chr_opt(o, "host") : "localhost", chr_opt(o, "port"), addr ? addr : "",
                         port ? port : "any");
    }
    if (local) {
        freeaddrinfo(local);
    }
    return fd;
}

static bool udp_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrFd *f = container_of(chr, ChrFd, chr);
    const char *host = chr_opt(o, "host"), *port = chr_opt(o, "port");
    struct addrinfo *peer;
    int family;

    chr_fd_init(f);
    f->rd = udp_read;
    f->wr = udp_write;
    host = host && *host ? host : "localhost";
    if (!port || !*port) {
        error_setg(errp, "no port given; add port=PORT");
        return false;
    }
    if (!udp_family(o, &family, errp) || !(peer = resolve(host, port, family, 0, errp))) {
        return false;
    }
    f->in_fd = udp_socket(peer, o, errp);
    freeaddrinfo(peer);
    if (f->in_fd < 0) {
        return false;
    }
    /* Two descriptors: an error that came back for one direction does not end the other. */
    f->out_fd = fcntl(f->in_fd, F_DUPFD_CLOEXEC, 0);
    if (f->out_fd < 0) {
        error_setg_errno(errp, errno, "cannot duplicate a socket");
        return false;
    }
    chr_set_filename(chr, "udp:%s:%s", host, port);
    atomic_store(&chr->connected, true);
    return true;
}

const ChardevDriver chr_driver_udp = {
    .name = "udp",
    .keys = (const char *const[]){ "host", "port", "localaddr", "localport", "ipv4", "ipv6", NULL },
    .size = sizeof(ChrUdp),
    .open = udp_open,
    .close = chr_fd_close,
    .attach = chr_fd_attach,
    .detach = chr_fd_detach,
    .drain = chr_fd_drain,
    .pump = udp_pump,
};
