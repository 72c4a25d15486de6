/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The argument of -cpu: which model, what is changed in it, and what the accelerator can give. */
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "target/i386/cpuid.h"

#define DEFAULT_PHYS_BITS 40

/* What the command line asks for beyond the model's own row. */
typedef struct ModelRequest {
    uint32_t plus[FEAT_WORDS], minus[FEAT_WORDS];
    bool check, enforce, migratable;
    bool vendor_set, host_phys_bits, host_phys_bits_set, level_set, xlevel_set;
    uint32_t host_phys_bits_limit;
} ModelRequest;

static const X86CpuBackend *backend = &x86_tcg_backend;
static X86CPUModel current;
static uint32_t current_missing[FEAT_WORDS];
static bool current_valid;

void x86_cpu_set_backend(const X86CpuBackend *b)
{
    backend = b;
    current_valid = false;
}

const X86CpuBackend *x86_cpu_backend(void)
{
    return backend;
}

/* ---- Values ---- */

static bool parse_bool(const char *prop, const char *val, bool *out, Error **errp)
{
    static const char *const yes[] = { "on", "yes", "true", "y" };
    static const char *const no[] = { "off", "no", "false", "n" };

    for (unsigned i = 0; i < ARRAY_SIZE(yes); i++) {
        if (!strcmp(val, yes[i]) || !strcmp(val, no[i])) {
            *out = !strcmp(val, yes[i]);
            return true;
        }
    }
    error_setg(errp, "-cpu: %s=%s: expected 'on' or 'off'", prop, val);
    return false;
}

static bool parse_number(const char *prop, const char *val, uint64_t min, uint64_t max,
                         uint64_t *out, Error **errp)
{
    char *end;

    errno = 0;
    *out = strtoull(val, &end, 0);
    if (errno || end == val || *end || strchr(val, '-') || *out < min || *out > max) {
        error_setg(errp, "-cpu: %s=%s: expected a number from %" PRIu64 " to %" PRIu64, prop, val,
                   min, max);
        return false;
    }
    return true;
}

/* Hz with the suffixes k, M, G, T (powers of ten). */
static bool parse_frequency(const char *val, uint32_t *khz, Error **errp)
{
    static const char suffixes[] = "kMGT";
    double hz, scale = 1;
    char *end;

    hz = g_ascii_strtod(val, &end);
    if (end != val && *end && strchr(suffixes, *end)) {
        for (const char *s = suffixes; scale *= 1000, *s != *end; s++) {
        }
        end++;
    }
    if (end == val || *end || !(hz * scale >= 1e6) || !(hz * scale <= 1e13 / 2500)) {
        error_setg(errp, "-cpu: tsc-frequency=%s: expected Hz from 1000000 to 4000000000", val);
        return false;
    }
    *khz = (uint32_t)(hz * scale / 1000);
    return true;
}

/* ---- Properties that are not features ---- */

typedef bool PropFn(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                    Error **errp);

static bool prop_string(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                        Error **errp)
{
    if (!strcmp(prop, "vendor")) {
        if (strlen(val) != 12) {
            error_setg(errp, "-cpu: vendor=%s: must be 12 characters long", val);
            return false;
        }
        memcpy(m->vendor, val, 13);
        r->vendor_set = true;
        return true;
    }
    if (strlen(val) >= sizeof(m->model_id)) {
        error_setg(errp, "-cpu: model-id=%s: at most %zu characters", val, sizeof(m->model_id) - 1);
        return false;
    }
    memset(m->model_id, 0, sizeof(m->model_id));
    memcpy(m->model_id, val, strlen(val));
    return true;
}

static bool prop_identity(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                          Error **errp)
{
    uint64_t v, max = !strcmp(prop, "family") ? 0xff + 0xf : !strcmp(prop, "model") ? 0xff : 0xf;

    if (!parse_number(prop, val, 0, max, &v, errp)) {
        return false;
    }
    *(prop[0] == 'f' ? &m->family : prop[0] == 'm' ? &m->model : &m->stepping) = (uint16_t)v;
    return true;
}

static bool prop_level(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                       Error **errp)
{
    uint64_t v, ext = prop[0] == 'x' ? 0x80000000u : 0;

    if (!parse_number(prop, val, ext, ext + 0xff, &v, errp)) {
        return false;
    }
    if (ext) {
        m->xlevel = (uint32_t)v;
        r->xlevel_set = true;
    } else {
        m->level = (uint32_t)v;
        r->level_set = true;
    }
    return true;
}

static bool prop_phys_bits(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                           Error **errp)
{
    uint64_t v;

    if (!strcmp(prop, "host-phys-bits")) {
        r->host_phys_bits_set = true;
        return parse_bool(prop, val, &r->host_phys_bits, errp);
    }
    if (!strcmp(prop, "host-phys-bits-limit")) {
        if (!parse_number(prop, val, 0, 52, &v, errp)) {
            return false;
        }
        r->host_phys_bits_limit = (uint32_t)v;
        return true;
    }
    if (!strcmp(val, "0")) { /* QEMU's word for "default" */
        m->phys_bits = 0;
        return true;
    }
    if (!parse_number(prop, val, 36, 52, &v, errp)) {
        return false;
    }
    m->phys_bits = (uint32_t)v;
    return true;
}

static bool prop_frequency(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                           Error **errp)
{
    return parse_frequency(val, &m->tsc_khz, errp);
}

static bool prop_bool(X86CPUModel *m, ModelRequest *r, const char *prop, const char *val,
                      Error **errp)
{
    struct {
        const char *name;
        bool *field;
    } table[] = {
        { "check", &r->check },
        { "enforce", &r->enforce },
        { "migratable", &r->migratable },
        { "pmu", &m->pmu },
        { "kvm", &m->hv_leaves },
        { "tcg-cpuid", &m->hv_leaves },
        { "vmware-cpuid-freq", &m->hv_timing },
        { "host-cache-info", &m->host_cache_info },
        { "l3-cache", &m->l3_cache },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
        if (!strcmp(prop, table[i].name)) {
            bool v;

            if (!parse_bool(prop, val, &v, errp)) {
                return false;
            }
            /* kvm= speaks of KVM's leaves only, tcg-cpuid= of TCG's. */
            if ((!strcmp(prop, "kvm") && !backend->kvm) ||
                (!strcmp(prop, "tcg-cpuid") && backend->kvm)) {
                return true;
            }
            *table[i].field = v;
            return true;
        }
    }
    error_setg(errp, "-cpu: unknown property '%s'", prop);
    return false;
}

static const struct {
    const char *name;
    PropFn *fn;
} properties[] = {
    { "vendor", prop_string },
    { "model-id", prop_string },
    { "family", prop_identity },
    { "model", prop_identity },
    { "stepping", prop_identity },
    { "level", prop_level },
    { "xlevel", prop_level },
    { "phys-bits", prop_phys_bits },
    { "host-phys-bits", prop_phys_bits },
    { "host-phys-bits-limit", prop_phys_bits },
    { "tsc-frequency", prop_frequency },
    { "check", prop_bool },
    { "enforce", prop_bool },
    { "migratable", prop_bool },
    { "pmu", prop_bool },
    { "kvm", prop_bool },
    { "tcg-cpuid", prop_bool },
    { "vmware-cpuid-freq", prop_bool },
    { "host-cache-info", prop_bool },
    { "l3-cache", prop_bool },
};

/* ---- One item of the list: +f, -f, f, f=on, prop=value ---- */

static void set_feature(ModelRequest *r, const uint32_t mask[FEAT_WORDS], bool on)
{
    for (unsigned w = 0; w < FEAT_WORDS; w++) {
        r->plus[w] = on ? r->plus[w] | mask[w] : r->plus[w] & ~mask[w];
        r->minus[w] = on ? r->minus[w] & ~mask[w] : r->minus[w] | mask[w];
    }
}

static bool refuse_hyperv(const char *prop, const char *val, Error **errp)
{
    if (!strcmp(val, "off")) {
        return true;
    }
    error_setg(errp, "-cpu: %s=%s: Hyper-V enlightenments are not implemented; leave it out", prop,
               val);
    return false;
}

static bool apply_item(X86CPUModel *m, ModelRequest *r, char *item, Error **errp)
{
    uint32_t mask[FEAT_WORDS];
    char *eq = strchr(item, '='), *name = item;
    const char *val;
    bool on;

    if ((item[0] == '+' || item[0] == '-') && !eq) {
        if (!x86_feature_lookup(item + 1, mask)) {
            error_setg(errp, "-cpu: unknown CPU feature '%s' (-cpu help lists them)", item + 1);
            return false;
        }
        set_feature(r, mask, item[0] == '+');
        return true;
    }
    if (eq) {
        *eq = 0;
    }
    val = eq ? eq + 1 : "on";
    for (char *p = name; *p; p++) {
        *p = *p == '_' ? '-' : *p;
    }
    if (!strncmp(name, "hv-", 3)) {
        return refuse_hyperv(name, val, errp);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(properties); i++) {
        if (!strcmp(name, properties[i].name)) {
            return properties[i].fn(m, r, name, val, errp);
        }
    }
    if (!x86_feature_lookup(name, mask)) {
        error_setg(errp, "-cpu: unknown property or CPU feature '%s' (-cpu help lists them)", name);
        return false;
    }
    if (!parse_bool(name, val, &on, errp)) {
        return false;
    }
    set_feature(r, mask, on);
    return true;
}

/* Splits at single commas, turns ",," into ",". Returns the rest, NULL at the end. */
static char *next_item(char *s)
{
    char *out = s;

    for (; *s; s++) {
        if (*s == ',') {
            if (s[1] != ',') {
                *out = 0;
                return s + 1;
            }
            s++;
        }
        *out++ = *s;
    }
    *out = 0;
    return NULL;
}

/* ---- From the request to what the guest sees ---- */

static void take_host_identity(X86CPUModel *m)
{
    uint32_t r[4], max;

    backend->host_cpuid(0, 0, r);
    m->level = r[0];
    memcpy(m->vendor, &r[1], 4);
    memcpy(m->vendor + 4, &r[3], 4);
    memcpy(m->vendor + 8, &r[2], 4);
    backend->host_cpuid(1, 0, r);
    m->family = (r[0] >> 8) & 15;
    m->model = (r[0] >> 4) & 15;
    if (m->family == 15) {
        m->family = (uint16_t)(m->family + ((r[0] >> 20) & 0xff));
    }
    if (m->family >= 15 || m->family == 6) {
        m->model |= (r[0] >> 12) & 0xf0;
    }
    m->stepping = r[0] & 15;
    backend->host_cpuid(0x80000000, 0, r);
    max = r[0];
    m->xlevel = MIN(max, 0x8000001fu);
    for (uint32_t i = 0; i < 3 && max >= 0x80000004; i++) {
        backend->host_cpuid(0x80000002 + i, 0, r);
        memcpy(m->model_id + 16 * i, r, 16);
    }
}

static void host_vendor(char vendor[13])
{
    X86CPUModel host = { 0 };

    take_host_identity(&host);
    memcpy(vendor, host.vendor, 13);
}

static uint32_t host_phys_bits(void)
{
    uint32_t r[4];

    backend->host_cpuid(0x80000008, 0, r);
    return r[0] & 0xff ? r[0] & 0xff : 36;
}

static bool resolve_phys_bits(X86CPUModel *m, const ModelRequest *r, Error **errp)
{
    bool from_host = r->host_phys_bits_set ? r->host_phys_bits : m->all_features && backend->kvm;
    uint32_t host = host_phys_bits();

    if (from_host) {
        m->phys_bits = r->host_phys_bits_limit ? MIN(host, r->host_phys_bits_limit) : host;
    } else if (!m->phys_bits) {
        m->phys_bits = backend->kvm ? MIN(host, DEFAULT_PHYS_BITS) : DEFAULT_PHYS_BITS;
    } else if (backend->kvm && m->phys_bits > host) {
        error_setg(errp, "-cpu: phys-bits=%u: this host has %u physical address bits", m->phys_bits,
                   host);
        return false;
    }
    return true;
}

/* Features of the row, of the accelerator's defaults and of the request, before any is refused. */
static void gather_features(X86CPUModel *m, const ModelRequest *r)
{
    bool amd = m->vendor[0] != 'G';

    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        uint32_t supported = backend->supported(w);

        if (!m->no_defaults) {
            m->feat[w] |= m->all_features ? supported : backend->defaults(w) & supported;
        }
        if (backend->unless_asked && !m->all_features) {
            m->feat[w] &= ~backend->unless_asked[w];
        }
        m->feat[w] = (m->feat[w] | r->plus[w]) & ~r->minus[w];
    }
    if (m->all_features) { /* a hint is the user's to give, and so is what ties the guest to a host */
        m->feat[FEAT_KVM_HINTS] &= r->plus[FEAT_KVM_HINTS];
        if (r->migratable && !backend->tsc_constant) {
            m->feat[FEAT_8000_0007_EDX] &= r->plus[FEAT_8000_0007_EDX];
        }
    }
    /* AMD's whitelists in guests need no ARCH_CAPABILITIES, and AMD has none. */
    if (amd && !backend->kvm) {
        m->feat[FEAT_7_0_EDX] &= ~CPUID_7_0_EDX_ARCH_CAPABILITIES | r->plus[FEAT_7_0_EDX];
    }
    m->feat[FEAT_1_ECX] &= ~CPUID_1_ECX_OSXSAVE; /* follow CR4 and the topology */
    m->feat[FEAT_7_0_ECX] &= ~CPUID_7_0_ECX_OSPKE;
    m->feat[FEAT_1_EDX] &= ~CPUID_1_EDX_HT;
    m->feat[FEAT_8000_0001_EDX] &= ~CPUID_8000_0001_EDX_AMD_ALIASES;
    if (amd) {
        m->feat[FEAT_8000_0001_EDX] |= m->feat[FEAT_1_EDX] & CPUID_8000_0001_EDX_AMD_ALIASES;
    } else {
        m->feat[FEAT_8000_0001_ECX] &= ~(CPUID_8000_0001_ECX_TOPOEXT |
                                         CPUID_8000_0001_ECX_CMP_LEGACY) |
                                       r->plus[FEAT_8000_0001_ECX];
    }
    if (!m->hv_leaves) {
        m->feat[FEAT_KVM] = m->feat[FEAT_KVM_HINTS] = 0;
    }
}

char *x86_feature_names(const uint32_t missing[FEAT_WORDS])
{
    GString *s = g_string_new(NULL);

    for (unsigned w = 0; w < FEAT_WORDS; w++) {
        for (unsigned b = 0; b < 32; b++) {
            const char *name = NULL;

            if (!(missing[w] & BIT(b))) {
                continue;
            }
            for (unsigned i = 0; i < x86_feature_count && !name; i++) {
                if (x86_features[i].word == w && x86_features[i].bit == b) {
                    name = x86_features[i].name;
                }
            }
            if (name) {
                g_string_append_printf(s, "%s%s", s->len ? " " : "", name);
            } else {
                g_string_append_printf(s, "%s%s[%u]", s->len ? " " : "",
                                       x86_feature_word_name((FeatureWord)w), b);
            }
        }
    }
    return g_string_free(s, FALSE);
}

/* Leaves out what cannot be given, and says what; false if enforce=on and there was any. */
static bool filter_features(X86CPUModel *m, const ModelRequest *r, uint32_t missing[FEAT_WORDS],
                            Error **errp)
{
    uint32_t before[FEAT_WORDS];
    bool any = false;
    char *names;

    memcpy(before, m->feat, sizeof(before));
    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        m->feat[w] &= backend->supported(w);
    }
    x86_features_drop_orphans(m->feat);
    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        /* An orphan counts only if it was asked for by name. */
        missing[w] = before[w] & ~m->feat[w] & (~backend->supported(w) | r->plus[w]);
        any |= missing[w] != 0;
    }
    /* A second name for bits already reported. */
    missing[FEAT_8000_0001_EDX] &= ~CPUID_8000_0001_EDX_AMD_ALIASES;
    if (!any || !(r->check || r->enforce)) {
        return true;
    }
    names = x86_feature_names(missing);
    if (r->enforce) {
        error_setg(errp, "-cpu %s: %s on this host cannot give: %s (enforce=on)", m->name,
                   backend->name, names);
    } else if (*names) {
        warn_report("-cpu %s: %s on this host cannot give, left out: %s", m->name, backend->name,
                    names);
    }
    g_free(names);
    return !r->enforce;
}

/* The highest leaves must cover what the features need. */
static void adjust_levels(X86CPUModel *m, const ModelRequest *r)
{
    uint32_t need = 1, xneed = 0x80000008;

    if (m->feat[FEAT_6_EAX]) {
        need = 6;
    }
    if (m->feat[FEAT_7_0_EBX] | m->feat[FEAT_7_0_ECX] | m->feat[FEAT_7_0_EDX] |
        m->feat[FEAT_7_1_EAX]) {
        need = 7;
    }
    if (m->feat[FEAT_1_ECX] & CPUID_1_ECX_X2APIC) {
        need = 0xb;
    }
    if (m->feat[FEAT_1_ECX] & CPUID_1_ECX_XSAVE) {
        need = 0xd;
    }
    /* Linux takes the TSC's frequency from leaf 15H on Intel's processors. */
    if (m->vendor[0] == 'G' && (backend->tsc_constant || m->tsc_khz ||
                                (m->feat[FEAT_8000_0007_EDX] & CPUID_8000_0007_EDX_INVTSC))) {
        need = 0x16;
    }
    if (m->feat[FEAT_8000_0001_ECX] & CPUID_8000_0001_ECX_SVM) {
        xneed = 0x8000000a;
    }
    if (m->feat[FEAT_8000_0001_ECX] & CPUID_8000_0001_ECX_TOPOEXT) {
        xneed = 0x8000001e;
    }
    if (!r->level_set) {
        m->level = MIN(MAX(m->level, need), 0x1fu);
    }
    if (!r->xlevel_set) {
        m->xlevel = MAX(m->xlevel, xneed);
    }
}

static bool resolve(const X86CPUModel *row, char *items, bool check, X86CPUModel *m,
                    uint32_t missing[FEAT_WORDS], Error **errp)
{
    ModelRequest r = { .check = check, .migratable = true };

    *m = *row;
    m->hv_leaves = m->hv_timing = m->l3_cache = true;
    m->pmu = m->all_features && backend->kvm;
    if (row->host_identity || (row->all_features && backend->kvm)) {
        if (!backend->kvm) {
            error_setg(errp, "-cpu host needs KVM (-accel kvm); with %s use -cpu max", backend->name);
            return false;
        }
        take_host_identity(m);
    } else if (backend->kvm) {
        /* SYSCALL, SYSENTER and errata follow the real processor, so its vendor must be told. */
        host_vendor(m->vendor);
    }
    while (items) {
        char *item = items;

        items = next_item(items);
        if (*item && !apply_item(m, &r, item, errp)) {
            return false;
        }
    }
    gather_features(m, &r);
    if (!resolve_phys_bits(m, &r, errp) || !filter_features(m, &r, missing, errp)) {
        return false;
    }
    adjust_levels(m, &r);
    return true;
}

static bool resolve_text(const char *arg, bool check, X86CPUModel *m, uint32_t missing[FEAT_WORDS],
                         Error **errp)
{
    char *copy = g_strdup(arg);
    char *items = next_item(copy);
    const X86CPUModel *row = x86_cpu_model_find(copy);
    bool ok = false;

    if (!row) {
        error_setg(errp, "-cpu %s: unknown CPU model (-cpu help lists them)", copy);
    } else {
        ok = resolve(row, items, check, m, missing, errp);
    }
    g_free(copy);
    return ok;
}

bool x86_cpu_set_model(const char *arg, Error **errp)
{
    X86CPUModel m;

    if (!resolve_text(arg ? arg : "qemu64", true, &m, current_missing, errp)) {
        return false;
    }
    current = m;
    current_valid = true;
    return true;
}

bool x86_cpu_model_resolve(const char *arg, X86CPUModel *m, uint32_t missing[FEAT_WORDS],
                           Error **errp)
{
    return resolve_text(arg, false, m, missing, errp);
}

const uint32_t *x86_cpu_model_current_missing(void)
{
    return current_missing;
}

const X86CPUModel *x86_cpu_model_current(void)
{
    if (!current_valid && !x86_cpu_set_model(NULL, NULL)) {
        abort(); /* the default model asks for nothing that could be refused */
    }
    return &current;
}

void x86_cpu_model_missing(const X86CPUModel *m, uint32_t missing[FEAT_WORDS])
{
    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        missing[w] = m->feat[w] & ~backend->supported(w);
    }
}

static void print_model(const X86CPUModel *m, void *opaque)
{
    if (m->alias_of) {
        printf("x86 %-20s  (alias of %s)\n", m->name, m->alias_of);
    } else {
        printf("x86 %-20s  %s\n", m->name, m->desc);
    }
}

void x86_cpu_list(void)
{
    unsigned column = 0;

    printf("Available CPUs:\n");
    x86_cpu_model_foreach(print_model, NULL);
    printf("\nRecognized CPUID flags:\n");
    for (unsigned i = 0; i < x86_feature_count; i++) {
        if (i && !strcmp(x86_features[i].name, "kvmclock") && x86_features[i].bit) {
            continue; /* the second bit of one name */
        }
        if (column && column + strlen(x86_features[i].name) > 74) {
            printf("\n");
            column = 0;
        }
        column += (unsigned)printf("%s%s", column ? " " : "  ", x86_features[i].name);
    }
    printf("\n");
}
