/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A look once a second, on the control thread: did something outside (chrt, libvirt, a cpuset)
 * change a thread, and does the host's limit on realtime threads hold one up? Both are told and
 * nothing is undone.
 */
#include <glib.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "event/event.h"
#include "qapi/qapi.h"
#include "realtime/internal.h"

#define WATCH_INTERVAL_NS   NANOSECONDS_PER_SECOND
#define THROTTLED_EVENT_NS  (10 * NANOSECONDS_PER_SECOND)

/* What is kept of a thread between two looks. */
typedef struct Seen {
    int tid;
    bool alive;         /* at the present look */
    QemuCpuSet began;   /* affinity at the first look: kept where no profile sets one */
    bool told;          /* `last` was */
    QemuSched last;
    int64_t run, delay; /* ns; -1: not read */
} Seen;

static EventTimer watch_timer;
static GHashTable *seen_threads; /* tid -> Seen */
static int64_t last_look_ns;
static int64_t throttled_seen, throttled_event_ns;
static int throttled_tid;

/* ---- Changes from outside ---- */

static Seen *seen_find(int tid)
{
    return seen_threads ? g_hash_table_lookup(seen_threads, GINT_TO_POINTER(tid)) : NULL;
}

static Seen *seen_get(const RealtimeThread *t)
{
    Seen *s = seen_find(t->tid);

    if (!s) {
        s = g_new0(Seen, 1);
        s->tid = t->tid;
        s->began = t->now.affinity;
        s->run = s->delay = -1;
        g_hash_table_insert(seen_threads, GINT_TO_POINTER(t->tid), s);
    }
    return s;
}

bool realtime_thread_changed(const RealtimeThread *t)
{
    const Seen *s = seen_find(t->tid);

    if (!t->asked) {
        return false;
    }
    if (t->now.policy != t->want.policy || t->now.priority != t->want.priority) {
        return true;
    }
    if (t->want.affinity_known) {
        return !qemu_cpu_set_equal(&t->now.affinity, &t->want.affinity);
    }
    return s && !qemu_cpu_set_equal(&t->now.affinity, &s->began);
}

static bool same(const QemuSched *a, const QemuSched *b)
{
    return a->policy == b->policy && a->priority == b->priority &&
           qemu_cpu_set_equal(&a->affinity, &b->affinity);
}

static void look_for_change(Seen *s, const RealtimeThread *t)
{
    if (!realtime_thread_changed(t)) {
        s->told = false;
    } else if (!s->told || !same(&s->last, &t->now)) {
        realtime_thread_report(t);
        s->told = true;
        s->last = t->now;
    }
}

/* ---- The host's limit ---- */

static int64_t read_number(const char *path, int64_t otherwise)
{
    char *text = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL)) {
        otherwise = g_ascii_strtoll(text, NULL, 10);
    }
    g_free(text);
    return otherwise;
}

void realtime_throttling_limit(int64_t *runtime_us, int64_t *period_us)
{
    *runtime_us = read_number("/proc/sys/kernel/sched_rt_runtime_us", -1);
    *period_us = read_number("/proc/sys/kernel/sched_rt_period_us", 1000000);
}

void realtime_throttling(int64_t *seen, int *last_tid)
{
    *seen = throttled_seen;
    *last_tid = throttled_tid;
}

/* What realtime threads of ours did on one host CPU since the last look. */
typedef struct CpuLoad {
    int64_t run, held; /* ns; held: the longest wait of a thread that was always ready */
    const RealtimeThread *thread;
} CpuLoad;

static int last_cpu_of(int tid)
{
    char path[64], *text = NULL;
    int cpu = -1;

    g_snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        char **words = g_strsplit(strrchr(text, ')') ? strrchr(text, ')') + 2 : "", " ", -1);
        /* Field 39 is the CPU; the first of these is field 3. */
        if (g_strv_length(words) > 36) {
            cpu = atoi(words[36]);
        }
        g_strfreev(words);
    }
    g_free(text);
    return cpu;
}

static void add_load(Seen *s, const RealtimeThread *t, int64_t elapsed, GHashTable *cpus)
{
    int64_t run = -1, delay = -1;
    bool first = s->run < 0;
    bool is_rt = t->now.policy == SCHED_FIFO || t->now.policy == SCHED_RR;

    if (t->cls == THREAD_HELPER || !is_rt || !realtime_schedstat(t->tid, &run, &delay)) {
        s->run = s->delay = -1;
        return;
    }
    int64_t ran = run - s->run, waited = delay - s->delay;
    s->run = run;
    s->delay = delay;
    if (first || ran < elapsed / 100) {
        return; /* it slept */
    }
    gpointer key = GINT_TO_POINTER(last_cpu_of(t->tid) + 1);
    CpuLoad *load = g_hash_table_lookup(cpus, key);
    if (!load) {
        load = g_new0(CpuLoad, 1);
        g_hash_table_insert(cpus, key, load);
    }
    load->run += ran;
    if (ran + waited > elapsed / 100 * 95 && waited > load->held) {
        load->held = waited;
        load->thread = t;
    }
}

/*
 * A thread was ready all the time, and realtime threads together had just the share of the CPU that
 * the limit leaves them: the rest went to others although they were ready.
 */
static void judge(const CpuLoad *load, int64_t elapsed)
{
    int64_t runtime, period, now = clock_get_ns(CLOCK_TYPE_REALTIME);

    realtime_throttling_limit(&runtime, &period);
    if (!load->thread || runtime < 0 || period <= 0 || runtime >= period) {
        return;
    }
    double share = (double)runtime / (double)period, got = (double)load->run / (double)elapsed;
    double slack = (1 - share) / 2;
    if (got > share + slack || got < share - slack ||
        (double)load->held < (double)elapsed * slack) {
        return;
    }
    throttled_seen++;
    throttled_tid = load->thread->tid;
    if (!throttled_event_ns || now - throttled_event_ns > THROTTLED_EVENT_NS) {
        throttled_event_ns = now;
        qapi_event_send_realtime_throttled(throttled_tid, load->thread->name, load->held / 1000,
                                           runtime, period, throttled_seen);
    }
}

/* ---- The look ---- */

static gboolean forget_dead(gpointer key, gpointer value, gpointer opaque)
{
    Seen *s = value;
    bool dead = !s->alive;

    s->alive = false;
    return dead;
}

static void look(void)
{
    GArray *threads = realtime_threads();
    GHashTable *cpus = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME), elapsed = now - last_look_ns;
    GHashTableIter iter;
    gpointer load;

    last_look_ns = now;
    for (guint i = 0; i < threads->len; i++) {
        const RealtimeThread *t = &g_array_index(threads, RealtimeThread, i);
        Seen *s = seen_get(t);

        s->alive = true;
        look_for_change(s, t);
        add_load(s, t, elapsed, cpus);
    }
    g_hash_table_iter_init(&iter, cpus);
    while (g_hash_table_iter_next(&iter, NULL, &load)) {
        judge(load, elapsed);
    }
    g_hash_table_foreach_remove(seen_threads, forget_dead, NULL);
    g_hash_table_unref(cpus);
    g_array_unref(threads);
}

static void on_timer(void *opaque)
{
    look();
    timer_mod(&watch_timer, clock_get_ns(CLOCK_TYPE_REALTIME) + WATCH_INTERVAL_NS);
}

static void forget_told(gpointer key, gpointer value, gpointer opaque)
{
    Seen *s = value;

    s->told = false;
    s->run = s->delay = -1;
}

void realtime_watch_reset(void)
{
    if (seen_threads) {
        g_hash_table_foreach(seen_threads, forget_told, NULL);
    }
}

void realtime_watch_start(void)
{
    seen_threads = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    timer_init(&watch_timer, event_loop_control(), CLOCK_TYPE_REALTIME, on_timer, NULL);
    look();
    timer_mod(&watch_timer, clock_get_ns(CLOCK_TYPE_REALTIME) + WATCH_INTERVAL_NS);
}
