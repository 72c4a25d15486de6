/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bounded, lock-free byte ring between one producer and one consumer. Neither side waits,
 * allocates or makes a system call; what does not fit is not taken, and the caller decides.
 */
#ifndef QEMU_RING_H
#define QEMU_RING_H

#include <stdatomic.h>
#include "qemu/compiler.h"

typedef struct ByteRing {
    uint8_t *buf;
    uint32_t size; /* a power of two */
    /* Free-running counters, each on a cache line of its own: only one side writes it. */
    QEMU_ALIGNED(64) _Atomic uint32_t head; /* written by the producer */
    QEMU_ALIGNED(64) _Atomic uint32_t tail; /* written by the consumer */
} ByteRing;

/* HELPER_ONLY. size is rounded up to a power of two, 2 GiB at most; all of it can be used. */
void byte_ring_init(ByteRing *r, uint32_t size);
void byte_ring_fini(ByteRing *r);

/* RT_SAFE, any thread; exact for the side that asks, a bound in its favour for the other. */
static inline uint32_t byte_ring_used(const ByteRing *r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire) -
           atomic_load_explicit(&r->tail, memory_order_acquire);
}
static inline uint32_t byte_ring_room(const ByteRing *r)
{
    return r->size - byte_ring_used(r);
}

/* RT_SAFE, producer. Copies what fits; returns how much. */
size_t byte_ring_write(ByteRing *r, const void *data, size_t len);
/* RT_SAFE, producer. All of data or nothing: for records that must not be torn. */
bool byte_ring_write_all(ByteRing *r, const void *data, size_t len);

/* RT_SAFE, consumer. Copies and removes up to len bytes; returns how many. */
size_t byte_ring_read(ByteRing *r, void *data, size_t len);
/*
 * RT_SAFE, consumer. The longest contiguous run of bytes, for write(2); they stay until
 * byte_ring_consume(). *len is 0 if the ring is empty.
 */
const uint8_t *byte_ring_peek(const ByteRing *r, size_t *len);
void byte_ring_consume(ByteRing *r, size_t len);

#endif
