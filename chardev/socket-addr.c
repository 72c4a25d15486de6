/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of the socket back end: parsing, binding, connecting, naming. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "qemu/cutils.h"
#include "qemu/os.h"
#include "socket-internal.h"

/* ---- Options ---- */

static bool parse_unix(ChrSocket *s, const ChrOpts *o, Error **errp)
{
    size_t len;

    s->kind = SOCKET_UNIX;
    s->path = g_strdup(chr_opt(o, "path"));
    if (!chr_opt_bool(o, "abstract", false, &s->abstract, errp) ||
        !chr_opt_bool(o, "tight", true, &s->tight, errp)) {
        return false;
    }
    len = strlen(s->path);
    if (len == 0 || len >= sizeof(s->un.sun_path)) {
        error_setg(errp, "UNIX socket path '%s' is %s; 1 to %zu bytes are possible", s->path,
                   len ? "too long" : "empty", sizeof(s->un.sun_path) - 1);
        return false;
    }
    s->un.sun_family = AF_UNIX;
    memcpy(s->un.sun_path + s->abstract, s->path, len);
    /* A "tight" abstract name is as long as its text, the other kind fills the array. */
    s->un_len = s->abstract && s->tight
                    ? (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)
                    : (socklen_t)sizeof(s->un);
    return true;
}

static bool parse_fd(ChrSocket *s, const char *value, Error **errp)
{
    uint64_t fd;
    int type;
    socklen_t len = sizeof(type);

    s->kind = SOCKET_FD;
    if (qemu_parse_u64(value, 10, &fd) < 0 || fd > INT32_MAX) {
        error_setg(errp, "Parameter 'fd' expects the number of a descriptor, not '%s'", value);
        return false;
    }
    if (getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM) {
        error_setg(errp, "File descriptor '%s' is not a stream socket", value);
        return false;
    }
    s->fd = (int)fd;
    return true;
}

static bool parse_inet(ChrSocket *s, const ChrOpts *o, Error **errp)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    bool v4, v6, delay;

    s->kind = SOCKET_INET;
    s->host = g_strdup(chr_opt(o, "host"));
    s->port = g_strdup(chr_opt(o, "port"));
    if (!s->port || !*s->port) {
        error_setg(errp, "no port given; add port=PORT");
        return false;
    }
    if (!chr_opt_bool(o, "ipv4", !chr_opt(o, "ipv6"), &v4, errp) ||
        !chr_opt_bool(o, "ipv6", !chr_opt(o, "ipv4"), &v6, errp) ||
        !chr_opt_bool(o, "delay", true, &delay, errp) ||
        !chr_opt_bool(o, "nodelay", !delay, &s->nodelay, errp) ||
        !chr_opt_u64(o, "to", 0, 65535, &s->to, errp)) {
        return false;
    }
    hints.ai_family = v4 && !v6 ? AF_INET : v6 && !v4 ? AF_INET6 : AF_UNSPEC;
    hints.ai_flags = s->server ? AI_PASSIVE : 0;
    int e = getaddrinfo(s->host && *s->host ? s->host : NULL, s->port, &hints, &s->addrs);
    if (e) {
        error_setg(errp, "Address '%s:%s' cannot be resolved: %s", s->host ? s->host : "", s->port,
                   gai_strerror(e));
        return false;
    }
    uint64_t number;
    /* glibc takes any number and keeps its low 16 bits. */
    if (qemu_parse_u64(s->port, 10, &number) == 0 && number > 65535) {
        error_setg(errp, "Port %s is not in the range 0 to 65535", s->port);
        return false;
    }
    return true;
}

bool socket_parse(ChrSocket *s, const ChrOpts *o, Error **errp)
{
    const char *path = chr_opt(o, "path"), *host = chr_opt(o, "host"), *fd = chr_opt(o, "fd");
    bool inet = host || chr_opt(o, "port");

    if (!!path + inet + !!fd != 1) {
        error_setg(errp, "exactly one of 'path', 'fd' and 'host' is required");
        return false;
    }
    if (chr_opt(o, "abstract") && !path) {
        error_setg(errp, "'abstract' option needs 'path'");
        return false;
    }
    return path ? parse_unix(s, o, errp) : fd ? parse_fd(s, fd, errp) : parse_inet(s, o, errp);
}

/* ---- Listening ---- */

static int new_socket(int family, int flags)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

/* A socket file that nobody listens on any more is left over from a process that died. */
static bool remove_stale(ChrSocket *s, Error **errp)
{
    struct stat st;

    if (lstat(s->path, &st) < 0) {
        return true;
    }
    if (!S_ISSOCK(st.st_mode)) {
        error_setg(errp, "Failed to bind socket to %s: the file exists and is no socket", s->path);
        return false;
    }
    int fd = new_socket(AF_UNIX, SOCK_NONBLOCK);
    bool used = fd < 0 || connect(fd, (struct sockaddr *)&s->un, s->un_len) == 0 ||
                errno != ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    if (used) {
        error_setg(errp, "Failed to bind socket to %s: %s", s->path, strerror(EADDRINUSE));
        return false;
    }
    unlink(s->path);
    return true;
}

static bool listen_unix(ChrSocket *s, Error **errp)
{
    if (!s->abstract && !remove_stale(s, errp)) {
        return false;
    }
    os_files_lock();
    s->listen_fd = new_socket(AF_UNIX, 0);
    bool ok = s->listen_fd >= 0 && bind(s->listen_fd, (struct sockaddr *)&s->un, s->un_len) == 0;
    int err = errno;
    if (ok && !s->abstract) {
        os_remove_at_exit(s->path);
        s->unlink_path = true;
    }
    os_files_unlock();
    if (!ok) { /* not before: it may end the process, which takes the lock */
        error_setg_errno(errp, err, "Failed to bind socket to %s", s->path);
    }
    return ok;
}

static void set_port(struct addrinfo *a, unsigned port)
{
    if (a->ai_family == AF_INET6) {
        ((struct sockaddr_in6 *)a->ai_addr)->sin6_port = htons((uint16_t)port);
    } else {
        ((struct sockaddr_in *)a->ai_addr)->sin_port = htons((uint16_t)port);
    }
}

static unsigned get_port(const struct addrinfo *a)
{
    return ntohs(a->ai_family == AF_INET6 ? ((struct sockaddr_in6 *)a->ai_addr)->sin6_port
                                          : ((struct sockaddr_in *)a->ai_addr)->sin_port);
}

static bool try_bind(ChrSocket *s, struct addrinfo *a)
{
    int one = 1;
    int fd = new_socket(a->ai_family, 0);

    if (fd < 0) {
        return false;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* listen() too may say that the port is taken. */
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return false;
    }
    s->listen_fd = fd;
    return true;
}

static bool listen_inet(ChrSocket *s, Error **errp)
{
    for (struct addrinfo *a = s->addrs; a; a = a->ai_next) {
        unsigned last = MAX((unsigned)s->to, get_port(a));
        for (unsigned port = get_port(a); port <= last; port++) {
            set_port(a, port);
            if (try_bind(s, a)) {
                return true;
            }
            if (errno != EADDRINUSE) {
                break;
            }
        }
    }
    error_setg_errno(errp, errno, "Failed to bind socket to %s:%s", s->host ? s->host : "",
                     s->port);
    return false;
}

bool socket_listen(ChrSocket *s, Error **errp)
{
    int accepts = 0;
    socklen_t len = sizeof(accepts);
    bool ok = true;

    if (s->kind == SOCKET_FD) {
        s->listen_fd = s->fd;
        fcntl(s->fd, F_SETFD, FD_CLOEXEC);
        getsockopt(s->fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len);
    } else {
        ok = s->kind == SOCKET_UNIX ? listen_unix(s, errp) : listen_inet(s, errp);
    }
    if (ok && !accepts && listen(s->listen_fd, 1) < 0) {
        error_setg_errno(errp, errno, "Failed to listen on socket");
        ok = false;
    }
    return ok;
}

/* ---- Connecting ---- */

static int connect_to(int family, const void *addr, socklen_t len, int flags, bool *pending)
{
    int fd = new_socket(family, flags);

    *pending = false;
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, addr, len) < 0) {
        if (errno == EINPROGRESS) {
            *pending = true;
            return fd;
        }
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int socket_connect(ChrSocket *s, Error **errp)
{
    bool pending;
    int fd = -1;

    if (s->kind == SOCKET_FD) {
        fcntl(s->fd, F_SETFD, FD_CLOEXEC);
        return s->fd;
    }
    if (s->kind == SOCKET_UNIX) {
        fd = connect_to(AF_UNIX, &s->un, s->un_len, 0, &pending);
        if (fd < 0) {
            error_setg_errno(errp, errno, "Failed to connect to '%s'", s->path);
        }
        return fd;
    }
    for (struct addrinfo *a = s->addrs; a && fd < 0; a = a->ai_next) {
        fd = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, 0, &pending);
    }
    if (fd < 0) {
        error_setg_errno(errp, errno, "Failed to connect to '%s:%s'", s->host ? s->host : "",
                         s->port);
    }
    return fd;
}

int socket_connect_nonblock(ChrSocket *s, bool *pending)
{
    if (s->kind == SOCKET_UNIX) {
        return connect_to(AF_UNIX, &s->un, s->un_len, SOCK_NONBLOCK, pending);
    }
    if (s->kind == SOCKET_FD) {
        return -1; /* the one connection there was */
    }
    /* One address a try, in turn. */
    struct addrinfo *a = s->next_addr ? s->next_addr : s->addrs;
    s->next_addr = a->ai_next;
    return connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, SOCK_NONBLOCK, pending);
}

bool socket_set_nonblock(int fd, Error **errp)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        error_setg_errno(errp, errno, "Cannot make socket %d non-blocking", fd);
        return false;
    }
    return true;
}

void socket_tune(ChrSocket *s, int fd)
{
    int one = 1;
    if (s->nodelay) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
}

/* ---- Names ---- */

/* "HOST:PORT" of one end of fd; false if it is not an Internet socket. */
static bool inet_name(int fd, bool peer, char *buf, size_t len)
{
    struct sockaddr_storage sa;
    socklen_t sl = sizeof(sa);
    char host[64], port[16];

    if ((peer ? getpeername(fd, (struct sockaddr *)&sa, &sl)
              : getsockname(fd, (struct sockaddr *)&sa, &sl)) < 0 ||
        (sa.ss_family != AF_INET && sa.ss_family != AF_INET6) ||
        getnameinfo((struct sockaddr *)&sa, sl, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV)) {
        return false;
    }
    bool v6 = strchr(host, ':') != NULL;
    g_snprintf(buf, len, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    return true;
}

static void unix_name(const ChrSocket *s, int fd, char *buf, size_t len)
{
    struct sockaddr_un un;
    socklen_t sl = sizeof(un);

    if (s->kind == SOCKET_UNIX) {
        g_snprintf(buf, len, "%s%s%s", s->path, s->abstract ? ",abstract=on" : "",
                   s->abstract && s->tight ? ",tight=on" : "");
        return;
    }
    memset(&un, 0, sizeof(un));
    getsockname(fd, (struct sockaddr *)&un, &sl);
    g_snprintf(buf, len, "%.*s", (int)sizeof(un.sun_path), un.sun_path);
}

void socket_name(ChrSocket *s)
{
    const char *proto = s->telnet ? "telnet" : "tcp";
    const char *server = s->server ? ",server=on" : "";
    int fd = s->f.in_fd;
    char local[128], peer[80];

    if (fd >= 0 && inet_name(fd, false, local, sizeof(local)) &&
        inet_name(fd, true, peer, sizeof(peer))) {
        chr_set_filename(&s->f.chr, "%s:%s%s <-> %s", proto, local, server, peer);
        return;
    }
    const char *off = fd < 0 ? "disconnected:" : "";
    int any = fd >= 0 ? fd : s->listen_fd;
    if (any >= 0 && inet_name(any, false, local, sizeof(local))) {
        chr_set_filename(&s->f.chr, "%s%s:%s%s", off, proto, local, server);
    } else if (s->kind == SOCKET_INET) {
        chr_set_filename(&s->f.chr, "%s%s:%s:%s%s", off, proto, s->host ? s->host : "", s->port,
                         server);
    } else {
        unix_name(s, any, local, sizeof(local));
        chr_set_filename(&s->f.chr, "%sunix:%s%s", off, local, server);
    }
}

void socket_fini(ChrSocket *s)
{
    if (s->listen_fd >= 0) {
        close(s->listen_fd);
    }
    if (s->unlink_path) {
        os_remove_now(s->path);
    }
    if (s->addrs) {
        freeaddrinfo(s->addrs);
    }
    g_free(s->path);
    g_free(s->host);
    g_free(s->port);
}
