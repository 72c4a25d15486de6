/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP query-realtime-host. */
#include <glib.h>
#include "host-check-internal.h"
#include "qapi/qapi.h"

QapiRealtimeHostInfo *qmp_query_realtime_host(Error **errp)
{
    HostCheck *c = realtime_host_check();
    QapiRealtimeHostInfo *info = g_new0(QapiRealtimeHostInfo, 1);

    info->passed = c->statuses[HOST_CHECK_FAIL] == 0;
    info->lines = g_new0(QapiRealtimeHostLineArray, 1);
    for (unsigned i = 0; i < c->count; i++) {
        QapiRealtimeHostLine *l = g_new0(QapiRealtimeHostLine, 1);

        l->name = g_strdup(c->lines[i].name);
        l->status = (QapiRealtimeHostStatus)c->lines[i].status;
        l->found = g_strdup(c->lines[i].found);
        l->wanted = g_strdup(c->lines[i].wanted);
        l->has_remedy = c->lines[i].remedy != NULL;
        l->remedy = g_strdup(c->lines[i].remedy);
        qapi_realtime_host_line_array_add(info->lines, l);
    }
    host_check_free(c);
    return info;
}
