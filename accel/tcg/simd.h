/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private to simd*.c, x87*.c and xsave.c: native stubs, checks that every vector instruction makes,
 * and vector-sized guest memory access.
 *
 * A stub is a leaf function in a per-vCPU executable arena that loads the operands it is given
 * pointers to into fixed host registers, runs one guest instruction re-encoded for these registers,
 * and stores the results. It is generated from a 64-bit key alone, in which the guest's register
 * numbers do not occur, so that all uses of an instruction share one stub. The arena is a
 * set-associative cache: whoever calls a stub compares its slot's key first and refills on a
 * mismatch, hence eviction needs no knowledge of the decoded blocks that point at a slot.
 */
#ifndef ACCEL_TCG_SIMD_H
#define ACCEL_TCG_SIMD_H

#include <string.h>
#include "accel/tcg/tlb.h"

/*
 * What a stub is called with:
 * reg, rm, vvvv, is4: the operand's home in X86CPU (16, 32 or 8 bytes) or, for rm, host memory that
 * holds the memory operand. Returns 0, or 1 if an unmasked SIMD exception stopped it: then nothing
 * was stored (see simd_fp_run()).
 */
typedef unsigned SimdStubFn(void *reg, void *rm, void *vvvv, X86CPU *c, void *is4);

/* Register classes of an operand. */
enum { KC_NONE, KC_GPR, KC_MMX, KC_XMM, KC_YMM };

/* Layout of a key. The low half is the encoding, the high half what to load and store. */
#define KEY_OPCODE(k)  ((uint8_t)(k))
#define KEY_IMM(k)     ((uint8_t)((k) >> 8))
#define KEY_MODRM(k)   ((uint8_t)((k) >> 16)) /* as emitted, operands in their fixed registers */
#define KEY_PP(k)      ((unsigned)((k) >> 24) & 3) /* VEX.pp: none, 66, F3, F2 */
#define KEY_MAP(k)     ((unsigned)((k) >> 26) & 3) /* VEX.mmmmm: 0F, 0F38, 0F3A */
#define KEY_HAS_IMM    BIT64(28)
#define KEY_VEX        BIT64(29)
#define KEY_L          BIT64(30)
#define KEY_W          BIT64(31)
#define KEY_REG(k)     ((unsigned)((k) >> 32) & 7) /* KC_* */
#define KEY_RM(k)      ((unsigned)((k) >> 35) & 7) /* KC_NONE with KEY_MEM */
#define KEY_VVVV(k)    ((unsigned)((k) >> 38) & 7)
#define KEY_IS4(k)     ((unsigned)((k) >> 41) & 7)
#define KEY_REG_SHIFT  32
#define KEY_RM_SHIFT   35
#define KEY_VVVV_SHIFT 38
#define KEY_IS4_SHIFT  41
#define KEY_MEM        BIT64(44)
#define KEY_REG_WR     BIT64(45)
#define KEY_RM_WR      BIT64(46)
#define KEY_VVVV_WR    BIT64(47)
#define KEY_XMM0_RD    BIT64(48) /* implicit operands */
#define KEY_XMM0_WR    BIT64(49)
#define KEY_LENGTHS    BIT64(50) /* RAX and RDX are read (PCMPESTRx) */
#define KEY_RCX_WR     BIT64(51)
#define KEY_FLAGS_WR   BIT64(52)
#define KEY_FLAGS_RD   BIT64(53)
#define KEY_FP         BIT64(54) /* depends on MXCSR */
#define KEY_X87        BIT64(55) /* opcode and modrm only; FXRSTOR64 and FXSAVE64 around it */
#define KEY_X87_LIGHT  BIT64(56) /* x87_fast.c: class in KEY_REG, pops in KEY_VVVV */
#define KEY_VALID      BIT64(63)

typedef struct SimdSlot {
    uint64_t key; /* 0: empty */
    SimdStubFn *fn;
} SimdSlot;

#define SIMD_WAYS      4
#define SIMD_SETS      512
#define SIMD_SLOTS     (SIMD_WAYS * SIMD_SETS)
#define SIMD_STUB_SIZE 128 /* bytes; the longest stub is below it, which simd_emit() asserts */

struct TcgSimd {
    SimdSlot slots[SIMD_SLOTS];
    uint8_t victim[SIMD_SETS]; /* next way to evict */
    uint8_t *rw, *rx;          /* two views of the arena */
    uint32_t fault_mxcsr;      /* MXCSR of the SIMD exception that was caught */
    uint64_t evictions;
    uint8_t buf[64] QEMU_ALIGNED(64); /* memory operand that is not directly accessible */
    /* x87 */
    bool ferr;
    uint16_t pkru_offset; /* of PKRU in a standard XSAVE area; 0: not asked yet */
};

/* Host default: all exceptions masked, round to nearest. */
#define MXCSR_DEFAULT  0x1f80u
#define MXCSR_FLAGS    0x003fu
#define MXCSR_MASKS    0x1f80u
#define MXCSR_CONTROL  0xe040u /* RC, FTZ, DAZ */
#define MXCSR_VALID    0xffffu /* reported as MXCSR_MASK by FXSAVE */

/* simd_stub.c. The slot that holds key's stub, generated if need be. vCPU thread. */
const SimdSlot *simd_stub_get(X86CPU *c, uint64_t key);
static inline SimdStubFn *simd_stub(X86CPU *c, const Insn *i)
{
    const SimdSlot *s = i->aux;
    if (unlikely(s->key != i->imm)) {
        s = simd_stub_get(c, i->imm);
    }
    return s->fn;
}

static inline uint32_t host_getcsr(void)
{
    uint32_t v;
    __asm__ volatile("stmxcsr %0" : "=m"(v)::"memory");
    return v;
}
static inline void host_setcsr(uint32_t v)
{
    __asm__ volatile("ldmxcsr %0" ::"m"(v) : "memory");
}

/* simd_stub.c: some SIMD exception is unmasked. Runs fn with the guest's MXCSR as it is, and turns
 * the host's SIGFPE into #XM (#UD if CR4.OSXMMEXCPT is 0). */
void simd_fp_run_trapping(X86CPU *c, const Insn *i, SimdStubFn *fn, void *reg, void *rm, void *vvvv,
                          void *is4);

/*
 * Runs a stub that depends on MXCSR. Afterwards the host's register has its default control bits;
 * flags may stay in it (csr_live) as nobody in the host reads them.
 */
static inline void simd_fp_run(X86CPU *c, const Insn *i, SimdStubFn *fn, void *reg, void *rm,
                               void *vvvv, void *is4)
{
    uint32_t want = c->mxcsr;
    if (likely((want & (MXCSR_MASKS | MXCSR_CONTROL)) == MXCSR_DEFAULT)) {
        if (unlikely(!c->tcg->csr_live)) {
            host_setcsr(want);
            c->tcg->csr_live = true;
        }
        fn(reg, rm, vvvv, c, is4);
        return;
    }
    /* csr_live implies default control bits: here it is false. */
    if ((want & MXCSR_MASKS) != MXCSR_MASKS) {
        simd_fp_run_trapping(c, i, fn, reg, rm, vvvv, is4);
        return;
    }
    host_setcsr(want);
    fn(reg, rm, vvvv, c, is4);
    c->mxcsr = host_getcsr();
    host_setcsr(MXCSR_DEFAULT);
}

/* ---- Availability (SDM 2B, table 2-17 ff. and 3A 13.1) ---- */
QEMU_NORETURN void simd_raise_sse(X86CPU *c, const Insn *i);
QEMU_NORETURN void simd_raise_avx(X86CPU *c, const Insn *i);

static inline void sse_check(X86CPU *c, const Insn *i)
{
    if (unlikely((c->cr0 & (CR0_EM | CR0_TS)) || !(c->cr4 & CR4_OSFXSR))) {
        simd_raise_sse(c, i);
    }
}
static inline void avx_check(X86CPU *c, const Insn *i)
{
    if (unlikely((c->cr0 & (CR0_TS | CR0_PE)) != CR0_PE || !(c->cr4 & CR4_OSXSAVE) ||
                 (c->xcr0 & 6) != 6 || (c->rflags & FL_VM))) {
        simd_raise_avx(c, i);
    }
}

/* ---- MMX on top of x87 (x87.c) ---- */
/* #UD, #NM, #MF as they apply; changes nothing. */
void mmx_check(X86CPU *c, const Insn *i);
/* TOP = 0 and all registers valid: what any MMX instruction but EMMS does. st[n] is MMn then. */
void mmx_enter(X86CPU *c);
/* FSW.ES and FSW.B from the exception flags and masks, and FERR# with them: after FCW, FSW or the
 * whole state was loaded. */
void x87_update_es(X86CPU *c);
static inline void *mmx_reg(X86CPU *c, unsigned n)
{
    return c->x87.st[n & 7].b;
}
static inline void mmx_wrote(X86CPU *c, unsigned n)
{
    c->x87.st[n & 7].b[8] = c->x87.st[n & 7].b[9] = 0xff;
}

/* ---- Vector-sized memory access ---- */

static inline bool simd_ac_active(const X86CPU *c)
{
    return (c->rflags & FL_AC) && (c->cr0 & CR0_AM) && c->cpl == 3;
}

/*
 * Where size bytes at lin can be read: guest RAM itself, or buf after a load into it. The pointer
 * is good until the next guest memory access.
 */
const void *simd_load_slow(X86CPU *c, const Insn *i, uint64_t lin, unsigned size, void *buf);
static inline const void *simd_load(X86CPU *c, const Insn *i, uint64_t lin, unsigned size,
                                    void *buf)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];
    if (likely(((lin + size - 1) & TARGET_PAGE_MASK) == e->rtag)) {
        return tlb_host(e, lin);
    }
    return simd_load_slow(c, i, lin, size, buf);
}

void simd_store(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned size);

/* Stores 16 or 32 bytes straight into RAM if the TLB allows; the rules are those of tlb.h. */
static inline bool simd_store_direct(X86CPU *c, uint64_t lin, const void *buf, unsigned size)
{
    const TlbEntry *e = &c->tcg->tlb[TLB_INDEX(lin)];
    if (((lin + size - 1) & TARGET_PAGE_MASK) != e->wtag ||
        atomic_load_explicit(e->code_map, memory_order_relaxed) != 0) {
        return false;
    }
    memcpy(tlb_host(e, lin), buf, size);
    atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(e->code_map, memory_order_relaxed) != 0)) {
        tlb_code_hit(e, lin, size);
    }
    return true;
}

/* #GP(0) for an operand that must be aligned to its size. */
static inline void simd_align(X86CPU *c, const Insn *i, uint64_t lin, unsigned size)
{
    if (unlikely(lin & (size - 1))) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}

/* Families inside decode_simd(). Each returns false if the instruction is not its own. */
bool simd_decode_fast(Decode *d, Insn *out); /* simd_fast.c: after the generic half filled out */
bool simd_decode_special(Decode *d, Insn *out); /* simd_mem.c */
bool simd_decode_state(Decode *d, Insn *out);   /* xsave.c */
/* Does the instruction depend on MXCSR? */
bool simd_uses_mxcsr(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op);
bool simd_has_isa(const X86CPU *c, ZydisISASet set, ZydisMnemonic mn);
/* x87_fast.c: the stub of a KEY_X87_LIGHT key at p; its length. */
size_t x87_emit_light(uint8_t *p, uint64_t key);
/* simd_exec.c: installs the handler that suits the key and aux16 of *out. */
void simd_pick_handler(Insn *out);

/* Insn.aux16 */
#define SI_ALIGN  BIT(0) /* memory operand must be aligned to its size */
#define SI_VEX    BIT(1) /* avx_check() instead of sse_check() */
#define SI_NOSSE  BIT(2) /* MMX only: neither check */
#define SI_MMX    BIT(3)
#define SI_STORE  BIT(4) /* memory operand is written */
#define SI_FP     BIT(5)
/* Insn.aux8: size of the memory operand. Insn.opsize: number of the fourth register (IS4). */

#endif
