/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking at a CPU from outside: registers as text and by name, page walk without side effects. */
#include "target/i386/dump.h"

#include <inttypes.h>
#include <string.h>

static const char *const reg_names[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };
static const char *const seg_names[R_SEG_COUNT] = { "es", "cs", "ss", "ds", "fs", "gs" };

uint8_t x86_code_bits(const X86CPU *cpu)
{
    if (x86_in_64bit(cpu)) {
        return 64;
    }
    return cpu->seg[R_CS].attr & SEG_DB ? 32 : 16;
}

static void dump_segment(GString *out, const char *name, const SegmentCache *s)
{
    g_string_append_printf(out, "%-3s=%04x %016" PRIx64 " %08x %08x DPL=%u %s\n", name, s->selector,
                           s->base, s->limit, s->attr, SEG_DPL(s->attr),
                           !(s->attr & SEG_P)   ? "not present"
                           : !(s->attr & SEG_S) ? "system"
                           : s->attr & SEG_CODE ? (s->attr & SEG_L    ? "CS64"
                                                   : s->attr & SEG_DB ? "CS32"
                                                                      : "CS16")
                                                : "DS");
}

static void dump_general(const X86CPU *c, GString *out)
{
    static const char order[16] = { 0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
    uint64_t fl = x86_get_rflags(c);

    for (int i = 0; i < 16; i++) {
        char *up = g_ascii_strup(reg_names[(int)order[i]], -1);

        g_string_append_printf(out, "%-3s=%016" PRIx64 "%c", up, c->regs[(int)order[i]],
                               i % 4 == 3 ? '\n' : ' ');
        g_free(up);
    }
    g_string_append_printf(out, "RIP=%016" PRIx64 " RFL=%08x [%c%c%c%c%c%c%c] CPL=%u SMM=%d HLT=%d\n",
                           c->rip, (unsigned)fl, fl & FL_DF ? 'D' : '-', fl & FL_OF ? 'O' : '-',
                           fl & FL_SF ? 'S' : '-', fl & FL_ZF ? 'Z' : '-', fl & FL_AF ? 'A' : '-',
                           fl & FL_PF ? 'P' : '-', fl & FL_CF ? 'C' : '-', c->cpl, c->smm,
                           (int)atomic_load(&c->base.halted));
}

static void dump_vector(const X86CPU *c, GString *out)
{
    g_string_append_printf(out, "FCW=%04x FSW=%04x FTW=%02x MXCSR=%08x\n", c->x87.fcw, c->x87.fsw,
                           c->x87.ftw, c->mxcsr);
    for (int i = 0; i < 8; i++) {
        uint64_t m;
        uint16_t e;

        memcpy(&m, c->x87.st[i].b, 8);
        memcpy(&e, c->x87.st[i].b + 8, 2);
        g_string_append_printf(out, "ST%d=%016" PRIx64 " %04x%c", i, m, e, i & 1 ? '\n' : ' ');
    }
    for (int i = 0; i < 16; i++) {
        uint64_t q[4];

        memcpy(q, c->ymm[i], 32);
        g_string_append_printf(out, "YMM%02d=%016" PRIx64 " %016" PRIx64 " %016" PRIx64
                                    " %016" PRIx64 "\n", i, q[3], q[2], q[1], q[0]);
    }
}

void x86_dump_state(const X86CPU *c, GString *out)
{
    dump_general(c, out);
    for (int i = 0; i < R_SEG_COUNT; i++) {
        char *up = g_ascii_strup(seg_names[i], -1);

        dump_segment(out, up, &c->seg[i]);
        g_free(up);
    }
    dump_segment(out, "LDT", &c->ldt);
    dump_segment(out, "TR", &c->tr);
    g_string_append_printf(out, "GDT=     %016" PRIx64 " %08x\nIDT=     %016" PRIx64 " %08x\n",
                           c->gdt.base, c->gdt.limit, c->idt.base, c->idt.limit);
    g_string_append_printf(out, "CR0=%08x CR2=%016" PRIx64 " CR3=%016" PRIx64 " CR4=%08x\n",
                           (unsigned)c->cr0, c->cr2, c->cr3, (unsigned)c->cr4);
    g_string_append_printf(out, "DR0=%016" PRIx64 " DR1=%016" PRIx64 " DR2=%016" PRIx64
                                " DR3=%016" PRIx64 "\nDR6=%016" PRIx64 " DR7=%016" PRIx64 "\n",
                           c->dr[0], c->dr[1], c->dr[2], c->dr[3], c->dr[6], c->dr[7]);
    g_string_append_printf(out, "EFER=%016" PRIx64 "\n", c->efer);
    dump_vector(c, out);
}

static bool name_is(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && g_ascii_strncasecmp(name, want, len) == 0;
}

/* rax also answers to eax, rip to eip and pc; R8 and up only to their own names. */
static bool general_by_name(const X86CPU *c, const char *name, size_t len, uint64_t *value)
{
    for (int i = 0; i < 16; i++) {
        if (name_is(name, len, reg_names[i])) {
            *value = c->regs[i];
            return true;
        }
        if (i < 8 && len == 3 && g_ascii_tolower(name[0]) == 'e' &&
            g_ascii_strncasecmp(name + 1, reg_names[i] + 1, 2) == 0) {
            *value = (uint32_t)c->regs[i];
            return true;
        }
    }
    return false;
}

bool x86_register_by_name(const X86CPU *c, const char *name, size_t len, uint64_t *value)
{
    const struct {
        const char *name;
        uint64_t value;
    } others[] = {
        { "rip", c->rip },         { "eip", (uint32_t)c->rip }, { "pc", c->rip },
        { "rflags", x86_get_rflags(c) }, { "eflags", (uint32_t)x86_get_rflags(c) },
        { "cr0", c->cr0 },         { "cr2", c->cr2 },           { "cr3", c->cr3 },
        { "cr4", c->cr4 },         { "efer", c->efer },         { "es", c->seg[R_ES].selector },
        { "cs", c->seg[R_CS].selector }, { "ss", c->seg[R_SS].selector },
        { "ds", c->seg[R_DS].selector }, { "fs", c->seg[R_FS].selector },
        { "gs", c->seg[R_GS].selector }, { "fs_base", c->seg[R_FS].base },
        { "gs_base", c->seg[R_GS].base },
    };

    if (general_by_name(c, name, len, value)) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (name_is(name, len, others[i].name)) {
            *value = others[i].value;
            return true;
        }
    }
    return false;
}

/* ---- Page walk (SDM 3A, 4.3 to 4.5) ---- */

#define PTE_P  1ull
#define PTE_PS 0x80ull
#define PTE_ADDR 0x000ffffffffff000ull

static bool walk_long(const X86CPU *c, uint64_t lin, unsigned levels, hwaddr table, hwaddr *phys)
{
    for (unsigned level = levels; level-- > 0;) {
        unsigned shift = 12 + 9 * level;
        uint64_t pte = ldq_phys(table + ((lin >> shift) & 0x1ff) * 8);

        if (!(pte & PTE_P)) {
            return false;
        }
        if (level == 0 || (level < 3 && (pte & PTE_PS))) {
            uint64_t mask = (1ull << shift) - 1;

            *phys = (pte & PTE_ADDR & ~mask) | (lin & mask);
            return true;
        }
        table = pte & PTE_ADDR;
    }
    return false;
}

static bool walk_pae(const X86CPU *c, uint64_t lin, hwaddr *phys)
{
    uint64_t pdpte = ldq_phys((c->cr3 & 0xffffffe0ull) + ((lin >> 30) & 3) * 8);

    return (pdpte & PTE_P) && walk_long(c, lin, 2, pdpte & PTE_ADDR, phys);
}

static bool walk_32(const X86CPU *c, uint64_t lin, hwaddr *phys)
{
    uint32_t pde = ldl_phys((c->cr3 & 0xfffff000ull) + ((lin >> 22) & 0x3ff) * 4), pte;

    if (!(pde & PTE_P)) {
        return false;
    }
    if ((pde & PTE_PS) && (c->cr4 & CR4_PSE)) {
        /* PSE-36: bits 20..13 are address bits 39..32. */
        *phys = (pde & 0xffc00000u) | ((uint64_t)((pde >> 13) & 0xff) << 32) | (lin & 0x3fffff);
        return true;
    }
    pte = ldl_phys((pde & 0xfffff000u) + ((lin >> 12) & 0x3ff) * 4);
    *phys = (pte & 0xfffff000u) | (lin & 0xfff);
    return pte & PTE_P;
}

bool x86_translate_debug(const X86CPU *c, uint64_t lin, hwaddr *phys)
{
    if (!(c->cr0 & CR0_PG)) {
        *phys = (uint32_t)lin;
        return true;
    }
    if (!(c->cr4 & CR4_PAE)) {
        return walk_32(c, (uint32_t)lin, phys);
    }
    if (!(c->efer & EFER_LMA)) {
        return walk_pae(c, (uint32_t)lin, phys);
    }
    return walk_long(c, lin, c->cr4 & CR4_LA57 ? 5 : 4, c->cr3 & PTE_ADDR, phys);
}

/* ---- All that is mapped ---- */

typedef struct Walk {
    const X86CPU *c;
    unsigned left; /* entries that may still be read */
    bool wide;     /* entries of eight bytes */
    bool (*fn)(void *opaque, const X86Mapping *m);
    void *opaque;
} Walk;

/* The four pointers of PAE have no rights. */
static bool is_pdpte(const Walk *w, unsigned level)
{
    return w->wide && level == 2 && !(w->c->efer & EFER_LMA);
}

static bool is_leaf(const Walk *w, unsigned level, uint64_t pte)
{
    if (level == 0 || is_pdpte(w, level) || !(pte & PTE_PS)) {
        return level == 0;
    }
    return w->wide ? level < 3 : w->c->cr4 & CR4_PSE;
}

static bool call_fn(Walk *w, uint64_t lin, unsigned shift, uint64_t pte, bool writable, bool user)
{
    uint64_t mask = (1ull << shift) - 1;
    X86Mapping m = { .lin = lin, .size = mask + 1, .pte = pte, .writable = writable, .user = user };

    if (w->c->efer & EFER_LMA) {
        unsigned top = w->c->cr4 & CR4_LA57 ? 57 : 48;
        m.lin = (uint64_t)((int64_t)(lin << (64 - top)) >> (64 - top));
    }
    m.phys = w->wide ? pte & PTE_ADDR & ~mask : pte & 0xfffff000u & ~mask;
    if (!w->wide && shift > 12) {
        m.phys |= (uint64_t)((pte >> 13) & 0xff) << 32;
    }
    return w->fn(w->opaque, &m);
}

/* Recursion: five levels at most. */
static bool walk_table(Walk *w, unsigned level, hwaddr table, uint64_t lin, bool writable, bool user)
{
    unsigned bits = w->wide ? 9 : 10, shift = 12 + bits * level;
    unsigned count = is_pdpte(w, level) ? 4 : 1u << bits;

    for (unsigned i = 0; i < count; i++) {
        if (!w->left) {
            return false;
        }
        w->left--;
        uint64_t pte = w->wide ? ldq_phys(table + i * 8ull) : ldl_phys(table + i * 4ull);
        uint64_t at = lin | (uint64_t)i << shift;
        bool can_write = writable && (is_pdpte(w, level) || (pte & 2)), can_user = user && (is_pdpte(w, level) || (pte & 4));

        if (!(pte & PTE_P)) {
            continue;
        }
        bool ok = is_leaf(w, level, pte)
                      ? call_fn(w, at, shift, pte, can_write, can_user)
                      : walk_table(w, level - 1, pte & (w->wide ? PTE_ADDR : 0xfffff000u), at, can_write, can_user);
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool x86_mappings(const X86CPU *c, unsigned max, bool (*fn)(void *opaque, const X86Mapping *m), void *opaque)
{
    Walk w = { .c = c, .left = max, .wide = c->cr4 & CR4_PAE, .fn = fn, .opaque = opaque };

    if (!w.wide) {
        return walk_table(&w, 1, c->cr3 & 0xfffff000u, 0, true, true);
    }
    if (!(c->efer & EFER_LMA)) {
        return walk_table(&w, 2, c->cr3 & 0xffffffe0u, 0, true, true);
    }
    return walk_table(&w, c->cr4 & CR4_LA57 ? 4 : 3, c->cr3 & PTE_ADDR, 0, true, true);
}
