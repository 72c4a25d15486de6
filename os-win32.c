/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the process asks of Windows. Realtime and background are refused. */
#include "qemu/os.h"

#include <windows.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *pid_path;
static void (*terminate_fn)(void);
static volatile LONG terminated;

void os_init_early(void)
{
}

void os_end_at_once(const char *text)
{
    fputs(text, stderr);
    _exit(1);
}

bool os_prioritize(const RealtimeConfig *cfg, uint64_t bytes_needed, Error **errp)
{
    if (cfg->enabled) {
        error_setg(errp,
                   "-realtime maxprio=%d: not supported on Windows, which has no scheduling "
                   "policy with the guarantees it needs; run on Linux, or leave it out",
                   cfg->max_priority);
        return false;
    }
    if (cfg->profile_count) {
        error_setg(errp, "-realtime: profiles are not supported on Windows; run on Linux");
        return false;
    }
    if (cfg->mem_lock != MEM_LOCK_OFF) {
        error_setg(errp, "locking memory (-realtime, -overcommit mem-lock): not supported on "
                         "Windows; run on Linux, or say mlock=off");
        return false;
    }
    return true;
}

MemLock os_memory_locked(void)
{
    return MEM_LOCK_OFF;
}

uint64_t os_locked_bytes(void)
{
    return 0;
}

bool os_check_address_space(uint64_t bytes_needed, Error **errp)
{
    return true;
}

uint64_t os_mapped_bytes(void)
{
    return 0;
}

bool os_daemonize(Error **errp)
{
    error_setg(errp, "-daemonize: not supported on Windows; use 'start /b'");
    return false;
}

bool os_is_daemonized(void)
{
    return false;
}

bool os_setup_post(Error **errp)
{
    return true;
}

bool os_create_pidfile(const char *path, Error **errp)
{
    FILE *f = fopen(path, "w");

    if (!f || fprintf(f, "%lu\n", GetCurrentProcessId()) < 0 || fclose(f) != 0) {
        error_setg(errp, "-pidfile %s: cannot write the file", path);
        return false;
    }
    pid_path = _strdup(path);
    atexit(os_cleanup);
    return true;
}

void os_cleanup(void)
{
    if (pid_path) {
        remove(pid_path);
        free(pid_path);
        pid_path = NULL;
    }
}

void os_set_proc_name(const char *name)
{
    SetConsoleTitleA(name);
}

static BOOL WINAPI on_console_event(DWORD event)
{
    InterlockedExchange(&terminated, 1);
    if (terminate_fn) {
        terminate_fn();
    }
    return TRUE;
}

void os_setup_signals(void (*fn)(void))
{
    terminate_fn = fn;
    SetConsoleCtrlHandler(on_console_event, TRUE);
}

void os_report_termination(void)
{
    if (terminated) {
        error_report("terminating on a console event");
    }
}

void os_set_line_buffering(void)
{
    setvbuf(stdout, NULL, _IONBF, 0); /* this C library takes _IOLBF for full buffering */
}

/* The console's own handler ends a start-up. */
bool os_startup_begin(Error **errp)
{
    return true;
}

void os_startup_step(const char *fmt, ...)
{
}

void os_startup_done(void)
{
}
