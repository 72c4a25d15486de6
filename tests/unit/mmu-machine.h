/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bare CPU for tests of page walks, rights, TLB and slow accesses of the interpreter, which are
 * called directly: tables are built in guest RAM and accesses made through the contract of interp.h.
 */
#ifndef TESTS_MMU_MACHINE_H
#define TESTS_MMU_MACHINE_H

#include <glib.h>
#include <pthread.h>
#include <string.h>
#include "accel/accel.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/sys.h"
#include "target/i386/cpuid.h"

#define RAM_SIZE (16 * MiB)
#define ROM_AT   (32 * MiB)
#define IO_AT    (48 * MiB)
#define NOWHERE  (1ull * GiB)

/* Tables. */
#define PML4 0x10000u
#define PDPT 0x11000u
#define PD   0x12000u
#define PT   0x13000u
#define PT2  0x14000u

#define RWU (PTE_P | PTE_W | PTE_U)

extern X86CPU *c;
extern RAMBlock *rb;
extern uint8_t *ram;
/* What the device at IO_AT saw. */
extern uint64_t io_value;
extern unsigned io_reads, io_writes;

enum { LD, ST, FETCH };

typedef struct Result {
    bool fault;
    int vector;
    uint32_t error;
    uint64_t value;
} Result;

void mmu_machine_make(void);
void put64(uint64_t at, uint64_t v);
void put32(uint64_t at, uint32_t v);
uint64_t get64(uint64_t at);
uint32_t get32(uint64_t at);
void flush(void);
void start(uint64_t cr0, uint64_t cr4, uint64_t efer, uint64_t cr3);
void start_long(uint64_t cr4);
void set_cpl(unsigned cpl);
Result access_mem(int kind, uint64_t lin, unsigned size, uint64_t v);

#define expect_ok(kind, lin) g_assert_false(access_mem(kind, lin, 4, 0).fault)
#define expect_value(lin, size, v)                                                                 \
    do {                                                                                           \
        Result r_ = access_mem(LD, lin, size, 0);                                                  \
        g_assert_false(r_.fault);                                                                  \
        g_assert_cmphex(r_.value, ==, v);                                                          \
    } while (0)
#define expect_pf(kind, lin, code)                                                                 \
    do {                                                                                           \
        Result r_ = access_mem(kind, lin, 4, 0);                                                   \
        g_assert_true(r_.fault);                                                                   \
        g_assert_cmpint(r_.vector, ==, EXCP_PF);                                                   \
        g_assert_cmphex(r_.error, ==, (uint32_t)(code));                                           \
        g_assert_cmphex(c->cr2, ==, (uint64_t)(lin));                                              \
    } while (0)

#endif
