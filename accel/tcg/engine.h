/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private to the engine (engine.c, blocks.c, decode.c): the block cache of one vCPU.
 *
 * A block's header lives in a fixed array and its records and saved code bytes in a ring of memory;
 * both are filled in turn and the oldest block makes room, so nothing is allocated while the guest
 * runs. Pointers to headers kept elsewhere (jump cache, successors) are hints: whoever follows one
 * compares rip, mode, host address and code generation, so nobody has to be told of an eviction.
 */
#ifndef ACCEL_TCG_ENGINE_H
#define ACCEL_TCG_ENGINE_H

#include "accel/tcg/interp.h"
#include "accel/tcg/tlb.h"

#define BLOCK_MAX_INSNS 64
#define INSN_MAX_LEN    15

#define JUMP_CACHE_BITS 14
#define HASH_BITS       15
/* Sizes of a block cache; of a header's share of one see blocks.c. */
#define BLOCK_CACHE_MIN     (2 * MiB)
#define BLOCK_CACHE_DEFAULT (40 * MiB)
#define BLOCK_CACHE_MAX     (2048 * MiB)

struct TcgBlock {
    /* What a successor check reads. */
    uint64_t rip;         /* offset in CS of the first byte */
    const uint8_t *host;  /* of the first byte; NULL: header not in use */
    _Atomic uint32_t *gen_ptr;
    uint32_t gen;
    uint32_t mode;
    uint64_t last;        /* offset in CS of the last byte */
    Insn *insn;
    TcgBlock *next[2];    /* hints, most recent first */

    uint16_t n;           /* instructions, without the end record */
    uint16_t len;         /* code bytes */
    uint16_t len1;        /* of them in the first page */
    bool cross;           /* one instruction that goes into a second page */
    const uint8_t *host2; /* second page */
    _Atomic uint32_t *gen2_ptr;
    uint32_t gen2;
    RAMBlock *rb, *rb2;
    uint64_t off, off2;   /* of the code in rb, of the second page in rb2 */
    TcgBlock *hash_next, **hash_prev;
    uint8_t *code;        /* the bytes it was decoded from */
    uint32_t data, data_size; /* place in the arena */
    struct JitBlock *jit;     /* its translation */
    uint32_t heat;            /* executions in the interpreter */
    /* What its translation has learned: */
    uint64_t barriers;        /* bit n: instruction n is left to the interpreter, so no group goes over it */
    uint32_t rest_page;       /* where the interpreter had to go on because of a group: jit_interp_rest() */
    uint8_t rests;            /* times in a row */
    bool tested;              /* too often: those that share a probe look whether it holds */
};

/* Where the bytes at a linear address are. */
typedef struct CodePlace {
    RAMBlock *rb;
    uint64_t off;        /* in rb */
    const uint8_t *host; /* NULL: not RAM, use phys */
    hwaddr phys;
} CodePlace;

/* The instruction run under a shadow, TF, a breakpoint, or alone as it writes its own block. */
typedef struct EngineStep {
    bool active;
    bool debug;  /* tcg_single_step_wanted() when it began */
    bool tf;
    bool shadow, movss;
} EngineStep;

typedef struct TcgEngine {
    TcgBlock none; /* successor of nobody: matches no address */
    TcgBlock *prev;
    bool step_once;
    EngineStep step;

    TcgBlock *headers;
    uint32_t header_count, arena_size;
    uint32_t head, tail, used; /* headers in turn */
    uint8_t *arena;
    uint32_t fill;             /* next free byte of the arena */
    TcgBlock **hash;
    TcgBlock **jump;           /* NULL: none */
    size_t map_size;
    void *map;

    ZydisDecoder decoder[3]; /* 16, 32, 64 bit */
    Decode decode;
    Insn scratch[BLOCK_MAX_INSNS + 1];
    uint8_t bytes[INSN_MAX_LEN * BLOCK_MAX_INSNS];
    TcgBlock uncached; /* one instruction in memory that is not RAM */
    Insn uncached_insn[2];

    uint64_t decoded, evicted, stale; /* statistics */
} TcgEngine;

/* blocks.c. Both on the vCPU's thread. */
bool tcg_blocks_init(X86CPU *c, TcgEngine *g, uint64_t cache_size, Error **errp);
void tcg_blocks_fini(TcgEngine *g);
uint64_t tcg_blocks_bytes(uint64_t cache_size); /* what it maps */
/* The block at c->rip for this mode key: found, re-validated or decoded. Raises what the fetch
 * raises. Never NULL. */
TcgBlock *tcg_block_get(X86CPU *c, uint32_t mode);
/* The block at rip, in b's page and mode, if it is known and as fresh as b; else NULL. */
TcgBlock *tcg_block_beside(TcgEngine *g, const TcgBlock *b, uint64_t rip);

/* tcg-log.c: a block just decoded (-d in_asm), one about to run (-d exec, cpu). */
void tcg_log_block(const X86CPU *c, const TcgEngine *g, uint32_t mode, const Insn *insn, unsigned n,
                   const uint8_t *bytes);
void tcg_log_exec(const X86CPU *c, const TcgBlock *b);
/* b was translated (-d out_asm): its host code, where it runs. */
void tcg_log_translated(const X86CPU *c, const TcgBlock *b, const uint8_t *code, size_t size);
/* Other host code that was made (-d out_asm), at c->rip. */
void tcg_log_code(const X86CPU *c, const char *what, const uint8_t *code, size_t size);

/* decode.c */
void tcg_decode_init(X86CPU *c, TcgEngine *g);
enum { DECODE_OK, DECODE_NEED_MORE };
/*
 * Decodes the instruction at offset rip from avail (1..15) bytes into *out. off is its offset in
 * the block. An instruction that is none is OK too: its handler raises. d->ends_block is set.
 */
int tcg_decode_one(X86CPU *c, TcgEngine *g, uint32_t mode, const uint8_t *bytes, unsigned avail,
                   uint64_t rip, unsigned off, Insn *out);
/* Does the handler only raise an exception (#UD, #GP)? */
bool tcg_insn_raises(const Insn *i);
InsnFn tcg_insn_end; /* the end record: RIP of what follows, back to the engine */

static inline uint64_t tcg_code_linear(const TcgCpu *t, uint64_t rip)
{
    uint64_t lin = t->cs_base + rip;

    return likely(t->mode_key & MODE_CS64) ? lin : (uint32_t)lin;
}

#endif
