/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option groups, and configuration files that fill them. */
#include "qemu/config.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "qemu/file.h"

/* clang-format off */
#define S(name, help) { name, QEMU_OPT_STRING, help }
#define B(name, help) { name, QEMU_OPT_BOOL, help }
#define N(name, help) { name, QEMU_OPT_NUMBER, help }
#define Z(name, help) { name, QEMU_OPT_SIZE, help }
#define L(name, help) { name, QEMU_OPT_LIST, help }
#define END           { NULL }

static const QemuOptDesc machine_desc[] = {
    S("type", "machine type"),
    S("accel", "accelerators to try, separated by ':'"),
    S("kernel-irqchip", "on, off or split"),
    B("hpet", "high precision event timer"),
    S("acpi", "ACPI tables: on, off or auto"),
    S("pit", "programmable interval timer: on, off or auto"),
    B("usb", "USB controller"),
    S("smm", "system management mode: on, off or auto"),
    S("vmport", "VMware I/O port: on, off or auto"),
    B("graphics", "firmware output on a display"),
    B("dump-guest-core", "guest memory in core dumps"),
    B("mem-merge", "let the host merge equal pages"),
    S("memory-backend", "name of the main memory"),
    S("kernel", "as -kernel"), S("initrd", "as -initrd"), S("append", "as -append"),
    S("firmware", "as -bios"), END
};
static const QemuOptDesc accel_desc[] = {
    S("accel", "kvm, tcg or qtest"),
    S("thread", "tcg: single or multi"),
    N("tb-size", "tcg: MiB of translated code"),
    B("one-insn", "tcg: interpret every instruction, translate nothing"),
    B("exact-flags", "tcg: RFLAGS exact even at a fault"),
    S("host-without", "tcg: for tests, features the host is taken to lack, separated by ':'; or all"),
    S("state-log", "tcg: file for the states of a deterministic run"),
    N("state-every", "tcg: instructions between two states (10000)"),
    N("state-from", "tcg: instructions before the first"),
    N("state-ram-every", "tcg: states between two that tell of RAM (0: none does)"),
    B("state-blocks", "tcg: all registers before each block"),
    N("state-flip", "tcg: instructions before a bit is flipped, to try the log"),
    S("kernel-irqchip", "kvm: on, off or split"),
    Z("kvm-shadow-mem", "kvm: size of the shadow page tables"),
    N("dirty-ring-size", "kvm: only 0, the dirty bitmap"),
    END
};
static const QemuOptDesc smp_desc[] = {
    N("cpus", "CPUs at start"), N("maxcpus", "CPUs with those plugged in later"),
    N("sockets", NULL), N("dies", "dies in a socket"), N("clusters", "only 1"), N("cores", "cores in a die"),
    N("threads", "threads in a core"), END
};
static const QemuOptDesc memory_desc[] = {
    S("size", "in MiB, or with a suffix"), N("slots", "places for memory plugged in later (0)"),
    S("maxmem", "most memory with what is plugged in later (size)"), END
};
static const QemuOptDesc add_fd_desc[] = {
    N("fd", "file descriptor of which a duplicate is added to fd set"),
    N("set", "ID of the fd set to add fd to"),
    S("opaque", "free-form string used to describe fd"), END
};
static const QemuOptDesc name_desc[] = {
    S("guest", "name of the guest"), S("process", "name of the process"),
    B("debug-threads", "threads have names (always so)"), END
};
static const QemuOptDesc boot_desc[] = {
    S("order", "letters: a, b, c, d, n"), S("once", "the same, for the first boot"),
    B("menu", "boot menu of the firmware"), N("splash-time", "ms to show it"),
    B("strict", "only devices that are named"), END
};
static const QemuOptDesc global_desc[] = {
    S("driver", NULL), S("property", NULL), S("value", NULL), END
};
static const QemuOptDesc realtime_desc[] = {
    S("maxprio", "priority of event threads, 2 to 99; CPUs get one less"),
    S("policy", "rr or fifo; other in a named profile (id=)"),
    S("mlock", "lock memory: on, off or on-fault"),
    L("vcpus", "the CPUs that are realtime: all, 1-3, 0,2, ^0"),
    L("vcpu-affinity", "host CPUs: the first realtime CPU runs on the first, and so on"),
    L("event-affinity", "host CPUs that event threads may run on"),
    S("latency-warn", "us a CPU may be held off before an event tells"),
    B("cpu-dma-latency", "keep the host's CPUs out of deep idle states (on)"),
    B("check", "print what of the host is in the way of realtime, and exit"), END
};
static const QemuOptDesc overcommit_desc[] = {
    S("mem-lock", "lock memory: on, off or on-fault"),
    B("cpu-pm", "the guest may idle the host's CPU"), END
};
static const QemuOptDesc fw_cfg_desc[] = {
    S("name", "name of the file, opt/..."), S("file", "file with its contents"),
    S("string", "its contents"), END
};
static const QemuOptDesc action_desc[] = {
    S("reboot", "reset or shutdown"), S("shutdown", "poweroff or pause"),
    S("panic", "pause, shutdown, exit-failure or none"),
    S("watchdog", "reset, shutdown, poweroff, inject-nmi, pause, debug or none"), END
};
static const QemuOptDesc rtc_desc[] = {
    S("base", "utc, localtime or a date"), S("clock", "host, rt or vm"),
    S("driftfix", "none or slew"), END
};
static const QemuOptDesc icount_desc[] = {
    S("shift", "an instruction takes 2^shift ns of virtual time, 0 to 10"),
    B("sleep", "a halted CPU waits for its next timer (on) or jumps to it (off)"),
    B("align", "only off: keep up with the host's clock"),
    S("rr", "record or replay: not there"), S("rrfile", NULL), S("rrsnapshot", NULL), END
};
static const QemuOptDesc msg_desc[] = {
    B("timestamp", "messages begin with the time"),
    B("guest-name", "messages begin with the guest's name"), END
};
static const QemuOptDesc mon_desc[] = {
    S("chardev", "id of the character device"), S("mode", "readline or control"),
    B("pretty", "indented output"), END
};
static const QemuOptDesc chardev_desc[] = {
    S("backend", "null, stdio, file, pipe, pty, socket, udp, serial, ringbuf or mux"), S("chardev", NULL),
    S("path", NULL), S("input-path", NULL), B("append", NULL), S("host", NULL), S("port", NULL),
    S("fd", NULL), S("localaddr", NULL), S("localport", NULL), B("ipv4", NULL), B("ipv6", NULL), S("to", NULL), B("wait", NULL),
    B("server", NULL), B("delay", NULL), B("nodelay", NULL), N("reconnect", NULL),
    B("telnet", NULL), B("abstract", NULL), B("tight", NULL),
    B("signal", NULL), B("mux", NULL), { "size", QEMU_OPT_SIZE, NULL },
    S("logfile", NULL), B("logappend", NULL), END
};

#define GROUP(var, group, implied, merge, keys)                                                   \
    static QemuOptsList var = { .name = group, .implied_opt_name = implied,                       \
                                .merge_lists = merge, .desc = keys }
/* As QEMU: of all options, -machine alone takes kernel_irqchip for kernel-irqchip, and so on. */
static QemuOptsList machine_opts = { .name = "machine", .implied_opt_name = "type", .merge_lists = true,
                                     .underscores = true, .desc = machine_desc };
GROUP(accel_opts, "accel", "accel", false, accel_desc);
GROUP(smp_opts, "smp-opts", "cpus", true, smp_desc);
GROUP(memory_opts, "memory", "size", true, memory_desc);
GROUP(name_opts, "name", "guest", true, name_desc);
GROUP(boot_opts, "boot-opts", "order", true, boot_desc);
GROUP(global_opts, "global", "driver", false, global_desc);
static QemuOptsList realtime_opts = { .name = "realtime", .merge_lists = true, .merge_ids = true,
                                      .desc = realtime_desc,
                                      .id_help = "name of a profile; the first is in force at start" };
GROUP(overcommit_opts, "overcommit", NULL, true, overcommit_desc);
GROUP(action_opts, "action", NULL, true, action_desc);
GROUP(rtc_opts, "rtc", "base", true, rtc_desc);
GROUP(icount_opts, "icount", "shift", true, icount_desc);
GROUP(msg_opts, "msg", NULL, true, msg_desc);
GROUP(fw_cfg_opts, "fw_cfg", "name", false, fw_cfg_desc);
GROUP(mon_opts, "mon", "chardev", false, mon_desc);
GROUP(chardev_opts, "chardev", "backend", false, chardev_desc);
GROUP(add_fd_opts, "add-fd", NULL, false, add_fd_desc);
/* Each driver, each type of object, judges its own properties. */
GROUP(device_opts, "device", "driver", false, NULL);
GROUP(object_opts, "object", "qom-type", false, NULL);
/* clang-format on */

static QemuOptsList *const builtin_groups[] = {
    &machine_opts, &accel_opts, &smp_opts, &memory_opts, &name_opts, &boot_opts,
    &global_opts, &realtime_opts, &overcommit_opts, &action_opts, &rtc_opts, &icount_opts, &msg_opts,
    &mon_opts, &chardev_opts, &add_fd_opts, &device_opts, &object_opts,
    &fw_cfg_opts,
};
static QemuOptsList *added_groups;

static QemuOptsList *find_group(const char *name)
{
    for (QemuOptsList *l = added_groups; l; l = l->next) {
        if (!strcmp(l->name, name)) {
            return l;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(builtin_groups); i++) {
        if (!strcmp(builtin_groups[i]->name, name)) {
            return builtin_groups[i];
        }
    }
    return NULL;
}

QemuOptsList *qemu_find_opts(const char *name, Error **errp)
{
    QemuOptsList *list = find_group(name);
    if (!list) {
        error_setg(errp, "there is no option group '%s'", name);
    }
    return list;
}

QemuOpts *qemu_find_opts_singleton(const char *group)
{
    return qemu_opts_find(qemu_find_opts(group, &error_abort), NULL);
}

void qemu_add_opts(QemuOptsList *list)
{
    list->next = added_groups;
    added_groups = list;
}

void qemu_opts_lists_foreach(void (*fn)(const QemuOptsList *list, void *opaque), void *opaque)
{
    for (size_t i = 0; i < ARRAY_SIZE(builtin_groups); i++) {
        fn(builtin_groups[i], opaque);
    }
    for (QemuOptsList *l = added_groups; l; l = l->next) {
        fn(l, opaque);
    }
}

/* ---- Configuration files ---- */

#define CONFIG_MAX (1 * MiB)

/* "[group]" or "[group "id"]": the set the following lines go to. */
static QemuOpts *read_section(char *line, Error **errp)
{
    size_t len = strlen(line);
    char *id = NULL;

    if (line[len - 1] != ']') {
        error_setg(errp, "section '%s' does not end with ']'", line);
        return NULL;
    }
    line[len - 1] = '\0';
    char *group = g_strstrip(line + 1);
    char *quote = strchr(group, '"');
    if (quote) {
        id = quote + 1;
        char *end = strchr(id, '"');
        if (!end || end[1]) {
            error_setg(errp, "the id of section '%s' is not in quotes", group);
            return NULL;
        }
        *end = *quote = '\0';
        g_strstrip(group);
    }
    QemuOptsList *list = qemu_find_opts(group, errp);
    if (!list) {
        return NULL;
    }
    if (id && list->merge_lists && !list->merge_ids) {
        error_setg(errp, "section '%s' takes no id; write [%s]", group, group);
        return NULL;
    }
    QemuOpts *opts = list->merge_lists ? qemu_opts_find(list, id) : NULL;
    return opts ? opts : qemu_opts_create(list, id, errp);
}

/* key = "value" */
static bool read_setting(QemuOpts *opts, char *line, Error **errp)
{
    char *equal = strchr(line, '=');

    if (!equal) {
        error_setg(errp, "'%s' is neither a section nor key = \"value\"", line);
        return false;
    }
    *equal = '\0';
    char *key = g_strstrip(line);
    char *value = g_strstrip(equal + 1);
    size_t len = strlen(value);
    if (len < 2 || value[0] != '"' || value[len - 1] != '"') {
        error_setg(errp, "the value of '%s' is not in quotes", key);
        return false;
    }
    value[len - 1] = '\0';
    if (!opts) {
        error_setg(errp, "'%s' stands before the first section", key);
        return false;
    }
    return qemu_opt_set(opts, key, value + 1, errp);
}

bool qemu_read_config_file(const char *path, Error **errp)
{
    char *text;
    size_t len;

    if (!file_read_all(path, CONFIG_MAX, &text, &len, errp)) {
        return false;
    }
    char **lines = g_strsplit(text, "\n", -1);
    QemuOpts *opts = NULL;
    bool ok = strlen(text) == len;
    if (!ok) {
        error_setg(errp, "'%s' is not a text file", path);
    }
    for (unsigned i = 0; ok && lines[i]; i++) {
        char *line = g_strstrip(lines[i]);
        Error *err = NULL;
        if (!*line || *line == '#') {
            continue;
        }
        if (*line == '[') {
            opts = read_section(line, &err);
        } else {
            read_setting(opts, line, &err);
        }
        if (err) {
            error_prepend(&err, "%s:%u: ", path, i + 1);
            error_propagate(errp, err);
            ok = false;
        }
    }
    g_strfreev(lines);
    g_free(text);
    return ok;
}
