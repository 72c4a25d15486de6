/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP sessions: a prompt with a line editor (cursor keys, history, Ctrl-A E K U W D L, Tab), and
 * the look-up of commands.
 */
#include <string.h>
#include "event/event.h"
#include "monitor/internal.h"
#include "qemu/version.h"

#define PROMPT   "(qemu) "
#define STR_(x)  #x
#define STR(x)   STR_(x)
#define COMPAT   STR(QEMU_COMPAT_MAJOR) "." STR(QEMU_COMPAT_MINOR) "." STR(QEMU_COMPAT_MICRO)

enum { ESC_NONE, ESC_ESC, ESC_CSI, ESC_CSI_NUM };

int monitor_cpu_index(const Monitor *mon)
{
    return mon->cpu_index;
}

void monitor_set_cpu_index(Monitor *mon, int index)
{
    mon->cpu_index = index;
}

/* Terminals want CR LF. */
void monitor_puts(Monitor *mon, const char *str)
{
    for (const char *nl; (nl = strchr(str, '\n')); str = nl + 1) {
        g_byte_array_append(mon->out, (const uint8_t *)str, nl - str);
        g_byte_array_append(mon->out, (const uint8_t *)"\r\n", 2);
    }
    monitor_write(mon, str, strlen(str));
}

void monitor_printf(Monitor *mon, const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    monitor_puts(mon, s);
    g_free(s);
}

/* Shows prompt and line again and puts the terminal's cursor where ours is. */
static void redraw(Monitor *mon)
{
    monitor_printf(mon, "\r" PROMPT "%s\033[K", mon->line->str);
    if (mon->cursor < mon->line->len) {
        monitor_printf(mon, "\033[%uD", (unsigned)(mon->line->len - mon->cursor));
    }
}

static void set_line(Monitor *mon, const char *s)
{
    g_string_assign(mon->line, s);
    mon->cursor = mon->line->len;
    redraw(mon);
}

static void history_add(Monitor *mon, const char *s)
{
    const char *last = g_queue_peek_head(&mon->history);

    if (last && strcmp(last, s) == 0) {
        return;
    }
    g_queue_push_head(&mon->history, g_strdup(s));
    if (g_queue_get_length(&mon->history) > HMP_HISTORY) {
        g_free(g_queue_pop_tail(&mon->history));
    }
}

static void history_move(Monitor *mon, int by)
{
    int pos = mon->history_pos + by;

    if (pos < -1 || pos >= (int)g_queue_get_length(&mon->history)) {
        return;
    }
    mon->history_pos = pos;
    set_line(mon, pos < 0 ? "" : g_queue_peek_nth(&mon->history, pos));
}

/* ---- Commands ---- */

/* The longest command whose words the line begins with. */
static const HmpCommand *find_command(const char *line, const char **args)
{
    const HmpCommand *best = NULL;
    size_t best_len = 0;

    for (const HmpCommand *c = hmp_commands; c->name; c++) {
        size_t n = strlen(c->name);

        if (n > best_len && strncmp(line, c->name, n) == 0 && strchr(" /", line[n])) {
            best = c;
            best_len = n;
        }
    }
    if (best) {
        *args = line + best_len;
        while (**args == ' ') {
            (*args)++;
        }
    }
    return best;
}

static void show_report(void *opaque, const char *text)
{
    monitor_printf(opaque, "%s\n", text);
}

void hmp_execute(Monitor *mon, const char *line)
{
    const HmpCommand *c;
    const char *args;
    char *copy = g_strstrip(g_strdup(line));

    if (*copy && *copy != '#') {
        c = find_command(copy, &args);
        if (c) {
            error_report_to(show_report, mon); /* warnings of what the command does */
            c->fn(mon, args);
            error_report_to(NULL, NULL);
        } else {
            hmp_unknown(mon, copy, "help");
        }
    }
    g_free(copy);
}

/* Tab: completes if one command fits, else lists those that do. */
static void complete(Monitor *mon)
{
    const HmpCommand *only = NULL;
    unsigned n = 0;

    for (const HmpCommand *c = hmp_commands; c->name; c++) {
        if (g_str_has_prefix(c->name, mon->line->str)) {
            only = c;
            n++;
        }
    }
    if (n == 1) {
        char *s = g_strconcat(only->name, " ", NULL);

        set_line(mon, s);
        g_free(s);
        return;
    }
    monitor_puts(mon, "\n");
    for (const HmpCommand *c = hmp_commands; n && c->name; c++) {
        if (g_str_has_prefix(c->name, mon->line->str)) {
            monitor_printf(mon, "%s\n", c->name);
        }
    }
    redraw(mon);
}

/* ---- Line editor ---- */

static void enter(Monitor *mon)
{
    char *line = g_strdup(mon->line->str);

    monitor_puts(mon, "\n");
    if (*line) {
        history_add(mon, line);
    }
    g_string_truncate(mon->line, 0);
    mon->cursor = 0;
    mon->history_pos = -1;
    hmp_execute(mon, line);
    g_free(line);
    monitor_puts(mon, PROMPT);
}

static void erase(Monitor *mon, size_t from, size_t to)
{
    g_string_erase(mon->line, from, to - from);
    mon->cursor = from;
    redraw(mon);
}

static void erase_word(Monitor *mon)
{
    size_t n = mon->cursor;

    while (n && mon->line->str[n - 1] == ' ') {
        n--;
    }
    while (n && mon->line->str[n - 1] != ' ') {
        n--;
    }
    erase(mon, n, mon->cursor);
}

static void move(Monitor *mon, size_t to)
{
    if (to <= mon->line->len) {
        mon->cursor = to;
        redraw(mon);
    }
}

static void insert(Monitor *mon, char ch)
{
    if (mon->line->len >= HMP_LINE_MAX) {
        return;
    }
    g_string_insert_c(mon->line, mon->cursor++, ch);
    if (mon->cursor == mon->line->len) {
        monitor_write(mon, &ch, 1);
    } else {
        redraw(mon);
    }
}

static void csi(Monitor *mon, char ch)
{
    switch (ch) {
    case 'A':
        history_move(mon, 1);
        break;
    case 'B':
        history_move(mon, -1);
        break;
    case 'C':
        move(mon, mon->cursor + 1);
        break;
    case 'D':
        move(mon, mon->cursor - (mon->cursor > 0));
        break;
    case 'H':
        move(mon, 0);
        break;
    case 'F':
        move(mon, mon->line->len);
        break;
    }
}

/* True if ch was part of an escape sequence. */
static bool escape(Monitor *mon, char ch)
{
    switch (mon->esc_state) {
    case ESC_ESC:
        mon->esc_state = ch == '[' || ch == 'O' ? ESC_CSI : ESC_NONE;
        return true;
    case ESC_CSI:
    case ESC_CSI_NUM:
        if (ch >= '0' && ch <= '9') {
            mon->esc_state = ESC_CSI_NUM;
            return true;
        }
        mon->esc_state = ESC_NONE;
        csi(mon, ch);
        return true;
    default:
        if (ch == 27) {
            mon->esc_state = ESC_ESC;
            return true;
        }
        return false;
    }
}

static void key(Monitor *mon, char ch)
{
    if (escape(mon, ch)) {
        return;
    }
    switch (ch) {
    case '\r':
    case '\n':
        enter(mon);
        break;
    case 8:
    case 127:
        if (mon->cursor) {
            erase(mon, mon->cursor - 1, mon->cursor);
        }
        break;
    case '\t':
        complete(mon);
        break;
    case 1: /* Ctrl-A */
        move(mon, 0);
        break;
    case 4: /* Ctrl-D */
        if (mon->cursor < mon->line->len) {
            erase(mon, mon->cursor, mon->cursor + 1);
        }
        break;
    case 5: /* Ctrl-E */
        move(mon, mon->line->len);
        break;
    case 11: /* Ctrl-K */
        erase(mon, mon->cursor, mon->line->len);
        break;
    case 12: /* Ctrl-L */
        redraw(mon);
        break;
    case 21: /* Ctrl-U */
        erase(mon, 0, mon->cursor);
        break;
    case 23: /* Ctrl-W */
        erase_word(mon);
        break;
    default:
        if ((unsigned char)ch >= ' ') {
            insert(mon, ch);
        }
    }
}

static size_t hmp_can_read(void *opaque)
{
    return monitor_can_take(opaque) ? 256 : 0;
}

static void hmp_read(void *opaque, const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        key(opaque, (char)buf[i]);
    }
}

static void hmp_event(void *opaque, ChrEvent event)
{
    Monitor *mon = opaque;

    switch (event) {
    case CHR_EVENT_OPENED:
        mon->open = true;
        g_string_truncate(mon->line, 0);
        mon->cursor = 0;
        mon->esc_state = ESC_NONE;
        mon->history_pos = -1;
        monitor_drop_output(mon);
        monitor_puts(mon, "QEMU " COMPAT " monitor (qemu-rt " QEMU_VERSION
                          ") - type 'help' for more information\n" PROMPT);
        break;
    case CHR_EVENT_CLOSED:
        mon->open = false;
        monitor_drop_output(mon);
        break;
    case CHR_EVENT_MUX_IN:
        monitor_puts(mon, "\n");
        redraw(mon);
        break;
    default:
        break;
    }
}

static const ChrFrontendOps hmp_ops = {
    .can_read = hmp_can_read,
    .read = hmp_read,
    .event = hmp_event,
    .writable = monitor_flush,
    .drop_unread = true,
    .owes = monitor_owes,
};

bool monitor_new_hmp(Chardev *chr, Error **errp)
{
    Monitor *mon = monitor_new(chr, &hmp_ops, errp);

    if (!mon) {
        return false;
    }
    chr_fe_set_handlers(&mon->fe, event_loop_control(), &hmp_ops, mon);
    return true;
}
