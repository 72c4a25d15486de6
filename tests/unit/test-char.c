/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: files, pipes, terminals, the multiplexer, errors. */
#include "qemu/file.h"
#include "char-test.h"

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

static int restored_port; /* a terminal that was lent */

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

static void await_modes(int fd, tcflag_t cflag, speed_t speed)
{
    const tcflag_t mask = CSIZE | CSTOPB | PARODD | CMSPAR | CREAD | CLOCAL;
    gint64 end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
    struct termios t;

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(1000);
        tcgetattr(fd, &t);
    } while ((t.c_cflag & mask) != (cflag | CREAD | CLOCAL) || cfgetospeed(&t) != speed);
}

/* The other end of a pseudo terminal stands for the cable. */
static void test_serial_port(void)
{
    int cable = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    g_assert_true(grantpt(cable) == 0 && unlockpt(cable) == 0);
    g_autofree char *path = g_strdup(ptsname(cable));
    int port = open(path, O_RDWR | O_NOCTTY);
    g_autofree char *text = g_strdup_printf("serial,id=port,path=%s", path);
    struct termios before, now;
    Front f;

    tcgetattr(port, &before);
    g_assert_true(before.c_lflag & ICANON);
    front_init(&f, opts_new(text, &error_abort), loop);
    RUN_UNTIL(f.events->len == 1);
    await_modes(port, CS8, B115200);
    front_puts(&f, "login:\n");
    g_assert_cmpstr(peer_read(cable, 7), ==, "login:\n"); /* raw: no CR is added */
    peer_write(cable, "\x03root\r");
    RUN_UNTIL(f.in->len == 6);
    g_assert_cmpstr(f.in->str, ==, "\x03root\r");
    chr_fe_set_line(&f.fe, &(ChrLine){ .baud = 9600, .data_bits = 8, .stop_bits = 2, .parity = CHR_PARITY_ODD });
    await_modes(port, CS8 | CSTOPB | PARODD, B9600);
    chr_fe_set_line(&f.fe, &(ChrLine){ .baud = 57000, .data_bits = 8, .stop_bits = 1, .brk = true });
    await_modes(port, CS8, B57600);
    close(port);
    close(cable); /* the device is gone: told once, and nothing spins */
    RUN_UNTIL(f.events->len == 2);
    g_assert_cmpstr(f.events->str, ==, "OC");
    front_puts(&f, "into the void");
    run_a_while();
    g_assert_cmpuint(f.in->len, ==, 6);
    front_fini(&f);

    cable = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    g_assert_true(grantpt(cable) == 0 && unlockpt(cable) == 0);
    g_free(path);
    path = g_strdup(ptsname(cable));
    port = open(path, O_RDWR | O_NOCTTY);
    front_init(&f, legacy("port2", path), loop);
    g_assert_cmpstr(chardev_filename(chardev_find("port2")), ==, path);
    await_modes(port, CS8, B115200);
    front_fini(&f);
    restored_port = port;
    tcgetattr(port, &now);
    g_assert_false(now.c_lflag & ICANON);
    front_init(&f, legacy("nowhere", "/dev/null"), loop);
    front_puts(&f, "x");
    run_a_while();
    g_assert_cmpstr(f.events->str, ==, "O");
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
#ifdef __SANITIZE_THREAD__
    g_test_skip("the thread sanitizer delivers signals when it likes");
    return;
#endif
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
    expect_error("/dev/nonexistent", "Could not open '/dev/nonexistent'");
    expect_error("serial,id=bad", "no device path");
    expect_error("serial,id=bad,path=/dev/ttyS0,baud=5", "'baud'");
    expect_error("udp:127.0.0.1", "no port");
    expect_error("udp:127.0.0.1:5@x", "no port");
    expect_error("udp:127.0.0.1:5@192.0.2.1:5", "cannot exchange datagrams");
    expect_error("udp,id=bad", "no port given");
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
    g_autofree char *tty = g_strdup_printf("tty,id=bad,path=%s", plain);
    expect_error(tty, "no serial port");
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
    struct termios t;
    g_assert_true(tcgetattr(restored_port, &t) == 0 && (t.c_lflag & ICANON));
}

int main(int argc, char **argv)
{
    char_test_init(&argc, &argv);
    startup_files_keep(); /* as on a machine that runs */
    g_test_add_func("/char/file/file", test_file);
    g_test_add_func("/char/file/log", test_log_and_null);
    g_test_add_func("/char/file/pipe", test_pipe);
    g_test_add_func("/char/tty/pty", test_pty);
    g_test_add_func("/char/tty/serial", test_serial_port);
    g_test_add_func("/char/tty/signals", test_signals);
    g_test_add_func("/char/mux/basic", test_mux);
    g_test_add_func("/char/mux/threads", test_mux_threads);
    g_test_add_func("/char/end/errors", test_errors);
    g_test_add_func("/char/end/cleanup", test_cleanup);
    g_test_add_func("/char/end/stdio", test_stdio);
    return char_test_run();
}
