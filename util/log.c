/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The -d log: a bounded ring of messages with many writers, and the thread that empties it. */
#include "qemu/log.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "qemu/file.h"
#include "qemu/thread.h"

/* D. Vyukov's bounded queue: seq says whose turn a slot is. */
typedef struct LogSlot {
    _Atomic uint32_t seq;
    uint32_t len;
    char text[LOG_LINE_MAX + 8];
} LogSlot;

#define LOG_SLOTS 2048 /* a power of two */

_Atomic uint32_t qemu_loglevel;

static struct {
    LogSlot *slots;
    QEMU_ALIGNED(64) _Atomic uint32_t head; /* next slot to write */
    QEMU_ALIGNED(64) uint32_t tail;         /* next slot to read; the log thread's */
    _Atomic uint32_t lost;
    EventWord wake;    /* LOG_WAKE_* */
    EventWord drained; /* set when the ring was seen empty */
    QemuThread thread;
    atomic_bool stuck; /* whoever reads the log takes nothing: waiting for room is no use */
    atomic_bool quit;
    bool running;
    bool told; /* that the file takes nothing */
    int fd;
    char *path; /* of -D; NULL: stderr */
} ring = { .fd = STDERR_FILENO };

enum { LOG_WAKE_DATA = 1, LOG_WAKE_FLUSH = 2, LOG_WAKE_QUIT = 4 };

static const struct {
    uint32_t mask;
    const char *name, *help;
} log_items[] = {
#define I(sym, bit, name, help) { BIT(bit), name, help },
    LOG_ITEM_TABLE(I)
#undef I
};

/* ---- Writers ---- */

/* A slot to fill, or NULL if the ring is full. */
static LogSlot *slot_claim(uint32_t *pos)
{
    uint32_t at = atomic_load_explicit(&ring.head, memory_order_relaxed);

    for (;;) {
        LogSlot *slot = &ring.slots[at % LOG_SLOTS];
        int32_t turn = (int32_t)(atomic_load_explicit(&slot->seq, memory_order_acquire) - at);
        if (turn < 0) {
            return NULL;
        }
        if (turn > 0) {
            at = atomic_load_explicit(&ring.head, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &ring.head, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
            *pos = at;
            return slot;
        }
    }
}

/* Without -realtime a whole trace is worth a wait, but not a hang if the reader's disk does. */
#define CLAIM_WAITS   200
#define CLAIM_WAIT_NS 500000

static LogSlot *slot_claim_patiently(uint32_t *pos)
{
    LogSlot *slot = slot_claim(pos);

    for (int i = 0; !slot && i < CLAIM_WAITS && !qemu_realtime_is_enabled() &&
                    !atomic_load(&ring.stuck); i++) {
        struct timespec pause = { 0, CLAIM_WAIT_NS };
        event_word_set(&ring.wake, LOG_WAKE_DATA);
        nanosleep(&pause, NULL);
        slot = slot_claim(pos);
        if (!slot && i == CLAIM_WAITS - 1) {
            atomic_store(&ring.stuck, true);
        }
    }
    return slot;
}

void qemu_vlog(const char *fmt, va_list ap)
{
    uint32_t pos;

    if (!ring.slots) {
        return;
    }
    LogSlot *slot = slot_claim_patiently(&pos);
    if (!slot) {
        atomic_fetch_add(&ring.lost, 1);
        return;
    }
    int n = vsnprintf(slot->text, LOG_LINE_MAX, fmt, ap);
    if (n >= LOG_LINE_MAX) {
        memcpy(slot->text + LOG_LINE_MAX - 5, "...\n", 4);
        n = LOG_LINE_MAX - 1;
    }
    slot->len = MAX(n, 0);
    atomic_store_explicit(&slot->seq, pos + 1, memory_order_release);
    event_word_set(&ring.wake, LOG_WAKE_DATA);
}

void qemu_log(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    qemu_vlog(fmt, ap);
    va_end(ap);
}

bool log_limit_pass(LogLimit *l)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);

    int64_t second = atomic_load(&l->second);
    if (second != ts.tv_sec && atomic_compare_exchange_strong(&l->second, &second, ts.tv_sec)) {
        uint32_t held_back = atomic_exchange(&l->held_back, 0);
        atomic_store(&l->count, 0);
        if (held_back) {
            qemu_log("(%" PRIu32 " more like the next message were held back)\n", held_back);
        }
    }
    if (atomic_fetch_add(&l->count, 1) < LOG_LIMIT_BURST) {
        return true;
    }
    atomic_fetch_add(&l->held_back, 1);
    return false;
}

/* ---- The log thread ---- */

#define QUIT_WAIT_MS 100

/* True if a write of at most PIPE_BUF bytes will not block; false at the end. */
static bool wait_writable(void)
{
    struct pollfd p = { .fd = ring.fd, .events = POLLOUT };

    for (;;) {
        bool quit = atomic_load(&ring.quit);

        if (poll(&p, 1, quit && atomic_load(&ring.stuck) ? 0 : QUIT_WAIT_MS) > 0) {
            return true;
        }
        if (quit) {
            atomic_store(&ring.stuck, true);
            return false; /* the reader of a pipe that takes nothing does not hold up the end */
        }
    }
}

/* The log is lost, which is worth one line where there is another place for it. */
static void tell_failure(int err)
{
    if (!ring.told && ring.path) {
        ring.told = true;
        error_report("-D %s: cannot write the log: %s; messages are lost until it can be written again",
                     ring.path, err ? g_strerror(err) : "nothing was taken");
    }
}

static void write_all(const char *text, size_t len)
{
    struct stat st;
    bool regular = fstat(ring.fd, &st) == 0 && S_ISREG(st.st_mode);

    while (len) {
        if (!regular && !wait_writable()) {
            return;
        }
        ssize_t n = write(ring.fd, text, regular ? len : MIN(len, PIPE_BUF));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        atomic_store(&ring.stuck, false);
        if (n <= 0) {
            tell_failure(n < 0 ? errno : 0);
            return;
        }
        text += n;
        len -= n;
    }
}

/* Collects messages, so that a burst costs few system calls. */
static void drain(GString *batch)
{
    uint32_t lost = atomic_exchange(&ring.lost, 0);

    for (;;) {
        LogSlot *slot = &ring.slots[ring.tail % LOG_SLOTS];
        if (atomic_load_explicit(&slot->seq, memory_order_acquire) != ring.tail + 1) {
            break;
        }
        g_string_append_len(batch, slot->text, slot->len);
        atomic_store_explicit(&slot->seq, ring.tail + LOG_SLOTS, memory_order_release);
        ring.tail++;
        if (batch->len > 32 * 1024) {
            write_all(batch->str, batch->len);
            g_string_truncate(batch, 0);
        }
    }
    if (lost) {
        g_string_append_printf(batch, "(log: %" PRIu32 " messages lost)\n", lost);
    }
    write_all(batch->str, batch->len);
    g_string_truncate(batch, 0);
}

static void *log_thread(void *arg)
{
    GString *batch = g_string_sized_new(64 * 1024);
    uint32_t bits;

    do {
        event_word_wait(&ring.wake, INT64_MAX);
        bits = event_word_take(&ring.wake);
        drain(batch);
        if (bits & LOG_WAKE_FLUSH) {
            event_word_set(&ring.drained, 1);
        }
    } while (!(bits & LOG_WAKE_QUIT));
    g_string_free(batch, TRUE);
    return NULL;
}

/* ---- Start-up and exit ---- */

bool qemu_log_parse(const char *items, uint32_t *mask, Error **errp)
{
    char **words = g_strsplit(items, ",", -1);
    uint32_t result = 0;

    for (char **w = words; *w; w++) {
        uint32_t bit = 0;
        if (!strcmp(*w, "all")) {
            bit = ~0u;
        }
        for (size_t i = 0; i < ARRAY_SIZE(log_items); i++) {
            if (!strcmp(*w, log_items[i].name)) {
                bit = log_items[i].mask;
            }
        }
        if (!bit && strcmp(*w, "none")) {
            error_setg(errp, "-d %s: unknown item '%s'; '-d help' lists the valid ones", items, *w);
            g_strfreev(words);
            return false;
        }
        result |= bit;
    }
    g_strfreev(words);
    *mask = result;
    return true;
}

void qemu_log_print_help(void)
{
    printf("Log items (comma separated):\n");
    for (size_t i = 0; i < ARRAY_SIZE(log_items); i++) {
        printf("%-15s %s\n", log_items[i].name, log_items[i].help);
    }
    printf("%-15s %s\n%-15s %s\n", "all", "all of them", "none", "none of them");
}

bool qemu_log_open(const char *path, Error **errp)
{
    if (!path) {
        ring.fd = STDERR_FILENO;
        return true;
    }
    const char *mark = strstr(path, "%d");
    char *name =
        mark ? g_strdup_printf("%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2)
             : g_strdup(path);
    struct stat st;
    int fd = startup_file_open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0644);
    if (fd < 0) {
        int err = errno;
        if (err == ENXIO && stat(name, &st) == 0 && S_ISFIFO(st.st_mode)) {
            error_setg(errp, "-D %s: nobody reads this FIFO; start its reader first", name);
        } else {
            error_setg_errno(errp, err, "-D %s: cannot write the file", name);
        }
        g_free(name);
        return false;
    }
    if (ring.fd != STDERR_FILENO) {
        close(ring.fd);
    }
    g_free(ring.path);
    ring.path = name;
    ring.told = false;
    ring.fd = fd;
    return true;
}

static char *later; /* absolute: -daemonize changes the directory */

void qemu_log_open_later(const char *path)
{
    later = g_canonicalize_filename(path, NULL);
}

static bool open_now(Error **errp)
{
    bool ok = !later || qemu_log_open(later, errp);

    if (ok) {
        g_free(later);
        later = NULL;
    }
    return ok;
}

static void ring_make(void)
{
    LogSlot *slots = g_new0(LogSlot, LOG_SLOTS);

    for (uint32_t i = 0; i < LOG_SLOTS; i++) {
        atomic_init(&slots[i].seq, i);
    }
    atomic_store(&ring.head, 0);
    ring.tail = 0;
    ring.slots = slots;
}

bool qemu_log_start(uint32_t mask, Error **errp)
{
    if (mask && !open_now(errp)) {
        return false;
    }
    if (mask && !ring.running) {
        if (!ring.slots) {
            ring_make();
        }
        if (!qemu_thread_create(&ring.thread, "log", THREAD_HELPER, log_thread, NULL, errp)) {
            return false;
        }
        ring.running = true;
    }
    atomic_store(&qemu_loglevel, mask);
    return true;
}

void qemu_log_flush(void)
{
    rtcheck_helper_only(__func__);
    if (ring.running) {
        event_word_take(&ring.drained);
        event_word_set(&ring.wake, LOG_WAKE_FLUSH);
        event_word_wait(&ring.drained, INT64_MAX);
    }
}

void qemu_log_close(void)
{
    atomic_store(&qemu_loglevel, 0);
    if (ring.running) {
        atomic_store(&ring.quit, true);
        event_word_set(&ring.wake, LOG_WAKE_QUIT);
        qemu_thread_join(&ring.thread);
        atomic_store(&ring.quit, false);
        ring.running = false;
    }
    /* The slots stay: a late message of another thread must find memory there. */
    if (ring.fd != STDERR_FILENO) {
        close(ring.fd);
        ring.fd = STDERR_FILENO;
        g_free(ring.path);
        ring.path = NULL;
    }
}
