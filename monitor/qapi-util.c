/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks and conversions under the generated half of QMP. */
#include "monitor/qapi-util.h"

#include <glib.h>
#include <json-c/json.h>
#include <string.h>

void qapi_free_str_array(QapiStrArray *v)
{
    if (!v) {
        return;
    }
    for (size_t i = 0; i < v->len; i++) {
        g_free(v->items[i]);
    }
    g_free(v->items);
    g_free(v);
}

void qapi_str_array_add(QapiStrArray *a, const char *s)
{
    a->items = g_renew(char *, a->items, a->len + 1);
    a->items[a->len++] = g_strdup(s);
}

struct json_object *qapi_str_array_to_json(const QapiStrArray *v)
{
    struct json_object *j = json_object_new_array();

    for (size_t i = 0; v && i < v->len; i++) {
        json_object_array_add(j, json_object_new_string(v->items[i]));
    }
    return j;
}

struct json_object *qapi_member(struct json_object *j, const char *name)
{
    struct json_object *m = NULL;

    if (!j || !json_object_object_get_ex(j, name, &m)) {
        return NULL;
    }
    return m;
}

bool qapi_check_keys(struct json_object *j, const char *const *known, Error **errp)
{
    if (!j) {
        return true;
    }
    json_object_object_foreach(j, key, val)
    {
        const char *const *k = known;

        while (*k && strcmp(*k, key) != 0) {
            k++;
        }
        if (!*k) {
            error_setg(errp, "Parameter '%s' is unexpected", key);
            return false;
        }
        if (!val) {
            error_setg(errp, "Invalid parameter type for '%s', expected: a value, not null", key);
            return false;
        }
    }
    return true;
}

static bool check_type(struct json_object *j, const char *name, json_type type, const char *word,
                       Error **errp)
{
    if (!json_object_is_type(j, type)) {
        error_setg(errp, "Invalid parameter type for '%s', expected: %s", name, word);
        return false;
    }
    return true;
}

bool qapi_check_object(struct json_object *j, const char *name, Error **errp)
{
    return check_type(j, name, json_type_object, "object", errp);
}

bool qapi_check_array(struct json_object *j, const char *name, Error **errp)
{
    return check_type(j, name, json_type_array, "array", errp);
}

/* Strings end at a NUL here, so one with a NUL inside would lose what follows. */
static bool check_string(struct json_object *j, const char *name, const char *what, Error **errp)
{
    if (!check_type(j, name, json_type_string, what, errp)) {
        return false;
    }
    if (strlen(json_object_get_string(j)) != (size_t)json_object_get_string_len(j)) {
        error_setg(errp, "Parameter '%s' must not contain a NUL character", name);
        return false;
    }
    return true;
}

bool qapi_str_from_json(struct json_object *j, const char *name, char **out, Error **errp)
{
    if (!check_string(j, name, "string", errp)) {
        return false;
    }
    *out = g_strdup(json_object_get_string(j));
    return true;
}

bool qapi_int_from_json(struct json_object *j, const char *name, int64_t *out, Error **errp)
{
    if (!check_type(j, name, json_type_int, "integer", errp)) {
        return false;
    }
    *out = json_object_get_int64(j);
    return true;
}

bool qapi_size_from_json(struct json_object *j, const char *name, uint64_t *out, Error **errp)
{
    if (!check_type(j, name, json_type_int, "integer", errp)) {
        return false;
    }
    if (json_object_get_int64(j) < 0) {
        error_setg(errp, "Parameter '%s' expects a size: it must not be negative", name);
        return false;
    }
    *out = json_object_get_uint64(j);
    return true;
}

bool qapi_number_from_json(struct json_object *j, const char *name, double *out, Error **errp)
{
    if (!json_object_is_type(j, json_type_int) &&
        !check_type(j, name, json_type_double, "number", errp)) {
        return false;
    }
    *out = json_object_get_double(j);
    return true;
}

bool qapi_bool_from_json(struct json_object *j, const char *name, bool *out, Error **errp)
{
    if (!check_type(j, name, json_type_boolean, "boolean", errp)) {
        return false;
    }
    *out = json_object_get_boolean(j);
    return true;
}

bool qapi_any_from_json(struct json_object *j, const char *name, struct json_object **out,
                        Error **errp)
{
    *out = json_object_get(j);
    return true;
}

bool qapi_enum_from_json(struct json_object *j, const char *name, const char *const *words,
                         int *out, Error **errp)
{
    const char *s;

    if (!check_type(j, name, json_type_string, "string", errp)) {
        return false;
    }
    s = json_object_get_string(j);
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], s) == 0) {
            *out = i;
            return true;
        }
    }
    error_setg(errp, "Parameter '%s' does not accept value '%s'", name, s);
    return false;
}

bool qapi_str_array_from_json(struct json_object *j, const char *name, QapiStrArray **out,
                              Error **errp)
{
    QapiStrArray *a;

    if (!qapi_check_array(j, name, errp)) {
        return false;
    }
    a = g_new0(QapiStrArray, 1);
    for (size_t i = 0; i < json_object_array_length(j); i++) {
        struct json_object *e = json_object_array_get_idx(j, i);

        if (!check_string(e, name, "array of strings", errp)) {
            qapi_free_str_array(a);
            return false;
        }
        qapi_str_array_add(a, json_object_get_string(e));
    }
    *out = a;
    return true;
}
