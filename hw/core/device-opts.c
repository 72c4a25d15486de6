/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -device: from options to a realized instance, and the help texts. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "hw/core/core-internal.h"
#include "qemu/option.h"
#include "qemu/opts.h"

/* ---- Help ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const DeviceType *const *)a)->name, (*(const DeviceType *const *)b)->name);
}

static const char *category_of(const DeviceType *t)
{
    return t->category ? t->category : "Misc";
}

static void collect_type(const DeviceType *type, void *opaque)
{
    if (type->user_creatable) {
        g_ptr_array_add(opaque, (gpointer)type);
    }
}

static void print_category(GPtrArray *types, const char *category)
{
    bool any = false;

    for (guint i = 0; i < types->len; i++) {
        const DeviceType *t = types->pdata[i];
        g_autofree char *bus = NULL;

        if (strcmp(category_of(t), category)) {
            continue;
        }
        if (!any) {
            printf("%s devices:\n", category);
        }
        any = true;
        bus = strcmp(t->bus, "system") ? g_ascii_strup(t->bus, -1) : g_strdup("System");
        printf("name \"%s\", bus %s", t->name, bus);
        if (t->desc) {
            printf(", desc \"%s\"", t->desc);
        }
        printf("\n");
    }
    if (any) {
        printf("\n");
    }
}

void device_print_help(void)
{
    static const char *const categories[] = {
        "Controller/Bridge/Hub", "USB", "Storage", "Network", "Input", "Display", "Sound", "Misc",
        "CPU", "Watchdog",
    };
    g_autoptr(GPtrArray) types = g_ptr_array_new();

    device_type_foreach(collect_type, types);
    qsort(types->pdata, types->len, sizeof(gpointer), by_name);
    for (unsigned i = 0; i < ARRAY_SIZE(categories); i++) {
        print_category(types, categories[i]);
    }
}

static char *default_text(const Property *p)
{
    switch (p->kind) {
    case PROP_STRING:
        return p->defstr ? g_strdup_printf("\"%s\"", p->defstr) : NULL;
    case PROP_CHARDEV:
        return NULL;
    case PROP_BOOL:
        return g_strdup(p->defval ? "true" : "false");
    case PROP_ENUM:
        return g_strdup_printf("\"%s\"", p->value_names[p->defval]);
    case PROP_INT32:
        return g_strdup_printf("%" G_GINT64_FORMAT, p->defval);
    default:
        return g_strdup_printf("%" G_GUINT64_FORMAT, (uint64_t)p->defval);
    }
}

static int prop_by_name(const void *a, const void *b)
{
    return strcmp((*(const Property *const *)a)->name, (*(const Property *const *)b)->name);
}

static void append_prop(GString *text, const Property *p)
{
    g_autofree char *head = g_strdup_printf("%s=<%s>", p->name, property_kind_name(p));
    g_autofree char *def = default_text(p);
    const char *help = p->help ? p->help : "";

    g_string_append_printf(text, "  %-22s - %s%s", head, help, *help ? " " : "");
    if (p->kind == PROP_ENUM) {
        g_string_append_printf(text, "(");
        for (unsigned i = 0; p->value_names[i]; i++) {
            g_string_append_printf(text, "%s%s", i ? "/" : "", p->value_names[i]);
        }
        g_string_append_printf(text, ") ");
    }
    if (def) {
        g_string_append_printf(text, "(default: %s)", def);
    }
    g_string_append_printf(text, "\n");
}

char *device_type_help(const DeviceType *type)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GPtrArray) props = g_ptr_array_new();

    for (const Property *p = type->props; p && p->name; p++) {
        g_ptr_array_add(props, (gpointer)p);
    }
    if (!props->len) {
        g_string_append_printf(text, "There are no options for %s.\n", type->name);
        return g_string_free(text, FALSE);
    }
    qsort(props->pdata, props->len, sizeof(gpointer), prop_by_name);
    g_string_append_printf(text, "%s options:\n", type->name);
    for (guint i = 0; i < props->len; i++) {
        append_prop(text, props->pdata[i]);
    }
    return g_string_free(text, FALSE);
}

/* ---- -global ---- */

static GPtrArray *globals; /* of QemuOpts; start-up only changes it */

void device_apply_globals(DeviceState *dev)
{
    for (guint i = 0; globals && i < globals->len; i++) {
        if (!strcmp(qemu_opt_get(globals->pdata[i], "driver"), dev->type->name)) {
            /* It was tried before; what fails now is told when the device is used. */
            device_set_prop(dev, qemu_opt_get(globals->pdata[i], "property"),
                            qemu_opt_get(globals->pdata[i], "value"), NULL);
        }
    }
}

bool device_add_global(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *driver = qemu_opt_get(opts, "driver"), *prop = qemu_opt_get(opts, "property");
    const char *value = qemu_opt_get(opts, "value");
    const DeviceType *type;

    if (!driver || !prop || !value) {
        error_setg(errp, "expected DRIVER.PROPERTY=VALUE");
        return false;
    }
    type = device_type_find(driver);
    if (!type) {
        warn_report("no effect: there is no device '%s' in this program", driver);
        return true;
    }
    DeviceState *dev = device_new(type);
    bool ok = device_set_prop(dev, prop, value, errp);

    device_free(dev);
    if (ok && !globals) {
        globals = g_ptr_array_new();
    }
    if (ok) {
        g_ptr_array_add(globals, opts);
    }
    return ok;
}

/* ---- Creation ---- */

static bool apply_opt(void *opaque, const char *key, const char *value, Error **errp)
{
    if (!strcmp(key, "driver") || !strcmp(key, "bus") || !strcmp(key, "id")) {
        return true;
    }
    return device_set_prop(opaque, key, value, errp);
}

static bool apply_opts(DeviceState *dev, QemuOpts *opts, Error **errp)
{
    const char *id = qemu_opts_id(opts);

    if (id && !device_set_id(dev, id, errp)) {
        return false;
    }
    return qemu_opt_foreach(opts, apply_opt, dev, errp);
}

DeviceState *device_add_from_opts(QemuOpts *opts, Error **errp)
{
    const char *driver = qemu_opt_get(opts, "driver");
    const char *bus_name = qemu_opt_get(opts, "bus");
    const DeviceType *type;
    DeviceState *dev;
    Bus *bus = NULL;

    if (!driver) {
        if (qemu_opts_has_help(opts)) {
            device_print_help();
        } else {
            error_setg(errp, "Parameter 'driver' is missing; '-device help' lists them");
        }
        return NULL;
    }
    if (is_help_option(driver)) {
        device_print_help();
        return NULL;
    }
    type = device_type_find(driver);
    if (!type) {
        opts_error_no_device(driver, errp);
        return NULL;
    }
    if (qemu_opts_has_help(opts)) {
        g_autofree char *text = device_type_help(type);
        fputs(text, stdout);
        return NULL;
    }
    if (!type->user_creatable) {
        error_setg(errp, "Parameter 'driver' expects a pluggable device type, '%s' is part of the "
                         "board", driver);
        return NULL;
    }
    if (bus_name && !(bus = bus_find(bus_name))) {
        error_setg(errp, "Bus '%s' not found", bus_name);
        return NULL;
    }
    dev = device_new(type);
    if (!apply_opts(dev, opts, errp)) {
        device_free(dev);
        return NULL;
    }
    return device_realize(dev, bus, errp) ? dev : NULL;
}
