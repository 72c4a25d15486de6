/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict conversions between text and numbers. */
#include "qemu/cutils.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return 99;
}

int qemu_parse_u64_prefix(const char *s, const char **end, int base, uint64_t *result)
{
    uint64_t v = 0;
    bool overflow = false;

    if (base != 10 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    } else if (base == 0) {
        base = 10;
    }
    if (digit_value(*s) >= base) {
        return -EINVAL;
    }
    for (; digit_value(*s) < base; s++) {
        overflow |= __builtin_mul_overflow(v, (uint64_t)base, &v);
        overflow |= __builtin_add_overflow(v, (uint64_t)digit_value(*s), &v);
    }
    *end = s;
    if (overflow) {
        return -ERANGE;
    }
    *result = v;
    return 0;
}

int qemu_parse_u64(const char *s, int base, uint64_t *result)
{
    const char *end;
    uint64_t v = 0;
    int r = qemu_parse_u64_prefix(s, &end, base, &v);

    if (r == -EINVAL || *end) {
        return -EINVAL;
    }
    if (r == 0) {
        *result = v;
    }
    return r;
}

int qemu_parse_i64(const char *s, int base, int64_t *result)
{
    bool negative = s[0] == '-';
    uint64_t v;
    int r = qemu_parse_u64(s + negative, base, &v);

    if (r) {
        return r;
    }
    if (v > (uint64_t)INT64_MAX + negative) {
        return -ERANGE;
    }
    *result = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int qemu_parse_u32(const char *s, int base, uint32_t *result)
{
    uint64_t v;
    int r = qemu_parse_u64(s, base, &v);

    if (r) {
        return r;
    }
    if (v > UINT32_MAX) {
        return -ERANGE;
    }
    *result = v;
    return 0;
}

/* log2 of what a size suffix multiplies by; -1 if it is none. */
static int suffix_shift(char c)
{
    static const char letters[] = "BKMGTPE";
    if (c >= 'a' && c <= 'z') {
        c -= 'a' - 'A';
    }
    const char *p = c ? strchr(letters, c) : NULL;
    return p ? (int)(p - letters) * 10 : -1;
}

/* The digits after the point as numerator / denominator; digits past the 18th change nothing. */
static const char *parse_fraction(const char *s, uint64_t *num, uint64_t *den)
{
    *num = 0;
    *den = 1;
    for (int i = 0; *s >= '0' && *s <= '9'; s++, i++) {
        if (i < 18) {
            *num = *num * 10 + (*s - '0');
            *den *= 10;
        }
    }
    return s;
}

int qemu_parse_size(const char *s, char default_suffix, uint64_t *result)
{
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    uint64_t whole = 0, num = 0, den = 1;
    const char *p;

    int r = qemu_parse_u64_prefix(s, &p, 0, &whole);
    if (r == -EINVAL) {
        return r;
    }
    if (hex) {
        if (*p) {
            return -EINVAL; /* "0x1E" has a digit E, so no suffix can follow */
        }
        if (r == 0) {
            *result = whole;
        }
        return r;
    }
    if (*p == '.') {
        const char *q = parse_fraction(p + 1, &num, &den);
        if (q == p + 1) {
            return -EINVAL;
        }
        p = q;
    }
    int shift = suffix_shift(*p);
    if (shift >= 0) {
        p++;
    } else {
        shift = suffix_shift(default_suffix);
    }
    if (*p || (num && shift == 0)) {
        return -EINVAL;
    }
    if (r || (shift && whole >> (64 - shift))) {
        return -ERANGE;
    }
    *result = (whole << shift) + (uint64_t)(((__uint128_t)num << shift) / den);
    return 0;
}

bool qemu_parse_bool(const char *s, bool *result)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = { { "on", true },   { "yes", true }, { "true", true },   { "y", true },
                  { "off", false }, { "no", false }, { "false", false }, { "n", false } };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!strcmp(s, words[i].word)) {
            *result = words[i].value;
            return true;
        }
    }
    return false;
}

const char *qemu_format_size(uint64_t bytes, char *buf, size_t len)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    unsigned u = 0;
    double v = bytes;

    while (v >= 1024 && u + 1 < ARRAY_SIZE(units)) {
        v /= 1024;
        u++;
    }
    snprintf(buf, len, "%.4g %s", v, units[u]);
    return buf;
}

bool qemu_uuid_parse(const char *s, uint8_t uuid[16])
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    uint8_t out[16] = { 0 };
    unsigned n = 0;

    if (strlen(s) != sizeof(shape) - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        if (shape[i] == '-') {
            if (s[i] != '-') {
                return false;
            }
            continue;
        }
        int d = digit_value(s[i]);
        if (d > 15) {
            return false;
        }
        out[n / 2] = out[n / 2] << 4 | d;
        n++;
    }
    memcpy(uuid, out, sizeof(out));
    return true;
}

void qemu_uuid_format(const uint8_t uuid[16], char *buf)
{
    for (unsigned i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        buf += sprintf(buf, dash ? "-%02x" : "%02x", uuid[i]);
    }
}
