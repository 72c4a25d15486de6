/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -object iothread: event loops with a thread of their own. */
#include "event/iothread.h"

#include <glib.h>
#include "event/event.h"
#include "qemu/thread.h"
#include "qemu/user-object.h"

typedef struct IOThread {
    UserObject obj;
    EventLoop *loop;
    QemuThread thread;
    bool running;
    IOThreadInfo info;
} IOThread;

static void *iothread_fn(void *opaque)
{
    event_loop_run(opaque);
    return NULL;
}

/* ---- Properties ---- */

/* QEMU's defaults. */
#define POLL_MAX_NS 32768

static bool get_number(const IOThread *t, const char *name, int64_t missing, int64_t *value, Error **errp)
{
    *value = (int64_t)qemu_opt_get_number(t->obj.opts, name, (uint64_t)missing);
    if (*value < 0) {
        error_setg(errp, "Parameter '%s' does not accept value '%s': give 0 to %lld", name,
                   qemu_opt_get(t->obj.opts, name), (long long)INT64_MAX);
        return false;
    }
    return true;
}

static bool get_properties(IOThread *t, Error **errp)
{
    int64_t least, most;

    if (!get_number(t, "poll-max-ns", POLL_MAX_NS, &t->info.poll_max_ns, errp) ||
        !get_number(t, "poll-grow", 0, &t->info.poll_grow, errp) ||
        !get_number(t, "poll-shrink", 0, &t->info.poll_shrink, errp) ||
        !get_number(t, "aio-max-batch", 0, &t->info.aio_max_batch, errp) ||
        !get_number(t, "thread-pool-min", 0, &least, errp) ||
        !get_number(t, "thread-pool-max", 64, &most, errp)) {
        return false;
    }
    if (least > most) {
        error_setg(errp, "Parameter 'thread-pool-min': %lld is more than thread-pool-max, %lld; make it smaller",
                   (long long)least, (long long)most);
        return false;
    }
    return true;
}

static const QemuOptDesc iothread_props[] = {
    { "poll-max-ns", QEMU_OPT_NUMBER, "longest busy wait in ns (reported; these loops sleep at once)" },
    { "poll-grow", QEMU_OPT_NUMBER, "factor by which the busy wait grows (reported)" },
    { "poll-shrink", QEMU_OPT_NUMBER, "factor by which it shrinks (reported)" },
    { "aio-max-batch", QEMU_OPT_NUMBER, "most requests in one batch (reported)" },
    { "thread-pool-min", QEMU_OPT_NUMBER, "least threads of the pool (there is none)" },
    { "thread-pool-max", QEMU_OPT_NUMBER, "most threads of the pool (there is none)" },
    { NULL },
};

/* ---- Life ---- */

static bool iothread_complete(UserObject *obj, Error **errp)
{
    IOThread *t = (IOThread *)obj;
    char *name;

    if (!get_properties(t, errp)) {
        return false;
    }
    name = g_strdup_printf("IO %s", obj->id);
    t->loop = event_loop_new(name, errp);
    t->running = t->loop && qemu_thread_create(&t->thread, name, THREAD_EVENT, iothread_fn, t->loop, errp);
    g_free(name);
    if (!t->running && t->loop) {
        event_loop_free(t->loop);
    }
    t->info.id = obj->id;
    t->info.thread_id = atomic_load(&t->thread.tid);
    return t->running;
}

static void iothread_stop(IOThread *t)
{
    if (t->running) {
        event_loop_stop(t->loop);
        qemu_thread_join(&t->thread);
        t->running = false;
    }
}

static void iothread_finalize(UserObject *obj)
{
    IOThread *t = (IOThread *)obj;

    iothread_stop(t);
    event_loop_free(t->loop);
}

static const UserObjectType iothread_type = {
    .name = "iothread",
    .desc = "event thread that devices can share",
    .props = iothread_props,
    .instance_size = sizeof(IOThread),
    .complete = iothread_complete,
    .finalize = iothread_finalize,
};
USER_OBJECT_TYPE(iothread_type);

/* ---- For others ---- */

typedef struct Visit {
    void (*fn)(const IOThreadInfo *info, void *opaque);
    void *opaque;
} Visit;

static void visit(UserObject *obj, void *opaque)
{
    Visit *v = opaque;
    IOThread *t = (IOThread *)obj;

    if (obj->type == &iothread_type) {
        v->fn(&t->info, v->opaque);
    }
}

void iothread_foreach(void (*fn)(const IOThreadInfo *info, void *opaque), void *opaque)
{
    Visit v = { fn, opaque };

    user_object_foreach(visit, &v);
}

static void stop_one(UserObject *obj, void *opaque)
{
    if (obj->type == &iothread_type) {
        iothread_stop((IOThread *)obj);
    }
}

void iothread_stop_all(void)
{
    user_object_foreach(stop_one, NULL);
}
