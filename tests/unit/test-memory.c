/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest-physical map: flattening, access rules, listeners, readers against editors. */
#include <glib.h>
#include <string.h>
#include "memory/memory.h"
#include "qemu/thread.h"

#define AS (&address_space_memory)

/* ---- A device that records, and answers with what it was asked ---- */

typedef struct Rec {
    uint64_t offset, value;
    unsigned size;
    bool write;
} Rec;

static Rec recs[64];
static unsigned nrecs;

static uint64_t rec_read(void *opaque, hwaddr offset, unsigned size)
{
    uint64_t v = 0;
    recs[nrecs++ % 64] = (Rec){ .offset = offset, .size = size };
    for (unsigned i = 0; i < size; i++) {
        v |= (uint64_t)(uint8_t)(offset + i + (uintptr_t)opaque) << (8 * i);
    }
    return v;
}

static void rec_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    recs[nrecs++ % 64] = (Rec){ .offset = offset, .value = value, .size = size, .write = true };
}

static const MemoryRegionOps rec_ops = { .read = rec_read, .write = rec_write };

static void expect_rec(unsigned i, bool write, uint64_t offset, unsigned size, uint64_t value)
{
    g_assert_cmpuint(i, <, nrecs);
    g_assert_cmpint(recs[i].write, ==, write);
    g_assert_cmphex(recs[i].offset, ==, offset);
    g_assert_cmpuint(recs[i].size, ==, size);
    g_assert_cmphex(recs[i].value, ==, value);
}

static RAMBlock *block(const char *name, uint64_t size, uint32_t flags)
{
    RAMBlock *rb = ram_block_new(name, size, flags, -1, &error_abort);
    g_assert_nonnull(rb);
    return rb;
}

static bool range_at(hwaddr addr, FlatRange *r)
{
    memory_read_lock();
    bool found = address_space_lookup(AS, addr, r);
    memory_read_unlock();
    return found;
}

static void expect_range(hwaddr at, hwaddr addr, uint64_t size, const MemoryRegion *mr,
                         uint64_t offset)
{
    FlatRange r;
    g_assert_true(range_at(at, &r));
    g_assert_cmphex(r.addr, ==, addr);
    g_assert_cmphex(r.size, ==, size);
    g_assert_true(r.mr == mr);
    g_assert_cmphex(r.offset, ==, offset);
}

/* ---- Flattening ---- */

static void test_overlap(void)
{
    MemoryRegion low, high, mid, late;
    FlatRange r;

    memory_region_init_io(&low, &rec_ops, NULL, "low", 0x3000);
    memory_region_init_io(&high, &rec_ops, NULL, "high", 0x800);
    memory_region_init_io(&mid, &rec_ops, NULL, "mid", 0x1000);
    memory_region_init_io(&late, &rec_ops, NULL, "late", 0x10);
    memory_region_add_subregion(memory_root(), 0x10000, &low, -1);
    expect_range(0x12fff, 0x10000, 0x3000, &low, 0);
    memory_region_add_subregion(memory_root(), 0x11400, &high, 5);
    memory_region_add_subregion(memory_root(), 0x11000, &mid, 0);
    expect_range(0x10000, 0x10000, 0x1000, &low, 0);
    expect_range(0x11000, 0x11000, 0x400, &mid, 0);
    expect_range(0x11400, 0x11400, 0x800, &high, 0);
    expect_range(0x11fff, 0x11c00, 0x400, &mid, 0xc00);
    expect_range(0x12000, 0x12000, 0x1000, &low, 0x2000);
    g_assert_false(range_at(0x13000, &r));
    g_assert_false(range_at(0xffff, &r));
    /* Of equal priorities the one added last wins. */
    memory_region_add_subregion(memory_root(), 0x11400, &late, 5);
    expect_range(0x11400, 0x11400, 0x10, &late, 0);
    expect_range(0x11410, 0x11410, 0x7f0, &high, 0x10);
    memory_region_del_subregion(memory_root(), &late);
    memory_region_set_enabled(&high, false);
    expect_range(0x11800, 0x11000, 0x1000, &mid, 0);
    memory_region_set_address(&mid, 0x12800);
    expect_range(0x12800, 0x12800, 0x1000, &mid, 0);
    expect_range(0x10000, 0x10000, 0x2800, &low, 0);
    memory_region_del_subregion(memory_root(), &low);
    memory_region_del_subregion(memory_root(), &mid);
    memory_region_del_subregion(memory_root(), &high);
    g_assert_false(range_at(0x12800, &r));
}

/* The top of the first 4 GiB shows the same ROM as the last 128 KiB of the first MiB. */
static void test_alias_4g(void)
{
    RAMBlock *rb = block("bios", 256 * KiB, 0);
    MemoryRegion bios, isa, all, again;
    uint32_t v = 0x12345678;

    memory_region_init_rom(&bios, rb, "bios");
    memory_region_init_alias(&isa, "isa-bios", &bios, 128 * KiB, 128 * KiB);
    memory_region_add_subregion(memory_root(), 4 * GiB - 256 * KiB, &bios, 0);
    memory_region_add_subregion(memory_root(), 0xe0000, &isa, 1);
    g_assert_cmpint(address_space_write_rom(AS, 4 * GiB - 16, &v, 4), ==, MEMTX_OK);
    g_assert_cmphex(ldl_phys(0xffff0), ==, v);
    stl_phys(0xffff0, 0); /* dropped: it is ROM */
    g_assert_cmphex(ldl_phys(4 * GiB - 16), ==, v);
    /* An access over the top of the ROM gets what is there, and ones. */
    g_assert_cmphex(ldq_phys(4 * GiB - 4), ==, 0xffffffff00000000ull);

    /* An alias of the whole space, and one of that: base before 0, clipped at 2^64. */
    memory_region_init_alias(&all, "all", memory_root(), 0, UINT64_MAX);
    memory_region_init_alias(&again, "again", &all, 4 * GiB - 256 * KiB, 256 * KiB);
    memory_region_add_subregion(memory_root(), 0x1000000000ull, &again, 0);
    g_assert_cmphex(ldl_phys(0x1000000000ull + 256 * KiB - 16), ==, v);
    FlatRange r;
    g_assert_true(range_at(0x1000000000ull, &r));
    g_assert_true(r.mr == &bios);
    g_assert_cmphex(r.size, ==, 256 * KiB);

    memory_region_del_subregion(memory_root(), &again);
    memory_region_del_subregion(memory_root(), &isa);
    memory_region_del_subregion(memory_root(), &bios);
    memory_synchronize();
    ram_block_free(rb);
}

/* PAM: one 16 KiB segment goes through its four states; reads and writes may differ. */
static void test_pam(void)
{
    RAMBlock *ram = block("pam.ram", 2 * MiB, 0), *rom = block("pam.rom", 64 * KiB, RAM_ROM);
    MemoryRegion mram, mrom, low, shadow, pci, pci_win;
    FlatRange r;

    memset(rom->host, 0x77, rom->size);
    memory_region_init_ram(&mram, ram, "ram");
    memory_region_init_ram(&mrom, rom, "rom");
    memory_region_init_container(&pci, "pci", UINT64_MAX);
    memory_region_add_subregion(&pci, 0xc0000, &mrom, 0);
    memory_region_add_subregion(memory_root(), 0, &pci, -1);
    memory_region_init_alias(&low, "low", &mram, 0, 2 * MiB);
    memory_region_add_subregion(memory_root(), 0, &low, 0);
    memory_region_init_alias(&pci_win, "pam-pci", &pci, 0xc0000, 0x4000);
    memory_region_init_alias(&shadow, "pam-ram", &mram, 0xc0000, 0x4000);
    memory_region_add_subregion(memory_root(), 0xc0000, &pci_win, 1);
    memory_region_add_subregion(memory_root(), 0xc0000, &shadow, 1);
    memory_region_set_enabled(&shadow, false);

    g_assert_cmphex(ldl_phys(0xc0000), ==, 0x77777777);
    stl_phys(0xc0000, 1);
    g_assert_cmphex(ldl_phys(0xc0000), ==, 0x77777777);
    g_assert_cmphex(ldl_phys(0xc4000), ==, 0);

    memory_transaction_begin();
    memory_region_set_enabled(&pci_win, false);
    memory_region_set_enabled(&shadow, true);
    memory_transaction_commit();
    stl_phys(0xc0000, 2);
    g_assert_cmphex(ldl_phys(0xc0000), ==, 2);
    /* RAM beside RAM of the same block is one range, whatever alias it comes through. */
    g_assert_true(range_at(0xc0000, &r));
    g_assert_cmphex(r.addr, ==, 0);
    g_assert_cmphex(r.size, ==, 2 * MiB);

    memory_region_set_readonly(&shadow, true);
    stl_phys(0xc0000, 3);
    g_assert_cmphex(ldl_phys(0xc0000), ==, 2);
    g_assert_true(range_at(0xc0000, &r));
    g_assert_true(r.readonly);
    g_assert_cmphex(r.size, ==, 0x4000);
    g_assert_cmphex(r.offset, ==, 0xc0000);

    memory_region_del_subregion(memory_root(), &shadow);
    memory_region_del_subregion(memory_root(), &pci_win);
    memory_region_del_subregion(memory_root(), &low);
    memory_region_del_subregion(memory_root(), &pci);
    memory_synchronize();
    ram_block_free(ram);
    ram_block_free(rom);
}

static void test_romd(void)
{
    RAMBlock *rb = block("flash", 64 * KiB, 0);
    MemoryRegion mr;

    rb->host[4] = 0x5a;
    memory_region_init_romd(&mr, rb, &rec_ops, NULL, "flash");
    memory_region_add_subregion(memory_root(), 0x200000, &mr, 0);
    nrecs = 0;
    g_assert_cmphex(address_space_load(AS, 0x200004, 1), ==, 0x5a);
    g_assert_cmpuint(nrecs, ==, 0);
    address_space_store(AS, 0x200004, 0x90, 1);
    expect_rec(0, true, 4, 1, 0x90);
    g_assert_cmphex(rb->host[4], ==, 0x5a);
    uint64_t len = 128 * KiB, off;
    RAMBlock *got;
    memory_read_lock();
    g_assert_true(address_space_map_ram(AS, 0x200010, &len, false, &got, &off) == rb->host + 16);
    g_assert_cmpuint(len, ==, 64 * KiB - 16);
    g_assert_true(got == rb && off == 16);
    g_assert_null(address_space_map_ram(AS, 0x200010, &len, true, NULL, NULL));
    memory_read_unlock();
    memory_region_del_subregion(memory_root(), &mr);
    memory_synchronize();
    ram_block_free(rb);
}

/* ---- Sizes ---- */

static void access_case(const MemoryRegionOps *ops, MemoryRegion *mr)
{
    if (mr->container) {
        memory_region_del_subregion(memory_root(), mr);
    }
    memory_region_init_io(mr, ops, NULL, "dev", 0x100);
    memory_region_add_subregion(memory_root(), 0x300000, mr, 0);
    nrecs = 0;
}

static void test_sizes(void)
{
    const MemoryRegionOps byte = { .read = rec_read, .write = rec_write, .impl_max = 1 };
    const MemoryRegionOps dword = { .read = rec_read, .write = rec_write, .impl_min = 4,
                                    .impl_max = 4 };
    const MemoryRegionOps strict = { .read = rec_read, .write = rec_write, .valid_min = 4,
                                     .valid_max = 4 };
    const MemoryRegionOps unaligned = { .read = rec_read, .write = rec_write, .unaligned = true };
    const MemoryRegionOps none = { 0 };
    MemoryRegion mr = { 0 };

    access_case(&byte, &mr); /* split */
    g_assert_cmphex(address_space_load(AS, 0x300010, 4), ==, 0x13121110);
    g_assert_cmpuint(nrecs, ==, 4);
    expect_rec(3, false, 0x13, 1, 0);
    nrecs = 0;
    address_space_store(AS, 0x300010, 0xaabb, 2);
    expect_rec(0, true, 0x10, 1, 0xbb);
    expect_rec(1, true, 0x11, 1, 0xaa);

    access_case(&dword, &mr); /* widened to the unit, split above it */
    g_assert_cmphex(address_space_load(AS, 0x300013, 1), ==, 0x13);
    expect_rec(0, false, 0x10, 4, 0);
    address_space_store(AS, 0x300012, 0xffff1234, 2);
    expect_rec(1, true, 0x10, 4, 0x12340000);
    g_assert_cmphex(address_space_load(AS, 0x300018, 8), ==, 0x1f1e1d1c1b1a1918ull);
    expect_rec(2, false, 0x18, 4, 0);
    expect_rec(3, false, 0x1c, 4, 0);
    g_assert_cmpuint(nrecs, ==, 4);

    access_case(&strict, &mr); /* other sizes never reach the device */
    uint16_t h = 0;
    g_assert_cmpint(address_space_read(AS, 0x300010, &h, 2), ==, MEMTX_DECODE_ERROR);
    g_assert_cmphex(h, ==, 0xffff);
    g_assert_cmpint(address_space_write(AS, 0x300010, &h, 2), ==, MEMTX_DECODE_ERROR);
    g_assert_cmphex(address_space_load(AS, 0x300010, 8), ==, UINT64_MAX);
    g_assert_cmpuint(nrecs, ==, 0);
    g_assert_cmphex(address_space_load(AS, 0x300010, 4), ==, 0x13121110);

    access_case(&rec_ops, &mr); /* misaligned: aligned pieces, in order */
    g_assert_cmphex(address_space_load(AS, 0x300011, 4), ==, 0x14131211);
    expect_rec(0, false, 0x11, 1, 0);
    expect_rec(1, false, 0x12, 2, 0);
    expect_rec(2, false, 0x14, 1, 0);

    access_case(&unaligned, &mr);
    g_assert_cmphex(address_space_load(AS, 0x300011, 4), ==, 0x14131211);
    expect_rec(0, false, 0x11, 4, 0);
    g_assert_cmpuint(nrecs, ==, 1);

    access_case(&none, &mr);
    g_assert_cmphex(address_space_load(AS, 0x300010, 4), ==, 0xffffffff);
    address_space_store(AS, 0x300010, 1, 4);
    memory_region_del_subregion(memory_root(), &mr);
}

static void test_ports(void)
{
    MemoryRegion a, b;

    memory_region_init_io(&a, &rec_ops, NULL, "a", 1);
    memory_region_init_io(&b, &rec_ops, (void *)0x40, "b", 1);
    memory_region_add_subregion(io_root(), 0x60, &a, 0);
    memory_region_add_subregion(io_root(), 0x61, &b, 0);
    nrecs = 0;
    /* A wide access is split where the ranges meet; what is not there reads as ones. */
    g_assert_cmphex(address_space_load(&address_space_io, 0x60, 4), ==, 0xffff4000);
    g_assert_cmpuint(nrecs, ==, 2);
    g_assert_cmphex(address_space_load(&address_space_io, 0x5f, 2), ==, 0x00ff);
    g_assert_cmphex(address_space_load(&address_space_io, 0xffff, 4), ==, 0xffffffff);
    address_space_store(&address_space_io, 0xfffe, 0, 4);
    memory_region_del_subregion(io_root(), &a);
    memory_region_del_subregion(io_root(), &b);
    g_assert_cmphex(address_space_load(&address_space_io, 0x60, 1), ==, 0xff);
}

static void test_buffers(void)
{
    RAMBlock *rb = block("buf", 2 * TARGET_PAGE_SIZE, 0);
    MemoryRegion ram, dev;
    uint8_t in[0x3000], out[0x3000];

    memory_region_init_ram(&ram, rb, "ram");
    memory_region_init_io(&dev, &rec_ops, NULL, "dev", 7);
    memory_region_add_subregion(memory_root(), 0x400000, &ram, 0);
    memory_region_add_subregion(memory_root(), 0x402000, &dev, 0);
    for (unsigned i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * 31 + 7);
    }
    nrecs = 0;
    g_assert_cmpint(address_space_write(AS, 0x400003, in, 0x2004), ==, MEMTX_OK);
    g_assert_cmpint(memcmp(rb->host + 3, in, 0x1ffd), ==, 0);
    uint32_t l;
    uint16_t w;
    memcpy(&l, in + 0x1ffd, 4);
    memcpy(&w, in + 0x2001, 2);
    expect_rec(0, true, 0, 4, l);
    expect_rec(1, true, 4, 2, w);
    expect_rec(2, true, 6, 1, in[0x2003]);
    g_assert_cmpint(address_space_read(AS, 0x3fffff, out, 0x2800), ==, MEMTX_DECODE_ERROR);
    g_assert_cmphex(out[0], ==, 0xff);
    g_assert_cmpint(memcmp(out + 4, in, 0x1ffd), ==, 0);
    g_assert_cmphex(out[0x2001 + 6], ==, 6);
    g_assert_cmphex(out[0x2001 + 7], ==, 0xff);
    g_assert_cmphex(out[0x27ff], ==, 0xff);
    /* Lengths around the top of the address space. */
    g_assert_cmpint(address_space_read(AS, UINT64_MAX - 3, out, 4), ==, MEMTX_DECODE_ERROR);
    memory_region_del_subregion(memory_root(), &ram);
    memory_region_del_subregion(memory_root(), &dev);
    memory_synchronize();
    ram_block_free(rb);
}

/* ---- Listeners ---- */

static GString *told;

static void on_begin(MemoryListener *l)
{
    g_string_append(told, "[");
}

static void on_commit(MemoryListener *l)
{
    g_string_append(told, "]");
}

static void on_del(MemoryListener *l, const FlatRange *r)
{
    g_string_append_printf(told, "-%lx+%lx", (long)r->addr, (long)r->size);
}

static void on_add(MemoryListener *l, const FlatRange *r)
{
    g_string_append_printf(told, "+%lx+%lx%s", (long)r->addr, (long)r->size,
                           r->readonly ? "r" : "");
}

static MemoryListener listener = { .begin = on_begin, .commit = on_commit, .range_del = on_del,
                                   .range_add = on_add };

static void expect_told(const char *what)
{
    g_assert_cmpstr(told->str, ==, what);
    g_string_truncate(told, 0);
}

static void test_listener(void)
{
    RAMBlock *rb = block("listen", 1 * MiB, 0);
    MemoryRegion ram, dev, hole, part;

    told = g_string_new(NULL);
    memory_region_init_ram(&ram, rb, "ram");
    memory_region_init_io(&dev, &rec_ops, NULL, "dev", 0x1000);
    memory_region_init_io(&hole, &rec_ops, NULL, "hole", 0x1000);
    memory_region_add_subregion(memory_root(), 0, &ram, 0);
    listener.as = AS;
    memory_listener_register(&listener);
    expect_told("[+0+100000]");
    memory_region_add_subregion(memory_root(), 0x200000, &dev, 0);
    expect_told("[+200000+1000]");
    memory_region_add_subregion(memory_root(), 0x8000, &hole, 1);
    expect_told("[-0+100000+0+8000+8000+1000+9000+f7000]");
    memory_region_set_enabled(&hole, true);
    expect_told("");
    memory_transaction_begin();
    memory_region_set_enabled(&hole, false);
    memory_transaction_begin();
    memory_region_set_address(&dev, 0x300000);
    memory_transaction_commit();
    expect_told("");
    memory_transaction_commit();
    expect_told("[-0+8000-8000+1000-9000+f7000-200000+1000+0+100000+300000+1000]");
    /* There and back in one transaction is no change. */
    memory_transaction_begin();
    memory_region_set_enabled(&hole, true);
    memory_region_set_enabled(&hole, false);
    memory_transaction_commit();
    expect_told("");
    /* RAM over the same RAM changes nothing that a listener sees; read-only does. */
    memory_region_init_alias(&part, "part", &ram, 0x4000, 0x4000);
    memory_region_add_subregion(memory_root(), 0x4000, &part, 2);
    expect_told("");
    memory_region_set_readonly(&part, true);
    expect_told("[-0+100000+0+4000+4000+4000r+8000+f8000]");
    memory_region_del_subregion(memory_root(), &hole);
    memory_region_add_subregion(io_root(), 0, &hole, 0); /* not this listener's space */
    expect_told("");
    memory_region_del_subregion(io_root(), &hole);
    memory_region_del_subregion(memory_root(), &part);
    memory_region_del_subregion(memory_root(), &ram);
    memory_region_del_subregion(memory_root(), &dev);
    memory_synchronize();
    ram_block_free(rb);
}

/* ---- Readers while the map flips ---- */

typedef struct Flip {
    atomic_bool stop;
    atomic_uint wrong;
    _Atomic uint64_t reads;
} Flip;

static void *flip_reader(void *opaque)
{
    Flip *f = opaque;
    memory_thread_register();
    while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
        /* Either of the two, never a hole: each publication is complete. */
        uint64_t v = address_space_load(AS, 0x800000, 4);
        if (v != 0x03020100 && v != 0x11111111) {
            atomic_fetch_add(&f->wrong, 1);
        }
        atomic_fetch_add_explicit(&f->reads, 1, memory_order_relaxed);
    }
    return NULL;
}

static uint64_t quiet_read(void *opaque, hwaddr offset, unsigned size)
{
    return 0x03020100;
}

static void test_flip(void)
{
    static const MemoryRegionOps quiet_ops = { .read = quiet_read };
    RAMBlock *rb = block("flip", 64 * KiB, 0);
    MemoryRegion ram, dev;
    QemuThread th[2];
    static Flip f;

    memset(rb->host, 0x11, rb->size);
    memory_region_init_ram(&ram, rb, "ram");
    memory_region_init_io(&dev, &quiet_ops, NULL, "dev", 64 * KiB);
    memory_region_add_subregion(memory_root(), 0x800000, &ram, 0);
    memory_region_add_subregion(memory_root(), 0x800000, &dev, 1);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(qemu_thread_create(&th[i], "reader", THREAD_VCPU, flip_reader, &f,
                                         &error_abort));
    }
    gint64 t0 = g_get_monotonic_time();
    for (unsigned i = 0; i < 100000; i++) {
        memory_region_set_enabled(&dev, i & 1);
    }
    g_test_message("100000 flips in %ld ms, %lu reads", (long)(g_get_monotonic_time() - t0) / 1000,
                   (unsigned long)atomic_load(&f.reads));
    g_assert_cmpint(g_get_monotonic_time() - t0, <, 30 * G_USEC_PER_SEC);
    atomic_store(&f.stop, true);
    for (unsigned i = 0; i < 2; i++) {
        qemu_thread_join(&th[i]);
    }
    g_assert_cmpuint(atomic_load(&f.wrong), ==, 0);
    g_assert_cmpuint(atomic_load(&f.reads), >, 0);
    memory_region_del_subregion(memory_root(), &ram);
    memory_region_del_subregion(memory_root(), &dev);
    memory_synchronize();
    ram_block_free(rb);
}

/* ---- info mtree ---- */

static void collect(void *opaque, const char *line)
{
    g_string_append_printf(opaque, "%s\n", line);
}

static void test_print(void)
{
    RAMBlock *rb = block("pc.bios", 256 * KiB, 0);
    MemoryRegion bios, isa;
    g_autoptr(GString) s = g_string_new(NULL);

    memory_region_init_rom(&bios, rb, "pc.bios");
    memory_region_init_alias(&isa, "isa-bios", &bios, 128 * KiB, 128 * KiB);
    memory_region_add_subregion(memory_root(), 0xe0000, &isa, 1);
    memory_print(collect, s, false);
    g_assert_nonnull(strstr(s->str, "address-space: memory\n"
                                    "  0000000000000000-ffffffffffffffff (prio 0, i/o): system\n"
                                    "    00000000000e0000-00000000000fffff (prio 1, rom): alias "
                                    "isa-bios @pc.bios 0000000000020000-000000000003ffff\n"));
    g_assert_nonnull(strstr(s->str, "memory-region: pc.bios\n"
                                    "  0000000000000000-000000000003ffff (prio 0, rom): "
                                    "pc.bios\n"));
    g_string_truncate(s, 0);
    memory_print(collect, s, true);
    g_assert_nonnull(strstr(s->str, " AS \"memory\", root: system\n"));
    g_assert_nonnull(strstr(s->str, "  00000000000e0000-00000000000fffff (prio 0, rom): pc.bios "
                                    "@0000000000020000\n"));
    memory_region_del_subregion(memory_root(), &isa);
    memory_synchronize();
    ram_block_free(rb);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    memory_init();
    g_test_add_func("/memory/flat/overlap", test_overlap);
    g_test_add_func("/memory/flat/alias-4g", test_alias_4g);
    g_test_add_func("/memory/flat/pam", test_pam);
    g_test_add_func("/memory/flat/romd", test_romd);
    g_test_add_func("/memory/access/sizes", test_sizes);
    g_test_add_func("/memory/access/ports", test_ports);
    g_test_add_func("/memory/access/buffers", test_buffers);
    g_test_add_func("/memory/rcu/flip", test_flip);
    g_test_add_func("/memory/print", test_print);
    g_test_add_func("/memory/listener", test_listener);
    return g_test_run();
}
