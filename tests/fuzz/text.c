/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the operator writes: option strings (both notations) of every group with what reads the
 * group, options that are no group, configuration files, lists of CPUs.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"
#include "hw/machine.h"
#include "qemu/cmdline.h"
#include "qemu/config.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "qemu/opts.h"
#include "realtime/cpulist.h"
#include "realtime/options.h"
#include "target/i386/cpu.h"

/* An error has a text of one line; success has none. */
static void judge(bool ok, Error *err, const char *what)
{
    fuzz_check(ok == !err, "%s: %s", what, ok ? "an error comes with success" : "no error told");
    if (err) {
        fuzz_check(*error_get_pretty(err) && error_get_pretty(err)[0] != '\n', "%s: no message", what);
        error_free(err);
    }
}

/* ---- Groups ---- */

static void read_memory(QemuOpts *o, Error **errp)
{
    uint64_t size;

    opts_parse_memory(o, 128 * MiB, 1 * TiB, &size, errp);
}
static void read_smp(QemuOpts *o, Error **errp)
{
    SmpTopology t = { 0 };

    if (opts_parse_smp(o, 255, "pc", &t, errp)) {
        fuzz_check(t.cpus >= 1 && t.cpus <= t.maxcpus && t.maxcpus <= 255 &&
                       t.sockets * t.dies * t.cores * t.threads == t.maxcpus,
                   "-smp: %u of %u in %u*%u*%u*%u", t.cpus, t.maxcpus, t.sockets, t.dies, t.cores,
                   t.threads);
    }
}
static void read_rtc(QemuOpts *o, Error **errp)
{
    RtcOpts r;

    opts_parse_rtc(o, &r, errp);
}
static void read_icount(QemuOpts *o, Error **errp)
{
    IcountOpts i;

    opts_parse_icount(o, &i, errp);
}
static void read_action(QemuOpts *o, Error **errp)
{
    VmActions a = { 0 };

    opts_parse_action(o, &a, errp);
}
static void read_name(QemuOpts *o, Error **errp)
{
    NameOpts n;

    opts_parse_name(o, &n, errp);
}
static void read_boot(QemuOpts *o, Error **errp)
{
    BootOpts b;

    opts_parse_boot(o, &b, errp);
}
static void read_machine(QemuOpts *o, Error **errp)
{
    MachineOpts m = { 0 };
    AccelChoice *choices = NULL;
    Error *err = NULL;

    opts_parse_accels(false, &choices, &err);
    error_free(err);
    opts_free_accels(choices);
    opts_parse_machine(o, &m, errp);
}
static void read_accel(QemuOpts *o, Error **errp)
{
    AccelChoice *choices = NULL;

    opts_parse_accels(false, &choices, errp);
    opts_free_accels(choices);
}
static void no_warning(void *opaque, const char *text)
{
}
static void read_realtime(QemuOpts *o, Error **errp)
{
    static RealtimeOptions r;
    RealtimeCpus cpus = { .vcpus = 4 };

    memset(&r, 0, sizeof(r));
    cpu_set_first(&cpus.online, 4);
    cpus.allowed = cpus.online;
    qemu_cpu_set_add(&cpus.isolated, 2);
    if (realtime_options_parse(&cpus, &r, errp)) {
        realtime_options_warnings(&cpus, &r, no_warning, NULL);
    }
}

static const struct {
    const char *group;
    void (*read)(QemuOpts *o, Error **errp);
} readers[] = {
    { "memory", read_memory },   { "smp-opts", read_smp },     { "rtc", read_rtc },
    { "icount", read_icount },   { "action", read_action },    { "name", read_name },
    { "boot-opts", read_boot },  { "machine", read_machine },  { "accel", read_accel },
    { "realtime", read_realtime }, { "overcommit", read_realtime },
};

static void read_group(const QemuOptsList *list, QemuOpts *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        Error *err = NULL;

        if (strcmp(readers[i].group, list->name) == 0) {
            readers[i].read(o, &err);
            judge(!err, err, list->name);
        }
    }
}

/* ---- Options without a group ---- */

static bool check_uuid(const char *s, Error **errp)
{
    uint8_t uuid[16];

    return opts_parse_uuid(s, uuid, errp);
}
static bool check_seed(const char *s, Error **errp)
{
    uint64_t seed;

    return opts_parse_seed(s, &seed, errp);
}
static bool check_log(const char *s, Error **errp)
{
    uint32_t mask = 0;

    return strcmp(s, "help") == 0 || strcmp(s, "?") == 0 || qemu_log_parse(s, &mask, errp);
}
static bool check_absent(const char *s, Error **errp)
{
    const char *why = opts_why_absent(s);

    fuzz_check(!why || *why, "an option is absent for no reason");
    return true;
}
static bool check_vnc(const char *s, Error **errp)
{
    return opts_check_none("vnc", s, errp);
}
static bool check_cpu(const char *s, Error **errp)
{
    return is_help_option(s) || x86_cpu_set_model(s, errp);
}

static const struct {
    const char *name;
    bool (*fn)(const char *s, Error **errp);
} checks[] = {
    { "uuid", check_uuid },        { "seed", check_seed },
    { "log", check_log },          { "absent", check_absent },
    { "dfilter", qemu_log_filter_parse },
    { "vnc", check_vnc },          { "cpu", check_cpu },
    { "display", opts_check_display }, { "audiodev", opts_check_audiodev },
    { "keyboard", opts_check_keyboard }, { "sandbox", opts_check_sandbox },
};

static GPtrArray *groups;

static void add_group(const QemuOptsList *list, void *opaque)
{
    g_ptr_array_add(groups, (void *)list);
}

static void groups_reset(void)
{
    for (guint i = 0; i < groups->len; i++) {
        qemu_opts_reset(groups->pdata[i]);
    }
}

static void option_init(const FuzzTarget *t)
{
    groups = g_ptr_array_new();
    qemu_opts_lists_foreach(add_group, NULL);
}

static void group_run(QemuOptsList *list, const char *text)
{
    Error *err = NULL;
    QemuOpts *opts = qemu_opts_parse(list, text, &err);

    judge(opts != NULL, err, list->name);
    if (opts && !qemu_opts_has_help(opts)) {
        g_autofree char *again = qemu_opts_text(opts);

        read_group(list, opts);
        fuzz_check(again, "%s: no text", list->name);
    }
    groups_reset();
}

/* "GROUP VALUE", or "CHECK VALUE". */
static void option_run(const uint8_t *data, size_t size)
{
    FuzzIn in = { data, size };
    g_autofree char *name = fuzz_text(&in);
    char *text = strchr(name, ' ');
    QemuOptsList *list;
    Error *err = NULL;

    if (!text) {
        return;
    }
    *text++ = 0;
    list = qemu_find_opts(name, NULL);
    if (list) {
        group_run(list, text);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (strcmp(checks[i].name, name) == 0) {
            bool ok = checks[i].fn(text, &err);

            judge(ok, err, name);
            return;
        }
    }
}

/* ---- The words of a command line, one a line ---- */

static void cmdline_run(const uint8_t *data, size_t size)
{
    FuzzIn in = { data, size };
    g_autofree char *text = fuzz_text(&in);
    g_auto(GStrv) words = g_strsplit(text, "\n", 64);
    Cmdline c;
    CmdlineUse use;
    Error *err = NULL;
    int r;

    cmdline_init(&c, (int)g_strv_length(words), words);
    while ((r = cmdline_next(&c, &use, &err)) > 0) {
        const char *group = use.option->group;

        if (group && !qemu_opts_parse(qemu_find_opts(group, &error_abort), use.arg ? use.arg : "",
                                      &err)) {
            break;
        }
    }
    judge(r == 0, err, "command line");
    for (guint i = 0; i < groups->len && r == 0; i++) {
        QemuOptsList *list = groups->pdata[i];

        read_group(list, qemu_opts_find(list, NULL));
    }
    groups_reset();
}

/* ---- -readconfig ---- */

static void readconfig_run(const uint8_t *data, size_t size)
{
    int fd = memfd_create("config", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    Error *err = NULL;
    bool ok;

    fuzz_check(write(fd, data, size) == (ssize_t)size, "cannot write a file in memory");
    ok = qemu_read_config_file(path, &err);
    judge(ok, err, "-readconfig");
    close(fd);
    groups_reset();
}

/* ---- Lists of CPUs ---- */

static void cpulist_run(const uint8_t *data, size_t size)
{
    static CpuList list, again;
    FuzzIn in = { data, size };
    g_autofree char *text = NULL;
    char out[8 * QEMU_CPU_SET_MAX];
    QemuCpuSet valid = { 0 };
    Error *err = NULL;
    bool ok;

    cpu_set_first(&valid, (unsigned)fuzz_take(&in, 2) % (QEMU_CPU_SET_MAX + 1));
    text = fuzz_text(&in);
    ok = cpu_list_parse("-realtime vcpus", "vCPU", text, &valid, &list, &err);
    judge(ok, err, "list of CPUs");
    if (!ok) {
        return;
    }
    fuzz_check(list.count && qemu_cpu_set_within(&list.set, &valid), "a CPU that there is not");
    cpu_set_format(&list.set, out, sizeof(out));
    fuzz_check(cpu_list_parse("-realtime vcpus", "vCPU", out, &valid, &again, NULL) &&
                   qemu_cpu_set_equal(&list.set, &again.set),
               "'%s' is written as '%s'", text, out);
}

const FuzzTarget fuzz_texts[] = {
    { "option", option_init, option_run },
    { "cmdline", option_init, cmdline_run },
    { "readconfig", option_init, readconfig_run },
    { "cpulist", NULL, cpulist_run },
    {},
};
