/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interpreter in the host's place. Both engines run on the one CPU of guest.c, in turn; this
 * file keeps the memory of the interpreter's turn.
 */
#include <stdlib.h>
#include <string.h>
#include "diff.h"

static uint8_t memory[MEM_SIZE];

void interp_load(const Stream *s)
{
    memcpy(memory, s->data, DATA_SIZE);
    memset(memory + DATA_SIZE, 0, MEM_SIZE - DATA_SIZE);
}

void interp_run(const State *in, State *out)
{
    static uint8_t translated[MEM_SIZE];
    uint64_t entries = guest_jit_entries();

    guest_read_memory(translated);
    guest_write_memory(memory);
    guest_translate(false);
    if (!guest_run(in, out)) {
        out->vector = -1;
    }
    if (guest_jit_entries() != entries) {
        abort(); /* it would compare the translator with itself */
    }
    guest_translate(true);
    guest_read_memory(memory);
    guest_write_memory(translated);
}

uint8_t *interp_data(void)
{
    return memory;
}
