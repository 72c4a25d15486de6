/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run state of the machine and the requests that change it. Anybody may request (RT_SAFE); the
 * main loop carries out: it parks the vCPUs, resets or exits. Implemented in event/runstate.c, which
 * reaches the layers above it through RunStateHooks.
 */
#ifndef QEMU_RUNSTATE_H
#define QEMU_RUNSTATE_H

#include "qemu/compiler.h"
#include "qemu/error.h"

/* Names as in QMP's RunState. */
typedef enum RunState {
    RUN_STATE_PRELAUNCH,
    RUN_STATE_RUNNING,
    RUN_STATE_PAUSED,
    RUN_STATE_SHUTDOWN,
    RUN_STATE_INTERNAL_ERROR,
    RUN_STATE_GUEST_PANICKED,
    RUN_STATE_SUSPENDED,
    RUN_STATE_DEBUG,
    RUN_STATE_COUNT
} RunState;

/* Names as in QMP's ShutdownCause. */
typedef enum ShutdownCause {
    SHUTDOWN_CAUSE_NONE,
    SHUTDOWN_CAUSE_HOST_ERROR,
    SHUTDOWN_CAUSE_HOST_QMP_QUIT,
    SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET,
    SHUTDOWN_CAUSE_HOST_SIGNAL,
    SHUTDOWN_CAUSE_HOST_UI,
    SHUTDOWN_CAUSE_GUEST_SHUTDOWN,
    SHUTDOWN_CAUSE_GUEST_RESET,
    SHUTDOWN_CAUSE_GUEST_PANIC,
    SHUTDOWN_CAUSE_COUNT
} ShutdownCause;

const char *run_state_name(RunState s);
const char *shutdown_cause_name(ShutdownCause c);
static inline bool shutdown_caused_by_guest(ShutdownCause c)
{
    return c >= SHUTDOWN_CAUSE_GUEST_SHUTDOWN;
}

/* RT_SAFE. */
RunState runstate_get(void);
bool runstate_is_running(void);
/* The same, or suspended to RAM: devices work, virtual time runs. */
bool runstate_devices_run(void);

/* RT_SAFE requests; carried out by the main loop soon after. The first cause of a kind wins. */
void qemu_system_reset_request(ShutdownCause cause);
void qemu_system_shutdown_request(ShutdownCause cause);
/* isa-debug-exit and the like: end the process with this status. */
void qemu_system_exit_request(int status);
/* The ACPI power button. */
void qemu_system_powerdown_request(void);
/*
 * Suspend to RAM: the vCPUs are parked, devices and virtual time go on. A wake-up, which counts in
 * that state only, resets the machine without what a power-on does to memory, and starts it.
 */
void qemu_system_suspend_request(void);
void qemu_system_wakeup_request(void);
/* In reset handlers: this reset is a wake-up from suspend to RAM. */
bool runstate_is_wakeup(void);
/* From a vCPU: stop the machine in state s (debugger, internal error). */
void qemu_system_vmstop_request(RunState s);
/* The device that turns the power button into an event for the guest. Start-up. */
void qemu_register_powerdown_notifier(void (*fn)(void *opaque), void *opaque);

/*
 * HELPER_ONLY or the main loop. Stop: every vCPU is parked when it returns; virtual time stands.
 * Start: `cont`; error in states that need a reset first.
 */
void vm_stop(RunState s);
/* The same at the end of the process: no STOP event. */
void vm_shutdown(void);
bool vm_start(Error **errp);

/*
 * HELPER_ONLY. No stop, start, suspend, wake-up or reset in between, for a bounded piece of work: the
 * main loop may wait for it. The lock has rank RUNSTATE.
 */
void runstate_hold(void);
void runstate_release(void);

/* Names as in QMP's WatchdogAction. */
typedef enum WatchdogAction {
    WATCHDOG_ACTION_RESET,
    WATCHDOG_ACTION_SHUTDOWN,
    WATCHDOG_ACTION_POWEROFF,
    WATCHDOG_ACTION_INJECT_NMI,
    WATCHDOG_ACTION_PAUSE,
    WATCHDOG_ACTION_DEBUG,
    WATCHDOG_ACTION_NONE,
} WatchdogAction;

/* -no-reboot, -no-shutdown, -action. */
typedef struct VmActions {
    bool reboot_is_shutdown;
    bool shutdown_is_pause;
    bool panic_is_pause, panic_is_none, panic_is_exit_failure;
    bool watchdog_set;
    WatchdogAction watchdog;
} VmActions;
extern VmActions vm_actions;

/* Called when the state changes, on the thread that changes it, vCPUs parked. Start-up. */
void runstate_add_listener(void (*fn)(void *opaque, RunState old, RunState now), void *opaque);

/* Events for monitors: set by monitor/; called on the main loop's thread. May be NULL. */
typedef struct RunStateEvents {
    void (*stop)(void);
    void (*resume)(void);
    void (*reset)(bool guest, ShutdownCause cause);
    void (*shutdown)(bool guest, ShutdownCause cause);
    void (*powerdown)(void);
    void (*suspend)(void);
    void (*wakeup)(void);
} RunStateEvents;
extern RunStateEvents runstate_events;

/* What lies in higher layers. Set by vl.c before the first request. */
typedef struct RunStateHooks {
    void (*pause_all)(void);  /* returns with every vCPU parked */
    void (*resume_all)(void);
    void (*reset)(void);      /* vCPUs parked: CPUs and devices to power-on state */
    void (*run_state_change)(bool running); /* optional: the accelerator's hook */
} RunStateHooks;

/* Main loop, start-up: connects the requests to the loop. */
void runstate_init(const RunStateHooks *hooks);
/* Runs the main loop until the process is to end; returns the exit status. */
int runstate_main_loop(void);

#endif
