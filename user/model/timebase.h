/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The relation of a trace's CLOCK_MONOTONIC and CLOCK_REALTIME: interpolated linearly between its clock snapshots. */
#pragma once

#include "trace/reader.h"

struct timebase {
	struct snapshot {
		u64 monotonic;
		s64 ahead; /* ns that CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
	} * list; /* by time */
	u32 n;
};

/* 0 or negative errno; -ENODATA: the trace has no snapshot. timebase__free in any case. */
int timebase__load(struct timebase *b, struct trace *t);
void timebase__free(struct timebase *b);
/* Returns the ns that CLOCK_REALTIME was ahead at that moment. */
s64 timebase__ahead(const struct timebase *b, u64 monotonic);
/* Returns the moment on CLOCK_MONOTONIC at which CLOCK_REALTIME was `realtime`. */
u64 timebase__monotonic(const struct timebase *b, u64 realtime);
