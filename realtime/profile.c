/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The profiles of the command line and who asks for a switch: QMP on the control thread, which
 * waits, and the guest on the main loop. The main loop carries out; the control thread does what
 * follows from it and may block.
 */
#include "realtime/profile.h"

#include <glib.h>
#include <string.h>
#include <time.h>

#include "event/event.h"
#include "qapi/qapi.h"
#include "realtime/internal.h"
#include "realtime/latency.h"

/* The main loop answers within an iteration; it may still be starting. */
#define ANSWER_TIMEOUT_NS (10 * NANOSECONDS_PER_SECOND)
#define ANSWER_LOOK_NS    (NANOSECONDS_PER_SECOND / 20)
/* A guest that switches without end gives operators, and the host's idle CPUs, no more than this. */
#define FOLLOW_INTERVAL_NS (NANOSECONDS_PER_SECOND / 10)

static const QemuRealtimeProfile *profiles;
static unsigned profile_count;
static atomic_uint current;
static atomic_bool stopping;

/* What the control thread asks of the main loop; one at a time, as that thread waits. */
typedef enum AskState { ASK_NONE, ASK_PENDING, ASK_RUNNING, ASK_DONE } AskState;
static struct {
    EventPost post;
    _Atomic AskState state;
    unsigned to;
    bool ok;
    RealtimeRefusal why;
    EventWord done;
} ask;

/* What the guest brought about, for the control thread to tell; the newest of each kind counts. */
static EventPost follow_post;
static EventTimer follow_timer; /* control loop */
static int64_t follow_after_ns; /* control thread: not before */
/* 0: it did not; else one more than the QapiRealtimeSource to tell. */
static atomic_uint guest_switched;
static atomic_bool refusal_full; /* refusal is the control thread's to read, then to empty */
static RealtimeRefusal refusal;
static unsigned refusal_to;
static unsigned announced; /* control thread: the profile last told to operators */

unsigned realtime_profile_count(void)
{
    return profile_count;
}

unsigned realtime_profile_current(void)
{
    return atomic_load(&current);
}

const QemuRealtimeProfile *realtime_profile(unsigned n)
{
    return n < profile_count ? &profiles[n] : NULL;
}

int realtime_profile_find(const char *name)
{
    for (unsigned i = 0; i < profile_count; i++) {
        if (!strcmp(profiles[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

uint32_t realtime_latency_warn_us(void)
{
    const QemuRealtimeProfile *p = qemu_realtime_profile();
    return p ? p->latency_warn_us : 0;
}

/* ---- Main loop ---- */

static bool switch_now(unsigned n, RealtimeRefusal *why)
{
    if (!realtime_switch_threads(&profiles[n], why)) {
        return false;
    }
    atomic_store(&current, n);
    return true;
}

static void answer(void *opaque)
{
    AskState pending = ASK_PENDING;

    if (!atomic_compare_exchange_strong(&ask.state, &pending, ASK_RUNNING)) {
        return; /* who asked has given up */
    }
    ask.ok = switch_now(ask.to, &ask.why);
    atomic_store(&ask.state, ASK_DONE);
    event_word_set(&ask.done, 1);
}

bool realtime_profile_set_by_guest(unsigned n, bool reset)
{
    RealtimeRefusal why;

    if (n >= profile_count || atomic_load(&stopping)) {
        return false;
    }
    bool ok = switch_now(n, &why);
    if (ok) {
        atomic_store(&guest_switched, 1u + (reset ? QAPI_REALTIME_SOURCE_RESET : QAPI_REALTIME_SOURCE_GUEST));
    } else if (!atomic_load(&refusal_full)) {
        refusal = why;
        refusal_to = n;
        atomic_store(&refusal_full, true);
    }
    event_post(event_loop_control(), &follow_post);
    return ok;
}

/* ---- Control thread ---- */

static void announce(QapiRealtimeSource source)
{
    unsigned now = atomic_load(&current);

    realtime_watch_reset();
    realtime_host_follow(&profiles[now]);
    latency_set_bound(profiles[now].latency_warn_us);
    if (now != announced) {
        qapi_event_send_realtime_profile_changed(profiles[now].name, profiles[announced].name,
                                                 source);
        announced = now;
    }
}

static void tell_refusal(void)
{
    static bool warned; /* once: the guest can be refused as often as it likes */
    char *text = realtime_refusal_text(&refusal);

    qapi_event_send_realtime_profile_refused(profiles[refusal_to].name, refusal.thread, refusal.tid,
                                             g_strerror(refusal.err), refusal.restored);
    if (!warned) {
        warn_report("realtime-switch: profile '%s': %s", profiles[refusal_to].name, text);
        warned = true;
    }
    g_free(text);
}

static void follow(void *opaque)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME);

    if (now < follow_after_ns) {
        timer_mod(&follow_timer, follow_after_ns);
        return;
    }
    follow_after_ns = now + FOLLOW_INTERVAL_NS;
    unsigned source = atomic_exchange(&guest_switched, 0);

    if (source) {
        announce((QapiRealtimeSource)(source - 1));
    }
    if (atomic_load(&refusal_full)) {
        tell_refusal();
        atomic_store(&refusal_full, false);
    }
}

static int64_t monotonic_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/* Waits for answer(). False: the main loop did not take the request, and will not. */
static bool wait_for_answer(void)
{
    int64_t now = monotonic_ns(), end = now + ANSWER_TIMEOUT_NS;
    AskState pending = ASK_PENDING;

    while (!event_word_wait(&ask.done, now + ANSWER_LOOK_NS)) {
        now = monotonic_ns();
        if ((now > end || atomic_load(&stopping)) &&
            atomic_compare_exchange_strong(&ask.state, &pending, ASK_NONE)) {
            return false;
        }
        pending = ASK_PENDING;
    }
    return true;
}

bool realtime_profile_set(const char *name, Error **errp)
{
    int n = realtime_profile_find(name);

    if (n < 0) {
        GString *names = g_string_new(NULL);

        for (unsigned i = 0; i < profile_count; i++) {
            g_string_append_printf(names, "%s%s", i ? ", " : "", profiles[i].name);
        }
        error_setg(errp, "there is no realtime profile '%s'; the command line has: %s", name,
                   names->len ? names->str : "none (-realtime id=NAME,...)");
        g_string_free(names, TRUE);
        return false;
    }
    ask.to = (unsigned)n;
    event_word_take(&ask.done);
    atomic_store(&ask.state, ASK_PENDING);
    event_post(event_loop_main(), &ask.post);
    if (!wait_for_answer()) {
        error_setg(errp, "the main loop does not answer; the profile in force stays '%s'",
                   profiles[atomic_load(&current)].name);
        return false;
    }
    if (!ask.ok) {
        char *text = realtime_refusal_text(&ask.why);

        error_setg(errp, "realtime profile '%s': %s", name, text);
        g_free(text);
        return false;
    }
    announce(QAPI_REALTIME_SOURCE_MONITOR);
    return true;
}

void qmp_realtime_set_profile(const char *name, Error **errp)
{
    realtime_profile_set(name, errp);
}

/* ---- Start and end ---- */

static void begin(void *opaque)
{
    realtime_host_follow(&profiles[atomic_load(&current)]);
    realtime_watch_start();
}

static EventPost begin_post;

void realtime_profiles_init(const QemuRealtimeProfile *list, unsigned count)
{
    profiles = list;
    profile_count = count;
    atomic_store(&current, 0);
}

void realtime_start(bool kernel_pit)
{
    event_post_init(&ask.post, answer, NULL);
    event_post_init(&follow_post, follow, NULL);
    if (profile_count) {
        timer_init(&follow_timer, event_loop_control(), CLOCK_TYPE_REALTIME, follow, NULL);
        realtime_host_init(kernel_pit);
        event_post_init(&begin_post, begin, NULL);
        event_post(event_loop_control(), &begin_post);
    }
}

void realtime_stop(void)
{
    atomic_store(&stopping, true);
}
