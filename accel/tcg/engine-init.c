/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a vCPU's interpreter: made with all its memory, reset, freed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/icount.h"
#include "accel/tcg/jit.h"
#include "qemu/guest-random.h"
#include "qemu/host-memory.h"
#include "qemu/os.h"
#include "qemu/thread.h"

_Atomic uint64_t tcg_block_cache_size = 8 * MiB;

bool tcg_touch_early(void)
{
    return qemu_realtime_is_enabled() || os_memory_locked() == MEM_LOCK_ON;
}

void *tcg_map(size_t size)
{
    size_t whole = ROUND_UP(size, (size_t)sysconf(_SC_PAGESIZE));
    uint8_t *p = host_memory_map(whole, false, -1);

    if (p && tcg_touch_early()) {
        if (!host_memory_touch(p, whole)) {
            tcg_unmap(p, size);
            return NULL;
        }
        host_memory_settle(p, whole);
    }
    return p;
}

void tcg_unmap(void *p, size_t size)
{
    if (p) {
        munmap(p, size);
    }
}

void tcg_no_memory(X86CPU *c, const char *what, size_t size, Error **errp)
{
    error_setg_errno(errp, errno, "cannot allocate %zu KiB for the %s of CPU %u (make its share "
                     "smaller, -accel tcg,tb-size=, give fewer CPUs, -smp, or raise the host's "
                     "limits, 'ulimit -v', 'ulimit -f', and for locked memory 'ulimit -l')", (size + 1023) / 1024, what,
                     c->base.index);
}

uint64_t tcg_engine_bytes(uint64_t cache_size, bool translator, bool pcid)
{
    return sizeof(TcgCpu) + sizeof(TcgEngine) + tcg_blocks_bytes(cache_size) + tcg_mmu_bytes(pcid) +
           tcg_simd_bytes() + (translator ? jit_bytes(cache_size) : 0);
}

bool tcg_engine_init(X86CPU *c, Error **errp)
{
    TcgCpu *t = aligned_alloc(64, ROUND_UP(sizeof(TcgCpu), 64));
    TcgEngine *g = aligned_alloc(64, ROUND_UP(sizeof(TcgEngine), 64));

    if (!t || !g) {
        free(t);
        free(g);
        tcg_no_memory(c, "interpreter", sizeof(TcgCpu) + sizeof(TcgEngine), errp);
        return false;
    }
    memset(t, 0, sizeof(*t));
    memset(g, 0, sizeof(*g));
    t->engine = g;
    c->tcg = t;
    tcg_decode_init(c, g);
    if (!tcg_blocks_init(c, g, tcg_block_cache_size, errp)) {
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
    if (!jit_init(c, errp)) {
        goto fail_simd;
    }
    if (!tcg_count_init(c, errp)) {
        goto fail_jit;
    }
    t->random_fixed = guest_random_seed(c->base.index, &t->random);
    tcg_engine_reset(c);
    return true;
fail_jit:
    tcg_count_fini(c);
    jit_fini(c);
fail_simd:
    tcg_simd_fini(c);
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
    tcg_count_fini(c);
    jit_fini(c);
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
    t->nmi_second = false;
    t->irq_waiting = true; /* looked at once */
    t->engine->step = (EngineStep){ 0 };
    t->engine->step_once = false;
    tcg_mmu_resync(c);
    tcg_simd_reset(c);
    atomic_store(&c->base.exit_request, 1);
}
