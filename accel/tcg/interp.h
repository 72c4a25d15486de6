/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interpreter's inner contract: decoded instructions, handlers, guest memory access, faults.
 *
 * A block is a run of decoded instructions on one page, cached by physical address and mode.
 * A handler does one instruction and tail-calls the next record's handler (NEXT); the last record
 * of a block returns to the engine. Handlers commit nothing before their last check: a fault
 * leaves by siglongjmp with all registers as they were before the instruction. cpu->rip is only
 * brought up to date at block ends and faults; i->off locates the instruction until then.
 *
 * Files: engine.c (block cache, vcpu_run), decode*.c (Zydis to records), int_*.c (integer
 * handlers), mmu.c and mem.c (page walk, TLB, access), sys_*.c (segments, far transfers, event
 * delivery, system registers), simd*.c and x87.c (native stubs).
 */
#ifndef ACCEL_TCG_INTERP_H
#define ACCEL_TCG_INTERP_H

#include <setjmp.h>
#include <Zydis/Zydis.h>
#include "memory/memory.h"
#include "target/i386/cpu.h"

typedef struct Insn Insn;
typedef struct TcgBlock TcgBlock;
typedef void InsnFn(X86CPU *c, const Insn *i);
struct TlbEntry;

/* Address size of a memory operand. */
enum { ASZ_16, ASZ_32, ASZ_64 };

#define INSN_LOCK  BIT(0)
#define INSN_REP   BIT(1) /* F3 */
#define INSN_REPNE BIT(2) /* F2 */
/* The memory operand needs the full segment check (not 64-bit mode, not a flat segment). */
#define INSN_SEGCHECK BIT(3)
/* 64-bit mode, FS or GS: only the base is added. */
#define INSN_SEGBASE  BIT(4)

/* One decoded instruction. */
struct Insn {
    InsnFn *fn;
    uint64_t imm;  /* immediate, sign- or zero-extended as the handler wants it */
    int64_t disp;  /* displacement; RIP-relative operands are folded (base = R_ZERO) */
    const void *aux; /* native stub, or whatever the decoder of this family wants */
    uint8_t base, index, scale; /* index R_ZERO: none; scale is a shift, 0..3 */
    uint8_t seg;   /* of the memory operand, overrides applied */
    uint8_t asz;   /* ASZ_* */
    /* Register operands by number. 8-bit AH CH DH BH are 16..19 (see reg8_ptr()). */
    uint8_t reg, rm, vvvv;
    uint8_t len;   /* bytes of the instruction */
    uint8_t flags; /* INSN_* */
    uint16_t off;  /* of the instruction from the block's first byte */
    uint8_t opsize; /* operand size in bytes: 1, 2, 4, 8, 16, 32 */
    uint8_t aux8;
    uint16_t aux16;
};

/*
 * Every handler ends with NEXT, or, if it transfers control, writes c->rip and returns. A record
 * the engine appends after the last instruction sets c->rip to what follows and returns, so NEXT is
 * right also where the decoder set ends_block.
 */
#define NEXT(c, i) return (i)[1].fn((c), (i) + 1)

/*
 * Bits of TcgCpu.mode_key, set by tcg_mode_changed(). Decoded blocks are found by the whole key:
 * a decoder may specialise on any of these bits and on nothing else that can change.
 */
#define MODE_CS32    BIT(0) /* 32-bit code; neither: 16-bit */
#define MODE_CS64    BIT(1) /* 64-bit code */
#define MODE_SS32    BIT(2) /* stack pointer is ESP; neither this nor MODE_CS64: SP */
#define MODE_FLAT    BIT(3) /* ES, SS, DS: base 0, limit 4 GiB, readable and writable; not CS64 */
#define MODE_PE      BIT(4) /* protected or long mode */
#define MODE_VM86    BIT(5)
#define MODE_USER    BIT(6) /* CPL 3 */
#define MODE_LMA     BIT(7) /* long mode, compatibility submode included */
#define MODE_FPU_NM  BIT(8) /* CR0.TS or CR0.EM: x87 raises #NM */
#define MODE_SSE_UD  BIT(9) /* CR0.EM, or CR4.OSFXSR clear: SSE raises #UD */
#define MODE_SSE_NM  BIT(10) /* CR0.TS */
#define MODE_AVX     BIT(11) /* CR4.OSXSAVE and XCR0 allow AVX */
#define MODE_CSFLAT  BIT(12) /* CS: base 0, limit 4 GiB; not CS64 */
#define MODE_STEP    BIT(15) /* private to the engine: block of one instruction */
/* Further bits (16..) may be added by whoever needs one. */

/* ---- Decoding ---- */

/* What the decoder of a family sees. */
typedef struct Decode {
    X86CPU *c;
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint8_t bytes[15];
    uint64_t rip;   /* of this instruction (offset in CS) */
    uint8_t bits;   /* 16, 32 or 64: code size */
    bool ends_block; /* set by the family: control or mode may change here */
} Decode;

/*
 * A family's decoder: if the instruction is its own, fills *out (fn, aux, opsize, registers; the
 * engine has already filled memory operand, len, off, flags) and returns true. Instructions nobody
 * takes, or whose CPUID feature the guest does not have, raise #UD.
 */
typedef bool DecodeFn(Decode *d, Insn *out);
DecodeFn decode_integer; /* int_*.c */
DecodeFn decode_string;  /* string.c: MOVS STOS LODS CMPS SCAS INS OUTS */
DecodeFn decode_system;  /* sys_*.c */
DecodeFn decode_simd;    /* simd*.c: MMX, SSE..AVX2, FMA, AES, SHA, ..., FXSAVE, XSAVE family */
DecodeFn decode_x87;     /* x87.c */

/* INSN_SEGCHECK, INSN_SEGBASE or 0: what an access through seg needs in this mode. decode.c */
uint8_t tcg_seg_flags(uint32_t mode_key, unsigned seg);

/* ---- Faults: none of these return ---- */

/* i may be NULL when no instruction is under way (delivery of an event). RIP becomes that of i. */
QEMU_NORETURN void tcg_raise(X86CPU *c, const Insn *i, int vector);
QEMU_NORETURN void tcg_raise_err(X86CPU *c, const Insn *i, int vector, uint32_t error);
/* Sets CR2. */
QEMU_NORETURN void tcg_raise_pf(X86CPU *c, const Insn *i, uint64_t addr, uint32_t error);
/* Leave the block now with everything of i committed and RIP past it (mode switch, HLT, ...). */
QEMU_NORETURN void tcg_leave_after(X86CPU *c, const Insn *i);
/* Leave with nothing of i committed and interpret it again (alone, if single is set). */
QEMU_NORETURN void tcg_leave_before(X86CPU *c, const Insn *i, bool single);
/*
 * The block under execution is a single instruction. A store that would hit code in the page of a
 * longer block does tcg_leave_before(c, i, true) before it writes; alone, it may write.
 */
bool tcg_block_is_single(const X86CPU *c);
/* The code page at host address of the block under execution (its second too, if it crosses). */
bool tcg_block_uses_page(const X86CPU *c, const RAMBlock *rb, uint64_t page_offset);
/*
 * Something that held interrupts or NMIs back went away (IF was set, IRET, CR8, NMI unblocked) or
 * int_shadow was set: the engine looks before the next block. The instruction must end its block.
 */
void tcg_irq_recheck(X86CPU *c);
/*
 * A repeated instruction stops half way for an interrupt: its registers say how far it came and RIP
 * stays. The handler must return (not NEXT) right after this.
 */
void tcg_return_restart(X86CPU *c, const Insn *i);
/* tcg_insn_rip(c, i), tcg_next_rip(c, i): RIP of i and of what follows it (tlb.h). */

/* ---- Guest memory by linear address (mem.c) ---- */

/*
 * Little-endian loads and stores with the current privilege; the inline halves probe the TLB. A
 * fault does not return. Naturally aligned accesses are single-copy atomic. Page-crossing stores
 * check both pages before they write either.
 */
/* uint{8,16,32,64}_t tcg_ld{8,16,32,64}(c, i, lin); void tcg_st{8,16,32,64}(c, i, lin, v): tlb.h */
/* Any length up to one page; a store checks everything before it writes. */
void tcg_ld_buf(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len);
void tcg_st_buf(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned len);
/* Would a store fault? Raises if so; otherwise the following store of the same bytes will not. */
void tcg_probe_write(X86CPU *c, const Insn *i, uint64_t lin, unsigned len);
void tcg_probe_read(X86CPU *c, const Insn *i, uint64_t lin, unsigned len);
/*
 * Host address for a locked or plain read-modify-write of len (1, 2, 4, 8, 16) bytes of writable
 * RAM (contiguous in host memory, so that a split lock stays one); all checks are made. After the
 * operation call tcg_rmw_done(c) (tlb.h), which sees to code that was hit. NULL if it must be done
 * piecewise (MMIO, ROM, pages apart): then use tcg_rmw_begin/end, which also serialise against
 * other vCPUs doing the same; nothing that can fault may stand between the two.
 */
void *tcg_rmw_host(X86CPU *c, const Insn *i, uint64_t lin, unsigned len);
void tcg_rmw_begin(X86CPU *c, const Insn *i, uint64_t lin, void *buf, unsigned len);
void tcg_rmw_end(X86CPU *c, const Insn *i, uint64_t lin, const void *buf, unsigned len);
/* As supervisor, whatever CPL is (descriptor tables, TSS, IDT): SDM 3A 4.6, implicit accesses. */
uint64_t tcg_ld_sys(X86CPU *c, const Insn *i, uint64_t lin, unsigned size);
void tcg_st_sys(X86CPU *c, const Insn *i, uint64_t lin, uint64_t v, unsigned size);

/* ---- TLB (mmu.c) ---- */
/* Drops everything and takes over CR0, CR3, CR4, EFER, PKRU as they are now (PAE: the PDPTEs are
 * read again if CR3 is another): CPU_REQ_TLB_FLUSH, regs_put, reset. Ends with
 * tcg_mode_changed(). */
void tcg_mmu_resync(X86CPU *c);
/* The guest changes PKRU only through this (WRPKRU, XRSTOR). */
void tcg_pkru_set(X86CPU *c, uint32_t pkru);
void tcg_tlb_flush(X86CPU *c, bool global);             /* CR3 write; global: CR4, CR0, INVPCID */
void tcg_tlb_flush_page(X86CPU *c, uint64_t lin);       /* INVLPG */
void tcg_tlb_flush_pcid(X86CPU *c, uint16_t pcid);
/* Walk only, no A/D update and no fault: for the debugger. False if not mapped. */
bool tcg_translate_debug(X86CPU *c, uint64_t lin, hwaddr *phys);
/* Physical address an instruction fetch at lin comes from; raises #PF, #GP. */
hwaddr tcg_translate_fetch(X86CPU *c, uint64_t lin);
/* The same as a TLB entry: phys (page), and rb and host if the page is RAM or ROM (else rb is
 * NULL). Valid until the next access. */
const struct TlbEntry *tcg_fetch_entry(X86CPU *c, uint64_t lin);

/* ---- Segmentation (tlb.h has the inline halves) ---- */
/*
 * Linear address of i's memory operand, for an access of size bytes: address-size wrap, segment
 * base, and in non-flat modes limit and type checks (#GP(0)/#SS(0)); canonical check in 64-bit mode
 * is made by the access itself (#SS for RSP/RBP/SS-based operands, else #GP).
 */
/* uint64_t tcg_ea(c, i, size, write); and the offset only, for LEA and the like:
 * uint64_t tcg_ea_offset(c, i): tlb.h */
uint64_t tcg_seg_check(X86CPU *c, const Insn *i, unsigned seg, uint64_t offset, unsigned size,
                       bool write);

/* ---- System half (sys_*.c) ---- */
enum { EVENT_EXCEPTION, EVENT_SOFT_INT, EVENT_EXT_INT, EVENT_NMI, EVENT_ICEBP, EVENT_INTO };
/* Delivers an event through IVT or IDT, with nested-fault rules (#DF, triple fault -> returns
 * false, the CPU shuts down). RIP and registers are architecturally exact on entry. */
bool tcg_deliver_event(X86CPU *c, int kind, int vector, bool has_error, uint32_t error,
                       uint64_t return_rip);
/* CS, CPL, CR0, EFER, ... changed: recompute the mode key, hflags and the flat shortcut. */
void tcg_mode_changed(X86CPU *c);
/*
 * Debug hooks, called while tcg_single_step_wanted(): before each instruction (instruction
 * breakpoints: true if an event was delivered instead), and after it (TF as it was before the
 * instruction, data and I/O breakpoints: may deliver #DB). Return false for a triple fault through
 * *dead.
 */
bool tcg_debug_before(X86CPU *c, bool *dead);
void tcg_debug_after(X86CPU *c, bool tf_before, bool *dead);
/* TF, DR7 or a debugger want attention at every instruction: blocks of one. */
bool tcg_single_step_wanted(const X86CPU *c);
/*
 * Replaces the flags of mask by those of v (POPF and the like). The block must end after it if mask
 * has TF, IF or AC.
 */
void tcg_write_flags(X86CPU *c, uint64_t v, uint64_t mask);
/* A triple fault inside a handler: leaves with c->tcg->shutdown set (TCG_JMP_LEAVE). */
QEMU_NORETURN void tcg_leave_shutdown(X86CPU *c);
/* ---- SIMD and x87 (simd*.c, x87*.c) ---- */
/* tcg_simd_init(), tcg_simd_fini(), tcg_simd_reset() (tlb.h): the per-vCPU arena of native stubs and
 * its look-up table, of fixed size, touched at once: nothing is allocated once the guest runs. */
/* FERR#: an unmasked x87 exception is pending with CR0.NE = 0 (level true), or was cleared. The
 * board routes it to IRQ 13; NULL until then. Called on the vCPU's thread, no lock held. */
extern void (*tcg_ferr_hook)(X86CPU *c, bool level);

/* IN/OUT with the permission checks of the mode. */
void tcg_check_io(X86CPU *c, const Insn *i, uint16_t port, unsigned size);

#endif
