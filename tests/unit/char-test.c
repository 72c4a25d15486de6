/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of character devices: a front end that records, and peers. */
#include "char-test.h"

EventLoop *loop;
char *dir;

/* ---- A front end that records ---- */

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

void front_init(Front *f, Chardev *chr, EventLoop *l)
{
    *f = (Front){ .room = 4096 };
    f->in = g_string_new(NULL);
    f->events = g_string_new(NULL);
    g_assert_true(chr_fe_init(&f->fe, chr, &error_abort));
    chr_fe_set_handlers(&f->fe, l, &front_ops, f);
}

void front_fini(Front *f)
{
    chr_fe_fini(&f->fe);
    g_string_free(f->in, TRUE);
    g_string_free(f->events, TRUE);
}

void front_puts(Front *f, const char *s)
{
    g_assert_cmpuint(chr_fe_write(&f->fe, (const uint8_t *)s, strlen(s)), ==, strlen(s));
}

void run_a_while(void)
{
    for (unsigned i = 0; i < 20; i++) {
        event_loop_iterate(loop, 1000000);
    }
}

Chardev *legacy(const char *id, const char *spec)
{
    Chardev *chr = chardev_new_from_legacy(id, spec, false, &error_abort);
    g_assert_nonnull(chr);
    return chr;
}

static QemuOptsList test_opts = { .name = "chardev", .implied_opt_name = "backend" };

Chardev *opts_new(const char *text, Error **errp)
{
    QemuOpts *o = qemu_opts_parse(&test_opts, text, &error_abort);
    Chardev *chr = chardev_new_from_opts(o, errp);
    qemu_opts_del(o);
    return chr;
}

char *path_of(const char *name)
{
    return g_build_filename(dir, name, NULL);
}

int unix_connect(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(un.sun_path, path, sizeof(un.sun_path) - 1);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* What the peer gets, until it has len bytes. */
char *peer_read(int fd, size_t len)
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

void peer_write(int fd, const char *s)
{
    g_assert_cmpint(write(fd, s, strlen(s)), ==, (ssize_t)strlen(s));
}

void char_test_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    dir = g_dir_make_tmp("chardev-XXXXXX", NULL);
    loop = event_loop_new("test", &error_abort);
}

int char_test_run(void)
{
    int r = g_test_run();
    g_autofree char *cmd = g_strdup_printf("rm -rf '%s'", dir);
    return system(cmd) ? 1 : r;
}
