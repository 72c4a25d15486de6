/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to gen*.c: the stream being written. */
#ifndef TESTS_DIFF_GEN_H
#define TESTS_DIFF_GEN_H

#include "diff.h"

typedef struct Out {
    Stream *s;
    unsigned pos; /* in s->code */
} Out;

/* Appends one instruction. */
void gen_emit(Out *o, const uint8_t *p, unsigned len);
/* gen.c: a random instruction and what it needs before it. */
void gen_instance(Rng *r, Out *o);
/* gen_flow.c */
void gen_branch(Rng *r, Out *o);
void gen_flow(Rng *r, Out *o);
void gen_save_restore(Rng *r, Out *o);

#endif
