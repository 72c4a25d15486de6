/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error objects and the operator's channel on stderr. */
#include "qemu/error.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qemu/thread.h"

struct Error {
    ErrorClass cls;
    char *msg;
    GString *hint; /* NULL: none */
};

Error *error_fatal;
Error *error_abort;

static const char *progname = "qemu-system-x86_64";
static const char *guest_name;
static bool timestamps;

/* The options being handled, outermost first. Deeper nesting than this is not shown. */
#define LOC_DEPTH 8
typedef struct ErrorLoc {
    const char *opt, *val;
} ErrorLoc;
static __thread ErrorLoc loc_stack[LOC_DEPTH];
static __thread unsigned loc_count;

/* Stores err, or acts on it at once where errp is one of the two magic addresses. */
static void error_deliver(Error **errp, Error *err)
{
    if (errp == &error_abort) {
        error_report("unexpected error: %s", err->msg);
        abort();
    }
    if (errp == &error_fatal) {
        error_report_err(err);
        exit(1);
    }
    if (errp && !*errp) {
        *errp = err;
    } else {
        error_free(err);
    }
}

static void error_vset(Error **errp, ErrorClass cls, const char *suffix, const char *fmt,
                       va_list ap)
{
    if (!errp) {
        return;
    }
    int saved_errno = errno;
    Error *err = g_new0(Error, 1);
    err->cls = cls;
    err->msg = g_strdup_vprintf(fmt, ap);
    if (suffix) {
        char *joined = g_strdup_printf("%s: %s", err->msg, suffix);
        g_free(err->msg);
        err->msg = joined;
    }
    error_deliver(errp, err);
    errno = saved_errno;
}

void error_setg(Error **errp, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(errp, ERROR_CLASS_GENERIC_ERROR, NULL, fmt, ap);
    va_end(ap);
}

void error_set(Error **errp, ErrorClass cls, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(errp, cls, NULL, fmt, ap);
    va_end(ap);
}

void error_setg_errno(Error **errp, int os_errno, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *why = os_errno == EMFILE ? "Too many open files; raise their limit, 'ulimit -n'"
                                         : g_strerror(os_errno);
    error_vset(errp, ERROR_CLASS_GENERIC_ERROR, why, fmt, ap);
    va_end(ap);
}

void error_prepend(Error **errp, const char *fmt, ...)
{
    if (!errp || !*errp) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    char *prefix = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    char *joined = g_strconcat(prefix, (*errp)->msg, NULL);
    g_free(prefix);
    g_free((*errp)->msg);
    (*errp)->msg = joined;
}

void error_append_hint(Error **errp, const char *fmt, ...)
{
    if (!errp || !*errp) {
        return;
    }
    Error *err = *errp;
    if (!err->hint) {
        err->hint = g_string_new(NULL);
    }
    va_list ap;
    va_start(ap, fmt);
    g_string_append_vprintf(err->hint, fmt, ap);
    va_end(ap);
}

void error_propagate(Error **errp, Error *local_err)
{
    if (local_err) {
        error_deliver(errp, local_err);
    }
}

Error *error_copy(const Error *err)
{
    Error *copy = g_new0(Error, 1);
    copy->cls = err->cls;
    copy->msg = g_strdup(err->msg);
    copy->hint = err->hint ? g_string_new(err->hint->str) : NULL;
    return copy;
}

void error_free(Error *err)
{
    if (!err) {
        return;
    }
    g_free(err->msg);
    if (err->hint) {
        g_string_free(err->hint, TRUE);
    }
    g_free(err);
}

const char *error_get_pretty(const Error *err)
{
    return err->msg;
}

ErrorClass error_get_class(const Error *err)
{
    return err->cls;
}

static void append_timestamp(GString *line)
{
    struct timespec ts;
    struct tm tm;
    char text[32];

    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    g_string_append_printf(line, "%s.%06ldZ ", text, ts.tv_nsec / 1000);
}

/* A reader of stderr that takes nothing holds up nobody for longer, whose end a message may be. */
#define STDERR_WAIT_MS 500

/* One write(), so that lines of several threads do not mix. */
static void write_stderr(const GString *line)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
    size_t done = 0;

    fflush(stderr);
    while (done < line->len) {
        if (poll(&p, 1, STDERR_WAIT_MS) == 0) {
            return;
        }
        /* What a pipe with room takes without blocking. */
        ssize_t n = write(STDERR_FILENO, line->str + done, MIN(line->len - done, PIPE_BUF));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* nobody listens any more */
        }
        done += n;
    }
}

/*
 * What somebody gave may be a megabyte: it is told by its beginning. A path is hardly ever longer
 * than WORD_MAX, and a message never longer than TEXT_MAX but for what it quotes.
 */
#define WORD_MAX   256
#define WORD_SHOWN 120
#define TEXT_MAX   4000

/* len bytes of text, or fewer: whole characters. */
static void append_head(GString *line, const char *text, size_t len)
{
    while (len && ((unsigned char)text[len] & 0xc0) == 0x80) {
        len--;
    }
    g_string_append_len(line, text, (gssize)len);
}

static void append_word(GString *line, const char *word, size_t len)
{
    size_t end = len;

    if (len <= WORD_MAX) {
        g_string_append_len(line, word, (gssize)len);
        return;
    }
    while (end > WORD_SHOWN && strchr("':,;)", word[end - 1])) {
        end--; /* belongs to the message */
    }
    append_head(line, word, WORD_SHOWN);
    g_string_append(line, "...");
    g_string_append_len(line, word + end, (gssize)(len - end));
}

static void append_text(GString *line, const char *text)
{
    GString *all = g_string_new(NULL);

    while (*text) {
        size_t word = strcspn(text, " \n");

        append_word(all, text, word);
        text += word;
        if (*text) {
            g_string_append_c(all, *text++);
        }
    }
    if (all->len > TEXT_MAX) {
        append_head(line, all->str, TEXT_MAX / 2);
        g_string_append(line, "...");
        text = all->str + all->len - TEXT_MAX / 4;
        g_string_append(line, text + strcspn(text, " "));
    } else {
        g_string_append(line, all->str);
    }
    g_string_free(all, TRUE);
}

/* What follows the option in a message that begins with it, else NULL. */
static const char *after_option(const char *text, const char *opt)
{
    size_t len;

    opt += strspn(opt, "-");
    len = strlen(opt);
    if (*text != '-' || strncmp(text + 1, opt, len) || !strchr(" :,", text[1 + len])) {
        return NULL;
    }
    return text + 1 + len;
}

/* What came from outside may hold anything; a message stays one line, and leaves terminals alone. */
static void one_line(GString *line, size_t from)
{
    for (; from < line->len; from++) {
        if ((unsigned char)line->str[from] < ' ' || line->str[from] == 127) {
            line->str[from] = '?';
        }
    }
}

static void append_loc(GString *line, const ErrorLoc *loc)
{
    g_string_append_printf(line, "%s%s", loc->opt, loc->val ? " " : "");
    if (loc->val && strlen(loc->val) > WORD_MAX) {
        append_head(line, loc->val, WORD_SHOWN);
        g_string_append(line, "...");
    } else if (loc->val) {
        g_string_append(line, loc->val);
    }
    g_string_append(line, ": ");
}

/* Whoever is served on this thread now. */
static __thread void (*listener)(void *opaque, const char *text);
static __thread void *listener_opaque;

void error_report_to(void (*fn)(void *opaque, const char *text), void *opaque)
{
    listener = fn;
    listener_opaque = opaque;
}

static void report(const char *severity, const char *hint, const char *fmt, va_list ap)
    QEMU_PRINTF(3, 0);
static void report(const char *severity, const char *hint, const char *fmt, va_list ap)
{
    rtcheck_helper_only("error_report");
    GString *line = g_string_new(NULL);
    char *text = g_strdup_vprintf(fmt, ap);
    const char *rest = text;

    if (timestamps) {
        append_timestamp(line);
    }
    if (guest_name) {
        g_string_append_printf(line, "%s ", guest_name);
    }
    g_string_append_printf(line, "%s: ", progname);
    size_t start = line->len;
    for (unsigned i = 0; i < MIN(loc_count, LOC_DEPTH); i++) {
        const ErrorLoc *loc = &loc_stack[i];
        const char *after = after_option(rest, loc->opt);

        if (after && g_str_has_prefix(after, ": ") && loc->val) {
            rest = after + 2; /* the place says the value too */
            after = NULL;
        }
        if (!after) {
            append_loc(line, loc);
        }
    }
    g_string_append(line, severity);
    append_text(line, rest);
    one_line(line, start);
    g_free(text);
    if (listener) {
        listener(listener_opaque, line->str + start);
    }
    g_string_append_c(line, '\n');
    if (hint && *hint) {
        g_string_append(line, hint);
        if (line->str[line->len - 1] != '\n') {
            g_string_append_c(line, '\n');
        }
    }
    write_stderr(line);
    g_string_free(line, TRUE);
}

void error_vreport(const char *fmt, va_list ap)
{
    report("", NULL, fmt, ap);
}

void error_report(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report("", NULL, fmt, ap);
    va_end(ap);
}

void warn_report(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report("warning: ", NULL, fmt, ap);
    va_end(ap);
}

void info_report(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report("info: ", NULL, fmt, ap);
    va_end(ap);
}

static void report_with_hint(const char *severity, const char *hint, const char *fmt, ...)
    QEMU_PRINTF(3, 4);
static void report_with_hint(const char *severity, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(severity, hint, fmt, ap);
    va_end(ap);
}

void error_report_err(Error *err)
{
    report_with_hint("", err->hint ? err->hint->str : NULL, "%s", err->msg);
    error_free(err);
}

void warn_report_err(Error *err)
{
    report_with_hint("warning: ", err->hint ? err->hint->str : NULL, "%s", err->msg);
    error_free(err);
}

void error_loc_push(const char *opt, const char *val)
{
    if (loc_count < LOC_DEPTH) {
        loc_stack[loc_count] = (ErrorLoc){ opt, val };
    }
    loc_count++;
}

void error_loc_pop(void)
{
    if (loc_count) {
        loc_count--;
    }
}

void error_set_progname(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    progname = slash ? slash + 1 : argv0;
}

const char *error_get_progname(void)
{
    return progname;
}

void error_set_timestamps(bool on)
{
    timestamps = on;
}

void error_set_guest_name(const char *name)
{
    guest_name = name;
}
