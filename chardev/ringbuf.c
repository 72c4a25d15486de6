/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ringbuf: keeps the last bytes of output for the monitor's ringbuf-read. */
#include <glib.h>
#include "char-internal.h"

typedef struct ChrRingbuf {
    Chardev chr;
    QemuMutex lock; /* LEAF, as a multiplexer calls under its own; guards the three below */
    uint8_t *buf;
    uint64_t in, out; /* free-running */
    uint64_t size;
} ChrRingbuf;

static bool ringbuf_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrRingbuf *r = container_of(chr, ChrRingbuf, chr);

    if (!chr_opt_u64(o, "size", 65536, GiB, &r->size, errp)) {
        return false;
    }
    if (!r->size || (r->size & (r->size - 1))) {
        error_setg(errp, "size of ringbuf chardev must be power of two, not %llu",
                   (unsigned long long)r->size);
        return false;
    }
    r->buf = g_try_malloc0(r->size);
    if (!r->buf) {
        error_setg(errp, "the host has no memory for a ringbuf of size=%llu (make it smaller, or raise "
                   "the host's limit, 'ulimit -v')", (unsigned long long)r->size);
        return false;
    }
    qemu_mutex_init(&r->lock, LOCK_RANK_LEAF, "ringbuf");
    return true;
}

static void ringbuf_close(Chardev *chr)
{
    ChrRingbuf *r = container_of(chr, ChrRingbuf, chr);

    if (r->buf) {
        qemu_mutex_destroy(&r->lock);
        g_free(r->buf);
    }
}

static size_t ringbuf_submit(Chardev *chr, ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    ChrRingbuf *r = container_of(chr, ChrRingbuf, chr);
    size_t n = chr_submit(chr, buf, len); /* the log; never connected */

    QEMU_LOCK_GUARD(&r->lock);
    for (size_t i = n > r->size ? n - r->size : 0; i < n; i++) {
        r->buf[r->in++ & (r->size - 1)] = buf[i];
    }
    if (r->in - r->out > r->size) {
        r->out = r->in - r->size;
    }
    return n;
}

static ChrRingbuf *as_ringbuf(Chardev *chr, Error **errp)
{
    if (chr->drv != &chr_driver_ringbuf) {
        error_setg(errp, "%s is not a ringbuf device", chr->id);
        return NULL;
    }
    return container_of(chr, ChrRingbuf, chr);
}

bool chardev_ringbuf_read(Chardev *chr, uint8_t *buf, size_t *len, Error **errp)
{
    ChrRingbuf *r = as_ringbuf(chr, errp);
    size_t n = 0;

    if (!r) {
        return false;
    }
    QEMU_LOCK_GUARD(&r->lock);
    while (n < *len && r->out != r->in) {
        buf[n++] = r->buf[r->out++ & (r->size - 1)];
    }
    *len = n;
    return true;
}

bool chardev_ringbuf_write(Chardev *chr, const uint8_t *buf, size_t len, Error **errp)
{
    if (!as_ringbuf(chr, errp)) {
        return false;
    }
    ringbuf_submit(chr, NULL, buf, len);
    return true;
}

const ChardevDriver chr_driver_ringbuf = {
    .name = "ringbuf",
    .keys = (const char *const[]){ "size", NULL },
    .size = sizeof(ChrRingbuf),
    .open = ringbuf_open,
    .close = ringbuf_close,
    .write = ringbuf_submit,
};
