/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measuring in slices of time where waits come too fast; host code, see docs/gil.md. */
#ifndef SONDE_GIL_SLICES_H
#define SONDE_GIL_SLICES_H

#include "record/family.h"

/* ns */
#define GIL_SLICE 90000000ULL /* less than a tick: the next one ends it */
#define GIL_PAUSE 1700000000ULL

struct gil_slices {
	bool slicing, watched;
	u64 paused; /* ns: since when nothing is measured; 0: it is */
	u64 began, pause; /* ns: this slice, and the pause before it */
	u64 next; /* ns: not before */
	u32 number;
	u64 waits, holds; /* drained, ever */
	u64 waits_before, holds_before, counted; /* at the last tick, and when that was */
	u64 waits_at_start;
};

enum gil_slices_change { GIL_SLICES_AS_BEFORE, GIL_SLICES_PAUSED, GIL_SLICES_RESUMED };

void gil_slices__count(struct gil_slices *g, const struct event *e);
/* Is sched_waking attached, so that the first wait does not have to wake the loader? */
void gil_slices__watched(struct gil_slices *g, struct session *s, bool watched);
/* Takes the probes off and puts them on as need be. */
enum gil_slices_change gil_slices__tick(struct gil_slices *g, struct session *s, u64 now);
/* Recording ends. */
void gil_slices__stop(struct gil_slices *g, struct session *s);

#endif
