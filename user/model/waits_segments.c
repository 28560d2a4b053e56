// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which of a thread's open spans counts at each moment. */
#include "model/waits_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/search.h"

#define NONE (~0u)

static int by_start(const void *a, const void *b)
{
	const struct wait_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* the inner span last */
	return x->end > y->end ? -1 : x->end < y->end;
}

/* The spans of a thread that are open at a moment, which only advances */
struct open_spans {
	const struct thread_waits *thread;
	u32 next; /* index of the first span that has not begun */
	/*
	 * For each rank, and each value of wait_span.uninterruptible, the head of a list of spans, the last begun
	 * first; NONE: the list is empty. A span stays in its list after its end until top_at() removes it.
	 */
	u32 top[RANKS][2];
	u32 *below; /* for each span: the next one in its list */
};

static void open_span(struct open_spans *o)
{
	const struct wait_span *s = &o->thread->spans[o->next];
	u32 *top = &o->top[s->rank][s->uninterruptible];

	o->below[o->next] = *top;
	*top = o->next++;
}

/* Returns the head of a list after removing ended spans from it. */
static u32 top_at(struct open_spans *o, u32 rank, u32 uninterruptible, u64 time)
{
	u32 *top = &o->top[rank][uninterruptible];

	while (*top != NONE && o->thread->spans[*top].end <= time)
		*top = o->below[*top];
	return *top;
}

/*
 * Returns the span that counts at `time`: of the highest rank, and of these the last begun. Includes spans that count
 * only while the thread is uninterruptible if is_uninterruptible is true.
 */
static u32 best_at(struct open_spans *o, bool is_uninterruptible, u64 time)
{
	for (u32 rank = RANKS; rank-- > 0;) {
		u32 any = top_at(o, rank, 0, time), other = is_uninterruptible ? top_at(o, rank, 1, time) : NONE;

		if (any == NONE || (other != NONE && other > any))
			any = other;
		if (any != NONE)
			return any;
	}
	return NONE;
}

static int add_segment(struct thread_waits *t, u64 from, const u32 best[2])
{
	struct wait_segment segment = { .from = from, .span = { best[0] + 1, best[1] + 1 } };

	if (t->n_segments && !memcmp(t->segments[t->n_segments - 1].span, segment.span, sizeof(segment.span)))
		return 0;
	return array__push(t->segments, t->n_segments, segment) ? 0 : -ENOMEM;
}

/* Cuts segments where a span begins and where the span that counts ends. */
static int cut_segments(struct thread_waits *t, struct open_spans *o)
{
	u64 time = t->n ? t->spans[0].start : 0;
	int err = 0;

	while (!err && time != ~0ull) {
		u32 best[2];

		while (o->next < t->n && t->spans[o->next].start <= time)
			open_span(o);
		for (u32 i = 0; i < 2; i++)
			best[i] = best_at(o, i, time);
		err = add_segment(t, time, best);
		time = o->next < t->n ? t->spans[o->next].start : ~0ull;
		for (u32 i = 0; i < 2; i++)
			if (best[i] != NONE && t->spans[best[i]].end < time)
				time = t->spans[best[i]].end;
	}
	return err;
}

void thread_waits__sort(struct thread_waits *t)
{
	struct open_spans o = { .thread = t, .below = calloc(t->n, sizeof(*o.below)) };

	bool ordered = true;

	memset(o.top, 0xff, sizeof(o.top));
	t->n_segments = t->begun = 0;
	for (u32 i = 1; ordered && i < t->n; i++)
		ordered = by_start(&t->spans[i - 1], &t->spans[i]) <= 0;
	if (!ordered)
		qsort(t->spans, t->n, sizeof(*t->spans), by_start);
	t->failed = !o.below || cut_segments(t, &o);
	t->sorted = true;
	free(o.below);
}

/* Returns how many segments begin at `at` or before. */
static u32 count_begun(struct thread_waits *t, u64 at)
{
	u32 n = t->begun;

	if (n < t->n_segments && t->segments[n].from <= at)
		n++;
	if ((n && t->segments[n - 1].from > at) || (n < t->n_segments && t->segments[n].from <= at))
		n = SEARCH(t->n_segments, i, t->segments[i].from <= at);
	return n;
}

const struct wait_span *thread_waits__at(struct thread_waits *t, bool uninterruptible, u64 at, u64 *until)
{
	u32 n = t->begun = count_begun(t, at);
	u32 span = n ? t->segments[n - 1].span[uninterruptible] : 0;

	if (n < t->n_segments && t->segments[n].from < *until)
		*until = t->segments[n].from;
	return span ? &t->spans[span - 1] : NULL;
}
