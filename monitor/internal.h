/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of monitor/: a session, and the tables of commands. */
#ifndef MONITOR_INTERNAL_H
#define MONITOR_INTERNAL_H

#include <glib.h>
#include "event/event.h"
#include "monitor/monitor.h"
#include "qemu/json-check.h"

struct json_object;
struct json_tokener;

/* Longest QMP command taken, and most output kept for a client that does not read. */
#define QMP_MAX_INPUT    (64 * MiB)
/* As QEMU: open brackets in a command. */
#define QMP_MAX_DEPTH    1024
#define MONITOR_MAX_OUT  (1 * MiB)
/* A session stops taking commands while this much output waits. */
#define MONITOR_HIGH_OUT (64 * KiB)
#define HMP_LINE_MAX     4095
#define HMP_HISTORY      64

/* Of the text of a QMP command, up to where it is read; zeroed at its begin. See qmp-scan.c. */
typedef struct QmpScan {
    unsigned depth; /* of open brackets */
    JsonCheck check;
    bool number, integer;
    char digits[24]; /* the integer's sign and first digits, without leading zeros */
    unsigned digit_count;
    uint64_t members;
} QmpScan;

/* One session. Everything is touched by the control thread only. */
struct Monitor {
    ChrFrontend fe;
    GByteArray *out; /* from out_pos on: not yet taken by the chardev */
    size_t out_pos;
    bool out_big; /* it takes much memory */
    bool is_qmp;
    bool open;
    Monitor *next;

    /* QMP */
    bool pretty;
    bool negotiated;
    struct json_tokener *tok;
    GByteArray *in;    /* from in_pos on: read, and its turn has not come */
    size_t in_pos;
    EventPost serve_post;
    bool turn_over;    /* a command was answered */
    QmpScan scan;
    uint64_t in_bytes; /* of the command under way */
    bool skip_line;    /* after a syntax error: up to the next newline */
    uint64_t events_lost;
    int sent_fds[16]; /* came with commands (SCM_RIGHTS), not claimed yet */
    unsigned sent_count;
    GHashTable *named_fds; /* of getfd: name -> descriptor; NULL: none yet */
    GString *capture;      /* not NULL: no session, output goes here (human-monitor-command) */

    /* HMP */
    GString *line;
    size_t cursor;
    int esc_state;
    GQueue history; /* of char *, newest first */
    int history_pos;
    int cpu_index;
};

/* session.c */
extern Monitor *monitors;
void monitor_write(Monitor *mon, const char *buf, size_t len);
Monitor *monitor_new(Chardev *chr, const ChrFrontendOps *ops, Error **errp);
bool monitor_can_take(const Monitor *mon);
/* Bytes that the client has not taken. */
size_t monitor_pending(const Monitor *mon);
/* As ChrFrontendOps.owes. */
size_t monitor_owes(void *opaque);
void monitor_drop_output(Monitor *mon);
/* After something big was freed: the host gets it back. */
void monitor_trim(void);
void monitor_flush(void *opaque);

/* qmp.c */
void qmp_send(Monitor *mon, struct json_object *j);
void qmp_broadcast(struct json_object *j);

/* qmp-scan.c */
#define QMP_WIDE_MARK "e+00"
/*
 * How much of buf to give to the parser next. *put, if not NULL: what to give it after that, in place of the *skip
 * bytes that follow in buf. It is QMP_WIDE_MARK behind an integer that does not fit in 64 bits, which
 * makes a number of it that keeps all its digits; or another spelling of an escape. s->check.error: the byte
 * after what is returned is wrong.
 */
size_t qmp_scan(QmpScan *s, const uint8_t *buf, size_t len, const char **put, size_t *skip);
/* Members of all objects in j: fewer than QmpScan.members if one was named twice. */
uint64_t qmp_members(struct json_object *j);
/* Takes the marks off the numbers in j again. */
void qmp_plain_numbers(struct json_object *j);

/* The session whose command is being executed. */
extern Monitor *monitor_current;

/* fds.c */
void monitor_collect_fds(Monitor *mon);
void monitor_drop_fds(Monitor *mon);
/* The descriptor that getfd named in the current session; the caller's to close. -1 + errp. */
int monitor_take_fd(const char *name, Error **errp);

/* qom-types.c: the types that QOM paths and queries speak of. */
typedef struct QomType {
    char *name;
    const char *parent; /* NULL: "object" itself */
    bool abstract;
    /* One of these at most. */
    const struct DeviceType *device;
    const struct UserObjectType *object;
    const struct MachineType *machine;
    bool cpu;
} QomType;
/* All types, of QomType; g_ptr_array_unref(). */
GPtrArray *qom_types(void);
const QomType *qom_type_find(GPtrArray *types, const char *name);
struct QapiObjectPropertyInfoArray;
/* Adds the properties of t. */
void qom_type_properties(const QomType *t, struct QapiObjectPropertyInfoArray *out);
void qom_add_property(struct QapiObjectPropertyInfoArray *out, const char *name, const char *type,
                      const char *desc);

/*
 * qom-tree.c. The vCPU that a path, or an id, names; -1: none, then *dev is the device it names, or NULL.
 */
struct DeviceState;
int qom_find_cpu(const char *path, struct DeviceState **dev);

/* events.c */
void monitor_events_init(void);
void monitor_events_drain(void);

/* hmp-cmds.c */
typedef struct HmpCommand {
    const char *name; /* "info cpus" has its sub-command as a second word */
    const char *args, *help;
    void (*fn)(Monitor *mon, const char *args);
} HmpCommand;
extern const HmpCommand hmp_commands[];
void hmp_execute(Monitor *mon, const char *line);

/* Prints it, if there is one, and frees it. */
void hmp_report(Monitor *mon, Error *err);

/* device-cmds.c */
void monitor_devices_init(void);
void hmp_device_add(Monitor *mon, const char *args);
void hmp_device_del(Monitor *mon, const char *args);
void hmp_info_hotpluggable_cpus(Monitor *mon, const char *args);
struct QapiCpuInstanceProperties;
struct QapiCpuInstanceProperties *monitor_cpu_place(unsigned index);

/* jit-cmds.c */
void hmp_info_jit(Monitor *mon, const char *args);

/* hmp-mem.c */
void hmp_x(Monitor *mon, const char *args);
void hmp_xp(Monitor *mon, const char *args);
void hmp_print(Monitor *mon, const char *args);

/* hmp-keys.c */
void hmp_sendkey(Monitor *mon, const char *args);

/* hmp-mmu.c */
void hmp_info_mem(Monitor *mon, const char *args);
void hmp_info_tlb(Monitor *mon, const char *args);

/* hmp-absent.c: says that there is no such command. lists: the command that lists those there are. */
void hmp_unknown(Monitor *mon, const char *command, const char *lists);

/* hmp-info.c */
void hmp_info(Monitor *mon, const char *args);
void hmp_info_pci(Monitor *mon, const char *args);
void hmp_info_pic(Monitor *mon, const char *args);
void hmp_info_irq(Monitor *mon, const char *args);
void hmp_info_roms(Monitor *mon, const char *args);
void hmp_info_lapic(Monitor *mon, const char *args);
void hmp_info_qom_tree(Monitor *mon, const char *args);

/* hmp-latency.c */
void hmp_info_latency(Monitor *mon, const char *args);
void hmp_latency_reset(Monitor *mon, const char *args);

/* hmp-realtime.c */
void hmp_info_realtime(Monitor *mon, const char *args);
void hmp_realtime_profile(Monitor *mon, const char *args);

#endif
