/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides which spans may share a track.
 *
 * Viewers treat the slices of a track as a stack: spans on it have to nest or be disjoint. Perfetto sorts begins and
 * ends by time alone and keeps the file's order among equal times. So where two spans touch, the one that ends must be
 * written first, and of two that begin together the outer one.
 */
#pragma once

#include "core/types.h"

struct interval {
	u64 start, end; /* ns */
};

/* A span on the lane that lies in no other. */
struct lane_span {
	struct interval interval;
	bool is_leaf; /* nothing was written inside it */
};

struct lane {
	struct lane_span *spans; /* by time, disjoint */
	u32 n;
};

/* May the span be written after all others of the lane? Never wrongly true; may be wrongly false for a nested span. */
bool lane__fits(const struct lane *l, const struct interval *span);
/* Adds a span that fits. Returns 0 or -ENOMEM. */
int lane__add(struct lane *l, const struct interval *span);
void lane__free(struct lane *l);
