/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM through the accelerator's hooks and cpus.c, with flat guests of a few instructions. Each case
 * is a process of its own, since a process has one virtual machine. Only instructions that a KVM
 * which interprets its guests knows as well are used. Skipped where /dev/kvm cannot be opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "cpus.h"
#include "event/event.h"
#include "memory/memory.h"
#include "target/i386/cpuid.h"
#include "kvm-guests.h"

/* ---- The machine: 1 MiB of RAM, a ROM page, MMIO at 0xd0000, ports ---- */

#define PORT_BYTE  0x500 /* in: 0x5a; out: logged */
#define PORT_DWORD 0x504 /* in: 0xcafebabe; out: logged */
#define PORT_DONE  0x508 /* out: the guest is at its end */
#define MMIO_BASE  0xd0000
#define ROM_BASE   0xe0000
#define CODE_BASE  0x1000
#define SHARED     0x8000 /* words the guest and the test exchange */

enum { MAX_LOG = 64 };
static struct {
    _Atomic unsigned n;
    _Atomic unsigned done;
    uint32_t value[MAX_LOG];
    uint8_t size[MAX_LOG];
    EventWord progress;
} guest_log;

static uint64_t mmio_last_addr, mmio_last_value;
static unsigned mmio_last_size;
static _Atomic unsigned mmio_accesses;
static RAMBlock *ram;
static MemoryRegion ram_region, rom_region, mmio_region, port_region, hole;
static const uint8_t *guest_start, *guest_end;

static void log_value(uint32_t v, unsigned size)
{
    unsigned n = atomic_load(&guest_log.n);

    if (n < MAX_LOG) {
        guest_log.value[n] = v;
        guest_log.size[n] = (uint8_t)size;
        atomic_store(&guest_log.n, n + 1);
    }
    event_word_set(&guest_log.progress, 1);
}

static uint64_t port_read(void *opaque, hwaddr offset, unsigned size)
{
    return offset + PORT_BYTE == PORT_DWORD ? 0xcafebabe : 0x5a;
}

static void port_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    if (offset + PORT_BYTE == PORT_DONE) {
        atomic_fetch_add(&guest_log.done, 1);
        event_word_set(&guest_log.progress, 1);
    } else {
        log_value((uint32_t)value, size);
    }
}

static uint64_t mmio_read(void *opaque, hwaddr offset, unsigned size)
{
    atomic_fetch_add(&mmio_accesses, 1);
    return 0x1122334455667788ull >> (8 * (offset & 7));
}

static void mmio_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    atomic_fetch_add(&mmio_accesses, 1);
    mmio_last_addr = offset;
    mmio_last_value = value;
    mmio_last_size = size;
}

static const MemoryRegionOps port_ops = { .read = port_read, .write = port_write, .valid_max = 4 };
static const MemoryRegionOps mmio_ops = { .read = mmio_read, .write = mmio_write, .valid_max = 8 };

static void boot_state(X86CPU *c)
{
    if (c->base.index == 0) {
        c->seg[R_CS].selector = 0;
        c->seg[R_CS].base = 0;
        c->rip = CODE_BASE;
        c->regs[R_RSP] = 0x7000;
    }
}

/* ---- A chip in user space, for kernel-irqchip=off and =split ---- */

static struct {
    _Atomic int vector; /* pending; -1: none */
    _Atomic unsigned acks, eois;
    uint64_t base[2];
} chip = { .vector = -1 };
static const AccelIrqchip *kernel_chip;

static bool chip_pending(CPUState *cpu)
{
    return cpu->index == 0 && atomic_load(&chip.vector) >= 0;
}
static int chip_ack(CPUState *cpu)
{
    atomic_fetch_add(&chip.acks, 1);
    return atomic_exchange(&chip.vector, -1);
}
static uint8_t chip_tpr_get(CPUState *cpu)
{
    return 0;
}
static void chip_tpr_set(CPUState *cpu, uint8_t tpr)
{
}
static uint64_t chip_base_get(CPUState *cpu)
{
    return chip.base[cpu->index];
}
static bool chip_base_set(CPUState *cpu, uint64_t v)
{
    chip.base[cpu->index] = v;
    return true;
}
static void chip_cpu_init(CPUState *cpu)
{
    cpu->irqchip = &chip;
    chip.base[cpu->index] = 0xfee00800 | (cpu->index ? 0 : 0x100);
}
static void chip_set_gsi(unsigned gsi, int level)
{
    if (level) {
        atomic_store(&chip.vector, (int)(0x40 + gsi));
        cpu_request(cpu_get(0), CPU_REQ_INTERRUPT);
    }
}
static const IrqChipOps chip_ops = {
    .name = "test", .set_gsi = chip_set_gsi, .cpu_init = chip_cpu_init,
    .cpu_pending = chip_pending, .cpu_ack = chip_ack, .tpr_get = chip_tpr_get,
    .tpr_set = chip_tpr_set, .base_get = chip_base_get, .base_set = chip_base_set,
};

/* The split chip's PIC: vector 0x40 + gsi, INT until acknowledged. */
static void parts_set_gsi(unsigned gsi, int level)
{
    if (level) {
        atomic_store(&chip.vector, (int)(0x40 + gsi));
        kernel_chip->pic_int(NULL, 0, 1);
    }
}
static void parts_eoi(uint8_t vector)
{
    atomic_store(&chip.eois, vector);
    event_word_set(&guest_log.progress, 1);
}
static bool parts_level(void)
{
    return atomic_load(&chip.vector) >= 0;
}
static int parts_ack(void)
{
    int v = atomic_exchange(&chip.vector, -1);

    atomic_fetch_add(&chip.acks, 1);
    kernel_chip->pic_int(NULL, 0, 0);
    return v;
}
static const IrqChipParts parts = { parts_set_gsi, parts_eoi, parts_level, parts_ack };

/* ---- Harness ---- */

static void load_guest(void)
{
    memset(ram->host + SHARED, 0, 16);
    address_space_write_rom(&address_space_memory, CODE_BASE, guest_start,
                            (uint64_t)(guest_end - guest_start));
}

static void make_memory(void)
{
    static RAMBlock *rom;

    memory_init();
    ram = ram_block_new("ram", 1 * MiB, 0, -1, &error_abort);
    rom = ram_block_new("rom", 0x1000, RAM_ROM, -1, &error_abort);
    memset(rom->host, 0x66, 0x1000);
    memory_region_init_ram(&ram_region, ram, "ram");
    memory_region_init_rom(&rom_region, rom, "rom");
    memory_region_init_io(&mmio_region, &mmio_ops, NULL, "mmio", 0x1000);
    memory_region_init_io(&port_region, &port_ops, NULL, "ports", 0x10);
    memory_region_init_io(&hole, &mmio_ops, NULL, "hole", 0x1000);
    memory_region_add_subregion(memory_root(), 0, &ram_region, 0);
    memory_region_add_subregion(memory_root(), ROM_BASE, &rom_region, 1);
    memory_region_add_subregion(memory_root(), MMIO_BASE, &mmio_region, 1);
    memory_region_add_subregion(io_root(), PORT_BYTE, &port_region, 0);
    memory_region_set_enabled(&hole, false);
    memory_region_add_subregion(memory_root(), 0x30000, &hole, 2);
}

static void start(KernelIrqchip mode, unsigned ncpus, const uint8_t *code, const uint8_t *end)
{
    static EventLoop *loop;

    loop = event_loop_new("main", &error_abort);
    event_loop_set_main(loop);
    kernel_irqchip = mode;
    guest_start = code;
    guest_end = end;
    make_memory();
    current_accel = &kvm_accel_ops;
    g_assert_true(kvm_accel_ops.init(NULL, &error_abort));
    kernel_chip = accel_irqchip;
    g_assert_cmpint(kernel_chip != NULL, ==, mode != KERNEL_IRQCHIP_OFF);
    g_assert_true(x86_cpu_set_model("qemu64,check=off", &error_abort));
    irqchip = kernel_chip ? kernel_chip->ops : &chip_ops;
    if (kernel_chip && kernel_chip->set_parts) {
        kernel_chip->set_parts(&parts);
    }
    x86_cpu_set_topology(ncpus, 1, 1, 1);
    x86_cpu_set_boot_state(boot_state);
    g_assert_true(cpus_create(ncpus, &error_abort));
    g_assert_true(cpus_start_threads(&error_abort));
    cpus_pause_all();
    cpus_reset_all(load_guest);
    cpus_resume_all();
}

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/* Waits until at least n values are logged and done counted, at most 20 s. */
static void wait_for(unsigned n, unsigned done)
{
    int64_t end = now_ns() + 20 * NANOSECONDS_PER_SECOND;

    while (atomic_load(&guest_log.n) < n || atomic_load(&guest_log.done) < done) {
        if (now_ns() > end) {
            g_error("guest: %u values of %u, %u done of %u", atomic_load(&guest_log.n), n,
                    atomic_load(&guest_log.done), done);
        }
        event_word_wait(&guest_log.progress, now_ns() + 100000000);
        event_word_take(&guest_log.progress);
    }
}

static void expect(unsigned i, uint32_t value, unsigned size)
{
    g_assert_cmpuint(atomic_load(&guest_log.n), >, i);
    g_assert_cmphex(guest_log.value[i], ==, value);
    g_assert_cmpuint(guest_log.size[i], ==, size);
}

#define START(mode, n, name) start(mode, n, guest_##name, guest_##name##_end)

/* ---- Cases; each runs in a child ---- */

static void case_io(KernelIrqchip mode)
{
    START(mode, 1, io);
    wait_for(12, 1);
    expect(0, 0x41, 1);
    expect(1, 0x5a, 1);
    expect(2, 0xcafebabe, 4);
    expect(3, 0x1234, 2);
    expect(4, 'a', 1);
    expect(7, 'd', 1);
    expect(8, 0x5a, 1);
    expect(9, 0x55667788, 4);
    expect(10, 0x5566, 2);
    expect(11, 0x66, 1);
    g_assert_cmphex(mmio_last_addr, ==, 0x33);
    g_assert_cmphex(mmio_last_value, ==, 0x99);
    g_assert_cmpuint(mmio_last_size, ==, 1);
    g_assert_cmpuint(atomic_load(&mmio_accesses), ==, 4);
    cpus_quit();
}

static void pulse(unsigned gsi)
{
    irqchip->set_gsi(gsi, 1);
    irqchip->set_gsi(gsi, 0);
}

static void case_irq(KernelIrqchip mode)
{
    START(mode, 1, irq);
    wait_for(0, 1);
    for (unsigned i = 0; i < 20; i++) {
        pulse(4);
        wait_for(i + 1, 1);
        expect(i, 0x49, 1);
    }
    if (mode != KERNEL_IRQCHIP_ON) {
        g_assert_cmpuint(atomic_load(&chip.acks), ==, 20);
    }
    cpus_quit();
}

static void case_window(KernelIrqchip mode)
{
    START(mode, 1, window);
    wait_for(0, 1);
    for (unsigned i = 0; i < 20; i++) {
        pulse(4);
        wait_for(i + 1, 1);
        expect(i, 0x57, 1);
    }
    cpus_quit();
}

static void case_msi(KernelIrqchip mode)
{
    START(mode, 1, msi);
    wait_for(0, 1);
    for (unsigned i = 0; i < 5; i++) {
        irqchip->send_msi(0xfee00000, 0x60);
        wait_for(i + 1, 1);
        expect(i, 0x4d, 1);
    }
    if (mode == KERNEL_IRQCHIP_SPLIT) { /* a level-triggered I/O APIC pin: its EOI comes out */
        kernel_chip->ioapic_route(9, true, 0xfee00000, 0x61 | 1 << 15);
        irqchip->send_msi(0xfee00000, 0x61 | 1 << 15);
        wait_for(6, 1);
        expect(5, 0x4c, 1);
        for (unsigned i = 0; i < 200 && atomic_load(&chip.eois) != 0x61; i++) {
            event_word_wait(&guest_log.progress, now_ns() + 50000000);
            event_word_take(&guest_log.progress);
        }
        g_assert_cmphex(atomic_load(&chip.eois), ==, 0x61);
    }
    cpus_quit();
}

static void case_smp(KernelIrqchip mode)
{
    START(mode, 2, smp);
    if (mode == KERNEL_IRQCHIP_OFF) { /* no local APIC here: the requests it would make */
        wait_for(0, 0);
        g_assert_true(atomic_load(&cpu_get(1)->halted));
        cpu_request(cpu_get(1), CPU_REQ_INIT);
        g_usleep(100000); /* the boot CPU copies the trampoline */
        atomic_store(&cpu_get(1)->sipi_vector, 2);
        cpu_request(cpu_get(1), CPU_REQ_SIPI);
    }
    wait_for(2, 1);
    expect(0, 0x41, 1);
    expect(1, 0x42, 1);
    cpus_pause_all();
    g_assert_false(x86_cpu(cpu_get(1))->wait_for_sipi);
    g_assert_cmphex(x86_cpu(cpu_get(1))->seg[R_CS].selector, ==, 0x200);
    /* a reset puts the second one to sleep again */
    cpus_reset_all(load_guest);
    g_assert_true(x86_cpu(cpu_get(1))->wait_for_sipi);
    g_assert_cmphex(x86_cpu(cpu_get(0))->rip, ==, CODE_BASE);
    if (mode != KERNEL_IRQCHIP_OFF) {
        cpus_resume_all();
        wait_for(4, 2);
        expect(2, 0x41, 1);
        expect(3, 0x42, 1);
    }
    cpus_quit();
}

static uint32_t counter(void)
{
    return __atomic_load_n((uint32_t *)(void *)(ram->host + SHARED), __ATOMIC_ACQUIRE);
}

static void case_pause(KernelIrqchip mode)
{
    X86CPU *c;

    START(mode, 1, count);
    c = x86_cpu(cpu_get(0));
    wait_for(1, 0);
    for (unsigned i = 0; i < 10; i++) {
        uint32_t before = counter();

        while (counter() == before) {
            g_usleep(100);
        }
        cpus_pause_all();
        kvm_accel_ops.run_state_change(false);
        before = counter();
        g_usleep(2000);
        g_assert_cmpuint(counter(), ==, before);
        g_assert_cmpuint((uint32_t)(c->regs[R_RCX] - before), <=, 1);
        g_assert_cmphex(c->regs[R_RBX], ==, 0);
        c->regs[R_RBX] = 0x100 + i; /* as a debugger would */
        kvm_accel_ops.run_state_change(true);
        cpus_resume_all();
        wait_for(2 + i, 0);
        expect(1 + i, 0x100 + i, 2);
    }
    /* reset: from the start */
    cpus_pause_all();
    cpus_reset_all(load_guest);
    g_assert_cmphex(c->regs[R_RCX], ==, 0);
    cpus_resume_all();
    wait_for(12, 0);
    expect(11, 0x50, 1);
    cpus_quit();
}

/* How long until a computing vCPU is out of guest code. The bound is for a loaded machine. */
static void case_kick(KernelIrqchip mode)
{
    int64_t worst = 0, sum = 0;

    START(mode, 1, count);
    wait_for(1, 0);
    for (unsigned i = 0; i < 100; i++) {
        int64_t t = now_ns();

        cpus_pause_all();
        t = now_ns() - t;
        sum += t;
        worst = MAX(worst, t);
        cpus_resume_all();
        g_usleep(500);
    }
    g_test_message("kick to parked: %.1f us on average, %.1f us at worst", sum / 1e5, worst / 1e3);
    g_assert_cmpint(sum / 100, <, NANOSECONDS_PER_SECOND / 10);
    cpus_quit();
}

/* The RAM slot is split and joined again under a vCPU that uses it: it must not notice. */
static void case_remap(KernelIrqchip mode)
{
    START(mode, 1, ram);
    wait_for(1, 0);
    for (unsigned i = 0; i < 100; i++) {
        memory_region_set_enabled(&hole, true);
        memory_region_set_enabled(&hole, false);
    }
    g_assert_cmpuint(atomic_load(&guest_log.done), ==, 0);
    g_assert_cmpuint(atomic_load(&mmio_accesses), ==, 0);
    cpus_pause_all(); /* and it still runs */
    uint64_t cx = x86_cpu(cpu_get(0))->regs[R_RCX];
    /* A busy host may not give it the processor at once. */
    for (unsigned i = 0; i < 400 && x86_cpu(cpu_get(0))->regs[R_RCX] == cx; i++) {
        cpus_resume_all();
        g_usleep(5000);
        cpus_pause_all();
    }
    g_assert_cmpuint(x86_cpu(cpu_get(0))->regs[R_RCX], !=, cx);
    cpus_quit();
}

static void case_dirty(KernelIrqchip mode)
{
    uint64_t bits[4] = { 0 };

    START(mode, 1, dirty);
    wait_for(0, 1);
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, true);
    ram_dirty_sync(ram, DIRTY_CLIENT_MIGRATION, 0, 256, bits);
    memset(bits, 0, sizeof(bits));
    g_assert_cmpuint(ram_dirty_sync(ram, DIRTY_CLIENT_MIGRATION, 0, 256, bits), ==, 0);
    cpus_pause_all();
    cpus_reset_all(load_guest); /* the loader writes page 1 */
    cpus_resume_all();
    wait_for(0, 2);
    g_assert_cmpuint(ram_dirty_sync(ram, DIRTY_CLIENT_MIGRATION, 0, 256, bits), ==, 4);
    g_assert_cmphex(bits[0], ==, 1ull << 1 | 1ull << 0x20 | 1ull << 0x23 | 1ull << 0x27);
    g_assert_cmpuint(ram_dirty_sync(ram, DIRTY_CLIENT_MIGRATION, 0, 256, bits), ==, 0);
    ram_dirty_track(DIRTY_CLIENT_MIGRATION, false);
    cpus_quit();
}

/* A triple fault asks for a reset and parks; the reset starts the guest again. */
static void case_triple(KernelIrqchip mode)
{
    START(mode, 1, triple);
    for (unsigned i = 0; i < 3; i++) {
        wait_for(i + 1, 0);
        expect(i, 0x54, 1);
        g_usleep(20000);
        cpus_pause_all();
        cpus_reset_all(load_guest);
        cpus_resume_all();
    }
    cpus_quit();
}

/* As somebody who may not open it. */
static void case_denied(KernelIrqchip mode)
{
    Error *err = NULL;

    if (geteuid() != 0 || setegid(65534) || seteuid(65534) || access("/dev/kvm", R_OK | W_OK) == 0) {
        return;
    }
    if (open("/dev/kvm", O_RDWR) >= 0) {
        return;
    }
    g_assert_false(kvm_accel_ops.init(NULL, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "/dev/kvm"));
    g_assert_nonnull(strstr(error_get_pretty(err), "group"));
}

/* ---- Registering: a child a case, modes on, split, off ---- */

typedef struct Case {
    const char *name;
    void (*fn)(KernelIrqchip mode);
    bool modes[3]; /* by KernelIrqchip */
} Case;

static const Case cases[] = {
    { "io", case_io, { true, true, true } },
    { "irq", case_irq, { true, true, true } },
    { "window", case_window, { true, true, true } },
    { "msi", case_msi, { false, true, true } },
    { "smp", case_smp, { true, true, true } },
    { "pause", case_pause, { true, true, true } },
    { "kick", case_kick, { true, false, true } },
    { "remap", case_remap, { false, false, true } },
    { "dirty", case_dirty, { false, false, true } },
    { "triple", case_triple, { true, false, true } },
    { "denied", case_denied, { false, false, true } },
};

typedef struct Run {
    const Case *c;
    KernelIrqchip mode;
} Run;

static void run_case(gconstpointer data)
{
    const Run *r = data;
    int status;
    pid_t pid;
    int fd = open("/dev/kvm", O_RDWR);

    if (fd < 0) {
        g_test_skip("/dev/kvm cannot be opened");
        return;
    }
    close(fd);
    fflush(NULL);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        alarm(40);
        r->c->fn(r->mode);
        fflush(NULL);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    if (WIFSIGNALED(status)) {
        g_error("the case ended by signal %d", WTERMSIG(status));
    }
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "off", "split", "on" };
    static Run runs[3 * ARRAY_SIZE(cases)];
    unsigned n = 0;

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        for (unsigned m = 0; m < 3; m++) {
            if (cases[i].modes[m]) {
                char *path = g_strdup_printf("/kvm/%s/%s", cases[i].name, names[m]);

                runs[n] = (Run){ &cases[i], (KernelIrqchip)m };
                g_test_add_data_func(path, &runs[n], run_case);
                g_free(path);
                n++;
            }
        }
    }
    return g_test_run();
}
