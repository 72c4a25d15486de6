/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of back ends, and the short forms of -serial, -monitor and -qmp. */
#include <glib.h>
#include <string.h>
#include "char-internal.h"
#include "qemu/cutils.h"
#include "qemu/option.h"

bool chr_opts_add(ChrOpts *o, const char *key, const char *value, Error **errp)
{
    if (o->n == ARRAY_SIZE(o->opt)) {
        error_setg(errp, "too many options for a character device");
        return false;
    }
    o->opt[o->n].key = g_strdup(key);
    o->opt[o->n++].value = g_strdup(value);
    return true;
}

void chr_opts_clear(ChrOpts *o)
{
    while (o->n) {
        o->n--;
        g_free(o->opt[o->n].key);
        g_free(o->opt[o->n].value);
    }
}

const char *chr_opt(const ChrOpts *o, const char *key)
{
    for (unsigned i = o->n; i-- > 0;) {
        if (strcmp(o->opt[i].key, key) == 0) {
            return o->opt[i].value;
        }
    }
    return NULL;
}

bool chr_opt_bool(const ChrOpts *o, const char *key, bool defval, bool *out, Error **errp)
{
    const char *v = chr_opt(o, key);

    *out = defval;
    if (v && !qemu_parse_bool(v, out)) {
        error_setg(errp, "Parameter '%s' expects 'on' or 'off', not '%s'", key, v);
        return false;
    }
    return true;
}

bool chr_opt_u64(const ChrOpts *o, const char *key, uint64_t defval, uint64_t max, uint64_t *out,
                 Error **errp)
{
    const char *v = chr_opt(o, key);

    *out = defval;
    if (v && (qemu_parse_size(v, 'B', out) < 0 || *out > max)) {
        error_setg(errp, "Parameter '%s' expects a number from 0 to %llu, not '%s'", key,
                   (unsigned long long)max, v);
        return false;
    }
    return true;
}

/* ---- -chardev ---- */

static bool copy_opt(void *opaque, const char *key, const char *value, Error **errp)
{
    ChrOpts *o = opaque;

    if (strcmp(key, "backend") == 0) {
        o->backend = g_intern_string(value);
        return true;
    }
    return chr_opts_add(o, key, value, errp);
}

Chardev *chardev_new_from_opts(struct QemuOpts *opts, Error **errp)
{
    ChrOpts o = { .id = qemu_opts_id(opts) };
    Chardev *chr = NULL;

    if (qemu_opt_foreach(opts, copy_opt, &o, errp)) {
        chr = chr_create(&o, errp);
    }
    chr_opts_clear(&o);
    return chr;
}

/* ---- Short forms ---- */

/*
 * Options after the address: "server", "server=on", "noserver", "nowait", ... A doubled comma is
 * a comma. first: key of what comes before the first comma.
 */
static bool parse_tail(ChrOpts *o, const char *first, const char *s, Error **errp)
{
    bool ok = true;

    for (bool head = true; ok && (*s || head); head = false) {
        g_autoptr(GString) word = g_string_new(NULL);
        while (*s && (*s != ',' || s[1] == ',')) {
            s += *s == ',';
            g_string_append_c(word, *s++);
        }
        s += *s == ',';
        char *eq = strchr(word->str, '=');
        if (head) {
            ok = !first || chr_opts_add(o, first, word->str, errp);
        } else if (eq) {
            *eq = '\0';
            ok = chr_opts_add(o, word->str, eq + 1, errp);
        } else if (strncmp(word->str, "no", 2) == 0 && strcmp(word->str, "nodelay") != 0) {
            ok = chr_opts_add(o, word->str + 2, "off", errp);
        } else {
            ok = chr_opts_add(o, word->str, "on", errp);
        }
    }
    return ok;
}

/* "HOST:PORT,..." with [v6] addresses; HOST may be empty. */
static bool parse_inet(ChrOpts *o, const char *s, Error **errp)
{
    const char *end = *s == '[' ? strchr(s, ']') : NULL;
    const char *colon = strchr(end ? end : s, ':');
    const char *comma = strchr(s, ',');

    if (!colon || (comma && comma < colon) || colon[1] == '\0' || colon[1] == ',') {
        error_setg(errp, "Address '%s' has no port; expected HOST:PORT", s);
        return false;
    }
    g_autofree char *host = end ? g_strndup(s + 1, (gsize)(end - s - 1))
                                : g_strndup(s, (gsize)(colon - s));
    return chr_opts_add(o, "host", host, errp) && parse_tail(o, "port", colon + 1, errp);
}

/* "HOST:PORT[@[LOCALADDR]:LOCALPORT]" */
static bool parse_udp(ChrOpts *o, const char *s, Error **errp)
{
    const char *at = strchr(s, '@'), *colon = at ? strrchr(at, ':') : NULL;
    g_autofree char *remote = at ? g_strndup(s, (gsize)(at - s)) : g_strdup(s);

    if (at && !colon) {
        error_setg(errp, "'%s' after '@' has no port; expected [ADDRESS]:PORT", at + 1);
        return false;
    }
    if (at) {
        bool v6 = at[1] == '[' && colon > at + 2 && colon[-1] == ']';
        g_autofree char *addr = g_strndup(at + 1 + v6, (gsize)(colon - at - 1 - 2 * v6));

        if (!chr_opts_add(o, "localaddr", addr, errp) || !chr_opts_add(o, "localport", colon + 1, errp)) {
            return false;
        }
    }
    return parse_inet(o, remote, errp);
}

/* Fills backend and options from the short form. */
static bool parse_legacy(ChrOpts *o, const char *spec, Error **errp)
{
    static const char *const plain[] = { "null", "pty", "stdio", "ringbuf", NULL };
    g_autofree char *name = g_strndup(spec, strcspn(spec, ",:"));
    const char *arg;

    if (g_strv_contains(plain, name) && spec[strlen(name)] != ':') {
        o->backend = g_intern_string(name);
        return parse_tail(o, NULL, spec, errp);
    }
    if (g_str_has_prefix(spec, "file:") || g_str_has_prefix(spec, "pipe:")) {
        o->backend = g_intern_string(name);
        return parse_tail(o, "path", spec + 5, errp);
    }
    if (g_str_has_prefix(spec, "/dev/")) {
        o->backend = "serial";
        return parse_tail(o, "path", spec, errp);
    }
    if (g_str_has_prefix(spec, "unix:")) {
        o->backend = "socket";
        return parse_tail(o, "path", spec + 5, errp);
    }
    if (g_str_has_prefix(spec, "udp:")) {
        o->backend = "udp";
        return parse_udp(o, spec + 4, errp);
    }
    if (g_str_has_prefix(spec, "tcp:") || g_str_has_prefix(spec, "telnet:")) {
        o->backend = "socket";
        arg = strchr(spec, ':') + 1;
        return parse_inet(o, arg, errp) &&
               (spec[1] != 'e' || chr_opts_add(o, "telnet", "on", errp));
    }
    error_setg(errp, "'%s' is not a valid char driver; '-chardev help' lists them", spec);
    return false;
}

Chardev *chardev_new_from_legacy(const char *id, const char *spec, bool is_monitor, Error **errp)
{
    ChrOpts o = { .id = id };
    Chardev *chr = NULL;

    if (strcmp(spec, "none") == 0) {
        return NULL;
    }
    if (g_str_has_prefix(spec, "chardev:")) {
        chr = chardev_find(spec + 8);
        if (!chr) {
            error_setg(errp, "Character device '%s' not found", spec + 8);
        }
        return chr;
    }
    bool mon = g_str_has_prefix(spec, "mon:");
    bool ok = parse_legacy(&o, spec + (mon ? 4 : 0), errp);
    if (ok && mon) {
        ok = chr_opts_add(&o, "mux", "on", errp);
        /* The guest gets Ctrl-C: Ctrl-A x ends the emulator. */
        if (ok && strcmp(o.backend, "stdio") == 0 && !chr_opt(&o, "signal")) {
            ok = chr_opts_add(&o, "signal", "off", errp);
        }
    }
    chr = ok ? chr_create(&o, errp) : NULL;
    chr_opts_clear(&o);
    if (chr) {
        chr->wants_monitor = mon && !is_monitor;
    }
    return chr;
}
