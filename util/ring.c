/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The byte ring of qemu/ring.h. */
#include "qemu/ring.h"

#include <glib.h>
#include <string.h>

void byte_ring_init(ByteRing *r, uint32_t size)
{
    uint32_t pow2 = 16;

    while (pow2 < size && pow2 < (1u << 31)) {
        pow2 *= 2;
    }
    r->buf = g_malloc0(pow2);
    r->size = pow2;
    atomic_init(&r->head, 0);
    atomic_init(&r->tail, 0);
}

void byte_ring_fini(ByteRing *r)
{
    g_free(r->buf);
    r->buf = NULL;
    r->size = 0;
}

size_t byte_ring_write(ByteRing *r, const void *data, size_t len)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    uint32_t n = MIN(len, (size_t)(r->size - (head - tail)));
    uint32_t at = head & (r->size - 1);
    uint32_t first = MIN(n, r->size - at);

    memcpy(r->buf + at, data, first);
    memcpy(r->buf, (const uint8_t *)data + first, n - first);
    atomic_store_explicit(&r->head, head + n, memory_order_release);
    return n;
}

bool byte_ring_write_all(ByteRing *r, const void *data, size_t len)
{
    if (len > byte_ring_room(r)) {
        return false;
    }
    byte_ring_write(r, data, len);
    return true;
}

const uint8_t *byte_ring_peek(const ByteRing *r, size_t *len)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint32_t at = tail & (r->size - 1);

    *len = MIN(head - tail, r->size - at);
    return r->buf + at;
}

void byte_ring_consume(ByteRing *r, size_t len)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + (uint32_t)len, memory_order_release);
}

size_t byte_ring_read(ByteRing *r, void *data, size_t len)
{
    size_t done = 0;

    /* Twice at most: up to the end of the buffer, and from its start. */
    for (int i = 0; i < 2 && done < len; i++) {
        size_t n;
        const uint8_t *src = byte_ring_peek(r, &n);
        n = MIN(n, len - done);
        memcpy((uint8_t *)data + done, src, n);
        byte_ring_consume(r, n);
        done += n;
    }
    return done;
}
