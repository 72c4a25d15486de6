/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bare CPU of the MMU tests. */
#include "mmu-machine.h"

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

uint64_t io_value;
unsigned io_reads, io_writes;

static uint64_t io_read(void *opaque, hwaddr off, unsigned size)
{
    io_reads++;
    return 0x1122334455667788ull >> (8 * (off & 7));
}
static void io_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    io_writes++;
    io_value = v;
}
static const MemoryRegionOps io_ops = { .read = io_read, .write = io_write };

void mmu_machine_make(void)
{
    static MemoryRegion mr_ram, mr_rom, mr_io;
    RAMBlock *rom;

    memory_init();
    memory_thread_register();
    rb = ram_block_new("ram", RAM_SIZE, 0, -1, &error_abort);
    rom = ram_block_new("rom", 64 * KiB, RAM_ROM, -1, &error_abort);
    memory_region_init_ram(&mr_ram, rb, "ram");
    memory_region_init_rom(&mr_rom, rom, "rom");
    memory_region_init_io(&mr_io, &io_ops, NULL, "io", 64 * KiB);
    memory_region_add_subregion(memory_root(), 0, &mr_ram, 0);
    memory_region_add_subregion(memory_root(), ROM_AT, &mr_rom, 0);
    memory_region_add_subregion(memory_root(), IO_AT, &mr_io, 0);
    memset(rom->host, 0xab, 64 * KiB);
    ram = rb->host;
    x86_cpu_set_backend(&backend);
    g_assert_true(x86_cpu_set_model("max", &error_abort));
    c = x86_cpu_new(0, &error_abort);
    g_assert_true(tcg_engine_init(c, &error_abort));
    memory_read_lock();
}

void put64(uint64_t at, uint64_t v)
{
    memcpy(ram + at, &v, 8);
}
void put32(uint64_t at, uint32_t v)
{
    memcpy(ram + at, &v, 4);
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

void flush(void)
{
    tcg_tlb_flush(c, true);
}

/* Flat segments, paging of a kind, CPL 0; tables empty. */
void start(uint64_t cr0, uint64_t cr4, uint64_t efer, uint64_t cr3)
{
    x86_cpu_reset(c, false);
    memset(ram, 0, 0x200000);
    ram_block_written(rb, 0, RAM_SIZE);
    for (unsigned n = 0; n < R_SEG_COUNT; n++) {
        c->seg[n] = (SegmentCache){ .attr = SEG_P | SEG_S | SEG_W | SEG_A | SEG_DB | SEG_G,
                                    .limit = 0xffffffff };
    }
    c->seg[R_CS].attr |= SEG_CODE;
    if (efer & EFER_LMA) {
        c->seg[R_CS].attr = (c->seg[R_CS].attr & ~SEG_DB) | SEG_L;
    }
    c->cr0 = CR0_PE | CR0_ET | cr0;
    c->cr4 = cr4;
    c->efer = efer;
    c->cr3 = cr3;
    c->pkru = 0;
    tcg_engine_reset(c);
    c->tcg->db_pending = 0;
}

void start_long(uint64_t cr4)
{
    start(CR0_PG | CR0_WP, CR4_PAE | CR4_PGE | cr4, EFER_LME | EFER_LMA | EFER_NXE, PML4);
    put64(PML4, PDPT | RWU);
    put64(PDPT, PD | RWU);
    put64(PD, PT | RWU);
}

void set_cpl(unsigned cpl)
{
    c->cpl = (uint8_t)cpl;
    tcg_mode_changed(c);
}

/* ---- Accesses that may fault ---- */

QEMU_NOINLINE Result access_mem(int kind, uint64_t lin, unsigned size, uint64_t v)
{
    static volatile Result r;

    r.fault = false;
    if (sigsetjmp(c->tcg->jmp, 0)) {
        r.fault = true;
        r.vector = c->tcg->exc.vector;
        r.error = c->tcg->exc.error;
        return r;
    }
    if (kind == FETCH) {
        r.value = tcg_translate_fetch(c, lin);
    } else if (kind == LD) {
        r.value = size == 1   ? tcg_ld8(c, NULL, lin)
                  : size == 2 ? tcg_ld16(c, NULL, lin)
                  : size == 4 ? tcg_ld32(c, NULL, lin)
                              : tcg_ld64(c, NULL, lin);
    } else if (size == 1) {
        tcg_st8(c, NULL, lin, (uint8_t)v);
    } else if (size == 2) {
        tcg_st16(c, NULL, lin, (uint16_t)v);
    } else if (size == 4) {
        tcg_st32(c, NULL, lin, (uint32_t)v);
    } else {
        tcg_st64(c, NULL, lin, v);
    }
    return r;
}
