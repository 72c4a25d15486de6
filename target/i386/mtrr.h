/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory type range registers, private to target/i386. */
#ifndef TARGET_I386_MTRR_H
#define TARGET_I386_MTRR_H

#include "target/i386/cpu.h"

/* VCPU thread. True if index is an MTRR's; *ok is then false for #GP. */
bool x86_mtrr_read(const X86CPU *c, uint32_t index, uint64_t *value);
bool x86_mtrr_write(X86CPU *c, uint32_t index, uint64_t value, bool *ok);
/* IA32_PAT: eight types, each of those the SDM allows. */
bool x86_pat_valid(uint64_t value);

#endif
