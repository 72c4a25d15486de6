/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options about the machine as a whole: memory, CPUs, clock, names, actions, accelerators. */
#include "qemu/opts.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "qemu/config.h"
#include "qemu/cutils.h"

/* ---- -m ---- */

/* slots= and maxmem= describe memory that is plugged in later: there is none. */
static bool no_memory_later(QemuOpts *opts, uint64_t ram_size, Error **errp)
{
    const char *text = qemu_opt_get(opts, "maxmem");
    uint64_t slots = qemu_opt_get_number(opts, "slots", 0), maxmem = 0;

    if (slots) {
        error_setg(errp, "-m slots=%s: no memory can be plugged in later; leave out slots and maxmem",
                   qemu_opt_get(opts, "slots"));
        return false;
    }
    if (text && (qemu_parse_size(text, 'M', &maxmem) < 0 || ROUND_UP(maxmem, 4096) != ram_size)) {
        error_setg(errp, "-m maxmem=%s: no memory can be plugged in later; it must be the same as size",
                   text);
        return false;
    }
    return true;
}

bool opts_parse_memory(QemuOpts *opts, uint64_t otherwise, uint64_t limit, uint64_t *ram_size,
                       Error **errp)
{
    const char *text = qemu_opt_get(opts, "size");
    uint64_t size = otherwise;
    char most[24];

    if (text) {
        int r = qemu_parse_size(text, 'M', &size);
        if (r == -EINVAL) {
            error_setg(errp, "-m %s: not a size; give MiB or a suffix, such as 512M or 1.5G", text);
            return false;
        }
        if (r == -ERANGE || size > limit) {
            error_setg(errp, "-m %s: too large, the machine takes at most %s", text,
                       qemu_format_size(limit, most, sizeof(most)));
            return false;
        }
        if (size == 0) {
            error_setg(errp, "-m %s: the machine needs memory; give at least 1M", text);
            return false;
        }
    }
    *ram_size = ROUND_UP(size, 4096); /* whole pages */
    return no_memory_later(opts, *ram_size, errp);
}

/* ---- -smp ---- */

/* One key of -smp. 0: left out. */
static bool smp_number(QemuOpts *opts, const char *key, unsigned limit, unsigned *n, Error **errp)
{
    const char *text = qemu_opt_get(opts, key);
    uint64_t v = 0;

    *n = 0;
    if (!text) {
        return true;
    }
    if (qemu_parse_u64(text, 10, &v) < 0 || v > limit) {
        error_setg(errp, "-smp %s=%s: must be a number from 1 to %u", key, text, limit);
        return false;
    }
    if (v == 0) {
        error_setg(errp, "-smp %s=0: must be at least 1", key);
        return false;
    }
    *n = v;
    return true;
}

/* Fills in what was left out; cores first, then sockets, then threads. */
static void smp_complete(SmpTopology *t)
{
    bool counted = t->cpus || t->maxcpus;

    t->dies = t->dies ? t->dies : 1;
    if (!counted) {
        t->sockets = t->sockets ? t->sockets : 1;
        t->cores = t->cores ? t->cores : 1;
        t->threads = t->threads ? t->threads : 1;
        t->maxcpus = t->cpus = t->sockets * t->dies * t->cores * t->threads;
        return;
    }
    t->maxcpus = t->maxcpus ? t->maxcpus : t->cpus;
    if (!t->cores) {
        t->sockets = t->sockets ? t->sockets : 1;
        t->threads = t->threads ? t->threads : 1;
        t->cores = t->maxcpus / (t->sockets * t->dies * t->threads);
    } else if (!t->sockets) {
        t->threads = t->threads ? t->threads : 1;
        t->sockets = t->maxcpus / (t->dies * t->cores * t->threads);
    }
    if (!t->threads) {
        t->threads = t->maxcpus / (t->sockets * t->dies * t->cores);
    }
    t->cpus = t->cpus ? t->cpus : t->maxcpus;
}

static bool smp_check(const SmpTopology *t, unsigned max_cpus, const char *machine, Error **errp)
{
    uint64_t product = (uint64_t)t->sockets * t->dies * t->cores * t->threads;

    if (t->maxcpus > max_cpus) {
        error_setg(errp, "-smp: %u CPUs are more than machine '%s' has room for (%u)", t->maxcpus,
                   machine, max_cpus);
        return false;
    }
    if (product == 0) { /* what was left out had to be less than one */
        error_setg(errp, "-smp: %u CPUs are fewer than the topology has places; give more CPUs, or fewer "
                         "sockets, dies, cores or threads", t->maxcpus);
        return false;
    }
    if (product != t->maxcpus) {
        error_setg(errp,
                   "-smp: sockets (%u) * dies (%u) * cores (%u) * threads (%u) is %" PRIu64
                   ", but must be maxcpus (%u); give numbers whose product it is, or leave some out",
                   t->sockets, t->dies, t->cores, t->threads, product, t->maxcpus);
        return false;
    }
    if (t->cpus > t->maxcpus) {
        error_setg(errp, "-smp cpus=%u: more than maxcpus (%u)", t->cpus, t->maxcpus);
        return false;
    }
    return true;
}

bool opts_parse_smp(QemuOpts *opts, unsigned max_cpus, const char *machine, SmpTopology *topo,
                    Error **errp)
{
    /* Small enough that no product below overflows, large enough for a message about the machine.
     */
    const unsigned limit = 1023;
    SmpTopology t;

    if (!smp_number(opts, "cpus", limit, &t.cpus, errp) ||
        !smp_number(opts, "maxcpus", limit, &t.maxcpus, errp) ||
        !smp_number(opts, "sockets", limit, &t.sockets, errp) ||
        !smp_number(opts, "dies", limit, &t.dies, errp) ||
        !smp_number(opts, "cores", limit, &t.cores, errp) ||
        !smp_number(opts, "threads", limit, &t.threads, errp)) {
        return false;
    }
    if (qemu_opt_get_number(opts, "clusters", 1) != 1) {
        error_setg(errp, "-smp clusters=%s: a PC's dies have no clusters; leave it out, or say 1",
                   qemu_opt_get(opts, "clusters"));
        return false;
    }
    uint64_t given = 1;
    unsigned parts[] = { t.sockets, t.dies, t.cores, t.threads };
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        given *= parts[i] ? parts[i] : 1;
        if (given > limit) {
            error_setg(errp, "-smp: a topology of more than %u CPUs; machine '%s' has room for %u",
                       limit, machine, max_cpus);
            return false;
        }
    }
    smp_complete(&t);
    if (!smp_check(&t, max_cpus, machine, errp)) {
        return false;
    }
    *topo = t;
    return true;
}

/* ---- Small ones ---- */

bool opts_parse_uuid(const char *text, uint8_t uuid[16], Error **errp)
{
    if (qemu_uuid_parse(text, uuid)) {
        return true;
    }
    error_setg(errp, "-uuid %s: not a UUID; give hexadecimal digits in groups of 8-4-4-4-12", text);
    return false;
}

/* value's place in words, which ends with NULL; a missing value leaves *index alone. */
static bool one_of(const char *option, QemuOpts *opts, const char *key, const char *const *words,
                   int *index, Error **errp)
{
    const char *value = qemu_opt_get(opts, key);

    if (!value) {
        return true;
    }
    for (int i = 0; words[i]; i++) {
        if (!strcmp(value, words[i])) {
            *index = i;
            return true;
        }
    }
    char *list = g_strjoinv(", ", (char **)words);
    error_setg(errp, "%s %s=%s: must be one of: %s", option, key, value, list);
    g_free(list);
    return false;
}

static bool rtc_date(const char *text, RtcOpts *rtc, Error **errp)
{
    static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d" };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct tm tm = { 0 };
        const char *end = strptime(text, forms[i], &tm);
        if (end && !*end) {
            rtc->dated = true;
            rtc->date_s = (int64_t)timegm(&tm);
            return true;
        }
    }
    error_setg(errp,
               "-rtc base=%s: must be 'utc', 'localtime', or a date such as 2006-06-17T16:01:21 or "
               "2006-06-17",
               text);
    return false;
}

bool opts_parse_rtc(QemuOpts *opts, RtcOpts *rtc, Error **errp)
{
    static const char *const clocks[] = { "host", "rt", "vm", NULL };
    static const char *const fixes[] = { "none", "slew", NULL };
    const char *base = qemu_opt_get(opts, "base");
    int clock = RTC_CLOCK_HOST, fix = 0;

    memset(rtc, 0, sizeof(*rtc));
    if (base && !strcmp(base, "localtime")) {
        rtc->local = true;
    } else if (base && strcmp(base, "utc") && !rtc_date(base, rtc, errp)) {
        return false;
    }
    if (!one_of("-rtc", opts, "clock", clocks, &clock, errp) ||
        !one_of("-rtc", opts, "driftfix", fixes, &fix, errp)) {
        return false;
    }
    rtc->clock = clock;
    rtc->driftfix_slew = fix;
    return true;
}

bool opts_parse_action(QemuOpts *opts, VmActions *actions, Error **errp)
{
    static const char *const reboots[] = { "reset", "shutdown", NULL };
    static const char *const shutdowns[] = { "poweroff", "pause", NULL };
    static const char *const panics[] = { "shutdown", "pause", "none", "exit-failure", NULL };
    static const char *const watchdogs[] = { "reset", "shutdown", "poweroff", "inject-nmi",
                                             "pause", "debug",    "none",     NULL };
    int reboot = actions->reboot_is_shutdown, shutdown = actions->shutdown_is_pause;
    int panic = -1, watchdog = -1;

    if (!one_of("-action", opts, "reboot", reboots, &reboot, errp) ||
        !one_of("-action", opts, "shutdown", shutdowns, &shutdown, errp) ||
        !one_of("-action", opts, "panic", panics, &panic, errp) ||
        !one_of("-action", opts, "watchdog", watchdogs, &watchdog, errp)) {
        return false;
    }
    actions->reboot_is_shutdown = reboot;
    actions->shutdown_is_pause = shutdown;
    if (panic >= 0) {
        actions->panic_is_pause = panic == 1;
        actions->panic_is_none = panic == 2;
        actions->panic_is_exit_failure = panic == 3;
    }
    if (watchdog >= 0) {
        actions->watchdog_set = true;
        actions->watchdog = watchdog; /* the words stand in WatchdogAction's order */
    }
    return true;
}

bool opts_parse_name(QemuOpts *opts, NameOpts *name, Error **errp)
{
    *name = (NameOpts){ .guest = qemu_opt_get(opts, "guest"),
                        .process = qemu_opt_get(opts, "process"),
                        .debug_threads = qemu_opt_get_bool(opts, "debug-threads", true) };
    if (name->process && !*name->process) {
        error_setg(errp, "-name process=: the name is empty");
        return false;
    }
    return true;
}

void opts_apply_msg(QemuOpts *opts, const char *guest)
{
    error_set_timestamps(qemu_opt_get_bool(opts, "timestamp", false));
    error_set_guest_name(qemu_opt_get_bool(opts, "guest-name", false) ? guest : NULL);
}

static bool boot_letters(QemuOpts *opts, const char *key, const char **result, Error **errp)
{
    const char *text = qemu_opt_get(opts, key);
    unsigned seen = 0;

    for (const char *p = text; p && *p; p++) {
        if (!strchr("abcdn", *p)) {
            error_setg(errp, "-boot %s=%s: '%c' is no boot device; they are a and b (floppy), c (disk), "
                             "d (CD-ROM) and n (network)", key, text, *p);
            return false;
        }
        if (seen & BIT(*p - 'a')) {
            error_setg(errp, "-boot %s=%s: '%c' is there twice", key, text, *p);
            return false;
        }
        seen |= BIT(*p - 'a');
    }
    *result = text;
    return true;
}

bool opts_parse_boot(QemuOpts *opts, BootOpts *boot, Error **errp)
{
    uint64_t splash = qemu_opt_get_number(opts, "splash-time", 0);

    memset(boot, 0, sizeof(*boot));
    if (!boot_letters(opts, "order", &boot->order, errp) ||
        !boot_letters(opts, "once", &boot->once, errp)) {
        return false;
    }
    if (splash > 0xffff) {
        error_setg(errp, "-boot splash-time=%" PRIu64 ": must be from 0 to 65535 ms", splash);
        return false;
    }
    boot->splash_time_ms = splash;
    boot->menu = qemu_opt_get_bool(opts, "menu", false);
    boot->strict = qemu_opt_get_bool(opts, "strict", false);
    return true;
}

/* ---- -machine ---- */

bool opts_parse_irqchip(const char *text, IrqchipChoice *choice, Error **errp)
{
    bool on;

    if (!text) {
        return true;
    }
    if (!strcmp(text, "split")) {
        *choice = IRQCHIP_SPLIT;
    } else if (qemu_parse_bool(text, &on)) {
        *choice = on ? IRQCHIP_ON : IRQCHIP_OFF;
    } else {
        error_setg(errp, "kernel-irqchip=%s: must be 'on', 'off' or 'split'", text);
        return false;
    }
    return true;
}

/* on, off or auto; what comes out for auto is auto_is. */
static bool machine_on_off_auto(QemuOpts *opts, const char *key, bool auto_is, bool *value,
                                Error **errp)
{
    const char *text = qemu_opt_get(opts, key);

    *value = auto_is;
    if (!text || !strcmp(text, "auto") || qemu_parse_bool(text, value)) {
        return true;
    }
    error_setg(errp, "-machine %s=%s: must be 'on', 'off' or 'auto'", key, text);
    return false;
}

static bool machine_refuse_on(const char *key, bool value, Error **errp)
{
    if (value) {
        error_setg(errp, "-machine %s=on: this machine has none yet; leave it out or say off", key);
    }
    return !value;
}

bool opts_parse_machine(QemuOpts *opts, MachineOpts *machine, Error **errp)
{
    bool smm, vmport;
    Error *err = NULL;

    *machine = (MachineOpts){
        .type = qemu_opt_get(opts, "type"),
        .hpet = qemu_opt_get_bool(opts, "hpet", true),
        .graphics = qemu_opt_get_bool(opts, "graphics", true),
        .dump_guest_core = qemu_opt_get_bool(opts, "dump-guest-core", true),
        .mem_merge = qemu_opt_get_bool(opts, "mem-merge", false),
        .memory_backend = qemu_opt_get(opts, "memory-backend"),
        .kernel = qemu_opt_get(opts, "kernel"),
        .initrd = qemu_opt_get(opts, "initrd"),
        .append = qemu_opt_get(opts, "append"),
        .firmware = qemu_opt_get(opts, "firmware"),
    };
    if (!opts_parse_irqchip(qemu_opt_get(opts, "kernel-irqchip"), &machine->kernel_irqchip, &err)) {
        error_prepend(&err, "-machine ");
        error_propagate(errp, err);
        return false;
    }
    return machine_on_off_auto(opts, "acpi", true, &machine->acpi, errp) &&
           machine_on_off_auto(opts, "pit", true, &machine->pit, errp) &&
           machine_on_off_auto(opts, "smm", false, &smm, errp) &&
           machine_on_off_auto(opts, "vmport", false, &vmport, errp) &&
           machine_refuse_on("smm", smm, errp) && machine_refuse_on("vmport", vmport, errp) &&
           machine_refuse_on("usb", qemu_opt_get_bool(opts, "usb", false), errp);
}

/* ---- Accelerators ---- */

static void add_accel(GArray *list, const char *name, QemuOpts *opts)
{
    AccelChoice choice = { g_strdup(name), opts };
    g_array_append_val(list, choice);
}

static bool add_accel_set(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *name = qemu_opt_get(opts, "accel");

    if (!name) {
        error_setg(errp, "-accel: the accelerator's name is missing; -accel help lists them");
        return false;
    }
    add_accel(opaque, name, opts);
    return true;
}

bool opts_parse_accels(bool enable_kvm, AccelChoice **choices, Error **errp)
{
    GArray *list = g_array_new(TRUE, TRUE, sizeof(AccelChoice));
    QemuOptsList *group = qemu_find_opts("accel", &error_abort);
    const char *machine = qemu_opt_get(qemu_find_opts_singleton("machine"), "accel");

    if (machine && (group->first || enable_kvm)) {
        error_setg(errp,
                   "-machine accel=%s: cannot be combined with -accel or -enable-kvm; use one "
                   "of them",
                   machine);
        goto fail;
    }
    if (machine) {
        char **names = g_strsplit(machine, ":", -1);
        for (char **n = names; *n; n++) {
            add_accel(list, *n, NULL);
        }
        g_strfreev(names);
    }
    if (!qemu_opts_foreach(group, add_accel_set, list, errp)) {
        goto fail;
    }
    if (enable_kvm) {
        add_accel(list, "kvm", NULL);
    }
    *choices = (AccelChoice *)g_array_free(list, FALSE);
    return true;
fail:
    opts_free_accels((AccelChoice *)g_array_free(list, FALSE));
    return false;
}

void opts_free_accels(AccelChoice *choices)
{
    for (AccelChoice *c = choices; c && c->name; c++) {
        g_free(c->name);
    }
    g_free(choices);
}

/* ---- Where there is nothing to choose ---- */

bool opts_check_display(const char *arg, Error **errp)
{
    if (strcmp(arg, "none") != 0) {
        error_setg(errp, "this program has no such display; use none");
        return false;
    }
    return true;
}

bool opts_check_audiodev(const char *arg, Error **errp)
{
    QemuOptsList list = { .name = "audiodev", .implied_opt_name = "driver" };
    QemuOpts *opts = arg[0] == '{' ? qemu_opts_parse_json(&list, arg, errp)
                                   : qemu_opts_parse(&list, arg, errp);
    const char *driver = qemu_opt_get(opts, "driver");
    bool ok = driver && !strcmp(driver, "none");

    if (opts && !ok) {
        error_setg(errp, "this program plays no sound; use driver 'none'");
    }
    qemu_opts_reset(&list);
    return ok;
}

bool opts_check_sandbox(const char *arg, Error **errp)
{
    if (strcmp(arg, "off") != 0) {
        error_setg(errp, "this program has no filter of system calls; use off");
        return false;
    }
    return true;
}
