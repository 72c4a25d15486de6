/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory map firmware and loaders tell the guest (ACPI 6.4, section 15: INT 15h, E820h). */
#ifndef HW_I386_E820_H
#define HW_I386_E820_H

#include "qemu/compiler.h"

#define E820_RAM      1
#define E820_RESERVED 2
#define E820_MAX      32

typedef struct E820Entry {
    uint64_t addr, len;
    uint32_t type;
} E820Entry;

typedef struct E820Table {
    unsigned n;
    E820Entry e[E820_MAX];
} E820Table;

/* Where RAM of a size goes on the PC: up to 3 GiB below the PCI hole, the rest above 4 GiB. */
#define PC_MAX_BELOW_4G 0xc0000000ull
static inline uint64_t pc_ram_below_4g(uint64_t ram_size)
{
    return MIN(ram_size, PC_MAX_BELOW_4G);
}

/* RAM as such (for firmware: etc/e820). */
void e820_build_ram(E820Table *t, uint64_t ram_size);
/* As a BIOS hands it to a kernel: sorted, with what the machine keeps for itself taken out. */
void e820_build_boot(E820Table *t, uint64_t ram_size);
/* 20 bytes an entry, the layout of E820h, little endian. out holds 20 * t->n bytes. */
void e820_encode(const E820Table *t, uint8_t *out);

#endif
