/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MOVS STOS LODS CMPS SCAS INS OUTS, alone and repeated. Each element is committed before the next
 * one is begun, so a fault or an interrupt finds RCX, RSI and RDI where they belong; whole runs in
 * a page go by a fast path. Interrupts are looked at after each run, at most a page.
 */
#include <string.h>
#include "accel/tcg/int.h"
#include "realtime/latency.h"

/* ---- Registers at address size ---- */

static inline uint64_t asz_mask(const Insn *i)
{
    return i->asz == ASZ_64 ? UINT64_MAX : i->asz == ASZ_32 ? UINT32_MAX : UINT16_MAX;
}
static inline uint64_t areg(const X86CPU *c, const Insn *i, unsigned r)
{
    return c->regs[r] & asz_mask(i);
}
static inline void areg_add(X86CPU *c, const Insn *i, unsigned r, uint64_t n)
{
    uint64_t v = c->regs[r] + n;

    if (unlikely(i->asz == ASZ_16)) {
        wr16(c, r, v);
    } else {
        c->regs[r] = i->asz == ASZ_64 ? v : (uint32_t)v;
    }
}
static inline uint64_t direction(const X86CPU *c, unsigned size)
{
    return c->rflags & FL_DF ? -(uint64_t)size : size;
}

/* Source: DS or an override; destination: ES always. */
static inline uint64_t source(X86CPU *c, const Insn *i, unsigned size)
{
    uint64_t off = areg(c, i, R_RSI);

    if (likely(!(i->flags & (INSN_SEGCHECK | INSN_SEGBASE)))) {
        return off;
    }
    return i->flags & INSN_SEGBASE ? off + c->seg[i->seg].base
                                   : tcg_seg_check(c, i, i->seg, off, size, false);
}
static inline uint64_t destination(X86CPU *c, const Insn *i, unsigned size, bool write)
{
    uint64_t off = areg(c, i, R_RDI);

    if (likely(c->tcg->mode_key & (MODE_CS64 | MODE_FLAT))) {
        return off;
    }
    return tcg_seg_check(c, i, R_ES, off, size, write);
}

/* ---- Fast runs: n elements that lie in one page, forwards, in plain RAM ---- */

/* How many of count elements from offset off stay in the page and do not wrap. */
static inline uint64_t run_length(const Insn *i, uint64_t off, uint64_t lin, uint64_t count,
                                  unsigned size)
{
    uint64_t room = (TARGET_PAGE_SIZE - (lin & ~TARGET_PAGE_MASK)) / size;
    uint64_t wrap = (asz_mask(i) - off) / size;

    return MIN(count, MIN(room, wrap));
}

static inline bool fast_allowed(const X86CPU *c, const Insn *i)
{
    return !(c->rflags & (FL_DF | FL_TF)) && !(i->flags & INSN_SEGCHECK) &&
           (c->tcg->mode_key & (MODE_CS64 | MODE_FLAT));
}

static uint64_t movs_run(X86CPU *c, const Insn *i, uint64_t count, unsigned size)
{
    uint64_t si = areg(c, i, R_RSI), di = areg(c, i, R_RDI);
    uint64_t src = i->flags & INSN_SEGBASE ? si + c->seg[i->seg].base : si;
    const TlbEntry *se = tlb_slot(c, src), *de = tlb_slot(c, di);
    uint64_t n = run_length(i, si, src, run_length(i, di, di, count, size), size);
    uint8_t *to = rmw_fast(de, di, 1);
    const uint8_t *from = tlb_host(se, src);

    if (!to || (src & TARGET_PAGE_MASK) != se->rtag || n < 2) {
        return 0;
    }
    /* Forwards onto itself it repeats a pattern; only element by element does that. */
    if (to > from && to < from + n * size) {
        return 0;
    }
    memmove(to, from, n * size);
    rmw_fast_done(de, di, (unsigned)(n * size));
    areg_add(c, i, R_RSI, n * size);
    areg_add(c, i, R_RDI, n * size);
    return n;
}

static uint64_t stos_run(X86CPU *c, const Insn *i, uint64_t count, unsigned size)
{
    uint64_t di = areg(c, i, R_RDI), n = run_length(i, di, di, count, size);
    const TlbEntry *e = tlb_slot(c, di);
    uint8_t *to = rmw_fast(e, di, 1);
    uint64_t v = c->regs[R_RAX];

    if (!to || n < 2) {
        return 0;
    }
    if (size == 1) {
        memset(to, (int)(v & 0xff), n);
    } else if (size == 2) {
        v = (v & 0xffff) * 0x0001000100010001ull;
    } else if (size == 4) {
        v = (uint32_t)v * 0x0000000100000001ull;
    }
    if (size != 1) {
        uint64_t k = 0, bytes = n * size;

        for (; k + 8 <= bytes; k += 8) {
            memcpy(to + k, &v, 8);
        }
        memcpy(to + k, &v, bytes - k);
    }
    rmw_fast_done(e, di, (unsigned)(n * size));
    areg_add(c, i, R_RDI, n * size);
    return n;
}

static inline uint64_t no_run(X86CPU *c, const Insn *i, uint64_t count, unsigned size)
{
    return 0;
}

/* ---- One element ---- */

#define COMPARE(mod, c, a, b)                                                                      \
    do {                                                                                           \
        uint32_t f_;                                                                               \
        __asm__("cmp %" mod "2, %" mod "1" FLAGS_OUT                                               \
                : "=&a"(f_)                                                                        \
                : "r"((uint64_t)(a)), "r"((uint64_t)(b)));                                         \
        (c)->cc = f_;                                                                              \
    } while (0)

#define DEFINE_ONE(bits, type, mod, sfx)                                                           \
    static inline void movs_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        uint64_t step = direction(c, bits / 8);                                                    \
        type v = tcg_ld##bits(c, i, source(c, i, bits / 8));                                       \
        tcg_st##bits(c, i, destination(c, i, bits / 8, true), v);                                  \
        areg_add(c, i, R_RSI, step);                                                               \
        areg_add(c, i, R_RDI, step);                                                               \
    }                                                                                              \
    static inline void stos_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        tcg_st##bits(c, i, destination(c, i, bits / 8, true), (type)c->regs[R_RAX]);               \
        areg_add(c, i, R_RDI, direction(c, bits / 8));                                             \
    }                                                                                              \
    static inline void lods_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        wr##bits(c, R_RAX, tcg_ld##bits(c, i, source(c, i, bits / 8)));                            \
        areg_add(c, i, R_RSI, direction(c, bits / 8));                                             \
    }                                                                                              \
    static inline void cmps_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        uint64_t step = direction(c, bits / 8);                                                    \
        type a = tcg_ld##bits(c, i, source(c, i, bits / 8));                                       \
        type b = tcg_ld##bits(c, i, destination(c, i, bits / 8, false));                           \
        COMPARE(mod, c, a, b);                                                                     \
        areg_add(c, i, R_RSI, step);                                                               \
        areg_add(c, i, R_RDI, step);                                                               \
    }                                                                                              \
    static inline void scas_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        type b = tcg_ld##bits(c, i, destination(c, i, bits / 8, false));                           \
        COMPARE(mod, c, c->regs[R_RAX], b);                                                        \
        areg_add(c, i, R_RDI, direction(c, bits / 8));                                             \
    }
SIZES_8_64(DEFINE_ONE)

/* The device is asked only when the store cannot fault any more, and told only what was read. */
#define DEFINE_IO_ONE(bits, type)                                                                  \
    static inline void ins_one##bits(X86CPU *c, const Insn *i)                                     \
    {                                                                                              \
        uint64_t lin;                                                                              \
        type v;                                                                                    \
        tcg_check_io(c, i, (uint16_t)c->regs[R_RDX], bits / 8);                                    \
        tcg_count_exact(c, i);                                                                     \
        lin = destination(c, i, bits / 8, true);                                                   \
        tcg_probe_write(c, i, lin, bits / 8);                                                      \
        uint64_t sample = latency_sample_begin();                                                  \
        v = (type)address_space_load(&address_space_io, (uint16_t)c->regs[R_RDX], bits / 8);       \
        latency_sample_end(LATENCY_EXIT_IO, sample);                                               \
        tcg_st##bits(c, i, lin, v);                                                                \
        areg_add(c, i, R_RDI, direction(c, bits / 8));                                             \
    }                                                                                              \
    static inline void outs_one##bits(X86CPU *c, const Insn *i)                                    \
    {                                                                                              \
        type v;                                                                                    \
        tcg_check_io(c, i, (uint16_t)c->regs[R_RDX], bits / 8);                                    \
        tcg_count_exact(c, i);                                                                     \
        v = tcg_ld##bits(c, i, source(c, i, bits / 8));                                            \
        uint64_t sample = latency_sample_begin();                                                  \
        address_space_store(&address_space_io, (uint16_t)c->regs[R_RDX], v, bits / 8);             \
        latency_sample_end(LATENCY_EXIT_IO, sample);                                               \
        areg_add(c, i, R_RSI, direction(c, bits / 8));                                             \
    }
DEFINE_IO_ONE(8, uint8_t)
DEFINE_IO_ONE(16, uint16_t)
DEFINE_IO_ONE(32, uint32_t)

/* ---- Repeating ---- */

static inline bool must_stop(const X86CPU *c)
{
    return atomic_load_explicit(&c->base.exit_request, memory_order_relaxed) ||
           (c->rflags & FL_TF);
}
/* CMPS and SCAS go on while ZF is as the prefix says: F3 while equal, F2 while not. */
static inline bool zf_ends(const X86CPU *c, const Insn *i)
{
    return ((c->cc & CC_ZF) != 0) != ((i->flags & INSN_REP) != 0);
}
static inline bool never_ends(const X86CPU *c, const Insn *i)
{
    return false;
}

#define DEFINE_STRING(name, bits, run, ends)                                                       \
    static void name##bits(X86CPU *c, const Insn *i)                                               \
    {                                                                                              \
        name##_one##bits(c, i);                                                                    \
        NEXT(c, i);                                                                                \
    }                                                                                              \
    static void rep_##name##bits(X86CPU *c, const Insn *i)                                         \
    {                                                                                              \
        bool fast = fast_allowed(c, i);                                                            \
        uint64_t count = areg(c, i, R_RCX), n;                                                     \
        while (count) {                                                                            \
            n = fast ? run(c, i, count, bits / 8) : 0;                                             \
            if (!n) {                                                                              \
                name##_one##bits(c, i);                                                            \
                n = 1;                                                                             \
            }                                                                                      \
            areg_add(c, i, R_RCX, -n);                                                             \
            count -= n;                                                                            \
            if (ends(c, i)) {                                                                      \
                break;                                                                             \
            }                                                                                      \
            if (count && unlikely(must_stop(c))) {                                                 \
                tcg_return_restart(c, i);                                                          \
                return;                                                                            \
            }                                                                                      \
        }                                                                                          \
        NEXT(c, i);                                                                                \
    }
#define DEFINE_STRINGS(bits, type, mod, sfx)                                                       \
    DEFINE_STRING(movs, bits, movs_run, never_ends)                                                \
    DEFINE_STRING(stos, bits, stos_run, never_ends)                                                \
    DEFINE_STRING(lods, bits, no_run, never_ends)                                                  \
    DEFINE_STRING(cmps, bits, no_run, zf_ends)                                                     \
    DEFINE_STRING(scas, bits, no_run, zf_ends)
SIZES_8_64(DEFINE_STRINGS)
DEFINE_STRING(ins, 8, no_run, never_ends)
DEFINE_STRING(ins, 16, no_run, never_ends)
DEFINE_STRING(ins, 32, no_run, never_ends)
DEFINE_STRING(outs, 8, no_run, never_ends)
DEFINE_STRING(outs, 16, no_run, never_ends)
DEFINE_STRING(outs, 32, no_run, never_ends)

/* ---- Decoding ---- */

enum { STR_INS, STR_OUTS, STR_MOVS, STR_CMPS, STR_STOS, STR_LODS, STR_SCAS, STR_COUNT };
#define ROW(name)                                                                                  \
    {                                                                                              \
        { name##8, name##16, name##32, name##64 },                                                 \
        {                                                                                          \
            rep_##name##8, rep_##name##16, rep_##name##32, rep_##name##64                          \
        }                                                                                          \
    }
#define IO_ROW(name)                                                                               \
    {                                                                                              \
        { name##8, name##16, name##32 },                                                           \
        {                                                                                          \
            rep_##name##8, rep_##name##16, rep_##name##32                                          \
        }                                                                                          \
    }
static InsnFn *const string_table[STR_COUNT][2][SZ_COUNT] = {
    [STR_INS] = IO_ROW(ins), [STR_OUTS] = IO_ROW(outs), [STR_MOVS] = ROW(movs),
    [STR_CMPS] = ROW(cmps),  [STR_STOS] = ROW(stos),    [STR_LODS] = ROW(lods),
    [STR_SCAS] = ROW(scas),
};

/* By opcode: the mnemonics of MOVSD and CMPSD are shared with SSE. -1: not ours. */
static int string_op(const Decode *d)
{
    if (d->zi.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT ||
        d->zi.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
        return -1;
    }
    switch (d->zi.opcode & ~1) {
    case 0x6c:
        return STR_INS;
    case 0x6e:
        return STR_OUTS;
    case 0xa4:
        return STR_MOVS;
    case 0xa6:
        return STR_CMPS;
    case 0xaa:
        return STR_STOS;
    case 0xac:
        return STR_LODS;
    case 0xae:
        return STR_SCAS;
    default:
        return -1;
    }
}

/* The segment of the source: the last override, else DS; 64-bit mode knows FS and GS only. */
static unsigned source_segment(const Decode *d)
{
    for (unsigned k = d->zi.raw.prefix_count; k-- > 0;) {
        switch (d->zi.raw.prefixes[k].value) {
        case 0x64:
            return R_FS;
        case 0x65:
            return R_GS;
        case 0x26:
            return d->bits == 64 ? R_DS : R_ES;
        case 0x2e:
            return d->bits == 64 ? R_DS : R_CS;
        case 0x36:
            return d->bits == 64 ? R_DS : R_SS;
        default:
            break;
        }
    }
    return R_DS;
}

bool decode_string(Decode *d, Insn *out)
{
    int op = string_op(d);
    unsigned width, size;
    bool rep = (out->flags & (INSN_REP | INSN_REPNE)) != 0;

    if (op < 0) {
        return false;
    }
    width = d->zi.operand_width;
    size = !(d->zi.opcode & 1) ? SZ_8 : width == 16 ? SZ_16 : width == 64 ? SZ_64 : SZ_32;
    if (size == SZ_64 && (op == STR_INS || op == STR_OUTS)) {
        size = SZ_32;
    }
    out->seg = (uint8_t)source_segment(d);
    out->flags &= (uint8_t)~(INSN_SEGCHECK | INSN_SEGBASE);
    out->flags |= tcg_seg_flags(decode_mode(d), out->seg);
    out->base = out->index = R_ZERO;
    out->opsize = (uint8_t)(1u << size);
    out->fn = string_table[op][rep][size];
    return true;
}
