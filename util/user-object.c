/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registry of objects made by -object and object-add. */
#include "qemu/user-object.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

/* Bounds of the linker section; weak, for programs without any type. */
extern const UserObjectType *const __start_qemu_objects[] __attribute__((weak));
extern const UserObjectType *const __stop_qemu_objects[] __attribute__((weak));

static UserObject *objects;

void user_object_type_foreach(void (*fn)(const UserObjectType *type, void *opaque), void *opaque)
{
    for (const UserObjectType *const *p = __start_qemu_objects; p != __stop_qemu_objects; p++) {
        fn(*p, opaque);
    }
}

const UserObjectType *user_object_type_find(const char *name)
{
    for (const UserObjectType *const *p = __start_qemu_objects; p != __stop_qemu_objects; p++) {
        if (!strcmp((*p)->name, name)) {
            return *p;
        }
    }
    return NULL;
}

UserObject *user_object_find(const char *id)
{
    for (UserObject *o = objects; o; o = o->next) {
        if (!strcmp(o->id, id)) {
            return o;
        }
    }
    return NULL;
}

void user_object_foreach(void (*fn)(UserObject *obj, void *opaque), void *opaque)
{
    for (UserObject *o = objects; o; o = o->next) {
        fn(o, opaque);
    }
}

static void object_free(UserObject *obj)
{
    qemu_opts_reset(&obj->list);
    g_free(obj->id);
    g_free(obj);
}

static bool copy_opt(void *opaque, const char *key, const char *value, Error **errp)
{
    UserObject *obj = opaque;

    return !strcmp(key, "qom-type") || qemu_opt_set(obj->opts, key, value, errp);
}

/* Checks what all types have in common. */
static const UserObjectType *check(QemuOpts *opts, Error **errp)
{
    const char *name = qemu_opt_get(opts, "qom-type"), *id = qemu_opts_id(opts);
    const UserObjectType *type;

    if (!name) {
        error_setg(errp, "Parameter 'qom-type' is missing; '-object help' lists the types");
        return NULL;
    }
    type = user_object_type_find(name);
    if (!type) {
        error_setg(errp, "Parameter 'qom-type' does not accept value '%s'; '-object help' lists the types", name);
        return NULL;
    }
    if (!id) {
        error_setg(errp, "Parameter 'id' is missing; add id=ID");
        return NULL;
    }
    if (user_object_find(id)) {
        error_setg(errp, "Parameter 'id': there is an object '%s' already", id);
        return NULL;
    }
    return type;
}

bool user_object_new(QemuOpts *opts, Error **errp)
{
    const UserObjectType *type = check(opts, errp);
    UserObject *obj, **end;

    if (!type) {
        return false;
    }
    obj = g_malloc0(MAX(type->instance_size, sizeof(UserObject)));
    obj->type = type;
    obj->id = g_strdup(qemu_opts_id(opts));
    obj->list = (QemuOptsList){ .name = type->name, .desc = type->props };
    obj->opts = qemu_opts_create(&obj->list, NULL, &error_abort);
    if (!qemu_opt_foreach(opts, copy_opt, obj, errp) || !type->complete(obj, errp)) {
        object_free(obj);
        return false;
    }
    for (end = &objects; *end; end = &(*end)->next) {
    }
    *end = obj;
    return true;
}

bool user_object_new_json(const char *text, Error **errp)
{
    QemuOptsList list = { .name = "object" };
    QemuOpts *opts = qemu_opts_parse_json(&list, text, errp);
    bool ok = opts && user_object_new(opts, errp);

    qemu_opts_reset(&list);
    return ok;
}

bool user_object_delete(const char *id, Error **errp)
{
    for (UserObject **p = &objects; *p; p = &(*p)->next) {
        UserObject *obj = *p;

        if (strcmp(obj->id, id)) {
            continue;
        }
        if (obj->in_use) {
            error_setg(errp, "object '%s' is in use, can not be deleted", id);
            return false;
        }
        *p = obj->next;
        obj->type->finalize(obj);
        object_free(obj);
        return true;
    }
    error_setg(errp, "object '%s' not found", id);
    return false;
}

static void print_type(const UserObjectType *type, void *opaque)
{
    printf("  %-24s %s\n", type->name, type->desc);
}

void user_object_print_help(const char *name)
{
    const UserObjectType *type = name ? user_object_type_find(name) : NULL;

    if (type) {
        QemuOptsList list = { .name = type->name, .desc = type->props };

        qemu_opts_print_help(&list);
    } else {
        printf("List of user creatable objects:\n");
        user_object_type_foreach(print_type, NULL);
    }
}
