/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an emulator does about -realtime, without the emulator: parses the options, asks the host,
 * and makes one thread of each class. Prints what the kernel then says, one "key: value" a line.
 * usage: prioritize [-m BYTES-TO-COME] [-smp N] [-realtime ...] [-overcommit ...] [-readconfig F]
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qemu/cmdline.h"
#include "qemu/config.h"
#include "qemu/opts.h"
#include "qemu/os.h"
#include "qemu/thread.h"
#include "realtime/options.h"

static bool on_option(const CmdlineUse *use, void *opaque, Error **errp)
{
    if (use->option->index == QEMU_OPTION_readconfig) {
        return qemu_read_config_file(use->arg, errp);
    }
    return true;
}

static void print_self(const char *what)
{
    struct sched_param sp = { 0 };
    int policy = sched_getscheduler(0) & ~0x40000000; /* SCHED_RESET_ON_FORK */
    const char *name = policy == SCHED_FIFO ? "fifo" : policy == SCHED_RR ? "rr" : "other";

    sched_getparam(0, &sp);
    printf("%s: %s %d\n", what, name, sp.sched_priority);
}

static void *thread_fn(void *arg)
{
    print_self(arg);
    return NULL;
}

static void run_thread(const char *name, ThreadClass cls)
{
    QemuThread t;

    if (qemu_thread_create(&t, name, cls, thread_fn, (void *)name, &error_fatal)) {
        qemu_thread_join(&t);
    }
}

static void print_memory(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof(line), f)) {
        unsigned long kib;
        if (sscanf(line, "VmLck: %lu", &kib) == 1) {
            printf("locked: %lu\n", kib * 1024);
        } else if (sscanf(line, "VmSize: %lu", &kib) == 1) {
            printf("size: %lu\n", kib * 1024);
        }
    }
    if (f) {
        fclose(f);
    }
}

/* Page faults while memory that is new is used for the first time. */
static void print_faults(void)
{
    struct rusage before, after;
    size_t bytes = 8 * MiB;
    char *p = malloc(bytes);

    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; p && i < bytes; i += 4096) {
        ((volatile char *)p)[i] = 1;
    }
    getrusage(RUSAGE_SELF, &after);
    printf("faults: %ld\n", after.ru_minflt - before.ru_minflt);
    free(p);
}

int main(int argc, char **argv)
{
    static RealtimeOptions options;
    RealtimeCpus cpus;
    SmpTopology smp;
    uint64_t bytes = 0;
    QemuThread self;
    Error *err = NULL;

    error_set_progname(argv[0]);
    os_set_line_buffering();
    if (!cmdline_parse(argc, argv, on_option, NULL, NULL)) {
        return 1;
    }
    bool ok =
        opts_parse_smp(qemu_find_opts_singleton("smp-opts"), 255, "test", &smp, &err) &&
        opts_parse_memory(qemu_find_opts_singleton("memory"), MiB, UINT64_MAX / 2, &bytes, &err);
    if (ok) {
        realtime_cpus_read(&cpus, smp.maxcpus, smp.cpus);
        ok = realtime_options_parse(&cpus, &options, &err) &&
             os_prioritize(&options.config, bytes, &err);
    }
    if (!ok) {
        error_report_err(err);
        print_self("main");
        print_memory();
        return 1;
    }
    if (!qemu_thread_adopt_self(&self, "main loop", THREAD_EVENT, &err)) {
        error_report_err(err);
        return 1;
    }
    print_self("main");
    run_thread("event", THREAD_EVENT);
    run_thread("vcpu", THREAD_VCPU);
    run_thread("helper", THREAD_HELPER);
    print_memory();
    print_faults();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        print_self("child");
        exit(0);
    }
    return waitpid(child, NULL, 0) != child;
}
