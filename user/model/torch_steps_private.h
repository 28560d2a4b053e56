/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by torch_steps.c, torch_phases.c and torch_forward.c. */
#pragma once

#include "model/torch_steps.h"

/* How a step was marked; if a thread has several kinds, the last of these counts. */
enum torch_marked {
	MARKED_NOT, /* the mark is a phase */
	MARKED_BY_PROGRAM, /* record_function("ProfilerStep#3"), as torch.profiler marks steps */
	MARKED_BY_RECORDING, /* event torch_step */
};

/* A phase that the trace has: a range, or a backward pass; or a whole step */
struct torch_mark {
	u32 pid, tid;
	u64 start, end;
	enum torch_phase phase;
	u32 range; /* number of the range's text; 0: a backward pass */
	bool is_step; /* an optimizer's step, which ends steps */
	enum torch_marked marked;
	u64 number; /* of a marked step */
};

struct torch_marks {
	struct torch_mark *list; /* by pid, tid and start */
	u32 n;
	u64 dropped; /* phases beyond those that are read */
	struct map texts; /* model/texts.h: names of ranges */
	struct map passes; /* of torch_phases.c: backward passes that may go on */
};

/* The operator or range of a gap that was read last. Those of one parent are read in order of their ends. */
struct torch_last {
	u64 end; /* 0: there was none */
	u64 parent; /* start of the range around it; 0: there is none */
};

/*
 * A part of a step between phases. The time from its first to its last operator is of this phase. Without an operator
 * all of it is of the backward pass if it lies between two parts of a pass.
 */
struct torch_gap {
	u64 start, end;
	u64 first, last; /* 0: it has no operator */
	struct torch_last outer[2]; /* of those in no other operator; the second: in a range */
	enum torch_phase phase;
	bool is_in_pass; /* nodes ran right before and after it */
};

struct torch_gaps {
	struct torch_gap *list;
	u32 n;
};

/* torch_phases.c: reads the ranges and backward passes. 0 or negative errno; torch_marks__free in any case. */
int torch_marks__read(struct torch_marks *m, const struct query *q);
void torch_marks__free(struct torch_marks *m);

/* torch_forward.c: reads the operators; sums them, by gap and by step. 0 or negative errno. */
int torch_forward__read(struct torch_steps *s, struct torch_gaps *gaps);
