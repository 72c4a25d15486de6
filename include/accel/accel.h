/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an accelerator is: ways to run one step of a vCPU. cpus.c owns the thread and the loop.
 * All hooks are mandatory but those marked optional.
 */
#ifndef ACCEL_ACCEL_H
#define ACCEL_ACCEL_H

#include "accel/cpu.h"
#include "qemu/error.h"

struct QemuOpts;

/* Why vcpu_run came back; cpus.c dispatches it through one table. */
typedef enum ExitReason {
    EXIT_REQUEST,      /* event bits are set, or nothing special: go round the loop */
    EXIT_HALT,         /* HLT: sleep on the event word until work or vcpu_deadline */
    EXIT_SHUTDOWN,     /* triple fault */
    EXIT_DEBUG,        /* breakpoint of the debugger */
    EXIT_INTERNAL,     /* the accelerator gave up; the machine is paused with a message */
    EXIT_REASON_COUNT
} ExitReason;

struct AccelOps {
    const char *name;        /* "kvm", "tcg", "qtest" */
    const char *thread_name; /* "KVM", "TCG": the "CPU n/..." of thread names */
    /* Start-up, before RAM and CPUs. opts: -accel's properties, may be NULL. False + errp if this
     * accelerator cannot work here (the next of the list is tried). */
    bool (*init)(struct QemuOpts *opts, Error **errp);
    /* Cheap test for `-accel help` and fall-back order. */
    bool (*available)(void);
    /*
     * Optional. How many bytes a vCPU takes, with its thread, when there are so many; also before init. For
     * the check whether they can be locked. model: -cpu's argument.
     */
    uint64_t (*vcpu_bytes)(struct QemuOpts *opts, unsigned vcpus, const char *model);
    /* On the vCPU's own thread, before its first instruction; may allocate. */
    bool (*vcpu_init)(CPUState *cpu, Error **errp);
    bool parallel_init; /* several vCPUs may be in it at once */
    bool sees_clock_reads; /* RDTSC of a guest calls cpu_look() */
    void (*vcpu_fini)(CPUState *cpu);
    /*
     * VCPU thread, memory read lock not held. Consumes cpu->event, then runs until something
     * happens. Also called while cpu->halted, to look at what arrived: it returns EXIT_HALT at
     * once if there is still no reason to run.
     */
    ExitReason (*vcpu_run)(CPUState *cpu);
    /* RT_SAFE, any thread and signal handlers: make vcpu_run return soon. */
    void (*vcpu_kick)(CPUState *cpu);
    /* VCPU thread. The architectural state was reset in target/; take it over. */
    void (*vcpu_reset)(CPUState *cpu);
    /* VCPU thread, or any while cpu->stopped: brings the state in X86CPU up to date, and back. */
    void (*regs_get)(CPUState *cpu);
    void (*regs_put)(CPUState *cpu);
    /* VCPU thread, halted: CLOCK_MONOTONIC time at which CPU_REQ_TIMER is due; INT64_MAX: none. */
    int64_t (*vcpu_deadline)(CPUState *cpu);
    /* Optional. VCPU thread: the debugger changed breakpoints or single-step. */
    void (*debug_update)(CPUState *cpu);
    /* Optional. Called when the machine stops or goes on (virtual time, KVM clock). */
    void (*run_state_change)(bool running);
};

/* The accelerator in force; NULL before accel_init_machine(). */
extern const AccelOps *current_accel;
static inline bool accel_is(const AccelOps *a)
{
    return current_accel == a;
}
extern const AccelOps kvm_accel_ops;   /* on hosts without KVM: init fails and says so */
extern const AccelOps tcg_accel_ops;
extern const AccelOps qtest_accel_ops;

/* KVM's choice of interrupt chip, from -machine kernel-irqchip=. */
typedef enum KernelIrqchip { KERNEL_IRQCHIP_OFF, KERNEL_IRQCHIP_SPLIT, KERNEL_IRQCHIP_ON } KernelIrqchip;
extern KernelIrqchip kernel_irqchip;
/* -machine pit=off: a PIT must not be made in the kernel either. Start-up. */
extern bool accel_pit;

/* -overcommit cpu-pm=on, set before init: idle instructions stay in the guest (KVM only). */
extern bool accel_cpu_pm;

/*
 * -icount, set before init (TCG only): virtual time is retired instructions << shift nanoseconds, and
 * while the one vCPU is halted it jumps to the next timer (sleep off) or waits for it (sleep on).
 */
typedef struct AccelIcount {
    bool enabled, sleep;
    unsigned shift; /* 0..10 */
} AccelIcount;
extern AccelIcount accel_icount;

/* TCG: CPU state changed under it by others (debugger, reset, loader). */
void tcg_flush_all(CPUState *cpu);
/* RT_SAFE. The A20 gate (port 92h, keyboard controller): off masks bit 20 of every physical
 * address. Only TCG heeds it. */
void tcg_set_a20(bool on);
bool tcg_get_a20(void);

/*
 * FERR#: an unmasked x87 exception is pending with CR0.NE = 0 (true), or was cleared. Set by the
 * board, which routes it to IRQ 13; NULL until then. Called on the vCPU's thread, no lock held.
 */
struct X86CPU;
extern void (*tcg_ferr_hook)(struct X86CPU *cpu, bool level);

#endif
