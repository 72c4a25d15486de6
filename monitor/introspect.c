/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client can learn of this monitor and of the command line before it uses them. */
#include <glib.h>
#include <json-c/json.h>
#include <string.h>
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"
#include "qemu/config.h"

struct json_object *qmp_query_qmp_schema(Error **errp)
{
    return json_tokener_parse(qapi_schema_json);
}

QapiEventInfoArray *qmp_query_events(Error **errp)
{
    QapiEventInfoArray *a = g_new0(QapiEventInfoArray, 1);

    for (unsigned i = 0; qapi_event_names[i]; i++) {
        QapiEventInfo *e = g_new0(QapiEventInfo, 1);

        e->name = g_strdup(qapi_event_names[i]);
        qapi_event_info_array_add(a, e);
    }
    return a;
}

/* ---- query-command-line-options ---- */

static QapiCommandLineParameterType parameter_type(QemuOptType type)
{
    switch (type) {
    case QEMU_OPT_BOOL:
        return QAPI_COMMAND_LINE_PARAMETER_TYPE_BOOLEAN;
    case QEMU_OPT_NUMBER:
        return QAPI_COMMAND_LINE_PARAMETER_TYPE_NUMBER;
    case QEMU_OPT_SIZE:
        return QAPI_COMMAND_LINE_PARAMETER_TYPE_SIZE;
    default:
        return QAPI_COMMAND_LINE_PARAMETER_TYPE_STRING;
    }
}

typedef struct OptionQuery {
    const char *only; /* NULL: all */
    QapiCommandLineOptionInfoArray *out;
} OptionQuery;

static void add_option(const QemuOptsList *list, void *opaque)
{
    OptionQuery *q = opaque;
    QapiCommandLineOptionInfo *o;

    if (q->only && strcmp(q->only, list->name)) {
        return;
    }
    o = g_new0(QapiCommandLineOptionInfo, 1);
    o->option = g_strdup(list->name);
    o->parameters = g_new0(QapiCommandLineParameterInfoArray, 1);
    for (const QemuOptDesc *d = list->desc; d && d->name; d++) {
        QapiCommandLineParameterInfo *p = g_new0(QapiCommandLineParameterInfo, 1);

        p->name = g_strdup(d->name);
        p->type = parameter_type(d->type);
        p->has_help = d->help != NULL;
        p->help = g_strdup(d->help);
        qapi_command_line_parameter_info_array_add(o->parameters, p);
    }
    qapi_command_line_option_info_array_add(q->out, o);
}

QapiCommandLineOptionInfoArray *qmp_query_command_line_options(bool has_option, const char *option,
                                                               Error **errp)
{
    OptionQuery q = { .only = has_option ? option : NULL };

    q.out = g_new0(QapiCommandLineOptionInfoArray, 1);
    qemu_opts_lists_foreach(add_option, &q);
    if (q.only && !q.out->len) {
        error_setg(errp, "invalid option name: %s", option);
    }
    return q.out;
}
