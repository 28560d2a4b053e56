// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/group_sort.h"

#include <stdlib.h>
#include <string.h>

static void sort_group(u32 *order, u32 n, int (*compare)(const void *a, const void *b, void *arg), void *arg)
{
	u32 i = 1;

	while (i < n && compare(&order[i - 1], &order[i], arg) < 0)
		i++;
	if (i < n)
		qsort_r(order, n, sizeof(*order), compare, arg);
}

u32 *group_sort__order(const u32 *groups, u32 n, u32 n_groups, int (*compare)(const void *a, const void *b, void *arg),
		       void *arg)
{
	u32 *order = malloc(((size_t)n + 1) * sizeof(*order)), *ends = calloc((size_t)n_groups + 1, sizeof(*ends));

	if (!order || !ends) {
		free(order);
		free(ends);
		return NULL;
	}
	for (u32 i = 0; i < n; i++)
		ends[groups[i] + 1]++;
	for (u32 g = 1; g <= n_groups; g++)
		ends[g] += ends[g - 1];
	/* ends[g] is where group g begins, and after the loop where it ends */
	for (u32 i = 0; i < n; i++)
		order[ends[groups[i]]++] = i;
	for (u32 g = 0; g < n_groups; g++) {
		u32 begin = g ? ends[g - 1] : 0;

		sort_group(order + begin, ends[g] - begin, compare, arg);
	}
	free(ends);
	return order;
}

void group_sort__move(void *elements, size_t size, u32 *order, u32 n)
{
	char *e = elements, moved[GROUP_SORT_SIZE_MAX];

	/* follows each cycle: place i gets the element that is at order[i] */
	for (u32 i = 0; i < n; i++) {
		u32 to = i;

		if (order[i] == i)
			continue;
		memcpy(moved, e + i * size, size);
		while (order[to] != i) {
			u32 from = order[to];

			memcpy(e + to * size, e + from * size, size);
			order[to] = to;
			to = from;
		}
		memcpy(e + to * size, moved, size);
		order[to] = to;
	}
}
