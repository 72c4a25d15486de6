/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks state descriptions (hw/device.h). The format here is a flat, self-describing buffer: each
 * field carries name, kind, count and bytes (little endian), so that a load tells what does not
 * fit. Migration wraps it.
 */
#ifndef HW_VMSTATE_H
#define HW_VMSTATE_H

#include "hw/device.h"

/* All HELPER_ONLY, machine stopped. Appends opaque's state to *buf (g_malloc'd, may be NULL). */
/* *len is ignored while *buf is NULL. */
void vmstate_save(const VMState *vms, void *opaque, uint8_t **buf, size_t *len);
/*
 * Loads what vmstate_save() wrote. Everything is checked against the description before the first
 * byte of opaque changes, nested structures included. *used (optional): bytes consumed.
 */
bool vmstate_load(const VMState *vms, void *opaque, const uint8_t *buf, size_t len, size_t *used,
                  Error **errp);
/* All realized devices with a state description, in order of creation. */
void device_save_all(uint8_t **buf, size_t *len);
bool device_load_all(const uint8_t *buf, size_t len, Error **errp);

#endif
