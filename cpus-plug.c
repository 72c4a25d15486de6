/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPUs as devices: what device_add and -device ask for, checked; names of those that were added; their end. */
#include "cpus-plug.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cpus.h"
#include "event/event.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "qemu/cutils.h"
#include "qemu/option.h"
#include "qemu/runstate.h"
#include "target/i386/cpuid.h"

#define TYPE_SUFFIX "-x86_64-cpu"
#define ID_MAX      96 /* with its path it goes into an event */

/* ---- Places and names ---- */

static struct {
    bool plugged;
    char *id;
    unsigned number;
} added[MAX_CPUS];
static unsigned anon_count;

CpuPlace cpu_place(unsigned index)
{
    const SmpTopology *smp = &machine_config.smp;

    return (CpuPlace){ .thread = index % smp->threads,
                       .core = index / smp->threads % smp->cores,
                       .die = index / (smp->threads * smp->cores) % smp->dies,
                       .socket = index / (smp->threads * smp->cores * smp->dies) };
}

static unsigned place_index(const CpuPlace *p)
{
    const SmpTopology *smp = &machine_config.smp;

    return ((p->socket * smp->dies + p->die) * smp->cores + p->core) * smp->threads + p->thread;
}

bool cpu_is_plugged(unsigned index)
{
    return added[index].plugged;
}

const char *cpu_device_id(unsigned index)
{
    return added[index].id;
}

unsigned cpu_anon_number(unsigned index)
{
    return added[index].number;
}

int cpu_by_device_id(const char *id)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (added[i].id && !strcmp(added[i].id, id)) {
            return (int)i;
        }
    }
    return -1;
}

char *cpu_qom_path(unsigned index)
{
    if (!added[index].plugged) {
        return g_strdup_printf("/machine/unattached/device[%u]", index);
    }
    if (added[index].id) {
        return g_strdup_printf("/machine/peripheral/%s", added[index].id);
    }
    return g_strdup_printf("/machine/peripheral-anon/device[%u]", added[index].number);
}

/* ---- The guest gives one back ---- */

#define SET_WORDS DIV_ROUND_UP(MAX_CPUS, 64)

static _Atomic uint64_t ejected[SET_WORDS], reported[SET_WORDS]; /* not looked at yet */
static _Atomic uint64_t report[MAX_CPUS]; /* the last one: source, status */
static EventPost eject_post;
static void (*report_ost)(unsigned index, const char *id, uint32_t source, uint32_t status);
static void (*report_gone)(const char *id, const char *path);
static void (*report_change)(unsigned index, bool there);

/* On the vCPU that says it: the control thread does the rest. */
static void note(_Atomic uint64_t *set, unsigned index)
{
    atomic_fetch_or(&set[index / 64], BIT64(index % 64));
    if (event_loop_control()) {
        event_post(event_loop_control(), &eject_post);
    }
}

static bool take(_Atomic uint64_t *set, unsigned index)
{
    return atomic_fetch_and(&set[index / 64], ~BIT64(index % 64)) & BIT64(index % 64);
}

static void eject_request(unsigned index)
{
    note(ejected, index);
}

static void ost_report(unsigned index, uint32_t source, uint32_t status)
{
    atomic_store(&report[index], (uint64_t)source << 32 | status);
    note(reported, index);
}

static void unplug(CPUState *cpu)
{
    bool done;

    do {
        cpu_unplug_park(cpu);
        runstate_hold();
        done = cpu_unplug_begin(cpu);
        if (done) {
            current_machine->cpu_unplugged(cpu->index);
        }
        runstate_release();
    } while (!done);
    cpu_unplug_end(cpu);
}

static void eject_one(unsigned index)
{
    CPUState *cpu = cpu_get(index);
    g_autofree char *path = NULL, *id = NULL;

    if (!cpu || !added[index].plugged) {
        return;
    }
    unplug(cpu);
    path = cpu_qom_path(index);
    id = g_steal_pointer(&added[index].id);
    added[index].plugged = false;
    if (report_change) {
        report_change(index, false);
    }
    if (report_gone) {
        report_gone(id, path);
    }
}

static void eject_run(void *opaque)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (take(reported, i) && report_ost) {
            uint64_t v = atomic_load(&report[i]);

            report_ost(i, added[i].id, (uint32_t)(v >> 32), (uint32_t)v);
        }
        if (take(ejected, i)) {
            eject_one(i);
        }
    }
}

void cpu_device_on_gone(void (*fn)(const char *id, const char *path))
{
    report_gone = fn;
}

void cpu_device_on_change(void (*fn)(unsigned index, bool there))
{
    report_change = fn;
}

void cpu_device_on_report(void (*fn)(unsigned index, const char *id, uint32_t source, uint32_t status))
{
    report_ost = fn;
}

bool cpu_device_last_report(unsigned index, uint32_t *source, uint32_t *status)
{
    uint64_t v = atomic_load(&report[index]);

    *source = (uint32_t)(v >> 32);
    *status = (uint32_t)v;
    return v;
}

bool cpu_device_del(unsigned index, Error **errp)
{
    Error *err = NULL;

    rtcheck_helper_only(__func__);
    if (!added[index].plugged) {
        error_setg(errp, index ? "CPU %u is there since the start (-smp); only one that was added can be removed"
                               : "Boot CPU is unpluggable", index);
        return false;
    }
    if (!current_machine->cpu_plug_check(&err)) {
        error_setg(errp, "CPU %u can not be removed: %s", index, error_get_pretty(err));
        error_free(err);
        return false;
    }
    current_machine->cpu_unplug_request(index);
    return true;
}

static void name_cpu(unsigned index, const char *id)
{
    added[index].plugged = true;
    added[index].id = g_strdup(id);
    if (!id) {
        added[index].number = anon_count++;
    }
}

/* ---- The type ---- */

typedef struct TypeSearch {
    const char *driver;
    bool found;
} TypeSearch;

static void compare_model(const X86CPUModel *m, void *opaque)
{
    TypeSearch *s = opaque;
    size_t len = strlen(m->name);

    s->found |= !strncmp(s->driver, m->name, len) && !strcmp(s->driver + len, TYPE_SUFFIX);
}

bool cpu_device_type_known(const char *driver)
{
    TypeSearch s = { .driver = driver };

    if (driver && g_str_has_suffix(driver, TYPE_SUFFIX)) {
        x86_cpu_model_foreach(compare_model, &s);
    }
    return s.found;
}

static bool check_type(const char *driver, Error **errp)
{
    const char *model = x86_cpu_model_current()->name;
    size_t len = strlen(model);

    if (strncmp(driver, model, len) || strcmp(driver + len, TYPE_SUFFIX)) {
        error_setg(errp, "Invalid CPU type, expected cpu type: '%s" TYPE_SUFFIX "'", model);
        return false;
    }
    return true;
}

char *cpu_device_help(const char *driver)
{
    static const char *const keys[] = { "core-id=<int32>", "die-id=<int32>", "socket-id=<int32>", "thread-id=<int32>" };
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "%s options:\n", driver);
    for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
        g_string_append_printf(text, "  %-22s - place of the CPU, as query-hotpluggable-cpus names it\n", keys[i]);
    }
    return g_string_free(text, FALSE);
}

/* ---- What was asked for ---- */

enum { SOCKET, DIE, CORE, THREAD, LEVELS };
static const char *const level_keys[LEVELS] = { "socket-id", "die-id", "core-id", "thread-id" };

typedef struct Request {
    const char *driver;
    int64_t level[LEVELS]; /* -1: not given */
} Request;

static bool is_cpu_property(const char *key)
{
    for (unsigned i = 0; i < x86_feature_count; i++) {
        if (!strcmp(x86_features[i].name, key)) {
            return true;
        }
    }
    return false;
}

static bool take_opt(void *opaque, const char *key, const char *value, Error **errp)
{
    Request *r = opaque;

    for (unsigned i = 0; i < LEVELS; i++) {
        char *end;

        if (strcmp(key, level_keys[i])) {
            continue;
        }
        r->level[i] = g_ascii_strtoll(value, &end, 10);
        if (end == value || *end || r->level[i] < -1 || r->level[i] > INT32_MAX) {
            error_setg(errp, "Parameter '%s' expects integer", key);
            return false;
        }
        return true;
    }
    if (!strcmp(key, "driver") || !strcmp(key, "bus")) {
        return true;
    }
    if (is_cpu_property(key)) {
        error_setg(errp, "Property '%s.%s': a CPU that is added is what -cpu says; leave it out", r->driver, key);
    } else {
        error_setg(errp, "Property '%s.%s' not found", r->driver, key);
    }
    return false;
}

/* All that are missing in one message; of one alone it is QEMU's. die-id may be left out if a socket is one die. */
static bool check_given(const Request *r, Error **errp)
{
    g_autoptr(GString) names = g_string_new(NULL);
    unsigned n = 0;

    for (unsigned i = 0; i < LEVELS; i++) {
        if (r->level[i] < 0 && (i != DIE || machine_config.smp.dies > 1)) {
            g_string_append_printf(names, "%s%s", n++ ? ", " : "", level_keys[i]);
        }
    }
    if (n) {
        error_setg(errp, "CPU %s %s not set", names->str, n == 1 ? "is" : "are");
    }
    return n == 0;
}

static bool check_level(const Request *r, unsigned level, unsigned count, unsigned *out, Error **errp)
{
    int64_t v = MAX(r->level[level], 0);

    if (v >= count) {
        error_setg(errp, "Invalid CPU %s: %" PRId64 " must be in range 0:%u", level_keys[level], v, count - 1);
        return false;
    }
    *out = (unsigned)v;
    return true;
}

static bool check_place(const Request *r, unsigned *index, Error **errp)
{
    const SmpTopology *smp = &machine_config.smp;
    CpuPlace p;

    if (!check_given(r, errp) || !check_level(r, SOCKET, smp->sockets, &p.socket, errp) ||
        !check_level(r, DIE, smp->dies, &p.die, errp) ||
        !check_level(r, CORE, smp->cores, &p.core, errp) ||
        !check_level(r, THREAD, smp->threads, &p.thread, errp)) {
        return false;
    }
    *index = place_index(&p);
    if (cpu_get(*index)) {
        error_setg(errp, "CPU[%u] with APIC ID %u exists", *index, x86_apic_id(*index));
        return false;
    }
    return true;
}

static bool check_bus(const char *driver, const char *name, Error **errp)
{
    Bus *bus = name ? bus_find(name) : NULL;
    g_autofree char *kind = bus ? g_ascii_strup(bus->kind, -1) : NULL;

    if (bus) {
        error_setg(errp, "Device '%s' can't go on %s bus", driver, kind);
    } else if (name) {
        error_setg(errp, "Bus '%s' not found", name);
    }
    return !name;
}

static bool check_machine(const char *driver, bool hot, Error **errp)
{
    Error *err = NULL;

    if (!current_machine->cpu_plugged) {
        error_setg(errp, "Device '%s' can not be hotplugged on this machine", driver);
        return false;
    }
    if (hot && !current_machine->cpu_plug_check(&err)) {
        error_setg(errp, "Device '%s' can not be hotplugged: %s", driver, error_get_pretty(err));
        error_free(err);
        return false;
    }
    return true;
}

static bool check_id(const char *id, Error **errp)
{
    if (id && strlen(id) > ID_MAX) {
        error_setg(errp, "Parameter 'id': '%s' is longer than %d characters", id, ID_MAX);
        return false;
    }
    if (id && (device_find(id) || cpu_by_device_id(id) >= 0)) {
        error_setg(errp, "Duplicate device ID '%s'", id);
        return false;
    }
    return true;
}

bool cpu_device_add(QemuOpts *opts, bool hot, Error **errp)
{
    Request r = { .driver = qemu_opt_get(opts, "driver"), .level = { -1, -1, -1, -1 } };
    const char *id = qemu_opts_id(opts);
    unsigned index;
    CPUState *cpu;

    rtcheck_helper_only(__func__);
    hot = hot && runstate_get() != RUN_STATE_PRELAUNCH; /* else it is there when the guest looks */
    if (!check_bus(r.driver, qemu_opt_get(opts, "bus"), errp) || !check_machine(r.driver, hot, errp) ||
        !qemu_opt_foreach(opts, take_opt, &r, errp) || !check_id(id, errp) ||
        !check_type(r.driver, errp) || !check_place(&r, &index, errp)) {
        return false;
    }
    cpu = cpu_plug_begin(index, errp);
    if (!cpu) {
        return false;
    }
    if (!machine_cpu_ejected) {
        event_post_init(&eject_post, eject_run, NULL);
        machine_cpu_ejected = eject_request;
        machine_cpu_ost = ost_report;
    }
    name_cpu(index, id);
    if (report_change) {
        report_change(index, true); /* now: what it warns of may come once the guest has it */
    }
    runstate_hold();
    cpu_plug_end(cpu);
    current_machine->cpu_plugged(index, hot);
    runstate_release();
    return true;
}
