/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF segments by physical address, and the PVH boot ABI (Xen docs: misc/pvh.pandoc). */
#include <elf.h>
#include <string.h>
#include "hw/i386/boot.h"

#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define HVM_START_MAGIC          0x336ec578u

typedef struct Phdr {
    uint32_t type;
    uint64_t offset, paddr, filesz, memsz, align;
} Phdr;

bool boot_is_elf(const uint8_t *d, size_t size)
{
    return size >= EI_NIDENT && memcmp(d, ELFMAG, SELFMAG) == 0;
}

/* Little-endian x86 ELF with its program headers inside the file? */
static bool elf_check(const uint8_t *d, size_t size, bool *is64, unsigned *phnum,
                      const uint8_t **ph, size_t *phsize, uint64_t *entry)
{
    if (!boot_is_elf(d, size) || d[EI_DATA] != ELFDATA2LSB ||
        (d[EI_CLASS] != ELFCLASS32 && d[EI_CLASS] != ELFCLASS64)) {
        return false;
    }
    *is64 = d[EI_CLASS] == ELFCLASS64;
    if (size < (*is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr))) {
        return false;
    }
    uint16_t machine = boot_ld16(d + 18);
    uint64_t phoff = *is64 ? boot_ld64(d + 32) : boot_ld32(d + 28);
    *entry = *is64 ? boot_ld64(d + 24) : boot_ld32(d + 24);
    *phsize = boot_ld16(d + (*is64 ? 54 : 42));
    *phnum = boot_ld16(d + (*is64 ? 56 : 44));
    if (phoff > size) {
        return false;
    }
    *ph = d + phoff;
    return (machine == EM_386 || machine == EM_X86_64) &&
           *phsize >= (*is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) &&
           *phnum <= (size - phoff) / *phsize;
}

static Phdr phdr_get(const uint8_t *p, bool is64)
{
    if (is64) {
        return (Phdr){ boot_ld32(p), boot_ld64(p + 8), boot_ld64(p + 24), boot_ld64(p + 32),
                       boot_ld64(p + 40), boot_ld64(p + 48) };
    }
    return (Phdr){ boot_ld32(p), boot_ld32(p + 4), boot_ld32(p + 12), boot_ld32(p + 16),
                   boot_ld32(p + 20), boot_ld32(p + 28) };
}

static bool load_segment(BootImage *img, const BootRequest *req, const Phdr *p, Error **errp)
{
    if (p->filesz > p->memsz || p->offset > img->kernel_size ||
        p->filesz > img->kernel_size - p->offset) {
        error_setg(errp, "-kernel '%s': is truncated or damaged: a segment of 0x%llx bytes at file "
                   "offset 0x%llx, the file has 0x%zx", req->kernel,
                   (unsigned long long)p->filesz, (unsigned long long)p->offset,
                   img->kernel_size);
        return false;
    }
    if (p->paddr + p->memsz < p->paddr) {
        error_setg(errp, "-kernel '%s': a segment wraps around the address space", req->kernel);
        return false;
    }
    return boot_add(img, req, "a segment", p->paddr, img->kernel + p->offset, p->filesz, errp) &&
           boot_add(img, req, "a segment", p->paddr + p->filesz, NULL, p->memsz - p->filesz, errp);
}

bool boot_load_elf(BootImage *img, const BootRequest *req, uint64_t *entry, Error **errp)
{
    bool is64, any = false;
    unsigned phnum;
    const uint8_t *ph;
    size_t phsize;
    if (!elf_check(img->kernel, img->kernel_size, &is64, &phnum, &ph, &phsize, entry)) {
        error_setg(errp, "-kernel '%s': is not a complete ELF file for x86", req->kernel);
        return false;
    }
    for (unsigned i = 0; i < phnum; i++) {
        Phdr p = phdr_get(ph + i * phsize, is64);
        if (p.type != PT_LOAD || p.memsz == 0) {
            continue;
        }
        if (!load_segment(img, req, &p, errp)) {
            return false;
        }
        any = true;
    }
    if (!any) {
        error_setg(errp, "-kernel '%s': has no segment to load", req->kernel);
    }
    return any;
}

/* Notes: namesz, descsz, type, then name and desc, each padded to 4 (8 in some 64-bit files). */
static bool note_scan(const uint8_t *p, uint64_t len, uint64_t align, uint64_t *entry)
{
    while (len >= 12) {
        uint32_t namesz = boot_ld32(p), descsz = boot_ld32(p + 4), type = boot_ld32(p + 8);
        uint64_t name_len = ROUND_UP((uint64_t)namesz, align);
        uint64_t desc_len = ROUND_UP((uint64_t)descsz, align);
        if (name_len + descsz > len - 12) {
            return false;
        }
        const uint8_t *desc = p + 12 + name_len;
        if (type == XEN_ELFNOTE_PHYS32_ENTRY && namesz == 4 && memcmp(p + 12, "Xen", 4) == 0 &&
            (descsz == 4 || descsz == 8)) {
            *entry = descsz == 8 ? boot_ld64(desc) : boot_ld32(desc);
            return true;
        }
        if (name_len + desc_len > len - 12) {
            return false;
        }
        p += 12 + name_len + desc_len;
        len -= 12 + name_len + desc_len;
    }
    return false;
}

bool boot_elf_pvh_entry(const uint8_t *d, size_t size, uint64_t *entry)
{
    bool is64;
    unsigned phnum;
    const uint8_t *ph;
    size_t phsize;
    uint64_t e_entry;
    if (!elf_check(d, size, &is64, &phnum, &ph, &phsize, &e_entry)) {
        return false;
    }
    for (unsigned i = 0; i < phnum; i++) {
        Phdr p = phdr_get(ph + i * phsize, is64);
        if (p.type == PT_NOTE && p.offset <= size && p.filesz <= size - p.offset &&
            note_scan(d + p.offset, p.filesz, p.align == 8 ? 8 : 4, entry)) {
            return true;
        }
    }
    return false;
}

/* struct hvm_start_info, version 1, with its module list and memory map behind it. */
static bool place_start_info(BootImage *img, const BootRequest *req, uint64_t initrd,
                             uint64_t cmdline, Error **errp)
{
    size_t len = 56 + 32 + 24 * (size_t)req->e820->n;
    uint8_t *si = boot_alloc(img, len);
    if (!boot_place(img, req, "the start info", si, len, 16, BOOT_LOW_START, BOOT_LOW_END,
                    &img->regs.rbx, errp)) {
        return false;
    }
    boot_st32(si, HVM_START_MAGIC);
    boot_st32(si + 4, 1);
    if (req->initrd) {
        boot_st32(si + 12, 1);
        boot_st64(si + 16, img->regs.rbx + 56);
        boot_st64(si + 56, initrd);
        boot_st64(si + 64, img->initrd_size);
    }
    boot_st64(si + 24, cmdline);
    boot_st64(si + 32, req->rsdp_addr);
    boot_st64(si + 40, img->regs.rbx + 88);
    boot_st32(si + 48, req->e820->n);
    for (unsigned i = 0; i < req->e820->n; i++) {
        uint8_t *m = si + 88 + 24 * i;
        boot_st64(m, req->e820->e[i].addr);
        boot_st64(m + 8, req->e820->e[i].len);
        boot_st32(m + 16, req->e820->e[i].type);
    }
    return true;
}

bool boot_load_pvh(BootImage *img, const BootRequest *req, Error **errp)
{
    uint64_t e_entry, entry, cmdline, initrd = 0;
    const char *text = req->append ? req->append : "";
    if (!boot_elf_pvh_entry(img->kernel, img->kernel_size, &entry)) {
        error_setg(errp, "-kernel '%s': is an ELF file without multiboot header or PVH note "
                   "(XEN_ELFNOTE_PHYS32_ENTRY), or is truncated", req->kernel);
        return false;
    }
    if (!boot_load_elf(img, req, &e_entry, errp)) {
        return false;
    }
    if (entry >= req->ram_below_4g) {
        error_setg(errp, "-kernel '%s': its PVH entry 0x%llx lies outside the guest's memory",
                   req->kernel, (unsigned long long)entry);
        return false;
    }
    if (req->initrd) {
        img->initrd = boot_read_file(img, "-initrd", req->initrd, req->ram_below_4g,
                                     &img->initrd_size, errp);
        if (!img->initrd) {
            return false;
        }
        uint64_t lo = ROUND_UP(MAX(boot_end(img, UINT64_MAX), BOOT_HOLE_END), 4096ull);
        Error *err = NULL;
        if (!boot_place(img, req, "the initrd", img->initrd, img->initrd_size, 4096, lo,
                        req->ram_below_4g, &initrd, &err)) {
            error_free(err);
            error_setg(errp, "-initrd '%s': its %zu bytes do not fit between the kernel (which "
                       "ends at 0x%llx) and 0x%llx; see -m", req->initrd, img->initrd_size,
                       (unsigned long long)lo, (unsigned long long)req->ram_below_4g);
            return false;
        }
    }
    size_t len = strlen(text) + 1;
    char *copy = boot_alloc(img, len);
    memcpy(copy, text, len);
    if (!boot_place(img, req, "the command line", copy, len, 16, BOOT_LOW_START, BOOT_LOW_END,
                    &cmdline, errp) ||
        !place_start_info(img, req, initrd, cmdline, errp) ||
        !boot_place_gdt(img, req, false, errp)) {
        return false;
    }
    img->format = "PVH";
    img->regs.mode = BOOT_MODE_PROT32;
    img->regs.rip = entry;
    img->regs.tss = true;
    return true;
}
