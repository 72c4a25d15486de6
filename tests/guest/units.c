/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instruction sets beyond the first x86-64: each works if CPUID offers it, else it raises #UD, also when
 * it runs so often that it is translated, and in the middle of a block that uses vector registers.
 */
#include "guest.h"

#define TIMES 30
#define UD 6

typedef struct Data {
    u64 a, b;
    u32 vec[4];
    u64 pair[2];
} Data;

static Data data __attribute__((aligned(16)));

/* Of XMM registers, text may change XMM2 only. */
#define INSN(name, text)                                                                           \
    static void name(void *arg)                                                                    \
    {                                                                                              \
        __asm__ volatile("movups 16(%%rdi), %%xmm1; paddd %%xmm1, %%xmm1; mov (%%rdi), %%rax;"     \
                         "mov 8(%%rdi), %%rcx; xor %%ebx, %%ebx; xor %%edx, %%edx;" text           \
                         "; movups %%xmm1, 16(%%rdi); mov %%rax, (%%rdi)"                          \
                         : : "D"(arg) : "rax", "rcx", "rdx", "rbx", "rsi", "memory", "cc");        \
    }

INSN(addsubps, "addsubps %%xmm1, %%xmm2")
INSN(fisttp, "fninit; fldz; fisttpl 32(%%rdi)")
INSN(pclmul, "pclmulqdq $0, %%xmm1, %%xmm2")
INSN(pshufb, "pshufb %%xmm1, %%xmm2")
INSN(cx16, "lock cmpxchg16b 32(%%rdi)")
INSN(pmulld, "pmulld %%xmm1, %%xmm2")
INSN(pcmpgtq, "pcmpgtq %%xmm1, %%xmm2")
INSN(crc32q, "crc32q %%rcx, %%rax")
INSN(movbe, "movbe 8(%%rdi), %%rsi")
INSN(popcnt, "popcnt %%rcx, %%rsi")
INSN(aesenc, "aesenc %%xmm1, %%xmm2")
INSN(vaddps, "vaddps %%xmm1, %%xmm1, %%xmm2; vzeroupper")
INSN(vptest, "vptest %%ymm1, %%ymm1")
INSN(vcvtph2ps, "vcvtph2ps %%xmm1, %%xmm2")
INSN(vfmadd, "vfmadd231ps %%xmm1, %%xmm1, %%xmm2")
INSN(rdrand, "rdrand %%rsi")
INSN(andn, "andn %%rcx, %%rax, %%rsi")
INSN(blsr, "blsr %%rcx, %%rsi")
INSN(bextr, "bextr %%rcx, 8(%%rdi), %%rsi")
INSN(vpaddd, "vpaddd %%ymm1, %%ymm1, %%ymm2; vzeroupper")
INSN(bzhi, "bzhi %%rcx, %%rax, %%rsi")
INSN(pdep, "pdep 8(%%rdi), %%rax, %%rsi")
INSN(shlx, "shlx %%rcx, %%rax, %%rsi")
INSN(rorx, "rorx $5, %%rcx, %%rsi")
INSN(mulx, "mulx %%rcx, %%rsi, %%rbx")
INSN(rdseed, "rdseed %%rsi")
INSN(adcx, "adcx %%rcx, %%rsi")
INSN(adox, "adox 8(%%rdi), %%rsi")
INSN(sha1msg1, "sha1msg1 %%xmm1, %%xmm2")

static const struct {
    const char *name;
    void (*fn)(void *arg);
    u32 leaf;
    u8 reg, bit; /* where CPUID tells: 1 EBX, 2 ECX */
} sets[] = {
    { "addsubps", addsubps, 1, 2, 0 },  { "fisttp", fisttp, 1, 2, 0 },    { "pclmulqdq", pclmul, 1, 2, 1 },
    { "pshufb", pshufb, 1, 2, 9 },      { "vfmadd", vfmadd, 1, 2, 12 },   { "cmpxchg16b", cx16, 1, 2, 13 },
    { "pmulld", pmulld, 1, 2, 19 },     { "pcmpgtq", pcmpgtq, 1, 2, 20 }, { "crc32", crc32q, 1, 2, 20 },
    { "movbe", movbe, 1, 2, 22 },       { "popcnt", popcnt, 1, 2, 23 },   { "aesenc", aesenc, 1, 2, 25 },
    { "vaddps", vaddps, 1, 2, 28 },     { "vptest", vptest, 1, 2, 28 },   { "vcvtph2ps", vcvtph2ps, 1, 2, 29 },
    { "rdrand", rdrand, 1, 2, 30 },     { "andn", andn, 7, 1, 3 },        { "blsr", blsr, 7, 1, 3 },
    { "bextr", bextr, 7, 1, 3 },        { "vpaddd", vpaddd, 7, 1, 5 },    { "bzhi", bzhi, 7, 1, 8 },
    { "pdep", pdep, 7, 1, 8 },          { "shlx", shlx, 7, 1, 8 },        { "rorx", rorx, 7, 1, 8 },
    { "mulx", mulx, 7, 1, 8 },          { "rdseed", rdseed, 7, 1, 18 },   { "adcx", adcx, 7, 1, 19 },
    { "adox", adox, 7, 1, 19 },         { "sha1msg1", sha1msg1, 7, 1, 29 },
};

/* XMM1 is what it was doubled to, whether the instruction behind that worked or not. */
static void each_set(void)
{
    for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        int want = cpu_offers(sets[i].leaf, sets[i].reg, sets[i].bit) ? -1 : UD;

        data = (Data){ .a = 0x1234, .b = 0x123456789, .vec = { 1, 2, 3, 4 } };
        for (unsigned n = 0; n < TIMES; n++) {
            check_eq(sets[i].name, (u64)catch(sets[i].fn, &data), (u64)want);
            if (want == UD) {
                __asm__ volatile("movups %%xmm1, (%0)" : : "r"(data.vec) : "memory");
            }
        }
        check_eq(sets[i].name, data.vec[0], 1u << TIMES);
        check_eq(sets[i].name, data.vec[1], 2u << TIMES);
        print(want == UD ? "#UD " : "runs ");
        print(sets[i].name);
        print("\n");
    }
}

/* Without their features they are BSF and BSR with a prefix that means nothing. */
static void counts(void)
{
    bool tz = cpu_offers(7, 1, 3), lz = cpu_offers(0x80000001, 2, 5);

    for (unsigned n = 0; n < TIMES; n++) {
        u64 a = 77, b = 77, c = 77;

        __asm__("tzcnt %1, %0" : "+r"(a) : "r"(0x10ull) : "cc");
        __asm__("lzcnt %1, %0" : "+r"(b) : "r"(0x10ull) : "cc");
        __asm__("tzcnt %1, %0" : "+r"(c) : "r"(0ull) : "cc");
        check_eq("tzcnt", a, 4);
        check_eq("lzcnt", b, lz ? 59 : 4);
        check_eq("tzcnt of 0", c, tz ? 64 : 77);
    }
}

void test_main(void)
{
    enable_avx();
    each_set();
    counts();
}
