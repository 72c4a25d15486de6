/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Firmware configuration device (hw/fw_cfg.h). Ports: 510h selector (16 bits, write), 511h data
 * (8 bits, read), 514h DMA address (64 bits, big endian, as two halves: the low one starts the
 * transfer). Items never change once the guest runs; only the selector and the offset do.
 */
#include <glib.h>
#include <string.h>
#include "hw/fw_cfg.h"
#include "memory/memory.h"

#define FW_CFG_PORT_BASE   0x510
#define FW_CFG_DMA_OFFSET  4
#define FW_CFG_ITEMS       (FW_CFG_FILE_FIRST + FW_CFG_FILE_SLOTS)
#define FW_CFG_VERSION     0x01u
#define FW_CFG_VERSION_DMA 0x02u
#define FW_CFG_DIR_ENTRY   64
#define FW_CFG_INVALID     0xffffu
#define FW_CFG_DMA_SIG     0x51454d5520434647ull /* "QEMU CFG" */

typedef struct FwItem {
    const void *data;
    uint32_t len;
    bool present;
} FwItem;

typedef struct FwCfgState {
    DeviceState dev;
    bool dma_enabled;

    MemoryRegion ctl_mr, dma_mr;
    FwItem items[2][FW_CFG_ITEMS]; /* [1]: with FW_CFG_ARCH_LOCAL */
    char *names[FW_CFG_FILE_SLOTS];
    unsigned files;
    uint8_t *directory; /* item FW_CFG_FILE_DIR */

    /* lock guards what follows. */
    QemuMutex lock;
    uint16_t cur_key; /* FW_CFG_INVALID: no such item */
    uint32_t cur_offset;
    uint64_t dma_addr;
} FwCfgState;

static FwCfgState *fw_cfg(DeviceState *dev)
{
    return container_of(dev, FwCfgState, dev);
}

static FwItem *item_slot(FwCfgState *s, uint16_t key)
{
    unsigned n = key & (FW_CFG_WRITE_CHANNEL - 1);
    return n < FW_CFG_ITEMS ? &s->items[!!(key & FW_CFG_ARCH_LOCAL)][n] : NULL;
}

/* ---- What the guest does ---- */

/* lock held. */
static void fw_cfg_select(FwCfgState *s, uint16_t key)
{
    const FwItem *it;
    key &= (uint16_t)~FW_CFG_WRITE_CHANNEL;
    it = item_slot(s, key);
    s->cur_key = it && it->present ? key : FW_CFG_INVALID;
    s->cur_offset = 0;
}

/* lock held. Bytes left of the selected item, and where they are. */
static uint32_t current_rest(FwCfgState *s, const uint8_t **p)
{
    const FwItem *it = s->cur_key == FW_CFG_INVALID ? NULL : item_slot(s, s->cur_key);
    if (!it || s->cur_offset >= it->len) {
        return 0;
    }
    *p = (const uint8_t *)it->data + s->cur_offset;
    return it->len - s->cur_offset;
}

/* Past the end reads give zeros. */
static uint64_t ctl_read(void *opaque, hwaddr off, unsigned size)
{
    FwCfgState *s = opaque;
    const uint8_t *p = NULL;
    uint8_t v;
    if (off != 1) {
        return UINT64_MAX; /* the selector is write-only */
    }
    QEMU_LOCK_GUARD(&s->lock);
    if (current_rest(s, &p) == 0) {
        return 0;
    }
    v = *p;
    s->cur_offset++;
    return v;
}

static void ctl_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    FwCfgState *s = opaque;
    if (off == 0 && size == 2) {
        QEMU_LOCK_GUARD(&s->lock);
        fw_cfg_select(s, (uint16_t)v);
    }
}

/*
 * Copies len bytes (src NULL: zeros) to or from guest RAM. Anything else than RAM is refused: it
 * would run another device's handler under our lock.
 */
static bool dma_to_ram(uint64_t addr, const uint8_t *src, uint64_t len)
{
    while (len) {
        uint64_t n = len, rb_off;
        RAMBlock *rb;
        void *host = address_space_map_ram(&address_space_memory, addr, &n, true, &rb, &rb_off);
        if (!host || n == 0) {
            return false;
        }
        if (src) {
            memcpy(host, src, n);
            src += n;
        } else {
            memset(host, 0, n);
        }
        ram_block_written(rb, rb_off, n);
        if (addr + n < addr && len > n) {
            return false;
        }
        addr += n;
        len -= n;
    }
    return true;
}

static bool dma_from_ram(uint64_t addr, void *dst, uint64_t len)
{
    uint64_t n = len, rb_off;
    RAMBlock *rb;
    const void *host = address_space_map_ram(&address_space_memory, addr, &n, false, &rb, &rb_off);
    if (!host || n < len) {
        return false;
    }
    memcpy(dst, host, len);
    return true;
}

/* lock held. False: the error bit is to be set. */
static bool dma_execute(FwCfgState *s, uint32_t control, uint32_t length, uint64_t address)
{
    const uint8_t *p = NULL;
    uint32_t rest;
    if (control & FW_CFG_DMA_SELECT) {
        fw_cfg_select(s, (uint16_t)(control >> 16));
    }
    if (control & FW_CFG_DMA_WRITE && !(control & FW_CFG_DMA_READ)) {
        return false; /* no item here may be written */
    }
    if (!(control & (FW_CFG_DMA_READ | FW_CFG_DMA_SKIP))) {
        return true;
    }
    rest = MIN(current_rest(s, &p), length);
    if (control & FW_CFG_DMA_READ) {
        if (address + length < address ||
            !dma_to_ram(address, p, rest) || !dma_to_ram(address + rest, NULL, length - rest)) {
            return false;
        }
    }
    s->cur_offset += rest;
    return true;
}

static void dma_start(FwCfgState *s, uint64_t addr)
{
    struct QEMU_PACKED {
        uint32_t control, length;
        uint64_t address;
    } d;
    uint32_t result;
    memory_read_lock();
    if (dma_from_ram(addr, &d, sizeof(d))) {
        qemu_mutex_lock(&s->lock);
        bool ok = dma_execute(s, GUINT32_FROM_BE(d.control), GUINT32_FROM_BE(d.length),
                              GUINT64_FROM_BE(d.address));
        qemu_mutex_unlock(&s->lock);
        result = GUINT32_TO_BE(ok ? 0 : FW_CFG_DMA_ERROR);
        dma_to_ram(addr, (const uint8_t *)&result, sizeof(result));
    }
    memory_read_unlock();
}

static uint64_t dma_read(void *opaque, hwaddr off, unsigned size)
{
    /* Big endian: the byte at the lowest port is the most significant. */
    uint64_t v = FW_CFG_DMA_SIG << (8 * off) >> (64 - 8 * size);
    switch (size) {
    case 2:
        return GUINT16_SWAP_LE_BE((uint16_t)v);
    case 4:
        return GUINT32_SWAP_LE_BE((uint32_t)v);
    case 8:
        return GUINT64_SWAP_LE_BE(v);
    default:
        return v;
    }
}

static void dma_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    FwCfgState *s = opaque;
    uint64_t addr;
    if (size == 8) {
        dma_start(s, GUINT64_SWAP_LE_BE(v));
        return;
    }
    if (size != 4) {
        return;
    }
    qemu_mutex_lock(&s->lock);
    if (off == 0) {
        s->dma_addr = (uint64_t)GUINT32_SWAP_LE_BE((uint32_t)v) << 32;
        qemu_mutex_unlock(&s->lock);
        return;
    }
    addr = s->dma_addr | GUINT32_SWAP_LE_BE((uint32_t)v);
    s->dma_addr = 0;
    qemu_mutex_unlock(&s->lock);
    dma_start(s, addr);
}

static const MemoryRegionOps ctl_ops = {
    .read = ctl_read, .write = ctl_write, .valid_max = 2, .impl_max = 2,
};
static const MemoryRegionOps dma_ops = {
    .read = dma_read, .write = dma_write, .valid_max = 8, .impl_max = 8,
};

/* ---- Items ---- */

void fw_cfg_add_borrowed(DeviceState *fw, uint16_t key, const void *data, size_t len)
{
    FwItem *it = item_slot(fw_cfg(fw), key);
    g_assert(it && !it->present && len <= UINT32_MAX);
    *it = (FwItem){ .data = data, .len = (uint32_t)len, .present = true };
}

void fw_cfg_add_bytes(DeviceState *fw, uint16_t key, const void *data, size_t len)
{
    fw_cfg_add_borrowed(fw, key, g_memdup2(data, len), len);
}

void fw_cfg_add_string(DeviceState *fw, uint16_t key, const char *value)
{
    fw_cfg_add_bytes(fw, key, value, strlen(value) + 1);
}

void fw_cfg_add_i16(DeviceState *fw, uint16_t key, uint16_t value)
{
    value = GUINT16_TO_LE(value);
    fw_cfg_add_bytes(fw, key, &value, sizeof(value));
}

void fw_cfg_add_i32(DeviceState *fw, uint16_t key, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    fw_cfg_add_bytes(fw, key, &value, sizeof(value));
}

void fw_cfg_add_i64(DeviceState *fw, uint16_t key, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    fw_cfg_add_bytes(fw, key, &value, sizeof(value));
}

/* The directory: count, then { size, select, reserved, name[56] }, numbers big endian. */
static void rebuild_directory(FwCfgState *s)
{
    size_t len = 4 + (size_t)s->files * FW_CFG_DIR_ENTRY;
    uint8_t *dir = g_malloc0(len);
    uint32_t be = GUINT32_TO_BE(s->files);
    memcpy(dir, &be, 4);
    for (unsigned i = 0; i < s->files; i++) {
        uint8_t *e = dir + 4 + i * FW_CFG_DIR_ENTRY;
        uint32_t size = GUINT32_TO_BE(s->items[0][FW_CFG_FILE_FIRST + i].len);
        uint16_t select = GUINT16_TO_BE((uint16_t)(FW_CFG_FILE_FIRST + i));
        memcpy(e, &size, 4);
        memcpy(e + 4, &select, 2);
        g_strlcpy((char *)e + 8, s->names[i], FW_CFG_MAX_FILE_PATH);
    }
    g_free(s->directory);
    s->directory = dir;
    s->items[0][FW_CFG_FILE_DIR] =
        (FwItem){ .data = dir, .len = (uint32_t)len, .present = true };
}

bool fw_cfg_add_file(DeviceState *fw, const char *name, const void *data, size_t len, Error **errp)
{
    FwCfgState *s = fw_cfg(fw);
    unsigned at = 0;
    if (strlen(name) >= FW_CFG_MAX_FILE_PATH) {
        error_setg(errp, "fw_cfg file name '%s' is longer than %d bytes", name,
                   FW_CFG_MAX_FILE_PATH - 1);
        return false;
    }
    if (s->files == FW_CFG_FILE_SLOTS) {
        error_setg(errp, "fw_cfg file '%s': all %d file slots are in use", name,
                   FW_CFG_FILE_SLOTS);
        return false;
    }
    /* Sorted by name, so that keys do not depend on the order in which devices add files. */
    while (at < s->files && strcmp(s->names[at], name) < 0) {
        at++;
    }
    if (at < s->files && strcmp(s->names[at], name) == 0) {
        error_setg(errp, "fw_cfg file '%s' exists already", name);
        return false;
    }
    FwItem *first = &s->items[0][FW_CFG_FILE_FIRST];
    memmove(&s->names[at + 1], &s->names[at], (s->files - at) * sizeof(s->names[0]));
    memmove(&first[at + 1], &first[at], (s->files - at) * sizeof(first[0]));
    s->names[at] = g_strdup(name);
    first[at] = (FwItem){ .data = g_memdup2(data, len), .len = (uint32_t)len, .present = true };
    s->files++;
    rebuild_directory(s);
    return true;
}

const void *fw_cfg_get(DeviceState *fw, uint16_t key, size_t *len)
{
    const FwItem *it = item_slot(fw_cfg(fw), key);
    if (!it || !it->present) {
        return NULL;
    }
    *len = it->len;
    return it->data;
}

/* FW_CFG_INVALID: no such file. */
static uint16_t file_key(const FwCfgState *s, const char *name)
{
    for (unsigned i = 0; i < s->files; i++) {
        if (strcmp(s->names[i], name) == 0) {
            return (uint16_t)(FW_CFG_FILE_FIRST + i);
        }
    }
    return FW_CFG_INVALID;
}

const void *fw_cfg_get_file(DeviceState *fw, const char *name, size_t *len)
{
    uint16_t key = file_key(fw_cfg(fw), name);
    return key == FW_CFG_INVALID ? NULL : fw_cfg_get(fw, key, len);
}

void fw_cfg_patch(DeviceState *fw, uint16_t key, size_t offset, const void *data, size_t len)
{
    FwCfgState *s = fw_cfg(fw);
    const FwItem *it = item_slot(s, key);
    QEMU_LOCK_GUARD(&s->lock);
    if (it && it->present) {
        g_assert(offset <= it->len && len <= it->len - offset);
        memcpy((uint8_t *)it->data + offset, data, len);
    }
}

void fw_cfg_patch_file(DeviceState *fw, const char *name, size_t offset, const void *data, size_t len)
{
    uint16_t key = file_key(fw_cfg(fw), name);
    if (key != FW_CFG_INVALID) {
        fw_cfg_patch(fw, key, offset, data, len);
    }
}

/* ---- Device ---- */

static void fw_cfg_reset(DeviceState *dev)
{
    FwCfgState *s = fw_cfg(dev);
    QEMU_LOCK_GUARD(&s->lock);
    fw_cfg_select(s, FW_CFG_SIGNATURE);
    s->dma_addr = 0;
}

static bool fw_cfg_realize(DeviceState *dev, Error **errp)
{
    FwCfgState *s = fw_cfg(dev);
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE, "fw_cfg");
    fw_cfg_add_bytes(dev, FW_CFG_SIGNATURE, "QEMU", 4);
    fw_cfg_add_i32(dev, FW_CFG_ID, FW_CFG_VERSION | (s->dma_enabled ? FW_CFG_VERSION_DMA : 0));
    rebuild_directory(s);
    memory_region_init_io(&s->ctl_mr, &ctl_ops, s, "fwcfg", 2);
    memory_region_add_subregion(io_root(), FW_CFG_PORT_BASE, &s->ctl_mr, 0);
    if (s->dma_enabled) {
        memory_region_init_io(&s->dma_mr, &dma_ops, s, "fwcfg.dma", 8);
        memory_region_add_subregion(io_root(), FW_CFG_PORT_BASE + FW_CFG_DMA_OFFSET, &s->dma_mr,
                                    0);
    }
    return true;
}

static const Property fw_cfg_props[] = {
    DEFINE_PROP("dma_enabled", PROP_BOOL, FwCfgState, dma_enabled, 1, "offer the DMA interface"),
    DEFINE_PROP_END,
};

static const VMStateField fw_cfg_fields[] = {
    VMS_FIELD(VMS_U16, FwCfgState, cur_key, 1),
    VMS_FIELD(VMS_U32, FwCfgState, cur_offset, 1),
    VMS_FIELD(VMS_U64, FwCfgState, dma_addr, 1),
    VMS_END,
};

static const VMState fw_cfg_vmstate = {
    .name = "fw_cfg", .version = 1, .minimum_version = 1, .fields = fw_cfg_fields,
};

static const DeviceType fw_cfg_type = {
    .name = "fw_cfg",
    .desc = "firmware configuration device",
    .bus = "system",
    .instance_size = sizeof(FwCfgState),
    .props = fw_cfg_props,
    .realize = fw_cfg_realize,
    .reset = fw_cfg_reset,
    .vmstate = &fw_cfg_vmstate,
};
DEVICE_TYPE(fw_cfg_type);
