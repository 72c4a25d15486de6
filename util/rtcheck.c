/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rtcheck build: malloc() and its kin of the C library, wrapped. From rtcheck_arm() on, a call
 * on an EVENT or VCPU thread is counted, and ends the program if so asked, unless it stands inside
 * rtcheck_allow_begin/end. Calls of libraries go through here too, as the program's symbols win.
 */
#include "qemu/thread.h"

#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "qemu/error.h"

/* The C library's own entry points; it has no header for them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static atomic_bool armed, trapping;
static _Atomic uint64_t counted, counted_allowed;
static __thread unsigned allowed;

void rtcheck_arm(bool trap)
{
    void *warm_up[2];

    backtrace(warm_up, 2); /* its first call loads a library, which allocates */
    atomic_store(&counted, 0);
    atomic_store(&counted_allowed, 0);
    atomic_store(&trapping, trap);
    atomic_store(&armed, true);
}

uint64_t rtcheck_alloc_count(void)
{
    return atomic_load(&counted);
}

uint64_t rtcheck_allowed_count(void)
{
    return atomic_load(&counted_allowed);
}

void rtcheck_start(void)
{
    const char *how = getenv("QEMU_RTCHECK");

    if (!how || strcmp(how, "trap") == 0) {
        rtcheck_arm(true);
    } else if (strcmp(how, "count") == 0) {
        rtcheck_arm(false);
    } else if (strcmp(how, "off") != 0) {
        error_report("QEMU_RTCHECK=%s: must be trap, count or off", how);
        exit(1);
    }
}

const char *rtcheck_mode(void)
{
    return !atomic_load(&armed) ? "off" : atomic_load(&trapping) ? "trap" : "count";
}

void rtcheck_stop(void)
{
    atomic_store(&armed, false);
}

void rtcheck_allow_begin(void)
{
    allowed++;
}

void rtcheck_allow_end(void)
{
    allowed--;
}

static QEMU_NOINLINE QEMU_NORETURN void trap(const char *what)
{
    char line[128];
    void *stack[32];

    allowed++; /* what follows may allocate */
    int n = snprintf(line, sizeof(line), "rtcheck: %s on %s thread '%s'\n", what,
                     qemu_thread_self_class() == THREAD_VCPU ? "VCPU" : "EVENT",
                     qemu_thread_self_name());
    if (write(STDERR_FILENO, line, n) == n) {
        backtrace_symbols_fd(stack, backtrace(stack, ARRAY_SIZE(stack)), STDERR_FILENO);
    }
    abort();
}

static inline void note(const char *what)
{
    if (likely(!atomic_load_explicit(&armed, memory_order_relaxed)) ||
        qemu_thread_self_class() == THREAD_HELPER) {
        return;
    }
    if (allowed) {
        atomic_fetch_add(&counted_allowed, 1);
        return;
    }
    atomic_fetch_add(&counted, 1);
    if (atomic_load(&trapping)) {
        trap(what);
    }
}

void rtcheck_helper_only(const char *function)
{
    note(function);
}

void *malloc(size_t size)
{
    note("malloc");
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    note("calloc");
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    note("realloc");
    return __libc_realloc(p, size);
}

void free(void *p)
{
    if (p) {
        note("free");
    }
    __libc_free(p);
}

void *memalign(size_t align, size_t size)
{
    note("memalign");
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    note("aligned_alloc");
    return __libc_memalign(align, size);
}

int posix_memalign(void **result, size_t align, size_t size)
{
    note("posix_memalign");
    if (align % sizeof(void *) || align & (align - 1) || !align) {
        return EINVAL;
    }
    void *p = __libc_memalign(align, size);
    if (!p) {
        return ENOMEM;
    }
    *result = p;
    return 0;
}
