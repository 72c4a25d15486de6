/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Linux bzImage by the x86 boot protocol (Documentation/arch/x86/boot.rst, zero-page.rst): the
 * protected-mode part is loaded and entered directly, at its 64-bit entry where it has one. What
 * the real-mode part would have found out is filled into the zero page.
 */
#include <string.h>
#include "hw/i386/boot.h"

/* Setup header, offsets in the file and in the zero page. */
enum {
    ZP_ACPI_RSDP = 0x070, ZP_E820_ENTRIES = 0x1e8, ZP_SETUP = 0x1f1, ZP_E820 = 0x2d0,
    HDR_SETUP_SECTS = 0x1f1, HDR_SYSSIZE = 0x1f4, HDR_BOOT_FLAG = 0x1fe, HDR_JUMP_LEN = 0x201,
    HDR_MAGIC = 0x202, HDR_VERSION = 0x206, HDR_TYPE_OF_LOADER = 0x210, HDR_LOADFLAGS = 0x211,
    HDR_CODE32_START = 0x214, HDR_RAMDISK_IMAGE = 0x218, HDR_RAMDISK_SIZE = 0x21c,
    HDR_HEAP_END = 0x224, HDR_CMD_LINE_PTR = 0x228, HDR_INITRD_MAX = 0x22c, HDR_ALIGNMENT = 0x230,
    HDR_RELOCATABLE = 0x234, HDR_XLOADFLAGS = 0x236, HDR_CMDLINE_SIZE = 0x238,
    HDR_PREF_ADDRESS = 0x258, HDR_INIT_SIZE = 0x260, HDR_END = 0x268,
};
#define LOADFLAG_HIGH         0x01
#define XLF_KERNEL_64         0x0001
#define LOADER_ID             0xb0
#define ZERO_PAGE_SIZE        4096
#define SECTOR                512
#define DEFAULT_INITRD_MAX    0x37ffffffu
#define DEFAULT_CMDLINE_SIZE  255
#define ENTRY64_OFFSET        0x200

typedef struct Linux {
    const uint8_t *d; /* the file */
    size_t setup_size, code_size;
    uint16_t version;
    bool long_mode;
    uint64_t load_addr, end; /* end: first byte past what the kernel needs to start */
    uint64_t initrd_addr;
    uint64_t cmdline_addr;
} Linux;

bool boot_is_linux(const uint8_t *d, size_t size)
{
    return size >= HDR_END && boot_ld16(d + HDR_BOOT_FLAG) == 0xaa55 &&
           memcmp(d + HDR_MAGIC, "HdrS", 4) == 0;
}

static bool check_header(Linux *l, BootImage *img, const BootRequest *req, Error **errp)
{
    unsigned sects = l->d[HDR_SETUP_SECTS] ? l->d[HDR_SETUP_SECTS] : 4;
    l->setup_size = (sects + 1) * (size_t)SECTOR;
    l->version = boot_ld16(l->d + HDR_VERSION);
    if (l->version < 0x200 || !(l->d[HDR_LOADFLAGS] & LOADFLAG_HIGH)) {
        error_setg(errp, "-kernel '%s': is a zImage or older than boot protocol 2.0; only bzImage "
                   "kernels can be booted", req->kernel);
        return false;
    }
    if (img->kernel_size <= l->setup_size) {
        error_setg(errp, "-kernel '%s': is truncated: %zu bytes, its set-up code alone has %zu",
                   req->kernel, img->kernel_size, l->setup_size);
        return false;
    }
    l->code_size = img->kernel_size - l->setup_size;
    if (l->version >= 0x204) {
        uint64_t need = boot_ld32(l->d + HDR_SYSSIZE) * 16ull; /* rounded up to a paragraph */
        if (l->code_size + 15 < need) {
            error_setg(errp, "-kernel '%s': is truncated: %zu bytes, its header says %llu",
                       req->kernel, img->kernel_size,
                       (unsigned long long)(l->setup_size + need));
            return false;
        }
    }
    l->long_mode = l->version >= 0x20c && boot_ld16(l->d + HDR_XLOADFLAGS) & XLF_KERNEL_64;
    if (l->long_mode && l->code_size <= ENTRY64_OFFSET) {
        error_setg(errp, "-kernel '%s': is truncated: no room for its 64-bit entry", req->kernel);
        return false;
    }
    return true;
}

/*
 * The kernel runs from max(where it was loaded, pref_address) and needs init_size bytes there
 * before it looks at the memory map.
 */
static bool place_kernel(Linux *l, BootImage *img, const BootRequest *req, Error **errp)
{
    const uint8_t *code = l->d + l->setup_size;
    uint64_t need = l->code_size;
    l->load_addr = 0x100000;
    if (l->version >= 0x20a) {
        uint64_t pref = boot_ld64(l->d + HDR_PREF_ADDRESS);
        need = MAX(need, boot_ld32(l->d + HDR_INIT_SIZE));
        if (pref >= 0x100000) {
            l->load_addr = pref;
        }
    }
    if (need > req->ram_below_4g || l->load_addr > req->ram_below_4g - need) {
        error_setg(errp, "-kernel '%s': needs 0x%llx bytes at 0x%llx, the guest has 0x%llx bytes "
                   "below 4 GiB; see -m", req->kernel, (unsigned long long)need,
                   (unsigned long long)l->load_addr, (unsigned long long)req->ram_below_4g);
        return false;
    }
    l->end = l->load_addr + need;
    return boot_add(img, req, "the kernel", l->load_addr, code, l->code_size, errp);
}

static bool place_initrd(Linux *l, BootImage *img, const BootRequest *req, Error **errp)
{
    uint64_t max = l->version >= 0x203 ? boot_ld32(l->d + HDR_INITRD_MAX) : DEFAULT_INITRD_MAX;
    uint64_t top = MIN(max + 1, req->ram_below_4g);
    if (!req->initrd) {
        return true;
    }
    img->initrd = boot_read_file(img, "-initrd", req->initrd, req->ram_below_4g, &img->initrd_size,
                                 errp);
    if (!img->initrd) {
        return false;
    }
    if (top < l->end || top - l->end < ROUND_UP(img->initrd_size, 4096)) {
        error_setg(errp, "-initrd '%s': its %zu bytes do not fit between the kernel (which ends at "
                   "0x%llx) and 0x%llx; see -m", req->initrd, img->initrd_size,
                   (unsigned long long)l->end, (unsigned long long)top);
        return false;
    }
    l->initrd_addr = ROUND_DOWN(top - img->initrd_size, 4096ull);
    return boot_add(img, req, "the initrd", l->initrd_addr, img->initrd, img->initrd_size, errp);
}

static bool place_cmdline(Linux *l, BootImage *img, const BootRequest *req, Error **errp)
{
    const char *text = req->append ? req->append : "";
    size_t len = strlen(text);
    size_t max = l->version >= 0x206 ? boot_ld32(l->d + HDR_CMDLINE_SIZE) : DEFAULT_CMDLINE_SIZE;
    if (len > max) {
        error_setg(errp, "-append: the command line has %zu bytes, this kernel takes at most %zu",
                   len, max);
        return false;
    }
    char *copy = boot_alloc(img, len + 1);
    memcpy(copy, text, len);
    return boot_place(img, req, "the command line", copy, len + 1, 16, BOOT_LOW_START,
                      BOOT_LOW_END, &l->cmdline_addr, errp);
}

static bool place_zero_page(Linux *l, BootImage *img, const BootRequest *req, Error **errp)
{
    uint8_t *zp = boot_alloc(img, ZERO_PAGE_SIZE);
    /* The header ends where the jump at its start leads to; 2.0x headers are shorter. */
    size_t end = MIN((size_t)HDR_MAGIC + l->d[HDR_JUMP_LEN], (size_t)0x290);
    end = MIN(end, img->kernel_size);
    memcpy(zp + ZP_SETUP, l->d + HDR_SETUP_SECTS, end > ZP_SETUP ? end - ZP_SETUP : 0);
    zp[HDR_TYPE_OF_LOADER] = LOADER_ID;
    boot_st32(zp + HDR_CODE32_START, (uint32_t)l->load_addr);
    boot_st32(zp + HDR_CMD_LINE_PTR, (uint32_t)l->cmdline_addr);
    boot_st32(zp + HDR_RAMDISK_IMAGE, (uint32_t)l->initrd_addr);
    boot_st32(zp + HDR_RAMDISK_SIZE, (uint32_t)img->initrd_size);
    boot_st64(zp + ZP_ACPI_RSDP, req->rsdp_addr);
    zp[ZP_E820_ENTRIES] = (uint8_t)req->e820->n;
    e820_encode(req->e820, zp + ZP_E820);
    return boot_place(img, req, "the zero page", zp, ZERO_PAGE_SIZE, 4096, BOOT_LOW_START,
                      BOOT_LOW_END, &img->regs.rsi, errp);
}

/* Identity map of 4 GiB by 2 MiB pages: PML4, PDPT, four page directories. */
static bool place_page_tables(BootImage *img, const BootRequest *req, Error **errp)
{
    uint8_t *pt = boot_alloc(img, 6 * 4096);
    uint64_t base;
    if (!boot_place(img, req, "page tables", pt, 6 * 4096, 4096, BOOT_LOW_START, BOOT_LOW_END,
                    &base, errp)) {
        return false;
    }
    boot_st64(pt, (base + 4096) | 3);
    for (unsigned i = 0; i < 4; i++) {
        boot_st64(pt + 4096 + 8 * i, (base + 4096 * (2 + i)) | 3);
    }
    for (unsigned i = 0; i < 2048; i++) {
        boot_st64(pt + 2 * 4096 + 8 * i, (uint64_t)i << 21 | 0x83); /* P, RW, PS */
    }
    img->regs.cr3 = base;
    return true;
}

bool boot_load_linux(BootImage *img, const BootRequest *req, Error **errp)
{
    Linux l = { .d = img->kernel };
    if (!check_header(&l, img, req, errp) || !place_kernel(&l, img, req, errp) ||
        !place_initrd(&l, img, req, errp) || !place_cmdline(&l, img, req, errp) ||
        !place_zero_page(&l, img, req, errp) || !boot_place_gdt(img, req, l.long_mode, errp)) {
        return false;
    }
    if (l.long_mode && !place_page_tables(img, req, errp)) {
        return false;
    }
    img->format = "Linux";
    img->regs.mode = l.long_mode ? BOOT_MODE_LONG64 : BOOT_MODE_PROT32;
    img->regs.rip = l.load_addr + (l.long_mode ? ENTRY64_OFFSET : 0);
    img->regs.rsp = BOOT_LOW_START;
    return true;
}
