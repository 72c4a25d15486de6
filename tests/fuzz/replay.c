/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The targets without libFuzzer: --target=NAME INPUT... runs each file twice. An input that does not
 * end, or makes the process grow by more than 64 MiB in its second run, is a failure, as is whatever
 * main.c, the target or a sanitizer of the build says.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include "fuzz.h"

#define SECONDS    5
#define GROWTH_KIB (64 * 1024)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long resident_kib(void)
{
    struct rusage ru;

    getrusage(RUSAGE_SELF, &ru);
    return ru.ru_maxrss;
}

/* Of the processor's time, as other tests may keep it busy; a wait is given longer. */
static void limited(const uint8_t *data, size_t size)
{
    const struct itimerval limit = { .it_value.tv_sec = SECONDS }, none = { 0 };

    setitimer(ITIMER_PROF, &limit, NULL);
    alarm(12 * SECONDS);
    LLVMFuzzerTestOneInput(data, size);
    alarm(0);
    setitimer(ITIMER_PROF, &none, NULL);
}

static void replay(const char *path)
{
    g_autofree char *data = NULL;
    g_autoptr(GError) err = NULL;
    gsize size;
    long before;

    if (!g_file_get_contents(path, &data, &size, &err)) {
        fuzz_fail("%s", err->message);
    }
    fprintf(stderr, "%s\n", path);
    limited((const uint8_t *)data, size);
    before = resident_kib();
    limited((const uint8_t *)data, size);
    fuzz_check(resident_kib() - before < GROWTH_KIB, "%s: grew by %ld KiB in its second run", path,
               resident_kib() - before);
}

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2)) {
            replay(argv[i]);
        }
    }
    /* Threads of the machine are still there; what is left at the end is judged by a sanitizer. */
    return 0;
}
