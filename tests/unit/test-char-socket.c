/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Socket character devices against real peers: flow, descriptors, reconnection, telnet. */
#include "char-test.h"

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

static int udp_peer(struct sockaddr_in *a)
{
    socklen_t len = sizeof(*a);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    *a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    g_assert_cmpint(bind(fd, (struct sockaddr *)a, sizeof(*a)), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)a, &len), ==, 0);
    return fd;
}

static void test_udp(void)
{
    struct sockaddr_in peer_addr, own;
    socklen_t len = sizeof(own);
    int spare = udp_peer(&own), peer = udp_peer(&peer_addr);
    unsigned port = ntohs(own.sin_port);
    g_autofree char *spec = g_strdup_printf("udp:127.0.0.1:%u@127.0.0.1:%u", ntohs(peer_addr.sin_port), port);
    g_autofree char *big = g_strnfill(9000, 'x');
    char buf[2000];
    Front f;

    close(spare); /* its port is ours now */
    front_init(&f, legacy("udp", spec), loop);
    RUN_UNTIL(f.events->len == 1);
    front_puts(&f, "hello");
    RUN_UNTIL(recvfrom(peer, buf, sizeof(buf), 0, (struct sockaddr *)&own, &len) == 5);
    g_assert_cmpuint(ntohs(own.sin_port), ==, port);
    /* An empty one is no end; of a long one nothing is lost though little is taken at a time. */
    f.room = 7;
    sendto(peer, "", 0, 0, (struct sockaddr *)&own, len);
    g_assert_cmpint(sendto(peer, big, 9000, 0, (struct sockaddr *)&own, len), ==, 9000);
    RUN_UNTIL(f.in->len == 9000);
    f.room = 0; /* and none at all */
    g_assert_cmpint(sendto(peer, "later", 5, 0, (struct sockaddr *)&own, len), ==, 5);
    run_a_while();
    g_assert_cmpuint(f.in->len, ==, 9000);
    f.room = 2;
    chr_fe_accept_input(&f.fe);
    RUN_UNTIL(f.in->len == 9005);
    g_assert_true(g_str_has_suffix(f.in->str, "later"));
    /* Nobody listens for a while: the news of it ends nothing. */
    close(peer);
    for (unsigned i = 0; i < 5; i++) {
        f.room = i % 2;
        front_puts(&f, "lost");
        run_a_while();
    }
    peer = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(peer, (struct sockaddr *)&peer_addr, sizeof(peer_addr)), ==, 0);
    f.room = 100;
    chr_fe_accept_input(&f.fe);
    run_a_while();
    front_puts(&f, "again");
    RUN_UNTIL(recv(peer, buf, sizeof(buf), 0) == 5);
    g_assert_cmpint(sendto(peer, "back", 4, 0, (struct sockaddr *)&own, len), ==, 4);
    RUN_UNTIL(f.in->len == 9009);
    g_assert_cmpstr(f.events->str, ==, "O");
    front_fini(&f);
    close(peer);
}

int main(int argc, char **argv)
{
    char_test_init(&argc, &argv);
    g_test_add_func("/char/socket/unix-server", test_unix_server);
    g_test_add_func("/char/socket/flow", test_flow);
    g_test_add_func("/char/socket/slow-peer", test_slow_peer);
    g_test_add_func("/char/socket/fds", test_fds);
    g_test_add_func("/char/socket/tcp-reconnect", test_tcp_reconnect);
    g_test_add_func("/char/socket/telnet", test_telnet);
    g_test_add_func("/char/socket/inherited", test_inherited_fd);
    g_test_add_func("/char/socket/wait", test_wait);
    g_test_add_func("/char/socket/udp", test_udp);
    return char_test_run();
}
