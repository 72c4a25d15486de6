/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to hw/core: properties, and how devices are listed. */
#ifndef HW_CORE_INTERNAL_H
#define HW_CORE_INTERNAL_H

#include "hw/device.h"

const Property *property_find(const DeviceType *type, const char *name);
void property_set_defaults(DeviceState *dev);
void property_free_all(DeviceState *dev);
/* "uint32", "str", ... as in help texts. */
const char *property_kind_name(const Property *p);

#endif
