/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multiboot kernels (Multiboot Specification 0.6.96): header in the first 8192 bytes, ELF or the
 * address fields of the header ("a.out kludge"), modules, information structure.
 */
#include <string.h>
#include "hw/i386/boot.h"

#define MB_HEADER_MAGIC  0x1badb002u
#define MB_LOADER_MAGIC  0x2badb002u
#define MB_SEARCH        8192
#define MB_FLAG_KLUDGE   0x00010000u
/* Bits 0-15 must be understood. 0: page-aligned modules, 1: memory information (both always
 * given), 2: video mode: the information structure says that there is none. */
#define MB_FLAGS_UNKNOWN 0x0000fff8u

#define MBI_MEMORY      0x001u
#define MBI_CMDLINE     0x004u
#define MBI_MODULES     0x008u
#define MBI_MMAP        0x040u
#define MBI_LOADER_NAME 0x200u

enum { MBI_FLAGS = 0, MBI_MEM_LOWER = 4, MBI_MEM_UPPER = 8, MBI_CMDLINE_PTR = 16,
       MBI_MODS_COUNT = 20, MBI_MODS_ADDR = 24, MBI_MMAP_LENGTH = 44, MBI_MMAP_ADDR = 48,
       MBI_LOADER_NAME_PTR = 64, MBI_SIZE = 120, MOD_SIZE = 16, MMAP_SIZE = 24 };

static const char loader_name[] = "qemu-rt";

ssize_t boot_find_multiboot(const uint8_t *d, size_t size)
{
    size_t last = MIN(size, (size_t)MB_SEARCH);
    for (size_t o = 0; o + 12 <= last; o += 4) {
        if (boot_ld32(d + o) == MB_HEADER_MAGIC &&
            boot_ld32(d + o) + boot_ld32(d + o + 4) + boot_ld32(d + o + 8) == 0) {
            return (ssize_t)o;
        }
    }
    return -1;
}

/* The address fields: header_addr, load_addr, load_end_addr, bss_end_addr, entry_addr. */
static bool load_by_header(BootImage *img, const BootRequest *req, size_t off, uint64_t *entry,
                           Error **errp)
{
    const uint8_t *h = img->kernel + off;
    if (img->kernel_size - off < 32) {
        error_setg(errp, "-kernel '%s': is truncated in its multiboot header", req->kernel);
        return false;
    }
    uint32_t header = boot_ld32(h + 12), load = boot_ld32(h + 16), load_end = boot_ld32(h + 20);
    uint32_t bss_end = boot_ld32(h + 24);
    *entry = boot_ld32(h + 28);
    if (load > header || header - load > off) {
        error_setg(errp, "-kernel '%s': multiboot header: load address 0x%x does not fit header "
                   "address 0x%x", req->kernel, load, header);
        return false;
    }
    size_t start = off - (header - load);
    uint64_t len = load_end ? (uint64_t)load_end - load : img->kernel_size - start;
    if (load_end && load_end < load) {
        error_setg(errp, "-kernel '%s': multiboot header: load end 0x%x is below load address 0x%x",
                   req->kernel, load_end, load);
        return false;
    }
    if (len > img->kernel_size - start) {
        error_setg(errp, "-kernel '%s': is truncated: the multiboot header wants 0x%llx bytes, the "
                   "file has 0x%zx", req->kernel, (unsigned long long)len,
                   img->kernel_size - start);
        return false;
    }
    if (bss_end && bss_end < load + len) {
        error_setg(errp, "-kernel '%s': multiboot header: bss end 0x%x is below load end 0x%llx",
                   req->kernel, bss_end, (unsigned long long)(load + len));
        return false;
    }
    return boot_add(img, req, "the kernel", load, img->kernel + start, len, errp) &&
           boot_add(img, req, "the kernel's bss", load + len, NULL,
                    bss_end ? bss_end - (load + len) : 0, errp);
}

/* "a.mod args,b.mod": at commas; a doubled comma stands for one. */
static GPtrArray *split_modules(const char *s)
{
    GPtrArray *out = g_ptr_array_new_with_free_func(g_free);
    GString *cur = g_string_new(NULL);
    for (; *s; s++) {
        if (*s == ',' && s[1] == ',') {
            g_string_append_c(cur, ',');
            s++;
        } else if (*s == ',') {
            g_ptr_array_add(out, g_strdup(cur->str));
            g_string_truncate(cur, 0);
        } else {
            g_string_append_c(cur, *s);
        }
    }
    g_ptr_array_add(out, g_strdup(cur->str));
    g_string_free(cur, TRUE);
    return out;
}

/* All strings of the information structure in one piece, so that it can be placed at once. */
typedef struct Mbi {
    GByteArray *buf;
    unsigned nmods;
    size_t mods, mmap, cmdline, loader; /* offsets in buf */
    GArray *mod_strings;                /* of size_t */
} Mbi;

static size_t mbi_string(Mbi *m, const char *s)
{
    size_t at = m->buf->len;
    g_byte_array_append(m->buf, (const guint8 *)s, (guint)strlen(s) + 1);
    return at;
}

static size_t mbi_room(Mbi *m, size_t len)
{
    size_t at = ROUND_UP((size_t)m->buf->len, (size_t)8);
    g_byte_array_set_size(m->buf, (guint)(at + len));
    memset(m->buf->data + at, 0, len);
    return at;
}

static bool load_module(BootImage *img, const BootRequest *req, const char *spec, uint64_t *start,
                        uint64_t *end, Error **errp)
{
    const char *space = strchr(spec, ' ');
    g_autofree char *path = space ? g_strndup(spec, (gsize)(space - spec)) : g_strdup(spec);
    size_t size = 0;
    const uint8_t *d = boot_read_file(img, "-initrd", path, req->ram_below_4g, &size, errp);
    if (!d) {
        return false;
    }
    *start = ROUND_UP(MAX(boot_end(img, UINT64_MAX), BOOT_HOLE_END), 4096ull);
    *end = *start + size;
    if (*end > req->ram_below_4g) {
        error_setg(errp, "-initrd '%s': its %zu bytes do not fit between 0x%llx and the end of "
                   "memory below 4 GiB at 0x%llx; see -m", path, size, (unsigned long long)*start,
                   (unsigned long long)req->ram_below_4g);
        return false;
    }
    if (!img->initrd) {
        img->initrd = d;
        img->initrd_size = size;
    }
    return boot_add(img, req, "a module", *start, d, size, errp);
}

static bool load_modules(Mbi *m, BootImage *img, const BootRequest *req, Error **errp)
{
    if (!req->initrd) {
        return true;
    }
    g_autoptr(GPtrArray) specs = split_modules(req->initrd);
    m->nmods = specs->len;
    m->mods = mbi_room(m, MOD_SIZE * (size_t)specs->len);
    for (guint i = 0; i < specs->len; i++) {
        uint64_t start, end;
        size_t str = mbi_string(m, specs->pdata[i]);
        if (!load_module(img, req, specs->pdata[i], &start, &end, errp)) {
            return false;
        }
        uint8_t *e = m->buf->data + m->mods + MOD_SIZE * (size_t)i;
        boot_st32(e, (uint32_t)start);
        boot_st32(e + 4, (uint32_t)end);
        g_array_append_val(m->mod_strings, str);
    }
    return true;
}

static void add_mmap(Mbi *m, const E820Table *t)
{
    m->mmap = mbi_room(m, MMAP_SIZE * (size_t)t->n);
    for (unsigned i = 0; i < t->n; i++) {
        uint8_t *e = m->buf->data + m->mmap + MMAP_SIZE * (size_t)i;
        boot_st32(e, MMAP_SIZE - 4);
        boot_st64(e + 4, t->e[i].addr);
        boot_st64(e + 12, t->e[i].len);
        boot_st32(e + 20, t->e[i].type);
    }
}

/* Turns offsets into addresses once base is known. d is the final copy. */
static void finish_info(const Mbi *m, const BootRequest *req, uint8_t *d, uint32_t base)
{
    boot_st32(d + MBI_FLAGS, MBI_MEMORY | MBI_CMDLINE | MBI_MMAP | MBI_LOADER_NAME |
                                 (m->nmods ? MBI_MODULES : 0));
    boot_st32(d + MBI_MEM_LOWER, (uint32_t)(MIN(req->ram_below_4g, 0x9fc00ull) / KiB));
    boot_st32(d + MBI_MEM_UPPER, req->ram_below_4g > MiB
                                     ? (uint32_t)((req->ram_below_4g - MiB) / KiB) : 0);
    boot_st32(d + MBI_CMDLINE_PTR, base + (uint32_t)m->cmdline);
    boot_st32(d + MBI_LOADER_NAME_PTR, base + (uint32_t)m->loader);
    boot_st32(d + MBI_MMAP_LENGTH, MMAP_SIZE * req->e820->n);
    boot_st32(d + MBI_MMAP_ADDR, base + (uint32_t)m->mmap);
    if (m->nmods) {
        boot_st32(d + MBI_MODS_COUNT, m->nmods);
        boot_st32(d + MBI_MODS_ADDR, base + (uint32_t)m->mods);
        for (unsigned i = 0; i < m->nmods; i++) {
            boot_st32(d + m->mods + MOD_SIZE * (size_t)i + 8,
                      base + (uint32_t)g_array_index(m->mod_strings, size_t, i));
        }
    }
}

static bool place_info(Mbi *m, BootImage *img, const BootRequest *req, Error **errp)
{
    g_autofree char *cmdline = req->append && *req->append
                                   ? g_strdup_printf("%s %s", req->kernel, req->append)
                                   : g_strdup(req->kernel);
    mbi_room(m, MBI_SIZE);
    if (!load_modules(m, img, req, errp)) {
        return false;
    }
    add_mmap(m, req->e820);
    m->cmdline = mbi_string(m, cmdline);
    m->loader = mbi_string(m, loader_name);
    uint8_t *d = boot_alloc(img, m->buf->len);
    memcpy(d, m->buf->data, m->buf->len);
    if (!boot_place(img, req, "the multiboot information", d, m->buf->len, 16, BOOT_LOW_START,
                    BOOT_LOW_END, &img->regs.rbx, errp)) {
        return false;
    }
    finish_info(m, req, d, (uint32_t)img->regs.rbx);
    return true;
}

bool boot_load_multiboot(BootImage *img, const BootRequest *req, Error **errp)
{
    size_t off = (size_t)boot_find_multiboot(img->kernel, img->kernel_size);
    uint32_t flags = boot_ld32(img->kernel + off + 4);
    uint64_t entry;
    if (flags & MB_FLAGS_UNKNOWN) {
        error_setg(errp, "-kernel '%s': asks for multiboot features 0x%x that are unknown here",
                   req->kernel, flags & MB_FLAGS_UNKNOWN);
        return false;
    }
    if (flags & MB_FLAG_KLUDGE ? !load_by_header(img, req, off, &entry, errp)
                               : !boot_load_elf(img, req, &entry, errp)) {
        return false;
    }
    if (entry >= req->ram_below_4g) {
        error_setg(errp, "-kernel '%s': its entry 0x%llx lies outside the guest's memory",
                   req->kernel, (unsigned long long)entry);
        return false;
    }
    Mbi m = { .buf = g_byte_array_new(), .mod_strings = g_array_new(FALSE, FALSE, sizeof(size_t)) };
    bool ok = place_info(&m, img, req, errp) && boot_place_gdt(img, req, false, errp);
    g_byte_array_free(m.buf, TRUE);
    g_array_free(m.mod_strings, TRUE);
    img->format = "multiboot";
    img->regs.mode = BOOT_MODE_PROT32;
    img->regs.rip = entry;
    img->regs.rax = MB_LOADER_MAGIC;
    return ok;
}
