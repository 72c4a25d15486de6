/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interpreter half: one X86CPU in 64-bit mode with page tables, GDT, IDT and TSS in a RAM block.
 * Streams run at CPL 3; every exception vector leads to a HLT of its own, so the interpreter's
 * exception delivery tells which it was, and the stack frame the rest.
 */
#include <cpuid.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/jit.h"
#include "target/i386/cpuid.h"
#include "diff.h"

#define PML4   0x1000u
#define PDPT   0x2000u
#define PD     0x3000u
#define PT     0x4000u /* code, data, system: one page table each */
#define IDT    0x10000u
#define GDT    0x11000u
#define TSS    0x12000u
#define VECTOR 0x13000u /* code of the handlers */
#define STACK  0x14000u
#define CODE   0x20000u
#define RAM    0x100000u

#define SYS_ADDR 0x30000000ull /* linear address of physical 0x10000 */
#define SYS(p)   (SYS_ADDR + (p) - IDT)

/* Pages of the data area lie apart, so that an access over their common end is two. */
static const uint32_t data_phys[] = { 0x30000, 0x38000, 0x34000 };
#define STATE 0x3c000u

#define SEL_KCODE 0x10
#define SEL_UCODE32 0x23
#define SEL_UDATA 0x2b
#define SEL_UCODE 0x33
#define SEL_TSS   0x40

static X86CPU *cpu;
static RAMBlock *ram;

static void put64(uint32_t phys, uint64_t v)
{
    memcpy(ram->host + phys, &v, 8);
}

static void map_page(unsigned table, uint64_t lin, uint32_t phys, uint64_t bits)
{
    put64(PT + table * 0x1000 + (uint32_t)((lin >> 12) & 511) * 8, phys | bits);
    put64(PD + (uint32_t)((lin >> 21) & 511) * 8, (PT + table * 0x1000) | 7);
}

static void make_tables(void)
{
    put64(PML4, PDPT | 7);
    put64(PDPT, PD | 7);
    for (unsigned n = 0; n < CODE_SIZE; n += 4096) {
        map_page(0, CODE_ADDR + n, CODE + n, 5);
    }
    for (unsigned n = 0; n < 3; n++) {
        map_page(1, DATA_ADDR + 4096 * n, data_phys[n], n < DATA_RW / 4096 ? 7 : 5);
    }
    map_page(1, STATE_ADDR, STATE, 7);
    for (unsigned n = 0; n < 8; n++) {
        map_page(2, SYS_ADDR + 4096 * n, IDT + 4096 * n, 3);
    }
    put64(GDT + SEL_KCODE, 0x00af9b000000ffff);
    put64(GDT + 0x18, 0x00cf93000000ffff);
    put64(GDT + 0x20, 0x00cffb000000ffff);
    put64(GDT + 0x28, 0x00cff3000000ffff);
    put64(GDT + 0x30, 0x00affb000000ffff);
    for (unsigned v = 0; v < 32; v++) {
        uint64_t h = SYS(VECTOR) + 16 * v;
        put64(IDT + 16 * v, (h & 0xffff) | SEL_KCODE << 16 | 0xee0000000000ull |
                                (h & 0xffff0000) << 32);
        put64(IDT + 16 * v + 8, h >> 32);
        ram->host[VECTOR + 16 * v] = 0xf4;
    }
    put64(TSS + 4, SYS(STACK) + 0x1000);
}

/* ---- CPU ---- */

static void take_features(X86CPU *c)
{
    unsigned a, b, cx, d;
    __cpuid(1, a, b, cx, d);
    c->feat[FEAT_1_ECX] = cx & ~(BIT(3) | BIT(21) | BIT(24) | BIT(17));
    c->feat[FEAT_1_EDX] = d;
    __cpuid_count(7, 0, a, b, cx, d);
    c->feat[FEAT_7_0_EBX] = b;
    c->feat[FEAT_7_0_ECX] = cx & ~BIT(16);
    c->feat[FEAT_7_0_EDX] = d;
    __cpuid_count(7, 1, a, b, cx, d);
    c->feat[FEAT_7_1_EAX] = a;
    __cpuid(0x80000001, a, b, cx, d);
    c->feat[FEAT_8000_0001_ECX] = cx & ~BIT(6); /* no SSE4a */
    c->feat[FEAT_8000_0001_EDX] = d;
    __cpuid_count(0xd, 1, a, b, cx, d);
    c->feat[FEAT_XSAVE] = a;
}

static bool has(FeatureWord w, unsigned bit)
{
    return x86_has(cpu, w, BIT(bit));
}

bool guest_has(ZydisISASet set)
{
    switch (set) {
    case ZYDIS_ISA_SET_AMD3DNOW:
    case ZYDIS_ISA_SET_FMA4:
    case ZYDIS_ISA_SET_XOP:
    case ZYDIS_ISA_SET_TBM:
    case ZYDIS_ISA_SET_LWP:
    case ZYDIS_ISA_SET_SSE4A:
    case ZYDIS_ISA_SET_CLFLUSHOPT:
    case ZYDIS_ISA_SET_CLWB:
    case ZYDIS_ISA_SET_CLZERO:
    case ZYDIS_ISA_SET_AMD:
    case ZYDIS_ISA_SET_MONITOR:
    case ZYDIS_ISA_SET_MONITORX:
    case ZYDIS_ISA_SET_MOVDIR:
    case ZYDIS_ISA_SET_WAITPKG:
    case ZYDIS_ISA_SET_RTM:
    case ZYDIS_ISA_SET_SERIALIZE:
    case ZYDIS_ISA_SET_TSX_LDTRK:
    case ZYDIS_ISA_SET_UINTR:
    case ZYDIS_ISA_SET_KEYLOCKER:
    case ZYDIS_ISA_SET_KEYLOCKER_WIDE:
    case ZYDIS_ISA_SET_HRESET:
    case ZYDIS_ISA_SET_ENQCMD:
    case ZYDIS_ISA_SET_PADLOCK_ACE:
    case ZYDIS_ISA_SET_PADLOCK_PHE:
    case ZYDIS_ISA_SET_PADLOCK_PMM:
    case ZYDIS_ISA_SET_PADLOCK_RNG:
    case ZYDIS_ISA_SET_AMX_TILE:
    case ZYDIS_ISA_SET_AMX_BF16:
    case ZYDIS_ISA_SET_AMX_INT8:
    case ZYDIS_ISA_SET_CET:
    case ZYDIS_ISA_SET_MPX:
    case ZYDIS_ISA_SET_PKU:
    case ZYDIS_ISA_SET_RDPRU:
    case ZYDIS_ISA_SET_MCOMMIT:
        return false;
    case ZYDIS_ISA_SET_AVX:
        return has(FEAT_1_ECX, 28);
    case ZYDIS_ISA_SET_AVX2:
    case ZYDIS_ISA_SET_AVX2GATHER:
        return has(FEAT_7_0_EBX, 5);
    case ZYDIS_ISA_SET_FMA:
        return has(FEAT_1_ECX, 12);
    case ZYDIS_ISA_SET_F16C:
        return has(FEAT_1_ECX, 29);
    case ZYDIS_ISA_SET_AES:
    case ZYDIS_ISA_SET_AVXAES:
        return has(FEAT_1_ECX, 25);
    case ZYDIS_ISA_SET_PCLMULQDQ:
        return has(FEAT_1_ECX, 1);
    case ZYDIS_ISA_SET_SHA:
        return has(FEAT_7_0_EBX, 29);
    case ZYDIS_ISA_SET_GFNI:
    case ZYDIS_ISA_SET_AVX_GFNI:
        return has(FEAT_7_0_ECX, 8);
    case ZYDIS_ISA_SET_VAES:
        return has(FEAT_7_0_ECX, 9);
    case ZYDIS_ISA_SET_VPCLMULQDQ:
        return has(FEAT_7_0_ECX, 10);
    case ZYDIS_ISA_SET_AVX_VNNI:
        return has(FEAT_7_1_EAX, 4);
    case ZYDIS_ISA_SET_BMI1:
        return has(FEAT_7_0_EBX, 3);
    case ZYDIS_ISA_SET_BMI2:
        return has(FEAT_7_0_EBX, 8);
    case ZYDIS_ISA_SET_ADOX_ADCX:
        return has(FEAT_7_0_EBX, 19);
    case ZYDIS_ISA_SET_LZCNT:
        return has(FEAT_8000_0001_ECX, 5);
    case ZYDIS_ISA_SET_MOVBE:
        return has(FEAT_1_ECX, 22);
    case ZYDIS_ISA_SET_POPCNT:
        return has(FEAT_1_ECX, 23);
    case ZYDIS_ISA_SET_CMPXCHG16B:
        return has(FEAT_1_ECX, 13);
    case ZYDIS_ISA_SET_SSE42:
        return has(FEAT_1_ECX, 20);
    default:
        return true;
    }
}

static void set_seg(unsigned n, uint16_t sel, uint32_t attr)
{
    cpu->seg[n] = (SegmentCache){ .selector = sel, .attr = attr, .limit = 0xffffffff };
}

static void set_system_state(void)
{
    X86CPU *c = cpu;
    c->cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_AM | CR0_PG;
    c->cr3 = PML4;
    c->cr4 = CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE;
    c->efer = EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE;
    c->xcr0 = 7;
    c->gdt = (TableReg){ .base = SYS(GDT), .limit = 0x4f };
    c->idt = (TableReg){ .base = SYS(IDT), .limit = 32 * 16 - 1 };
    c->tr = (SegmentCache){ .selector = SEL_TSS, .attr = 0x8b, .limit = 0x67, .base = SYS(TSS) };
    c->ldt = (SegmentCache){ .attr = SEG_UNUSABLE };
}

static void set_16bit_segments(void);
static void set_user_segments(void)
{
    cpu->cpl = 3;
    set_seg(R_CS, diff_32 ? SEL_UCODE32 : SEL_UCODE, diff_32 ? 0xc0fb : 0xa0fb);
    set_seg(R_SS, SEL_UDATA, 0xc0f3);
    set_seg(R_DS, diff_32 ? SEL_UDATA : 0, diff_32 ? 0xc0f3 : SEG_UNUSABLE);
    set_seg(R_ES, diff_32 ? SEL_UDATA : 0, diff_32 ? 0xc0f3 : SEG_UNUSABLE);
    set_seg(R_FS, 0, SEG_UNUSABLE);
    set_seg(R_GS, 0, SEG_UNUSABLE);
    if (diff_16) {
        set_16bit_segments();
    }
}

static void set_16bit_segments(void)
{
    set_seg(R_CS, LDT_CODE, 0x00fb);
    cpu->seg[R_CS].base = CODE_ADDR;
    cpu->seg[R_CS].limit = 0xffff;
    for (unsigned n = 0; n < 3; n++) {
        unsigned s = n == 0 ? R_DS : n == 1 ? R_ES : R_SS;
        set_seg(s, LDT_DATA, 0x00f3);
        cpu->seg[s].base = DATA_ADDR;
        cpu->seg[s].limit = DATA_SIZE - 1;
    }
}

bool guest_init(void)
{
    Error *err = NULL;
    MemoryRegion *mr = calloc(1, sizeof(*mr));
    memory_init();
    ram = ram_block_new("ram", RAM, 0, -1, &err);
    cpu = aligned_alloc(64, ROUND_UP(sizeof(X86CPU), 64));
    if (!ram || !cpu || !mr) {
        return false;
    }
    memory_region_init_ram(mr, ram, "ram");
    memory_region_add_subregion(memory_root(), 0, mr, 0);
    memset(cpu, 0, sizeof(*cpu));
    cpu->phys_bits = 40;
    take_features(cpu);
    set_system_state();
    set_user_segments();
    make_tables();
    if (!tcg_engine_init(cpu, &err)) {
        error_report_err(err);
        return false;
    }
    return true;
}

void guest_load(const Stream *s)
{
    memcpy(ram->host + CODE, s->code, CODE_SIZE);
    ram_block_written(ram, CODE, CODE_SIZE);
    for (unsigned n = 0; n < 3; n++) {
        memcpy(ram->host + data_phys[n], s->data + 4096 * n, 4096);
    }
    memset(ram->host + STATE, 0, 4096);
    set_system_state();
    set_user_segments();
    tcg_engine_reset(cpu);
}

void guest_read_data(uint8_t *buf)
{
    for (unsigned n = 0; n < 3; n++) {
        memcpy(buf + 4096 * n, ram->host + data_phys[n], 4096);
    }
}

void guest_read_memory(uint8_t *buf)
{
    guest_read_data(buf);
    memcpy(buf + DATA_SIZE, ram->host + STATE, 4096);
}

void guest_write_memory(const uint8_t *buf)
{
    for (unsigned n = 0; n < 3; n++) {
        memcpy(ram->host + data_phys[n], buf + 4096 * n, 4096);
    }
    memcpy(ram->host + STATE, buf + DATA_SIZE, 4096);
}

void guest_translate(bool on)
{
    tcg_jit_heat = on ? 0 : UINT_MAX;
    ram_block_written(ram, CODE, CODE_SIZE); /* what is known of it is forgotten */
}

uint64_t guest_jit_entries(void)
{
    return cpu->tcg->jit ? cpu->tcg->jit->stat.entries : 0;
}

static void state_in(const State *in)
{
    X86CPU *c = cpu;
    memcpy(c->regs, in->gpr, sizeof(in->gpr));
    c->regs[R_ZERO] = 0;
    c->rip = in->rip - (diff_16 ? CODE_ADDR : 0);
    x86_set_rflags(c, in->rflags);
    memcpy(c->ymm, in->ymm, sizeof(c->ymm));
    c->mxcsr = in->mxcsr;
    c->x87.fcw = in->fcw;
    c->x87.fsw = in->fsw;
    c->x87.ftw = in->ftw;
    for (unsigned n = 0; n < 8; n++) {
        memcpy(c->x87.st[n].b, in->st[n], 10);
    }
    c->cr2 = 0;
}

static bool has_error_code(int v)
{
    return v == 8 || (v >= 10 && v <= 14) || v == 17;
}

/* The frame of the exception, and what it says of the interrupted program. */
static void state_out(State *out)
{
    const X86CPU *c = cpu;
    uint64_t frame[6];
    memset(out, 0, sizeof(*out));
    out->vector = (int)((c->rip - 1 - SYS(VECTOR)) / 16);
    bool error = has_error_code(out->vector);
    memcpy(frame, ram->host + (c->regs[R_RSP] - SYS_ADDR + IDT), error ? 48 : 40);
    const uint64_t *f = frame + (error ? 1 : 0);
    out->error = error ? frame[0] : 0;
    memcpy(out->gpr, c->regs, sizeof(out->gpr));
    out->rip = f[0] + (diff_16 ? CODE_ADDR : 0);
    out->rflags = f[2];
    out->gpr[R_RSP] = f[3];
    out->cr2 = c->cr2;
    memcpy(out->ymm, c->ymm, sizeof(out->ymm));
    out->mxcsr = c->mxcsr;
    out->fcw = c->x87.fcw;
    out->fsw = c->x87.fsw;
    out->ftw = c->x87.ftw;
    for (unsigned n = 0; n < 8; n++) {
        memcpy(out->st[n], c->x87.st[n].b, 10);
    }
}

bool guest_run(const State *in, State *out)
{
    state_in(in);
    set_user_segments();
    tcg_mode_changed(cpu);
    atomic_store(&cpu->base.halted, false);
    atomic_store(&cpu->base.exit_request, 1);
    for (int tries = 0; tries < 1000; tries++) {
        ExitReason r = tcg_engine_run(cpu);
        if (r == EXIT_HALT && cpu->rip > SYS(VECTOR) && cpu->rip < SYS(VECTOR) + 512) {
            state_out(out);
            return true;
        }
        if (r != EXIT_REQUEST) {
            fprintf(stderr, "interpreter left with reason %d at rip %#llx\n", r,
                    (unsigned long long)cpu->rip);
            return false;
        }
    }
    return false;
}
