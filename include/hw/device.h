/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words every device is written in: type descriptor, property, bus, reset, migration state.
 * A device type is a const DeviceType in a linker section; an instance is made by an explicit call
 * of a board or of -device. docs/devel/device-howto.md walks through one.
 */
#ifndef HW_DEVICE_H
#define HW_DEVICE_H

#include "hw/irq.h"
#include "qemu/compiler.h"
#include "qemu/error.h"
#include "qemu/thread.h"

typedef struct DeviceState DeviceState;
typedef struct Bus Bus;
struct Chardev;
struct json_object;
struct QemuOpts;

/* ---- Properties ---- */

typedef enum PropKind {
    PROP_BOOL,   /* bool */
    PROP_UINT8,
    PROP_UINT16,
    PROP_UINT32,
    PROP_UINT64,
    PROP_INT32,
    PROP_SIZE,   /* uint64_t, suffixes k M G T */
    PROP_STRING, /* char *, owned by the device */
    PROP_CHARDEV, /* Chardev *, by id */
    PROP_ENUM,   /* int, value_names gives the words */
} PropKind;

typedef struct Property {
    const char *name;
    PropKind kind;
    uint16_t offset; /* in the instance */
    int64_t defval;  /* numbers, bool, enum index */
    const char *defstr;
    const char *const *value_names; /* PROP_ENUM; NULL-terminated */
    const char *help;
} Property;

#define DEFINE_PROP(_name, _kind, _type, _field, _def, _help)                                      \
    {                                                                                              \
        .name = _name, .kind = _kind, .offset = offsetof(_type, _field), .defval = _def,           \
        .help = _help                                                                              \
    }
#define DEFINE_PROP_END {}

/* ---- State description, for snapshots and migration ---- */

typedef enum VmsKind { VMS_U8, VMS_U16, VMS_U32, VMS_U64, VMS_BOOL, VMS_BUFFER, VMS_STRUCT, VMS_TIMER } VmsKind;

struct VMState;
typedef struct VMStateField {
    const char *name;
    VmsKind kind;
    uint32_t offset;
    uint32_t count; /* array length, or bytes of a buffer; 1 for a scalar */
    uint32_t stride; /* VMS_STRUCT: size of an element */
    const struct VMState *sub;
    uint16_t since_version;
} VMStateField;

typedef struct VMState {
    const char *name;
    uint16_t version, minimum_version;
    const VMStateField *fields; /* name NULL ends */
    /* Called with the device's lock not held, machine stopped. */
    void (*pre_save)(void *opaque);
    bool (*post_load)(void *opaque, int version, Error **errp);
} VMState;

#define VMS_FIELD(_kind, _type, _f, _n)                                                            \
    {                                                                                              \
        .name = #_f, .kind = _kind, .offset = offsetof(_type, _f), .count = _n                     \
    }
#define VMS_STRUCT_ARRAY(_type, _f, _n, _elem, _sub)                                               \
    {                                                                                              \
        .name = #_f, .kind = VMS_STRUCT, .offset = offsetof(_type, _f), .count = _n,               \
        .stride = sizeof(_elem), .sub = &(_sub)                                                    \
    }
#define VMS_END {}

/* ---- Types and instances ---- */

/*
 * Where a device keeps its interrupt lines, so that they can be tapped (qtest's irq_intercept_*).
 * An output is an array of IrqLine at offset. An input is one IrqLine at offset that nobody
 * connects: the device passes each change of an input n to it by irq_tap().
 */
typedef struct DeviceLines {
    const char *name; /* NULL ends */
    uint32_t offset;
    uint16_t count;
    bool input;
} DeviceLines;

typedef struct DeviceType {
    const char *name; /* as in -device and QOM */
    const char *desc;
    const char *bus; /* kind of bus it sits on: "isa", "pci", "system"; */
    size_t instance_size;
    const Property *props; /* name NULL ends; may be NULL */
    bool user_creatable;   /* with -device */
    /* HELPER_ONLY. Properties are set. On failure leaves nothing behind. */
    bool (*realize)(DeviceState *dev, Error **errp);
    void (*unrealize)(DeviceState *dev); /* optional */
    /* Machine stopped, all vCPUs parked. Back to power-on state. */
    void (*reset)(DeviceState *dev); /* optional */
    const VMState *vmstate;          /* optional only for devices without state */
    const DeviceLines *lines;        /* optional */
    const char *category;            /* "Input", "Storage", ...; NULL: "Misc". For -device help */
} DeviceType;

struct DeviceState {
    const DeviceType *type;
    char *id; /* NULL: none given */
    Bus *bus;
    bool realized;
    DeviceState *next_sibling; /* on its bus */
    DeviceState *next_all;     /* in order of creation: reset order, `info qtree` */
};

/* Puts a type into the table of types. */
#define DEVICE_TYPE(var)                                                                           \
    static const DeviceType *const QEMU_GLUE(device_type_ptr_, var)                                \
        __attribute__((used, section("qemu_devices"))) = &(var)

const DeviceType *device_type_find(const char *name);
void device_type_foreach(void (*fn)(const DeviceType *type, void *opaque), void *opaque);

/*
 * -global: a default of a type's property, for all devices made from now on. A type that is not
 * there is warned of. For qemu_opts_foreach_located(). Start-up.
 */
bool device_add_global(struct QemuOpts *opts, void *opaque, Error **errp);

/* HELPER_ONLY. Zeroed instance with property defaults, not yet on a bus. */
DeviceState *device_new(const DeviceType *type);
/* The type must exist: for boards. */
DeviceState *device_new_named(const char *name);
bool device_set_prop(DeviceState *dev, const char *name, const char *value, Error **errp);
void device_set_prop_chardev(DeviceState *dev, const char *name, struct Chardev *chr);
void device_set_prop_uint(DeviceState *dev, const char *name, uint64_t value);
/* Gives dev an id (copied); error if it is malformed or taken. */
bool device_set_id(DeviceState *dev, const char *id, Error **errp);
/* Frees a device that was never realized. */
void device_free(DeviceState *dev);
/* Attaches to bus (NULL: the machine's bus of the type's kind), realizes, resets. Frees dev on
 * failure. */
bool device_realize(DeviceState *dev, Bus *bus, Error **errp);
void device_unrealize(DeviceState *dev);
/* -device driver[,prop=val...], "driver,help", JSON. Looks for bus= and id=. NULL with no error
 * set: help was asked for and printed. */
DeviceState *device_add_from_opts(struct QemuOpts *opts, Error **errp);
/* The user-creatable types, as `-device help` lists them. */
void device_print_help(void);
char *device_type_help(const DeviceType *type); /* g_free() */
/* By id, or else the first device whose type has this name; for QOM-like paths the last part. */
DeviceState *device_find_path(const char *path);
DeviceState *device_find(const char *id);
void device_foreach(void (*fn)(DeviceState *dev, void *opaque), void *opaque);
/* NULL: the type has none of that name. */
const Property *property_find(const DeviceType *type, const char *name);
/* "uint32", "str", ... as in help texts and QOM. */
const char *property_kind_name(const Property *p);
/* The value of a number, bool (0, 1), size or enum (index). HELPER_ONLY. */
int64_t device_prop_int(const DeviceState *dev, const Property *p);
/* The value of a string, the id of a chardev, the word of an enum; NULL: none. Borrowed. */
const char *device_prop_str(const DeviceState *dev, const Property *p);
/* The value of a property as text, for `info qtree`; g_free(). */
char *device_prop_string(const DeviceState *dev, const Property *prop);

struct Bus {
    const char *kind; /* "isa", "pci", "system" */
    char name[32];    /* "pci.0", "isa.0" */
    DeviceState *parent;
    DeviceState *children;
    Bus *next;
    /* Optional: checks and assigns an address before realize. */
    bool (*attach)(Bus *bus, DeviceState *dev, Error **errp);
    void (*detach)(Bus *bus, DeviceState *dev);
    /* Optional: one line on dev for `info qtree`. */
    void (*describe)(Bus *bus, DeviceState *dev, char *buf, size_t len);
};
/* name is copied. */
void bus_init(Bus *bus, const char *kind, const char *name, DeviceState *parent);
Bus *bus_find(const char *name);
Bus *bus_find_kind(const char *kind);
void bus_foreach(void (*fn)(Bus *bus, void *opaque), void *opaque);

/* ---- Machine-wide reset ---- */

/* Handlers run in order of registration after all devices' reset; machine stopped. */
void reset_register(void (*fn)(void *opaque), void *opaque);
/* RT_SAFE but for the machine being stopped. */
void device_reset_all(void);

#endif
