/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of key=value options and their two notations. */
#include "qemu/option.h"

#include <errno.h>
#include <glib.h>
#include <json-c/json.h>
#include <string.h>

#include "qemu/cutils.h"
#include "qemu/json-check.h"
#include "qemu/json-names.h"

typedef struct QemuOpt {
    char *key, *value;
    bool used;
    struct QemuOpt *next;
} QemuOpt;

struct QemuOpts {
    char *id; /* NULL: none */
    QemuOptsList *list;
    QemuOpt *first;
    bool help;
    char *text; /* as typed; NULL: qemu_opts_text() puts it together */
    QemuOpts *next;
};

bool is_help_option(const char *s)
{
    return !strcmp(s, "help") || !strcmp(s, "?");
}

bool id_wellformed(const char *id)
{
    if (!g_ascii_isalpha(id[0])) {
        return false;
    }
    for (const char *p = id; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("-._", *p)) {
            return false;
        }
    }
    return true;
}

/* ---- Sets ---- */

QemuOpts *qemu_opts_find(QemuOptsList *list, const char *id)
{
    for (QemuOpts *o = list->first; o; o = o->next) {
        if (g_strcmp0(o->id, id) == 0) {
            return o;
        }
    }
    return NULL;
}

QemuOpts *qemu_opts_create(QemuOptsList *list, const char *id, Error **errp)
{
    if (id) {
        if (!id_wellformed(id)) {
            error_setg(errp,
                       "id '%s' is not an identifier: a letter, then letters, digits, '-', '.', "
                       "'_'",
                       id);
            return NULL;
        }
        if (qemu_opts_find(list, id)) {
            error_setg(errp, "id '%s' is already in use for %s", id, list->name);
            return NULL;
        }
    }
    QemuOpts *opts = g_new0(QemuOpts, 1);
    opts->id = g_strdup(id);
    opts->list = list;
    if (list->last) {
        list->last->next = opts;
    } else {
        list->first = opts;
    }
    list->last = opts;
    return opts;
}

static void opt_free(QemuOpt *opt)
{
    g_free(opt->key);
    g_free(opt->value);
    g_free(opt);
}

void qemu_opts_del(QemuOpts *opts)
{
    if (!opts) {
        return;
    }
    QemuOptsList *list = opts->list;
    QemuOpts *before = NULL;
    for (QemuOpts **p = &list->first; *p; before = *p, p = &(*p)->next) {
        if (*p == opts) {
            *p = opts->next;
            break;
        }
    }
    if (list->last == opts) {
        list->last = before;
    }
    while (opts->first) {
        QemuOpt *opt = opts->first;
        opts->first = opt->next;
        opt_free(opt);
    }
    g_free(opts->id);
    g_free(opts->text);
    g_free(opts);
}

void qemu_opts_reset(QemuOptsList *list)
{
    while (list->first) {
        qemu_opts_del(list->first);
    }
}

const char *qemu_opts_id(const QemuOpts *opts)
{
    return opts ? opts->id : NULL;
}

const QemuOptsList *qemu_opts_list(const QemuOpts *opts)
{
    return opts->list;
}

bool qemu_opts_foreach(QemuOptsList *list, bool (*fn)(QemuOpts *opts, void *opaque, Error **errp),
                       void *opaque, Error **errp)
{
    QemuOpts *next;

    for (QemuOpts *o = list->first; o; o = next) {
        next = o->next;
        if (!fn(o, opaque, errp)) {
            return false;
        }
    }
    return true;
}

static void append_value(GString *text, const char *value)
{
    for (; *value; value++) {
        g_string_append(text, *value == ',' ? "," : "");
        g_string_append_c(text, *value);
    }
}

void qemu_opts_set_text(QemuOpts *opts, const char *text)
{
    g_free(opts->text);
    opts->text = g_strdup(text);
}

char *qemu_opts_text(const QemuOpts *opts)
{
    const char *implied = opts->list->implied_opt_name;
    if (opts->text) {
        return g_strdup(opts->text);
    }
    GString *text = g_string_new(NULL);
    for (const QemuOpt *o = opts->first; o; o = o->next) {
        if (implied && !strcmp(o->key, implied)) {
            append_value(text, o->value);
        }
    }
    if (opts->id) {
        g_string_append_printf(text, "%sid=%s", text->len ? "," : "", opts->id);
    }
    for (const QemuOpt *o = opts->first; o; o = o->next) {
        if (!implied || strcmp(o->key, implied)) {
            g_string_append_printf(text, "%s%s=", text->len ? "," : "", o->key);
            append_value(text, o->value);
        }
    }
    return g_string_free(text, FALSE);
}

bool qemu_opts_foreach_located(QemuOptsList *list,
                               bool (*fn)(QemuOpts *opts, void *opaque, Error **errp),
                               void *opaque, Error **errp)
{
    char *option = g_strconcat("-", list->name, NULL);
    bool ok = true;

    for (QemuOpts *o = list->first; o && ok; o = o->next) {
        char *text = qemu_opts_text(o);

        error_loc_push(option, text);
        ok = fn(o, opaque, errp);
        error_loc_pop();
        g_free(text);
    }
    g_free(option);
    return ok;
}

/* ---- Keys and values ---- */

static bool same_key(const QemuOptsList *list, const char *name, const char *key)
{
    for (; *name && (*name == *key || (list->underscores && *name == '-' && *key == '_')); name++, key++) {
    }
    return *name == *key;
}

static const QemuOptDesc *find_desc(const QemuOptsList *list, const char *key)
{
    for (const QemuOptDesc *d = list->desc; d && d->name; d++) {
        if (same_key(list, d->name, key)) {
            return d;
        }
    }
    return NULL;
}

static bool parse_bool(const char *key, const char *value, bool *result, Error **errp)
{
    if (qemu_parse_bool(value, result)) {
        return true;
    }
    error_setg(errp, "parameter '%s' expects 'on' or 'off', not '%s'", key, value);
    return false;
}

static bool parse_number(const char *key, const char *value, uint64_t *result, Error **errp)
{
    int r = qemu_parse_u64(value, 0, result);

    if (r == -ERANGE) {
        error_setg(errp, "parameter '%s': '%s' is too large, it must be below 2^64", key, value);
    } else if (r) {
        error_setg(errp, "parameter '%s' expects a number, not '%s'", key, value);
    }
    return r == 0;
}

static bool parse_size(const char *key, const char *value, uint64_t *result, Error **errp)
{
    int r = qemu_parse_size(value, 'B', result);

    if (r == -ERANGE) {
        error_setg(errp, "parameter '%s': '%s' is too large, it must be below 2^64 bytes", key,
                   value);
    } else if (r) {
        error_setg(errp, "parameter '%s' expects a size such as 512M or 1.5G, not '%s'", key,
                   value);
    }
    return r == 0;
}

static bool check_type(const QemuOptDesc *d, const char *value, Error **errp)
{
    uint64_t number;
    bool flag;

    switch (d->type) {
    case QEMU_OPT_BOOL:
        return parse_bool(d->name, value, &flag, errp);
    case QEMU_OPT_NUMBER:
        return parse_number(d->name, value, &number, errp);
    case QEMU_OPT_SIZE:
        return parse_size(d->name, value, &number, errp);
    case QEMU_OPT_STRING:
    case QEMU_OPT_LIST: /* which numbers there are, its user knows */
        break;
    }
    return true;
}

static void unknown_key(const QemuOptsList *list, const char *key, Error **errp)
{
    GString *names = g_string_new(NULL);

    for (const QemuOptDesc *d = list->desc; d && d->name; d++) {
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", d->name);
    }
    error_setg(errp, "invalid parameter '%s'; valid ones are: %s", key, names->str);
    g_string_free(names, TRUE);
}

static QemuOpt *find_opt(const QemuOpts *opts, const char *key)
{
    for (QemuOpt *o = opts ? opts->first : NULL; o; o = o->next) {
        if (!strcmp(o->key, key)) {
            return o;
        }
    }
    return NULL;
}

void qemu_opt_unset(QemuOpts *opts, const char *key)
{
    for (QemuOpt **p = &opts->first; *p; p = &(*p)->next) {
        if (!strcmp((*p)->key, key)) {
            QemuOpt *gone = *p;
            *p = gone->next;
            opt_free(gone);
            return;
        }
    }
}

bool qemu_opt_set(QemuOpts *opts, const char *key, const char *value, Error **errp)
{
    if (opts->list->desc) {
        const QemuOptDesc *d = find_desc(opts->list, key);
        if (!d) {
            unknown_key(opts->list, key, errp);
            return false;
        }
        if (!check_type(d, value, errp)) {
            return false;
        }
        key = d->name;
    }
    /* The last word wins, and stands where it was said last. */
    qemu_opt_unset(opts, key);
    QemuOpt **end = &opts->first;
    while (*end) {
        end = &(*end)->next;
    }
    QemuOpt *opt = g_new0(QemuOpt, 1);
    opt->key = g_strdup(key);
    opt->value = g_strdup(value);
    *end = opt;
    return true;
}

/* ---- "key=value,key=value" ---- */

char *qemu_opts_next_word(const char **text)
{
    GString *word = g_string_new(NULL);
    const char *p = *text;

    for (; *p; p++) {
        if (*p == ',') {
            p++;
            if (*p != ',') {
                break;
            }
        }
        g_string_append_c(word, *p);
    }
    *text = p;
    return g_string_free(word, FALSE);
}

/* What a parser collects before it touches any set. */
typedef struct Pair {
    char *key, *value;
} Pair;

static void pair_clear(void *p)
{
    Pair *pair = p;
    g_free(pair->key);
    g_free(pair->value);
}

static GArray *pairs_new(void)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    g_array_set_clear_func(pairs, pair_clear);
    return pairs;
}

/* Takes ownership of both. */
static void pairs_add(GArray *pairs, char *key, char *value)
{
    Pair pair = { key, value };
    g_array_append_val(pairs, pair);
}

/* A word without '=': KEY for on, noKEY for off; but "nodelay" may be a key itself. */
static void add_flag(GArray *pairs, const QemuOptsList *list, const char *word)
{
    bool off = g_str_has_prefix(word, "no") && word[2] && !find_desc(list, word) &&
               (!list->desc || find_desc(list, word + 2));
    pairs_add(pairs, g_strdup(off ? word + 2 : word), g_strdup(off ? "off" : "on"));
}

/* "2" after "vcpus=0": no key begins so. */
static bool add_to_list(GArray *pairs, const QemuOptsList *list, const char *word)
{
    Pair *last = pairs->len ? &g_array_index(pairs, Pair, pairs->len - 1) : NULL;
    const QemuOptDesc *d = last ? find_desc(list, last->key) : NULL;

    if (!d || d->type != QEMU_OPT_LIST || (!g_ascii_isdigit(*word) && *word != '^')) {
        return false;
    }
    char *longer = g_strconcat(last->value, ",", word, NULL);
    g_free(last->value);
    last->value = longer;
    return true;
}

static bool split_text(GArray *pairs, const QemuOptsList *list, const char *text, bool *help,
                       Error **errp)
{
    const char *p = text;

    while (*p) {
        size_t n = strcspn(p, "=,");
        bool first = p == text;
        if (p[n] == '=') {
            if (n == 0) {
                error_setg(errp, "a parameter's name is missing before '%s'", p);
                return false;
            }
            char *key = g_strndup(p, n);
            p += n + 1;
            pairs_add(pairs, key, qemu_opts_next_word(&p));
            continue;
        }
        char *word = qemu_opts_next_word(&p);
        if (first && !*word) {
            error_setg(errp, "a value is missing before the first ','");
            g_free(word);
            return false;
        }
        if (is_help_option(word)) {
            *help = true;
        } else if (first && list->implied_opt_name) {
            pairs_add(pairs, g_strdup(list->implied_opt_name), g_strdup(word));
        } else if (*word && !add_to_list(pairs, list, word)) {
            add_flag(pairs, list, word);
        }
        g_free(word);
    }
    return true;
}

/* ---- JSON ---- */

static bool json_flatten(GArray *pairs, const char *key, json_object *value, Error **errp);

static bool json_flatten_object(GArray *pairs, const char *prefix, json_object *object,
                                Error **errp)
{
    json_object_object_foreach(object, name, member)
    {
        char *key = prefix ? g_strconcat(prefix, ".", name, NULL) : g_strdup(name);
        bool ok = json_flatten(pairs, key, member, errp);
        g_free(key);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool json_flatten(GArray *pairs, const char *key, json_object *value, Error **errp)
{
    switch (json_object_get_type(value)) {
    case json_type_object:
        return json_flatten_object(pairs, key, value, errp);
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            char *sub = g_strdup_printf("%s.%zu", key, i);
            bool ok = json_flatten(pairs, sub, json_object_array_get_idx(value, i), errp);
            g_free(sub);
            if (!ok) {
                return false;
            }
        }
        return true;
    case json_type_boolean:
        pairs_add(pairs, g_strdup(key), g_strdup(json_object_get_boolean(value) ? "on" : "off"));
        return true;
    case json_type_null:
        error_setg(errp, "parameter '%s' is null; leave it out instead", key);
        return false;
    default: /* numbers as they were written */
        pairs_add(pairs, g_strdup(key), g_strdup(json_object_get_string(value)));
        return true;
    }
}

static bool split_json(GArray *pairs, const char *text, Error **errp)
{
    if (!json_check_text(text, errp)) {
        return false;
    }
    json_tokener *tok = json_tokener_new();
    /* With its final NUL, so that a number at the end is complete. */
    json_object *root = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
    enum json_tokener_error jerr = json_tokener_get_error(tok);
    size_t end = MIN(json_tokener_get_parse_end(tok), strlen(text));
    g_autofree char *twice = NULL;
    bool ok = false;

    if (jerr != json_tokener_success) {
        error_setg(errp, "invalid JSON at character %zu: %s", end, json_tokener_error_desc(jerr));
    } else if (text[end + strspn(text + end, " \t\r\n")]) {
        error_setg(errp, "invalid JSON at character %zu: something follows the object", end);
    } else if (!json_object_is_type(root, json_type_object)) {
        error_setg(errp, "the JSON value must be an object");
    } else if ((twice = json_repeated_name(text))) {
        error_setg(errp, "invalid JSON: parameter '%s' is there twice; leave one out", twice);
    } else {
        ok = json_flatten_object(pairs, NULL, root, errp);
    }
    json_object_put(root);
    json_tokener_free(tok);
    return ok;
}

/* ---- Common end of both notations ---- */

/* Names the set; a group may instead have a key of its own that is called so. */
static bool is_id(const QemuOptsList *list, const char *key)
{
    return !strcmp(key, "id") && !find_desc(list, key);
}

/* All or nothing: a set that was merged into keeps its values if a later key is wrong. */
static bool check_pairs(const QemuOptsList *list, const GArray *pairs, const char **id,
                        Error **errp)
{
    for (guint i = 0; i < pairs->len; i++) {
        const Pair *p = &g_array_index(pairs, Pair, i);
        const QemuOptDesc *d = find_desc(list, p->key);
        if (is_id(list, p->key)) {
            if (list->merge_lists && !list->merge_ids) {
                error_setg(errp, "invalid parameter 'id': there is one set of these, without a name; "
                                 "leave it out");
                return false;
            }
            if (*id) {
                error_setg(errp, "parameter 'id' is given twice, '%s' and '%s'; leave one out", *id,
                           p->value);
                return false;
            }
            *id = p->value;
        } else if (list->desc && !d) {
            unknown_key(list, p->key, errp);
            return false;
        } else if (d && !check_type(d, p->value, errp)) {
            return false;
        }
    }
    return true;
}

static QemuOpts *opts_from_pairs(QemuOptsList *list, const GArray *pairs, bool help, Error **errp)
{
    const char *id = NULL;

    if (!check_pairs(list, pairs, &id, errp)) {
        return NULL;
    }
    QemuOpts *opts = list->merge_lists ? qemu_opts_find(list, id) : NULL;
    if (!opts) {
        opts = qemu_opts_create(list, id, errp);
        if (!opts) {
            return NULL;
        }
    }
    opts->help |= help;
    for (guint i = 0; i < pairs->len; i++) {
        const Pair *p = &g_array_index(pairs, Pair, i);
        if (!is_id(list, p->key)) {
            qemu_opt_set(opts, p->key, p->value, &error_abort);
        }
    }
    return opts;
}

QemuOpts *qemu_opts_parse_json(QemuOptsList *list, const char *text, Error **errp)
{
    GArray *pairs = pairs_new();
    QemuOpts *opts = NULL;

    if (split_json(pairs, text, errp)) {
        opts = opts_from_pairs(list, pairs, false, errp);
    }
    g_array_free(pairs, TRUE);
    return opts;
}

QemuOpts *qemu_opts_parse(QemuOptsList *list, const char *text, Error **errp)
{
    if (text[0] == '{') {
        return qemu_opts_parse_json(list, text, errp);
    }
    GArray *pairs = pairs_new();
    QemuOpts *opts = NULL;
    bool help = false;

    if (split_text(pairs, list, text, &help, errp)) {
        opts = opts_from_pairs(list, pairs, help, errp);
    }
    g_array_free(pairs, TRUE);
    return opts;
}

/* ---- Reading ---- */

const char *qemu_opt_get(QemuOpts *opts, const char *key)
{
    QemuOpt *opt = find_opt(opts, key);
    if (!opt) {
        return NULL;
    }
    opt->used = true;
    return opt->value;
}

bool qemu_opt_read_bool(QemuOpts *opts, const char *key, bool *value, Error **errp)
{
    const char *text = qemu_opt_get(opts, key);
    return !text || parse_bool(key, text, value, errp);
}

bool qemu_opt_read_number(QemuOpts *opts, const char *key, uint64_t *value, Error **errp)
{
    const char *text = qemu_opt_get(opts, key);
    return !text || parse_number(key, text, value, errp);
}

bool qemu_opt_read_size(QemuOpts *opts, const char *key, uint64_t *value, Error **errp)
{
    const char *text = qemu_opt_get(opts, key);
    return !text || parse_size(key, text, value, errp);
}

bool qemu_opt_get_bool(QemuOpts *opts, const char *key, bool otherwise)
{
    qemu_opt_read_bool(opts, key, &otherwise, &error_abort);
    return otherwise;
}

uint64_t qemu_opt_get_number(QemuOpts *opts, const char *key, uint64_t otherwise)
{
    qemu_opt_read_number(opts, key, &otherwise, &error_abort);
    return otherwise;
}

uint64_t qemu_opt_get_size(QemuOpts *opts, const char *key, uint64_t otherwise)
{
    qemu_opt_read_size(opts, key, &otherwise, &error_abort);
    return otherwise;
}

bool qemu_opt_foreach(QemuOpts *opts,
                      bool (*fn)(void *opaque, const char *key, const char *value, Error **errp),
                      void *opaque, Error **errp)
{
    for (QemuOpt *o = opts ? opts->first : NULL; o; o = o->next) {
        o->used = true;
        if (!fn(opaque, o->key, o->value, errp)) {
            return false;
        }
    }
    return true;
}

bool qemu_opts_check_used(QemuOpts *opts, const char *const *valid, Error **errp)
{
    for (QemuOpt *o = opts ? opts->first : NULL; o; o = o->next) {
        if (o->used) {
            continue;
        }
        if (valid) {
            char *names = g_strjoinv(", ", (char **)valid);
            error_setg(errp, "invalid parameter '%s'; valid ones are: %s", o->key, names);
            g_free(names);
        } else {
            error_setg(errp, "invalid parameter '%s'", o->key);
        }
        return false;
    }
    return true;
}

bool qemu_opts_has_help(const QemuOpts *opts)
{
    return opts && opts->help;
}
