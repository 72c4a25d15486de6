/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The translator's statistics, for others. They are counted where nothing fast is near. */
#include <glib.h>
#include "accel/accel.h"
#include "accel/tcg/jit.h"

typedef struct Query {
    JitStats *s;
    uint64_t *fallback; /* copy of Jit.fallback */
    bool ok;
} Query;

/* On the vCPU's thread: copies only. */
static void take(CPUState *cpu, void *opaque)
{
    Query *q = opaque;
    const X86CPU *c = x86_cpu(cpu);
    const Jit *j = c->tcg ? c->tcg->jit : NULL;

    if (!j) {
        return;
    }
    *q->s = j->stat;
    q->s->size = j->size;
    q->s->tlb_fills = c->tcg->tlb_fills;
    memcpy(q->fallback, j->fallback, sizeof(j->fallback));
    q->ok = true;
}

/* Takes the largest of fallback[] out. */
static unsigned largest(uint64_t *fallback)
{
    unsigned best = 0;

    for (unsigned m = 0; m < JIT_MNEMONICS; m++) {
        if (fallback[m] > fallback[best]) {
            best = m;
        }
    }
    return best;
}

bool tcg_jit_stats(CPUState *cpu, JitStats *s)
{
    Query q = { .s = s };

    if (!accel_is(&tcg_accel_ops)) {
        return false;
    }
    q.fallback = g_new0(uint64_t, JIT_MNEMONICS);
    run_on_cpu(cpu, take, &q);
    s->fallbacks = 0;
    for (unsigned m = 0; m < JIT_MNEMONICS; m++) {
        s->fallbacks += q.fallback[m];
    }
    for (unsigned n = 0; n < JIT_STATS_TOP; n++) {
        unsigned m = largest(q.fallback);

        if (!q.fallback[m]) {
            break;
        }
        s->top[n].mnemonic = ZydisMnemonicGetString((ZydisMnemonic)m);
        s->top[n].count = q.fallback[m];
        q.fallback[m] = 0;
    }
    g_free(q.fallback);
    return q.ok;
}
