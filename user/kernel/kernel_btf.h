/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel functions and tracepoints that programs attach to, from the running kernel's BTF. It is read once, at
 * the first request.
 */
#pragma once

#include "core/types.h"

struct btf;

/* Begins to read in a thread; the first request waits for it. Without this call the first request reads. */
void kernel_btf__begin(void);
/* Does the kernel publish its types at all? */
bool kernel_btf__exists(void);
/* All types of the kernel, until kernel_btf__free_types(). NULL: there are none, or no memory. */
const struct btf *kernel_btf__types(void);
void kernel_btf__free_types(void);
/* The BTF id that a tp_btf program of this tracepoint attaches to; 0: the kernel has no such tracepoint. */
u32 kernel_btf__tracepoint(const char *name);
/* The BTF id of a function of the kernel, of those that kernel_btf.c lists; 0: none. */
u32 kernel_btf__function(const char *name);
/* The BTF id of an iterator, by the name of its objects ("task"); 0: none. */
u32 kernel_btf__iterator(const char *name);
