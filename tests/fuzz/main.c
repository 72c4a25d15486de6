/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of targets, and what libFuzzer calls. The target is chosen by --target=NAME. */
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "fuzz.h"
#include "qemu/error.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const FuzzTarget *const tables[] = {
    fuzz_devices, fuzz_texts, fuzz_monitors, fuzz_kernels,
#ifdef CONFIG_TCG
    fuzz_code, fuzz_programs,
#endif
};
static const FuzzTarget *target;
static int report_fd = 2; /* libFuzzer closes standard error, where the code under test may write */

void fuzz_target_foreach(void (*fn)(const FuzzTarget *t))
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (const FuzzTarget *t = tables[i]; t->name; t++) {
            fn(t);
        }
    }
}

const FuzzTarget *fuzz_target_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (const FuzzTarget *t = tables[i]; t->name; t++) {
            if (strcmp(t->name, name) == 0) {
                return t;
            }
        }
    }
    return NULL;
}

void fuzz_fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    dprintf(report_fd, "fuzz: ");
    vdprintf(report_fd, fmt, ap);
    dprintf(report_fd, "\n");
    va_end(ap);
    abort();
}

static void print_name(const FuzzTarget *t)
{
    puts(t->name);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    /* No file that a command names is made large. */
    struct rlimit files = { 16 * MiB, 16 * MiB };

    for (int i = 1; i < *argc; i++) {
        if (strcmp((*argv)[i], "--list") == 0) {
            fuzz_target_foreach(print_name);
            exit(0);
        }
        if (strncmp((*argv)[i], "--target=", 9) == 0) {
            target = fuzz_target_find((*argv)[i] + 9);
        }
    }
    if (!target) {
        fprintf(stderr, "usage: %s --target=NAME [INPUT...]; --list shows the names\n", (*argv)[0]);
        exit(2);
    }
    report_fd = dup(2);
    signal(SIGPIPE, SIG_IGN);
    error_set_progname("fuzz");
    if (target->init) {
        target->init(target); /* maps more than that */
    }
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &files);
    return 0;
}

/* ---- What a run leaves behind ---- */

#define LEFT_BY_ONE ((size_t)8 * MiB)
#define LEFT_BY_ALL ((size_t)128 * MiB)
#define WARM_UP     64 /* runs */

/* Of the address sanitizer; without it there are other limits (replay.c). */
size_t __attribute__((weak)) __sanitizer_get_current_allocated_bytes(void);

static void check_growth(size_t before)
{
    static unsigned runs;
    static size_t first;
    size_t now = __sanitizer_get_current_allocated_bytes();

    runs++;
    if (runs <= WARM_UP) {
        first = now;
        return;
    }
    fuzz_check(now < before + LEFT_BY_ONE, "one input left %zu bytes allocated", now - before);
    fuzz_check(now < first + LEFT_BY_ALL, "%u inputs left %zu bytes allocated", runs - WARM_UP,
               now - first);
}

/* Of the processor's time: others may keep it busy. A run that never ends libFuzzer, resp. replay.c
 * ends. */
#define SECONDS 5.0

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double begin = seconds();
    bool counted = &__sanitizer_get_current_allocated_bytes != NULL;
    size_t before = counted ? __sanitizer_get_current_allocated_bytes() : 0;
    /* Of its own exact size, so that a read past the end is seen in every build. */
    uint8_t *copy = g_malloc(size ? size : 1);

    memcpy(copy, data, size);
    target->run(copy, size);
    g_free(copy);
    fuzz_check(seconds() - begin < SECONDS, "one input took %.1f s", seconds() - begin);
    if (counted) {
        check_growth(before);
    }
    return 0;
}
