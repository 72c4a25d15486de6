/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SMBIOS structures (DMTF DSP0134 2.8) of the "pc" board. HELPER_ONLY, start-up. */
#ifndef HW_I386_SMBIOS_H
#define HW_I386_SMBIOS_H

#include <glib.h>
#include "hw/i386/e820.h"

#define SMBIOS_FILE_TABLES "etc/smbios/smbios-tables"
#define SMBIOS_FILE_ANCHOR "etc/smbios/smbios-anchor"
#define SMBIOS_ANCHOR_SIZE 31

typedef struct SmbiosConfig {
    uint64_t ram_size;
    unsigned sockets, cores, threads; /* cores and threads of one socket */
    uint32_t cpu_signature;           /* CPUID 1 EAX, 0 if not known yet */
    uint32_t cpu_features;            /* CPUID 1 EDX */
    const uint8_t *uuid;              /* 16 bytes; NULL: not set */
    const char *product, *version;
    bool type0;                       /* BIOS information: firmware adds its own otherwise */
} SmbiosConfig;

GByteArray *smbios_build(const SmbiosConfig *cfg, unsigned *structures, unsigned *largest);
/* The 2.1 entry point for tables at addr; both check sums are right. */
void smbios_anchor(uint8_t out[SMBIOS_ANCHOR_SIZE], const GByteArray *tables, unsigned structures,
                   unsigned largest, uint32_t addr);

#endif
