/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types that QOM's clients see: each table of this program (devices, boards, CPU models,
 * objects, accelerators) below the abstract type that clients look for.
 */
#include <glib.h>
#include <json-c/json.h>
#include <string.h>
#include "accel/accel.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/config.h"
#include "qemu/user-object.h"
#include "target/i386/cpuid.h"

static void type_free(gpointer p)
{
    QomType *t = p;

    g_free(t->name);
    g_free(t);
}

static QomType *add(GPtrArray *types, char *name, const char *parent)
{
    QomType *t = g_new0(QomType, 1);

    t->name = name;
    t->parent = parent;
    g_ptr_array_add(types, t);
    return t;
}

/* Devices descend from a type named after their bus. */
static void add_device_type(const DeviceType *d, void *opaque)
{
    static const struct {
        const char *bus, *parent;
    } parents[] = { { "isa", "isa-device" }, { "pci", "pci-device" }, { "system", "sys-bus-device" } };
    const char *parent = "device";

    for (unsigned i = 0; i < ARRAY_SIZE(parents); i++) {
        if (d->bus && !strcmp(d->bus, parents[i].bus)) {
            parent = parents[i].parent;
        }
    }
    add(opaque, g_strdup(d->name), parent)->device = d;
}

static void add_machine_type(const MachineType *m, void *opaque)
{
    add(opaque, g_strconcat(m->name, "-machine", NULL), "machine")->machine = m;
}

static void add_cpu_type(const X86CPUModel *m, void *opaque)
{
    add(opaque, g_strconcat(m->name, "-x86_64-cpu", NULL), "x86_64-cpu")->cpu = true;
}

static void add_object_type(const UserObjectType *o, void *opaque)
{
    add(opaque, g_strdup(o->name), o->parent ? o->parent : "object")->object = o;
}

GPtrArray *qom_types(void)
{
    static const struct {
        const char *name, *parent;
    } abstract[] = {
        { "object", NULL },           { "device", "object" },       { "isa-device", "device" },
        { "pci-device", "device" },   { "sys-bus-device", "device" }, { "cpu", "device" },
        { "x86_64-cpu", "cpu" },      { "machine", "object" },      { "accel", "object" },
        { "memory-backend", "object" },
    };
    static const AccelOps *const accels[] = {
        &qtest_accel_ops,
#ifdef CONFIG_TCG
        &tcg_accel_ops,
#endif
#ifdef CONFIG_KVM
        &kvm_accel_ops,
#endif
    };
    GPtrArray *types = g_ptr_array_new_with_free_func(type_free);

    for (unsigned i = 0; i < ARRAY_SIZE(abstract); i++) {
        add(types, g_strdup(abstract[i].name), abstract[i].parent)->abstract = true;
    }
    add(types, g_strdup("container"), "object");
    for (unsigned i = 0; i < ARRAY_SIZE(accels); i++) {
        add(types, g_strconcat(accels[i]->name, "-accel", NULL), "accel");
    }
    device_type_foreach(add_device_type, types);
    machine_foreach(add_machine_type, types);
    x86_cpu_model_foreach(add_cpu_type, types);
    user_object_type_foreach(add_object_type, types);
    return types;
}

const QomType *qom_type_find(GPtrArray *types, const char *name)
{
    for (guint i = 0; i < types->len; i++) {
        const QomType *t = types->pdata[i];

        if (!strcmp(t->name, name)) {
            return t;
        }
    }
    return NULL;
}

static bool implements(GPtrArray *types, const QomType *t, const char *name)
{
    while (t && strcmp(t->name, name)) {
        t = t->parent ? qom_type_find(types, t->parent) : NULL;
    }
    return t != NULL;
}

QapiObjectTypeInfoArray *qmp_qom_list_types(bool has_implements, const char *name,
                                            bool has_abstract, bool abstract, Error **errp)
{
    QapiObjectTypeInfoArray *a = g_new0(QapiObjectTypeInfoArray, 1);
    GPtrArray *types = qom_types();

    for (guint i = 0; i < types->len; i++) {
        const QomType *t = types->pdata[i];
        QapiObjectTypeInfo *info;

        if ((t->abstract && !(has_abstract && abstract)) ||
            (has_implements && !implements(types, t, name))) {
            continue;
        }
        info = g_new0(QapiObjectTypeInfo, 1);
        info->name = g_strdup(t->name);
        info->has_abstract = info->abstract = t->abstract;
        info->has_parent = t->parent != NULL;
        info->parent = g_strdup(t->parent);
        qapi_object_type_info_array_add(a, info);
    }
    g_ptr_array_unref(types);
    return a;
}

/* ---- Properties ---- */

static QapiObjectPropertyInfo *new_property(QapiObjectPropertyInfoArray *out, const char *name,
                                            const char *type, const char *desc)
{
    QapiObjectPropertyInfo *p = g_new0(QapiObjectPropertyInfo, 1);

    p->name = g_strdup(name);
    p->type = g_strdup(type);
    p->has_description = desc != NULL;
    p->description = g_strdup(desc);
    qapi_object_property_info_array_add(out, p);
    return p;
}

void qom_add_property(QapiObjectPropertyInfoArray *out, const char *name, const char *type,
                      const char *desc)
{
    new_property(out, name, type, desc);
}

static struct json_object *default_value(const Property *p)
{
    switch (p->kind) {
    case PROP_BOOL:
        return json_object_new_boolean(p->defval != 0);
    case PROP_STRING:
        return p->defstr ? json_object_new_string(p->defstr) : NULL;
    case PROP_CHARDEV:
        return NULL;
    case PROP_ENUM:
        return json_object_new_string(p->value_names[p->defval]);
    case PROP_INT32:
        return json_object_new_int64(p->defval);
    default:
        return json_object_new_uint64((uint64_t)p->defval);
    }
}

static void add_device_properties(const DeviceType *d, QapiObjectPropertyInfoArray *out)
{
    for (const Property *p = d->props; p && p->name; p++) {
        QapiObjectPropertyInfo *info = new_property(out, p->name, property_kind_name(p), p->help);

        info->default_value = default_value(p);
        info->has_default_value = info->default_value != NULL;
    }
}

static void add_opts_properties(const QemuOptDesc *d, QapiObjectPropertyInfoArray *out)
{
    for (; d && d->name; d++) {
        if (!strcmp(d->name, "type")) {
            continue; /* every object has it already */
        }
        new_property(out, d->name,
                     d->type == QEMU_OPT_BOOL ? "bool"
                     : d->type == QEMU_OPT_NUMBER || d->type == QEMU_OPT_SIZE ? "int" : "string",
                     d->help);
    }
}

static void add_cpu_properties(QapiObjectPropertyInfoArray *out)
{
    static const char *const numbers[] = { "family", "model", "stepping", "level", "xlevel", "phys-bits",
                                           "socket-id", "die-id", "core-id", "thread-id" };

    for (unsigned i = 0; i < x86_feature_count; i++) {
        bool again = false;

        for (unsigned k = 0; k < i; k++) {
            again |= !strcmp(x86_features[k].name, x86_features[i].name);
        }
        if (!again) {
            new_property(out, x86_features[i].name, "bool", NULL);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        new_property(out, numbers[i], "int", NULL);
    }
    new_property(out, "vendor", "string", NULL);
    new_property(out, "model-id", "string", NULL);
    new_property(out, "pmu", "bool", NULL);
    new_property(out, "unavailable-features", "strList", NULL);
}

void qom_type_properties(const QomType *t, QapiObjectPropertyInfoArray *out)
{
    if (t->device) {
        add_device_properties(t->device, out);
    } else if (t->object) {
        add_opts_properties(t->object->props, out);
    } else if (t->machine) {
        add_opts_properties(qemu_find_opts("machine", &error_abort)->desc, out);
    } else if (t->cpu) {
        add_cpu_properties(out);
    }
}

QapiObjectPropertyInfoArray *qmp_device_list_properties(const char *name, Error **errp)
{
    QapiObjectPropertyInfoArray *a = g_new0(QapiObjectPropertyInfoArray, 1);
    GPtrArray *types = qom_types();
    const QomType *t = qom_type_find(types, name);

    if (!t) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", name);
    } else if (t->abstract || !implements(types, t, "device")) {
        error_setg(errp, "Parameter 'typename' expects a non-abstract device type");
    } else {
        qom_type_properties(t, a);
    }
    g_ptr_array_unref(types);
    return a;
}

QapiObjectPropertyInfoArray *qmp_qom_list_properties(const char *name, Error **errp)
{
    QapiObjectPropertyInfoArray *a = g_new0(QapiObjectPropertyInfoArray, 1);
    GPtrArray *types = qom_types();
    const QomType *t = qom_type_find(types, name);

    if (t) {
        new_property(a, "type", "string", NULL);
        qom_type_properties(t, a);
    } else {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Class '%s' not found", name);
    }
    g_ptr_array_unref(types);
    return a;
}
