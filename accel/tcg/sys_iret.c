/* SPDX-License-Identifier: GPL-2.0-or-later */
/* IRET in every form, and the INT instructions (SDM 2A; SDM 3A 6.12, 6.14; SDM 3B 20). */
#include "accel/tcg/sys.h"

/* ---- INT n, INT3, INTO, INT1 ---- */

static void software_interrupt(X86CPU *c, const Insn *i, int kind, int vector)
{
    event_enter(c, i, kind, vector, false, 0, tcg_next_rip(c, i));
    sys_end(c);
}

void sys_int_n(X86CPU *c, const Insn *i)
{
    software_interrupt(c, i, EVENT_SOFT_INT, (int)(uint8_t)i->imm);
}

void sys_int3(X86CPU *c, const Insn *i)
{
    software_interrupt(c, i, EVENT_INTO, EXCP_BP);
}

void sys_into(X86CPU *c, const Insn *i)
{
    if (x86_in_64bit(c)) {
        tcg_raise(c, i, EXCP_UD);
    }
    if (x86_get_rflags(c) & FL_OF) {
        software_interrupt(c, i, EVENT_INTO, EXCP_OF);
    } else {
        c->rip = tcg_next_rip(c, i);
    }
}

void sys_int1(X86CPU *c, const Insn *i)
{
    software_interrupt(c, i, EVENT_ICEBP, EXCP_DB);
}

/* ---- IRET ---- */

#define FLAGS_USER (FL_ARITH | FL_TF | FL_DF | FL_NT)

/* Flags a return to protected mode may change, by the level it comes from. */
static uint64_t iret_mask(const X86CPU *c, unsigned size)
{
    uint64_t mask = FLAGS_USER;

    if (size >= 4) {
        mask |= FL_RF | FL_AC | FL_ID;
    }
    if (c->cpl <= sys_iopl(c)) {
        mask |= FL_IF;
    }
    if (c->cpl == 0) {
        mask |= FL_IOPL | (size >= 4 ? FL_VIF | FL_VIP : 0);
    }
    return mask;
}

static void iret_real(X86CPU *c, const Insn *i, uint64_t mask)
{
    SysStack s = sys_stack_current(c, i);
    uint64_t rip = sys_pop(&s, i->opsize);
    uint16_t sel = (uint16_t)sys_pop(&s, i->opsize);
    uint64_t flags = sys_pop(&s, i->opsize);

    if (rip > c->seg[R_CS].limit) {
        sys_gp0(c, i);
    }
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    seg_load_real(c, R_CS, sel);
    c->rip = rip;
    tcg_write_flags(c, flags, mask);
}

/* Virtual-8086 mode with IOPL < 3 and VME: VIF stands for IF (SDM 3B 20.3.3.3). */
static void iret_vme(X86CPU *c, const Insn *i)
{
    SysStack s = sys_stack_current(c, i);
    uint64_t rip = sys_pop(&s, 2);
    uint16_t sel = (uint16_t)sys_pop(&s, 2);
    uint64_t flags = sys_pop(&s, 2);

    if ((flags & FL_TF) || ((flags & FL_IF) && (c->rflags & FL_VIP))) {
        sys_gp0(c, i);
    }
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    seg_load_real(c, R_CS, sel);
    c->rip = rip;
    tcg_write_flags(c, flags | ((flags & FL_IF) ? FL_VIF : 0), FLAGS_USER | FL_VIF);
}

static void iret_vm86(X86CPU *c, const Insn *i)
{
    uint64_t mask = FLAGS_USER | FL_IF | (i->opsize >= 4 ? FL_RF | FL_AC | FL_ID : 0);

    if (sys_iopl(c) == 3) {
        iret_real(c, i, mask);
    } else if ((c->cr4 & CR4_VME) && i->opsize == 2) {
        iret_vme(c, i);
    } else {
        sys_gp0(c, i);
    }
}

/* From CPL 0 to a virtual-8086 task; EIP, CS, EFLAGS are popped already. */
static void iret_to_vm86(X86CPU *c, const Insn *i, SysStack *s, uint64_t eip, uint16_t cs,
                         uint64_t flags)
{
    static const uint8_t order[] = { R_SS, R_ES, R_DS, R_FS, R_GS };
    uint32_t esp = (uint32_t)sys_pop(s, 4);
    uint16_t sel[5];

    for (unsigned n = 0; n < 5; n++) {
        sel[n] = (uint16_t)sys_pop(s, 4);
    }
    if (eip > 0xffff) {
        sys_gp0(c, i);
    }
    tcg_write_flags(c, flags, iret_mask(c, 4) | FL_VM);
    for (unsigned n = 0; n < 5; n++) {
        seg_load_real(c, order[n], sel[n]);
    }
    seg_load_real(c, R_CS, cs);
    c->regs[R_RSP] = esp;
    c->cpl = 3;
    c->rip = eip;
}

static void iret_protected(X86CPU *c, const Insn *i)
{
    bool from64 = x86_in_64bit(c);
    SysStack s = sys_stack_current(c, i);
    uint64_t rip = sys_pop(&s, i->opsize);
    uint16_t sel = (uint16_t)sys_pop(&s, i->opsize);
    uint64_t flags = sys_pop(&s, i->opsize);
    unsigned rpl = sel & 3;
    SegmentCache cs, ss = c->seg[R_SS];
    uint64_t mask = iret_mask(c, i->opsize);
    bool outer;
    Desc d;

    if ((flags & FL_VM) && i->opsize == 4 && c->cpl == 0 && !sys_long(c)) {
        iret_to_vm86(c, i, &s, rip, sel, flags);
        return;
    }
    cs = far_return_cs(c, i, sel, &d);
    outer = rpl > c->cpl;
    if (outer || from64) {
        uint64_t sp = sys_pop(&s, i->opsize);

        sel = (uint16_t)sys_pop(&s, i->opsize);
        ss = far_return_ss(c, i, sel, rpl, &cs);
        s = sys_stack_new(c, i, ss, sp, rpl, cs_is_64(c, &cs), 0);
    }
    far_check_rip(c, i, &cs, rip, 0);
    desc_set_accessed(c, i, &d);
    cs.attr |= SEG_A;

    c->seg[R_SS] = ss;
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    far_set_cs(c, cs, rpl, rip);
    tcg_write_flags(c, flags, mask);
    if (outer) {
        seg_drop_privileged(c);
    }
}

void sys_iret(X86CPU *c, const Insn *i)
{
    /* Even an IRET that faults ends the blocking of NMIs (SDM 3A 6.7.1). */
    c->nmi_blocked = false;
    if (!(c->cr0 & CR0_PE)) {
        iret_real(c, i,
                  FLAGS_USER | FL_IF | FL_IOPL |
                      (i->opsize >= 4 ? FL_RF | FL_AC | FL_ID : 0));
    } else if (c->rflags & FL_VM) {
        iret_vm86(c, i);
    } else if (c->rflags & FL_NT) {
        if (sys_long(c)) {
            sys_gp0(c, i);
        }
        task_return(c, i, tcg_next_rip(c, i));
    } else {
        iret_protected(c, i);
    }
    sys_end(c);
}
