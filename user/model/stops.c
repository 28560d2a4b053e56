// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/stops.h"

#include <errno.h>

#include "model/sched_span.h"
#include "model/span_list.h"
#include "model/waits.h"

static int on_off(const struct sched_span *s, void *arg)
{
	struct stops *stops = arg;
	struct thread_key key = { s->pid, s->tid };
	struct span_list *l;

	if (s->state != SCHED_STOPPED && s->state != SCHED_TRACED && s->state != SCHED_FROZEN)
		return 0;
	l = map__get(&stops->threads, &key);
	return l ? span_list__add(l, &(struct listed_span){ .from = s->start, .to = s->wake }) : -ENOMEM;
}

int stops__read(struct stops *s, const struct query *q)
{
	int err;

	map__init(&s->threads, sizeof(struct thread_key), sizeof(struct span_list));
	err = sched_spans__read_off(q, SPAN_WHY, on_off, s);
	MAP_EACH(struct span_list *l, &s->threads)
		span_list__sort(l);
	return err;
}

u64 stops__ns(const struct stops *s, u32 pid, u32 tid, u64 from, u64 to)
{
	struct thread_key key = { pid, tid };
	const struct span_list *l = map__find(&s->threads, &key);
	u64 ns = 0;

	for (u32 i = l ? span_list__find(l, from) : 0; l && i < l->n && l->spans[i].from < to; i++) {
		u64 start = l->spans[i].from > from ? l->spans[i].from : from;
		u64 end = l->spans[i].to < to ? l->spans[i].to : to;

		ns += end > start ? end - start : 0;
	}
	return ns;
}

void stops__free(struct stops *s)
{
	MAP_EACH(struct span_list *l, &s->threads)
		span_list__free(l);
	map__free(&s->threads);
}
