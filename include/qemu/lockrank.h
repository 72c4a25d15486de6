/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one table of lock ranks. A thread may take a lock only if its rank is greater than that of
 * every lock it already holds; the rtcheck build asserts it. docs/devel/locking.md is generated
 * from and explains this table. Columns: name, number, what the lock guards.
 */
#ifndef QEMU_LOCKRANK_H
#define QEMU_LOCKRANK_H

/* clang-format off */
#define LOCK_RANK_TABLE(R)                                                                        \
    R(MONITOR,   10, "monitor sessions and the QMP dispatcher")                                   \
    R(RUNSTATE,  20, "run state of the machine: stop, cont, reset and shutdown requests")         \
    R(CPU_LIST,  25, "start, stop and work queues of vCPU threads")                               \
    R(COALESCED, 32, "KVM's ring of coalesced writes; its owner performs them on devices")         \
    R(BUS,       35, "list of children of a bus; never held across a device's handler")           \
    R(DEVICE,    40, "registers and state of one device instance")                                \
    R(DEVICE_LO, 45, "a device's second lock, or a device called by others under their own lock") \
    R(MEMMAP,    50, "edits of the guest-physical map (writers only)")                            \
    R(SLOTS,     52, "KVM's memory slots; vCPUs wait on it while slots are replaced")             \
    R(IRQ_ROUTE, 55, "levels that share one interrupt line: PIRQ links and ISA lines of a board") \
    R(IRQ_LINE,  57, "sources that share one GSI of a board")                                     \
    R(IRQ_PIC,   60, "the i8259 pair")                                                            \
    R(IRQ_IOAPIC,62, "I/O APIC redirection table")                                                \
    R(IRQ_APIC,  64, "local APIC: destination tables (registers are per-vCPU or atomic)")         \
    R(CHARDEV,   70, "a character back end's rings and front-end handlers")                       \
    R(CLOCK,     78, "the list of event loops; starts and stops of virtual time")                 \
    R(LOOP,      80, "timer heap and descriptor set of one event loop")                           \
    R(LOG,       90, "log ring")                                                                  \
    R(LEAF,      99, "taken last, nothing is called under it")
/* clang-format on */

typedef enum LockRank {
#define R(name, num, what) LOCK_RANK_##name = num,
    LOCK_RANK_TABLE(R)
#undef R
} LockRank;

#endif
