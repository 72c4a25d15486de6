/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers, registers and data that streams start from. */
#include <string.h>
#include "diff.h"

void rng_seed(Rng *r, uint64_t seed)
{
    r->s[0] = seed * 0x9e3779b97f4a7c15ull + 1;
    r->s[1] = seed ^ 0xd1b54a32d192ed03ull;
    for (int n = 0; n < 16; n++) {
        rng_next(r);
    }
}

/* xorshift128+ */
uint64_t rng_next(Rng *r)
{
    uint64_t a = r->s[0], b = r->s[1];
    r->s[0] = b;
    a ^= a << 23;
    r->s[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return r->s[1] + b;
}

static void random_float(Rng *r, uint8_t *p, unsigned size)
{
    static const uint32_t f32[] = { 0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                    0xff800000, 0x7fc00000, 0x7f800001, 0x00000001, 0x807fffff,
                                    0x7f7fffff, 0x4f000000, 0x5f000000, 0x42280000, 0x3e99999a };
    static const uint64_t f64[] = { 0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
                                    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
                                    0x7ff0000000000001, 0x0000000000000001, 0x800fffffffffffff,
                                    0x7fefffffffffffff, 0x41e0000000000000, 0x43e0000000000000,
                                    0x4045000000000000, 0x3fd3333333333333 };
    if (size == 4) {
        memcpy(p, &f32[rng_below(r, 15)], 4);
    } else {
        memcpy(p, &f64[rng_below(r, 15)], 8);
    }
}

/* Fills len bytes with a mixture of random bits, special and everyday floating-point numbers and
 * small integers. */
void gen_data(Rng *r, uint8_t *p, unsigned len)
{
    for (unsigned n = 0; n + 8 <= len; n += 8) {
        uint64_t v = rng_next(r);
        switch (rng_below(r, 8)) {
        case 0:
            random_float(r, p + n, 8);
            continue;
        case 1:
            random_float(r, p + n, 4);
            random_float(r, p + n + 4, 4);
            continue;
        case 2: /* doubles around 1 */
            v = (v & 0x800fffffffffffff) | (0x3f0 + rng_below(r, 31)) * 0x10000000000000ull;
            break;
        case 3: /* floats around 1 */
            v = (v & 0x807fffff807fffff) | (120 + rng_below(r, 16)) * 0x0080000000800000ull;
            break;
        case 4:
            v = v & 0xff;
            break;
        }
        memcpy(p + n, &v, 8);
    }
}

static void random_x87(Rng *r, State *s)
{
    unsigned depth = rng_below(r, 9), top = rng_below(r, 8);
    s->fcw = 0x37f;
    if (rng_below(r, 3) == 0) {
        s->fcw = (uint16_t)(0x7f | (rng_next(r) & 0xf00));
    }
    if (rng_below(r, 12) == 0) {
        s->fcw &= (uint16_t)~(rng_next(r) & 0x3f);
    }
    s->fsw = (uint16_t)(top << 11 | (rng_next(r) & 0x4700));
    s->ftw = 0;
    for (unsigned n = 0; n < 8; n++) {
        uint64_t m = rng_next(r);
        uint16_t e = (uint16_t)(0x3fff - 40 + rng_below(r, 80));
        unsigned kind = rng_below(r, 12);
        m |= 1ull << 63;
        if (kind == 0) {
            random_float(r, (uint8_t *)&m, 8);
        } else if (kind == 1) {
            e = 0;
            m = rng_below(r, 2) ? 0 : m;
        } else if (kind == 2) {
            e = 0x7fff;
            m = rng_below(r, 2) ? 1ull << 63 : m;
        } else if (kind == 3) {
            e = (uint16_t)rng_next(r);
        } else if (kind == 4) {
            m = rng_next(r);
        } else if (kind == 5) {
            e = (uint16_t)(0x3fff + rng_below(r, 63));
            m &= ~0ull << rng_below(r, 63);
        }
        e |= rng_next(r) & 0x8000;
        memcpy(s->st[n], &m, 8);
        memcpy(s->st[n] + 8, &e, 2);
        if (n < depth) {
            s->ftw |= (uint8_t)(1u << ((top + n) & 7));
        }
    }
}

void gen_state(Rng *r, State *s)
{
    memset(s, 0, sizeof(*s));
    for (unsigned n = 0; n < 16; n++) {
        s->gpr[n] = rng_next(r);
        switch (rng_below(r, 6)) {
        case 0:
            s->gpr[n] &= 0xff;
            break;
        case 1:
            s->gpr[n] = (uint64_t)(int64_t)(int8_t)s->gpr[n];
            break;
        case 2:
            s->gpr[n] = 1ull << (s->gpr[n] & 63);
            break;
        }
    }
    uint64_t base = diff_16 ? 0 : DATA_ADDR;
    s->gpr[REG_PTR_A] = base + 0x800;
    s->gpr[REG_PTR_B] = base + 0x1000;
    s->gpr[REG_STACK] = base + 0x1800;
    if (diff_32) {
        for (unsigned n = 0; n < 8; n++) {
            s->gpr[n] = (uint32_t)s->gpr[n];
        }
    } else {
        s->gpr[REG_INDEX] = rng_below(r, 8) ? 16 * rng_below(r, 8) : rng_below(r, 128);
    }
    s->rflags = 0x202 | (rng_next(r) & 0x8d5) | (rng_below(r, 8) ? 0 : 0x400);
    gen_data(r, &s->ymm[0][0], sizeof(s->ymm));
    s->mxcsr = 0x1f80;
    if (rng_below(r, 3) == 0) {
        s->mxcsr |= rng_next(r) & 0xe07f;
    }
    if (rng_below(r, 10) == 0) {
        s->mxcsr &= ~(uint32_t)(rng_next(r) & 0x1f80);
    }
    random_x87(r, s);
}
