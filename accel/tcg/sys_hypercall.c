/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMCALL and VMMCALL: the few hypercalls of KVM's interface that make sense without KVM (Linux
 * Documentation/virt/kvm/x86/hypercalls.rst). Number in RAX, arguments in RBX, RCX, RDX, RSI,
 * result in RAX. No CPUID leaf announces them.
 */
#include "accel/irqchip.h"
#include "accel/tcg/sys.h"

enum { HC_VAPIC_POLL_IRQ = 1, HC_KICK_CPU = 5, HC_SEND_IPI = 10, HC_SCHED_YIELD = 11 };

#define HC_EPERM  (-1ll)
#define HC_ENOSYS (-1000ll)

/* Bits of the two words are APIC ids from `first` on; icr is an ICR's low half. */
static int64_t send_ipi(X86CPU *c, uint64_t low, uint64_t high, uint32_t first, uint32_t icr)
{
    unsigned width = (c->tcg->mode_key & MODE_CS64) ? 64 : 32;
    int64_t sent = 0;

    if (!irqchip || !irqchip->send_msi) {
        return HC_ENOSYS;
    }
    for (unsigned n = 0; n < 2 * width; n++) {
        uint64_t word = n < width ? low : high;
        uint64_t id = (uint64_t)first + n;

        /* 255 would be everybody. */
        if ((word >> (n % width) & 1) && id < 255) {
            irqchip->send_msi(0xfee00000ull | id << 12, icr & 0x7ff);
            sent++;
        }
    }
    return sent;
}

void sys_hypercall(X86CPU *c, const Insn *i)
{
    uint64_t mask = (c->tcg->mode_key & MODE_CS64) ? UINT64_MAX : UINT32_MAX;
    uint64_t nr = c->regs[R_RAX] & mask;
    int64_t result;

    tcg_count_exact(c, i);
    if (c->cpl != 0) {
        result = HC_EPERM;
    } else if (nr == HC_SEND_IPI) {
        result = send_ipi(c, c->regs[R_RBX] & mask, c->regs[R_RCX] & mask,
                          (uint32_t)c->regs[R_RDX], (uint32_t)c->regs[R_RSI]);
    } else if (nr == HC_VAPIC_POLL_IRQ || nr == HC_KICK_CPU || nr == HC_SCHED_YIELD) {
        /* A halted vCPU is woken by its interrupt alone, and none waits for another's lock. */
        tcg_irq_recheck(c);
        result = 0;
    } else {
        result = HC_ENOSYS;
    }
    c->regs[R_RAX] = (uint64_t)result & mask;
    NEXT(c, i);
}
