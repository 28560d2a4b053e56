// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sorting by group: the order is that of one stable sort by group and value, and elements are moved into it. */
#include "util/group_sort.h"
#include "test.h"

#define MAX 5000

struct element {
	u64 value;
	u32 group, number;
};

static struct element elements[MAX], expected[MAX];
static u32 groups[MAX];

static u32 next_random(void)
{
	static u32 x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	return x ^= x << 5;
}

static int by_value(const void *a, const void *b, void *arg)
{
	const struct element *e = arg, *x = &e[*(const u32 *)a], *y = &e[*(const u32 *)b];

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_all(const void *a, const void *b)
{
	const struct element *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* values: how many different ones; 0: each group is in order already */
static bool sorts(u32 n, u32 n_groups, u32 values)
{
	u32 *order;

	for (u32 i = 0; i < n; i++) {
		elements[i] = (struct element){ values ? next_random() % values : i, next_random() % n_groups, i };
		groups[i] = elements[i].group;
	}
	memcpy(expected, elements, sizeof(elements));
	qsort(expected, n, sizeof(*expected), by_all);
	order = group_sort__order(groups, n, n_groups, by_value, elements);
	if (!order)
		return false;
	group_sort__move(elements, sizeof(*elements), order, n);
	free(order);
	return !memcmp(elements, expected, n * sizeof(*elements));
}

TEST(sorts_by_group_and_value)
{
	static const u32 sizes[] = { 0, 1, 2, 3, 17, 1000, MAX };

	for (u32 i = 0; i < 7; i++)
		for (u32 n_groups = 1; n_groups < 3000; n_groups = n_groups * 5 + 1) {
			CHECK(sorts(sizes[i], n_groups, 3));
			CHECK(sorts(sizes[i], n_groups, 100000));
			CHECK(sorts(sizes[i], n_groups, 0));
		}
}

TEST_MAIN()
