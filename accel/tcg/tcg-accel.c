/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `-accel tcg`: the software CPU as an accelerator. Its loop is in engine.c. */
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include "target/i386/cpuid.h"

static void tcg_request_flush(CPUState *cpu)
{
    cpu_request(cpu, CPU_REQ_TLB_FLUSH);
}

void tcg_flush_all(CPUState *cpu)
{
    tcg_request_flush(cpu);
}

/* The map changed: every TLB and the places of code are looked up anew. */
static void tcg_map_commit(MemoryListener *l)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);

        if (cpu) {
            tcg_request_flush(cpu);
        }
    }
}

static MemoryListener tcg_map_listener = {
    .as = &address_space_memory,
    .commit = tcg_map_commit,
};

static bool tcg_available(void)
{
    return true;
}

static bool tcg_init(struct QemuOpts *opts, Error **errp)
{
    x86_cpu_set_backend(&x86_tcg_backend);
    memory_listener_register(&tcg_map_listener);
    return true;
}

static bool tcg_vcpu_init(CPUState *cpu, Error **errp)
{
    return tcg_engine_init(x86_cpu(cpu), errp);
}

static void tcg_vcpu_fini(CPUState *cpu)
{
    tcg_engine_fini(x86_cpu(cpu));
}

static ExitReason tcg_vcpu_run(CPUState *cpu)
{
    return tcg_engine_run(x86_cpu(cpu));
}

static void tcg_vcpu_kick(CPUState *cpu)
{
    /* Guest code looks at this at every block entry; a halted vCPU was woken by its event word. */
    atomic_store(&cpu->exit_request, 1);
}

static void tcg_vcpu_reset(CPUState *cpu)
{
    tcg_engine_reset(x86_cpu(cpu));
}

/* X86CPU is where the interpreter keeps everything. */
static void tcg_regs_get(CPUState *cpu)
{
}

static void tcg_regs_put(CPUState *cpu)
{
    tcg_mmu_resync(x86_cpu(cpu));
    atomic_store(&cpu->exit_request, 1);
}

static int64_t tcg_vcpu_deadline(CPUState *cpu)
{
    return irqchip && irqchip->timer_deadline ? irqchip->timer_deadline(cpu) : INT64_MAX;
}

const AccelOps tcg_accel_ops = {
    .name = "tcg",
    .thread_name = "TCG",
    .init = tcg_init,
    .available = tcg_available,
    .vcpu_init = tcg_vcpu_init,
    .vcpu_fini = tcg_vcpu_fini,
    .vcpu_run = tcg_vcpu_run,
    .vcpu_kick = tcg_vcpu_kick,
    .vcpu_reset = tcg_vcpu_reset,
    .regs_get = tcg_regs_get,
    .regs_put = tcg_regs_put,
    .vcpu_deadline = tcg_vcpu_deadline,
};
