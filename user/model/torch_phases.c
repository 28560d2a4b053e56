// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the phases of training that the trace has: calls of data loaders and optimizers, and backward passes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/order.h"
#include "model/texts.h"
#include "model/torch_steps_private.h"
#include "util/array.h"
#include "util/compare.h"

/* 48 MiB. Phases of longer traces are not read; a step has about five. */
#define MARKS_MAX (1u << 20)

struct thread {
	u32 pid, tid;
};

struct pass {
	u64 start, end;
	s64 root; /* sequence number of its first node */
};

static int add(struct torch_marks *m, const struct torch_mark *mark)
{
	if (m->n == MARKS_MAX) {
		m->dropped++;
		return 0;
	}
	return array__push(m->list, m->n, *mark) ? 0 : -ENOMEM;
}

static int add_pass(struct torch_marks *m, const struct thread *t, const struct pass *p)
{
	return add(m,
		   &(struct torch_mark){ t->pid, t->tid, p->start, p->end, PHASE_BACKWARD, 0, false, MARKED_NOT, 0 });
}

/*
 * Where the layout of nodes is not known, none has a sequence number. Then a pass is cut where no node runs for longer,
 * and torch_steps.c joins the parts between which the program called no operator.
 */
#define UNNUMBERED_GAP_NS 100000u

static bool ends_pass(const struct pass *p, u64 start, s64 sequence)
{
	if (sequence >= 0)
		return sequence >= p->root;
	return p->root < 0 && start > p->end + UNNUMBERED_GAP_NS;
}

static int on_node(struct torch_marks *m, const struct thread *t, u64 start, u64 end, s64 sequence)
{
	struct pass *p = map__get(&m->passes, t);
	int err = 0;

	if (!p)
		return -ENOMEM;
	if (p->end && ends_pass(p, start, sequence)) {
		err = add_pass(m, t, p);
		*p = (struct pass){ 0 };
	}
	if (!p->end)
		*p = (struct pass){ start, end, sequence };
	/* a node that evaluates others ends after them */
	p->start = start < p->start ? start : p->start;
	p->end = end;
	return err;
}

#define STEP_PREFIX "ProfilerStep#"

static int add_step(struct torch_marks *m, struct torch_mark *mark, enum torch_marked marked, u64 number)
{
	mark->marked = marked;
	mark->number = number;
	mark->range = texts__number(&m->texts, marked == MARKED_BY_PROGRAM ? STEP_PREFIX "N" : "the recorded steps");
	return mark->range ? add(m, mark) : -ENOMEM;
}

static int on_range(struct torch_marks *m, struct torch_mark *mark, const char *name)
{
	static const char loader[] = "enumerate(DataLoader)#", optimizer[] = "Optimizer.", step[] = STEP_PREFIX;

	if (!strncmp(name, step, sizeof(step) - 1))
		return add_step(m, mark, MARKED_BY_PROGRAM, strtoull(name + sizeof(step) - 1, NULL, 10));
	if (!strncmp(name, loader, sizeof(loader) - 1))
		mark->phase = PHASE_DATA;
	else if (!strncmp(name, optimizer, sizeof(optimizer) - 1))
		mark->phase = PHASE_OPTIMIZER;
	else
		return 0;
	mark->is_step = !strncmp(name, "Optimizer.step#", 15);
	mark->range = texts__number(&m->texts, name);
	return mark->range ? add(m, mark) : -ENOMEM;
}

struct reading {
	struct torch_marks *marks;
	const struct names *names;
	struct order *order;
};

static int on_event(const struct view *v, void *arg)
{
	struct common_fields f = common_fields__of(v->event);
	const struct reading *r = arg;
	struct torch_mark mark = {
		.pid = (u32)view__s64(v, f.pid),
		.tid = (u32)view__s64(v, f.tid),
		.start = (u64)view__s64(v, f.start),
		.end = (u64)view__s64(v, f.time),
	};
	struct thread thread = { mark.pid, mark.tid };
	char name[TEXTS_LEN];

	if (mark.start > mark.end)
		mark.start = mark.end;
	if (!strcmp(v->event->name, "torch_node"))
		return on_node(r->marks, &thread, mark.start, mark.end, view__get(v, "sequence"));
	if (!strcmp(v->event->name, "torch_step"))
		return add_step(r->marks, &mark, MARKED_BY_RECORDING, (u64)view__get(v, "step"));
	if (!strcmp(v->event->name, "torch_collective")) {
		mark.phase = PHASE_COLLECTIVE;
		return add(r->marks, &mark);
	}
	if (!names__torch(r->names, v, name, sizeof(name)))
		return 0;
	return on_range(r->marks, &mark, name);
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(((struct reading *)arg)->order, rows);
}

COMPARE_BY(by_start, struct torch_mark, ASCENDING(pid), ASCENDING(tid), ASCENDING(start))

int torch_marks__read(struct torch_marks *m, const struct query *q)
{
	const struct schema *schema = trace__schema(q->trace);
	static const char *const names[] = { "torch_range", "torch_node", "torch_step", "torch_collective" };
	const struct schema_event *kinds[ARRAY_LEN(names) + 1] = { 0 };
	u32 n = 0;
	struct reading r = { .marks = m, .names = q->names, .order = order__new(on_event, &r) };
	int err = r.order ? 0 : -ENOMEM;

	*m = (struct torch_marks){ 0 };
	texts__init(&m->texts);
	map__init(&m->passes, sizeof(struct thread), sizeof(struct pass));
	for (u32 i = 0; i < ARRAY_LEN(names); i++) {
		kinds[n] = schema__event(schema, names[i]);
		n += kinds[n] != NULL;
	}
	if (!err && kinds[0])
		err = query__read(q, kinds, on_rows, &r);
	if (!err)
		err = order__finish(r.order);
	order__free(r.order);
	for (u32 i = 0; !err && i < m->passes.n; i++)
		err = add_pass(m, map__key(&m->passes, i), map__value(&m->passes, i));
	if (m->n)
		qsort(m->list, m->n, sizeof(*m->list), by_start);
	return err;
}

void torch_marks__free(struct torch_marks *m)
{
	free(m->list);
	MAPS_FREE(&m->texts, &m->passes);
}
