/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start-up can be ended at any time. Much of it waits: for a client, for a FIFO's other end, for a
 * name server, for gigabytes to be locked. So what ends it is a thread of its own, which waits for
 * a termination signal and for the end of the command of -daemonize, removes what was made, and
 * ends the process, whatever the first thread is in the midst of.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "os-internal.h"
#include "qemu/file.h"
#include "qemu/os.h"
#include "qemu/thread.h"

enum { STARTUP_NONE, STARTUP_UNDER_WAY, STARTUP_DONE, STARTUP_ENDING };

static _Atomic int startup_state = STARTUP_NONE;
static int wake_fd = -1;
static QemuThread startup_thread;

/* Guards what follows. The thread that ends start-up keeps it, so that nothing is made any more. */
static QemuMutex files_lock;
static char startup_step[256];
static GPtrArray *files; /* of char *: made by this process */
static pid_t files_owner;

static void (*_Atomic restore_terminal)(void);

static void __attribute__((constructor)) files_lock_init(void)
{
    qemu_mutex_init(&files_lock, LOCK_RANK_LEAF, "files to remove");
}

/* ---- Files ---- */

void os_files_lock(void) NO_TSA
{
    qemu_mutex_lock(&files_lock);
}

void os_files_unlock(void) NO_TSA
{
    qemu_mutex_unlock(&files_lock);
}

static void files_remove_locked(void)
{
    /* A child has the list too, but not the files. */
    if (!files || files_owner != getpid()) {
        return;
    }
    for (unsigned i = 0; i < files->len; i++) {
        unlink(files->pdata[i]);
    }
    g_ptr_array_set_size(files, 0);
}

static void files_remove(void)
{
    os_files_lock();
    files_remove_locked();
    os_files_unlock();
}

void os_remove_at_exit(const char *path)
{
    if (!files) {
        files = g_ptr_array_new_with_free_func(g_free);
        atexit(files_remove);
    }
    if (files_owner != getpid()) {
        g_ptr_array_set_size(files, 0);
        files_owner = getpid();
    }
    g_ptr_array_add(files, g_canonicalize_filename(path, NULL));
}

void os_remove_now(const char *path)
{
    g_autofree char *full = g_canonicalize_filename(path, NULL);

    os_files_lock();
    for (unsigned i = 0; files && files_owner == getpid() && i < files->len; i++) {
        if (strcmp(files->pdata[i], full) == 0) {
            unlink(full);
            g_ptr_array_remove_index_fast(files, i);
            break;
        }
    }
    os_files_unlock();
}

/* ---- The end of a start-up ---- */

void os_at_startup_end(void (*fn)(void))
{
    atomic_store(&restore_terminal, fn);
}

static const char *signal_name(int sig)
{
    return sig == SIGINT ? "SIGINT" : sig == SIGHUP ? "SIGHUP" : "SIGTERM";
}

static QEMU_NORETURN void startup_end(bool command_gone)
{
    struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
    void (*restore)(void) = atomic_load(&restore_terminal);

    os_files_lock(); /* for good */
    files_remove_locked();
    startup_files_undo_locked();
    if (restore) {
        restore();
    }
    /* A full pipe must not hold up the end. */
    if (poll(&err, 1, 0) == 1 && (err.revents & POLLOUT)) {
        if (command_gone) {
            error_report("-daemonize: the command that started it ended while %s", startup_step);
        } else {
            error_report("terminated by signal %s while %s", signal_name(os_termination_signal()),
                         startup_step);
        }
    }
    _exit(1);
}

/* Whoever holds the lock does not hold it for long, unless it is the thread that is interrupted. */
static bool files_lock_soon(void) TRY_ACQUIRE(true, files_lock);
static NO_TSA bool files_lock_soon(void)
{
    const struct timespec nap = { .tv_nsec = 1000000 };

    for (int i = 0; i < 100; i++) {
        if (qemu_mutex_trylock(&files_lock)) {
            return true;
        }
        nanosleep(&nap, NULL);
    }
    return false;
}

void os_end_at_once(const char *text) NO_TSA
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
    void (*restore)(void) = atomic_load(&restore_terminal);

    if (atomic_flag_test_and_set(&ending)) {
        for (;;) {
            pause(); /* another thread is at it */
        }
    }
    if (restore) {
        restore();
    }
    if (poll(&err, 1, 0) == 1 && (err.revents & POLLOUT) &&
        write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* Nobody else to tell. */
    }
    if (files_lock_soon() && files && files_owner == getpid()) {
        for (unsigned i = 0; i < files->len; i++) {
            unlink(files->pdata[i]);
        }
    }
    _exit(1);
}

static void *startup_watch(void *opaque)
{
    struct pollfd p[] = {
        { .fd = wake_fd, .events = POLLIN },
        { .fd = os_command_fd(), .events = 0 }, /* POLLERR: nobody reads */
    };

    while (atomic_load(&startup_state) != STARTUP_DONE) {
        int under_way = STARTUP_UNDER_WAY;

        if (poll(p, ARRAY_SIZE(p), -1) > 0 &&
            atomic_compare_exchange_strong(&startup_state, &under_way, STARTUP_ENDING)) {
            startup_end(p[1].revents != 0 && !os_termination_signal());
        }
    }
    return NULL;
}

void os_startup_signalled(void)
{
    const uint64_t one = 1;

    if (atomic_load(&startup_state) == STARTUP_UNDER_WAY &&
        write(wake_fd, &one, sizeof(one)) < 0) {
        /* Its counter is full: it is awake. */
    }
}

void os_startup_step(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    os_files_lock();
    vsnprintf(startup_step, sizeof(startup_step), fmt, ap);
    os_files_unlock();
    va_end(ap);
}

bool os_startup_begin(Error **errp)
{
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        error_setg_errno(errp, errno, "cannot make an event descriptor");
        return false;
    }
    os_startup_step("starting");
    atomic_store(&startup_state, STARTUP_UNDER_WAY);
    if (os_termination_signal()) {
        os_startup_signalled();
    }
    return qemu_thread_create(&startup_thread, "startup", THREAD_HELPER, startup_watch, NULL, errp);
}

void os_startup_done(void)
{
    const uint64_t one = 1;
    int under_way = STARTUP_UNDER_WAY;

    if (atomic_load(&startup_state) == STARTUP_NONE) {
        return;
    }
    if (!atomic_compare_exchange_strong(&startup_state, &under_way, STARTUP_DONE)) {
        for (;;) {
            pause(); /* the end is under way */
        }
    }
    if (write(wake_fd, &one, sizeof(one)) < 0) {
        /* Its counter is full: it is awake. */
    }
    qemu_thread_join(&startup_thread);
    close(wake_fd);
    wake_fd = -1;
}
