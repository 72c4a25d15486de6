/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of memory/ share. */
#ifndef MEMORY_MEMORY_INTERNAL_H
#define MEMORY_MEMORY_INTERNAL_H

#include "memory/memory.h"
#include "qemu/thread.h"

/* Something that readers may still see; freed by the reclaimer after a grace period. */
typedef struct Retired {
    struct Retired *next;
} Retired;

/* A published map: never changed, sorted by address, no overlap. */
typedef struct FlatView {
    Retired retired; /* first: freed by this address */
    uint64_t gen;    /* unique among all views of all time; what look-up caches compare */
    uint32_t n;
    FlatRange r[];
} FlatView;

struct AddressSpace {
    const char *name;
    bool is_io;
    MemoryRegion root;
    _Atomic(FlatView *) view;
    MemoryListener *listeners; /* guarded by the MEMMAP lock */
    bool changed;              /* the same: to be flattened at commit */
};

/* rcu.c. defer: RT_SAFE; p was malloc'ed. */
void memory_rcu_init(void);
void memory_defer_free(Retired *p);
/* After an edit, no lock of ours held: a guest that edits its map faster than the reclaimer gets
 * to run sleeps for a moment, so that old maps do not pile up. */
void memory_throttle(void);

/* flat.c; the MEMMAP lock is held. */
FlatView *flatview_build(AddressSpace *as);
bool flat_range_equal(const FlatRange *a, const FlatRange *b);
void flatview_publish(AddressSpace *as, FlatView *now);

/* region.c */
void memory_map_lock(void) NO_TSA;
void memory_map_unlock(void) NO_TSA;

/* ram.c */
void ram_init(void);
/* The block that the host's address is in; NULL: none. Async-signal-safe. */
const RAMBlock *ram_block_of_host(const void *host);

/* ram-fault.c: from now on, host memory that cannot be had ends the process with a reason. */
void ram_fault_init(void);

/* Last byte of a range; a size of UINT64_MAX at 0 is all of 2^64. */
static inline hwaddr flat_range_last(const FlatRange *r)
{
    return r->size == UINT64_MAX && r->addr == 0 ? UINT64_MAX : r->addr + (r->size - 1);
}

#endif
