/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What boards, accelerators and the command line say about each other's interrupt chips. */
#include "accel/accel.h"
#include "accel/irqchip.h"

const IrqChipOps *irqchip;
const AccelIrqchip *accel_irqchip;
KernelIrqchip kernel_irqchip = KERNEL_IRQCHIP_ON;
bool accel_pit = true;
bool accel_cpu_pm;
