/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Board "none": nothing but RAM at 0, for programs that ask the emulator about itself. */
#include "qemu/config.h"
#include "hw/machine.h"
#include "memory/memory.h"

static MemoryRegion none_ram;

static bool none_init(const MachineConfig *cfg, Error **errp)
{
    if (cfg->kernel) {
        error_setg(errp, "-kernel '%s': machine 'none' boots no kernel", cfg->kernel);
        return false;
    }
    if (cfg->bios) {
        error_setg(errp, "-bios '%s': machine 'none' has no firmware", cfg->bios);
        return false;
    }
    if (qemu_find_opts("fw_cfg", &error_abort)->first) {
        error_setg(errp, "-fw_cfg: machine 'none' has no device to show it; leave it out");
        return false;
    }
    if (cfg->ram_size) {
        uint32_t flags = cfg->ram_merge ? RAM_MERGEABLE : 0;
        RAMBlock *rb = cfg->ram ? cfg->ram : ram_block_new("ram", cfg->ram_size, flags, -1, errp);
        if (!rb) {
            return false;
        }
        memory_region_init_ram(&none_ram, rb, "ram");
        memory_region_add_subregion(memory_root(), 0, &none_ram, 0);
    }
    return true;
}

const MachineType machine_none = {
    .name = "none",
    .desc = "empty machine",
    .max_cpus = 1,
    .default_ram_id = "ram",
    .default_ram_size = 0,
    .init = none_init,
};
