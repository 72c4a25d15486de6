/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz targets: docs/devel/fuzz.md. A target takes bytes and plays a guest, an operator or a file
 * with them. A target never judges by exit: what it calls must neither end the process, hang, leak,
 * nor touch what is not its own; fuzz_check() is for what a target knows besides.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "qemu/compiler.h"

typedef struct FuzzTarget {
    const char *name;
    /* Once, before the first run. */
    void (*init)(const struct FuzzTarget *t);
    /* Twice with the same bytes does the same twice. */
    void (*run)(const uint8_t *data, size_t size);
    const void *opaque; /* the target's own */
} FuzzTarget;

/* Ends with a NULL name. */
extern const FuzzTarget fuzz_devices[], fuzz_texts[], fuzz_monitors[], fuzz_kernels[],
    fuzz_code[], fuzz_programs[];

/* main.c. NULL: no such target. */
const FuzzTarget *fuzz_target_find(const char *name);
void fuzz_target_foreach(void (*fn)(const FuzzTarget *t));
/* Ends the process as a crash if cond is false. */
#define fuzz_check(cond, ...)                                                                      \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fuzz_fail(__VA_ARGS__);                                                                \
        }                                                                                          \
    } while (0)
QEMU_NORETURN void fuzz_fail(const char *fmt, ...) QEMU_PRINTF(1, 2);

/* ---- Reading the input; past its end there are zeros ---- */

typedef struct FuzzIn {
    const uint8_t *p;
    size_t left;
} FuzzIn;

static inline uint64_t fuzz_take(FuzzIn *in, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes && in->left; i++, in->left--) {
        v |= (uint64_t)*in->p++ << (8 * i);
    }
    return v;
}

/* What is left, as text without zero bytes; g_free(). */
static inline char *fuzz_text(FuzzIn *in)
{
    char *s = g_malloc(in->left + 1);

    for (size_t i = 0; i < in->left; i++) {
        s[i] = in->p[i] ? (char)in->p[i] : ' ';
    }
    s[in->left] = 0;
    in->left = 0;
    return s;
}

/* ---- machine.c: a "pc" whose vCPUs are parked and whose clock is set by hand ---- */

#define FUZZ_RAM (16 * MiB)

struct Chardev;
/* With all devices that a command line can add; two vCPUs. profiles: of the realtime switch. */
void fuzz_machine_init(bool profiles);
/* As it was after fuzz_machine_init(), but for guest RAM. */
void fuzz_machine_reset(void);
/* Lets the loops (main, control) carry out what they were asked to. */
void fuzz_machine_settle(void);
/* Virtual time goes on by ns. */
void fuzz_machine_step(int64_t ns);
/* Bytes come in from the peer of chr; what the front end has no room for is dropped. */
void fuzz_chr_in(struct Chardev *chr, const uint8_t *buf, size_t len);
struct Chardev *fuzz_chr_new(const char *id);

#endif
