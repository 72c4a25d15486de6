/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of CPUs: parsed from options and from /sys, and written. */
#include "realtime/cpulist.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "qemu/cutils.h"

/* What every error is about. */
typedef struct Context {
    const char *option, *kind, *text;
    const QemuCpuSet *valid;
    Error **errp;
} Context;

char *cpu_set_format(const QemuCpuSet *set, char *buf, size_t len)
{
    size_t at = 0;

    g_strlcpy(buf, "none", len);
    for (unsigned i = 0; i < QEMU_CPU_SET_MAX && at < len; i++) {
        unsigned first = i;
        if (!qemu_cpu_set_has(set, i)) {
            continue;
        }
        while (qemu_cpu_set_has(set, i + 1)) {
            i++;
        }
        int n = snprintf(buf + at, len - at, i > first ? "%s%u-%u" : "%s%u", at ? "," : "", first,
                         i);
        at += (size_t)n;
    }
    return buf;
}

void cpu_set_first(QemuCpuSet *set, unsigned count)
{
    memset(set, 0, sizeof(*set));
    for (unsigned i = 0; i < count; i++) {
        qemu_cpu_set_add(set, i);
    }
}

static void refuse(const Context *c, const char *fmt, ...) QEMU_PRINTF(2, 3);
static void refuse(const Context *c, const char *fmt, ...)
{
    char range[CPU_SET_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    error_setg(c->errp, "%s=%s: %s; valid %s numbers are %s", c->option, c->text, what, c->kind,
               cpu_set_format(c->valid, range, sizeof(range)));
    g_free(what);
}

static bool list_append(const Context *c, CpuList *list, unsigned cpu)
{
    if (list->count == ARRAY_SIZE(list->cpu)) {
        refuse(c, "has more than %u entries", (unsigned)ARRAY_SIZE(list->cpu));
        return false;
    }
    list->cpu[list->count++] = (uint16_t)cpu;
    qemu_cpu_set_add(&list->set, cpu);
    return true;
}

static bool list_append_all(const Context *c, CpuList *list)
{
    for (unsigned i = 0; i < QEMU_CPU_SET_MAX; i++) {
        if (qemu_cpu_set_has(c->valid, i) && !list_append(c, list, i)) {
            return false;
        }
    }
    return true;
}

static void list_remove(CpuList *list, unsigned cpu)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < list->count; i++) {
        if (list->cpu[i] != cpu) {
            list->cpu[kept++] = list->cpu[i];
        }
    }
    list->count = kept;
    qemu_cpu_set_remove(&list->set, cpu);
}

/* "N" or "A-B". */
static bool parse_range(const Context *c, const char *item, unsigned *first, unsigned *last)
{
    const char *end;
    uint64_t a = 0, b = 0;
    int ra = qemu_parse_u64_prefix(item, &end, 10, &a), rb = 0;

    b = a;
    if (ra != -EINVAL && *end == '-') {
        rb = qemu_parse_u64(end + 1, 10, &b);
        end = "";
    }
    if (ra == -EINVAL || rb == -EINVAL || *end) {
        refuse(c, "'%s' is neither a number nor a range such as 1-3", item);
        return false;
    }
    /* What does not fit 64 bits is no CPU either. */
    if (ra || !qemu_cpu_set_has(c->valid, (unsigned)MIN(a, UINT32_MAX))) {
        refuse(c, "'%s' begins with a %s there is not", item, c->kind);
        return false;
    }
    if (rb || !qemu_cpu_set_has(c->valid, (unsigned)MIN(b, UINT32_MAX))) {
        refuse(c, "'%s' ends with a %s there is not", item, c->kind);
        return false;
    }
    if (a > b) {
        refuse(c, "'%s' runs backwards, write %u-%u", item, (unsigned)b, (unsigned)a);
        return false;
    }
    *first = (unsigned)a;
    *last = (unsigned)b;
    return true;
}

static bool parse_item(const Context *c, const char *item, bool is_first, CpuList *list)
{
    unsigned first, last;
    bool away = *item == '^';

    if (away && is_first && !list_append_all(c, list)) {
        return false;
    }
    if (!strcmp(item, "all")) {
        return list_append_all(c, list);
    }
    if (!parse_range(c, item + away, &first, &last)) {
        return false;
    }
    for (unsigned i = first; i <= last; i++) {
        if (!qemu_cpu_set_has(c->valid, i)) {
            refuse(c, "'%s' holds %s %u, which there is not", item, c->kind, i);
            return false;
        }
        if (away) {
            list_remove(list, i);
        } else if (!list_append(c, list, i)) {
            return false;
        }
    }
    return true;
}

bool cpu_list_parse(const char *option, const char *kind, const char *text, const QemuCpuSet *valid,
                    CpuList *list, Error **errp)
{
    Context c = { option, kind, text, valid, errp };
    char **items = g_strsplit(text, ",", -1);
    bool ok = *items != NULL;

    memset(list, 0, sizeof(*list));
    if (!ok) {
        refuse(&c, "the list is empty");
    }
    for (unsigned i = 0; ok && items[i]; i++) {
        ok = parse_item(&c, items[i], i == 0, list);
    }
    if (ok && list->count == 0) {
        refuse(&c, "leaves none");
        ok = false;
    }
    g_strfreev(items);
    return ok;
}

bool cpu_set_read(const char *path, QemuCpuSet *set)
{
    QemuCpuSet any;
    CpuList *list = g_new(CpuList, 1);
    char *text = NULL;
    bool ok = false;

    cpu_set_first(&any, QEMU_CPU_SET_MAX);
    memset(set, 0, sizeof(*set));
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        Error *err = NULL;
        ok = cpu_list_parse(path, "host CPU", g_strstrip(text), &any, list, &err);
        error_free(err);
    }
    if (ok) {
        *set = list->set;
    }
    g_free(text);
    g_free(list);
    return ok;
}
