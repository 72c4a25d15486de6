/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the JSON library does not tell: it keeps the last of two members of one name. */
#ifndef QEMU_JSON_NAMES_H
#define QEMU_JSON_NAMES_H

/*
 * The first name that is there twice in one object, as it is written; NULL: none is. text is valid
 * JSON and ends with NUL; g_free() takes the result. HELPER_ONLY.
 */
char *json_repeated_name(const char *text);

#endif
