/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of CPU models as JSON, for the models themselves and for the vCPUs in the QOM tree. */
#ifndef MONITOR_CPU_PROPS_H
#define MONITOR_CPU_PROPS_H

#include "monitor/qapi-util.h"
#include "target/i386/cpuid.h"

/* A feature (from feat), or something else that -cpu takes; NULL: no such property. */
struct json_object *cpu_model_property(const X86CPUModel *m, const uint32_t feat[FEAT_WORDS],
                                       const char *name);
/* The names of features. */
QapiStrArray *cpu_feature_list(const uint32_t mask[FEAT_WORDS]);

#endif
