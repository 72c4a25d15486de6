/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the JSON library takes and JSON (RFC 8259) does not: NaN, numbers such as 01 and 1., True, comments,
 * control characters in strings, half of a surrogate pair, a comma before a bracket. As an extension that
 * QEMU has too, strings may stand in single quotes. What the library refuses by itself is not looked for.
 */
#ifndef QEMU_JSON_CHECK_H
#define QEMU_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qemu/error.h"

/* In one text: so that a line of 64 MiB makes no gigabytes, and holds nobody up for long. */
#define JSON_VALUES_MAX 32768

/* Of a text that comes in any pieces; zeroed at its begin. Read by others: quote, escape, error, values. */
typedef struct JsonCheck {
    char quote;    /* of the string it is in; 0: none */
    bool escape;   /* the byte before was a backslash in that string */
    char error[64]; /* what is wrong; "" so far nothing */

    uint8_t number;           /* private: a state of json-check.c */
    bool comma;               /* private: the last token was one */
    uint32_t values;          /* begun so far, names among them */
    char word[8];             /* private: letters of a word, or the escape \uXXXX */
    uint8_t word_len;
    uint8_t hex_left;         /* private: digits of \uXXXX to come */
    uint16_t high;            /* private: first half of a pair; its second must follow */
    uint8_t utf8_left;        /* private: bytes of a character to come */
    uint32_t utf8, utf8_least; /* private: its bits so far, and the least that needs its length */
} JsonCheck;

/* Takes a byte; false: error says what is wrong, and nothing more is to be given. RT_SAFE. */
bool json_check(JsonCheck *s, char c);
/* All of text, for an option's value; the error says where. HELPER_ONLY. */
bool json_check_text(const char *text, Error **errp);

#endif
