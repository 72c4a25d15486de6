/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a file of the command line, whatever it turns out to be. */
#include "qemu/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu/cutils.h"

#define CHUNK (64 * KiB)

/* A pipe or terminal that has nothing yet. */
static bool wait_readable(int fd, const char *path, Error **errp)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    if (poll(&p, 1, FILE_WAIT_MS) > 0) {
        return true;
    }
    error_setg(errp, "cannot read '%s': nothing came for %d s; give a file, or a pipe that "
                     "somebody writes to", path, FILE_WAIT_MS / 1000);
    return false;
}

/* Bytes read, 0 at the end, -1: error. */
static ssize_t read_some(int fd, const char *path, char *buf, size_t len, Error **errp)
{
    for (;;) {
        ssize_t n = read(fd, buf, len);
        if (n >= 0) {
            return n;
        }
        if (errno == EAGAIN) {
            if (!wait_readable(fd, path, errp)) {
                return -1;
            }
        } else if (errno != EINTR) {
            error_setg_errno(errp, errno, "cannot read '%s'", path);
            return -1;
        }
    }
}

static void too_long(const char *path, size_t limit, Error **errp)
{
    char most[24];

    error_setg(errp, "cannot read '%s': it has more than %s, the most that is taken here; is it the "
                     "right file?", path, qemu_format_size(limit, most, sizeof(most)));
}

static void read_fd(int fd, const char *path, size_t limit, GByteArray *all, Error **errp)
{
    g_autofree char *chunk = g_malloc(CHUNK);
    struct stat st = { 0 };

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit) {
        too_long(path, limit, errp);
        return;
    }
    for (;;) {
        ssize_t n = read_some(fd, path, chunk, CHUNK, errp);

        if (n < 0) {
            return;
        }
        if (n == 0) {
            break;
        }
        if ((size_t)n > limit - all->len) {
            too_long(path, limit, errp);
            return;
        }
        g_byte_array_append(all, (const uint8_t *)chunk, (guint)n);
    }
    if (all->len == 0 && S_ISFIFO(st.st_mode)) {
        error_setg(errp, "cannot read '%s': nobody writes to this pipe; start its writer first", path);
    }
}

bool file_read_all(const char *path, size_t limit, char **data, size_t *len, Error **errp)
{
    GByteArray *all;
    Error *err = NULL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        error_setg_errno(errp, errno, "cannot read '%s'", path);
        return false;
    }
    all = g_byte_array_new();
    read_fd(fd, path, limit, all, &err);
    close(fd);
    if (err) {
        g_byte_array_free(all, TRUE);
        error_propagate(errp, err);
        return false;
    }
    *len = all->len;
    g_byte_array_append(all, (const uint8_t *)"", 1);
    *data = (char *)g_byte_array_free(all, FALSE);
    return true;
}
