/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `-accel tcg`: the software CPU as an accelerator. Its loop is in engine.c. */
#include <string.h>
#include "accel/irqchip.h"
#include "accel/tcg/engine-run.h"
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "qemu/option.h"
#include "target/i386/cpuid.h"

void tcg_flush_all(CPUState *cpu)
{
    cpu_request(cpu, CPU_REQ_TLB_FLUSH);
}

static bool tcg_available(void)
{
    return !x86_tcg_host_lacks();
}

/* -accel tcg,tb-size=MiB: for all vCPUs together; 0: not given. */
static uint64_t tcg_cache_size;

/* Each of a few vCPUs gets the default; many share what six would have. given: as tcg_cache_size. */
static uint64_t vcpu_cache_size(uint64_t given, unsigned vcpus)
{
    uint64_t total = given ? given : 6 * BLOCK_CACHE_DEFAULT;
    uint64_t share = total / MAX(vcpus, 1);

    if (!given) {
        share = MIN(share, BLOCK_CACHE_DEFAULT);
    }
    return ROUND_DOWN(MIN(MAX(share, BLOCK_CACHE_MIN), BLOCK_CACHE_MAX), 4096);
}

/* An unknown model is told of later. */
static bool model_has_pcid(const char *model)
{
    uint32_t missing[FEAT_WORDS];
    X86CPUModel m;

    return x86_cpu_model_resolve(model, &m, missing, NULL) && (m.feat[FEAT_1_ECX] & CPUID_1_ECX_PCID);
}

/* The heap's part of a vCPU: registers, histograms, what the C library keeps for a thread. */
#define VCPU_HEAP_BYTES (512 * KiB)

static uint64_t tcg_vcpu_bytes(struct QemuOpts *opts, unsigned vcpus, const char *model)
{
    uint64_t mib = MIN(qemu_opt_get_number(opts, "tb-size", 0), 1024 * 1024);
    bool translator = !qemu_opt_get_bool(opts, "one-insn", false);

    return tcg_engine_bytes(vcpu_cache_size(mib * MiB, vcpus), translator, model_has_pcid(model)) +
           QEMU_THREAD_STACK_SIZE + VCPU_HEAP_BYTES;
}

/* host-without= comes first: it may take away what is needed. */
static bool check_host(struct QemuOpts *opts, Error **errp)
{
    const char *without = qemu_opt_get(opts, "host-without"), *lacks;

    if (without && !x86_tcg_host_without(without, errp)) {
        return false;
    }
    lacks = x86_tcg_host_lacks();
    if (lacks) {
        error_setg(errp, "the software CPU needs a processor with %s, and this host's has none; use a newer "
                         "host", lacks);
    }
    return !lacks;
}

static bool tcg_init(struct QemuOpts *opts, Error **errp)
{
    const char *thread = qemu_opt_get(opts, "thread");
    uint64_t mib = qemu_opt_get_number(opts, "tb-size", 0);

    if (thread && strcmp(thread, "multi") != 0) {
        error_setg(errp, "-accel tcg,thread=%s: every vCPU has a thread of its own here; "
                         "leave it out or say thread=multi", thread);
        return false;
    }
    if (mib > 1024 * 1024) {
        error_setg(errp, "-accel tcg,tb-size=%llu: at most 1048576 MiB",
                   (unsigned long long)mib);
        return false;
    }
    if (!check_host(opts, errp) || !state_log_configure(opts, errp)) {
        return false;
    }
    tcg_cache_size = mib * MiB;
    tcg_jit_enabled = !qemu_opt_get_bool(opts, "one-insn", false);
    tcg_jit_exact_flags = qemu_opt_get_bool(opts, "exact-flags", false);
    x86_cpu_set_backend(&x86_tcg_backend);
    return true;
}

/* Once, for the vCPUs at start: what tb-size= says, and what comes of it where that is something else. */
static void tell_cache_size(unsigned vcpus)
{
    static atomic_bool looked; /* CPUs are made side by side */
    uint64_t least = vcpus * BLOCK_CACHE_MIN, most = vcpus * BLOCK_CACHE_MAX;

    if (!atomic_exchange(&looked, true) && tcg_cache_size &&
        (tcg_cache_size < least || tcg_cache_size > most)) {
        warn_report("-accel tcg,tb-size=%llu: each CPU takes %llu to %llu MiB; using %llu MiB for %u",
                    tcg_cache_size / MiB, BLOCK_CACHE_MIN / MiB, BLOCK_CACHE_MAX / MiB,
                    (tcg_cache_size < least ? least : most) / MiB, vcpus);
    }
}

static bool tcg_vcpu_init(CPUState *cpu, Error **errp)
{
    /* One that is plugged in later is not among them yet. */
    unsigned vcpus = cpu_count() + (cpu_get(cpu->index) != cpu);

    tell_cache_size(vcpus);
    tcg_block_cache_size = vcpu_cache_size(tcg_cache_size, vcpus);
    tcg_jit_cache_size = tcg_block_cache_size;
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
    tcg_count_resumed(x86_cpu(cpu));
    atomic_store(&cpu->exit_request, 1);
}

static int64_t tcg_vcpu_deadline(CPUState *cpu)
{
    if (x86_cpu(cpu)->tcg->counting) {
        return tcg_count_deadline(x86_cpu(cpu));
    }
    return irqchip && irqchip->timer_deadline ? irqchip->timer_deadline(cpu) : INT64_MAX;
}

const AccelOps tcg_accel_ops = {
    .name = "tcg",
    .thread_name = "TCG",
    .init = tcg_init,
    .available = tcg_available,
    .vcpu_bytes = tcg_vcpu_bytes,
    .vcpu_init = tcg_vcpu_init,
    .parallel_init = true,
    .sees_clock_reads = true,
    .vcpu_fini = tcg_vcpu_fini,
    .vcpu_run = tcg_vcpu_run,
    .vcpu_kick = tcg_vcpu_kick,
    .vcpu_reset = tcg_vcpu_reset,
    .regs_get = tcg_regs_get,
    .regs_put = tcg_regs_put,
    .vcpu_deadline = tcg_vcpu_deadline,
};
