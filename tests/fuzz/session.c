/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions: QMP, HMP and qtest, fed with bytes in pieces as a socket would give them. */
#include "chardev/char-internal.h"
#include "fuzz.h"
#include "monitor/monitor.h"
#include "monitor/qtest.h"
#include "qemu/error.h"

/* A piece at a time; the first byte says how long they are. */
static void feed(struct Chardev *chr, FuzzIn *in)
{
    size_t piece = fuzz_take(in, 1) + 1;

    chr_event(chr, CHR_EVENT_OPENED);
    while (in->left) {
        size_t n = MIN(piece, in->left);

        fuzz_chr_in(chr, in->p, n);
        in->p += n;
        in->left -= n;
        fuzz_machine_settle();
    }
    chr_event(chr, CHR_EVENT_CLOSED);
    fuzz_machine_settle();
}

/* Commands that name files make them where we are, or not at all. */
static bool names_a_path(const uint8_t *data, size_t size)
{
    g_autofree char *low = g_ascii_strdown((const char *)data, (gssize)size);

    return memchr(data, '/', size) || g_strstr_len(low, (gssize)size, "u002f") ||
           g_strstr_len(low, (gssize)size, "socket");
}

static struct Chardev *chr;

static void qmp_init(const FuzzTarget *t)
{
    fuzz_machine_init(false);
    chr = fuzz_chr_new("qmp");
    monitor_new_qmp(chr, false, &error_abort);
}

/* A client that negotiated first, if the input says so. */
static void qmp_run(const uint8_t *data, size_t size)
{
    static const char first[] = "{\"execute\":\"qmp_capabilities\"}\n";
    g_autoptr(GByteArray) all = g_byte_array_new();
    FuzzIn in;

    if (!size || names_a_path(data, size)) {
        return;
    }
    fuzz_machine_reset();
    g_byte_array_append(all, data, 1);
    if (!(data[0] & 1)) {
        g_byte_array_append(all, (const guint8 *)first, sizeof(first) - 1);
    }
    g_byte_array_append(all, data + 1, (guint)size - 1);
    in = (FuzzIn){ all->data, all->len };
    feed(chr, &in);
}

static void hmp_init(const FuzzTarget *t)
{
    fuzz_machine_init(false);
    chr = fuzz_chr_new("hmp");
    monitor_new_hmp(chr, &error_abort);
}

static void hmp_run(const uint8_t *data, size_t size)
{
    FuzzIn in = { data, size };

    fuzz_machine_reset();
    feed(chr, &in);
}

/* ---- qtest ---- */

static void qtest_init(const FuzzTarget *t)
{
    fuzz_machine_init(false);
    chr = fuzz_chr_new("qtest");
    qtest_server_start(chr, "none", &error_abort);
}

/* A client may ask for years of virtual time and megabytes of text; that it takes long is no news. */
static void qtest_run(const uint8_t *data, size_t size)
{
    FuzzIn in = { data, size };
    uint8_t piece = (uint8_t)fuzz_take(&in, 1);
    g_autofree char *text = fuzz_text(&in);
    g_auto(GStrv) lines = g_strsplit(text, "\n", 256);
    g_autoptr(GString) out = g_string_new(NULL);

    g_string_append_c(out, (char)piece);
    for (char **l = lines; *l; l++) {
        g_auto(GStrv) words = g_strsplit(*l, " ", 0);
        unsigned n = 0;

        for (char **w = words; *w; w++) {
            n += **w != 0;
            g_string_append_printf(out, "%s%.*s", w == words ? "" : " ",
                                   strstr(words[0], "clock") ? 7 : n == 3 ? 6 : 400, *w);
        }
        g_string_append_c(out, '\n');
    }
    in = (FuzzIn){ (const uint8_t *)out->str, out->len };
    fuzz_machine_reset();
    feed(chr, &in);
}

const FuzzTarget fuzz_monitors[] = {
    { "qmp", qmp_init, qmp_run },
    { "hmp", hmp_init, hmp_run },
    { "qtest", qtest_init, qtest_run },
    {},
};
