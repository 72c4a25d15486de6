/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP's info commands about what the guest's hardware is doing: PCI, interrupt chips, the tree. */
#include <glib.h>
#include <inttypes.h>
#include <string.h>
#include "hw/intc.h"
#include "hw/machine.h"
#include "hw/pci.h"
#include "monitor/internal.h"
#include "qapi/qapi.h"

/* ---- info pci ---- */

static const char *class_name(uint16_t class)
{
    static const struct {
        uint16_t class;
        const char *name;
    } names[] = {
        { 0x0100, "SCSI controller" }, { 0x0101, "IDE controller" }, { 0x0180, "Storage controller" },
        { 0x0200, "Ethernet controller" }, { 0x0300, "VGA controller" }, { 0x0600, "Host bridge" },
        { 0x0601, "ISA bridge" }, { 0x0604, "PCI bridge" }, { 0x0680, "Bridge" },
        { 0x0c03, "USB controller" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (names[i].class == class) {
            return names[i].name;
        }
    }
    return NULL;
}

static void print_bar(Monitor *mon, unsigned n, const PCIBar *b)
{
    bool io = b->type & PCI_BAR_IO;

    monitor_printf(mon, n == PCI_ROM_SLOT ? "      ROM:" : "      BAR%u:", n);
    monitor_printf(mon, " %s%s", io ? "I/O" : b->type & PCI_BAR_MEM64 ? "64 bit" : "32 bit",
                   io ? "" : b->type & PCI_BAR_PREFETCH ? " prefetchable memory" : " memory");
    if (b->addr == PCI_BAR_UNMAPPED) {
        monitor_printf(mon, " of 0x%llx bytes, not mapped.\n", (unsigned long long)b->size);
    } else {
        monitor_printf(mon, " at 0x%08llx [0x%08llx].\n", (unsigned long long)b->addr,
                       (unsigned long long)(b->addr + b->size - 1));
    }
}

static void print_function(Monitor *mon, const PCIBus *bus, PCIDevice *pd)
{
    uint8_t c[PCI_HEADER_END];
    PCIBar bar[ARRAY_SIZE(pd->bar)];
    const char *name;

    /* Copied, so that a guest that configures the device waits no longer than that. */
    qemu_mutex_lock(&pd->config_lock);
    memcpy(c, pd->config, sizeof(c));
    memcpy(bar, pd->bar, sizeof(bar));
    qemu_mutex_unlock(&pd->config_lock);

    uint16_t class = pci_get_word(c + PCI_CLASS_DEVICE);
    name = class_name(class);
    monitor_printf(mon, "  Bus %2u, device %3u, function %u:\n    ", bus->number, pd->devfn >> 3,
                   pd->devfn & 7);
    if (name) {
        monitor_puts(mon, name);
    } else {
        monitor_printf(mon, "Class %04x", class);
    }
    monitor_printf(mon, ": PCI device %04x:%04x (%s)\n", pci_get_word(c + PCI_VENDOR_ID),
                   pci_get_word(c + PCI_DEVICE_ID), pd->dev.type->name);
    if (pci_get_word(c + PCI_SUBSYSTEM_VENDOR_ID)) {
        monitor_printf(mon, "      PCI subsystem %04x:%04x\n",
                       pci_get_word(c + PCI_SUBSYSTEM_VENDOR_ID), pci_get_word(c + PCI_SUBSYSTEM_ID));
    }
    if (c[PCI_INTERRUPT_PIN]) {
        monitor_printf(mon, "      IRQ %u, pin %c\n", c[PCI_INTERRUPT_LINE],
                       'A' + c[PCI_INTERRUPT_PIN] - 1);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bar); i++) {
        if (bar[i].mr) {
            print_bar(mon, i, &bar[i]);
        }
    }
    monitor_printf(mon, "      id \"%s\"\n", pd->dev.id ? pd->dev.id : "");
}

static void print_pci_bus(Bus *bus, void *opaque)
{
    if (strcmp(bus->kind, "pci") == 0) {
        PCIBus *pci = (PCIBus *)bus;

        for (unsigned devfn = 0; devfn < ARRAY_SIZE(pci->devices); devfn++) {
            PCIDevice *pd = pci_find_device(pci, (uint8_t)devfn);

            if (pd) {
                print_function(opaque, pci, pd);
            }
        }
    }
}

void hmp_info_pci(Monitor *mon, const char *args)
{
    bus_foreach(print_pci_bus, mon);
}

/* ---- Interrupt chips ---- */

static const char in_kernel[] = "is in the host's kernel; -machine kernel-irqchip=off has it here";

void hmp_info_pic(Monitor *mon, const char *args)
{
    char text[4096];

    if (pic_describe(text, sizeof(text))) {
        monitor_puts(mon, text);
    } else {
        monitor_printf(mon, "pic: none in this machine, or it %s\n", in_kernel);
    }
    if (ioapic_describe(text, sizeof(text))) {
        monitor_puts(mon, text);
    } else {
        monitor_printf(mon, "ioapic: none in this machine, or it %s\n", in_kernel);
    }
}

static void print_counts(Monitor *mon, const char *chip, const uint64_t *raised, unsigned lines)
{
    monitor_printf(mon, "IRQ statistics for %s:\n", chip);
    for (unsigned i = 0; i < lines; i++) {
        if (raised[i]) {
            monitor_printf(mon, "%2u: %" PRIu64 "\n", i, raised[i]);
        }
    }
}

/* In QEMU's form. Chips in the kernel count for themselves, in nobody's sight. */
void hmp_info_irq(Monitor *mon, const char *args)
{
    uint64_t raised[MAX(IOAPIC_PINS, PIC_LINES)];

    if (ioapic_counts(raised)) {
        print_counts(mon, "ioapic", raised, IOAPIC_PINS);
    }
    if (pic_counts(raised)) {
        print_counts(mon, "isa-i8259", raised, PIC_LINES);
    }
}

/* ---- info roms ---- */

static void print_blob(void *opaque, uint64_t addr, uint64_t size, bool rom, const char *name)
{
    monitor_printf(opaque, "addr=%016" PRIx64 " size=0x%06" PRIx64 " mem=%s name=\"%s\"\n", addr, size,
                   rom ? "rom" : "ram", name);
}

void hmp_info_roms(Monitor *mon, const char *args)
{
    if (current_machine->blobs) {
        current_machine->blobs(print_blob, mon);
    }
}

typedef struct LapicText {
    char text[8192];
} LapicText;

static void describe_lapic(CPUState *cpu, void *opaque)
{
    LapicText *t = opaque;

    apic_describe(cpu, t->text, sizeof(t->text));
}

void hmp_info_lapic(Monitor *mon, const char *args)
{
    CPUState *cpu = mon->cpu_index >= 0 ? cpu_get((unsigned)mon->cpu_index) : NULL;

    if (*args) {
        char *end;
        gint64 n = g_ascii_strtoll(args, &end, 10);
        cpu = n >= 0 && n < MAX_CPUS && !*end ? cpu_get((unsigned)n) : NULL;
    }
    if (!cpu) {
        monitor_printf(mon, "Error: '%s' is not the number of a CPU\n", args);
    } else if (!cpu->irqchip) {
        monitor_printf(mon, "The local APIC %s\n", in_kernel);
    } else {
        LapicText *t = g_new0(LapicText, 1);

        run_on_cpu(cpu, describe_lapic, t); /* on its own thread, out of guest code */
        monitor_puts(mon, t->text);
        g_free(t);
    }
}

/* ---- info qom-tree ---- */

static void print_tree(Monitor *mon, const char *path, const char *name, const char *type, unsigned depth)
{
    Error *err = NULL;
    QapiObjectPropertyInfoArray *a = qmp_qom_list(path, &err);

    if (err) {
        monitor_printf(mon, "Error: %s\n", error_get_pretty(err));
        error_free(err);
    } else {
        monitor_printf(mon, "%*s/%s", (int)depth * 2, "", name);
        if (type) { /* as its parent told: "child<TYPE>" */
            monitor_printf(mon, " (%.*s)", (int)strcspn(type, ">"), type);
        }
        monitor_puts(mon, "\n");
    }
    for (size_t i = 0; i < a->len; i++) {
        const char *child = a->items[i]->type;

        if (g_str_has_prefix(child, "child<")) {
            g_autofree char *sub = g_strdup_printf("%s/%s", strcmp(path, "/") ? path : "",
                                                   a->items[i]->name);
            print_tree(mon, sub, a->items[i]->name, child + strlen("child<"), depth + 1);
        }
    }
    qapi_free_object_property_info_array(a);
}

void hmp_info_qom_tree(Monitor *mon, const char *args)
{
    const char *path = *args ? args : "/machine";
    const char *slash = strrchr(path, '/');

    print_tree(mon, path, slash ? slash + 1 : path, NULL, 0);
}

/* ---- info ---- */

void hmp_info(Monitor *mon, const char *args)
{
    if (*args) {
        g_autofree char *line = g_strconcat("info ", args, NULL);
        hmp_unknown(mon, line, "info");
        return;
    }
    for (const HmpCommand *c = hmp_commands; c->name; c++) {
        if (g_str_has_prefix(c->name, "info ")) {
            monitor_printf(mon, "%s%s%s -- %s\n", c->name, *c->args ? " " : "", c->args, c->help);
        }
    }
}
