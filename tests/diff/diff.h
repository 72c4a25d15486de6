/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differential test of the interpreter's user-mode instructions: random streams run natively
 * (native.c) and in an X86CPU in 64-bit mode at CPL 3 behind real page tables (guest.c), starting
 * from the same registers and memory, and everything architectural is compared (main.c). Where the
 * host cannot run the code, translated code is compared with the interpreter (interp.c).
 * Streams come from gen.c.
 */
#ifndef TESTS_DIFF_H
#define TESTS_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <Zydis/Zydis.h>

#define CODE_ADDR   0x10000000ull
#define CODE_SIZE   0x2000u
#define DATA_ADDR   0x20000000ull
#define DATA_SIZE   0x3000u /* the last page is read-only; what follows is not mapped */
#define DATA_RW     0x2000u
/* 16-bit code: segments of the LDT, based at code and data; RIP in a State is linear all the same. */
#define LDT_CODE    0x07
#define LDT_DATA    0x0f
#define STATE_ADDR  0x20004000u /* one page for state images, which is not compared */

/* Streams are 64-bit code, or 32-bit or 16-bit code in compatibility mode. */
extern unsigned diff_bits;
#define diff_32 (diff_bits != 64)
#define diff_16 (diff_bits == 16)

/* Registers that streams use as pointers and do not overwrite. */
#define REG_PTR_A (diff_32 ? 5u : 14u)
#define REG_PTR_B (diff_32 ? 3u : 15u)
#define REG_INDEX (diff_32 ? 99u : 13u) /* 32-bit code has none to spare */
#define REG_STACK 4u

typedef struct State {
    uint64_t gpr[16];
    uint64_t rip, rflags;
    uint8_t ymm[16][32];
    uint8_t st[8][10]; /* by ST(i) */
    uint16_t fcw, fsw;
    uint8_t ftw;
    uint32_t mxcsr;
    /* how it ended */
    int vector;
    uint64_t error, cr2;
} State;

#define MAX_INSNS 192

typedef struct Stream {
    uint8_t code[CODE_SIZE];
    unsigned n;
    unsigned off[MAX_INSNS + 1]; /* in code; off[n] is the final INT3 */
    uint8_t data[DATA_SIZE];
    State init;
} Stream;

typedef struct Rng {
    uint64_t s[2];
} Rng;
void rng_seed(Rng *r, uint64_t seed);
uint64_t rng_next(Rng *r);
static inline unsigned rng_below(Rng *r, unsigned n)
{
    return (unsigned)((rng_next(r) >> 11) % n);
}

/* gen_state.c */
void gen_state(Rng *r, State *s);
void gen_data(Rng *r, uint8_t *p, unsigned len);

/* gen.c */
enum { CLASS_INT = 1, CLASS_SSE = 2, CLASS_AVX = 4, CLASS_X87 = 8, CLASS_ALL = 15 };
/* Builds the table of what can be generated; returns the number of templates. only: a mnemonic, or
 * NULL. */
unsigned gen_init(unsigned classes, const char *only);
void gen_stream(Rng *r, Stream *s);
bool gen_decode(const uint8_t *p, unsigned len, ZydisDecodedInstruction *zi,
                ZydisDecodedOperand *op);

/* native.c */
bool native_init(void);
/* Can the host run code of diff_bits at all? There are kernels without 32-bit or 16-bit segments. */
bool native_can(void);
void native_load(const Stream *s);
void native_run(const State *in, State *out);
uint8_t *native_data(void);

/* interp.c: the interpreter in place of the host, for a translator with nothing else to compare to */
void interp_load(const Stream *s);
void interp_run(const State *in, State *out);
uint8_t *interp_data(void);

/* guest.c */
bool guest_init(void);
void guest_load(const Stream *s);
/* False: the interpreter came back without an exception. */
bool guest_run(const State *in, State *out);
void guest_read_data(uint8_t *buf);
/* Data and the page of state images, MEM_SIZE bytes. */
#define MEM_SIZE (DATA_SIZE + 4096u)
void guest_read_memory(uint8_t *buf);
void guest_write_memory(const uint8_t *buf);
/* From here on code is translated before it runs, or only interpreted. */
void guest_translate(bool on);
/* How often translated code was entered. */
uint64_t guest_jit_entries(void);
/* Would CPUID on the host say so? Also what the guest is given. */
bool guest_has(ZydisISASet set);

#endif
