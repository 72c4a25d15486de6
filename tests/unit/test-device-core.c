/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hw/core: types, properties, buses, the port claims of the ISA bus, state descriptions. */
#include "device-test.h"

typedef struct Sub {
    uint16_t half[2];
    bool flag;
} Sub;

typedef struct Toy {
    DeviceState dev;
    bool on;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64, size;
    int32_t i32;
    char *text;
    Chardev *chr;
    int word;
    uint8_t bytes[5];
    Sub sub[2];
    EventTimer timer;
    uint32_t later;
    MemoryRegion io;
    unsigned resets, loads;
    bool refuse;
} Toy;

static unsigned toys_alive;

static void toy_timer(void *opaque)
{
}

static bool toy_realize(DeviceState *dev, Error **errp)
{
    static const MemoryRegionOps ops = { .read = NULL };
    Toy *t = (Toy *)dev;

    if (t->refuse || t->u8 == 99) {
        error_setg(errp, "toy: no");
        return false;
    }
    memory_region_init_io(&t->io, &ops, t, "toy", 4);
    if (t->u16 && !isa_map_ports(dev, &t->io, t->u16, errp)) {
        return false;
    }
    timer_init(&t->timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, toy_timer, t);
    toys_alive++;
    return true;
}

static void toy_unrealize(DeviceState *dev)
{
    timer_fini(&((Toy *)dev)->timer);
    toys_alive--;
}

static void toy_reset(DeviceState *dev)
{
    ((Toy *)dev)->resets++;
}

static bool toy_post_load(void *opaque, int version, Error **errp)
{
    ((Toy *)opaque)->loads++;
    return true;
}

static const VMState sub_vmstate = {
    .name = "sub", .version = 1, .minimum_version = 1,
    .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U16, Sub, half, 2),
        VMS_FIELD(VMS_BOOL, Sub, flag, 1),
        VMS_END,
    },
};

static const VMStateField toy_fields[] = {
    VMS_FIELD(VMS_U32, Toy, u32, 1),
    VMS_FIELD(VMS_U64, Toy, u64, 1),
    VMS_FIELD(VMS_BUFFER, Toy, bytes, 5),
    VMS_STRUCT_ARRAY(Toy, sub, 2, Sub, sub_vmstate),
    VMS_FIELD(VMS_TIMER, Toy, timer, 1),
    { .name = "later", .kind = VMS_U32, .offset = offsetof(Toy, later), .count = 1,
      .since_version = 3 },
    VMS_END,
};
static const VMState toy_vmstate = {
    .name = "toy", .version = 3, .minimum_version = 2, .fields = toy_fields,
    .post_load = toy_post_load,
};
static const VMState toy_vmstate_v2 = {
    .name = "toy", .version = 2, .minimum_version = 2, .fields = (const VMStateField[]){
        VMS_FIELD(VMS_U32, Toy, u32, 1),
        VMS_FIELD(VMS_U64, Toy, u64, 1),
        VMS_FIELD(VMS_BUFFER, Toy, bytes, 5),
        VMS_STRUCT_ARRAY(Toy, sub, 2, Sub, sub_vmstate),
        VMS_FIELD(VMS_TIMER, Toy, timer, 1),
        VMS_END,
    },
};

static const char *const words[] = { "red", "green", NULL };
static const Property toy_props[] = {
    DEFINE_PROP("on", PROP_BOOL, Toy, on, true, NULL),
    DEFINE_PROP("u8", PROP_UINT8, Toy, u8, 7, NULL),
    DEFINE_PROP("u16", PROP_UINT16, Toy, u16, 0, NULL),
    DEFINE_PROP("u32", PROP_UINT32, Toy, u32, UINT32_MAX, NULL),
    DEFINE_PROP("u64", PROP_UINT64, Toy, u64, 0, NULL),
    DEFINE_PROP("i32", PROP_INT32, Toy, i32, -3, NULL),
    DEFINE_PROP("size", PROP_SIZE, Toy, size, 4096, NULL),
    { .name = "text", .kind = PROP_STRING, .offset = offsetof(Toy, text), .defstr = "abc" },
    DEFINE_PROP("chr", PROP_CHARDEV, Toy, chr, 0, NULL),
    { .name = "word", .kind = PROP_ENUM, .offset = offsetof(Toy, word), .defval = 1,
      .value_names = words },
    DEFINE_PROP_END,
};

static const DeviceType toy_type = {
    .name = "isa-toy", .bus = "isa", .instance_size = sizeof(Toy), .props = toy_props,
    .realize = toy_realize, .unrealize = toy_unrealize, .reset = toy_reset,
    .vmstate = &toy_vmstate,
};
DEVICE_TYPE(toy_type);

static const DeviceType lost_type = { .name = "lost", .bus = "nowhere" };
DEVICE_TYPE(lost_type);

/* Sets a property that must be refused; the message must hold what is given. */
static void refused(const char *name, const char *value, const char *message)
{
    DeviceState *dev = device_new(&toy_type);
    Error *err = NULL;

    g_assert_false(device_set_prop(dev, name, value, &err));
    if (!strstr(error_get_pretty(err), message)) {
        g_error("%s=%s: unexpected message: %s", name, value, error_get_pretty(err));
    }
    error_free(err);
    device_free(dev);
}

static void taken(const char *name, const char *value, const char *as_text)
{
    DeviceState *dev = device_new(&toy_type);
    const Property *p;
    g_autofree char *text = NULL;

    g_assert_true(device_set_prop(dev, name, value, &error_abort));
    for (p = toy_props; strcmp(p->name, name); p++) {
    }
    text = device_prop_string(dev, p);
    g_assert_cmpstr(text, ==, as_text);
    device_free(dev);
}

static void test_properties(void)
{
    Toy *t = (Toy *)device_new(&toy_type);

    g_assert_true(t->on);
    g_assert_cmpuint(t->u8, ==, 7);
    g_assert_cmpuint(t->u32, ==, UINT32_MAX);
    g_assert_cmpint(t->i32, ==, -3);
    g_assert_cmpuint(t->size, ==, 4096);
    g_assert_cmpstr(t->text, ==, "abc");
    g_assert_cmpint(t->word, ==, 1);
    device_free(&t->dev);

    taken("on", "off", "false");
    taken("on", "yes", "true");
    taken("u8", "255", "255 (0xff)");
    taken("u16", "0xFFFF", "65535 (0xffff)");
    taken("u64", "18446744073709551615", "18446744073709551615 (0xffffffffffffffff)");
    taken("i32", "-2147483648", "-2147483648 (0x80000000)");
    taken("size", "3M", "3145728 (0x300000)");
    taken("size", "15E", "17293822569102704640 (0xf000000000000000)");
    taken("text", "", "\"\"");
    taken("chr", "chr0", "\"chr0\"");
    taken("word", "red", "\"red\"");
}

static void test_property_refusals(void)
{
    static const char *const bad[] = { "", " 1", "1 ", "1e1", "0x", "x", "--1", "+1", "1.5", "0b1" };

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        refused("u32", bad[i], "'u32' expects integer");
    }
    refused("u8", "256", "'u8' expects uint8_t");
    refused("u8", "-1", "'u8' expects uint8_t");
    refused("u32", "4294967298", "'u32' expects uint32_t");
    refused("u64", "18446744073709551616", "'u64' expects");
    refused("i32", "2147483648", "'i32' expects int32_t");
    refused("i32", "-2147483649", "'i32' expects int32_t");
    refused("size", "16E", "'size' expects a size");
    refused("size", "1Q", "'size' expects a size");
    refused("size", "-1", "'size' expects a size");
    refused("on", "maybe", "'on' or 'off'");
    refused("word", "blue", "'red', 'green'");
    refused("chr", "nope", "can't find value 'nope'");
    refused("none", "1", "Property 'isa-toy.none' not found");
}

static void test_realize(void)
{
    DeviceState *a = device_new(&toy_type), *b;
    Error *err = NULL;

    device_set_prop_uint(a, "u16", 0x300);
    g_assert_true(device_set_id(a, "first", &error_abort));
    g_assert_true(device_realize(a, NULL, &error_abort));
    g_assert_cmpuint(((Toy *)a)->resets, ==, 1);
    g_assert_true(device_find("first") == a);
    g_assert_true(device_find_path("/machine/peripheral/first") == a);
    g_assert_true(device_find_path("toy") == a);

    /* Overlapping ports are refused, and nothing is left behind. */
    b = device_new(&toy_type);
    device_set_prop_uint(b, "u16", 0x303);
    g_assert_false(device_realize(b, NULL, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "0x303-0x306 are taken by isa-toy"));
    error_free(err);
    err = NULL;
    g_assert_cmpuint(toys_alive, ==, 1);

    b = device_new(&toy_type);
    g_assert_false(device_set_id(b, "first", &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "Duplicate ID 'first'"));
    error_free(err);
    err = NULL;
    g_assert_false(device_set_id(b, "1st", &err));
    error_free(err);
    err = NULL;
    device_free(b);

    b = device_new(&lost_type);
    g_assert_false(device_realize(b, NULL, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "No 'NOWHERE' bus"));
    error_free(err);
    err = NULL;
    b = device_new(&toy_type);
    g_assert_false(device_realize(b, bus_find("main-system-bus"), &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "can't go on SYSTEM bus"));
    error_free(err);

    device_reset_all();
    g_assert_cmpuint(((Toy *)a)->resets, ==, 2);
    device_unrealize(a);
    g_assert_null(device_find("first"));
    g_assert_cmpuint(toys_alive, ==, 0);

    /* The ports are free again. */
    b = device_new(&toy_type);
    device_set_prop_uint(b, "u16", 0x303);
    g_assert_true(device_realize(b, NULL, &error_abort));
    device_unrealize(b);
}

static void fill(Toy *t)
{
    t->u32 = 0x11223344;
    t->u64 = 0x8877665544332211ull;
    memcpy(t->bytes, "\1\2\3\4\5", 5);
    t->sub[0] = (Sub){ { 1, 2 }, true };
    t->sub[1] = (Sub){ { 3, 0xffff }, false };
    t->later = 77;
    timer_mod(&t->timer, 123456);
}

static void load_refused(Toy *t, const uint8_t *buf, size_t len, const char *message)
{
    Error *err = NULL;
    uint32_t before = t->u32;

    t->u32 = 0xabcdabcd;
    g_assert_false(vmstate_load(&toy_vmstate, t, buf, len, NULL, &err));
    if (!strstr(error_get_pretty(err), message)) {
        g_error("unexpected message: %s", error_get_pretty(err));
    }
    g_assert_cmphex(t->u32, ==, 0xabcdabcd); /* nothing was touched */
    t->u32 = before;
    error_free(err);
}

static void test_vmstate(void)
{
    DeviceState *dev = device_new(&toy_type);
    Toy *t = (Toy *)dev;
    g_autofree uint8_t *buf = NULL, *old = NULL;
    size_t len = 0, old_len = 0;

    g_assert_true(device_realize(dev, NULL, &error_abort));
    fill(t);
    vmstate_save(&toy_vmstate, t, &buf, &len);
    vmstate_save(&toy_vmstate_v2, t, &old, &old_len);

    for (size_t cut = 0; cut < len; cut++) {
        load_refused(t, buf, cut, "truncated");
    }
    buf[2] = 'T';
    load_refused(t, buf, len, "expected 'toy'");
    buf[2] = 't';
    buf[5] = 9; /* version */
    load_refused(t, buf, len, "version 9");
    buf[5] = 1;
    load_refused(t, buf, len, "version 1");
    buf[5] = 3;
    old[5] = 3;
    load_refused(t, old, old_len, "expected 'later'");
    old[5] = 2;
    buf[5] = 2; /* ends where version 2 would, but goes on */
    load_refused(t, buf, len, "does not know");
    buf[5] = 3;

    t->u32 = 0;
    t->u64 = 0;
    memset(t->bytes, 0, 5);
    memset(t->sub, 0, sizeof(t->sub));
    t->later = 0;
    timer_del(&t->timer);
    g_assert_true(vmstate_load(&toy_vmstate, t, buf, len, NULL, &error_abort));
    g_assert_cmphex(t->u32, ==, 0x11223344);
    g_assert_cmphex(t->u64, ==, 0x8877665544332211ull);
    g_assert_cmpmem(t->bytes, 5, "\1\2\3\4\5", 5);
    g_assert_cmpuint(t->sub[0].half[1], ==, 2);
    g_assert_true(t->sub[0].flag);
    g_assert_cmpuint(t->sub[1].half[1], ==, 0xffff);
    g_assert_cmpuint(t->later, ==, 77);
    g_assert_cmpint(timer_expire_ns(&t->timer), ==, 123456);
    g_assert_cmpuint(t->loads, ==, 1);

    /* An older stream leaves what it does not know. */
    t->later = 5;
    t->u32 = 0;
    g_assert_true(vmstate_load(&toy_vmstate, t, old, old_len, NULL, &error_abort));
    g_assert_cmpuint(t->later, ==, 5);
    g_assert_cmphex(t->u32, ==, 0x11223344);
    device_unrealize(dev);
}

static void test_save_all(void)
{
    DeviceState *a = device_new(&toy_type), *b = device_new(&toy_type);
    g_autofree uint8_t *buf = NULL;
    size_t len = 0;
    Error *err = NULL;

    g_assert_true(device_realize(a, NULL, &error_abort));
    g_assert_true(device_realize(b, NULL, &error_abort));
    ((Toy *)a)->u32 = 1;
    ((Toy *)b)->u32 = 2;
    device_save_all(&buf, &len);
    ((Toy *)a)->u32 = ((Toy *)b)->u32 = 0;
    g_assert_true(device_load_all(buf, len, &error_abort));
    g_assert_cmpuint(((Toy *)a)->u32, ==, 1);
    g_assert_cmpuint(((Toy *)b)->u32, ==, 2);
    device_unrealize(b);
    g_assert_false(device_load_all(buf, len, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "no device"));
    error_free(err);
    device_unrealize(a);
}

int main(int argc, char **argv)
{
    device_test_init(&argc, &argv);
    g_test_add_func("/device/properties", test_properties);
    g_test_add_func("/device/property-refusals", test_property_refusals);
    g_test_add_func("/device/realize", test_realize);
    g_test_add_func("/device/vmstate", test_vmstate);
    g_test_add_func("/device/save-all", test_save_all);
    return g_test_run();
}
