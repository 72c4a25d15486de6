/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory maps of the PC. */
#include "hw/i386/boot.h"
#include "hw/i386/e820.h"

static void add(E820Table *t, uint64_t addr, uint64_t end, uint32_t type)
{
    if (end > addr && t->n < E820_MAX) {
        t->e[t->n++] = (E820Entry){ addr, end - addr, type };
    }
}

void e820_build_ram(E820Table *t, uint64_t ram_size)
{
    uint64_t below = pc_ram_below_4g(ram_size);
    t->n = 0;
    add(t, 0, below, E820_RAM);
    add(t, 4 * GiB, 4 * GiB + (ram_size - below), E820_RAM);
}

void e820_build_boot(E820Table *t, uint64_t ram_size)
{
    uint64_t below = pc_ram_below_4g(ram_size);
    t->n = 0;
    add(t, 0, MIN(below, 0x9fc00), E820_RAM);
    add(t, 0x9fc00, 0xa0000, E820_RESERVED);  /* extended BIOS data area */
    add(t, 0xe0000, 0x100000, E820_RESERVED); /* firmware tables */
    add(t, 0x100000, below, E820_RAM);
    add(t, 0xfeffc000, 0xff000000, E820_RESERVED); /* KVM keeps its TSS and page table here */
    add(t, 0xfffc0000, 4 * GiB, E820_RESERVED);    /* firmware ROM */
    add(t, 4 * GiB, 4 * GiB + (ram_size - below), E820_RAM);
}

void e820_encode(const E820Table *t, uint8_t *out)
{
    for (unsigned i = 0; i < t->n; i++, out += 20) {
        boot_st64(out, t->e[i].addr);
        boot_st64(out + 8, t->e[i].len);
        boot_st32(out + 16, t->e[i].type);
    }
}
