/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SIGBUS: a page of guest RAM that the host promised and cannot provide. The file of a back end was
 * made shorter, its file system is full, huge pages ran out, or the host's memory is broken. There is
 * nothing to give the guest instead, so that is the end, but one that says why.
 */
#include <signal.h>
#include <string.h>
#include "memory-internal.h"
#include "qemu/os.h"

/* printf() is not for signal handlers. */
typedef struct Text {
    char buf[512];
    size_t len;
} Text;

static void add(Text *t, const char *s)
{
    for (; *s && t->len < sizeof(t->buf) - 2; s++) {
        t->buf[t->len++] = *s;
    }
}

static void add_hex(Text *t, uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    digits[--n] = '\0';
    do {
        digits[--n] = "0123456789abcdef"[v & 15];
        v >>= 4;
    } while (v);
    add(t, "0x");
    add(t, digits + n);
}

static const char *reason(const siginfo_t *info)
{
#ifdef BUS_MCEERR_AR
    if (info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO) {
        return "the memory of the host is broken there; see the host's kernel log\n";
    }
#endif
    return "the file system of its file is full, its file was made shorter, or the host has no more "
           "huge pages; free some, or give the object prealloc=on, so that it is taken at start\n";
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    const RAMBlock *b = info->si_code > 0 ? ram_block_of_host(info->si_addr) : NULL;
    const char *objects = "/objects/";
    Text t = { .len = 0 };

    if (!b) {
        signal(SIGBUS, SIG_DFL); /* not of ours: what is done again when this returns ends it */
        return;
    }
    add(&t, error_get_progname());
    add(&t, ": memory backend '");
    add(&t, b->idstr + (strncmp(b->idstr, objects, strlen(objects)) ? 0 : strlen(objects)));
    add(&t, "': the host cannot provide the page at offset ");
    add_hex(&t, (uint64_t)((const uint8_t *)info->si_addr - b->host) & ~(uint64_t)0xfff);
    add(&t, ": ");
    add(&t, reason(info));
    os_end_at_once(t.buf);
}

void ram_fault_init(void)
{
    struct sigaction sa = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER };

    sigaction(SIGBUS, &sa, NULL);
}
