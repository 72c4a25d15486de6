/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of character devices: a front end that records, and peers. */
#ifndef TESTS_CHAR_TEST_H
#define TESTS_CHAR_TEST_H

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

extern EventLoop *loop;
extern char *dir; /* a directory of this test's own */

typedef struct Front {
    ChrFrontend fe;
    GString *in;
    GString *events; /* O C B I(n) o(ut) */
    size_t room;
    unsigned writable;
    ChrEvent last;
} Front;

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

void front_init(Front *f, Chardev *chr, EventLoop *l);
void front_fini(Front *f);
void front_puts(Front *f, const char *s);
void run_a_while(void);
Chardev *legacy(const char *id, const char *spec);
Chardev *opts_new(const char *text, Error **errp);
char *path_of(const char *name);
int unix_connect(const char *path);
char *peer_read(int fd, size_t len);
void peer_write(int fd, const char *s);
/* Runs the tests that were added; removes the directory. */
int char_test_run(void);
void char_test_init(int *argc, char ***argv);

#endif
