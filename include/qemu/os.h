/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the process asks of its host: scheduling and locked memory once at start-up, background,
 * pid file, signals. Implemented in os-posix.c and os-win32.c. HELPER_ONLY, start-up and exit.
 */
#ifndef QEMU_OS_H
#define QEMU_OS_H

#include "qemu/compiler.h"
#include "qemu/error.h"

typedef enum MemLock {
    MEM_LOCK_OFF,
    MEM_LOCK_ON_FAULT, /* each page when it is first used */
    MEM_LOCK_ON,       /* all of it, now and in future */
} MemLock;

struct QemuRealtimeProfile;

/* The result of -realtime and -overcommit; see realtime/options.h. */
typedef struct RealtimeConfig {
    /* Of the most demanding profile: what the host must permit, also one that waits. */
    bool enabled;     /* maxprio was given: policy and max_priority are meant */
    int policy;       /* SCHED_RR or SCHED_FIFO */
    int max_priority; /* 2..99: EVENT threads; VCPU threads get one less */
    MemLock mem_lock;
    /* For warnings only. */
    unsigned vcpus;        /* host CPUs that realtime vCPUs can fill */
    bool mem_merge_wanted; /* -machine mem-merge=on; filled by the caller */
    /* The first is in force at start. None: enabled with policy and max_priority is all there is. */
    const struct QemuRealtimeProfile *profiles;
    unsigned profile_count;
} RealtimeConfig;

/*
 * The first thing in main(): a closed standard descriptor becomes /dev/null, so that no file, socket
 * or pid file gets its number, and with it what is printed; writing beyond the host's limit of file
 * sizes is an error (EFBIG) and no signal; big buffers go back to the host when they are freed.
 */
void os_init_early(void);

/*
 * Does what -realtime asks for: checks everything first (policy, permission, cgroup, seccomp,
 * RLIMIT_MEMLOCK, free memory), warns of what will disturb, then locks memory and records policy
 * and priority, so that every thread made from now on has them. Call it after os_daemonize()
 * (locks do not survive fork()), before RAM is made and before the first thread. bytes_needed is
 * what the process will still map: RAM, ROM, video RAM, stacks, headroom. On failure nothing is
 * changed, and errp's message says what was refused, the limit in force and how to lift it.
 */
bool os_prioritize(const RealtimeConfig *cfg, uint64_t bytes_needed, Error **errp);
/* What os_prioritize() locked. With it, guest RAM is not merged (KSM) and not given to children. */
MemLock os_memory_locked(void);
/* Bytes the kernel says are locked now; 0 if it does not say. */
uint64_t os_locked_bytes(void);
/* The same of those that are mapped. */
uint64_t os_mapped_bytes(void);
/* Does RLIMIT_AS let the process map so much more? HELPER_ONLY. */
bool os_check_address_space(uint64_t bytes_needed, Error **errp);

/*
 * -daemonize. Returns in the background process; the command's own process waits until
 * os_setup_post(), then exits with status 0, or with 1 when this process ends before. Messages
 * still go to the command's stderr. Before any thread is made.
 */
bool os_daemonize(Error **errp);
bool os_is_daemonized(void);
/* The machine is ready: lets the command return, detaches from the terminal and its directory. */
bool os_setup_post(Error **errp);

/*
 * Start-up. From os_startup_begin() (after os_setup_signals() and os_daemonize()) to
 * os_startup_done() a termination signal, or the end of the command of -daemonize, ends the process
 * at once with status 1, wherever the first thread waits: files made are removed, and one line says
 * why, and while what. The first thread. On failure errp says what the host refused.
 */
bool os_startup_begin(Error **errp);
/* What is under way now, as it follows "while": "waiting for a client of X". */
void os_startup_step(const char *fmt, ...) QEMU_PRINTF(1, 2);
/* From here on, signals are the main loop's. Does not return if the end has begun. */
void os_startup_done(void);
/* fn, async-signal-safe, hands the terminal back; called at such an end, on another thread. */
void os_at_startup_end(void (*fn)(void));
/*
 * Ends the process with status 1 from a signal handler on any thread: prints the line text (with its
 * newline), hands the terminal back, removes the files of os_remove_at_exit(). Async-signal-safe.
 */
QEMU_NORETURN void os_end_at_once(const char *text);

/*
 * Files that go when the process ends, however start-up went. Whoever makes one holds the lock from
 * before it is there until os_remove_at_exit() has been told. Any thread but VCPU and EVENT ones
 * of a running machine.
 */
void os_files_lock(void);
void os_files_unlock(void);
void os_remove_at_exit(const char *path); /* with the lock */
void os_remove_now(const char *path);     /* without it; only if it is on the list */

/* Writes the pid to path and locks it while the process lives; removed by os_cleanup(). */
bool os_create_pidfile(const char *path, Error **errp);
/* Names the process as the kernel shows it (-name process=). At most 15 bytes are shown. */
void os_set_proc_name(const char *name);

/*
 * SIGINT, SIGTERM and SIGHUP call fn, which must be async-signal-safe, on the first thread;
 * SIGPIPE is ignored.
 */
void os_setup_signals(void (*fn)(void));
/* Reports to the operator which signal ended the machine, if one did. */
void os_report_termination(void);

void os_set_line_buffering(void);
/* Removes the pid file; also run by exit(). */
void os_cleanup(void);

#endif
