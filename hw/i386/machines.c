/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The boards of this build. */
#include <string.h>
#include "hw/machine.h"

MachineConfig machine_config;
const MachineType *current_machine;
void (*machine_cpu_ejected)(unsigned cpu);
void (*machine_cpu_ost)(unsigned cpu, uint32_t source, uint32_t status);

static const MachineType *const machines[] = { &machine_pc, &machine_none };

const MachineType *machine_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(machines); i++) {
        const MachineType *m = machines[i];
        if (strcmp(m->name, name) == 0 || (m->alias && strcmp(m->alias, name) == 0)) {
            return m;
        }
    }
    return NULL;
}

void machine_foreach(void (*fn)(const MachineType *m, void *opaque), void *opaque)
{
    for (unsigned i = 0; i < ARRAY_SIZE(machines); i++) {
        fn(machines[i], opaque);
    }
}
