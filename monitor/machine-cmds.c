/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines, their memory, and what their end does. */
#include <glib.h>
#include "accel/cpu.h"
#include "hw/intc.h"
#include "hw/machine.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/runstate.h"
#include "target/i386/cpuid.h"

static char *cpu_type(const char *model)
{
    return g_strconcat(model, "-x86_64-cpu", NULL);
}

static void add_machine(const MachineType *m, void *opaque)
{
    QapiMachineInfo *i = g_new0(QapiMachineInfo, 1);

    i->name = g_strdup(m->name);
    i->has_alias = m->alias != NULL;
    i->alias = g_strdup(m->alias);
    i->has_is_default = i->is_default = m->is_default;
    i->cpu_max = m->max_cpus;
    i->hotpluggable_cpus = m->cpu_plugged != NULL;
    if (m->default_cpu) {
        i->has_default_cpu_type = true;
        i->default_cpu_type = cpu_type(m->default_cpu);
    }
    i->has_default_ram_id = m->default_ram_id != NULL;
    i->default_ram_id = g_strdup(m->default_ram_id);
    qapi_machine_info_array_add(opaque, i);
}

QapiMachineInfoArray *qmp_query_machines(Error **errp)
{
    QapiMachineInfoArray *a = g_new0(QapiMachineInfoArray, 1);

    machine_foreach(add_machine, a);
    return a;
}

QapiMemoryInfo *qmp_query_memory_size_summary(Error **errp)
{
    QapiMemoryInfo *m = g_new0(QapiMemoryInfo, 1);

    m->base_memory = machine_config.ram_size;
    return m;
}

/* ---- set-action ---- */

void qmp_set_action(bool has_reboot, QapiRebootAction reboot, bool has_shutdown,
                    QapiShutdownAction shutdown, bool has_panic, QapiPanicAction panic,
                    bool has_watchdog, QapiWatchdogAction watchdog, Error **errp)
{
    if (has_reboot) {
        vm_actions.reboot_is_shutdown = reboot == QAPI_REBOOT_ACTION_SHUTDOWN;
    }
    if (has_shutdown) {
        vm_actions.shutdown_is_pause = shutdown == QAPI_SHUTDOWN_ACTION_PAUSE;
    }
    if (has_panic) {
        vm_actions.panic_is_pause = panic == QAPI_PANIC_ACTION_PAUSE;
        vm_actions.panic_is_none = panic == QAPI_PANIC_ACTION_NONE;
        vm_actions.panic_is_exit_failure = panic == QAPI_PANIC_ACTION_EXIT_FAILURE;
    }
    if (has_watchdog) {
        vm_actions.watchdog_set = true;
        vm_actions.watchdog = (WatchdogAction)watchdog; /* the words stand in this order */
    }
}

void qmp_inject_nmi(Error **errp)
{
    CPUState *first = cpu_get(0);

    if (!first) {
        error_setg(errp, "this machine has no CPU");
    } else if (first->irqchip) {
        apic_pulse_lint1();
    } else { /* local APICs are in the host's kernel */
        for (unsigned i = 0; i < MAX_CPUS; i++) {
            if (cpu_get(i)) {
                cpu_request(cpu_get(i), CPU_REQ_NMI);
            }
        }
    }
}
