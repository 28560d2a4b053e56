// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/timebase.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/compare.h"
#include "util/saturate.h"
#include "util/search.h"

static int add(struct timebase *b, u64 monotonic, u64 realtime)
{
	if (!monotonic || !realtime)
		return 0;
	if (!array__push(b->list, b->n, (struct snapshot){ monotonic, (s64)(realtime - monotonic) }))
		return -ENOMEM;
	return 0;
}

static int on_clocks(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, monotonic, realtime);
	int err = 0;

	for (u32 i = 0; !err && i < rows__count(rows); i++)
		err = add(arg, rows__u64(rows, monotonic, i), rows__u64(rows, realtime, i));
	return err;
}

COMPARE_BY(by_time, struct snapshot, ASCENDING(monotonic))

int timebase__load(struct timebase *b, struct trace *t)
{
	const struct trace_head *head = trace__head(t);
	int err;

	*b = (struct timebase){ 0 };
	err = add(b, head->monotonic, head->realtime);
	if (!err)
		err = trace__read_kind(t, "meta_clock", on_clocks, b);
	if (err)
		return err;
	qsort(b->list, b->n, sizeof(*b->list), by_time);
	return b->n ? 0 : -ENODATA;
}

void timebase__free(struct timebase *b)
{
	free(b->list);
}

s64 timebase__ahead(const struct timebase *b, u64 monotonic)
{
	u32 after = SEARCH(b->n, i, b->list[i].monotonic <= monotonic);
	const struct snapshot *x, *y;
	double drift;

	if (!after)
		return b->list[0].ahead;
	x = &b->list[after - 1];
	if (after == b->n)
		return x->ahead;
	y = &b->list[after];
	drift = ((double)y->ahead - (double)x->ahead) * (double)(monotonic - x->monotonic) /
		(double)(y->monotonic - x->monotonic);
	return (s64)((u64)x->ahead + (u64)saturate__s64(drift));
}

u64 timebase__monotonic(const struct timebase *b, u64 realtime)
{
	/* a clock that is set makes one step; for one that is slewed the second iteration is exact to less than a ns */
	u64 guess = realtime - (u64)b->list[0].ahead;

	for (int i = 0; i < 3; i++)
		guess = realtime - (u64)timebase__ahead(b, guess);
	return guess;
}
