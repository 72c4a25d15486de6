/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The small world our flat guests live in: ports, MSRs, printing on COM1, exceptions that can be
 * expected, local APIC, other vCPUs, and an end through isa-debug-exit at 0xf4.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

typedef struct Regs {
    u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
    u64 vector, error, rip, cs, rflags, rsp, ss;
} Regs;

void test_main(void);

void print(const char *s);
void print_hex(u64 v);
/* Prints "FAIL: WHAT got X want Y" and remembers it; the guest's exit status says it. */
void check_eq(const char *what, u64 got, u64 want);
void check(const char *what, bool ok);
void finish(void) __attribute__((noreturn));
/* CPUID's bit of register reg: 0 EAX to 3 EDX; false for leaves that there are not. */
bool cpu_offers(u32 leaf, unsigned reg, unsigned bit);
/* XCR0 is then all of x87, SSE and AVX; nothing if the processor has no AVX. */
void enable_avx(void);
/* Under KVM, whose host may interpret guest code and not know all of SSE. */
bool host_interprets(void);

static inline void outb(u16 p, u8 v) { __asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(p)); }
static inline void outw(u16 p, u16 v) { __asm__ volatile("outw %0, %1" : : "a"(v), "Nd"(p)); }
static inline void outl(u16 p, u32 v) { __asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(p)); }
static inline u8 inb(u16 p) { u8 v; __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(p)); return v; }
static inline u16 inw(u16 p) { u16 v; __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(p)); return v; }
static inline u32 inl(u16 p) { u32 v; __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(p)); return v; }
static inline u64 rdmsr(u32 i)
{
    u32 lo, hi;
    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(i));
    return lo | (u64)hi << 32;
}
static inline void wrmsr(u32 i, u64 v)
{
    __asm__ volatile("wrmsr" : : "c"(i), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}
static inline u64 rdtsc(void)
{
    u32 lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return lo | (u64)hi << 32;
}
static inline void cpuid(u32 leaf, u32 sub, u32 *r)
{
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}
static inline u64 read_cr2(void) { u64 v; __asm__ volatile("mov %%cr2, %0" : "=r"(v)); return v; }
static inline u64 read_cr3(void) { u64 v; __asm__ volatile("mov %%cr3, %0" : "=r"(v)); return v; }
static inline void write_cr3(u64 v) { __asm__ volatile("mov %0, %%cr3" : : "r"(v) : "memory"); }
static inline void cli(void) { __asm__ volatile("cli" : : : "memory"); }
static inline void sti(void) { __asm__ volatile("sti; nop" : : : "memory"); }
static inline void sti_hlt(void) { __asm__ volatile("sti; hlt" : : : "memory"); }
static inline void cpu_pause(void) { __asm__ volatile("pause" : : : "memory"); }

/* ---- Interrupts and exceptions ---- */
typedef void IrqFn(Regs *r);
void set_handler(int vector, IrqFn *fn);

/*
 * Runs fn(arg); an exception in it comes back as vector, with its error code in last_error and CR2
 * in last_cr2; -1 if there was none.
 */
int catch(void (*fn)(void *arg), void *arg);
extern u64 last_error, last_cr2, last_rip;

/* A task state, and a stack for CPL 0 and for each IST entry. */
typedef struct __attribute__((packed)) Tss {
    u32 zero0;
    u64 rsp[3], zero1, ist[7], zero2;
    u16 zero3, io_map;
} Tss;
extern Tss tss;
void tss_load(void);
/* From now on vector is delivered on stack ist (1 to 7; 0: on the stack there is). */
void set_ist(int vector, u8 ist);

/* The 4 KiB page table entry of va, splitting the 2 MiB page it is in. Needs tlb_flush(). */
u64 *pte_of(u64 va);
static inline void tlb_flush(void) { write_cr3(read_cr3()); }

/* ---- Local APIC (xAPIC at 0xfee00000) ---- */
#define APIC_BASE 0xfee00000ull
static inline u32 apic_read(u32 reg) { return *(volatile u32 *)(APIC_BASE + reg); }
static inline void apic_write(u32 reg, u32 v) { *(volatile u32 *)(APIC_BASE + reg) = v; }
void apic_enable(void);
static inline void apic_eoi(void) { apic_write(0xb0, 0); }
void apic_ipi(u32 dest, u32 icr_low);
#define IOAPIC_BASE 0xfec00000ull
u32 ioapic_read(u8 reg);
void ioapic_write(u8 reg, u32 v);
/* Masks all lines of the PIC pair. */
void pic_mask(void);

/* ---- Other vCPUs ---- */
/* Starts them; returns how many vCPUs run in all, given that n should. */
unsigned smp_start(unsigned n);
/* Runs fn(arg) on vCPU cpu and does not wait. */
void on_cpu(unsigned cpu, void (*fn)(void *arg), void *arg);
void wait_cpu(unsigned cpu);
u32 apic_id(void);

/* Busy wait on the PIT's channel 2. */
void delay_ms(unsigned ms);

#endif
