/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data breakpoints: which accesses they watch (SDM volume 3B, 18.2). */
#include "accel/tcg/mmu.h"

static uint64_t watch_len(const X86CPU *c, unsigned n)
{
    static const uint8_t len[4] = { 1, 2, 8, 4 };

    return len[c->dr[7] >> (18 + 4 * n) & 3];
}

/* Kind of breakpoint n if it is on: DR7.R/Wn; -1 if it is off. */
static int watch_kind(const X86CPU *c, unsigned n)
{
    return (c->dr[7] >> (2 * n) & 3) ? (int)(c->dr[7] >> (16 + 4 * n) & 3) : -1;
}

uint32_t mmu_watch_hits(const X86CPU *c, uint64_t lin, uint64_t len, bool write)
{
    uint32_t hits = 0;

    for (unsigned n = 0; n < 4; n++) {
        int kind = watch_kind(c, n);
        uint64_t wlen = watch_len(c, n);
        uint64_t start = c->dr[n] & ~(wlen - 1);

        if ((kind == 3 || (kind == 1 && write)) && (lin - start < wlen || start - lin < len)) {
            hits |= BIT(n);
        }
    }
    return hits;
}

void mmu_breakpoints_changed(X86CPU *c)
{
    struct TcgMmu *m = c->tcg->mmu;
    bool was = m->watch;

    m->watch = false;
    for (unsigned n = 0; n < 4; n++) {
        int kind = watch_kind(c, n);
        m->watch |= kind == 1 || kind == 3;
    }
    if (was || m->watch) {
        mmu_flush_everything(m);
    }
}
