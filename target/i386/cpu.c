/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making an x86 CPU, and its state after power-on, INIT and SIPI (SDM 3A table 9-1). */
#include <stdlib.h>
#include <string.h>
#include "accel/irqchip.h"
#include "event/event.h"
#include "target/i386/cpuid.h"

static struct {
    unsigned sockets, dies, cores, threads;
} topology = { 0, 1, 1, 1 };

void x86_cpu_set_topology(unsigned sockets, unsigned dies, unsigned cores, unsigned threads)
{
    topology.sockets = sockets;
    topology.dies = dies;
    topology.cores = cores;
    topology.threads = threads;
}

/* Bits needed to number n things from 0. */
static unsigned bits_for(unsigned n)
{
    return n > 1 ? 32u - (unsigned)__builtin_clz(n - 1) : 0;
}

uint32_t x86_apic_id(unsigned index)
{
    unsigned thread = index % topology.threads;
    unsigned core = index / topology.threads % topology.cores;
    unsigned die = index / (topology.threads * topology.cores) % topology.dies;
    unsigned socket = index / (topology.threads * topology.cores * topology.dies);
    unsigned core_shift = bits_for(topology.threads);
    unsigned die_shift = core_shift + bits_for(topology.cores);
    unsigned socket_shift = die_shift + bits_for(topology.dies);

    return socket << socket_shift | die << die_shift | core << core_shift | thread;
}

static void reset_segments(X86CPU *c)
{
    const SegmentCache data = { .attr = SEG_P | SEG_S | SEG_W | SEG_A, .limit = 0xffff };

    for (unsigned i = 0; i < R_SEG_COUNT; i++) {
        c->seg[i] = data;
    }
    c->seg[R_CS].attr |= SEG_CODE;
    c->seg[R_CS].selector = 0xf000;
    c->seg[R_CS].base = 0xffff0000;
    c->ldt = (SegmentCache){ .attr = SEG_P | 2, .limit = 0xffff };
    c->tr = (SegmentCache){ .attr = SEG_P | 0xb, .limit = 0xffff };
    c->gdt = (TableReg){ .limit = 0xffff };
    c->idt = (TableReg){ .limit = 0xffff };
}

static uint32_t signature(const X86CPUModel *m)
{
    uint32_t family = m->family, ext = 0;

    if (family > 15) {
        ext = family - 15;
        family = 15;
    }
    return ext << 20 | (uint32_t)(m->model >> 4) << 16 | family << 8 | (uint32_t)(m->model & 15) << 4 |
           (m->stepping & 15);
}

/* What an INIT does not touch. */
static void power_on(X86CPU *c)
{
    memset(&c->x87, 0, sizeof(c->x87));
    c->x87.fcw = 0x0040; /* and a tag word of 5555H: no register is empty */
    c->x87.ftw = 0xff;
    c->x87_fcs = c->x87_fds = 0;
    c->mxcsr = c->x87.mxcsr = 0x1f80;
    memset(c->ymm, 0, sizeof(c->ymm));
    c->xcr0 = XSTATE_X87;
    c->xss = 0;
    c->pkru = 0;
    c->star = c->lstar = c->cstar = c->fmask = c->kernel_gs_base = 0;
    c->sysenter_cs = c->sysenter_esp = c->sysenter_eip = 0;
    c->pat = 0x0007040600070406ull; /* SDM 3A 12.12.4 */
    c->tsc_aux = 0;
    c->misc_enable = BIT(0) | BIT(11) | BIT(12); /* fast strings; neither BTS nor PEBS */
    c->hwcr = x86_is_intel(c) ? 0 : HWCR_TSC_FREQ_SEL;
    c->mtrr_deftype = 0;
    memset(c->mtrr_fixed, 0, sizeof(c->mtrr_fixed));
    memset(c->mtrr_var, 0, sizeof(c->mtrr_var));
    c->mcg_cap = 10 | BIT(8) /* MCG_CTL_P */ | BIT(24) /* MCG_SER_P */;
    c->mcg_status = 0;
    c->mcg_ctl = UINT64_MAX;
    memset(c->mce_banks, 0, sizeof(c->mce_banks));
    for (unsigned i = 0; i < ARRAY_SIZE(c->mce_banks); i++) {
        c->mce_banks[i][0] = UINT64_MAX;
    }
    c->smbase = 0x30000;
    c->smm = false;
    c->spec_ctrl = 0;
    c->feature_control = 0;
    c->tsc_adjust = 0;
    c->tsc_offset = 0;
    c->tsc_offset = -(int64_t)x86_tsc_read(c);
    c->kvm_system_time = c->kvm_wall_clock = c->kvm_async_pf = 0;
    c->kvm_pv_eoi = c->kvm_steal = 0;
    c->kvm_poll_control = 1; /* host-side polling allowed: KVM's default */
}

void x86_cpu_reset(X86CPU *c, bool init)
{
    uint64_t cr0_kept = init ? c->cr0 & (CR0_CD | CR0_NW) : CR0_CD | CR0_NW;

    memset(c->regs, 0, sizeof(c->regs));
    c->regs[R_RDX] = signature(c->model);
    c->rip = 0xfff0;
    x86_set_rflags(c, FL_1);
    c->cpl = 0;
    reset_segments(c);
    c->cr0 = cr0_kept | CR0_ET;
    c->cr2 = c->cr3 = c->cr4 = 0;
    c->efer = 0;
    c->debugctl = 0;
    memset(c->dr, 0, sizeof(c->dr));
    c->dr[6] = 0xffff0ff0;
    c->dr[7] = 0x400;
    if (!init) {
        power_on(c);
    }
    c->nmi_blocked = c->nmi_pending = c->smi_pending = false;
    c->int_shadow = c->movss_shadow = false;
    c->pending_vector = -1;
    c->pending_error = 0;
    c->pending_kind = 0;
    /* The bootstrap processor starts at the reset vector, the others wait (SDM 3A 9.4). INIT puts
     * an application processor into that wait again. */
    c->wait_for_sipi = c->base.index != 0;
    atomic_store(&c->base.halted, c->wait_for_sipi);
    if (!init) {
        x86_cpu_apply_boot_state(c);
    }
}

void x86_cpu_sipi(X86CPU *c, uint8_t vector)
{
    c->rip = 0;
    c->seg[R_CS].selector = (uint16_t)(vector << 8);
    c->seg[R_CS].base = (uint64_t)vector << 12;
    c->wait_for_sipi = false;
    atomic_store(&c->base.halted, false);
}

X86CPU *x86_cpu_new(unsigned index, Error **errp)
{
    const X86CPUModel *m = x86_cpu_model_current();
    const X86CpuBackend *b = x86_cpu_backend();
    X86CPU *c;

    if (index >= MAX_CPUS) {
        error_setg(errp, "vCPU %u: at most %u vCPUs are possible", index, MAX_CPUS);
        return NULL;
    }
    if (x86_apic_id(index) > 254) { /* 255 is the broadcast address */
        error_setg(errp, "-smp: vCPU %u would get APIC id %u, at most 254 is possible; choose "
                   "numbers of dies, cores and threads that are powers of two", index,
                   x86_apic_id(index));
        return NULL;
    }
    c = aligned_alloc(64, ROUND_UP(sizeof(*c), 64));
    if (!c) {
        error_setg(errp, "vCPU %u: out of memory", index);
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->base.index = index;
    c->model = m;
    memcpy(c->feat, m->feat, sizeof(c->feat));
    c->apic_id = x86_apic_id(index);
    c->phys_bits = (uint8_t)m->phys_bits;
    c->tsc_khz = m->tsc_khz ? m->tsc_khz : b->default_tsc_khz();
    c->tsc_mult = x86_tsc_mult(c->tsc_khz);
    c->nr_sockets = topology.sockets ? topology.sockets : index + 1;
    c->nr_dies = topology.dies;
    c->nr_cores = topology.cores;
    c->nr_threads = topology.threads;
    x86_cpu_reset(c, false);
    return c;
}
