// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place {
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
	u32 want = q->allocated ? q->allocated * 2 : 1024;
	char *more;

	if (q->n == q->allocated) {
		more = q->allocated < 1u << 28 ? realloc(q->items, want * q->size) : NULL;
		if (!more)
			return NULL;
		q->items = more;
		q->allocated = want;
	}
	return memset(gpu_queue__at(q, q->n++), 0, q->size);
}

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* The items are large, so their indices are sorted and each item is moved once. */
int gpu_queue__sort(struct gpu_queue *q)
{
	struct place *places;
	char *items;
	u32 i;

	for (i = 1; i < q->n && time_of(q, i - 1) <= time_of(q, i); i++)
		;
	if (i >= q->n)
		return 0;
	places = malloc(q->n * sizeof(*places));
	items = malloc(q->allocated * q->size);
	if (!places || !items) {
		free(places);
		free(items);
		return -ENOMEM;
	}
	for (i = 0; i < q->n; i++)
		places[i] = (struct place){ time_of(q, i), i };
	qsort(places, q->n, sizeof(*places), by_time);
	for (i = 0; i < q->n; i++)
		memcpy(items + i * q->size, gpu_queue__at(q, places[i].i), q->size);
	free(places);
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
