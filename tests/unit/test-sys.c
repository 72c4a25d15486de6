/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system half of the interpreter, by small ring-0 programs: each is assembled into this file,
 * copied to guest RAM and run to a HLT. Every vector's handler is a HLT of its own, so RIP tells
 * what happened; tests that need to come back install other handlers.
 */
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

static X86CPU *c;
static RAMBlock *rb;
static uint8_t *ram;

/* ---- Machine ---- */

static uint32_t all_supported(FeatureWord w)
{
    return ~0u;
}
static uint32_t no_defaults(FeatureWord w)
{
    return 0;
}
static void no_host(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    memset(r, 0, 16);
}
static uint32_t khz(void)
{
    return 1000000;
}
static const X86CpuBackend backend = {
    .name = "test", .supported = all_supported, .defaults = no_defaults, .host_cpuid = no_host,
    .default_tsc_khz = khz,
};

/* An interrupt chip that has at most one vector. */
static int pending_vector = -1;
static uint8_t tpr;

static bool chip_pending(CPUState *cpu)
{
    return pending_vector >= 0 && pending_vector >> 4 > tpr;
}
static int chip_ack(CPUState *cpu)
{
    int v = pending_vector;
    pending_vector = -1;
    return v;
}
static uint8_t chip_tpr_get(CPUState *cpu)
{
    return tpr;
}
static void chip_tpr_set(CPUState *cpu, uint8_t v)
{
    tpr = v;
}
static const IrqChipOps chip = { .name = "test", .cpu_pending = chip_pending, .cpu_ack = chip_ack,
                                 .tpr_get = chip_tpr_get, .tpr_set = chip_tpr_set };

static void request(uint32_t bits)
{
    event_word_set(&c->base.event, bits);
    atomic_store(&c->base.exit_request, 1);
}

/*
 * OUT 0xff: a non-maskable interrupt; any other value: that vector. A word read raises vector 0x40
 * while it is under way: IN, unlike OUT, ends no block.
 */
static void port_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    if (v == 0xff) {
        atomic_fetch_add(&c->base.nmi_count, 1);
        request(CPU_REQ_NMI);
    } else {
        pending_vector = (int)v;
        request(CPU_REQ_INTERRUPT);
    }
}
static uint64_t port_read(void *opaque, hwaddr off, unsigned size)
{
    if (size == 2) {
        pending_vector = 0x40;
        request(CPU_REQ_INTERRUPT);
    }
    return 0x5a5a5a5a;
}
static const MemoryRegionOps port_ops = { .read = port_read, .write = port_write };

static void machine_make(void)
{
    static MemoryRegion mr_ram, mr_port;

    memory_init();
    memory_thread_register();
    rb = ram_block_new("ram", RAM_SIZE, 0, -1, &error_abort);
    memory_region_init_ram(&mr_ram, rb, "ram");
    memory_region_add_subregion(memory_root(), 0, &mr_ram, 0);
    memory_region_init_io(&mr_port, &port_ops, NULL, "port", 4);
    memory_region_add_subregion(io_root(), TEST_PORT, &mr_port, 0);
    ram = rb->host;
    irqchip = &chip;
    x86_cpu_set_backend(&backend);
    g_assert_true(x86_cpu_set_model("max", &error_abort));
    c = x86_cpu_new(0, &error_abort);
    g_assert_true(tcg_engine_init(c, &error_abort));
}

static void put64(uint64_t at, uint64_t v)
{
    memcpy(ram + at, &v, 8);
}
static void put32(uint64_t at, uint32_t v)
{
    memcpy(ram + at, &v, 4);
}
static void put16(uint64_t at, uint16_t v)
{
    memcpy(ram + at, &v, 2);
}
static uint64_t get64(uint64_t at)
{
    uint64_t v;
    memcpy(&v, ram + at, 8);
    return v;
}
static uint32_t get32(uint64_t at)
{
    return (uint32_t)get64(at);
}
static uint16_t get16(uint64_t at)
{
    return (uint16_t)get64(at);
}

static void put_code(uint64_t at, const uint8_t *code, size_t len)
{
    memcpy(ram + at, code, len);
    ram_block_written(rb, at, len);
}

static void put_desc(uint16_t sel, uint32_t base, uint32_t limit, uint32_t attr)
{
    put64(GDT + (sel & ~7u), (limit & 0xffff) | (uint64_t)(base & 0xffffff) << 16 |
                                 (uint64_t)(attr & 0xff) << 40 |
                                 (uint64_t)(limit >> 16 & 15) << 48 |
                                 (uint64_t)(attr >> 12 & 15) << 52 | (uint64_t)(base >> 24) << 56);
}

/* A gate in the first 8 bytes; attr: type, DPL, P as in an access byte. */
static void put_gate(uint64_t at, uint16_t sel, uint64_t off, unsigned attr, unsigned low)
{
    put64(at, (off & 0xffff) | (uint64_t)sel << 16 | (uint64_t)low << 32 | (uint64_t)attr << 40 |
                  (off >> 16 & 0xffff) << 48);
}

static void put_gate64(unsigned vector, uint16_t sel, uint64_t off, unsigned attr, unsigned ist)
{
    put_gate(IDT + vector * 16, sel, off, attr, ist);
    put64(IDT + vector * 16 + 8, off >> 32);
}

static void put_tables(void)
{
    put64(PML4, (PML4 + 0x1000) | RWU);
    put64(PML4 + 0x1000, (PML4 + 0x2000) | RWU);
    put64(PML4 + 0x2000, PT | RWU);
    for (uint64_t n = 1; n < 8; n++) {
        put64(PML4 + 0x2000 + n * 8, n << 21 | PTE_PS | RWU);
    }
    for (uint64_t n = 0; n < 512; n++) {
        put64(PT + n * 8, n << 12 | RWU);
    }
}

static void put_gdt(void)
{
    put_desc(CS64, 0, 0xfffff, 0xa09b);
    put_desc(DS0, 0, 0xfffff, 0xc093);
    put_desc(CS32, 0, 0xfffff, 0xc09b);
    put_desc(TR, TSS, 0xfff, 0x008b);
    put_desc(UCS32, 0, 0xfffff, 0xc0fb);
    put_desc(UDS, 0, 0xfffff, 0xc0f3);
    put_desc(UCS64, 0, 0xfffff, 0xa0fb);
    put_desc(CS16, 0, 0xffff, 0x009b);
    put_desc(DS16, 0, 0xffff, 0x0093);
}

static void load_seg(unsigned seg, uint16_t sel)
{
    Desc d;
    uint64_t q = get64(GDT + (sel & ~7u));

    d = (Desc){ .lo = (uint32_t)q, .hi = (uint32_t)(q >> 32) };
    c->seg[seg] = desc_cache(&d, sel);
}

static void start_common(void)
{
    x86_cpu_reset(c, false);
    memset(ram, 0, 0x200000);
    memset(ram + STUBS, 0xf4, 256);
    put_gdt();
    put_tables();
    memset(c->regs, 0, sizeof(c->regs));
    c->regs[R_RSP] = STACK;
    c->gdt = (TableReg){ GDT, 0x1ff };
    c->tr = (SegmentCache){ .selector = TR, .attr = SEG_P | 0xb, .limit = 0xfff, .base = TSS };
    c->ldt = seg_null(0);
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        load_seg(n, DS0);
    }
    c->rip = CODE;
    pending_vector = -1;
    tpr = 0;
    event_word_take(&c->base.event);
}

static void begin(void)
{
    atomic_store(&c->base.halted, false);
    c->cpl = c->seg[R_CS].selector & 3;
    ram_block_written(rb, 0, RAM_SIZE);
    tcg_engine_reset(c);
}

static void start_long(void)
{
    start_common();
    load_seg(R_CS, CS64);
    for (unsigned n = 0; n < 256; n++) {
        put_gate64(n, CS64, STUBS + n, 0x8e, 0);
    }
    c->idt = (TableReg){ IDT, 0xfff };
    put64(TSS + 4, RSP0);
    put64(TSS + 0x24, IST1);
    put16(TSS + 0x66, 0x68);
    c->cr0 = CR0_PE | CR0_PG | CR0_WP | CR0_ET | CR0_NE;
    c->cr4 = CR4_PAE | CR4_PGE | CR4_OSFXSR;
    c->cr3 = PML4;
    c->efer = EFER_LME | EFER_LMA | EFER_NXE | EFER_SCE;
    begin();
}

static void start_32(void)
{
    start_common();
    load_seg(R_CS, CS32);
    for (unsigned n = 0; n < 256; n++) {
        put_gate(IDT + n * 8, CS32, STUBS + n, 0x8e, 0);
    }
    c->idt = (TableReg){ IDT, 0x7ff };
    put32(TSS + 4, RSP0);
    put32(TSS + 8, DS0);
    put16(TSS + 0x66, 0x68);
    c->cr0 = CR0_PE | CR0_ET | CR0_NE;
    begin();
}

static void to_user64(uint64_t rip)
{
    load_seg(R_CS, UCS64);
    load_seg(R_SS, UDS);
    load_seg(R_DS, UDS);
    load_seg(R_ES, UDS);
    c->regs[R_RSP] = USTACK;
    c->rip = rip;
    begin();
}

/* Vector whose HLT ended the run; -1: another HLT; 256: shutdown. */
static int go(void)
{
    ExitReason r;

    atomic_store(&c->base.halted, false);
    do {
        r = tcg_engine_run(c);
    } while (r == EXIT_REQUEST);
    if (r == EXIT_SHUTDOWN) {
        return 256;
    }
    g_assert_cmpint(r, ==, EXIT_HALT);
    return c->rip - 1 - STUBS < 256 ? (int)(c->rip - 1 - STUBS) : -1;
}

#define expect_vector(v) g_assert_cmpint(go(), ==, v)
/* 64-bit frame at RSP, after the error code if there is one. */
#define frame64(n) get64(c->regs[R_RSP] + 8 * (n))
#define frame32(n) get32(c->regs[R_RSP] + 4 * (n))

/* ---- Event delivery ---- */

GUEST(sti_wait, 64, "sti; nop; nop; 1: jmp 1b")
GUEST(hlt, 64, "hlt")

static void test_ext_bit(void)
{
    start_long();
    PUT(CODE, sti_wait);
    c->idt.limit = 64 * 16 - 1;
    pending_vector = 100;
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, 0x323);
}

GUEST(load_rbx, 64, "mov rax, [rbx]; hlt")
GUEST(load_rbp, 64, "mov rax, [rbp]; hlt")
GUEST(load_rsp, 64, "mov rax, [rsp + 8]; hlt")
GUEST(push_rax, 64, "push rax; hlt")
GUEST(int40, 64, "int 0x40; hlt")

static void test_non_canonical(void)
{
    const uint64_t bad = 0x0000800000000000ull;

    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = bad;
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);

    start_long();
    PUT(CODE, load_rbp);
    c->regs[R_RBP] = bad;
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(0), ==, 0);

    start_long();
    put_gate64(EXCP_SS, CS64, STUBS + EXCP_SS, 0x8e, 1);
    PUT(CODE, load_rsp);
    c->regs[R_RSP] = bad;
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(4), ==, bad);

    start_long();
    put_gate64(EXCP_SS, CS64, STUBS + EXCP_SS, 0x8e, 1);
    PUT(CODE, push_rax);
    c->regs[R_RSP] = bad + 8;
    expect_vector(EXCP_SS);

    /* An IST entry that is not canonical. */
    start_long();
    put64(TSS + 0x2c, bad + 0x1000);
    put_gate64(0x40, CS64, STUBS + 0x40, 0x8e, 2);
    PUT(CODE, int40);
    expect_vector(EXCP_SS);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);
}

static void test_double_fault(void)
{
    /* #GP whose gate is not present: #NP during #GP is #DF with error code 0. */
    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, 0, 0x0e, 0);
    expect_vector(EXCP_DF);
    g_assert_cmphex(frame64(0), ==, 0);
    g_assert_cmphex(frame64(1), ==, CODE);

    /* #PF on the stack of #PF. */
    start_long();
    PUT(CODE, push_rax);
    put64(PT + (STACK - 8) / 0x1000 * 8, 0);
    put_gate64(EXCP_DF, CS64, STUBS + EXCP_DF, 0x8e, 1);
    expect_vector(EXCP_DF);
    g_assert_cmphex(c->regs[R_RSP], ==, IST1 - 48);
    g_assert_cmphex(frame64(4), ==, STACK);

    /* A benign event and a fault are two faults: INT n through a bad gate. */
    start_long();
    PUT(CODE, int40);
    put_gate64(0x40, CS64, 0, 0x0e, 0);
    expect_vector(EXCP_NP);
    g_assert_cmphex(frame64(0), ==, 0x40 * 8 + 2);

    /* And the third: shutdown. */
    start_long();
    PUT(CODE, load_rbx);
    c->regs[R_RBX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, 0, 0x0e, 0);
    put_gate64(EXCP_DF, CS64, 0, 0x0e, 0);
    expect_vector(256);
}

GUEST(reload_ds, 64, "mov ds, ax; hlt")
GUEST(user_int, 64, "int 0x40; hlt")
GUEST(set_cr3, 64, "mov cr3, rax; nop; hlt")

static void test_nowhere(void)
{
    start_long();
    PUT(CODE, int40);
    c->idt.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(CODE, int40);
    c->gdt.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(UCODE, user_int);
    put_gate64(0x40, CS64, STUBS + 0x40, 0xee, 0);
    to_user64(UCODE);
    c->tr.base = NOWHERE;
    expect_vector(256);

    start_long();
    PUT(CODE, set_cr3);
    c->regs[R_RAX] = NOWHERE;
    expect_vector(256);

    /* Paged in, but with no memory behind it. */
    start_long();
    PUT(CODE, int40);
    put64(PT + IDT / 0x1000 * 8, NOWHERE | RWU);
    expect_vector(256);

    start_32();
    PUT(CODE, int40);
    c->idt.base = NOWHERE;
    expect_vector(256);
}

GUEST(int_then_mark, 64, "int 0x40; mov ebx, 1234; hlt")
GUEST(iretq, 64, "mov ecx, 77; iretq")

static void test_user_int(void)
{
    start_long();
    PUT(UCODE, int_then_mark);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* gate's DPL is 0 */
    g_assert_cmphex(frame64(0), ==, 0x40 * 8 + 2);
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(frame64(2), ==, UCS64);
    g_assert_cmphex(frame64(4), ==, USTACK);
    g_assert_cmphex(frame64(5), ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, RSP0 - 48);
    g_assert_cmphex(c->seg[R_SS].selector, ==, 0);

    start_long();
    PUT(UCODE, int_then_mark);
    PUT(CODE, iretq);
    put_gate64(0x40, CS64, CODE, 0xee, 1);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* back at CPL 3, HLT faults */
    g_assert_cmphex(frame64(1), ==, UCODE + 7);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1234);
    g_assert_cmpuint(c->regs[R_RCX], ==, 77);
}

/* ---- Interrupt windows ---- */

GUEST(cli_sti_loop, 64, "mov ecx, 1000; 1: cli; call 2f; dec ecx; jnz 1b; hlt; 2: sti; ret")
GUEST(sti_hlt, 64, "sti; hlt; mov ebx, 5; hlt")
GUEST(mov_ss_twice, 64, "sti; nop; mov edx, 0x500; in ax, dx;"
                        "mov ss, cx; mov ss, cx; nop; nop; hlt")
GUEST(mov_ss_once, 64, "sti; nop; mov edx, 0x500; in ax, dx;"
                       "mov ss, cx; nop; nop; hlt")

static void test_windows(void)
{
    start_long();
    PUT(CODE, cli_sti_loop);
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 11); /* after the first CALL: STI, RET, then it came */
    g_assert_cmpuint(c->regs[R_RCX], ==, 1000);

    /* STI as the last byte of a page. */
    start_long();
    put_code(CODE + 0xfff, (const uint8_t[]){ 0xfb, 0x90, 0x90, 0xf4 }, 4);
    c->rip = CODE + 0xfff;
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 0x1001);

    start_long();
    PUT(CODE, sti_hlt);
    PUT(CODE + 0x100, iretq);
    put_gate64(0x40, CS64, CODE + 0x100, 0x8e, 0);
    pending_vector = 0x40;
    expect_vector(-1); /* wakes, returns behind the HLT and goes on to the next one */
    g_assert_cmpuint(c->regs[R_RBX], ==, 5);
    g_assert_cmphex(c->rip, ==, CODE + 8);

    start_long();
    PUT(CODE, mov_ss_once);
    c->regs[R_RCX] = DS0;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 12); /* the NOP after it ran */
    start_long();
    PUT(CODE, mov_ss_twice);
    c->regs[R_RCX] = DS0;
    expect_vector(0x40);
    g_assert_cmphex(frame64(0), ==, CODE + 13); /* after the second, not one later */
}

GUEST(cr8_window, 64, "mov eax, 15; mov cr8, rax; sti; nop; nop; mov eax, 2;"
                      "mov cr8, rax; nop; hlt")

static void test_cr8(void)
{
    start_long();
    PUT(CODE, cr8_window);
    pending_vector = 0x40;
    expect_vector(0x40);
    g_assert_cmphex(c->regs[R_RAX], ==, 2);
    g_assert_cmphex(frame64(0), ==, CODE + 21);
}

/* The handler raises two more NMIs while it runs: one of them stays, until IRET. */
GUEST(nmi_main, 64, "mov edx, 0x500; mov al, 0xff; out dx, al; jmp 1f; 1: nop; hlt")
GUEST(nmi_handler, 64, "inc ebx; cmp ebx, 1; jne 1f; out dx, al; jmp 2f; 2: out dx, al; jmp 3f;"
                       "3: inc r8d; 1: mov r9d, r8d; iretq")

static void test_nmi(void)
{
    start_long();
    PUT(CODE, nmi_main);
    PUT(CODE + 0x100, nmi_handler);
    put_gate64(EXCP_NMI, CS64, CODE + 0x100, 0x8e, 0);
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RBX], ==, 2);
    g_assert_cmpuint(c->regs[R_R8 + 1], ==, 1); /* the second came when the first was over */
    g_assert_false(c->nmi_blocked);
    g_assert_false(c->nmi_pending);
}

/* ---- Restart and precision ---- */

GUEST(rep_movsb, 64, "rep movsb; hlt")
GUEST(fix_page, 64, "push rax; mov qword ptr [0x13000 + 0x151 * 8], 0x151007; invlpg [0x151000];"
                    "pop rax; add rsp, 8; iretq")
GUEST(pop_mem, 64, "pop qword ptr [rsp + rbx]; hlt")

static void test_restart(void)
{
    start_long();
    PUT(CODE, rep_movsb);
    put64(PT + 0x151 * 8, 0);
    for (unsigned n = 0; n < 256; n++) {
        ram[DATA + n] = (uint8_t)n;
    }
    c->regs[R_RSI] = DATA;
    c->regs[R_RDI] = DATA + 0x1000 - 100;
    c->regs[R_RCX] = 256;
    expect_vector(EXCP_PF);
    g_assert_cmphex(frame64(0), ==, PF_W);
    g_assert_cmphex(c->cr2, ==, DATA + 0x1000);
    g_assert_cmpuint(c->regs[R_RCX], ==, 156);
    g_assert_cmphex(c->regs[R_RSI], ==, DATA + 100);
    g_assert_cmphex(c->regs[R_RDI], ==, DATA + 0x1000);
    g_assert_cmphex(frame64(1), ==, CODE);
    /* A handler that repairs it. */
    PUT(CODE + 0x100, fix_page);
    put_gate64(EXCP_PF, CS64, CODE + 0x100, 0x8e, 0);
    c->rip = CODE;
    c->regs[R_RSP] = STACK;
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RCX], ==, 0);
    g_assert_cmpint(memcmp(ram + DATA, ram + DATA + 0x1000 - 100, 100), ==, 0);
    g_assert_cmpint(memcmp(ram + DATA + 100, ram + DATA + 0x1000, 156), ==, 0);

    start_long();
    PUT(CODE, pop_mem);
    put64(PT + 0x151 * 8, 0);
    c->regs[R_RBX] = 0x151000 - STACK;
    put_gate64(EXCP_PF, CS64, STUBS + EXCP_PF, 0x8e, 1);
    expect_vector(EXCP_PF);
    g_assert_cmphex(frame64(4), ==, STACK);
}

static void test_split_instruction(void)
{
    /* mov eax, imm32 with its last two bytes in a page that is not there. */
    start_long();
    put_code(CODE + 0xffd, (const uint8_t[]){ 0xb8, 1, 2, 3, 4, 0xf4 }, 6);
    put64(PT + (CODE + 0x1000) / 0x1000 * 8, 0);
    c->rip = CODE + 0xffd;
    expect_vector(EXCP_PF);
    g_assert_cmphex(c->cr2, ==, CODE + 0x1000);
    g_assert_cmphex(frame64(1), ==, CODE + 0xffd);
    g_assert_cmphex(c->regs[R_RAX], ==, 0);
}

/* ---- Fast system calls ---- */

GUEST(sysret, 64, "sysretq")
GUEST(syscall, 64, "syscall; hlt")
GUEST(sysenter, 64, "sysenter")
GUEST(sysexit, 64, ".byte 0x48, 0x0f, 0x35")

static void set_vendor(const char *vendor)
{
    static X86CPUModel m;

    m = *x86_cpu_model_current();
    memcpy(m.vendor, vendor, 13);
    c->model = &m;
}

static void start_sysret(const char *vendor)
{
    start_long();
    set_vendor(vendor);
    PUT(CODE, sysret);
    PUT(UCODE, hlt);
    c->star = (uint64_t)(UCS32 & ~3u) << 48 | (uint64_t)CS64 << 32;
    c->regs[R_R8 + 3] = FL_IF | FL_CF | FL_RF | FL_VM | FL_1;
    c->regs[R_RCX] = 0x0000800000000000ull;
    put_gate64(EXCP_GP, CS64, STUBS + EXCP_GP, 0x8e, 1);
}

static void test_sysret(void)
{
    start_sysret("GenuineIntel");
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, CODE);
    g_assert_cmphex(frame64(2), ==, CS64); /* still at CPL 0 */

    start_sysret("AuthenticAMD");
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, 0x0000800000000000ull);
    g_assert_cmphex(frame64(2), ==, UCS64);

    start_sysret("GenuineIntel");
    c->regs[R_RCX] = UCODE;
    expect_vector(EXCP_GP); /* HLT at CPL 3 */
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(frame64(3) & ~FL_RF, ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(frame64(5), ==, UDS);

    start_long();
    PUT(UCODE, syscall);
    PUT(CODE, hlt);
    to_user64(UCODE);
    x86_set_rflags(c, FL_IF | FL_DF | FL_ZF | FL_1);
    c->star = (uint64_t)CS64 << 32;
    c->lstar = CODE;
    c->fmask = FL_IF | FL_DF;
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RCX], ==, UCODE + 2);
    g_assert_cmphex(c->regs[R_R8 + 3], ==, FL_IF | FL_DF | FL_ZF | FL_1);
    g_assert_cmphex(x86_get_rflags(c), ==, FL_ZF | FL_1);
    g_assert_cmphex(c->seg[R_SS].selector, ==, DS0);
    g_assert_cmphex(c->regs[R_RSP], ==, USTACK);
}

static void test_sysenter(void)
{
    start_long();
    set_vendor("GenuineIntel");
    PUT(CODE, sysexit);
    PUT(UCODE, sysenter);
    c->sysenter_cs = FREE;
    put_desc(FREE, 0, 0, 0); /* the table is not read: the segments are fixed */
    c->sysenter_esp = STACK;
    c->sysenter_eip = CODE;
    to_user64(UCODE);
    c->regs[R_RDX] = UCODE + 0x100;
    c->regs[R_RCX] = USTACK - 64;
    PUT(UCODE + 0x100, hlt);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, UCODE + 0x100);
    g_assert_cmphex(frame64(2), ==, FREE + 32 + 3);
    g_assert_cmphex(frame64(4), ==, USTACK - 64);
    g_assert_cmphex(frame64(5), ==, FREE + 40 + 3);

    start_long();
    set_vendor("AuthenticAMD");
    PUT(UCODE, sysenter);
    c->sysenter_cs = CS64;
    to_user64(UCODE);
    expect_vector(EXCP_UD);
    set_vendor("GenuineIntel");
}

/* ---- Far transfers ---- */

GUEST(call_gate64, 64, ".byte 0xff, 0x1c, 0x25; .long 0x150000; hlt") /* call far [0x150000] */
GUEST(retfq, 64, "mov ebx, 9; .byte 0x48, 0xcb")

static void test_call_gate64(void)
{
    start_long();
    put_gate(GDT + FREE, CS64, CODE, 0xec, 0);
    put64(GDT + FREE + 8, 0);
    put16(DATA + 4, FREE | 3);
    PUT(CODE, retfq);
    PUT(UCODE, call_gate64);
    to_user64(UCODE);
    expect_vector(EXCP_GP); /* the HLT after it, at CPL 3 again */
    g_assert_cmphex(frame64(1), ==, UCODE + 7);
    g_assert_cmphex(frame64(2), ==, UCS64);
    g_assert_cmphex(frame64(4), ==, USTACK);
    g_assert_cmpuint(c->regs[R_RBX], ==, 9);

    /* DPL of the gate below CPL. */
    start_long();
    put_gate(GDT + FREE, CS64, CODE, 0x8c, 0);
    put16(DATA + 4, FREE | 3);
    PUT(UCODE, call_gate64);
    to_user64(UCODE);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(0), ==, FREE);
}

/* 32-bit gate with two parameters; RETF 8 releases them on both stacks. */
GUEST(call_gate32, 32, "push 0x1111; push 0x2222; .byte 0x9a; .long 0; .word 0x58; hlt")
GUEST(gate32_body, 32, "mov eax, [esp + 8]; mov ebx, [esp + 12]; retf 8")

static void test_call_gate32(void)
{
    start_32();
    put_gate(GDT + FREE, CS32, CODE, 0xec, 2);
    PUT(CODE, gate32_body);
    PUT(UCODE, call_gate32);
    load_seg(R_CS, UCS32);
    load_seg(R_SS, UDS);
    load_seg(R_DS, UDS);
    c->regs[R_RSP] = USTACK;
    c->rip = UCODE;
    begin();
    expect_vector(EXCP_GP);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x2222);
    g_assert_cmphex(c->regs[R_RBX], ==, 0x1111);
    g_assert_cmphex(frame32(1), ==, UCODE + 17);
    g_assert_cmphex(frame32(4), ==, USTACK); /* both parameters gone */
    g_assert_cmphex(frame32(5), ==, UDS);
}

/* The way up, from the state after a reset: real, protected, long mode. */
GUEST(bring_up16, 16,
      "lgdt [0x600]; mov eax, cr0; or eax, 1; mov cr0, eax; .byte 0x66, 0xea; .long 0x8000; "
      ".word 0x18")
GUEST(bring_up32, 32,
      "mov ax, 0x10; mov ds, ax; mov ss, ax; mov es, ax; mov esp, 0x180000;"
      "mov eax, cr4; or eax, 0x20; mov cr4, eax; mov eax, 0x10000; mov cr3, eax;"
      "mov ecx, 0xc0000080; rdmsr; or eax, 0x100; wrmsr; mov eax, cr0; or eax, 0x80000000;"
      "mov cr0, eax; .byte 0xea; .long 0x8100; .word 0x08")
GUEST(bring_up64, 64, "mov rax, 0x123456789abcdef0; mov rbx, rax; ror rbx, 32; hlt")

static void test_bring_up(void)
{
    start_common();
    PUT(0x7c00, bring_up16);
    PUT(0x8000, bring_up32);
    PUT(0x8100, bring_up64);
    put16(0x600, 0x1ff);
    put32(0x602, GDT);
    x86_cpu_reset(c, false);
    c->seg[R_CS].base = 0;
    c->seg[R_CS].selector = 0;
    c->rip = 0x7c00;
    begin();
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RBX], ==, 0x9abcdef012345678ull);
    g_assert_cmphex(c->efer, ==, EFER_LME | EFER_LMA);
    g_assert_true(x86_in_64bit(c));
}

/* ---- Task switches ---- */

GUEST(call_tss, 32, ".byte 0x9a; .long 0; .word 0x58; mov edx, 0x77; hlt")
GUEST(task_b, 32, "mov ebx, eax; inc dword ptr [0x150000]; iretd; inc dword ptr [0x150000]; hlt")

static void put_tss32(uint32_t at, uint32_t eip, uint16_t cs, uint16_t ldt)
{
    memset(ram + at, 0, 0x68);
    put32(at + 0x1c, PML4);
    put32(at + 0x20, eip);
    put32(at + 0x24, FL_1);
    put32(at + 0x28, 0xabcd1234); /* EAX */
    put32(at + 0x38, 0x1b0000);   /* ESP */
    put16(at + 0x48, DS0);
    put16(at + 0x4c, cs);
    put16(at + 0x50, DS0);
    put16(at + 0x54, DS0);
    put16(at + 0x60, ldt);
}

static void test_task32(void)
{
    start_32();
    PUT(CODE, call_tss);
    PUT(UCODE, task_b);
    /* CS lies in the LDT of the new task. */
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_desc(FREE + 8, LDT, 0xf, 0x0082);
    put64(LDT + 8, get64(GDT + CS32));
    put_tss32(TSS_B, UCODE, 0x0c, FREE + 8);
    expect_vector(-1);
    g_assert_cmphex(c->rip, ==, CODE + 13);
    g_assert_cmphex(c->regs[R_RDX], ==, 0x77);
    g_assert_cmpuint(get32(DATA), ==, 1);
    g_assert_cmphex(c->tr.selector, ==, TR);
    g_assert_cmphex(c->cr0 & CR0_TS, ==, CR0_TS);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x89);        /* not busy */
    g_assert_cmphex(ram[GDT + TR + 5], ==, 0x8b);          /* busy */
    g_assert_cmphex(get16(TSS_B), ==, TR);                 /* back link */
    g_assert_cmphex(get32(TSS_B + 0x34), ==, 0xabcd1234);  /* EBX of the task, saved */
    g_assert_cmphex(get32(TSS_B + 0x24) & FL_NT, ==, 0);
    g_assert_cmphex(c->rflags & FL_NT, ==, 0);

    /* CS is not a code segment: #TS in the new task, which only a task gate can serve. */
    start_32();
    PUT(CODE, call_tss);
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_tss32(TSS_B, UCODE, DS0, 0);
    put_desc(FREE + 8, TSS_B + 0x100, 0x67, 0x0089);
    put_tss32(TSS_B + 0x100, STUBS + EXCP_TS, CS32, 0);
    put_gate(IDT + EXCP_TS * 8, FREE + 8, 0, 0x85, 0);
    expect_vector(EXCP_TS);
    g_assert_cmphex(frame32(0), ==, DS0);
    g_assert_cmphex(c->tr.selector, ==, FREE + 8);
    g_assert_cmphex(get16(TSS_B + 0x100), ==, FREE);
    g_assert_cmphex(get32(TSS_B + 0x20), ==, UCODE);
    g_assert_cmphex(get32(TSS_B + 0x28), ==, 0xabcd1234);

    /* The TSS is too small: #TS in the old one. */
    start_32();
    PUT(CODE, call_tss);
    put_desc(FREE, TSS_B, 0x66, 0x0089);
    put_tss32(TSS_B, UCODE, CS32, 0);
    expect_vector(EXCP_TS);
    g_assert_cmphex(frame32(0), ==, FREE);
    g_assert_cmphex(frame32(1), ==, CODE);
    g_assert_cmphex(c->tr.selector, ==, TR);
}

GUEST(jmp_tss, 32, ".byte 0xea; .long 0; .word 0x58; hlt")
GUEST(task16, 16, "mov bx, ax; sgdt [0x9000]; hlt")

static void test_task16(void)
{
    start_32();
    PUT(CODE, jmp_tss);
    PUT(0x8000, task16);
    put_desc(FREE, TSS_B, 0x2b, 0x0081);
    put16(TSS_B + 0x0e, 0x8000);    /* IP */
    put16(TSS_B + 0x10, FL_1);      /* FLAGS */
    put16(TSS_B + 0x12, 0x1234);    /* AX */
    put16(TSS_B + 0x1a, 0xf000);    /* SP */
    put16(TSS_B + 0x20, 0x4321);    /* DI */
    put16(TSS_B + 0x22, DS16);      /* ES */
    put16(TSS_B + 0x24, CS16);
    put16(TSS_B + 0x26, DS16);
    put16(TSS_B + 0x28, DS16);
    put16(TSS_B + 0x2a, 0);         /* LDT */
    c->gdt.base |= 0; /* 32 bits are stored whatever the operand size */
    expect_vector(-1);
    g_assert_cmphex((uint16_t)c->regs[R_RBX], ==, 0x1234);
    g_assert_cmphex((uint16_t)c->regs[R_RDI], ==, 0x4321);
    g_assert_cmphex((uint16_t)c->regs[R_RSP], ==, 0xf000);
    g_assert_cmphex(c->tr.selector, ==, FREE);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x83);
    g_assert_cmphex(ram[GDT + TR + 5], ==, 0x89);
    g_assert_cmphex(get32(TSS + 0x20), ==, CODE + 7); /* EIP of the old task */
    g_assert_cmphex(get16(0x9000), ==, 0x1ff);
    g_assert_cmphex(get32(0x9002), ==, GDT);
    g_assert_cmphex(c->seg[R_FS].attr & SEG_UNUSABLE, ==, SEG_UNUSABLE);
}

static void test_sgdt16(void)
{
    start_32();
    load_seg(R_CS, CS16);
    PUT(0x8000, task16);
    c->rip = 0x8000;
    load_seg(R_DS, DS16);
    load_seg(R_SS, DS0);
    begin();
    c->gdt.base = 0x87654000;
    expect_vector(-1);
    g_assert_cmphex(get32(0x9002), ==, 0x87654000);
}

/* An exception through a task gate gets its error code on the new stack. */
static void test_task_gate_exception(void)
{
    start_32();
    PUT(CODE, int40);
    put_gate(IDT + 0x40 * 8, CS32, 0, 0x0e, 0); /* not present: #NP(0x202) */
    put_gate(IDT + EXCP_NP * 8, FREE, 0, 0x85, 0);
    put_desc(FREE, TSS_B, 0x67, 0x0089);
    put_tss32(TSS_B, STUBS + EXCP_NP, CS32, 0);
    expect_vector(EXCP_NP);
    g_assert_cmphex(c->tr.selector, ==, FREE);
    g_assert_cmphex(frame32(0), ==, 0x40 * 8 + 2);
    g_assert_cmphex(c->regs[R_RSP], ==, 0x1b0000 - 4);
    g_assert_cmphex(c->rflags & FL_NT, ==, FL_NT);
    g_assert_cmphex(get32(TSS + 0x20), ==, CODE);
}

/* ---- Virtual-8086 mode ---- */

GUEST(iret_vm, 32, "iretd")
GUEST(vm_int, 16, "mov ax, 0x1234; int 0x21; mov bx, 0x55; hlt")
GUEST(vm_cli, 16, "cli; sti; pushf; pop cx; hlt")
GUEST(vm_iret, 16, "mov dx, 0x66; iret")

static void start_vm86(uint32_t flags)
{
    start_32();
    PUT(CODE, iret_vm);
    c->regs[R_RSP] = STACK - 36;
    put32(STACK - 36, 0x100);                   /* EIP */
    put32(STACK - 32, 0x900);                   /* CS */
    put32(STACK - 28, FL_VM | FL_1 | flags);    /* EFLAGS */
    put32(STACK - 24, 0xff00);                  /* ESP */
    put32(STACK - 20, 0xa00);                   /* SS */
    put32(STACK - 16, 0x111);                   /* ES DS FS GS */
    put32(STACK - 12, 0x222);
    put32(STACK - 8, 0x333);
    put32(STACK - 4, 0x444);
}

static void test_vm86(void)
{
    start_vm86(0);
    PUT(0x9100, vm_int);
    expect_vector(EXCP_GP); /* INT n with IOPL 0 */
    g_assert_cmphex(frame32(0), ==, 0);
    g_assert_cmphex(frame32(1), ==, 0x103);
    g_assert_cmphex(frame32(2), ==, 0x900);
    g_assert_cmphex(frame32(3) & FL_VM, ==, FL_VM);
    g_assert_cmphex(frame32(4), ==, 0xff00);
    g_assert_cmphex(frame32(5), ==, 0xa00);
    g_assert_cmphex(frame32(6), ==, 0x111);
    g_assert_cmphex(frame32(9), ==, 0x444);
    g_assert_cmphex(c->regs[R_RSP], ==, RSP0 - 40);
    g_assert_cmphex(c->seg[R_GS].attr & SEG_UNUSABLE, ==, SEG_UNUSABLE);
    g_assert_cmphex((uint16_t)c->regs[R_RAX], ==, 0x1234);

    /* IOPL 3: through the gate, whose DPL must allow it. */
    start_vm86(FL_IOPL);
    PUT(0x9100, vm_int);
    put_gate(IDT + 0x21 * 8, CS32, STUBS + 0x21, 0xee, 0);
    expect_vector(0x21);
    g_assert_cmphex(frame32(0), ==, 0x105);

    /* VME: redirected to the program's own handler, with virtual flags. */
    start_vm86(FL_VIF);
    c->cr4 = CR4_VME;
    begin();
    put16(TSS + 0x66, 0x88);
    memset(ram + TSS + 0x68, 0, 32);
    PUT(0x9100, vm_int);
    PUT(0x9200, vm_iret);
    put32(0x21 * 4, 0x09000200);
    expect_vector(EXCP_GP); /* HLT */
    g_assert_cmphex(frame32(1), ==, 0x108);
    g_assert_cmphex((uint16_t)c->regs[R_RDX], ==, 0x66);
    g_assert_cmphex((uint16_t)c->regs[R_RBX], ==, 0x55);
    g_assert_cmphex(frame32(3) & (FL_VIF | FL_IF), ==, FL_VIF);

    start_vm86(0);
    c->cr4 = CR4_VME;
    begin();
    PUT(0x9100, vm_cli);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame32(1), ==, 0x104);
    g_assert_cmphex(c->regs[R_RCX] & (FL_IF | FL_IOPL), ==, FL_IF | FL_IOPL);

    start_vm86(0);
    PUT(0x9100, vm_cli);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame32(1), ==, 0x100);
}

GUEST(iret_drop_gs, 64, "iretq")
GUEST(load_gs, 64, "mov rax, gs:[0x10]; ud2")

/* A data segment that the outer level may not use becomes null, but keeps its base. */
static void test_nullified_segment(void)
{
    start_long();
    PUT(CODE, iret_drop_gs);
    PUT(UCODE, load_gs);
    c->seg[R_GS].base = DATA;
    put64(DATA + 0x10, 0x1234);
    c->regs[R_RSP] = STACK - 40;
    put64(STACK - 40, UCODE);
    put64(STACK - 32, UCS64);
    put64(STACK - 24, FL_1);
    put64(STACK - 16, USTACK);
    put64(STACK - 8, UDS);
    expect_vector(EXCP_UD);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x1234);
    g_assert_cmphex(c->seg[R_GS].selector, ==, 0);
    g_assert_cmphex(c->seg[R_ES].selector, ==, 0);
}

/* ---- Control registers ---- */

GUEST(mov_cr0, 64, "mov cr0, rax; hlt")
GUEST(mov_cr4, 64, "mov cr4, rax; hlt")
GUEST(mov_cr3, 64, "mov cr3, rax; hlt")
GUEST(mov_cr8, 64, "mov cr8, rax; hlt")

static void expect_cr(const char *what, bool ok)
{
    int v = go();

    if (v != (ok ? -1 : EXCP_GP)) {
        g_error("%s: vector %d", what, v);
    }
}

static void try_cr0(uint64_t v, bool ok)
{
    start_long();
    PUT(CODE, mov_cr0);
    c->regs[R_RAX] = v;
    expect_cr("cr0", ok);
}

static void try_cr4(uint64_t v, bool ok)
{
    start_long();
    PUT(CODE, mov_cr4);
    c->regs[R_RAX] = v;
    expect_cr("cr4", ok);
}

static void test_control_registers(void)
{
    const uint64_t cr0 = CR0_PE | CR0_PG | CR0_ET | CR0_NE;

    try_cr0(cr0, true);
    try_cr0(cr0 | CR0_NW, false);
    try_cr0(cr0 | CR0_NW | CR0_CD, true);
    try_cr0(cr0 & ~CR0_PE, false);
    try_cr0(cr0 & ~CR0_PG, false); /* from 64-bit code */
    try_cr0(cr0 | BIT64(32), false);
    try_cr4(CR4_PAE | CR4_UMIP | CR4_FSGSBASE | CR4_PCE, true);
    try_cr4(0, false); /* PAE may not go in long mode */
    try_cr4(CR4_PAE | CR4_LA57, false);
    try_cr4(CR4_PAE | BIT64(40), false);
    try_cr4(CR4_PAE | CR4_PCIDE, true);
    start_long();
    PUT(CODE, mov_cr4);
    c->cr3 = PML4 | 8;
    c->regs[R_RAX] = CR4_PAE | CR4_PCIDE;
    expect_cr("pcide", false);
    start_long();
    PUT(CODE, mov_cr3);
    c->regs[R_RAX] = PML4 | BIT64(63);
    expect_cr("cr3", false); /* bit 63 without PCIDE */
    start_long();
    PUT(CODE, mov_cr8);
    c->regs[R_RAX] = 16;
    expect_cr("cr8", false);
}

/* ---- Debug ---- */

GUEST(nops, 64, "nop; nop; nop; mov [0x150000], eax; nop; hlt")
GUEST(read_dr, 64, "mov rax, dr0; hlt")
GUEST(popf_tf, 64, "pushf; or qword ptr [rsp], 0x100; popf; nop; nop; hlt")
GUEST(set_rf_iret, 64, "or qword ptr [rsp + 16], 0x10000; inc ebx; iretq")

static void test_debug(void)
{
    /* TF by POPF: the trap comes after the instruction that follows it. */
    start_long();
    PUT(CODE, popf_tf);
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE + 11);
    g_assert_cmphex(c->dr[6] & DR6_BS, ==, DR6_BS);
    g_assert_cmphex(frame64(2) & FL_TF, ==, FL_TF);
    g_assert_cmphex(c->rflags & FL_TF, ==, 0);

    /* Instruction breakpoint: a fault before it; RF lets it pass. */
    start_long();
    PUT(CODE, nops);
    PUT(CODE + 0x100, set_rf_iret);
    put_gate64(EXCP_DB, CS64, CODE + 0x100, 0x8e, 0);
    c->dr[1] = CODE + 2;
    c->dr[7] = 0x400 | 8;
    begin();
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1);
    g_assert_cmphex(c->dr[6] & 15, ==, 2);

    /* Data breakpoint: a trap after the store. */
    start_long();
    PUT(CODE, nops);
    c->regs[R_RAX] = 0xfeed;
    c->dr[0] = DATA;
    c->dr[7] = 0x400 | 2 | 1u << 16 | 3u << 18;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE + 10);
    g_assert_cmphex(get32(DATA), ==, 0xfeed);
    g_assert_cmphex(c->dr[6] & (15 | DR6_BS), ==, 1);

    /* General detect. */
    start_long();
    PUT(CODE, read_dr);
    c->dr[7] = 0x400 | DR7_GD;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, CODE);
    g_assert_cmphex(c->dr[6] & DR6_BD, ==, DR6_BD);
    g_assert_cmphex(c->dr[7] & DR7_GD, ==, 0);
}

GUEST(ss_watch_int3, 64, "mov ss, [0x150000]; int3; hlt")

/* A data breakpoint hit by MOV SS waits for the next instruction, INT3 included. */
static void test_debug_movss(void)
{
    start_long();
    PUT(CODE, ss_watch_int3);
    put16(DATA, DS0);
    c->dr[0] = DATA;
    c->dr[7] = 0x400 | 2 | 3u << 16 | 1u << 18;
    begin();
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, STUBS + EXCP_BP);
    g_assert_cmphex(frame64(6), ==, CODE + 8); /* INT3's frame, under the alignment */
    g_assert_cmphex(c->dr[6] & 15, ==, 1);
}

GUEST(nop_ud, 64, "nop; ud2")

static void test_debug_fast_calls(void)
{
    /* SYSRET that sets TF: the trap comes before the next instruction. */
    start_long();
    set_vendor("GenuineIntel");
    PUT(CODE, sysret);
    PUT(UCODE, nop_ud);
    c->star = (uint64_t)(UCS32 & ~3u) << 48 | (uint64_t)CS64 << 32;
    c->regs[R_R8 + 3] = FL_TF | FL_1;
    c->regs[R_RCX] = UCODE;
    expect_vector(EXCP_DB);
    g_assert_cmphex(frame64(0), ==, UCODE);
    g_assert_cmphex(frame64(1), ==, UCS64);
    g_assert_cmphex(c->dr[6] & DR6_BS, ==, DR6_BS);

    /* SYSCALL whose mask clears TF: none. */
    start_long();
    PUT(UCODE, syscall);
    PUT(CODE, hlt);
    to_user64(UCODE);
    x86_set_rflags(c, FL_TF | FL_1);
    c->star = (uint64_t)CS64 << 32;
    c->lstar = CODE;
    c->fmask = FL_TF;
    expect_vector(-1);
}

/* ---- I/O, UMIP, selectors ---- */

GUEST(user_in, 64, "mov edx, 0x500; in eax, dx; mov edx, 0x508; in al, dx; hlt")
GUEST(user_sgdt, 64, "sgdt [0x150000]; hlt")
GUEST(lar_lsl, 64, "mov ecx, 0x08; lar eax, ecx; setz bl; lsl edx, ecx; mov ecx, 0x1f0;"
                   "lar esi, ecx; setz bh; mov ecx, 0x10; verw cx; setz dil; hlt")

static void test_io_and_selectors(void)
{
    start_long();
    PUT(UCODE, user_in);
    to_user64(UCODE);
    memset(ram + TSS + 0x68, 0xff, 0x200);
    ram[TSS + 0x68 + 0x500 / 8] = 0xf0;
    expect_vector(EXCP_GP); /* the second IN */
    g_assert_cmphex(frame64(1), ==, UCODE + 11);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x5a5a5a5a);

    start_long();
    PUT(UCODE, user_sgdt);
    c->cr4 |= CR4_UMIP;
    to_user64(UCODE);
    expect_vector(EXCP_GP);
    g_assert_cmphex(frame64(1), ==, UCODE);
    g_assert_cmphex(get64(DATA), ==, 0);

    start_long();
    PUT(CODE, lar_lsl);
    expect_vector(-1);
    g_assert_cmphex(c->regs[R_RAX], ==, 0x00af9b00);
    g_assert_cmphex(c->regs[R_RDX], ==, 0xffffffff);
    g_assert_cmphex(c->regs[R_RBX] & 0xffff, ==, 0x0001);
    g_assert_cmphex(c->regs[R_RDI] & 0xff, ==, 1);
}

/* ---- Segments ---- */

GUEST(load_es, 32, "mov es, ax; hlt")
GUEST(store_es, 32, "mov es:[ebx], al; hlt")

static void try_es(uint32_t attr, uint16_t sel, int vector, uint32_t error)
{
    start_32();
    put_desc(FREE, 0, 0xfff, attr);
    PUT(CODE, load_es);
    c->regs[R_RAX] = sel;
    expect_vector(vector);
    if (vector >= 0) {
        g_assert_cmphex(frame32(0), ==, error);
        g_assert_cmphex(c->seg[R_ES].selector, ==, DS0);
    }
}

static void try_store(uint32_t attr, uint32_t limit, uint32_t off, int vector)
{
    start_32();
    put_desc(FREE, DATA, limit, attr);
    load_seg(R_ES, FREE);
    begin();
    PUT(CODE, store_es);
    c->regs[R_RBX] = off;
    c->regs[R_RAX] = 0x99;
    expect_vector(vector);
    g_assert_cmphex(ram[DATA + off], ==, vector < 0 ? 0x99 : 0);
}

static void test_segments(void)
{
    try_es(0x4092, FREE, -1, 0);
    g_assert_cmphex(ram[GDT + FREE + 5], ==, 0x93); /* accessed */
    try_es(0x4012, FREE, EXCP_NP, FREE);
    try_es(0x4098, FREE, EXCP_GP, FREE); /* execute-only */
    try_es(0x4092, FREE | 3, EXCP_GP, FREE);
    try_es(0x4092, 0x200, EXCP_GP, 0x200); /* outside the table */
    try_es(0x4092, 0, -1, 0);              /* null */
    try_es(0x4092, FREE | 4, EXCP_GP, FREE | 4); /* no LDT */
    try_store(0x4093, 0xfff, 0xfff, -1);
    try_store(0x4093, 0xfff, 0x1000, EXCP_GP);
    try_store(0x4091, 0xfff, 0x10, EXCP_GP);  /* read-only */
    try_store(0x4097, 0xfff, 0xfff, EXCP_GP); /* expand down */
    try_store(0x4097, 0xfff, 0x1000, -1);
    try_store(0x0097, 0xfff, 0xffff, -1);
    try_store(0x0097, 0xfff, 0x10000, EXCP_GP); /* 16-bit: ends at 64 KiB */
}

GUEST(push_fs64, 64, "push fs; pop gs; hlt")
GUEST(push_fs32, 32, "push fs; pop gs; hlt")
GUEST(push_fs16, 32, "data16 push fs; data16 pop gs; hlt")

static void test_push_seg(void)
{
    start_long();
    load_seg(R_FS, UDS);
    begin();
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs64);
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, UDS);
    g_assert_cmphex(c->seg[R_GS].selector, ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);

    start_32();
    load_seg(R_FS, UDS);
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs32);
    begin();
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, (uint64_t)(0xffff0000u | UDS) << 32 | 0xffffffff);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);

    start_32();
    load_seg(R_FS, UDS);
    put64(STACK - 8, UINT64_MAX);
    PUT(CODE, push_fs16);
    begin();
    expect_vector(-1);
    g_assert_cmphex(get64(STACK - 8), ==, (uint64_t)UDS << 48 | 0xffffffffffff);
    g_assert_cmphex(c->seg[R_GS].selector, ==, UDS);
    g_assert_cmphex(c->regs[R_RSP], ==, STACK);
}

/* ---- Real mode ---- */

GUEST(real_int, 16, "int 0x21; mov bx, 1; hlt")
GUEST(real_iret, 16, "mov cx, 2; iret")
GUEST(real_wrap, 16, "mov ax, [bx]; hlt")

static void start_real(void)
{
    start_common();
    x86_cpu_reset(c, false);
    c->seg[R_CS].base = 0;
    c->seg[R_CS].selector = 0;
    c->idt = (TableReg){ 0, 0x3ff };
    for (unsigned n = 0; n < 256; n++) {
        put32(n * 4, STUBS + n);
    }
    c->rip = 0x8000;
    c->regs[R_RSP] = 0xf000;
    begin();
}

static void test_real(void)
{
    start_real();
    PUT(0x8000, real_int);
    PUT(0x9000, real_iret);
    put32(0x21 * 4, 0x09000000);
    x86_set_rflags(c, FL_IF | FL_CF | FL_1);
    expect_vector(-1);
    g_assert_cmpuint(c->regs[R_RCX], ==, 2);
    g_assert_cmpuint(c->regs[R_RBX], ==, 1);
    g_assert_cmphex(x86_get_rflags(c), ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(get16(0xeffe), ==, FL_IF | FL_CF | FL_1);
    g_assert_cmphex(get16(0xeffa), ==, 0x8002);

    start_real();
    PUT(0x8000, real_wrap);
    c->regs[R_RBX] = 0xffff;
    expect_vector(EXCP_GP);
    g_assert_cmphex(get16(0xeffa), ==, 0x8000); /* and no error code */

    start_real();
    PUT(0x8000, real_int);
    c->idt.limit = 0x21 * 4 + 2;
    expect_vector(EXCP_GP);
    c->idt.limit = 0;
    c->rip = 0x8000;
    expect_vector(256);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    machine_make();
    g_test_add_func("/sys/ext-bit", test_ext_bit);
    g_test_add_func("/sys/non-canonical", test_non_canonical);
    g_test_add_func("/sys/double-fault", test_double_fault);
    g_test_add_func("/sys/nowhere", test_nowhere);
    g_test_add_func("/sys/user-int", test_user_int);
    g_test_add_func("/sys/interrupt-windows", test_windows);
    g_test_add_func("/sys/cr8", test_cr8);
    g_test_add_func("/sys/nmi", test_nmi);
    g_test_add_func("/sys/restart", test_restart);
    g_test_add_func("/sys/split-instruction", test_split_instruction);
    g_test_add_func("/sys/sysret", test_sysret);
    g_test_add_func("/sys/sysenter", test_sysenter);
    g_test_add_func("/sys/call-gate-64", test_call_gate64);
    g_test_add_func("/sys/call-gate-32", test_call_gate32);
    g_test_add_func("/sys/bring-up", test_bring_up);
    g_test_add_func("/sys/task-32", test_task32);
    g_test_add_func("/sys/task-16", test_task16);
    g_test_add_func("/sys/sgdt-16", test_sgdt16);
    g_test_add_func("/sys/task-gate-exception", test_task_gate_exception);
    g_test_add_func("/sys/vm86", test_vm86);
    g_test_add_func("/sys/nullified-segment", test_nullified_segment);
    g_test_add_func("/sys/control-registers", test_control_registers);
    g_test_add_func("/sys/debug", test_debug);
    g_test_add_func("/sys/debug-movss", test_debug_movss);
    g_test_add_func("/sys/debug-fast-calls", test_debug_fast_calls);
    g_test_add_func("/sys/io-selectors", test_io_and_selectors);
    g_test_add_func("/sys/segments", test_segments);
    g_test_add_func("/sys/push-segment", test_push_seg);
    g_test_add_func("/sys/real", test_real);
    return g_test_run();
}
