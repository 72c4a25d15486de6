/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every flat guest is linked with; see guest.h. */
#include "guest.h"

#define MAX_CPU 8

typedef struct __attribute__((packed)) Gate {
    u16 off0, sel;
    u8 ist, type;
    u16 off1;
    u32 off2, zero;
} Gate;

extern char irq_stubs[], trampoline[], trampoline_end[];
extern u64 gdt_tss[2];

u64 last_error, last_cr2, last_rip;

static Gate idt[256];
static IrqFn *handlers[256];
static u64 failures;
static void *catch_buf[5];
static volatile bool catching;
static volatile int caught;

static struct {
    void (*volatile fn)(void *arg);
    void *volatile arg;
    volatile bool busy;
} work[MAX_CPU];
static volatile u32 cpus_up = 1;

/* ---- Output ---- */

static void put(char c)
{
    while (!(inb(0x3fd) & 0x20)) {
        cpu_pause();
    }
    outb(0x3f8, (u8)c);
}

void print(const char *s)
{
    for (; *s; s++) {
        put(*s);
    }
}

void print_hex(u64 v)
{
    print("0x");
    for (int i = 60; i >= 0; i -= 4) {
        if (v >> i || i == 0) {
            put("0123456789abcdef"[(v >> i) & 15]);
        }
    }
}

void check_eq(const char *what, u64 got, u64 want)
{
    if (got != want) {
        failures++;
        print("FAIL: ");
        print(what);
        print(": got ");
        print_hex(got);
        print(", want ");
        print_hex(want);
        print("\n");
    }
}

void check(const char *what, bool ok)
{
    check_eq(what, ok, 1);
}

void finish(void)
{
    print(failures ? "RESULT: failed\n" : "RESULT: passed\n");
    outb(0xf4, failures ? 1 : 0);
    for (;;) {
        __asm__ volatile("cli; hlt");
    }
}

bool cpu_offers(u32 leaf, unsigned reg, unsigned bit)
{
    u32 r[4];

    cpuid(leaf & 0x80000000, 0, r);
    if (leaf > r[0]) {
        return false;
    }
    cpuid(leaf, 0, r);
    return r[reg] >> bit & 1;
}

void enable_avx(void)
{
    u64 cr4;

    if (!cpu_offers(1, 2, 26) || !cpu_offers(1, 2, 28)) {
        return;
    }
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" : : "r"(cr4 | 1ull << 18));
    __asm__ volatile("xsetbv" : : "a"(7), "d"(0), "c"(0));
}

bool host_interprets(void)
{
    u32 r[4];

    cpuid(0x40000000, 0, r);
    return r[1] == 0x4b4d564b; /* "KVMK" */
}

/* ---- Exceptions ---- */

void set_handler(int vector, IrqFn *fn)
{
    handlers[vector] = fn;
}

void irq_dispatch(Regs *r);
void irq_dispatch(Regs *r)
{
    if (handlers[r->vector]) {
        handlers[r->vector](r);
        return;
    }
    if (r->vector < 32 && catching) {
        catching = false;
        caught = (int)r->vector;
        last_error = r->error;
        last_cr2 = read_cr2();
        last_rip = r->rip;
        __builtin_longjmp(catch_buf, 1);
    }
    print("FAIL: unexpected vector ");
    print_hex(r->vector);
    print(" error ");
    print_hex(r->error);
    print(" rip ");
    print_hex(r->rip);
    print(" cr2 ");
    print_hex(read_cr2());
    print("\n");
    failures++;
    finish();
}

int __attribute__((noinline)) catch(void (*fn)(void *arg), void *arg)
{
    caught = -1;
    catching = true;
    if (__builtin_setjmp(catch_buf) == 0) {
        fn(arg);
    }
    catching = false;
    return caught;
}

static void idt_init(void)
{
    for (int i = 0; i < 256; i++) {
        u64 a = (u64)irq_stubs + 16 * (u64)i;

        idt[i] = (Gate){ .off0 = (u16)a, .sel = 8, .type = 0x8e, .off1 = (u16)(a >> 16),
                         .off2 = (u32)(a >> 32) };
    }
}

static void idt_load(void)
{
    struct __attribute__((packed)) {
        u16 limit;
        u64 base;
    } idtr = { sizeof(idt) - 1, (u64)idt };

    __asm__ volatile("lidt %0" : : "m"(idtr));
}

/* ---- Task state ---- */

Tss tss;

void tss_load(void)
{
    static u8 stacks[8][8192] __attribute__((aligned(16)));
    u64 base = (u64)&tss, limit = sizeof(tss) - 1;

    tss.rsp[0] = (u64)stacks[1];
    for (int i = 0; i < 7; i++) {
        tss.ist[i] = (u64)stacks[i + 1] + sizeof(stacks[0]);
    }
    tss.io_map = sizeof(tss);
    gdt_tss[0] = limit | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    gdt_tss[1] = base >> 32;
    __asm__ volatile("ltr %w0" : : "r"(0x30));
}

void set_ist(int vector, u8 ist)
{
    idt[vector].ist = ist;
}

/* ---- Paging ---- */

u64 *pte_of(u64 va)
{
    static u64 tables[16][512] __attribute__((aligned(4096)));
    static unsigned used;
    u64 *pml4 = (u64 *)(read_cr3() & ~0xfffull);
    u64 *pdpt = (u64 *)(pml4[(va >> 39) & 511] & ~0xfffull);
    u64 *pd = (u64 *)(pdpt[(va >> 30) & 511] & ~0xfffull);
    u64 *pde = &pd[(va >> 21) & 511];

    if (*pde & 0x80) {
        u64 *pt = tables[used++];

        for (u64 i = 0; i < 512; i++) {
            pt[i] = ((*pde & ~0x1fffffull) + i * 4096) | 7;
        }
        *pde = (u64)pt | 7;
        tlb_flush();
    }
    return &((u64 *)(*pde & ~0xfffull))[(va >> 12) & 511];
}

/* ---- APIC ---- */

void apic_enable(void)
{
    apic_write(0xf0, 0x1ff);
    apic_write(0x80, 0);
}

void apic_ipi(u32 dest, u32 icr_low)
{
    apic_write(0x310, dest << 24);
    apic_write(0x300, icr_low);
    while (apic_read(0x300) & 0x1000) {
        cpu_pause();
    }
}

u32 apic_id(void)
{
    return apic_read(0x20) >> 24;
}

u32 ioapic_read(u8 reg)
{
    *(volatile u32 *)IOAPIC_BASE = reg;
    return *(volatile u32 *)(IOAPIC_BASE + 0x10);
}

void ioapic_write(u8 reg, u32 v)
{
    *(volatile u32 *)IOAPIC_BASE = reg;
    *(volatile u32 *)(IOAPIC_BASE + 0x10) = v;
}

void pic_mask(void)
{
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
}

/* ---- Time ---- */

void delay_ms(unsigned ms)
{
    while (ms--) {
        outb(0x61, (inb(0x61) & ~2) & ~1);
        outb(0x43, 0xb0); /* channel 2, mode 0 */
        outb(0x42, 1193 & 0xff);
        outb(0x42, 1193 >> 8);
        outb(0x61, (inb(0x61) & ~2) | 1);
        while (!(inb(0x61) & 0x20)) {
            cpu_pause();
        }
    }
}

/* ---- SMP ---- */

unsigned smp_start(unsigned n)
{
    char *dst = (char *)0x8000;

    for (char *src = trampoline; src < trampoline_end; src++) {
        *dst++ = *src;
    }
    apic_enable();
    apic_write(0x310, 0);
    apic_write(0x300, 0x000c4500); /* INIT to all but self */
    delay_ms(10);
    for (int i = 0; i < 2; i++) {
        apic_write(0x300, 0x000c4608); /* SIPI, vector 8 */
        delay_ms(1);
    }
    for (int i = 0; cpus_up < n && i < 2000; i++) {
        delay_ms(1);
    }
    return cpus_up;
}

void on_cpu(unsigned cpu, void (*fn)(void *arg), void *arg)
{
    work[cpu].arg = arg;
    work[cpu].busy = true;
    __asm__ volatile("" : : : "memory");
    work[cpu].fn = fn;
}

void wait_cpu(unsigned cpu)
{
    while (work[cpu].busy) {
        cpu_pause();
    }
}

static void ap_main(unsigned cpu)
{
    apic_enable();
    __asm__ volatile("lock incl %0" : "+m"(cpus_up));
    for (;;) {
        void (*fn)(void *arg) = work[cpu].fn;

        if (fn) {
            work[cpu].fn = NULL;
            fn(work[cpu].arg);
            work[cpu].busy = false;
        }
        cpu_pause();
    }
}

void guest_entry(unsigned cpu);
void guest_entry(unsigned cpu)
{
    if (cpu == 0) {
        idt_init();
    }
    idt_load();
    if (cpu) {
        ap_main(cpu);
    }
    pic_mask();
    test_main();
    finish();
}

/* gcc may call these. */
void *memcpy(void *d, const void *s, size_t n);
void *memcpy(void *d, const void *s, size_t n)
{
    void *r = d;

    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    return r;
}

void *memset(void *d, int v, size_t n);
void *memset(void *d, int v, size_t n)
{
    void *r = d;

    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(v) : "memory");
    return r;
}
