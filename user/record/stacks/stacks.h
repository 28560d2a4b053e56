/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Turns raw records of frames and code (core/stack.h) into the events meta_frame and meta_code. */
#pragma once

#include "record/tables.h"

struct session;
struct stack_records;

struct stack_records *stack_records__new(void);
void stack_records__free(struct stack_records *st);
/* Handles a raw record of core/stack.h. */
void stack_records__record(struct session *s, const void *record, u32 size);
/* Called after the last record. */
void stack_records__finish(struct session *s);
/* A Python function in the trace */
struct stack_function {
	u32 id; /* 0: no memory */
	u32 source; /* see source_texts__file() */
};

/* Returns a Python function of a process that the BPF programs did not send. */
struct stack_function stack_records__function(struct session *s, u32 pid, const char *name, const char *file, u32 line);
/* A frame is in this line of the function. */
void stack_records__line(struct session *s, const struct stack_function *f, u32 line);
/*
 * A frame of a process is in this line of a source file, whose path the compiler or node wrote. built: see
 * source_file__check().
 */
void stack_records__source_line(struct session *s, u32 pid, const char *file, u32 line, u64 built);
/* Called at each tick: removes code objects if there are too many. */
void stack_records__tick(struct session *s, u64 now);
/* Removes all code objects, soon. */
void stack_records__trim(struct session *s, u64 now);
void stack_records__sizes(const struct stack_records *st, table_size_fn *fn, void *arg);
