/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The -d log. A message is formatted into a slot of a bounded lock-free ring; a HELPER thread
 * writes it to stderr or the -D file. Under -realtime a full ring loses messages (the log says how
 * many); without it the writer waits a bounded time, as then a whole trace is worth more.
 */
#ifndef QEMU_LOG_H
#define QEMU_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include "qemu/compiler.h"
#include "qemu/error.h"

/* The items of -d: bit, name, help. */
/* clang-format off */
#define LOG_ITEM_TABLE(I)                                                                         \
    I(LOG_OUT_ASM,     0, "out_asm",      "host code generated: translated blocks and stubs")     \
    I(LOG_IN_ASM,      1, "in_asm",       "guest code of each block when it is first decoded")    \
    I(LOG_INT,         2, "int",          "interrupts and exceptions")                            \
    I(LOG_EXEC,        3, "exec",         "address of each block before it runs (very long)")     \
    I(LOG_CPU,         4, "cpu",          "CPU registers before each block runs (very long)")     \
    I(LOG_FPU,         5, "fpu",          "FPU registers too, with 'cpu'")                        \
    I(LOG_MMU,         6, "mmu",          "page walks, faults and TLB flushes")                   \
    I(LOG_PCALL,       7, "pcall",        "far calls, returns, task switches in protected mode")  \
    I(LOG_CPU_RESET,   8, "cpu_reset",    "CPU state before a reset of the CPU")                  \
    I(LOG_UNIMP,       9, "unimp",        "uses of what is not implemented")                      \
    I(LOG_GUEST_ERROR, 10, "guest_errors", "invalid use of a device or the CPU by the guest")
/* clang-format on */

enum {
#define I(sym, bit, name, help) sym = BIT(bit),
    LOG_ITEM_TABLE(I)
#undef I
};

/* The items in force; 0 (nothing) by default. */
extern _Atomic uint32_t qemu_loglevel;

/* RT_SAFE. */
static inline bool qemu_loglevel_mask(uint32_t mask)
{
    return unlikely(atomic_load_explicit(&qemu_loglevel, memory_order_relaxed) & mask);
}

/* RT_SAFE. One message, at most LOG_LINE_MAX bytes (the rest is cut); fmt ends the line itself. */
#define LOG_LINE_MAX 496
void qemu_log(const char *fmt, ...) QEMU_PRINTF(1, 2);
void qemu_vlog(const char *fmt, va_list ap) QEMU_PRINTF(1, 0);

/*
 * At most LOG_LIMIT_BURST messages a second pass one LogLimit; the next one that passes is
 * preceded by the number of those held back, so that a guest cannot fill the disk.
 */
#define LOG_LIMIT_BURST 20
typedef struct LogLimit {
    _Atomic int64_t second; /* of CLOCK_MONOTONIC_COARSE */
    _Atomic uint32_t count, held_back;
} LogLimit;
/* RT_SAFE. May a message go out now? Says itself how many were held back. */
bool log_limit_pass(LogLimit *l);

/*
 * RT_SAFE. Logs if any item of mask is on. What the guest does wrong (LOG_GUEST_ERROR, LOG_UNIMP)
 * is limited for each place in the source.
 */
#define qemu_log_mask(mask, ...)                                                                   \
    do {                                                                                           \
        if (qemu_loglevel_mask(mask)) {                                                            \
            static LogLimit log_limit_here;                                                        \
            if (!((mask) & (LOG_GUEST_ERROR | LOG_UNIMP)) || log_limit_pass(&log_limit_here)) {    \
                qemu_log(__VA_ARGS__);                                                             \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* RT_SAFE. The same with a limit that the device instance owns. */
#define qemu_log_limited(limit, mask, ...)                                                         \
    do {                                                                                           \
        if (qemu_loglevel_mask(mask) && log_limit_pass(limit)) {                                   \
            qemu_log(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

/*
 * RT_SAFE. Is the guest's linear address in a range of -dfilter? True without one. Items about code
 * (in_asm, out_asm, exec, cpu) ask for the first byte of a block.
 */
bool qemu_log_in_addr_range(uint64_t addr);

/* ---- Start-up, exit and monitors: HELPER_ONLY ---- */

/* "int,cpu_reset", "all", "none"; an unknown item is named in the error. */
bool qemu_log_parse(const char *items, uint32_t *mask, Error **errp);
/*
 * -dfilter: START..END, START+LEN (both upwards), START-LEN (LEN bytes that end with START), separated
 * by commas; replaces what was set before. Start-up: before a vCPU runs. On errors, which name the
 * range, nothing changes.
 */
bool qemu_log_filter_parse(const char *ranges, Error **errp);
/* No filter any more. Tests. */
void qemu_log_filter_clear(void);
/* What `-d help` prints. */
void qemu_log_print_help(void);
/* -D. Opens the file (truncated); NULL: stderr. A "%d" in path stands for the process id. */
bool qemu_log_open(const char *path, Error **errp);
/* -D without -d: path is opened when something is to be logged, by a monitor; start-up. */
void qemu_log_open_later(const char *path);
/*
 * Makes the ring and the "log" thread, and puts mask in force. After os_daemonize(), as threads do
 * not survive fork(). May be called again to change the mask.
 */
bool qemu_log_start(uint32_t mask, Error **errp);
/* Writes out what is in the ring. Waits. */
void qemu_log_flush(void);
/* Ends the thread, flushes and closes the file. */
void qemu_log_close(void);

#endif
