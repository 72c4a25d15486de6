/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that the command line makes: kept if the machine starts, undone if it is refused. */
#include "qemu/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu/os.h"

typedef enum StartupDeed { DEED_MADE, DEED_EMPTIES, DEED_GROWS } StartupDeed;

typedef struct StartupFile {
    StartupDeed deed;
    char *path;  /* MADE: absolute, -daemonize changes the directory */
    int fd;      /* otherwise: a duplicate of our own, whoever has the file may close it */
    dev_t dev;   /* MADE: nothing else that has got the name meanwhile is removed */
    ino_t ino;
    off_t size;  /* GROWS: what it was */
    struct StartupFile *next;
} StartupFile;

/* Guarded by os_files_lock(): what ends a start-up keeps that, so that nothing more is made. */
static struct {
    StartupFile *first;
    pid_t owner; /* the process that is to undo it: a child that exits is not */
    bool kept;
} startup;

void startup_files_undo_locked(void)
{
    if (startup.owner != getpid()) {
        return;
    }
    for (StartupFile *f = startup.first; f; f = f->next) {
        struct stat st;

        if (f->deed == DEED_MADE && lstat(f->path, &st) == 0 && st.st_dev == f->dev &&
            st.st_ino == f->ino) {
            unlink(f->path);
        } else if (f->deed == DEED_GROWS && ftruncate(f->fd, f->size) < 0) {
            warn_report("cannot undo the growth of a file: %s", g_strerror(errno));
        }
    }
    startup.first = NULL; /* the process ends */
}

static void undo(void)
{
    os_files_lock();
    startup_files_undo_locked();
    os_files_unlock();
}

/* With the lock. */
static void note(StartupDeed deed, const char *path, int fd, off_t size)
{
    StartupFile *f = g_new0(StartupFile, 1);
    struct stat st = { 0 };

    f->deed = deed;
    f->path = path ? g_canonicalize_filename(path, NULL) : NULL;
    f->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    f->size = size;
    if (path && lstat(path, &st) == 0) {
        f->dev = st.st_dev;
        f->ino = st.st_ino;
    }
    if (startup.owner != getpid()) {
        startup.owner = getpid();
        atexit(undo);
    }
    f->next = startup.first;
    startup.first = f;
}

/* With the lock. */
static int open_noted(const char *path, int flags, mode_t mode)
{
    struct stat st;
    int fd = open(path, flags | O_EXCL, mode);

    if (fd >= 0) {
        note(DEED_MADE, path, -1, 0);
        return fd;
    }
    if (errno != EEXIST) {
        return -1;
    }
    /* A link to nothing is there and makes a file too: that one stays, it is hardly ever seen. */
    fd = open(path, flags & ~O_TRUNC, mode);
    if (fd >= 0 && flags & O_TRUNC && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        note(DEED_EMPTIES, NULL, fd, 0);
    }
    return fd;
}

int startup_file_open(const char *path, int flags, mode_t mode)
{
    flags |= O_CLOEXEC;
    os_files_lock();
    int fd = startup.kept || !(flags & O_CREAT) ? open(path, flags, mode)
                                                : open_noted(path, flags, mode);
    int err = errno;
    os_files_unlock();
    errno = err;
    return fd;
}

void startup_file_grows(int fd, off_t old_size)
{
    os_files_lock();
    if (!startup.kept) {
        note(DEED_GROWS, NULL, fd, old_size);
    }
    os_files_unlock();
}

/* What was written already stands at the start of the file, and the old rest behind it. */
static void keep(const StartupFile *f)
{
    off_t end = f->deed == DEED_EMPTIES ? lseek(f->fd, 0, SEEK_CUR) : -1;

    if (end >= 0 && ftruncate(f->fd, end) < 0) {
        warn_report("cannot empty a file: %s", g_strerror(errno));
    }
}

void startup_files_keep(void)
{
    StartupFile *next;

    os_files_lock();
    startup.kept = true;
    for (StartupFile *f = startup.first; f; f = next) {
        next = f->next;
        keep(f);
        if (f->fd >= 0) {
            close(f->fd);
        }
        g_free(f->path);
        g_free(f);
    }
    startup.first = NULL;
    os_files_unlock();
}
