/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The time line of one GIL's holders, and the waits that are to be cut along it. For model/gil.c. */
#ifndef SONDE_MODEL_GIL_LINE_H
#define SONDE_MODEL_GIL_LINE_H

#include "model/gil.h"

/* Stretches of one GIL that are kept: waits that reach back further than that are cut short, as not seen. */
#define GIL_INTERVALS_MAX 16384u
/* How long waits are kept before they are cut, ns: what the holder did next may tell what it had been at. */
#define GIL_DELAY 50000000ull
/* Waits whose holder is yet to be told; more make the line go on with who was seen last. */
#define GIL_PENDING 65536u

struct gil_line;

struct gil_pending {
	u32 tid, stack;
	u64 start, end;
	u64 attempt, attempt_start;
	double weight;
};

/* NULL: no memory. gil must live as long. */
struct gil_line *gil_line__new(const struct gil_key *gil);
void gil_line__free(struct gil_line *l);

/* All: 0 or negative errno. Times do not go back, but for the start of holds. */
int gil_line__drop(struct gil_line *l, u64 time, u32 tid, u32 stack);
int gil_line__seen(struct gil_line *l, u64 time, u32 tid, u32 stack);
/* dropper: who let it go last, 0: not known */
int gil_line__take(struct gil_line *l, u64 time, u32 tid, u32 dropper);
/* From the first of these on, drops and takes tell nothing new. start 0: not known */
int gil_line__held(struct gil_line *l, u64 start, u64 end, u32 tid, u32 stack);
int gil_line__wait(struct gil_line *l, const struct gil_pending *wait);

/*
 * A thread begins to wait, at this stack. It can't have run Python code since it let go of the GIL: where it did that
 * without its stack being seen, this is the stack.
 */
void gil_line__waits_at(struct gil_line *l, u64 time, u32 tid, u32 stack);
/*
 * Hands over the pieces of the waits that the line has come past a while before now; all: also of those that it has
 * not, as good as that is known.
 */
int gil_line__cut(struct gil_line *l, u64 now, bool all, int (*fn)(const struct gil_segment *p, void *arg), void *arg);

#endif
