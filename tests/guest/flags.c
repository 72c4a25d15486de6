/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flags that integer instructions make and flags that they leave, and flags that are carried over calls:
 * whole families, against what is computed here bit by bit. Each often enough to be translated.
 */
#include "guest.h"

enum { CF = 1, PF = 4, AF = 0x10, ZF = 0x40, SF = 0x80, OF = 0x800, ALL = 0x8d5 };

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
/* In: flags. Out: flags. */
#define FLAGGED(insn) "push %[f]; popfq; " insn "; pushfq; pop %[f]"

static const u64 values[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x5a, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
                              0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff,
                              0x123456789abcdef0 };
static const char *doing;
static u64 failed_for[3]; /* what it was called with */

static u64 low(u64 v, unsigned bits)
{
    return bits == 64 ? v : v & ((1ull << bits) - 1);
}

static u64 top(u64 v, unsigned bits)
{
    return v >> (bits - 1) & 1;
}

static u64 parity(u64 v)
{
    v ^= v >> 4;
    return 0x9669 >> (v & 15) & 1 ? PF : 0;
}

static u64 szp(u64 v, unsigned bits)
{
    v = low(v, bits);
    return (v ? 0 : ZF) | (top(v, bits) ? SF : 0) | parity(v);
}

static void same(u64 got, u64 want)
{
    if (got != want) {
        check_eq(doing, got, want);
        for (unsigned i = 0; i < LEN(failed_for); i++) {
            print_hex(failed_for[i]);
            print(i < 2 ? " " : "\n");
        }
    }
}

/* ---- Shifts and rotates ---- */

typedef u64 ShiftFn(u64 v, u64 count, u64 *flags);
enum { ROL, ROR, RCL, RCR, SHL, SHR, SAR };

#define SHIFT_CL(op, bits, mod)                                                                    \
    static u64 op##bits(u64 v, u64 count, u64 *flags)                                              \
    {                                                                                              \
        u64 f = *flags;                                                                            \
        __asm__ volatile(FLAGGED(#op " %%cl, %" mod "[v]")                                         \
                         : [v] "+&r"(v), [f] "+&r"(f) : "c"(count) : "cc", "memory");              \
        *flags = f;                                                                                \
        return v;                                                                                  \
    }
#define SHIFT_MEM(op, bits, suffix)                                                                \
    static u64 op##m##bits(u64 v, u64 count, u64 *flags)                                           \
    {                                                                                              \
        u64 f = *flags;                                                                            \
        static u64 cell;                                                                           \
        cell = v;                                                                                  \
        __asm__ volatile(FLAGGED(#op suffix " %%cl, %[v]")                                         \
                         : [v] "+m"(cell), [f] "+&r"(f) : "c"(count) : "cc", "memory");            \
        *flags = f;                                                                                \
        return cell;                                                                               \
    }
#define SHIFT_ALL(op)                                                                              \
    SHIFT_CL(op, 8, "b") SHIFT_CL(op, 16, "w") SHIFT_CL(op, 32, "k") SHIFT_CL(op, 64, "q")         \
    SHIFT_MEM(op, 8, "b") SHIFT_MEM(op, 16, "w") SHIFT_MEM(op, 32, "l") SHIFT_MEM(op, 64, "q")
SHIFT_ALL(rol) SHIFT_ALL(ror) SHIFT_ALL(rcl) SHIFT_ALL(rcr) SHIFT_ALL(shl) SHIFT_ALL(shr) SHIFT_ALL(sar)

#define SHIFT_ROW(op) { op##8, op##16, op##32, op##64, op##m8, op##m16, op##m32, op##m64 }
static ShiftFn *const shifts[7][8] = { SHIFT_ROW(rol), SHIFT_ROW(ror), SHIFT_ROW(rcl), SHIFT_ROW(rcr),
                                       SHIFT_ROW(shl), SHIFT_ROW(shr), SHIFT_ROW(sar) };
static const char *const shift_names[] = { "ROL", "ROR", "RCL", "RCR", "SHL", "SHR", "SAR" };

/* One bit at a time; v and *cf change. */
static u64 one_step(unsigned op, u64 v, unsigned bits, u64 *cf)
{
    u64 high = top(v, bits), bottom = v & 1, carry = *cf;

    switch (op) {
    case ROL:
        *cf = high;
        return low(v << 1, bits) | high;
    case RCL:
        *cf = high;
        return low(v << 1, bits) | carry;
    case SHL:
        *cf = high;
        return low(v << 1, bits);
    case ROR:
        *cf = bottom;
        return v >> 1 | bottom << (bits - 1);
    case RCR:
        *cf = bottom;
        return v >> 1 | carry << (bits - 1);
    case SHR:
        *cf = bottom;
        return v >> 1;
    default:
        *cf = bottom;
        return v >> 1 | high << (bits - 1);
    }
}

/* SDM 2B, SAL/SAR/SHL/SHR and RCL/RCR/ROL/ROR. *defined: the flags of *flags that are. */
static u64 shift_model(unsigned op, unsigned bits, u64 v, unsigned count, u64 *flags, u64 *defined)
{
    u64 cf = *flags & CF, before = low(v, bits), r = before;

    count &= bits == 64 ? 63 : 31;
    *defined = ALL;
    if (!count) {
        return r;
    }
    for (unsigned i = 0; i < count; i++) {
        r = one_step(op, r, bits, &cf);
    }
    *flags = (*flags & ~(u64)CF) | cf;
    if (op >= SHL) {
        *flags = (*flags & ~(u64)(SF | ZF | PF)) | szp(r, bits);
        *defined &= ~(u64)AF;
        if (op != SAR && count > bits) {
            *defined &= ~(u64)CF;
        }
    }
    if (count != 1) {
        *defined &= ~(u64)OF;
        return r;
    }
    *flags &= ~(u64)OF;
    switch (op) {
    case ROL:
    case RCL:
    case SHL:
        *flags |= (top(r, bits) ^ cf) ? OF : 0;
        break;
    case ROR:
    case RCR:
        *flags |= (top(r, bits) ^ (r >> (bits - 2) & 1)) ? OF : 0;
        break;
    case SHR:
        *flags |= top(before, bits) ? OF : 0;
        break;
    default:
        break;
    }
    return r;
}

static void shift_one(unsigned op, unsigned size, u64 v, unsigned count, u64 flags)
{
    unsigned bits = 8u << (size & 3);
    u64 want_flags = flags, defined, got_flags = flags | 2, got, want;

    failed_for[0] = v;
    failed_for[1] = count;
    failed_for[2] = flags;
    want = shift_model(op, bits, v, count, &want_flags, &defined);
    if (bits < 32 || size > 3) {
        want |= v & ~low(~0ull, bits); /* a 32-bit register is extended, whatever the count */
    }
    got = shifts[op][size](v, count, &got_flags);
    doing = shift_names[op];
    same(got, want);
    same(got_flags & defined, want_flags & defined);
}

static void shift_family(void)
{
    static const u8 counts[] = { 0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 27, 31, 32, 33, 63, 64, 65, 128, 255 };

    for (unsigned op = ROL; op <= SAR; op++) {
        for (unsigned size = 0; size < 8; size++) {
            for (unsigned k = 0; k < LEN(values) * LEN(counts); k++) {
                u64 v = values[k % LEN(values)];
                unsigned count = counts[k / LEN(values)];

                shift_one(op, size, v, count, 0);
                shift_one(op, size, v, count, ALL);
            }
        }
    }
}

/* SHLD and SHRD, where the count does not exceed the size. */
#define DOUBLE(op, bits, mod)                                                                      \
    static u64 op##bits(u64 v, u64 fill, u64 count, u64 *flags)                                    \
    {                                                                                              \
        u64 f = *flags;                                                                            \
        __asm__ volatile(FLAGGED(#op " %%cl, %" mod "[s], %" mod "[v]")                            \
                         : [v] "+&r"(v), [f] "+&r"(f) : "c"(count), [s] "r"(fill) : "cc", "memory"); \
        *flags = f;                                                                                \
        return v;                                                                                  \
    }
DOUBLE(shld, 16, "w") DOUBLE(shld, 32, "k") DOUBLE(shld, 64, "q")
DOUBLE(shrd, 16, "w") DOUBLE(shrd, 32, "k") DOUBLE(shrd, 64, "q")

static void double_one(bool right, unsigned bits, u64 v, u64 fill, unsigned raw)
{
    static u64 (*const fns[2][3])(u64, u64, u64, u64 *) = { { shld16, shld32, shld64 }, { shrd16, shrd32, shrd64 } };
    unsigned count = raw & (bits == 64 ? 63 : 31);
    u64 r = low(v, bits), f = low(fill, bits), cf = CF, got, got_flags = ALL | 2;

    if (count > bits) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        cf = right ? r & 1 : top(r, bits);
        r = right ? r >> 1 | (f & 1) << (bits - 1) : low(r << 1, bits) | top(f, bits);
        f = right ? f >> 1 : low(f << 1, bits);
    }
    got = fns[right][bits == 64 ? 2 : bits / 32](v, fill, raw, &got_flags);
    failed_for[0] = v;
    failed_for[1] = fill;
    failed_for[2] = raw;
    doing = right ? "SHRD" : "SHLD";
    same(bits == 16 ? got & 0xffff : got, r);
    if (bits == 16) {
        same(got >> 16, v >> 16);
    }
    same(got_flags & (count ? CF | ZF | SF | PF : ALL), count ? cf | szp(r, bits) : ALL);
}

static void double_shifts(void)
{
    static const u8 counts[] = { 0, 1, 2, 15, 16, 31, 32, 33, 63, 64, 96 };

    for (unsigned k = 0; k < LEN(values) * LEN(values) * LEN(counts); k++) {
        u64 v = values[k % LEN(values)], fill = values[k / LEN(values) % LEN(values)];
        unsigned count = counts[k / LEN(values) / LEN(values)];

        for (unsigned bits = 16; bits <= 64; bits *= 2) {
            double_one(false, bits, v, fill, count);
            double_one(true, bits, v, fill, count);
        }
    }
}

/* ---- BMI, ADX and counts of bits ---- */

typedef u64 TwoFn(u64 a, u64 b, u64 *flags);

#define TWO(op, name, bits, text)                                                                  \
    static u64 name##bits(u64 a, u64 b, u64 *flags)                                                \
    {                                                                                              \
        u64 f = *flags, r = 0x7777777777777777;                                                    \
        __asm__ volatile(FLAGGED(text) : [r] "+&r"(r), [f] "+&r"(f) : [a] "r"(a), [b] "r"(b)       \
                         : "cc", "memory");                                                        \
        *flags = f;                                                                                \
        return r;                                                                                  \
    }
#define ONE_SOURCE(op)                                                                             \
    TWO(op, op, 32, #op " %k[a], %k[r]") TWO(op, op, 64, #op " %[a], %[r]")
#define TWO_SOURCES(op)                                                                            \
    TWO(op, op, 32, #op " %k[b], %k[a], %k[r]") TWO(op, op, 64, #op " %[b], %[a], %[r]")
#define IN_PLACE(op)                                                                               \
    TWO(op, op, 32, "mov %[a], %[r]; " #op " %k[b], %k[r]") TWO(op, op, 64, "mov %[a], %[r]; " #op " %[b], %[r]")

ONE_SOURCE(blsi) ONE_SOURCE(blsr) ONE_SOURCE(blsmsk) ONE_SOURCE(tzcnt) ONE_SOURCE(lzcnt) ONE_SOURCE(popcnt)
TWO_SOURCES(bextr) TWO_SOURCES(bzhi) TWO_SOURCES(andn) TWO_SOURCES(shlx) TWO_SOURCES(shrx) TWO_SOURCES(sarx)
TWO_SOURCES(pdep) TWO_SOURCES(pext)
IN_PLACE(adcx) IN_PLACE(adox)
TWO(rorx, rorx, 32, "rorx $5, %k[a], %k[r]") TWO(rorx, rorx, 64, "rorx $5, %[a], %[r]")

enum { BLSI, BLSR, BLSMSK, TZCNT, LZCNT, POPCNT, BEXTR, BZHI, ANDN, SHLX, SHRX, SARX, PDEP, PEXT, ADCX, ADOX, RORX };

static const struct {
    const char *name;
    TwoFn *fn[2];
    u32 leaf;
    u8 reg, bit;
} bit_ops[] = {
#define BITS(op, l, r, b) { #op, { op##32, op##64 }, l, r, b }
    [BLSI] = BITS(blsi, 7, 1, 3), [BLSR] = BITS(blsr, 7, 1, 3), [BLSMSK] = BITS(blsmsk, 7, 1, 3),
    [TZCNT] = BITS(tzcnt, 7, 1, 3), [LZCNT] = BITS(lzcnt, 0x80000001, 2, 5), [POPCNT] = BITS(popcnt, 1, 2, 23),
    [BEXTR] = BITS(bextr, 7, 1, 3), [BZHI] = BITS(bzhi, 7, 1, 8), [ANDN] = BITS(andn, 7, 1, 3),
    [SHLX] = BITS(shlx, 7, 1, 8), [SHRX] = BITS(shrx, 7, 1, 8), [SARX] = BITS(sarx, 7, 1, 8),
    [PDEP] = BITS(pdep, 7, 1, 8), [PEXT] = BITS(pext, 7, 1, 8), [ADCX] = BITS(adcx, 7, 1, 19),
    [ADOX] = BITS(adox, 7, 1, 19), [RORX] = BITS(rorx, 7, 1, 8),
};

static u64 spread(u64 a, u64 mask, bool gather)
{
    u64 r = 0;

    for (unsigned i = 0, k = 0; i < 64; i++) {
        if (mask >> i & 1) {
            r |= gather ? (a >> i & 1) << k : (a >> k & 1) << i;
            k++;
        }
    }
    return r;
}

static u64 field(u64 a, u64 control)
{
    unsigned start = control & 0xff, len = control >> 8 & 0xff;

    a = start < 64 ? a >> start : 0;
    return len < 64 ? a & ((1ull << len) - 1) : a;
}

static unsigned zeros(u64 a, unsigned bits, bool from_top)
{
    unsigned n = 0;

    while (n < bits && !(a >> (from_top ? bits - 1 - n : n) & 1)) {
        n++;
    }
    return n;
}

static u64 with_carry(u64 a, u64 b, unsigned bits, u64 which, u64 *flags)
{
    u64 in = (*flags & which) != 0, r = low(a + b + in, bits);
    bool out = r < a || (in && r == a);

    *flags = (*flags & ~which) | (out ? which : 0);
    return r;
}

static u64 arithmetic_right(u64 a, unsigned bits, unsigned n)
{
    u64 r = a >> n;

    return top(a, bits) && n ? low(r | ~0ull << (bits - n), bits) : r;
}

/* The result without flags. */
static u64 bit_result(unsigned op, u64 a, u64 b, unsigned bits, u64 *flags)
{
    unsigned n = b & (bits - 1), ones = 0;

    switch (op) {
    case BLSI:
        return low(a & -a, bits);
    case BLSR:
        return a & (a - 1);
    case BLSMSK:
        return low(a ^ (a - 1), bits);
    case TZCNT:
    case LZCNT:
        return zeros(a, bits, op == LZCNT);
    case POPCNT:
        for (unsigned i = 0; i < bits; i++) {
            ones += a >> i & 1;
        }
        return ones;
    case BEXTR:
        return field(a, b);
    case BZHI:
        return (b & 0xff) < bits ? a & ((1ull << (b & 0xff)) - 1) : a;
    case ANDN:
        return low(~a & b, bits);
    case SHLX:
        return low(a << n, bits);
    case SHRX:
        return a >> n;
    case SARX:
        return arithmetic_right(a, bits, n);
    case PDEP:
    case PEXT:
        return spread(a, b, op == PEXT);
    case ADCX:
    case ADOX:
        return with_carry(a, b, bits, op == ADCX ? CF : OF, flags);
    default:
        return low(a >> 5 | a << (bits - 5), bits);
    }
}

/* Flags after op, where they are defined. */
static u64 bit_flags(unsigned op, u64 a, u64 b, u64 r, unsigned bits, u64 flags, u64 *defined)
{
    u64 zs = szp(r, bits) & (ZF | SF);

    *defined = ALL & ~(u64)(AF | PF);
    switch (op) {
    case BLSI:
        return zs | (a ? CF : 0);
    case BLSR:
    case BLSMSK:
        return zs | (a ? 0 : CF);
    case TZCNT:
    case LZCNT:
        *defined = CF | ZF;
        return (a ? 0 : CF) | (r ? 0 : ZF);
    case POPCNT:
        *defined = ALL;
        return a ? 0 : ZF;
    case BEXTR:
        *defined = CF | OF | ZF;
        return r ? 0 : ZF;
    case BZHI:
        return zs | ((b & 0xff) >= bits ? CF : 0);
    case ANDN:
        return zs;
    default:
        *defined = ALL;
        return flags;
    }
}

static void bit_one(unsigned op, u64 a, u64 b, unsigned bits, u64 flags)
{
    u64 la = low(a, bits), lb = low(b, bits), want_flags = flags, defined, got_flags = flags | 2, want, got;

    want = bit_result(op, la, lb, bits, &want_flags);
    want_flags = bit_flags(op, la, lb, want, bits, want_flags, &defined);
    got = bit_ops[op].fn[bits == 64](a, b, &got_flags);
    failed_for[0] = a;
    failed_for[1] = b;
    failed_for[2] = flags;
    doing = bit_ops[op].name;
    same(got, want);
    same(got_flags & defined, want_flags & defined);
}

static void bit_family(void)
{
    static const u64 controls[] = { 0, 1, 5, 31, 32, 33, 63, 64, 65, 127, 128, 255, 0x100, 0x2000, 0x4000, 0x1f1f,
                                    0x4040, 0x2020, 0xff00, 0xffff, 0xff01, 0x3f01, 0x123456789abc0804 };

    for (unsigned op = 0; op < LEN(bit_ops); op++) {
        if (!cpu_offers(bit_ops[op].leaf, bit_ops[op].reg, bit_ops[op].bit)) {
            continue;
        }
        for (unsigned k = 0; k < LEN(values) * (LEN(controls) + LEN(values)); k++) {
            unsigned second = k / LEN(values);
            u64 a = values[k % LEN(values)];
            u64 b = second < LEN(controls) ? controls[second] : values[second - LEN(controls)];

            for (unsigned bits = 32; bits <= 64; bits += 32) {
                bit_one(op, a, b, bits, 0);
                bit_one(op, a, b, bits, ALL);
                bit_one(op, a, b, bits, CF);
                bit_one(op, a, b, bits, OF);
            }
        }
    }
}

/* ---- Flags over transfers of control ---- */

typedef u64 CarriedFn(u64 a, u64 b);

/* A bit for each of the 16 conditions, asked behind the transfer. */
#define ASK(cc) "set" cc " %%dl; shl $1, %[r]; or %%dl, %b[r]; popfq; pushfq;"
#define CARRIED(name, make, transfer)                                                              \
    static u64 name(u64 a, u64 b)                                                                  \
    {                                                                                              \
        u64 r = 0;                                                                                 \
        __asm__ volatile("lea 1f(%%rip), %%r8; mov %%r8, %[cell]; lea 2f(%%rip), %%r9;" make "; "  \
                         transfer "; 2: pushfq;"                                                   \
                         ASK("o") ASK("no") ASK("b") ASK("ae") ASK("e") ASK("ne") ASK("be")        \
                         ASK("a") ASK("s") ASK("ns") ASK("p") ASK("np") ASK("l") ASK("ge")         \
                         ASK("le") ASK("g") "popfq; jmp 3f; 1: ret; 3:"                            \
                         : [r] "+&r"(r), [a] "+&r"(a), [cell] "=m"(cell) : [b] "r"(b)              \
                         : "rcx", "rdx", "r8", "r9", "cc", "memory");                              \
        return r;                                                                                  \
    }
/* A count of 0 in between leaves the flags of what was before. */
#define MAKERS(t, transfer)                                                                        \
    CARRIED(cmp_##t, "cmp %[b], %[a]", transfer) CARRIED(add_##t, "add %k[b], %k[a]", transfer)    \
    CARRIED(test_##t, "test %[b], %[a]", transfer) CARRIED(inc_##t, "cmp %[b], %[a]; inc %[a]", transfer) \
    CARRIED(zero_##t, "xor %%ecx, %%ecx; cmp %[b], %[a]; shl %%cl, %[a]", transfer)                \
    CARRIED(neg_##t, "neg %b[a]", transfer)
static u64 cell;
MAKERS(call, "call 1f")
MAKERS(near, "call *%%r8")
MAKERS(memory, "call *%[cell]")
MAKERS(jump, "jmp *%%r9")
MAKERS(pushed, "push %%r9; ret")
MAKERS(lea, "lea 8(%%r9), %%r8; mov %%r8, %%rcx; not %%rcx; xchg %%rcx, %%r8")

enum { CMP, ADD, TEST, INC, ZERO, NEG, MAKES };
#define ROW(t) { cmp_##t, add_##t, test_##t, inc_##t, zero_##t, neg_##t }
static CarriedFn *const carried[][MAKES] = { ROW(call), ROW(near), ROW(memory), ROW(jump), ROW(pushed), ROW(lea) };

static u64 difference(u64 a, u64 b, unsigned bits)
{
    u64 r = low(a - b, bits);

    return szp(r, bits) | (low(a, bits) < low(b, bits) ? CF : 0) | (top((a ^ b) & (a ^ r), bits) ? OF : 0);
}

static u64 made(unsigned how, u64 a, u64 b)
{
    u64 r;

    switch (how) {
    case ADD:
        r = low(a + b, 32);
        return szp(r, 32) | (r < low(a, 32) ? CF : 0) | (top(~(a ^ b) & (a ^ r), 32) ? OF : 0);
    case TEST:
        return szp(a & b, 64);
    case INC:
        return (difference(a, b, 64) & CF) | szp(a + 1, 64) | (a + 1 == 1ull << 63 ? OF : 0);
    case NEG:
        return difference(0, low(a, 8), 8);
    default:
        return difference(a, b, 64);
    }
}

static u64 conditions(u64 f)
{
    bool o = f & OF, c = f & CF, z = f & ZF, s = f & SF, p = f & PF;
    bool pairs[8] = { o, c, z, c || z, s, p, s != o, z || s != o };
    u64 r = 0;

    for (unsigned i = 0; i < 8; i++) {
        r = r << 2 | (pairs[i] ? 2 : 1);
    }
    return r;
}

static void carried_family(void)
{
    doing = "conditions after a transfer of control";
    for (unsigned t = 0; t < LEN(carried); t++) {
        for (unsigned k = 0; k < LEN(values) * LEN(values) * MAKES; k++) {
            u64 a = values[k % LEN(values)], b = values[k / LEN(values) % LEN(values)];
            unsigned how = k / LEN(values) / LEN(values);

            failed_for[0] = a;
            failed_for[1] = b;
            failed_for[2] = how * 16 + t;
            same(carried[t][how](a, b), conditions(made(how, a, b)));
        }
    }
}

void test_main(void)
{
    shift_family();
    double_shifts();
    bit_family();
    carried_family();
}
