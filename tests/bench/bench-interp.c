/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Million guest instructions a second on small loops: interpreted, and translated. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "../unit/interp-vm.h"
#include "accel/tcg/jit.h"

typedef struct Loop {
    const char *name;
    const char *code;
    size_t len;
    unsigned insns; /* of one iteration, on average */
} Loop;

#define LOOP(n, insns, s) { n, s, sizeof(s) - 1, insns }

/* Each counts RCX down. */
static const Loop loops[] = {
    /* 1: add %rcx,%rax; xor %rdx,%rax; lea 3(%rax,%rcx,4),%rbx; shl $3,%rdx; sub $1,%rcx; jnz 1b */
    LOOP("integer", 6, "\x48\x01\xc8\x48\x31\xd0\x48\x8d\x5c\x88\x03\x48\xc1\xe2\x03"
                    "\x48\x83\xe9\x01\x75\xeb"),
    /* 1: mov (%rsi),%rax; mov %rax,(%rdi); mov 8(%rsi),%rbx; mov %rbx,8(%rdi); dec %rcx; jnz 1b */
    LOOP("copy", 6, "\x48\x8b\x06\x48\x89\x07\x48\x8b\x5e\x08\x48\x89\x5f\x08\x48\xff\xc9\x75\xed"),
    /* 1: test $1,%cl; jz 2f; inc %rax; 2: test $2,%cl; jz 3f; inc %rdx; 3: dec %rcx; jnz 1b */
    LOOP("branchy", 7, "\xf6\xc1\x01\x74\x03\x48\xff\xc0\xf6\xc1\x02\x74\x03\x48\xff\xc2"
                    "\x48\xff\xc9\x75\xeb"),
    /* 1: call 2f; dec %rcx; jnz 1b; jmp 3f; 2: push %rbx; pop %rbx; ret; 3: */
    LOOP("call", 6, "\xe8\x07\x00\x00\x00\x48\xff\xc9\x75\xf6\xeb\x03\x53\x5b\xc3"),
    /* 1: paddd %xmm1,%xmm0; pxor %xmm0,%xmm2; movdqa (%rsi),%xmm3; dec %rcx; jnz 1b */
    LOOP("sse", 5, "\x66\x0f\xfe\xc1\x66\x0f\xef\xd0\x66\x0f\x6f\x1e\x48\xff\xc9\x75\xef"),
    /* 1: addsd %xmm1,%xmm0; mulsd %xmm2,%xmm1; pshufd $27,%xmm3,%xmm4; dec %rcx; jnz 1b */
    LOOP("sse-stub", 5, "\xf2\x0f\x58\xc1\xf2\x0f\x59\xca\x66\x0f\x70\xe3\x1b\x48\xff\xc9"
                     "\x75\xee"),
    /* fninit; 1: fld1; fldl (%rsi); faddp; fstpl (%rdi); dec %rcx; jnz 1b */
    LOOP("x87", 6, "\xdb\xe3\xd9\xe8\xdd\x06\xde\xc1\xdd\x1f\x48\xff\xc9\x75\xf3"),
};

static double mips(Vm *vm, const Loop *l, uint64_t rounds)
{
    int64_t t;

    vm_reset_long(vm);
    vm->c->regs[R_RCX] = rounds;
    vm->c->regs[R_RSI] = VM_DATA;
    vm->c->regs[R_RDI] = VM_DATA + 0x1000;
    t = g_get_monotonic_time();
    vm_run(vm, l->code, l->len);
    t = g_get_monotonic_time() - t;
    return (double)rounds * l->insns / (double)t;
}

/* bench-interp [LOOP [ROUNDS]] */
int main(int argc, char **argv)
{
    uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 5000000;
    Vm *interpreted, *translated;

    tcg_jit_enabled = false;
    interpreted = vm_cpu(0);
    tcg_jit_enabled = true;
    translated = vm_cpu(1);
    printf("%-10s %12s %12s  MIPS\n", "loop", "interpreted", "translated");
    for (unsigned n = 0; n < G_N_ELEMENTS(loops); n++) {
        const Loop *l = &loops[n];

        if (argc > 1 && strcmp(argv[1], l->name) != 0) {
            continue;
        }
        printf("%-10s %12.1f %12.1f\n", l->name, mips(interpreted, l, rounds),
               mips(translated, l, 4 * rounds));
    }
    return 0;
}
