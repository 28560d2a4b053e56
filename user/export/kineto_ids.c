// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/kineto_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/gpus.h"
#include "model/view.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

/* Some 128 MiB each. Further operators have no number, and further launches no correlation id. */
#define OPS_MAX	     (4u << 20)
#define LAUNCHES_MAX (4u << 20)

/* Kinds of spans that family torch may have */
#define KINDS_MAX 16

struct pass {
	struct export *e;
	struct kineto_ids *ids;
};

static int on_ops(const struct rows *rows, void *arg)
{
	struct pass *p = arg;
	struct kineto_ids *k = p->ids;
	const struct schema_event *event = rows__event(rows);
	struct common_fields f = common_fields__of(event);
	bool is_range = !strcmp(event->name, "torch_range");

	ROWS_EACH(v, rows) {
		u64 time = (u64)view__s64(&v, f.time), start = (u64)view__s64(&v, f.start);
		struct kineto_op op = {
			.start = start < time ? start : time,
			.end = time,
			.tid = (u32)view__s64(&v, f.tid),
			.is_range = is_range,
		};

		if (view__s64(&v, f.flags) & EVENT_NO_DURATION)
			continue;
		if (k->n_ops < OPS_MAX && !array__push(k->ops, k->n_ops, op))
			return -ENOMEM;
	}
	return 0;
}

bool kineto_ids__is_on_time_line(const struct schema_event *e)
{
	return e->is_span;
}

static int read_ops(struct pass *p)
{
	const struct schema *s = trace__schema(p->e->trace);
	const struct schema_event *kinds[KINDS_MAX + 1] = { 0 };
	struct trace_filter filter = { .kinds = kinds, .pids = p->e->pids, .in_windows = kineto_ids__is_on_time_line };
	u32 n_all, n = 0;
	const struct kind_summary *all = trace__kinds(p->e->trace, &n_all);

	for (u32 i = 0; i < n_all && n < KINDS_MAX; i++) {
		const struct schema_event *event = all[i].event;
		const struct schema_family *family = schema__family_by_id(s, (u8)EVENT_FAMILY(event->id));

		/* steps are no calls */
		if (event->is_span && family && !strcmp(family->name, "torch") &&
		    strcmp(event->name, "torch_step") != 0)
			kinds[n++] = event;
	}
	return n ? trace__read(p->e->trace, &filter, on_ops, p) : 0;
}

COMPARE_BY(by_start, struct kineto_op, ASCENDING(start), DESCENDING(end), ASCENDING(tid))
COMPARE_BY(by_thread, struct kineto_op, ASCENDING(tid), ASCENDING(start), DESCENDING(end), ASCENDING(number))

/* Numbers the operators, and finds for each the span around it. */
static void number_ops(struct kineto_ids *k)
{
	if (!k->n_ops)
		return;
	qsort(k->ops, k->n_ops, sizeof(*k->ops), by_start);
	for (u32 i = 0; i < k->n_ops; i++)
		k->ops[i].number = i + 1;
	qsort(k->ops, k->n_ops, sizeof(*k->ops), by_thread);
	for (u32 i = 1; i < k->n_ops; i++) {
		struct kineto_op *op = &k->ops[i];
		u32 around = k->ops[i - 1].tid == op->tid ? i : 0;

		while (around && k->ops[around - 1].end < op->end)
			around = k->ops[around - 1].around;
		op->around = around;
	}
}

static int on_work(const struct gpu_work *w, void *arg)
{
	struct kineto_ids *k = ((struct pass *)arg)->ids;
	const struct gpu_launch *l = w->launch;
	struct kineto_launch *last = k->n_launches ? &k->launches[k->n_launches - 1] : NULL;

	/* a launch that only CUPTI recorded is written with its work, by chrome_gpu.c */
	if (w->host_time || !l || !l->tid || !l->probed || k->n_launches == LAUNCHES_MAX)
		return 0;
	/* all nodes of a graph have one launch */
	if (last && last->tid == l->tid && last->start == l->start)
		return 0;
	return array__push(k->launches, k->n_launches,
			   (struct kineto_launch){ l->start, l->tid, w->correlation, l->cupti_function }) ?
		       0 :
		       -ENOMEM;
}

static int read_launches(struct pass *p)
{
	const struct gpu_listener listener = { .work = on_work };
	struct export *e = p->e;
	struct gpu_model *model;
	int err;

	if (!gpus__traced(e->trace))
		return 0;
	err = gpu_model__new(&model, e->trace, e->names);
	if (!err)
		/* a reading that selects a time leaves out the pauses */
		err = gpu_model__read(model, e->facts->paused_ns ? 1 : 0, 0, &e->pids, &listener, p, NULL);
	gpu_model__free(model);
	return err;
}

COMPARE_BY(launches_by_thread, struct kineto_launch, ASCENDING(tid), ASCENDING(start), ASCENDING(correlation))

int kineto_ids__load(struct kineto_ids *k, struct export *e)
{
	struct pass p = { e, k };
	int err = read_ops(&p);

	number_ops(k);
	if (!err)
		err = read_launches(&p);
	if (k->n_launches)
		qsort(k->launches, k->n_launches, sizeof(*k->launches), launches_by_thread);
	return err;
}

void kineto_ids__free(struct kineto_ids *k)
{
	free(k->ops);
	free(k->launches);
}

/* Returns the index after the last operator of the thread that begins at that time or before; 0: there is none. */
static u32 last_begun(const struct kineto_ids *k, u32 tid, u64 time)
{
	u32 n = (u32)SEARCH(k->n_ops, i, k->ops[i].tid < tid || (k->ops[i].tid == tid && k->ops[i].start <= time));

	return n && k->ops[n - 1].tid == tid ? n : 0;
}

u32 kineto_ids__number(const struct kineto_ids *k, u32 tid, u64 start, u64 end)
{
	u32 i = last_begun(k, tid, start);

	for (; i && k->ops[i - 1].tid == tid && k->ops[i - 1].start == start; i--)
		if (k->ops[i - 1].end == end)
			return k->ops[i - 1].number;
	return 0;
}

u32 kineto_ids__around(const struct kineto_ids *k, u32 tid, u64 time)
{
	u32 i = last_begun(k, tid, time);

	while (i && (k->ops[i - 1].end < time || k->ops[i - 1].is_range))
		i = k->ops[i - 1].around;
	return i ? k->ops[i - 1].number : 0;
}

u32 kineto_ids__range(const struct kineto_ids *k, u32 tid, u64 time, u32 *at)
{
	u32 i = *at ? k->ops[*at - 1].around : last_begun(k, tid, time);

	while (i && (k->ops[i - 1].end < time || !k->ops[i - 1].is_range))
		i = k->ops[i - 1].around;
	*at = i;
	return i ? k->ops[i - 1].number : 0;
}

const struct kineto_launch *kineto_ids__launch(const struct kineto_ids *k, u32 tid, u64 start)
{
	u32 i = (u32)SEARCH(k->n_launches, n,
			    k->launches[n].tid < tid || (k->launches[n].tid == tid && k->launches[n].start < start));

	return i < k->n_launches && k->launches[i].tid == tid && k->launches[i].start == start ? &k->launches[i] : NULL;
}
