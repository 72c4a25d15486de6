/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel loaders, on files made here: what is right is placed where the protocols say, what is cut
 * short or damaged is refused with a message that names file and reason, and never read past.
 */
#include <elf.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include "hw/i386/boot.h"

#define RAM_SIZE (256 * MiB)

static char *dir;

typedef struct Fix {
    BootImage img;
    BootRequest req;
    E820Table e820;
    Error *err;
    bool ok;
} Fix;

static char *write_file(const char *name, const void *data, size_t len)
{
    char *path = g_build_filename(dir, name, NULL);
    g_unlink(path);
    g_assert_true(g_file_set_contents_full(path, data, (gssize)len, G_FILE_SET_CONTENTS_NONE, 0600,
                                           NULL));
    return path;
}

/* The loader reads into an allocation of the exact size, so that sanitizers see overreads. */
static void load(Fix *f, const void *data, size_t len, const char *initrd, const char *append,
                 uint64_t ram)
{
    g_autofree char *path = write_file("kernel", data, len);
    memset(f, 0, sizeof(*f));
    e820_build_boot(&f->e820, ram);
    f->req = (BootRequest){ .kernel = path, .initrd = initrd, .append = append,
                            .ram_below_4g = pc_ram_below_4g(ram), .rsdp_addr = 0xe0000,
                            .e820 = &f->e820 };
    boot_image_init(&f->img);
    f->ok = boot_load_kernel(&f->img, &f->req, &f->err);
    g_assert_cmpint(f->ok, ==, f->err == NULL);
    f->req.kernel = NULL;
}

static void done(Fix *f)
{
    if (f->err) {
        error_free(f->err);
    }
    boot_image_free(&f->img);
}

static void expect_error(Fix *f, const char *part)
{
    g_assert_false(f->ok);
    const char *msg = error_get_pretty(f->err);
    if (!strstr(msg, part) || strchr(msg, '\n')) {
        g_error("message \"%s\" lacks \"%s\"", msg, part);
    }
    done(f);
}

/* What the image puts at addr: a pointer to at least len bytes; NULL if nothing does. */
static const uint8_t *at(const Fix *f, uint64_t addr, uint64_t len)
{
    for (guint i = 0; i < f->img.blobs->len; i++) {
        const BootBlob *b = &g_array_index(f->img.blobs, BootBlob, i);
        if (b->data && addr >= b->addr && addr + len <= b->addr + b->len) {
            return b->data + (addr - b->addr);
        }
    }
    return NULL;
}

static void expect_no_overlap(const Fix *f)
{
    for (guint i = 0; i < f->img.blobs->len; i++) {
        const BootBlob *a = &g_array_index(f->img.blobs, BootBlob, i);
        g_assert_cmpuint(a->addr + a->len, <=, f->req.ram_below_4g);
        for (guint j = i + 1; j < f->img.blobs->len; j++) {
            const BootBlob *b = &g_array_index(f->img.blobs, BootBlob, j);
            g_assert_true(a->addr + a->len <= b->addr || b->addr + b->len <= a->addr);
        }
    }
}

/* ---- bzImage ---- */

#define SETUP_SECTS 3
#define SETUP_SIZE  ((SETUP_SECTS + 1) * 512)
#define CODE_SIZE   8192

static uint8_t *make_bzimage(uint16_t version, bool kernel64, size_t *len)
{
    uint8_t *d = g_malloc0(SETUP_SIZE + CODE_SIZE);
    d[0x1f1] = SETUP_SECTS;
    boot_st32(d + 0x1f4, CODE_SIZE / 16);
    boot_st16(d + 0x1fe, 0xaa55);
    d[0x200] = 0xeb;
    d[0x201] = 0x66;
    memcpy(d + 0x202, "HdrS", 4);
    boot_st16(d + 0x206, version);
    d[0x211] = 1;
    boot_st32(d + 0x22c, 0x7fffffff);
    boot_st32(d + 0x230, 0x200000);
    d[0x234] = 1;
    boot_st16(d + 0x236, kernel64 ? 1 : 0);
    boot_st32(d + 0x238, 2047);
    boot_st64(d + 0x258, 0x1000000);
    boot_st32(d + 0x260, 4 * MiB);
    for (size_t i = 0; i < CODE_SIZE; i++) {
        d[SETUP_SIZE + i] = (uint8_t)(i * 7);
    }
    *len = SETUP_SIZE + CODE_SIZE;
    return d;
}

static void test_linux64(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_bzimage(0x20f, true, &len);
    uint8_t initrd[5000];
    memset(initrd, 0x5a, sizeof(initrd));
    g_autofree char *ipath = write_file("initrd", initrd, sizeof(initrd));
    load(&f, d, len, ipath, "console=ttyS0", RAM_SIZE);
    g_assert_true(f.ok);
    expect_no_overlap(&f);
    const BootRegs *r = &f.img.regs;
    g_assert_cmpint(r->mode, ==, BOOT_MODE_LONG64);
    g_assert_cmphex(r->rip, ==, 0x1000200);
    g_assert_cmpmem(at(&f, 0x1000000, CODE_SIZE), CODE_SIZE, d + SETUP_SIZE, CODE_SIZE);
    const uint8_t *zp = at(&f, r->rsi, 4096);
    g_assert_nonnull(zp);
    g_assert_cmphex(boot_ld64(zp + 0x70), ==, 0xe0000);
    g_assert_cmpmem(zp + 0x202, 4, "HdrS", 4);
    g_assert_cmpuint(zp[0x210], !=, 0);
    g_assert_cmpstr((const char *)at(&f, boot_ld32(zp + 0x228), 14), ==, "console=ttyS0");
    uint32_t iaddr = boot_ld32(zp + 0x218);
    g_assert_cmpuint(iaddr % 4096, ==, 0);
    g_assert_cmpuint(iaddr, >=, 0x1400000);
    g_assert_cmpuint(boot_ld32(zp + 0x21c), ==, sizeof(initrd));
    g_assert_cmpmem(at(&f, iaddr, sizeof(initrd)), sizeof(initrd), initrd, sizeof(initrd));
    g_assert_cmpuint(zp[0x1e8], ==, f.e820.n);
    g_assert_cmphex(boot_ld64(zp + 0x2d0 + 8), ==, 0x9fc00);
    /* Page tables: 4 GiB identity-mapped. */
    for (uint64_t a = 0; a < 4 * GiB; a += 0x12345678) {
        uint64_t e = boot_ld64(at(&f, r->cr3, 8));
        e = boot_ld64(at(&f, (e & ~0xfffull) + 8 * (a >> 30), 8));
        e = boot_ld64(at(&f, (e & ~0xfffull) + 8 * (a >> 21 & 511), 8));
        g_assert_cmphex(e, ==, (a & ~0x1fffffull) | 0x83);
    }
    g_assert_cmphex(boot_ld64(at(&f, r->gdt_base + 0x10, 8)), ==, 0x00af9b000000ffff);
    done(&f);
}

static void test_linux32(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_bzimage(0x205, false, &len);
    load(&f, d, len, NULL, NULL, 32 * MiB);
    g_assert_true(f.ok);
    g_assert_cmpint(f.img.regs.mode, ==, BOOT_MODE_PROT32);
    g_assert_cmphex(f.img.regs.rip, ==, 0x100000);
    done(&f);
}

static void test_linux_bad(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_bzimage(0x20f, true, &len);
    load(&f, d, len, NULL, NULL, 17 * MiB);
    expect_error(&f, "see -m");
    load(&f, d, len - 16, NULL, NULL, RAM_SIZE);
    expect_error(&f, "truncated");
    load(&f, d, SETUP_SIZE, NULL, NULL, RAM_SIZE);
    expect_error(&f, "truncated");
    g_autofree char *big = g_strnfill(2048, 'x');
    load(&f, d, len, NULL, big, RAM_SIZE);
    expect_error(&f, "at most 2047");
    load(&f, d, len, "/nonexistent/initrd", NULL, RAM_SIZE);
    expect_error(&f, "-initrd '/nonexistent/initrd': cannot be opened: No such file");
    /* 20 MiB between the end of the kernel and that of RAM, one byte more of initrd. */
    size_t isize = 20 * MiB + 1;
    g_autofree uint8_t *initrd = g_malloc0(isize);
    g_autofree char *ipath = write_file("initrd", initrd, isize);
    load(&f, d, len, ipath, NULL, 40 * MiB);
    expect_error(&f, "do not fit between the kernel");
    g_autofree char *fits = write_file("initrd", initrd, isize - 1);
    load(&f, d, len, fits, NULL, 40 * MiB);
    g_assert_true(f.ok);
    done(&f);
    d[0x211] = 0;
    load(&f, d, len, NULL, NULL, RAM_SIZE);
    expect_error(&f, "zImage");
}

/* ---- Multiboot ---- */

static void st_header(uint8_t *p, uint32_t flags)
{
    boot_st32(p, 0x1badb002);
    boot_st32(p + 4, flags);
    boot_st32(p + 8, -(0x1badb002u + flags));
}

/* ELF32 with one segment of text at paddr and bss behind it; multiboot header at 0x80. */
static uint8_t *make_elf32(uint32_t paddr, uint32_t filesz, uint32_t memsz, size_t *len)
{
    *len = 0x100 + filesz;
    uint8_t *d = g_malloc0(*len);
    memcpy(d, ELFMAG, 4);
    d[4] = ELFCLASS32;
    d[5] = ELFDATA2LSB;
    boot_st16(d + 16, ET_EXEC);
    boot_st16(d + 18, EM_386);
    boot_st32(d + 24, paddr + 4);
    boot_st32(d + 28, 52);
    boot_st16(d + 42, 32);
    boot_st16(d + 44, 1);
    boot_st32(d + 52, PT_LOAD);
    boot_st32(d + 56, 0x100);
    boot_st32(d + 60, 0xc0000000);
    boot_st32(d + 64, paddr);
    boot_st32(d + 68, filesz);
    boot_st32(d + 72, memsz);
    memset(d + 0x100, 0xa5, filesz);
    st_header(d + 0x80, 3);
    return d;
}

static void test_multiboot_elf(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_elf32(0x400000, 0x1000, 0x3000, &len);
    g_autofree char *m1 = write_file("a.mod", "first", 5);
    g_autofree char *m2 = write_file("b.mod", "second one", 10);
    g_autofree char *mods = g_strdup_printf("%s arg=1,,2,%s", m1, m2);
    load(&f, d, len, mods, "x y", RAM_SIZE);
    if (!f.ok) {
        g_error("%s", error_get_pretty(f.err));
    }
    expect_no_overlap(&f);
    g_assert_cmpint(f.img.regs.mode, ==, BOOT_MODE_PROT32);
    g_assert_cmphex(f.img.regs.rax, ==, 0x2badb002);
    g_assert_cmphex(f.img.regs.rip, ==, 0x400004);
    const uint8_t *mbi = at(&f, f.img.regs.rbx, 120);
    g_assert_nonnull(mbi);
    uint32_t flags = boot_ld32(mbi);
    g_assert_cmphex(flags & 0x24d, ==, 0x24d);
    g_assert_cmpuint(boot_ld32(mbi + 4), ==, 639);
    g_assert_cmpuint(boot_ld32(mbi + 8), ==, 255 * 1024);
    const char *cmd = (const char *)at(&f, boot_ld32(mbi + 16), 1);
    g_assert_true(g_str_has_suffix(cmd, "/kernel x y"));
    g_assert_cmpuint(boot_ld32(mbi + 20), ==, 2);
    const uint8_t *mod = at(&f, boot_ld32(mbi + 24), 32);
    uint32_t s1 = boot_ld32(mod), s2 = boot_ld32(mod + 16);
    g_assert_cmpuint(s1 % 4096 + s2 % 4096, ==, 0);
    g_assert_cmpuint(s1, >=, 0x403000);
    g_assert_cmpmem(at(&f, s1, 5), 5, "first", 5);
    g_assert_cmpuint(boot_ld32(mod + 20) - s2, ==, 10);
    g_assert_true(g_str_has_suffix((const char *)at(&f, boot_ld32(mod + 8), 1), "a.mod arg=1,2"));
    g_assert_cmpuint(boot_ld32(mbi + 44), ==, 24 * f.e820.n);
    const uint8_t *mm = at(&f, boot_ld32(mbi + 48), 24);
    g_assert_cmpuint(boot_ld32(mm), ==, 20);
    g_assert_cmphex(boot_ld64(mm + 12), ==, 0x9fc00);
    done(&f);
}

/* A kernel that fills low memory: the information goes elsewhere. */
static void test_multiboot_low(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_elf32(0x4000, 0x9a000, 0x9a000, &len);
    load(&f, d, len, NULL, NULL, RAM_SIZE);
    g_assert_true(f.ok);
    expect_no_overlap(&f);
    g_assert_cmphex(f.img.regs.rbx, <, 0x9f000);
    done(&f);
}

static void test_multiboot_kludge(void)
{
    Fix f;
    uint8_t d[0x800];
    memset(d, 0x90, sizeof(d));
    st_header(d + 0x40, 0x10000);
    boot_st32(d + 0x40 + 12, 0x200040); /* header */
    boot_st32(d + 0x40 + 16, 0x200010); /* load: from file offset 0x10 */
    boot_st32(d + 0x40 + 20, 0x200410); /* load end */
    boot_st32(d + 0x40 + 24, 0x201000); /* bss end */
    boot_st32(d + 0x40 + 28, 0x200020); /* entry */
    load(&f, d, sizeof(d), NULL, NULL, RAM_SIZE);
    g_assert_true(f.ok);
    g_assert_cmpmem(at(&f, 0x200010, 0x400), 0x400, d + 0x10, 0x400);
    g_assert_null(at(&f, 0x200410, 1));
    g_assert_cmphex(boot_end(&f.img, UINT64_MAX), ==, 0x201000);
    g_assert_cmphex(f.img.regs.rip, ==, 0x200020);
    done(&f);
    boot_st32(d + 0x40 + 20, 0x201000);
    load(&f, d, sizeof(d), NULL, NULL, RAM_SIZE);
    expect_error(&f, "truncated");
    boot_st32(d + 0x40 + 16, 0x1fff00);
    load(&f, d, sizeof(d), NULL, NULL, RAM_SIZE);
    expect_error(&f, "load address");
}

static void test_multiboot_bad(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_elf32(0x400000, 0x1000, 0x3000, &len);
    load(&f, d, len - 1, NULL, NULL, RAM_SIZE);
    expect_error(&f, "truncated");
    load(&f, d, len, NULL, NULL, 4 * MiB);
    expect_error(&f, "does not fit into the guest's memory");
    load(&f, d, len, "/nonexistent/m", NULL, RAM_SIZE);
    expect_error(&f, "-initrd '/nonexistent/m'");
    st_header(d + 0x80, 0x8);
    load(&f, d, len, NULL, NULL, RAM_SIZE);
    expect_error(&f, "features 0x8");
    g_autofree uint8_t *hole = make_elf32(0x9f000, 0x2000, 0x2000, &len);
    load(&f, hole, len, NULL, NULL, RAM_SIZE);
    expect_error(&f, "overlaps");
}

/* ---- PVH ---- */

static uint8_t *make_pvh(size_t *len)
{
    *len = 0x1200;
    uint8_t *d = g_malloc0(*len);
    memcpy(d, ELFMAG, 4);
    d[4] = ELFCLASS64;
    d[5] = ELFDATA2LSB;
    boot_st16(d + 18, EM_X86_64);
    boot_st64(d + 24, 0xffffffff81000000ull);
    boot_st64(d + 32, 64);
    boot_st16(d + 54, 56);
    boot_st16(d + 56, 2);
    uint8_t *p = d + 64;
    boot_st32(p, PT_LOAD);
    boot_st64(p + 8, 0x200);
    boot_st64(p + 24, 0x1000000);
    boot_st64(p + 32, 0x1000);
    boot_st64(p + 40, 0x2000);
    p += 56;
    boot_st32(p, PT_NOTE);
    boot_st64(p + 8, 0x180);
    boot_st64(p + 32, 20 + 20);
    boot_st64(p + 48, 4);
    /* Another note first, then the entry. */
    uint8_t *n = d + 0x180;
    boot_st32(n, 4);
    boot_st32(n + 4, 4);
    boot_st32(n + 8, 6);
    memcpy(n + 12, "Xen", 4);
    n += 20;
    boot_st32(n, 4);
    boot_st32(n + 4, 4);
    boot_st32(n + 8, 18);
    memcpy(n + 12, "Xen", 4);
    boot_st32(n + 16, 0x1000010);
    return d;
}

static void test_pvh(void)
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make_pvh(&len);
    g_autofree char *ipath = write_file("initrd", "ramdisk", 7);
    load(&f, d, len, ipath, "quiet", RAM_SIZE);
    if (!f.ok) {
        g_error("%s", error_get_pretty(f.err));
    }
    expect_no_overlap(&f);
    g_assert_cmphex(f.img.regs.rip, ==, 0x1000010);
    g_assert_true(f.img.regs.tss);
    const uint8_t *si = at(&f, f.img.regs.rbx, 56);
    g_assert_cmphex(boot_ld32(si), ==, 0x336ec578);
    g_assert_cmpuint(boot_ld32(si + 4), ==, 1);
    g_assert_cmpstr((const char *)at(&f, boot_ld64(si + 24), 6), ==, "quiet");
    g_assert_cmphex(boot_ld64(si + 32), ==, 0xe0000);
    const uint8_t *mod = at(&f, boot_ld64(si + 16), 32);
    g_assert_cmpmem(at(&f, boot_ld64(mod), 7), 7, "ramdisk", 7);
    g_assert_cmpuint(boot_ld64(mod + 8), ==, 7);
    g_assert_cmpuint(boot_ld32(si + 48), ==, f.e820.n);
    const uint8_t *mm = at(&f, boot_ld64(si + 40), 24);
    g_assert_cmphex(boot_ld64(mm + 8), ==, 0x9fc00);
    done(&f);
    boot_st32(d + 0x180 + 28, 17);
    load(&f, d, len, NULL, NULL, RAM_SIZE);
    expect_error(&f, "PVH note");
}

/* ---- Files ---- */

static void test_files(void)
{
    Fix f;
    load(&f, "", 0, NULL, NULL, RAM_SIZE);
    expect_error(&f, "the file is empty");
    load(&f, "#!/bin/sh\n", 10, NULL, NULL, RAM_SIZE);
    expect_error(&f, "is not a kernel");
    size_t len = 2 * MiB + 1;
    g_autofree uint8_t *zeros = g_malloc0(len);
    load(&f, zeros, len, NULL, NULL, 2 * MiB);
    expect_error(&f, "do not fit");
    memset(&f, 0, sizeof(f));
    boot_image_init(&f.img);
    f.req = (BootRequest){ .kernel = dir, .ram_below_4g = RAM_SIZE, .e820 = &f.e820 };
    f.ok = boot_load_kernel(&f.img, &f.req, &f.err);
    expect_error(&f, "is not a regular file");
    memset(&f, 0, sizeof(f));
    boot_image_init(&f.img);
    f.req = (BootRequest){ .kernel = "/nonexistent", .ram_below_4g = RAM_SIZE, .e820 = &f.e820 };
    f.ok = boot_load_kernel(&f.img, &f.req, &f.err);
    expect_error(&f, "-kernel '/nonexistent': cannot be opened: No such file or directory");
}

/*
 * Every prefix, and files with random bytes changed: a loader answers, with success or a message,
 * and what it places lies in memory. (Under ASan this also finds reads past the end.)
 */
static void mangle(uint8_t *(*make)(size_t *len))
{
    Fix f;
    size_t len;
    g_autofree uint8_t *d = make(&len);
    for (size_t n = 0; n < len; n += n < 0x300 ? 7 : 509) {
        load(&f, d, n, NULL, "a", RAM_SIZE);
        done(&f);
    }
    for (unsigned i = 0; i < 600; i++) {
        g_autofree uint8_t *e = g_memdup2(d, len);
        for (int k = g_test_rand_int_range(1, 6); k > 0; k--) {
            size_t pos = (size_t)g_test_rand_int_range(0, 0x300);
            e[pos] = (uint8_t)g_test_rand_int_range(0, 256);
        }
        load(&f, e, len, NULL, "a", RAM_SIZE);
        for (guint b = 0; b < f.img.blobs->len; b++) {
            const BootBlob *blob = &g_array_index(f.img.blobs, BootBlob, b);
            g_assert_cmpuint(blob->len, <=, RAM_SIZE);
            g_assert_cmpuint(blob->addr, <=, RAM_SIZE - blob->len);
        }
        done(&f);
    }
}

static uint8_t *make_linux_any(size_t *len)
{
    return make_bzimage(0x20f, true, len);
}

static uint8_t *make_elf_any(size_t *len)
{
    return make_elf32(0x400000, 0x1000, 0x3000, len);
}

static uint8_t *make_kludge_any(size_t *len)
{
    uint8_t *d = g_malloc0(*len = 0x800);
    st_header(d + 0x40, 0x10000);
    boot_st32(d + 0x40 + 12, 0x200040);
    boot_st32(d + 0x40 + 16, 0x200010);
    boot_st32(d + 0x40 + 20, 0x200410);
    boot_st32(d + 0x40 + 24, 0x201000);
    boot_st32(d + 0x40 + 28, 0x200020);
    return d;
}

static void test_mangled(void)
{
    mangle(make_linux_any);
    mangle(make_elf_any);
    mangle(make_kludge_any);
    mangle(make_pvh);
}

static void test_e820(void)
{
    E820Table t;
    e820_build_boot(&t, 5 * GiB);
    uint64_t ram = 0;
    for (unsigned i = 0; i < t.n; i++) {
        ram += t.e[i].type == E820_RAM ? t.e[i].len : 0;
        if (i) { /* sorted, no overlap */
            g_assert_cmphex(t.e[i].addr, >=, t.e[i - 1].addr + t.e[i - 1].len);
        }
    }
    g_assert_cmphex(ram, ==, 5 * GiB - (MiB - 0x9fc00));
    g_assert_cmphex(t.e[t.n - 1].addr, ==, 4 * GiB);
    g_assert_cmphex(t.e[t.n - 1].len, ==, 2 * GiB);
    e820_build_ram(&t, 512 * MiB);
    g_assert_cmpuint(t.n, ==, 1);
    g_assert_cmphex(t.e[0].len, ==, 512 * MiB);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    /* Thousands of small files: better not on a disk. */
    dir = g_mkdtemp(g_strdup("/dev/shm/test-boot-XXXXXX"));
    dir = dir ? dir : g_dir_make_tmp("test-boot-XXXXXX", NULL);
    g_test_add_func("/boot/linux64", test_linux64);
    g_test_add_func("/boot/linux32", test_linux32);
    g_test_add_func("/boot/linux-bad", test_linux_bad);
    g_test_add_func("/boot/multiboot-elf", test_multiboot_elf);
    g_test_add_func("/boot/multiboot-low", test_multiboot_low);
    g_test_add_func("/boot/multiboot-kludge", test_multiboot_kludge);
    g_test_add_func("/boot/multiboot-bad", test_multiboot_bad);
    g_test_add_func("/boot/pvh", test_pvh);
    g_test_add_func("/boot/files", test_files);
    g_test_add_func("/boot/mangled", test_mangled);
    g_test_add_func("/boot/e820", test_e820);
    int rc = g_test_run();
    static const char *const names[] = { "kernel", "initrd", "a.mod", "b.mod" };
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        g_unlink(path);
    }
    g_rmdir(dir);
    return rc;
}
