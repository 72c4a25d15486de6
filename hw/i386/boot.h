/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct kernel boot, private to hw/i386: a loader turns files into a BootImage (pieces of memory
 * and start registers of CPU 0), which is written at start-up and again at every reset, as the
 * guest has overwritten it. Loaders touch no guest memory, so they are tested alone; all offsets
 * and sizes of a file are checked before use. All HELPER_ONLY (start-up) unless noted.
 */
#ifndef HW_I386_BOOT_H
#define HW_I386_BOOT_H

#include <glib.h>
#include "hw/i386/e820.h"
#include "qemu/error.h"

/* How CPU 0 starts. Interrupts are off, A20 is on. */
typedef enum BootMode {
    BOOT_MODE_NONE,   /* at the reset vector */
    BOOT_MODE_PROT32, /* 32-bit protected mode, flat segments, no paging */
    BOOT_MODE_LONG64, /* 64-bit mode, first 4 GiB identity-mapped */
} BootMode;

typedef struct BootRegs {
    BootMode mode;
    uint64_t rip, rax, rbx, rsi, rsp;
    uint64_t gdt_base, cr3;
    bool tss; /* TR: busy 32-bit TSS, base 0, limit 67h (PVH) */
} BootRegs;

/* A piece of memory to fill: len bytes of data, or zeros. */
typedef struct BootBlob {
    uint64_t addr, len;
    const uint8_t *data; /* NULL: zeros; else lives as long as the image */
    const char *what;    /* for messages */
} BootBlob;

typedef struct BootImage {
    GArray *blobs;    /* of BootBlob */
    GPtrArray *owned; /* memory the blobs point into */
    BootRegs regs;
    const char *format; /* "Linux", "multiboot", "PVH" */
    /* Files as read, for fw_cfg; NULL if not given. Owned. */
    const uint8_t *kernel, *initrd;
    size_t kernel_size, initrd_size;
} BootImage;

/* What is asked for. Strings are borrowed; initrd and append may be NULL. */
typedef struct BootRequest {
    const char *kernel, *initrd, *append;
    uint64_t ram_below_4g;
    uint64_t rsdp_addr; /* 0: no ACPI */
    const E820Table *e820;
} BootRequest;

/* Conventional memory loaders may use for their tables. */
#define BOOT_LOW_START 0x1000ull
#define BOOT_LOW_END   0x9f000ull
#define BOOT_HOLE_START 0xa0000ull
#define BOOT_HOLE_END   0x100000ull

void boot_image_init(BootImage *img);
void boot_image_free(BootImage *img);

/*
 * Reads the files and recognises the format: Linux bzImage, multiboot, ELF with a PVH note. False +
 * errp ("-kernel 'FILE': reason") if that fails; img is then to be freed.
 */
bool boot_load_kernel(BootImage *img, const BootRequest *req, Error **errp);

/* Loaders; img->kernel is set. */
bool boot_is_linux(const uint8_t *d, size_t size);
bool boot_load_linux(BootImage *img, const BootRequest *req, Error **errp);
/* Offset of a valid multiboot header, -1 if there is none. */
ssize_t boot_find_multiboot(const uint8_t *d, size_t size);
bool boot_load_multiboot(BootImage *img, const BootRequest *req, Error **errp);
bool boot_load_pvh(BootImage *img, const BootRequest *req, Error **errp);

/* ---- For loaders ---- */

/*
 * The whole of a regular file of at most limit bytes; owned by img. opt is the option to name.
 * NULL + errp.
 */
const uint8_t *boot_read_file(BootImage *img, const char *opt, const char *path, uint64_t limit,
                              size_t *size, Error **errp);
/* Zeroed memory owned by img. */
void *boot_alloc(BootImage *img, size_t len);
/* Adds a piece; false + errp if it does not lie in RAM below 4 GiB or runs into A0000h-FFFFFh. */
bool boot_add(BootImage *img, const BootRequest *req, const char *what, uint64_t addr,
              const void *data, uint64_t len, Error **errp);
/* Finds the highest aligned room of len bytes in [lo, hi) clear of all pieces so far, and adds
 * data there. */
bool boot_place(BootImage *img, const BootRequest *req, const char *what, const void *data,
                uint64_t len, uint64_t align, uint64_t lo, uint64_t hi, uint64_t *addr,
                Error **errp);
/* Highest address used by pieces below limit (exclusive). */
uint64_t boot_end(const BootImage *img, uint64_t limit);
/* Flat 32-bit (or 64-bit code) descriptors 10h and 18h, for regs->gdt_base. */
bool boot_place_gdt(BootImage *img, const BootRequest *req, bool long_mode, Error **errp);
/* Loads PT_LOAD segments of an ELF file by physical address. entry is e_entry. */
bool boot_load_elf(BootImage *img, const BootRequest *req, uint64_t *entry, Error **errp);
/* The XEN_ELFNOTE_PHYS32_ENTRY note; false if there is none. */
bool boot_elf_pvh_entry(const uint8_t *d, size_t size, uint64_t *entry);
bool boot_is_elf(const uint8_t *d, size_t size);

static inline uint32_t boot_ld32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint16_t boot_ld16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint64_t boot_ld64(const uint8_t *p)
{
    return boot_ld32(p) | (uint64_t)boot_ld32(p + 4) << 32;
}
static inline void boot_st16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void boot_st32(uint8_t *p, uint32_t v)
{
    boot_st16(p, (uint16_t)v);
    boot_st16(p + 2, (uint16_t)(v >> 16));
}
static inline void boot_st64(uint8_t *p, uint64_t v)
{
    boot_st32(p, (uint32_t)v);
    boot_st32(p + 4, (uint32_t)(v >> 32));
}

#endif
