/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU as everybody but its architecture sees it: a thread, an event word, a few request
 * flags. target/i386/cpu.h embeds it. Nothing here knows which accelerator runs it.
 */
#ifndef ACCEL_CPU_H
#define ACCEL_CPU_H

#include <signal.h>
#include "event/event.h"
#include "qemu/thread.h"

#define MAX_CPUS 255

/* Kicks a vCPU out of a system call; its handler, in cpus.c, does nothing but note it. */
#define SIG_IPI SIGUSR1

/*
 * Why a vCPU must look up from guest code. Set by cpu_request(). CPU_REQ_CONTROL bits belong to
 * cpus.c and live in CPUState.control; the rest live in CPUState.event and are consumed by the
 * accelerator's vcpu_run, on the vCPU's own thread: at its entry always (the vCPU may be halted),
 * and at its next exit-request check. The consumer clears exit_request first and takes the bits
 * then; the producer sets the bits first and exit_request then, so none is lost.
 */
enum {
    CPU_REQ_EXIT = BIT(0),      /* just leave vcpu_run once */
    CPU_REQ_INTERRUPT = BIT(1), /* the interrupt chip may have something for this vCPU */
    CPU_REQ_NMI = BIT(2),
    CPU_REQ_SMI = BIT(3),
    CPU_REQ_INIT = BIT(4),
    CPU_REQ_SIPI = BIT(5),      /* vector in CPUState.sipi_vector */
    CPU_REQ_STOP = BIT(6),      /* pause for `stop` or a reset of the machine */
    CPU_REQ_WORK = BIT(7),      /* run_on_cpu() */
    CPU_REQ_TLB_FLUSH = BIT(8), /* the guest-physical map changed */
    CPU_REQ_TIMER = BIT(9),     /* the local timer's deadline has passed */
    CPU_REQ_MCE = BIT(10),
    CPU_REQ_QUIT = BIT(11),
    CPU_REQ_HOLD = BIT(12),     /* no instruction more until the next of the other control bits */
};
#define CPU_REQ_CONTROL (CPU_REQ_STOP | CPU_REQ_WORK | CPU_REQ_QUIT | CPU_REQ_HOLD)

typedef struct AccelOps AccelOps;
struct CpuWork;

/* See cpu_look_begin(). */
typedef struct CpuLook {
    bool on, first;
    int64_t virtual_ns, cpu_ns; /* of the last look: virtual time, CPU time of the thread */
    int64_t end_ns;
    int64_t lost_ns, begin_lost; /* not asked for yet */
} CpuLook;

typedef struct CPUState {
    unsigned index;
    QemuThread thread; /* "CPU n/KVM", "CPU n/TCG" */
    const AccelOps *accel;
    void *accel_data; /* owned by the accelerator */
    void *irqchip;    /* owned by the interrupt chip: the local APIC */
    EventWord event;
    EventWord control; /* CPU_REQ_CONTROL bits; what a parked vCPU sleeps on */
    _Atomic uint8_t sipi_vector;
    /* NMIs requested and not taken yet: one may be in service and one more wait. Counted before
     * CPU_REQ_NMI is set. */
    _Atomic uint32_t nmi_count;
    atomic_bool halted;     /* in HLT or waiting for SIPI; written by its own thread */
    atomic_bool stopped;    /* parked by cpus.c; registers may be read by others */
    atomic_bool pause_wanted;
    void *local_timer; /* the host timer of cpu_local_timer_arm(), private to cpus-timer.c */
    struct CpuWork *work;   /* run_on_cpu(), guarded by cpus.c's lock */
    CpuLook look;           /* its own thread only */
    /*
     * Polled at every block entry; not 0 when event or control may hold bits. The last member: translated
     * code reaches it, and what follows CPUState, with short displacements.
     */
    _Atomic uint32_t exit_request;
} CPUState;

/* Table of the vCPUs; a slot is NULL if there is none. cpu_count() is the number present. */
CPUState *cpu_get(unsigned index);
unsigned cpu_count(void);
/* The vCPU whose thread this is, NULL elsewhere. RT_SAFE. */
extern __thread CPUState *current_cpu;

/*
 * Time that the host took. A guest calibrates its TSC by a count that it starts, and polls with
 * reads of the TSC in between. If the host runs something else between two of these, the count is
 * ahead of what the guest knows; it takes the count's end for a time too early and has a clock that
 * goes wrong for good. So a device whose count starts may have the vCPU's looks at clocks noted for
 * a while, and answer as of the time when the vCPU would have asked. All this is the vCPU's own
 * thread, RT_SAFE. Nothing is noted where reads of the TSC are not seen (KVM), nor when virtual time
 * is not the host's.
 */
/* A count starts: at the virtual time that is returned. cpu may be NULL, also below. */
int64_t cpu_look_begin(CPUState *cpu);
/* A look: the virtual time that the guest is to see. */
int64_t cpu_look_note(CPUState *cpu);
static inline int64_t cpu_look(CPUState *cpu)
{
    return unlikely(cpu && cpu->look.on) ? cpu_look_note(cpu) : clock_get_ns(CLOCK_TYPE_VIRTUAL);
}
/*
 * The tick. A guest that has the host's processor while the main loop has not would see the TSC go
 * on and no tick come, and take its timer for broken. So a vCPU that reads the TSC and finds the
 * tick's next event overdue by CPU_LOOK_OVERDUE_NS has fn(opaque) run, on its own thread; fn takes
 * its device's lock, and says when the next is due. Set by one device, before the guest runs.
 */
#define CPU_LOOK_OVERDUE_NS 1000000
extern _Atomic int64_t cpu_look_due_ns;
void cpu_look_set_tick(void (*fn)(void *opaque), void *opaque);
void cpu_look_tick_due(int64_t virtual_ns); /* INT64_MAX: none */
void cpu_look_run_tick(int64_t now_ns);
static inline void cpu_look_tick(int64_t now_ns)
{
    if (unlikely(now_ns - CPU_LOOK_OVERDUE_NS >
                 atomic_load_explicit(&cpu_look_due_ns, memory_order_relaxed))) {
        cpu_look_run_tick(now_ns);
    }
}
/*
 * After a look, once: for how many ns the vCPU was held off since the look before; *begin_lost: the
 * same between the start and the first look.
 */
int64_t cpu_look_lost(CPUState *cpu, int64_t *begin_lost);
/* The vCPU itself goes to sleep: time that is not taken from it. */
static inline void cpu_look_end(CPUState *cpu)
{
    cpu->look.on = false;
}

/* RT_SAFE, also from a signal handler. Sets req, then makes the vCPU notice: wakes it from HLT or
 * kicks it out of guest code by the accelerator's hook. O(1). */
void cpu_request(CPUState *cpu, uint32_t req);

/*
 * RT_SAFE, where the guest has just asked for a reset, to be powered off or the like: the calling
 * vCPU executes no instruction more before the machine was stopped for it. Nothing elsewhere.
 */
static inline void cpu_hold_self(void)
{
    if (current_cpu) {
        cpu_request(current_cpu, CPU_REQ_HOLD);
    }
}

/* Runs fn on the vCPU's own thread while it is out of guest code, and waits for it. HELPER_ONLY,
 * or from that thread itself. */
void run_on_cpu(CPUState *cpu, void (*fn)(CPUState *cpu, void *opaque), void *opaque);

#endif
