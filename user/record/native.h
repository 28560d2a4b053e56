/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Native stacks in a recording: unwinds what BPF took of a thread (core/native.h), names
 * the functions, and writes the frames and functions that are new into the trace.
 * docs/sampling.md says how and how well.
 */
#ifndef SONDE_RECORD_NATIVE_H
#define SONDE_RECORD_NATIVE_H

#include "core/native.h"
#include "process/process.h"
#include "record/tables.h"

struct session;
struct native;

struct native_thread {
	const struct native_stack *raw;
	u32 size; /* bytes of it that came */
	u32 pid, parent; /* as in mappings__at() */
	u64 time; /* ns */
	u32 python; /* the Python stack that the newest native frames continue; 0: none */
};

struct native *native__new(struct session *s);
void native__free(struct native *n);
/* A process maps code: call it for all mappings that may be looked up. */
void native__mapped(struct native *n, const struct mapping *m);
/* The id of the whole stack, t->python if there are no native frames. */
u32 native__stack(struct native *n, const struct native_thread *t);
/*
 * Of one address: the id of the function in the trace, 0: none. *address becomes the offset in the file that
 * is mapped there.
 */
u32 native__function(struct native *n, u32 pid, u64 time, u64 *address);
void native__tick(struct native *n, u64 now);
/* Gives up all memory of what can be found again. */
void native__trim(struct native *n);
void native__sizes(const struct native *n, table_size_fn *fn, void *arg);

#endif
