// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/pauses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/compare.h"

/*
 * Three hours of steps of 20 ms of which each second one is recorded, or a day of slices of time; 20 MB. Further pauses
 * are joined with the last one of their trace.
 */
#define PAUSES_MAX (1u << 18)

/* At this time the number of traces that are being recorded, and of those that are paused, changes. */
struct edge {
	u64 time;
	int recorded, paused;
};

static struct input_times *input_of(struct pauses *p, u16 input)
{
	while (p->n_inputs <= input)
		if (!array__push(p->inputs, p->n_inputs, (struct input_times){ .from = ~0ull }))
			return NULL;
	return &p->inputs[input];
}

static void widen(struct input_times *in, u64 from, u64 to)
{
	in->from = from < in->from ? from : in->from;
	in->to = to > in->to ? to : in->to;
}

int pauses__recorded(struct pauses *p, u16 input, u64 from, u64 to)
{
	struct input_times *in = input_of(p, input);

	if (!in)
		return -ENOMEM;
	widen(in, from, to);
	return 0;
}

int pauses__stop(struct pauses *p, u16 input, u64 stop)
{
	struct input_times *in = input_of(p, input);

	if (!in)
		return -ENOMEM;
	in->stop = stop;
	return 0;
}

int pauses__add(struct pauses *p, u16 input, u64 from, u64 to)
{
	struct input_times *in = input_of(p, input);
	struct trace_window *last;

	if (!in)
		return -ENOMEM;
	if (from >= to)
		return 0;
	/* a trace that was cut off may end with a pause, and one that was never live is nothing but a pause */
	widen(in, from, to);
	/* a pause is written in parts */
	last = in->last_pause ? &p->list[in->last_pause - 1].time : NULL;
	p->is_full |= p->n >= PAUSES_MAX && last && from > last->to;
	if (last && (from <= last->to || p->n >= PAUSES_MAX) && from >= last->from) {
		last->to = to > last->to ? to : last->to;
		return 0;
	}
	if (p->n >= PAUSES_MAX)
		return 0;
	if (!array__push(p->list, p->n, (struct input_pause){ { from, to }, input }))
		return -ENOMEM;
	in->last_pause = p->n;
	return 0;
}

COMPARE_BY(by_input, struct input_pause, ASCENDING(input), ASCENDING(time.from))

COMPARE_BY(by_time, struct edge, ASCENDING(time))

static u32 add_edges(struct edge *edges, u64 from, u64 to, int recorded, int paused)
{
	if (from >= to)
		return 0;
	edges[0] = (struct edge){ from, recorded, paused };
	edges[1] = (struct edge){ to, -recorded, -paused };
	return 2;
}

/* Adds the edges of the recorded time of all inputs, and of their pauses within it. Returns their number. */
static u32 all_edges(struct pauses *p, struct edge *edges)
{
	u64 end = 0;
	u32 n = 0;

	if (p->n)
		qsort(p->list, p->n, sizeof(*p->list), by_input);
	for (u32 i = 0; i < p->n_inputs; i++)
		n += add_edges(edges + n, p->inputs[i].from, p->inputs[i].stop ? p->inputs[i].stop : p->inputs[i].to, 1,
			       0);
	for (u32 i = 0; i < p->n; i++) {
		const struct input_times *in = &p->inputs[p->list[i].input];
		u64 limit = in->stop ? in->stop : in->to, from = p->list[i].time.from, to = p->list[i].time.to;

		/* pauses of one trace that overlap count once */
		if (!i || p->list[i - 1].input != p->list[i].input)
			end = 0;
		from = from > end ? from : end;
		to = to < limit ? to : limit;
		n += add_edges(edges + n, from, to, 0, 1);
		end = to > end ? to : end;
	}
	return n;
}

static int add_joint(struct pauses *p, struct joint_pause j)
{
	struct joint_pause *last = p->n_joint ? &p->joint[p->n_joint - 1] : NULL;

	if (j.paused >= j.live)
		j.paused = j.live = 1;
	if (last && last->to == j.from && last->paused == j.paused && last->live == j.live)
		last->to = j.to;
	else if (!array__push(p->joint, p->n_joint, j))
		return -ENOMEM;
	return 0;
}

int pauses__join(struct pauses *p, bool of_any)
{
	struct edge *edges;
	int recorded = 0, paused = 0, err = 0;
	u32 n;

	if (!p->n)
		return 0;
	edges = calloc(2 * ((size_t)p->n_inputs + p->n), sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	n = all_edges(p, edges);
	qsort(edges, n, sizeof(*edges), by_time);
	for (u32 i = 0; !err && i + 1 < n; i++) {
		recorded += edges[i].recorded;
		paused += edges[i].paused;
		if (paused && (of_any || paused >= recorded) && edges[i].time < edges[i + 1].time)
			err = add_joint(p, (struct joint_pause){ edges[i].time, edges[i + 1].time, (u32)paused,
								 (u32)recorded });
	}
	free(edges);
	return err;
}

void pauses__free(struct pauses *p)
{
	free(p->inputs);
	free(p->list);
	free(p->joint);
	memset(p, 0, sizeof(*p));
}
