/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiler vocabulary shared by all rooms: branch hints, small arithmetic macros, and the
 * annotations that say on which class of thread a function may run.
 */
#ifndef QEMU_COMPILER_H
#define QEMU_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)      (sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define ROUND_UP(n, d)     (((n) + (d)-1) & ~((__typeof__(n))(d)-1))
#define ROUND_DOWN(n, d)   ((n) & ~((__typeof__(n))(d)-1))
#ifndef MIN /* GLib defines the same */
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))
#endif
#define BIT(n)             (1u << (n))
#define BIT64(n)           (1ull << (n))

#define KiB (1024ull)
#define MiB (1024ull * 1024)
#define GiB (1024ull * 1024 * 1024)
#define TiB (1024ull * 1024 * 1024 * 1024)

#define NANOSECONDS_PER_SECOND 1000000000ll

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define QEMU_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define QEMU_NORETURN     __attribute__((noreturn))
#define QEMU_NOINLINE     __attribute__((noinline))
#define QEMU_ALIGNED(n)   __attribute__((aligned(n)))
#define QEMU_PACKED       __attribute__((packed))
#define QEMU_UNUSED       __attribute__((unused))
#define QEMU_MUST_CHECK   __attribute__((warn_unused_result))

/*
 * Who may call a function. These words are documentation that tools can grep; the rtcheck build
 * turns the run-time half of the contract into assertions (see docs/devel/threads.md).
 *
 * RT_SAFE      any thread. Takes only priority-inheriting locks, never allocates, never sleeps on
 *              the host, does a bounded amount of work.
 * EVENT        an event thread (the main loop or an iothread) or, before the guest runs, start-up.
 * HELPER_ONLY  helper threads and start-up: may allocate, block and do host I/O.
 */
#define RT_SAFE
#define EVENT
#define HELPER_ONLY

/* Clang's thread-safety analysis (-Wthread-safety); nothing under gcc. */
#if defined(__clang__)
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif
#define TSA_CAPABILITY(n) TSA(capability(n))
#define GUARDED_BY(x)     TSA(guarded_by(x))
#define REQUIRES(...)     TSA(requires_capability(__VA_ARGS__))
#define ACQUIRE(...)      TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...)      TSA(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...)  TSA(try_acquire_capability(__VA_ARGS__))
#define NO_TSA            TSA(no_thread_safety_analysis)

#endif
