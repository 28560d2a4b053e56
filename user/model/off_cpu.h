/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much of a span its thread was off the CPU, from the scheduler's spans of each thread. */
#pragma once

#include "model/query.h"

#define OFF_CPU_MAX (16u << 20) /* stored spans: 384 MiB; with more, nothing is known */

struct off_cpu {
	bool is_known; /* the trace has scheduler spans, and not too many */
	u64 counted; /* sum of the ns that off_cpu__inside returned */
	struct map threads; /* u32 tid -> struct off_thread */
	u32 spans;
};

/* 0 or negative errno; off_cpu__free in any case. */
int off_cpu__read(struct off_cpu *o, const struct query *args);
/* Returns the ns of [start, end) that the thread was off the CPU; 0 if that is not known. */
u64 off_cpu__inside(struct off_cpu *o, u32 tid, u64 start, u64 end);
void off_cpu__free(struct off_cpu *o);
