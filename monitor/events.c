/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events on their way from any thread to the control thread: a bounded ring of fixed-size records,
 * so that an EVENT or vCPU thread neither allocates nor waits for a client. When the ring is full
 * the newest event is dropped and counted.
 */
#include "monitor/internal.h"

#include <json-c/json.h>
#include <string.h>
#include <time.h>
#include "event/event.h"
#include "qapi/qapi.h"
#include "qemu/thread.h"

#define RING_SIZE 256

static QemuMutex ring_lock; /* guards the three below */
static QapiEventRecord ring[RING_SIZE];
static unsigned ring_head, ring_count;
static EventPost drain_post;

void monitor_event_post(QapiEventRecord *e)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    e->time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (!event_loop_control()) {
        return;
    }
    {
        QEMU_LOCK_GUARD(&ring_lock);
        if (ring_count < RING_SIZE) {
            ring[(ring_head + ring_count++) % RING_SIZE] = *e;
        }
    }
    event_post(event_loop_control(), &drain_post);
}

static bool ring_take(QapiEventRecord *e)
{
    QEMU_LOCK_GUARD(&ring_lock);
    if (!ring_count) {
        return false;
    }
    *e = ring[ring_head];
    ring_head = (ring_head + 1) % RING_SIZE;
    ring_count--;
    return true;
}

static struct json_object *event_to_json(const QapiEventRecord *e)
{
    struct json_object *j = json_object_new_object();
    struct json_object *ts = json_object_new_object();
    struct json_object *data = qapi_event_data(e);

    json_object_object_add(ts, "seconds", json_object_new_int64(e->time_us / 1000000));
    json_object_object_add(ts, "microseconds", json_object_new_int64(e->time_us % 1000000));
    json_object_object_add(j, "timestamp", ts);
    json_object_object_add(j, "event", json_object_new_string(qapi_event_names[e->kind]));
    if (json_object_object_length(data)) {
        json_object_object_add(j, "data", data);
    } else {
        json_object_put(data);
    }
    return j;
}

void monitor_events_drain(void)
{
    QapiEventRecord e;

    while (ring_take(&e)) {
        struct json_object *j = event_to_json(&e);

        qmp_broadcast(j);
        json_object_put(j);
    }
}

static void drain_fn(void *opaque)
{
    monitor_events_drain();
}

void monitor_events_init(void)
{
    qemu_mutex_init(&ring_lock, LOCK_RANK_LEAF, "monitor events");
    event_post_init(&drain_post, drain_fn, NULL);
}
