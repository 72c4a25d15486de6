/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start-up: from the command line to the first guest instruction, as a list of calls; and the end.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "accel-choose.h"
#include "accel/accel.h"
#include "accel/irqchip.h"
#include "chardev/char.h"
#include "cpus.h"
#include "cpus-plug.h"
#include "event/event.h"
#include "event/iothread.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "memory/backend.h"
#include "memory/memory.h"
#include "monitor/monitor.h"
#include "monitor/qtest.h"
#include "qemu/cmdline.h"
#include "qemu/config.h"
#include "qemu/cutils.h"
#include "qemu/file.h"
#include "qemu/log.h"
#include "qemu/opts.h"
#include "qemu/os.h"
#include "qemu/runstate.h"
#include "qemu/user-object.h"
#include "realtime/latency.h"
#include "realtime/profile.h"
#include "target/i386/cpu.h"
#include "realtime-setup.h"
#include "vl.h"

#define MAX_SERIAL 4
#define MAX_RAM    (1 * TiB)

/* What the options without a group of their own said. Strings are argv's. */
static struct {
    bool enable_kvm, nodefaults, nographic, stopped, daemonize, no_acpi, no_hpet;
    const char *cpu, *kernel, *initrd, *append, *bios, *pidfile, *uuid, *log_items, *log_file;
    const char *log_filter;
    const char *debugcon, *qtest, *qtest_log, *seed;
    GPtrArray *serials, *monitors, *qmps, *qmp_pretties, *dirs;
} args;

static MachineOpts machine_opts;
static NameOpts name_opts;
static QemuThread main_thread;

/* ---- The command line ---- */

static bool option_string(const CmdlineUse *use)
{
    const struct {
        QemuOptionIndex index;
        const char **to;
    } strings[] = {
        { QEMU_OPTION_cpu, &args.cpu },           { QEMU_OPTION_kernel, &args.kernel },
        { QEMU_OPTION_initrd, &args.initrd },     { QEMU_OPTION_append, &args.append },
        { QEMU_OPTION_bios, &args.bios },         { QEMU_OPTION_pidfile, &args.pidfile },
        { QEMU_OPTION_uuid, &args.uuid },         { QEMU_OPTION_d, &args.log_items },
        { QEMU_OPTION_D, &args.log_file },        { QEMU_OPTION_debugcon, &args.debugcon },
        { QEMU_OPTION_qtest, &args.qtest },       { QEMU_OPTION_qtest_log, &args.qtest_log },
        { QEMU_OPTION_seed, &args.seed },         { QEMU_OPTION_dfilter, &args.log_filter },
    };

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        if (strings[i].index == use->option->index) {
            *strings[i].to = use->arg;
            return true;
        }
    }
    return false;
}

static bool option_flag(const CmdlineUse *use)
{
    const struct {
        QemuOptionIndex index;
        bool *to;
    } flags[] = {
        { QEMU_OPTION_enable_kvm, &args.enable_kvm }, { QEMU_OPTION_nodefaults, &args.nodefaults },
        { QEMU_OPTION_nographic, &args.nographic },   { QEMU_OPTION_S, &args.stopped },
        { QEMU_OPTION_daemonize, &args.daemonize },   { QEMU_OPTION_no_acpi, &args.no_acpi },
        { QEMU_OPTION_no_hpet, &args.no_hpet },
        { QEMU_OPTION_no_reboot, &vm_actions.reboot_is_shutdown },
        { QEMU_OPTION_no_shutdown, &vm_actions.shutdown_is_pause },
    };

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (flags[i].index == use->option->index) {
            *flags[i].to = true;
            return true;
        }
    }
    return false;
}

static bool option_list(const CmdlineUse *use)
{
    const struct {
        QemuOptionIndex index;
        GPtrArray *to;
    } lists[] = {
        { QEMU_OPTION_serial, args.serials },
        { QEMU_OPTION_monitor, args.monitors },
        { QEMU_OPTION_qmp, args.qmps },
        { QEMU_OPTION_qmp_pretty, args.qmp_pretties },
        { QEMU_OPTION_L, args.dirs },
    };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (lists[i].index == use->option->index) {
            g_ptr_array_add(lists[i].to, (char *)use->arg);
            return true;
        }
    }
    return false;
}

static bool option_other(const CmdlineUse *use, Error **errp)
{
    switch (use->option->index) {
    case QEMU_OPTION_help:
        cmdline_print_help();
        cmdline_exit_printed(0);
    case QEMU_OPTION_version:
        cmdline_print_version();
        cmdline_exit_printed(0);
    case QEMU_OPTION_readconfig:
        return qemu_read_config_file(use->arg, errp);
    case QEMU_OPTION_display:
        return opts_check_display(use->arg, errp);
    case QEMU_OPTION_audiodev:
        return opts_check_audiodev(use->arg, errp);
    case QEMU_OPTION_net:
    case QEMU_OPTION_nic:
    case QEMU_OPTION_vga:
    case QEMU_OPTION_vnc:
    case QEMU_OPTION_audio:
    case QEMU_OPTION_parallel:
        return opts_check_none(use->option->name, use->arg, errp);
    case QEMU_OPTION_k:
        return opts_check_keyboard(use->arg, errp);
    case QEMU_OPTION_sandbox:
        return opts_check_sandbox(use->arg, errp);
    case QEMU_OPTION_action:
        return opts_parse_action(use->opts, &vm_actions, errp);
    default:
        return true; /* has a group, read later; or says nothing (-no-user-config) */
    }
}

static bool option(const CmdlineUse *use, void *opaque, Error **errp)
{
    return option_string(use) || option_flag(use) || option_list(use) || option_other(use, errp);
}

static void parse_command_line(int argc, char **argv)
{
    args.serials = g_ptr_array_new();
    args.monitors = g_ptr_array_new();
    args.qmps = g_ptr_array_new();
    args.qmp_pretties = g_ptr_array_new();
    args.dirs = g_ptr_array_new();
    if (!cmdline_parse(argc, argv, option, NULL, help_for_option)) {
        exit(1);
    }
}

/* ---- What it comes to ---- */

static void choose_machine(void)
{
    if (!opts_parse_machine(qemu_find_opts_singleton("machine"), &machine_opts, &error_fatal)) {
        exit(1);
    }
    current_machine = machine_find(machine_opts.type ? machine_opts.type : "pc");
    if (!current_machine) {
        error_loc_push("-machine", machine_opts.type);
        opts_error_no_machine(machine_opts.type, &error_fatal);
    }
    accel_pit = machine_opts.pit;
    switch (machine_opts.kernel_irqchip) {
    case IRQCHIP_OFF:
        kernel_irqchip = KERNEL_IRQCHIP_OFF;
        break;
    case IRQCHIP_SPLIT:
        kernel_irqchip = KERNEL_IRQCHIP_SPLIT;
        break;
    default:
        kernel_irqchip = KERNEL_IRQCHIP_ON;
    }
}

static const char *either(const char *a, const char *b)
{
    return a ? a : b;
}

/* Of the main memory without -m: the size of the back end that is to be it. */
static uint64_t default_ram_size(void)
{
    const char *id = machine_opts.memory_backend;
    QemuOpts *opts = id ? qemu_opts_find(qemu_find_opts("object", &error_abort), id) : NULL;
    uint64_t size = current_machine->default_ram_size;

    if (qemu_opt_get(opts, "size")) {
        qemu_opt_read_size(opts, "size", &size, &error_fatal);
    }
    return size;
}

static void configure_memory(MachineConfig *cfg)
{
    QemuOpts *opts = qemu_find_opts_singleton("memory");
    char *text = opts ? qemu_opts_text(opts) : NULL, least[24];

    error_loc_push("-m", text);
    opts_parse_memory(opts, default_ram_size(), MAX_RAM, &cfg->ram_size, &error_fatal);
    if (cfg->ram_size < current_machine->min_ram_size) {
        error_report("machine '%s' needs at least %s of memory", current_machine->name,
                     qemu_format_size(current_machine->min_ram_size, least, sizeof(least)));
        exit(1);
    }
    error_loc_pop();
    g_free(text);
}

static void configure_smp(MachineConfig *cfg)
{
    QemuOpts *opts = qemu_find_opts_singleton("smp-opts");
    char *text = opts ? qemu_opts_text(opts) : NULL;

    error_loc_push("-smp", text);
    opts_parse_smp(opts, current_machine->max_cpus, current_machine->name, &cfg->smp, &error_fatal);
    error_loc_pop();
    g_free(text);
}

static void only_with(const char *option, const char *value, const char *other, const char *given)
{
    if (value && !given) {
        error_loc_push(option, value);
        error_report("only means something with %s", other);
        exit(1);
    }
}

static void check_firmware_dirs(void)
{
    for (unsigned i = 0; i < args.dirs->len; i++) {
        const char *dir = args.dirs->pdata[i];
        struct stat st;

        if (stat(dir, &st) == 0 ? S_ISDIR(st.st_mode) : errno == ENOENT) {
            continue; /* one that is not there holds no firmware */
        }
        error_loc_push("-L", dir);
        error_report("not a directory; give the one that firmware files lie in");
        exit(1);
    }
}

static void configure_machine(void)
{
    MachineConfig *cfg = &machine_config;
    RtcOpts rtc;

    cfg->kernel = either(args.kernel, machine_opts.kernel);
    cfg->initrd = either(args.initrd, machine_opts.initrd);
    cfg->append = either(args.append, machine_opts.append);
    cfg->bios = either(args.bios, machine_opts.firmware);
    check_firmware_dirs();
    g_ptr_array_add(args.dirs, NULL);
    cfg->firmware_dirs = (const char *const *)args.dirs->pdata;
    cfg->defaults = !args.nodefaults;
    cfg->acpi = machine_opts.acpi && !args.no_acpi;
    cfg->hpet = machine_opts.hpet && !args.no_hpet;
    cfg->pit = machine_opts.pit;
    configure_memory(cfg);
    configure_smp(cfg);
    if (args.uuid) {
        cfg->uuid_set = opts_parse_uuid(args.uuid, cfg->uuid, &error_fatal);
    }
    opts_parse_boot(qemu_find_opts_singleton("boot-opts"), &cfg->boot, &error_fatal);
    opts_parse_name(qemu_find_opts_singleton("name"), &name_opts, &error_fatal);
    cfg->name = name_opts.guest;
    opts_parse_rtc(qemu_find_opts_singleton("rtc"), &rtc, &error_fatal);
    cfg->rtc_local = rtc.local;
    cfg->rtc_dated = rtc.dated;
    cfg->rtc_date_s = rtc.date_s;
    cfg->rtc_driftfix_slew = rtc.driftfix_slew;
    cfg->rtc_clock = rtc.clock == RTC_CLOCK_HOST ? CLOCK_TYPE_HOST
                     : rtc.clock == RTC_CLOCK_RT ? CLOCK_TYPE_REALTIME
                                                 : CLOCK_TYPE_VIRTUAL;
    only_with("-append", cfg->append, "-kernel", cfg->kernel);
    only_with("-initrd", cfg->initrd, "-kernel", cfg->kernel);
    only_with("-qtest-log", args.qtest_log, "-qtest", args.qtest);
}

/* NULL: the machine has no CPUs. */
static const char *cpu_model(void)
{
    return args.cpu ? args.cpu : current_machine->default_cpu;
}

/* ---- Host ---- */

static void on_signal(void)
{
    qemu_system_shutdown_request(SHUTDOWN_CAUSE_HOST_SIGNAL);
}

/* -realtime check: prints what of this host is in the way. */
static QEMU_NORETURN void check_host(void)
{
    bool ok = realtime_setup_check();

    error_loc_push("-realtime", "check");
    cmdline_exit_printed(ok ? 0 : 1);
}

static void setup_realtime(void)
{
    realtime_setup_parse(args.enable_kvm, cpu_model());
    if (realtime_setup_wants_check()) {
        check_host();
    }
    machine_config.ram_merge = machine_opts.mem_merge;
}

static void setup_process(void)
{
    opts_apply_msg(qemu_find_opts_singleton("msg"), name_opts.guest);
    if (name_opts.process) {
        os_set_proc_name(name_opts.process);
    }
    setup_realtime();
    if (args.daemonize) {
        os_daemonize(&error_fatal);
        chardev_forbid_stdio("-daemonize");
    }
    realtime_setup_process(machine_opts.mem_merge);
    if (!qemu_thread_adopt_self(&main_thread, "main", THREAD_EVENT, &error_fatal)) {
        exit(1);
    }
    latency_thread_register(-1);
    os_setup_signals(on_signal);
    os_startup_begin(&error_fatal);
    if (args.pidfile) {
        os_create_pidfile(args.pidfile, &error_fatal);
    }
}

static void setup_log(void)
{
    uint32_t mask = 0;

    if (args.log_items) {
        qemu_log_parse(args.log_items, &mask, &error_fatal);
    }
    if (args.log_filter) {
        qemu_log_filter_parse(args.log_filter, &error_fatal);
    }
    if (args.log_file && mask) { /* else nothing comes, and what the file holds stays */
        qemu_log_open(args.log_file, &error_fatal);
    } else if (args.log_file) {
        qemu_log_open_later(args.log_file); /* a monitor may ask for items */
    }
    if (mask) {
        qemu_log_start(mask, &error_fatal);
    }
}

/* ---- Options that make things ---- */

static void each_use(const char *group, bool (*fn)(QemuOpts *opts, void *opaque, Error **errp))
{
    qemu_opts_foreach_located(qemu_find_opts(group, &error_abort), fn, NULL, &error_fatal);
}

/* ---- Objects ---- */

static bool make_object(QemuOpts *opts, void *opaque, Error **errp)
{
    return user_object_new(opts, errp);
}

static void setup_objects(void)
{
    os_startup_step("making objects");
    monitor_add_fds(qemu_find_opts("add-fd", &error_abort), &error_fatal);
    each_use("object", make_object);
    if (machine_opts.memory_backend) {
        machine_config.ram = memory_backend_take(machine_opts.memory_backend,
                                                 machine_config.ram_size, &error_fatal);
    }
}

/* ---- Character devices, monitors ---- */

static bool make_chardev(QemuOpts *opts, void *opaque, Error **errp)
{
    return chardev_new_from_opts(opts, errp) != NULL;
}

static bool is_isa_serial(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *driver = qemu_opt_get(opts, "driver");

    return !driver || strcmp(driver, "isa-serial") != 0;
}

/* What -nographic alone asks for: messages name it, and not what nobody typed. */
static const char of_nographic[2][16] = { "stdio", "mon:stdio" };

static Chardev *legacy_chardev(const char *option, const char *spec, const char *id, bool monitor)
{
    bool implied = spec == of_nographic[0] || spec == of_nographic[1];
    Chardev *chr;

    error_loc_push(implied ? "-nographic" : option, implied ? NULL : spec);
    chr = chardev_new_from_legacy(id, spec, monitor, &error_fatal);
    error_loc_pop();
    return chr;
}

/* What a machine has without being asked: see QEMU's rules for -nographic. */
static void default_chardevs(void)
{
    bool has_serial = args.serials->len || args.nodefaults ||
                      !qemu_opts_foreach(qemu_find_opts("device", &error_abort), is_isa_serial, NULL,
                                         NULL);
    bool has_monitor = args.monitors->len || args.qmps->len || args.qmp_pretties->len ||
                       args.nodefaults || qemu_find_opts("mon", &error_abort)->first;

    if (args.nographic) {
        if (!has_serial && !has_monitor) {
            g_ptr_array_add(args.serials, (char *)of_nographic[1]);
        } else if (!has_monitor) {
            g_ptr_array_add(args.monitors, (char *)of_nographic[0]);
        } else if (!has_serial) {
            g_ptr_array_add(args.serials, (char *)of_nographic[0]);
        }
    } else if (!has_serial) {
        g_ptr_array_add(args.serials, (char *)"null");
    }
}

static void setup_chardevs(void)
{
    each_use("chardev", make_chardev);
    default_chardevs();
    if (args.serials->len > MAX_SERIAL) {
        error_report("-serial %s: machine '%s' has %d serial ports",
                     (const char *)args.serials->pdata[MAX_SERIAL], current_machine->name,
                     MAX_SERIAL);
        exit(1);
    }
    for (unsigned i = 0; i < args.serials->len; i++) {
        char *id = g_strdup_printf("serial%u", i);

        machine_config.serial[i] = legacy_chardev("-serial", args.serials->pdata[i], id, false);
        g_free(id);
    }
    if (args.debugcon) {
        machine_config.debugcon = legacy_chardev("-debugcon", args.debugcon, "debugcon", false);
    }
}

static bool make_monitor(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *id = qemu_opt_get(opts, "chardev"), *mode = qemu_opt_get(opts, "mode");
    Chardev *chr = id ? chardev_find(id) : NULL;

    if (!chr) {
        error_setg(errp, "-mon chardev=%s: no such character device; make it with -chardev",
                   id ? id : "");
        return false;
    }
    if (!mode || strcmp(mode, "readline") == 0) {
        return monitor_new_hmp(chr, errp);
    }
    if (strcmp(mode, "control") == 0) {
        return monitor_new_qmp(chr, qemu_opt_get_bool(opts, "pretty", false), errp);
    }
    error_setg(errp, "-mon mode=%s: must be readline or control", mode);
    return false;
}

static void legacy_monitors(GPtrArray *list, const char *option, bool qmp, bool pretty)
{
    static unsigned n;

    for (unsigned i = 0; i < list->len; i++) {
        char *id = g_strdup_printf("compat_monitor%u", n++);
        Chardev *chr = legacy_chardev(option, list->pdata[i], id, true);

        g_free(id);
        if (!chr) {
            continue; /* "none" */
        }
        if (qmp) {
            monitor_new_qmp(chr, pretty, &error_fatal);
        } else {
            monitor_new_hmp(chr, &error_fatal);
        }
    }
}

/* "-serial mon:stdio": the monitor that Ctrl-A c switches to. */
static void monitor_on_mux(Chardev *chr, void *opaque)
{
    if (chardev_wants_monitor(chr)) {
        monitor_new_hmp(chr, &error_fatal);
    }
}

static void setup_monitors(void)
{
    os_startup_step("making monitors");
    monitor_guest_name = name_opts.guest;
    memcpy(monitor_guest_uuid, machine_config.uuid, sizeof(monitor_guest_uuid));
    chardev_foreach(monitor_on_mux, NULL);
    legacy_monitors(args.monitors, "-monitor", false, false);
    legacy_monitors(args.qmps, "-qmp", true, false);
    legacy_monitors(args.qmp_pretties, "-qmp-pretty", true, true);
    each_use("mon", make_monitor);
    if (args.qtest) {
        Chardev *chr = legacy_chardev("-qtest", args.qtest, "qtest", false);

        qtest_server_start(chr, args.qtest_log, &error_fatal);
    }
}

/* ---- Machine ---- */

static void reset_machine(void)
{
    cpus_reset_all(device_reset_all);
}

/* They come after those of -smp. */
static bool add_cpu_device(QemuOpts *opts, void *opaque, Error **errp)
{
    return !cpu_device_type_known(qemu_opt_get(opts, "driver")) || cpu_device_add(opts, false, errp);
}

static bool add_device(QemuOpts *opts, void *opaque, Error **errp)
{
    Error *err = NULL;
    bool ok = cpu_device_type_known(qemu_opt_get(opts, "driver")) || device_add_from_opts(opts, &err) != NULL;
    if (!ok && !err) {
        exit(0); /* help was asked for, and printed */
    }
    error_propagate(errp, err);
    return ok;
}

static void setup_loops(void)
{
    static const RunStateHooks base = {
        .pause_all = cpus_pause_all,
        .resume_all = cpus_resume_all,
        .reset = reset_machine,
    };
    RunStateHooks hooks = base;
    EventLoop *loop = event_loop_new("main", &error_fatal);

    event_loop_set_main(loop);
    hooks.run_state_change = current_accel->run_state_change;
    runstate_init(&hooks);
    monitor_init_globals(&error_fatal);
}

static void setup_machine(void)
{
    const char *model = cpu_model();

    os_startup_step("making the machine");
    each_use("global", device_add_global);
    if (model) {
        error_loc_push("-cpu", model);
        x86_cpu_set_model(model, &error_fatal);
        error_loc_pop();
    }
    if (!current_machine->init(&machine_config, &error_fatal)) {
        exit(1);
    }
    each_use("device", add_device);
    if (model) {
        os_startup_step("starting %u vCPUs", machine_config.smp.cpus);
        cpus_create(machine_config.smp.cpus, &error_fatal);
        cpus_start_threads(&error_fatal);
    }
    each_use("device", add_cpu_device);
    cpus_pause_all();
    reset_machine();
}

static void setup_done(void)
{
    realtime_start(accel_irqchip && accel_irqchip->kernel_pit);
    os_startup_done();
    qemu_log_flush();
    startup_files_keep();
    os_setup_post(&error_fatal);
    realtime_setup_done();
    if (!args.stopped) {
        vm_start(&error_fatal);
    }
    monitor_start(&error_fatal); /* now: as with QEMU, nobody is served before the guest runs */
    rtcheck_start(); /* what this thread makes is made */
}

/* ---- The end ---- */

static void shut_down(void)
{
    realtime_stop();
    vm_shutdown();
    rtcheck_stop();
    monitor_cleanup(); /* before the vCPUs: a command under way may need their threads */
    cpus_quit();
    iothread_stop_all();
    chardev_cleanup();
    os_report_termination();
    qemu_log_close();
    os_cleanup();
}

int main(int argc, char **argv)
{
    int status;

    os_init_early();
    error_set_progname(argv[0]);
    parse_command_line(argc, argv);
    choose_machine();
    configure_machine();
    accel_configure_determinism(args.seed);
    setup_process();
    memory_init();
    memory_thread_register();
    setup_log();
    accel_choose(args.enable_kvm);
    setup_loops();
    setup_objects();
    setup_chardevs();
    setup_machine();
    setup_monitors();
    setup_done();
    status = runstate_main_loop();
    shut_down();
    return status;
}
