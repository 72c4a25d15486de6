/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Local APICs: timer, x2APIC, the page, state, many threads. */
#include "apic-test.h"

/* ---- Timer ---- */

static unsigned fired(unsigned i, uint8_t vector)
{
    if (!(rd(i, IRR + (vector >> 5 << 4)) & BIT(vector & 31))) {
        return 0;
    }
    g_assert_cmphex(ops->cpu_ack(cpu(i)), ==, vector);
    wr(i, EOI, 0);
    return 1;
}

static void test_timer(void)
{
    unsigned n = 0;

    restart();
    wr(1, TDCR, 0xb); /* by 1: nanoseconds */
    wr(1, LVTT, 0x90);
    wr(1, TMICT, 100000);
    step_ns(99000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 1000);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);
    step_ns(1000);
    g_assert_cmpuint(fired(1, 0x90), ==, 1);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    step_ns(1000000);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);

    wr(1, TDCR, 0x3); /* by 16 */
    wr(1, TMICT, 1000);
    step_ns(15999);
    g_assert_cmpuint(fired(1, 0x90), ==, 0);
    g_assert_cmpuint(rd(1, TMCCT), ==, 1);
    step_ns(1);
    g_assert_cmpuint(fired(1, 0x90), ==, 1);

    wr(1, LVTT, 0x20091); /* periodic */
    wr(1, TDCR, 0xb);
    wr(1, TMICT, 50000);
    for (unsigned i = 0; i < 1000; i++) {
        step_ns(50000);
        n += fired(1, 0x91);
    }
    g_assert_cmpuint(n, ==, 1000);
    step_ns(20000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 30000);
    /* Periodic to one-shot: goes on from where it is, once. */
    wr(1, LVTT, 0x91);
    g_assert_cmpuint(rd(1, TMCCT), ==, 30000);
    step_ns(30000);
    g_assert_cmpuint(fired(1, 0x91), ==, 1);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    wr(1, LVTT, 0x20091); /* and stays at 0 */
    step_ns(200000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    /* Masked: it counts, without interrupt; 0 stops it. */
    wr(1, LVTT, 0x30091);
    wr(1, TMICT, 1000);
    step_ns(500);
    g_assert_cmpuint(rd(1, TMCCT), ==, 500);
    step_ns(5000);
    wr(1, LVTT, 0x20091);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    wr(1, TMICT, 0);
    step_ns(100000);
    g_assert_cmpuint(rd(1, TMCCT), ==, 0);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    /* A change of the divider keeps the count. */
    wr(1, LVTT, 0x91);
    wr(1, TMICT, 1000);
    step_ns(400);
    wr(1, TDCR, 0x0);
    g_assert_cmpuint(rd(1, TMCCT), ==, 600);
    step_ns(1199);
    g_assert_cmpuint(fired(1, 0x91), ==, 0);
    step_ns(1);
    g_assert_cmpuint(fired(1, 0x91), ==, 1);
}

/* A period no host can serve does not keep it busy. */
static void test_timer_storm(void)
{
    restart();
    wr(1, TDCR, 0xb);
    wr(1, LVTT, 0x20092);
    wr(1, TMICT, 1);
    step_ns(1000000);
    g_assert_cmpuint(fired(1, 0x92), ==, 1);
    wr(1, TMICT, 0);
}

static void test_tsc_deadline(void)
{
    restart();
    ops->tsc_deadline_set(cpu(1), 1); /* not in this mode: ignored */
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    wr(1, LVTT, 0x40093);
    wr(1, TMICT, 1000);
    g_assert_cmpuint(rd(1, TMICT), ==, 0);
    ops->tsc_deadline_set(cpu(1), x86_tsc_read(&cpus[1]) - 1); /* past: at once */
    g_assert_cmpuint(fired(1, 0x93), ==, 1);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    ops->tsc_deadline_set(cpu(1), UINT64_MAX);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, UINT64_MAX);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    wr(1, LVTT, 0x93); /* a change of mode disarms */
    wr(1, LVTT, 0x40093);
    g_assert_cmpuint(ops->tsc_deadline_get(cpu(1)), ==, 0);
    ops->tsc_deadline_set(cpu(1), UINT64_MAX);
    ops->tsc_deadline_set(cpu(1), 0);
    ops->tsc_deadline_set(cpu(1), x86_tsc_read(&cpus[1]) + 20000);
    step_ns(9990);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    step_ns(20);
    g_assert_cmpuint(fired(1, 0x93), ==, 1);
    step_ns(100000);
    g_assert_cmpuint(fired(1, 0x93), ==, 0);
    g_assert_cmpint(ops->timer_deadline(cpu(1)), ==, INT64_MAX);
}

/* An armed timer is looked at again when the machine goes on. */
static void test_resume(void)
{
    restart();
    runstate_notify(RUN_STATE_RUNNING);
    g_assert_cmphex(who(CPU_REQ_TIMER), ==, BIT(N) - 1);
}

/* ---- x2APIC ---- */

#define EN  0x800ull
#define EXT 0x400ull

static void test_base(void)
{
    static const struct {
        uint64_t from, to;
        bool ok;
    } t[] = {
        { EN, EN | EXT, true },       { EN, 0, true },   { EN, EXT, false },
        { EN | EXT, EN, false },      { EN | EXT, 0, true }, { EN | EXT, EXT, false },
        { 0, EN | EXT, false },       { 0, EN, true },   { 0, EXT, false },
        { EN | EXT, EN | EXT, true },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
        restart();
        if (t[i].from & EXT) {
            g_assert_true(ops->base_set(cpu(1), 0xfee00000 | EN | EXT));
        } else {
            g_assert_true(ops->base_set(cpu(1), 0xfee00000 | t[i].from));
        }
        g_assert_true(ops->base_set(cpu(1), 0xfee00000 | t[i].to) == t[i].ok);
        g_assert_cmphex(ops->base_get(cpu(1)), ==, 0xfee00000 | (t[i].ok ? t[i].to : t[i].from));
    }
    restart();
    g_assert_false(ops->base_set(cpu(1), 0xfee00000 | EN | 1)); /* reserved */
    g_assert_false(ops->base_set(cpu(1), 1ull << 40 | EN));     /* beyond MAXPHYADDR */
    g_assert_true(ops->base_set(cpu(1), 0xfec10000 | EN));
    g_assert_cmphex(ops->base_get(cpu(0)), ==, 0xfee00000 | EN | 0x100);
    /* A disabled one gets nothing, and comes back as after reset. */
    wr(2, TPR, 0x40);
    wr(2, ID, 9u << 24);
    g_assert_true(ops->base_set(cpu(2), 0xfee00000));
    ipi(0, 2, 0x66);
    ipi(0, 9, 0x4400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(9));
    g_assert_cmphex(ops->tpr_get(cpu(2)), ==, 4); /* CR8 works on */
    g_assert_true(ops->base_set(cpu(2), 0xfee00000 | EN));
    g_assert_cmphex(rd(2, SVR), ==, 0xff);
    g_assert_cmphex(rd(2, ID), ==, 2u << 24);
    /* No x2APIC in this processor. */
    cpus[3].feat[FEAT_1_ECX] = 0;
    restart();
    g_assert_false(ops->base_set(cpu(3), 0xfee00000 | EN | EXT));
    cpus[3].feat[FEAT_1_ECX] = BIT(21);
    restart();
}

static bool msr_ok(uint32_t msr)
{
    uint64_t v;

    return ops->msr_read(cpu(1), msr, &v);
}

static void test_x2apic(void)
{
    uint64_t v;
    unsigned readable = 0;

    restart();
    g_assert_false(msr_ok(0x802)); /* not in this mode */
    g_assert_false(ops->msr_write(cpu(1), 0x808, 0));
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(ops->base_set(cpu(i), ops->base_get(cpu(i)) | EXT));
    }
    g_assert_true(ops->msr_read(cpu(18), 0x802, &v));
    g_assert_cmphex(v, ==, 18);
    g_assert_true(ops->msr_read(cpu(18), 0x80d, &v));
    g_assert_cmphex(v, ==, 0x00010004);
    for (uint32_t msr = 0x800; msr < 0x900; msr++) {
        readable += msr_ok(msr);
    }
    /* ID, version, TPR, PPR, LDR, SVR, 24 of ISR TMR IRR, ESR, ICR, 6 LVT, 2 counts, divider. */
    g_assert_cmpuint(readable, ==, 6 + 24 + 2 + 6 + 3);
    g_assert_false(msr_ok(0x80b));
    g_assert_false(msr_ok(0x80e));
    g_assert_false(msr_ok(0x831));
    g_assert_false(msr_ok(0x83f));
    g_assert_false(ops->msr_write(cpu(1), 0x802, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x80d, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x839, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x820, 0));
    g_assert_false(ops->msr_write(cpu(1), 0x80b, 1)); /* EOI takes 0 only */
    g_assert_true(ops->msr_write(cpu(1), 0x80b, 0));
    g_assert_false(ops->msr_write(cpu(1), 0x828, 1));
    g_assert_false(ops->msr_write(cpu(1), 0x808, 0x100));
    g_assert_false(ops->msr_write(cpu(1), 0x80f, 0x2ff));
    g_assert_false(ops->msr_write(cpu(1), 0x808, 1ull << 32));
    g_assert_false(ops->msr_write(cpu(1), 0x830, 0x2000));

    g_assert_true(ops->msr_write(cpu(1), 0x83f, 0x45)); /* self IPI */
    g_assert_true(ops->msr_read(cpu(1), 0x822, &v));
    g_assert_cmphex(v, ==, 0x20);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x45);
    g_assert_true(ops->msr_write(cpu(1), 0x80b, 0));

    g_assert_true(ops->msr_write(cpu(1), 0x830, 17ull << 32 | 0x4400));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(17));
    g_assert_true(ops->msr_read(cpu(1), 0x830, &v));
    g_assert_cmphex(v, ==, 17ull << 32 | 0x4400);
    /* Logical: cluster 1, members 0 and 3; cluster 0, member 15. */
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0x10009ull << 32 | 0xc00));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(16) | BIT(19));
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0x08000ull << 32 | 0xc00));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(15));
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0xffffffffull << 32 | 0x400));
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(N) - 1);
    g_assert_true(ops->msr_write(cpu(1), 0x830, 0xffull << 32 | 0x400)); /* no broadcast here */
    g_assert_cmphex(who(CPU_REQ_NMI), ==, 0);
    /* 8-bit messages reach the first cluster. */
    ops->send_msi(0xfee05000, 0x400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(5));
    ops->send_msi(0xfee84004, 0x400);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(2) | BIT(7));
    /* INIT stays in this mode. */
    ops->cpu_reset(cpu(4), true);
    g_assert_cmphex(ops->base_get(cpu(4)) & (EN | EXT), ==, EN | EXT);
}

/* ---- The page ---- */

static void test_page(void)
{
    static MemoryRegion mr;

    restart();
    apic_mmio_init(&mr);
    memory_region_add_subregion(memory_root(), 0xfee00000, &mr, 0);
    current_cpu = cpu(2);
    g_assert_cmphex(address_space_load(&address_space_memory, 0xfee00020, 4), ==, 2u << 24);
    address_space_store(&address_space_memory, 0xfee00080, 0x70, 4);
    g_assert_cmphex(rd(2, TPR), ==, 0x70);
    address_space_store(&address_space_memory, 0xfee03000, 0x400, 4);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(3));
    g_assert_true(ops->base_set(cpu(2), 0xfee00000)); /* off: nobody answers */
    g_assert_cmphex(address_space_load(&address_space_memory, 0xfee00020, 4), ==, UINT32_MAX);
    address_space_store(&address_space_memory, 0xfee00080, 0x400, 4);
    current_cpu = NULL;
    address_space_store(&address_space_memory, 0xfee04000, 0x400, 4);
    g_assert_cmphex(who(CPU_REQ_NMI), ==, BIT(4));
    memory_region_del_subregion(memory_root(), &mr);
}

static void test_state(void)
{
    uint8_t *a = NULL, *b = NULL;
    size_t alen = 0, blen = 0;

    restart();
    wr(1, LDR, 0x02000000);
    wr(1, TPR, 0x20);
    wr(1, LVTT, 0x20094);
    wr(1, TMICT, 123456);
    ipi(0, 1, 0x80);
    ops->cpu_ack(cpu(1));
    ipi(0, 1, 0x81);
    vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu(1)), &a, &alen);
    ops->cpu_reset(cpu(1), false);
    take_requests(1);
    ipi(0, 2, 0x844);
    g_assert_cmphex(who_got(0x44), ==, 0);
    g_assert_true(vmstate_load(&apic_vmstate, apic_vmstate_opaque(cpu(1)), a, alen, NULL,
                               &error_abort));
    vmstate_save(&apic_vmstate, apic_vmstate_opaque(cpu(1)), &b, &blen);
    g_assert_cmpmem(a, alen, b, blen);
    g_assert_true(take_requests(1) & CPU_REQ_INTERRUPT);
    wr(1, EOI, 0);
    g_assert_cmphex(ops->cpu_ack(cpu(1)), ==, 0x81);
    wr(1, EOI, 0);
    wr(1, TPR, 0);
    take_requests(1);
    ipi(0, 2, 0x844); /* the destination tables are back, too */
    g_assert_cmphex(who_got(0x44), ==, BIT(1));
    g_free(a);
    g_free(b);
}

/* ---- Threads ---- */

#define SENDERS 3
#define IPIS    100000

static _Atomic unsigned received, sent;

static void *sender(void *opaque)
{
    unsigned me = GPOINTER_TO_UINT(opaque);

    for (unsigned i = 0; i < IPIS; i++) {
        ipi(me, 1, 0x40 + me); /* its own vector: each waits until the last was seen */
        atomic_fetch_add(&sent, 1);
        while (rd(1, IRR + 0x20) & BIT(me)) {
            g_thread_yield();
        }
    }
    return NULL;
}

/* The receiver looks only after a request: one that is lost hangs the test. */
static void *receiver(void *opaque)
{
    while (atomic_load(&received) < SENDERS * IPIS) {
        int vector;

        if (!(take_requests(1) & CPU_REQ_INTERRUPT)) {
            g_thread_yield();
            continue;
        }
        while ((vector = ops->cpu_ack(cpu(1))) >= 0) {
            wr(1, EOI, 0);
            atomic_fetch_add(&received, 1);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    GThread *t[SENDERS + 1];

    restart();
    t[SENDERS] = g_thread_new("receiver", receiver, NULL);
    for (unsigned i = 0; i < SENDERS; i++) {
        t[i] = g_thread_new("sender", sender, GUINT_TO_POINTER(i + 2));
    }
    for (unsigned i = 0; i <= SENDERS; i++) {
        g_thread_join(t[i]);
    }
    g_assert_cmpuint(received, ==, SENDERS * IPIS);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    apic_test_init();
    g_test_add_func("/apic/timer", test_timer);
    g_test_add_func("/apic/timer-storm", test_timer_storm);
    g_test_add_func("/apic/tsc-deadline", test_tsc_deadline);
    g_test_add_func("/apic/resume", test_resume);
    g_test_add_func("/apic/base", test_base);
    g_test_add_func("/apic/x2apic", test_x2apic);
    g_test_add_func("/apic/page", test_page);
    g_test_add_func("/apic/state", test_state);
    g_test_add_func("/apic/threads", test_threads);
    return g_test_run();
}
