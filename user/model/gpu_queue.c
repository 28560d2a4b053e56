// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_private.h"
#include "util/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sort_entry {
	u64 time;
	u32 i;
};

static u64 time_of(const struct gpu_queue *q, u32 i)
{
	u64 time;

	memcpy(&time, gpu_queue__at(q, i), sizeof(time));
	return time;
}

void *gpu_queue__add(struct gpu_queue *q)
{
	u32 n_max = q->allocated ? q->allocated * 2 : 1024;
	char *more;

	if (q->n == q->allocated) {
		more = q->allocated < 1u << 28 ? realloc(q->items, n_max * q->size) : NULL;
		if (!more)
			return NULL;
		q->items = more;
		q->allocated = n_max;
	}
	return memset(gpu_queue__at(q, q->n++), 0, q->size);
}

COMPARE_BY(by_time, struct sort_entry, ASCENDING(time), ASCENDING(i))

/* Sorts indices and moves each item once, because items are large. */
int gpu_queue__sort(struct gpu_queue *q)
{
	struct sort_entry *entries;
	char *items;
	u32 i;

	for (i = 1; i < q->n && time_of(q, i - 1) <= time_of(q, i); i++)
		;
	if (i >= q->n)
		return 0;
	entries = malloc(q->n * sizeof(*entries));
	items = malloc(q->allocated * q->size);
	if (!entries || !items) {
		free(entries);
		free(items);
		return -ENOMEM;
	}
	for (i = 0; i < q->n; i++)
		entries[i] = (struct sort_entry){ time_of(q, i), i };
	qsort(entries, q->n, sizeof(*entries), by_time);
	for (i = 0; i < q->n; i++)
		memcpy(items + i * q->size, gpu_queue__at(q, entries[i].i), q->size);
	free(entries);
	free(q->items);
	q->items = items;
	return 0;
}

void gpu_queue__drop(struct gpu_queue *q, u32 n)
{
	if (!n)
		return;
	memmove(q->items, gpu_queue__at(q, n), (q->n - n) * q->size);
	q->n -= n;
}

void gpu_queue__free(struct gpu_queue *q)
{
	free(q->items);
	*q = (struct gpu_queue){ .size = q->size };
}
