/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which interrupt chip is in force. */
#include "accel/accel.h"
#include "accel/irqchip.h"

const IrqChipOps *irqchip;
KernelIrqchip kernel_irqchip = KERNEL_IRQCHIP_ON;
