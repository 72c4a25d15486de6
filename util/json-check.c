/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is it JSON? Token by token; which may follow which is the library's to judge, but for commas. */
#include "qemu/json-check.h"

#include <stdio.h>
#include <string.h>

/* Where in a number (RFC 8259, section 6) it is. */
enum { NUMBER_NONE, NUMBER_SIGN, NUMBER_ZERO, NUMBER_INT, NUMBER_DOT, NUMBER_FRAC, NUMBER_E, NUMBER_E_SIGN, NUMBER_EXP };

static bool stray(JsonCheck *s, char c)
{
    if (c > ' ' && c < 0x7f) {
        snprintf(s->error, sizeof(s->error), "stray '%c'", c);
    } else {
        snprintf(s->error, sizeof(s->error), "stray byte 0x%02x", (unsigned char)c);
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- Strings ---- */

/* Not a character at all: surrogates, those that Unicode sets aside, and what is beyond its end. */
static bool no_character(uint32_t u)
{
    return (u >= 0xd800 && u < 0xe000) || (u >= 0xfdd0 && u < 0xfdf0) || (u & 0xfffe) == 0xfffe || u > 0x10ffff;
}

static bool bad_escape(JsonCheck *s, unsigned u)
{
    snprintf(s->error, sizeof(s->error), "\\u%04x is not a valid Unicode character", u);
    return false;
}

/* A digit of \uXXXX. */
static bool hex_byte(JsonCheck *s, char c)
{
    unsigned u;

    if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) {
        snprintf(s->error, sizeof(s->error), "\\u takes four hexadecimal digits");
        return false;
    }
    s->word[s->word_len++] = c;
    if (--s->hex_left) {
        return true;
    }
    s->word[s->word_len] = '\0';
    sscanf(s->word, "%x", &u);
    s->word_len = 0;
    if (s->high) {
        uint32_t both = 0x10000 + ((uint32_t)(s->high & 0x3ff) << 10) + (u & 0x3ff);
        unsigned high = s->high;

        s->high = 0;
        return (u & 0xfc00) == 0xdc00 && !no_character(both) ? true : bad_escape(s, high);
    }
    if ((u & 0xfc00) == 0xd800) {
        s->high = (uint16_t)u;
        return true;
    }
    if (!u) {
        snprintf(s->error, sizeof(s->error), "\\u0000 (NUL) is not supported"); /* it would end a name or value early */
        return false;
    }
    return no_character(u) ? bad_escape(s, u) : true;
}

static bool escape_byte(JsonCheck *s, char c)
{
    s->escape = false;
    if (c == 'u') {
        s->hex_left = 4;
        return true;
    }
    if (s->high) {
        return bad_escape(s, s->high);
    }
    if (!c || !strchr("\"'\\/bfnrt", c)) {
        snprintf(s->error, sizeof(s->error), "invalid escape sequence in string");
        return false;
    }
    return true;
}

/* Bytes of 80H and above (RFC 3629). */
static bool utf8_byte(JsonCheck *s, uint8_t b)
{
    bool ok = true;

    if (s->utf8_left) {
        ok = (b & 0xc0) == 0x80;
        s->utf8 = s->utf8 << 6 | (b & 0x3f);
        s->utf8_left--;
        ok = ok && (s->utf8_left || (s->utf8 >= s->utf8_least && !no_character(s->utf8)));
    } else if (b >= 0xc0 && b < 0xf8) {
        s->utf8_left = b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
        s->utf8 = b & (0x3fu >> s->utf8_left);
        s->utf8_least = b < 0xe0 ? 0x80 : b < 0xf0 ? 0x800 : 0x10000;
    } else {
        ok = b < 0x80;
    }
    if (!ok) {
        snprintf(s->error, sizeof(s->error), "invalid UTF-8 sequence in string");
    }
    return ok;
}

static bool string_byte(JsonCheck *s, char c)
{
    if (s->hex_left) {
        return hex_byte(s, c);
    }
    if (s->escape) {
        return escape_byte(s, c);
    }
    if (s->high && c != '\\') {
        return bad_escape(s, s->high);
    }
    if ((unsigned char)c >= 0x80 || s->utf8_left) {
        return utf8_byte(s, (uint8_t)c);
    }
    if ((unsigned char)c < ' ') {
        return stray(s, c);
    }
    s->escape = c == '\\';
    if (c == s->quote) {
        s->quote = 0;
    }
    return true;
}

/* ---- Numbers and words ---- */

/* What may follow one: else the library would take "1-2" for 1 if it came in pieces. */
static bool ends_value(char c)
{
    return c && strchr(" \t\r\n,]}", c);
}

/* The state after c; NUMBER_NONE: c does not belong to the number. */
static uint8_t number_after(uint8_t state, char c)
{
    switch (state) {
    case NUMBER_SIGN:
        return c == '0' ? NUMBER_ZERO : is_digit(c) ? NUMBER_INT : NUMBER_NONE;
    case NUMBER_ZERO:
        return c == '.' ? NUMBER_DOT : c == 'e' || c == 'E' ? NUMBER_E : NUMBER_NONE;
    case NUMBER_INT:
        return is_digit(c) ? NUMBER_INT : number_after(NUMBER_ZERO, c);
    case NUMBER_DOT:
        return is_digit(c) ? NUMBER_FRAC : NUMBER_NONE;
    case NUMBER_FRAC:
        return is_digit(c) ? NUMBER_FRAC : c == 'e' || c == 'E' ? NUMBER_E : NUMBER_NONE;
    case NUMBER_E:
        return c == '+' || c == '-' ? NUMBER_E_SIGN : is_digit(c) ? NUMBER_EXP : NUMBER_NONE;
    default:
        return is_digit(c) ? NUMBER_EXP : NUMBER_NONE;
    }
}

static bool number_complete(uint8_t state)
{
    return state == NUMBER_ZERO || state == NUMBER_INT || state == NUMBER_FRAC || state == NUMBER_EXP;
}

static bool word_end(JsonCheck *s)
{
    s->word[s->word_len] = '\0';
    s->word_len = 0;
    if (strcmp(s->word, "true") && strcmp(s->word, "false") && strcmp(s->word, "null")) {
        snprintf(s->error, sizeof(s->error), "invalid keyword '%s'", s->word);
        return false;
    }
    return true;
}

/* A value or name begins. The library makes some 270 bytes of each. */
static bool count(JsonCheck *s)
{
    if (++s->values > JSON_VALUES_MAX) {
        snprintf(s->error, sizeof(s->error), "more than %d values", JSON_VALUES_MAX);
    }
    return s->values <= JSON_VALUES_MAX;
}

/* Outside of strings, numbers and words. */
static bool plain_byte(JsonCheck *s, char c)
{
    if (c && strchr(" \t\r\n", c)) {
        return true;
    }
    if ((c == ']' || c == '}') && s->comma) {
        snprintf(s->error, sizeof(s->error), "expecting value");
        return false;
    }
    s->comma = c == ',';
    if (!strchr("]},:", c) && !count(s)) {
        return false;
    }
    if (c == '"' || c == '\'') {
        s->quote = c;
    } else if (c == '-' || is_digit(c)) {
        s->number = number_after(NUMBER_SIGN, c) ? number_after(NUMBER_SIGN, c) : NUMBER_SIGN;
    } else if (c >= 'a' && c <= 'z') {
        s->word[s->word_len++] = c;
    } else if (!c || !strchr("{}[],:", c)) {
        return stray(s, c);
    }
    return true;
}

bool json_check(JsonCheck *s, char c)
{
    if (s->quote) {
        return string_byte(s, c);
    }
    if (s->number) {
        uint8_t after = number_after(s->number, c);

        if (!after && (!number_complete(s->number) || !ends_value(c))) {
            return stray(s, c);
        }
        s->number = after;
        if (after) {
            return true;
        }
    }
    if (s->word_len && c >= 'a' && c <= 'z' && s->word_len < sizeof(s->word) - 1) {
        s->word[s->word_len++] = c;
        return true;
    }
    if (s->word_len) {
        return word_end(s) && (ends_value(c) ? plain_byte(s, c) : stray(s, c));
    }
    return plain_byte(s, c);
}

bool json_check_text(const char *text, Error **errp)
{
    JsonCheck check = { 0 };

    for (const char *p = text; *p; p++) {
        if (!json_check(&check, *p)) {
            error_setg(errp, "invalid JSON at character %zu: %s", (size_t)(p - text), check.error);
            return false;
        }
    }
    return true;
}
