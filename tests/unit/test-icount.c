/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accel/tcg: -icount. Instructions are counted exactly, by the interpreter and by translated code;
 * timers run at their instruction; whoever reads the clock finds its own instruction's time. CPU 0
 * translates, CPU 1, made when the first is done, interprets.
 */
#include <glib.h>
#include <pthread.h>
#include <string.h>
#include "accel/accel.h"
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "event/event.h"
#include "interp-vm.h"
#include "qemu/guest-random.h"
#include "target/i386/cpuid.h"

#define SHIFT 3
#define MMIO  0xe00000u

static Vm *vm;
static X86CPU *c;
static bool translated;

#define R(r) (c->regs[R_##r])

static void setup(void)
{
    tcg_jit_enabled = translated;
    vm = vm_cpu(translated ? 0 : 1);
    c = vm->c;
    vm_reset_long(vm);
    accel_icount.sleep = false;
}

/* Code that got hot must have been translated, or nothing was shown. */
static void check_translated(void)
{
    if (translated) {
        g_assert_cmpuint(c->tcg->jit->stat.translated, >, 0);
        g_assert_cmpuint(c->tcg->jit->stat.entries, >, 0);
    } else {
        g_assert_null(c->tcg->jit);
    }
}

/* Virtual time of the next instruction. */
static int64_t now_ns(void)
{
    return c->tcg->count->bias + (int64_t)(c->tcg->icount << SHIFT);
}

/* ---- Timers run at exactly their instruction ---- */

#define LOOPS 200000

static struct {
    EventTimer t;
    uint64_t begin; /* icount */
    int64_t begin_ns, due_ns;
    unsigned runs;
} shot;

static void shot_arm(int64_t due_ns)
{
    shot.due_ns = due_ns;
    timer_mod(&shot.t, shot.begin_ns + due_ns);
}

static void shot_fn(void *opaque)
{
    uint64_t n = c->tcg->icount - shot.begin;

    /* The first instruction whose end is not before the time. */
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, shot.begin_ns + shot.due_ns);
    g_assert_cmpuint(n, ==, ((uint64_t)shot.due_ns + (1u << SHIFT) - 1) >> SHIFT);
    /* The loop of four: what it has done so far. */
    g_assert_cmpuint(R(RAX), ==, (n + 3) / 4);
    g_assert_cmpuint(R(RBX), ==, (n + 2) / 4);
    shot.runs++;
    if (n < 3 * LOOPS) {
        shot_arm(shot.due_ns + 1 + 13 * shot.runs);
    }
}

CODE(count_loop, "1: inc %rax; inc %rbx; dec %rcx; jnz 1b");
static void test_timers(void)
{
    setup();
    R(RCX) = LOOPS;
    shot.runs = 0;
    shot.begin = c->tcg->icount;
    shot.begin_ns = now_ns();
    timer_init(&shot.t, event_loop_main(), CLOCK_TYPE_VIRTUAL, shot_fn, NULL);
    shot_arm(1);
    RUN(count_loop);
    g_assert_cmpuint(shot.runs, >, 500);
    g_assert_cmpuint(R(RAX), ==, LOOPS);
    g_assert_cmpuint(c->tcg->icount - shot.begin, ==, 4 * LOOPS + 1);
    timer_fini(&shot.t);
    check_translated();
}

/* ---- Who reads the clock ---- */

CODE(tsc_loop, "1: rdtsc; shl $32, %rdx; or %rdx, %rax; mov %rax, %r8; nop;"
               "rdtsc; shl $32, %rdx; or %rdx, %rax; sub %r8, %rax;"
               "add %rax, %rbx; dec %rcx; jnz 1b");
static void test_tsc(void)
{
    setup();
    R(RCX) = 1000;
    RUN(tsc_loop);
    /* Five instructions each time, at 1 GHz. */
    g_assert_cmpuint(c->tsc_khz, ==, 1000000);
    g_assert_cmpuint(R(RBX), ==, 1000 * (5 << SHIFT));
    check_translated();
}

static uint64_t mmio_read(void *opaque, hwaddr offset, unsigned size)
{
    return (uint64_t)clock_get_ns(CLOCK_TYPE_VIRTUAL);
}

static void mmio_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
}

static void mmio_map(void)
{
    static const MemoryRegionOps ops = { .read = mmio_read, .write = mmio_write, .valid_max = 8,
                                         .impl_max = 8 };
    static MemoryRegion mr;

    if (!mr.size) {
        memory_region_init_io(&mr, &ops, NULL, "clock", 4096);
        memory_region_add_subregion(memory_root(), MMIO, &mr, 1);
    }
}

CODE(mmio_loop, "1: nop; mov (%rsi), %rax; nop; nop; add (%rsi), %rbx; sub %rax, %rbx;"
                "dec %rcx; jnz 1b");
static void test_mmio(void)
{
    setup();
    R(RCX) = 1000;
    R(RSI) = MMIO;
    RUN(mmio_loop);
    g_assert_cmpuint(R(RBX), ==, 1000 * (3 << SHIFT));
    check_translated();
}

/* ---- Blocks that are left early ---- */

CODE(fault, "nop; nop; mov (%rax), %rbx; nop; nop");
static void test_fault(void)
{
    for (unsigned k = 0; k < 50; k++) {
        uint64_t n;

        setup();
        n = c->tcg->icount;
        R(RAX) = 0x8000000000000000;
        g_assert_cmpint(RUN(fault).vector, ==, EXCP_GP);
        /* Two NOPs, then the handler's two. */
        g_assert_cmpuint(c->tcg->icount - n, ==, 4);
    }
}

/* Stores to its own code what is there already. */
CODE(own_code, "mov 2f(%rip), %al; 1: mov %al, 2f(%rip); nop; 2: inc %rbx; dec %rcx; jnz 1b");
static void test_own_code(void)
{
    uint64_t n;

    setup();
    n = c->tcg->icount;
    R(RCX) = 500;
    RUN(own_code);
    g_assert_cmpuint(R(RBX), ==, 500);
    g_assert_cmpuint(c->tcg->icount - n, ==, 1 + 500 * 5 + 1);
}

/* Kicked all the time, as by signals: a repeated instruction stops half way and goes on, and counts
 * once. */
static void *kick_thread(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
        atomic_store(&c->base.exit_request, 1);
    }
    return NULL;
}

CODE(repeat, "1: mov %r8, %rdi; mov $40000, %ecx; rep stosb; dec %rbx; jnz 1b");
static void test_repeat(void)
{
    atomic_bool stop = false;
    pthread_t kicker;
    uint64_t n;

    setup();
    n = c->tcg->icount;
    R(RBX) = 1000;
    R(R8) = VM_DATA + 100;
    pthread_create(&kicker, NULL, kick_thread, &stop);
    RUN(repeat);
    atomic_store(&stop, true);
    pthread_join(kicker, NULL);
    g_assert_cmpuint(c->tcg->icount - n, ==, 1000 * 5 + 1);
}

/* ---- Halted ---- */

static void note_fn(void *opaque)
{
    *(int64_t *)opaque = clock_get_ns(CLOCK_TYPE_VIRTUAL);
}

CODE(halts, "nop");
static void test_halt(void)
{
    static EventTimer t;
    int64_t when = 0, due, mono;

    setup();
    timer_init(&t, event_loop_main(), CLOCK_TYPE_VIRTUAL, note_fn, &when);
    due = now_ns() + 3600 * NANOSECONDS_PER_SECOND;
    timer_mod(&t, due);
    RUN(halts); /* back when no timer is left */
    g_assert_cmpint(when, ==, due);
    g_assert_cmpint(now_ns(), ==, due);

    accel_icount.sleep = true;
    due = now_ns() + (2 << SHIFT) + 50000000;
    timer_mod(&t, due);
    mono = clock_get_ns(CLOCK_TYPE_REALTIME);
    RUN(halts); /* back at once, to be called again when it is time */
    g_assert_cmpint(tcg_engine_run(c), ==, EXIT_HALT);
    g_assert_true(when == due || tcg_count_deadline(c) - mono >= 50000000);
    /* Never early. On a host that is busy it may be over already. */
    g_assert_true(when != due || clock_get_ns(CLOCK_TYPE_REALTIME) - mono >= 50000000);
    while (clock_get_ns(CLOCK_TYPE_REALTIME) < mono + 50000000 || when != due) {
        g_usleep(1000);
        tcg_engine_run(c);
        g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME) - mono, <, 20 * NANOSECONDS_PER_SECOND);
    }
    g_assert_cmpint(tcg_count_deadline(c), ==, INT64_MAX);
    timer_fini(&t);
}

/* ---- RDRAND ---- */

CODE(draw, "stc; rdrand %rax; setc %cl; rdseed %rbx; rdrand %dx; pushf; pop %rsi");
static void test_random(void)
{
    uint64_t first[3], state;

    setup();
    /* These come from the seed, whatever the host has. */
    c->feat[FEAT_1_ECX] |= CPUID_1_ECX_RDRAND;
    c->feat[FEAT_7_0_EBX] |= CPUID_7_0_EBX_RDSEED;
    g_assert_true(guest_random_seed(c->base.index, &state));
    for (unsigned k = 0; k < 2; k++) {
        setup();
        c->tcg->random = state;
        R(RDX) = 0x123456789abcdef0;
        RUN(draw);
        g_assert_cmphex(R(RCX), ==, 1);
        g_assert_cmphex(R(RSI) & FL_ARITH, ==, FL_CF);
        g_assert_cmphex(R(RDX) >> 16, ==, 0x123456789abc);
        g_assert_cmphex(R(RAX), !=, R(RBX));
        if (k) {
            g_assert_true(first[0] == R(RAX) && first[1] == R(RBX) && first[2] == R(RDX));
        }
        first[0] = R(RAX);
        first[1] = R(RBX);
        first[2] = R(RDX);
    }
}

static void add_tests(const char *prefix)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } tests[] = {
        { "timers", test_timers }, { "tsc", test_tsc },         { "mmio", test_mmio },
        { "fault", test_fault },   { "own-code", test_own_code }, { "repeat", test_repeat },
        { "halt", test_halt },     { "random", test_random },
    };

    for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
        char *path = g_strdup_printf("/icount/%s/%s", prefix, tests[i].name);

        g_test_add_func(path, tests[i].fn);
        g_free(path);
    }
}

static void use_interpreter(void)
{
    translated = false;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    event_loop_set_main(event_loop_new("main", &error_abort));
    accel_icount = (AccelIcount){ .enabled = true, .shift = SHIFT };
    guest_random_fix(7);
    translated = true;
    setup();
    mmio_map();
    add_tests("translated");
    g_test_add_func("/icount/interpreted/begin", use_interpreter);
    add_tests("interpreted");
    return g_test_run();
}
