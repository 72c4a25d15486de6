/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File descriptors that clients hand over: under names (getfd) and in sets (add-fd, -add-fd) that
 * are opened as /dev/fdset/N. Control thread, and start-up.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

#define FDS_MAX 1024 /* in all sets together, and under names a session */

typedef struct FdsetFd {
    int64_t set;
    int fd;
    char *opaque; /* NULL: none */
} FdsetFd;

static GArray *set_fds; /* of FdsetFd, in order of coming */

/* ---- Those that came with a command and nobody has claimed yet ---- */

void monitor_collect_fds(Monitor *mon)
{
    int fds[16];
    int n = chr_fe_take_fds(&mon->fe, fds, ARRAY_SIZE(fds));

    for (int i = 0; i < n; i++) {
        if (mon->sent_count < ARRAY_SIZE(mon->sent_fds)) {
            mon->sent_fds[mon->sent_count++] = fds[i];
        } else {
            close(fds[i]);
        }
    }
}

void monitor_drop_fds(Monitor *mon)
{
    for (unsigned i = 0; i < mon->sent_count; i++) {
        close(mon->sent_fds[i]);
    }
    mon->sent_count = 0;
}

/* The oldest. */
static int take_sent_fd(Error **errp)
{
    Monitor *mon = monitor_current;
    int fd;

    if (!mon || !mon->sent_count) {
        error_setg(errp, "No file descriptor supplied via SCM_RIGHTS");
        return -1;
    }
    fd = mon->sent_fds[0];
    mon->sent_count--;
    memmove(mon->sent_fds, mon->sent_fds + 1, mon->sent_count * sizeof(mon->sent_fds[0]));
    return fd;
}

/* ---- getfd, closefd ---- */

void qmp_getfd(const char *fdname, Error **errp)
{
    int fd = take_sent_fd(errp);
    GHashTable *t;

    if (fd < 0) {
        return;
    }
    if (g_ascii_isdigit(fdname[0])) {
        close(fd);
        error_setg(errp, "Parameter 'fdname' expects a name not starting with a digit");
        return;
    }
    t = monitor_current->named_fds;
    if (!t) {
        t = monitor_current->named_fds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                               NULL);
    }
    if (g_hash_table_contains(t, fdname)) {
        close(GPOINTER_TO_INT(g_hash_table_lookup(t, fdname)));
    } else if (g_hash_table_size(t) == FDS_MAX) {
        close(fd);
        error_setg(errp, "there are %d named descriptors already; closefd some", FDS_MAX);
        return;
    }
    g_hash_table_replace(t, g_strdup(fdname), GINT_TO_POINTER(fd));
}

int monitor_take_fd(const char *name, Error **errp)
{
    GHashTable *t = monitor_current ? monitor_current->named_fds : NULL;
    int fd;

    if (!t || !g_hash_table_contains(t, name)) {
        error_setg(errp, "File descriptor named '%s' not found", name);
        return -1;
    }
    fd = GPOINTER_TO_INT(g_hash_table_lookup(t, name));
    g_hash_table_remove(t, name);
    return fd;
}

void qmp_closefd(const char *fdname, Error **errp)
{
    int fd = monitor_take_fd(fdname, errp);

    if (fd >= 0) {
        close(fd);
    }
}

/* ---- Sets ---- */

static FdsetFd *nth(guint i)
{
    return &g_array_index(set_fds, FdsetFd, i);
}

static guint count(void)
{
    return set_fds ? set_fds->len : 0;
}

static bool set_exists(int64_t set)
{
    for (guint i = 0; i < count(); i++) {
        if (nth(i)->set == set) {
            return true;
        }
    }
    return false;
}

/* Takes fd. */
static bool set_add(int64_t set, int fd, const char *opaque, Error **errp)
{
    FdsetFd f = { .set = set, .fd = fd, .opaque = g_strdup(opaque) };

    if (!set_fds) {
        set_fds = g_array_new(FALSE, FALSE, sizeof(FdsetFd));
    }
    if (set_fds->len == FDS_MAX) {
        error_setg(errp, "there are %d descriptors in sets already; remove-fd some", FDS_MAX);
        g_free(f.opaque);
        close(fd);
        return false;
    }
    g_array_append_val(set_fds, f);
    return true;
}

QapiAddfdInfo *qmp_add_fd(bool has_fdset_id, int64_t fdset_id, bool has_opaque, const char *opaque,
                          Error **errp)
{
    QapiAddfdInfo *info;
    int fd = take_sent_fd(errp);

    if (fd < 0) {
        return NULL;
    }
    if (has_fdset_id && fdset_id < 0) {
        close(fd);
        error_setg(errp, "Parameter 'fdset-id' expects a non-negative value");
        return NULL;
    }
    for (fdset_id = has_fdset_id ? fdset_id : 0; !has_fdset_id && set_exists(fdset_id);) {
        fdset_id++;
    }
    if (!set_add(fdset_id, fd, has_opaque ? opaque : NULL, errp)) {
        return NULL;
    }
    info = g_new0(QapiAddfdInfo, 1);
    info->fdset_id = fdset_id;
    info->fd = fd;
    return info;
}

void qmp_remove_fd(int64_t fdset_id, bool has_fd, int64_t fd, Error **errp)
{
    bool any = false;

    for (guint i = count(); i-- > 0;) {
        FdsetFd *f = nth(i);

        if (f->set == fdset_id && (!has_fd || f->fd == fd)) {
            close(f->fd);
            g_free(f->opaque);
            g_array_remove_index(set_fds, i);
            any = true;
        }
    }
    if (!any && has_fd) {
        error_setg(errp, "File descriptor named 'fdset-id:%" PRId64 ", fd:%" PRId64 "' not found",
                   fdset_id, fd);
    } else if (!any) {
        error_setg(errp, "File descriptor named 'fdset-id:%" PRId64 "' not found", fdset_id);
    }
}

static QapiFdsetInfo *info_of(QapiFdsetInfoArray *a, int64_t set)
{
    QapiFdsetInfo *s;

    for (size_t i = 0; i < a->len; i++) {
        if (a->items[i]->fdset_id == set) {
            return a->items[i];
        }
    }
    s = g_new0(QapiFdsetInfo, 1);
    s->fdset_id = set;
    s->fds = g_new0(QapiFdsetFdInfoArray, 1);
    qapi_fdset_info_array_add(a, s);
    return s;
}

QapiFdsetInfoArray *qmp_query_fdsets(Error **errp)
{
    QapiFdsetInfoArray *a = g_new0(QapiFdsetInfoArray, 1);

    for (guint i = 0; i < count(); i++) {
        QapiFdsetFdInfo *f = g_new0(QapiFdsetFdInfo, 1);

        f->fd = nth(i)->fd;
        f->has_opaque = nth(i)->opaque != NULL;
        f->opaque = g_strdup(nth(i)->opaque);
        qapi_fdset_fd_info_array_add(info_of(a, nth(i)->set)->fds, f);
    }
    return a;
}

/* /dev/fdset/N: a duplicate of the first descriptor of the set that was opened for this access. */
static int fdset_open(unsigned set, int flags)
{
    for (guint i = 0; i < count(); i++) {
        int have = nth(i)->set == set ? fcntl(nth(i)->fd, F_GETFL) : -1;
        int fd;

        if (have < 0 || (have & O_ACCMODE) != (flags & O_ACCMODE)) {
            continue;
        }
        fd = fcntl(nth(i)->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            return -1;
        }
        if ((flags & (O_APPEND | O_NONBLOCK)) &&
            fcntl(fd, F_SETFL, have | (flags & (O_APPEND | O_NONBLOCK))) < 0) {
            close(fd);
            return -1;
        }
        if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0 && errno != EINVAL) { /* EINVAL: no file */
            close(fd);
            return -1;
        }
        return fd;
    }
    return -1;
}

/* ---- -add-fd ---- */

static bool add_from_opts(QemuOpts *opts, void *opaque, Error **errp)
{
    uint64_t set = qemu_opt_get_number(opts, "set", UINT64_MAX);
    uint64_t fd = qemu_opt_get_number(opts, "fd", UINT64_MAX);
    int copy;

    if (set > INT64_MAX) {
        error_setg(errp, "-add-fd: set= must be given, a number of 0 or more");
        return false;
    }
    if (fd > INT_MAX || fd <= STDERR_FILENO) {
        error_setg(errp, "-add-fd: fd= must be given, a descriptor of 3 or more");
        return false;
    }
    copy = fcntl((int)fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0) {
        error_setg_errno(errp, errno, "-add-fd fd=%" PRIu64, fd);
        return false;
    }
    return set_add((int64_t)set, copy, qemu_opt_get(opts, "opaque"), errp);
}

/* The originals go when all sets have their copies: one may stand in two. */
static bool close_original(QemuOpts *opts, void *opaque, Error **errp)
{
    close((int)qemu_opt_get_number(opts, "fd", 0));
    return true;
}

bool monitor_add_fds(QemuOptsList *list, Error **errp)
{
    chardev_set_fdset_opener(fdset_open);
    return qemu_opts_foreach(list, add_from_opts, NULL, errp) &&
           qemu_opts_foreach(list, close_original, NULL, errp);
}
