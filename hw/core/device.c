/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device types, instances, buses and machine-wide reset.
 *
 * tree_lock guards the lists (buses, devices, reset handlers). It is never held while a device's
 * own function runs: such walks go over a snapshot.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "hw/core/core-internal.h"

#define MAX_DEVICES  512 /* instances a machine can have; checked by device_realize() */
#define MAX_HANDLERS 64

/* Bounds of the linker section; weak, for programs without any device type. */
extern const DeviceType *const __start_qemu_devices[] __attribute__((weak));
extern const DeviceType *const __stop_qemu_devices[] __attribute__((weak));

static QemuMutex tree_lock;
static Bus system_bus;
static Bus *buses = &system_bus;
static DeviceState *all_devices;
static unsigned device_count;

typedef struct ResetHandler {
    void (*fn)(void *opaque);
    void *opaque;
} ResetHandler;
static ResetHandler reset_handlers[MAX_HANDLERS];
static unsigned reset_handler_count;

static void __attribute__((constructor)) device_tree_init(void)
{
    qemu_mutex_init(&tree_lock, LOCK_RANK_BUS, "device tree");
    system_bus.kind = "system";
    snprintf(system_bus.name, sizeof(system_bus.name), "main-system-bus");
}

/* ---- Types ---- */

void device_type_foreach(void (*fn)(const DeviceType *type, void *opaque), void *opaque)
{
    for (const DeviceType *const *p = __start_qemu_devices; p != __stop_qemu_devices; p++) {
        fn(*p, opaque);
    }
}

const DeviceType *device_type_find(const char *name)
{
    for (const DeviceType *const *p = __start_qemu_devices; p != __stop_qemu_devices; p++) {
        if (!strcmp((*p)->name, name)) {
            return *p;
        }
    }
    return NULL;
}

/* ---- Instances ---- */

DeviceState *device_new(const DeviceType *type)
{
    DeviceState *dev = g_malloc0(MAX(type->instance_size, sizeof(DeviceState)));

    dev->type = type;
    property_set_defaults(dev);
    device_apply_globals(dev);
    return dev;
}

DeviceState *device_new_named(const char *name)
{
    const DeviceType *type = device_type_find(name);

    if (!type) {
        error_setg(&error_abort, "no device type '%s' in this build", name);
    }
    return device_new(type);
}

void device_free(DeviceState *dev)
{
    property_free_all(dev);
    g_free(dev->id);
    g_free(dev);
}

static bool id_wellformed(const char *id)
{
    if (!g_ascii_isalpha(id[0])) {
        return false;
    }
    for (const char *p = id; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("-._", *p)) {
            return false;
        }
    }
    return true;
}

bool device_set_id(DeviceState *dev, const char *id, Error **errp)
{
    if (!id_wellformed(id)) {
        error_setg(errp, "Parameter 'id' expects an identifier (letters, digits, '-', '.', '_', "
                         "starting with a letter), not '%s'", id);
        return false;
    }
    if (device_find(id)) {
        error_setg(errp, "Duplicate ID '%s' for device", id);
        return false;
    }
    g_free(dev->id);
    dev->id = g_strdup(id);
    return true;
}

/* Upper case, for messages about buses. */
static Bus *bus_for(DeviceState *dev, Bus *bus, Error **errp)
{
    g_autofree char *kind = NULL;

    if (!bus) {
        bus = bus_find_kind(dev->type->bus);
        if (!bus) {
            kind = g_ascii_strup(dev->type->bus, -1);
            error_setg(errp, "No '%s' bus found for device '%s'", kind, dev->type->name);
        }
        return bus;
    }
    if (strcmp(bus->kind, dev->type->bus)) {
        kind = g_ascii_strup(bus->kind, -1);
        error_setg(errp, "Device '%s' can't go on %s bus", dev->type->name, kind);
        return NULL;
    }
    return bus;
}

static bool tree_link(DeviceState *dev, Error **errp)
{
    DeviceState **p;

    QEMU_LOCK_GUARD(&tree_lock);
    if (device_count == MAX_DEVICES) {
        error_setg(errp, "too many devices: this machine has room for %d", MAX_DEVICES);
        return false;
    }
    device_count++;
    for (p = &dev->bus->children; *p; p = &(*p)->next_sibling) {
    }
    *p = dev;
    for (p = &all_devices; *p; p = &(*p)->next_all) {
    }
    *p = dev;
    return true;
}

static void tree_unlink(DeviceState *dev)
{
    DeviceState **p;

    QEMU_LOCK_GUARD(&tree_lock);
    for (p = &dev->bus->children; *p && *p != dev; p = &(*p)->next_sibling) {
    }
    if (*p) {
        *p = dev->next_sibling;
    }
    for (p = &all_devices; *p && *p != dev; p = &(*p)->next_all) {
    }
    if (*p) {
        *p = dev->next_all;
        device_count--;
    }
}

bool device_realize(DeviceState *dev, Bus *bus, Error **errp)
{
    bus = bus_for(dev, bus, errp);
    if (!bus) {
        device_free(dev);
        return false;
    }
    dev->bus = bus;
    if (bus->attach && !bus->attach(bus, dev, errp)) {
        device_free(dev);
        return false;
    }
    if (dev->type->realize && !dev->type->realize(dev, errp)) {
        goto fail_bus;
    }
    if (!tree_link(dev, errp)) {
        if (dev->type->unrealize) {
            dev->type->unrealize(dev);
        }
        goto fail_bus;
    }
    dev->realized = true;
    if (dev->type->reset) {
        dev->type->reset(dev);
    }
    return true;

fail_bus:
    if (bus->detach) {
        bus->detach(bus, dev);
    }
    device_free(dev);
    return false;
}

void device_unrealize(DeviceState *dev)
{
    tree_unlink(dev);
    dev->realized = false;
    if (dev->type->unrealize) {
        dev->type->unrealize(dev);
    }
    if (dev->bus->detach) {
        dev->bus->detach(dev->bus, dev);
    }
    device_free(dev);
}

DeviceState *device_find(const char *id)
{
    QEMU_LOCK_GUARD(&tree_lock);
    for (DeviceState *dev = all_devices; dev; dev = dev->next_all) {
        if (dev->id && !strcmp(dev->id, id)) {
            return dev;
        }
    }
    return NULL;
}

/* "isa-serial" also answers to "serial": tools know chips by their short names. */
static bool type_answers_to(const DeviceType *type, const char *name)
{
    return !strcmp(type->name, name) ||
           (g_str_has_prefix(type->name, "isa-") && !strcmp(type->name + 4, name));
}

DeviceState *device_find_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    DeviceState *dev = device_find(name);

    if (dev) {
        return dev;
    }
    QEMU_LOCK_GUARD(&tree_lock);
    for (dev = all_devices; dev; dev = dev->next_all) {
        if (type_answers_to(dev->type, name)) {
            return dev;
        }
    }
    return NULL;
}

static unsigned snapshot_devices(DeviceState **out)
{
    unsigned n = 0;

    QEMU_LOCK_GUARD(&tree_lock);
    for (DeviceState *dev = all_devices; dev; dev = dev->next_all) {
        out[n++] = dev;
    }
    return n;
}

void device_foreach(void (*fn)(DeviceState *dev, void *opaque), void *opaque)
{
    DeviceState *devs[MAX_DEVICES];
    unsigned n = snapshot_devices(devs);

    for (unsigned i = 0; i < n; i++) {
        fn(devs[i], opaque);
    }
}

/* ---- Buses ---- */

void bus_init(Bus *bus, const char *kind, const char *name, DeviceState *parent)
{
    Bus **p;

    bus->kind = kind;
    g_strlcpy(bus->name, name, sizeof(bus->name));
    bus->parent = parent;
    bus->children = NULL;
    bus->next = NULL;
    QEMU_LOCK_GUARD(&tree_lock);
    for (p = &buses; *p; p = &(*p)->next) {
    }
    *p = bus;
}

Bus *bus_find(const char *name)
{
    QEMU_LOCK_GUARD(&tree_lock);
    for (Bus *b = buses; b; b = b->next) {
        if (!strcmp(b->name, name)) {
            return b;
        }
    }
    return NULL;
}

Bus *bus_find_kind(const char *kind)
{
    QEMU_LOCK_GUARD(&tree_lock);
    for (Bus *b = buses; b; b = b->next) {
        if (!strcmp(b->kind, kind)) {
            return b;
        }
    }
    return NULL;
}

void bus_foreach(void (*fn)(Bus *bus, void *opaque), void *opaque)
{
    Bus *all[64];
    unsigned n = 0;

    qemu_mutex_lock(&tree_lock);
    for (Bus *b = buses; b && n < ARRAY_SIZE(all); b = b->next) {
        all[n++] = b;
    }
    qemu_mutex_unlock(&tree_lock);
    for (unsigned i = 0; i < n; i++) {
        fn(all[i], opaque);
    }
}

/* ---- Reset ---- */

void reset_register(void (*fn)(void *opaque), void *opaque)
{
    QEMU_LOCK_GUARD(&tree_lock);
    g_assert(reset_handler_count < MAX_HANDLERS);
    reset_handlers[reset_handler_count++] = (ResetHandler){ fn, opaque };
}

static void device_reset_one(DeviceState *dev, void *opaque)
{
    if (dev->type->reset) {
        dev->type->reset(dev);
    }
}

void device_reset_all(void)
{
    device_foreach(device_reset_one, NULL);
    for (unsigned i = 0; i < reset_handler_count; i++) {
        reset_handlers[i].fn(reset_handlers[i].opaque);
    }
}
