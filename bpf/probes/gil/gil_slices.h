/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Host code that measures in slices of time where waits come too fast, see docs/gil.md. */
#pragma once

#include "record/family.h"

/* ns */
#define GIL_SLICE 90000000ULL /* less than a tick, so the next tick ends it */
#define GIL_PAUSE 1700000000ULL

struct gil_slices {
	bool slicing, watched;
	bool limited; /* --cost-limit decides when a slice begins and ends */
	u64 paused; /* ns: when measuring was paused; 0: it is not paused */
	u64 began, pause; /* ns: start of this slice, and length of the pause before it */
	u64 last_pause, last_pause_end; /* ns: the last pause that is over; 0: none */
	u64 next; /* ns: time of the next change */
	u32 number;
	u64 waits, holds; /* records drained since the start */
	u64 waits_before, holds_before, counted; /* the same at the last tick, and the time of that tick */
	u64 waits_at_start, holds_at_start; /* the same at the start of the slice */
	bool is_detached; /* the probes are, in this pause */
};

enum gil_slices_change { GIL_SLICES_AS_BEFORE, GIL_SLICES_PAUSED, GIL_SLICES_RESUMED };

/*
 * Restricts a record of a probe to the slice in which it began. The programs continue to record between the moment
 * that begins a pause and the moment at which they are informed of it. Returns false if the record began in a pause.
 */
bool gil_slices__cut(const struct gil_slices *g, struct event *e, u32 size);
void gil_slices__count(struct gil_slices *g, const struct event *e);
/* Has nothing been recorded in this slice? */
bool gil_slices__is_idle(const struct gil_slices *g);
/* watched: sched_waking is attached, so that the first wait need not wake the worker. */
void gil_slices__watched(struct gil_slices *g, struct session *s, bool watched);
/* Detaches and attaches the probes as the load requires. */
enum gil_slices_change gil_slices__tick(struct gil_slices *g, struct session *s, u64 now);
/*
 * A slice of --cost-limit begins or ends. If nothing of the family has run in it (is_idle), the probes stay attached in
 * the pause: they cost nothing.
 */
void gil_slices__set(struct gil_slices *g, struct session *s, bool measures, bool is_idle);
/* Ends slicing when the recording ends. */
void gil_slices__stop(struct gil_slices *g, struct session *s);
