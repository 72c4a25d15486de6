/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query-jit and info jit. */
#include <glib.h>
#include <inttypes.h>
#include "accel/jit-stats.h"
#include "monitor/internal.h"
#include "qapi/qapi.h"

static void add_fallbacks(QapiJitInfo *i, const JitStats *s)
{
    i->top_fallbacks = g_new0(QapiJitFallbackArray, 1);
    for (unsigned n = 0; n < JIT_STATS_TOP && s->top[n].mnemonic; n++) {
        QapiJitFallback *f = g_new0(QapiJitFallback, 1);

        f->mnemonic = g_strdup(s->top[n].mnemonic);
        f->count = s->top[n].count;
        qapi_jit_fallback_array_add(i->top_fallbacks, f);
    }
}

static QapiJitInfo *jit_info(unsigned index, const JitStats *s)
{
    QapiJitInfo *i = g_new0(QapiJitInfo, 1);

    i->cpu_index = index;
    i->size = s->size;
    i->blocks = s->blocks;
    i->bytes = s->bytes;
    i->translations = s->translated;
    i->refused = s->refused;
    i->evictions = s->evicted;
    i->invalidations = s->invalidated;
    i->links = s->links;
    i->entries = s->entries;
    i->unlinked_exits = s->exits_link;
    i->interpreted_blocks = s->interp_blocks;
    i->fallbacks = s->fallbacks;
    i->slow_paths = s->slow_paths;
    i->tlb_fills = s->tlb_fills;
    i->longest_translation_ns = s->longest_translation_ns;
    i->longest_eviction_ns = s->longest_eviction_ns;
    add_fallbacks(i, s);
    return i;
}

QapiJitInfoArray *qmp_query_jit(Error **errp)
{
    QapiJitInfoArray *a = g_new0(QapiJitInfoArray, 1);
    JitStats s;

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (cpu_get(i) && tcg_jit_stats(cpu_get(i), &s)) {
            qapi_jit_info_array_add(a, jit_info(i, &s));
        }
    }
    return a;
}

static void print_one(Monitor *mon, unsigned index, const JitStats *s)
{
    monitor_printf(mon,
                   "CPU #%u: code cache %" PRIu64 " KiB, %" PRIu64 " blocks, %" PRIu64 " KiB in use\n"
                   "  translations          %" PRIu64 " (%" PRIu64 " refused), longest %" PRIu64 " ns\n"
                   "  evictions             %" PRIu64 ", longest %" PRIu64 " ns\n"
                   "  invalidations         %" PRIu64 "\n"
                   "  links made            %" PRIu64 "\n"
                   "  unchained exits       %" PRIu64 " (%" PRIu64 " of links)\n"
                   "  interpreted blocks    %" PRIu64 "\n"
                   "  slow paths            %" PRIu64 "\n"
                   "  TLB fills             %" PRIu64 "\n"
                   "  interpreted in blocks %" PRIu64 "\n",
                   index, s->size / 1024, s->blocks, s->bytes / 1024, s->translated, s->refused,
                   s->longest_translation_ns, s->evicted, s->longest_eviction_ns, s->invalidated,
                   s->links, s->entries, s->exits_link, s->interp_blocks, s->slow_paths,
                   s->tlb_fills, s->fallbacks);
    for (unsigned n = 0; n < JIT_STATS_TOP && s->top[n].mnemonic; n++) {
        monitor_printf(mon, "    %-19s %" PRIu64 "\n", s->top[n].mnemonic, s->top[n].count);
    }
}

void hmp_info_jit(Monitor *mon, const char *args)
{
    bool any = false;
    JitStats s;

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (cpu_get(i) && tcg_jit_stats(cpu_get(i), &s)) {
            print_one(mon, i, &s);
            any = true;
        }
    }
    if (!any) {
        monitor_printf(mon, "no translator in use\n");
    }
}
