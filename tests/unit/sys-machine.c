/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine of the tests of the system half of the interpreter. */
#include "sys-machine.h"

GUEST(hlt, 64, "hlt")
GUEST(int40, 64, "int 0x40; hlt")
GUEST(syscall, 64, "syscall; hlt")
GUEST(sysret, 64, "sysretq")

X86CPU *c;
RAMBlock *rb;
uint8_t *ram;

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
int pending_vector = -1;
uint8_t tpr;

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

void sys_machine_make(void)
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

void put64(uint64_t at, uint64_t v)
{
    memcpy(ram + at, &v, 8);
}
void put32(uint64_t at, uint32_t v)
{
    memcpy(ram + at, &v, 4);
}
void put16(uint64_t at, uint16_t v)
{
    memcpy(ram + at, &v, 2);
}
uint64_t get64(uint64_t at)
{
    uint64_t v;
    memcpy(&v, ram + at, 8);
    return v;
}
uint32_t get32(uint64_t at)
{
    return (uint32_t)get64(at);
}
uint16_t get16(uint64_t at)
{
    return (uint16_t)get64(at);
}

void put_code(uint64_t at, const uint8_t *code, size_t len)
{
    memcpy(ram + at, code, len);
    ram_block_written(rb, at, len);
}

void put_desc(uint16_t sel, uint32_t base, uint32_t limit, uint32_t attr)
{
    put64(GDT + (sel & ~7u), (limit & 0xffff) | (uint64_t)(base & 0xffffff) << 16 |
                                 (uint64_t)(attr & 0xff) << 40 |
                                 (uint64_t)(limit >> 16 & 15) << 48 |
                                 (uint64_t)(attr >> 12 & 15) << 52 | (uint64_t)(base >> 24) << 56);
}

/* A gate in the first 8 bytes; attr: type, DPL, P as in an access byte. */
void put_gate(uint64_t at, uint16_t sel, uint64_t off, unsigned attr, unsigned low)
{
    put64(at, (off & 0xffff) | (uint64_t)sel << 16 | (uint64_t)low << 32 | (uint64_t)attr << 40 |
                  (off >> 16 & 0xffff) << 48);
}

void put_gate64(unsigned vector, uint16_t sel, uint64_t off, unsigned attr, unsigned ist)
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

void load_seg(unsigned seg, uint16_t sel)
{
    Desc d;
    uint64_t q = get64(GDT + (sel & ~7u));

    d = (Desc){ .lo = (uint32_t)q, .hi = (uint32_t)(q >> 32) };
    c->seg[seg] = desc_cache(&d, sel);
}

void start_common(void)
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

void begin(void)
{
    atomic_store(&c->base.halted, false);
    c->cpl = c->seg[R_CS].selector & 3;
    ram_block_written(rb, 0, RAM_SIZE);
    tcg_engine_reset(c);
}

void start_long(void)
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

void start_32(void)
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

void to_user64(uint64_t rip)
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
int go(void)
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

void set_vendor(const char *vendor)
{
    static X86CPUModel m;

    m = *x86_cpu_model_current();
    memcpy(m.vendor, vendor, 13);
    c->model = &m;
}
