/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strict conversions between text and numbers. Each takes all of the text or nothing: no leading
 * blanks, no sign where none is meant, no trailing characters. They return 0, -EINVAL (not a
 * number) or -ERANGE (does not fit), and leave *result alone on error. RT_SAFE.
 */
#ifndef QEMU_CUTILS_H
#define QEMU_CUTILS_H

#include "qemu/compiler.h"

/* base: 10, 16, or 0 (0x prefix means 16, otherwise 10; a leading 0 is not octal). */
int qemu_parse_u64(const char *s, int base, uint64_t *result) QEMU_MUST_CHECK;
int qemu_parse_i64(const char *s, int base, int64_t *result) QEMU_MUST_CHECK;
int qemu_parse_u32(const char *s, int base, uint32_t *result) QEMU_MUST_CHECK;
/* As qemu_parse_u64(), but stops at the first character that is no digit and stores where. */
int qemu_parse_u64_prefix(const char *s, const char **end, int base,
                          uint64_t *result) QEMU_MUST_CHECK;

/*
 * A size in bytes: decimal with an optional fraction, and an optional suffix B, K, M, G, T, P or E
 * of either case (powers of 1024); default_suffix ('B', 'K', 'M', ...) applies without one. Hex
 * (0x...) without fraction and suffix is accepted. A fraction of a byte is -EINVAL.
 */
int qemu_parse_size(const char *s, char default_suffix, uint64_t *result) QEMU_MUST_CHECK;

/* "on", "yes", "true", "y" and their opposites. */
bool qemu_parse_bool(const char *s, bool *result) QEMU_MUST_CHECK;

/* Writes e.g. "1.5 GiB" to buf (24 bytes are enough) and returns it. */
const char *qemu_format_size(uint64_t bytes, char *buf, size_t len);

/* The 8-4-4-4-12 form, either case. */
bool qemu_uuid_parse(const char *s, uint8_t uuid[16]) QEMU_MUST_CHECK;
/* buf has room for 37 bytes. */
void qemu_uuid_format(const uint8_t uuid[16], char *buf);

#endif
