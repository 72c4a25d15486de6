/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: one channel a function. A function that can fail takes `Error **errp` as its last
 * parameter and returns bool, a negative errno or NULL besides; the caller that can act reports.
 * Messages name the option, the value, the reason and the remedy, and have no trailing newline
 * or full stop.
 */
#ifndef QEMU_ERROR_H
#define QEMU_ERROR_H

#include <stdarg.h>
#include "qemu/compiler.h"

/* QMP's error classes (the `class` member of an error reply). */
typedef enum ErrorClass {
    ERROR_CLASS_GENERIC_ERROR,
    ERROR_CLASS_COMMAND_NOT_FOUND,
    ERROR_CLASS_DEVICE_NOT_ACTIVE,
    ERROR_CLASS_DEVICE_NOT_FOUND,
    ERROR_CLASS_KVM_MISSING_CAP,
} ErrorClass;

typedef struct Error Error;

/*
 * Pass &error_fatal where a failure must end the process: the message is printed as by
 * error_report() and the process exits with status 1. Only at start-up. Pass &error_abort where a
 * failure would be a bug. Pass NULL to ignore.
 */
extern Error *error_fatal;
extern Error *error_abort;

/* All: HELPER_ONLY (they allocate). errp may be NULL. *errp must be NULL on entry. */
void error_setg(Error **errp, const char *fmt, ...) QEMU_PRINTF(2, 3);
void error_set(Error **errp, ErrorClass cls, const char *fmt, ...) QEMU_PRINTF(3, 4);
/* Appends ": strerror(os_errno)" to the message. */
void error_setg_errno(Error **errp, int os_errno, const char *fmt, ...) QEMU_PRINTF(3, 4);
void error_prepend(Error **errp, const char *fmt, ...) QEMU_PRINTF(2, 3);
/* A hint is printed on lines of its own after the message, on the terminal only (not in QMP). */
void error_append_hint(Error **errp, const char *fmt, ...) QEMU_PRINTF(2, 3);

/* Moves local_err (may be NULL) to *errp; frees it if errp is NULL or already holds an error. */
void error_propagate(Error **errp, Error *local_err);
Error *error_copy(const Error *err);
void error_free(Error *err);
const char *error_get_pretty(const Error *err);
ErrorClass error_get_class(const Error *err);

/*
 * The operator's channel: one line on stderr, "qemu-system-x86_64: MESSAGE", with a timestamp
 * under -msg timestamp=on and the guest's name under -msg guest-name=on. While an option is being
 * parsed the message also names it (error_loc_push). HELPER_ONLY and start-up.
 */
void error_report(const char *fmt, ...) QEMU_PRINTF(1, 2);
void error_vreport(const char *fmt, va_list ap) QEMU_PRINTF(1, 0);
void warn_report(const char *fmt, ...) QEMU_PRINTF(1, 2);
void info_report(const char *fmt, ...) QEMU_PRINTF(1, 2);
/* Reports and frees. */
void error_report_err(Error *err);
void warn_report_err(Error *err);

/*
 * What this thread reports from now on goes to fn too, as one line without the program's name: to an
 * operator who is not at stderr. NULL ends it. HELPER_ONLY.
 */
void error_report_to(void (*fn)(void *opaque, const char *text), void *opaque);

/* The option being handled, for error_report(): "-smp 0: ". Nests. opt and val are borrowed. */
void error_loc_push(const char *opt, const char *val);
void error_loc_pop(void);

void error_set_progname(const char *argv0);
const char *error_get_progname(void);
/* -msg */
void error_set_timestamps(bool on);
void error_set_guest_name(const char *name);

#endif
