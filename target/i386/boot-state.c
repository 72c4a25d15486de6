/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state a board starts CPUs in when it boots a kernel directly. It must be put back at every
 * reset of the machine, so it is a hook that the end of a power-on reset calls.
 */
#include "target/i386/cpu.h"

static X86BootStateFn *boot_state_fn;

void x86_cpu_set_boot_state(X86BootStateFn *fn)
{
    boot_state_fn = fn;
}

void x86_cpu_apply_boot_state(X86CPU *cpu)
{
    if (boot_state_fn) {
        boot_state_fn(cpu);
    }
}
