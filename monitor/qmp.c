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

#define NAME_SHOWN_MAX 1000
/* The JSON parser keeps its buffer; after a command of more than this it gets a new one. */
#define TOK_KEEP_MAX   (256 * KiB)
#define VALUES_KEEP_MAX 4096 /* the same of what was made of it */

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
        if (monitor_pending(mon) > MONITOR_MAX_OUT) {
            mon->events_lost++;
            continue;
        }
        qmp_send(mon, j);
    }
}

/* command: what is answered; its id comes back as it came, null too. May be NULL. */
static void send_reply(Monitor *mon, const char *key, struct json_object *value,
                       struct json_object *command)
{
    struct json_object *j = json_object_new_object(), *id;

    json_object_object_add(j, key, value);
    if (json_object_is_type(command, json_type_object) && json_object_object_get_ex(command, "id", &id)) {
        qmp_plain_numbers(id);
        json_object_object_add(j, "id", json_object_get(id));
    }
    qmp_send(mon, j);
    json_object_put(j);
}

static void send_error(Monitor *mon, Error *err, struct json_object *command)
{
    struct json_object *e = json_object_new_object();

    json_object_object_add(e, "class", json_object_new_string(class_names[error_get_class(err)]));
    json_object_object_add(e, "desc", json_object_new_string(error_get_pretty(err)));
    send_reply(mon, "error", e, command);
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
    if (!json_object_object_get_ex(j, "execute", &name)) {
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
    if (!cmd && json_object_get_string_len(name) > NAME_SHOWN_MAX) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND, "The command with a name of %d bytes has not been found",
                  json_object_get_string_len(name));
    } else if (!cmd) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND, "The command %s has not been found",
                  json_object_get_string(name));
    }
    return cmd;
}

static void qmp_dispatch(Monitor *mon, struct json_object *j)
{
    struct json_object *args = NULL, *ret = NULL;
    const QmpCommand *cmd;
    bool ok;
    Error *err = NULL;

    if (qmp_members(j) != mon->scan.members) {
        error_setg(&err, "JSON parse error, duplicate key");
        send_error(mon, err, NULL);
        return;
    }
    if (!json_object_is_type(j, json_type_object)) {
        error_setg(&err, "QMP input must be a JSON object");
        send_error(mon, err, NULL);
        return;
    }
    cmd = command_check(mon, j, &args, &err);
    monitor_current = mon;
    ok = cmd && cmd->marshal(args, &ret, &err);
    monitor_current = NULL;
    if (!ok) {
        send_error(mon, err, j);
        return;
    }
    /* What the command has caused is told before it is answered: clients take the reply as an end. */
    monitor_events_drain();
    if (cmd->any_time) {
        mon->negotiated = true;
    }
    send_reply(mon, "return", ret, j);
}

/* ---- Input ---- */

static void parser_renew(Monitor *mon)
{
    json_tokener_free(mon->tok);
    mon->tok = json_tokener_new_ex(QMP_MAX_DEPTH + 1);
}

/* Ready for the next command. */
static void parser_reset(Monitor *mon)
{
    if (mon->in_bytes > TOK_KEEP_MAX || mon->scan.check.values > VALUES_KEEP_MAX) {
        parser_renew(mon);
        monitor_trim();
    } else {
        json_tokener_reset(mon->tok);
    }
    mon->in_bytes = 0;
    mon->scan = (QmpScan){ 0 };
}

static void syntax_error(Monitor *mon, const char *why)
{
    Error *err = NULL;

    error_setg(&err, "JSON parse error, %s", why);
    send_error(mon, err, NULL);
    parser_reset(mon);
    parser_renew(mon); /* a reset one still waits for the second half of a surrogate pair */
    mon->turn_over = true;
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
    const char *put;
    size_t used, skip;

    if (mon->skip_line) {
        const uint8_t *nl = memchr(buf, '\n', len);

        mon->skip_line = !nl;
        return nl ? (size_t)(nl - buf) + 1 : len;
    }
    if (!mon->in_bytes && (used = skip_space(buf, len))) {
        return used;
    }
    len = qmp_scan(&mon->scan, buf, len, &put, &skip);
    if (*mon->scan.check.error) {
        mon->skip_line = buf[len] != '\n';
        syntax_error(mon, mon->scan.check.error);
        return len + 1;
    }
    j = json_tokener_parse_ex(mon->tok, (const char *)buf, (int)len);
    if (put && json_tokener_get_error(mon->tok) == json_tokener_continue) {
        j = json_tokener_parse_ex(mon->tok, put, (int)strlen(put));
    }
    e = json_tokener_get_error(mon->tok);
    used = MIN(json_tokener_get_parse_end(mon->tok), len);
    if (e == json_tokener_continue) {
        mon->in_bytes += len + skip;
        if (mon->in_bytes > QMP_MAX_INPUT) {
            syntax_error(mon, "token size limit exceeded");
            mon->skip_line = true;
        }
        return len + skip;
    }
    if (e != json_tokener_success) {
        syntax_error(mon, "invalid syntax");
        mon->skip_line = !memchr(buf, '\n', MIN(used + 1, len));
        return MIN(used + 1, len);
    }
    qmp_dispatch(mon, j);
    json_object_put(j);
    parser_reset(mon);
    mon->turn_over = true;
    return used;
}

static bool input_waits(const Monitor *mon)
{
    return mon->in_pos < mon->in->len;
}

static void drop_input(Monitor *mon)
{
    g_byte_array_set_size(mon->in, 0);
    mon->in_pos = 0;
}

/*
 * One command, then it is the turn of other sessions and of everything else on this thread. What is
 * left of a client that is gone is served like that too: some send a command and leave.
 */
static void qmp_serve(void *opaque)
{
    Monitor *mon = opaque;

    mon->turn_over = false;
    while (input_waits(mon) && !mon->turn_over && monitor_can_take(mon)) {
        mon->in_pos += qmp_feed(mon, mon->in->data + mon->in_pos, mon->in->len - mon->in_pos);
    }
    if (!input_waits(mon)) {
        drop_input(mon);
        if (!mon->open) {
            parser_reset(mon);
        }
        chr_fe_accept_input(&mon->fe);
    } else if (monitor_can_take(mon)) {
        event_post(event_loop_control(), &mon->serve_post);
    }
}

static size_t qmp_can_read(void *opaque)
{
    Monitor *mon = opaque;

    return monitor_can_take(mon) && !input_waits(mon) ? 4096 : 0;
}

static void qmp_read(void *opaque, const uint8_t *buf, size_t len)
{
    Monitor *mon = opaque;

    monitor_collect_fds(mon);
    g_byte_array_append(mon->in, buf, (guint)len);
    qmp_serve(mon);
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
        mon->events_lost = 0;
        parser_reset(mon);
        drop_input(mon);
        monitor_drop_output(mon);
        send_greeting(mon);
        break;
    case CHR_EVENT_CLOSED:
        mon->open = false;
        monitor_drop_fds(mon);
        if (!monitor_can_take(mon)) {
            drop_input(mon); /* it never read: it does not wait for any of this */
        }
        if (!input_waits(mon)) {
            parser_reset(mon);
        }
        monitor_drop_output(mon);
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
    .drop_unread = true,
    .owes = monitor_owes,
};

bool monitor_new_qmp(Chardev *chr, bool pretty, Error **errp)
{
    Monitor *mon = monitor_new(chr, &qmp_ops, errp);

    if (!mon) {
        return false;
    }
    mon->is_qmp = true;
    mon->pretty = pretty;
    mon->tok = json_tokener_new_ex(QMP_MAX_DEPTH + 1);
    mon->in = g_byte_array_new();
    event_post_init(&mon->serve_post, qmp_serve, mon);
    chr_fe_set_handlers(&mon->fe, event_loop_control(), &qmp_ops, mon);
    return true;
}
