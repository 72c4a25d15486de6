/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every encoding of what the first x86-64 did not have decodes as an instruction that raises, if the
 * host lacks it: so it is neither interpreted on the host nor translated. The list is by opcode, from the
 * SDM's opcode map (2D, appendix A), and not by what the decoder calls it.
 */
#include <glib.h>
#include <string.h>
#include "interp-vm.h"
#include "target/i386/cpuid.h"

static Vm *vm;
static unsigned tried, valid;

/* Does the instruction raise #UD (or #GP, if it is none)? */
static bool raises(const uint8_t *bytes)
{
    TcgEngine *g = vm->c->tcg->engine;
    Insn out;

    g_assert_cmpint(tcg_decode_one(vm->c, g, vm->c->tcg->mode_key, bytes, INSN_MAX_LEN, VM_CODE, 0, &out), ==,
                    DECODE_OK);
    tried++;
    valid += !tcg_insn_raises(&out);
    return tcg_insn_raises(&out);
}

static void must_raise(const uint8_t *bytes, bool strict)
{
    bool r = raises(bytes);

    if (strict && !r) {
        g_error("%02x %02x %02x %02x %02x %02x is decoded as %s", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4],
                bytes[5], ZydisMnemonicGetString(vm->c->tcg->engine->decode.zi.mnemonic));
    }
}

/* In map 0F (1), 0F38 (2), 0F3A (3) or none (0), with mandatory prefix p. */
static bool is_later(unsigned map, unsigned p, bool w, unsigned op, unsigned modrm)
{
    unsigned reg = modrm >> 3 & 7;
    bool mem = modrm < 0xc0;

    if (map >= 2) {
        return !(map == 2 && p == 0x66 && op == 0x82); /* INVPCID needs nothing of the host */
    }
    if (map == 0) {
        return mem && reg == 1 && (op == 0xdb || op == 0xdd || op == 0xdf); /* FISTTP */
    }
    switch (op) {
    case 0x12:
        return p == 0xf2 || p == 0xf3; /* MOVDDUP, MOVSLDUP */
    case 0x16:
        return p == 0xf3; /* MOVSHDUP */
    case 0x2b:
        return p == 0xf2 || p == 0xf3; /* MOVNTSD, MOVNTSS */
    case 0x78: case 0x79:
        return p == 0x66 || p == 0xf2; /* EXTRQ, INSERTQ */
    case 0x7c: case 0x7d:
        return p == 0x66 || p == 0xf2; /* HADDPx, HSUBPx */
    case 0xb8:
        return p == 0xf3; /* POPCNT */
    case 0xc7:
        return mem ? reg == 1 && w : reg >= 6; /* CMPXCHG16B; RDRAND, RDSEED, RDPID is F3 */
    case 0xd0:
        return p == 0x66 || p == 0xf2; /* ADDSUBPx */
    case 0xf0:
        return p == 0xf2; /* LDDQU */
    default:
        return false;
    }
}

/* [RSI], or register 1. */
static unsigned modrm_of(unsigned n)
{
    return (n & 7) << 3 | (n & 8 ? 0xc1 : 6);
}

static void legacy(bool strict)
{
    static const uint8_t prefix[4] = { 0, 0x66, 0xf3, 0xf2 };

    for (unsigned k = 0; k < 4 * 4 * 2 * 256 * 16; k++) {
        unsigned map = k & 3, op = k >> 5 & 255, modrm = modrm_of(k >> 13 & 15), n = 0;
        uint8_t p = prefix[k >> 2 & 3], bytes[INSN_MAX_LEN] = { 0 };
        bool w = k >> 4 & 1;

        if (!is_later(map, p, w, op, modrm) || (map == 1 && op == 0xc7 && p == 0xf3)) {
            continue;
        }
        if (p) {
            bytes[n++] = p;
        }
        if (w) {
            bytes[n++] = 0x48;
        }
        if (map) {
            bytes[n++] = 0x0f;
        }
        if (map >= 2) {
            bytes[n++] = map == 2 ? 0x38 : 0x3a;
        }
        bytes[n++] = (uint8_t)op;
        bytes[n] = (uint8_t)modrm;
        must_raise(bytes, strict);
    }
}

/* VEX in two forms of VVVV, and XOP. */
static void vex(bool strict)
{
    for (unsigned k = 0; k < 4 * 32 * 256 * 16; k++) {
        unsigned map = 1 + (k & 3), low = k >> 2 & 15, op = k >> 7 & 255;
        uint8_t bytes[INSN_MAX_LEN] = { map == 4 ? 0x8f : 0xc4,
                                        (uint8_t)(0xe0 | (map == 4 ? 9 : map)),
                                        (uint8_t)((low & 8 ? 0x80 : 0) | (k & 64 ? 0x78 : 0x70) | (low & 7)),
                                        (uint8_t)op, (uint8_t)modrm_of(k >> 15 & 15) };

        must_raise(bytes, strict);
    }
}

static void test_all(void)
{
    X86CPU *c;

    vm = vm_get();
    c = vm->c;
    vm_reset_long(vm);
    c->xcr0 = x86_xcr0_mask(c);
    legacy(false);
    vex(false);
    if (x86_has(c, FEAT_7_0_EBX, CPUID_7_0_EBX_AVX2 | CPUID_7_0_EBX_BMI2)) {
        g_assert_cmpuint(valid, >, 5000); /* such encodings are what is tried */
    }
    g_assert_true(x86_tcg_host_without("all", &error_abort));
    for (FeatureWord w = 0; w < FEAT_WORDS; w++) {
        c->feat[w] &= x86_tcg_backend.supported(w);
    }
    tcg_decode_init(c, c->tcg->engine);
    tried = valid = 0;
    legacy(true);
    vex(true);
    g_assert_cmpuint(tried, >, 500000);
    g_assert_cmpuint(valid, ==, 0);
}

/* With features away, they are what they extend. */
static void test_counts(void)
{
    static const uint8_t tzcnt[INSN_MAX_LEN] = { 0xf3, 0x0f, 0xbc, 0xc1 }, lzcnt[INSN_MAX_LEN] = { 0xf3, 0x0f, 0xbd, 0xc1 };

    g_assert_false(raises(tzcnt));
    g_assert_cmpint(vm->c->tcg->engine->decode.zi.mnemonic, ==, ZYDIS_MNEMONIC_BSF);
    g_assert_false(raises(lzcnt));
    g_assert_cmpint(vm->c->tcg->engine->decode.zi.mnemonic, ==, ZYDIS_MNEMONIC_BSR);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-sets/all", test_all);
    g_test_add_func("/host-sets/counts", test_counts);
    return g_test_run();
}
