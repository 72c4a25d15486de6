/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who is addressed: tables from destinations to sets of local APICs, so that a message costs a few
 * loads however many vCPUs there are (SDM 3A 11.6.2).
 *
 * A row is a bit set indexed by vCPU. Each APIC changes only its own bit, with atomic operations:
 * first it enters its new rows, then it leaves those it no longer belongs to, so that a message
 * sent meanwhile finds it.
 */
#include "hw/intc/apic-internal.h"

#define PHYS_IDS 4096 /* more than any topology of MAX_CPUS vCPUs makes */
#define CLUSTERS 15   /* xAPIC cluster model; 15 means all */

typedef struct Row {
    _Atomic uint64_t w[APIC_SET_WORDS];
} Row;

static Row phys_rows[PHYS_IDS];    /* by id: 8 bits in xAPIC mode, 32 in x2APIC mode */
static Row flat_rows[8];           /* by LDR bit */
static Row cluster_rows[CLUSTERS][4];
static Row enabled_row;            /* all that IA32_APIC_BASE enables */
static Row x2_row;                 /* those in x2APIC mode */
static Row lint0_row;              /* those that listen to LINT0 */
static _Atomic(LocalApic *) apics[MAX_CPUS];

LocalApic *apic_by_index(unsigned index)
{
    return index < MAX_CPUS ? atomic_load_explicit(&apics[index], memory_order_acquire) : NULL;
}

void apic_set_by_index(unsigned index, LocalApic *a)
{
    atomic_store(&apics[index], a);
}

static void row_put(Row *row, const LocalApic *a, bool member)
{
    unsigned i = a->cpu->index;

    if (member) {
        atomic_fetch_or(&row->w[i / 64], BIT64(i % 64));
    } else {
        atomic_fetch_and(&row->w[i / 64], ~BIT64(i % 64));
    }
}

static void set_add_row(ApicSet *s, const Row *row)
{
    for (unsigned i = 0; i < APIC_SET_WORDS; i++) {
        s->w[i] |= atomic_load_explicit(&row->w[i], memory_order_acquire);
    }
}

static void set_and_row(ApicSet *s, const Row *row)
{
    for (unsigned i = 0; i < APIC_SET_WORDS; i++) {
        s->w[i] &= atomic_load_explicit(&row->w[i], memory_order_acquire);
    }
}

int apic_set_pop(ApicSet *s)
{
    for (unsigned i = 0; i < APIC_SET_WORDS; i++) {
        if (s->w[i]) {
            int bit = __builtin_ctzll(s->w[i]);

            s->w[i] &= s->w[i] - 1;
            return (int)(i * 64) + bit;
        }
    }
    return -1;
}

/* ---- Keeping the tables ---- */

static void move_bits(Row *rows, unsigned n, const LocalApic *a, uint8_t from, uint8_t to,
                      bool entering)
{
    uint8_t change = entering ? to & (uint8_t)~from : from & (uint8_t)~to;

    for (unsigned i = 0; i < n; i++) {
        if (change & BIT(i)) {
            row_put(&rows[i], a, entering);
        }
    }
}

void apic_dest_update(LocalApic *a)
{
    bool enabled = apic_enabled(a), x2 = apic_is_x2(a);
    bool flat = (a->dfr >> 28) == 0xf;
    uint8_t logical = (uint8_t)(a->ldr >> 24);
    int32_t phys = enabled ? (int32_t)(x2 ? a->x2id : a->xid >> 24) : -1;
    int32_t old_phys = a->row_phys, old_cluster = a->row_cluster;
    bool xapic = enabled && !x2;
    uint8_t flat_bits = xapic && flat ? logical : 0;
    int32_t cluster = xapic && !flat && (logical >> 4) < CLUSTERS ? logical >> 4 : -1;
    uint8_t cluster_bits = cluster >= 0 ? logical & 0xf : 0;
    uint8_t old_cluster_bits = a->row_cluster_bits;

    if (phys >= PHYS_IDS) {
        phys = -1;
    }
    row_put(&x2_row, a, x2);
    if (phys >= 0) {
        row_put(&phys_rows[phys], a, true);
    }
    move_bits(flat_rows, 8, a, a->row_flat_bits, flat_bits, true);
    if (cluster >= 0) {
        move_bits(cluster_rows[cluster], 4, a, 0, cluster_bits, true);
    }
    row_put(&enabled_row, a, enabled);

    if (old_phys >= 0 && old_phys != phys) {
        row_put(&phys_rows[old_phys], a, false);
    }
    move_bits(flat_rows, 8, a, a->row_flat_bits, flat_bits, false);
    if (old_cluster >= 0) {
        move_bits(cluster_rows[old_cluster], 4, a, old_cluster_bits,
                  old_cluster == cluster ? cluster_bits : 0, false);
    }
    a->row_phys = phys;
    a->row_flat_bits = flat_bits;
    a->row_cluster = cluster;
    a->row_cluster_bits = cluster_bits;
}

/* LINT0 reaches those whose entry is unmasked, and the processor whose APIC is off, where the pin
 * is INTR (SDM 3A 11.4.3). */
void apic_lint0_users_update(LocalApic *a)
{
    bool listens = apic_enabled(a) ? !(atomic_load(&a->lvt[APIC_LVT_LINT0]) & LVT_MASKED)
                                   : (atomic_load(&a->base) & APIC_BASE_BSP) != 0;

    row_put(&lint0_row, a, listens);
}

/* ---- Looking up ---- */

void apic_dest_all(ApicSet *out)
{
    *out = (ApicSet){ 0 };
    set_add_row(out, &enabled_row);
}

void apic_lint0_users(ApicSet *out)
{
    *out = (ApicSet){ 0 };
    set_add_row(out, &lint0_row);
}

/* Logical x2APIC id: cluster in bits 31:16, one bit of 16 for each member; it follows from the
 * physical id (SDM 3A 11.12.10.2). */
static void lookup_x2_logical(ApicSet *out, uint32_t dest)
{
    uint32_t first = dest >> 16 << 4;

    if (first >= PHYS_IDS) {
        return;
    }
    for (unsigned i = 0; i < 16; i++) {
        if (dest & BIT(i)) {
            set_add_row(out, &phys_rows[first + i]);
        }
    }
    set_and_row(out, &x2_row);
}

void apic_dest_lookup(ApicSet *out, uint32_t dest, bool logical, bool wide)
{
    *out = (ApicSet){ 0 };
    if (dest == (wide ? UINT32_MAX : 0xff)) {
        set_add_row(out, &enabled_row);
        return;
    }
    if (!logical) {
        if (dest < PHYS_IDS) {
            set_add_row(out, &phys_rows[dest]);
        }
        return;
    }
    lookup_x2_logical(out, dest);
    if (dest > 0xff) {
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        if (dest & BIT(i)) {
            set_add_row(out, &flat_rows[i]);
        }
    }
    for (unsigned cluster = 0; cluster < CLUSTERS; cluster++) {
        if (dest >> 4 != cluster && dest >> 4 != 0xf) {
            continue;
        }
        for (unsigned i = 0; i < 4; i++) {
            if (dest & BIT(i)) {
                set_add_row(out, &cluster_rows[cluster][i]);
            }
        }
    }
}
