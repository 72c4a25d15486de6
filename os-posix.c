/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the process asks of a POSIX host: realtime, background, pid file, signals. */
#include "qemu/os.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os-internal.h"
#include "qemu/host-limits.h"
#include "qemu/thread.h"

/* ---- The first thing ---- */

/* GLib ends the process where it gets no memory: in our words, and without what was made. */
static void glib_says(const char *domain, GLogLevelFlags level, const char *message, void *opaque)
{
    char line[256];

    if (!(level & G_LOG_LEVEL_ERROR) || !message || !strstr(message, "failed to allocate")) {
        g_log_default_handler(domain, level, message, opaque);
        return;
    }
    snprintf(line, sizeof(line), "%s: cannot allocate memory (give less, -m, fewer CPUs, -smp, or raise "
             "the host's limits, 'ulimit -v' and 'ulimit -d')\n", error_get_progname());
    os_end_at_once(line);
}

static uint64_t address_space_limit(void)
{
    struct rlimit r;

    return getrlimit(RLIMIT_AS, &r) < 0 || r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
}

void os_init_early(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR); /* takes the lowest number that is free */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0) {
        /* Nobody to tell: whatever is opened next may be what a message would go to. */
        for (int std = STDIN_FILENO; std <= STDERR_FILENO; std++) {
            if (fcntl(std, F_GETFD) < 0) {
                _exit(1);
            }
        }
    } else {
        close(fd);
    }
    g_log_set_default_handler(glib_says, NULL);
    if (address_space_limit() != UINT64_MAX) {
        mallopt(M_ARENA_MAX, 1); /* each further one takes 64 MiB of it */
    }
    signal(SIGXFSZ, SIG_IGN);
    /* Else malloc() raises both after each big buffer, and keeps as much as that one had. */
    mallopt(M_MMAP_THRESHOLD, 128 * KiB);
    mallopt(M_TRIM_THRESHOLD, 128 * KiB);
}

/* ---- Realtime ---- */

static MemLock memory_locked;

MemLock os_memory_locked(void)
{
    return memory_locked;
}

/* A line of /proc/self/status that counts KiB. */
static uint64_t status_bytes(const char *key)
{
    char *text;
    uint64_t kib = 0;

    if (g_file_get_contents("/proc/self/status", &text, NULL, NULL)) {
        char *line = strstr(text, key);
        kib = line ? g_ascii_strtoull(line + strlen(key), NULL, 10) : 0;
        g_free(text);
    }
    return kib * 1024;
}

uint64_t os_locked_bytes(void)
{
    return status_bytes("\nVmLck:");
}

uint64_t os_mapped_bytes(void)
{
    return status_bytes("\nVmSize:");
}

bool os_check_address_space(uint64_t bytes_needed, Error **errp)
{
    uint64_t limit = address_space_limit(), mapped = os_mapped_bytes();

    if (bytes_needed <= limit && mapped <= limit - bytes_needed) {
        return true;
    }
    error_setg(errp, "%llu MiB of host memory are to be mapped, %llu MiB of address space are left of RLIMIT_AS "
               "(make -m smaller, give fewer CPUs, -smp, or less for their code, -accel tcg,tb-size=, or "
               "raise the limit, 'ulimit -v')", (unsigned long long)(bytes_needed / MiB),
               (unsigned long long)(mapped < limit ? (limit - mapped) / MiB : 0));
    return false;
}

#define OS_PR_SET_MEMORY_MERGE 67 /* PR_SET_MEMORY_MERGE of linux/prctl.h, which may be older */

static bool lock_memory(MemLock mode, Error **errp)
{
    int flags = MCL_CURRENT | MCL_FUTURE | (mode == MEM_LOCK_ON_FAULT ? MCL_ONFAULT : 0);

    if (mlockall(flags) < 0) {
        error_setg_errno(errp, errno, "locking memory (-realtime, -overcommit mem-lock)");
        return false;
    }
    if (os_locked_bytes() == 0) {
        munlockall();
        error_setg(errp, "locking memory (-realtime, -overcommit mem-lock): the host took the call "
                         "but locked nothing (VmLck is 0 in /proc/self/status)");
        return false;
    }
    /* Merging of equal pages, which a service manager may have switched on for all its children, from Linux 6.4 on. */
    prctl(OS_PR_SET_MEMORY_MERGE, 0, 0, 0, 0);
    /*
     * With everything locked, address space that malloc() reserves for further arenas counts
     * against RLIMIT_MEMLOCK, and memory given back would have to be faulted in again.
     */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    memory_locked = mode;
    return true;
}

static void warn_one(void *opaque, const char *text)
{
    warn_report("%s", text);
}

bool os_prioritize(const RealtimeConfig *cfg, uint64_t bytes_needed, Error **errp)
{
    HostLimits h;
    bool ok;

    if (!cfg->enabled && cfg->mem_lock == MEM_LOCK_OFF && !cfg->profile_count) {
        return true;
    }
    host_limits_read(&h, cfg);
    ok = (!cfg->enabled || host_limits_check_policy(&h, cfg, errp)) &&
         (cfg->mem_lock == MEM_LOCK_OFF || host_limits_check_memory(&h, cfg, bytes_needed, errp));
    if (ok) {
        host_limits_warnings(&h, cfg, bytes_needed, warn_one, NULL);
        ok = cfg->mem_lock == MEM_LOCK_OFF || lock_memory(cfg->mem_lock, errp);
    }
    host_limits_free(&h);
    if (ok && cfg->profile_count) {
        qemu_init_realtime_profile(&cfg->profiles[0]);
    } else if (ok && cfg->enabled) {
        qemu_init_realtime(cfg->policy, cfg->max_priority);
    }
    return ok;
}

/* ---- Background ---- */

static int ready_fd = -1; /* the command waits for a byte on the other end */
static bool daemonized;

bool os_is_daemonized(void)
{
    return daemonized;
}

int os_command_fd(void)
{
    return ready_fd;
}

/* The command's own process: ends when the background process is ready, or has failed. */
static QEMU_NORETURN void wait_until_ready(int fd)
{
    char byte;
    ssize_t n;

    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    _exit(n == 1 ? 0 : 1);
}

bool os_daemonize(Error **errp)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        error_setg_errno(errp, errno, "-daemonize: cannot make a pipe");
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid > 0) {
        close(fds[1]);
        wait_until_ready(fds[0]);
    }
    close(fds[0]);
    if (pid < 0) {
        close(fds[1]);
        error_setg_errno(errp, errno, "-daemonize: cannot make a process");
        return false;
    }
    setsid();
    /* Once more: no leader of a session, so no terminal can become its own by accident. */
    pid = fork();
    if (pid > 0) {
        _exit(0);
    }
    if (pid < 0) {
        error_setg_errno(errp, errno, "-daemonize: cannot make a process");
        return false; /* the pipe closes with this process, so the command fails */
    }
    umask(027);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    ready_fd = fds[1];
    daemonized = true;
    return true;
}

bool os_setup_post(Error **errp)
{
    if (!daemonized || ready_fd < 0) {
        return true;
    }
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0 || chdir("/") < 0) {
        error_setg_errno(errp, errno, "-daemonize: cannot leave for the background");
        if (null_fd >= 0) {
            close(null_fd);
        }
        return false;
    }
    fflush(NULL);
    dup2(null_fd, STDIN_FILENO);
    dup2(null_fd, STDOUT_FILENO);
    dup2(null_fd, STDERR_FILENO);
    close(null_fd);
    ssize_t n;
    do {
        n = write(ready_fd, "", 1);
    } while (n < 0 && errno == EINTR);
    int err = errno;
    close(ready_fd);
    ready_fd = -1;
    if (n != 1) {
        error_setg_errno(errp, err, "-daemonize: the command that started it has ended");
        return false;
    }
    return true;
}

/* ---- Pid file ---- */

static int pid_file_fd = -1; /* open for as long as the lock is meant to hold */
static char *pid_file_path;
static pid_t pid_file_owner;

/* The file may have been removed by its last owner between open() and lock: then try again. */
static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static bool pidfile_open(const char *path, int *fd, Error **errp)
{
    for (;;) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
        if (*fd < 0) {
            error_setg_errno(errp, errno, "-pidfile %s: cannot write the file", path);
            return false;
        }
        struct stat st;
        if (fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode)) {
            error_setg(errp, "-pidfile %s: not a regular file; choose another file", path);
            close(*fd);
            return false;
        }
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        if (fcntl(*fd, F_SETLK, &lock) < 0) {
            int err = errno;
            lock.l_pid = 0;
            fcntl(*fd, F_GETLK, &lock);
            if (err == EACCES || err == EAGAIN) {
                error_setg(errp, "-pidfile %s: process %d uses it; choose another file", path,
                           (int)lock.l_pid);
            } else {
                error_setg_errno(errp, err, "-pidfile %s: cannot lock the file", path);
            }
            close(*fd);
            return false;
        }
        if (same_file(*fd, path)) {
            return true;
        }
        close(*fd);
    }
}

/* What stands in the file is a pid that a process left behind, or nothing: else it is not ours. */
static bool pidfile_is_stale(int fd, const char *path, Error **errp)
{
    char text[32] = "", *end = text;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    while (g_ascii_isspace(*end)) {
        end++; /* other programs pad the number */
    }
    end += strspn(end, "0123456789");
    while (g_ascii_isspace(*end)) {
        end++;
    }
    if (n >= 0 && end == text + n && n < (ssize_t)sizeof(text) - 1) {
        return true;
    }
    error_setg(errp, "-pidfile %s: the file exists and holds something else than a process id; choose "
                     "another file, or remove this one", path);
    return false;
}

/* With the lock of the list of files. */
static bool pidfile_write(const char *path, Error **errp)
{
    char text[32];
    int fd;

    if (!pidfile_open(path, &fd, errp)) {
        return false;
    }
    if (!pidfile_is_stale(fd, path, errp)) {
        close(fd);
        return false;
    }
    int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, len, 0) != len) {
        error_setg_errno(errp, errno, "-pidfile %s: cannot write the file", path);
        unlink(path);
        close(fd);
        return false;
    }
    os_remove_at_exit(path);
    pid_file_path = g_canonicalize_filename(path, NULL);
    pid_file_fd = fd;
    pid_file_owner = getpid();
    return true;
}

bool os_create_pidfile(const char *path, Error **errp)
{
    Error *err = NULL;

    os_files_lock();
    bool ok = pidfile_write(path, &err);
    os_files_unlock();
    error_propagate(errp, err); /* may end the process, which takes the lock */
    return ok;
}

void os_cleanup(void)
{
    if (pid_file_path && pid_file_owner == getpid()) {
        os_remove_now(pid_file_path);
        close(pid_file_fd);
        g_free(pid_file_path);
        pid_file_path = NULL;
        pid_file_fd = -1;
    }
}

void os_set_proc_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* ---- Signals ---- */

static void (*_Atomic terminate_fn)(void);
static _Atomic int terminate_signal;
static _Atomic pid_t terminate_sender;

static void on_terminate(int sig, siginfo_t *info, void *context)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&terminate_signal, &none, sig)) {
        atomic_store(&terminate_sender, info->si_code <= 0 ? info->si_pid : 0);
    }
    int saved_errno = errno;
    os_startup_signalled();
    void (*fn)(void) = atomic_load(&terminate_fn);
    if (fn) {
        fn();
    }
    errno = saved_errno;
}

int os_termination_signal(void)
{
    return atomic_load(&terminate_signal);
}

void os_setup_signals(void (*fn)(void))
{
    static const int signals[] = { SIGINT, SIGHUP, SIGTERM };
    struct sigaction sa = { .sa_sigaction = on_terminate, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigset_t set;

    atomic_store(&terminate_fn, fn);
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        sigaction(signals[i], &sa, NULL);
        sigaddset(&set, signals[i]);
    }
    /* Whoever started us may have blocked them. */
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void os_report_termination(void)
{
    int sig = atomic_load(&terminate_signal);
    pid_t pid = atomic_load(&terminate_sender);
    char path[32], *name = NULL;

    if (!sig) {
        return;
    }
    if (!pid) {
        error_report("terminating on signal %d", sig);
        return;
    }
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    g_file_get_contents(path, &name, NULL, NULL);
    error_report("terminating on signal %d from pid %d (%s)", sig, (int)pid,
                 name ? g_strstrip(name) : "<unknown process>");
    g_free(name);
}

void os_set_line_buffering(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
}
