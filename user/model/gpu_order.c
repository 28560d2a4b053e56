// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Joins work with calls by order, where CUPTI is too old to report driver calls. If no two calls of a process overlap,
 * they are in the order of the correlation ids of their work. The work is aligned with the calls at each possible
 * offset. If at exactly one offset every work item fits its call (kind, grid or bytes, began no sooner), they are
 * joined, else nothing of the process is. This needs all of a process in memory: up to ORDER_MAX.
 */
#include "model/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_MAX (64u << 10) /* work items: 14 MiB */
#define TRIES_MAX 20000000u /* comparisons, for one process */

static int by_start(const void *a, const void *b)
{
	const struct gpu_host_item *x = *(struct gpu_host_item *const *)a, *y = *(struct gpu_host_item *const *)b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->span.start != y->span.start)
		return x->span.start < y->span.start ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_correlation(const void *a, const void *b)
{
	const struct gpu_work_item *x = *(struct gpu_work_item *const *)a, *y = *(struct gpu_work_item *const *)b;

	if (x->work.pid != y->work.pid)
		return x->work.pid < y->work.pid ? -1 : 1;
	if (x->work.correlation != y->work.correlation)
		return x->work.correlation < y->work.correlation ? -1 : 1;
	if (x->work.start != y->work.start)
		return x->work.start < y->work.start ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Returns sorted pointers to all items; NULL: no memory. */
static void *sorted_pointers(const struct gpu_queue *q, int (*compare)(const void *a, const void *b))
{
	void **pointers = malloc((q->n + 1) * sizeof(*pointers));
	u32 i;

	for (i = 0; pointers && i < q->n; i++)
		pointers[i] = gpu_queue__at(q, i);
	if (pointers)
		qsort(pointers, q->n, sizeof(*pointers), compare);
	return pointers;
}

static bool fits(const struct gpu_host_item *c, const struct gpu_work *w, u64 slack)
{
	if (w->start + slack < c->span.start)
		return false;
	switch (c->span.request) {
	case REQUEST_KERNEL:
		return w->kind == GPU_KERNEL && !w->graph && !memcmp(w->grid, c->grid, sizeof(w->grid)) &&
		       !memcmp(w->block, c->block, sizeof(w->block));
	case REQUEST_COPY:
		return w->kind == GPU_COPY && !w->graph && w->bytes == c->bytes;
	case REQUEST_SET:
		return w->kind == GPU_SET && !w->graph && w->bytes == c->bytes;
	default:
		return w->kind == GPU_GRAPH || w->graph;
	}
}

/* The calls and work of one process. */
struct process_items {
	struct gpu_host_item **calls;
	struct gpu_work_item **work;
	u32 n_calls, n_work;
	u32 *first; /* index in work of each correlation's first item */
	u32 n;
	u64 slack;
};

static bool calls_overlap(const struct process_items *b)
{
	u64 reach = 0;

	for (u32 i = 0; i < b->n_calls; i++) {
		if (b->calls[i]->span.start < reach)
			return true;
		reach = b->calls[i]->end > reach ? b->calls[i]->end : reach;
	}
	return false;
}

/* Returns the only offset at which the work fits the calls; -1: there is none, or several. */
static int only_offset(const struct process_items *b)
{
	u32 at, i, tries = 0;
	int found = -1;

	for (at = 0; at + b->n <= b->n_calls; at++) {
		for (i = 0; i < b->n && fits(b->calls[at + i], &b->work[b->first[i]]->work, b->slack); i++)
			;
		tries += i + 1;
		if ((i == b->n && found >= 0) || tries > TRIES_MAX)
			return -1;
		if (i == b->n)
			found = (int)at;
	}
	return found;
}

static int join_process(struct process_items *b)
{
	int offset;
	u32 i, g = 0;

	b->first = malloc((b->n_work + 1) * sizeof(*b->first));
	if (!b->first)
		return -ENOMEM;
	for (i = 0; i < b->n_work; i++)
		if (!i || b->work[i]->work.correlation != b->work[i - 1]->work.correlation)
			b->first[b->n++] = i;
	offset = calls_overlap(b) ? -1 : only_offset(b);
	for (i = 0; offset >= 0 && i < b->n_work; i++) {
		if (g + 1 < b->n && b->first[g + 1] == i)
			g++;
		b->work[i]->call = b->calls[offset + (int)g];
	}
	free(b->first);
	return 0;
}

static int join_all(struct gpu_model *m, struct gpu_host_item **calls, struct gpu_work_item **work)
{
	u32 c = 0, w = 0, n_calls = m->order_calls.n, n_work = m->order_work.n;
	int err = 0;

	while (!err && w < n_work) {
		u32 pid = work[w]->work.pid;
		struct process_items b = { .work = work + w, .slack = gpu_facts__slack(m, pid) };

		for (; w < n_work && work[w]->work.pid == pid; w++)
			b.n_work++;
		while (c < n_calls && calls[c]->pid < pid)
			c++;
		b.calls = calls + c;
		for (; c < n_calls && calls[c]->pid == pid; c++)
			b.n_calls++;
		err = join_process(&b);
	}
	return err;
}

bool gpu_order__is_used(const struct gpu_model *m, u32 pid)
{
	const struct gpu_process *p = m->order_full ? NULL : gpu_facts__process(m, pid);

	return p && p->has_shim && !p->has_calls;
}

int gpu_order__take_call(struct gpu_model *m, const struct gpu_host_item *c)
{
	struct gpu_host_item *to;

	/* copies and sets of no bytes have no work */
	if ((c->span.request == REQUEST_COPY || c->span.request == REQUEST_SET) && !c->bytes)
		return 0;
	if (m->order_calls.n >= 4 * ORDER_MAX)
		return gpu_order__give_up(m);
	to = gpu_queue__add(&m->order_calls);
	if (!to)
		return -ENOMEM;
	*to = *c;
	return 0;
}

int gpu_order__take_work(struct gpu_model *m, const struct gpu_work_item *w)
{
	struct gpu_work_item *to = gpu_queue__add(&m->order_work);

	if (!to)
		return -ENOMEM;
	*to = *w;
	return m->order_work.n >= ORDER_MAX ? gpu_order__give_up(m) : 0;
}

static int emit(struct gpu_model *m)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < m->order_work.n; i++)
		err = gpu_model__emit_work(m, gpu_queue__at(&m->order_work, i));
	gpu_queue__free(&m->order_work);
	gpu_queue__free(&m->order_calls);
	return err;
}

int gpu_order__give_up(struct gpu_model *m)
{
	m->order_full = true;
	return emit(m);
}

int gpu_order__end(struct gpu_model *m)
{
	struct gpu_host_item **calls;
	struct gpu_work_item **work;
	int err;

	if (!m->order_work.n)
		return 0;
	calls = sorted_pointers(&m->order_calls, by_start);
	work = sorted_pointers(&m->order_work, by_correlation);
	err = calls && work ? join_all(m, calls, work) : -ENOMEM;
	free(calls);
	free(work);
	return err ? err : emit(m);
}
