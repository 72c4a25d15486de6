/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest-physical map. Boards build a tree of regions (containers, RAM, ROM, I/O, aliases) with
 * priorities; each change flattens it into a sorted table of ranges that is published by a pointer
 * swap and reclaimed by RCU. Readers neither lock nor retry. Two address spaces exist: memory
 * (physical addresses) and I/O (64 KiB of ports).
 */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include <stdatomic.h>
#include "qemu/compiler.h"
#include "qemu/error.h"

typedef uint64_t hwaddr;

#define TARGET_PAGE_BITS 12
#define TARGET_PAGE_SIZE (1ull << TARGET_PAGE_BITS)
#define TARGET_PAGE_MASK (~(TARGET_PAGE_SIZE - 1))

typedef struct MemoryRegion MemoryRegion;
typedef struct AddressSpace AddressSpace;

/* ---- RAM ---- */

/* Who wants to know of writes. Bits of a dirty byte. */
typedef enum DirtyClient {
    DIRTY_CLIENT_MIGRATION,
    DIRTY_CLIENT_DISPLAY,
    DIRTY_CLIENT_COUNT
} DirtyClient;

/*
 * A piece of guest RAM or ROM in host memory. Arrays have one entry a 4 KiB page.
 * code_map: bit n set = 64-byte granule n of the page holds decoded or translated code.
 * code_gen: grows by one each time a granule with code is written; a code block remembers the
 * value ram_block_code_mark() gave and is stale when they differ (docs/devel/memory.md).
 * code_busy: low half, hits under way; high half, marks under way. Private to memory/.
 */
typedef struct RAMBlock {
    uint8_t *host;
    uint64_t size; /* bytes, a multiple of the page size */
    char idstr[64];
    _Atomic uint64_t *code_map;
    _Atomic uint32_t *code_gen;
    _Atomic uint32_t *code_busy;
    _Atomic uint8_t *dirty;        /* BIT(DirtyClient) = written since last cleared */
    _Atomic uint8_t dirty_clients; /* clients that track this block now */
    uint32_t flags;                /* RAM_* */
    struct RAMBlock *next;         /* list of all blocks */
    int fd;                        /* -1, or backing file */
} RAMBlock;

#define RAM_ROM      BIT(0) /* guest writes are ignored */
#define RAM_SHARED   BIT(1)
#define RAM_PREALLOC BIT(2)
#define RAM_MERGEABLE BIT(3) /* the host may merge equal pages (KSM), unless memory is locked */

/* HELPER_ONLY, start-up. Anonymous memory (zeroed), or fd's if fd >= 0. */
RAMBlock *ram_block_new(const char *idstr, uint64_t size, uint32_t flags, int fd, Error **errp);
void ram_block_free(RAMBlock *rb);
void ram_block_foreach(void (*fn)(RAMBlock *rb, void *opaque), void *opaque);
/*
 * RT_SAFE. Must be called after host code wrote [offset, offset+len) of rb other than through this
 * interface: marks dirty and invalidates code.
 */
void ram_block_written(RAMBlock *rb, uint64_t offset, uint64_t len);
/*
 * RT_SAFE. The slow half of a vCPU's store to a page whose code_map is not 0: called after the
 * bytes are stored. True: code was hit, every block decoded on the page is stale now.
 */
bool ram_block_code_hit(RAMBlock *rb, uint64_t offset, unsigned len);
/*
 * RT_SAFE (no wait; one membarrier(2) when a page gets its first code). Marks the granules of
 * [offset, offset+len), which lie in one page, as code; call it BEFORE the bytes are read for
 * decoding. *gen is what the block must remember: it is stale when code_gen of the page differs.
 * Do not read code_gen yourself instead. False: a store is hitting the page right now; decode and
 * execute the block once, then throw it away.
 */
QEMU_MUST_CHECK bool ram_block_code_mark(RAMBlock *rb, uint64_t offset, unsigned len,
                                         uint32_t *gen);
/*
 * RT_SAFE. May a store to this page bypass ram_block_written() as far as dirty tracking goes? A TLB
 * gives the page a write tag only if so (code is asked at each store); otherwise the store takes
 * the slow path, which marks the page.
 */
static inline bool ram_page_write_untracked(const RAMBlock *rb, uint64_t page)
{
    uint8_t clients = atomic_load_explicit(&rb->dirty_clients, memory_order_relaxed);
    uint8_t d = clients ? atomic_load_explicit(&rb->dirty[page], memory_order_relaxed) : 0;
    return (d & clients) == clients;
}
/* RT_SAFE. ram_block_written() without the code half; for stores that did that half themselves. */
void ram_block_set_dirty(RAMBlock *rb, uint64_t offset, uint64_t len);
/*
 * Set by an accelerator whose vCPUs cache write permission: makes every vCPU drop it (flush its
 * TLB) and returns when all have. Called after dirty bits were cleared or a client was added.
 */
void ram_dirty_set_flush_hook(void (*flush)(void));
/*
 * Set by an accelerator that keeps the vCPUs' dirty pages elsewhere (KVM): moves what it knows of
 * rb here (ram_block_set_dirty()). Called before dirty bits are read. The flush hook tells it,
 * besides, that a block's dirty_clients may have changed.
 */
void ram_dirty_set_pull_hook(void (*pull)(RAMBlock *rb));
/* Starts or stops tracking for a client; HELPER_ONLY. Starting clears its bits. */
void ram_dirty_track(DirtyClient client, bool on);
/*
 * Reads and clears; HELPER_ONLY. bitmap (NULL allowed) has one bit a page, bit 0 = first_page, and
 * bits are only set, never cleared. Returns the number of dirty pages. Bytes read after the return
 * are at least as new as what made a page dirty.
 */
uint64_t ram_dirty_sync(RAMBlock *rb, DirtyClient client, uint64_t first_page, uint64_t npages,
                        uint64_t *bitmap);

/* ---- Regions ---- */

/*
 * Handlers of an I/O region. They get the offset in the region and a size of 1, 2, 4 or 8 bytes;
 * they are called with no lock held, on any vCPU's thread or an EVENT thread, several at once: the
 * device takes its own lock. Accesses outside valid.* read as all ones and are dropped when
 * written. An access wider than impl_max is split, a narrower one than impl_min is widened to the
 * aligned unit that holds it (reads: the lane is taken out; writes: the other lanes are zero).
 * An access that is not aligned to its size is split into aligned ones unless `unaligned`. 0 means
 * 1 resp. 8 (4 for ports). An access over the border of two ranges is split at the border first.
 */
typedef struct MemoryRegionOps {
    uint64_t (*read)(void *opaque, hwaddr offset, unsigned size);
    void (*write)(void *opaque, hwaddr offset, uint64_t value, unsigned size);
    uint8_t valid_min, valid_max;
    uint8_t impl_min, impl_max;
    bool unaligned; /* accesses not aligned to their size reach the device whole */
} MemoryRegionOps;

typedef enum RegionKind {
    REGION_CONTAINER,
    REGION_RAM,   /* RAM, or ROM when the block or region is read-only */
    REGION_IO,
    REGION_ROMD,  /* reads come from RAM, writes go to ops (flash) */
    REGION_ALIAS,
} RegionKind;

/* Embedded by its owner. Fields are private to memory/ except for reading. */
struct MemoryRegion {
    const char *name;
    RegionKind kind;
    uint64_t size; /* bytes; UINT64_MAX = 2^64 */
    const MemoryRegionOps *ops;
    void *opaque;
    RAMBlock *ram;
    uint64_t ram_offset;
    MemoryRegion *alias;
    hwaddr alias_offset;
    bool readonly;
    bool enabled;
    bool coalesced;
    int priority;
    hwaddr addr; /* in its container */
    MemoryRegion *container;
    MemoryRegion *first_child, *next_sibling; /* by descending priority */
};

/* All region editing: HELPER_ONLY at start-up; later from the guest's own reconfiguration (PCI
 * BARs, PAM) on a vCPU thread, where memory/ allocates inside rtcheck_allow_begin/end. Takes the
 * MEMMAP lock. name is borrowed. */
void memory_region_init_container(MemoryRegion *mr, const char *name, uint64_t size);
void memory_region_init_io(MemoryRegion *mr, const MemoryRegionOps *ops, void *opaque,
                           const char *name, uint64_t size);
void memory_region_init_ram(MemoryRegion *mr, RAMBlock *rb, const char *name);
/* ROM backed by rb: guest writes are dropped. */
void memory_region_init_rom(MemoryRegion *mr, RAMBlock *rb, const char *name);
void memory_region_init_romd(MemoryRegion *mr, RAMBlock *rb, const MemoryRegionOps *ops,
                             void *opaque, const char *name);
void memory_region_init_alias(MemoryRegion *mr, const char *name, MemoryRegion *target,
                              hwaddr offset, uint64_t size);
/* Higher priority wins where ranges overlap; equal priorities: the later added wins. */
void memory_region_add_subregion(MemoryRegion *container, hwaddr addr, MemoryRegion *mr,
                                 int priority);
void memory_region_del_subregion(MemoryRegion *container, MemoryRegion *mr);
/* The name of an enabled child that has one of first..last, and where it is; NULL: all are free. */
const char *memory_region_taken(MemoryRegion *container, hwaddr first, hwaddr last, hwaddr *from,
                                hwaddr *to);
void memory_region_set_enabled(MemoryRegion *mr, bool enabled);
void memory_region_set_readonly(MemoryRegion *mr, bool readonly);
void memory_region_set_address(MemoryRegion *mr, hwaddr addr);
/* Nested; one publication at the outermost commit. */
void memory_transaction_begin(void);
void memory_transaction_commit(void);

/* ---- Address spaces ---- */

extern AddressSpace address_space_memory;
extern AddressSpace address_space_io;
/* The root containers of the two, made by memory_init(). */
MemoryRegion *memory_root(void);
MemoryRegion *io_root(void);
void memory_init(void);

/* One range of a published table. */
typedef struct FlatRange {
    hwaddr addr;
    uint64_t size;
    MemoryRegion *mr;
    uint64_t offset; /* of addr in mr; for RAM: in mr->ram */
    bool readonly;
} FlatRange;

/* Result of access to something that is not there. */
typedef enum MemTxResult {
    MEMTX_OK = 0,
    MEMTX_DECODE_ERROR = 1, /* no region: reads give all ones */
} MemTxResult;

/*
 * RT_SAFE. Access by the CPU or by a device's DMA; any length and alignment, RAM and I/O mixed.
 * RAM written this way is marked dirty and code in it invalidated. Accesses to RAM of 1, 2, 4, 8
 * bytes that are aligned are single-copy atomic.
 */
MemTxResult address_space_read(AddressSpace *as, hwaddr addr, void *buf, uint64_t len);
MemTxResult address_space_write(AddressSpace *as, hwaddr addr, const void *buf, uint64_t len);
/* Writes ROM too; for loaders. */
MemTxResult address_space_write_rom(AddressSpace *as, hwaddr addr, const void *buf, uint64_t len);
/* RT_SAFE. One access of 1, 2, 4 or 8 bytes, little endian; the path of IN/OUT and MMIO. */
uint64_t address_space_load(AddressSpace *as, hwaddr addr, unsigned size);
void address_space_store(AddressSpace *as, hwaddr addr, uint64_t value, unsigned size);

/* Little-endian helpers on physical memory (RT_SAFE). */
static inline uint32_t ldl_phys(hwaddr a)
{
    return (uint32_t)address_space_load(&address_space_memory, a, 4);
}
static inline uint64_t ldq_phys(hwaddr a)
{
    return address_space_load(&address_space_memory, a, 8);
}
static inline void stl_phys(hwaddr a, uint32_t v)
{
    address_space_store(&address_space_memory, a, v, 4);
}
static inline void stq_phys(hwaddr a, uint64_t v)
{
    address_space_store(&address_space_memory, a, v, 8);
}

/* RT_SAFE, inside memory_read_lock(). The range that holds addr; false if none. */
bool address_space_lookup(AddressSpace *as, hwaddr addr, FlatRange *out);
/*
 * RT_SAFE, inside memory_read_lock(). Host address of [addr, addr+*len) if it is RAM (for write:
 * writable RAM); shortens *len to what is contiguous. NULL if it is not RAM.
 */
void *address_space_map_ram(AddressSpace *as, hwaddr addr, uint64_t *len, bool write,
                            RAMBlock **rb, uint64_t *rb_offset);

/* RT_SAFE: liburcu read side; nests, wait-free. A vCPU holds it while it runs guest code and drops
 * it when it halts or leaves; other users hold it for a bounded time. */
void memory_read_lock(void);
void memory_read_unlock(void);
/* Each EVENT and VCPU thread registers when it starts. A thread that did not is registered at its
 * first memory_read_lock() (not RT_SAFE that once). Unregistering is implied by thread exit. */
void memory_thread_register(void);
void memory_thread_unregister(void);
/* HELPER_ONLY, not inside memory_read_lock(). Waits until no reader can see a map older than now:
 * after memory_region_del_subregion() and this a region may be freed. */
void memory_synchronize(void);

/* ---- Listeners: accelerators that mirror the map (KVM slots) or cache it (TLBs) ---- */

typedef struct MemoryListener {
    AddressSpace *as;
    /* Called with the MEMMAP lock held, removals before additions, between begin and commit. */
    void (*begin)(struct MemoryListener *l);
    void (*range_del)(struct MemoryListener *l, const FlatRange *r);
    void (*range_add)(struct MemoryListener *l, const FlatRange *r);
    void (*commit)(struct MemoryListener *l); /* the new table is published */
    struct MemoryListener *next;
} MemoryListener;

void memory_listener_register(MemoryListener *l);

/* `info mtree`: prints tree and flat tables through the callback. HELPER_ONLY. */
void memory_print(void (*print)(void *opaque, const char *line), void *opaque, bool flat);

#endif
