/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The time line of one GIL's holders, and the waits that are to be cut along it. For model/gil.c. */
#pragma once

#include "model/gil.h"

/* Stored intervals of one GIL. A wait that began before the first of them has an unknown holder until then. */
#define GIL_INTERVALS_MAX 16384u
/* ns that waits are stored before they are cut, because the holder's next event may have its stack. */
#define GIL_DELAY 50000000ull
/* Waits whose holder is not known yet. If there are more, the last known holder is assumed. */
#define GIL_PENDING 65536u

struct gil_line;

struct gil_pending {
	u32 tid, stack;
	u64 start, end;
	u64 attempt, attempt_start;
	bool estimated; /* the stack is that of another wait of the thread */
	double weight;
};

/* NULL: no memory. gil must live as long. */
struct gil_line *gil_line__new(const struct gil_key *gil);
void gil_line__free(struct gil_line *l);

/* All return 0 or negative errno. Times must not decrease, except for the start of holds. */
/* is_short: the stack represents those of the thread's holds without one */
int gil_line__drop(struct gil_line *l, u64 time, u32 tid, u32 stack, bool is_short);
int gil_line__seen(struct gil_line *l, u64 time, u32 tid, u32 stack);
/* dropper: the thread that dropped it last, 0: not known */
int gil_line__take(struct gil_line *l, u64 time, u32 tid, u32 dropper);
/* After the first hold, drops and takes add nothing, because holds are exact. start 0: not known */
int gil_line__held(struct gil_line *l, u64 start, u64 end, u32 tid, u32 stack);
int gil_line__wait(struct gil_line *l, const struct gil_pending *wait);

/*
 * A thread begins to wait with this stack. It can't have run Python code since it dropped the GIL, so this is also the
 * stack of that drop if that could not be read.
 */
void gil_line__waits_at(struct gil_line *l, u64 time, u32 tid, u32 stack);
/*
 * Cuts the waits that ended GIL_DELAY before `now` and calls fn for each segment. all: cuts the other waits, too, as
 * far as holders are known, and begins a new line.
 */
int gil_line__cut(struct gil_line *l, u64 now, bool all, int (*fn)(const struct gil_segment *p, void *arg), void *arg);
