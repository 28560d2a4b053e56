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

/* What overlaps is cut, so that ends rise with starts: a file may hold anything. */
void span_list__sort(struct span_list *l)
{
	u32 n = 0;

	if (l->n)
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

u32 span_list__find(const struct span_list *l, u64 time)
{
	return SEARCH(l->n, i, l->spans[i].to <= time);
}

const struct listed_span *span_list__at(const struct span_list *l, u64 time, u64 *until)
{
	u32 i = span_list__find(l, time);
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

void span_list__free(struct span_list *l)
{
	free(l->spans);
	*l = (struct span_list){ 0 };
}
