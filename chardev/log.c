/* SPDX-License-Identifier: GPL-2.0-or-later */
/* logfile=: a copy of all output, written by the I/O helper. Nothing is lost to a slow disk, or to
 * the slow reader of a FIFO: the front end is told to wait instead. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "char-internal.h"

struct ChrLog {
    ByteRing ring;
    EventLoop *loop;
    EventPost post;
    EventSource src; /* while a FIFO is full */
    Chardev *chr;
    int fd;
    bool failed, closing;
};

static void log_drain(void *opaque);

static void log_writable(void *opaque, uint32_t events)
{
    ChrLog *log = opaque;

    event_source_remove(&log->src);
    log_drain(log);
}

static void log_wait(ChrLog *log)
{
    if (!log->closing && !log->src.loop) {
        event_source_add(&log->src, log->loop, log->fd, EPOLLOUT, log_writable, log, NULL);
    }
}

static void log_drain(void *opaque)
{
    ChrLog *log = opaque;
    size_t len;

    for (;;) {
        const uint8_t *p = byte_ring_peek(&log->ring, &len);
        if (!len) {
            break;
        }
        ssize_t n = write(log->fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            log_wait(log);
            break;
        }
        if (n <= 0) {
            if (!log->failed) {
                warn_report("chardev '%s': cannot write its log: %s", log->chr->id,
                            strerror(errno));
            }
            log->failed = true;
            n = (ssize_t)len;
        }
        byte_ring_consume(&log->ring, (size_t)n);
    }
    chr_drained(log->chr);
}

/* What fits is written, but nobody waits for a reader. */
static void log_close(void *opaque)
{
    ChrLog *log = opaque;

    event_source_remove(&log->src);
    log->closing = true;
    log_drain(log);
}

ChrLog *chr_log_new(const char *path, bool append, Chardev *chr, Error **errp)
{
    EventLoop *loop = chr_io_loop(errp);
    int fd = loop ? chr_open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), errp) : -1;

    if (fd < 0) {
        return NULL;
    }
    chr_ignore_sigpipe();
    ChrLog *log = g_new0(ChrLog, 1);
    byte_ring_init(&log->ring, CHR_OUT_SIZE);
    event_post_init(&log->post, log_drain, log);
    log->loop = loop;
    log->chr = chr;
    log->fd = fd;
    return log;
}

void chr_log_free(ChrLog *log)
{
    if (!log) {
        return;
    }
    while (atomic_load(&log->post.pending)) {
        g_usleep(100); /* the helper will get there */
    }
    chr_call_sync(log->loop, log_close, log);
    close(log->fd);
    byte_ring_fini(&log->ring);
    g_free(log);
}

size_t chr_log_room(ChrLog *log)
{
    return byte_ring_room(&log->ring);
}

void chr_log_write(ChrLog *log, const uint8_t *buf, size_t len)
{
    byte_ring_write(&log->ring, buf, len);
    event_post(log->loop, &log->post);
}
