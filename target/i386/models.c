/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of CPU models. A row says what it adds to and drops from the one it is based on, as
 * processor generations did. Names, identities and features are those QEMU's users know. X alone is X-v1.
 */
#include "target/i386/cpuid.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

typedef struct ModelRow {
    const char *name;
    const char *based_on; /* a row above; NULL: nothing */
    const char *desc;     /* NULL: the model_id */
    const char *model_id; /* NULL, and family 0: as the row that this one is based on */
    const char *vendor;
    uint16_t family, model, stepping;
    uint32_t level, xlevel;
    const char *adds, *drops; /* names of features, separated by spaces */
} ModelRow;

#define INTEL "GenuineIntel"
#define AMD   "AuthenticAMD"
#define HYGON "HygonGenuine"
#define FIGURES(who, fam, mod, step, lvl, xlvl)                                                    \
    .vendor = (who), .family = (fam), .model = (mod), .stepping = (step), .level = (lvl),          \
    .xlevel = (xlvl)

/* clang-format off */
static const ModelRow rows[] = {
    { .name = "486-v1",
      .model_id = "",
      FIGURES(INTEL, 4, 8, 0, 0x1, 0x0),
      .adds = "fpu vme pse" },
    { .name = "pentium-v1", .based_on = "486-v1",
      FIGURES(INTEL, 5, 4, 3, 0x1, 0x0),
      .adds = "de tsc msr mce cx8 apic mmx" },
    { .name = "pentium2-v1", .based_on = "pentium-v1",
      FIGURES(INTEL, 6, 5, 2, 0x2, 0x0),
      .adds = "pae sep mtrr pge mca cmov pat pse36 fxsr" },
    { .name = "pentium3-v1", .based_on = "pentium2-v1",
      FIGURES(INTEL, 6, 7, 3, 0x3, 0x0),
      .adds = "sse" },
    { .name = "coreduo-v1", .based_on = "pentium3-v1",
      .model_id = "Genuine Intel(R) CPU           T2600  @ 2.16GHz",
      FIGURES(INTEL, 6, 14, 8, 0xa, 0x80000008),
      .adds = "clflush acpi sse2 ss pni monitor nx",
      .drops = "pse36" },
    { .name = "n270-v1", .based_on = "coreduo-v1",
      .model_id = "Intel(R) Atom(TM) CPU N270   @ 1.60GHz",
      FIGURES(INTEL, 6, 28, 2, 0xa, 0x80000008),
      .adds = "ssse3 movbe lahf-lm" },
    { .name = "core2duo-v1", .based_on = "coreduo-v1",
      .model_id = "Intel(R) Core(TM)2 Duo CPU     T7700  @ 2.40GHz",
      FIGURES(INTEL, 6, 15, 11, 0xa, 0x80000008),
      .adds = "pse36 ssse3 cx16 syscall lm lahf-lm" },
    { .name = "qemu32-v1", .based_on = "pentium3-v1",
      .model_id = "QEMU Virtual CPU version 2.5+",
      FIGURES(INTEL, 6, 6, 3, 0x4, 0x80000004),
      .adds = "sse2 pni",
      .drops = "vme mtrr mca pse36" },
    { .name = "qemu64-v1", .based_on = "qemu32-v1",
      FIGURES(AMD, 15, 107, 1, 0xd, 0x8000000a),
      .adds = "mtrr mca pse36 clflush cx16 syscall nx lm lahf-lm svm" },
    { .name = "kvm32-v1", .based_on = "pentium3-v1",
      .model_id = "Common 32-bit KVM processor",
      FIGURES(INTEL, 15, 6, 1, 0x5, 0x80000008),
      .adds = "clflush sse2 pni" },
    { .name = "kvm64-v1", .based_on = "kvm32-v1",
      .model_id = "Common KVM processor",
      FIGURES(INTEL, 15, 6, 1, 0xd, 0x80000008),
      .adds = "cx16 syscall nx lm" },
    { .name = "athlon-v1", .based_on = "pentium3-v1",
      .model_id = "QEMU Virtual CPU version 2.5+",
      FIGURES(AMD, 6, 2, 3, 0x2, 0x80000008),
      .adds = "sse2 mmxext 3dnowext 3dnow" },
    { .name = "Conroe-v1", .based_on = "kvm64-v1",
      .model_id = "Intel Celeron_4x0 (Conroe/Merom Class Core 2)",
      FIGURES(INTEL, 6, 15, 3, 0xa, 0x80000008),
      .adds = "ssse3 lahf-lm",
      .drops = "cx16" },
    { .name = "Penryn-v1", .based_on = "Conroe-v1",
      .model_id = "Intel Core 2 Duo P9xxx (Penryn Class Core 2)",
      FIGURES(INTEL, 6, 23, 3, 0xa, 0x80000008),
      .adds = "cx16 sse4.1" },
    { .name = "Nehalem-v1", .based_on = "Penryn-v1",
      .model_id = "Intel Core i7 9xx (Nehalem Class Core i7)",
      FIGURES(INTEL, 6, 26, 3, 0xb, 0x80000008),
      .adds = "sse4.2 popcnt" },
    { .name = "Nehalem-v2", .based_on = "Nehalem-v1",
      .model_id = "Intel Core i7 9xx (Nehalem Core i7, IBRS update)",
      .adds = "spec-ctrl" },
    { .name = "Westmere-v1", .based_on = "Nehalem-v1",
      .model_id = "Westmere E56xx/L56xx/X56xx (Nehalem-C)",
      FIGURES(INTEL, 6, 44, 1, 0xb, 0x80000008),
      .adds = "pclmulqdq aes arat" },
    { .name = "Westmere-v2", .based_on = "Westmere-v1",
      .model_id = "Westmere E56xx/L56xx/X56xx (IBRS update)",
      .adds = "spec-ctrl" },
    { .name = "SandyBridge-v1", .based_on = "Westmere-v1",
      .model_id = "Intel Xeon E312xx (Sandy Bridge)",
      FIGURES(INTEL, 6, 42, 1, 0xd, 0x80000008),
      .adds = "x2apic tsc-deadline xsave avx rdtscp xsaveopt" },
    { .name = "SandyBridge-v2", .based_on = "SandyBridge-v1",
      .model_id = "Intel Xeon E312xx (Sandy Bridge, IBRS update)",
      .adds = "spec-ctrl" },
    { .name = "IvyBridge-v1", .based_on = "SandyBridge-v1",
      .model_id = "Intel Xeon E3-12xx v2 (Ivy Bridge)",
      FIGURES(INTEL, 6, 58, 9, 0xd, 0x80000008),
      .adds = "f16c rdrand fsgsbase smep erms" },
    { .name = "IvyBridge-v2", .based_on = "IvyBridge-v1",
      .model_id = "Intel Xeon E3-12xx v2 (Ivy Bridge, IBRS)",
      .adds = "spec-ctrl" },
    { .name = "Haswell-v1", .based_on = "IvyBridge-v1",
      .model_id = "Intel Core Processor (Haswell)",
      FIGURES(INTEL, 6, 60, 4, 0xd, 0x80000008),
      .adds = "fma pcid movbe bmi1 hle avx2 bmi2 invpcid rtm abm" },
    { .name = "Haswell-v2", .based_on = "Haswell-v1",
      .model_id = "Intel Core Processor (Haswell, no TSX)",
      FIGURES(INTEL, 6, 60, 1, 0xd, 0x80000008),
      .drops = "hle rtm" },
    { .name = "Haswell-v3", .based_on = "Haswell-v2",
      .model_id = "Intel Core Processor (Haswell, IBRS)",
      FIGURES(INTEL, 6, 60, 4, 0xd, 0x80000008),
      .adds = "hle rtm spec-ctrl" },
    { .name = "Haswell-v4", .based_on = "Haswell-v3",
      .model_id = "Intel Core Processor (Haswell, no TSX, IBRS)",
      FIGURES(INTEL, 6, 60, 1, 0xd, 0x80000008),
      .drops = "hle rtm" },
    { .name = "Broadwell-v1", .based_on = "Haswell-v1",
      .model_id = "Intel Core Processor (Broadwell)",
      FIGURES(INTEL, 6, 61, 2, 0xd, 0x80000008),
      .adds = "rdseed adx smap 3dnowprefetch" },
    { .name = "Broadwell-v2", .based_on = "Broadwell-v1",
      .model_id = "Intel Core Processor (Broadwell, no TSX)",
      .drops = "hle rtm" },
    { .name = "Broadwell-v3", .based_on = "Broadwell-v2",
      .model_id = "Intel Core Processor (Broadwell, IBRS)",
      .adds = "hle rtm spec-ctrl" },
    { .name = "Broadwell-v4", .based_on = "Broadwell-v3",
      .model_id = "Intel Core Processor (Broadwell, no TSX, IBRS)",
      .drops = "hle rtm" },
    { .name = "Skylake-Client-v1", .based_on = "Broadwell-v1",
      .model_id = "Intel Core Processor (Skylake)",
      FIGURES(INTEL, 6, 94, 3, 0xd, 0x80000008),
      .adds = "xsavec xgetbv1" },
    { .name = "Skylake-Client-v2", .based_on = "Skylake-Client-v1",
      .model_id = "Intel Core Processor (Skylake, IBRS)",
      .adds = "spec-ctrl" },
    { .name = "Skylake-Client-v3", .based_on = "Skylake-Client-v2",
      .model_id = "Intel Core Processor (Skylake, IBRS, no TSX)",
      .drops = "hle rtm" },
    { .name = "Skylake-Client-v4", .based_on = "Skylake-Client-v3",
      .desc = "Intel Core Processor (Skylake, IBRS, no TSX) [IBRS, XSAVES, no TSX]",
      .adds = "xsaves" },
    { .name = "Skylake-Server-v1", .based_on = "Skylake-Client-v1",
      .model_id = "Intel Xeon Processor (Skylake)",
      FIGURES(INTEL, 6, 85, 4, 0xd, 0x80000008),
      .adds = "avx512f avx512dq clflushopt clwb avx512cd avx512bw avx512vl pku pdpe1gb" },
    { .name = "Skylake-Server-v2", .based_on = "Skylake-Server-v1",
      .model_id = "Intel Xeon Processor (Skylake, IBRS)",
      .adds = "spec-ctrl",
      .drops = "clflushopt" },
    { .name = "Skylake-Server-v3", .based_on = "Skylake-Server-v2",
      .model_id = "Intel Xeon Processor (Skylake, IBRS, no TSX)",
      .drops = "hle rtm" },
    { .name = "Skylake-Server-v4", .based_on = "Skylake-Server-v3",
      .desc = "Intel Xeon Processor (Skylake, IBRS, no TSX) [IBRS, EPT switching, no TSX]" },
    { .name = "Skylake-Server-v5", .based_on = "Skylake-Server-v4",
      .desc = "Intel Xeon Processor (Skylake, IBRS, no TSX) [IBRS, XSAVES, EPT switching, no TSX]",
      .adds = "xsaves" },
    { .name = "Cascadelake-Server-v1", .based_on = "Skylake-Server-v1",
      .model_id = "Intel Xeon Processor (Cascadelake)",
      FIGURES(INTEL, 6, 85, 6, 0xd, 0x80000008),
      .adds = "avx512vnni spec-ctrl ssbd" },
    { .name = "Cascadelake-Server-v2", .based_on = "Cascadelake-Server-v1",
      .desc = "Intel Xeon Processor (Cascadelake) [ARCH_CAPABILITIES]",
      .adds = "arch-capabilities rdctl-no ibrs-all skip-l1dfl-vmentry mds-no" },
    { .name = "Cascadelake-Server-v3", .based_on = "Cascadelake-Server-v2",
      .desc = "Intel Xeon Processor (Cascadelake) [ARCH_CAPABILITIES, no TSX]",
      .drops = "hle rtm" },
    { .name = "Cascadelake-Server-v4", .based_on = "Cascadelake-Server-v3",
      .desc = "Intel Xeon Processor (Cascadelake) [ARCH_CAPABILITIES, EPT switching, no TSX]" },
    { .name = "Cascadelake-Server-v5", .based_on = "Cascadelake-Server-v4",
      .desc = "Intel Xeon Processor (Cascadelake) [ARCH_CAPABILITIES, EPT switching, XSAVES, no TSX]",
      .adds = "xsaves" },
    { .name = "Cooperlake-v1", .based_on = "Cascadelake-Server-v4",
      .model_id = "Intel Xeon Processor (Cooperlake)",
      FIGURES(INTEL, 6, 85, 10, 0xd, 0x80000008),
      .adds = "hle rtm stibp avx512-bf16 pschange-mc-no taa-no" },
    { .name = "Cooperlake-v2", .based_on = "Cooperlake-v1",
      .desc = "Intel Xeon Processor (Cooperlake) [XSAVES]",
      .adds = "xsaves" },
    { .name = "Icelake-Server-v1", .based_on = "Cascadelake-Server-v1",
      .model_id = "Intel Xeon Processor (Icelake)",
      FIGURES(INTEL, 6, 134, 0, 0xd, 0x80000008),
      .adds = "avx512vbmi umip avx512vbmi2 gfni vaes vpclmulqdq avx512bitalg avx512-vpopcntdq la57 "
              "wbnoinvd" },
    { .name = "Icelake-Server-v2", .based_on = "Icelake-Server-v1",
      .desc = "Intel Xeon Processor (Icelake) [no TSX]",
      .drops = "hle rtm" },
    { .name = "Icelake-Server-v3", .based_on = "Icelake-Server-v2",
      .adds = "arch-capabilities rdctl-no ibrs-all skip-l1dfl-vmentry mds-no pschange-mc-no taa-no" },
    { .name = "Icelake-Server-v4", .based_on = "Icelake-Server-v3",
      FIGURES(INTEL, 6, 106, 0, 0xd, 0x80000008),
      .adds = "avx512ifma sha-ni rdpid fsrm" },
    { .name = "Icelake-Server-v5", .based_on = "Icelake-Server-v4",
      .desc = "Intel Xeon Processor (Icelake) [XSAVES]",
      .adds = "xsaves" },
    { .name = "Icelake-Server-v6", .based_on = "Icelake-Server-v5",
      .desc = "Intel Xeon Processor (Icelake) [5-level EPT]" },
    { .name = "KnightsMill-v1", .based_on = "Broadwell-v1",
      .model_id = "Intel Xeon Phi Processor (Knights Mill)",
      FIGURES(INTEL, 6, 133, 0, 0xd, 0x80000008),
      .adds = "ss avx512f avx512pf avx512er avx512cd avx512-vpopcntdq avx512-4vnniw avx512-4fmaps "
              "pdpe1gb",
      .drops = "pcid hle invpcid rtm smap" },
    { .name = "Denverton-v1", .based_on = "Westmere-v1",
      .model_id = "Intel Atom Processor (Denverton)",
      FIGURES(INTEL, 6, 95, 1, 0x15, 0x80000008),
      .adds = "monitor x2apic movbe tsc-deadline xsave rdrand fsgsbase smep erms mpx rdseed smap "
              "clflushopt sha-ni spec-ctrl arch-capabilities ssbd pdpe1gb rdtscp 3dnowprefetch "
              "xsaveopt xsavec xgetbv1 rdctl-no skip-l1dfl-vmentry" },
    { .name = "Denverton-v2", .based_on = "Denverton-v1",
      .desc = "Intel Atom Processor (Denverton) [no MPX, no MONITOR]",
      .drops = "monitor mpx" },
    { .name = "Denverton-v3", .based_on = "Denverton-v2",
      .desc = "Intel Atom Processor (Denverton) [XSAVES, no MPX, no MONITOR]",
      .adds = "xsaves" },
    { .name = "Snowridge-v1", .based_on = "Denverton-v1",
      .model_id = "Intel Atom Processor (SnowRidge)",
      FIGURES(INTEL, 6, 134, 1, 0x1b, 0x80000008),
      .adds = "clwb umip gfni cldemote movdiri movdir64b core-capability",
      .drops = "rdctl-no skip-l1dfl-vmentry" },
    { .name = "Snowridge-v2", .based_on = "Snowridge-v1",
      .model_id = "Intel Atom Processor (Snowridge, no MPX)",
      .drops = "mpx" },
    { .name = "Snowridge-v3", .based_on = "Snowridge-v2",
      .desc = "Intel Atom Processor (Snowridge, no MPX) [XSAVES, no MPX]",
      .adds = "xsaves" },
    { .name = "Snowridge-v4", .based_on = "Snowridge-v3",
      .desc = "Intel Atom Processor (Snowridge, no MPX) [no split lock detect, no core-capability]",
      .drops = "core-capability" },
    { .name = "Opteron_G1-v1", .based_on = "kvm64-v1",
      .model_id = "AMD Opteron 240 (Gen 1 Class Opteron)",
      FIGURES(AMD, 15, 6, 1, 0x5, 0x80000008),
      .drops = "cx16" },
    { .name = "Opteron_G2-v1", .based_on = "Opteron_G1-v1",
      .model_id = "AMD Opteron 22xx (Gen 2 Class Opteron)",
      FIGURES(AMD, 15, 6, 1, 0x5, 0x8000000a),
      .adds = "cx16 lahf-lm svm" },
    { .name = "Opteron_G3-v1", .based_on = "Opteron_G2-v1",
      .model_id = "AMD Opteron 23xx (Gen 3 Class Opteron)",
      FIGURES(AMD, 16, 2, 3, 0x5, 0x8000000a),
      .adds = "monitor popcnt rdtscp abm sse4a misalignsse" },
    { .name = "phenom-v1", .based_on = "Opteron_G3-v1",
      .model_id = "AMD Phenom(tm) 9550 Quad-Core Processor",
      FIGURES(AMD, 16, 2, 3, 0x5, 0x8000001a),
      .adds = "mmxext fxsr-opt pdpe1gb 3dnowext 3dnow npt",
      .drops = "misalignsse" },
    { .name = "Opteron_G4-v1", .based_on = "Opteron_G3-v1",
      .model_id = "AMD Opteron 62xx class CPU",
      FIGURES(AMD, 21, 1, 2, 0xd, 0x8000001a),
      .adds = "pclmulqdq ssse3 sse4.1 sse4.2 aes xsave avx pdpe1gb 3dnowprefetch xop fma4 npt "
              "nrip-save",
      .drops = "monitor" },
    { .name = "Opteron_G5-v1", .based_on = "Opteron_G4-v1",
      .model_id = "AMD Opteron 63xx class CPU",
      FIGURES(AMD, 21, 2, 0, 0xd, 0x8000001a),
      .adds = "fma f16c tbm" },
    { .name = "EPYC-v1", .based_on = "Opteron_G5-v1",
      .model_id = "AMD EPYC Processor",
      FIGURES(AMD, 23, 1, 2, 0xd, 0x8000001e),
      .adds = "monitor movbe rdrand fsgsbase bmi1 avx2 smep bmi2 rdseed adx smap clflushopt sha-ni "
              "mmxext fxsr-opt cr8legacy osvw topoext arat xsaveopt xsavec xgetbv1",
      .drops = "xop fma4 tbm" },
    { .name = "EPYC-v2", .based_on = "EPYC-v1",
      .model_id = "AMD EPYC Processor (with IBPB)",
      .adds = "ibpb" },
    { .name = "EPYC-v3", .based_on = "EPYC-v2",
      .model_id = "AMD EPYC Processor",
      .adds = "perfctr-core clzero xsaveerptr xsaves" },
    { .name = "EPYC-Rome-v1", .based_on = "EPYC-v1",
      .model_id = "AMD EPYC-Rome Processor",
      FIGURES(AMD, 23, 49, 0, 0xd, 0x8000001e),
      .adds = "clwb umip rdpid perfctr-core clzero xsaveerptr wbnoinvd ibpb amd-stibp xsaves" },
    { .name = "EPYC-Rome-v2", .based_on = "EPYC-Rome-v1",
      .adds = "ibrs amd-ssbd" },
    { .name = "EPYC-Milan-v1", .based_on = "EPYC-Rome-v1",
      .model_id = "AMD EPYC-Milan Processor",
      FIGURES(AMD, 25, 1, 1, 0xd, 0x8000001e),
      .adds = "pcid erms invpcid pku fsrm ibrs amd-ssbd svme-addr-chk" },
    { .name = "Dhyana-v1", .based_on = "EPYC-v2",
      .model_id = "Hygon Dhyana Processor",
      FIGURES(HYGON, 24, 0, 1, 0xd, 0x8000001e),
      .drops = "pclmulqdq aes sha-ni" },
    { .name = "Dhyana-v2", .based_on = "Dhyana-v1",
      .desc = "Hygon Dhyana Processor [XSAVES]",
      .adds = "xsaves" },
};
/* clang-format on */

/* Further names of versions. */
static const struct {
    const char *name, *version;
} aliases[] = {
    { "Broadwell-IBRS", "Broadwell-v3" },
    { "Broadwell-noTSX", "Broadwell-v2" },
    { "Broadwell-noTSX-IBRS", "Broadwell-v4" },
    { "Cascadelake-Server-noTSX", "Cascadelake-Server-v3" },
    { "EPYC-IBPB", "EPYC-v2" },
    { "Haswell-IBRS", "Haswell-v3" },
    { "Haswell-noTSX", "Haswell-v2" },
    { "Haswell-noTSX-IBRS", "Haswell-v4" },
    { "Icelake-Server-noTSX", "Icelake-Server-v2" },
    { "IvyBridge-IBRS", "IvyBridge-v2" },
    { "Nehalem-IBRS", "Nehalem-v2" },
    { "SandyBridge-IBRS", "SandyBridge-v2" },
    { "Skylake-Client-IBRS", "Skylake-Client-v2" },
    { "Skylake-Client-noTSX-IBRS", "Skylake-Client-v3" },
    { "Skylake-Server-IBRS", "Skylake-Server-v2" },
    { "Skylake-Server-noTSX-IBRS", "Skylake-Server-v3" },
    { "Westmere-IBRS", "Westmere-v2" },
};

/* Those that no row describes. */
static const X86CPUModel special[] = {
    {
        .name = "max", .desc = "Enables all features supported by the accelerator in the current host",
        .model_id = "QEMU TCG CPU version 2.5+", .vendor = AMD, .family = 15, .model = 107, .stepping = 1,
        .level = 0xd, .xlevel = 0x8000001f, .all_features = true,
    },
    {
        .name = "host", .desc = "processor with all supported host features (KVM only)",
        .vendor = AMD, .all_features = true, .host_identity = true,
    },
    {
        /* What a model is expanded to: every property is then said. */
        .name = "base", .desc = "base CPU model type with no features enabled", .vendor = AMD,
        .level = 0xd, .xlevel = 0x80000008, .no_defaults = true,
    },
};

/* ---- From rows to models ---- */

/* What names, separated by spaces, stand for; a name that is unknown is a mistake in the table. */
static void feature_bits(const char *names, uint32_t bits[FEAT_WORDS])
{
    uint32_t mask[FEAT_WORDS];
    char name[32];

    memset(bits, 0, FEAT_WORDS * sizeof(bits[0]));
    while (names && *names) {
        size_t n = strcspn(names, " ");
        snprintf(name, sizeof(name), "%.*s", (int)n, names);
        if (!x86_feature_lookup(name, mask)) {
            abort();
        }
        for (unsigned w = 0; w < FEAT_WORDS; w++) {
            bits[w] |= mask[w];
        }
        names += n + strspn(names + n, " ");
    }
}

/* name is a row's; a mistake in the table otherwise. */
static unsigned row_of(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        if (!strcmp(rows[i].name, name)) {
            return i;
        }
    }
    abort();
}

static X86CPUModel versions[ARRAY_SIZE(rows)]; /* name NULL: not made yet */

static const X86CPUModel *version_of(unsigned i)
{
    const ModelRow *r = &rows[i];
    X86CPUModel *m = &versions[i];
    uint32_t adds[FEAT_WORDS], drops[FEAT_WORDS];

    if (m->name) {
        return m;
    }
    if (r->based_on) {
        *m = *version_of(row_of(r->based_on));
    }
    if (r->family) {
        g_strlcpy(m->vendor, r->vendor, sizeof(m->vendor));
        m->family = r->family;
        m->model = r->model;
        m->stepping = r->stepping;
        m->level = r->level;
        m->xlevel = r->xlevel;
    }
    if (r->model_id) {
        g_strlcpy(m->model_id, r->model_id, sizeof(m->model_id));
    }
    feature_bits(r->adds, adds);
    feature_bits(r->drops, drops);
    for (unsigned w = 0; w < FEAT_WORDS; w++) {
        m->feat[w] = (m->feat[w] | adds[w]) & ~drops[w];
    }
    m->desc = r->desc ? r->desc : m->model_id;
    m->name = r->name;
    return m;
}

/* ---- All names ---- */

#define NAMES_MAX (2 * ARRAY_SIZE(rows) + ARRAY_SIZE(aliases) + ARRAY_SIZE(special))
static X86CPUModel all[NAMES_MAX];
static unsigned all_count;

static X86CPUModel *add_name(const X86CPUModel *m)
{
    all[all_count] = *m;
    return &all[all_count++];
}

static void add_alias(const char *name, const X86CPUModel *version)
{
    X86CPUModel *m = add_name(version);

    m->name = name;
    m->alias_of = version->name;
}

static void make_all(void)
{
    if (all_count) {
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        const X86CPUModel *v = version_of(i);

        if (g_str_has_suffix(v->name, "-v1")) {
            add_alias(g_strndup(v->name, strlen(v->name) - 3), v);
        }
        add_name(v);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(aliases); i++) {
        add_alias(aliases[i].name, version_of(row_of(aliases[i].version)));
    }
    for (unsigned i = 0; i < ARRAY_SIZE(special); i++) {
        add_name(&special[i]);
    }
}

void x86_cpu_model_foreach(void (*fn)(const X86CPUModel *m, void *opaque), void *opaque)
{
    make_all();
    for (unsigned i = 0; i < all_count; i++) {
        fn(&all[i], opaque);
    }
}

const X86CPUModel *x86_cpu_model_find(const char *name)
{
    make_all();
    for (unsigned i = 0; i < all_count; i++) {
        if (!strcmp(all[i].name, name)) {
            return &all[i];
        }
    }
    return NULL;
}
