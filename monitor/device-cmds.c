/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices that come while the machine runs: device_add, device_del, and the places of CPUs. */
#include <glib.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include "accel/cpu.h"
#include "cpus-plug.h"
#include "hw/device.h"
#include "hw/machine.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/option.h"
#include "target/i386/cpuid.h"

/* ---- device_add ---- */

static const QomType *find_type(GPtrArray *types, const char *driver, Error **errp)
{
    const QomType *t = qom_type_find(types, driver);

    if (t && t->abstract) {
        error_setg(errp, "Parameter 'driver' expects a non-abstract device type");
    } else if (!t || !t->device) {
        error_setg(errp, "'%s' is not a valid device model name", driver);
    } else if (!t->device->user_creatable) {
        error_setg(errp, "Parameter 'driver' expects a pluggable device type");
    } else {
        return t;
    }
    return NULL;
}

/* No bus of this machine takes a device once it runs; it is told like a mistake in the request. */
static void refuse_on_bus(const DeviceType *type, const char *name, Error **errp)
{
    Bus *bus = name ? bus_find(name) : bus_find_kind(type->bus);
    g_autofree char *kind = bus ? g_ascii_strup(bus->kind, -1) : NULL;

    if (name && !bus) {
        error_setg(errp, "Bus '%s' not found", name);
    } else if (!bus) {
        error_setg(errp, "No '%s' bus found for device '%s'", type->bus, type->name);
    } else if (strcmp(bus->kind, type->bus)) {
        error_setg(errp, "Device '%s' can't go on %s bus", type->name, kind);
    } else {
        error_setg(errp, "Bus '%s' does not support hotplugging", bus->name);
    }
}

/* device_add help, device_add DRIVER,help. False: it asks for no help. */
static bool device_help(Monitor *mon, QemuOpts *opts, Error **errp)
{
    const char *driver = qemu_opt_get(opts, "driver");
    const DeviceType *type = driver ? device_type_find(driver) : NULL;
    g_autofree char *text = NULL;

    if (!qemu_opts_has_help(opts)) {
        return false;
    }
    if (!driver) { /* what can be added while the machine runs: no bus takes a device then */
        const char *model = x86_cpu_model_current()->name;
        text = g_strdup_printf("CPU devices:\nname \"%s-x86_64-cpu\"\n", model);
    } else if (type) {
        text = device_type_help(type);
    } else if (cpu_device_type_known(driver)) {
        text = cpu_device_help(driver);
    } else {
        error_setg(errp, "Device '%s' not found", driver);
        return true;
    }
    monitor_puts(mon, text);
    return true;
}

static void device_plug(QemuOpts *opts, Error **errp)
{
    const char *driver = qemu_opt_get(opts, "driver");
    GPtrArray *types;
    const QomType *t;

    if (!driver) {
        error_setg(errp, "Parameter 'driver' is missing");
        return;
    }
    if (cpu_device_type_known(driver)) {
        cpu_device_add(opts, true, errp);
        return;
    }
    types = qom_types();
    t = find_type(types, driver, errp);
    if (t) {
        refuse_on_bus(t->device, qemu_opt_get(opts, "bus"), errp);
    }
    g_ptr_array_unref(types);
}

void qmp_device_add(struct json_object *args, Error **errp)
{
    QemuOptsList list = { .name = "device" };
    struct json_object *id = qapi_member(args, "id");
    QemuOpts *opts;

    if (id && !id_wellformed(json_object_get_string(id))) {
        error_setg(errp, "Parameter 'id' expects an identifier");
        return;
    }
    opts = qemu_opts_parse_json(&list, json_object_to_json_string_ext(args, JSON_C_TO_STRING_PLAIN), errp);
    if (opts) {
        device_plug(opts, errp);
    }
    qemu_opts_reset(&list);
}

void hmp_device_add(Monitor *mon, const char *args)
{
    QemuOptsList list = { .name = "device", .implied_opt_name = "driver" };
    Error *err = NULL;
    QemuOpts *opts = qemu_opts_parse(&list, args, &err);

    if (opts && !device_help(mon, opts, &err)) {
        device_plug(opts, &err);
    }
    hmp_report(mon, err);
    qemu_opts_reset(&list);
}

/* ---- device_del ---- */

static void report_gone(const char *id, const char *path)
{
    qapi_event_send_device_deleted(id != NULL, id ? id : "", path);
}

static void report_ost(unsigned cpu, const char *id, uint32_t source, uint32_t status)
{
    char slot[12];

    snprintf(slot, sizeof(slot), "%u", cpu);
    qapi_event_send_acpi_device_ost(id != NULL, id ? id : "", slot, QAPI_ACPI_SLOT_TYPE_CPU, source, status);
}

QapiACPIOSTInfoArray *qmp_query_acpi_ospm_status(Error **errp)
{
    QapiACPIOSTInfoArray *a = g_new0(QapiACPIOSTInfoArray, 1);
    const SmpTopology *smp = &machine_config.smp;

    for (unsigned i = 0; smp->maxcpus > smp->cpus && machine_config.acpi && i < smp->maxcpus; i++) {
        QapiACPIOSTInfo *info = g_new0(QapiACPIOSTInfo, 1);
        uint32_t source, status;

        cpu_device_last_report(i, &source, &status);
        info->has_device = cpu_device_id(i) != NULL;
        info->device = g_strdup(cpu_device_id(i));
        info->slot = g_strdup_printf("%u", i);
        info->slot_type = QAPI_ACPI_SLOT_TYPE_CPU;
        info->source = source;
        info->status = status;
        qapi_acpiost_info_array_add(a, info);
    }
    return a;
}

void monitor_devices_init(void)
{
    cpu_device_on_report(report_ost);
    cpu_device_on_gone(report_gone);
}

void qmp_device_del(const char *id, Error **errp)
{
    DeviceState *dev;
    int cpu = qom_find_cpu(id, &dev);

    if (cpu >= 0) {
        cpu_device_del((unsigned)cpu, errp);
    } else if (dev) {
        error_setg(errp, "Bus '%s' does not support hotplugging", dev->bus->name);
    } else {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", id);
    }
}

void hmp_device_del(Monitor *mon, const char *args)
{
    Error *err = NULL;

    if (*args) {
        qmp_device_del(args, &err);
    } else {
        error_setg(&err, "which device? Its id, or path in 'info qom-tree'");
    }
    hmp_report(mon, err);
}

/* ---- Places of CPUs ---- */

QapiCpuInstanceProperties *monitor_cpu_place(unsigned index)
{
    QapiCpuInstanceProperties *p = g_new0(QapiCpuInstanceProperties, 1);
    CpuPlace at = cpu_place(index);

    p->has_thread_id = p->has_core_id = p->has_socket_id = true;
    p->has_die_id = machine_config.smp.dies > 1;
    p->thread_id = at.thread;
    p->core_id = at.core;
    p->die_id = at.die;
    p->socket_id = at.socket;
    return p;
}

static QapiHotpluggableCPU *place(unsigned index)
{
    QapiHotpluggableCPU *h = g_new0(QapiHotpluggableCPU, 1);

    h->type = g_strconcat(x86_cpu_model_current()->name, "-x86_64-cpu", NULL);
    h->vcpus_count = 1;
    h->props = monitor_cpu_place(index);
    h->has_qom_path = cpu_get(index) != NULL;
    h->qom_path = h->has_qom_path ? cpu_qom_path(index) : NULL;
    return h;
}

QapiHotpluggableCPUArray *qmp_query_hotpluggable_cpus(Error **errp)
{
    QapiHotpluggableCPUArray *a = g_new0(QapiHotpluggableCPUArray, 1);

    if (!current_machine->default_cpu) {
        error_setg(errp, "The feature 'query-hotpluggable-cpus' is not enabled");
        return a;
    }
    for (unsigned i = machine_config.smp.maxcpus; i-- > 0;) {
        qapi_hotpluggable_cpu_array_add(a, place(i));
    }
    return a;
}

static void print_level(Monitor *mon, const char *name, bool has, int64_t value)
{
    if (has) {
        monitor_printf(mon, "    %s: \"%" PRId64 "\"\n", name, value);
    }
}

void hmp_info_hotpluggable_cpus(Monitor *mon, const char *args)
{
    Error *err = NULL;
    QapiHotpluggableCPUArray *a = qmp_query_hotpluggable_cpus(&err);

    if (!err) {
        monitor_puts(mon, "Hotpluggable CPUs:\n");
    }
    for (size_t i = 0; i < a->len; i++) {
        const QapiHotpluggableCPU *h = a->items[i];
        const QapiCpuInstanceProperties *p = h->props;

        monitor_printf(mon, "  type: \"%s\"\n  vcpus_count: \"%" PRId64 "\"\n", h->type, h->vcpus_count);
        if (h->has_qom_path) {
            monitor_printf(mon, "  qom_path: \"%s\"\n", h->qom_path);
        }
        monitor_puts(mon, "  CPUInstance Properties:\n");
        print_level(mon, "socket-id", p->has_socket_id, p->socket_id);
        print_level(mon, "die-id", p->has_die_id, p->die_id);
        print_level(mon, "core-id", p->has_core_id, p->core_id);
        print_level(mon, "thread-id", p->has_thread_id, p->thread_id);
    }
    hmp_report(mon, err);
    qapi_free_hotpluggable_cpu_array(a);
}
