/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control flow, and instructions that need their registers set up. */
#include <string.h>
#include "gen.h"

/* A conditional jump, LOOPcc or JRCXZ over the next instruction. */
void gen_branch(Rng *r, Out *o)
{
    uint8_t b[6] = { 0 };
    unsigned len = 2;
    switch (rng_below(r, 4)) {
    case 0:
        b[0] = (uint8_t)(0xe0 | rng_below(r, 4));
        break;
    case 1: /* the long form */
        b[0] = 0x0f;
        b[1] = (uint8_t)(0x80 | rng_below(r, 16));
        len = diff_16 ? 4 : 6;
        break;
    default:
        b[0] = (uint8_t)(0x70 | rng_below(r, 16));
        break;
    }
    gen_emit(o, b, len);
    unsigned jump = o->pos;
    gen_instance(r, o);
    o->s->code[jump - (len == 2 ? 1 : len - 2)] = (uint8_t)(o->pos - jump);
}

static void emit32(Out *o, const uint8_t *p, unsigned len, uint32_t v)
{
    uint8_t b[16];
    memcpy(b, p, len);
    memcpy(b + len, &v, 4);
    gen_emit(o, b, len + 4);
}

#define EMIT(o, ...)                                                                               \
    do {                                                                                           \
        const uint8_t bytes_[] = { __VA_ARGS__ };                                                  \
        gen_emit(o, bytes_, sizeof(bytes_));                                                           \
    } while (0)
#define EMIT32(o, v, ...)                                                                          \
    do {                                                                                           \
        const uint8_t bytes_[] = { __VA_ARGS__ };                                                  \
        emit32(o, bytes_, sizeof(bytes_), v);                                                      \
    } while (0)

static void flow_16(Rng *r, Out *o)
{
    uint8_t ip = (uint8_t)o->pos, hi = (uint8_t)(o->pos >> 8), n = (uint8_t)(4 * rng_below(r, 3));
    if (ip > 0xf0) {
        return; /* no carry into the high byte below */
    }
    switch (rng_below(r, 6)) {
    case 0:
        EMIT(o, 0xe8, 0, 0); /* call */
        break;
    case 1:
        EMIT(o, 0xe9, 0, 0);
        break;
    case 2:
        EMIT(o, 0x68, (uint8_t)(ip + 4), hi); /* push imm; ret */
        EMIT(o, 0xc3);
        break;
    case 3:
        EMIT(o, 0x68, (uint8_t)(ip + 6), hi);
        EMIT(o, 0xc2, n, 0); /* ret imm */
        break;
    case 4:
        EMIT(o, 0xb8, (uint8_t)(ip + 5), hi); /* mov ax, imm; jmp ax or call ax */
        EMIT(o, 0xff, rng_below(r, 2) ? 0xe0 : 0xd0);
        break;
    default: /* push imm; popf */
        EMIT(o, 0x68, (uint8_t)(rng_next(r) & 0xd5), (uint8_t)(rng_next(r) & 0x0c));
        EMIT(o, 0x9d);
        break;
    }
}

void gen_flow(Rng *r, Out *o)
{
    if (diff_16) {
        flow_16(r, o);
        return;
    }
    uint32_t here = (uint32_t)(CODE_ADDR + o->pos), n = 8 * rng_below(r, 3);
    switch (rng_below(r, diff_32 ? 6 : 9)) {
    case 0:
        EMIT(o, 0xe8, 0, 0, 0, 0); /* call */
        break;
    case 1:
        EMIT(o, 0xeb, 0x00);
        break;
    case 2:
        EMIT32(o, here + 6, 0x68); /* push imm; ret */
        EMIT(o, 0xc3);
        break;
    case 3:
        EMIT32(o, here + 8, 0x68);
        EMIT(o, 0xc2, (uint8_t)n, 0); /* ret imm */
        break;
    case 4:
        EMIT32(o, here + 7, 0xb8); /* mov eax, imm; jmp rax or call rax */
        EMIT(o, 0xff, rng_below(r, 2) ? 0xe0 : 0xd0);
        break;
    case 5: /* push imm; popf: arithmetic flags, DF, ID */
        EMIT32(o, (uint32_t)rng_next(r) & 0x200cd5, 0x68);
        EMIT(o, 0x9d);
        break;
    case 6:
        EMIT(o, 0xc8, (uint8_t)rng_next(r), 0, (uint8_t)rng_below(r, 2)); /* enter */
        break;
    case 7:
        EMIT(o, 0x48, 0x8d, 0x6c, 0x24, (uint8_t)n); /* lea rbp, [rsp+n]; leave */
        EMIT(o, 0xc9);
        break;
    default:
        EMIT(o, 0x49, 0x8d, 0x5e, (uint8_t)n); /* lea rbx, [r14+n]; xlat */
        EMIT(o, 0xd7);
        break;
    }
}

/*
 * State is saved, something happens, state is restored. The image itself is not compared: pointers,
 * MXCSR_MASK and which components are in use differ between processors.
 */
void gen_save_restore(Rng *r, Out *o)
{
    static const uint8_t save[][2] = { { 0xae, 0x27 }, { 0xae, 0x37 }, { 0xc7, 0x27 } };
    unsigned kind = rng_below(r, 4); /* XSAVE, XSAVEOPT, XSAVEC, FXSAVE */
    uint32_t addr = STATE_ADDR + (kind == 3 ? 0x800 : kind == 2 ? 0x400 : 0);
    uint32_t mask = 1 + rng_below(r, 7);
    bool rex = !diff_32 && rng_below(r, 2);
    for (unsigned n = 0; n < 2; n++) {
        uint8_t insn[4] = { 0x48, 0x0f, 0xae, 0x2f };
        if (n == 0 && kind < 3) {
            memcpy(insn + 2, save[kind], 2);
        } else if (kind == 3) {
            insn[3] = n ? 0x0f : 0x07;
        }
        EMIT32(o, addr, 0xbf);
        EMIT32(o, n ? 1 + rng_below(r, 7) : mask, 0xb8);
        EMIT(o, 0x31, 0xd2);
        gen_emit(o, insn + !rex, 4u - !rex);
        EMIT(o, 0x31, 0xff); /* nobody else may look at it */
        for (unsigned k = rng_below(r, 5); n == 0 && k; k--) {
            gen_instance(r, o);
        }
    }
}
