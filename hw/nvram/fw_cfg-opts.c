/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -fw_cfg: files of the user's for the guest. */
#include <glib.h>
#include <string.h>
#include "hw/fw_cfg.h"
#include "qemu/config.h"
#include "qemu/file.h"

#define FILE_MAX (64 * MiB)

static bool check_name(const char *name, Error **errp)
{
    if (!name || !*name) {
        error_setg(errp, "the name is missing; give name=opt/..., and file= or string=");
        return false;
    }
    if (strlen(name) >= FW_CFG_MAX_FILE_PATH) {
        error_setg(errp, "name '%s' is longer than %d bytes; choose a shorter one", name,
                   FW_CFG_MAX_FILE_PATH - 1);
        return false;
    }
    return true;
}

static bool add_one(QemuOpts *opts, void *opaque, Error **errp)
{
    const char *name = qemu_opt_get(opts, "name"), *file = qemu_opt_get(opts, "file");
    const char *string = qemu_opt_get(opts, "string");
    char *data = NULL;
    size_t len;

    if (!check_name(name, errp)) {
        return false;
    }
    if (!file == !string) {
        error_setg(errp, "give either file= or string=");
        return false;
    }
    if (string) {
        data = g_strdup(string);
        len = strlen(string);
    } else if (!file_read_all(file, FILE_MAX, &data, &len, errp)) {
        return false;
    }
    bool ok = fw_cfg_add_file(opaque, name, data, len, errp);
    g_free(data);
    if (ok && !g_str_has_prefix(name, "opt/")) {
        warn_report("name '%s' does not begin with 'opt/': it may be one that firmware gives a meaning",
                    name);
    }
    return ok;
}

bool fw_cfg_add_options(DeviceState *fw, Error **errp)
{
    return qemu_opts_foreach_located(qemu_find_opts("fw_cfg", &error_abort), add_one, fw, errp);
}
