/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: items, order, truncation, the guest-error limit, many writers, loss under realtime. */
#include "qemu/log.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "qemu/file.h"
#include "qemu/thread.h"

static void test_items(void)
{
    Error *err = NULL;
    uint32_t mask = 99;
    g_assert_true(qemu_log_parse("int,cpu_reset", &mask, &error_abort));
    g_assert_cmpuint(mask, ==, LOG_INT | LOG_CPU_RESET);
    g_assert_true(qemu_log_parse("none", &mask, &error_abort));
    g_assert_cmpuint(mask, ==, 0);
    g_assert_true(qemu_log_parse("all", &mask, &error_abort));
    g_assert_cmpuint(mask & LOG_GUEST_ERROR, !=, 0);
    mask = 99;
    g_assert_false(qemu_log_parse("int,bogus", &mask, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "'bogus'"));
    g_assert_cmpuint(mask, ==, 99);
    error_free(err);
    err = NULL;
    g_assert_false(qemu_log_open("/nonexistent/dir/log", &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "/nonexistent/dir/log"));
    error_free(err);
}

static void filter_refused(const char *ranges, const char *part)
{
    Error *err = NULL;

    g_assert_false(qemu_log_filter_parse(ranges, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "-dfilter"));
    g_assert_nonnull(strstr(error_get_pretty(err), part));
    error_free(err);
}

static void test_filter(void)
{
    g_assert_true(qemu_log_in_addr_range(0));
    g_assert_true(qemu_log_filter_parse("0x8000..0x8fff,0xffffffff80000000+0x200,4096-0x10", &error_abort));
    g_assert_false(qemu_log_in_addr_range(0));
    g_assert_false(qemu_log_in_addr_range(0x7fff));
    g_assert_true(qemu_log_in_addr_range(0x8000));
    g_assert_true(qemu_log_in_addr_range(0x8fff));
    g_assert_false(qemu_log_in_addr_range(0x9000));
    g_assert_true(qemu_log_in_addr_range(0xffffffff80000000));
    g_assert_true(qemu_log_in_addr_range(0xffffffff800001ff));
    g_assert_false(qemu_log_in_addr_range(0xffffffff80000200));
    g_assert_false(qemu_log_in_addr_range(0xff0));
    g_assert_true(qemu_log_in_addr_range(0xff1));
    g_assert_true(qemu_log_in_addr_range(0x1000));
    g_assert_false(qemu_log_in_addr_range(0x1001));
    filter_refused("0x5", "'0x5' must be START..END");
    filter_refused("", "'' must be START..END");
    filter_refused("1+1,", "'' must be START..END");
    filter_refused("fff0+1", "'fff0+1' needs two numbers");
    filter_refused("0xfff0..", "needs two numbers");
    filter_refused("..0xfff0", "needs two numbers");
    filter_refused("0x1ffffffffffffffff+1", "needs two numbers");
    filter_refused("1+1,0x10..5", "'0x10..5' ends before it begins");
    filter_refused("0x10+0", "is empty");
    filter_refused("0x10-0", "is empty");
    filter_refused("0xffffffffffffffff+2", "beyond the highest address");
    filter_refused("0xf-0x11", "below address 0");
    g_assert_true(qemu_log_in_addr_range(0x8000)); /* what was in force stays */
    g_assert_true(qemu_log_filter_parse("0-1,0xffffffffffffffff+1", &error_abort));
    g_assert_true(qemu_log_in_addr_range(0));
    g_assert_true(qemu_log_in_addr_range(UINT64_MAX));
    g_assert_false(qemu_log_in_addr_range(0x8000));
    g_assert_true(qemu_log_filter_parse("0..0xffffffffffffffff", &error_abort));
    g_assert_true(qemu_log_in_addr_range(0x8000));
    GString *many = g_string_new("1+1");
    for (int i = 1; i < 64; i++) {
        g_string_append(many, ",1+1");
    }
    g_assert_true(qemu_log_filter_parse(many->str, &error_abort));
    g_string_append(many, ",1+1");
    filter_refused(many->str, "one too many");
    g_string_free(many, TRUE);
    qemu_log_filter_clear();
    g_assert_true(qemu_log_in_addr_range(5));
}

static char *open_log(void)
{
    char *path = g_strdup_printf("%s/test-log-%d", g_get_tmp_dir(), (int)getpid());
    g_assert_true(qemu_log_open(path, &error_abort));
    return path;
}

static char *close_and_read(char *path)
{
    char *text = NULL;
    qemu_log_close();
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_unlink(path);
    g_free(path);
    return text;
}

static unsigned count_lines(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) {
        n++;
    }
    return n;
}

static void test_order_and_cut(void)
{
    char *path = open_log(), *now = NULL;
    qemu_log("not yet: no ring\n");
    g_assert_true(qemu_log_start(LOG_INT, &error_abort));
    for (int i = 0; i < 5000; i++) { /* more than the ring holds: the writer waits */
        qemu_log_mask(LOG_INT, "message %d\n", i);
        qemu_log_mask(LOG_EXEC, "never\n");
    }
    qemu_log_flush();
    g_assert_true(g_file_get_contents(path, &now, NULL, NULL));
    g_assert_nonnull(strstr(now, "message 4999\n"));
    g_free(now);
    char *longer = g_strnfill(LOG_LINE_MAX * 2, 'x');
    qemu_log("%s\n", longer);
    g_free(longer);
    char *text = close_and_read(path);
    const char *p = text;
    for (int i = 0; i < 5000; i++) {
        char *want = g_strdup_printf("message %d\n", i);
        g_assert_true(g_str_has_prefix(p, want));
        p += strlen(want);
        g_free(want);
    }
    g_assert_cmpuint(strlen(p), ==, LOG_LINE_MAX - 1);
    g_assert_true(g_str_has_suffix(p, "x...\n"));
    g_free(text);
}

static void guest_does_wrong(int i)
{
    qemu_log_mask(LOG_GUEST_ERROR, "guest error %d\n", i);
}

static void test_limit(void)
{
    char *path = open_log();
    g_assert_true(qemu_log_start(LOG_GUEST_ERROR, &error_abort));
    for (int i = 0; i < 100000; i++) {
        guest_does_wrong(i);
    }
    g_usleep(1100 * 1000);
    guest_does_wrong(100000);
    char *text = close_and_read(path);
    /* One second's worth, two or three if the loop crossed seconds; and the last one. */
    g_assert_cmpuint(count_lines(text, "guest error"), >=, LOG_LIMIT_BURST + 1);
    g_assert_cmpuint(count_lines(text, "guest error"), <=, 4 * LOG_LIMIT_BURST);
    g_assert_nonnull(
        strstr(text, "more like the next message were held back)\nguest error 100000"));
    g_free(text);
}

static void *writer(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        qemu_log("[%u.%d]\n", GPOINTER_TO_UINT(arg), i);
    }
    return NULL;
}

static void test_many_writers(void)
{
    char *path = open_log();
    QemuThread t[3];
    g_assert_true(qemu_log_start(LOG_INT, &error_abort));
    for (unsigned i = 0; i < 3; i++) {
        g_assert_true(qemu_thread_create(&t[i], "writer", THREAD_HELPER, writer,
                                         GUINT_TO_POINTER(i), &error_abort));
    }
    for (unsigned i = 0; i < 3; i++) {
        qemu_thread_join(&t[i]);
    }
    char *text = close_and_read(path);
    int next[3] = { 0 };
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned who;
        int n;
        g_assert_cmpint(sscanf(line, "[%u.%d]", &who, &n), ==, 2);
        g_assert_cmpint(n, ==, next[who]++); /* each writer's own order holds */
    }
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(next[i], ==, 3000);
    }
    g_free(text);
}

/* Under -realtime a writer never waits: what does not fit is counted. */
static void test_realtime_loses(void)
{
    if (g_test_subprocess()) {
        int fds[2];
        char dummy[4096];
        g_assert_cmpint(pipe(fds), ==, 0);
        dup2(fds[1], STDERR_FILENO); /* a reader that is stuck: 64 KiB and no more */
        qemu_init_realtime(SCHED_RR, 2);
        g_assert_true(qemu_log_start(LOG_INT, &error_abort));
        gint64 start = g_get_monotonic_time();
        for (int i = 0; i < 20000; i++) {
            qemu_log("a message of a certain length, to fill the pipe: %d\n", i);
        }
        g_assert_cmpint(g_get_monotonic_time() - start, <, 2 * G_USEC_PER_SEC);
        GString *got = g_string_new(NULL);
        while (!strstr(got->str, "messages lost)")) {
            ssize_t n = read(fds[0], dummy, sizeof(dummy));
            g_assert_cmpint(n, >, 0);
            g_string_append_len(got, dummy, n);
        }
        return;
    }
    g_test_trap_subprocess(NULL, 20 * G_USEC_PER_SEC, 0);
    g_test_trap_assert_passed();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    startup_files_keep();
    g_test_add_func("/log/items", test_items);
    g_test_add_func("/log/filter", test_filter);
    g_test_add_func("/log/order-and-cut", test_order_and_cut);
    g_test_add_func("/log/limit", test_limit);
    g_test_add_func("/log/many-writers", test_many_writers);
    g_test_add_func("/log/realtime-loses", test_realtime_loses);
    return g_test_run();
}
