/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run state of the machine. Requests are flags that anybody sets and one posted item that makes
 * the main loop look at them; only the main loop and the control thread change the state.
 */
#include "qemu/runstate.h"

#include "event/event-internal.h"
#include "qemu/thread.h"

#define MAX_LISTENERS 16

static const char *const run_state_names[RUN_STATE_COUNT] = {
    [RUN_STATE_PRELAUNCH] = "prelaunch",
    [RUN_STATE_RUNNING] = "running",
    [RUN_STATE_PAUSED] = "paused",
    [RUN_STATE_SHUTDOWN] = "shutdown",
    [RUN_STATE_INTERNAL_ERROR] = "internal-error",
    [RUN_STATE_GUEST_PANICKED] = "guest-panicked",
    [RUN_STATE_SUSPENDED] = "suspended",
    [RUN_STATE_DEBUG] = "debug",
};

static const char *const cause_names[SHUTDOWN_CAUSE_COUNT] = {
    [SHUTDOWN_CAUSE_NONE] = "none",
    [SHUTDOWN_CAUSE_HOST_ERROR] = "host-error",
    [SHUTDOWN_CAUSE_HOST_QMP_QUIT] = "host-qmp-quit",
    [SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET] = "host-qmp-system-reset",
    [SHUTDOWN_CAUSE_HOST_SIGNAL] = "host-signal",
    [SHUTDOWN_CAUSE_HOST_UI] = "host-ui",
    [SHUTDOWN_CAUSE_GUEST_SHUTDOWN] = "guest-shutdown",
    [SHUTDOWN_CAUSE_GUEST_RESET] = "guest-reset",
    [SHUTDOWN_CAUSE_GUEST_PANIC] = "guest-panic",
};

typedef struct Notifier {
    void (*fn)(void *opaque);
    void *opaque;
} Notifier;

typedef struct Listener {
    void (*fn)(void *opaque, RunState old, RunState now);
    void *opaque;
} Listener;

VmActions vm_actions;
RunStateEvents runstate_events;

static RunStateHooks hooks;
static QemuMutex runstate_lock; /* held while the state changes; guards the transition itself */
static _Atomic int run_state = RUN_STATE_PRELAUNCH;

/* Requests. 0 (none) or the cause; the exit status plus one; the wanted state plus one. */
static _Atomic int reset_wanted, shutdown_wanted, exit_wanted, vmstop_wanted;
static atomic_bool powerdown_wanted, suspend_wanted, wakeup_wanted;
static bool in_wakeup; /* written with vCPUs parked, by the thread that resets */
static EventPost request_post;

static Notifier powerdown_notifiers[MAX_LISTENERS];
static unsigned n_powerdown_notifiers;
static Listener listeners[MAX_LISTENERS];
static unsigned n_listeners;
static int exit_status;

const char *run_state_name(RunState s)
{
    return run_state_names[s];
}

const char *shutdown_cause_name(ShutdownCause c)
{
    return cause_names[c];
}

RunState runstate_get(void)
{
    return atomic_load(&run_state);
}

bool runstate_is_running(void)
{
    return runstate_get() == RUN_STATE_RUNNING;
}

bool runstate_devices_run(void)
{
    RunState s = runstate_get();

    return s == RUN_STATE_RUNNING || s == RUN_STATE_SUSPENDED;
}

bool runstate_is_wakeup(void)
{
    return in_wakeup;
}

/* ---- Requests ---- */

static void notice(void)
{
    if (event_loop_main()) {
        event_post(event_loop_main(), &request_post);
    }
}

static void request(_Atomic int *what, int value)
{
    int none = 0;

    atomic_compare_exchange_strong(what, &none, value);
    notice();
}

void qemu_system_reset_request(ShutdownCause cause)
{
    request(&reset_wanted, cause);
}

void qemu_system_shutdown_request(ShutdownCause cause)
{
    request(&shutdown_wanted, cause);
}

void qemu_system_exit_request(int status)
{
    request(&exit_wanted, status + 1);
}

void qemu_system_vmstop_request(RunState s)
{
    request(&vmstop_wanted, s + 1);
}

void qemu_system_powerdown_request(void)
{
    atomic_store(&powerdown_wanted, true);
    notice();
}

void qemu_system_suspend_request(void)
{
    atomic_store(&suspend_wanted, true);
    notice();
}

void qemu_system_wakeup_request(void)
{
    atomic_store(&wakeup_wanted, true);
    notice();
}

void qemu_register_powerdown_notifier(void (*fn)(void *opaque), void *opaque)
{
    if (n_powerdown_notifiers < MAX_LISTENERS) {
        powerdown_notifiers[n_powerdown_notifiers++] = (Notifier){ fn, opaque };
    }
}

void runstate_add_listener(void (*fn)(void *opaque, RunState old, RunState now), void *opaque)
{
    if (n_listeners < MAX_LISTENERS) {
        listeners[n_listeners++] = (Listener){ fn, opaque };
    }
}

/* ---- Changes ---- */

static void runstate_set(RunState now)
{
    RunState old = atomic_exchange(&run_state, now);

    if (now == RUN_STATE_SUSPENDED) {
        suspend_time_begin();
    } else if (old == RUN_STATE_SUSPENDED) {
        suspend_time_end();
    }
    for (unsigned i = 0; i < n_listeners; i++) {
        listeners[i].fn(listeners[i].opaque, old, now);
    }
}

static void call(void (*fn)(void))
{
    if (fn) {
        fn();
    }
}

/* True if it was running. A suspended machine stays that, unless it comes to its end. */
static bool stop_machine(RunState s)
{
    bool was_running;

    {
        QEMU_LOCK_GUARD(&runstate_lock);
        was_running = runstate_is_running();
        if (runstate_get() == RUN_STATE_SUSPENDED && s != RUN_STATE_PAUSED) {
            clock_virtual_stop();
        }
        if (was_running) {
            hooks.pause_all();
            clock_virtual_stop();
            if (hooks.run_state_change) {
                hooks.run_state_change(false);
            }
        }
        if (was_running || s == RUN_STATE_SHUTDOWN || s == RUN_STATE_INTERNAL_ERROR) {
            runstate_set(s);
        }
    }
    return was_running;
}

void vm_stop(RunState s)
{
    if (stop_machine(s)) {
        call(runstate_events.stop);
    }
}

void vm_shutdown(void)
{
    stop_machine(RUN_STATE_SHUTDOWN);
}

NO_TSA void runstate_hold(void)
{
    qemu_mutex_lock(&runstate_lock);
}

NO_TSA void runstate_release(void)
{
    qemu_mutex_unlock(&runstate_lock);
}

static bool needs_reset(RunState s)
{
    return s == RUN_STATE_SHUTDOWN || s == RUN_STATE_INTERNAL_ERROR ||
           s == RUN_STATE_GUEST_PANICKED;
}

bool vm_start(Error **errp)
{
    {
        QEMU_LOCK_GUARD(&runstate_lock);
        if (runstate_devices_run()) {
            return true;
        }
        if (needs_reset(runstate_get())) {
            error_setg(errp, "Resetting the Virtual Machine is required");
            return false;
        }
        runstate_set(RUN_STATE_RUNNING);
        if (hooks.run_state_change) {
            hooks.run_state_change(true);
        }
        clock_virtual_start();
    }
    /* Before the vCPUs go on, so that a client sees RESUME before anything the guest causes. */
    call(runstate_events.resume);
    hooks.resume_all();
    if (atomic_load(&suspend_wanted)) {
        notice(); /* it asked just before it was paused */
    }
    return true;
}

static void do_reset(ShutdownCause cause)
{
    bool was_running;

    {
        QEMU_LOCK_GUARD(&runstate_lock);
        was_running = runstate_devices_run();
        hooks.pause_all();
        hooks.reset();
        atomic_store(&suspend_wanted, false);
        if (runstate_get() == RUN_STATE_SUSPENDED) {
            runstate_set(RUN_STATE_RUNNING);
        }
        if (needs_reset(runstate_get())) {
            runstate_set(RUN_STATE_PAUSED);
        }
    }
    if (runstate_events.reset) {
        runstate_events.reset(shutdown_caused_by_guest(cause), cause);
    }
    if (was_running && runstate_is_running()) {
        hooks.resume_all();
    }
}

static void do_suspend(void)
{
    {
        QEMU_LOCK_GUARD(&runstate_lock);
        if (!runstate_is_running()) {
            return; /* vm_start() brings it up again */
        }
        atomic_store(&suspend_wanted, false);
        atomic_store(&wakeup_wanted, false);
        hooks.pause_all();
        runstate_set(RUN_STATE_SUSPENDED);
    }
    call(runstate_events.suspend);
}

static void do_wakeup(void)
{
    {
        QEMU_LOCK_GUARD(&runstate_lock);
        if (runstate_get() != RUN_STATE_SUSPENDED) {
            return;
        }
        in_wakeup = true;
        hooks.reset();
        in_wakeup = false;
        runstate_set(RUN_STATE_RUNNING);
    }
    call(runstate_events.wakeup);
    hooks.resume_all();
}

static void do_shutdown(ShutdownCause cause)
{
    if (runstate_events.shutdown) {
        runstate_events.shutdown(shutdown_caused_by_guest(cause), cause);
    }
    /* A signal, or the monitor's quit, ends the process whatever -no-shutdown says. */
    if (vm_actions.shutdown_is_pause && cause != SHUTDOWN_CAUSE_HOST_SIGNAL &&
        cause != SHUTDOWN_CAUSE_HOST_QMP_QUIT) {
        vm_stop(RUN_STATE_SHUTDOWN);
        return;
    }
    event_loop_stop(event_loop_main());
}

static void do_powerdown(void)
{
    call(runstate_events.powerdown);
    for (unsigned i = 0; i < n_powerdown_notifiers; i++) {
        powerdown_notifiers[i].fn(powerdown_notifiers[i].opaque);
    }
}

/* The main loop, after at least one request. */
static void requests_run(void *opaque)
{
    int v;

    if ((v = atomic_exchange(&exit_wanted, 0))) {
        exit_status = v - 1;
        event_loop_stop(event_loop_main());
        return;
    }
    if ((v = atomic_exchange(&vmstop_wanted, 0))) {
        vm_stop(v - 1);
    }
    if ((v = atomic_exchange(&shutdown_wanted, 0))) {
        do_shutdown(v);
    }
    if ((v = atomic_exchange(&reset_wanted, 0))) {
        if (vm_actions.reboot_is_shutdown) {
            do_shutdown(v);
        } else {
            do_reset(v);
        }
    }
    if (atomic_load(&suspend_wanted)) {
        do_suspend();
    }
    if (atomic_exchange(&powerdown_wanted, false)) {
        do_powerdown();
    }
    if (atomic_exchange(&wakeup_wanted, false)) {
        do_wakeup();
    }
}

void runstate_init(const RunStateHooks *h)
{
    hooks = *h;
    qemu_mutex_init(&runstate_lock, LOCK_RANK_RUNSTATE, "run state");
    event_post_init(&request_post, requests_run, NULL);
    suspend_time_init();
    clock_virtual_stop();
    /* A signal may have come before the loop was there. */
    notice();
}

int runstate_main_loop(void)
{
    event_loop_run(event_loop_main());
    return exit_status;
}
