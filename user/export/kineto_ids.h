/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that connect the rows of one process in Kineto's form: the correlation id that a call of CUDA shares with its
 * work on the GPU, and the number of each operator ("External id"), which calls and work within it have, too. Rows are
 * written in the order of their ends, but an inner row needs the number of the row around it: so the numbers are read
 * from the trace before any row is written.
 */
#pragma once

#include "core/types.h"
#include "export/export.h"

struct kineto_op {
	u64 start, end;
	u32 tid;
	u32 number; /* from 1, in the order of the starts in all threads */
	u32 around; /* index plus one of the span around it; 0: none */
	bool is_range; /* of record_function and the like: no operator */
};

/* A call that launched work */
struct kineto_launch {
	u64 start;
	u32 tid, correlation;
	const char *function; /* as CUPTI names it; NULL: not known */
};

struct kineto_ids {
	struct kineto_op *ops; /* by thread and start; the outer one first */
	struct kineto_launch *launches; /* by thread and start */
	u32 n_ops, n_launches;
};

/* Reads them for process e->pid. 0 or negative errno; kineto_ids__free() in any case. */
int kineto_ids__load(struct kineto_ids *k, struct export *e);
void kineto_ids__free(struct kineto_ids *k);
/* Returns the number of an operator or range; 0: it has none. */
u32 kineto_ids__number(const struct kineto_ids *k, u32 tid, u64 start, u64 end);
/* Returns the number of the innermost operator of the thread at that time; 0: there is none. */
u32 kineto_ids__around(const struct kineto_ids *k, u32 tid, u64 time);
/* Returns the number of the next range around that time, the innermost first; *at is 0 at first. 0: no further one */
u32 kineto_ids__range(const struct kineto_ids *k, u32 tid, u64 time, u32 *at);
/* For trace_filter.in_windows */
bool kineto_ids__is_on_time_line(const struct schema_event *e);
/* Returns the launch that a thread's call with this start is; NULL: it is none whose work was recorded. */
const struct kineto_launch *kineto_ids__launch(const struct kineto_ids *k, u32 tid, u64 start);
