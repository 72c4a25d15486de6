/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM where it was not built in: it can be named, and says why it cannot be used. */
#include <stdlib.h>
#include "accel/accel.h"

#ifdef CONFIG_TCG
#define USE_TCG "; use -accel tcg"
#else
#define USE_TCG ""
#endif

static bool none_init(struct QemuOpts *opts, Error **errp)
{
    error_setg(errp, "cannot use KVM: this program was built without it (x86-64 Linux with the "
                     "kernel's headers, and -Dkvm=enabled, are needed)" USE_TCG);
    return false;
}

static bool none_available(void)
{
    return false;
}

/* cpus.c calls nothing else before init has succeeded. */
const AccelOps kvm_accel_ops = {
    .name = "kvm",
    .thread_name = "KVM",
    .init = none_init,
    .available = none_available,
};
