/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -object memory-backend-ram, -file, -memfd: host memory that a board or a DIMM uses as RAM. */
#ifndef MEMORY_BACKEND_H
#define MEMORY_BACKEND_H

#include "memory/memory.h"

/*
 * The memory of object id, which must have exactly size bytes; it is the caller's from now on (the
 * object can no longer be deleted, nor taken again). NULL + errp. HELPER_ONLY.
 */
RAMBlock *memory_backend_take(const char *id, uint64_t size, Error **errp);

#endif
