/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Native stubs: the arena they live in, their generation from a key, and the SIMD floating-point
 * exceptions they raise on the host.
 *
 * Fixed host registers: reg in xmm1/mm1 (a general register: eax), rm in xmm2/mm2 (eax), vvvv in
 * xmm3, IS4 in xmm4, memory operands at [rsi]. xmm0, rax, rdx and rcx serve the instructions that
 * imply them. See SDM 2A chapter 2 for the encodings.
 */
#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <errno.h>
#include <cpuid.h>
#include "accel/tcg/engine-run.h"
#include "accel/tcg/simd.h"
#include "qemu/log.h"

#define ARENA_SIZE ((size_t)SIMD_SLOTS * SIMD_STUB_SIZE)

enum { HR_RAX, HR_RCX, HR_RDX, HR_RSI = 6, HR_RDI = 7, HR_R8 = 8 };
#define XR_REG  1
#define XR_RM   2
#define XR_VVVV 3
#define XR_IS4  4

typedef struct Emit {
    uint8_t *p, *end;
} Emit;

static void e8(Emit *e, unsigned v)
{
    assert(e->p < e->end);
    *e->p++ = (uint8_t)v;
}
static void e32(Emit *e, uint32_t v)
{
    for (int n = 0; n < 4; n++) {
        e8(e, v >> (8 * n));
    }
}
#define EB(e, ...)                                                                                 \
    do {                                                                                           \
        static const uint8_t bytes_[] = { __VA_ARGS__ };                                           \
        for (size_t n_ = 0; n_ < sizeof(bytes_); n_++) {                                           \
            e8(e, bytes_[n_]);                                                                     \
        }                                                                                          \
    } while (0)

/* (V)MOVUPS between host register x and [base]; disp is used if base is RCX (the X86CPU). */
static void emit_vec(Emit *e, bool vex, bool wide, bool store, unsigned x, unsigned base,
                     uint32_t disp)
{
    if (vex && base >= 8) {
        EB(e, 0xc4, 0xc1);
        e8(e, wide ? 0x7c : 0x78);
    } else if (vex) {
        e8(e, 0xc5);
        e8(e, wide ? 0xfc : 0xf8);
    } else {
        assert(base < 8);
        e8(e, 0x0f);
    }
    e8(e, store ? 0x11 : 0x10);
    if (base == HR_RCX) {
        e8(e, 0x80 | x << 3 | HR_RCX);
        e32(e, disp);
    } else {
        e8(e, x << 3 | (base & 7));
    }
}

/* Loads or stores one operand of class kc. */
static void emit_operand(Emit *e, uint64_t key, unsigned kc, bool store, unsigned x, unsigned base)
{
    bool vex = key & KEY_VEX;
    switch (kc) {
    case KC_GPR: /* mov rax, [base] or the reverse */
        e8(e, 0x48);
        e8(e, store ? 0x89 : 0x8b);
        e8(e, HR_RAX << 3 | base);
        break;
    case KC_MMX:
        e8(e, 0x0f);
        e8(e, store ? 0x7f : 0x6f);
        e8(e, x << 3 | base);
        break;
    case KC_XMM: /* a VEX instruction has zeroed the upper half, which goes home with the lower */
        emit_vec(e, vex, vex && store, store, x, base, 0);
        break;
    case KC_YMM:
        emit_vec(e, vex, true, store, x, base, 0);
        break;
    default:
        break;
    }
}

static void emit_legacy(Emit *e, uint64_t key)
{
    static const uint8_t pp[4] = { 0, 0x66, 0xf3, 0xf2 };
    if (KEY_PP(key)) {
        e8(e, pp[KEY_PP(key)]);
    }
    if (key & KEY_W) {
        e8(e, 0x48);
    }
    e8(e, 0x0f);
    if (KEY_MAP(key) == 2) {
        e8(e, 0x38);
    } else if (KEY_MAP(key) == 3) {
        e8(e, 0x3a);
    }
}

static void emit_vex(Emit *e, uint64_t key)
{
    unsigned vvvv = KEY_VVVV(key) ? XR_VVVV : 0;
    e8(e, 0xc4);
    e8(e, 0xe0 | KEY_MAP(key));
    e8(e, (key & KEY_W ? 0x80 : 0) | (~vvvv & 15) << 3 | (key & KEY_L ? 4 : 0) | KEY_PP(key));
}

static void emit_insn(Emit *e, uint64_t key)
{
    if (key & KEY_VEX) {
        emit_vex(e, key);
    } else {
        emit_legacy(e, key);
    }
    e8(e, KEY_OPCODE(key));
    e8(e, KEY_MODRM(key));
    if (key & KEY_HAS_IMM) {
        e8(e, KEY_IMM(key));
    }
}

/* mov rax/rdx/rcx, [rcx + regs[n]] (store: from base r9) */
static void emit_gpr_home(Emit *e, unsigned reg, bool store)
{
    uint32_t disp = (uint32_t)(offsetof(X86CPU, regs) + reg * 8);
    e8(e, store ? 0x49 : 0x48);
    e8(e, store ? 0x89 : 0x8b);
    e8(e, 0x80 | reg << 3 | HR_RCX);
    e32(e, disp);
}

static void emit_flags_load(Emit *e)
{
    EB(e, 0x8b, 0x81); /* mov eax, [rcx + cc] */
    e32(e, offsetof(X86CPU, cc));
    EB(e, 0x04, 0x7f, 0x9e); /* add al, 0x7f: OF = old AL; sahf */
}

static void emit_flags_store(Emit *e)
{
    EB(e, 0x9f, 0x0f, 0x90, 0xc0, 0x0f, 0xb7, 0xc0); /* lahf; seto al; movzx eax, ax */
    EB(e, 0x89, 0x81);
    e32(e, offsetof(X86CPU, cc));
}

static void emit_x87(Emit *e, uint64_t key)
{
    EB(e, 0x48, 0x0f, 0xae, 0x0f); /* fxrstor64 [rdi] */
    if (key & KEY_FLAGS_RD) {
        emit_flags_load(e);
    }
    e8(e, KEY_OPCODE(key));
    e8(e, KEY_MODRM(key));
    if (key & KEY_FLAGS_WR) {
        emit_flags_store(e);
    }
    EB(e, 0x48, 0x0f, 0xae, 0x07, 0xdb, 0xe3, 0xc3); /* fxsave64 [rdi]; fninit; ret */
}

static void emit_loads(Emit *e, uint64_t key)
{
    emit_operand(e, key, KEY_REG(key), false, XR_REG, HR_RDI);
    emit_operand(e, key, KEY_VVVV(key), false, XR_VVVV, HR_RDX);
    if (!(key & KEY_MEM)) {
        emit_operand(e, key, KEY_RM(key), false, XR_RM, HR_RSI);
    }
    emit_operand(e, key, KEY_IS4(key), false, XR_IS4, HR_R8);
    if (key & KEY_XMM0_RD) {
        emit_vec(e, key & KEY_VEX, false, false, 0, HR_RCX, offsetof(X86CPU, ymm));
    }
    if (key & KEY_LENGTHS) {
        emit_gpr_home(e, HR_RAX, false);
        emit_gpr_home(e, HR_RDX, false);
    }
    if (key & KEY_RCX_WR) {
        EB(e, 0x49, 0x89, 0xc9); /* mov r9, rcx */
    }
}

static void emit_stores(Emit *e, uint64_t key)
{
    bool vex = key & KEY_VEX;
    if (key & KEY_RCX_WR) {
        emit_gpr_home(e, HR_RCX, true);
        EB(e, 0x4c, 0x89, 0xc9); /* mov rcx, r9 */
    }
    if (key & KEY_REG_WR) {
        emit_operand(e, key, KEY_REG(key), true, XR_REG, HR_RDI);
    }
    if (key & KEY_VVVV_WR) {
        emit_operand(e, key, KEY_VVVV(key), true, XR_VVVV, HR_RDX);
    }
    if ((key & KEY_RM_WR) && !(key & KEY_MEM)) {
        emit_operand(e, key, KEY_RM(key), true, XR_RM, HR_RSI);
    }
    if (key & KEY_XMM0_WR) {
        emit_vec(e, vex, vex, true, 0, HR_RCX, offsetof(X86CPU, ymm));
    }
    if (key & KEY_FLAGS_WR) {
        emit_flags_store(e);
    }
}

static bool key_has_mmx(uint64_t key)
{
    return KEY_REG(key) == KC_MMX || KEY_RM(key) == KC_MMX;
}

/* Returns its length. */
static size_t simd_emit(uint8_t *p, uint64_t key)
{
    Emit e = { p, p + SIMD_STUB_SIZE };
    if (key & KEY_X87_LIGHT) {
        size_t len = x87_emit_light(p, key);
        assert(len <= SIMD_STUB_SIZE);
        return len;
    }
    if (key & KEY_X87) {
        emit_x87(&e, key);
        return (size_t)(e.p - p);
    }
    emit_loads(&e, key);
    emit_insn(&e, key);
    emit_stores(&e, key);
    if (key & KEY_VEX) {
        EB(&e, 0xc5, 0xf8, 0x77); /* vzeroupper */
    }
    if (key_has_mmx(key)) {
        EB(&e, 0x0f, 0x77); /* emms */
    }
    EB(&e, 0x31, 0xc0, 0xc3); /* xor eax, eax; ret */
    return (size_t)(e.p - p);
}

static unsigned key_hash(uint64_t key)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15ull) >> 40) & (SIMD_SETS - 1);
}

const SimdSlot *simd_stub_get(X86CPU *c, uint64_t key)
{
    struct TcgSimd *s = c->tcg->simd;
    unsigned set = key_hash(key), way;
    SimdSlot *slot = &s->slots[set * SIMD_WAYS];
    for (way = 0; way < SIMD_WAYS; way++) {
        if (slot[way].key == key) {
            return &slot[way];
        }
    }
    for (way = 0; way < SIMD_WAYS && slot[way].key; way++) {
    }
    bool evict = way == SIMD_WAYS;
    if (evict) {
        way = s->victim[set]++ & (SIMD_WAYS - 1);
        s->evictions++;
    }
    slot += way;
    uint8_t *code = s->rw + (size_t)(slot - s->slots) * SIMD_STUB_SIZE;
    memset(code, 0xcc, SIMD_STUB_SIZE); /* INT3: what is behind a stub is never run */
    size_t size = simd_emit(code, key);
    slot->key = key;
    if (qemu_loglevel_mask(LOG_OUT_ASM)) {
        tcg_log_code(c, "stub", (const uint8_t *)(const void *)slot->fn, size);
    }
    if (evict) {
        /* Code that ran before was changed through another linear address: SDM 3A, 8.1.3. */
        unsigned a, b, cx, d;
        __cpuid(0, a, b, cx, d);
    }
    return slot;
}

/* ---- SIMD floating-point exceptions ---- */

/* The vCPU of this thread while it runs a stub with exceptions unmasked. */
static __thread struct TcgSimd *volatile trapping;
static struct sigaction old_sigfpe;

static void on_sigfpe(int sig, siginfo_t *si, void *opaque)
{
    ucontext_t *uc = opaque;
    greg_t *g = uc->uc_mcontext.gregs;
    struct TcgSimd *s = trapping;
    uint64_t rip = (uint64_t)g[REG_RIP];
    if (s && rip >= (uintptr_t)s->rx && rip < (uintptr_t)s->rx + ARENA_SIZE) {
        /* A stub is a leaf that has pushed nothing: return 1 from it. */
        s->fault_mxcsr = uc->uc_mcontext.fpregs->mxcsr;
        uc->uc_mcontext.fpregs->mxcsr = MXCSR_DEFAULT;
        g[REG_RIP] = *(greg_t *)g[REG_RSP];
        g[REG_RSP] += 8;
        g[REG_RAX] = 1;
        if (key_has_mmx(s->slots[(rip - (uintptr_t)s->rx) / SIMD_STUB_SIZE].key)) {
            uc->uc_mcontext.fpregs->swd = uc->uc_mcontext.fpregs->ftw = 0; /* its EMMS */
        }
        return;
    }
    if (jit_sigfpe(uc)) {
        return;
    }
    if (old_sigfpe.sa_flags & SA_SIGINFO) {
        old_sigfpe.sa_sigaction(sig, si, opaque);
    } else if (old_sigfpe.sa_handler != SIG_DFL && old_sigfpe.sa_handler != SIG_IGN) {
        old_sigfpe.sa_handler(sig);
    } else {
        signal(SIGFPE, SIG_DFL); /* the instruction traps again, and the process ends as it would */
    }
}

void simd_fp_run_trapping(X86CPU *c, const Insn *i, SimdStubFn *fn, void *reg, void *rm, void *vvvv,
                          void *is4)
{
    struct TcgSimd *s = c->tcg->simd;
    trapping = s;
    host_setcsr(c->mxcsr);
    unsigned fault = fn(reg, rm, vvvv, c, is4);
    uint32_t csr = host_getcsr();
    host_setcsr(MXCSR_DEFAULT);
    trapping = NULL;
    if (likely(!fault)) {
        c->mxcsr = csr;
        return;
    }
    c->mxcsr = s->fault_mxcsr;
    tcg_raise(c, i, c->cr4 & CR4_OSXMMEXCPT ? EXCP_XM : EXCP_UD);
}

void tcg_fp_sync_slow(X86CPU *c)
{
    tcg_x87_home(c);
    if (c->tcg->csr_live) {
        c->mxcsr = host_getcsr();
        c->tcg->csr_live = false;
    }
}

/* ---- Life ---- */

static bool install_sigfpe(void)
{
    static atomic_bool done;
    struct sigaction sa = { .sa_sigaction = on_sigfpe, .sa_flags = SA_SIGINFO };
    if (atomic_exchange(&done, true)) {
        return true;
    }
    return sigaction(SIGFPE, &sa, &old_sigfpe) == 0;
}

static bool arena_new(struct TcgSimd *s)
{
    int fd = memfd_create("simd-stubs", MFD_CLOEXEC);
    bool ok = false;
    if (fd < 0) {
        return false;
    }
    if (ftruncate(fd, ARENA_SIZE) == 0) {
        int flags = MAP_SHARED | (tcg_touch_early() ? MAP_POPULATE : 0);
        s->rw = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);
        s->rx = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_EXEC, flags, fd, 0);
        ok = s->rw != MAP_FAILED && s->rx != MAP_FAILED;
    }
    close(fd);
    return ok;
}

uint64_t tcg_simd_bytes(void)
{
    return 2 * ARENA_SIZE + sizeof(struct TcgSimd);
}

bool tcg_simd_init(X86CPU *c, Error **errp)
{
    struct TcgSimd *s;
    errno = posix_memalign((void **)&s, 64, sizeof(*s));
    if (errno) {
        tcg_no_memory(c, "vector unit", sizeof(*s), errp);
        return false;
    }
    memset(s, 0, sizeof(*s));
    s->rw = s->rx = MAP_FAILED;
    c->tcg->simd = s;
    if (!arena_new(s) || !install_sigfpe()) {
        tcg_no_memory(c, "vector unit's code", ARENA_SIZE, errp);
        tcg_simd_fini(c);
        return false;
    }
    for (unsigned n = 0; n < SIMD_SLOTS; n++) {
        s->slots[n].fn = (SimdStubFn *)(void *)(s->rx + (size_t)n * SIMD_STUB_SIZE);
    }
    return true;
}

void tcg_simd_reset(X86CPU *c)
{
    c->tcg->csr_live = false;
    tcg_x87_drop(c);
    x87_update_es(c);
}

void tcg_simd_fini(X86CPU *c)
{
    struct TcgSimd *s = c->tcg->simd;
    if (!s) {
        return;
    }
    if (s->rw != MAP_FAILED) {
        munmap(s->rw, ARENA_SIZE);
    }
    if (s->rx != MAP_FAILED) {
        munmap(s->rx, ARENA_SIZE);
    }
    free(s);
    c->tcg->simd = NULL;
}
