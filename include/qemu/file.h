/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of the command line: read whole, within a limit; made, and taken back if the start is
 * refused. HELPER_ONLY; the first thread may too until the guest runs.
 */
#ifndef QEMU_FILE_H
#define QEMU_FILE_H

#include <sys/types.h>
#include "qemu/compiler.h"
#include "qemu/error.h"

/*
 * Reads all of path, at most limit bytes, into *data, which g_free() takes and which has a NUL
 * behind its *len bytes. Pipes and devices are read too, but none is waited for longer than
 * FILE_WAIT_MS. False: errp says why, and what to do where that is not plain.
 */
#define FILE_WAIT_MS 5000
bool file_read_all(const char *path, size_t limit, char **data, size_t *len, Error **errp);

/*
 * open(path, flags | O_CLOEXEC, mode) that must not wait (O_NONBLOCK), which a refused start undoes: until startup_files_keep(),
 * exit() removes a file that this call made, and the old bytes of one that O_TRUNC was given for
 * stay. Afterwards just open().
 */
int startup_file_open(const char *path, int flags, mode_t mode);
/* fd, a file of old_size bytes, is about to grow: made as short again if the start is refused. */
void startup_file_grows(int fd, off_t old_size);
/* The start is refused, with os_files_lock(). exit() does it too. */
void startup_files_undo_locked(void);
/* The machine is ready: what was made stays, what was to be emptied is. */
void startup_files_keep(void);

#endif
