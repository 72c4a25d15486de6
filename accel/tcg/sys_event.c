/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts and exceptions through IVT or IDT (SDM 3A chapter 6, 3B 20), and what becomes of
 * faults met on the way: double fault, triple fault. Tables in memory that is not there read as
 * all ones, fail the checks of their contents and so end in a triple fault by the same rules.
 */
#include <string.h>
#include "accel/tcg/sys.h"
#include "qemu/log.h"

/* One delivery under way. */
typedef struct Delivery {
    X86CPU *c;
    const Insn *i;
    int kind, vector;
    bool has_error;
    uint32_t error;
    uint64_t rip;   /* to return to */
    uint64_t flags; /* to be pushed */
    uint32_t ext;   /* EXT bit for error codes */
} Delivery;

static bool is_software(int kind)
{
    return kind == EVENT_SOFT_INT || kind == EVENT_INTO;
}

/* Error code of a fault caused by the IDT entry (SDM 3A 6.13). */
static uint32_t idt_error(const Delivery *d)
{
    return (uint32_t)d->vector << 3 | 2 | d->ext;
}

/* SDM 3B 17.3.1.1: RF is set in the image of faults, so that a breakpoint there does not repeat. */
static bool pushes_rf(const Delivery *d)
{
    return d->kind == EVENT_EXCEPTION && d->vector != EXCP_DB && d->vector != EXCP_DF &&
           d->vector != EXCP_MC;
}

/* Everything has been checked: flags and interruptibility change, and RIP with them. */
static void delivery_commit(const Delivery *d, uint64_t clear)
{
    X86CPU *c = d->c;

    x86_set_rflags(c, x86_get_rflags(c) & ~(clear | FL_TF | FL_RF));
    if (d->kind == EVENT_NMI) {
        c->nmi_blocked = true;
    }
    if (d->vector == EXCP_DB && d->kind == EVENT_EXCEPTION) {
        c->dr[7] &= ~(uint64_t)DR7_GD;
    }
    c->int_shadow = c->movss_shadow = false;
    if (!is_software(d->kind)) {
        c->tcg->db_pending = 0; /* a MOV SS's data breakpoint outlives INT n behind it */
    }
    c->tcg->sys->no_step = true;
    c->tcg->sys->rf_fresh = false;
}

/* ---- Real mode (SDM 3B 20.1.4), and virtual-8086 with VME's redirection (20.3.3) ---- */

static void enter_real(Delivery *d, uint64_t ivt, uint64_t flags, uint64_t clear)
{
    X86CPU *c = d->c;
    SysStack s = sys_stack_current(c, d->i);
    uint32_t vec = (uint32_t)tcg_ld_sys(c, d->i, mem_add(c, ivt, (uint64_t)d->vector * 4), 4);

    sys_push(&s, flags, 2);
    sys_push(&s, c->seg[R_CS].selector, 2);
    sys_push(&s, d->rip, 2);
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    seg_load_real(c, R_CS, (uint16_t)(vec >> 16));
    c->rip = vec & 0xffff;
    delivery_commit(d, clear);
    tcg_mode_changed(c);
}

static void deliver_real(Delivery *d)
{
    X86CPU *c = d->c;

    if ((uint32_t)d->vector * 4 + 3 > c->idt.limit) {
        tcg_raise_err(c, d->i, EXCP_GP, idt_error(d));
    }
    enter_real(d, c->idt.base, d->flags, FL_IF | FL_AC);
}

/* INT n in virtual-8086 mode; true if it went to the 8086 handler. */
static bool deliver_vm86(Delivery *d)
{
    X86CPU *c = d->c;
    uint32_t map, bits = 1;
    bool iopl3 = sys_iopl(c) == 3;

    if (d->kind != EVENT_SOFT_INT) {
        return false; /* INT3 and INTO (EVENT_INTO) always take the gate */
    }
    if (c->cr4 & CR4_VME) {
        if (c->tr.limit < 0x67) {
            tcg_raise_err(c, d->i, EXCP_GP, 0);
        }
        /* The 32 bytes below the I/O permission map. */
        map = (uint32_t)tcg_ld_sys(c, d->i, mem_add(c, c->tr.base, 0x66), 2);
        map = map - 32 + (uint32_t)d->vector / 8;
        if (map > c->tr.limit) {
            tcg_raise_err(c, d->i, EXCP_GP, 0);
        }
        bits = (uint32_t)tcg_ld_sys(c, d->i, mem_add(c, c->tr.base, map), 1) >> (d->vector & 7);
    }
    if (bits & 1) {
        if (!iopl3) {
            tcg_raise_err(c, d->i, EXCP_GP, 0);
        }
        return false;
    }
    if (iopl3) {
        enter_real(d, 0, d->flags, FL_IF);
    } else {
        /* VIF stands for IF in the image, and IOPL reads as 3. */
        uint64_t f = (d->flags & ~FL_IF) | FL_IOPL | ((d->flags & FL_VIF) ? FL_IF : 0);
        enter_real(d, 0, f, FL_VIF);
    }
    return true;
}

/* ---- Gates ---- */

/* Reads and checks the IDT entry; *offset_hi: its third dword in long mode. */
static void read_gate(Delivery *d, Desc *g, uint32_t *offset_hi)
{
    X86CPU *c = d->c;
    unsigned size = sys_long(c) ? 16 : 8;
    uint32_t off = (uint32_t)d->vector * size;
    unsigned type;
    uint64_t q;

    *g = (Desc){ 0 };
    *offset_hi = 0;
    if (off + size - 1 > c->idt.limit) {
        tcg_raise_err(c, d->i, EXCP_GP, idt_error(d));
    }
    g->addr = mem_add(c, c->idt.base, off);
    q = tcg_ld_sys(c, d->i, g->addr, 8);
    g->lo = (uint32_t)q;
    g->hi = (uint32_t)(q >> 32);
    if (size == 16) {
        *offset_hi = (uint32_t)tcg_ld_sys(c, d->i, g->addr + 8, 4);
    }
    type = desc_type(g);
    if (desc_is_segment(g) ||
        !(type == SYS_INT || type == SYS_TRAP ||
          (size == 8 && (type == SYS_TASK_GATE || type == SYS_INT16 || type == SYS_TRAP16)))) {
        tcg_raise_err(c, d->i, EXCP_GP, idt_error(d));
    }
    if (is_software(d->kind) && desc_dpl(g) < c->cpl) {
        tcg_raise_err(c, d->i, EXCP_GP, idt_error(d));
    }
    if (!desc_present(g)) {
        tcg_raise_err(c, d->i, EXCP_NP, idt_error(d));
    }
}

/* The gate's code segment. Returns the level the handler runs at. */
static unsigned check_target(Delivery *d, uint16_t sel, Desc *cs)
{
    X86CPU *c = d->c;
    bool vm = (c->rflags & FL_VM) != 0;
    uint32_t error = (sel & ~3u) | d->ext;
    unsigned cpl;

    if (sys_null(sel)) {
        tcg_raise_err(c, d->i, EXCP_GP, d->ext);
    }
    desc_read_or(c, d->i, sel, cs, EXCP_GP, d->ext);
    if (!desc_is_code(cs) || desc_dpl(cs) > c->cpl ||
        (sys_long(c) && (desc_attr(cs) & (SEG_L | SEG_DB)) != SEG_L)) {
        tcg_raise_err(c, d->i, EXCP_GP, error);
    }
    if (!desc_present(cs)) {
        tcg_raise_err(c, d->i, EXCP_NP, error);
    }
    cpl = desc_is_conforming(cs) ? c->cpl : desc_dpl(cs);
    if (vm && cpl != 0) {
        tcg_raise_err(c, d->i, EXCP_GP, error);
    }
    return cpl;
}

/* Interrupt gates clear IF, trap gates do not; both clear TF, NT, RF, VM. */
static uint64_t gate_clears(const Desc *g)
{
    return FL_NT | FL_VM | (desc_type(g) & 1 ? 0 : FL_IF);
}

static void push_frame(Delivery *d, SysStack *s, bool outer, unsigned size)
{
    X86CPU *c = d->c;
    bool vm = (c->rflags & FL_VM) != 0;

    if (outer && vm) {
        sys_push(s, c->seg[R_GS].selector, size);
        sys_push(s, c->seg[R_FS].selector, size);
        sys_push(s, c->seg[R_DS].selector, size);
        sys_push(s, c->seg[R_ES].selector, size);
    }
    if (outer) {
        sys_push(s, c->seg[R_SS].selector, size);
        sys_push(s, c->regs[R_RSP], size);
    }
    sys_push(s, d->flags, size);
    sys_push(s, c->seg[R_CS].selector, size);
    sys_push(s, d->rip, size);
    if (d->has_error) {
        sys_push(s, d->error, size);
    }
}

/* ---- Protected mode, 16- and 32-bit gates (SDM 3A 6.12) ---- */

static void null_data_segments(X86CPU *c)
{
    c->seg[R_GS] = c->seg[R_FS] = c->seg[R_DS] = c->seg[R_ES] = seg_null(0);
}

static void deliver_gate32(Delivery *d, const Desc *g)
{
    X86CPU *c = d->c;
    bool vm = (c->rflags & FL_VM) != 0;
    unsigned size = desc_type(g) & 8 ? 4 : 2;
    uint32_t eip = (g->lo & 0xffff) | (size == 4 ? g->hi & 0xffff0000 : 0);
    Desc cs;
    unsigned cpl = check_target(d, gate_selector(g), &cs);
    bool outer = cpl != c->cpl;
    SegmentCache ccs;
    SysStack s;

    if (outer) {
        uint16_t sel;
        uint64_t esp = tss_stack(c, d->i, cpl, &sel, d->ext);

        if (sys_null(sel)) {
            tcg_raise_err(c, d->i, EXCP_TS, d->ext);
        }
        s = sys_stack_new(c, d->i, seg_check_stack(c, d->i, sel, cpl, EXCP_TS, d->ext), esp, cpl,
                      false, (sel & ~3u) | d->ext);
    } else {
        s = sys_stack_current(c, d->i);
        s.error = d->ext;
    }
    if (eip > desc_limit(&cs)) {
        tcg_raise_err(c, d->i, EXCP_GP, d->ext);
    }
    push_frame(d, &s, outer, size);
    desc_set_accessed(c, d->i, &cs);

    ccs = desc_cache(&cs, (uint16_t)((gate_selector(g) & ~3u) | cpl));
    if (outer) {
        c->seg[R_SS] = s.ss;
        if (vm) {
            null_data_segments(c);
        }
    }
    c->regs[R_RSP] = sys_stack_rsp(&s, c->regs[R_RSP]);
    far_set_cs(c, ccs, cpl, eip);
    delivery_commit(d, gate_clears(g));
    tcg_mode_changed(c);
}

/* ---- Long mode (SDM 3A 6.14) ---- */

static void deliver_gate64(Delivery *d, const Desc *g, uint32_t offset_hi)
{
    X86CPU *c = d->c;
    uint64_t rip = (g->lo & 0xffff) | (g->hi & 0xffff0000) | (uint64_t)offset_hi << 32;
    unsigned ist = g->hi & 7;
    uint64_t rsp = c->regs[R_RSP];
    SegmentCache ss = c->seg[R_SS];
    Desc cs;
    unsigned cpl = check_target(d, gate_selector(g), &cs);
    bool outer = cpl != c->cpl;
    uint16_t none;
    SysStack s;

    if (ist) {
        rsp = tss_ist(c, d->i, ist, d->ext);
    } else if (outer) {
        rsp = tss_stack(c, d->i, cpl, &none, d->ext);
    }
    if (outer) {
        ss = seg_null((uint16_t)cpl);
        ss.attr |= (uint32_t)cpl << SEG_DPL_SHIFT;
    }
    s = sys_stack_new(c, d->i, ss, rsp & ~15ull, cpl, true, d->ext);
    if (!mmu_canonical(rip)) {
        tcg_raise_err(c, d->i, EXCP_GP, d->ext);
    }
    push_frame(d, &s, true, 8);
    desc_set_accessed(c, d->i, &cs);

    c->seg[R_SS] = ss;
    c->regs[R_RSP] = s.sp;
    far_set_cs(c, desc_cache(&cs, (uint16_t)((gate_selector(g) & ~3u) | cpl)), cpl, rip);
    delivery_commit(d, gate_clears(g));
    tcg_mode_changed(c);
}

/* ---- The way in ---- */

static const char *const event_names[] = {
    [EVENT_EXCEPTION] = "exception", [EVENT_SOFT_INT] = "int",  [EVENT_EXT_INT] = "interrupt",
    [EVENT_NMI] = "nmi",             [EVENT_ICEBP] = "icebp",   [EVENT_INTO] = "into",
};

void event_enter(X86CPU *c, const Insn *i, int kind, int vector, bool has_error, uint32_t error,
                 uint64_t return_rip)
{
    Delivery d = { .c = c, .i = i, .kind = kind, .vector = vector, .has_error = has_error,
                   .error = error, .rip = return_rip, .ext = !is_software(kind) };
    uint32_t offset_hi;
    Desc gate;

    qemu_log_mask(LOG_INT, "CPU %u: %s %02x error %04x cpl %u at %04x:%llx sp %llx cr2 %llx\n",
                  c->base.index, event_names[kind], (unsigned)vector, has_error ? error : 0, c->cpl,
                  c->seg[R_CS].selector, (unsigned long long)return_rip,
                  (unsigned long long)c->regs[R_RSP], (unsigned long long)c->cr2);
    d.flags = x86_get_rflags(c) | (pushes_rf(&d) ? FL_RF : 0);
    if (!(c->cr0 & CR0_PE)) {
        deliver_real(&d);
        return;
    }
    if ((c->rflags & FL_VM) && deliver_vm86(&d)) {
        return;
    }
    read_gate(&d, &gate, &offset_hi);
    if (sys_long(c)) {
        deliver_gate64(&d, &gate, offset_hi);
    } else if (desc_type(&gate) == SYS_TASK_GATE) {
        task_gate_enter(c, i, gate_selector(&gate), TASK_INT, return_rip, has_error, error,
                        d.ext);
        if (kind == EVENT_NMI) {
            c->nmi_blocked = true;
        }
    } else {
        deliver_gate32(&d, &gate);
    }
}

/* ---- Nested faults (SDM 3A table 6-5) ---- */

static bool is_contributory(int vector)
{
    return vector == EXCP_DE || (vector >= EXCP_TS && vector <= EXCP_GP);
}

/* What the fault `second`, met while `first` was delivered, becomes; false: triple fault. */
static bool combine(int kind, const TcgException *first, TcgException *second)
{
    bool fault = is_contributory(second->vector) || second->vector == EXCP_PF;

    if (kind != EVENT_EXCEPTION) {
        return true; /* interrupts are benign */
    }
    if (first->vector == EXCP_DF) {
        return !fault;
    }
    if ((is_contributory(first->vector) && is_contributory(second->vector)) ||
        (first->vector == EXCP_PF && fault)) {
        *second = (TcgException){ .vector = EXCP_DF, .has_error = true, .error = 0 };
    }
    return true;
}

bool tcg_deliver_event(X86CPU *c, int kind, int vector, bool has_error, uint32_t error,
                       uint64_t return_rip)
{
    struct TcgCpu *t = c->tcg;
    struct TcgSys *s = t->sys;
    sigjmp_buf saved;
    volatile bool alive = true; /* across siglongjmp */

    t->block = NULL;
    memcpy(&saved, &t->jmp, sizeof(saved));
    s->kind = kind;
    /* Real mode has no error codes on its stack. */
    s->event = (TcgException){ .vector = vector, .has_error = has_error, .error = error };
    c->rip = return_rip;
    if (sigsetjmp(t->jmp, 0)) {
        /* A fault in the delivery: nothing was committed. t->exc holds it. */
        alive = combine(s->kind, &s->event, &t->exc);
        s->event = t->exc;
        s->kind = EVENT_EXCEPTION;
    }
    if (alive) {
        event_enter(c, NULL, s->kind, s->event.vector, s->event.has_error, s->event.error, c->rip);
    }
    memcpy(&t->jmp, &saved, sizeof(saved));
    if (!alive) {
        qemu_log_mask(LOG_INT | LOG_CPU_RESET, "CPU %u: triple fault at %04x:%llx\n", c->base.index,
                      c->seg[R_CS].selector, (unsigned long long)c->rip);
    }
    return alive;
}
