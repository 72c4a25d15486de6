/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The multiplexer: up to four front ends share one back end; one of them has the keyboard, all of
 * them write. Front ends may live on different loops, so each has a ring for input and events that
 * its own loop empties. The base runs on the control loop where there is one: escapes and the
 * copying of input are nothing a realtime thread should do.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "char-internal.h"
#include "qemu/runstate.h"

#define MUX_PORTS   4
#define PORT_INPUT  4096
#define PORT_EVENTS 64

typedef struct ChrMux ChrMux;

typedef struct MuxPort {
    ChrMux *mux;
    ChrFrontend *fe; /* NULL: free */
    bool attached;   /* has handlers; guarded by the mux's lock */
    bool told_open;  /* the same */
    atomic_bool want_writable;
    ByteRing in, events; /* produced under the mux's lock, consumed on fe->loop */
    EventPost post;
} MuxPort;

struct ChrMux {
    Chardev chr;
    Chardev *base;
    ChrFrontend base_fe;
    QemuMutex lock; /* CHARDEV: focus, ports' states, and who writes to the base */
    MuxPort port[MUX_PORTS];
    int focus; /* -1: nobody yet */
    int first; /* the port that gets the keyboard at first; -1: nobody listens */
    bool open; /* the base has a peer */
    EventPost settle_post;
    bool escape, timestamps, line_start;
    int64_t epoch_ns;
};

static uint8_t escape_char = 1;

void chardev_mux_set_escape(uint8_t c)
{
    escape_char = c;
}

Chardev *chr_mux_base(Chardev *mux)
{
    return container_of(mux, ChrMux, chr)->base;
}

/* ---- To the front ends ---- */

static void port_event_locked(MuxPort *p, ChrEvent event)
{
    uint8_t e = (uint8_t)event;

    if (!p->attached) {
        return;
    }
    if (event == CHR_EVENT_OPENED || event == CHR_EVENT_CLOSED) {
        if (p->told_open == (event == CHR_EVENT_OPENED)) {
            return;
        }
        p->told_open = event == CHR_EVENT_OPENED;
    }
    byte_ring_write(&p->events, &e, 1);
    event_post(p->fe->loop, &p->post);
}

/* Gives port i the keyboard; the first time that is when it learns that the line is open. */
static void set_focus_locked(ChrMux *m, int i)
{
    int old = m->focus;

    m->focus = i;
    if (old != i && old >= 0) {
        port_event_locked(&m->port[old], CHR_EVENT_MUX_OUT);
    }
    if (i < 0) {
        return;
    }
    if (!m->port[i].told_open) {
        if (m->open) {
            port_event_locked(&m->port[i], CHR_EVENT_OPENED);
        }
    } else if (old != i) {
        port_event_locked(&m->port[i], CHR_EVENT_MUX_IN);
    }
}

/* On fe's loop: what waits for it. */
static void port_run(void *opaque)
{
    MuxPort *p = opaque;
    ChrFrontend *fe = p->fe;
    uint8_t buf[256], e;

    if (!p->attached || !fe || !fe->ops) {
        return;
    }
    const ChrFrontendOps *ops = fe->ops;
    while (byte_ring_read(&p->events, &e, 1)) {
        if (ops->event) {
            ops->event(fe->opaque, e);
        }
    }
    while (byte_ring_used(&p->in)) {
        size_t room = ops->can_read ? ops->can_read(fe->opaque) : sizeof(buf);
        size_t n = byte_ring_read(&p->in, buf, MIN(room, sizeof(buf)));
        if (!n) {
            break;
        }
        if (ops->read) {
            ops->read(fe->opaque, buf, n);
        }
        chr_fe_accept_input(&p->mux->base_fe); /* the ring has room again */
    }
    if (atomic_exchange(&p->want_writable, false) && ops->writable) {
        ops->writable(fe->opaque);
    }
}

/* ---- From the base, on its loop ---- */

static size_t mux_can_read(void *opaque)
{
    ChrMux *m = opaque;
    QEMU_LOCK_GUARD(&m->lock);
    return m->focus >= 0 ? byte_ring_room(&m->port[m->focus].in) : PORT_INPUT;
}

static void mux_print(ChrMux *m, const char *s)
{
    QEMU_LOCK_GUARD(&m->lock);
    chr_fe_write(&m->base_fe, (const uint8_t *)s, strlen(s));
}

static void print_help(ChrMux *m)
{
    char key[16], text[600];

    if (escape_char >= 1 && escape_char < 27) {
        snprintf(key, sizeof(key), "C-%c", escape_char - 1 + 'a');
    } else {
        snprintf(key, sizeof(key), "0x%02x", escape_char);
    }
    snprintf(text, sizeof(text),
             "\n\r%s h    print this help\n\r"
             "%s x    exit emulator\n\r"
             "%s s    save disk data back to file (if -snapshot)\n\r"
             "%s t    toggle console timestamps\n\r"
             "%s b    send break (magic sysrq)\n\r"
             "%s c    switch between console and monitor\n\r"
             "%s %s  sends %s\n\r",
             key, key, key, key, key, key, key, key, key);
    mux_print(m, text);
}

static void next_focus(ChrMux *m)
{
    QEMU_LOCK_GUARD(&m->lock);
    for (int i = 1; i <= MUX_PORTS; i++) {
        int k = (MAX(m->focus, 0) + i) % MUX_PORTS;
        if (m->port[k].attached && m->port[k].fe->ops) {
            set_focus_locked(m, k);
            return;
        }
    }
}

static void to_focus(ChrMux *m, uint8_t b)
{
    QEMU_LOCK_GUARD(&m->lock);
    if (m->focus >= 0) {
        MuxPort *p = &m->port[m->focus];
        byte_ring_write(&p->in, &b, 1);
        event_post(p->fe->loop, &p->post);
    }
}

static void command(ChrMux *m, uint8_t b)
{
    switch (b) {
    case 'h':
    case '?':
        print_help(m);
        break;
    case 'x':
        mux_print(m, "QEMU: Terminated\n\r");
        qemu_system_exit_request(0);
        break;
    case 'b': {
        QEMU_LOCK_GUARD(&m->lock);
        if (m->focus >= 0) {
            port_event_locked(&m->port[m->focus], CHR_EVENT_BREAK);
        }
        break;
    }
    case 'c':
        next_focus(m);
        break;
    case 's': /* disks are written through: there is nothing to save */
        break;
    case 't': {
        QEMU_LOCK_GUARD(&m->lock);
        m->timestamps = !m->timestamps;
        m->epoch_ns = clock_get_ns(CLOCK_TYPE_REALTIME);
        m->line_start = false;
        break;
    }
    default:
        if (b == escape_char) {
            to_focus(m, b);
        }
        break;
    }
}

static void mux_read(void *opaque, const uint8_t *buf, size_t len)
{
    ChrMux *m = opaque;

    for (size_t i = 0; i < len; i++) {
        if (m->escape) {
            m->escape = false;
            command(m, buf[i]);
        } else if (buf[i] == escape_char) {
            m->escape = true;
        } else {
            to_focus(m, buf[i]);
        }
    }
}

static void mux_event(void *opaque, ChrEvent event)
{
    ChrMux *m = opaque;
    QEMU_LOCK_GUARD(&m->lock);

    switch (event) {
    case CHR_EVENT_OPENED:
        m->open = true;
        m->escape = false;
        if (m->focus >= 0) {
            port_event_locked(&m->port[m->focus], CHR_EVENT_OPENED);
        }
        break;
    case CHR_EVENT_CLOSED:
        m->open = false;
        for (int i = 0; i < MUX_PORTS; i++) {
            port_event_locked(&m->port[i], CHR_EVENT_CLOSED);
        }
        break;
    default:
        if (m->focus >= 0) {
            port_event_locked(&m->port[m->focus], event);
        }
        break;
    }
}

static void mux_writable(void *opaque)
{
    ChrMux *m = opaque;
    QEMU_LOCK_GUARD(&m->lock);
    for (int i = 0; i < MUX_PORTS; i++) {
        if (m->port[i].attached && atomic_load(&m->port[i].want_writable)) {
            event_post(m->port[i].fe->loop, &m->port[i].post);
        }
    }
}

static const ChrFrontendOps mux_base_ops = {
    .can_read = mux_can_read,
    .read = mux_read,
    .event = mux_event,
    .writable = mux_writable,
};

/* First run of the base's loop after front ends came: the first of them gets the keyboard. */
static void mux_settle(void *opaque)
{
    ChrMux *m = opaque;
    QEMU_LOCK_GUARD(&m->lock);
    if (m->focus < 0 && m->first >= 0 && m->port[m->first].attached) {
        set_focus_locked(m, m->first);
    }
}

/* ---- Output ---- */

/* A stamp at the start of each line; it is left out where the ring is full. */
static size_t write_stamped(ChrMux *m, const uint8_t *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        const uint8_t *nl = memchr(buf + done, '\n', len - done);
        size_t part = nl ? (size_t)(nl - buf) + 1 - done : len - done;
        if (m->line_start) {
            char stamp[32];
            int64_t ms = (clock_get_ns(CLOCK_TYPE_REALTIME) - m->epoch_ns) / 1000000;
            int n = snprintf(stamp, sizeof(stamp), "[%02d:%02d:%02d.%03d] ", (int)(ms / 3600000),
                             (int)(ms / 60000 % 60), (int)(ms / 1000 % 60), (int)(ms % 1000));
            chr_fe_write(&m->base_fe, (const uint8_t *)stamp, (size_t)n);
            m->line_start = false;
        }
        size_t n = chr_fe_write(&m->base_fe, buf + done, part);
        done += n;
        if (n < part) {
            break;
        }
        m->line_start = nl != NULL;
    }
    return done;
}

static size_t mux_write(Chardev *chr, ChrFrontend *fe, const uint8_t *buf, size_t len)
{
    ChrMux *m = container_of(chr, ChrMux, chr);
    MuxPort *p = &m->port[fe->tag];
    QEMU_LOCK_GUARD(&m->lock);
    size_t n = m->timestamps ? write_stamped(m, buf, len) : chr_fe_write(&m->base_fe, buf, len);

    if (n < len) {
        atomic_store(&p->want_writable, true);
        if (m->base->drv->write == NULL && byte_ring_room(&m->base->out) && p->attached) {
            event_post(fe->loop, &p->post); /* it was drained before we asked to be told */
        }
    }
    return n;
}

/* ---- Front ends come and go ---- */

static bool mux_claim(Chardev *chr, ChrFrontend *fe, Error **errp)
{
    ChrMux *m = container_of(chr, ChrMux, chr);

    for (unsigned i = 0; i < MUX_PORTS; i++) {
        if (!m->port[i].fe) {
            m->port[i].fe = fe;
            fe->tag = i;
            return true;
        }
    }
    error_setg(errp, "Multiplexer '%s' has %d front ends already and takes no more", chr->id,
               MUX_PORTS);
    return false;
}

static void mux_handlers(Chardev *chr, ChrFrontend *fe)
{
    ChrMux *m = container_of(chr, ChrMux, chr);
    MuxPort *p = &m->port[fe->tag];

    qemu_mutex_lock(&m->lock);
    p->attached = fe->loop != NULL;
    if (fe->ops && m->first < 0) {
        m->first = (int)fe->tag; /* one that only writes needs no keyboard */
    }
    qemu_mutex_unlock(&m->lock);
    if (!fe->loop) {
        return;
    }
    EventLoop *loop = event_loop_control() ? event_loop_control() : fe->loop;
    if (!m->base_fe.loop) {
        chr_fe_set_handlers(&m->base_fe, loop, &mux_base_ops, m);
    }
    event_post(m->base_fe.loop, &m->settle_post);
}

typedef struct Release {
    ChrMux *m;
    MuxPort *p;
} Release;

static void release_fn(void *opaque)
{
    Release *r = opaque;
    QEMU_LOCK_GUARD(&r->m->lock);

    r->p->attached = r->p->told_open = false;
    byte_ring_consume(&r->p->in, byte_ring_used(&r->p->in));
    byte_ring_consume(&r->p->events, byte_ring_used(&r->p->events));
    if (r->m->first == (int)r->p->fe->tag) {
        r->m->first = -1;
    }
    if (r->m->focus == (int)r->p->fe->tag) {
        r->m->focus = -1;
        for (int i = 0; i < MUX_PORTS; i++) {
            if (r->m->port[i].attached && r->m->port[i].fe->ops) {
                set_focus_locked(r->m, i);
                break;
            }
        }
    }
    r->p->fe = NULL;
}

static void mux_release(Chardev *chr, ChrFrontend *fe)
{
    ChrMux *m = container_of(chr, ChrMux, chr);
    Release r = { .m = m, .p = &m->port[fe->tag] };
    bool any = false;

    chr_call_sync(fe->loop, release_fn, &r);
    for (int i = 0; i < MUX_PORTS; i++) {
        any |= m->port[i].fe != NULL;
    }
    atomic_store(&chr->claimed, any);
}

static void mux_accept(Chardev *chr, ChrFrontend *fe)
{
    ChrMux *m = container_of(chr, ChrMux, chr);
    event_post(fe->loop, &m->port[fe->tag].post);
}

/* ---- Life ---- */

static bool mux_open(Chardev *chr, const ChrOpts *o, Error **errp)
{
    ChrMux *m = container_of(chr, ChrMux, chr);
    const char *id = chr_opt(o, "chardev");

    m->focus = m->first = -1;
    m->base = id ? chardev_find(id) : NULL;
    if (!id) {
        error_setg(errp, "no chardev given; add chardev=ID");
        return false;
    }
    if (!m->base) {
        error_setg(errp, "mux: base chardev '%s' not found", id);
        return false;
    }
    if (m->base->drv == &chr_driver_mux || !chr_fe_init(&m->base_fe, m->base, errp)) {
        if (m->base->drv == &chr_driver_mux) {
            error_setg(errp, "mux: '%s' is a multiplexer already", id);
        }
        m->base = NULL;
        return false;
    }
    qemu_mutex_init(&m->lock, LOCK_RANK_CHARDEV, "mux");
    event_post_init(&m->settle_post, mux_settle, m);
    for (int i = 0; i < MUX_PORTS; i++) {
        MuxPort *p = &m->port[i];
        p->mux = m;
        byte_ring_init(&p->in, PORT_INPUT);
        byte_ring_init(&p->events, PORT_EVENTS);
        event_post_init(&p->post, port_run, p);
    }
    return true;
}

static void mux_close(Chardev *chr)
{
    ChrMux *m = container_of(chr, ChrMux, chr);

    if (!m->base) {
        return;
    }
    chr_fe_fini(&m->base_fe);
    chr->keep = atomic_load(&m->settle_post.pending);
    for (int i = 0; i < MUX_PORTS; i++) {
        chr->keep |= atomic_load(&m->port[i].post.pending);
        m->port[i].attached = false;
        byte_ring_fini(&m->port[i].in);
        byte_ring_fini(&m->port[i].events);
    }
    qemu_mutex_destroy(&m->lock);
}

const ChardevDriver chr_driver_mux = {
    .name = "mux",
    .keys = (const char *const[]){ "chardev", NULL },
    .size = sizeof(ChrMux),
    .open = mux_open,
    .close = mux_close,
    .write = mux_write,
    .claim = mux_claim,
    .release = mux_release,
    .handlers = mux_handlers,
    .accept = mux_accept,
};
