/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -icount and -seed: what makes a run deterministic. */
#include <string.h>
#include "qemu/cutils.h"
#include "qemu/opts.h"

#define MAX_SHIFT 10

static bool parse_shift(const char *text, unsigned *shift, Error **errp)
{
    uint32_t v;

    if (!strcmp(text, "auto")) {
        error_setg(errp, "-icount shift=auto: virtual time here never follows the host's clock; "
                         "give a number from 0 to %d", MAX_SHIFT);
        return false;
    }
    if (qemu_parse_u32(text, 10, &v) < 0 || v > MAX_SHIFT) {
        error_setg(errp, "-icount shift=%s: must be a number from 0 to %d; an instruction takes "
                         "2^shift nanoseconds", text, MAX_SHIFT);
        return false;
    }
    *shift = v;
    return true;
}

bool opts_parse_icount(QemuOpts *opts, IcountOpts *icount, Error **errp)
{
    static const char *const record[] = { "rr", "rrfile", "rrsnapshot" };
    const char *shift = qemu_opt_get(opts, "shift");

    *icount = (IcountOpts){ 0 };
    if (!opts) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(record); i++) {
        if (qemu_opt_get(opts, record[i])) {
            error_setg(errp, "-icount %s=%s: there is no record and replay here; leave it out, a "
                             "run without input repeats by itself",
                       record[i], qemu_opt_get(opts, record[i]));
            return false;
        }
    }
    if (qemu_opt_get_bool(opts, "align", false)) {
        error_setg(errp, "-icount align=on: virtual time here never follows the host's clock; "
                         "leave it out");
        return false;
    }
    if (!shift) {
        error_setg(errp, "-icount: shift is missing; give shift=0 to shift=%d", MAX_SHIFT);
        return false;
    }
    icount->enabled = true;
    icount->sleep = qemu_opt_get_bool(opts, "sleep", true);
    return parse_shift(shift, &icount->shift, errp);
}

bool opts_parse_seed(const char *text, uint64_t *seed, Error **errp)
{
    if (qemu_parse_u64(text, 0, seed) < 0) {
        error_setg(errp, "-seed %s: must be a number from 0 to 18446744073709551615", text);
        return false;
    }
    return true;
}
