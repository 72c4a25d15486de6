/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the generated half of QMP (scripts/qapi-gen.py) is built on: the command table, string
 * arrays, and checks of JSON arguments with the wording QEMU's clients know. All HELPER_ONLY.
 */
#ifndef MONITOR_QAPI_UTIL_H
#define MONITOR_QAPI_UTIL_H

#include "qemu/compiler.h"
#include "qemu/error.h"

struct json_object;

typedef struct QmpCommand {
    const char *name;
    /* j: the arguments, an object or NULL. True: *ret is a new reference. False: errp is set. */
    bool (*marshal)(struct json_object *j, struct json_object **ret, Error **errp);
    bool any_time; /* allowed before qmp_capabilities ended the negotiation */
} QmpCommand;

/* Sorted by name; the last has name NULL. */
extern const QmpCommand qmp_commands[];

typedef struct QapiStrArray {
    size_t len;
    char **items;
} QapiStrArray;

void qapi_free_str_array(QapiStrArray *v);
void qapi_str_array_add(QapiStrArray *a, const char *s);
struct json_object *qapi_str_array_to_json(const QapiStrArray *v);

/* Member name of j; NULL if j is NULL or has none. Borrowed. */
struct json_object *qapi_member(struct json_object *j, const char *name);
/* False + "Parameter 'x' is unexpected" for a member that is not in the NULL-ended list. */
bool qapi_check_keys(struct json_object *j, const char *const *known, Error **errp);
bool qapi_check_object(struct json_object *j, const char *name, Error **errp);
bool qapi_check_array(struct json_object *j, const char *name, Error **errp);

/* Each: false + "Invalid parameter type for 'NAME', expected: TYPE". Strings are copied. */
bool qapi_str_from_json(struct json_object *j, const char *name, char **out, Error **errp);
bool qapi_int_from_json(struct json_object *j, const char *name, int64_t *out, Error **errp);
bool qapi_size_from_json(struct json_object *j, const char *name, uint64_t *out, Error **errp);
bool qapi_number_from_json(struct json_object *j, const char *name, double *out, Error **errp);
bool qapi_bool_from_json(struct json_object *j, const char *name, bool *out, Error **errp);
bool qapi_any_from_json(struct json_object *j, const char *name, struct json_object **out,
                        Error **errp);
bool qapi_enum_from_json(struct json_object *j, const char *name, const char *const *words,
                         int *out, Error **errp);
bool qapi_str_array_from_json(struct json_object *j, const char *name, QapiStrArray **out,
                              Error **errp);

#endif
