/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes of the guest-physical map, A20 among them: every TLB is flushed by its own vCPU. */
#include "accel/accel.h"
#include "accel/tcg/mmu.h"

_Atomic uint64_t mmu_a20_mask = UINT64_MAX;

static void flush_all_cpus(void)
{
    for (unsigned n = 0; n < MAX_CPUS; n++) {
        CPUState *cpu = cpu_get(n);
        if (!cpu) {
            continue;
        }
        /* Others may be in the midst of being made: theirs is not looked at. */
        if (cpu == current_cpu && x86_cpu(cpu)->tcg && x86_cpu(cpu)->tcg->mmu) {
            mmu_flush_everything(x86_cpu(cpu)->tcg->mmu);
        }
        cpu_request(cpu, CPU_REQ_TLB_FLUSH);
    }
}

static void map_changed(MemoryListener *l)
{
    flush_all_cpus();
}

static MemoryListener map_listener = { .commit = map_changed };

void tcg_set_a20(bool on)
{
    uint64_t mask = on ? UINT64_MAX : ~(1ull << 20);

    if (atomic_exchange(&mmu_a20_mask, mask) != mask) {
        flush_all_cpus();
    }
}

bool tcg_get_a20(void)
{
    return atomic_load(&mmu_a20_mask) == UINT64_MAX;
}

void mmu_map_listen(void)
{
    static atomic_flag listening = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&listening)) {
        mem_init();
        map_listener.as = &address_space_memory;
        memory_listener_register(&map_listener);
        ram_dirty_set_flush_hook(flush_all_cpus);
    }
}
