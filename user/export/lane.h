/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which spans may share a track.
 *
 * Viewers take the slices of a track for a stack: spans that share one have to nest or be apart. Perfetto also sorts
 * begins and ends by time alone, and keeps the file's order among equal times. So of two spans that touch, the one that
 * ends has to be written before the one that begins, and of two that begin at one moment the outer one.
 */
#ifndef SONDE_EXPORT_LANE_H
#define SONDE_EXPORT_LANE_H

#include "core/types.h"

struct interval {
	u64 start, end; /* ns */
};

/* Spans written on the lane, without those that lie inside others. */
struct lane_span {
	struct interval at;
	bool is_leaf; /* nothing was written inside it */
};

struct lane {
	struct lane_span *spans; /* by time, disjoint */
	u32 n;
};

/* May the span be written behind all that is on the lane? Never wrongly true; may be false for a span inside another. */
bool lane__fits(const struct lane *l, const struct interval *span);
/* Puts a span that fits on the lane. 0 or -ENOMEM. */
int lane__add(struct lane *l, const struct interval *span);
void lane__free(struct lane *l);

#endif
