/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Delivery of events: error codes, stacks that cannot be, windows for interrupts, NMIs, SYSRET. */
#include "guest.h"

#define NON_CANONICAL 0x0000800000000000ull
#define MSR_STAR      0xc0000081u

typedef struct __attribute__((packed)) TableReg {
    u16 limit;
    u64 base;
} TableReg;

extern u64 gdt_tss[2];

static struct __attribute__((packed)) {
    u32 zero0;
    u64 rsp[3], zero1, ist[7], zero2;
    u16 zero3, io_map;
} tss;
static u8 ring0_stack[4096] __attribute__((aligned(16)));
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

static void load_tss(void)
{
    u64 base = (u64)&tss, limit = sizeof(tss) - 1;

    tss.rsp[0] = (u64)(ring0_stack + sizeof(ring0_stack));
    tss.io_map = sizeof(tss);
    gdt_tss[0] = limit | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    gdt_tss[1] = base >> 32;
    __asm__ volatile("ltr %w0" : : "r"(0x30));
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

static void int_70h(void *arg)
{
    __asm__ volatile("int $0x70");
}

static void bad_ist(void)
{
    u8 *gate = (u8 *)sidt().base + 0x70 * 16;

    tss.ist[0] = NON_CANONICAL + 0x1000;
    gate[4] = 1;
    check_eq("IST entry that is not canonical", catch(int_70h, NULL), 12);
    check_eq("its error code", last_error, 0);
    gate[4] = 0;
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
    load_tss();
    tsc_per_ms = rdtsc();
    delay_ms(10);
    tsc_per_ms = (rdtsc() - tsc_per_ms) / 10;
    if (!host_interprets()) {
        ext_bit();
        bad_ist();
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
