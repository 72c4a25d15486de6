/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms, and the latency that threads record about themselves. */
#include <glib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "realtime/latency.h"

/* ---- Histograms ---- */

static void test_buckets(void)
{
    g_assert_cmpuint(histogram_low(0), ==, 0);
    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t low = histogram_low(i), high = histogram_high(i);

        g_assert_cmpuint(low, <=, high);
        g_assert_cmpuint(histogram_low(i + 1), ==, high + 1); /* no gap, no overlap */
        g_assert_cmpuint(histogram_index(low), ==, i);
        g_assert_cmpuint(histogram_index(high), ==, i);
        /* The middle is near both ends. */
        double middle = (double)(low + (high - low) / 2);
        if (low) {
            g_assert_cmpfloat(((double)high - middle) / (double)high, <=, 0.032);
            g_assert_cmpfloat((middle - (double)low) / (double)low, <=, 0.032);
        }
    }
    g_assert_cmpuint(histogram_index(100 * UINT64_C(1000000000)), <, HISTOGRAM_BUCKETS);
    g_assert_cmpuint(histogram_index(UINT64_MAX), ==, HISTOGRAM_BUCKETS - 1);
    g_assert_cmpuint(histogram_low(HISTOGRAM_BUCKETS - 1), <=, (uint64_t)HISTOGRAM_MAX_NS);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Percentiles against those of the sorted values themselves, on several distributions. */
static void test_percentiles(void)
{
    enum { N = 20000 };
    static const unsigned points[] = { 1, 50000, 90000, 99000, 99900, 99990, 100000 };
    static uint64_t v[N];
    GRand *rand = g_rand_new_with_seed(42);

    for (unsigned shape = 0; shape < 3; shape++) {
        Histogram *h = g_new0(Histogram, 1);
        HistogramView view;
        uint64_t sum = 0;

        for (unsigned i = 0; i < N; i++) {
            double u = g_rand_double_range(rand, 1e-9, 1);
            v[i] = shape == 0 ? (uint64_t)(u * 1e6) : shape == 1 ? (uint64_t)(1000 / u)
                                                                 : 5000 + (i == 7) * 90000000;
            sum += v[i];
            histogram_record(h, v[i]);
        }
        qsort(v, N, sizeof(v[0]), compare);
        histogram_read(h, &view);
        g_assert_cmpuint(view.count, ==, N);
        g_assert_cmpuint(view.sum, ==, sum);
        g_assert_cmpuint(view.max, ==, v[N - 1]);
        for (unsigned p = 0; p < ARRAY_SIZE(points); p++) {
            uint64_t rank = ((uint64_t)N * points[p] + 99999) / 100000;
            double want = (double)v[MAX(rank, 1) - 1];
            double got = (double)histogram_percentile(&view, points[p]);
            g_assert_cmpfloat(got, >=, want * 0.968 - 1);
            g_assert_cmpfloat(got, <=, want * 1.032 + 1);
        }
        g_free(h);
    }
    g_rand_free(rand);
}

static void test_reset(void)
{
    Histogram *h = g_new0(Histogram, 1);
    HistogramView base, v;

    histogram_read(h, &v);
    g_assert_cmpuint(histogram_percentile(&v, 50000), ==, 0);
    for (unsigned i = 0; i < 100; i++) {
        histogram_record(h, 1000000);
    }
    histogram_reset(h, &base);
    histogram_read(h, &v);
    histogram_subtract(&v, &base);
    g_assert_cmpuint(v.count, ==, 0);
    g_assert_cmpuint(v.max, ==, 0);
    histogram_record(h, 10);
    histogram_read(h, &v);
    histogram_subtract(&v, &base);
    g_assert_cmpuint(v.count, ==, 1);
    g_assert_cmpuint(v.sum, ==, 10);
    g_assert_cmpuint(v.max, ==, 10);
    g_assert_cmpuint(histogram_percentile(&v, 99990), ==, 10);
    g_free(h);
}

static atomic_bool writer_done;

static void *writer(void *arg)
{
    Histogram *h = arg;
    for (unsigned i = 0; i < 300000; i++) {
        histogram_record(h, i & 1023);
    }
    atomic_store(&writer_done, true);
    return NULL;
}

/* A reader meanwhile sees counts that only grow, and in the end all of them. */
static void test_concurrent(void)
{
    Histogram *h = g_new0(Histogram, 1);
    HistogramView v;
    QemuThread t;
    uint64_t last = 0;

    atomic_store(&writer_done, false);
    g_assert_true(qemu_thread_create(&t, "writer", THREAD_HELPER, writer, h, &error_abort));
    do {
        histogram_read(h, &v);
        g_assert_cmpuint(v.count, >=, last);
        last = v.count;
    } while (!atomic_load(&writer_done));
    qemu_thread_join(&t);
    histogram_read(h, &v);
    g_assert_cmpuint(v.count, ==, 300000);
    g_assert_cmpuint(v.max, ==, 1023);
    g_free(h);
}

/* ---- A thread's own ---- */

static LatencyReport last_report;
static unsigned reports;

static void on_report(const LatencyReport *r)
{
    last_report = *r;
    reports++;
}

static HistogramView view;

static const HistogramView *own(unsigned kind)
{
    latency_view(latency_self, kind, &view);
    return &view;
}

static void spend(unsigned us)
{
    uint64_t start = latency_ticks();
    while (latency_ticks_to_ns(latency_ticks() - start) < us * UINT64_C(1000)) {
    }
}

static void test_clock(void)
{
    struct timespec a, b;

    latency_init();
    clock_gettime(CLOCK_MONOTONIC, &a);
    uint64_t t = latency_ticks();
    g_usleep(20000);
    uint64_t ns = latency_ticks_to_ns(latency_ticks() - t);
    clock_gettime(CLOCK_MONOTONIC, &b);
    int64_t real = (b.tv_sec - a.tv_sec) * NANOSECONDS_PER_SECOND + b.tv_nsec - a.tv_nsec;
    /* The pairs are not read at once: only the inner one is surely shorter. */
    g_assert_cmpfloat((double)ns, <=, (double)real * 1.001);
    g_assert_cmpuint(ns, >=, 20000000 * 0.999);
}

static void test_exit(void)
{
    latency_reset();
    latency_entry(); /* not out: nothing to record */
    latency_exit(LATENCY_EXIT_IO);
    spend(200);
    latency_entry();
    latency_entry();
    g_assert_cmpuint(own(LATENCY_EXIT_IO)->count, ==, 1);
    g_assert_cmpuint(view.max, >=, 200000);
    /* Sleep is not counted, the time after it is, and for the last reason. */
    latency_exit(LATENCY_EXIT_REQUEST);
    latency_exit(LATENCY_EXIT_HALT);
    g_usleep(50000);
    latency_wake();
    spend(100);
    latency_entry();
    g_assert_cmpuint(own(LATENCY_EXIT_REQUEST)->count, ==, 0);
    g_assert_cmpuint(own(LATENCY_EXIT_HALT)->count, ==, 1);
    g_assert_cmpuint(view.max, >=, 100000);
    g_assert_cmpuint(histogram_percentile(&view, 50000), <, 50000000);
    latency_wake(); /* not out */
    latency_entry();
    g_assert_cmpuint(own(LATENCY_EXIT_HALT)->count, ==, 1);
}

static void test_sampling(void)
{
    latency_reset();
    latency_self->sample_left = LATENCY_SAMPLE;
    for (unsigned i = 0; i < 10 * LATENCY_SAMPLE; i++) {
        latency_sample_end(LATENCY_EXIT_MMIO, latency_sample_begin());
    }
    g_assert_cmpuint(own(LATENCY_EXIT_MMIO)->count, ==, 10);
    /* With a bound none may be missed. */
    latency_set_bound(1000000);
    latency_self->sample_left = 1;
    for (unsigned i = 0; i < 100; i++) {
        latency_sample_end(LATENCY_EXIT_IO, latency_sample_begin());
    }
    latency_set_bound(0);
    g_assert_cmpuint(own(LATENCY_EXIT_IO)->count, ==, 100);
}

static void test_bound(void)
{
    latency_reset();
    g_usleep(120000); /* past the interval of the last report */
    reports = 0;
    latency_set_bound(500);
    latency_exit(LATENCY_EXIT_MMIO);
    latency_entry();
    g_assert_cmpuint(reports, ==, 0);
    for (unsigned i = 0; i < 3; i++) {
        latency_exit(LATENCY_EXIT_MMIO);
        spend(600);
        latency_entry();
    }
    g_assert_cmpuint(reports, ==, 1); /* the rate is limited */
    g_assert_cmpuint(last_report.kind, ==, LATENCY_EXIT_MMIO);
    g_assert_cmpuint(last_report.ns, >=, 600000);
    g_assert_cmpint(last_report.holder, ==, 0);
    g_assert_true(last_report.thread == latency_self);
    g_usleep(120000);
    /* From a signal handler: told by the next entry. */
    latency_timer_local(700000);
    g_assert_cmpuint(reports, ==, 1);
    latency_exit(LATENCY_EXIT_REQUEST);
    latency_entry();
    g_assert_cmpuint(reports, ==, 2);
    g_assert_cmpuint(last_report.kind, ==, LATENCY_TIMER_LOCAL);
    g_assert_cmpuint(last_report.ns, ==, 700000);
    g_assert_cmpuint(last_report.missed, ==, 2);
    g_usleep(120000);
    latency_timer(499999);
    g_assert_cmpuint(reports, ==, 2);
    latency_timer(500000);
    g_assert_cmpuint(reports, ==, 3);
    latency_timer(-5);
    g_assert_cmpuint(own(LATENCY_TIMER)->count, ==, 3);
    latency_set_bound(0);
    latency_exit(LATENCY_EXIT_MMIO);
    spend(600);
    latency_entry();
    g_assert_cmpuint(reports, ==, 3);
}

/* ---- Locks ---- */

typedef struct Holder {
    QemuMutex *m;
    EventWord held;
    int tid;
} Holder;

static void *hold(void *opaque)
{
    Holder *h = opaque;

    latency_thread_register(-1);
    qemu_mutex_lock(h->m);
    h->tid = (int)syscall(SYS_gettid);
    event_word_set(&h->held, 1);
    g_usleep(20000);
    qemu_mutex_unlock(h->m);
    g_usleep(20000); /* its name can be looked up */
    latency_thread_unregister();
    return NULL;
}

/* as_exit: the wait is part of an exit. */
static void contend(QemuMutex *m, Holder *h, bool as_exit)
{
    QemuThread t;

    *h = (Holder){ .m = m };
    g_assert_true(qemu_thread_create(&t, "the holder", THREAD_HELPER, hold, h, &error_abort));
    event_word_wait(&h->held, INT64_MAX);
    if (as_exit) {
        latency_exit(LATENCY_EXIT_IO);
    }
    qemu_mutex_lock(m);
    qemu_mutex_unlock(m);
    if (as_exit) {
        latency_entry();
    }
    qemu_thread_join(&t);
}

static void test_lock(void)
{
    QemuMutex m, leaf;
    Holder h;
    unsigned kind = LATENCY_LOCK + LATENCY_RANK_DEVICE;

    qemu_mutex_init(&m, LOCK_RANK_DEVICE, "a device");
    qemu_mutex_init(&leaf, LOCK_RANK_LEAF, "a leaf");
    latency_reset();
    qemu_mutex_lock(&m); /* free: costs nothing, counts nothing */
    qemu_mutex_unlock(&m);
    g_assert_cmpuint(own(kind)->count, ==, 0);
    contend(&m, &h, false);
    g_assert_cmpuint(own(kind)->count, ==, 1);
    g_assert_cmpuint(view.max, >=, 10000000);
    g_assert_cmpstr(latency_kind_group(kind), ==, "lock");
    g_assert_cmpstr(latency_kind_name(kind), ==, "DEVICE");

    g_usleep(120000);
    reports = 0;
    latency_set_bound(5000);
    contend(&m, &h, false);
    g_assert_cmpuint(reports, ==, 1);
    g_assert_cmpuint(last_report.kind, ==, kind);
    g_assert_cmpint(last_report.holder, ==, h.tid);
    g_assert_cmpstr(last_report.holder_name, ==, "the holder");
    /* The event's own ring is such a lock: counted, not told. */
    g_usleep(120000);
    contend(&leaf, &h, false);
    g_assert_cmpuint(own(LATENCY_LOCK + LATENCY_RANK_LEAF)->count, ==, 1);
    g_assert_cmpuint(reports, ==, 1);
    /* An exit that was mostly that wait names its holder too. */
    contend(&leaf, &h, true);
    g_assert_cmpuint(reports, ==, 2);
    g_assert_cmpuint(last_report.kind, ==, LATENCY_EXIT_IO);
    g_assert_cmpint(last_report.holder, ==, h.tid);
    latency_set_bound(0);
    qemu_mutex_destroy(&m);
    qemu_mutex_destroy(&leaf);
}

/* ---- Threads ---- */

static void count_thread(ThreadLatency *l, void *opaque)
{
    ++*(unsigned *)opaque;
    g_assert_cmpint(atomic_load(&l->tid), !=, 0);
}

static void *short_life(void *arg)
{
    unsigned n = 0;

    latency_thread_register(3);
    latency_thread_register(4); /* again does nothing */
    g_assert_cmpint(latency_self->cpu_index, ==, 3);
    g_assert_cmpstr(latency_self->name, ==, "short");
    g_assert_cmpuint(own(LATENCY_LOOP)->count, ==, 0); /* nothing of its forerunner */
    latency_loop_end(latency_loop_begin());
    g_assert_cmpuint(own(LATENCY_LOOP)->count, ==, 1);
    latency_foreach(count_thread, &n);
    g_assert_cmpuint(n, ==, 2);
    latency_thread_unregister();
    return NULL;
}

static void test_threads(void)
{
    QemuThread t;
    unsigned n = 0;

    for (unsigned i = 0; i < 600; i++) { /* more than there are places */
        g_assert_true(qemu_thread_create(&t, "short", THREAD_HELPER, short_life, NULL,
                                         &error_abort));
        qemu_thread_join(&t);
    }
    latency_foreach(count_thread, &n);
    g_assert_cmpuint(n, ==, 1);
}

static void test_names(void)
{
    GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (unsigned k = 0; k < LATENCY_KINDS; k++) {
        char *name = g_strdup_printf("%s/%s", latency_kind_group(k), latency_kind_name(k));
        g_assert_true(g_hash_table_add(seen, name));
    }
    g_hash_table_unref(seen);
}

int main(int argc, char **argv)
{
    QemuThread self;

    g_test_init(&argc, &argv, NULL);
    g_assert_true(qemu_thread_adopt_self(&self, "test", THREAD_HELPER, &error_abort));
    latency_init();
    latency_set_reporter(on_report);
    latency_thread_register(-1);
    g_test_add_func("/latency/buckets", test_buckets);
    g_test_add_func("/latency/percentiles", test_percentiles);
    g_test_add_func("/latency/reset", test_reset);
    g_test_add_func("/latency/concurrent", test_concurrent);
    g_test_add_func("/latency/clock", test_clock);
    g_test_add_func("/latency/exit", test_exit);
    g_test_add_func("/latency/sampling", test_sampling);
    g_test_add_func("/latency/bound", test_bound);
    g_test_add_func("/latency/lock", test_lock);
    g_test_add_func("/latency/threads", test_threads);
    g_test_add_func("/latency/names", test_names);
    return g_test_run();
}
