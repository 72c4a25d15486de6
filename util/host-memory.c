/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of the host in huge pages. */
#include "qemu/host-memory.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t *host_memory_map(uint64_t size, bool shared, int fd)
{
    uint64_t total = size + HOST_HUGE_PAGE;
    uint8_t *p = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    uint8_t *host = (uint8_t *)ROUND_UP((uintptr_t)p, (uintptr_t)HOST_HUGE_PAGE);
    int map = (fd < 0 ? MAP_ANONYMOUS : 0) | (shared ? MAP_SHARED : MAP_PRIVATE);
    /*
     * Where memory is locked (MCL_FUTURE) it gets its pages when it becomes writable: the wish for huge
     * ones comes before.
     */
    if (mmap(host, size, PROT_NONE, MAP_FIXED | MAP_NORESERVE | map, fd, 0) == MAP_FAILED ||
        (size >= HOST_HUGE_PAGE && madvise(host, size, MADV_HUGEPAGE) < 0 && errno != EINVAL) ||
        mprotect(host, size, PROT_READ | PROT_WRITE) < 0) {
        int saved = errno;
        munmap(p, total);
        errno = saved;
        return NULL;
    }
    if (host > p) {
        munmap(p, (size_t)(host - p));
    }
    munmap(host + size, (size_t)(p + total - (host + size)));
    return host;
}

bool host_memory_touch(uint8_t *host, uint64_t size)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(host, size, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    if (errno != EINVAL) {
        return false;
    }
#endif
    size_t step = (size_t)sysconf(_SC_PAGESIZE);
    for (uint64_t i = 0; i < size; i += step) {
        volatile uint8_t *p = host + i;
        *p = *p;
    }
    return true;
}

void host_memory_settle(void *host, uint64_t size)
{
    madvise(host, size, MADV_NOHUGEPAGE);
}
