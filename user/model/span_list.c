// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "model/span_list.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

int span_list__add(struct span_list *l, const struct listed_span *span)
{
	if (!array__push(l->spans, l->n, *span))
		return -ENOMEM;
	return 0;
}

COMPARE_BY(by_start, struct listed_span, ASCENDING(from), ASCENDING(to))

/* Overlaps are cut so that ends rise with starts, because a file is untrusted. */
void span_list__sort(struct span_list *l)
{
	bool ordered = true;
	u32 n = 0;

	for (u32 i = 1; ordered && i < l->n; i++)
		ordered = by_start(&l->spans[i - 1], &l->spans[i]) <= 0;
	if (!ordered)
		qsort(l->spans, l->n, sizeof(*l->spans), by_start);
	for (u32 i = 0; i < l->n; i++) {
		struct listed_span s = l->spans[i];

		if (n && s.from < l->spans[n - 1].to)
			s.from = l->spans[n - 1].to;
		if (s.from < s.to)
			l->spans[n++] = s;
	}
	l->n = n;
}

void span_list__drop_before(struct span_list *l, u64 time)
{
	u32 n = 0;

	for (u32 i = 0; i < l->n; i++)
		if (l->spans[i].to > time)
			l->spans[n++] = l->spans[i];
	l->n = n;
}

u32 span_list__find(const struct span_list *l, u64 time)
{
	return SEARCH(l->n, i, l->spans[i].to <= time);
}

/*
 * Returns span i, the first that ends after `time`, or NULL if it has not begun by then; lowers *until to the time at
 * which the answer changes.
 */
static const struct listed_span *find_begun(const struct span_list *l, u32 i, u64 time, u64 *until)
{
	const struct listed_span *s = i < l->n ? &l->spans[i] : NULL;

	if (!s)
		return NULL;
	if (s->from > time) {
		*until = s->from < *until ? s->from : *until;
		return NULL;
	}
	*until = s->to < *until ? s->to : *until;
	return s;
}

const struct listed_span *span_list__at(const struct span_list *l, u64 time, u64 *until)
{
	return find_begun(l, span_list__find(l, time), time, until);
}

const struct listed_span *span_list__next(struct span_list *l, u64 time, u64 *until)
{
	u32 i = l->last_found < l->n ? l->last_found : 0;

	if (i < l->n && l->spans[i].to <= time)
		i++;
	if ((i < l->n && l->spans[i].to <= time) || (i && l->spans[i - 1].to > time))
		i = span_list__find(l, time);
	l->last_found = i;
	return find_begun(l, i, time, until);
}

void span_list__free(struct span_list *l)
{
	free(l->spans);
	*l = (struct span_list){ 0 };
}
