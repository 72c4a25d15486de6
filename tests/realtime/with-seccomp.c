/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a program under a seccomp filter, as a container would.
 * usage: with-seccomp errno|kill|pretend CALL [rt] COMMAND...
 * "pretend": the call does nothing and reports success.
 * "rt" after sched_setscheduler: only for the policies SCHED_FIFO and SCHED_RR.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add_rules(scmp_filter_ctx ctx, uint32_t action, int call, int only_rt)
{
    /* Without SCHED_RESET_ON_FORK, which is a bit of the same argument. */
    const uint64_t mask = 0xff;

    if (!only_rt) {
        return seccomp_rule_add(ctx, action, call, 0);
    }
    return seccomp_rule_add(ctx, action, call, 1, SCMP_A1(SCMP_CMP_MASKED_EQ, mask, SCHED_FIFO)) ||
           seccomp_rule_add(ctx, action, call, 1, SCMP_A1(SCMP_CMP_MASKED_EQ, mask, SCHED_RR));
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: with-seccomp errno|kill|pretend CALL [rt] COMMAND...\n");
        return 2;
    }
    uint32_t action = strcmp(argv[1], "kill") == 0      ? SCMP_ACT_KILL_PROCESS
                      : strcmp(argv[1], "pretend") == 0 ? SCMP_ACT_ERRNO(0)
                                                        : SCMP_ACT_ERRNO(EPERM);
    int call = seccomp_syscall_resolve_name(argv[2]);
    int only_rt = !strcmp(argv[3], "rt");
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

    if (!ctx || call == __NR_SCMP_ERROR || add_rules(ctx, action, call, only_rt) != 0 ||
        seccomp_load(ctx) != 0) {
        fprintf(stderr, "cannot load the filter\n");
        return 77;
    }
    execvp(argv[3 + only_rt], argv + 3 + only_rt);
    perror(argv[3 + only_rt]);
    return 2;
}
