/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the JSON parser does not tell: that a member was named twice (it keeps the last), that an integer
 * does not fit in 64 bits (it takes the nearest), and that something is no JSON at all
 * (qemu/json-check.h). Looks at the text as it comes, in any pieces.
 */
#include <json-c/json.h>
#include <string.h>
#include "monitor/internal.h"

static void number_begin(QmpScan *s, char c)
{
    s->number = s->integer = true;
    s->digit_count = 0;
    s->digits[0] = c == '-' ? '-' : '+';
    if (c > '0') {
        s->digits[++s->digit_count] = c;
    }
}

/* A byte of the number there is; false: it is over. */
static bool number_goes_on(QmpScan *s, char c)
{
    if (c >= '0' && c <= '9') {
        if (c != '0' || s->digit_count) {
            s->digit_count++;
            if (s->digit_count < sizeof(s->digits)) {
                s->digits[s->digit_count] = c;
            }
        }
        return true;
    }
    if (c && strchr(".eE+-", c)) {
        s->integer = false;
        return true;
    }
    return false;
}

/* Of the number that is over. */
static bool is_wide(const QmpScan *s)
{
    const char *most = s->digits[0] == '-' ? "9223372036854775808" : "18446744073709551615";
    unsigned n = (unsigned)strlen(most);

    return s->integer && (s->digit_count > n ||
                          (s->digit_count == n && memcmp(s->digits + 1, most, n) > 0));
}

/* Outside of strings and numbers. True: the command ends here. */
static bool plain_byte(QmpScan *s, char c)
{
    switch (c) {
    case ':':
        s->members++;
        break;
    case '{':
    case '[':
        if (++s->depth > QMP_MAX_DEPTH) {
            g_strlcpy(s->check.error, "nesting depth limit exceeded", sizeof(s->check.error));
        }
        break;
    case '}':
    case ']':
        return s->depth < 2 || --s->depth == 0;
    default:
        if (c == '-' || (c >= '0' && c <= '9')) {
            number_begin(s, c);
        }
        break;
    }
    return false;
}

size_t qmp_scan(QmpScan *s, const uint8_t *buf, size_t len, const char **put, size_t *skip)
{
    *put = NULL;
    *skip = 0;
    for (size_t n = 0; n < len; n++) {
        char c = (char)buf[n];
        bool in_string = s->check.quote;

        if (c == '\'' && s->check.escape) { /* the parser knows \' by its number alone */
            s->check.escape = false;
            *put = "u0027";
            *skip = 1;
            return n;
        }
        if (s->number && !number_goes_on(s, c)) {
            s->number = false;
            if (is_wide(s)) {
                *put = QMP_WIDE_MARK;
                return n; /* c is looked at next time */
            }
        }
        if (!json_check(&s->check, c)) {
            return n;
        }
        if (!in_string && !s->number && plain_byte(s, c)) {
            return n + 1;
        }
        if (*s->check.error) {
            return n;
        }
    }
    return len;
}

uint64_t qmp_members(struct json_object *j)
{
    uint64_t n = 0;

    if (json_object_is_type(j, json_type_object)) {
        json_object_object_foreach(j, key, val)
        {
            (void)key;
            n += 1 + qmp_members(val);
        }
    } else if (json_object_is_type(j, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(j); i++) {
            n += qmp_members(json_object_array_get_idx(j, i));
        }
    }
    return n;
}

static void plain_number(struct json_object *j)
{
    const char *s = json_object_get_string(j);
    size_t len = strlen(s), mark = strlen(QMP_WIDE_MARK);

    if (len > mark && strcmp(s + len - mark, QMP_WIDE_MARK) == 0) {
        json_object_set_serializer(j, json_object_userdata_to_json_string, strndup(s, len - mark),
                                   json_object_free_userdata);
    }
}

void qmp_plain_numbers(struct json_object *j)
{
    if (json_object_is_type(j, json_type_object)) {
        json_object_object_foreach(j, key, val)
        {
            (void)key;
            qmp_plain_numbers(val);
        }
    } else if (json_object_is_type(j, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(j); i++) {
            qmp_plain_numbers(json_object_array_get_idx(j, i));
        }
    } else if (json_object_is_type(j, json_type_double)) {
        plain_number(j);
    }
}
