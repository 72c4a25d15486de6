/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QMP and HMP sessions share: the control thread, and buffered output that never waits for a
 * client. A client that does not read is not served further; one that lets a megabyte pile up
 * loses events, and is told how many.
 */
#include "monitor/internal.h"

#include <malloc.h>
#include <stdio.h>
#include "event/event.h"
#include "qemu/os.h"
#include "qemu/runstate.h"
#include "qemu/thread.h"
#include "qapi/qapi.h"

Monitor *monitors;
Monitor *monitor_current;
const char *monitor_guest_name;
uint8_t monitor_guest_uuid[16];

static QemuThread control_thread;
static bool control_running;

/* Buffers are not kept once they have been this big. */
#define KEEP_MAX (256 * KiB)

size_t monitor_pending(const Monitor *mon)
{
    return mon->out->len - mon->out_pos;
}

void monitor_drop_output(Monitor *mon)
{
    mon->out_pos = 0;
    if (mon->out_big) {
        mon->out_big = false;
        g_byte_array_free(mon->out, TRUE);
        mon->out = g_byte_array_new();
        monitor_trim();
    } else {
        g_byte_array_set_size(mon->out, 0);
    }
}

void monitor_trim(void)
{
#ifdef __GLIBC__
    /* Locked memory is kept on purpose; big buffers are mappings of their own there. */
    if (os_memory_locked() == MEM_LOCK_OFF) {
        malloc_trim(0);
    }
#endif
}

void monitor_flush(void *opaque)
{
    Monitor *mon = opaque;

    mon->out_big |= mon->out->len > KEEP_MAX;
    if (mon->capture) {
        g_string_append_len(mon->capture, (const char *)mon->out->data, mon->out->len);
        monitor_drop_output(mon);
        return;
    }
    mon->out_pos += chr_fe_write(&mon->fe, mon->out->data + mon->out_pos, monitor_pending(mon));
    if (mon->out_pos == mon->out->len) {
        monitor_drop_output(mon);
    } else if (mon->out_pos > mon->out->len / 2) {
        g_byte_array_remove_range(mon->out, 0, (guint)mon->out_pos);
        mon->out_pos = 0;
    }
    if (monitor_can_take(mon)) {
        if (mon->in && mon->in->len) {
            event_post(mon->fe.loop, &mon->serve_post);
        }
        chr_fe_accept_input(&mon->fe);
    }
}

void monitor_write(Monitor *mon, const char *buf, size_t len)
{
    g_byte_array_append(mon->out, (const uint8_t *)buf, len);
    monitor_flush(mon);
}

size_t monitor_owes(void *opaque)
{
    return monitor_pending(opaque);
}

bool monitor_can_take(const Monitor *mon)
{
    return monitor_pending(mon) < MONITOR_HIGH_OUT;
}

Monitor *monitor_new(Chardev *chr, const ChrFrontendOps *ops, Error **errp)
{
    Monitor *mon = g_new0(Monitor, 1);

    if (!chr_fe_init(&mon->fe, chr, errp)) {
        g_free(mon);
        return NULL;
    }
    mon->out = g_byte_array_new();
    mon->line = g_string_new(NULL);
    g_queue_init(&mon->history);
    mon->next = monitors;
    monitors = mon;
    return mon;
}

static void *control_fn(void *opaque)
{
    event_loop_run(opaque);
    return NULL;
}

/* ---- Events of the run state ---- */

static void on_reset(bool guest, ShutdownCause cause)
{
    qapi_event_send_reset(guest, (QapiShutdownCause)cause);
}

static void on_shutdown(bool guest, ShutdownCause cause)
{
    qapi_event_send_shutdown(guest, (QapiShutdownCause)cause);
}

bool monitor_init_globals(Error **errp)
{
    EventLoop *loop = event_loop_new("control", errp);

    if (!loop) {
        return false;
    }
    event_loop_set_control(loop);
    monitor_events_init();
    monitor_devices_init();
    runstate_events = (RunStateEvents){
        .stop = qapi_event_send_stop,
        .resume = qapi_event_send_resume,
        .powerdown = qapi_event_send_powerdown,
        .suspend = qapi_event_send_suspend,
        .wakeup = qapi_event_send_wakeup,
        .reset = on_reset,
        .shutdown = on_shutdown,
    };
    return true;
}

bool monitor_start(Error **errp)
{
    control_running = qemu_thread_create(&control_thread, "control", THREAD_HELPER, control_fn,
                                         event_loop_control(), errp);
    return control_running;
}

void monitor_cleanup(void)
{
    if (!control_running) {
        return;
    }
    event_loop_stop(event_loop_control());
    qemu_thread_join(&control_thread);
    control_running = false;
    /* The thread is gone, so its sessions are ours: the last events still go out. */
    monitor_events_drain();
    for (Monitor *mon = monitors; mon; mon = mon->next) {
        if (mon->open && monitor_pending(mon)) {
            chr_fe_write_all(&mon->fe, mon->out->data + mon->out_pos, monitor_pending(mon));
        }
    }
}
