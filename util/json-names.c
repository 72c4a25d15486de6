/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of JSON objects that are there twice. */
#include "qemu/json-names.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

static void level_free(gpointer names)
{
    if (names) {
        g_hash_table_destroy(names);
    }
}

/* Behind the string that begins at p. */
static const char *string_end(const char *p)
{
    for (char quote = *p++; *p && *p != quote; p++) {
        if (*p == '\\' && p[1]) {
            p++;
        }
    }
    return *p ? p + 1 : p;
}

/* Takes the string from p to end. True if it is a name that its object has already. */
static bool seen(GHashTable *names, const char *p, const char *end)
{
    if (!names || end[strspn(end, " \t\r\n")] != ':') {
        return false; /* a value */
    }
    return !g_hash_table_add(names, g_strndup(p + 1, (gsize)(end - p) - 2));
}

char *json_repeated_name(const char *text)
{
    /* The objects around the place, innermost last; NULL for an array. */
    g_autoptr(GPtrArray) levels = g_ptr_array_new_with_free_func(level_free);

    for (const char *p = text; *p; p++) {
        if (*p == '{') {
            g_ptr_array_add(levels, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL));
        } else if (*p == '[') {
            g_ptr_array_add(levels, NULL);
        } else if ((*p == '}' || *p == ']') && levels->len) {
            g_ptr_array_set_size(levels, (gint)levels->len - 1);
        } else if (*p == '"' || *p == '\'') {
            const char *end = string_end(p);

            if (levels->len && seen(levels->pdata[levels->len - 1], p, end)) {
                return g_strndup(p + 1, (gsize)(end - p) - 2);
            }
            p = end - 1;
        }
    }
    return NULL;
}
