/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes as a program: run by the translator on CPU 0, and by the interpreter on CPU 1, from the same
 * state. Both must come to the same, count of instructions included, and neither may do anything
 * else than be a processor. Time is the count (-icount), and ends a program that does not.
 */
#include <signal.h>
#include <time.h>
#include "accel/accel.h"
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "event/event.h"
#include "fuzz.h"
#include "qemu/guest-random.h"
#include "tests/unit/interp-vm.h"

#define INSNS_MAX 1000
#define CODE_MAX  1024
#define SECONDS   1 /* of the processor, for a run */

static Vm *cpus[2]; /* translated, interpreted */
static EventTimer stop;
static bool stopped;
/* A fault whose handler faults retires nothing, for ever: such a run is stopped from outside, at no
 * certain place. */
static timer_t patience;
static volatile sig_atomic_t given_up;
#define PAGES (VM_RAM / TARGET_PAGE_SIZE)
static uint8_t zeros[TARGET_PAGE_SIZE];
static uint8_t *translated; /* RAM after the translator's run, where written is true */
static bool written[PAGES];

static void stop_fn(void *opaque)
{
    stopped = true;
    cpu_request(current_cpu, CPU_REQ_EXIT);
}

static void patience_out(int sig)
{
    given_up = true;
    if (current_cpu) {
        cpu_request(current_cpu, CPU_REQ_EXIT);
    }
}

static void patience_set(time_t seconds)
{
    struct itimerspec its = { .it_value.tv_sec = seconds };

    timer_settime(patience, 0, &its, NULL);
}

static Vm *make_cpu(unsigned n)
{
    Vm *vm;

    tcg_jit_enabled = n == 0;
    vm = vm_cpu(n);
    vm->c->base.accel = &tcg_accel_ops;
    vm->c->apic_id = 0; /* else CPUID tells them apart */
    return vm;
}

static void init(const FuzzTarget *t)
{
    event_loop_set_main(event_loop_new("main", &error_abort));
    accel_icount = (AccelIcount){ .enabled = true };
    guest_random_fix(1);
    tcg_jit_exact_flags = true;
    tcg_jit_heat = 0;
    tcg_block_cache_size = 8 * MiB;
    tcg_jit_cache_size = 8 * MiB;
    for (unsigned n = 0; n < 2; n++) {
        cpus[n] = make_cpu(n);
    }
    signal(SIGUSR2, patience_out);
    timer_create(CLOCK_THREAD_CPUTIME_ID,
                 &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &patience);
    timer_init(&stop, event_loop_main(), CLOCK_TYPE_VIRTUAL, stop_fn, NULL);
    translated = g_malloc(VM_RAM);
}

/* ---- One run ---- */

static void reset_mode(Vm *vm, unsigned how)
{
    static void (*const modes[])(Vm *vm) = { vm_reset_long, vm_reset_protected, vm_reset_real };

    modes[how % 3](vm);
    if (how % 3 == 0 && (how & 4)) {
        vm->c->cpl = 3;
        vm->c->seg[R_CS].selector |= 3;
        vm->c->seg[R_CS].attr |= 3u << SEG_DPL_SHIFT;
        vm->c->seg[R_SS].selector |= 3;
        vm->c->seg[R_SS].attr |= 3u << SEG_DPL_SHIFT;
    }
}

/* Registers that point to data, to code and to nowhere; the same for both. */
static void set_registers(X86CPU *c, uint8_t seed, bool real)
{
    static const uint64_t bases[] = { VM_DATA, VM_DATA + 0xffd, VM_CODE, 0, UINT64_MAX, 7,
                                      0x8000000000000000, 0x7fffffff };

    for (unsigned i = 0; i < 16; i++) {
        if (i != R_RSP) {
            uint64_t v = bases[(seed + i * 5u) % ARRAY_SIZE(bases)] + i * 8;

            c->regs[i] = real ? v & 0xffff : v;
        }
    }
    for (unsigned i = 0; i < sizeof(c->ymm); i++) {
        ((uint8_t *)c->ymm)[i] = (uint8_t)(i * 29 + seed);
    }
}

/* RAM is compared, copied and cleared where there is something. */
static bool page_blank(const Vm *vm, unsigned page)
{
    return memcmp(vm->ram + page * TARGET_PAGE_SIZE, zeros, TARGET_PAGE_SIZE) == 0;
}

static void ram_clear(Vm *vm)
{
    for (unsigned n = 0; n < PAGES; n++) {
        if (!page_blank(vm, n)) {
            memset(vm->ram + n * TARGET_PAGE_SIZE, 0, TARGET_PAGE_SIZE);
            ram_block_written(vm->rb, n * TARGET_PAGE_SIZE, TARGET_PAGE_SIZE);
        }
    }
}

static void ram_keep(const Vm *vm)
{
    for (unsigned n = 0; n < PAGES; n++) {
        written[n] = !page_blank(vm, n);
        if (written[n]) {
            memcpy(translated + n * TARGET_PAGE_SIZE, vm->ram + n * TARGET_PAGE_SIZE, TARGET_PAGE_SIZE);
        }
    }
}

static void ram_compare(const Vm *vm)
{
    for (unsigned n = 0; n < PAGES; n++) {
        const uint8_t *was = written[n] ? translated + n * TARGET_PAGE_SIZE : zeros;

        fuzz_check(memcmp(vm->ram + n * TARGET_PAGE_SIZE, was, TARGET_PAGE_SIZE) == 0,
                   "memory differs at page %x", n);
    }
}

static void load(Vm *vm, const FuzzIn *in, unsigned how, uint8_t seed)
{
    bool real = how % 3 == 2;
    uint32_t at = real ? 0x8000 : VM_CODE;

    ram_clear(vm);
    reset_mode(vm, how);
    set_registers(vm->c, seed, real);
    memset(vm->ram + at, 0xf4, CODE_MAX + 16);
    memcpy(vm->ram + at, in->p, MIN(in->left, CODE_MAX));
    ram_block_written(vm->rb, at, CODE_MAX + 16);
    vm->c->rip = at;
    vm->c->tsc_offset = 0;
    tcg_engine_reset(vm->c);
}

static ExitReason go(Vm *vm)
{
    X86CPU *c = vm->c;
    ExitReason r;

    c->tcg->count->bias = -(int64_t)c->tcg->icount;
    c->tcg->random = 1;
    c->tcg->clock_exact = false;
    clock_virtual_set(0);
    timer_mod(&stop, INSNS_MAX);
    stopped = false;
    current_cpu = &c->base;
    atomic_store(&c->base.halted, false);
    patience_set(SECONDS);
    do {
        r = tcg_engine_run(c);
    } while (r == EXIT_REQUEST && !stopped && !given_up);
    patience_set(0);
    current_cpu = NULL;
    timer_del(&stop);
    return r;
}

/* ---- The same? ---- */

#define SAME(_field)                                                                               \
    fuzz_check(memcmp(&a->_field, &b->_field, sizeof(a->_field)) == 0, "%s differs at %llx, %llx", \
               #_field, (unsigned long long)a->rip, (unsigned long long)b->rip)

static void compare(const X86CPU *a, const X86CPU *b)
{
    for (unsigned i = 0; i < 16; i++) {
        fuzz_check(a->regs[i] == b->regs[i], "register %u: %llx, interpreted %llx", i,
                   (unsigned long long)a->regs[i], (unsigned long long)b->regs[i]);
    }
    fuzz_check(a->rip == b->rip, "rip: %llx, interpreted %llx", (unsigned long long)a->rip,
               (unsigned long long)b->rip);
    fuzz_check(x86_get_rflags(a) == x86_get_rflags(b), "flags: %llx, interpreted %llx",
               (unsigned long long)x86_get_rflags(a), (unsigned long long)x86_get_rflags(b));
    SAME(cpl);
    for (unsigned i = 0; i < R_SEG_COUNT; i++) {
        SAME(seg[i].selector);
        SAME(seg[i].attr);
        SAME(seg[i].limit);
        SAME(seg[i].base);
    }
    SAME(cr0);
    SAME(cr2);
    SAME(cr3);
    SAME(cr4);
    SAME(efer);
    SAME(dr);
    SAME(xcr0);
    SAME(mxcsr);
    SAME(ymm);
    SAME(x87.fcw);
    SAME(x87.fsw);
    SAME(x87.ftw);
    SAME(x87.fip);
    SAME(x87.fdp);
    SAME(x87.fop);
    for (unsigned i = 0; i < 8; i++) {
        SAME(x87.st[i].b);
    }
}

static void run(const uint8_t *data, size_t size)
{
    FuzzIn in = { data, size };
    unsigned how = (unsigned)fuzz_take(&in, 1);
    uint8_t seed = (uint8_t)fuzz_take(&in, 1);
    uint64_t counts[2];
    ExitReason ends[2];

    given_up = false;
    for (unsigned n = 0; n < 2; n++) {
        uint64_t before = cpus[n]->c->tcg->icount;

        load(cpus[n], &in, how, seed);
        ends[n] = go(cpus[n]);
        counts[n] = cpus[n]->c->tcg->icount - before;
        if (n == 0) {
            ram_keep(cpus[0]);
        }
    }
    if (given_up) {
        return;
    }
    compare(cpus[0]->c, cpus[1]->c);
    fuzz_check(ends[0] == ends[1] && counts[0] == counts[1],
               "ends by %d after %llu instructions, interpreted by %d after %llu", (int)ends[0],
               (unsigned long long)counts[0], (int)ends[1], (unsigned long long)counts[1]);
    ram_compare(cpus[1]);
}

const FuzzTarget fuzz_programs[] = { { "execute", init, run }, {} };
