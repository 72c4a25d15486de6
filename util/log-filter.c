/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -dfilter: the guest addresses that -d in_asm, out_asm, exec and cpu are limited to. */
#include <glib.h>
#include <string.h>
#include "qemu/cutils.h"
#include "qemu/log.h"

#define MAX_RANGES 64

typedef struct AddrRange {
    uint64_t first, last;
} AddrRange;

/* Written at start-up, before there is a thread that asks. */
static struct {
    unsigned n; /* 0: no filter, everything is logged */
    AddrRange range[MAX_RANGES];
} filter;

bool qemu_log_in_addr_range(uint64_t addr)
{
    for (unsigned i = 0; i < filter.n; i++) {
        if (addr >= filter.range[i].first && addr <= filter.range[i].last) {
            return true;
        }
    }
    return filter.n == 0;
}

/* *sep: where START ends, *kind: '.', '+' or '-'. False: there is no such place. */
static bool find_separator(const char *word, const char **sep, char *kind)
{
    *sep = strstr(word, "..");
    if (!*sep) {
        *sep = strpbrk(word, "+-");
    }
    *kind = *sep ? **sep : '\0';
    return *sep != NULL;
}

/* NULL, or what is wrong with it. */
static const char *range_parse(const char *word, AddrRange *r)
{
    const char *sep;
    uint64_t a, b;
    char kind;

    if (!find_separator(word, &sep, &kind)) {
        return "must be START..END, START+LEN or START-LEN";
    }
    char *start = g_strndup(word, (size_t)(sep - word));
    int bad = qemu_parse_u64(start, 0, &a);
    g_free(start);
    if (bad || qemu_parse_u64(sep + (kind == '.' ? 2 : 1), 0, &b)) {
        return "needs two numbers of at most 64 bits, such as 0x8000..0x8fff (hex with 0x, else decimal)";
    }
    if (kind == '.') {
        *r = (AddrRange){ a, b };
        return b < a ? "ends before it begins; put the lower address first" : NULL;
    }
    if (!b) {
        return "is empty; its length must be at least 1";
    }
    *r = kind == '+' ? (AddrRange){ a, a + (b - 1) } : (AddrRange){ a - (b - 1), a };
    if (r->last < r->first) {
        return kind == '+' ? "goes beyond the highest address; make it shorter"
                           : "goes below address 0; make it shorter";
    }
    return NULL;
}

bool qemu_log_filter_parse(const char *ranges, Error **errp)
{
    char **words = g_strsplit(*ranges ? ranges : " ", ",", -1);
    AddrRange r[MAX_RANGES];
    unsigned n = 0;
    bool ok = true;

    for (char **w = words; *w && ok; w++) {
        const char *why = n == MAX_RANGES ? "is one too many; there can be 64" : range_parse(*w, &r[n++]);

        if (why) {
            error_setg(errp, "-dfilter %s: range '%s' %s", ranges, *ranges ? *w : "", why);
            ok = false;
        }
    }
    g_strfreev(words);
    if (ok) {
        memcpy(filter.range, r, n * sizeof(r[0]));
        filter.n = n;
    }
    return ok;
}

void qemu_log_filter_clear(void)
{
    filter.n = 0;
}
