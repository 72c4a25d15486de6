/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs single instructions with all registers given, and tells what a fault of one found. */
#ifndef GUEST_FAULTS_H
#define GUEST_FAULTS_H

#include "guest.h"

#define ARITH 0x8d5ull
#define DF    0x400ull
/* Often enough to be translated, and to run translated. */
#define ROUNDS 25

/* Instructions, and the way back to run_at(). */
#define SNIPPET(name, text)                                                                        \
    extern u8 name##_code[];                                                                       \
    __asm__(".pushsection .text\n" #name "_code: " text "\n jmp *snippet_back\n.popsection\n")

/* Runs code with the registers of *r (RIP, CS and SS apart); *r are then those at its end. */
void run_at(const void *code, Regs *r);

typedef struct Seen {
    int vector; /* of the first fault; -1: none */
    unsigned count;
    u64 cr2;
    Regs regs;
} Seen;
extern Seen seen;

/* Faults come on their own stack, are noted in seen, and end the snippet, a repaired page fault apart. */
void faults_init(void);
/* The next page fault puts *pte to value and the instruction starts again. */
void repair_with(u64 *pte, u64 value);

/* Three pages, the middle one to be taken away. */
extern u8 arena[3 * 4096];
#define MIDDLE (arena + 4096)
#define UPPER  (arena + 8192)
void arena_fill(bool zero);

/* First difference of the registers, RIP, CS, SS apart, flags being ARITH and DF; NULL: none. */
const char *regs_differ(const Regs *a, const Regs *b);
/* As check_eq(), for what of several. */
void check_of(const char *what, const char *detail, u64 got, u64 want);

#endif
