/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See device-test.h. Stands in for chardev/, the run state and the CPU list. */
#include "device-test.h"

#include "accel/cpu.h"

LineRecord isa_lines[16], test_lines[64];
GString *chr_out;
size_t chr_room = SIZE_MAX;
unsigned chr_accepts;
ChrLine chr_line;
unsigned resets_requested;
int exit_status_requested = -1;

static EventLoop *loop;
static IsaBus isa;

/* ---- Lines ---- */

static void record(void *opaque, int n, int level)
{
    LineRecord *r = &((LineRecord *)opaque)[n];

    if (level && !r->level) {
        r->rises++;
    } else if (!level && r->level) {
        r->falls++;
    }
    r->level = level != 0;
}

IrqLine test_line(unsigned n)
{
    return (IrqLine){ record, test_lines, (int)n };
}

void lines_clear(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(isa_lines); i++) {
        isa_lines[i].rises = isa_lines[i].falls = 0;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(test_lines); i++) {
        test_lines[i].rises = test_lines[i].falls = 0;
    }
}

/* ---- Machine ---- */

void device_test_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    loop = event_loop_new("test", &error_abort);
    event_loop_set_main(loop);
    clock_virtual_set_manual();
    memory_init();
    isa_bus_init(&isa, NULL);
    for (unsigned i = 0; i < 16; i++) {
        isa.irq[i] = (IrqLine){ record, isa_lines, (int)i };
    }
    chr_out = g_string_new(NULL);
}

DeviceState *device_test_new(const char *type)
{
    DeviceState *dev = device_new_named(type);

    g_assert_true(device_realize(dev, NULL, &error_abort));
    return dev;
}

int64_t now_ns(void)
{
    return clock_get_ns(CLOCK_TYPE_VIRTUAL);
}

void step_ns(int64_t ns)
{
    clock_virtual_advance_to(now_ns() + ns);
}

/* ---- Character back end ---- */

static int chardev_dummy;
Chardev *const test_chardev = (Chardev *)&chardev_dummy;
static ChrFrontend *frontend;

Chardev *chardev_find(const char *id)
{
    return strcmp(id, "chr0") ? NULL : test_chardev;
}

const char *chardev_id(const Chardev *chr)
{
    return "chr0";
}

bool chr_fe_init(ChrFrontend *fe, Chardev *chr, Error **errp)
{
    fe->chr = chr;
    if (chr) {
        frontend = fe;
    }
    return true;
}

void chr_fe_fini(ChrFrontend *fe)
{
    fe->chr = NULL;
}

void chr_fe_set_handlers(ChrFrontend *fe, EventLoop *l, const ChrFrontendOps *ops, void *opaque)
{
    fe->ops = ops;
    fe->opaque = opaque;
}

size_t chr_fe_write(ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    size_t n = MIN(len, chr_room);

    if (!fe->chr) {
        return len;
    }
    g_string_append_len(chr_out, (const char *)buf, (gssize)n);
    if (chr_room != SIZE_MAX) {
        chr_room -= n;
    }
    return n;
}

void chr_fe_set_line(ChrFrontend *fe, const ChrLine *line)
{
    chr_line = *line;
}

void chr_fe_accept_input(ChrFrontend *fe)
{
    chr_accepts++;
}

void chr_writable(void)
{
    frontend->ops->writable(frontend->opaque);
}

size_t chr_input(const char *text)
{
    size_t len = strlen(text), n = MIN(len, frontend->ops->can_read(frontend->opaque));

    if (n) {
        frontend->ops->read(frontend->opaque, (const uint8_t *)text, n);
    }
    return n;
}

void chr_break(void)
{
    frontend->ops->event(frontend->opaque, CHR_EVENT_BREAK);
}

/* ---- Run state ---- */

typedef struct Listener {
    void (*fn)(void *opaque, RunState old, RunState now);
    void *opaque;
} Listener;
static Listener listeners[16];
static unsigned n_listeners;

void runstate_add_listener(void (*fn)(void *opaque, RunState old, RunState now), void *opaque)
{
    g_assert_cmpuint(n_listeners, <, ARRAY_SIZE(listeners));
    listeners[n_listeners++] = (Listener){ fn, opaque };
}

void runstate_notify(RunState s)
{
    for (unsigned i = 0; i < n_listeners; i++) {
        listeners[i].fn(listeners[i].opaque, RUN_STATE_PAUSED, s);
    }
}

bool runstate_devices_run(void)
{
    return true;
}

bool runstate_is_running(void)
{
    return true;
}

void qemu_system_reset_request(ShutdownCause cause)
{
    resets_requested++;
}

void qemu_system_exit_request(int status)
{
    exit_status_requested = status;
}

/* ---- vCPUs ---- */

__thread CPUState *current_cpu;
static CPUState *cpus[MAX_CPUS];
_Atomic uint32_t cpu_requests[MAX_CPUS];
int64_t cpu_timers[MAX_CPUS];

void test_cpu_add(CPUState *cpu)
{
    cpus[cpu->index] = cpu;
    cpu_timers[cpu->index] = INT64_MAX;
}

CPUState *cpu_get(unsigned index)
{
    return index < MAX_CPUS ? cpus[index] : NULL;
}

void cpu_request(CPUState *cpu, uint32_t req)
{
    atomic_fetch_or(&cpu_requests[cpu->index], req);
}

void cpu_local_timer_arm(CPUState *cpu, int64_t deadline_ns)
{
    cpu_timers[cpu->index] = deadline_ns;
}

/* ---- State ---- */

void check_state(DeviceState *dev)
{
    const VMState *vms = dev->type->vmstate;
    uint8_t *first = NULL, *fresh = NULL, *again = NULL;
    size_t first_len = 0, fresh_len = 0, again_len = 0;

    vmstate_save(vms, dev, &first, &first_len);
    dev->type->reset(dev);
    vmstate_save(vms, dev, &fresh, &fresh_len);
    g_assert_cmpuint(first_len, ==, fresh_len);
    g_assert_true(memcmp(first, fresh, first_len) != 0);
    g_assert_true(vmstate_load(vms, dev, first, first_len, NULL, &error_abort));
    vmstate_save(vms, dev, &again, &again_len);
    g_assert_cmpmem(first, first_len, again, again_len);
    g_free(first);
    g_free(fresh);
    g_free(again);
}
