/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -realtime and -overcommit: lists of CPUs, profiles, refusals and warnings. */
#include "realtime/options.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "qemu/config.h"
#include "realtime/cpulist.h"

static RealtimeCpus cpus;
static RealtimeOptions o;

static void host(unsigned vcpus, unsigned online, unsigned isolated_from)
{
    memset(&cpus, 0, sizeof(cpus));
    cpus.vcpus = vcpus;
    cpu_set_first(&cpus.present, vcpus);
    cpu_set_first(&cpus.online, online);
    cpus.allowed = cpus.online;
    for (unsigned i = isolated_from; i < online; i++) {
        qemu_cpu_set_add(&cpus.isolated, i);
    }
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

static void reset_groups(void)
{
    qemu_opts_reset(qemu_find_opts("realtime", &error_abort));
    qemu_opts_reset(qemu_find_opts("overcommit", &error_abort));
}

static bool give(const char *group, const char *const *texts, Error **errp)
{
    for (; texts && *texts; texts++) {
        if (!qemu_opts_parse(qemu_find_opts(group, &error_abort), *texts, errp)) {
            return false;
        }
    }
    return true;
}

static bool parse(const char *const *realtime, const char *const *overcommit, Error **errp)
{
    reset_groups();
    return give("realtime", realtime, errp) && give("overcommit", overcommit, errp) &&
           realtime_options_parse(&cpus, &o, errp);
}

static void parse_ok(const char *const *realtime)
{
    Error *err = NULL;

    if (!parse(realtime, NULL, &err)) {
        g_error("-realtime %s: %s", realtime[0], error_get_pretty(err));
    }
}

/* ---- Lists ---- */

static void test_list_good(void)
{
    static const struct {
        const char *text, *set;
        unsigned count, first;
    } cases[] = {
        { "0", "0", 1, 0 },
        { "all", "0-7", 8, 0 },
        { "1-3", "1-3", 3, 1 },
        { "0,2", "0,2", 2, 0 },
        { "^0", "1-7", 7, 1 },
        { "^0-5", "6-7", 2, 6 },
        { "^0,^7", "1-6", 6, 1 },
        { "all,^3", "0-2,4-7", 7, 0 },
        { "4,2,0-1", "0-2,4", 4, 4 },
        { "0-7,^2-4,3", "0-1,3,5-7", 6, 0 },
        { "3,3", "3", 2, 3 },
        { "2-2", "2", 1, 2 },
        { "007", "7", 1, 7 },
        { "1,^0", "1", 1, 1 },
    };
    QemuCpuSet valid;
    CpuList list;
    char text[64];

    cpu_set_first(&valid, 8);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cpu_list_parse("-x", "CPU", cases[i].text, &valid, &list, &error_abort);
        g_assert_cmpstr(cpu_set_format(&list.set, text, sizeof(text)), ==, cases[i].set);
        g_assert_cmpuint(list.count, ==, cases[i].count);
        g_assert_cmpuint(list.cpu[0], ==, cases[i].first);
    }
}

static void test_list_bad(void)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "-x y=: the list is empty; valid CPU numbers are 0-3,6" },
        { "8", "-x y=8: '8' begins with a CPU there is not; valid CPU numbers are 0-3,6" },
        { "0-4", "'0-4' ends with a CPU there is not" },
        { "2-6", "'2-6' holds CPU 4, which there is not" },
        { "3-1", "'3-1' runs backwards, write 1-3" },
        { "0x3", "'0x3' is neither a number nor a range" },
        { "0,", "'' is neither a number" },
        { ",0", "'' is neither" },
        { "-1", "'-1' is neither" },
        { "1-", "'1-' is neither" },
        { "1-2-3", "'1-2-3' is neither" },
        { " 1", "' 1' is neither" },
        { "1 ", "'1 ' is neither" },
        { "+1", "'+1' is neither" },
        { "^", "'' is neither" },
        { "^9", "there is not" },
        { "^^0", "'^0' is neither" },
        { "none", "'none' is neither" },
        { "all,^all", "'all' is neither" },
        { "^0-3,^6", "leaves none" },
        { "1.5", "'1.5' is neither" },
        { "99999999999999999999", "begins with a CPU there is not" },
        { "4294967296", "begins with a CPU there is not" },
        { "0-18446744073709551616", "ends with a CPU there is not" },
    };
    QemuCpuSet valid;
    CpuList list;

    cpu_set_first(&valid, 4);
    qemu_cpu_set_add(&valid, 6);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Error *err = NULL;
        if (cpu_list_parse("-x y", "CPU", cases[i].text, &valid, &list, &err)) {
            g_error("list '%s' was taken", cases[i].text);
        }
        expect_error(err, cases[i].text, cases[i].part);
    }
}

static void test_list_limits(void)
{
    QemuCpuSet valid;
    CpuList list;
    Error *err = NULL;
    char text[16];

    cpu_set_first(&valid, QEMU_CPU_SET_MAX);
    cpu_list_parse("-x", "CPU", "0-1023", &valid, &list, &error_abort);
    g_assert_cmpuint(list.count, ==, 1024);
    g_assert_false(cpu_list_parse("-x", "CPU", "0-1023,0", &valid, &list, &err));
    expect_error(err, "long", "more than 1024 entries");
    /* Cut, not overrun. */
    memset(&valid, 0x55, sizeof(valid));
    cpu_set_format(&valid, text, sizeof(text));
    g_assert_cmpuint(strlen(text), ==, 15);
    memset(&valid, 0, sizeof(valid));
    g_assert_cmpstr(cpu_set_format(&valid, text, sizeof(text)), ==, "none");
}

static void test_list_file(void)
{
    char *path = g_strdup_printf("%s/test-cpulist-%d", g_get_tmp_dir(), (int)getpid());
    QemuCpuSet set;
    char text[64];

    g_assert_true(g_file_set_contents(path, "0-3,8-11\n", -1, NULL));
    g_assert_true(cpu_set_read(path, &set));
    g_assert_cmpstr(cpu_set_format(&set, text, sizeof(text)), ==, "0-3,8-11");
    g_assert_true(g_file_set_contents(path, "\n", -1, NULL)); /* no isolated CPUs */
    g_assert_false(cpu_set_read(path, &set));
    g_assert_cmpuint(qemu_cpu_set_count(&set), ==, 0);
    g_unlink(path);
    g_assert_false(cpu_set_read(path, &set));
    g_free(path);
}

/* ---- One set ---- */

typedef struct RtCase {
    const char *rt[3], *oc[3];
    bool enabled;
    int policy, prio;
    MemLock lock;
} RtCase;

static void test_good(void)
{
    static const RtCase cases[] = {
        { { NULL }, { NULL }, false, SCHED_RR, 0, MEM_LOCK_OFF },
        { { "" }, { NULL }, false, SCHED_RR, 0, MEM_LOCK_ON },
        { { "mlock=on" }, { NULL }, false, SCHED_RR, 0, MEM_LOCK_ON },
        { { "mlock=off" }, { NULL }, false, SCHED_RR, 0, MEM_LOCK_OFF },
        { { "mlock=on-fault" }, { NULL }, false, SCHED_RR, 0, MEM_LOCK_ON_FAULT },
        { { "maxprio=2" }, { NULL }, true, SCHED_RR, 2, MEM_LOCK_ON },
        { { "maxprio=99,policy=fifo" }, { NULL }, true, SCHED_FIFO, 99, MEM_LOCK_ON },
        { { "maxprio=050,policy=rr,mlock=off" }, { NULL }, true, SCHED_RR, 50, MEM_LOCK_OFF },
        { { "maxprio=3", "policy=fifo" }, { NULL }, true, SCHED_FIFO, 3, MEM_LOCK_ON },
        { { "maxprio=3,maxprio=4" }, { NULL }, true, SCHED_RR, 4, MEM_LOCK_ON },
        { { "{\"maxprio\":50,\"policy\":\"fifo\"}" }, { NULL }, true, SCHED_FIFO, 50, MEM_LOCK_ON },
        { { "mlock=off" }, { "mem-lock=on" }, false, SCHED_RR, 0, MEM_LOCK_ON },
        { { NULL }, { "mem-lock=on-fault" }, false, SCHED_RR, 0, MEM_LOCK_ON_FAULT },
        { { NULL }, { "mem-lock=on", "cpu-pm=off" }, false, SCHED_RR, 0, MEM_LOCK_ON },
        { { NULL }, { "mem-lock=on", "mem-lock=off" }, false, SCHED_RR, 0, MEM_LOCK_OFF },
        { { "mlock=on-fault" }, { "mem-lock=off" }, false, SCHED_RR, 0, MEM_LOCK_ON_FAULT },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const RtCase *c = &cases[i];
        g_assert_true(parse(c->rt, c->oc, &error_abort));
        g_test_message("case %zu", i);
        g_assert_cmpint(o.config.enabled, ==, c->enabled);
        g_assert_cmpint(o.config.policy, ==, c->policy);
        g_assert_cmpint(o.config.max_priority, ==, c->prio);
        g_assert_cmpint(o.config.mem_lock, ==, c->lock);
    }
}


static void test_bad(void)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "maxprio=abc", "-realtime maxprio=abc: must be a decimal number from 2 to 99" },
        { "maxprio=2x", "maxprio=2x: must be a decimal number" },
        { "maxprio=1e1", "maxprio=1e1: must be a decimal" },
        { "maxprio=0x10", "maxprio=0x10: must be a decimal" },
        { "maxprio= 2", "maxprio= 2: must be a decimal" },
        { "maxprio=", "maxprio=: must be a decimal" },
        { "maxprio=-1", "maxprio=-1: must be a decimal" },
        { "maxprio=0", "maxprio=0: out of range, it must be from 2 to 99" },
        { "maxprio=1", "CPUs get maxprio - 1, and 0 is no realtime priority" },
        { "maxprio=100", "maxprio=100: out of range, it must be from 2 to 99" },
        { "maxprio=4294967298", "out of range, it must be from 2 to 99" },
        { "maxprio=18446744073709551618", "out of range, it must be from 2 to 99" },
        { "maxprio", "maxprio=on: must be a decimal" },
        { "maxprio=5,policy=FIFO", "-realtime policy=FIFO: must be 'rr' or 'fifo'" },
        { "maxprio=5,policy=other", "-realtime policy=other: " },
        { "policy=fifo", "-realtime policy=fifo: needs a priority too; add maxprio=N" },
        { "maxprio=5,mlock=maybe", "mlock=maybe: must be 'on', 'off' or 'on-fault'" },
        { "maxprio=5,colour=1", "invalid parameter 'colour'; valid ones are: maxprio, policy" },
        { "vcpus=1", "-realtime vcpus=1: needs a priority too" },
        { "vcpu-affinity=1", "-realtime vcpu-affinity=1: needs a priority too" },
        { "event-affinity=1", "-realtime event-affinity=1: needs a priority too" },
        { "latency-warn=5", "-realtime latency-warn=5: needs a priority too" },
        { "cpu-dma-latency=off", "-realtime cpu-dma-latency=off: needs a priority too" },
        { "maxprio=5,vcpus=4", "-realtime vcpus=4: '4' begins with a vCPU there is not; valid vCPU "
                               "numbers are 0-3" },
        { "maxprio=5,vcpus=1-4", "'1-4' ends with a vCPU there is not" },
        { "maxprio=5,vcpus=0,9", "-realtime vcpus=0,9: '9'" },
        { "maxprio=5,vcpus=^0-3", "leaves none" },
        { "maxprio=5,vcpus", "vcpus=on: 'on' is neither" },
        { "maxprio=5,2", "invalid parameter '2'" },
        { "maxprio=5,vcpu-affinity=0-8", "-realtime vcpu-affinity=0-8: '0-8' ends with a host CPU "
                                         "there is not; valid host CPU numbers are 0-7" },
        { "maxprio=5,vcpu-affinity=0,1,2", "vcpu-affinity=0,1,2: too short, 4 vCPUs are realtime "
                                           "and the list has 3 host CPUs" },
        { "maxprio=5,vcpus=1-3,vcpu-affinity=4-5", "too short, 3 vCPUs" },
        { "maxprio=5,event-affinity=8", "-realtime event-affinity=8: '8'" },
        { "maxprio=5,event-affinity=", "event-affinity=: the list is empty" },
        { "maxprio=5,latency-warn=0", "latency-warn=0: must be a number of microseconds from 1" },
        { "maxprio=5,latency-warn=10000001", "from 1 to 10000000" },
        { "maxprio=5,latency-warn=1ms", "latency-warn=1ms: must be" },
        { "maxprio=5,cpu-dma-latency=0", "'cpu-dma-latency' expects 'on' or 'off'" },
        { "id=run", "-realtime id=run: the profile has no priority; add maxprio=N, or policy=" },
        { "id=run,policy=fifo", "-realtime id=run: the profile has no priority" },
        { "id=run,policy=other,maxprio=5", "policy=other has no priorities; leave maxprio=5 out" },
        { "id=run,policy=other,vcpus=1", "with policy=other no vCPU is realtime" },
        { "id=1,maxprio=5", "id '1' is not an identifier" },
        { "id=run,maxprio=1", "CPUs get maxprio - 1" },
        { "{\"maxprio\":5.5}", "maxprio=5.5: must be a decimal" },
        { "{\"maxprio\":5,\"vcpus\":\"0,x\"}", "'x' is neither" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *rt[] = { cases[i].text, NULL };
        Error *err = NULL;
        if (parse(rt, NULL, &err)) {
            g_error("-realtime %s was taken", cases[i].text);
        }
        expect_error(err, cases[i].text, cases[i].part);
    }
    const char *oc[] = { "mem-lock=maybe", NULL };
    Error *err = NULL;
    g_assert_false(parse(NULL, oc, &err));
    expect_error(err, "mem-lock", "-overcommit mem-lock=maybe: must be 'on', 'off' or 'on-fault'");
}

static void test_overcommit(void)
{
    const char *on[] = { "cpu-pm=on", NULL }, *both[] = { "cpu-pm=on", "mem-lock=on-fault", NULL };
    const char *off[] = { "cpu-pm=on", "cpu-pm=off", NULL };

    g_assert_true(parse(NULL, on, &error_abort) && o.cpu_pm);
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_OFF);
    g_assert_true(parse(NULL, both, &error_abort) && o.cpu_pm);
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_ON_FAULT);
    g_assert_true(parse(NULL, off, &error_abort) && !o.cpu_pm);
}

static void test_lists_of_a_profile(void)
{
    static const char json[] = "{\"maxprio\":5,\"vcpus\":\"1,3\",\"vcpu-affinity\":\"6,2\","
                               "\"event-affinity\":\"0-1\"}";
    static const char *const forms[] = {
        "maxprio=5,vcpus=1,3,vcpu-affinity=6,,2,event-affinity=0-1",
        "maxprio=5,vcpus=1,,3,vcpu-affinity=6,2,event-affinity=0-1",
        json,
    };
    char text[64];

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        const char *rt[] = { forms[i], NULL };
        const QemuRealtimeProfile *p = &o.profiles[0];

        parse_ok(rt);
        g_assert_cmpuint(o.config.profile_count, ==, 1);
        g_assert_cmpstr(p->name, ==, "default");
        g_assert_true(p->realtime && p->affinity && p->cpu_dma_latency && p->event_pinned);
        g_assert_cmpstr(cpu_set_format(&p->vcpus, text, sizeof(text)), ==, "1,3");
        g_assert_cmpstr(cpu_set_format(&p->event_affinity, text, sizeof(text)), ==, "0-1");
        g_assert_cmpint(p->vcpu_cpu[0], ==, -1);
        g_assert_cmpint(p->vcpu_cpu[1], ==, 6); /* the first realtime vCPU on the first host CPU */
        g_assert_cmpint(p->vcpu_cpu[2], ==, -1);
        g_assert_cmpint(p->vcpu_cpu[3], ==, 2);
    }
    const char *plain[] = { "maxprio=5,latency-warn=250,cpu-dma-latency=off", NULL };
    parse_ok(plain);
    g_assert_true(!o.profiles[0].affinity && !o.profiles[0].event_pinned);
    g_assert_cmpuint(o.profiles[0].latency_warn_us, ==, 250);
    g_assert_false(o.profiles[0].cpu_dma_latency);
    g_assert_cmpuint(qemu_cpu_set_count(&o.profiles[0].vcpus), ==, 4);
}

static void test_check(void)
{
    const char *alone[] = { "check", NULL }, *with[] = { "check", "maxprio=5", NULL };

    parse_ok(alone);
    g_assert_true(o.check && o.config.mem_lock == MEM_LOCK_OFF && !o.config.profile_count);
    parse_ok(with);
    g_assert_true(o.check && o.config.mem_lock == MEM_LOCK_ON && o.config.max_priority == 5);
}

/* ---- Several profiles ---- */

static void test_profiles(void)
{
    const char *rt[] = { "id=boot,policy=other", "id=run,maxprio=50,policy=fifo,vcpus=1-3",
                         "id=calm,maxprio=20", "id=run,latency-warn=100", NULL };

    parse_ok(rt);
    g_assert_cmpuint(o.config.profile_count, ==, 3);
    g_assert_true(o.config.profiles == o.profiles);
    g_assert_cmpstr(o.profiles[0].name, ==, "boot");
    g_assert_true(!o.profiles[0].realtime && !o.profiles[0].cpu_dma_latency);
    g_assert_cmpstr(o.profiles[1].name, ==, "run");
    g_assert_cmpuint(o.profiles[1].latency_warn_us, ==, 100);
    g_assert_cmpint(o.profiles[2].policy, ==, SCHED_RR);
    /* The host must permit the most demanding one. */
    g_assert_true(o.config.enabled && o.config.policy == SCHED_FIFO);
    g_assert_cmpint(o.config.max_priority, ==, 50);
    g_assert_cmpuint(o.config.vcpus, ==, 3);
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_ON);

    const char *other[] = { "id=boot,policy=other", NULL };
    parse_ok(other);
    g_assert_true(!o.config.enabled && o.config.profile_count == 1);

    const char *mixed[] = { "maxprio=5,mlock=off", "id=x,maxprio=9", NULL };
    parse_ok(mixed);
    g_assert_cmpstr(o.profiles[0].name, ==, "default");
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_OFF); /* said once, and nobody says otherwise */

    const char *lock[] = { "id=a,maxprio=5,mlock=off", "id=b,maxprio=9,mlock=on-fault", NULL };
    parse_ok(lock);
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_ON_FAULT); /* the strongest that is said */

    const char *pins[] = { "id=a,policy=other", "id=b,maxprio=9,vcpu-affinity=0-3", NULL };
    parse_ok(pins);
    g_assert_true(o.profiles[0].affinity && o.profiles[1].affinity); /* each sets affinity then */
}

static void test_profiles_bad(void)
{
    const char *twice[] = { "maxprio=5", "id=default,maxprio=6", NULL };
    const char *second[] = { "id=a,policy=other", "id=b,maxprio=200", NULL };
    Error *err = NULL;

    g_assert_false(parse(twice, NULL, &err));
    expect_error(err, "default", "-realtime id=default");
    err = NULL;
    g_assert_false(parse(second, NULL, &err));
    expect_error(err, "second", "maxprio=200: out of range");
    reset_groups();
    for (unsigned i = 0; i <= REALTIME_PROFILES_MAX; i++) {
        char *text = g_strdup_printf("id=p%u,maxprio=5", i);
        qemu_opts_parse(qemu_find_opts("realtime", &error_abort), text, &error_abort);
        g_free(text);
    }
    err = NULL;
    g_assert_false(realtime_options_parse(&cpus, &o, &err));
    expect_error(err, "many", "at most 64 profiles");
}

static void test_readconfig(void)
{
    char *path = g_strdup_printf("%s/test-realtime-%d.cfg", g_get_tmp_dir(), (int)getpid());

    g_assert_true(g_file_set_contents(path, "[realtime \"boot\"]\npolicy = \"other\"\n"
                                            "[realtime \"run\"]\nmaxprio = \"50\"\n"
                                            "vcpus = \"0,2\"\n[realtime]\nmlock = \"off\"\n",
                                      -1, NULL));
    reset_groups();
    qemu_read_config_file(path, &error_abort);
    realtime_options_parse(&cpus, &o, &error_abort);
    g_assert_cmpuint(o.config.profile_count, ==, 2);
    g_assert_cmpstr(o.profiles[1].name, ==, "run");
    g_assert_cmpuint(qemu_cpu_set_count(&o.profiles[1].vcpus), ==, 2);
    g_assert_cmpint(o.config.mem_lock, ==, MEM_LOCK_OFF);
    g_unlink(path);
    g_free(path);
}

/* ---- Warnings ---- */

static void add_line(void *opaque, const char *text)
{
    g_string_append_printf(opaque, "%s\n", text);
}

/* part NULL: no warning at all. */
static void expect_warning(const char *text, const char *part)
{
    const char *rt[] = { text, NULL };
    GString *s = g_string_new(NULL);

    parse_ok(rt);
    realtime_options_warnings(&cpus, &o, add_line, s);
    if (part ? !strstr(s->str, part) : s->len) {
        g_error("-realtime %s warned: %s", text, s->str);
    }
    g_string_free(s, TRUE);
}

static void test_warnings(void)
{
    expect_warning("maxprio=5,policy=fifo,vcpu-affinity=1,2,3,1",
                   "vCPUs 0 and 3 share host CPU 1 under policy=fifo");
    expect_warning("maxprio=5,policy=rr,vcpu-affinity=1,1,1,1", NULL);
    expect_warning("maxprio=5,policy=fifo,vcpu-affinity=1-4", NULL);
    expect_warning("maxprio=5,policy=fifo", NULL);
    expect_warning("maxprio=5,event-affinity=4-5", NULL);
    host(4, 2, 2);
    expect_warning("maxprio=5,policy=fifo", "4 vCPUs share 2 host CPUs under policy=fifo");
    expect_warning("maxprio=5,policy=fifo", "will hang");
    expect_warning("maxprio=5,policy=rr", "4 vCPUs share 2 host CPUs under policy=rr: they take turns");
    g_assert_cmpuint(o.config.vcpus, ==, 4);
    expect_warning("maxprio=5,policy=rr,vcpu-affinity=1,1,1,1", NULL);
    g_assert_cmpuint(o.config.vcpus, ==, 1); /* what they can fill is one host CPU */
    host(4, 8, 4);
    expect_warning("maxprio=5,event-affinity=4-5",
                   "event-affinity holds host CPUs 4-5, which are isolated");
    expect_warning("maxprio=5,event-affinity=3-5", "4-5");
    expect_warning("maxprio=5,event-affinity=0-4", NULL);
    expect_warning("id=boot,policy=other,event-affinity=6,7", "profile 'boot': event-affinity");
    memset(&cpus.allowed, 0, sizeof(cpus.allowed)); /* as under taskset */
    qemu_cpu_set_add(&cpus.allowed, 5);
    qemu_cpu_set_add(&cpus.allowed, 6);
    expect_warning("maxprio=5", "threads without affinity may use host CPUs 5-6");
    expect_warning("maxprio=5,vcpu-affinity=4-7,event-affinity=5", NULL);
    host(4, 8, 8);
}

/* vCPUs that can come later count when they come. n: that many are there; part: as above. */
static void expect_when_added(unsigned n, unsigned added, const char *part)
{
    GString *s = g_string_new(NULL);

    cpu_set_first(&cpus.present, n);
    realtime_options_count(&cpus, &o);
    realtime_options_warn_added(&cpus, &o, added, add_line, s);
    if (part ? !strstr(s->str, part) : s->len) {
        g_error("%u with %u warned: %s", n, added, s->str);
    }
    g_string_free(s, TRUE);
}

static void test_added(void)
{
    host(4, 2, 2);
    cpu_set_first(&cpus.present, 2);
    expect_warning("maxprio=5,policy=fifo", NULL);
    g_assert_cmpuint(o.config.vcpus, ==, 2);
    expect_when_added(3, 2, "3 vCPUs share 2 host CPUs under policy=fifo: a guest whose CPUs wait");
    g_assert_cmpuint(o.config.vcpus, ==, 3);
    expect_when_added(4, 3, "4 vCPUs share 2 host CPUs under policy=fifo");
    expect_when_added(2, 1, NULL); /* two went meanwhile */
    g_assert_cmpuint(o.config.vcpus, ==, 2);
    cpu_set_first(&cpus.present, 2);
    expect_warning("maxprio=5,policy=rr", NULL);
    expect_when_added(3, 2, "3 vCPUs share 2 host CPUs under policy=rr: they take turns");
    /* One that the profile does not choose changes nothing. */
    expect_warning("maxprio=5,policy=fifo,vcpus=0-1", NULL);
    expect_when_added(3, 2, NULL);
    /* Pinned: the pair that the new one is of. */
    host(4, 8, 8);
    cpu_set_first(&cpus.present, 1);
    expect_warning("maxprio=5,policy=fifo,vcpu-affinity=3,1,3,2", NULL);
    expect_when_added(2, 1, NULL);
    expect_when_added(3, 2, "vCPUs 0 and 2 share host CPU 3 under policy=fifo");
    expect_when_added(4, 3, NULL);
    /* By taskset there may be one host CPU only. */
    memset(&cpus.allowed, 0, sizeof(cpus.allowed));
    qemu_cpu_set_add(&cpus.allowed, 5);
    cpu_set_first(&cpus.present, 1);
    expect_warning("maxprio=5,policy=fifo", NULL);
    expect_when_added(2, 1, "2 vCPUs share 1 host CPUs");
    /* Each profile that chooses it, though another is in force. */
    const char *two[] = { "id=boot,policy=other", "id=run,maxprio=5,policy=fifo", NULL };
    parse_ok(two);
    expect_when_added(2, 1, "profile 'run': 2 vCPUs share");
    host(4, 8, 8);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    host(4, 8, 8);
    g_test_add_func("/cpulist/good", test_list_good);
    g_test_add_func("/cpulist/bad", test_list_bad);
    g_test_add_func("/cpulist/limits", test_list_limits);
    g_test_add_func("/cpulist/file", test_list_file);
    g_test_add_func("/realtime/good", test_good);
    g_test_add_func("/realtime/bad", test_bad);
    g_test_add_func("/realtime/overcommit", test_overcommit);
    g_test_add_func("/realtime/lists", test_lists_of_a_profile);
    g_test_add_func("/realtime/check", test_check);
    g_test_add_func("/realtime/profiles", test_profiles);
    g_test_add_func("/realtime/profiles-bad", test_profiles_bad);
    g_test_add_func("/realtime/readconfig", test_readconfig);
    g_test_add_func("/realtime/warnings", test_warnings);
    g_test_add_func("/realtime/added", test_added);
    return g_test_run();
}
