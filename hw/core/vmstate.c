/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State descriptions to and from a flat buffer. Layout, integers little endian:
 *   state:  str name, u16 version, field..., u16 0
 *   field:  str name, u8 kind, u32 count, then count values; a structure is a nested state
 *   str:    u16 length, bytes
 * A timer is its expiry in nanoseconds of its clock, -1 when it is not armed.
 */
#include <glib.h>
#include <inttypes.h>
#include <string.h>
#include "event/event.h"
#include "hw/vmstate.h"

/* ---- Saving ---- */

static void put_int(GByteArray *out, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        uint8_t b = (uint8_t)(v >> (8 * i));

        g_byte_array_append(out, &b, 1);
    }
}

static void put_str(GByteArray *out, const char *s)
{
    put_int(out, strlen(s), 2);
    g_byte_array_append(out, (const uint8_t *)s, (guint)strlen(s));
}

/* Bytes of one value in the stream and in memory; 0 for structures. */
static unsigned kind_size(VmsKind kind)
{
    static const uint8_t sizes[] = {
        [VMS_U8] = 1, [VMS_U16] = 2, [VMS_U32] = 4, [VMS_U64] = 8,
        [VMS_BOOL] = 1, [VMS_BUFFER] = 1, [VMS_TIMER] = 8,
    };

    return kind < ARRAY_SIZE(sizes) ? sizes[kind] : 0;
}

static void save_state(const VMState *vms, void *opaque, GByteArray *out);

static void save_field(const VMStateField *f, void *opaque, GByteArray *out)
{
    uint8_t *p = (uint8_t *)opaque + f->offset;

    put_str(out, f->name);
    put_int(out, f->kind, 1);
    put_int(out, f->count, 4);
    if (f->kind == VMS_BUFFER) {
        g_byte_array_append(out, p, f->count);
        return;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t v = 0;

        switch (f->kind) {
        case VMS_STRUCT:
            save_state(f->sub, p + (size_t)i * f->stride, out);
            continue;
        case VMS_TIMER:
            v = (uint64_t)timer_expire_ns((EventTimer *)p + i);
            break;
        case VMS_BOOL:
            v = *((bool *)p + i);
            break;
        default:
            memcpy(&v, p + (size_t)i * kind_size(f->kind), kind_size(f->kind));
            break;
        }
        put_int(out, v, kind_size(f->kind));
    }
}

static void save_state(const VMState *vms, void *opaque, GByteArray *out)
{
    if (vms->pre_save) {
        vms->pre_save(opaque);
    }
    put_str(out, vms->name);
    put_int(out, vms->version, 2);
    for (const VMStateField *f = vms->fields; f->name; f++) {
        save_field(f, opaque, out);
    }
    put_int(out, 0, 2);
}

void vmstate_save(const VMState *vms, void *opaque, uint8_t **buf, size_t *len)
{
    GByteArray *out = *buf ? g_byte_array_new_take(*buf, *len) : g_byte_array_new();

    save_state(vms, opaque, out);
    *len = out->len;
    *buf = g_byte_array_free(out, FALSE);
}

/* ---- Loading ---- */

typedef struct Reader {
    const uint8_t *p;
    size_t left;
    bool apply; /* second pass: everything was checked */
} Reader;

static bool take_bytes(Reader *r, const uint8_t **out, size_t n)
{
    if (r->left < n) {
        return false;
    }
    *out = r->p;
    r->p += n;
    r->left -= n;
    return true;
}

static bool take_int(Reader *r, uint64_t *v, unsigned bytes)
{
    const uint8_t *p;

    if (!take_bytes(r, &p, bytes)) {
        return false;
    }
    *v = 0;
    for (unsigned i = 0; i < bytes; i++) {
        *v |= (uint64_t)p[i] << (8 * i);
    }
    return true;
}

static bool truncated(const VMState *vms, Error **errp)
{
    error_setg(errp, "state of '%s' is truncated", vms->name);
    return false;
}

static bool expect_name(Reader *r, const VMState *vms, const char *name, Error **errp)
{
    uint64_t n;
    const uint8_t *p;

    if (!take_int(r, &n, 2) || !take_bytes(r, &p, n)) {
        return truncated(vms, errp);
    }
    if (n != strlen(name) || memcmp(p, name, n)) {
        error_setg(errp, "state of '%s': expected '%s', found '%.*s'", vms->name, name,
                   (int)MIN(n, 64), (const char *)p);
        return false;
    }
    return true;
}

static bool load_state(const VMState *vms, void *opaque, Reader *r, Error **errp);

static void load_value(const VMStateField *f, uint8_t *p, uint32_t i, uint64_t v)
{
    EventTimer *t;

    switch (f->kind) {
    case VMS_TIMER:
        t = (EventTimer *)p + i;
        if ((int64_t)v < 0) {
            timer_del(t);
        } else {
            timer_mod(t, (int64_t)v);
        }
        break;
    case VMS_BOOL:
        *((bool *)p + i) = v;
        break;
    default:
        memcpy(p + (size_t)i * kind_size(f->kind), &v, kind_size(f->kind));
        break;
    }
}

static bool load_buffer(const VMState *vms, const VMStateField *f, uint8_t *p, Reader *r, Error **errp)
{
    const uint8_t *bytes;

    if (!take_bytes(r, &bytes, f->count)) {
        return truncated(vms, errp);
    }
    if (r->apply) {
        memcpy(p, bytes, f->count);
    }
    return true;
}

static bool load_field(const VMState *vms, const VMStateField *f, void *opaque, Reader *r,
                       Error **errp)
{
    uint8_t *p = (uint8_t *)opaque + f->offset;
    uint64_t kind, count, v;

    if (!expect_name(r, vms, f->name, errp)) {
        return false;
    }
    if (!take_int(r, &kind, 1) || !take_int(r, &count, 4)) {
        return truncated(vms, errp);
    }
    if (kind != f->kind || count != f->count) {
        error_setg(errp, "state of '%s': '%s' has kind %u and %u elements, expected %u and %u",
                   vms->name, f->name, (unsigned)kind, (unsigned)count, f->kind, f->count);
        return false;
    }
    if (f->kind == VMS_BUFFER) {
        return load_buffer(vms, f, p, r, errp);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->kind == VMS_STRUCT) {
            if (!load_state(f->sub, p + (size_t)i * f->stride, r, errp)) {
                return false;
            }
            continue;
        }
        if (!take_int(r, &v, kind_size(f->kind))) {
            return truncated(vms, errp);
        }
        if (f->kind == VMS_BOOL && v > 1) {
            error_setg(errp, "state of '%s': '%s' is no boolean", vms->name, f->name);
            return false;
        }
        if (r->apply) {
            load_value(f, p, i, v);
        }
    }
    return true;
}

static bool load_state(const VMState *vms, void *opaque, Reader *r, Error **errp)
{
    uint64_t version, end;

    if (!expect_name(r, vms, vms->name, errp)) {
        return false;
    }
    if (!take_int(r, &version, 2)) {
        return truncated(vms, errp);
    }
    if (version > vms->version || version < vms->minimum_version) {
        error_setg(errp, "state of '%s' has version %u, this program loads %u to %u", vms->name,
                   (unsigned)version, vms->minimum_version, vms->version);
        return false;
    }
    for (const VMStateField *f = vms->fields; f->name; f++) {
        if (f->since_version <= version && !load_field(vms, f, opaque, r, errp)) {
            return false;
        }
    }
    if (!take_int(r, &end, 2)) {
        return truncated(vms, errp);
    }
    if (end) {
        error_setg(errp, "state of '%s' has fields this program does not know", vms->name);
        return false;
    }
    return !r->apply || !vms->post_load || vms->post_load(opaque, (int)version, errp);
}

bool vmstate_load(const VMState *vms, void *opaque, const uint8_t *buf, size_t len, size_t *used,
                  Error **errp)
{
    Reader r = { buf, len, false };

    if (!load_state(vms, opaque, &r, errp)) {
        return false;
    }
    if (used) {
        *used = len - r.left;
    } else if (r.left) {
        error_setg(errp, "state of '%s' has %zu bytes too many", vms->name, r.left);
        return false;
    }
    r = (Reader){ buf, len, true };
    return load_state(vms, opaque, &r, errp);
}

/* ---- All devices ---- */

typedef struct Walk {
    uint8_t *buf;
    size_t len, pos;
    Error *err;
} Walk;

static void save_device(DeviceState *dev, void *opaque)
{
    Walk *w = opaque;

    if (dev->type->vmstate) {
        vmstate_save(dev->type->vmstate, dev, &w->buf, &w->len);
    }
}

void device_save_all(uint8_t **buf, size_t *len)
{
    Walk w = { *buf, *buf ? *len : 0, 0, NULL };

    device_foreach(save_device, &w);
    *buf = w.buf;
    *len = w.len;
}

static void load_device(DeviceState *dev, void *opaque)
{
    Walk *w = opaque;
    size_t used;

    if (w->err || !dev->type->vmstate) {
        return;
    }
    if (vmstate_load(dev->type->vmstate, dev, w->buf + w->pos, w->len - w->pos, &used, &w->err)) {
        w->pos += used;
    }
}

bool device_load_all(const uint8_t *buf, size_t len, Error **errp)
{
    Walk w = { (uint8_t *)buf, len, 0, NULL };

    device_foreach(load_device, &w);
    if (w.err) {
        error_propagate(errp, w.err);
        return false;
    }
    if (w.pos != len) {
        error_setg(errp, "state of %zu bytes belongs to no device of this machine", len - w.pos);
        return false;
    }
    return true;
}
