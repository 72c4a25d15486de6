/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: table, walk, configuration files, and each option's parser. */
#include "qemu/opts.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "qemu/cmdline.h"
#include "qemu/config.h"

static void reset_groups(void)
{
    static const char *const groups[] = { "machine", "accel",     "smp-opts",   "memory",
                                          "name",    "realtime",  "overcommit", "action",
                                          "rtc",     "icount",    "boot-opts", "global",     "chardev",
                                          "device" };
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        qemu_opts_reset(qemu_find_opts(groups[i], &error_abort));
    }
}

/* The sets of group after each text was given on the command line. */
static QemuOpts *give(const char *group, const char *text)
{
    reset_groups();
    return qemu_opts_parse(qemu_find_opts(group, &error_abort), text, &error_abort);
}

static void expect_error(Error *err, const char *what, const char *part)
{
    g_assert_nonnull(err);
    const char *msg = error_get_pretty(err);
    if (!strstr(msg, part) || strchr(msg, '\n')) {
        g_error("%s gave: %s", what, msg);
    }
    error_free(err);
}

/* ---- the walk ---- */

static void test_table(void)
{
    for (unsigned i = 0; cmdline_option(i); i++) {
        const CmdlineOption *o = cmdline_option(i);
        if (o->group) {
            qemu_find_opts(o->group, &error_abort);
            g_assert_cmpint(o->arg, !=, CMDLINE_ARG_NONE);
        }
    }
    Error *err = NULL;
    g_assert_null(qemu_find_opts("nonesuch", &err));
    expect_error(err, "nonesuch", "'nonesuch'");
}

static GString *walk(char **argv, Error **errp)
{
    Cmdline c;
    CmdlineUse use;
    GString *seen = g_string_new(NULL);
    cmdline_init(&c, (int)g_strv_length(argv), argv);
    while (cmdline_next(&c, &use, errp) > 0) {
        g_string_append_printf(seen, "%d:%s;", use.option->index, use.arg ? use.arg : "-");
    }
    return seen;
}

static void test_walk(void)
{
    char *argv[] = { "emu",  "-M", "pc",        "--machine", "none",      "-realtime", "-S",
                     "-smp", "-3", "-realtime", "maxprio=5", "-realtime", NULL };
    char *want =
        g_strdup_printf("%d:pc;%d:none;%d:-;%d:-;%d:-3;%d:maxprio=5;%d:-;", QEMU_OPTION_machine,
                        QEMU_OPTION_machine, QEMU_OPTION_realtime, QEMU_OPTION_S, QEMU_OPTION_smp,
                        QEMU_OPTION_realtime, QEMU_OPTION_realtime);
    GString *seen = walk(argv, &error_abort);
    g_assert_cmpstr(seen->str, ==, want);
    g_string_free(seen, TRUE);
    g_free(want);
    static const struct {
        char *word;
        const char *part;
    } bad[] = { { "-nonesuch", "-nonesuch: invalid option" },
                { "--", "--: invalid option" },
                { "-", "'-'" },
                { "disk.img", "'disk.img'" },
                { "-smp", "-smp: requires an argument" },
                { "---smp", "---smp: invalid option" } };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *args[] = { "emu", bad[i].word, NULL };
        Error *err = NULL;
        g_string_free(walk(args, &err), TRUE);
        expect_error(err, bad[i].word, bad[i].part);
    }
}

static bool note_use(const CmdlineUse *use, void *opaque, Error **errp)
{
    g_string_append_printf(opaque, "%s%s ", use->given, use->opts ? "*" : "");
    if (use->option->index == QEMU_OPTION_S) {
        error_setg(errp, "no S here");
        return false;
    }
    return true;
}

static void test_parse_process(void)
{
    if (g_test_subprocess()) {
        GString *seen = g_string_new(NULL);
        char *good[] = { "emu", "-smp", "4", "-nodefaults", "-global", "a.b=c=d", NULL };
        g_assert_true(cmdline_parse(6, good, note_use, seen, NULL));
        g_assert_cmpstr(seen->str, ==, "-smp* -nodefaults -global* ");
        QemuOpts *g = qemu_find_opts_singleton("global");
        g_assert_cmpstr(qemu_opt_get(g, "property"), ==, "b");
        g_assert_cmpstr(qemu_opt_get(g, "value"), ==, "c=d");
        char *bad[] = { "emu", "-smp", "4,rows=2", "-S", NULL };
        g_assert_false(cmdline_parse(4, bad, note_use, seen, NULL));
        char *stopped[] = { "emu", "-S", NULL };
        g_assert_false(cmdline_parse(2, stopped, note_use, seen, NULL));
        char *help[] = { "emu", "-overcommit", "help", NULL };
        cmdline_parse(3, help, note_use, seen, NULL);
        g_assert_not_reached();
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*: -smp 4,rows=2: invalid parameter 'rows'; valid ones are: cpus, "
                              "*threads\n*: -S: no S here\n");
    g_test_trap_assert_stdout("*overcommit options:*mem-lock=*cpu-pm=*");
}

/* ---- -readconfig ---- */

static bool read_config(const char *text, Error **errp)
{
    char *path = g_strdup_printf("%s/test-opts-%d.cfg", g_get_tmp_dir(), (int)getpid());
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    reset_groups();
    bool ok = qemu_read_config_file(path, errp);
    g_unlink(path);
    g_free(path);
    return ok;
}

static void test_readconfig(void)
{
    g_assert_true(read_config("# a comment\n[machine]\n  type = \"pc\"\n\n[realtime]\n"
                              "maxprio=\"50\"\n[chardev \"c0\"]\nbackend = \"null\"\n"
                              "[device \"d\"]\ndriver = \"x,y\"\nany.key = \"\"\n[machine]\n"
                              "hpet = \"off\"\nkernel_irqchip = \"split\"",
                              &error_abort));
    QemuOpts *m = qemu_find_opts_singleton("machine");
    g_assert_cmpstr(qemu_opt_get(m, "type"), ==, "pc");
    g_assert_false(qemu_opt_get_bool(m, "hpet", true));
    g_assert_cmpstr(qemu_opt_get(m, "kernel-irqchip"), ==, "split");
    QemuOpts *d = qemu_opts_find(qemu_find_opts("device", &error_abort), "d");
    g_assert_cmpstr(qemu_opt_get(d, "driver"), ==, "x,y");
    g_assert_cmpstr(qemu_opt_get(d, "any.key"), ==, "");
    g_assert_nonnull(qemu_opts_find(qemu_find_opts("chardev", &error_abort), "c0"));
    static const struct {
        const char *text, *part;
    } bad[] = { { "[nonesuch]\n", ".cfg:1: there is no option group 'nonesuch'" },
                { "\n[machine\n", ".cfg:2: section '[machine'" },
                { "[chardev \"a]\n", ".cfg:1: the id" },
                { "type = \"pc\"\n", ".cfg:1: 'type' stands before the first section" },
                { "[machine]\ntype = pc\n", ".cfg:2: the value of 'type'" },
                { "[machine]\ntype\n", ".cfg:2: 'type' is neither" },
                { "[machine]\ncolour = \"1\"\n", ".cfg:2: invalid parameter 'colour'" },
                { "[device \"a\"]\n[device \"a\"]\n", ".cfg:2: id 'a' is already" } };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        Error *err = NULL;
        g_assert_false(read_config(bad[i].text, &err));
        expect_error(err, bad[i].text, bad[i].part);
    }
    Error *err = NULL;
    g_assert_false(qemu_read_config_file("/nonexistent.cfg", &err));
    expect_error(err, "missing file", "/nonexistent.cfg");
}

/* ---- -m, -smp ---- */

static void test_memory(void)
{
    static const struct {
        const char *text;
        uint64_t size; /* 0: refused */
        const char *part;
    } cases[] = {
        { "512", 512 * MiB, NULL },
        { "1.5G", 3 * GiB / 2, NULL },
        { "size=1g", GiB, NULL },
        { "4097b", 8192, NULL },
        { "{\"size\":\"64M\"}", 64 * MiB, NULL },
        { "0", 0, "-m 0: the machine needs memory" },
        { "0k", 0, "needs memory" },
        { "1E", 0, "-m 1E: too large, the machine takes at most 1 TiB" },
        { "99999999999999999999", 0, "too large" },
        { "1T", TiB, NULL },
        { "1048577", 0, "too large" },
        { "abc", 0, "-m abc: not a size" },
        { "-1", 0, "-m -1: not a size" },
        { "5x", 0, "not a size" },
        { "size=", 0, "not a size" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t size = 0;
        Error *err = NULL;
        bool ok = opts_parse_memory(give("memory", cases[i].text), 128 * MiB, TiB, &size, &err);
        g_assert_cmpint(ok, ==, cases[i].size != 0);
        g_assert_cmpuint(size, ==, cases[i].size);
        if (!ok) {
            expect_error(err, cases[i].text, cases[i].part);
        }
    }
    uint64_t size = 0;
    g_assert_true(opts_parse_memory(NULL, 128 * MiB, TiB, &size, &error_abort));
    g_assert_cmpuint(size, ==, 128 * MiB);
}

static void test_smp(void)
{
    static const struct {
        const char *text;
        SmpTopology t; /* cpus 0: refused */
        const char *part;
    } cases[] = {
        { "1", { 1, 1, 1, 1, 1, 1 }, NULL },
        { "4", { 4, 4, 1, 1, 4, 1 }, NULL },
        { "4,sockets=2", { 4, 4, 2, 1, 2, 1 }, NULL },
        { "4,cores=2", { 4, 4, 2, 1, 2, 1 }, NULL },
        { "4,sockets=2,cores=1", { 4, 4, 2, 1, 1, 2 }, NULL },
        { "8,threads=2", { 8, 8, 1, 1, 4, 2 }, NULL },
        { "8,dies=2,threads=2", { 8, 8, 1, 2, 2, 2 }, NULL },
        { "1,maxcpus=2,sockets=2,cores=1,threads=1", { 1, 2, 2, 1, 1, 1 }, NULL },
        { "sockets=2,cores=3", { 6, 6, 2, 1, 3, 1 }, NULL },
        { "maxcpus=6", { 6, 6, 1, 1, 6, 1 }, NULL },
        { "255", { 255, 255, 1, 1, 255, 1 }, NULL },
        { "0", { 0 }, "-smp cpus=0: must be at least 1" },
        { "4,threads=0", { 0 }, "-smp threads=0" },
        { "256", { 0 }, "-smp: 256 CPUs are more than machine 'pc' has room for (255)" },
        { "1,maxcpus=300", { 0 }, "300 CPUs" },
        { "99999", { 0 }, "-smp cpus=99999" },
        { "1023,cores=1023,sockets=1023", { 0 }, "more than 1023 CPUs" },
        { "2,maxcpus=1", { 0 }, "-smp cpus=2: more than maxcpus (1)" },
        { "3,cores=2", { 0 }, "is 2, but must be maxcpus (3)" },
        { "2,sockets=4", { 0 }, "2 CPUs are fewer than the topology has places" },
        { "8,sockets=2,dies=1,cores=2,threads=1", { 0 }, "is 4, but must be maxcpus (8)" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        SmpTopology t = { 0 };
        Error *err = NULL;
        bool ok = opts_parse_smp(give("smp-opts", cases[i].text), 255, "pc", &t, &err);
        if (memcmp(&t, &cases[i].t, sizeof(t)) || ok != (cases[i].t.cpus != 0)) {
            g_error("-smp %s: %u,%u %u/%u/%u/%u %s", cases[i].text, t.cpus, t.maxcpus, t.sockets,
                    t.dies, t.cores, t.threads, err ? error_get_pretty(err) : "");
        }
        if (!ok) {
            expect_error(err, cases[i].text, cases[i].part);
        }
    }
    SmpTopology t;
    g_assert_true(opts_parse_smp(NULL, 255, "pc", &t, &error_abort));
    g_assert_cmpuint(t.cpus, ==, 1);
}

/* ---- small ones ---- */

static void test_rtc(void)
{
    RtcOpts r;
    g_assert_true(opts_parse_rtc(NULL, &r, &error_abort));
    g_assert_true(!r.local && !r.dated && r.clock == RTC_CLOCK_HOST && !r.driftfix_slew);
    g_assert_true(
        opts_parse_rtc(give("rtc", "base=localtime,clock=vm,driftfix=slew"), &r, &error_abort));
    g_assert_true(r.local && r.clock == RTC_CLOCK_VM && r.driftfix_slew);
    g_assert_true(opts_parse_rtc(give("rtc", "2006-06-17T16:01:21"), &r, &error_abort));
    g_assert_true(r.dated);
    g_assert_cmpint(r.date_s, ==, 1150560081);
    static const char *const bad[] = { "tomorrow",  "2006-06-17x",  "base=2006-13-17",
                                       "clock=sun", "driftfix=yes", "" };
    for (size_t i = 0; *bad[i]; i++) {
        Error *err = NULL;
        g_assert_false(opts_parse_rtc(give("rtc", bad[i]), &r, &err));
        expect_error(err, bad[i], "-rtc ");
    }
}

static void test_icount(void)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        { "shift=auto", "shift=auto" },
        { "shift=11", "shift=11: must be a number from 0 to 10" },
        { "shift=-1", "shift=-1: must be" },
        { "shift=1x", "shift=1x: must be" },
        { "sleep=off", "shift is missing" },
        { "shift=0,align=on", "align=on" },
        { "shift=0,rr=record,rrfile=x", "rr=record: there is no record and replay" },
        { "shift=0,rrsnapshot=x", "rrsnapshot=x" },
    };
    IcountOpts o;

    g_assert_true(opts_parse_icount(NULL, &o, &error_abort));
    g_assert_false(o.enabled);
    g_assert_true(opts_parse_icount(give("icount", "7"), &o, &error_abort));
    g_assert_true(o.enabled && o.sleep && o.shift == 7);
    g_assert_true(opts_parse_icount(give("icount", "shift=10,sleep=off,align=off"), &o,
                                    &error_abort));
    g_assert_true(o.enabled && !o.sleep && o.shift == 10);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        Error *err = NULL;

        g_assert_false(opts_parse_icount(give("icount", bad[i].text), &o, &err));
        expect_error(err, bad[i].text, bad[i].part);
    }
}

static void test_seed(void)
{
    static const char *const bad[] = { "", "-1", "x", "1x", "18446744073709551616" };
    uint64_t v;

    g_assert_true(opts_parse_seed("18446744073709551615", &v, &error_abort));
    g_assert_cmpuint(v, ==, UINT64_MAX);
    g_assert_true(opts_parse_seed("0x10", &v, &error_abort));
    g_assert_cmpuint(v, ==, 16);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        Error *err = NULL;

        g_assert_false(opts_parse_seed(bad[i], &v, &err));
        expect_error(err, bad[i], "-seed ");
    }
}

static void test_action(void)
{
    VmActions a = { 0 };
    Error *err = NULL;
    g_assert_true(opts_parse_action(
        give("action", "reboot=shutdown,shutdown=pause,panic=exit-failure,watchdog=inject-nmi"), &a,
        &error_abort));
    g_assert_true(a.reboot_is_shutdown && a.shutdown_is_pause && a.panic_is_exit_failure);
    g_assert_true(a.watchdog_set && a.watchdog == WATCHDOG_ACTION_INJECT_NMI);
    g_assert_true(opts_parse_action(give("action", "reboot=reset,panic=none,watchdog=none"), &a,
                                    &error_abort));
    g_assert_true(!a.reboot_is_shutdown && a.shutdown_is_pause && a.panic_is_none);
    g_assert_cmpint(a.watchdog, ==, WATCHDOG_ACTION_NONE);
    g_assert_false(opts_parse_action(give("action", "panic=shrug"), &a, &err));
    expect_error(err, "panic=shrug",
                 "-action panic=shrug: must be one of: shutdown, pause, none, exit-failure");
}

static void test_names(void)
{
    NameOpts n;
    BootOpts b;
    uint8_t uuid[16];
    Error *err = NULL;
    g_assert_true(opts_parse_name(give("name", "guest=g,,1,debug-threads=on"), &n, &error_abort));
    g_assert_cmpstr(n.guest, ==, "g,1");
    /* Twice, as libvirt's pass-through does it: they add up. */
    QemuOpts *o = qemu_opts_parse(qemu_find_opts("name", &error_abort), "other", &error_abort);
    g_assert_true(opts_parse_name(o, &n, &error_abort));
    g_assert_cmpstr(n.guest, ==, "other");
    g_assert_true(opts_parse_boot(give("boot-opts", "cd,menu=on,strict=on"), &b, &error_abort));
    g_assert_true(b.menu && b.strict && !strcmp(b.order, "cd"));
    g_assert_false(opts_parse_boot(give("boot-opts", "order=cz"), &b, &err));
    expect_error(err, "cz", "-boot order=cz: 'z' is no boot device");
    err = NULL;
    g_assert_false(opts_parse_uuid("12", uuid, &err));
    expect_error(err, "uuid", "-uuid 12: not a UUID");
}

static void test_machine(void)
{
    MachineOpts m;
    g_assert_true(opts_parse_machine(NULL, &m, &error_abort));
    g_assert_true(!m.type && m.hpet && m.acpi && m.kernel_irqchip == IRQCHIP_UNSET);
    g_assert_true(opts_parse_machine(give("machine", "pc-i440fx-7.2,usb=off,dump-guest-core=off,"
                                                     "memory-backend=pc.ram,acpi=off,hpet=off,"
                                                     "kernel-irqchip=split,smm=auto"),
                                     &m, &error_abort));
    g_assert_cmpstr(m.type, ==, "pc-i440fx-7.2");
    g_assert_cmpstr(m.memory_backend, ==, "pc.ram");
    g_assert_true(!m.hpet && !m.acpi && m.kernel_irqchip == IRQCHIP_SPLIT && !m.dump_guest_core);
    /* Both spellings are one property: the last word counts. */
    g_assert_true(opts_parse_machine(give("machine", "kernel-irqchip=on,kernel_irqchip=off,pit=off,"
                                                     "memory_backend=a,dump_guest_core=off,nomem_merge"),
                                     &m, &error_abort));
    g_assert_true(m.kernel_irqchip == IRQCHIP_OFF && !m.pit && !m.dump_guest_core && !m.mem_merge);
    g_assert_cmpstr(m.memory_backend, ==, "a");
    g_assert_true(opts_parse_machine(give("machine", "pit=auto"), &m, &error_abort) && m.pit);
    static const char *const bad[] = {
        "kernel-irqchip=maybe", "acpi=2", "pit=2", "smm=on", "usb=on", "vmport=on", NULL
    };
    for (size_t i = 0; bad[i]; i++) {
        Error *err = NULL;
        char *part = g_strdup_printf("-machine %s", bad[i]);
        if (opts_parse_machine(give("machine", bad[i]), &m, &err)) {
            g_error("-machine %s was taken", bad[i]);
        }
        expect_error(err, bad[i], i == 0 ? "kernel-irqchip=maybe" : part);
        g_free(part);
    }
}

static void test_accels(void)
{
    AccelChoice *c;
    Error *err = NULL;
    reset_groups();
    g_assert_true(opts_parse_accels(false, &c, &error_abort));
    g_assert_null(c[0].name);
    opts_free_accels(c);
    give("machine", "none,accel=kvm:tcg");
    g_assert_true(opts_parse_accels(false, &c, &error_abort));
    g_assert_true(!strcmp(c[0].name, "kvm") && !strcmp(c[1].name, "tcg") && !c[2].name);
    opts_free_accels(c);
    g_assert_false(opts_parse_accels(true, &c, &err));
    expect_error(err, "both", "-machine accel=kvm:tcg: cannot be combined");
    QemuOpts *tcg = give("accel", "tcg,thread=multi");
    g_assert_true(opts_parse_accels(true, &c, &error_abort));
    g_assert_true(!strcmp(c[0].name, "tcg") && c[0].opts == tcg && !strcmp(c[1].name, "kvm"));
    opts_free_accels(c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cmdline/table", test_table);
    g_test_add_func("/cmdline/walk", test_walk);
    g_test_add_func("/cmdline/parse", test_parse_process);
    g_test_add_func("/config/read", test_readconfig);
    g_test_add_func("/opts/memory", test_memory);
    g_test_add_func("/opts/smp", test_smp);
    g_test_add_func("/opts/rtc", test_rtc);
    g_test_add_func("/opts/icount", test_icount);
    g_test_add_func("/opts/seed", test_seed);
    g_test_add_func("/opts/action", test_action);
    g_test_add_func("/opts/names", test_names);
    g_test_add_func("/opts/machine", test_machine);
    g_test_add_func("/opts/accels", test_accels);
    return g_test_run();
}
