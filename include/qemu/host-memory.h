/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of the host in huge pages where it gives them. HELPER_ONLY; before the guest runs any thread may. */
#ifndef QEMU_HOST_MEMORY_H
#define QEMU_HOST_MEMORY_H

#include "qemu/compiler.h"

#define HOST_HUGE_PAGE (2 * MiB)

/*
 * size bytes aligned to HOST_HUGE_PAGE, zero and private, or (fd >= 0) the file's, shared if wished. To be given
 * back by munmap(). NULL with errno set.
 */
uint8_t *host_memory_map(uint64_t size, bool shared, int fd);
/* Touches every page now. False with errno set if the host has not that much. */
bool host_memory_touch(uint8_t *host, uint64_t size);
/*
 * For memory that has its pages, as it is locked or was touched: they stay as they are. khugepaged would replace small ones by
 * huge ones, and vCPUs that touch them would wait.
 */
void host_memory_settle(void *host, uint64_t size);

#endif
