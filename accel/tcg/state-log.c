/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -accel tcg,state-log=FILE: the state of a deterministic run as lines of text, for comparing two
 * runs (tests/linux/lockstep.py). A debugging aid: it writes on the vCPU's thread and may wait for
 * whoever reads a pipe.
 *
 *   COUNT RIP HASH [ram=HASH]                       every state-every instructions
 *   COUNT RIP HASH NAME=VALUE... ; INSTRUCTION...   state-blocks=on: before each block
 *   end COUNT RIP HASH                              when the run ends
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "accel/accel.h"
#include "accel/tcg/icount.h"

#define EVERY_DEFAULT 10000
#define LINE_MAX_LEN  (16 * KiB) /* registers, and a block of 64 instructions */

static StateLogConfig cfg;
static struct {
    int fd;
    uint64_t next, lines;
    char buf[4 * LINE_MAX_LEN];
    unsigned len;
} out = { .fd = -1, .next = UINT64_MAX };

/* ---- Options ---- */

bool state_log_configure(QemuOpts *opts, Error **errp)
{
    static const char *const others[] = { "state-every", "state-from", "state-ram-every",
                                          "state-blocks", "state-flip" };
    const char *path = qemu_opt_get(opts, "state-log");

    for (unsigned k = 0; !path && k < ARRAY_SIZE(others); k++) {
        if (qemu_opt_get(opts, others[k])) {
            error_setg(errp, "-accel tcg,%s=%s: there is no state log; add state-log=FILE",
                       others[k], qemu_opt_get(opts, others[k]));
            return false;
        }
    }
    if (path && !accel_icount.enabled) {
        error_setg(errp, "-accel tcg,state-log=%s: two runs can be compared only if they are "
                         "deterministic; add -icount shift=0,sleep=off", path);
        return false;
    }
    cfg.every = qemu_opt_get_number(opts, "state-every", EVERY_DEFAULT);
    if (!cfg.every) {
        error_setg(errp, "-accel tcg,state-every=0: must be at least 1 instruction");
        return false;
    }
    cfg.path = g_strdup(path);
    cfg.from = qemu_opt_get_number(opts, "state-from", 0);
    cfg.ram_every = qemu_opt_get_number(opts, "state-ram-every", 0);
    cfg.blocks = qemu_opt_get_bool(opts, "state-blocks", false);
    cfg.flip_set = qemu_opt_get(opts, "state-flip") != NULL;
    cfg.flip = qemu_opt_get_number(opts, "state-flip", 0);
    return true;
}

bool state_log_open(Error **errp)
{
    if (!cfg.path) {
        return true;
    }
    out.fd = open(cfg.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out.fd < 0) {
        error_setg_errno(errp, errno, "-accel tcg,state-log=%s: cannot open it", cfg.path);
        return false;
    }
    out.next = cfg.blocks ? UINT64_MAX : ROUND_UP(cfg.from, cfg.every);
    return true;
}

/* ---- The hash ---- */

static inline uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const void *p, size_t n)
{
    uint64_t v;

    for (; n >= 8; n -= 8, p = (const char *)p + 8) {
        memcpy(&v, p, 8);
        h = mix(h, v);
    }
    if (n) {
        v = 0;
        memcpy(&v, p, n);
        h = mix(h, v);
    }
    return h;
}

static uint64_t mix_segment(uint64_t h, const SegmentCache *s)
{
    return mix(mix(h, s->base), s->selector | (uint64_t)s->attr << 16 | (uint64_t)s->limit << 40);
}

static uint64_t hash_system(const X86CPU *c, uint64_t h)
{
    for (unsigned k = 0; k < R_SEG_COUNT; k++) {
        h = mix_segment(h, &c->seg[k]);
    }
    h = mix_segment(mix_segment(h, &c->ldt), &c->tr);
    h = mix(mix(mix(mix(h, c->gdt.base), c->gdt.limit), c->idt.base), c->idt.limit);
    h = mix(mix(mix(mix(h, c->cr0), c->cr2), c->cr3), c->cr4);
    h = mix(mix(mix(h, c->efer), c->xcr0), c->pkru);
    h = mix_bytes(h, c->dr, sizeof(c->dr));
    h = mix(mix(mix(h, c->star), c->lstar), c->kernel_gs_base);
    return mix(h, (uint64_t)c->cpl | (uint64_t)c->nmi_blocked << 8 | (uint64_t)c->int_shadow << 9);
}

static uint64_t hash_x87(const X86CPU *c, uint64_t h)
{
    const X87State *x = &c->x87;

    h = mix(h, x->fcw | (uint64_t)x->fsw << 16 | (uint64_t)x->ftw << 32 | (uint64_t)x->fop << 40);
    h = mix(mix(h, x->fip), x->fdp);
    for (unsigned k = 0; k < 8; k++) {
        h = mix_bytes(h, x->st[k].b, sizeof(x->st[k].b));
    }
    return h;
}

/* All of it must have come home: tcg_fp_sync(). */
static uint64_t state_hash(const X86CPU *c)
{
    uint64_t h = mix_bytes(0, c->regs, 16 * sizeof(c->regs[0]));

    h = mix(mix(h, c->rip), x86_get_rflags(c));
    h = hash_system(c, h);
    h = mix_bytes(mix(h, c->mxcsr), c->ymm, sizeof(c->ymm));
    return hash_x87(c, h);
}

static void hash_ram(RAMBlock *rb, void *opaque)
{
    const uint64_t *p = (const uint64_t *)(const void *)rb->host;
    uint64_t h[4] = { 1, 2, 3, 4 }, *sum = opaque;

    for (uint64_t n = rb->size / 32; n; n--, p += 4) {
        for (unsigned k = 0; k < 4; k++) {
            h[k] = (h[k] ^ p[k]) * 0x9e3779b97f4a7c15ull;
            h[k] ^= h[k] >> 29;
        }
    }
    *sum = mix(mix(mix(mix(*sum, h[0]), h[1]), h[2]), h[3]);
}

/* ---- Lines ---- */

static void flush(void)
{
    unsigned done = 0;

    while (done < out.len) {
        ssize_t n = write(out.fd, out.buf + done, out.len - done);

        if (n < 0 && errno != EINTR) {
            break; /* nobody reads any more */
        }
        done += n > 0 ? (unsigned)n : 0;
    }
    out.len = 0;
}

static void QEMU_PRINTF(1, 2) put(const char *format, ...)
{
    size_t room = sizeof(out.buf) - out.len;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(out.buf + out.len, room, format, ap);
    va_end(ap);
    out.len += n < 0 ? 0 : MIN((unsigned)n, (unsigned)room - 1);
}

static void line_begin(const X86CPU *c, const char *prefix)
{
    if (sizeof(out.buf) - out.len < LINE_MAX_LEN) {
        flush();
    }
    put("%s%" PRIu64 " %016" PRIx64 " %016" PRIx64, prefix, c->tcg->icount, c->rip, state_hash(c));
}

static void put_bytes(const char *name, unsigned k, const uint8_t *p, unsigned n)
{
    put(" %s%u=", name, k);
    while (n--) {
        put("%02x", p[n]);
    }
}

static void put_registers(const X86CPU *c)
{
    static const char *const reg[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                         "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };
    static const char seg[R_SEG_COUNT][3] = { "es", "cs", "ss", "ds", "fs", "gs" };

    for (unsigned k = 0; k < 16; k++) {
        put(" %s=%016" PRIx64, reg[k], c->regs[k]);
    }
    put(" rflags=%08" PRIx64 " cpl=%u", x86_get_rflags(c), c->cpl);
    for (unsigned k = 0; k < R_SEG_COUNT; k++) {
        put(" %s=%04x:%" PRIx64 ":%x:%x", seg[k], c->seg[k].selector, c->seg[k].base,
            c->seg[k].limit, c->seg[k].attr);
    }
    put(" cr0=%08" PRIx64 " cr2=%016" PRIx64 " cr3=%016" PRIx64 " cr4=%08" PRIx64, c->cr0, c->cr2,
        c->cr3, c->cr4);
    put(" efer=%04" PRIx64 " mxcsr=%08x", c->efer, c->mxcsr);
    put(" fcw=%04x fsw=%04x ftw=%02x fop=%04x fip=%" PRIx64 " fdp=%" PRIx64, c->x87.fcw, c->x87.fsw,
        c->x87.ftw, c->x87.fop, c->x87.fip, c->x87.fdp);
    for (unsigned k = 0; k < 8; k++) {
        put_bytes("st", k, c->x87.st[k].b, 10);
    }
    for (unsigned k = 0; k < 16; k++) {
        put_bytes("ymm", k, c->ymm[k], 32);
    }
}

static void put_code(const X86CPU *c, const TcgBlock *b)
{
    const TcgEngine *g = c->tcg->engine;
    const ZydisDecoder *d =
        &g->decoder[b->mode & MODE_CS64 ? 2 : b->mode & MODE_CS32 ? 1 : 0];
    ZydisFormatter f;

    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
    for (unsigned k = 0; b->host && k < b->n; k++) {
        ZydisDecodedInstruction zi;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        char text[72] = "(bad)";
        uint64_t rip = b->rip + b->insn[k].off;

        if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, b->code + b->insn[k].off, b->insn[k].len, &zi,
                                                op))) {
            ZydisFormatterFormatInstruction(&f, &zi, op, zi.operand_count_visible, text,
                                            sizeof(text), rip, NULL);
        }
        put(" ; %" PRIx64 ": %s", rip, text);
    }
}

/* ---- For icount.c and the engine ---- */

uint64_t state_log_next(uint64_t icount)
{
    uint64_t next = out.next;

    if (out.fd >= 0 && cfg.blocks && icount < cfg.from) {
        next = cfg.from;
    }
    return cfg.flip_set ? MIN(next, cfg.flip) : next;
}

bool state_log_blocks(uint64_t icount)
{
    return cfg.blocks && icount >= cfg.from && out.fd >= 0;
}

void state_log_block(X86CPU *c, const TcgBlock *b)
{
    tcg_fp_sync(c);
    line_begin(c, "");
    put_registers(c);
    put_code(c, b);
    put("\n");
}

void state_log_attend(X86CPU *c)
{
    uint64_t ram = 0;

    if (cfg.flip_set && c->tcg->icount == cfg.flip) {
        cfg.flip_set = false;
        c->regs[12] ^= 1;
    }
    if (likely(c->tcg->icount < out.next)) {
        return;
    }
    line_begin(c, "");
    if (cfg.ram_every && out.lines % cfg.ram_every == 0) {
        ram_block_foreach(hash_ram, &ram);
        put(" ram=%016" PRIx64, ram);
    }
    put("\n");
    out.lines++;
    out.next += cfg.every;
}

void state_log_close(X86CPU *c)
{
    if (out.fd >= 0) {
        tcg_fp_sync(c);
        line_begin(c, "end ");
        put("\n");
        flush();
        close(out.fd);
        out.fd = -1;
        out.next = UINT64_MAX;
    }
}
