/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of devices: strict parsing, defaults, text for `info qtree` and help. */
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "chardev/char.h"
#include "hw/core/core-internal.h"

typedef struct KindInfo {
    const char *help;   /* in -device X,help */
    const char *expects; /* in "Parameter 'p' expects ..." */
    int64_t min;
    uint64_t max;
} KindInfo;

static const KindInfo kinds[] = {
    [PROP_BOOL] = { "bool", "'on' or 'off'", 0, 1 },
    [PROP_UINT8] = { "uint8", "uint8_t", 0, UINT8_MAX },
    [PROP_UINT16] = { "uint16", "uint16_t", 0, UINT16_MAX },
    [PROP_UINT32] = { "uint32", "uint32_t", 0, UINT32_MAX },
    [PROP_UINT64] = { "uint64", "uint64", 0, UINT64_MAX },
    [PROP_INT32] = { "int32", "int32_t", INT32_MIN, INT32_MAX },
    [PROP_SIZE] = { "size", "a size", 0, UINT64_MAX },
    [PROP_STRING] = { "str", "a string", 0, 0 },
    [PROP_CHARDEV] = { "str", "a chardev", 0, 0 },
    [PROP_ENUM] = { "enum", "one of its values", 0, INT32_MAX },
};

const char *property_kind_name(const Property *p)
{
    return kinds[p->kind].help;
}

static void *property_ptr(const DeviceState *dev, const Property *p)
{
    return (char *)dev + p->offset;
}

const Property *property_find(const DeviceType *type, const char *name)
{
    for (const Property *p = type->props; p && p->name; p++) {
        if (!strcmp(p->name, name)) {
            return p;
        }
    }
    return NULL;
}

static void property_store(DeviceState *dev, const Property *p, uint64_t v)
{
    void *f = property_ptr(dev, p);

    switch (p->kind) {
    case PROP_BOOL:
        *(bool *)f = v;
        break;
    case PROP_UINT8:
        *(uint8_t *)f = v;
        break;
    case PROP_UINT16:
        *(uint16_t *)f = v;
        break;
    case PROP_UINT32:
        *(uint32_t *)f = v;
        break;
    case PROP_UINT64:
    case PROP_SIZE:
        *(uint64_t *)f = v;
        break;
    case PROP_INT32:
        *(int32_t *)f = (int32_t)v;
        break;
    case PROP_ENUM:
        *(int *)f = (int)v;
        break;
    case PROP_STRING:
    case PROP_CHARDEV:
        break;
    }
}

void property_set_defaults(DeviceState *dev)
{
    for (const Property *p = dev->type->props; p && p->name; p++) {
        if (p->kind == PROP_STRING) {
            *(char **)property_ptr(dev, p) = g_strdup(p->defstr);
        } else {
            property_store(dev, p, (uint64_t)p->defval);
        }
    }
}

void property_free_all(DeviceState *dev)
{
    for (const Property *p = dev->type->props; p && p->name; p++) {
        if (p->kind == PROP_STRING) {
            g_free(*(char **)property_ptr(dev, p));
            *(char **)property_ptr(dev, p) = NULL;
        }
    }
}

static bool parse_bool(const char *s, bool *out)
{
    static const char *const yes[] = { "on", "yes", "true", "y" };
    static const char *const no[] = { "off", "no", "false", "n" };

    for (unsigned i = 0; i < ARRAY_SIZE(yes); i++) {
        if (!strcmp(s, yes[i]) || !strcmp(s, no[i])) {
            *out = !strcmp(s, yes[i]);
            return true;
        }
    }
    return false;
}

/* A whole number, decimal or 0x hexadecimal, nothing around it; *neg if it had a minus. */
static bool parse_number(const char *s, uint64_t *mag, bool *neg, const char **end)
{
    bool hex;
    char *e;

    *neg = *s == '-';
    s += *neg;
    hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    if (hex ? !g_ascii_isxdigit(s[2]) : !g_ascii_isdigit(s[0])) {
        return false;
    }
    errno = 0;
    *mag = strtoull(s, &e, hex ? 16 : 10);
    *end = e;
    return errno == 0;
}

static bool parse_size(const char *s, uint64_t *out)
{
    static const char suffixes[] = "BKMGTPE";
    uint64_t mag;
    bool neg;
    const char *end, *suffix;
    unsigned shift = 0;

    if (!parse_number(s, &mag, &neg, &end) || neg) {
        return false;
    }
    if (*end) {
        suffix = strchr(suffixes, g_ascii_toupper(*end));
        if (!suffix || end[1]) {
            return false;
        }
        shift = 10 * (unsigned)(suffix - suffixes);
    }
    if (shift && mag >> (64 - shift)) {
        return false;
    }
    *out = mag << shift;
    return true;
}

static bool set_number(DeviceState *dev, const Property *p, const char *value, Error **errp)
{
    const KindInfo *k = &kinds[p->kind];
    uint64_t mag, limit;
    bool neg;
    const char *end;

    if (!parse_number(value, &mag, &neg, &end) || *end) {
        error_setg(errp, "Parameter '%s' expects integer", p->name);
        return false;
    }
    limit = neg ? (uint64_t)0 - (uint64_t)k->min : k->max;
    if (mag > limit) {
        error_setg(errp, "Parameter '%s' expects %s", p->name, k->expects);
        return false;
    }
    property_store(dev, p, neg ? (uint64_t)0 - mag : mag);
    return true;
}

static bool set_enum(DeviceState *dev, const Property *p, const char *value, Error **errp)
{
    GString *words;

    for (int i = 0; p->value_names[i]; i++) {
        if (!strcmp(p->value_names[i], value)) {
            property_store(dev, p, (uint64_t)i);
            return true;
        }
    }
    words = g_string_new(NULL);
    for (int i = 0; p->value_names[i]; i++) {
        g_string_append_printf(words, "%s'%s'", i ? ", " : "", p->value_names[i]);
    }
    error_setg(errp, "Parameter '%s' does not accept value '%s' (it takes %s)", p->name, value,
               words->str);
    g_string_free(words, TRUE);
    return false;
}

static bool set_chardev(DeviceState *dev, const Property *p, const char *value, Error **errp)
{
    Chardev *chr = chardev_find(value);

    if (!chr) {
        error_setg(errp, "Property '%s.%s' can't find value '%s'; make it with -chardev", dev->type->name,
                   p->name, value);
        return false;
    }
    *(Chardev **)property_ptr(dev, p) = chr;
    return true;
}

bool device_set_prop(DeviceState *dev, const char *name, const char *value, Error **errp)
{
    const Property *p = property_find(dev->type, name);
    bool on;
    uint64_t size;

    if (!p) {
        error_setg(errp, "Property '%s.%s' not found; '-device %s,help' lists them", dev->type->name,
                   name, dev->type->name);
        return false;
    }
    switch (p->kind) {
    case PROP_STRING:
        g_free(*(char **)property_ptr(dev, p));
        *(char **)property_ptr(dev, p) = g_strdup(value);
        return true;
    case PROP_CHARDEV:
        return set_chardev(dev, p, value, errp);
    case PROP_ENUM:
        return set_enum(dev, p, value, errp);
    case PROP_BOOL:
        if (!parse_bool(value, &on)) {
            error_setg(errp, "Parameter '%s' expects 'on' or 'off'", name);
            return false;
        }
        property_store(dev, p, on);
        return true;
    case PROP_SIZE:
        if (!parse_size(value, &size)) {
            error_setg(errp, "Parameter '%s' expects a size: a number with optional suffix k, M, "
                             "G, T, P or E", name);
            return false;
        }
        property_store(dev, p, size);
        return true;
    default:
        return set_number(dev, p, value, errp);
    }
}

void device_set_prop_uint(DeviceState *dev, const char *name, uint64_t value)
{
    char text[24];

    g_snprintf(text, sizeof(text), "%" PRIu64, value);
    device_set_prop(dev, name, text, &error_abort);
}

void device_set_prop_chardev(DeviceState *dev, const char *name, struct Chardev *chr)
{
    const Property *p = property_find(dev->type, name);

    g_assert(p && p->kind == PROP_CHARDEV);
    *(Chardev **)property_ptr(dev, p) = chr;
}

char *device_prop_string(const DeviceState *dev, const Property *p)
{
    const void *f = property_ptr(dev, p);
    const Chardev *chr;

    switch (p->kind) {
    case PROP_BOOL:
        return g_strdup(*(const bool *)f ? "true" : "false");
    case PROP_UINT8:
        return g_strdup_printf("%u (0x%x)", *(const uint8_t *)f, *(const uint8_t *)f);
    case PROP_UINT16:
        return g_strdup_printf("%u (0x%x)", *(const uint16_t *)f, *(const uint16_t *)f);
    case PROP_UINT32:
        return g_strdup_printf("%u (0x%x)", *(const uint32_t *)f, *(const uint32_t *)f);
    case PROP_UINT64:
    case PROP_SIZE:
        return g_strdup_printf("%" PRIu64 " (0x%" PRIx64 ")", *(const uint64_t *)f,
                               *(const uint64_t *)f);
    case PROP_INT32:
        return g_strdup_printf("%d (0x%x)", *(const int32_t *)f, (unsigned)*(const int32_t *)f);
    case PROP_ENUM:
        return g_strdup_printf("\"%s\"", p->value_names[*(const int *)f]);
    case PROP_STRING:
        return *(char *const *)f ? g_strdup_printf("\"%s\"", *(char *const *)f)
                                 : g_strdup("<null>");
    case PROP_CHARDEV:
        chr = *(Chardev *const *)f;
        return g_strdup_printf("\"%s\"", chr ? chardev_id(chr) : "");
    }
    return g_strdup("");
}

int64_t device_prop_int(const DeviceState *dev, const Property *p)
{
    const void *f = property_ptr(dev, p);

    switch (p->kind) {
    case PROP_BOOL:
        return *(const bool *)f;
    case PROP_UINT8:
        return *(const uint8_t *)f;
    case PROP_UINT16:
        return *(const uint16_t *)f;
    case PROP_UINT32:
        return *(const uint32_t *)f;
    case PROP_UINT64:
    case PROP_SIZE:
        return (int64_t)*(const uint64_t *)f;
    case PROP_INT32:
        return *(const int32_t *)f;
    case PROP_ENUM:
        return *(const int *)f;
    case PROP_STRING:
    case PROP_CHARDEV:
        break;
    }
    return 0;
}

const char *device_prop_str(const DeviceState *dev, const Property *p)
{
    const void *f = property_ptr(dev, p);

    switch (p->kind) {
    case PROP_STRING:
        return *(char *const *)f;
    case PROP_CHARDEV:
        return *(Chardev *const *)f ? chardev_id(*(Chardev *const *)f) : NULL;
    case PROP_ENUM:
        return p->value_names[*(const int *)f];
    default:
        return NULL;
    }
}
