/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Host code that measures in slices of time where waits come too fast, see docs/gil.md. */
#pragma once

#include "record/family.h"

/* ns */
#define GIL_SLICE 90000000ULL /* less than a tick, so the next tick ends it */
#define GIL_PAUSE 1700000000ULL

struct gil_slices {
	bool slicing, watched;
	u64 paused; /* ns: when measuring was paused; 0: it is not paused */
	u64 began, pause; /* ns: start of this slice, and length of the pause before it */
	u64 next; /* ns: time of the next change */
	u32 number;
	u64 waits, holds; /* records drained since the start */
	u64 waits_before, holds_before, counted; /* the same at the last tick, and the time of that tick */
	u64 waits_at_start;
};

enum gil_slices_change { GIL_SLICES_AS_BEFORE, GIL_SLICES_PAUSED, GIL_SLICES_RESUMED };

void gil_slices__count(struct gil_slices *g, const struct event *e);
/* watched: sched_waking is attached, so that the first wait need not wake the loader. */
void gil_slices__watched(struct gil_slices *g, struct session *s, bool watched);
/* Detaches and attaches the probes as the load requires. */
enum gil_slices_change gil_slices__tick(struct gil_slices *g, struct session *s, u64 now);
/* Ends slicing when the recording ends. */
void gil_slices__stop(struct gil_slices *g, struct session *s);
