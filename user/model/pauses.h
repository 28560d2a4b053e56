/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pauses of the recordings that a trace was merged of, or the times in which they did not measure the scheduler. A
 * moment is paused if every trace that was live then was.
 */
#pragma once

#include "trace/reader.h"

/* The recorded time of one of the merged traces, without regard to its pauses. */
struct input_times {
	u64 from, to; /* to 0: not known */
	u64 stop; /* when detaching began; 0: it was cut off */
	u32 last_pause; /* index + 1 */
};

struct input_pause {
	struct trace_window time;
	u32 input;
};

/* In this time `paused` of `live` traces were paused; 1 of 1: all. */
struct joint_pause {
	u64 from, to;
	u32 paused, live;
};

struct pauses {
	struct input_times *inputs; /* of a trace that was not merged: one */
	u32 n_inputs;
	struct input_pause *list;
	u32 n;
	bool is_full; /* pauses were joined because there were too many */
	struct joint_pause *joint; /* of all inputs together, by time, disjoint */
	u32 n_joint;
};

/* These add what an input's events state, and return 0 or -ENOMEM. */
int pauses__recorded(struct pauses *p, u16 input, u64 from, u64 to);
int pauses__stop(struct pauses *p, u16 input, u64 stop);
int pauses__add(struct pauses *p, u16 input, u64 from, u64 to);
/* Fills `joint`. of_any: also with times in which only some traces were paused. Call it once. 0 or -ENOMEM */
int pauses__join(struct pauses *p, bool of_any);
void pauses__free(struct pauses *p);
