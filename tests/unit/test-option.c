/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Option sets: both notations, types, merging, ids, help, and what is refused. */
#include "qemu/option.h"

#include <glib.h>
#include <string.h>

static const QemuOptDesc typed_desc[] = {
    { "name", QEMU_OPT_STRING, NULL }, { "flag", QEMU_OPT_BOOL, NULL },
    { "num", QEMU_OPT_NUMBER, NULL },  { "size", QEMU_OPT_SIZE, NULL },
    { "nodelay", QEMU_OPT_BOOL, NULL }, { "sub.key", QEMU_OPT_STRING, NULL }, { NULL },
};
static QemuOptsList typed = { .name = "typed", .implied_opt_name = "name", .desc = typed_desc };
static QemuOptsList merged = {
    .name = "merged", .implied_opt_name = "name", .merge_lists = true, .merge_ids = true,
    .desc = typed_desc
};
static QemuOptsList open_list = { .name = "open", .implied_opt_name = "driver" };

static QemuOpts *parse(QemuOptsList *list, const char *text)
{
    return qemu_opts_parse(list, text, &error_abort);
}

/* text is refused, with `part` in the message, and leaves no set. */
static void refused(QemuOptsList *list, const char *text, const char *part)
{
    Error *err = NULL;
    QemuOpts *before = list->last;
    if (qemu_opts_parse(list, text, &err)) {
        g_error("'%s' was taken", text);
    }
    g_assert_nonnull(err);
    if (!strstr(error_get_pretty(err), part)) {
        g_error("'%s' gave: %s", text, error_get_pretty(err));
    }
    g_assert_true(list->last == before);
    error_free(err);
}

static void test_plain(void)
{
    QemuOpts *o = parse(&typed, "first,,word,flag=on,num=0x10,size=1.5G");
    g_assert_cmpstr(qemu_opt_get(o, "name"), ==, "first,word");
    g_assert_true(qemu_opt_get_bool(o, "flag", false));
    g_assert_cmpuint(qemu_opt_get_number(o, "num", 0), ==, 16);
    g_assert_cmpuint(qemu_opt_get_size(o, "size", 0), ==, 3 * GiB / 2);
    g_assert_null(qemu_opt_get(o, "nodelay"));
    g_assert_cmpuint(qemu_opt_get_number(o, "absent", 7), ==, 7);
    qemu_opts_del(o);
    o = parse(&typed, "name=a=b,,,num=3,name=,flag=off,");
    g_assert_cmpstr(qemu_opt_get(o, "name"), ==, ""); /* the last word wins */
    g_assert_cmpuint(qemu_opt_get_number(o, "num", 0), ==, 3);
    g_assert_false(qemu_opt_get_bool(o, "flag", true));
    qemu_opts_del(o);
    g_assert_cmpuint(qemu_opt_get_number(NULL, "num", 9), ==, 9);
}

static void test_flags(void)
{
    QemuOpts *o = parse(&typed, "x,flag,nodelay");
    g_assert_true(qemu_opt_get_bool(o, "flag", false));
    g_assert_true(qemu_opt_get_bool(o, "nodelay", false));
    qemu_opts_del(o);
    o = parse(&typed, "x,noflag");
    g_assert_false(qemu_opt_get_bool(o, "flag", true));
    qemu_opts_del(o);
    o = parse(&open_list, "socket,server,nowait,path=/a");
    g_assert_cmpstr(qemu_opt_get(o, "driver"), ==, "socket");
    g_assert_cmpstr(qemu_opt_get(o, "server"), ==, "on");
    g_assert_cmpstr(qemu_opt_get(o, "wait"), ==, "off");
    qemu_opts_del(o);
}

static void test_refused(void)
{
    refused(&typed, "x,colour=red", "'colour'");
    refused(&typed, "x,colour=red", "name, flag, num");
    refused(&typed, "x,colour", "'colour'");
    refused(&typed, "x,flag=maybe", "expects 'on' or 'off', not 'maybe'");
    refused(&typed, "x,num=12a", "'12a'");
    refused(&typed, "x,num=-1", "'-1'");
    refused(&typed, "x,num= 1", "' 1'");
    refused(&typed, "x,num=", "''");
    refused(&typed, "x,num=18446744073709551616", "too large");
    refused(&typed, "x,size=1.5", "'1.5'");
    refused(&typed, "x,size=16E", "too large");
    refused(&typed, "x,=3", "name is missing");
    refused(&typed, "x,id=1a", "'1a'");
    refused(&typed, "x,id=a b", "'a b'");
}

static void test_id(void)
{
    QemuOpts *a = parse(&typed, "x,id=one"), *b = parse(&typed, "y");
    g_assert_cmpstr(qemu_opts_id(a), ==, "one");
    g_assert_null(qemu_opts_id(b));
    g_assert_true(qemu_opts_find(&typed, "one") == a);
    g_assert_true(qemu_opts_find(&typed, NULL) == b);
    g_assert_null(qemu_opts_find(&typed, "two"));
    g_assert_null(qemu_opt_get(a, "id"));
    refused(&typed, "z,id=one", "'one' is already in use");
    refused(&typed, "x,id=two,id=three", "'id' is given twice, 'two' and 'three'");
    refused(&typed, "x,id=two,id=two", "given twice");
    refused(&typed, "{\"id\":\"two\",\"name\":\"id\",\"id\":\"three\"}", "'id' is there twice");
    refused(&typed, ",id=two", "before the first ','");
    g_assert_null(qemu_opts_find(&typed, "two"));
    qemu_opts_reset(&typed);
    g_assert_null(qemu_opts_find(&typed, "one"));
}

static void test_merge(void)
{
    QemuOpts *o = parse(&merged, "x,num=1,flag=on");
    g_assert_true(parse(&merged, "num=2") == o);
    g_assert_cmpuint(qemu_opt_get_number(o, "num", 0), ==, 2);
    g_assert_cmpstr(qemu_opt_get(o, "name"), ==, "x");
    g_assert_true(parse(&merged, "id=other") != o);
    refused(&merged, "flag=off,num=x", "'x'"); /* all or nothing */
    merged.merge_ids = false;
    refused(&merged, "id=more", "'id'");
    merged.merge_ids = true;
    g_assert_true(qemu_opt_get_bool(o, "flag", false));
    qemu_opts_reset(&merged);
}

static void test_json(void)
{
    QemuOpts *o = parse(&open_list, "{\"driver\":\"VGA\",\"id\":\"v0\",\"mb\":16,\"on\":true,"
                                    "\"cache\":{\"direct\":false},\"l\":[\"a,b\",2],"
                                    "\"big\":18446744073709551615}");
    g_assert_cmpstr(qemu_opts_id(o), ==, "v0");
    g_assert_cmpstr(qemu_opt_get(o, "driver"), ==, "VGA");
    g_assert_cmpstr(qemu_opt_get(o, "mb"), ==, "16");
    g_assert_cmpstr(qemu_opt_get(o, "on"), ==, "on");
    g_assert_cmpstr(qemu_opt_get(o, "cache.direct"), ==, "off");
    g_assert_cmpstr(qemu_opt_get(o, "l.0"), ==, "a,b");
    g_assert_cmpstr(qemu_opt_get(o, "l.1"), ==, "2");
    g_assert_cmpstr(qemu_opt_get(o, "big"), ==, "18446744073709551615");
    qemu_opts_del(o);
    o = parse(&typed, "{\"sub\":{\"key\":\"v\"},\"size\":4096}");
    g_assert_cmpstr(qemu_opt_get(o, "sub.key"), ==, "v");
    qemu_opts_del(o);
    refused(&open_list, "{\"a\":1", "end of data");
    refused(&open_list, "{\"a\" 1}", "invalid JSON");
    refused(&open_list, "{\"a\":1} x", "invalid JSON");
    refused(&open_list, "{\"a\":null}", "'a' is null");
    refused(&typed, "{\"num\":-1}", "'-1'");
    refused(&typed, "{\"colour\":\"red\"}", "'colour'");
    QemuOpts *none = qemu_opts_parse_json(&open_list, "[1]", NULL);
    g_assert_null(none);
}

static bool collect(void *opaque, const char *key, const char *value, Error **errp)
{
    g_string_append_printf(opaque, "%s=%s;", key, value);
    return strcmp(key, "stop") != 0;
}

static void test_used(void)
{
    static const char *const valid[] = { "driver", "a", NULL };
    Error *err = NULL;
    QemuOpts *o = parse(&open_list, "d,a=1,b=2");
    qemu_opt_get(o, "driver");
    qemu_opt_get(o, "a");
    g_assert_false(qemu_opts_check_used(o, valid, &err));
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "invalid parameter 'b'; valid ones are: driver, a");
    error_free(err);
    GString *all = g_string_new(NULL);
    g_assert_true(qemu_opt_foreach(o, collect, all, NULL));
    g_assert_cmpstr(all->str, ==, "driver=d;a=1;b=2;");
    g_assert_true(qemu_opts_check_used(o, NULL, &error_abort));
    g_string_free(all, TRUE);
    uint64_t n = 0;
    err = NULL;
    g_assert_true(qemu_opt_read_number(o, "b", &n, &error_abort));
    g_assert_cmpuint(n, ==, 2);
    g_assert_false(qemu_opt_read_number(o, "driver", &n, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "'driver'"));
    error_free(err);
    qemu_opts_del(o);
}

static void test_help(void)
{
    QemuOpts *o = parse(&typed, "help");
    g_assert_true(qemu_opts_has_help(o));
    g_assert_null(qemu_opt_get(o, "name"));
    qemu_opts_del(o);
    o = parse(&open_list, "VGA,?");
    g_assert_true(qemu_opts_has_help(o));
    qemu_opts_del(o);
    o = parse(&typed, "name=help");
    g_assert_false(qemu_opts_has_help(o));
    qemu_opts_del(o);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/option/plain", test_plain);
    g_test_add_func("/option/flags", test_flags);
    g_test_add_func("/option/refused", test_refused);
    g_test_add_func("/option/id", test_id);
    g_test_add_func("/option/merge", test_merge);
    g_test_add_func("/option/json", test_json);
    g_test_add_func("/option/used", test_used);
    g_test_add_func("/option/help", test_help);
    return g_test_run();
}
