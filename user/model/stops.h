/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When threads were stopped by a signal or a tracer, or frozen: none of this time is a wait for what they wait for. */
#pragma once

#include "model/query.h"

struct stops {
	struct map threads; /* struct thread_key -> struct span_list */
};

/* Reads those of the selected time and processes. 0 or negative errno; free anyway. */
int stops__read(struct stops *s, const struct query *q);
/* Returns the ns of [from, to) in which the thread was stopped. */
u64 stops__ns(const struct stops *s, u32 pid, u32 tid, u64 from, u64 to);
void stops__free(struct stops *s);
