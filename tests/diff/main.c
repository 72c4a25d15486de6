/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differential test: runs streams on both sides and compares. */
#include <getopt.h>
#include "accel/tcg/jit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "diff.h"

#define FLAGS_COMPARED 0x240dd5ull /* the arithmetic flags, TF, DF, AC, ID */

static Stream stream;
static unsigned long long executed, faults, fault_count[32];
static const char *why;

static const char *const gpr_name[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

/* What the guest is compared with. */
typedef struct Reference {
    const char *name;
    void (*load)(const Stream *s);
    void (*run)(const State *in, State *out);
    uint8_t *(*data)(void);
} Reference;

static const Reference by_host = { "native", native_load, native_run, native_data };
static const Reference by_interpreter = { "interp", interp_load, interp_run, interp_data };
static const Reference *ref = &by_host;

/* ---- Printing ---- */

static void disassemble(const Stream *s, unsigned k, char *buf, size_t size)
{
    ZydisFormatter f;
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    snprintf(buf, size, "?");
    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL);
    if (gen_decode(s->code + s->off[k], 15, &zi, op)) {
        ZydisFormatterFormatInstruction(&f, &zi, op, zi.operand_count_visible, buf, size,
                                        CODE_ADDR + s->off[k], NULL);
    }
}

static void print_insn(const Stream *s, unsigned k)
{
    char text[128];
    disassemble(s, k, text, sizeof(text));
    unsigned len = s->off[k + 1] - s->off[k];
    printf("  %#llx: ", (unsigned long long)(CODE_ADDR + s->off[k]));
    for (unsigned n = 0; n < 15; n++) {
        printf(n < len ? "%02x" : "  ", s->code[s->off[k] + n]);
    }
    printf("  %s\n", text);
}

static void print_bytes(const uint8_t *p, unsigned len)
{
    for (unsigned n = len; n-- > 0;) {
        printf("%02x%s", p[n], n && n % 8 == 0 ? "_" : "");
    }
}

static void print_vec(const char *what, unsigned n, const uint8_t *in, const uint8_t *a,
                      const uint8_t *b, unsigned len)
{
    if (!memcmp(in, a, len) && !memcmp(a, b, len)) {
        return;
    }
    printf("  %s%-2u before ", what, n);
    print_bytes(in, len);
    printf("\n       %s ", ref->name);
    print_bytes(a, len);
    printf("\n       guest  ");
    print_bytes(b, len);
    printf("%s\n", memcmp(a, b, len) ? "  <<<" : "");
}

static void print_word(const char *what, uint64_t in, uint64_t a, uint64_t b, uint64_t mask)
{
    if (in != a || a != b) {
        printf("  %-6s before %#llx %s %#llx guest %#llx%s\n", what, (unsigned long long)in, ref->name,
               (unsigned long long)a, (unsigned long long)b, (a ^ b) & mask ? "  <<<" : "");
    }
}

static void print_states(const State *in, const State *a, const State *b, bool all)
{
    print_word("vector", 0, (uint64_t)a->vector, (uint64_t)b->vector, ~0ull);
    print_word("rip", in->rip, a->rip, b->rip, ~0ull);
    print_word("rflags", in->rflags, a->rflags, b->rflags, FLAGS_COMPARED);
    if (a->vector == 14 || b->vector == 14 || a->vector == 13 || b->vector == 13) {
        print_word("error", 0, a->error, b->error, ~0ull);
        print_word("cr2", 0, a->cr2, b->cr2, ~0ull);
    }
    for (unsigned n = 0; n < 16; n++) {
        if (all && in->gpr[n] == a->gpr[n] && a->gpr[n] == b->gpr[n]) {
            printf("  %-6s %#llx\n", gpr_name[n], (unsigned long long)a->gpr[n]);
        }
        print_word(gpr_name[n], in->gpr[n], a->gpr[n], b->gpr[n], ~0ull);
    }
    print_word("mxcsr", in->mxcsr, a->mxcsr, b->mxcsr, ~0ull);
    print_word("fcw", in->fcw, a->fcw, b->fcw, ~0ull);
    print_word("fsw", in->fsw, a->fsw, b->fsw, ~0ull);
    print_word("ftw", in->ftw, a->ftw, b->ftw, ~0ull);
    printf("  (mxcsr %#x fcw %#x fsw %#x ftw %#x before)\n", in->mxcsr, in->fcw, in->fsw, in->ftw);
    for (unsigned n = 0; n < 16; n++) {
        print_vec("ymm", n, in->ymm[n], a->ymm[n], b->ymm[n], 32);
    }
    for (unsigned n = 0; n < 8; n++) {
        print_vec("st", n, in->st[n], a->st[n], b->st[n], 10);
    }
}

/* ---- Comparing ---- */

/* Elsewhere the host may have something mapped, and the guest has nothing. */
static bool ours(uint64_t addr)
{
    return addr - CODE_ADDR < CODE_SIZE || addr - DATA_ADDR < DATA_SIZE + 4096;
}

static unsigned operand_size(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op)
{
    for (unsigned n = 0; n < zi->operand_count_visible; n++) {
        if (op[n].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            return op[n].size;
        }
    }
    return 0;
}

/*
 * Where processors differ and both sides are right: the legacy SHA instructions want alignment (SDM
 * 2A), AMD's do without; MASKMOV may fault on bytes it does not write; an access over the top of a
 * 32-bit segment wraps or is #GP (SDM 3A, 5.3.1), a long one over the end of the canonical range is
 * #PF or #GP; an operand both misaligned and outside its stack segment is #GP or #SS.
 */
static bool both_right(const Stream *s, const State *a, const State *b)
{
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t rip = a->rip < b->rip ? a->rip : b->rip;
    bool memory = a->vector == 13 || a->vector == 14;
    if (rip - CODE_ADDR >= CODE_SIZE || !gen_decode(s->code + (rip - CODE_ADDR), 15, &zi, op)) {
        return false;
    }
    return (b->vector == 13 && zi.meta.isa_set == ZYDIS_ISA_SET_SHA) ||
           (memory && zi.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ) ||
           (memory && zi.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU) ||
           (memory && zi.mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU) ||
           (memory && b->vector == 13 && operand_size(&zi, op) > 256 && !ours(a->cr2)) ||
           (diff_16 && a->vector == 13 && b->vector == 12 && operand_size(&zi, op) >= 128) ||
           (diff_32 && (a->vector == 12 || a->vector == 13) && b->vector == 14 && b->cr2 >= 0xffffff00);
}

/* Which part of a long access faults first is not defined. */
static uint64_t cr2_mask(const State *a)
{
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    bool wide = a->rip - CODE_ADDR < CODE_SIZE &&
                gen_decode(stream.code + (a->rip - CODE_ADDR), 15, &zi, op) &&
                operand_size(&zi, op) > 256;
    return wide ? ~0xfffull : ~0ull;
}

/* In 32-bit code the upper halves are undefined (SDM 1, 3.4.1.1). */
static bool same_gpr(const State *a, const State *b)
{
    for (unsigned n = 0; n < (diff_32 ? 8 : 16); n++) {
        if (diff_32 ? (uint32_t)a->gpr[n] != (uint32_t)b->gpr[n] : a->gpr[n] != b->gpr[n]) {
            return false;
        }
    }
    return true;
}

static bool same_state(const State *a, const State *b)
{
    if (a->vector != b->vector || a->rip != b->rip) {
        why = "exception or RIP";
    } else if (a->vector == 14 && a->error != b->error && ours(a->cr2)) {
        why = "error code";
    } else if (a->vector == 14 && (a->cr2 ^ b->cr2) & cr2_mask(a)) {
        why = "CR2";
    } else if (!same_gpr(a, b)) {
        why = "general registers";
    } else if ((a->rflags ^ b->rflags) & FLAGS_COMPARED) {
        why = "flags";
    } else if (memcmp(a->ymm, b->ymm, sizeof(a->ymm))) {
        why = "vector registers";
    } else if (a->mxcsr != b->mxcsr) {
        why = "MXCSR";
    } else if (a->fcw != b->fcw || a->fsw != b->fsw || a->ftw != b->ftw ||
               memcmp(a->st, b->st, sizeof(a->st))) {
        why = "x87";
    } else {
        return true;
    }
    return false;
}

static bool same_data(void)
{
    static uint8_t guest[DATA_SIZE];
    guest_read_data(guest);
    if (memcmp(guest, ref->data(), DATA_SIZE)) {
        why = "memory";
        return false;
    }
    return true;
}

static unsigned index_of(const Stream *s, uint64_t rip)
{
    unsigned k = 0;
    while (k < s->n && CODE_ADDR + s->off[k] < rip) {
        k++;
    }
    return k;
}

static void load(const Stream *s)
{
    ref->load(s);
    guest_load(s);
}

/*
 * Runs s from its start; after a fault goes on behind the instruction that caused it. Fills the
 * last segment's states. True: no difference.
 */
static bool run(const Stream *s, State *in, State *a, State *b, unsigned *steps)
{
    *in = s->init;
    load(s);
    *steps = 0;
    for (;;) {
        ref->run(in, a);
        if (!guest_run(in, b)) {
            why = "no exception";
            return false;
        }
        if (!same_state(a, b) || !same_data()) {
            return both_right(s, a, b);
        }
        unsigned from = index_of(s, in->rip), k = index_of(s, a->rip);
        *steps += k - from;
        if (a->vector == 3 || k >= s->n) {
            return true;
        }
        faults++;
        fault_count[a->vector & 31]++;
        *in = *a;
        in->rip = CODE_ADDR + s->off[k + 1];
        in->rflags &= ~0x10000ull;
        in->fsw &= (uint16_t)~0x80ff; /* or every further x87 instruction faults */
        in->mxcsr &= ~0x3fu;
        if (k + 1 == s->n) {
            return true;
        }
    }
}

/* Cuts s after its first k instructions. */
static void cut(const Stream *s, unsigned k, Stream *out)
{
    *out = *s;
    memset(out->code + s->off[k], 0xcc, CODE_SIZE - s->off[k]);
    out->n = k;
}

static void report(const Stream *s, uint64_t seed)
{
    static Stream t;
    State in, a, b;
    unsigned k, steps;
    for (k = 1; k < s->n; k++) {
        cut(s, k, &t);
        if (!run(&t, &in, &a, &b, &steps)) {
            break;
        }
    }
    cut(s, k, &t);
    run(&t, &in, &a, &b, &steps);
    char text[128];
    disassemble(s, k - 1, text, sizeof(text));
    printf("difference in %s, --seed %llu --count 1, instruction %u of %u: %s\n", why,
           (unsigned long long)seed, k, s->n, text);
    for (unsigned n = k > 6 ? k - 6 : 0; n < k; n++) {
        print_insn(s, n);
    }
    print_states(&in, &a, &b, true);
    static uint8_t guest[DATA_SIZE];
    guest_read_data(guest);
    for (unsigned n = 0, shown = 0; n < DATA_SIZE && shown < 8; n += 16) {
        if (memcmp(guest + n, ref->data() + n, 16)) {
            printf("  %#llx %s ", DATA_ADDR + n, ref->name);
            print_bytes(ref->data() + n, 16);
            printf(" guest ");
            print_bytes(guest + n, 16);
            printf("\n");
            shown++;
        }
    }
}

static unsigned parse_classes(const char *s)
{
    unsigned c = 0;
    c |= strstr(s, "int") ? CLASS_INT : 0;
    c |= strstr(s, "sse") ? CLASS_SSE : 0;
    c |= strstr(s, "avx") ? CLASS_AVX : 0;
    c |= strstr(s, "x87") ? CLASS_X87 : 0;
    return c;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "seed", 1, NULL, 's' },   { "count", 1, NULL, 'c' },
                                             { "insns", 1, NULL, 'n' },
                                             { "class", 1, NULL, 'k' },  { "only", 1, NULL, 'o' },
                                             { "max-failures", 1, NULL, 'f' },
                                             { "32", 0, NULL, '3' },
                                             { "16", 0, NULL, '1' },
                                             { "jit", 0, NULL, 'j' },
                                             { "interp", 0, NULL, 'i' },
                                             { 0 } };
    uint64_t seed = 1, insns = 1000000, streams = 0;
    unsigned classes = CLASS_ALL, failures = 0, max_failures = 1;
    const char *only = NULL;
    bool jit = false, interp = false;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 's':
            seed = strtoull(optarg, NULL, 0);
            break;
        case 'c':
            streams = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            insns = strtoull(optarg, NULL, 0);
            break;
        case 'k':
            classes = parse_classes(optarg);
            break;
        case 'o':
            only = optarg;
            break;
        case '3':
            diff_bits = 32;
            break;
        case '1':
            diff_bits = 16;
            break;
        case 'j':
            jit = true;
            tcg_jit_heat = 0; /* everything is translated before it runs */
            tcg_jit_exact_flags = true;
            break;
        case 'i':
            interp = true;
            break;
        case 'f':
            max_failures = (unsigned)strtoul(optarg, NULL, 0);
            break;
        default:
            fprintf(stderr, "usage: %s [--seed N] [--count STREAMS | --insns N] [--class int,sse,avx,x87] "
                            "[--only MNEMONIC] [--max-failures N] [--32|--16] [--jit [--interp]]\n", argv[0]);
            return 2;
        }
    }
    if (!guest_init() || !native_init()) {
        fprintf(stderr, "cannot set up\n");
        return 2;
    }
    if (interp || !native_can()) {
        if (!jit) {
            printf("this host runs no %u-bit code, and the interpreter is not compared with itself\n",
                   diff_bits);
            return 77;
        }
        ref = &by_interpreter;
    }
    printf("reference: %s\n", ref->name);
    printf("%u templates\n", gen_init(classes, only));
    unsigned long long n = 0;
    for (; (streams ? n < streams : executed < insns) && failures < max_failures; n++) {
        State in, a, b;
        unsigned steps;
        Rng r;
        rng_seed(&r, seed + n);
        tcg_jit_tested = (seed + n) & 1; /* both ways of groups */
        gen_stream(&r, &stream);
        if (!run(&stream, &in, &a, &b, &steps)) {
            report(&stream, seed + n);
            failures++;
        }
        executed += steps;
    }
    printf("%llu streams, %llu instructions, %llu exceptions: %u differences\n", n, executed,
           faults, failures);
    for (unsigned v = 0; v < 32; v++) {
        if (fault_count[v]) {
            printf("  vector %2u: %llu\n", v, fault_count[v]);
        }
    }
    return failures ? 1 : 0;
}
