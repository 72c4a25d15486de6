/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects that -object and object-add make: secrets, memory back ends. A type is a const
 * descriptor in a linker section, as device types are; the room whose business it is defines it.
 * HELPER_ONLY: start-up, and then the control thread alone.
 */
#ifndef QEMU_USER_OBJECT_H
#define QEMU_USER_OBJECT_H

#include "qemu/compiler.h"
#include "qemu/error.h"
#include "qemu/option.h"

typedef struct UserObject UserObject;

typedef struct UserObjectType {
    const char *name;         /* qom-type= */
    const char *parent;       /* abstract type it descends from; NULL: "object" */
    const char *desc;
    const QemuOptDesc *props; /* name NULL ends; the schema's struct has the same members */
    size_t instance_size;
    /* obj->opts is filled, keys and types are checked. On failure leaves nothing behind. */
    bool (*complete)(UserObject *obj, Error **errp);
    void (*finalize)(UserObject *obj);
} UserObjectType;

/* The instance begins with this. */
struct UserObject {
    const UserObjectType *type;
    char *id;
    QemuOptsList list; /* of one set: opts */
    QemuOpts *opts;
    bool in_use; /* set by its user: object-del is refused */
    UserObject *next;
};

#define USER_OBJECT_TYPE(var)                                                                      \
    static const UserObjectType *const user_object_type_ptr_##var                                   \
        __attribute__((used, section("qemu_objects"))) = &(var)

const UserObjectType *user_object_type_find(const char *name);
void user_object_type_foreach(void (*fn)(const UserObjectType *type, void *opaque), void *opaque);

UserObject *user_object_find(const char *id);
/* In order of creation. */
void user_object_foreach(void (*fn)(UserObject *obj, void *opaque), void *opaque);
/* A set of the group "object": qom-type, an id, and what the type takes. */
bool user_object_new(QemuOpts *opts, Error **errp);
/* The same from the JSON form, as object-add and -object '{...}' have it. */
bool user_object_new_json(const char *text, Error **errp);
bool user_object_delete(const char *id, Error **errp);

/* On stdout: the types, or the properties of the one called name. */
void user_object_print_help(const char *name);

/* The bytes of object id, a secret (not the user's to free); NULL with an error if there is none. */
const uint8_t *secret_lookup(const char *id, size_t *len, Error **errp);

#endif
