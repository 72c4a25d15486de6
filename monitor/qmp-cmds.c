/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP commands that belong to no room of their own. */
#include <glib.h>
#include <stdio.h>
#include "accel/accel.h"
#include "cpus-plug.h"
#include "chardev/char.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/runstate.h"
#include "qemu/version.h"
#include "target/i386/cpu.h"

void qmp_qmp_capabilities(bool has_enable, QapiStrArray *enable, Error **errp)
{
    if (has_enable && enable->len) {
        error_setg(errp, "capability '%s' is not offered: the list in the greeting is empty",
                   enable->items[0]);
    }
}

QapiVersionInfo *qmp_query_version(Error **errp)
{
    QapiVersionInfo *v = g_new0(QapiVersionInfo, 1);

    v->qemu = g_new0(QapiVersionTriple, 1);
    v->qemu->major = QEMU_COMPAT_MAJOR;
    v->qemu->minor = QEMU_COMPAT_MINOR;
    v->qemu->micro = QEMU_COMPAT_MICRO;
    v->package = g_strdup("qemu-rt-" QEMU_VERSION);
    return v;
}

QapiCommandInfoArray *qmp_query_commands(Error **errp)
{
    QapiCommandInfoArray *a = g_new0(QapiCommandInfoArray, 1);

    for (const QmpCommand *c = qmp_commands; c->name; c++) {
        QapiCommandInfo *i = g_new0(QapiCommandInfo, 1);

        i->name = g_strdup(c->name);
        qapi_command_info_array_add(a, i);
    }
    return a;
}

void qmp_quit(Error **errp)
{
    qemu_system_shutdown_request(SHUTDOWN_CAUSE_HOST_QMP_QUIT);
}

QapiStatusInfo *qmp_query_status(Error **errp)
{
    QapiStatusInfo *s = g_new0(QapiStatusInfo, 1);

    s->running = runstate_is_running();
    s->status = (QapiRunState)runstate_get();
    return s;
}

void qmp_stop(Error **errp)
{
    vm_stop(RUN_STATE_PAUSED);
}

void qmp_cont(Error **errp)
{
    vm_start(errp);
}

void qmp_system_reset(Error **errp)
{
    qemu_system_reset_request(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
}

void qmp_system_wakeup(Error **errp)
{
    if (runstate_get() != RUN_STATE_SUSPENDED) {
        error_setg(errp, "Unable to wake up: guest is not in suspended state");
        return;
    }
    qemu_system_wakeup_request();
}

void qmp_system_powerdown(Error **errp)
{
    qemu_system_powerdown_request();
}

static void add_cpu_info(CPUState *cpu, QapiCpuInfoFastArray *a)
{
    QapiCpuInfoFast *i = g_new0(QapiCpuInfoFast, 1);

    i->cpu_index = cpu->index;
    i->qom_path = cpu_qom_path(cpu->index);
    i->thread_id = atomic_load(&cpu->thread.tid);
    i->target = g_strdup("x86_64");
    i->props = monitor_cpu_place(cpu->index);
    qapi_cpu_info_fast_array_add(a, i);
}

QapiCpuInfoFastArray *qmp_query_cpus_fast(Error **errp)
{
    QapiCpuInfoFastArray *a = g_new0(QapiCpuInfoFastArray, 1);

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (cpu_get(i)) {
            add_cpu_info(cpu_get(i), a);
        }
    }
    return a;
}

QapiKvmInfo *qmp_query_kvm(Error **errp)
{
    QapiKvmInfo *k = g_new0(QapiKvmInfo, 1);

    k->enabled = accel_is(&kvm_accel_ops);
    k->present = kvm_accel_ops.available();
    return k;
}

QapiTargetInfo *qmp_query_target(Error **errp)
{
    QapiTargetInfo *t = g_new0(QapiTargetInfo, 1);

    t->arch = g_strdup("x86_64");
    return t;
}

QapiNameInfo *qmp_query_name(Error **errp)
{
    QapiNameInfo *n = g_new0(QapiNameInfo, 1);

    if (monitor_guest_name) {
        n->has_name = true;
        n->name = g_strdup(monitor_guest_name);
    }
    return n;
}

QapiUuidInfo *qmp_query_uuid(Error **errp)
{
    QapiUuidInfo *u = g_new0(QapiUuidInfo, 1);
    const uint8_t *b = monitor_guest_uuid;

    u->uuid = g_strdup_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                              b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
                              b[11], b[12], b[13], b[14], b[15]);
    return u;
}

static void add_chardev(Chardev *chr, void *opaque)
{
    QapiChardevInfo *i = g_new0(QapiChardevInfo, 1);

    i->label = g_strdup(chardev_id(chr));
    i->filename = g_strdup(chardev_filename(chr));
    i->frontend_open = chardev_frontend_open(chr);
    qapi_chardev_info_array_add(opaque, i);
}

QapiChardevInfoArray *qmp_query_chardev(Error **errp)
{
    QapiChardevInfoArray *a = g_new0(QapiChardevInfoArray, 1);

    chardev_foreach(add_chardev, a);
    return a;
}
