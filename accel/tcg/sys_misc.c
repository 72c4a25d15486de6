/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System instructions without a table of their own: interrupts, MSRs, counters, I/O, fast calls. */
#include "accel/irqchip.h"
#include "accel/tcg/sys.h"
#include "realtime/latency.h"
#include "target/i386/cpuid.h"

/* ---- Operands ---- */

uint64_t sys_rm_load(X86CPU *c, const Insn *i, unsigned size)
{
    uint64_t lin;

    if (!(i->aux8 & SYS_MEM)) {
        uint64_t v = c->regs[i->rm];
        return size == 2 ? (uint16_t)v : size == 4 ? (uint32_t)v : v;
    }
    lin = tcg_ea(c, i, size, false);
    return size == 2 ? tcg_ld16(c, i, lin) : size == 4 ? tcg_ld32(c, i, lin) : tcg_ld64(c, i, lin);
}

void sys_rm_store(X86CPU *c, const Insn *i, uint64_t v, unsigned size)
{
    uint64_t lin;

    if (!(i->aux8 & SYS_MEM)) {
        sys_reg_set(c, i->rm, v, size);
        return;
    }
    lin = tcg_ea(c, i, size, true);
    if (size == 2) {
        tcg_st16(c, i, lin, (uint16_t)v);
    } else if (size == 4) {
        tcg_st32(c, i, lin, (uint32_t)v);
    } else {
        tcg_st64(c, i, lin, v);
    }
}

/* ---- Interrupt flag, HLT ---- */

/* Which flag CLI and STI work on: FL_IF, FL_VIF (VME, PVI), or 0: #GP. */
static uint64_t interrupt_flag(const X86CPU *c)
{
    if (!(c->cr0 & CR0_PE) || c->cpl <= sys_iopl(c)) {
        return FL_IF; /* in virtual-8086 mode CPL is 3: IOPL is */
    }
    if (c->rflags & FL_VM) {
        return (c->cr4 & CR4_VME) ? FL_VIF : 0;
    }
    return (c->cr4 & CR4_PVI) && c->cpl == 3 ? FL_VIF : 0;
}

void sys_cli(X86CPU *c, const Insn *i)
{
    uint64_t flag = interrupt_flag(c);

    if (!flag) {
        sys_gp0(c, i);
    }
    c->rflags &= ~flag;
    NEXT(c, i);
}

void sys_sti(X86CPU *c, const Insn *i)
{
    uint64_t flag = interrupt_flag(c);

    if (!flag || (flag == FL_VIF && (c->rflags & FL_VIP))) {
        sys_gp0(c, i);
    }
    if (flag == FL_IF && !(c->rflags & FL_IF)) {
        c->int_shadow = true;
    }
    c->rflags |= flag;
    c->rip = tcg_next_rip(c, i);
    tcg_irq_recheck(c);
}

void sys_hlt(X86CPU *c, const Insn *i)
{
    sys_need_cpl0(c, i);
    c->rip = tcg_next_rip(c, i);
    atomic_store(&c->base.halted, true);
    tcg_irq_recheck(c);
}

/* ---- SMAP, GS, PKRU ---- */

static void set_ac(X86CPU *c, const Insn *i, bool on)
{
    if (!x86_has(c, X86F_SMAP) || c->cpl != 0) {
        tcg_raise(c, i, EXCP_UD);
    }
    c->rflags = on ? c->rflags | FL_AC : c->rflags & ~FL_AC;
    mmu_select_mode(c);
}

void sys_clac(X86CPU *c, const Insn *i)
{
    set_ac(c, i, false);
    NEXT(c, i);
}

void sys_stac(X86CPU *c, const Insn *i)
{
    set_ac(c, i, true);
    NEXT(c, i);
}

void sys_swapgs(X86CPU *c, const Insn *i)
{
    uint64_t base = c->seg[R_GS].base;

    if (!x86_in_64bit(c)) {
        tcg_raise(c, i, EXCP_UD);
    }
    sys_need_cpl0(c, i);
    c->seg[R_GS].base = c->kernel_gs_base;
    c->kernel_gs_base = base;
    NEXT(c, i);
}

void sys_rdpkru(X86CPU *c, const Insn *i)
{
    if (!(c->cr4 & CR4_PKE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    if ((uint32_t)c->regs[R_RCX]) {
        sys_gp0(c, i);
    }
    c->regs[R_RAX] = c->pkru;
    c->regs[R_RDX] = 0;
    NEXT(c, i);
}

void sys_wrpkru(X86CPU *c, const Insn *i)
{
    if (!(c->cr4 & CR4_PKE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    if ((uint32_t)c->regs[R_RCX] || (uint32_t)c->regs[R_RDX]) {
        sys_gp0(c, i);
    }
    tcg_pkru_set(c, (uint32_t)c->regs[R_RAX]);
    NEXT(c, i);
}

/* RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE: aux16 is the segment. */
static void need_fsgsbase(X86CPU *c, const Insn *i)
{
    if (!x86_in_64bit(c) || !(c->cr4 & CR4_FSGSBASE)) {
        tcg_raise(c, i, EXCP_UD);
    }
}

void sys_rdbase(X86CPU *c, const Insn *i)
{
    need_fsgsbase(c, i);
    sys_reg_set(c, i->rm, c->seg[i->aux16].base, i->opsize);
    NEXT(c, i);
}

void sys_wrbase(X86CPU *c, const Insn *i)
{
    uint64_t v = c->regs[i->rm];

    need_fsgsbase(c, i);
    if (i->opsize == 4) {
        v = (uint32_t)v;
    }
    if (!mmu_canonical(v)) {
        sys_gp0(c, i);
    }
    c->seg[i->aux16].base = v;
    NEXT(c, i);
}

/* ---- MSRs, CPUID, counters ---- */

#define MSR_EFER 0xc0000080u

void sys_rdmsr(X86CPU *c, const Insn *i)
{
    uint64_t v;

    sys_need_cpl0(c, i);
    tcg_count_exact(c, i);
    tcg_fp_sync(c);
    if (!x86_rdmsr(c, (uint32_t)c->regs[R_RCX], &v)) {
        sys_gp0(c, i);
    }
    c->regs[R_RAX] = (uint32_t)v;
    c->regs[R_RDX] = v >> 32;
    NEXT(c, i);
}

void sys_wrmsr(X86CPU *c, const Insn *i)
{
    uint64_t v = (uint32_t)c->regs[R_RAX] | c->regs[R_RDX] << 32;
    uint64_t efer = c->efer;

    sys_need_cpl0(c, i);
    tcg_count_exact(c, i);
    tcg_fp_sync(c);
    if (!x86_wrmsr(c, (uint32_t)c->regs[R_RCX], v)) {
        sys_gp0(c, i);
    }
    if ((efer ^ c->efer) & EFER_NXE) {
        tcg_tlb_flush(c, true);
    }
    if ((uint32_t)c->regs[R_RCX] == 0x1b /* IA32_APIC_BASE */) {
        tcg_mmu_resync(c);
    }
    /* The local APIC's registers are MSRs too: priorities and timers may have changed. */
    c->tcg->irq_waiting = true;
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

void sys_cpuid(X86CPU *c, const Insn *i)
{
    uint32_t a, b, cx, d;

    x86_cpuid(c, (uint32_t)c->regs[R_RAX], (uint32_t)c->regs[R_RCX], &a, &b, &cx, &d);
    c->regs[R_RAX] = a;
    c->regs[R_RBX] = b;
    c->regs[R_RCX] = cx;
    c->regs[R_RDX] = d;
    NEXT(c, i);
}

static void read_tsc(X86CPU *c, const Insn *i)
{
    int64_t ns;
    uint64_t t;

    if (c->cpl != 0 && (c->cr4 & CR4_TSD)) {
        sys_gp0(c, i);
    }
    tcg_count_clock(c, i);
    ns = cpu_look(&c->base);
    t = x86_tsc_at(c, ns);
    cpu_look_tick(ns);
    c->regs[R_RAX] = (uint32_t)t;
    c->regs[R_RDX] = t >> 32;
}

void sys_rdtsc(X86CPU *c, const Insn *i)
{
    read_tsc(c, i);
    NEXT(c, i);
}

void sys_rdtscp(X86CPU *c, const Insn *i)
{
    read_tsc(c, i);
    c->regs[R_RCX] = (uint32_t)c->tsc_aux;
    NEXT(c, i);
}

/*
 * No model announces performance counters. The four of AMD's processors since the K7 need no
 * announcement and read, as their MSRs do, as 0.
 */
void sys_rdpmc(X86CPU *c, const Insn *i)
{
    if (x86_is_intel(c) || (uint32_t)c->regs[R_RCX] >= 4 ||
        (c->cpl != 0 && (c->cr0 & CR0_PE) && !(c->cr4 & CR4_PCE))) {
        sys_gp0(c, i);
    }
    c->regs[R_RAX] = c->regs[R_RDX] = 0;
    NEXT(c, i);
}

void sys_rdpid(X86CPU *c, const Insn *i)
{
    sys_reg_set(c, i->rm, (uint32_t)c->tsc_aux, x86_in_64bit(c) ? 8 : 4);
    NEXT(c, i);
}

/* ---- MONITOR, MWAIT: leaving the wait at once is allowed at any time (SDM 2B MWAIT) ---- */

void sys_monitor(X86CPU *c, const Insn *i)
{
    uint64_t lin;

    if (c->cpl != 0) {
        tcg_raise(c, i, EXCP_UD);
    }
    if ((uint32_t)c->regs[R_RCX]) {
        sys_gp0(c, i);
    }
    lin = tcg_ea(c, i, 1, false);
    tcg_ld8(c, i, lin);
    NEXT(c, i);
}

void sys_mwait(X86CPU *c, const Insn *i)
{
    if (c->cpl != 0) {
        tcg_raise(c, i, EXCP_UD);
    }
    if (c->regs[R_RCX] & ~1ull) {
        sys_gp0(c, i);
    }
    c->rip = tcg_next_rip(c, i);
}

/* ---- IN, OUT ---- */


static uint16_t io_port(const X86CPU *c, const Insn *i)
{
    return i->aux8 & SYS_DX ? (uint16_t)c->regs[R_RDX] : (uint16_t)i->imm;
}

void sys_in(X86CPU *c, const Insn *i)
{
    uint16_t port = io_port(c, i);
    uint64_t v;

    tcg_check_io(c, i, port, i->opsize);
    tcg_count_exact(c, i);
    uint64_t sample = latency_sample_begin();
    v = address_space_load(&address_space_io, port, i->opsize);
    latency_sample_end(LATENCY_EXIT_IO, sample);
    if (i->opsize == 1) {
        c->regs[R_RAX] = (c->regs[R_RAX] & ~0xffull) | (uint8_t)v;
    } else {
        sys_reg_set(c, R_RAX, v, i->opsize);
    }
    NEXT(c, i);
}

void sys_out(X86CPU *c, const Insn *i)
{
    uint16_t port = io_port(c, i);
    uint64_t v = c->regs[R_RAX];

    tcg_check_io(c, i, port, i->opsize);
    tcg_count_exact(c, i);
    v &= i->opsize == 1 ? 0xff : i->opsize == 2 ? 0xffff : 0xffffffff;
    uint64_t sample = latency_sample_begin();
    address_space_store(&address_space_io, port, v, i->opsize);
    latency_sample_end(LATENCY_EXIT_IO, sample);
    NEXT(c, i);
}

/* ---- SYSCALL, SYSRET (SDM 2B; APM 3) ---- */

static SegmentCache flat_cs(uint16_t sel, unsigned cpl, bool code64)
{
    return (SegmentCache){
        .selector = (uint16_t)((sel & ~3u) | cpl),
        .attr = 0xb | SEG_S | SEG_P | SEG_G | cpl << SEG_DPL_SHIFT | (code64 ? SEG_L : SEG_DB),
        .limit = 0xffffffff,
    };
}

static SegmentCache flat_ss(uint16_t sel, unsigned cpl)
{
    return (SegmentCache){
        .selector = (uint16_t)((sel & ~3u) | cpl),
        .attr = 0x3 | SEG_S | SEG_P | SEG_G | SEG_DB | cpl << SEG_DPL_SHIFT,
        .limit = 0xffffffff,
    };
}

/* Intel has both only in 64-bit mode, AMD in every protected mode. */
static void need_sce(X86CPU *c, const Insn *i)
{
    if (!(c->efer & EFER_SCE) || !(c->cr0 & CR0_PE) || (c->rflags & FL_VM) ||
        (x86_is_intel(c) && !x86_in_64bit(c))) {
        tcg_raise(c, i, EXCP_UD);
    }
}

/*
 * SYSCALL and SYSRET look at TF when they are done, not before: no trap in the kernel if FMASK
 * clears it, and one right behind a SYSRET that sets it, as if the user's SYSCALL had ended there.
 */
static void fast_call_step(X86CPU *c)
{
    c->tcg->sys->no_step = true;
    if (c->rflags & FL_TF) {
        c->tcg->db_pending |= DR6_BS;
    }
}

void sys_syscall(X86CPU *c, const Insn *i)
{
    uint16_t sel = (uint16_t)(c->star >> 32);
    uint64_t next = tcg_next_rip(c, i);

    need_sce(c, i);
    if (sys_long(c)) {
        uint64_t flags = x86_get_rflags(c);
        bool from64 = x86_in_64bit(c);

        c->regs[R_RCX] = next;
        c->regs[R_R8 + 3] = flags & ~FL_RF;
        x86_set_rflags(c, (flags & ~(c->fmask | FL_RF)) | FL_1);
        far_set_cs(c, flat_cs(sel, 0, true), 0, from64 ? c->lstar : c->cstar);
    } else {
        c->regs[R_RCX] = (uint32_t)next;
        c->rflags &= ~(FL_IF | FL_VM | FL_RF);
        far_set_cs(c, flat_cs(sel, 0, false), 0, (uint32_t)c->star);
    }
    c->seg[R_SS] = flat_ss((uint16_t)((sel & ~3u) + 8), 0);
    fast_call_step(c);
    sys_end(c);
}

#define SYSRET_FLAGS 0x3c7fd7ull /* all but RF, VM and what is reserved */

void sys_sysret(X86CPU *c, const Insn *i)
{
    uint16_t sel = (uint16_t)(c->star >> 48);
    bool to64 = i->opsize == 8;
    uint64_t rip = to64 ? c->regs[R_RCX] : (uint32_t)c->regs[R_RCX];

    need_sce(c, i);
    sys_need_cpl0(c, i);
    /* Intel faults here, at CPL 0; AMD at the first fetch, at CPL 3. */
    if (to64 && x86_is_intel(c) && !mmu_canonical(rip)) {
        sys_gp0(c, i);
    }
    if (sys_long(c)) {
        tcg_write_flags(c, c->regs[R_R8 + 3] & SYSRET_FLAGS, SYSRET_FLAGS | FL_RF | FL_VM);
    } else {
        c->rflags |= FL_IF;
    }
    far_set_cs(c, flat_cs(to64 ? (uint16_t)(sel + 16) : sel, 3, to64), 3, rip);
    c->seg[R_SS] = flat_ss((uint16_t)(sel + 8), 3);
    fast_call_step(c);
    sys_end(c);
}

/* ---- SYSENTER, SYSEXIT ---- */

static void need_sysenter(X86CPU *c, const Insn *i, bool exit)
{
    if (!x86_is_intel(c) && sys_long(c)) {
        tcg_raise(c, i, EXCP_UD); /* AMD: legacy mode only */
    }
    if (!(c->cr0 & CR0_PE) || sys_null((uint16_t)c->sysenter_cs) || (exit && c->cpl != 0)) {
        sys_gp0(c, i);
    }
}

void sys_sysenter(X86CPU *c, const Insn *i)
{
    uint16_t sel = (uint16_t)c->sysenter_cs & 0xfffc;
    bool wide = sys_long(c);

    need_sysenter(c, i, false);
    c->rflags &= ~(FL_VM | FL_IF | FL_RF);
    far_set_cs(c, flat_cs(sel, 0, wide), 0,
               wide ? c->sysenter_eip : (uint32_t)c->sysenter_eip);
    c->seg[R_SS] = flat_ss((uint16_t)(sel + 8), 0);
    c->regs[R_RSP] = wide ? c->sysenter_esp : (uint32_t)c->sysenter_esp;
    sys_end(c);
}

void sys_sysexit(X86CPU *c, const Insn *i)
{
    uint16_t sel = (uint16_t)c->sysenter_cs & 0xfffc;
    bool to64 = i->opsize == 8;
    uint64_t rip = c->regs[R_RDX], rsp = c->regs[R_RCX];

    need_sysenter(c, i, true);
    if (to64 && (!mmu_canonical(rip) || !mmu_canonical(rsp))) {
        sys_gp0(c, i);
    }
    far_set_cs(c, flat_cs((uint16_t)(sel + (to64 ? 32 : 16)), 3, to64), 3,
               to64 ? rip : (uint32_t)rip);
    c->seg[R_SS] = flat_ss((uint16_t)(sel + (to64 ? 40 : 24)), 3);
    c->regs[R_RSP] = to64 ? rsp : (uint32_t)rsp;
    sys_end(c);
}
