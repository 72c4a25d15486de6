/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The firmware configuration device: items by number and files by name, read by firmware and
 * kernels through ports 510h..51bh. The interface is that of QEMU's "fw_cfg" as
 * firmware (SeaBIOS, OVMF, Linux's qemu_fw_cfg driver) uses it.
 */
#ifndef HW_FW_CFG_H
#define HW_FW_CFG_H

#include "hw/device.h"

/* Selector keys. */
enum {
    FW_CFG_SIGNATURE = 0x00, FW_CFG_ID = 0x01, FW_CFG_UUID = 0x02, FW_CFG_RAM_SIZE = 0x03,
    FW_CFG_NOGRAPHIC = 0x04, FW_CFG_NB_CPUS = 0x05, FW_CFG_MACHINE_ID = 0x06,
    FW_CFG_KERNEL_ADDR = 0x07, FW_CFG_KERNEL_SIZE = 0x08, FW_CFG_KERNEL_CMDLINE = 0x09,
    FW_CFG_INITRD_ADDR = 0x0a, FW_CFG_INITRD_SIZE = 0x0b, FW_CFG_BOOT_DEVICE = 0x0c,
    FW_CFG_NUMA = 0x0d, FW_CFG_BOOT_MENU = 0x0e, FW_CFG_MAX_CPUS = 0x0f,
    FW_CFG_KERNEL_ENTRY = 0x10, FW_CFG_KERNEL_DATA = 0x11, FW_CFG_INITRD_DATA = 0x12,
    FW_CFG_CMDLINE_ADDR = 0x13, FW_CFG_CMDLINE_SIZE = 0x14, FW_CFG_CMDLINE_DATA = 0x15,
    FW_CFG_SETUP_ADDR = 0x16, FW_CFG_SETUP_SIZE = 0x17, FW_CFG_SETUP_DATA = 0x18,
    FW_CFG_FILE_DIR = 0x19,
    FW_CFG_FILE_FIRST = 0x20,
    FW_CFG_FILE_SLOTS = 0x80,
    FW_CFG_WRITE_CHANNEL = 0x4000, /* once for writes; ignored */
    FW_CFG_ARCH_LOCAL = 0x8000,
    FW_CFG_ACPI_TABLES = FW_CFG_ARCH_LOCAL + 0, FW_CFG_SMBIOS_ENTRIES = FW_CFG_ARCH_LOCAL + 1,
    FW_CFG_IRQ0_OVERRIDE = FW_CFG_ARCH_LOCAL + 2, FW_CFG_E820_TABLE = FW_CFG_ARCH_LOCAL + 3,
    FW_CFG_HPET = FW_CFG_ARCH_LOCAL + 4,
};

#define FW_CFG_MAX_FILE_PATH 56 /* with the final NUL */

/* DMA control word (big endian in guest memory). */
#define FW_CFG_DMA_ERROR  0x01u
#define FW_CFG_DMA_READ   0x02u
#define FW_CFG_DMA_SKIP   0x04u
#define FW_CFG_DMA_SELECT 0x08u
#define FW_CFG_DMA_WRITE  0x10u

/*
 * All: start-up, after the device "fw_cfg" is realized and before the guest runs. Data is copied.
 * A key or name must not be added twice (that is a bug of the caller and asserted).
 */
void fw_cfg_add_bytes(DeviceState *fw, uint16_t key, const void *data, size_t len);
/* Not copied: data lives as long as the machine. */
void fw_cfg_add_borrowed(DeviceState *fw, uint16_t key, const void *data, size_t len);
void fw_cfg_add_string(DeviceState *fw, uint16_t key, const char *value); /* with its NUL */
void fw_cfg_add_i16(DeviceState *fw, uint16_t key, uint16_t value);       /* little endian */
void fw_cfg_add_i32(DeviceState *fw, uint16_t key, uint32_t value);
void fw_cfg_add_i64(DeviceState *fw, uint16_t key, uint64_t value);
/* False + errp: name too long or taken, or no slot left. */
bool fw_cfg_add_file(DeviceState *fw, const char *name, const void *data, size_t len,
                     Error **errp);
/*
 * HELPER_ONLY, also while the guest runs. Other bytes in an item that was copied: len of them at
 * offset, which must lie in it. Name: of a file. An item that is not there is left alone.
 */
void fw_cfg_patch(DeviceState *fw, uint16_t key, size_t offset, const void *data, size_t len);
void fw_cfg_patch_file(DeviceState *fw, const char *name, size_t offset, const void *data, size_t len);
/* What -fw_cfg names, after the board's own. Messages name the option. */
bool fw_cfg_add_options(DeviceState *fw, Error **errp);
/* Item as it stands, for tests and the monitor; NULL if there is none. */
const void *fw_cfg_get(DeviceState *fw, uint16_t key, size_t *len);
const void *fw_cfg_get_file(DeviceState *fw, const char *name, size_t *len);

#endif
