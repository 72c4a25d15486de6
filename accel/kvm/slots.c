/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM: guest memory. The map's RAM ranges are mirrored as memory slots, its coalesced I/O ranges as
 * zones; the kernel's dirty log is moved to the RAM blocks that are being tracked.
 *
 * A slot cannot be changed, only deleted and made again, and in between a vCPU that touches it
 * would see an access to nothing (a PAM register splits the block the firmware runs from). So while
 * slots are deleted no vCPU is inside KVM_RUN: `gate` is closed, those inside are kicked, those
 * that come wait on the slot lock, whose owner inherits their priority.
 */
#include "accel/kvm/kvm-internal.h"

#include <glib.h>
#include <string.h>
#include "qemu/runstate.h"

typedef struct Slot {
    FlatRange r; /* as the map has it; size 0: free */
    hwaddr start;
    uint64_t size;      /* whole pages of r */
    uint64_t rb_offset; /* of start */
    uint32_t flags;     /* KVM_MEM_* in force */
} Slot;

static QemuMutex slots_lock; /* guards all of this but the gate's atomics and the ring */
static Slot *slots;
static unsigned slots_used; /* ids below this may be in use */
static FlatRange *dels, *adds;
static unsigned ndels, nadds, changes_size;

static atomic_bool gate_closed;
static EventWord gate_event; /* a vCPU left KVM_RUN while the gate was closed */

static QemuMutex coalesced_lock; /* guards taking from the ring: order of the guest's writes */

/* ---- The gate ---- */

bool kvm_run_enter(KvmVcpu *v)
{
    atomic_store(&v->in_run, true);
    if (likely(!atomic_load(&gate_closed))) {
        return true;
    }
    kvm_run_leave(v);
    qemu_mutex_lock(&slots_lock);
    qemu_mutex_unlock(&slots_lock);
    return false;
}

void kvm_run_leave(KvmVcpu *v)
{
    atomic_store(&v->in_run, false);
    if (unlikely(atomic_load(&gate_closed))) {
        event_word_set(&gate_event, 1);
    }
}

/* Some other vCPU is inside KVM_RUN; it is asked to leave. */
static bool kick_inside(void)
{
    bool inside = false;

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);
        KvmVcpu *v = cpu ? kvm_vcpu(cpu) : NULL;

        if (v && cpu != current_cpu && atomic_load(&v->in_run)) {
            kvm_vcpu_kick(cpu);
            inside = true;
        }
    }
    return inside;
}

static void close_gate(void)
{
    atomic_store(&gate_closed, true);
    event_word_take(&gate_event);
    while (kick_inside()) {
        event_word_wait(&gate_event, INT64_MAX);
        event_word_take(&gate_event);
    }
}

static void open_gate(void)
{
    atomic_store(&gate_closed, false);
}

/* ---- Slots ---- */

static uint32_t wanted_flags(const FlatRange *r)
{
    const RAMBlock *rb = r->mr->ram;
    uint32_t flags = 0;

    if (r->readonly || r->mr->kind == REGION_ROMD || (rb->flags & RAM_ROM)) {
        flags |= KVM_MEM_READONLY;
    } else if (atomic_load(&rb->dirty_clients)) {
        flags |= KVM_MEM_LOG_DIRTY_PAGES;
    }
    return flags;
}

static void set_slot(unsigned id, uint64_t size)
{
    const Slot *s = &slots[id];
    struct kvm_userspace_memory_region region = {
        .slot = id,
        .flags = s->flags,
        .guest_phys_addr = s->start,
        .memory_size = size,
        .userspace_addr = (uintptr_t)(s->r.mr->ram->host + s->rb_offset),
    };
    int r = kvm_ioctl(kvm.vm_fd, KVM_SET_USER_MEMORY_REGION, &region);

    if (r < 0) {
        rtcheck_allow_begin();
        error_report("KVM: memory slot %u (%s, %#llx bytes at %#llx): %s; the machine is paused", id,
                     s->r.mr->name, (unsigned long long)size, (unsigned long long)s->start,
                     g_strerror(-r));
        rtcheck_allow_end();
        qemu_system_vmstop_request(RUN_STATE_INTERNAL_ERROR);
    }
}

static void add_slot(const FlatRange *r)
{
    hwaddr start = ROUND_UP(r->addr, TARGET_PAGE_SIZE);
    hwaddr end = ROUND_DOWN(r->addr + r->size, TARGET_PAGE_SIZE);
    unsigned id = 0;

    /* Less than a page, or not congruent with its host memory: accesses come out as MMIO. */
    if (start >= end || ((r->offset + (start - r->addr)) & ~TARGET_PAGE_MASK)) {
        return;
    }
    while (id < slots_used && slots[id].r.size) {
        id++;
    }
    if (id == kvm.max_slots) {
        return; /* as above: slow, and right */
    }
    slots_used = MAX(slots_used, id + 1);
    slots[id] = (Slot){
        .r = *r,
        .start = start,
        .size = end - start,
        .rb_offset = r->offset + (start - r->addr),
        .flags = wanted_flags(r),
    };
    set_slot(id, slots[id].size);
}

/* The kernel's log of a slot goes to its block. */
static void pull_slot(unsigned id)
{
    Slot *s = &slots[id];
    uint64_t pages = s->size >> TARGET_PAGE_BITS;
    struct kvm_dirty_log log = { .slot = id };
    uint64_t *bits;

    rtcheck_allow_begin(); /* also when a guest edits its map while it is being logged */
    bits = g_malloc0(DIV_ROUND_UP(pages, 64) * 8);
    log.dirty_bitmap = bits;

    if (kvm_ioctl(kvm.vm_fd, KVM_GET_DIRTY_LOG, &log) == 0) {
        for (uint64_t w = 0; w < DIV_ROUND_UP(pages, 64); w++) {
            for (uint64_t m = bits[w]; m; m &= m - 1) {
                uint64_t page = w * 64 + (unsigned)__builtin_ctzll(m);

                ram_block_set_dirty(s->r.mr->ram, s->rb_offset + (page << TARGET_PAGE_BITS),
                                    TARGET_PAGE_SIZE);
            }
        }
    }
    g_free(bits);
    rtcheck_allow_end();
}

static void del_slot(const FlatRange *r)
{
    for (unsigned id = 0; id < slots_used; id++) {
        Slot *s = &slots[id];

        if (s->r.size && s->r.addr == r->addr && s->r.size == r->size && s->r.mr == r->mr) {
            if (s->flags & KVM_MEM_LOG_DIRTY_PAGES) {
                pull_slot(id);
            }
            set_slot(id, 0);
            *s = (Slot){ 0 };
            return;
        }
    }
}

/* ---- Coalesced I/O ---- */

static void set_zone(const FlatRange *r, bool add)
{
    struct kvm_coalesced_mmio_zone z = { .addr = r->addr, .size = (uint32_t)r->size };

    if (kvm.coalesced_page && r->mr->coalesced) {
        kvm_ioctl(kvm.vm_fd, add ? KVM_REGISTER_COALESCED_MMIO : KVM_UNREGISTER_COALESCED_MMIO, &z);
    }
}

void kvm_flush_coalesced(void)
{
    struct kvm_run *run = current_cpu && kvm_vcpu(current_cpu) ? kvm_vcpu(current_cpu)->run : NULL;
    struct kvm_coalesced_mmio_ring *ring;
    unsigned max;

    if (!run || !kvm.coalesced_page) {
        return;
    }
    ring = (void *)((char *)run + kvm.coalesced_page * TARGET_PAGE_SIZE); /* one for the VM */
    if (likely(__atomic_load_n(&ring->last, __ATOMIC_ACQUIRE) ==
               __atomic_load_n(&ring->first, __ATOMIC_RELAXED))) {
        return;
    }
    max = (TARGET_PAGE_SIZE - sizeof(*ring)) / sizeof(ring->coalesced_mmio[0]);
    QEMU_LOCK_GUARD(&coalesced_lock);
    while (ring->first != __atomic_load_n(&ring->last, __ATOMIC_ACQUIRE)) {
        struct kvm_coalesced_mmio e = ring->coalesced_mmio[ring->first];

        address_space_write(e.pio ? &address_space_io : &address_space_memory, e.phys_addr, e.data,
                            e.len);
        __atomic_store_n(&ring->first, (ring->first + 1) % max, __ATOMIC_RELEASE);
    }
}

/* ---- The map's listener: changes are collected and carried out at commit ---- */

static void note(FlatRange **list, unsigned *n, const FlatRange *r)
{
    if (*n == changes_size) {
        changes_size *= 2;
        rtcheck_allow_begin();
        dels = g_renew(FlatRange, dels, changes_size);
        adds = g_renew(FlatRange, adds, changes_size);
        rtcheck_allow_end();
    }
    (*list)[(*n)++] = *r;
}

static void listener_begin(MemoryListener *l)
{
    ndels = nadds = 0;
}

static void listener_del(MemoryListener *l, const FlatRange *r)
{
    note(&dels, &ndels, r);
}

static void listener_add(MemoryListener *l, const FlatRange *r)
{
    note(&adds, &nadds, r);
}

static bool is_ram(const FlatRange *r)
{
    return r->mr->kind == REGION_RAM || r->mr->kind == REGION_ROMD;
}

static void listener_commit(MemoryListener *l)
{
    bool deletes = false;

    for (unsigned i = 0; i < ndels; i++) {
        deletes |= is_ram(&dels[i]);
    }
    QEMU_LOCK_GUARD(&slots_lock);
    if (deletes) {
        close_gate();
    }
    for (unsigned i = 0; i < ndels; i++) {
        if (is_ram(&dels[i])) {
            del_slot(&dels[i]);
        } else {
            set_zone(&dels[i], false);
        }
    }
    for (unsigned i = 0; i < nadds; i++) {
        if (is_ram(&adds[i])) {
            add_slot(&adds[i]);
        } else {
            set_zone(&adds[i], true);
        }
    }
    if (deletes) {
        open_gate();
    }
}

/* ---- Dirty log ---- */

static void pull_block(RAMBlock *rb)
{
    QEMU_LOCK_GUARD(&slots_lock);
    for (unsigned id = 0; id < slots_used; id++) {
        if (slots[id].r.size && slots[id].r.mr->ram == rb &&
            (slots[id].flags & KVM_MEM_LOG_DIRTY_PAGES)) {
            pull_slot(id);
        }
    }
}

/* Logging goes on or off with the block's clients; a flag may change in a living slot. */
static void update_flags(void)
{
    QEMU_LOCK_GUARD(&slots_lock);
    for (unsigned id = 0; id < slots_used; id++) {
        Slot *s = &slots[id];

        if (s->r.size && s->flags != wanted_flags(&s->r)) {
            s->flags = wanted_flags(&s->r);
            set_slot(id, s->size);
        }
    }
}

static MemoryListener listener = {
    .as = &address_space_memory,
    .begin = listener_begin,
    .range_del = listener_del,
    .range_add = listener_add,
    .commit = listener_commit,
};

bool kvm_slots_init(Error **errp)
{
    changes_size = 64;
    dels = g_new(FlatRange, changes_size);
    adds = g_new(FlatRange, changes_size);
    slots = g_new0(Slot, kvm.max_slots);
    qemu_mutex_init(&slots_lock, LOCK_RANK_SLOTS, "kvm slots");
    qemu_mutex_init(&coalesced_lock, LOCK_RANK_COALESCED, "kvm coalesced");
    ram_dirty_set_pull_hook(pull_block);
    ram_dirty_set_flush_hook(update_flags);
    memory_listener_register(&listener);
    return true;
}
