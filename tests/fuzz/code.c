/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes as instructions, for the decoder in its three modes. */
#include "accel/tcg/engine.h"
#include "fuzz.h"
#include "tests/unit/interp-vm.h"

static Vm *vm;

static void decode_init(const FuzzTarget *t)
{
    vm = vm_cpu(0);
    vm_reset_long(vm);
}

/* A byte for the mode, then code. Each instruction with all the bytes it may have, and with fewer. */
static void decode_run(const uint8_t *data, size_t size)
{
    static const uint32_t modes[] = {
        0, MODE_PE, MODE_PE | MODE_CS32 | MODE_FLAT, MODE_PE | MODE_CS64, MODE_PE | MODE_VM86,
        MODE_PE | MODE_CS32,
    };
    FuzzIn in = { data, size };
    uint32_t mode = modes[fuzz_take(&in, 1) % ARRAY_SIZE(modes)];
    TcgEngine *g = vm->c->tcg->engine;

    while (in.left) {
        unsigned most = (unsigned)MIN(in.left, INSN_MAX_LEN), len = 0;

        for (unsigned avail = 1; avail <= most; avail++) {
            g_autofree uint8_t *bytes = g_memdup2(in.p, avail);
            Insn out[2];
            int r = tcg_decode_one(vm->c, g, mode, bytes, avail, 0x1000, 0, out);

            fuzz_check(r == DECODE_OK || avail < INSN_MAX_LEN, "15 bytes are not enough");
            if (r == DECODE_OK) {
                fuzz_check(out->fn && out->len && out->len <= avail, "an instruction of %u bytes of %u",
                           out->len, avail);
                len = len ? len : out->len;
            }
        }
        len = len ? len : most;
        in.p += len;
        in.left -= len;
    }
}

const FuzzTarget fuzz_code[] = { { "decode", decode_init, decode_run }, {} };
