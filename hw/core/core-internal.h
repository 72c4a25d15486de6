/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to hw/core: properties, and how devices are listed. */
#ifndef HW_CORE_INTERNAL_H
#define HW_CORE_INTERNAL_H

#include "hw/device.h"

void property_set_defaults(DeviceState *dev);
void property_free_all(DeviceState *dev);

/* What -global says of its type. */
void device_apply_globals(DeviceState *dev);

#endif
