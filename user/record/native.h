/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Native stacks in a recording: unwinds what the BPF programs read of a thread (core/native.h), names the functions,
 * and writes new frames and functions into the trace. docs/sampling.md describes the method and its accuracy.
 */
#pragma once

#include "core/native.h"
#include "process/process.h"
#include "record/tables.h"

struct session;
struct native;

struct native_thread {
	const struct native_stack *raw;
	u32 size; /* number of bytes received */
	u32 pid, parent; /* as in mappings__at() */
	u64 time; /* ns */
	u32 python; /* the Python stack below the newest native frames; 0: none */
};

struct native *native__new(struct session *s);
void native__free(struct native *n);
/* Call it for all code mappings that may be looked up. */
void native__mapped(struct native *n, const struct mapping *m);
/* Returns the id of the whole stack, or t->python if there are no native frames. */
u32 native__stack(struct native *n, const struct native_thread *t);
/*
 * Returns the id of the function at one address in the trace; 0: none. *address becomes the offset in the mapped file.
 */
u32 native__function(struct native *n, u32 pid, u64 time, u64 *address);
/* Returns the trace's id of a coroutine's frame at a line of its function; 0: all ids are used up, or no memory. */
u32 native__coroutine(struct native *n, u32 caller, u32 code, u32 line);
void native__tick(struct native *n, u64 now);
/* Frees all caches. */
void native__trim(struct native *n);
void native__sizes(const struct native *n, table_size_fn *fn, void *arg);
