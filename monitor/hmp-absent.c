/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that nobody knows, and those that QEMU has and this program has not yet. */
#include <string.h>
#include "monitor/internal.h"

/* Words of QEMU's monitor that mean nothing here: what they are about is not there. */
static const char *const of_qemu[] = {
    "announce_self", "balloon", "block_job_cancel", "block_job_complete", "block_job_pause", "block_job_resume",
    "block_job_set_speed", "block_resize", "block_set_io_throttle", "block_stream", "boot_set", "calc_dirty_rate",
    "change", "chardev-add", "chardev-change", "chardev-remove", "chardev-send-break", "client_migrate_info",
    "closefd", "commit", "delvm", "drive_add", "drive_backup", "drive_del",
    "drive_mirror", "dump-guest-memory", "eject", "exit_preconfig", "expire_password", "gdbserver", "getfd",
    "gpa2hpa", "gpa2hva", "gva2gpa", "hostfwd_add", "hostfwd_remove", "i", "loadvm", "logfile", "mce", "memsave",
    "migrate", "migrate_cancel", "migrate_continue", "migrate_incoming", "migrate_pause", "migrate_recover",
    "migrate_set_capability", "migrate_set_parameter", "migrate_start_postcopy", "mouse_button", "mouse_move",
    "mouse_set", "nbd_server_add", "nbd_server_remove", "nbd_server_start", "nbd_server_stop", "netdev_add",
    "netdev_del", "o", "object_add", "object_del", "pcie_aer_inject_error", "pmemsave", "qemu-io", "qom-get",
    "qom-list", "qom-set", "replay_break", "replay_delete_break", "replay_seek", "ringbuf_read", "ringbuf_write",
    "savevm", "screendump", "set_link", "set_password", "singlestep", "snapshot_blkdev",
    "snapshot_blkdev_internal", "snapshot_delete_blkdev_internal", "stopcapture", "sum", "sync-profile",
    "trace-event", "trace-file", "watchdog_action", "wavcapture", "x_colo_lost_heartbeat", "info balloon",
    "info block-jobs", "info blockstats", "info capture", "info cryptodev", "info dirty_rate",
    "info dump", "info history", "info memdev",
    "info memory-devices", "info memory_size_summary", "info mice", "info migrate", "info migrate_capabilities",
    "info migrate_parameters", "info network", "info numa", "info opcount", "info profile", "info qdm", "info ramblock",
    "info rdma", "info replay", "info rocker", "info sev", "info sgx", "info snapshots", "info spice",
    "info stats", "info sync-profile", "info tpm", "info trace-events", "info usb", "info usbhost",
    "info usernet", "info virtio", "info vm-generation-id", "info vnc", NULL,
};

void hmp_unknown(Monitor *mon, const char *command, const char *lists)
{
    size_t len = strcspn(command, " /");

    if (strncmp(command, "info ", 5) == 0) {
        len = 5 + strcspn(command + 5, " ");
    }
    for (const char *const *name = of_qemu; *name; name++) {
        if (strlen(*name) == len && strncmp(command, *name, len) == 0) {
            monitor_printf(mon, "Error: QEMU has '%s', this program not yet (%s lists what it has)\n", *name, lists);
            return;
        }
    }
    monitor_printf(mon, "unknown command: '%s' (%s lists them)\n", command, lists);
}
