/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Background, pid file, signals: each in a process of its own. */
#include "qemu/os.h"

#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path_of(const char *what)
{
    return g_strdup_printf("%s/test-os-%d-%s", g_get_tmp_dir(), (int)getpid(), what);
}

/* Waits up to five seconds. */
static bool eventually(bool (*fn)(void *), void *opaque)
{
    for (int i = 0; i < 5000; i++) {
        if (fn(opaque)) {
            return true;
        }
        g_usleep(1000);
    }
    return false;
}

static bool is_gone(void *path)
{
    return access(path, F_OK) < 0;
}

static bool is_there(void *path)
{
    char *text = NULL;
    bool there = g_file_get_contents(path, &text, NULL, NULL) && strchr(text, '\n');
    g_free(text);
    return there;
}

static pid_t pid_in(const char *path)
{
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    pid_t pid = (pid_t)g_ascii_strtoll(text, NULL, 10);
    g_free(text);
    return pid;
}

static int status_of(pid_t pid)
{
    int status;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- signals ---- */

static volatile sig_atomic_t asked_to_end;

static void note_end(void)
{
    asked_to_end = 1;
}

static void test_signals(void)
{
    if (g_test_subprocess()) {
        error_set_progname("emu");
        os_setup_signals(note_end);
        os_report_termination(); /* nothing yet */
        kill(getpid(), SIGPIPE);
        g_assert_cmpint(asked_to_end, ==, 0);
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGINT);
        g_assert_cmpint(asked_to_end, ==, 1);
        os_report_termination();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("emu: terminating on signal 15 from pid *(test-os)\n");
}

/* ---- pid file ---- */

static QEMU_NORETURN void hold_pidfile(const char *path)
{
    os_setup_signals(note_end); /* first: who reads the file may send one */
    if (!os_create_pidfile(path, NULL)) {
        _exit(3);
    }
    while (!asked_to_end) {
        g_usleep(1000);
    }
    exit(0);
}

static void test_pidfile(void)
{
    char *path = path_of("pid");
    Error *err = NULL;
    char *text;

    /* No pid file at all: it stays as it is. */
    g_assert_true(g_file_set_contents(path, "99999999999999\nrubbish\n", -1, NULL));
    g_assert_false(os_create_pidfile(path, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "something else than a process id"));
    error_free(err);
    err = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "99999999999999\nrubbish\n");
    g_free(text);
    /* An old pid file, longer than what is written. */
    g_assert_true(g_file_set_contents(path, "99999999999999\n", -1, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        hold_pidfile(path);
    }
    for (int i = 0; i < 5000 && pid_in(path) != pid; i++) {
        g_usleep(1000);
    }
    g_assert_cmpint(pid_in(path), ==, pid);
    g_assert_false(os_create_pidfile(path, &err));
    char *want =
        g_strdup_printf("-pidfile %s: process %d uses it; choose another file", path, (int)pid);
    g_assert_cmpstr(error_get_pretty(err), ==, want);
    error_free(err);
    g_free(want);
    g_assert_cmpint(pid_in(path), ==, pid); /* and the refused one did not touch it */
    kill(pid, SIGTERM);
    g_assert_cmpint(status_of(pid), ==, 0);
    g_assert_true(is_gone(path));
    err = NULL;
    g_assert_false(os_create_pidfile("/nonexistent/dir/pid", &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "-pidfile /nonexistent/dir/pid: cannot write"));
    error_free(err);
    g_free(path);
}

/* ---- background ---- */

static QEMU_NORETURN void daemon_that_works(const char *path)
{
    os_daemonize(&error_fatal);
    g_assert_true(os_is_daemonized());
    g_usleep(100 * 1000); /* the machine is being made: the command must not return yet */
    os_create_pidfile(path, &error_fatal);
    os_setup_signals(note_end);
    os_setup_post(&error_fatal);
    while (!asked_to_end) {
        g_usleep(1000);
    }
    exit(0);
}

static void test_daemonize(void)
{
    char *path = path_of("daemon");
    pid_t pid = fork();
    if (pid == 0) {
        daemon_that_works(path);
    }
    g_assert_cmpint(status_of(pid), ==, 0);
    g_assert_true(is_there(path)); /* right then, without a wait */
    pid_t daemon = pid_in(path);
    g_assert_cmpint(daemon, !=, pid);
    g_assert_cmpint(kill(daemon, 0), ==, 0);
    g_assert_cmpint(getsid(daemon), !=, getsid(0));
    g_assert_cmpint(getsid(daemon), !=, daemon); /* no leader of its session */
    char *link = g_strdup_printf("/proc/%d/cwd", (int)daemon), *cwd = g_file_read_link(link, NULL);
    g_assert_cmpstr(cwd, ==, "/");
    g_free(link);
    g_free(cwd);
    link = g_strdup_printf("/proc/%d/fd/2", (int)daemon);
    char *err_file = g_file_read_link(link, NULL);
    g_assert_cmpstr(err_file, ==, "/dev/null");
    g_free(link);
    g_free(err_file);
    kill(daemon, SIGTERM);
    g_assert_true(eventually(is_gone, path));
    g_free(path);
}

static void test_daemonize_fails(void)
{
    if (g_test_subprocess()) {
        os_daemonize(&error_fatal);
        error_report("the kernel file is missing");
        exit(1);
    }
    g_test_trap_subprocess(NULL, 10 * G_USEC_PER_SEC, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*the kernel file is missing\n");
}

static void test_daemonize_dies(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        os_daemonize(&error_fatal);
        kill(getpid(), SIGKILL);
    }
    g_assert_cmpint(status_of(pid), ==, 1);
}

static void test_post_without_daemon(void)
{
    g_assert_false(os_is_daemonized());
    g_assert_true(os_setup_post(&error_abort));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/os/signals", test_signals);
    g_test_add_func("/os/pidfile", test_pidfile);
    g_test_add_func("/os/daemonize/works", test_daemonize);
    g_test_add_func("/os/daemonize/fails", test_daemonize_fails);
    g_test_add_func("/os/daemonize/dies", test_daemonize_dies);
    g_test_add_func("/os/post", test_post_without_daemon);
    return g_test_run();
}
