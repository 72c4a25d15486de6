/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stdio: standard input and output, and the state of the terminal behind them, which is restored
 * whenever the process stops or ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include "char-internal.h"
#include "qemu/os.h"

/* ---- The terminal ---- */

static struct termios tty_saved, tty_now;
static volatile sig_atomic_t tty_is_raw;

static void tty_apply(const struct termios *t)
{
    sigset_t block, old;

    /* A background process that sets a terminal is stopped by SIGTTOU; not on the way out. */
    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    tcsetattr(STDIN_FILENO, TCSANOW, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void chr_tty_restore(void)
{
    if (tty_is_raw) {
        tty_is_raw = 0;
        tty_apply(&tty_saved);
    }
}

/* SIGTSTP, SIGABRT: hand the terminal back, then let the signal do what it does by default. */
static void on_fatal_or_stop(int sig)
{
    int saved = errno;
    bool was_raw = tty_is_raw;
    sigset_t set, old;

    if (was_raw) {
        tty_apply(&tty_saved);
    }
    struct sigaction dfl = { .sa_handler = SIG_DFL }, mine;
    sigaction(sig, &dfl, &mine);
    raise(sig);
    sigemptyset(&set);
    sigaddset(&set, sig);
    pthread_sigmask(SIG_UNBLOCK, &set, &old); /* stops (or dies) here; goes on after SIGCONT */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    sigaction(sig, &mine, NULL);
    if (was_raw && tty_is_raw) {
        tty_apply(&tty_now);
    }
    errno = saved;
}

/* Stopped by a signal that cannot be caught, and continued: the shell has changed the terminal. */
static void on_continue(int sig)
{
    int saved = errno;
    if (tty_is_raw) {
        tty_apply(&tty_now);
    }
    errno = saved;
}

static void catch_signals(void)
{
    struct sigaction sa = { .sa_handler = on_fatal_or_stop, .sa_flags = SA_RESTART }, old;

    sigaction(SIGTSTP, &sa, &old);
    if (old.sa_handler == SIG_IGN) {
        sigaction(SIGTSTP, &old, NULL); /* a shell without job control wants it so */
    }
    sigaction(SIGABRT, &sa, NULL);
    sa.sa_handler = on_continue;
    sigaction(SIGCONT, &sa, NULL);
    atexit(chr_tty_restore);
    os_at_startup_end(chr_tty_restore);
}

void chr_tty_raw(bool signals)
{
    static bool caught;

    if (tty_is_raw || tcgetattr(STDIN_FILENO, &tty_saved) < 0) {
        return; /* not a terminal */
    }
    tty_now = tty_saved;
    tty_now.c_iflag &=
        ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    tty_now.c_oflag |= OPOST;
    tty_now.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN);
    if (!signals) {
        tty_now.c_lflag &= ~(tcflag_t)ISIG;
    }
    tty_now.c_cflag &= ~(tcflag_t)(CSIZE | PARENB);
    tty_now.c_cflag |= CS8;
    tty_now.c_cc[VMIN] = 1;
    tty_now.c_cc[VTIME] = 0;
    if (!caught) {
        caught = true;
        catch_signals();
    }
    tty_is_raw = 1;
    tty_apply(&tty_now);
}

void chr_tty_echo(bool echo)
{
    if (!tty_is_raw) {
        return;
    }
    if (echo) {
        tty_now.c_lflag |= ECHO | ECHONL | ICANON | IEXTEN;
        tty_now.c_iflag |= ICRNL;
    } else {
        tty_now.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN);
        tty_now.c_iflag &= ~(tcflag_t)ICRNL;
    }
    tty_apply(&tty_now);
}

/* ---- The back end ---- */

typedef struct ChrStdio {
    ChrFd f;
    bool restore_in, restore_out;
} ChrStdio;

static bool stdio_in_use;
static const char *stdio_forbidden;

void chardev_forbid_stdio(const char *option)
{
    stdio_forbidden = option;
}

static bool stdio_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrStdio *s = container_of(chr, ChrStdio, f.chr);
    struct stat st;
    bool signals;

    chr_fd_init(&s->f);
    chr_ignore_sigpipe();
    if (!chr_opt_bool(o, "signal", true, &signals, errp)) {
        return false;
    }
    if (stdio_forbidden) {
        error_setg(errp, "cannot use stdio with %s; connect serial ports and monitors elsewhere",
                   stdio_forbidden);
        return false;
    }
    if (stdio_in_use) {
        error_setg(errp, "cannot use stdio by multiple character devices");
        return false;
    }
    s->f.in_fd = chr_nonblock(STDIN_FILENO, O_RDONLY, &s->restore_in);
    s->f.out_fd = chr_nonblock(STDOUT_FILENO, O_WRONLY, &s->restore_out);
    /* A closed descriptor is an empty input, or an output nobody sees. */
    atomic_store(&chr->connected, true);
    if (s->f.out_fd >= 0 && fstat(s->f.out_fd, &st) == 0 && S_ISREG(st.st_mode) &&
        !chr_use_io_loop(chr, errp)) {
        return false;
    }
    stdio_in_use = true;
    chr_tty_raw(signals);
    return true;
}

static void restore_flags(int fd, bool restore)
{
    if (restore) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    }
}

static void stdio_close(Chardev *chr)
{
    ChrStdio *s = container_of(chr, ChrStdio, f.chr);
    bool opened = s->f.in_fd >= 0 || s->f.out_fd >= 0;

    restore_flags(STDIN_FILENO, s->restore_in);
    restore_flags(STDOUT_FILENO, s->restore_out);
    chr_fd_close(chr);
    if (opened) {
        chr_tty_restore();
        stdio_in_use = false;
    }
}

static void stdio_set_echo(Chardev *chr, bool echo)
{
    chr_tty_echo(echo);
}

const ChardevDriver chr_driver_stdio = {
    .name = "stdio",
    .keys = (const char *const[]){ "signal", NULL },
    .size = sizeof(ChrStdio),
    .open = stdio_open,
    .close = stdio_close,
    .attach = chr_fd_attach,
    .detach = chr_fd_detach,
    .drain = chr_fd_drain,
    .pump = chr_fd_pump,
    .set_echo = stdio_set_echo,
};
