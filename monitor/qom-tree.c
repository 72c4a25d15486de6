/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tree of objects that QOM's clients see: /objects, /machine/peripheral (devices with an id),
 * /machine/peripheral-anon (vCPUs that were added without one), /machine/unattached (vCPUs as
 * device[N], then the board's and other devices).
 */
#include <glib.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accel/cpu.h"
#include "cpus-plug.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "monitor/cpu-props.h"
#include "monitor/internal.h"
#include "qapi/qapi.h"
#include "qemu/config.h"
#include "qemu/user-object.h"

typedef enum NodeKind {
    NODE_ROOT, NODE_MACHINE, NODE_PERIPHERAL, NODE_ANON, NODE_UNATTACHED, NODE_OBJECTS, NODE_CPU, NODE_DEVICE,
    NODE_OBJECT,
} NodeKind;

typedef struct Node {
    NodeKind kind;
    CPUState *cpu;
    DeviceState *dev;
    UserObject *obj;
} Node;

/* ---- From a path to an object ---- */

/* Devices without an id come after the vCPUs in /machine/unattached. */
typedef struct Numbering {
    unsigned next, wanted;
    DeviceState *found;
    QapiObjectPropertyInfoArray *out;
} Numbering;

static void number_device(DeviceState *dev, void *opaque)
{
    Numbering *n = opaque;

    if (!dev->id && n->next++ == n->wanted) {
        n->found = dev;
    }
}

static bool is_number(const char *name, unsigned *index)
{
    char end;

    return sscanf(name, "device[%u%c", index, &end) == 2 && end == ']' && strchr(name, ']') &&
           !strchr(name, ']')[1];
}

static bool is_cpu(unsigned index, bool plugged)
{
    return index < MAX_CPUS && cpu_get(index) && cpu_is_plugged(index) == plugged;
}

/* vCPUs of -smp: those that come later change no other's name. */
static unsigned first_cpus(void)
{
    unsigned n = 0;

    while (is_cpu(n, false)) {
        n++;
    }
    return n;
}

static bool find_anon(const char *name, Node *node)
{
    unsigned number;

    for (unsigned i = 0; is_number(name, &number) && i < MAX_CPUS; i++) {
        if (is_cpu(i, true) && !cpu_device_id(i) && cpu_anon_number(i) == number) {
            *node = (Node){ .kind = NODE_CPU, .cpu = cpu_get(i) };
            return true;
        }
    }
    return false;
}

static bool find_unattached(const char *name, Node *node)
{
    unsigned index;

    if (!is_number(name, &index)) {
        return false;
    }
    if (is_cpu(index, false)) {
        *node = (Node){ .kind = NODE_CPU, .cpu = cpu_get(index) };
        return true;
    }
    Numbering n = { .next = first_cpus(), .wanted = index };

    device_foreach(number_device, &n);
    *node = (Node){ .kind = NODE_DEVICE, .dev = n.found };
    return n.found != NULL;
}

static bool find_device(const char *id, Node *node)
{
    int cpu = cpu_by_device_id(id);

    if (cpu >= 0 && cpu_get((unsigned)cpu)) {
        *node = (Node){ .kind = NODE_CPU, .cpu = cpu_get((unsigned)cpu) };
        return true;
    }
    *node = (Node){ .kind = NODE_DEVICE, .dev = device_find(id) };
    return node->dev != NULL;
}

static bool find_object(const char *id, Node *node)
{
    *node = (Node){ .kind = NODE_OBJECT, .obj = user_object_find(id) };
    return node->obj != NULL;
}

static bool find_path(const char *path, Node *node)
{
    static const struct {
        const char *path;
        NodeKind kind;
        bool (*child)(const char *name, Node *node);
    } places[] = {
        { "/machine/peripheral-anon", NODE_ANON, find_anon },
        { "/machine/peripheral", NODE_PERIPHERAL, find_device },
        { "/machine/unattached", NODE_UNATTACHED, find_unattached },
        { "/machine", NODE_MACHINE, NULL },
        { "/objects", NODE_OBJECTS, find_object },
    };
    size_t len = strlen(path);

    if (!strcmp(path, "/")) {
        *node = (Node){ .kind = NODE_ROOT };
        return true;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        size_t n = strlen(places[i].path);

        if (!strncmp(path, places[i].path, n) && (len == n || (len == n + 1 && path[n] == '/'))) {
            *node = (Node){ .kind = places[i].kind };
            return true;
        }
        if (!strncmp(path, places[i].path, n) && path[n] == '/' && places[i].child &&
            places[i].child(path + n + 1, node)) {
            return true;
        }
    }
    /* A path may be given by its end, if that is the name of one object. */
    return path[0] != '/' && (find_device(path, node) || find_object(path, node));
}

static bool find_node(const char *path, Node *node, Error **errp)
{
    if (find_path(path, node)) {
        return true;
    }
    error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", path);
    return false;
}

int qom_find_cpu(const char *path, DeviceState **dev)
{
    Node node;
    bool found = find_path(path, &node);

    *dev = found && node.kind == NODE_DEVICE ? node.dev : NULL;
    return found && node.kind == NODE_CPU ? (int)node.cpu->index : -1;
}

/* g_free() */
static char *node_type(const Node *node)
{
    switch (node->kind) {
    case NODE_MACHINE:
        return g_strconcat(current_machine->name, "-machine", NULL);
    case NODE_CPU:
        return g_strconcat(x86_cpu(node->cpu)->model->name, "-x86_64-cpu", NULL);
    case NODE_DEVICE:
        return g_strdup(node->dev->type->name);
    case NODE_OBJECT:
        return g_strdup(node->obj->type->name);
    default:
        return g_strdup("container");
    }
}

/* ---- qom-list ---- */

static void add_child(QapiObjectPropertyInfoArray *out, const char *name, const char *type)
{
    char *child = g_strdup_printf("child<%s>", type);

    qom_add_property(out, name, child, NULL);
    g_free(child);
}

static void add_peripheral(DeviceState *dev, void *opaque)
{
    if (dev->id) {
        add_child(opaque, dev->id, dev->type->name);
    }
}

static void add_unattached(DeviceState *dev, void *opaque)
{
    Numbering *n = opaque;
    char name[32];

    if (!dev->id) {
        snprintf(name, sizeof(name), "device[%u]", n->next++);
        add_child(n->out, name, dev->type->name);
    }
}

/* Those below this node, by the last part of their path. */
static void add_cpus(NodeKind kind, QapiObjectPropertyInfoArray *out)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        Node node = { .kind = NODE_CPU, .cpu = cpu_get(i) };
        NodeKind place = !cpu_is_plugged(i) ? NODE_UNATTACHED : cpu_device_id(i) ? NODE_PERIPHERAL : NODE_ANON;

        if (node.cpu && place == kind) {
            g_autofree char *type = node_type(&node), *path = cpu_qom_path(i);

            add_child(out, strrchr(path, '/') + 1, type);
        }
    }
}

static void add_all_unattached(QapiObjectPropertyInfoArray *out)
{
    Numbering n = { .next = first_cpus(), .out = out };

    add_cpus(NODE_UNATTACHED, out);
    device_foreach(add_unattached, &n);
}

static void add_object(UserObject *obj, void *opaque)
{
    add_child(opaque, obj->id, obj->type->name);
}

static void add_children(const Node *node, QapiObjectPropertyInfoArray *out)
{
    char *machine = node->kind == NODE_ROOT
                        ? g_strconcat(current_machine->name, "-machine", NULL) : NULL;

    switch (node->kind) {
    case NODE_ROOT:
        add_child(out, "objects", "container");
        add_child(out, "machine", machine);
        break;
    case NODE_MACHINE:
        add_child(out, "peripheral", "container");
        add_child(out, "peripheral-anon", "container");
        add_child(out, "unattached", "container");
        break;
    case NODE_PERIPHERAL:
        device_foreach(add_peripheral, out);
        add_cpus(NODE_PERIPHERAL, out);
        break;
    case NODE_ANON:
        add_cpus(NODE_ANON, out);
        break;
    case NODE_UNATTACHED:
        add_all_unattached(out);
        break;
    case NODE_OBJECTS:
        user_object_foreach(add_object, out);
        break;
    default:
        break;
    }
    g_free(machine);
}

QapiObjectPropertyInfoArray *qmp_qom_list(const char *path, Error **errp)
{
    QapiObjectPropertyInfoArray *a = g_new0(QapiObjectPropertyInfoArray, 1);
    Node node;

    if (find_node(path, &node, errp)) {
        GPtrArray *types = qom_types();
        char *type = node_type(&node);

        qom_add_property(a, "type", "string", NULL);
        qom_type_properties(qom_type_find(types, type), a);
        add_children(&node, a);
        g_free(type);
        g_ptr_array_unref(types);
    }
    return a;
}

/* ---- qom-get ---- */

static struct json_object *device_value(const DeviceState *dev, const Property *p)
{
    const char *s;

    switch (p->kind) {
    case PROP_BOOL:
        return json_object_new_boolean(device_prop_int(dev, p) != 0);
    case PROP_STRING:
    case PROP_CHARDEV:
    case PROP_ENUM:
        s = device_prop_str(dev, p);
        return json_object_new_string(s ? s : "");
    case PROP_UINT64:
    case PROP_SIZE:
        return json_object_new_uint64((uint64_t)device_prop_int(dev, p));
    default:
        return json_object_new_int64(device_prop_int(dev, p));
    }
}

/* What an option set says; what it does not say has the default "" or 0. */
static struct json_object *opts_value(QemuOpts *opts, const QemuOptDesc *d)
{
    const char *s;

    switch (d->type) {
    case QEMU_OPT_BOOL:
        return json_object_new_boolean(qemu_opt_get_bool(opts, d->name, false));
    case QEMU_OPT_NUMBER:
        return json_object_new_uint64(qemu_opt_get_number(opts, d->name, 0));
    case QEMU_OPT_SIZE:
        return json_object_new_uint64(qemu_opt_get_size(opts, d->name, 0));
    default:
        s = qemu_opt_get(opts, d->name);
        return json_object_new_string(s ? s : "");
    }
}

static struct json_object *from_opts(QemuOpts *opts, const QemuOptDesc *d, const char *name)
{
    for (; d && d->name; d++) {
        if (!strcmp(d->name, name)) {
            return opts_value(opts, d);
        }
    }
    return NULL;
}

/* NULL: it is another property. */
static struct json_object *place_value(unsigned index, const char *name)
{
    CpuPlace p = cpu_place(index);
    const struct {
        const char *name;
        unsigned value;
    } places[] = {
        { "socket-id", p.socket }, { "die-id", p.die }, { "core-id", p.core }, { "thread-id", p.thread },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        if (!strcmp(name, places[i].name)) {
            return json_object_new_int((int)places[i].value);
        }
    }
    return NULL;
}

static struct json_object *cpu_value(const X86CPU *cpu, const char *name)
{
    struct json_object *place = place_value(cpu->base.index, name);

    if (place) {
        return place;
    }
    if (!strcmp(name, "unavailable-features")) {
        QapiStrArray *a = cpu_feature_list(x86_cpu_model_current_missing());
        struct json_object *j = qapi_str_array_to_json(a);

        qapi_free_str_array(a);
        return j;
    }
    return cpu_model_property(cpu->model, cpu->feat, name);
}

static struct json_object *node_value(const Node *node, const char *name)
{
    const Property *p;

    switch (node->kind) {
    case NODE_MACHINE:
        return from_opts(qemu_find_opts_singleton("machine"),
                         qemu_find_opts("machine", &error_abort)->desc, name);
    case NODE_CPU:
        return cpu_value(x86_cpu(node->cpu), name);
    case NODE_DEVICE:
        p = property_find(node->dev->type, name);
        return p ? device_value(node->dev, p) : NULL;
    case NODE_OBJECT:
        return from_opts(node->obj->opts, node->obj->type->props, name);
    default:
        return NULL;
    }
}

struct json_object *qmp_qom_get(const char *path, const char *property, Error **errp)
{
    struct json_object *value;
    char *type;
    Node node;

    if (!find_node(path, &node, errp)) {
        return NULL;
    }
    type = node_type(&node);
    if (!strcmp(property, "type")) {
        value = json_object_new_string(type);
    } else {
        value = node_value(&node, property);
    }
    if (!value) {
        error_setg(errp, "Property '%s.%s' not found", type, property);
    }
    g_free(type);
    return value;
}

/* ---- object-add, object-del ---- */

void qmp_object_add(struct json_object *args, Error **errp)
{
    user_object_new_json(json_object_to_json_string_ext(args, JSON_C_TO_STRING_PLAIN), errp);
}

void qmp_object_del(const char *id, Error **errp)
{
    user_object_delete(id, errp);
}
