// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/lane.h"

#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 4096 /* spans of a lane; older ones are merged in pairs */

static bool contains(const struct interval *outer, const struct interval *inner)
{
	return outer->start <= inner->start && inner->end <= outer->end;
}

bool lane__fits(const struct lane *l, const struct interval *span)
{
	u32 i;

	/* An empty span fits anywhere: its begin and end are adjacent in the file and stay so when sorted. */
	if (span->start == span->end)
		return true;
	for (i = l->n; i-- > 0;) {
		const struct lane_span *s = &l->spans[i];

		if (s->interval.end <= span->start)
			return true;
		/* A span that ends where s begins does not fit: that begin would precede this end in the file. */
		if (s->interval.start > span->end)
			continue;
		if (contains(&s->interval, span))
			return s->is_leaf;
		if (s->interval.start <= span->start || s->interval.end > span->end)
			return false;
	}
	return true;
}

/* Merges the older half of the spans in pairs; their gaps then count as occupied. */
static void coarsen(struct lane *l)
{
	u32 i, half = l->n / 2 & ~1u;

	for (i = 0; i < half / 2; i++) {
		l->spans[i].interval.start = l->spans[2 * i].interval.start;
		l->spans[i].interval.end = l->spans[2 * i + 1].interval.end;
		l->spans[i].is_leaf = false;
	}
	memmove(l->spans + half / 2, l->spans + half, (l->n - half) * sizeof(*l->spans));
	l->n -= half / 2;
}

static int make_room(struct lane *l)
{
	if (l->n >= KEPT)
		coarsen(l);
	return array__room(l->spans, l->n) ? 0 : -ENOMEM;
}

int lane__add(struct lane *l, const struct interval *span)
{
	u32 after, first;

	if (span->start == span->end)
		return 0;
	if (make_room(l))
		return -ENOMEM;
	for (after = l->n; after && l->spans[after - 1].interval.start >= span->end; after--)
		;
	if (after && contains(&l->spans[after - 1].interval, span)) {
		l->spans[after - 1].is_leaf = false;
		return 0;
	}
	/* Spans [first, after) are inside the new one. */
	for (first = after; first && l->spans[first - 1].interval.start >= span->start; first--)
		;
	memmove(l->spans + first + 1, l->spans + after, (l->n - after) * sizeof(*l->spans));
	l->n = l->n - (after - first) + 1;
	l->spans[first] = (struct lane_span){ *span, first == after };
	return 0;
}

void lane__free(struct lane *l)
{
	free(l->spans);
	*l = (struct lane){ 0 };
}
