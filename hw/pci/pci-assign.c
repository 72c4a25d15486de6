/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What firmware does for PCI functions, for kernels that are started without one: addresses for
 * BARs, interrupt lines, decoding enabled.
 */
#include "hw/pci.h"

typedef struct Assign {
    PCIBus *bus;
    uint64_t mem, mem_limit, io, io_limit;
    uint8_t (*irq_of)(uint8_t devfn, unsigned pin);
    bool ok;
} Assign;

static bool take(uint64_t *next, uint64_t limit, uint64_t size, uint64_t *addr)
{
    uint64_t a = ROUND_UP(*next, size);
    if (a < *next || a > limit || size > limit - a) {
        return false;
    }
    *addr = a;
    *next = a + size;
    return true;
}

static void assign_bar(Assign *s, PCIDevice *pd, unsigned n, uint16_t *enable)
{
    const PCIBar *bar = &pd->bar[n];
    bool io = bar->type & PCI_BAR_IO;
    unsigned reg = PCI_BASE_ADDRESS_0 + 4 * n;
    uint64_t addr;
    if (io ? !take(&s->io, s->io_limit, bar->size, &addr)
           : !take(&s->mem, s->mem_limit, bar->size, &addr)) {
        s->ok = false;
        return;
    }
    pci_config_write(s->bus, pd->devfn, reg, (uint32_t)addr, 4);
    if (!io && bar->type & PCI_BAR_MEM64) {
        pci_config_write(s->bus, pd->devfn, reg + 4, (uint32_t)(addr >> 32), 4);
    }
    *enable |= io ? PCI_COMMAND_IO : PCI_COMMAND_MEMORY;
}

static void assign_device(Assign *s, PCIDevice *pd)
{
    uint16_t enable = 0;
    uint8_t pin = pd->config[PCI_INTERRUPT_PIN];
    for (unsigned n = 0; n < PCI_BARS; n++) {
        if (pd->bar[n].mr) {
            assign_bar(s, pd, n, &enable);
        }
    }
    if (pin) {
        pci_config_write(s->bus, pd->devfn, PCI_INTERRUPT_LINE, s->irq_of(pd->devfn, pin - 1u), 1);
    }
    if (enable) {
        uint32_t cmd = pci_config_read(s->bus, pd->devfn, PCI_COMMAND, 2);
        pci_config_write(s->bus, pd->devfn, PCI_COMMAND, cmd | enable, 2);
    }
}

bool pci_assign_resources(PCIBus *bus, uint64_t mem_base, uint64_t mem_limit, uint32_t io_base,
                          uint32_t io_limit, uint8_t (*irq_of)(uint8_t devfn, unsigned pin))
{
    Assign s = { .bus = bus, .mem = mem_base, .mem_limit = mem_limit, .io = io_base,
                 .io_limit = io_limit, .irq_of = irq_of, .ok = true };
    for (unsigned devfn = 0; devfn < PCI_SLOTS * PCI_FUNCS; devfn++) {
        PCIDevice *pd = pci_find_device(bus, (uint8_t)devfn);
        if (pd) {
            assign_device(&s, pd);
        }
    }
    return s.ok;
}
