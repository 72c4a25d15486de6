/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `-accel tcg`: the software CPU as an accelerator. Its loop is in engine.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"

/* ---- Life of a vCPU's interpreter ---- */

bool tcg_engine_init(X86CPU *c, Error **errp)
{
    TcgCpu *t = aligned_alloc(64, ROUND_UP(sizeof(TcgCpu), 64));
    TcgEngine *g = aligned_alloc(64, ROUND_UP(sizeof(TcgEngine), 64));

    if (!t || !g) {
        free(t);
        free(g);
        error_setg_errno(errp, ENOMEM, "cannot allocate the interpreter of CPU %u",
                         c->base.index);
        return false;
    }
    memset(t, 0, sizeof(*t));
    memset(g, 0, sizeof(*g));
    t->engine = g;
    c->tcg = t;
    tcg_decode_init(c, g);
    if (!tcg_blocks_init(g, errp)) {
        goto fail;
    }
    if (!tcg_mmu_init(c, errp)) {
        goto fail_blocks;
    }
    if (!tcg_sys_init(c, errp)) {
        goto fail_mmu;
    }
    if (!tcg_simd_init(c, errp)) {
        goto fail_sys;
    }
    tcg_engine_reset(c);
    return true;
fail_sys:
    tcg_sys_fini(c);
fail_mmu:
    tcg_mmu_fini(c);
fail_blocks:
    tcg_blocks_fini(g);
fail:
    c->tcg = NULL;
    free(t);
    free(g);
    return false;
}

void tcg_engine_fini(X86CPU *c)
{
    tcg_simd_fini(c);
    tcg_sys_fini(c);
    tcg_mmu_fini(c);
    tcg_blocks_fini(c->tcg->engine);
    free(c->tcg->engine);
    free(c->tcg);
    c->tcg = NULL;
}

void tcg_engine_reset(X86CPU *c)
{
    TcgCpu *t = c->tcg;

    t->block = NULL;
    t->shutdown = false;
    t->shadow_now = false;
    t->db_pending = 0;
    t->irq_waiting = true; /* looked at once */
    t->engine->step = (EngineStep){ 0 };
    t->engine->step_once = false;
    tcg_mmu_resync(c);
    tcg_simd_reset(c);
    atomic_store(&c->base.exit_request, 1);
}

/* ---- The hooks ---- */

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
