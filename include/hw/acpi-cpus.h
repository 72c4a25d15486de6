/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers by which ACPI code learns of vCPUs that come while the machine runs. */
#ifndef HW_ACPI_CPUS_H
#define HW_ACPI_CPUS_H

#include "hw/device.h"

#define ACPI_CPUS_IO     0xaf00 /* as in ssdt-cpus.asl */
#define ACPI_CPUS_IO_LEN 12
#define ACPI_CPUS_GPE    2

typedef struct AcpiCpusSetup {
    unsigned count; /* places of vCPUs, 0..count-1 */
    unsigned fixed; /* those below are there for good */
    uint32_t (*apic_id)(unsigned cpu);
    DeviceState *pm; /* whose GPE tells the guest to look */
    /* RT_SAFE, on the vCPU that asks, the device's lock held: the guest is done with that one. */
    void (*eject)(unsigned cpu);
    /* The same way: what the guest reports of that place. */
    void (*ost)(unsigned cpu, uint32_t source, uint32_t status);
} AcpiCpusSetup;

/* Start-up, before device_realize() of "acpi-cpus". setup is copied. */
void acpi_cpus_setup(DeviceState *dev, const AcpiCpusSetup *setup);
/* RT_SAFE. There is a vCPU in this place; hot: the guest is told. */
void acpi_cpus_plug(DeviceState *dev, unsigned cpu, bool hot);
/* RT_SAFE. Asks the guest to give that one back. It may never do; a reset ends the request. */
void acpi_cpus_unplug_request(DeviceState *dev, unsigned cpu);

#endif
