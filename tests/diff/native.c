/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Native half: loads all registers, jumps into the stream, and gets the registers back from the
 * frame of the signal that ends it.
 */
#include <asm/ldt.h>
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "diff.h"

typedef struct Native {
    uint8_t xs[1024] __attribute__((aligned(64)));
    uint64_t gpr[16];
    uint64_t rip, rflags;
    uint64_t saved_rsp;
    uint32_t far_offset; /* of the jump into 32-bit code */
    uint32_t far_selector;
    uint64_t data_selector;
} Native;

Native native_ctl __attribute__((visibility("hidden")));
static volatile sig_atomic_t active;
static State *result;
static struct sigaction old_sigfpe;
static uint8_t *code_rw, *data, *state;

void native_enter(void);
void native_enter_32(void);
extern const char native_resume[] __attribute__((visibility("hidden")));

#define G(n) "native_ctl+1024+8*" #n "(%rip)"
__asm__(".text\n"
        ".globl native_enter\n.hidden native_enter\n.type native_enter,@function\n"
        "native_enter:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, " G(18) "\n"
        "  mov $7, %eax\n  xor %edx, %edx\n"
        "  xrstor64 native_ctl(%rip)\n"
        "  pushq " G(17) "\n  popfq\n"
        "  mov " G(0) ", %rax\n  mov " G(1) ", %rcx\n  mov " G(2) ", %rdx\n  mov " G(3) ", %rbx\n"
        "  mov " G(4) ", %rsp\n  mov " G(5) ", %rbp\n  mov " G(6) ", %rsi\n  mov " G(7) ", %rdi\n"
        "  mov " G(8) ", %r8\n  mov " G(9) ", %r9\n  mov " G(10) ", %r10\n  mov " G(11) ", %r11\n"
        "  mov " G(12) ", %r12\n  mov " G(13) ", %r13\n  mov " G(14) ", %r14\n"
        "  mov " G(15) ", %r15\n"
        "  jmp *" G(16) "\n"
        ".size native_enter, .-native_enter\n"
        ".globl native_enter_32\n.hidden native_enter_32\n.type native_enter_32,@function\n"
        "native_enter_32:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, " G(18) "\n"
        "  mov " G(20) ", %eax\n  mov %eax, %ds\n  mov %eax, %es\n  mov %eax, %ss\n"
        "  mov $7, %eax\n  xor %edx, %edx\n"
        "  xrstor64 native_ctl(%rip)\n"
        "  pushq " G(17) "\n  popfq\n"
        "  mov " G(0) ", %rax\n  mov " G(1) ", %rcx\n  mov " G(2) ", %rdx\n  mov " G(3) ", %rbx\n"
        "  mov " G(4) ", %rsp\n  mov " G(5) ", %rbp\n  mov " G(6) ", %rsi\n  mov " G(7) ", %rdi\n"
        "  ljmp *" G(19) "\n"
        ".globl native_resume\n.hidden native_resume\n"
        "native_resume:\n"
        "  fninit\n  vzeroupper\n  cld\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
        "  ret\n"
        ".size native_enter_32, .-native_enter_32\n");

static void read_fp(const ucontext_t *uc, State *o)
{
    const uint8_t *x = (const uint8_t *)uc->uc_mcontext.fpregs;
    uint64_t bv;
    memcpy(&bv, x + 512, 8);
    memcpy(&o->fcw, x, 2);
    memcpy(&o->fsw, x + 2, 2);
    o->ftw = x[4];
    memcpy(&o->mxcsr, x + 24, 4);
    for (unsigned n = 0; n < 8; n++) {
        memcpy(o->st[n], x + 32 + 16 * n, 10);
    }
    for (unsigned n = 0; n < 16; n++) {
        memcpy(o->ymm[n], x + 160 + 16 * n, 16);
        if (bv & 4) {
            memcpy(o->ymm[n] + 16, x + 576 + 16 * n, 16);
        } else {
            memset(o->ymm[n] + 16, 0, 16);
        }
    }
}

static void on_signal(int sig, siginfo_t *si, void *opaque)
{
    static const int order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15 };
    ucontext_t *uc = opaque;
    greg_t *g = uc->uc_mcontext.gregs;
    if (!active) {
        /* The interpreter's own: SIMD exceptions of its stubs. */
        if (sig == SIGFPE && old_sigfpe.sa_flags & SA_SIGINFO) {
            old_sigfpe.sa_sigaction(sig, si, opaque);
        } else {
            signal(sig, SIG_DFL);
        }
        return;
    }
    active = 0;
    for (unsigned n = 0; n < 16; n++) {
        result->gpr[n] = (uint64_t)g[order[n]];
    }
    result->rip = (uint64_t)g[REG_RIP] + (diff_16 ? CODE_ADDR : 0);
    result->rflags = (uint64_t)g[REG_EFL];
    result->vector = (int)g[REG_TRAPNO];
    result->error = (uint64_t)g[REG_ERR];
    result->cr2 = (uint64_t)g[REG_CR2];
    read_fp(uc, result);
    uc->uc_mcontext.fpregs->mxcsr = 0x1f80;
    g[REG_RIP] = (greg_t)(uintptr_t)native_resume;
    g[REG_RSP] = (greg_t)native_ctl.saved_rsp;
    g[REG_EFL] = 0x202;
    g[REG_CSGSFS] = 0x33 | 0x2bll << 48;
}

static bool make_ldt(void)
{
    struct user_desc code = { .entry_number = 0, .base_addr = CODE_ADDR, .limit = 0xffff,
                              .contents = MODIFY_LDT_CONTENTS_CODE };
    struct user_desc dat = { .entry_number = 1, .base_addr = DATA_ADDR, .limit = DATA_SIZE - 1,
                             .contents = MODIFY_LDT_CONTENTS_DATA };
    return syscall(SYS_modify_ldt, 1, &code, sizeof(code)) == 0 &&
           syscall(SYS_modify_ldt, 1, &dat, sizeof(dat)) == 0;
}

bool native_init(void)
{
    static uint8_t stack[65536];
    const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGBUS };
    struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
    int fd = memfd_create("diff-code", MFD_CLOEXEC);
    if (diff_16 && !make_ldt()) {
        return false;
    }
    if (fd < 0 || ftruncate(fd, CODE_SIZE) || sigaltstack(&ss, NULL)) {
        return false;
    }
    sigfillset(&sa.sa_mask);
    for (size_t n = 0; n < sizeof(signals) / sizeof(signals[0]); n++) {
        sigaction(signals[n], &sa, signals[n] == SIGFPE ? &old_sigfpe : NULL);
    }
    code_rw = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *code = mmap((void *)CODE_ADDR, CODE_SIZE, PROT_READ | PROT_EXEC,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    data = mmap((void *)DATA_ADDR, DATA_SIZE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    state = mmap((void *)(uintptr_t)STATE_ADDR, 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    close(fd);
    return state == (void *)(uintptr_t)STATE_ADDR && code_rw != MAP_FAILED && code == (void *)CODE_ADDR && data == (void *)DATA_ADDR;
}

void native_load(const Stream *s)
{
    memcpy(code_rw, s->code, CODE_SIZE);
    mprotect(data, DATA_SIZE, PROT_READ | PROT_WRITE);
    memcpy(data, s->data, DATA_SIZE);
    memset(state, 0, 4096);
    mprotect(data + DATA_RW, DATA_SIZE - DATA_RW, PROT_READ);
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d); /* serialise: the code was written through another mapping */
}

uint8_t *native_data(void)
{
    return data;
}

static void write_fp(const State *in, uint8_t *x)
{
    uint64_t bv = 7;
    memset(x, 0, 1024);
    memcpy(x, &in->fcw, 2);
    memcpy(x + 2, &in->fsw, 2);
    x[4] = in->ftw;
    memcpy(x + 24, &in->mxcsr, 4);
    for (unsigned n = 0; n < 8; n++) {
        memcpy(x + 32 + 16 * n, in->st[n], 10);
    }
    for (unsigned n = 0; n < 16; n++) {
        memcpy(x + 160 + 16 * n, in->ymm[n], 16);
        memcpy(x + 576 + 16 * n, in->ymm[n] + 16, 16);
    }
    memcpy(x + 512, &bv, 8);
}

void native_run(const State *in, State *out)
{
    Native *ctl = &native_ctl;
    memset(out, 0, sizeof(*out));
    write_fp(in, ctl->xs);
    memcpy(ctl->gpr, in->gpr, sizeof(ctl->gpr));
    ctl->rip = in->rip;
    ctl->rflags = in->rflags;
    result = out;
    active = 1;
    if (diff_32) {
        ctl->far_offset = (uint32_t)(in->rip - (diff_16 ? CODE_ADDR : 0));
        ctl->far_selector = diff_16 ? LDT_CODE : 0x23;
        ctl->data_selector = diff_16 ? LDT_DATA : 0x2b;
        native_enter_32();
    } else {
        native_enter();
    }
}

bool native_can(void)
{
    static Stream s;
    State in, out;

    memset(s.code, 0xcc, CODE_SIZE);
    native_load(&s);
    memset(&in, 0, sizeof(in));
    in.rip = CODE_ADDR;
    in.rflags = 0x202;
    in.gpr[REG_STACK] = 0x800 + (diff_16 ? 0 : DATA_ADDR);
    in.mxcsr = 0x1f80;
    in.fcw = 0x37f;
    native_run(&in, &out);
    return out.vector == 3 && out.rip == CODE_ADDR + 1;
}
