// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// test: smoke
/*
 * Plays back the spans that lane__fits accepts, as Perfetto does: starts and ends in order of time (in the file's order
 * if the times are equal), with a stack of open spans. Every span must get its own length.
 */
#include <stdlib.h>

#include "export/lane.h"
#include "test.h"

#define SPANS 12

struct edge {
	u64 time;
	u32 order, span;
	bool begins;
};

static int compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Returns the number of spans that get a wrong length. */
static u32 play(const struct interval *spans, u32 n)
{
	struct edge edges[2 * SPANS] = { 0 };
	u32 stack[SPANS], depth = 0, wrong = 0;

	for (u32 i = 0; i < n; i++) {
		edges[2 * i] = (struct edge){ spans[i].start, 2 * i, i, true };
		edges[2 * i + 1] = (struct edge){ spans[i].end, 2 * i + 1, i, false };
	}
	qsort(edges, 2 * n, sizeof(*edges), compare);
	for (u32 i = 0; i < 2 * n; i++) {
		const struct interval *top;

		if (edges[i].begins) {
			stack[depth++] = edges[i].span;
			continue;
		}
		if (!depth)
			return n;
		top = &spans[stack[--depth]];
		wrong += top->end != edges[i].time;
	}
	return wrong;
}

TEST(random_spans_keep_their_lengths)
{
	u32 wrong = 0, on = 0, off = 0;
	u64 state = 1;

	for (u32 round = 0; round < 200000; round++) {
		struct interval spans[SPANS], span;
		struct lane l = { 0 };
		u32 n = 0;

		for (u32 i = 0; i < SPANS; i++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			span.start = state >> 33 & 7;
			span.end = span.start + (state >> 40 & 7);
			if (!lane__fits(&l, &span)) {
				off++;
				continue;
			}
			on++;
			spans[n++] = span;
			if (lane__add(&l, &span))
				wrong++;
		}
		wrong += play(spans, n);
		lane__free(&l);
	}
	CHECK(!wrong && on > 100000 && off > 100000);
}

static bool fits(struct lane *l, u64 start, u64 end)
{
	struct interval span = { start, end };

	return lane__fits(l, &span) && !lane__add(l, &span);
}

TEST(spans_that_touch)
{
	struct lane l = { 0 };

	/* accepted: a span that starts at the end of an earlier one */
	CHECK(fits(&l, 10, 20) && fits(&l, 20, 30));
	/* refused: a span that ends at the start of an earlier one */
	CHECK(!fits(&l, 5, 10));
	/* accepted: a span that encloses both and ends with the second */
	CHECK(fits(&l, 9, 30));
	/* refused: a longer span with the same start */
	CHECK(!fits(&l, 9, 31));
	/* refused: a span within one that encloses others */
	CHECK(!fits(&l, 12, 13));
	/* accepted: an empty span at any time */
	CHECK(fits(&l, 12, 12));
	/* accepted: a span within one that encloses none */
	CHECK(fits(&l, 40, 50) && fits(&l, 40, 45));
	lane__free(&l);
}

/* A long-lived lane: its memory is bounded, and a call around all of it fits. */
TEST(many_spans_in_bounded_memory)
{
	struct lane l = { 0 };
	u32 n = 0;

	for (u64 i = 1; i <= 100000; i++)
		n += fits(&l, 10 * i, 10 * i + 5);
	/* 100,000 spans one after the other */
	CHECK(n == 100000 && l.n <= 4096);
	/* refused: a span that starts in a gap that is no longer stored */
	CHECK(!fits(&l, 15, 2000000));
	/* accepted: a span that encloses all */
	CHECK(fits(&l, 9, 2000000));
	lane__free(&l);
}

TEST_MAIN()
