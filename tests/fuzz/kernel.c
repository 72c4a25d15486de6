/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -kernel: Linux bzImage, multiboot, ELF with a PVH note. A byte for what goes with it, then the
 * file. What is accepted lies in RAM, and what is added to a file's segments overlaps with nothing.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"
#include "hw/i386/boot.h"

/* Segments that overlap are the file's own affair: the later one counts. */
static bool of_the_file(const BootBlob *b)
{
    return strstr(b->what, "segment") != NULL;
}

static void check_image(const BootImage *img, uint64_t ram)
{
    for (guint i = 0; i < img->blobs->len; i++) {
        const BootBlob *a = &g_array_index(img->blobs, BootBlob, i);

        fuzz_check(a->len <= ram && a->addr <= ram - a->len, "%s lies outside of RAM", a->what);
        for (guint j = 0; j < i; j++) {
            const BootBlob *b = &g_array_index(img->blobs, BootBlob, j);

            fuzz_check((of_the_file(a) && of_the_file(b)) || !a->len || !b->len || a->addr + a->len <= b->addr ||
                           b->addr + b->len <= a->addr,
                       "%s and %s overlap", a->what, b->what);
        }
        for (uint64_t n = 0; a->data && n < a->len; n += 512) { /* a sanitizer sees if it is there */
            fuzz_check(*(volatile const uint8_t *)&a->data[n] <= 255, "never");
        }
    }
}

static void kernel_run(const uint8_t *data, size_t size)
{
    static const uint64_t sizes[] = { MiB, 4 * MiB, 64 * MiB, 3072ull * MiB };
    FuzzIn in = { data, size };
    unsigned how = (unsigned)fuzz_take(&in, 1);
    uint64_t ram = sizes[how & 3];
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *modules = g_strdup_printf("%s%s", path, how & 8 ? " argument,/proc/self/exe" : "");
    E820Table e820 = { 0 };
    BootImage img;
    Error *err = NULL;

    e820_build_boot(&e820, ram);
    BootRequest req = {
        .kernel = path, .initrd = how & 4 ? modules : NULL, .append = how & 16 ? "a b=c" : NULL,
        .ram_below_4g = pc_ram_below_4g(ram), .rsdp_addr = how & 32 ? 0xe0000 : 0, .e820 = &e820,
    };
    fuzz_check(write(fd, in.p, in.left) == (ssize_t)in.left, "cannot write a file in memory");
    boot_image_init(&img);
    if (boot_load_kernel(&img, &req, &err)) {
        fuzz_check(!err && img.format, "an error comes with success");
        check_image(&img, req.ram_below_4g);
    } else {
        fuzz_check(err && strncmp(error_get_pretty(err), "-", 1) == 0, "no message, or no option in it");
        error_free(err);
    }
    boot_image_free(&img);
    close(fd);
}

const FuzzTarget fuzz_kernels[] = { { "kernel", NULL, kernel_run }, {} };
