/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Direct kernel boot: files, pieces of memory, and which loader a file is for. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hw/i386/boot.h"

void boot_image_init(BootImage *img)
{
    memset(img, 0, sizeof(*img));
    img->blobs = g_array_new(FALSE, FALSE, sizeof(BootBlob));
    img->owned = g_ptr_array_new_with_free_func(g_free);
}

void boot_image_free(BootImage *img)
{
    g_array_free(img->blobs, TRUE);
    g_ptr_array_free(img->owned, TRUE);
    memset(img, 0, sizeof(*img));
}

void *boot_alloc(BootImage *img, size_t len)
{
    void *p = g_malloc0(MAX(len, (size_t)1));
    g_ptr_array_add(img->owned, p);
    return p;
}

/* As boot_alloc(), for sizes that a file has: NULL if the host has not as much. */
static void *boot_try_alloc(BootImage *img, size_t len)
{
    void *p = g_try_malloc(MAX(len, (size_t)1));
    if (p) {
        g_ptr_array_add(img->owned, p);
    }
    return p;
}

static bool read_all(int fd, uint8_t *buf, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, buf + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? EIO : errno; /* it shrank meanwhile */
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static const uint8_t *read_fd(BootImage *img, int fd, const char *opt, const char *path,
                              uint64_t limit, size_t *size, Error **errp)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        error_setg_errno(errp, errno, "%s '%s': cannot be read", opt, path);
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        error_setg(errp, "%s '%s': is not a regular file", opt, path);
        return NULL;
    }
    if ((uint64_t)st.st_size > limit) {
        error_setg(errp, "%s '%s': its %lld bytes do not fit into the guest's memory below 4 GiB "
                   "(%llu bytes); see -m", opt, path, (long long)st.st_size,
                   (unsigned long long)limit);
        return NULL;
    }
    uint8_t *buf = boot_try_alloc(img, (size_t)st.st_size);
    if (!buf) {
        error_setg(errp, "%s '%s': the host has no memory for its %lld bytes (free some, or raise its "
                   "limit, 'ulimit -v')", opt, path, (long long)st.st_size);
        return NULL;
    }
    if (!read_all(fd, buf, (size_t)st.st_size)) {
        error_setg_errno(errp, errno, "%s '%s': cannot be read", opt, path);
        return NULL;
    }
    *size = (size_t)st.st_size;
    return buf;
}

const uint8_t *boot_read_file(BootImage *img, const char *opt, const char *path, uint64_t limit,
                              size_t *size, Error **errp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        error_setg_errno(errp, errno, "%s '%s': cannot be opened", opt, path);
        return NULL;
    }
    const uint8_t *d = read_fd(img, fd, opt, path, limit, size, errp);
    close(fd);
    return d;
}

bool boot_add(BootImage *img, const BootRequest *req, const char *what, uint64_t addr,
              const void *data, uint64_t len, Error **errp)
{
    if (len == 0) {
        return true;
    }
    if (len > req->ram_below_4g || addr > req->ram_below_4g - len) {
        error_setg(errp, "-kernel '%s': %s at 0x%llx of 0x%llx bytes does not fit into the guest's "
                   "memory below 4 GiB (0x%llx bytes); see -m", req->kernel, what,
                   (unsigned long long)addr, (unsigned long long)len,
                   (unsigned long long)req->ram_below_4g);
        return false;
    }
    if (addr < BOOT_HOLE_END && addr + len > BOOT_HOLE_START) {
        error_setg(errp, "-kernel '%s': %s at 0x%llx of 0x%llx bytes overlaps the area of video "
                   "memory and ROMs, 0xa0000-0xfffff", req->kernel, what, (unsigned long long)addr,
                   (unsigned long long)len);
        return false;
    }
    BootBlob b = { .addr = addr, .len = len, .data = data, .what = what };
    g_array_append_val(img->blobs, b);
    return true;
}

/* The lowest start of a piece that overlaps [addr, addr + len); UINT64_MAX: none does. */
static uint64_t lowest_overlap(const BootImage *img, uint64_t addr, uint64_t len)
{
    uint64_t low = UINT64_MAX;
    for (guint i = 0; i < img->blobs->len; i++) {
        const BootBlob *b = &g_array_index(img->blobs, BootBlob, i);
        if (b->addr < addr + len && addr < b->addr + b->len) {
            low = MIN(low, b->addr);
        }
    }
    return low;
}

bool boot_place(BootImage *img, const BootRequest *req, const char *what, const void *data,
                uint64_t len, uint64_t align, uint64_t lo, uint64_t hi, uint64_t *addr,
                Error **errp)
{
    uint64_t end = MIN(hi, req->ram_below_4g);
    while (end >= len && end - len >= lo) {
        uint64_t a = ROUND_DOWN(end - len, align);
        if (a < lo) {
            break;
        }
        uint64_t hit = lowest_overlap(img, a, MAX(len, 1ull));
        if (hit == UINT64_MAX) {
            *addr = a;
            return boot_add(img, req, what, a, data, len, errp);
        }
        end = hit;
    }
    error_setg(errp, "-kernel '%s': no room for %s (0x%llx bytes between 0x%llx and 0x%llx)",
               req->kernel, what, (unsigned long long)len, (unsigned long long)lo,
               (unsigned long long)MIN(hi, req->ram_below_4g));
    return false;
}

uint64_t boot_end(const BootImage *img, uint64_t limit)
{
    uint64_t end = 0;
    for (guint i = 0; i < img->blobs->len; i++) {
        const BootBlob *b = &g_array_index(img->blobs, BootBlob, i);
        if (b->addr < limit) {
            end = MAX(end, b->addr + b->len);
        }
    }
    return end;
}

bool boot_place_gdt(BootImage *img, const BootRequest *req, bool long_mode, Error **errp)
{
    uint8_t *gdt = boot_alloc(img, 32);
    boot_st64(gdt + 0x10, long_mode ? 0x00af9b000000ffffull : 0x00cf9b000000ffffull);
    boot_st64(gdt + 0x18, 0x00cf93000000ffffull);
    return boot_place(img, req, "the descriptor table", gdt, 32, 16, BOOT_LOW_START, BOOT_LOW_END,
                      &img->regs.gdt_base, errp);
}

bool boot_load_kernel(BootImage *img, const BootRequest *req, Error **errp)
{
    img->kernel = boot_read_file(img, "-kernel", req->kernel, req->ram_below_4g, &img->kernel_size,
                                 errp);
    if (!img->kernel) {
        return false;
    }
    if (boot_is_linux(img->kernel, img->kernel_size)) {
        return boot_load_linux(img, req, errp);
    }
    if (boot_find_multiboot(img->kernel, img->kernel_size) >= 0) {
        return boot_load_multiboot(img, req, errp);
    }
    if (boot_is_elf(img->kernel, img->kernel_size)) {
        return boot_load_pvh(img, req, errp);
    }
    error_setg(errp, "-kernel '%s': is not a kernel this machine can boot (Linux bzImage, multiboot "
               "or ELF with a PVH note)%s", req->kernel,
               img->kernel_size == 0 ? ": the file is empty" : "");
    return false;
}
