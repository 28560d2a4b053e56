// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gil_slice_list.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/search.h"

/* The longest pause between two slices, ns: so far from the selected time may be a slice whose pause overlaps it. */
#define PAUSE_MAX 10000000000ull
/* A slice shorter than this part of the one before it does not represent the pause between them. */
#define SHORT_PART 8

static u64 slice_ns(const struct gil_measured *s)
{
	return s->to - s->from;
}

static int on_slices(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), pause);
	struct gil_slice_list *l = arg;

	ROWS_EACH(v, rows) {
		struct gil_measured s = { .from = (u64)view__s64(&v, f.start),
					  .to = (u64)view__s64(&v, f.time),
					  .pause = (u64)view__s64(&v, pause) };
		struct gil_measured *last = l->n ? &l->slices[l->n - 1] : NULL;

		/* sonde writes slices in order; others are ignored */
		if (s.from > s.to || (last && s.from < last->to))
			continue;
		/* a slice that was cut short does not represent the pause before it: the last slice does */
		if (last && SHORT_PART * slice_ns(&s) < slice_ns(last)) {
			last->pause_after += s.pause;
			s.pause = 0;
		}
		if (s.from == s.to && !s.pause)
			continue;
		if (!array__push(l->slices, l->n, s))
			return -ENOMEM;
	}
	return 0;
}

int gil_slice_list__read(struct gil_slice_list *l, struct trace *t, u64 from, u64 to, u64 margin)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(t), "gil_slice"), NULL };
	u64 around = PAUSE_MAX + margin;
	struct trace_filter slices = {
		.kinds = kinds,
		.from = from > around ? from - around : 0,
		.to = to && to + around > to ? to + around : 0,
	};

	*l = (struct gil_slice_list){ .from = from, .to = to };
	return kinds[0] ? trace__read(t, &slices, on_slices, l) : 0;
}

void gil_slice_list__free(struct gil_slice_list *l)
{
	free(l->slices);
}

u32 gil_slice_list__at(const struct gil_slice_list *l, u64 time)
{
	u32 at = SEARCH(l->n, i, l->slices[i].to < time);

	return at < l->n && l->slices[at].from <= time ? at + 1 : 0;
}

double gil_slice_list__weight(const struct gil_slice_list *l, u32 number)
{
	const struct gil_measured *s = number ? &l->slices[number - 1] : NULL;

	return s && slice_ns(s) ? 1 + (double)(s->pause + s->pause_after) / (double)slice_ns(s) : 1;
}

u64 gil_slice_list__selected_ns(const struct gil_slice_list *l, u64 from, u64 to)
{
	from = from > l->from ? from : l->from;
	to = l->to && to > l->to ? l->to : to;
	return to > from ? to - from : 0;
}

u64 gil_slice_list__paused(const struct gil_slice_list *l)
{
	u64 paused = 0;

	for (u32 i = 0; i < l->n; i++) {
		const struct gil_measured *s = &l->slices[i];

		paused += gil_slice_list__selected_ns(l, s->pause < s->from ? s->from - s->pause : 0, s->from);
		paused += gil_slice_list__selected_ns(l, s->to, s->to + s->pause_after);
	}
	return paused;
}
