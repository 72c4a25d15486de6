/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The software CPU where it was not built in: it can be named, and says why it cannot be used. */
#include "accel/accel.h"
#include "accel/jit-stats.h"

#ifdef CONFIG_KVM
#define OR_KVM ", or use -accel kvm"
#else
#define OR_KVM ""
#endif

AccelIcount accel_icount;
void (*tcg_ferr_hook)(struct X86CPU *cpu, bool level);

static bool none_init(struct QemuOpts *opts, Error **errp)
{
#ifdef CONFIG_HOST_X86_64
    error_setg(errp, "this program was built without the software CPU (-Dtcg=disabled); build it with "
                     "-Dtcg=enabled" OR_KVM);
#else
    error_setg(errp, "the software CPU runs on x86-64 hosts only; this is %s; only -accel qtest, which "
                     "runs no guest code, can be used", CONFIG_HOST_CPU);
#endif
    return false;
}

static bool none_available(void)
{
    return false;
}

/* cpus.c calls nothing else before init has succeeded. */
const AccelOps tcg_accel_ops = {
    .name = "tcg",
    .thread_name = "TCG",
    .init = none_init,
    .available = none_available,
};

/* ---- What devices and monitors call: no CPU is affected ---- */

static bool a20 = true;

void tcg_set_a20(bool on)
{
    a20 = on;
}

bool tcg_get_a20(void)
{
    return a20;
}

bool tcg_jit_stats(CPUState *cpu, JitStats *s)
{
    return false;
}
