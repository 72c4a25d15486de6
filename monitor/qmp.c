/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP sessions: greeting, negotiation, one JSON object a line in and out (lines end in CR LF, as
 * clients split only there), errors with class and desc.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "event/event.h"
#include "monitor/internal.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

#define QMP_MAX_DEPTH 256

static const char *const class_names[] = {
    [ERROR_CLASS_GENERIC_ERROR] = "GenericError",
    [ERROR_CLASS_COMMAND_NOT_FOUND] = "CommandNotFound",
    [ERROR_CLASS_DEVICE_NOT_ACTIVE] = "DeviceNotActive",
    [ERROR_CLASS_DEVICE_NOT_FOUND] = "DeviceNotFound",
    [ERROR_CLASS_KVM_MISSING_CAP] = "KVMMissingCap",
};

void qmp_send(Monitor *mon, struct json_object *j)
{
    int flags = mon->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                            : JSON_C_TO_STRING_SPACED;
    const char *s = json_object_to_json_string_ext(j, flags | JSON_C_TO_STRING_NOSLASHESCAPE);

    g_byte_array_append(mon->out, (const uint8_t *)s, strlen(s));
    monitor_write(mon, "\r\n", 2);
}

/* To every session that has ended its negotiation and reads what it is sent. */
void qmp_broadcast(struct json_object *j)
{
    for (Monitor *mon = monitors; mon; mon = mon->next) {
        if (!mon->is_qmp || !mon->open || !mon->negotiated) {
            continue;
        }
        if (mon->out->len > MONITOR_MAX_OUT) {
            mon->events_lost++;
            continue;
        }
        qmp_send(mon, j);
    }
}

static void send_reply(Monitor *mon, const char *key, struct json_object *value,
                       struct json_object *id)
{
    struct json_object *j = json_object_new_object();

    json_object_object_add(j, key, value);
    if (id) {
        json_object_object_add(j, "id", json_object_get(id));
    }
    qmp_send(mon, j);
    json_object_put(j);
}

static void send_error(Monitor *mon, Error *err, struct json_object *id)
{
    struct json_object *e = json_object_new_object();

    json_object_object_add(e, "class", json_object_new_string(class_names[error_get_class(err)]));
    json_object_object_add(e, "desc", json_object_new_string(error_get_pretty(err)));
    send_reply(mon, "error", e, id);
    error_free(err);
}

static int command_compare(const void *key, const void *elem)
{
    return strcmp(key, ((const QmpCommand *)elem)->name);
}

static const QmpCommand *command_find(const char *name)
{
    size_t n = 0;

    while (qmp_commands[n].name) {
        n++;
    }
    return bsearch(name, qmp_commands, n, sizeof(qmp_commands[0]), command_compare);
}

/* Checks the envelope {"execute": NAME, "arguments": {}, "id": ANY}. */
static const QmpCommand *command_check(Monitor *mon, struct json_object *j,
                                       struct json_object **args, Error **errp)
{
    static const char *const keys[] = { "execute", "arguments", "id", NULL };
    struct json_object *name;
    const QmpCommand *cmd;

    json_object_object_foreach(j, key, val)
    {
        if (!g_strv_contains(keys, key)) {
            error_setg(errp, "QMP input member '%s' is unexpected", key);
            return NULL;
        }
        if (strcmp(key, "arguments") == 0 && !json_object_is_type(val, json_type_object)) {
            error_setg(errp, "QMP input member 'arguments' must be an object");
            return NULL;
        }
    }
    name = qapi_member(j, "execute");
    if (!name) {
        error_setg(errp, "QMP input lacks member 'execute'");
        return NULL;
    }
    if (!json_object_is_type(name, json_type_string)) {
        error_setg(errp, "QMP input member 'execute' must be a string");
        return NULL;
    }
    *args = qapi_member(j, "arguments");
    cmd = command_find(json_object_get_string(name));
    if (!mon->negotiated && (!cmd || !cmd->any_time)) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND,
                  "Expecting capabilities negotiation with 'qmp_capabilities'");
        return NULL;
    }
    if (mon->negotiated && cmd && cmd->any_time) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND,
                  "Capabilities negotiation is already complete, command ignored");
        return NULL;
    }
    if (!cmd) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND, "The command %s has not been found",
                  json_object_get_string(name));
    }
    return cmd;
}

static void qmp_dispatch(Monitor *mon, struct json_object *j)
{
    struct json_object *id = NULL, *args = NULL, *ret = NULL;
    const QmpCommand *cmd;
    bool ok;
    Error *err = NULL;

    if (!json_object_is_type(j, json_type_object)) {
        error_setg(&err, "QMP input must be a JSON object");
        send_error(mon, err, NULL);
        return;
    }
    id = qapi_member(j, "id");
    cmd = command_check(mon, j, &args, &err);
    monitor_current = mon;
    ok = cmd && cmd->marshal(args, &ret, &err);
    monitor_current = NULL;
    if (!ok) {
        send_error(mon, err, id);
        return;
    }
    /* What the command has caused is told before it is answered: clients take the reply as an end. */
    monitor_events_drain();
    if (cmd->any_time) {
        mon->negotiated = true;
    }
    send_reply(mon, "return", ret, id);
}

/* ---- Input ---- */

static void syntax_error(Monitor *mon, const char *why)
{
    Error *err = NULL;

    error_setg(&err, "%s", why);
    send_error(mon, err, NULL);
    json_tokener_reset(mon->tok);
    mon->in_bytes = 0;
}

static size_t skip_space(const uint8_t *buf, size_t len)
{
    size_t n = 0;

    while (n < len && strchr(" \t\r\n", buf[n]) && buf[n]) {
        n++;
    }
    return n;
}

/* Takes part of buf; returns how much. */
static size_t qmp_feed(Monitor *mon, const uint8_t *buf, size_t len)
{
    struct json_object *j;
    enum json_tokener_error e;
    size_t used;

    if (mon->skip_line) {
        const uint8_t *nl = memchr(buf, '\n', len);

        mon->skip_line = !nl;
        return nl ? (size_t)(nl - buf) + 1 : len;
    }
    if (!mon->in_bytes && (used = skip_space(buf, len))) {
        return used;
    }
    j = json_tokener_parse_ex(mon->tok, (const char *)buf, (int)len);
    e = json_tokener_get_error(mon->tok);
    used = json_tokener_get_parse_end(mon->tok);
    if (e == json_tokener_continue) {
        mon->in_bytes += len;
        if (mon->in_bytes > QMP_MAX_INPUT) {
            syntax_error(mon, "JSON token size limit exceeded");
            mon->skip_line = true;
        }
        return len;
    }
    if (e != json_tokener_success) {
        syntax_error(mon, "Invalid JSON syntax");
        mon->skip_line = !memchr(buf, '\n', MIN(used + 1, len));
        return MIN(used + 1, len);
    }
    mon->in_bytes = 0;
    json_tokener_reset(mon->tok);
    qmp_dispatch(mon, j);
    json_object_put(j);
    return used;
}

static size_t qmp_can_read(void *opaque)
{
    return monitor_can_take(opaque) ? 4096 : 0;
}

static void qmp_read(void *opaque, const uint8_t *buf, size_t len)
{
    monitor_collect_fds(opaque);
    while (len) {
        size_t n = qmp_feed(opaque, buf, len);

        buf += n;
        len -= n;
    }
}

static void send_greeting(Monitor *mon)
{
    struct json_object *j = json_object_new_object(), *q = json_object_new_object();
    QapiVersionInfo *v = qmp_query_version(NULL);

    json_object_object_add(q, "version", qapi_version_info_to_json(v));
    json_object_object_add(q, "capabilities", json_object_new_array());
    json_object_object_add(j, "QMP", q);
    qmp_send(mon, j);
    json_object_put(j);
    qapi_free_version_info(v);
}

static void qmp_event(void *opaque, ChrEvent event)
{
    Monitor *mon = opaque;

    switch (event) {
    case CHR_EVENT_OPENED:
        mon->open = true;
        mon->negotiated = false;
        mon->skip_line = false;
        mon->in_bytes = 0;
        mon->events_lost = 0;
        json_tokener_reset(mon->tok);
        g_byte_array_set_size(mon->out, 0);
        send_greeting(mon);
        break;
    case CHR_EVENT_CLOSED:
        mon->open = false;
        monitor_drop_fds(mon);
        g_byte_array_set_size(mon->out, 0);
        break;
    default:
        break;
    }
}

static const ChrFrontendOps qmp_ops = {
    .can_read = qmp_can_read,
    .read = qmp_read,
    .event = qmp_event,
    .writable = monitor_flush,
};

bool monitor_new_qmp(Chardev *chr, bool pretty, Error **errp)
{
    Monitor *mon = monitor_new(chr, &qmp_ops, errp);

    if (!mon) {
        return false;
    }
    mon->is_qmp = true;
    mon->pretty = pretty;
    mon->tok = json_tokener_new_ex(QMP_MAX_DEPTH);
    chr_fe_set_handlers(&mon->fe, event_loop_control(), &qmp_ops, mon);
    return true;
}
