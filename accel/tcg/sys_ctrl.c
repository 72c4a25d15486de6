/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control registers, debug registers and the TLB instructions (SDM 3A 2.5, 4.10.4; SDM 3B 17.2;
 * MOV CR, MOV DR, LMSW, XSETBV, INVPCID in SDM 2).
 */
#include "accel/irqchip.h"
#include "accel/tcg/sys.h"
#include "target/i386/cpuid.h"

/* ---- CR0 ---- */

#define CR0_KNOWN                                                                                  \
    (CR0_PE | CR0_MP | CR0_EM | CR0_TS | CR0_ET | CR0_NE | CR0_WP | CR0_AM | CR0_NW | CR0_CD |     \
     CR0_PG)

static bool cr0_enter_paging(X86CPU *c)
{
    if (c->efer & EFER_LME) {
        /* IA-32e mode is entered; never from 64-bit code, and never with a 16-bit TSS. */
        if (!(c->cr4 & CR4_PAE) || (c->seg[R_CS].attr & SEG_L) ||
            SEG_TYPE(c->tr.attr) == SYS_TSS16_BUSY) {
            return false;
        }
        return true;
    }
    return !(c->cr4 & CR4_PAE) || mmu_load_pdptes(c, c->cr3);
}

static bool cr0_check(X86CPU *c, uint64_t v)
{
    uint64_t change = v ^ c->cr0;

    if ((v >> 32) || ((v & CR0_PG) && !(v & CR0_PE)) || ((v & CR0_NW) && !(v & CR0_CD))) {
        return false;
    }
    if ((change & CR0_PG) && !(v & CR0_PG) && (x86_in_64bit(c) || (c->cr4 & CR4_PCIDE))) {
        return false;
    }
    if ((change & v & CR0_PG) && !cr0_enter_paging(c)) {
        return false;
    }
    /* PAE: a change of caching reads the PDPTEs again (SDM 3A 4.4.1). */
    if ((change & (CR0_CD | CR0_NW)) && (v & c->cr0 & CR0_PG) && (c->cr4 & CR4_PAE) &&
        !sys_long(c)) {
        return mmu_load_pdptes(c, c->cr3);
    }
    return true;
}

static void cr0_write(X86CPU *c, const Insn *i, uint64_t v)
{
    uint64_t change;

    if (!cr0_check(c, v)) {
        sys_gp0(c, i);
    }
    v = (v & CR0_KNOWN) | CR0_ET;
    change = v ^ c->cr0;
    c->cr0 = v;
    if (change & CR0_PG) {
        bool lma = (v & CR0_PG) && (c->efer & EFER_LME);
        c->efer = lma ? c->efer | EFER_LMA : c->efer & ~EFER_LMA;
    }
    if (change & (CR0_PG | CR0_WP | CR0_PE)) {
        tcg_tlb_flush(c, true);
    }
}

/* ---- CR3 ---- */

bool cr3_load(X86CPU *c, uint64_t v)
{
    bool keep = (c->cr4 & CR4_PCIDE) && (v >> 63);

    if (sys_long(c)) {
        if (c->cr4 & CR4_PCIDE) {
            v &= ~BIT64(63);
        }
        if (v >> c->phys_bits) {
            return false;
        }
    } else {
        v = (uint32_t)v;
        if ((c->cr0 & CR0_PG) && (c->cr4 & CR4_PAE) && !mmu_load_pdptes(c, v)) {
            return false;
        }
    }
    c->cr3 = v;
    mmu_select_context(c);
    if (!keep) {
        tcg_tlb_flush(c, false);
    }
    return true;
}

/* ---- CR4 ---- */

static uint64_t cr4_allowed(const X86CPU *c)
{
    static const struct {
        uint8_t word;
        uint32_t feature;
        uint32_t bits;
    } table[] = {
        { X86F_VME, CR4_VME | CR4_PVI }, { X86F_TSC, CR4_TSD },
        { X86F_DE, CR4_DE },             { X86F_PSE, CR4_PSE },
        { X86F_PAE, CR4_PAE },           { X86F_MCE, CR4_MCE },
        { X86F_PGE, CR4_PGE },           { X86F_FXSR, CR4_OSFXSR },
        { X86F_SSE, CR4_OSXMMEXCPT },    { X86F_UMIP, CR4_UMIP },
        { X86F_PCID, CR4_PCIDE },        { X86F_XSAVE, CR4_OSXSAVE },
        { X86F_SMEP, CR4_SMEP },         { X86F_SMAP, CR4_SMAP },
        { X86F_FSGSBASE, CR4_FSGSBASE }, { X86F_PKU, CR4_PKE },
    };
    uint64_t mask = CR4_PCE;

    for (unsigned n = 0; n < ARRAY_SIZE(table); n++) {
        if (x86_has(c, (FeatureWord)table[n].word, table[n].feature)) {
            mask |= table[n].bits;
        }
    }
    return mask;
}

static bool cr4_check(X86CPU *c, uint64_t v)
{
    uint64_t change = v ^ c->cr4;

    if ((v & ~cr4_allowed(c)) || (sys_long(c) && !(v & CR4_PAE))) {
        return false;
    }
    if ((change & v & CR4_PCIDE) && (!sys_long(c) || (c->cr3 & 0xfff))) {
        return false;
    }
    if ((change & (CR4_PAE | CR4_PGE | CR4_PSE | CR4_SMEP)) && (c->cr0 & CR0_PG) &&
        (v & CR4_PAE) && !sys_long(c)) {
        return mmu_load_pdptes(c, c->cr3);
    }
    return true;
}

static void cr4_write(X86CPU *c, const Insn *i, uint64_t v)
{
    uint64_t change = v ^ c->cr4;

    if (!cr4_check(c, v)) {
        sys_gp0(c, i);
    }
    c->cr4 = v;
    /* PGE, PAE, PSE, PCIDE, SMEP as SDM 3A 4.10.4.1 demands; SMAP and PKE are in our rights. */
    if (change & (CR4_PGE | CR4_PAE | CR4_PSE | CR4_PCIDE | CR4_SMEP | CR4_SMAP | CR4_PKE)) {
        tcg_tlb_flush(c, true);
    }
    if (change & CR4_PCIDE) {
        mmu_select_context(c);
    }
}

/* ---- MOV CR ---- */

static void cr8_write(X86CPU *c, const Insn *i, uint64_t v)
{
    if (v & ~15ull) {
        sys_gp0(c, i);
    }
    if (irqchip && irqchip->tpr_set) {
        irqchip->tpr_set(&c->base, (uint8_t)v);
        c->tcg->irq_waiting = true;
    }
}

void sys_mov_to_cr(X86CPU *c, const Insn *i)
{
    uint64_t v = c->regs[i->rm];

    sys_need_cpl0(c, i);
    if (i->opsize == 4) {
        v = (uint32_t)v;
    }
    switch (i->reg) {
    case 0:
        cr0_write(c, i, v);
        break;
    case 2:
        c->cr2 = v;
        break;
    case 3:
        if (!cr3_load(c, v)) {
            sys_gp0(c, i);
        }
        break;
    case 4:
        cr4_write(c, i, v);
        break;
    case 8:
        cr8_write(c, i, v);
        break;
    default:
        tcg_raise(c, i, EXCP_UD);
    }
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

void sys_mov_from_cr(X86CPU *c, const Insn *i)
{
    uint64_t v = 0;

    sys_need_cpl0(c, i);
    switch (i->reg) {
    case 0:
        v = c->cr0;
        break;
    case 2:
        v = c->cr2;
        break;
    case 3:
        v = c->cr3;
        break;
    case 4:
        v = c->cr4;
        break;
    case 8:
        v = irqchip && irqchip->tpr_get ? irqchip->tpr_get(&c->base) : 0;
        break;
    default:
        tcg_raise(c, i, EXCP_UD);
    }
    sys_reg_set(c, i->rm, v, i->opsize);
    NEXT(c, i);
}

void sys_lmsw(X86CPU *c, const Insn *i)
{
    uint64_t v;

    sys_need_cpl0(c, i);
    v = sys_rm_load(c, i, 2) & (CR0_PE | CR0_MP | CR0_EM | CR0_TS);
    /* It can set PE, not clear it. */
    cr0_write(c, i, (c->cr0 & ~(CR0_MP | CR0_EM | CR0_TS)) | v);
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

void sys_smsw(X86CPU *c, const Insn *i)
{
    sys_check_umip(c, i);
    if (i->aux8 & SYS_MEM) {
        sys_rm_store(c, i, c->cr0 & 0xffff, 2);
    } else {
        sys_reg_set(c, i->rm, c->cr0, i->opsize);
    }
    NEXT(c, i);
}

void sys_clts(X86CPU *c, const Insn *i)
{
    sys_need_cpl0(c, i);
    c->cr0 &= ~CR0_TS;
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

/* ---- XCR0 ---- */

void sys_xgetbv(X86CPU *c, const Insn *i)
{
    uint32_t index = (uint32_t)c->regs[R_RCX];
    uint64_t v = c->xcr0;

    if (!(c->cr4 & CR4_OSXSAVE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    /* XCR1 is XCR0 AND XINUSE; in-use may be reported for a component in its initial state. */
    if (index != 0 && !(index == 1 && x86_has(c, FEAT_XSAVE, CPUID_XSAVE_XGETBV1))) {
        sys_gp0(c, i);
    }
    c->regs[R_RAX] = (uint32_t)v;
    c->regs[R_RDX] = v >> 32;
    NEXT(c, i);
}

void sys_xsetbv(X86CPU *c, const Insn *i)
{
    uint64_t v = (uint32_t)c->regs[R_RAX] | c->regs[R_RDX] << 32;

    if (!(c->cr4 & CR4_OSXSAVE)) {
        tcg_raise(c, i, EXCP_UD);
    }
    sys_need_cpl0(c, i);
    if ((uint32_t)c->regs[R_RCX] != 0 || !(v & XSTATE_X87) || (v & ~x86_xcr0_mask(c)) ||
        ((v & XSTATE_AVX) && !(v & XSTATE_SSE))) {
        sys_gp0(c, i);
    }
    c->xcr0 = v;
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

/* ---- Debug registers ---- */

/* DR4 and DR5 are DR6 and DR7 unless CR4.DE is set. */
static unsigned dr_index(X86CPU *c, const Insn *i)
{
    if (i->reg > 7 || ((i->reg == 4 || i->reg == 5) && (c->cr4 & CR4_DE))) {
        tcg_raise(c, i, EXCP_UD);
    }
    sys_need_cpl0(c, i);
    if (c->dr[7] & DR7_GD) {
        c->dr[6] |= DR6_BD;
        tcg_raise(c, i, EXCP_DB);
    }
    return i->reg == 4 || i->reg == 5 ? i->reg + 2u : i->reg;
}

void sys_mov_to_dr(X86CPU *c, const Insn *i)
{
    uint64_t v = c->regs[i->rm];
    unsigned n = dr_index(c, i);

    if (i->opsize == 4) {
        v = (uint32_t)v;
    }
    if (n >= 6 && (v >> 32)) {
        sys_gp0(c, i);
    }
    if (n == 6) {
        v = (v & (0xf | DR6_BD | DR6_BS | DR6_BT)) | DR6_SET;
    } else if (n == 7) {
        v = (v & 0xffff23ff) | DR7_SET;
    }
    c->dr[n] = v;
    mmu_breakpoints_changed(c);
    c->rip = tcg_next_rip(c, i);
    sys_end(c);
}

void sys_mov_from_dr(X86CPU *c, const Insn *i)
{
    unsigned n = dr_index(c, i);

    sys_reg_set(c, i->rm, c->dr[n], i->opsize);
    NEXT(c, i);
}

/* ---- TLB and caches ---- */

static uint64_t operand_linear(X86CPU *c, const Insn *i)
{
    uint64_t off = tcg_ea_offset(c, i);

    if (x86_in_64bit(c)) {
        return i->seg == R_FS || i->seg == R_GS ? off + c->seg[i->seg].base : off;
    }
    return (uint32_t)(off + c->seg[i->seg].base);
}

void sys_invlpg(X86CPU *c, const Insn *i)
{
    uint64_t lin = operand_linear(c, i);

    sys_need_cpl0(c, i);
    if (mmu_canonical(lin)) {
        tcg_tlb_flush_page(c, lin);
    }
    c->rip = tcg_next_rip(c, i);
}

void sys_invpcid(X86CPU *c, const Insn *i)
{
    uint64_t type = c->regs[i->reg];
    uint64_t desc[2], lin;

    sys_need_cpl0(c, i);
    if (i->opsize == 4) {
        type = (uint32_t)type;
    }
    lin = tcg_ea(c, i, 16, false);
    tcg_ld_buf(c, i, lin, desc, 16);
    if (type > 3 || (desc[0] >> 12) ||
        (type <= 1 && desc[0] != 0 && !(c->cr4 & CR4_PCIDE)) ||
        (type == 0 && !mmu_canonical(desc[1]))) {
        sys_gp0(c, i);
    }
    mmu_invpcid(c, (unsigned)type, (uint16_t)desc[0], desc[1]);
    c->rip = tcg_next_rip(c, i);
}

/* INVD, WBINVD: there is no cache to lose or to write back. */
void sys_invd(X86CPU *c, const Insn *i)
{
    sys_need_cpl0(c, i);
    NEXT(c, i);
}
