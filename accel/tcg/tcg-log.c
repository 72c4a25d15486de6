/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What -d in_asm, out_asm, exec and cpu show, within -dfilter. VCPU thread; nothing allocates. */
#include <stdio.h>
#include "accel/tcg/engine.h"
#include "qemu/log.h"
#include "target/i386/cpuid.h"

/* One instruction at p, of at most len bytes, which runs at address rip. Returns its length. */
static unsigned log_insn(const ZydisDecoder *d, const ZydisFormatter *f, const uint8_t *p, size_t len,
                         uint64_t rip)
{
    ZydisDecodedInstruction zi;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    char text[96] = "(bad)", hex[2 * INSN_MAX_LEN + 1] = "";
    unsigned n = (unsigned)MIN(len, INSN_MAX_LEN);

    if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, p, n, &zi, op))) {
        ZydisFormatterFormatInstruction(f, &zi, op, zi.operand_count_visible, text, sizeof(text), rip,
                                        NULL);
        n = zi.length;
    }
    for (unsigned m = 0; m < n; m++) {
        snprintf(hex + 2 * m, 3, "%02x", p[m]);
    }
    qemu_log("%016llx: %-22s %s\n", (unsigned long long)rip, hex, text);
    return n;
}

void tcg_log_block(const X86CPU *c, const TcgEngine *g, uint32_t mode, const Insn *insn, unsigned n,
                   const uint8_t *bytes)
{
    ZydisFormatter f;

    if (!qemu_log_in_addr_range(tcg_code_linear(c->tcg, c->rip))) {
        return;
    }
    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
    qemu_log("---- CPU %u, %s-bit code, %u instructions\n", c->base.index,
             mode & MODE_CS64 ? "64" : mode & MODE_CS32 ? "32" : "16", n);
    for (unsigned k = 0; k < n; k++) {
        const ZydisDecoder *d = &g->decoder[mode & MODE_CS64 ? 2 : mode & MODE_CS32 ? 1 : 0];

        log_insn(d, &f, bytes + insn[k].off, insn[k].len, c->rip + insn[k].off);
    }
}

static void log_host_code(const X86CPU *c, const uint8_t *code, size_t size)
{
    const ZydisDecoder *d = &c->tcg->engine->decoder[2];
    ZydisFormatter f;

    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
    for (size_t at = 0; at < size;) {
        at += log_insn(d, &f, code + at, size - at, (uint64_t)(uintptr_t)code + at);
    }
}

void tcg_log_translated(const X86CPU *c, const TcgBlock *b, const uint8_t *code, size_t size)
{
    if (!qemu_log_in_addr_range(tcg_code_linear(c->tcg, b->rip))) {
        return;
    }
    qemu_log("---- CPU %u, translated rip %016llx, %u instructions, %zu bytes\n", c->base.index,
             (unsigned long long)b->rip, b->n, size);
    log_host_code(c, code, size);
}

void tcg_log_code(const X86CPU *c, const char *what, const uint8_t *code, size_t size)
{
    if (qemu_log_in_addr_range(tcg_code_linear(c->tcg, c->rip))) {
        qemu_log("---- CPU %u, %s, %zu bytes\n", c->base.index, what, size);
        log_host_code(c, code, size);
    }
}

void tcg_log_exec(const X86CPU *c, const TcgBlock *b)
{
    static const char *const name[16] = { "RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
                                          "R8 ", "R9 ", "R10", "R11", "R12", "R13", "R14", "R15" };
    char line[LOG_LINE_MAX];
    int len = 0;

    if (!qemu_log_in_addr_range(tcg_code_linear(c->tcg, b->rip))) {
        return;
    }
    qemu_log_mask(LOG_EXEC, "exec: CPU %u cs %04x rip %016llx mode %04x, %u instructions\n",
                  c->base.index, c->seg[R_CS].selector, (unsigned long long)b->rip, b->mode, b->n);
    if (!qemu_loglevel_mask(LOG_CPU)) {
        return;
    }
    for (unsigned r = 0; r < 16; r++) {
        len += snprintf(line + len, sizeof(line) - (size_t)len, "%s=%016llx%c", name[r],
                        (unsigned long long)c->regs[r], r % 4 == 3 ? '\n' : ' ');
    }
    qemu_log("%sRIP=%016llx RFL=%08llx CPL=%u CR0=%08llx CR2=%016llx CR3=%016llx CR4=%08llx\n",
             line, (unsigned long long)c->rip, (unsigned long long)x86_get_rflags(c), c->cpl,
             (unsigned long long)c->cr0, (unsigned long long)c->cr2, (unsigned long long)c->cr3,
             (unsigned long long)c->cr4);
}
