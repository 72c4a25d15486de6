/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system half of the interpreter, private to sys_*.c: descriptors and segments, far transfers,
 * event delivery, task switches, system registers. Sources: SDM 3A chapters 2, 3, 5 to 7.
 *
 * Rule of these files: read and check everything, then commit. `i` is the instruction under way or
 * NULL while an event is delivered; it only serves to tell a fault where it happened.
 */
#ifndef ACCEL_TCG_SYS_H
#define ACCEL_TCG_SYS_H

#include "accel/tcg/mmu.h"

/* System descriptor types (SDM 3A table 3-2); bit 3: 32-bit (or 64-bit in long mode). */
enum {
    SYS_TSS16 = 1, SYS_LDT = 2, SYS_TSS16_BUSY = 3, SYS_CALL16 = 4, SYS_TASK_GATE = 5,
    SYS_INT16 = 6,
    SYS_TRAP16 = 7, SYS_TSS = 9, SYS_TSS_BUSY = 11, SYS_CALL = 12, SYS_INT = 14, SYS_TRAP = 15,
};
#define TSS_BUSY 2

/* DR6 */
#define DR6_BD  BIT(13)
#define DR6_BS  BIT(14)
#define DR6_BT  BIT(15)
#define DR6_SET 0xffff0ff0u /* bits that read as 1 */
/* DR7 */
#define DR7_GD  BIT(13)
#define DR7_SET 0x400u

struct TcgSys {
    TcgException event; /* being delivered: what a nested fault is combined with */
    int kind;
    bool no_step;  /* the instruction took TF's trap with it (INT n, SYSCALL, task switch) */
    bool rf_fresh; /* RF was loaded by the instruction under way and holds for the next one */
};

/* A descriptor as it lies in its table. */
typedef struct Desc {
    uint32_t lo, hi;
    uint32_t base_hi; /* 16-byte system descriptors of long mode */
    uint64_t addr;    /* linear */
} Desc;

static inline uint32_t desc_attr(const Desc *d)
{
    return (d->hi >> 8) & 0xf0ff;
}
static inline unsigned desc_type(const Desc *d)
{
    return (d->hi >> 8) & 15;
}
static inline unsigned desc_dpl(const Desc *d)
{
    return (d->hi >> 13) & 3;
}
static inline bool desc_present(const Desc *d)
{
    return (d->hi & BIT(15)) != 0;
}
/* Code or data, not system. */
static inline bool desc_is_segment(const Desc *d)
{
    return (d->hi & BIT(12)) != 0;
}
static inline bool desc_is_code(const Desc *d)
{
    return (d->hi & (BIT(12) | BIT(11))) == (BIT(12) | BIT(11));
}
static inline bool desc_is_writable_data(const Desc *d)
{
    return (d->hi & (BIT(12) | BIT(11) | BIT(9))) == (BIT(12) | BIT(9));
}
static inline bool desc_is_conforming(const Desc *d)
{
    return desc_is_code(d) && (d->hi & BIT(10));
}
static inline uint64_t desc_base(const Desc *d)
{
    return (uint64_t)d->base_hi << 32 | (d->lo >> 16) | (d->hi & 0xff) << 16 | (d->hi & 0xff000000);
}
static inline uint32_t desc_limit(const Desc *d)
{
    uint32_t limit = (d->lo & 0xffff) | (d->hi & 0xf0000);

    return (d->hi & BIT(23)) ? limit << 12 | 0xfff : limit;
}
/* Gates: target. */
static inline uint16_t gate_selector(const Desc *d)
{
    return (uint16_t)(d->lo >> 16);
}

static inline bool sys_protected(const X86CPU *c)
{
    return (c->cr0 & CR0_PE) && !(c->rflags & FL_VM);
}
static inline bool sys_long(const X86CPU *c)
{
    return (c->efer & EFER_LMA) != 0;
}
static inline bool sys_null(uint16_t sel)
{
    return (sel & ~3u) == 0;
}
static inline unsigned sys_iopl(const X86CPU *c)
{
    return (c->rflags & FL_IOPL) >> 12;
}
/* The TLB_* mode of explicit accesses at a privilege level. */
static inline unsigned sys_mem_mode(const X86CPU *c, unsigned cpl)
{
    return cpl == 3 ? TLB_USER
                    : (c->cr4 & CR4_SMAP) && !(c->rflags & FL_AC) ? TLB_KERNEL : TLB_KERNEL_AC;
}

/* ---- sys_desc.c ---- */

/* Reads a descriptor of GDT or LDT; false if it is outside the table. System descriptors of long
 * mode are read with their second half. */
bool desc_read(X86CPU *c, const Insn *i, uint16_t sel, Desc *d);
/* The same, but raises vector(sel | ext) if it is outside. */
void desc_read_or(X86CPU *c, const Insn *i, uint16_t sel, Desc *d, int vector, uint32_t ext);
/* Sets the accessed bit in memory and in *d if it is clear. */
void desc_set_accessed(X86CPU *c, const Insn *i, Desc *d);
/* Sets or clears the busy bit of a TSS descriptor in memory. */
void desc_set_busy(X86CPU *c, const Insn *i, uint16_t sel, bool busy);
SegmentCache desc_cache(const Desc *d, uint16_t sel);
/* Real and virtual-8086 mode. */
void seg_load_real(X86CPU *c, unsigned seg, uint16_t sel);
/* A null selector: unusable. */
SegmentCache seg_null(uint16_t sel);
/* MOV, POP, LxS to a segment register other than CS, with all checks; commits. */
void seg_load(X86CPU *c, const Insn *i, unsigned seg, uint16_t sel);
/* A stack segment for privilege dpl: faults are vector(sel | ext) (#TS or #GP), #SS if not present.
 * sel is not null. Sets the accessed bit. */
SegmentCache seg_check_stack(X86CPU *c, const Insn *i, uint16_t sel, unsigned dpl, int vector,
                             uint32_t ext);
/* Return to an outer level: data segments it may not use become null. */
void seg_drop_privileged(X86CPU *c);

/* ---- Stacks: sys_stack.c ---- */

/* A stack in the making: pushes and pops are checked against ss, the registers stay. */
typedef struct SysStack {
    X86CPU *c;
    const Insn *i;
    SegmentCache ss;
    uint64_t sp;
    uint64_t mask;  /* of the stack pointer */
    bool flat64;    /* 64-bit mode: canonical check instead of segment */
    uint8_t mode;   /* TLB_* */
    uint32_t error; /* of #SS */
} SysStack;

/* The stack of now. */
SysStack sys_stack_current(X86CPU *c, const Insn *i);
/* A new one for level cpl; code64: the code that will use it is 64-bit. */
SysStack sys_stack_new(X86CPU *c, const Insn *i, SegmentCache ss, uint64_t sp, unsigned cpl,
                   bool code64, uint32_t error);
void sys_push(SysStack *s, uint64_t v, unsigned size);
uint64_t sys_pop(SysStack *s, unsigned size);
/* Raises if n bytes cannot be pushed. */
void sys_reserve(SysStack *s, unsigned n);
/* RSP with the stack's new pointer in its part. */
uint64_t sys_stack_rsp(const SysStack *s, uint64_t old_rsp);
/* SS:ESP or RSP of level dpl from the TSS (SDM 3A 7.2.1, 7.7). *ss is 0 for a 64-bit TSS. */
uint64_t tss_stack(X86CPU *c, const Insn *i, unsigned dpl, uint16_t *ss, uint32_t ext);
/* RSP of an interrupt stack table entry, 1..7. */
uint64_t tss_ist(X86CPU *c, const Insn *i, unsigned ist, uint32_t ext);

/* ---- Far transfers ---- */

/* Commits CS, CPL and RIP; tcg_mode_changed() is the caller's. */
void far_set_cs(X86CPU *c, SegmentCache cs, unsigned cpl, uint64_t rip);
/* Raises #GP(error) if rip is not in the segment (or canonical, for 64-bit code). */
void far_check_rip(X86CPU *c, const Insn *i, const SegmentCache *cs, uint64_t rip, uint32_t error);
static inline bool cs_is_64(const X86CPU *c, const SegmentCache *cs)
{
    return sys_long(c) && (cs->attr & SEG_L);
}
/* CS and SS of a far return or IRET; rpl is the level returned to (SDM 2B RET). */
SegmentCache far_return_cs(X86CPU *c, const Insn *i, uint16_t sel, Desc *d);
SegmentCache far_return_ss(X86CPU *c, const Insn *i, uint16_t sel, unsigned rpl,
                           const SegmentCache *cs);
/* The instruction has committed; its successor is c->rip: look at modes, interrupts, debug. */
void sys_end(X86CPU *c);

InsnFn sys_far_jmp, sys_far_call, sys_far_ret, sys_iret;
InsnFn sys_int_n, sys_int3, sys_into, sys_int1;

/* ---- sys_event.c ---- */

/* Delivers through IDT or IVT; faults are raised (i may be NULL) and nothing is committed. */
void event_enter(X86CPU *c, const Insn *i, int kind, int vector, bool has_error, uint32_t error,
                 uint64_t return_rip);

/* ---- sys_mode.c ---- */

/* Breakpoints of DR7 on instruction fetches are on: RF means something. */
bool debug_code_breakpoints(const X86CPU *c);

/* ---- sys_task.c ---- */

typedef enum TaskSource { TASK_JMP, TASK_CALL, TASK_INT, TASK_IRET } TaskSource;
/* sel is a TSS descriptor of the GDT that d holds, of the right type and present. */
void task_switch(X86CPU *c, const Insn *i, uint16_t sel, Desc *d, TaskSource source,
                 uint64_t next_rip, bool has_error, uint32_t error, uint32_t ext);
/* Task gate or TSS selector as the target of JMP, CALL, INT. */
void task_gate_enter(X86CPU *c, const Insn *i, uint16_t tss_sel, TaskSource source,
                     uint64_t next_rip, bool has_error, uint32_t error, uint32_t ext);
void task_return(X86CPU *c, const Insn *i, uint64_t next_rip);

/* ---- sys_ctrl.c: control and debug registers ---- */

/* CR3 as MOV and task switch load it; false: #GP. */
bool cr3_load(X86CPU *c, uint64_t v);
InsnFn sys_mov_to_cr, sys_mov_from_cr, sys_mov_to_dr, sys_mov_from_dr;
InsnFn sys_lmsw, sys_smsw, sys_clts, sys_xgetbv, sys_xsetbv, sys_invlpg, sys_invpcid, sys_invd;

/* ---- sys_table.c: tables, selectors, segments ---- */

InsnFn sys_lgdt, sys_lidt, sys_sgdt, sys_sidt, sys_lldt, sys_ltr, sys_sldt, sys_str;
InsnFn sys_lar, sys_lsl, sys_verr, sys_verw, sys_arpl;
InsnFn sys_mov_to_seg, sys_mov_from_seg, sys_push_seg, sys_pop_seg, sys_load_far;

/* ---- sys_misc.c ---- */

InsnFn sys_cli, sys_sti, sys_hlt, sys_clac, sys_stac, sys_swapgs, sys_rdmsr, sys_wrmsr, sys_cpuid;
InsnFn sys_rdtsc, sys_rdtscp, sys_rdpmc, sys_rdpid, sys_in, sys_out;
InsnFn sys_rdbase, sys_wrbase, sys_rdpkru, sys_wrpkru, sys_hypercall, sys_monitor, sys_mwait;
InsnFn sys_syscall, sys_sysret, sys_sysenter, sys_sysexit;

/* ---- Operands: sys_decode.c fills them ---- */

#define SYS_MEM BIT(0) /* aux8: the r/m operand is memory */
#define SYS_DX  BIT(1) /* aux8: the port is in DX, else in imm */

/* r/m as a source; a register gives opsize bytes. */
uint64_t sys_rm_load(X86CPU *c, const Insn *i, unsigned size);
void sys_rm_store(X86CPU *c, const Insn *i, uint64_t v, unsigned size);
/* A general register, by size; 32 bits clear the upper half. */
static inline void sys_reg_set(X86CPU *c, unsigned reg, uint64_t v, unsigned size)
{
    if (size == 2) {
        c->regs[reg] = (c->regs[reg] & ~0xffffull) | (uint16_t)v;
    } else {
        c->regs[reg] = size == 4 ? (uint32_t)v : v;
    }
}
/* User-mode instruction prevention: SGDT, SIDT, SLDT, SMSW, STR. */
static inline void sys_check_umip(X86CPU *c, const Insn *i)
{
    if (c->cpl != 0 && (c->cr4 & CR4_UMIP)) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}
/* #GP(0) unless CPL 0. */
static inline void sys_need_cpl0(X86CPU *c, const Insn *i)
{
    if (unlikely(c->cpl != 0)) {
        tcg_raise_err(c, i, EXCP_GP, 0);
    }
}
static inline QEMU_NORETURN void sys_gp0(X86CPU *c, const Insn *i)
{
    tcg_raise_err(c, i, EXCP_GP, 0);
}

#endif
