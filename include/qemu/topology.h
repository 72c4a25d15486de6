/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a machine's CPUs are arranged: the result of -smp. */
#ifndef QEMU_TOPOLOGY_H
#define QEMU_TOPOLOGY_H

/* sockets * dies * cores * threads == maxcpus >= cpus >= 1. */
typedef struct SmpTopology {
    unsigned cpus, maxcpus, sockets, dies, cores, threads;
} SmpTopology;

#endif
