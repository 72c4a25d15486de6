/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine of one CPU for tests of the system half of the interpreter, by small ring-0 programs:
 * each is assembled into its test's file, copied to guest RAM and run to a HLT. Every vector's
 * handler is a HLT of its own, so RIP tells what happened; tests that need to come back install
 * other handlers.
 */
#ifndef TESTS_SYS_MACHINE_H
#define TESTS_SYS_MACHINE_H

#include <glib.h>
#include <string.h>
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/sys.h"
#include "target/i386/cpuid.h"

#define RAM_SIZE (16 * MiB)
#define NOWHERE  (1ull * GiB)

#define GDT      0x1000u
#define IDT      0x2000u
#define STUBS    0x3000u /* 256 HLTs */
#define TSS      0x4000u
#define TSS_B    0x7000u
#define LDT      0x7800u
#define PML4     0x10000u
#define PT       0x13000u
#define CODE     0x100000u
#define UCODE    0x140000u
#define DATA     0x150000u
#define STACK    0x180000u
#define RSP0     0x190000u
#define IST1     0x1a0000u
#define USTACK   0x1c0000u

/* Selectors */
#define CS64  0x08
#define DS0   0x10
#define CS32  0x18
#define TR    0x20 /* 16 bytes */
#define UCS32 0x33
#define UDS   0x3b
#define UCS64 0x43
#define CS16  0x48
#define DS16  0x50
#define FREE  0x58 /* and on: for tests */

#define TEST_PORT 0x500

#define RWU (PTE_P | PTE_W | PTE_U)

/* Guest code: Intel syntax, 16, 32 or 64 bits. */
#define GUEST(name, bits, text)                                                                    \
    __asm__(".pushsection .rodata\n"                                                               \
            ".globl guest_" #name "\nguest_" #name ":\n"                                           \
            ".intel_syntax noprefix\n.code" #bits "\n" text "\n.code64\n.att_syntax prefix\n"      \
            ".globl guest_" #name "_end\nguest_" #name "_end:\n"                                   \
            ".popsection\n");                                                                      \
    extern const uint8_t guest_##name[], guest_##name##_end[];
#define PUT(at, name) put_code(at, guest_##name, (size_t)(guest_##name##_end - guest_##name))

extern X86CPU *c;
extern RAMBlock *rb;
extern uint8_t *ram;
/* The interrupt chip's one vector, or -1; its task priority. */
extern int pending_vector;
extern uint8_t tpr;

void sys_machine_make(void);
void put64(uint64_t at, uint64_t v);
void put32(uint64_t at, uint32_t v);
void put16(uint64_t at, uint16_t v);
uint64_t get64(uint64_t at);
uint32_t get32(uint64_t at);
uint16_t get16(uint64_t at);
void put_code(uint64_t at, const uint8_t *code, size_t len);
void put_desc(uint16_t sel, uint32_t base, uint32_t limit, uint32_t attr);
void put_gate(uint64_t at, uint16_t sel, uint64_t off, unsigned attr, unsigned low);
void put_gate64(unsigned vector, uint16_t sel, uint64_t off, unsigned attr, unsigned ist);
void load_seg(unsigned seg, uint16_t sel);
void begin(void);
/* Registers, tables and memory that all modes share; start_long() and start_32() use it. */
void start_common(void);
void start_long(void);
void start_32(void);
void to_user64(uint64_t rip);
/* Another vendor string of CPUID, for what AMD and Intel do differently. */
void set_vendor(const char *vendor);
/* Vector whose HLT ended the run; -1: another HLT; 256: shutdown. */
int go(void);

/* Programs that several tests run. */
extern const uint8_t guest_hlt[], guest_hlt_end[], guest_int40[], guest_int40_end[];
extern const uint8_t guest_syscall[], guest_syscall_end[], guest_sysret[], guest_sysret_end[];

#define expect_vector(v) g_assert_cmpint(go(), ==, v)
/* 64-bit frame at RSP, after the error code if there is one. */
#define frame64(n) get64(c->regs[R_RSP] + 8 * (n))
#define frame32(n) get32(c->regs[R_RSP] + 4 * (n))

#endif
