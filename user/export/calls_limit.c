// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes trees of calls small enough for a page, however many stacks a trace has. */
#include <errno.h>
#include <stdlib.h>

#include "export/calls.h"

static int largest_first(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x < y) - (x > y);
}

/* What is spent in each node and below it; NULL: no memory. */
static u64 *totals_of(const struct call_tree *t)
{
	u64 *totals = calloc(t->n, sizeof(*totals));

	for (u32 i = t->n; totals && i--;) {
		totals[i] += t->nodes[i].self;
		if (i)
			totals[t->nodes[i].parent] += totals[i];
	}
	return totals;
}

/* The total that at most `max` nodes exceed */
static int find_limit(const u64 *totals, u32 n, u32 max, u64 *limit)
{
	u64 *sorted = calloc(n, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		sorted[i] = totals[i];
	qsort(sorted, n, sizeof(*sorted), largest_first);
	/* the root is not counted */
	*limit = sorted[max + 1];
	free(sorted);
	return 0;
}

/* A caller has no less than what it calls, so the nodes that are left are a tree, too. */
static void keep_above(struct call_tree *t, const u64 *totals, u64 limit, u32 *numbers)
{
	u32 n = 1;

	for (u32 i = t->n; --i;) {
		struct call_node *node = &t->nodes[i];

		if (totals[i] > limit)
			continue;
		t->nodes[node->parent].self += node->self;
		t->nodes[node->parent].count += node->count;
	}
	for (u32 i = 1; i < t->n; i++) {
		u32 parent = t->nodes[i].parent;

		if (totals[i] <= limit)
			continue;
		numbers[i] = n;
		t->nodes[n] = t->nodes[i];
		t->nodes[n++].parent = numbers[parent];
	}
	t->n = n;
}

int call_tree__limit(struct call_tree *t, u32 max, u64 *least)
{
	u64 *totals, limit = 0;
	u32 *numbers;
	int err = 0;

	*least = 0;
	if (t->n - 1 <= max)
		return 0;
	totals = totals_of(t);
	numbers = calloc(t->n, sizeof(*numbers));
	if (!totals || !numbers)
		err = -ENOMEM;
	if (!err)
		err = find_limit(totals, t->n, max, &limit);
	if (!err) {
		keep_above(t, totals, limit, numbers);
		*least = limit + 1;
	}
	free(totals);
	free(numbers);
	return err;
}

int call_functions__drop_unused(struct call_functions *f, struct call_tree *const *trees, u32 n)
{
	u32 *numbers = calloc(f->n + 1, sizeof(*numbers)), used = 0;

	if (!numbers)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		for (u32 k = 1; k < trees[i]->n; k++)
			numbers[trees[i]->nodes[k].function] = 1;
	for (u32 i = 0; i < f->n; i++) {
		if (!numbers[i])
			continue;
		f->list[used] = f->list[i];
		numbers[i] = used++;
	}
	f->n = used;
	for (u32 i = 0; i < n; i++)
		for (u32 k = 1; k < trees[i]->n; k++)
			trees[i]->nodes[k].function = numbers[trees[i]->nodes[k].function];
	free(numbers);
	return 0;
}
