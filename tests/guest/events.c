/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Delivery of events: error codes, stacks that cannot be, windows for interrupts, NMIs, SYSRET. */
#include "guest.h"

#define NON_CANONICAL 0x0000800000000000ull
#define MSR_STAR      0xc0000081u

typedef struct __attribute__((packed)) TableReg {
    u16 limit;
    u64 base;
} TableReg;

static u8 code[8192] __attribute__((aligned(4096)));
static u64 tsc_per_ms;

static TableReg sidt(void)
{
    TableReg r;

    __asm__ volatile("sidt %0" : "=m"(r));
    return r;
}

static void lidt(TableReg r)
{
    __asm__ volatile("lidt %0" : : "m"(r));
}

/* ---- Error codes ---- */

static void int_100(void *arg)
{
    __asm__ volatile("int $100");
}

static void self_ipi_100(void *arg)
{
    apic_write(0x300, 0x00044064);
    __asm__ volatile("sti; nop; nop; nop" : : : "memory");
    delay_ms(100);
}

/* Vector 100 with 64 gates: #GP(vector * 8 + IDT), EXT unless by INT n (SDM 3A 6.13). */
static void ext_bit(void)
{
    TableReg all = sidt(), few = all;

    few.limit = 64 * 16 - 1;
    lidt(few);
    check_eq("INT 100 past the IDT", catch(int_100, NULL), 13);
    check_eq("its error code", last_error, 100 * 8 + 2);
    check_eq("interrupt 100 past the IDT", catch(self_ipi_100, NULL), 13);
    check_eq("its error code", last_error, 100 * 8 + 3);
    cli();
    lidt(all);
    apic_eoi();
}

/* Gates that cannot be used: the same error codes with EXT for interrupts and exceptions, without it for INT n. */
typedef struct BadGate {
    const char *what;
    u16 sel;
    u8 ist, type;
    int vector;
    bool names_gate; /* the error code tells the vector, not the selector */
} BadGate;
static const BadGate bad_gates[] = {
    { "gate not present", 8, 0, 0x0e, 11, true },         { "no interrupt gate", 8, 0, 0x82, 13, true },
    { "gate to CS 0", 0, 0, 0x8e, 13, false },            { "gate to CS past the GDT", 0x48, 0, 0x8e, 13, false },
    { "gate to a data segment", 0x10, 0, 0x8e, 13, false }, { "gate to 32-bit code", 0x18, 0, 0x8e, 13, false },
    { "gate to a segment not present", 0x20, 0, 0x8e, 11, false },
    { "IST entry that is not canonical", 8, 2, 0x8e, 12, false },
};

static void int_70h(void *arg)
{
    __asm__ volatile("int $0x70");
}

static void self_ipi_70h(void *arg)
{
    apic_write(0x300, 0x00044070);
    __asm__ volatile("sti; nop; nop; nop" : : : "memory");
    delay_ms(100);
}

static void int3(void *arg)
{
    __asm__ volatile("int3");
}

static void ud2(void *arg)
{
    __asm__ volatile("ud2");
}

static void bad_gate(const BadGate *b, u8 vector, void (*event)(void *arg), bool ext)
{
    u8 *gate = (u8 *)sidt().base + vector * 16, good[6];
    u64 error = (b->names_gate ? vector * 8u + 2 : b->vector == 12 ? 0 : b->sel) + ext;

    for (unsigned i = 0; i < 6; i++) {
        good[i] = gate[i];
    }
    gate[2] = (u8)b->sel;
    gate[4] = b->ist;
    gate[5] = b->type;
    check_eq(b->what, (u64)catch(event, NULL), (u64)b->vector);
    check_eq(b->what, last_error, error);
    cli();
    for (unsigned i = 0; i < 6; i++) {
        gate[i] = good[i];
    }
}

static void bad_gates_all(void)
{
    extern u64 gdt[];
    u64 user_code = gdt[4];

    tss.ist[1] = NON_CANONICAL + 0x1000;
    gdt[4] &= ~(7ull << 45); /* DPL 0, not present */
    for (unsigned k = 0; k < sizeof(bad_gates) / sizeof(bad_gates[0]); k++) {
        bad_gate(&bad_gates[k], 0x70, int_70h, false);
        bad_gate(&bad_gates[k], 3, int3, false);
        bad_gate(&bad_gates[k], 6, ud2, true);
        bad_gate(&bad_gates[k], 0x70, self_ipi_70h, true);
        apic_eoi();
    }
    gdt[4] = user_code;
}

/* ---- SYSRET to an address that is not canonical ---- */

static volatile u64 gp_cs;

static void on_gp(Regs *r)
{
    gp_cs = r->cs;
    set_handler(13, NULL);
    /* Back to CPL 0 on the stack that the caller left in RBX, at the address in RDI. */
    r->rip = r->rdi;
    r->cs = 8;
    r->ss = 0x10;
    r->rsp = r->rbx;
    r->rflags = 2;
}

/* Intel's SYSRET faults before it leaves CPL 0, AMD's target faults at CPL 3. */
static void sysret(void)
{
    u32 r[4];
    bool intel;

    cpuid(0, 0, r);
    intel = r[2] == 0x6c65746e; /* "ntel" */
    wrmsr(MSR_STAR, 0x20ull << 48 | 8ull << 32);
    set_handler(13, on_gp);
    __asm__ volatile("push %%rbp\n"
                     "mov %%rsp, %%rbx\n"
                     "lea 1f(%%rip), %%rdi\n"
                     "mov $2, %%r11d\n"
                     "sysretq\n"
                     "1: pop %%rbp\n"
                     : : "c"(NON_CANONICAL) : "rbx", "rdi", "r11", "memory");
    check_eq("CPL of SYSRET to a non-canonical address", gp_cs & 3, intel ? 0 : 3);
}

/* ---- Windows ---- */

static volatile u32 ticks;
static volatile u64 tick_rip;

static void on_tick(Regs *r)
{
    ticks++;
    tick_rip = r->rip;
    apic_eoi();
}

/* The PIT, one shot, through the I/O APIC: nothing the vCPU does brings the interrupt along. */
static void pit_arm(unsigned us)
{
    unsigned n = us * 1193 / 1000;

    ticks = 0;
    set_handler(0x50, on_tick);
    ioapic_write(0x10 + 2 * 2 + 1, apic_id() << 24);
    ioapic_write(0x10 + 2 * 2, 0x50);
    outb(0x43, 0x30);
    outb(0x40, (u8)n);
    outb(0x40, (u8)(n >> 8));
}

static void computing(void)
{
    u64 start = rdtsc(), limit = 2000 * tsc_per_ms;

    pit_arm(5000);
    sti();
    while (!ticks && rdtsc() - start < limit) {
    }
    cli();
    check_eq("interrupt of a device's thread while the CPU computes", ticks, 1);
}

/* Only the boundary after RET has no shadow: an interrupt must get through there. */
static void sti_ret(void)
{
    u64 start = rdtsc(), limit = 2000 * tsc_per_ms;

    pit_arm(2000);
    while (!ticks && rdtsc() - start < limit) {
        __asm__ volatile("mov $1000, %%ecx\n"
                         "1: cli\n"
                         "call 2f\n"
                         "loop 1b\n"
                         "cli\n"
                         "jmp 3f\n"
                         "2: sti\n"
                         "ret\n"
                         "3:\n" : : : "rcx", "memory");
    }
    check_eq("CLI, CALL of STI and RET: interrupt gets through", ticks, 1);
}

static void self_ipi(void)
{
    apic_write(0x300, 0x00044050);
}

/* STI is the last byte of a page; its shadow covers the first instruction of the next. */
static void sti_page_end(void)
{
    code[4095] = 0xfb;
    code[4096] = 0x90;
    code[4097] = 0x90;
    code[4098] = 0xfa;
    code[4099] = 0xc3;
    for (int i = 0; i < 3; i++) { /* the second time from what the emulator kept of the code */
        ticks = 0;
        self_ipi();
        __asm__ volatile("call *%0" : : "r"(code + 4095) : "memory");
        check_eq("interrupt after STI at a page's end", ticks, 1);
        check_eq("one instruction later", tick_rip, (u64)code + 4097);
    }
}

/* Of loads of SS in a row only the first holds interrupts back (SDM 3A 6.8.3). */
static void mov_ss_row(void)
{
    u64 start;

    ticks = 0;
    self_ipi();
    __asm__ volatile("lea 1f(%%rip), %0\n"
                     "sti\n"
                     "1: .rept 100\n"
                     "mov %w1, %%ss\n"
                     ".endr\n"
                     "cli\n" : "=&r"(start) : "r"(0x10) : "memory");
    check_eq("interrupt in a row of MOV SS", ticks, 1);
    check("within the row", tick_rip - start <= 3 * 3);
}

/* ---- NMI ---- */

static volatile u32 nmis, depth, deepest;

static void on_nmi(Regs *r)
{
    u32 d = ++depth;

    deepest = d > deepest ? d : deepest;
    if (nmis++ == 0) {
        apic_ipi(apic_id(), 0x4400);
        apic_ipi(apic_id(), 0x4400);
        apic_ipi(apic_id(), 0x4400);
        delay_ms(2);
    }
    depth--;
}

static void nmi_pending(void)
{
    set_handler(2, on_nmi);
    apic_ipi(apic_id(), 0x4400);
    delay_ms(5);
    check_eq("NMIs during one: one stays pending", nmis, 2);
    check_eq("not before IRET", deepest, 1);
}

/* ---- RDPMC: with AMD's registers of the K7, or none at all ---- */

static void rdpmc(void *arg)
{
    __asm__ volatile("rdpmc" : : "c"(arg) : "rax", "rdx");
}

static void counters(void)
{
    u32 r[4];

    cpuid(0, 0, r);
    check_eq("RDPMC 0", catch(rdpmc, NULL), r[2] == 0x6c65746e ? 13 : -1);
    check_eq("RDPMC 100", catch(rdpmc, (void *)100), 13);
}

void test_main(void)
{
    apic_enable();
    tss_load();
    tsc_per_ms = rdtsc();
    delay_ms(10);
    tsc_per_ms = (rdtsc() - tsc_per_ms) / 10;
    if (!host_interprets()) {
        ext_bit();
        bad_gates_all();
    }
    sysret();
    computing();
    sti_ret();
    nmi_pending();
    if (!host_interprets()) {
        sti_page_end();
        mov_ss_row();
        counters();
    }
}
