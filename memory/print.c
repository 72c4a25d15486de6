/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `info mtree` and `info mtree -f`. The text is made under the MEMMAP lock and printed after it
 * is released, so a slow terminal holds up nobody.
 */
#include <glib.h>
#include <inttypes.h>
#include <string.h>
#include "memory-internal.h"

typedef struct Printer {
    GPtrArray *lines;
    GPtrArray *targets; /* of aliases, printed apart if they are in no address space */
} Printer;

G_GNUC_PRINTF(2, 3)
static void emit(Printer *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_ptr_array_add(p->lines, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

static const char *kind_name(const MemoryRegion *mr, bool readonly)
{
    switch (mr->kind) {
    case REGION_RAM:
        return readonly || mr->readonly || (mr->ram->flags & RAM_ROM) ? "rom" : "ram";
    case REGION_ROMD:
        return "romd";
    case REGION_ALIAS:
        return kind_name(mr->alias, readonly || mr->readonly);
    default:
        return "i/o";
    }
}

static hwaddr last_of(hwaddr start, uint64_t size)
{
    hwaddr last = start + (size == UINT64_MAX ? UINT64_MAX : size - 1);
    return last < start ? UINT64_MAX : last;
}

static int by_address(const void *a, const void *b)
{
    const MemoryRegion *x = *(MemoryRegion *const *)a, *y = *(MemoryRegion *const *)b;
    if (x->addr != y->addr) {
        return x->addr < y->addr ? -1 : 1;
    }
    return y->priority - x->priority;
}

static void print_region(Printer *p, const MemoryRegion *mr, hwaddr base, unsigned indent)
{
    if (!mr->enabled || indent > 64) {
        return;
    }
    if (mr->kind == REGION_ALIAS) {
        emit(p, "%*s%016" PRIx64 "-%016" PRIx64 " (prio %d, %s): alias %s @%s %016" PRIx64
             "-%016" PRIx64, indent, "", base, last_of(base, mr->size), mr->priority,
             kind_name(mr, false), mr->name, mr->alias->name, mr->alias_offset,
             last_of(mr->alias_offset, mr->size));
        if (!g_ptr_array_find(p->targets, mr->alias, NULL)) {
            g_ptr_array_add(p->targets, mr->alias);
        }
        return;
    }
    emit(p, "%*s%016" PRIx64 "-%016" PRIx64 " (prio %d, %s): %s", indent, "", base,
         last_of(base, mr->size), mr->priority, kind_name(mr, false), mr->name);
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (MemoryRegion *c = mr->first_child; c; c = c->next_sibling) {
        g_ptr_array_add(sorted, c);
    }
    g_ptr_array_sort(sorted, by_address);
    for (unsigned i = 0; i < sorted->len; i++) {
        const MemoryRegion *c = g_ptr_array_index(sorted, i);
        print_region(p, c, base + c->addr, indent + 2);
    }
}

static void print_tree(Printer *p)
{
    AddressSpace *const spaces[] = { &address_space_memory, &address_space_io };

    for (unsigned i = 0; i < ARRAY_SIZE(spaces); i++) {
        emit(p, "address-space: %s", spaces[i]->name);
        print_region(p, &spaces[i]->root, 0, 2);
        emit(p, "%s", "");
    }
    /* print_region() may append to the list that this walks. */
    for (unsigned i = 0; i < p->targets->len; i++) {
        const MemoryRegion *mr = g_ptr_array_index(p->targets, i);
        emit(p, "memory-region: %s", mr->name);
        print_region(p, mr, 0, 2);
        emit(p, "%s", "");
    }
}

static void print_flat(Printer *p)
{
    AddressSpace *const spaces[] = { &address_space_memory, &address_space_io };

    for (unsigned i = 0; i < ARRAY_SIZE(spaces); i++) {
        const FlatView *v = atomic_load(&spaces[i]->view);
        emit(p, "FlatView #%u", i);
        emit(p, " AS \"%s\", root: %s", spaces[i]->name, spaces[i]->root.name);
        emit(p, " Root memory region: %s", spaces[i]->root.name);
        for (uint32_t k = 0; k < v->n; k++) {
            const FlatRange *r = &v->r[k];
            g_autofree char *at =
                r->offset ? g_strdup_printf(" @%016" PRIx64, r->offset) : g_strdup("");
            emit(p, "  %016" PRIx64 "-%016" PRIx64 " (prio %d, %s): %s%s", r->addr,
                 flat_range_last(r), r->mr->priority, kind_name(r->mr, r->readonly), r->mr->name,
                 at);
        }
        if (v->n == 0) {
            emit(p, "  No rendered FlatView");
        }
        emit(p, "%s", "");
    }
}

void memory_print(void (*print)(void *opaque, const char *line), void *opaque, bool flat) NO_TSA;
void memory_print(void (*print)(void *opaque, const char *line), void *opaque, bool flat)
{
    Printer p = { .lines = g_ptr_array_new_with_free_func(g_free),
                  .targets = g_ptr_array_new() };

    memory_map_lock();
    if (flat) {
        print_flat(&p);
    } else {
        print_tree(&p);
    }
    memory_map_unlock();
    for (unsigned i = 0; i < p.lines->len; i++) {
        print(opaque, g_ptr_array_index(p.lines, i));
    }
    g_ptr_array_free(p.lines, TRUE);
    g_ptr_array_free(p.targets, TRUE);
}
