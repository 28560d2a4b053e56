/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the running kernel's BTF says of the places that programs attach to. It is read once, at the first question. */
#ifndef SONDE_KERNEL_KERNEL_BTF_H
#define SONDE_KERNEL_KERNEL_BTF_H

#include "core/types.h"

struct btf;

/* Begins to read them, in a thread; the first question waits for it. Without this the first question reads them. */
void kernel_btf__begin(void);
/* Does the kernel publish its types at all? */
bool kernel_btf__exists(void);
/* All of the kernel's types, which are the caller's to free. NULL: there are none, or no memory. */
struct btf *kernel_btf__take(void);
/* The BTF id that a tp_btf program of this tracepoint attaches to, 0: the kernel has no such tracepoint. */
u32 kernel_btf__tracepoint(const char *name);
/* Likewise of an iterator, by the name of what it walks ("task"). */
u32 kernel_btf__iterator(const char *name);

#endif
