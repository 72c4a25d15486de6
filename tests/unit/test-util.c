/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers, sizes, UUIDs, errors, the byte ring. */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "qemu/cutils.h"
#include "qemu/error.h"
#include "qemu/ring.h"
#include "qemu/thread.h"

static void test_integers(void)
{
    static const struct {
        const char *text;
        int base, result;
        uint64_t value;
    } cases[] = {
        { "0", 10, 0, 0 },
        { "007", 0, 0, 7 },
        { "0x1f", 0, 0, 31 },
        { "1F", 16, 0, 31 },
        { "18446744073709551615", 10, 0, UINT64_MAX },
        { "18446744073709551616", 10, -ERANGE, 0 },
        { "0x10", 10, -EINVAL, 0 },
        { "", 10, -EINVAL, 0 },
        { "0x", 0, -EINVAL, 0 },
        { "+1", 10, -EINVAL, 0 },
        { "-1", 10, -EINVAL, 0 },
        { " 1", 10, -EINVAL, 0 },
        { "1 ", 10, -EINVAL, 0 },
        { "1e1", 10, -EINVAL, 0 },
        { "99999999999999999999x", 10, -EINVAL, 0 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = 42;
        g_assert_cmpint(qemu_parse_u64(cases[i].text, cases[i].base, &v), ==, cases[i].result);
        g_assert_cmpuint(v, ==, cases[i].result ? 42 : cases[i].value);
    }
    int64_t s = 0;
    uint32_t w = 0;
    g_assert_cmpint(qemu_parse_i64("-9223372036854775808", 10, &s), ==, 0);
    g_assert_true(s == INT64_MIN);
    g_assert_cmpint(qemu_parse_i64("9223372036854775808", 10, &s), ==, -ERANGE);
    g_assert_cmpint(qemu_parse_i64("--1", 10, &s), ==, -EINVAL);
    g_assert_cmpint(qemu_parse_u32("4294967295", 10, &w), ==, 0);
    g_assert_cmpint(qemu_parse_u32("4294967296", 10, &w), ==, -ERANGE);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        char suffix;
        int result;
        uint64_t value;
    } cases[] = {
        { "512", 'M', 0, 512 * MiB },   { "512M", 'B', 0, 512 * MiB },
        { "1.5G", 'M', 0, 3 * GiB / 2 }, { "1.5", 'K', 0, 1536 },
        { "0.25k", 'B', 0, 256 },       { "0x1000", 'B', 0, 4096 },
        { "10b", 'M', 0, 10 },          { "15E", 'B', 0, 15ull << 60 },
        { "0", 'M', 0, 0 },             { "1.0", 'B', 0, 1 },
        { "0.1T", 'B', 0, 109951162777ull },
        { "15.999999999999999999E", 'B', 0, 18446744073709551614ull },
        { "16E", 'B', -ERANGE, 0 },     { "18446744073709551616", 'B', -ERANGE, 0 },
        { "17592186044416", 'M', -ERANGE, 0 },
        { "", 'M', -EINVAL, 0 },        { "M", 'M', -EINVAL, 0 },
        { "1.5", 'B', -EINVAL, 0 },     { "1.", 'M', -EINVAL, 0 },
        { ".5G", 'M', -EINVAL, 0 },     { "5x", 'M', -EINVAL, 0 },
        { "5MM", 'M', -EINVAL, 0 },     { "5MB", 'M', -EINVAL, 0 },
        { "-5", 'M', -EINVAL, 0 },      { "0x10M", 'M', -EINVAL, 0 },
        { "1e3", 'M', -EINVAL, 0 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = 42;
        int r = qemu_parse_size(cases[i].text, cases[i].suffix, &v);
        if (r != cases[i].result || v != (r ? 42 : cases[i].value)) {
            g_error("size '%s': %d, %" G_GUINT64_FORMAT, cases[i].text, r, v);
        }
    }
    char buf[24];
    g_assert_cmpstr(qemu_format_size(3 * GiB / 2, buf, sizeof(buf)), ==, "1.5 GiB");
    g_assert_cmpstr(qemu_format_size(0, buf, sizeof(buf)), ==, "0 B");
    g_assert_cmpstr(qemu_format_size(UINT64_MAX, buf, sizeof(buf)), ==, "16 EiB");
}

static void test_uuid(void)
{
    uint8_t u[16] = { 0 };
    char text[37];
    g_assert_true(qemu_uuid_parse("638e1b4e-6158-44F8-b5cd-a898f8748d9f", u));
    g_assert_cmpuint(u[0], ==, 0x63);
    g_assert_cmpuint(u[15], ==, 0x9f);
    qemu_uuid_format(u, text);
    g_assert_cmpstr(text, ==, "638e1b4e-6158-44f8-b5cd-a898f8748d9f");
    g_assert_false(qemu_uuid_parse("638e1b4e-6158-44f8-b5cd-a898f8748d9", u));
    g_assert_false(qemu_uuid_parse("638e1b4e-6158-44f8-b5cd-a898f8748d9g", u));
    g_assert_false(qemu_uuid_parse("638e1b4e+6158-44f8-b5cd-a898f8748d9f", u));
    g_assert_false(qemu_uuid_parse("638e1b4e6158-44f8-b5cd-a898f8748d9ff", u));
    g_assert_false(qemu_uuid_parse("", u));
}

static void test_error(void)
{
    Error *err = NULL, *other = NULL;
    error_setg(NULL, "nobody sees this");
    error_setg_errno(&err, ENOENT, "cannot open '%s'", "x");
    g_assert_cmpstr(error_get_pretty(err), ==, "cannot open 'x': No such file or directory");
    g_assert_cmpint(error_get_class(err), ==, ERROR_CLASS_GENERIC_ERROR);
    error_prepend(&err, "%s: ", "disk");
    g_assert_cmpstr(error_get_pretty(err), ==, "disk: cannot open 'x': No such file or directory");
    error_propagate(&other, err);
    g_assert_true(other == err);
    Error *late = NULL;
    error_set(&late, ERROR_CLASS_DEVICE_NOT_FOUND, "late");
    g_assert_cmpint(error_get_class(late), ==, ERROR_CLASS_DEVICE_NOT_FOUND);
    error_propagate(&other, late); /* freed: the first one stays */
    g_assert_true(other == err);
    error_propagate(&other, NULL);
    Error *copy = error_copy(other);
    error_free(other);
    g_assert_nonnull(strstr(error_get_pretty(copy), "cannot open"));
    error_free(copy);
}

static void test_error_report(void)
{
    if (g_test_subprocess()) {
        Error *err = NULL;
        error_set_progname("/usr/bin/emu");
        error_loc_push("-smp", "0");
        error_report("too small");
        error_loc_pop();
        error_set_guest_name("g1");
        warn_report("careful");
        error_set_timestamps(true);
        info_report("now");
        error_setg(&err, "with hint");
        error_append_hint(&err, "try this");
        error_report_err(err);
        error_setg(&error_fatal, "the end");
        return; /* not reached: the parent wants status 1 */
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*emu: -smp 0: too small\ng1 emu: warning: careful\n"
                              "20*T*:*:*.*Z g1 emu: info: now\n"
                              "*emu: with hint\ntry this\n*emu: the end\n");
}

static void test_ring(void)
{
    ByteRing r;
    uint8_t out[64];
    size_t n;
    byte_ring_init(&r, 20);
    g_assert_cmpuint(r.size, ==, 32);
    byte_ring_peek(&r, &n);
    g_assert_cmpuint(n, ==, 0);
    g_assert_cmpuint(byte_ring_write(&r, "0123456789abcdefghij", 20), ==, 20);
    g_assert_cmpuint(byte_ring_read(&r, out, 15), ==, 15);
    g_assert_cmpuint(byte_ring_room(&r), ==, 27);
    g_assert_false(byte_ring_write_all(&r, out, 28));
    g_assert_cmpuint(byte_ring_write(&r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123", 30), ==, 27);
    g_assert_cmpuint(byte_ring_used(&r), ==, 32);
    const uint8_t *p = byte_ring_peek(&r, &n);
    g_assert_cmpuint(n, ==, 17); /* up to the end of the buffer */
    g_assert_cmpint(memcmp(p, "fghijABCDEFGHIJKL", 17), ==, 0);
    byte_ring_consume(&r, 5);
    g_assert_cmpuint(byte_ring_read(&r, out, sizeof(out)), ==, 27);
    g_assert_cmpint(memcmp(out, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0", 27), ==, 0);
    g_assert_cmpuint(byte_ring_read(&r, out, 1), ==, 0);
    byte_ring_fini(&r);
}

#define STREAM_BYTES 2000000u

static void *ring_producer(void *arg)
{
    uint8_t chunk[97];
    for (uint32_t sent = 0; sent < STREAM_BYTES;) {
        size_t n = MIN(sizeof(chunk), STREAM_BYTES - sent);
        for (size_t i = 0; i < n; i++) {
            chunk[i] = (sent + i) * 7 + ((sent + i) >> 8);
        }
        size_t took = byte_ring_write(arg, chunk, n);
        sent += took;
        if (!took) {
            sched_yield();
        }
    }
    return NULL;
}

static void test_ring_threads(void)
{
    ByteRing r;
    QemuThread t;
    uint8_t chunk[61];
    byte_ring_init(&r, 1024);
    g_assert_true(
        qemu_thread_create(&t, "producer", THREAD_HELPER, ring_producer, &r, &error_abort));
    for (uint32_t got = 0; got < STREAM_BYTES;) {
        size_t n = byte_ring_read(&r, chunk, sizeof(chunk));
        for (size_t i = 0; i < n; i++, got++) {
            g_assert_cmpuint(chunk[i], ==, (uint8_t)(got * 7 + (got >> 8)));
        }
        if (!n) {
            sched_yield();
        }
    }
    qemu_thread_join(&t);
    byte_ring_fini(&r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cutils/integers", test_integers);
    g_test_add_func("/cutils/sizes", test_sizes);
    g_test_add_func("/cutils/uuid", test_uuid);
    g_test_add_func("/error/object", test_error);
    g_test_add_func("/error/report", test_error_report);
    g_test_add_func("/ring/single", test_ring);
    g_test_add_func("/ring/threads", test_ring_threads);
    return g_test_run();
}
