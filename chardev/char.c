/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: registry, front-end interface, output rings, the I/O helper. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "char-internal.h"
#include "qemu/file.h"
#include "qemu/os.h"

/* chr_fe_write_all() gives up on a peer that takes nothing for this long. */
#define STUCK_NS (2 * NANOSECONDS_PER_SECOND)

static Chardev *chardevs; /* in order of creation */
static int (*open_fdset)(unsigned set, int flags);

/* ---- Registry: changed at start-up and by the control thread only ---- */

Chardev *chardev_find(const char *id)
{
    for (Chardev *c = chardevs; c; c = c->next) {
        if (strcmp(c->id, id) == 0) {
            return c;
        }
    }
    return NULL;
}

const char *chardev_id(const Chardev *chr)
{
    return chr->id;
}

const char *chardev_filename(const Chardev *chr)
{
    return chr->names[atomic_load(&chr->name_index) % ARRAY_SIZE(chr->names)];
}

bool chardev_frontend_open(const Chardev *chr)
{
    return atomic_load(&chr->claimed);
}

bool chardev_wants_monitor(const Chardev *chr)
{
    return chr->wants_monitor;
}

void chardev_foreach(void (*fn)(Chardev *chr, void *opaque), void *opaque)
{
    for (Chardev *c = chardevs, *next; c; c = next) {
        next = c->next;
        fn(c, opaque);
    }
}

void chardev_set_fdset_opener(int (*open_fn)(unsigned set, int flags))
{
    open_fdset = open_fn;
}

void chr_set_filename(Chardev *chr, const char *fmt, ...)
{
    uint32_t i = atomic_load(&chr->name_index) + 1;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(chr->names[i % ARRAY_SIZE(chr->names)], sizeof(chr->names[0]), fmt, ap);
    va_end(ap);
    atomic_store(&chr->name_index, i);
}

static bool is_fifo(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

int chr_open(const char *path, int flags, Error **errp)
{
    unsigned set;
    char end;
    int fd;

    if (sscanf(path, "/dev/fdset/%u%c", &set, &end) == 1) {
        fd = open_fdset ? open_fdset(set, flags) : -1;
        if (fd < 0) {
            error_setg(errp, "Could not open '%s': no descriptor of that set fits", path);
        }
        return fd;
    }
    /* Not even open() waits. Regular files do not mind; who writes others knows EAGAIN. */
    fd = startup_file_open(path, flags | O_NOCTTY | O_NONBLOCK, 0666);
    if (fd < 0 && errno == ENXIO && is_fifo(path)) {
        error_setg(errp, "Could not open '%s': nobody reads this FIFO; start its reader first", path);
    } else if (fd < 0) {
        error_setg_errno(errp, errno, "Could not open '%s'", path);
    }
    return fd;
}

/* ---- Threads ---- */

typedef struct SyncCall {
    EventPost post;
    EventWord done;
    void (*fn)(void *opaque);
    void *opaque;
} SyncCall;

static void sync_call_fn(void *opaque)
{
    SyncCall *s = opaque;
    s->fn(s->opaque);
    event_word_set(&s->done, 1);
}

void chr_call_sync(EventLoop *loop, void (*fn)(void *opaque), void *opaque)
{
    if (!loop || event_loop_is_self(loop) || !event_loop_is_running(loop)) {
        fn(opaque);
        return;
    }
    SyncCall s = { .fn = fn, .opaque = opaque };
    event_post_init(&s.post, sync_call_fn, &s);
    event_post(loop, &s.post);
    while (!event_word_wait(&s.done, INT64_MAX)) {
    }
}

static EventLoop *io_loop;
static QemuThread io_thread;

static void *io_main(void *opaque)
{
    event_loop_run(io_loop);
    return NULL;
}

EventLoop *chr_io_loop(Error **errp)
{
    if (!io_loop) {
        EventLoop *loop = event_loop_new("chardev-io", errp);
        if (!loop) {
            return NULL;
        }
        io_loop = loop;
        if (!qemu_thread_create(&io_thread, "chardev-io", THREAD_HELPER, io_main, NULL, errp)) {
            event_loop_free(loop);
            io_loop = NULL;
        }
    }
    return io_loop;
}

bool chr_use_io_loop(Chardev *chr, Error **errp)
{
    chr->out_loop = chr_io_loop(errp);
    chr->out_fixed = true;
    return chr->out_loop != NULL;
}

void chr_io_stop(void)
{
    if (io_loop) {
        event_loop_stop(io_loop);
        qemu_thread_join(&io_thread);
        event_loop_free(io_loop);
        io_loop = NULL;
    }
}

/* ---- Input and events, on the thread of chr->loop ---- */

size_t chr_in_room(Chardev *chr)
{
    ChrFrontend *fe = chr->fe;

    if (!chr->attached || !fe) {
        return 0;
    }
    /* Without a handler input is read and dropped, so that the end of it is noticed. */
    return fe->ops && fe->ops->can_read ? fe->ops->can_read(fe->opaque) : CHR_READ_MAX;
}

void chr_in(Chardev *chr, const uint8_t *buf, size_t len)
{
    ChrFrontend *fe = chr->fe;
    if (len && chr->attached && fe && fe->ops && fe->ops->read) {
        fe->ops->read(fe->opaque, buf, len);
    }
}

void chr_event(Chardev *chr, ChrEvent event)
{
    ChrFrontend *fe = chr->fe;

    if (!chr->attached || !fe) {
        return;
    }
    if (event == CHR_EVENT_OPENED || event == CHR_EVENT_CLOSED) {
        bool open = event == CHR_EVENT_OPENED;
        if (chr->told_open == open) {
            return;
        }
        chr->told_open = open;
    }
    if (fe->ops && fe->ops->event) {
        fe->ops->event(fe->opaque, event);
    }
}

void chr_set_connected(Chardev *chr, bool connected)
{
    if (connected) {
        chr_discard(chr); /* a write that raced with the last peer's leaving */
        atomic_store(&chr->connected, true);
        chr_event(chr, CHR_EVENT_OPENED);
    } else {
        atomic_store(&chr->connected, false);
        chr_discard(chr);
        chr_event(chr, CHR_EVENT_CLOSED);
    }
}

static void pump_fn(void *opaque)
{
    Chardev *chr = opaque;
    if (chr->attached && chr->drv->pump) {
        chr->drv->pump(chr);
    }
}

static void writable_fn(void *opaque)
{
    Chardev *chr = opaque;
    ChrFrontend *fe = chr->fe;
    if (chr->attached && fe && fe->ops && fe->ops->writable) {
        fe->ops->writable(fe->opaque);
    }
}

static void disconnect_fn(void *opaque)
{
    Chardev *chr = opaque;
    if (chr->attached && chr->drv->disconnect) {
        chr->drv->disconnect(chr);
    }
}

/* ---- Output ---- */

static void drain_fn(void *opaque)
{
    Chardev *chr = opaque;
    chr->drv->drain(chr);
}

void chr_drained(Chardev *chr)
{
    if (atomic_exchange(&chr->want_writable, false) && chr->loop) {
        event_post(chr->loop, &chr->writable_post);
    }
}

void chr_discard(Chardev *chr)
{
    byte_ring_consume(&chr->out, byte_ring_used(&chr->out));
    chr_drained(chr);
}

size_t chr_submit(Chardev *chr, const uint8_t *buf, size_t len)
{
    bool up = atomic_load(&chr->connected);
    size_t room = chr->log ? MIN(len, chr_log_room(chr->log)) : len;
    size_t n = up ? byte_ring_write(&chr->out, buf, room) : room;

    if (n < len) {
        /* Ask to be told, then try again: it may have been drained in between. */
        atomic_store(&chr->want_writable, true);
        room = chr->log ? MIN(len, chr_log_room(chr->log)) : len;
        if (room > n) {
            n += up ? byte_ring_write(&chr->out, buf + n, room - n) : room - n;
        }
        if (up && !atomic_load(&chr->connected)) {
            n = room; /* the peer left, and what is in the ring with it */
        }
    }
    if (chr->log) {
        chr_log_write(chr->log, buf, n);
    }
    if (up && n) {
        event_post(chr->out_loop, &chr->drain_post);
    }
    return n;
}

size_t chr_fe_write(ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    Chardev *chr = fe->chr;

    if (!chr || !len) {
        return len;
    }
    if (chr->drv->write) {
        return chr->drv->write(chr, fe, buf, len);
    }
    return chr->out_loop ? chr_submit(chr, buf, len) : len;
}

/* The chardev whose ring is behind chr. */
static Chardev *ring_owner(Chardev *chr)
{
    while (chr->drv == &chr_driver_mux) {
        chr = chr_mux_base(chr);
    }
    return chr;
}

/* Moves output along: by ourselves where the loop is ours or nobody's, else by waiting. */
static void help_drain(Chardev *chr)
{
    const struct timespec nap = { .tv_nsec = 1000000 };

    if (chr->out_loop && (event_loop_is_self(chr->out_loop) ||
                          !event_loop_is_running(chr->out_loop))) {
        chr->drv->drain(chr);
    }
    nanosleep(&nap, NULL);
}

size_t chr_fe_write_all(ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    size_t done = chr_fe_write(fe, buf, len);
    int64_t progress = clock_get_ns(CLOCK_TYPE_REALTIME);

    while (done < len) {
        help_drain(ring_owner(fe->chr));
        size_t n = chr_fe_write(fe, buf + done, len - done);
        int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME);
        if (n) {
            progress = now;
        } else if (now - progress > STUCK_NS) {
            break;
        }
        done += n;
    }
    return done;
}

/* ---- Front ends ---- */

bool chr_fe_init(ChrFrontend *fe, Chardev *chr, Error **errp)
{
    *fe = (ChrFrontend){ .chr = chr };
    if (!chr) {
        return true;
    }
    if (chr->drv->claim) {
        if (!chr->drv->claim(chr, fe, errp)) {
            fe->chr = NULL;
            return false;
        }
    } else if (atomic_load(&chr->claimed)) {
        error_setg(errp, "Character device '%s' is in use already; give it mux=on to share it",
                   chr->id);
        fe->chr = NULL;
        return false;
    } else {
        chr->fe = fe;
    }
    atomic_store(&chr->claimed, true);
    return true;
}

static void attach_fn(void *opaque)
{
    Chardev *chr = opaque;

    chr->attached = true;
    if (chr->drv->attach) {
        chr->drv->attach(chr);
    }
    if (atomic_load(&chr->connected)) {
        chr_event(chr, CHR_EVENT_OPENED);
    }
    pump_fn(chr);
}

static void detach_fn(void *opaque)
{
    Chardev *chr = opaque;

    if (chr->attached) {
        if (chr->drv->detach) {
            chr->drv->detach(chr);
        }
        chr->attached = false;
        chr->told_open = false;
    }
}

void chr_fe_set_handlers(ChrFrontend *fe, EventLoop *loop, const ChrFrontendOps *ops, void *opaque)
{
    Chardev *chr = fe->chr;

    fe->ops = ops;
    fe->opaque = opaque;
    fe->loop = loop;
    if (!chr) {
        return;
    }
    if (chr->drv->handlers) {
        chr->drv->handlers(chr, fe);
        return;
    }
    chr_call_sync(chr->loop, detach_fn, chr);
    chr->loop = loop;
    if (!chr->out_fixed) {
        chr->out_loop = loop;
    }
    if (loop) {
        chr_call_sync(loop, attach_fn, chr);
    }
}

void chr_fe_fini(ChrFrontend *fe)
{
    Chardev *chr = fe->chr;

    if (!chr) {
        return;
    }
    if (chr->drv->release) {
        chr->drv->release(chr, fe);
    } else {
        chr_call_sync(chr->loop, detach_fn, chr);
        chr->fe = NULL; /* posts that are still on their way find it detached */
        atomic_store(&chr->claimed, false);
    }
    fe->chr = NULL;
}

void chr_fe_accept_input(ChrFrontend *fe)
{
    Chardev *chr = fe->chr;

    if (!chr || !fe->loop) {
        return;
    }
    if (chr->drv->accept) {
        chr->drv->accept(chr, fe);
    } else if (chr->loop) {
        event_post(chr->loop, &chr->pump_post);
    }
}

void chr_fe_disconnect(ChrFrontend *fe)
{
    if (fe->chr) {
        Chardev *chr = ring_owner(fe->chr);
        if (chr->loop) {
            event_post(chr->loop, &chr->disconnect_post);
        }
    }
}

int chr_fe_take_fds(ChrFrontend *fe, int *fds, int max)
{
    Chardev *chr = fe->chr;
    return chr && chr->drv->take_fds ? chr->drv->take_fds(chr, fds, max) : 0;
}

void chr_fe_set_echo(ChrFrontend *fe, bool echo)
{
    if (fe->chr) {
        Chardev *chr = ring_owner(fe->chr);
        if (chr->drv->set_echo) {
            chr->drv->set_echo(chr, echo);
        }
    }
}

void chr_fe_set_line(ChrFrontend *fe, const ChrLine *line)
{
    Chardev *chr = fe->chr ? ring_owner(fe->chr) : NULL;

    if (chr && chr->drv->set_line) {
        chr->drv->set_line(chr, line);
    }
}

/* ---- Life ---- */

static void nothing(void *opaque)
{
}

/* Is a post of ours on its way? The I/O helper runs until the end and gets to it; the other loops
 * may run no more. */
static bool posts_pending(Chardev *chr)
{
    while (chr->out_fixed && atomic_load(&chr->drain_post.pending)) {
        g_usleep(100);
    }
    if (chr->out_fixed && chr->out_loop) {
        chr_call_sync(chr->out_loop, nothing, NULL); /* what it was in the midst of is done then */
    }
    return atomic_load(&chr->drain_post.pending) || atomic_load(&chr->pump_post.pending) ||
           atomic_load(&chr->writable_post.pending) || atomic_load(&chr->disconnect_post.pending);
}

static void chr_free(Chardev *chr)
{
    chr_call_sync(chr->loop, detach_fn, chr);
    bool pending = posts_pending(chr);
    if (chr->drv->close) {
        chr->drv->close(chr);
    }
    chr_log_free(chr->log);
    if (chr->out.buf) {
        byte_ring_fini(&chr->out);
    }
    if (!pending && !chr->keep) {
        g_free(chr->id);
        g_free(chr);
    } /* else a loop still holds it: the process is about to end */
}

static Chardev *chr_new(const ChardevDriver *drv, const char *id, const ChrOpts *o, Error **errp)
{
    Chardev *chr = g_malloc0(drv->size);
    bool append;

    chr->drv = drv;
    chr->id = g_strdup(id);
    chr_set_filename(chr, "%s", drv->name);
    event_post_init(&chr->drain_post, drain_fn, chr);
    event_post_init(&chr->pump_post, pump_fn, chr);
    event_post_init(&chr->writable_post, writable_fn, chr);
    event_post_init(&chr->disconnect_post, disconnect_fn, chr);
    if (!drv->write) {
        byte_ring_init(&chr->out, CHR_OUT_SIZE);
    }
    if (!drv->open(chr, o, errp)) {
        chr_free(chr);
        return NULL;
    }
    const char *logfile = chr_opt(o, "logfile");
    if (!chr_opt_bool(o, "logappend", false, &append, errp) ||
        (logfile && !(chr->log = chr_log_new(logfile, append, chr, errp)))) {
        chr_free(chr);
        return NULL;
    }
    Chardev **p = &chardevs;
    while (*p) {
        p = &(*p)->next;
    }
    *p = chr;
    return chr;
}

static const ChardevDriver *const drivers[] = {
    &chr_driver_file, &chr_driver_null, &chr_driver_pipe, &chr_driver_pty,
    &chr_driver_ringbuf, &chr_driver_serial, &chr_driver_socket, &chr_driver_stdio, &chr_driver_tty,
    &chr_driver_udp, &chr_driver_mux,
};

void chardev_print_help(void)
{
    puts("Available chardev backend types:");
    for (unsigned i = 0; i < ARRAY_SIZE(drivers); i++) {
        printf("  %s\n", drivers[i]->name);
    }
}

static const ChardevDriver *find_driver(const char *name, Error **errp)
{
    for (unsigned i = 0; i < ARRAY_SIZE(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    error_setg(errp, "'%s' is not a valid char driver name; '-chardev help' lists them", name);
    return NULL;
}

static bool check_keys(const ChardevDriver *drv, const ChrOpts *o, Error **errp)
{
    static const char *const common[] = { "mux", "logfile", "logappend", NULL };

    for (unsigned i = 0; i < o->n; i++) {
        const char *key = o->opt[i].key;
        if (!g_strv_contains(common, key) && !(drv->keys && g_strv_contains(drv->keys, key))) {
            error_setg(errp, "Invalid parameter '%s' for chardev backend '%s'", key, drv->name);
            return false;
        }
    }
    return true;
}

Chardev *chr_create(const ChrOpts *o, Error **errp)
{
    bool mux;

    os_startup_step("making character device '%s'", o->id ? o->id : "");
    if (!o->backend) {
        error_setg(errp, "no backend specified; '-chardev help' lists them");
        return NULL;
    }
    if (!o->id || !*o->id) {
        error_setg(errp, "no id specified; add id=ID");
        return NULL;
    }
    if (chardev_find(o->id)) {
        error_setg(errp, "Duplicate ID '%s' for chardev", o->id);
        return NULL;
    }
    const ChardevDriver *drv = find_driver(o->backend, errp);
    if (!drv || !check_keys(drv, o, errp) || !chr_opt_bool(o, "mux", false, &mux, errp)) {
        return NULL;
    }
    if (!mux || drv == &chr_driver_mux) {
        return chr_new(drv, o->id, o, errp);
    }
    g_autofree char *base_id = g_strdup_printf("%s-base", o->id);
    Chardev *base = chr_new(drv, base_id, o, errp);
    return base ? chardev_new_mux(o->id, base, errp) : NULL;
}

Chardev *chardev_new_mux(const char *id, Chardev *base, Error **errp)
{
    ChrOpts o = { .id = id, .backend = "mux" };
    Chardev *mux = NULL;

    if (chardev_find(id)) {
        error_setg(errp, "Duplicate ID '%s' for chardev", id);
    } else if (chr_opts_add(&o, "chardev", base->id, errp)) {
        mux = chr_new(&chr_driver_mux, id, &o, errp);
    }
    chr_opts_clear(&o);
    return mux;
}

/* The last bytes of a ring that nobody drains any more; bounded by time. */
static void flush_ring(Chardev *chr)
{
    int64_t end = clock_get_ns(CLOCK_TYPE_REALTIME) + STUCK_NS / 4;

    if (chr->drv->write) {
        return;
    }
    while (byte_ring_used(&chr->out) && chr->out_loop && atomic_load(&chr->connected) &&
           clock_get_ns(CLOCK_TYPE_REALTIME) < end) {
        help_drain(chr);
    }
}

void chardev_cleanup(void)
{
    for (Chardev *c = chardevs; c; c = c->next) {
        flush_ring(c);
    }
    /* Multiplexers were made after what they stand on: last first. */
    while (chardevs) {
        Chardev **p = &chardevs;
        while ((*p)->next) {
            p = &(*p)->next;
        }
        Chardev *chr = *p;
        *p = NULL;
        chr_free(chr);
    }
    chr_io_stop();
    chr_tty_restore();
}
