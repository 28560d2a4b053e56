// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/off_cpu.h"

#include <errno.h>
#include <stdlib.h>

#include "model/sched_span.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

struct off_span {
	u64 start, end;
	u64 before; /* ns of all earlier spans of the thread */
};

struct off_thread {
	struct off_span *spans;
	u32 n;
};

static int add(struct off_cpu *o, u32 tid, u64 start, u64 end)
{
	struct off_thread *t = map__get(&o->threads, &tid);

	if (!t)
		return -ENOMEM;
	if (!array__push(t->spans, t->n, (struct off_span){ .start = start, .end = end }))
		return -ENOMEM;
	o->spans++;
	return 0;
}

static int on_off(const struct sched_span *s, void *arg)
{
	struct off_cpu *o = arg;

	return o->spans < OFF_CPU_MAX ? add(o, s->tid, s->start, s->end) : 0;
}

COMPARE_BY(compare, struct off_span, ASCENDING(start))

/* A thread's spans do not overlap, so sorting them by start sorts them by end, too. */
static void sort(struct off_thread *t)
{
	u64 sum = 0;

	if (t->n)
		qsort(t->spans, t->n, sizeof(*t->spans), compare);
	for (u32 i = 0; i < t->n; i++) {
		t->spans[i].before = sum;
		sum += t->spans[i].end - t->spans[i].start;
	}
}

int off_cpu__read(struct off_cpu *o, const struct query *args)
{
	int err;

	*o = (struct off_cpu){ 0 };
	map__init(&o->threads, sizeof(u32), sizeof(struct off_thread));
	err = sched_spans__read_off(args, 0, on_off, o);
	for (u32 i = 0; i < o->threads.n; i++)
		sort(map__value(&o->threads, i));
	o->is_known = o->spans && o->spans < OFF_CPU_MAX;
	return err;
}

/* Returns the ns off the CPU from the thread's first span to `time`. */
static u64 until(const struct off_thread *t, u64 time)
{
	u32 begun = SEARCH(t->n, i, t->spans[i].start < time);
	const struct off_span *s;

	if (!begun)
		return 0;
	s = &t->spans[begun - 1];
	return s->before + (time < s->end ? time : s->end) - s->start;
}

u64 off_cpu__inside(struct off_cpu *o, u32 tid, u64 start, u64 end)
{
	const struct off_thread *t = o->is_known ? map__find(&o->threads, &tid) : NULL;
	u64 ns = t && end > start ? until(t, end) - until(t, start) : 0;

	o->counted += ns;
	return ns;
}

void off_cpu__free(struct off_cpu *o)
{
	for (u32 i = 0; i < o->threads.n; i++)
		free(((struct off_thread *)map__value(&o->threads, i))->spans);
	map__free(&o->threads);
}
