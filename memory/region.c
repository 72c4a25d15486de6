/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tree of regions, transactions, and the two address spaces. Edits hold the MEMMAP lock from
 * the outermost memory_transaction_begin() to its commit.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "memory-internal.h"

AddressSpace address_space_memory = { .name = "memory" };
AddressSpace address_space_io = { .name = "I/O", .is_io = true };

static QemuMutex map_lock;
static __thread unsigned transaction_depth;

void memory_map_lock(void)
{
    qemu_mutex_lock(&map_lock);
}

void memory_map_unlock(void)
{
    qemu_mutex_unlock(&map_lock);
}

/* ---- Transactions ---- */

void memory_transaction_begin(void) NO_TSA;
void memory_transaction_begin(void)
{
    if (transaction_depth++ == 0) {
        memory_map_lock();
        rtcheck_allow_begin();
    }
}

static void publish_if_changed(AddressSpace *as)
{
    if (as->changed) {
        as->changed = false;
        flatview_publish(as, flatview_build(as));
    }
}

void memory_transaction_commit(void) NO_TSA;
void memory_transaction_commit(void)
{
    assert(transaction_depth > 0);
    if (transaction_depth == 1) {
        publish_if_changed(&address_space_memory);
        publish_if_changed(&address_space_io);
        rtcheck_allow_end();
        memory_map_unlock();
        memory_throttle();
    }
    transaction_depth--;
}

/* mr is about to change or has changed: which address spaces may look different? */
static void mark_changed(const MemoryRegion *mr)
{
    while (mr->container) {
        mr = mr->container;
    }
    /* A tree without a root may be seen through an alias from anywhere. */
    if (mr != &address_space_io.root) {
        address_space_memory.changed = true;
    }
    if (mr != &address_space_memory.root) {
        address_space_io.changed = true;
    }
}

/* ---- Making regions ---- */

static void region_init(MemoryRegion *mr, RegionKind kind, const char *name, uint64_t size)
{
    *mr = (MemoryRegion){ .name = name, .kind = kind, .size = size, .enabled = true };
}

void memory_region_init_container(MemoryRegion *mr, const char *name, uint64_t size)
{
    region_init(mr, REGION_CONTAINER, name, size);
}

void memory_region_init_io(MemoryRegion *mr, const MemoryRegionOps *ops, void *opaque,
                           const char *name, uint64_t size)
{
    region_init(mr, REGION_IO, name, size);
    mr->ops = ops;
    mr->opaque = opaque;
}

void memory_region_init_ram(MemoryRegion *mr, RAMBlock *rb, const char *name)
{
    region_init(mr, REGION_RAM, name, rb->size);
    mr->ram = rb;
}

void memory_region_init_rom(MemoryRegion *mr, RAMBlock *rb, const char *name)
{
    memory_region_init_ram(mr, rb, name);
    mr->readonly = true;
}

void memory_region_init_romd(MemoryRegion *mr, RAMBlock *rb, const MemoryRegionOps *ops,
                             void *opaque, const char *name)
{
    region_init(mr, REGION_ROMD, name, rb->size);
    mr->ram = rb;
    mr->ops = ops;
    mr->opaque = opaque;
}

void memory_region_init_alias(MemoryRegion *mr, const char *name, MemoryRegion *target,
                              hwaddr offset, uint64_t size)
{
    region_init(mr, REGION_ALIAS, name, size);
    mr->alias = target;
    mr->alias_offset = offset;
}

/* ---- Editing the tree ---- */

void memory_region_add_subregion(MemoryRegion *container, hwaddr addr, MemoryRegion *mr,
                                 int priority)
{
    assert(!mr->container && mr != container);
    memory_transaction_begin();
    mr->addr = addr;
    mr->priority = priority;
    mr->container = container;
    MemoryRegion **p = &container->first_child;
    while (*p && (*p)->priority > priority) {
        p = &(*p)->next_sibling;
    }
    mr->next_sibling = *p;
    *p = mr;
    mark_changed(mr);
    memory_transaction_commit();
}

void memory_region_del_subregion(MemoryRegion *container, MemoryRegion *mr)
{
    assert(mr->container == container);
    memory_transaction_begin();
    mark_changed(mr);
    MemoryRegion **p = &container->first_child;
    while (*p != mr) {
        p = &(*p)->next_sibling;
    }
    *p = mr->next_sibling;
    mr->next_sibling = NULL;
    mr->container = NULL;
    memory_transaction_commit();
}

const char *memory_region_taken(MemoryRegion *container, hwaddr first, hwaddr last, hwaddr *from,
                                hwaddr *to)
{
    const char *name = NULL;

    memory_map_lock();
    for (const MemoryRegion *mr = container->first_child; mr && !name; mr = mr->next_sibling) {
        if (mr->enabled && mr->addr <= last && first <= mr->addr + (mr->size - 1)) {
            name = mr->name;
            *from = mr->addr;
            *to = mr->addr + (mr->size - 1);
        }
    }
    memory_map_unlock();
    return name;
}

void memory_region_set_enabled(MemoryRegion *mr, bool enabled)
{
    memory_transaction_begin();
    if (mr->enabled != enabled) {
        mr->enabled = enabled;
        mark_changed(mr);
    }
    memory_transaction_commit();
}

void memory_region_set_readonly(MemoryRegion *mr, bool readonly)
{
    memory_transaction_begin();
    if (mr->readonly != readonly) {
        mr->readonly = readonly;
        mark_changed(mr);
    }
    memory_transaction_commit();
}

void memory_region_set_address(MemoryRegion *mr, hwaddr addr)
{
    memory_transaction_begin();
    if (mr->addr != addr) {
        mr->addr = addr;
        mark_changed(mr);
    }
    memory_transaction_commit();
}

/* ---- Address spaces ---- */

MemoryRegion *memory_root(void)
{
    return &address_space_memory.root;
}

MemoryRegion *io_root(void)
{
    return &address_space_io.root;
}

void memory_listener_register(MemoryListener *l) NO_TSA;
void memory_listener_register(MemoryListener *l)
{
    AddressSpace *as = l->as;

    assert(transaction_depth == 0);
    memory_map_lock();
    l->next = as->listeners;
    as->listeners = l;
    const FlatView *v = atomic_load(&as->view);
    if (l->begin) {
        l->begin(l);
    }
    for (uint32_t i = 0; l->range_add && i < v->n; i++) {
        l->range_add(l, &v->r[i]);
    }
    if (l->commit) {
        l->commit(l);
    }
    memory_map_unlock();
}

void memory_init(void)
{
    static bool done;

    if (done) {
        return;
    }
    done = true;
    qemu_mutex_init(&map_lock, LOCK_RANK_MEMMAP, "memory-map");
    ram_init();
    memory_rcu_init();
    memory_region_init_container(&address_space_memory.root, "system", UINT64_MAX);
    memory_region_init_container(&address_space_io.root, "io", 0x10000);
    atomic_store(&address_space_memory.view, flatview_build(&address_space_memory));
    atomic_store(&address_space_io.view, flatview_build(&address_space_io));
}
