/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU models: query-cpu-definitions, query-cpu-model-expansion. */
#include <glib.h>
#include <json-c/json.h>
#include <string.h>
#include "monitor/cpu-props.h"
#include "monitor/qapi-util.h"
#include "qapi/qapi.h"

/* ---- query-cpu-definitions ---- */

static void add_definition(const X86CPUModel *m, void *opaque)
{
    QapiCpuDefinitionInfo *i = g_new0(QapiCpuDefinitionInfo, 1);
    uint32_t missing[FEAT_WORDS];
    X86CPUModel resolved;

    i->name = g_strdup(m->name);
    i->typename = g_strconcat(m->name, "-x86_64-cpu", NULL);
    i->has_alias_of = m->alias_of != NULL;
    i->alias_of = g_strdup(m->alias_of);
    i->q_static = m->no_defaults;
    i->migration_safe = !m->all_features;
    if (x86_cpu_model_resolve(m->name, &resolved, missing, NULL)) {
        i->unavailable_features = cpu_feature_list(missing);
    } else { /* host without KVM */
        i->unavailable_features = g_new0(QapiStrArray, 1);
        qapi_str_array_add(i->unavailable_features, "kvm");
    }
    qapi_cpu_definition_info_array_add(opaque, i);
}

QapiCpuDefinitionInfoArray *qmp_query_cpu_definitions(Error **errp)
{
    QapiCpuDefinitionInfoArray *a = g_new0(QapiCpuDefinitionInfoArray, 1);

    x86_cpu_model_foreach(add_definition, a);
    return a;
}

/* ---- Properties of a model ---- */

QapiStrArray *cpu_feature_list(const uint32_t mask[FEAT_WORDS])
{
    QapiStrArray *a = g_new0(QapiStrArray, 1);
    char *names = x86_feature_names(mask);
    char **list = g_strsplit(names, " ", -1);

    for (char **p = list; *p; p++) {
        if (**p) {
            qapi_str_array_add(a, *p);
        }
    }
    g_strfreev(list);
    g_free(names);
    return a;
}

struct json_object *cpu_model_property(const X86CPUModel *m, const uint32_t feat[FEAT_WORDS],
                                       const char *name)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        { "family", m->family }, { "model", m->model },   { "stepping", m->stepping },
        { "level", m->level },   { "xlevel", m->xlevel }, { "phys-bits", m->phys_bits },
    };
    uint32_t mask[FEAT_WORDS];

    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (!strcmp(name, numbers[i].name)) {
            return json_object_new_int64(numbers[i].value);
        }
    }
    if (!strcmp(name, "vendor")) {
        return json_object_new_string(m->vendor);
    }
    if (!strcmp(name, "model-id")) {
        return json_object_new_string_len(m->model_id, (int)strnlen(m->model_id, 48));
    }
    if (!strcmp(name, "pmu")) {
        return json_object_new_boolean(m->pmu);
    }
    if (!x86_feature_lookup(name, mask)) {
        return NULL;
    }
    for (unsigned w = 0; w < FEAT_WORDS; w++) {
        if (mask[w] & ~feat[w]) {
            return json_object_new_boolean(false);
        }
    }
    return json_object_new_boolean(true);
}

static struct json_object *all_properties(const X86CPUModel *m)
{
    static const char *const others[] = { "family",    "model",  "stepping", "level", "xlevel",
                                          "phys-bits", "vendor", "model-id", "pmu" };
    struct json_object *j = json_object_new_object();

    for (unsigned i = 0; i < x86_feature_count; i++) {
        const char *name = x86_features[i].name;

        if (!json_object_object_get_ex(j, name, NULL)) {
            json_object_object_add(j, name, cpu_model_property(m, m->feat, name));
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        json_object_object_add(j, others[i], cpu_model_property(m, m->feat, others[i]));
    }
    return j;
}

/* ---- query-cpu-model-expansion ---- */

/* Appends ",NAME=VALUE" as -cpu takes it. */
static bool append_prop(GString *arg, const char *name, struct json_object *value, Error **errp)
{
    const char *text;

    if (!*name || strpbrk(name, ",=+")) {
        error_setg(errp, "Parameter 'model.props': '%s' is no name of a property", name);
        return false;
    }
    switch (json_object_get_type(value)) {
    case json_type_boolean:
        text = json_object_get_boolean(value) ? "on" : "off";
        break;
    case json_type_int:
    case json_type_string:
        text = json_object_get_string(value);
        break;
    default:
        error_setg(errp, "Invalid parameter type for 'model.props.%s', expected: boolean, integer "
                         "or string", name);
        return false;
    }
    g_string_append_printf(arg, ",%s=", name);
    for (; *text; text++) {
        g_string_append(arg, *text == ',' ? ",," : (char[]){ *text, 0 });
    }
    return true;
}

/* model as -cpu's argument; NULL + errp. g_free(). */
static char *model_text(const QapiCpuModelInfo *model, Error **errp)
{
    GString *arg;

    if (!x86_cpu_model_find(model->name)) {
        error_setg(errp, "CPU model '%s' not found", model->name);
        return NULL;
    }
    if (model->has_props && !json_object_is_type(model->props, json_type_object)) {
        error_setg(errp, "Invalid parameter type for 'model.props', expected: object");
        return NULL;
    }
    arg = g_string_new(model->name);
    if (model->has_props) {
        json_object_object_foreach(model->props, key, value)
        {
            if (!append_prop(arg, key, value, errp)) {
                g_string_free(arg, TRUE);
                return NULL;
            }
        }
    }
    return g_string_free(arg, FALSE);
}

QapiCpuModelExpansionInfo *qmp_query_cpu_model_expansion(QapiCpuModelExpansionType type,
                                                         QapiCpuModelInfo *model, Error **errp)
{
    QapiCpuModelExpansionInfo *info;
    uint32_t missing[FEAT_WORDS];
    char *arg = model_text(model, errp);
    X86CPUModel m;

    if (!arg) {
        return NULL;
    }
    if (!x86_cpu_model_resolve(arg, &m, missing, errp)) {
        g_free(arg);
        return NULL;
    }
    g_free(arg);
    info = g_new0(QapiCpuModelExpansionInfo, 1);
    info->model = g_new0(QapiCpuModelInfo, 1);
    info->model->name = g_strdup(type == QAPI_CPU_MODEL_EXPANSION_TYPE_STATIC ? "base"
                                                                              : model->name);
    info->model->has_props = true;
    info->model->props = all_properties(&m);
    return info;
}
