/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's self-check: running the lines, and showing them. The lines are in host-check-*.c. */
#include "host-check-internal.h"

#include <errno.h>
#include <glib.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Files ---- */

static char *read_path(const HostCheckRun *r, const char *path)
{
    char *full = g_strconcat(r->root, path, NULL), *text = NULL;

    if (!g_file_get_contents(full, &text, NULL, NULL)) {
        text = NULL;
    }
    g_free(full);
    return text ? g_strstrip(text) : NULL;
}

char *hc_read(const HostCheckRun *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *path = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    char *text = read_path(r, path);
    g_free(path);
    return text;
}

bool hc_read_i64(const HostCheckRun *r, int64_t *v, const char *fmt, ...)
{
    va_list ap;
    char *end;

    va_start(ap, fmt);
    char *path = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    char *text = read_path(r, path);
    g_free(path);
    if (!text) {
        return false;
    }
    *v = g_ascii_strtoll(text, &end, 10);
    bool ok = end != text;
    g_free(text);
    return ok;
}

char *hc_field(const HostCheckRun *r, const char *path, const char *key)
{
    char *text = read_path(r, path), *value = NULL;
    size_t n = strlen(key);

    for (char *line = text; line && !value; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            value = g_strstrip(g_strndup(line + n + 1, strcspn(line + n + 1, "\n")));
        }
    }
    g_free(text);
    return value;
}

char *hc_cmdline(const HostCheckRun *r, const char *key)
{
    char *text = read_path(r, "/proc/cmdline"), *value = NULL;
    size_t n = strlen(key);

    if (!text) {
        return NULL;
    }
    char **words = g_strsplit_set(text, " \t\n", -1);
    for (char **w = words; *w; w++) {
        if (strncmp(*w, key, n) == 0 && ((*w)[n] == '=' || (*w)[n] == '\0')) {
            g_free(value);
            value = g_strdup((*w)[n] ? *w + n + 1 : ""); /* the last one counts */
        }
    }
    g_strfreev(words);
    g_free(text);
    return value;
}

char *hc_choice(const char *text)
{
    const char *open = strpbrk(text, "[("), *close = open ? strpbrk(open, "])") : NULL;

    return close ? g_strndup(open + 1, (gsize)(close - open - 1)) : g_strdup(text);
}

bool hc_absent(const HostCheckRun *r, const char *base, const char *path)
{
    char *dir = g_strconcat(r->root, base, NULL), *file = g_strconcat(r->root, path, NULL);
    bool absent = access(dir, R_OK | X_OK) == 0 && access(file, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);

    g_free(file);
    g_free(dir);
    return absent;
}

void hc_unknown(HostCheckRun *r, const char *wanted, const char *path)
{
    char *fix = g_strdup_printf("mount /proc and /sys here, and let this process read %s", path);

    hc_bad(r, HOST_CHECK_WARN, wanted, fix, "unknown: %s cannot be read", path);
    g_free(fix);
}

void hc_none(HostCheckRun *r, const char *wanted, const char *base, const char *path, const char *none)
{
    if (hc_absent(r, base, path)) {
        hc_ok(r, wanted, "%s", none);
    } else {
        hc_unknown(r, wanted, path);
    }
}

/* ---- Sets of CPUs ---- */

void hc_cpus_parse(HostCpus *s, const char *text)
{
    memset(s, 0, sizeof(*s));
    char **items = g_strsplit(text, ",", -1);
    for (char **i = items; *i; i++) {
        char *end;
        unsigned long a, b;

        if (!g_ascii_isdigit((*i)[0])) {
            continue; /* flags of isolcpus= */
        }
        a = b = strtoul(*i, &end, 10);
        if (*end == '-') {
            b = strtoul(end + 1, NULL, 10);
        }
        for (; a <= b && a < QEMU_CPU_SET_MAX; a++) {
            qemu_cpu_set_add(s, (unsigned)a);
        }
    }
    g_strfreev(items);
}

bool hc_cpus_meet(const HostCpus *a, const HostCpus *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(a->bits); i++) {
        if (a->bits[i] & b->bits[i]) {
            return true;
        }
    }
    return false;
}

HostCpus hc_cpus_minus(const HostCpus *a, const HostCpus *b)
{
    HostCpus r;

    for (unsigned i = 0; i < ARRAY_SIZE(r.bits); i++) {
        r.bits[i] = a->bits[i] & ~b->bits[i];
    }
    return r;
}

char *hc_cpus_text(const HostCpus *s)
{
    GString *g = g_string_new(NULL);

    for (unsigned i = 0; i < QEMU_CPU_SET_MAX; i++) {
        unsigned first = i;
        if (!qemu_cpu_set_has(s, i)) {
            continue;
        }
        while (qemu_cpu_set_has(s, i + 1)) {
            i++;
        }
        g_string_append_printf(g, i > first ? "%s%u-%u" : "%s%u", g->len ? "," : "", first, i);
    }
    if (!g->len) {
        g_string_assign(g, "none");
    }
    return g_string_free(g, FALSE);
}

/* ---- Lines ---- */

void hc_ok(HostCheckRun *r, const char *wanted, const char *found, ...)
{
    va_list ap;

    va_start(ap, found);
    r->line->found = g_strdup_vprintf(found, ap);
    va_end(ap);
    r->line->wanted = g_strdup(wanted);
    r->line->status = HOST_CHECK_OK;
}

void hc_bad(HostCheckRun *r, HostCheckStatus s, const char *wanted, const char *remedy,
            const char *found, ...)
{
    va_list ap;

    va_start(ap, found);
    r->line->found = g_strdup_vprintf(found, ap);
    va_end(ap);
    r->line->wanted = g_strdup(wanted);
    r->line->remedy = g_strdup(remedy);
    r->line->status = s;
}

static const HostCheckDef *const check_tables[] = { hc_cpu_checks, hc_limit_checks,
                                                    hc_memory_checks };

static void run_begin(HostCheckRun *r, const HostCheckParams *p)
{
    *r = (HostCheckRun){ .p = p, .root = p->root ? p->root : "" };
    r->prio = p->max_priority ? p->max_priority : 2;
    char *text = hc_read(r, "/sys/devices/system/cpu/online");
    if (!text) { /* judge at least those that it may run on */
        text = hc_field(r, "/proc/self/status", "Cpus_allowed_list");
    }
    hc_cpus_parse(&r->online, text ? text : "0");
    g_free(text);
    r->rt = r->online;
    if (p->cpus) {
        hc_cpus_parse(&r->rt, p->cpus);
        r->pinned = true;
    }
    r->rt_text = hc_cpus_text(&r->rt);
}

HostCheck *host_check_run(const HostCheckParams *p)
{
    HostCheck *c = g_new0(HostCheck, 1);
    HostCheckRun r;
    unsigned n = 0;

    run_begin(&r, p);
    for (unsigned t = 0; t < ARRAY_SIZE(check_tables); t++) {
        for (const HostCheckDef *d = check_tables[t]; d->name; d++) {
            n++;
        }
    }
    c->lines = g_new0(HostCheckLine, n);
    for (unsigned t = 0; t < ARRAY_SIZE(check_tables); t++) {
        for (const HostCheckDef *d = check_tables[t]; d->name; d++) {
            r.line = &c->lines[c->count++];
            r.line->name = d->name;
            d->check(&r);
            c->statuses[r.line->status]++;
        }
    }
    g_free(r.rt_text);
    return c;
}

void host_check_free(HostCheck *c)
{
    for (unsigned i = 0; c && i < c->count; i++) {
        g_free(c->lines[i].found);
        g_free(c->lines[i].wanted);
        g_free(c->lines[i].remedy);
    }
    if (c) {
        g_free(c->lines);
    }
    g_free(c);
}

/* ---- Showing ---- */

const char *host_check_status_name(HostCheckStatus s)
{
    static const char *const names[HOST_CHECK_STATUS_COUNT] = { "ok", "warn", "fail" };
    return names[s];
}

void host_check_print(const HostCheck *c, FILE *f)
{
    for (unsigned i = 0; i < c->count; i++) {
        const HostCheckLine *l = &c->lines[i];
        char *status = g_ascii_strup(host_check_status_name(l->status), -1);

        fprintf(f, "%-4s  %-22s %s\n", status, l->name, l->found);
        if (l->status != HOST_CHECK_OK) {
            fprintf(f, "      %-22s wanted: %s\n", "", l->wanted);
            fprintf(f, "      %-22s remedy: %s\n", "", l->remedy);
        }
        g_free(status);
    }
    fprintf(f, "%u ok, %u warn, %u fail\n", c->statuses[HOST_CHECK_OK],
            c->statuses[HOST_CHECK_WARN], c->statuses[HOST_CHECK_FAIL]);
}

void host_check_print_json(const HostCheck *c, FILE *f)
{
    struct json_object *j = json_object_new_object(), *lines = json_object_new_array();

    for (unsigned i = 0; i < c->count; i++) {
        const HostCheckLine *l = &c->lines[i];
        struct json_object *o = json_object_new_object();

        json_object_object_add(o, "name", json_object_new_string(l->name));
        json_object_object_add(o, "status",
                               json_object_new_string(host_check_status_name(l->status)));
        json_object_object_add(o, "found", json_object_new_string(l->found));
        json_object_object_add(o, "wanted", json_object_new_string(l->wanted));
        if (l->remedy) {
            json_object_object_add(o, "remedy", json_object_new_string(l->remedy));
        }
        json_object_array_add(lines, o);
    }
    json_object_object_add(j, "passed",
                           json_object_new_boolean(c->statuses[HOST_CHECK_FAIL] == 0));
    json_object_object_add(j, "lines", lines);
    fprintf(f, "%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

/* ---- This process ---- */

static HostCheckParams configured;

void realtime_host_check_configure(const HostCheckParams *p)
{
    configured = p ? *p : (HostCheckParams){ 0 };
}

HostCheck *realtime_host_check(void)
{
    return host_check_run(&configured);
}

bool realtime_host_check_print(FILE *f)
{
    HostCheck *c = realtime_host_check();
    bool passed = c->statuses[HOST_CHECK_FAIL] == 0;

    host_check_print(c, f);
    host_check_free(c);
    return passed;
}

bool realtime_host_check_print_json(FILE *f)
{
    HostCheck *c = realtime_host_check();
    bool passed = c->statuses[HOST_CHECK_FAIL] == 0;

    host_check_print_json(c, f);
    host_check_free(c);
    return passed;
}

void realtime_host_check_warnings(void (*warn)(void *opaque, const char *text), void *opaque)
{
    HostCheck *c = realtime_host_check();
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; i < c->count; i++) {
        const HostCheckLine *l = &c->lines[i];

        if (l->status == HOST_CHECK_FAIL) {
            char *text = g_strdup_printf("host check: %s: %s; wanted: %s; remedy: %s", l->name,
                                         l->found, l->wanted, l->remedy);
            warn(opaque, text);
            g_free(text);
        } else if (l->status == HOST_CHECK_WARN) {
            g_string_append_printf(names, "%s%s", names->len ? ", " : "", l->name);
        }
    }
    if (names->len) {
        char *text = g_strdup_printf("host check: could be better for latency: %s "
                                     "('-realtime check' says how)", names->str);
        warn(opaque, text);
        g_free(text);
    }
    g_string_free(names, TRUE);
    host_check_free(c);
}
