/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The models of -cpu, against what QEMU 7.2 answers to query-cpu-model-expansion (type full) and
 * query-cpu-definitions: features that are true, and those it calls unavailable. It was asked with TCG,
 * which never gives vme; and features that a machine sets rather than a model (hypervisor) are left out here.
 */
#include <glib.h>
#include <string.h>
#include "target/i386/cpuid.h"

#define INTEL "GenuineIntel"
#define AMD   "AuthenticAMD"
#define HYGON "HygonGenuine"

static const FeatureWord words[] = {
    FEAT_1_EDX,
    FEAT_1_ECX,
    FEAT_7_0_EBX,
    FEAT_7_0_ECX,
    FEAT_7_0_EDX,
    FEAT_7_1_EAX,
    FEAT_8000_0001_EDX,
    FEAT_8000_0001_ECX,
    FEAT_8000_0008_EBX,
    FEAT_6_EAX,
    FEAT_XSAVE,
    FEAT_8000_000A_EDX,
    FEAT_ARCH_CAP,
};

typedef struct Model {
    const char *name, *vendor;
    unsigned family, model, stepping;
    uint32_t feat[ARRAY_SIZE(words)];
} Model;

/* clang-format off */
static const Model expected[] = {
    { "486-v1", INTEL, 4, 8, 0,
      { 0x9 } },
    { "pentium-v1", INTEL, 5, 4, 3,
      { 0x8003bd } },
    { "pentium2-v1", INTEL, 6, 5, 2,
      { 0x183fbfd } },
    { "pentium3-v1", INTEL, 6, 7, 3,
      { 0x383fbfd } },
    { "coreduo-v1", INTEL, 6, 14, 8,
      { 0xfc9fbfd, 0x9, 0, 0, 0, 0, 0x100000 } },
    { "n270-v1", INTEL, 6, 28, 2,
      { 0xfc9fbfd, 0x400209, 0, 0, 0, 0, 0x100000, 0x1 } },
    { "core2duo-v1", INTEL, 6, 15, 11,
      { 0xfcbfbfd, 0x2209, 0, 0, 0, 0, 0x20100800, 0x1 } },
    { "qemu32-v1", INTEL, 6, 6, 3,
      { 0x781abfd, 0x1 } },
    { "qemu64-v1", AMD, 15, 107, 1,
      { 0x78bfbfd, 0x2001, 0, 0, 0, 0, 0x20100800, 0x5 } },
    { "kvm32-v1", INTEL, 15, 6, 1,
      { 0x78bfbfd, 0x1 } },
    { "kvm64-v1", INTEL, 15, 6, 1,
      { 0x78bfbfd, 0x2001, 0, 0, 0, 0, 0x20100800 } },
    { "athlon-v1", AMD, 6, 2, 3,
      { 0x783fbfd, 0, 0, 0, 0, 0, 0xc0400000 } },
    { "Conroe-v1", INTEL, 6, 15, 3,
      { 0x78bfbfd, 0x201, 0, 0, 0, 0, 0x20100800, 0x1 } },
    { "Penryn-v1", INTEL, 6, 23, 3,
      { 0x78bfbfd, 0x82201, 0, 0, 0, 0, 0x20100800, 0x1 } },
    { "Nehalem-v1", INTEL, 6, 26, 3,
      { 0x78bfbfd, 0x982201, 0, 0, 0, 0, 0x20100800, 0x1 } },
    { "Nehalem-v2", INTEL, 6, 26, 3,
      { 0x78bfbfd, 0x982201, 0, 0, 0x4000000, 0, 0x20100800, 0x1 } },
    { "Westmere-v1", INTEL, 6, 44, 1,
      { 0x78bfbfd, 0x2982203, 0, 0, 0, 0, 0x20100800, 0x1, 0, 0x4 } },
    { "Westmere-v2", INTEL, 6, 44, 1,
      { 0x78bfbfd, 0x2982203, 0, 0, 0x4000000, 0, 0x20100800, 0x1, 0, 0x4 } },
    { "SandyBridge-v1", INTEL, 6, 42, 1,
      { 0x78bfbfd, 0x17b82203, 0, 0, 0, 0, 0x28100800, 0x1, 0, 0x4, 0x1 } },
    { "SandyBridge-v2", INTEL, 6, 42, 1,
      { 0x78bfbfd, 0x17b82203, 0, 0, 0x4000000, 0, 0x28100800, 0x1, 0, 0x4, 0x1 } },
    { "IvyBridge-v1", INTEL, 6, 58, 9,
      { 0x78bfbfd, 0x77b82203, 0x281, 0, 0, 0, 0x28100800, 0x1, 0, 0x4, 0x1 } },
    { "IvyBridge-v2", INTEL, 6, 58, 9,
      { 0x78bfbfd, 0x77b82203, 0x281, 0, 0x4000000, 0, 0x28100800, 0x1, 0, 0x4, 0x1 } },
    { "Haswell-v1", INTEL, 6, 60, 4,
      { 0x78bfbfd, 0x77fa3203, 0xfb9, 0, 0, 0, 0x28100800, 0x21, 0, 0x4, 0x1 } },
    { "Haswell-v2", INTEL, 6, 60, 1,
      { 0x78bfbfd, 0x77fa3203, 0x7a9, 0, 0, 0, 0x28100800, 0x21, 0, 0x4, 0x1 } },
    { "Haswell-v3", INTEL, 6, 60, 4,
      { 0x78bfbfd, 0x77fa3203, 0xfb9, 0, 0x4000000, 0, 0x28100800, 0x21, 0, 0x4, 0x1 } },
    { "Haswell-v4", INTEL, 6, 60, 1,
      { 0x78bfbfd, 0x77fa3203, 0x7a9, 0, 0x4000000, 0, 0x28100800, 0x21, 0, 0x4, 0x1 } },
    { "Broadwell-v1", INTEL, 6, 61, 2,
      { 0x78bfbfd, 0x77fa3203, 0x1c0fb9, 0, 0, 0, 0x28100800, 0x121, 0, 0x4, 0x1 } },
    { "Broadwell-v2", INTEL, 6, 61, 2,
      { 0x78bfbfd, 0x77fa3203, 0x1c07a9, 0, 0, 0, 0x28100800, 0x121, 0, 0x4, 0x1 } },
    { "Broadwell-v3", INTEL, 6, 61, 2,
      { 0x78bfbfd, 0x77fa3203, 0x1c0fb9, 0, 0x4000000, 0, 0x28100800, 0x121, 0, 0x4, 0x1 } },
    { "Broadwell-v4", INTEL, 6, 61, 2,
      { 0x78bfbfd, 0x77fa3203, 0x1c07a9, 0, 0x4000000, 0, 0x28100800, 0x121, 0, 0x4, 0x1 } },
    { "Skylake-Client-v1", INTEL, 6, 94, 3,
      { 0x78bfbfd, 0x77fa3203, 0x1c0fb9, 0, 0, 0, 0x28100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Client-v2", INTEL, 6, 94, 3,
      { 0x78bfbfd, 0x77fa3203, 0x1c0fb9, 0, 0x4000000, 0, 0x28100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Client-v3", INTEL, 6, 94, 3,
      { 0x78bfbfd, 0x77fa3203, 0x1c07a9, 0, 0x4000000, 0, 0x28100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Client-v4", INTEL, 6, 94, 3,
      { 0x78bfbfd, 0x77fa3203, 0x1c07a9, 0, 0x4000000, 0, 0x28100800, 0x121, 0, 0x4, 0xf } },
    { "Skylake-Server-v1", INTEL, 6, 85, 4,
      { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x8, 0, 0, 0x2c100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Server-v2", INTEL, 6, 85, 4,
      { 0x78bfbfd, 0x77fa3203, 0xd11f0fb9, 0x8, 0x4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Server-v3", INTEL, 6, 85, 4,
      { 0x78bfbfd, 0x77fa3203, 0xd11f07a9, 0x8, 0x4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Server-v4", INTEL, 6, 85, 4,
      { 0x78bfbfd, 0x77fa3203, 0xd11f07a9, 0x8, 0x4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7 } },
    { "Skylake-Server-v5", INTEL, 6, 85, 4,
      { 0x78bfbfd, 0x77fa3203, 0xd11f07a9, 0x8, 0x4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0xf } },
    { "Cascadelake-Server-v1", INTEL, 6, 85, 6,
      { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x808, 0x84000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7 } },
    { "Cascadelake-Server-v2", INTEL, 6, 85, 6,
      { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x808, 0xa4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7, 0, 0x2b } },
    { "Cascadelake-Server-v3", INTEL, 6, 85, 6,
      { 0x78bfbfd, 0x77fa3203, 0xd19f07a9, 0x808, 0xa4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7, 0, 0x2b } },
    { "Cascadelake-Server-v4", INTEL, 6, 85, 6,
      { 0x78bfbfd, 0x77fa3203, 0xd19f07a9, 0x808, 0xa4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0x7, 0, 0x2b } },
    { "Cascadelake-Server-v5", INTEL, 6, 85, 6,
      { 0x78bfbfd, 0x77fa3203, 0xd19f07a9, 0x808, 0xa4000000, 0, 0x2c100800, 0x121, 0, 0x4, 0xf, 0, 0x2b } },
    { "Cooperlake-v1", INTEL, 6, 85, 10,
            { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x808, 0xac000000, 0x20, 0x2c100800, 0x121, 0, 0x4,
        0x7, 0, 0x16b } },
    { "Cooperlake-v2", INTEL, 6, 85, 10,
            { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x808, 0xac000000, 0x20, 0x2c100800, 0x121, 0, 0x4,
        0xf, 0, 0x16b } },
    { "Icelake-Server-v1", INTEL, 6, 134, 0,
      { 0x78bfbfd, 0x77fa3203, 0xd19f0fb9, 0x15f4e, 0x84000000, 0, 0x2c100800, 0x121, 0x200, 0x4, 0x7 } },
    { "Icelake-Server-v2", INTEL, 6, 134, 0,
      { 0x78bfbfd, 0x77fa3203, 0xd19f07a9, 0x15f4e, 0x84000000, 0, 0x2c100800, 0x121, 0x200, 0x4, 0x7 } },
    { "Icelake-Server-v3", INTEL, 6, 134, 0,
            { 0x78bfbfd, 0x77fa3203, 0xd19f07a9, 0x15f4e, 0xa4000000, 0, 0x2c100800, 0x121, 0x200, 0x4,
        0x7, 0, 0x16b } },
    { "Icelake-Server-v4", INTEL, 6, 106, 0,
            { 0x78bfbfd, 0x77fa3203, 0xf1bf07a9, 0x415f4e, 0xa4000010, 0, 0x2c100800, 0x121, 0x200, 0x4,
        0x7, 0, 0x16b } },
    { "Icelake-Server-v5", INTEL, 6, 106, 0,
            { 0x78bfbfd, 0x77fa3203, 0xf1bf07a9, 0x415f4e, 0xa4000010, 0, 0x2c100800, 0x121, 0x200, 0x4,
        0xf, 0, 0x16b } },
    { "Icelake-Server-v6", INTEL, 6, 106, 0,
            { 0x78bfbfd, 0x77fa3203, 0xf1bf07a9, 0x415f4e, 0xa4000010, 0, 0x2c100800, 0x121, 0x200, 0x4,
        0xf, 0, 0x16b } },
    { "KnightsMill-v1", INTEL, 6, 133, 0,
      { 0xf8bfbfd, 0x77f83203, 0x1c0d03a9, 0x4000, 0xc, 0, 0x2c100800, 0x121, 0, 0x4, 0x1 } },
    { "Denverton-v1", INTEL, 6, 95, 1,
      { 0x78bfbfd, 0x47f8220b, 0x20944281, 0, 0xa4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0x7, 0, 0x9 } },
    { "Denverton-v2", INTEL, 6, 95, 1,
      { 0x78bfbfd, 0x47f82203, 0x20940281, 0, 0xa4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0x7, 0, 0x9 } },
    { "Denverton-v3", INTEL, 6, 95, 1,
      { 0x78bfbfd, 0x47f82203, 0x20940281, 0, 0xa4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0xf, 0, 0x9 } },
    { "Snowridge-v1", INTEL, 6, 134, 1,
      { 0x78bfbfd, 0x47f8220b, 0x21944281, 0x1a000104, 0xe4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0x7 } },
    { "Snowridge-v2", INTEL, 6, 134, 1,
      { 0x78bfbfd, 0x47f8220b, 0x21940281, 0x1a000104, 0xe4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0x7 } },
    { "Snowridge-v3", INTEL, 6, 134, 1,
      { 0x78bfbfd, 0x47f8220b, 0x21940281, 0x1a000104, 0xe4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0xf } },
    { "Snowridge-v4", INTEL, 6, 134, 1,
      { 0x78bfbfd, 0x47f8220b, 0x21940281, 0x1a000104, 0xa4000000, 0, 0x2c100800, 0x101, 0, 0x4, 0xf } },
    { "Opteron_G1-v1", AMD, 15, 6, 1,
      { 0x78bfbfd, 0x1, 0, 0, 0, 0, 0x20100800 } },
    { "Opteron_G2-v1", AMD, 15, 6, 1,
      { 0x78bfbfd, 0x2001, 0, 0, 0, 0, 0x20100800, 0x5 } },
    { "Opteron_G3-v1", AMD, 16, 2, 3,
      { 0x78bfbfd, 0x802009, 0, 0, 0, 0, 0x28100800, 0xe5 } },
    { "phenom-v1", AMD, 16, 2, 3,
      { 0x78bfbfd, 0x802009, 0, 0, 0, 0, 0xee500800, 0x65, 0, 0, 0, 0x1 } },
    { "Opteron_G4-v1", AMD, 21, 1, 2,
      { 0x78bfbfd, 0x16982203, 0, 0, 0, 0, 0x2c100800, 0x109e5, 0, 0, 0, 0x9 } },
    { "Opteron_G5-v1", AMD, 21, 2, 0,
      { 0x78bfbfd, 0x36983203, 0, 0, 0, 0, 0x2c100800, 0x2109e5, 0, 0, 0, 0x9 } },
    { "EPYC-v1", AMD, 23, 1, 2,
      { 0x78bfbfd, 0x76d8320b, 0x209c01a9, 0, 0, 0, 0x2e500800, 0x4003f5, 0, 0x4, 0x7, 0x9 } },
    { "EPYC-v2", AMD, 23, 1, 2,
      { 0x78bfbfd, 0x76d8320b, 0x209c01a9, 0, 0, 0, 0x2e500800, 0x4003f5, 0x1000, 0x4, 0x7, 0x9 } },
    { "EPYC-v3", AMD, 23, 1, 2,
      { 0x78bfbfd, 0x76d8320b, 0x209c01a9, 0, 0, 0, 0x2e500800, 0xc003f5, 0x1005, 0x4, 0xf, 0x9 } },
    { "EPYC-Rome-v1", AMD, 23, 49, 0,
      { 0x78bfbfd, 0x76d8320b, 0x219c01a9, 0x400004, 0, 0, 0x2e500800, 0xc003f5, 0x9205, 0x4, 0xf, 0x9 } },
    { "EPYC-Rome-v2", AMD, 23, 49, 0,
      { 0x78bfbfd, 0x76d8320b, 0x219c01a9, 0x400004, 0, 0, 0x2e500800, 0xc003f5, 0x100d205, 0x4, 0xf, 0x9 } },
    { "EPYC-Milan-v1", AMD, 25, 1, 1,
            { 0x78bfbfd, 0x76da320b, 0x219c07a9, 0x40000c, 0x10, 0, 0x2e500800, 0xc003f5, 0x100d205,
        0x4, 0xf, 0x10000009 } },
    { "Dhyana-v1", HYGON, 24, 0, 1,
      { 0x78bfbfd, 0x74d83209, 0x9c01a9, 0, 0, 0, 0x2e500800, 0x4003f5, 0x1000, 0x4, 0x7, 0x9 } },
    { "Dhyana-v2", HYGON, 24, 0, 1,
      { 0x78bfbfd, 0x74d83209, 0x9c01a9, 0, 0, 0, 0x2e500800, 0x4003f5, 0x1000, 0x4, 0xf, 0x9 } },
};

static const struct {
    const char *name, *version;
} aliases[] = {
    { "486", "486-v1" },
    { "Broadwell", "Broadwell-v1" },
    { "Broadwell-IBRS", "Broadwell-v3" },
    { "Broadwell-noTSX", "Broadwell-v2" },
    { "Broadwell-noTSX-IBRS", "Broadwell-v4" },
    { "Cascadelake-Server", "Cascadelake-Server-v1" },
    { "Cascadelake-Server-noTSX", "Cascadelake-Server-v3" },
    { "Conroe", "Conroe-v1" },
    { "Cooperlake", "Cooperlake-v1" },
    { "Denverton", "Denverton-v1" },
    { "Dhyana", "Dhyana-v1" },
    { "EPYC", "EPYC-v1" },
    { "EPYC-IBPB", "EPYC-v2" },
    { "EPYC-Milan", "EPYC-Milan-v1" },
    { "EPYC-Rome", "EPYC-Rome-v1" },
    { "Haswell", "Haswell-v1" },
    { "Haswell-IBRS", "Haswell-v3" },
    { "Haswell-noTSX", "Haswell-v2" },
    { "Haswell-noTSX-IBRS", "Haswell-v4" },
    { "Icelake-Server", "Icelake-Server-v1" },
    { "Icelake-Server-noTSX", "Icelake-Server-v2" },
    { "IvyBridge", "IvyBridge-v1" },
    { "IvyBridge-IBRS", "IvyBridge-v2" },
    { "KnightsMill", "KnightsMill-v1" },
    { "Nehalem", "Nehalem-v1" },
    { "Nehalem-IBRS", "Nehalem-v2" },
    { "Opteron_G1", "Opteron_G1-v1" },
    { "Opteron_G2", "Opteron_G2-v1" },
    { "Opteron_G3", "Opteron_G3-v1" },
    { "Opteron_G4", "Opteron_G4-v1" },
    { "Opteron_G5", "Opteron_G5-v1" },
    { "Penryn", "Penryn-v1" },
    { "SandyBridge", "SandyBridge-v1" },
    { "SandyBridge-IBRS", "SandyBridge-v2" },
    { "Skylake-Client", "Skylake-Client-v1" },
    { "Skylake-Client-IBRS", "Skylake-Client-v2" },
    { "Skylake-Client-noTSX-IBRS", "Skylake-Client-v3" },
    { "Skylake-Server", "Skylake-Server-v1" },
    { "Skylake-Server-IBRS", "Skylake-Server-v2" },
    { "Skylake-Server-noTSX-IBRS", "Skylake-Server-v3" },
    { "Snowridge", "Snowridge-v1" },
    { "Westmere", "Westmere-v1" },
    { "Westmere-IBRS", "Westmere-v2" },
    { "athlon", "athlon-v1" },
    { "core2duo", "core2duo-v1" },
    { "coreduo", "coreduo-v1" },
    { "kvm32", "kvm32-v1" },
    { "kvm64", "kvm64-v1" },
    { "n270", "n270-v1" },
    { "pentium", "pentium-v1" },
    { "pentium2", "pentium2-v1" },
    { "pentium3", "pentium3-v1" },
    { "phenom", "phenom-v1" },
    { "qemu32", "qemu32-v1" },
    { "qemu64", "qemu64-v1" },
};
/* clang-format on */

static const X86CPUModel *find(const char *name)
{
    const X86CPUModel *m = x86_cpu_model_find(name);

    if (!m) {
        g_error("no model %s", name);
    }
    return m;
}

static void compare_word(const X86CPUModel *m, FeatureWord w, uint32_t expect)
{
    uint32_t is = m->feat[w] & ~(w == FEAT_1_EDX ? CPUID_1_EDX_VME : 0u);
    uint32_t mask[FEAT_WORDS] = { 0 };

    if (is != expect) {
        mask[w] = is ^ expect;
        g_error("%s: %s is %#x, not %#x: %s", m->name, x86_feature_word_name(w), is, expect,
                x86_feature_names(mask));
    }
}

static void test_versions(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(expected); i++) {
        const Model *e = &expected[i];
        const X86CPUModel *m = find(e->name);

        g_assert_cmpstr(m->vendor, ==, e->vendor);
        g_assert_cmpuint(m->family, ==, e->family);
        g_assert_cmpuint(m->model, ==, e->model);
        g_assert_cmpuint(m->stepping, ==, e->stepping);
        for (unsigned w = 0; w < ARRAY_SIZE(words); w++) {
            compare_word(m, words[w], e->feat[w]);
        }
        g_assert_null(m->alias_of);
    }
}

static void test_aliases(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(aliases); i++) {
        const X86CPUModel *m = find(aliases[i].name), *v = find(aliases[i].version);

        g_assert_cmpstr(m->alias_of, ==, v->name);
        g_assert_cmpmem(m->feat, sizeof(m->feat), v->feat, sizeof(v->feat));
        g_assert_true(m->family == v->family && m->model == v->model && m->stepping == v->stepping);
    }
}

static void count_one(const X86CPUModel *m, void *opaque)
{
    unsigned *n = opaque;

    *n += !m->all_features && !m->no_defaults; /* but for max, host, base */
}

/* The table here and the one of the program name the same models. */
static void test_nothing_else(void)
{
    unsigned n = 0;

    x86_cpu_model_foreach(count_one, &n);
    g_assert_cmpuint(n, ==, ARRAY_SIZE(expected) + ARRAY_SIZE(aliases));
}

/* What the software CPU makes of each: the identity stays, and a feature is there or missing, never both. */
static void resolve_one(const X86CPUModel *row, void *opaque)
{
    uint32_t missing[FEAT_WORDS];
    X86CPUModel m;
    Error *err = NULL;

    if (row->host_identity) {
        g_assert_false(x86_cpu_model_resolve(row->name, &m, missing, &err));
        error_free(err);
        return;
    }
    g_assert_true(x86_cpu_model_resolve(row->name, &m, missing, &error_abort));
    g_assert_cmpstr(m.vendor, ==, row->vendor);
    g_assert_true(m.family == row->family && m.model == row->model && m.stepping == row->stepping);
    for (unsigned w = 0; w < FEAT_WORDS; w++) {
        g_assert_cmphex(m.feat[w] & ~x86_tcg_backend.supported((FeatureWord)w), ==, 0);
        g_assert_cmphex(missing[w] & m.feat[w], ==, 0);
    }
}

static void test_resolve(void)
{
    x86_cpu_set_backend(&x86_tcg_backend);
    x86_cpu_model_foreach(resolve_one, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu-models/versions", test_versions);
    g_test_add_func("/cpu-models/aliases", test_aliases);
    g_test_add_func("/cpu-models/nothing-else", test_nothing_else);
    g_test_add_func("/cpu-models/resolve", test_resolve);
    return g_test_run();
}
