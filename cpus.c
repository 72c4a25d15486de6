/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of vCPU threads: start, one loop for every accelerator, parking, work on a vCPU's own
 * thread, the local timer, end. What one step of a CPU is, the accelerator knows.
 */
#include "cpus.h"
#include "cpus-internal.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include "accel/irqchip.h"
#include "event/event.h"
#include "memory/memory.h"
#include "qemu/runstate.h"
#include "realtime/latency.h"
#include "target/i386/cpu.h"

__thread CPUState *current_cpu;
const AccelOps *current_accel;

static _Atomic(CPUState *) cpu_table[MAX_CPUS];
static _Atomic unsigned cpu_table_count;
/*
 * Those that were unplugged, without what their accelerator had made: somebody who looked a moment before
 * may still ask them to do something. They serve the next one in their place. Control thread.
 */
static CPUState *retired[MAX_CPUS];

/* Waited on by the one thread that pauses, starts or works on vCPUs (it holds cpu_list_lock). */
static EventWord cpus_done;
enum { DONE_PARKED = BIT(0), DONE_CREATED = BIT(1), DONE_WORK = BIT(2) };

static QemuMutex cpu_list_lock; /* serialises pause, start and run_on_cpu */
static bool cpus_paused = true; /* guarded by it: what a vCPU that is plugged in now is to be */
static int64_t last_reset_ns;   /* virtual time of the machine's reset; guarded by the run state's lock */

typedef struct CpuWork {
    void (*fn)(CPUState *cpu, void *opaque);
    void *opaque;
    atomic_bool done;
} CpuWork;

/* What the new thread and its creator tell each other. */
typedef struct CpuStart {
    CPUState *cpu;
    Error *err;
    atomic_bool finished;
    bool plugged;   /* made while others run guest code: */
    EventWord done; /* then its creator waits here, with no lock, until it is parked */
} CpuStart;

static void __attribute__((constructor)) cpus_lock_init(void)
{
    qemu_mutex_init(&cpu_list_lock, LOCK_RANK_CPU_LIST, "cpu list");
}

CPUState *cpu_get(unsigned index)
{
    return index < MAX_CPUS ? atomic_load(&cpu_table[index]) : NULL;
}

unsigned cpu_count(void)
{
    return atomic_load(&cpu_table_count);
}

void cpu_foreach(void (*fn)(CPUState *cpu, void *opaque), void *opaque)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);

        if (cpu) {
            fn(cpu, opaque);
        }
    }
}

void cpu_request(CPUState *cpu, uint32_t req)
{
    uint32_t control = req & CPU_REQ_CONTROL;

    if (control) {
        event_word_set(&cpu->control, control);
    }
    if (req & CPU_REQ_NMI) {
        atomic_fetch_add(&cpu->nmi_count, 1);
    }
    event_word_set(&cpu->event, (req & ~(uint32_t)CPU_REQ_CONTROL) | (control ? CPU_REQ_EXIT : 0));
    atomic_store(&cpu->exit_request, 1);
    if (current_cpu != cpu) {
        cpu->accel->vcpu_kick(cpu);
    }
}

/*
 * SIG_IPI on a vCPU's thread: a kick, or the local timer. Only flags are set here: bits of the
 * event word without a wake-up (its only waiter is the thread that runs this).
 */
static void sig_ipi_handler(int sig, siginfo_t *info, void *context)
{
    CPUState *cpu = current_cpu;

    if (!cpu) {
        return;
    }
    if (info->si_code == SI_TIMER) {
        cpu_local_timer_note(cpu);
        atomic_fetch_or(&cpu->event.value, CPU_REQ_TIMER);
    }
    atomic_store(&cpu->exit_request, 1);
    cpu->accel->vcpu_kick(cpu);
}

/* ---- The loop ---- */

static void cpu_do_work(CPUState *cpu)
{
    CpuWork *w = cpu->work;

    if (w && !atomic_load(&w->done)) {
        w->fn(cpu, w->opaque);
        atomic_store(&w->done, true);
        event_word_set(&cpus_done, DONE_WORK);
    }
}

/* start is gone from here on. */
static void start_report(CpuStart *start)
{
    EventWord *word = start->plugged ? &start->done : &cpus_done;

    atomic_store(&start->finished, true);
    event_word_set(word, DONE_CREATED);
}

/* Out of guest code until somebody resumes or quits; work is done meanwhile. start: told of it. */
static void cpu_park(CPUState *cpu, CpuStart *start)
{
    cpu_look_end(cpu);
    cpu->accel->regs_get(cpu);
    atomic_store(&cpu->stopped, true);
    event_word_set(&cpus_done, DONE_PARKED);
    if (start) {
        start_report(start);
    }
    for (;;) {
        uint32_t bits = event_word_take(&cpu->control);

        if (bits & CPU_REQ_WORK) {
            cpu_do_work(cpu);
        }
        if (bits & CPU_REQ_QUIT) {
            event_word_set(&cpu->control, CPU_REQ_QUIT);
            break;
        }
        if (!atomic_load(&cpu->pause_wanted)) {
            break;
        }
        event_word_wait(&cpu->control, INT64_MAX);
    }
    atomic_store(&cpu->stopped, false);
    cpu->accel->regs_put(cpu);
}

/* False: the thread ends. */
static bool cpu_handle_control(CPUState *cpu)
{
    uint32_t bits;

    if (likely(!atomic_load_explicit(&cpu->control.value, memory_order_relaxed))) {
        return true;
    }
    bits = event_word_take(&cpu->control);
    if (bits & CPU_REQ_QUIT) {
        return false;
    }
    if (bits & CPU_REQ_WORK) {
        cpu_do_work(cpu);
    }
    if (atomic_load(&cpu->pause_wanted)) {
        cpu_park(cpu, NULL);
    } else if (bits & CPU_REQ_HOLD) {
        event_word_wait(&cpu->control, INT64_MAX);
    } else {
        return true;
    }
    latency_wake();
    return cpu_handle_control(cpu); /* what ended the wait may have been the end */
}

static void cpu_exit_halt(CPUState *cpu)
{
    /*
     * Control bits always come with CPU_REQ_EXIT in the event word, and before it, so one wait
     * serves both; but vcpu_run may have consumed that bit since cpu_handle_control() looked.
     */
    if (atomic_load(&cpu->control.value)) {
        return;
    }
    cpu_look_end(cpu);
    int64_t deadline = cpu->accel->vcpu_deadline(cpu);
    if (!event_word_wait(&cpu->event, deadline)) {
        latency_timer_local(clock_get_ns(CLOCK_TYPE_REALTIME) - deadline);
        atomic_fetch_or(&cpu->event.value, CPU_REQ_TIMER);
    }
    latency_wake();
}

static void cpu_wait_paused(CPUState *cpu, RunState s)
{
    qemu_system_vmstop_request(s);
    while (!atomic_load(&cpu->control.value)) {
        event_word_wait(&cpu->control, INT64_MAX);
    }
}

static void cpu_exit_request(CPUState *cpu)
{
}

static void cpu_exit_shutdown(CPUState *cpu)
{
    qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
    while (!atomic_load(&cpu->control.value)) {
        event_word_wait(&cpu->control, INT64_MAX);
    }
}

static void cpu_exit_debug(CPUState *cpu)
{
    cpu_wait_paused(cpu, RUN_STATE_DEBUG);
}

static void cpu_exit_internal(CPUState *cpu)
{
    cpu_wait_paused(cpu, RUN_STATE_INTERNAL_ERROR);
}

static void (*const cpu_exit_table[EXIT_REASON_COUNT])(CPUState *cpu) = {
    [EXIT_REQUEST] = cpu_exit_request,   [EXIT_HALT] = cpu_exit_halt,
    [EXIT_SHUTDOWN] = cpu_exit_shutdown, [EXIT_DEBUG] = cpu_exit_debug,
    [EXIT_INTERNAL] = cpu_exit_internal,
};

static void cpu_block_signals(void)
{
    sigset_t set;

    sigfillset(&set);
    sigdelset(&set, SIG_IPI);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigdelset(&set, SIGTRAP);
    sigdelset(&set, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static bool cpu_thread_begin(CpuStart *start)
{
    CPUState *cpu = start->cpu;

    current_cpu = cpu;
    cpu_block_signals();
    memory_thread_register();
    latency_thread_register((int)cpu->index);
    return cpu_local_timer_create(cpu, &start->err) && cpu->accel->vcpu_init(cpu, &start->err);
}

static void cpu_thread_end(CPUState *cpu)
{
    cpu_local_timer_delete(cpu);
    latency_thread_unregister();
    memory_thread_unregister();
}

static void *cpu_thread_fn(void *opaque)
{
    CpuStart *start = opaque; /* the creator's; gone once it was reported */
    CPUState *cpu = start->cpu;

    if (!cpu_thread_begin(start)) {
        cpu_thread_end(cpu);
        start_report(start);
        return NULL;
    }
    if (start->plugged) {
        cpu_park(cpu, start);
    } else {
        start_report(start);
    }
    while (cpu_handle_control(cpu)) {
        ExitReason reason = cpu->accel->vcpu_run(cpu);

        cpu_exit_table[reason](cpu);
    }
    cpu->accel->vcpu_fini(cpu);
    cpu_thread_end(cpu);
    return NULL;
}

/* Waits until done() holds; the waker sets a bit of cpus_done after it made it true. */
static void cpus_wait(bool (*done)(void *opaque), void *opaque)
{
    while (!done(opaque)) {
        event_word_wait(&cpus_done, INT64_MAX);
        event_word_take(&cpus_done);
    }
}

static bool start_finished(void *opaque)
{
    return atomic_load(&((CpuStart *)opaque)->finished);
}

static void sig_ipi_install(void)
{
    struct sigaction sa = { .sa_sigaction = sig_ipi_handler, .sa_flags = SA_SIGINFO };

    sigemptyset(&sa.sa_mask);
    sigaction(SIG_IPI, &sa, NULL);
}

/* It parks as soon as it can. */
static void cpu_start_prepare(CPUState *cpu, CpuStart *start, char *name, size_t len)
{
    *start = (CpuStart){ .cpu = cpu };
    atomic_store(&cpu->pause_wanted, true);
    event_word_set(&cpu->control, CPU_REQ_STOP);
    snprintf(name, len, "CPU %u/%s", cpu->index, current_accel->thread_name);
}

/*
 * Both with cpu_list_lock. The thread is there when this returns; cpu_start_end() waits until it
 * has made the vCPU.
 */
static bool cpu_start_begin(CPUState *cpu, CpuStart *start, Error **errp)
{
    char name[24];

    cpu_start_prepare(cpu, start, name, sizeof(name));
    return qemu_thread_create_vcpu(&cpu->thread, name, cpu->index, cpu_thread_fn, start, errp);
}

static bool cpu_start_end(CpuStart *start, Error **errp)
{
    cpus_wait(start_finished, start);
    if (start->err) {
        qemu_thread_join(&start->cpu->thread);
        error_propagate(errp, start->err);
        return false;
    }
    return true;
}

static bool cpu_thread_start(CPUState *cpu, Error **errp)
{
    CpuStart start;

    QEMU_LOCK_GUARD(&cpu_list_lock);
    sig_ipi_install();
    return cpu_start_begin(cpu, &start, errp) && cpu_start_end(&start, errp);
}

/* ---- Parking ---- */

static bool all_parked(void *opaque)
{
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        CPUState *cpu = cpu_get(i);

        if (cpu && !atomic_load(&cpu->stopped)) {
            return false;
        }
    }
    return true;
}

static void cpu_ask_pause(CPUState *cpu, void *opaque)
{
    atomic_store(&cpu->pause_wanted, true);
    cpu_request(cpu, CPU_REQ_STOP);
}

void cpus_pause_all(void)
{
    QEMU_LOCK_GUARD(&cpu_list_lock);
    cpus_paused = true;
    cpu_foreach(cpu_ask_pause, NULL);
    cpus_wait(all_parked, NULL);
}

static void cpu_resume(CPUState *cpu, void *opaque)
{
    atomic_store(&cpu->pause_wanted, false);
    cpu_request(cpu, CPU_REQ_STOP);
}

void cpus_resume_all(void)
{
    QEMU_LOCK_GUARD(&cpu_list_lock);
    cpus_paused = false;
    cpu_foreach(cpu_resume, NULL);
}

static bool work_done(void *opaque)
{
    return atomic_load(&((CpuWork *)opaque)->done);
}

void run_on_cpu(CPUState *cpu, void (*fn)(CPUState *cpu, void *opaque), void *opaque)
{
    CpuWork work = { .fn = fn, .opaque = opaque };

    if (current_cpu == cpu) {
        fn(cpu, opaque);
        return;
    }
    QEMU_LOCK_GUARD(&cpu_list_lock);
    cpu->work = &work;
    cpu_request(cpu, CPU_REQ_WORK);
    cpus_wait(work_done, &work);
    cpu->work = NULL;
}

/* ---- Reset and end ---- */

static void cpu_reset_arch(CPUState *cpu, void *opaque)
{
    const int64_t *reset_ns = opaque;

    x86_cpu_reset(x86_cpu(cpu), false);
    x86_tsc_zero_at(x86_cpu(cpu), *reset_ns);
    if (irqchip->cpu_reset) {
        irqchip->cpu_reset(cpu, false);
    }
    atomic_store(&cpu->halted, x86_cpu(cpu)->wait_for_sipi);
}

static void cpu_take_over(CPUState *cpu, void *opaque)
{
    cpu->accel->vcpu_reset(cpu);
}

static void reset_one(CPUState *cpu, void *opaque)
{
    run_on_cpu(cpu, cpu_reset_arch, opaque);
}

static void take_over_one(CPUState *cpu, void *opaque)
{
    run_on_cpu(cpu, cpu_take_over, NULL);
}

void cpus_reset_all(void (*devices)(void))
{
    /* The clock may run: one time for all, so that their TSCs stay the same. */
    last_reset_ns = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    cpu_foreach(reset_one, &last_reset_ns);
    devices();
    cpu_foreach(take_over_one, NULL);
}

static void cpu_quit(CPUState *cpu, void *opaque)
{
    cpu_request(cpu, CPU_REQ_QUIT);
    qemu_thread_join(&cpu->thread);
}

void cpus_quit(void)
{
    cpu_foreach(cpu_quit, NULL);
}

/* Back to the state in which x86_cpu_new() made it; others may set its flags at any time. */
static CPUState *cpu_recycle(CPUState *cpu)
{
    x86_cpu_reset(x86_cpu(cpu), false);
    if (irqchip && irqchip->cpu_reset) {
        irqchip->cpu_reset(cpu, false);
    }
    event_word_take(&cpu->event);
    event_word_take(&cpu->control);
    atomic_store(&cpu->nmi_count, 0);
    atomic_store(&cpu->stopped, false);
    cpu->look = (CpuLook){ 0 };
    return cpu;
}

static CPUState *cpu_new(unsigned index, Error **errp)
{
    X86CPU *x86;

    if (index < MAX_CPUS && retired[index]) {
        return cpu_recycle(g_steal_pointer(&retired[index]));
    }
    x86 = x86_cpu_new(index, errp);
    if (!x86) {
        return NULL;
    }
    x86->base.index = index;
    x86->base.accel = current_accel;
    if (irqchip && irqchip->cpu_init) {
        irqchip->cpu_init(&x86->base);
    }
    return &x86->base;
}

/* From now on others find it; or no longer. */
static void cpu_publish(CPUState *cpu, bool yes)
{
    if (irqchip && irqchip->cpu_reachable) {
        irqchip->cpu_reachable(cpu, yes);
    }
    atomic_store(&cpu_table[cpu->index], yes ? cpu : NULL);
    atomic_fetch_add(&cpu_table_count, yes ? 1 : -1);
}

bool cpus_create(unsigned count, Error **errp)
{
    for (unsigned i = 0; i < count; i++) {
        CPUState *cpu = cpu_new(i, errp);

        if (!cpu) {
            return false;
        }
        cpu_publish(cpu, true);
    }
    return true;
}

/* All at once: with -realtime what takes the time is to touch their memory. */
static bool start_together(Error **errp)
{
    CpuStart *starts = g_new0(CpuStart, MAX_CPUS);
    unsigned n = 0;
    bool ok = true;

    QEMU_LOCK_GUARD(&cpu_list_lock);
    sig_ipi_install();
    for (unsigned i = 0; i < MAX_CPUS && ok; i++) {
        if (cpu_get(i)) {
            ok = cpu_start_begin(cpu_get(i), &starts[n], errp);
            n += ok;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        Error *err = NULL;

        if (!cpu_start_end(&starts[i], &err)) {
            if (ok) { /* the first one's is told */
                error_propagate(errp, err);
            } else {
                error_free(err);
            }
            ok = false;
        }
    }
    g_free(starts);
    return ok;
}

bool cpus_start_threads(Error **errp)
{
    if (current_accel->parallel_init) {
        return start_together(errp);
    }
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        if (cpu_get(i) && !cpu_thread_start(cpu_get(i), errp)) {
            return false;
        }
    }
    return true;
}

/* ---- Plugging in ---- */

static bool plug_thread(CPUState *cpu, Error **errp)
{
    CpuStart start;
    char name[24];

    cpu_start_prepare(cpu, &start, name, sizeof(name));
    start.plugged = true;
    if (!qemu_thread_create_vcpu_later(&cpu->thread, name, cpu_thread_fn, &start, errp)) {
        return false;
    }
    event_word_wait(&start.done, INT64_MAX);
    if (start.err) {
        qemu_thread_join(&cpu->thread);
        error_propagate(errp, start.err);
        return false;
    }
    if (!qemu_thread_become_vcpu(&cpu->thread, cpu->index, errp)) {
        cpu_quit(cpu, NULL);
        return false;
    }
    return true;
}

CPUState *cpu_plug_begin(unsigned index, Error **errp)
{
    CPUState *cpu = cpu_new(index, errp);

    if (cpu && !plug_thread(cpu, errp)) {
        retired[index] = cpu;
        return NULL;
    }
    return cpu;
}

void cpu_plug_end(CPUState *cpu)
{
    x86_tsc_zero_at(x86_cpu(cpu), last_reset_ns);
    QEMU_LOCK_GUARD(&cpu_list_lock);
    cpu_publish(cpu, true);
    if (!cpus_paused) {
        cpu_resume(cpu, NULL);
    }
}

/* ---- Unplugging ---- */

void cpu_unplug_park(CPUState *cpu)
{
    const struct timespec pause = { 0, 1000000 };

    cpu_ask_pause(cpu, NULL);
    while (!atomic_load(&cpu->stopped)) {
        nanosleep(&pause, NULL);
        cpu_ask_pause(cpu, NULL); /* somebody may have let all go on */
    }
}

bool cpu_unplug_begin(CPUState *cpu)
{
    QEMU_LOCK_GUARD(&cpu_list_lock);
    if (!atomic_load(&cpu->stopped) || !atomic_load(&cpu->pause_wanted)) {
        return false;
    }
    cpu_publish(cpu, false);
    return true;
}

void cpu_unplug_end(CPUState *cpu)
{
    qemu_thread_become_helper(&cpu->thread);
    cpu_quit(cpu, NULL);
    retired[cpu->index] = cpu;
}
