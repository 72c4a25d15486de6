/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory type range registers and IA32_PAT: storage and validity (SDM 3A 12.11, 12.12). */
#include "target/i386/mtrr.h"
#include "target/i386/cpuid.h"

enum { MT_UC = 0, MT_WC = 1, MT_WT = 4, MT_WP = 5, MT_WB = 6, MT_UC_MINUS = 7 };

#define MSR_MTRR_VAR_FIRST 0x200
#define MSR_MTRR_DEFTYPE   0x2ff
#define DEFTYPE_FE         BIT(10)
#define DEFTYPE_E          BIT(11)
#define MASK_VALID         BIT64(11)

static bool type_valid(uint64_t t)
{
    return t == MT_UC || t == MT_WC || t == MT_WT || t == MT_WP || t == MT_WB;
}

static bool eight_types_valid(uint64_t v)
{
    for (unsigned i = 0; i < 64; i += 8) {
        if (!type_valid((v >> i) & 0xff)) {
            return false;
        }
    }
    return true;
}

bool x86_pat_valid(uint64_t v)
{
    for (unsigned i = 0; i < 64; i += 8) {
        uint64_t t = (v >> i) & 0xff;

        if (t != MT_UC_MINUS && !type_valid(t)) {
            return false;
        }
    }
    return true;
}

/* Index in mtrr_fixed[] of an MSR, -1: not a fixed-range register. */
static int fixed_slot(uint32_t index)
{
    if (index == 0x250) {
        return 0;
    }
    if (index == 0x258 || index == 0x259) {
        return (int)(index - 0x258) + 1;
    }
    return index >= 0x268 && index <= 0x26f ? (int)(index - 0x268) + 3 : -1;
}

bool x86_mtrr_read(const X86CPU *c, uint32_t index, uint64_t *value)
{
    int slot = fixed_slot(index);

    if (slot >= 0) {
        *value = c->mtrr_fixed[slot];
    } else if (index - MSR_MTRR_VAR_FIRST < 2 * X86_MTRR_VAR) {
        *value = c->mtrr_var[(index - MSR_MTRR_VAR_FIRST) / 2][index & 1];
    } else if (index == MSR_MTRR_DEFTYPE) {
        *value = c->mtrr_deftype;
    } else {
        return false;
    }
    return true;
}

static bool write_variable(X86CPU *c, unsigned n, bool mask, uint64_t v)
{
    uint64_t address = x86_phys_mask(c) & ~0xfffull;

    if (mask ? (v & ~(address | MASK_VALID)) != 0
             : (v & ~(address | 0xff)) != 0 || !type_valid(v & 0xff)) {
        return false;
    }
    c->mtrr_var[n][mask] = v;
    return true;
}

bool x86_mtrr_write(X86CPU *c, uint32_t index, uint64_t v, bool *ok)
{
    int slot = fixed_slot(index);

    *ok = true;
    if (slot >= 0) {
        *ok = eight_types_valid(v);
        if (*ok) {
            c->mtrr_fixed[slot] = v;
        }
    } else if (index - MSR_MTRR_VAR_FIRST < 2 * X86_MTRR_VAR) {
        *ok = write_variable(c, (index - MSR_MTRR_VAR_FIRST) / 2, index & 1, v);
    } else if (index == MSR_MTRR_DEFTYPE) {
        *ok = !(v & ~(uint64_t)(DEFTYPE_E | DEFTYPE_FE | 0xff)) && type_valid(v & 0xff);
        if (*ok) {
            c->mtrr_deftype = v;
        }
    } else {
        return false;
    }
    return true;
}

void x86_cpu_firmware_mtrrs(X86CPU *c, uint64_t uncached_start)
{
    uint64_t all_wb = 0x0606060606060606ull, all_wp = 0x0505050505050505ull;
    uint64_t pos = uncached_start;
    unsigned n = 0;

    c->mtrr_fixed[0] = c->mtrr_fixed[1] = all_wb; /* 00000..9ffff */
    c->mtrr_fixed[2] = 0;                         /* a0000..bffff: UC */
    for (unsigned i = 3; i < 11; i++) {
        c->mtrr_fixed[i] = all_wp; /* c0000..fffff */
    }
    /* Naturally aligned powers of two from uncached_start up to 4 GiB. */
    while (pos && pos < 4 * GiB && n < X86_MTRR_VAR) {
        uint64_t size = pos & -pos;

        c->mtrr_var[n][0] = pos | MT_UC;
        c->mtrr_var[n][1] = (x86_phys_mask(c) & ~(size - 1)) | MASK_VALID;
        pos += size;
        n++;
    }
    c->mtrr_deftype = DEFTYPE_E | DEFTYPE_FE | MT_WB;
}
