/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -object secret: passwords and keys, from the option itself or a file. */
#include <glib.h>
#include <string.h>
#include "qemu/file.h"
#include "qemu/user-object.h"

#define SECRET_MAX (1 * MiB)

typedef struct Secret {
    UserObject obj;
    uint8_t *data;
    size_t len;
} Secret;

/* Only the alphabet, padding and white space; at least one byte. */
static bool decode_base64(gchar **text, gsize *len, Error **errp)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \t\r\n";
    guchar *raw;

    if (strlen(*text) != *len || (*text)[strspn(*text, alphabet)]) {
        error_setg(errp, "Base64 data contains invalid characters");
        return false;
    }
    raw = g_base64_decode(*text, len);
    g_free(*text);
    *text = (gchar *)raw;
    return true;
}

static bool secret_complete(UserObject *obj, Error **errp)
{
    Secret *s = (Secret *)obj;
    const char *data = qemu_opt_get(obj->opts, "data"), *file = qemu_opt_get(obj->opts, "file");
    const char *format = qemu_opt_get(obj->opts, "format");
    gchar *text;
    gsize len;

    if (data && file) {
        error_setg(errp, "'file' and 'data' are mutually exclusive");
        return false;
    }
    if (!data && !file) {
        error_setg(errp, "Either 'file' or 'data' must be provided");
        return false;
    }
    if (format && strcmp(format, "raw") && strcmp(format, "base64")) {
        error_setg(errp, "Parameter 'format' does not accept value '%s'", format);
        return false;
    }
    if (data) {
        text = g_strdup(data);
        len = strlen(data);
        qemu_opt_unset(obj->opts, "data"); /* not to be read back */
    } else if (!file_read_all(file, SECRET_MAX, &text, &len, errp)) {
        return false;
    }
    if (format && !strcmp(format, "base64") && !decode_base64(&text, &len, errp)) {
        g_free(text);
        return false;
    }
    s->data = (uint8_t *)text;
    s->len = len;
    return true;
}

static void secret_finalize(UserObject *obj)
{
    Secret *s = (Secret *)obj;

    explicit_bzero(s->data, s->len);
    g_free(s->data);
}

static const QemuOptDesc secret_props[] = {
    { "data", QEMU_OPT_STRING, "the secret itself" },
    { "file", QEMU_OPT_STRING, "file that holds it" },
    { "format", QEMU_OPT_STRING, "raw or base64" },
    { NULL },
};

static const UserObjectType secret_type = {
    .name = "secret",
    .desc = "password or key",
    .props = secret_props,
    .instance_size = sizeof(Secret),
    .complete = secret_complete,
    .finalize = secret_finalize,
};
USER_OBJECT_TYPE(secret_type);

const uint8_t *secret_lookup(const char *id, size_t *len, Error **errp)
{
    UserObject *obj = user_object_find(id);

    if (!obj) {
        error_setg(errp, "No secret with id '%s'", id);
        return NULL;
    }
    if (obj->type != &secret_type) {
        error_setg(errp, "Object with id '%s' is not a secret", id);
        return NULL;
    }
    *len = ((Secret *)obj)->len;
    return ((Secret *)obj)->data;
}
