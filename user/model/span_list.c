// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "model/span_list.h"
#include "util/array.h"
#include "util/search.h"

int span_list__add(struct span_list *l, const struct listed_span *span)
{
	if (!array__push(l->spans, l->n, *span))
		return -ENOMEM;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct listed_span *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

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

/* The span with this index, which is the first that ends after `time`, if it has begun */
static const struct listed_span *begun(const struct span_list *l, u32 i, u64 time, u64 *until)
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
	return begun(l, span_list__find(l, time), time, until);
}

const struct listed_span *span_list__next(struct span_list *l, u64 time, u64 *until)
{
	u32 i = l->near < l->n ? l->near : 0;

	if (i < l->n && l->spans[i].to <= time)
		i++;
	if ((i < l->n && l->spans[i].to <= time) || (i && l->spans[i - 1].to > time))
		i = span_list__find(l, time);
	l->near = i;
	return begun(l, i, time, until);
}

void span_list__free(struct span_list *l)
{
	free(l->spans);
	*l = (struct span_list){ 0 };
}
