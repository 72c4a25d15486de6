/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The translator: a hot block of the interpreter becomes host code in which each guest instruction
 * is the same host instruction, with memory operands going through the TLB and control flow
 * through chains. What it does not know, and every slow case of what it knows (TLB miss, MMIO,
 * fault, page crossing), is one instruction of the interpreter, which stays the only place where
 * such things are decided. docs/devel/translator.md.
 *
 * Files: jit.c (cache, chains), jit-run.c (entry and exit, jump cache), jit-block.c (a block and its flags), jit-exit.c (its exits),
 * jit-insn.c (instructions), jit-mem.c (memory operands), jit-group.c (which of them share a probe), jit-flow.c (control flow), jit-simd.c
 * (vector instructions), jit-x87.c (x87), jit-string.c (REP MOVS and STOS), jit-sys.c (of kernels),
 * jit-stats.c (for query-jit), emit.c (encoder).
 */
#ifndef ACCEL_TCG_JIT_H
#define ACCEL_TCG_JIT_H

#include <time.h>
#include "accel/tcg/emit.h"
#include "accel/tcg/engine.h"
#include "accel/jit-stats.h"


/*
 * Host registers while translated code runs. RAX, RCX, RDX are scratch, RSP is the host's stack, R13 the TLB. RBP points
 * into X86CPU so that what is wanted most has displacements of one byte: from the exit request, the last member
 * of CPUState, to the general registers.
 */
#define JIT_CPU    H_BP
#define JIT_TLB    H_13 /* the TLB's table of now */
#define JIT_CPU_AT ((int32_t)offsetof(X86CPU, regs))

/* Slots of X86CPU.accel_near and, behind these, of X86CPU.accel_area. */
enum { AREA_TLB, AREA_JUMP, AREA_EPOCH,
       /* The stack's page, its host address and code map, and where in it accesses may begin: short, long. */
       AREA_STACK_PAGE, AREA_STACK_HOST, AREA_STACK_MAP, AREA_STACK_SHORT, AREA_STACK_LONG,
       AREA_GROUP, AREA_GROUP_MAP = AREA_GROUP + 8,
       AREA_TARGET = AREA_GROUP_MAP + 8, AREA_TEMP, AREA_FIP, AREA_FDP, AREA_FOP,
       AREA_BUDGET /* -icount: instructions until the engine must stop */ };
/*
 * X86CPU.accel_vectors: where the guest's vector registers are, X86CPU.ymm or the host's registers; then with
 * MXCSR in the host's too (TcgCpu.csr_live), or without. Translated code alone knows of it: C always finds them
 * at home.
 */
enum { VECTORS_HOME, VECTORS_LIVE, VECTORS_LIVE_CSR };
#define JIT_GROUPS 8 /* alive at once in a block */

typedef struct JitPart {
    uint32_t at, size;
} JitPart;

/* Bytes of the cache that are filled in turn. */
typedef struct JitRing {
    uint32_t begin, end, fill;
} JitRing;

typedef struct JitBlock JitBlock;
typedef struct Jit Jit;

/* A direct exit: a jump that leads to a stub until its target is translated, then to that. */
typedef struct JitLink {
    JitBlock *owner, *to;
    uint8_t *rel;        /* the displacement, in the writable view; NULL: not in use */
    const uint8_t *stub; /* where it leads when it is not linked */
    /* A jump to another page: the epoch it compares with, its way out and where that leads then. */
    uint8_t *guard_imm, *guard_rel;
    const uint8_t *guard_else;
    uint8_t budget;      /* of failed guards until it is linked again */
    struct JitLink *next; /* of those that lead to the same block */
} JitLink;

struct JitBlock {
    Jit *j;
    TcgBlock *tb;        /* NULL: not in use */
    const uint8_t *code; /* entry, executable view */
    const uint8_t *inner; /* the same behind the two checks of every entry */
    /* Flags were not saved because of what these bytes of the page do: jit_restamp(). */
    struct {
        const uint8_t *host;
        uint32_t len, sum;
    } peek[2];
    uint8_t *gen_imm;    /* generation it compares with, in the writable view */
    /* A block over a page's end: generation and mapping of its second page. */
    uint8_t *gen2_imm, *epoch_imm;
    JitPart part[2];     /* places in the cache: what runs, stubs */
    bool shadow;         /* ends with STI: one more instruction before an interrupt */
    bool bare;           /* nothing but instructions behind inner */
    JitLink *incoming;
    JitLink exit[2];
};

typedef struct JitJump {
    uint64_t rip;
    uint64_t epoch;      /* 0: none */
    const uint8_t *code;
    uint64_t pad;        /* 32 bytes; two make a set, the first is the newer */
} JitJump;

/* What of an instruction is given to the interpreter: index, mnemonic, and whether it is a slow
 * case  of one that was translated.
 * With JIT_CALL_X87 what follows wants the x87 state in the host's registers. */
#define JIT_CALL_SLOW     BIT(8)
#define JIT_CALL_X87      BIT(9)
#define JIT_CALL_MNEMONIC 16 /* shift */
#define JIT_MNEMONICS     (ZYDIS_MNEMONIC_MAX_VALUE + 1)

#define JIT_JUMP_BITS 14
/* Where the set for rip begins: a multiplicative hash, of which the upper bits are best. */
#define JIT_JUMP_SET    ((int32_t)(2 * sizeof(JitJump)))
#define JIT_JUMP_FACTOR 0x61c88647
#define JIT_JUMP_SHIFT  (32 - (JIT_JUMP_BITS - 1) - 6)
static inline uint32_t jit_jump_at(uint64_t rip)
{
    return ((uint32_t)rip * JIT_JUMP_FACTOR) >> JIT_JUMP_SHIFT & (uint32_t)-JIT_JUMP_SET;
}
_Static_assert(sizeof(JitJump) == 32, "JIT_JUMP_SHIFT");

/* Blocks there are headers for: as many as fill the cache, up to what one of 16 MiB has. */
#define JIT_BLOCK_MEAN 512
#define JIT_BLOCKS_MAX (1u << 17)

/*
 * A block's code is in two places: what is run through each time, and, away from it so that caches hold more of
 * that, the stubs. The most they take; a block that would need more stays with the interpreter.
 */
#define JIT_HOT_MAX  (16 * 1024)
#define JIT_COLD_MAX (48 * 1024)

/* ---- Translation of one block (private to jit-*.c) ---- */

/* Where the arithmetic flags are. Both: equal. None: nobody wants them. */
#define FLAGS_HOST BIT(0) /* EFLAGS */
#define FLAGS_MEM  BIT(1) /* X86CPU.cc */

#define JIT_MAX_STUBS 400

/* State at a point of the block that a stub must spill or restore. */
typedef struct JitState {
    uint8_t flags;
    uint8_t x87;         /* instruction + 1 whose FIP and FOP are to be noted; 0: none */
} JitState;

/* Interpret and resume; interpret and leave; see whether stored bytes were code; probe for this access
 * alone. */
typedef enum StubKind {
    STUB_INTERP, STUB_INTERP_END, STUB_CODE_HIT,
    STUB_REST, /* the interpreter goes on to the end of the block */
    STUB_PROBE, /* the access probes for itself alone */
    STUB_WAY,  /* the second entry of the TLB's set */
    STUB_STACK, /* the TLB, for what is not in AREA_STACK_PAGE */
    STUB_JUMP, /* the second entry of the jump cache's */
    STUB_CALL_HIT, /* the return address hit code */
    STUB_STRING_HIT, /* what REP MOVS or STOS stored did */
} StubKind;
typedef struct JitStub {
    StubKind kind;
    uint8_t *rel[6];     /* jumps that lead here */
    uint8_t nrel;
    uint8_t index;       /* of the instruction */
    uint8_t size;        /* STUB_CODE_HIT: bytes stored */
    int32_t disp;        /* STUB_CODE_HIT: where, from RCX (RDX if neutral); STUB_STACK: from RSP; STUB_WAY: of the set */
    uint16_t range;      /* STUB_STACK, STUB_WAY: bytes */
    bool write;          /* STUB_STACK, STUB_WAY */
    bool fixed;          /* STUB_WAY: RAX is no index */
    bool entry;          /* STUB_WAY: RAX becomes the entry's */
    bool call;           /* STUB_JUMP: goes on in the block */
    bool optional;       /* not wanted if nothing leads here */
    uint64_t target;     /* STUB_CALL_HIT: where the call leads; 0: to that in AREA_TARGET */
    bool neutral;        /* STUB_CODE_HIT: EFLAGS hold flags that are wanted */
    JitState before, after;
    struct JitStub *miss; /* STUB_PROBE, _WAY, _STACK, _JUMP: where to go then */
    const uint8_t *at;   /* where it is, once it is emitted */
    const uint8_t *resume;
} JitStub;

/* The access to memory that an instruction makes at an address known before it runs: jit-group.c. */
typedef struct JitAccess {
    bool write;
    bool leads, follows; /* a group */
    bool leads_writes;   /* some follower stores */
    bool probe_write;    /* the leader probes for writing */
    bool done;           /* leader: its slots are filled, with where its range begins */
    bool used;           /* the slot is what it goes by */
    uint8_t size, slot, leader;
    uint8_t span;        /* slots of groups that begin here or before and go on behind */
    uint8_t aligned;     /* leader: what its address was found to be aligned to */
    int32_t lo, hi;      /* leader: the group's range, from its address */
    int32_t off;         /* follower: from the leader's address */
    Insn ea;
} JitAccess;

typedef struct JitCtx {
    Emit e;
    X86CPU *c;
    Jit *j;
    TcgBlock *tb;
    JitBlock *jb;
    JitState s;
    unsigned index;            /* of the instruction under way */
    unsigned n;                /* instructions translated */
    uint16_t live[BLOCK_MAX_INSNS + 1]; /* arithmetic flags wanted before instruction n */
    unsigned vectors;          /* instructions up to the last with vector registers; 0: none */
    bool csr;                  /* some instruction depends on MXCSR */
    bool x87;                  /* some instruction wants the x87 state in the host */
    bool ended;                /* control has left the block */
    unsigned interpreted;      /* instructions left to the interpreter */
    uint64_t exit_rip[2];
    unsigned exit_live[2];     /* flags wanted there */
    uint8_t *vectors_rel, *x87_rel;
    const uint8_t *vectors_resume, *x87_resume;
    unsigned nstub;
    bool barrier;              /* one was found: begin again */
    /* At this place RCX is what the slot holds and, if kept_map, RAX the slot's code map. NULL: nowhere. */
    const uint8_t *kept_at;
    uint8_t kept_slot;
    bool kept_map;
    uint8_t *entry_rel[5];
    unsigned nentry;
    /* From here on not cleared for each block. */
    JitAccess mem[BLOCK_MAX_INSNS];
    JitStub stub[JIT_MAX_STUBS + 2 * BLOCK_MAX_INSNS]; /* stubs have some themselves */
    /* Decoded again, for operands and flags. */
    ZydisDecodedInstruction zi[BLOCK_MAX_INSNS];
    ZydisDecodedOperand op[BLOCK_MAX_INSNS][ZYDIS_MAX_OPERAND_COUNT];
} JitCtx;

struct Jit {
    uint8_t *rw, *rx;
    size_t size;
    JitRing ring[2];             /* what runs, and what runs rarely */
    bool interp_next;            /* the block at RIP is for the interpreter this time */
    JitBlock *block;
    uint32_t blocks;             /* headers there are */
    uint32_t head, tail, used;   /* they are used in turn */
    JitJump *jump;
    bool rorx;                   /* the host has BMI2 */
    uint32_t mode[16];           /* mode keys that have a number in epochs */
    unsigned modes, mode_last;
    /* Common code, executable view. */
    JitLink *(*enter)(X86CPU *c, const uint8_t *code);
    const uint8_t *leave;        /* RAX: JitLink or NULL; RIP is stored */
    const uint8_t *interp_one;   /* RDX: TcgBlock, EAX: index, JIT_CALL_* */
    const uint8_t *interp_last;  /* the same, for the last instruction: jumped to */
    const uint8_t *interp_rest;  /* the same, for all from this one on */
    const uint8_t *code_hit;     /* RCX: host address, EDX: size; RIP is stored */
    const uint8_t *jump_miss;    /* RCX: RIP to be stored */
    const uint8_t *jump_second;  /* RCX: RIP, RAX: epoch, RDX: first entry of a set that has it not */
    const uint8_t *stack_fill;   /* RAX: TLB entry of the stack's page RDX; clobbers RDX */
    const uint8_t *vectors_load; /* to the host's registers, if they are home; clobbers RAX and flags */
    const uint8_t *vectors_home; /* the way back; clobbers flags */
    const uint8_t *csr_enter;    /* RIP is stored; returns, or leaves */
    const uint8_t *x87_enter;    /* the same */
    Insn one[2];                 /* the instruction under interpretation, and an end record */
    unsigned one_index;          /* its place in the block */
    JitCtx ctx;                  /* of the translation under way */
    JitStats stat;
    uint64_t fallback[JIT_MNEMONICS]; /* instructions left to the interpreter */
};

static inline uint64_t jit_clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
static inline const Insn *jit_insn(const JitCtx *x)
{
    return &x->tb->insn[x->index];
}
/* 64-bit code; else flat 32-bit code. */
static inline bool jit_is64(const JitCtx *x)
{
    return (x->tb->mode & MODE_CS64) != 0;
}
/* RIP of what follows the instruction under way, or of its target. */
static inline uint64_t jit_rip(const JitCtx *x, uint64_t rip)
{
    return jit_is64(x) ? rip : (uint32_t)rip;
}
/* Flags wanted after the instruction under way. */
static inline unsigned jit_live_after(const JitCtx *x)
{
    return x->live[x->index + 1];
}

/* Host register of guest register g; H_NONE: it lives in memory. */
extern const uint8_t jit_reg[16];
/* Displacements from JIT_CPU. */
#define JIT_OFF(field)  ((int32_t)offsetof(X86CPU, field) - JIT_CPU_AT)
#define JIT_OFF_REG(g)  (JIT_OFF(regs) + 8 * (int32_t)(g))
#define JIT_OFF_AREA(n) ((n) < X86_ACCEL_NEAR ? JIT_OFF(accel_near) + 8 * (int32_t)(n) \
                                              : JIT_OFF(accel_area) + 8 * ((int32_t)(n) - X86_ACCEL_NEAR))
_Static_assert(JIT_OFF(base.exit_request) >= -128 && JIT_OFF_REG(15) <= 127, "displacements of one byte");

static inline uint64_t *jit_area(X86CPU *c, unsigned n)
{
    return n < X86_ACCEL_NEAR ? &c->accel_near[n] : &c->accel_area[n - X86_ACCEL_NEAR];
}

/* jit-block.c */
/* Our own code is about to change EFLAGS: what is wanted of them goes to memory. */
void jit_flags_clobber(JitCtx *x, unsigned live);
/* The instruction reads or keeps some flags: EFLAGS must hold them. */
void jit_flags_need(JitCtx *x);
/* The instruction has set the flags. */
static inline void jit_flags_set(JitCtx *x)
{
    x->s.flags = FLAGS_HOST;
}
void jit_flags_save(JitCtx *x);
/* The arithmetic flags (FL_ARITH) the instruction reads, and those it certainly replaces. */
void jit_flags_of(const ZydisDecodedInstruction *zi, unsigned *use, unsigned *def);
/* Guest register g in a host register: its own, or scratch after a load. */
unsigned jit_get(JitCtx *x, unsigned g, unsigned scratch);
/* The same without a load, for a register that will be replaced as a whole. */
static inline unsigned jit_dst(unsigned g, unsigned scratch)
{
    return jit_reg[g] == H_NONE ? scratch : jit_reg[g];
}
/* h holds the new value of g: stores it if g lives in memory. */
void jit_put(JitCtx *x, unsigned g, unsigned h);
/* A stub that runs the instruction under way in the interpreter and resumes behind it. The state
 * after it is filled when the instruction is done. */
JitStub *jit_stub_interp(JitCtx *x);
JitStub *jit_stub(JitCtx *x, StubKind kind);
void jit_stub_jcc(JitCtx *x, JitStub *s, unsigned cc);
/* s stands here. */
void jit_stub_begin(JitCtx *x, JitStub *s);
/* X86CPU.cc to EFLAGS and back. They clobber RAX. */
void jit_flags_load(Emit *e);
void jit_flags_store(Emit *e);
/* The instruction under way runs in the interpreter. */
void jit_interp_inline(JitCtx *x);
/* jit-exit.c */
/* Direct exit number n to guest address rip; saves the flags if they are wanted there. */
void jit_exit_direct(JitCtx *x, unsigned n, uint64_t rip);
/* Conditional jump to one of two addresses; the x87's pointers are noted. */
void jit_exit_jcc(JitCtx *x, unsigned cc, uint64_t taken, uint64_t otherwise);
/*
 * Exit to the address in RCX, through the jump cache; a miss goes to stub, or, with the address in
 * X86CPU.rip, to the engine if stub is NULL. pop is added to RSP on the way. Flags are at home.
 */
void jit_exit_rcx(JitCtx *x, JitStub *stub, int32_t pop);
/* Flags go home and the x87's pointers are noted, as at every exit. */
void jit_settle(JitCtx *x);
void jit_exit_stubs_emit(JitCtx *x);
void jit_stub_jump_emit(JitCtx *x, JitStub *s);
void jit_stub_call_hit_emit(JitCtx *x, JitStub *s);
/* The first half of such an exit: AREA_TEMP = the code for the address in RCX, which is kept; to stub if it is not known. */
void jit_find_rcx(JitCtx *x, JitStub *stub);
/* Of bytes that a block depends on without holding them. */
uint32_t jit_peek_sum(const uint8_t *p, uint32_t len);
/* Arithmetic flags wanted at the block's direct exits; liveness begins with it. */
unsigned jit_exit_live(JitCtx *x);

/* jit-mem.c */
enum { MEM_READ = 1, MEM_WRITE = 2 };
/* RCX = linear address of i's memory operand. Clobbers RAX; flags only if i has a segment base. */
void jit_ea(JitCtx *x, const Insn *i);
/* The same in another register. */
void jit_ea_to(JitCtx *x, const Insn *i, unsigned to);
/*
 * RCX: linear address (that of ea) -> host address; to write, RAX: the page's code map. Misses go to the
 * stub. Clobbers RAX, RDX and flags.
 */
void jit_probe(JitCtx *x, JitStub *s, const Insn *ea, unsigned size, unsigned access);

/* What an instruction wants of its memory operand. */
typedef struct JitWant {
    const Insn *ea;  /* address */
    unsigned size, access;
    unsigned align;  /* else it is a slow case; 0 or 1: any */
    StubKind kind;
} JitWant;
/*
 * Makes the operand's host address RCX + *disp, and, to store, RAX its page's code map. Returns the stub of
 * the slow case. EFLAGS are clobbered, and saved first if they are wanted, unless the access follows.
 * Clobbers RDX.
 */
JitStub *jit_mem(JitCtx *x, const JitWant *w, int32_t *disp);
/*
 * After a store of size bytes to [RCX + disp], with RAX still the code map: leaves the block if code
 * was hit. The last thing an instruction does. Clobbers RDX, and RAX and RCX if it returns false; EFLAGS that are wanted stay
 * or are saved.
 */
bool jit_store_check(JitCtx *x, unsigned size, int32_t disp);

/* RCX is as jit_mem() left it, and with map RAX too: the next instruction may use that. */
void jit_mem_keep(JitCtx *x, bool map);

/* jit-group.c */
void jit_groups_find(JitCtx *x);
/* The address RSP + by. */
Insn jit_stack_address(const JitCtx *x, int32_t by);
/* Is the address ea known now: RIP-relative, or in the instruction? */
bool jit_is_fixed(const Insn *ea);
/* Of a block that tests: the slots in span are empty. Touches no register and no flag. */
void jit_groups_forget(JitCtx *x, uint8_t span);
/* Out-of-line parts of jit_mem(). */
void jit_stub_probe_emit(JitCtx *x, JitStub *s);
void jit_stub_way_emit(JitCtx *x, JitStub *s);
void jit_stub_stack_emit(JitCtx *x, JitStub *s);

/* jit-insn.c, jit-high.c, jit-flow.c, jit-simd.c: true if the instruction was translated. */
bool jit_integer(JitCtx *x);
bool jit_high(JitCtx *x);
bool jit_flow(JitCtx *x);
bool jit_simd(JitCtx *x);
/* jit-simd.c */
/* Will instruction k want the guest's vector registers in the host's? MXCSR? */
bool jit_simd_wants_vectors(const JitCtx *x, unsigned k);
bool jit_simd_wants_csr(const JitCtx *x, unsigned k);
/* Instructions behind the first n use vector registers, which the interpreter has taken home: loads them. */
void jit_vectors_again(JitCtx *x, unsigned n);
/* The common code that moves them. */
void jit_vectors_common_emit(Jit *j, Emit *e, const X86CPU *c);
/* Takes them home if they are live; clobbers flags. */
void jit_vectors_leave(const Jit *j, Emit *e);
bool jit_mmx_wants(const JitCtx *x, unsigned k);
/* jit-string.c */
bool jit_string(JitCtx *x);
void jit_stub_string_hit_emit(JitCtx *x, JitStub *s);
/* jit-sys.c */
bool jit_system(JitCtx *x);
/* jit-x87.c */
bool jit_x87(JitCtx *x);
/* Will jit_x87() take instruction k? */
bool jit_x87_wants(const JitCtx *x, unsigned k);
/* Notes FIP and FOP if s says that they are due. Clobbers RDX. */
void jit_x87_note(JitCtx *x, JitState *s);
/* X86CPU.x87 to the host's registers. False: an exception is unmasked or pending. */
bool jit_x87_load(X86CPU *c);

/* jit-block.c: translates tb; NULL if there is no room or nothing in it is worth it. */
JitBlock *jit_translate(X86CPU *c, TcgBlock *tb);

/* ---- jit-run.c ---- */
/*
 * An access of up to so many bytes may begin anywhere in AREA_STACK_PAGE but where it might cross the
 * page's end; nowhere if the slots hold 0.
 */
#define JIT_STACK_SHORT 64
#define JIT_STACK_LONG  512
#define JIT_HEAD_ROOM 4096 /* bytes for common code */
size_t jit_common_emit(Jit *j, const X86CPU *c); /* its length */
/* The two entries of the jump cache that may be for rip. */
JitJump *jit_jump_set(Jit *j, uint64_t rip);
/*
 * What an entry of the jump cache depends on besides RIP: the mode, and the version of the address
 * space, which grows with each flush that may concern code (mmu-flush.c).
 */
uint64_t jit_epoch(X86CPU *c);

/* ---- jit.c and jit-run.c, for the engine ---- */
extern _Atomic uint64_t tcg_jit_cache_size; /* bytes for each vCPU */
extern bool tcg_jit_enabled;
/* RFLAGS are exact even at a fault, where the flags that nobody will read are else left as they
 * happen to be. */
extern bool tcg_jit_exact_flags;
extern unsigned tcg_jit_heat;       /* executions in the interpreter before a block is translated */
extern bool tcg_jit_tested;         /* for tests: translate all as what is translated again with tests (jit-group.c) */
bool jit_init(X86CPU *c, Error **errp);
void jit_fini(X86CPU *c);
uint64_t jit_bytes(uint64_t cache_size); /* what it maps; the cache is seen twice */
/* Runs tb's code from entry (code, or inner if bare); on return X86CPU is complete. The link, if not NULL, wants its target. */
JitLink *jit_run(X86CPU *c, TcgBlock *tb, const uint8_t *entry);
/* link (just returned by jit_run) leads to tb, if that is sound. */
void jit_link(X86CPU *c, JitLink *link, TcgBlock *tb);
/* tb is about to be reused, or its code has changed. */
void jit_kill(JitBlock *jb);
/* tb's generation was stamped anew. */
void jit_restamp(TcgBlock *tb);
/* tb crosses a page's end and was just found to be in place. False: it cannot be run translated. */
bool jit_stamp_cross(X86CPU *c, TcgBlock *tb);
/* For jumps through the cache: tb is what RIP now leads to. */
void jit_remember(X86CPU *c, TcgBlock *tb);
/* Room for a block; evicts. */
JitBlock *jit_alloc(Jit *j);
/* Its parts have their sizes. */
void jit_commit(Jit *j, JitBlock *jb);

#endif
