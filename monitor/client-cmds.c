/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands that serve clients: the human monitor's commands, ring buffers, and questions that
 * clients ask of every emulator about parts this one does not have, which are answered "none".
 */
#include <glib.h>
#include <json-c/json.h>
#include <string.h>
#include "event/iothread.h"
#include "accel/cpu.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

/* ---- human-monitor-command ---- */

char *qmp_human_monitor_command(const char *command_line, bool has_cpu_index, int64_t cpu_index,
                                Error **errp)
{
    Monitor mon = { .open = true };

    if (has_cpu_index) {
        if (cpu_index < 0 || cpu_index >= MAX_CPUS || !cpu_get((unsigned)cpu_index)) {
            error_setg(errp, "Parameter 'cpu-index' expects a CPU number");
            return NULL;
        }
        mon.cpu_index = (int)cpu_index;
    }
    mon.out = g_byte_array_new();
    mon.line = g_string_new(NULL);
    mon.capture = g_string_new(NULL);
    hmp_execute(&mon, command_line);
    g_byte_array_unref(mon.out);
    g_string_free(mon.line, TRUE);
    return g_string_free(mon.capture, FALSE);
}

/* ---- ringbuf ---- */

static Chardev *find_ringbuf(const char *device, Error **errp)
{
    Chardev *chr = chardev_find(device);

    if (!chr) {
        error_setg(errp, "Device '%s' not found", device);
    }
    return chr;
}

void qmp_ringbuf_write(const char *device, const char *data, bool has_format,
                       QapiDataFormat format, Error **errp)
{
    Chardev *chr = find_ringbuf(device, errp);
    gsize len = strlen(data);

    if (!chr) {
        return;
    }
    if (has_format && format == QAPI_DATA_FORMAT_BASE64) {
        guchar *raw = g_base64_decode(data, &len);

        chardev_ringbuf_write(chr, raw, len, errp);
        g_free(raw);
    } else {
        chardev_ringbuf_write(chr, (const uint8_t *)data, len, errp);
    }
}

char *qmp_ringbuf_read(const char *device, int64_t size, bool has_format, QapiDataFormat format,
                       Error **errp)
{
    Chardev *chr = find_ringbuf(device, errp);
    uint8_t *buf;
    size_t len;
    char *text;

    if (!chr) {
        return NULL;
    }
    if (size <= 0) {
        error_setg(errp, "size must be greater than zero");
        return NULL;
    }
    len = (size_t)MIN(size, (int64_t)(16 * MiB));
    buf = g_malloc(len);
    if (!chardev_ringbuf_read(chr, buf, &len, errp)) {
        g_free(buf);
        return NULL;
    }
    if (has_format && format == QAPI_DATA_FORMAT_BASE64) {
        text = g_base64_encode(buf, len);
    } else {
        /* Bytes that are no UTF-8, and NUL, become U+FFFD. */
        text = g_utf8_make_valid((const char *)buf, (gssize)len);
    }
    g_free(buf);
    return text;
}

/* ---- Event threads of the user's ---- */

static void add_iothread(const IOThreadInfo *info, void *opaque)
{
    QapiIOThreadInfoArray *a = opaque;
    QapiIOThreadInfo *out = g_new0(QapiIOThreadInfo, 1);

    out->id = g_strdup(info->id);
    out->thread_id = info->thread_id;
    out->poll_max_ns = info->poll_max_ns;
    out->poll_grow = info->poll_grow;
    out->poll_shrink = info->poll_shrink;
    out->aio_max_batch = info->aio_max_batch;
    a->items = g_renew(QapiIOThreadInfo *, a->items, a->len + 1);
    a->items[a->len++] = out;
}

QapiIOThreadInfoArray *qmp_query_iothreads(Error **errp)
{
    QapiIOThreadInfoArray *a = g_new0(QapiIOThreadInfoArray, 1);

    iothread_foreach(add_iothread, a);
    return a;
}

/* ---- None of these ---- */

struct json_object *qmp_query_block(Error **errp)
{
    return json_object_new_array();
}

struct json_object *qmp_query_named_block_nodes(bool has_flat, bool flat, Error **errp)
{
    return json_object_new_array();
}

QapiMigrationCapabilityStatusArray *qmp_query_migrate_capabilities(Error **errp)
{
    return g_new0(QapiMigrationCapabilityStatusArray, 1);
}

/* Only "events" gets past the schema, and without migration there are none to send or withhold. */
void qmp_migrate_set_capabilities(QapiMigrationCapabilityStatusArray *capabilities, Error **errp)
{
}
