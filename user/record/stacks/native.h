/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Native stacks in a recording: unwinds what the BPF programs read of a thread (core/native.h), names the functions,
 * and writes new frames and functions into the trace. docs/sampling.md describes the method and its accuracy.
 */
#pragma once

#include "process/process.h"
#include "record/tables.h"

struct session;
struct native;

struct raw_frame;

/* Returns the recording's native stacks, which are created if necessary; NULL: no memory. */
struct native *native__of(struct session *s);
void native__free(struct native *n);
/* Call it for all code mappings that may be looked up. */
void native__mapped(struct native *n, const struct mapping *m);
/*
 * Returns the id of the function at one address in the trace; 0: none. *address becomes the offset in the mapped file.
 */
u32 native__function(struct native *n, u32 pid, u64 time, u64 *address);
/* Returns the trace's id of a coroutine's frame at a line of its function; 0: all ids are used up, or no memory. */
u32 native__coroutine(struct native *n, u32 caller, u32 code, u32 line);
/* A frame of a Python stack was written to the trace: its function and line there. */
void native__python(struct native *n, const struct raw_frame *r, u32 code, u32 line);
void native__tick(struct native *n, u64 now);
/* Writes what is known only when the recording ends. */
void native__finish(struct native *n);
/* Frees all caches. */
void native__trim(struct native *n);
void native__sizes(const struct native *n, table_size_fn *fn, void *arg);
