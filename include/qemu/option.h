/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of the form "key=value,key=value" (a comma within a value is doubled), or a JSON object
 * where the first character is '{'. A QemuOptsList is an option's group: its keys with their
 * types, and the sets of values given so far. HELPER_ONLY: everything here allocates.
 */
#ifndef QEMU_OPTION_H
#define QEMU_OPTION_H

#include "qemu/compiler.h"
#include "qemu/error.h"

typedef enum QemuOptType {
    QEMU_OPT_STRING, /* anything */
    QEMU_OPT_BOOL,   /* on/off (yes/no, true/false, y/n) */
    QEMU_OPT_NUMBER, /* unsigned 64 bit, decimal or 0x hex */
    QEMU_OPT_SIZE,   /* bytes, with suffix and fraction: 1.5G */
    QEMU_OPT_LIST,   /* numbers and ranges: 0,2-3 (its commas need not be doubled) */
} QemuOptType;

typedef struct QemuOptDesc {
    const char *name;
    QemuOptType type;
    const char *help; /* one line, may be NULL */
} QemuOptDesc;

typedef struct QemuOpts QemuOpts;

typedef struct QemuOptsList {
    const char *name;             /* of the group: "smp-opts" */
    const char *implied_opt_name; /* key of a first word without '=': "cpus" in "-smp 4" */
    bool merge_lists;             /* several uses without id add up to one set */
    bool underscores;             /* keys may be spelt with '_' for '-' */
    bool merge_ids;               /* of such a list: sets with an id exist too (else id= is refused) */
    const QemuOptDesc *desc;      /* ends with a NULL name; NULL: any key, judged by the user */
    const char *id_help;          /* what a set's id means; NULL: help does not tell of it */
    QemuOpts *first, *last;       /* private */
    struct QemuOptsList *next;    /* private: registry of qemu/config.h */
} QemuOptsList;

/* Is it "help" or "?" */
bool is_help_option(const char *s);
/* A letter, then letters, digits, '-', '.', '_'. */
bool id_wellformed(const char *id);

/* ---- Making sets ---- */

/*
 * Parses text into a set of list: a new one, or the one with the same id (or none) if the list
 * merges. A key the list does not know, a value of the wrong type, an id in use or given twice,
 * or an empty first word before a comma is an error that names it. In a word without '=', KEY means KEY=on and noKEY means KEY=off; "help" and "?" are
 * kept for qemu_opts_has_help(). Of a key given twice the last value counts. After a key of type
 * QEMU_OPT_LIST a word that begins with a digit or '^' goes on with its value.
 */
QemuOpts *qemu_opts_parse(QemuOptsList *list, const char *text, Error **errp);
/* The JSON form: nested members become a.b and a.0. A
 * name that is there twice in an object is an error. */
QemuOpts *qemu_opts_parse_json(QemuOptsList *list, const char *text, Error **errp);
/* An empty set. id may be NULL. */
QemuOpts *qemu_opts_create(QemuOptsList *list, const char *id, Error **errp);
void qemu_opts_del(QemuOpts *opts);
/* Removes every set of the list. */
void qemu_opts_reset(QemuOptsList *list);

/* Adds or replaces; checks key and type. */
bool qemu_opt_set(QemuOpts *opts, const char *key, const char *value, Error **errp);
void qemu_opt_unset(QemuOpts *opts, const char *key);

/* ---- Reading sets ---- */

/* id NULL: the set without id. NULL if there is none. */
QemuOpts *qemu_opts_find(QemuOptsList *list, const char *id);
const char *qemu_opts_id(const QemuOpts *opts);
const QemuOptsList *qemu_opts_list(const QemuOpts *opts);
/* The set as it would be written on a command line, for messages. g_free() takes it. */
char *qemu_opts_text(const QemuOpts *opts);
/*
 * As qemu_opts_foreach(), for a group that has its option's name, each call inside error_loc_push():
 * with &error_fatal for errp, messages say which use of the option they are about.
 */
bool qemu_opts_foreach_located(QemuOptsList *list,
                               bool (*fn)(QemuOpts *opts, void *opaque, Error **errp),
                               void *opaque, Error **errp);
/* In order of the command line, until fn returns false. Returns what the last fn returned. */
bool qemu_opts_foreach(QemuOptsList *list, bool (*fn)(QemuOpts *opts, void *opaque, Error **errp),
                       void *opaque, Error **errp);

/* opts may be NULL everywhere below: then nothing is set. Strings are borrowed. */
const char *qemu_opt_get(QemuOpts *opts, const char *key);
bool qemu_opt_get_bool(QemuOpts *opts, const char *key, bool otherwise);
uint64_t qemu_opt_get_number(QemuOpts *opts, const char *key, uint64_t otherwise);
uint64_t qemu_opt_get_size(QemuOpts *opts, const char *key, uint64_t otherwise);
/* The same for lists without desc, where the type is checked only now. False: errp is set. */
bool qemu_opt_read_bool(QemuOpts *opts, const char *key, bool *value, Error **errp);
bool qemu_opt_read_number(QemuOpts *opts, const char *key, uint64_t *value, Error **errp);
bool qemu_opt_read_size(QemuOpts *opts, const char *key, uint64_t *value, Error **errp);
/* In order, until fn returns false. Marks each key as used. */
bool qemu_opt_foreach(QemuOpts *opts,
                      bool (*fn)(void *opaque, const char *key, const char *value, Error **errp),
                      void *opaque, Error **errp);

/*
 * For lists without desc: error naming the first key nobody has read, and the valid ones (a
 * NULL-terminated list, may be NULL).
 */
bool qemu_opts_check_used(QemuOpts *opts, const char *const *valid, Error **errp);

/* Was "help" or "?" among the words? */
bool qemu_opts_has_help(const QemuOpts *opts);
/* Prints the list's keys to stdout. */
void qemu_opts_print_help(const QemuOptsList *list);
/* Without heading: of the keys only those whose help begins with prefix, which is left out. */
void qemu_opts_print_help_about(const QemuOptsList *list, const char *prefix);
/* What was typed, for qemu_opts_text(), where the set is no direct image of it. */
void qemu_opts_set_text(QemuOpts *opts, const char *text);

/*
 * Takes the value up to the next single comma from *text into a new string with doubled commas
 * made single; *text then points behind that comma, or at the end. For parsers of their own.
 */
char *qemu_opts_next_word(const char **text);

#endif
