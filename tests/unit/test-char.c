/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: each back end against a real peer, errors, the multiplexer, slow peers. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "chardev/char.h"
#include "qemu/option.h"
#include "qemu/thread.h"

static EventLoop *loop;
static char *dir;

/* ---- A front end that records ---- */

typedef struct Front {
    ChrFrontend fe;
    GString *in;
    GString *events; /* O C B I(n) o(ut) */
    size_t room;
    unsigned writable;
    ChrEvent last;
} Front;

static size_t front_can_read(void *opaque)
{
    return ((Front *)opaque)->room;
}

static void front_read(void *opaque, const uint8_t *buf, size_t len)
{
    Front *f = opaque;
    g_assert_cmpuint(len, <=, f->room);
    g_string_append_len(f->in, (const char *)buf, (gssize)len);
}

static void front_event(void *opaque, ChrEvent e)
{
    static const char names[] = "OCBIo";
    g_string_append_c(((Front *)opaque)->events, names[e]);
}

static void front_writable(void *opaque)
{
    ((Front *)opaque)->writable++;
}

static const ChrFrontendOps front_ops = { front_can_read, front_read, front_event, front_writable };

static void front_init(Front *f, Chardev *chr, EventLoop *l)
{
    *f = (Front){ .room = 4096 };
    f->in = g_string_new(NULL);
    f->events = g_string_new(NULL);
    g_assert_true(chr_fe_init(&f->fe, chr, &error_abort));
    chr_fe_set_handlers(&f->fe, l, &front_ops, f);
}

static void front_fini(Front *f)
{
    chr_fe_fini(&f->fe);
    g_string_free(f->in, TRUE);
    g_string_free(f->events, TRUE);
}

static void front_puts(Front *f, const char *s)
{
    g_assert_cmpuint(chr_fe_write(&f->fe, (const uint8_t *)s, strlen(s)), ==, strlen(s));
}

/* Runs the loop until cond, five seconds at most. */
#define RUN_UNTIL(cond)                                                                            \
    do {                                                                                           \
        gint64 end_ = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;                                 \
        while (!(cond)) {                                                                          \
            event_loop_iterate(loop, 2000000);                                                     \
            if (g_get_monotonic_time() > end_) {                                                   \
                g_error("time-out waiting for %s", #cond);                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void run_a_while(void)
{
    for (unsigned i = 0; i < 20; i++) {
        event_loop_iterate(loop, 1000000);
    }
}

static Chardev *legacy(const char *id, const char *spec)
{
    Chardev *chr = chardev_new_from_legacy(id, spec, false, &error_abort);
    g_assert_nonnull(chr);
    return chr;
}

static QemuOptsList test_opts = { .name = "chardev", .implied_opt_name = "backend" };

static Chardev *opts_new(const char *text, Error **errp)
{
    QemuOpts *o = qemu_opts_parse(&test_opts, text, &error_abort);
    Chardev *chr = chardev_new_from_opts(o, errp);
    qemu_opts_del(o);
    return chr;
}

static char *path_of(const char *name)
{
    return g_build_filename(dir, name, NULL);
}

static int unix_connect(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(un.sun_path, path, sizeof(un.sun_path) - 1);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* What the peer gets, until it has len bytes. */
static char *peer_read(int fd, size_t len)
{
    static char buf[200000];
    size_t n = 0;
    gint64 end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;

    while (n < len) {
        ssize_t r = read(fd, buf + n, len - n);
        if (r > 0) {
            n += (size_t)r;
        }
        event_loop_iterate(loop, 1000000);
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    buf[n] = '\0';
    return buf;
}

static void peer_write(int fd, const char *s)
{
    g_assert_cmpint(write(fd, s, strlen(s)), ==, (ssize_t)strlen(s));
}

/* ---- Sockets ---- */

static void test_unix_server(void)
{
    g_autofree char *path = path_of("srv");
    g_autofree char *text = g_strdup_printf("socket,id=us,path=%s,server=on,wait=off", path);
    Chardev *chr = opts_new(text, &error_abort);
    Front f;

    g_assert_true(chardev_find("us") == chr);
    g_assert_false(chardev_frontend_open(chr));
    front_init(&f, chr, loop);
    g_assert_true(chardev_frontend_open(chr));
    g_assert_true(g_str_has_prefix(chardev_filename(chr), "disconnected:unix:/"));
    front_puts(&f, "nobody sees this");
    for (unsigned i = 0; i < 3; i++) { /* one client after the other */
        int fd = unix_connect(path);
        int second = unix_connect(path); /* waits in the backlog */
        RUN_UNTIL(f.events->len == 1);
        g_assert_cmpstr(f.events->str, ==, "O");
        g_assert_true(g_str_has_prefix(chardev_filename(chr), "unix:/"));
        g_assert_true(g_str_has_suffix(chardev_filename(chr), ",server=on"));
        front_puts(&f, "hello\r\n");
        g_assert_cmpstr(peer_read(fd, 7), ==, "hello\r\n");
        peer_write(fd, "world");
        RUN_UNTIL(f.in->len == 5);
        close(second);
        close(fd);
        RUN_UNTIL(f.events->len >= 2);
        g_assert_true(g_str_has_prefix(f.events->str, "OC"));
        run_a_while(); /* the second came and went */
        g_string_truncate(f.events, 0);
        g_string_truncate(f.in, 0);
    }
    /* disconnect from this side */
    int fd = unix_connect(path);
    RUN_UNTIL(f.events->len == 1);
    chr_fe_disconnect(&f.fe);
    RUN_UNTIL(f.events->len == 2);
    g_assert_cmpint(read(fd, text, 1), ==, 0);
    close(fd);
    front_fini(&f);
    g_assert_false(chardev_frontend_open(chr));
}

/* Input stops when the front end is full; what was sent before a hang-up still arrives. */
static void test_flow(void)
{
    g_autofree char *path = path_of("flow");
    g_autofree char *spec = g_strdup_printf("unix:%s,server,nowait", path);
    Front f;

    front_init(&f, legacy("flow", spec), loop);
    int fd = unix_connect(path);
    RUN_UNTIL(f.events->len == 1);
    f.room = 0;
    peer_write(fd, "first");
    run_a_while();
    g_assert_cmpuint(f.in->len, ==, 0);
    f.room = 2;
    chr_fe_accept_input(&f.fe);
    RUN_UNTIL(f.in->len == 5);
    f.room = 0;
    peer_write(fd, "second");
    run_a_while();
    close(fd);
    run_a_while();
    g_assert_cmpstr(f.events->str, ==, "O");
    /* Nobody takes output any more: nothing may pile up or block. */
    char big[70000] = { 0 };
    g_assert_cmpuint(chr_fe_write(&f.fe, (uint8_t *)big, sizeof(big)), ==, sizeof(big));
    f.room = 100;
    chr_fe_accept_input(&f.fe);
    RUN_UNTIL(f.events->len == 2);
    g_assert_cmpstr(f.in->str, ==, "firstsecond");
    g_assert_cmpstr(f.events->str, ==, "OC");
    front_fini(&f);
}

static void test_slow_peer(void)
{
    g_autofree char *path = path_of("slow");
    g_autofree char *spec = g_strdup_printf("unix:%s,server=on,wait=off", path);
    static uint8_t data[600000];
    size_t sent = 0, got = 0;
    Front f;

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    front_init(&f, legacy("slow", spec), loop);
    int fd = unix_connect(path);
    RUN_UNTIL(f.events->len == 1);
    /* The peer does not read: the kernel's buffer fills, then the ring, then we are told so. */
    for (unsigned i = 0; i < 2000 && sent < sizeof(data); i++) {
        size_t n = chr_fe_write(&f.fe, data + sent, MIN(1000u, sizeof(data) - sent));
        sent += n;
        event_loop_iterate(loop, 0);
        if (n == 0) {
            break;
        }
    }
    g_assert_cmpuint(sent, <, sizeof(data));
    g_assert_cmpuint(sent, >, 64 * KiB);
    run_a_while();
    g_assert_cmpuint(chr_fe_write(&f.fe, data + sent, 1), ==, 0);
    f.writable = 0;
    /* write_all gives up in bounded time */
    gint64 t0 = g_get_monotonic_time();
    g_assert_cmpuint(chr_fe_write_all(&f.fe, data + sent, 10), ==, 0);
    g_assert_cmpint(g_get_monotonic_time() - t0, <, 4 * G_USEC_PER_SEC);
    while (got < sizeof(data)) {
        uint8_t buf[5000];
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n > 0) {
            g_assert_cmpint(memcmp(buf, data + got, (size_t)n), ==, 0);
            got += (size_t)n;
        }
        if (sent < sizeof(data) && f.writable) {
            f.writable = 0;
            size_t w;
            do {
                w = chr_fe_write(&f.fe, data + sent, MIN(3000u, sizeof(data) - sent));
                sent += w;
            } while (w && sent < sizeof(data));
        }
        event_loop_iterate(loop, 0);
    }
    close(fd);
    front_fini(&f);
}

static void test_fds(void)
{
    g_autofree char *path = path_of("fds");
    g_autofree char *spec = g_strdup_printf("unix:%s,server=on,wait=off", path);
    Front f;
    int fd, p[2], got[4];

    front_init(&f, legacy("fds", spec), loop);
    fd = unix_connect(path);
    g_assert_cmpint(pipe(p), ==, 0);
    for (unsigned i = 0; i < 2; i++) {
        union {
            struct cmsghdr align;
            char buf[CMSG_SPACE(2 * sizeof(int))];
        } c = { .buf = { 0 } };
        struct iovec iov = { .iov_base = (char *)"x", .iov_len = 1 };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
                              .msg_controllen = sizeof(c) };
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(2 * sizeof(int));
        memcpy(CMSG_DATA(h), p, sizeof(p));
        g_assert_cmpint(sendmsg(fd, &msg, 0), ==, 1);
        RUN_UNTIL(f.in->len == i + 1);
    }
    g_assert_cmpint(chr_fe_take_fds(&f.fe, got, 1), ==, 1);
    g_assert_cmpint(chr_fe_take_fds(&f.fe, got + 1, 3), ==, 1);
    g_assert_cmpint(chr_fe_take_fds(&f.fe, got + 2, 2), ==, 0);
    g_assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    peer_write(got[1], "!");
    char c;
    g_assert_cmpint(read(p[0], &c, 1), ==, 1);
    close(got[0]);
    close(got[1]);
    close(p[0]);
    close(p[1]);
    close(fd);
    front_fini(&f);
}

static int tcp_listener(uint16_t *port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof(a)), ==, 0);
    getsockname(fd, (struct sockaddr *)&a, &len);
    *port = ntohs(a.sin_port);
    return fd;
}

static int accept_soon(int lfd)
{
    int fd = -1;
    RUN_UNTIL((fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return fd;
}

static void test_tcp_reconnect(void)
{
    uint16_t port;
    int lfd = tcp_listener(&port);
    g_autofree char *text =
        g_strdup_printf("socket,id=tc,host=127.0.0.1,port=%u,reconnect=1,nodelay=on", port);
    Front f;

    front_init(&f, opts_new(text, &error_abort), loop);
    run_a_while();
    g_assert_cmpuint(f.events->len, ==, 0); /* refused: nobody listens yet */
    g_assert_cmpint(listen(lfd, 1), ==, 0);
    int fd = accept_soon(lfd);
    RUN_UNTIL(f.events->len == 1);
    front_puts(&f, "ping");
    g_assert_cmpstr(peer_read(fd, 4), ==, "ping");
    close(fd);
    RUN_UNTIL(f.events->len == 2);
    fd = accept_soon(lfd);
    RUN_UNTIL(f.events->len == 3);
    g_assert_cmpstr(f.events->str, ==, "OCO");
    close(fd);
    close(lfd);
    front_fini(&f);
}

static void test_telnet(void)
{
    Chardev *chr = legacy("tel", "telnet:127.0.0.1:0,server=on,wait=off");
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const char *colon = strrchr(chardev_filename(chr), ':');
    Front f;

    g_assert_true(g_str_has_prefix(chardev_filename(chr), "disconnected:telnet:127.0.0.1:"));
    a.sin_port = htons((uint16_t)atoi(colon + 1));
    front_init(&f, chr, loop);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&a, sizeof(a)), ==, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    RUN_UNTIL(f.events->len == 1);
    g_assert_true(g_str_has_prefix(chardev_filename(chr), "telnet:127.0.0.1:"));
    g_assert_nonnull(strstr(chardev_filename(chr), " <-> 127.0.0.1:"));
    static const char hello[] = "\xff\xfb\x01\xff\xfb\x03\xff\xfb\x00\xff\xfd\x00";
    g_assert_cmpint(memcmp(peer_read(fd, 12), hello, 12), ==, 0);
    /* Commands, a subnegotiation, a doubled 255, and BREAK, cut at an awkward place. */
    g_assert_cmpint(write(fd, "a\xff\xfd\x01" "b\xff\xfa\x18\x01\xff", 10), ==, 10);
    RUN_UNTIL(f.in->len == 2);
    g_assert_cmpint(write(fd, "\xf0" "c\xff\xff" "d\xff\xf3" "e", 8), ==, 8);
    RUN_UNTIL(f.in->len == 6);
    g_assert_cmpint(memcmp(f.in->str, "abc\xff" "de", 6), ==, 0);
    g_assert_cmpstr(f.events->str, ==, "OB");
    chr_fe_write(&f.fe, (const uint8_t *)"x\xffy", 3);
    g_assert_cmpint(memcmp(peer_read(fd, 4), "x\xff\xffy", 4), ==, 0);
    close(fd);
    front_fini(&f);
}

static void test_inherited_fd(void)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int lfd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t len = sizeof(un);
    Front f;

    g_assert_cmpint(bind(lfd, (struct sockaddr *)&un, sizeof(sa_family_t)), ==, 0); /* autobind */
    g_assert_cmpint(listen(lfd, 1), ==, 0);
    getsockname(lfd, (struct sockaddr *)&un, &len);
    g_autofree char *text = g_strdup_printf("socket,id=inh,fd=%d,server=on,wait=off", lfd);
    front_init(&f, opts_new(text, &error_abort), loop);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&un, len), ==, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    RUN_UNTIL(f.events->len == 1);
    front_puts(&f, "yes");
    g_assert_cmpstr(peer_read(fd, 3), ==, "yes");
    close(fd);
    front_fini(&f);

    /* A connected pair, and an abstract name of our own. */
    int sp[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, sp), ==, 0);
    fcntl(sp[1], F_SETFL, O_NONBLOCK);
    g_autofree char *pair = g_strdup_printf("socket,id=pair,fd=%d", sp[0]);
    front_init(&f, opts_new(pair, &error_abort), loop);
    RUN_UNTIL(f.events->len == 1);
    peer_write(sp[1], "pair");
    RUN_UNTIL(f.in->len == 4);
    close(sp[1]);
    RUN_UNTIL(f.events->len == 2);
    front_fini(&f);
    g_autofree char *abs =
        g_strdup_printf("socket,id=abs,path=qemu-rt-test-%d,abstract=on,server=on,wait=off",
                        getpid());
    Chardev *chr = opts_new(abs, &error_abort);
    g_assert_nonnull(strstr(chardev_filename(chr), ",abstract=on,tight=on,server=on"));
    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    g_snprintf(un.sun_path + 1, 100, "qemu-rt-test-%d", getpid());
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&un,
                            (socklen_t)(sizeof(sa_family_t) + 1 + strlen(un.sun_path + 1))), ==, 0);
    close(fd);
}

static void *late_client(void *path)
{
    g_usleep(50000);
    return GINT_TO_POINTER(unix_connect(path));
}

static void test_wait(void)
{
    g_autofree char *path = path_of("wait");
    g_autofree char *spec = g_strdup_printf("unix:%s,server", path);
    GThread *t = g_thread_new("client", late_client, path);
    Front f;

    gint64 t0 = g_get_monotonic_time();
    front_init(&f, legacy("wait", spec), loop);
    g_assert_cmpint(g_get_monotonic_time() - t0, >=, 20000);
    int fd = GPOINTER_TO_INT(g_thread_join(t));
    RUN_UNTIL(f.events->len == 1);
    front_puts(&f, "up");
    g_assert_cmpstr(peer_read(fd, 2), ==, "up");
    close(fd);
    front_fini(&f);
}

/* ---- Files ---- */

static void wait_for_file(const char *path, const char *text)
{
    g_autofree char *got = NULL;
    RUN_UNTIL((g_free(got), got = NULL, g_file_get_contents(path, &got, NULL, NULL)) &&
              strcmp(got, text) == 0);
}

static void test_file(void)
{
    g_autofree char *path = path_of("out"), *in = path_of("in");
    g_autofree char *text = g_strdup_printf("file,id=fi,path=%s,append=on,input-path=%s", path, in);
    Front f;

    g_assert_true(g_file_set_contents(path, "old\n", -1, NULL));
    g_assert_true(g_file_set_contents(in, "typed", -1, NULL));
    front_init(&f, opts_new(text, &error_abort), loop);
    front_puts(&f, "new\n");
    RUN_UNTIL(f.in->len == 5);
    wait_for_file(path, "old\nnew\n");
    front_fini(&f);

    g_autofree char *spec = g_strdup_printf("file:%s", path);
    front_init(&f, legacy("fi2", spec), loop);
    front_puts(&f, "again");
    wait_for_file(path, "again");
    front_fini(&f);
}

static void test_log_and_null(void)
{
    g_autofree char *path = path_of("log");
    g_autofree char *text = g_strdup_printf("null,id=nl,logfile=%s", path);
    g_autofree char *more = g_strdup_printf("ringbuf,id=rb,size=16,logfile=%s,logappend=on", path);
    Front f;
    uint8_t buf[64];
    size_t n = sizeof(buf);

    front_init(&f, opts_new(text, &error_abort), loop);
    front_puts(&f, "to the log\n");
    wait_for_file(path, "to the log\n");
    front_fini(&f);
    Chardev *rb = opts_new(more, &error_abort);
    front_init(&f, rb, loop);
    front_puts(&f, "0123456789abcdefghij");
    wait_for_file(path, "to the log\n0123456789abcdefghij");
    g_assert_true(chardev_ringbuf_read(rb, buf, &n, &error_abort));
    g_assert_cmpuint(n, ==, 16);
    g_assert_cmpint(memcmp(buf, "456789abcdefghij", 16), ==, 0);
    g_assert_true(chardev_ringbuf_read(rb, buf, &n, &error_abort));
    g_assert_cmpuint(n, ==, 0);
    Error *err = NULL;
    g_assert_false(chardev_ringbuf_write(chardev_find("nl"), buf, 1, &err));
    error_free(err);
    front_fini(&f);
    /* Not connected: output goes nowhere. */
    ChrFrontend none;
    g_assert_true(chr_fe_init(&none, NULL, &error_abort));
    g_assert_cmpuint(chr_fe_write(&none, buf, 5), ==, 5);
}

static void test_pipe(void)
{
    g_autofree char *base = path_of("fifo"), *in = path_of("fifo.in"), *out = path_of("fifo.out");
    g_autofree char *spec = g_strdup_printf("pipe:%s", base);
    Front f;

    g_assert_cmpint(mkfifo(in, 0600), ==, 0);
    g_assert_cmpint(mkfifo(out, 0600), ==, 0);
    front_init(&f, legacy("pp", spec), loop);
    int w = open(in, O_WRONLY), r = open(out, O_RDONLY | O_NONBLOCK);
    peer_write(w, "abc");
    RUN_UNTIL(f.in->len == 3);
    front_puts(&f, "def");
    g_assert_cmpstr(peer_read(r, 3), ==, "def");
    close(w);
    close(r);
    front_fini(&f);
}

/* ---- Pseudo terminals and stdio ---- */

static void test_pty(void)
{
    Chardev *chr = legacy("pt", "pty");
    Front f;
    uint8_t big[70000] = { 0 };

    g_assert_true(g_str_has_prefix(chardev_filename(chr), "pty:/dev/pts/"));
    front_init(&f, chr, loop);
    run_a_while();
    g_assert_cmpuint(f.events->len, ==, 0);
    for (unsigned i = 0; i < 3; i++) { /* nobody has it open: nothing blocks */
        g_assert_cmpuint(chr_fe_write(&f.fe, big, sizeof(big)), ==, sizeof(big));
    }
    for (unsigned i = 0; i < 2; i++) {
        int fd = open(chardev_filename(chr) + 4, O_RDWR | O_NOCTTY | O_NONBLOCK);
        g_assert_cmpint(fd, >=, 0);
        RUN_UNTIL(f.events->len == 1);
        front_puts(&f, "login:\n");
        g_assert_cmpstr(peer_read(fd, 7), ==, "login:\n"); /* raw: no CR is added */
        peer_write(fd, "\x03root\r");
        RUN_UNTIL(f.in->len == 6);
        g_assert_cmpstr(f.in->str, ==, "\x03root\r");
        close(fd);
        RUN_UNTIL(f.events->len == 2);
        g_assert_cmpstr(f.events->str, ==, "OC");
        g_string_truncate(f.events, 0);
        g_string_truncate(f.in, 0);
    }
    front_fini(&f);
}

/* Puts a terminal where standard input and output are, as a shell would. */
static void test_stdio(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), saved[2] = { dup(0), dup(1) };
    struct termios before, during, after;
    char name[64];
    Front f, g;
    Error *err = NULL;

    g_assert_cmpint(grantpt(master) | unlockpt(master) | ptsname_r(master, name, 64), ==, 0);
    int slave = open(name, O_RDWR | O_NOCTTY);
    fflush(stdout);
    dup2(slave, 0);
    dup2(slave, 1);
    tcgetattr(slave, &before);
    Chardev *mux = chardev_new_from_legacy("con", "mon:stdio", false, &err);
    tcgetattr(slave, &during);
    g_assert_null(chardev_new_from_legacy("con2", "stdio", false, &err));
    bool nonblock = fcntl(slave, F_GETFL) & O_NONBLOCK;

    front_init(&f, mux, loop);
    front_init(&g, mux, loop);
    run_a_while();
    front_puts(&f, "boot\n");
    char *got = g_strdup(peer_read(master, 6));
    g_assert_cmpint(write(master, "\x03k", 2), ==, 2); /* Ctrl-C is the guest's */
    RUN_UNTIL(f.in->len == 2);
    front_fini(&f);
    front_fini(&g);
    chr_fe_set_echo(&f.fe, true); /* not connected any more: nothing */
    g_assert_cmpstr(chardev_filename(chardev_find("con-base")), ==, "stdio");
    chardev_cleanup();
    tcgetattr(slave, &after);
    dup2(saved[0], 0);
    dup2(saved[1], 1);

    g_assert_true(during.c_lflag != before.c_lflag);
    g_assert_false(during.c_lflag & (ICANON | ECHO | ISIG));
    g_assert_cmpint(after.c_lflag, ==, before.c_lflag);
    g_assert_cmpint(after.c_iflag, ==, before.c_iflag);
    g_assert_false(nonblock); /* the description a shell shares is left alone */
    g_assert_cmpstr(got, ==, "boot\r\n");
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "cannot use stdio by multiple character devices");
    error_free(err);
    g_free(got);
    close(slave);
    close(master);
}

static bool is_raw(int tty)
{
    struct termios t;
    g_assert_cmpint(tcgetattr(tty, &t), ==, 0);
    return !(t.c_lflag & ICANON);
}

static void await_raw(int tty, bool raw)
{
    gint64 end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
    while (is_raw(tty) != raw) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(1000);
    }
}

/* The terminal is the shell's whenever the process is stopped or gone. */
static void test_signals(void)
{
    static const int ends[] = { SIGABRT, SIGUSR1 /* makes it exit() */ };
    int master = posix_openpt(O_RDWR | O_NOCTTY), status;
    char name[64];

    g_assert_cmpint(grantpt(master) | unlockpt(master) | ptsname_r(master, name, 64), ==, 0);
    int slave = open(name, O_RDWR | O_NOCTTY);
    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, 0);
            dup2(slave, 0);
            dup2(slave, 1);
            signal(SIGUSR1, exit);
            signal(SIGTSTP, SIG_DFL);
            chardev_new_from_legacy("sig", "stdio", false, &error_abort);
            for (;;) {
                pause();
            }
        }
        await_raw(slave, true);
        g_assert_cmpint(kill(pid, SIGTSTP), ==, 0);
        g_assert_cmpint(waitpid(pid, &status, WUNTRACED), ==, pid);
        g_assert_true(WIFSTOPPED(status));
        g_assert_false(is_raw(slave));
        kill(pid, SIGCONT);
        await_raw(slave, true);
        kill(pid, ends[i]);
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_false(is_raw(slave));
    }
    close(slave);
    close(master);
}

/* ---- Multiplexer ---- */

static void *run_loop(void *opaque)
{
    event_loop_run(opaque);
    return NULL;
}

static void test_mux(void)
{
    g_autofree char *path = path_of("mux");
    g_autofree char *text = g_strdup_printf("socket,id=mx,path=%s,server=on,wait=off,mux=on", path);
    Chardev *chr = opts_new(text, &error_abort);
    Front mon, ser, third, fourth;
    ChrFrontend fifth;
    Error *err = NULL;

    g_assert_cmpstr(chardev_filename(chr), ==, "mux");
    g_assert_nonnull(chardev_find("mx-base"));
    front_init(&ser, chr, loop);
    front_init(&mon, chr, loop);
    int fd = unix_connect(path);
    RUN_UNTIL(ser.events->len >= 1);
    g_assert_cmpstr(ser.events->str, ==, "O");
    g_assert_cmpstr(mon.events->str, ==, ""); /* opened when it first gets the keyboard */
    peer_write(fd, "x\001\001\001by\001cm\001qn");
    RUN_UNTIL(mon.in->len == 2);
    g_assert_cmpint(ser.in->len, ==, 3);
    g_assert_cmpstr(ser.in->str, ==, "x\001y");
    g_assert_cmpstr(mon.in->str, ==, "mn"); /* ^A q is nothing */
    g_assert_cmpstr(ser.events->str, ==, "OBo");
    g_assert_cmpstr(mon.events->str, ==, "O");
    peer_write(fd, "\001cs\001c");
    RUN_UNTIL(mon.events->len == 3);
    g_assert_cmpstr(mon.events->str, ==, "OoI");
    g_assert_cmpstr(ser.events->str, ==, "OBoIo");
    front_puts(&ser, "one ");
    front_puts(&mon, "two");
    g_assert_cmpstr(peer_read(fd, 7), ==, "one two");
    peer_write(fd, "\001h");
    g_assert_nonnull(strstr(peer_read(fd, 60), "C-a h    print this help"));
    run_a_while();
    char rest[1000];
    g_assert_cmpint(read(fd, rest, sizeof(rest)), >, 0);
    peer_write(fd, "\001t");
    run_a_while();
    front_puts(&ser, "\nstamped\n");
    g_assert_cmpint(memcmp(peer_read(fd, 24), "\n[00:00:0", 9), ==, 0);
    /* A front end that takes nothing stops the flow, and no byte is lost. */
    mon.room = 0;
    g_string_truncate(mon.in, 0);
    char bulk[10000];
    memset(bulk, 'b', sizeof(bulk));
    g_assert_cmpint(write(fd, bulk, sizeof(bulk)), ==, sizeof(bulk));
    run_a_while();
    g_assert_cmpuint(mon.in->len, ==, 0);
    mon.room = 100;
    chr_fe_accept_input(&mon.fe);
    RUN_UNTIL(mon.in->len == sizeof(bulk));

    front_init(&third, chr, loop);
    front_init(&fourth, chr, loop); /* the keyboard stays where it is */
    g_assert_false(chr_fe_init(&fifth, chr, &err));
    g_assert_nonnull(err);
    error_free(err);
    close(fd);
    RUN_UNTIL(mon.events->len == 4 && ser.events->len == 6);
    g_assert_true(g_str_has_suffix(mon.events->str, "C"));
    front_fini(&fourth);
    front_fini(&third);
    front_fini(&ser);
    front_fini(&mon);
}

/* Front ends on two loops run by two threads; both write all the time. */
static void test_mux_threads(void)
{
    g_autofree char *path = path_of("muxt");
    g_autofree char *text = g_strdup_printf("socket,id=mt,path=%s,server=on,wait=off,mux=on", path);
    EventLoop *other = event_loop_new("other", &error_abort);
    QemuThread th;
    Front a, b;
    unsigned na = 0, nb = 0, sent_a = 0, sent_b = 0;

    event_loop_set_control(other);
    Chardev *chr = opts_new(text, &error_abort);
    front_init(&a, chr, loop);
    front_init(&b, chr, other);
    g_assert_true(qemu_thread_create(&th, "other", THREAD_HELPER, run_loop, other, &error_abort));
    int fd = unix_connect(path);
    char buf[4096];
    while (na + nb < 200000) {
        if (sent_a < 100000) {
            memset(buf, 'a', 100);
            sent_a += (unsigned)chr_fe_write(&a.fe, (uint8_t *)buf, MIN(100u, 100000 - sent_a));
        }
        if (sent_b < 100000) {
            memset(buf, 'b', 70);
            sent_b += (unsigned)chr_fe_write(&b.fe, (uint8_t *)buf, MIN(70u, 100000 - sent_b));
        }
        event_loop_iterate(loop, 0);
        ssize_t n = read(fd, buf, sizeof(buf));
        for (ssize_t i = 0; i < n; i++) {
            na += buf[i] == 'a';
            nb += buf[i] == 'b';
        }
        if (na + nb == 0) {
            sent_a = sent_b = 0; /* written before the client was accepted: dropped */
        }
    }
    g_assert_cmpuint(na, >=, 1);
    g_assert_cmpuint(nb, >=, 1);
    front_fini(&a);
    front_fini(&b);
    close(fd);
    event_loop_stop(other);
    qemu_thread_join(&th);
    event_loop_set_control(NULL);
}

/* ---- Errors ---- */

static void expect_error(const char *text, const char *what)
{
    Error *err = NULL;
    bool chardev = strchr(text, '=') && !strchr(text, ':');

    g_assert_null(chardev ? opts_new(text, &err)
                          : chardev_new_from_legacy("bad", text, false, &err));
    g_assert_nonnull(err);
    if (!strstr(error_get_pretty(err), what)) {
        g_error("'%s': '%s' does not say '%s'", text, error_get_pretty(err), what);
    }
    g_assert_null(strchr(error_get_pretty(err), '\n'));
    error_free(err);
    g_assert_null(chardev_find("bad"));
}

static void test_errors(void)
{
    g_autofree char *path = path_of("used"), *plain = path_of("plain");
    g_autofree char *spec = g_strdup_printf("unix:%s,server,nowait", path);
    g_autofree char *onfile = g_strdup_printf("unix:%s,server,nowait", plain);
    g_autofree char *longp = g_strnfill(200, 'p');
    g_autofree char *toolong = g_strdup_printf("socket,id=bad,path=%s,server=on,wait=off", longp);

    expect_error("file:/nonexistent/x", "Could not open '/nonexistent/x': No such file");
    expect_error("file:", "no filename given");
    expect_error("unix:/nonexistent/x,server,nowait", "Failed to bind socket to /nonexistent/x");
    expect_error("unix:/nonexistent/x", "Failed to connect to '/nonexistent/x'");
    expect_error("tcp:127.0.0.1:1", "Failed to connect to '127.0.0.1:1': Connection refused");
    expect_error("tcp:127.0.0.1", "no port");
    expect_error("tcp:127.0.0.1:99999,server,nowait", "99999");
    expect_error("floppy:x", "'floppy:x' is not a valid char driver");
    expect_error("chardev:zz", "'zz' not found");
    expect_error("pipe:/nonexistent/p", "Could not open '/nonexistent/p'");
    expect_error("socket,id=bad", "exactly one of");
    expect_error("socket,id=bad,host=x", "no port given");
    expect_error("nope,id=bad", "'nope' is not a valid char driver name");
    expect_error("null,id=bad,foo=1", "'foo'");
    expect_error("null,mux=on", "no id");
    expect_error("ringbuf,id=bad,size=100", "power of two");
    expect_error("ringbuf,id=bad,size=0", "power of two");
    expect_error("socket,id=bad,fd=0x", "fd");
    expect_error("socket,id=bad,fd=987", "987");
    expect_error("socket,id=bad,path=x,server=maybe", "'server'");
    expect_error("socket,id=bad,path=x,server=on,reconnect=1", "reconnect");
    expect_error("mux,id=bad", "no chardev given");
    expect_error("mux,id=bad,chardev=zz", "'zz' not found");
    expect_error("null,id=bad,logfile=/nonexistent/l", "Could not open '/nonexistent/l'");
    expect_error("file,id=bad,path=/dev/fdset/3", "/dev/fdset/3");
    expect_error(toolong, "too long");

    legacy("used", spec);
    expect_error(spec, "Address already in use");
    expect_error("null,id=used", "Duplicate ID 'used'");
    g_assert_true(g_file_set_contents(plain, "x", -1, NULL));
    expect_error(onfile, "no socket");
    g_assert_true(g_file_test(plain, G_FILE_TEST_EXISTS));

    /* A socket file left by a process that died is taken over. */
    g_autofree char *stale = path_of("stale");
    g_autofree char *stale_spec = g_strdup_printf("unix:%s,server,nowait", stale);
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    g_strlcpy(un.sun_path, stale, sizeof(un.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    close(fd);
    legacy("stale", stale_spec);

    Front f;
    ChrFrontend second;
    Error *err = NULL;
    front_init(&f, chardev_find("used"), loop);
    g_assert_false(chr_fe_init(&second, chardev_find("used"), &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "'used'"));
    error_free(err);
    front_fini(&f);

    g_assert_null(chardev_new_from_legacy("none", "none", false, &error_abort));
    chardev_forbid_stdio("-daemonize");
    expect_error("stdio", "-daemonize");
    chardev_forbid_stdio(NULL);
}

/* Last: the sockets of all tests are gone from the file system. */
static void test_cleanup(void)
{
    g_autofree char *path = path_of("used");
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    chardev_cleanup();
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_null(chardev_find("used"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("chardev-XXXXXX", NULL);
    loop = event_loop_new("test", &error_abort);
    g_test_add_func("/char/socket/unix-server", test_unix_server);
    g_test_add_func("/char/socket/flow", test_flow);
    g_test_add_func("/char/socket/slow-peer", test_slow_peer);
    g_test_add_func("/char/socket/fds", test_fds);
    g_test_add_func("/char/socket/tcp-reconnect", test_tcp_reconnect);
    g_test_add_func("/char/socket/telnet", test_telnet);
    g_test_add_func("/char/socket/inherited", test_inherited_fd);
    g_test_add_func("/char/socket/wait", test_wait);
    g_test_add_func("/char/file/file", test_file);
    g_test_add_func("/char/file/log", test_log_and_null);
    g_test_add_func("/char/file/pipe", test_pipe);
    g_test_add_func("/char/tty/pty", test_pty);
    g_test_add_func("/char/tty/signals", test_signals);
    g_test_add_func("/char/mux/basic", test_mux);
    g_test_add_func("/char/mux/threads", test_mux_threads);
    g_test_add_func("/char/end/errors", test_errors);
    g_test_add_func("/char/end/cleanup", test_cleanup);
    g_test_add_func("/char/end/stdio", test_stdio);
    int r = g_test_run();
    g_autofree char *cmd = g_strdup_printf("rm -rf '%s'", dir);
    return system(cmd) ? 1 : r;
}
